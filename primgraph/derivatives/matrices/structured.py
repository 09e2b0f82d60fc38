"""Sparse Jacobians and Hessians as a whole, without a pass for each row."""

from __future__ import annotations

import numpy as np

from primgraph.derivatives.matrices.layout import Passes
from primgraph.derivatives.matrices.lazy_jacobian import Slopes
from primgraph.derivatives.matrices.sparse import Plan
from primgraph.derivatives.matrices.sparsity_patterns import pattern_of
from primgraph.ir.primitive import recording
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import constant_op, filled
from primgraph.primitives.indexing import scatter_add
from primgraph.primitives.shapes import reshape
from primgraph.sparsity.coloring import Coloring, coloring, symmetric_coloring
from primgraph.transforms.jacobians.jacobian_entries import may_be_written_out, written_out
from primgraph.transforms.optimize.clean_up import clean_up

# Smaller matrices are not worth finding a pattern. Larger ones are if this many times fewer
# products determine all elements, and if at most this fraction of the matrix is nonzero.
_SMALL = 24
_FEWER = 3
_SHARE = 6
# Limit of listed elements in the pattern search, and the number allowed for any matrix.
_LISTED = 2**14


def whole_of(slopes: Slopes, wanted: int) -> tuple[Variable, Passes] | None:
    """Return the whole matrix, if that takes far less than the rows or columns `wanted`.

    Elements with explicit formulas, diagonal by diagonal, are computed directly. Otherwise the
    columns, or rows, of one colour are added in one product. Elements outside of the pattern are
    zero. None if there is no gain.
    """
    if slopes.outputs.lead() or slopes.outputs.names or slopes.inputs.names:
        return None
    graph, moved = slopes.path.graph, slopes.path.moved
    if not moved or not any(slopes.path.reached):
        return None
    if may_be_written_out(graph, moved) and slopes.goes_forward:
        found = written_out(clean_up(slopes.tangents()), len(slopes.free))
        if found is not None:
            return slopes.recorded(found[0]), Passes(0, found[1])
    return _compressed(slopes, wanted) if wanted >= _SMALL else None


def _compressed(slopes: Slopes, wanted: int) -> tuple[Variable, Passes] | None:
    shape = slopes.outputs.offsets()[-1], slopes.inputs.offsets()[-1]
    pattern = pattern_of(slopes, max(shape[0] * shape[1] // _SHARE, _LISTED))
    if pattern is None or pattern.nnz * _SHARE > shape[0] * shape[1]:
        return None
    width = int(np.diff(pattern.indptr).max(initial=0))
    if slopes.symmetric and width * _FEWER > 2 * wanted:
        return None
    if not slopes.symmetric and min(width, _tallest(pattern.indices)) * _FEWER > wanted:
        return None
    if not slopes.goes_forward:
        found = coloring(pattern, "rows")
    elif slopes.symmetric:
        found = symmetric_coloring(pattern, "star")
    else:
        found = coloring(pattern, "columns" if slopes.mode == "forward" else "auto")
    if found.count * _FEWER > wanted:
        return None
    values = Plan(slopes, found, True, True).values()
    with recording(slopes.builder):
        places, params = constant_op(pattern.rows * shape[1] + pattern.cols)
        flat = filled(0, TensorType((shape[0] * shape[1],), slopes.dtype))
        flat = scatter_add(flat, values.value, places(**params), axis=0)
        whole = reshape(flat, shape=shape)
    return Variable(slopes.builder, whole), _passes(found)


def _tallest(columns: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> int:
    """Return the largest number of elements in a column."""
    return int(np.bincount(columns).max(initial=0))


def _passes(found: Coloring) -> Passes:
    return Passes(found.row_count, found.column_count)
