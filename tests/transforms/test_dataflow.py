"""The engine of dataflow analyses, and facts that primitives of other packages declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.errors import BuildError
from primgraph.extend import RANGE, Fact, Range, elementwise, emit, lift, lookup
from primgraph.ir.graph import Equation, Value
from primgraph.transforms.dataflow.engine import Analysis, Facts, Fault, Flow
from primgraph.transforms.dataflow.value_bounds import ranges_of, slope_stays_finite

ROW = pg.spec(3)


class _Live(Analysis[bool]):
    """Whether outputs depend on a value."""

    backward = True

    def key(self) -> str:
        return "live in tests"

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool]:
        return [True] * len(eqn.inputs)

    def join(self, value: Value, facts: Sequence[bool | None]) -> bool | None:
        return any(facts) or None


class _Depth(Analysis[int]):
    """Number of equations on the way from an input; paths have to agree."""

    differs = "has paths of different lengths"

    def transfer(self, eqn: Equation, given: Facts[int], flow: Flow[int]) -> list[int]:
        return [1 + max(x for x in given if x is not None)] * len(eqn.outputs)


def _live(function: Any, count: int, output: int = 0) -> list[bool]:
    graph = pg.transforms.lower(pg.trace(function, *[ROW] * count))
    found = _Live().run(graph, {graph.outputs[output]: True}).facts
    return [v in found for v in graph.inputs]


def test_a_backward_analysis_goes_through_branches() -> None:
    def chosen(x: Any, y: Any, z: Any) -> Any:
        return pg.cond(pg.sum(x) > 0, lambda y, z: (y, z * 2.0), lambda y, z: (y * y, y), y, z)

    assert _live(chosen, 3, 0) == [False, True, False]
    assert _live(chosen, 3, 1) == [False, True, True]


def test_a_backward_analysis_repeats_a_loop_up_to_the_fixed_point() -> None:
    def rotated(a: Any, b: Any, c: Any, d: Any) -> Any:
        """Each step moves a carry on: the first result needs three steps back."""
        return pg.fori_loop(0, 5, lambda i, s: (s[1], s[2], s[2] * 0.5, s[3] + s[0]), (a, b, c, d))

    assert _live(rotated, 4, 0) == [True, True, True, False]
    assert _live(rotated, 4, 2) == [False, False, True, False]
    assert _live(rotated, 4, 3) == [True, True, True, True]


def test_a_backward_analysis_passes_rows_of_stacks() -> None:
    def running(x: Any, y: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            return carry + row[0], row[1] * 2.0

        return pg.scan(step, pg.zeros(()), (x, y))

    assert _live(running, 2, 0) == [True, False]
    assert _live(running, 2, 1) == [False, True]


def test_a_fault_names_the_equation_in_a_body() -> None:
    def uneven(x: Any) -> Any:
        return pg.cond(pg.sum(x) > 0, lambda x: pg.sin(x), lambda x: pg.sin(pg.cos(x)), x)

    graph = pg.transforms.lower(pg.trace(uneven, ROW))
    with pytest.raises(Fault, match="different lengths") as raised:
        _Depth().run(graph, {graph.inputs[0]: 0})
    assert raised.value.equation is not None
    assert raised.value.equation.op.name == "cond"


def test_results_are_noted_on_bodies() -> None:
    graph = pg.transforms.lower(
        pg.trace(lambda x: pg.cond(pg.sum(x) > 0, lambda x: pg.sin(x), lambda x: x, x), ROW)
    )
    _Live().run(graph, {graph.outputs[0]: True})
    bodies = [b for eqn in graph.body for b in eqn.bodies]
    assert [b.noted(("live in tests", True)) for b in bodies] == [[True], [True]]


def test_the_range_of_a_primitive_of_another_package_bounds_derivatives() -> None:
    def declared(name: str, **facts: Any) -> Any:
        return elementwise(name, lambda x: 2.0 + np.tanh(x), jvp=lambda z, x, d: d * z, **facts)

    def is_finite(op: Any) -> bool:
        """Whether the logarithm of what a primitive returns has a finite derivative."""
        graph = pg.transforms.lower(pg.trace(lambda x: pg.log(emit(op, lift(x))), ROW))
        return slope_stays_finite(graph.body[-1], 0, ranges_of(graph))

    assert not is_finite(declared("test_unknown_range"))
    assert is_finite(
        declared("test_known_range", facts={RANGE: lambda x: Range(1.0, 3.0, nan=x.nan)})
    )


def test_a_fact_is_declared_once() -> None:
    parity: Fact[str | None] = Fact("parity of tests", None)
    lookup("sin").declare(parity, "odd")
    assert (lookup("sin").fact(parity), lookup("exp").fact(parity)) == ("odd", None)
    with pytest.raises(BuildError, match="parity of tests already"):
        lookup("sin").declare(parity, "even")


class _Whole(_Live):
    """Whether outputs depend on a value, by equations alone."""

    enters = False

    def key(self) -> str:
        return "live as a whole in tests"


def test_an_analysis_that_does_not_enter_bodies_goes_through_the_whole_equation() -> None:
    def chosen(x: Any, y: Any, z: Any) -> Any:
        return pg.cond(pg.sum(x) > 0, lambda y, z: (y, z * 2.0), lambda y, z: (y * y, y), y, z)

    graph = pg.transforms.lower(pg.trace(chosen, ROW, ROW, ROW))
    found = _Whole().run(graph, {graph.outputs[0]: True}).facts
    assert [v in found for v in graph.inputs] == [True, True, True]


class _Late(_Depth):
    """Depths of which those on carries are given up, once all carries have one."""

    def advance(
        self, values: Sequence[Value], state: Facts[int], found: Facts[int]
    ) -> Sequence[int | None]:
        late = [y if x is None else x for x, y in zip(state, found, strict=True)]
        if late != state:
            return late
        return [x if x == y or x is None else 0 for x, y in zip(state, found, strict=True)]


def test_an_analysis_may_first_reach_all_carries_and_then_weaken_facts() -> None:
    def rotated(a: Any, b: Any, c: Any) -> Any:
        def body(a: Any, b: Any, c: Any, row: Any) -> Any:
            return pg.sin(c), pg.cos(a), pg.tanh(b), row

        return pg.scan(lambda state, row: (body(*state, row)[:3], row), (a, b, c), c)

    graph = pg.transforms.lower(pg.trace(rotated, *[pg.spec(2)] * 3))
    (loop,) = [eqn for eqn in graph.body if eqn.op is lookup("scan")]
    seen: list[Facts[int]] = []

    class Noting(_Late):
        def advance(self, values: Any, state: Facts[int], found: Facts[int]) -> Any:
            seen.append(list(state))
            return super().advance(values, state, found)

    Noting().run(graph, {loop.inputs[0]: 5})
    reached = [[x is not None for x in state] for state in seen]
    assert reached[:3] == [[True, False, False], [True, True, False], [True, True, True]]
    assert seen[2] == [5, 6, 7]
    with pytest.raises(Fault):
        _Depth().run(graph, {loop.inputs[0]: 5})
