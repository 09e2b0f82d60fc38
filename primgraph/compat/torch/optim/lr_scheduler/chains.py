"""Schedules of several schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from primgraph.compat.torch.optim.lr_scheduler.base import LRScheduler, set_option
from primgraph.compat.torch.optim.lr_scheduler.decays import ReduceLROnPlateau
from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.errors import ArgumentError


class _Joined(LRScheduler):
    """Schedule of several ones of one optimizer."""

    _left_out = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _join(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        kind = type(self).__name__
        if not schedulers:
            raise ArgumentError(f"{kind} expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise ArgumentError(
                    f"{kind} at index {i} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ArgumentError(
                    f"{kind} does not support `ReduceLROnPlateau`, whose `step` takes a metric, "
                    f"and the one at index {i} is of that class"
                )
            if optimizer is None:
                optimizer = scheduler.optimizer
            if scheduler.optimizer is not optimizer:
                raise ArgumentError(
                    f"{kind} expects all schedulers to belong to the same optimizer, and the one "
                    f"at index {i} belongs to another one"
                )
        self._schedulers = schedulers
        self.optimizer = schedulers[0].optimizer

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer, and the states of the schedules."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned."""
        given = dict(state_dict)
        for scheduler, values in zip(self._schedulers, given.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(values)
        super().load_state_dict(given)


class ChainedScheduler(_Joined):
    """All of the schedules at each step, in order.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> first = torch.optim.lr_scheduler.ConstantLR(optimizer, 0.1, total_iters=2)
    >>> second = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    >>> scheduler = torch.optim.lr_scheduler.ChainedScheduler([first, second])
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._join(schedulers, optimizer)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Take a step of each schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


class SequentialLR(_Joined):
    """One schedule after the other: the next one begins at each epoch in `milestones`.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> first = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    >>> second = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [first, second], [2])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._join(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        _undo_first_step(self)
        place = bisect_right(milestones, 0)
        schedulers[place]._initial_step()
        self._last_lr = schedulers[place].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Take a step of the schedule of the next epoch."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo_first_step(scheduler: LRScheduler) -> None:
    """Let all schedules within stand before their first epoch."""
    waiting = [scheduler]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Joined):
            waiting += one._schedulers
        else:
            one.last_epoch -= 1
