"""Base class of schedules of the learning rates of parameter groups."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, MissingMethodError, UnknownKeyError

_EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler."
)


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return a value for each group; one value is that of all."""
    if isinstance(value, list | tuple):
        if len(value) != len(optimizer.param_groups):
            raise ArgumentError(
                f"{name} must have the same length as optimizer.param_groups. {name} has "
                f"{len(value)} values, param_groups has {len(optimizer.param_groups)}."
            )
        return list(value)
    return [value] * len(optimizer.param_groups)


def require_optimizer(optimizer: Any) -> None:
    """Raise `ArgumentError` for what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Base class of schedules: a subclass computes in `get_lr` a rate for each group.

    `get_lr` may read `self.last_epoch`, which counts from 0, `self.base_lrs` and the groups of
    `self.optimizer`. The first rate is set at once, and the next ones by `step`.

    >>> class Halved(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = Halved(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    # Attributes that state dicts do not have.
    _left_out: tuple[str, ...] = ("optimizer",)
    _is_initial = False
    _get_lr_called_within_step = False
    base_lrs: list[Any]
    last_epoch: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise UnknownKeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0",
                    hint="load the state of the optimizer first",
                )
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in self._left_out}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> Any:
        """Compute the rates of this epoch, one for each group."""
        raise MissingMethodError(f"{type(self).__name__} does not define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of `epoch`."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in "
                "the opposite order, or the first value of the learning rate schedule is skipped.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            closed: Callable[[], list[Any]] | None = None
            if epoch is None:
                self.last_epoch += 1
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        self._set(values)

    def _set(self, values: list[Any]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_option(group, "lr", value)
        self._last_lr = self._rates()

    def _rates(self) -> list[Any]:
        """Return the present rates of the groups."""
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; a tensor keeps its identity."""
    if isinstance(group.get(name), Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = value


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


class ScaledLR(LRScheduler):
    """Schedule by a factor of the present rate, `_change()`, and of the first one, `_closed()`."""

    def _change(self) -> float | None:
        """Return the factor from the rate before; None for no change."""
        raise MissingMethodError("_change")

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, one for each group."""
        self._warn_outside_step()
        factor = self._change()
        if factor is None:
            return self._rates()
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _closed(self) -> float:
        """Return the factor of the first rate."""
        raise MissingMethodError("_closed")

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self._closed() for base in self.base_lrs]


class FunctionLR(LRScheduler):
    """Schedule by functions of the epoch, of which a state dict has the attributes at most."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, list | tuple):
            lr_lambda = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ArgumentError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        for function in lr_lambda:
            if not callable(function):
                raise ArgumentError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer, with those of callable objects."""
        found = super().state_dict()
        found["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas
        ]
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned; the functions stay."""
        given = dict(state_dict)
        for function, values in zip(self.lr_lambdas, given.pop("lr_lambdas"), strict=True):
            if values is not None:
                function.__dict__.update(values)
        super().load_state_dict(given)
