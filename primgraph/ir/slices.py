"""Slices of what a builder has recorded: what values depend on, and what lies between values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import final

from primgraph.ir.graph import Equation, Graph, Value, with_bodies

# How far conditions and indices are followed back to what they were made from.
_BACK = 8


def backward_slice(body: Sequence[Equation], outputs: Iterable[Value]) -> list[Equation]:
    """The equations of `body` that `outputs` depend on, in order: the slice behind these."""
    wanted, kept = set(outputs), []
    for eqn in reversed(body):
        if not wanted.isdisjoint(eqn.outputs):
            wanted.update(eqn.inputs)
            kept.append(eqn)
    kept.reverse()
    return kept


def forward_slice(body: Iterable[Equation], inputs: Iterable[Value]) -> set[Value]:
    """`inputs`, and all values that depend on them in any way: the slice ahead of them."""
    found = set(inputs)
    for eqn in body:
        if not found.isdisjoint(eqn.inputs):
            found.update(eqn.outputs)
    return found


def without_formal(graph: Graph) -> Graph:
    """`graph` without formal equations, which compute nothing.

    What has a slope of its own is what it was computed from, and not held constant any more.
    """
    if not any(eqn.op.formal or eqn.op.has_bodies for eqn in graph.body):
        return graph
    moved: dict[Value, Value] = {}
    held: dict[Value, Value] = {}
    body: list[Equation] = []
    for eqn in graph.body:
        inputs, params = tuple([moved.get(v, v) for v in eqn.inputs]), eqn.params
        if eqn.op.has_bodies:
            params = with_bodies(params, without_formal)
        if eqn.op.stops:
            held[eqn.output] = inputs[0]
        if eqn.op.formal:
            own = eqn.op.own_slope
            moved[eqn.output] = held.get(inputs[0], inputs[0]) if own else inputs[0]
        elif inputs == eqn.inputs and params is eqn.params:
            body.append(eqn)
        else:
            body.append(Equation(eqn.op, inputs, params, eqn.outputs, eqn.source))
    outputs = [moved.get(v, v) for v in graph.outputs]
    return Graph(graph.inputs, body, outputs, graph.name, graph.form, graph.titles)


@final
class Slices:
    """Finds slices of `body`, a list of equations that grows; `defined_by` has them by result.

    Where equations stand and who uses which value is noted when it is asked for, once for each.
    """

    __slots__ = ("_body", "_defined_by", "_places", "_users")

    def __init__(self, body: list[Equation], defined_by: Mapping[Value, Equation | None]) -> None:
        self._body = body
        self._defined_by = defined_by
        self._places: dict[Equation, int] = {}
        self._users: dict[Value, list[Equation]] = {}

    def before(self, outputs: Sequence[Value], cut: Collection[Value] = ()) -> list[Equation]:
        """The equations that `outputs` depend on other than through values in `cut`, in order."""
        found: set[Equation] = set()
        waiting = list(outputs)
        while waiting:
            value = waiting.pop()
            eqn = None if value in cut else self._defined_by.get(value)
            if eqn is not None and eqn not in found:
                found.add(eqn)
                waiting.extend(eqn.inputs)
        return self._ordered(found)

    def computing(self, outputs: Sequence[Value]) -> tuple[list[Equation], list[Value]]:
        """The equations that compute `outputs`, in order, and what these are there.

        That is the slice before them without formal equations, which compute nothing; those
        with a slope of their own stay.
        """
        ends = [self._plain(v) for v in outputs]
        found: dict[Equation, Equation] = {}
        waiting = list(ends)
        while waiting:
            eqn = self._defined_by.get(waiting.pop())
            if eqn is not None and eqn not in found:
                inputs = tuple([self._plain(v) for v in eqn.inputs])
                same = inputs == eqn.inputs
                found[eqn] = (
                    eqn if same else Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source)
                )
                waiting.extend(inputs)
        return [found[e] for e in self._ordered(found)], ends

    def _plain(self, value: Value) -> Value:
        """What `value` is, whatever it counts as a function of."""
        eqn = self._defined_by.get(value)
        while eqn is not None and eqn.op.formal and not eqn.op.own_slope:
            value = eqn.inputs[0]
            eqn = self._defined_by.get(value)
        return value

    def between(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        cut: Collection[Value] = (),
        *,
        apart: bool = False,
    ) -> list[Equation]:
        """The equations on ways from `inputs` to `outputs` that pass no value in `cut`, in order.
        With `apart`, they come to no other one of `inputs` either.

        With them come the constants that they use, and the conditions and indices with what
        these were moved from. The work is that of the smaller of two searches, forward from the
        inputs and back from the outputs, which take turns until one is at its end: what was
        recorded before the inputs costs nothing, nor does what does not lead to the outputs.
        """
        self._note()
        ahead: set[Equation] = set()
        pending = [self._uses(v) for v in dict.fromkeys(inputs) if v not in cut]
        behind: set[Equation] = set()
        waiting = list(outputs)
        ends = frozenset((*cut, *inputs)) if apart else cut
        while pending and waiting:
            used_in = next(pending[-1], None)
            if used_in is None:
                pending.pop()
            elif used_in not in ahead:
                ahead.add(used_in)
                pending += [self._uses(v) for v in used_in.outputs if v not in ends]
            value = waiting.pop()
            eqn = None if value in ends else self._defined_by.get(value)
            if eqn is not None and eqn not in behind:
                behind.add(eqn)
                waiting.extend(eqn.inputs)
        if pending:
            found = self._depending(self._ordered(behind), inputs)
        else:
            found = self._leading(ahead, outputs, ends)
        return self._ordered(found | self._conditions(found, ends))

    def place(self, eqn: Equation) -> int:
        """Where `eqn` stands in the body."""
        self._note()
        return self._places[eqn]

    def is_used(self, value: Value) -> bool:
        """Whether an equation takes `value`."""
        self._note()
        return bool(self._users.get(value))

    def forget(self, equations: Sequence[Equation]) -> None:
        """Note that `equations`, the newest ones, are gone."""
        for eqn in reversed(equations):
            if self._places.pop(eqn, None) is not None:
                for value in set(eqn.inputs):
                    self._users[value].pop()

    def _note(self) -> None:
        """Take in the equations that have been added since the last time."""
        places, users = self._places, self._users
        for place in range(len(places), len(self._body)):
            eqn = self._body[place]
            places[eqn] = place
            for value in set(eqn.inputs):
                users.setdefault(value, []).append(eqn)

    def _ordered(self, equations: Collection[Equation]) -> list[Equation]:
        self._note()
        return sorted(equations, key=self._places.__getitem__)

    def _uses(self, value: Value) -> Iterator[Equation]:
        return iter(self._users.get(value, ()))

    def _depending(self, body: Sequence[Equation], inputs: Sequence[Value]) -> set[Equation]:
        """Those of `body` that depend on `inputs` in any way."""
        dependent = forward_slice(body, inputs)
        return {eqn for eqn in body if not dependent.isdisjoint(eqn.inputs)}

    def _leading(
        self, equations: set[Equation], outputs: Sequence[Value], cut: Collection[Value]
    ) -> set[Equation]:
        """Those of `equations` that `outputs` depend on through others of them."""
        found: set[Equation] = set()
        waiting = list(outputs)
        while waiting:
            value = waiting.pop()
            eqn = None if value in cut else self._defined_by.get(value)
            if eqn is not None and eqn in equations and eqn not in found:
                found.add(eqn)
                waiting.extend(eqn.inputs)
        return found

    def _conditions(self, equations: set[Equation], cut: Collection[Value]) -> set[Equation]:
        """The constants that `equations` use, and how their conditions and indices were made."""
        found: set[Equation] = set()
        values = {v for e in equations for v in e.inputs}
        for _ in range(_BACK):
            made = {self._defined_by.get(v) for v in values if v not in cut}
            new = {
                e
                for e in made
                if e is not None
                and e not in equations
                and e not in found
                and (not e.inputs or not any(v.type.is_inexact for v in e.outputs))
            }
            found |= new
            values = {v for e in new for v in e.inputs}
        return found
