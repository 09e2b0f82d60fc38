"""Elementwise functions that are composed of several NumPy functions, for speed.

NumPy computes `logaddexp` element by element, and has no logistic function. The compositions are
accurate to a few units in the last place for every number, and correct for NaN and infinities.
"""

from __future__ import annotations

import math
from dataclasses import replace

from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.spelling.notation import Target, statements
from primgraph.ir.types import FLOAT16, scalar_of

# Smaller arrays use NumPy's own function, as the calls would cost more than the elements.
_FEW = 64

# Beyond this the logistic function rounds to 1, while the exponential is still far from overflow.
SATURATED, _SATURATED_HALF = 64.0, 11.0


def a_one(site: Site) -> list[Place]:
    dtype = site.step.results[0].dtype
    return [site.number(scalar_of(1, dtype), dtype)]


write_rsqrt = statements("{np[sqrt]}({0}, {out})", "{np[divide]}({parts[0]}, {out}, {out})")


def saturation(site: Site) -> list[Place]:
    """Return the number from which on the logistic function is 1, a scratch buffer, and 1."""
    dtype = site.step.results[0].dtype
    largest = site.number(_SATURATED_HALF if dtype == FLOAT16 else SATURATED, dtype)
    return [largest, site.scratch(), site.number(1.0, dtype)]


# `e / (e + 1)` for `e = exp(min(x, c))`, which is accurate for negative `x`.
write_sigmoid = statements(
    "{np[minimum]}({0}, {parts[0]}, out={out})",
    "{np[exp]}({out}, {out})",
    "{np[add]}({out}, {parts[2]}, {parts[1]})",
    "{np[divide]}({out}, {parts[1]}, {out})",
)


def logaddexp(whole: Card) -> Card:
    """Return the card of `logaddexp`; `whole` is that of NumPy's function."""

    # float16 is computed in float32, so that NumPy's function rounds only once.
    def needs(site: Site) -> list[Place]:
        type = site.step.results[0]
        if type.dtype == FLOAT16 or type.size < _FEW:
            return []
        return [site.number(0.0, type.dtype), site.scratch()]

    def write(to: Target) -> list[str]:
        return _write_logaddexp(to) if to.parts else whole.write(to)

    return replace(whole, write=write, needs=needs, ufunc="")


def _write_logaddexp(to: Target) -> list[str]:
    """Write `max(x, y) + log1p(exp(-|x - y|))`, with 0 as the difference of equal infinities."""
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
