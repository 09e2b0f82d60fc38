"""Elementwise functions that are written as several of NumPy's, because these are faster together.

NumPy computes `logaddexp` element by element, and has no logistic function. What is composed here
is accurate to a few units in the last place for every number, and right for NaN and infinities.
"""

from __future__ import annotations

import math
from dataclasses import replace

from primgraph.codegen.cards.card import Card
from primgraph.codegen.cards.spelling.notation import Target
from primgraph.codegen.plan.card import Site
from primgraph.codegen.plan.storage.places import Place
from primgraph.ir.types import FLOAT16, scalar_of

# Arrays with fewer elements take NumPy's own function, as calls would cost more than elements.
_FEW = 64

# Beyond this the logistic function is 1, while the exponential is still far from overflow.
_SATURATED, _SATURATED_HALF = 64.0, 11.0


def a_one(site: Site) -> list[Place]:
    dtype = site.step.results[0].dtype
    return [site.number(scalar_of(1, dtype), dtype)]


def write_rsqrt(to: Target) -> list[str]:
    (one,) = to.parts
    return [
        f"{to.np('sqrt')}({to.args[0]}, {to.out})",
        f"{to.np('divide')}({one}, {to.out}, {to.out})",
    ]


def saturation(site: Site) -> list[Place]:
    """The number from which on the logistic function is 1, room for a sum, and 1."""
    dtype = site.step.results[0].dtype
    largest = site.number(_SATURATED_HALF if dtype == FLOAT16 else _SATURATED, dtype)
    return [largest, site.scratch(), site.number(1.0, dtype)]


def write_sigmoid(to: Target) -> list[str]:
    """`e / (e + 1)` for `e = exp(min(x, c))`, which keeps the small numbers for negative `x`."""
    (x, out), (largest, total, one) = (to.args[0], to.out), to.parts
    return [
        f"{to.np('minimum')}({x}, {largest}, out={out})",
        f"{to.np('exp')}({out}, {out})",
        f"{to.np('add')}({out}, {one}, {total})",
        f"{to.np('divide')}({out}, {total}, {out})",
    ]


def logaddexp(whole: Card) -> Card:
    """The card of `logaddexp`, in which `whole` is that of NumPy's function."""

    # Halves are computed in float32, so that NumPy's function rounds them once only.
    def needs(site: Site) -> list[Place]:
        type = site.step.results[0]
        if type.dtype == FLOAT16 or type.size < _FEW:
            return []
        return [site.number(0.0, type.dtype), site.scratch()]

    def write(to: Target) -> list[str]:
        return _write_logaddexp(to) if to.parts else whole.write(to)

    return replace(whole, write=write, needs=needs, ufunc="")


def _write_logaddexp(to: Target) -> list[str]:
    """`max(x, y) + log1p(exp(-|x - y|))`; of equal infinities, the difference counts as 0."""
    (zero, gap), (x, y), out = to.parts, to.args, to.out
    known = [c for c in (to.number(0), to.number(1)) if c is not None]
    lines = [f"{to.np('subtract')}({x}, {y}, {gap})", f"{to.np('absolute')}({gap}, {gap})"]
    if 0 in known:
        lines = [f"{to.np('absolute')}({x if to.number(1) == 0 else y}, {gap})"]
    lines.append(f"{to.np('negative')}({gap}, {gap})")
    if not any(math.isfinite(c) for c in known):
        lines.append(f"{to.np('fmin')}({gap}, {zero}, {gap})")
    return [
        *lines,
        f"{to.np('exp')}({gap}, {gap})",
        f"{to.np('log1p')}({gap}, {gap})",
        f"{to.np('maximum')}({x}, {y}, out={out})",
        f"{to.np('add')}({out}, {gap}, {out})",
    ]
