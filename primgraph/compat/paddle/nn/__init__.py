"""Layers by the names that they and their arguments have in `paddle.nn`."""

from __future__ import annotations

from typing import Any

from primgraph import nn as pg
from primgraph.compat.paddle.framework import (
    Initializer,
    dtype_or_default,
    named_and_initialized,
)
from primgraph.compat.paddle.nn import functional, initializer
from primgraph.errors import ArgumentError
from primgraph.nn import (
    GELU,
    LayerDict,
    LayerList,
    ParameterList,
    Sequential,
    Sigmoid,
    Softplus,
    Tanh,
)
from primgraph.operators.variable import Variable

__all__ = [
    "GELU",
    "Layer",
    "LayerDict",
    "LayerList",
    "Linear",
    "ParameterList",
    "Sequential",
    "Sigmoid",
    "Softplus",
    "Tanh",
    "functional",
    "initializer",
]


class Layer(pg.Layer):
    """`pg.nn.Layer` with the arguments of Paddle's."""

    def create_parameter(  # type: ignore[override]
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Any:
        """A new parameter, to be assigned to an attribute; None with `attr` False.

        Raises `ArgumentError` for a name, since the attribute names it.
        """
        if attr is False:
            return None
        name, rule = named_and_initialized(attr, default_initializer)
        if name is not None:
            raise ArgumentError(f"parameter {name!r} of a layer is named by its attribute")
        return super().create_parameter(shape, dtype_or_default(dtype), rule, is_bias)


class Linear(Layer):
    """`x @ weight + bias`; the weight is of shape (in_features, out_features)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter((in_features, out_features), weight_attr)
        self.bias = self.create_parameter((out_features,), bias_attr, is_bias=True)

    def forward(self, x: Variable) -> Variable:
        """`x` of shape (..., in_features) becomes (..., out_features)."""
        return functional.linear(x, self.weight, self.bias)
