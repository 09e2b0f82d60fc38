"""Functions of single elements by the names that they have in `megengine.functional.elemwise`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import Tensor
from primgraph.operators.handle import Handle
from primgraph.operators.names import define


def take_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, whose first argument may be a number or an array if no other is a tensor.

    It then computes with a tensor: `F.exp(1.0)`.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not any(isinstance(x, Handle) for x in (*args, *kwargs.values())):
            return function(Tensor(args[0]), *args[1:], **kwargs)
        return function(*args, **kwargs)

    return call


# The name here, ours, the first sentence of the docstring, an example and its result.
_OF_ONE = """
abs: Return absolute values. [-1.5, 2.0] -> [1.5 2. ]
acos=arccos: Compute the inverse cosine. [1.0, 0.0] -> [0.     1.5708]
acosh=arccosh: Compute the inverse hyperbolic cosine. [1.0, 2.0] -> [0.    1.317]
asin=arcsin: Compute the inverse sine. [0.0, 1.0] -> [0.     1.5708]
asinh=arcsinh: Compute the inverse hyperbolic sine. [0.0, 1.0] -> [0.     0.8814]
atan=arctan: Compute the inverse tangent. [0.0, 1.0] -> [0.     0.7854]
atanh=arctanh: Compute the inverse hyperbolic tangent. [0.0, 0.5] -> [0.     0.5493]
ceil: Round up to integers. [-1.5, 2.5] -> [-1.  3.]
cos: Compute the cosine. [0.0, 1.0] -> [1.     0.5403]
cosh: Compute the hyperbolic cosine. [0.0, 1.0] -> [1.     1.5431]
erf: Compute the error function. [0.0, 1.0] -> [0.     0.8427]
erfc: Compute one minus the error function. [0.0, 1.0] -> [1.     0.1573]
exp: Compute the exponential function. [0.0, 1.0] -> [1.     2.7183]
expm1: Compute `exp(x) - 1`. [0.0, 1.0] -> [0.     1.7183]
floor: Round down to integers. [-1.5, 2.5] -> [-2.  2.]
log: Compute the natural logarithm. [1.0, 2.0] -> [0.     0.6931]
log1p: Compute `log(1 + x)`. [0.0, 1.0] -> [0.     0.6931]
neg=negative: Change all signs. [1.0, -2.0] -> [-1.  2.]
round: Round to integers. [-1.4, 2.6] -> [-1.  3.]
sin: Compute the sine. [0.0, 1.0] -> [0.     0.8415]
sinh: Compute the hyperbolic sine. [0.0, 1.0] -> [0.     1.1752]
sqrt: Compute the square root. [4.0, 9.0] -> [2. 3.]
square: Compute the square. [3.0, -2.0] -> [9. 4.]
tan: Compute the tangent. [0.0, 1.0] -> [0.     1.5574]
tanh: Compute the hyperbolic tangent. [0.0, 1.0] -> [0.     0.7616]
"""
_OF_TWO = """
add: Add. 1.0, 4.0 -> 5.0
div=divide: Divide; of integers as floats. 1.0, 4.0 -> 0.25
floor_div=floor_divide: Divide, and round down. 5.0, 4.0 -> 1.0
logaddexp: Compute `log(exp(x) + exp(y))`. 0.0, 0.0 -> 0.6931472
maximum: Return the larger one. 1.0, 4.0 -> 4.0
minimum: Return the smaller one. 1.0, 4.0 -> 1.0
mod=remainder: Return the remainder, with the sign of `y`. 8.0, 3.0 -> 2.0
mul=multiply: Multiply. 2.0, 4.0 -> 8.0
pow=power: Raise to a power, as floats. 2.0, 3.0 -> 8.0
sub=subtract: Subtract. 1.0, 4.0 -> -3.0
equal: Compare: equal. 1.0, 4.0 -> False, dtype=bool
greater: Compare: greater. 1.0, 4.0 -> False, dtype=bool
greater_equal: Compare: greater or equal. 1.0, 4.0 -> False, dtype=bool
less: Compare: less. 1.0, 4.0 -> True, dtype=bool
less_equal: Compare: less or equal. 1.0, 4.0 -> True, dtype=bool
not_equal: Compare: different. 1.0, 4.0 -> True, dtype=bool
logical_and: Return whether both are true. True, False -> False, dtype=bool
logical_or: Return whether one is true. True, False -> True, dtype=bool
logical_xor: Return whether just one is true. True, False -> True, dtype=bool
left_shift: Shift the bits of an integer to the left. 3, 1 -> 6, dtype=int32
right_shift: Shift the bits of an integer to the right. 6, 1 -> 3, dtype=int32
"""
_ROWS = """
atan2(y, x): arctan2(y, x)
Compute the angle of points (x, y).
>>> megengine.functional.atan2(0.0, 1.0)
Tensor(0.0, device=xpux:0)

logical_not(x)
Return whether elements are false.
>>> megengine.functional.logical_not(megengine.Tensor([True, False]))
Tensor([False  True], dtype=bool, device=xpux:0)
"""


def _rows(table: str, parameters: str) -> str:
    """Rows of `define` for lines "name=ours: Docstring. arguments -> result"."""
    rows = []
    for line in table.strip().splitlines():
        names, _, rest = line.partition(": ")
        name, _, ours = names.partition("=")
        doc, _, example = rest.rpartition(". ") if parameters == "x, y" else _halves(rest)
        given, _, result = example.partition(" -> ")
        given = given if parameters == "x, y" else f"megengine.Tensor({given})"
        call = f">>> megengine.functional.{name}({given})\nTensor({result}, device=xpux:0)"
        rows.append(f"{name}({parameters}): {ours or name}\n{doc}.\n{call}")
    return "\n\n".join(rows)


def _halves(rest: str) -> tuple[str, str, str]:
    doc, _, example = rest.partition(". [")
    return doc, "", f"[{example}"


__all__ = [
    *define("megengine.functional", globals(), _rows(_OF_ONE, "x"), take_numbers),
    *define("megengine.functional", globals(), _rows(_OF_TWO, "x, y"), take_numbers),
    *define("megengine.functional", globals(), _ROWS, take_numbers),
    "clip",
]


def clip(x: Any, lower: Any = None, upper: Any = None) -> Any:
    """Limit elements to an interval, of which one bound may be left out.

    >>> F = megengine.functional
    >>> F.clip(F.arange(4), 1.0, 2.0)
    Tensor([1. 1. 2. 2.], device=xpux:0)
    """
    return pg.clip(x, lower, upper)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
