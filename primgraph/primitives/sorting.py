"""Sorting and searching. The tangent of a sorted array is that of its elements, reordered alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.facts.passes import BY_ORDER
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import IndexMap, Lookup, identity, mixed_along, tied_map
from primgraph.ir.primitive import Linear, Primitive, Rule, Types, primitive
from primgraph.ir.types import INT64, TensorType, check_axis
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import equal, less, less_equal, logical_and, logical_not, logical_or
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, with_batch_axis


def _comparisons(x: TensorType, *, axis: int) -> int:
    """Return the operation count, about `log2(n)` per element; 16 for a symbolic size."""
    extent = x.shape[axis]
    return x.size * (16 if isinstance(extent, Dim) else max(extent - 1, 0).bit_length())


@primitive(impl=lambda x, *, axis: np.sort(x, axis), flops=_comparisons)
def sort(x: TensorType, *, axis: int) -> TensorType:
    """Return the elements along `axis` in ascending order, NaNs last."""
    check_axis("sort", axis, x)
    return x


@sort.jvp()
def _sort_jvp(z: Value, x: Value, d: Value, *, axis: int) -> Value:
    """Return the tangents in the order of their elements; the sort is stable for equal ones."""
    return reorder(d, argsort(x, axis=axis), axis=axis)


@sort.batch
def _sort_batch(batched: tuple[bool, ...], x: Value, *, axis: int) -> Value:
    return sort(x, axis=axis + 1)


@primitive(impl=lambda x, *, axis: np.argsort(x, axis, "stable"), flops=_comparisons)
def argsort(x: TensorType, *, axis: int) -> TensorType:
    """Return the indices that sort `x` along `axis` in ascending order; the sort is stable."""
    check_axis("argsort", axis, x)
    return x.with_dtype(INT64)


@argsort.batch
def _argsort_batch(batched: tuple[bool, ...], x: Value, *, axis: int) -> Value:
    return argsort(x, axis=axis + 1)


def _reordered(name: str, x: TensorType, index: TensorType, axis: int) -> TensorType:
    """Return the type of the elements of `x`, after checking that there are as many positions."""
    check_axis(name, axis, x)
    if index.dtype != INT64:
        raise DTypeError(f"{name} takes positions in int64, not {index}")
    if index.shape != x.shape:
        raise ShapeError(f"{name} of {x} takes as many positions, not {index}")
    return x


@primitive(
    impl=lambda x, index, *, axis: np.take_along_axis(x, index, axis),
    linear=(0,),
    moves=True,
    flops=0,
)
def reorder(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    """Return the elements along `axis` in the order of `index`, a permutation of the positions."""
    return _reordered("reorder", x, index, axis)


@reorder.transpose
def _reorder_transpose(ct: Value, x: Linear, index: Value, *, axis: int) -> tuple[Value, None]:
    return reorder_back(ct, index, axis=axis), None


@reorder.index_map
def _reorder_map(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
    found = identity(results[0].shape)
    if i:
        return found
    every = tuple(range(len(found.extents)))
    places = [Lookup(1, every) if a == axis else p for a, p in enumerate(found.operand)]
    return replace(found, operand=tuple(places))


@reorder.batch
def _reorder_batch(batched: tuple[bool, ...], x: Value, index: Value, *, axis: int) -> Value:
    x, index = with_batch_axis(batched, (x, index))
    return reorder(x, index, axis=axis + 1)


def _put_along_axis(x: Any, index: Any, *, axis: int) -> Any:
    result = np.empty_like(x)
    np.put_along_axis(result, index, x, axis)
    return result


@primitive(impl=_put_along_axis, linear=(0,), moves=True, flops=0)
def reorder_back(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    """Return the elements along `axis` at the positions `index`: the inverse of `reorder`."""
    return _reordered("reorder_back", x, index, axis)


@reorder_back.transpose
def _reorder_back_transpose(ct: Value, x: Linear, index: Value, *, axis: int) -> tuple[Value, None]:
    return reorder(ct, index, axis=axis), None


@reorder_back.batch
def _reorder_back_batch(batched: tuple[bool, ...], x: Value, index: Value, *, axis: int) -> Value:
    x, index = with_batch_axis(batched, (x, index))
    return reorder_back(x, index, axis=axis + 1)


@primitive(
    impl=lambda x, order, *, axis: np.sort(x, axis),
    flops=lambda x, order, *, axis: 2 * x.size,
)
def sort_by(x: TensorType, order: TensorType, *, axis: int) -> TensorType:
    """Return `sort(x)`, given its `argsort`: a reordering, unless elements are equal or NaN."""
    return _reordered("sort_by", x, order, axis)


@sort_by.jvp(0)
def _sort_by_jvp(z: Value, x: Value, order: Value, d: Value, *, axis: int) -> Value:
    return reorder(d, order, axis=axis)


@sort_by.batch
def _sort_by_batch(batched: tuple[bool, ...], x: Value, order: Value, *, axis: int) -> Value:
    x, order = with_batch_axis(batched, (x, order))
    return sort_by(x, order, axis=axis + 1)


sort.declare(BY_ORDER, (argsort, sort_by))


def _searchsorted(a: Any, v: Any, *, right: bool) -> Any:
    return np.asarray(np.searchsorted(a, v, "right" if right else "left"))


@primitive(impl=_searchsorted, flops=lambda a, v, **params: v.size * 16)
def searchsorted(a: TensorType, v: TensorType, *, right: bool) -> TensorType:
    """Return the insertion positions of the elements of `v` in `a`, which is in ascending order.

    Positions are before equal elements, or after them if `right`.
    """
    if a.ndim != 1:
        raise ShapeError(f"searchsorted takes a vector in ascending order, not {a}")
    if a.dtype != v.dtype:
        raise DTypeError(f"searchsorted takes equal dtypes, not {a} and {v}")
    return v.with_dtype(INT64)


@searchsorted.index_map
def _searchsorted_map(k: int, i: int, operands: Types, results: Types, *, right: bool) -> IndexMap:
    ties = [None] if i == 0 else range(operands[1].ndim)
    return tied_map(operands[i].shape, results[0].shape, ties, exact=False)


def _mixes_axis(op: Primitive[Value]) -> None:
    @op.index_map
    def map_rule(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
        return mixed_along(operands[i].shape, results[0].shape, (axis,))


for _op in (sort, argsort, reorder_back, sort_by):
    _mixes_axis(_op)


def _comes_first(op: Rule, a: Value, v: Value) -> Value:
    """Tell whether `a` precedes `v` in ascending order, with NaNs last."""
    return logical_or(op(a, v), logical_and(equal(a, a), logical_not(equal(v, v))))


@searchsorted.batch
def _searchsorted_batch(batched: tuple[bool, ...], a: Value, v: Value, *, right: bool) -> Value:
    """Return the number of elements before each `v`, counted directly if `a` has a batch axis."""
    if not batched[0]:
        return searchsorted(a, v, right=right)
    a, v = with_batch_axis(batched, (a, v))
    count = a.shape[-1]
    shape = (*v.shape, count)
    last = len(v.shape)
    many = broadcast(a, shape=shape, new_axes=tuple(range(1, last)))
    each = broadcast(v, shape=shape, new_axes=(last,))
    before = _comes_first(less_equal if right else less, many, each)
    if right:
        nans = logical_and(logical_not(equal(many, many)), logical_not(equal(each, each)))
        before = logical_or(before, nans)
    return reduce_sum(cast(before, dtype=INT64), axes=(last,))
