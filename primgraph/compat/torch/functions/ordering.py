"""Order of elements: sorting, order statistics, sets, and searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.functions.results import array_like, in_family, takes_out
from primgraph.compat.torch.return_types import named_result
from primgraph.errors import ArgumentError, BoundsError, DTypeError, UnsupportedDTypeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle

__all__ = [
    "argsort",
    "bincount",
    "bucketize",
    "histc",
    "histogram",
    "isin",
    "kthvalue",
    "median",
    "mode",
    "msort",
    "nanmedian",
    "nanquantile",
    "quantile",
    "searchsorted",
    "sort",
    "topk",
    "unique",
    "unique_consecutive",
]


@takes_out
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the positions of the elements in order; equal elements keep their order.

    >>> torch.argsort(torch.tensor([2.0, 3.0, 1.0]))
    tensor([2, 0, 1])
    """
    if not input.ndim:
        return pg.zeros_like(input, "int64")
    if not descending:
        return pg.argsort(input, dim)
    return input.shape[dim] - 1 - pg.flip(pg.argsort(pg.flip(input, dim), dim), dim)


@takes_out
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sort the elements along an axis; return them with their positions. NaNs are the largest.

    >>> torch.sort(torch.tensor([2.0, 3.0, 1.0]), descending=True).values
    tensor([3., 2., 1.])
    """
    order = argsort(input, dim, descending)
    values = pg.take_along_axis(input, order, dim) if input.ndim else input
    return named_result("sort", values, order)


def msort(input: Any) -> Any:
    """Sort the elements along the first axis.

    >>> torch.msort(torch.tensor([2.0, 3.0, 1.0]))
    tensor([1., 2., 3.])
    """
    return pg.sort(input, 0)


@takes_out
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the `k` largest or smallest elements along an axis, in order, with positions.

    >>> torch.topk(torch.tensor([2.0, 3.0, 1.0]), 2).values
    tensor([3., 2.])
    """
    extent = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= extent:
        raise BoundsError(f"selected index k out of range: topk takes 0 to {extent}, not {k}")
    order = argsort(input, dim, largest)
    if input.ndim:
        order = order[(slice(None),) * as_axis(dim, input.ndim) + (slice(k),)]
    values = pg.take_along_axis(input, order, dim) if input.ndim else input
    return named_result("topk", values, order)


def _order_statistic(name: str, input: Any, place: Any, dim: int, keepdim: bool) -> Any:
    """Return the element at `place` of the sorted elements along an axis, and its position."""
    if not input.ndim:
        return named_result(name, input, pg.zeros_like(input, "int64"))
    order = pg.argsort(input, dim)
    if isinstance(place, int):
        index: Any = (slice(None),) * as_axis(dim, input.ndim) + (slice(place, place + 1),)
        position = order[index]
    else:
        position = pg.take_along_axis(order, place, dim)
    values = pg.take_along_axis(input, position, dim)
    if not keepdim:
        values, position = pg.squeeze(values, dim), pg.squeeze(position, dim)
    return named_result(name, values, position)


@takes_out
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the `k`-th smallest element along an axis, counted from 1, with its position.

    >>> torch.kthvalue(torch.tensor([2.0, 3.0, 1.0]), 2).values
    tensor(2.)
    """
    extent = input.shape[dim] if input.ndim else 1
    if not 1 <= k <= extent:
        raise BoundsError(f"kthvalue(): selected number k out of range: 1 to {extent}, not {k}")
    return _order_statistic("kthvalue", input, k - 1, dim, keepdim)


@takes_out
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, the lower one of two; along `dim`, with its position. NaN if there is one.

    >>> torch.median(torch.tensor([2.0, 3.0, 1.0, 4.0]))
    tensor(2.)
    """
    return _middle("median", input, dim, keepdim)


@takes_out
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of elements other than NaN; see `median`.

    >>> torch.nanmedian(torch.tensor([2.0, float("nan"), 1.0]))
    tensor(1.)
    """
    return _middle("nanmedian", input, dim, keepdim)


def _middle(name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None:
        return _middle(name, pg.flatten(input), 0, False)[0]
    extent = input.shape[dim] if input.ndim else 1
    place: Any = (extent - 1) // 2
    if input.type.dtype.kind == "f" and input.ndim:
        missing = pg.sum(pg.isnan(input), dim, True)
        if name == "nanmedian":
            place = pg.maximum((extent - missing - 1) // 2, 0)
        else:
            place = pg.where(missing > 0, extent - missing, place)
    return _order_statistic(name, input, place, dim, keepdim)


@takes_out
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent element along an axis, the smallest of several, with a position.

    >>> torch.mode(torch.tensor([1, 2, 2, 3])).values
    tensor(2)
    """
    if not input.ndim:
        return named_result("mode", input, pg.zeros_like(input, "int64"))
    lines = pg.moveaxis(input, dim, -1)
    order = pg.argsort(lines, -1)
    ordered = pg.take_along_axis(lines, order, -1)
    counts = pg.sum(pg.equal(ordered[..., :, None], ordered[..., None, :]), -1)
    first = pg.argmax(counts, -1, True)
    # Equal elements keep their order, so that the last of them is `count - 1` further on.
    last = first + pg.take_along_axis(counts, first, -1) - 1
    position = pg.take_along_axis(order, last, -1)
    values = pg.take_along_axis(lines, position, -1)
    values, position = pg.moveaxis(values, -1, dim), pg.moveaxis(position, -1, dim)
    if not keepdim:
        values, position = pg.squeeze(values, dim), pg.squeeze(position, dim)
    return named_result("mode", values, position)


@takes_out
def quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """Return quantiles along an axis, or of all elements, in the dtype of `input`.

    >>> torch.quantile(torch.tensor([1.0, 2.0, 3.0]), 0.25)
    tensor(1.5000)
    """
    return _quantile(pg.quantile, input, q, dim, keepdim, interpolation)


@takes_out
def nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """Return quantiles of elements other than NaN; see `quantile`.

    >>> torch.nanquantile(torch.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile(pg.nanquantile, input, q, dim, keepdim, interpolation)


def _quantile(
    function: Any, input: Any, q: Any, dim: int | None, keepdim: bool, method: str
) -> Any:
    if input.type.dtype.kind != "f":
        raise DTypeError("quantile() input tensor must be either float or double dtype")
    if isinstance(q, Handle):
        if q.type.dtype != input.type.dtype:
            raise DTypeError("quantile() q tensor must be same dtype as the input tensor")
        q = np.asarray(q)
    return pg.astype(function(input, q, dim, method, keepdim), input.type.dtype)


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements in order, or parts along `dim`, and what is asked for of them.

    >>> torch.unique(torch.tensor([3, 1, 3, 2]))
    tensor([1, 2, 3])
    """
    found = pg.unique(
        input, return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False
    )
    if not (return_inverse or return_counts):
        return found
    parts = [*found]
    if return_inverse:
        parts[1] = pg.reshape(parts[1], input.shape if dim is None else (-1,))
    return tuple(parts)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements, or parts along `dim`, that differ from the one before.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    values = pg.flatten(input) if dim is None else pg.moveaxis(input, dim, 0)
    rows = np.asarray(values).reshape(values.shape[0], -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    places = np.flatnonzero(starts)
    found = values[places]
    parts = [found if dim is None else pg.moveaxis(found, 0, dim)]
    if return_inverse:
        inverse = np.cumsum(starts) - 1
        parts.append(array_like(input, inverse.reshape(input.shape) if dim is None else inverse))
    if return_counts:
        parts.append(array_like(input, np.diff(np.append(places, len(rows)))))
    return parts[0] if len(parts) == 1 else tuple(parts)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """Return whether each element is one of `test_elements`.

    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    return pg.isin(elements, test_elements, invert=invert)


def _side(right: bool, side: str | None) -> str:
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(f"side= is 'left' or 'right', and agrees with right=, not {side!r:.60}")
    return side or ("right" if right else "left")


@takes_out
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Return the positions at which elements belong in sorted lines: along the last axis.

    >>> torch.searchsorted(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0.5, 3.0]))
    tensor([0, 1])
    """
    lines = sorted_sequence
    if sorter is not None:
        lines = pg.take_along_axis(lines, sorter, -1)
    place = _side(right, side)
    if lines.ndim == 1:
        found = pg.searchsorted(lines, input, place)
    else:
        compare = pg.less if place == "left" else pg.less_equal
        found = pg.sum(compare(lines[..., None, :], input[..., :, None]), -1)
    return pg.astype(found, "int32") if out_int32 else found


@takes_out
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Return the numbers of the intervals between sorted boundaries that elements are in.

    >>> torch.bucketize(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 3.0]))
    tensor([1, 1])
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each integer from 0 occurs, or add up weights.

    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if input.dtype.kind not in "iu":
        raise UnsupportedDTypeError(
            f"bincount is not implemented for {input.dtype}", hint="convert it: x.long()"
        )
    found = in_family(input, pg.bincount(input, weights, minlength))
    if weights is None:
        return found
    dtype = weights.type.dtype
    return pg.astype(found, dtype if dtype.kind == "f" else "float64")


@takes_out
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Count elements in `bins` intervals from `min` to `max`, or of all elements for equal ones.

    >>> torch.histc(torch.tensor([0.0, 1.0, 1.0, 3.0]), bins=4, min=0, max=4)
    tensor([1., 2., 0., 1.])
    """
    limits = None if min == max else (min, max)
    return pg.astype(pg.histogram(input, bins, limits)[0], input.type.dtype)


def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """Count elements in intervals; return the counts and the ends of the intervals.

    >>> torch.histogram(torch.tensor([0.0, 1.0, 1.0, 3.0]), 2, range=(0.0, 4.0)).hist
    tensor([3., 1.])
    """
    counts, edges = pg.histogram(input, bins, range, density or None, weight)
    dtype = input.type.dtype
    return named_result("histogram", pg.astype(counts, dtype), pg.astype(edges, dtype))
