"""Layers that learn a number of features from their first argument."""

from __future__ import annotations

from typing import Any, ClassVar

from primgraph.compat.torch.nn.modules import conv, linear, normalization
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.nn.parameter import UninitializedBuffer, UninitializedParameter

# Attributes that layers make when they are called first.
_WEIGHTS, _BUFFERS = ("weight", "bias"), ("running_mean", "running_var")


class _Lazy(Module):
    """Layer that becomes one of class `_kind`, whose first argument is the size of an axis."""

    _kind: ClassVar[type[Module]]
    _axis: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.__dict__["_arguments"] = (args, kwargs)

    def has_uninitialized_params(self) -> bool:
        """Return whether the layer was not called yet: it is of another class then."""
        return True

    def __getattr__(self, name: str) -> Any:
        if name in _WEIGHTS:
            return UninitializedParameter(requires_grad=True)
        return UninitializedBuffer() if name in _BUFFERS else super().__getattr__(name)

    def forward(self, *args: Any) -> Any:
        """Return the result of the layer that this becomes."""
        kind: Any = self._kind
        given, options = self.__dict__.pop("_arguments")
        made = kind(args[0].shape[self._axis], *given, **options)
        kept = ("_hooks", "training")
        self.__dict__.update({n: v for n, v in vars(made).items() if n not in kept})
        self.__class__ = kind
        return kind.forward(self, *args)


def _lazy(kind: type[Module], axis: int, arguments: str, sizes: str) -> type[_Lazy]:
    """Return the lazy class of a layer; the last two are for its example."""
    name = f"Lazy{kind.__name__}"
    doc = f"""{kind.__name__} whose first argument is the size of axis {axis} in the first call.

    >>> layer = torch.nn.{name}({arguments})
    >>> result = layer(torch.ones({sizes}))
    >>> type(layer).__name__
    '{kind.__name__}'
    """
    return type(
        name, (_Lazy,), {"_kind": kind, "_axis": axis, "__doc__": doc, "__module__": __name__}
    )


_KINDS: list[tuple[type[Module], int, str, str]] = [(linear.Linear, -1, "2", "1, 3")]
for _n in (1, 2, 3):
    _sizes = ", ".join("22" + "3" * _n)
    _KINDS += [
        (getattr(conv, f"Conv{_n}d"), -_n - 1, "2, 2", _sizes),
        (getattr(conv, f"ConvTranspose{_n}d"), -_n - 1, "2, 2", _sizes),
        (getattr(normalization, f"BatchNorm{_n}d"), 1, "", _sizes),
        (getattr(normalization, f"InstanceNorm{_n}d"), 1, "", _sizes),
    ]
_CLASSES = {f"Lazy{row[0].__name__}": _lazy(*row) for row in _KINDS}
globals().update(_CLASSES)
__all__ = [*_CLASSES]
