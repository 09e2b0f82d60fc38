"""What NumPy allocates for itself while a planned kernel runs, beside the arena.

The rules say what NumPy 2.3 and later do, found with tracemalloc: which functions copy an operand
that does not lie in memory as they want it, convert indices, or compute in a wider dtype and
convert the result. Everything else writes to where it is told and needs no memory that counts.
Before version 2.3, operands of ufuncs that are not in one piece may take one or two buffers of
8,192 elements more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from primgraph.codegen.plan.layout import Layout, Loop, joined, loops
from primgraph.codegen.plan.schedule import Step, is_dot
from primgraph.codegen.run.support import CHUNK
from primgraph.ir.types import FLOAT16, FLOAT64, INT64, DType, TensorType

# NumPy converts so many elements at a time where an operand has another dtype.
_BUFFERED = 8192
_WIDE = 4
_POSITION = INT64.itemsize

# What an element of a chunk takes in `erf` and `erfc`: 41 to 84 bytes, depending on its value.
_ERF_BYTES = 52


class Operation(NamedTuple):
    """One step as it is written, and how its operands and its result lie in memory.

    Operands at the places in `fixed` are read-only.
    """

    step: Step
    operands: Sequence[Layout]
    result: Layout
    fixed: frozenset[int] = frozenset()


Rule: TypeAlias = Callable[[Operation], int]


def needs_none(step: Step, plain: bool) -> bool:
    """Whether NumPy needs no memory of its own for `step`; asked first, as most need none.

    `plain` tells that all arrays have the shape of the result, or none, and no gaps.
    """
    name = step.op.name
    return name not in _RULES and (plain or name in _ASSIGNED or not step.op.elementwise)


def scratch(operation: Operation) -> int:
    """The most bytes that NumPy allocates at once for a step that `needs_none` is not true of."""
    return _RULES.get(operation.step.op.name, _buffers)(operation)


def object_bytes(ndim: int) -> int:
    """What an array takes up without its elements: the object, its shape and its strides."""
    return _ARRAY + 16 * max(ndim, 1)


_ARRAY: int = np.ndarray.__basicsize__


def _size(layout: Layout) -> int:
    return prod(layout.shape)


def _copied(layout: Layout, type: TensorType, fits: bool) -> int:
    return 0 if fits else _size(layout) * type.dtype.itemsize


def _buffers(operation: Operation) -> int:
    """What the iterator of a ufunc copies."""
    step, shape = operation.step, operation.result.shape
    arrays = [*(x.expanded(shape) for x in operation.operands), operation.result]
    return _copied_by_iterator(arrays, [t.dtype for t in (*step.operands, *step.results)])


def _copied_by_iterator(arrays: Sequence[Layout], dtypes: Sequence[DType]) -> int:
    """What NumPy's iterator copies, a buffer at a time, of arrays that do not lie in one piece.

    It goes through the axes in the order of memory, joins those that no array has a gap between,
    and where several are left copies so many rows of the innermost as fit into a buffer. Rows
    that fill one alone are worked on where they are.
    """
    nested, size = loops(arrays), _size(arrays[0])
    if len(nested) < 2 or not size or 2 * nested[0].extent > _BUFFERED:
        return 0
    inner = nested[0].extent
    count = min(size, _BUFFERED // inner * inner)
    total = 0
    for k, dtype in enumerate(dtypes):
        if len(joined([Loop(n, (strides[k],)) for n, strides in nested])) > 1:
            total += count * dtype.itemsize
    return total


def _product(operation: Operation) -> int:
    """`dot` copies matrices that do not lie in one piece; `matmul` copies none.

    Halves are multiplied as floats of twice the size.
    """
    step, result = operation.step, operation.step.results[0]
    if result.dtype == FLOAT16:
        return _WIDE * (sum(map(_size, operation.operands)) + result.size)
    if not is_dot(step):
        return 0
    pairs = zip(operation.operands, step.operands, strict=True)
    return sum(_copied(x, t, x.is_dense) for x, t in pairs)


def _sum(operation: Operation) -> int:
    """Halves are added up as floats of twice the size, a buffer of them at a time."""
    result = operation.step.results[0]
    if result.dtype != FLOAT16:
        return 0
    return _WIDE * (result.size + min(_size(operation.operands[0]), _BUFFERED))


def _cumsum(operation: Operation) -> int:
    """Halves are copied as floats of twice the size, and so is the result."""
    result = operation.step.results[0]
    return 2 * _WIDE * result.size if result.dtype == FLOAT16 else 0


def _position(operation: Operation) -> int:
    """The operand is copied unless the axis is the last one of elements in row-major order."""
    step, x = operation.step, operation.operands[0]
    moved = x.with_last(step.params["axis"])
    return _copied(x, step.operands[0], moved.is_row_major)


def _indices(operation: Operation, first: int) -> int:
    """Buffers in which index arrays of other dtypes, or with gaps, become positions."""
    arrays, types = operation.operands[first:], operation.step.operands[first:]
    others = [t for t in types if t.dtype != INT64]
    converted = sum(_POSITION * min(t.size, _BUFFERED) for t in others)
    same = [x for x, t in zip(arrays, types, strict=True) if t.dtype == INT64]
    return converted + (_copied_by_iterator(same, [INT64] * len(same)) if same else 0)


def _gather(operation: Operation) -> int:
    """The result is made apart, so that an index out of range leaves the buffer as it was."""
    step, x = operation.step, operation.operands[0]
    made = step.results[0].nbytes
    if len(step.operands) > 2 or step.operands[1].dtype == np.dtype(np.uint64):
        return made + _indices(operation, 1)
    index, type = operation.operands[1], step.operands[1]
    # NumPy takes indices that it could write to, and copies others.
    fits = type.dtype == INT64 and index.is_row_major and 1 not in operation.fixed
    converted = 0 if fits else _size(index) * _POSITION
    return made + converted + _copied(x, step.operands[0], x.is_row_major)


def _scatter(operation: Operation) -> int:
    return _indices(operation, 2)


def _power(operation: Operation) -> int:
    """Powers of integers come from an operator, and are copied."""
    step, x = operation.step, operation.operands[0]
    small = step.params["n"] in (-1, 0, 1, 2)
    return _buffers(operation) + _copied(x, step.operands[0], small or step.results[0].is_float)


def _erf(operation: Operation) -> int:
    """Chunks of the operand are worked on one after the other, in double precision.

    What a chunk takes depends on its elements; this is the most.
    """
    x, result = operation.operands[0], operation.step.results[0]
    made = _copied(x, result, x.shape == result.shape)
    chunk = _ERF_BYTES * min(_size(x), CHUNK)
    return made + _copied(x, result, x.is_even) + chunk


def _uniform(operation: Operation) -> int:
    """All draws, those of one key in double precision, and the keys if they have gaps."""
    return _drawn(operation, FLOAT64.itemsize)


def _bernoulli(operation: Operation) -> int:
    return _drawn(operation, FLOAT64.itemsize + 1)


def _drawn(operation: Operation, itemsize: int) -> int:
    step, keys = operation.step, operation.operands[0]
    once: int = prod(step.params["shape"])
    draws = step.results[0].nbytes + itemsize * once
    return draws + _copied(keys, step.operands[0], keys.is_even)


# Elementwise steps that are assignments, which need no buffers.
_ASSIGNED = frozenset({"cast", "select", "stop_gradient", "unless_nan"})

_RULES: dict[str, Rule] = {
    "matmul": _product,
    "reduce_sum": _sum,
    "reduce_prod": _sum,
    "cumsum": _cumsum,
    "argmax": _position,
    "argmin": _position,
    "gather": _gather,
    "scatter_add": _scatter,
    "integer_pow": _power,
    "erf": _erf,
    "erfc": _erf,
    "random_uniform": _uniform,
    "random_bernoulli": _bernoulli,
}
