"""Views in a plan: views of primitives, broadcasts, and rows of blocks."""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.codegen.ir.extents import extent_text
from primgraph.errors import InternalError
from primgraph.ir.dims import Dim
from primgraph.ir.types import Shape
from primgraph.ir.views import WHOLE, Expand, Extents, Permute, Range, Reshape, Rows, Slice, View


def tuple_text(names: list[str]) -> str:
    """Return a tuple display of names, also of one name or none."""
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


@final
@dataclass(frozen=True, slots=True)
class Repeat:
    """A broadcast of an array to a shape."""

    shape: Extents


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """The rows of a block, along `axis`, in a turn of loop `loop`."""

    axis: int
    loop: int


How: TypeAlias = View | Repeat | Cut


def part_shape(how: Reshape | Slice, shape: Shape) -> Shape:
    """Return the shape of a slice or a reshape of an array."""
    if isinstance(how, Slice):
        taken = [len(range(n)[slice(*r)]) for n, r in zip(shape, how.ranges, strict=False)]
        return (*taken, *shape[len(taken) :])
    extents = [shape[n.axis] if isinstance(n, Rows) else n for n in how.shape]
    known = prod(n for n in extents if n >= 0)
    return tuple([prod(shape) // max(known, 1) if n < 0 else n for n in extents])


def rowwise_view(how: How) -> View | None:
    """Return the view of a stack that applies `how` to each row; None if there is none."""
    match how:
        case Slice(ranges):
            return Slice((WHOLE, *ranges))
        case Permute(axes):
            return Permute((0, *(a + 1 for a in axes)))
        case Expand(new):
            return Expand((False, *new))
        case Reshape(shape) if all(type(n) is int for n in shape):
            return Reshape((Rows(0), *shape))
    return None


def apply_view(how: How, x: Any) -> Any:
    """Return a view of the array `x`, of a known shape."""
    match how:
        case Reshape(shape):
            return x.reshape(shape)
        case Permute(axes):
            return x.transpose(axes)
        case Expand(new):
            return x[tuple([None if n else slice(None) for n in new])]
        case Slice(ranges):
            return x[tuple([slice(*r) for r in ranges])]
        case Repeat(shape):
            broadcast: Any = np.broadcast_to
            return broadcast(x, shape)
        case Cut():
            raise InternalError("rows of a block have no view outside its loop")


# Text.


def view_text(how: How | None, x: str, repeat: str = "np.broadcast_to") -> str:
    """Return the expression of a view of `x`; `repeat` is the function for broadcasts."""
    match how:
        case None:
            return x
        case Reshape(shape):
            return f"{x}.reshape({', '.join(_extents(_with_rest(shape), x)) or '()'})"
        case Permute(axes):
            if axes == tuple(reversed(range(len(axes)))):
                return f"{x}.T"
            return f"{x}.transpose({', '.join(map(str, axes))})"
        case Expand(new):
            return f"{x}[{', '.join(['None' if n else ':' for n in new])}]"
        case Slice(ranges):
            return f"{x}[{', '.join(map(range_text, ranges))}]"
        case Repeat(shape):
            return f"{repeat}({x}, {tuple_text(_extents(shape, x))})"
        case Cut(axis):
            return f"{x}[{':, ' * axis}s]"


def _extents(shape: Extents, x: str) -> list[str]:
    return [f"{x}.shape[{n.axis}]" if isinstance(n, Rows) else extent_text(n) for n in shape]


def _with_rest(shape: Extents) -> Extents:
    """Replace the only unknown size by -1, if the others are known and none is zero."""
    unknown = [n for n in shape if type(n) is Dim]
    others = [n for n in shape if type(n) is int and n > 0]
    if len(unknown) != 1 or len(unknown) + len(others) < len(shape):
        return shape
    return tuple([-1 if type(n) is Dim else n for n in shape])


def range_text(range: Range) -> str:
    """Return the text of a range, with spaces around colons where formatters put them."""
    start, stop, step = ("" if n is None else extent_text(n) for n in range)
    colon = " : " if " " in start + stop + step else ":"
    text = f"{start}{colon}{stop}" + (f"{colon}{step}" if step != "1" else "")
    return text.replace(":  :", "::").strip()
