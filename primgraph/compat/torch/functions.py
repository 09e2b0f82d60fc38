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

    return _named(call, name, function)


def _binary(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def call(input: Any, other: Any) -> Any:
        return function(input, other)

    return _named(call, name, function)


def _named(call: Named, name: str, function: Callable[..., Any]) -> Named:
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
    """Complex numbers of their parts."""
    return pg.complex(real, imag)


def resolve_conj(input: Any) -> Any:
    """Return `input`: what is conjugated here is computed, and not noted for later."""
    return input


def polar(abs: Any, angle: Any) -> Any:
    """Complex numbers of their sizes and angles."""
    return pg.complex(pg.multiply(abs, pg.cos(angle)), pg.multiply(abs, pg.sin(angle)))


def is_complex(input: Any) -> builtins.bool:
    """Whether the elements are complex."""
    return builtins.bool(input.dtype.kind == "c")


def vdot(input: Any, other: Any) -> Any:
    """The sum of products, conjugates of the first."""
    return pg.dot(pg.conj(input), other)


def view_as_real(input: Any) -> Any:
    """Real and imaginary parts along a new last axis."""
    return share_computed(pg.stack([pg.real(input), pg.imag(input)], -1), input, view_as_real)


def view_as_complex(input: Any) -> Any:
    """Complex numbers of the parts along the last axis, which has two elements."""
    if not input.shape or input.shape[-1] != 2:
        raise ShapeError(f"view_as_complex takes pairs along the last axis, not {input.type}")
    found = pg.complex(input[..., 0], input[..., 1])
    return share_computed(found, input, view_as_complex)


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`input + alpha * other`."""
    return pg.add(input, other if alpha == 1 else pg.multiply(other, alpha))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`input - alpha * other`."""
    return pg.subtract(input, other if alpha == 1 else pg.multiply(other, alpha))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`input / other`, rounded down with the mode "floor"."""
    if rounding_mode == "floor":
        return pg.floor_divide(input, other)
    if rounding_mode is not None:
        raise ArgumentError(f"div has no rounding_mode {rounding_mode!r:.60}, but 'floor' or None")
    return pg.divide(input, other)


subtract, divide, true_divide = sub, div, div


def pow(input: Any, exponent: Any) -> Any:
    """`input` to the power of `exponent`."""
    return pg.power(input, exponent)


def round(input: Any, *, decimals: int = 0) -> Any:
    """Elements rounded, halves to even."""
    return pg.round(input, decimals)


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Elements limited to an interval; the slope is 1 inside and at the bounds."""
    return pg.clip(input, min, max)


def where(condition: Any, input: Any, other: Any) -> Any:
    """`input` where the condition holds, `other` elsewhere; of two Python numbers, one of which is
    a float, in the default dtype."""
    kinds = {type(input), type(other)}
    if builtins.float in kinds and kinds <= {builtins.float, builtins.int, builtins.bool}:
        input = np.asarray(input, framework.get_default_dtype())
        other = np.asarray(other, framework.get_default_dtype())
    return pg.where(condition, input, other)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """`value` where the mask holds, `input` elsewhere, in the dtype of `input`."""
    return pg.where(mask, pg.astype(value, input.dtype), input)


# Reductions and scans.


class Extremes(NamedTuple):
    """Maxima or minima along an axis, and their indices."""

    values: Any
    indices: Any


def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over `dim`, or of all elements."""
    return pg.sum(input, dim, keepdim, dtype=dtype)


def mean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Mean over `dim`, or of all elements."""
    return pg.mean(input if dtype is None else pg.astype(input, dtype), dim, keepdim)


def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over `dim`, or of all elements."""
    return pg.prod(input, dim, keepdim, dtype=dtype)


def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Variance over `dim`: the squares are divided by their number less `correction`, or 1."""
    return pg.var(input, dim, keepdim, ddof=int(unbiased) if correction is None else correction)


def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Square root of `var`."""
    return pg.std(input, dim, keepdim, ddof=int(unbiased) if correction is None else correction)


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Largest of all elements; along `dim`, with where it is; or of two arrays."""
    if dim is None:
        return pg.max(input)
    if isinstance(dim, Handle):
        return pg.maximum(input, dim)
    return Extremes(pg.max(input, dim, keepdim), pg.argmax(input, dim, keepdim))


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Smallest of all elements; along `dim`, with where it is; or of two arrays."""
    if dim is None:
        return pg.min(input)
    if isinstance(dim, Handle):
        return pg.minimum(input, dim)
    return Extremes(pg.min(input, dim, keepdim), pg.argmin(input, dim, keepdim))


def amax(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Largest element over `dim`."""
    return pg.max(input, dim, keepdim)


def amin(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Smallest element over `dim`."""
    return pg.min(input, dim, keepdim)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the first largest element."""
    return pg.argmax(input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the first smallest element."""
    return pg.argmin(input, dim, keepdim)


def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether all elements over `dim` differ from zero."""
    return pg.all(input, dim, keepdim)


def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether an element over `dim` differs from zero."""
    return pg.any(input, dim, keepdim)


def norm(input: Any, p: Any = "fro", dim: Dims = None, keepdim: bool = False) -> Any:
    """Norm over `dim`, or of all elements; "fro" and None mean the Euclidean one."""
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
    """Running sum along `dim`."""
    return pg.cumsum(input, dim)


def logsumexp(input: Any, dim: Dims, keepdim: bool = False) -> Any:
    """`log(sum(exp(input)))` over `dim`."""
    return pg.logsumexp(input, dim, keepdim)


def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """`exp(input) / sum(exp(input))` along `dim`; of `input` in that dtype if one is given."""
    return pg.softmax(input if dtype is None else pg.astype(input, dtype), dim)


def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Logarithm of `softmax`."""
    return pg.log_softmax(input if dtype is None else pg.astype(input, dtype), dim)


# Products.


def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products by the letters of axes; operands are given one by one or in a list."""
    return pg.einsum(equation, *_spread(operands))


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Product over the last axes of one and the first of the other, or those in `dims`."""
    return pg.tensordot(a, b, dims)


# Shapes.


def _spread(sizes: Sequence[Any], named: Any = None) -> Any:
    """Sizes that are given one by one, as one sequence, or by name."""
    if named is not None:
        return named
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """The same elements in another shape, given as integers or as a sequence."""
    return pg.reshape(input, _spread(sizes, shape))


view = reshape


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes from `start_dim` to `end_dim` as one."""
    shape = input.shape
    if not shape:
        return pg.reshape(input, (1,))
    first, last = as_axis(start_dim, len(shape)), as_axis(end_dim, len(shape))
    middle = product(shape[first : last + 1])
    return pg.reshape(input, (*shape[:first], middle, *shape[last + 1 :]))


def squeeze(input: Any, dim: Dims = None) -> Any:
    """Without axes of extent one: all, or those in `dim` that have it."""
    if dim is None:
        return pg.squeeze(input)
    listed = [dim] if isinstance(dim, int) else dim
    axes = [as_axis(d, input.ndim) for d in listed]
    return pg.squeeze(input, tuple(a for a in axes if input.shape[a] == 1))


def unsqueeze(input: Any, dim: int) -> Any:
    """With a new axis of extent one at `dim`."""
    return pg.expand_dims(input, dim)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    return pg.swapaxes(input, dim0, dim1)


swapaxes = transpose


def t(input: Any) -> Any:
    """A matrix with its axes exchanged; a vector as it is. Raises `ShapeError` for more axes."""
    if input.ndim > 2:
        raise ShapeError(f"t takes a matrix, not an array of {input.ndim} axes")
    return pg.transpose(input)


def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Axis `i` of the result is axis `dims[i]` of `input`."""
    return pg.transpose(input, _spread(order, dims))


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other positions."""
    return pg.moveaxis(input, source, destination)


def broadcast_to(input: Any, size: Any) -> Any:
    """Repeated along new leading axes and along axes of extent one."""
    return pg.broadcast_to(input, size)


def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Repeated along axes of extent one; -1 keeps an extent."""
    wanted = list(_spread(sizes, size))
    kept = (1,) * (len(wanted) - input.ndim) + tuple(input.shape)
    return pg.broadcast_to(input, [k if n == -1 else n for n, k in zip(wanted, kept, strict=True)])


def expand_as(input: Any, other: Any) -> Any:
    """Repeated to the shape of `other`."""
    return pg.broadcast_to(input, other.shape)


def repeat(input: Any, *sizes: Any) -> Any:
    """As many copies of the whole along each axis, which each have a number."""
    counts = tuple(_spread(sizes))
    if len(counts) < input.ndim:
        raise ShapeError(
            f"repeat wants a number for each of {input.ndim} axes, not {counts}",
            hint="tile takes those of the last axes alone",
        )
    return pg.tile(input, counts)


def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """As many copies of the whole along the last axes."""
    return pg.tile(input, tuple(_spread(sizes, dims)))


def flip(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Elements in reverse order along `dims`."""
    return pg.flip(input, tuple(_spread(axes, dims)))


def roll(input: Any, shifts: Any, dims: Dims = None) -> Any:
    """Elements moved along `dims`, those that fall off put at the other end."""
    return pg.roll(input, shifts, dims)


def _require_matrix(name: str, input: Any) -> None:
    if input.ndim < 2:
        raise ShapeError(f"{name} takes an array of two axes or more, not {input.ndim}")


def tril(input: Any, diagonal: int = 0) -> Any:
    """Zeros above a diagonal. Raises `ShapeError` for a vector."""
    _require_matrix("tril", input)
    return pg.tril(input, diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """Zeros below a diagonal. Raises `ShapeError` for a vector."""
    _require_matrix("triu", input)
    return pg.triu(input, diagonal)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis."""
    return pg.diagonal(input, offset, dim1, dim2)


def trace(input: Any) -> Any:
    """Sum of the diagonal."""
    return pg.sum(pg.diagonal(input))


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Arrays one after the other along `dim`."""
    return pg.concatenate(tensors, dim)


concat = concatenate = cat


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Arrays of one shape along a new axis."""
    return pg.stack(tensors, dim)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts along `dim`, of one size, the last one of the rest, or of these sizes."""
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
    """So many parts along `dim` of one size, the last one of the rest."""
    if chunks < 1:
        raise ArgumentError(f"chunk makes one part or more, not {chunks}")
    return split(input, -(-input.shape[as_axis(dim, input.ndim)] // chunks), dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """The slices along `dim`."""
    return tuple(pg.moveaxis(input, dim, 0))


# Elements.


def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices at positions `index` along `dim`."""
    return pg.take(input, index, dim)


def gather(input: Any, dim: int, index: Any) -> Any:
    """One element along `dim` for each of `index`, whose other extents are those of `input` at
    most: what is beyond them is left out."""
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
    """One element along `dim` for each of `indices`."""
    return pg.take_along_axis(input, indices, dim)


def select(input: Any, dim: int, index: int) -> Any:
    """The slice at one position along `dim`, without that axis."""
    return input[(*[builtins.slice(None)] * as_axis(dim, input.ndim), index)]


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """So many slices from one position on along `dim`.

    Raises `BoundsError` for slices that are not there.
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
    """Number of elements."""
    return int(input.type.size)


def allclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements agree to `atol + rtol * abs(other)`."""
    return np.allclose(np.asarray(input), np.asarray(other), rtol, atol, equal_nan)


def equal(input: Any, other: Any) -> bool:
    """Whether shapes and all elements are the same."""
    return np.array_equal(np.asarray(input), np.asarray(other))


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, Handle)
