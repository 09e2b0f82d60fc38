"""Optimizers by the names that they and their arguments have in `megengine.optimizer`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self, final

from primgraph import optimizer as pg
from primgraph.compat import adam as compat
from primgraph.compat.absent import absent

__all__ = ["SGD", "Adam", "AdamW"]


class _Optimizer:
    """An optimizer of primgraph whose methods give it back: `opt.step().clear_grad()`."""

    def __init__(self, rule: pg.Optimizer) -> None:
        self.rule = rule

    def step(self) -> Self:
        """Change the parameters that have a gradient."""
        self.rule.step()
        return self

    def clear_grad(self) -> Self:
        """Let no parameter have a gradient."""
        self.rule.clear_grad()
        return self


@final
class SGD(_Optimizer):
    """`pg.optimizer.SGD`, or with a momentum `pg.optimizer.Momentum`."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        options: dict[str, Any] = {"parameters": params, "weight_decay": weight_decay}
        if momentum:
            super().__init__(pg.Momentum(lr, momentum, nesterov, **options))
        else:
            super().__init__(pg.SGD(lr, **options))


@final
class Adam(_Optimizer):
    """Adam, with `eps` and step counts as MegEngine has them."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        options: dict[str, Any] = {"parameters": params, "weight_decay": weight_decay}
        super().__init__(compat.Adam(lr, *betas, eps, **options))


@final
class AdamW(_Optimizer):
    """Adam with decay of the weights themselves."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        options: dict[str, Any] = {"parameters": params, "weight_decay": weight_decay}
        super().__init__(compat.AdamW(lr, *betas, eps, **options))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
