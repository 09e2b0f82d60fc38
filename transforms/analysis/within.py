"""Guards of the results of branches and loops, taken into their bodies and through these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import repeat
from typing import Any, Protocol, final

from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import INT64, Shape
from primgraph.primitives.constants import full
from primgraph.primitives.control import scan
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import less, not_equal
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.analysis.activity import depending
from primgraph.transforms.analysis.bounds import ranges_within
from primgraph.transforms.analysis.conditions import Conditions, any_along
from primgraph.transforms.analysis.frames import Frame, Opening, marked
from primgraph.transforms.analysis.guard import Guard, Guards, common
from primgraph.transforms.analysis.passage import (
    Passage,
    core,
    fitted,
    implies,
    of_row,
    reduced,
    spread,
)
from primgraph.transforms.analysis.risks import ALWAYS, NEVER, Risks


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
        # By shapes of what is carried on: where it matters behind each trip, and the conditions
        # of which one has to hold for that before it.
        self.later: dict[Shape, tuple[Guard, list[list[tuple[Value, bool]]]]] = {}
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

    def _brought(self, condition: Value, k: int) -> Value:
        """`condition` as it comes to the bodies, for their result at `k`: where it is the same
        along leading axes, as few of them as there may be."""
        shape = self.frame.bodies[0].outputs[k].shape
        if len(condition.shape) > len(shape):
            return condition
        return core(self.around.conditions, condition)

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
        shape = self.frame.bodies[0].outputs[k].shape
        marks = tuple([g for g in self.marks.get(k, ()) if g.condition.shape == shape])
        known = {g.condition for g in marks}
        (own,), (body,), (walk,) = self.frame.bodies, self.marked.bodies, self.walks
        found = self._out(own, body, walk, self.frame.consts + k) or ()
        more = [g for g in self._positive(found, k) if g.condition not in known]
        params = self.eqn.kwargs
        if not more or self.eqn.op is not scan:
            return marks
        if params["counted"]:
            more = [replace(g, condition=self._unless_no_trips(g.condition)) for g in more]
        elif bounds(params["length"])[0] < 1:
            return marks
        return (*marks, *more)

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
        """Those of `guards` of a result that are brought to the bodies."""
        k = self.frame.kept(place)
        if k is None:
            return ()
        held = {g.condition for g in self.marks.get(k, ())}
        return tuple(g for g in guards if self._positive((g,), k)[0].condition in held)

    def _follow_unused(self, unused: set[int]) -> None:
        """Find guards of what is carried on and asked for by other trips only: what these have.

        What no trip asks for is left out.
        """
        self.asked -= unused
        if self.frame.carries:
            self._add_wider()
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
                self._add_later(k)
            unused -= found
            self.asked |= found
            self._walk_through()

    def _add_wider(self) -> None:
        """Beside guards that differ from row to row or from result to result: that one of them
        holds, in some trip, or in a later one. What is carried on may keep these from trip to trip
        where it keeps none of them."""
        conditions, outputs = self.around.conditions, self.frame.bodies[0].outputs
        for shape in dict.fromkeys([v.shape for v in outputs[: self.frame.carries]]):
            places = [k for k, guards in self.marks.items() if guards and self._ends_in(k, shape)]
            if not places:
                continue
            held = {k: [g.condition for g in self.marks[k]] for k in places}
            self._find_later(shape, held)
            found = [self._all_of(map(self._of_any_row, h, repeat(shape))) for h in held.values()]
            wider = reduce(conditions.either, dict.fromkeys(found))
            if not conditions.always(wider):
                for k in places:
                    condition = spread(conditions, wider, outputs[k].shape)
                    self._add(k, replace(self.marks[k][0], condition=condition))

    def _ends_in(self, k: int, shape: Shape) -> bool:
        """Whether the result of the body at `k` has that shape, or is stacked and ends in it."""
        own = self.frame.bodies[0].outputs[k].shape
        lead = len(own) - len(shape)
        return own[max(lead, 0) :] == shape and (lead == 0 or not self.frame.is_carried(k))

    def _of_any_row(self, condition: Value, shape: Shape) -> Value:
        return reduced(self.around.conditions, condition, shape)

    def _all_of(self, found: Iterable[Value]) -> Value:
        return reduce(self.around.conditions.both, found)

    def _find_later(self, shape: Shape, held: Mapping[int, Sequence[Value]]) -> None:
        """Find where what is carried on in that shape matters behind each trip, by the conditions
        `held` by results: at the end of the loop, or in rows of later trips, where these differ."""
        conditions, outputs = self.around.conditions, self.frame.bodies[0].outputs
        rows: list[Value] = []
        ends: list[Value] = []
        reasons: list[list[tuple[Value, bool]]] = []
        for k, found in held.items():
            differing = [c for c in found if len(c.shape) > len(outputs[k].shape)]
            if differing:
                rows.append(self._all_of(map(self._in_each_row, differing, repeat(shape))))
            else:
                ends.append(self._all_of(map(self._of_any_row, found, repeat(shape))))
            reasons.append([(self._brought(c, k), bool(differing)) for c in differing or found])
        if not rows:
            return
        row = reduce(conditions.either, dict.fromkeys(rows))
        here = conditions.record(cast, row, dtype=INT64)
        backwards = not self.eqn.kwargs["reverse"]
        ahead = conditions.record(cumsum, here, axis=0, reverse=backwards)
        later = conditions.record(not_equal, ahead, here)
        for end in dict.fromkeys(ends):
            later = conditions.either(later, spread(conditions, end, later.shape))
        if conditions.always(later):
            return
        first = next(iter(held))
        self.later[shape] = replace(self.marks[first][0], condition=later), reasons
        for k in range(self.frame.carries):
            if k in held:
                self._add_later(k)

    def _in_each_row(self, condition: Value, shape: Shape) -> Value:
        between = tuple(range(1, len(condition.shape) - len(shape)))
        return any_along(self.around.conditions, condition, between) if between else condition

    def _add_later(self, k: int) -> None:
        found = self.later.get(self.frame.bodies[0].outputs[k].shape)
        if found is not None:
            self._add(k, found[0])

    def _add(self, k: int, guard: Guard) -> None:
        guards = self.marks[k]
        if guard.condition not in [g.condition for g in guards]:
            guards.append(guard)

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
        found: list[tuple[int, Guard]] = []
        for k in range(self.frame.carries):
            value, walk = self.frame.bodies[0].inputs[self.frame.consts + k], self.walks[0]
            if value in walk.uses:
                held = [walk.matters(g) for g in walk.joined(value)]
                for guard in self.marks.get(k, ()):
                    wanted = self._wanted(guard.condition, k)
                    if not any(implies(walk.conditions, c, wanted) for c in held):
                        found.append((k, guard))
        return found

    def _wanted(self, condition: Value, k: int) -> list[frozenset[Value]]:
        """What has to be seen in a trip for `condition` to hold behind the trip before: itself, or
        where it is of later trips, what these are asked for; one of these, with all its parts."""
        inner, shape = self.walks[0].conditions, self.frame.bodies[0].outputs[k].shape
        is_row = len(condition.shape) > len(shape)
        found = [[(self._brought(condition, k), is_row)]]
        if is_row:
            found += self.later[shape][1]
        entry = self.marked.entry
        return [
            frozenset([fitted(inner, entry.of(c, row), shape) for c, row in part]) for part in found
        ]

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
        known = dict(zip(own.inputs, given, strict=True))
        starts = {v: before[v] for v in sources}
        inner = Risks(body, depending(body, sources), known, conditions, starts)
        return self.around.through(body, conditions, inner)
