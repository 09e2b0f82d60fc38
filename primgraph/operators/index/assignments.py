"""NumPy functions that write to an array in place, with NumPy's parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, BoundsError, ShapeError
from primgraph.ir.dims import names_in
from primgraph.operators.handle import Handle
from primgraph.operators.index import scatter
from primgraph.operators.index.known_elements import known_elements
from primgraph.operators.index.masked import MaskedElements
from primgraph.operators.numpy_arguments import (
    as_elements,
    call_named,
    has_elements,
    may_change,
)
from primgraph.operators.variable import Variable


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Any:
    if a.ndim < 2:
        raise ShapeError(f"np.fill_diagonal takes an array of 2 or more axes, not {a.type}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ShapeError(f"np.fill_diagonal of {a.type}: all axes must have one size")
    values = call_named("ravel", call_named("asarray", val))
    if values.size == 0:
        raise ShapeError("np.fill_diagonal takes at least one value")
    if a.ndim > 2 or wrap:
        step = 1 + sum(int(np.prod(a.shape[i + 1 :], dtype=int)) for i in range(a.ndim - 1))
        return _put(a, np.arange(a.size)[::step], values) if a.size else a
    if values.size != 1:
        numbers = call_named("remainder", call_named("arange", a.shape[0]), values.size)
        values = call_named("expand_dims", call_named("take", values, numbers), 1)
    return call_named("where", call_named("eye", *a.shape, dtype=bool), values, a)


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    return call_named("where", where, src, dst)


def _putmask(a: Any, mask: Any, values: Any) -> Any:
    if isinstance(values, MaskedElements):
        raise ArgumentError(
            "np.putmask takes values for all elements, and not those that a mask chose",
            hint="np.place(a, mask, values) and a[mask] = values take these",
        )
    values = call_named("asarray", values)
    mask = call_named("reshape", call_named("asarray", mask), a.shape)
    if values.shape != a.shape and values.size != 1:
        if values.size == 0:
            return a
        count = call_named("remainder", call_named("arange", a.size), values.size)
        values = call_named("reshape", call_named("take", values, count), a.shape)
    elif values.shape != a.shape:
        values = call_named("reshape", values, ())
    return call_named("where", mask, values, a)


def _place(arr: Any, mask: Any, vals: Any) -> Any:
    known = known_elements(mask) if isinstance(mask, Variable) else mask
    is_known = known is not None and not isinstance(known, Handle)
    if is_known and not np.any(known):
        return arr
    if isinstance(vals, MaskedElements):
        return call_named("set_slice", arr, mask, vals)
    vals = call_named("ravel", call_named("asarray", vals))
    if vals.size == 0:
        raise ShapeError("np.place takes at least one value")
    mask = call_named("reshape", call_named("astype", mask, bool), arr.shape)
    if vals.size == 1:
        return call_named("where", mask, call_named("reshape", vals, ()), arr)
    # The n-th true element takes the n-th value, from the first one on again.
    before = call_named("cumsum", call_named("ravel", mask), dtype="int64") - 1
    taken = call_named("take", vals, call_named("remainder", before, vals.size))
    return call_named("where", mask, call_named("reshape", taken, arr.shape), arr)


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"np.put: mode is 'raise', 'wrap' or 'clip', not {mode!r:.60}")
    is_known = not isinstance(ind, Handle)
    places = np.asarray(ind, np.intp if np.size(ind) == 0 else None) if is_known else ind
    values = call_named("asarray", v)
    if 0 in (places.size, values.size):
        return a
    is_known = is_known and not names_in(a.shape)
    if mode == "wrap":
        places = places % a.size if is_known else call_named("remainder", places, a.size)
    elif mode == "clip":
        limit: Callable[..., Any] = np.clip if is_known else partial(call_named, "clip")
        places = limit(places, 0, a.size - 1)
    elif is_known and (places.min() < -a.size or places.max() >= a.size):
        raise BoundsError(
            f"np.put: indices {places.ravel().tolist()!s:.60} are out of bounds for {a.type}"
        )
    if not is_known:
        return scatter.assign_flat(a, call_named("asarray", places), values)
    count = places.size
    if values.size != 1 and values.shape != (count,):
        values = call_named("resize", values, (count,))
    values = call_named("reshape", values, (values.size,))
    flat = call_named("set_slice", call_named("ravel", a), places.reshape(-1), values)
    return call_named("reshape", flat, a.shape)


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> Any:
    places = indices if isinstance(indices, Handle) else np.asarray(indices)
    if axis is None:
        if places.ndim != 1:
            raise ShapeError("np.put_along_axis without an axis takes a vector of indices")
        part = call_named("broadcast_to", call_named("asarray", values), places.shape)
        return _put(arr, places, part)
    if places.ndim != arr.ndim:
        raise ShapeError(f"np.put_along_axis: {places.ndim} axes of indices for {arr.type}")
    if isinstance(places, Handle) or names_in(arr.shape):
        return scatter.assign_along_axis(arr, places, values, axis)
    grid: list[Any] = list(np.indices(arr.shape, sparse=True))
    grid[axis] = places
    return call_named("set_slice", arr, tuple(grid), values)


def _in_place(name: str, given: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that writes the result of `given` to an array, if it supports
    assignment."""

    def call(array: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(array, np.ndarray) and has_elements([*args, *kwargs.values()]):
            named = {n: as_elements(a) for n, a in kwargs.items()}
            getattr(np, name)(array, *map(as_elements, args), **named)
            return
        if not may_change(array):
            raise ArgumentError(
                f"np.{name} writes to an array in place, and what is traced does not change",
                hint="pg.set_slice(x, index, value) is a new array; in a function that is traced, "
                "x = np.copy(x) may be written to",
            )
        array.change_to(given(array, *args, **kwargs))

    return call


copyto = _in_place("copyto", _copyto)
fill_diagonal = _in_place("fill_diagonal", _fill_diagonal)
place = _in_place("place", _place)
put = _in_place("put", _put)
put_along_axis = _in_place("put_along_axis", _put_along_axis)
putmask = _in_place("putmask", _putmask)
