"""Optimizers by the names that they and their arguments have in `torch.optim`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from primgraph import optimizer as pg
from primgraph.compat import adam as compat
from primgraph.compat.absent import absent

__all__ = ["SGD", "Adam", "AdamW"]


def SGD(
    params: Iterable[Any],
    lr: float = 1e-3,
    momentum: float = 0.0,
    *,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> pg.Optimizer:
    """Return a `pg.optimizer.SGD`, or with a momentum a `pg.optimizer.Momentum`.

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> torch.sum(w * w).backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8, 0.8])
    """
    if not momentum:
        return pg.SGD(lr, parameters=params, weight_decay=weight_decay)
    return pg.Momentum(lr, momentum, nesterov, parameters=params, weight_decay=weight_decay)


def Adam(
    params: Iterable[Any],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> pg.Optimizer:
    """Return an Adam optimizer with `eps` and step counts as torch has them.

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> torch.sum(w * w).backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9, 0.9])
    """
    return compat.Adam(lr, *betas, eps, parameters=params, weight_decay=weight_decay)


def AdamW(
    params: Iterable[Any],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> pg.Optimizer:
    """Return an Adam optimizer with decay of the weights themselves.

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> torch.sum(w * w).backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.85, 0.85])
    """
    return compat.AdamW(lr, *betas, eps, parameters=params, weight_decay=weight_decay)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
