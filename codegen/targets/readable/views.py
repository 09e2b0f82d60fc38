"""Views in readable code, as a person would write them."""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step, is_repetition, seen_shape
from primgraph.codegen.ir.views import view_text
from primgraph.codegen.targets.readable.diagonals import write_diagonal
from primgraph.codegen.targets.readable.indexing import write_indexing
from primgraph.codegen.targets.readable.page import Page, explicit
from primgraph.ir.types import Shape
from primgraph.ir.views import Expand, Permute, Reshape, View

_MOST_AXES = 4
# Longer expressions are named before they are reshaped.
_LONGEST = 60


def write_view(page: Page, i: int, step: Step, k: int, value: int) -> None:
    """Set the expression of result `k` of step `i`, a view that becomes `value`."""
    source = step.inputs[0]
    piece = page.pieces[source]
    if write_indexing(page, i, step, k, value) or write_diagonal(page, i, step, value):
        return
    how = _view_to_write(page, step, k, value)
    if piece.scalar is not None:
        page.pieces[value] = piece
        return
    within = isinstance(how, Permute | Reshape) and page.belongs(piece, step)
    within = within and len(piece.text.code) <= _LONGEST
    if piece.is_pending and not within and (how or page.schedule.uses[value] != 1):
        page.write(source)
        piece = page.pieces[source]
    if how is None:
        if piece.is_pending:
            page.waiting.pop(source, None)
            page.waiting[value] = None
            piece = replace(piece, value=value)
        page.pieces[value] = piece
        if piece.base and not piece.is_pending and value in page.called:
            page.settle(replace(piece, value=value, step=i), inline=True)
        return
    piece = explicit(piece, page.written_type(source, step.operands[0]))
    shape = page.shown.get(value, seen_shape(step, k))
    text = Text(view_text(how, piece.text.operand_code(ATOM)))
    turned = isinstance(how, Permute) and how.axes == tuple(reversed(range(len(how.axes))))
    if turned and not piece.is_pending and value not in page.called:
        # `x.T` is as short as a name.
        page.pieces[value] = replace(piece, text=text, shape=shape)
        return
    joined = page.join_pieces(text, shape, [piece], i, value)
    page.settle(joined, inline=len(step.outputs) == 1)


def _view_to_write(page: Page, step: Step, k: int, value: int) -> View | None:
    """Return how a view is written, if axes of size 1 may have been added or removed."""
    before = page.shown.get(step.inputs[0])
    after = page.shown.get(value)
    if before is None and after is None:
        return _with_none(step.form.seen[k], step.operands[0].shape)
    if is_repetition(step):
        return None
    shape = step.results[k].shape if after is None else after
    source = step.operands[0].shape if before is None else before
    return None if shape == source else _with_none(Reshape(shape), source)


def _with_none(how: View | None, source: Shape) -> View | None:
    """Turn a reshape that only adds axes of size 1 into indexing with None."""
    if not isinstance(how, Reshape):
        return how
    shape = how.shape
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
