"""Schedules by the names and arguments of `oneflow.optim.lr_scheduler`."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from primgraph.compat.oneflow.optim.lr_scheduler.stepped import LRScheduler
from primgraph.compat.training import rates
from primgraph.errors import ArgumentError, OptionError

if TYPE_CHECKING:
    from primgraph.compat.torch.optim.lr_scheduler.base import per_group, set_option
    from primgraph.compat.torch.optim.optimizer import Optimizer
else:
    from primgraph.compat.oneflow.optim.lr_scheduler.base import per_group, set_option
    from primgraph.compat.oneflow.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if step_size <= 0:
            raise OptionError(f"step_size must be positive, not {step_size!r:.40}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        return float(base_lr * self.gamma ** (step // self.step_size))


class MultiStepLR(LRScheduler):
    """Times `gamma` at each step in `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        return float(base_lr * self.gamma ** bisect_right(self.milestones, step))


class ExponentialLR(LRScheduler):
    """Times `gamma` every step."""

    def __init__(
        self, optimizer: Optimizer, gamma: float, last_step: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        return float(base_lr * self.gamma**step)


class LambdaLR(LRScheduler):
    """The first rate times `lr_lambda(step)`; `lr_lambda` may be one function for each group."""

    _left_out = ("optimizer", "lr_lambdas")

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Any, last_step: int = -1, verbose: bool = False
    ) -> None:
        self.lr_lambdas: list[Callable[[int], float]] = per_group("lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_step, verbose)

    def rates(self, step: int) -> list[Any]:
        """Compute the rates of a step, one for each group."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(step) for base, function in pairs]


class PolynomialLR(LRScheduler):
    """From the first rate to `end_learning_rate` by `(1 - step / steps)**power`.

    With `cycle` it begins anew, with longer periods.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if steps <= 0:
            raise OptionError(f"steps must greater than zero, but got {steps!r:.40}")
        self.max_decay_steps, self.end_learning_rate = steps, end_learning_rate
        self.power, self.cycle = power, cycle
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        steps = self.max_decay_steps
        if self.cycle:
            steps *= math.ceil(step / steps) or 1
        else:
            step = min(step, steps)
        part = (1 - step / steps) ** self.power
        return float((base_lr - self.end_learning_rate) * part + self.end_learning_rate)


class CosineDecayLR(LRScheduler):
    """Half a cosine to `alpha` times the first rate within `decay_steps`, and constant then."""

    def __init__(
        self,
        optimizer: Optimizer,
        decay_steps: int,
        alpha: float = 0.0,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if decay_steps <= 0:
            raise OptionError(f"decay_steps must greater than zero, but got {decay_steps!r:.40}")
        self.decay_steps, self.alpha = decay_steps, alpha
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        return rates.cosine(base_lr, base_lr * self.alpha, min(step / self.decay_steps, 1.0))


class CosineAnnealingLR(LRScheduler):
    """From the first rate to `eta_min` and back, along a cosine of period `2 * T_max`."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        return rates.cosine(base_lr, self.eta_min, step / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the first rate to `eta_min` in each period.

    The first period has `T_0` steps, and each one `T_mult` times as many as the one before. Each
    period begins with `decay_rate` times the rate of the one before. After `restart_limit` periods,
    if that is positive, the rate is `eta_min`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        decay_rate: float = 1.0,
        restart_limit: int = 0,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise OptionError(f"T_0 and T_mult are positive, not {T_0!r:.40} and {T_mult!r:.40}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.decay_rate, self.restart_limit = decay_rate, restart_limit
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        start, length, count = 0, self.T_0, 0
        while step >= start + length:
            start, length, count = start + length, length * self.T_mult, count + 1
        if self.restart_limit > 0 and count >= self.restart_limit:
            return self.eta_min
        first = base_lr * self.decay_rate**count
        return rates.cosine(first, self.eta_min, (step - start) / length)


class ConstantLR(LRScheduler):
    """Times `factor` before step `total_iters`."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise OptionError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        return base_lr * self.factor if step < self.total_iters else base_lr


class LinearLR(LRScheduler):
    """Times a factor on the line from `start_factor` to `end_factor`."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if not 0 <= start_factor <= 1.0 or not 0 <= end_factor <= 1.0:
            raise OptionError("factors are expected to be between 0 and 1")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        part = min(step, self.total_iters) / self.total_iters
        return base_lr * rates.linear(self.start_factor, self.end_factor, part)


class WarmUpLR(LRScheduler):
    """Warmup before the schedule `lrsch_or_optimizer`, or before the constant rate.

    `warmup_method` is "linear", from `warmup_factor` times the first rate to the rate after the
    warmup, or "constant". With `warmup_prefix` the schedule begins after the warmup.
    """

    _left_out = ("optimizer", "scheduler")

    def __init__(
        self,
        lrsch_or_optimizer: Any,
        warmup_factor: float = 1.0 / 3,
        warmup_iters: int = 5,
        warmup_method: str = "linear",
        warmup_prefix: bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(lrsch_or_optimizer, Optimizer | LRScheduler):
            raise ArgumentError(
                "lrsch_or_optimizer is an optimizer or a schedule, not "
                f"{type(lrsch_or_optimizer).__name__}"
            )
        if warmup_method not in ("linear", "constant"):
            raise OptionError(f"warmup_method is linear or constant, not {warmup_method!r:.40}")
        given: Any = lrsch_or_optimizer
        self.scheduler: Any = given if isinstance(given, LRScheduler) else None
        self.warmup_factor, self.warmup_iters = warmup_factor, warmup_iters
        self.warmup_method, self.warmup_prefix = warmup_method, warmup_prefix
        optimizer: Any = given if self.scheduler is None else given.optimizer
        if self.scheduler is not None:
            for group, base in zip(optimizer.param_groups, given.base_lrs, strict=True):
                set_option(group, "lr", base)
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> float:
        """Compute the rate of a group, whose first one is `base_lr`."""
        if step >= self.warmup_iters:
            return self._after(base_lr, step)
        first = base_lr * self.warmup_factor
        if self.warmup_method == "constant":
            return first
        return rates.linear(
            first, self._after(base_lr, self.warmup_iters), step / self.warmup_iters
        )

    def _after(self, base_lr: float, step: int) -> float:
        """Return the rate that the schedule has at a step."""
        if self.scheduler is None:
            return base_lr
        found: float = self.scheduler.get_lr(
            base_lr, step - self.warmup_iters if self.warmup_prefix else step
        )
        return found
