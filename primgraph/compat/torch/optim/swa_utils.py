"""Averages of the parameters of models over the steps of a training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from primgraph.compat.torch.creation import create
from primgraph.compat.torch.framework import checked_device, int64
from primgraph.compat.torch.nn.modules import Module
from primgraph.compat.torch.optim.lr_scheduler.base import LRScheduler, per_group
from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.compat.training.rates import annealing
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import CheckError, OptionError

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, Any], Any]
MultiAverage = Callable[[Sequence[Any], Sequence[Any], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the exponential moving average, a function of the average, the tensor and the count.

    >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.5)
    >>> average(torch.tensor(1.0), torch.tensor(3.0), 1)
    tensor(2.)
    """
    if not 0.0 <= decay <= 1.0:
        raise OptionError(f"Invalid decay value {decay!r:.40}: give a value in [0, 1]")

    def average(before: Any, new: Any, count: Any) -> Any:
        with no_grad():
            return decay * before + (1 - decay) * new

    return average


def get_swa_avg_fn() -> Average:
    """Return the mean of all steps, a function of the average, the tensor and the count.

    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor(1.0), torch.tensor(3.0), 1)
    tensor(2.)
    """

    def average(before: Any, new: Any, count: Any) -> Any:
        with no_grad():
            return before + (new - before) / (count + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return `get_ema_avg_fn` for lists of tensors, in place.

    >>> average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.5)
    >>> x = torch.tensor([1.0])
    >>> average([x], [torch.tensor([3.0])], 1)
    >>> x
    tensor([2.])
    """
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return `get_swa_avg_fn` for lists of tensors, in place.

    >>> average = torch.optim.swa_utils.get_swa_multi_avg_fn()
    >>> x = torch.tensor([1.0])
    >>> average([x], [torch.tensor([3.0])], 1)
    >>> x
    tensor([2.])
    """
    return _in_place(get_swa_avg_fn())


def _in_place(average: Average) -> MultiAverage:
    def update(before: Sequence[Any], new: Sequence[Any], count: Any) -> None:
        with no_grad():
            for one, other in zip(before, new, strict=True):
                one.copy_(average(one, other, count))

    return update


class AveragedModel(Module):
    """Copy of `model` whose parameters are averages over the calls of `update_parameters`.

    The average is by default the mean (stochastic weight averaging). `use_buffers` averages the
    buffers, too; otherwise they are copied.

    >>> model = torch.nn.Linear(2, 1)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> averaged.update_parameters(model)
    >>> int(averaged.n_averaged)
    1
    """

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise CheckError("Only one of avg_fn and multi_avg_fn should be provided")
        checked_device(device)
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", create.tensor(0, dtype=int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Take the parameters of `model` into the average."""
        own, other = [self._tensors(m) for m in (self.module, model)]
        count = self.n_averaged
        with no_grad():
            if int(count) == 0:
                for mine, new in zip(own, other, strict=True):
                    mine.copy_(new)
            elif self.multi_avg_fn is not None:
                detached = [[t.detach() for t in tensors] for tensors in (own, other)]
                self.multi_avg_fn(detached[0], detached[1], count)
            else:
                average = self.avg_fn or get_swa_avg_fn()
                for mine, new in zip(own, other, strict=True):
                    mine.copy_(average(mine.detach(), new.detach(), count))
            if not self.use_buffers:
                for mine, new in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.copy_(new)
            self.n_averaged += 1

    def _tensors(self, model: Any) -> list[Any]:
        parts = [model.parameters(), model.buffers()] if self.use_buffers else [model.parameters()]
        return list(chain(*parts))


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of batch normalisation anew from the batches of `loader`.

    Of a batch that is a list or tuple, the first element is the input.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1))
    >>> torch.optim.swa_utils.update_bn([torch.ones(4, 2)], model)
    """
    checked_device(device)
    layers = [m for m in model.modules() if hasattr(m, "reset_running_stats")]
    momenta = [layer.momentum for layer in layers]
    if not layers:
        return
    was_training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    with no_grad():
        for batch in loader:
            model(batch[0] if isinstance(batch, list | tuple) else batch)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to `swa_lr` within `anneal_epochs`, and constant then.

    >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        annealing(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise OptionError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs!r:.40}"
            )
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        """Return the weight of the final rate."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch, one for each group."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, weight = self._weight(step - 1), self._weight(step)
        found = []
        for group in self.optimizer.param_groups:
            lr, final = group["lr"], group["swa_lr"]
            first = final if before == 1 else (lr - before * final) / (1 - before)
            found.append(final * weight + first * (1 - weight))
        return found
