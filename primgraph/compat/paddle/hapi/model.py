"""`paddle.Model`: a network with its optimizer, loss and metrics, trained by `fit`."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from primgraph.compat.paddle.files import load, save
from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.hapi.batch_runs import BatchRuns, count_steps, listed
from primgraph.compat.paddle.hapi.callbacks import Callback, EarlyStopping, call_all
from primgraph.compat.paddle.hapi.summary import summary
from primgraph.compat.paddle.io import DataLoader, DistributedBatchSampler, IterableDataset
from primgraph.compat.paddle.metric import Metric
from primgraph.errors import ArgumentError, BuildError


class Model(BatchRuns):
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
        super().__init__(network)
        known = inputs is not None
        self._inputs = len(listed(inputs)) if known else _parameters_of(network)

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
        self._metrics = listed(metrics)
        if not all(isinstance(m, Metric) for m in self._metrics):
            raise ArgumentError("metrics are instances of paddle.metric.Metric")

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
        testing = None if eval_data is None else _loader(eval_data, sizes[1])
        steps = count_steps(loader)
        if num_iters is not None and steps is not None:
            epochs, steps = num_iters // steps + 1, min(num_iters, steps)
        known = {"epochs": epochs, "steps": steps, "verbose": verbose}
        called = self._callbacks(callbacks, known, log_freq, save_freq, save_dir)
        if testing is None and any(isinstance(c, EarlyStopping) for c in called):
            warnings.warn("EarlyStopping needs validation data.", stacklevel=2)
        self.stop_training, self._left = False, num_iters
        self._accumulated = accumulate_grad_batches
        self._train(loader, testing, called, epochs, eval_freq)

    def _train(
        self, loader: Any, testing: Any, called: list[Callback], epochs: int, eval_freq: int
    ) -> None:
        """Run the epochs of `fit`, until `stop_training` is set."""
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
        logs = self._evaluate(_loader(eval_data, batch_size), called)
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
        loader = _loader(test_data, batch_size)
        self._left = None
        call_all(called, "on_predict_begin", {"steps": count_steps(loader), "metrics": []})
        logs, batches = self._run(loader, called, "predict")
        call_all(called, "on_predict_end", logs)
        found = list(zip(*batches, strict=True))
        return [np.concatenate(parts) for parts in found] if stack_outputs else found

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


def _parameters_of(network: Any) -> int:
    """Return how many arguments the network takes."""
    taken = inspect.signature(network.forward).parameters.values()
    return max(1, sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in taken))


def _loader(data: Any, batch_size: int, shuffle: bool = False, drop_last: bool = False) -> Any:
    """Return a loader of batches of a dataset; another iterable itself."""
    is_dataset = hasattr(data, "__getitem__") or isinstance(data, IterableDataset)
    if isinstance(data, DataLoader) or not is_dataset:
        return data
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size=batch_size, drop_last=drop_last)
    sampler = DistributedBatchSampler(data, batch_size, shuffle=shuffle, drop_last=drop_last)
    return DataLoader(data, batch_sampler=sampler)
