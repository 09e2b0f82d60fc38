"""The workloads in JAX and in autograd, for whichever of the two is installed.

Both take programs written in their own copy of NumPy, so that most workloads are written once
here, on a `Library`; what each does differently is in its class.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
from cases import (
    ARITHMETIC,
    BENDING,
    DECAY,
    DIFFUSION,
    ENDS,
    EPSILON,
    FEED,
    MIXED,
    STEEPNESS,
    VISCOSITY,
    Array,
    Case,
    below_diagonal,
    hessian_colours,
    hessian_nonzeros,
    jacobian_colours,
    jacobian_nonzeros,
)

Function = Callable[..., Any]
Built = tuple[Callable[..., list[Any]], list[Any]]

# Which arguments of the loss of a workload have gradients.
WITH_GRADIENT = {
    "W2": slice(1, None),
    "W3": slice(2, None),
    "W4": slice(0, 3),
    "W7": slice(2, None),
    "W8": slice(0, 1),
    "W9": slice(2, None),
    "W10": slice(0, 1),
    "W11": slice(2, None),
    "W12": slice(3, None),
}


@dataclass(frozen=True, slots=True)
class Library:
    """A copy of NumPy that can be differentiated, and functions that it has elsewhere."""

    np: Any
    logsumexp: Function
    sigmoid: Function
    softmax: Function


def network(lib: Library, points: Any, weights: Any) -> Any:
    *hidden, (w_last, b_last) = zip(weights[::2], weights[1::2], strict=True)
    for w, b in hidden:
        points = lib.np.tanh(lib.np.dot(points, w) + b)
    return lib.np.dot(points, w_last) + b_last


def burgers_loss(lib: Library, u: Any, u_t: Any, u_x: Any, u_xx: Any) -> Any:
    return lib.np.mean((u_t + u * u_x - VISCOSITY * u_xx) ** 2)


def classifier(lib: Library, images: Any, labels: Any, *weights: Any) -> Any:
    scores = network(lib, images, weights)
    logs = scores - lib.logsumexp(scores, axis=1, keepdims=True)
    return -lib.np.mean(logs[numpy.arange(len(labels)), labels])


def mixture(lib: Library, alphas: Any, means: Any, factors: Any, samples: Any) -> Any:
    np = lib.np
    k, d = means.shape
    place = numpy.full((d, d), factors.shape[1])
    place[numpy.diag_indices(d)] = numpy.arange(d)
    place[below_diagonal(d)] = numpy.arange(d, factors.shape[1])
    logs, below = factors[:, :d], factors[:, d:]
    diagonal = np.exp(logs)
    matrices = np.concatenate([diagonal, below, np.zeros((k, 1))], axis=1)[:, place]
    y = np.einsum("kij,nj->nki", matrices, samples) - np.einsum("kij,kj->ki", matrices, means)
    scores = alphas + np.sum(logs, axis=1) - 0.5 * np.sum(y * y, axis=2)
    prior = 0.5 * (np.sum(diagonal**2) + np.sum(below**2))
    fit = np.sum(lib.logsumexp(scores, axis=1))
    return fit - samples.shape[0] * lib.logsumexp(alphas) + prior


def rosenbrock(lib: Library, x: Any) -> Any:
    return lib.np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def brusselator(lib: Library, state: Any) -> Any:
    np, n = lib.np, state.shape[0] // 2
    u, v = state[:n], state[n:]
    diffusion = DIFFUSION * (n + 1) ** 2

    def spread(z: Any, end: float) -> Any:
        wall = numpy.full(1, end)
        padded = np.concatenate([wall, z, wall])
        return diffusion * (padded[:-2] - 2 * z + padded[2:])

    reaction = u**2 * v
    u_rate = FEED + reaction - (DECAY + 1) * u + spread(u, ENDS[0])
    return np.concatenate([u_rate, DECAY * u - reaction + spread(v, ENDS[1])])


def lstm_cell(lib: Library, state: Any, cell: Any, x: Any, weights: Any) -> tuple[Any, Any]:
    np, n = lib.np, state.shape[1]
    w_input, w_state, bias = weights
    gates = np.dot(x, w_input) + np.dot(state, w_state) + bias
    sigmoids = lib.sigmoid(gates[:, : 3 * n])
    entering, forgetting, leaving = (sigmoids[:, i * n : (i + 1) * n] for i in range(3))
    cell = forgetting * cell + entering * np.tanh(gates[:, 3 * n :])
    return leaving * np.tanh(cell), cell


def lstm(lib: Library, inputs: Any, targets: Any, *weights: Any) -> Any:
    state = cell = numpy.zeros(targets.shape[1:], targets.dtype)
    states = []
    for x in inputs:
        state, cell = lstm_cell(lib, state, cell, x, weights)
        states.append(state)
    return lib.np.mean((lib.np.stack(states) - targets) ** 2)


def mixed_chain(lib: Library, x: Any) -> Any:
    v = x
    for a, b, c, d in MIXED:
        v = d * lib.np.exp(lib.np.tanh(b * (lib.np.sin(a * v) + x) ** 2) * x - c)
    return lib.np.sum(v)


def arithmetic_chain(lib: Library, x: Any) -> Any:
    v = x
    for a, b, c, d, e in ARITHMETIC:
        q = b * (a * v + x) ** 2 - x
        v = d * (q * x + c) ** 2 + e
    return lib.np.sum(v)


def regression(lib: Library, samples: Any, labels: Any, weights: Any) -> Any:
    return lib.np.mean(lib.np.logaddexp(0.0, -labels * lib.np.dot(samples, weights)))


def atoms(lib: Library, x: Any) -> Any:
    difference = x[:, None, :] - x[None, :, :]
    s = (lib.np.sum(difference**2, axis=2) + numpy.eye(x.shape[0])) ** -3
    return 2 * lib.np.sum(s * s - s)


def normalised(lib: Library, x: Any, scale: Any, shift: Any) -> Any:
    np = lib.np
    centred = x - np.mean(x, axis=1, keepdims=True)
    spread = np.mean(centred * centred, axis=1, keepdims=True)
    return centred / np.sqrt(spread + EPSILON) * scale + shift


def block(lib: Library, heads: int, x: Any, targets: Any, *weights: Any) -> Any:
    np, (rows, width) = lib.np, x.shape
    s1, m1, w_mix, b_mix, w_read, b_read, s2, m2, w_up, b_up, w_down, b_down = weights
    mixed = np.dot(normalised(lib, x, s1, m1), w_mix) + b_mix
    parts = np.transpose(np.reshape(mixed, (rows, 3, heads, width // heads)), (1, 2, 0, 3))
    queries, keys, values = parts[0], parts[1], parts[2]
    scores = np.matmul(queries, np.transpose(keys, (0, 2, 1))) * (width // heads) ** -0.5
    answers = np.transpose(np.matmul(lib.softmax(scores), values), (1, 0, 2))
    x = x + np.dot(np.reshape(answers, (rows, width)), w_read) + b_read
    up = np.dot(normalised(lib, x, s2, m2), w_up) + b_up
    gelu = 0.5 * up * (1 + np.tanh(STEEPNESS * (up + BENDING * up**3)))
    return np.mean((x + np.dot(gelu, w_down) + b_down - targets) ** 2)


def loss(lib: Library, case: Case) -> Function:
    """The function of the inputs of `case` whose value and gradients are asked for."""
    if case.workload == "W11":
        return lambda *arguments: block(lib, case["heads"], *arguments)
    found = {
        "W3": classifier,
        "W4": mixture,
        "W7": lstm,
        "W8": mixed_chain if case.params.get("kind") == "mixed" else arithmetic_chain,
        "W9": regression,
        "W10": atoms,
    }[case.workload]
    return lambda *arguments: found(lib, *arguments)


class Jax:
    """JAX on the processor, compiled; arrays are placed beforehand, calls wait for results."""

    def __init__(self) -> None:
        self.jax = jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
        self.jet = importlib.import_module("jax.experimental.jet").jet
        special = importlib.import_module("jax.scipy.special")
        self.lib = Library(jax.numpy, special.logsumexp, jax.nn.sigmoid, jax.nn.softmax)
        # The start of JAX itself belongs to no workload.
        jax.block_until_ready(jax.jit(lambda x: x + 1)(numpy.ones(1)))

    def variants(self, case: Case) -> tuple[str, ...]:
        match case.workload, case.params.get("kind"):
            case "W1", _:
                return "jvp", "vjp", "jet"
            case (("W2" | "W12"), _):
                return "jvp", "vmap"
            case "W6", "dense":
                return "forward", "reverse"
            case "W7", _:
                return "scan", "unrolled"
        return ("",)

    def build(self, case: Case, variant: str = "") -> Built:
        jax = self.jax
        arrays = case.arrays()
        function = jax.jit(self._function(case, variant or self.variants(case)[0]))
        placed = [jax.numpy.asarray(a) for a in arrays]
        wait, leaves = jax.block_until_ready, jax.tree_util.tree_leaves
        return lambda *a: leaves(wait(function(*a))), placed

    def _function(self, case: Case, variant: str) -> Function:
        match case.workload:
            case "W1":
                return self._tanh(case["order"], variant)
            case "W2":
                return self._with_gradient(case, self._burgers(variant))
            case "W12":
                return self._with_gradient(case, self._step(variant))
            case "W5":
                return self._rosenbrock(case)
            case "W6":
                return self._brusselator(case, variant)
            case "W7" if variant == "scan":
                return self._with_gradient(case, self._scanned)
            case _:
                return self._with_gradient(case, loss(self.lib, case))

    def _with_gradient(self, case: Case, function: Function) -> Function:
        wanted = WITH_GRADIENT[case.workload]
        places = range(len(case.arrays()))[wanted]
        return self.jax.value_and_grad(function, tuple(places))

    def _tanh(self, order: int, variant: str) -> Function:
        jax, np = self.jax, self.jax.numpy
        if variant == "jet":
            zeros = [0.0] * (order - 1)

            def series(x: Any) -> Any:
                seeds = [np.full_like(x, s) for s in [1.0, *zeros]]
                return self.jet(np.tanh, (x,), (seeds,))[1][-1]

            return series
        function = np.tanh
        for _ in range(order):
            function = (self._slope_forward if variant == "jvp" else self._slope)(function)
        return jax.jit(function)

    def _slope_forward(self, function: Function) -> Function:
        return lambda x: self.jax.jvp(function, (x,), (self.jax.numpy.ones_like(x),))[1]

    def _slope(self, function: Function) -> Function:
        return lambda x: self.jax.vjp(function, x)[1](self.jax.numpy.ones_like(x))[0]

    def _burgers(self, variant: str) -> Function:
        jax, np, lib = self.jax, self.jax.numpy, self.lib

        def by_jvp(points: Any, *weights: Any) -> Any:
            x_axis, t_axis = (
                np.broadcast_to(a, points.shape) for a in np.eye(2, dtype=points.dtype)
            )

            def u(p: Any) -> Any:
                return network(lib, p, weights)

            def with_slope(p: Any) -> Any:
                return jax.jvp(u, (p,), (x_axis,))

            (value, u_x), (_, u_xx) = jax.jvp(with_slope, (points,), (x_axis,))
            u_t = jax.jvp(u, (points,), (t_axis,))[1]
            return burgers_loss(lib, value, u_t, u_x, u_xx)

        def by_vmap(points: Any, *weights: Any) -> Any:
            def u(x: Any, t: Any) -> Any:
                return network(lib, np.stack([x, t]), weights)[0]

            u_x = jax.grad(u)
            wanted = (u, jax.grad(u, 1), u_x, jax.grad(u_x))
            columns = points[:, 0], points[:, 1]
            return burgers_loss(lib, *(jax.vmap(f)(*columns) for f in wanted))

        return by_vmap if variant == "vmap" else by_jvp

    def _step(self, variant: str) -> Function:
        inside = self._burgers(variant)

        def step(points: Any, places: Any, known: Any, *weights: Any) -> Any:
            wrong = network(self.lib, places, weights) - known
            return inside(points, *weights) + self.jax.numpy.mean(wrong**2)

        return step

    def _rosenbrock(self, case: Case) -> Function:
        jax = self.jax
        gradient = jax.grad(lambda x: rosenbrock(self.lib, x))
        if case["kind"] == "hvp":
            return lambda x, v: jax.jvp(gradient, (x,), (v,))[1]
        if case["kind"] == "hess":
            return jax.hessian(lambda x: rosenbrock(self.lib, x))
        return self._sparse(gradient, hessian_colours(case["n"]), *hessian_nonzeros(case["n"]))

    def _brusselator(self, case: Case, variant: str) -> Function:
        def function(state: Any) -> Any:
            return brusselator(self.lib, state)

        if case["kind"] == "dense":
            return (self.jax.jacfwd if variant == "forward" else self.jax.jacrev)(function)
        return self._sparse(function, jacobian_colours(case["n"]), *jacobian_nonzeros(case["n"]))

    def _sparse(self, function: Function, colours: Array, rows: Array, columns: Array) -> Function:
        jax = self.jax
        colour = numpy.argmax(colours[:, columns], axis=0)

        def nonzeros(x: Any) -> Any:
            products = jax.vmap(lambda s: jax.jvp(function, (x,), (s,))[1])(colours)
            return products[colour, rows]

        return nonzeros

    def _scanned(self, inputs: Any, targets: Any, *weights: Any) -> Any:
        np = self.jax.numpy

        def step(carried: Any, x: Any) -> Any:
            state, cell = lstm_cell(self.lib, *carried, x, weights)
            return (state, cell), state

        start = np.zeros(targets.shape[1:], targets.dtype)
        _, states = self.jax.lax.scan(step, (start, start), inputs)
        return np.mean((states - targets) ** 2)


class Autograd:
    """HIPS autograd, which records every call anew."""

    def __init__(self) -> None:
        self.autograd = importlib.import_module("autograd")
        np = importlib.import_module("autograd.numpy")
        self.lib = Library(
            np, self._logsumexp, lambda x: 0.5 * (np.tanh(0.5 * x) + 1), self._softmax
        )

    def _logsumexp(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        np = self.lib.np
        top = np.max(x, axis=axis, keepdims=True)
        total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
        return total if keepdims else np.sum(total, axis=axis)

    def _softmax(self, x: Any) -> Any:
        np = self.lib.np
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    def variants(self, case: Case) -> tuple[str, ...]:
        # Recording repeats itself at every order, and sparse results would need it for each row.
        costly = case.workload == "W1" and case["n"] > 1000 and case["order"] > 3
        dense = case.params.get("kind") in ("hess", "dense") and case["n"] > 100
        return () if costly or dense or case.params.get("kind") == "sparse" else ("",)

    def build(self, case: Case, variant: str = "") -> Built:
        arrays, ag = case.arrays(), self.autograd
        match case.workload:
            case "W1":
                function = self.lib.np.tanh
                for _ in range(case["order"]):
                    function = ag.elementwise_grad(function)
            case "W5" if case["kind"] == "hvp":
                function = ag.hessian_vector_product(lambda x: rosenbrock(self.lib, x))
            case "W5":
                function = ag.hessian(lambda x: rosenbrock(self.lib, x))
            case "W6":
                function = ag.jacobian(lambda x: brusselator(self.lib, x))
            case _:
                return self._with_gradient(case, arrays), arrays
        return lambda *a: [function(*a)], arrays

    def _with_gradient(self, case: Case, arrays: list[Array]) -> Function:
        own = {"W2": self._burgers, "W12": self._step}
        function = own.get(case.workload) or loss(self.lib, case)
        wanted = tuple(range(len(arrays))[WITH_GRADIENT[case.workload]])
        both = self.autograd.value_and_grad(function, wanted)

        def run(*arguments: Array) -> list[Any]:
            value, gradients = both(*arguments)
            return [value, *gradients]

        return run

    def _step(self, points: Any, places: Any, known: Any, *weights: Any) -> Any:
        wrong = network(self.lib, places, weights) - known
        return self._burgers(points, *weights) + self.lib.np.mean(wrong**2)

    def _burgers(self, points: Any, *weights: Any) -> Any:
        np, slope = self.lib.np, self.autograd.elementwise_grad

        def u(x: Any, t: Any) -> Any:
            return network(self.lib, np.concatenate([x, t], axis=1), weights)

        u_x = slope(u, 0)
        wanted = (u, slope(u, 1), u_x, slope(u_x, 0))
        columns = points[:, :1], points[:, 1:]
        return burgers_loss(self.lib, *(f(*columns) for f in wanted))
