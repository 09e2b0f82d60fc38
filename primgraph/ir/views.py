"""Views as data: how a result is a view of an operand. Views move elements, and compute none."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import Dim
from primgraph.ir.types import Shape


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Size equal to that of an axis of the operand: the last block may have fewer rows."""

    axis: int


Extents: TypeAlias = tuple[int | Rows, ...]


@final
@dataclass(frozen=True, slots=True)
class Reshape:
    """Reshape in row-major order; a size of -1 is inferred."""

    shape: Extents


@final
@dataclass(frozen=True, slots=True)
class Permute:
    axes: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Expand:
    """Insert an axis of size 1 wherever `new` is true, between the first and last new axis."""

    new: tuple[bool, ...]


# Start, stop and step along an axis; None for the default end.
Range: TypeAlias = tuple[int | None, int | None, int]
WHOLE: Range = (None, None, 1)


@final
@dataclass(frozen=True, slots=True)
class Slice:
    """Slice along the first axes; the others are complete."""

    ranges: tuple[Range, ...]


View: TypeAlias = Reshape | Permute | Expand | Slice


def slice_view(slices: Sequence[slice], shape: Shape) -> Slice | None:
    """Return the view of basic slices; None if they select everything."""
    ranges: list[Range] = []
    for s, n in zip(slices, shape, strict=True):
        step = 1 if s.step is None else s.step
        # Counting from the end, the last element is at -1.
        first = (0,) if step > 0 else (n - 1, -1)
        start = None if s.start in first else s.start
        stop = None if s.stop is None or (step > 0 and is_at_least(s.stop, n)) else s.stop
        if step > 0:
            start, stop = _from_end(start, n), _from_end(stop, n)
        ranges.append((start, stop, step))
    while ranges and ranges[-1] == WHOLE:
        ranges.pop()
    return Slice(tuple(ranges)) if ranges else None


def _from_end(end: int | None, extent: int) -> int | None:
    """Return a bound of a slice, counted from the end of the axis if that is simpler.

    Only if bound and size are symbolic, and their distance is known.
    """
    if type(end) is not Dim or type(extent) is not Dim:
        return end
    distance = end - extent
    return distance if type(distance) is int and distance < 0 else end


def part_of(shape: Shape, axis: int, start: int, stop: int) -> Slice | None:
    """Return the slice from `start` to `stop` along one axis."""
    slices = [slice(0, n) for n in shape]
    slices[axis] = slice(start, stop)
    return slice_view(slices, shape)


def flip_view(axes: Sequence[int]) -> Slice | None:
    """Return the slice that reverses the elements along `axes`."""
    last = max(axes, default=-1)
    ranges = [(None, None, -1) if i in axes else WHOLE for i in range(last + 1)]
    return Slice(tuple(ranges)) if ranges else None


def expanded_shape(how: Expand, shape: Shape) -> Shape:
    """Return the shape of a view with new axes."""
    extents = iter(shape)
    return (*(1 if new else next(extents) for new in how.new), *extents)


def keeps_order(how: View | None, source: Shape, shape: Shape) -> bool:
    """Return whether a view of contiguous row-major elements is contiguous and row-major."""
    match how:
        case Reshape():
            return True
        case Permute(axes):
            moved = [a for a in axes if source[a] != 1]
            return moved == sorted(moved)
        case Slice(ranges):
            return _is_prefix(ranges, source, shape)
        case _:
            return prod(source) == prod(shape)


def _is_prefix(ranges: Sequence[Range], source: Shape, shape: Shape) -> bool:
    """Return whether a slice cuts only along the first axis of more than one element."""
    steps = [ranges[i][2] if i < len(ranges) else 1 for i in range(len(shape))]
    first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return all(
        n == 1 or step == 1 if i <= first else n == m and (n == 1 or step == 1)
        for i, (n, m, step) in enumerate(zip(shape, source, steps, strict=True))
    )
