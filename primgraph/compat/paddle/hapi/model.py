"""`paddle.Model`: a network with its optimizer, loss and metrics, trained by `fit`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from primgraph.compat.paddle.dynamic import Tensor, to_tensor
from primgraph.compat.paddle.files import load, save
from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.hapi.summary import summary
from primgraph.compat.paddle.io import DataLoader
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
        batch_size: int = 1,
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
        """Train for some epochs, and print losses and metrics unless `verbose` is 0.

        With `save_dir`, parameters are saved there after each `save_freq` epochs.
        """
        reject_options("fit", callbacks=callbacks)
        if self._optimizer is None or self._loss is None:
            raise BuildError("fit takes a model with an optimizer and a loss", hint="call prepare")
        loader = _loader(train_data, batch_size, shuffle, drop_last)
        left = num_iters
        self.stop_training = False
        for epoch in range(epochs):
            self._reset()
            found: Any = None
            for number, (inputs, labels) in enumerate(self._batches(loader)):
                update = (number + 1) % accumulate_grad_batches == 0
                found = self.train_batch(inputs, labels, update)
                left = None if left is None else left - 1
                if left == 0:
                    self.stop_training = True
                    break
            if verbose:
                print(f"Epoch {epoch + 1}/{epochs}{_text(self._logs(found))}")
            if eval_data is not None and (epoch + 1) % eval_freq == 0:
                self.evaluate(eval_data, batch_size, verbose=verbose)
            if save_dir is not None and (epoch + 1) % save_freq == 0:
                self.save(f"{save_dir}/{epoch}")
            if self.stop_training:
                break
        if save_dir is not None:
            self.save(f"{save_dir}/final")

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
        reject_options("evaluate", callbacks=callbacks)
        self._reset()
        found: Any = None
        loader = _loader(eval_data, batch_size, False, False)
        for number, (inputs, labels) in enumerate(self._batches(loader)):
            if number == num_iters:
                break
            found = self.eval_batch(inputs, labels)
        logs = self._logs(found)
        if verbose:
            print(f"Eval{_text(logs)}")
        return logs

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
        reject_options("predict", callbacks=callbacks)
        loader = _loader(test_data, batch_size, False, False)
        batches = [self.predict_batch(inputs) for inputs, _ in self._batches(loader)]
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
            found.append(metric.update(*_listed(computed)))
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

    def _batches(self, loader: Any) -> Iterator[tuple[list[Any], list[Any]]]:
        for batch in loader:
            given = _listed(batch)
            yield given[: self._inputs], given[self._inputs :]


def _text(logs: dict[str, Any]) -> str:
    """Return losses and metrics for a line of output."""
    first = {name: v[0] if isinstance(v, list) else v for name, v in logs.items()}
    return "".join(f" - {name}: {value:.4f}" for name, value in first.items())


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


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool) -> Any:
    """Return a loader of batches of a dataset; a loader itself."""
    if isinstance(data, DataLoader):
        return data
    return DataLoader(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
