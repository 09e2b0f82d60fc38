"""Which elements of a graph's values may depend on which elements of its inputs.

Dependencies are followed forth, equation by equation: as affine maps where they are regular, as
rows of columns else. "Depends" is meant by derivatives: floor, comparisons and what is held
constant end it, and so does a factor that is known to be zero. The answer is never too small.

A Hessian has the pattern of the Jacobian of the gradient. That is closer than pairs of elements
that meet in an equation that is not linear: a division is linear in its numerator, a product in
either factor, and only the rule of derivatives says what of it is left in the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.frames import is_interruption
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives.assumed import assumed
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.primitives.elementwise import div, mul
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linalg import matmul
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
from primgraph.sparsity.rows import Rows, kept, listed, sent, size_of, taken, united
from primgraph.transforms.analysis.known import Given, Known
from primgraph.transforms.analysis.locality import is_elementwise

# What elements of a value depend on; None for nothing.
Reach: TypeAlias = "Maps | Rows"
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Indices = np.ndarray[Any, np.dtype[np.int64]]

# How many pairs of elements are listed at most where nobody has said it.
MOST_PAIRS = 2**26


def dependencies(
    graph: Graph, wrt: Sequence[Value], most: int = MOST_PAIRS
) -> tuple[list[Reach | None], int]:
    """For each output of `graph`, of primitives, what its elements depend on of those of `wrt`.

    With it comes how many elements `wrt` has, one after the other. All extents of `wrt` and of the
    outputs are known. Where more than `most` pairs of elements would be listed one by one, or many
    more in all, all elements may depend on all.
    """
    width = sum(v.type.size for v in wrt)
    offsets = accumulate((v.type.size for v in wrt), initial=0)
    walk = _Walk(width, most)
    starts: dict[Value, Reach] = {
        v: affine.diagonal(v.shape, offset) for v, offset in zip(wrt, offsets, strict=False)
    }
    found = walk.through(graph, starts)
    return [found.get(v) for v in graph.outputs], width


def pattern_rows(graph: Graph, wrt: Sequence[Value], most: int = MOST_PAIRS) -> Rows | None:
    """The columns of all elements of all outputs, one output after the other; see `dependencies`.

    None where there are more than `most` pairs.
    """
    found, width = dependencies(graph, wrt, most)
    total = 0
    for reach in found:
        total += 0 if reach is None else _count(reach)
    if total > most:
        return None
    starts, columns = [np.zeros(1, np.int64)], []
    end = 0
    for value, reach in zip(graph.outputs, found, strict=True):
        if reach is None:
            starts.append(np.full(value.type.size, end, np.int64))
            continue
        rows = reach if isinstance(reach, Rows) else listed(reach, value.shape, width)
        starts.append(rows.starts[1:] + end)
        columns.append(rows.columns)
        end += len(rows.columns)
    whole = np.concatenate(columns) if columns else np.zeros(0, np.int64)
    return Rows(np.concatenate(starts), whole)


def _count(reach: Reach) -> int:
    return len(reach.columns) if isinstance(reach, Rows) else size_of(reach)


@final
@dataclass(slots=True)
class _Site:
    """An equation, what is known while it is built, and what follows dependencies through it."""

    walk: _Walk
    eqn: Equation
    known: Known

    @property
    def params(self) -> dict[str, Any]:
        return self.eqn.kwargs

    def shape(self, position: int) -> Shape:
        return self.eqn.inputs[position].shape

    def array(self, position: int) -> Any:
        return self.known.array(self.eqn.inputs[position])


_Rule: TypeAlias = Callable[[_Site, int, int, "Reach"], "Reach | None"]


@final
class _Walk:
    """Follows dependencies on `width` elements through graphs."""

    def __init__(self, width: int, most: int) -> None:
        self.width = width
        self.most = most
        # How much may be listed before the rest is given up.
        self.left = 16 * most

    def through(
        self, graph: Graph, starts: dict[Value, Reach], given: Given | None = None
    ) -> dict[Value, Reach]:
        """What the values of `graph` depend on, for those of them that depend on some themselves.

        One inside the graph depends on what it starts with, and on what reaches it from others.
        """
        found = {v: r for v, r in starts.items() if not _is_empty(r)}
        known = Known(graph, given)
        for eqn in graph.body:
            if found.keys().isdisjoint(eqn.inputs) or not _has_slopes(eqn):
                continue
            site = _Site(self, eqn, known)
            for value, reach in zip(eqn.outputs, self._behind(site, found), strict=True):
                if reach is None or not value.type.is_inexact or _is_empty(reach):
                    continue
                start = found.get(value)
                both = reach if start is None else self.union([start, reach], value.shape)
                assert both is not None
                found[value] = both
        return found

    def _behind(self, site: _Site, found: dict[Value, Reach]) -> list[Reach | None]:
        eqn = site.eqn
        operands = [found.get(v) for v in eqn.inputs]
        if eqn.op.own_slope:
            operands[0] = None
        elif eqn.op.formal:
            operands[1:] = [None] * (len(operands) - 1)
        if any(_is_unknown(v.shape) for v in (*eqn.inputs, *eqn.outputs)):
            return self._at_once(site, operands)
        inside = _THROUGH.get(eqn.op)
        if inside is not None:
            return inside(site, operands)
        rule = _RULES.get(eqn.op) or _by_properties
        results: list[Reach | None] = []
        for k, value in enumerate(eqn.outputs):
            parts = [rule(site, k, i, r) for i, r in enumerate(operands) if r is not None]
            results.append(self.union([p for p in parts if p is not None], value.shape))
        return results

    def _at_once(self, site: _Site, operands: Sequence[Reach | None]) -> list[Reach | None]:
        """All elements of all results with what any of the operands depends on.

        Of values of unknown extent it is kept what their elements depend on together.
        """
        total = self.union(
            [
                self.whole(r, v.shape)
                for v, r in zip(site.eqn.inputs, operands, strict=True)
                if r is not None
            ],
            (),
        )
        if total is None:
            return [None for _ in site.eqn.outputs]
        shapes = [() if _is_unknown(v.shape) else v.shape for v in site.eqn.outputs]
        return [self.repeated(total, (), s, tuple(range(len(s)))) for s in shapes]

    def whole(self, reach: Reach, shape: Shape) -> Reach:
        """What all elements depend on together."""
        if _is_unknown(shape):
            return reach
        return self.tied(reach, shape, (), (None,) * len(shape)) or []

    def everything(self, shape: Shape) -> Maps:
        return affine.everything(shape, self.width)

    def union(self, parts: Sequence[Reach], shape: Shape) -> Reach | None:
        if len(parts) < 2:
            return parts[0] if parts else None
        if not any(isinstance(p, Rows) for p in parts):
            maps = affine.joined([m for p in parts if not isinstance(p, Rows) for m in p])
            if len(maps) <= MOST:
                return maps
            return self.rows(maps, shape) or self.everything(shape)
        rows = []
        for part in parts:
            one = self.rows(part, shape)
            if one is None:
                return self.everything(shape)
            rows.append(one)
        if not self.pays(sum(len(r.columns) for r in rows)):
            return self.everything(shape)
        return united(rows, self.width)

    def rows(self, reach: Reach, shape: Shape) -> Rows | None:
        """`reach` one by one; None where that is too much."""
        if isinstance(reach, Rows):
            return reach
        count = size_of(reach)
        if count > self.most or not self.pays(count + prod(shape)):
            return None
        return listed(reach, shape, self.width)

    def pays(self, work: int) -> bool:
        """Whether so much more may be listed."""
        if work > self.left:
            return False
        self.left -= work
        return True

    # Steps that rules are made of.

    def tied(
        self, reach: Reach, shape: Shape, result: Shape, axes: Sequence[int | None]
    ) -> Reach | None:
        """Elements of `result` with those of `shape` at the same place along tied axes.

        `axes` has the axis of the result for each of the operand, None where all along it meet.
        """
        gone = [i for i, a in enumerate(axes) if a is None]
        order = [a for a in axes if a is not None]
        between = tuple([n for i, n in enumerate(shape) if axes[i] is not None])
        if isinstance(reach, Rows):
            if gone:
                small = tuple([1 if axes[i] is None else n for i, n in enumerate(shape)])
                targets = np.broadcast_to(_numbered(small), shape).reshape(-1)
                if not self.pays(2 * len(reach.columns) + prod(shape)):
                    return self.everything(result)
                reach = sent(reach, targets, prod(between), self.width)
        else:
            reach = affine.summed(reach, gone)
        if order != sorted(order):
            places = sorted(range(len(order)), key=order.__getitem__)
            reach = self.permuted(reach, between, places)
            between = tuple([between[i] for i in places])
        new = tuple([i for i in range(len(result)) if i not in order])
        return self.repeated(reach, between, result, new)

    def permuted(self, reach: Reach, shape: Shape, order: Sequence[int]) -> Reach:
        if isinstance(reach, Rows):
            return self.taken(reach, np.transpose(_numbered(shape), order))
        return affine.moved(reach, order)

    def repeated(self, reach: Reach, shape: Shape, result: Shape, new: Shape) -> Reach:
        if not new:
            return reach
        if isinstance(reach, Rows):
            return self.taken(reach, np.broadcast_to(np.expand_dims(_numbered(shape), new), result))
        return affine.joined(affine.repeated(reach, result, new))

    def taken(self, rows: Rows, places: Indices) -> Reach:
        """The rows at `places`, an array of the shape of the result; none below zero."""
        flat = places.reshape(-1)
        counts = np.append(np.diff(rows.starts), 0)
        total = int(counts[flat].sum()) + flat.size
        if total > self.most or not self.pays(total):
            return self.everything(places.shape)
        return taken(rows, flat)

    def masked(self, reach: Reach, mask: Mask) -> Reach | None:
        """`reach` where `mask` is true."""
        if bool(mask.all()):
            return reach
        if not bool(mask.any()):
            return None
        if isinstance(reach, Rows):
            return kept(reach, mask)
        low, high = [], []
        for axis in range(mask.ndim):
            along = np.flatnonzero(mask.any(axis=tuple(i for i in range(mask.ndim) if i != axis)))
            low.append(int(along[0]))
            high.append(int(along[-1]) + 1)
        box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        if bool(mask[box].all()):
            return affine.within(reach, tuple(low), tuple(high))
        rows = self.rows(reach, mask.shape)
        return self.everything(mask.shape) if rows is None else kept(rows, mask)

    def composed(
        self, reach: Reach, shape: Shape, pairs: tuple[Indices, Indices], result: Shape
    ) -> Reach:
        """Elements of `result` with what elements of `shape` have, by pairs of both."""
        rows = self.rows(reach, shape)
        if rows is None:
            return self.everything(result)
        targets, sources = pairs
        several = self.taken(rows, sources)
        if not isinstance(several, Rows) or not self.pays(2 * len(several.columns)):
            return self.everything(result)
        return sent(several, targets, prod(result), self.width)


def _is_empty(reach: Reach) -> bool:
    return len(reach.columns if isinstance(reach, Rows) else reach) == 0


def _is_unknown(shape: Shape) -> bool:
    return any(type(n) is not int for n in shape)


def _has_slopes(eqn: Equation) -> bool:
    op = eqn.op
    return not (op.stops or (isinstance(op, Primitive) and (op.constant or op.random)))


def _numbered(shape: Shape) -> Indices:
    """The elements of an array of that shape, in row-major order."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)


# Rules: what result `k` depends on through operand `i`, of which that is known.


def _by_properties(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
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


def _places(site: _Site, k: int, i: int) -> Indices | None:
    """Which element of operand `i` each element of result `k` is, below zero if none."""
    arrays: list[Any] = []
    for n, value in enumerate(site.eqn.inputs):
        if n == i:
            arrays.append(_numbered(value.shape) + 1)
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


def _at_places(site: _Site, reach: Reach, shape: Shape, places: Indices) -> Reach:
    walk = site.walk
    rows = walk.rows(reach, shape)
    return walk.everything(places.shape) if rows is None else walk.taken(rows, places)


def _regular(change: Callable[[_Site, int, int, Maps], Maps | None]) -> _Rule:
    """The rule of what keeps affine maps; rows of columns go by properties."""

    def rule(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
        if not isinstance(reach, Rows):
            found = change(site, k, i, reach)
            if found is not None and len(found) <= MOST:
                return found
        return _by_properties(site, k, i, reach)

    return rule


def _reshaped(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    if isinstance(reach, Rows):
        return reach
    found = affine.reshaped(reach, site.shape(i), site.eqn.output.shape)
    if found is not None:
        return found
    return site.walk.rows(reach, site.shape(i)) or site.walk.everything(site.eqn.output.shape)


def _concatenated(site: _Site, k: int, i: int, maps: Maps) -> Maps:
    axis = site.params["axis"]
    start = sum(v.shape[axis] for v in site.eqn.inputs[:i])
    return affine.shifted(maps, _along(axis, start, len(site.shape(i))))


def _along(axis: int, number: int, rank: int) -> Shape:
    return tuple([number if a == axis else 0 for a in range(rank)])


def _split(site: _Site, k: int, i: int, maps: Maps) -> Maps:
    axis, sizes = site.params["axis"], site.params["sizes"]
    shape = site.eqn.outputs[k].shape
    starts = _along(axis, sum(sizes[:k]), len(shape))
    return affine.sliced(maps, starts, shape, (1,) * len(shape))


def _assigned(site: _Site, k: int, i: int, maps: Maps) -> Maps | None:
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


def _windowed(site: _Site, k: int, i: int, maps: Maps) -> Maps | None:
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


def _overlapping(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
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
    numbers = _numbered(result)
    targets = windows.impl(numbers, axis=axis, sizes=sizes, steps=steps, dilations=apart)
    return _sent(site, reach, shape, np.asarray(targets), result)


def _sent(site: _Site, reach: Reach, shape: Shape, targets: Indices, result: Shape) -> Reach:
    walk = site.walk
    rows = walk.rows(reach, shape)
    if rows is None or not walk.pays(2 * len(rows.columns) + prod(shape)):
        return walk.everything(result)
    return sent(rows, targets.reshape(-1), prod(result), walk.width)


def _scattered(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    if i == 0:
        return reach
    result, axis = site.eqn.output.shape, site.params["axis"]
    indices = [site.array(n) for n in range(2, len(site.eqn.inputs))]
    if any(a is None for a in indices):
        return _by_properties(site, k, i, reach)
    try:
        targets = gather.impl(_numbered(result), *indices, axis=axis)
    except IndexError:
        return _by_properties(site, k, i, reach)
    return _sent(site, reach, site.shape(1), np.asarray(targets), result)


def _multiplied(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Nothing where the other factor is known to be zero."""
    return _factored(site, 1 - i, reach)


def _factored(site: _Site, other: int, reach: Reach) -> Reach | None:
    value = site.eqn.inputs[other]
    number = site.known.number(value)
    if number is not None:
        return reach if number != 0 else None
    array = site.known.array(value)
    return reach if array is None else site.walk.masked(reach, array != 0)


def _divided(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    return reach if i == 0 else _factored(site, 0, reach)


def _selected(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    array = site.array(0)
    if array is None:
        return reach
    return site.walk.masked(reach, array if i == 1 else ~array)


def _running(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
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
    numbers = np.moveaxis(_numbered(shape), axis, -1).reshape(-1, extent)
    return walk.composed(
        reach, shape, (numbers[:, place].reshape(-1), numbers[:, source].reshape(-1)), shape
    )


def _product(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Elements by whose factors that are known not to be zero; else by rows and columns."""
    array = site.array(1 - i)
    if array is None:
        return _by_properties(site, k, i, reach)
    nonzero = array != 0
    if bool(nonzero.all()):
        return _by_properties(site, k, i, reach)
    shape, result = site.shape(i), site.eqn.output.shape
    matrices = prod(shape[:-2])
    rows, columns = result[-2:]
    inner = site.shape(0)[-1]
    number, first, second = np.nonzero(nonzero.reshape(matrices, *array.shape[-2:]))
    free = np.arange(rows if i == 0 else columns)
    total = len(number) * len(free)
    if total > site.walk.most or not site.walk.pays(total):
        return _by_properties(site, k, i, reach)
    number, first, second = number[:, None], first[:, None], second[:, None]
    if i == 0:
        # Rows of the left factor, of which `first` is the column.
        source = (number * rows + free) * inner + first
        target = (number * rows + free) * columns + second
    else:
        source = (number * inner + second) * columns + free
        target = (number * rows + first) * columns + free
    return site.walk.composed(reach, shape, (target.reshape(-1), source.reshape(-1)), result)


_RULES: dict[Op, _Rule] = {
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


# Branches and loops.


def _given_to(site: _Site, body: Graph, operands: Sequence[Value]) -> Given:
    """What of the operands of a body is known."""
    known = site.known
    return {
        v: (lambda value=value: known.array(value))  # type: ignore[misc]
        for v, value in zip(body.inputs, operands, strict=False)
    }


def _into(
    site: _Site, body: Graph, operands: Sequence[Reach | None], given: Given | None = None
) -> list[Reach | None]:
    starts = {v: r for v, r in zip(body.inputs, operands, strict=True) if r is not None}
    found = site.walk.through(body, starts, given)
    return [found.get(v) for v in body.outputs]


def _through_checkpoint(site: _Site, operands: list[Reach | None]) -> list[Reach | None]:
    (body,) = site.eqn.bodies
    return _into(site, body, operands, _given_to(site, body, site.eqn.inputs))


def _through_cond(site: _Site, operands: list[Reach | None]) -> list[Reach | None]:
    """Any branch may be taken, unless it is known which."""
    branches, index = site.eqn.bodies, site.array(0)
    if index is not None:
        branches = (branches[min(max(int(index), 0), len(branches) - 1)],)
    found = [
        _into(site, b, operands[1:], _given_to(site, b, site.eqn.inputs[1:])) for b in branches
    ]
    return _united(site.walk, found, site.eqn.outputs)


def _united(
    walk: _Walk, found: Sequence[Sequence[Reach | None]], values: Sequence[Value]
) -> list[Reach | None]:
    return [
        walk.union([r for r in parts if r is not None], v.shape)
        for v, *parts in zip(values, *found, strict=False)
    ]


def _through_scan(site: _Site, operands: list[Reach | None]) -> list[Reach | None]:
    """Rows count as one: what any of them depends on, each trip may depend on."""
    params, eqn, walk = site.params, site.eqn, site.walk
    counted, consts, carries = params["counted"], params["consts"], params["carries"]
    given, inputs = operands[counted:], eqn.inputs[counted:]
    end = consts + carries
    rows: list[Reach | None] = []
    for value, reach in zip(inputs[end:], given[end:], strict=True):
        axes = (None, *range(len(value.shape) - 1))
        rows.append(reach and walk.tied(reach, value.shape, value.shape[1:], axes))
    body: Graph = params["body"]
    known = _given_to(site, body, inputs[:consts])
    found = _settled(walk, site, body, given[:consts], given[consts:end], rows, known)
    return [
        *found[:carries],
        *(
            reach and walk.repeated(reach, v.shape[1:], v.shape, (0,))
            for v, reach in zip(eqn.outputs[carries:], found[carries:], strict=True)
        ),
    ]


def _through_while(site: _Site, operands: list[Reach | None]) -> list[Reach | None]:
    params, eqn, walk = site.params, site.eqn, site.walk
    consts, body = params["consts"], params["body"]
    carries = len(operands) - consts
    known = _given_to(site, body, eqn.inputs[:consts])
    found = _settled(walk, site, body, operands[:consts], operands[consts:], [], known)
    return [
        *found[:carries],
        None,
        *(
            reach and walk.repeated(reach, v.shape[1:], v.shape, (0,))
            for v, reach in zip(eqn.outputs[carries + 1 :], found[carries:], strict=True)
        ),
    ]


# After so many trips all elements of all carries are taken to depend on the same.
_TRIPS = 6


def _settled(
    walk: _Walk,
    site: _Site,
    body: Graph,
    fixed: list[Reach | None],
    state: list[Reach | None],
    rows: list[Reach | None],
    known: Given,
) -> list[Reach | None]:
    """What carries and rows depend on after any number of trips."""
    values = body.inputs[len(fixed) : len(fixed) + len(state)]
    shapes = [v.shape for v in values]
    for trip in range(2 * _TRIPS):
        found = _into(site, body, [*fixed, *state, *rows], known)
        after = _united(walk, [state, found[: len(state)]], values)
        if all(map(_is_same, after, state)):
            return [*state, *found[len(state) :]]
        state = after
        if trip >= _TRIPS:
            parts = [walk.whole(r, s) for r, s in zip(state, shapes, strict=True) if r is not None]
            total = walk.union(parts, ())
            assert total is not None
            state = [walk.repeated(total, (), s, tuple(range(len(s)))) for s in shapes]
    state = [walk.everything(s) for s in shapes]
    found = _into(site, body, [*fixed, *state, *rows], known)
    return [*state, *found[len(state) :]]


def _is_same(a: Reach | None, b: Reach | None) -> bool:
    if isinstance(a, Rows) and isinstance(b, Rows):
        return all(map(np.array_equal, a, b))
    return type(a) is type(b) and a == b


_THROUGH: dict[Op, Callable[[_Site, list[Reach | None]], list[Reach | None]]] = {
    checkpoint: _through_checkpoint,
    cond: _through_cond,
    scan: _through_scan,
    while_loop: _through_while,
}
