"""Structure of matrices: triangles and diagonals as they are recorded, and the rules of primitives.

A triangle is selected by comparing indices of rows and columns, as in `systems.lower_triangle`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from primgraph.ir.facts.matrices import (
    DEFINITE,
    DIAGONAL,
    NOTHING,
    POSITIVE,
    PSD,
    SHAPES,
    STRUCTURE,
    Structure,
)
from primgraph.ir.graph import Equation, Value
from primgraph.primitives.constants import constant, full, iota
from primgraph.primitives.elementwise import add, cast, div, mul
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import equal, greater_equal, select
from primgraph.primitives.shapes import broadcast, permute

Definition: TypeAlias = Callable[[Value], Equation | None]

# Larger constants are not inspected.
_LARGEST = 4096


def transposed(value: Value, definition: Definition) -> Value | None:
    """Return the value that `value` is the matrix transpose of, or None."""
    eqn = definition(value)
    if eqn is None or eqn.op is not permute:
        return None
    axes = eqn.kwargs["axes"]
    last = len(axes) - 1
    swaps = last > 0 and tuple(axes) == (*range(last - 1), last, last - 1)
    return eqn.inputs[0] if swaps else None


def _is_lower_mask(value: Value, definition: Definition, k: int) -> bool:
    """Return whether a mask is true exactly where `column <= row + k`."""
    eqn = definition(value)
    if eqn is not None and eqn.op is broadcast:
        if tuple(eqn.kwargs["new_axes"]) != tuple(range(len(eqn.kwargs["new_axes"]))):
            return False
        eqn = definition(eqn.inputs[0])
    if eqn is None:
        return False
    if eqn.op is constant:
        data = eqn.kwargs["value"].data
        square = data.ndim == 2 and data.size <= _LARGEST and data.dtype == np.bool_
        return square and bool(np.array_equal(data, np.tril(np.ones_like(data), k)))
    if eqn.op is not greater_equal:
        return False
    row, column = eqn.inputs
    moved = definition(row)
    if k and (moved is None or moved.op is not add or not _is_full(moved.inputs[1], definition, k)):
        return False
    return _counts((moved.inputs[0] if k and moved else row, column), (0, 1), definition)


def _is_full(value: Value, definition: Definition, number: float) -> bool:
    eqn = definition(value)
    return eqn is not None and bool(eqn.number == number)


def _counts(values: Sequence[Value], axes: Sequence[int], definition: Definition) -> bool:
    """Return whether `values` are the indices of the axes `axes` (iota), in this order."""
    for value, axis in zip(values, axes, strict=True):
        eqn = definition(value)
        if eqn is None or eqn.op is not iota or value.type.ndim != 2:
            return False
        if eqn.kwargs["axis"] != axis:
            return False
    return True


def _is_diagonal_mask(mask: Value, definition: Definition) -> bool:
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


# Rules.


@full.declares(STRUCTURE)
def _full_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    value = eqn.kwargs["value"]
    sign = POSITIVE if value > 0 else Structure.NOT_NEGATIVE if value >= 0 else NOTHING
    shape = eqn.output.shape
    return sign | (Structure.SYMMETRIC if len(shape) > 1 and shape[-1] == shape[-2] else NOTHING)


@constant.declares(STRUCTURE)
def _constant_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    data = eqn.kwargs["value"].data
    if data.dtype.kind != "f" or data.size > _LARGEST or not data.size:
        return NOTHING
    found = POSITIVE if np.all(data > 0) else NOTHING
    if np.all(data >= 0):
        found |= Structure.NOT_NEGATIVE
    if data.ndim < 2 or data.shape[-1] != data.shape[-2]:
        return found
    if np.array_equal(data, np.tril(data)):
        found |= Structure.LOWER
    if np.array_equal(data, np.triu(data)):
        found |= Structure.UPPER
    if np.array_equal(data, np.swapaxes(data, -1, -2)):
        found |= Structure.SYMMETRIC
    if DIAGONAL in found and np.all(np.diagonal(data, 0, -2, -1) > 0):
        found |= DEFINITE
    return found


@cast.declares(STRUCTURE)
def _cast_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Recognise the identity matrix: a cast of the comparison of row and column indices."""
    if _is_diagonal_mask(eqn.inputs[0], definition):
        return DIAGONAL | DEFINITE | Structure.NOT_NEGATIVE
    return Structure.NOT_NEGATIVE if eqn.inputs[0].dtype.kind == "b" else facts[0] & SHAPES


@add.declares(STRUCTURE)
def _add_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    one, other = facts
    found = one & other
    if PSD in one and PSD in other and Structure.DEFINITE in one | other:
        found |= Structure.DEFINITE
    if Structure.NOT_NEGATIVE in one and Structure.NOT_NEGATIVE in other:
        found |= Structure.POSITIVE & (one | other)
    return found


@mul.declares(STRUCTURE)
def _mul_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a multiple or a Schur product, definite if both factors are."""
    one, other = facts
    found = one & other & (Structure.SYMMETRIC | POSITIVE)
    if PSD in one and PSD in other:
        found |= one & other & DEFINITE
    if eqn.inputs[0] is eqn.inputs[1]:
        found |= Structure.NOT_NEGATIVE
    for number, fact, factor in ((0, one, other), (1, other, one)):
        if _is_uniform(eqn.inputs[number], definition):
            found |= factor & SHAPES
            if Structure.POSITIVE in fact:
                found |= factor & DEFINITE
            elif Structure.NOT_NEGATIVE in fact:
                found |= factor & PSD
    return found


def _is_uniform(value: Value, definition: Definition) -> bool:
    """Return whether all elements of each matrix are one number."""
    eqn = definition(value)
    if eqn is None:
        return False
    if eqn.op is full:
        return True
    rank = value.type.ndim
    return eqn.op is broadcast and {rank - 2, rank - 1} <= {*eqn.kwargs["new_axes"]}


@div.declares(STRUCTURE)
def _div_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    one, other = facts
    found = one & other & Structure.SYMMETRIC
    sign = one & POSITIVE if Structure.POSITIVE in other else NOTHING
    if _is_uniform(eqn.inputs[1], definition):
        found |= one & SHAPES
        if Structure.POSITIVE in other:
            found |= one & DEFINITE
    return found | sign


@matmul.declares(STRUCTURE)
def _matmul_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a product: triangular if both factors are; `a @ a.T` is semidefinite."""
    x, y = eqn.inputs
    found = facts[0] & facts[1] & DIAGONAL
    if transposed(x, definition) is y or transposed(y, definition) is x:
        return found | PSD
    return found


@select.declares(STRUCTURE)
def _select_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a selected triangle, or of a vector placed on the diagonal."""
    found = facts[1] & facts[2]
    if not _is_uniform(eqn.inputs[0], definition):
        # A condition need not be symmetric.
        found &= DIAGONAL | POSITIVE
    if lower_part_of(eqn.output, definition) is not None:
        found |= Structure.LOWER
    if upper_part_of(eqn.output, definition) is not None:
        found |= Structure.UPPER
    if _is_full(eqn.inputs[2], definition, 0) and _is_diagonal_mask(eqn.inputs[0], definition):
        found |= DIAGONAL | (DEFINITE if Structure.POSITIVE in facts[1] else Structure.SYMMETRIC)
    return found
