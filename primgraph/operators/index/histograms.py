"""Histograms, with constant bins or a given number of bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.types import FLOAT64, INT64
from primgraph.operators.call import handle_operator
from primgraph.operators.elementwise.arithmetic import divide, subtract
from primgraph.operators.elementwise.logic import (
    equal,
    greater_equal,
    less,
    less_equal,
    logical_and,
    where,
)
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.known_elements import elements, public_by_elements
from primgraph.operators.index.positions import lift_list
from primgraph.operators.index.scatter import scatter_add
from primgraph.operators.index.sorting import searchsorted
from primgraph.operators.promotion import (
    array_of,
    convert_dtype,
    inexact_dtype,
    lift,
    require_flag,
    require_integer,
)
from primgraph.operators.reduce import reductions
from primgraph.operators.shape.creation import linspace, stop_gradient, zeros
from primgraph.operators.shape.joining import slice_axis
from primgraph.operators.shape.manipulation import unstack
from primgraph.operators.shape.shaping import ravel, reshape_to
from primgraph.operators.variable import Variable, handles


@public_by_elements
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Variable:
    """Count how often each of 0, 1, 2, ... is among the integers of a vector, as int64.

    With `weights`, return the sums of these, in float64, which are differentiable. The number of
    counts follows from the largest integer, and is at least `minlength`; with `length` it is fixed,
    and larger integers are dropped. Raises `ArgumentError` for a variable without `length` and for
    known negative integers, `DTypeError` for dtypes other than integers.

    >>> pg.bincount([0, 2, 2])
    tensor([1, 0, 2], dtype=int64)
    """
    least = require_integer("minlength", minlength)
    if length is None:
        known = elements("bincount", x, "length=")
        if known.dtype.kind not in "iub" or np.any(known < 0):
            raise ArgumentError(f"bincount takes integers from 0 on, not {known.dtype}")
        length = max(int(known.max()) + 1 if known.size else 0, least)
    return _bincount(lift_list(x), weights, length)


@handle_operator
def _bincount(x: ArrayLike, weights: ArrayLike | None, length: int) -> Variable:
    value = lift(x)
    if value.dtype.kind not in "iub":
        raise DTypeError(f"bincount takes integers, not {value.type}")
    if value.ndim != 1:
        raise ShapeError(f"bincount takes a vector, not {value.type}")
    places = convert_dtype(value, INT64)
    inside = logical_and(greater_equal(places, 0), less(places, length))
    added = lift(1) if weights is None else convert_dtype(lift(weights), FLOAT64)
    if weights is not None and added.shape != value.shape:
        raise ShapeError(f"bincount of {value.type}: weights {added.type} are not one for each")
    counts = zeros((length + 1,), INT64 if weights is None else FLOAT64)
    return scatter_add(counts, where(inside, places, length), added)[:length]


def _ends(x: Variable, range: Any) -> tuple[Any, Any]:
    """Return the first and the last edge of all bins."""
    if range is not None:
        first, last = range
    elif type(x.size) is int and x.size == 0:
        first, last = 0.0, 1.0
    else:
        value = stop_gradient(x)
        first, last = reductions.min(value), reductions.max(value)
    if handles((first, last)):
        same = equal(first, last)
        return where(same, first - 0.5, first), where(same, last + 0.5, last)
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        raise ArgumentError(f"bins cannot range from {first!r} to {last!r}")
    return (first - 0.5, last + 0.5) if first == last else (first, last)


@handle_operator
def _edges(x: ArrayLike, bins: Any, range: Any) -> Variable:
    """Return the edges of all bins, which are given, or evenly spaced."""
    value = lift(x)
    if not handles((bins,)) and np.ndim(bins) == 0:
        count = require_integer("histogram", bins)
        if count < 1:
            raise ArgumentError(f"a histogram has at least one bin, not {count}")
        first, last = _ends(value, range)
        return linspace(first, last, count + 1, dtype=inexact_dtype(value, first, last))
    if not handles((bins,)) and np.any(np.diff(array_of(bins)) < 0):
        raise ArgumentError("the edges of bins are in ascending order")
    edges = lift(bins)
    if edges.ndim != 1:
        raise ShapeError(f"the edges of bins are a vector, not {edges.type}")
    return edges


def _bins(x: Any, bins: Any, range: Any, weights: Any) -> Any:
    """Return the given bins, or NumPy's edges for a named rule."""
    if not isinstance(bins, str):
        return bins
    if weights is not None:
        raise ArgumentError("the number of bins is found by a rule where there are no weights")
    return np.histogram_bin_edges(elements("histogram", x, ""), bins, range)


@public_by_elements
def histogram_bin_edges(
    x: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None
) -> Variable:
    """Return the edges of the bins of `histogram`, one more than there are bins.

    >>> pg.histogram_bin_edges([0.0, 2.0], 2)
    tensor([0., 1., 2.])
    """
    return _edges(x, _bins(x, bins, range, weights), range)


def _bin_indices(x: Variable, edges: Variable) -> tuple[Variable, Variable]:
    """Return the bin of each element, and whether it is in one; the last bin includes its last
    edge."""
    count = edges.shape[0] - 1
    last = slice_axis(edges, 0, count, 1)
    inside = logical_and(greater_equal(x, slice_axis(edges, 0, 0, 1)), less_equal(x, last))
    place = searchsorted(edges, x, "right") - 1
    return where(equal(x, last), count - 1, place), inside


@handle_operator
def _counts(
    x: ArrayLike, edges: Variable, density: bool, weights: ArrayLike | None
) -> Variable:  # fmt: skip
    value = ravel(lift(x))
    place, inside = _bin_indices(value, edges)
    count = edges.shape[0] - 1
    if weights is None:
        dtype, added = INT64, lift(1)
    else:
        added = ravel(lift(weights))
        dtype = added.dtype
        if added.shape != value.shape:
            raise ShapeError(f"histogram of {value.type}: weights {added.type} do not fit")
    counts = scatter_add(zeros((count + 1,), dtype), where(inside, place, count), added)[:count]
    if not density:
        return counts
    widths = subtract(slice_axis(edges, 0, 1, count), slice_axis(edges, 0, 0, count))
    return divide(divide(counts, convert_dtype(widths, FLOAT64)), reductions.sum(counts))


@public_by_elements
def histogram(
    x: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Variable, Variable]:
    """Count the elements in each bin, or sum their weights; return counts and bin edges.

    `bins` is their number, the edges in ascending order, or the name of a rule for known elements.
    Bins by number are evenly spaced within `range`, or between the extrema. A bin includes its
    lower edge, and the last one both edges. With `density` the bins have total area 1. Weights have
    derivatives, counts have none. Raises `ArgumentError` for unsorted edges.

    >>> pg.histogram([0.0, 1.0, 1.0, 2.0], 2)
    (tensor([1, 3], dtype=int64), tensor([0., 1., 2.]))
    """
    edges = _edges(x, _bins(x, bins, range, weights), range)
    flag = density is not None and require_flag("histogram", density)
    return _counts(x, edges, flag, weights), edges


@public_by_elements
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Variable, tuple[Variable, ...]]:
    """Count the points in each box of bins along several axes; return counts and edges.

    `sample` is a matrix with a point in each row, or has a vector for each axis. Bins and ranges
    are for all axes or one each; see `histogram`. The counts are float64.

    >>> pg.histogramdd([[0.0, 0.0], [1.0, 1.0]], 2)[0]
    tensor([[0., 0.],
            [0., 2.]])
    """
    axes = list(sample) if isinstance(sample, list | tuple) else _columns(sample)
    each = list(bins) if _is_each(bins, len(axes)) else [bins] * len(axes)
    if not axes:
        raise ShapeError("histogramdd takes points with an axis at least; sample has none")
    if not (range is None or isinstance(range, Sequence | np.ndarray)) or isinstance(range, str):
        raise ArgumentError(f"range of histogramdd is a pair for each axis, not {range!r:.40}")
    ranges = [None] * len(axes) if range is None else list(range)
    if len(each) != len(axes) or len(ranges) != len(axes):
        raise ArgumentError(f"histogramdd of {len(axes)} axes takes bins and ranges for each")
    edges = [_edges(x, b, r) for x, b, r in zip(axes, each, ranges, strict=True)]
    flag = density is not None and require_flag("histogramdd", density)
    return _boxes(axes, edges, flag, weights), tuple(edges)


def _is_each(bins: Any, count: int) -> bool:
    return isinstance(bins, list | tuple) or (isinstance(bins, np.ndarray) and bins.ndim == 1)


@handle_operator
def _columns(sample: ArrayLike) -> list[Variable]:
    value = lift(sample)
    if value.ndim == 1:
        return [value]
    if value.ndim != 2:
        raise ShapeError(f"histogramdd takes a matrix of points, not {value.type}")
    return list(unstack(value, axis=1))


@handle_operator
def _boxes(
    axes: Sequence[ArrayLike], edges: Sequence[Variable], density: bool, weights: Any
) -> Variable:
    extents = tuple(e.shape[0] - 1 for e in edges)
    place, inside = None, None
    for x, edge, extent in zip(axes, edges, extents, strict=True):
        number, within = _bin_indices(lift(x), edge)
        place = number if place is None else place * extent + number
        inside = within if inside is None else logical_and(inside, within)
    assert place is not None
    assert inside is not None
    total = math.prod(extents)
    added = lift(1.0) if weights is None else convert_dtype(lift(weights), FLOAT64)
    counts = scatter_add(zeros((total + 1,), FLOAT64), where(inside, place, total), added)
    found = reshape_to(counts[:total], extents)
    if not density:
        return found
    whole = reductions.sum(found)
    for i, (edge, extent) in enumerate(zip(edges, extents, strict=True)):
        widths = subtract(slice_axis(edge, 0, 1, extent), slice_axis(edge, 0, 0, extent))
        found = divide(
            found, reshape_to(widths, (*(1,) * i, extent, *(1,) * (len(extents) - i - 1)))
        )
    return divide(found, whole)


@public_by_elements
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Variable, Variable, Variable]:
    """Count the points `x`, `y` in each rectangle; return counts and edges; see `histogramdd`.

    >>> pg.histogram2d([0.0, 1.0], [0.0, 1.0], 2)[0]
    tensor([[1., 0.],
            [0., 1.]])
    """
    if _is_each(bins, 2) and len(bins) not in (1, 2):
        bins = [bins, bins]
    found, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return found, first, second
