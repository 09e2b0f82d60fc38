"""Taylor mode through branches and loops: the same, with coefficients beside what they carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.ir.graph import Graph, Value
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.transforms.analysis.activity import reached
from primgraph.transforms.control.forward import with_carries
from primgraph.transforms.optimize.dead_code import dead_code

# The coefficients of operands or results, from the first on, by position.
Coefficients: TypeAlias = Mapping[int, Sequence[Value]]


# From a body and positions of its inputs to the body with all coefficients of these, and of all
# float outputs behind the outputs.
Expand: TypeAlias = Callable[[Graph, Sequence[int]], Graph]


class _Body(NamedTuple):
    """A body with coefficients: those of inputs, and those of outputs, by position.

    `moving` has the positions of outputs whose coefficients depend on those of inputs.
    """

    graph: Graph
    given: dict[int, Sequence[Value]]
    results: dict[int, Sequence[Value]]
    moving: list[int]


@scan.expansion
def _scan_expansion(
    expand: Expand,
    inputs: Sequence[Value],
    moving: Coefficients,
    order: int,
    *,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> Coefficients:
    given = {i - counted: c for i, c in moving.items()}
    inner = _of_loop(expand, body, order, given, consts, carries)
    seeds = _seeds(inputs[counted:], given, inner, order)
    found = scan(
        *inputs[:counted],
        *_beside(inputs[counted:], seeds, consts, carries),
        body=_both(body, inner, consts, carries),
        consts=consts + order * sum(i < consts for i in seeds),
        carries=carries + order * sum(consts <= i < consts + carries for i in seeds),
        length=length,
        reverse=reverse,
        counted=counted,
    )
    return _picked(found, inner.results, carries, len(body.outputs), order)


@while_loop.expansion
def _while_expansion(
    expand: Expand,
    inputs: Sequence[Value],
    moving: Coefficients,
    order: int,
    *,
    test: Graph,
    body: Graph,
    consts: int,
    limit: int | None,
) -> Coefficients:
    carries = len(inputs) - consts
    inner = _of_loop(expand, body, order, moving, consts, carries)
    seeds = _seeds(inputs, moving, inner, order)
    ignored = {i: [Value(v.type) for v in c] for i, c in seeds.items()}
    asked = Graph(
        _beside(test.inputs, ignored, consts, carries), test.body, test.outputs, test.name
    )
    found = while_loop(
        *_beside(inputs, seeds, consts, carries),
        test=asked,
        body=_both(body, inner, consts, carries),
        consts=consts + order * sum(i < consts for i in seeds),
        limit=limit,
    )
    end = carries + order * sum(k < carries for k in inner.results)
    stacked = (*found[:end], *found[end + 1 :])
    picked = _picked(stacked, inner.results, carries, len(body.outputs), order)
    # The number of trips is a result, too.
    return {k + (k >= carries): c for k, c in picked.items()}


@cond.expansion
def _cond_expansion(
    expand: Expand,
    inputs: Sequence[Value],
    moving: Coefficients,
    order: int,
    *,
    branches: tuple[Graph, ...],
) -> Coefficients:
    index, *operands = inputs
    given = {i - 1: c for i, c in moving.items()}
    inner = [_expanded(expand, branch, order, sorted(given)) for branch in branches]
    ends = sorted({k for b in inner for k in b.moving})
    if not ends:
        return {}
    count = len(branches[0].outputs)
    both = []
    for branch in inner:
        more = [v for k in ends for v in branch.results[k]]
        graph = branch.graph
        both.append(dead_code(graph.with_outputs([*graph.outputs[:count], *more])))
    seeds = [v for i in sorted(given) for v in given[i]]
    found = cond(index, *operands, *seeds, branches=tuple(both))
    return {k: found[count + n * order :][:order] for n, k in enumerate(ends)}


@checkpoint.expansion
def _checkpoint_expansion(
    expand: Expand, inputs: Sequence[Value], moving: Coefficients, order: int, *, body: Graph
) -> Coefficients:
    """The coefficients by a checkpoint of their own, which becomes one with that of the values."""
    inner = _expanded(expand, body, order, sorted(moving))
    ends = inner.moving
    if not ends:
        return {}
    graph = dead_code(inner.graph.with_outputs([v for k in ends for v in inner.results[k]]))
    found = checkpoint(*inputs, *[v for i in sorted(moving) for v in moving[i]], body=graph)
    return {k: found[n * order :][:order] for n, k in enumerate(ends)}


def _expanded(expand: Expand, body: Graph, order: int, active: Sequence[int]) -> _Body:
    graph = expand(body, active)
    floats = [k for k, v in enumerate(body.outputs) if v.type.is_inexact]
    given = _chunks(active, graph.inputs[len(body.inputs) :], order)
    results = _chunks(floats, graph.outputs[len(body.outputs) :], order)
    ahead = reached(graph.body, [v for values in given.values() for v in values])
    moving = [k for k, values in results.items() if not ahead.isdisjoint(values)]
    return _Body(graph, given, results, moving)


def _chunks(
    places: Sequence[int], values: Sequence[Value], order: int
) -> dict[int, Sequence[Value]]:
    return {i: values[n * order :][:order] for n, i in enumerate(places)}


def _of_loop(
    expand: Expand, body: Graph, order: int, given: Coefficients, consts: int, carries: int
) -> _Body:
    """The body with coefficients of all that moves in some trip.

    A carry that does keeps its coefficients, as zeros, where a trip forgets it.
    """
    active = with_carries(body, list(given), consts, carries)
    inner = _expanded(expand, body, order, active)
    kept = {i - consts for i in active if consts <= i < consts + carries}
    results = {k: c for k, c in inner.results.items() if k in kept or k in inner.moving}
    return inner._replace(results=results)


def _seeds(
    inputs: Sequence[Value], given: Coefficients, inner: _Body, order: int
) -> dict[int, Sequence[Value]]:
    """The coefficients that a loop begins with, zeros for what moves in later trips only."""
    return {i: given.get(i) or [zeros_like(inputs[i])] * order for i in inner.given}


def _both(body: Graph, inner: _Body, consts: int, carries: int) -> Graph:
    """The body that computes all: each group of inputs and outputs has its coefficients behind."""
    return dead_code(
        Graph(
            _beside(body.inputs, inner.given, consts, carries),
            inner.graph.body,
            _beside(inner.graph.outputs[: len(body.outputs)], inner.results, 0, carries),
            body.name,
        )
    )


def _beside(
    values: Sequence[Value], coefficients: Coefficients, consts: int, carries: int
) -> list[Value]:
    """Constants, carries and the rest, each group with its coefficients behind it."""
    begin = consts + carries
    found: list[Value] = []
    for group in (range(consts), range(consts, begin), range(begin, len(values))):
        found += [values[i] for i in group]
        found += [v for i in group for v in coefficients.get(i, ())]
    return found


def _picked(
    found: Sequence[Value], results: Coefficients, carries: int, count: int, order: int
) -> dict[int, Sequence[Value]]:
    """The coefficients among the results of a loop that has them behind what they are of."""
    picked: dict[int, Sequence[Value]] = {}
    at = 0
    for group in (range(carries), range(carries, count)):
        at += len(group)
        for k in group:
            if k in results:
                picked[k] = found[at : at + order]
                at += order
    return picked
