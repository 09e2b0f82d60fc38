"""Base class of schedules: the rate of a group is a function of its first rate and the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.errors import MissingMethodError

if TYPE_CHECKING:
    from primgraph.compat.torch.optim.lr_scheduler.base import LRScheduler as EpochScheduler
    from primgraph.compat.torch.optim.optimizer import Optimizer
else:
    from primgraph.compat.oneflow.optim.lr_scheduler.base import LRScheduler as EpochScheduler
    from primgraph.compat.oneflow.optim.optimizer import Optimizer


class LRScheduler(EpochScheduler):
    """Base class of schedules: a subclass computes in `get_lr(base_lr, step)` the rate of a group.

    The first rate is set at once, and the next ones by `step`.
    """

    def __init__(self, optimizer: Optimizer, last_step: int = -1, verbose: bool = False) -> None:
        self.verbose = verbose
        super().__init__(optimizer, last_step)

    @property
    def last_step(self) -> int:
        """The number of steps."""
        return self.last_epoch

    @last_step.setter
    def last_step(self, step: int) -> None:
        self.last_epoch = step

    def get_lr(self, base_lr: float = 0.0, step: int = 0) -> Any:
        """Compute the rate of a group, whose first one is `base_lr`."""
        raise MissingMethodError(f"{type(self).__name__} does not define get_lr(base_lr, step)")

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next step, or of `epoch`."""
        self._step_count += 1
        self._update_lr(epoch)

    def rates(self, step: int) -> list[Any]:
        """Compute the rates of a step, one for each group."""
        return [self.get_lr(base, step) for base in self.base_lrs]

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.rates(self.last_epoch))
        if self.verbose:
            for i, rate in enumerate(self._last_lr):
                print(f"Adjusting learning rate of param_groups[{i}] to {rate}")

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer."""
        found = super().state_dict()
        return {"last_step": found.pop("last_epoch"), **found}

    def load_state_dict(self, state_dict: Any) -> None:
        """Take the attributes from what `state_dict` returned."""
        given = dict(state_dict)
        given["last_epoch"] = given.pop("last_step")
        super().load_state_dict(given)
