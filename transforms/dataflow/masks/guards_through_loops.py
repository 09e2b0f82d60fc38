"""Guards of the results of branches and loops, moved through their bodies.

A loop carry matters to the final result, and to rows of stacked outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol, final

from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import BOOL, INT64, Shape
from primgraph.primitives.constants import full
from primgraph.primitives.control import Regions
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import less, not_equal
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.activity import active_inputs, depending
from primgraph.transforms.dataflow.locality import repeated_axes
from primgraph.transforms.dataflow.masks.conditions import Conditions, any_along
from primgraph.transforms.dataflow.masks.guard import Guard, Guards, common
from primgraph.transforms.dataflow.masks.implications import implies
from primgraph.transforms.dataflow.masks.masks_through_loops import Passage, look_into_loops
from primgraph.transforms.dataflow.masks.repeated_conditions import (
    apart,
    of_row,
    repeated,
    spread,
)
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, NEVER, Risks
from primgraph.transforms.dataflow.region_interface import (
    Opening,
    Repeated,
    marked,
)
from primgraph.transforms.dataflow.value_bounds import ranges_within


class Walk(Protocol):
    """Interface of the backward walk of guards, as far as this file uses it."""

    conditions: Conditions
    risks: Risks

    @property
    def uses(self) -> Mapping[Value, Any]:
        """Return the uses visited so far, by value."""

    def matters(self, guard: Guard) -> Value:
        """Return the condition that holds where the guarded value matters."""

    def joined(self, value: Value) -> Guards:
        """Return the guards of `value` common to all uses visited so far."""

    def through(self, graph: Graph, conditions: Conditions, risks: Risks) -> Walk:
        """Walk backward through `graph` from its results to its inputs, and return that walk."""


@final
@dataclass(frozen=True, slots=True)
class Ahead:
    """Liveness of carries: conditions `behind` each iteration, and `first`, before all iterations.

    `behind` may be a stack with one condition per iteration. Before an iteration a carry matters
    where it matters after it, or where all conditions in one of `reasons` (stacks) hold.
    """

    behind: Value
    first: Value
    reasons: list[list[Value]]


@final
class Within:
    """Guards of the results of a branch or a loop, in its bodies and before it.

    `marks` has guards of body results; those of carries hold in every iteration. A guard of a final
    carry also holds for the initial carry if each element depends on the same element of the
    previous iteration only.
    """

    def __init__(self, around: Walk, eqn: Equation, results: Mapping[int, Guards]) -> None:
        self.around, self.eqn, self.regions = around, eqn, Regions.of(eqn)
        places = [k for k in map(self.regions.kept, results) if k is not None]
        self.asked = {*places, *range(self.regions.carries)}
        self.marks = self._first(results)
        self.ahead: dict[int, Ahead] = {}
        self._follow_unused(set(range(self.regions.carries)).difference(places))
        while lost := self._lost_guards():
            for k, guard in lost:
                self.marks[k].remove(guard)
            self._walk_through()

    def opening(self) -> Opening:
        matters = {
            k: [self._convert_condition(g.condition, k) for g in guards]
            for k, guards in self.marks.items()
        }
        count = len(self.regions.bodies[0].outputs)
        return Opening(matters, unused=frozenset(range(count)).difference(self.asked))

    def _convert_condition(self, condition: Value, k: int) -> Repeated:
        """Convert a condition on body result `k` to the form that the bodies take."""
        row = len(condition.shape) > len(self.regions.bodies[0].outputs[k].shape)
        eqn = self.around.conditions.definition(condition)
        axes = repeated_axes(eqn)
        if eqn is None or not axes or (row and 0 in axes):
            return Repeated(condition)
        return Repeated(eqn.inputs[0], tuple([i - row for i in axes]))

    def operand(self, i: int) -> Guards | None:
        """Return the guards of the operand for body input `i`; None if no result needs it."""
        k = i - self.regions.consts
        if 0 <= k < self.regions.carries:
            return self._first_carried(k) if k in self.asked else None
        ways = zip(self.regions.bodies, self.marked.bodies, self.walks, strict=True)
        found = [self._operand_guards(own, body, walk, i) for own, body, walk in ways]
        present = [guards for guards in found if guards is not None]
        return common(present) if present else None

    def _first_carried(self, k: int) -> Guards:
        """Return the guards of an initial carry, which is also the result if no iteration runs."""
        marks = tuple([self._in_front(k, g) for g in self.marks.get(k, ())])
        known = {g.condition for g in marks}
        (own,), (body,), (walk,) = self.regions.bodies, self.marked.bodies, self.walks
        found = self._operand_guards(own, body, walk, self.regions.consts + k) or ()
        more = [g for g in self._positive(found, k) if g.condition not in known]
        if more and self.regions.lead:
            more = [replace(g, condition=self._unless_no_trips(g.condition)) for g in more]
        elif self._may_make_no_trip():
            return marks
        return (*marks, *more)

    def _may_make_no_trip(self) -> bool:
        steps = self.regions.steps
        return steps is None or bounds(steps)[0] < 1

    def _in_front(self, k: int, guard: Guard) -> Guard:
        """Convert a guard of a carry after iterations to one of the initial carry."""
        known = self.ahead.get(k)
        if known is None or guard.condition is not known.behind:
            return guard
        return replace(guard, condition=known.first)

    def _unless_no_trips(self, condition: Value) -> Value:
        """Return `condition`, or true everywhere if the given iteration count is 0."""
        conditions, trips = self.around.conditions, self.eqn.inputs[0]
        one = conditions.record(full, value=1, shape=(), dtype=trips.dtype)
        none = conditions.record(less, trips, one)
        axes = tuple(range(len(condition.shape)))
        if axes:
            none = conditions.record(broadcast, none, shape=condition.shape, new_axes=axes)
        return conditions.either(condition, none)

    def _first(self, results: Mapping[int, Guards]) -> dict[int, list[Guard]]:
        """Return the guards of results as positive conditions, by body result."""
        marks: dict[int, list[Guard]] = {}
        for place, guards in results.items():
            k = self.regions.kept(place)
            if k is not None and guards:
                marks[k] = [g for g in self._positive(guards, k) if self._is_taken(g, k)]
        return marks

    def _is_taken(self, guard: Guard, k: int) -> bool:
        """Return whether the bodies can take the condition; growing stacks have no rows to take."""
        return (
            self.regions.stacks or guard.condition.shape == self.regions.bodies[0].outputs[k].shape
        )

    def _positive(self, guards: Guards, k: int) -> list[Guard]:
        """Return `guards` of body result `k` as positive conditions, on rows if these agree."""
        conditions = self.around.conditions
        if self.regions.is_loop and not self.regions.is_carried(k):
            guards = tuple(replace(g, condition=of_row(conditions, g.condition)) for g in guards)
        found = [replace(g, condition=self.around.matters(g), side=True) for g in guards]
        return list({g.condition: g for g in found}.values())

    def handed_on(self, place: int, guards: Guards) -> Guards:
        """Return the guards of a result that its bodies enforce, so that they need not begin at it.

        A loop without iterations returns its initial carry, which passes no body: it enforces none.
        """
        k = self.regions.kept(place)
        if k is None or (self.regions.is_carried(k) and self._may_make_no_trip()):
            return ()
        held = {g.condition for g in self.marks.get(k, ())}
        return tuple(g for g in guards if self._positive((g,), k)[0].condition in held)

    def _follow_unused(self, unused: set[int]) -> None:
        """Find guards of carries that only other iterations use; drop carries that none uses."""
        self.asked -= unused
        self._look_ahead()
        self._walk_through()
        while unused:
            (own,), (body,), (walk,) = self.regions.bodies, self.marked.bodies, self.walks
            inputs = own.inputs[self.regions.consts :]
            found = {k for k in unused if inputs[k] in walk.uses}
            if not found:
                return
            for k in found:
                guards = self._operand_guards(own, body, walk, self.regions.consts + k) or ()
                self.marks[k] = self._positive(guards, k)
                self._add_ahead(k)
            unused -= found
            self.asked |= found
            self._walk_through()

    # Liveness of carries.

    def _look_ahead(self) -> None:
        """Compute where carries matter after each iteration, for all carries of one shape together.

        A carry matters to the final result and to the rows of stacks.
        """
        rows = {k for k in self.asked if not self.regions.is_carried(k)}
        if not self.regions.carries or not any(self.marks.values()):
            return
        asked, self.asked = self.asked, rows
        self._walk_through()
        self.asked = asked
        shapes: dict[Shape, list[int]] = {}
        for k in range(self.regions.carries):
            shapes.setdefault(self.regions.bodies[0].outputs[k].shape, []).append(k)
        for shape, places in shapes.items():
            found = self._carry_liveness(shape, places)
            if found is not None:
                self.ahead.update(dict.fromkeys(places, found))
        for k in self.ahead:
            if k in self.asked:
                self._add_ahead(k)

    def _carry_liveness(self, shape: Shape, places: Sequence[int]) -> Ahead | None:
        """Return the liveness of the carries at `places`, of that shape; None if it is unknown."""
        ends = [[g.condition for g in self.marks.get(k, ())] for k in places if k in self.asked]
        uses, inputs = self.walks[0].uses, self.regions.bodies[0].inputs[self.regions.consts :]
        rows = [self._carry_conditions(k) for k in places if inputs[k] in uses]
        if not all(ends) or not all(rows):
            return None
        stack, reverse = self._stack(shape), self.regions.reverse
        return _compute_liveness(self.around.conditions, ends, rows, stack, reverse=reverse)

    def _stack(self, shape: Shape) -> Shape:
        """Return the shape of a stack of rows of that shape; only a scan has stacks."""
        return (self.regions.rows if self.regions.stacks else 0, *shape)

    def _carry_conditions(self, k: int) -> list[Value]:
        """Return the conditions outside the loop under which carry `k` matters."""
        (own,), (body,), (walk,) = self.regions.bodies, self.marked.bodies, self.walks
        out = Passage(self.eqn, self.marked, body, walk.conditions, self.around.conditions)
        guards = walk.joined(own.inputs[self.regions.consts + k])
        found = [out.around(walk.matters(g)) for g in guards]
        return [value for value, _ in [f for f in found if f is not None]]

    def _add_ahead(self, k: int) -> None:
        """Add the liveness condition of carry `k` to its guards."""
        if k in self.ahead:
            condition, guards = self.ahead[k].behind, self.marks.setdefault(k, [])
            if condition not in [g.condition for g in guards]:
                guards.append(Guard(condition, True, strict=True))

    def _operand_guards(self, own: Graph, body: Graph, walk: Walk, i: int) -> Guards | None:
        """Return the guards of a body input as guards of the operand; None if it is not used."""
        value = own.inputs[i]
        if value not in walk.uses:
            return None
        out = Passage(self.eqn, self.marked, body, walk.conditions, self.around.conditions)
        found = [out.to_operand(i, g) for g in walk.joined(value)]
        return tuple(g for g in found if g is not None)

    def _lost_guards(self) -> list[tuple[int, Guard]]:
        """Return guards of carries that one iteration does not pass on to the previous one."""
        inputs = self.regions.bodies[0].inputs[self.regions.consts :]
        return [
            (k, guard)
            for k in range(self.regions.carries)
            if inputs[k] in self.walks[0].uses
            for guard in self._lost_guards_of_carry(k)
        ]

    def _lost_guards_of_carry(self, k: int) -> list[Guard]:
        value, walk = self.regions.bodies[0].inputs[self.regions.consts + k], self.walks[0]
        held = [walk.matters(g) for g in walk.joined(value)]
        return [
            guard
            for guard in self.marks.get(k, ())
            if self._in_body(k, guard.condition) not in held
            and not self._is_told(k, guard.condition)
        ]

    def _in_body(self, k: int, condition: Value) -> Value:
        """Return the value in the single body that stands for a condition on its result `k`."""
        shape, brought = (
            self.regions.bodies[0].outputs[k].shape,
            self._convert_condition(condition, k),
        )
        inner = self.marked.entry.of(brought.condition, len(condition.shape) > len(shape))
        if not brought.new_axes:
            return inner
        record = self.walks[0].conditions.record
        return record(broadcast, inner, shape=shape, new_axes=brought.new_axes)

    def _is_told(self, k: int, condition: Value) -> bool:
        """Return whether guards before an iteration imply `condition` after the previous one."""
        known = self.ahead.get(k)
        if known is None or condition is not known.behind:
            return False
        conditions = self.around.conditions
        stack = self._stack(self.regions.bodies[0].outputs[k].shape)
        wanted = [[spread(conditions, condition, stack)], *known.reasons]
        return implies(
            conditions, [spread(conditions, c, stack) for c in self._carry_conditions(k)], wanted
        )

    def _walk_through(self) -> None:
        self.marked = marked(self.eqn, self.opening(), self.asked)
        self.walks = [
            _walk_body(self.around, self.eqn, self.regions, own, body)
            for own, body in zip(self.regions.bodies, self.marked.bodies, strict=True)
        ]


def _walk_body(around: Walk, eqn: Equation, regions: Regions, own: Graph, body: Graph) -> Walk:
    """Walk guards backward through `body`, which is a body `own` of `eqn` with marks."""
    risks, operands = around.risks, eqn.inputs[regions.lead :]
    present = active_inputs(regions, [i for i, v in enumerate(operands) if v in risks.active])
    sources = [own.inputs[i] for i in present]
    given = ranges_within(eqn, [risks.ranges[v] for v in eqn.inputs])
    before = {v: risks.before.get(w, NEVER) for v, w in zip(own.inputs, operands, strict=True)}
    for value in own.inputs[regions.consts : regions.consts + regions.carries]:
        before[value] = ALWAYS
    conditions = Conditions(body)
    look_into_loops(conditions, body)
    known = dict(zip(own.inputs, given, strict=True))
    starts = {v: before[v] for v in sources}
    inner = Risks(body, depending(body, sources), known, conditions, starts)
    return around.through(body, conditions, inner)


# Liveness of carries. Where rows have different conditions, so have iterations: a carry matters
# after an iteration if the end or a later row needs it.


def _compute_liveness(
    conditions: Conditions,
    ends: Sequence[Sequence[Value]],
    rows: Sequence[Sequence[Value]],
    stack: Shape,
    *,
    reverse: bool,
) -> Ahead | None:
    """Return where carries matter, or None if they matter everywhere.

    They matter at the end where all conditions in one of `ends` hold. In each iteration they matter
    where all conditions in one of `rows` hold, which may be stacks of the shape `stack`. With
    `reverse`, the last iteration runs first.
    """
    shape = stack[1:]
    end = _any_of(conditions, ends, shape)
    if all(c.shape == shape for row in rows for c in row):
        behind = first = conditions.either(end, _any_of(conditions, rows, shape))
    else:
        row = _any_of(conditions, [[spread(conditions, c, stack) for c in r] for r in rows], stack)
        later = _later(conditions, row, reverse=reverse)
        behind = of_row(conditions, conditions.either(later, spread(conditions, end, stack)))
        first = conditions.either(end, any_along(conditions, row, (0,)))
    if conditions.always(behind):
        return None
    return Ahead(behind, first, [[spread(conditions, c, stack) for c in row] for row in rows])


def _any_of(conditions: Conditions, found: Iterable[Sequence[Value]], shape: Shape) -> Value:
    """Record where all conditions in at least one of `found` hold."""
    nowhere = conditions.record(full, value=False, shape=shape, dtype=BOOL)
    return reduce(conditions.either, [reduce(conditions.both, row) for row in found], nowhere)


def _later(conditions: Conditions, row: Value, *, reverse: bool) -> Value:
    """Record where `row` holds in a later row; with `reverse`, later rows come first."""
    eqn = conditions.definition(row)
    axes = repeated_axes(eqn)
    if eqn is not None and axes and 0 not in axes:
        found = _later(conditions, eqn.inputs[0], reverse=reverse)
        return repeated(conditions, found, row.shape, axes)
    differing, alike = apart(conditions, row, (0,))
    if alike and differing:
        found = _later(conditions, reduce(conditions.both, differing), reverse=reverse)
        return reduce(conditions.both, [spread(conditions, c, row.shape) for c in alike], found)
    here = conditions.record(cast, row, dtype=INT64)
    later = conditions.record(cumsum, here, axis=0, reverse=not reverse)
    return conditions.record(not_equal, later, here)
