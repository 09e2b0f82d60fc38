"""Optimizers by the names that they and their arguments have in `oneflow.optim`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from primgraph import optimizer as pg
from primgraph.compat import adam as compat
from primgraph.compat.mirror import mirror

if not TYPE_CHECKING:
    mirror(globals())


def Adam(
    params: Iterable[Any],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> pg.Optimizer:
    """Adam, with one step count for all parameters as OneFlow has it."""
    options: dict[str, Any] = {"parameters": params, "weight_decay": weight_decay}
    return compat.Adam(lr, *betas, eps, counts_apart=False, **options)


def AdamW(
    params: Iterable[Any],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> pg.Optimizer:
    """Adam with decay of the weights themselves, which is 0 by default as in OneFlow."""
    options: dict[str, Any] = {"parameters": params, "weight_decay": weight_decay}
    return compat.AdamW(lr, *betas, eps, counts_apart=False, **options)
