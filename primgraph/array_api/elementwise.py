"""Functions of each element, by the names of the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph import operators as ops
from primgraph.errors import DTypeError
from primgraph.operators.handle import Handle

_OF_ONE = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atanh": "arctanh", "bitwise_invert": "invert", "cos": "cos",
    "cosh": "cosh", "exp": "exp", "expm1": "expm1", "isfinite": "isfinite", "isinf": "isinf",
    "isnan": "isnan", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "logical_not": "logical_not", "negative": "negative", "positive": "positive",
    "reciprocal": "reciprocal", "sign": "sign", "signbit": "signbit", "sin": "sin",
    "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_OF_TWO = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "right_shift", "bitwise_xor": "bitwise_xor", "copysign": "copysign",
    "divide": "divide", "equal": "equal", "floor_divide": "floor_divide", "greater": "greater",
    "greater_equal": "greater_equal", "hypot": "hypot", "less": "less",
    "less_equal": "less_equal", "logaddexp": "logaddexp", "logical_and": "logical_and",
    "logical_or": "logical_or", "logical_xor": "logical_xor", "maximum": "maximum",
    "minimum": "minimum", "multiply": "multiply", "nextafter": "nextafter",
    "not_equal": "not_equal", "pow": "power", "remainder": "remainder", "subtract": "subtract",
}  # fmt: skip
# Those that leave integers as they are.
_ROUNDED = ("ceil", "floor", "round", "trunc")

__all__ = [*_OF_ONE, *_OF_TWO, *_ROUNDED, "clip", "conj", "imag", "real"]


def _named(name: str, function: Callable[..., Any], mine: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`pg.{mine}` of each element, as the standard defines `{name}`."
    return function


def _of_one(name: str, mine: str) -> Callable[..., Any]:
    def call(x: Any, /) -> Any:
        return getattr(ops, mine)(x)

    return _named(name, call, mine)


def _of_two(name: str, mine: str) -> Callable[..., Any]:
    def call(x1: Any, x2: Any, /) -> Any:
        return getattr(ops, mine)(x1, x2)

    return _named(name, call, mine)


def _rounded(name: str) -> Callable[..., Any]:
    def call(x: Any, /) -> Any:
        return x if x.dtype.kind in "iu" else getattr(ops, name)(x)

    return _named(name, call, name)


globals().update({name: _of_one(name, mine) for name, mine in _OF_ONE.items()})
globals().update({name: _of_two(name, mine) for name, mine in _OF_TWO.items()})
globals().update({name: _rounded(name) for name in _ROUNDED})


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Elements limited to an interval, in the dtype of `x`."""
    if min is None and max is None:
        return ops.assign(x)
    return ops.astype(ops.clip(x, min, max), x.dtype)


def _require_numbers(name: str, x: Handle) -> None:
    if x.dtype.kind == "b":
        raise DTypeError(f"{name} takes numbers, not {x.type}")


def conj(x: Any, /) -> Any:
    """The complex conjugate of each element; real numbers as they are."""
    _require_numbers("conj", x)
    return ops.conj(x)


def real(x: Any, /) -> Any:
    """The real part of each element."""
    _require_numbers("real", x)
    return ops.real(x)


def imag(x: Any, /) -> Any:
    """The imaginary part of each element."""
    _require_numbers("imag", x)
    return ops.imag(x)
