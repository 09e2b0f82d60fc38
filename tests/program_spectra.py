"""Random symmetric functions of eigenvalues, some of which are equal.

Terms are sums of functions of the eigenvalues, combined in steps. A trace of a function of the
matrix is the same sum, and its derivatives know nothing of eigenvalues: that is the oracle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg

_LARGEST = 5
_STEPS = 4
_ROUNDING = 1e-7

# Functions of a number, and of a matrix; their sum over eigenvalues is a trace.
_TERMS: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (lambda w: w, lambda a: a),
    (lambda w: w**2, lambda a: a @ a),
    (lambda w: w**3, lambda a: a @ a @ a),
    (lambda w: pg.exp(w), lambda a: pg.linalg.expm(a)),
    (lambda w: 1.0 / (3.0 + w), lambda a: pg.linalg.inv(a + 3.0 * np.eye(a.shape[-1]))),
)

_COMBINED: tuple[Callable[[Any, Any], Any], ...] = (
    lambda u, v: u + v,
    lambda u, v: u * v,
    lambda u, v: pg.sin(u) * v,
    lambda u, v: u + pg.tanh(v),
    lambda u, v: pg.logaddexp(u, v),
)


@dataclass(frozen=True)
class SpectralProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """Choices of a step, which do not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 29, step)))

    @cached_property
    def count(self) -> int:
        """How many steps can be left out."""
        return self.draw(1).below(_STEPS)

    @cached_property
    def feed(self) -> np.ndarray:
        """A symmetric matrix with some equal eigenvalues, in a basis of its own or in none."""
        draw = self.draw(2)
        n = draw.below(_LARGEST + 1, 1)
        w = draw.rng.choice([-0.5, 0.0, 0.75, 1.0], n)
        q = np.eye(n) if draw.chance(0.3) else np.linalg.qr(draw.rng.normal(size=(n, n)))[0]
        a = (q * w) @ q.T
        return np.asarray((a + a.T) / 2)

    def by_eigenvalues(self, a: Any) -> Any:
        """The function of the matrix, by its eigenvalues."""
        w = pg.linalg.eigvalsh(a)
        return self._combined(lambda term: pg.sum(term[0](w)))

    def by_traces(self, a: Any) -> Any:
        """The same, by traces of its symmetric part."""
        even = (a + a.T) * 0.5
        return self._combined(lambda term: pg.trace(term[1](even)))

    def _combined(self, made: Callable[[Any], Any]) -> Any:
        found = made(self.draw(10).choose(_TERMS))
        for i in range(self.count):
            if i not in self.left_out:
                draw = self.draw(11 + i)
                found = draw.choose(_COMBINED)(found, made(draw.choose(_TERMS)))
        return found

    def __str__(self) -> str:
        graph = pg.trace(self.by_eigenvalues, pg.spec(self.feed.shape))
        return f"spectral program {self.seed}\n{graph}\nfeed:\n  {self.feed!r}"


def check_spectral(program: SpectralProgram, seen: Counter[str] | None = None) -> None:
    """Demand that gradients and second derivatives are those of traces."""
    seen = Counter() if seen is None else seen
    a, d = program.feed, program.draw(3).rng.normal(size=program.feed.shape)
    d = d + d.T

    def derivatives(function: Callable[[Any], Any], in_reverse: bool) -> Any:
        def asked(x: Any) -> list[Any]:
            slope = pg.grad(function(x), x, materialize_grads=True)
            if in_reverse:
                return [slope, pg.grad(pg.sum(slope * d), x, materialize_grads=True)]
            return [slope, pg.forward_grad(slope, x, d)]

        return pg.compile(pg.trace(asked, pg.spec(a.shape)))(a)

    truth = derivatives(program.by_traces, True)
    for in_reverse in (True, False):
        found = derivatives(program.by_eigenvalues, in_reverse)
        for what, one, other in zip(("gradient", "second derivative"), found, truth, strict=True):
            one = np.zeros_like(other) if one is None else one
            size = 1 + np.max(np.abs(other))
            fine = np.max(np.abs(one - other)) <= _ROUNDING * size
            demand(fine, f"{what} of a function of eigenvalues:\n{one!r}, not\n{other!r}")
    seen["spectral: programs"] += 1
