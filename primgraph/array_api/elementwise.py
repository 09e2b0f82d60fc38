"""Functions of each element, by the names of the standard."""

from __future__ import annotations

from typing import Any

from primgraph import operators as ops
from primgraph.errors import DTypeError
from primgraph.operators.handle import Handle
from primgraph.operators.names import define

# The name of the function in primgraph, and an example: "operands -> result".
_OF_ONE = {
    "abs": ("abs", "[-1.5, 2.0] -> tensor([1.5, 2. ])"),
    "acos": ("arccos", "[0.0, 1.0] -> tensor([1.57079633, 0.        ])"),
    "acosh": ("arccosh", "[1.0, 2.0] -> tensor([0.       , 1.3169579])"),
    "asin": ("arcsin", "[0.0, 1.0] -> tensor([0.        , 1.57079633])"),
    "asinh": ("arcsinh", "[0.0, 1.0] -> tensor([0.        , 0.88137359])"),
    "atan": ("arctan", "[0.0, 1.0] -> tensor([0.        , 0.78539816])"),
    "atanh": ("arctanh", "[0.0, 0.5] -> tensor([0.        , 0.54930614])"),
    "bitwise_invert": ("invert", "[0, 5] -> tensor([-1, -6], dtype=int64)"),
    "ceil": ("ceil", "[-1.5, 2.5] -> tensor([-1.,  3.])"),
    "cos": ("cos", "[0.0, 1.0] -> tensor([1.        , 0.54030231])"),
    "cosh": ("cosh", "[0.0, 1.0] -> tensor([1.        , 1.54308063])"),
    "exp": ("exp", "[0.0, 1.0] -> tensor([1.        , 2.71828183])"),
    "floor": ("floor", "[-1.5, 2.5] -> tensor([-2.,  2.])"),
    "isfinite": ("isfinite", "[1.0, xp.inf, xp.nan] -> tensor([ True, False, False], dtype=bool)"),
    "isinf": ("isinf", "[1.0, xp.inf, xp.nan] -> tensor([False,  True, False], dtype=bool)"),
    "isnan": ("isnan", "[1.0, xp.inf, xp.nan] -> tensor([False, False,  True], dtype=bool)"),
    "log": ("log", "[1.0, 2.0] -> tensor([0.        , 0.69314718])"),
    "log10": ("log10", "[1.0, 100.0] -> tensor([0., 2.])"),
    "log1p": ("log1p", "[0.0, 1.0] -> tensor([0.        , 0.69314718])"),
    "log2": ("log2", "[1.0, 8.0] -> tensor([0., 3.])"),
    "logical_not": ("logical_not", "[True, False] -> tensor([False,  True], dtype=bool)"),
    "negative": ("negative", "[1.0, -2.0] -> tensor([-1.,  2.])"),
    "positive": ("positive", "[1.0, -2.0] -> tensor([ 1., -2.])"),
    "reciprocal": ("reciprocal", "[2.0, 4.0] -> tensor([0.5 , 0.25])"),
    "round": ("round", "[-1.5, 2.5] -> tensor([-2.,  2.])"),
    "sign": ("sign", "[-3.0, 0.0, 2.0] -> tensor([-1.,  0.,  1.])"),
    "signbit": ("signbit", "[-3.0, 2.0] -> tensor([ True, False], dtype=bool)"),
    "sin": ("sin", "[0.0, 1.0] -> tensor([0.        , 0.84147098])"),
    "sinh": ("sinh", "[0.0, 1.0] -> tensor([0.        , 1.17520119])"),
    "sqrt": ("sqrt", "[4.0, 9.0] -> tensor([2., 3.])"),
    "square": ("square", "[3.0, -2.0] -> tensor([9., 4.])"),
    "tan": ("tan", "[0.0, 1.0] -> tensor([0.        , 1.55740772])"),
    "trunc": ("trunc", "[-1.5, 2.5] -> tensor([-1.,  2.])"),
}
_OF_TWO = {
    "add": ("add", "[1.0, 2.0]; [3.0, 4.0] -> tensor([4., 6.])"),
    "atan2": ("arctan2", "[1.0, -1.0]; [1.0, 1.0] -> tensor([ 0.78539816, -0.78539816])"),
    "bitwise_and": ("bitwise_and", "[6, 5]; [3, 3] -> tensor([2, 1], dtype=int64)"),
    "bitwise_left_shift": ("left_shift", "[1, 3]; [2, 2] -> tensor([ 4, 12], dtype=int64)"),
    "bitwise_or": ("bitwise_or", "[6, 5]; [3, 3] -> tensor([7, 7], dtype=int64)"),
    "bitwise_right_shift": ("right_shift", "[8, 5]; [2, 1] -> tensor([2, 2], dtype=int64)"),
    "bitwise_xor": ("bitwise_xor", "[6, 5]; [3, 3] -> tensor([5, 6], dtype=int64)"),
    "copysign": ("copysign", "[1.0, 2.0]; [-1.0, 1.0] -> tensor([-1.,  2.])"),
    "divide": ("divide", "[1.0, 6.0]; [4.0, 3.0] -> tensor([0.25, 2.  ])"),
    "equal": ("equal", "[1, 2]; [1, 3] -> tensor([ True, False], dtype=bool)"),
    "greater": ("greater", "[1, 3]; [2, 2] -> tensor([False,  True], dtype=bool)"),
    "greater_equal": ("greater_equal", "[1, 2]; [2, 2] -> tensor([False,  True], dtype=bool)"),
    "hypot": ("hypot", "[3.0, 6.0]; [4.0, 8.0] -> tensor([ 5., 10.])"),
    "less": ("less", "[1, 3]; [2, 2] -> tensor([ True, False], dtype=bool)"),
    "less_equal": ("less_equal", "[2, 3]; [2, 2] -> tensor([ True, False], dtype=bool)"),
    "logaddexp": ("logaddexp", "[0.0, 1.0]; [0.0, 1.0] -> tensor([0.69314718, 1.69314718])"),
    "logical_and": (
        "logical_and",
        "[True, False]; [True, True] -> tensor([ True, False], dtype=bool)",
    ),
    "logical_or": (
        "logical_or",
        "[True, False]; [False, False] -> tensor([ True, False], dtype=bool)",
    ),
    "logical_xor": (
        "logical_xor",
        "[True, False]; [True, True] -> tensor([False,  True], dtype=bool)",
    ),
    "maximum": ("maximum", "[1.0, 3.0]; [2.0, 2.0] -> tensor([2., 3.])"),
    "minimum": ("minimum", "[1.0, 3.0]; [2.0, 2.0] -> tensor([1., 2.])"),
    "multiply": ("multiply", "[2.0, 3.0]; [4.0, 5.0] -> tensor([ 8., 15.])"),
    "nextafter": ("nextafter", "[0.0]; [1.0] -> tensor([5.e-324])"),
    "not_equal": ("not_equal", "[1, 2]; [1, 3] -> tensor([False,  True], dtype=bool)"),
    "pow": ("power", "[2.0, 3.0]; [3.0, 2.0] -> tensor([8., 9.])"),
    "remainder": ("remainder", "[7, -7]; [3, 3] -> tensor([1, 2], dtype=int64)"),
    "subtract": ("subtract", "[5.0, 2.0]; [3.0, 4.0] -> tensor([ 2., -2.])"),
}

_DOC = "Compute `pg.{mine}` of each element, as the standard defines `{name}`."


def _row(name: str, parameters: str, mine: str, example: str) -> str:
    operands, result = example.split(" -> ")
    arrays = ", ".join(f"xp.asarray({operand})" for operand in operands.split("; "))
    doc = _DOC.format(mine=mine, name=name)
    return f"{name}({parameters}, /): {mine}\n{doc}\n>>> xp.{name}({arrays})\n{result}\n"


_ROWS = "\n".join([
    *(_row(name, "x", *row) for name, row in _OF_ONE.items()),
    *(_row(name, "x1, x2", *row) for name, row in _OF_TWO.items()),
])  # fmt: skip
__all__ = [
    *define("array_api", globals(), _ROWS),
    "clip",
    "conj",
    "expm1",
    "floor_divide",
    "imag",
    "real",
    "tanh",
]


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Limit elements to the interval from `min` to `max`, in the dtype of `x`.

    >>> xp.clip(xp.asarray([-1.0, 0.5, 3.0]), 0.0, 1.0)
    tensor([0. , 0.5, 1. ])
    """
    if min is None and max is None:
        return ops.assign(x)
    return ops.astype(ops.clip(x, min, max), x.dtype)


def _require_numbers(name: str, x: Handle) -> None:
    if x.dtype.kind == "b":
        raise DTypeError(f"{name} takes numbers, not {x.type}")


def conj(x: Any, /) -> Any:
    """Return the complex conjugate of each element; real numbers stay as they are.

    >>> xp.conj(xp.asarray([1.0 + 2.0j]))
    tensor([1.-2.j], dtype=complex128)
    """
    _require_numbers("conj", x)
    return ops.conj(x)


def expm1(x: Any, /) -> Any:
    """Compute `exp(x) - 1`, exact near zero; of infinite complex numbers as the standard has it.

    >>> xp.expm1(xp.asarray([0.0, 1.0]))
    tensor([0.        , 1.71828183])
    >>> xp.expm1(xp.asarray([complex(xp.inf, 0.0)]))
    tensor([inf+0.j], dtype=complex128)
    """
    if x.dtype.kind != "c":
        return ops.expm1(x)
    ordinary = ops.logical_and(ops.isfinite(x), x != 0.0)
    return ops.where(ordinary, ops.expm1(ops.where(ordinary, x, 1.0)), ops.exp(x) - 1.0)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Round the quotient of elements down; an infinity over a number is infinite.

    NumPy's own function, and the operator `//`, have NaN there.

    >>> xp.floor_divide(xp.asarray([7, -7]), xp.asarray([2, 2]))
    tensor([ 3, -4], dtype=int64)
    >>> xp.floor_divide(xp.asarray([xp.inf, 1.0]), xp.asarray([2.0, -xp.inf]))
    tensor([inf, -0.])
    """
    found = ops.floor_divide(x1, x2)
    if found.dtype.kind != "f":
        return found
    infinite = ops.logical_or(ops.isinf(x1), ops.isinf(x2))
    return ops.where(infinite, ops.floor(ops.divide(x1, x2)), found)


def tanh(x: Any, /) -> Any:
    """Compute the hyperbolic tangent; at infinity the imaginary part is a zero with its sign.

    >>> xp.tanh(xp.asarray([0.0, 1.0]))
    tensor([0.        , 0.76159416])
    >>> xp.tanh(xp.asarray([complex(xp.inf, 2.0)]))
    tensor([1.+0.j], dtype=complex128)
    """
    if x.dtype.kind != "c":
        return ops.tanh(x)
    side, height = ops.real(x), ops.imag(x)
    edge = ops.logical_and(ops.isinf(side), ops.isfinite(height))
    ends = ops.complex(ops.sign(side), ops.copysign(ops.zeros_like(height), height))
    return ops.where(edge, ends, ops.tanh(ops.where(edge, 0.0, x)))


def real(x: Any, /) -> Any:
    """Return the real part of each element.

    >>> xp.real(xp.asarray([1.0 + 2.0j]))
    tensor([1.])
    """
    _require_numbers("real", x)
    return ops.real(x)


def imag(x: Any, /) -> Any:
    """Return the imaginary part of each element.

    >>> xp.imag(xp.asarray([1.0 + 2.0j]))
    tensor([2.])
    """
    _require_numbers("imag", x)
    return ops.imag(x)
