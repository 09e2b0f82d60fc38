"""Layers by the names that they and their arguments have in `paddle.nn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph import nn as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.framework import Initializer, named_and_initialized
from primgraph.compat.paddle.nn import functional, initializer
from primgraph.errors import ArgumentError
from primgraph.nn import LayerDict, LayerList, ParameterList, Sequential
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
        return super().create_parameter(
            shape, dtype_or_default(self.dtype if dtype is None else dtype), rule, is_bias
        )


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
