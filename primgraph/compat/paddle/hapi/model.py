"""`paddle.Model`: a network with its optimizer, loss and metrics, trained by `fit`."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from primgraph.compat.paddle.dynamic import Tensor, to_tensor
from primgraph.compat.paddle.files import load, save
from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.hapi.callbacks import (
    Callback,
    EarlyStopping,
    LRScheduler,
    ModelCheckpoint,
    call_all,
)
from primgraph.compat.paddle.hapi.progress import ProgBarLogger
from primgraph.compat.paddle.hapi.summary import summary
from primgraph.compat.paddle.io import DataLoader, DistributedBatchSampler, IterableDataset
from primgraph.compat.paddle.metric import Metric
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, BuildError


class Model:
    """A network that is trained by `fit`, and tested by `evaluate` and `predict`.

    >>> net = paddle.nn.Linear(1, 1)
    >>> model = paddle.Model(net)
    >>> model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), paddle.nn.MSELoss())
    >>> data = [(np.ones(1, "float32"), np.ones(1, "float32"))] * 4
    >>> model.fit(data, epochs=20, batch_size=2, verbose=0)
    >>> bool(model.evaluate(data, verbose=0)["loss"][0] < 0.01)
    True
    """

    def __init__(self, network: Any, inputs: Any = None, labels: Any = None) -> None:
        self.network = network
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Metric] = []
        self._inputs = len(_listed(inputs)) if inputs is not None else _parameters_of(network)
        self.stop_training = False
        self._left: int | None = None
        self._accumulated = 1

    def prepare(
        self,
        optimizer: Any = None,
        loss: Any = None,
        metrics: Any = None,
        amp_configs: Any = None,
    ) -> None:
        """Set the optimizer, the loss of results and labels, and metrics."""
        reject_options("prepare", amp_configs=amp_configs)
        if loss is not None and not callable(loss):
            raise ArgumentError("'loss' must be sub classes of `paddle.nn.Layer` or any callable.")
        self._optimizer, self._loss = optimizer, loss
        self._metrics = _listed(metrics)
        if not all(isinstance(m, Metric) for m in self._metrics):
            raise ArgumentError("metrics are instances of paddle.metric.Metric")

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
            results = self.network(*map(_tensor, _listed(inputs)))
        return [r.numpy() for r in _listed(results)]

    def fit(
        self,
        train_data: Any = None,
        eval_data: Any = None,
        batch_size: Any = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Any = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:
        """Train for some epochs, and call the methods of `callbacks`.

        Unless they are given, a `ProgBarLogger` prints losses and metrics, an `LRScheduler` steps
        the schedule after each batch, and a `ModelCheckpoint` saves to `save_dir`.
        """
        if self._optimizer is None or self._loss is None:
            raise BuildError("fit takes a model with an optimizer and a loss", hint="call prepare")
        sizes = batch_size if isinstance(batch_size, list | tuple) else (batch_size, batch_size)
        loader = _loader(train_data, sizes[0], shuffle, drop_last)
        testing = None if eval_data is None else _loader(eval_data, sizes[1], False, False)
        steps = _steps(loader)
        if num_iters is not None and steps is not None:
            epochs, steps = num_iters // steps + 1, min(num_iters, steps)
        known = {"epochs": epochs, "steps": steps, "verbose": verbose}
        called = self._callbacks(callbacks, known, log_freq, save_freq, save_dir)
        if testing is None and any(isinstance(c, EarlyStopping) for c in called):
            warnings.warn("EarlyStopping needs validation data.", stacklevel=2)
        self.stop_training, self._left, self._accumulated = (
            False,
            num_iters,
            accumulate_grad_batches,
        )
        call_all(called, "on_train_begin", None)
        logs: dict[str, Any] = {}
        for epoch in range(epochs):
            call_all(called, "on_epoch_begin", epoch, None)
            logs, _ = self._run(loader, called, "train")
            call_all(called, "on_epoch_end", epoch, logs)
            if testing is not None and epoch % eval_freq == 0:
                self._evaluate(testing, called)
            if self.stop_training:
                break
        call_all(called, "on_train_end", logs)

    def evaluate(
        self,
        eval_data: Any,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Any = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """Return the loss of the last batch, and the metrics of all batches."""
        called = self._callbacks(callbacks, {"verbose": verbose}, log_freq)
        self._left = num_iters
        logs = self._evaluate(_loader(eval_data, batch_size, False, False), called)
        return {name: logs[name] for name in self._names()}

    def predict(
        self,
        test_data: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:
        """Return for each result of the network the arrays of all batches, or one of these."""
        called = self._callbacks(callbacks, {"verbose": verbose}, 1)
        loader = _loader(test_data, batch_size, False, False)
        self._left = None
        call_all(called, "on_predict_begin", {"steps": _steps(loader), "metrics": []})
        logs, batches = self._run(loader, called, "predict")
        call_all(called, "on_predict_end", logs)
        found = list(zip(*batches, strict=True))
        return [np.concatenate(parts) for parts in found] if stack_outputs else found

    def _callbacks(
        self,
        given: Any,
        known: dict[str, Any],
        log_freq: int,
        save_freq: int = 1,
        save_dir: str | None = None,
    ) -> list[Callback]:
        """Return the callbacks of a run, with those that are there by default."""
        found: list[Callback] = _listed(given)
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
        call_all(called, "on_eval_begin", {"steps": _steps(loader), "metrics": names})
        logs, _ = self._run(loader, called, "eval")
        call_all(called, "on_eval_end", logs)
        return logs

    def _run(
        self, loader: Any, called: list[Callback], mode: str
    ) -> tuple[dict[str, Any], list[Any]]:
        """Run all batches of a loader; return the last losses and metrics, and predictions."""
        logs: dict[str, Any] = {}
        predicted = []
        steps = _steps(loader)
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
        names = [n for metric in self._metrics for n in _listed(metric.name())]
        return ["loss", *names] if self._loss is not None else names

    def parameters(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the parameters of the network."""
        return list(self.network.parameters(*args, **kwargs))

    def save(self, path: str, training: bool = True) -> None:
        """Write parameters to `path.pdparams`, and the optimizer's state to `path.pdopt`."""
        if not training:
            raise ArgumentError("save takes training=True: paddle.jit.save writes programs")
        save(self.network.state_dict(), f"{path}.pdparams")
        if self._optimizer is not None:
            save(self._optimizer.state_dict(), f"{path}.pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what `save` wrote."""
        reject_options("load", skip_mismatch=skip_mismatch)
        self.network.set_state_dict(load(f"{path}.pdparams"))
        if self._optimizer is not None and not reset_optimizer:
            self._optimizer.set_state_dict(load(f"{path}.pdopt"))

    def summary(self, input_size: Any = None, dtype: Any = None) -> Any:
        """Print the layers of the network: see `paddle.summary`."""
        return summary(self.network, input_size, dtype)

    def _forward(self, inputs: Any, labels: Any) -> tuple[list[Any], list[Any]]:
        """Return the results and losses of a batch."""
        results = _listed(self.network(*map(_tensor, _listed(inputs))))
        if self._loss is None:
            return results, []
        losses = self._loss(*results, *map(_tensor, _listed(labels)))
        return results, _listed(losses)

    def _measured(self, results: list[Any], labels: Any) -> list[Any]:
        """Return the values of the metrics for a batch."""
        found = []
        for metric in self._metrics:
            computed = metric.compute(*results, *map(_tensor, _listed(labels)))
            arrays = [a.numpy() if isinstance(a, Tensor) else a for a in _listed(computed)]
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
            names, values = _listed(metric.name()), _listed(metric.accumulate())
            logs |= zip(names, values, strict=True)
        return logs

    def _reset(self) -> None:
        for metric in self._metrics:
            metric.reset()


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _tensor(given: Any) -> Any:
    return given if isinstance(given, Tensor) else to_tensor(given)


def _parameters_of(network: Any) -> int:
    """Return how many arguments the network takes."""
    taken = inspect.signature(network.forward).parameters.values()
    return max(1, sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in taken))


def _flat(batch: Any) -> list[Any]:
    """Return the arrays of a batch, of lists in it too."""
    return [
        a
        for item in _listed(batch)
        for a in (_flat(item) if isinstance(item, list | tuple) else [item])
    ]


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool) -> Any:
    """Return a loader of batches of a dataset; another iterable itself."""
    is_dataset = hasattr(data, "__getitem__") or isinstance(data, IterableDataset)
    if isinstance(data, DataLoader) or not is_dataset:
        return data
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size=batch_size, drop_last=drop_last)
    sampler = DistributedBatchSampler(data, batch_size, shuffle=shuffle, drop_last=drop_last)
    return DataLoader(data, batch_sampler=sampler)


def _steps(loader: Any) -> int | None:
    """Return the number of batches of a loader, or None if it does not tell."""
    try:
        return len(loader)
    except TypeError:
        return None
