"""Assignment of elements at computed positions, with NumPy's semantics."""

from __future__ import annotations

import math
from typing import Any

from primgraph.errors import ArgumentError
from primgraph.ir.dims import Dim
from primgraph.operators.handle import Handle
from primgraph.operators.index.dynamic_slices import has_variable_bounds
from primgraph.operators.numpy_arguments import called


def is_computed(index: Any) -> bool:
    """Return whether an index contains integer variables, also as bounds of slices."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(
        has_variable_bounds(e) or (isinstance(e, Handle) and e.dtype.kind in "iu") for e in entries
    )


def placed(x: Any, index: Any, value: Any) -> Any:
    """Return `x` after `x[index] = value`, with integer variables in the index.

    If several elements are assigned to one position, the last one counts: positions are sorted, and
    each element of `x` is searched among them.
    """
    size = math.prod(x.shape)
    if isinstance(size, Dim):
        raise ArgumentError(
            f"elements of {x.type} cannot be set at computed places, as its size is not known",
            hint="to add at computed positions, use pg.scatter_add",
        )
    elements = called("arange", size)
    places = called("getitem", called("reshape", elements, x.shape), index)
    count = math.prod(places.shape)
    if count == 0 or size == 0:
        return x
    flat = called("reshape", places, (count,))
    values = called(
        "reshape", called("broadcast_to", called("asarray", value), places.shape), (-1,)
    )
    order = called("argsort", flat)
    ordered = called("take", flat, order)
    last = called("searchsorted", ordered, elements, side="right") - 1
    at = called("maximum", last, 0)
    is_there = called(
        "logical_and", last >= 0, called("equal", called("take", ordered, at), elements)
    )
    chosen = called("take", values, called("take", order, at))
    found = called("where", is_there, chosen, called("reshape", x, (size,)))
    return called("astype", called("reshape", found, x.shape), x.dtype)


def along(arr: Any, indices: Any, values: Any, axis: int) -> Any:
    """Return `arr` after `np.put_along_axis`, at integer variables along an axis."""
    shape, number = indices.shape, axis % arr.ndim
    grid = []
    for i, extent in enumerate(shape):
        counted = called("arange", arr.shape[i])
        ones = tuple(-1 if i == j else 1 for j in range(len(shape)))
        fits = counted if extent == arr.shape[i] else called("zeros", (1,), "int64")
        grid.append(indices if i == number else called("reshape", fits, ones))
    return placed(arr, tuple(grid), values)


def put(array: Any, places: Any, values: Any) -> Any:
    """Return `array` after `np.put`, at integer variables that are flat indices.

    Values are repeated if there are fewer than positions.
    """
    count = math.prod(places.shape)
    flat = called("resize", called("asarray", values), (count,))
    row = placed(called("reshape", array, (-1,)), called("reshape", places, (count,)), flat)
    return called("reshape", row, array.shape)
