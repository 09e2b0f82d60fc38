"""Products of vectors, matrices and stacks of matrices, with NumPy's shape rules."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import BOOL, INT64, Shape, broadcast_shapes
from primgraph.operators.call import operator, public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.arithmetic import add, multiply
from primgraph.operators.elementwise.logic import not_equal
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    axis_of,
    broadcast_to_shape,
    convert_dtype,
    lift,
    require_flag,
    result_dtype,
    ufunc_dtypes,
)
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.shape.joining import diagonal
from primgraph.operators.shape.shaping import permute_axes, reshape_to, swapaxes
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.linear_algebra import products


def product(x: Variable, y: Variable) -> Variable:
    """Return the matrix products of two stacks of equal dtype and equal leading axes.

    Products of booleans are logical: whether any pair is true in both.
    """
    if x.dtype == BOOL:
        return not_equal(product(convert_dtype(x, INT64), convert_dtype(y, INT64)), 0)
    return emit(products.matmul, x, y)


@public
@decided_by_types
def matmul(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Compute the matrix product; leading axes are stacks of matrices and are broadcast.

    A vector on the left counts as one row, on the right as one column, and that axis is not in the
    result. Raises `ShapeError` for 0-d operands, for different inner sizes, and for stacks that do
    not broadcast.

    >>> pg.matmul([[1.0, 2.0]], [[3.0], [4.0]])
    tensor([[11.]])
    """
    dtype = ufunc_dtypes(np.matmul, x1, x2)[-1]
    x, y = lift(x1, dtype), lift(x2, dtype)
    _check_matmul(x, y)
    if x.ndim == y.ndim == 2:
        return product(x, y)
    rows = x.shape[-2:-1] if x.ndim > 1 else ()
    columns = y.shape[-1:] if y.ndim > 1 else ()
    left = x if x.ndim > 1 else reshape_to(x, (1, *x.shape))
    right = y if y.ndim > 1 else reshape_to(y, (*y.shape, 1))
    if right.ndim == 2:
        # One larger product, so that the matrix on the right is not repeated.
        flat = reshape_to(left, (math.prod(left.shape[:-1]), left.shape[-1]))
        return reshape_to(product(flat, right), (*left.shape[:-2], *rows, *columns))
    try:
        lead = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ShapeError as error:
        raise ShapeError(f"{_refusal(x, y)}: the stacks differ, {error.message}") from None
    left = broadcast_to_shape(left, (*lead, *left.shape[-2:]))
    right = broadcast_to_shape(right, (*lead, *right.shape[-2:]))
    return reshape_to(product(left, right), (*lead, *rows, *columns))


def _refusal(x: Variable, y: Variable) -> str:
    return f"matmul cannot multiply {x.type} by {y.type}"


def _check_matmul(x: Variable, y: Variable) -> None:
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(
            f"{_refusal(x, y)}: both need at least one axis", hint="multiply with `*` instead"
        )
    inner = x.shape[-1], y.shape[-2] if y.ndim > 1 else y.shape[0]
    if inner[0] != inner[1]:
        raise ShapeError(f"{_refusal(x, y)}: inner sizes {inner[0]} and {inner[1]} differ")


@public
def tensordot(
    x1: ArrayLike, x2: ArrayLike, axes: int | Sequence[int | Sequence[int]] = 2
) -> Variable:
    """Return sums of products over pairs of axes; the remaining axes follow one another.

    `axes` is a number of axes, the last of `x1` and the first of `x2`, or a pair of axes or of
    sequences of axes. Raises `ShapeError` if sizes of a pair differ.

    >>> pg.tensordot([[1.0, 2.0]], [[3.0], [4.0]], 1)
    tensor([[11.]])
    """
    dtype = result_dtype(x1, x2)
    x, y = lift(x1, dtype), lift(x2, dtype)
    left, right = _paired_axes(x, y, axes)
    for a, b in zip(left, right, strict=True):
        if x.shape[a] != y.shape[b]:
            raise ShapeError(
                f"tensordot of {x.type} and {y.type}: axis {a} has extent {x.shape[a]}, "
                f"axis {b} has {y.shape[b]}"
            )
    keep_x = [a for a in range(x.ndim) if a not in left]
    keep_y = [a for a in range(y.ndim) if a not in right]
    rows: Shape = tuple(x.shape[a] for a in keep_x)
    columns: Shape = tuple(y.shape[a] for a in keep_y)
    inner = math.prod(x.shape[a] for a in left)
    flat_x = reshape_to(permute_axes(x, (*keep_x, *left)), (math.prod(rows), inner))
    flat_y = reshape_to(permute_axes(y, (*right, *keep_y)), (inner, math.prod(columns)))
    return reshape_to(product(flat_x, flat_y), (*rows, *columns))


def _paired_axes(
    x: Variable, y: Variable, axes: int | Sequence[int | Sequence[int]]
) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot of {x.type} and {y.type} over {axes} axes")
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    if not isinstance(axes, Sequence) or len(axes) != 2:
        raise ArgumentError(f"tensordot takes a number of axes or a pair, not {axes!r:.60}")
    first, second = ([a] if isinstance(a, int) else list(a) for a in axes)
    left = [axis_of("tensordot", x, a) for a in first]
    right = [axis_of("tensordot", y, a) for a in second]
    if len(left) != len(right) or len({*left}) != len(left) or len({*right}) != len(right):
        raise ShapeError(f"tensordot of {x.type} and {y.type}: axes {axes} are not pairs")
    return left, right


@public
@decided_by_types
def dot(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Multiply vectors or matrices; arrays over the last axis of `x1` and the second last of `x2`.

    With a 0-d operand it is the product element by element.

    Raises `ShapeError` if the inner sizes differ.

    >>> pg.dot([1.0, 2.0], [3.0, 4.0])
    tensor(11.)
    """
    x, y = lift(x1), lift(x2)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    inner = y.ndim - 2 if y.ndim > 1 else 0
    if x.shape[-1] != y.shape[inner]:
        raise ShapeError(
            f"dot cannot multiply {x.type} by {y.type}: "
            f"inner sizes {x.shape[-1]} and {y.shape[inner]} differ"
        )
    return tensordot(x, y, (x.ndim - 1, inner))


@public
@decided_by_types
def inner(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return sums of products over the last axes of both. Raises `ShapeError` if their sizes
    differ.

    >>> pg.inner([1.0, 2.0], [3.0, 4.0])
    tensor(11.)
    """
    x, y = lift(x1), lift(x2)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, (-1, -1))


@public
@decided_by_types
def outer(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Multiply each element of `x1` with each of `x2`: a matrix of shape `(x1.size, x2.size)`.

    Both are flattened first, and promoted as in `multiply`.

    >>> pg.outer([1.0, 2.0], [3.0, 4.0])
    tensor([[3., 4.],
            [6., 8.]])
    """
    x, y = lift(x1), lift(x2)
    return multiply(reshape_to(x, (x.size, 1)), reshape_to(y, (1, y.size)))


@public
@decided_by_types
def trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """Return the sum of a diagonal of two axes, for `np.trace` of a variable; see `diagonal`."""
    return sum(diagonal(x, offset, axis1, axis2), -1)


@operator("x", "weight", "bias")
def linear(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, transposed: bool = False
) -> Variable:
    """Compute `x @ weight + bias`, with `weight` of shape (inputs, outputs).

    With `transposed` the weight is of shape (outputs, inputs), as in torch.

    Raises `ShapeError` if the inner sizes differ or the bias does not broadcast.

    >>> pg.linear([[1.0, 2.0]], [[1.0], [1.0]], [0.5])
    tensor([[3.5]])
    """
    columns = swapaxes(weight, -1, -2) if require_flag("transposed", transposed) else weight
    value = matmul(x, columns)
    return value if bias is None else add(value, bias)
