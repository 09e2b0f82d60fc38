"""Elementwise functions that are written as several of NumPy's, because these are faster together.

NumPy computes `logaddexp` element by element, and has no logistic function. What is composed here
is accurate to a few units in the last place for every number, and right for NaN and infinities.
"""

from __future__ import annotations

import math

from primgraph.codegen.notation import Spelling, Target
from primgraph.ir.types import FLOAT16

# Arrays with fewer elements take NumPy's own function, as calls would cost more than elements.
_FEW = 64

# Beyond this the logistic function is 1, while the exponential is still far from overflow.
_SATURATED, _SATURATED_HALF = 64.0, 11.0


def write_rsqrt(to: Target) -> list[str]:
    one = to.scalar(1.0, to.step.results[0].dtype)
    return [
        f"{to.np('sqrt')}({to.args[0]}, {to.out})",
        f"{to.np('divide')}({one}, {to.out}, {to.out})",
    ]


def write_sigmoid(to: Target) -> list[str]:
    """`e / (e + 1)` for `e = exp(min(x, c))`, which keeps the small numbers for negative `x`."""
    dtype, (x, out) = to.step.results[0].dtype, (to.args[0], to.out)
    largest = to.scalar(_SATURATED_HALF if dtype == FLOAT16 else _SATURATED, dtype)
    total = to.scratch()
    return [
        f"{to.np('minimum')}({x}, {largest}, out={out})",
        f"{to.np('exp')}({out}, {out})",
        f"{to.np('add')}({out}, {to.scalar(1.0, dtype)}, {total})",
        f"{to.np('divide')}({out}, {total}, {out})",
    ]


def logaddexp(whole: Spelling) -> Spelling:
    """The row of `logaddexp`, in which `whole` is that of NumPy's function."""

    def write(to: Target) -> list[str]:
        type = to.step.results[0]
        # Halves are computed in float32, so that NumPy's function rounds them once only.
        if type.dtype == FLOAT16 or type.size < _FEW:
            return whole.write(to)
        return _write_logaddexp(to)

    return Spelling(whole.read, write, whole.broadcasts, whole.in_place, whole.inline)


def _write_logaddexp(to: Target) -> list[str]:
    """`max(x, y) + log1p(exp(-|x - y|))`; of equal infinities, the difference counts as 0."""
    zero, (x, y), out = to.scalar(0.0, to.step.results[0].dtype), to.args, to.out
    gap = to.scratch()
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
