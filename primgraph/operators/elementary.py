"""Elementary functions, element by element: roots, exponentials, circular functions, erf."""

from __future__ import annotations

import math
from collections.abc import Callable

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.operators.arithmetic import divide, power
from primgraph.operators.call import public
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import floating, lift
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import elementwise as p

__all__ = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def _function(name: str, op: Primitive[Value], doc: str) -> Callable[[ArrayLike], Variable]:
    """Declare a function of one array with float results."""

    def function(x: ArrayLike) -> Variable:
        if not isinstance(x, Variable) or x.value.type.dtype.kind not in "fc":
            x = lift(x, floating(x))
        return emit(op, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    Element by element; integers and booleans become floats as NumPy makes them.
    """
    return public(function)


sqrt = _function("sqrt", p.sqrt, "Square root; NaN below zero.")
rsqrt = _function("rsqrt", p.rsqrt, "`1 / sqrt(x)`.")
exp = _function("exp", p.exp, "e to the power x.")
expm1 = _function("expm1", p.expm1, "`exp(x) - 1`, exact near zero.")
log = _function("log", p.log, "Natural logarithm; NaN below zero.")
log1p = _function("log1p", p.log1p, "`log(1 + x)`, exact near zero.")
sin = _function("sin", p.sin, "Sine of an angle in radians.")
cos = _function("cos", p.cos, "Cosine of an angle in radians.")
tan = _function("tan", p.tan, "Tangent of an angle in radians.")
sinh = _function("sinh", p.sinh, "Hyperbolic sine.")
cosh = _function("cosh", p.cosh, "Hyperbolic cosine.")
tanh = _function("tanh", p.tanh, "Hyperbolic tangent.")
arcsin = _function("arcsin", p.arcsin, "Angle in radians of which x is the sine.")
arccos = _function("arccos", p.arccos, "Angle in radians of which x is the cosine.")
arctan = _function("arctan", p.arctan, "Angle in radians of which x is the tangent.")
arcsinh = _function("arcsinh", p.arcsinh, "Inverse of the hyperbolic sine.")
arccosh = _function("arccosh", p.arccosh, "Inverse of the hyperbolic cosine.")
arctanh = _function("arctanh", p.arctanh, "Inverse of the hyperbolic tangent.")
erf = _function("erf", p.erf, "Error function, `2/sqrt(pi)` times the integral of `exp(-t*t)`.")
erfc = _function("erfc", p.erfc, "`1 - erf(x)`, exact in the right tail.")
sigmoid = _function("sigmoid", p.sigmoid, "`1 / (1 + exp(-x))`, without overflow.")


@public
def exp2(x: ArrayLike) -> Variable:
    """2 to the power x, element by element; integers and booleans become floats.

    Its derivative is `log(2) * exp2(x)`.
    """
    return power(2.0, lift(x, floating(x)))


@public
def log2(x: ArrayLike) -> Variable:
    """Logarithm to base 2, as a quotient of logarithms: exact up to the last place or two."""
    return divide(log(x), math.log(2.0))


@public
def log10(x: ArrayLike) -> Variable:
    """Logarithm to base 10, as a quotient of logarithms: exact up to the last place or two."""
    return divide(log(x), math.log(10.0))
