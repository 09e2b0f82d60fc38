"""Functions that change their first argument: `paddle.tanh_(x)`, `x.add_(y)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle import functions
from primgraph.compat.paddle.core import methods
from primgraph.compat.paddle.core.assignments import assign_to
from primgraph.compat.paddle.creation import whole_shape
from primgraph.compat.paddle.dynamic import Tensor, as_tensor
from primgraph.compat.paddle.framework import GradientError, as_paddle_raises
from primgraph.eager.derivatives.recording import is_grad_enabled
from primgraph.eager.inplace.views import show_view
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

# Functions with a variant in place: it has "_" at the end of its name.
_CHANGING = """
abs acos acosh add addmm asin asinh atan atanh baddbmm bitwise_and bitwise_invert
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cast ceil clamp clip
copysign cos cosh cumprod cumsum digamma div divide equal erf erfinv exp expm1 floor floor_divide
floor_mod frac gammainc gammaincc gammaln gcd greater_equal greater_than hypot i0 index_add
index_fill index_put lcm ldexp lerp less less_equal less_than lgamma log log10 log1p log2
logical_and logical_not logical_or logical_xor logit masked_fill masked_scatter mod mul
multigammaln multiply nan_to_num neg not_equal polygamma pow put_along_axis reciprocal remainder
renorm round rsqrt scale scatter scatter_add sigmoid sin sinc sinh sqrt square sub subtract tan
tanh tril triu trunc where
"""
_SHAPING = "flatten reshape squeeze t transpose unsqueeze"


def _in_place(name: str) -> Callable[..., Any]:
    function = getattr(functions, name)

    @wraps(function)
    @as_paddle_raises
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        value = function(x, *args, **kwargs)
        if isinstance(x, Variable):
            return assign_to(x, value) if x.type == value.type else value
        if not isinstance(x, Tensor):
            return value
        if name == "where":
            args[0].replace_by(value)
            return args[0]
        if name not in _SHAPING:
            return x.replace_by(value)
        if not x.stop_gradient and x.is_leaf and is_grad_enabled():
            raise GradientError("a leaf that requires a gradient cannot be changed in place")
        show_view(x, value)
        return x

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__doc__ = f"Compute `{name}` in place: change the first argument, and return it."
    return call


for _name in (*_CHANGING.split(), *_SHAPING.split()):
    globals()[f"{_name}_"] = _in_place(_name)
    setattr(Tensor, f"{_name}_", globals()[f"{_name}_"])
    setattr(methods.Variable, f"{_name}_", globals()[f"{_name}_"])

__all__ = [f"{_name}_" for _name in (*_CHANGING.split(), *_SHAPING.split())]


def fill_diagonal_(x: Any, value: float, offset: int = 0, wrap: bool = False) -> Any:
    """Set the diagonal to a number, in place."""
    rows, columns = np.nonzero(np.eye(x.shape[0], x.shape[1], offset))
    x[rows, columns] = value
    return x


def fill_diagonal_tensor(x: Any, y: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return `x` with another diagonal."""
    return functions.diagonal_scatter(x, y, offset, dim1, dim2)


Tensor.fill_diagonal_ = fill_diagonal_  # type: ignore[attr-defined]
Tensor.fill_diagonal_tensor = fill_diagonal_tensor  # type: ignore[attr-defined]


def _new(fill: float) -> Callable[..., Any]:
    def make(x: Tensor, shape: Any, dtype: Any = None, name: str | None = None) -> Any:
        return as_tensor(np.full(whole_shape(shape), fill, as_dtype(dtype or x.dtype)))

    make.__doc__ = f"Return a tensor of elements {fill} in the dtype of this one."
    return make


def _new_full(x: Tensor, shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """Return a tensor of equal elements in the dtype of this one."""
    return _new(fill_value)(x, shape, dtype)


def _type_as(x: Tensor, other: Any) -> Any:
    """Convert to the dtype of another tensor."""
    return pg.cast(x, other.dtype)


def _apply(x: Tensor, func: Callable[[Any], Any]) -> Any:
    """Return what a function gives of this tensor."""
    return func(x)


for _name, _method in (
    ("new_zeros", _new(0)), ("new_ones", _new(1)), ("new_empty", _new(0)), ("new_full", _new_full),
    ("type_as", _type_as), ("apply", _apply),
):  # fmt: skip
    setattr(Tensor, _name, _method)

# Conversions as methods, by the name of the dtype.
_CONVERSIONS = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}


def _conversion(dtype: str) -> Callable[[Handle], Any]:
    def convert(x: Handle) -> Any:
        return pg.cast(x, dtype)

    convert.__doc__ = f"Convert to {dtype}."
    return convert


for _name, _dtype in _CONVERSIONS.items():
    setattr(Tensor, _name, _conversion(_dtype))
