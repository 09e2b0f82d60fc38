"""Limits of difference quotients where eigenvalues or singular values are equal.

Second derivatives of `f(w)` contain the quotients `k[i, j] = (g[j] - g[i]) / (w[j] - w[i])`, with
`g` the gradient by `w`. If `w[i] == w[j]`, the quotient is replaced by its limit, found from the
derivative of `g` by `w` along one direction. If `f` is symmetric in the tied values and `delta`
sums to zero over them, then `dg = k[i, j] * delta` there. Otherwise there is no second derivative,
which is an error at run time.

For singular values there are also the quotients of sums, `(g[j] + g[i]) / (w[j] + w[i])`, and `g[i]
/ w[i]`. At zeros they have limits if `f` is even in each of these values, so that `g` is 0 there;
then `dg = k * delta` for any `delta` that is 0 elsewhere. If `g` is not 0 at a zero, as for the
sum, `f` has a kink there. The quotient counts as 0: the vectors do not rotate by this value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from primgraph.errors import DTypeError, LinAlgError, ShapeError
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.facts.passes import MESSAGE
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import IndexMap, tied_map
from primgraph.ir.primitive import Linear, Types, primitive
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.constants import filled_constant, iota, zeros_like
from primgraph.primitives.elementwise import abs_, cast
from primgraph.primitives.logic import equal, greater, less_equal, logical_and, logical_or, select
from primgraph.primitives.parts import imag, real
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, with_batch_axis

# Values count as equal if they differ by less than this many rounding units of the sum of all.
_UNITS = 8

_HINT = (
    "for a sum over eigenvalues write a trace: pg.trace(a @ a), pg.trace(pg.linalg.expm(a)); "
    "for singular values one of functions of a.T @ a"
)
SECOND = (
    "the second derivative of these eigenvalues or singular values does not exist where some are "
    f"equal; {_HINT}"
)
FORWARD = (
    "the derivative of the tangents of equal eigenvalues or singular values is not known: forward "
    "mode alone has no second derivative there. Take that of a gradient, as pg.hessian does, or "
    f"{_HINT}"
)
BODY = (
    "the second derivative of equal eigenvalues or singular values is not known within the body "
    f"of a loop, a branch or a checkpoint, nor by Taylor coefficients; {_HINT}"
)
THIRD = f"the third derivative of equal eigenvalues or singular values is not known; {_HINT}"

# Returns the derivative of the gradient by the values along a direction; `at_zero` marks the
# direction for values that are 0. A probe of None means that nothing is known.
Probe: TypeAlias = Callable[[Value, bool], Value]


# Rows, columns, pairs and sizes.


def in_rows(w: Value, columns: int) -> Value:
    """Return matrices with elements `w[i]` in row `i`."""
    rank = len(w.shape)
    return broadcast(w, shape=(*w.shape, columns), new_axes=(rank,))


def in_columns(w: Value, rows: int) -> Value:
    """Return matrices with elements `w[j]` in column `j`."""
    rank = len(w.shape)
    return broadcast(w, shape=(*w.shape[:-1], rows, w.shape[-1]), new_axes=(rank - 1,))


def gaps(w: Value) -> Value:
    """Return `w[j] - w[i]` in row `i` and column `j`."""
    n = w.shape[-1]
    return in_columns(w, n) - in_rows(w, n)


def column_sums(x: Value) -> Value:
    """Return the sum of each column."""
    return reduce_sum(x, axes=(len(x.shape) - 2,))


def is_negligible(x: Value, values: Value) -> Value:
    """Tell where `x` is at rounding level relative to the sum of all `values` of a matrix."""
    last, eps = len(values.shape) - 1, float(np.finfo(x.dtype).eps)
    size = reduce_sum(abs_(values), axes=(last,)) * (_UNITS * eps)
    new = tuple(range(last, len(x.shape)))
    return less_equal(abs_(x), broadcast(size, shape=x.shape, new_axes=new))


def reciprocal(x: Value, values: Value) -> Value:
    """Return `1 / x`, but 0 where `x` is negligible relative to `values`."""
    none = is_negligible(x, values)
    return select(none, zeros_like(x), 1.0 / _one_where(none, x))


def _off_diagonal(type: TensorType) -> Value:
    """Return the mask of the off-diagonal elements of square matrices."""
    row, column = (iota(shape=type.shape, axis=type.ndim - k, dtype=np.dtype(int)) for k in (2, 1))
    return greater(abs_(row - column), zeros_like(row))


def diagonal_of(x: Value) -> Value:
    """Return the diagonal of each matrix."""
    return column_sums(select(_off_diagonal(x.type), zeros_like(x), x))


def ties_of(w: Value) -> Value:
    """Return the mask of pairs of different positions with equal values."""
    apart = gaps(w)
    return logical_and(is_negligible(apart, w), _off_diagonal(apart.type))


def zeros_of(w: Value) -> Value:
    """Return the mask of values that are 0."""
    return is_negligible(w, w)


def pairs_of(mask: Value) -> Value:
    """Return the mask of pairs of positions that are both in `mask`."""
    n = mask.shape[-1]
    return logical_and(in_rows(mask, n), in_columns(mask, n))


def any_in_columns(mask: Value, like: Value) -> Value:
    """Return the mask of columns with a true element, counted in the dtype of `like`."""
    count = column_sums(cast(mask, dtype=like.dtype))
    return greater(count, zeros_like(count))


def sizes_of(x: Value) -> Value:
    """Return absolute values; for complex numbers the sum of those of both parts."""
    return abs_(real(x)) + abs_(imag(x)) if x.type.is_complex else abs_(x)


def tolerance(like: Value, sizes: Value) -> Value:
    """Return the tolerance: the root of the rounding unit times the sum of the vectors `sizes`."""
    last = len(sizes.shape) - 1
    new = tuple(range(last, len(like.shape)))
    unit = float(np.sqrt(np.finfo(like.dtype).eps))
    return broadcast(reduce_sum(sizes, axes=(last,)) * unit, shape=like.shape, new_axes=new)


# Errors at run time.


def _raise_if_any(x: Any, bad: Any, *, message: str) -> Any:
    if np.any(bad):
        raise LinAlgError(message)
    return np.array(x)


@primitive(impl=_raise_if_any, linear=(0,), flops=0)
def unless_any(x: TensorType, bad: TensorType, *, message: str) -> TensorType:
    """Return `x`; raise `LinAlgError` with this message at run time if any `bad` is true."""
    if bad.dtype != BOOL:
        raise DTypeError(f"unless_any takes booleans, not {bad}")
    if x.shape != bad.shape:
        raise ShapeError(f"unless_any takes operands of one shape, not {x} and {bad}")
    return x


unless_any.declare(MESSAGE, "message")
unless_any.declare(RAISES, True)


@unless_any.transpose
def _unless_any_transpose(
    ct: Value, x: Linear, bad: Value, *, message: str
) -> tuple[Value | None, ...]:
    return unless_any(ct, bad, message=message), None


@unless_any.batch
def _unless_any_batch(batched: tuple[bool, ...], x: Value, bad: Value, *, message: str) -> Value:
    result: Value = unless_any(*with_batch_axis(batched, (x, bad)), message=message)
    return result


@primitive(impl=lambda z, x, bad: np.array(z), formal=True, own_slope=True, singular=True, flops=0)
def if_distinct(z: TensorType, x: TensorType, bad: TensorType) -> TensorType:
    """Return `z`, equal to `x`; its derivative raises `LinAlgError` if any `bad` is true."""
    if not x.is_inexact or bad.dtype != BOOL:
        raise DTypeError(f"if_distinct takes floats and booleans, not {x} and {bad}")
    if z != x or bad.shape != x.shape:
        raise ShapeError(f"if_distinct takes operands of one shape, not {z}, {x} and {bad}")
    return z


if_distinct.flat(0, 2)


@if_distinct.jvp(1)
def _if_distinct_jvp(s: Value, z: Value, x: Value, bad: Value, d: Value) -> Value:
    return unless_any(d, bad, message=THIRD)


@if_distinct.batch
def _if_distinct_batch(batched: tuple[bool, ...], z: Value, x: Value, bad: Value) -> Value:
    result: Value = if_distinct(*with_batch_axis(batched, (z, x, bad)))
    return result


# Quotients and their limits.


def difference_quotients(w: Value, g: Value, probe: Probe | None) -> Value:
    """Return `(g[j] - g[i]) / (w[j] - w[i])`, with its limits where values are equal."""
    k, ties = gaps(g) * reciprocal(gaps(w), w), ties_of(w)
    if probe is None:
        return unless_any(k, ties, message=BODY)
    n, delta = w.shape[-1], _separating_direction(w, ties)
    dg = probe(delta, False)
    limit = gaps(dg) / select(ties, gaps(delta), filled_constant(1, k.type))
    bound = tolerance(k, abs_(dg) + abs_(g))
    uneven = greater(abs_(in_rows(dg, n) - limit * in_rows(delta, n)), bound)
    unequal = greater(abs_(gaps(g) - limit * gaps(w)), bound)
    bad = logical_and(ties, logical_or(uneven, unequal))
    return unless_any(select(ties, limit, k), bad, message=SECOND)


def smooth_quotients(w: Value, k: Value, at_zero: Value) -> Value:
    """Return the difference quotients `k`, but the mean of `at_zero` for pairs of zeros."""
    both = logical_and(pairs_of(zeros_of(w)), ties_of(w))
    return select(both, _pair_sums(at_zero) * 0.5, k)


def sum_quotients(w: Value, g: Value, at_zero: Value) -> Value:
    """Return `(g[j] + g[i]) / (w[j] + w[i])`, or the mean of `at_zero` where both are 0."""
    both = pairs_of(zeros_of(w))
    return select(both, _pair_sums(at_zero) * 0.5, _pair_sums(g) / _one_where(both, _pair_sums(w)))


def quotients(w: Value, g: Value, at_zero: Value) -> Value:
    """Return `g[i] / w[i]`, with `at_zero` where the value is 0."""
    zero = zeros_of(w)
    return select(zero, at_zero, g / _one_where(zero, w))


def slopes_at_zero(w: Value, g: Value, probe: Probe | None, *, alone: bool) -> Value:
    """Return the limits of `g[i] / w[i]` where the value is 0 and `f` is even, and 0 elsewhere.

    Without a probe this is an error at run time if single values need the limits, as `alone` says.
    Two zeros are a tie, which raises an error already.
    """
    zero, n = zeros_of(w), w.shape[-1]
    delta = (_place(w) + 1.0) * _total(w)
    dg = zeros_like(g) if probe is None else probe(select(zero, delta, zeros_like(w)), True)
    bound = tolerance(g, abs_(dg) + abs_(g))
    even = logical_and(zero, less_equal(abs_(g), bound))
    if probe is None:
        return unless_any(dg, even, message=BODY) if alone else dg
    found = select(even, dg / delta, zeros_like(g))
    unequal = greater(abs_(gaps(found)) * in_rows(delta, n), in_rows(bound, n))
    bad = any_in_columns(logical_and(pairs_of(zero), unequal), w)
    return unless_any(found, bad, message=SECOND)


def _one_where(mask: Value, x: Value) -> Value:
    return select(mask, filled_constant(1, x.type), x)


def _pair_sums(x: Value) -> Value:
    n = x.shape[-1]
    return in_columns(x, n) + in_rows(x, n)


def _place(w: Value) -> Value:
    """Return the position of each value."""
    return iota(shape=w.shape, axis=len(w.shape) - 1, dtype=w.dtype)


def _total(w: Value) -> Value:
    """Return, for each value, the sum of the absolute values of all, or 1 if that is 0."""
    last = len(w.shape) - 1
    size = reduce_sum(abs_(w), axes=(last,))
    size = _one_where(equal(size, zeros_like(size)), size)
    return broadcast(size, shape=w.shape, new_axes=(last,))


def _separating_direction(w: Value, ties: Value) -> Value:
    """Return a direction that differs among equal values and sums to zero over them."""
    place, tied = _place(w), cast(ties, dtype=w.dtype)
    others = column_sums(tied * in_rows(place, w.shape[-1]))
    mean = (others + place) / (column_sums(tied) + 1.0)
    return (place - mean) * _total(w)


def _flagged_index_map(k: int, i: int, operands: Types, results: Types, **params: Any) -> IndexMap:
    shape, last = operands[i].shape, len(operands) - 1
    return tied_map(shape, results[0].shape, range(len(shape)), exact=i < last)


for _op in (unless_any, if_distinct):
    _op.index_map(_flagged_index_map)
