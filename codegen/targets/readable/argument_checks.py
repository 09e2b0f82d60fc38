"""Statements of a standalone file that convert its arguments to arrays and check their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from primgraph.codegen.ops.spelling.literals import dtype_text, shape_text
from primgraph.codegen.targets.readable.page import Page
from primgraph.codegen.targets.readable.sizes import SEVERAL, Sizes, loop_over_arrays
from primgraph.codegen.targets.text.layout import statement
from primgraph.ir.types import TensorType


def argument_checks(page: Page, names: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return statements that bind `names` to `given` as arrays of their types.

    They raise ValueError for other shapes. Symbolic sizes match any number.
    """
    types, sizes, lines = page.schedule.types[: len(names)], page.sizes, []
    shared = sum(not t.names for t in types) >= SEVERAL
    if shared:
        page.include("as_array")
    rows = zip(names, given, types, range(len(names)), strict=True)
    for type, group in groupby(rows, lambda row: row[2]):
        members = list(group)
        if sizes is None or not type.names:
            for name, text, _, i in members:
                lines += _check(name, text, type, _spoken(name, i), shared=shared)
        else:
            lines += [f"{name} = {_array(text, type)}" for name, text, _, _ in members]
            lines += _sized_checks(
                page, sizes, [(n, _spoken(n, i)) for n, _, _, i in members], type
            )
    return lines


def _spoken(name: str, i: int) -> str:
    """Return the name of an argument in messages."""
    return name if name.isidentifier() else f"argument {i}"


def _array(text: str, type: TensorType) -> str:
    return f"np.asarray({text}, {dtype_text(type.dtype)})"


def _check(name: str, text: str, type: TensorType, spoken: str, *, shared: bool) -> list[str]:
    """Return the conversion of an argument of known shape, and its check."""
    dtype, shape = dtype_text(type.dtype), shape_text(type.shape)
    if shared:
        return statement(f"{name} = ", f'as_array({text}, {dtype}, {shape}, "{spoken}")')
    condition = f"{name}.shape != {shape}"
    message = f"{spoken} must have shape {shape}, not {{{name}.shape}}"
    return [f"{name} = {_array(text, type)}", f"if {condition}:", *raise_lines(f'f"{message}"')]


def _sized_checks(
    page: Page, sizes: Sizes, arrays: Sequence[tuple[str, str]], type: TensorType
) -> list[str]:
    """Return checks of arrays of one type with symbolic sizes: a loop for several."""
    shape, plain = shape_text(type.shape), all(name == spoken for name, spoken in arrays)
    if len(arrays) < SEVERAL or not plain:
        lines = []
        for name, spoken in arrays:
            lines.append(f"if {sizes.shape_mismatch(name, type)}:")
            lines += raise_lines(f'f"{spoken} must have shape {shape}, not {{{name}.shape}}"')
        return lines
    name, array = page.own_name("name"), page.own_name("array")
    message = f'f"{{{name}}} must have shape {shape}, not {{{array}.shape}}"'
    return [
        *loop_over_arrays(name, array, arrays),
        f"    if {sizes.shape_mismatch(array, type)}:",
        *[f"    {line}" for line in raise_lines(message, depth=3)],
    ]


def raise_lines(message: str, depth: int = 2) -> list[str]:
    """Return the statement after an `if` that raises, which stands at that depth."""
    return [f"    {line}" for line in statement("raise ", f"ValueError({message})", depth=depth)]
