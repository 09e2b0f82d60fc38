"""Functions of tensors by the names that they have in `megengine.functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.losses import (
    binary_cross_entropy,
    cross_entropy,
    l1_loss,
    square_loss,
)
from primgraph.compat.megengine.tensor import Tensor
from primgraph.compat.renamed import renamed
from primgraph.eager.seeds import next_key
from primgraph.ir.types import as_axis

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "arange",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "binary_cross_entropy",
    "broadcast_to",
    "ceil",
    "clip",
    "concat",
    "cos",
    "cosh",
    "cross_entropy",
    "cumsum",
    "div",
    "dot",
    "dropout",
    "equal",
    "erf",
    "erfc",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "flatten",
    "floor",
    "floor_div",
    "full",
    "full_like",
    "gather",
    "gelu",
    "greater",
    "greater_equal",
    "isinf",
    "isnan",
    "l1_loss",
    "less",
    "less_equal",
    "linear",
    "linspace",
    "log",
    "log1p",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsoftmax",
    "logsumexp",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "mul",
    "neg",
    "norm",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "pow",
    "prod",
    "relu",
    "repeat",
    "reshape",
    "roll",
    "round",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "square",
    "square_loss",
    "squeeze",
    "stack",
    "std",
    "sub",
    "sum",
    "swapaxes",
    "tan",
    "tanh",
    "tile",
    "transpose",
    "var",
    "where",
    "zeros",
    "zeros_like",
]


def _accept_inp(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`function` of an array that MegEngine calls `inp`; its other arguments have its names."""

    def call(inp: Any, *args: Any, **kwargs: Any) -> Any:
        return function(inp, *args, **kwargs)

    return renamed(call, name, function)


def _binary(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def call(x: Any, y: Any) -> Any:
        return function(x, y)

    return renamed(call, name, function)


abs = _accept_inp(pg.abs, "abs")
acos = _accept_inp(pg.arccos, "acos")
acosh = _accept_inp(pg.arccosh, "acosh")
argmax = _accept_inp(pg.argmax, "argmax")
argmin = _accept_inp(pg.argmin, "argmin")
asin = _accept_inp(pg.arcsin, "asin")
asinh = _accept_inp(pg.arcsinh, "asinh")
atan = _accept_inp(pg.arctan, "atan")
atanh = _accept_inp(pg.arctanh, "atanh")
broadcast_to = _accept_inp(pg.broadcast_to, "broadcast_to")
ceil = _accept_inp(pg.ceil, "ceil")
cos = _accept_inp(pg.cos, "cos")
cosh = _accept_inp(pg.cosh, "cosh")
cumsum = _accept_inp(pg.cumsum, "cumsum")
erf = _accept_inp(pg.erf, "erf")
erfc = _accept_inp(pg.erfc, "erfc")
exp = _accept_inp(pg.exp, "exp")
expand_dims = _accept_inp(pg.expand_dims, "expand_dims")
expm1 = _accept_inp(pg.expm1, "expm1")
floor = _accept_inp(pg.floor, "floor")
gelu = _accept_inp(pg.gelu, "gelu")
isinf = _accept_inp(pg.isinf, "isinf")
isnan = _accept_inp(pg.isnan, "isnan")
log = _accept_inp(pg.log, "log")
log1p = _accept_inp(pg.log1p, "log1p")
logical_not = _accept_inp(pg.logical_not, "logical_not")
logsoftmax = _accept_inp(pg.log_softmax, "logsoftmax")
logsumexp = _accept_inp(pg.logsumexp, "logsumexp")
max = _accept_inp(pg.max, "max")
mean = _accept_inp(pg.mean, "mean")
min = _accept_inp(pg.min, "min")
neg = _accept_inp(pg.negative, "neg")
norm = _accept_inp(pg.norm, "norm")
ones_like = _accept_inp(pg.ones_like, "ones_like")
prod = _accept_inp(pg.prod, "prod")
relu = _accept_inp(pg.relu, "relu")
repeat = _accept_inp(pg.repeat, "repeat")
reshape = _accept_inp(pg.reshape, "reshape")
roll = _accept_inp(pg.roll, "roll")
round = _accept_inp(pg.round, "round")
sigmoid = _accept_inp(pg.sigmoid, "sigmoid")
sign = _accept_inp(pg.sign, "sign")
silu = _accept_inp(pg.silu, "silu")
sin = _accept_inp(pg.sin, "sin")
sinh = _accept_inp(pg.sinh, "sinh")
softplus = _accept_inp(pg.softplus, "softplus")
sqrt = _accept_inp(pg.sqrt, "sqrt")
square = _accept_inp(pg.square, "square")
squeeze = _accept_inp(pg.squeeze, "squeeze")
std = _accept_inp(pg.std, "std")
sum = _accept_inp(pg.sum, "sum")
swapaxes = _accept_inp(pg.swapaxes, "swapaxes")
tan = _accept_inp(pg.tan, "tan")
tanh = _accept_inp(pg.tanh, "tanh")
tile = _accept_inp(pg.tile, "tile")
var = _accept_inp(pg.var, "var")
zeros_like = _accept_inp(pg.zeros_like, "zeros_like")

add = _binary(pg.add, "add")
atan2 = _binary(pg.arctan2, "atan2")
div = _binary(pg.divide, "div")
dot = _binary(pg.dot, "dot")
equal = _binary(pg.equal, "equal")
floor_div = _binary(pg.floor_divide, "floor_div")
greater = _binary(pg.greater, "greater")
greater_equal = _binary(pg.greater_equal, "greater_equal")
less = _binary(pg.less, "less")
less_equal = _binary(pg.less_equal, "less_equal")
logaddexp = _binary(pg.logaddexp, "logaddexp")
logical_and = _binary(pg.logical_and, "logical_and")
logical_or = _binary(pg.logical_or, "logical_or")
logical_xor = _binary(pg.logical_xor, "logical_xor")
maximum = _binary(pg.maximum, "maximum")
minimum = _binary(pg.minimum, "minimum")
mod = _binary(pg.remainder, "mod")
mul = _binary(pg.multiply, "mul")
not_equal = _binary(pg.not_equal, "not_equal")
pow = _binary(pg.power, "pow")
sub = _binary(pg.subtract, "sub")


def clip(x: Any, lower: Any = None, upper: Any = None) -> Any:
    """Limit elements to an interval.

    >>> F = megengine.functional
    >>> F.clip(F.arange(4), 1.0, 2.0)
    tensor([1., 1., 2., 2.], dtype=float32)
    """
    return pg.clip(x, lower, upper)


def where(mask: Any, x: Any, y: Any) -> Any:
    """Choose elements of `x` where the mask is true, and of `y` elsewhere.

    >>> F = megengine.functional
    >>> x = F.arange(3)
    >>> F.where(x > 1, x, F.zeros(3))
    tensor([0., 0., 2.], dtype=float32)
    """
    return pg.where(mask, x, y)


def matmul(inp1: Any, inp2: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Multiply matrices; a flag transposes the last two axes of its factor.

    >>> F = megengine.functional
    >>> F.matmul(F.ones((2, 3)), F.ones((4, 3)), transpose_b=True).shape
    (2, 4)
    """
    left = pg.swapaxes(inp1, -1, -2) if transpose_a else inp1
    return pg.matmul(left, pg.swapaxes(inp2, -1, -2) if transpose_b else inp2)


# Made from nothing.


def zeros(shape: Any, *, dtype: Any = "float32") -> Tensor:
    """Return a tensor of zeros.

    >>> F = megengine.functional
    >>> F.zeros((2, 3))
    tensor([[0., 0., 0.],
            [0., 0., 0.]], dtype=float32)
    """
    return Tensor(np.zeros(shape, dtype))


def ones(shape: Any, *, dtype: Any = "float32") -> Tensor:
    """Return a tensor of ones.

    >>> F = megengine.functional
    >>> F.ones((2, 3))
    tensor([[1., 1., 1.],
            [1., 1., 1.]], dtype=float32)
    """
    return Tensor(np.ones(shape, dtype))


def full(shape: Any, value: float, *, dtype: Any = "float32") -> Tensor:
    """Return a tensor with all elements equal to `value`.

    >>> F = megengine.functional
    >>> F.full((2,), 0.5)
    tensor([0.5, 0.5], dtype=float32)
    """
    return Tensor(np.full(shape, value, dtype))


def full_like(inp: Any, value: float) -> Any:
    """Return a tensor of the shape of `inp` with all elements equal to `value`.

    >>> F = megengine.functional
    >>> F.full_like(F.ones(2), 0.5)
    tensor([0.5, 0.5], dtype=float32)
    """
    return pg.full_like(inp, value)


def arange(
    start: float, stop: float | None = None, step: float = 1, *, dtype: Any = "float32"
) -> Tensor:
    """Return numbers from `start` (0 without a `stop`) up to but excluding `stop`, `step` apart.

    >>> F = megengine.functional
    >>> F.arange(1, 7, 2)
    tensor([1., 3., 5.], dtype=float32)
    """
    first, last = (0, start) if stop is None else (start, stop)
    return Tensor(np.arange(first, last, step).astype(dtype))


def linspace(start: float, stop: float, num: int, *, dtype: Any = "float32") -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    >>> F = megengine.functional
    >>> F.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return Tensor(np.linspace(start, stop, num).astype(dtype))


def eye(N: int, M: int | None = None, *, dtype: Any = "float32") -> Tensor:
    """Return a matrix with ones on the diagonal, and zeros elsewhere.

    >>> F = megengine.functional
    >>> F.eye(2)
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    return Tensor(np.eye(N, M, dtype=dtype))


# Shapes and elements.


def concat(inps: Sequence[Any], axis: int = 0) -> Any:
    """Join arrays along `axis`.

    >>> F = megengine.functional
    >>> F.concat([F.zeros(1), F.ones(2)])
    tensor([0., 1., 1.], dtype=float32)
    """
    return pg.concatenate(inps, axis)


def stack(inps: Sequence[Any], axis: int = 0) -> Any:
    """Stack arrays of one shape along a new axis.

    >>> F = megengine.functional
    >>> F.stack([F.zeros(2), F.ones(2)])
    tensor([[0., 0.],
            [1., 1.]], dtype=float32)
    """
    return pg.stack(inps, axis)


def split(inp: Any, nsplits_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along `axis` into equal parts, or into parts that end at these positions.

    >>> F = megengine.functional
    >>> [part.tolist() for part in F.split(F.arange(4), 2)]
    [[0.0, 1.0], [2.0, 3.0]]
    """
    return list(pg.split(inp, nsplits_or_sections, axis))


def transpose(inp: Any, pattern: Sequence[int]) -> Any:
    """Permute the axes: axis `i` of the result is axis `pattern[i]` of `inp`.

    >>> F = megengine.functional
    >>> F.transpose(F.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return pg.transpose(inp, pattern)


def flatten(inp: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    """Merge the axes from `start_axis` to `end_axis` into one.

    >>> F = megengine.functional
    >>> F.flatten(F.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = inp.shape
    first, last = as_axis(start_axis, len(shape)), as_axis(end_axis, len(shape))
    middle = product(shape[first : last + 1])
    return pg.reshape(inp, (*shape[:first], middle, *shape[last + 1 :]))


def gather(inp: Any, axis: int, index: Any) -> Any:
    """Take one element along `axis` for each of `index`.

    >>> F = megengine.functional
    >>> F.gather(F.arange(3), 0, megengine.tensor([2, 0]))
    tensor([2., 0.], dtype=float32)
    """
    return pg.take_along_axis(inp, index, axis)


def one_hot(inp: Any, num_classes: int) -> Any:
    """Encode integers as rows with a one at their position.

    >>> F = megengine.functional
    >>> F.one_hot(megengine.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]], dtype=int32)
    """
    return pg.one_hot(inp, num_classes, inp.dtype)


# Networks.


def linear(inp: Any, weight: Any, bias: Any = None) -> Any:
    """Compute `inp @ weight.T + bias`: the weight has shape (out_features, in_features).

    >>> F = megengine.functional
    >>> F.linear(F.ones((1, 2)), F.ones((3, 2)), F.ones(3))
    tensor([[3., 3., 3.]], dtype=float32)
    """
    return pg.linear(inp, pg.transpose(weight), bias)


def softmax(inp: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Compute `exp(inp) / sum(exp(inp))` along `axis`: by default 0 for 0, 1 or 3 axes, else 1.

    >>> F = megengine.functional
    >>> F.softmax(F.zeros(2))
    tensor([0.5, 0.5], dtype=float32)
    """
    if axis is None:
        axis = 0 if inp.ndim in (0, 1, 3) else 1
    return pg.softmax(inp, axis)


def dropout(inp: Any, drop_prob: float, training: bool = True) -> Any:
    """Set elements to zero with that probability, and scale the others, in training.

    >>> F = megengine.functional
    >>> F.dropout(F.ones(3), 0.5, training=False)
    tensor([1., 1., 1.], dtype=float32)
    """
    return pg.dropout(inp, next_key(), drop_prob, training=training)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
