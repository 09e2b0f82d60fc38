"""The workloads as primgraph's users would write them; what each computes is said in cases.py.

`build` gives a callable and the arrays to call it with. Each case is compiled at two levels of
mathematics: "exact", the default, and "fast", which may reassociate as programs by hand do. A
kernel is NumPy's unless `target` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import (
    ARITHMETIC,
    DECAY,
    DIFFUSION,
    ENDS,
    EPSILON,
    FEED,
    MIXED,
    VISCOSITY,
    Array,
    Case,
    below_diagonal,
)

import primgraph as pg

Function = Callable[..., Any]
Built = tuple[Callable[..., list[Array]], list[Array]]
Traced = tuple[pg.Graph, list[Array]]
Builder = Callable[[Case], Traced]

target = "numpy"


def variants(case: Case) -> tuple[str, ...]:
    """The ways to compute a case, of which the fastest counts."""
    return "exact", "fast"


def build(case: Case, variant: str = "") -> Built:
    """A kernel for `case`, compiled at level `variant`, and its inputs."""
    graph, arrays = graph_of(case)
    return pg.compile(graph, math=variant or "exact", target=target).flat, arrays


def graph_of(case: Case) -> Traced:
    """The graph of a case, and its inputs."""
    return _BUILDERS[case.workload](case)


def _traced(function: Function, arrays: list[Array]) -> Traced:
    return pg.trace(function, *arrays), arrays


def _with_gradient(loss: Function, wrt: slice) -> Function:
    """The function that gives the value of `loss` and its gradients for some arguments."""

    def value_and_gradient(*arguments: pg.Variable) -> tuple[Any, ...]:
        value = loss(*arguments)
        return value, *pg.grad(value, list(arguments[wrt]))

    return value_and_gradient


def _tanh(case: Case) -> Traced:
    def derivative(x: pg.Variable) -> pg.Variable:
        y = pg.tanh(x)
        for _ in range(case["order"]):
            y = pg.grad(y, x)
        return y

    return _traced(derivative, case.arrays())


def network(h: pg.Variable, *weights: pg.Variable) -> pg.Variable:
    *hidden, (w_last, b_last) = zip(weights[::2], weights[1::2], strict=True)
    for w, b in hidden:
        h = pg.tanh(h @ w + b)
    return h @ w_last + b_last


def burgers(points: pg.Variable, *weights: pg.Variable) -> pg.Variable:
    """The mean squared residual of Burgers' equation, its derivatives taken by forward mode."""
    x, t = points[:, :1], points[:, 1:]
    h = pg.concatenate([x, t], axis=1)
    u = network(h, *weights)
    u_t = pg.forward_grad(u, t)
    u_x = pg.forward_grad(u, x)
    u_xx = pg.forward_grad(u_x, x)
    return pg.mean((u_t + u * u_x - VISCOSITY * u_xx) ** 2)


def step_of_example(
    points: pg.Variable, places: pg.Variable, known: pg.Variable, *weights: pg.Variable
) -> pg.Variable:
    """The residual inside, and how far the network is from what is known at the edge."""
    wrong = network(places, *weights) - known
    return burgers(points, *weights) + pg.mean(wrong**2)


def classifier(
    images: pg.Variable,
    labels: pg.Variable,
    w1: pg.Variable,
    b1: pg.Variable,
    w2: pg.Variable,
    b2: pg.Variable,
) -> pg.Variable:
    return pg.cross_entropy(pg.tanh(images @ w1 + b1) @ w2 + b2, labels)


def mixture(
    alphas: pg.Variable, means: pg.Variable, factors: pg.Variable, samples: pg.Variable
) -> pg.Variable:
    """The log posterior; a factor is put together from its entries and a zero by their places."""
    k, d = means.shape
    place = np.full((d, d), factors.shape[1])
    place[np.diag_indices(d)] = np.arange(d)
    place[below_diagonal(d)] = np.arange(d, factors.shape[1])
    logs, below = factors[:, :d], factors[:, d:]
    diagonal = pg.exp(logs)
    entries = pg.concatenate([diagonal, below, pg.zeros((k, 1))], axis=1)
    matrices = entries[:, place]
    y = pg.einsum("kij,nj->nki", matrices, samples) - pg.einsum("kij,kj->ki", matrices, means)
    scores = alphas + pg.sum(logs, axis=1) - 0.5 * pg.sum(y * y, axis=2)
    prior = 0.5 * (pg.sum(diagonal**2) + pg.sum(below**2))
    fit = pg.sum(pg.logsumexp(scores, axis=1))
    return fit - samples.shape[0] * pg.logsumexp(alphas) + prior


def rosenbrock(x: pg.Variable) -> pg.Variable:
    return pg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_gradient(x: pg.Variable) -> pg.Variable:
    return pg.grad(rosenbrock(x), x)


def _rosenbrock(case: Case) -> Traced:
    match case["kind"]:
        case "hvp":
            return _traced(
                lambda x, v: pg.forward_grad(rosenbrock_gradient(x), x, v), case.arrays()
            )
        case "hess":
            return _dense(rosenbrock_gradient, case.arrays()[0])
        case _:
            return _traced(lambda x: pg.sparse_hessian(rosenbrock, x).data, case.arrays())


def _dense(function: Function, x: Array) -> Traced:
    """The Jacobian of `function`, with all of its zeros."""
    return _traced(lambda x: pg.jacobian(function(x), x), [x])


def brusselator(state: pg.Variable) -> pg.Variable:
    """The rates of change of both concentrations."""
    n = state.shape[0] // 2
    u, v = state[:n], state[n:]
    diffusion = DIFFUSION * (n + 1) ** 2

    def spread(z: pg.Variable, end: float) -> pg.Variable:
        padded = pg.pad(z, 1, constant_values=end)
        return diffusion * (padded[:-2] - 2 * z + padded[2:])

    reaction = u**2 * v
    u_rate = FEED + reaction - (DECAY + 1) * u + spread(u, ENDS[0])
    v_rate = DECAY * u - reaction + spread(v, ENDS[1])
    return pg.concatenate([u_rate, v_rate])


def _brusselator(case: Case) -> Traced:
    if case["kind"] == "dense":
        return _dense(brusselator, case.arrays()[0])
    return _traced(lambda s: pg.sparse_jacobian(brusselator, s).data, case.arrays())


def lstm(
    inputs: pg.Variable,
    targets: pg.Variable,
    w_input: pg.Variable,
    w_state: pg.Variable,
    bias: pg.Variable,
) -> pg.Variable:
    steps, batch, width = inputs.shape
    state = pg.zeros((batch, width), inputs.dtype)
    cell = state
    states = []
    for t in range(steps):
        state, cell = _cell(state, cell, inputs[t], w_input, w_state, bias)
        states.append(state)
    return pg.mean((pg.stack(states) - targets) ** 2)


def _cell(
    state: pg.Variable, cell: pg.Variable, x: pg.Variable, *weights: pg.Variable
) -> tuple[pg.Variable, pg.Variable]:
    """The state and the cell after a step."""
    width, (w_input, w_state, bias) = state.shape[1], weights
    gates = x @ w_input + state @ w_state + bias
    entering, forgetting, leaving = pg.split(pg.sigmoid(gates[:, : 3 * width]), 3, axis=1)
    cell = forgetting * cell + entering * pg.tanh(gates[:, 3 * width :])
    return leaving * pg.tanh(cell), cell


def scanned(inputs: pg.Variable, targets: pg.Variable, *weights: pg.Variable) -> pg.Variable:
    """The same as a loop."""

    def step(carry: Any, x: pg.Variable) -> Any:
        state, cell = _cell(*carry, x, *weights)
        return (state, cell), state

    zeros = pg.zeros(inputs.shape[1:], inputs.dtype)
    _, states = pg.scan(step, (zeros, zeros), inputs)
    return pg.mean((states - targets) ** 2)


def mixed_chain(x: pg.Variable) -> pg.Variable:
    v = x
    for a, b, c, d in MIXED:
        v = d * pg.exp(pg.tanh(b * (pg.sin(a * v) + x) ** 2) * x - c)
    return pg.sum(v)


def arithmetic_chain(x: pg.Variable) -> pg.Variable:
    v = x
    for a, b, c, d, e in ARITHMETIC:
        q = b * (a * v + x) ** 2 - x
        v = d * (q * x + c) ** 2 + e
    return pg.sum(v)


def regression(samples: pg.Variable, labels: pg.Variable, weights: pg.Variable) -> pg.Variable:
    return pg.mean(pg.softplus(-labels * (samples @ weights)))


def atoms(x: pg.Variable) -> pg.Variable:
    """The energy: on the diagonal, where the distance is taken as 1, it is 0."""
    difference = x[:, None, :] - x[None, :, :]
    s = (pg.sum(difference**2, axis=2) + pg.eye(x.shape[0])) ** -3
    return 2 * pg.sum(s * s - s)


def block(heads: int, x: pg.Variable, targets: pg.Variable, *weights: pg.Variable) -> pg.Variable:
    s1, m1, w_mix, b_mix, w_read, b_read, s2, m2, w_up, b_up, w_down, b_down = weights
    rows, width = x.shape
    mixed = pg.layer_norm(x, s1, m1, eps=EPSILON) @ w_mix + b_mix
    parts = pg.transpose(mixed.reshape(rows, 3, heads, width // heads), (1, 2, 0, 3))
    queries, keys, values = parts[0], parts[1], parts[2]
    scores = queries @ pg.transpose(keys, (0, 2, 1)) * (width // heads) ** -0.5
    answers = pg.transpose(pg.softmax(scores) @ values, (1, 0, 2)).reshape(rows, width)
    x = x + answers @ w_read + b_read
    up = pg.layer_norm(x, s2, m2, eps=EPSILON) @ w_up + b_up
    x = x + pg.gelu(up, approximate=True) @ w_down + b_down
    return pg.mean((x - targets) ** 2)


def _gradients(loss: Function, first: int, last: int | None = None) -> Builder:
    def built(case: Case) -> Traced:
        return _traced(_with_gradient(loss, slice(first, last)), case.arrays())

    return built


def _lstm(case: Case) -> Traced:
    loss = scanned if case.params.get("kind") == "scan" else lstm
    return _traced(_with_gradient(loss, slice(2, None)), case.arrays())


def _block(case: Case) -> Traced:
    loss = partial(block, case["heads"])
    return _traced(_with_gradient(loss, slice(2, None)), case.arrays())


def _chain(case: Case) -> Traced:
    loss = mixed_chain if case["kind"] == "mixed" else arithmetic_chain
    return _traced(_with_gradient(loss, slice(None)), case.arrays())


_BUILDERS: dict[str, Builder] = {
    "W1": _tanh,
    "W2": _gradients(burgers, 1),
    "W3": _gradients(classifier, 2),
    "W4": _gradients(mixture, 0, 3),
    "W5": _rosenbrock,
    "W6": _brusselator,
    "W7": _lstm,
    "W8": _chain,
    "W9": _gradients(regression, 2),
    "W10": _gradients(atoms, 0),
    "W11": _block,
    "W12": _gradients(step_of_example, 3),
}
