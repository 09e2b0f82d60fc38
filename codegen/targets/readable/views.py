"""Views in readable code, as a person would write them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step, assigns, is_repetition, seen_shape
from primgraph.codegen.ir.views import range_text
from primgraph.codegen.ops.spelling.library import call, library
from primgraph.codegen.targets.readable.page import Page, explicit
from primgraph.codegen.targets.readable.shapes import dropped_axes
from primgraph.ir.index_maps import Index, IndexMap, view_map
from primgraph.ir.types import Shape
from primgraph.ir.views import Expand, Permute, Reshape, Slice, View

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
    piece = explicit(page, piece, page.written_type(source, step.operands[0]))
    shape = page.shown.get(value, seen_shape(step, k))
    text = Text(library().view(how, piece.text))
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


# The index of all elements along an axis.
_ALL = ":"
# As short an index of a name is written wherever its elements are read.
_SHORT = 12


def write_indexing(page: Page, i: int, step: Step, k: int, value: int) -> bool:
    """Write a slice that drops axes, or the reshape that drops them; return whether it is one."""
    if value in page.shown and isinstance(step.form.seen[k], Slice):
        if page.pieces[step.inputs[0]].is_pending:
            page.write(step.inputs[0])
        _write(page, i, step, k, value, dropped_axes(step, k))
        return True
    piece = page.pieces[step.inputs[0]]
    made = page.schedule.steps[piece.step] if piece.is_pending else None
    reshaped = step.op.is_view and isinstance(step.form.seen[k], Reshape)
    if made is None or not reshaped or not made.op.is_view or made.outputs[0] != step.inputs[0]:
        return False
    dropped = dropped_axes(made, 0)
    shape = made.results[0].shape
    kept = tuple(n for a, n in enumerate(shape) if a not in dropped)
    same = (*made.inputs, *step.inputs, *step.outputs)
    if not dropped or step.results[0].shape != kept or not page.shown.keys().isdisjoint(same):
        return False
    if page.pieces[made.inputs[0]].is_pending:
        return False
    page.waiting.pop(step.inputs[0], None)
    _write(page, i, made, 0, value, dropped, kept)
    return True


def _write(
    page: Page,
    i: int,
    step: Step,
    k: int,
    value: int,
    dropped: Collection[int],
    shape: Shape | None = None,
) -> None:
    """Set the expression of result `k` of a slice without the `dropped` axes."""
    how, source = step.form.seen[k], step.operands[0]
    assert isinstance(how, Slice)
    shown = view_map(how, source.shape, step.results[k].shape)
    assert isinstance(shown, IndexMap)
    piece = explicit(page, page.pieces[step.inputs[0]], source)
    code, how = page.phrases.flipped(piece.text.operand_code(ATOM), how, dropped)
    if code != piece.text.operand_code(ATOM):
        piece = replace(piece, text=Text(code), base="")
    parts = [
        str(p.start) if a in dropped and isinstance(p, Index) else range_text(r)
        for a, (p, r) in enumerate(zip(shown.operand, how.ranges, strict=False))
    ]
    base, index = (piece.base, _compose(piece.index, parts)) if piece.base else ("", parts)
    base = base or piece.text.operand_code(ATOM)
    while index[-1] == _ALL:
        index.pop()
    text = Text(f"{base}[{', '.join(index)}]")
    shape = page.shown[value] if shape is None else shape
    plain = all(part == _ALL or part.isdigit() for part in index)
    known = piece.names == (base,)
    indexed = replace(piece, text=text, shape=shape)
    if plain and known:
        indexed = replace(indexed, base=base, index=tuple(index))
    if plain and known and len(text.code) <= _SHORT and value not in page.called:
        page.pieces[value] = indexed
        return
    joined = page.join_pieces(text, shape, [piece], i, value)
    page.settle(replace(joined, base=indexed.base, index=indexed.index), inline=True)


def _compose(outer: Sequence[str], inner: Sequence[str]) -> list[str]:
    """Return the index of an element of an indexed array in the array itself."""
    rest = iter(inner)
    whole = [next(rest, _ALL) if part == _ALL else part for part in outer]
    return [*whole, *rest]


def write_diagonal(page: Page, i: int, step: Step, value: int) -> bool:
    """Write a slice as `np.diagonal`, if it is one; return whether it is."""
    source = step.inputs[0]
    piece, how = page.pieces[source], step.form.seen[0]
    if not piece.is_pending or not isinstance(how, Slice) or page.schedule.uses[source] != 1:
        return False
    made = page.schedule.steps[piece.step]
    flat = made.op.is_view and isinstance(made.form.seen[0], Reshape)
    matrix = made.inputs[0] if flat and made.outputs[0] == source else -1
    if matrix < 0 or page.pieces[matrix].is_pending or not {matrix, value}.isdisjoint(page.shown):
        return False
    shape = made.operands[0].shape
    if not _is_square(shape) or how.ranges != ((None, None, shape[0] + 1),):
        return False
    page.waiting.pop(source, None)
    whole = explicit(page, page.pieces[matrix], made.operands[0])
    text = Text(call("diagonal", whole.text.code))
    page.settle(page.join_pieces(text, step.results[0].shape, [whole], i, value), inline=True)
    return True


def write_diagonal_matrix(page: Page, i: int, step: Step) -> bool:
    """Write an assignment to a diagonal of zeros as `np.diag`, if it is one; return whether."""
    if not assigns(step) or page.pieces[step.inputs[0]].scalar != 0:
        return False
    (value,), shape = step.outputs, step.operands[1].shape
    reader = page.only_reader(value)
    if len(shape) != 1 or type(shape[0]) is not int or reader is None:
        return False
    wanted = (shape[0], shape[0])
    first = step.params.get("starts") == (0,) and step.params.get("steps") == (shape[0] + 1,)
    turned = reader.op.is_view and isinstance(reader.form.seen[0], Reshape)
    if not first or not turned or reader.results[0].shape != wanted or shape[0] < 2:
        return False
    if not page.shown.keys().isdisjoint((value, *reader.outputs)):
        return False
    operand = step.inputs[1]
    if page.pieces[operand].is_pending and not page.belongs(page.pieces[operand], step):
        page.write(operand)
    whole = explicit(page, page.pieces[operand], step.operands[1])
    text = Text(call("diag", whole.text.code))
    joined = page.join_pieces(text, wanted, [whole], i, reader.outputs[0])
    page.settled.add(reader.outputs[0])
    page.settle(replace(joined, value=reader.outputs[0]), inline=False)
    return True


def _is_square(shape: Shape) -> bool:
    return len(shape) == 2 and type(shape[0]) is int and shape[0] == shape[1] and shape[0] > 1
