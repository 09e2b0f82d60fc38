"""Rules of `simplify` that take common factors out of sums: true of real numbers only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.elementwise import add, div, mul, sub
from primgraph.transforms.rules.rule import Family, Seen

FACTORS = Family()
_rule = FACTORS.rule


def _factors(seen: Seen, value: Value) -> Iterator[tuple[Value, Value]]:
    """Ways to write `value` as a product that has no other readers."""
    product = seen.made_by(mul, value)
    if product is not None:
        x, y = product.inputs
        yield x, y
        if x is not y:
            yield y, x


def _common(seen: Seen, op: Primitive[Value], inputs: list[Value]) -> Value | None:
    x, y = inputs
    if x is y or not x.type.is_float:
        return None
    for factor, left in _factors(seen, x):
        for other, right in _factors(seen, y):
            if factor is other and seen.single(x) and seen.single(y):
                total: Value = op(left, right)
                return factor * total
    return None


@_rule(add, level="fast")
def _factor_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`a * b + a * c` is `a * (b + c)`: one product less."""
    return _common(seen, add, inputs)


@_rule(sub, level="fast")
def _factor_of_difference(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`a * b - a * c` is `a * (b - c)`."""
    return _common(seen, sub, inputs)


def _parts(seen: Seen, inputs: list[Value]) -> Iterator[tuple[Value, float, bool]]:
    """`(x, c, first)` for operands `x` and `c * x`; `first` tells that they stand in this order."""
    x, y = inputs
    for whole, part, first in ((x, y, True), (y, x, False)):
        for c, other in _factors(seen, part):
            scalar = seen.scalar(c)
            if other is whole and scalar is not None and x.type.is_float and seen.single(part):
                yield whole, scalar, first


@_rule(add, level="fast")
def _multiple_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x + c * x` is `(1 + c) * x`."""
    for whole, c, _ in _parts(seen, inputs):
        return whole * (1 + c)
    return None


@_rule(sub, level="fast")
def _multiple_of_difference(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """`x - c * x` is `(1 - c) * x`, and the other way round."""
    for whole, c, first in _parts(seen, inputs):
        return whole * (1 - c if first else c - 1)
    return None


@_rule(add, level="fast")
def _constants_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`(x + a) + b` is `x + (a + b)` for numbers `a` and `b`."""
    x, y = inputs
    for c, rest in ((x, y), (y, x)):
        inner, b = seen.made_by(add, rest), seen.scalar(c)
        if b is None or inner is None or not c.type.is_float:
            continue
        for term, kept in (inner.inputs, inner.inputs[::-1]):
            a = seen.scalar(term)
            if a is not None:
                return kept + (a + b)
    return None


@_rule(mul, level="fast")
def _times_inverse(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x * (1 / y)` is `x / y`."""
    x, y = inputs
    for left, right in ((x, y), (y, x)):
        inverse = seen.made_by(div, right)
        if inverse is not None and seen.scalar(inverse.inputs[0]) == 1 and seen.single(right):
            return left / inverse.inputs[1]
    return None


@_rule(div, level="fast")
def _by_quotient(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x / (1 / y)` is `x * y`."""
    x, y = inputs
    inverse = seen.made_by(div, y)
    if inverse is None or seen.scalar(inverse.inputs[0]) != 1:
        return None
    return x * inverse.inputs[1]
