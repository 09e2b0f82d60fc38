"""Partial derivatives of high order, and their sums, by Taylor mode along a few directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from primgraph.derivatives.differential_operators import extent_of, lead_of, make_request, zeros_of
from primgraph.derivatives.directions import Directions, Index, directions_for
from primgraph.derivatives.independence import require_independent_samples
from primgraph.derivatives.jets import jet_graph
from primgraph.derivatives.modes import record
from primgraph.derivatives.request import Request, located, require_scalar
from primgraph.derivatives.subgraph import Path
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.types import Shape
from primgraph.ir.views import WHOLE, Slice
from primgraph.operators.call import hands_out
from primgraph.operators.promotion import broadcast_to_shape, lift
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable
from primgraph.transforms.dataflow.locality import view_of
from primgraph.transforms.dataflow.sparsity import pattern_rows
from primgraph.transforms.jacobians.batch_sum import batch_sum
from primgraph.transforms.jacobians.strong_zeros import strong_zeros
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.taylor_mode import expand_series


@hands_out
@checked_late
def partials(
    u: Variable,
    x: Variable,
    orders: Sequence[Sequence[int]],
    is_batched: bool = False,
    *,
    check: bool = True,
) -> list[Variable]:
    """Return the derivatives of `u` by the elements of `x`, of the multi-indices in `orders`.

    `x` has shape `(d,)`, or `(B, d)` with `is_batched`. `orders` has a sequence of d numbers for
    each result, which has the type of `u`. All are sums of directional derivatives with rational
    weights, computed by Taylor mode in one vectorised pass. A few of low order are computed by
    nested Taylor mode along one axis after the other.
    """
    request = make_request("partials", u, x)
    with located(request.origin):
        lead = lead_of(request, is_batched)
        if x.ndim != len(lead) + 1:
            wanted = "(B, d)" if is_batched else "(d,)"
            raise ShapeError(f"partials takes an x of shape {wanted}, not {x.type}")
        indices = checked_indices(orders, x.shape[-1])
        path = request.path
        if is_batched and check:
            require_independent_samples(path)
        used = elements_used(path)
        asked_for = [a for a in indices if used.issuperset(np.flatnonzero(a).tolist())]
        plan = directions_for(asked_for)
        found = dict.fromkeys(asked_for, u)
        if path.wrt and plan.vectors:
            with recording(request.builder):
                if _goes_along_axes(asked_for, plan):
                    results = [_nest_jets(request, path, u, x, a) for a in asked_for]
                else:
                    results = _weighted_sums(request, path, u, x, lead, plan, asked_for)
            found.update(zip(asked_for, results, strict=True))
        return [found[a] if a in found else zeros_of(request, u, u.shape) for a in indices]


# Nested Taylor mode along axes is used up to this number of coefficient products per product, and
# up to this fraction of the coefficients along directions.
_MOST_PRODUCTS, _PART = 64, 0.8


def _goes_along_axes(indices: Sequence[Index], plan: Directions) -> bool:
    """Return whether nested jets along the axes have far fewer coefficients than jets along
    directions, and not too many equations."""
    boxes = {b for a in indices for b in product(*(range(n + 1) for n in a))}
    products = sum(math.prod((n + 1) * (n + 2) // 2 for n in a) for a in {*indices})
    order = max(map(sum, indices))
    return products <= _MOST_PRODUCTS and len(boxes) - 1 <= _PART * order * len(plan.vectors)


def _nest_jets(request: Request, path: Path, u: Variable, x: Variable, a: Index) -> Variable:
    """Compute a derivative by nested jets, one per axis."""
    axes = [i for i, n in enumerate(a) if n]
    if not axes:
        return u
    graph, inner, (moving,) = path.graph, path.inner, path.moved
    for i in axes:
        graph, moved = expand_series(graph, a[i], [moving], seeds=[[1]], given=path.ranges)
        graph = graph.with_outputs(graph.outputs[-1:])
        inner = [moved[v] for v in inner]
    graph = path.from_inside(graph, inner)
    for n in range(len(axes)):
        graph = strong_zeros(clean_up(graph), len(path.free) + n, path.ranges_inside())
    units = np.eye(x.shape[-1], dtype=x.dtype)[axes]
    seeds = [broadcast_to_shape(lift(unit), x.shape).value for unit in units]
    (found,) = record(path, graph, seeds)
    return Variable(request.builder, found)


# Limit of listed pairs of output and input elements, to find the inputs in use.
_LISTED = 2**14


def elements_used(path: Path) -> set[int]:
    """Return the indices in the last axis, of known size, that outputs may depend on."""
    if not path.wrt:
        return set()
    (x,) = path.moved
    size = x.shape[-1]
    taken = _taken_from(path.graph, x)
    if len(taken) < size or any(type(n) is not int for v in (x, *path.graph.outputs)
                                for n in v.shape):  # fmt: skip
        return taken
    rows = pattern_rows(path.graph, [x], _LISTED)
    return taken if rows is None else set(np.unique(rows.columns % size).tolist())


def _taken_from(graph: Graph, x: Value) -> set[int]:
    """Return the indices in the last axis of `x` that slices select, if only slices use it."""
    size, last = x.shape[-1], x.type.ndim - 1
    found: set[int] = set()
    for eqn in graph.body:
        if x not in eqn.inputs:
            continue
        shown = None if eqn.op.multiple else view_of(eqn)
        if not isinstance(shown, Slice):
            return set(range(size))
        taken = shown.ranges[last] if last < len(shown.ranges) else WHOLE
        found.update(range(size)[slice(*taken)])
    return set(range(size)) if x in graph.outputs else found


def checked_indices(orders: Any, size: Any) -> list[Index]:
    """Return `orders` as tuples of `size` integers. Raises `ArgumentError` for anything else."""
    listed = list(orders) if isinstance(orders, list | tuple) else None
    if not listed or not all(isinstance(a, list | tuple | np.ndarray) for a in listed):
        raise ArgumentError(
            f"partials takes a list of orders, not {orders!r:.80}",
            hint="pg.partials(u, x, [(2, 0), (1, 2)]): so often by each element of x",
        )
    found = []
    for a in listed:
        numbers = [n for n in a if isinstance(n, int | np.integer) and not isinstance(n, bool)]
        if len(numbers) != len(a) or any(n < 0 for n in numbers):
            raise ArgumentError(f"partials: orders are integers from 0 on, not {a!r:.60}")
        if len(a) != size:
            raise ArgumentError(
                f"partials: {len(a)} orders, {a!r:.60}, are given for {size} elements"
            )
        found.append(tuple(map(int, numbers)))
    return found


def _weighted_sums(
    request: Request,
    path: Path,
    u: Variable,
    x: Variable,
    lead: Shape,
    plan: Directions,
    indices: Sequence[Index],
) -> list[Variable]:
    """Return, for each of `indices`, the weighted sum of derivatives along the directions of a
    plan."""
    orders = sorted({sum(a) for a in indices} - {0})
    graph = jet_graph(path, [[1]], orders[-1])
    graph = _safe(path, graph.with_outputs([graph.outputs[k - 1] for k in orders]))
    count = len(plan.vectors)
    seeds = _broadcast_directions(np.array(plan.vectors, float), x, lead)
    is_unit = not lead and np.array_equal(plan.vectors, np.eye(count, x.shape[-1]))
    found = record(path, graph, [seeds.value], count=count, identity=is_unit)
    rows = {k: Variable(request.builder, v) for k, v in zip(orders, found, strict=True)}
    results = []
    for a, weights in zip(indices, plan.weights, strict=True):
        results.append(_sum(rows[sum(a)], weights, u) if any(a) else u)
    return results


def _sum(rows: Variable, weights: dict[int, Fraction], u: Variable) -> Variable:
    """Return the weighted sum of some `rows`, with integer weights and one division."""
    divisor = math.lcm(*(w.denominator for w in weights.values()))
    terms = [(i, int(w * divisor)) for i, w in sorted(weights.items())]
    if len(terms) > _FEW:
        row = np.zeros(rows.shape[0])
        for i, n in terms:
            row[i] = n
        flat = lift(row.astype(u.dtype)) @ reshape(rows, (rows.shape[0], -1))
        total = reshape(flat, u.shape)
    else:
        parts = [(n, rows[i] if abs(n) == 1 else rows[i] * float(abs(n))) for i, n in terms]
        first, total = parts[0]
        total = total if first > 0 else -total
        for n, part in parts[1:]:
            total = total + part if n > 0 else total - part
    return total if divisor == 1 else total / float(divisor)


# Up to this many rows are added one by one; more are multiplied with their weights.
_FEW = 8


def _safe(path: Path, graph: Graph) -> Graph:
    """Return the derivatives along a direction with strong zeros: zeros stay beside infinite
    factors."""
    return strong_zeros(clean_up(graph), len(path.free), path.ranges_inside())


def _broadcast_directions(vectors: np.ndarray[Any, Any], x: Variable, lead: Shape) -> Variable:
    """Return directions of a sample of `x`, for all samples: shape `(count, *x.shape)`."""
    count = len(vectors)
    shape = (count, *(1 for _ in lead), *x.shape[len(lead) :])
    return broadcast_to_shape(lift(vectors.reshape(shape).astype(x.dtype)), (count, *x.shape))


@hands_out
@checked_late
def biharmonic(
    y: Variable, x: Variable, is_batched: bool = False, *, check: bool = True
) -> Variable:
    """Return the Laplacian of the Laplacian of `y`, one element, by the elements of `x`.

    The result has the type of `y`. With `is_batched`, axis 0 counts independent samples, and `y`
    and the result have shape `(B,)` or `(B, 1)`; for `check` see `hessian_diagonal`. It is a sum of
    fourth derivatives along directions: 3 for two elements, 6 for three, n * n for n.
    """
    request = make_request("biharmonic", y, x)
    with located(request.origin):
        require_scalar("biharmonic", y, int(is_batched))
        path, lead = request.path, lead_of(request, is_batched)
        if is_batched and check:
            require_independent_samples(path)
        has_vector = x.ndim == len(lead) + 1 and type(x.shape[-1]) is int
        used = sorted(elements_used(path)) if has_vector else None
        if not path.wrt or used == []:
            return zeros_of(request, y, y.shape)
        graph = jet_graph(path, [[1]], 4)
        fourth = _safe(path, graph.with_outputs(graph.outputs[-1:]))
        with recording(request.builder):
            size = extent_of(x.shape, lead)
            axes = np.eye(size) if used is None else np.eye(size)[used]
            terms = [
                _sum_directions(request, path, fourth, vectors @ axes, x, lead) * sign
                for vectors, sign in directions_of_biharmonic(len(axes))
            ]
            total = terms[0]
            for term in terms[1:]:
                total = total + term
            return total


def _sum_directions(
    request: Request,
    path: Path,
    graph: Graph,
    vectors: np.ndarray[Any, Any],
    x: Variable,
    lead: Shape,
) -> Variable:
    """Return the sum of a derivative over directions, with linear operations applied to the sum."""
    total = batch_sum(graph, len(vectors), [*[None] * len(path.free), 0])
    found = record(path, total, [_broadcast_directions(vectors, x, lead).value])
    return Variable(request.builder, found[0])


def directions_of_biharmonic(size: int) -> list[tuple[np.ndarray[Any, Any], float]]:
    """Return directions, each scaled by the fourth root of its weight, with the sign of the group.

    In the plane, the fourth powers of three directions at equal angles add up to 9/8 of the fourth
    power of the length; in space, those of the six diagonals of an icosahedron to 6/5. In more
    dimensions it is `q / 6 + (4 - n) p / 3`, with `p` and `q` for the sums over the axes and over
    all `e_i + e_j` and `e_i - e_j`.
    """
    if size == 1:
        return [(np.ones((1, 1)), 1.0)]
    if size == 2:
        angles = np.arange(3) * (np.pi / 3)
        return [(np.stack([np.cos(angles), np.sin(angles)], 1) * (8 / 9) ** 0.25, 1.0)]
    if size == 3:
        golden = (1 + math.sqrt(5)) / 2
        rows = [np.roll([0.0, 1.0, s * golden], k) for k in range(3) for s in (1.0, -1.0)]
        return [(np.array(rows) / math.hypot(1.0, golden) * (5 / 6) ** 0.25, 1.0)]
    unit = np.eye(size)
    pairs = [unit[i] + s * unit[j] for i in range(size) for j in range(i) for s in (1.0, -1.0)]
    found = [(np.array(pairs) * (1 / 6) ** 0.25, 1.0)]
    if size > 4:
        found.append((unit * ((size - 4) / 3) ** 0.25, -1.0))
    return found
