"""Running products and extrema along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import DTypeError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import IndexMap, running_map
from primgraph.ir.primitive import Primitive, Types, primitive
from primgraph.ir.types import BOOL, INT64, TensorType, check_axis
from primgraph.primitives.constants import filled_constant, iota, zeros_like
from primgraph.primitives.control import scan
from primgraph.primitives.indexing import gather
from primgraph.primitives.logic import greater_equal, less_equal, require_order, select
from primgraph.primitives.reductions import accumulator
from primgraph.primitives.shapes import concat, permute, slice_


def part_along(x: Value, axis: int, start: int, size: int) -> Value:
    """Return `size` elements along `axis`, from `start` on."""
    starts = tuple(start if i == axis else 0 for i in range(len(x.shape)))
    sizes = tuple(size if i == axis else n for i, n in enumerate(x.shape))
    return slice_(x, starts=starts, sizes=sizes, steps=(1,) * len(sizes))


def _numeric(name: str, x: TensorType, axis: int) -> TensorType:
    check_axis(name, axis, x)
    if x.dtype == BOOL:
        raise DTypeError(f"{name} does not take {x}", hint="cast it to an integer dtype first")
    return x


def _cumprod(x: Any, *, axis: int) -> Any:
    return np.cumprod(x, axis, accumulator(x.dtype)).astype(x.dtype)


@primitive(impl=_cumprod, singular=True, flops=1)
def cumprod(x: TensorType, *, axis: int) -> TensorType:
    """Return the running product along `axis`."""
    return _numeric("cumprod", x, axis)


@cumprod.jvp()
def _cumprod_jvp(z: Value, x: Value, d: Value, *, axis: int) -> Value:
    """Return the tangent by the product rule on products of 2, 4, 8, ... elements, right at zeros.

    W. D. Hillis and G. L. Steele, Data parallel algorithms, Comm. ACM 29 (1986), 1170. Along a
    symbolic size the rule runs sequentially, element by element.
    """
    count = x.shape[axis]
    if isinstance(count, Dim):
        return _turn_by_turn(x, d, axis)
    step = 1
    while step < count:
        rest = count - step
        places = ((0, step), (0, rest), (step, rest))
        (first, before, after), (dfirst, dbefore, dafter) = (
            [part_along(v, axis, *place) for place in places] for v in (x, d)
        )
        x = concat(first, before * after, axis=axis)
        d = concat(dfirst, dbefore * after + before * dafter, axis=axis)
        step *= 2
    return d


def _turn_by_turn(x: Value, d: Value, axis: int) -> Value:
    """Return the tangent of a running product by a scan: `dp = dp * x + p * dx`, `p = p * x`."""
    rank = len(x.shape)
    order = (axis, *[i for i in range(rank) if i != axis])
    if axis:
        x, d = permute(x, axes=order), permute(d, axes=order)
    row = x.type.with_shape(x.shape[1:])
    builder = Builder("body")
    with builder:
        p, dp, factor, df = [builder.input(row) for _ in range(4)]
        slope = dp * factor + p * df
        body = builder.graph([p * factor, slope, slope])
    first = (filled_constant(1, row), filled_constant(0, row))
    *_, found = scan(
        *first, x, d, body=body, consts=0, carries=2, length=x.shape[0], reverse=False,
        counted=False,
    )  # fmt: skip
    back = tuple(order.index(i) for i in range(rank))
    return permute(found, axes=back) if axis else found


@cumprod.batch
def _cumprod_batch(batched: tuple[bool, ...], x: Value, *, axis: int) -> Value:
    return cumprod(x, axis=axis + 1)


def _declare_extremum(name: str, ufunc: np.ufunc, stays: Primitive[Value]) -> Primitive[Value]:
    """Declare a running extremum, with the derivative of the first element that reached it.

    `stays` compares the next element with the extremum so far.
    """

    def type_rule(x: TensorType, *, axis: int) -> TensorType:
        require_order(name, x)
        return _numeric(name, x, axis)

    op: Primitive[Value] = Primitive(
        name, type_rule, lambda x, *, axis: ufunc.accumulate(x, axis), flops=1
    )

    @op.jvp()
    def jvp_rule(z: Value, x: Value, d: Value, *, axis: int) -> Value | None:
        count = x.shape[axis]
        if type(count) is int and count < 2:
            return d
        so_far = part_along(z, axis, 0, count - 1)
        place = iota(shape=x.shape, axis=axis, dtype=INT64)
        later = part_along(place, axis, 1, count - 1)
        kept = stays(part_along(x, axis, 1, count - 1), so_far)
        reached = select(kept, zeros_like(later), later)
        first = part_along(place, axis, 0, 1)
        held = cummax(concat(first, reached, axis=axis), axis=axis)
        others = [iota(shape=x.shape, axis=i, dtype=INT64) for i in range(len(x.shape))]
        others[axis] = held
        return gather(d, *others, axis=0)

    @op.batch
    def batch_rule(batched: tuple[bool, ...], x: Value, *, axis: int) -> Value:
        return op(x, axis=axis + 1)

    return op


cummax = _declare_extremum("cummax", np.maximum, less_equal)
cummin = _declare_extremum("cummin", np.minimum, greater_equal)


def _runs(op: Primitive[Value]) -> None:
    @op.index_map
    def map_rule(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
        return running_map(results[0].shape, axis, exact=op is cumprod)


for _op in (cumprod, cummax, cummin):
    _runs(_op)
