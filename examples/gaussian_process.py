"""
Fit a Gaussian process with SciPy
=================================

Find the length scale, the amplitude and the noise of a Gaussian process. Likelihood and
prediction are NumPy functions. SciPy minimizes the likelihood by its three parameters with the
exact gradient: one kernel computes both from one Cholesky factor, as in algorithm 2.1 of
Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006. A picture is drawn if
matplotlib is installed.
"""

import importlib
import importlib.util

import numpy as np
from scipy import optimize

import primgraph as pg

N, LENGTH, SIZE, NOISE = 150, 0.6, 1.5, 0.2


def covariance(x, z, length, size):
    """How much values at `x` and at `z` vary together: less with the distance."""
    return size**2 * np.exp(-0.5 * (x[:, None] - z) ** 2 / length**2)


def negative_log_likelihood(parameters, x, y):
    """Of `y` at places `x`; parameters are logarithms, so that all of them may be tried."""
    length, size, noise = np.exp(parameters)
    matrix = covariance(x, x, length, size) + noise**2 * np.eye(len(x))
    factor = np.linalg.cholesky(matrix)
    whitened = np.linalg.solve(factor, y)
    constant = 0.5 * len(x) * np.log(2 * np.pi)
    return 0.5 * np.sum(whitened**2) + np.sum(np.log(np.diag(factor))) + constant


def predicted(parameters, x, y, at):
    """The mean and the standard deviation of values at other places, without noise."""
    length, size, noise = np.exp(parameters)
    factor = np.linalg.cholesky(covariance(x, x, length, size) + noise**2 * np.eye(len(x)))
    across = np.linalg.solve(factor, covariance(x, at, length, size))
    mean = across.T @ np.linalg.solve(factor, y)
    return mean, np.sqrt(size**2 - np.sum(across**2, axis=0))


def observed(rng):
    """Places, a function drawn from the process, and what is seen of it."""
    x = np.sort(rng.uniform(0.0, 10.0, N))
    grid = covariance(x, x, LENGTH, SIZE) + 1e-9 * np.eye(N)
    truth = np.linalg.cholesky(grid) @ rng.standard_normal(N)
    return x, truth, truth + NOISE * rng.standard_normal(N)


def draw(x, y, at, mean, spread):
    """What was seen and what is predicted, if matplotlib is there."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed (pip install 'primgraph[plot]')")
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, axes = plt.subplots(figsize=(8, 4))
    axes.fill_between(at, mean - 2 * spread, mean + 2 * spread, alpha=0.3)
    axes.plot(at, mean)
    axes.plot(x, y, ".", markersize=3)
    figure.savefig("gaussian_process.png", dpi=120)
    print("drawn into gaussian_process.png")


def main():
    x, truth, y = observed(np.random.default_rng(0))
    fit = pg.jit(pg.value_and_grad(negative_log_likelihood))
    found = optimize.minimize(fit, np.log([1.0, 1.0, 1.0]), (x, y), method="BFGS", jac=True)
    assert found.success or found.status == 2, found.message
    for name, value, true in zip(
        ("length", "size", "noise"), np.exp(found.x), (LENGTH, SIZE, NOISE), strict=True
    ):
        print(f"{name:7s} {value:.3f}, drawn with {true}")
    steepest = np.max(np.abs(found.jac))
    print(f"{found.nfev} calls, log likelihood {-found.fun:.3f}, |gradient| {steepest:.1e}")
    assert found.fun <= fit(np.log([LENGTH, SIZE, NOISE]), x, y)[0]
    predict = pg.jit(predicted)
    mean, spread = predict(found.x, x, y, x)
    inside = np.mean(np.abs(mean - truth) < 2 * spread)
    print(f"{100 * inside:.0f} % of the values lie within two standard deviations")
    assert inside > 0.85
    at = np.linspace(0.0, 10.0, 400)
    draw(x, y, at, *predict(found.x, x, y, at))


if __name__ == "__main__":
    main()
