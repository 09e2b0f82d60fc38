"""Schedules that rise and fall, and one that follows a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.compat.paddle.optimizer.lr.base import LRScheduler, require_int, require_number
from primgraph.compat.training import rates
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, CheckError, OptionError


class OneCycleLR(LRScheduler):
    """Up to `max_learning_rate`, and down to `end_learning_rate` (Smith and Topin, 2019).

    >>> scheduler = paddle.optimizer.lr.OneCycleLR(1.0, total_steps=100)
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        rate_arguments = {
            "max_learning_rate": max_learning_rate, "end_learning_rate": end_learning_rate,
        }  # fmt: skip
        for role, value in rate_arguments.items():
            require_number(role, value)
            if value < 0:
                raise OptionError(f"'{role}' must be positive, not {value!r:.60}")
        require_int("total_steps", total_steps)
        if total_steps <= 0:
            raise OptionError(f"'total_step' must be a positive integer, not {total_steps!r:.60}")
        if not isinstance(phase_pct, float):
            raise ArgumentError(f"'phase_pct' must be 'float', not {phase_pct!r:.60}")
        if not 0 <= phase_pct <= 1:
            raise OptionError(f"'phase_pct' must be between 0 and 1, but received {phase_pct}")
        if three_phase and phase_pct >= 0.5:
            raise OptionError("When three_phase is True, 'phase_pct' must be less than 0.5")
        require_number("divide_factor", divide_factor)
        self.anneal_func = rates.annealing(anneal_strategy)
        self.total_steps = total_steps
        first, least = max_learning_rate / float(divide_factor), float(end_learning_rate)
        end = total_steps - 1
        peak = phase_pct * total_steps - 1
        # By phase: its first and last step, and the rates there.
        self._phases = [(0.0, peak, first, max_learning_rate)]
        if three_phase:
            back = 2 * phase_pct * total_steps - 2
            self._phases += [(peak, back, max_learning_rate, first), (back, end, first, least)]
        else:
            self._phases.append((peak, end, max_learning_rate, least))
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        step = self.last_epoch
        if step > self.total_steps:
            raise OptionError(
                f"Tried to step {step} times. However the number of total steps is "
                f"{self.total_steps}"
            )
        phase = next((p for p in self._phases if step <= p[1]), self._phases[-1])
        start, end, low, high = phase
        return self.anneal_func(low, high, (step - start) / (end - start))


class CyclicLR(LRScheduler):
    """Triangles between two rates (Smith, 2017).

    >>> scheduler = paddle.optimizer.lr.CyclicLR(0.1, 0.5, step_size_up=10)
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require_number("max_learning_rate", max_learning_rate)
        if max_learning_rate < 0:
            raise OptionError(f"'max_learning_rate' is positive, not {max_learning_rate!r:.60}")
        down = step_size_up if step_size_down is None else step_size_down
        for role, value in (("step_size_up", step_size_up), ("step_size_down", down)):
            require_int(role, value)
            if value <= 0:
                raise OptionError(f"'{role}' must be a positive integer, but received {value}")
        if not isinstance(exp_gamma, float):
            raise ArgumentError(f"The type of 'exp_gamma' must be float, not {exp_gamma!r:.60}")
        if scale_mode not in ("cycle", "iterations"):
            raise OptionError("'scale_mode' must be one of 'cycle' or 'iterations")
        self.cycle_size = float(step_size_up + down)
        self.step_up_pct = step_size_up / self.cycle_size
        self.max_lr = float(max_learning_rate)
        self.amplitude = self.max_lr - base_learning_rate
        self.mode, self.gamma, self.scale_mode = mode, exp_gamma, scale_mode
        if scale_fn is None:
            self.scale_fn, self.scale_mode = rates.cycle_scale(mode, exp_gamma)
        else:
            self.scale_fn = scale_fn
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        cycle, height = rates.cycle_place(self.last_epoch, self.cycle_size, self.step_up_pct)
        place = cycle if self.scale_mode == "cycle" else self.last_epoch
        return self.base_lr + self.amplitude * height * self.scale_fn(place)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from `learning_rate` to `eta_min` in each period.

    The first period has `T_0` epochs, and each one `T_mult` times as many as the one before.

    >>> scheduler = paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.1, T_0=10)
    """

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise OptionError(f"Expected positive integer T_0, but got {T_0!r:.60}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise OptionError(f"Expected integer T_mult >= 1, but got {T_mult!r:.60}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        return rates.cosine(self.base_lr, self.eta_min, self.T_cur / self.T_i)

    def step(self, epoch: float | None = None) -> None:
        """Compute the rate of the next epoch, or of `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        else:
            place: Any = 0 if epoch is None else epoch
            if place < 0:
                raise OptionError(f"Expected non-negative epoch, but got {place!r:.60}")
            self.T_cur, self.T_i = rates.restart(place, self.T_0, self.T_mult)
            self.last_epoch = math.floor(place)
        self.last_lr = self.get_lr()
        self._print()


class ReduceOnPlateau(LRScheduler):
    """Times `factor` when a metric has not improved for more than `patience` steps.

    >>> scheduler = paddle.optimizer.lr.ReduceOnPlateau(0.1, patience=0)
    >>> scheduler.step(1.0)
    >>> scheduler.step(1.0)
    >>> round(scheduler(), 3)
    0.01
    """

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ) -> None:
        mode, threshold_mode = mode.lower(), threshold_mode.lower()
        if mode not in ("min", "max"):
            raise OptionError(f"mode: {mode:.40} is unknown!")
        if factor >= 1.0:
            raise OptionError("new_lr = origin_lr * gamma and gamma should be < 1.0.")
        if threshold_mode not in ("rel", "abs"):
            raise OptionError(f"threshold mode: {threshold_mode:.40} is unknown!")
        require_number("learning_rate", learning_rate)
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown = threshold_mode, cooldown
        self.min_lr, self.epsilon = min_lr, epsilon
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self.best: Any = None
        self.base_lr = self.last_lr = float(learning_rate)
        self.verbose, self._var_name = verbose, None

    def state_keys(self) -> None:
        """Set `keys`, the names of the attributes that a state dict has."""
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def get_lr(self) -> float:
        """Return the rate."""
        return self.last_lr

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch, and reduce the rate if there is no improvement."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if isinstance(metrics, Tensor | np.ndarray):
            if metrics.size != 1:
                raise CheckError(f"the size of metrics must be 1, not {metrics.size}")
        elif not isinstance(metrics, int | float | np.floating):
            raise ArgumentError(
                "metrics must be 'int', 'float', 'np.float64', 'numpy.ndarray' or 'paddle.Tensor', "
                f"but receive {type(metrics).__name__}"
            )
        value = float(metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            new = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - new > self.epsilon:
                self.last_lr = new
                self._print()

    def _is_better(self, value: float, best: float) -> bool:
        return rates.is_better(value, best, self.mode, self.threshold, self.threshold_mode)
