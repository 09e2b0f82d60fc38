"""Networks and optimizers by the names of torch and MegEngine: they train, and in programs too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
import primgraph.compat.megengine.module as M
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.megengine.autodiff import GradManager
from primgraph.compat.torch import nn

RNG = np.random.default_rng(29)
X = RNG.standard_normal((16, 4)).astype("float32")
LABELS = (X[:, 0] > 0).astype("int64") + (X[:, 1] > 0)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.LayerNorm(8))
        self.scores = nn.Linear(8, 3, bias=False)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: Any) -> Any:
        return self.scores(self.body(x)) * self.scale


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.5),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.9)),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05),
}


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_network_of_torch_learns(room: Any, name: str) -> None:
    room.manual_seed(0)
    net = Network()
    criterion = room.nn.CrossEntropyLoss()
    optimizer = OPTIMIZERS[name](net.parameters())
    x, labels = room.tensor(X), room.tensor(LABELS)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = criterion(net(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    net.eval()
    assert_array_equal(net(x).detach().numpy(), net(x).detach().numpy())


def stepped_by_adam(begin: list[float], counts_apart: bool, decay: float) -> list[float]:
    """Six steps of two parameters, of which the second has a gradient from the fourth on."""
    w, m, v, counts = np.array(begin), np.zeros(2), np.zeros(2), np.zeros(2)
    for i in range(6):
        moving = np.array([True, i >= 3])
        counts += moving if counts_apart else 1
        g = np.array([2e-6, 3e-7]) * w
        w = np.where(moving, w * (1 - 0.1 * decay), w)
        m = np.where(moving, 0.9 * m + 0.1 * g, m)
        v = np.where(moving, 0.999 * v + 0.001 * g * g, v)
        t = np.maximum(counts, 1)
        change = 0.1 / (1 - 0.9**t) * m / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        w = np.where(moving, w - change, w)
    return w.tolist()


def paddle_adam(parameters: Any) -> Any:
    return paddle.optimizer.Adam(0.1, parameters=parameters)


@pytest.mark.parametrize(
    ("make", "counts_apart", "decay"),
    [
        (lambda p: torch.optim.Adam(p, lr=0.1), True, 0.0),
        (lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1), True, 0.1),
        (lambda p: mge.optimizer.Adam(p, lr=0.1), True, 0.0),
        (lambda p: mge.optimizer.AdamW(p, lr=0.1, weight_decay=0.1), True, 0.1),
        (paddle_adam, True, 0.0),
        (lambda p: flow.optim.Adam(p, lr=0.1), False, 0.0),
        (lambda p: flow.optim.AdamW(p, lr=0.1, weight_decay=0.1), False, 0.1),
    ],
    ids=["torch", "torch_w", "megengine", "megengine_w", "paddle", "oneflow", "oneflow_w"],
)
def test_adam_with_small_gradients_and_steps_without_one(
    make: Callable[[Any], Any], counts_apart: bool, decay: float
) -> None:
    begin = [0.5, 2.0]
    first, second = (pg.tensor(w, requires_grad=True) for w in begin)
    optimizer = make([first, second])
    for i in range(6):
        first.grad = second.grad = None
        loss = 1e-6 * first * first
        if i >= 3:
            loss = loss + 1.5e-7 * second * second
        loss.backward()
        optimizer.step()
    expected = stepped_by_adam(begin, counts_apart, decay)
    assert_allclose([first.item(), second.item()], expected, rtol=1e-12)


def test_modules_have_torchs_parts() -> None:
    net = Network()
    names = dict(net.named_parameters())
    assert set(names) == {
        "scale",
        "body.0.weight",
        "body.0.bias",
        "body.3.weight",
        "body.3.bias",
        "scores.weight",
    }
    assert names["body.0.weight"].shape == (8, 4)
    assert names["scores.weight"].shape == (3, 8)
    assert all(type(p) is nn.Parameter for p in names.values())
    assert net.scores.bias is None
    assert next(net.modules()) is net
    assert dict(net.named_modules())["body.0"] is net.body[0]
    assert net.to("cpu") is net.cpu() is net
    with pytest.raises(ValueError, match="no device"):
        net.to("cuda")
    other = Network()
    other.load_state_dict(net.state_dict())
    net.eval()
    other.eval()
    assert_array_equal(
        net(torch.tensor(X)).detach().numpy(), other(torch.tensor(X)).detach().numpy()
    )


def test_parts_are_registered_by_name() -> None:
    net = nn.Module()
    net.add_module("inner", nn.Linear(2, 3))
    net.register_parameter("scale", nn.Parameter(torch.tensor([2.0])))
    assert set(dict(net.named_parameters())) == {"inner.weight", "inner.bias", "scale"}


def test_the_same_network_is_part_of_a_program() -> None:
    net = Network()
    net.eval()
    with pg.Program() as program:
        x = pg.data("x", X.shape, "float32")
        y = net(x)
    (found,) = pg.Executor().run(program, {"x": X}, [y])
    assert_allclose(found, net(torch.tensor(X)).detach().numpy(), rtol=1e-6)


LAYERS: dict[str, tuple[Any, Any]] = {
    "Flatten": (nn.Flatten(), lambda f, x: x.flatten(1)),
    "GELU": (nn.GELU("tanh"), lambda f, x: f.gelu(x, "tanh")),
    "ReLU": (nn.ReLU(), lambda f, x: f.relu(x)),
    "SiLU": (nn.SiLU(), lambda f, x: f.silu(x)),
    "Sigmoid": (nn.Sigmoid(), lambda f, x: f.sigmoid(x)),
    "Softmax": (nn.Softmax(dim=1), lambda f, x: f.softmax(x, 1)),
    "Softplus": (nn.Softplus(beta=2), lambda f, x: f.softplus(x, 2)),
    "Tanh": (nn.Tanh(), lambda f, x: f.tanh(x)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_its_function(name: str) -> None:
    layer, function = LAYERS[name]
    x = torch.tensor(X)
    assert_allclose(layer(x).numpy(), function(nn.functional, x).numpy(), rtol=1e-6)


LOSSES: dict[str, tuple[Any, Any]] = {
    "BCELoss": (nn.BCELoss(), lambda f, p, t: f.binary_cross_entropy(p, t)),
    "BCEWithLogitsLoss": (
        nn.BCEWithLogitsLoss(reduction="sum"),
        lambda f, p, t: f.binary_cross_entropy_with_logits(p, t, reduction="sum"),
    ),
    "HuberLoss": (nn.HuberLoss(delta=0.3), lambda f, p, t: f.huber_loss(p, t, delta=0.3)),
    "L1Loss": (nn.L1Loss(), lambda f, p, t: f.l1_loss(p, t)),
    "MSELoss": (nn.MSELoss(), lambda f, p, t: f.mse_loss(p, t)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_its_function(name: str) -> None:
    layer, function = LOSSES[name]
    p, t = (torch.tensor(RNG.uniform(0.1, 0.9, (4, 3))) for _ in range(2))
    assert_allclose(layer(p, t).item(), function(nn.functional, p, t).item(), rtol=1e-12)


def test_losses_of_classes_take_them_along_axis_one() -> None:
    x, labels = torch.tensor(RNG.random((2, 3, 4))), RNG.integers(0, 3, (2, 4))
    logs = torch.log_softmax(x, 1)
    assert_allclose(
        nn.CrossEntropyLoss()(x, labels).item(), nn.NLLLoss()(logs, labels).item(), rtol=1e-12
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda p: mge.optimizer.SGD(p, lr=0.5),
        lambda p: mge.optimizer.SGD(p, lr=0.1, momentum=0.9),
        lambda p: mge.optimizer.Adam(p, lr=0.05),
        lambda p: mge.optimizer.AdamW(p, lr=0.05),
    ],
    ids=["sgd", "momentum", "adam", "adamw"],
)
def test_a_network_of_megengine_learns_by_a_manager(make: Callable[[Any], Any]) -> None:
    pg.seed(0)

    class Net(M.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = M.Sequential(M.Linear(4, 8), M.Tanh(), M.Dropout(0.1), M.Linear(8, 3))

        def forward(self, x: Any) -> Any:
            return self.body(x)

    net = Net()
    assert [type(m) for m in net.modules()][:2] == [Net, M.Sequential]
    assert {p.shape for p in net.parameters()} == {(8, 4), (8,), (3, 8), (3,)}
    gm = GradManager().attach(net.parameters())
    optimizer = make(net.parameters())
    x, labels = mge.tensor(X), mge.tensor(LABELS)
    losses = []
    for _ in range(60):
        with gm:
            loss = F.cross_entropy(net(x), labels)
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
