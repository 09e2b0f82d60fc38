"""Callbacks of `paddle.Model`: objects whose methods are called at the events of a training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from primgraph.compat.paddle.optimizer.lr import LRScheduler as _Schedule
from primgraph.errors import OptionError

__all__ = [
    "Callback",
    "EarlyStopping",
    "LRScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
]

Logs = dict[str, Any] | None


class Callback:
    """Base of callbacks, whose methods do nothing.

    `logs` has the loss and metrics by name, `step` and `batch_size`; at the beginning of an
    evaluation it has `steps` and `metrics`. `self.model` is the model, and `self.params` has
    `batch_size`, `epochs`, `steps`, `verbose` and `metrics`.

    >>> class Losses(paddle.callbacks.Callback):
    ...     def on_train_batch_end(self, step, logs=None):
    ...         print(step, logs["batch_size"])
    >>> net = paddle.nn.Linear(1, 1)
    >>> model = paddle.Model(net)
    >>> model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), paddle.nn.MSELoss())
    >>> data = [(np.ones(1, "float32"), np.ones(1, "float32"))] * 3
    >>> model.fit(data, batch_size=2, verbose=0, callbacks=[Losses()])
    0 2
    1 1
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Store the parameters of a run."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Store the model."""
        self.model = model

    def on_train_begin(self, logs: Logs = None) -> None:
        """Do nothing at the beginning of `fit`."""

    def on_train_end(self, logs: Logs = None) -> None:
        """Do nothing at the end of `fit`."""

    def on_eval_begin(self, logs: Logs = None) -> None:
        """Do nothing before an evaluation."""

    def on_eval_end(self, logs: Logs = None) -> None:
        """Do nothing after an evaluation."""

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Do nothing before predictions."""

    def on_predict_end(self, logs: Logs = None) -> None:
        """Do nothing after predictions."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Do nothing before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Do nothing after an epoch."""

    def on_train_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Do nothing before a batch of training."""

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """Do nothing after a batch of training."""

    def on_eval_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Do nothing before a batch of an evaluation."""

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        """Do nothing after a batch of an evaluation."""

    def on_predict_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Do nothing before a batch of predictions."""

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        """Do nothing after a batch of predictions."""


def call_all(callbacks: Iterable[Callback], event: str, *args: Any) -> None:
    """Call the method of an event on each callback, in order."""
    for callback in callbacks:
        getattr(callback, event)(*args)


class ModelCheckpoint(Callback):
    """Save the model to `save_dir/EPOCH` every `save_freq` epochs, and to `save_dir/final`.

    >>> paddle.callbacks.ModelCheckpoint(2, "checkpoints").save_freq
    2
    """

    def __init__(self, save_freq: int = 1, save_dir: str | None = None) -> None:
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def _save(self, name: Any) -> None:
        path = f"{self.save_dir}/{name}"
        print(f"save checkpoint at {os.path.abspath(path)}")
        self.model.save(path)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Save the model if the epoch is a multiple of `save_freq`."""
        if self.save_dir and epoch % self.save_freq == 0:
            self._save(epoch)

    def on_train_end(self, logs: Logs = None) -> None:
        """Save the model."""
        if self.save_dir:
            self._save("final")


class LRScheduler(Callback):
    """Step the schedule of the learning rate after each batch, or after each epoch.

    Raises `OptionError` for both.

    >>> paddle.callbacks.LRScheduler(by_step=False, by_epoch=True).by_epoch
    True
    """

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        super().__init__()
        if by_step and by_epoch:
            raise OptionError("by_step option is mutually exclusive with by_epoch")
        self.by_step, self.by_epoch = by_step, by_epoch

    def _step(self) -> None:
        rate = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(rate, _Schedule):
            rate.step()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Step the schedule if it is stepped by epochs."""
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """Step the schedule if it is stepped by batches."""
        if self.by_step:
            self._step()


def _is_maximized(name: str, monitor: str, mode: str) -> bool:
    """Return whether a greater value of `monitor` is better."""
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"{name} mode {mode} is unknown, fallback to auto mode.", stacklevel=3)
        mode = "auto"
    return mode == "max" or (mode == "auto" and "acc" in monitor)


def _monitored(name: str, monitor: str, logs: Logs) -> float | None:
    """Return the monitored value, the first of a list; None, with a warning, without one."""
    if logs is None or monitor not in logs:
        warnings.warn(f"Monitor of {name} should be loss or metric name.", stacklevel=3)
        return None
    found = logs[monitor]
    found = found[0] if isinstance(found, list | tuple) else found
    return float(found) if np.ndim(found) == 0 else None


class EarlyStopping(Callback):
    """Stop `fit` if an evaluated value has not improved for `patience` evaluations.

    The best model is saved to `best_model` in the `save_dir` of `fit`. An improvement is one of
    more than `min_delta`. With mode "auto" values whose name has "acc" are to become greater,
    others smaller.

    >>> paddle.callbacks.EarlyStopping("acc", patience=2).monitor
    'acc'
    """

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "auto",
        patience: int = 0,
        verbose: int = 1,
        min_delta: float = 0,
        baseline: float | None = None,
        save_best_model: bool = True,
    ) -> None:
        super().__init__()
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.min_delta, self.baseline = abs(min_delta), baseline
        self.save_best_model = save_best_model
        # `fit` sets it.
        self.save_dir: str | None = None
        self.wait_epoch = self.stopped_epoch = 0
        self._sign = 1.0 if _is_maximized("EarlyStopping", monitor, mode) else -1.0
        self.best_value = -self._sign * np.inf

    def on_train_begin(self, logs: Logs = None) -> None:
        """Begin with the baseline, or with the worst value."""
        self.wait_epoch = 0
        self.best_value = -self._sign * np.inf if self.baseline is None else self.baseline

    def on_eval_end(self, logs: Logs = None) -> None:
        """Compare with the best value: save the model, or stop."""
        current = _monitored("EarlyStopping", self.monitor, logs)
        if current is None:
            return
        path = self.save_dir and os.path.join(self.save_dir, "best_model")
        path = path if self.save_best_model else None
        if self._sign * (current - self.best_value) > self.min_delta:
            self.best_value, self.wait_epoch = current, 0
            if path:
                self.model.save(path)
        else:
            self.wait_epoch += 1
        if self.wait_epoch >= self.patience:
            self.model.stop_training = True
            if self.verbose > 0:
                print(f"Epoch {self.stopped_epoch + 1}: Early stopping.")
                if path:
                    print(f"Best checkpoint has been saved at {os.path.abspath(path)}")
        self.stopped_epoch += 1


class ReduceLROnPlateau(Callback):
    """Multiply the learning rate by `factor` if a value has not improved for `patience` times.

    It does nothing, with a warning, for the rate of a schedule. Raises `OptionError` for a factor
    of 1 or more.

    >>> paddle.callbacks.ReduceLROnPlateau("loss", factor=0.5).in_cooldown()
    False
    """

    def __init__(
        self,
        monitor: str = "loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 1,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__()
        if factor >= 1.0:
            raise OptionError("ReduceLROnPlateau does not support a factor >= 1.0.")
        self.monitor, self.factor, self.patience = monitor, factor, patience
        self.verbose, self.mode, self.min_delta = verbose, mode, min_delta
        self.cooldown, self.min_lr, self.epoch = cooldown, min_lr, 0
        self._sign = 1.0 if _is_maximized("ReduceLROnPlateau", monitor, mode) else -1.0
        self.on_train_begin()

    def on_train_begin(self, logs: Logs = None) -> None:
        """Forget earlier values."""
        self.cooldown_counter = self.wait = 0
        self.best = -self._sign * np.inf

    def on_eval_end(self, logs: Logs = None) -> None:
        """Compare with the best value, and reduce the rate if it has not improved."""
        current = _monitored("ReduceLROnPlateau", self.monitor, logs)
        rate = self.model._optimizer._learning_rate
        if current is None or isinstance(rate, _Schedule):
            if current is not None:
                warnings.warn(
                    f"Expected learning_rate be float, but got {type(rate)}.", stacklevel=2
                )
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._sign * (current - self.best) > self.min_delta:
            self.best, self.wait = current, 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce()
        self.epoch += 1

    def _reduce(self) -> None:
        optimizer = self.model._optimizer
        old = optimizer.get_lr()
        if old > np.float32(self.min_lr):
            new = max(old * self.factor, self.min_lr)
            optimizer.set_lr(new)
            if self.verbose > 0:
                start = f"\nEpoch {self.epoch + 1}: ReduceLROnPlateau reducing learning rate"
                print(f"{start} to {new}.")
            self.cooldown_counter, self.wait = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Return whether a reduction was so recent that values are not compared."""
        return self.cooldown_counter > 0
