"""Taylor-mode rules of branches and loops: coefficients are carried beside the values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import NOWHERE
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import Regions, checkpoint, cond, scan, while_loop
from primgraph.transforms.dataflow.activity import active_inputs, reached_values
from primgraph.transforms.optimize.edits import dead_code

# Taylor coefficients of operands or results by position and order; missing ones are zero.
Coefficients: TypeAlias = Mapping[int, Mapping[int, Value]]
# The orders of the coefficients by position.
Orders: TypeAlias = Mapping[int, Collection[int]]

# Function from a body, and the orders of its inputs' coefficients, to the expanded body and the
# orders of its outputs' coefficients. Coefficients follow the inputs and the outputs.
Expand: TypeAlias = Callable[[Graph, Orders], tuple[Graph, Orders]]

# Maximum number of passes that find the coefficients of carries, before all orders are carried.
_TURNS = 3


@final
@dataclass(frozen=True, slots=True)
class _Body:
    """An expanded body: coefficients of inputs and of outputs, by position and order."""

    graph: Graph
    given: Coefficients
    results: Coefficients


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
    inner = _expand_loop_body(expand, body, order, given, consts, carries)
    seeds = _seeds(inputs[counted:], given, inner)
    found = scan(
        *inputs[:counted],
        *_interleave(inputs[counted:], seeds, consts, carries),
        body=_both(body, inner, consts, carries),
        consts=consts + _count(seeds, range(consts)),
        carries=carries + _count(seeds, range(consts, consts + carries)),
        length=length,
        reverse=reverse,
        counted=counted,
    )
    return _result_coefficients(found, inner.results, carries, len(body.outputs))


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
    inner = _expand_loop_body(expand, body, order, moving, consts, carries)
    seeds = _seeds(inputs, moving, inner)
    ignored = {i: {k: Value(v.type) for k, v in c.items()} for i, c in seeds.items()}
    asked = Graph(
        _interleave(test.inputs, ignored, consts, carries), test.body, test.outputs, test.name
    )
    found = while_loop(
        *_interleave(inputs, seeds, consts, carries),
        test=asked,
        body=_both(body, inner, consts, carries),
        consts=consts + _count(seeds, range(consts)),
        limit=limit,
    )
    end = carries + _count(inner.results, range(carries))
    stacked = (*found[:end], *found[end + 1 :])
    picked = _result_coefficients(stacked, inner.results, carries, len(body.outputs))
    # The iteration count is a result, too.
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
    inner = [_expand_body(expand, branch, given) for branch in branches]
    ends = _merge_orders(b.results for b in inner)
    if not ends:
        return {}
    count = len(branches[0].outputs)
    both = []
    for branch in inner:
        filled = _fill_zeros(branch, ends)
        graph = filled.graph.with_outputs(
            [*filled.graph.outputs[:count], *_flatten(filled.results, sorted(ends))]
        )
        both.append(dead_code(graph))
    found = cond(index, *operands, *_flatten(given, sorted(given)), branches=tuple(both))
    return _unflatten(ends, found[count:])


@checkpoint.expansion
def _checkpoint_expansion(
    expand: Expand, inputs: Sequence[Value], moving: Coefficients, order: int, *, body: Graph
) -> Coefficients:
    """Compute the coefficients in a checkpoint of their own; clean-up merges it later."""
    inner = _expand_body(expand, body, moving)
    if not inner.results:
        return {}
    places = sorted(inner.results)
    graph = dead_code(inner.graph.with_outputs(_flatten(inner.results, places)))
    found = checkpoint(*inputs, *_flatten(moving, sorted(moving)), body=graph)
    return _unflatten(inner.results, found)


def _flatten(coefficients: Coefficients, places: Iterable[int]) -> list[Value]:
    """List the coefficients at `places`, each in ascending order."""
    return [v for i in places if i in coefficients for _, v in sorted(coefficients[i].items())]


def _unflatten(orders: Orders, values: Sequence[Value]) -> dict[int, dict[int, Value]]:
    """Assign `values` to the positions and orders in the order of `_flatten`."""
    found, at = {}, 0
    for i in sorted(orders):
        found[i] = dict(zip(sorted(orders[i]), values[at : at + len(orders[i])], strict=True))
        at += len(orders[i])
    return found


def _count(coefficients: Orders, places: Iterable[int]) -> int:
    return sum(len(coefficients[i]) for i in places if i in coefficients)


def _merge_orders(every: Iterable[Orders]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for orders in every:
        for i, some in orders.items():
            found.setdefault(i, set()).update(some)
    return found


def _expand_body(expand: Expand, body: Graph, orders: Orders) -> _Body:
    """Expand the body by coefficients of those orders; keep results that depend on them."""
    graph, results = expand(body, {i: sorted(some) for i, some in orders.items()})
    given = _unflatten(orders, graph.inputs[len(body.inputs) :])
    known = _unflatten(results, graph.outputs[len(body.outputs) :])
    ahead = reached_values(graph.body, _flatten(given, given))
    moving = {i: {k: v for k, v in c.items() if v in ahead} for i, c in known.items()}
    return _Body(graph, given, {i: c for i, c in moving.items() if c})


def _fill_zeros(inner: _Body, orders: Orders) -> _Body:
    """Add zeros for the coefficients in `orders` that results lack."""
    builder = Builder(inner.graph.name, source=NOWHERE)
    results = {i: dict(c) for i, c in inner.results.items()}
    with builder:
        for i, some in orders.items():
            for k in some:
                if k not in results.setdefault(i, {}):
                    results[i][k] = zeros_like(inner.graph.outputs[i])
    old = inner.graph
    more: Sequence[Equation] = builder.body
    graph = Graph(old.inputs, (*old.body, *more), old.outputs, old.name)
    return _Body(graph, inner.given, results)


def _expand_loop_body(
    expand: Expand, body: Graph, order: int, given: Coefficients, consts: int, carries: int
) -> _Body:
    """Expand the body by the coefficients that inputs have in some iteration.

    A carry keeps its coefficients, as zeros, even if an iteration overwrites the carry.
    """
    orders: dict[int, set[int]] = {i: set(c) for i, c in given.items()}
    kept = range(consts, consts + carries)
    for turn in range(_TURNS + 1):
        if turn == _TURNS:
            every = set(range(1, order + 1))
            moving = active_inputs(Regions.from_loop_body(body, consts, carries), given)
            orders.update((i, every) for i in moving if i in kept)
        inner = _expand_body(expand, body, orders)
        after = {consts + k: c for k, c in inner.results.items() if k < carries}
        if all(orders.get(i, set()).issuperset(c) for i, c in after.items()):
            break
        orders = _merge_orders([orders, after])
    return _fill_zeros(inner, {i - consts: c for i, c in orders.items() if i in kept})


def _seeds(inputs: Sequence[Value], given: Coefficients, inner: _Body) -> Coefficients:
    """Return the initial coefficients of a loop, zeros for those of later iterations only."""
    return {
        i: {k: given[i][k] if k in given.get(i, ()) else zeros_like(inputs[i]) for k in c}
        for i, c in inner.given.items()
    }


def _both(body: Graph, inner: _Body, consts: int, carries: int) -> Graph:
    """Return the joint body: each group of inputs and outputs is followed by its coefficients."""
    return dead_code(
        Graph(
            _interleave(body.inputs, inner.given, consts, carries),
            inner.graph.body,
            _interleave(inner.graph.outputs[: len(body.outputs)], inner.results, 0, carries),
            body.name,
        )
    )


def _interleave(
    values: Sequence[Value], coefficients: Coefficients, consts: int, carries: int
) -> list[Value]:
    """Concatenate constants, carries and the rest, each group followed by its coefficients."""
    begin = consts + carries
    found: list[Value] = []
    for group in (range(consts), range(consts, begin), range(begin, len(values))):
        found += [values[i] for i in group]
        found += _flatten(coefficients, group)
    return found


def _result_coefficients(
    found: Sequence[Value], results: Coefficients, carries: int, count: int
) -> dict[int, dict[int, Value]]:
    """Return the coefficients among the results of a joint loop."""
    picked: dict[int, dict[int, Value]] = {}
    at = 0
    for group in (range(carries), range(carries, count)):
        at += len(group)
        own = {k: results[k] for k in group if k in results}
        size = _count(own, own)
        picked |= _unflatten(own, found[at : at + size])
        at += size
    return picked
