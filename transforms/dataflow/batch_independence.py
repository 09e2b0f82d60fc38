"""Batch independence: the axis of samples in each value, and the first equation that mixes samples.

Axis 0 of the differentiated inputs counts samples. Samples are independent if no sample of an
equation's result has a derivative by another sample of its operands. Operations without a
derivative, such as comparisons, `floor` and `stop_gradient`, may combine samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import (
    Dependence,
    IndexMap,
    Lookup,
    Opaque,
    RowMajor,
    variables_of,
)
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import Shape
from primgraph.primitives.constants import constant, iota
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.primitives.elementwise import cast, steady, stop_gradient
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.body_transfer import (
    Analysis,
    Fault,
    through_checkpoint,
    through_cond,
    through_scan,
    through_while,
)
from primgraph.transforms.dataflow.locality import looking_into, slopes_of


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
# One place per result, or the reason why samples are mixed.
Found: TypeAlias = list[Place] | str
# For branches and loops: results may have no place, and an equation of a body may be the cause.
_Any: TypeAlias = Places | str | Mixing
_Rule: TypeAlias = Callable[[Equation, Places, "Counts"], _Any]

_UNKNOWN = "is not known to keep samples apart"
_DIFFERENT = "joins different samples of its operands"
_PARTS = "takes a part of the samples where these share an axis with others"


def mixing(graph: Graph, wrt: Sequence[Value]) -> Mixing | None:
    """Return the first equation of `graph` that may mix samples of `wrt` on the way to outputs.

    Return None if samples are independent, and axis 0 of all outputs counts them. A single sample
    is never mixed. The analysis takes one pass and is conservative: an op without a rule may mix.
    """
    if not wrt or wrt[0].shape[0] in (0, 1):
        return None
    found = _followed(graph, dict.fromkeys(wrt, Place(0)))
    if isinstance(found, Mixing):
        return found
    for value in graph.outputs:
        if found.get(value, Place(0)) != Place(0):
            made = next(e for e in graph.body if value in e.outputs)
            return Mixing(made, "moves samples to other places of the result")
    return None


def _followed(graph: Graph, starts: dict[Value, Place]) -> dict[Value, Place] | Mixing:
    """Return the places of samples in all values that outputs depend on, or the mixing equation."""
    relevant = _relevant(graph)
    places = {v: p for v, p in starts.items() if v in relevant}
    counts = Counts(graph)
    for eqn in graph.body:
        outputs = [v for v in eqn.outputs if v in relevant]
        if not outputs or _is_constant(eqn) or places.keys().isdisjoint(_operands(eqn)):
            continue
        found = places_after(eqn, [places.get(v) for v in _operands(eqn)], counts)
        if isinstance(found, Mixing):
            return found
        if isinstance(found, str):
            return Mixing(eqn, found)
        for value, place in zip(eqn.outputs, found, strict=True):
            if value in relevant and place is not None and places.setdefault(value, place) != place:
                return Mixing(eqn, "moves samples")
    return places


def _relevant(graph: Graph) -> set[Value]:
    """Return the nonempty values that outputs depend on differentiably."""
    relevant = {v for v in graph.outputs if v.type.size != 0}
    for eqn in reversed(graph.body):
        if not relevant.isdisjoint(eqn.outputs) and not _is_constant(eqn):
            relevant.update(v for v in _operands(eqn) if v.type.is_inexact and v.type.size != 0)
    return relevant


def _is_constant(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.constant


def _operands(eqn: Equation) -> tuple[Value, ...]:
    """Return the operands along which the equation has a derivative."""
    if eqn.op.own_slope:
        return eqn.inputs[1:]
    return eqn.inputs[:1] if eqn.op.formal else eqn.inputs


def places_after(eqn: Equation, places: Places, counts: Counts) -> _Any:
    """Return the places of samples in the results of an equation, or the reason of mixing."""
    rule = _THROUGH.get(eqn.op)
    if rule is not None:
        return rule(eqn, places, counts)
    if isinstance(eqn.op, Primitive) and eqn.op.slopes_rule is not None:
        return _by_slopes(eqn, places)
    return _behind(eqn, places, counts)


def _by_slopes(eqn: Equation, places: Places) -> Found:
    """Analyse the derivative graphs in the equation's parameters, if there are any."""
    ahead = len(eqn.inputs) - len(places)
    with_samples = [ahead + i for i, p in enumerate(places) if p is not None]
    extent = eqn.inputs[with_samples[0]].shape[:1]
    if any(p not in (None, Place(0)) for p in places) or eqn.output.shape[:1] != extent:
        return _UNKNOWN
    with looking_into(eqn) as is_new:
        for graph, operands, others in slopes_of(eqn, with_samples) if is_new else ():
            sources = [*operands, *others]
            if any(v.shape[:1] != extent for v in sources):
                return _UNKNOWN
            found = mixing(graph, sources)
            if found is not None:
                return found.why
    return [Place(0)]


class Counts:
    """Recogniser of index arrays that count along one of their axes."""

    __slots__ = ("_known", "_made")

    def __init__(self, graph: Graph) -> None:
        self._made = {v: e for e in graph.body for v in e.outputs}
        self._known: dict[tuple[Value, int], tuple[int, int] | None] = {}

    def along(self, value: Value, after: int = 1) -> tuple[int, int] | None:
        """Return (axis, start) if elements are `start` plus their index along the axis; else None.

        With `after`, each counted position covers that many consecutive indices.
        """
        if (value, after) not in self._known:
            self._known[value, after] = self._found(value, after)
        return self._known[value, after]

    def _found(self, value: Value, after: int) -> tuple[int, int] | None:
        moves: list[Equation] = []
        eqn = self._made.get(value)
        while eqn is not None and eqn.op in (cast, steady, stop_gradient, broadcast):
            moves.append(eqn)
            eqn = self._made.get(eqn.inputs[0])
        if eqn is None:
            return None
        found = None
        if eqn.op is iota and after == 1:
            found = eqn.kwargs["axis"], 0
        elif eqn.op is constant:
            found = _counted(eqn.kwargs["value"].data // after)
        for move in reversed(moves):
            if found is not None and move.op is broadcast:
                found = _kept_axes(move)[found[0]], found[1]
        return found


def _kept_axes(eqn: Equation) -> list[int]:
    new = eqn.kwargs["new_axes"]
    return [i for i in range(eqn.output.type.ndim) if i not in new]


def _counted(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, int] | None:
    for axis, extent in enumerate(array.shape):
        start = int(array.flat[0]) if array.size else 0
        column = [1] * array.ndim
        column[axis] = extent
        if extent > 1 and bool(np.all(array == np.arange(start, start + extent).reshape(column))):
            return (axis, start) if start >= 0 else None
    return None


def _behind(eqn: Equation, places: Places, counts: Counts) -> _Any:
    """Return the sample axis of each result, by the index maps of the primitive."""
    op = eqn.op
    if not isinstance(op, Primitive):
        return _UNKNOWN
    ahead = len(eqn.inputs) - len(places) if op.own_slope else 0
    types, results = (tuple([v.type for v in vs]) for vs in (eqn.inputs, eqn.outputs))
    found: list[Place | None] = []
    for k in range(len(results)):
        moved: set[Place] = set()
        for i, place in enumerate(places, ahead):
            if place is None:
                continue
            one = _moved(eqn, op.dependence(k, i, types, results, eqn.kwargs), k, i, place, counts)
            if isinstance(one, str):
                return one
            moved.add(one)
        if len(moved) > 1:
            return _DIFFERENT
        found.append(next(iter(moved), None))
    return found


def _moved(
    eqn: Equation, dependence: Dependence, k: int, i: int, place: Place, counts: Counts
) -> Place | str:
    """The place of samples in result `k`, from that in operand `i`."""
    shape, result = eqn.inputs[i].shape, eqn.outputs[k].shape
    if isinstance(dependence, Opaque):
        return _UNKNOWN
    if isinstance(dependence, RowMajor):
        return _reshaped(shape, result, place)
    at = dependence.operand[place.axis]
    if isinstance(at, Lookup):
        return _read(eqn, dependence, at, place, counts)
    if len(at.terms) != 1:
        return "slides over the axis of the samples"
    ((variable, step),) = at.terms
    if dependence.order is not None and variable in dependence.order:
        return "runs along the axis of the samples"
    goals = [a for a, p in enumerate(dependence.result) if variable in variables_of((p,))]
    if not goals:
        lost = "reduces the axis" if len(result) < len(shape) else "mixes samples along the axis"
        return f"{lost} of the samples"
    goal = dependence.result[goals[0]]
    if isinstance(goal, Lookup):
        return _added(eqn, dependence, variable, place, counts)
    if len(goal.terms) != 1:
        return "slides over the axis of the samples"
    extent, whole = dependence.extents[variable], shape[place.axis]
    if not place.is_plain and not (extent == whole == result[goals[0]]):
        return _PARTS
    if (step, goal.terms[0][1]) != (1, 1):
        return "takes samples by another step than 1"
    return replace(place, axis=goals[0], shift=place.shift + at.start - goal.start)


def _read(eqn: Equation, found: IndexMap, at: Lookup, place: Place, counts: Counts) -> Place | str:
    """Indices that count the samples take each sample from itself."""
    counted = counts.along(eqn.inputs[at.operand], place.after)
    if counted is None or place.before != 1:
        return "takes samples by computed positions"
    axis, start = counted
    goals = [a for a, p in enumerate(found.result) if variables_of((p,)) == {at.variables[axis]}]
    return Place(goals[0], shift=place.shift + start)


def _added(
    eqn: Equation, found: IndexMap, variable: int, place: Place, counts: Counts
) -> Place | str:
    """Of several indices by which elements are sent one may count the samples."""
    extent = found.extents[variable]
    for axis, goal in enumerate(found.result):
        if not place.is_plain or not isinstance(goal, Lookup) or variable not in goal.variables:
            continue
        whole = eqn.output.shape[axis]
        for after in (1, whole // extent if whole % extent == 0 else 1):
            counted = counts.along(eqn.inputs[goal.operand], after)
            if counted is not None and goal.variables[counted[0]] == variable:
                return Place(axis, after=after, shift=place.shift - counted[1])
    return "adds samples up at computed positions"


def _reshaped(old: Shape, new: Shape, place: Place) -> Place | str:
    """The axis that holds them between as many elements before and behind."""
    lead, trail = _around(old, place)
    for axis, extent in enumerate(new):
        first, last = math.prod(new[:axis]), math.prod(new[axis + 1 :])
        if lead % first == 0 and trail % last == 0:
            before, after = lead // first, trail // last
            if before * after * spread_over(old, place) == extent:
                return Place(axis, before, after, place.shift)
    return "spreads samples over several axes"


def _around(shape: Shape, place: Place) -> tuple[int, int]:
    """Return the number of elements before and after the samples, in row-major order."""
    lead, trail = math.prod(shape[: place.axis]), math.prod(shape[place.axis + 1 :])
    return lead * place.before, place.after * trail


def spread_over(shape: Shape, place: Place) -> int:
    """Return the number of sample positions in an array of that shape."""
    return shape[place.axis] // (place.before * place.after)


def _into_bodies(through: Callable[..., list[Place | None]]) -> _Rule:
    """Return the rule of a branch or a loop: samples stay independent if they do in each body."""

    def rule(eqn: Equation, places: Places, counts: Counts) -> _Any:
        try:
            return through(eqn, list(places), _BODIES)
        except Fault as fault:
            cause: str | Mixing = fault.cause
            return cause

    return rule


def _through_body(body: Graph, places: list[Place | None]) -> list[Place | None]:
    starts = {v: p for v, p in zip(body.inputs, places, strict=True) if p is not None}
    found = _followed(body, starts)
    if isinstance(found, Mixing):
        raise Fault(found)
    return [found.get(v) for v in body.outputs]


def _row(place: Place) -> Place:
    if place.axis == 0:
        raise Fault("goes along the axis of the samples")
    return replace(place, axis=place.axis - 1)


_BODIES = Analysis(
    _through_body,
    _row,
    lambda place: replace(place, axis=place.axis + 1),
    "moves samples from trip to trip, or in some branches only",
)


_THROUGH: dict[Op, _Rule] = {
    cond: _into_bodies(through_cond),
    checkpoint: _into_bodies(through_checkpoint),
    scan: _into_bodies(through_scan),
    while_loop: _into_bodies(through_while),
}
