"""Activity analysis: values that carry derivatives, and elementwise (diagonal) dependence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import final

from primgraph.ir.facts.ranges import HOLOMORPHIC
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.control import Regions
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow


def dependent_values(
    graph: Graph, sources: Sequence[Value], *, by_tangents: bool = False
) -> set[Value]:
    """Return the inexact values that depend on `sources` differentiably, including `sources`.

    With `by_tangents`, follow only the operands along which a primitive passes tangents.
    """
    if by_tangents:
        return {*_BY_TANGENTS.run(graph, dict.fromkeys(sources, True)).facts}
    found = set(sources)
    for eqn in graph.body:
        if not found.isdisjoint(eqn.inputs) and not eqn.op.stops:
            found.update([v for v in eqn.outputs if v.type.is_inexact])
    return found


def _passed(eqn: Equation) -> tuple[Value, ...]:
    return () if eqn.op.stops else eqn.inputs


def relevant_values(
    body: Sequence[Equation],
    outputs: Iterable[Value],
    passed: Callable[[Equation], Sequence[Value]] = _passed,
) -> set[Value]:
    """Return `outputs` and the values that they depend on differentiably.

    The values have inexact dtypes, except for the given ones. `passed` returns the operands along
    which an equation has derivatives; equations with bodies are not entered.
    """
    found = set(outputs)
    for eqn in reversed(body):
        if not found.isdisjoint(eqn.outputs):
            found.update([v for v in passed(eqn) if v.type.is_inexact])
    return found


class _Reach(Analysis[bool]):
    """Whether values depend on given ones, per result of branches and loops."""

    __slots__ = ()

    def key(self) -> str:
        return "reached"

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool | None]:
        return [True] * len(eqn.inputs if self.backward else eqn.outputs)

    def join(self, value: Value, facts: Sequence[bool | None]) -> bool | None:
        return any(facts) or None


class _Active(_Reach):
    """Whether values depend on given ones differentiably; equations with bodies are not entered."""

    __slots__ = ()

    enters = False

    def key(self) -> str:
        return "active"

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool | None]:
        stops = eqn.op.stops
        return [(not stops and v.type.is_inexact) or None for v in eqn.outputs]


@final
class _ByTangents(_Active):
    """Like `_Active`, but only by operands along which a primitive passes tangents."""

    __slots__ = ()

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool | None]:
        if isinstance(eqn.op, Primitive) and not any(eqn.op.moving(given)):
            return [None] * len(eqn.outputs)
        return super().transfer(eqn, given, flow)


@final
class _Varying(_Reach):
    """Whether values depend on given ones in any way; equations with bodies are not entered."""

    __slots__ = ()

    enters = False

    def key(self) -> str:
        return "varying"


_REACH, _ACTIVE, _VARYING, _BY_TANGENTS = _Reach(), _Active(), _Varying(), _ByTangents()


def reached_values(body: Iterable[Equation], sources: Iterable[Value]) -> set[Value]:
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


def dependence_bits(graph: Graph, bits: Mapping[Value, int]) -> dict[Value, int]:
    """Return for each value of `graph` the bits of the values that it depends on differentiably.

    Equations with bodies are not entered.
    """
    found = dict(bits)
    apart = found.keys().isdisjoint
    for eqn in graph.body:
        if apart(eqn.inputs) or eqn.op.stops:
            continue
        through = 0
        for value in eqn.inputs:
            through |= found.get(value, 0)
        if through:
            for value in eqn.outputs:
                if value.type.is_inexact:
                    found[value] = through
    return found


@final
class _Live(_Reach):
    """Whether results depend on values in any way; equations with bodies are not entered."""

    __slots__ = ()

    backward = True
    enters = False

    def key(self) -> str:
        return "live"


_LIVE = _Live()


def live_values(regions: Regions, results: Collection[int]) -> tuple[set[int], set[int]]:
    """Return the positions of body inputs and of body results that are live in some step.

    `results` are those body results that are live behind the equation.
    """
    ends: Facts[bool] = [k in results or None for k in range(len(regions.bodies[0].outputs))]
    within, found = _LIVE.settle(regions, ends)
    inputs, outputs = ({i for i, is_one in enumerate(facts) if is_one} for facts in (found, within))
    return inputs, outputs


def is_diagonal(graph: Graph, wrt: Sequence[Value]) -> bool:
    """Return whether each output element depends only on the same element of `wrt`.

    This holds if all active equations are elementwise and of one type. The Jacobian is then
    diagonal, hence its own transpose: forward mode computes reverse mode.
    """
    kind = wrt[0].type
    if any(v.type != kind for v in (*wrt, *graph.outputs)):
        return False
    active = dependent_values(graph, wrt)
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
