"""Workloads as loops that numba compiles, where loops by hand are natural.

As in C by hand, derivatives are worked out on paper, products of large matrices are NumPy's BLAS,
and results are the function's own arrays. "fast" lets the compiler reassociate.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import ARITHMETIC, DECAY, DIFFUSION, MIXED, Array, Case
from hand_chains import tanh_polynomial
from hand_models import Edge, Pinn, network

Function = Callable[..., Any]
Built = tuple[Callable[..., list[Any]], list[Array]]


def variants(case: Case) -> tuple[str, ...]:
    """The ways in which a case is compiled; none where it has not been written."""
    return ("strict", "fast") if case.workload in _BUILDERS else ()


def build(case: Case, variant: str = "") -> Built:
    """A function for `case`, and its inputs."""
    numba = importlib.import_module("numba")
    compiled = numba.njit(fastmath=variant == "fast", error_model="numpy")
    return _BUILDERS[case.workload](case, compiled)


def _filling(function: Function, inputs: list[Array], out: Array) -> Built:
    """A function that fills the same array each time."""

    def run(*arguments: Array) -> list[Any]:
        function(*arguments, out)
        return [out]

    return run, inputs


def _fresh(function: Function, inputs: list[Array], shape: tuple[int, ...]) -> Built:
    """A function that fills zeros, a new array each time."""

    def run(*arguments: Array) -> list[Any]:
        out = np.zeros(shape)
        function(*arguments, out)
        return [out]

    return run, inputs


def _summing(function: Function, inputs: list[Array], out: Array) -> Built:
    """A function that gives a number, and fills the same array each time."""

    def run(*arguments: Array) -> list[Any]:
        return [function(*arguments, out), out]

    return run, inputs


def _tanh(case: Case, compiled: Function) -> Built:
    (x,) = case.arrays()
    odd = case["order"] % 2 == 0
    terms = tuple(tanh_polynomial(case["order"])[odd::2].tolist()[::-1])

    @compiled
    def derivative(x: Array, out: Array) -> None:
        for i in range(x.size):
            t = math.tanh(x[i])
            s = t * t
            value = 0.0
            for c in terms:
                value = value * s + c
            out[i] = value * t if odd else value

    return _filling(derivative, [x], np.empty_like(x))


class _PinnInLoops(Pinn):
    """The network of W2 with its activations in loops."""

    forward: Function
    backward: Function

    def _activate(self, k: int) -> None:
        z, a = self.before[k], self.after[k]
        type(self).forward(z, self.b[k], a, self.slope[k], self.bend[k])

    def _back(self, k: int) -> None:
        z, a, g = self.before[k], self.after[k], self.cotangent[k]
        type(self).backward(z, a, self.slope[k], self.bend[k], g)


def _network(points: Array, compiled: Function) -> type[Pinn]:
    one, two = points.dtype.type(1), points.dtype.type(2)

    @compiled
    def forward(z: Array, b: Array, a: Array, slope: Array, bend: Array) -> None:
        for i in range(z.shape[1]):
            for j in range(z.shape[2]):
                t = math.tanh(z[0, i, j] + b[j])
                d = one - t * t
                e = -two * t * d
                a[0, i, j] = t
                slope[i, j] = d
                bend[i, j] = e
                a[1, i, j] = d * z[1, i, j]
                a[2, i, j] = d * z[2, i, j]
                a[3, i, j] = d * z[3, i, j] + e * z[2, i, j] * z[2, i, j]

    @compiled
    def backward(z: Array, a: Array, slope: Array, bend: Array, g: Array) -> None:
        for i in range(z.shape[1]):
            for j in range(z.shape[2]):
                d, e = slope[i, j], bend[i, j]
                third = -two * (d * d + a[0, i, j] * e)
                zt, zx, zxx = z[1, i, j], z[2, i, j], z[3, i, j]
                gt, gx, gxx = g[1, i, j], g[2, i, j], g[3, i, j]
                bent = e * (zt * gt + zx * gx + zxx * gxx) + third * zx * zx * gxx
                g[0, i, j] = d * g[0, i, j] + bent
                g[1, i, j] = d * gt
                g[2, i, j] = d * gx + two * e * zx * gxx
                g[3, i, j] = d * gxx

    functions = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Own", (_PinnInLoops,), functions)


def _pinn(case: Case, compiled: Function) -> Built:
    inputs = case.arrays()
    points, *weights = inputs
    return network(_network(points, compiled), points, weights), inputs


def _step(case: Case, compiled: Function) -> Built:
    points, places, known, *weights = inputs = case.arrays()
    edge = Edge(weights, places, known)
    return network(_network(points, compiled), points, weights, edge), inputs


def _rosenbrock(case: Case, compiled: Function) -> Built:
    inputs = case.arrays()
    n = inputs[0].size

    @compiled
    def product(x: Array, v: Array, out: Array) -> None:
        n = x.size
        out[0] = (1200 * x[0] * x[0] - 400 * x[1] + 2) * v[0] - 400 * x[0] * v[1]
        for i in range(1, n - 1):
            curvature = 1200 * x[i] * x[i] - 400 * x[i + 1] + 202
            out[i] = curvature * v[i] - 400 * (x[i] * v[i + 1] + x[i - 1] * v[i - 1])
        out[n - 1] = 200 * v[n - 1] - 400 * x[n - 2] * v[n - 2]

    @compiled
    def nonzeros(x: Array, out: Array) -> None:
        n = x.size
        out[0] = 1200 * x[0] * x[0] - 400 * x[1] + 2
        out[1] = -400 * x[0]
        for i in range(1, n - 1):
            out[3 * i - 1] = -400 * x[i - 1]
            out[3 * i] = 1200 * x[i] * x[i] - 400 * x[i + 1] + 202
            out[3 * i + 1] = -400 * x[i]
        out[3 * n - 4] = -400 * x[n - 2]
        out[3 * n - 3] = 200

    @compiled
    def hessian(x: Array, out: Array) -> None:
        n = x.size
        for i in range(n - 1):
            out[i, i] = 1200 * x[i] * x[i] - 400 * x[i + 1] + (202 if i else 2)
            out[i, i + 1] = out[i + 1, i] = -400 * x[i]
        out[n - 1, n - 1] = 200

    match case["kind"]:
        case "hvp":
            return _filling(product, inputs, np.empty(n))
        case "sparse":
            return _filling(nonzeros, inputs, np.empty(3 * n - 2))
    return _fresh(hessian, inputs, (n, n))


def _brusselator(case: Case, compiled: Function) -> Built:
    inputs, n = case.arrays(), case["n"]
    c = DIFFUSION * (n + 1) ** 2

    @compiled
    def nonzeros(y: Array, out: Array) -> None:
        n = y.size // 2
        lower = out[4 * n - 2 :]
        for i in range(n):
            u, v = y[i], y[n + i]
            q = 2 * u * v
            out[4 * i] = q - (DECAY + 1 + 2 * c)
            lower[4 * i + 1] = -u * u - 2 * c
            out[4 * i + 2 if i < n - 1 else 4 * n - 3] = u * u
            lower[4 * i - 1 if i else 0] = DECAY - q

    @compiled
    def jacobian(y: Array, out: Array) -> None:
        n = y.size // 2
        for i in range(n):
            u, v = y[i], y[n + i]
            q = 2 * u * v
            out[i, i] = q - (DECAY + 1 + 2 * c)
            out[i, n + i] = u * u
            out[n + i, i] = DECAY - q
            out[n + i, n + i] = -u * u - 2 * c
            if i:
                out[i, i - 1] = out[n + i, n + i - 1] = c
            if i < n - 1:
                out[i, i + 1] = out[n + i, n + i + 1] = c

    if case["kind"] == "sparse":
        return _filling(nonzeros, inputs, np.full(8 * n - 4, c))
    return _fresh(jacobian, inputs, (2 * n, 2 * n))


def _chain(case: Case, compiled: Function) -> Built:
    (x,) = case.arrays()
    (a0, b0, c0, d0), (a1, b1, c1, d1) = MIXED

    @compiled
    def mixed(x: Array, g: Array) -> float:
        total = 0.0
        for i in range(x.size):
            y = x[i]
            q0 = math.sin(a0 * y) + y
            t0 = math.tanh(b0 * q0 * q0)
            v0 = d0 * math.exp(t0 * y - c0)
            q1 = math.sin(a1 * v0) + y
            t1 = math.tanh(b1 * q1 * q1)
            v1 = d1 * math.exp(t1 * y - c1)
            total += v1
            m1 = 2 * b1 * q1 * (v1 * y * (1 - t1 * t1))
            n0 = v0 * a1 * m1 * math.cos(a1 * v0)
            m0 = 2 * b0 * q0 * (n0 * y * (1 - t0 * t0))
            g[i] = v1 * t1 + m1 + n0 * t0 + m0 + a0 * m0 * math.cos(a0 * y)
        return total

    (k0, l0, m0, o0, p0), (k1, l1, m1, o1, p1) = ARITHMETIC

    @compiled
    def arithmetic(x: Array, g: Array) -> float:
        total = 0.0
        for i in range(x.size):
            y = x[i]
            u0 = k0 * y + y
            q0 = l0 * u0 * u0 - y
            r0 = q0 * y + m0
            v0 = o0 * r0 * r0 + p0
            u1 = k1 * v0 + y
            q1 = l1 * u1 * u1 - y
            r1 = q1 * y + m1
            total += o1 * r1 * r1 + p1
            e1 = 2 * o1 * r1
            f1 = 2 * l1 * u1 * e1 * y
            e0 = 2 * o0 * r0 * k1 * f1
            f0 = 2 * l0 * u0 * e0 * y
            g[i] = e1 * q1 - e1 * y + f1 + e0 * q0 - e0 * y + f0 + k0 * f0
        return total

    return _summing(mixed if case["kind"] == "mixed" else arithmetic, [x], np.empty_like(x))


def _regression(case: Case, compiled: Function) -> Built:
    inputs = case.arrays()
    one = inputs[0].dtype.type(1)
    zero, share = one * 0, one / len(inputs[0])

    @compiled
    def regression(x: Array, y: Array, w: Array, g: Array) -> float:
        loss = 0.0
        g[:] = zero
        for i in range(x.shape[0]):
            t = zero
            for j in range(x.shape[1]):
                t += x[i, j] * w[j]
            e = math.exp(-t * y[i])
            loss += math.log1p(e)
            q = -y[i] * e / (one + e) * share
            for j in range(x.shape[1]):
                g[j] += q * x[i, j]
        return loss / x.shape[0]

    return _summing(regression, inputs, np.empty_like(inputs[2]))


def _atoms(case: Case, compiled: Function) -> Built:
    inputs = case.arrays()

    @compiled
    def energy(x: Array, g: Array) -> float:
        total = 0.0
        g[:] = 0
        for i in range(x.shape[0]):
            for j in range(i + 1, x.shape[0]):
                dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
                near = 1 / (dx * dx + dy * dy + dz * dz)
                s = near * near * near
                pull = (24 * s - 48 * s * s) * near
                total += s * s - s
                g[i, 0] += pull * dx
                g[i, 1] += pull * dy
                g[i, 2] += pull * dz
                g[j, 0] -= pull * dx
                g[j, 1] -= pull * dy
                g[j, 2] -= pull * dz
        return 4 * total

    return _summing(energy, inputs, np.empty_like(inputs[0]))


_BUILDERS: dict[str, Callable[[Case, Function], Built]] = {
    "W1": _tanh,
    "W2": _pinn,
    "W5": _rosenbrock,
    "W6": _brusselator,
    "W8": _chain,
    "W9": _regression,
    "W10": _atoms,
    "W12": _step,
}
