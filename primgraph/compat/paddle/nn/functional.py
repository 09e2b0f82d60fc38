"""Functions of networks by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from primgraph import operators as pg
from primgraph.compat.paddle.tensor import sigmoid, tanh
from primgraph.operators.variable import ArrayLike, Variable

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


def gelu(x: ArrayLike, approximate: bool = False, name: str | None = None) -> Variable:
    """`x` times the normal distribution function of `x`, or its approximation by tanh."""
    return pg.gelu(x, approximate)


def linear(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, name: str | None = None
) -> Variable:
    """`x @ weight + bias`."""
    return pg.linear(x, weight, bias)


def log_softmax(x: ArrayLike, axis: int = -1, name: str | None = None) -> Variable:
    """Logarithm of `softmax`."""
    return pg.log_softmax(x, axis)


def mse_loss(
    input: ArrayLike, label: ArrayLike, reduction: str = "mean", name: str | None = None
) -> Variable:
    """Squared difference of two arrays; the mean over all elements."""
    return pg.mse_loss(input, label, reduction)


def relu(x: ArrayLike, name: str | None = None) -> Variable:
    """`x` where it is positive, 0 elsewhere."""
    return pg.relu(x)


def silu(x: ArrayLike, name: str | None = None) -> Variable:
    """`x * sigmoid(x)`."""
    return pg.silu(x)


def softmax(x: ArrayLike, axis: int = -1, name: str | None = None) -> Variable:
    """`exp(x) / sum(exp(x))` over `axis`."""
    return pg.softmax(x, axis)


def softplus(x: ArrayLike, name: str | None = None) -> Variable:
    """`log(1 + exp(x))`."""
    return pg.softplus(x)
