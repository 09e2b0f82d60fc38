"""Activation functions as layers, for use in a `Sequential`."""

from __future__ import annotations

from typing import Any, final

from primgraph import operators
from primgraph.ir.frontend.signature import checked_methods
from primgraph.nn.layer import Layer
from primgraph.operators.handle import ArrayLike, Axes


@final
@checked_methods()
class Tanh(Layer):
    """`pg.tanh`.

    >>> pg.nn.Tanh()(0.0)
    tensor(0.)
    """

    def forward(self, x: ArrayLike) -> Any:
        """The function of each element."""
        return operators.tanh(x)


@final
@checked_methods()
class ReLU(Layer):
    """`pg.relu`.

    >>> pg.nn.ReLU()([-1.0, 2.0])
    tensor([0., 2.])
    """

    def forward(self, x: ArrayLike) -> Any:
        """The function of each element."""
        return operators.relu(x)


@final
@checked_methods()
class GELU(Layer):
    """`pg.gelu`, exact or approximate."""

    def __init__(self, approximate: bool = False) -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: ArrayLike) -> Any:
        """The function of each element."""
        return operators.gelu(x, self.approximate)


@final
@checked_methods()
class SiLU(Layer):
    """`pg.silu`."""

    def forward(self, x: ArrayLike) -> Any:
        """The function of each element."""
        return operators.silu(x)


@final
@checked_methods()
class Sigmoid(Layer):
    """`pg.sigmoid`.

    >>> pg.nn.Sigmoid()(0.0)
    tensor(0.5)
    """

    def forward(self, x: ArrayLike) -> Any:
        """The function of each element."""
        return operators.sigmoid(x)


@final
@checked_methods()
class Softplus(Layer):
    """`pg.softplus`."""

    def forward(self, x: ArrayLike) -> Any:
        """The function of each element."""
        return operators.softplus(x)


@final
@checked_methods()
class Softmax(Layer):
    """`pg.softmax` over `axis`.

    >>> pg.nn.Softmax()([0.0, 0.0])
    tensor([0.5, 0.5])
    """

    def __init__(self, axis: Axes = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: ArrayLike) -> Any:
        """Probabilities in the shape of `x`."""
        return operators.softmax(x, self.axis)
