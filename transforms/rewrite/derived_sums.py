"""Rules of `simplify` for sums in derivatives, which nobody has written in some order.

They add the same numbers in another order, and may round once less. So they apply to equations of
derivatives only. A product with a matrix whose rows are equal computes one of them; a product with
ones is a sum; and a number that both terms of a sum have as a factor multiplies the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.constants import filled_constant, full
from primgraph.primitives.elementwise import add, mul, sub
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, concat
from primgraph.transforms.rewrite.rule import Family, Seen, SimplifyRule
from primgraph.transforms.rewrite.sums import merge_sums
from primgraph.transforms.rewrite.views import repeat_axes, reshape_to

DERIVED = Family()


def _rule(*ops: Primitive[Any], of: tuple[Primitive[Any], ...]) -> Callable[[Any], SimplifyRule]:
    """Declare a rule for floats in derivatives, tried if one of `of` computes an operand."""

    def declare(function: SimplifyRule) -> SimplifyRule:
        def apply(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
            fits = seen.derived and seen.type.is_float
            return function(seen, inputs, params) if fits else None

        apply.__name__ = function.__name__
        return DERIVED.rule(*ops, level="signs", of=of)(apply)

    return declare


@_rule(matmul, of=(full, broadcast, concat))
def _product_with_equal_rows(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """Compute one row of a product whose rows are equal, and repeat it; or one column."""
    x, y = inputs
    if x.type.ndim != 2:
        return None
    (n, _), (_, m) = x.shape, y.shape
    row = _one_of_equal(seen, x, 0) if n != 1 else None
    if row is not None:
        return repeat_axes(reshape_to(matmul(row, y), (m,)), (n, m), [0])
    column = _one_of_equal(seen, y, 1) if m != 1 else None
    if column is not None:
        return repeat_axes(reshape_to(matmul(x, column), (n,)), (n, m), [1])
    return _product_as_sum(seen, x, y)


def _product_as_sum(seen: Seen, x: Value, y: Value) -> Value | None:
    """Return a product whose terms have a common factor as the product of that and a sum."""
    (n, size), m = x.shape, y.shape[1]
    if type(size) is not int or not size:
        return None
    for factor, other, axis in ((x, y, 0), (y, x, 1)):
        number = seen.scalar(factor)
        if number is not None:
            total = reduce_sum(other, axes=(axis,)) if size != 1 else None
            part = reshape_to(other, (m if axis == 0 else n,)) if total is None else total
            return repeat_axes(part * filled_constant(number, part.type), (n, m), [axis])
        column = _one_of_equal(seen, factor, 1 - axis) if size != 1 else None
        if column is not None:
            total = reduce_sum(other, axes=(axis,))
            total = reshape_to(total, (1, m) if axis == 0 else (n, 1))
            return matmul(column, total) if axis == 0 else matmul(total, column)
    return None


def _one_of_equal(seen: Seen, x: Value, axis: int) -> Value | None:
    """Return one row (`axis` 0) or column of a matrix, of size 1, if all are equal."""
    shape = (1, x.shape[1]) if axis == 0 else (x.shape[0], 1)
    eqn = seen.builder.definition(x)
    if eqn is None or type(x.shape[axis]) is not int or x.shape[axis] < 2:
        return None
    if eqn.op is full:
        return filled_constant(eqn.kwargs["value"], x.type.with_shape(shape))
    if eqn.op is broadcast and eqn.kwargs["new_axes"] == (axis,):
        return reshape_to(eqn.inputs[0], shape)
    if eqn.op is concat and eqn.kwargs["axis"] == 1 - axis:
        parts = [_one_of_equal(seen, v, axis) for v in eqn.inputs]
        if all(p is not None for p in parts):
            return concat(*parts, axis=1 - axis)
    return None


@_rule(reduce_sum, of=(reduce_sum,))
def _sum_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge nested sums."""
    return merge_sums(seen, inputs, params)


@_rule(add, of=(mul,))
def _sum_of_multiples(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `c * x + c * y` to `(x + y) * c`, and `c * x + -c * y` to `(x - y) * c`."""
    return _common_number(seen, inputs, 1.0)


@_rule(sub, of=(mul,))
def _difference_of_multiples(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """Rewrite `c * x - c * y` to `(x - y) * c`, and `c * x - -c * y` to `(x + y) * c`."""
    return _common_number(seen, inputs, -1.0)


def _common_number(seen: Seen, inputs: list[Value], sign: float) -> Value | None:
    first, second = (_scaled(seen, v) for v in inputs)
    if first is None or second is None or seen.type.is_complex:
        return None
    (x, a), (y, b) = first, second
    if abs(a) != abs(b) or abs(a) in (0.0, 1.0) or not all(map(seen.single, inputs)):
        return None
    if a == sign * b:
        return (x + y) * a
    return (x - y) * a if a > 0 else (y - x) * -a


def _scaled(seen: Seen, value: Value) -> tuple[Value, float] | None:
    """Return the operand and the number of a product with a number."""
    eqn = seen.made_by(mul, value)
    if eqn is None or not seen.of_line(eqn):
        return None
    for x, c in (eqn.inputs, eqn.inputs[::-1]):
        number = seen.scalar(c)
        if isinstance(number, float) and seen.scalar(x) is None:
            return x, number
    return None
