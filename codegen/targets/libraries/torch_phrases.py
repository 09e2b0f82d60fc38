"""torch's arrays, views and loops in readable code, and its names where NumPy's differ."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from typing import Any

import numpy as np

from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import How, view_text
from primgraph.codegen.ops.spelling.library import Library, call
from primgraph.codegen.ops.spelling.literals import (
    array_dtype,
    dtype_text,
    full_text,
    is_spelled,
    rows_text,
    shape_text,
)
from primgraph.codegen.targets.readable.control import Statements, Value, Write
from primgraph.codegen.targets.readable.dialect import Placing
from primgraph.codegen.targets.readable.page import Page
from primgraph.codegen.targets.readable.phrases import Phrases
from primgraph.codegen.targets.text.flow import Loop
from primgraph.ir.dims import TRIPS
from primgraph.ir.types import BOOL, INT64, DType
from primgraph.ir.views import WHOLE, Permute, Range, Slice

# Arrays up to this size are written number by number.
_LISTED = 64
_LINE = 88


def _number(text: str, dtype: DType) -> str:
    """Return a tensor of numbers, with a dtype unless torch chooses it."""
    return call("array", f"{text}{'' if dtype in (INT64, BOOL) else array_dtype(dtype)}")


def _lines(name: str, array: np.ndarray[Any, Any], *, changes: bool) -> list[str]:
    """Return statements that bind `name` to a constant."""
    dtype, first = array.dtype, array.reshape(-1)[:1].tolist()
    if not array.size:
        return [f"{name} = {full_text(0, array.shape, dtype)}"]
    if array.tobytes() == np.full(array.shape, first[0], dtype).tobytes():
        return [f"{name} = {full_text(first[0], array.shape, dtype)}"]
    n = array.shape[0] if array.ndim else 0
    if array.shape == (n, n) and array.tobytes() == np.eye(n, dtype=dtype).tobytes():
        return [f"{name} = {call('eye', f'{n}{array_dtype(dtype)}')}"]
    if array.ndim == 1 and dtype == INT64 and np.array_equal(array, np.arange(n) + first):
        ends = f"{first[0]}, {first[0] + n}" if first[0] else f"{n}"
        return [f"{name} = {call('arange', ends)}"]
    has_nan = dtype.kind in "fc" and bool(np.isnan(array).any())
    if is_spelled(array) or (array.size <= _LISTED and not has_nan):
        return [f"{name} = {_number(rows_text(array), dtype)}"]
    digits = array.astype(dtype.newbyteorder("<"), copy=False).tobytes().hex()
    rows = [f'    "{part}"' for part in textwrap.wrap(digits, _LINE - len('    ""'))]
    read = f"torch.frombuffer({name}{array_dtype(dtype)}).reshape({shape_text(array.shape)})"
    return [f"{name} = bytearray.fromhex(", *rows, ")", f"{name} = {read}"]


# Views.


def _flipped(text: str, how: Slice, kept: Collection[int] = ()) -> tuple[str, Slice]:
    """Return an array, reversed where a slice has negative steps, and a slice of that."""
    axes = [
        a
        for a, (_, _, step) in enumerate(how.ranges)
        if type(step) is int and step < 0 and a not in kept
    ]
    if not axes:
        return text, how
    ranges = [_turned(r) if a in axes else r for a, r in enumerate(how.ranges)]
    return f"torch.flip({text}, {tuple(axes)})", Slice(tuple(ranges))


def _turned(range: Range) -> Range:
    """Return the range of an axis from its end, with a positive step."""
    start, stop, step = range
    assert type(step) is int
    return (
        None if start is None else -1 - start,
        None if stop is None else -1 - stop,
        -step,
    )


def _view(how: How | None, x: Text) -> str:
    text = x.operand_code(ATOM)
    if isinstance(how, Permute) and len(how.axes) != 2:
        return f"{text}.permute({', '.join(map(str, how.axes))})"
    if isinstance(how, Slice):
        flipped, how = _flipped(x.code, how)
        text = text if flipped == x.code else flipped
        if all(r == WHOLE for r in how.ranges):
            return text
    return view_text(how, text)


LIBRARY = Library(
    "torch",
    {
        "array": "tensor",
        "asarray": "as_tensor",
        "bool_": "bool",
        "concatenate": "cat",
        "equal": "eq",
        "left_shift": "bitwise_left_shift",
        "max": "amax",
        "min": "amin",
        "power": "pow",
        "right_shift": "bitwise_right_shift",
        "rint": "round",
        "take_along_axis": "take_along_dim",
    },
    {"astype": "to", "axes": "dim", "axis": "dim", "keepdims": "keepdim"},
    dtype="dtype=",
    default="",
    copy=lambda text: f"{text.operand_code(ATOM)}.clone()",
    view=_view,
    names_axes=True,
)

PHRASES = Phrases(
    number=_number,
    own="{}",
    lines=_lines,
    known=lambda name: call("asarray", name),
    flipped=_flipped,
    converter="as_tensor",
    mixes=False,
)

PLACING = Placing(
    "on_the_device_of_arguments",
    frozenset({"arange", "array", "asarray", "eye", "full", "ones", "zeros"}),
    "import functools",
)


# Branches and loops.


def write_statements(page: Page, i: int, step: Step, write: Write) -> None:
    """Write a branch or a loop to a page as statements; stacks are lists until the loop ends."""
    words = _Statements(page, i, step, write)
    words.run()


class _Statements(Statements):
    """Statements of torch for one branch or loop."""

    appends = True

    def end(self, loop: Loop[Value]) -> None:
        p = loop.params
        limit = p["limit"] if loop.number is not None else p["length"]
        if limit is not None and limit is not TRIPS:
            is_whole = loop.number is None and loop.count is None and type(limit) is int and limit
            for name, type_ in zip(self.stacks, loop.stacked_kinds, strict=True):
                if loop.number is None and p["reverse"]:
                    self.line(f"{name}.reverse()")
                made = f"torch.stack({name})"
                if not is_whole:
                    self.page.include("stack_rows")
                    shape = shape_text(type_.shape)
                    made = f"stack_rows({name}, {shape}, {dtype_text(type_.dtype)})"
                self.line(f"{name} = {made}")
        super().end(loop)
