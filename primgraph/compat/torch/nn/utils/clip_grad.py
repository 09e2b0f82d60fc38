"""Gradient clipping, in place."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from primgraph import linalg
from primgraph.compat.torch.tensor import Tensor as TorchTensor
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import NumericalError
from primgraph.operators import astype, clip, minimum, stack

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Tensors: TypeAlias = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        return [tensors]
    found = list(tensors)
    if not found and isinstance(tensors, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3
        )
    return found


def _gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Return the norm of all tensors, as if they were joined to one vector.

    Raises `NumericalError` for NaN and infinities if `error_if_nonfinite`.

    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    listed = _listed(tensors)
    if not listed:
        return TorchTensor(array_node(np.zeros((), np.float32)))
    order = float(norm_type)
    with no_grad():
        norms: list[Any] = [linalg.vector_norm(t, ord=order) for t in listed]
        kind = np.result_type(*[n.dtype for n in norms])
        total: Any = linalg.vector_norm(stack([astype(n, kind) for n in norms]), ord=order)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise NumericalError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped",
            hint="set error_if_nonfinite=False to scale the gradients by it anyway",
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale the gradients of `parameters`, whose norm is `total_norm`, down to `max_norm`.

    >>> w = torch.ones(1, requires_grad=True)
    >>> (w * 4).sum().backward()
    >>> torch.nn.utils.clip_grads_with_norm_([w], 1.0, torch.tensor(4.0))
    >>> w.grad
    tensor([1.0000])
    """
    with no_grad():
        factor: Any = minimum(float(max_norm) / (total_norm + 1e-6), 1.0)
        for gradient in _gradients(_listed(parameters)):
            gradient.mul_(astype(factor, gradient.dtype))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale the gradients of `parameters` by one factor if their norm is above `max_norm`.

    Return the norm before. Raises as `get_total_norm`.

    >>> w = torch.ones(1, requires_grad=True)
    >>> (w * 4).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(4.)
    """
    listed = _listed(parameters)
    total = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Call `clip_grad_norm_`, and warn that this name is deprecated."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit the elements of the gradients of `parameters` to [-clip_value, clip_value].

    >>> w = torch.ones(1, requires_grad=True)
    >>> (w * 4).sum().backward()
    >>> torch.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([1.])
    """
    limit = float(clip_value)
    with no_grad():
        for gradient in _gradients(_listed(parameters)):
            gradient.copy_(clip(gradient, -limit, limit))
