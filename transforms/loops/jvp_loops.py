"""Forward mode through branches and loops: the same ones, with tangents beside what they carry."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from primgraph.ir.graph import Graph, Value
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import cond, scan, while_loop
from primgraph.transforms.dataflow.activity import depending, reached
from primgraph.transforms.linearize import Tangents, linearize
from primgraph.transforms.optimize.dead_code import dead_code


class _Joint(NamedTuple):
    """A linearized body: `tangents` are those of inputs, `results` those of outputs, by position.

    Only what has a tangent is among them.
    """

    graph: Graph
    tangents: dict[int, Value]
    results: dict[int, Value]


@scan.pushforward
def _scan_pushforward(
    inputs: Sequence[Value],
    tangents: Mapping[int, Value],
    turned: bool,
    *,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> Tangents:
    given = inputs[counted:]
    dx = {i - counted: d for i, d in tangents.items()}
    joint = _linearized_loop(body, dx, turned, consts, carries)
    active = sorted(joint.tangents)
    both = _with_tangents(body, joint, consts, carries)
    seeds = {i: dx[i] if i in dx else zeros_like(given[i]) for i in active}
    found = scan(
        *inputs[:counted],
        *_beside(given, seeds, consts, carries),
        body=dead_code(both),
        consts=consts + sum(i < consts for i in active),
        carries=carries + sum(consts <= i < consts + carries for i in active),
        length=length,
        reverse=reverse,
        counted=counted,
    )
    return _picked(found, joint.results, carries, len(body.outputs))


@while_loop.pushforward
def _while_pushforward(
    inputs: Sequence[Value],
    tangents: Mapping[int, Value],
    turned: bool,
    *,
    test: Graph,
    body: Graph,
    consts: int,
    limit: int | None,
) -> Tangents:
    carries = len(inputs) - consts
    joint = _linearized_loop(body, tangents, turned, consts, carries)
    active = sorted(joint.tangents)
    both = _with_tangents(body, joint, consts, carries)
    ignored = {i: Value(inputs[i].type) for i in active}
    asked = Graph(
        _beside(test.inputs, ignored, consts, carries), test.body, test.outputs, test.name
    )
    seeds = {i: tangents[i] if i in tangents else zeros_like(inputs[i]) for i in active}
    found = while_loop(
        *_beside(inputs, seeds, consts, carries),
        test=asked,
        body=dead_code(both),
        consts=consts + sum(i < consts for i in active),
        limit=limit,
    )
    end = carries + sum(k < carries for k in joint.results)
    picked = _picked((*found[:end], *found[end + 1 :]), joint.results, carries, len(body.outputs))
    return [*picked[:carries], None, *picked[carries:]]


@cond.pushforward
def _cond_pushforward(
    inputs: Sequence[Value],
    tangents: Mapping[int, Value],
    turned: bool,
    *,
    branches: tuple[Graph, ...],
) -> Tangents:
    index, *operands = inputs
    dx = {i - 1: d for i, d in tangents.items()}
    joints = [_linearized(branch, sorted(dx), turned) for branch in branches]
    ends = [_ends(b, joint, dx) for b, joint in zip(branches, joints, strict=True)]
    active = sorted(set().union(*ends))
    if not active:
        return [None] * len(branches[0].outputs)
    count = len(branches[0].outputs)
    both = []
    for branch, joint in zip(branches, joints, strict=True):
        slopes = _slopes(branch, joint.graph)
        outputs = [*joint.graph.outputs[:count], *[slopes[k] for k in active]]
        both.append(dead_code(Graph(joint.graph.inputs, joint.graph.body, outputs, branch.name)))
    found = cond(index, *operands, *[dx[i] for i in sorted(dx)], branches=tuple(both))
    by_place = dict(zip(active, found[count:], strict=True))
    return [by_place.get(k) for k in range(count)]


def with_carries(body: Graph, present: Collection[int], consts: int, carries: int) -> list[int]:
    """The positions of what has a tangent in some trip, of those that have one in the first."""
    active = set(present)
    while True:
        ahead = depending(body, [body.inputs[i] for i in sorted(active)])
        more = {consts + k for k in range(carries) if body.outputs[k] in ahead}
        if more <= active:
            return sorted(active)
        active |= more


def _linearized_loop(
    body: Graph, present: Collection[int], turned: bool, consts: int, carries: int
) -> _Joint:
    """The body with tangents of the inputs that have one in some trip.

    What depends on others may do so by steps that have no slope: its tangent would be zero in
    each trip, and is left out. A carry that has a tangent keeps it, as zeros, where a trip forgets
    the carry.
    """
    active = with_carries(body, present, consts, carries)
    while True:
        joint = _linearized(body, active, turned)
        needed = set(present)
        while True:
            ends = _ends(body, joint, needed)
            more = {consts + k for k in ends if k < carries}
            if more <= needed:
                break
            needed |= more
        if needed.issuperset(active):
            break
        active = sorted(needed)
    slopes = _slopes(body, joint.graph)
    ends |= {i - consts for i in active if consts <= i < consts + carries}
    return joint._replace(results={k: d for k, d in slopes.items() if k in ends})


def _linearized(body: Graph, active: Sequence[int], turned: bool) -> _Joint:
    """The body with tangents of the inputs `active`; those of outputs are not sorted out yet."""
    graph = linearize(body, active, role="cotangent" if turned else "tangent", closed=False)
    seeds = graph.inputs[len(body.inputs) :]
    return _Joint(graph, dict(zip(active, seeds, strict=True)), {})


def _ends(body: Graph, joint: _Joint, positions: Collection[int]) -> set[int]:
    """The positions of outputs whose tangents depend on those of the inputs at `positions`.

    A zero that is not known to be one would be a constant where the tangents are transposed, and
    the sum of it and of what is linear is not linear.
    """
    found = reached(joint.graph.body, [joint.tangents[i] for i in sorted(positions)])
    return {k for k, d in _slopes(body, joint.graph).items() if d in found}


def _slopes(body: Graph, joint: Graph) -> dict[int, Value]:
    """The tangents of the float outputs of `body` in what `linearize` has made of it."""
    floats = [k for k, v in enumerate(body.outputs) if v.type.is_inexact]
    return dict(zip(floats, joint.outputs[len(body.outputs) :], strict=True))


def _with_tangents(body: Graph, joint: _Joint, consts: int, carries: int) -> Graph:
    """The body that computes both: each group of inputs and outputs has its tangents behind it."""
    return Graph(
        _beside(body.inputs, joint.tangents, consts, carries),
        joint.graph.body,
        _beside(joint.graph.outputs[: len(body.outputs)], joint.results, 0, carries),
        body.name,
    )


def _beside(
    values: Sequence[Value], tangents: Mapping[int, Value], consts: int, carries: int
) -> list[Value]:
    """Constants, carries and the rest, each group with its tangents behind it."""
    begin = consts + carries
    groups = (range(consts), range(consts, begin), range(begin, len(values)))
    found: list[Value] = []
    for group in groups:
        found += [values[i] for i in group]
        found += [tangents[i] for i in group if i in tangents]
    return found


def _picked(
    found: Sequence[Value], results: Mapping[int, Value], carries: int, count: int
) -> list[Value | None]:
    """The tangents among the results of a loop that has them behind what they are of."""
    picked: dict[int, Value] = {}
    at = 0
    for group in (range(carries), range(carries, count)):
        at += len(group)
        for k in group:
            if k in results:
                picked[k] = found[at]
                at += 1
    return [picked.get(k) for k in range(count)]
