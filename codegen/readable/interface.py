"""What goes in and out of a readable function: parameters, checks, results, a docstring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from primgraph.codegen.cards.spelling.literals import dtype_text, shape_text
from primgraph.codegen.emit.docstrings import docstring
from primgraph.codegen.emit.layout import statement
from primgraph.codegen.readable.containers import accesses, is_nested, lengths, returned, told
from primgraph.codegen.readable.page import LONGEST, Page, Piece, entry_name
from primgraph.ir.frontend.containers import Form, Tree, result_names
from primgraph.ir.frontend.containers import names as names_of
from primgraph.ir.frontend.result_names import Title


@final
class Interface:
    """The parameters and results of the function that a page computes, in their containers.

    `form` is None where there are none to be handled. `roots` are the parameters with their
    containers, and `arguments` names for the arrays in them.
    """

    def __init__(self, page: Page, form: Form | None, titles: Sequence[Title]) -> None:
        self.page, self.titles = page, titles
        self.form = form.spelled if form is not None and is_nested(form) else None
        given = self.form.arguments if self.form is not None else ()
        self.roots: list[tuple[str, Tree]] = [(page.names.hinted(n, "x"), t) for n, t in given]
        self.arguments = self._arguments()
        self.name = entry_name(page.schedule.name)

    @property
    def parameters(self) -> list[str]:
        return self.arguments if self.form is None else [root for root, _ in self.roots]

    def _arguments(self) -> list[str]:
        """A name for each array; those that are arguments by themselves have that of theirs."""
        hints = self.page.schedule.hints
        if self.form is None:
            return [self.page.names.hinted(hints[i], "x") for i in range(self.page.schedule.inputs)]
        found: list[str] = []
        for root, tree in self.roots:
            for access in accesses(tree, root):
                hint = hints[len(found)]
                found.append(root if access == root else self.page.names.hinted(hint, "x"))
        return found

    def docstring(self) -> list[str]:
        """What the entry takes and returns, by the names of arguments and of results."""
        schedule = self.page.schedule
        named = [n for root, tree in self.roots for n in names_of(tree, root)] or self.arguments
        titles = [told(n, f"argument {i}") for i, n in enumerate(named)]
        given = zip(titles, schedule.types, strict=False)
        keys = result_names(self.form, len(schedule.outputs))
        assigned = [self.page.called.get(v, "") for v in schedule.outputs]
        pairs = zip(keys, assigned, schedule.outputs, strict=True)
        made = [(told(k or a, ""), schedule.types[v]) for k, a, v in pairs]
        return docstring(list(given), made, self.titles)

    def begun(self, names: list[str], sizes: set[str]) -> list[str]:
        """Statements that bind the arrays of `names` to what is given, in a file checked.

        They find those variables of `sizes` that are read.
        """
        if self.form is None:
            if self.page.standalone:
                return self._checks(names, names, sizes)
            return self._sizes_of(names, sizes)
        texts = [text for root, tree in self.roots for text in accesses(tree, root)]
        if not self.page.standalone:
            return [*self._bound(names, texts, sizes), *self._sizes_of(names, sizes)]
        lines = []
        for root, tree in self.roots:
            for text, count, name in lengths(tree, root, root):
                lines.append(f"if len({text}) != {count}:")
                message = f"{told(name, root)} must have length {count}"
                lines += _raising(f'"{message}"')
        return [*lines, *self._checks(names, texts, sizes)]

    def _bound(self, names: list[str], texts: list[str], sizes: set[str]) -> list[str]:
        """Statements that bind the names of arrays that are read, or tell sizes."""
        page = self.page
        tellers = set() if page.sizes is None else page.sizes.tellers(sizes)
        used = [
            page.schedule.uses[i] or i in page.outputs or i in tellers for i in range(len(names))
        ]
        pairs = enumerate(zip(names, texts, strict=True))
        return [f"{name} = {text}" for i, (name, text) in pairs if name != text and used[i]]

    def _sizes_of(self, names: list[str], used: set[str]) -> list[str]:
        """Statements that find the variables of sizes that are used."""
        sizes = self.page.sizes
        return [] if sizes is None else sizes.found(names, sizes.needed(used))

    def _checks(self, names: list[str], given: list[str], used: set[str]) -> list[str]:
        """Statements that make of what is `given` arrays of these names and of the right shapes."""
        lines, sizes = [], self.page.sizes
        for i, (name, text) in enumerate(zip(names, given, strict=True)):
            type = self.page.schedule.types[i]
            lines.append(f"{name} = np.asarray({text}, {dtype_text(type.dtype)})")
            if type.names and sizes is not None:
                lines.append(f"if {sizes.misshapen(name, type)}:")
            else:
                lines.append(f"if {name}.shape != {shape_text(type.shape)}:")
            what = name if name.isidentifier() else f"argument {i}"
            message = f"{what} must have shape {shape_text(type.shape)}, not {{{name}.shape}}"
            lines += _raising(f'f"{message}"')
        if sizes is not None:
            lines += sizes.checked(names, used, self.page.names.hinted("rest", "k"))
        return lines

    def result(self, value: int, *, inline: bool) -> str:
        """The expression of a result in full shape."""
        if inline and self.page.pieces[value].pending:
            self.page.say(self.page.schedule.steps[self.page.pieces[value].step])
            self.page.waiting.pop(value, None)
        elif self.page.pieces[value].pending:
            self.page.write(value)
        found, type = self.page.pieces[value], self.page.schedule.types[value]
        piece = self.page.explicit(found, type)
        self.page.use(piece)
        if not self.page.standalone:
            return piece.text.code
        return self._own(value, piece, found.scalar is None and found.shape != type.shape)

    def _own(self, value: int, piece: Piece, repeated: bool) -> str:
        """The expression as an array that is neither an argument, a constant, nor a scalar.

        Nor is it one whose elements are `repeated`.
        """
        schedule, type = self.page.schedule, self.page.schedule.types[value]
        computed = value >= schedule.inputs and not schedule.is_view(value)
        fresh = computed and not repeated and value not in self.page.shared
        if not fresh or schedule.outputs.count(value) > 1:
            return f"np.array({piece.text.code}, {dtype_text(type.dtype)})"
        if type.shape:
            return piece.text.code
        return f"np.asarray({piece.text.code}, {dtype_text(type.dtype)})"

    def returned(self, results: list[str]) -> list[str]:
        """The expression of results in their containers."""
        assert self.form is not None
        names, tree = self.page.names, self.form.results
        return returned(tree, results, self.page.file.classes, names, LONGEST - 7)


def _raising(message: str) -> list[str]:
    """The statement behind an `if` that refuses what is given."""
    return [f"    {line}" for line in statement("raise ", f"ValueError({message})", depth=2)]
