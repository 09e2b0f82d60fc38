"""Rules of the final `clean_up` for a `select` by a constant between an array and zeros.

Derivatives by single elements have them: seeds are zero elsewhere, and these zeros are structural.
Further derivatives need the constant, which tells where zeros meet no infinite factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.logic import select
from primgraph.primitives.shapes import pad, slice_
from primgraph.transforms.rewrite.rule import Seen, is_zero
from primgraph.transforms.rewrite.sink_moves import LAST

# Maximum number of operations that are computed for a part of the elements only.
_DEEPEST = 6


@LAST.rule(select)
def _select_of_range(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Pad the part of an array that a constant selects along one axis; it is zero elsewhere."""
    mask = seen.array(inputs[0])
    if mask is None or not is_zero(seen.scalar(inputs[2]), 1.0):
        return None
    for axis in range(mask.ndim):
        others = tuple(a for a in range(mask.ndim) if a != axis)
        along = np.any(mask, axis=others)
        where = np.flatnonzero(along)
        if not where.size or not np.array_equal(np.all(mask, axis=others), along):
            continue
        start, stop = int(where[0]), int(where[-1]) + 1
        if stop - start != where.size or where.size == along.size:
            continue
        part = _part(seen, inputs[1], axis, start, stop, _DEEPEST)
        low, high = ([0] * mask.ndim for _ in range(2))
        low[axis], high[axis] = start, along.size - stop
        result: Value = pad(part, low=tuple(low), high=tuple(high))
        return result
    return None


def _part(seen: Seen, x: Value, axis: int, start: int, stop: int, depth: int) -> Value:
    """Return the elements from `start` to `stop`; elementwise functions are computed for these."""
    eqn = seen.builder.definition(x)
    if depth and eqn is not None and _is_elementwise(eqn) and seen.single(x):
        parts = [_part(seen, v, axis, start, stop, depth - 1) for v in eqn.inputs]
        op: Any = eqn.op
        found: Value = op(*parts, **eqn.kwargs)
        return found
    starts = tuple(start if a == axis else 0 for a in range(x.type.ndim))
    sizes = tuple(stop - start if a == axis else n for a, n in enumerate(x.shape))
    result = slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.type.ndim)
    return result


def _is_elementwise(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.elementwise and len(eqn.outputs) == 1
