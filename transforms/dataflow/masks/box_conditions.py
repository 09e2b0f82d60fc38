"""Union of conditions that hold within boxes of an array, in linear size.

Disjoint boxes that are adjacent along an axis become one `concat`. Overlapping boxes are
partitioned into a minimum number of layers of disjoint ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from heapq import heappop, heappush
from itertools import chain

from primgraph.base.records import dataclass
from primgraph.ir.dims import names_in
from primgraph.ir.graph import Value
from primgraph.ir.types import BOOL
from primgraph.primitives.constants import full
from primgraph.primitives.shapes import concat, slice_assign
from primgraph.transforms.dataflow.locality import assignment_of
from primgraph.transforms.dataflow.masks.conditions import Conditions, strides_of


@dataclass(frozen=True, slots=True)
class _Box:
    """A condition that is false outside a box at `starts`; inside the box it is `held`."""

    starts: tuple[int, ...]
    held: Value

    def other_axes(self, axis: int) -> tuple[tuple[int, int], ...]:
        """Return the start and extent of the box along all other axes."""
        pairs = zip(self.starts, self.held.shape, strict=True)
        return tuple(pair for i, pair in enumerate(pairs) if i != axis)


def any_of(conditions: Conditions, found: Iterable[Value]) -> Value:
    """Record the disjunction of the conditions `found`, which have one shape."""
    listed = list(dict.fromkeys(found))
    boxes = {c: _box(conditions, c) for c in listed}
    others = [c for c in listed if boxes[c] is None]
    parts = [c for c in listed if boxes[c] is not None]
    if len(parts) > 1:
        shape = parts[0].shape
        parts = _brought_together(conditions, [b for b in boxes.values() if b is not None], shape)
    return reduce(conditions.either, [*others, *parts])


def _box(conditions: Conditions, condition: Value) -> _Box | None:
    """Return the box outside of which `condition` is false, if a `slice_assign` shows it."""
    eqn = conditions.definition(condition)
    assigned = assignment_of(eqn)
    if eqn is None or assigned is None or not conditions.never(eqn.inputs[0]):
        return None
    places = strides_of(assigned.result)
    if places is None:
        return None
    held, (starts, steps, _) = eqn.inputs[1], places
    if any(step < 1 for step in steps) or held.type.size == 0:
        return None
    if names_in((*starts, *condition.shape, *held.shape)):
        # Symbolic sizes: overlap cannot be decided.
        return None
    if any(step > 1 and n > 1 for step, n in zip(steps, held.shape, strict=True)):
        sizes = tuple(1 + (n - 1) * k for n, k in zip(held.shape, steps, strict=True))
        nowhere = conditions.record(full, value=False, shape=sizes, dtype=BOOL)
        zeros = (0,) * len(sizes)
        held = conditions.record(slice_assign, nowhere, held, starts=zeros, steps=steps)
    return _Box(starts, held)


def _brought_together(
    conditions: Conditions, boxes: list[_Box], shape: tuple[int, ...]
) -> list[Value]:
    """Merge boxes into conditions of the whole `shape`, one per layer of disjoint boxes."""
    for axis in reversed(range(len(shape))):
        groups: dict[tuple[tuple[int, int], ...], list[_Box]] = {}
        for box in boxes:
            groups.setdefault(box.other_axes(axis), []).append(box)
        layers = chain.from_iterable(_layers(group, axis) for group in groups.values())
        boxes = [_row(conditions, layer, axis, shape[axis]) for layer in layers]
    return [box.held for box in boxes]


def _layers(boxes: Sequence[_Box], axis: int) -> list[list[_Box]]:
    """Partition `boxes` into as few layers as possible of boxes disjoint along `axis`, in order."""
    layers: list[list[_Box]] = []
    ends: list[tuple[int, int]] = []
    for box in sorted(boxes, key=lambda b: b.starts[axis]):
        place = len(layers)
        if ends and ends[0][0] <= box.starts[axis]:
            _, place = heappop(ends)
        else:
            layers.append([])
        layers[place].append(box)
        heappush(ends, (box.starts[axis] + box.held.shape[axis], place))
    return layers


def _row(conditions: Conditions, layer: Sequence[_Box], axis: int, size: int) -> _Box:
    """Concatenate the boxes of a layer, with false between them, over the whole of `axis`."""
    pieces, end = [], 0

    def fill(start: int) -> None:
        if start > end:
            shape = _with(layer[0].held.shape, axis, start - end)
            pieces.append(conditions.record(full, value=False, shape=shape, dtype=BOOL))

    for box in layer:
        fill(box.starts[axis])
        pieces.append(box.held)
        end = box.starts[axis] + box.held.shape[axis]
    fill(size)
    held = pieces[0]
    if len(pieces) > 1 and all(conditions.always(piece) for piece in pieces):
        whole = _with(held.shape, axis, size)
        held = conditions.record(full, value=True, shape=whole, dtype=BOOL)
    elif len(pieces) > 1:
        held = conditions.record(concat, *pieces, axis=axis)
    return replace(layer[0], starts=_with(layer[0].starts, axis, 0), held=held)


def _with(sizes: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*sizes[:axis], size, *sizes[axis + 1 :])
