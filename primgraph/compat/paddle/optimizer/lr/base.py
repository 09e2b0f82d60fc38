"""Base class of schedules of one learning rate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, CheckError, MissingMethodError


class LRScheduler:
    """Base class of schedules: a subclass computes in `get_lr` the rate of `self.last_epoch`.

    `self.base_lr` is the first rate and `self.last_lr` the one before. Calling the schedule returns
    the rate, and `step` goes on.

    >>> class Halved(paddle.optimizer.lr.LRScheduler):
    ...     def get_lr(self):
    ...         return self.base_lr * 0.5**self.last_epoch
    >>> scheduler = Halved(learning_rate=1.0)
    >>> scheduler.step()
    >>> scheduler()
    0.5
    """

    base_lr: float
    last_lr: float
    last_epoch: int
    keys: list[str]

    def __init__(
        self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        require_number("learning rate", learning_rate)
        if learning_rate < 0:
            raise ArgumentError(f"Invalid learning rate: {learning_rate!r:.60}")
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch, self.verbose = last_epoch, verbose
        self._var_name = None
        self.step()

    def __call__(self) -> float:
        """Return the rate."""
        return self.last_lr

    def get_lr(self) -> float:
        """Compute the rate of this epoch."""
        raise MissingMethodError(f"{type(self).__name__} does not define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Compute the rate of the next epoch, or of `epoch`."""
        if epoch is None:
            self.last_epoch += 1
            self.last_lr = self.get_lr()
        else:
            self.last_epoch = epoch
            self.last_lr = getattr(self, "_get_closed_form_lr", self.get_lr)()
        self._print()

    def _print(self) -> None:
        if self.verbose:
            print(
                f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to "
                f"{self.last_lr}."
            )

    def state_keys(self) -> None:
        """Set `keys`, the names of the attributes that a state dict has."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes that `state_keys` names."""
        self.state_keys()
        found = {key: self.__dict__[key] for key in self.keys if key in self.__dict__}
        return {k: float(v) if isinstance(v, Tensor) else v for k, v in found.items()}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned."""
        self.state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise BuildError(
                    "Please check whether state_dict is correct for optimizer. Can't find "
                    f"[ {key} ] in state_dict"
                )
            self.__dict__[key] = state_dict[key]
        if len(state_dict) > len(self.keys):
            warnings.warn("There are some unused values in state_dict.", stacklevel=2)

    set_dict = set_state_dict


def require_number(role: str, value: Any) -> None:
    """Raise `ArgumentError` for what is no number."""
    if not isinstance(value, int | float):
        raise ArgumentError(
            f"The type of {role} must be float, but received {type(value).__name__}"
        )


def require_int(role: str, value: Any) -> None:
    """Raise `ArgumentError` for what is no integer."""
    if not isinstance(value, int):
        raise ArgumentError(f"{role} is an int, and {type(value).__name__} was given")


def require_steps(role: str, value: Any) -> None:
    """Raise `CheckError` unless it is a positive integer."""
    if not isinstance(value, int) or value <= 0:
        raise CheckError(f"'{role}' must be a positive integer, not {value!r:.60}")


def require_function(role: str, value: Any) -> None:
    """Raise `ArgumentError` for what cannot be called."""
    if not callable(value):
        raise ArgumentError(f"{role} must be a function, but received {type(value).__name__}")
