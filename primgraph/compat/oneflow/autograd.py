"""Derivatives of tensors by the names that they have in `oneflow.autograd`."""

from __future__ import annotations

from typing import Any

from primgraph.compat.torch.autograd import functional
from primgraph.custom.function import Function
from primgraph.eager import backward as core
from primgraph.eager.backward import Tensors, backward
from primgraph.eager.tensor import Tensor

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
    return core.grad(
        outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, is_grads_batched
    )


def __dir__() -> list[str]:
    return sorted(__all__)
