"""Training steps with tensors, beside a compiled program, torch and autograd, in one run.

    python benchmarks/tensors.py [--repeats 30]

A step is forward, backward and a step of SGD of a classifier with tanh and cross entropy, float64
for the digits (64-32-10, 64 samples a step) and float32 for the larger one (784-256-256-10, 128
samples). Times are medians of interleaved blocks; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import primgraph as pg

Step = Callable[[], object]
NETWORKS = {
    "digits 64-32-10, 64 samples": ((64, 32, 10), 64, np.float64),
    "784-256-256-10, 128 samples": ((784, 256, 256, 10), 128, np.float32),
}
RATE = 0.1


class Task:
    """Weights and samples of one network."""

    def __init__(self, widths: tuple[int, ...], samples: int, dtype: Any) -> None:
        rng = np.random.default_rng(0)
        self.weights = [
            (rng.normal(size=(m, n)) / np.sqrt(m)).astype(dtype) for m, n in pairwise(widths)
        ]
        self.biases = [np.zeros(n, dtype) for n in widths[1:]]
        self.x = rng.normal(size=(samples, widths[0])).astype(dtype)
        self.labels = rng.integers(0, widths[-1], samples)
        self.targets = np.eye(widths[-1], dtype=dtype)[self.labels]

    @property
    def parameters(self) -> list[np.ndarray[Any, Any]]:
        return [p for pair in zip(self.weights, self.biases, strict=True) for p in pair]


def network(x: Any, parameters: list[Any], tanh: Callable[[Any], Any]) -> Any:
    *hidden, (w, b) = zip(parameters[::2], parameters[1::2], strict=True)
    for v, c in hidden:
        x = tanh(x @ v + c)
    return x @ w + b


def loss_of(logits: Any, targets: Any) -> Any:
    return pg.mean(pg.logsumexp(logits, axis=1) - pg.sum(logits * targets, axis=1))


def with_tensors(task: Task) -> Step:
    parameters = [pg.tensor(p, requires_grad=True) for p in task.parameters]
    x, targets = pg.tensor(task.x), pg.tensor(task.targets)
    optimizer = pg.optimizer.SGD(RATE, parameters=parameters)

    def step() -> float:
        loss = loss_of(network(x, parameters, pg.tanh), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def with_program(task: Task) -> Step:
    with pg.Program() as program:
        x = pg.data("x", task.x.shape, task.x.dtype)
        targets = pg.data("targets", task.targets.shape, task.targets.dtype)
        parameters = [
            pg.create_parameter(p.shape, p.dtype, initializer=pg.initializers.Assign(p))
            for p in task.parameters
        ]
        loss = loss_of(network(x, parameters, pg.tanh), targets)
        pg.optimizer.SGD(RATE).minimize(loss)
    executor = pg.Executor()
    feed = {"x": task.x, "targets": task.targets}
    return lambda: executor.run(program, feed, [loss])


def with_torch(task: Task) -> Step:
    torch = importlib.import_module("torch")
    parameters = [torch.tensor(p, requires_grad=True) for p in task.parameters]
    x, labels = torch.tensor(task.x), torch.tensor(task.labels)
    optimizer = torch.optim.SGD(parameters, RATE)

    def step() -> float:
        loss = torch.nn.functional.cross_entropy(network(x, parameters, torch.tanh), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def with_autograd(task: Task) -> Step:
    autograd = importlib.import_module("autograd")
    anp = importlib.import_module("autograd.numpy")
    logsumexp = importlib.import_module("autograd.scipy.special").logsumexp

    def loss_at(parameters: list[Any]) -> Any:
        logits = network(task.x, parameters, anp.tanh)
        return anp.mean(logsumexp(logits, axis=1) - anp.sum(logits * task.targets, axis=1))

    gradient = autograd.value_and_grad(loss_at)
    parameters = task.parameters

    def step() -> float:
        loss, found = gradient(parameters)
        for p, g in zip(parameters, found, strict=True):
            p -= RATE * g
        return float(loss)

    return step


WAYS = {
    "tensors": with_tensors,
    "program": with_program,
    "torch": with_torch,
    "autograd": with_autograd,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    installed = [n for n in WAYS if n in ("tensors", "program") or importlib.util.find_spec(n)]
    for name, kind in NETWORKS.items():
        steps = {n: WAYS[n](Task(*kind)) for n in installed}
        for step in steps.values():
            for _ in range(5):
                step()
        times: dict[str, list[float]] = {n: [] for n in installed}
        for _ in range(repeats):
            for way, step in steps.items():
                start = time.perf_counter()
                for _ in range(20):
                    step()
                times[way].append((time.perf_counter() - start) / 20)
        print(name)
        for way in installed:
            ratio = statistics.median(
                a / b for a, b in zip(times["tensors"], times[way], strict=True)
            )
            median = statistics.median(times[way])
            print(f"  {way:10} {median * 1e6:9.1f} us, tensors take {ratio:.2f} of it")


if __name__ == "__main__":
    main()
