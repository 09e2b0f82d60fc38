"""The workloads in NumPy as an expert writes them, derivatives worked out on paper.

Buffers are allocated once, large arrays go through in blocks that fit the cache, and some cases
have two threads. Results are the function's own arrays, which its next call overwrites, unless
they are fresh matrices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
from cases import DECAY, DIFFUSION, Array, Case
from hand_block import block
from hand_chains import LARGE, blocks, chain, shared, tanh
from hand_models import Edge, Pinn, classifier, lstm, mixture

Function = Callable[..., list[Array]]
Built = tuple[Function, list[Array]]

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def variants(case: Case) -> tuple[str, ...]:
    """The ways in which a case is written; the fastest counts."""
    threads = ("threads",) if CORES > 1 else ()
    match case.workload:
        case "W1":
            if case["n"] == 1:
                return "polynomial", "scalar"
            return ("polynomial", "blocks", *threads) if case["n"] >= LARGE else ("polynomial",)
        case "W2" | "W9" | "W12":
            return "whole", "blocks", *threads
        case "W4":
            return "whole", "blocks"
        case "W8" if case["n"] >= LARGE:
            return "blocks", *threads
        case _:
            return ("whole",)


def build(case: Case, variant: str = "") -> Built:
    """A function for `case`, and its inputs.

    A function that uses threads of its own says so by `blas_threads`, the number of threads
    that the linear algebra beneath it should have.
    """
    return _BUILDERS[case.workload](case, variant or variants(case)[0])


def _rosenbrock(case: Case, _: str) -> Built:
    builders = {"hvp": _hessian_product, "hess": _hessian, "sparse": _hessian_nonzeros}
    return builders[case["kind"]](case)


def _hessian_product(case: Case) -> Built:
    x, v = case.arrays()
    out, t, s = np.empty_like(x), np.empty_like(x[1:]), np.empty_like(x[1:])
    head, tail = out[:-1], out[1:]
    multiply, add, subtract = np.multiply, np.add, np.subtract

    def product(x: Array, v: Array) -> list[Array]:
        left, right, v_left, v_right = x[:-1], x[1:], v[:-1], v[1:]
        # Each link has the block [[1200 l^2 - 400 r + 2, -400 l], [-400 l, 200]].
        multiply(left, left, t)
        multiply(t, 3.0, t)
        subtract(t, right, t)
        multiply(t, 400.0, t)
        add(t, 2.0, t)
        multiply(t, v_left, head)
        out[-1] = 0.0
        multiply(left, -400.0, t)
        multiply(t, v_right, s)
        add(head, s, head)
        multiply(t, v_left, t)
        add(tail, t, tail)
        multiply(v_right, 200.0, s)
        add(tail, s, tail)
        return [out]

    return product, [x, v]


def _fill_hessian(x: Array, diagonal: Array, above: Array, below: Array) -> None:
    """Write the three diagonals; those beside the main one have one element less."""
    left, right, inner = x[:-1], x[1:], diagonal[:-1]
    curvature = left * left
    curvature *= 3.0
    curvature -= right
    curvature *= 400.0
    np.add(curvature, 202.0, out=inner)
    diagonal[0] -= 200.0
    diagonal[-1] = 200.0
    np.multiply(left, -400.0, out=above)
    below[...] = above


def _hessian(case: Case) -> Built:
    (x,) = case.arrays()
    n = x.size

    def hessian(x: Array) -> list[Array]:
        flat = np.zeros(n * n)
        step = n + 1
        _fill_hessian(x, flat[::step], flat[1::step], flat[n::step])
        return [flat.reshape(n, n)]

    return hessian, [x]


def _hessian_nonzeros(case: Case) -> Built:
    (x,) = case.arrays()
    # Every row has room for three; the first and last slots stay unused.
    rows = np.zeros(3 * x.size)
    diagonal, above, below = rows[1::3], rows[2:-3:3], rows[3::3]

    def nonzeros(x: Array) -> list[Array]:
        _fill_hessian(x, diagonal, above, below)
        return [rows[1:-1]]

    return nonzeros, [x]


def _brusselator(case: Case, _: str) -> Built:
    (state,) = case.arrays()
    n = case["n"]
    diffusion = DIFFUSION * (n + 1) ** 2
    square, product = np.empty(n), np.empty(n)

    def fill(state: Array, uu: Array, uv: Sequence[Array], vu: Sequence[Array], vv: Array) -> None:
        """Write the four diagonals; two of them may lie in pieces."""
        u, v = state[:n], state[n:]
        np.multiply(u, u, out=square)
        np.multiply(u, v, out=product)
        np.multiply(product, 2.0, out=product)
        np.subtract(product, DECAY + 1 + 2 * diffusion, out=uu)
        np.subtract(-2 * diffusion, square, out=vv)
        np.subtract(DECAY, product, out=product)
        for values, pieces in ((square, uv), (product, vu)):
            start = 0
            for piece in pieces:
                piece[...] = values[start : start + piece.size]
                start += piece.size

    if case["kind"] == "sparse":
        # Rows of four, the first and last of each half of three; the diffusion never changes.
        entries = np.full(8 * n - 4, diffusion)
        top, bottom = entries[: 4 * n - 2], entries[4 * n - 2 :]
        uv, vu = [top[2:-3:4], top[-1:]], [bottom[:1], bottom[3::4]]

        def nonzeros(state: Array) -> list[Array]:
            fill(state, top[::4], uv, vu, bottom[1::4])
            return [entries]

        return nonzeros, [state]

    def dense(state: Array) -> list[Array]:
        full = np.zeros((2 * n, 2 * n))
        flat, step = full.reshape(-1), 2 * n + 1
        half = n * 2 * n
        for corner in (0, half + n):
            stop = corner + (n - 1) * step
            flat[corner + 1 : stop + 1 : step] = diffusion
            flat[corner + 2 * n : stop + 2 * n : step] = diffusion
        fill(
            state, flat[:half:step], [flat[n:half:step]], [flat[half::step]], flat[half + n :: step]
        )
        return [full]

    return dense, [state]


def _regression(case: Case, variant: str) -> Built:
    samples, labels, weights = case.arrays()
    count, dtype = len(samples), samples.dtype
    size = count if variant == "whole" else min(count, 1024)
    spaces = [
        (*(np.empty(size, dtype) for _ in range(2)), *(np.empty_like(weights) for _ in range(2)))
        for _ in range(2)
    ]

    def some(i: int, parts: Sequence[slice]) -> float:
        s_all, t_all, part, gradient = spaces[i]
        gradient.fill(0)
        loss = 0.0
        for b in parts:
            x, y = samples[b], labels[b]
            s, t = s_all[: len(x)], t_all[: len(x)]
            np.dot(x, weights, out=s)
            np.multiply(s, y, out=s)
            # log(1 + exp(-s)) without overflow, and its slope by tanh.
            np.abs(s, out=t)
            np.negative(t, out=t)
            np.exp(t, out=t)
            np.log1p(t, out=t)
            loss += float(t.sum(dtype=np.float64))
            np.minimum(s, 0, out=t)
            loss -= float(t.sum(dtype=np.float64))
            np.multiply(s, -0.5, out=s)
            np.tanh(s, out=s)
            np.add(s, 1, out=s)
            np.multiply(s, y, out=s)
            np.dot(s, x, out=part)
            np.add(gradient, part, out=gradient)
        return loss

    parts = blocks(count, size)
    halves = shared(some, parts)

    def run(*_: Array) -> list[Array]:
        threads = variant == "threads"
        loss = sum(halves()) if threads else some(0, parts)
        gradient = spaces[0][3] + spaces[1][3] if threads else spaces[0][3]
        return [dtype.type(loss / count), np.multiply(gradient, -0.5 / count, out=gradient)]

    if variant == "threads":
        run.blas_threads = 1  # type: ignore[attr-defined]
    return run, [samples, labels, weights]


def _pinn(case: Case, variant: str) -> Built:
    inputs = case.arrays()
    count = len(inputs[0])
    size = count if variant == "whole" else min(256, -(-count // 2))
    parts = blocks(count, size)
    nets = [Pinn(inputs[1:], size, inputs[0].dtype) for _ in range(2)]

    def some(i: int, parts: Sequence[slice]) -> float:
        nets[i].clear()
        return sum(nets[i].add(inputs[0][b], count) for b in parts)

    halves = shared(some, parts)

    def run(*_: Array) -> list[Array]:
        threads = variant == "threads"
        loss = sum(halves()) if threads else some(0, parts)
        if threads:
            for mine, other in zip(nets[0].gradients, nets[1].gradients, strict=True):
                mine += other
        return [inputs[0].dtype.type(loss / count), *nets[0].gradients]

    if variant == "threads":
        run.blas_threads = 1  # type: ignore[attr-defined]
    return run, inputs


def _step(case: Case, variant: str) -> Built:
    points, places, known, *weights = inputs = case.arrays()
    count = len(points)
    size = count if variant == "whole" else min(256, -(-count // 2))
    parts = blocks(count, size)
    nets = [Pinn(weights, size, points.dtype) for _ in range(2)]
    edge = Edge(weights, places, known)

    def some(i: int, parts: Sequence[slice]) -> float:
        nets[i].clear()
        return sum(nets[i].add(points[b], count) for b in parts)

    halves = shared(some, parts)

    def run(*_: Array) -> list[Array]:
        gradients = nets[0].gradients
        loss = (sum(halves()) if variant == "threads" else some(0, parts)) / count
        if variant == "threads":
            for mine, other in zip(gradients, nets[1].gradients, strict=True):
                mine += other
        return [points.dtype.type(loss + edge.add(gradients)), *gradients]

    if variant == "threads":
        run.blas_threads = 1  # type: ignore[attr-defined]
    return run, inputs


def _atoms(case: Case, _: str) -> Built:
    (x,) = case.arrays()
    n = len(x)
    gradient = np.empty_like(x)
    squares, powers, spare = (np.empty((n, n)) for _ in range(3))
    differences = np.empty((3, n, n))

    def energy(x: Array) -> list[Array]:
        columns = x.T
        np.subtract(columns[:, :, None], columns[:, None, :], out=differences)
        np.einsum("kij,kij->ij", differences, differences, out=squares)
        squares.reshape(-1)[:: n + 1] = 1.0
        np.divide(1.0, squares, out=squares)
        np.multiply(squares, squares, out=powers)
        np.multiply(powers, squares, out=powers)
        np.multiply(powers, powers, out=spare)
        total = 2 * (spare.sum() - powers.sum())
        # 24 (s - 2 s^2) / r^2 for s = 1 / r^6; on the diagonal the differences are 0.
        np.multiply(spare, 2.0, out=spare)
        np.subtract(powers, spare, out=powers)
        np.multiply(powers, squares, out=powers)
        np.multiply(powers, 24.0, out=powers)
        np.einsum("kij,ij->ik", differences, powers, out=gradient)
        return [total, gradient]

    return energy, [x]


def _block(case: Case, _: str) -> Built:
    inputs = case.arrays()
    return block(inputs, case["heads"]), inputs


def _mixture(case: Case, variant: str) -> Built:
    inputs = case.arrays()
    size = case["N"] if variant == "whole" else min(case["N"], 128)
    return mixture(inputs, blocks(case["N"], size)), inputs


def _classifier(case: Case, _: str) -> Built:
    inputs = case.arrays()
    return classifier(inputs), inputs


def _lstm(case: Case, _: str) -> Built:
    inputs = case.arrays()
    return lstm(inputs), inputs


_BUILDERS: dict[str, Callable[[Case, str], Built]] = {
    "W1": tanh,
    "W2": _pinn,
    "W3": _classifier,
    "W4": _mixture,
    "W5": _rosenbrock,
    "W6": _brusselator,
    "W7": _lstm,
    "W8": chain,
    "W9": _regression,
    "W10": _atoms,
    "W11": _block,
    "W12": _step,
}
