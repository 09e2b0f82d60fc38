"""Taylor mode: derivatives of high order along a curve or a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

from primgraph.derivatives.grad import checked_order
from primgraph.derivatives.modes import record
from primgraph.derivatives.request import Request, Seeds, Variables, located, seeds_for
from primgraph.derivatives.subgraph import Path
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.operators.call import hands_out
from primgraph.operators.variable import Variable, handle_of
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import add
from primgraph.transforms.taylor_mode import expand_series

# The given derivatives of an input, by order; None stands for ones.
Curve: TypeAlias = Mapping[int, Value | None]


@hands_out
@checked_late
def taylor(outputs: Variables, inputs: Variables, order: int, direction: Seeds = None) -> Any:
    """Return `outputs` and their derivatives along `direction` up to `order`: `[y, y', y'', ...]`.

    The result is a list of `order` + 1 variables for a single output, a list of such lists for a
    sequence.
    """
    order = checked_order("taylor", order)
    request = Request.from_variables("taylor", outputs, inputs)
    with located(request.origin):
        seeds = request.seeds("direction", direction, request.inputs)
        rows = derivatives(request, [{1: s} for s in seeds], order)
    builder = request.builder
    found = [
        [handle_of(builder, v) for v in (y, *_with_zeros(builder, y, row, order))]
        for y, row in zip(request.outputs, rows, strict=True)
    ]
    return found[0] if isinstance(outputs, Variable) else found


def line_derivatives(
    request: Request, seeds: Sequence[Value | None], order: int
) -> list[Value | None]:
    """Return the derivatives of that order of the outputs; None for an output that is not
    reached."""
    rows = derivatives(request, [{1: s} for s in seeds], order)
    return [None if row is None else row[-1] for row in rows]


def short_line_derivatives(
    request: Request,
    seeds: Sequence[Value | None],
    order: int,
    is_short: Callable[[Graph], bool],
) -> list[Value | None] | None:
    """Like `line_derivatives`, by a graph of the last derivatives only, if that `is_short`."""
    path = request.path
    orders = [[1]] * len(path.wrt)
    graph, moved = expand_series(path.graph, order, path.moved, seeds=orders, given=path.ranges)
    last = graph.with_outputs(graph.outputs[len(path.graph.outputs) :][order - 1 :: order])
    if not is_short(last):
        return None
    inside = path.from_inside(last, [moved[v] for v in path.inner])
    found = record(path, inside, seeds)
    return [v if r else None for v, r in zip(found, path.reached, strict=True)]


def derivatives(request: Request, curves: Sequence[Curve], order: int) -> list[list[Value] | None]:
    """Return the derivatives of each output, of orders 1 to `order`, along `curves` of the
    inputs."""
    path = request.path
    if not path.wrt:
        return [None] * len(request.outputs)
    known = _merge_curves(request.builder, request.sources, curves)
    joined = [known[v] for v in path.wrt]
    graph = jet_graph(path, [sorted(c) for c in joined], order)
    found = record(path, graph, [c[k] for c in joined for k in sorted(c)])
    rows = [found[i : i + order] for i in range(0, len(found), order)]
    is_all = request.call is not None
    return [row if r or is_all else None for row, r in zip(rows, path.reached, strict=True)]


def array_derivatives(
    request: Request, series: Sequence[Mapping[int, Any]], order: int
) -> list[list[Value]]:
    """Like `derivatives`, along curves of arrays or variables, with zeros for missing ones."""
    builder = request.builder
    curves = []
    for value, given in zip(request.inputs, series, strict=True):
        seeds = seeds_for(builder, "series", list(given.values()), [value] * len(given))
        curves.append(dict(zip(given, seeds, strict=True)))
    rows = derivatives(request, curves, order)
    return [_with_zeros(builder, y, r, order) for y, r in zip(request.outputs, rows, strict=True)]


def jet_graph(path: Path, orders: Sequence[Sequence[int]], order: int) -> Graph:
    """Return the graph from free values and derivatives of `wrt` to derivatives of the outputs.

    `orders` lists for each of `wrt` the orders of its given derivatives. There are `order` results
    per output.
    """
    graph, moved = expand_series(path.graph, order, path.moved, seeds=orders, given=path.ranges)
    ends = graph.with_outputs(graph.outputs[len(path.graph.outputs) :])
    return path.from_inside(ends, [moved[v] for v in path.inner])


def _merge_curves(
    builder: Builder, inputs: Sequence[Value], curves: Sequence[Curve]
) -> dict[Value, dict[int, Value | None]]:
    """Return the derivatives of each input, added up for an input listed twice."""
    found: dict[Value, dict[int, Value | None]] = {}
    for value, curve in zip(inputs, curves, strict=True):
        known = found.setdefault(value, {})
        for k, seed in curve.items():
            if k in known:
                with recording(builder):
                    pair = [
                        filled_constant(1, value.type) if s is None else s for s in (known[k], seed)
                    ]
                    seed = reduce(add, pair)
            known[k] = seed
    return found


def _with_zeros(
    builder: Builder, like: Value, row: Sequence[Value] | None, order: int
) -> list[Value]:
    if row is not None:
        return [*row]
    with recording(builder):
        return [filled_constant(0, like.type)] * order


def tensor_derivatives(
    outputs: list[Variable],
    inputs: list[Variable],
    seeds: list[Any],
    orders: tuple[tuple[int, ...], ...],
    order: int,
    last: bool,
) -> list[Variable]:
    """Return all derivatives of all outputs, or the `last`; `orders` lists those of the inputs."""
    request = Request.from_variables("jet", outputs, inputs)
    given = iter(seeds)
    series = [{k: next(given) for k in present} for present in orders]
    rows = array_derivatives(request, series, order)
    return [handle_of(request.builder, v) for row in rows for v in row[-1 if last else 0 :]]
