"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.facts.choices import MOVES_BACK
from primgraph.ir.facts.matrices import DIAGONAL, PSD, STRUCTURE, Definition, Structure
from primgraph.ir.facts.ranges import RANGE, products
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap, tied_map
from primgraph.ir.primitive import Fact, Linear, Op, Primitive, Types, primitive
from primgraph.ir.types import TensorType
from primgraph.primitives.reductions import accumulator
from primgraph.primitives.shapes import permute, reshape

# Whether the result is the matrix product of both operands.
CONTRACTS: Fact[bool] = Fact("contracts", False)


def _matmul(x: Any, y: Any) -> Any:
    wide = accumulator(x.dtype)
    return np.matmul(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _matmul_flops(x: TensorType, y: TensorType) -> int:
    """Return the operation count: a multiplication and an addition per m, n and k."""
    return 2 * x.size * y.shape[-1]


@primitive(impl=_matmul, linear="each", flops=_matmul_flops)
def matmul(x: TensorType, y: TensorType) -> TensorType:
    """Return the products of the matrices in the last two axes; all leading axes are equal."""
    fits = x.ndim == y.ndim >= 2 and x.shape[:-2] == y.shape[:-2] and x.shape[-1] == y.shape[-2]
    if not fits:
        raise ShapeError(f"matmul cannot multiply {x} by {y}")
    if x.dtype != y.dtype or x.dtype.kind not in "iufc":
        raise DTypeError(f"matmul takes equal numeric dtypes, not {x} and {y}")
    return x.with_shape((*x.shape[:-1], y.shape[-1]))


matmul.declare(MOVES_BACK, True)
matmul.declare(RANGE, products)
matmul.declare(CONTRACTS, True)


def transpose_source(value: Value, definition: Definition) -> Value | None:
    """Return the value that `value` is the matrix transpose of, or None."""
    eqn = definition(value)
    if eqn is None or eqn.op is not permute:
        return None
    axes = eqn.kwargs["axes"]
    last = len(axes) - 1
    swaps = last > 0 and tuple(axes) == (*range(last - 1), last, last - 1)
    return eqn.inputs[0] if swaps else None


@matmul.declares(STRUCTURE)
def _matmul_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a product: triangular if both factors are; `a @ a.T` is semidefinite."""
    x, y = eqn.inputs
    found = facts[0] & facts[1] & DIAGONAL
    if transpose_source(x, definition) is y or transpose_source(y, definition) is x:
        return found | PSD
    return found


@matmul.index_map
def _matmul_map(k: int, i: int, operands: Types, results: Types) -> IndexMap:
    """Rows of the left factor are those of the product, columns of the right one its columns.

    The last variable of the maps of both counts the products that are added up.
    """
    last = operands[i].ndim - 1
    ties = [*range(last - 1), None, last] if i else [*range(last), None]
    return tied_map(operands[i].shape, results[0].shape, ties)


def declare_matrixwise(*ops: Op) -> None:
    """Declare ops that compute each matrix of a stack on its own."""

    def rule(k: int, i: int, operands: Types, results: Types, **params: Any) -> IndexMap:
        shape, result = operands[i].shape, results[k].shape
        return tied_map(shape, result, [*range(len(shape) - 2), None, None], exact=False)

    for op in ops:
        assert isinstance(op, Primitive)
        op.index_map(rule)


def swap_last(x: Value) -> Value:
    """Return `x` with its last two axes swapped."""
    lead = range(len(x.shape) - 2)
    return permute(x, axes=(*lead, len(x.shape) - 1, len(x.shape) - 2))


@matmul.transpose
def _matmul_transpose(ct: Value, x: Value | Linear, y: Value | Linear) -> tuple[Any, Any]:
    """Return the cotangent of the linear factor of `x @ y`, which `Linear` marks."""
    if isinstance(x, Linear):
        return matmul(ct, swap_last(y)), None  # type: ignore[arg-type]
    return None, matmul(swap_last(x), ct)


def _permute_axes(x: Value, axes: tuple[int, ...]) -> Value:
    return x if list(axes) == sorted(axes) else permute(x, axes=axes)


@matmul.batch
def _matmul_batch(batched: tuple[bool, ...], x: Value, y: Value) -> Value:
    """Fold the samples into one larger product, so that a factor without batch axis is not
    copied."""
    last = len(x.shape if batched[0] else y.shape) - 2
    lead = tuple(range(1, last))
    if batched == (True, False):
        size, *shape, rows, inner = x.shape
        tall = _permute_axes(x, (*lead, 0, last, last + 1))
        product = matmul(reshape(tall, shape=(*shape, size * rows, inner)), y)
        parted = reshape(product, shape=(*shape, size, rows, y.shape[-1]))
        return _permute_axes(parted, (last - 1, *(a - 1 for a in lead), last, last + 1))
    if batched == (False, True):
        size, *shape, inner, columns = y.shape
        wide = permute(y, axes=(*lead, last, 0, last + 1))
        product = matmul(x, reshape(wide, shape=(*shape, inner, size * columns)))
        parted = reshape(product, shape=(*shape, x.shape[-2], size, columns))
        return permute(parted, axes=(last, *(a - 1 for a in lead), last - 1, last + 1))
    return matmul(x, y)
