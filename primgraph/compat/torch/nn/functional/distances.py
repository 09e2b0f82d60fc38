"""Distances and similarities of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.errors import ShapeError

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def _norm(x: Any, p: float, axis: Any, keepdims: bool = False) -> Any:
    """Return the p-norm, whose gradient at 0 is 0."""
    if p == 2:
        squares = pg.sum(pg.square(x), axis, keepdims)
        is_zero = pg.equal(squares, 0)
        return pg.where(is_zero, 0, pg.sqrt(pg.where(is_zero, 1, squares)))
    if p == 1:
        return pg.sum(pg.abs(x), axis, keepdims)
    if p == float("inf"):
        return pg.max(pg.abs(x), axis, keepdims)
    if p == 0:
        return pg.sum(pg.astype(pg.not_equal(x, 0), x.dtype), axis, keepdims)
    powers = pg.sum(pg.power(pg.abs(x), p), axis, keepdims)
    is_zero = pg.equal(powers, 0)
    return pg.where(is_zero, 0, pg.power(pg.where(is_zero, 1, powers), 1 / p))


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Divide by the p-norm along an axis, which is at least `eps`.

    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    found = pg.divide(input, pg.maximum(_norm(input, p, dim, True), eps))
    return found if out is None else out.copy_(found)


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """Compute the p-norm of `x1 - x2 + eps` along the last axis.

    >>> torch.nn.functional.pairwise_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    return _norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Compute the cosine of the angle between vectors along an axis; norms are at least `eps`.

    >>> torch.nn.functional.cosine_similarity(torch.ones(1, 2), torch.tensor([[0.0, 2.0]]))
    tensor([0.7071])
    """
    x1, x2 = pg.broadcast_arrays(x1, x2)
    first = pg.divide(x1, pg.maximum(_norm(x1, 2, dim, True), eps))
    second = pg.divide(x2, pg.maximum(_norm(x2, 2, dim, True), eps))
    return pg.sum(first * second, dim)


def pdist(input: Any, p: float = 2.0) -> Any:
    """Compute the distances of all pairs of rows: (0, 1), (0, 2), and so on.

    >>> torch.nn.functional.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if input.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    first, second = np.triu_indices(input.shape[0], 1)
    return _norm(pg.take(input, first, 0) - pg.take(input, second, 0), p, -1)
