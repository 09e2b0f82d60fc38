"""Optimizers of functions of arrays in containers, given their gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import primgraph.numpy as np
from primgraph.compat.autograd.misc.flatten import flatten

Step = Callable[[Any, Any, int], tuple[Any, Any]]


def _accept_containers(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """An optimizer of a vector, as one of arrays in containers."""

    @wraps(optimize)
    def call(
        grad: Callable[..., Any], x0: Any, callback: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        flat, unflatten = flatten(x0)

        def gradient(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def tell(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(gradient, flat, tell, *args, **kwargs))

    return call


@_accept_containers
def sgd(
    grad: Callable[..., Any],
    x: Any,
    callback: Callable[..., None],
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Steps along an average of the gradients, of which `mass` is kept each time.

    `grad(x, i)` is the gradient in step i; `callback(x, i, g)` is told of each.
    """
    velocity = np.zeros_like(x)
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@_accept_containers
def rmsprop(
    grad: Callable[..., Any],
    x: Any,
    callback: Callable[..., None],
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps along the gradient over the root of an average of its squares (Tieleman, Hinton)."""
    squares = np.ones_like(x)
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        squares = gamma * squares + (1.0 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(squares) + eps)
    return x


@_accept_containers
def adam(
    grad: Callable[..., Any],
    x: Any,
    callback: Callable[..., None],
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Steps along averages of the gradient over roots of those of its squares (Kingma, Ba)."""
    mean, squares = np.zeros_like(x), np.zeros_like(x)
    for i in range(num_iters):
        g = grad(x, i)
        callback(x, i, g)
        mean = b1 * mean + (1.0 - b1) * g
        squares = b2 * squares + (1.0 - b2) * g**2
        unbiased = mean / (1.0 - b1 ** (i + 1))
        x = x - step_size * unbiased / (np.sqrt(squares / (1.0 - b2 ** (i + 1))) + eps)
    return x
