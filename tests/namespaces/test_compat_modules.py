"""Modules of torch and OneFlow beside what snippets record: programs, compilation and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import primgraph as pg
import primgraph.compat.oneflow as flow
import primgraph.compat.oneflow.nn as flow_nn
import primgraph.compat.torch as torch
from primgraph.compat.torch import nn

X = np.random.default_rng(3).standard_normal((8, 2)).astype("float32")
Y = X.sum(1, keepdims=True)


def network(room: Any) -> Any:
    """Return a network whose parameters do not depend on random numbers."""
    net = room.nn.Sequential(room.nn.Linear(2, 4), room.nn.Tanh(), room.nn.Linear(4, 1))
    with room.no_grad():
        for parameter in net.parameters():
            count = parameter.numel()
            parameter.copy_(room.linspace(-1.0, 1.0, count).reshape(parameter.shape))
    return net


def test_a_module_computes_the_same_in_a_program_and_compiled() -> None:
    net = network(torch)
    expected = net(torch.tensor(X)).detach().numpy()
    with pg.Program() as program:
        y = net(pg.data("x", X.shape, "float32"))
    assert_allclose(pg.Executor().run(program, {"x": X}, [y])[0], expected, rtol=1e-6)
    compiled = pg.jit(net)
    assert_allclose(compiled(torch.tensor(X)).detach().numpy(), expected, rtol=1e-6)
    with torch.no_grad():
        net[2].bias.add_(1.0)
    assert_allclose(compiled(torch.tensor(X)).detach().numpy(), expected + 1, rtol=1e-6)


def test_plain_containers_hold_no_parts() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(1, 1)]

    assert not list(Net().parameters())
    assert not list(Net().sublayers())


def test_a_graph_trains_as_eager_code_does() -> None:
    class Training(flow_nn.Graph):
        def __init__(self, model: Any, optimizer: Any) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x: Any, y: Any) -> Any:
            loss = flow_nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            return loss

    x, y = flow.tensor(X), flow.tensor(Y)
    first, second = network(flow), network(flow)
    one, other = (flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (first, second))
    graph = Training(first, one)
    for _ in range(3):
        found = graph(x, y)
        other.zero_grad()
        loss = flow_nn.functional.mse_loss(second(x), y)
        loss.backward()
        other.step()
        assert_allclose(found.item(), loss.item(), rtol=1e-6)
    assert not found.requires_grad
    assert type(first[0].weight) is flow_nn.Parameter
    kept = graph.state_dict()
    assert sorted(kept) == ["model", "optimizer_0"]
    graph.load_state_dict(kept)


def test_a_graph_refuses_what_is_no_graph() -> None:
    class Wrong(flow_nn.Graph):
        def build(self, x: Any) -> Any:
            return Wrong()(x)

    with pytest.raises(RuntimeError, match="is called in"):
        Wrong()(flow.ones(1))
    with pytest.raises(TypeError, match="takes tensors"):
        Wrong()(3)
    with pytest.raises(NotImplementedError, match="build"):
        flow_nn.Graph()(flow.ones(1))
    with pytest.raises(ValueError, match="precision"):
        Wrong().config.enable_amp(True)
