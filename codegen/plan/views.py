"""Views: how one array is seen as another, as data. They move elements, and compute nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, final

from primgraph.codegen.plan.schedule import Step
from primgraph.ir.types import Shape
from primgraph.primitives.shapes import strided


def tuple_text(names: list[str]) -> str:
    """A tuple display, also of one name or none."""
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """An extent that is that of an axis of the operand: blocks at the end have fewer rows."""

    axis: int


Extents: TypeAlias = tuple[int | Rows, ...]


@final
@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in row-major order; an extent of -1 is what the others leave."""

    shape: Extents


@final
@dataclass(frozen=True, slots=True)
class Permute:
    axes: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Expand:
    """An axis of one element wherever `new` has true, from the first new one to the last."""

    new: tuple[bool, ...]


# Start, stop and step along an axis; None for the end that the step comes from or goes to.
Range: TypeAlias = tuple[int | None, int | None, int]
WHOLE: Range = (None, None, 1)


@final
@dataclass(frozen=True, slots=True)
class Slice:
    """Elements along the first axes; the others are there as a whole."""

    ranges: tuple[Range, ...]


@final
@dataclass(frozen=True, slots=True)
class Repeat:
    """What NumPy's broadcasting makes of an array, at full length."""

    shape: Extents


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """The rows of a block, along `axis`, in a turn of loop `loop`."""

    axis: int
    loop: int


How: TypeAlias = Reshape | Permute | Expand | Slice | Repeat | Cut


def sliced(slices: Sequence[slice], shape: Shape) -> Slice | None:
    """The view that basic slices give; None where they leave all as it is."""
    ranges: list[Range] = []
    for s, n in zip(slices, shape, strict=True):
        step = 1 if s.step is None else s.step
        start = None if s.start == (0 if step > 0 else n - 1) else s.start
        stop = None if s.stop is None or (step > 0 and s.stop >= n) else s.stop
        ranges.append((start, stop, step))
    while ranges and ranges[-1] == WHOLE:
        ranges.pop()
    return Slice(tuple(ranges)) if ranges else None


def part_of(shape: Shape, axis: int, start: int, stop: int) -> Slice | None:
    """Elements from `start` to `stop` along one axis."""
    slices = [slice(0, n) for n in shape]
    slices[axis] = slice(start, stop)
    return sliced(slices, shape)


def flipped(axes: Sequence[int]) -> Slice | None:
    """The elements along `axes` in reverse order."""
    last = max(axes, default=-1)
    ranges = [(None, None, -1) if i in axes else WHOLE for i in range(last + 1)]
    return Slice(tuple(ranges)) if ranges else None


def part_shape(how: Reshape | Slice, shape: Shape) -> Shape:
    """The shape of a part of an array, or of the same elements in rows."""
    if isinstance(how, Slice):
        taken = [len(range(n)[slice(*r)]) for n, r in zip(shape, how.ranges, strict=False)]
        return (*taken, *shape[len(taken) :])
    extents = [shape[n.axis] if isinstance(n, Rows) else n for n in how.shape]
    known = prod(n for n in extents if n >= 0)
    return tuple([prod(shape) // max(known, 1) if n < 0 else n for n in extents])


def expanded_shape(step: Step) -> Shape:
    """The shape of what `broadcast` is as a view: no more axes than broadcasting needs."""
    new, shape = set(step.params["new_axes"]), step.params["shape"]
    lead = next(a for a in range(len(shape) + 1) if a not in new)
    return tuple(1 if a in new else n for a, n in enumerate(shape))[lead:]


def _reshaped(step: Step, k: int) -> How | None:
    shape = step.params["shape"]
    return None if shape == step.operands[0].shape else Reshape(shape)


def _permuted(step: Step, k: int) -> How | None:
    axes = step.params["axes"]
    return None if axes == tuple(range(len(axes))) else Permute(axes)


def _expanded(step: Step, k: int) -> How | None:
    """New axes of extent one, as far as NumPy's broadcasting does not add them by itself."""
    new = set(step.params["new_axes"])
    marks = [a in new for a in range(len(step.params["shape"]))]
    while marks and marks[0]:
        marks.pop(0)
    while marks and not marks[-1]:
        marks.pop()
    return Expand(tuple(marks)) if marks else None


def _sliced(step: Step, k: int) -> How | None:
    p = step.params
    return sliced(strided(p["starts"], p["sizes"], p["steps"]), step.operands[0].shape)


def _parted(step: Step, k: int) -> How | None:
    axis, sizes = step.params["axis"], step.params["sizes"]
    start = sum(sizes[:k])
    return part_of(step.operands[0].shape, axis, start, start + sizes[k])


# How result `k` of a step sees its operand; None where it is the operand itself.
VIEWS: dict[str, Callable[[Step, int], How | None]] = {
    "stop_gradient": lambda step, k: None,
    "reshape": _reshaped,
    "permute": _permuted,
    "broadcast": _expanded,
    "reverse": lambda step, k: flipped(step.params["axes"]),
    "slice": _sliced,
    "split": _parted,
}


# Text.


def view_text(how: How | None, x: str, repeat: str = "np.broadcast_to") -> str:
    """The expression of a view of `x`, by the function `repeat` where it is repeated."""
    match how:
        case None:
            return x
        case Reshape(shape):
            return f"{x}.reshape({', '.join(_extents(shape, x)) or '()'})"
        case Permute(axes):
            if axes == tuple(reversed(range(len(axes)))):
                return f"{x}.T"
            return f"{x}.transpose({', '.join(map(str, axes))})"
        case Expand(new):
            return f"{x}[{', '.join(['None' if n else ':' for n in new])}]"
        case Slice(ranges):
            return f"{x}[{', '.join(map(_range, ranges))}]"
        case Repeat(shape):
            return f"{repeat}({x}, {tuple_text(_extents(shape, x))})"
        case Cut(axis):
            return f"{x}[{':, ' * axis}s]"


def _extents(shape: Extents, x: str) -> list[str]:
    return [f"{x}.shape[{n.axis}]" if isinstance(n, Rows) else str(n) for n in shape]


def _range(range: Range) -> str:
    start, stop, step = ("" if n is None else str(n) for n in range)
    return f"{start}:{stop}" + (f":{step}" if step != "1" else "")
