"""Rules of `simplify` for powers, functions of one operand, and conversions."""

from __future__ import annotations

import math
from typing import Any

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import DType
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import filled
from primgraph.transforms.rules.rule import Family, Seen

FUNCTIONS = Family()
_rule = FUNCTIONS.rule

# The largest power that is written as products.
_LARGEST = 32


@_rule(e.integer_pow)
def _integer_pow(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x**1` is `x`; `x**0` is 1, for NaN too; `x**2` is `x * x`, which rounds once as well."""
    (x,) = inputs
    if params["n"] == 0:
        return filled(1, x.type)
    if params["n"] == 2:
        return x * x
    return x if params["n"] == 1 else None


@_rule(e.integer_pow)
def _power_of_integers(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Powers of integers by repeated squaring: products that wrap round are exact."""
    (x,) = inputs
    fits = not x.type.is_float and 2 < params["n"] <= _LARGEST
    return _by_squaring(x, params["n"]) if fits else None


def _by_squaring(x: Value, n: int) -> Value:
    """`x**n` by at most `2 log2(n)` products (Knuth, TAOCP 2, 4.6.3)."""
    result = None
    while n:
        if n % 2:
            result = x if result is None else result * x
        n //= 2
        x = x * x if n else x
    assert result is not None
    return result


@_rule(e.integer_pow, level="fast")
def _power_by_products(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x**n` by repeated squaring: each product rounds, where `np.power` rounds once."""
    (x,), n = inputs, params["n"]
    if not 2 < abs(n) <= _LARGEST:
        return None
    powers = _by_squaring(x, abs(n))
    return powers if n > 0 else 1.0 / powers


@_rule(e.power)
def _power_zero(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x**0` is 1 for every x, NaN too (C17, F.10.4.4)."""
    x, y = inputs
    return filled(1, x.type) if seen.scalar(y) == 0 else None


@_rule(e.power, level="fast")
def _power_by_constant(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Whole powers as products, and `x**0.5` as `sqrt(x)`, which differ at -0 and -inf."""
    x, y = inputs
    exponent = seen.scalar(y)
    if exponent is None or not x.type.is_float or not math.isfinite(exponent):
        return None
    if exponent == int(exponent) and abs(exponent) <= _LARGEST:
        result: Value = e.integer_pow(x, n=int(exponent))
        return result
    named = {0.5: e.sqrt, -0.5: e.rsqrt}.get(float(exponent))
    return None if named is None else named(x)


@_rule(e.abs_)
def _abs(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`abs(abs(x))` and `abs(-x)` are `abs(x)`, the latter for numbers that have a sign."""
    if seen.inside(e.abs_, inputs[0]) is not None:
        return inputs[0]
    negated = seen.inside(e.neg, inputs[0])
    if negated is None or negated.dtype.kind == "u":
        return None
    result: Value = e.abs_(negated)
    return result


@_rule(e.floor, e.ceil, e.round_)
def _whole(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Whole numbers stay as they are."""
    (x,) = inputs
    made = (seen.made_by(op, x) for op in (e.floor, e.ceil, e.round_))
    return x if any(eqn is not None for eqn in made) else None


@_rule(e.sign)
def _sign(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """The sign of a sign is itself."""
    return inputs[0] if seen.made_by(e.sign, inputs[0]) is not None else None


@_rule(e.maximum, e.minimum)
def _extremum_of_equals(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """The larger and the smaller of equals are both of them."""
    x, y = inputs
    return x if x is y else None


@_rule(e.cast)
def _cast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A cast to the dtype that is there already."""
    return inputs[0] if inputs[0].dtype == params["dtype"] else None


@_rule(e.cast)
def _cast_of_cast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A cast through a dtype that holds all numbers of the first one is a cast at once.

    So is one of integers through integers that are not narrower than the result, as narrowing
    keeps the lowest bits. Floats become integers only as before: what happens to those out of
    range depends on the dtype that they come from.
    """
    inner, middle, target = seen.inside(e.cast, inputs[0]), inputs[0].dtype, params["dtype"]
    if inner is None:
        return None
    lossless = _holds(middle, inner.dtype)
    if target.kind in "iu" and "f" in (inner.dtype.kind, middle.kind):
        lossless = lossless and (inner.dtype == target or _holds(target, inner.dtype))
    whole = all(d.kind in "iu" for d in (inner.dtype, middle, target))
    if not lossless and not (whole and middle.itemsize >= target.itemsize):
        return None
    result: Value = e.cast(inner, dtype=target)
    return result


_DIGITS = {2: 11, 4: 24, 8: 53}


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every number of dtype `narrow` is one of `wide`."""
    if narrow.kind == "b" or wide == narrow:
        return True
    if narrow.kind in "iu" and wide.kind == "f":
        return 8 * narrow.itemsize - (narrow.kind == "i") <= _DIGITS[wide.itemsize]
    if narrow.kind == "f":
        return wide.kind == "f" and wide.itemsize > narrow.itemsize
    if wide.kind == narrow.kind:
        return wide.itemsize > narrow.itemsize
    return wide.kind == "i" and wide.itemsize > narrow.itemsize


# True of real numbers.

_ODD = (e.sin, e.tan, e.sinh, e.tanh, e.arcsin, e.arctan, e.arcsinh, e.arctanh, e.erf)
_EVEN = (e.cos, e.cosh)
_INVERSES = (
    (e.log, e.exp), (e.exp, e.log), (e.log1p, e.expm1), (e.expm1, e.log1p),
    (e.arcsinh, e.sinh), (e.sinh, e.arcsinh), (e.arctanh, e.tanh), (e.tanh, e.arctanh),
    (e.tan, e.arctan), (e.sin, e.arcsin), (e.cos, e.arccos),
)  # fmt: skip


def _symmetric(op: Primitive[Value], sign: int) -> None:
    @_rule(op, level="fast")
    def symmetry(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """`f(-x)` is `-f(x)` or `f(x)`, as far as the library keeps to that."""
        negated = seen.inside(e.neg, inputs[0])
        if negated is None:
            return None
        result: Value = op(negated)
        return result if sign > 0 else -result


def _inverse(outer: Primitive[Value], inner: Primitive[Value]) -> None:
    @_rule(outer, level="fast")
    def inverse(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """`f(g(x))` is `x` where that has a value that does not overflow."""
        return seen.inside(inner, inputs[0])


for _op in _ODD:
    _symmetric(_op, -1)
for _op in _EVEN:
    _symmetric(_op, 1)
for _outer, _inner in _INVERSES:
    _inverse(_outer, _inner)


@_rule(e.sqrt, level="fast")
def _root_of_square(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`sqrt(x * x)` is `abs(x)`."""
    square = seen.made_by(e.mul, inputs[0])
    if square is None or square.inputs[0] is not square.inputs[1]:
        return None
    result: Value = e.abs_(square.inputs[0])
    return result


@_rule(e.mul, level="fast")
def _product_of_functions(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`sqrt(x) * sqrt(x)` is `x`; `exp(x) * exp(y)` is `exp(x + y)`, one exponential less."""
    x, y = inputs
    root = seen.inside(e.sqrt, x)
    if root is not None and x is y:
        return root
    left, right = seen.inside(e.exp, x), seen.inside(e.exp, y)
    if left is None or right is None or not (seen.single(x) and seen.single(y)):
        return None
    result: Value = e.exp(left + right)
    return result


@_rule(e.mul, level="fast")
def _logistic_slope(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`sigmoid(x) * sigmoid(-x)` is `z - z * z` for `z = sigmoid(x)`: one exponential less."""
    x, y = inputs
    for one, other in ((x, y), (y, x)):
        inner, outer = seen.inside(e.sigmoid, one), seen.inside(e.sigmoid, other)
        if inner is not None and outer is not None and seen.inside(e.neg, outer) is inner:
            return one - one * one
    return None


@_rule(e.log, level="fast")
def _log_of_share(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`log(exp(x) / y)` is `x - log(y)`, which for a softmax is its logarithm without underflow."""
    quotient = seen.made_by(e.div, inputs[0])
    inner = None if quotient is None else seen.inside(e.exp, quotient.inputs[0])
    if quotient is None or inner is None:
        return None
    rest: Value = e.log(quotient.inputs[1])
    return inner - rest
