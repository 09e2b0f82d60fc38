"""What NumPy allocates for itself while a planned kernel runs, beside the arena.

The rules, here and on the cards, say what NumPy 2.3 and later do, found with tracemalloc: which
functions copy an operand that does not lie in memory as they want it, convert indices, or compute
in a wider dtype and convert the result. Everything else writes to where it is told and needs no
memory that counts.
Before version 2.3, operands of ufuncs that are not in one piece may take one or two buffers of
8,192 elements more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from primgraph.codegen.plan.layout import Layout, Loop, joined, loops
from primgraph.codegen.plan.schedule import Step
from primgraph.ir.types import DType, TensorType

# NumPy converts so many elements at a time where an operand has another dtype.
BUFFERED = 8192


class Operation(NamedTuple):
    """One step as it is written, and how its operands and its result lie in memory.

    Operands at the places in `fixed` are read-only.
    """

    step: Step
    operands: Sequence[Layout]
    result: Layout
    fixed: frozenset[int] = frozenset()


Scratch: TypeAlias = Callable[[Operation], int]


def object_bytes(ndim: int) -> int:
    """What an array takes up without its elements: the object, its shape and its strides."""
    return _ARRAY + 16 * max(ndim, 1)


_ARRAY: int = np.ndarray.__basicsize__


def size_of(layout: Layout) -> int:
    """How many elements an array has."""
    return prod(layout.shape)


def copied(layout: Layout, type: TensorType, fits: bool) -> int:
    """What a copy of an array takes that is made unless it `fits`."""
    return 0 if fits else size_of(layout) * type.dtype.itemsize


def buffers(operation: Operation) -> int:
    """What the iterator of a ufunc copies, where arrays have different shapes, or gaps."""
    step, shape = operation.step, operation.result.shape
    arrays = [*(x.expanded(shape) for x in operation.operands), operation.result]
    return copied_by_iterator(arrays, [t.dtype for t in (*step.operands, *step.results)])


def copied_by_iterator(arrays: Sequence[Layout], dtypes: Sequence[DType]) -> int:
    """What NumPy's iterator copies, a buffer at a time, of arrays that do not lie in one piece.

    It goes through the axes in the order of memory, joins those that no array has a gap between,
    and where several are left copies so many rows of the innermost as fit into a buffer. Rows
    that fill one alone are worked on where they are.
    """
    nested, size = loops(arrays), size_of(arrays[0])
    if len(nested) < 2 or not size or 2 * nested[0].extent > BUFFERED:
        return 0
    inner = nested[0].extent
    count = min(size, BUFFERED // inner * inner)
    total = 0
    for k, dtype in enumerate(dtypes):
        if len(joined([Loop(n, (strides[k],)) for n, strides in nested])) > 1:
            total += count * dtype.itemsize
    return total
