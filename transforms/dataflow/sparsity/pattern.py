"""The sparsity pattern of a Jacobian."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from primgraph.ir.graph import Graph, Value
from primgraph.sparsity import affine
from primgraph.sparsity.rows import Rows, list_columns, size_of
from primgraph.transforms.dataflow.sparsity.rules import Sparsity
from primgraph.transforms.dataflow.sparsity.walk import Reach, is_empty

# Default limit of the number of listed index pairs.
MOST_PAIRS = 2**26


def dependencies(
    graph: Graph, wrt: Sequence[Value], most: int = MOST_PAIRS
) -> tuple[list[Reach | None], int]:
    """Return the dependencies of each output of `graph` on elements of `wrt`, and their number.

    `graph` consists of primitives, and elements of `wrt` are numbered consecutively. All sizes of
    `wrt` and of outputs are known. If more than `most` index pairs would be listed at once, or many
    more in total, the pattern becomes dense.
    """
    width = sum(v.type.size for v in wrt)
    offsets = accumulate((v.type.size for v in wrt), initial=0)
    starts: dict[Value, Reach] = {
        v: affine.diagonal(v.shape, offset) for v, offset in zip(wrt, offsets, strict=False)
    }
    starts = {v: r for v, r in starts.items() if not is_empty(r)}
    found = Sparsity(width, most).run(graph, starts).facts
    return [found.get(v) for v in graph.outputs], width


def pattern_rows(graph: Graph, wrt: Sequence[Value], most: int = MOST_PAIRS) -> Rows | None:
    """Return the columns of each element of all outputs, concatenated; see `dependencies`.

    Return None if there are more than `most` pairs.
    """
    found, width = dependencies(graph, wrt, most)
    total = 0
    for reach in found:
        total += 0 if reach is None else _count(reach)
    if total > most:
        return None
    starts, columns = [np.zeros(1, np.int64)], []
    end = 0
    for value, reach in zip(graph.outputs, found, strict=True):
        if reach is None:
            starts.append(np.full(value.type.size, end, np.int64))
            continue
        rows = reach if isinstance(reach, Rows) else list_columns(reach, value.shape, width)
        starts.append(rows.starts[1:] + end)
        columns.append(rows.columns)
        end += len(rows.columns)
    whole = np.concatenate(columns) if columns else np.zeros(0, np.int64)
    return Rows(np.concatenate(starts), whole)


def _count(reach: Reach) -> int:
    return len(reach.columns) if isinstance(reach, Rows) else size_of(reach)
