"""Derivatives of tensors by the names that they have in `torch.autograd`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.autograd import forward_ad, function, functional, graph
from primgraph.compat.torch.autograd.function import Function
from primgraph.compat.torch.autograd.gradcheck import gradcheck, gradgradcheck
from primgraph.compat.torch.autograd.gradients import backward, grad, is_grad_enabled
from primgraph.compat.torch.core.anomaly import detect_anomaly, set_detect_anomaly
from primgraph.eager.derivatives.recording import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


@contextmanager
def set_multithreading_enabled(mode: bool) -> Iterator[None]:
    """Accept whether derivatives use several threads: `set_num_threads` decides it.

    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     pass
    """
    yield


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """Return a tensor that shares the elements of `data`, by the former name of tensors.

    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """
    return data.detach().requires_grad_(requires_grad)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
