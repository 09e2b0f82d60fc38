"""Rules of `simplify` for reductions and matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.ir.dims import typical
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import FLOAT16, DType
from primgraph.primitives.constants import constant, filled_constant, full, iota
from primgraph.primitives.elementwise import add, cast, mul, neg, sub
from primgraph.primitives.linear_algebra.products import matmul, swap_last
from primgraph.primitives.logic import equal
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from primgraph.primitives.shapes import broadcast, concat, pad, permute, reshape, slice_assign
from primgraph.transforms.rewrite.assembly import product_with_embedded_part
from primgraph.transforms.rewrite.rule import Family, Rule, Seen, SimplifyRule, is_power_of_two
from primgraph.transforms.rewrite.views import permute_axes, repeat_axes, reshape_to

SUMS = Family()
_rule = SUMS.rule


def sum_over(x: Value, axes: Sequence[int]) -> Value:
    """Return the sum over `axes`, or `x` if there are none."""
    if not axes:
        return x
    return reduce_sum(x, axes=tuple(sorted(axes)))


# Reductions of one element, and of equal elements.


@_rule(reduce_max, reduce_min, reduce_prod)
def _reduction_of_one_element(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """Drop the maximum, minimum or product of a single element."""
    (x,) = inputs
    alone = all(x.shape[a] == 1 for a in params["axes"])
    return reshape_to(x, seen.type.shape) if alone else None


@_rule(reduce_sum)
def _sum_of_one_element(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop the sum of a single integer."""
    (x,) = inputs
    alone = all(x.shape[a] == 1 for a in params["axes"])
    return reshape_to(x, seen.type.shape) if alone and not x.type.is_float else None


@_rule(reduce_sum, level="signs")
def _sum_of_one_float(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop the sum of a single float; NumPy's sum of -0 is 0."""
    (x,) = inputs
    alone = all(x.shape[a] == 1 for a in params["axes"])
    return reshape_to(x, seen.type.shape) if alone else None


@_rule(reduce_max, reduce_min, of=(broadcast,))
def _extremum_of_equals(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop a maximum or minimum along broadcast axes."""
    inner, axes = seen.made_by(broadcast, inputs[0]), params["axes"]
    if inner is None or not set(axes) <= set(inner.kwargs["new_axes"]):
        return None
    if any(inputs[0].shape[a] == 0 for a in axes):
        return None
    return _drop_axes(inner.inputs[0], inner.kwargs["new_axes"], axes, seen.type.shape)


def _drop_axes(x: Value, new: Sequence[int], axes: Sequence[int], shape: tuple[int, ...]) -> Value:
    """Return the broadcast of `x` along `new` axes without those in `axes`."""
    left = [a - sum(b < a for b in axes) for a in new if a not in axes]
    return repeat_axes(x, shape, left)


def _sum_of_equals(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Return the sum over broadcast axes as a product with their size, or None."""
    (x,), axes = inputs, params["axes"]
    inner = seen.made_by(broadcast, x)
    if inner is None or not axes or not set(axes) <= set(inner.kwargs["new_axes"]):
        return None
    small, count = inner.inputs[0], math.prod(x.shape[a] for a in axes)
    number = np.asarray(count).astype(small.dtype)
    if small.type.is_float and (number != count or count == 0):
        return None
    return _drop_axes(small * number.item(), inner.kwargs["new_axes"], axes, seen.type.shape)


def _count(inputs: list[Value], params: dict[str, Any]) -> int:
    return math.prod(inputs[0].shape[a] for a in params["axes"])


@_rule(reduce_sum, of=(broadcast,))
def _sum_of_equal_integers(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn the sum of n equal integers into a product, which is exact as integers wrap round."""
    return None if inputs[0].type.is_float else _sum_of_equals(seen, inputs, params)


# The sum of up to four equal numbers equals their rounded product, in any order of addition. For
# float16 the limit is larger, as NumPy accumulates in float32.
_SAFE, _SAFE_HALF = 4, 2048


@_rule(reduce_sum, level="signs", of=(broadcast,))
def _sum_of_few_equals(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn the sum of up to four equal floats into a product; NumPy's sum of -0 is 0."""
    limit = _SAFE_HALF if inputs[0].dtype == FLOAT16 else _SAFE
    return _sum_of_equals(seen, inputs, params) if _count(inputs, params) <= limit else None


@_rule(reduce_sum, level="fast", of=(broadcast,))
def _sum_of_many_equals(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn the sum of n equal floats into a product, which rounds once."""
    return _sum_of_equals(seen, inputs, params)


# Sums of sums and of products.


def _sum_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    inner = seen.made_by(reduce_sum, inputs[0])
    if inner is None or not seen.single(inputs[0]):
        return None
    x, done = inner.inputs[0], inner.kwargs["axes"]
    left = [a for a in range(x.type.ndim) if a not in done]
    return sum_over(x, [*done, *(left[a] for a in params["axes"])])


@_rule(reduce_sum, of=(reduce_sum,))
def _sum_of_integer_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge nested sums of integers, which is exact as integers wrap round."""
    return None if inputs[0].type.is_float else _sum_of_sum(seen, inputs, params)


@_rule(reduce_sum, level="fast", of=(reduce_sum,))
def _sum_of_float_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge nested sums of floats, which changes the order of addition."""
    return _sum_of_sum(seen, inputs, params)


@_rule(reduce_sum, level="signs", of=(neg,))
def _sum_of_negated(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Move a negation out of a sum; exact up to the sign of zero."""
    negated = seen.inside(neg, inputs[0])
    return None if negated is None else -sum_over(negated, params["axes"])


def _sum_of_scaled(
    seen: Seen, inputs: list[Value], params: dict[str, Any], fits: Callable[[Any], bool]
) -> Value | None:
    product = seen.made_by(mul, inputs[0])
    for c, x in () if product is None else (product.inputs, product.inputs[::-1]):
        scalar = seen.scalar(c)
        if scalar is not None and fits(scalar) and seen.single(inputs[0]):
            return sum_over(x, params["axes"]) * scalar
    return None


@_rule(reduce_sum, level="finite", of=(mul,))
def _sum_of_doubled(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Move a power of two out of a sum, which changes no rounding."""
    return _sum_of_scaled(seen, inputs, params, is_power_of_two)


@_rule(reduce_sum, level="fast", of=(mul,))
def _sum_of_multiple(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Move a constant factor out of a sum."""
    return _sum_of_scaled(seen, inputs, params, lambda scalar: True)


@_rule(reduce_sum, level="fast")
def _sum_of_products(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn the sum of `x * y` into a matrix product, which adds in another order.

    Axes belong to `x`, to `y`, or to both; an axis along which one factor is broadcast belongs to
    the other. Exactly the axes that belong to both factors must be summed over.
    """
    product, axes = seen.made_by(mul, inputs[0]), params["axes"]
    if product is None or not axes or not inputs[0].type.is_float or not seen.single(inputs[0]):
        return None
    (x, own_x), (y, own_y) = (_small(seen, v) for v in product.inputs)
    inner = [a for a in own_x if a in own_y]
    if sorted(inner) != list(axes) or len({*own_x, *own_y}) != inputs[0].type.ndim:
        return None
    rows = [a for a in own_x if a not in inner]
    columns = [a for a in own_y if a not in inner]
    if inputs[0].type.size == 0:
        return None
    shape = inputs[0].shape
    n, m, k = (math.prod(shape[a] for a in group) for group in (rows, columns, inner))
    left = reshape_to(permute_axes(x, [own_x.index(a) for a in (*rows, *inner)]), (n, k))
    right = reshape_to(permute_axes(y, [own_y.index(a) for a in (*inner, *columns)]), (k, m))
    total = matmul(left, right)
    spread = reshape_to(total, tuple(shape[a] for a in (*rows, *columns)))
    order = [*rows, *columns]
    return permute_axes(spread, [order.index(a) for a in sorted(order)])


def _small(seen: Seen, value: Value) -> tuple[Value, list[int]]:
    """Return the operand of a broadcast, and the axes of `value` that it has."""
    eqn = seen.made_by(broadcast, value)
    axes = list(range(value.type.ndim))
    if eqn is None:
        return value, axes
    return eqn.inputs[0], [a for a in axes if a not in eqn.kwargs["new_axes"]]


# Matrix products.


def _operand_of_transpose(seen: Seen, value: Value) -> Value | None:
    """Return `x` if `value` is its matrix transpose, else None."""
    eqn = seen.made_by(permute, value)
    if eqn is None:
        return None
    last = value.type.ndim - 1
    swap = (*range(last - 1), last, last - 1)
    return eqn.inputs[0] if eqn.kwargs["axes"] == swap else None


@_rule(matmul, level="finite", of=(full,))
def _product_with_zeros(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a product with a zero matrix into zeros, for finite numbers."""
    found = any(seen.scalar(v) == 0 for v in inputs)
    return filled_constant(0, seen.type) if found else None


@_rule(matmul, of=(constant, cast))
def _integers_with_identity(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """Drop the product of an integer matrix with an identity."""
    return None if seen.type.is_float else _other_than_identity(seen, inputs)


@_rule(matmul, level="finite", of=(constant, cast))
def _floats_with_identity(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop the product of a float matrix with an identity; 0 * inf would be NaN."""
    return _other_than_identity(seen, inputs)


def _other_than_identity(seen: Seen, inputs: list[Value]) -> Value | None:
    for x, other in (inputs, inputs[::-1]):
        if other.type == seen.type and _is_identity(seen, x):
            return other
    return None


def _is_identity(seen: Seen, x: Value) -> bool:
    """Return whether `x` is an identity matrix: a constant, or a cast of `row == column`."""
    if x.type.ndim != 2 or x.shape[0] != x.shape[1]:
        return False
    array, size = seen.array(x), x.shape[0]
    if array is not None:
        return size > 0 and bool(array[0, 0] == 1) and np.array_equal(array, np.eye(size))
    truth = seen.inside(cast, x)
    counted = None if truth is None else seen.made_by(equal, truth)
    sides = [] if counted is None else [seen.made_by(iota, v) for v in counted.inputs]
    axes = {e.kwargs["axis"] for e in sides if e is not None and _counts(e.outputs[0].dtype, size)}
    return axes == {0, 1}


def _counts(dtype: DType, size: int) -> bool:
    """Return whether the integers below `size` are distinct in `dtype`."""
    return dtype.kind in "iu" and size <= int(np.iinfo(dtype).max)


@_rule(permute, level="signs", of=(matmul,))
def _transposed_product_of_derivative(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """Apply `_transposed_product` to a product that a derivative adds: it has no order to keep."""
    return _transposed_product(seen, inputs, params) if seen.derived else None


@_rule(permute, level="fast", of=(matmul,))
def _transposed_product(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite the transpose of `x.T @ y` to `y.T @ x`; BLAS may add in another order."""
    last = seen.type.ndim - 1
    if params["axes"] != (*range(last - 1), last, last - 1):
        return None
    return _other_way_round(seen, inputs[0])


def _other_way_round(seen: Seen, value: Value) -> Value | None:
    """Transpose a product with a single use if one of its factors is a transpose."""
    product = seen.made_by(matmul, value)
    if product is None:
        return None
    x, y = product.inputs
    left, right = _operand_of_transpose(seen, x), _operand_of_transpose(seen, y)
    if (left is None and right is None) or not seen.single(value):
        return None
    return matmul(swap_last(y) if right is None else right, swap_last(x) if left is None else left)


@_rule(permute, level="fast")
def _transposed_matrix(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Transpose a product that is reshaped to several axes for rows and columns.

    Products with long rows are faster than those with few columns, unlike a permutation.
    """
    matrix, axes = seen.inside(reshape, inputs[0]), params["axes"]
    if matrix is None or matrix.type.ndim != 2 or not axes or not seen.single(inputs[0]):
        return None
    rows, columns = map(typical, matrix.shape)
    if 2 * rows < columns:
        return None
    count, shape = axes[0], inputs[0].shape
    if axes != (*range(count, len(axes)), *range(count)):
        return None
    if math.prod(shape[:count]) != matrix.shape[0]:
        return None
    turned = _other_way_round(seen, matrix)
    return None if turned is None else reshape_to(turned, seen.type.shape)


# Sums in derivatives, which nobody has written in some order. These rules add the same numbers in
# another order, and may round once less, so they apply to equations of derivatives only.

DERIVED = Family()


def _derived_rule(
    *ops: Primitive[Any], of: tuple[Primitive[Any], ...] = (), at: tuple[Primitive[Any], ...] = ()
) -> Callable[[Any], SimplifyRule]:
    """Declare a rule for floats in derivatives; `of` and `at` are those of `Rule`."""

    def declare(function: SimplifyRule) -> SimplifyRule:
        def apply(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
            fits = seen.derived and seen.type.is_float
            return function(seen, inputs, params) if fits else None

        apply.__name__ = function.__name__
        for op in ops:
            DERIVED.add(op, Rule("signs", apply, frozenset(of), at))
        return apply

    return declare


@_derived_rule(matmul, of=(concat, pad, permute, slice_assign))
def _product_with_zeros_of_derivative(
    seen: Seen, inputs: list[Value], params: dict[str, Any]
) -> Value | None:
    """Multiply only the part of a factor that a derivative has embedded in zeros."""
    return product_with_embedded_part(seen, inputs)


@_derived_rule(matmul, of=(full, broadcast, concat))
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
        found = [_one_of_equal(seen, v, axis) for v in eqn.inputs]
        parts = [part for part in found if part is not None]
        if len(parts) == len(found):
            result: Value = concat(*parts, axis=1 - axis)
            return result
    return None


@_derived_rule(reduce_sum, of=(reduce_sum,))
def _sum_of_derived_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge nested sums."""
    return _sum_of_sum(seen, inputs, params)


@_derived_rule(add, at=(mul, mul))
def _sum_of_multiples(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `c * x + c * y` to `(x + y) * c`, and `c * x + -c * y` to `(x - y) * c`."""
    return _common_number(seen, inputs, 1.0)


@_derived_rule(sub, at=(mul, mul))
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
