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
from primgraph.compat.paddle.framework import paddles, reject_options
from primgraph.compat.paddle.methods import Methods
from primgraph.compat.renamed import renamed
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import ArrayLike, Axes, Handle
from primgraph.operators.variable import Variable

Name: TypeAlias = str | None


def _unary(function: Callable[[Any], Variable], name: str) -> Callable[..., Variable]:
    """`function` of one array `x`."""

    def call(x: ArrayLike, name: Name = None) -> Variable:
        return function(x)

    return paddles(renamed(call, name, function))


def _binary(function: Callable[[Any, Any], Variable], name: str) -> Callable[..., Variable]:
    """`function` of two arrays `x` and `y`."""

    def call(x: ArrayLike, y: ArrayLike, name: Name = None) -> Variable:
        return function(x, y)

    return paddles(renamed(call, name, function))


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
    """Add all arrays in a list; the sum of a single array is the array.

    >>> paddle.add_n([paddle.ones([2]), paddle.ones([2])])
    tensor([2., 2.], dtype=float32)
    """
    return pg.add_n([inputs] if isinstance(inputs, Variable) else inputs)


@paddles
def assign(x: ArrayLike, output: None = None) -> Variable:
    """Return `x` itself, as a handle. There is no `output`, as values never change.

    >>> paddle.assign([1.0, 2.0])
    tensor([1., 2.])
    """
    reject_options("assign", output=output)
    return pg.assign(x)


@paddles
def broadcast_to(x: ArrayLike, shape: Any, name: Name = None) -> Variable:
    """Repeat `x` along new leading axes and along axes of size one.

    >>> paddle.broadcast_to(paddle.to_tensor([1.0, 2.0]), [2, 2])
    tensor([[1., 2.],
            [1., 2.]], dtype=float32)
    """
    return pg.broadcast_to(x, shape)


@paddles
def cast(x: ArrayLike, dtype: Any) -> Variable:
    """Convert to another dtype.

    >>> paddle.cast(paddle.to_tensor([1.5, 2.5]), "int64")
    tensor([1, 2], dtype=int64)
    """
    return pg.cast(x, dtype)


@paddles
def concat(x: Sequence[ArrayLike], axis: int = 0, name: Name = None) -> Variable:
    """Join the arrays in `x` along `axis`.

    >>> paddle.concat([paddle.ones([1]), paddle.zeros([2])])
    tensor([1., 0., 0.], dtype=float32)
    """
    return pg.concat(x, axis)


@paddles
def gather(x: ArrayLike, index: ArrayLike, axis: int | None = None, name: Name = None) -> Variable:
    """Take the slices of `x` at positions `index` along `axis`, by default the first.

    >>> paddle.gather(paddle.to_tensor([5.0, 6.0, 7.0]), paddle.to_tensor([2, 0]))
    tensor([7., 5.], dtype=float32)
    """
    return pg.gather(x, index, 0 if axis is None else axis)


@paddles
def index_select(x: ArrayLike, index: ArrayLike, axis: int = 0, name: Name = None) -> Variable:
    """Take the slices of `x` at positions `index` along `axis`.

    >>> paddle.index_select(paddle.to_tensor([[1.0, 2.0]]), paddle.to_tensor([1]), axis=1)
    tensor([[2.]], dtype=float32)
    """
    return pg.gather(x, index, axis)


@paddles
def matmul(
    x: ArrayLike,
    y: ArrayLike,
    transpose_x: bool = False,
    transpose_y: bool = False,
    name: Name = None,
) -> Variable:
    """Multiply matrices; a flag transposes the last two axes of its factor, if it has two.

    >>> paddle.matmul(paddle.ones([2, 3]), paddle.ones([4, 3]), transpose_y=True).shape
    (2, 4)
    """
    return pg.matmul(_transpose_if(x, transpose_x), _transpose_if(y, transpose_y))


def _transpose_if(x: ArrayLike, turn: bool) -> ArrayLike:
    return pg.swapaxes(x, -1, -2) if turn and len(_shape(x)) > 1 else x


def _shape(x: ArrayLike) -> tuple[int, ...]:
    return x.shape if isinstance(x, Handle) else np.shape(x)


@paddles
def max(x: ArrayLike, axis: Axes = None, keepdim: bool = False, name: Name = None) -> Variable:
    """Return the largest element over `axis`, or of all.

    >>> paddle.max(paddle.to_tensor([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    tensor([5., 4.], dtype=float32)
    """
    return pg.max(x, axis, keepdim)


@paddles
def mean(x: ArrayLike, axis: Axes = None, keepdim: bool = False, name: Name = None) -> Variable:
    """Compute the arithmetic mean over `axis`, or of all.

    >>> paddle.mean(paddle.to_tensor([[1.0, 5.0], [3.0, 4.0]]), axis=0)
    tensor([2. , 4.5], dtype=float32)
    """
    return pg.mean(x, axis, keepdim)


@paddles
def min(x: ArrayLike, axis: Axes = None, keepdim: bool = False, name: Name = None) -> Variable:
    """Return the smallest element over `axis`, or of all.

    >>> paddle.min(paddle.to_tensor([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    tensor([1., 3.], dtype=float32)
    """
    return pg.min(x, axis, keepdim)


@paddles
def norm(
    x: ArrayLike,
    p: float | str | None = None,
    axis: Axes = None,
    keepdim: bool = False,
    name: Name = None,
) -> Variable:
    """Compute the norm over `axis`, or of all elements.

    `p` is 1, 2 or infinity; None and "fro" mean 2. Raises `ArgumentError` for another `p` than 2
    over several axes.

    >>> paddle.norm(paddle.to_tensor([3.0, 4.0]))
    tensor(5., dtype=float32)
    """
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
def reshape(x: ArrayLike, shape: Sequence[int], name: Name = None) -> Variable:
    """Return the elements in another shape: 0 keeps a size of `x`, and one -1 stands for the rest.

    >>> paddle.reshape(paddle.ones([2, 6]), [0, 3, -1]).shape
    (2, 3, 2)
    """
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
    """Compute `scale * x + bias`, or `scale * (x + bias)` if `bias_after_scale` is False.

    `act` is the name of a function to apply: relu, sigmoid, tanh and others. Raises
    `ArgumentError` for an unknown name.

    >>> paddle.scale(paddle.to_tensor([1.0, 2.0]), 2.0, bias=-3.0, act="relu")
    tensor([0., 1.], dtype=float32)
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
    """Take the slice `starts[i]:ends[i]` along `axes[i]`, for all i.

    >>> paddle.slice(paddle.arange(6), [0], [1], [4])
    tensor([1, 2, 3], dtype=int64)
    """
    return pg.strided_slice(input, axes, starts, ends)


@paddles
def split(
    x: ArrayLike, num_or_sections: int | Sequence[int], axis: int = 0, name: Name = None
) -> list[Variable]:
    """Split `x` along `axis` into equal parts, or into parts of these sizes; one -1 is the rest.

    Raises `ShapeError` if the parts do not add up to the whole.

    >>> paddle.split(paddle.arange(5), [2, -1])
    [tensor([0, 1], dtype=int64), tensor([2, 3, 4], dtype=int64)]
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
    """Stack arrays of one shape along a new axis.

    >>> paddle.stack([paddle.zeros([2]), paddle.ones([2])])
    tensor([[0., 0.],
            [1., 1.]], dtype=float32)
    """
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
    """Take the slice `starts[i]:ends[i]:strides[i]` along `axes[i]`, for all i.

    >>> paddle.strided_slice(paddle.arange(6), [0], [1], [6], [2])
    tensor([1, 3, 5], dtype=int64)
    """
    return pg.strided_slice(x, axes, starts, ends, strides)


@paddles
def sum(
    x: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    keepdim: bool = False,
    name: Name = None,
) -> Variable:
    """Compute the sum over `axis`, or over all axes.

    >>> paddle.sum(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.], dtype=float32)
    """
    return pg.sum(x, axis, keepdim, dtype=dtype)


@paddles
def transpose(x: ArrayLike, perm: Sequence[int], name: Name = None) -> Variable:
    """Permute the axes: axis `i` of the result is axis `perm[i]` of `x`.

    >>> paddle.transpose(paddle.ones([2, 3, 4]), [2, 0, 1]).shape
    (4, 2, 3)
    """
    return pg.transpose(x, perm)


@paddles
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    name: Name = None,
) -> Variable:
    """Choose elements of `x` where the condition is true, and of `y` elsewhere.

    Raises `ArgumentError` without both: the number of positions where it is true depends on
    elements, and shapes are fixed.

    >>> x = paddle.to_tensor([-1.0, 2.0])
    >>> paddle.where(x > 0.0, x, paddle.zeros([2]))
    tensor([0., 2.], dtype=float32)
    """
    if x is None or y is None:
        raise ArgumentError(
            "where takes what to choose from, x and y",
            hint="the places where a condition holds are found in what a run returns",
        )
    return pg.where(condition, x, y)


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
