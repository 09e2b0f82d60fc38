"""Positions of parts in an array that is assembled from them, as indices of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.ir.dims import names_in
from primgraph.ir.facts.choices import JOINS
from primgraph.ir.facts.passes import SOLVES
from primgraph.primitives.indexing import places_in

Indices = tuple[np.ndarray[Any, Any], ...]


def joins_parts(step: Step) -> bool:
    """Return whether a step joins its operands along an axis."""
    return step.op.fact(JOINS) and step.op.moves and step.params.keys() == {"axis"}


def takes_vector(step: Step) -> bool:
    """Return whether a step solves a linear system whose right-hand side may be a vector."""
    if not step.op.fact(SOLVES) or len(step.operands) != 2 or step.params:
        return False
    return step.operands[1].ndim == 2 and step.operands[1].shape[1] == 1


def _is_assembled(step: Step) -> bool:
    """Return whether a step assembles an array from parts at their own positions."""
    return step.op.moves and {"starts", "strides"} <= step.params.keys()


def takes_numbers(step: Step) -> bool:
    """Return whether parts of one element of a step may be numbers."""
    return joins_parts(step) or _is_assembled(step)


def assigned_indices(step: Step) -> list[Indices] | None:
    """Return the positions of the parts of a step that assembles an array from them.

    Return None for other steps, and unless each part has the positions of slices, or a diagonal.
    """
    if not _is_assembled(step):
        return None
    result, starts, strides = step.results[0], step.params["starts"], step.params["strides"]
    if names_in((*result.shape, *(n for t in step.operands for n in t.shape))):
        return None
    if step.operands[0].ndim > len(strides[0]):
        return None
    found = [
        np.unravel_index(places_in(t.shape, start, steps), result.shape)
        for t, start, steps in zip(step.operands, starts, strides, strict=True)
    ]
    fits = all(
        _is_sliced(indices, t.shape) or is_diagonal(indices, result.shape)
        for indices, t in zip(found, step.operands, strict=True)
    )
    return found if fits else None


def varying_axes(indices: Indices) -> list[int]:
    """Return the axes of the result along which the positions differ."""
    return [a for a, index in enumerate(indices) if index.size and index.min() != index.max()]


def is_diagonal(indices: Indices, shape: Sequence[int]) -> bool:
    """Return whether positions are the whole diagonal of a square matrix."""
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        return False
    return all(np.array_equal(index, np.arange(shape[0])) for index in indices)


def _is_sliced(indices: Indices, shape: Sequence[int]) -> bool:
    """Return whether the positions are those of slices, in the order of the axes of the part."""
    axes = varying_axes(indices)
    along = [np.unique(indices[a]) for a in axes]
    sizes = [index.size for index in along]
    # NumPy drops leading axes of one element in an assignment, and no others.
    if sizes != list(shape[len(shape) - len(sizes) :]) or any(
        n != 1 for n in shape[: len(shape) - len(sizes)]
    ):
        return False
    steps = [np.diff(index) for index in along]
    if any(len(set(step.tolist())) > 1 for step in steps):
        return False
    grid = np.meshgrid(*along, indexing="ij")
    return all(
        index.size == whole.size and np.array_equal(index.reshape(-1), whole.reshape(-1))
        for index, whole in zip((indices[a] for a in axes), grid, strict=True)
    )
