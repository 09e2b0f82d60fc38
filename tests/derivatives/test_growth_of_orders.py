"""How many equations the derivatives of order k along a line have, of all public functions.

A recurrence takes about k products for order k, so k**2 for all orders up to k. Applying derivative
rules to their own results would double the equations with each order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import primgraph as pg
import primgraph.numpy
import primgraph.scipy.linalg
import primgraph.scipy.special
from primgraph.base.debug_mode import debug
from primgraph.transforms import clean_up, lower, taylor
from primgraph.transforms.pipeline import optimize_graph

NAMESPACES = {
    "numpy": pg.numpy,
    "primgraph": pg,
    "linalg": pg.linalg,
    "fft": pg.fft,
    "scipy.linalg": pg.scipy.linalg,
    "scipy.special": pg.scipy.special,
}
# The number of functions that are tried at least.
LEAST = {
    "numpy": 150,
    "primgraph": 30,
    "linalg": 25,
    "fft": 10,
    "scipy.linalg": 25,
    "scipy.special": 40,
}
# Names of modules and tests of NumPy's.
OTHERS = {"core", "f2py", "testing", "ctypeslib", "test"}
# Functions with derivatives by several parameters, each a primitive: mixed orders by parameters and
# the argument, of which there are more, are not counted.
BY_ARGUMENT = {"hyp1f1", "hyp2f1"}
# The shapes of the arguments: of the first that a function accepts.
MATRIX, VECTOR = (3, 3), (3,)
ARGUMENTS = [
    (MATRIX,),
    (MATRIX, MATRIX),
    (VECTOR,),
    (VECTOR, VECTOR),
    (MATRIX, VECTOR),
    (VECTOR, VECTOR, VECTOR),
    (MATRIX, MATRIX, MATRIX, MATRIX),
]
ORDERS = (1, 4, 7)


def sizes(graph: pg.Graph, last_only: bool) -> tuple[int, ...]:
    """The number of equations of the derivatives of `ORDERS`, each alone, along all inputs."""
    graph = clean_up(lower(graph))
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_inexact]
    wrt = wrt[-1:] if last_only else wrt
    found = []
    for k in ORDERS:
        jet = taylor(graph, k, wrt, seeds=[[1]] * len(wrt))
        last = jet.outputs[len(graph.outputs) :][k - 1 :: k]
        found.append(max(1, len(optimize_graph(jet.with_outputs(last)))))
    return tuple(found)


def traced(function: Callable[..., Any], last_only: bool) -> tuple[int, ...] | None:
    """Sizes of a function of arrays; None if it has no results with derivatives."""
    for shapes in ARGUMENTS:
        try:
            graph = pg.trace(lambda *xs: function(*xs), *map(pg.spec, shapes))
            if any(v.type.is_inexact for v in graph.outputs):
                return sizes(graph, last_only)
        except (pg.PrimgraphError, TypeError):
            continue
    return None


def functions(namespace: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of a namespace that those before it do not have."""
    before = list(NAMESPACES)[: list(NAMESPACES).index(namespace)]
    known = {name for other in before for name in NAMESPACES[other].__all__}
    for name in sorted({*NAMESPACES[namespace].__all__} - known - OTHERS):
        found = getattr(NAMESPACES[namespace], name, None)
        if callable(found) and not isinstance(found, type):
            yield name, found


@pytest.mark.long
@pytest.mark.parametrize("name", NAMESPACES)
def test_equations_of_all_public_functions_grow_as_a_polynomial_of_the_order(name: str) -> None:
    factors, faults = [], []
    for function, found in functions(name):
        with debug(False):
            count = traced(found, function in BY_ARGUMENT)
        if count is None:
            continue
        first, middle, last = count
        factor = (last / first) ** (1 / 6)
        exponent = math.log(last / middle) / math.log(7 / 4)
        factors.append(factor)
        # Many functions begin with one or two equations, so that even a line is steeper than 1.5.
        if factor > 1.5 and exponent > 2.45:
            faults.append(f"{function}: {count}")
    assert not faults
    assert math.exp(np.mean(np.log(factors))) <= 1.5
    assert len(factors) >= LEAST[name]


RNG = np.random.default_rng(3)
START, LINE = RNG.uniform(-0.5, 0.5, MATRIX) + np.diag([5.0, 9, 14]), RNG.normal(size=MATRIX)


def symmetric(a: Any) -> Any:
    return a + np.swapaxes(a, -1, -2)


def eigenvalues(a: Any) -> Any:
    return np.sort_complex(np.linalg.eigvals(a))


# Functions of matrices, with the same of complex ones, which is analytic.
ANALYTIC = {
    "expm": (pg.linalg.expm, scipy.linalg.expm),
    "sqrtm": (pg.linalg.sqrtm, scipy.linalg.sqrtm),
    "logm": (pg.linalg.logm, scipy.linalg.logm),
    "expm_frechet": (
        lambda a: pg.scipy.linalg.expm_frechet(a, START, compute_expm=False),
        lambda a: scipy.linalg.expm_frechet(a, START + 0j, compute_expm=False),
    ),
    "eigvalsh": (lambda a: pg.linalg.eigvalsh(a + a.T), lambda a: eigenvalues(symmetric(a))),
    "eig": (lambda a: pg.sort(pg.real(pg.linalg.eigvals(a + 0j))), eigenvalues),
    "eigh": (
        lambda a: pg.linalg.eigh(a + a.T)[1] ** 2,
        lambda a: projections(symmetric(a)),
    ),
}


def projections(a: Any) -> Any:
    """The squares of the elements of the eigenvectors of complex symmetric matrices."""
    w, v = np.linalg.eig(a)
    v = v[:, np.argsort(w.real)]
    return v**2 / np.sum(v**2, axis=0)


def by_cauchy(function: Callable[[Any], Any], orders: int, radius: float = 0.4) -> list[Any]:
    """The derivatives along the line at 0, by integrals along a circle."""
    turns = np.exp(2j * np.pi * np.arange(32) / 32)
    values = np.array([function(START + radius * t * LINE) for t in turns])
    terms = np.fft.fft(values, axis=0)[: orders + 1] / 32
    return [term.real * math.factorial(k) / radius**k for k, term in enumerate(terms)]


@pytest.mark.parametrize("name", ANALYTIC)
def test_derivatives_of_orders_up_to_7_are_those_of_integrals_around_the_point(name: str) -> None:
    function, analytic = ANALYTIC[name]
    graph = lower(pg.trace(lambda t: function(START + t * LINE), pg.spec(())))
    found = pg.compile(taylor(graph, 7, [0], seeds=[[1]]))(0.0, 1.0)
    for ours, theirs in zip(found, by_cauchy(analytic, 7), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7 * np.abs(theirs).max())
