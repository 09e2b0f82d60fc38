"""Arrays that are assembled from parts at their own positions, as zeros and assignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.literals import full_text, scalar_text
from primgraph.codegen.ops.spelling.notation import Text
from primgraph.codegen.targets.readable.page import Page, Piece
from primgraph.codegen.targets.text.layout import statement
from primgraph.ir.dims import names_in
from primgraph.ir.types import FLOAT64
from primgraph.primitives.indexing import placed, places_in

Indices = tuple[np.ndarray[Any, Any], ...]


def write_placed(page: Page, i: int, step: Step) -> bool:
    """Write the assignments of step `i`, if its parts can be indexed by slices; return whether."""
    if step.op is not placed:
        return False
    result = step.results[0]
    starts, strides = step.params["starts"], step.params["strides"]
    if names_in((*result.shape, *(n for t in step.operands for n in t.shape))):
        return False
    if step.operands[0].ndim > len(strides[0]):
        return False
    value, shape = step.outputs[0], result.shape
    found: list[Indices] = [
        np.unravel_index(places_in(t.shape, start, steps), shape)
        for t, start, steps in zip(step.operands, starts, strides, strict=True)
    ]
    if not all(_is_sliced(indices) or _is_diagonal(indices, shape) for indices in found):
        return False
    pieces = [_piece(page, v) for v in step.inputs]
    page.write_source_comment(step)
    name = page.names.name_from_hint(page.called.get(value, ""), "v")
    ones = [
        k
        for k, (piece, indices) in enumerate(zip(pieces, found, strict=True))
        if piece.scalar == 1.0 and result.dtype == FLOAT64 and _is_diagonal(indices, shape)
    ]
    made = f"np.eye({shape[0]})" if ones else full_text(0.0, shape, result.dtype)
    _add_line(page, i, f"{name} = ", made)
    for k, (piece, indices) in enumerate(zip(pieces, found, strict=True)):
        if k in ones[:1] or not step.operands[k].size:
            continue
        page.use(piece)
        number = piece.scalar is not None
        text = scalar_text(piece.scalar, result.dtype) if number else piece.text.code
        if _is_diagonal(indices, shape):
            _add_line(page, i, "", f"np.fill_diagonal({name}, {text})")
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


def _varying(indices: Indices) -> list[int]:
    """Return the axes of the result along which the positions differ."""
    return [a for a, index in enumerate(indices) if index.size and index.min() != index.max()]


def _is_diagonal(indices: Indices, shape: Sequence[int]) -> bool:
    """Return whether positions are the whole diagonal of a square matrix."""
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        return False
    return all(np.array_equal(index, np.arange(shape[0])) for index in indices)


def _is_sliced(indices: Indices) -> bool:
    """Return whether the positions are those of slices, in the order of their axes."""
    axes = _varying(indices)
    if not axes:
        return True
    along = [np.unique(indices[a]) for a in axes]
    steps = [np.diff(index) for index in along]
    if any(len(set(step.tolist())) > 1 for step in steps):
        return False
    grid = np.meshgrid(*along, indexing="ij")
    return all(
        index.size == whole.size and np.array_equal(index.reshape(-1), whole.reshape(-1))
        for index, whole in zip((indices[a] for a in axes), grid, strict=True)
    )


def _index(indices: Indices, is_number: bool) -> str:
    """Return the index of positions; of a single one for an array of one element, as a slice."""
    axes, texts = _varying(indices), []
    for a, index in enumerate(indices):
        first, last = int(index.min()), int(index.max())
        alone = a not in axes
        step = 1 if alone else int(np.diff(np.unique(index))[0])
        if alone and (axes or is_number or a + 1 < len(indices)):
            texts.append(str(first))
        else:
            texts.append(f"{first}:{last + 1}" + (f":{step}" if step != 1 else ""))
    return ", ".join(texts)
