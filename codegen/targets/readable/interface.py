"""The interface of a readable function: parameters, checks, results, docstring."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import final

from primgraph.codegen.ops.spelling.library import library
from primgraph.codegen.ops.spelling.literals import dtype_argument, dtype_text, shape_text
from primgraph.codegen.targets.readable.containers import (
    accesses,
    is_nested,
    lengths,
    printable_name,
    result_lines,
)
from primgraph.codegen.targets.readable.page import LONGEST, Page, Piece, entry_name, explicit
from primgraph.codegen.targets.readable.sizes import SEVERAL, Sizes, loop_over_arrays
from primgraph.codegen.targets.text.docstrings import docstring
from primgraph.codegen.targets.text.layout import statement
from primgraph.ir.frontend.containers import Form, Tree, result_names
from primgraph.ir.frontend.containers import names as names_of
from primgraph.ir.frontend.result_names import Title
from primgraph.ir.types import DType, TensorType


@final
class Interface:
    """The parameters and results of the page's function, in their containers.

    `form` is None if there are no containers. `roots` are the parameters with their containers, and
    `arguments` are names for the arrays in them.
    """

    def __init__(self, page: Page, form: Form | None, titles: Sequence[Title]) -> None:
        self.page, self.titles = page, titles
        self.form = form.plain_form if form is not None and is_nested(form) else None
        given = self.form.arguments if self.form is not None else ()
        self.roots: list[tuple[str, Tree]] = [
            (page.names.name_from_hint(n, "x"), t) for n, t in given
        ]
        self.arguments = self._arguments()
        self.name = entry_name(page.schedule.name, page.file.dialect)

    @property
    def parameters(self) -> list[str]:
        return self.arguments if self.form is None else [root for root, _ in self.roots]

    def _arguments(self) -> list[str]:
        """Return a name for each array; arrays that are parameters keep the parameter's name."""
        hints = self.page.schedule.hints
        if self.form is None:
            return [
                self.page.names.name_from_hint(hints[i], "x")
                for i in range(self.page.schedule.inputs)
            ]
        found: list[str] = []
        for root, tree in self.roots:
            for access in accesses(tree, root):
                hint = hints[len(found)]
                found.append(root if access == root else self.page.names.name_from_hint(hint, "x"))
        return found

    def docstring(self) -> list[str]:
        """Return the docstring of the entry, by the names of arguments and results."""
        schedule = self.page.schedule
        named = [n for root, tree in self.roots for n in names_of(tree, root)] or self.arguments
        titles = [printable_name(n, f"argument {i}") for i, n in enumerate(named)]
        given = zip(titles, schedule.types, strict=False)
        keys = result_names(self.form, len(schedule.outputs))
        assigned = [self.page.called.get(v, "") for v in schedule.outputs]
        pairs = zip(keys, assigned, schedule.outputs, strict=True)
        made = [(printable_name(k or a, ""), schedule.types[v]) for k, a, v in pairs]
        return docstring(list(given), made, self.titles)

    def bind_arguments(self, names: list[str], sizes: set[str]) -> list[str]:
        """Return statements that bind `names` to the argument arrays, checked in a file.

        They also compute those variables of `sizes` that are read.
        """
        if self.form is None:
            if self.page.standalone:
                return self._checks(names, names, sizes)
            return self._sizes_of(names, sizes)
        texts = [text for root, tree in self.roots for text in accesses(tree, root)]
        if not self.page.standalone:
            return [*self._bind_arrays(names, texts, sizes), *self._sizes_of(names, sizes)]
        lines = []
        for root, tree in self.roots:
            for text, count, name in lengths(tree, root, root):
                lines.append(f"if len({text}) != {count}:")
                message = f"{printable_name(name, root)} must have length {count}"
                lines += raise_lines(f'"{message}"')
        return [*lines, *self._checks(names, texts, sizes)]

    def _bind_arrays(self, names: list[str], texts: list[str], sizes: set[str]) -> list[str]:
        """Return statements that bind the names of arrays that are read or determine sizes."""
        page = self.page
        tellers = set() if page.sizes is None else page.sizes.tellers(sizes)
        used = [
            page.schedule.uses[i] or i in page.outputs or i in tellers for i in range(len(names))
        ]
        pairs = enumerate(zip(names, texts, strict=True))
        return [f"{name} = {text}" for i, (name, text) in pairs if name != text and used[i]]

    def _sizes_of(self, names: list[str], used: set[str]) -> list[str]:
        """Return statements that compute the used variables of sizes."""
        sizes = self.page.sizes
        return [] if sizes is None else sizes.size_definitions(names, sizes.required_sizes(used))

    def _checks(self, names: list[str], given: list[str], used: set[str]) -> list[str]:
        """Return statements that convert `given` to named arrays and check their shapes."""
        page, sizes = self.page, self.page.sizes
        lines = argument_checks(page, names, given)
        if sizes is not None:
            lines += sizes.checked_definitions(names, used, page.own_name)
        return lines

    def result(self, value: int, *, inline: bool) -> str:
        """Return the expression of a result in full shape."""
        if inline and self.page.pieces[value].is_pending:
            self.page.write_source_comment(self.page.schedule.steps[self.page.pieces[value].step])
            self.page.waiting.pop(value, None)
        elif self.page.pieces[value].is_pending:
            self.page.write(value)
        found, type = self.page.pieces[value], self.page.schedule.types[value]
        with self.page.noting_sizes():
            piece = explicit(self.page, found, type)
        self.page.use(piece)
        if not self.page.standalone:
            return piece.text.code
        return self._own(value, piece, found.scalar is None and found.shape != type.shape)

    def _own(self, value: int, piece: Piece, repeated: bool) -> str:
        """Return the expression as an array that is not an argument, a constant, or a scalar.

        If elements are `repeated`, it is copied as well.
        """
        schedule = self.page.schedule
        computed = value >= schedule.inputs and not schedule.is_view(value)
        fresh = computed and not repeated and value not in self.page.shared
        if not fresh or schedule.outputs.count(value) > 1:
            return library().copy(piece.text)
        text = piece.text.code
        return text if schedule.types[value].shape else self.page.phrases.own.format(text)

    def return_lines(self, results: list[str]) -> list[str]:
        """Return the lines of the results in their containers."""
        assert self.form is not None
        names, tree = self.page.names, self.form.results
        return result_lines(tree, results, self.page.file.classes, names, LONGEST - 7)


def argument_checks(page: Page, names: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return statements that bind `names` to `given` as arrays of their types.

    They raise ValueError for other shapes. Symbolic sizes match any number.
    """
    types, sizes, lines = page.schedule.types[: len(names)], page.sizes, []
    shared = sum(not t.names for t in types) >= SEVERAL
    if shared:
        page.include(page.phrases.converter)
    rows = zip(names, given, types, range(len(names)), strict=True)
    for type, group in groupby(rows, lambda row: row[2]):
        members = list(group)
        if sizes is None or not type.names:
            for name, text, _, i in members:
                lines += _check(page, name, text, type, _spoken(name, i), shared=shared)
        else:
            lines += [f"{name} = {_as_array(text, type.dtype)}" for name, text, _, _ in members]
            lines += _sized_checks(
                page, sizes, [(n, _spoken(n, i)) for n, _, _, i in members], type
            )
    return lines


def _as_array(text: str, dtype: DType) -> str:
    """Return an argument as an array of its dtype."""
    return f"{library().function('asarray')}({text}, {dtype_argument(dtype)})"


def _spoken(name: str, i: int) -> str:
    """Return the name of an argument in messages."""
    return name if name.isidentifier() else f"argument {i}"


def _check(
    page: Page, name: str, text: str, type: TensorType, spoken: str, *, shared: bool
) -> list[str]:
    """Return the conversion of an argument of known shape, and its check."""
    dtype, shape = dtype_text(type.dtype), shape_text(type.shape)
    if shared:
        return statement(
            f"{name} = ", f'{page.phrases.converter}({text}, {dtype}, {shape}, "{spoken}")'
        )
    condition = f"{name}.shape != {shape}"
    message = f"{spoken} must have shape {shape}, not {{{name}.shape}}"
    bound = f"{name} = {_as_array(text, type.dtype)}"
    return [bound, f"if {condition}:", *raise_lines(f'f"{message}"')]


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
