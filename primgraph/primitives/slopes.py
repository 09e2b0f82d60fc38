"""Functions whose slope is better known than what they are computed from tells.

An operator computes its value as it always did, and records that value as one of these: they give
their first operand as it is, and have the derivative of the function itself, written from the
result, in the place of that of all that was computed on the way.
"""

from __future__ import annotations

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import primitive
from primgraph.ir.types import TensorType
from primgraph.primitives.reductions import Axes, reduce_sum
from primgraph.primitives.shapes import broadcast, with_batch_axis


@primitive(impl=lambda z, x, *, axes: np.array(z), formal=True, own_slope=True, flops=0)
def as_softmax_of(z: TensorType, x: TensorType, *, axes: Axes) -> TensorType:
    """`z`, which is the softmax of `x` over `axes`, and has the derivative of that."""
    if not x.is_float:
        raise DTypeError(f"as_softmax_of takes floats, not {x}")
    if z != x:
        raise ShapeError(f"as_softmax_of {x} takes values of that type, not {z}")
    return z


@as_softmax_of.jvp(0)
def _as_softmax_of_jvp_of_value(s: Value, z: Value, x: Value, d: Value, *, axes: Axes) -> None:
    return None


@as_softmax_of.jvp(1)
def _as_softmax_of_jvp(s: Value, z: Value, x: Value, d: Value, *, axes: Axes) -> Value:
    """Written so that its transpose is `s * (ct - sum(s * ct))`."""
    part = d * s
    whole = broadcast(reduce_sum(part, axes=axes), shape=s.shape, new_axes=axes)
    result: Value = part - s * whole
    return result


@as_softmax_of.batch
def _as_softmax_of_batch(batched: tuple[bool, ...], z: Value, x: Value, *, axes: Axes) -> Value:
    z, x = with_batch_axis(batched, (z, x))
    result: Value = as_softmax_of(z, x, axes=tuple(a + 1 for a in axes))
    return result
