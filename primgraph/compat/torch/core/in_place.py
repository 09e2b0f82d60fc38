"""Methods that change a tensor in place: one for each function that torch has with `_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.compat.torch import functions
from primgraph.compat.torch.functions.properties import can_cast
from primgraph.errors import DTypeError
from primgraph.ir.types import as_dtype
from primgraph.operators import astype

# Functions with methods that give the tensor their result, in its own dtype.
VALUES = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh
arctan arctan2 arctanh asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift
bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip
conj_physical copysign cos cosh cumprod cumsum deg2rad digamma div divide eq erf erfc erfinv exp
exp2 expm1 fix float_power floor floor_divide fmod frac gcd ge greater greater_equal gt heaviside
hypot i0 igamma igammac index_add index_copy index_fill index_put index_reduce lcm ldexp le lerp
less less_equal lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt
masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg negative nextafter not_equal
polygamma pow put rad2deg reciprocal relu remainder renorm round rsqrt scatter scatter_add
scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh tril triu
true_divide trunc xlogy
"""
# Functions with methods that give the tensor another shape of the same elements.
SHAPES = "squeeze unsqueeze t transpose swapaxes swapdims"


def in_place_methods() -> dict[str, Callable[..., Any]]:
    """Return the methods by name: `add_`, `transpose_` and others."""
    found = {f"{n}_": _change(n, getattr(functions, n)) for n in VALUES.split()}
    return found | {f"{n}_": _reshape(n, getattr(functions, n)) for n in SHAPES.split()}


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Compute `x = x.{name}(...)` in place."
    return method


def _change(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.change_in_place(in_dtype_of(self, function(self, *args, **kwargs)))

    return _named(method, name)


def _reshape(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.reshape_in_place(function(self, *args, **kwargs))

    return _named(method, name)


def in_dtype_of(tensor: Any, found: Any) -> Any:
    """Return a result in the dtype of a tensor. Raises `DTypeError` for one of a higher kind."""
    own, dtype = tensor.type.dtype, found.type.dtype
    if own == dtype:
        return found
    if not can_cast(dtype, own):
        raise DTypeError(
            f"result type {as_dtype(dtype)} can't be cast to the desired output type {own}",
            hint="convert the tensor first: x = x.float()",
        )
    return astype(found, own)
