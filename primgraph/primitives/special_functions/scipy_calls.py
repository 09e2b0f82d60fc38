"""Special functions that call SciPy when the program runs.

One primitive, `by_scipy`, computes all of them, chosen by name. A table holds a derivative rule per
operand, written with other functions of the table. An entry is None where no stable formula is
known, and such a derivative is refused. Formulas are from DLMF: chapters 6 (exponential integrals),
7 (error functions), 10 (Bessel functions), 13 and 15 (hypergeometric functions), 19 (elliptic
integrals) and section 4.13 (Lambert W). In rules `z` is the result.

Derivatives by parameters are primitives of `by_parameters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from primgraph.approximations import borrowed
from primgraph.errors import (
    ArgumentError,
    NotDifferentiable,
    ShapeError,
    UnsupportedDTypeError,
)
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType, common_type
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.elementwise import abs_, cos, exp, log, sign, sin
from primgraph.primitives.logic import less, select
from primgraph.primitives.shapes import with_batch_axis
from primgraph.primitives.special_functions.by_parameters import (
    NEIGHBOURS,
    bessel_by_order,
    bessel_coefficient,
    by_neighbours,
    gauss_by_parameters,
    kummer_by_parameters,
    unless_ended,
    zeta_by_exponent,
)

Slope = Callable[..., Value]


# Which functions take complex numbers. All others are real.
COMPLEX = frozenset({"dawsn", "erf", "erfc", "erfcx", "erfi", "exp1", "expi", "wofz"})


def _type(*types: TensorType, name: str, part: int) -> TensorType:
    if name not in SLOPES:
        raise ArgumentError(f"there is no function of SciPy's named {name!r:.60}")
    if len(types) != len(SLOPES[name]):
        raise ShapeError(f"{name} takes {len(SLOPES[name])} operands, not {len(types)}")
    first = common_type(name, *types)
    kinds = "fc" if name in COMPLEX else "f"
    if first.dtype.kind not in ("c" if name == "wofz" else kinds):
        raise UnsupportedDTypeError(f"{name} does not take {first}")
    return first


by_scipy: Primitive[Value] = Primitive(
    "by_scipy",
    _type,
    lambda *xs, name, part: borrowed.by_scipy(name, part, xs),
    elementwise=True,
    singular=True,
    flops=200,
)


@by_scipy.batch
def _batch(batched: tuple[bool, ...], *inputs: Value, name: str, part: int) -> Value:
    return by_scipy(*with_batch_axis(batched, inputs), name=name, part=part)


def _declare(position: int) -> None:
    @by_scipy.jvp(position)
    def jvp(z: Value, *inputs: Any, name: str, part: int) -> Value:
        *operands, d = inputs
        slope = SLOPES[name][position]
        if slope is None:
            raise NotDifferentiable(
                f"{name} has no derivative by its order, operand {position}, "
                "as its formula is not known",
                hint="hold it constant with pg.stop_gradient, or give a rule by pg.custom_jvp",
            )
        result: Value = d * slope(z, *operands, **({"part": part} if part else {}))
        return result


for _position in range(4):
    _declare(_position)


def _call(name: str, *operands: Value, part: int = 0) -> Value:
    return by_scipy(*operands, name=name, part=part)


def _order(name: str, n: int, x: Value) -> Value:
    """Return the function `name`, whose first operand is its order, at order `n`."""
    return _call(name, filled_constant(n, x.type), x)


def _bessel(name: str) -> tuple[Slope, Slope]:
    """Return the derivative rules of a Bessel function."""

    def by_order(z: Value, v: Value, x: Value) -> Value:
        return bessel_by_order(v, x, name=name, n=1)

    def by_argument(z: Value, v: Value, x: Value) -> Value:
        return by_neighbours(name, z, v, x, _call)

    return by_order, by_argument


@by_scipy.taylor
def _taylor(jets: Any, k: int, z: Any, *operands: Any, name: str, part: int) -> Any:
    """Return coefficient `k` of a Bessel function of variable order."""
    if name not in NEIGHBOURS:
        return NotImplemented

    def function(order: Value, argument: Value, n: int) -> Value:
        if n:
            return bessel_by_order(order, argument, name=name, n=n)
        return _call(name, order, argument)

    v, x = operands
    return bessel_coefficient(jets, k, v, x, name, function)


def _quotient(function: Callable[[Value], Value], x: Value) -> Value:
    return function(x) / x


def _sine_quotient(x: Value) -> Value:
    """Return sin(x) / x, by its Taylor series near 0."""
    small = less(abs_(x), filled_constant(0.1, x.type))
    square = x * x
    series = filled_constant(1, x.type)
    for k in (9, 7, 5, 3):
        series = 1.0 - square / ((k - 1) * k) * series
    return select(small, series, sin(x) / select(small, filled_constant(1, x.type), x))


def _spence_slope(z: Value, x: Value) -> Value:
    """Return log(x) / (1 - x), by its Taylor series near 1."""
    t = x - 1.0
    small = less(abs_(t), filled_constant(0.01, x.type))
    series = filled_constant(1 / 9, x.type)
    for k in range(8, 0, -1):
        series = 1 / k - t * series
    return -select(small, series, log(x) / select(small, filled_constant(1, x.type), t))


def _expn_slope(z: Value, n: Value, x: Value) -> Value:
    """Return the derivative -expn(n - 1, x); for n = 0 use the closed form exp(-x) / x."""
    lowest = less(n, filled_constant(0.5, n.type))
    below = _call("expn", select(lowest, zeros_like(n), n - 1.0), x)
    return -select(lowest, z + z / x, below)


def _hypergeometric(name: str, derivative: Callable[..., Value], orders: str) -> tuple[Slope, ...]:
    """Return the derivative rules of a hypergeometric function, DLMF 13.3.15 and 15.5.1."""

    def by_parameter(position: int) -> Slope:
        given = {order: int(i == position) for i, order in enumerate(orders)}
        return lambda z, *operands: derivative(*operands, **given)

    def by_argument(z: Value, *operands: Value) -> Value:
        *above, below, x = operands
        factor = math.prod(above[1:], start=above[0]) / below
        return unless_ended(factor, _call(name, *[p + 1.0 for p in operands[:-1]], x))

    return (*[by_parameter(i) for i in range(len(orders))], by_argument)


def _elliptic(a: float, b: float, scale: float) -> Slope:
    """Return the derivative by the parameter, as a hypergeometric function (DLMF 19.5.1)."""

    def slope(z: Value, x: Value) -> Value:
        of = [filled_constant(v, x.type) for v in (a, b, 2.0)]
        return scale * math.pi / 8 * _call("hyp2f1", *of, x)

    return slope


_ROOT = 2.0 / math.sqrt(math.pi)

SLOPES: dict[str, tuple[Slope | None, ...]] = {
    "dawsn": (lambda z, x: 1.0 - 2.0 * (x * z),),
    "erf": (lambda z, x: _ROOT * exp(-(x * x)),),
    "erfc": (lambda z, x: -_ROOT * exp(-(x * x)),),
    "erfcx": (lambda z, x: 2.0 * (x * z) - _ROOT,),
    "ellipe": (_elliptic(0.5, 1.5, -1.0),),
    "ellipk": (_elliptic(1.5, 1.5, 1.0),),
    "erfi": (lambda z, x: _ROOT * exp(x * x),),
    "exp1": (lambda z, x: -(exp(-x) / x),),
    "expi": (lambda z, x: exp(x) / x,),
    "expn": (None, _expn_slope),
    "hyp1f1": _hypergeometric("hyp1f1", kummer_by_parameters, "ij"),
    "hyp2f1": _hypergeometric("hyp2f1", gauss_by_parameters, "ijk"),
    "i0": (lambda z, x: _call("i1", x),),
    "i0e": (lambda z, x: _call("i1e", x) - sign(x) * z,),
    "i1": (lambda z, x: 0.5 * (_call("i0", x) + _order("iv", 2, x)),),
    "i1e": (lambda z, x: 0.5 * (_call("i0e", x) + _order("ive", 2, x)) - sign(x) * z,),
    "iv": _bessel("iv"),
    "ive": _bessel("ive"),
    "j0": (lambda z, x: -_call("j1", x),),
    "j1": (lambda z, x: 0.5 * (_call("j0", x) - _order("jv", 2, x)),),
    "jv": _bessel("jv"),
    "k0": (lambda z, x: -_call("k1", x),),
    "k0e": (lambda z, x: z - _call("k1e", x),),
    "k1": (lambda z, x: -0.5 * (_call("k0", x) + _order("kv", 2, x)),),
    "k1e": (lambda z, x: z - 0.5 * (_call("k0e", x) + _order("kve", 2, x)),),
    "kv": _bessel("kv"),
    "kve": _bessel("kve"),
    "lambertw": (lambda z, x, part=0: 1.0 / (x + exp(z)),),
    "sici": (lambda z, x, part=0: cos(x) / x if part else _sine_quotient(x),),
    "spence": (_spence_slope,),
    "y0": (lambda z, x: -_call("y1", x),),
    "y1": (lambda z, x: 0.5 * (_call("y0", x) - _order("yv", 2, x)),),
    "yv": _bessel("yv"),
    "wofz": (lambda z, x: 1j * _ROOT - 2.0 * (x * z),),
    "zeta": (
        lambda z, s, x: zeta_by_exponent(s, x, n=1),
        lambda z, s, x: -(s * _call("zeta", s + 1.0, x)),
    ),
}
"""How each function is differentiated by each of its operands."""
