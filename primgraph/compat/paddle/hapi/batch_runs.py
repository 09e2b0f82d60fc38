"""Batches of `paddle.Model`: training, evaluation and prediction, with callbacks."""

from __future__ import annotations

from typing import Any

from primgraph.compat.paddle.dynamic import Tensor, to_tensor
from primgraph.compat.paddle.hapi.callbacks import (
    Callback,
    EarlyStopping,
    LRScheduler,
    ModelCheckpoint,
    call_all,
)
from primgraph.compat.paddle.hapi.progress import ProgBarLogger
from primgraph.compat.paddle.metric import Metric
from primgraph.eager.derivatives.recording import no_grad


class BatchRuns:
    """The batches of a network with an optimizer, a loss and metrics."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Metric] = []
        self._inputs = 1
        self.stop_training = False
        self._left: int | None = None
        self._accumulated = 1

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """Train with one batch; return losses, and the values of metrics if there are any."""
        self.network.train()
        results, losses = self._forward(inputs, labels)
        total = losses[0] if len(losses) == 1 else sum(losses[1:], losses[0])
        total.backward()
        if update:
            self._optimizer.step()
            self._optimizer.clear_grad()
        return self._found(losses, self._measured(results, labels))

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """Test with one batch; return what `train_batch` returns."""
        self.network.eval()
        with no_grad():
            results, losses = self._forward(inputs, labels)
            return self._found(losses, self._measured(results, labels))

    def predict_batch(self, inputs: Any) -> list[Any]:
        """Return the results of one batch, as arrays."""
        self.network.eval()
        with no_grad():
            results = self.network(*map(_tensor, listed(inputs)))
        return [r.numpy() for r in listed(results)]

    def _callbacks(
        self,
        given: Any,
        known: dict[str, Any],
        log_freq: int,
        save_freq: int = 1,
        save_dir: str | None = None,
    ) -> list[Callback]:
        """Return the callbacks of a run, with those that are there by default."""
        found: list[Callback] = listed(given)
        verbose = known["verbose"]
        if verbose and not any(isinstance(c, ProgBarLogger) for c in found):
            found = [ProgBarLogger(log_freq, verbose), *found]
        if not any(isinstance(c, ModelCheckpoint) for c in found):
            found = [*found, ModelCheckpoint(save_freq, save_dir)]
        if not any(isinstance(c, LRScheduler) for c in found):
            found = [*found, LRScheduler()]
        params = {"batch_size": None, "epochs": None, "steps": None, **known}
        params["metrics"] = self._names()
        for callback in found:
            if isinstance(callback, EarlyStopping):
                callback.save_dir = save_dir
            callback.set_model(self)
            callback.set_params(params)
        return found

    def _evaluate(self, loader: Any, called: list[Callback]) -> dict[str, Any]:
        """Test with all batches of a loader; return the losses and metrics."""
        names = self._names()
        call_all(called, "on_eval_begin", {"steps": count_steps(loader), "metrics": names})
        logs, _ = self._run(loader, called, "eval")
        call_all(called, "on_eval_end", logs)
        return logs

    def _run(
        self, loader: Any, called: list[Callback], mode: str
    ) -> tuple[dict[str, Any], list[Any]]:
        """Run all batches of a loader; return the last losses and metrics, and predictions."""
        logs: dict[str, Any] = {}
        predicted = []
        steps = count_steps(loader)
        self._reset()
        for step, batch in enumerate(loader):
            given = _flat(batch)
            call_all(called, f"on_{mode}_batch_begin", step, logs)
            inputs, labels = given[: self._inputs], given[self._inputs :]
            if mode == "predict":
                predicted.append(self.predict_batch(inputs))
            elif mode == "eval":
                logs |= self._logs(self.eval_batch(inputs, labels))
            else:
                update = (step + 1) % self._accumulated == 0 or step + 1 == steps
                logs |= self._logs(self.train_batch(inputs, labels, update))
            logs |= {"step": step, "batch_size": len(given[0])}
            call_all(called, f"on_{mode}_batch_end", step, logs)
            self._left = None if self._left is None else self._left - 1
            if self._left == 0:
                self.stop_training, self._left = True, None
                break
        self._reset()
        return logs, predicted

    def _names(self) -> list[str]:
        """Return the names of the loss and of the metrics."""
        names = [n for metric in self._metrics for n in listed(metric.name())]
        return ["loss", *names] if self._loss is not None else names

    def _forward(self, inputs: Any, labels: Any) -> tuple[list[Any], list[Any]]:
        """Return the results and losses of a batch."""
        results = listed(self.network(*map(_tensor, listed(inputs))))
        if self._loss is None:
            return results, []
        losses = self._loss(*results, *map(_tensor, listed(labels)))
        return results, listed(losses)

    def _measured(self, results: list[Any], labels: Any) -> list[Any]:
        """Return the values of the metrics for a batch."""
        found = []
        for metric in self._metrics:
            computed = metric.compute(*results, *map(_tensor, listed(labels)))
            arrays = [a.numpy() if isinstance(a, Tensor) else a for a in listed(computed)]
            found.append(metric.update(*arrays))
        return found

    def _found(self, losses: list[Any], measured: list[Any]) -> Any:
        values = [loss.numpy() for loss in losses]
        return (values, measured) if self._metrics else values

    def _logs(self, found: Any) -> dict[str, Any]:
        """Return the last losses and all metrics by name."""
        losses = found[0] if isinstance(found, tuple) else found
        logs: dict[str, Any] = {"loss": [float(v) for v in losses]} if losses else {}
        for metric in self._metrics:
            names, values = listed(metric.name()), listed(metric.accumulate())
            logs |= zip(names, values, strict=True)
        return logs

    def _reset(self) -> None:
        for metric in self._metrics:
            metric.reset()


def listed(given: Any) -> list[Any]:
    """Return the items of a list or tuple, one object in a list, and nothing for None."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _tensor(given: Any) -> Any:
    return given if isinstance(given, Tensor) else to_tensor(given)


def _flat(batch: Any) -> list[Any]:
    """Return the arrays of a batch, of lists in it too."""
    return [
        a
        for item in listed(batch)
        for a in (_flat(item) if isinstance(item, list | tuple) else [item])
    ]


def count_steps(loader: Any) -> int | None:
    """Return the number of batches of a loader, or None if it does not tell."""
    try:
        return len(loader)
    except TypeError:
        return None
