"""Merging of loops and branches that compute the same carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import forward_slice
from primgraph.primitives.control import Flow, flow_of
from primgraph.transforms.optimize.join_checkpoints import CANDIDATES
from primgraph.transforms.optimize.loop_parts import Loop


def merge_loops(graph: Graph) -> Graph:
    """Merge a loop into another loop that computes all its carries.

    Differentiation creates such pairs: the primal loop, and one with tangents or residuals.
    Branches with the same index are merged into one equation. Each equation is compared with at
    most `CANDIDATES` others.
    """
    groups: dict[object, list[Equation]] = {}
    for eqn in graph.body:
        if flow_of(eqn) not in (None, Flow.ONCE):
            groups.setdefault(_key(eqn), []).append(eqn)
    waiting = [_Group(group) for group in groups.values() if len(group) > 1]
    if not waiting:
        return graph
    moved: dict[Value, Value] = {}
    body = _Body(graph.body)
    for group in waiting:
        while len(group.eqns) > 1:
            last = group.eqns.pop()
            for k in group.candidates(last):
                first = group.eqns[k]
                found = _as_one(body, first, last)
                if found is not None:
                    made, same = found
                    group.put(k, made)
                    moved.update(same)
                    equations, renewed = _replace_pair(body.equations, first, last, made, same)
                    body = _Body(equations)
                    for others in waiting:
                        others.renew(renewed)
                    break
    outputs = [_end(moved, v) for v in graph.outputs]
    return Graph(graph.inputs, body.equations, outputs, graph.name)


@final
class _Body:
    """Equations, their places, and those that are views, by result."""

    def __init__(self, equations: Sequence[Equation]) -> None:
        self.equations = equations
        self.places = {eqn: k for k, eqn in enumerate(equations)}
        self.views = {v: e for e in equations if _is_view(e) for v in e.outputs}

    def depends(self, one: Equation, other: Equation) -> bool:
        """Return whether the later one of two equations depends on the other one."""
        first, last = sorted((self.places[one], self.places[other]))
        between = self.equations[first:last]
        found = forward_slice(between, self.equations[first].outputs)
        return not found.isdisjoint(self.equations[last].inputs)


@final
class _Group:
    """Equations that may be merged, with an index by the initial values of their carries.

    Only loops that share such a value are merged, or where one of them has no carries.
    """

    def __init__(self, eqns: Sequence[Equation]) -> None:
        self.eqns = list(eqns)
        self.by_init: dict[Value, dict[int, None]] = {}
        self.without: dict[int, None] = {}
        self.place: dict[Equation, int] = {}
        for k, eqn in enumerate(eqns):
            self.put(k, eqn)

    def put(self, k: int, eqn: Equation) -> None:
        self.eqns[k] = eqn
        self.place[eqn] = k
        init = _init(eqn)
        for v in init:
            self.by_init.setdefault(v, {})[k] = None
        if not init:
            self.without[k] = None

    def renew(self, renewed: dict[Equation, Equation]) -> None:
        for eqn, plain in renewed.items():
            k = self.place.get(eqn)
            if k is not None and k < len(self.eqns) and self.eqns[k] is eqn:
                self.put(k, plain)

    def candidates(self, last: Equation) -> list[int]:
        """Return the places of equations that `last` may be merged with."""
        init = _init(last)
        if not init:
            return list(range(len(self.eqns)))[:CANDIDATES]
        near = [self.by_init.get(v, {}) for v in init]
        found = {k for places in (*near, self.without) for k in places if k < len(self.eqns)}
        return sorted(found)[:CANDIDATES]


def _init(eqn: Equation) -> tuple[Value, ...]:
    """Return the initial values of the carries of a loop; none for a branch."""
    return () if flow_of(eqn) is Flow.CHOICE else Loop.from_equation(eqn).init


# An equation that replaces two, and the map from replaced results to its own.
Joined: TypeAlias = tuple[Equation, dict[Value, Value]]


def _end(moved: dict[Value, Value], value: Value) -> Value:
    while value in moved:
        value = moved[value]
    return value


def _key(eqn: Equation) -> object:
    """Return the key that equations must share to be merged."""
    if flow_of(eqn) is Flow.CHOICE:
        return eqn.op.name, eqn.inputs[0], len(eqn.kwargs["branches"])
    loop = Loop.from_equation(eqn)
    return eqn.op.name, loop.trips, bits(loop.rest)


def _as_one(body: _Body, first: Equation, last: Equation) -> Joined | None:
    """Merge two equations; None if one depends on the other, or if they differ."""
    if body.depends(first, last):
        return None
    if flow_of(first) is Flow.CHOICE:
        return _one_choice(first, last), {}
    loop, twin = Loop.from_equation(first), Loop.from_equation(last)
    loop, twin = _sink_views(loop, twin, body.views), _sink_views(twin, loop, body.views)
    return _add_stacks(twin, loop) or _add_stacks(loop, twin)


def _is_view(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.is_view and len(eqn.inputs) == 1


def _sink_views(loop: Loop, other: Loop, views: dict[Value, Equation]) -> Loop:
    """Compute constants of `loop` that are views of constants of `other` in its body.

    Partial evaluation leaves views of constants before the loop with residuals, while the primal
    loop has them in its body.
    """
    theirs = set(other.consts)
    read = set() if loop.test is None else {v for e in loop.test.body for v in e.inputs}
    tested = () if loop.test is None else loop.test.inputs
    fixed: dict[Value, Value] = {}
    chains: list[tuple[list[Equation], Value]] = []
    for k, (value, inner) in enumerate(zip(loop.consts, loop.inputs[0], strict=True)):
        chain: list[Equation] = []
        start = value
        while start not in theirs and start in views:
            chain.append(views[start])
            start = views[start].inputs[0]
        if chain and start in theirs and not (tested and tested[k] in read):
            chains.append((chain, inner))
        else:
            fixed[value] = inner
    if not chains:
        return loop
    made: list[Equation] = []
    for chain, inner in chains:
        start = chain[-1].inputs[0]
        here = fixed.setdefault(start, Value(start.type, start.hint))
        for eqn in reversed(chain):
            out = inner if eqn is chain[0] else Value(eqn.output.type)
            made.append(Equation(eqn.op, (here,), eqn.params, (out,), eqn.source))
            here = out
    return loop.with_operands(list(fixed.items()), body=[*made, *loop.body.body])


def _one_choice(first: Equation, last: Equation) -> Equation:
    index = first.inputs[0]
    operands = [*dict.fromkeys((*first.inputs[1:], *last.inputs[1:]))]
    branches = []
    for one, other in zip(first.kwargs["branches"], last.kwargs["branches"], strict=True):
        builder = Builder(one.name, source=NOWHERE)
        made = {v: builder.input(v.type) for v in operands}
        ends: list[Value] = []
        for eqn, branch in ((first, one), (last, other)):
            ends += builder.inline(branch, [made[v] for v in eqn.inputs[1:]])
        branches.append(builder.graph(ends))
    params = freeze_all([("branches", tuple(branches))])
    outputs = (*first.outputs, *last.outputs)
    return Equation(first.op, (index, *operands), params, outputs, _first_written(first, last))


def _first_written(one: Equation, other: Equation) -> Source | None:
    """Return the source of lower order of derivative: derivatives read what the other computes."""
    sources = [s for s in (one.source, other.source) if s is not None]
    return min(sources, key=lambda s: s.order, default=None)


def _add_stacks(one: Loop, other: Loop) -> Joined | None:
    """Add the stacks of `other` to `one` if `one` carries all carries of `other`; else None."""
    places = _places(one.init, other.init)
    if places is None:
        return None
    builder = Builder(one.body.name, source=NOWHERE)
    known: dict[Value, Value] = {}
    rows: dict[Value, Value] = {}
    states = [_input_like(builder, v) for v in one.inputs[1]]
    for loop in (one, other):
        consts, _, xs = loop.inputs
        for found, outer, inner in ((known, loop.consts, consts), (rows, loop.xs, xs)):
            for value, like in zip(outer, inner, strict=True):
                if value not in found:
                    found[value] = _input_like(builder, like)

    def loop_operands(loop: Loop, carried: Sequence[Value]) -> list[Value]:
        return [*[known[v] for v in loop.consts], *carried, *[rows[v] for v in loop.xs]]

    mapped = [states[k] for k in places]
    results = builder.inline(one.body, loop_operands(one, states))
    more = _inline_body(builder, other.body, loop_operands(other, mapped))
    if any(results[k] is not v for k, v in zip(places, more, strict=False)):
        return None
    carries, test = len(states), None
    if one.test is not None and other.test is not None:
        fixed = list(known.values())
        asking = Builder(one.test.name, source=NOWHERE)
        for value in (*fixed, *states):
            asking.share_input(value)
        (end,) = asking.inline(one.test, loop_operands(one, states))
        (twin,) = asking.inline(other.test, loop_operands(other, mapped))
        if end is not twin:
            return None
        test = asking.graph([end])
    stacked = [*results[carries:], *more[len(places) :]]
    inputs = [*known.values(), *states, *rows.values()]
    made = replace(
        one,
        consts=tuple(known),
        xs=tuple(rows),
        body=Graph(inputs, builder.body, [*results[:carries], *stacked], one.body.name),
        test=test,
        stacked=(*one.stacked, *other.stacked),
    )
    same = {v: one.carried[k] for k, v in zip(places, other.carried, strict=True)}
    same.update(zip(other.count, one.count, strict=True))
    eqn, source = made.equation(), _first_written(one.eqn, other.eqn)
    return Equation(eqn.op, eqn.inputs, eqn.params, eqn.outputs, source), same


def _input_like(builder: Builder, value: Value) -> Value:
    """Add an input of the type and the name of `value`."""
    made = Value(value.type, value.hint)
    builder.share_input(made)
    return made


def _inline_body(builder: Builder, graph: Graph, given: Sequence[Value]) -> list[Value]:
    """Inline `graph`, reusing checkpoints of the builder that have more results.

    One of the merged loops may have lost checkpoint results that it does not need.
    """
    moved = dict(zip(graph.inputs, given, strict=True))
    there = [eqn for eqn in builder.body if flow_of(eqn) is Flow.ONCE]
    for eqn in graph.body:
        inputs = tuple([moved[v] for v in eqn.inputs])
        found = None
        if flow_of(eqn) is Flow.ONCE:
            made = (_among(first, eqn, inputs) for first in there[:CANDIDATES])
            found = next((results for results in made if results is not None), None)
        outputs = builder.copy(eqn, inputs) if found is None else found
        moved.update(zip(eqn.outputs, outputs, strict=True))
    return [moved[v] for v in graph.outputs]


def _among(first: Equation, eqn: Equation, inputs: Sequence[Value]) -> list[Value] | None:
    """Return the results of `first` that equal those of `eqn` with these operands, or None."""
    one, other = first.bodies[0], eqn.bodies[0]
    if one.name != other.name or not set(inputs) <= set(first.inputs):
        return None
    builder = Builder(one.name, source=NOWHERE)
    made = {v: builder.input(v.type) for v in dict.fromkeys(first.inputs)}
    ends = builder.inline(one, [made[v] for v in first.inputs])
    found = builder.inline(other, [made[v] for v in inputs])
    # Loops in the bodies may also differ by unused results.
    both = merge_loops(builder.graph([*ends, *found])).outputs
    places = dict(zip(both, first.outputs, strict=False))
    more = both[len(ends) :]
    return [places[v] for v in more] if places.keys() >= set(more) else None


def _places(ours: Sequence[Value], theirs: Sequence[Value]) -> list[int] | None:
    """Map each of `theirs` to a distinct position of an equal value in `ours`, or return None."""
    free = list(enumerate(ours))
    places = []
    for value in theirs:
        at = next((n for n, (_, v) in enumerate(free) if v is value), None)
        if at is None:
            return None
        places.append(free.pop(at)[0])
    return places


def _replace_pair(
    body: Sequence[Equation],
    first: Equation,
    last: Equation,
    made: Equation,
    same: dict[Value, Value],
) -> tuple[list[Equation], dict[Equation, Equation]]:
    """Replace `first` and `last` by `made`; dependent equations in between are moved after it.

    Also return the map from rewritten equations to new ones.
    """
    renewed: dict[Equation, Equation] = {}
    ends = {first, last}
    late = {*made.outputs, *same}
    waiting: list[Equation] = []
    found: list[Equation] = []
    for eqn in body:
        if eqn in ends:
            ends.remove(eqn)
            if not ends:
                found += [made, *waiting]
            continue
        if not same.keys().isdisjoint(eqn.inputs):
            inputs = tuple([same.get(v, v) for v in eqn.inputs])
            plain = Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source)
            renewed[eqn] = plain
        else:
            plain = eqn
        if ends and not late.isdisjoint(eqn.inputs):
            late.update(eqn.outputs)
            waiting.append(plain)
        else:
            found.append(plain)
    return found, renewed
