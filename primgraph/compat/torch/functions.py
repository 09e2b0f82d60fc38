"""Functions of tensors, with torch's names for them and for their arguments."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod as product
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch import framework
from primgraph.eager.inplace.views import share_computed
from primgraph.errors import ArgumentError, BoundsError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle
from primgraph.operators.reduce.norms import vector_norm

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bmm",
    "broadcast_to",
    "cat",
    "ceil",
    "chunk",
    "clamp",
    "complex",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "cos",
    "cosh",
    "cumsum",
    "diagonal",
    "div",
    "divide",
    "dot",
    "einsum",
    "eq",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expand",
    "expand_as",
    "expm1",
    "flatten",
    "flip",
    "floor",
    "gather",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "imag",
    "index_select",
    "inner",
    "is_complex",
    "is_tensor",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "lt",
    "masked_fill",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mm",
    "movedim",
    "mul",
    "multiply",
    "mv",
    "narrow",
    "ne",
    "neg",
    "negative",
    "norm",
    "not_equal",
    "numel",
    "outer",
    "permute",
    "polar",
    "pow",
    "prod",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "resolve_conj",
    "roll",
    "round",
    "rsqrt",
    "select",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softmax",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "t",
    "take_along_dim",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "unbind",
    "unsqueeze",
    "var",
    "vdot",
    "view",
    "view_as_complex",
    "view_as_real",
    "where",
]

Dims: TypeAlias = int | Sequence[int] | None
Named = TypeVar("Named", bound=Callable[..., Any])


def _unary(function: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    def call(input: Any) -> Any:
        return function(input)

    return _set_name(call, name, function)


def _binary(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def call(input: Any, other: Any) -> Any:
        return function(input, other)

    return _set_name(call, name, function)


def _set_name(call: Named, name: str, function: Callable[..., Any]) -> Named:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


abs = absolute = _unary(pg.abs, "abs")
acos = arccos = _unary(pg.arccos, "acos")
acosh = arccosh = _unary(pg.arccosh, "acosh")
asin = arcsin = _unary(pg.arcsin, "asin")
asinh = arcsinh = _unary(pg.arcsinh, "asinh")
atan = arctan = _unary(pg.arctan, "atan")
atanh = arctanh = _unary(pg.arctanh, "atanh")
angle = _unary(pg.angle, "angle")
ceil = _unary(pg.ceil, "ceil")
conj = conj_physical = _unary(pg.conj, "conj")
imag = _unary(pg.imag, "imag")
real = _unary(pg.real, "real")
cos = _unary(pg.cos, "cos")
cosh = _unary(pg.cosh, "cosh")
erf = _unary(pg.erf, "erf")
erfc = _unary(pg.erfc, "erfc")
exp = _unary(pg.exp, "exp")
exp2 = _unary(pg.exp2, "exp2")
expm1 = _unary(pg.expm1, "expm1")
floor = _unary(pg.floor, "floor")
isfinite = _unary(pg.isfinite, "isfinite")
isinf = _unary(pg.isinf, "isinf")
isnan = _unary(pg.isnan, "isnan")
log = _unary(pg.log, "log")
log10 = _unary(pg.log10, "log10")
log1p = _unary(pg.log1p, "log1p")
log2 = _unary(pg.log2, "log2")
logical_not = _unary(pg.logical_not, "logical_not")
neg = negative = _unary(pg.negative, "neg")
ravel = _unary(pg.ravel, "ravel")
reciprocal = _unary(pg.reciprocal, "reciprocal")
relu = _unary(pg.relu, "relu")
rsqrt = _unary(pg.rsqrt, "rsqrt")
sigmoid = _unary(pg.sigmoid, "sigmoid")
sgn = sign = _unary(pg.sign, "sign")
sin = _unary(pg.sin, "sin")
sinh = _unary(pg.sinh, "sinh")
sqrt = _unary(pg.sqrt, "sqrt")
square = _unary(pg.square, "square")
tan = _unary(pg.tan, "tan")
tanh = _unary(pg.tanh, "tanh")

atan2 = arctan2 = _binary(pg.arctan2, "atan2")
dot = _binary(pg.dot, "dot")
eq = _binary(pg.equal, "eq")
ge = greater_equal = _binary(pg.greater_equal, "ge")
gt = greater = _binary(pg.greater, "gt")
inner = _binary(pg.inner, "inner")
le = less_equal = _binary(pg.less_equal, "le")
logaddexp = _binary(pg.logaddexp, "logaddexp")
logical_and = _binary(pg.logical_and, "logical_and")
logical_or = _binary(pg.logical_or, "logical_or")
logical_xor = _binary(pg.logical_xor, "logical_xor")
lt = less = _binary(pg.less, "lt")
matmul = mm = bmm = mv = _binary(pg.matmul, "matmul")
maximum = _binary(pg.maximum, "maximum")
minimum = _binary(pg.minimum, "minimum")
mul = multiply = _binary(pg.multiply, "mul")
ne = not_equal = _binary(pg.not_equal, "ne")
outer = _binary(pg.outer, "outer")
remainder = _binary(pg.remainder, "remainder")


def complex(real: Any, imag: Any) -> Any:
    """Return complex numbers with these real and imaginary parts.

    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j], dtype=torch.complex64)
    """
    return pg.complex(real, imag)


def resolve_conj(input: Any) -> Any:
    """Return `input`: conjugates are computed at once here, and never deferred.

    >>> torch.resolve_conj(torch.tensor([1.0]))
    tensor([1.])
    """
    return input


def polar(abs: Any, angle: Any) -> Any:
    """Return complex numbers with these absolute values and angles.

    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j], dtype=torch.complex64)
    """
    return pg.complex(pg.multiply(abs, pg.cos(angle)), pg.multiply(abs, pg.sin(angle)))


def is_complex(input: Any) -> builtins.bool:
    """Return whether the elements are complex.

    >>> torch.is_complex(torch.ones(2))
    False
    """
    return builtins.bool(input.dtype.kind == "c")


def vdot(input: Any, other: Any) -> Any:
    """Compute the sum of products, with conjugates of the first operand.

    >>> torch.vdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return pg.dot(pg.conj(input), other)


def view_as_real(input: Any) -> Any:
    """Return real and imaginary parts along a new last axis.

    >>> torch.view_as_real(torch.tensor([1.0 + 2.0j])).tolist()
    [[1.0, 2.0]]
    """
    return share_computed(pg.stack([pg.real(input), pg.imag(input)], -1), input, view_as_real)


def view_as_complex(input: Any) -> Any:
    """Return complex numbers from the parts along the last axis, of size two.

    Raises `ShapeError` for another size.

    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    if not input.shape or input.shape[-1] != 2:
        raise ShapeError(f"view_as_complex takes pairs along the last axis, not {input.type}")
    found = pg.complex(input[..., 0], input[..., 1])
    return share_computed(found, input, view_as_complex)


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Compute `input + alpha * other`.

    >>> torch.add(torch.ones(2), torch.tensor([1.0, 2.0]), alpha=10)
    tensor([11., 21.])
    """
    return pg.add(input, other if alpha == 1 else pg.multiply(other, alpha))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Compute `input - alpha * other`.

    >>> torch.sub(torch.ones(2), torch.tensor([1.0, 2.0]), alpha=10)
    tensor([ -9., -19.])
    """
    return pg.subtract(input, other if alpha == 1 else pg.multiply(other, alpha))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Compute `input / other`, rounded down with `rounding_mode` "floor".

    >>> torch.div(torch.tensor([7.0]), torch.tensor([2.0]), rounding_mode="floor")
    tensor([3.])
    """
    if rounding_mode == "floor":
        return pg.floor_divide(input, other)
    if rounding_mode is not None:
        raise ArgumentError(f"div has no rounding_mode {rounding_mode!r:.60}, but 'floor' or None")
    return pg.divide(input, other)


subtract, divide, true_divide = sub, div, div


def pow(input: Any, exponent: Any) -> Any:
    """Compute `input` to the power of `exponent`.

    >>> torch.pow(torch.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    """
    return pg.power(input, exponent)


def round(input: Any, *, decimals: int = 0) -> Any:
    """Round elements, halves to even.

    >>> torch.round(torch.tensor([0.5, 1.5]))
    tensor([0., 2.])
    """
    return pg.round(input, decimals)


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Limit elements to an interval; the derivative is 1 inside and at the bounds.

    >>> torch.clamp(torch.tensor([-1.0, 0.5, 3.0]), 0.0, 1.0)
    tensor([0. , 0.5, 1. ])
    """
    return pg.clip(input, min, max)


def where(condition: Any, input: Any, other: Any) -> Any:
    """Choose elements of `input` where the condition is true, and of `other` elsewhere.

    Two Python numbers, one of them a float, are of the default dtype.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, torch.zeros(2))
    tensor([0., 2.])
    """
    kinds = {type(input), type(other)}
    if builtins.float in kinds and kinds <= {builtins.float, builtins.int, builtins.bool}:
        input = np.asarray(input, framework.get_default_dtype())
        other = np.asarray(other, framework.get_default_dtype())
    return pg.where(condition, input, other)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Replace elements of `input` by `value` where the mask is true, in the dtype of `input`.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.masked_fill(x, x < 0, 0.0)
    tensor([0., 2.])
    """
    return pg.where(mask, pg.astype(value, input.dtype), input)


# Reductions and scans.


class Extremes(NamedTuple):
    """Maxima or minima along an axis, and their indices."""

    values: Any
    indices: Any


def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the sum over `dim`, or of all elements.

    >>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    return pg.sum(input, dim, keepdim, dtype=dtype)


def mean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the mean over `dim`, or of all elements.

    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([2., 3.])
    """
    return pg.mean(input if dtype is None else pg.astype(input, dtype), dim, keepdim)


def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the product over `dim`, or of all elements.

    >>> torch.prod(torch.tensor([2.0, 3.0]))
    tensor(6.)
    """
    return pg.prod(input, dim, keepdim, dtype=dtype)


def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Compute the variance over `dim`, with divisor `n - correction`, which is 1 by default.

    >>> torch.var(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    return pg.var(input, dim, keepdim, ddof=int(unbiased) if correction is None else correction)


def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Compute the standard deviation over `dim`, the square root of `var`.

    >>> torch.std(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    return pg.std(input, dim, keepdim, ddof=int(unbiased) if correction is None else correction)


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the largest element; along `dim`, with its index; or of two arrays.

    >>> values, indices = torch.max(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> indices
    tensor([1, 1])
    """
    if dim is None:
        return pg.max(input)
    if isinstance(dim, Handle):
        return pg.maximum(input, dim)
    return Extremes(pg.max(input, dim, keepdim), pg.argmax(input, dim, keepdim))


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the smallest element; along `dim`, with its index; or of two arrays.

    >>> values, indices = torch.min(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> values
    tensor([1., 3.])
    """
    if dim is None:
        return pg.min(input)
    if isinstance(dim, Handle):
        return pg.minimum(input, dim)
    return Extremes(pg.min(input, dim, keepdim), pg.argmin(input, dim, keepdim))


def amax(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return the largest element over `dim`.

    >>> torch.amax(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([5., 4.])
    """
    return pg.max(input, dim, keepdim)


def amin(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return the smallest element over `dim`.

    >>> torch.amin(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([1., 3.])
    """
    return pg.min(input, dim, keepdim)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the first largest element.

    >>> torch.argmax(torch.tensor([1.0, 3.0, 3.0]))
    tensor(1)
    """
    return pg.argmax(input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the first smallest element.

    >>> torch.argmin(torch.tensor([2.0, 1.0, 1.0]))
    tensor(1)
    """
    return pg.argmin(input, dim, keepdim)


def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return whether all elements over `dim` differ from zero.

    >>> torch.all(torch.tensor([True, False]))
    tensor(False)
    """
    return pg.all(input, dim, keepdim)


def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return whether an element over `dim` differs from zero.

    >>> torch.any(torch.tensor([True, False]))
    tensor(True)
    """
    return pg.any(input, dim, keepdim)


def norm(input: Any, p: Any = "fro", dim: Dims = None, keepdim: bool = False) -> Any:
    """Compute the norm over `dim`, or of all elements; "fro" and None mean the Euclidean one.

    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    order = None if p in ("fro", None, 2) else p
    several = isinstance(dim, list | tuple) and len(dim) > 1
    if several and order is not None and not isinstance(order, str):
        # A number is the order of the norm of all elements as one vector, unlike NumPy's.
        return vector_norm(input, axis=dim, keepdims=keepdim, ord=order)
    if dim is not None or order is None:
        return pg.norm(input, order, dim, keepdim)
    found = pg.norm(pg.flatten(input), order)
    return pg.reshape(found, (1,) * input.ndim) if keepdim else found


def cumsum(input: Any, dim: int) -> Any:
    """Compute the cumulative sum along `dim`.

    >>> torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    return pg.cumsum(input, dim)


def logsumexp(input: Any, dim: Dims, keepdim: bool = False) -> Any:
    """Compute `log(sum(exp(input)))` over `dim`.

    >>> torch.logsumexp(torch.zeros(2), dim=0)
    tensor(0.6931)
    """
    return pg.logsumexp(input, dim, keepdim)


def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute `exp(input) / sum(exp(input))` along `dim`, of `input` in `dtype` if one is given.

    >>> torch.softmax(torch.zeros(2), dim=0)
    tensor([0.5, 0.5])
    """
    return pg.softmax(input if dtype is None else pg.astype(input, dtype), dim)


def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute the logarithm of `softmax`.

    >>> torch.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return pg.log_softmax(input if dtype is None else pg.astype(input, dtype), dim)


# Products.


def einsum(equation: str, *operands: Any) -> Any:
    """Compute sums of products by letters of axes, of operands given one by one or in a list.

    >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    return pg.einsum(equation, *_collect_varargs(operands))


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Compute products over the last axes of `a` and the first of `b`, or over those in `dims`.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    return pg.tensordot(a, b, dims)


# Shapes.


def _collect_varargs(sizes: Sequence[Any], named: Any = None) -> Any:
    """Sizes that are given one by one, as one sequence, or by name."""
    if named is not None:
        return named
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """Return the same elements in another shape, given as integers or as a sequence.

    >>> torch.reshape(torch.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return pg.reshape(input, _collect_varargs(sizes, shape))


view = reshape


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge the axes from `start_dim` to `end_dim` into one.

    >>> torch.flatten(torch.ones(2, 3, 4), start_dim=1).shape
    torch.Size([2, 12])
    """
    shape = input.shape
    if not shape:
        return pg.reshape(input, (1,))
    first, last = as_axis(start_dim, len(shape)), as_axis(end_dim, len(shape))
    middle = product(shape[first : last + 1])
    return pg.reshape(input, (*shape[:first], middle, *shape[last + 1 :]))


def squeeze(input: Any, dim: Dims = None) -> Any:
    """Remove axes of size one: all, or those in `dim` that have it.

    >>> torch.squeeze(torch.ones(2, 1, 3)).shape
    torch.Size([2, 3])
    """
    if dim is None:
        return pg.squeeze(input)
    listed = [dim] if isinstance(dim, int) else dim
    axes = [as_axis(d, input.ndim) for d in listed]
    return pg.squeeze(input, tuple(a for a in axes if input.shape[a] == 1))


def unsqueeze(input: Any, dim: int) -> Any:
    """Insert a new axis of size one at `dim`.

    >>> torch.unsqueeze(torch.ones(2, 3), 1).shape
    torch.Size([2, 1, 3])
    """
    return pg.expand_dims(input, dim)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Exchange two axes.

    >>> torch.transpose(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    return pg.swapaxes(input, dim0, dim1)


swapaxes = transpose


def t(input: Any) -> Any:
    """Transpose a matrix; a vector stays as it is. Raises `ShapeError` for more axes.

    >>> torch.t(torch.ones(2, 3)).shape
    torch.Size([3, 2])
    """
    if input.ndim > 2:
        raise ShapeError(f"t takes a matrix, not an array of {input.ndim} axes")
    return pg.transpose(input)


def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Permute the axes: axis `i` of the result is axis `dims[i]` of `input`.

    >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    return pg.transpose(input, _collect_varargs(order, dims))


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move axes to other positions.

    >>> torch.movedim(torch.ones(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    return pg.moveaxis(input, source, destination)


def broadcast_to(input: Any, size: Any) -> Any:
    """Repeat along new leading axes and along axes of size one.

    >>> torch.broadcast_to(torch.arange(2), (2, 2))
    tensor([[0, 1],
            [0, 1]])
    """
    return pg.broadcast_to(input, size)


def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Repeat along axes of size one; -1 keeps a size.

    >>> torch.expand(torch.ones(2, 1), -1, 3).shape
    torch.Size([2, 3])
    """
    wanted = list(_collect_varargs(sizes, size))
    kept = (1,) * (len(wanted) - input.ndim) + tuple(input.shape)
    return pg.broadcast_to(input, [k if n == -1 else n for n, k in zip(wanted, kept, strict=True)])


def expand_as(input: Any, other: Any) -> Any:
    """Repeat to the shape of `other`.

    >>> torch.expand_as(torch.arange(2), torch.ones(2, 2))
    tensor([[0, 1],
            [0, 1]])
    """
    return pg.broadcast_to(input, other.shape)


def repeat(input: Any, *sizes: Any) -> Any:
    """Repeat the array as a whole along each axis, with a count for each.

    Raises `ShapeError` for fewer counts than axes.

    >>> torch.repeat(torch.arange(2), 2)
    tensor([0, 1, 0, 1])
    """
    counts = tuple(_collect_varargs(sizes))
    if len(counts) < input.ndim:
        raise ShapeError(
            f"repeat wants a number for each of {input.ndim} axes, not {counts}",
            hint="tile takes those of the last axes alone",
        )
    return pg.tile(input, counts)


def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Repeat the array as a whole along the last axes.

    >>> torch.tile(torch.arange(2), (2,))
    tensor([0, 1, 0, 1])
    """
    return pg.tile(input, tuple(_collect_varargs(sizes, dims)))


def flip(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Reverse the order of elements along `dims`.

    >>> torch.flip(torch.arange(3), (0,))
    tensor([2, 1, 0])
    """
    return pg.flip(input, tuple(_collect_varargs(axes, dims)))


def roll(input: Any, shifts: Any, dims: Dims = None) -> Any:
    """Shift elements in a circle along `dims`.

    >>> torch.roll(torch.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    return pg.roll(input, shifts, dims)


def _require_matrix(name: str, input: Any) -> None:
    if input.ndim < 2:
        raise ShapeError(f"{name} takes an array of two axes or more, not {input.ndim}")


def tril(input: Any, diagonal: int = 0) -> Any:
    """Return zeros above a diagonal. Raises `ShapeError` for a vector.

    >>> torch.tril(torch.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    _require_matrix("tril", input)
    return pg.tril(input, diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """Return zeros below a diagonal. Raises `ShapeError` for a vector.

    >>> torch.triu(torch.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    _require_matrix("triu", input)
    return pg.triu(input, diagonal)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonal of two axes, as the last axis.

    >>> torch.diagonal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return pg.diagonal(input, offset, dim1, dim2)


def trace(input: Any) -> Any:
    """Compute the sum of the diagonal.

    >>> torch.trace(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    return pg.sum(pg.diagonal(input))


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Join arrays along `dim`.

    >>> torch.cat([torch.zeros(1), torch.ones(2)])
    tensor([0., 1., 1.])
    """
    return pg.concatenate(tensors, dim)


concat = concatenate = cat


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Stack arrays of one shape along a new axis.

    >>> torch.stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return pg.stack(tensors, dim)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into parts of one size, the last one of the rest, or of these sizes.

    Raises `ShapeError` for sizes that do not add up to the whole.

    >>> [part.tolist() for part in torch.split(torch.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    extent = tensor.shape[as_axis(dim, tensor.ndim)]
    if isinstance(split_size_or_sections, int):
        ends = list(range(split_size_or_sections, extent, split_size_or_sections))
    else:
        ends = list(accumulate(split_size_or_sections))
        if not ends or ends.pop() != extent:
            raise ShapeError(
                f"parts of sizes {list(split_size_or_sections)} do not add up to the extent "
                f"{extent} of axis {dim}"
            )
    return tuple(pg.split(tensor, ends, dim))


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into at most `chunks` parts of one size, the last one of the rest.

    >>> [part.tolist() for part in torch.chunk(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    if chunks < 1:
        raise ArgumentError(f"chunk makes one part or more, not {chunks}")
    return split(input, -(-input.shape[as_axis(dim, input.ndim)] // chunks), dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return the slices along `dim`.

    >>> [part.tolist() for part in torch.unbind(torch.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return tuple(pg.moveaxis(input, dim, 0))


# Elements.


def index_select(input: Any, dim: int, index: Any) -> Any:
    """Take the slices at positions `index` along `dim`.

    >>> torch.index_select(torch.tensor([5.0, 6.0, 7.0]), 0, torch.tensor([2, 0]))
    tensor([7., 5.])
    """
    return pg.take(input, index, dim)


def gather(input: Any, dim: int, index: Any) -> Any:
    """Take one element along `dim` for each of `index`.

    Other sizes of `index` are at most those of `input`, whose remaining elements are left out.
    Raises `ShapeError` for larger ones.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.gather(x, 1, torch.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    axis = as_axis(dim, input.ndim)
    wanted = np.shape(index) if isinstance(index, list) else index.shape
    parts = [builtins.slice(n) for n in wanted]
    fits = len(parts) == input.ndim and builtins.all(
        i == axis or n <= extent
        for i, (n, extent) in enumerate(zip(wanted, input.shape, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"gather along axis {dim} of an array of shape {tuple(input.shape)} takes no index of "
            f"shape {tuple(wanted)}",
            hint="take_along_dim broadcasts",
        )
    parts[axis] = builtins.slice(None)
    return pg.take_along_axis(input[tuple(parts)], index, dim)


def take_along_dim(input: Any, indices: Any, dim: int) -> Any:
    """Take one element along `dim` for each of `indices`.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.take_along_dim(x, torch.tensor([[1], [0]]), dim=1)
    tensor([[2],
            [3]])
    """
    return pg.take_along_axis(input, indices, dim)


def select(input: Any, dim: int, index: int) -> Any:
    """Return the slice at one position along `dim`, without that axis.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return input[(*[builtins.slice(None)] * as_axis(dim, input.ndim), index)]


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Return `length` slices from position `start` along `dim`.

    Raises `BoundsError` for slices outside the array.

    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    axis = as_axis(dim, input.ndim)
    extent = input.shape[axis]
    start += extent if start < 0 else 0
    if not 0 <= start <= start + length <= extent:
        raise BoundsError(
            f"narrow: {length} slices from {start} on are not among {extent} along axis {dim}"
        )
    lead = [builtins.slice(None)] * axis
    return input[(*lead, builtins.slice(start, start + length))]


# What steers Python.


def numel(input: Any) -> int:
    """Return the number of elements.

    >>> torch.numel(torch.ones(2, 3))
    6
    """
    return int(input.type.size)


def allclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements agree to `atol + rtol * abs(other)`.

    >>> torch.allclose(torch.ones(2), torch.ones(2) + 1e-6)
    True
    """
    return np.allclose(np.asarray(input), np.asarray(other), rtol, atol, equal_nan)


def equal(input: Any, other: Any) -> bool:
    """Return whether shapes and all elements are the same.

    >>> torch.equal(torch.ones(2), torch.ones(2))
    True
    """
    return np.array_equal(np.asarray(input), np.asarray(other))


def is_tensor(obj: Any) -> bool:
    """Return whether `obj` is a tensor.

    >>> torch.is_tensor(torch.ones(2))
    True
    """
    return isinstance(obj, Handle)
