"""nonzero, unique and set operations: positions and distinct elements.

With known elements, of numbers, arrays and tensors, there are as many results as in NumPy. With
variables there are `size` results, as in JAX: further ones are dropped, missing ones are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import INT64, as_axes
from primgraph.operators.call import on_handles
from primgraph.operators.elementwise.arithmetic import minimum
from primgraph.operators.elementwise.logic import (
    isnan,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.index.known_elements import constant, elements, public_by_elements
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.promotion import (
    array_of,
    broadcasted,
    converted,
    lift,
    require_flag,
    require_integer,
    result_dtype,
)
from primgraph.operators.reduce.reductions import cumsum, sum
from primgraph.operators.shape.creation import arange, astype
from primgraph.operators.shape.joining import concatenate, sliced, stack
from primgraph.operators.shape.shaping import ravel, reshaped
from primgraph.operators.variable import Variable, emit, handles
from primgraph.primitives import sorting


def _require_size(name: str, size: Any) -> int:
    count = require_integer(name, size)
    if count < 0:
        raise ArgumentError(f"{name}: there are no {count} elements")
    return count


# Positions.


@on_handles
def _places(name: str, mask: ArrayLike, size: int) -> tuple[Variable, Variable]:
    """Return the first `size` true positions of the flattened array, and their total number."""
    value = lift(mask)
    counted = cumsum(converted(reshaped(not_equal(value, 0), (value.size,)), INT64))
    found = emit(
        sorting.searchsorted, counted, arange(1, _require_size(name, size) + 1), right=False
    )
    total = sum(converted(not_equal(value, 0), INT64))
    return found, total


@public_by_elements
def flatnonzero(x: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> Variable:
    """Return the positions of nonzero elements in the flattened array, in order, as int64.

    With `size`, the first ones, padded with `fill_value`. Raises `ArgumentError` for a variable
    without it.

    >>> pg.flatnonzero([0.0, 5.0, 2.0])
    tensor([1, 2], dtype=int64)
    """
    if size is None:
        found: Variable = constant(np.flatnonzero(elements("flatnonzero", x)))
        return found
    return _flat_of_size(x, size, fill_value)


@on_handles
def _flat_of_size(x: ArrayLike, size: int, fill_value: Any) -> Variable:
    places, total = _places("flatnonzero", x, size)
    return where(arange(size) < total, places, lift(fill_value, INT64))


@public_by_elements
def nonzero(x: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> tuple[Variable, ...]:
    """Return the positions of nonzero elements along each axis, in order; see `flatnonzero`.

    `fill_value` is one number for all axes, or one each. Raises `ArgumentError` for a 0-d array.

    >>> pg.nonzero([0.0, 5.0, 2.0])
    (tensor([1, 2], dtype=int64),)
    """
    if size is None:
        return tuple([constant(i) for i in _nonzero(elements("nonzero", x))])
    return _nonzero_of_size(x, size, fill_value)


def _nonzero(found: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    if found.ndim == 0:
        raise ArgumentError("nonzero of an array without axes: pg.atleast_1d(x) has one")
    return found.nonzero()


@on_handles
def _nonzero_of_size(x: ArrayLike, size: int, fill_value: Any) -> tuple[Variable, ...]:
    value = lift(x)
    if value.ndim == 0:
        raise ArgumentError("nonzero of an array without axes: pg.atleast_1d(x) has one")
    places, total = _places("nonzero", value, size)
    fills = list(fill_value) if isinstance(fill_value, list | tuple) else [fill_value] * value.ndim
    if len(fills) != value.ndim:
        raise ArgumentError(f"nonzero of {value.type}: {len(fills)} fill values")
    found, step = [], 1
    for extent in value.shape[::-1]:
        found.append((places // step) % extent if type(extent) is not int or extent else places)
        step *= extent
    is_there = arange(size) < total
    return tuple(
        [where(is_there, p, lift(f, INT64)) for p, f in zip(reversed(found), fills, strict=True)]
    )


@public_by_elements
def argwhere(x: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> Variable:
    """Return the positions of what is not zero, a row each; see `nonzero`.

    >>> pg.argwhere([0.0, 5.0, 2.0])
    tensor([[1],
            [2]], dtype=int64)
    """
    if size is None:
        found: Variable = constant(np.argwhere(elements("argwhere", x)))
        return found
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


@public_by_elements
def ix_(*args: ArrayLike) -> tuple[Variable, ...]:
    """Return vectors along an axis each, by which `x[ix_(rows, columns)]` takes a grid of elements.

    Booleans, which must be known, stand for their true positions. Raises `ShapeError` unless all
    are vectors.

    >>> [a.shape for a in pg.ix_([0, 1], [2, 3, 4])]
    [(2, 1), (1, 3)]
    """
    found = []
    for i, arg in enumerate(args):
        given = arg if handles((arg,)) else array_of(arg)
        given = lift_list(given)
        if given.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, not an array of shape {given.shape}")
        if given.dtype.kind == "b":
            given = np.flatnonzero(elements("ix_", given, ""))
        elif given.size == 0:
            given = astype(given, INT64)
        shape = tuple(-1 if j == i else 1 for j in range(len(args)))
        found.append(named_function("reshape")(given, shape))
    return tuple(found)


def lift_list(given: Any) -> Any:
    """Convert a list with handles in it to an array; return other objects as they are."""
    return constant(given) if isinstance(given, list | tuple) else given


@public_by_elements
def trim_zeros(x: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Variable:
    """Return `x` without the zeros at the front and at the back along each axis, or along `axis`.

    `trim` says where: "f", "b" or "fb". The elements must be known. Raises `ArgumentError` for
    another `trim`.

    >>> pg.trim_zeros([0.0, 1.0, 0.0])
    tensor([1.])
    """
    sides = trim.lower() if isinstance(trim, str) else None
    if sides not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim is 'f', 'b' or 'fb', not {trim!r:.40}")
    found = elements("trim_zeros", x, "")
    places = np.argwhere(found)
    axes = as_axes(axis, found.ndim)
    key = []
    for a, extent in enumerate(found.shape):
        if a not in axes:
            key.append(slice(None))
        elif not len(places):
            key.append(slice(0, 0))
        else:
            low = int(places[:, a].min()) if "f" in sides else 0
            key.append(slice(low, int(places[:, a].max()) + 1 if "b" in sides else extent))
    result: Variable = named_function("getitem")(lift_list(x), tuple(key))
    return result


# Distinct elements.


class UniqueAll(NamedTuple):
    """Distinct elements, their first positions, the inverse indices, and counts."""

    values: Variable
    indices: Variable
    inverse_indices: Variable
    counts: Variable


class UniqueCounts(NamedTuple):
    """Distinct elements, and counts."""

    values: Variable
    counts: Variable


class UniqueInverse(NamedTuple):
    """Distinct elements, and inverse indices."""

    values: Variable
    inverse_indices: Variable


@public_by_elements
def unique(
    x: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Return the unique elements of `x` in ascending order; along `axis`, the unique parts.

    On request, also return the first position of each, the index of each element of `x` among them,
    and their counts. `equal_nan` counts all NaNs as one. With `size` there are as many results: the
    first ones, padded by `fill_value` or the first of them, with its position and the count 0. The
    derivative is that of the element at its first position. Raises `ArgumentError` for a variable
    without `size`, and for one with an axis.

    >>> pg.unique([3, 1, 3])
    tensor([1, 3], dtype=int64)
    """
    flags = [require_flag("unique", f) for f in (return_index, return_inverse, return_counts)]
    if size is None:
        found = _unique_of_known(x, axis, equal_nan)
    elif axis is not None:
        raise ArgumentError("unique along an axis is of elements that are known")
    else:
        found = _unique_of_size(x, equal_nan, size, fill_value)
    wanted = [part for part, flag in zip(found[1:], flags, strict=True) if flag]
    return (found[0], *wanted) if wanted else found[0]


def _unique_of_known(x: Any, axis: int | None, equal_nan: bool) -> tuple[Variable, ...]:
    _, index, inverse, counts = np.unique(
        elements("unique", x), True, True, True, axis, equal_nan=equal_nan
    )
    values: Variable = named_function("take")(lift_list(x), index, axis)
    return values, constant(index), constant(inverse), constant(counts)


def _is_first(ordered: Variable, equal_nan: bool) -> Variable:
    """Return whether each sorted element differs from the one before it."""
    count = ordered.shape[0]
    if type(count) is int and count == 0:
        return not_equal(ordered, ordered)
    before, after = sliced(ordered, 0, 0, count - 1), sliced(ordered, 0, 1, count - 1)
    differs = not_equal(before, after)
    if equal_nan and ordered.type.is_float:
        differs = logical_and(differs, logical_not(logical_and(isnan(before), isnan(after))))
    return concatenate([lift([True]), differs])


@on_handles
def _unique_of_size(
    x: ArrayLike, equal_nan: bool, size: int, fill_value: Any
) -> tuple[Variable, ...]:
    value = lift(x)
    flat = reshaped(value, (value.size,))
    order = emit(sorting.argsort, flat, axis=0)
    ordered = take(flat, order, 0)
    first = _is_first(ordered, equal_nan)
    places, total = _places("unique", first, _require_size("unique", size) + 1)
    begin, end = sliced(places, 0, 0, size), sliced(places, 0, 1, size)
    is_there = arange(size) < total
    begin = where(is_there, begin, 0)
    values = _fill(ordered, begin, is_there, fill_value)
    which = cumsum(converted(first, INT64)) - 1
    inverse = take(which, emit(sorting.argsort, order, axis=0), 0)
    counts = where(is_there, minimum(end, flat.size) - begin, 0)
    return values, take(order, begin, 0), reshaped(inverse, value.shape), counts


def _fill(x: Variable, places: Variable, is_there: Variable, fill_value: Any) -> Variable:
    found = take(x, places, 0)
    if fill_value is None:
        return found
    return where(is_there, found, broadcasted(lift(fill_value, x.dtype), found.shape))


@public_by_elements
def unique_values(x: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Variable:
    """Return the elements once each, every NaN by itself; see `unique`.

    >>> pg.unique_values([3, 1, 3])
    tensor([1, 3], dtype=int64)
    """
    found: Variable = unique(x, equal_nan=False, size=size, fill_value=fill_value)
    return found


@public_by_elements
def unique_counts(x: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """Return the elements once each and how often each is there, every NaN by itself; see `unique`.

    >>> pg.unique_counts([3, 1, 3]).counts
    tensor([1, 2], dtype=int64)
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*found)


@public_by_elements
def unique_inverse(
    x: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverse:
    """Return the elements once each and which of them each element is; see `unique_values`.

    >>> pg.unique_inverse([3, 1, 3]).inverse_indices
    tensor([1, 0, 1], dtype=int64)
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*found)


@public_by_elements
def unique_all(x: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """Return the elements once each with all that `unique` tells of them, every NaN by itself.

    >>> pg.unique_all([3, 1, 3]).counts
    tensor([1, 2], dtype=int64)
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAll(*found)


# Sets.


@on_handles
def _concatenate(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the elements of both arrays, concatenated."""
    dtype = result_dtype(x1, x2)
    return concatenate([ravel(converted(lift(x), dtype)) for x in (x1, x2)])


@on_handles
def _sorted_members(x1: ArrayLike, x2: ArrayLike, which: str) -> tuple[Variable, Variable]:
    """Return sorted elements, and a mask of those in the set."""
    if which == "setdiff1d":
        value = lift(x1)
        ordered = emit(sorting.sort, reshaped(value, (value.size,)), axis=0)
        belongs = logical_not(named_function("isin")(ordered, x2))
    else:
        ordered = emit(sorting.sort, _concatenate(x1, x2), axis=0)
        inside = [named_function("isin")(ordered, x) for x in (x1, x2)]
        belongs = (logical_and if which == "intersect1d" else logical_xor)(*inside)
        if which == "setxor1d":
            belongs = logical_or(belongs, isnan(ordered))
    return ordered, logical_and(_is_first(ordered, True), belongs)


@on_handles
def _set_of_size(x: ArrayLike, mask: ArrayLike, size: int, fill_value: Any) -> Variable:
    value = lift(x)
    places, total = _places("unique", mask, size)
    is_there = arange(size) < total
    first = sliced(places, 0, 0, 1) if size else places
    return _fill(value, where(is_there, places, where(total > 0, first, 0)), is_there, fill_value)


def _set_operation(
    which: str, x1: ArrayLike, x2: ArrayLike, size: int | None, fill_value: Any
) -> Variable:
    if size is not None:
        return _set_of_size(*_sorted_members(x1, x2, which), _require_size(which, size), fill_value)
    first, second = (elements(which, x).ravel() for x in (x1, x2))
    joined = lift_list(x1) if which == "setdiff1d" else _concatenate(lift_list(x1), lift_list(x2))
    numbers = first if which == "setdiff1d" else np.concatenate([first, second])
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    inside = [np.isin(ordered, first), np.isin(ordered, second)]
    belongs = _BELONGS[which](*inside)
    if which == "setxor1d" and ordered.dtype.kind == "f":
        belongs |= np.isnan(ordered)
    _, firsts = np.unique(ordered, return_index=True)
    places = order[firsts[belongs[firsts]]]
    found: Variable = named_function("take")(joined, places)
    return found


# Membership of elements, of the first or of both arrays, in a set.
_BELONGS: dict[str, Callable[..., Any]] = {
    "intersect1d": np.logical_and,
    "setdiff1d": lambda _, second: ~second,
    "setxor1d": np.logical_xor,
}


@public_by_elements
def union1d(
    x1: ArrayLike, x2: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Variable:
    """Return the elements of either array once each, in ascending order; see `unique`.

    >>> pg.union1d([1, 2], [2, 3])
    tensor([1, 2, 3], dtype=int64)
    """
    both = _concatenate(lift_list(x1), lift_list(x2))
    found: Variable
    if size is None:
        _, index = np.unique(
            np.concatenate([elements("union1d", x).ravel() for x in (x1, x2)]), return_index=True
        )
        found = named_function("take")(both, index)
    else:
        found = unique(both, size=size, fill_value=fill_value)
    return found


@public_by_elements
def intersect1d(
    x1: ArrayLike,
    x2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Return the elements that both arrays have once each, in ascending order; see `unique`.

    `return_indices` adds the first positions in both arrays, for known elements. `assume_unique`
    has no effect.

    >>> pg.intersect1d([1, 2, 3], [2, 3, 4])
    tensor([2, 3], dtype=int64)
    """
    if not require_flag("intersect1d", return_indices):
        return _set_operation("intersect1d", x1, x2, size, fill_value)
    both = [elements("intersect1d", x) for x in (x1, x2)]
    _, first, second = np.intersect1d(both[0], both[1], return_indices=True)
    found = named_function("take")(lift_list(x1), first)
    return astype(found, result_dtype(x1, x2)), constant(first), constant(second)


@public_by_elements
def setdiff1d(
    x1: ArrayLike,
    x2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Variable:
    """Return the elements of the first array that the second lacks once each, in ascending order.

    With `assume_unique`, elements of the first array keep their order and repetitions; see
    `unique`.

    >>> pg.setdiff1d([1, 2, 3], [2])
    tensor([1, 3], dtype=int64)
    """
    if require_flag("assume_unique of setdiff1d", assume_unique) and size is None:
        left = ~np.isin(elements("setdiff1d", x1), elements("setdiff1d", x2))
        found: Variable = named_function("take")(lift_list(x1), np.flatnonzero(left))
        return found
    return _set_operation("setdiff1d", x1, x2, size, fill_value)


@public_by_elements
def setxor1d(
    x1: ArrayLike,
    x2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Variable:
    """Return the elements that one array alone has once each, in ascending order; see `unique`.

    A NaN in either array gives one NaN.

    >>> pg.setxor1d([1, 2], [2, 3])
    tensor([1, 3], dtype=int64)
    """
    return _set_operation("setxor1d", x1, x2, size, fill_value)
