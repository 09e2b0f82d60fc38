"""Modules that run on several devices: here there is one, the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A module that calls another one, `module`: there is one device.

    >>> net = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    >>> list(net.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.device_ids: list[int] = []
        self.module, self.dim = module, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the result of the module."""
        return self.module(*inputs, **kwargs)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
