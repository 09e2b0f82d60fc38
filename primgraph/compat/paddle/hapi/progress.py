"""The callback of `paddle.Model` that prints losses and metrics while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from primgraph.compat.paddle.hapi.callbacks import Callback, Logs

_WIDTH = 30
_NOTE = (
    "The loss value printed in the log is the current step, and the metric is the average value "
    "of previous steps."
)


class ProgBarLogger(Callback):
    """Print losses and metrics each `log_freq` batches.

    `verbose` is 0 for nothing, 1 for a bar, 2 for lines, and 3 for lines with the time of a batch.

    >>> paddle.callbacks.ProgBarLogger(10, verbose=2).log_freq
    10
    """

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self.epochs: Any = None
        self.steps: Any = None
        self._names: list[str] = []
        self._step = self._samples = 0
        self._start = 0.0

    def _begin(self, steps: int | None, names: Iterable[str]) -> None:
        self.steps, self._names = steps, list(names)
        self._step = self._samples = 0
        self._start = time.perf_counter()

    def _note(self, logs: Logs) -> None:
        """Count a batch; print it if it is the turn, unless it is the last one."""
        self._step += 1
        self._samples += (logs or {}).get("batch_size", 1)
        is_last = self.steps is not None and self._step >= self.steps
        if self.verbose and self._step % self.log_freq == 0 and not is_last:
            self._print(logs)

    def _print(self, logs: Logs) -> None:
        seconds = (time.perf_counter() - self._start) / max(self._step, 1)
        known = logs or {}
        values = "".join(f" - {n}:{_text(known[n])}" for n in self._names if n in known)
        if self.verbose == 3:
            values += f" - avg_batch_cost: {seconds:.5f} sec"
        print(f"{self._place()}{values} - {_duration(seconds)}/step")

    def _place(self) -> str:
        """Return the number of the batch, with a bar if that is wanted."""
        if self.steps is None:
            return f"step {self._step:3}"
        place = f"step {self._step:{len(str(self.steps))}}/{self.steps}"
        if self.verbose != 1:
            return place
        done = _WIDTH * self._step // self.steps
        end = "=" if self._step >= self.steps else ">"
        bar = ("=" * (done - 1) + end if done else "").ljust(_WIDTH, ".")
        return f"{place} [{bar}]"

    def on_train_begin(self, logs: Logs = None) -> None:
        """Print what the numbers are."""
        self.epochs = self.params["epochs"]
        if self.verbose:
            print(_NOTE)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Print the number of the epoch."""
        self._begin(self.params["steps"], self.params["metrics"])
        if self.verbose:
            print(f"Epoch {epoch + 1}/{self.epochs}")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Print the last batch."""
        if self.verbose and self.steps is not None:
            self._print(logs)

    def on_eval_begin(self, logs: Logs = None) -> None:
        """Print that an evaluation begins."""
        known = logs or {}
        self._begin(known.get("steps"), known.get("metrics", ()))
        if self.verbose:
            print("Eval begin...")

    def on_eval_end(self, logs: Logs = None) -> None:
        """Print the last batch, and the number of samples."""
        if self.verbose and self.steps is not None:
            self._print(logs)
            print(f"Eval samples: {self._samples}")

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Print that predictions begin."""
        self._begin((logs or {}).get("steps"), ())
        if self.verbose:
            print("Predict begin...")

    def on_predict_end(self, logs: Logs = None) -> None:
        """Print the last batch, and the number of samples."""
        if self.verbose:
            if self._step % self.log_freq != 0 or self.verbose == 1:
                self._print(logs)
            print(f"Predict samples: {self._samples}")

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """Print a batch if it is its turn."""
        self._note(logs)

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        """Print a batch if it is its turn."""
        self._note(logs)

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        """Print a batch if it is its turn."""
        self._note(logs)


def _text(value: Any) -> str:
    """Return values with four digits."""
    values = value if isinstance(value, list) else [value]
    return "".join(f" {_number(v)}" for v in values)


def _number(value: Any) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    value = float(value)
    return f"{value:.4f}" if abs(value) > 1e-3 else f"{value:.4e}"


def _duration(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"
