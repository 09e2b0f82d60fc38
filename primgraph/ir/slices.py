"""Program slices of a builder: dependences of values, and paths between values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import final

from primgraph.ir.graph import Equation, Graph, Value, map_bodies

# Maximum number of steps by which conditions and indices are traced back.
_BACK = 8


def backward_slice(body: Sequence[Equation], outputs: Iterable[Value]) -> list[Equation]:
    """Return the backward slice: the equations of `body` that `outputs` depend on, in order."""
    wanted, kept = set(outputs), []
    for eqn in reversed(body):
        if not wanted.isdisjoint(eqn.outputs):
            wanted.update(eqn.inputs)
            kept.append(eqn)
    kept.reverse()
    return kept


def forward_slice(body: Iterable[Equation], inputs: Iterable[Value]) -> set[Value]:
    """Return the forward slice: `inputs`, and all values that depend on them."""
    found = set(inputs)
    for eqn in body:
        if not found.isdisjoint(eqn.inputs):
            found.update(eqn.outputs)
    return found


def drop_formal(graph: Graph) -> Graph:
    """Return `graph` without formal equations, which compute nothing.

    A formal op with its own derivative is replaced by its source, which is no longer constant.
    """
    return drop_equations(graph, lambda eqn: eqn.op.formal)


def drop_equations(graph: Graph, is_dropped: Callable[[Equation], bool]) -> Graph:
    """Return `graph` with the first operand in place of some results, also in bodies.

    That of an op with its own derivative is no longer constant.
    """
    if not any(is_dropped(eqn) or eqn.op.has_bodies for eqn in graph.body):
        return graph
    moved: dict[Value, Value] = {}
    held: dict[Value, Value] = {}
    body: list[Equation] = []
    for eqn in graph.body:
        inputs, plain = (
            tuple([moved.get(v, v) for v in eqn.inputs]),
            map_bodies(eqn, lambda inner: drop_equations(inner, is_dropped)),
        )
        if eqn.op.stops:
            held[eqn.output] = inputs[0]
        if is_dropped(eqn):
            own = eqn.op.own_slope
            moved[eqn.output] = held.get(inputs[0], inputs[0]) if own else inputs[0]
        elif inputs == eqn.inputs:
            body.append(plain)
        else:
            body.append(Equation(eqn.op, inputs, plain.params, eqn.outputs, eqn.source))
    outputs = [moved.get(v, v) for v in graph.outputs]
    return Graph(graph.inputs, body, outputs, graph.name, graph.form, graph.titles)


@final
class Slices:
    """Slices of `body`, a growing list of equations; `defined_by` maps results to equations.

    Positions and users of values are indexed incrementally, on demand.
    """

    __slots__ = ("_body", "_defined_by", "_places", "_used", "_users")

    def __init__(self, body: list[Equation], defined_by: Mapping[Value, Equation | None]) -> None:
        self._body = body
        self._defined_by = defined_by
        self._places: dict[Equation, int] = {}
        self._users: dict[Value, list[Equation]] = {}
        # Number of equations in `_users`.
        self._used = 0

    def equations_before(
        self, outputs: Sequence[Value], cut: Collection[Value] = ()
    ) -> list[Equation]:
        """Return the equations that `outputs` depend on, in order, stopping at values in `cut`."""
        found: set[Equation] = set()
        waiting = list(outputs)
        while waiting:
            value = waiting.pop()
            eqn = None if value in cut else self._defined_by.get(value)
            if eqn is not None and eqn not in found:
                found.add(eqn)
                waiting.extend(eqn.inputs)
        return self._sort_equations(found)

    def computing_equations(self, outputs: Sequence[Value]) -> tuple[list[Equation], list[Value]]:
        """Return the equations that compute `outputs`, in order, and the values of `outputs` there.

        This is the backward slice without formal equations, except for those with their own
        derivative.
        """
        ends = [self._plain(v) for v in outputs]
        found: dict[Equation, Equation] = {}
        definition = self._defined_by.get
        waiting = [definition(v) for v in ends]
        while waiting:
            eqn = waiting.pop()
            if eqn is None or eqn in found:
                continue
            plain, before = eqn, [definition(v) for v in eqn.inputs]
            for made in before:
                if made is not None and made.op.formal:
                    inputs = tuple([self._plain(v) for v in eqn.inputs])
                    before = [definition(v) for v in inputs]
                    if inputs != eqn.inputs:
                        plain = Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source)
                    break
            found[eqn] = plain
            waiting += before
        return [found[e] for e in self._sort_equations(found)], ends

    def _plain(self, value: Value) -> Value:
        """Return the value behind formal equations."""
        eqn = self._defined_by.get(value)
        while eqn is not None and eqn.op.formal and not eqn.op.own_slope:
            value = eqn.inputs[0]
            eqn = self._defined_by.get(value)
        return value

    def equations_between(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        cut: Collection[Value] = (),
        *,
        apart: bool = False,
    ) -> list[Equation]:
        """Return the equations on paths from `inputs` to `outputs` that avoid `cut`, in order. With
        `apart`, paths do not pass other `inputs` either.

        They include the constants that they use, and conditions and indices with the view
        operations these come from. The cost is that of the smaller of two alternating searches,
        forward from the inputs and backward from the outputs. Equations before the inputs, or
        without effect on the outputs, cost nothing.
        """
        self._note_users()
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
        # One of the searches is complete: the other one goes on among its equations.
        found = ahead & behind
        while pending:
            used_in = next(pending[-1], None)
            if used_in is None:
                pending.pop()
            elif used_in in behind and used_in not in found:
                found.add(used_in)
                pending += [self._uses(v) for v in used_in.outputs if v not in ends]
        while waiting:
            value = waiting.pop()
            eqn = None if value in ends else self._defined_by.get(value)
            if eqn is not None and eqn in ahead and eqn not in found:
                found.add(eqn)
                waiting.extend(eqn.inputs)
        return self._sort_equations(found | self._conditions(found, ends))

    def place(self, eqn: Equation) -> int:
        """Return the position of `eqn` in the body."""
        self._note_places()
        return self._places[eqn]

    def is_used(self, value: Value) -> bool:
        """Return whether an equation uses `value`."""
        self._note_users()
        return bool(self._users.get(value))

    def forget(self, equations: Sequence[Equation]) -> None:
        """Remove `equations`, the newest ones, from the index."""
        first = len(self._body)
        for place, eqn in reversed([*enumerate(equations, first)]):
            self._places.pop(eqn, None)
            if place < self._used:
                for value in set(eqn.inputs):
                    self._users[value].pop()
        self._used = min(self._used, first)

    def _note_places(self) -> None:
        """Index the positions of the equations added since the last call."""
        first = len(self._places)
        if first < len(self._body):
            self._places.update(zip(self._body[first:], count(first)))

    def _note_users(self) -> None:
        """Index the operands of the equations added since the last call."""
        users = self._users
        for eqn in islice(self._body, self._used, None):
            for value in set(eqn.inputs):
                if value in users:
                    users[value].append(eqn)
                else:
                    users[value] = [eqn]
        self._used = len(self._body)

    def _sort_equations(self, equations: Collection[Equation]) -> list[Equation]:
        self._note_places()
        return sorted(equations, key=self._places.__getitem__)

    def _uses(self, value: Value) -> Iterator[Equation]:
        return iter(self._users.get(value, ()))

    def _conditions(self, equations: set[Equation], cut: Collection[Value]) -> set[Equation]:
        """Return the constants that `equations` use, and the sources of their conditions and
        indices."""
        found: set[Equation] = set()
        users: Collection[Equation] = equations
        for _ in range(_BACK):
            new: set[Equation] = set()
            for user in users:
                for value in user.inputs:
                    eqn = self._defined_by.get(value)
                    if eqn is None or eqn in equations or eqn in found or value in cut:
                        continue
                    if not eqn.inputs or not any(v.type.is_inexact for v in eqn.outputs):
                        new.add(eqn)
            found |= new
            users = new
        return found
