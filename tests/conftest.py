"""What holds for all tests: graphs that a transform returns are verified, printed and read.

Debug mode is switched on before primgraph is imported, so that contracts and the verifier run on
every transform; the observer below adds the round trip through text.
"""

import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

os.environ["PRIMGRAPH_DEBUG"] = "1"

if sys.dont_write_bytecode:
    # Without bytecode, each of the hundred interpreters that tests start compiles the package, and
    # each worker the tests. It is written where pytest writes, not beside the sources.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # Bytecode of temporary copies of the package is of no use to later runs.
        shutil.rmtree(sys.pycache_prefix + tempfile.gettempdir(), ignore_errors=True)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from collections.abc import Iterator
from typing import Any

import pytest
from density import DENSE, VARIABLE, drawn, leave_out

# These register primitives when they are imported first: tests that forget those of their own
# are not to forget them.
import primgraph.compat.autograd.misc.fixed_points
import primgraph.custom.primitives  # noqa: F401
from primgraph.ir.graph import Graph
from primgraph.ir.text import parse, to_text
from primgraph.transforms.dataflow.contract import observers

# To read a graph takes longer than most transforms of it: those are read that have an equation of
# a kind that no graph before had, of the others one in so many, and no very large ones.
_ONE_IN, _LARGEST = 16, 2000
_kinds_read: set[object] = set()

# What these files test comes by most of the code, in a minute: `-m quick`.
_QUICK = {
    "containers", "conventions", "derivatives", "diff", "every_transform", "explanation", "forms",
    "ir", "optimizer", "pass_cases", "places", "plan", "products", "program", "public_api",
    "rewrites", "scalars", "state", "transforms",
}  # fmt: skip


def kinds(graph: Graph) -> set[object]:
    """What the text of an equation depends on, but for values, shapes and wiring."""
    return {
        (e.op.name, e.outputs[0].dtype, *[(name, type(value)) for name, value in e.params])
        for e in graph.body
    }


def reads_back(graph: Graph) -> None:
    """The text of `graph` parses to an equal graph, which prints the same text."""
    if len(graph) > _LARGEST:
        return
    found = kinds(graph)
    if found <= _kinds_read and not drawn(" ".join(e.op.name for e in graph.body), _ONE_IN):
        return
    _kinds_read.update(found)
    text = to_text(graph)
    again = parse(text, graph.constants)
    assert again == graph, f"the text does not read back to the same graph:\n{text}"
    assert to_text(again) == text, f"what was read back prints differently:\n{text}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of quick files, but for those that are long, and leave out the dense ones."""
    leave_out(items)
    for item in items:
        name = item.path.stem.removeprefix("test_")
        if name in _QUICK and not {"long", "dense"} & {m.name for m in item.iter_markers()}:
            item.add_marker(pytest.mark.quick)
    if not DENSE:
        dense = [item for item in items if item.get_closest_marker("dense")]
        config.hook.pytest_deselected(items=dense)
        items[:] = [item for item in items if not item.get_closest_marker("dense")]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files without quick tests for `-m quick`: this takes longer than the tests."""
    name = collection_path.stem.removeprefix("test_")
    is_test_file = collection_path.suffix == ".py" and name != collection_path.stem
    return (config.option.markexpr == "quick" and is_test_file and name not in _QUICK) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without garbage collections, and keep modules and tests out of later ones."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_report_header() -> str:
    return "" if DENSE else f"{VARIABLE}=1 runs dense tests as well"


@pytest.fixture(autouse=True, scope="session")
def round_trip_of_graphs() -> Iterator[None]:
    """Print and parse the graphs that transforms return in any test."""
    observers.append(reads_back)
    yield
    observers.remove(reads_back)


@pytest.fixture(autouse=True)
def handled_exceptions() -> Iterator[None]:
    """No test leaves an exception that its thread goes on to handle: it would be in later errors.

    Trace functions that raise may do this (see `interrupts.Interrupter`).
    """
    before = sys.exc_info()[1]
    yield
    assert sys.exc_info()[1] is before


@pytest.fixture(scope="session")
def native_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for compiled C: one for all tests of native code, in all workers of a run.

    It is that of PRIMGRAPH_CACHE, if set: `.ci/run` has one for all of its stages.
    """
    before = os.environ.get("PRIMGRAPH_CACHE")
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = Path(before or run / "native")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["PRIMGRAPH_CACHE"] = str(folder)
    yield folder
    del os.environ["PRIMGRAPH_CACHE"]
    if before is not None:
        os.environ["PRIMGRAPH_CACHE"] = before


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Interrupts raise `KeyboardInterrupt`, also in a process that was started without them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two worker processes of dask's, for tests that have made sure that it is there."""
    distributed = importlib.import_module("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit="1GB",
    ) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def client(cluster: Any) -> Iterator[Any]:
    distributed = importlib.import_module("distributed")
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client
