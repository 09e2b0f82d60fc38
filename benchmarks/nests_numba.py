"""Stencils of nests.py as loops that numba compiles; neighbours are found by conditions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]


@numba.njit(fastmath=True)
def gray_scott(u: Array, v: Array, gu: Array, gv: Array) -> float:
    n, total = len(u), 0.0
    a, b = np.empty_like(u), np.empty_like(v)
    for i in range(n):
        up, down = i - 1 if i else n - 1, i + 1 if i + 1 < n else 0
        for j in range(n):
            l, r = j - 1 if j else n - 1, j + 1 if j + 1 < n else 0  # noqa: E741
            uvv = u[i, j] * v[i, j] * v[i, j]
            far = u[up, j] + u[down, j] + u[i, l] + u[i, r] - 4 * u[i, j]
            x = u[i, j] + 0.1 * (0.16 * far - uvv + 0.035 * (1 - u[i, j]))
            far = v[up, j] + v[down, j] + v[i, l] + v[i, r] - 4 * v[i, j]
            y = v[i, j] + 0.1 * (0.08 * far + uvv - 0.1 * v[i, j])
            total += x * x + y * y
            a[i, j], b[i, j] = 2 * x, 2 * y
    for i in range(n):
        up, down = i - 1 if i else n - 1, i + 1 if i + 1 < n else 0
        for j in range(n):
            l, r = j - 1 if j else n - 1, j + 1 if j + 1 < n else 0  # noqa: E741
            c = 0.1 * (b[i, j] - a[i, j])
            far = a[up, j] + a[down, j] + a[i, l] + a[i, r] - 4 * a[i, j]
            gu[i, j] = 0.9965 * a[i, j] + 0.016 * far + c * v[i, j] * v[i, j]
            far = b[up, j] + b[down, j] + b[i, l] + b[i, r] - 4 * b[i, j]
            gv[i, j] = 0.99 * b[i, j] + 0.008 * far + 2 * c * u[i, j] * v[i, j]
    return total


@numba.njit(fastmath=True)
def wave(u: Array, before: Array, gu: Array, gb: Array) -> float:
    n, total = len(u), 0.0
    gb[0], gb[-1], gb[:, 0], gb[:, -1] = 0.0, 0.0, 0.0, 0.0
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            near = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
            new = 2 * u[i, j] - before[i, j] + 0.1 * near
            total += new * new
            gb[i, j] = -2 * new
    for i in range(n):
        gu[i, 0], gu[i, n - 1] = -0.1 * gb[i, 1], -0.1 * gb[i, n - 2]
        gu[0, i], gu[n - 1, i] = -0.1 * gb[1, i], -0.1 * gb[n - 2, i]
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            near = gb[i - 1, j] + gb[i + 1, j] + gb[i, j - 1] + gb[i, j + 1]
            gu[i, j] = -1.6 * gb[i, j] - 0.1 * near
    return total


@numba.njit(fastmath=True)
def burgers(u: Array, g: Array) -> float:
    n, total = len(u), 0.0
    flux, new = np.empty_like(u), np.empty_like(u)
    for j in range(n):
        r = j + 1 if j + 1 < n else 0
        most = max(abs(u[j]), abs(u[r]))
        flux[j] = 0.25 * (u[j] * u[j] + u[r] * u[r]) - 0.5 * most * (u[r] - u[j])
    for j in range(n):
        y = u[j] - 0.1 * (flux[j] - flux[j - 1 if j else n - 1])
        total += y * y
        new[j] = 2 * y
    for j in range(n):
        r = j + 1 if j + 1 < n else 0
        f, x, y = -0.1 * (new[j] - new[r]), abs(u[j]), abs(u[r])
        by, most = -0.5 * (u[r] - u[j]) * f, max(x, y)
        g[j] = new[j] + f * 0.5 * (u[j] + most) + (by * np.sign(u[j]) if x > y else 0.0)
        flux[j] = f * 0.5 * (u[r] - most) + (by * np.sign(u[r]) if y > x else 0.0)
    for j in range(n):
        g[j] += flux[j - 1 if j else n - 1]
    return total
