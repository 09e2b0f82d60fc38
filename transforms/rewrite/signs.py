"""Rules of `simplify` for derivatives: move signs and powers of two to where they are cheapest.

Derivatives contain many of them, such as a factor -2 next to a factor 0.125, or a negation before a
sum. All these rules are exact up to the sign of zero, also for NaN and infinities, as rounding is
symmetric and numbers are binary. Overflow and underflow of products with powers of two may differ.
If these are multiplied at once, after a sum, or in a constant of another factor, fewer results are
infinite, and subnormal intermediates round elsewhere.

The value that one user line passes to another is a cotangent or tangent, which readers know by its
name. It is kept: factors are only moved within one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import DType
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import add, div, mul, neg, sub
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import cumsum, reduce_sum
from primgraph.primitives.shapes import broadcast, pad, permute, reshape, reverse, slice_
from primgraph.transforms.rewrite.rule import Family, Seen, SimplifyRule, is_power_of_two

SIGNS = Family()

# Maximum number of operations through which a factor is sought.
_DEEPEST = 4

# Operands in which the result is odd: a sign moves through, up to the sign of zeros.
_ODD: dict[Op, tuple[int, ...]] = {
    **dict.fromkeys((broadcast, cumsum, pad, permute, reduce_sum, reshape, reverse, slice_), (0,)),
    **dict.fromkeys((div, matmul, mul), (0, 1)),
}
# Distance of a value without a factor.
_FAR = 2**30
# Operands from which a power of two moves through if it makes no number smaller.
_SCALED: dict[Op, tuple[int, ...]] = {
    **dict.fromkeys((broadcast, permute, reshape), (0,)),
    mul: (0, 1),
}

# Operands from which any factor moves through if it becomes smaller.
_PRODUCTS: dict[Op, tuple[int, ...]] = {mul: (0, 1)}

_Fits: TypeAlias = Callable[[float], bool]


@final
@dataclass(frozen=True, slots=True)
class _Factor:
    """A constant factor `c` inside a value, and the path to `rest`, the factor's operand.

    `way` has the equations from the value on, and the operand index of the next one.
    """

    c: float
    rest: Value
    way: tuple[tuple[Equation, int], ...] = ()

    def rebuild_rest(self) -> Value:
        """Rebuild the value without the factor."""
        value = self.rest
        for eqn, place in reversed(self.way):
            assert isinstance(eqn.op, Primitive)
            operands = [*eqn.inputs[:place], value, *eqn.inputs[place + 1 :]]
            value = eqn.op(*operands, **eqn.kwargs)
        return value


def _factor(
    seen: Seen, value: Value, ops: dict[Op, tuple[int, ...]], fits: _Fits, deepest: int = _DEEPEST
) -> _Factor | None:
    """Return the first suitable factor in `value`, if all products on the way have one use."""
    if not seen.has_factors or (ops and _distance(seen, value, deepest) > deepest):
        return None
    eqn = seen.builder.definition(value)
    if eqn is None or not value.type.is_float or not seen.of_line(eqn):
        return None
    found = _own_factor(seen, eqn, fits)
    if found is None and deepest and eqn.op in ops:
        for place in ops[eqn.op]:
            inner = _factor(seen, eqn.inputs[place], ops, fits, deepest - 1)
            if inner is not None:
                found = _Factor(inner.c, inner.rest, ((eqn, place), *inner.way))
                break
    return found if found is not None and seen.single(value) else None


def _distance(seen: Seen, value: Value, deepest: int) -> int:
    """Return how many operations of `_ODD` lie between `value` and the nearest factor.

    If these are more than `deepest`, a lower bound is returned. Both are cached, the bound as its
    complement, so that a long chain of products is searched once.
    """
    known = seen.distances.get(value, ~0)
    if known >= 0:
        return known
    if ~known > deepest:
        return ~known
    found = _find_distance(seen, value, deepest)
    seen.distances[value] = found if found <= deepest else ~found
    return found


def _find_distance(seen: Seen, value: Value, deepest: int) -> int:
    eqn = seen.builder.definition(value)
    if eqn is None:
        return _FAR
    if eqn.op is neg or (eqn.op is mul and any(seen.scalar(v) is not None for v in eqn.inputs)):
        return 0
    if not deepest:
        return 1
    return min(
        [_FAR, *[1 + _distance(seen, eqn.inputs[i], deepest - 1) for i in _ODD.get(eqn.op, ())]]
    )


def _own_factor(seen: Seen, eqn: Equation, fits: _Fits) -> _Factor | None:
    """Return the factor by which `eqn` itself multiplies."""
    if eqn.op is neg:
        return _Factor(-1.0, eqn.inputs[0]) if fits(-1.0) else None
    if eqn.op is mul:
        for c, x in (eqn.inputs, eqn.inputs[::-1]):
            scalar = seen.scalar(c)
            if isinstance(scalar, float) and fits(scalar):
                return _Factor(scalar, x)
    return None


def _drop_sign(seen: Seen, value: Value) -> Value | None:
    """Return `-value` if that saves an operation, else None."""
    found = _factor(seen, value, _ODD, lambda scalar: scalar == -1.0)
    return None if found is None else found.rebuild_rest()


def _any(scalar: float) -> bool:
    return True


def _grows(scalar: float) -> bool:
    return is_power_of_two(scalar) and abs(scalar) > 1


def _shrinks(scalar: float) -> bool:
    return is_power_of_two(scalar) and abs(scalar) < 1


def _ordinary_product(a: float, b: float, dtype: DType) -> float | None:
    """Return `a * b`, rounded, if it is finite and normal; else None."""
    product = np.multiply(*(np.asarray(s, dtype) for s in (a, b)))
    usual = np.isfinite(product) and abs(product) >= np.finfo(dtype).smallest_normal
    return float(product) if usual else None


def _rule(op: Primitive[Any]) -> Callable[[SimplifyRule], SimplifyRule]:
    """Declare a rule of level "signs" for floats, tried if an operand may have a factor."""
    return SIGNS.rule(op, level="signs", of=(neg, *_ODD))


# A rule for products with a number, tried if the other operand may have a factor itself.
_rule_for_number = SIGNS.rule(mul, level="signs", at=(full, frozenset((mul, neg))))


def _either_way(inputs: list[Value]) -> Iterator[tuple[Value, Value]]:
    x, y = inputs
    yield x, y
    if x is not y:
        yield y, x


@_rule(add)
def _sum_with_sign(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `x + f(-y)` to `x - f(y)` for products, moves and sums `f`."""
    for x, y in _either_way(inputs):
        positive = _drop_sign(seen, y)
        if positive is not None:
            return x - positive
    return None


@_rule(sub)
def _difference_with_sign(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `x - f(-y)` to `x + f(y)`."""
    x, y = inputs
    positive = _drop_sign(seen, y)
    return None if positive is None else x + positive


@_rule(neg)
def _two_signs(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `-f(c * x)` to `f(-c * x)`, and `-f(-x)` to `f(x)`."""
    found = _factor(seen, inputs[0], _ODD, _any)
    if found is None:
        return None
    rest = found.rest if found.c == -1.0 else found.rest * -found.c
    return _Factor(1.0, rest, found.way).rebuild_rest()


@_rule(reduce_sum)
def _sign_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite the sum of `f(-x)` to minus the sum of `f(x)`."""
    positive = _drop_sign(seen, inputs[0])
    if positive is None:
        return None
    total: Value = reduce_sum(positive, **params)
    return -total


@_rule(reduce_sum)
def _power_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite the sum of `2 * x * y` to twice the sum of `x * y`."""
    found = _factor(seen, inputs[0], _SCALED, _grows)
    if found is None:
        return None
    total: Value = reduce_sum(found.rebuild_rest(), **params)
    return total * found.c


@_rule_for_number
def _powers_together(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `a * (b * x)` to `(a * b) * x` if one is a power of two, as it rounds once, and
    `0.5 * (x * (c * y))` to `x * (0.5 * c * y)`."""
    for c, y in _either_way(inputs):
        scalar = seen.scalar(c)
        if isinstance(scalar, float):
            fits = _any if is_power_of_two(scalar) else is_power_of_two
            found = _factor(seen, y, _PRODUCTS if _shrinks(scalar) else {}, fits)
            product = None if found is None else _ordinary_product(scalar, found.c, y.dtype)
            if found is not None and product is not None:
                return _Factor(1.0, found.rest * product, found.way).rebuild_rest()
    return None


@_rule_for_number
def _powers_that_cancel(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `2 * (0.5 * x)` to `x`, also if `0.5 * x` has other uses."""
    for c, y in _either_way(inputs):
        scalar, eqn = seen.scalar(c), seen.builder.definition(y)
        if isinstance(scalar, float) and is_power_of_two(scalar) and eqn is not None:
            found = _own_factor(seen, eqn, (1 / scalar).__eq__)
            if found is not None:
                return found.rest
    return None


@SIGNS.rule(mul, level="signs", at=(mul, mul))
def _powers_of_factors(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `(2 * x) * (4 * y)` to `(x * y) * 8`, and `(0.5 * x) * (2 * y)` to `x * y`."""
    x, y = (_factor(seen, v, {}, is_power_of_two) for v in inputs)
    if x is None or y is None or abs(x.c * y.c) < 1:
        return None
    product: Value = x.rest * y.rest
    return product if x.c * y.c == 1 else product * (x.c * y.c)


@SIGNS.rule(mul, level="signs", at=(mul, mul))
def _power_into_factor(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `(0.5 * x) * (c * y)` to `x * (0.5 * c * y)`."""
    for one, other in _either_way(inputs):
        x, y = _factor(seen, one, {}, _shrinks), _factor(seen, other, {}, _any)
        product = None if x is None or y is None else _ordinary_product(x.c, y.c, other.dtype)
        if x is not None and y is not None and product is not None:
            return x.rest * (y.rest * product)
    return None


@SIGNS.rule(mul, level="signs", of=(full,), any_dtype=True)
def _times_one(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Replace `1 * z` by `z`; NumPy also adds zeros times its parts: NaN for infinite ones."""
    if not seen.type.is_complex:
        return None
    for number, other in (inputs, inputs[::-1]):
        if seen.uniform(number) == 1:
            return other
    return None
