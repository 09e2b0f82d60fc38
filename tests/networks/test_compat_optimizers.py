"""Optimizers of torch, Paddle, MegEngine and OneFlow: what their recorded snippets do not show."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph.compat.megengine as mge
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.oneflow.optim import lr_scheduler as flow_rates
from primgraph.eager.compilation_log import log

BEGIN = np.array([1.0, -2.0])


def steps(make: Callable[[Any], Any], tensor: Any, count: int = 4) -> np.ndarray[Any, Any]:
    """Take steps along the gradient `w`."""
    optimizer = make([tensor])
    for _ in range(count):
        tensor.grad = type(tensor).family(tensor.detach().node)
        optimizer.step()
    return np.array(tensor.detach().numpy(), np.float64)


def leaf(library: Any) -> Any:
    if library is mge:
        return mge.Tensor(BEGIN).requires_grad_()
    return library.tensor(BEGIN, dtype=library.float64, requires_grad=True)


def reference(change: Callable[..., Any], count: int = 4) -> np.ndarray[Any, Any]:
    w, state = BEGIN.copy(), {}
    for t in range(1, count + 1):
        w = change(w, w.copy(), state, t)
    return w


def adagrad_below_root(w: Any, g: Any, state: Any, t: int) -> Any:
    state["sum"] = state.get("sum", 0.0) + g * g
    return w - 0.1 / (1 + (t - 1) * 0.5) * g / np.sqrt(state["sum"] + 0.01)


def rmsprop_below_root(w: Any, g: Any, state: Any, t: int) -> Any:
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    state["m"] = 0.5 * state.get("m", 0.0) + 0.1 * g / np.sqrt(state["v"] + 0.01)
    return w - state["m"]


def momentum_from_zeros(w: Any, g: Any, state: Any, t: int) -> Any:
    state["m"] = 0.9 * state.get("m", 0.0) + 0.5 * g
    return w - 0.1 * state["m"]


def lamb(w: Any, g: Any, state: Any, t: int) -> Any:
    state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g
    state["v"] = 0.99 * state.get("v", 0.0) + 0.01 * g * g
    change = state["m"] / (1 - 0.9**t) / (np.sqrt(state["v"] / (1 - 0.99**t)) + 1e-8) + 0.2 * w
    return w - 0.1 * np.linalg.norm(w) / np.linalg.norm(change) * change


BETAS = (0.9, 0.99)
CASES = [
    (mge, lambda p: mge.optimizer.Adagrad(p, 0.1, 0.5, 0.01), adagrad_below_root),
    (mge, lambda p: mge.optimizer.LAMB(p, 0.1, BETAS, weight_decay=0.2), lamb),
    (flow, lambda p: flow.optim.LAMB(p, 0.1, BETAS, weight_decay=0.2), lamb),
    (flow, lambda p: flow.optim.RMSprop(p, 0.1, 0.9, 0.01, momentum=0.5), rmsprop_below_root),
    (flow, lambda p: flow.optim.SGD(p, 0.1, 0.9, dampening=0.5), momentum_from_zeros),
]


@pytest.mark.parametrize(("library", "make", "change"), CASES)
def test_formulas_of_megengine_and_oneflow(library: Any, make: Any, change: Any) -> None:
    found = steps(make, leaf(library))
    rtol = 1e-6 if library is mge else 1e-12
    assert_allclose(found, reference(change), rtol=rtol)


OPTIMIZERS = ("SGD", "Adam", "AdamW", "NAdam", "RMSprop", "Adagrad", "Adadelta", "Rprop", "ASGD")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_another_rate_compiles_nothing(name: str) -> None:
    w = torch.ones(3, requires_grad=True)
    optimizer = getattr(torch.optim, name)([w], lr=0.1)
    for i in range(8):
        optimizer.zero_grad()
        torch.sum(w * w).backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.9
        if i == 4:
            known = log.total
    assert log.total == known


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_complex_parameters_are_two_real_ones(name: str) -> None:
    z = torch.tensor([1.0 + 2.0j, -0.5j], dtype=torch.complex128, requires_grad=True)
    x = torch.tensor([[1.0, 2.0], [0.0, -0.5]], dtype=torch.float64, requires_grad=True)
    pair = [getattr(torch.optim, name)([w], lr=0.1) for w in (z, x)]
    for _ in range(3):
        z.grad = (z * 3.0).detach()
        x.grad = (x * 3.0).detach()
        for optimizer in pair:
            optimizer.step()
    assert_allclose(torch.view_as_real(z.detach()).numpy(), x.detach().numpy(), rtol=1e-12)


def test_a_step_reaches_all_that_share_the_elements() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    shared, part, before = w.data, w.detach()[1:], w * 1
    optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.9)
    for _ in range(2):
        w.grad = torch.ones(2)
        optimizer.step()
        buffer = optimizer.state_dict()["state"][0]["momentum_buffer"]
        assert buffer is optimizer.state[w]["momentum_buffer"]
    assert_allclose(w.detach().numpy(), [-0.45, 0.55], rtol=1e-6)
    assert_array_equal(shared.numpy(), w.detach().numpy())
    assert_array_equal(part.numpy(), w.detach().numpy()[1:])
    assert_array_equal(before.detach().numpy(), [1.0, 2.0])
    assert w.requires_grad
    assert w.is_leaf


def test_copies_go_on_alone() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)
    w.grad = torch.ones(2)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (copied,) = other.param_groups[0]["params"]
        copied.grad = torch.ones(2)
        other.step()
        assert float(other.state[copied]["step"]) == 2
    assert float(optimizer.state[w]["step"]) == 1


def test_derivatives_go_through_differentiable_steps() -> None:
    def trained(start: float) -> Any:
        w = torch.tensor([start], dtype=torch.float64, requires_grad=True)
        x = w.clone()
        optimizer = torch.optim.Adam([x], lr=0.1, eps=0.1, differentiable=True)
        for _ in range(2):
            (x.grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            optimizer.step()
        return w, x

    w, x = trained(1.5)
    x.sum().backward()
    ends = [trained(1.5 + h)[1].item() for h in (1e-6, -1e-6)]
    assert_allclose(w.grad.item(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_a_schedule_of_paddle_is_read_at_each_run_of_a_program() -> None:
    main, startup = paddle.static.Program(), paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(main, startup):
            one = paddle.nn.initializer.Constant(1.0)
            w = paddle.create_parameter([1], "float32", default_initializer=one)
            rates = paddle.optimizer.lr.PiecewiseDecay([1, 2], [0.5, 0.25, 0.125])
            paddle.optimizer.SGD(rates).minimize(paddle.sum(w))
        executor = paddle.static.Executor()
        executor.run(startup)
        for left in (0.5, 0.25, 0.125):
            executor.run(main)
            assert main.state_dict()[w.name] == left
            rates.step()
    finally:
        paddle.disable_static()


def test_parameters_of_oneflow_count_steps_together() -> None:
    first, second = (flow.tensor([1.0], requires_grad=True) for _ in range(2))
    optimizer = flow.optim.Adam([first, second], lr=0.1)
    for tensors in ([first], [first, second]):
        for tensor in tensors:
            tensor.grad = flow.ones(1)
        optimizer.step()
    assert [float(s["step"]) for s in optimizer.state.values()] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("make", "rates"),
    [
        (lambda o: flow_rates.CosineDecayLR(o, 2, 0.5), [1.0, 0.75, 0.5, 0.5]),
        (lambda o: flow_rates.PolynomialLR(o, 2, 0.0, cycle=True), [1.0, 0.5, 0.0, 0.25]),
        (lambda o: flow_rates.WarmUpLR(o, 0.5, 2), [0.5, 0.75, 1.0, 1.0]),
        (
            lambda o: flow_rates.WarmUpLR(
                flow_rates.StepLR(o, 1, 0.5), 0.5, 2, "constant", warmup_prefix=True
            ),
            [0.5, 0.5, 1.0, 0.5],
        ),
    ],
)
def test_schedules_of_oneflow(make: Any, rates: list[float]) -> None:
    optimizer = flow.optim.SGD([flow.ones(1).requires_grad_()], lr=1.0)
    scheduler = make(optimizer)
    found = []
    for _ in rates:
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert_allclose(found, rates, atol=1e-12)


def test_schedule_and_clipping_of_megengine() -> None:
    w = mge.Tensor(np.array([3.0, 4.0]))
    w.grad = mge.Tensor(np.array([3.0, 4.0]))
    assert_allclose(float(mge.optimizer.clip_grad_norm([w], max_norm=1.0)), 5.0, rtol=1e-6)
    assert_allclose(w.grad.numpy(), [0.6, 0.8], rtol=1e-5)
    optimizer = mge.optimizer.SGD([w], lr=1.0)
    scheduler = mge.optimizer.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    found = []
    for _ in range(4):
        found.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    assert found == [1.0, 0.5, 0.5, 0.25]
    assert optimizer.step().clear_grad() is optimizer


def test_each_step_reads_options_that_may_have_changed() -> None:
    rate, betas = torch.tensor(0.1), [0.9, 0.999]
    optimizer = torch.optim.Adam([torch.ones(1, requires_grad=True)], lr=0.1)
    (group,) = optimizer.param_groups
    w = group["params"][0]

    def moved(**options: Any) -> float:
        group.update(options)
        w.grad, before = torch.ones(1), w.item()
        optimizer.step()
        return round(before - w.item(), 5)

    assert moved() == moved() == 0.1
    assert moved(lr=0.2) == 0.2
    assert moved(lr=rate) == 0.1
    rate.fill_(0.3)
    assert moved() == 0.3
    assert moved(maximize=True) < 0.3
    optimizer.state.clear()
    assert moved(maximize=False, lr=1.0, betas=betas) == 1.0
    betas[0] = 0.0
    assert moved() == 1.0
    w.grad = torch.zeros(1)
    before = w.item()
    optimizer.step()
    assert w.item() == before
