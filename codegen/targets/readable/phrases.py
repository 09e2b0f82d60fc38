"""Expressions that the printer of readable code writes beside those of primitives."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias, final

from primgraph.codegen.ops.spelling.literals import (
    array_lines,
    dtype_text,
)
from primgraph.ir.types import DType
from primgraph.ir.views import Slice

# A function of an expression of an array, axes to reverse and ranges.
_Flip: TypeAlias = Callable[[str, Slice, Collection[int]], tuple[str, Slice]]


def _number(text: str, dtype: DType) -> str:
    return f"{dtype_text(dtype)}({text})"


@final
class Phrases(NamedTuple):
    """NumPy's expressions of arrays and numbers, or those of another library.

    `number` is an array without axes, `own` a result that is a number or an array, `lines` are the
    statements of a constant, and `known` is a reference to it. `flipped` returns an array and a
    slice of it without negative steps. `converter` is the support function that checks arguments.
    If `mixes`, functions take numbers in place of arrays, of the dtype that NumPy gives them.
    """

    number: Callable[[str, DType], str] = _number
    own: str = "np.asarray({})"
    lines: Callable[..., list[str]] = array_lines
    known: Callable[[str], str] = lambda name: name
    flipped: _Flip = lambda text, how, axes: (text, how)
    converter: str = "as_array"
    mixes: bool = True
