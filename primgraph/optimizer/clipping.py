"""Gradient clipping."""

from __future__ import annotations

from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.types import FLOAT64
from primgraph.operators import clip, maximum, norm, stack
from primgraph.operators.variable import Variable
from primgraph.optimizer.kinds import Clip, positive, times


@check_arguments
def clip_by_value(low: float, high: float) -> Clip:
    """Limit each element of each gradient to [low, high].

    >>> adam = pg.optimizer.Adam(0.01, grad_clip=pg.optimizer.clip_by_value(-1.0, 1.0))
    """
    if not low <= high:
        raise ArgumentError(f"clip_by_value takes low <= high, not {low!r:.60} and {high!r:.60}")
    return lambda gradients: [clip(g, low, high) for g in gradients]


@check_arguments
def clip_by_norm(limit: float) -> Clip:
    """Scale each gradient whose 2-norm is above `limit` down to it.

    >>> adam = pg.optimizer.Adam(0.01, grad_clip=pg.optimizer.clip_by_norm(1.0))
    """
    positive("the limit of a norm", limit)
    return lambda gradients: [g * _shrink(norm(g), limit) for g in gradients]


@check_arguments
def clip_by_global_norm(limit: float) -> Clip:
    """Scale all gradients by one factor if the 2-norm of them together is above `limit`.

    >>> adam = pg.optimizer.Adam(0.01, grad_clip=pg.optimizer.clip_by_global_norm(1.0))
    """
    positive("the limit of a norm", limit)

    def apply(gradients: list[Variable]) -> list[Variable]:
        together = norm(stack([norm(g).astype(FLOAT64) for g in gradients]))
        factor = _shrink(together, limit)
        return [times(factor, g) for g in gradients]

    return apply


def _shrink(size: Variable, limit: float) -> Variable:
    """The factor that brings `size` down to `limit`, 1 where it is not above it."""
    return limit / maximum(size, limit)
