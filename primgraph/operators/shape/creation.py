"""Array creation and dtype conversion."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.dims import Dim, is_extent, names_in
from primgraph.ir.types import INT64, DType, TensorType, as_axis, as_dtype, as_shape, larger
from primgraph.operators.call import public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.logic import equal, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import (
    SCALARS,
    axis_of,
    broadcast_to_shape,
    broadcasts_to,
    convert_dtype,
    fractional,
    lift,
    promote_operands,
    require_flag,
    require_integer,
    type_of,
    wrap,
)
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import constants, elementwise, reductions
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.shapes import reshape, slice_assign


def dtype_or_default(dtype: Any) -> DType:
    """Return the dtype for `dtype`; the default dtype for None."""
    return get_default_dtype() if dtype is None else as_dtype(dtype)


@public
def assign(x: ArrayLike) -> Variable:
    """Return `x` itself, as a variable; arrays and numbers become constants of the program.

    Nothing is copied, as values are immutable. Python floats take the default dtype. Raises
    `ArgumentError` for objects that are not arrays.

    >>> pg.assign([1.0, 2.0])
    tensor([1., 2.])
    """
    return lift(x)


@public
def full(shape: Any, fill_value: ArrayLike, dtype: Any = None) -> Variable:
    """Return an array of that shape with all elements equal to `fill_value`, a number or handle.

    Without `dtype`, the dtype is that of `fill_value`. Raises `ShapeError` for a negative size and
    `DTypeError` for a number that the dtype cannot hold.

    >>> pg.full((2,), 3.0)
    tensor([3., 3.])
    """
    extents = as_shape(shape)
    wanted = type_of(fill_value).dtype if dtype is None else as_dtype(dtype)
    if type(fill_value) in SCALARS:
        return wrap(filled_constant(fill_value, TensorType(extents, wanted)))
    value = lift(fill_value, wanted)
    if not broadcasts_to(value.shape, extents):
        raise ShapeError(f"full cannot repeat {value.type} to shape {extents}")
    return broadcast_to_shape(value, extents)


@public
def zeros(shape: Any, dtype: Any = None) -> Variable:
    """Return an array of zeros of that shape, in the default dtype unless `dtype` is given.

    `shape` is an integer or a sequence of integers. Raises `ShapeError` for a negative size.

    >>> pg.zeros((2, 2))
    tensor([[0., 0.],
            [0., 0.]])
    """
    return wrap(filled_constant(0, TensorType(as_shape(shape), dtype_or_default(dtype))))


@public
def ones(shape: Any, dtype: Any = None) -> Variable:
    """Return an array of ones of that shape, in the default dtype unless `dtype` is given.

    `shape` is an integer or a sequence of integers. Raises `ShapeError` for a negative size.

    >>> pg.ones((2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return wrap(filled_constant(1, TensorType(as_shape(shape), dtype_or_default(dtype))))


@public
def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: Any = None) -> Variable:
    """Return an array of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> pg.full_like([1.0, 2.0], 3.0)
    tensor([3., 3.])
    """
    like = type_of(x)
    return full(like.shape, fill_value, like.dtype if dtype is None else dtype)


@public
@decided_by_types
def zeros_like(x: ArrayLike, dtype: Any = None) -> Variable:
    """Return zeros of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> pg.zeros_like([1.0, 2.0])
    tensor([0., 0.])
    """
    return full_like(x, 0, dtype)


@public
def size(x: ArrayLike, axis: int | None = None) -> Variable:
    """Return the number of elements of `x`, or its extent along `axis`: a 0-d int64 constant.

    Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.size([[1.0, 2.0]])
    tensor(2, dtype=int64)
    """
    value = lift(x)
    count = value.size if axis is None else value.shape[axis_of("size", value, axis)]
    return lift(count if isinstance(count, Dim) else np.array(count, np.int64))


@public
@decided_by_types
def ones_like(x: ArrayLike, dtype: Any = None) -> Variable:
    """Return ones of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> pg.ones_like([1.0, 2.0])
    tensor([1., 1.])
    """
    return full_like(x, 1, dtype)


@public
def iota(shape: Any, axis: int = 0, dtype: Any = np.int64) -> Variable:
    """Return an array in which each element is its own index along `axis`.

    Raises `ShapeError` for an axis that the shape lacks and `DTypeError` for booleans.

    >>> pg.iota((2, 2), 1)
    tensor([[0, 1],
            [0, 1]], dtype=int64)
    """
    extents, wanted = as_shape(shape), as_dtype(dtype)
    number = as_axis(axis, len(extents))
    return emit(constants.iota, shape=extents, axis=number, dtype=wanted)


@public
def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Variable:
    """Return the numbers from `start` (default 0) to `stop`, exclusive, `step` apart.

    Arguments are Python or NumPy numbers, since the size is fixed when the program is built; or
    symbolic sizes and integers, which give a symbolic size: it is assumed not to be negative where
    it depends on one size. Raises `ArgumentError` for anything else.

    >>> pg.arange(2, 10, 3)
    tensor([2, 5, 8], dtype=int64)
    """
    first, last = (0, start) if stop is None else (start, stop)
    if any(type(n) is Dim for n in (first, last, step)):
        return _symbolic_arange(first, last, step, dtype)
    _require_numbers("arange", first, last, step)
    if step == 0:
        raise ArgumentError("arange with step 0 never reaches its end")
    if not abs((last - first) / step) < sys.maxsize:
        raise ArgumentError(f"arange from {first} to {last} has no number of elements")
    numbers = np.arange(first, last, step)
    if dtype is None and any(type(n) is float for n in (first, last, step)):
        dtype = get_default_dtype()
    wanted = numbers.dtype if dtype is None else as_dtype(dtype)
    exact = numbers if wanted == numbers.dtype else np.arange(first, last, step, dtype=wanted)
    if (first, step) == (0, 1) and wanted.kind in "iu" and exact.size:
        return emit(constants.iota, shape=exact.shape, axis=0, dtype=wanted)
    return lift(exact)


def _symbolic_arange(start: Any, stop: Any, step: Any, dtype: Any) -> Variable:
    """Compute `arange` for symbolic sizes and integers."""
    if not all(map(is_extent, (start, stop, step))) or type(step) is not int or step == 0:
        raise ArgumentError(
            f"arange of sizes takes sizes and integers, and a step that is a number, not "
            f"{start!r:.40}, {stop!r:.40}, {step!r:.40}"
        )
    count = (stop - start + step + (-1 if step > 0 else 1)) // step
    if len(names_in(count)) != 1:
        # With one size the count is assumed not to be negative, as for a slice; with two nothing is
        # assumed.
        count = larger(count, 0)
    wanted = INT64 if dtype is None else as_dtype(dtype)
    found = emit(constants.iota, shape=(count,), axis=0, dtype=wanted)
    found = found if step == 1 else found * step
    return found if type(start) is int and start == 0 else found + start


def _require_numbers(name: str, *numbers: Any) -> None:
    for number in numbers:
        if not isinstance(number, int | float | np.integer | np.floating):
            raise ArgumentError(
                f"{name} takes numbers, not {number!r:.60}",
                hint="they are fixed when the program is built",
            )


@public
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *, dtype: Any = None
) -> Variable:
    """Return `num` evenly spaced numbers from `start` to `stop`, which `endpoint` False leaves out.

    `start` and `stop` are numbers, or arrays and variables, which are broadcast: the numbers lie
    along a new first axis. An integer `dtype` rounds down. `num` may be a symbolic size. Raises
    `ArgumentError` if it is not an integer.

    >>> pg.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count, last = _count("linspace", num), require_flag("endpoint", endpoint)
    rounds_down = dtype is not None and as_dtype(dtype).kind in "iu"
    known = not isinstance(count, Dim)
    if known and all(isinstance(x, int | float | np.integer | np.floating) for x in (start, stop)):
        numbers = np.linspace(float(start), float(stop), count, last)  # type: ignore[arg-type]
        return lift(np.floor(numbers) if rounds_down else numbers, dtype_or_default(dtype))
    first, end = promote_operands(start, stop, dtype=fractional(start, stop), name="linspace")
    found = _linspace(first, end, count, last)
    if rounds_down:
        found = emit(elementwise.floor, found)
    return found if dtype is None else convert_dtype(found, as_dtype(dtype))


def _count(name: str, num: Any) -> int:
    if isinstance(num, Dim):
        return num
    _require_numbers(name, num)
    if not 0 <= num <= sys.maxsize or num != int(num):
        raise ArgumentError(f"{name} makes a whole number of elements, not {num}")
    return int(num)


def _linspace(start: Variable, stop: Variable, count: int, endpoint: bool) -> Variable:
    """Return `count` arrays from `start` to `stop`, rounded as NumPy rounds them."""
    shape = (count, *start.shape)
    number = emit(constants.iota, shape=shape, axis=0, dtype=start.dtype)
    gaps, whole = count - int(endpoint), stop - start
    if isinstance(count, Dim):
        divisor = convert_dtype(lift(gaps.max(1)), start.dtype)  # type: ignore[attr-defined]
        found = _steps(number, divisor, whole) + start
        return where(equal(number, divisor), stop, found) if endpoint else found
    found = (_steps(number, float(gaps), whole) if gaps > 0 else number * whole) + start
    if endpoint and count > 1:
        starts, steps = (count - 1, *[0] * start.ndim), (1,) * len(shape)
        last = emit(reshape, stop, shape=(1, *start.shape))
        found = emit(slice_assign, found, last, starts=starts, steps=steps)
    return found


def _steps(number: Variable, gaps: ArrayLike, whole: Variable) -> Variable:
    """Return the offset of each element from the first."""
    step = whole / gaps
    # If a step underflows, all offsets are computed from the total range.
    lost = emit(reductions.reduce_max, equal(step, 0.0), axes=tuple(range(step.ndim)))
    lost = broadcast_to_shape(lost if step.ndim else equal(step, 0.0), number.shape)
    return where(lost, number / gaps * whole, number * step)


@public
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Variable:
    """Return ones on the diagonal `k` of a matrix of shape `(N, M)`, zeros elsewhere.

    `M` is `N` and the dtype the default one unless given; positive `k` lie to the right.

    >>> pg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = as_shape((N, N if M is None else M))
    rows, columns = (emit(constants.iota, shape=shape, axis=a, dtype=INT64) for a in (0, 1))
    return convert_dtype(equal(rows + require_integer("eye", k), columns), dtype_or_default(dtype))


@public
def one_hot(indices: ArrayLike, depth: int, dtype: Any = None) -> Variable:
    """Return a new last axis of extent `depth`, with a one at the index and zeros elsewhere.

    An index outside `0 <= index < depth` gives zeros only. The result has the default dtype unless
    `dtype` is given. Raises `DTypeError` for indices that are not integers.

    >>> pg.one_hot([0, 2], 3)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    index = lift(indices)
    if index.dtype.kind not in "iu":
        raise DTypeError(f"one_hot takes integer indices, not {index.type}")
    (extent,) = as_shape((depth,))
    shape = (*index.shape, extent)
    classes = emit(constants.iota, shape=shape, axis=index.ndim, dtype=INT64)
    hit = equal(index[..., None], classes)
    return convert_dtype(hit, dtype_or_default(dtype))


@public
def astype(x: ArrayLike, dtype: Any, *, copy: bool | None = True) -> Variable:
    """Return the same numbers in another dtype, rounded or truncated as NumPy's `astype` does.

    Between floats the derivative is 1; from or to integers and booleans it is zero. `copy` exists
    for compatibility with NumPy and has no effect, as values are immutable.

    >>> pg.cast([1.7, -1.7], "int64")
    tensor([ 1, -1], dtype=int64)
    """
    return convert_dtype(lift(x), as_dtype(dtype))


cast = functions["cast"] = astype


@public
def stop_gradient(x: ArrayLike) -> Variable:
    """Return `x` itself, as a constant for differentiation: no derivative goes through it.

    Other results computed from `x` are not affected; setting `x.stop_gradient` makes it constant
    everywhere.

    >>> pg.grad(lambda x: x * pg.stop_gradient(x))(3.0)
    array(3.)
    """
    return emit(elementwise.stop_gradient, lift(x))
