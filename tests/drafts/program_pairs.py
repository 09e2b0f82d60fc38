"""Random programs in which products are added and subtracted side by side.

Rotations, products of quaternions, complex quotients and bilinear maps of components that are
stacked, once or in loops. Compilers have instructions for such pairs that round a product and a
sum once. None of the primitives may round otherwise in a kernel: results are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.transforms import clean_up, lower

Components = list[Any]
Rule = Callable[[Components, Components], Components]

_LEADS = ((), (1,), (2,), (5,), (17,), (3, 4), (70,))


def _rotated(p: Components, a: Components) -> Components:
    return [p[0] * a[0] - p[1] * a[1], p[0] * a[1] + p[1] * a[0]]


def _rotated_back(p: Components, a: Components) -> Components:
    return [p[0] * a[0] + p[1] * a[1], p[1] * a[0] - p[0] * a[1]]


def _quotient(p: Components, a: Components) -> Components:
    size = a[0] ** 2 + a[1] ** 2
    return [x / size for x in _rotated_back(p, a)]


def _quaternion(p: Components, a: Components) -> Components:
    return [
        p[0] * a[0] - p[1] * a[1] - p[2] * a[2] - p[3] * a[3],
        p[0] * a[1] + p[1] * a[0] + p[2] * a[3] - p[3] * a[2],
        p[0] * a[2] - p[1] * a[3] + p[2] * a[0] + p[3] * a[1],
        p[0] * a[3] + p[1] * a[2] - p[2] * a[1] + p[3] * a[0],
    ]


def _complex_quotient(p: Components, a: Components) -> Components:
    z = pg.complex(p[0], p[1]) / pg.complex(a[0], a[1])
    return [pg.real(z), pg.imag(z)]


def _bilinear(rng: np.random.Generator, width: int) -> Rule:
    """Return a map to sums of two or three products, of random components and signs."""
    rows = [rng.integers(width, size=(int(rng.integers(2, 4)), 2)).tolist() for _ in range(width)]
    signs = rng.random((width, 3)) < 0.5

    def rule(p: Components, a: Components) -> Components:
        found = []
        for row, minus in zip(rows, signs, strict=True):
            (i, k), *others = row
            total = p[i] * a[k]
            for (i, k), subtracted in zip(others, minus, strict=False):
                term = p[i] * (a[k] if (i + k) % 2 else p[k])
                total = total - term if subtracted else total + term
            found.append(total)
        return found

    return rule


def _rule(rng: np.random.Generator) -> tuple[Rule, int]:
    """Return a rule, and how many components it takes and gives."""
    kind = int(rng.integers(6))
    if kind == 5:
        width = int(rng.choice([2, 3, 4, 8]))
        return _bilinear(rng, width), width
    if kind == 4:
        return _quaternion, 4
    return (_rotated, _rotated_back, _quotient, _complex_quotient)[kind], 2


def pair_program(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of that seed, without operators, and its feeds."""
    rng = np.random.default_rng((seed, 91))
    rule, width = _rule(rng)
    dtype = np.dtype("f4" if rng.random() < 0.3 else "f8")
    lead = _LEADS[int(rng.integers(len(_LEADS)))]
    axis = int(rng.choice([0, -1]))
    shape = (width, *lead) if axis == 0 else (*lead, width)
    # One angle for all, or one for each.
    others = shape if rng.random() < 0.5 else (width,)
    kind, trips = int(rng.integers(4)), int(rng.integers(1, 9))

    def components(x: Any) -> Components:
        if x.ndim == 1:
            return [x[i] for i in range(width)]
        return [x[i] if axis == 0 else x[..., i] for i in range(width)]

    def step(p: Any, a: Any) -> Any:
        return pg.stack(rule(components(p), components(a)), axis=axis)

    def program(p: Any, a: Any) -> Any:
        if kind == 0:
            return step(p, a)
        if kind == 1:
            return pg.fori_loop(0, trips, lambda _, x: step(x, a), p)
        if kind == 2:
            return pg.scan(lambda x, _: (step(x, a),) * 2, p, length=trips)
        return pg.map(lambda x: step(x, a), pg.stack([p, 0.3 * p, p - 0.7]))

    # Numbers near one, so that products of several trips neither over- nor underflow.
    feeds = [
        (rng.uniform(0.5, 1.2, s) * rng.choice([-1, 1], s)).astype(dtype) for s in (shape, others)
    ]
    graph = pg.trace(program, *(pg.spec(x.shape, x.dtype) for x in feeds))
    return clean_up(lower(graph)), feeds
