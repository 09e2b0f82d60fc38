"""Random symmetric functions of eigenvalues or singular values, some of which are equal or zero.

Terms are sums of functions of the values, combined in steps. A trace of a function of the matrix,
for singular values of `a.T @ a`, is the same sum, and its derivatives need no decomposition: that
is the oracle.
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
    def singular(self) -> bool:
        """Whether the function is one of singular values."""
        return self.draw(4).chance(0.5)

    @cached_property
    def feed(self) -> np.ndarray:
        """A matrix with some equal values, in a basis of its own or in none."""
        return self._general() if self.singular else self._symmetric()

    @cached_property
    def along(self) -> np.ndarray:
        """A direction to differentiate along, symmetric if the matrix is."""
        draw = self.draw(3)
        d = draw.rng.normal(size=self.feed.shape)
        if np.iscomplexobj(self.feed):
            d = d + 1j * draw.rng.normal(size=d.shape)
        return np.asarray(d if self.singular else d + d.T)

    def _general(self) -> np.ndarray:
        draw = self.draw(2)
        m, n = (int(draw.rng.integers(1, _LARGEST + 1)) for _ in range(2))
        k, kind = min(m, n), draw.choose((float, float, complex))
        s = draw.rng.choice([0.0, 0.0, 0.5, 0.75, 1.0], k)
        if draw.chance(0.3):
            return np.asarray(np.eye(m, k) * s @ np.eye(k, n), kind)
        turns = []
        for size in (m, n):
            z = draw.rng.normal(size=(2, size, k))
            turns.append(np.linalg.qr(z[0] + 1j * z[1] if kind is complex else z[0])[0])
        return np.asarray((turns[0] * s) @ turns[1].conj().T)

    def _symmetric(self) -> np.ndarray:
        draw = self.draw(2)
        n = draw.below(_LARGEST + 1, 1)
        w = draw.rng.choice([-0.5, 0.0, 0.75, 1.0], n)
        q = np.eye(n) if draw.chance(0.3) else np.linalg.qr(draw.rng.normal(size=(n, n)))[0]
        a = (q * w) @ q.T
        return np.asarray((a + a.T) / 2)

    def by_values(self, a: Any) -> Any:
        """The function of the matrix, by its eigenvalues or the squares of its singular values."""
        w = pg.linalg.svdvals(a) ** 2 if self.singular else pg.linalg.eigvalsh(a)
        return self._combined(lambda term: pg.sum(term[0](w)))

    def by_traces(self, a: Any) -> Any:
        """The same, by traces of functions of its symmetric part, or of `a.T @ a`."""
        if self.singular:
            other = pg.conj(a.T) if np.iscomplexobj(self.feed) else a.T
            even = other @ a if a.shape[0] > a.shape[1] else a @ other
        else:
            even = (a + a.T) * 0.5
        return self._combined(lambda term: pg.real(pg.trace(term[1](even))))

    def _combined(self, made: Callable[[Any], Any]) -> Any:
        found = made(self.draw(10).choose(_TERMS))
        for i in range(self.count):
            if i not in self.left_out:
                draw = self.draw(11 + i)
                found = draw.choose(_COMBINED)(found, made(draw.choose(_TERMS)))
        return found

    def __str__(self) -> str:
        graph = pg.trace(self.by_values, pg.spec(self.feed.shape, self.feed.dtype))
        return f"spectral program {self.seed}\n{graph}\nfeed:\n  {self.feed!r}"


def check_spectral(program: SpectralProgram, seen: Counter[str] | None = None) -> None:
    """Demand that gradients and second derivatives are those of traces."""
    seen = Counter() if seen is None else seen
    a, d = program.feed, program.along

    def derivatives(function: Callable[[Any], Any], in_reverse: bool) -> Any:
        def asked(x: Any) -> list[Any]:
            slope = pg.grad(function(x), x, materialize_grads=True)
            if in_reverse:
                return [slope, pg.grad(pg.real(pg.sum(slope * d)), x, materialize_grads=True)]
            return [slope, pg.forward_grad(slope, x, d)]

        return pg.compile(pg.trace(asked, pg.spec(a.shape, a.dtype)))(a)

    truth = derivatives(program.by_traces, True)
    for in_reverse in (True, False):
        found = derivatives(program.by_values, in_reverse)
        for what, one, other in zip(("gradient", "second derivative"), found, truth, strict=True):
            one = np.zeros_like(other) if one is None else one
            size = 1 + np.max(np.abs(other))
            fine = np.max(np.abs(one - other)) <= _ROUNDING * size
            demand(fine, f"{what} of a function of a spectrum:\n{one!r}, not\n{other!r}")
    seen["spectral: programs"] += 1
    seen["spectral: of singular values"] += program.singular
