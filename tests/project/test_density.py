"""What is left out of a run of the tests, and what is not."""

from pathlib import Path

import conftest
import pytest
from density import DENSE, THINNED, drawn, leave_out, starts, thinned

import primgraph as pg


@pytest.mark.parametrize("start", starts(10, 6, 2, dense=4, long=2))
def test_dense_tests_run_when_they_are_asked_for(start, request):
    marks = {m.name for m in request.node.iter_markers()} & {"long", "dense"}
    assert marks == {10: set(), 12: {"long"}, 14: {"long", "dense"}}[start]
    assert DENSE or start < 14


@pytest.mark.skipif(DENSE, reason="all is taken")
def test_lots_fall_on_the_same_texts_and_on_their_share():
    texts = [f"text {i}" for i in range(4000)]
    found = [t for t in texts if drawn(t, 4)]
    assert found == [t for t in texts if drawn(t, 4)]
    assert 900 < len(found) < 1100


def test_each_kind_has_a_case_that_is_not_dense():
    cases = thinned([pytest.param(i, id=f"kind{i % 5} {i}") for i in range(100)], 8)
    kept = [c.values[0] for c in cases if not c.marks]
    assert kept[:5] == list(range(5))
    assert len(cases) == 100
    assert DENSE or len(kept) < 40


@pytest.mark.skipif(DENSE, reason="all texts are read")
def test_texts_with_equations_of_new_kinds_are_read(monkeypatch):
    read = []
    monkeypatch.setattr(conftest, "_kinds_read", set())
    monkeypatch.setattr(conftest, "drawn", lambda text, one_in: False)
    monkeypatch.setattr(conftest, "parse", lambda text, _: read.append(text) or pg.parse(text))
    sine = pg.trace(lambda x: pg.sin(x), pg.spec(3))
    single = pg.trace(lambda x: pg.sin(x), pg.spec(3, "float32"))
    summed = pg.trace(lambda x: pg.sum(pg.sin(x)), pg.spec(3))
    for graph in (sine, sine, single, summed, summed, sine):
        conftest.reads_back(graph)
    assert read == [str(g) for g in (sine, single, summed)]


def test_what_is_thinned_is_there():
    """The table names tests that exist, so that none runs in full because it was renamed."""
    folder = Path(__file__).parents[1]
    for name in THINNED:
        file, _, function = name.partition("::")
        (path,) = folder.rglob(f"{file}.py")
        assert f"def {function}(" in path.read_text(encoding="utf-8"), name


def test_of_thinned_tests_the_first_case_and_those_that_are_drawn_run():
    class Item:
        def __init__(self, function: str, case: int) -> None:
            self.path, self.originalname = Path("test_ties.py"), function
            self.name = f"{function}[{case}]"
            self.marks: list[str] = []

        def add_marker(self, mark: pytest.MarkDecorator) -> None:
            self.marks.append(mark.name)

    name, one_in = next((n, k) for n, k in THINNED.items() if n.startswith("test_ties::"))
    listed = [Item(name.partition("::")[2], k) for k in range(40)]
    other = [Item("test_of_another_name", k) for k in range(40)]
    leave_out([*listed, *other])
    kept = [item for item in listed if not item.marks]
    assert kept[0] is listed[0]
    assert {mark for item in listed for mark in item.marks} <= {"dense"}
    assert DENSE or len(kept) - 1 == sum(drawn(item.name, one_in) for item in listed[1:]) < 39
    assert not any(item.marks for item in other)
