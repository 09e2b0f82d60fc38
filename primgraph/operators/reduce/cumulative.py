"""Cumulative products, extrema and log-sum-exps along an axis, and `cumulative_sum`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.errors import ArgumentError, UnknownSizeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import FLOAT64, as_dtype
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import logaddexp
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    axis_of,
    convert_dtype,
    lift,
    none_of_no_axes,
    require_flag,
)
from primgraph.operators.reduce.reductions import cumsum, summed_dtype
from primgraph.operators.shape.creation import ones, zeros
from primgraph.operators.shape.joining import concatenate, slice_axis
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import running


def _line(name: str, x: Variable, axis: int | None) -> tuple[Variable, int]:
    if none_of_no_axes(x, axis) is None:
        return reshape_to(x, (x.size,)), 0
    return x, axis_of(name, x, axis)


@public
def cumprod(x: ArrayLike, axis: int | None = None, *, dtype: Any = None) -> Variable:
    """Compute the running product along `axis`, or over the flattened array; dtypes as for `prod`.

    Element `i` is the product of the elements up to and including `i`; derivatives are correct at
    zeros, too. Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.cumprod([1.0, 2.0, 3.0])
    tensor([1., 2., 6.])
    """
    value = lift(x)
    wanted = summed_dtype(value.dtype) if dtype is None else as_dtype(dtype)
    value, number = _line("cumprod", convert_dtype(value, wanted), axis)
    return emit(running.cumprod, value, axis=number)


@public
def cumulative_sum(
    x: ArrayLike, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Variable:
    """Compute the running sum along `axis`, which vectors may omit; `include_initial` adds 0.

    Raises `ArgumentError` for several axes without `axis`.

    >>> pg.cumulative_sum([1.0, 2.0, 3.0])
    tensor([1., 3., 6.])
    """
    value, number = _named_line("cumulative_sum", lift(x), axis)
    found = cumsum(value, number, dtype=dtype)
    if not require_flag("include_initial", include_initial):
        return found
    return _from(zeros, found, number)


@public
def cumulative_prod(
    x: ArrayLike, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Variable:
    """Compute the running product along `axis`, which vectors may omit; `include_initial` adds 1.

    Raises `ArgumentError` for several axes without `axis`.

    >>> pg.cumulative_prod([1.0, 2.0, 3.0])
    tensor([1., 2., 6.])
    """
    value, number = _named_line("cumulative_prod", lift(x), axis)
    found = cumprod(value, number, dtype=dtype)
    if not require_flag("include_initial", include_initial):
        return found
    return _from(ones, found, number)


def _named_line(name: str, x: Variable, axis: int | None) -> tuple[Variable, int]:
    """Return `x` and its axis, which must be given if there are several."""
    if axis is None and x.ndim > 1:
        raise ArgumentError(f"{name} of {x.type} takes an axis")
    return x, axis_of(name, x, 0 if axis is None else axis)


def _from(start: Callable[..., Variable], x: Variable, axis: int) -> Variable:
    """Prepend one element along `axis`, created by `start`."""
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return concatenate([start(shape, x.dtype), x], axis)


@public
def cummax(x: ArrayLike, axis: int | None = None) -> Variable:
    """Return the largest element so far along `axis`, or over the flattened array.

    Its derivative is that of the first element that attains it. From a NaN on it is NaN. Raises
    `ShapeError` for an axis that `x` lacks.

    >>> pg.cummax([1.0, 3.0, 2.0])
    tensor([1., 3., 3.])
    """
    value, number = _line("cummax", lift(x), axis)
    return emit(running.cummax, value, axis=number)


@public
def cummin(x: ArrayLike, axis: int | None = None) -> Variable:
    """Return the smallest element so far along `axis`; see `cummax`.

    >>> pg.cummin([3.0, 1.0, 2.0])
    tensor([3., 1., 1.])
    """
    value, number = _line("cummin", lift(x), axis)
    return emit(running.cummin, value, axis=number)


@public
def logcumsumexp(x: ArrayLike, axis: int | None = None) -> Variable:
    """Compute `log(cumsum(exp(x)))` along `axis`, or over the flattened array, without overflow.

    It is computed by pairs of 1, 2, 4, ... elements. Raises `ShapeError` for an axis that `x`
    lacks, `UnknownSizeError` for a symbolic size.

    >>> pg.logcumsumexp([0.0, 0.0]).numpy().round(4)
    array([0.    , 0.6931])
    """
    value = lift(x)
    value = value if value.type.is_float else convert_dtype(value, FLOAT64)
    result, number = _line("logcumsumexp", value, axis)
    count, step = result.shape[number], 1
    if type(count) is Dim:
        raise UnknownSizeError(f"logcumsumexp of {count} elements: their number has to be known")
    while step < count:
        rest = count - step
        first, before, after = (
            slice_axis(result, number, start, size)
            for start, size in ((0, step), (0, rest), (step, rest))
        )
        result = concatenate([first, logaddexp(before, after)], number)
        step *= 2
    return result
