"""Programs of extents with names, and arrays for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primgraph as pg

# Functions of `x`, f64[N,3], `y`, f64[N], and `w`, f64[3,2]; `n` is N, or its number.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, y, w, n: pg.tanh(x) * 2.0 - pg.exp(-x),
    "matmul": lambda x, y, w, n: pg.tanh(x @ w),
    "matmul of both": lambda x, y, w, n: x.T @ x,
    "outer": lambda x, y, w, n: pg.outer(y, y) @ x,
    "broadcast": lambda x, y, w, n: x + y[:, None] * w[:, 0],
    "sum": lambda x, y, w, n: pg.sum(x * x, 0),
    "mean": lambda x, y, w, n: pg.mean(x) + pg.mean(x, 0, True),
    "mean by the size": lambda x, y, w, n: pg.sum(x, 0) / n,
    "the size as a value": lambda x, y, w, n: x * pg.asarray(n) + n,
    "the size less a value": lambda x, y, w, n: n - 2 * x / (n + 1),
    "var and std": lambda x, y, w, n: pg.var(x, 0) + pg.std(x, 0, ddof=1),
    "norm": lambda x, y, w, n: pg.norm(x, axis=1),
    "max": lambda x, y, w, n: pg.max(x, 0) - pg.min(y),
    "softmax": lambda x, y, w, n: pg.softmax(x, 0) + pg.softmax(x, 1),
    "logsumexp": lambda x, y, w, n: pg.logsumexp(y),
    "cumsum": lambda x, y, w, n: pg.cumsum(x, 0),
    "reshape": lambda x, y, w, n: x.reshape(-1) * pg.reshape(x.T, (3 * n,)),
    "flatten": lambda x, y, w, n: pg.sin(x.flatten()),
    "transpose": lambda x, y, w, n: pg.transpose(x) * y,
    "slice": lambda x, y, w, n: x[1:] - x[:-1],
    "strided": lambda x, y, w, n: x[::2] * 3.0,
    "reversed": lambda x, y, w, n: x[::-1] + x,
    "last": lambda x, y, w, n: x[-1] * x[0],
    "first": lambda x, y, w, n: x[:2] * 2.0,
    "half": lambda x, y, w, n: x[: n // 2] * 2.0,
    "concatenate": lambda x, y, w, n: pg.concatenate([x, x * 2.0, pg.ones((2, 3))]),
    "stack": lambda x, y, w, n: pg.stack([y, y * y], 1),
    "split": lambda x, y, w, n: pg.split(x, [1])[1] * 2.0,
    "pad": lambda x, y, w, n: pg.pad(x, ((1, 2), (0, 0))) * 2.0,
    "pad by the size": lambda x, y, w, n: pg.pad(y, ((0, n),)),
    "tile": lambda x, y, w, n: pg.tile(x, (2, 1)) * 2.0,
    "tile by the size": lambda x, y, w, n: pg.tile(w, (n, 1)) * x[0, 0],
    "repeat": lambda x, y, w, n: pg.repeat(x, 2, 0) * 2.0,
    "repeat by the size": lambda x, y, w, n: pg.repeat(w, n, 0) * x[0, 0],
    "roll": lambda x, y, w, n: pg.roll(x, 1, 0) * x,
    "flip": lambda x, y, w, n: pg.flip(x, 0) * x,
    "diagonal": lambda x, y, w, n: pg.diagonal(x) * 2.0,
    "arange": lambda x, y, w, n: y * pg.arange(n),
    "arange from to": lambda x, y, w, n: pg.arange(1, 2 * n + 1, 2) * y,
    "iota and eye": lambda x, y, w, n: pg.eye(n) @ x + pg.iota((n, 3), 1),
    "zeros": lambda x, y, w, n: pg.zeros((n, 3)) + x * pg.full((n, 3), 2.0),
    "broadcast_to": lambda x, y, w, n: pg.broadcast_to(w[:, 0], (n, 3)) * x,
    "take": lambda x, y, w, n: pg.take(x, [0, 1, 0], 0) * 2.0,
    "scatter_add": lambda x, y, w, n: pg.scatter_add(x * x, [0, 0], pg.ones((2, 3))),
    "set_slice": lambda x, y, w, n: pg.set_slice(x * x, slice(0, 1), 5.0) * x,
    "where": lambda x, y, w, n: pg.where(x > 0, pg.log(pg.abs(x)), 0.0) * x,
    "argmax": lambda x, y, w, n: pg.argmax(x, 0) * pg.sum(x),
    "tril": lambda x, y, w, n: pg.tril(pg.outer(y, y)),
    "einsum": lambda x, y, w, n: pg.einsum("ni,ij,n->j", x, w, y),
    "tensordot": lambda x, y, w, n: pg.tensordot(x, x, ([0], [0])),
    "layer_norm": lambda x, y, w, n: pg.layer_norm(x, w[:, 0], w[:, 1]),
    "batch_norm": lambda x, y, w, n: pg.batch_norm(x),
    "cross_entropy": lambda x, y, w, n: pg.cross_entropy(x, pg.softmax(pg.stop_gradient(x))),
    "mse": lambda x, y, w, n: pg.mse_loss(x[:, 0], y),
}


def built(name: str, n: int) -> tuple[pg.Graph, list[str]]:
    """The function with its gradient, and the gradient of that; by the names of inputs."""
    function = FUNCTIONS[name]
    with pg.Program() as program:
        x, y, w = pg.data("x", (n, 3)), pg.data("y", (n,)), pg.data("w", (3, 2))
        z = function(x, y, w, n)
        inputs = [x, y, w]
        first = [g for g in pg.grad(pg.sum(pg.sin(z)), inputs) if g is not None]
        sums = [pg.sum(g * g) for g in first]
        second = pg.grad(sum(sums[1:], sums[0]), inputs)
        forward = pg.forward_grad(z, [x, y], [pg.cos(x), pg.cos(y)])
        wanted = [z, *first, *(g for g in second if g is not None)]
        graph = program.graph([*wanted, *([] if forward is None else [forward])])
    return graph, list(graph.parameters)


def arrays_for(names: list[str], n: int) -> list[np.ndarray]:
    """An array for each input."""
    rng = np.random.default_rng(n)
    shapes = {"x": (n, 3), "y": (n,), "w": (3, 2)}
    return [rng.normal(size=shapes[name]) for name in names]
