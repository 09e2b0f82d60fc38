"""Selection and replacement by indices and masks, with Paddle's names and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_ROWS = """
gather(x, index, axis=None) = pg.take(x, vector(index), axis_in(axis, 0))
Take the slices at positions `index` along `axis`. | [5.0, 6.0, 7.0], [2, 0] -> [7.0, 5.0]
index_select(x, index, axis=0) = pg.take(x, index, axis)
Take the slices at positions `index` along `axis`. | [5.0, 6.0, 7.0], [2, 0] -> [7.0, 5.0]
gather_nd(x, index) = x[coordinates(index)]
Take the elements or slices at the indices along the last axis. \
| [[1, 2], [3, 4]], [[0, 1], [1, 0]] -> [2, 3]
index_sample(x, index) = pg.take_along_axis(x, index, 1)
Take elements of each row. | [[1, 2], [3, 4]], [[0], [1]] -> [[1], [4]]
take(x, index, mode="raise") = taken(x, index, mode)
Take elements of the flattened tensor. | [[1, 2], [3, 4]], [0, -1] -> [1, 4]
take_along_axis|take_along_dim(arr, indices, axis, broadcast=True) = \
along(arr, indices, axis, broadcast)
Take one element along `axis` for each index. | [[1, 2], [3, 4]], [[1], [0]], 1 -> [[2], [3]]
put_along_axis(arr, indices, values, axis, reduce="assign", include_self=True, broadcast=True) = \
put(arr, indices, values, axis, reduce, include_self, broadcast)
Replace one element along `axis` for each index, or add to it. \
| [[1, 2], [3, 4]], [[1], [0]], 9, 1 -> [[1, 9], [9, 4]]
scatter_add(input, dim, index, src) = put(input, index, src, dim, "add", True, False)
Add elements at indices along an axis. | [1.0, 2.0], 0, [1, 1], [5.0, 6.0] -> [1.0, 13.0]
scatter_reduce(input, dim, index, src, reduce, *, include_self=True) = \
put(input, index, src, dim, {"sum": "add", "prod": "mul"}.get(reduce, reduce), include_self, False)
Combine elements at indices along an axis. | [1.0, 2.0], 0, [1, 1], [5.0, 6.0], "sum" -> [1.0, 13.0]
scatter(x, index, updates, overwrite=True) = scattered(x, index, updates, overwrite)
Replace slices along the first axis; without `overwrite` by the sum of updates. \
| [1.0, 1.0, 1.0], [1, 0], [2.0, 3.0] -> [3.0, 2.0, 1.0]
scatter_nd(index, updates, shape) = \
added_at(pg.zeros(tuple(shape), updates.dtype), coordinates(index), updates)
Add updates to zeros at the indices along the last axis. \
| [[1], [1]], [2.0, 3.0], (3,) -> [0.0, 5.0, 0.0]
scatter_nd_add(x, index, updates) = added_at(x, coordinates(index), updates)
Add updates at the indices along the last axis. | [1.0, 1.0], [[1], [1]], [2.0, 3.0] -> [1.0, 6.0]
index_add(x, index, axis, value, alpha=1) = \
pg.scatter_add(x, index, value if alpha == 1 else pg.multiply(value, alpha), axis)
Add slices at positions along `axis`. | [1.0, 1.0], [0, 0], 0, [2.0, 3.0] -> [6.0, 1.0]
index_fill(x, index, axis, value) = filled(x, index, axis, value)
Replace slices at positions along `axis` by a number. | [1.0, 1.0], [0], 0, 5.0 -> [5.0, 1.0]
index_put(x, indices, value, accumulate=False) = indexed(x, indices, value, accumulate)
Replace elements at these indices, or add to them. | [1.0, 1.0], ([0],), [5.0] -> [5.0, 1.0]
masked_select(x, mask) = x[pg.broadcast_to(mask, tuple(x.shape))]
Take the elements where the mask is true. | [1.0, 2.0], [True, False] -> [1.0]
masked_scatter(x, mask, value) = put_where(x, mask, value)
Replace the elements where the mask is true by those of `value`, in their order. \
| [1.0, 2.0], [True, False], [5.0] -> [5.0, 2.0]
multiplex(inputs, index) = multiplexed(inputs, index)
Take each row from the tensor that `index` names. \
| ([[1], [2]], [[3], [4]]), [[1], [0]] -> [[3], [2]]
select_scatter(x, values, axis, index) = with_part(x, values, axis, index)
Replace one slice along an axis. | [[1, 2], [3, 4]], [8, 9], 0, 1 -> [[1, 2], [8, 9]]
slice_scatter(x, value, axes, starts, ends, strides) = \
with_slices(x, value, axes, starts, ends, strides)
Replace slices along axes. | [1, 2, 3], [8, 9], (0,), (0,), (2,), (1,) -> [8, 9, 3]
diagonal_scatter(x, y, offset=0, axis1=0, axis2=1) = with_diagonal(x, y, offset, axis1, axis2)
Replace the diagonal. | [[1, 2], [3, 4]], [8, 9] -> [[8, 2], [3, 9]]
"""


def axis_in(axis: Any, default: int) -> int:
    """Return an axis that may be a tensor."""
    return default if axis is None else int(axis)


def vector(index: Any) -> Any:
    """Return indices of shape (n, 1) as a vector."""
    shape = index.shape if isinstance(index, Handle) else np.shape(index)
    return pg.reshape(index, (-1,)) if len(shape) == 2 and shape[1] == 1 else index


def coordinates(index: Any) -> tuple[Any, ...]:
    """Return indices along the last axis as an index of each axis."""
    return tuple(index[..., i] for i in range(index.shape[-1]))


def taken(x: Any, index: Any, mode: str) -> Any:
    """Take elements of the flattened tensor; indices outside are errors, wrapped or clipped."""
    flat = pg.reshape(x, (-1,))
    size = flat.shape[0]
    if mode == "wrap":
        index = pg.remainder(index, size)
    elif mode == "clip":
        index = pg.clip(index, 0, size - 1)
    elif mode != "raise":
        raise ArgumentError(f"take has no mode {mode!r:.40}: it is 'raise', 'wrap' or 'clip'")
    return pg.take(flat, index)


def along(x: Any, indices: Any, axis: int, broadcast: bool) -> Any:
    """Take elements along an axis; other axes are broadcast, or cut to those of the indices."""
    place = as_axis(axis, len(x.shape))
    if len(indices.shape) != len(x.shape):
        raise ShapeError(f"take_along_axis of {len(x.shape)} axes: indices have as many")
    if not broadcast:
        known = [slice(n) for n in indices.shape]
        known[place] = slice(None)
        x = x[tuple(known)]
    return pg.take_along_axis(x, indices, place)


def put(
    x: Any, indices: Any, values: Any, axis: int, reduce: str, include_self: bool, broadcast: bool
) -> Any:
    """Replace or combine elements along an axis."""
    place, shape = as_axis(axis, len(x.shape)), list(x.shape)
    if broadcast:
        shape[place] = indices.shape[place]
        indices = pg.broadcast_to(indices, tuple(shape))
    grid = list(np.indices(tuple(indices.shape), sparse=True))
    grid[place] = pg.where(pg.less(indices, 0), pg.add(indices, x.shape[place]), indices)
    steps = np.cumprod([1, *list(x.shape)[:0:-1]])[::-1]
    flat: Any = 0
    for number, step in zip(grid, steps, strict=True):
        flat = pg.add(flat, pg.multiply(number, int(step)))
    given = values if isinstance(values, Handle) else np.asarray(values)
    whole = tuple(indices.shape)
    if isinstance(values, Handle) and not broadcast and tuple(values.shape) != whole:
        given = values[tuple(slice(n) for n in whole)]
    updates = pg.astype(pg.broadcast_to(given, whole), x.dtype)
    found = combined(
        pg.reshape(x, (-1,)), pg.reshape(flat, (-1,)), pg.reshape(updates, (-1,)), reduce,
        include_self,
    )  # fmt: skip
    return pg.reshape(found, tuple(x.shape))


# The neutral element of each combination.
_NEUTRAL = {"mul": 1, "multiply": 1, "prod": 1, "amin": np.inf, "amax": -np.inf}


def combined(x: Any, places: Any, updates: Any, reduce: str, include_self: bool) -> Any:
    """Combine a vector with updates at places."""
    if reduce == "assign":
        return pg.set_slice(x, places, updates)
    if reduce not in ("add", "sum", "mean", *_NEUTRAL):
        raise ArgumentError(f"there is no reduce {reduce!r:.40}: it is 'add', 'mul', 'mean' ...")
    if reduce in ("add", "sum", "mean"):
        base = x if include_self else pg.set_slice(x, places, pg.zeros_like(updates))
        total = pg.scatter_add(base, places, updates)
        if reduce != "mean":
            return total
        ones = pg.full_like(x, 1)
        first = ones if include_self else pg.set_slice(ones, places, pg.zeros_like(updates))
        number = pg.scatter_add(first, places, pg.full_like(updates, 1))
        found = pg.divide(total, number)
        return found if x.dtype.kind in "fc" else pg.astype(pg.trunc(found), x.dtype)
    neutral = _NEUTRAL[reduce]
    if x.dtype.kind in "iu" and neutral != 1:
        limits = np.iinfo(x.type.dtype)
        neutral = limits.max if neutral > 0 else limits.min
    # Each element meets all updates: no primitive combines updates except by adding them.
    is_there = pg.equal(pg.expand_dims(places, 1), np.arange(x.shape[0]))
    spread = pg.where(is_there, pg.expand_dims(updates, 1), np.asarray(neutral, x.type.dtype))
    if not include_self:
        x = pg.where(pg.any(is_there, 0), np.asarray(neutral, x.type.dtype), x)
    if neutral == 1:
        return pg.multiply(x, pg.prod(spread, 0))
    reduced, pair = (pg.min, pg.minimum) if reduce == "amin" else (pg.max, pg.maximum)
    return pair(x, reduced(spread, 0))


def scattered(x: Any, index: Any, updates: Any, overwrite: bool) -> Any:
    """Replace slices along the first axis."""
    places = vector(index)
    if overwrite:
        return pg.set_slice(x, places, updates)
    return pg.scatter_add(pg.set_slice(x, places, pg.zeros_like(updates)), places, updates)


def added_at(x: Any, index: tuple[Any, ...], updates: Any) -> Any:
    """Add updates at an index of each of the leading axes."""
    count = len(index)
    lead, rest = tuple(x.shape)[:count], tuple(x.shape)[count:]
    flat: Any = 0
    for number, extent in zip(index, lead, strict=True):
        known = pg.where(pg.less(number, 0), pg.add(number, extent), number)
        flat = pg.add(pg.multiply(flat, extent), known)
    found = pg.scatter_add(
        pg.reshape(x, (-1, *rest)), pg.reshape(flat, (-1,)), pg.reshape(updates, (-1, *rest))
    )
    return pg.reshape(found, tuple(x.shape))


def filled(x: Any, index: Any, axis: int, value: Any) -> Any:
    """Replace slices along an axis by a number."""
    place = (slice(None),) * as_axis(axis, len(x.shape))
    return pg.set_slice(x, (*place, index), pg.astype(value, x.dtype))


def indexed(x: Any, indices: Any, value: Any, accumulate: bool) -> Any:
    """Replace elements, or add to them."""
    known = [pg.nonzero(i) if i.dtype.kind == "b" else (i,) for i in indices]
    index = [i for several in known for i in several]
    if not accumulate:
        return pg.set_slice(x, tuple(index), value)
    index = list(pg.broadcast_arrays(*index))
    shape = (*index[0].shape, *tuple(x.shape)[len(index) :])
    return added_at(x, tuple(index), pg.broadcast_to(value, shape))


def put_where(x: Any, mask: Any, value: Any) -> Any:
    """Replace elements where the mask is true, in their order."""
    known = pg.broadcast_to(mask, tuple(x.shape))
    flat = pg.reshape(known, (-1,))
    order = pg.maximum(pg.subtract(pg.cumsum(flat), 1), 0)
    count = int(pg.count_nonzero(mask)) if not isinstance(x, Handle) else None
    values = pg.reshape(value, (-1,))
    if count is not None and count > values.shape[0]:
        raise ShapeError(f"masked_scatter: {count} elements are to be replaced")
    chosen = pg.take(values, pg.minimum(order, values.shape[0] - 1))
    return pg.where(known, pg.reshape(chosen, tuple(x.shape)), x)


def multiplexed(inputs: Any, index: Any) -> Any:
    """Take each row from one of several tensors."""
    rows = np.arange(inputs[0].shape[0])
    return pg.stack(list(inputs), 0)[vector(index), rows]


def with_part(x: Any, values: Any, axis: int, index: int) -> Any:
    """Replace one slice."""
    return pg.set_slice(x, (*[slice(None)] * as_axis(axis, len(x.shape)), index), values)


def with_slices(x: Any, value: Any, axes: Any, starts: Any, ends: Any, strides: Any) -> Any:
    """Replace slices along axes."""
    known = [slice(None)] * len(x.shape)
    for axis, part in zip(axes, zip(starts, ends, strides, strict=True), strict=True):
        known[axis] = slice(*part)
    return pg.set_slice(x, tuple(known), value)


def with_diagonal(x: Any, y: Any, offset: int, first: int, second: int) -> Any:
    """Replace a diagonal."""
    turned = pg.moveaxis(x, (first, second), (-2, -1))
    rows, columns = np.nonzero(np.eye(turned.shape[-2], turned.shape[-1], offset))
    found = pg.set_slice(turned, (..., rows, columns), y)
    return pg.moveaxis(found, (-2, -1), (first, second))


__all__ = define_functions(globals(), _ROWS)
