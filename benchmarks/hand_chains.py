"""The elementwise programs of hand.py, and how large arrays go through in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from cases import ARITHMETIC, MIXED, Array, Case

Function = Callable[..., list[Array]]
Built = tuple[Function, list[Array]]

# From this size on, arrays go through in blocks.
LARGE = 100_000


def blocks(count: int, size: int) -> list[slice]:
    """The positions up to `count` in slices of `size`."""
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def shared(work: Callable[[int, Sequence[slice]], Any], parts: Sequence[slice]) -> Function:
    """Do `work(0, first half)` and `work(1, second half)` of the slices, in a thread each."""
    pool, middle = ThreadPoolExecutor(1), len(parts) // 2

    def run(*_: Array) -> list[Any]:
        other = pool.submit(work, 1, parts[middle:])
        return [work(0, parts[:middle]), other.result()]

    run.blas_threads = 1  # type: ignore[attr-defined]
    return run


def tanh_polynomial(order: int) -> Array:
    """Coefficients of the derivative of that order of tanh as a polynomial in tanh."""
    p = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        p = p.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
    return p.coef


def _horner(coefficients: Sequence[float], odd: bool) -> Callable[..., None]:
    """Evaluate a polynomial in the square of tanh, times tanh if it is odd."""
    first, *middle, last = coefficients if len(coefficients) > 1 else (0.0, coefficients[0])
    multiply, add = np.multiply, np.add

    def evaluate(x: Array, out: Array, t: Array, s: Array) -> None:
        np.tanh(x, t)
        multiply(t, t, s)
        multiply(s, last, out)
        for c in reversed(middle):
            add(out, c, out)
            multiply(out, s, out)
        add(out, first, out)
        if odd:
            multiply(out, t, out)

    return evaluate


def tanh(case: Case, variant: str) -> Built:
    (x,) = case.arrays()
    odd = case["order"] % 2 == 0
    coefficients = tanh_polynomial(case["order"])[odd::2].tolist()
    if variant == "scalar":
        return _tanh_of_one(coefficients, odd), [x]
    evaluate = _horner(coefficients, odd)
    out = np.empty_like(x)
    if variant == "polynomial":
        t, s = np.empty_like(x), np.empty_like(x)

        def whole(x: Array) -> list[Array]:
            evaluate(x, out, t, s)
            return [out]

        return whole, [x]
    return _over_blocks(lambda b, t, s: evaluate(x[b], out[b], t, s), [out], x, 2, 8192, variant)


def _tanh_of_one(coefficients: list[float], odd: bool) -> Function:
    """The same on a Python float."""
    *rest, last = coefficients
    rest.reverse()
    hyperbolic, array = math.tanh, np.array

    def scalar(x: Array) -> list[Array]:
        t = hyperbolic(x.item())
        s = t * t
        y = last
        for c in rest:
            y = y * s + c
        return [array([y * t if odd else y])]

    return scalar


def _over_blocks(
    work: Callable[..., Any], out: list[Array], x: Array, buffers: int, size: int, variant: str
) -> Built:
    """Call `work(block, *buffers)` for each block; if it answers with parts of a sum, add them."""
    parts = blocks(x.size, size)
    spaces = [[np.empty(size) for _ in range(buffers)] for _ in range(2)]

    def some(i: int, parts: Sequence[slice]) -> float:
        total = 0.0
        for b in parts:
            width = b.stop - b.start
            space = spaces[i] if width == size else [s[:width] for s in spaces[i]]
            total += work(b, *space) or 0.0
        return total

    halves = shared(some, parts)

    def run(x: Array) -> list[Array]:
        total = sum(halves()) if variant == "threads" else some(0, parts)
        return out if len(out) == 1 else [np.float64(total), out[1]]

    if variant == "threads":
        run.blas_threads = 1  # type: ignore[attr-defined]
    return run, [x]


def chain(case: Case, variant: str) -> Built:
    (x,) = case.arrays()
    size = min(x.size, 32768 if variant == "threads" else 8192)
    gradient = np.empty_like(x)
    work = _mixed if case["kind"] == "mixed" else _arithmetic
    out = [np.float64(0.0), gradient]
    return _over_blocks(lambda b, *w: work(x[b], gradient[b], *w), out, x, 9, size, variant)


def _mixed(x: Array, gradient: Array, *space: Array) -> float:
    """The sum of the chain over one block, and its gradient."""
    multiply, add, subtract = np.multiply, np.add, np.subtract
    kept, v = [space[:4], space[4:8]], x
    for (a, b, c, d), (p, q, t, o) in zip(MIXED, kept, strict=True):
        multiply(v, a, p)
        np.sin(p, q)
        add(q, x, q)
        multiply(q, q, t)
        multiply(t, b, t)
        np.tanh(t, t)
        multiply(t, x, o)
        subtract(o, c, o)
        np.exp(o, o)
        multiply(o, d, o)
        v = o
    total = float(v.sum())
    w, spare = v, gradient
    for (a, b, _, _), (p, q, t, _) in zip(reversed(MIXED), reversed(kept), strict=True):
        multiply(w, t, spare)
        if spare is not gradient:
            add(gradient, spare, gradient)
        spare = space[8]
        multiply(t, t, t)
        subtract(1.0, t, t)
        multiply(w, x, w)
        multiply(w, t, w)
        multiply(w, q, w)
        multiply(w, 2 * b, w)
        add(gradient, w, gradient)
        np.cos(p, p)
        multiply(w, p, w)
        multiply(w, a, w)
        if q is kept[1][1]:
            multiply(w, kept[0][3], w)
    add(gradient, w, gradient)
    return total


def _arithmetic(x: Array, gradient: Array, *space: Array) -> float:
    """The same for the chain without transcendental functions."""
    multiply, add, subtract = np.multiply, np.add, np.subtract
    kept, v = [space[:3], space[3:6]], x
    for i, ((a, b, c, d, e), (p, q, r)) in enumerate(zip(ARITHMETIC, kept, strict=True)):
        multiply(v, a, p)
        add(p, x, p)
        multiply(p, p, q)
        multiply(q, b, q)
        subtract(q, x, q)
        multiply(q, x, r)
        add(r, c, r)
        if i == 0:
            v = space[6]
            multiply(r, r, v)
            multiply(v, d, v)
            add(v, e, v)
    # The last value is only needed for its sum.
    total = d * float(r @ r) + e * x.size
    w = None
    for (a, b, _, d, _), (p, q, r) in zip(reversed(ARITHMETIC), reversed(kept), strict=True):
        multiply(r, 2 * d, r)
        if w is None:
            multiply(r, q, gradient)
        else:
            multiply(r, w, r)
            multiply(r, q, q)
            add(gradient, q, gradient)
        multiply(r, x, r)
        subtract(gradient, r, gradient)
        multiply(r, p, r)
        multiply(r, 2 * b, r)
        add(gradient, r, gradient)
        multiply(r, a, r)
        w = r
    add(gradient, w, gradient)
    return total
