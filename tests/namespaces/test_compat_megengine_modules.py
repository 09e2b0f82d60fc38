"""MegEngine's modules: their parts, state dicts, hooks, text, and layers against torch's."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
import primgraph.compat.megengine.module as M
import primgraph.compat.torch as torch
from primgraph.compat.megengine.autodiff import GradManager

RNG = np.random.default_rng(31)


class Net(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = M.ConvBn2d(2, 4, 3, padding=1)
        self.blocks = [M.Linear(4, 4), {"act": M.ReLU(), "out": M.Linear(4, 1, bias=False)}]
        self.scale = mge.Parameter([2.0])
        self.count = mge.tensor([1.0])
        self.sizes = (2, 4)

    def forward(self, x: Any) -> Any:
        h = F.mean(self.stem(x), axis=[2, 3])
        last = self.blocks[1]
        return last["out"](last["act"](self.blocks[0](h))) * self.scale  # type: ignore[operator, index]


PARAMETERS = [
    "blocks.0.bias", "blocks.0.weight", "blocks.1.out.weight", "scale", "stem.bn.bias",
    "stem.bn.weight", "stem.conv.bias", "stem.conv.weight",
]  # fmt: skip
BUFFERS = ["count", "stem.bn.running_mean", "stem.bn.running_var"]


def test_parts_come_by_name_and_also_from_containers() -> None:
    net = Net()
    assert [n for n, _ in net.named_parameters()] == PARAMETERS
    assert [n for n, _ in net.named_buffers()] == BUFFERS
    assert {n for n, _ in net.named_tensors("net")} == {f"net.{n}" for n in PARAMETERS + BUFFERS}
    children = ["blocks.0", "blocks.1.act", "blocks.1.out", "stem"]
    assert [n for n, _ in net.named_children()] == children
    assert [n for n, _ in net.named_modules()] == ["", *children, "stem.bn", "stem.conv"]
    assert next(net.modules()) is net
    assert len([*net.parameters()]) == 8
    assert [*net.parameters(recursive=False)] == [net.scale]
    _, name_owner = (
        zip(*net.named_parameters(), strict=True),
        [owner for _, _, owner in net.named_parameters(with_parent=True)],
    )
    assert name_owner[3] is net
    assert all(type(p) is mge.Parameter for p in net.parameters())
    net.count = net.scale = None  # type: ignore[assignment]
    assert "scale" not in dict(net.named_parameters())
    assert "count" not in dict(net.named_buffers())


def test_state_dicts_are_arrays_and_load_strictly() -> None:
    net, other = Net(), Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert set(state) == {*PARAMETERS, *BUFFERS}
    assert type(state["scale"]) is np.ndarray
    assert state["stem.bn.weight"].shape == (4,)
    assert net.state_dict(keep_var=True)["scale"] is net.scale
    other.load_state_dict(state)
    assert_array_equal(other.blocks[0].weight.numpy(), net.blocks[0].weight.numpy())
    assert other.stem.bn.weight.shape == (1, 4, 1, 1)
    with pytest.raises(KeyError, match="Unused params"):
        other.load_state_dict({**state, "more": np.ones(1)})
    del state["scale"]
    with pytest.raises(KeyError, match="Missing params"):
        other.load_state_dict(state)
    other.load_state_dict(state, strict=False)
    with pytest.raises(ValueError, match="shape mismatch"):
        other.load_state_dict({"scale": np.ones(3)}, strict=False)
    other.load_state_dict(lambda name, var: np.zeros(var.shape), strict=True)
    assert not other.scale.numpy().any()


def test_hooks_change_inputs_and_outputs() -> None:
    layer, seen = M.ReLU(), []
    first = layer.register_forward_pre_hook(lambda module, inputs: inputs[0] - 1)
    second = layer.register_forward_hook(lambda module, inputs, outputs: outputs * 10)
    third = layer.register_forward_hook(lambda module, inputs, outputs: seen.append(module))
    assert layer(mge.tensor([0.0, 3.0])).tolist() == [0.0, 20.0]
    assert seen == [layer]
    for handle in (first, second, third):
        handle.remove()
    assert layer(mge.tensor([0.0, 3.0])).tolist() == [0.0, 3.0]


def test_modes_reach_parts_in_containers() -> None:
    net = Net()
    net.eval()
    assert not any(m.training for m in net.modules())
    net.train(recursive=False)
    assert net.training
    assert not net.stem.training
    names: list[str] = []
    net.apply(lambda module: names.append(type(module).__name__))
    assert names[0] == "Net"
    assert len(names) == 7


def test_text_is_megengines() -> None:
    net = M.Sequential(OrderedDict(conv=M.Conv2d(1, 2, 3, padding=1), act=M.ReLU()))
    lines = ["  (conv): Conv2d(1, 2, kernel_size=(3, 3), padding=(1, 1))", "  (act): ReLU()"]
    assert repr(net) == "\n".join(["Sequential(", *lines, ")"])
    assert "(blocks.1.act): ReLU()" in repr(Net())
    lines = repr(Net()).split("\n")
    assert lines[1] == "  (stem): ConvBn2d("
    assert lines[2].startswith("    (conv): Conv2d(2, 4, ")
    assert lines[4] == "  )"
    assert repr(M.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    text = "BatchNorm2d(2, eps=1e-05, momentum=0.9, affine=True, track_running_stats=True)"
    assert repr(M.BatchNorm2d(2)) == text
    assert repr(M.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=2, padding=0)"
    assert repr(M.Dropout(0.5)) == "Dropout(drop_prob=0.5)"


def test_sequential_is_indexed_and_changed() -> None:
    net = M.Sequential(M.Linear(2, 3), M.ReLU(), M.Linear(3, 1))
    assert net[-1].in_features == 3
    assert len(net[:2]) == 2
    net[1] = M.Sigmoid()
    assert [type(m).__name__ for m in net] == ["Linear", "Sigmoid", "Linear"]
    del net[2]
    assert net(F.ones((1, 2))).shape == (1, 3)
    assert [n for n, _ in net.named_parameters()] == ["0.bias", "0.weight"]


def test_copies_are_modules_of_their_own() -> None:
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert [n for n, _ in other.named_parameters()] == PARAMETERS
        other.scale[...] = 7.0
        assert net.scale.item() == 2.0


def test_initial_values_have_megengines_variances() -> None:
    pg.seed(0)
    linear, conv = M.Linear(400, 300), M.Conv2d(20, 30, 5)
    assert_allclose(linear.weight.numpy().std(), 0.05, rtol=0.05)
    assert_allclose(conv.weight.numpy().std(), 500**-0.5, rtol=0.05)
    assert not linear.bias.numpy().any()
    assert conv.bias.shape == (1, 30, 1, 1)
    w = mge.Parameter(np.zeros((200, 300)))
    M.init.msra_uniform_(w)
    assert_allclose(w.numpy().std(), (2 / 300) ** 0.5, rtol=0.05)
    M.init.xavier_normal_(w, 2.0)
    assert_allclose(w.numpy().std(), 2 * (2 / 500) ** 0.5, rtol=0.05)
    M.init.fill_(w, 3)
    assert w.dtype == np.float32
    assert_array_equal(w.numpy(), 3)
    with pytest.raises(ValueError, match="fewer than 2"):
        M.init.calculate_fan_in_and_fan_out(mge.tensor([1.0]))


def test_a_network_trains_with_a_manager() -> None:
    pg.seed(1)
    net = Net()
    gm = GradManager().attach(net.parameters())
    x, y = mge.tensor(RNG.normal(size=(6, 2, 5, 5))), mge.tensor(RNG.normal(size=(6, 1)))
    losses = []
    for _ in range(30):
        with gm:
            loss = F.loss.square_loss(net(x), y)
            gm.backward(loss)
        for parameter in net.parameters():
            parameter -= 0.05 * parameter.grad
            parameter.grad = None
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert net.stem.bn.running_mean.numpy().any()


def test_a_compiled_module_sees_later_changes() -> None:
    net = M.Sequential(M.Linear(2, 3), M.Tanh()).eval()
    compiled, x = pg.jit(net), F.ones((1, 2))
    assert_allclose(compiled(x).numpy(), net(x).numpy(), rtol=1e-6)
    net[0].weight *= 2
    assert_allclose(compiled(x).numpy(), net(x).numpy(), rtol=1e-6)


X = RNG.normal(size=(3, 4, 6, 5)).astype("float32")
LAYERS = {
    "conv": (M.Conv2d(4, 6, 3, 2, 1, 1, 2), torch.nn.Conv2d(4, 6, 3, 2, 1, 1, 2), X),
    "reflected": (
        M.Conv2d(4, 2, 3, padding=(1, 2), padding_mode="reflect"),
        torch.nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode="reflect"),
        X,
    ),
    "conv1d": (M.Conv1d(4, 3, 2), torch.nn.Conv1d(4, 3, 2), X[..., 0]),
    "conv3d": (M.Conv3d(4, 2, 2), torch.nn.Conv3d(4, 2, 2), X[..., None].repeat(3, -1)),
    "transposed": (
        M.ConvTranspose2d(4, 6, 3, 2, 1, 1, 1, 2),
        torch.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, dilation=1),
        X,
    ),
    "transposed3d": (
        M.ConvTranspose3d(4, 2, 2),
        torch.nn.ConvTranspose3d(4, 2, 2),
        X[..., None].repeat(3, -1),
    ),
    "batch": (M.BatchNorm2d(4), torch.nn.BatchNorm2d(4), X),
    "batch1d": (M.BatchNorm1d(4), torch.nn.BatchNorm1d(4), X[..., 0]),
    "group": (M.GroupNorm(2, 4), torch.nn.GroupNorm(2, 4), X),
    "instance": (M.InstanceNorm(4), torch.nn.InstanceNorm2d(4, affine=True), X),
    "layer": (M.LayerNorm((6, 5)), torch.nn.LayerNorm((6, 5)), X),
    "linear": (M.Linear(5, 2), torch.nn.Linear(5, 2), X),
    "prelu": (M.PReLU(4), torch.nn.PReLU(4), X),
    "rnn cell": (M.RNNCell(5, 3), torch.nn.RNNCell(5, 3), X[0, 0]),
    "lstm cell": (M.LSTMCell(5, 3), torch.nn.LSTMCell(5, 3), X[0, 0]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_with_weights_computes_as_torchs(name: str) -> None:
    ours, theirs, array = LAYERS[name]
    for key, value in theirs.state_dict().items():
        own = dict(ours.named_tensors()).get(key)
        if own is not None:
            array_of_weights = RNG.uniform(0.1, 1.0, value.shape).astype("float32")
            theirs.load_state_dict({key: torch.tensor(array_of_weights)}, strict=False)
            own._reset(array_of_weights.reshape(own.shape))
    found, expected = ours(mge.tensor(array)), theirs(torch.tensor(array))
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert type(one) is mge.Tensor
        assert_allclose(one.numpy(), other.detach().numpy(), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["RNN", "LSTM"])
def test_stacked_recurrent_layers_compute_as_torchs(name: str) -> None:
    sizes: dict[str, Any] = {"num_layers": 2, "batch_first": True, "bidirectional": True}
    ours, theirs = getattr(M, name)(5, 3, **sizes), getattr(torch.nn, name)(5, 3, **sizes)
    for layer, cells in enumerate(ours.cells):
        for direction, cell in enumerate(cells):
            suffix = f"_l{layer}" + ("_reverse" if direction else "")
            for key, weight in cell.named_parameters():
                weight._reset(theirs.state_dict()[key + suffix].numpy())
    array = X[:, 0]
    found, states = ours(mge.tensor(array))
    expected, ends = theirs(torch.tensor(array))
    assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6)
    for one, other in zip(states, ends, strict=True):
        assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-6)
    gm = GradManager().attach(ours.parameters())
    with gm:
        gm.backward(ours(mge.tensor(array))[0].sum())
    expected.sum().backward()
    gradient = theirs.weight_hh_l0_reverse.grad.numpy()
    assert_allclose(ours.cells[0][1].weight_hh.grad.numpy(), gradient, rtol=1e-3, atol=1e-5)


def test_frozen_layers_are_not_trained() -> None:
    norm = M.BatchNorm2d(4, freeze=True)
    gm = GradManager().attach(norm.parameters())
    with gm:
        y = norm(mge.tensor(X))
        gm.backward(y.sum())
    assert norm.weight.grad is None
    assert_allclose(y.numpy(), X / np.sqrt(1 + 1e-5), rtol=1e-5)
    table = M.Embedding.from_pretrained(mge.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert table(mge.tensor([1])).tolist() == [[3.0, 4.0]]
    with pytest.raises(ValueError, match="padding_idx"):
        M.Embedding(2, 2, padding_idx=0)
    with pytest.raises(ValueError, match="expected 4D"):
        norm(mge.tensor(X[0]))


def test_joined_layers_compute_their_parts() -> None:
    x = mge.tensor(np.random.default_rng(0).normal(size=(5, 3)).astype("float32"))
    layer = M.LinearBnRelu1d(3, 4)
    apart = F.relu(layer.bn(layer.linear(x)))
    assert_allclose(layer(x).numpy(), apart.numpy(), rtol=1e-5)
    batched = M.BatchMatMulActivation(2, 3, 4, nonlinear_mode="relu")
    rows = F.ones((2, 3, 5))
    expected = np.maximum(batched.weight.numpy() @ rows.numpy() + batched.bias.numpy(), 0.0)
    assert_allclose(batched(rows).numpy(), expected, rtol=1e-6)
