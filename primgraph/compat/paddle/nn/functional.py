"""Functions of networks by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.framework import paddles
from primgraph.compat.paddle.tensor import sigmoid, tanh
from primgraph.operators.handle import ArrayLike
from primgraph.operators.variable import Variable

__all__ = [
    "gelu",
    "linear",
    "log_softmax",
    "mse_loss",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


@paddles
def gelu(x: ArrayLike, approximate: bool = False, name: str | None = None) -> Variable:
    """`x` times the normal distribution function of `x`, or its approximation by tanh."""
    return pg.gelu(x, approximate)


@paddles
def linear(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, name: str | None = None
) -> Variable:
    """`x @ weight + bias`."""
    return pg.linear(x, weight, bias)


@paddles
def log_softmax(
    x: ArrayLike, axis: int = -1, dtype: Any = None, name: str | None = None
) -> Variable:
    """Logarithm of `softmax`; of `x` in that dtype if one is given."""
    return pg.log_softmax(x if dtype is None else pg.cast(x, dtype), axis)


@paddles
def mse_loss(
    input: ArrayLike, label: ArrayLike, reduction: str = "mean", name: str | None = None
) -> Variable:
    """Squared difference of two arrays; the mean over all elements."""
    return pg.mse_loss(input, label, reduction)


@paddles
def relu(x: ArrayLike, name: str | None = None) -> Variable:
    """`x` where it is positive, 0 elsewhere."""
    return pg.relu(x)


@paddles
def silu(x: ArrayLike, name: str | None = None) -> Variable:
    """`x * sigmoid(x)`."""
    return pg.silu(x)


@paddles
def softmax(x: ArrayLike, axis: int = -1, dtype: Any = None, name: str | None = None) -> Variable:
    """`exp(x) / sum(exp(x))` over `axis`; of `x` in that dtype if one is given."""
    return pg.softmax(x if dtype is None else pg.cast(x, dtype), axis)


@paddles
def softplus(
    x: ArrayLike, beta: float = 1, threshold: float = 20, name: str | None = None
) -> Variable:
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above the threshold."""
    scaled = pg.multiply(x, beta)
    return pg.where(pg.greater(scaled, threshold), x, pg.divide(pg.softplus(scaled), beta))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
