"""Operators on variables, with Paddle's names for them and for their arguments.

The argument `name`, which names an operator in Paddle, has no effect.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.dynamic import as_paddles
from primgraph.compat.paddle.framework import new_key, paddles, refused
from primgraph.compat.paddle.methods import Methods
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import ArrayLike, Axes, Handle
from primgraph.operators.variable import Variable

Name: TypeAlias = str | None


def _unary(function: Callable[[Any], Variable], name: str) -> Callable[..., Variable]:
    """`function` of one array `x`."""

    def call(x: ArrayLike, name: Name = None) -> Variable:
        return function(x)

    return _named(call, name, function)


def _binary(function: Callable[[Any, Any], Variable], name: str) -> Callable[..., Variable]:
    """`function` of two arrays `x` and `y`."""

    def call(x: ArrayLike, y: ArrayLike, name: Name = None) -> Variable:
        return function(x, y)

    return _named(call, name, function)


def _named(
    call: Callable[..., Variable], name: str, function: Callable[..., Any]
) -> Callable[..., Variable]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return paddles(call)


abs = _unary(pg.abs, "abs")
cos = _unary(pg.cos, "cos")
erf = _unary(pg.erf, "erf")
exp = _unary(pg.exp, "exp")
log = _unary(pg.log, "log")
rsqrt = _unary(pg.rsqrt, "rsqrt")
sigmoid = _unary(pg.sigmoid, "sigmoid")
sin = _unary(pg.sin, "sin")
sqrt = _unary(pg.sqrt, "sqrt")
square = _unary(pg.square, "square")
tanh = _unary(pg.tanh, "tanh")

add = _binary(pg.add, "add")
divide = _binary(pg.divide, "divide")
equal = _binary(pg.equal, "equal")
greater_equal = _binary(pg.greater_equal, "greater_equal")
greater_than = _binary(pg.greater, "greater_than")
less_equal = _binary(pg.less_equal, "less_equal")
less_than = _binary(pg.less, "less_than")
maximum = _binary(pg.maximum, "maximum")
minimum = _binary(pg.minimum, "minimum")
multiply = _binary(pg.multiply, "multiply")
not_equal = _binary(pg.not_equal, "not_equal")
pow = _binary(pg.power, "pow")
subtract = _binary(pg.subtract, "subtract")


@paddles
def add_n(inputs: Any, name: Name = None) -> Variable:
    """Sum of an array, or of all arrays in a list."""
    return pg.add_n([inputs] if isinstance(inputs, Variable) else inputs)


@paddles
def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: Any = None,
    name: Name = None,
) -> Variable:
    """Numbers from `start` (0 if there is no `end`) up to but without `end`, `step` apart."""
    first, last = (0, start) if end is None else (start, end)
    floats = any(isinstance(n, float) for n in (first, last, step))
    wanted = dtype_or_default(None) if dtype is None and floats else dtype
    return as_paddles(pg.arange(first, last, step, wanted))


@paddles
def assign(x: ArrayLike, output: None = None) -> Variable:
    """`x` itself, as a handle. There is no `output`, as values never change."""
    refused("assign", output=output)
    return pg.assign(x)


@paddles
def broadcast_to(x: ArrayLike, shape: Any, name: Name = None) -> Variable:
    """`x` repeated along new leading axes and along axes of extent one."""
    return pg.broadcast_to(x, shape)


@paddles
def cast(x: ArrayLike, dtype: Any) -> Variable:
    """The same numbers in another dtype."""
    return pg.cast(x, dtype)


@paddles
def concat(x: Sequence[ArrayLike], axis: int = 0, name: Name = None) -> Variable:
    """The arrays in `x` one after the other along `axis`."""
    return pg.concat(x, axis)


@paddles
def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = None, name: Name = None
) -> Variable:
    """Ones on the diagonal, zeros elsewhere."""
    return as_paddles(pg.eye(num_rows, num_columns, dtype=dtype_or_default(dtype)))


@paddles
def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """An array of that shape with all elements equal to `fill_value`."""
    return as_paddles(pg.full(shape, fill_value, dtype_or_default(dtype)))


@paddles
def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: Any = None, name: Name = None
) -> Variable:
    """An array of the shape of `x` with all elements equal to `fill_value`."""
    return pg.full_like(x, fill_value, dtype)


@paddles
def gather(x: ArrayLike, index: ArrayLike, axis: int | None = None, name: Name = None) -> Variable:
    """The slices of `x` at positions `index` along `axis`, by default the first."""
    return pg.gather(x, index, 0 if axis is None else axis)


@paddles
def index_select(x: ArrayLike, index: ArrayLike, axis: int = 0, name: Name = None) -> Variable:
    """The slices of `x` at positions `index` along `axis`."""
    return pg.gather(x, index, axis)


@paddles
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int, dtype: Any = None, name: Name = None
) -> Variable:
    """`num` numbers from `start` to `stop`, evenly spaced."""
    return as_paddles(pg.linspace(start, stop, num, dtype=dtype_or_default(dtype)))


@paddles
def matmul(
    x: ArrayLike,
    y: ArrayLike,
    transpose_x: bool = False,
    transpose_y: bool = False,
    name: Name = None,
) -> Variable:
    """Matrix product; a flag exchanges the last two axes of its factor, if it has two."""
    return pg.matmul(_turned(x, transpose_x), _turned(y, transpose_y))


def _turned(x: ArrayLike, turn: bool) -> ArrayLike:
    return pg.swapaxes(x, -1, -2) if turn and len(_shape(x)) > 1 else x


def _shape(x: ArrayLike) -> tuple[int, ...]:
    return x.shape if isinstance(x, Handle) else np.shape(x)


@paddles
def max(x: ArrayLike, axis: Axes = None, keepdim: bool = False, name: Name = None) -> Variable:
    """Largest element over `axis`, or of all."""
    return pg.max(x, axis, keepdim)


@paddles
def mean(x: ArrayLike, axis: Axes = None, keepdim: bool = False, name: Name = None) -> Variable:
    """Arithmetic mean over `axis`, or of all."""
    return pg.mean(x, axis, keepdim)


@paddles
def min(x: ArrayLike, axis: Axes = None, keepdim: bool = False, name: Name = None) -> Variable:
    """Smallest element over `axis`, or of all."""
    return pg.min(x, axis, keepdim)


@paddles
def norm(
    x: ArrayLike,
    p: float | str | None = None,
    axis: Axes = None,
    keepdim: bool = False,
    name: Name = None,
) -> Variable:
    """Norm over `axis`, or of all elements: `p` is 1, 2 or infinity; None and "fro" mean 2."""
    order = None if p in (None, "fro", 2) else p
    if axis is not None or order is None:
        if order is not None and isinstance(axis, list | tuple) and len(axis) > 1:
            # Paddle's are sums of powers over both axes, and NumPy's are norms of matrices.
            raise ArgumentError(f"norm with p={p!r:.40} over {len(axis)} axes is not supported")
        return pg.norm(x, order, axis, keepdim)
    total = pg.norm(pg.flatten(x), order)
    rank = len(_shape(x))
    return pg.reshape(total, (1,) * rank) if keepdim else total


@paddles
def ones(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Ones, of the default dtype unless `dtype` is given."""
    return as_paddles(pg.ones(shape, dtype_or_default(dtype)))


@paddles
def ones_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Ones of the shape of `x`, and of its dtype unless `dtype` is given."""
    return pg.ones_like(x, dtype)


@paddles
def rand(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Uniform numbers between 0 and 1, other ones at each call and at each run."""
    return as_paddles(pg.uniform(new_key(), shape, 0.0, 1.0, dtype_or_default(dtype)))


@paddles
def randn(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Normal numbers of mean 0 and variance 1, other ones at each call and at each run."""
    return as_paddles(pg.normal(new_key(), shape, dtype_or_default(dtype)))


@paddles
def reshape(x: ArrayLike, shape: Sequence[int], name: Name = None) -> Variable:
    """The elements in another shape: an extent 0 stands for that of `x`, one -1 for the rest."""
    known = _shape(x)
    kept = [known[i] if n == 0 and i < len(known) else n for i, n in enumerate(shape)]
    return pg.reshape(x, kept)


@paddles
def scale(
    x: ArrayLike,
    scale: ArrayLike = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: Name = None,
) -> Variable:
    """`scale * x + bias`, or `scale * (x + bias)` with `bias_after_scale` False; `act` of it.

    `act` is the name of a function of one array: relu, sigmoid, tanh and others. Raises
    `ArgumentError` for a name that is none.
    """
    result = pg.scale(x, scale, bias, bias_after_scale)
    if act is None:
        return result
    if act not in _ACTIVATIONS:
        listed = ", ".join(_ACTIVATIONS)
        raise ArgumentError(f"scale has no act {act!r:.60}", hint=f"there are {listed}")
    return _ACTIVATIONS[act](result)


_ACTIVATIONS: dict[str, Callable[[Any], Variable]] = {
    "abs": pg.abs,
    "cos": pg.cos,
    "exp": pg.exp,
    "gelu": pg.gelu,
    "log": pg.log,
    "reciprocal": pg.reciprocal,
    "relu": pg.relu,
    "rsqrt": pg.rsqrt,
    "sigmoid": pg.sigmoid,
    "silu": pg.silu,
    "sin": pg.sin,
    "softmax": pg.softmax,
    "softplus": pg.softplus,
    "sqrt": pg.sqrt,
    "square": pg.square,
    "swish": pg.silu,
    "tanh": pg.tanh,
}


@paddles
def slice(
    input: ArrayLike, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> Variable:
    """`input` with the slice `starts[i]:ends[i]` taken along `axes[i]`, for all i."""
    return pg.strided_slice(input, axes, starts, ends)


@paddles
def split(
    x: ArrayLike, num_or_sections: int | Sequence[int], axis: int = 0, name: Name = None
) -> list[Variable]:
    """Parts of `x` along `axis`: as many equal ones, or of these extents; one -1 is the rest.

    Raises `ShapeError` if the parts do not add up to the whole.
    """
    if not isinstance(num_or_sections, Sequence):
        return pg.split(x, num_or_sections, axis)
    known, sizes = _shape(x), list(num_or_sections)
    extent = known[as_axis(axis, len(known))]
    if -1 in sizes:
        sizes[sizes.index(-1)] += extent - builtins.sum(sizes)
    if builtins.sum(sizes) != extent or builtins.min(sizes) < 0:
        raise ShapeError(f"split of {known}: axis {axis} has no parts {num_or_sections}")
    return pg.split(x, list(accumulate(sizes))[:-1], axis)


@paddles
def stack(x: Sequence[ArrayLike], axis: int = 0, name: Name = None) -> Variable:
    """Arrays of one shape along a new axis."""
    return pg.stack(x, axis)


@paddles
def strided_slice(
    x: ArrayLike,
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int],
    name: Name = None,
) -> Variable:
    """`x` with the slice `starts[i]:ends[i]:strides[i]` taken along `axes[i]`, for all i."""
    return pg.strided_slice(x, axes, starts, ends, strides)


@paddles
def sum(
    x: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    keepdim: bool = False,
    name: Name = None,
) -> Variable:
    """Sum over `axis`, or over all axes."""
    return pg.sum(x, axis, keepdim, dtype=dtype)


@paddles
def transpose(x: ArrayLike, perm: Sequence[int], name: Name = None) -> Variable:
    """Axis `i` of the result is axis `perm[i]` of `x`."""
    return pg.transpose(x, perm)


@paddles
def uniform(
    shape: Any,
    dtype: Any = None,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: Name = None,
) -> Variable:
    """Uniform numbers between `min` and `max`, other ones at each call and at each run.

    With a `seed` other than 0 they are those of the seed, the same at each run.
    """
    key = new_key() if seed == 0 else seed
    return as_paddles(pg.uniform(key, shape, min, max, dtype_or_default(dtype)))


@paddles
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    name: Name = None,
) -> Variable:
    """`x` where the condition holds, `y` elsewhere.

    Raises `ArgumentError` without both: how many places there are where it holds depends on
    numbers, and shapes are fixed.
    """
    if x is None or y is None:
        raise ArgumentError(
            "where takes what to choose from, x and y",
            hint="the places where a condition holds are found in what a run returns",
        )
    return pg.where(condition, x, y)


@paddles
def zeros(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Zeros, of the default dtype unless `dtype` is given."""
    return as_paddles(pg.zeros(shape, dtype_or_default(dtype)))


@paddles
def zeros_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Zeros of the shape of `x`, and of its dtype unless `dtype` is given."""
    return pg.zeros_like(x, dtype)


for _name in (
    "gather",
    "index_select",
    "matmul",
    "max",
    "mean",
    "min",
    "norm",
    "pow",
    "reshape",
    "scale",
    "split",
    "strided_slice",
    "sum",
    "transpose",
):
    setattr(Methods, _name, globals()[_name])
