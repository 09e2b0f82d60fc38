"""Linear algebra: Gaussian processes and mixtures, Kalman filters, small systems, with gradients.

    python benchmarks/linear_algebra.py [--short] [--only gaussian ...] [--peers PYTHON]

As loops.py, whose way of measuring this is. By hand the Gaussian process takes its inverse from
LAPACK's factor (`potri`), as fast as SciPy has it; the filter is the adjoint of each step.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from loop_models import Case, Library
from loops import Call, main

# Programs.


def gaussian(lib: Library, x: Any, y: Any, parameters: Any) -> Any:
    """Minus the logarithm of the likelihood of a Gaussian process, up to a constant."""
    np = lib.np
    width, height, noise = (np.exp(2.0 * parameters[i]) for i in range(3))
    apart = (x[:, None] - x) ** 2
    matrix = height * np.exp(-0.5 / width * apart) + noise * np.eye(len(x))
    factor = np.linalg.cholesky(matrix)
    white = lib.solve_triangular(factor, y, lower=True)
    return 0.5 * np.sum(white**2) + np.sum(np.log(np.diagonal(factor)))


def kalman(lib: Library, ys: Any, move: Any, see: Any, parameters: Any) -> Any:
    """Minus the logarithm of the likelihood of what a Kalman filter has seen, up to a constant."""
    np, (m, n) = lib.np, see.shape
    q, r = np.exp(parameters[0]) * np.eye(n), np.exp(parameters[1]) * np.eye(m)

    def step(carry: Any, y: Any) -> Any:
        mean, spread = carry
        mean, spread = move @ mean, move @ spread @ move.T + q
        seen = see @ spread
        total = seen @ see.T + r
        error = y - see @ mean
        gain = np.linalg.solve(total, seen)
        _, size = np.linalg.slogdet(total)
        less = np.linalg.solve(total, error)
        lost = 0.5 * (error @ less + size)
        return (mean + seen.T @ less, spread - seen.T @ gain), lost

    _, lost = lib.scan(step, (np.zeros(n), np.eye(n)), ys, None)
    return np.sum(lost)


def systems(lib: Library, a: Any, b: Any) -> Any:
    """The sum of squares of the solutions of many small systems."""
    return lib.np.sum(lib.np.linalg.solve(a, b) ** 2)


def mixture(lib: Library, x: Any, alphas: Any, means: Any, logs: Any, lower: Any) -> Any:
    """Minus the logarithm of the likelihood of a mixture of normal distributions.

    Of each the inverse of the covariance's root is a lower triangle, with exponentials of `logs`
    on the diagonal; it has a prior.
    """
    np, (_, d) = lib.np, x.shape
    roots = np.tril(lower, -1) + np.exp(logs)[:, :, None] * np.eye(d)
    white = (x - means[:, None]) @ np.swapaxes(roots, 1, 2)
    heights = alphas + np.sum(logs, axis=1)
    inner = heights[:, None] - 0.5 * np.sum(white**2, axis=2)
    most = np.max(inner, axis=0)
    seen = np.sum(most + np.log(np.sum(np.exp(inner - most), axis=0)))
    top = np.max(alphas)
    weight = top + np.log(np.sum(np.exp(alphas - top)))
    return len(x) * weight - seen + 0.5 * np.sum(roots**2) - np.sum(logs)


# The same by hand, with gradients.


def gaussian_by_hand(x: Any, y: Any, parameters: Any) -> list[Any]:
    width, height, noise = np.exp(2.0 * parameters)
    apart = x[:, None] - x
    apart *= apart
    kernel = np.multiply(apart, -0.5 / width)
    np.exp(kernel, out=kernel)
    kernel *= height
    matrix = kernel.copy()
    matrix.flat[:: len(x) + 1] += noise
    factor = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    weights = scipy.linalg.cho_solve((factor, True), y, check_finite=False)
    value = 0.5 * y @ weights + np.sum(np.log(np.diagonal(factor)))
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    # The upper triangle is that of the factor, which is zero.
    both = np.sum(np.diagonal(inverse)) - weights @ weights
    kernel_weights = kernel @ weights
    inverse *= kernel
    diagonal = np.sum(np.diagonal(inverse))
    by_height = 2 * np.sum(inverse) - diagonal - weights @ kernel_weights
    inverse *= apart
    kernel *= apart
    by_width = (2 * np.sum(inverse) - weights @ (kernel @ weights)) / width
    return [value, np.array([0.5 * by_width, by_height, noise * both])]


def kalman_by_hand(ys: Any, move: Any, see: Any, parameters: Any) -> list[Any]:
    m, n = see.shape
    q, r = np.exp(parameters[0]) * np.eye(n), np.exp(parameters[1]) * np.eye(m)
    mean, spread, value, kept = np.zeros(n), np.eye(n), 0.0, []
    for y in ys:
        mean, spread = move @ mean, move @ spread @ move.T + q
        seen = see @ spread
        inverse = np.linalg.inv(total := seen @ see.T + r)
        error = y - see @ mean
        less, gain = inverse @ error, inverse @ seen
        value += 0.5 * (error @ less + np.linalg.slogdet(total)[1])
        kept.append((seen, inverse, less, gain))
        mean, spread = mean + seen.T @ less, spread - seen.T @ gain
    by_q, by_r = np.zeros_like(q), np.zeros_like(r)
    mean_bar, spread_bar = np.zeros(n), np.zeros((n, n))
    for seen, inverse, less, gain in reversed(kept):
        through = seen @ mean_bar
        error_bar = less + inverse @ through
        outer = gain @ spread_bar
        turned = np.outer(error_bar, less)
        total_bar = outer @ gain.T - 0.5 * (turned + turned.T - np.outer(less, less) - inverse)
        seen_bar = np.outer(less, mean_bar) - 2 * outer + total_bar @ see
        by_r += total_bar
        mean_bar = mean_bar - see.T @ error_bar
        spread_bar = spread_bar + see.T @ seen_bar
        spread_bar = 0.5 * (spread_bar + spread_bar.T)
        by_q += spread_bar
        mean_bar, spread_bar = move.T @ mean_bar, move.T @ spread_bar @ move
    return [value, np.array([np.sum(by_q * q), np.sum(by_r * r)])]


def systems_by_hand(a: Any, b: Any) -> list[Any]:
    x = np.linalg.solve(a, b)
    b_bar = np.linalg.solve(np.swapaxes(a, -1, -2), 2 * x)
    return [np.sum(x * x), -b_bar @ np.swapaxes(x, -1, -2), b_bar]


def mixture_by_hand(x: Any, alphas: Any, means: Any, logs: Any, lower: Any) -> list[Any]:
    n, d = x.shape
    places = np.arange(d)
    scales = np.exp(logs)
    roots = np.tril(lower, -1)
    roots[:, places, places] = scales
    # Samples in the last axis: sums over the others are of whole rows.
    apart = np.ascontiguousarray(x.T) - means[:, :, None]
    white = roots @ apart
    inner = np.sum(white * white, axis=1)
    inner *= -0.5
    inner += (alphas + np.sum(logs, axis=1))[:, None]
    most = np.max(inner, axis=0)
    inner -= most
    np.exp(inner, out=inner)
    total = np.sum(inner, axis=0)
    seen = np.sum(most) + np.sum(np.log(total))
    inner /= total
    shares = np.exp(alphas - np.max(alphas))
    whole = np.sum(shares)
    weight = np.max(alphas) + np.log(whole)
    value = n * weight - seen + 0.5 * np.sum(roots**2) - np.sum(logs)
    counts = np.sum(inner, axis=1)
    white *= inner[:, None]
    roots_bar = white @ np.swapaxes(apart, 1, 2) + roots
    means_bar = -(np.sum(white, axis=2)[:, None] @ roots)[:, 0]
    logs_bar = roots_bar[:, places, places] * scales - counts[:, None] - 1.0
    return [value, n / whole * shares - counts, means_bar, logs_bar, np.tril(roots_bar, -1)]


BY_HAND = {"gaussian": gaussian_by_hand, "kalman": kalman_by_hand, "systems": systems_by_hand,
           "mixture": mixture_by_hand}  # fmt: skip


def with_hand(case: Case) -> Call | None:
    found = BY_HAND.get(case.name.partition(" ")[0])
    return None if found is None else partial(found, *case.arrays)


def cases(short: bool) -> list[Case]:
    rng = np.random.default_rng(0)
    found = []
    for n in (40,) if short else (500, 2000):
        x = np.sort(rng.uniform(0, 10, n))
        y = np.sin(x) + 0.1 * rng.normal(size=n)
        parameters = np.array([0.1, 0.2, -1.5])
        found.append(Case(f"gaussian {n}", gaussian, [x, y, parameters], (2,), 1e-7))
    steps, count = (5, 10) if short else (200, 1000)
    move = np.eye(4) + 0.1 * np.eye(4, k=2)
    see = np.eye(2, 4)
    ys = np.cumsum(rng.normal(size=(steps, 2)), 0)
    found.append(Case("kalman", kalman, [ys, move, see, np.array([-2.3, -0.7])], (3,), 1e-7))
    a = rng.normal(size=(count, 8, 8)) + 4 * np.eye(8)
    found.append(Case("systems", systems, [a, rng.normal(size=(count, 8, 1))], (0, 1)))
    count, k, d = (50, 3, 2) if short else (1000, 25, 10)
    found.append(
        Case(
            f"mixture {count}",
            mixture,
            [rng.normal(size=(count, d)), rng.normal(size=k), rng.normal(size=(k, d)),
             0.1 * rng.normal(size=(k, d)), 0.3 * rng.normal(size=(k, d, d))],
            (1, 2, 3, 4),
            1e-7,
        )
    )  # fmt: skip
    return found


if __name__ == "__main__":
    main(__file__, __doc__, cases, with_hand)
