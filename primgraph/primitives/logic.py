"""Comparisons, logical functions, and elementwise selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError, UnsupportedDTypeError
from primgraph.ir.facts.choices import (
    ADDS,
    CHOICE,
    FALSE_AT_NAN,
    JOINS,
    LOGIC,
    NAN_OF,
    Choice,
    Logic,
)
from primgraph.ir.facts.matrices import (
    DEFINITE,
    DIAGONAL,
    POSITIVE,
    STRUCTURE,
    Definition,
    Structure,
    is_uniform,
)
from primgraph.ir.facts.ranges import FINITE_SLOPE, LEAST, RANGE, Range
from primgraph.ir.graph import COUNTED, Equation, Value
from primgraph.ir.primitive import Linear, Primitive, Rule, primitive
from primgraph.ir.types import BOOL, TensorType, common_type
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.shapes import with_batch_axis

# Larger constants are not inspected.
_LARGEST = 4096


def _declare(
    name: str, impl: Rule, type_rule: Rule, *, commutative: bool = False
) -> Primitive[Value]:
    op: Primitive[Value] = Primitive(
        name, type_rule, impl, elementwise=True, commutative=commutative, flops=1
    )

    @op.batch
    def batch_rule(batched: tuple[bool, ...], *inputs: Value) -> Value:
        return op(*with_batch_axis(batched, inputs))

    return op


def _comparison(
    name: str, impl: Rule, *, commutative: bool = False, orders: bool = True
) -> Primitive[Value]:
    """Declare a comparison of two equal types with a boolean result.

    A comparison that `orders` refuses complex numbers.
    """

    def type_rule(x: TensorType, y: TensorType) -> TensorType:
        found = common_type(name, x, y)
        if orders:
            require_order(name, found)
        return found.with_dtype(BOOL)

    return _declare(name, impl, type_rule, commutative=commutative)


def require_order(name: str, type: TensorType) -> None:
    """Refuse complex numbers, which have no order."""
    if type.is_complex:
        raise UnsupportedDTypeError(
            f"{name} does not take {type}: complex numbers have no order",
            hint="compare pg.abs(z), or pg.real(z)",
        )


def _logical(operands: int) -> Callable[[str, Rule], Primitive[Value]]:
    """Return a function that declares logical functions of that many booleans."""

    def declare(name: str, impl: Rule) -> Primitive[Value]:
        def type_rule(*types: TensorType) -> TensorType:
            if len(types) != operands:
                raise ShapeError(f"{name} takes {operands} operands, not {len(types)}")
            first = common_type(name, *types)
            if first.dtype != BOOL:
                raise DTypeError(f"{name} takes booleans, not {first}")
            return first

        return _declare(name, impl, type_rule, commutative=operands == 2)

    return declare


equal = _comparison("equal", np.equal, commutative=True, orders=False)
not_equal = _comparison("not_equal", np.not_equal, commutative=True, orders=False)
greater = _comparison("greater", np.greater)
greater_equal = _comparison("greater_equal", np.greater_equal)
less = _comparison("less", np.less)
less_equal = _comparison("less_equal", np.less_equal)

for _op in (equal, greater, greater_equal, less, less_equal):
    _op.declare(FALSE_AT_NAN, True)

logical_and = _logical(2)("logical_and", np.logical_and)
logical_or = _logical(2)("logical_or", np.logical_or)
logical_xor = _logical(2)("logical_xor", np.logical_xor)
logical_not = _logical(1)("logical_not", np.logical_not)
logical_and.declare(LOGIC, Logic.AND)
logical_or.declare(LOGIC, Logic.OR)
logical_not.declare(LOGIC, Logic.NOT)


@primitive(impl=np.where, linear=(1, 2), elementwise=True, flops=1)
def select(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    """Return `x` where `condition` is true and `y` elsewhere."""
    if condition.dtype != BOOL:
        raise DTypeError(f"select chooses by a boolean, not {condition}")
    common_type("select", condition, x.with_dtype(BOOL))
    return common_type("select", x, y)


select.declare(CHOICE, Choice(by=0, sides={1: True, 2: False}))
select.declare(JOINS, True)


# Triangles and diagonals of matrices, as they are recorded: by comparisons of indices.


def _is_lower_mask(value: Value, definition: Definition, k: int) -> bool:
    """Return whether a mask is true exactly where `column <= row + k`."""
    eqn = definition(value)
    if eqn is not None and (axes := eqn.repeated_axes):
        if axes != tuple(range(len(axes))):
            return False
        eqn = definition(eqn.inputs[0])
    if eqn is None:
        return False
    if (data := eqn.array) is not None:
        square = data.ndim == 2 and data.size <= _LARGEST and data.dtype == np.bool_
        return square and bool(np.array_equal(data, np.tril(np.ones_like(data), k)))
    if eqn.op is not greater_equal:
        return False
    row, column = eqn.inputs
    moved = definition(row)
    if k and (
        moved is None or not moved.op.fact(ADDS) or not _is_full(moved.inputs[1], definition, k)
    ):
        return False
    return _counts((moved.inputs[0] if k and moved else row, column), (0, 1), definition)


def _is_full(value: Value, definition: Definition, number: float) -> bool:
    eqn = definition(value)
    return eqn is not None and bool(eqn.number == number)


def _counts(values: Sequence[Value], axes: Sequence[int], definition: Definition) -> bool:
    """Return whether `values` are the indices of the axes `axes` (iota), in this order."""
    for value, axis in zip(values, axes, strict=True):
        eqn = definition(value)
        if eqn is None or eqn.held(COUNTED) != axis or value.type.ndim != 2:
            return False
    return True


def is_diagonal_mask(mask: Value, definition: Definition) -> bool:
    """Return whether a mask is true exactly on the diagonal."""
    eqn = definition(mask)
    if eqn is None or eqn.op is not equal:
        return False
    return any(_counts(eqn.inputs, axes, definition) for axes in ((0, 1), (1, 0)))


def lower_part_of(value: Value, definition: Definition) -> Value | None:
    """Return `x` if `value` is the lower triangle of `x`, with zeros above; else None."""
    eqn = definition(value)
    if eqn is None or eqn.op is not select:
        return None
    mask, x, rest = eqn.inputs
    return x if _is_full(rest, definition, 0) and _is_lower_mask(mask, definition, 0) else None


def upper_part_of(value: Value, definition: Definition) -> Value | None:
    """Return `x` if `value` is the upper triangle of `x`, with zeros below; else None."""
    eqn = definition(value)
    if eqn is None or eqn.op is not select:
        return None
    mask, rest, x = eqn.inputs
    return x if _is_full(rest, definition, 0) and _is_lower_mask(mask, definition, -1) else None


@select.declares(STRUCTURE)
def _select_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a selected triangle, or of a vector placed on the diagonal."""
    found = facts[1] & facts[2]
    if not is_uniform(eqn.inputs[0], definition):
        # A condition need not be symmetric.
        found &= DIAGONAL | POSITIVE
    if lower_part_of(eqn.output, definition) is not None:
        found |= Structure.LOWER
    if upper_part_of(eqn.output, definition) is not None:
        found |= Structure.UPPER
    if _is_full(eqn.inputs[2], definition, 0) and is_diagonal_mask(eqn.inputs[0], definition):
        found |= DIAGONAL | (DEFINITE if Structure.POSITIVE in facts[1] else Structure.SYMMETRIC)
    return found


@select.transpose
def _select_transpose(
    ct: Value, condition: Value, x: Value | Linear, y: Value | Linear
) -> tuple[Any, ...]:
    zero = zeros_like(ct)
    return None, select(condition, ct, zero), select(condition, zero, ct)


@select.batch
def _select_batch(batched: tuple[bool, ...], *inputs: Value) -> Value:
    return select(*with_batch_axis(batched, inputs))


@primitive(impl=lambda x, y: np.where(np.isnan(y), y, x), linear=(0,), elementwise=True, flops=2)
def unless_nan(x: TensorType, y: TensorType) -> TensorType:
    """Return `x`, but NaN where `y` is NaN: it makes a derivative NaN where the value is.

    Selections by comparison miss a NaN, as all comparisons with it are false.
    """
    found = common_type("unless_nan", x, y)
    if not found.is_inexact:
        raise DTypeError(f"unless_nan takes floats and complex numbers, not {found}")
    return found


@unless_nan.transpose
def _unless_nan_transpose(ct: Value, x: Linear, y: Value) -> tuple[Any, ...]:
    return unless_nan(ct, y), None


unless_nan.flat(1)
unless_nan.declare(NAN_OF, 1)


@unless_nan.declares(RANGE)
def _unless_nan_range(x: Range, y: Range) -> Range:
    return replace(x, nan=x.nan or y.nan)


@unless_nan.declares(FINITE_SLOPE)
def _unless_nan_slope(eqn: Equation, position: int, x: Range, y: Range) -> bool:
    return not (y.nan or (position == 1 and x.nan))


select.declare(LEAST, lambda least: min(least(1), least(2)))


@unless_nan.batch
def _unless_nan_batch(batched: tuple[bool, ...], *inputs: Value) -> Value:
    return unless_nan(*with_batch_axis(batched, inputs))
