"""Steps as expressions of readable code: inlined into their reader, or statements."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step, stored_shape
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.constants import literal
from primgraph.codegen.ops.elementwise.functions import SHORT_CUTS
from primgraph.codegen.ops.indexing import amend_scatter, assign_scatter
from primgraph.codegen.ops.reductions import MEAN, is_divided_by_count
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.literals import (
    full_text,
    is_weak_default,
    scalar_text,
)
from primgraph.codegen.targets.readable.control import write_control
from primgraph.codegen.targets.readable.page import LONGEST, Page, Piece, explicit
from primgraph.codegen.targets.readable.placement import write_placed
from primgraph.codegen.targets.readable.shapes import joins_parts
from primgraph.codegen.targets.readable.views import write_diagonal_matrix, write_view
from primgraph.codegen.targets.text.fallback import caller_of
from primgraph.codegen.targets.text.layout import statement
from primgraph.ir.dims import Dim, names_in
from primgraph.ir.types import FLOAT32, FLOAT64, TensorType, broadcast_shapes
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.logic import select
from primgraph.primitives.reductions import REDUCES


def write_step(page: Page, i: int, step: Step) -> None:
    """Write step `i` to a page: as a pending expression, or as a statement."""
    dialect = page.file.dialect
    card = dialect.card(step.op)
    if step.op.has_bodies:
        (dialect.control or write_control)(page, i, step, write_step)
    elif card is None:
        _call_user(page, i, step)
    elif (number := step.number) is not None:
        text = literal(number, step.results[0].dtype)
        page.pieces[step.outputs[0]] = Piece(text, ())
    elif step.eqn.array is not None:
        page.constant(step)
    elif step.op.is_view and dialect.words.get(step.op) is None:
        for k, value in enumerate(step.outputs):
            if page.schedule.uses[value] and value not in page.settled:
                write_view(page, i, step, k, value)
    elif step.op.multiple:
        _compute_several(page, i, step, card)
    elif not (
        (not dialect.is_functional and write_placed(page, i, step))
        or write_diagonal_matrix(page, i, step)
    ):
        _compute(page, i, step, card)


def _compute_several(page: Page, i: int, step: Step, card: Card) -> None:
    if card.helper:
        page.include(card.helper)
    pieces = _whole_operands(page, step)
    _unpack(page, i, step, card.read([p.text for p in pieces], step), pieces)


def _compute(page: Page, i: int, step: Step, card: Card) -> None:
    args, text = _right_hand_side(page, step, card)
    name = page.called.get(step.outputs[0], "")
    pending = [a for a in args if a.is_pending]
    while pending and len(text.code) > LONGEST - max(len(name) - 4, 0):
        longest = max(pending, key=lambda a: len(a.text.code))
        page.write(longest.value)
        args, text = _right_hand_side(page, step, card)
        pending = [a for a in args if a.is_pending]
    shape = page.shown.get(step.outputs[0], step.results[0].shape)
    if step.op.literal:
        shape = stored_shape(step)
    elif card.broadcasts and card.amend is None:
        shapes = {a.shape for a in args}
        shape = shapes.pop() if len(shapes) == 1 else broadcast_shapes(*shapes)
    piece = page.join_pieces(text, shape, args, i, step.outputs[0])
    if card.aliases:
        page.shared.add(piece.value)
    page.settle(piece, card.inline or step.op.fact(REDUCES))
    if card.amend is not None:
        amend = card.amend
        if amend is amend_scatter and _is_first_at_each_position(page, step):
            amend = assign_scatter
            number = page.pieces[step.inputs[1]]
            args[1] = args[1] if number.scalar is None else number
        line = amend(page.pieces[piece.value].text.code, [a.text for a in args], step)
        for a in args:
            page.use(a)
        target, equals, right = line.partition(" = ")
        head, rest = (target + equals, right) if equals else ("", line)
        for row in statement(head, rest, page.depth):
            page.parts.current.line(row, i)


def _right_hand_side(page: Page, step: Step, card: Card) -> tuple[list[Piece], Text]:
    """Return the operands of a step as written, and its expression."""
    args = [_operand(page, step, card, k) for k in range(len(step.inputs))]
    _type_literals(page, step, card, args)
    return args, _expression(page, step, card, args)


def _expression(page: Page, step: Step, card: Card, args: list[Piece]) -> Text:
    """Return the right-hand side; an array to be amended is copied, or new if it is uniform."""
    if _is_mean(page, step):
        card = MEAN
    for value, arg in zip(step.inputs, args, strict=True):
        made = page.maker(value)
        if made is not None and _is_mean(page, made):
            return arg.text
    first = page.pieces[step.inputs[0]] if step.inputs else None
    if card.amend is not None and first is not None and first.scalar is not None:
        type = step.results[0]
        return Text(full_text(first.scalar, type.shape, type.dtype))
    if card.repeated is not None and _may_repeat(page, step, args[-1]):
        page.include(card.helper)
        last = explicit(page, args[-1], step.operands[-1])
        return card.repeated([*(a.text for a in args[:-1]), last.text], step)
    library = _library(page, step, card)
    if library:
        return Text(library.format(f"{card.library}({args[0].text.code})"))
    if card.helper and card.repeated is None:
        page.include(card.helper)
    if joins_parts(step) and any(v in page.shown for v in step.inputs):
        return _joined(page, step)
    if step.op.fact(CONTRACTS) and page.file.dialect.is_functional:
        args = _without_transpose(args)
    shown = page.shown.get(step.outputs[0]) if step.op.fact(REDUCES) else None
    return card.read(
        [a.text for a in args], step if shown is None else step.with_result_shape(shown)
    )


def _without_transpose(args: list[Piece]) -> list[Piece]:
    """Return the factors of a product: `x.T @ y` of a vector `y` is `y @ x`, without a copy."""
    x, y = args
    code = x.text.code.removesuffix(".T")
    is_turned = code != x.text.code and len(y.shape) == 1
    return [y, replace(x, text=Text(code))] if is_turned else args


def _is_first_at_each_position(page: Page, step: Step) -> bool:
    """Return whether a step adds to zeros, once at each position: one index is all different.

    Only a derivative, as that makes a 0.0 of -0.0.
    """
    if not step.is_derived or page.pieces[step.inputs[0]].scalar != 0:
        return False
    count = math.prod(broadcast_shapes(*(t.shape for t in step.operands[2:])))
    made = filter(None, map(page.maker, step.inputs[2:]))
    known = [x for s in made if (x := s.eqn.array) is not None and x.size == count]
    return any(x.size and x.min() >= 0 and np.unique(x).size == count for x in known)


def _is_mean(page: Page, step: Step) -> bool:
    """Return whether a sum is written as a mean, and its only reader as the same."""
    if not step.op.fact(REDUCES) or step.outputs[0] in page.called:
        return False
    reader = page.only_reader(step.outputs[0])
    made = {} if reader is None else {v: page.maker(v) for v in reader.inputs}
    numbers = {v: s.number for v, s in made.items() if s is not None}
    return reader is not None and is_divided_by_count(step, reader, numbers)


def _joined(page: Page, step: Step) -> Text:
    """Return a concatenation of parts some of which are written without its axis."""
    axis, parts = step.params["axis"], []
    for value, type in zip(step.inputs, step.operands, strict=True):
        piece, shape = page.pieces[value], page.shown.get(value, type.shape)
        if piece.scalar is not None and type.shape[axis] == 1:
            shape = (*type.shape[:axis], *type.shape[axis + 1 :])
        if page.phrases.mixes and piece.scalar is not None and not shape and type.dtype == FLOAT64:
            parts.append(scalar_text(piece.scalar, type.dtype))
        else:
            parts.append(explicit(page, piece, TensorType(shape, type.dtype)).text.code)
    listed = f"[{', '.join(parts)}]"
    if step.operands[0].ndim > 1:
        return Text(call("stack", listed, **({"axis": axis} if axis else {})))
    numbers = all(t.shape == (1,) for t in step.operands)
    numbers = numbers and all(
        v in page.shown or page.pieces[v].scalar is not None for v in step.inputs
    )
    joined = "array" if page.phrases.mixes else "stack"
    return Text(call(joined if numbers else "hstack", listed))


def _library(page: Page, step: Step, card: Card) -> str:
    """Return the format of a library call in place of a helper in a standalone file, or "".

    Python's `math` has one for scalars, but its float would divide differently from NumPy's.
    """
    type = step.results[0]
    if not page.standalone or not card.library:
        return ""
    if page.file.scipy and type.dtype in (FLOAT32, FLOAT64):
        page.file.imports["from scipy import special"] = None
        return "special.{}"
    if type.dtype == FLOAT64 and not type.shape:
        page.file.imports["import math"] = None
        return "np.float64(math.{})"
    return ""


def _may_repeat(page: Page, step: Step, piece: Piece) -> bool:
    """Return whether elements of the last operand may share memory."""
    kind, number = step.operands[-1], piece.scalar
    # A symbolic size may be any number.
    known = number is not None and type(number) is not Dim
    if not kind.is_float or (known and number not in SHORT_CUTS):
        return False
    return not kind.shape or piece.shape != kind.shape or page.schedule.is_view(step.inputs[-1])


def _operand(page: Page, step: Step, card: Card, k: int) -> Piece:
    """Return an operand, as a pending expression if possible."""
    value = step.inputs[k]
    piece = page.pieces[value]
    if piece.is_pending and not page.belongs(piece, step):
        page.write(value)
        piece = page.pieces[value]
    if k in card.broadcasts and not (k == 0 and card.amend is not None):
        return piece
    return explicit(page, piece, page.written_type(value, step.operands[k]))


def _type_literals(page: Page, step: Step, card: Card, args: list[Piece]) -> None:
    """Give one operand a dtype if all operands that determine the result's dtype are literals."""
    if not card.broadcasts or not args or card.amend is not None:
        return
    first = 1 if step.op is select else 0
    if any(a.scalar is None for a in args[first:]):
        return
    dtype = step.operands[first].dtype
    is_default = is_weak_default(dtype) and page.phrases.mixes
    if step.op is select and is_default and args[0].scalar is None:
        return
    args[first] = explicit(page, args[first], TensorType((), dtype))


def _call_user(page: Page, i: int, step: Step) -> None:
    name = page.names.next_name("user_")
    page.table[name] = caller_of(step)
    sizes = sorted(names_in(tuple(step.params.values())).union(*(t.names for t in step.results)))
    page.use_sizes(sizes)
    page.users.append(step.op.name)
    pieces = _whole_operands(page, step)
    given = [*(p.text.code for p in pieces), *(f"{size}={size}" for size in sizes)]
    text = Text(f"{name}({', '.join(given)})")
    if step.op.multiple:
        _unpack(page, i, step, text, pieces)
        return
    joined = page.join_pieces(text, step.results[0].shape, pieces, i, step.outputs[0])
    page.settle(joined, inline=False)


def _whole_operands(page: Page, step: Step) -> list[Piece]:
    """Return the operands of a step by name, in full shape."""
    for value in step.inputs:
        if page.pieces[value].is_pending:
            page.write(value)
    pairs = zip(step.inputs, step.operands, strict=True)
    return [explicit(page, page.pieces[v], t) for v, t in pairs]


def _unpack(page: Page, i: int, step: Step, text: Text, pieces: list[Piece]) -> None:
    """Write the unpacking of an expression with several results."""
    for piece in pieces:
        page.use(piece)
    page.write_source_comment(step)
    names = []
    for value, type in zip(step.outputs, step.results, strict=True):
        if not page.schedule.uses[value]:
            names.append("_")
            continue
        names.append(page.names.name_from_hint(page.called.get(value, ""), "v"))
        page.pieces[value] = Piece(Text(names[-1]), type.shape, (names[-1],))
    several = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
    for line in statement(f"{several} = ", text.code, page.depth):
        page.parts.current.line(line, i)
    for name in names:
        if name != "_":
            page.parts.bind(name)
