"""Writes to computed positions, as functions: scatter, index_add and their like."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle

__all__ = [
    "diagonal_scatter",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "masked_scatter",
    "put",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
]


def _flat_places(name: str, input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return the positions of `input[.., index, ..]` among all elements, in the shape of `index`.

    Raises `ShapeError` for an index that is larger than `input` or `src`.
    """
    shape = tuple(input.shape) or (1,)
    axis = as_axis(dim, len(shape))
    wanted = tuple(index.shape) or (1,)
    sizes = [n for i, n in enumerate(shape) if i != axis]
    fits = len(wanted) == len(shape) and all(
        n <= m for n, m in zip([n for i, n in enumerate(wanted) if i != axis], sizes, strict=True)
    )
    if isinstance(src, Handle) and src.ndim:
        fits = fits and all(n <= m for n, m in zip(wanted, src.shape, strict=True))
    if not fits:
        raise ShapeError(
            f"Expected index {[*index.shape]} to be no larger than self {[*input.shape]} apart "
            f"from dimension {dim} and to be no larger than src in {name}"
        )
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{name}(): Expected dtype int64 for index, not {index.dtype}")
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    others = np.zeros([1] * len(shape), np.int64)
    for i, (count, step) in enumerate(zip(wanted, steps, strict=True)):
        if i != axis:
            places = np.arange(count) * step
            others = others + places.reshape([-1 if j == i else 1 for j in range(len(shape))])
    return pg.reshape(pg.reshape(index, wanted) * steps[axis] + others, (-1,))


def _part(src: Any, index: Any, input: Any) -> Any:
    """Return the elements of `src` that an index of that shape takes, along one axis."""
    count = prod(index.shape)
    if not isinstance(src, Handle) or not src.ndim:
        return pg.broadcast_to(pg.astype(src, input.type.dtype), (count,))
    if src.type.dtype != input.type.dtype:
        raise DTypeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype: {input.type.dtype} and "
            f"{src.type.dtype}"
        )
    return pg.reshape(src[tuple(slice(n) for n in index.shape)], (-1,))


def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """Write elements of `src`, or a number, to positions `index` along `dim`; the last one stays.

    `reduce` "add" or "multiply" adds or multiplies instead. Raises `ShapeError` for an index that
    is larger than `input` or `src`.

    >>> torch.zeros(2, 3).scatter(1, torch.tensor([[0], [2]]), 1.0)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    given = value if src is None else src
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise ArgumentError(f"reduce argument must be either add or multiply, not {reduce!r}")
        named = {"add": "sum", "multiply": "prod"}[reduce]
        updates = given if isinstance(given, Handle) else pg.full_like(index, given, input.dtype)
        return scatter_reduce(input, dim, index, updates, named)
    places = _flat_places("scatter", input, dim, index, given)
    found = pg.set_slice(pg.reshape(input, (-1,)), (places,), _part(given, index, input))
    return pg.reshape(found, input.shape)


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Add elements of `src` at positions `index` along `dim`; repeated ones add up.

    >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    places = _flat_places("scatter_add", input, dim, index, src)
    found = pg.scatter_add(pg.reshape(input, (-1,)), places, _part(src, index, input))
    return pg.reshape(found, input.shape)


def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Combine elements of `src` at positions `index` along `dim`, with those of `input`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin". Equal extremes share the derivative.

    >>> index, src = torch.tensor([0, 2, 2]), torch.tensor([4.0, 2.0, 3.0])
    >>> torch.ones(3).scatter_reduce(0, index, src, reduce="amax")
    tensor([4., 1., 3.])
    """
    places = _flat_places("scatter_reduce", input, dim, index, src)
    updates = _part(src, index, input)
    found = _combine(pg.reshape(input, (-1,)), places, updates, reduce, include_self)
    return pg.reshape(found, input.shape)


def _combine(base: Any, places: Any, updates: Any, reduce: str, include_self: bool) -> Any:
    """Combine updates at places of a vector with its elements."""
    counts = pg.scatter_add(pg.zeros_like(base, "int64"), places, pg.ones_like(places, "int64"))
    kept = base if include_self else pg.where(counts > 0, pg.zeros_like(base), base)
    if reduce in ("sum", "mean"):
        total = pg.scatter_add(kept, places, updates)
        if reduce == "sum":
            return total
        number = pg.maximum(counts + int(include_self), 1)
        return pg.divide(total, number) if base.type.is_inexact else pg.floor_divide(total, number)
    if reduce == "prod":
        return _multiply_at(base, places, updates, counts, include_self)
    if reduce not in ("amax", "amin"):
        raise ArgumentError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce!r:.60}"
        )
    every = pg.concatenate([base, updates])
    own = pg.astype(pg.asarray(np.arange(base.shape[0])), "int64")
    spots = pg.concatenate([own, places])
    fixed = pg.stop_gradient(every if reduce == "amax" else pg.negative(every))
    is_update = np.arange(every.shape[0]) >= base.shape[0]
    keys = (
        [fixed, spots] if include_self else [fixed, pg.asarray(is_update.astype(np.int64)), spots]
    )
    order = pg.lexsort(keys)
    last = pg.searchsorted(pg.take(spots, order), own, "right") - 1
    extreme = pg.take(pg.take(fixed, order), last)
    chosen = pg.equal(fixed, pg.take(extreme, spots))
    if not include_self:
        hit = pg.concatenate([counts == 0, pg.ones_like(places, "bool")])
        chosen = pg.logical_and(chosen, hit)
    nothing = pg.zeros_like(base)
    total = pg.scatter_add(nothing, spots, pg.where(chosen, every, pg.zeros_like(every)))
    return total / pg.scatter_add(nothing, spots, pg.astype(chosen, base.type.dtype))


def _multiply_at(base: Any, places: Any, updates: Any, counts: Any, include_self: bool) -> Any:
    """Multiply at places, one update of each place at a time."""
    found = base if include_self else pg.where(counts > 0, pg.ones_like(base), base)
    spots = np.asarray(places)
    order = np.argsort(spots, kind="stable")
    ordered = spots[order]
    rank = np.empty_like(spots)
    rank[order] = np.arange(len(spots)) - np.searchsorted(ordered, ordered)
    for k in range(int(rank.max(initial=-1)) + 1):
        chosen = np.flatnonzero(rank == k)
        factors = pg.set_slice(pg.ones_like(base), (spots[chosen],), pg.take(updates, chosen))
        found = pg.multiply(found, factors)
    return found


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """Add slices of `source`, times `alpha`, to slices `index` along `dim`.

    >>> torch.zeros(3).index_add(0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    if source.type.dtype != input.type.dtype:
        raise DTypeError(
            f"index_add_(): self and source must have the same scalar type, not "
            f"{input.type.dtype} and {source.type.dtype}"
        )
    updates = source if alpha == 1 else pg.multiply(source, alpha)
    return pg.scatter_add(input, index, updates, dim)


def _along(input: Any, dim: int, index: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * as_axis(dim, input.ndim), index)


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """Write slices of `source` to slices `index` along `dim`.

    >>> torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return pg.set_slice(input, _along(input, dim, index), source)


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Write a number to slices `index` along `dim`.

    >>> torch.zeros(3).index_fill(0, torch.tensor([1]), 5.0)
    tensor([0., 5., 0.])
    """
    return pg.set_slice(input, _along(input, dim, index), pg.astype(value, input.type.dtype))


def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Combine slices of `source` with slices `index` along `dim`; see `scatter_reduce`.

    >>> index, source = torch.tensor([0, 0]), torch.tensor([2.0, 3.0])
    >>> torch.ones(2).index_reduce(0, index, source, "prod")
    tensor([6., 1.])
    """
    axis = as_axis(dim, input.ndim)
    shape = [-1 if i == axis else 1 for i in range(input.ndim)]
    places = pg.broadcast_to(pg.reshape(index, shape), source.shape)
    return scatter_reduce(input, dim, places, source, reduce, include_self=include_self)


def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Write values to `input[indices]`, or add them, where repeated positions add up.

    >>> torch.zeros(3).index_put((torch.tensor([1, 1]),), torch.tensor(2.0), accumulate=True)
    tensor([0., 4., 0.])
    """
    index = tuple(slice(None) if i is None else i for i in indices)
    if not accumulate:
        return pg.set_slice(input, index, values)
    places = pg.getitem(pg.asarray(np.arange(input.type.size).reshape(input.shape)), index)
    updates = pg.broadcast_to(pg.astype(values, input.type.dtype), places.shape)
    return put(input, places, updates, accumulate=True)


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Write elements to positions among all elements, or add them.

    >>> torch.put(torch.zeros(2, 2), torch.tensor([3]), torch.tensor([1.0]))
    tensor([[0., 0.],
            [0., 1.]])
    """
    flat, places = pg.reshape(input, (-1,)), pg.reshape(index, (-1,))
    places = pg.where(places < 0, places + input.type.size, places)
    updates = pg.reshape(source, (-1,))
    if accumulate:
        found = pg.scatter_add(flat, places, updates)
    else:
        found = pg.set_slice(flat, (places,), updates)
    return pg.reshape(found, input.shape)


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Write elements of `source`, in order, where the mask is true.

    >>> torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """
    whole = pg.broadcast_to(input, np.broadcast_shapes(tuple(input.shape), tuple(mask.shape)))
    chosen = np.broadcast_to(np.asarray(mask), whole.shape)
    places = np.flatnonzero(chosen)
    if len(places) > source.type.size:
        raise ShapeError(f"masked_scatter: {len(places)} places and {source.type.size} elements")
    updates = pg.reshape(source, (-1,))[: len(places)]
    return pg.reshape(pg.set_slice(pg.reshape(whole, (-1,)), (places,), updates), whole.shape)


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """Return `input` with `src` in place of one slice along `dim`.

    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return pg.set_slice(input, _along(input, dim, index), src)


def slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """Return `input` with `src` in place of the slices from `start` to `end` along `dim`.

    >>> torch.slice_scatter(torch.zeros(3), torch.ones(2), start=1)
    tensor([0., 1., 1.])
    """
    return pg.set_slice(input, _along(input, dim, slice(start, end, step)), src)


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return `input` with `src` in place of a diagonal.

    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    numbers = np.arange(input.type.size).reshape(input.shape)
    places = np.diagonal(numbers, offset, dim1, dim2)
    flat = pg.set_slice(pg.reshape(input, (-1,)), (places.reshape(-1),), pg.reshape(src, (-1,)))
    return pg.reshape(flat, input.shape)
