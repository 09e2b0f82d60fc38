"""Parameters and buffers of modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.tensor import Parameter, Tensor, make_leaf

__all__ = ["Buffer", "Parameter"]


class Buffer(Tensor):
    """A tensor that a module keeps beside its parameters; state dicts have it if `persistent`.

    >>> layer = torch.nn.Module()
    >>> layer.scale = torch.nn.Buffer(torch.ones(2))
    >>> list(layer.state_dict())
    ['scale']
    """

    __slots__ = ("persistent",)
    family = Tensor

    def __init__(self, data: Any, persistent: bool = True) -> None:
        super().__init__(make_leaf(data, None, False))
        self.persistent = persistent


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
