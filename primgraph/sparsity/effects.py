"""Effects of operations on affine maps: views, broadcasts, sums and reshapes.

Each function takes the maps of an operand and returns those of the result, without listing
elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod

from primgraph.sparsity.affine import (
    MOST,
    Affine,
    Maps,
    Shape,
    Terms,
    merge_maps,
    merged_steps,
    replace_number,
)


def permute_maps(maps: Maps, axis_of: Sequence[int]) -> Maps:
    """Permute axes to the order `axis_of`, as numbered in the operand."""
    return [
        Affine(
            m.offset,
            tuple([m.strides[i] for i in axis_of]),
            tuple([m.low[i] for i in axis_of]),
            tuple([m.high[i] for i in axis_of]),
            m.free,
        )
        for m in maps
    ]


def repeat_maps(maps: Maps, shape: Shape, new: Iterable[int]) -> Maps:
    """Insert axes `new` into the result of that shape, along which elements are repeated."""
    added = set(new)
    if not added:
        return maps
    if 0 in shape:
        return []
    found = []
    for m in maps:
        old = iter(range(len(m.low)))
        source = [-1 if i in added else next(old) for i in range(len(shape))]
        found.append(
            Affine(
                m.offset,
                tuple([0 if j < 0 else m.strides[j] for j in source]),
                tuple([0 if j < 0 else m.low[j] for j in source]),
                tuple([shape[i] if j < 0 else m.high[j] for i, j in enumerate(source)]),
                m.free,
            )
        )
    return found


def sum_maps(maps: Maps, axes: Iterable[int]) -> Maps:
    """Sum over `axes`: unite the columns along them, and drop them."""
    gone = set(axes)
    if not gone:
        return maps
    found = []
    for m in maps:
        offset, free = m.offset, list(m.free)
        for axis in gone:
            stride, lo, hi = m.strides[axis], m.low[axis], m.high[axis]
            offset += stride * (lo if stride >= 0 else hi - 1)
            if stride and hi - lo > 1:
                free.append((abs(stride), hi - lo))
        kept = [i for i in range(len(m.low)) if i not in gone]
        found.append(
            Affine(
                offset,
                tuple([m.strides[i] for i in kept]),
                tuple([m.low[i] for i in kept]),
                tuple([m.high[i] for i in kept]),
                merged_steps(free),
            )
        )
    return merge_maps(found)


def slice_maps(maps: Maps, starts: Shape, sizes: Shape, steps: Shape) -> Maps:
    """Slice: index `i` of the result is index `starts + i * steps` of the operand, `sizes` of
    them."""
    found = []
    for m in maps:
        low, high, strides, offset = [], [], [], m.offset
        for i, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
            lo, hi = m.low[i], m.high[i]
            if step > 0:
                first, last = -((start - lo) // step), (hi - 1 - start) // step
            else:
                first, last = -((hi - 1 - start) // -step), (start - lo) // -step
            low.append(max(first, 0))
            high.append(min(last + 1, size))
            offset += m.strides[i] * start
            strides.append(m.strides[i] * step)
        if all(a < b for a, b in zip(low, high, strict=True)):
            found.append(Affine(offset, tuple(strides), tuple(low), tuple(high), m.free))
    return found


def shift_maps(maps: Maps, starts: Shape) -> Maps:
    """Shift: index `i` of the operand is index `starts + i` of the result."""
    if not any(starts):
        return maps
    return [
        Affine(
            m.offset - sum(s * b for s, b in zip(m.strides, starts, strict=True)),
            m.strides,
            tuple([a + b for a, b in zip(m.low, starts, strict=True)]),
            tuple([a + b for a, b in zip(m.high, starts, strict=True)]),
            m.free,
        )
        for m in maps
    ]


def clip_to_box(maps: Maps, low: Shape, high: Shape) -> Maps:
    """Return the parts of maps inside a box."""
    found = []
    for m in maps:
        lo = tuple([max(a, b) for a, b in zip(m.low, low, strict=True)])
        hi = tuple([min(a, b) for a, b in zip(m.high, high, strict=True)])
        if all(a < b for a, b in zip(lo, hi, strict=True)):
            found.append(m._replace(low=lo, high=hi))
    return found


def cut_out_box(maps: Maps, low: Shape, high: Shape) -> Maps:
    """Return the parts of maps outside a box."""
    found = []
    for m in maps:
        rest = m
        if not clip_to_box([m], low, high):
            found.append(m)
            continue
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            if rest.low[i] < a:
                found.append(rest._replace(high=replace_number(rest.high, i, a)))
                rest = rest._replace(low=replace_number(rest.low, i, a))
            if rest.high[i] > b:
                found.append(rest._replace(low=replace_number(rest.low, i, b)))
                rest = rest._replace(high=replace_number(rest.high, i, b))
    return found


def reverse_maps(maps: Maps, shape: Shape, axes: Iterable[int]) -> Maps:
    """Reverse the order along `axes` of an array of that shape."""
    flipped = set(axes)
    starts = tuple([n - 1 if i in flipped else 0 for i, n in enumerate(shape)])
    steps = tuple([-1 if i in flipped else 1 for i in range(len(shape))])
    return slice_maps(maps, starts, shape, steps)


def map_elements(
    maps: Maps, extents: Shape, shape: Shape, source: Sequence[Terms], target: Sequence[Terms]
) -> Maps | None:
    """Move columns from elements of a `shape` to those of a result; None where that is not regular.

    `source` has the places of both at each point of a box of `extents`: for each axis of the
    operand a start and the steps of variables, `target` for each axis of the result.
    """
    found: Maps = []
    for m in maps:
        for point in _points(extents, target):
            one = _move_columns(m, extents, shape, source, target, point)
            if one is None or len(found) > MOST:
                return None
            found += one
    return merge_maps(found)


def _points(extents: Shape, target: Sequence[Terms]) -> Iterable[dict[int, int]]:
    """The values of variables to be taken one by one: all but the last of each axis of a result."""
    fixed = [v for _, terms in target for v, _ in terms[:-1]]
    if prod(extents[v] for v in fixed) > MOST:
        return [dict.fromkeys(fixed, -1)]
    return (dict(zip(fixed, p, strict=True)) for p in product(*(range(extents[v]) for v in fixed)))


def _move_columns(
    m: Affine,
    extents: Shape,
    shape: Shape,
    source: Sequence[Terms],
    target: Sequence[Terms],
    point: Mapping[int, int],
) -> Maps | None:
    if -1 in point.values():
        return None
    low = [point.get(v, 0) for v in range(len(extents))]
    high = [point[v] + 1 if v in point else n for v, n in enumerate(extents)]
    strides, offset = [0] * len(extents), m.offset
    for axis, (start, terms) in enumerate(source):
        offset += m.strides[axis] * start
        for v, step in terms:
            strides[v] += m.strides[axis] * step
        lo, hi = m.low[axis], m.high[axis]
        if len(terms) == 1:
            ((v, step),) = terms
            first, last = _places_in_box(start, step, lo, hi)
            low[v], high[v] = max(low[v], first), min(high[v], last + 1)
        elif terms and (lo, hi) != (0, shape[axis]):
            return None
        elif not terms and not lo <= start < hi:
            return []
    if any(a >= b for a, b in zip(low, high, strict=True)):
        return []
    places = [_onto(start, terms, low, high, strides, point) for start, terms in target]
    if None in places:
        return None
    boxes = [p for p in places if p is not None]
    used = {v for _, terms in target for v, _ in terms}
    free = list(m.free)
    for v, (a, b) in enumerate(zip(low, high, strict=True)):
        if v in used:
            continue
        offset += strides[v] * (a if strides[v] >= 0 else b - 1)
        if strides[v] and b - a > 1:
            free.append((abs(strides[v]), b - a))
    offset += sum(p[0] for p in boxes)
    along, lows, highs = (tuple([p[n] for p in boxes]) for n in (1, 2, 3))
    steps = merged_steps(free) if len(free) > len(m.free) else m.free
    return [Affine(offset, along, lows, highs, steps)]


def _places_in_box(start: int, step: int, low: int, high: int) -> tuple[int, int]:
    """Return the first and the last place n at which `start + n * step` is in the box."""
    if step > 0:
        return -((start - low) // step), (high - 1 - start) // step
    return -((high - 1 - start) // -step), (start - low) // -step


def _onto(
    start: int,
    terms: Sequence[tuple[int, int]],
    low: Sequence[int],
    high: Sequence[int],
    strides: Sequence[int],
    point: Mapping[int, int],
) -> tuple[int, int, int, int] | None:
    """Along an axis of a result: what is added to the offset, the stride, first place and end."""
    offset = 0
    for v, step in terms:
        if v in point or high[v] - low[v] == 1:
            start += step * low[v]
            offset += strides[v] * low[v]
        elif step == 1:
            return offset - strides[v] * start, strides[v], start + low[v], start + high[v]
        elif step == -1:
            return offset + strides[v] * start, -strides[v], start - high[v] + 1, start - low[v] + 1
        else:
            return None
    return offset, 0, start, start + 1


def reshape_maps(maps: Maps, old: Shape, new: Shape) -> Maps | None:
    """Reshape in row-major order; None if too many maps would be needed."""
    if old == new or not maps:
        return maps
    found = maps
    shape = old
    for start, stop, goal in _groups(old, new):
        ahead = len(shape) - (len(old) - start)
        for _ in range(stop - start - 1):
            found = _merge_axes(found, shape, ahead)
            if len(found) > MOST:
                return None
            shape = (*shape[:ahead], shape[ahead] * shape[ahead + 1], *shape[ahead + 2 :])
        if start == stop:
            # Insert axes of one element.
            for i in range(len(goal)):
                shape = (*shape[: ahead + i], 1, *shape[ahead + i :])
                found = repeat_maps(found, shape, (ahead + i,))
            continue
        if not goal:
            found = sum_maps(found, (ahead,))
            shape = (*shape[:ahead], *shape[ahead + 1 :])
            continue
        for i in range(len(goal) - 1):
            found = _split_axis(found, shape, ahead + i, prod(goal[i + 1 :]))
            if len(found) > MOST:
                return None
            shape = (
                *shape[: ahead + i],
                goal[i],
                prod(goal[i + 1 :]),
                *shape[ahead + i + 1 :],
            )
    return merge_maps(found)


def _groups(old: Shape, new: Shape) -> list[tuple[int, int, Shape]]:
    """Return groups of consecutive old axes, as start and end, with the new axes of equal size."""
    found = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, begin = i, j
        have = old[i] if i < len(old) else 1
        want = new[j] if j < len(new) else 1
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while have != want:
            if have < want:
                have *= old[i]
                i += 1
            else:
                want *= new[j]
                j += 1
        found.append((first, i, tuple(new[begin:j])))
    return found


def _merge_axes(maps: Maps, shape: Shape, axis: int) -> Maps:
    """Merge `axis` and the axis behind it."""
    inner = shape[axis + 1]
    found = []
    for m in maps:
        outer, step = m.strides[axis : axis + 2]
        lo, hi = m.low[axis], m.high[axis]
        first, last = m.low[axis + 1], m.high[axis + 1]
        whole = (first, last) == (0, inner) and (outer == step * inner or inner == 1)
        rows = [(lo, hi)] if whole else [(k, k + 1) for k in range(lo, min(hi, lo + MOST + 1))]
        for a, b in rows:
            # A single row fits any stride, and inner axes of one element have the stride of their
            # rows.
            stride = outer if whole and inner == 1 else step
            offset = m.offset + a * (outer - stride * inner)
            found.append(
                Affine(
                    offset,
                    (*m.strides[:axis], stride, *m.strides[axis + 2 :]),
                    (*m.low[:axis], a * inner + first, *m.low[axis + 2 :]),
                    (*m.high[:axis], (b - 1) * inner + last, *m.high[axis + 2 :]),
                    m.free,
                )
            )
    return found


def _split_axis(maps: Maps, shape: Shape, axis: int, inner: int) -> Maps:
    """Split an axis in two, the second of size `inner`."""
    found = []
    for m in maps:
        stride, lo, hi = m.strides[axis], m.low[axis], m.high[axis]
        row, last = lo // inner, (hi - 1) // inner
        boxes = []
        if row == last:
            boxes.append((row, row + 1, lo - row * inner, hi - row * inner))
        else:
            if lo > row * inner:
                boxes.append((row, row + 1, lo - row * inner, inner))
                row += 1
            full = hi // inner
            if full > row:
                boxes.append((row, full, 0, inner))
            if hi > full * inner:
                boxes.append((full, full + 1, 0, hi - full * inner))
        for a, b, first, end in boxes:
            found.append(
                Affine(
                    m.offset,
                    (*m.strides[:axis], stride * inner, stride, *m.strides[axis + 1 :]),
                    (*m.low[:axis], a, first, *m.low[axis + 1 :]),
                    (*m.high[:axis], b, end, *m.high[axis + 1 :]),
                    m.free,
                )
            )
    return found
