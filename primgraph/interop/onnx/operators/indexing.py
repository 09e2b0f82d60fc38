"""Operators of indices and order: gather, scatter, extreme elements, cumulative sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.interop.onnx.node import Node, Optional, Value
from primgraph.interop.onnx.operators.shapes import sizes
from primgraph.interop.onnx.table import means
from primgraph.operators import array, scatter_add, scatter_max, scatter_min, set_slice, top_k
from primgraph.operators.variable import Variable


@means("Gather")
def _gather(node: Node, x: Value, indices: Value) -> Any:
    axis = node.get("axis", 0) % x.ndim
    return pnp.take(x, _from_start(indices, x.shape[axis]), axis)


def _from_start(indices: Value, size: Any) -> Any:
    """Return indices counted from the start, of which negative ones count from the end."""
    if isinstance(indices, np.ndarray) and type(size) is int:
        return np.where(indices < 0, indices + size, indices)
    return pnp.where(indices < 0, indices + np.int64(0) + size, indices + np.int64(0))


@means("GatherElements")
def _gather_elements(node: Node, x: Value, indices: Value) -> Any:
    """Return elements along an axis; the other axes of the indices may be shorter."""
    axis = node.get("axis", 0) % x.ndim
    return _elements(x, _element_index(x, indices, axis))


def _elements(x: Value, index: tuple[Any, ...]) -> Any:
    """Return the elements at an index, which of a known array may be computed."""
    known = all(isinstance(part, np.ndarray) for part in index)
    return (x if known or isinstance(x, Variable) else array(x))[index]


def _element_index(x: Value, indices: Value, axis: int) -> tuple[Any, ...]:
    """Return the index arrays of the elements that `indices` names along an axis."""
    found: list[Any] = []
    for k, size in enumerate(indices.shape):
        shape = [1] * x.ndim
        shape[k] = size
        found.append(np.arange(size).reshape(shape))
    found[axis] = _from_start(indices, x.shape[axis])
    return tuple(found)


@means("GatherND")
def _gather_nd(node: Node, x: Value, indices: Value) -> Any:
    batch = node.get("batch_dims", 0)
    return _elements(x, _tuple_index(x, indices, batch))


def _tuple_index(x: Value, indices: Value, batch: int = 0) -> tuple[Any, ...]:
    """Return the index arrays whose tuples are the last axis of `indices`."""
    rank = indices.ndim - 1
    lead = []
    for k in range(batch):
        shape = [1] * rank
        shape[k] = x.shape[k]
        lead.append(np.arange(x.shape[k]).reshape(shape))
    parts = [indices[..., k] for k in range(indices.shape[-1])]
    rest = [_from_start(part, x.shape[batch + k]) for k, part in enumerate(parts)]
    return (*lead, *rest)


@means("Scatter", "ScatterElements")
def _scatter_elements(node: Node, x: Value, indices: Value, updates: Value) -> Any:
    axis = node.get("axis", 0) % x.ndim
    return _scatter(node, x, _element_index(x, indices, axis), updates)


@means("ScatterND")
def _scatter_nd(node: Node, x: Value, indices: Value, updates: Value) -> Any:
    return _scatter(node, x, _tuple_index(x, indices), updates)


def _scatter(node: Node, x: Value, index: tuple[Any, ...], updates: Value) -> Any:
    """Assign updates at an index, or combine them with what is there."""
    kind = node.get("reduction", "none")
    if kind == "none":
        return set_slice(x, index, updates)
    flat, places = pnp.reshape(x, (-1,)), pnp.reshape(_flat_places(x, index), (-1,))
    rows = pnp.reshape(updates, (-1,))
    if kind in _COMBINED:
        return pnp.reshape(_COMBINED[kind](flat, places, rows), x.shape)
    return pnp.reshape(_multiply_at(node, flat, places, rows), x.shape)


_COMBINED = {"add": scatter_add, "max": scatter_max, "min": scatter_min}


def _flat_places(x: Value, index: tuple[Any, ...]) -> Any:
    """Return the positions among all elements of what an index of the first axes selects."""
    rest = x.shape[len(index) :]
    found: Any = 0
    for part, size in zip(index, x.shape, strict=False):
        found = found * size + part
    inner = np.arange(math.prod(rest)).reshape(rest)
    lead = pnp.reshape(found, (*found.shape, *[1] * len(rest)))
    return lead * math.prod(rest) + inner


def _multiply_at(node: Node, x: Value, places: Value, updates: Value) -> Any:
    """Multiply elements at known places by updates, one after the other where a place repeats."""
    if not isinstance(places, np.ndarray):
        node.known((None, places), 1, "indices")
    rank = _repeats_before(np.asarray(places))
    found = x
    for k in range(int(rank.max(initial=-1)) + 1):
        chosen = np.flatnonzero(rank == k)
        there = np.asarray(places)[chosen]
        found = set_slice(found, there, found[there] * updates[chosen])
    return found


def _repeats_before(places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each place how often it occurs earlier."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted(ordered, ordered, side="left")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - first
    return rank


@means("TensorScatter")
def _tensor_scatter(node: Node, cache: Value, update: Value, *start: Optional) -> Any:
    """Write `update` into a cache, along an axis, from a start index for each sample."""
    axis, size = node.get("axis", -2) % cache.ndim, cache.shape[node.get("axis", -2)]
    first: Any = np.zeros(cache.shape[0], np.int64) if not start or start[0] is None else start[0]
    along = [1] * cache.ndim
    along[axis] = update.shape[axis]
    place = pnp.reshape(first, (-1, *[1] * (cache.ndim - 1))) + np.arange(
        update.shape[axis]
    ).reshape(along)
    if node.get("mode", "linear") == "circular":
        place = place % size
    index = list(_element_index(cache, update, axis))
    index[axis] = pnp.broadcast_to(place, update.shape)
    return set_slice(cache, tuple(index), update)


@means("OneHot")
def _one_hot(node: Node, indices: Value, depth: Value, values: Value) -> Any:
    """Return the second of `values` at the indices along a new axis, and the first elsewhere."""
    count = int(node.known((indices, depth), 1, "depth").reshape(-1)[0])
    axis = node.get("axis", -1) % (indices.ndim + 1)
    shape = [1] * (indices.ndim + 1)
    shape[axis] = count
    place = pnp.expand_dims(indices.astype(np.int64) % count, axis)
    inside = pnp.expand_dims((indices >= -count) & (indices < count), axis)
    hot = (place == np.arange(count).reshape(shape)) & inside
    return pnp.where(hot, values[1], values[0])


@means("NonZero")
def _non_zero(node: Node, x: Value) -> Any:
    return np.stack(np.nonzero(node.known((x,), 0, "data"))).astype(np.int64)


@means("Compress")
def _compress(node: Node, x: Value, condition: Value) -> Any:
    chosen = np.flatnonzero(node.known((x, condition), 1, "condition"))
    axis = node.get("axis")
    return pnp.take(x if axis is not None else pnp.reshape(x, (-1,)), chosen, axis or 0)


@means("Unique")
def _unique(node: Node, x: Value) -> Any:
    """Return unique elements, sorted or in order of appearance, with indices and counts."""
    known = node.known((x,), 0, "data")
    found, first, inverse, counts = np.unique(known, True, True, True, axis=node.get("axis"))
    inverse = inverse.reshape(-1)
    if not node.get("sorted", 1):
        order = np.argsort(first)
        axis = node.get("axis")
        found = found[order] if axis is None else np.take(found, order, axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return found, first, inverse, counts


@means("TopK")
def _top_k(node: Node, x: Value, *k: Value) -> Any:
    """Return the largest or smallest elements, in order; equal ones by their index."""
    count = node.get("k") if not k else sizes(node, (x, *k), 1, "k")[0]
    axis = node.get("axis", -1) % x.ndim
    if node.get("largest", 1):
        values, places = top_k(x, count, axis)
        return values, places.astype(np.int64)
    order = pnp.argsort(x, axis, stable=True)
    places = order[(slice(None),) * axis + (slice(0, count),)]
    return pnp.take_along_axis(x, places, axis), places.astype(np.int64)


@means("ArgMax", "ArgMin")
def _arg_extreme(node: Node, x: Value) -> Any:
    axis, keep = node.get("axis", 0) % x.ndim, bool(node.get("keepdims", 1))
    find = pnp.argmax if node.kind == "ArgMax" else pnp.argmin
    if not node.get("select_last_index", 0):
        return find(x, axis, keepdims=keep).astype(np.int64)
    return (x.shape[axis] - 1 - find(pnp.flip(x, axis), axis, keepdims=keep)).astype(np.int64)


@means("CumSum", "CumProd")
def _cumulative(node: Node, x: Value, axis: Value) -> Any:
    place = int(node.known((x, axis), 1, "axis").reshape(-1)[0]) % x.ndim
    whole = pnp.flip(x, place) if node.get("reverse", 0) else x
    found = (pnp.cumsum if node.kind == "CumSum" else pnp.cumprod)(whole, place).astype(x.dtype)
    if node.get("exclusive", 0):
        lead = (slice(None),) * place
        first = np.full(
            (*x.shape[:place], 1, *x.shape[place + 1 :]), node.kind == "CumProd", x.dtype
        )
        found = pnp.concatenate([first, found[(*lead, slice(0, -1))]], place)
    return pnp.flip(found, place) if node.get("reverse", 0) else found
