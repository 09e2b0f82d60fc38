"""Joins and parts of tensors, and matrices that are built of them."""

from __future__ import annotations

from itertools import accumulate, combinations_with_replacement
from itertools import combinations as itertools_combinations
from typing import Any

import numpy as np

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.torch.functions.results import define_functions, require_tensors  # noqa: F401, of rows
from primgraph.compat.torch.functions.shapes import collect_varargs
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis

_ROWS = """
cat|concat|concatenate(tensors, dim=0): concatenate(require_tensors("cat", tensors), dim)
Join tensors along `dim`.
>>> torch.cat([torch.zeros(1), torch.ones(2)])
tensor([0., 1., 1.])

column_stack(tensors): column_stack(require_tensors("column_stack", tensors))
Stack vectors as columns of a matrix.
>>> torch.column_stack([torch.zeros(2), torch.ones(2)])
tensor([[0., 1.],
        [0., 1.]])

dstack(tensors): dstack(require_tensors("dstack", tensors))
Stack tensors along the third axis.
>>> torch.dstack([torch.zeros(2), torch.ones(2)]).shape
torch.Size([1, 2, 2])

hstack(tensors): hstack(tensors)
Join tensors along the second axis, vectors along their own.
>>> torch.hstack([torch.zeros(1), torch.ones(2)])
tensor([0., 1., 1.])

stack(tensors, dim=0): stack(require_tensors("stack", tensors), dim)
Stack tensors of one shape along a new axis.
>>> torch.stack([torch.zeros(2), torch.ones(2)])
tensor([[0., 0.],
        [1., 1.]])

vstack|row_stack(tensors): vstack(require_tensors("vstack", tensors))
Join tensors along the first axis, vectors as rows.
>>> torch.vstack([torch.zeros(2), torch.ones(2)])
tensor([[0., 0.],
        [1., 1.]])
"""

__all__ = [
    *define_functions(globals(), _ROWS),
    "block_diag",
    "cartesian_prod",
    "chunk",
    "combinations",
    "diag_embed",
    "dsplit",
    "hsplit",
    "meshgrid",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unbind",
    "vander",
    "vsplit",
]


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into parts of one size, the last one of the rest, or of these sizes.

    Raises `ShapeError` for sizes that do not add up to the whole.

    >>> [part.tolist() for part in torch.split(torch.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    extent = tensor.shape[as_axis(dim, tensor.ndim)]
    if isinstance(split_size_or_sections, int):
        if split_size_or_sections < 0:
            raise ArgumentError(
                f"split expects split_size be non-negative, but got {split_size_or_sections}"
            )
        ends = list(range(split_size_or_sections, extent, split_size_or_sections))
    else:
        ends = list(accumulate(split_size_or_sections))
        if not ends or ends.pop() != extent:
            raise ShapeError(
                f"parts of sizes {list(split_size_or_sections)} do not add up to the extent "
                f"{extent} of axis {dim}"
            )
    return tuple(pg.split(tensor, ends, dim))


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into at most `chunks` parts of one size, the last one of the rest.

    >>> [part.tolist() for part in torch.chunk(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    if chunks < 1:
        raise ArgumentError(f"chunk makes one part or more, not {chunks}")
    return split(input, -(-input.shape[as_axis(dim, input.ndim)] // chunks), dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return the slices along `dim`.

    >>> [part.tolist() for part in torch.unbind(torch.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return tuple(pg.moveaxis(input, dim, 0))


split_with_sizes = split


def tensor_split(
    input: Any,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
) -> tuple[Any, ...]:
    """Split along `dim` into parts of nearly one size, or before these positions.

    >>> [part.tolist() for part in torch.tensor_split(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    given = next((g for g in (indices_or_sections, indices, sections) if g is not None), None)
    if given is None:
        raise ArgumentError("tensor_split(): missing 1 required argument: indices or sections")
    if not isinstance(given, int | list | tuple):
        given = np.asarray(given).tolist()
    extent = input.shape[as_axis(dim, input.ndim)]
    if isinstance(given, int):
        if given < 1:
            raise ArgumentError(f"number of sections must be larger than 0, got {given}")
        least, larger = divmod(extent, given)
        given = list(accumulate([least + (k < larger) for k in range(given - 1)]))
    return tuple(pg.split(input, given, dim))


def _split_at(name: str, input: Any, given: Any, dim: int) -> tuple[Any, ...]:
    if input.ndim <= dim and not (name == "hsplit" and input.ndim == 1):
        raise ShapeError(
            f"torch.{name} requires a tensor with at least {max(dim + 1, 1)} dimension, but got a "
            f"tensor with {input.ndim} dimensions!"
        )
    axis = min(dim, input.ndim - 1)
    if isinstance(given, int) and input.shape[axis] % given:
        raise ShapeError(
            f"torch.{name} attempted to split along dimension {axis}, but the size of the "
            f"dimension {input.shape[axis]} is not divisible by the split_size {given}!"
        )
    return tensor_split(input, given, axis)


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Split along the second axis, of a vector along its own.

    >>> [part.tolist() for part in torch.hsplit(torch.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split_at("hsplit", input, indices_or_sections, 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Split along the first axis of a matrix.

    >>> [part.tolist() for part in torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    if input.ndim < 2:
        raise ShapeError("torch.vsplit requires a tensor with at least 2 dimension")
    return _split_at("vsplit", input, indices_or_sections, 0)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Split along the third axis.

    >>> [part.shape[2] for part in torch.dsplit(torch.ones(1, 1, 4), 2)]
    [2, 2]
    """
    return _split_at("dsplit", input, indices_or_sections, 2)


def block_diag(*tensors: Any) -> Any:
    """Return the matrix with these on its diagonal; numbers and vectors are rows.

    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    return linalg.block_diag(*map(pg.atleast_2d, tensors))


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Return coordinates of the points of a grid, from those along each axis.

    >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    >>> x
    tensor([[1, 1],
            [2, 2]])
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing must be one of 'xy' or 'ij', not {indexing!r:.60}")
    listed = collect_varargs(tensors)
    if any(x.ndim > 1 for x in listed):
        raise ShapeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    given = map(pg.atleast_1d, listed)
    return tuple(pg.meshgrid(*given, indexing="ij" if indexing == "ij" else "xy"))


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of elements of vectors, as rows.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    if len(tensors) == 1:
        return tensors[0]
    return pg.stack([pg.flatten(g) for g in meshgrid(*tensors)], -1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return all combinations of `r` elements of a vector, as rows.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {[*input.shape]}")
    choose = combinations_with_replacement if with_replacement else itertools_combinations
    rows = [*choose(range(input.shape[0]), r)]
    return pg.take(input, np.asarray(rows, np.int64).reshape(-1, r))


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices with the elements of the last axis on a diagonal.

    >>> torch.diag_embed(torch.tensor([[1, 2]]))
    tensor([[[1, 0],
             [0, 2]]])
    """
    count = input.shape[-1] + abs(offset)
    rows, columns = np.arange(count)[:, None], np.arange(count)
    places = np.clip(rows - max(0, -offset), 0, input.shape[-1] - 1)
    values = pg.take(input, np.broadcast_to(places, (count, count)), -1)
    found = pg.where(columns - rows == offset, values, pg.zeros_like(values))
    axes = as_axis(dim1, found.ndim), as_axis(dim2, found.ndim)
    return pg.moveaxis(found, (-2, -1), axes)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the matrix of powers of a vector, of its dtype.

    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    return pg.astype(pg.vander(x, N, increasing), x.type.dtype)
