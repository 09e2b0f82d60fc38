"""unique and set operations: distinct elements.

With known elements, of numbers, arrays and tensors, there are as many results as in NumPy. With
variables there are `size` results, as in JAX: further ones are dropped, missing ones are filled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.types import INT64
from primgraph.operators.call import handle_operator
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
from primgraph.operators.index.positions import first_places, lift_list, require_size
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.promotion import (
    broadcast_to_shape,
    convert_dtype,
    lift,
    require_flag,
    result_dtype,
)
from primgraph.operators.reduce.reductions import cumsum
from primgraph.operators.shape.creation import arange, astype
from primgraph.operators.shape.joining import concatenate, slice_axis
from primgraph.operators.shape.shaping import ravel, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import sorting

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
    before, after = slice_axis(ordered, 0, 0, count - 1), slice_axis(ordered, 0, 1, count - 1)
    differs = not_equal(before, after)
    if equal_nan and ordered.type.is_float:
        differs = logical_and(differs, logical_not(logical_and(isnan(before), isnan(after))))
    return concatenate([lift([True]), differs])


@handle_operator
def _unique_of_size(
    x: ArrayLike, equal_nan: bool, size: int, fill_value: Any
) -> tuple[Variable, ...]:
    value = lift(x)
    flat = reshape_to(value, (value.size,))
    order = emit(sorting.argsort, flat, axis=0)
    ordered = take(flat, order, 0)
    first = _is_first(ordered, equal_nan)
    places, total = first_places("unique", first, require_size("unique", size) + 1)
    begin, end = slice_axis(places, 0, 0, size), slice_axis(places, 0, 1, size)
    is_there = arange(size) < total
    begin = where(is_there, begin, 0)
    values = _fill(ordered, begin, is_there, fill_value)
    which = cumsum(convert_dtype(first, INT64)) - 1
    inverse = take(which, emit(sorting.argsort, order, axis=0), 0)
    counts = where(is_there, minimum(end, flat.size) - begin, 0)
    return values, take(order, begin, 0), reshape_to(inverse, value.shape), counts


def _fill(x: Variable, places: Variable, is_there: Variable, fill_value: Any) -> Variable:
    found = take(x, places, 0)
    if fill_value is None:
        return found
    return where(is_there, found, broadcast_to_shape(lift(fill_value, x.dtype), found.shape))


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


@handle_operator
def _concatenate(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the elements of both arrays, concatenated."""
    dtype = result_dtype(x1, x2)
    return concatenate([ravel(convert_dtype(lift(x), dtype)) for x in (x1, x2)])


@handle_operator
def _sorted_members(x1: ArrayLike, x2: ArrayLike, which: str) -> tuple[Variable, Variable]:
    """Return sorted elements, and a mask of those in the set."""
    if which == "setdiff1d":
        value = lift(x1)
        ordered = emit(sorting.sort, reshape_to(value, (value.size,)), axis=0)
        belongs = logical_not(named_function("isin")(ordered, x2))
    else:
        ordered = emit(sorting.sort, _concatenate(x1, x2), axis=0)
        inside = [named_function("isin")(ordered, x) for x in (x1, x2)]
        belongs = (logical_and if which == "intersect1d" else logical_xor)(*inside)
        if which == "setxor1d":
            belongs = logical_or(belongs, isnan(ordered))
    return ordered, logical_and(_is_first(ordered, True), belongs)


@handle_operator
def _set_of_size(x: ArrayLike, mask: ArrayLike, size: int, fill_value: Any) -> Variable:
    value = lift(x)
    places, total = first_places("unique", mask, size)
    is_there = arange(size) < total
    first = slice_axis(places, 0, 0, 1) if size else places
    return _fill(value, where(is_there, places, where(total > 0, first, 0)), is_there, fill_value)


def _set_operation(
    which: str, x1: ArrayLike, x2: ArrayLike, size: int | None, fill_value: Any
) -> Variable:
    if size is not None:
        return _set_of_size(*_sorted_members(x1, x2, which), require_size(which, size), fill_value)
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
