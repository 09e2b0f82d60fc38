"""Packages of other libraries' names in threads, in forked processes and after interrupts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from test_interrupts import Interrupter, context_variables

import primgraph.compat.megengine as megengine
import primgraph.compat.megengine.functional as F
import primgraph.compat.megengine.module as M
import primgraph.compat.oneflow as oneflow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.megengine.autodiff import GradManager
from primgraph.compat.megengine.optimizer import SGD

# The parameters of a network, and a function that takes one step of training.
Training = tuple[list[Any], Callable[[], float]]

X = np.random.default_rng(3).standard_normal((8, 3)).astype("float32")
W = np.random.default_rng(4).standard_normal((4, 3)).astype("float32") / 2


def train_torch(library: Any) -> Training:
    net = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.Tanh())
    with library.no_grad():
        net[0].weight.copy_(library.tensor(W))
        net[0].bias.zero_()
    optimizer = library.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step() -> float:
        optimizer.zero_grad()
        loss = (net(library.tensor(X)) ** 2).sum()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return list(net.parameters()), step


def train_paddle(library: Any) -> Training:
    layer = library.nn.Linear(3, 4)
    layer.weight.set_value(W.T)
    layer.bias.set_value(np.zeros(4, "float32"))
    optimizer = library.optimizer.Momentum(0.1, 0.9, parameters=layer.parameters())

    def step() -> float:
        loss = (library.tanh(layer(library.to_tensor(X))) ** 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    return layer.parameters(), step


def train_megengine(library: Any) -> Training:
    layer = M.Linear(3, 4)
    layer.weight[...] = W
    layer.bias[...] = 0.0
    manager = GradManager().attach(layer.parameters())
    optimizer = SGD(layer.parameters(), lr=0.1, momentum=0.9)

    def step() -> float:
        with manager:
            loss = F.sum(F.tanh(layer(library.Tensor(X))) ** 2)
            manager.backward(loss)
        optimizer.step().clear_grad()
        return float(loss.item())

    return list(layer.parameters()), step


BUILDERS: dict[str, tuple[Callable[[Any], Training], Any]] = {
    "torch": (train_torch, torch),
    "oneflow": (train_torch, oneflow),
    "paddle": (train_paddle, paddle),
    "megengine": (train_megengine, megengine),
}


def build(name: str) -> Training:
    function, library = BUILDERS[name]
    return function(library)


def losses(name: str, count: int = 5) -> list[float]:
    _, step = build(name)
    return [step() for _ in range(count)]


@pytest.fixture(scope="module")
def expected() -> dict[str, list[float]]:
    """Losses of each package, which are the same up to rounding."""
    found = {name: losses(name) for name in BUILDERS}
    for values in found.values():
        np.testing.assert_allclose(values, found["torch"], rtol=1e-5)
    return found


def test_packages_train_side_by_side_in_threads(expected: dict[str, list[float]]) -> None:
    found: dict[tuple[str, int], Any] = {}

    def work(name: str, number: int) -> None:
        try:
            found[name, number] = losses(name)
        except Exception as error:
            found[name, number] = error

    threads = [threading.Thread(target=work, args=(name, k)) for k in range(2) for name in BUILDERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for (name, _), values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, err_msg=name)


def test_modes_of_one_thread_are_not_those_of_another() -> None:
    inside, leave = threading.Event(), threading.Event()

    def wait_without_gradients() -> None:
        with torch.no_grad(), paddle.no_grad(), torch.autograd.forward_ad.dual_level():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=wait_without_gradients)
    thread.start()
    assert inside.wait(30)
    try:
        assert torch.is_grad_enabled()
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        y = paddle.ones([2])
        y.stop_gradient = False
        (y * y).sum().backward()
        assert y.grad.tolist() == [2.0, 2.0]
    finally:
        leave.set()
        thread.join(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", BUILDERS)
def test_a_child_that_is_forked_while_a_thread_trains_goes_on(
    name: str, expected: dict[str, list[float]]
) -> None:
    _, step = build(name)
    step()
    done = threading.Event()

    def train() -> None:
        while not done.is_set():
            losses(name, 2)

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                # The child has the parent's network, trains it on, and one of its own.
                status = 1
                try:
                    rest = [step() for _ in range(4)]
                    alike = np.allclose(rest, expected[name][1:], rtol=1e-5)
                    status = 0 if alike and np.allclose(losses(name), expected[name]) else 2
                finally:
                    os._exit(status)
            assert wait_for(child) == 0
    finally:
        done.set()
        thread.join(30)
    np.testing.assert_allclose(step(), expected[name][1], rtol=1e-5)


def wait_for(child: int, limit: float = 30.0) -> int:
    """Return the exit status of a child; a child that hangs is killed, and has status -9."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Instructions of a step at which it is interrupted.
PLACES = 25


@pytest.mark.parametrize("name", BUILDERS)
def test_each_parameter_is_whole_after_an_interrupt_of_a_step(name: str) -> None:
    """A step may be left undone for some parameters; training goes on afterwards."""
    parameters, step = build(name)
    step()
    first = read(parameters)
    step()
    second = read(parameters)
    counting = Interrupter(0)
    counting.run(build(name)[1])
    modes: dict[ContextVar[Any], Any] = context_variables()
    for place in np.unique(np.linspace(1, counting.count, PLACES).astype(int)):
        parameters, step = build(name)
        step()
        Interrupter(int(place)).run(step)
        for value, before, after in zip(read(parameters), first, second, strict=True):
            assert np.allclose(value, before) or np.allclose(value, after, rtol=1e-5)
        assert context_variables() == modes
        assert np.isfinite(step())


def read(parameters: list[Any]) -> list[Any]:
    return [np.array(p.detach().numpy()) for p in parameters]
