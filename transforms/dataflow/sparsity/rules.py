"""What result `k` of a primitive depends on through operand `i`, of which that is known."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives.elementwise import div, mul
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import select
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.running import cummax, cummin, cumprod
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)
from primgraph.primitives.windows import overlap_add, windows
from primgraph.sparsity import affine
from primgraph.sparsity.affine import MOST, Maps, Shape
from primgraph.sparsity.rows import Rows, sent
from primgraph.transforms.dataflow.locality import is_elementwise
from primgraph.transforms.dataflow.sparsity.walk import Indices, Reach, Rule, Site, numbered


def by_properties(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    """What follows from what a primitive is: elementwise, moving, with axes that are tied."""
    eqn, op = site.eqn, site.eqn.op
    shape, result = site.shape(i), eqn.outputs[k].shape
    if is_elementwise(eqn) or (op.formal and not op.own_slope):
        return reach
    assert isinstance(op, Primitive)
    if op.moves:
        places = _places(site, k, i)
        if places is not None:
            return _at_places(site, reach, shape, places)
    axes = op.tied_axes(k, i, tuple([v.type for v in eqn.inputs]), site.params)
    if axes is None:
        return None
    return site.walk.tied(reach, shape, result, axes)


def _places(site: Site, k: int, i: int) -> Indices | None:
    """Which element of operand `i` each element of result `k` is, below zero if none."""
    arrays: list[Any] = []
    for n, value in enumerate(site.eqn.inputs):
        if n == i:
            arrays.append(numbered(value.shape) + 1)
        elif value.type.is_inexact:
            arrays.append(np.broadcast_to(np.int64(0), value.shape))
        else:
            found = site.array(n)
            if found is None:
                return None
            arrays.append(found)
    try:
        found = site.eqn.op.evaluate(arrays, site.params)[k]
    except Exception as error:
        # An index that is out of range is told of when the program runs.
        if is_interruption(error):
            raise
        return None
    return np.asarray(found, np.int64) - 1


def _at_places(site: Site, reach: Reach, shape: Shape, places: Indices) -> Reach:
    walk = site.walk
    rows = walk.rows(reach, shape)
    return walk.everything(places.shape) if rows is None else walk.taken(rows, places)


def _regular(change: Callable[[Site, int, int, Maps], Maps | None]) -> Rule:
    """The rule of what keeps affine maps; rows of columns go by properties."""

    def rule(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
        if not isinstance(reach, Rows):
            found = change(site, k, i, reach)
            if found is not None and len(found) <= MOST:
                return found
        return by_properties(site, k, i, reach)

    return rule


def _reshaped(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    if isinstance(reach, Rows):
        return reach
    found = affine.reshaped(reach, site.shape(i), site.eqn.output.shape)
    if found is not None:
        return found
    return site.walk.rows(reach, site.shape(i)) or site.walk.everything(site.eqn.output.shape)


def _concatenated(site: Site, k: int, i: int, maps: Maps) -> Maps:
    axis = site.params["axis"]
    start = sum(v.shape[axis] for v in site.eqn.inputs[:i])
    return affine.shifted(maps, _along(axis, start, len(site.shape(i))))


def _along(axis: int, number: int, rank: int) -> Shape:
    return tuple([number if a == axis else 0 for a in range(rank)])


def _split(site: Site, k: int, i: int, maps: Maps) -> Maps:
    axis, sizes = site.params["axis"], site.params["sizes"]
    shape = site.eqn.outputs[k].shape
    starts = _along(axis, sum(sizes[:k]), len(shape))
    return affine.sliced(maps, starts, shape, (1,) * len(shape))


def _assigned(site: Site, k: int, i: int, maps: Maps) -> Maps | None:
    starts, steps = site.params["starts"], site.params["steps"]
    part = site.shape(1)
    if 0 in part:
        return maps if i == 0 else []
    if any(step != 1 and n > 1 for step, n in zip(steps, part, strict=True)):
        return None
    if i == 1:
        return affine.shifted(maps, starts)
    high = tuple([a + n for a, n in zip(starts, part, strict=True)])
    return affine.without(maps, starts, high)


def _windowed(site: Site, k: int, i: int, maps: Maps) -> Maps | None:
    axis, sizes, steps, apart = (site.params[n] for n in ("axis", "sizes", "steps", "dilations"))
    shape, result = site.shape(0), site.eqn.output.shape
    number = len(sizes)
    end = axis + number
    found = []
    for m in maps:
        if m.low[axis:end] != (0,) * number or m.high[axis:end] != shape[axis:end]:
            return None
        along = m.strides[axis:end]
        inside = [s * d for s, d in zip(along, apart, strict=True)]
        between = [s * d for s, d in zip(along, steps, strict=True)]
        found.append(
            affine.Affine(
                m.offset,
                (*m.strides[:axis], *inside, *between, *m.strides[end:]),
                (*m.low[:axis], *[0] * (2 * number), *m.low[end:]),
                (*m.high[:axis], *result[axis : axis + 2 * number], *m.high[end:]),
                m.free,
            )
        )
    return found


def _overlapping(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Each element of a window at its place in the whole."""
    params, shape, result = site.params, site.shape(0), site.eqn.output.shape
    axis, steps, apart = params["axis"], params["steps"], params["dilations"]
    number = len(steps)
    sizes = shape[axis : axis + number]
    if not isinstance(reach, Rows) and prod(sizes) <= MOST and all(s == 1 for s in steps):
        maps: Maps = []
        for place in np.ndindex(*sizes):
            starts = (*[0] * axis, *place, *[0] * (len(shape) - axis - number))
            part = (*shape[:axis], *[1] * number, *shape[axis + number :])
            one = affine.sliced(reach, starts, part, (1,) * len(shape))
            one = affine.summed(one, range(axis, axis + number))
            goal = [p * d for p, d in zip(place, apart, strict=True)]
            rest = len(result) - axis - number
            maps += affine.shifted(one, (*[0] * axis, *goal, *[0] * rest))
        maps = affine.joined(maps)
        if len(maps) <= MOST:
            return maps
    numbers = numbered(result)
    targets = windows.impl(numbers, axis=axis, sizes=sizes, steps=steps, dilations=apart)
    return _sent(site, reach, shape, np.asarray(targets), result)


def _sent(site: Site, reach: Reach, shape: Shape, targets: Indices, result: Shape) -> Reach:
    walk = site.walk
    rows = walk.rows(reach, shape)
    if rows is None or not walk.pays(2 * len(rows.columns) + prod(shape)):
        return walk.everything(result)
    return sent(rows, targets.reshape(-1), prod(result), walk.width)


def _scattered(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    if i == 0:
        return reach
    result, axis = site.eqn.output.shape, site.params["axis"]
    indices = [site.array(n) for n in range(2, len(site.eqn.inputs))]
    if any(a is None for a in indices):
        return by_properties(site, k, i, reach)
    try:
        targets = gather.impl(numbered(result), *indices, axis=axis)
    except IndexError:
        return by_properties(site, k, i, reach)
    return _sent(site, reach, site.shape(1), np.asarray(targets), result)


def _multiplied(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Nothing where the other factor is known to be zero."""
    return _factored(site, 1 - i, reach)


def _factored(site: Site, other: int, reach: Reach) -> Reach | None:
    value = site.eqn.inputs[other]
    number = site.known.number(value)
    if number is not None:
        return reach if number != 0 else None
    array = site.known.array(value)
    return reach if array is None else site.walk.masked(reach, array != 0)


def _divided(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    return reach if i == 0 else _factored(site, 0, reach)


def _selected(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    array = site.array(0)
    if array is None:
        return reach
    return site.walk.masked(reach, array if i == 1 else ~array)


def _running(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Along one axis each element with all before it, or behind it."""
    shape, axis = site.shape(0), site.params["axis"]
    extent, walk = shape[axis], site.walk
    lines = prod(shape) // max(extent, 1)
    pairs = lines * extent * (extent + 1) // 2
    if 2 * pairs > walk.most or not walk.pays(2 * pairs):
        axes: list[int | None] = list(range(len(shape)))
        axes[axis] = None
        return walk.tied(reach, shape, shape, axes)
    place, source = np.tril_indices(extent)
    if site.params.get("reverse"):
        place, source = source, place
    numbers = np.moveaxis(numbered(shape), axis, -1).reshape(-1, extent)
    return walk.composed(
        reach, shape, (numbers[:, place].reshape(-1), numbers[:, source].reshape(-1)), shape
    )


def _product(site: Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Elements by whose factors that are known not to be zero; else by rows and columns."""
    array = site.array(1 - i)
    if array is None:
        return by_properties(site, k, i, reach)
    nonzero = array != 0
    if bool(nonzero.all()):
        return by_properties(site, k, i, reach)
    shape, result = site.shape(i), site.eqn.output.shape
    matrices = prod(shape[:-2])
    rows, columns = result[-2:]
    inner = site.shape(0)[-1]
    number, first, second = np.nonzero(nonzero.reshape(matrices, *array.shape[-2:]))
    free = np.arange(rows if i == 0 else columns)
    total = len(number) * len(free)
    if total > site.walk.most or not site.walk.pays(total):
        return by_properties(site, k, i, reach)
    number, first, second = number[:, None], first[:, None], second[:, None]
    if i == 0:
        # Rows of the left factor, of which `first` is the column.
        source = (number * rows + free) * inner + first
        target = (number * rows + free) * columns + second
    else:
        source = (number * inner + second) * columns + free
        target = (number * rows + first) * columns + free
    return site.walk.composed(reach, shape, (target.reshape(-1), source.reshape(-1)), result)


RULES: dict[Op, Rule] = {
    assumed: lambda s, k, i, reach: reach,
    broadcast: _regular(
        lambda s, k, i, m: affine.joined(
            affine.repeated(m, s.params["shape"], s.params["new_axes"])
        )
    ),
    permute: _regular(lambda s, k, i, m: affine.moved(m, s.params["axes"])),
    reverse: _regular(lambda s, k, i, m: affine.turned(m, s.shape(0), s.params["axes"])),
    slice_: _regular(
        lambda s, k, i, m: affine.sliced(m, *(s.params[n] for n in ("starts", "sizes", "steps")))
    ),
    pad: _regular(lambda s, k, i, m: affine.shifted(m, s.params["low"])),
    concat: _regular(_concatenated),
    split: _regular(_split),
    slice_assign: _regular(_assigned),
    windows: _regular(_windowed),
    reshape: _reshaped,
    overlap_add: _overlapping,
    scatter_add: _scattered,
    mul: _multiplied,
    div: _divided,
    select: _selected,
    matmul: _product,
    **dict.fromkeys((cumsum, cumprod, cummax, cummin), _running),
}
