"""torch's arrays, views and loops in readable code, and its names where NumPy's differ."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from primgraph.codegen.ir.extents import ATOM, extent_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import How, view_text
from primgraph.codegen.ops.spelling.literals import (
    dtype_text,
    is_spelled,
    rows_text,
    scalar_text,
    shape_text,
)
from primgraph.codegen.targets.readable.control import Statements, Value, Write
from primgraph.codegen.targets.readable.dialect import Placing
from primgraph.codegen.targets.readable.page import Page
from primgraph.codegen.targets.readable.phrases import Phrases
from primgraph.codegen.targets.text.flow import Loop
from primgraph.ir.dims import TRIPS, Dim
from primgraph.ir.params import bits
from primgraph.ir.types import BOOL, FLOAT64, INT64, DType, Shape, scalar_of
from primgraph.ir.views import WHOLE, Permute, Range, Slice

# NumPy's names in the text of cards and printers, and torch's.
_NAMES = (
    (r"(?<!\.)\bnp\.bool_", "torch.bool"),
    (r"(?<!\.)\bnp\.concatenate\b", "torch.cat"),
    (r"(?<!\.)\bnp\.take_along_axis\b", "torch.take_along_dim"),
    (r"(?<!\.)\bnp\.rint\b", "torch.round"),
    (r"(?<!\.)\bnp\.power\b", "torch.pow"),
    (r"(?<!\.)\bnp\.equal\b", "torch.eq"),
    (r"(?<!\.)\bnp\.(left|right)_shift\b", r"torch.bitwise_\1_shift"),
    (r"(?<!\.)\bnp\.", "torch."),
    (r"\.astype\(", ".to("),
)
_PATTERNS = tuple([(re.compile(pattern), name) for pattern, name in _NAMES])
_WORDS = {"axis=": "dim=", "axes=": "dim=", "keepdims=": "keepdim="}
# Strings and comments are not code: keys of dicts and messages keep their words.
_TEXT = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)""")
_CALLS = re.compile(r"[\w.]*[(\[{]|[)\]}]|\b(?:axis|axes|keepdims)=(?!=)")
_NUMBER = re.compile(r"torch\.tensor\(([^(),]+), dtype=[\w.]+\)|torch\.tensor\(([^(),]+)\)")
# Arrays up to this size are written number by number.
_LISTED = 64
_LINE = 88


def respell(lines: Sequence[str]) -> list[str]:
    """Return successive lines of code with torch's names in place of NumPy's.

    Strings, comments and what belongs to the user, such as fields of a named tuple, stay.
    """
    is_library = [False]
    return [_respelled(line, is_library) for line in lines]


def _respelled(line: str, is_library: list[bool]) -> str:
    parts = _TEXT.split(line)
    for i in range(0, len(parts), 2):
        for pattern, name in _PATTERNS:
            parts[i] = pattern.sub(name, parts[i])
        parts[i] = _CALLS.sub(lambda found: _word(found[0], is_library), parts[i])
    return "".join(parts)


def _word(text: str, is_library: list[bool]) -> str:
    """Return a bracket, or torch's word for an argument; `is_library` tells it for each open call.

    Functions and methods of torch have a dot in their names, classes of the user have none.
    """
    if text in _WORDS:
        return _WORDS[text] if is_library[-1] else text
    if text[-1] in "([{":
        is_library.append("." in text)
    elif len(is_library) > 1:
        is_library.pop()
    return text


def as_number(text: str) -> str | None:
    """Return the number of a tensor without axes that is written so."""
    found = _NUMBER.fullmatch(text)
    return None if found is None else found[1] or found[2]


def _dtype(dtype: DType) -> str:
    return f", dtype={dtype_text(dtype)}"


def _scalar(value: Any, dtype: DType) -> str:
    """Return a number; torch refuses one that is larger than the largest of its dtype."""
    text = scalar_text(value, dtype)
    is_large = dtype.itemsize < FLOAT64.itemsize and type(value) is float and abs(value) > 6e4
    return repr(value) if is_large and np.isfinite(value) else text


def _full(value: Any, shape: Shape, dtype: DType) -> str:
    where = shape_text(shape)
    if type(value) is Dim:
        return f"torch.full({where}, {extent_text(value)}{_dtype(dtype)})"
    if bits(value) in (bits(0.0), bits(0), bits(False), bits(0j)):
        return f"torch.zeros({where}{_dtype(dtype)})"
    if bits(value) in (bits(1.0), bits(1), bits(True), bits(complex(1))):
        return f"torch.ones({where}{_dtype(dtype)})"
    return f"torch.full({where}, {_scalar(scalar_of(value, dtype), dtype)}{_dtype(dtype)})"


def _number(value: Any, dtype: DType) -> str:
    natural = dtype in (INT64, BOOL) and type(value) is not Dim
    return f"torch.tensor({_scalar(value, dtype)}{'' if natural else _dtype(dtype)})"


def _as_tensor(text: str, dtype: DType) -> str:
    return f"torch.as_tensor({text}{_dtype(dtype)})"


def _lines(name: str, array: np.ndarray[Any, Any], *, changes: bool) -> list[str]:
    """Return statements that bind `name` to a constant."""
    dtype, first = array.dtype, array.reshape(-1)[:1].tolist()
    if not array.size:
        return [f"{name} = torch.zeros({shape_text(array.shape)}{_dtype(dtype)})"]
    if array.tobytes() == np.full(array.shape, first[0], dtype).tobytes():
        return [f"{name} = {_full(first[0], array.shape, dtype)}"]
    n = array.shape[0] if array.ndim else 0
    if array.shape == (n, n) and array.tobytes() == np.eye(n, dtype=dtype).tobytes():
        return [f"{name} = torch.eye({n}{_dtype(dtype)})"]
    if array.ndim == 1 and dtype == INT64 and np.array_equal(array, np.arange(n) + first):
        ends = f"{first[0]}, {first[0] + n}" if first[0] else f"{n}"
        return [f"{name} = torch.arange({ends})"]
    has_nan = dtype.kind in "fc" and bool(np.isnan(array).any())
    if is_spelled(array) or (array.size <= _LISTED and not has_nan):
        natural = dtype in (INT64, BOOL)
        return [f"{name} = torch.tensor({rows_text(array)}{'' if natural else _dtype(dtype)})"]
    digits = array.astype(dtype.newbyteorder("<"), copy=False).tobytes().hex()
    rows = [f'    "{part}"' for part in textwrap.wrap(digits, _LINE - len('    ""'))]
    read = f"torch.frombuffer({name}{_dtype(dtype)}).reshape({shape_text(array.shape)})"
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


def _view(how: How | None, text: str) -> str:
    if isinstance(how, Permute) and len(how.axes) != 2:
        return f"{text}.permute({', '.join(map(str, how.axes))})"
    if isinstance(how, Slice):
        text, how = _flipped(text, how)
        if all(r == WHOLE for r in how.ranges):
            return text
    return view_text(how, text)


PHRASES = Phrases(
    full=_full,
    number=_number,
    as_array=_as_tensor,
    own="{}",
    copied=lambda text: f"{text.operand_code(ATOM)}.clone()",
    lines=_lines,
    known="torch.as_tensor({})",
    counted="torch.tensor({})",
    view=_view,
    flipped=_flipped,
    converter="as_tensor",
    mixes=False,
)

_MAKERS = re.compile(r"\b(np|torch)\.(zeros|ones|full|tensor|eye|arange)\(|torch\.as_tensor\(\w+\)")


def _makes_tensors(line: str) -> bool:
    """Return whether a line makes tensors, which have a device."""
    return _MAKERS.search(line) is not None


PLACING = Placing(
    "on_the_device_of_arguments",
    _makes_tensors,
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
