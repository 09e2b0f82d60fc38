"""Sorting, searching and order statistics. Sorts are stable.

A sorted array has the derivatives of its elements; positions have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.operators.call import handle_operator, public
from primgraph.operators.elementwise.logic import where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take, take_along_axis
from primgraph.operators.promotion import (
    axis_of,
    lift,
    require_integer,
    result_dtype,
)
from primgraph.operators.shape.joining import flip, slice_axis
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import sorting


def _line(name: str, x: ArrayLike, axis: int | None) -> tuple[Variable, int]:
    """Return the array and its axis; the flattened array without an axis."""
    value = lift(x)
    if axis is None:
        return reshape_to(value, (value.size,)), 0
    return value, axis_of(name, value, axis)


@public
def sort(
    x: ArrayLike, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> Variable:
    """Sort the elements along `axis` in ascending order, NaNs last; all without an axis.

    `kind` and `stable` have no effect: the sort is stable, and each of equal elements has its own
    derivative. Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.sort([3.0, 1.0, 2.0])
    tensor([1., 2., 3.])
    """
    value, number = _line("sort", x, axis)
    return emit(sorting.sort, value, axis=number)


@public
def argsort(
    x: ArrayLike, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> Variable:
    """Return positions along `axis`, as int64, of the elements in ascending order; see `sort`.

    >>> pg.argsort([3.0, 1.0, 2.0])
    tensor([1, 2, 0], dtype=int64)
    """
    value, number = _line("argsort", x, axis)
    return emit(sorting.argsort, value, axis=number)


@public
def partition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Variable:
    """Return the elements along `axis`, element `kth` where it is when all are sorted.

    Smaller ones are before it and larger ones after it, here in ascending order. Raises
    `ShapeError` for an axis that `x` lacks, `ArgumentError` for positions out of bounds.

    >>> pg.partition([3.0, 1.0, 2.0], 1)[1]
    tensor(2.)
    """
    value, number = _line("partition", x, axis)
    _require_within("partition", kth, value.shape[number])
    return emit(sorting.sort, value, axis=number)


@public
def argpartition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Variable:
    """Return positions along `axis` of what `partition` gives, as int64.

    >>> pg.argpartition([3.0, 1.0, 2.0], 1)[1]
    tensor(2, dtype=int64)
    """
    value, number = _line("argpartition", x, axis)
    _require_within("argpartition", kth, value.shape[number])
    return emit(sorting.argsort, value, axis=number)


def _require_within(name: str, kth: Any, extent: int) -> None:
    for k in kth if isinstance(kth, Sequence | np.ndarray) else [kth]:
        number = require_integer(name, k)
        if type(extent) is int and not -extent <= number < extent:
            raise ArgumentError(f"{name}: there is no element {number} among {extent}")


@public
def lexsort(keys: Sequence[ArrayLike] | ArrayLike, axis: int = -1) -> Variable:
    """Return positions along `axis` of elements sorted by several keys, the last one first.

    Raises `ShapeError` for keys of different shapes, `ArgumentError` if there are none.

    >>> pg.lexsort([[3, 1, 2]])
    tensor([1, 2, 0], dtype=int64)
    """
    given = [lift(k) for k in keys]  # type: ignore[union-attr]
    if not given:
        raise ArgumentError("lexsort takes at least one key")
    if any(k.shape != given[0].shape for k in given):
        raise ShapeError(f"lexsort takes keys of one shape, not {[str(k.type) for k in given]}")
    number = axis_of("lexsort", given[0], axis)
    order = emit(sorting.argsort, given[0], axis=number)
    for key in given[1:]:
        sorted_so_far = emit(sorting.reorder, key, order, axis=number)
        again = emit(sorting.argsort, sorted_so_far, axis=number)
        order = emit(sorting.reorder, order, again, axis=number)
    return order


@public
def searchsorted(
    x: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None
) -> Variable:
    """Return the positions of the elements of `v` in the ascending vector `x`, as int64.

    These are before equal elements, or after them if `side` is "right". `sorter` has the positions
    that sort `x`. Raises `ShapeError` if `x` is not a vector, `ArgumentError` for another side.

    >>> pg.searchsorted([1.0, 2.0, 3.0], 2.5)
    tensor(2, dtype=int64)
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted takes side 'left' or 'right', not {side!r:.40}")
    dtype = result_dtype(x, v)
    vector, value = lift(x, dtype), lift(v, dtype)
    if vector.ndim != 1:
        raise ShapeError(f"searchsorted takes a vector in ascending order, not {vector.type}")
    if sorter is not None:
        vector = take(vector, sorter)
    return emit(sorting.searchsorted, vector, value, right=side == "right")


@public
def digitize(x: ArrayLike, bins: Any, right: bool = False) -> Variable:
    """Return the bin number of each element, as int64, by the ascending or descending `bins`.

    Bin `i` has `bins[i - 1] <= x < bins[i]`; if `right`, it includes its upper bound instead of its
    lower one. Raises `ShapeError` for bins that are not a vector, `ArgumentError` for known bins
    that are not monotonic; others are assumed to be.

    >>> pg.digitize([0.5, 1.5], [0.0, 1.0, 2.0])
    tensor([1, 2], dtype=int64)
    """
    side = "left" if right else "right"
    if not isinstance(bins, Variable):
        steps = np.diff(np.asarray(bins))
        if np.all(steps >= 0):
            return searchsorted(bins, x, side)
        if not np.all(steps <= 0):
            raise ArgumentError("digitize takes bins in ascending or descending order")
    edges = lift(bins)
    turned = edges.shape[0] - searchsorted(flip(edges, 0), x, side)
    if not isinstance(bins, Variable):
        return turned
    first, last = (slice_axis(edges, 0, i, 1) for i in (0, edges.shape[0] - 1))
    return where(first > last, turned, searchsorted(edges, x, side))


class TopK(NamedTuple):
    """Largest elements in descending order, and their positions."""

    values: Variable
    indices: Variable


@handle_operator
def _top_k(x: ArrayLike, k: int, axis: int) -> tuple[Variable, Variable]:
    value = lift(x)
    number = axis_of("top_k", value, axis)
    count, extent = require_integer("top_k", k), value.shape[number]
    if count < 0 or (type(extent) is int and count > extent):
        raise ArgumentError(f"top_k of {value.type}: there are no {count} elements along {axis}")
    # To keep the first of equal elements first, the order is reversed before and after sorting.
    order = emit(sorting.argsort, flip(value, number), axis=number)
    indices = slice_axis(extent - 1 - flip(order, number), number, 0, count)
    return take_along_axis(value, indices, number), indices


@public
def top_k(x: ArrayLike, k: int, axis: int = -1) -> TopK:
    """Return the `k` largest elements along `axis` in descending order, and their int64 positions.

    Of equal elements the first comes first; NaNs are the largest. Raises `ShapeError` for an axis
    that `x` lacks, `ArgumentError` if there are less than `k`.

    >>> pg.top_k([3.0, 1.0, 2.0], 2)
    TopK(values=tensor([3., 2.]), indices=tensor([0, 2], dtype=int64))
    """
    return TopK(*_top_k(x, k, axis))
