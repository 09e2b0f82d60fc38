"""The readable style: expressions as a person would write them, under the user's own lines."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from primgraph.codegen.cards.card import Card
from primgraph.codegen.cards.constants import literal
from primgraph.codegen.cards.elementwise import SHORT_CUTS
from primgraph.codegen.cards.literals import (
    array_lines,
    dtype_text,
    full_text,
    is_weak_default,
    scalar_text,
    shape_text,
    short_text,
)
from primgraph.codegen.cards.notation import ATOM, Text
from primgraph.codegen.cards.reductions import keeping_axes
from primgraph.codegen.cards.table import CARDS
from primgraph.codegen.emit.containers import (
    Classes,
    accesses,
    is_nested,
    lengths,
    returned,
    told,
)
from primgraph.codegen.emit.docstrings import docstring
from primgraph.codegen.emit.fallback import caller_of
from primgraph.codegen.emit.layout import WIDTH, result, signature, statement
from primgraph.codegen.emit.module import MANY, Function, Module, Parts
from primgraph.codegen.emit.names import Names, comment, is_safe
from primgraph.codegen.emit.shapes import REDUCTIONS, shown_shapes
from primgraph.codegen.emit.titles import called
from primgraph.codegen.plan.schedule import Schedule, Step, seen_shape
from primgraph.codegen.plan.views import view_text
from primgraph.codegen.run import support
from primgraph.ir.form import Form, Tree, result_names
from primgraph.ir.form import names as names_of
from primgraph.ir.titles import Title
from primgraph.ir.types import FLOAT32, FLOAT64, Shape, TensorType, broadcast_shapes
from primgraph.ir.views import Expand, Permute, Reshape, View
from primgraph.primitives.constants import constant, full, iota, iota_shape
from primgraph.primitives.elementwise import erf, erfc
from primgraph.primitives.indexing import gather
from primgraph.primitives.logic import select
from primgraph.primitives.shapes import broadcast, slice_
from primgraph.source import Source

_DEEPEST = 4
_MOST_AXES = 4

# Elementwise primitives that are written as an expression of their operands, whatever these are.
_ALIGNED = frozenset(
    op
    for op, row in CARDS.items()
    if row.broadcasts and row.inline and row.repeated is None and row.amend is None
)

# Columns of an expression behind `return`, and behind the name of a value that has none.
_LONGEST = WIDTH - len("    return ")


@dataclass(frozen=True, slots=True)
class Piece:
    """What stands for a value: a name, a literal, or an expression that is not yet a statement.

    `shape` is that of the expression, which NumPy's broadcasting may still have to repeat.
    `names` are the variables in it, `scalar` is the number that a literal says, `value` the
    value to name if the expression gets a statement of its own: -1 where it needs none.
    """

    text: Text
    shape: Shape
    names: tuple[str, ...] = ()
    scalar: Any = None
    depth: int = 0
    value: int = -1
    step: int = -1

    @property
    def pending(self) -> bool:
        return self.value >= 0


@final
@dataclass(slots=True)
class Shared:
    """What the functions of a file that stands alone share: global names, and constants by value.

    `parts` counts the functions that are parts of others; `classes` are those of results.
    `imports` are lines beside that of NumPy; SciPy may be among them only if `scipy`.
    """

    names: set[str]
    scipy: bool = False
    classes: Classes = field(default_factory=Classes)
    constants: dict[Any, str] = field(default_factory=dict)
    parts: int = 0
    imports: dict[str, None] = field(default_factory=dict)


def entry_name(graph: str) -> str:
    """The name of the function that computes a graph of that name."""
    return graph if is_safe(graph) else "kernel"


def readable(
    schedule: Schedule,
    file: Shared | None = None,
    form: Form | None = None,
    titles: Sequence[Title] = (),
) -> Module:
    """The schedule as a module whose entry takes arrays and returns one array, or a tuple.

    With a `form` it takes and returns the containers of that. `titles` say what results are.
    In a `file` that stands alone, constants are in the text whatever their size, and the entry
    converts its arguments, checks their shapes, and returns arrays of the declared types.
    """
    return _Reader(schedule, file, form, titles).module()


@final
class _Page:
    """What has been written of a module, and what stands for each value."""

    def __init__(
        self,
        schedule: Schedule,
        file: Shared | None,
        titles: Sequence[Title],
        keys: Sequence[str],
    ) -> None:
        self.schedule = schedule
        self.standalone = file is not None
        self.file = Shared(set()) if file is None else file
        self.names = Names([entry_name(schedule.name), *self.file.names])
        self.pieces: dict[int, Piece] = {}
        self.opening = ["import numpy as np"]
        self.table: dict[str, Any] = {}
        self.users: list[str] = []
        self.helpers: dict[str, None] = {}
        # Results that may share memory with an argument or a constant, though they are no views.
        self.shared: set[int] = set()
        self.outputs = frozenset(schedule.outputs)
        self.parts = Parts("carried", self.file.parts)
        self.said: Source | None = None
        self.called = called(schedule, titles, keys)
        # Values that are written with other axes of one element.
        self.shown = shown_shapes(schedule, _ALIGNED)
        # Expressions without a statement, which the end of a function has to write.
        self.waiting: dict[int, None] = {}

    def settle(self, piece: Piece, inline: bool) -> None:
        """Keep an expression for its only reader, or make it a statement."""
        value = piece.value
        self.pieces[value] = piece
        self.waiting[value] = None
        # Several results stand better under their own lines than in a long return.
        returned = len(self.schedule.outputs) > 1 and value in self.outputs
        named = value in self.called
        if not inline or self.schedule.uses[value] != 1 or returned or named:
            self.write(value)

    def joined(self, text: Text, shape: Shape, args: list[Piece], i: int, value: int) -> Piece:
        names = tuple(dict.fromkeys(n for a in args for n in a.names))
        viewed = self.is_view(i)
        # Sums and products of many are read from left to right, and are not deep.
        chained = bool(args) and args[0].text.rank == text.rank < ATOM
        depths = [a.depth - (k == 0 and chained) for k, a in enumerate(args)]
        depth = max(depths, default=0) + (not viewed)
        for a in args:
            if a.pending:
                self.waiting.pop(a.value, None)
        return Piece(text, shape, names, depth=depth, value=value, step=i)

    def is_view(self, i: int) -> bool:
        return self.schedule.steps[i].op.is_view

    def explicit(self, piece: Piece, type: TensorType) -> Piece:
        """The same in full shape and with a dtype."""
        if piece.scalar is not None and type.shape:
            return Piece(Text(full_text(piece.scalar, type.shape, type.dtype)), type.shape)
        if piece.scalar is not None:
            number = scalar_text(piece.scalar, type.dtype)
            return Piece(Text(f"{dtype_text(type.dtype)}({number})"), ())
        if piece.shape == type.shape:
            return piece
        text = Text(f"np.broadcast_to({piece.text.code}, {shape_text(type.shape)})")
        return Piece(text, type.shape, piece.names, None, piece.depth, piece.value, piece.step)

    def constant(self, step: Step) -> None:
        value, known = step.params["value"], self.file.constants
        array = value.data
        if value in known:
            name = known[value]
        else:
            name = known[value] = self.names.hinted(self.schedule.hints[step.outputs[0]], "k")
            self.define(name, array)
        self.shared.add(step.outputs[0])
        self.pieces[step.outputs[0]] = Piece(Text(name), array.shape)

    def define(self, name: str, array: np.ndarray[Any, Any]) -> None:
        if self.standalone or short_text(array) is not None:
            lines = array_lines(name, array)
            head = f"{name} = "
            self.opening += (
                statement(head, lines[0].removeprefix(head), depth=0) if len(lines) == 1 else lines
            )
        else:
            self.table[name] = array
            type = TensorType(array.shape, array.dtype)
            self.opening.append(f"# {name} is {type}, in the table beside this code.")

    # Statements.

    def write_waiting(self) -> None:
        for value in list(self.waiting):
            if value in self.waiting:
                self.write(value)

    def write(self, value: int) -> None:
        """Make the pending expression of `value` a statement, and its name what stands for it."""
        piece = self.pieces[value]
        self.waiting.pop(value, None)
        step = self.schedule.steps[piece.step]
        self.say(step)
        self.use(piece)
        hint = self.called.get(value, "")
        name = self.names.hinted(hint, "v")
        for line in statement(f"{name} = ", piece.text.code):
            self.parts.current.line(line, piece.step)
        self.parts.bind(name)
        self.pieces[value] = Piece(Text(name), piece.shape, (name,))

    def use(self, piece: Piece) -> None:
        for name in piece.names:
            self.parts.use(name)

    def say(self, step: Step) -> None:
        """A comment with the user's line, where it is another one than before."""
        source = step.source
        if source is None or source == self.said or not _is_told(source):
            return
        self.said = source
        line = "" if source.is_derived else source.text
        self.parts.current.line(f"# {comment(f'{source}  {line}'.rstrip())}")

    def include(self, name: str) -> None:
        """Include a helper that an expression calls, behind those that it calls itself."""
        for required in support.REQUIRES[name]:
            self.include(required)
        self.helpers.setdefault(name)


@final
class _Steps:
    """Puts the steps on a page, each as an expression for its reader or as a statement."""

    def __init__(self, page: _Page) -> None:
        self.page = page

    def step(self, i: int, step: Step) -> None:
        card = CARDS.get(step.op)
        if card is None:
            self._call_user(i, step)
        elif step.op is full:
            value = step.params["value"]
            text = literal(value, step.params["dtype"])
            self.page.pieces[step.outputs[0]] = Piece(text, (), scalar=value)
        elif step.op is constant:
            self.page.constant(step)
        elif step.op.is_view:
            for k, value in enumerate(step.outputs):
                if self.page.schedule.uses[value]:
                    self._view(i, step, k, value)
        else:
            self._compute(i, step, card)

    def _compute(self, i: int, step: Step, card: Card) -> None:
        args = [self._operand(i, step, card, k) for k in range(len(step.inputs))]
        self._type_literals(step, card, args)
        text = self._expression(step, card, args)
        name = self.page.called.get(step.outputs[0], "")
        if len(text.code) > _LONGEST - max(len(name) - 4, 0) and any(a.pending for a in args):
            for a in args:
                if a.pending:
                    self.page.write(a.value)
            args = [self._operand(i, step, card, k) for k in range(len(step.inputs))]
            self._type_literals(step, card, args)
            text = self._expression(step, card, args)
        shape = step.results[0].shape
        shape = self.page.shown.get(step.outputs[0], shape)
        if step.op is iota:
            shape = iota_shape(step.params["shape"], step.params["axis"])
        elif card.broadcasts and card.amend is None:
            shapes = {a.shape for a in args}
            shape = shapes.pop() if len(shapes) == 1 else broadcast_shapes(*shapes)
        piece = self.page.joined(text, shape, args, i, step.outputs[0])
        if step.op is gather:
            self.page.shared.add(piece.value)
        self.page.settle(piece, card.inline or step.op in REDUCTIONS)
        if card.amend is not None:
            line = card.amend(self.page.pieces[piece.value].text.code, [a.text for a in args], step)
            for a in args:
                self.page.use(a)
            target, equals, right = line.partition(" = ")
            for row in statement(target + equals, right) if equals else statement("", line):
                self.page.parts.current.line(row, i)

    def _expression(self, step: Step, card: Card, args: list[Piece]) -> Text:
        """The right-hand side; an array to be amended is a copy, or new where it is all equal."""
        first = self.page.pieces[step.inputs[0]] if step.inputs else None
        if card.amend is not None and first is not None and first.scalar is not None:
            type = step.results[0]
            return Text(full_text(first.scalar, type.shape, type.dtype))
        if card.repeated is not None and self._may_repeat(step, args[-1]):
            self.page.include(card.helper)
            last = self.page.explicit(args[-1], step.operands[-1])
            return card.repeated([*(a.text for a in args[:-1]), last.text], step)
        library = self._library(step)
        if library:
            return Text(library.format(f"{step.op.name}({args[0].text.code})"))
        if card.helper and card.repeated is None:
            self.page.include(card.helper)
        text = card.read([a.text for a in args], step)
        if step.op in REDUCTIONS and step.outputs[0] in self.page.shown:
            return keeping_axes(text)
        return text

    def _library(self, step: Step) -> str:
        """How a file that stands alone calls an error function of another library, if it may.

        Python has one for single numbers, whose float would divide in another way than NumPy's.
        """
        type = step.results[0]
        if not self.page.standalone or step.op not in (erf, erfc):
            return ""
        if self.page.file.scipy and type.dtype in (FLOAT32, FLOAT64):
            self.page.file.imports["from scipy import special"] = None
            return "special.{}"
        if type.dtype == FLOAT64 and not type.shape:
            self.page.file.imports["import math"] = None
            return "np.float64(math.{})"
        return ""

    def _may_repeat(self, step: Step, piece: Piece) -> bool:
        """Whether several elements of the last operand may be one number in memory."""
        type = step.operands[-1]
        if not type.is_float or (piece.scalar is not None and piece.scalar not in SHORT_CUTS):
            return False
        return (
            not type.shape
            or piece.shape != type.shape
            or self.page.schedule.is_view(step.inputs[-1])
        )

    def _operand(self, i: int, step: Step, card: Card, k: int) -> Piece:
        """An operand as far as possible as the expression it is."""
        value = step.inputs[k]
        piece = self.page.pieces[value]
        if piece.pending and not self._belongs(piece, step):
            self.page.write(value)
            piece = self.page.pieces[value]
        small = k in card.broadcasts and not (k == 0 and card.amend is not None)
        if small or value in self.page.shown:
            return piece
        return self.page.explicit(piece, step.operands[k])

    def _belongs(self, piece: Piece, step: Step) -> bool:
        """Whether an expression reads well as a part of that of `step`."""
        made = self.page.schedule.steps[piece.step]
        same = made.source == step.source or not (_is_told(made.source) and _is_told(step.source))
        return piece.depth < _DEEPEST and (same or self.page.is_view(piece.step))

    def _type_literals(self, step: Step, card: Card, args: list[Piece]) -> None:
        """Give one operand a dtype where all those that decide on the result are literals."""
        if not card.broadcasts or not args or card.amend is not None:
            return
        first = 1 if step.op is select else 0
        if any(a.scalar is None for a in args[first:]):
            return
        dtype = step.operands[first].dtype
        if step.op is select and is_weak_default(dtype) and args[0].scalar is None:
            return
        typed = f"{dtype_text(dtype)}({scalar_text(args[first].scalar, dtype)})"
        args[first] = Piece(Text(typed), ())

    def _view(self, i: int, step: Step, k: int, value: int) -> None:
        source = step.inputs[0]
        piece = self.page.pieces[source]
        how = self._seen(step, k, value)
        if piece.scalar is not None:
            self.page.pieces[value] = piece
            return
        picked = self._picked(step, piece) if isinstance(how, Reshape) else None
        if picked is not None:
            shape = step.results[0].shape
            self.page.settle(self.page.joined(picked, shape, [piece], i, value), inline=True)
            return
        within = isinstance(how, Permute) and self._belongs(piece, step)
        if piece.pending and not within and (how or self.page.schedule.uses[value] != 1):
            self.page.write(source)
            piece = self.page.pieces[source]
        if how is None:
            if piece.pending:
                self.page.waiting.pop(source, None)
                self.page.waiting[value] = None
                piece = replace(piece, value=value)
            self.page.pieces[value] = piece
            return
        if source not in self.page.shown:
            piece = self.page.explicit(piece, step.operands[0])
        shape = self.page.shown.get(value, seen_shape(step, k))
        text = Text(view_text(how, piece.text.within(ATOM)))
        joined = self.page.joined(text, shape, [piece], i, value)
        self.page.settle(joined, inline=len(step.outputs) == 1)

    def _picked(self, step: Step, piece: Piece) -> Text | None:
        """The elements at one place along axes, which are a slice and a reshape in the graph."""
        made = self.page.schedule.steps[piece.step] if piece.pending else None
        if made is None or made.op is not slice_ or made.outputs[0] != step.inputs[0]:
            return None
        pairs = zip(made.results[0].shape, made.operands[0].shape, strict=True)
        alone = [n == 1 and n != whole for n, whole in pairs]
        kept = [n for n, single in zip(made.results[0].shape, alone, strict=True) if not single]
        if list(step.results[0].shape) != kept or not self.page.shown.keys().isdisjoint(
            (*made.inputs, *step.inputs, *step.outputs)
        ):
            return None
        x, _, ranges = piece.text.code[:-1].rpartition("[")
        starts = zip(ranges.split(", "), alone, made.params["starts"], strict=False)
        parts = [str(start) if single else text for text, single, start in starts]
        while parts[-1] == ":":
            parts.pop()
        return Text(f"{x}[{', '.join(parts)}]")

    def _seen(self, step: Step, k: int, value: int) -> View | None:
        """How a view is written, where axes of one element may have been left out or added."""
        before = self.page.shown.get(step.inputs[0])
        after = self.page.shown.get(value)
        if before is None and after is None:
            return _with_none(step.form.seen[k], step)
        if step.op is broadcast:
            return None
        shape = step.results[k].shape if after is None else after
        source = step.operands[0].shape if before is None else before
        return None if shape == source else Reshape(shape)

    def _call_user(self, i: int, step: Step) -> None:
        name = self.page.names.counted("user_")
        self.page.table[name] = caller_of(step)
        self.page.users.append(step.op.name)
        for value in step.inputs:
            if self.page.pieces[value].pending:
                self.page.write(value)
        pieces = [
            self.page.explicit(self.page.pieces[v], t)
            for v, t in zip(step.inputs, step.operands, strict=True)
        ]
        text = Text(f"{name}({', '.join(p.text.code for p in pieces)})")
        if not step.op.multiple:
            joined = self.page.joined(text, step.results[0].shape, pieces, i, step.outputs[0])
            self.page.settle(joined, inline=False)
            return
        results = self.page.names.counted("t")
        for piece in pieces:
            self.page.use(piece)
        self.page.say(step)
        self.page.parts.current.line(f"{results} = {text.code}", i)
        for k, value in enumerate(step.outputs):
            part = Piece(Text(f"{results}[{k}]"), step.results[k].shape, value=value, step=i)
            self.page.settle(part, inline=False)


@final
class _Reader:
    """Writes a page from its arguments to its results."""

    def __init__(
        self,
        schedule: Schedule,
        file: Shared | None,
        form: Form | None,
        titles: Sequence[Title],
    ) -> None:
        self.form = form if form is not None and is_nested(form) else None
        self.entry = entry_name(schedule.name)
        self.titles = titles
        self.roots: list[tuple[str, Tree]] = []
        self.page = _Page(schedule, file, titles, result_names(form, len(schedule.outputs)))
        self.steps = _Steps(self.page)

    def module(self) -> Module:
        schedule = self.page.schedule
        roots = self.roots = self._roots()
        arguments = self._arguments(roots)
        for i, name in enumerate(arguments):
            self.page.pieces[i] = Piece(Text(name), schedule.types[i].shape, (name,))
            self.page.parts.argument(name)
        for steps in schedule.chunks():
            if self.page.parts.parts:
                self.page.write_waiting()
            self.page.parts.begin()
            self.page.said = None
            for i in steps:
                self.steps.step(i, schedule.steps[i])
        if len(self.page.parts.parts) == 1 and max(len(arguments), len(schedule.outputs)) <= MANY:
            functions = [self._single(arguments, roots)]
        else:
            functions = self._several(arguments, roots)
        if not self.page.standalone:
            for name, kind in self.page.file.classes.table.items():
                self.page.table[name] = kind
                self.page.opening.append(f"# {name} is a class, in the table beside this code.")
        if len(self.page.opening) > 1:
            self.page.opening.insert(1, "")
        functions[-1].docstring = self._docstring(arguments, functions[-1])
        helpers = [
            _untyped(inspect.getsource(getattr(support, name))) for name in self.page.helpers
        ]
        return Module(
            self.page.opening,
            helpers,
            functions,
            self.entry,
            self.page.table,
            self.page.users,
        )

    def _docstring(self, arguments: list[str], entry: Function) -> list[str]:
        """What the entry takes and returns, by the names of `arguments` and of results."""
        schedule = self.page.schedule
        named = [n for root, tree in self.roots for n in names_of(tree, root)] or arguments
        titles = [told(n, f"argument {i}") for i, n in enumerate(named)]
        given = zip(titles, schedule.types, strict=False)
        keys = result_names(self.form, len(schedule.outputs))
        assigned = [self.page.called.get(v, "") for v in schedule.outputs]
        pairs = zip(keys, assigned, schedule.outputs, strict=True)
        made = [(told(k or a, ""), schedule.types[v]) for k, a, v in pairs]
        return docstring(list(given), made, self.titles)

    def _roots(self) -> list[tuple[str, Tree]]:
        """The parameters of the entry, each with its containers."""
        if self.form is None:
            return []
        return [(self.page.names.hinted(name, "x"), tree) for name, tree in self.form.arguments]

    def _arguments(self, roots: list[tuple[str, Tree]]) -> list[str]:
        """A name for each array; those that are arguments by themselves have that of theirs."""
        hints = self.page.schedule.hints
        if self.form is None:
            return [self.page.names.hinted(hints[i], "x") for i in range(self.page.schedule.inputs)]
        found: list[str] = []
        for root, tree in roots:
            for access in accesses(tree, root):
                hint = hints[len(found)]
                found.append(root if access == root else self.page.names.hinted(hint, "x"))
        return found

    def _begun(self, names: list[str], roots: list[tuple[str, Tree]]) -> list[str]:
        """Statements that bind the arrays of `names` to what is given, in a file checked."""
        if self.form is None:
            return self._checks(names, names) if self.page.standalone else []
        texts = [text for root, tree in roots for text in accesses(tree, root)]
        if not self.page.standalone:
            pairs = enumerate(zip(names, texts, strict=True))
            used = [self.page.schedule.uses[i] or i in self.page.outputs for i in range(len(names))]
            return [f"{name} = {text}" for i, (name, text) in pairs if name != text and used[i]]
        lines = []
        for root, tree in roots:
            for text, count, name in lengths(tree, root, root):
                lines.append(f"if len({text}) != {count}:")
                message = f"{told(name, root)} must have length {count}"
                lines += _raising(f'"{message}"')
        return [*lines, *self._checks(names, texts)]

    def _single(self, arguments: list[str], roots: list[tuple[str, Tree]]) -> Function:
        function = self.page.parts.current
        names = arguments if self.form is None else [root for root, _ in roots]
        function.name, function.parameters = self.entry, ", ".join(names)
        function.wraps = True
        only = len(self.page.schedule.outputs) == 1
        results = [self._result(v, inline=only) for v in self.page.schedule.outputs]
        text, last = ", ".join(results) or "()", len(self.page.schedule.steps) - 1
        if self.form is not None:
            function.returns(self._returned(results), last)
        elif only or len(text) <= _LONGEST:
            function.returns(result(text), last)
        else:
            function.returns(["(", *(f"    {r}," for r in results), ")"], last)
        function.first(self._begun(arguments, roots))
        return function

    def _returned(self, results: list[str]) -> list[str]:
        """The expression of results in their containers."""
        assert self.form is not None
        names, tree = self.page.names, self.form.results
        return returned(tree, results, self.page.file.classes, names, _LONGEST - 7)

    def _several(self, arguments: list[str], roots: list[tuple[str, Tree]]) -> list[Function]:
        """Parts, and an entry that calls one after the other."""
        results = [self._result(v, inline=False) for v in self.page.schedule.outputs]
        first = self.page.parts.finish(arguments, results)
        count, names = first + len(results), [f"carried[{i}]" for i in range(len(arguments))]
        if self.form is None:
            entry = Function(self.entry, "*arguments")
            entry.line(f"carried = [*arguments, *[None] * {count - len(arguments)}]")
        else:
            entry = Function(self.entry, ", ".join(root for root, _ in roots))
            entry.line(f"carried = [None] * {count}")
        for line in self._begun(names, roots):
            entry.line(line)
        for part in self.page.parts.parts:
            entry.line(f"{part.name}(carried)")
        if self.form is not None:
            entry.returns(self._returned([f"carried[{first + k}]" for k in range(len(results))]))
        elif len(results) == 1:
            entry.returns([f"carried[{first}]"])
        else:
            entry.returns([f"tuple(carried[{first}:])"])
        return [*self.page.parts.parts, entry]

    def _result(self, value: int, *, inline: bool) -> str:
        """The expression of a result in full shape."""
        if inline and self.page.pieces[value].pending:
            self.page.say(self.page.schedule.steps[self.page.pieces[value].step])
            self.page.waiting.pop(value, None)
        elif self.page.pieces[value].pending:
            self.page.write(value)
        piece = self.page.explicit(self.page.pieces[value], self.page.schedule.types[value])
        self.page.use(piece)
        return self._own(value, piece) if self.page.standalone else piece.text.code

    def _own(self, value: int, piece: Piece) -> str:
        """The expression as an array that is neither an argument, a constant, nor a scalar."""
        schedule, type = self.page.schedule, self.page.schedule.types[value]
        computed = value >= schedule.inputs and not schedule.is_view(value)
        fresh = computed and piece.shape == type.shape and value not in self.page.shared
        if not fresh or schedule.outputs.count(value) > 1:
            return f"np.array({piece.text.code}, {dtype_text(type.dtype)})"
        if type.shape:
            return piece.text.code
        return f"np.asarray({piece.text.code}, {dtype_text(type.dtype)})"

    def _checks(self, names: list[str], given: list[str]) -> list[str]:
        """Statements that make of what is `given` arrays of these names and of the right shapes."""
        lines = []
        for i, (name, text) in enumerate(zip(names, given, strict=True)):
            type = self.page.schedule.types[i]
            lines.append(f"{name} = np.asarray({text}, {dtype_text(type.dtype)})")
            lines.append(f"if {name}.shape != {shape_text(type.shape)}:")
            what = name if name.isidentifier() else f"argument {i}"
            message = f"{what} must have shape {shape_text(type.shape)}, not {{{name}.shape}}"
            lines += _raising(f'f"{message}"')
        return lines


def _raising(message: str) -> list[str]:
    """The statement behind an `if` that refuses what is given."""
    return [f"    {line}" for line in statement("raise ", f"ValueError({message})", depth=2)]


def _with_none(how: View | None, step: Step) -> View | None:
    """Reshapes that only add axes of one element behind others as what a person writes for them."""
    if not isinstance(how, Reshape):
        return how
    source, shape = step.operands[0].shape, step.params["shape"]
    if not source or len(shape) > _MOST_AXES:
        return how
    new, old = [], 0
    for n in shape:
        new.append(n == 1 and (old >= len(source) or source[old] != 1))
        old += not new[-1]
    kept = [n for n, is_new in zip(shape, new, strict=True) if not is_new]
    if kept != list(source):
        return how
    while not new[-1]:
        new.pop()
    return Expand(tuple(new))


def _untyped(function: str) -> str:
    """The text of a helper without the annotations of its signature: names that are not there."""
    head, colon, body = function.partition(":\n")
    name, _, parameters = head.removeprefix("def ").removesuffix(" -> Any").partition("(")
    listed = [p.strip() for p in parameters.removesuffix(")").split(",") if p.strip()]
    for annotation, text in (
        (": Any = ", "="),
        (": float = ", "="),
        (": Any", ""),
        (": float", ""),
    ):
        listed = [p.replace(annotation, text) for p in listed]
    return "\n".join(signature(name, listed))[:-1] + colon + body


def _is_told(source: Source | None) -> bool:
    """Whether a place is in a file that a reader can open."""
    return source is not None and not source.file.startswith("<") and source.file != "graph text"
