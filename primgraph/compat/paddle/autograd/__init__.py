"""Derivatives of tensors by the names that they have in `paddle.autograd`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.compat.absent import absent
from primgraph.compat.paddle.autograd.layers import (
    PyLayer,
    PyLayerContext,
    saved_tensors_hooks,
)
from primgraph.compat.paddle.autograd.matrices import Hessian, Jacobian, hessian, jacobian
from primgraph.compat.paddle.framework import RequirementError, SpentGraphError
from primgraph.eager.derivatives import backward as core
from primgraph.eager.tensor import Tensor

__all__ = [
    "Function",
    "Hessian",
    "Jacobian",
    "PyLayer",
    "PyLayerContext",
    "backward",
    "hessian",
    "jacobian",
    "saved_tensors_hooks",
]

Function = PyLayer


def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Any = None, retain_graph: bool = False
) -> None:
    """Add gradients to `.grad` of the leaves that `tensors` depend on; seeds are ones by default.

    Raises `RequirementError`, an AssertionError, for seeds of another number or shape.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.backward([x * x])
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    ends = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    given = [grad_tensors] if isinstance(grad_tensors, Tensor) else grad_tensors
    seeds = [None] * len(ends) if given is None else list(given)
    if len(seeds) != len(ends):
        raise RequirementError(f"got {len(ends)} tensors and {len(seeds)} grad_tensors")
    pairs = [(y, s) for y, s in zip(ends, seeds, strict=True) if y.requires_grad]
    if any(s is not None and tuple(s.shape) != y.type.shape for y, s in pairs):
        raise RequirementError("each of grad_tensors has the shape of its tensor")
    with SpentGraphError.instead():
        core.backward(
            [y for y, _ in pairs],
            [np.ones(y.type.shape, y.type.dtype) if s is None else s for y, s in pairs],
            retain_graph,
        )


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
