"""A block of a transformer by hand in NumPy, in arrays that are kept: loss and gradients of W11."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import BENDING, EPSILON, STEEPNESS, Array

Function = Callable[..., list[Any]]


class Normalisation:
    """Rows of mean 0 and variance 1, scaled and shifted; and the way back."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.rows, self.out = np.empty(shape, dtype), np.empty(shape, dtype)
        self.spare = np.empty(shape, dtype)
        self.factor, self.mean = np.empty((shape[0], 1), dtype), np.empty((shape[0], 1), dtype)

    def __call__(self, x: Array, scale: Array, shift: Array) -> Array:
        rows, factor = self.rows, self.factor
        np.mean(x, axis=1, keepdims=True, out=factor)
        np.subtract(x, factor, out=rows)
        np.multiply(rows, rows, out=self.spare)
        np.mean(self.spare, axis=1, keepdims=True, out=factor)
        np.add(factor, x.dtype.type(EPSILON), out=factor)
        np.sqrt(factor, out=factor)
        np.divide(1, factor, out=factor)
        np.multiply(rows, factor, out=rows)
        np.multiply(rows, scale, out=self.out)
        return np.add(self.out, shift, out=self.out)

    def back(self, g: Array, scale: Array, d_scale: Array, d_shift: Array) -> Array:
        """From the cotangent of what came out to that of what went in; `g` is overwritten."""
        rows, spare, mean = self.rows, self.spare, self.mean
        np.multiply(g, rows, out=spare)
        np.sum(spare, axis=0, out=d_scale)
        np.sum(g, axis=0, out=d_shift)
        np.multiply(g, scale, out=g)
        np.multiply(g, rows, out=spare)
        np.mean(spare, axis=1, keepdims=True, out=mean)
        np.multiply(rows, mean, out=spare)
        np.mean(g, axis=1, keepdims=True, out=mean)
        np.subtract(g, mean, out=g)
        np.subtract(g, spare, out=g)
        return np.multiply(g, self.factor, out=g)


class Gelu:
    """The approximate gelu, and its slope."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.z, self.slope = np.empty(shape, dtype), np.empty(shape, dtype)
        self.t, self.out = np.empty(shape, dtype), np.empty(shape, dtype)

    def __call__(self) -> Array:
        """Of `z`, in which the slope needs it no longer."""
        z, t, slope, out = self.z, self.t, self.slope, self.out
        np.multiply(z, z, out=t)
        np.multiply(t, 3 * STEEPNESS * BENDING, out=slope)
        np.add(slope, STEEPNESS, out=slope)
        np.multiply(t, STEEPNESS * BENDING, out=t)
        np.add(t, STEEPNESS, out=t)
        np.multiply(t, z, out=t)
        np.tanh(t, out=t)
        np.multiply(z, 0.5, out=z)
        np.multiply(slope, z, out=slope)
        np.add(t, 1, out=out)
        np.multiply(out, z, out=z)
        # The slope is (1 + t) / 2 + z / 2 (1 - t^2) u' = (1 + t) (1 / 2 + z / 2 (1 - t) u').
        np.subtract(1, t, out=t)
        np.multiply(slope, t, out=slope)
        np.add(slope, 0.5, out=slope)
        np.multiply(slope, out, out=slope)
        return z


def block(arrays: list[Array], heads: int) -> Function:
    """Mean squared error of the block and its gradients."""
    x = arrays[0]
    (rows, width), dtype = x.shape, x.dtype
    wide, deep = arrays[10].shape[1], width // heads
    factor = dtype.type(deep**-0.5)
    first, second = (Normalisation(x.shape, dtype) for _ in range(2))
    gelu = Gelu((rows, wide), dtype)
    mixed, d_mixed = (np.empty((rows, 3 * width), dtype) for _ in range(2))
    weights, d_weights = (np.empty((heads, rows, rows), dtype) for _ in range(2))
    total = np.empty((heads, rows, 1), dtype)
    read, d_read, middle, last, spare = (np.empty_like(x) for _ in range(5))
    d_wide = np.empty((rows, wide), dtype)
    gradients = [np.empty_like(a) for a in arrays[2:]]

    def by_heads(array: Array) -> Array:
        return array.reshape(rows, -1, heads, deep).transpose(1, 2, 0, 3)

    queries, keys, values = by_heads(mixed)
    d_queries, d_keys, d_values = by_heads(d_mixed)
    (answers,), (d_answers,) = by_heads(read), by_heads(d_read)

    def run(x: Array, targets: Array, *parameters: Array) -> list[Any]:
        s1, m1, w_mix, b_mix, w_read, b_read, s2, m2, w_up, b_up, w_down, b_down = parameters
        g = gradients
        h = first(x, s1, m1)
        np.dot(h, w_mix, out=mixed)
        np.add(mixed, b_mix, out=mixed)
        np.matmul(queries, keys.transpose(0, 2, 1), out=weights)
        np.multiply(weights, factor, out=weights)
        np.max(weights, axis=2, keepdims=True, out=total)
        np.subtract(weights, total, out=weights)
        np.exp(weights, out=weights)
        np.sum(weights, axis=2, keepdims=True, out=total)
        np.divide(weights, total, out=weights)
        np.matmul(weights, values, out=answers)
        np.dot(read, w_read, out=middle)
        np.add(middle, b_read, out=middle)
        np.add(middle, x, out=middle)
        h2 = second(middle, s2, m2)
        np.dot(h2, w_up, out=gelu.z)
        np.add(gelu.z, b_up, out=gelu.z)
        u = gelu()
        np.dot(u, w_down, out=last)
        np.add(last, b_down, out=last)
        np.add(last, middle, out=last)
        np.subtract(last, targets, out=last)
        flat = last.reshape(-1)
        loss = np.dot(flat, flat) / dtype.type(x.size)

        np.multiply(last, 2 / x.size, out=last)
        np.dot(u.T, last, out=g[10])
        np.sum(last, axis=0, out=g[11])
        np.dot(last, w_down.T, out=d_wide)
        np.multiply(d_wide, gelu.slope, out=d_wide)
        np.dot(h2.T, d_wide, out=g[8])
        np.sum(d_wide, axis=0, out=g[9])
        np.dot(d_wide, w_up.T, out=spare)
        np.add(last, second.back(spare, s2, g[6], g[7]), out=last)
        np.dot(read.T, last, out=g[4])
        np.sum(last, axis=0, out=g[5])
        np.dot(last, w_read.T, out=d_read)
        np.matmul(weights.transpose(0, 2, 1), d_answers, out=d_values)
        np.matmul(d_answers, values.transpose(0, 2, 1), out=d_weights)
        np.multiply(d_weights, weights, out=d_weights)
        np.sum(d_weights, axis=2, keepdims=True, out=total)
        np.multiply(weights, total, out=weights)
        np.subtract(d_weights, weights, out=d_weights)
        np.multiply(d_weights, factor, out=d_weights)
        np.matmul(d_weights, keys, out=d_queries)
        np.matmul(d_weights.transpose(0, 2, 1), queries, out=d_keys)
        np.dot(h.T, d_mixed, out=g[2])
        np.sum(d_mixed, axis=0, out=g[3])
        np.dot(d_mixed, w_mix.T, out=spare)
        first.back(spare, s1, g[0], g[1])
        return [loss, *g]

    return run
