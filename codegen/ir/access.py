"""Memory access: the elements of a value as an offset and strides in an array."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.runtime.feeds import strides_of
from primgraph.ir.index_maps import Index, IndexMap, Place, RowMajor
from primgraph.ir.types import Shape


@final
@dataclass(frozen=True, slots=True)
class Access:
    """Strided access: element `(i, j, ...)` is element `offset + i * strides[0] + ...` of `root`.

    The root is a computed value in contiguous row-major order.
    """

    root: int
    offset: int
    strides: tuple[int, ...]

    def is_whole(self, shape: Shape) -> bool:
        """Return whether the access is contiguous from the first element of the root."""
        return self.offset == 0 and all(
            n == 1 or s == t for n, s, t in zip(shape, self.strides, row_major(shape), strict=True)
        )


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array in row-major order."""
    return strides_of(shape, 1)


def loop_strides(strides: Sequence[int], shape: Shape) -> tuple[int, ...]:
    """Return the strides along the axes of a nest over `shape`, which has none of size 1."""
    return tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])


def whole(root: int, shape: Shape) -> Access:
    return Access(root, 0, row_major(shape))


def view_access(access: Access, step: Step, k: int) -> Access | None:
    """Return the access of result `k` of a view or of windows; None if no strides describe it."""
    shown = step.dependence(k, 0)
    if isinstance(shown, RowMajor):
        source, shape = step.operands[0].shape, step.results[k].shape
        found = _reshape_strides(source, access.strides, shape)
        return None if found is None else Access(access.root, access.offset, found)
    assert isinstance(shown, IndexMap)
    offset, strides = strides_onto(shown.operand, access.strides, shown.result)
    return Access(access.root, access.offset + offset, strides)


def strides_onto(
    places: Sequence[Place], strides: Sequence[int], onto: Sequence[Place]
) -> tuple[int, tuple[int, ...]]:
    """Return where elements at `places` begin in an array, and their strides along axes `onto`.

    Both are sides of an index map, of which each axis in `onto` is a variable.
    """
    offset, apart = 0, defaultdict[int, int](int)
    for index, stride in zip(places, strides, strict=True):
        assert isinstance(index, Index)
        offset += index.start * stride
        for variable, by in index.terms:
            apart[variable] += by * stride
    return offset, tuple([apart[p.terms[0][0]] for p in onto if isinstance(p, Index)])


def _reshape_strides(source: Shape, strides: Sequence[int], shape: Shape) -> tuple[int, ...] | None:
    """Return the strides of the same elements in another shape, or None."""
    if 0 in source:
        return row_major(shape)
    # Merged axes whose elements are evenly spaced: size and stride of each.
    runs: list[tuple[int, int]] = []
    for n, s in zip(source, strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    found: list[int] = []
    if len(runs) == 1:
        # A single merged axis has as many elements as the shape, for all symbolic sizes.
        return tuple([s * runs[0][1] for s in row_major(shape)])
    at = len(runs) - 1
    left = runs[at][0] if runs else 1
    step = runs[at][1] if runs else 0
    for n in reversed(shape):
        if n == 1:
            found.append(0)
            continue
        while left == 1 and at > 0:
            at -= 1
            left, step = runs[at]
        # If this depends on symbolic sizes, it does not hold for all of them.
        if not is_zero(left % n):
            return None
        found.append(step)
        left //= n
        step *= n
    return tuple(reversed(found))
