"""Layers by the names that they and their arguments have in `paddle.nn`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from primgraph import nn as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.nn import functional, initializer
from primgraph.compat.paddle.parameter_attributes import as_attribute
from primgraph.compat.paddle.parameters import new_parameter
from primgraph.compat.paddle.utils import unique_name
from primgraph.nn import LayerDict, LayerList, ParameterList, Sequential
from primgraph.operators.variable import Variable

__all__ = [
    "GELU",
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
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
    """`pg.nn.Layer` with the arguments of Paddle's.

    `dtype` is that of parameters that are created without one; for float32, as for None, the
    default one is. The name of a scope has no effect.

    >>> class Scale(paddle.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = self.create_parameter([1])
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    ...
    >>> [p.shape for p in Scale().parameters()]
    [(1,)]
    """

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32") -> None:
        super().__init__()
        self.dtype = None if dtype == "float32" else dtype
        self._full_name = unique_name.generate(name_scope or snake_case(type(self).__name__))

    def full_name(self) -> str:
        """The unique name of the layer, with which the names of its parameters begin."""
        return self._full_name

    def create_parameter(  # type: ignore[override]
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
    ) -> Any:
        """A new parameter, to be assigned to an attribute; None with `attr` False."""
        given = as_attribute(attr)
        if given is None:
            return None
        chosen = dtype_or_default(self.dtype if dtype is None else dtype)
        return new_parameter(shape, chosen, given, is_bias, default_initializer, self._full_name)


def snake_case(name: str) -> str:
    """Return the name of a class as Paddle names its instances: `conv2d` for Conv2D."""
    parts = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", parts).lower()


class Linear(Layer):
    """Layer `x @ weight + bias`; the weight is of shape (in_features, out_features).

    >>> paddle.nn.Linear(3, 2)(paddle.ones([5, 3])).shape
    (5, 2)
    """

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


class Tanh(Layer):
    """Layer that applies `functional.tanh`.

    >>> paddle.nn.Tanh()(paddle.zeros([2]))
    tensor([0., 0.], dtype=float32)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        """The function of each element."""
        return functional.tanh(x)


class Sigmoid(Layer):
    """Layer that applies `functional.sigmoid`.

    >>> paddle.nn.Sigmoid()(paddle.zeros([2]))
    tensor([0.5, 0.5], dtype=float32)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Variable) -> Variable:
        """The function of each element."""
        return functional.sigmoid(x)


class GELU(Layer):
    """Layer that applies `functional.gelu`.

    >>> paddle.nn.GELU()(paddle.zeros([2]))
    tensor([0., 0.], dtype=float32)
    """

    def __init__(self, approximate: bool = False, name: str | None = None) -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Variable) -> Variable:
        """The function of each element."""
        return functional.gelu(x, self.approximate)


class Softplus(Layer):
    """Layer that applies `functional.softplus`.

    >>> paddle.nn.Softplus()(paddle.zeros([2])).shape
    (2,)
    """

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Variable) -> Variable:
        """The function of each element."""
        return functional.softplus(x, self.beta, self.threshold)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
