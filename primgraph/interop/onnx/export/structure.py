"""ONNX's words for the primitives that move elements: shapes, indices, order and windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.interop.onnx.export.words import cast, composes, number
from primgraph.interop.onnx.export.writer import Writer
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Equation
from primgraph.primitives.indexing import places_in
from primgraph.primitives.shapes import strided_slices


def filled(w: Writer, value: Any, shape: Sequence[Any], dtype: Any) -> str:
    """Write an array of equal elements."""
    if dtype.kind == "c":
        return w.emit("Expand", number(w, value, dtype), w.integers([*shape, 2]))
    one = number(w, value, dtype)
    return one if len(shape) == 0 else w.emit("Expand", one, w.integers(shape))


@composes("full", complex=True)
def _full(w: Writer, eqn: Equation) -> str:
    return filled(w, eqn.kwargs["value"], eqn.output.shape, eqn.output.dtype)


@composes("extent")
def _extent(w: Writer, eqn: Equation) -> str:
    size = cast(w, w.size(eqn.kwargs["size"]), eqn.output.dtype)
    if not eqn.output.shape:
        return w.emit("Reshape", size, w.constant(np.zeros(0, np.int64)))
    return w.emit("Expand", size, w.integers(eqn.output.shape))


@composes("constant", complex=True)
def _constant(w: Writer, eqn: Equation) -> str:
    return w.hold(eqn.kwargs["value"].data)


@composes("iota")
def _iota(w: Writer, eqn: Equation) -> str:
    shape, axis, dtype = eqn.output.shape, eqn.kwargs["axis"], eqn.output.dtype
    along = [1] * len(shape)
    along[axis] = -1
    if type(shape[axis]) is Dim:
        numbers = counted(w, shape[axis])
        column = cast(w, w.emit("Reshape", numbers, w.integers(along)), dtype)
    else:
        column = w.constant(np.arange(shape[axis]).reshape(along), dtype)
    return w.emit("Expand", column, w.integers(shape))


def counted(w: Writer, size: Any) -> str:
    """Write the integers below a size."""
    if type(size) is not Dim:
        return w.constant(np.arange(size))
    end = w.emit("Reshape", w.size(size), w.constant(np.zeros(0, np.int64)))
    return w.emit("Range", number(w, 0, np.int64), end, number(w, 1, np.int64))


@composes("assumed")
def _assumed(w: Writer, eqn: Equation, x: str) -> str:
    return x


@composes("reshape")
def _reshape(w: Writer, eqn: Equation, x: str) -> str:
    return w.emit("Reshape", x, w.integers(eqn.kwargs["shape"]), allowzero=1)


@composes("permute")
def _permute(w: Writer, eqn: Equation, x: str) -> str:
    return w.emit("Transpose", x, perm=list(eqn.kwargs["axes"]))


@composes("broadcast")
def _broadcast(w: Writer, eqn: Equation, x: str) -> str:
    shape, new = eqn.kwargs["shape"], eqn.kwargs["new_axes"]
    wider = w.emit("Unsqueeze", x, w.integers(new)) if new else x
    return w.emit("Expand", wider, w.integers(shape))


@composes("reverse")
def _reverse(w: Writer, eqn: Equation, x: str) -> str:
    return flipped(w, x, eqn.kwargs["axes"])


def flipped(w: Writer, x: str, axes: Sequence[int]) -> str:
    """Write an array in reverse order along axes."""
    if not axes:
        return x
    ones = [-1] * len(axes)
    ends = w.integers([np.iinfo(np.int64).min] * len(axes))
    return w.emit("Slice", x, w.integers(ones), ends, w.integers(axes), w.integers(ones))


@composes("pad")
def _pad(w: Writer, eqn: Equation, x: str) -> str:
    low, high = eqn.kwargs["low"], eqn.kwargs["high"]
    return w.emit("Pad", x, w.integers([*low, *high]))


@composes("slice")
def _slice(w: Writer, eqn: Equation, x: str) -> str:
    shape, steps = eqn.inputs[0].shape, eqn.kwargs["steps"]
    parts = strided_slices(eqn.kwargs["starts"], eqn.kwargs["sizes"], steps, shape)
    lowest = np.iinfo(np.int64).min
    starts = [part.start for part in parts]
    ends = [lowest if part.stop is None else part.stop for part in parts]
    axes = range(len(parts))
    return x if not parts else w.emit("Slice", x, *map(w.integers, (starts, ends, axes, steps)))


@composes("slice_assign")
def _slice_assign(w: Writer, eqn: Equation, x: str, y: str) -> str:
    """Assign at positions that are counted among all elements."""
    shape, part = eqn.inputs[0].shape, eqn.inputs[1].shape
    require_numbers(eqn, (*shape, *part))
    places = np.arange(math.prod(shape)).reshape(shape)
    chosen = places[strided_slices(eqn.kwargs["starts"], part, eqn.kwargs["steps"])]
    return _put(w, x, y, chosen, shape)


def _put(w: Writer, x: str, y: str, places: Any, shape: Sequence[Any], how: str = "none") -> str:
    """Put the elements of `y` into `x` at known positions in row-major order."""
    flat = w.emit("Reshape", x, w.integers([math.prod(shape)]))
    rows = w.emit("Reshape", y, w.integers([places.size]))
    index = w.constant(places.reshape(-1, 1), np.int64)
    found = w.emit("ScatterND", flat, index, rows, reduction=how)
    return w.emit("Reshape", found, w.integers(shape), allowzero=1)


class SymbolicSizeError(Exception):
    """A composition needs sizes that are numbers."""


def require_numbers(eqn: Equation, shape: Sequence[Any]) -> None:
    """Raise if a size is symbolic, and so positions are unknown."""
    if any(type(n) is Dim for n in shape):
        raise SymbolicSizeError(f"{eqn.op.name} with symbolic sizes")


@composes("placed")
def _placed(w: Writer, eqn: Equation, *xs: str) -> str:
    shape, strides = eqn.kwargs["shape"], eqn.kwargs["strides"]
    require_numbers(eqn, shape)
    lead = eqn.inputs[0].type.ndim - len(strides[0])
    inner = math.prod(shape[lead:])
    found = filled(w, 0, shape, eqn.output.dtype)
    for value, x, start, steps in zip(eqn.inputs, xs, eqn.kwargs["starts"], strides, strict=True):
        if value.type.size == 0:
            continue
        within = np.asarray(places_in(value.shape[lead:], start, steps)).reshape(-1)
        outer = np.arange(math.prod(shape[:lead])) * inner
        found = _put(w, found, x, outer[:, None] + within, shape)
    return found


@composes("concat")
def _concat(w: Writer, eqn: Equation, *xs: str) -> str:
    return w.emit("Concat", *xs, axis=eqn.kwargs["axis"])


@composes("split")
def _split(w: Writer, eqn: Equation, x: str) -> list[str]:
    sizes = eqn.kwargs["sizes"]
    axis = eqn.kwargs["axis"]
    return w.emit_several("Split", [x, w.integers(sizes)], len(sizes), axis=axis)


# Indices.


def front(w: Writer, x: str, rank: int, axis: int, count: int) -> str:
    """Move `count` axes from `axis` on to the front."""
    moved = [*range(axis, axis + count)]
    rest = [k for k in range(rank) if k not in moved]
    return x if axis == 0 else w.emit("Transpose", x, perm=[*moved, *rest])


def back(w: Writer, x: str, rank: int, axis: int, count: int) -> str:
    """Move the first `count` axes to `axis`."""
    rest = [*range(count, rank)]
    order = [*rest[:axis], *range(count), *rest[axis:]]
    return x if axis == 0 else w.emit("Transpose", x, perm=order)


def _tuples(w: Writer, eqn: Equation, indices: Sequence[str], first: int) -> str:
    """Stack index arrays along a new last axis."""
    last = w.constant([-1], np.int64)
    wide = []
    for value, name in zip(eqn.inputs[first:], indices, strict=True):
        whole = name if value.dtype == np.int64 else cast(w, name, np.int64)
        wide.append(w.emit("Unsqueeze", whole, last))
    return w.emit("Concat", *wide, axis=-1) if len(wide) > 1 else wide[0]


@composes("gather")
def _gather(w: Writer, eqn: Equation, x: str, *indices: str) -> str:
    axis, rank = eqn.kwargs["axis"], eqn.inputs[0].type.ndim
    if len(indices) == 1:
        index = indices[0]
        if eqn.inputs[1].dtype.name not in ("int32", "int64"):
            index = cast(w, index, np.int64)
        return w.emit("Gather", x, index, axis=axis)
    first = front(w, x, rank, axis, len(indices))
    found = w.emit("GatherND", first, _tuples(w, eqn, indices, 1))
    return back(w, found, eqn.output.type.ndim, axis, eqn.inputs[1].type.ndim)


@composes("scatter_add")
def _scatter_add(w: Writer, eqn: Equation, x: str, y: str, *indices: str) -> str:
    """Add at index tuples of the first axes."""
    axis, rank, count = eqn.kwargs["axis"], eqn.inputs[0].type.ndim, len(indices)
    into = front(w, x, rank, axis, count)
    rows = front(w, y, eqn.inputs[1].type.ndim, axis, eqn.inputs[2].type.ndim)
    found = w.emit("ScatterND", into, _tuples(w, eqn, indices, 2), rows, reduction="add")
    return back(w, found, rank, axis, count)


# Order.


def _sorted(w: Writer, eqn: Equation, x: str) -> list[str]:
    axis = eqn.kwargs["axis"]
    size = w.size(eqn.inputs[0].shape[axis])
    return w.emit_several("TopK", [x, size], 2, axis=axis, largest=0, sorted=1)


@composes("sort")
def _sort(w: Writer, eqn: Equation, x: str) -> str:
    return _sorted(w, eqn, x)[0]


@composes("argsort")
def _argsort(w: Writer, eqn: Equation, x: str) -> str:
    return _sorted(w, eqn, x)[1]


@composes("reorder", "sort_by")
def _reorder(w: Writer, eqn: Equation, x: str, index: str) -> str:
    return w.emit("GatherElements", x, index, axis=eqn.kwargs["axis"])


@composes("reorder_back")
def _reorder_back(w: Writer, eqn: Equation, x: str, index: str) -> str:
    return w.emit("ScatterElements", x, index, x, axis=eqn.kwargs["axis"])


@composes("searchsorted")
def _searchsorted(w: Writer, eqn: Equation, a: str, v: str) -> str:
    """Count the elements that are before each one."""
    column = w.emit("Unsqueeze", v, w.constant([-1], np.int64))
    before = w.emit("LessOrEqual" if eqn.kwargs["right"] else "Less", a, column)
    last = w.constant([-1], np.int64)
    return w.emit("ReduceSum", cast(w, before, np.int64), last, keepdims=0)


# Windows.


@composes("windows")
def _windows(w: Writer, eqn: Equation, x: str) -> str:
    """Take the elements of windows along one axis after the other."""
    axis, sizes = eqn.kwargs["axis"], eqn.kwargs["sizes"]
    require_numbers(eqn, eqn.output.shape[axis:])
    number_of = len(sizes)
    counts = eqn.output.shape[axis + number_of : axis + 2 * number_of]
    found = x
    for k, index in enumerate(_window_indices(eqn, counts)):
        found = w.emit("Gather", found, w.constant(index, np.int64), axis=axis + 2 * k)
    inner = [axis + 2 * k for k in range(number_of)]
    windows = [axis + 2 * k + 1 for k in range(number_of)]
    end = axis + 2 * number_of
    order = [*range(axis), *inner, *windows, *range(end, eqn.output.type.ndim)]
    return w.emit("Transpose", found, perm=order)


def _window_indices(eqn: Equation, counts: Sequence[Any]) -> list[Any]:
    """Return for each axis the indices of the elements of windows: by element and window."""
    kwargs = eqn.kwargs
    return [
        np.arange(size)[:, None] * apart + np.arange(count) * step
        for size, step, apart, count in zip(
            kwargs["sizes"] if "sizes" in kwargs else _sizes_of(eqn),
            kwargs["steps"],
            kwargs["dilations"],
            counts,
            strict=True,
        )
    ]


def _sizes_of(eqn: Equation) -> Sequence[Any]:
    axis, number_of = eqn.kwargs["axis"], len(eqn.kwargs["steps"])
    return eqn.inputs[0].shape[axis : axis + number_of]


@composes("overlap_add")
def _overlap_add(w: Writer, eqn: Equation, x: str) -> str:
    """Add the elements of windows at their positions among all elements."""
    axis, shape = eqn.kwargs["axis"], eqn.output.shape
    given = eqn.inputs[0].shape
    require_numbers(eqn, (*shape, *given))
    number_of = len(eqn.kwargs["steps"])
    indices = _window_indices(eqn, given[axis + number_of : axis + 2 * number_of])
    places = np.arange(math.prod(shape)).reshape(shape)
    for k, index in enumerate(indices):
        places = np.take(places, index, axis + 2 * k)
    inner = [axis + 2 * k for k in range(number_of)]
    windows = [axis + 2 * k + 1 for k in range(number_of)]
    end = axis + 2 * number_of
    places = places.transpose(*range(axis), *inner, *windows, *range(end, places.ndim))
    return _put(w, filled(w, 0, shape, eqn.output.dtype), x, places, shape, "add")
