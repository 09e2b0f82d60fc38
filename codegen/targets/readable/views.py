"""Views in readable code, as a person would write them."""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ir.schedule import Step, is_repetition, seen_shape
from primgraph.codegen.ir.views import range_text, view_text
from primgraph.codegen.ops.spelling.notation import ATOM, Text
from primgraph.codegen.targets.readable.diagonals import write_diagonal
from primgraph.codegen.targets.readable.page import Page, Piece
from primgraph.codegen.targets.readable.shapes import dropped_axes
from primgraph.ir.index_maps import Index, IndexMap, view_map
from primgraph.ir.views import Expand, Permute, Reshape, Slice, View

_MOST_AXES = 4


def write_view(page: Page, i: int, step: Step, k: int, value: int) -> None:
    """Set the expression of result `k` of step `i`, a view that becomes `value`."""
    source = step.inputs[0]
    piece = page.pieces[source]
    if value in page.shown and isinstance(step.form.seen[k], Slice):
        _write_indexing(page, i, step, k, value)
        return
    if write_diagonal(page, i, step, value):
        return
    how = _view_to_write(page, step, k, value)
    if piece.scalar is not None:
        page.pieces[value] = piece
        return
    picked = _fused_indexing(page, step, piece) if isinstance(how, Reshape) else None
    if picked is not None:
        shape = step.results[0].shape
        page.settle(page.join_pieces(picked, shape, [piece], i, value), inline=True)
        return
    within = isinstance(how, Permute) and page.belongs(piece, step)
    if piece.is_pending and not within and (how or page.schedule.uses[value] != 1):
        page.write(source)
        piece = page.pieces[source]
    if how is None:
        if piece.is_pending:
            page.waiting.pop(source, None)
            page.waiting[value] = None
            piece = replace(piece, value=value)
        page.pieces[value] = piece
        return
    piece = page.explicit(piece, page.written_type(source, step.operands[0]))
    shape = page.shown.get(value, seen_shape(step, k))
    text = Text(view_text(how, piece.text.operand_code(ATOM)))
    turned = isinstance(how, Permute) and how.axes == tuple(reversed(range(len(how.axes))))
    if turned and not piece.is_pending and value not in page.called:
        # `x.T` is as short as a name.
        page.pieces[value] = replace(piece, text=text, shape=shape)
        return
    joined = page.join_pieces(text, shape, [piece], i, value)
    page.settle(joined, inline=len(step.outputs) == 1)


def _write_indexing(page: Page, i: int, step: Step, k: int, value: int) -> None:
    """Set the expression of a slice without the axes of which it takes one element."""
    source, how = step.inputs[0], step.form.seen[k]
    if page.pieces[source].is_pending:
        page.write(source)
    piece = page.explicit(page.pieces[source], step.operands[0])
    assert isinstance(how, Slice)
    shown, dropped = (
        view_map(how, step.operands[0].shape, step.results[k].shape),
        dropped_axes(step, k),
    )
    assert isinstance(shown, IndexMap)
    ranges = [range_text(r) for r in how.ranges]
    parts = [
        str(p.start) if a in dropped and isinstance(p, Index) else text
        for a, (p, text) in enumerate(zip(shown.operand, ranges, strict=False))
    ]
    while parts[-1] == ":":
        parts.pop()
    text = Text(f"{piece.text.operand_code(ATOM)}[{', '.join(parts)}]")
    page.settle(page.join_pieces(text, page.shown[value], [piece], i, value), inline=True)


def _fused_indexing(page: Page, step: Step, piece: Piece) -> Text | None:
    """Return the indexing that replaces a slice and a reshape to single positions, or None."""
    made = page.schedule.steps[piece.step] if piece.is_pending else None
    cut = made.form.seen[0] if made is not None and made.op.is_view else None
    if made is None or not isinstance(cut, Slice) or made.outputs[0] != step.inputs[0]:
        return None
    pairs = zip(made.results[0].shape, made.operands[0].shape, strict=True)
    alone = [n == 1 and n != whole for n, whole in pairs]
    kept = [n for n, single in zip(made.results[0].shape, alone, strict=True) if not single]
    if list(step.results[0].shape) != kept or not page.shown.keys().isdisjoint(
        (*made.inputs, *step.inputs, *step.outputs)
    ):
        return None
    shown = view_map(cut, made.operands[0].shape, made.results[0].shape)
    assert isinstance(shown, IndexMap)
    places = [p.start if isinstance(p, Index) else 0 for p in shown.operand]
    x, _, ranges = piece.text.code[:-1].rpartition("[")
    starts = zip(ranges.split(", "), alone, places, strict=False)
    parts = [str(start) if single else text for text, single, start in starts]
    while parts[-1] == ":":
        parts.pop()
    return Text(f"{x}[{', '.join(parts)}]")


def _view_to_write(page: Page, step: Step, k: int, value: int) -> View | None:
    """Return how a view is written, if axes of size 1 may have been added or removed."""
    before = page.shown.get(step.inputs[0])
    after = page.shown.get(value)
    if before is None and after is None:
        return _with_none(step.form.seen[k], step)
    if is_repetition(step):
        return None
    shape = step.results[k].shape if after is None else after
    source = step.operands[0].shape if before is None else before
    return None if shape == source else Reshape(shape)


def _with_none(how: View | None, step: Step) -> View | None:
    """Turn a reshape that only adds axes of size 1 into indexing with None."""
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
