"""Schedules that rise and fall, with the momentum against them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from primgraph.compat.torch.optim.lr_scheduler.base import (
    LRScheduler,
    per_group,
    require_optimizer,
    set_option,
)
from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.compat.training import rates
from primgraph.errors import OptionError


class _Cycling(LRScheduler):
    """Schedule that changes the momentum, or the first beta, too."""

    cycle_momentum: bool
    use_beta1: bool

    def _prepare_momentum(self, base: Any, most: Any, last_epoch: int) -> None:
        optimizer = self.optimizer
        if not self.cycle_momentum:
            return
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise OptionError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
                hint="give cycle_momentum=False",
            )
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = per_group("base_momentum", optimizer, base)
        self.max_momentums = per_group("max_momentum", optimizer, most)
        if last_epoch == -1:
            limits = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(optimizer.param_groups, limits, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_Cycling):
    """Triangles between `base_lr` and `max_lr` (Smith, 2017).

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.01, max_lr=0.1)
    """

    _left_out = ("optimizer", "_scale")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self.scale_mode = mode, gamma, scale_mode
        self._scale_fn_custom = scale_fn
        self._make_scale()
        self.cycle_momentum = cycle_momentum
        self._prepare_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _make_scale(self) -> None:
        if self._scale_fn_custom is None:
            self._scale, self.scale_mode = rates.cycle_scale(self.mode, self.gamma)
        else:
            self._scale = self._scale_fn_custom

    def scale_fn(self, x: float) -> float:
        """Return the scale of the height of a triangle, of its number or of the epoch."""
        return self._scale(x)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, and set the momenta, one for each group."""
        self._warn_outside_step()
        cycle, height = rates.cycle_place(self.last_epoch, self.total_size, self.step_ratio)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, limits, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        return [
            low + (high - low) * height
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer, with those of a callable object."""
        found = super().state_dict()
        function = found["_scale_fn_custom"]
        is_plain = function is None or isinstance(function, types.FunctionType)
        found["_scale_fn_custom"] = None if is_plain else dict(function.__dict__)
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned; the function stays."""
        given = dict(state_dict)
        values = given.pop("_scale_fn_custom")
        super().load_state_dict(given)
        if values is not None:
            self._scale_fn_custom.__dict__.update(values)
        self._make_scale()


class OneCycleLR(_Cycling):
    """Up to `max_lr`, and down to far below the start (Smith and Topin, 2019).

    `total_steps` is by default `epochs * steps_per_epoch`. Call `step` after every batch.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=100)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise OptionError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start!r:.40}"
            )
        rates.annealing(anneal_strategy)
        self._anneal_func_type = anneal_strategy
        first = float(pct_start * self.total_steps) - 1
        down = ("max_lr", "min_lr", "base_momentum", "max_momentum")
        # The last step of each phase, and the options of a group between which it goes.
        self._schedule_phases = [
            (first, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
            (self.total_steps - 1, *down),
        ]
        if three_phase:
            second = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases[1:] = [
                (second, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        if last_epoch == -1:
            limits = per_group("max_lr", optimizer, max_lr)
            for group, most in zip(optimizer.param_groups, limits, strict=True):
                group["initial_lr"], group["max_lr"] = most / div_factor, most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        self._prepare_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, and set the momenta, one for each group."""
        self._warn_outside_step()
        if self.last_epoch > self.total_steps:
            raise OptionError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start, phase = 0.0, self._schedule_phases[0]
        for i, phase in enumerate(self._schedule_phases):
            if self.last_epoch <= phase[0] or i == len(self._schedule_phases) - 1:
                break
            start = phase[0]
        end, low, high, first, second = phase
        part = (self.last_epoch - start) / (end - start)
        curve = rates.annealing(self._anneal_func_type)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, curve(group[first], group[second], part))
        return [curve(group[low], group[high], part) for group in groups]


def _total(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    """Return the number of steps of a cycle."""
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise OptionError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    count = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise OptionError(f"Expected positive integer {name}, but got {value!r:.40}")
        count *= value
    return count
