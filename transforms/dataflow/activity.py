"""Activity analysis: values that carry derivatives, and elementwise (diagonal) dependence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from primgraph.ir.facts.ranges import HOLOMORPHIC
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.control import Regions
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow


def depending(graph: Graph, sources: Sequence[Value], *, by_tangents: bool = False) -> set[Value]:
    """Return the inexact values that depend on `sources` differentiably, including `sources`.

    With `by_tangents`, follow only the operands along which a primitive passes tangents.
    """
    active = set(sources)
    for eqn in graph.body:
        inputs: Sequence[Value] = eqn.inputs
        if by_tangents and isinstance(eqn.op, Primitive):
            inputs = eqn.op.moving(inputs)
        if active.isdisjoint(inputs) or eqn.op.stops:
            continue
        for value in eqn.outputs:
            if value.type.is_inexact:
                active.add(value)
    return active


class _Reach(Analysis[bool]):
    """Whether values depend on given ones, per result of branches and loops."""

    __slots__ = ()

    def key(self) -> str:
        return "reached"

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool]:
        return [True] * len(eqn.outputs)

    def join(self, value: Value, facts: Sequence[bool | None]) -> bool | None:
        return any(facts) or None


@final
class _Active(_Reach):
    """Whether values depend on given ones differentiably; equations with bodies are not entered."""

    __slots__ = ()

    def key(self) -> str:
        return "active"

    def visit(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool | None]:
        return [(v.type.is_inexact and not eqn.op.stops) or None for v in eqn.outputs]


@final
class _Varying(_Reach):
    """Whether values depend on given ones in any way; equations with bodies are not entered."""

    __slots__ = ()

    def key(self) -> str:
        return "varying"

    def visit(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool | None]:
        return [True] * len(eqn.outputs)


_REACH, _ACTIVE, _VARYING = _Reach(), _Active(), _Varying()


def reached(body: Iterable[Equation], sources: Iterable[Value]) -> set[Value]:
    """Return `sources` and all values that depend on them, per result of equations with bodies.

    `forward_slice` includes all results of a loop, a branch or a checkpoint. This includes only the
    results that are linear once `separated` has split the equation.
    """
    return {*_REACH.run(Graph((), body, ()), dict.fromkeys(sources, True)).facts}


def reached_inputs(regions: Regions, present: Iterable[int]) -> set[int]:
    """Return the positions of body inputs that depend on `present` in some step."""
    return _inputs(_REACH, regions, present)


def active_inputs(regions: Regions, present: Iterable[int]) -> list[int]:
    """Return the positions of body inputs that carry derivatives in some step, in order.

    `present` are those of the first step.
    """
    return sorted(_inputs(_ACTIVE, regions, present))


def varying_inputs(regions: Regions, present: Iterable[int]) -> set[int]:
    """Return the positions of body inputs that depend on `present` in any way, in some step."""
    return _inputs(_VARYING, regions, present)


def _inputs(analysis: Analysis[bool], regions: Regions, present: Iterable[int]) -> set[int]:
    found = set(present)
    given: Facts[bool] = [i in found or None for i in range(len(regions.bodies[0].inputs))]
    if not regions.is_loop:
        return found
    within, _ = analysis.settle(regions, given)
    return {i for i, is_one in enumerate(within) if is_one}


def is_diagonal(graph: Graph, wrt: Sequence[Value]) -> bool:
    """Return whether each output element depends only on the same element of `wrt`.

    This holds if all active equations are elementwise and of one type. The Jacobian is then
    diagonal, hence its own transpose: forward mode computes reverse mode.
    """
    kind = wrt[0].type
    if any(v.type != kind for v in (*wrt, *graph.outputs)):
        return False
    active = depending(graph, wrt)
    for eqn in graph.body:
        if active.isdisjoint(eqn.inputs) or active.isdisjoint(eqn.outputs):
            continue
        each = isinstance(eqn.op, Primitive) and eqn.op.elementwise
        # Conjugation is not multiplication by a number.
        if not eqn.op.fact(HOLOMORPHIC):
            return False
        if not each and (eqn.op.own_slope or not eqn.op.formal):
            return False
        if eqn.outputs[0].type != kind:
            return False
    return True
