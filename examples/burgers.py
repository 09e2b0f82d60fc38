"""
Physics-informed network (PINN) for Burgers' equation
=====================================================

A tanh network u(t, x) is trained to satisfy

::

    u_t + u u_x = (0.03 / pi) u_xx   for -1 <= x <= 1, 0 <= t <= 1,
    u(0, x) = -sin(pi x),   u(t, -1) = u(t, 1) = 0.

Its derivatives u_t, u_x and u_xx are taken by forward mode, the gradient of the loss for all
weights by reverse mode through them. One kernel computes loss and gradients; Adam is written
below. The result is compared with the exact solution (Cole-Hopf).

PRIMGRAPH_EXAMPLE_STEPS sets the number of steps. The kernel's source is written beside this
file. With matplotlib, so is a picture: prediction, exact solution and their difference.
"""

import importlib.util
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

# The matrices are small: threads inside a product would wait for each other more than they work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import primgraph as pg

VISCOSITY = 0.03 / np.pi
LAYERS = (2, 20, 20, 20, 20, 1)
STEPS = int(os.environ.get("PRIMGRAPH_EXAMPLE_STEPS", "6000"))
INSIDE, EDGE = 2000, 200
RATE, HALVED_EVERY = 5e-3, max(5 * STEPS // 12, 1)


def network(weights, x, t):
    """The value of u at points given by columns `x` and `t`; `weights` alternate with biases."""
    h = pg.concatenate([x, t], axis=1)
    for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        h = pg.tanh(h @ w + b)
    return h @ weights[-2] + weights[-1]


def build():
    """The training program: loss and its gradient for each weight; and the prediction."""
    with pg.Program("burgers") as program:
        weights = []
        for i, (n, m) in enumerate(pairwise(LAYERS)):
            weights += [pg.data(f"w{i}", (n, m)), pg.data(f"b{i}", (m,))]

        x, t = pg.data("x", (INSIDE, 1)), pg.data("t", (INSIDE, 1))
        u = network(weights, x, t)
        u_t = pg.forward_grad(u, t)
        u_x = pg.forward_grad(u, x)
        u_xx = pg.forward_grad(u_x, x)
        residual = u_t + u * u_x - VISCOSITY * u_xx

        x_edge, t_edge = pg.data("x_edge", (EDGE, 1)), pg.data("t_edge", (EDGE, 1))
        wrong = network(weights, x_edge, t_edge) - pg.data("u_edge", (EDGE, 1))

        loss = pg.mean(residual**2) + pg.mean(wrong**2)
        gradients = pg.grad(loss, weights)
    return program, loss, gradients


def training_points(rng):
    """Points inside, and points of the initial line and the two walls with u known there."""
    x = rng.uniform(-1, 1, (INSIDE, 1))
    t = rng.uniform(0, 1, (INSIDE, 1))
    half = EDGE // 2
    start = np.linspace(-1, 1, half)[:, None]
    walls = np.where(np.arange(half) % 2, 1.0, -1.0)[:, None]
    return {
        "x": x,
        "t": t,
        "x_edge": np.concatenate([start, walls]),
        "t_edge": np.concatenate([np.zeros((half, 1)), np.linspace(0, 1, half)[:, None]]),
        "u_edge": np.concatenate([-np.sin(np.pi * start), np.zeros((half, 1))]),
    }


def initial_weights(rng):
    """Weights by Glorot and Bengio (2010), biases zero."""
    feed = {}
    for i, (n, m) in enumerate(pairwise(LAYERS)):
        feed[f"w{i}"] = rng.standard_normal((n, m)) * np.sqrt(2 / (n + m))
        feed[f"b{i}"] = np.zeros(m)
    return feed


def train(kernel, weights, points):
    """Adam (Kingma and Ba, 2015) on `weights`, in place; returns seconds a step."""
    names = list(weights)
    sizes = np.cumsum([w.size for w in weights.values()])
    theta = np.concatenate([w.ravel() for w in weights.values()])
    parts = np.split(theta, sizes[:-1])
    feed = {n: part.reshape(weights[n].shape) for n, part in zip(names, parts, strict=True)}
    feed |= points
    arrays = [feed[v.hint] for v in kernel.graph.inputs]
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    begun = time.perf_counter()
    for step in range(1, STEPS + 1):
        loss, *gradients = kernel(*arrays)
        slope = np.concatenate([g.ravel() for g in gradients])
        mean += 0.1 * (slope - mean)
        square += 0.001 * (slope * slope - square)
        rate = RATE * 0.5 ** (step // HALVED_EVERY)
        rate *= np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        # The arrays of the feed are views of theta, so that this updates them all.
        theta -= rate * mean / (np.sqrt(square) + 1e-8)
        if step % 250 == 0 or step == STEPS:
            seconds = time.perf_counter() - begun
            end = "\n" if step == STEPS or not sys.stdout.isatty() else "\r"
            print(f"step {step:5d}/{STEPS}   loss {loss:9.3e}   {seconds:5.1f} s", end=end)
    for name, part in zip(names, parts, strict=True):
        weights[name] = part.reshape(weights[name].shape)
    return (time.perf_counter() - begun) / STEPS


def exact(t, x):
    """The solution by Cole and Hopf, its integrals by Gauss-Hermite quadrature; t, x broadcast."""
    z, weight = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - np.sqrt(4 * VISCOSITY * t[..., None]) * z
    density = weight * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return -np.sum(np.sin(np.pi * y) * density, -1) / np.sum(density, -1)


def predict(weights, t, x):
    """The network on a grid, through a kernel of its own."""
    columns = x.reshape(-1, 1), t.reshape(-1, 1)
    graph = pg.trace(lambda x, t, *w: network(w, x, t), *columns, *weights.values())
    return pg.compile(graph)(*columns, *weights.values()).reshape(x.shape)


def draw(path, t, x, predicted, true):
    """Draw the prediction, the exact solution and their difference, if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed (pip install 'primgraph[plot]')")
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    maps = {"u, predicted": predicted, "u, exact": true, "predicted - exact": predicted - true}
    limits = [np.abs(true).max()] * 2 + [np.abs(predicted - true).max()]
    for ax, (title, values), limit in zip(axes, maps.items(), limits, strict=True):
        shown = ax.pcolormesh(t, x, values, cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.set(title=title, xlabel="t", ylabel="x")
        figure.colorbar(shown, ax=ax)
    figure.savefig(path, dpi=120)
    print(f"picture:            {path}", flush=True)


def main():
    begun = time.perf_counter()
    program, loss, gradients = build()
    kernel = pg.Executor().kernel(program, [loss, *gradients])
    print(
        f"{len(kernel.graph)} equations, built and compiled in {time.perf_counter() - begun:.2f} s"
    )
    here = Path(__file__).parent
    kernel.save(here / "burgers_step.py")

    rng = np.random.default_rng(0)
    weights = initial_weights(rng)
    seconds = train(kernel, weights, training_points(rng))

    t, x = np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 201))
    predicted, true = predict(weights, t, x), exact(t, x)
    error = np.linalg.norm(predicted - true) / np.linalg.norm(true)
    print(f"relative L2 error:  {100 * error:.2f} %")
    print(f"time per step:      {1e3 * seconds:.2f} ms")
    print(f"source of a step:   {here / 'burgers_step.py'}")
    draw(here / "burgers.png", t, x, predicted, true)


if __name__ == "__main__":
    main()
