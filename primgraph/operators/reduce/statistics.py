"""Means, variances and norms over axes, composed of other operators."""

from __future__ import annotations

import math
from typing import Any

from primgraph.base.providers import provider
from primgraph.errors import UnknownSizeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import FLOAT16, FLOAT32, FLOAT64, DType, larger, real_dtype
from primgraph.operators.call import operator, public
from primgraph.operators.elementwise.arithmetic import abs, sign, square
from primgraph.operators.elementwise.elementary import exp, log
from primgraph.operators.elementwise.logic import equal, isfinite, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.promotion import (
    axes_of,
    broadcast_to_shape,
    common_shape,
    convert_dtype,
    either,
    inexact_dtype,
    lift,
    require_flag,
    require_number,
)
from primgraph.operators.reduce.reductions import keep_reduced_axes, max, sum
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import squeeze
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import parts
from primgraph.primitives.elementwise import steady
from primgraph.primitives.reductions import as_softmax_of, root_of_squares


def wide(x: Variable) -> Variable:
    """Convert float16 to float32 and integers to float64; return others as they are."""
    return convert_dtype(x, _wide_dtype(x.dtype))


def _wide_dtype(dtype: DType) -> DType:
    if dtype.kind not in "fc":
        return FLOAT64
    return FLOAT32 if dtype == FLOAT16 else dtype


def narrow(x: Variable, like: Variable) -> Variable:
    """Convert `x` to the dtype of `like`, or of its parts; leave it if `like` has integers."""
    if like.type.is_complex:
        return x if x.type.is_complex else convert_dtype(x, real_dtype(like.dtype))
    return convert_dtype(x, like.dtype) if like.type.is_float else x


def _count(x: Variable, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[a] for a in axes)


def _mean(x: Variable, axes: tuple[int, ...], keepdims: bool = False) -> Variable:
    count = _count(x, axes)
    return sum(x, axes, keepdims) / (count if isinstance(count, Dim) else float(count))


@operator("x")
def mean(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Compute the arithmetic mean over `axis`, or of all; of integers as float64.

    float16 is summed in float32. The mean of no elements is NaN. Raises `ShapeError` for missing or
    repeated axes.

    >>> pg.mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
    tensor([2., 3.])
    """
    value = lift(x)
    return narrow(_mean(wide(value), axes_of("mean", value, axis), keepdims), value)


def _center_values(
    name: str, x: Variable, axis: Axes, ddof: float
) -> tuple[Variable, tuple[int, ...], float]:
    """Return `x` minus its mean, the axes, and the divisor of the sum of squares for the
    variance."""
    axes = axes_of(name, x, axis)
    count, freedom = _count(x, axes), require_number("ddof", ddof)
    centered = x - _mean(x, axes, True)
    if isinstance(count, Dim):
        if not freedom.is_integer():
            raise UnknownSizeError(f"{name} of {x.type} takes a whole number as ddof, not {ddof}")
        return centered, axes, larger(count - int(freedom), 0)
    divisor = count - freedom
    return centered, axes, divisor if divisor > 0 else 0.0


def _root_of_squares(
    x: Variable, axes: tuple[int, ...], keepdims: bool, divisor: float = 1.0
) -> Variable:
    """Return the root of the sum of squares over `axes`, divided by `divisor` first.

    `x` is scaled if squares would over- or underflow. If the sum is 0, the derivative is 0, the
    subgradient of least norm.
    """
    x = abs(x) if x.type.is_complex else x
    squares = emit(steady, stop_gradient(sum(square(x), axes)))
    root = emit(root_of_squares, x, squares, axes=axes, divisor=divisor)
    return keep_reduced_axes(root, x, axes, keepdims)


def squares(x: Variable) -> Variable:
    """Return the squared absolute values."""
    if x.type.is_complex:
        return square(emit(parts.real, x)) + square(emit(parts.imag, x))
    return square(x)


@operator("x")
def var_(x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, ddof: float = 0) -> Variable:
    """Decomposition of `var`."""
    value = lift(x)
    centered, axes, divisor = _center_values("var", wide(value), axis, ddof)
    return narrow(sum(squares(centered), axes, keepdims) / divisor, value)


@public
def var(
    x: ArrayLike,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    correction: float | None = None,
) -> Variable:
    """Compute the mean squared distance from the mean over `axis`, or all, with divisor `n - ddof`.

    float16 is summed in float32; integers give float64. Raises `ShapeError` for missing or repeated
    axes. `correction` is NumPy's other name of `ddof`, by default 0.

    >>> pg.var([1.0, 3.0])
    tensor(1.)
    """
    freedom = either("var", ddof=ddof or None, correction=correction)
    return var_(x, axis, keepdims, ddof=0 if freedom is None else freedom)


@operator("x")
def std_(x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, ddof: float = 0) -> Variable:
    """Decomposition of `std`."""
    value = lift(x)
    centered, axes, divisor = _center_values("std", wide(value), axis, ddof)
    require_flag("keepdims", keepdims)
    return narrow(_root_of_squares(centered, axes, keepdims, divisor), value)


@public
def std(
    x: ArrayLike,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    correction: float | None = None,
) -> Variable:
    """Compute the standard deviation over `axis`, or of all: the square root of `var`.

    If all elements are equal it is 0, with the subgradient 0, like `norm`. float16 is summed in
    float32; integers give float64. Raises `ShapeError` for missing or repeated axes. `correction`
    is NumPy's other name of `ddof`, by default 0.

    >>> pg.std([1.0, 3.0])
    tensor(1.)
    """
    freedom = either("std", ddof=ddof or None, correction=correction)
    return std_(x, axis, keepdims, ddof=0 if freedom is None else freedom)


@operator("x")
def norm(
    x: ArrayLike, ord: float | str | None = None, axis: Axes = None, keepdims: bool = False
) -> Variable:
    """Compute the norm of vectors, of matrices, or of all elements, as `pg.linalg.norm`.

    The default `ord` is the 2-norm of all elements over the axes, for a matrix the Frobenius norm.
    With one axis `ord` is any number; with two it is "fro", "nuc", 1, -1, 2, -2, inf or -inf. The
    2-norm does not over- or underflow where squares do; at a zero vector it has the subgradient 0.
    Raises `ArgumentError` for other values of `ord`, `ShapeError` for axes that `x` lacks, that are
    named twice, or that are more than two.

        pg.norm(np.diag([3.0, 4.0]), "nuc")  # tensor(7.)

    >>> pg.norm([3.0, 4.0])
    tensor(5.)
    """
    value = lift(x)
    elements = wide(value)
    axes = axes_of("norm", value, axis)
    require_flag("keepdims", keepdims)
    if ord is not None and (len(axes) != 1 or ord not in (1, 2, math.inf)):
        others = provider("norms")
        return narrow(others.norm_of_order(elements, ord, axis, keepdims), value)
    if ord == 1:
        result = sum(abs(elements), axes, keepdims)
    elif ord == math.inf:
        result = max(abs(elements), axes, keepdims)
    else:
        result = _root_of_squares(elements, axes, keepdims)
    return narrow(result, value)


def subtract_maximum(x: Variable, axes: tuple[int, ...]) -> tuple[Variable, Variable]:
    """Return `x` minus its maximum over `axes`, and that maximum, for exponentials.

    The shift is 0 where the maximum is not finite. It has no derivative.
    """
    if x.size == 0:
        shift = stop_gradient(sum(x, axes, True))
    else:
        largest = max(x, axes, True)
        shift = emit(steady, stop_gradient(where(isfinite(largest), largest, 0)))
    return x - shift, shift


def softmax_slope(s: Variable, x: Variable, axes: tuple[int, ...]) -> Variable:
    """Return `s`, the softmax of `x` over `axes`, with a derivative computed from `s`."""
    return emit(as_softmax_of, stop_gradient(s), x, axes=axes)


@operator("x")
def logsumexp_(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Decomposition of `logsumexp` without weights."""
    value = lift(x, inexact_dtype(x))
    axes = axes_of("logsumexp", value, axis)
    elements = wide(value)
    shifted, shift = subtract_maximum(elements, axes)
    result = log(sum(exp(shifted), axes, True)) + shift
    if not require_flag("keepdims", keepdims):
        result = squeeze(result, axes)
    return narrow(result, value)


def _signed_logsumexp(
    x: ArrayLike, b: ArrayLike, axis: Axes, keepdims: bool
) -> tuple[Variable, Variable]:
    """Return the sum of `b * exp(x)`, without elements of weight 0, and what it is scaled by."""
    shape, dtype = common_shape("logsumexp", x, b), inexact_dtype(x, b)
    value, weights = (wide(broadcast_to_shape(lift(v, dtype), shape)) for v in (x, b))
    none = equal(weights, 0)
    axes = axes_of("logsumexp", value, axis)
    value = where(none, -math.inf, value)
    shift = subtract_maximum(value.real, axes)[1]
    total = sum(where(none, 0, weights * exp(value - shift)), axes, True)
    if not require_flag("keepdims", keepdims):
        total, shift = squeeze(total, axes), squeeze(shift, axes)
    return convert_dtype(total, dtype), convert_dtype(shift, real_dtype(dtype))


@public
def logsumexp(
    x: ArrayLike,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    b: ArrayLike | None = None,
    return_sign: bool = False,
) -> Any:
    """Compute `log(sum(b * exp(x)))` over `axis`, or all, without overflow; `b` is 1 by default.

    It is -inf if all elements are -inf, or if there are none; it is inf if one is inf. `b` and `x`
    are broadcast; elements with `b` 0 are ignored, and the result is NaN where the sum is negative.
    With `return_sign` the results are the logarithm of the absolute value of the sum, and its sign,
    which is `sum / abs(sum)` for complex numbers. Raises `ShapeError` for missing or repeated axes.

    >>> print(f"{pg.logsumexp([0.0, 0.0]):.4f}")
    0.6931
    >>> pg.logsumexp([0.0, 0.0], b=[1.0, -2.0], return_sign=True)
    (tensor(0.), tensor(-1.))
    """
    is_complex = inexact_dtype(x, 1 if b is None else b).kind == "c"
    if b is None and not return_sign and not is_complex:
        return logsumexp_(x, axis, keepdims)
    total, shift = _signed_logsumexp(x, 1 if b is None else b, axis, keepdims)
    if not require_flag("return_sign", return_sign):
        return log(total) + shift
    return log(abs(total)) + shift, sign(total)
