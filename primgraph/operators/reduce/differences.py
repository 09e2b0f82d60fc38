"""Sums, products and differences along axes, and convolutions of vectors."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import BOOL, COMPLEX128, FLOAT64, INT64
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import add, multiply, remainder, subtract
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    isnan,
    less,
    logical_and,
    logical_not,
    not_equal,
    where,
)
from primgraph.operators.handle import ArrayLike, Axes, Handle
from primgraph.operators.index.indexing import take
from primgraph.operators.lazy_loading import functions
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.promotion import (
    SCALARS,
    axis_of,
    broadcast_to_shape,
    convert_dtype,
    entries_of,
    fractional,
    lift,
    require_integer,
    require_number,
    result_dtype,
)
from primgraph.operators.reduce.reductions import cumsum, prod, sum
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.joining import concatenate, flip, slice_axis
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.parts import conj
from primgraph.primitives.windows import windows as sliding


def _numbers(x: Variable, number: int) -> Variable:
    """Replace NaN in `x` by a number."""
    return where(isnan(x), number, x) if x.type.is_inexact else x


@public
def nansum(
    x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None
) -> Variable:
    """Return the sum over `axis`, or of all elements, with NaN as 0; see `sum`.

    >>> pg.nansum([1.0, np.nan])
    tensor(1.)
    """
    return sum(_numbers(lift(x), 0), axis, keepdims, dtype=dtype)


@public
def nanprod(
    x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None
) -> Variable:
    """Compute the product over `axis`, or of all, in which NaN counts as 1; see `prod`.

    >>> pg.nanprod([2.0, np.nan, 3.0])
    tensor(6.)
    """
    return prod(_numbers(lift(x), 1), axis, keepdims, dtype=dtype)


@public
def nancumsum(x: ArrayLike, axis: int | None = None, *, dtype: Any = None) -> Variable:
    """Compute the running sum along `axis`, or over the flattened array; NaN counts as 0.

    >>> pg.nancumsum([1.0, np.nan, 3.0])
    tensor([1., 1., 4.])
    """
    return cumsum(_numbers(lift(x), 0), axis, dtype=dtype)


def _less_before(x: Variable, axis: int) -> Variable:
    """Return the differences of neighbours; for booleans, whether they differ."""
    count = x.shape[axis] - 1
    left, right = slice_axis(x, axis, 0, count), slice_axis(x, axis, 1, count)
    return not_equal(left, right) if x.dtype == BOOL else subtract(right, left)


@public
def diff(
    x: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Variable:
    """Return the differences of neighbours along `axis`, `n` times; for booleans, whether they
    differ.

    `prepend` and `append` are numbers or arrays before and after. Raises `ShapeError` for an axis
    that `x` lacks, and `ArgumentError` for a negative `n`.
    """
    value, times = lift(x), require_integer("diff", n)
    if times < 0:
        raise ArgumentError(f"diff takes differences no {times} times")
    if times == 0:
        return value
    number = axis_of("diff", value, axis)
    ends = [None if end is None else lift(end) for end in (prepend, append)]
    shape = tuple(1 if i == number else m for i, m in enumerate(value.shape))
    first, last = (
        broadcast_to_shape(e, shape) if e is not None and not e.ndim else e for e in ends
    )
    parts = [part for part in (first, value, last) if part is not None]
    value = concatenate(parts, number) if len(parts) > 1 else value
    for _ in range(times):
        if value.shape[number] == 0:
            break
        value = _less_before(value, number)
    return value


@public
def ediff1d(
    x: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Variable:
    """Return the differences of neighbours in the flattened array, with others before and behind.

    >>> pg.ediff1d([1.0, 3.0, 6.0])
    tensor([2., 3.])
    """
    value = lift(x)
    value = reshape_to(value, (value.size,))
    found = _less_before(value, 0) if value.size else value
    ends = [lift(end) if end is not None else None for end in (to_begin, to_end)]
    flat = [
        None if e is None else convert_dtype(reshape_to(e, (e.size,)), found.dtype) for e in ends
    ]
    parts = [part for part in (flat[0], found, flat[1]) if part is not None]
    return concatenate(parts, 0) if len(parts) > 1 else found


@public
def gradient(x: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int = 1) -> Any:
    """Compute slopes by central differences, of second order inside, `edge_order` at the ends.

    `varargs` are distances: none for 1, one for all axes, or for each axis a distance or the
    coordinates. The result is one array for one axis, and a tuple for several. Formulas are those
    of `np.gradient`. Raises `ShapeError` for axes with fewer than `edge_order + 1` elements.

    >>> pg.gradient([1.0, 2.0, 4.0])
    tensor([1. , 1.5, 2. ])
    """
    value = lift(x)
    value = convert_dtype(value, fractional(value))
    axes = range(value.ndim) if axis is None else entries_of(axis)
    numbers = [axis_of("gradient", value, a) for a in axes]
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order!r:.60}")
    if len(varargs) not in (0, 1, len(numbers)):
        raise ArgumentError(f"gradient takes {len(numbers)} distances, not {len(varargs)}")
    steps = [lift(v, value.dtype if type(v) in SCALARS else None) for v in varargs or (1.0,)]
    if len(steps) == 1:
        if steps[0].ndim and len(numbers) > 1:
            raise ArgumentError("gradient takes coordinates for each axis, or one distance")
        steps *= len(numbers)
    found = [_slopes(value, a, h, edge_order) for a, h in zip(numbers, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(x: Variable, axis: int, step: Variable, order: int) -> Variable:
    count = x.shape[axis]
    if count < order + 1:
        raise ShapeError(
            f"gradient of {x.type} along axis {axis} takes at least {order + 1} elements"
        )
    if step.ndim and (step.ndim > 1 or step.shape[0] != count):
        raise ShapeError(f"gradient of {x.type}: coordinates {step.type} do not fit axis {axis}")
    step = convert_dtype(step, result_dtype(x, step))
    apart = step if step.ndim == 0 else _less_before(step, 0)
    parts = [_end_slope(x, axis, apart, order, False)]
    if count > 2:
        parts.append(_inner_slopes(x, axis, apart))
    parts.append(_end_slope(x, axis, apart, order, True))
    return convert_dtype(concatenate(parts, axis), x.dtype)


def _reshape_along_axis(x: Variable, axis: int, ndim: int) -> Variable:
    """Reshape a vector to lie along an axis of `ndim`."""
    return reshape_to(x, tuple(x.size if i == axis else 1 for i in range(ndim)))


def _inner_slopes(x: Variable, axis: int, apart: Variable) -> Variable:
    count = x.shape[axis] - 2
    before, here, behind = (slice_axis(x, axis, i, count) for i in range(3))
    if apart.ndim == 0:
        return (behind - before) / (2.0 * apart)
    left, right = (_reshape_along_axis(apart[i : i + count], axis, x.ndim) for i in range(2))
    total = left + right
    return (
        before * (-right / (left * total))
        + here * ((right - left) / (left * right))
        + behind * (left / (right * total))
    )


def _end_slope(x: Variable, axis: int, apart: Variable, order: int, last: bool) -> Variable:
    """Return the derivative at one end, by one-sided differences."""
    count = x.shape[axis]
    places = range(count - 1, count - order - 2, -1) if last else range(order + 1)
    ends = [slice_axis(x, axis, i, 1) for i in places]
    sign = -1.0 if last else 1.0
    first = apart if apart.ndim == 0 else apart[-1 if last else 0]
    if order == 1:
        return (ends[1] - ends[0]) * sign / first
    second = apart if apart.ndim == 0 else apart[-2 if last else 1]
    total = first + second
    return sign * (
        ends[0] * (-(first + total) / (first * total))
        + ends[1] * (total / (first * second))
        + ends[2] * (-first / (second * total))
    )


@public
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Variable:
    """Integrate along `axis` by the trapezoidal rule, at coordinates `x` or `dx` apart.

    Raises `ShapeError` for coordinates that do not fit.

    >>> pg.trapezoid([1.0, 2.0, 3.0])
    tensor(4.)
    """
    value = lift(y)
    number = axis_of("trapezoid", value, axis)
    value = convert_dtype(value, fractional(value))
    if x is None:
        apart: Any = dx
    else:
        points = lift(x)
        if points.ndim == 1:
            apart = _reshape_along_axis(_less_before(points, 0), number, value.ndim)
        else:
            apart = _less_before(points, axis_of("trapezoid", points, axis))
    count = value.shape[number] - 1
    pairs = slice_axis(value, number, 1, count) + slice_axis(value, number, 0, count)
    return sum(multiply(apart, pairs) / 2.0, number)


def _windows(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Variable, Variable]:
    """Return two nonempty vectors of one dtype."""
    dtype = result_dtype(x1, x2)
    x, y = lift(x1, dtype), lift(x2, dtype)
    for value in (x, y):
        if value.ndim > 1 or value.size == 0:
            raise ShapeError(f"{name} takes vectors that are not empty, not {value.type}")
    return reshape_to(x, (x.size,)), reshape_to(y, (y.size,))


def _cut_to_mode(found: Variable, mode: Any, longer: int, shorter: int) -> Variable:
    """Return the part of the full convolution for a mode."""
    name = {0: "valid", 1: "same", 2: "full"}.get(mode, mode) if type(mode) is int else mode
    if name == "full":
        return found
    if name == "same":
        return slice_axis(found, 0, (shorter - 1) // 2, longer)
    if name == "valid":
        return slice_axis(found, 0, shorter - 1, longer - shorter + 1)
    raise ArgumentError(f"mode is 'full', 'same' or 'valid', not {mode!r:.60}")


Mode = Literal["full", "same", "valid"]


@public
def convolve(x1: ArrayLike, x2: ArrayLike, mode: Mode = "full") -> Variable:
    """Return sums of products of a vector with another that runs backwards along it.

    `mode` is "full" for all sums, "same" for as many as the longer vector has elements, "valid" for
    those where the vectors overlap completely. Raises `ShapeError` for empty vectors.

    >>> pg.convolve([1.0, 2.0], [1.0, 1.0])
    tensor([1., 3., 2.])
    """
    x, y = _windows("convolve", x1, x2)
    if y.size > x.size:
        x, y = y, x
    return _cut_to_mode(_all_sums(x, y), mode, x.size, y.size)


def _all_sums(x: Variable, y: Variable) -> Variable:
    """Return the full convolution of vectors, of which the second is not longer than the first."""
    more = y.size - 1
    frame = zeros((more,), x.dtype)
    padded = concatenate([frame, x, frame], 0) if more else x
    windows = emit(sliding, padded, axis=0, sizes=(y.size,), steps=(1,), dilations=(1,))
    return matmul(flip(y, 0), windows)


@public
def correlate(x1: ArrayLike, x2: ArrayLike, mode: Mode = "valid") -> Variable:
    """Compute sums of products of a vector with another that moves along it; modes as `convolve`.

    The second vector is conjugated if it is complex.

    >>> pg.correlate([1.0, 2.0, 3.0], [1.0, 1.0])
    tensor([3., 5.])
    """
    x, y = _windows("correlate", x1, x2)
    y = emit(conj, y) if y.type.is_complex else y
    if y.size > x.size:
        return flip(_cut_to_mode(_all_sums(y, flip(x, 0)), mode, y.size, x.size), 0)
    return _cut_to_mode(_all_sums(x, flip(y, 0)), mode, x.size, y.size)


@public
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Variable:
    """Interpolate linearly between the points `(xp, fp)`, at `x`.

    `xp` is increasing; outside of it the function is `left` and `right`, by default the first and
    the last of `fp`. With a `period`, points and positions are taken modulo it, in any order, and
    there is no outside. `fp` may be complex. At a point of `xp` its derivative is that of the
    segment to the right, outside it is 0. Points and values may be infinite. Raises `ShapeError`
    unless the points are vectors of one length, `ArgumentError` for a period of 0.

    >>> pg.interp(0.5, [0.0, 1.0], [10.0, 20.0])
    tensor(15.)
    """
    at, points = (lift(v, FLOAT64) for v in (x, xp))
    values = lift(fp)
    values = convert_dtype(values, COMPLEX128 if values.type.is_complex else FLOAT64)
    if points.ndim != 1 or points.shape != values.shape or points.size == 0:
        raise ShapeError(f"interp takes vectors of one length, not {points.type}, {values.type}")
    if period is not None:
        at, points, values = _periodic(at, points, values, period)
        left = right = None
    first, last = (
        values[end] if given is None else lift(given, values.dtype)
        for end, given in ((0, left), (-1, right))
    )
    if points.size == 1:
        inside = broadcast_to_shape(values[0], at.shape)
    else:
        passed = sum(_reached_points(at, points[1:-1]), -1) if points.size > 2 else None
        piece = passed if passed is not None else zeros(at.shape, INT64)
        inside = _on_segments(at, piece, points, values, _are_finite(xp, fp))
    found = where(less(at, points[0]), first, where(greater(at, points[-1]), last, inside))
    return where(equal(at, points[-1]), values[-1], found)


def _are_finite(*given: ArrayLike) -> bool:
    """Whether all are numbers that are known now, and finite."""
    return not any(isinstance(v, Handle) or not np.isfinite(v).all() for v in given)


def _on_segments(
    at: Variable, piece: Variable, points: Variable, values: Variable, finite: bool
) -> Variable:
    """Interpolate in the segments `piece`; as in NumPy next to infinite points and values."""
    slope = take(_less_before(values, 0) / _less_before(points, 0), piece, 0)
    left, low = take(points, piece, 0), take(values, piece, 0)
    found: Variable = low + slope * (at - left)
    if finite:
        return found
    right, high = take(points, piece + 1, 0), take(values, piece + 1, 0)
    from_right = high + slope * (at - right)
    flat = logical_and(equal(low, high), logical_not(isnan(at)))
    either = where(logical_and(isnan(from_right), flat), low, from_right)
    return where(isnan(found), where(equal(at, left), low, either), found)


def _periodic(
    at: Variable, points: Variable, values: Variable, period: float
) -> tuple[Variable, Variable, Variable]:
    """Return positions in one period, and the points in order, with one more at either side."""
    size = math.fabs(require_number("interp", period))
    if size == 0:
        raise ArgumentError("interp takes a period other than 0")
    at, points = remainder(at, size), remainder(points, size)
    order = functions["argsort"](points)
    points, values = take(points, order, 0), take(values, order, 0)
    points = concatenate([points[-1:] - size, points, points[:1] + size])
    return at, points, concatenate([values[-1:], values, values[:1]])


def _reached_points(at: Variable, points: Variable) -> Variable:
    """Return, along a new last axis, which of the points each element has reached."""
    return convert_dtype(reshape_to(at, (*at.shape, 1)) >= points, INT64)


@public
def unwrap(
    x: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Variable:
    """Shift angles along `axis` by whole periods so that neighbours differ by at most half of one.

    Jumps of at most `discont` stay. The derivative is 1, as the periods are constants.

    >>> pg.unwrap([0.0, 2.0 * np.pi])
    tensor([0., 0.])
    """
    value = lift(x)
    value = convert_dtype(value, fractional(value))
    number, half = axis_of("unwrap", value, axis), period / 2
    if value.shape[number] < 2:
        return value
    jumps = _less_before(value, number)
    folded = remainder(jumps + half, period) - half
    folded = where(logical_and(equal(folded, -half), greater(jumps, 0)), half, folded)
    limit = half if discont is None or discont < half else discont
    size = where(less(jumps, 0), -jumps, jumps)
    moves = where(less(size, limit), 0.0, folded - jumps)
    rest = slice_axis(value, number, 1, value.shape[number] - 1)
    return concatenate([slice_axis(value, number, 0, 1), add(rest, cumsum(moves, number))], number)
