"""Guards of the results of branches and loops, taken into their bodies and through these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, final

from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import Shape
from primgraph.primitives.constants import full
from primgraph.primitives.control import scan
from primgraph.primitives.logic import less
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.activity import depending
from primgraph.transforms.dataflow.loop_liveness import Ahead, ahead
from primgraph.transforms.dataflow.masks.conditions import Conditions
from primgraph.transforms.dataflow.masks.guard import Guard, Guards, common
from primgraph.transforms.dataflow.masks.implications import implies
from primgraph.transforms.dataflow.masks.masks_through_loops import Passage, look_into_loops
from primgraph.transforms.dataflow.masks.repeated_conditions import of_row, spread
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, NEVER, Risks
from primgraph.transforms.dataflow.region_interface import Frame, Opening, Repeated, marked
from primgraph.transforms.dataflow.value_bounds import ranges_within


class Walk(Protocol):
    """A walk that follows guards from results to operands, as this file needs it."""

    conditions: Conditions
    risks: Risks

    @property
    def uses(self) -> Mapping[Value, Any]:
        """The uses that were met, by what is used."""

    def matters(self, guard: Guard) -> Value:
        """Where what `guard` guards matters."""

    def joined(self, value: Value) -> Guards:
        """The guards of `value` on the uses that were met."""

    def through(self, graph: Graph, conditions: Conditions, risks: Risks) -> Walk:
        """Another walk, from the results of `graph` to its inputs."""


@final
class Within:
    """The guards of results of a branch or a loop, in its bodies and before it.

    `marks` has what holds for results of the bodies, by their places: in every trip, where they
    are carried on. So a guard of what a loop ends with is one of what it begins with if each
    element comes from the same one of the trip before.
    """

    def __init__(self, around: Walk, eqn: Equation, results: Mapping[int, Guards]) -> None:
        self.around, self.eqn, self.frame = around, eqn, Frame.of(eqn)
        places = [k for k in map(self.frame.kept, results) if k is not None]
        self.asked = {*places, *range(self.frame.carries)}
        self.marks = self._first(results)
        self.ahead: dict[int, Ahead] = {}
        self._follow_unused(set(range(self.frame.carries)).difference(places))
        while lost := self._lost():
            for k, guard in lost:
                self.marks[k].remove(guard)
            self._walk_through()

    def opening(self) -> Opening:
        matters = {
            k: [self._brought(g.condition, k) for g in guards] for k, guards in self.marks.items()
        }
        count = len(self.frame.bodies[0].outputs)
        return Opening(matters, unused=frozenset(range(count)).difference(self.asked))

    def _brought(self, condition: Value, k: int) -> Repeated:
        """A condition on the result of bodies at `k`, as it comes to these."""
        row = len(condition.shape) > len(self.frame.bodies[0].outputs[k].shape)
        eqn = self.around.conditions.definition(condition)
        if eqn is None or eqn.op is not broadcast or (row and 0 in eqn.kwargs["new_axes"]):
            return Repeated(condition)
        return Repeated(eqn.inputs[0], tuple([i - row for i in eqn.kwargs["new_axes"]]))

    def operand(self, i: int) -> Guards | None:
        """The guards of the operand that the bodies have at `i`; None if no result needs it."""
        k = i - self.frame.consts
        if 0 <= k < self.frame.carries:
            return self._first_carried(k) if k in self.asked else None
        ways = zip(self.frame.bodies, self.marked.bodies, self.walks, strict=True)
        found = [self._out(own, body, walk, i) for own, body, walk in ways]
        present = [guards for guards in found if guards is not None]
        return common(present) if present else None

    def _first_carried(self, k: int) -> Guards:
        """The guards of what a loop begins with: what it ends with, if there are no trips."""
        marks = tuple([self._in_front(k, g) for g in self.marks.get(k, ())])
        known = {g.condition for g in marks}
        (own,), (body,), (walk,) = self.frame.bodies, self.marked.bodies, self.walks
        found = self._out(own, body, walk, self.frame.consts + k) or ()
        more = [g for g in self._positive(found, k) if g.condition not in known]
        if not more or self.eqn.op is not scan:
            return marks
        if self.eqn.kwargs["counted"]:
            more = [replace(g, condition=self._unless_no_trips(g.condition)) for g in more]
        elif self._may_make_no_trip():
            return marks
        return (*marks, *more)

    def _may_make_no_trip(self) -> bool:
        params = self.eqn.kwargs
        return self.eqn.op is not scan or params["counted"] or bounds(params["length"])[0] < 1

    def _in_front(self, k: int, guard: Guard) -> Guard:
        """A guard of what is carried on behind trips as one of what the loop begins with."""
        known = self.ahead.get(k)
        if known is None or guard.condition is not known.behind:
            return guard
        return replace(guard, condition=known.first)

    def _unless_no_trips(self, condition: Value) -> Value:
        """Where `condition` holds; everywhere, if the number of trips that is given is 0."""
        conditions, trips = self.around.conditions, self.eqn.inputs[0]
        one = conditions.record(full, value=1, shape=(), dtype=trips.dtype)
        none = conditions.record(less, trips, one)
        axes = tuple(range(len(condition.shape)))
        if axes:
            none = conditions.record(broadcast, none, shape=condition.shape, new_axes=axes)
        return conditions.either(condition, none)

    def _first(self, results: Mapping[int, Guards]) -> dict[int, list[Guard]]:
        """The guards of results, as conditions that hold where these matter."""
        marks: dict[int, list[Guard]] = {}
        for place, guards in results.items():
            k = self.frame.kept(place)
            if k is not None and guards:
                marks[k] = [g for g in self._positive(guards, k) if self._is_taken(g, k)]
        return marks

    def _is_taken(self, guard: Guard, k: int) -> bool:
        """Whether the condition can be brought to the bodies: stacks that grow have none."""
        return self.frame.stacks or guard.condition.shape == self.frame.bodies[0].outputs[k].shape

    def _positive(self, guards: Guards, k: int) -> list[Guard]:
        """`guards` of the result of bodies at `k`; those of stacks as of rows, where all of these
        are alike."""
        conditions = self.around.conditions
        if self.frame.is_loop and not self.frame.is_carried(k):
            guards = tuple(replace(g, condition=of_row(conditions, g.condition)) for g in guards)
        found = [replace(g, condition=self.around.matters(g), side=True) for g in guards]
        return list({g.condition: g for g in found}.values())

    def handed_on(self, place: int, guards: Guards) -> Guards:
        """Those of `guards` of a result that are brought to the bodies, and need not begin at it.

        What a loop without trips ends with has passed no body: all guards begin at it.
        """
        k = self.frame.kept(place)
        if k is None or (self.frame.is_carried(k) and self._may_make_no_trip()):
            return ()
        held = {g.condition for g in self.marks.get(k, ())}
        return tuple(g for g in guards if self._positive((g,), k)[0].condition in held)

    def _follow_unused(self, unused: set[int]) -> None:
        """Find guards of what is carried on and asked for by other trips only: what these have.

        What no trip asks for is left out.
        """
        self.asked -= unused
        self._look_ahead()
        self._walk_through()
        while unused:
            (own,), (body,), (walk,) = self.frame.bodies, self.marked.bodies, self.walks
            inputs = own.inputs[self.frame.consts :]
            found = {k for k in unused if inputs[k] in walk.uses}
            if not found:
                return
            for k in found:
                guards = self._out(own, body, walk, self.frame.consts + k) or ()
                self.marks[k] = self._positive(guards, k)
                self._add_ahead(k)
            unused -= found
            self.asked |= found
            self._walk_through()

    # What is asked of what is carried on.

    def _look_ahead(self) -> None:
        """Find where what is carried on matters behind each trip, by what its end has to give, and
        what rows of stacks ask of it: arrays of one shape together."""
        rows = {k for k in self.asked if not self.frame.is_carried(k)}
        if not self.frame.carries or not any(self.marks.values()):
            return
        asked, self.asked = self.asked, rows
        self._walk_through()
        self.asked = asked
        shapes: dict[Shape, list[int]] = {}
        for k in range(self.frame.carries):
            shapes.setdefault(self.frame.bodies[0].outputs[k].shape, []).append(k)
        for shape, places in shapes.items():
            found = self._ahead_of(shape, places)
            if found is not None:
                self.ahead.update(dict.fromkeys(places, found))
        for k in self.ahead:
            if k in self.asked:
                self._add_ahead(k)

    def _ahead_of(self, shape: Shape, places: Sequence[int]) -> Ahead | None:
        """What is known of what is carried on at `places`, in that shape; None if nothing is."""
        ends = [[g.condition for g in self.marks.get(k, ())] for k in places if k in self.asked]
        uses, inputs = self.walks[0].uses, self.frame.bodies[0].inputs[self.frame.consts :]
        rows = [self._before(k) for k in places if inputs[k] in uses]
        if not all(ends) or not all(rows):
            return None
        reverse = self.eqn.kwargs.get("reverse", False)
        return ahead(self.around.conditions, ends, rows, self._stack(shape), reverse=reverse)

    def _stack(self, shape: Shape) -> Shape:
        """The shape of a stack of rows of that shape; there is none but of a scan."""
        return (self.eqn.kwargs["length"] if self.frame.stacks else 0, *shape)

    def _before(self, k: int) -> list[Value]:
        """The conditions on what is carried on before a trip, as they are around the loop."""
        (own,), (body,), (walk,) = self.frame.bodies, self.marked.bodies, self.walks
        out = Passage(self.eqn, self.marked, body, walk.conditions, self.around.conditions)
        guards = walk.joined(own.inputs[self.frame.consts + k])
        found = [out.around(walk.matters(g)) for g in guards]
        return [value for value, _ in [f for f in found if f is not None]]

    def _add_ahead(self, k: int) -> None:
        """Let what is found ahead hold for what is carried on at `k`."""
        if k in self.ahead:
            condition, guards = self.ahead[k].behind, self.marks.setdefault(k, [])
            if condition not in [g.condition for g in guards]:
                guards.append(Guard(condition, True, strict=True))

    def _out(self, own: Graph, body: Graph, walk: Walk, i: int) -> Guards | None:
        """The guards of an input of a body as those of the operand; None if it is not used."""
        value = own.inputs[i]
        if value not in walk.uses:
            return None
        out = Passage(self.eqn, self.marked, body, walk.conditions, self.around.conditions)
        found = [out.to_operand(i, g) for g in walk.joined(value)]
        return tuple(g for g in found if g is not None)

    def _lost(self) -> list[tuple[int, Guard]]:
        """Guards of what is carried on that a trip does not hand on to the one before."""
        inputs = self.frame.bodies[0].inputs[self.frame.consts :]
        return [
            (k, guard)
            for k in range(self.frame.carries)
            if inputs[k] in self.walks[0].uses
            for guard in self._lost_at(k)
        ]

    def _lost_at(self, k: int) -> list[Guard]:
        value, walk = self.frame.bodies[0].inputs[self.frame.consts + k], self.walks[0]
        held = [walk.matters(g) for g in walk.joined(value)]
        return [
            guard
            for guard in self.marks.get(k, ())
            if self._in_body(k, guard.condition) not in held
            and not self._is_told(k, guard.condition)
        ]

    def _in_body(self, k: int, condition: Value) -> Value:
        """What stands in the only body for a condition on its result at `k`."""
        shape, brought = self.frame.bodies[0].outputs[k].shape, self._brought(condition, k)
        inner = self.marked.entry.of(brought.condition, len(condition.shape) > len(shape))
        if not brought.new_axes:
            return inner
        record = self.walks[0].conditions.record
        return record(broadcast, inner, shape=shape, new_axes=brought.new_axes)

    def _is_told(self, k: int, condition: Value) -> bool:
        """Whether what holds before a trip tells that `condition` holds behind the one before."""
        known = self.ahead.get(k)
        if known is None or condition is not known.behind:
            return False
        conditions = self.around.conditions
        stack = self._stack(self.frame.bodies[0].outputs[k].shape)
        wanted = [[spread(conditions, condition, stack)], *known.reasons]
        return implies(conditions, [spread(conditions, c, stack) for c in self._before(k)], wanted)

    def _walk_through(self) -> None:
        self.marked = marked(self.eqn, self.opening(), self.asked)
        self.walks = list(map(self._walk, self.frame.bodies, self.marked.bodies))

    def _walk(self, own: Graph, body: Graph) -> Walk:
        """The guards within `body`, which is `own` with marks."""
        frame, risks = self.frame, self.around.risks
        operands = self.eqn.inputs[frame.lead :]
        present = frame.active([i for i, v in enumerate(operands) if v in risks.active])
        sources = [own.inputs[i] for i in present]
        given = ranges_within(self.eqn, [risks.ranges[v] for v in self.eqn.inputs])
        before = {v: risks.before.get(w, NEVER) for v, w in zip(own.inputs, operands, strict=True)}
        for value in own.inputs[frame.consts : frame.consts + frame.carries]:
            before[value] = ALWAYS
        conditions = Conditions(body)
        look_into_loops(conditions, body)
        known = dict(zip(own.inputs, given, strict=True))
        starts = {v: before[v] for v in sources}
        inner = Risks(body, depending(body, sources), known, conditions, starts)
        return self.around.through(body, conditions, inner)
