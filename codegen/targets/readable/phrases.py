"""Expressions that the printer of readable code writes beside those of primitives."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.views import How, view_text
from primgraph.codegen.ops.spelling.literals import (
    array_lines,
    dtype_text,
    full_text,
    scalar_text,
)
from primgraph.ir.types import DType, Shape
from primgraph.ir.views import Slice

# A function of an expression of an array, axes to reverse and ranges.
_Flip: TypeAlias = Callable[[str, Slice, Collection[int]], tuple[str, Slice]]


def _number(value: Any, dtype: DType) -> str:
    return f"{dtype_text(dtype)}({scalar_text(value, dtype)})"


def _as_array(text: str, dtype: DType) -> str:
    return f"np.asarray({text}, {dtype_text(dtype)})"


@final
class Phrases(NamedTuple):
    """NumPy's expressions of arrays and numbers, or those of another library.

    `full` is an array of equal elements, `number` an array without axes, `as_array` an argument as
    an array, `own` a result that is a number or an array, `copied` a copy, `counted` a number of
    iterations, `lines` are the statements of a constant, and `known` is a reference to it.
    `flipped` returns an array and a slice of it without negative steps. `converter` is the support
    function that checks arguments. If `mixes`, functions take numbers in place of arrays, of the
    dtype that NumPy gives them.
    """

    full: Callable[[Any, Shape, DType], str] = full_text
    number: Callable[[Any, DType], str] = _number
    as_array: Callable[[str, DType], str] = _as_array
    own: str = "np.asarray({})"
    copied: Callable[[Text], str] = lambda text: f"np.array({text.code})"
    lines: Callable[..., list[str]] = array_lines
    known: str = "{}"
    counted: str = "np.int64({})"
    view: Callable[[How | None, str], str] = view_text
    flipped: _Flip = lambda text, how, axes: (text, how)
    converter: str = "as_array"
    mixes: bool = True
