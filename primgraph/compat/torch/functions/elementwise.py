"""Functions of single elements, with torch's names for them and for their arguments."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.renamed import renamed
from primgraph.compat.torch import framework
from primgraph.eager.inplace.views import share_computed
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clamp",
    "complex",
    "conj",
    "conj_physical",
    "cos",
    "cosh",
    "div",
    "divide",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "imag",
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
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "masked_fill",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "ne",
    "neg",
    "negative",
    "not_equal",
    "polar",
    "pow",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "resolve_conj",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "view_as_complex",
    "view_as_real",
    "where",
]


def unary(function: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    def call(input: Any) -> Any:
        return function(input)

    return renamed(call, name, function)


def binary(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def call(input: Any, other: Any) -> Any:
        return function(input, other)

    return renamed(call, name, function)


abs = absolute = unary(pg.abs, "abs")
acos = arccos = unary(pg.arccos, "acos")
acosh = arccosh = unary(pg.arccosh, "acosh")
asin = arcsin = unary(pg.arcsin, "asin")
asinh = arcsinh = unary(pg.arcsinh, "asinh")
atan = arctan = unary(pg.arctan, "atan")
atanh = arctanh = unary(pg.arctanh, "atanh")
angle = unary(pg.angle, "angle")
ceil = unary(pg.ceil, "ceil")
conj = conj_physical = unary(pg.conj, "conj")
imag = unary(pg.imag, "imag")
real = unary(pg.real, "real")
cos = unary(pg.cos, "cos")
cosh = unary(pg.cosh, "cosh")
erf = unary(pg.erf, "erf")
erfc = unary(pg.erfc, "erfc")
exp = unary(pg.exp, "exp")
exp2 = unary(pg.exp2, "exp2")
expm1 = unary(pg.expm1, "expm1")
floor = unary(pg.floor, "floor")
isfinite = unary(pg.isfinite, "isfinite")
isinf = unary(pg.isinf, "isinf")
isnan = unary(pg.isnan, "isnan")
log = unary(pg.log, "log")
log10 = unary(pg.log10, "log10")
log1p = unary(pg.log1p, "log1p")
log2 = unary(pg.log2, "log2")
logical_not = unary(pg.logical_not, "logical_not")
neg = negative = unary(pg.negative, "neg")
ravel = unary(pg.ravel, "ravel")
reciprocal = unary(pg.reciprocal, "reciprocal")
relu = unary(pg.relu, "relu")
rsqrt = unary(pg.rsqrt, "rsqrt")
sigmoid = unary(pg.sigmoid, "sigmoid")
sgn = sign = unary(pg.sign, "sign")
sin = unary(pg.sin, "sin")
sinh = unary(pg.sinh, "sinh")
sqrt = unary(pg.sqrt, "sqrt")
square = unary(pg.square, "square")
tan = unary(pg.tan, "tan")
tanh = unary(pg.tanh, "tanh")

atan2 = arctan2 = binary(pg.arctan2, "atan2")
eq = binary(pg.equal, "eq")
ge = greater_equal = binary(pg.greater_equal, "ge")
gt = greater = binary(pg.greater, "gt")
le = less_equal = binary(pg.less_equal, "le")
logaddexp = binary(pg.logaddexp, "logaddexp")
logical_and = binary(pg.logical_and, "logical_and")
logical_or = binary(pg.logical_or, "logical_or")
logical_xor = binary(pg.logical_xor, "logical_xor")
lt = less = binary(pg.less, "lt")
maximum = binary(pg.maximum, "maximum")
minimum = binary(pg.minimum, "minimum")
mul = multiply = binary(pg.multiply, "mul")
ne = not_equal = binary(pg.not_equal, "ne")
remainder = binary(pg.remainder, "remainder")


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
