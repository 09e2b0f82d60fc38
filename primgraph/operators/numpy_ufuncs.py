"""NumPy ufuncs on handles, with their methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate as running
from typing import Any

import numpy as np

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.dims import names_in
from primgraph.operators.handle import Handle
from primgraph.operators.index.known_elements import elements, known_elements
from primgraph.operators.lazy_loading import function_named
from primgraph.operators.names import rows
from primgraph.operators.numpy_arguments import (
    Counterpart,
    as_tuple,
    call_named,
    may_change,
    refuse_out,
)
from primgraph.operators.numpy_calls import known_functions, missing_error
from primgraph.operators.numpy_meanings import listed_axes
from primgraph.operators.numpy_overrides import implemented
from primgraph.operators.variable import Variable, handles


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a ufunc, or one of its methods, with handles among its operands."""
    if method == "__call__" and ufunc in implemented:
        return implemented[ufunc](*inputs, **options)
    name = _name_of(ufunc)
    if (
        name is None
        and method == "__call__"
        and not isinstance(vars(np).get(ufunc.__name__), np.ufunc)
    ):
        law = provider("scipy.stats").ufuncs.get(ufunc.__name__)
        if law is not None and not options:
            return law(*inputs)
    if name is None:
        raise missing_error(f"numpy.{ufunc.__name__}")
    if method == "__call__" and len(inputs) > ufunc.nin:
        options = {**options, "out": tuple(inputs[ufunc.nin :])}
        inputs = inputs[: ufunc.nin]
    targets = as_tuple(options.get("out"))
    if all(o is None for o in targets):
        return _METHODS.get(method, _raise_error)(ufunc, name, inputs, options)
    if not all(o is None or may_change(o) for o in targets):
        refuse_out(ufunc.__name__, name)
    kept = {n: v for n, v in options.items() if n != "out"}
    found = _METHODS.get(method, _raise_error)(ufunc, name, inputs, kept)
    results = found if ufunc.nout > 1 else (found,)
    mask = options.get("where", True)
    pairs = zip(results, targets, strict=True)
    written = [_write_out(result, target, mask) for result, target in pairs]
    return tuple(written) if ufunc.nout > 1 else written[0]


def _write_out(found: Any, target: Any, mask: Any) -> Any:
    """Return the array that a result is written to, or the result if there is none."""
    if target is None:
        return found
    target.change_to(found if mask is True else call_named("where", mask, found, target))
    return target


def _name_of(ufunc: np.ufunc) -> str | None:
    """Return the name here of a ufunc of NumPy or SciPy."""
    row = (
        known_functions()[ufunc][1]
        if ufunc in known_functions()
        else rows("scipy.special").get(ufunc.__name__)
    )
    return None if row is None else row.target


def _call(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    dtype = options.get("dtype")
    mask = options.get("where", True)
    if dtype is not None and np.dtype(dtype).kind != "b":
        inputs = [_cast(call_named("asarray", x), dtype) for x in inputs]
    axis = {"axis": options["axis"]} if ufunc is np.vecdot and "axis" in options else {}
    strange = [n for n in ("axes", "axis", "keepdims") if options.get(n) and n not in axis]
    if strange:
        raise ArgumentError(f"np.{ufunc.__name__} of what is traced takes no {strange[0]}=")
    found = call_named(name, *inputs, **axis)
    if mask is True:
        return found
    return call_named("where", mask, found, call_named("zeros_like", found))


def _cast(x: Any, dtype: Any) -> Any:
    """Convert `x` to the given dtype; a boolean dtype, as of conditions, is ignored."""
    return x if dtype is None or np.dtype(dtype).kind == "b" else call_named("astype", x, dtype)


_REDUCED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any", "fmax": "nanmax", "fmin": "nanmin", "logaddexp": "logsumexp",
}  # fmt: skip


def _reduce(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Reduce over one axis or several: by a function here, or element by element."""
    (x,) = inputs
    x = call_named("asarray", x)
    axis = options.get("axis", 0)
    keepdims = bool(options.get("keepdims", False))
    mask, start = options.get("where", True), options.get("initial", np._NoValue)
    x = x if name in ("add", "multiply") else _cast(x, options.get("dtype"))
    if name in _REDUCED and name not in ("logaddexp", "fmax", "fmin", "logical_and", "logical_or"):
        given = {"keepdims": keepdims, "where": mask, "dtype": options.get("dtype")}
        given = given if name in ("add", "multiply") else {"keepdims": keepdims, "where": mask}
        original = getattr(np, _REDUCED[name])
        initial = {} if start in (np._NoValue, None) else {"initial": start}
        return Counterpart(_REDUCED[name], original, rows("numpy")[_REDUCED[name]])(
            x, axis=axis, **given, **initial
        )
    if mask is not True:
        raise ArgumentError(f"np.{ufunc.__name__}.reduce of what is traced takes no where=")
    if name in _REDUCED:
        found = call_named(_REDUCED[name], x, axis, keepdims)
        return found if start in (np._NoValue, None) else call_named(name, found, start)
    found = x
    axes = listed_axes(x, axis if not isinstance(axis, int) else [axis])
    for a in sorted({a % x.ndim for a in axes}, reverse=True):
        parts = list(call_named("unstack", found, axis=a))
        parts = parts if start in (np._NoValue, None) else [start, *parts]
        found = reduce(lambda p, q: call_named(name, p, q), parts)
        found = call_named("expand_dims", found, a) if keepdims else found
    return found


def _accumulate(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Accumulate along an axis: by a function here, or element by element."""
    (x,) = inputs
    x, axis = call_named("asarray", x), options.get("axis", 0)
    axis = 0 if axis is None and x.ndim == 1 else axis
    if name == "add":
        return call_named("cumsum", x, axis, dtype=options.get("dtype"))
    if name == "multiply" and function_named("cumprod") is not None:
        return call_named("cumprod", x, axis, dtype=options.get("dtype"))
    x = _cast(x, options.get("dtype"))
    parts = list(running(call_named("unstack", x, axis=axis), lambda p, q: call_named(name, p, q)))
    return call_named("stack", parts, axis)


def _reduceat(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Reduce the parts that begin at known positions, like NumPy."""
    x, places = inputs
    x, axis = call_named("asarray", x), options.get("axis", 0)
    starts = [int(i) for i in elements(f"{ufunc.__name__}.reduceat", places, "")]
    ends = [*starts[1:], x.shape[axis]]
    parts = []
    for start, end in zip(starts, ends, strict=True):
        stop = end if start < end else start + 1
        part = call_named("take", x, np.arange(start, stop), axis)
        parts.append(_reduce(ufunc, name, [part], {**options, "axis": axis}))
    return call_named("stack", parts, axis)


def _outer(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Apply the function to each pair of elements of two arrays."""
    x, y = (call_named("asarray", v) for v in inputs)
    x = call_named("reshape", x, (*x.shape, *(1,) * y.ndim))
    return _call(ufunc, name, (x, y), options)


def _at(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> None:
    """Apply the function at each place of an index, one after the other, in an array."""
    array, index, *given = inputs
    if not may_change(array):
        _raise_error(ufunc, name, inputs, options)
    values = [call_named("asarray", v) for v in given]
    for v in values:
        if not np.can_cast(v.dtype, array.dtype, "same_kind"):
            raise DTypeError(f"np.{ufunc.__name__}.at cannot put {v.type} into {array.type}")
    is_tuple = isinstance(index, tuple)
    if isinstance(index, list) or (isinstance(index, Handle) and index.dtype.kind == "b"):
        known = known_elements(index) if isinstance(index, Variable) else index
        index = index if known is None else np.asarray(known)
    is_computed = bool(handles((index,)))
    if is_computed and not is_tuple and index.dtype.kind == "b":
        new = _call(ufunc, name, [array, *values], options)
        array.change_to(call_named("where", index, new, array))
        return
    if is_computed or names_in(array.shape):
        elements = call_named("reshape", call_named("arange", array.size), array.shape)
        places = call_named("getitem", elements, index)
    else:
        places = np.arange(array.size).reshape(array.shape)[index]
    row = call_named("ravel", array)
    parts = [
        call_named(
            "ravel", call_named("broadcast_to", call_named("astype", v, array.dtype), places.shape)
        )
        for v in values
    ]
    places = places.reshape(-1)
    if name in ("add", "subtract"):
        parts = [call_named("negative", parts[0])] if name == "subtract" else parts
        found = call_named("scatter_add", row, places, parts[0])
    elif name in _SCATTERED:
        found = call_named(_SCATTERED[name], row, places, parts[0])
    elif is_computed or isinstance(places, Handle):
        _raise_error(ufunc, name, inputs, options)
    else:
        found = _apply_in_rounds(ufunc, name, row, places, parts)
    array.change_to(call_named("reshape", found, array.shape))


_SCATTERED = {"maximum": "scatter_max", "minimum": "scatter_min"}


def _apply_in_rounds(
    ufunc: Any, name: str, row: Any, places: np.ndarray[Any, Any], parts: Sequence[Any]
) -> Any:
    """Apply a function at known places: in each round once at each of those that are left."""
    left = np.arange(places.size)
    while left.size:
        now, first = np.unique(places[left], return_index=True)
        operands = [call_named("take", p, left[first]) for p in parts]
        found = _call(ufunc, name, [call_named("take", row, now), *operands], {})
        row = call_named("set_slice", row, now, found)
        left = np.delete(left, first)
    return row


def _raise_error(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    raise ArgumentError(
        f"np.{ufunc.__name__} cannot be built into a program this way",
        hint="pg.scatter_add(x, index, updates) and pg.set_slice(x, index, value) are new arrays; "
        "in a function that is traced or differentiated, x = np.copy(x) may be written to",
    )


_METHODS = {
    "__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at,
    "reduceat": _reduceat,
}  # fmt: skip
