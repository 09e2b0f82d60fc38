"""Makes one of two loops, or branches, of which one does all that the other does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import forward_slice
from primgraph.primitives.control import CONTROL, checkpoint, cond
from primgraph.transforms.optimize.join_checkpoints import CANDIDATES
from primgraph.transforms.optimize.simplify_loops import Loop


def joined(graph: Graph) -> Graph:
    """The same graph, where a loop that carries all that another one does gives its results, too.

    Such ones are there twice after differentiation: as they were, and with tangents or residuals.
    Branches by one number become one equation.
    """
    groups: dict[object, list[Equation]] = {}
    for eqn in graph.body:
        if eqn.op in CONTROL and eqn.op is not checkpoint:
            groups.setdefault(_key(eqn), []).append(eqn)
    waiting = [group for group in groups.values() if len(group) > 1]
    if not waiting:
        return graph
    moved: dict[Value, Value] = {}
    body = list(graph.body)
    for group in waiting:
        while len(group) > 1:
            last = group.pop()
            for k, first in enumerate(group):
                found = _as_one(body, first, last)
                if found is not None:
                    group[k], same = found
                    moved.update(same)
                    body, renewed = _replaced(body, first, last, group[k], same)
                    for others in waiting:
                        others[:] = [renewed.get(eqn, eqn) for eqn in others]
                    break
    return Graph(graph.inputs, body, [_end(moved, v) for v in graph.outputs], graph.name)


# An equation that takes the place of two, and which of its results stand for which of theirs.
Joined: TypeAlias = tuple[Equation, dict[Value, Value]]


def _end(moved: dict[Value, Value], value: Value) -> Value:
    while value in moved:
        value = moved[value]
    return value


def _key(eqn: Equation) -> object:
    """What equations have in common of which one may do what the other does."""
    if eqn.op is cond:
        return eqn.op.name, eqn.inputs[0], len(eqn.kwargs["branches"])
    loop = Loop.of(eqn)
    return eqn.op.name, loop.trips, bits(loop.rest)


def _as_one(body: Sequence[Equation], first: Equation, last: Equation) -> Joined | None:
    """Both in one equation; None where one needs what the other gives, or does something else."""
    for one, other in ((first, last), (last, first)):
        if not forward_slice(body, one.outputs).isdisjoint(other.inputs):
            return None
    if first.op is cond:
        return _one_choice(first, last), {}
    loop, twin = Loop.of(first), Loop.of(last)
    return _covering(twin, loop) or _covering(loop, twin)


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
    return Equation(cond, (index, *operands), params, outputs, last.source)


def _covering(one: Loop, other: Loop) -> Joined | None:
    """`one`, if it carries all that `other` does, with what that gives beside."""
    places = _places(one.init, other.init)
    if places is None:
        return None
    builder = Builder(one.body.name, source=NOWHERE)
    known = {v: builder.input(v.type) for v in dict.fromkeys((*one.consts, *other.consts))}
    states = [builder.input(v.type) for v in one.init]
    rows: dict[Value, Value] = {}
    for loop in (one, other):
        for stack, row in zip(loop.xs, loop.inputs[2], strict=True):
            if stack not in rows:
                rows[stack] = builder.input(row.type)

    def given(loop: Loop, carried: Sequence[Value]) -> list[Value]:
        return [*[known[v] for v in loop.consts], *carried, *[rows[v] for v in loop.xs]]

    mapped = [states[k] for k in places]
    found = builder.inline(one.body, given(one, states))
    more = _inlined(builder, other.body, given(other, mapped))
    if any(found[k] is not v for k, v in zip(places, more, strict=False)):
        return None
    carries, test = len(states), None
    if one.test is not None and other.test is not None:
        fixed = list(known.values())
        asking = Builder(one.test.name, source=NOWHERE)
        for value in (*fixed, *states):
            asking.share_input(value)
        (end,) = asking.inline(one.test, given(one, states))
        (twin,) = asking.inline(other.test, given(other, mapped))
        if end is not twin:
            return None
        test = asking.graph([end])
    stacked = [*found[carries:], *more[len(places) :]]
    inputs = [*known.values(), *states, *rows.values()]
    made = replace(
        one,
        consts=tuple(known),
        xs=tuple(rows),
        body=Graph(inputs, builder.body, [*found[:carries], *stacked], one.body.name),
        test=test,
        stacked=(*one.stacked, *other.stacked),
    )
    same = {v: one.carried[k] for k, v in zip(places, other.carried, strict=True)}
    same.update(zip(other.count, one.count, strict=True))
    return made.equation(), same


def _inlined(builder: Builder, graph: Graph, given: Sequence[Value]) -> list[Value]:
    """`builder.inline`, but for checkpoints that are there already, with more results.

    Of loops that are made one, one may have lost results of its checkpoints that it does not need.
    """
    moved = dict(zip(graph.inputs, given, strict=True))
    there = [eqn for eqn in builder.body if eqn.op is checkpoint]
    for eqn in graph.body:
        inputs = tuple([moved[v] for v in eqn.inputs])
        found = None
        if eqn.op is checkpoint:
            made = (_among(first, eqn, inputs) for first in there[:CANDIDATES])
            found = next((results for results in made if results is not None), None)
        outputs = builder.copy(eqn, inputs) if found is None else found
        moved.update(zip(eqn.outputs, outputs, strict=True))
    return [moved[v] for v in graph.outputs]


def _among(first: Equation, eqn: Equation, inputs: Sequence[Value]) -> list[Value] | None:
    """Which results of `first` those of `eqn`, with these operands, are; None if some are not."""
    one, other = first.bodies[0], eqn.bodies[0]
    if one.name != other.name or not set(inputs) <= set(first.inputs):
        return None
    builder = Builder(one.name, source=NOWHERE)
    made = {v: builder.input(v.type) for v in dict.fromkeys(first.inputs)}
    ends = builder.inline(one, [made[v] for v in first.inputs])
    found = builder.inline(other, [made[v] for v in inputs])
    # Loops in them, too, may be there with more and with fewer results.
    both = joined(builder.graph([*ends, *found])).outputs
    places = dict(zip(both, first.outputs, strict=False))
    more = both[len(ends) :]
    return [places[v] for v in more] if places.keys() >= set(more) else None


def _places(ours: Sequence[Value], theirs: Sequence[Value]) -> list[int] | None:
    """For each of `theirs` its place among `ours`, the first one that is not taken yet."""
    free = list(enumerate(ours))
    places = []
    for value in theirs:
        at = next((n for n, (_, v) in enumerate(free) if v is value), None)
        if at is None:
            return None
        places.append(free.pop(at)[0])
    return places


def _replaced(
    body: Sequence[Equation],
    first: Equation,
    last: Equation,
    made: Equation,
    same: dict[Value, Value],
) -> tuple[list[Equation], dict[Equation, Equation]]:
    """The equations with `made` for two of them; what stood between and needs it comes behind.

    And what has become of those that have taken results of either.
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
