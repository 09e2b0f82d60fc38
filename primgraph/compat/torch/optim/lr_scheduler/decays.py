"""Schedules that fall, or rise, by a rule of the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from primgraph.compat.torch.optim.lr_scheduler.base import (
    FunctionLR,
    LRScheduler,
    ScaledLR,
    per_group,
    require_optimizer,
    set_option,
)
from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.compat.training import rates
from primgraph.errors import ArgumentError, OptionError


class LambdaLR(FunctionLR):
    """The first rate times `lr_lambda(epoch)`; `lr_lambda` may be one function for each group.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.95**epoch)
    """

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, one for each group."""
        self._warn_outside_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(FunctionLR):
    """The rate before times `lr_lambda(epoch)`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.95)
    """

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, one for each group."""
        self._warn_outside_step()
        if self._is_initial:
            return self._rates()
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * function(self.last_epoch) for group, function in pairs]


class StepLR(ScaledLR):
    """Times `gamma` every `step_size` epochs.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _change(self) -> float | None:
        epoch = self.last_epoch
        return None if epoch == 0 or epoch % self.step_size else self.gamma

    def _closed(self) -> float:
        return float(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(ScaledLR):
    """Times `gamma` at each epoch in `milestones`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [30, 80])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _change(self) -> float | None:
        if self.last_epoch not in self.milestones:
            return None
        return float(self.gamma ** self.milestones[self.last_epoch])

    def _closed(self) -> float:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return float(self.gamma**passed)


class ConstantLR(ScaledLR):
    """Times `factor` before epoch `total_iters`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=4)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise OptionError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _change(self) -> float | None:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _closed(self) -> float:
        return 1.0 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(ScaledLR):
    """Times a factor on the line from `start_factor` to `end_factor`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise OptionError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if not 0 <= end_factor <= 1.0:
            raise OptionError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _change(self) -> float | None:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        return rates.line_factor(
            self.last_epoch, self.total_iters, self.start_factor, self.end_factor
        )

    def _closed(self) -> float:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class ExponentialLR(ScaledLR):
    """Times `gamma` every epoch.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _change(self) -> float | None:
        return None if self._is_initial else self.gamma

    def _closed(self) -> float:
        return float(self.gamma**self.last_epoch)


class PolynomialLR(ScaledLR):
    """Times `(1 - epoch / total_iters)**power`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _change(self) -> float | None:
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return float(((1.0 - self.last_epoch / self.total_iters) / before) ** self.power)

    def _closed(self) -> float:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return float((1.0 - part) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """From the first rate to `eta_min` and back, along a cosine of period `2 * T_max`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, one for each group."""
        self._warn_outside_step()
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        pairs = zip(self.optimizer.param_groups, self.base_lrs, strict=True)
        return [
            rates.chained_cosine(group["lr"], base, self.eta_min, self.last_epoch, self.T_max)
            for group, base in pairs
        ]

    def _get_closed_form_lr(self) -> list[Any]:
        part = self.last_epoch / self.T_max
        return [rates.cosine(base, self.eta_min, part) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the first rate to `eta_min` in each period.

    The first period has `T_0` epochs, and each one `T_mult` times as many as the one before.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=10)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise OptionError(f"Expected positive integer T_0, but got {T_0!r:.40}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise OptionError(f"Expected integer T_mult >= 1, but got {T_mult!r:.40}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, one for each group."""
        self._warn_outside_step()
        part = self.T_cur / self.T_i
        return [rates.cosine(base, self.eta_min, part) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch, or of `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            place: Any = 0 if epoch is None else epoch
            if place < 0:
                raise OptionError(f"Expected non-negative epoch, but got {place!r:.40}")
            self.T_cur, self.T_i = rates.restart(place, self.T_0, self.T_mult)
            self.last_epoch = math.floor(place)
        self._get_lr_called_within_step = True
        self._set(self.get_lr())
        self._get_lr_called_within_step = False


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric has not improved for more than `patience` steps.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> scheduler.step(1.0)
    >>> scheduler.step(1.0)
    >>> [round(rate, 3) for rate in scheduler.get_last_lr()]
    [0.01]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise OptionError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise OptionError(f"mode {mode!r:.40} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise OptionError(f"threshold mode {threshold_mode!r:.40} is unknown!")
        require_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self._last_lr = self._rates()
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Return whether the rate was reduced at most `cooldown` steps ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        return rates.is_better(value, best, self.mode, self.threshold, self.threshold_mode)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch, and reduce the rates if there is no improvement."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ArgumentError(
                    f"the optimizer has {len(groups)} groups, and min_lrs has {len(self.min_lrs)}"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_option(group, "lr", new)
