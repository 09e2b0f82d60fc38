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
    """Compute `x` times the normal distribution function of `x`, or its approximation by tanh.

    >>> paddle.nn.functional.gelu(paddle.to_tensor([-1.0, 1.0]))
    tensor([-0.15865526,  0.8413447 ], dtype=float32)
    """
    return pg.gelu(x, approximate)


@paddles
def linear(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, name: str | None = None
) -> Variable:
    """Compute `x @ weight + bias`.

    >>> paddle.nn.functional.linear(paddle.ones([1, 2]), paddle.ones([2, 3]), paddle.ones([3]))
    tensor([[3., 3., 3.]], dtype=float32)
    """
    return pg.linear(x, weight, bias)


@paddles
def log_softmax(
    x: ArrayLike, axis: int = -1, dtype: Any = None, name: str | None = None
) -> Variable:
    """Compute the logarithm of `softmax`, of `x` in `dtype` if one is given.

    >>> paddle.nn.functional.log_softmax(paddle.to_tensor([0.0, 0.0]))
    tensor([-0.6931472, -0.6931472], dtype=float32)
    """
    return pg.log_softmax(x if dtype is None else pg.cast(x, dtype), axis)


@paddles
def mse_loss(
    input: ArrayLike, label: ArrayLike, reduction: str = "mean", name: str | None = None
) -> Variable:
    """Compute the squared difference of two arrays, by default its mean over all elements.

    >>> paddle.nn.functional.mse_loss(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([1.0, 4.0]))
    tensor(2., dtype=float32)
    """
    return pg.mse_loss(input, label, reduction)


@paddles
def relu(x: ArrayLike, name: str | None = None) -> Variable:
    """Return `x` where it is positive, and 0 elsewhere.

    >>> paddle.nn.functional.relu(paddle.to_tensor([-1.0, 2.0]))
    tensor([0., 2.], dtype=float32)
    """
    return pg.relu(x)


@paddles
def silu(x: ArrayLike, name: str | None = None) -> Variable:
    """Compute `x * sigmoid(x)`.

    >>> paddle.nn.functional.silu(paddle.to_tensor([-1.0, 1.0]))
    tensor([-0.2689414,  0.7310586], dtype=float32)
    """
    return pg.silu(x)


@paddles
def softmax(x: ArrayLike, axis: int = -1, dtype: Any = None, name: str | None = None) -> Variable:
    """Compute `exp(x) / sum(exp(x))` over `axis`, of `x` in `dtype` if one is given.

    >>> paddle.nn.functional.softmax(paddle.to_tensor([0.0, 0.0]))
    tensor([0.5, 0.5], dtype=float32)
    """
    return pg.softmax(x if dtype is None else pg.cast(x, dtype), axis)


@paddles
def softplus(
    x: ArrayLike, beta: float = 1, threshold: float = 20, name: str | None = None
) -> Variable:
    """Compute `log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` is above the threshold.

    >>> paddle.nn.functional.softplus(paddle.to_tensor([0.0, 30.0]))
    tensor([ 0.6931472, 30.       ], dtype=float32)
    """
    scaled = pg.multiply(x, beta)
    return pg.where(pg.greater(scaled, threshold), x, pg.divide(pg.softplus(scaled), beta))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
