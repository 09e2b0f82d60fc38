"""Modules of torch under `pg.jit`: what a compiled function changes, each call changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.torch as torch
from primgraph.compat.torch import nn

BATCHES = [np.random.default_rng(k).normal(size=(6, 3)).astype(np.float32) for k in range(3)]


def build_network(momentum: float | None) -> Any:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=momentum), nn.ReLU(inplace=True)
    )


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_compiled_network_moves_its_running_statistics(momentum: float | None) -> None:
    plain, compiled = build_network(momentum), build_network(momentum)
    call = pg.jit(lambda x: compiled(x))
    for batch in BATCHES:
        x = torch.from_numpy(batch)
        np.testing.assert_allclose(call(x).detach(), plain(x).detach(), rtol=1e-4, atol=1e-6)
    for (name, ours), theirs in zip(compiled.named_buffers(), plain.buffers(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7, err_msg=name)
    assert compiled[1].num_batches_tracked == 3
    compiled.eval(), plain.eval()
    before = compiled[1].running_mean.clone()
    np.testing.assert_allclose(call(x).detach(), plain(x).detach(), rtol=1e-4, atol=1e-6)
    assert torch.equal(before, compiled[1].running_mean)


def test_gradients_go_through_a_compiled_network_in_training() -> None:
    plain, compiled = build_network(0.1), build_network(0.1)
    call, x = pg.jit(lambda x: (compiled(x) ** 2).sum()), torch.from_numpy(BATCHES[0])
    for network, loss in ((plain, (plain(x) ** 2).sum()), (compiled, call(x))):
        loss.backward()
        assert not network[1].running_mean.requires_grad
    for ours, theirs in zip(compiled.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(compiled[1].running_var, plain[1].running_var, rtol=1e-6)


def count_calls(counter: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        counter.add_(1)
        return x * counter

    return call


def test_a_compiled_function_changes_tensors_at_each_call() -> None:
    counter = torch.zeros(())
    call, x = pg.jit(count_calls(counter)), torch.ones(2)
    assert [call(x).tolist() for _ in range(3)] == [[1.0] * 2, [2.0] * 2, [3.0] * 2]
    assert counter == 3
    counter.zero_()
    assert call(x).tolist() == [1.0, 1.0]


def test_a_compiled_step_of_descent_changes_parameters() -> None:
    weight = torch.ones(2, requires_grad=True)

    @pg.jit
    def step(x: Any) -> Any:
        loss = ((weight * x) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight.sub_(0.1 * gradient)
        return loss

    x = torch.tensor([1.0, 2.0])
    losses = [step(x).item() for _ in range(3)]
    expected, w = [], np.ones(2)
    for _ in range(3):
        expected.append(((w * [1, 2]) ** 2).sum())
        w = w - 0.1 * 2 * w * np.array([1, 4])
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(weight.detach(), w, rtol=1e-5)
    assert weight.is_leaf
    assert weight.requires_grad


def test_tensors_that_a_compiled_function_makes_begin_anew_at_each_call() -> None:
    @pg.jit
    def sums(x: Any) -> Any:
        total = torch.zeros(2)
        for row in x:
            total += row
        total[0] += 1
        return total

    x = torch.ones(3, 2)
    assert [sums(x).tolist() for _ in range(2)] == [[4.0, 3.0]] * 2


def test_views_of_changed_tensors_are_taken_after_the_change() -> None:
    base = torch.zeros(3)
    part = base[1:]

    @pg.jit
    def late(x: Any) -> Any:
        base.add_(x)
        return part.sum()

    with pytest.raises(pg.errors.BuildError, match="take the view after the change"):
        late(torch.ones(3))
    refused = pg.jit(lambda x: part.add_(x))
    with pytest.raises(pg.errors.BuildError, match="shares the elements"):
        refused(torch.ones(2))

    @pg.jit
    def after(x: Any) -> Any:
        base.add_(x)
        return base[1:].sum()

    assert after(torch.ones(3)) == 2
    assert part.tolist() == [1.0, 1.0]


def test_a_function_that_is_vectorized_changes_nothing_from_outside() -> None:
    outside = torch.zeros(3)
    with pytest.raises(pg.errors.BuildError, match="no argument of it"):
        torch.vmap(lambda x: outside.add_(x))(torch.ones(2, 3))
    assert outside.sum() == 0


def test_a_change_of_a_detached_variable_is_an_error_where_the_other_is_used() -> None:
    def change(x: Any) -> Any:
        y = x * x
        z = y.detach()
        y.add_(1)
        return z.sum()

    with pytest.raises(pg.errors.ArgumentError, match="may share its elements"):
        torch.vmap(change)(torch.ones(2, 3))


def test_tensors_of_primgraph_change_in_compiled_functions_too() -> None:
    total = pg.tensor(np.zeros(2))

    @pg.jit
    def add(x: Any) -> Any:
        total[...] = total + x
        return x * 2

    add(pg.tensor(np.ones(2)))
    add(pg.tensor(np.array([1.0, 2.0])))
    assert total.tolist() == [2.0, 3.0]
