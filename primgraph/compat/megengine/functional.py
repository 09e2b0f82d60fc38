"""Functions of tensors by the names that they have in `megengine.functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import Tensor
from primgraph.eager.seeds import next_key
from primgraph.errors import OptionError
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

Named = TypeVar("Named", bound=Callable[..., Any])


def _of(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`function` of an array that MegEngine calls `inp`; its other arguments have its names."""

    def call(inp: Any, *args: Any, **kwargs: Any) -> Any:
        return function(inp, *args, **kwargs)

    return _named(call, name, function)


def _binary(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def call(x: Any, y: Any) -> Any:
        return function(x, y)

    return _named(call, name, function)


def _named(call: Named, name: str, function: Callable[..., Any]) -> Named:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


abs = _of(pg.abs, "abs")
acos = _of(pg.arccos, "acos")
acosh = _of(pg.arccosh, "acosh")
argmax = _of(pg.argmax, "argmax")
argmin = _of(pg.argmin, "argmin")
asin = _of(pg.arcsin, "asin")
asinh = _of(pg.arcsinh, "asinh")
atan = _of(pg.arctan, "atan")
atanh = _of(pg.arctanh, "atanh")
broadcast_to = _of(pg.broadcast_to, "broadcast_to")
ceil = _of(pg.ceil, "ceil")
cos = _of(pg.cos, "cos")
cosh = _of(pg.cosh, "cosh")
cumsum = _of(pg.cumsum, "cumsum")
erf = _of(pg.erf, "erf")
erfc = _of(pg.erfc, "erfc")
exp = _of(pg.exp, "exp")
expand_dims = _of(pg.expand_dims, "expand_dims")
expm1 = _of(pg.expm1, "expm1")
floor = _of(pg.floor, "floor")
gelu = _of(pg.gelu, "gelu")
isinf = _of(pg.isinf, "isinf")
isnan = _of(pg.isnan, "isnan")
log = _of(pg.log, "log")
log1p = _of(pg.log1p, "log1p")
logical_not = _of(pg.logical_not, "logical_not")
logsoftmax = _of(pg.log_softmax, "logsoftmax")
logsumexp = _of(pg.logsumexp, "logsumexp")
max = _of(pg.max, "max")
mean = _of(pg.mean, "mean")
min = _of(pg.min, "min")
neg = _of(pg.negative, "neg")
norm = _of(pg.norm, "norm")
ones_like = _of(pg.ones_like, "ones_like")
prod = _of(pg.prod, "prod")
relu = _of(pg.relu, "relu")
repeat = _of(pg.repeat, "repeat")
reshape = _of(pg.reshape, "reshape")
roll = _of(pg.roll, "roll")
round = _of(pg.round, "round")
sigmoid = _of(pg.sigmoid, "sigmoid")
sign = _of(pg.sign, "sign")
silu = _of(pg.silu, "silu")
sin = _of(pg.sin, "sin")
sinh = _of(pg.sinh, "sinh")
softplus = _of(pg.softplus, "softplus")
sqrt = _of(pg.sqrt, "sqrt")
square = _of(pg.square, "square")
squeeze = _of(pg.squeeze, "squeeze")
std = _of(pg.std, "std")
sum = _of(pg.sum, "sum")
swapaxes = _of(pg.swapaxes, "swapaxes")
tan = _of(pg.tan, "tan")
tanh = _of(pg.tanh, "tanh")
tile = _of(pg.tile, "tile")
var = _of(pg.var, "var")
zeros_like = _of(pg.zeros_like, "zeros_like")

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
    """Elements limited to an interval."""
    return pg.clip(x, lower, upper)


def where(mask: Any, x: Any, y: Any) -> Any:
    """`x` where the mask holds, `y` elsewhere."""
    return pg.where(mask, x, y)


def matmul(inp1: Any, inp2: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Matrix product; a flag exchanges the last two axes of its factor."""
    left = pg.swapaxes(inp1, -1, -2) if transpose_a else inp1
    return pg.matmul(left, pg.swapaxes(inp2, -1, -2) if transpose_b else inp2)


# Made from nothing.


def zeros(shape: Any, *, dtype: Any = "float32") -> Tensor:
    """Zeros."""
    return Tensor(np.zeros(shape, dtype))


def ones(shape: Any, *, dtype: Any = "float32") -> Tensor:
    """Ones."""
    return Tensor(np.ones(shape, dtype))


def full(shape: Any, value: float, *, dtype: Any = "float32") -> Tensor:
    """`value` at every place."""
    return Tensor(np.full(shape, value, dtype))


def full_like(inp: Any, value: float) -> Any:
    """`value` at every place of the shape of `inp`."""
    return pg.full_like(inp, value)


def arange(
    start: float, stop: float | None = None, step: float = 1, *, dtype: Any = "float32"
) -> Tensor:
    """Numbers from `start` (0 if there is no `stop`) up to but without `stop`, `step` apart."""
    first, last = (0, start) if stop is None else (start, stop)
    return Tensor(np.arange(first, last, step).astype(dtype))


def linspace(start: float, stop: float, num: int, *, dtype: Any = "float32") -> Tensor:
    """`num` numbers from `start` to `stop`, evenly spaced."""
    return Tensor(np.linspace(start, stop, num).astype(dtype))


def eye(N: int, M: int | None = None, *, dtype: Any = "float32") -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    return Tensor(np.eye(N, M, dtype=dtype))


# Shapes and elements.


def concat(inps: Sequence[Any], axis: int = 0) -> Any:
    """Arrays one after the other along `axis`."""
    return pg.concatenate(inps, axis)


def stack(inps: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape along a new axis."""
    return pg.stack(inps, axis)


def split(inp: Any, nsplits_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along `axis`: so many equal ones, or parts that end at these positions."""
    return list(pg.split(inp, nsplits_or_sections, axis))


def transpose(inp: Any, pattern: Sequence[int]) -> Any:
    """Axis `i` of the result is axis `pattern[i]` of `inp`."""
    return pg.transpose(inp, pattern)


def flatten(inp: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    """The axes from `start_axis` to `end_axis` as one."""
    shape = inp.shape
    first, last = as_axis(start_axis, len(shape)), as_axis(end_axis, len(shape))
    middle = product(shape[first : last + 1])
    return pg.reshape(inp, (*shape[:first], middle, *shape[last + 1 :]))


def gather(inp: Any, axis: int, index: Any) -> Any:
    """One element along `axis` for each of `index`."""
    return pg.take_along_axis(inp, index, axis)


def one_hot(inp: Any, num_classes: int) -> Any:
    """Integers as rows with a one at their position."""
    return pg.one_hot(inp, num_classes, inp.dtype)


# Networks and losses.


def linear(inp: Any, weight: Any, bias: Any = None) -> Any:
    """`inp @ weight.T + bias`: the weight is of shape (out_features, in_features)."""
    return pg.linear(inp, pg.transpose(weight), bias)


def softmax(inp: Any, axis: int | Sequence[int] | None = None) -> Any:
    """`exp(inp) / sum(exp(inp))` along `axis`: by default 0 with 0, 1 or 3 axes, or else 1."""
    if axis is None:
        axis = 0 if inp.ndim in (0, 1, 3) else 1
    return pg.softmax(inp, axis)


def dropout(inp: Any, drop_prob: float, training: bool = True) -> Any:
    """Elements set to zero with that probability, the others made larger, in training."""
    return pg.dropout(inp, next_key(), drop_prob, training=training)


def square_loss(pred: Any, label: Any, reduction: str = "mean") -> Any:
    """Squared difference; the mean over all elements, their sum, or none of both."""
    return pg.mse_loss(pred, label, reduction)


def l1_loss(pred: Any, label: Any, reduction: str = "mean") -> Any:
    """Absolute difference; the mean over all elements, their sum, or none of both."""
    return pg.l1_loss(pred, label, reduction)


def cross_entropy(
    pred: Any,
    label: Any,
    axis: int = 1,
    with_logits: bool = True,
    label_smooth: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """Of logits, or of probabilities, along `axis`, against positions."""
    if label_smooth:
        raise OptionError(f"cross_entropy: label_smooth={label_smooth!r:.60} is not supported")
    return pg.cross_entropy(pred if with_logits else pg.log(pred), label, axis, reduction)


def binary_cross_entropy(
    pred: Any, label: Any, with_logits: bool = True, reduction: str = "mean"
) -> Any:
    """Of logits, or of probabilities, against labels between 0 and 1."""
    if with_logits:
        return pg.binary_cross_entropy_with_logits(pred, label, reduction)
    return pg.binary_cross_entropy(pred, label, reduction)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
