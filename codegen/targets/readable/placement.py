"""Arrays that are assembled from parts at their own positions, as zeros and assignments."""

from __future__ import annotations

import numpy as np

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.literals import full_text, scalar_text
from primgraph.codegen.targets.readable.page import Page, Piece
from primgraph.codegen.targets.readable.shapes import (
    Indices,
    assigned_indices,
    is_diagonal,
    varying_axes,
)
from primgraph.codegen.targets.text.layout import statement
from primgraph.ir.types import FLOAT64


def write_placed(page: Page, i: int, step: Step) -> bool:
    """Write the assignments of step `i`, if its parts can be indexed by slices; return whether."""
    found = assigned_indices(step)
    if found is None:
        return False
    result, value = step.results[0], step.outputs[0]
    shape = result.shape
    pieces = [_piece(page, v) for v in step.inputs]
    page.write_source_comment(step)
    name = page.names.name_from_hint(page.called.get(value, ""), "v")
    ones = [
        k
        for k, (piece, indices) in enumerate(zip(pieces, found, strict=True))
        if piece.scalar == 1.0 and result.dtype == FLOAT64 and is_diagonal(indices, shape)
    ]
    made = call("eye", str(shape[0])) if ones else full_text(0.0, shape, result.dtype)
    _add_line(page, i, f"{name} = ", made)
    for k, (piece, indices) in enumerate(zip(pieces, found, strict=True)):
        if k in ones[:1] or not step.operands[k].size:
            continue
        page.use(piece)
        number = piece.scalar is not None
        text = scalar_text(piece.scalar, result.dtype) if number else piece.text.code
        if is_diagonal(indices, shape):
            _add_line(page, i, "", call("fill_diagonal", name, text))
        else:
            _add_line(page, i, f"{name}[{_index(indices, number or not piece.shape)}] = ", text)
    page.parts.bind(name)
    page.pieces[value] = Piece(Text(name), shape, (name,))
    return True


def _piece(page: Page, value: int) -> Piece:
    if page.pieces[value].is_pending:
        page.waiting.pop(value, None)
    return page.pieces[value]


def _add_line(page: Page, i: int, head: str, text: str) -> None:
    for row in statement(head, text, page.depth):
        page.parts.current.line(row, i)


def _index(indices: Indices, is_number: bool) -> str:
    """Return the index of positions; of a single one for an array of one element, as a slice."""
    axes, texts = varying_axes(indices), []
    for a, index in enumerate(indices):
        first, last = int(index.min()), int(index.max())
        alone = a not in axes
        step = 1 if alone else int(np.diff(np.unique(index))[0])
        if alone and (axes or is_number or a + 1 < len(indices)):
            texts.append(str(first))
        else:
            texts.append(f"{first}:{last + 1}" + (f":{step}" if step != 1 else ""))
    return ", ".join(texts)
