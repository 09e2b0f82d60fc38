"""Clean-up of branches and loops: dead results, loop-invariant code motion, duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import backward_slice
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import full
from primgraph.primitives.control import Flow, branch_taken, flow_of
from primgraph.transforms.optimize.loop_invariants import (
    equations_if_loop_runs,
    hoistable_equations,
)
from primgraph.transforms.optimize.loop_parts import Loop
from primgraph.transforms.optimize.prune_bodies import live_equations

Clean: TypeAlias = Callable[[Graph], Graph]

# Carries not proved equal after this many rounds are assumed to differ.
_ROUNDS = 20


def tidy_bodies(graph: Graph, clean: Clean) -> Graph:
    """Clean all bodies by `clean`, and remove unneeded results, carries and operands.

    Loop-invariant equations are hoisted before the loop. A branch with a constant index is inlined.
    """
    sweep = _Sweep(clean)
    for eqn in live_equations(graph):
        sweep.add(eqn)
    outputs = [sweep.moved.get(v, v) for v in graph.outputs]
    return Graph(graph.inputs, sweep.body, outputs, graph.name)


@final
class _Rows:
    """Rows of the arrays that a loop reads and stacks, and stacks of its elementwise results."""

    def __init__(self, loop: Loop) -> None:
        rows = loop.body.outputs[len(loop.init) :]
        self._row = dict(zip(loop.xs, loop.inputs[2], strict=True))
        self._row.update(zip(loop.stacked, rows, strict=True))
        stack = dict(zip(rows, loop.stacked, strict=True))
        self._stack = {
            (e.op, e.inputs, bits(e.params)): stack[e.outputs[0]]
            for e in loop.body.body
            if _is_elementwise(e) and e.outputs[0] in stack
        }

    def stack_of(self, eqn: Equation) -> Value | None:
        """Return the stack that has the result of an elementwise equation on stacks, if any."""
        if not all(v in self._row for v in eqn.inputs):
            return None
        inputs = tuple([self._row[v] for v in eqn.inputs])
        return self._stack.get((eqn.op, inputs, bits(eqn.params)))


@final
class _Sweep:
    """Rewrites equations in order, with minimal bodies; `moved` maps old to new values."""

    def __init__(self, clean: Clean) -> None:
        self.clean = clean
        self.body: list[Equation] = []
        self.moved: dict[Value, Value] = {}
        self._defined: dict[Value, Equation] = {}
        # What the loop that stacks a value computes of rows.
        self._stacks: dict[Value, _Rows] = {}
        self._cleaned: dict[Graph, Graph] = {}

    def add(self, eqn: Equation) -> None:
        inputs = tuple([self.moved.get(v, v) for v in eqn.inputs])
        if inputs != eqn.inputs:
            eqn = Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source)
        if not eqn.op.has_bodies:
            stack = self._stacked_result(eqn)
            if stack is None:
                self._append(eqn)
            else:
                self.moved[eqn.outputs[0]] = stack
            return
        match flow_of(eqn):
            case None:
                self._append(map_bodies(eqn, self._clean))
            case Flow.ONCE:
                self._checkpoint(eqn)
            case Flow.CHOICE:
                self._branches(eqn)
            case _:
                self._loop(eqn)

    def _append(self, eqn: Equation) -> None:
        self.body.append(eqn)
        self._defined.update((v, eqn) for v in eqn.outputs)

    def _number(self, value: Value) -> Any:
        """Return the number that all elements of a constant equal, or None."""
        eqn = self._defined.get(value)
        return None if eqn is None else eqn.number

    def _clean(self, graph: Graph) -> Graph:
        if graph not in self._cleaned:
            self._cleaned[graph] = self.clean(graph)
        return self._cleaned[graph]

    def _branches(self, eqn: Equation) -> None:
        branches = eqn.kwargs["branches"]
        number = self._number(eqn.inputs[0])
        if number is not None:
            branch = branches[branch_taken(number, len(branches))]
            self._inline(branch, eqn.inputs[1:], eqn.outputs)
            return
        found = tuple(map(self._clean, branches))
        if found != branches or any(a is not b for a, b in zip(found, branches, strict=True)):
            params = freeze_all([("branches", found)])
            eqn = Equation(eqn.op, eqn.inputs, params, eqn.outputs, eqn.source)
        # Results that are equal in all branches are one.
        known: dict[tuple[Value, ...], Value] = {}
        for value, results in zip(
            eqn.outputs, zip(*[b.outputs for b in found], strict=True), strict=True
        ):
            same = known.setdefault(results, value)
            if same is not value:
                self.moved[value] = same
        self._append(eqn)

    def _checkpoint(self, eqn: Equation) -> None:
        """Move constants into the body, and inline a body that only consists of views."""
        body = eqn.bodies[0]
        numbers = [self._number(v) for v in eqn.inputs]
        stays = [i for i, number in enumerate(numbers) if number is None]
        if len(stays) < len(numbers):
            pairs = zip(numbers, body.inputs, strict=True)
            literals = [_literal(n, v) for n, v in pairs if n is not None]
            inner = [body.inputs[i] for i in stays]
            body = Graph(inner, [*literals, *body.body], body.outputs, body.name)
        body = self._clean(body)
        inputs = tuple([eqn.inputs[i] for i in stays])
        if all(_is_free(e) for e in body.body):
            self._inline(body, inputs, eqn.outputs)
        elif body is eqn.bodies[0]:
            self._append(eqn)
        else:
            params = freeze_all([("body", body)])
            self._append(Equation(eqn.op, inputs, params, eqn.outputs, eqn.source))

    def _inline(self, graph: Graph, given: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Inline a body in place of its equation."""
        known = dict(zip(graph.inputs, given, strict=True))
        for eqn in graph.body:
            made = tuple([Value(v.type) for v in eqn.outputs])
            inputs = tuple([known[v] for v in eqn.inputs])
            known.update(zip(eqn.outputs, made, strict=True))
            self.add(Equation(eqn.op, inputs, eqn.params, made, eqn.source))
            known.update((v, self.moved.get(w, w)) for v, w in zip(eqn.outputs, made, strict=True))
        self.moved.update(zip(outputs, [known[v] for v in graph.outputs], strict=True))

    def _loop(self, eqn: Equation) -> None:
        loop = Loop.from_equation(eqn)
        if dict(loop.rest).get("length") == 0 and not loop.stacked:
            self.moved.update(zip(loop.carried, loop.init, strict=True))
            return
        loop = replace(loop, body=self._clean(loop.body))
        if loop.test is not None:
            loop = replace(loop, test=self._clean(loop.test))
        steps = (
            self._drop_unchanged_carries,
            self._deduplicate_inputs,
            self._drop_copied_stacks,
            self._deduplicate_stacks,
            self._moved_out,
        )
        carried = loop.carried
        loop, places = _merge_equal_carries(loop)
        for step in steps:
            loop = step(loop)
        for k, place in enumerate(places):
            if place != k:
                self.moved[carried[k]] = self.moved.get(carried[place], carried[place])
        self._append(loop.equation())
        if _fills_stacks(loop):
            self._stacks.update(dict.fromkeys(loop.stacked, _Rows(loop)))

    def _drop_unchanged_carries(self, loop: Loop) -> Loop:
        """Turn carries that never change into constants."""
        consts, states, _ = loop.inputs
        outputs = loop.body.outputs
        numbers = {e.outputs[0]: e.number for e in loop.body.body if e.number is not None}
        same = [
            k
            for k, v in enumerate(states)
            if outputs[k] is v
            or (outputs[k] in numbers and _alike(self._number(loop.init[k]), numbers[outputs[k]]))
        ]
        if not same or (len(same) == len(states) and not loop.stacked):
            return loop
        self.moved.update((loop.carried[k], loop.init[k]) for k in same)
        fixed = list(zip(loop.consts, consts, strict=True))
        fixed += [(loop.init[k], states[k]) for k in same]
        return loop.with_operands(fixed, [k for k in range(len(states)) if k not in same])

    def _deduplicate_inputs(self, loop: Loop) -> Loop:
        """Pass each value once, and move constants into the body."""
        consts, _, xs = loop.inputs
        made: list[Equation] = []
        twins: dict[Value, Value] = {}

        def deduplicate(pairs: Iterable[tuple[Value, Value]]) -> list[tuple[Value, Value]]:
            seen: dict[Value, Value] = {}
            for value, inner in pairs:
                number = self._number(value)
                if number is not None:
                    made.append(_literal(number, inner))
                elif value in seen:
                    twins[inner] = seen[value]
                else:
                    seen[value] = inner
            return list(seen.items())

        fixed = deduplicate(zip(loop.consts, consts, strict=True))
        rows = deduplicate(zip(loop.xs, xs, strict=True))
        if len(fixed) == len(loop.consts) and len(rows) == len(loop.xs):
            return loop
        if loop.test is not None:
            loop = replace(loop, test=_with_known(loop, made, twins))
        body = [*made, *_replace_operands(loop.body.body, twins)]
        outputs = [twins.get(v, v) for v in loop.body.outputs]
        graph = Graph(loop.body.inputs, body, outputs, loop.body.name)
        return replace(loop, body=graph).with_operands(fixed, None, rows)

    def _deduplicate_stacks(self, loop: Loop) -> Loop:
        """Stack each value once."""
        rows = loop.body.outputs[len(loop.init) :]
        first: dict[Value, int] = {}
        for k, row in enumerate(rows):
            at = first.setdefault(row, k)
            if at != k:
                self.moved[loop.stacked[k]] = loop.stacked[at]
        if len(first) == len(rows):
            return loop
        fixed = zip(loop.consts, loop.inputs[0], strict=True)
        return loop.with_operands(list(fixed), stacks=set(first.values()))

    def _drop_copied_stacks(self, loop: Loop) -> Loop:
        """Replace stacks of the rows of an operand by the operand."""
        if not _fills_stacks(loop):
            return loop
        given = dict(zip(loop.inputs[2], loop.xs, strict=True))
        rows = loop.body.outputs[len(loop.init) :]
        copied = {k for k, row in enumerate(rows) if row in given}
        if not copied or (len(copied) == len(rows) and not loop.init):
            return loop
        self.moved.update((loop.stacked[k], given[rows[k]]) for k in copied)
        fixed = zip(loop.consts, loop.inputs[0], strict=True)
        return loop.with_operands(list(fixed), stacks=set(range(len(rows))) - copied)

    def _stacked_result(self, eqn: Equation) -> Value | None:
        """Return the stack that has the result of an elementwise equation on stacks, if any."""
        if not _is_elementwise(eqn):
            return None
        found = next((self._stacks[v] for v in eqn.inputs if v in self._stacks), None)
        return None if found is None else found.stack_of(eqn)

    def _moved_out(self, loop: Loop) -> Loop:
        """Hoist loop-invariant equations; those that may raise only where the loop runs."""
        plain, guarded = hoistable_equations(loop)
        if not plain and not guarded:
            return loop
        consts = loop.inputs[0]
        fixed = list(zip(loop.consts, consts, strict=True))
        inside = set(loop.body.body).difference(plain, guarded)
        read = {v for e in inside for v in e.inputs}.union(loop.body.outputs)
        for out in (plain, guarded):
            ends = [v for e in out for v in e.outputs if v in read]
            part = Graph(consts, backward_slice(loop.body.body, ends), ends, loop.body.name)
            made = [Value(v.type) for v in ends]
            if out is plain:
                self._inline(part, loop.consts, made)
            elif ends:
                for eqn in equations_if_loop_runs(loop, part, made):
                    self.add(eqn)
            fixed += [(self.moved.get(v, v), inner) for v, inner in zip(made, ends, strict=True)]
        return loop.with_operands(fixed, body=[e for e in loop.body.body if e in inside])


def _merge_equal_carries(loop: Loop) -> tuple[Loop, Sequence[int]]:
    """Merge carries that are equal in every iteration; return the representative of each.

    Carries with equal initial values are assumed equal; the partition is refined until the body
    preserves it.
    """
    _, states, _ = loop.inputs
    first: dict[object, int] = {}
    places = [first.setdefault(v, k) for k, v in enumerate(loop.init)]
    rounds = 0
    while len(set(places)) < len(places) and rounds < _ROUNDS:
        twins = {states[k]: states[n] for k, n in enumerate(places) if k != n}
        builder = Builder(loop.body.name, source=NOWHERE)
        for value in loop.body.inputs:
            builder.share_input(value)
        found = builder.inline(loop.body, [twins.get(v, v) for v in loop.body.inputs])
        first = {}
        pairs = list(zip(places, found, strict=False))
        finer = [first.setdefault(pair, k) for k, pair in enumerate(pairs)]
        if finer == places:
            return _with_one_of_each(loop, twins, places), places
        places, rounds = finer, rounds + 1
    return loop, range(len(states))


def _with_one_of_each(loop: Loop, twins: dict[Value, Value], places: Sequence[int]) -> Loop:
    consts, states, _ = loop.inputs
    body = _replace_operands(loop.body.body, twins)
    outputs = [twins.get(v, v) for v in loop.body.outputs]
    if loop.test is not None:
        mine = dict(zip(states, loop.test.inputs[len(consts) :], strict=True))
        same = {mine[a]: mine[b] for a, b in twins.items()}
        test = loop.test
        ends = [same.get(v, v) for v in test.outputs]
        loop = replace(
            loop, test=Graph(test.inputs, _replace_operands(test.body, same), ends, test.name)
        )
    graph = Graph(loop.body.inputs, body, outputs, loop.body.name)
    fixed = list(zip(loop.consts, consts, strict=True))
    kept = [k for k, place in enumerate(places) if k == place]
    return replace(loop, body=graph).with_operands(fixed, kept)


def _is_elementwise(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.elementwise


def _fills_stacks(loop: Loop) -> bool:
    """Return whether each stack of a loop has a row from each iteration, and no others."""
    rest = dict(loop.rest)
    return loop.test is None and not rest.get("counted") and rest.get("length") is not TRIPS


def _is_free(eqn: Equation) -> bool:
    """Return whether recomputing the results costs nothing."""
    return isinstance(eqn.op, Primitive) and (eqn.op.is_view or eqn.op.literal)


def _alike(one: Any, other: Any) -> bool:
    """Return whether both are numbers with equal bits."""
    return one is not None and bits(one) == bits(other)


def _literal(number: Any, value: Value) -> Equation:
    type: TensorType = value.type
    params = [("value", number), ("shape", type.shape), ("dtype", type.dtype)]
    return Equation(full, (), freeze_all(params), (value,))


def _with_known(loop: Loop, made: Sequence[Equation], twins: dict[Value, Value]) -> Graph:
    """Return the test with the constants and merged operands of the body."""
    assert loop.test is not None
    consts, _, _ = loop.inputs
    mine = dict(zip(consts, loop.test.inputs, strict=False))
    literals = [_literal(e.kwargs["value"], mine[e.output]) for e in made if e.output in mine]
    renamed = {mine[a]: mine[b] for a, b in twins.items() if a in mine}
    body = [*literals, *_replace_operands(loop.test.body, renamed)]
    outputs = [renamed.get(v, v) for v in loop.test.outputs]
    return Graph(loop.test.inputs, body, outputs, loop.test.name)


def _replace_operands(body: Iterable[Equation], moved: dict[Value, Value]) -> list[Equation]:
    """Return the equations with operands replaced according to `moved`."""
    if not moved:
        return list(body)
    return [
        Equation(e.op, tuple([moved.get(v, v) for v in e.inputs]), e.params, e.outputs, e.source)
        for e in body
    ]
