"""Layers that hold the arguments of a function: one row of a table for each."""

from __future__ import annotations

from primgraph.compat.modules.layer_tables import OLD_REDUCTION, define_layers, show
from primgraph.compat.torch.nn.modules.module import Module

__all__ = ["FunctionLayer", "ReducedLoss", "define_layers", "show"]

# What old programs give for `reduction`: size_average, reduce.
_REDUCTIONS = {
    (None, None): "mean", (None, True): "mean", (None, False): "none",
    (True, None): "mean", (True, True): "mean", (True, False): "none",
    (False, None): "sum", (False, True): "sum", (False, False): "none",
}  # fmt: skip


class FunctionLayer(Module):
    """Layer that calls a function with its attributes as arguments."""

    _shown = ""

    def _complete(self) -> None:
        """Change attributes after they are set."""

    def extra_repr(self) -> str:
        """Return the attributes that torch shows."""
        return show(self, self._shown)


class ReducedLoss(FunctionLayer):
    """Loss with a `reduction`, and weights as buffers."""

    reduction: str

    def _complete(self) -> None:
        size_average, reduce = (self.__dict__.pop(name, None) for name in OLD_REDUCTION)
        old = size_average, reduce
        if old != (None, None):
            self.reduction = _REDUCTIONS[old]
        for name in ("weight", "pos_weight"):
            if name in self.__dict__:
                self.register_buffer(name, self.__dict__.pop(name))
