"""Schedules that fall, or rise, by a rule of the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from primgraph.compat.paddle.optimizer.lr.base import (
    LRScheduler,
    require_function,
    require_int,
    require_number,
    require_steps,
)
from primgraph.compat.training import rates
from primgraph.errors import ArgumentError, CheckError, OptionError


class NoamDecay(LRScheduler):
    """`learning_rate * d_model**-0.5 * min(epoch**-0.5, warmup_steps**-1.5 * epoch)`.

    After A. Vaswani et al., Attention is all you need, 2017.

    >>> scheduler = paddle.optimizer.lr.NoamDecay(64, 10)
    """

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if d_model <= 0:
            raise OptionError("d_model should be grater than 0")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        falling = 1.0 if self.last_epoch == 0 else self.last_epoch**-0.5
        rising = self.warmup_steps**-1.5 * self.last_epoch
        return float(self.base_lr * self.d_model**-0.5 * min(falling, rising))


class PiecewiseDecay(LRScheduler):
    """`values[i]` before epoch `boundaries[i]`, and the last value after.

    >>> scheduler = paddle.optimizer.lr.PiecewiseDecay([10, 20], [0.1, 0.01, 0.001])
    """

    def __init__(
        self,
        boundaries: Sequence[int],
        values: Sequence[float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not boundaries:
            raise OptionError("The boundaries cannot be empty.")
        if len(values) <= len(boundaries):
            raise OptionError(
                "The values have one more element than boundaries, but received len(values) "
                f"[{len(values)}] < len(boundaries) + 1 [{len(boundaries) + 1}]."
            )
        self.boundaries, self.values = boundaries, values
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        passed = [i for i, b in enumerate(self.boundaries) if self.last_epoch < b]
        return self.values[passed[0]] if passed else self.values[-1]


class _RateDecay(LRScheduler):
    """Schedule by a rate `gamma`."""

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_RateDecay):
    """`learning_rate * exp(-gamma * epoch)`.

    >>> scheduler = paddle.optimizer.lr.NaturalExpDecay(0.1, gamma=0.5)
    """

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        if not self.gamma > 0.0:
            raise CheckError("'gamma' must be a positive number: the rate decays")
        return self.base_lr * math.exp(-1 * self.gamma * self.last_epoch)


class InverseTimeDecay(_RateDecay):
    """`learning_rate / (1 + gamma * epoch)`.

    >>> scheduler = paddle.optimizer.lr.InverseTimeDecay(0.1, gamma=0.5)
    """

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_RateDecay):
    """`learning_rate * gamma**epoch`.

    >>> scheduler = paddle.optimizer.lr.ExponentialDecay(0.1, gamma=0.9)
    """

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        if not 0.0 < self.gamma < 1.0:
            raise CheckError("'gamma' must be in the interval (0.0, 1.0): the rate decays")
        return float(self.base_lr * self.gamma**self.last_epoch)


class StepDecay(LRScheduler):
    """Times `gamma` every `step_size` epochs.

    >>> scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=30)
    """

    def __init__(
        self,
        learning_rate: float,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require_int("step_size", step_size)
        if gamma >= 1.0:
            raise OptionError("gamma should be < 1.0.")
        require_steps("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        return float(self.base_lr * self.gamma ** (self.last_epoch // self.step_size))


class MultiStepDecay(LRScheduler):
    """Times `gamma` at each epoch in `milestones`.

    >>> scheduler = paddle.optimizer.lr.MultiStepDecay(0.1, [30, 80])
    """

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(milestones, list | tuple):
            raise ArgumentError(f"milestones is a list, not {type(milestones).__name__}")
        if any(b <= a for a, b in pairwise(milestones)):
            raise OptionError("The elements of milestones must be incremented")
        if gamma >= 1.0:
            raise OptionError("gamma should be < 1.0.")
        self.milestones, self.gamma = milestones, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        return float(self.base_lr * self.gamma ** bisect_right(self.milestones, self.last_epoch))


class PolynomialDecay(LRScheduler):
    """From `learning_rate` to `end_lr` by `(1 - epoch / decay_steps)**power`.

    With `cycle` it begins anew, with longer periods.

    >>> scheduler = paddle.optimizer.lr.PolynomialDecay(0.1, decay_steps=20)
    """

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require_steps("decay_steps", decay_steps)
        if not power > 0.0:
            raise CheckError("'power' must be greater than 0.0: the rate decays")
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        epoch, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= math.ceil(epoch / steps) or 1
        else:
            epoch = min(epoch, steps)
        part = (1 - float(epoch) / float(steps)) ** self.power
        return float((self.base_lr - self.end_lr) * part + self.end_lr)


class LinearWarmup(LRScheduler):
    """A line from `start_lr` to `end_lr` within `warmup_steps`, and `learning_rate` after.

    `learning_rate` is a number or a schedule, whose first epoch is the one after the warmup.

    >>> scheduler = paddle.optimizer.lr.LinearWarmup(0.1, 20, start_lr=0.0, end_lr=0.1)
    """

    def __init__(
        self,
        learning_rate: Any,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(learning_rate, int | float | LRScheduler):
            raise ArgumentError(
                "the type of learning_rate should be [int, float or LRScheduler], the current type "
                f"is {type(learning_rate).__name__}"
            )
        require_steps("warmup_steps", warmup_steps)
        if not end_lr > start_lr:
            raise CheckError(f"end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        if self.last_epoch < self.warmup_steps:
            part = float(self.last_epoch) / float(self.warmup_steps)
            return (self.end_lr - self.start_lr) * part + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        rate: float = self.learning_rate
        return rate

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes, and the state of the schedule within."""
        found = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            found["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return found

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned."""
        given = dict(state_dict)
        within = given.pop("LinearWarmup_LR", None)
        super().set_state_dict(given)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(within or {})

    set_dict = set_state_dict


class LambdaDecay(LRScheduler):
    """`learning_rate * lr_lambda(epoch)`.

    >>> scheduler = paddle.optimizer.lr.LambdaDecay(0.1, lambda epoch: 0.95**epoch)
    """

    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require_function("lr_lambda", lr_lambda)
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LambdaDecay):
    """`learning_rate` times `lr_lambda(i)` for each epoch `i` from 1 on.

    >>> scheduler = paddle.optimizer.lr.MultiplicativeDecay(0.1, lambda epoch: 0.95)
    """

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        rate = self.base_lr
        for epoch in range(1, self.last_epoch + 1):
            rate = rate * self.lr_lambda(epoch)
        return rate


class LinearLR(LRScheduler):
    """Times a factor on the line from `start_factor` to `end_factor`.

    >>> scheduler = paddle.optimizer.lr.LinearLR(0.1, total_steps=5)
    """

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise OptionError(
                "`start_factor` must be greater than 0 and less or equal to 1, but got "
                f"{start_factor!r:.60}"
            )
        if not 0 <= end_factor <= 1.0:
            raise OptionError(
                f"`end_factor` must be greater than 0 and less than 1, but got {end_factor!r:.60}"
            )
        if total_steps <= 0:
            raise OptionError(f"`total_steps` must be greater than 0, but got {total_steps!r:.60}")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_steps = total_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        if self.last_epoch == 0:
            return self.base_lr * self.start_factor
        if self.last_epoch > self.total_steps:
            return self.last_lr
        return self.last_lr * rates.line_factor(
            self.last_epoch, self.total_steps, self.start_factor, self.end_factor
        )


class CosineAnnealingDecay(LRScheduler):
    """From `learning_rate` to `eta_min` and back, along a cosine of period `2 * T_max`.

    >>> scheduler = paddle.optimizer.lr.CosineAnnealingDecay(0.1, T_max=10)
    """

    def __init__(
        self,
        learning_rate: float,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require_int("T_max", T_max)
        require_number("eta_min", eta_min)
        require_steps("T_max", T_max)
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        if self.last_epoch == 0:
            return self.base_lr
        return rates.chained_cosine(
            self.last_lr, self.base_lr, self.eta_min, self.last_epoch, self.T_max
        )

    def _get_closed_form_lr(self) -> float:
        return rates.cosine(self.base_lr, self.eta_min, self.last_epoch / self.T_max)
