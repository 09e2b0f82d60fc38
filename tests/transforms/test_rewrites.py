"""Rules that are functions, as text: what each makes of a graph, and that it computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from program_tolerance import differs, roughly_differs
from rewrite_cases import Case, files, read

from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import to_text

CASES = {f"{path.stem}: {case.title}": case for path in files() for case in read(path)}


def numbers(graph: Graph, level: str) -> list[np.ndarray]:
    """Feeds with both zeros and no NaN at level "exact", ordinary ones at others."""
    rng = np.random.default_rng(0)
    found = []
    for type in graph.input_types:
        drawn = rng.uniform(0.5, 1.5, type.shape) * rng.choice([-1, 1], type.shape)
        if level == "exact":
            drawn = drawn * rng.choice([1.0, 0.0], type.shape, p=[0.7, 0.3])
        found.append(np.asarray(3 * drawn).astype(type.dtype))
    return found


def test_the_cases_are_many_and_each_has_a_title_of_its_own() -> None:
    assert len(CASES) == sum(len(list(read(path))) for path in files())
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", CASES)
def test_a_graph_becomes_what_is_written_down(name: str) -> None:
    """`python tests/tools/rewrite_cases.py` writes down what comes out now."""
    case: Case = CASES[name]
    graph, result = case.graph(), case.result()
    assert to_text(graph) == case.before, "the graph is not written as it prints"
    assert to_text(result) == case.after
    level = case.call.split()[1]
    feeds = numbers(graph, level)
    expected, found = (interpret(g, *feeds) for g in (graph, result))
    if level == "fast":
        assert not roughly_differs(graph, feeds, expected, found, 8.0)
    elif level == "finite":
        assert not roughly_differs(graph, feeds, expected, found, 0.0)
    else:
        assert not differs(graph, feeds, expected, found)
