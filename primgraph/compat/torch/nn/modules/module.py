"""The base class of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from primgraph.compat.modules import module as core
from primgraph.compat.modules.hooks import RemovableHandle, add_hook, everywhere
from primgraph.compat.torch.framework import checked_device
from primgraph.compat.torch.nn.parameter import Buffer
from primgraph.compat.torch.tensor import Parameter, Tensor
from primgraph.eager.tensor import Tensor as _Tensor

__all__ = [
    "Module",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]


class Module(core.Module):
    """Part of a network: its parameters, buffers and modules, and a `forward` that computes.

    A subclass calls `super().__init__()`, assigns parameters and modules to attributes, which
    registers them, and defines `forward`. Calling the module calls `forward`.

    >>> class Twice(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = torch.nn.Linear(3, 3)
    ...     def forward(self, x):
    ...         return self.inner(self.inner(x))
    >>> Twice()
    Twice(
      (inner): Linear(in_features=3, out_features=3, bias=True)
    )
    """

    _parameter: ClassVar[type[_Tensor]] = Parameter
    _tensor: ClassVar[type[_Tensor]] = Tensor
    _buffer: ClassVar[tuple[type[Any], ...]] = (Buffer,)
    _library: ClassVar[str] = Tensor._library

    def _check_device(self, device: Any) -> None:
        checked_device(device)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before `forward` of every module.

    >>> seen, hook = [], lambda m, x: seen.append(type(m).__name__)
    >>> handle = torch.nn.modules.module.register_module_forward_pre_hook(hook)
    >>> result = torch.nn.ReLU()(torch.ones(1, requires_grad=True))
    >>> handle.remove()
    >>> seen
    ['ReLU']
    """
    return add_hook(everywhere, "forward_pre", hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after `forward` of every module.

    >>> seen, hook = [], lambda m, x, y: seen.append(type(m).__name__)
    >>> handle = torch.nn.modules.module.register_module_forward_hook(hook)
    >>> result = torch.nn.ReLU()(torch.ones(1, requires_grad=True))
    >>> handle.remove()
    >>> seen
    ['ReLU']
    """
    return add_hook(everywhere, "forward", hook, (with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of every module are computed.

    >>> seen, hook = [], lambda m, g: seen.append(type(m).__name__)
    >>> handle = torch.nn.modules.module.register_module_full_backward_pre_hook(hook)
    >>> result = torch.nn.ReLU()(torch.ones(1, requires_grad=True)).backward()
    >>> handle.remove()
    >>> seen
    ['ReLU']
    """
    return add_hook(everywhere, "backward_pre", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` with the gradients of every module.

    >>> seen, hook = [], lambda m, a, b: seen.append(type(m).__name__)
    >>> handle = torch.nn.modules.module.register_module_full_backward_hook(hook)
    >>> result = torch.nn.ReLU()(torch.ones(1, requires_grad=True)).backward()
    >>> handle.remove()
    >>> seen
    ['ReLU']
    """
    return add_hook(everywhere, "backward", hook)
