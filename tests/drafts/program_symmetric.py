"""Random programs of all pairs of some points: values that are symmetric or antisymmetric, or not.

Sums over rows, columns and all of them are what native code computes from half of the pairs.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.transforms import clean_up, lower

_COUNTS = (24, 29, 40)


def _binary(rng: np.random.Generator, x: Any, y: Any, far: Any) -> Any:
    return (
        lambda: x + y,
        lambda: x - y,
        lambda: x * y,
        lambda: x / far,
        lambda: pg.maximum(x, y),
        lambda: pg.abs(x) * y,
        lambda: x - 1.5 * pg.round(x / 1.5),
        lambda: pg.exp(-pg.abs(x)) * y,
        lambda: far**-1.5 * y,
        lambda: pg.where(x > 0.5, y, x),
    )[int(rng.integers(10))]()


def _values(rng: np.random.Generator, first: list[Any], far: Any) -> list[Any]:
    """Return some values of pairs, each computed of others."""
    found = list(first)
    for _ in range(int(rng.integers(2, 7))):
        x, y = (found[int(k)] for k in rng.integers(len(found), size=2))
        found.append(_binary(rng, x, y, far))
    return found


def _sum(rng: np.random.Generator, value: Any) -> Any:
    return pg.sum(value, axis=(0, 1, 0, 1, None)[int(rng.integers(5))])


def symmetric_program(seed: int) -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    """Return a graph of sums over pairs, and of sums of values of these, with its feeds."""
    rng = np.random.default_rng([seed, 7])
    n, width = int(rng.choice(_COUNTS)), int(rng.integers(1, 4))
    dtype = np.float64 if rng.random() < 0.8 else np.float32
    x, weight = rng.normal(size=(n, width)).astype(dtype), rng.normal(size=n).astype(dtype)
    if rng.random() < 0.3:
        # Some differences are zero beside the diagonal, too.
        x = np.round(x)
    odd = rng.normal(size=(n, n)).astype(dtype) if rng.random() < 0.3 else np.zeros((n, n), dtype)
    even = odd + odd.T if rng.random() < 0.5 else np.eye(n, dtype=dtype)

    def program(x: Any, weight: Any) -> Any:
        apart = [x[:, k][:, None] - x[:, k][None] for k in range(width)]
        far = sum([d * d for d in apart], 0.5 + even * even)
        first = [*apart, far, weight[:, None] * weight[None]]
        if rng.random() < 0.3:
            first.append(weight[None] + 0 * far)
        values = _values(rng, first, far)
        results = [_sum(rng, v) for v in values[-3:]]
        rows = pg.sum(values[-1], axis=1)
        later = _values(rng, [*values, rows[:, None] - rows[None]], far)
        return [*results, _sum(rng, later[-1]), _sum(rng, later[-2])]

    with warnings.catch_warnings():
        # The program itself is drawn.
        warnings.simplefilter("ignore", pg.TracingWarning)
        graph = pg.trace(program, x, weight)
    return clean_up(lower(graph)), [x, weight]
