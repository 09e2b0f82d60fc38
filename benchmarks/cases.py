"""What is measured: twelve workloads, their cases, and seeded input arrays, with NumPy alone.

Every tool gets the same arrays, and gives a list of arrays in the order that is said here.

- W1: the derivative of tanh of some order, at each of n points.
- W2: a physics-informed network 2-50-50-50-50-1 with tanh for Burgers' equation; the mean squared
  residual at N points (x, t), and its gradient for each weight and bias.
- W3: a classifier 784-256-10 with tanh and softmax; mean cross entropy and gradients.
- W4: a mixture of K Gaussians in d dimensions with a Wishart prior, as in ADBench; the logarithm
  of the posterior, and its gradients for weights, means and inverse covariance factors.
- W5: the chained Rosenbrock function: Hessian times vector, the Hessian, its nonzeros by rows.
- W6: the Jacobian of a Brusselator in one dimension with n points, and its nonzeros by rows.
- W7: an LSTM over T steps; mean squared error and its gradients. In primgraph the steps are
  written one by one, or as a `scan` where the case says so; others take what is faster.
- W8: elementwise chains, with transcendental functions and without; the sum and its gradient.
- W9: logistic regression; the mean loss and its gradient.
- W10: the energy of n atoms that attract and repel each other in pairs (Lennard-Jones), and its
  gradient, which is minus the forces.
- W11: a block of a transformer with layer normalisation before attention and before the layers with
  gelu (its approximation by tanh); mean squared error and gradients.
- W12: a step of examples/burgers.py: the loss of W2 with a smaller network, and the mean squared
  error at points of the edge; the value and gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

WIDTHS = {"W2": (2, 50, 50, 50, 50, 1), "W12": (2, 20, 20, 20, 20, 1)}
VISCOSITY = 0.01 / np.pi
# Factors and offsets of the two blocks of each chain of W8.
MIXED = ((1.3, 0.7, 0.2, 0.9), (0.8, 1.1, 0.1, 0.6))
ARITHMETIC = ((0.5, 0.4, 0.3, 0.7, 0.1), (0.6, 0.3, 0.2, 0.8, 0.05))
# The rates of the Brusselator, its diffusion, and its values at the two ends.
FEED, DECAY, DIFFUSION, ENDS = 1.0, 3.0, 0.02, (1.0, 3.0)
# What layer normalisation adds to a variance, and the two numbers of the approximate gelu,
# z (1 + tanh(steepness (z + bending z^3))) / 2.
EPSILON, STEEPNESS, BENDING = 1e-5, (2 / np.pi) ** 0.5, 0.044715

DTYPES: dict[str, Any] = {"f64": np.float64, "f32": np.float32}
# How far results may be from those of float64, relative to the largest element of each array.
TOLERANCES = {"f64": 1e-9, "f32": 2e-5}

SIZES: dict[str, list[dict[str, Any]]] = {
    "W1": [{"n": n, "order": k} for n in (1, 1000, 1_000_000) for k in range(1, 7)],
    "W2": [{"N": n, "dt": t} for n in (256, 2048, 16384) for t in DTYPES],
    "W3": [{"B": 128, "dt": "f32"}],
    "W4": [{"d": d, "K": 25, "N": 1000} for d in (10, 32, 64)],
    "W5": [{"kind": "hvp", "n": n} for n in (10, 1000, 100_000)]
    + [{"kind": "hess", "n": n} for n in (10, 1000)]
    + [{"kind": "sparse", "n": n} for n in (1000, 10_000, 100_000)],
    "W6": [{"kind": "dense", "n": n} for n in (100, 1000)]
    + [{"kind": "sparse", "n": n} for n in (100, 1000, 10_000)],
    "W7": [{"T": 20, "H": 64, "B": 16, "dt": t} for t in DTYPES]
    + [{"kind": "scan", "T": 20, "H": 64, "B": 16, "dt": t} for t in DTYPES],
    "W8": [{"kind": k, "n": n} for k in ("mixed", "arith") for n in (1000, 10**6, 10**7)],
    "W9": [{"N": 100_000, "d": 100, "dt": t} for t in DTYPES],
    "W10": [{"n": 200}],
    "W11": [{"rows": 128, "d": 64, "heads": 4, "dt": t} for t in DTYPES],
    "W12": [{"N": 2000, "edge": 200}],
}
SHORT_SIZES: dict[str, list[dict[str, Any]]] = {
    "W1": [{"n": n, "order": k} for n in (1, 100) for k in (1, 3)],
    "W2": [{"N": 20, "dt": t} for t in DTYPES],
    "W3": [{"B": 16, "dt": "f32"}],
    "W4": [{"d": 3, "K": 4, "N": 50}],
    "W5": [{"kind": k, "n": 12} for k in ("hvp", "hess", "sparse")],
    "W6": [{"kind": k, "n": 9} for k in ("dense", "sparse")],
    "W7": [{"T": 3, "H": 8, "B": 4, "dt": t} for t in DTYPES]
    + [{"kind": "scan", "T": 3, "H": 8, "B": 4}],
    "W8": [{"kind": k, "n": 300} for k in ("mixed", "arith")],
    "W9": [{"N": 200, "d": 7, "dt": t} for t in DTYPES],
    "W10": [{"n": 9}],
    "W11": [{"rows": 6, "d": 8, "heads": 2, "dt": t} for t in DTYPES],
    "W12": [{"N": 20, "edge": 6}],
}


@dataclass(frozen=True, slots=True)
class Case:
    """One workload in one size. `params` has what `SIZES` says, and `dt` in any case.

    Inputs are rounded to the dtype that `rounded` names, and computed with in that of `dt`.
    """

    workload: str
    label: str
    params: dict[str, Any]
    rounded: str

    def __getitem__(self, name: str) -> Any:
        return self.params[name]

    @property
    def name(self) -> str:
        return f"{self.workload} {self.label}"

    @property
    def dtype(self) -> Any:
        return DTYPES[self.params["dt"]]

    @property
    def tolerance(self) -> float:
        return TOLERANCES[self.params["dt"]]

    def arrays(self) -> list[Array]:
        """The inputs, the same in every process."""
        found = _INPUTS[self.workload](np.random.default_rng(20), self.params)
        floats = DTYPES[self.rounded]
        return [a if a.dtype.kind != "f" else np.array(a, floats).astype(self.dtype) for a in found]

    def exact(self) -> Case:
        """The same case with the same inputs, computed in float64."""
        return replace(self, params={**self.params, "dt": "f64"})


def _label(params: dict[str, Any]) -> str:
    shown = [f"{k}={v:g}".replace("e+0", "e") for k, v in params.items() if k not in ("kind", "dt")]
    ends = [params["dt"]] if "dt" in params else []
    return " ".join([*([params["kind"]] if "kind" in params else []), *shown, *ends])


def cases(only: Sequence[str] = (), *, short: bool = False) -> Iterator[Case]:
    """The cases whose names begin with one of `only`, all if it is empty."""
    for workload, sizes in (SHORT_SIZES if short else SIZES).items():
        for params in sizes:
            filled = {"dt": "f64", **params}
            case = Case(workload, _label(params), filled, filled["dt"])
            if not only or any(_begins(case.name, start) for start in only):
                yield case


def _begins(name: str, start: str) -> bool:
    """Whether the name of a case begins so; "W1" alone is no beginning of "W10"."""
    whole = " " in start or not name[len(start) :][:1].isdigit()
    return name.startswith(start) and whole


def _points(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    return [rng.uniform(-1.5, 1.5, p["n"])]


def _network(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Points (x, t) by rows, then weights and biases in turn."""
    return [_inside(rng, p["N"]), *_layers(rng, WIDTHS["W2"])]


def _inside(rng: np.random.Generator, count: int) -> Array:
    return np.column_stack([rng.uniform(-1, 1, count), rng.uniform(0, 1, count)])


def _layers(rng: np.random.Generator, widths: Sequence[int]) -> list[Array]:
    found = []
    for n, m in pairwise(widths):
        found += [rng.normal(scale=n**-0.5, size=(n, m)), rng.normal(scale=0.1, size=m)]
    return found


def _step(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Points (x, t) inside, those of the edge and what is known there, then the weights."""
    edge = rng.normal(size=(p["edge"], 1))
    return [_inside(rng, p["N"]), _inside(rng, p["edge"]), edge, *_layers(rng, WIDTHS["W12"])]


def _classifier(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Images, labels, then weights and biases in turn."""
    return [
        rng.uniform(size=(p["B"], 784)),
        rng.integers(0, 10, p["B"]),
        rng.normal(scale=1 / 28, size=(784, 256)),
        np.zeros(256),
        rng.normal(scale=1 / 16, size=(256, 10)),
        np.zeros(10),
    ]


def _mixture(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Weights, means, factors and samples.

    A row of the factors has the logarithms of a diagonal, then what is below it, by columns.
    """
    d, k, n = p["d"], p["K"], p["N"]
    return [
        rng.normal(size=k),
        rng.uniform(size=(k, d)),
        rng.normal(scale=0.3, size=(k, d * (d + 1) // 2)),
        rng.normal(size=(n, d)),
    ]


def below_diagonal(d: int) -> tuple[Array, Array]:
    """Rows and columns of what is below the diagonal of a matrix, column by column."""
    column, row = np.triu_indices(d, 1)
    return row, column


def _rosenbrock(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """A point, and a direction where one is needed."""
    point = rng.uniform(-1.2, 1.2, p["n"])
    return [point, rng.normal(size=p["n"])] if p["kind"] == "hvp" else [point]


def _brusselator(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """The two concentrations, one after the other."""
    n = p["n"]
    waves = 1 + np.sin(2 * np.pi * np.linspace(0, 1, n))
    return [np.concatenate([waves, 3 + 0.1 * rng.normal(size=n)])]


def _lstm(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Inputs, targets, input weights, state weights, biases; gates in, forget, out, cell."""
    t, h, b = p["T"], p["H"], p["B"]
    return [
        rng.normal(size=(t, b, h)),
        rng.normal(scale=0.5, size=(t, b, h)),
        rng.normal(scale=h**-0.5, size=(h, 4 * h)),
        rng.normal(scale=h**-0.5, size=(h, 4 * h)),
        rng.normal(scale=0.1, size=4 * h),
    ]


def _chain(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    return [rng.uniform(-1, 1, p["n"])]


def _regression(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Samples, labels that are -1 or 1, weights."""
    return [
        rng.normal(size=(p["N"], p["d"])),
        np.where(rng.uniform(size=p["N"]) < 0.5, -1.0, 1.0),
        rng.normal(scale=0.1, size=p["d"]),
    ]


def _atoms(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Places by rows, near those of a lattice."""
    side = int(np.ceil(p["n"] ** (1 / 3)))
    lattice = np.indices((side, side, side)).reshape(3, -1).T[: p["n"]]
    return [1.1 * lattice + rng.uniform(-0.1, 0.1, size=lattice.shape)]


def _block(rng: np.random.Generator, p: dict[str, Any]) -> list[Array]:
    """Inputs, targets, and by pairs of a factor and what is added: normalisation, the layer that
    makes queries, keys and values, the one after attention, normalisation, two layers.
    """
    n, d = p["rows"], p["d"]
    found = [rng.normal(size=(n, d)), rng.normal(size=(n, d))]
    for shape in ((d,), (d, 3 * d), (d, d), (d,), (d, 4 * d), (4 * d, d)):
        one = len(shape) == 1
        found += [
            rng.uniform(0.5, 1.5, shape) if one else rng.normal(scale=shape[0] ** -0.5, size=shape),
            rng.normal(scale=0.1, size=shape[-1]),
        ]
    return found


_INPUTS = {
    "W1": _points,
    "W2": _network,
    "W3": _classifier,
    "W4": _mixture,
    "W5": _rosenbrock,
    "W6": _brusselator,
    "W7": _lstm,
    "W8": _chain,
    "W9": _regression,
    "W10": _atoms,
    "W11": _block,
    "W12": _step,
}


def hessian_nonzeros(n: int) -> tuple[Array, Array]:
    """Rows and columns of the nonzeros of the Hessian of W5, row by row."""
    return _nonzeros([(i, j) for i in range(n) for j in (i - 1, i, i + 1) if 0 <= j < n])


def jacobian_nonzeros(n: int) -> tuple[Array, Array]:
    """Rows and columns of the nonzeros of the Jacobian of W6, row by row."""
    found = []
    for row in range(2 * n):
        first = row - row % n
        near = [j for j in (row - 1, row, row + 1) if first <= j < first + n]
        found += [(row, j) for j in sorted([*near, (row + n) % (2 * n)])]
    return _nonzeros(found)


def _nonzeros(pairs: list[tuple[int, int]]) -> tuple[Array, Array]:
    rows, columns = np.array(pairs).T
    return rows, columns


def hessian_colours(n: int) -> Array:
    """Directions whose Hessian products hold every nonzero of the Hessian of W5 alone."""
    return (np.arange(n) % 3 == np.arange(3)[:, None]).astype(float)


def jacobian_colours(n: int) -> Array:
    """The same for the Jacobian of W6: three directions for each of the two concentrations."""
    half = hessian_colours(n)
    empty = np.zeros_like(half)
    return np.block([[half, empty], [empty, half]])
