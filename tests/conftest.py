"""What holds for all tests: graphs that a transform returns are verified, printed and read.

Debug mode is switched on before primgraph is imported, so that contracts and the verifier run on
every transform; the observer below adds the round trip through text.
"""

import os

os.environ["PRIMGRAPH_DEBUG"] = "1"

from collections.abc import Iterator

import pytest

from primgraph.ir.contract import observers
from primgraph.ir.graph import Graph
from primgraph.ir.text import parse, to_text

# To read a graph takes longer than most transforms of it: of larger graphs than the first only
# those are read whose number of equations is a multiple of the second, and no very large ones.
_SMALL, _SOME, _LARGEST = 30, 16, 2000

# What these files test comes by most of the code, in a minute: `-m quick`.
_QUICK = {
    "containers", "conventions", "derivatives", "diff", "every_transform", "explanation", "forms",
    "ir", "optimizer", "places", "plan", "products", "program", "public_api", "rewrites", "scalars",
    "state", "transforms",
}  # fmt: skip


def reads_back(graph: Graph) -> None:
    """The text of `graph` parses to an equal graph, which prints the same text."""
    if len(graph) > _SMALL and (len(graph) % _SOME or len(graph) > _LARGEST):
        return
    text = to_text(graph)
    again = parse(text, graph.constants)
    assert again == graph, f"the text does not read back to the same graph:\n{text}"
    assert to_text(again) == text, f"what was read back prints differently:\n{text}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of quick files, but for those that are long."""
    for item in items:
        name = item.path.stem.removeprefix("test_")
        if name in _QUICK and item.get_closest_marker("long") is None:
            item.add_marker(pytest.mark.quick)


@pytest.fixture(autouse=True, scope="session")
def round_trip_of_graphs() -> Iterator[None]:
    """Print and parse the graphs that transforms return in any test."""
    observers.append(reads_back)
    yield
    observers.remove(reads_back)
