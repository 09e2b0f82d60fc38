"""A page of readable code: the expression of each value, and the statements so far.

An expression is pending until it is read. It is then inlined into the line that reads it, if the
line stays readable, or else written as a statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.extents import ATOM, Text, sizes_written
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ops.spelling.library import call, writing_for
from primgraph.codegen.ops.spelling.literals import full_text, scalar_text, shape_text, short_text
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.runtime import support
from primgraph.codegen.targets.readable.containers import Classes
from primgraph.codegen.targets.readable.dialect import NUMPY, Dialect
from primgraph.codegen.targets.readable.phrases import Phrases
from primgraph.codegen.targets.readable.shapes import shown_shapes
from primgraph.codegen.targets.readable.sizes import Sizes
from primgraph.codegen.targets.text.identifiers import function_name, name_values
from primgraph.codegen.targets.text.layout import WIDTH, statement
from primgraph.codegen.targets.text.module import Line, Parts
from primgraph.codegen.targets.text.names import Names, comment, is_safe
from primgraph.ir.frontend.result_names import Title
from primgraph.ir.params import Array
from primgraph.ir.types import Shape, TensorType

# Maximum width of an expression after `return`, and after the name of a value.
LONGEST = WIDTH - len("    return ")

_DEEPEST = 4
# A comment is of up to so many lines of derivatives, if up to so many rows stand under it.
_TOLD_TOGETHER, _FEW_ROWS = 3, 2
# Maximum width of a line with a comment.
_LINE = 100

# Elementwise primitives that are written as expressions of any operands.
_ALIGNED = frozenset(
    op
    for op, row in CARDS.items()
    if row.broadcasts and row.inline and row.repeated is None and row.amend is None
)


@dataclass(frozen=True, slots=True)
class Piece:
    """The expression of a value: a name, a literal, or a pending expression.

    `shape` is that of the expression, before NumPy's broadcasting. `names` are the variables in it.
    `value` is the value to name if the expression becomes
    a statement; -1 if it is not pending. An element or a row of an array has `base`, the array, and
    the `index` in it.
    """

    text: Text
    shape: Shape
    names: tuple[str, ...] = ()
    depth: int = 0
    value: int = -1
    step: int = -1
    base: str = ""
    index: tuple[str, ...] = ()

    @property
    def scalar(self) -> Any:
        """Return the number of a literal."""
        return self.text.scalar

    @property
    def is_pending(self) -> bool:
        return self.value >= 0


@final
@dataclass(slots=True)
class Shared:
    """State that the functions of a standalone file share: global names, and constants by value.

    `parts` counts the functions that are parts of others; `classes` name the classes of results.
    `imports` are further import lines; SciPy may be among them only if `scipy`. `dialect` is the
    library that the code computes with.
    """

    names: set[str]
    scipy: bool = False
    classes: Classes = field(default_factory=Classes)
    constants: dict[Any, str] = field(default_factory=dict)
    parts: int = 0
    imports: dict[str, None] = field(default_factory=dict)
    dialect: Dialect = NUMPY


def entry_name(graph: str, dialect: Dialect = NUMPY) -> str:
    """Return the name of the function for a graph of that name."""
    return graph if is_safe(graph) and graph not in dialect.names else "kernel"


@final
@dataclass(slots=True)
class _Group:
    """A comment on parts of derivatives: the lines of these, its row, and its width."""

    sources: list[Source]
    row: int
    width: int

    def fits(self, rows: Sequence[Line]) -> bool:
        """Return whether few rows stand under the comment, so that another line may be in it."""
        return len(self.sources) < _TOLD_TOGETHER and 0 < len(rows) - self.row <= _FEW_ROWS

    @property
    def text(self) -> str:
        """Return the comment: `in the gradient of model.py:3, model.py:5 and model.py:7`."""
        first, *others = self.sources
        spots = [other.spot for other in others]
        listed = [str(first), *spots[:-1]]
        return ", ".join(listed) + (f" and {spots[-1]}" if spots else "")


@final
class Page:
    """The statements of a module so far, and the expression of each value."""

    def __init__(
        self,
        schedule: Schedule,
        file: Shared | None,
        titles: Sequence[Title],
        keys: Sequence[str],
        sizes: Sizes | None = None,
    ) -> None:
        self.schedule = schedule
        self.sizes = sizes
        self.standalone = file is not None
        self.file = Shared(set()) if file is None else file
        variables = () if sizes is None else sizes.names
        self.names = Names(
            [entry_name(schedule.name, self.file.dialect), *self.file.names, *variables]
        )
        self.pieces: dict[int, Piece] = {}
        self.opening = list(self.file.dialect.imports)
        self.table: dict[str, Any] = {}
        self.users: list[str] = []
        self.helpers: dict[str, None] = {}
        # Results that may share memory with an argument or a constant without being views.
        self.shared: set[int] = set()
        self.outputs = frozenset(schedule.outputs)
        self.parts = Parts("carried", self.file.parts)
        self.said: Source | None = None
        # The last comment, if it is of derivatives.
        self.commented: _Group | None = None
        # Counters of loops, and how many loops or branches enclose the statements.
        self.counters: list[str] = []
        self._own: dict[str, str] = {}
        self.level = 0
        # Indentation depth: 1 in a function, deeper in its loops.
        self.depth = 1
        self.called = name_values(schedule, titles, keys)
        # Values that are written with other axes of size 1.
        self.shown = shown_shapes(schedule, _ALIGNED)
        # Variables of sizes that are read.
        self.sizes_read: set[str] = set()
        # Values that are written together with what they are views of.
        self.settled: set[int] = set()
        self._readers: dict[int, Step] = {}
        self._makers: dict[int, Step] = {}
        # Pending expressions, which must be written at the end of a function.
        self.waiting: dict[int, None] = {}

    @property
    def phrases(self) -> Phrases:
        """Return the expressions of the library that the printer itself writes."""
        return self.file.dialect.phrases

    def settle(self, piece: Piece, inline: bool) -> None:
        """Keep an expression pending for its only reader, or write it as a statement."""
        value = piece.value
        self.pieces[value] = piece
        self.waiting[value] = None
        # Several results read better as statements than in a long return.
        returned = len(self.schedule.outputs) > 1 and value in self.outputs
        named = value in self.called
        if not inline or self.schedule.uses[value] != 1 or returned or named:
            self.write(value)

    def only_reader(self, value: int) -> Step | None:
        """Return the step that reads a value, if it is the only one and there is no other use."""
        if not self._readers:
            self._readers = {v: s for s in self.schedule.steps for v in s.inputs}
        return self._readers.get(value) if self.schedule.uses[value] == 1 else None

    def maker(self, value: int) -> Step | None:
        """Return the step that computes a value, None for an input."""
        if not self._makers:
            self._makers = {v: s for s in self.schedule.steps for v in s.outputs}
        return self._makers.get(value)

    def belongs(self, piece: Piece, step: Step) -> bool:
        """Return whether an expression is readable inline in that of `step`."""
        made = self.schedule.steps[piece.step]
        same = made.source == step.source or not (_is_told(made.source) and _is_told(step.source))
        if made.source is not None and step.source is not None:
            # Readers look for what a line computes there, but not for parts of derivatives.
            same = same or (made.source.is_derived and step.source.is_derived)
        return piece.depth < _DEEPEST and (same or self.is_view(piece.step))

    def join_pieces(self, text: Text, shape: Shape, args: list[Piece], i: int, value: int) -> Piece:
        names = tuple(dict.fromkeys(n for a in args for n in a.names))
        viewed = self.is_view(i)
        # Chains of sums or products are read from left to right, and are not deep.
        chained = bool(args) and args[0].text.rank == text.rank < ATOM
        depths = [a.depth - (k == 0 and chained) for k, a in enumerate(args)]
        depth = max(depths, default=0) + (not viewed)
        for a in args:
            if a.is_pending:
                self.waiting.pop(a.value, None)
        return Piece(text, shape, names, depth=depth, value=value, step=i)

    def is_view(self, i: int) -> bool:
        return self.schedule.steps[i].op.is_view

    def written_type(self, value: int, type: TensorType) -> TensorType:
        """Return the type of a value, with the axes of size 1 that it is written with."""
        return TensorType(self.shown.get(value, type.shape), type.dtype)

    def constant(self, step: Step) -> None:
        value, known = step.params["value"], self.file.constants
        array = value.data
        shape = self.shown.get(step.outputs[0], array.shape)
        if shape != array.shape:
            array = array.reshape(shape)
            value = Array(array)
        if value in known:
            name = known[value]
        else:
            hint = self.called.get(step.outputs[0], "")
            name = known[value] = self.names.name_from_hint(hint, "k")
            self.define(name, array)
        self.shared.add(step.outputs[0])
        self.pieces[step.outputs[0]] = Piece(Text(self.phrases.known(name)), array.shape)

    def define(self, name: str, array: np.ndarray[Any, Any]) -> None:
        if self.standalone or short_text(array) is not None:
            with writing_for(self.file.dialect.library):
                lines = self.phrases.lines(name, array, changes=not self.file.dialect.is_functional)
            head = f"{name} = "
            self.opening += (
                statement(head, lines[0].removeprefix(head), depth=0) if len(lines) == 1 else lines
            )
        else:
            self.table[name] = array
            type = TensorType(array.shape, array.dtype)
            self.opening.append(f"# {name} is {type}, in the table beside this code.")

    # Statements.

    @contextmanager
    def noting_sizes(self) -> Iterator[None]:
        """Record the variables of sizes that the block writes into the current function."""
        if self.sizes is None:
            yield
            return
        with sizes_written() as names:
            yield
        self.use_sizes(names)

    def use_sizes(self, names: Iterable[str]) -> None:
        """Record variables of sizes that the current function reads."""
        for name in sorted(names):
            self.sizes_read.add(name)
            self.parts.use(name)

    def write(self, value: int) -> None:
        """Write the pending expression of `value` as a statement, and use its name from now on."""
        piece = self.pieces[value]
        self.waiting.pop(value, None)
        step = self.schedule.steps[piece.step]
        self.write_source_comment(step)
        self.use(piece)
        hint = self.called.get(value, "") or function_name(step, self.called)
        name = self.names.name_from_hint(hint, "v")
        for line in statement(f"{name} = ", piece.text.code, self.depth):
            self.parts.current.line(line, piece.step)
        self.parts.bind(name)
        self.pieces[value] = Piece(Text(name), piece.shape, (name,))

    def use(self, piece: Piece) -> None:
        for name in piece.names:
            self.parts.use(name)

    def write_source_comment(self, step: Step) -> None:
        """Write a comment with the user's source line, if it differs from the previous one."""
        source = step.source
        if source is None or source == self.said or not _is_told(source):
            return
        rows, self.said = self.parts.current.body, source
        group = self.commented
        if source.is_derived and group is not None and group.fits(rows):
            if source.spot not in [told.spot for told in group.sources]:
                group.sources.append(source)
            rows[group.row] = Line(
                f"# {comment(group.text, group.width)}", depth=rows[group.row].depth
            )
            return
        text = f"{source}  {'' if source.is_derived else source.text}".rstrip()
        width = _LINE - 4 * self.depth - len("# ")
        self.commented = _Group([source], len(rows), width) if source.is_derived else None
        self.parts.current.line(f"# {comment(text, width)}")

    def own_name(self, hint: str) -> str:
        """Return the name of a variable of checks, which all of them share."""
        if hint not in self._own:
            self._own[hint] = self.names.name_from_hint(hint, "x")
        return self._own[hint]

    def include(self, name: str) -> None:
        """Include a helper that an expression calls, after those that it calls itself."""
        for required in support.required_names(name):
            self.include(required)
        self.helpers.setdefault(name)


def explicit(page: Page, piece: Piece, type: TensorType) -> Piece:
    """Return the piece in full shape and with a dtype."""
    if piece.scalar is not None and type.shape:
        return Piece(Text(full_text(piece.scalar, type.shape, type.dtype)), type.shape)
    if piece.scalar is not None:
        code = scalar_text(piece.scalar, type.dtype)
        return Piece(Text(page.phrases.number(code, type.dtype)), ())
    if piece.shape == type.shape:
        return piece
    text = Text(call("broadcast_to", piece.text.code, shape_text(type.shape)))
    return Piece(text, type.shape, piece.names, piece.depth, piece.value, piece.step)


def _is_told(source: Source | None) -> bool:
    """Return whether a source is in a file that a reader can open."""
    return source is not None and source.is_readable
