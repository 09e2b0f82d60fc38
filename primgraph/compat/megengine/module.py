"""Layers by the names that they and their arguments have in `megengine.module`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.compat.absent import absent
from primgraph.compat.megengine import functional
from primgraph.compat.megengine.tensor import Parameter
from primgraph.eager.seeds import reserve_generator
from primgraph.initializers import Xavier
from primgraph.ir.types import FLOAT32
from primgraph.nn import GELU, Layer, ReLU, Sequential, Sigmoid, SiLU, Tanh

__all__ = [
    "GELU",
    "Dropout",
    "Linear",
    "Module",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
]


class Module(Layer):
    """`pg.nn.Layer` with MegEngine's names for its parts."""

    def modules(self) -> list[Layer]:
        """This module and all within, outer ones first."""
        return self.sublayers(include_self=True)


class Linear(Module):
    """`x @ weight.T + bias`; the weight is of shape (out_features, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        shape = (out_features, in_features)
        self.weight = Parameter(Xavier()(shape, FLOAT32, reserve_generator()()))
        self.bias = Parameter(np.zeros(out_features, "float32")) if bias else None

    def forward(self, x: Any) -> Any:
        """`x` of shape (..., in_features) becomes (..., out_features)."""
        return functional.linear(x, self.weight, self.bias)


class Dropout(Module):
    """`functional.dropout`, in training."""

    def __init__(self, drop_prob: float = 0.0) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, inputs: Any) -> Any:
        """`inputs` with some elements zero in training, as they are in evaluation."""
        return functional.dropout(inputs, self.drop_prob, self.training)


class Softmax(Module):
    """`functional.softmax` along `axis`, or the axis that it takes without one."""

    def __init__(self, axis: int | None = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, inputs: Any) -> Any:
        """Numbers that add up to one along the axis."""
        return functional.softmax(inputs, self.axis)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
