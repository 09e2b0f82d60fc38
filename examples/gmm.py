"""
Gaussian mixture with L-BFGS
============================

Fit a mixture of Gaussians through SciPy, with value and gradient in one kernel. The function is
the mixture benchmark of ADBench (F. Srajer, Z. Kukelova and A. Fitzgibbon, A benchmark of
selected algorithmic differentiation tools on some problems in computer vision and machine
learning, 2018): the log-likelihood of points x[1], ..., x[n] under K Gaussians,

::

    sum_i log sum_k exp(alpha_k + sum(q_k) - |Q_k (x_i - mu_k)|^2 / 2) - n log sum_k exp(alpha_k)
        - n d log(2 pi) / 2,

where Q[k] is lower triangular with diagonal exp(q[k]), so that Q[k].T Q[k] is the inverse
covariance. A term for a Wishart prior is added: the benchmark adds its negative logarithm. The
loss that is fitted has the other sign, the posterior, in which the prior keeps Q[k] small.

::

    python examples/gmm.py [FILE]

FILE is an input of the benchmark; without one, a small problem is generated. The fit needs
SciPy: pip install 'primgraph[scipy]'.
"""

import importlib
import importlib.util
import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# The matrices are small: threads inside a product would wait for each other more than they work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import primgraph as pg

ITERATIONS = 20


@dataclass
class Problem:
    """Weights (K,), means (K, d), factors (K, d (d + 1) / 2) to start from; points (n, d).

    A row of `icf` has the logarithms of the diagonal of Q, then what lies below it, column by
    column. `gamma` and `m` are the parameters of the prior.
    """

    alphas: np.ndarray
    means: np.ndarray
    icf: np.ndarray
    points: np.ndarray
    gamma: float
    m: int


def read(path):
    """The problem in a file of the benchmark: d, K, n, then the arrays, gamma and m.

    A file may have one point that stands for all n.
    """
    words = Path(path).read_text(encoding="ascii").split()
    d, k, n = map(int, words[:3])
    numbers = np.array(words[3:], float)
    sizes = [k, k * d, k * (d * (d + 1) // 2)]
    rest = numbers.size - sum(sizes) - 2
    if rest not in (d, n * d):
        raise ValueError(f"{path}: {rest} coordinates are left for {n} points of {d} each")
    alphas, means, icf, points, prior = np.split(numbers, np.cumsum([*sizes, rest]))
    points = np.broadcast_to(points.reshape(-1, d), (n, d))
    gamma, m = prior
    return Problem(alphas, means.reshape(k, d), icf.reshape(k, -1), points, gamma, int(m))


def made_up(d=3, k=4, n=400, seed=0):
    """Points around `k` centres, and a start that knows nothing of them."""
    rng = np.random.default_rng(seed)
    centres = 3 * rng.standard_normal((k, d))
    points = centres[rng.integers(k, size=n)] + 0.5 * rng.standard_normal((n, d))
    icf = 0.1 * rng.standard_normal((k, d * (d + 1) // 2))
    return Problem(rng.standard_normal(k), rng.standard_normal((k, d)), icf, points, 1.0, 0)


def factors(icf, d):
    """The matrices Q, shape (K, d, d), from the rows of `icf`."""
    columns, rows = np.triu_indices(d, 1)
    # Where each element of Q stands in a row of diagonal, lower part and one zero.
    place = np.full((d, d), d * (d + 1) // 2)
    place[range(d), range(d)] = np.arange(d)
    place[rows, columns] = np.arange(d, d * (d + 1) // 2)
    zero = pg.zeros((icf.shape[0], 1))
    return pg.take(pg.concatenate([pg.exp(icf[:, :d]), icf[:, d:], zero], axis=1), place, axis=1)


def log_likelihood(alphas, means, icf, points):
    """The sum over all points of the logarithm of the density of the mixture."""
    n, d = points.shape
    centred = points - means[:, None, :]
    scaled = centred @ pg.swapaxes(factors(icf, d), 1, 2)
    height = alphas + pg.sum(icf[:, :d], axis=1)
    exponents = height[:, None] - 0.5 * pg.sum(scaled**2, axis=2)
    inner = pg.sum(pg.logsumexp(exponents, axis=0)) - n * pg.logsumexp(alphas)
    return inner - 0.5 * n * d * math.log(2 * math.pi)


def prior_term(icf, d, gamma, m):
    """Minus the logarithm of the Wishart density of all Q, which holds large Q back."""
    degrees = d + m + 1
    norm = degrees * d * (math.log(gamma) - 0.5 * math.log(2))
    norm -= 0.25 * d * (d - 1) * math.log(math.pi)
    norm -= sum(math.lgamma(0.5 * (degrees - j)) for j in range(d))
    logs, lower = icf[:, :d], icf[:, d:]
    squares = pg.sum(pg.exp(2 * logs)) + pg.sum(lower**2)
    return 0.5 * gamma**2 * squares - m * pg.sum(logs) - icf.shape[0] * norm


def build(problem):
    """The benchmark's function and the loss to be fitted, for SciPy."""
    with pg.Program("gmm") as program:
        alphas, means, icf = (
            pg.create_parameter(a.shape, "float64", name, pg.initializers.Assign(a))
            for name, a in (
                ("alphas", problem.alphas),
                ("means", problem.means),
                ("icf", problem.icf),
            )
        )
        points = pg.data("points", problem.points.shape, "float64")
        likelihood = log_likelihood(alphas, means, icf, points)
        prior = prior_term(icf, points.shape[1], problem.gamma, problem.m)
        value, loss = likelihood + prior, prior - likelihood
    feed = {"points": problem.points}
    chosen = [alphas, means, icf]
    return (pg.scipy_objective(program, f, chosen, feed) for f in (value, loss))


def worst_slope(objective, theta, rng, entries=10):
    """The largest relative error of the gradient against central differences, at some entries."""
    gradient = objective.jac(theta)
    worst = 0.0
    for i in rng.choice(theta.size, min(entries, theta.size), replace=False):
        step = np.zeros_like(theta)
        step[i] = 1e-5 * max(1.0, abs(theta[i]))
        slope = (objective.fun(theta + step) - objective.fun(theta - step)) / (2 * step[i])
        worst = max(worst, abs(gradient[i] - slope) / max(1.0, abs(slope)))
    return worst


class Timed:
    """A kernel that adds up the time spent in it."""

    def __init__(self, kernel):
        self.kernel, self.seconds = kernel, 0.0

    def __call__(self, *arrays):
        begun = time.perf_counter()
        results = self.kernel(*arrays)
        self.seconds += time.perf_counter() - begun
        return results


def fit(objective):
    """Some iterations of L-BFGS: what SciPy found, seconds an evaluation, share of the kernel."""
    minimize = importlib.import_module("scipy.optimize").minimize
    kernel = objective.kernel
    # The first iteration, made twice, takes what SciPy does once out of the time.
    for iterations in (1, ITERATIONS):
        objective.kernel = Timed(kernel)
        begun = time.perf_counter()
        found = minimize(
            objective.fun_and_jac,
            objective.x0,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations},
        )
        seconds = time.perf_counter() - begun
    return found, seconds / found.nfev, objective.kernel.seconds / seconds


def main():
    problem = read(sys.argv[1]) if len(sys.argv) > 1 else made_up()
    (n, d), k = problem.points.shape, problem.alphas.size
    value, loss = build(problem)
    theta = value.x0
    print(f"{n} points in {d} dimensions, {k} components, {theta.size} parameters")

    begun = time.perf_counter()
    at_start = value.fun(theta)
    print(f"compiled and evaluated in {time.perf_counter() - begun:.2f} s")
    print(f"the benchmark's function:  {at_start:.10g}")
    error = worst_slope(value, theta, np.random.default_rng(0))
    print(f"gradient and differences:  {error:.1e} apart at most, relative")
    assert error < 1e-5

    if importlib.util.find_spec("scipy") is None:
        print("no fit: SciPy is not installed (pip install 'primgraph[test]')")
        return
    before = loss.fun(theta)
    found, seconds, inside = fit(loss)
    print(f"L-BFGS, {found.nit} iterations:     {before:.10g} became {found.fun:.10g}")
    assert found.fun < before
    loss.assign(found.x)
    print(f"time per evaluation:       {1e3 * seconds:.3f} ms, value and gradient")
    print(f"spent outside the kernel:  {100 * (1 - inside):.0f} %")


if __name__ == "__main__":
    main()
