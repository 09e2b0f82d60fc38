"""Batch independence: the axis of samples in each value, and the first equation that mixes samples.

Axis 0 of the differentiated inputs counts samples. Samples are independent if no sample of an
equation's result has a derivative by another sample of its operands. Operations without a
derivative, such as comparisons, `floor` and `stop_gradient`, may combine samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.ir.facts.ranges import SAME
from primgraph.ir.graph import COUNTED, Equation, Graph, Value
from primgraph.ir.index_maps import (
    Dependence,
    Index,
    IndexMap,
    Lookup,
    Opaque,
    RowMajor,
    variables_of,
)
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import Shape
from primgraph.primitives.control import EQUATION
from primgraph.transforms.dataflow.activity import relevant_values
from primgraph.transforms.dataflow.engine import Analysis, Fault, Flow
from primgraph.transforms.dataflow.locality import inspect_derivative, is_inspecting, slopes_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Position of samples in a value: along `axis`, between `before` and `after` other elements.

    The size of the axis is `before` times the number of samples times `after`; these exceed 1 where
    a reshape has merged axes. Position `i` has sample `i + shift`; without such a sample, its
    elements depend on none.
    """

    axis: int
    before: int = 1
    after: int = 1
    shift: int = 0

    @property
    def is_plain(self) -> bool:
        """Return whether each element along the axis belongs to another sample."""
        return self.before == self.after == 1


@dataclass(frozen=True, slots=True)
class Mixing:
    """An equation that may mix samples, and how."""

    equation: Equation
    why: str


# One place per operand; None for an operand without a derivative by any sample.
Places: TypeAlias = Sequence[Place | None]

_UNKNOWN = "is not known to keep samples apart"
_DIFFERENT = "joins different samples of its operands"
_PARTS = "takes a part of the samples where these share an axis with others"


def find_mixing(graph: Graph, wrt: Sequence[Value]) -> Mixing | None:
    """Return the first equation of `graph` that may mix samples of `wrt` on the way to outputs.

    Return None if samples are independent, and axis 0 of all outputs counts them. A single sample
    is never mixed. The analysis takes one pass and is conservative: an op without a rule may mix.
    """
    if not wrt or wrt[0].shape[0] in (0, 1):
        return None
    try:
        found = _INDEPENDENCE.run(graph, dict.fromkeys(wrt, Place(0))).facts
    except Fault as fault:
        return mixing_of(fault)
    for value in graph.outputs:
        if found.get(value, Place(0)) != Place(0):
            made = next(e for e in graph.body if value in e.outputs)
            return Mixing(made, "moves samples to other places of the result")
    return None


def mixing_of(fault: Fault) -> Mixing:
    """Return the equation that raised a fault, and how it mixes samples."""
    assert fault.equation is not None
    return Mixing(fault.equation, fault.cause)


class Samples(Analysis[T]):
    """Analysis of the places of samples; samples stay independent if they do in each body."""

    __slots__ = ()

    differs = "moves samples from trip to trip, or in some branches only"

    def row(self, fact: T, stack: Value, row: Value) -> T:
        assert isinstance(fact, Place)
        if fact.axis == 0:
            raise Fault("goes along the axis of the samples")
        return replace(fact, axis=fact.axis - 1)

    def stack(self, fact: T, row: Value, stack: Value) -> T:
        assert isinstance(fact, Place)
        return replace(fact, axis=fact.axis + 1)


@final
class _Independence(Samples[Place]):
    """Places of samples in all values that outputs depend on differentiably."""

    __slots__ = ()

    def scope(
        self, flow: Flow[Place], eqn: Equation | None, outer: Flow[Place] | None
    ) -> tuple[set[Value], Counts]:
        ends = [v for v in flow.graph.outputs if v.type.size != 0]
        return relevant_values(flow.graph.body, ends, _operands_with_elements), Counts(flow.graph)

    def key(self) -> str | None:
        # Inside a derivative rule results hold for what remains of the rule only.
        return None if is_inspecting() else "samples"

    def visit(self, eqn: Equation, given: Places, flow: Flow[Place]) -> Places:
        relevant, _ = flow.scope
        operands = _operands(eqn)
        ahead = len(eqn.inputs) - len(operands) if eqn.op.own_slope else 0
        places = zip(operands, given[ahead:], strict=False)
        known = [x if v in relevant else None for v, x in places]
        if relevant.isdisjoint(eqn.outputs) or _is_constant(eqn) or not any(known):
            return [None] * len(eqn.outputs)
        found = super().visit(eqn, known, flow)
        return [x if v in relevant else None for v, x in zip(eqn.outputs, found, strict=True)]

    def transfer(self, eqn: Equation, given: Places, flow: Flow[Place]) -> Places:
        if eqn.op.fact(EQUATION) is not None:
            return self._solve(eqn, given, flow)
        return places_after(eqn, given, flow.scope[1])

    def _solve(self, eqn: Equation, given: Places, flow: Flow[Place]) -> Places:
        """Return the places in the solution of an equation: those in the sides of the equation.

        Samples of the solution are independent if those of the equation are, as its Jacobian has
        one block for each sample then.
        """
        rule = eqn.op.fact(EQUATION)
        assert rule is not None
        body, consts = rule(**eqn.kwargs)
        known = list(given[:consts])
        state: list[Place | None] = [None] * len(body.outputs)
        while True:
            found = self.follow(body, [*known, *state], eqn, flow)
            pairs = zip(body.outputs, state, found, strict=True)
            after = [self.join(v, [x, y]) for v, x, y in pairs]
            if after == state:
                return [*state, *[None] * (len(eqn.outputs) - len(state))]
            state = after

    def update(self, value: Value, old: Place, new: Place) -> Place:
        if old != new:
            raise Fault("moves samples")
        return old


_INDEPENDENCE = _Independence()


def _operands_with_elements(eqn: Equation) -> list[Value]:
    """Return the nonempty operands along which the equation has a derivative."""
    return [] if _is_constant(eqn) else [v for v in _operands(eqn) if v.type.size != 0]


def _is_constant(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.constant


def _operands(eqn: Equation) -> tuple[Value, ...]:
    """Return the operands along which the equation has a derivative."""
    if eqn.op.own_slope:
        return eqn.inputs[1:]
    return eqn.inputs[:1] if eqn.op.formal else eqn.inputs


def places_after(eqn: Equation, places: Places, counts: Counts) -> Places:
    """Return the places of samples in the results of an equation without bodies.

    `places` are those of operands along which it has a derivative. Raises `Fault` if the equation
    may mix samples.
    """
    if isinstance(eqn.op, Primitive) and eqn.op.slopes_rule is not None:
        return _analyse_derivatives(eqn, places)
    return _map_places(eqn, places, counts)


def _analyse_derivatives(eqn: Equation, places: Places) -> Places:
    """Analyse the derivative graphs in the equation's parameters, if there are any."""
    ahead = len(eqn.inputs) - len(places)
    with_samples = [ahead + i for i, p in enumerate(places) if p is not None]
    extent = eqn.inputs[with_samples[0]].shape[:1]
    if any(p not in (None, Place(0)) for p in places) or eqn.output.shape[:1] != extent:
        raise Fault(_UNKNOWN)
    with inspect_derivative(eqn) as is_new:
        for graph, operands, others in slopes_of(eqn, with_samples) if is_new else ():
            sources = [*operands, *others]
            if any(v.shape[:1] != extent for v in sources):
                raise Fault(_UNKNOWN)
            found = find_mixing(graph, sources)
            if found is not None:
                raise Fault(found.why)
    return [Place(0)]


class Counts:
    """Recogniser of index arrays that count along one of their axes."""

    __slots__ = ("_known", "_made")

    def __init__(self, graph: Graph) -> None:
        self._made = {v: e for e in graph.body for v in e.outputs}
        self._known: dict[tuple[Value, int], tuple[int, int] | None] = {}

    def counting_axis(self, value: Value, after: int = 1) -> tuple[int, int] | None:
        """Return (axis, start) if elements are `start` plus their index along the axis; else None.

        With `after`, each counted position covers that many consecutive indices.
        """
        if (value, after) not in self._known:
            self._known[value, after] = self._trace_counting_axis(value, after)
        return self._known[value, after]

    def _trace_counting_axis(self, value: Value, after: int) -> tuple[int, int] | None:
        moves: list[Equation] = []
        eqn = self._made.get(value)
        while eqn is not None and (eqn.op.is_view or eqn.op.fact(SAME)):
            moves.append(eqn)
            eqn = self._made.get(eqn.inputs[0])
        if eqn is None:
            return None
        axis, array = eqn.held(COUNTED), eqn.array
        found = None
        if axis is not None and after == 1:
            found = axis, 0
        elif array is not None:
            found = _counting_axis(array // after)
        for move in reversed(moves):
            if found is not None:
                axis = _axis_behind(move, found[0])
                found = None if axis is None else (axis, found[1])
        return found


def _axis_behind(eqn: Equation, axis: int) -> int | None:
    """Return the result axis with the same elements, in order, as `axis` of the only operand."""
    if eqn.op.fact(SAME):
        return axis
    found = eqn.dependence(0, 0)
    if not isinstance(found, IndexMap):
        return None
    at = found.operand[axis]
    if not isinstance(at, Index) or at.variable is None:
        return None
    if found.extents[at.variable] != eqn.inputs[0].shape[axis]:
        return None
    return next((a for a, p in enumerate(found.result) if p == at), None)


def _counting_axis(
    array: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> tuple[int, int] | None:
    for axis, extent in enumerate(array.shape):
        start = int(array.flat[0]) if array.size else 0
        column = [1] * array.ndim
        column[axis] = extent
        if extent > 1 and bool(np.all(array == np.arange(start, start + extent).reshape(column))):
            return (axis, start) if start >= 0 else None
    return None


def _map_places(eqn: Equation, places: Places, counts: Counts) -> Places:
    """Return the sample axis of each result, by the index maps of the primitive."""
    op = eqn.op
    if not isinstance(op, Primitive):
        raise Fault(_UNKNOWN)
    ahead = len(eqn.inputs) - len(places) if op.own_slope else 0
    found: list[Place | None] = []
    for k in range(len(eqn.outputs)):
        moved: set[Place] = set()
        for i, place in enumerate(places, ahead):
            if place is None:
                continue
            moved.add(_map_place(eqn, eqn.dependence(k, i), k, i, place, counts))
        if len(moved) > 1:
            raise Fault(_DIFFERENT)
        found.append(next(iter(moved), None))
    return found


def _map_place(
    eqn: Equation, dependence: Dependence, k: int, i: int, place: Place, counts: Counts
) -> Place:
    """The place of samples in result `k`, from that in operand `i`."""
    shape, result = eqn.inputs[i].shape, eqn.outputs[k].shape
    if isinstance(dependence, Opaque):
        raise Fault(_UNKNOWN)
    if isinstance(dependence, RowMajor):
        return _map_place_by_reshape(shape, result, place)
    at = dependence.operand[place.axis]
    if isinstance(at, Lookup):
        return _map_place_by_gather(eqn, dependence, at, place, counts)
    if len(at.terms) != 1:
        raise Fault("slides over the axis of the samples")
    ((variable, step),) = at.terms
    if dependence.order is not None and variable in dependence.order:
        raise Fault("runs along the axis of the samples")
    goals = [a for a, p in enumerate(dependence.result) if variable in variables_of((p,))]
    if not goals:
        lost = "reduces the axis" if len(result) < len(shape) else "mixes samples along the axis"
        raise Fault(f"{lost} of the samples")
    goal = dependence.result[goals[0]]
    if isinstance(goal, Lookup):
        return _map_place_by_scatter(eqn, dependence, variable, place, counts)
    if len(goal.terms) != 1:
        raise Fault("slides over the axis of the samples")
    extent, whole = dependence.extents[variable], shape[place.axis]
    if not place.is_plain and not (extent == whole == result[goals[0]]):
        raise Fault(_PARTS)
    if (step, goal.terms[0][1]) != (1, 1):
        raise Fault("takes samples by another step than 1")
    return replace(place, axis=goals[0], shift=place.shift + at.start - goal.start)


def _map_place_by_gather(
    eqn: Equation, found: IndexMap, at: Lookup, place: Place, counts: Counts
) -> Place:
    """Indices that count the samples take each sample from itself."""
    counted = counts.counting_axis(eqn.inputs[at.operand], place.after)
    if counted is None or place.before != 1:
        raise Fault("takes samples by computed positions")
    axis, start = counted
    goals = [a for a, p in enumerate(found.result) if variables_of((p,)) == {at.variables[axis]}]
    return Place(goals[0], shift=place.shift + start)


def _map_place_by_scatter(
    eqn: Equation, found: IndexMap, variable: int, place: Place, counts: Counts
) -> Place:
    """Of several indices by which elements are sent one may count the samples."""
    extent = found.extents[variable]
    for axis, goal in enumerate(found.result):
        if not place.is_plain or not isinstance(goal, Lookup) or variable not in goal.variables:
            continue
        whole = eqn.output.shape[axis]
        for after in (1, whole // extent if whole % extent == 0 else 1):
            counted = counts.counting_axis(eqn.inputs[goal.operand], after)
            if counted is not None and goal.variables[counted[0]] == variable:
                return Place(axis, after=after, shift=place.shift - counted[1])
    raise Fault("adds samples up at computed positions")


def _map_place_by_reshape(old: Shape, new: Shape, place: Place) -> Place:
    """The axis that holds them between as many elements before and behind."""
    lead, trail = _count_elements_around(old, place)
    for axis, extent in enumerate(new):
        first, last = math.prod(new[:axis]), math.prod(new[axis + 1 :])
        if lead % first == 0 and trail % last == 0:
            before, after = lead // first, trail // last
            if before * after * spread_over(old, place) == extent:
                return Place(axis, before, after, place.shift)
    raise Fault("spreads samples over several axes")


def _count_elements_around(shape: Shape, place: Place) -> tuple[int, int]:
    """Return the number of elements before and after the samples, in row-major order."""
    lead, trail = math.prod(shape[: place.axis]), math.prod(shape[place.axis + 1 :])
    return lead * place.before, place.after * trail


def spread_over(shape: Shape, place: Place) -> int:
    """Return the number of sample positions in an array of that shape."""
    return shape[place.axis] // (place.before * place.after)
