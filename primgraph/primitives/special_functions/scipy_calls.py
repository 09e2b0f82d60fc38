"""Special functions that call SciPy when the program runs.

One primitive, `by_scipy`, computes all of them, chosen by name. A table holds a derivative rule per
operand, written with other functions of the table. An entry is None where no stable formula is
known, and such a derivative is refused. Formulas are from DLMF: chapters 6 (exponential integrals),
7 (Dawson's integral), 10 (Bessel functions), 15 (hypergeometric functions), 19 (elliptic integrals)
and section 4.13 (Lambert W). In rules `z` is the result.
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
from primgraph.primitives.logic import equal, less, select
from primgraph.primitives.shapes import with_batch_axis

Slope = Callable[..., Value]


def _type(*types: TensorType, name: str, part: int) -> TensorType:
    if name not in SLOPES:
        raise ArgumentError(f"there is no function of SciPy's named {name!r:.60}")
    if len(types) != len(SLOPES[name]):
        raise ShapeError(f"{name} takes {len(SLOPES[name])} operands, not {len(types)}")
    first = common_type(name, *types)
    if first.dtype.kind != "f":
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


# Names, in error messages, of operands without a derivative that are not orders.
_HELD = {"hyp2f1": "parameter", "zeta": "exponent"}


def _declare(position: int) -> None:
    @by_scipy.jvp(position)
    def jvp(z: Value, *inputs: Any, name: str, part: int) -> Value:
        *operands, d = inputs
        slope = SLOPES[name][position]
        if slope is None:
            held = f"its {_HELD.get(name, 'order')}, operand {position}"
            raise NotDifferentiable(
                f"{name} has no derivative by {held}, as its formula is not known",
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


def _bessel_derivative(name: str, below: float, above: float) -> Slope:
    """Return the derivative rule of a Bessel function, from orders v - 1 and v + 1."""

    def slope(z: Value, v: Value, x: Value) -> Value:
        return below * _call(name, v - 1.0, x) + above * _call(name, v + 1.0, x)

    return slope


def _scaled_bessel_derivative(name: str, above: float) -> Slope:
    """Return the derivative rule of one scaled by exp(-abs(x)), or exp(x) if `above` is
    negative."""
    unscaled = _bessel_derivative(name, above, above)

    def slope(z: Value, v: Value, x: Value) -> Value:
        return unscaled(z, v, x) - sign(x) * z if above > 0 else unscaled(z, v, x) + z

    return slope


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


def _hypergeometric(z: Value, a: Value, b: Value, c: Value, x: Value) -> Value:
    """Return the derivative (DLMF 15.5.1): 0 if a * b = 0, even if the next order diverges."""
    factor = a * b
    ended = equal(factor, zeros_like(factor))
    slope = factor / c * _call("hyp2f1", a + 1.0, b + 1.0, c + 1.0, x)
    return select(ended, zeros_like(slope), slope)


def _elliptic(a: float, b: float, scale: float) -> Slope:
    """Return the derivative by the parameter, as a hypergeometric function (DLMF 19.5.1)."""

    def slope(z: Value, x: Value) -> Value:
        of = [filled_constant(v, x.type) for v in (a, b, 2.0)]
        return scale * math.pi / 8 * _call("hyp2f1", *of, x)

    return slope


SLOPES: dict[str, tuple[Slope | None, ...]] = {
    "dawsn": (lambda z, x: 1.0 - 2.0 * (x * z),),
    "ellipe": (_elliptic(0.5, 1.5, -1.0),),
    "ellipk": (_elliptic(1.5, 1.5, 1.0),),
    "erfi": (lambda z, x: 2 / math.sqrt(math.pi) * exp(x * x),),
    "exp1": (lambda z, x: -(exp(-x) / x),),
    "expi": (lambda z, x: exp(x) / x,),
    "expn": (None, _expn_slope),
    "hyp2f1": (None, None, None, _hypergeometric),
    "i0": (lambda z, x: _call("i1", x),),
    "i0e": (lambda z, x: _call("i1e", x) - sign(x) * z,),
    "i1": (lambda z, x: 0.5 * (_call("i0", x) + _order("iv", 2, x)),),
    "i1e": (lambda z, x: 0.5 * (_call("i0e", x) + _order("ive", 2, x)) - sign(x) * z,),
    "iv": (None, _bessel_derivative("iv", 0.5, 0.5)),
    "ive": (None, _scaled_bessel_derivative("ive", 0.5)),
    "j0": (lambda z, x: -_call("j1", x),),
    "j1": (lambda z, x: 0.5 * (_call("j0", x) - _order("jv", 2, x)),),
    "jv": (None, _bessel_derivative("jv", 0.5, -0.5)),
    "k0": (lambda z, x: -_call("k1", x),),
    "k0e": (lambda z, x: z - _call("k1e", x),),
    "k1": (lambda z, x: -0.5 * (_call("k0", x) + _order("kv", 2, x)),),
    "k1e": (lambda z, x: z - 0.5 * (_call("k0e", x) + _order("kve", 2, x)),),
    "kv": (None, _bessel_derivative("kv", -0.5, -0.5)),
    "kve": (None, _scaled_bessel_derivative("kve", -0.5)),
    "lambertw": (lambda z, x, part=0: 1.0 / (x + exp(z)),),
    "sici": (lambda z, x, part=0: cos(x) / x if part else _sine_quotient(x),),
    "spence": (_spence_slope,),
    "y0": (lambda z, x: -_call("y1", x),),
    "y1": (lambda z, x: 0.5 * (_call("y0", x) - _order("yv", 2, x)),),
    "yv": (None, _bessel_derivative("yv", 0.5, -0.5)),
    "zeta": (None, lambda z, s, x: -(s * _call("zeta", s + 1.0, x))),
}
"""How each function is differentiated by each of its operands."""
