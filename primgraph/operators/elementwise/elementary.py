"""Elementwise elementary functions: roots, exponentials, circular functions, erf."""

from __future__ import annotations

import math
from collections.abc import Callable

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.operators.call import public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.arithmetic import divide, power
from primgraph.operators.elementwise.logic import less, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import inexact_dtype, lift
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import elementwise as p
from primgraph.primitives import parts
from primgraph.primitives.special_functions.scipy_calls import by_scipy


def _function(
    name: str,
    op: Primitive[Value],
    doc: str,
    example: str,
    of_complex: Callable[[Variable], Variable] | None = None,
) -> Callable[[ArrayLike], Variable]:
    """Declare a function of one array with float results; `example` is "argument -> result".

    `of_complex` is the function of complex numbers, where the primitive has none.
    """

    def function(x: ArrayLike) -> Variable:
        if not isinstance(x, Variable) or x.value.type.dtype.kind not in "fc":
            x = lift(x, inexact_dtype(x))
        if of_complex is not None and x.dtype.kind == "c":
            return of_complex(x)
        return emit(op, x)

    function.__name__ = function.__qualname__ = name
    argument, result = example.split(" -> ")
    function.__doc__ = f"""{doc}

    Element by element; integers and booleans become floats as NumPy makes them.

    >>> print(f"{{pg.{name}({argument}):.4f}}")
    {result}
    """
    return public(decided_by_types(function))


sqrt = _function("sqrt", p.sqrt, "Compute the square root; NaN below zero.", "0.5 -> 0.7071")
rsqrt = _function("rsqrt", p.rsqrt, "Compute `1 / sqrt(x)`.", "0.5 -> 1.4142")
exp = _function("exp", p.exp, "Compute e to the power x.", "0.5 -> 1.6487")
expm1 = _function("expm1", p.expm1, "Compute `exp(x) - 1`, exact near zero.", "0.5 -> 0.6487")
log = _function("log", p.log, "Compute the natural logarithm; NaN below zero.", "0.5 -> -0.6931")
log1p = _function("log1p", p.log1p, "Compute `log(1 + x)`, exact near zero.", "0.5 -> 0.4055")
sin = _function("sin", p.sin, "Compute the sine of an angle in radians.", "0.5 -> 0.4794")
cos = _function("cos", p.cos, "Compute the cosine of an angle in radians.", "0.5 -> 0.8776")
tan = _function("tan", p.tan, "Compute the tangent of an angle in radians.", "0.5 -> 0.5463")
sinh = _function("sinh", p.sinh, "Compute the hyperbolic sine.", "0.5 -> 0.5211")
cosh = _function("cosh", p.cosh, "Compute the hyperbolic cosine.", "0.5 -> 1.1276")
tanh = _function("tanh", p.tanh, "Compute the hyperbolic tangent.", "0.5 -> 0.4621")
arcsin = _function(
    "arcsin", p.arcsin, "Compute the angle in radians of which x is the sine.", "0.5 -> 0.5236"
)
arccos = _function(
    "arccos", p.arccos, "Compute the angle in radians of which x is the cosine.",
    "0.5 -> 1.0472",
)  # fmt: skip
arctan = _function(
    "arctan", p.arctan, "Compute the angle in radians of which x is the tangent.",
    "0.5 -> 0.4636",
)  # fmt: skip
arcsinh = _function(
    "arcsinh", p.arcsinh, "Compute the inverse of the hyperbolic sine.", "0.5 -> 0.4812"
)
arccosh = _function(
    "arccosh", p.arccosh, "Compute the inverse of the hyperbolic cosine.", "1.5 -> 0.9624"
)
arctanh = _function(
    "arctanh", p.arctanh, "Compute the inverse of the hyperbolic tangent.", "0.5 -> 0.5493"
)


def _by_scipy(name: str) -> Callable[[Variable], Variable]:
    return lambda x: emit(by_scipy, x, name=name, part=0)


def _complex_sigmoid(x: Variable) -> Variable:
    """Return the sigmoid by the exponential that does not overflow."""
    is_left = less(emit(parts.real, x), 0.0)
    small = exp(where(is_left, x, -x))
    return divide(where(is_left, small, 1.0), 1.0 + small)


erf = _function(
    "erf", p.erf, "Compute the error function, `2/sqrt(pi)` times the integral of `exp(-t*t)`.",
    "0.5 -> 0.5205", _by_scipy("erf"),
)  # fmt: skip
erfc = _function(
    "erfc", p.erfc, "Compute `1 - erf(x)`, exact in the right tail.", "0.5 -> 0.4795",
    _by_scipy("erfc"),
)  # fmt: skip
sigmoid = _function(
    "sigmoid", p.sigmoid, "Compute `1 / (1 + exp(-x))`, without overflow.", "0.5 -> 0.6225",
    _complex_sigmoid,
)  # fmt: skip


@public
@decided_by_types
def exp2(x: ArrayLike) -> Variable:
    """Return 2 to the power x, element by element; integers and booleans become floats.

    Its derivative is `log(2) * exp2(x)`.

    >>> pg.exp2([1.0, 3.0])
    tensor([2., 8.])
    """
    return power(2.0, lift(x, inexact_dtype(x)))


@public
@decided_by_types
def log2(x: ArrayLike) -> Variable:
    """Compute the logarithm to base 2, a quotient of logarithms: exact to the last place or two.

    >>> pg.log2(8.0)
    tensor(3.)
    """
    return divide(log(x), math.log(2.0))


@public
@decided_by_types
def log10(x: ArrayLike) -> Variable:
    """Compute the logarithm to base 10, a quotient of logarithms: exact to the last place or two.

    >>> pg.log10(100.0)
    tensor(2.)
    """
    return divide(log(x), math.log(10.0))
