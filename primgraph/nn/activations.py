"""Activation functions as layers, for use in a `Sequential`."""

from __future__ import annotations

from typing import final

from primgraph import operators
from primgraph.nn.layer import Layer
from primgraph.operators.variable import ArrayLike, Axes, Variable


@final
class Tanh(Layer):
    """`pg.tanh`."""

    def forward(self, x: ArrayLike) -> Variable:
        """The function of each element."""
        return operators.tanh(x)


@final
class ReLU(Layer):
    """`pg.relu`."""

    def forward(self, x: ArrayLike) -> Variable:
        """The function of each element."""
        return operators.relu(x)


@final
class GELU(Layer):
    """`pg.gelu`, exact or approximate."""

    def __init__(self, approximate: bool = False) -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: ArrayLike) -> Variable:
        """The function of each element."""
        return operators.gelu(x, self.approximate)


@final
class SiLU(Layer):
    """`pg.silu`."""

    def forward(self, x: ArrayLike) -> Variable:
        """The function of each element."""
        return operators.silu(x)


@final
class Sigmoid(Layer):
    """`pg.sigmoid`."""

    def forward(self, x: ArrayLike) -> Variable:
        """The function of each element."""
        return operators.sigmoid(x)


@final
class Softplus(Layer):
    """`pg.softplus`."""

    def forward(self, x: ArrayLike) -> Variable:
        """The function of each element."""
        return operators.softplus(x)


@final
class Softmax(Layer):
    """`pg.softmax` over `axis`."""

    def __init__(self, axis: Axes = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: ArrayLike) -> Variable:
        """Probabilities in the shape of `x`."""
        return operators.softmax(x, self.axis)
