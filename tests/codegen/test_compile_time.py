"""Build, gradient, compilation and first run together take linear time, and do nothing twice.

Times are compared with one another only.
"""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import pytest
from random_programs import random_program

import primgraph as pg
from primgraph.base.interpreter_limits import uncollected
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Op
from primgraph.ir.slices import Slices
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.transforms import clean_up, linearize, lower
from primgraph.transforms.optimize.simplify import FAMILIES
from primgraph.transforms.rewrite import rule

pytestmark = pytest.mark.long

SMALL, LARGE = 500, 5_000


def chain(count: int) -> float:
    """`count` elementwise operators in a row."""
    with pg.Program() as program:
        x = value = pg.data("x", (3,))
        p = pg.data("p", (3,))
        for i in range(0, count, 4):
            value = pg.cos(pg.sin(value) * p) + p if i % 8 else pg.tanh(value * p) - p * value
        loss = pg.sum(value)
        fetched = [loss, *pg.grad(loss, [x, p])]
    return float(pg.Executor().run(program, {"x": np.ones(3), "p": np.ones(3)}, fetched)[0])


def network(count: int) -> float:
    """Layers of four operators each, which share their weights in turn."""
    feed = {f"w{k}": np.eye(4) for k in range(4)} | {"x": np.ones((2, 4))}
    with pg.Program() as program:
        x = value = pg.data("x", (2, 4))
        weights = [pg.data(f"w{k}", (4, 4)) for k in range(4)]
        for i in range(count // 4):
            value = value + 0.5 * pg.softplus(value @ weights[i % 4])
        loss = pg.mean(value**2)
        fetched = [loss, *pg.grad(loss, [x, *weights])]
    return float(pg.Executor().run(program, feed, fetched)[0])


def recurrence(count: int) -> float:
    """An LSTM of steps of fifty equations each."""
    feed = {"x": np.ones((count // 50, 2, 3)), "w": np.ones((3, 16)), "u": np.ones((4, 16))}
    with pg.Program() as program:
        x, w, u = pg.data("x", (count // 50, 2, 3)), pg.data("w", (3, 16)), pg.data("u", (4, 16))
        state = cell = pg.zeros((2, 4))
        for i in range(count // 50):
            entering, kept, leaving, new = pg.split(x[i] @ w + state @ u, 4, axis=1)
            cell = pg.sigmoid(kept) * cell + pg.sigmoid(entering) * pg.tanh(new)
            state = pg.sigmoid(leaving) * pg.tanh(cell)
        loss = pg.mean(state**2)
        fetched = [loss, *pg.grad(loss, [w, u])]
    return float(pg.Executor().run(program, feed, fetched)[0])


def descent(count: int) -> float:
    """Steps along gradients, each taken in the loop."""
    with pg.Program() as program:
        x = pg.data("x", (5,))
        w = pg.data("w", (5,))
        for _ in range(count // 12):
            x = x + 0.1 * pg.grad(pg.sum(pg.sin(x * w)), x)
        fetched = [pg.sum(x)]
    feed = {"x": np.ones(5), "w": np.ones(5)}
    return float(pg.Executor().run(program, feed, fetched)[0])


MAKERS = [
    chain, network, *[pytest.param(f, marks=pytest.mark.dense) for f in (recurrence, descent)]
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_all_the_way_to_the_first_value_takes_linear_time(make: Callable[[int], float]) -> None:
    def once(count: int) -> float:
        gc.collect()
        start = time.process_time()
        make(count)
        return (time.process_time() - start) / count

    once(SMALL // 10)
    pairs = []
    # Others may disturb what is measured; it counts once it has been seen low.
    while len(pairs) < 3:
        pairs.append((once(SMALL), once(LARGE)))
        if pairs[-1][1] <= 1.5 * pairs[-1][0]:
            return
    pytest.fail(f"seconds per operator, of {SMALL} and of {LARGE}: {pairs}")


def test_equal_types_are_one_object() -> None:
    type = TensorType((2, 3), FLOAT64)
    others = [
        TensorType((np.int64(2), np.int64(3)), np.dtype("f8")),
        pickle.loads(pickle.dumps(type)),
        copy.deepcopy(type),
        TensorType((3, 2), FLOAT64).with_shape((2, 3)),
    ]
    assert all(other is type for other in others)
    assert TensorType((2, 3), np.dtype("f4")) != type
    assert (type.size, type.ndim, type.nbytes, str(type)) == (6, 2, 48, "f64[2,3]")
    with pytest.raises(AttributeError, match="never changes"):
        type.shape = (6,)  # type: ignore[misc]


def test_extents_of_types_are_plain_integers() -> None:
    made = TensorType((np.int64(7), True), FLOAT64)  # type: ignore[arg-type]
    assert [n.__class__ for n in made.shape] == [int, int]


def test_passes_share_equations_that_they_leave_as_they_are() -> None:
    graph = pg.parse("""
    graph f(%x: f64[3], %p: f64[3]) {
      %0: f64[3] = sin(%x)
      %1: f64[3] = mul(%0, %p)
      %named: f64[3] = cos(%1)
      %2: f64[3] = add(%named, %p)
      return %2
    }""")
    body = set(graph.body)
    assert clean_up(graph) is graph
    changed = linearize(graph)
    assert [e.op.name for e in changed.body if e in body] == ["sin", "mul"]
    assert changed.inputs[:2] == graph.inputs
    assert "named" not in str(changed)


def test_a_name_given_later_is_not_in_what_was_derived_before_by_copy() -> None:
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sin(x)
        y.name = "y"
        derivative = pg.grad(pg.cos(y), x)
    twin = program.clone()
    derivative.name = "slope"
    assert twin.variable("slope") is None
    assert "slope" not in str(twin.graph())
    assert "slope" in str(program.graph([derivative]))


def test_an_operator_is_decomposed_once_for_equal_types_and_parameters() -> None:
    with pg.Program() as program:
        x, y = pg.data("x", (3, 4)), pg.data("y", (3, 4))
        sums = [pg.softmax(x), pg.softmax(y), pg.softmax(x, axis=0), pg.softmax(x[0])]
    graph = program.graph(sums)
    lines = {e.source for e in graph.body if e.op.name == "softmax"}
    lowered = lower(graph)
    assert {s.mark_operator("softmax") for s in lines} == {
        e.source for e in lowered.body if e.op.name == "exp"
    }
    assert [e.op.name for e in lowered.body].count("exp") == 4
    feeds = [np.random.default_rng(i).normal(size=(3, 4)) for i in range(2)]
    for found, known in zip(pg.compile(lowered)(*feeds), pg.compile(graph)(*feeds), strict=True):
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("math", ["exact", "finite", "fast"])
def test_rules_do_nothing_but_on_what_they_say(math: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [random_program(seed).graph for seed in range(30)]
    graphs = [clean_up(lower(g)) for g in graphs] + [lower(g) for g in graphs]
    found = [str(clean_up(g, math, last=True)) for g in graphs]
    assert any(r.of for f in FAMILIES for listed in f.rules.values() for r in listed)

    def anywhere(families: Sequence[rule.Family], op: Op, math: str) -> list[rule.Rule]:
        listed = rule.select_rules(families, op, math)
        return [replace(r, of=frozenset(), at=(), alike=(), inexact=None) for r in listed]

    # The function of that name hides its module from attribute access.
    module = sys.modules["primgraph.transforms.optimize.simplify"]
    monkeypatch.setattr(module, "select_rules", anywhere)
    monkeypatch.setattr(module, "table_of", module.table_of.__wrapped__)
    assert [str(clean_up(g, math, last=True)) for g in graphs] == found


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """The collector as in a process of a user; the tests freeze modules in theirs."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


@pytest.mark.usefixtures("unfrozen")
def test_what_others_have_frozen_stays_frozen() -> None:
    assert not gc.get_freeze_count()
    held = [[] for _ in range(10)]
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with uncollected:
            made = [[held] for _ in range(20_000)]
        assert before == gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    with uncollected:
        made = [[held] for _ in range(20_000)]
    assert len(made) == 20_000
    assert not gc.get_freeze_count()
    assert gc.isenabled()


@final
class Counting(dict[Value, "Equation | None"]):
    """A table that counts how often it is asked."""

    asked = 0

    def get(self, key: Value, default: Any = None) -> Any:
        self.asked += 1
        return super().get(key, default)


def between(
    builder: pg.Builder, inputs: Sequence[Value], outputs: Sequence[Value]
) -> tuple[int, int]:
    """How many equations lie between, and how many values were asked for what defines them."""
    table = Counting({v: e for e in builder.body for v in e.outputs})
    table.update(dict.fromkeys(builder.inputs))
    found = Slices(builder.body, table).equations_between(inputs, outputs)
    return len(found), table.asked


@pytest.mark.parametrize("place", ["late input", "early output", "beside"])
def test_a_derivative_touches_what_lies_between_and_nothing_else(place: str) -> None:
    """Not what was recorded before its inputs, nor what does not lead to its outputs."""
    with pg.Program() as program:
        x, p = pg.data("x", (3,)), pg.data("p", (3,))
        values = [x]
        for _ in range(2000):
            values.append(pg.sin(values[-1]) * p)
        beside = pg.data("beside", (3,))
        start, end = {
            "late input": (values[-3], values[-1]),
            "early output": (x, values[2]),
            "beside": (beside, pg.sum(values[-1] * beside)),
        }[place]
        count, asked = between(program.builder, [start.value], [end.value])
    assert count <= 4
    assert asked < 100, "two searches take turns, and the shorter one ends both"


def test_what_lies_between_is_found_by_both_searches() -> None:
    """A value that another input is computed from, forgotten equations, and a condition."""
    with pg.Program() as program:
        x = pg.data("x", (3,))
        condition = pg.broadcast_to(pg.sum(x) > 0, (3,))
        y = pg.sin(x) * 2.0
        with program.builder.scratch():
            pg.cos(y)
            pg.grad(pg.sum(pg.cos(y)), y)
        z = pg.where(condition, pg.log(y), 0.0)
        both = program.builder.between([x.value, y.value], [z.value])
        late = program.builder.between([y.value], [z.value])
        held = program.builder.between([x.value], [z.value], [y.value])
    assert [e.op.name for e in both if e.inputs][-1] == "select"
    assert {"sin", "mul", "log"} <= {e.op.name for e in both}
    names = {e.op.name for e in late}
    assert {"log", "greater"} <= names
    assert not {"sin", "mul"} & names
    assert "log" not in {e.op.name for e in held}
