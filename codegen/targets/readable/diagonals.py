"""Diagonals of matrices: the graph has them as every (n + 1)-th element of a flat array."""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step, assigns
from primgraph.codegen.targets.readable.page import Page, explicit
from primgraph.ir.types import Shape
from primgraph.ir.views import Reshape, Slice


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
    whole = explicit(page.pieces[matrix], made.operands[0])
    text = Text(f"np.diagonal({whole.text.code})")
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
    whole = explicit(page.pieces[operand], step.operands[1])
    text = Text(f"np.diag({whole.text.code})", ATOM)
    joined = page.join_pieces(text, wanted, [whole], i, reader.outputs[0])
    page.settled.add(reader.outputs[0])
    page.settle(replace(joined, value=reader.outputs[0]), inline=False)
    return True


def _is_square(shape: Shape) -> bool:
    return len(shape) == 2 and type(shape[0]) is int and shape[0] == shape[1] and shape[0] > 1
