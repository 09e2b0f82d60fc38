"""Rules of `simplify` for sums, products and quotients: neutral elements and signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.ir.graph import Value
from primgraph.ir.types import DType
from primgraph.primitives.constants import filled, full
from primgraph.primitives.elementwise import add, div, mul, neg, sub
from primgraph.transforms.rules.rule import Family, Seen, is_power_of_two, is_zero

ARITHMETIC = Family()
_rule = ARITHMETIC.rule


@_rule(add, of=(full, neg))
def _add(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x + (-0)` is `x`; `x + (-y)` is `x - y`, which is how subtraction is defined."""
    x, y = inputs
    for left, right in ((x, y), (y, x)):
        if is_zero(seen.scalar(right), -1.0):
            return left
        negated = seen.inside(neg, right)
        if negated is not None:
            return left - negated
    return None


@_rule(sub, of=(full, neg))
def _sub(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x - 0` is `x`; `x - (-y)` is `x + y`; `-0 - x` is `-x`, for both zeros too."""
    x, y = inputs
    if is_zero(seen.scalar(y), 1.0):
        return x
    negated = seen.inside(neg, y)
    if negated is not None:
        return x + negated
    return -y if is_zero(seen.scalar(x), -1.0) else None


@_rule(sub)
def _integer_difference(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x - x` is 0 for integers, which wrap round."""
    x, y = inputs
    return filled(0, x.type) if x is y and not x.type.is_float else None


@_rule(neg, of=(neg, mul))
def _neg(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`-(-x)` is `x`; `-(c * x)` is `(-c) * x`, as only the sign of a product changes."""
    negated = seen.inside(neg, inputs[0])
    if negated is not None:
        return negated
    product = seen.made_by(mul, inputs[0])
    if product is not None and product.inputs[0].type.is_float:
        for c, x in (product.inputs, product.inputs[::-1]):
            scalar = seen.scalar(c)
            if scalar is not None:
                return x * -scalar
    return None


@_rule(mul, of=(full, neg))
def _mul(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`1 * x` is `x`; `-1 * x` is `-x`; signs move out of products."""
    x, y = inputs
    for c, other in ((x, y), (y, x)):
        scalar = seen.scalar(c)
        if scalar == 1:
            return other
        if scalar == -1:
            return -other
        negated = seen.inside(neg, other)
        if negated is not None and x.type.is_float:
            return negated * -scalar if scalar is not None else -(c * negated)
    return None


@_rule(mul, of=(full,))
def _integer_product(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`0 * x` is 0 for integers, and `a * (b * x)` is `(a * b) * x`, as they wrap round."""
    x, y = inputs
    if x.type.is_float:
        return None
    for c, other in ((x, y), (y, x)):
        scalar = seen.scalar(c)
        if scalar == 0:
            return c
        found = None if scalar is None else _scaled(seen, other)
        if found is not None and scalar is not None:
            product = np.multiply(*(np.asarray(s, x.dtype) for s in (scalar, found[0])))
            return found[1] * int(product)
    return None


@_rule(mul, of=(full,))
def _powers_of_two(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`a * (b * x)` is `(a * b) * x` for powers of two of absolute value 1 or more.

    Neither product rounds, and if one overflows so does the other. Smaller powers can round
    twice where the result is denormal, or bring back what has overflowed.
    """
    return _joined(seen, inputs, lambda a, b: _scales_up(a) and _scales_up(b))


@_rule(mul, of=(full,))
def _doubled_first(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`a * (b * x)` is `(a * b) * x` if `b` is such a power of two and `a` is 1 or more as well.

    The inner product does not round, and where it overflows both are infinite.
    """
    return _joined(seen, inputs, lambda a, b: _scales_up(b) and abs(a) >= 1)


@_rule(add)
def _doubled(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x + x` is `2 * x`, which other factors can join: neither rounds."""
    x, y = inputs
    return x * 2.0 if x is y and x.type.is_float else None


def _scales_up(scalar: float) -> bool:
    return is_power_of_two(scalar) and abs(scalar) >= 1


def _scaled(seen: Seen, value: Value) -> tuple[Any, Value] | None:
    """`(c, x)` if `value` is `c * x` with the same number `c` everywhere."""
    product = seen.made_by(mul, value)
    for c, x in () if product is None else (product.inputs, product.inputs[::-1]):
        scalar = seen.scalar(c)
        if scalar is not None:
            return scalar, x
    return None


def _joined(seen: Seen, inputs: list[Value], fits: Any) -> Value | None:
    """`a * (b * x)` as `(a * b) * x` if `fits(a, b)` and the product is an ordinary number."""
    x, y = inputs
    for c, other in ((x, y), (y, x)):
        scalar = seen.scalar(c)
        found = _scaled(seen, other)
        if isinstance(scalar, float) and found is not None and fits(scalar, found[0]):
            product = ordinary_product(scalar, found[0], x.dtype)
            if product is not None:
                return found[1] * product
    return None


def ordinary_product(a: float, b: float, dtype: DType) -> float | None:
    """`a * b`, rounded, if that is an ordinary number."""
    product = np.multiply(*(np.asarray(s, dtype) for s in (a, b)))
    usual = np.isfinite(product) and abs(product) >= np.finfo(dtype).smallest_normal
    return float(product) if usual else None


@_rule(div, of=(full, neg))
def _div(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x / 1` is `x`; signs move out of quotients."""
    x, y = inputs
    if seen.scalar(y) == 1:
        return x
    negated = seen.inside(neg, x)
    if negated is not None:
        return -(negated / y)
    negated = seen.inside(neg, y)
    return None if negated is None else -(x / negated)


@_rule(div, of=(full,))
def _by_power_of_two(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x / c` is `x * (1/c)` for a power of two `c`: both round the same real number once."""
    x, y = inputs
    scalar = seen.scalar(y)
    if scalar is None or not is_power_of_two(scalar):
        return None
    with np.errstate(all="ignore"):
        inverse = (np.asarray(1, x.dtype) / np.asarray(scalar, x.dtype)).item()
    return x * inverse if is_power_of_two(inverse) else None


# Where zeros have no sign.


@_rule(add, level="signs")
def _plus_zero(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x + 0` is `x`, except for x = -0."""
    x, y = inputs
    for left, right in ((x, y), (y, x)):
        if seen.scalar(right) == 0:
            return left
    return None


@_rule(sub, level="signs")
def _minus(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x - 0` is `x`; `0 - x` is `-x` except for zeros; `-x - y` is `-(x + y)`."""
    x, y = inputs
    if seen.scalar(y) == 0:
        return x
    if seen.scalar(x) == 0:
        return -y
    negated = seen.inside(neg, x)
    return None if negated is None else -(negated + y)


@_rule(neg, level="signs")
def _minus_difference(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`-(x - y)` is `y - x`, except that the two zeros of equals have different signs."""
    difference = seen.made_by(sub, inputs[0])
    if difference is None or not seen.single(inputs[0]):
        return None
    x, y = difference.inputs
    return y - x


# Where no NaN, infinity, overflow or underflow occurs either.


@_rule(sub, level="finite")
def _minus_itself(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x - x` is 0 for finite x."""
    x, y = inputs
    return filled(0, x.type) if x is y else None


@_rule(mul, level="finite")
def _times_zero(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`0 * x` is 0 for finite x, up to its sign."""
    x, y = inputs
    return filled(0, x.type) if seen.scalar(x) == 0 or seen.scalar(y) == 0 else None


@_rule(div, level="finite")
def _quotient(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x / x` is 1 and `0 / x` is 0, except where the quotient is NaN."""
    x, y = inputs
    if x is y:
        return filled(1, x.type)
    return filled(0, x.type) if seen.scalar(x) == 0 else None


# True of real numbers.


@_rule(mul, level="fast")
def _constants_together(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`a * (b * x)` is `(a * b) * x`, rounded once less."""
    return _joined(seen, inputs, lambda a, b: True)


@_rule(mul, level="fast")
def _scaled_both(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`(a * x) * (b * y)` is `(a * b) * (x * y)`, which other factors can join."""
    x, y = inputs
    left, right = _scaled(seen, x), _scaled(seen, y)
    if left is None or right is None or not x.type.is_float:
        return None
    factor = ordinary_product(left[0], right[0], x.dtype)
    if factor is None or not (seen.single(x) or seen.single(y)):
        return None
    return (left[1] * right[1]) * factor


@_rule(div, level="fast")
def _by_constant(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x / c` is `x * (1/c)`, rounded once more, for an ordinary number `c`."""
    x, y = inputs
    scalar = seen.scalar(y)
    if scalar is None or not np.isfinite(scalar) or scalar == 0:
        return None
    inverse = np.asarray(1 / scalar, x.dtype)
    usual = np.isfinite(inverse) and abs(inverse) >= np.finfo(x.dtype).smallest_normal
    return x * float(inverse) if usual else None
