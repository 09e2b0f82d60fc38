"""Forward-mode rules of branches and loops: tangents are carried beside the primal values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from primgraph.ir.graph import Graph, Value
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import Regions, cond, scan, while_loop
from primgraph.transforms.dataflow.activity import active_inputs, reached_values
from primgraph.transforms.linearize import Tangents, linearize
from primgraph.transforms.optimize.edits import dead_code


class _Joint(NamedTuple):
    """A linearized body, with `tangents` by input position and `results` by output position.

    Values without a tangent have no entry.
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
        *_interleave(given, seeds, consts, carries),
        body=dead_code(both),
        consts=consts + sum(i < consts for i in active),
        carries=carries + sum(consts <= i < consts + carries for i in active),
        length=length,
        reverse=reverse,
        counted=counted,
    )
    return _result_tangents(found, joint.results, carries, len(body.outputs))


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
        _interleave(test.inputs, ignored, consts, carries), test.body, test.outputs, test.name
    )
    seeds = {i: tangents[i] if i in tangents else zeros_like(inputs[i]) for i in active}
    found = while_loop(
        *_interleave(inputs, seeds, consts, carries),
        test=asked,
        body=dead_code(both),
        consts=consts + sum(i < consts for i in active),
        limit=limit,
    )
    end = carries + sum(k < carries for k in joint.results)
    picked = _result_tangents(
        (*found[:end], *found[end + 1 :]), joint.results, carries, len(body.outputs)
    )
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
    joints = [_linearize_body(branch, sorted(dx), turned) for branch in branches]
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


def _linearized_loop(
    body: Graph, present: Collection[int], turned: bool, consts: int, carries: int
) -> _Joint:
    """Linearize the body by the inputs that have a tangent in some iteration.

    Inputs whose tangents are zero because of steps without a derivative are left out. A carry that
    has a tangent keeps it, as zeros, even if an iteration overwrites the carry.
    """
    active = active_inputs(Regions.from_loop_body(body, consts, carries), present)
    while True:
        joint = _linearize_body(body, active, turned)
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


def _linearize_body(body: Graph, active: Sequence[int], turned: bool) -> _Joint:
    """Linearize the body by the inputs `active`; `results` is filled in later."""
    graph = linearize(body, active, role="cotangent" if turned else "tangent", closed=False)
    seeds = graph.inputs[len(body.inputs) :]
    return _Joint(graph, dict(zip(active, seeds, strict=True)), {})


def _ends(body: Graph, joint: _Joint, positions: Collection[int]) -> set[int]:
    """Return the positions of outputs whose tangents depend on those of the inputs at `positions`.

    An independent tangent that is not a known zero would be a constant in the transposed body. Its
    sum with a linear term would not be linear.
    """
    found = reached_values(joint.graph.body, [joint.tangents[i] for i in sorted(positions)])
    return {k for k, d in _slopes(body, joint.graph).items() if d in found}


def _slopes(body: Graph, joint: Graph) -> dict[int, Value]:
    """Return the tangents of the inexact outputs of `body` in its linearized graph."""
    floats = [k for k, v in enumerate(body.outputs) if v.type.is_inexact]
    return dict(zip(floats, joint.outputs[len(body.outputs) :], strict=True))


def _with_tangents(body: Graph, joint: _Joint, consts: int, carries: int) -> Graph:
    """Return the joint body: each group of inputs and outputs is followed by its tangents."""
    return Graph(
        _interleave(body.inputs, joint.tangents, consts, carries),
        joint.graph.body,
        _interleave(joint.graph.outputs[: len(body.outputs)], joint.results, 0, carries),
        body.name,
    )


def _interleave(
    values: Sequence[Value], tangents: Mapping[int, Value], consts: int, carries: int
) -> list[Value]:
    """Concatenate constants, carries and the rest, each group followed by its tangents."""
    begin = consts + carries
    groups = (range(consts), range(consts, begin), range(begin, len(values)))
    found: list[Value] = []
    for group in groups:
        found += [values[i] for i in group]
        found += [tangents[i] for i in group if i in tangents]
    return found


def _result_tangents(
    found: Sequence[Value], results: Mapping[int, Value], carries: int, count: int
) -> list[Value | None]:
    """Return the tangents among the results of a joint loop, by output position."""
    picked: dict[int, Value] = {}
    at = 0
    for group in (range(carries), range(carries, count)):
        at += len(group)
        for k in group:
            if k in results:
                picked[k] = found[at]
                at += 1
    return [picked.get(k) for k in range(count)]
