"""
Fit an orbit: gradients through an ODE solver
=============================================

Find the mass of a star and the orbit of its planet from a hundred observed positions. The
planet moves in the plane, attracted by its star and slowed down by thin gas::

    r'' = -mu r / |r|^3 - drag r'

Unknown are the first position and velocity, mu and drag: six numbers. The orbit takes 1,000
steps by the Runge-Kutta rule of fourth order, in one loop, pg.scan. The gradient of the squared
distances to the observations goes through all steps, and BFGS (Nocedal and Wright, Numerical
Optimization, 2006, section 6.1) follows it.

PRIMGRAPH_EXAMPLE_STEPS limits the number of BFGS steps. A picture is written beside this file
if matplotlib is installed.
"""

import importlib.util
import os
import time
from pathlib import Path

import numpy as np

import primgraph as pg

DT, STEPS, EVERY = 0.015, 1000, 10
NOISE = 0.01
TRUE = {"r": np.array([1.0, 0.0]), "v": np.array([0.1, 1.1]), "mu": 1.0, "drag": 0.01}
GUESS = {"r": np.array([1.1, 0.0]), "v": np.array([0.0, 1.0]), "mu": 1.05, "drag": 0.0}
MOST = int(os.environ.get("PRIMGRAPH_EXAMPLE_STEPS", "100"))


def orbit(params):
    """The places after each step."""

    def slope(r, v):
        return v, -params["mu"] * r / pg.sum(r * r) ** 1.5 - params["drag"] * v

    def step(state, _):
        r, v = state
        r1, v1 = slope(r, v)
        r2, v2 = slope(r + DT / 2 * r1, v + DT / 2 * v1)
        r3, v3 = slope(r + DT / 2 * r2, v + DT / 2 * v2)
        r4, v4 = slope(r + DT * r3, v + DT * v3)
        r = r + DT / 6 * (r1 + 2 * r2 + 2 * r3 + r4)
        v = v + DT / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        return (r, v), r

    return pg.scan(step, (params["r"], params["v"]), length=STEPS)[1]


def misfit(params, seen):
    """Half the mean squared distance, in units of the noise."""
    return pg.mean(((orbit(params)[EVERY - 1 :: EVERY] - seen) / NOISE) ** 2) / 2


def as_params(x):
    return {"r": x[0:2], "v": x[2:4], "mu": x[4], "drag": x[5]}


def as_vector(params):
    return np.concatenate([params["r"], params["v"], [params["mu"], params["drag"]]])


def minimise(function, x):
    """BFGS with halved steps, until nothing goes down; `function` gives the gradient, too."""
    value, gradient = function(x)
    inverse = 0.01 * np.eye(len(x)) / np.linalg.norm(gradient)
    for step in range(MOST):
        direction = -inverse @ gradient
        length, slope = 1.0, gradient @ direction
        while True:
            after, slopes = function(x + length * direction)
            if after <= value + 1e-4 * length * slope or length < 1e-10:
                break
            length /= 2
        moved, change = length * direction, slopes - gradient
        if not after < value:
            break
        if step % 10 == 0:
            print(
                f"step {step:3d}   misfit {after:12.4f}   |gradient| {np.linalg.norm(slopes):.1e}"
            )
        done = value - after < 1e-9 * value
        x, value, gradient = x + moved, after, slopes
        if done:
            break
        curved = moved @ change
        if curved > 0:
            if step == 0:
                inverse = curved / (change @ change) * np.eye(len(x))
            side = np.eye(len(x)) - np.outer(moved, change) / curved
            inverse = side @ inverse @ side.T + np.outer(moved, moved) / curved
    print(f"step {step:3d}   misfit {value:12.4f}   |gradient| {np.linalg.norm(gradient):.1e}")
    return x


def draw(path, seen, found):
    """What was seen, and the orbit that was found, if matplotlib is there."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed (pip install 'primgraph[plot]')")
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, ax = plt.subplots(figsize=(6, 6), layout="constrained")
    ax.plot(*found.T, label="found")
    ax.plot(*seen.T, ".", label="seen")
    ax.plot(0, 0, "*", markersize=12, color="tab:orange")
    ax.set(aspect="equal", title="an orbit, from a hundred places")
    ax.legend()
    figure.savefig(path, dpi=120)
    print(f"picture:            {path}")


def main():
    rng = np.random.default_rng(0)
    seen = pg.jit(orbit)(TRUE)[EVERY - 1 :: EVERY]
    seen = seen + NOISE * rng.standard_normal(seen.shape)

    begun = time.perf_counter()
    both = pg.jit(pg.value_and_grad(lambda x: misfit(as_params(x), seen)))
    both(as_vector(GUESS))
    print(f"built and compiled in {time.perf_counter() - begun:.2f} s")
    begun = time.perf_counter()
    both(as_vector(GUESS))
    print(f"a gradient through {STEPS} steps takes {1e3 * (time.perf_counter() - begun):.1f} ms")

    found = minimise(both, as_vector(GUESS))
    if np.linalg.norm(both(found)[1]) > 1:
        print(f"no minimum in {MOST} steps, and so no standard deviations")
        return
    # The inverse of the Hessian at the minimum is the covariance of what was found.
    hessian = pg.jit(pg.hessian(lambda x: misfit(as_params(x), seen)))(found) * seen.size
    sigma = np.sqrt(np.diag(np.linalg.inv(hessian)))
    names = ["x", "y", "x'", "y'", "mu", "drag"]
    for name, value, spread, true in zip(names, found, sigma, as_vector(TRUE), strict=True):
        print(f"{name:>5} = {value:9.6f} +- {spread:.6f}   in truth {true:9.6f}")
    off = np.max(np.abs(found - as_vector(TRUE)) / sigma)
    print(f"largest error: {off:.1f} standard deviations, of {np.max(sigma):.1e} at most")
    assert off < 4
    assert np.max(sigma) < 5e-3
    draw(Path(__file__).parent / "orbit.png", seen, pg.jit(orbit)(as_params(found)))


if __name__ == "__main__":
    main()
