"""Differential operators that need only part of a Jacobian or Hessian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from primgraph.derivatives.independence import require_independent_samples
from primgraph.derivatives.modes import forward, record, reverse
from primgraph.derivatives.request import Request, located, require_scalar, variable_of
from primgraph.derivatives.subgraph import Path
from primgraph.errors import NotDifferentiable, ShapeError
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import Shape
from primgraph.operators.call import hands_out
from primgraph.operators.promotion import broadcast_to_shape, lift
from primgraph.operators.reduce.reductions import sum as sum_
from primgraph.operators.shape.creation import eye
from primgraph.operators.shape.joining import diagonal
from primgraph.operators.shape.shaping import moveaxis, reshape, swapaxes
from primgraph.operators.variable import Variable
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.dataflow.activity import is_diagonal
from primgraph.transforms.jacobians.batch_sum import batch_sum
from primgraph.transforms.jacobians.strong_zeros import strong_zeros
from primgraph.transforms.jacobians.unit_vectors import drop_identity_products
from primgraph.transforms.linearize import linearize_with_map
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import bind, dead_code


@hands_out
@checked_late
def hessian_diagonal(
    y: Variable, x: Variable, is_batched: bool = False, *, check: bool = True
) -> Variable:
    """Return the second derivatives of `y`, one element, by each element of `x` twice.

    The result has the type of `x`. With `is_batched`, axis 0 counts independent samples, `y` has
    shape `(B,)` or `(B, 1)`, and each sample of the result is for that of `y`. The structure of the
    program must show that samples do not mix between `x` and `y`; `check=False` skips this check.

    The Hessian is never formed. Forward-over-forward mode computes the second derivative along each
    axis, all in one vectorised pass with one direction per element of a sample. If the gradient is
    elementwise, one direction suffices. In a sparse Hessian, axes that do not meet share a
    direction: a tridiagonal one takes two.

    Raises `ArgumentError` for anything but one `y` and one `x`, `NotScalarError` for a `y` of
    several elements, `NotDifferentiable` for integers, `MixedSamplesError` if samples may mix.
    """
    return _second_order_operator("hessian_diagonal", y, x, is_batched, check, total=False)


@hands_out
@checked_late
def laplacian(
    y: Variable, x: Variable, is_batched: bool = False, *, check: bool = True
) -> Variable:
    """Return the sum of the second derivatives of `y`, one element, by each element of `x`.

    The result has the type of `y`. With `is_batched`, axis 0 counts independent samples, and `y`
    and the result have shape `(B,)` or `(B, 1)`; for `check` see `hessian_diagonal`.

    No Hessian is formed, as in `hessian_diagonal`. Operations that are linear in second derivatives
    are applied to their sum only, and axes that do not meet share a direction. Raises the same
    errors.
    """
    return _second_order_operator("laplacian", y, x, is_batched, check, total=True)


@hands_out
@checked_late
def divergence(
    y: Variable, x: Variable, is_batched: bool = False, *, check: bool = True
) -> Variable:
    """Return the sum of the derivatives of each element of `y` by the element of `x` at its index.

    `y` and `x` have one shape; the result is a scalar. With `is_batched`, axis 0 counts independent
    samples, and the result has shape `(B,)`; for `check` see `hessian_diagonal`.

    One vectorised forward pass takes all directions, and only the diagonal is kept; of a final
    matrix product only the diagonal is computed. If `y` is elementwise in `x`, one direction
    suffices. A sparse Jacobian takes as few as in `hessian_diagonal`.

    Raises `ArgumentError` for anything but one `y` and one `x`, `ShapeError` for different shapes,
    `NotDifferentiable` for integers, `MixedSamplesError` if samples may mix.
    """
    request = make_request("divergence", y, x)
    with located(request.origin):
        if y.shape != x.shape:
            raise ShapeError(f"divergence takes equal shapes, not {y.type} and {x.type}")
        path, lead = request.path, lead_of(request, is_batched)
        axes = tuple(range(len(lead), y.ndim))
        if is_batched and check:
            require_independent_samples(path)
        if not path.wrt:
            return zeros_of(request, y, lead)
        with recording(request.builder):
            if path.is_diagonal:
                slope = _record(path, path.jvp(), None)
                return sum_(slope, axis=axes)
            colors = _axis_colors(path.graph, path.moved[0], lead)
            if colors is not None:
                found = _diagonals().jacobian_diagonal(request, colors, lead)
                if found is not None:
                    return sum_(found, axis=axes)
            count = extent_of(x.shape, lead)
            axes_of_free = [None] * len(path.free)
            along = strong_zeros(clean_up(path.jvp()), len(path.free), path.ranges_inside())
            rows = clean_up(batch(along, count, [*axes_of_free, 0]))
            graph = _trace(drop_identity_products(rows, len(path.free)), count, lead)
            return _record(path, graph, _directions(x, lead, count))


def _trace(rows: Graph, count: int, lead: Shape) -> Graph:
    """Replace the result of `rows`, for `count` directions of each sample, by its trace.

    If the result is a matrix product with moved elements, the trace is a sum of products, `tr(P Q)
    = sum(P * Q.T)`, and the product is not computed.
    """
    made = {e.output: e for e in rows.body if len(e.outputs) == 1}
    value, moves = rows.outputs[0], []
    while (eqn := made.get(value)) is not None and eqn.op.is_view:
        if eqn.inputs[0].type.size != value.type.size:
            break
        moves.append(eqn)
        value = eqn.inputs[0]
    factors, by_column = None, False
    if eqn is not None and eqn.op.fact(CONTRACTS) and value.type.ndim == 2 and value.type.size:
        factors = _diagonal_factors(eqn, moves, count, lead)
        by_column = factors is not None and factors[0] is not eqn.inputs[0]
    kept = dead_code(rows.with_outputs(rows.outputs if factors is None else factors))
    builder = Builder(f"{rows.name}_trace", source=NOWHERE)
    inputs = [builder.input(v.type, v.hint) for v in kept.inputs]
    found = [Variable(builder, v) for v in builder.inline(kept, inputs)]
    with builder:
        if factors is None:
            matrix = reshape(found[0], (count, *lead, count))
            trace = sum_(diagonal(matrix, 0, 0, len(lead) + 1), axis=-1)
        else:
            each, fixed = found
            if by_column:
                each, fixed = swapaxes(each, 0, 1), swapaxes(fixed, 0, 1)
            each = reshape(each, (count, *lead, each.shape[-1]))
            fixed = reshape(swapaxes(fixed, 0, 1), (count, *(1 for _ in lead), each.shape[-1]))
            trace = sum_(each * fixed, axis=(0, each.ndim - 1))
    return lower(builder.graph([trace.value]))


def _diagonal_factors(
    product: Equation, moves: Sequence[Equation], count: int, lead: Shape
) -> list[Value] | None:
    """Return the factor with a row (or column) per direction and sample, and the other factor.

    None if the diagonal, after `moves`, does not pair rows with columns in order.
    """
    places = np.arange(product.output.type.size).reshape(product.output.shape)
    for eqn in reversed(moves):
        (places,) = eqn.op.evaluate([places], eqn.kwargs)
    total = count * extent_of(lead, ())
    diagonals = np.diagonal(places.reshape(count, total // count, count), axis1=0, axis2=2)
    # In the order of directions first and samples second.
    row, column = np.divmod(diagonals.T.reshape(-1), product.output.shape[1])
    every, direction = np.arange(total), np.repeat(np.arange(count), total // count)
    left, right = product.inputs
    if np.array_equal(row, every) and np.array_equal(column, direction):
        return [left, right] if product.output.shape == (total, count) else None
    if np.array_equal(column, every) and np.array_equal(row, direction):
        return [right, left] if product.output.shape == (count, total) else None
    return None


def make_request(name: str, y: Variable, x: Variable) -> Request:
    """Return the request. Raises `ArgumentError` unless both are variables, `NotDifferentiable`
    unless real."""
    request = Request.from_variables(name, variable_of(name, "y", y), variable_of(name, "x", x))
    for value in (*request.inputs, *request.outputs):
        if value.type.is_complex:
            raise NotDifferentiable(
                f"{name} is of real numbers by real numbers, not of {value.type}",
                origin=request.origin(),
                hint="take real and imaginary parts apart: z = pg.complex(x, y)",
            )
    return request


def _second_order_operator(
    name: str, y: Variable, x: Variable, is_batched: bool, check: bool, *, total: bool
) -> Variable:
    request = make_request(name, y, x)
    with located(request.origin):
        require_scalar(name, y, int(is_batched))
        path, lead = request.path, lead_of(request, is_batched)
        if is_batched and check:
            require_independent_samples(path)
        if not path.wrt:
            return zeros_of(request, y if total else x, y.shape if total else x.shape)
        with recording(request.builder):
            gradient = clean_up(bind(path.vjp(whole=True), {path.outside: 1.0}))
            by = gradient.inputs[path.free.index(path.wrt[0])]
            directions, found = None, None
            if is_diagonal(gradient, [by]):
                found = _diagonal_by_gradient(request)
            else:
                colors = _axis_colors(gradient, by, lead) if x.dtype == y.dtype else None
                if colors is not None and total:
                    directions = _diagonals().directions_of(gradient, by, colors, lead)
                if colors is not None and directions is None:
                    found = _diagonals().hessian_diagonal(request, colors, lead)
            if found is not None:
                return (
                    reshape(sum_(found, axis=tuple(range(len(lead), x.ndim))), y.shape)
                    if total
                    else found
                )
            return _second_derivatives(path, x, lead, directions, total=total)


# Up to this number of axes each one gets its own direction.
_SMALL = 24


def _axis_colors(graph: Graph, wrt: Value, lead: Shape) -> Any:
    """Colour the axes of the matrix `graph` so that no two of one colour meet; None without
    gain."""
    if not is_at_least(extent_of(wrt.shape, lead), _SMALL):
        return None
    return _diagonals().axis_colors(graph, wrt, lead)


def _diagonals() -> Any:
    """Import the module for sparse diagonals, which small programs do not need."""
    return import_module("primgraph.derivatives.matrices.diagonals")


def _diagonal_by_gradient(request: Request) -> Variable | None:
    """Compute the diagonal in one pass if each gradient element depends on one element of `x`."""
    slopes = reverse(request, [None], None, lenient=True)
    outputs = [v for v in slopes if v is not None]
    (found,) = forward(replace(request, outputs=outputs), [None])
    return None if found is None else Variable(request.builder, found)


def _second_derivatives(
    path: Path,
    x: Variable,
    lead: Shape,
    few: np.ndarray[Any, Any] | None,
    *,
    total: bool,
) -> Variable:
    """Compute the second derivatives along all axes, or their sum, in one vectorised pass.

    The sum may use `few` directions, each a sum of axes.
    """
    count = extent_of(x.shape, lead)
    second = strong_zeros(clean_up(_second(path)), len(path.free), path.ranges_inside())
    last = len(path.free)
    if few is not None:
        graph = batch_sum(second, len(few), [*[None] * last, 0])
        return _record(path, graph, lift(few).value)
    directions = _directions(x, lead, count)
    if total:
        graph = batch_sum(second, count, [*[None] * last, 0])
        return _record(path, graph, directions, identity=True)
    found = _record(path, second, directions, count=count, identity=True)
    along = reshape(found, (count, *lead))
    return reshape(moveaxis(along, 0, -1), x.shape)


def _second(path: Path) -> Graph:
    """Return the graph from free values and a direction to the second derivative along it."""
    first, inner = path.linear("tangent")
    twice, moved = linearize_with_map(first, [path.free.index(path.wrt[0])])
    along = twice.with_outputs(twice.outputs[len(first.outputs) :])
    graph = path.from_inside(along, [moved[v] for v in inner])
    builder = Builder(graph.name, source=NOWHERE)
    inputs = [builder.input(v.type, v.hint) for v in first.inputs]
    return builder.graph(builder.inline(graph, [*inputs, inputs[-1]]))


def lead_of(request: Request, is_batched: bool) -> Shape:
    """Return the batch axis shared by inputs and outputs; empty without `is_batched`."""
    if not is_batched:
        return ()
    (y,), (x,) = request.outputs, request.inputs
    if not x.shape or x.shape[:1] != y.shape[:1]:
        raise ShapeError(f"{request.name}: {y.type} and {x.type} have not the same samples")
    return x.shape[:1]


def extent_of(shape: Shape, lead: Shape) -> int:
    """Return the number of elements behind the axes in `lead`."""
    count = 1
    for n in shape[len(lead) :]:
        count *= n
    return count


def _directions(x: Variable, lead: Shape, count: int) -> Value:
    """Return the unit vectors of a sample of `x`, for all samples: shape `(count, *x.shape)`."""
    unit = reshape(eye(count, dtype=x.dtype), (count, *(1 for _ in lead), *x.shape[len(lead) :]))
    return broadcast_to_shape(unit, (count, *x.shape)).value


def _record(path: Path, graph: Graph, seed: Value | None, **options: Any) -> Variable:
    """Record a derivative along `path` with one result."""
    return Variable(path.builder, record(path, graph, [seed], **options)[0])


def zeros_of(request: Request, like: Variable, shape: Shape) -> Variable:
    value = Value(like.type.with_shape(shape))
    (found,) = request.with_zeros([None], [value])
    assert found is not None
    return Variable(request.builder, found)
