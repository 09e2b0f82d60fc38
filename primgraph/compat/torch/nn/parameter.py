"""Parameters and buffers of modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.tensor import Parameter, Tensor, make_leaf
from primgraph.errors import BuildError

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class UninitializedParameter(Parameter):
    """Weight of a lazy layer before its first call, when its shape is not known yet.

    >>> torch.nn.LazyLinear(2).weight
    <UninitializedParameter>
    """

    __slots__ = ()

    @property
    def shape(self) -> Any:
        """Raise `BuildError`: the first call of the layer makes the weight."""
        raise BuildError(
            "Can't access the shape of an uninitialized parameter or buffer.",
            hint="call the layer first: layer(x) makes its weights for the shape of x",
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedBuffer(UninitializedParameter):
    """Buffer of a lazy layer before its first call.

    >>> torch.nn.LazyBatchNorm1d().running_mean
    <UninitializedBuffer>
    """

    __slots__ = ()


def is_lazy(param: Any) -> bool:
    """Return whether `param` is a weight or a buffer of a lazy layer that was not called yet.

    >>> torch.nn.parameter.is_lazy(torch.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(param, UninitializedParameter)


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
