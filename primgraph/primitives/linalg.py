"""Products of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Linear, primitive
from primgraph.ir.types import TensorType
from primgraph.primitives.reductions import accumulator
from primgraph.primitives.shapes import permute, reshape, with_batch_axis


def _matmul(x: Any, y: Any) -> Any:
    wide = accumulator(x.dtype)
    return np.matmul(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _matmul_flops(x: TensorType, y: TensorType) -> int:
    """A product and an addition for each of m n k elements, in each matrix of the batch."""
    return 2 * x.size * y.shape[-1]


@primitive(impl=_matmul, linear="each", flops=_matmul_flops)
def matmul(x: TensorType, y: TensorType) -> TensorType:
    """Products of the matrices in the last two axes; all axes before them are equal."""
    fits = x.ndim == y.ndim >= 2 and x.shape[:-2] == y.shape[:-2] and x.shape[-1] == y.shape[-2]
    if not fits:
        raise ShapeError(f"matmul cannot multiply {x} by {y}")
    if x.dtype != y.dtype or x.dtype.kind not in "iuf":
        raise DTypeError(f"matmul takes equal numeric dtypes, not {x} and {y}")
    return x.with_shape((*x.shape[:-1], y.shape[-1]))


def swap_last(x: Value) -> Value:
    """`x` with its last two axes exchanged."""
    lead = range(len(x.shape) - 2)
    result: Value = permute(x, axes=(*lead, len(x.shape) - 1, len(x.shape) - 2))
    return result


@matmul.transpose
def _matmul_transpose(ct: Value, x: Value | Linear, y: Value | Linear) -> tuple[Any, Any]:
    """`x @ y` is linear in one factor at a time; `Linear` marks which."""
    if isinstance(x, Linear):
        return matmul(ct, swap_last(y)), None  # type: ignore[arg-type]
    return None, matmul(swap_last(x), ct)


@matmul.batch
def _matmul_batch(batched: tuple[bool, ...], x: Value, y: Value) -> Any:
    """One factor without the batch axis makes one larger product instead of many."""
    if batched == (True, False) and len(y.shape) == 2:
        size, rows, inner = x.shape
        product = matmul(reshape(x, shape=(size * rows, inner)), y)
        return reshape(product, shape=(size, rows, y.shape[-1]))
    if batched == (False, True) and len(x.shape) == 2:
        size, inner, columns = y.shape
        wide = reshape(permute(y, axes=(1, 0, 2)), shape=(inner, math.prod((size, columns))))
        product = reshape(matmul(x, wide), shape=(x.shape[0], size, columns))
        return permute(product, axes=(1, 0, 2))
    return matmul(*with_batch_axis(batched, (x, y)))
