"""Norms of vectors and matrices, of all orders of numpy.linalg, and condition numbers."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import FLOAT64, as_axis, keep_axes, real_dtype
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import abs, power
from primgraph.operators.elementwise.logic import equal, not_equal, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.linear_algebra.systems import inv, matrices, square_matrices
from primgraph.operators.promotion import convert_dtype, lift, require_flag, require_number
from primgraph.operators.reduce.reductions import max, min, sum
from primgraph.operators.reduce.statistics import norm as euclidean
from primgraph.operators.shape.creation import eye
from primgraph.operators.shape.shaping import expand_dims, permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit_all
from primgraph.primitives.linear_algebra import spectra, systems

Order: TypeAlias = float | str | None


def _floats(x: ArrayLike) -> Variable:
    value = lift(x)
    return value if value.type.is_inexact else convert_dtype(value, FLOAT64)


def _largest(x: Variable, axis: int) -> Variable:
    """Return the maximum of nonnegative numbers; 0 without any."""
    if x.shape[axis] == 0:
        return sum(x, axis)
    return max(x, axis)


def _vector_norm(x: Variable, order: Order, axis: int) -> Variable:
    """Return the norm of vectors along `axis`, which is removed."""
    if order is None or order == 2:
        return euclidean(x, axis=axis)
    if isinstance(order, str):
        raise ArgumentError(f"norm of vectors takes no order {order!r:.40}")
    number = require_number("norm", order)
    if number == 0:
        return sum(convert_dtype(not_equal(x, 0), real_dtype(x.dtype)), axis)
    size = abs(x)
    if number == math.inf:
        return _largest(size, axis)
    if number == -math.inf:
        return min(size, axis)
    if number == 1:
        return sum(size, axis)
    # An element 0 has derivative 0, as in `abs`, even where that of its power is infinite.
    zero = equal(size, 0) if number < 2 else None
    of_zero = 0.0 if number > 0 else math.inf
    if zero is None:
        total = sum(power(size, number), axis)
    else:
        total = sum(where(zero, of_zero, power(where(zero, 1.0, size), number)), axis)
    # Where the norm is 0, all derivatives are 0, like those of the root of a sum of squares.
    none = equal(total, of_zero)
    return where(none, 0.0, power(where(none, 1.0, total), 1.0 / number))


def _matrix_norm(x: Variable, order: Order) -> Variable:
    """Return the norm of the matrices in the last two axes."""
    if order is None or order in ("fro", "f"):
        return euclidean(x, axis=(-2, -1))
    if order == "nuc":
        return sum(_singular(x), -1)
    if order == 2:
        return _largest(_singular(x), -1)
    if order == -2:
        return min(_singular(x), -1)
    if order in (1, -1, math.inf, -math.inf):
        sums = sum(abs(x), -2 if order in (1, -1) else -1)
        return _largest(sums, -1) if order in (1, math.inf) else min(sums, -1)
    raise ArgumentError(
        f"norm of matrices takes no order {order!r:.40}",
        hint="there are None, 'fro', 'nuc', 1, -1, 2, -2, inf and -inf",
    )


def _singular(x: Variable) -> Variable:
    return emit_all(spectra.svd, matrices("norm", x), full=False)[1]


def _norm_over_axes(x: Variable, order: Order, axes: tuple[int, ...]) -> Variable:
    """Return the norm over one axis, or over a pair of row and column axes."""
    if len(axes) == 1:
        return _vector_norm(x, order, axes[0])
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ShapeError(f"norm of {x.type} takes one axis or two, not {axes}")
    others = [a for a in range(x.ndim) if a not in axes]
    return _matrix_norm(permute_axes(x, (*others, *axes)), order)


@namespace_operator
def norm(x: ArrayLike, ord: Order = None, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Compute the norm of vectors or of matrices, or of all elements, as numpy.linalg has it.

    With one `axis` it is that of vectors: `ord` is any number; 2 is the Euclidean norm, inf and
    -inf the largest and smallest absolute value, 0 the number of nonzero elements. With two axes it
    is that of matrices: `ord` is "fro", "nuc" (the sum of singular values), 2 or -2 (the largest or
    smallest of these), 1 or -1 (of columns), inf or -inf (of rows). Without axes `x` has one or
    two; without `ord` as well it is the 2-norm of all elements. Ties share their derivative evenly,
    and at zero it is 0. Raises `ArgumentError` for other orders, `ShapeError` for invalid axes.

    >>> pg.linalg.norm([3.0, 4.0])
    tensor(5.)
    """
    value = _floats(x)
    if axis is None and ord is None:
        return euclidean(value, keepdims=keepdims)
    return norm_of_order(value, ord, axis, keepdims)


def norm_of_order(x: Variable, ord: Order, axis: Axes, keepdims: bool) -> Variable:
    """Return the norm of vectors or matrices; see `norm`."""
    value = _floats(x)
    given: Any = tuple(range(value.ndim)) if axis is None else axis
    entries = given if isinstance(given, tuple | list) else (given,)
    axes = tuple(as_axis(a, value.ndim) for a in entries)
    result = _norm_over_axes(value, ord, axes)
    return reshape_to(result, keep_axes(value.shape, axes)) if require_flag("keepdims", keepdims) \
        else result  # fmt: skip


@namespace_operator
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Variable:
    """Return the norm of the matrices in the last two axes; see `norm`.

    >>> pg.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    tensor(5.)
    """
    value = _floats(x)
    if value.ndim < 2:
        raise ShapeError(f"matrix_norm takes matrices, with at least two axes, not {value.type}")
    result = _matrix_norm(value, ord)
    return reshape_to(result, (*value.shape[:-2], 1, 1)) if keepdims else result


@namespace_operator
def vector_norm(
    x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Variable:
    """Return the norm of all elements over the axes, as one vector; see `norm`.

    >>> pg.linalg.vector_norm([3.0, 4.0])
    tensor(5.)
    """
    value = _floats(x)
    given: Any = tuple(range(value.ndim)) if axis is None else axis
    entries = given if isinstance(given, tuple | list) else (given,)
    axes = tuple(as_axis(a, value.ndim) for a in entries)
    others = tuple(a for a in range(value.ndim) if a not in axes)
    shape = tuple(value.shape[a] for a in others)
    count = math.prod(value.shape[a] for a in axes)
    flat = reshape_to(permute_axes(value, (*others, *axes)), (*shape, count))
    result = _vector_norm(flat, ord, flat.ndim - 1)
    return reshape_to(result, keep_axes(value.shape, axes)) if keepdims else result


@namespace_operator
def cond(x: ArrayLike, p: Order = None) -> Variable:
    """Compute the condition number of each matrix: its norm `p` times that of its inverse.

    Without `p`, or with 2 or -2, it is a quotient of singular values. It is infinite for a singular
    matrix, as in NumPy. Raises `ShapeError` for empty matrices, and for matrices that are not
    square if an inverse is needed.

    >>> print(f"{pg.linalg.cond([[2.0, 0.0], [0.0, 1.0]]):.4f}")
    2.0000
    """
    value = matrices("cond", x)
    if 0 in value.shape[-2:]:
        raise ShapeError(f"cond is not defined on empty arrays, such as {value.type}")
    if p is None or p in (2, -2):
        s = _singular(value)
        first, last = max(s, -1), min(s, -1)
        found = last / first if p == -2 else first / last
        # The zero matrix has the quotient 0 / 0.
        return where(equal(first, 0.0), math.inf, found)
    square_matrices("cond", value)
    singular = equal(emit_all(systems.slogdet, value)[0], 0.0)
    some = where(expand_dims(singular, (-2, -1)), eye(value.shape[-1], dtype=value.dtype), value)
    return where(singular, math.inf, _matrix_norm(value, p) * _matrix_norm(inv(some), p))
