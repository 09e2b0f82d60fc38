"""Memory access: the elements of a value as an offset and strides in an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.runtime.feeds import strides_of
from primgraph.ir.dims import Dim
from primgraph.ir.index_maps import IndexMap, variables_of, view_map
from primgraph.ir.types import Shape
from primgraph.ir.views import Expand, Permute, Reshape, Slice


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
    """Return the access of result `k` of the view `step`; None if no strides describe it."""
    source, shape = step.operands[0].shape, step.results[k].shape
    match step.form.seen[k]:
        case Expand() | None as how:
            old = iter(access.strides)
            shown = view_map(how, source, shape)
            assert isinstance(shown, IndexMap)
            kept = variables_of(shown.operand)
            strides = [next(old) if axis in kept else 0 for axis in range(len(shape))]
            return Access(access.root, access.offset, tuple(strides))
        case Permute(axes):
            return Access(access.root, access.offset, tuple([access.strides[a] for a in axes]))
        case Slice(ranges):
            offset, apart = access.offset, list(access.strides)
            for i, (start, stop, by) in enumerate(ranges):
                offset += _first(start, stop, by, source[i]) * access.strides[i]
                apart[i] = by * access.strides[i]
            return Access(access.root, offset, tuple(apart))
        case Reshape():
            found = _reshape_strides(source, access.strides, shape)
            return None if found is None else Access(access.root, access.offset, found)


def _first(start: int | None, stop: int | None, by: int, extent: int) -> int:
    """Return the index of the first element of a range along an axis."""
    if type(start) is not Dim and type(stop) is not Dim and type(extent) is not Dim:
        return slice(start, stop, by).indices(extent)[0]
    if start is None:
        return 0 if by > 0 else extent - 1
    return extent + start if type(start) is int and start < 0 else start


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
