"""Layouts: how the elements of an array lie in memory, for arrays that code is written for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from primgraph.codegen.plan.views import Cut, How, Repeat
from primgraph.ir.types import Shape
from primgraph.ir.views import Expand, Permute, Reshape, Slice


class Layout(NamedTuple):
    """A shape, and how many elements lie between neighbours along each of its axes."""

    shape: Shape
    strides: tuple[int, ...]

    @property
    def is_row_major(self) -> bool:
        """Whether the elements lie side by side, the last axis being the fastest."""
        axes = self._loops()
        return 0 in self.shape or not axes or (len(axes) == 1 and axes[0].strides == (1,))

    @property
    def is_even(self) -> bool:
        """Whether neighbours in row-major order all lie as far apart, so that they can be flat."""
        return 0 in self.shape or len(self._loops()) < 2

    def _loops(self) -> list[Loop]:
        pairs = zip(reversed(self.shape), reversed(self.strides), strict=True)
        return joined([Loop(n, (s,)) for n, s in pairs if n != 1])

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie side by side in row-major or in column-major order."""
        return self.is_row_major or Layout(self.shape[::-1], self.strides[::-1]).is_row_major

    def expanded(self, shape: Shape) -> Layout:
        """The layout of the view that NumPy's broadcasting makes of this one."""
        lead = len(shape) - len(self.shape)
        extents = zip(self.shape, self.strides, shape[lead:], strict=True)
        strides = tuple(s if n == m else 0 for n, s, m in extents)
        return Layout(shape, (*(0 for _ in range(lead)), *strides))

    def with_last(self, axis: int) -> Layout:
        """The layout of the view with `axis` behind all others."""
        order = [a for a in range(len(self.shape)) if a != axis] + [axis]
        return Layout(tuple(self.shape[a] for a in order), tuple(self.strides[a] for a in order))


def row_major(shape: Shape) -> Layout:
    """The layout of a fresh array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return Layout(shape, tuple(reversed(strides)))


class Loop(NamedTuple):
    """A loop over `extent` elements, which lie so far apart in each of several arrays."""

    extent: int
    strides: tuple[int, ...]


def loops(arrays: Sequence[Layout]) -> list[Loop]:
    """The loops, innermost first, in which NumPy goes through arrays of one shape.

    Axes that all arrays go through backwards are turned round. They are sorted by the distance of
    their elements, where the arrays agree on it, and those that follow one another without a gap
    in all arrays are one loop; as in `nditer`.
    """
    found: list[Loop] = []
    for a in reversed(range(len(arrays[0].shape))):
        extent, strides = arrays[0].shape[a], tuple(x.strides[a] for x in arrays)
        if extent == 1:
            continue
        if max(strides) <= 0:
            strides = tuple(-s for s in strides)
        place = len(found)
        for k in reversed(range(len(found))):
            pairs = [(abs(s), abs(t)) for s, t in zip(strides, found[k].strides, strict=True)]
            pairs = [(s, t) for s, t in pairs if s and t]
            if any(t <= s for s, t in pairs):
                break
            if pairs:
                place = k
        found.insert(place, Loop(extent, strides))
    return joined(found)


def joined(nested: Sequence[Loop]) -> list[Loop]:
    """The same loops, those made one that follow one another without a gap."""
    found: list[Loop] = []
    for extent, strides in nested:
        if found and strides == tuple(s * found[-1].extent for s in found[-1].strides):
            found[-1] = Loop(found[-1].extent * extent, found[-1].strides)
        else:
            found.append(Loop(extent, strides))
    return found


def viewed_layout(how: How, shape: Shape, x: Layout) -> Layout:
    """The layout of the view of that shape which `how` gives of an array of layout `x`."""
    match how:
        case Reshape():
            # Only elements in row-major order are viewed in another shape.
            return row_major(shape)
        case Permute(axes):
            return Layout(shape, tuple(x.strides[a] for a in axes))
        case Expand(new):
            kept = iter(x.strides)
            rest = len(shape) - len(new)
            return Layout(shape, tuple(0 if n else next(kept) for n in (*new, *[False] * rest)))
        case Slice(ranges):
            steps = (*(step for _, _, step in ranges), *[1] * (len(shape) - len(ranges)))
            return Layout(shape, tuple(s * t for s, t in zip(x.strides, steps, strict=True)))
        case Repeat():
            return x.expanded(shape)
        case Cut():
            return Layout(shape, x.strides)
