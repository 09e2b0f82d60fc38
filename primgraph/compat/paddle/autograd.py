"""Derivatives of tensors by the names that they have in `paddle.autograd`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.compat.absent import absent
from primgraph.eager.derivatives import backward as core
from primgraph.eager.tensor import Tensor

__all__ = ["backward"]


def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Any = None, retain_graph: bool = False
) -> None:
    """Add gradients to `.grad` of the leaves that `tensors` depend on; seeds are ones by default.

    See `pg.autograd.backward`.
    """
    ends = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    given = [grad_tensors] if isinstance(grad_tensors, Tensor) else grad_tensors
    seeds = [None] * len(ends) if given is None else given
    core.backward(
        ends,
        [
            np.ones(y.shape, y.dtype) if seed is None else seed
            for y, seed in zip(ends, seeds, strict=True)
        ],
        retain_graph,
    )


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
