"""Loss and gradient of a small network of convolutions, written by hand in NumPy, in two ways.

Both copy the windows of an array into a matrix and multiply that; `by_rows` has a row for each
window, as most texts write it, `samples_last` has a column, with the samples innermost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = Any


def _rows(x: Array, k: int) -> Array:
    """The windows of `x`, of shape (samples, channels, height, width), in a frame of zeros."""
    edge = k // 2
    framed = np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    windows = sliding_window_view(framed, (k, k), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, x.shape[1] * k * k)


def _from_rows(rows: Array, shape: tuple[int, ...], k: int) -> Array:
    """The transpose of `_rows`."""
    n, c, h, w = shape
    edge = k // 2
    total = np.zeros((n, c, h + 2 * edge, w + 2 * edge), rows.dtype)
    windows = rows.reshape(n, h, w, c, k, k).transpose(0, 3, 4, 5, 1, 2)
    for i in range(k):
        for j in range(k):
            total[:, :, i : i + h, j : j + w] += windows[:, :, i, j]
    return total[:, :, edge : edge + h, edge : edge + w]


def _layer_by_rows(x: Array, w: Array, b: Array) -> tuple[Array, ...]:
    n, _, h, width = x.shape
    rows = _rows(x, w.shape[2])
    z = (rows @ w.reshape(len(w), -1).T + b).reshape(n, h, width, len(w)).transpose(0, 3, 1, 2)
    pairs = np.maximum(z, 0).reshape(n, len(w), h // 2, 2, width // 2, 2)
    return rows, z, pairs, pairs.max((3, 5))


def _back_by_rows(kept: tuple[Array, ...], w: Array, g: Array) -> tuple[Array, ...]:
    rows, z, pairs, top = kept
    equal = pairs == top[:, :, :, None, :, None]
    share = g / equal.sum((3, 5))
    dz = (equal * share[:, :, :, None, :, None]).reshape(z.shape) * (z > 0)
    dz = dz.transpose(0, 2, 3, 1).reshape(-1, len(w))
    return dz, (dz.T @ rows).reshape(w.shape), dz.sum(0)


def by_rows(
    x: Array, y: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array
) -> list[Array]:
    first = _layer_by_rows(x, w1, b1)
    second = _layer_by_rows(first[-1], w2, b2)
    flat = second[-1].reshape(len(x), -1)
    loss, g = _cross_entropy(flat @ w3 + b3, y)
    dz2, dw2, db2 = _back_by_rows(second, w2, (g @ w3.T).reshape(second[-1].shape))
    back = _from_rows(dz2 @ w2.reshape(len(w2), -1), first[-1].shape, w2.shape[2])
    _, dw1, db1 = _back_by_rows(first, w1, back)
    return [loss, dw1, db1, dw2, db2, flat.T @ g, g.sum(0)]


def _cross_entropy(scores: Array, y: Array) -> tuple[Array, Array]:
    shifted = scores - scores.max(1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(1, keepdims=True)
    places = np.arange(len(y))
    loss = np.mean(np.log(total[:, 0]) - shifted[places, y])
    g = powers / total
    g[places, y] -= 1
    g /= len(y)
    return loss, g


def _columns(x: Array, k: int) -> Array:
    """The windows of `x`, of shape (channels, height, width, samples), in a frame of zeros."""
    c, h, w, n = x.shape
    edge = k // 2
    framed = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    windows = np.empty((c, k, k, h, w, n), x.dtype)
    for i in range(k):
        for j in range(k):
            windows[:, i, j] = framed[:, i : i + h, j : j + w]
    return windows.reshape(c * k * k, -1)


def _from_columns(columns: Array, shape: tuple[int, ...], k: int) -> Array:
    """The transpose of `_columns`."""
    c, h, w, n = shape
    edge = k // 2
    total = np.zeros((c, h + 2 * edge, w + 2 * edge, n), columns.dtype)
    windows = columns.reshape(c, k, k, h, w, n)
    for i in range(k):
        for j in range(k):
            total[:, i : i + h, j : j + w] += windows[:, i, j]
    return total[:, edge : edge + h, edge : edge + w]


def _layer(x: Array, w: Array, b: Array) -> tuple[Array, ...]:
    _, h, width, n = x.shape
    columns = _columns(x, w.shape[2])
    z = w.reshape(len(w), -1) @ columns
    z += b[:, None]
    pairs = np.maximum(z, 0).reshape(len(w), h // 2, 2, width // 2, 2, n)
    return columns, z, pairs, pairs.max((2, 4))


def _back(kept: tuple[Array, ...], w: Array, g: Array) -> tuple[Array, ...]:
    columns, z, pairs, top = kept
    equal = pairs == top[:, :, None, :, None]
    share = g / equal.sum((2, 4))
    dz = (equal * share[:, :, None, :, None]).reshape(z.shape)
    dz *= z > 0
    return dz, (dz @ columns.T).reshape(w.shape), dz.sum(1)


def samples_last(
    x: Array, y: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array
) -> list[Array]:
    first = _layer(x.transpose(1, 2, 3, 0), w1, b1)
    second = _layer(first[-1], w2, b2)
    flat = second[-1].reshape(-1, len(x)).T
    loss, g = _cross_entropy(flat @ w3 + b3, y)
    dz2, dw2, db2 = _back(second, w2, (w3 @ g.T).reshape(second[-1].shape))
    back = _from_columns(w2.reshape(len(w2), -1).T @ dz2, first[-1].shape, w2.shape[2])
    _, dw1, db1 = _back(first, w1, back)
    return [loss, dw1, db1, dw2, db2, flat.T @ g, g.sum(0)]
