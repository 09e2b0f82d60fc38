"""Guards of the results of branches and loops, moved through their bodies.

A loop carry matters to the final result, and to rows of stacked outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Protocol, final

from primgraph.base.records import dataclass
from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import BOOL, INT64, Shape
from primgraph.primitives.constants import full
from primgraph.primitives.control import Regions
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import less, not_equal
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.activity import active_inputs, dependent_values
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow
from primgraph.transforms.dataflow.locality import repeated_axes
from primgraph.transforms.dataflow.masks.conditions import Conditions, any_along
from primgraph.transforms.dataflow.masks.guard import Guard, Guards, common
from primgraph.transforms.dataflow.masks.implications import implies
from primgraph.transforms.dataflow.masks.masks_through_loops import OuterConditions, look_into_loops
from primgraph.transforms.dataflow.masks.repeated_conditions import (
    broadcast_condition,
    row_condition,
    split_conjunction,
    spread_over_stack,
)
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, NEVER, Risks
from primgraph.transforms.dataflow.masks.uses import Use, join_uses, matters
from primgraph.transforms.dataflow.region_interface import (
    BodyConditions,
    Repeated,
    mark_bodies,
)
from primgraph.transforms.dataflow.value_bounds import ranges_within


class Around(Protocol):
    """Interface of the analysis of guards of a graph, as far as this file uses it."""

    @property
    def conditions(self) -> Conditions: ...

    @property
    def risks(self) -> Risks: ...

    def uses_of(self, graph: Graph) -> Mapping[Value, Sequence[Use]]:
        """Return the uses of all values of `graph` that have some."""

    def of_body(self, conditions: Conditions, risks: Risks) -> Around:
        """Return the analysis of a body of an equation of this graph."""


@final
@dataclass(frozen=True, slots=True)
class CarryLiveness:
    """Liveness of carries: conditions `behind` each iteration, and `first`, before all iterations.

    `behind` may be a stack with one condition per iteration. Before an iteration a carry matters
    where it matters after it, or where all conditions in one of `reasons` (stacks) hold.
    """

    behind: Value
    first: Value
    reasons: list[list[Value]]


@final
class _Body:
    """A body of an equation with marks, and the uses of its values."""

    def __init__(
        self,
        around: Around,
        eqn: Equation,
        own: Graph,
        opening: BodyConditions,
        kept: Collection[int],
    ) -> None:
        self.inputs = own.inputs
        marks = mark_bodies(eqn, opening, kept, [own])
        (body,) = marks.bodies
        self.entry = marks.entry
        self.analysis = around.of_body(*_conditions_and_risks(around, eqn, own, body))
        self.uses = self.analysis.uses_of(body)
        inner, outer = self.analysis.conditions, around.conditions
        self.outside = OuterConditions(eqn, marks, body, inner, outer)

    def joined(self, i: int) -> Guards | None:
        """Return the guards of input `i`, within the body; None if it is not used."""
        value = self.inputs[i]
        if value not in self.uses:
            return None
        return join_uses(self.analysis.conditions, value, self.uses[value])

    def of_operand(self, i: int) -> Guards | None:
        """Return the guards of input `i` as guards of the operand; None if it is not used."""
        guards = self.joined(i)
        if guards is None:
            return None
        found = [self.outside.to_operand(i, g) for g in guards]
        return tuple(g for g in found if g is not None)

    def conditions_outside(self, i: int) -> list[Value]:
        """Return the conditions outside the body under which input `i` matters."""
        guards = self.joined(i) or ()
        found = [self.outside.around(matters(self.analysis.conditions, g)) for g in guards]
        return [value for value, _ in [f for f in found if f is not None]]


def _conditions_and_risks(
    around: Around, eqn: Equation, own: Graph, body: Graph
) -> tuple[Conditions, Risks]:
    """Return conditions and risks of `body`, which is a body `own` of `eqn` with marks."""
    regions, risks = Regions.from_equation(eqn), around.risks
    operands = eqn.inputs[regions.lead :]
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
    return conditions, Risks(body, dependent_values(body, sources), known, conditions, starts)


@final
class BodyGuards(Analysis[Guards]):
    """Guards of the results of a branch or a loop, in its bodies and before it.

    Facts on body results are positive conditions outside; those on carries hold in every iteration.
    A guard of a final carry also holds for the initial carry if each element depends on the same
    element of the previous iteration only.
    """

    __slots__ = ("around", "eqn", "inner", "layout", "liveness", "marks")

    backward = True

    def __init__(self, around: Around, eqn: Equation) -> None:
        self.around, self.eqn, self.layout = around, eqn, Regions.from_equation(eqn)
        # The facts on body results, and the body of a loop that was analysed with them last.
        self.marks: Facts[Guards] = []
        self.inner: _Body | None = None
        self.liveness: dict[int, CarryLiveness] = {}

    def transfer(self, eqn: Equation, given: Facts[Guards], flow: Flow[Guards]) -> Facts[Guards]:
        raise AssertionError("the equations of bodies have analyses of their own")

    def join(self, value: Value, facts: Sequence[Guards | None]) -> Guards | None:
        present = [guards for guards in facts if guards is not None]
        return common(present) if present else None

    def entry_facts(self, eqn: Equation, regions: Regions, given: Facts[Guards]) -> Facts[Guards]:
        """Return the guards of results as positive conditions, by body result."""
        facts = super().entry_facts(eqn, regions, given)
        state = [
            guards and tuple(g for g in self._positive(guards, k) if self._is_taken(g, k))
            for k, guards in enumerate(facts)
        ]
        self._find_liveness(state)
        return [self._with_liveness(k, x) for k, x in enumerate(state)]

    def follow(
        self,
        body: Graph,
        given: Facts[Guards],
        eqn: Equation | None = None,
        outer: Flow[Guards] | None = None,
    ) -> Facts[Guards]:
        self.marks = [*given]
        kept = {k for k, guards in enumerate(given) if guards is not None}
        inner = _Body(self.around, self.eqn, body, self.opening(), kept)
        self.inner = inner if self.layout.is_loop else None
        return [inner.of_operand(i) for i in range(len(body.inputs))]

    def advance(
        self, values: Sequence[Value], state: Facts[Guards], found: Facts[Guards]
    ) -> Facts[Guards]:
        """Find guards of carries that only other iterations use; then drop those that get lost."""
        late = [k for k, x in enumerate(state) if x is None and found[k] is not None]
        if late:
            after = [*state]
            for k in late:
                after[k] = self._with_liveness(k, tuple(self._positive(found[k] or (), k)))
            return after
        return [guards and self._without_lost(k, guards) for k, guards in enumerate(state)]

    def settle(
        self,
        regions: Regions,
        state: Facts[Guards],
        eqn: Equation | None = None,
        flow: Flow[Guards] | None = None,
    ) -> tuple[Facts[Guards], Facts[Guards]]:
        marks, found = super().settle(regions, state, eqn, flow)
        self.marks = marks
        for k in range(regions.carries):
            found[regions.consts + k] = self._first_carried(k)
        return marks, found

    def opening(self) -> BodyConditions:
        """Return the guards that begin in the bodies, and the body results that are not used."""
        outputs = self.layout.bodies[0].outputs
        matters = {
            k: [_as_repeated(self.around.conditions, g.condition, outputs[k].shape) for g in guards]
            for k, guards in enumerate(self.marks)
            if guards
        }
        unused = frozenset(k for k, guards in enumerate(self.marks) if guards is None)
        return BodyConditions(matters, unused=unused)

    def handed_on(self, place: int, guards: Guards) -> Guards:
        """Return the guards of a result that its bodies enforce, so that they need not begin at it.

        A loop without iterations returns its initial carry, which passes no body: it enforces none.
        """
        k = self.layout.body_result(place)
        if k is None or (self.layout.is_carried(k) and _may_make_no_trip(self.layout)):
            return ()
        held = {g.condition for g in self.marks[k] or ()}
        return tuple(g for g in guards if self._positive((g,), k)[0].condition in held)

    def _first_carried(self, k: int) -> Guards | None:
        """Return the guards of an initial carry, which is also the result if no iteration runs."""
        guards = self.marks[k]
        if guards is None:
            return None
        assert self.inner is not None
        marks = tuple([self._in_front(k, g) for g in guards])
        known = {g.condition for g in marks}
        found = self.inner.of_operand(self.layout.consts + k) or ()
        more = [g for g in self._positive(found, k) if g.condition not in known]
        if more and self.layout.lead:
            conditions, trips = self.around.conditions, self.eqn.inputs[0]
            more = [
                replace(g, condition=_unless_no_trips(conditions, trips, g.condition)) for g in more
            ]
        elif _may_make_no_trip(self.layout):
            return marks
        return (*marks, *more)

    def _in_front(self, k: int, guard: Guard) -> Guard:
        """Convert a guard of a carry after iterations to one of the initial carry."""
        known = self.liveness.get(k)
        if known is None or guard.condition is not known.behind:
            return guard
        return replace(guard, condition=known.first)

    def _is_taken(self, guard: Guard, k: int) -> bool:
        """Return whether the bodies can take the condition; growing stacks have no rows to take."""
        return self.layout.stacks or guard.condition.shape == self.layout.bodies[0].outputs[k].shape

    def _positive(self, guards: Guards, k: int) -> list[Guard]:
        """Return `guards` of body result `k` as positive conditions, on rows if these agree."""
        conditions = self.around.conditions
        if self.layout.is_loop and not self.layout.is_carried(k):
            guards = tuple(
                replace(g, condition=row_condition(conditions, g.condition)) for g in guards
            )
        found = [replace(g, condition=matters(conditions, g), side=True) for g in guards]
        return list({g.condition: g for g in found}.values())

    # Liveness of carries.

    def _find_liveness(self, state: Facts[Guards]) -> None:
        """Compute where carries matter after each iteration, for all carries of one shape together.

        A carry matters to the final result and to the rows of stacks.
        """
        count = self.layout.carries
        if not count or not any(state):
            return
        self.follow(self.layout.bodies[0], [*[None] * count, *state[count:]])
        shapes: dict[Shape, list[int]] = {}
        for k in range(count):
            shapes.setdefault(self.layout.bodies[0].outputs[k].shape, []).append(k)
        for shape, places in shapes.items():
            found = self._carry_liveness(shape, places, state)
            if found is not None:
                self.liveness.update(dict.fromkeys(places, found))

    def _carry_liveness(
        self, shape: Shape, places: Sequence[int], state: Facts[Guards]
    ) -> CarryLiveness | None:
        """Return the liveness of the carries at `places`, of that shape; None if it is unknown."""
        assert self.inner is not None
        ends = [[g.condition for g in guards] for k in places if (guards := state[k]) is not None]
        inputs = [self.layout.consts + k for k in places]
        used = [i for i in inputs if self.inner.joined(i) is not None]
        rows = [self.inner.conditions_outside(i) for i in used]
        if not all(ends) or not all(rows):
            return None
        stack, reverse = self._stack(shape), self.layout.reverse
        return _compute_liveness(self.around.conditions, ends, rows, stack, reverse=reverse)

    def _stack(self, shape: Shape) -> Shape:
        """Return the shape of a stack of rows of that shape; only a scan has stacks."""
        return (self.layout.rows if self.layout.stacks else 0, *shape)

    def _with_liveness(self, k: int, guards: Guards | None) -> Guards | None:
        """Add the liveness condition of carry `k` to its guards, if it is used."""
        if guards is None or k not in self.liveness:
            return guards
        condition = self.liveness[k].behind
        if condition in [g.condition for g in guards]:
            return guards
        return (*guards, Guard(condition, True, strict=True))

    def _without_lost(self, k: int, guards: Guards) -> Guards:
        """Return the guards of a carry that one iteration passes on to the previous one."""
        assert self.inner is not None
        joined = self.inner.joined(self.layout.consts + k)
        if joined is None:
            return guards
        held = [matters(self.inner.analysis.conditions, g) for g in joined]
        return tuple(
            g
            for g in guards
            if self._in_body(k, g.condition) in held or self._is_implied(k, g.condition)
        )

    def _in_body(self, k: int, condition: Value) -> Value:
        """Return the value in the single body that stands for a condition on its result `k`."""
        assert self.inner is not None
        shape = self.layout.bodies[0].outputs[k].shape
        brought = _as_repeated(self.around.conditions, condition, shape)
        inner = self.inner.entry.body_input(brought.condition, len(condition.shape) > len(shape))
        if not brought.new_axes:
            return inner
        record = self.inner.analysis.conditions.record
        return record(broadcast, inner, shape=shape, new_axes=brought.new_axes)

    def _is_implied(self, k: int, condition: Value) -> bool:
        """Return whether guards before an iteration imply `condition` after the previous one."""
        known = self.liveness.get(k)
        if known is None or condition is not known.behind:
            return False
        assert self.inner is not None
        conditions = self.around.conditions
        stack = self._stack(self.layout.bodies[0].outputs[k].shape)
        wanted = [[spread_over_stack(conditions, condition, stack)], *known.reasons]
        held = self.inner.conditions_outside(self.layout.consts + k)
        return implies(conditions, [spread_over_stack(conditions, c, stack) for c in held], wanted)


def _as_repeated(conditions: Conditions, condition: Value, shape: Shape) -> Repeated:
    """Convert a condition on a body result of that shape to the form that the bodies take."""
    row = len(condition.shape) > len(shape)
    eqn = conditions.definition(condition)
    axes = repeated_axes(eqn)
    if eqn is None or not axes or (row and 0 in axes):
        return Repeated(condition)
    return Repeated(eqn.inputs[0], tuple([i - row for i in axes]))


def _may_make_no_trip(regions: Regions) -> bool:
    return regions.steps is None or bounds(regions.steps)[0] < 1


def _unless_no_trips(conditions: Conditions, trips: Value, condition: Value) -> Value:
    """Return `condition`, or true everywhere if the given iteration count is 0."""
    one = conditions.record(full, value=1, shape=(), dtype=trips.dtype)
    none = conditions.record(less, trips, one)
    axes = tuple(range(len(condition.shape)))
    if axes:
        none = conditions.record(broadcast, none, shape=condition.shape, new_axes=axes)
    return conditions.either(condition, none)


# Liveness of carries. Where rows have different conditions, so have iterations: a carry matters
# after an iteration if the end or a later row needs it.


def _compute_liveness(
    conditions: Conditions,
    ends: Sequence[Sequence[Value]],
    rows: Sequence[Sequence[Value]],
    stack: Shape,
    *,
    reverse: bool,
) -> CarryLiveness | None:
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
        row = _any_of(
            conditions, [[spread_over_stack(conditions, c, stack) for c in r] for r in rows], stack
        )
        later = _later(conditions, row, reverse=reverse)
        behind = row_condition(
            conditions, conditions.either(later, spread_over_stack(conditions, end, stack))
        )
        first = conditions.either(end, any_along(conditions, row, (0,)))
    if conditions.always(behind):
        return None
    return CarryLiveness(
        behind, first, [[spread_over_stack(conditions, c, stack) for c in row] for row in rows]
    )


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
        return broadcast_condition(conditions, found, row.shape, axes)
    differing, alike = split_conjunction(conditions, row, (0,))
    if alike and differing:
        found = _later(conditions, reduce(conditions.both, differing), reverse=reverse)
        return reduce(
            conditions.both, [spread_over_stack(conditions, c, row.shape) for c in alike], found
        )
    here = conditions.record(cast, row, dtype=INT64)
    later = conditions.record(cumsum, here, axis=0, reverse=not reverse)
    return conditions.record(not_equal, later, here)
