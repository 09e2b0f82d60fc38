"""Which values matter only where something chooses them.

A `select` chooses elements of its operands, a maximum the larger ones, a slice those at its
places. What feeds one of them alone matters only where it is chosen: elsewhere its value, infinite
or NaN as it may be, is thrown away. Derivatives must not let it back in, as 0 * inf would.

Elementwise primitives pass a guard on as it is. What moves or sums elements passes on the
condition moved back: an element matters where it comes to a place that matters. A guard is
followed only as far as slopes behind it may be infinite or NaN: behind a `select` wherever a slope
depends on an operand, as inputs may be NaN where they are not selected; elsewhere only where
finite inputs may give such slopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import Shape
from primgraph.primitives.constants import constant_op, full
from primgraph.primitives.control import CONTROL, scan
from primgraph.primitives.elementwise import maximum, minimum
from primgraph.primitives.indexing import gather
from primgraph.primitives.linalg import matmul
from primgraph.primitives.logic import COMPARISONS, greater, less, select, unless_nan
from primgraph.primitives.reductions import reduce_max, reduce_min
from primgraph.primitives.shapes import broadcast, slice_, slice_assign, split, strided
from primgraph.transforms.analysis.activity import depending
from primgraph.transforms.analysis.bounds import ranges_within
from primgraph.transforms.analysis.boxes import any_of
from primgraph.transforms.analysis.conditions import (
    BACK,
    LARGEST,
    REPEATING,
    Conditions,
    any_along,
)
from primgraph.transforms.analysis.frames import Frame, Opening, marked
from primgraph.transforms.analysis.locality import is_elementwise
from primgraph.transforms.analysis.passage import Passage
from primgraph.transforms.analysis.risks import ALWAYS, AT_NAN, NEVER, Risks

# How many nested guards of one value are followed one by one; it bounds the work on chains of
# `select`.
_NESTING = 6


@dataclass(frozen=True, slots=True)
class Guard:
    """A value matters only where `condition` is `side`.

    `strict` if inputs may be infinite or NaN elsewhere. `risky` if a factor on the way to what
    chooses may be.
    """

    condition: Value
    side: bool
    strict: bool = False
    risky: bool = False

    @property
    def least(self) -> int:
        """The risk from which on slopes count."""
        return AT_NAN if self.strict else ALWAYS


Guards: TypeAlias = tuple[Guard, ...]
ByOperand: TypeAlias = dict[Equation, list[Guards]]


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of a value: its guards, or the equation that reads a part of it, at fixed places,
    for its result of that number."""

    guards: Guards = ()
    part: tuple[Equation, int] | None = None


# What throws elements of its operands away.
_BEATEN: dict[Op, Op] = {reduce_max: less, reduce_min: greater}
_PARTS: frozenset[Op] = frozenset({slice_, slice_assign, split})
CHOOSING: frozenset[Op] = frozenset({select, gather, maximum, minimum, *_BEATEN, *_PARTS})


def are_met(graph: Graph, risks: Risks) -> bool:
    """Whether some equation throws elements away whose slopes are of a risk that counts."""
    return any(
        risks.before.get(v, NEVER) >= (ALWAYS if eqn.op in CHOOSING - {select} else AT_NAN)
        for eqn in graph.body
        if chooses(eqn)
        for v in eqn.inputs
    )


def chooses(eqn: Equation) -> bool:
    """Whether `eqn` throws elements of its operands away, or an equation in its bodies does."""
    return eqn.op in CHOOSING or any(chooses(e) for body in eqn.bodies for e in body.body)


def guards_of(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> tuple[ByOperand, ByOperand, dict[Equation, Opening]]:
    """For each equation, per operand, the guards that begin to hold there, and those of factors;
    and those of results of branches and loops, which begin within.

    The first are the risky guards of the operand's use that do not hold for the operand itself,
    the second those of a factor of which only some elements matter. Only uses by active values
    count: others carry no derivative. Nothing is left to guards before `sources`, whose tangents
    come from outside.
    """
    walk = _Walk(graph, frozenset(sources), conditions, risks)
    for eqn in reversed(graph.body):
        walk.visit(eqn)
    return walk.beginning(), walk.factors, walk.openings


def guards_of_results(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> dict[Value, Guards]:
    """The guards that hold for the results of equations, on all their uses."""
    walk = _Walk(graph, frozenset(sources), conditions, risks)
    for eqn in reversed(graph.body):
        walk.visit(eqn)
    return walk.held


@final
class _Walk:
    """Follows guards from results to operands; equations are to be visited from last to first."""

    def __init__(
        self, graph: Graph, sources: frozenset[Value], conditions: Conditions, risks: Risks
    ) -> None:
        self.sources = sources
        self.conditions = conditions
        self.risks = risks
        self.uses: dict[Value, list[_Use]] = {v: [_Use()] for v in graph.outputs}
        self.passed: dict[Value, Guards] = {}
        self.along: list[tuple[Equation, list[Guards]]] = []
        self.factors: ByOperand = {}
        # The guards of results.
        self.held: dict[Value, Guards] = {}
        self.openings: dict[Equation, Opening] = {}

    def beginning(self) -> ByOperand:
        """The guards that begin at uses."""
        begin = {}
        for eqn, along in self.along:
            pairs = zip(eqn.inputs, along, strict=True)
            found = [_beginning(guards, self.passed.get(v, ())) for v, guards in pairs]
            if any(found):
                begin[eqn] = found
        return begin

    def visit(self, eqn: Equation) -> None:
        """Take up the guards of the results of `eqn`, and give those of its operands."""
        used = [i for i, v in enumerate(eqn.outputs) if v in self.uses]
        if not used or self.risks.active.isdisjoint(eqn.outputs):
            return
        results = [self._joined(v, self.uses.pop(v)) for v in (eqn.outputs[i] for i in used)]
        self.held.update(zip([eqn.outputs[i] for i in used], results, strict=True))
        if eqn.op in CONTROL:
            self._enter(eqn, dict(zip(used, results, strict=True)))
            return
        if len(used) == 1:
            self._pass(eqn, eqn.outputs[used[0]], results[0])
        along: list[Guards] = []
        for i, value in enumerate(eqn.inputs):
            found = [_Use()]
            if value in self.risks.active:
                ways = zip(used, results, strict=True)
                found = [self._use(eqn, i, place, guards) for place, guards in ways]
                self.uses.setdefault(value, []).extend(found)
            along.append(found[0].guards if len(found) == 1 else self._joined(value, found))
        if any(along):
            self.along.append((eqn, along))
        if eqn.op is matmul and results[0]:
            self._guard_factors(eqn, results[0])

    def _enter(self, eqn: Equation, results: Mapping[int, Guards]) -> None:
        """Take guards of results into the bodies of `eqn`, and give those that come out of them.

        They begin within, at what the bodies take.
        """
        within = _Within(self, eqn, results)
        self.openings[eqn] = within.opening()
        for place, guards in results.items():
            self.passed[eqn.outputs[place]] = within.handed_on(place, guards)
        for i, value in enumerate(eqn.inputs):
            if value in self.risks.active:
                guards = within.operand(i - within.frame.lead)
                if guards is None:
                    continue
                before = self.risks.before[value]
                guards = self._nested(tuple(g for g in guards if g.risky or before >= g.least))
                self.uses.setdefault(value, []).append(_Use(guards))

    def _pass(self, eqn: Equation, value: Value, guards: Guards) -> None:
        """Note which guards of `value` are left to what it is computed from."""
        assert isinstance(eqn.op, Primitive)
        if value in self.sources or not (eqn.op in BACK or is_elementwise(eqn)):
            return
        self.passed[value] = tuple(g for g in guards if self.conditions.keeps(eqn, g.condition))

    def _use(self, eqn: Equation, position: int, place: int, guards: Guards) -> _Use:
        """The use of one operand for the result at `place`, which has `guards`."""
        assert isinstance(eqn.op, Primitive)
        fewer = True
        if eqn.op in BACK:
            guards = self._together(eqn, guards)
            fewer = all(self.conditions.keeps(eqn, g.condition) for g in guards)
            guards = tuple(self._moved(eqn, position, place, g) for g in guards)
        elif not is_elementwise(eqn):
            return _Use()
        value = eqn.inputs[position]
        if fewer or eqn.op is not gather:
            guards = (*guards, *self._chosen(eqn, position))
        if eqn.op is not matmul:
            risk = self.risks.along(eqn, position)
            guards = tuple(
                replace(g, risky=g.risky or (risk >= g.least and not self._spares(eqn, g)))
                for g in guards
            )
        before = self.risks.before[value]
        guards = self._nested(tuple(g for g in guards if g.risky or before >= g.least))
        part = eqn.op in _PARTS and (eqn.op is not slice_assign or position == 0)
        return _Use(guards, (eqn, place) if part and not guards and before == ALWAYS else None)

    def _spares(self, eqn: Equation, guard: Guard) -> bool:
        """Whether `eqn` makes slopes NaN beside a NaN that `guard` does not guard against.

        No comparison holds for a NaN, and a random mask, as that of a dropout after a `relu`,
        knows nothing of what it leaves out.
        """
        if eqn.op is not unless_nan:
            return False
        made = self.conditions.definition(guard.condition)
        if made is None:
            return False
        if isinstance(made.op, Primitive) and made.op.random:
            return True
        return not guard.side and made.op in COMPARISONS and eqn.inputs[1] in made.inputs

    def _together(self, eqn: Equation, guards: Guards) -> Guards:
        """`guards` of a result as one, where `eqn` repeats elements and does not repeat them.

        An element then matters if one of its copies does by all guards: that each guard leaves
        some copy, maybe another one, is not enough.
        """
        if len(guards) < 2 or eqn.op not in REPEATING:
            return guards
        alike = tuple(g for g in guards if self.conditions.keeps(eqn, g.condition))
        others = [g for g in guards if g not in alike]
        return (*alike, reduce(self._both, others)) if others else alike

    def _both(self, one: Guard, other: Guard) -> Guard:
        condition = self.conditions.both(self.matters(one), self.matters(other))
        return Guard(condition, True, one.strict or other.strict, one.risky or other.risky)

    def _moved(self, eqn: Equation, position: int, place: int, guard: Guard) -> Guard:
        """`guard` of a result as a guard of an operand.

        Where elements are repeated the places have to be guarded as well: nothing that is risky
        there is left to this guard.
        """
        back = self.conditions.before(eqn, position, place, guard.condition)
        if back is not None and self.conditions.repeats_alike(eqn, guard.condition) is not None:
            return replace(guard, condition=back)
        matters = self.matters(guard)
        back = self.conditions.before(eqn, position, place, matters)
        risky = guard.risky and self.conditions.keeps(eqn, guard.condition)
        return Guard(back, True, guard.strict and eqn.op is not matmul, risky)

    def _chosen(self, eqn: Equation, position: int) -> Guards:
        """The guard of what `eqn` itself chooses."""
        record, operands = self.conditions.record, eqn.inputs
        if eqn.op is select:
            plain, negated = self.conditions.plain(operands[0])
            return (Guard(plain, (position == 1) != negated, strict=True),)
        if eqn.op is gather:
            everywhere = self.conditions.everywhere(eqn.outputs[0])
            return (Guard(self.conditions.before(eqn, 0, 0, everywhere), True),)
        if eqn.op in (maximum, minimum):
            own, other = operands[position], operands[1 - position]
            beaten = (other, own) if eqn.op is maximum else (own, other)
            return (Guard(record(greater, *beaten), False),)
        if eqn.op in (reduce_max, reduce_min):
            (x,), (z,) = operands, eqn.outputs
            best = record(broadcast, z, shape=x.shape, new_axes=eqn.kwargs["axes"])
            return (Guard(record(_BEATEN[eqn.op], x, best), False),)
        return ()

    def _nested(self, guards: Guards) -> Guards:
        """`guards`, the two outermost as one if there are many."""
        if len(guards) <= _NESTING:
            return guards
        return (self._both(*guards[:2]), *guards[2:])

    def matters(self, guard: Guard) -> Value:
        """Where what `guard` guards matters."""
        return guard.condition if guard.side else self.conditions.negated(guard.condition)

    def _guard_factors(self, eqn: Equation, guards: Guards) -> None:
        """Guard the factors of a product that may be infinite or NaN where they do not matter.

        The sum over their elements does not tell these from the others any more.
        """
        found = [
            ()
            if self.risks.ranges[v].finite and self.risks.before.get(v) != ALWAYS
            else tuple(self._moved(eqn, i, 0, replace(g, risky=True)) for g in guards)
            for i, v in enumerate(eqn.inputs)
        ]
        if any(found):
            self.factors[eqn] = found

    def joined(self, value: Value) -> Guards:
        """The guards of `value` on the uses that were met."""
        return self._joined(value, self.uses[value])

    def _joined(self, value: Value, uses: Sequence[_Use]) -> Guards:
        """The guards that hold on all uses; if there are none, that one of them holds.

        Those that are risky for some use are left to what is before by that use too.
        """
        risky = {(g.condition, g.side) for u in uses for g in u.guards if g.risky}
        found = self._of_uses(value, uses)
        return tuple(replace(g, risky=(g.condition, g.side) in risky) for g in found)

    def _of_uses(self, value: Value, uses: Sequence[_Use]) -> Guards:
        if not all(u.guards or u.part for u in uses):
            return ()
        parts = [u.part for u in uses if u.part is not None]
        guards = [u.guards for u in uses if u.guards]
        guards = [g for g in guards if _may_matter(g)] or guards[:1]
        if not guards:
            return self._of_parts(value, parts)
        if not parts:
            common = _common(guards)
            if common:
                return (*common, *self._beside(common, guards))
        elif not (read := self._of_parts(value, parts)):
            return ()
        else:
            # What no part has matters to none, whatever it is: the others tell what is strict.
            guards.append(tuple(replace(g, strict=True) for g in read))
        return self._either(guards)

    def _beside(self, common: Guards, uses: Sequence[Guards]) -> Guards:
        """The guard of what all uses have, each in its own way, beside what is `common` to them."""
        shared = {(g.condition, g.side) for g in common}
        rest = [tuple(g for g in u if (g.condition, g.side) not in shared) for u in uses]
        return self._either(rest) if all(rest) else ()

    def _either(self, uses: Sequence[Guards]) -> Guards:
        """One guard in the place of those of several uses: that one of these matters.

        Each use keeps its own guards too, where they are risky.
        """
        uses = _without_twins(uses)
        if not all(uses):
            return ()
        both = self.conditions.both
        each = [reduce(both, map(self.matters, guards)) for guards in uses]
        found = any_of(self.conditions, each)
        strict = all(any(g.strict for g in guards) for guards in uses)
        return () if self.conditions.always(found) else (Guard(found, True, strict),)

    def _of_parts(self, value: Value, parts: Sequence[tuple[Equation, int]]) -> Guards:
        """The guard of what some part has; none if the parts have everything."""
        if len(parts) == 1:
            condition = self._of_part(parts[0])
        elif value.type.is_larger(LARGEST):
            # A constant of that size would be kept in the program.
            condition = any_of(self.conditions, map(self._of_part, parts))
        else:
            read = np.zeros(value.shape, bool)
            for eqn, place in parts:
                _mark(read, eqn, place)
            op, params = constant_op(read)
            condition = self.conditions.record(op, **params)
        return () if self.conditions.always(condition) else (Guard(condition, True),)

    def _of_part(self, part: tuple[Equation, int]) -> Value:
        """Where what `part` reads is."""
        eqn, place = part
        everywhere = self.conditions.everywhere(eqn.outputs[place])
        return self.conditions.before(eqn, 0, place, everywhere)


@final
class _Within:
    """The guards of results of a branch or a loop, in its bodies and before it.

    `marks` has what holds for results of the bodies, by their places: in every trip, where they
    are carried on. So a guard of what a loop ends with is one of what it begins with if each
    element comes from the same one of the trip before.
    """

    def __init__(self, around: _Walk, eqn: Equation, results: Mapping[int, Guards]) -> None:
        self.around, self.eqn, self.frame = around, eqn, Frame.of(eqn)
        places = [k for k in map(self.frame.kept, results) if k is not None]
        self.asked = {*places, *range(self.frame.carries)}
        self.marks = self._first(results)
        self._follow_unused(set(range(self.frame.carries)).difference(places))
        while lost := self._lost():
            for k, guard in lost:
                self.marks[k].remove(guard)
            self._walk_through()

    def opening(self) -> Opening:
        matters = {k: [g.condition for g in guards] for k, guards in self.marks.items()}
        count = len(self.frame.bodies[0].outputs)
        return Opening(matters, unused=frozenset(range(count)).difference(self.asked))

    def operand(self, i: int) -> Guards | None:
        """The guards of the operand that the bodies have at `i`; None if no result needs it."""
        k = i - self.frame.consts
        if 0 <= k < self.frame.carries:
            return self._first_carried(k) if k in self.asked else None
        ways = zip(self.frame.bodies, self.marked.bodies, self.walks, strict=True)
        found = [self._out(own, body, walk, i) for own, body, walk in ways]
        present = [guards for guards in found if guards is not None]
        return _common(present) if present else None

    def _first_carried(self, k: int) -> Guards:
        """The guards of what a loop begins with: what it ends with, if there are no trips."""
        marks = tuple(self.marks.get(k, ()))
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
            guards = tuple(replace(g, condition=conditions.of_row(g.condition)) for g in guards)
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
            unused -= found
            self.asked |= found
            self._walk_through()

    def _add_wider(self) -> None:
        """Beside guards that differ from row to row or from result to result: that one of them
        holds, which may be the same in all trips where none of them is."""
        conditions, outputs = self.around.conditions, self.frame.bodies[0].outputs
        groups: dict[Shape, list[int]] = {}
        for k, guards in self.marks.items():
            if guards:
                groups.setdefault(outputs[k].shape, []).append(k)
        for shape, places in groups.items():
            found = []
            for k in places:
                held = [
                    c if c.shape == shape else any_along(conditions, c, (0,))
                    for c in (g.condition for g in self.marks[k])
                ]
                found.append(reduce(conditions.both, held))
            wider = reduce(conditions.either, dict.fromkeys(found))
            if conditions.always(wider):
                continue
            for k in places:
                guards = self.marks[k]
                if wider not in [g.condition for g in guards]:
                    guards.append(replace(guards[0], condition=wider))

    def _out(self, own: Graph, body: Graph, walk: _Walk, i: int) -> Guards | None:
        """The guards of an input of a body as those of the operand; None if it is not used."""
        value = own.inputs[i]
        if value not in walk.uses:
            return None
        out = Passage(self.eqn, self.marked, body, walk.conditions, self.around.conditions)
        ways = [(g, out.to_operand(i, g.condition)) for g in walk.joined(value)]
        return tuple(replace(g, condition=c) for g, c in ways if c is not None)

    def _lost(self) -> list[tuple[int, Guard]]:
        """Guards of what is carried on that a trip does not hand on to the one before."""
        found: list[tuple[int, Guard]] = []
        for k in range(self.frame.carries):
            value, walk = self.frame.bodies[0].inputs[self.frame.consts + k], self.walks[0]
            if value in walk.uses:
                held = _sides(walk.joined(value))
                within = [
                    (g, self.marked.entry.of(g.condition, False)) for g in self.marks.get(k, ())
                ]
                found += [(k, g) for g, c in within if (c, True) not in held]
        return found

    def _walk_through(self) -> None:
        self.marked = marked(self.eqn, self.opening(), self.asked)
        self.walks = list(map(self._walk, self.frame.bodies, self.marked.bodies))

    def _walk(self, own: Graph, body: Graph) -> _Walk:
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
        walk = _Walk(body, frozenset(), conditions, inner)
        for eqn in reversed(body.body):
            walk.visit(eqn)
        return walk


def _mark(read: np.ndarray[Any, Any], eqn: Equation, place: int) -> None:
    """Make True what `eqn` reads of its operand for its result `place`."""
    params = eqn.kwargs
    where: tuple[slice, ...]
    if eqn.op is slice_:
        where = strided(**params)
    elif eqn.op is split:
        axis, sizes = params["axis"], params["sizes"]
        start = sum(sizes[:place])
        where = (slice(None),) * axis + (slice(start, start + sizes[place]),)
    else:
        where = strided(params["starts"], eqn.inputs[1].shape, params["steps"])
    if eqn.op is slice_assign:
        kept = read[where].copy()
        read[...] = True
        read[where] = kept
    else:
        read[where] = True


def _common(uses: Sequence[Guards]) -> Guards:
    """The guards of the first use that all others have."""
    shared = set(_sides(uses[0])).intersection(*map(_sides, uses[1:]))
    return tuple(g for g in uses[0] if (g.condition, g.side) in shared)


def _may_matter(guards: Guards) -> bool:
    """Whether `guards` do not demand both sides of one condition."""
    sides = {(g.condition, g.side) for g in guards}
    return len({condition for condition, _ in sides}) == len(sides)


def _without_twins(uses: Sequence[Guards]) -> list[Guards]:
    """`uses`, those of both sides of one condition as one with the guards before that only."""
    found: dict[tuple[tuple[Value, bool], ...], Guards] = {}
    for guards in uses:
        while guards:
            *outer, (condition, side) = _sides(guards)
            twin = found.pop((*outer, (condition, not side)), None)
            if twin is None:
                break
            guards = _alike(guards[:-1], twin)
        key = _sides(guards)
        found[key] = _alike(guards, found.get(key, guards))
    return list(found.values())


def _alike(one: Guards, other: Guards) -> Guards:
    """Guards of two uses with the same conditions, as those of one use."""
    return tuple(
        replace(g, strict=g.strict and h.strict, risky=g.risky or h.risky)
        for g, h in zip(one, other, strict=False)
    )


def _sides(guards: Guards) -> tuple[tuple[Value, bool], ...]:
    return tuple((g.condition, g.side) for g in guards)


def _beginning(use: Guards, held: Guards) -> Guards:
    before = {(g.condition, g.side) for g in held}
    return tuple(g for g in use if g.risky and (g.condition, g.side) not in before)
