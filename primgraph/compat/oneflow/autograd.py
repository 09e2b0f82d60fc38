"""Derivatives of tensors by the names that they have in `oneflow.autograd`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch import autograd
from primgraph.compat.torch.autograd import Function, backward, functional
from primgraph.eager.tensor import Tensor, Tensors

__all__ = ["Function", "backward", "functional", "grad"]


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
    is_grads_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `sum_i <grad_outputs[i], outputs[i]>` by `inputs`, as a tuple."""
    return autograd.grad(
        outputs,
        inputs,
        grad_outputs,
        retain_graph,
        create_graph,
        allow_unused=allow_unused,
        is_grads_batched=is_grads_batched,
    )


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
