"""Layers, losses, and training with them."""

import copy
import importlib.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph import nn

RNG = np.random.default_rng(0)
RUN = pg.Executor().run


class Network(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
        self.scale = self.create_parameter((3,), initializer=pg.initializers.Constant(2.0))
        self.register_buffer("count", np.zeros((), np.float32))

    def forward(self, x):
        return self.body(x) * self.scale


NAMES = ["scale", "body.0.weight", "body.0.bias", "body.2.weight", "body.2.bias"]


def evaluate(layer, *arrays):
    """What the layer gives in a new program, and the program."""
    with pg.Program() as program:
        inputs = [pg.data(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
        result = layer(*inputs)
    feed = {f"x{i}": a for i, a in enumerate(arrays)}
    return RUN(program, feed, [result])[0], program


# Registration, names and state.


def test_parts_are_registered_by_assignment_and_named_by_their_path():
    net = Network()
    with pg.Program() as program:
        net(pg.data("x", (5, 2)))
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert [n for n, _ in net.named_sublayers()] == ["body", "body.0", "body.1", "body.2"]
    assert [n for n, _ in net.named_buffers()] == ["count"]
    assert [type(s) for s in net.sublayers(include_self=True)][:2] == [Network, nn.Sequential]
    assert net.children() == [net.body]
    assert [p.name for p in program.parameters()] == [f"network.{n}" for n in NAMES]
    assert [p.value for p in net.parameters()] == [p.value for p in program.parameters()]
    assert (net.scale.shape, net.body[0].weight.shape) == ((3,), (2, 4))
    assert (net.buffers()[0].dtype, len(net.body)) == (np.float32, 3)
    assert [type(s) for s in net.body] == [nn.Linear, nn.Tanh, nn.Linear]
    assert "scale f64[3]" in repr(net)
    assert repr(nn.Tanh()) == "<Tanh>"


def test_the_network_computes_what_its_formula_says():
    x = RNG.standard_normal((5, 2))
    net = Network()
    found, program = evaluate(net, x)
    s = net.state_dict()
    assert set(s) == {*NAMES, "count"}
    hidden = np.tanh(x @ s["body.0.weight"] + s["body.0.bias"])
    expected = (hidden @ s["body.2.weight"] + s["body.2.bias"]) * 2.0
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_array_equal(s["body.0.weight"], program.state_dict()["network.body.0.weight"])


def test_a_layer_made_in_a_program_and_one_made_before_are_alike():
    before = nn.Linear(2, 3)
    with pg.Program() as first:
        before(pg.data("x", (1, 2)))
    with pg.Program() as second:
        inside = nn.Linear(2, 3)
        inside(pg.data("x", (1, 2)))
    assert str(first) == str(second)
    assert all(
        (a == b).all()
        for a, b in zip(*(p.state_dict().values() for p in (first, second)), strict=True)
    )


def test_parameters_go_where_the_arguments_are():
    with pg.Program() as program:
        x = pg.data("x", (1, 2))
    layer = nn.Linear(2, 3)
    y = layer(x)
    assert list(program.state_dict()) == ["linear.weight", "linear.bias"]
    assert RUN(program, {"x": [[0, 0]]}, [y])[0].tolist() == [[0, 0, 0]]


def test_asking_for_parameters_creates_them_in_the_program_being_built():
    with pg.Program() as program:
        layer = nn.Linear(2, 3, bias=False)
        assert [p.name for p in layer.parameters()] == ["linear.weight"]
        assert layer.bias is None
    assert list(program.state_dict()) == ["linear.weight"]
    with pytest.raises(pg.BuildError, match="none is being built here"):
        pg.trace(lambda x: nn.Linear(2, 3).weight, pg.spec((2,)))


def test_a_layer_called_twice_shares_its_parameters():
    layer = nn.Linear(2, 2)
    with pg.Program() as program:
        x = pg.data("x", (1, 2))
        y = layer(layer(x))
        _, pairs = pg.optimizer.SGD(0.1).minimize(pg.sum(y))
    assert len(pairs) == 2
    w = layer.state_dict()["weight"]
    found = RUN(program, {"x": [[1.0, 2.0]]}, [y])[0]
    np.testing.assert_allclose(found, [[1, 2]] @ w @ w, rtol=1e-14)


def test_one_layer_in_two_places_is_named_once():
    class Tied(nn.Layer):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.second = self.first
            self.third = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return self.third(self.second(self.first(x)))

    net = Tied()
    with pg.Program() as program:
        net.third.weight = net.first.weight
        net(pg.data("x", (1, 2)))
    assert len(program.parameters()) == 2
    assert [n for n, _ in net.named_parameters()] == ["first.weight", "first.bias"]


def test_two_networks_of_one_class_have_different_names():
    with pg.Program() as program:
        x = pg.data("x", (1, 2))
        y = Network()(x) + Network()(x)
    names = set(program.state_dict())
    assert {"network.scale", "network_1.scale", "network_1.body.2.bias"} <= names
    assert len(names) == 12
    assert y.shape == (1, 3)


def test_programs_that_a_layer_is_part_of_share_its_parameters():
    layer, x = nn.Linear(2, 2), np.ones((1, 2))
    first, one = evaluate(layer, x)
    second, other = evaluate(layer, x)
    np.testing.assert_array_equal(first, second)
    one.set_state_dict({"linear.weight": np.eye(2)})
    assert other.state_dict()["linear.weight"].tolist() == np.eye(2).tolist()
    assert layer.state_dict()["weight"].tolist() == np.eye(2).tolist()
    with pytest.raises(pg.BuildError, match="traced function"):
        pg.trace(nn.Linear(2, 2), pg.spec((1, 2)))
    # What has no parameters is at home everywhere.
    graph = pg.trace(nn.Sequential(nn.Tanh(), nn.Softmax()), pg.spec((1, 2)))
    assert len(graph.outputs) == 1


def test_a_copy_of_a_layer_has_parameters_of_its_own():
    net = Network()
    evaluate(net, np.ones((1, 2)))
    other = copy.deepcopy(net)
    with pg.Program() as program:
        x = pg.data("x", (1, 2))
        copy.deepcopy(other)(x) + other(x)
    assert len(program.parameters()) == 10


def test_program_parameters_can_be_assigned():
    class Scale(nn.Layer):
        def __init__(self):
            super().__init__()
            self.w = None
            self.w = pg.create_parameter((2,), name="w")
            self.s = self.add_parameter("extra", self.create_parameter((2,)))
            self.inner = nn.ReLU()

        def forward(self, x):
            return self.inner(x) * self.w * self.extra

    with pg.Program() as program:
        layer = Scale()
        layer.kept = pg.data("x", (2,))
        layer(layer.kept)
    assert set(program.state_dict()) == {"w", "scale.extra"}
    assert [n for n, _ in layer.named_parameters()] == ["w", "extra"]
    del layer.inner, layer.w, layer.kept
    assert layer.children() == []
    assert [n for n, _ in layer.named_parameters()] == ["extra"]
    with pytest.raises(AttributeError):
        del layer.w


def test_registration_errors():
    class Forgetful(nn.Layer):
        def __init__(self):
            self.inner = nn.Tanh()

    with pytest.raises(pg.BuildError, match=r"has to call super\(\).__init__"):
        Forgetful()
    layer = Network()
    with pytest.raises(pg.ArgumentError, match=r"'count' is registered(.|\n)*program.update"):
        layer.count = 3
    with pytest.raises(pg.ArgumentError, match="'body' is registered"):
        layer.body = [nn.Tanh()]
    with pytest.raises(pg.ArgumentError, match="is a Layer, not"):
        nn.Sequential(pg.tanh)
    with pytest.raises(pg.ArgumentError, match="made by create_parameter"):
        layer.add_parameter("p", np.ones(3))
    with pytest.raises(pg.BuildError, match="another part named 'body'"):
        layer.register_buffer("body", 1.0)
    with pytest.raises(pg.BuildError, match="attribute 'forward' already"):
        layer.add_sublayer("forward", nn.Tanh())
    with pytest.raises(pg.BuildError, match="has a dot"):
        layer.add_sublayer("a.b", nn.Tanh())
    with pytest.raises(pg.BuildError, match="within itself"):
        layer.me = layer
    with pytest.raises(AttributeError, match="'Network' has nothing named 'missing'"):
        print(layer.missing)
    with pytest.raises(NotImplementedError, match="does not define forward"):
        nn.Layer()(1)
    with pytest.raises(pg.ArgumentError, match=r"cannot make an array of list \['a'\]"):
        layer.register_buffer("words", ["a"])


def test_state_is_copied_in_and_out_and_set_whole_or_not_at_all():
    net, x = Network(), np.ones((1, 2))
    scope = pg.Scope()
    for early in (net.state_dict, lambda s: net.set_state_dict({"scale": np.ones(3)}, s)):
        with pytest.raises(pg.BuildError, match="are in no program"):
            early(scope)
    _, program = evaluate(net, x)
    before = net.state_dict()
    net.state_dict()["scale"][...] = 7.0
    assert (net.state_dict()["scale"] == 2.0).all()
    for wrong, words in [
        ({"scale": np.ones(3), "what": 1}, "Network has no parameters or buffers named 'what'"),
        ({"scale": np.ones(3), "body.0.bias": np.ones(3)}, r"f64\[4\]"),
    ]:
        with pytest.raises(pg.FeedError, match=words):
            net.set_state_dict(wrong)
    after = net.state_dict()
    assert all((after[n] == before[n]).all() for n in before)
    net.set_state_dict({"scale": [1, 2, 3]}, scope)
    assert net.state_dict(scope)["scale"].tolist() == [1, 2, 3]
    assert "network.scale" not in net.state_dict()
    other = Network()
    with pg.Program():
        other(pg.data("x", (1, 2)))
    other.set_state_dict(before)
    assert other.state_dict()["body.0.weight"].tolist() == before["body.0.weight"].tolist()
    assert nn.Tanh().state_dict() == {}
    nn.Tanh().set_state_dict({})
    with pytest.raises(pg.FeedError, match="Tanh has no"):
        nn.Tanh().set_state_dict({"w": 1})
    assert program.name == "program"


def test_train_eval_and_apply_reach_every_layer():
    net, seen = Network(), []
    assert net.eval() is net
    assert not any(layer.training for layer in net.sublayers(include_self=True))
    net.body.train()
    assert [layer.training for layer in net.sublayers(include_self=True)] == [False, *[True] * 4]
    assert net.apply(lambda layer: seen.append(type(layer).__name__)) is net
    assert seen == ["Linear", "Tanh", "Linear", "Sequential", "Network"]


# Layers against formulas.


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (nn.Tanh(), np.tanh),
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
        (nn.SiLU(), lambda x: x / (1 + np.exp(-x))),
        (nn.Softplus(), lambda x: np.log1p(np.exp(x))),
        (nn.GELU(), lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
        (
            nn.GELU(approximate=True),
            lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
        (nn.Softmax(), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        (nn.Softmax(0), lambda x: np.exp(x) / np.exp(x).sum(0, keepdims=True)),
    ],
)
def test_activations(layer, function):
    x = RNG.standard_normal((3, 4))
    np.testing.assert_allclose(evaluate(layer, x)[0], function(x), rtol=1e-13)


def test_linear_takes_any_leading_axes_and_dtypes():
    for shape in [(2,), (5, 2), (3, 5, 2)]:
        layer = nn.Linear(2, 3, dtype="float32", initializer=pg.initializers.Constant(0.5))
        x = RNG.standard_normal(shape).astype(np.float32)
        found, _ = evaluate(layer, x)
        assert (found.shape, found.dtype) == ((*shape[:-1], 3), np.float32)
        expected = np.repeat(0.5 * x.sum(-1, keepdims=True), 3, -1)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(pg.ShapeError):
        evaluate(nn.Linear(2, 3), np.ones((5, 3)))


@pytest.mark.parametrize("shape", [(4,), (3, 4), 4])
def test_layer_norm(shape):
    x = RNG.standard_normal((2, 3, 4))
    layer = nn.LayerNorm(shape)
    found, _ = evaluate(layer, x)
    axes = (2,) if shape in (4, (4,)) else (1, 2)
    centered = x - x.mean(axes, keepdims=True)
    expected = centered / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert set(layer.state_dict()) == {"weight", "bias"}


MEAN, VAR = np.linspace(-1, 1, 10), np.linspace(0.5, 2, 10)
WEIGHT, BIAS = np.linspace(1, 2, 10), np.linspace(-2, 0, 10)


def normalised(x, mean, var, axis):
    shape = [1] * x.ndim
    shape[axis] = -1
    mean, var, w, b = (a.reshape(shape) for a in (mean, var, WEIGHT, BIAS))
    return (x - mean) / np.sqrt(var + 1e-5) * w + b


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(10, 10), (2, 10, 3, 4)])
@pytest.mark.parametrize("setting", ["eval", "train", "NHWC", "global stats"])
def test_batch_norm_in_four_settings(setting, shape, dtype):
    layout = "NHWC" if setting == "NHWC" else "NCHW"
    axis = len(shape) - 1 if setting == "NHWC" else 1
    layer = nn.BatchNorm(10, layout=layout, use_global_stats=setting == "global stats", dtype=dtype)
    if setting == "eval":
        layer.eval()
    x = np.moveaxis(RNG.standard_normal(shape), 1, axis).astype(dtype)
    with pg.Program() as program:
        v = pg.data("x", x.shape, dtype)
        y = layer(v)
        dx, db, dw = pg.grad(y, [v, layer.bias, layer.weight])
    state = {"weight": WEIGHT, "bias": BIAS, "running_mean": MEAN, "running_var": VAR}
    layer.set_state_dict(state)
    found, dx, db, dw = RUN(program, {"x": x}, [y, dx, db, dw])
    others = tuple(a for a in range(x.ndim) if a != axis)
    own = setting in ("train", "NHWC")
    mean, var = (x.mean(others), x.var(others)) if own else (MEAN, VAR)
    tolerance = 1e-11 if dtype == "float64" else 2e-4
    close = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(found, normalised(x, mean, var, axis), **close)
    assert found.dtype == np.dtype(dtype)
    per_channel = x.size / 10
    np.testing.assert_allclose(db, np.full(10, per_channel), rtol=1e-6)
    unscaled = (normalised(x, mean, var, axis) - BIAS.reshape(along(x, axis))).sum(others)
    np.testing.assert_allclose(dw, unscaled / WEIGHT, rtol=1e-4, atol=1e-3)
    slope = np.zeros(10) if own else WEIGHT / np.sqrt(VAR + 1e-5)
    expected = np.broadcast_to(slope.reshape(along(x, axis)), x.shape)
    np.testing.assert_allclose(dx, expected, **close)
    after = layer.state_dict()
    np.testing.assert_allclose(
        after["running_mean"], 0.9 * MEAN + 0.1 * mean if own else MEAN, **close
    )
    np.testing.assert_allclose(after["running_var"], 0.9 * VAR + 0.1 * var if own else VAR, **close)


def along(x, axis):
    return tuple(-1 if i == axis else 1 for i in range(x.ndim))


def test_a_clone_for_test_normalises_by_the_running_statistics():
    layer = nn.BatchNorm(10)
    x = RNG.standard_normal((6, 10)) + 3.0
    with pg.Program() as program:
        y = layer(pg.data("x", (6, 10)))
        y.name = "y"
    layer.set_state_dict({"weight": WEIGHT, "bias": BIAS})
    test = program.clone(for_test=True)
    mean, var = np.zeros(10), np.ones(10)
    for _ in range(3):
        RUN(program, {"x": x}, [y])
        mean, var = 0.9 * mean + 0.1 * x.mean(0), 0.9 * var + 0.1 * x.var(0)
    before = layer.state_dict()
    np.testing.assert_allclose(RUN(test, {"x": x}, ["y"])[0], normalised(x, mean, var, 1))
    after = layer.state_dict()
    assert all((after[n] == before[n]).all() for n in before)


def test_batch_norm_called_twice_takes_both_batches_into_account():
    layer = nn.BatchNorm(2, momentum=0.5)
    with pg.Program() as program:
        first, second = pg.data("a", (4, 2)), pg.data("b", (4, 2))
        layer(first), layer(second)
    a, b = RNG.standard_normal((2, 4, 2))
    RUN(program, {"a": a, "b": b})
    expected = 0.25 * 0 + 0.25 * a.mean(0) + 0.5 * b.mean(0)
    np.testing.assert_allclose(layer.state_dict()["running_mean"], expected)


def test_batch_norm_errors():
    with pytest.raises(pg.ArgumentError, match="layout 'CHW'"):
        nn.BatchNorm(3, layout="CHW")
    with pytest.raises(pg.ShapeError):
        evaluate(nn.BatchNorm(3), np.ones((2, 4)))
    with pytest.raises(pg.ShapeError):
        evaluate(nn.BatchNorm(3), np.ones(3))
    with pytest.raises(pg.ArgumentError, match="training is True or False"):
        evaluate(lambda x: pg.batch_norm(x, training=1), np.ones((2, 3)))


@pytest.mark.parametrize("mode", ["upscale_in_train", "downscale_in_infer"])
@pytest.mark.parametrize("rate", [0, 0.1, 0.5, 0.8, 1.0])
def test_dropout(rate, mode):
    layer = nn.Dropout(rate, mode)
    with pg.Program() as program:
        x = pg.data("x", (100, 100))
        y = layer(x)
        y.name = "y"
        dx = pg.grad(y, x)
        other = layer(x)
        still = layer.eval()(x)
    ones = np.ones((100, 100))
    scale = 1 / (1 - rate) if mode == "upscale_in_train" and rate < 1 else 1.0
    kept = 1.0 if mode == "upscale_in_train" else 1 - rate
    runs = [RUN(program, {"x": ones}, [y, dx, other, still]) for _ in range(2)]
    for found, slope, another, evaluated in runs:
        chosen = found != 0
        np.testing.assert_allclose(found[chosen], scale)
        np.testing.assert_array_equal(slope, found)
        np.testing.assert_allclose(evaluated, kept)
        assert abs(chosen.mean() - (1 - rate)) < (0.02 if 0 < rate < 1 else 1e-12)
        assert (another != found).any() == (0 < rate < 1)
    assert (runs[0][0] != runs[1][0]).any() == (0 < rate < 1)
    (cloned,) = RUN(program.clone(for_test=True), {"x": ones}, ["y"])
    np.testing.assert_allclose(cloned, kept)


def test_dropout_is_reproducible_from_the_seed():
    def runs(seed):
        with pg.Program() as program:
            program.random_seed = seed
            y = nn.Dropout(0.5)(pg.data("x", (50,)))
        return [RUN(program, {"x": np.ones(50)}, [y])[0].tolist() for _ in range(3)]

    assert runs(1) == runs(1)
    assert runs(1) != runs(2)
    for wrong in (-0.1, 1.1):
        with pytest.raises(pg.ArgumentError, match="rate is a probability"):
            evaluate(nn.Dropout(wrong), np.ones(3))
    with pytest.raises(pg.BuildError, match="traced function"):
        pg.trace(nn.Dropout(0.5), pg.spec((3,)))


# Losses: values by formulas, derivatives by central differences.


LOSSES = [
    (nn.MSELoss, lambda x, t: (x - t) ** 2),
    (nn.L1Loss, lambda x, t: np.abs(x - t)),
    (nn.HuberLoss, lambda x, t: np.where(abs(x - t) <= 1, (x - t) ** 2 / 2, abs(x - t) - 0.5)),
    (nn.BCELoss, lambda x, t: -t * np.log(x) - (1 - t) * np.log(1 - x)),
    (nn.BCEWithLogitsLoss, lambda x, t: np.log1p(np.exp(x)) - x * t),
]


@pytest.mark.parametrize(("make", "formula"), LOSSES, ids=[c.__name__ for c, _ in LOSSES])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_and_their_derivatives(make, formula, reduction):
    x, t = RNG.uniform(0.05, 0.95, (2, 3, 4))
    if make is not nn.BCELoss:
        x = 6 * x - 3
    with pg.Program() as program:
        v, w = pg.data("v", x.shape), pg.data("w", x.shape)
        loss = make(reduction=reduction)(v, w)
        slopes = [*pg.grad(loss, [v, w]), pg.grad(pg.grad(loss, v), v)]
    found, dx, dt, ddx = RUN(program, {"v": x, "w": t}, [loss, *slopes])
    reduce = {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]
    np.testing.assert_allclose(found, reduce(formula(x, t)), rtol=1e-12)
    h, part = 1e-5, 1 / 12 if reduction == "mean" else 1.0
    numeric = part * (formula(x + h, t) - formula(x - h, t)) / (2 * h)
    np.testing.assert_allclose(dx, numeric, rtol=1e-5, atol=1e-7)
    numeric = part * (formula(x, t + h) - formula(x, t - h)) / (2 * h)
    np.testing.assert_allclose(dt, numeric, rtol=1e-5, atol=1e-7)
    numeric = part * (formula(x + h, t) - 2 * formula(x, t) + formula(x - h, t)) / h**2
    np.testing.assert_allclose(ddx, numeric, rtol=1e-3, atol=2e-4)


def losses_at(function, xs):
    x = np.array(xs)
    with pg.Program() as program:
        v = pg.data("v", x.shape)
        loss = function(v)
        slope = pg.grad(loss, v)
    return RUN(program, {"v": x}, [loss, slope])


def test_huber_loss_is_smooth_where_arrays_are_equal() -> None:
    """Its second derivative at 0 is 1, as around it; beyond `delta` it is 0."""
    x = np.array([0.0, 1e-9, -0.5, 3.0])
    for loss in (
        lambda v: pg.huber_loss(v, 0.0, 2.0, "sum"),
        lambda v: pg.mse_loss(v, 0.0, "sum") / 2,
    ):
        found = np.diag(pg.hessian(loss)(x))
        np.testing.assert_array_equal(found[:3], np.ones(3))


def test_losses_at_their_edges():
    values, slopes = losses_at(lambda v: pg.huber_loss(v, 0.0, 2.0, "none"), [0.0, 2, -2, 5])
    assert (values.tolist(), slopes.tolist()) == ([0, 2, 2, 8], [0, 2, -2, 2])
    values, slopes = losses_at(lambda v: pg.l1_loss(v, 1.0, "none"), [1.0, 2, 0])
    assert (values.tolist(), slopes.tolist()) == ([0, 1, 1], [0, 1, -1])
    certain = np.array([1, 0, 0, 1])
    bce, inf = pg.binary_cross_entropy, math.inf
    values, slopes = losses_at(lambda v: bce(v, certain, "none"), [1.0, 0, 1, 0])
    assert values.tolist() == [0, 0, inf, inf]
    assert slopes.tolist() == [-1, 1, inf, -inf]
    assert not np.signbit(values).any()
    with_logits = pg.binary_cross_entropy_with_logits
    values, slopes = losses_at(lambda v: with_logits(v, 1, "none"), [0.0, 40, -800, 800])
    np.testing.assert_allclose(values, [math.log(2), math.exp(-40), 800, 0], rtol=1e-13)
    np.testing.assert_allclose(slopes, [-0.5, -math.exp(-40), -1, 0], rtol=1e-13)


def test_targets_are_labels_numbers_or_arrays():
    x = RNG.standard_normal((3, 2)).astype(np.float32)
    labels = np.array([[0, 1], [1, 1], [0, 0]])
    formula = np.log1p(np.exp(x)) - x * labels
    for target in (labels, labels.astype(bool), labels.astype(np.float32), labels.astype("u1")):
        found, _ = evaluate(nn.BCEWithLogitsLoss("none"), x, target)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, formula, rtol=1e-5)
    found, _ = evaluate(lambda v: pg.binary_cross_entropy_with_logits(v, 0.5), x)
    np.testing.assert_allclose(found, np.mean(np.log1p(np.exp(x)) - x / 2), rtol=1e-5)
    assert found.dtype == np.float32


def test_cross_entropy_of_labels_and_of_probabilities():
    logits = RNG.standard_normal((4, 3))
    labels = np.array([0, 2, 1, 1])
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -np.mean(logs[np.arange(4), labels])
    np.testing.assert_allclose(evaluate(nn.CrossEntropyLoss(), logits, labels)[0], expected)
    for target in (labels, np.eye(3)[labels].T):
        found, _ = evaluate(nn.CrossEntropyLoss(axis=0), logits.T.copy(), target)
        np.testing.assert_allclose(found, expected)


def test_loss_errors():
    x = np.ones((3, 1))
    for make in (nn.BCELoss, nn.BCEWithLogitsLoss):
        with pytest.raises(pg.ShapeError, match=r"f64\[3,1\] cannot use a target of f64\[3\]"):
            evaluate(make(), x, np.ones(3))
    for loss in (nn.L1Loss("max"), nn.BCELoss("max"), nn.HuberLoss(reduction="max")):
        with pytest.raises(pg.ArgumentError, match="not 'max'"):
            evaluate(loss, x, x)
    for delta in (0, -1, math.nan):
        with pytest.raises(pg.ArgumentError, match="positive delta"):
            evaluate(nn.HuberLoss(delta), x, x)


# Training.


def regression():
    """A program that learns `sum(x)`, its loss, and samples."""
    with pg.Program() as program:
        x, t = pg.data("x", (8, 2)), pg.data("t", (8, 1))
        loss = nn.MSELoss()(nn.Linear(2, 1)(x), t)
        loss.name = "loss"
        pg.optimizer.SGD(0.1).minimize(loss)
    samples = np.random.default_rng(1).standard_normal((35, 2))
    return program, loss, {"x": samples, "t": samples.sum(1, keepdims=True)}


def test_fit_runs_all_feeds_of_all_epochs():
    program, loss, arrays = regression()
    rng = np.random.default_rng(2)
    seen = []
    history = pg.fit(
        program,
        loss,
        lambda epoch: pg.minibatches(arrays, 8, rng, drop_last=True),
        20,
        callback=lambda epoch, value: seen.append((epoch, value)),
    )
    assert seen == list(enumerate(history))
    assert len(history) == 20
    assert history[-1] < 1e-3 * history[0]
    assert program.state_dict()["sgd.step"] == 80
    assert len(program.kernels) == 1


def test_fit_gives_the_mean_loss_and_stops_when_told():
    program, loss, arrays = regression()
    batches = list(pg.minibatches(arrays, 8, drop_last=True))
    scope = pg.Scope()
    one_by_one = [RUN(program, batch, [loss])[0] for _ in range(2) for batch in batches]
    history = pg.fit(
        program, "loss", batches, 9, lambda epoch, _: epoch == 1, executor=pg.Executor(scope)
    )
    np.testing.assert_allclose(history, np.mean(np.reshape(one_by_one, (2, 4)), 1))
    assert scope.get("sgd.step") == 8
    assert pg.fit(program, loss, batches, 0) == []


@pytest.mark.parametrize(("loss", "epochs"), [(3, 1), (None, 1), ("loss", 2.5), ("loss", -1)])
def test_fit_refuses_arguments_of_other_kinds(loss, epochs):
    with pg.Program() as program:
        w = pg.create_parameter((), name="w")
        target = w * w
        target.name = "loss"
        pg.optimizer.SGD(0.1).minimize(target)
    with pytest.raises(pg.ArgumentError):
        pg.fit(program, loss, [{}], epochs)


def test_fit_refuses_what_cannot_train():
    program, loss, arrays = regression()
    batch = next(pg.minibatches(arrays, 8, drop_last=True))
    with pytest.raises(pg.ArgumentError, match="program is a Program or a function, not Variable"):
        pg.fit(loss, program, [batch], 1)
    with pytest.raises(pg.BuildError, match="updates nothing"):
        pg.fit(program.clone(for_test=True), "loss", [batch], 1)
    with pytest.raises(pg.ArgumentError, match="feeds is a list or a function, not dict"):
        pg.fit(program, loss, batch, 1)
    with pytest.raises(pg.ShapeError, match=r"one element, not f64\[8,2\]"):
        pg.fit(program, "x", [batch], 1)
    with pytest.raises(pg.FeedError, match="cannot fetch 'los'"):
        pg.fit(program, "los", [batch], 1)
    with pytest.raises(pg.ArgumentError, match="no feeds in epoch 1"):
        pg.fit(program, loss, iter([batch]), 3)
    assert program.state_dict()["sgd.step"] == 1


def test_minibatches():
    arrays = {"a": np.arange(7), "b": np.arange(14).reshape(7, 2)}
    batches = list(pg.minibatches(arrays, 3, drop_last=True))
    assert [b["a"].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(pg.ArgumentError, match=r"7 samples make 2 batches of 3(.|\n)*drop_last"):
        pg.minibatches(arrays, 3)
    assert len(list(pg.minibatches(arrays, 7))) == 1
    rng = np.random.default_rng(0)
    batches = list(pg.minibatches(arrays, 3, rng, drop_last=False))
    assert [len(b["a"]) for b in batches] == [3, 3, 1]
    assert sorted(x for b in batches for x in b["a"]) == list(range(7))
    assert all((b["b"] == 2 * b["a"][:, None] + [0, 1]).all() for b in batches)
    for wrong in ({"a": np.ones(3), "b": np.ones(4)}, {}, {"a": 1.0}):
        with pytest.raises(pg.ArgumentError, match="one number of samples"):
            pg.minibatches(wrong, 2)
    with pytest.raises(pg.ArgumentError, match="at least one sample"):
        pg.minibatches(arrays, 0)


def test_progress_shows_on_a_terminal_only(capsys):
    program, loss, arrays = regression()
    batches = list(pg.minibatches(arrays, 8, drop_last=True))
    pg.fit(program, loss, batches, 2)
    assert capsys.readouterr().out == ""
    if importlib.util.find_spec("rich") is None:
        with pytest.raises(pg.ArgumentError, match=r"needs rich(.|\n)*primgraph\[progress\]"):
            pg.fit(program, loss, batches, 2, progress=True)
        return
    pg.fit(program, loss, batches, 2, progress=True)
    assert "rich.progress" in sys.modules


@pytest.mark.long
def test_batch_norm_and_dropout_train_together():
    net = nn.Sequential(
        nn.Linear(2, 16), nn.BatchNorm(16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1)
    )
    with pg.Program() as program:
        x, t = pg.data("x", (16, 2)), pg.data("t", (16, 1))
        y = net(x)
        y.name = "y"
        loss = nn.MSELoss()(y, t)
        pg.optimizer.Adam(0.02).minimize(loss)
    test = program.clone(for_test=True)
    samples = np.random.default_rng(0).uniform(-1, 1, (160, 2))
    wanted = np.sin(2 * samples[:, :1]) * samples[:, 1:]
    feeds = list(pg.minibatches({"x": samples, "t": wanted}, 16))
    history = pg.fit(program, loss, feeds, 100)
    assert history[-1] < 0.3 * history[0]
    errors = [np.mean((RUN(test, {"x": f["x"]}, ["y"])[0] - f["t"]) ** 2) for f in feeds]
    assert np.mean(errors) < history[-1]


EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"


def run_the_example(code):
    path = {"PYTHONPATH": os.pathsep.join([str(Path(pg.__file__).parent.parent), *sys.path])}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PRIMGRAPH_DEBUG": "0", **path},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the tests run without the checkout around them")
def test_the_example_says_what_it_needs():
    code = f"import runpy, sys; sys.modules['sklearn'] = None; runpy.run_path({str(EXAMPLE)!r})"
    run = run_the_example(code)
    assert run.stderr.strip() == (
        "this example needs scikit-learn: pip install 'primgraph[examples]'"
    )


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the tests run without the checkout around them")
def test_the_example_learns_to_read_digits():
    pytest.importorskip("sklearn")
    run = run_the_example(f"import runpy; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')")
    assert run.returncode == 0, run.stderr
    found = re.search(r"has not seen: ([\d.]+) %", run.stdout)
    assert found is not None
    assert float(found[1]) >= 97


# Layers and parameters in containers.


def plain(*layers):
    return list(layers)


def nested(*layers):
    return {"first": layers[:1], "rest": [list(layers[1:])]}


HOLDERS = {
    "list": (plain, ["0", "1", "2"]),
    "tuple": (lambda *layers: layers, ["0", "1", "2"]),
    "dict": (lambda *layers: dict(zip("abc", layers, strict=True)), ["a", "b", "c"]),
    "nested": (nested, ["first.0", "rest.0.0", "rest.0.1"]),
    "LayerList": (lambda *layers: nn.LayerList(layers), ["0", "1", "2"]),
    "LayerDict": (
        lambda *layers: nn.LayerDict(zip(["keys", "b", "c"], layers, strict=True)),
        ["keys", "b", "c"],
    ),
}


class Holding(nn.Layer):
    def __init__(self, hold):
        super().__init__()
        self.made = [nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 1)]
        parts = hold(*self.made)
        del self.made
        self.layers = parts
        self.used = tuple(self.sublayers())

    def forward(self, x):
        for layer in self.used:
            if not isinstance(layer, nn.LayerList | nn.LayerDict):
                x = layer(x)
        return x


@pytest.mark.parametrize("kind", HOLDERS)
def test_layers_in_containers_are_parts_of_the_layer(kind):
    hold, names = HOLDERS[kind]
    model = Holding(hold)
    wanted = [f"layers.{names[0]}.weight", f"layers.{names[0]}.bias"]
    wanted += [f"layers.{names[2]}.weight", f"layers.{names[2]}.bias"]
    dropout = model.used[-2]
    assert model.training
    assert dropout.training
    assert model.eval() is model
    assert not dropout.training
    model.train()
    assert dropout.training
    model.eval()
    with pg.Program() as program:
        x = pg.data("x", (3, 2))
        y = model(x)
    assert [name for name, _ in model.named_parameters()] == wanted
    assert [p.name for p in program.parameters()] == [f"holding.{name}" for name in wanted]
    assert len(model.parameters()) == 4
    held = model.state_dict()
    assert list(held) == wanted
    model.set_state_dict({name: np.ones_like(array) for name, array in held.items()})
    (found,) = pg.Executor().run(program, {"x": np.ones((3, 2))}, [y])
    assert found.tolist() == [[7.0]] * 3
    seen = []
    model.apply(lambda layer: seen.append(type(layer).__name__))
    assert seen.count("Linear") == 2
    copied = copy.deepcopy(model)
    with pg.Program():
        copied(pg.data("x", (3, 2)))
        assert [name for name, _ in copied.named_parameters()] == wanted
    assert not {id(p.value) for p in copied.parameters()} & {
        id(p.value) for p in model.parameters()
    }


def test_containers_are_looked_into_each_time():
    class Growing(nn.Layer):
        def __init__(self):
            super().__init__()
            self.layers = []
            self.by_name = {}

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model = Growing()
    assert model.sublayers() == []
    model.layers.append(nn.Linear(2, 2))
    model.by_name["head"] = model.layers[0]
    model.layers.append(nn.Tanh())
    model.layers.append(model.layers)
    assert [name for name, _ in model.named_sublayers()] == ["layers.0", "layers.1"]
    model.layers.pop()
    with pg.Program():
        model(pg.data("x", (3, 2)))
        assert [n for n, _ in model.named_parameters()] == ["layers.0.weight", "layers.0.bias"]
        model.layers.append(nn.Linear(2, 1))
        assert len(model.parameters()) == 4
    assert "layers.2 Linear" in repr(model)


def test_states_of_a_program_in_containers_are_parameters():
    class Scaled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.scales = [pg.create_parameter((2,), name="s"), 3.0, "text"]

        def forward(self, x):
            return x * self.scales[0]

    with pg.Program() as program:
        model = Scaled()
        model(pg.data("x", (3, 2)))
        assert [(n, p.name) for n, p in model.named_parameters()] == [("scales.0", "s")]
        assert list(model.state_dict()) == ["scales.0"]
    assert len(program.parameters()) == 1


def test_what_cannot_be_found_is_told():
    model = nn.Sequential(nn.Linear(2, 2))
    model.weights = [model.create_parameter((2,))]
    with pg.Program(), pytest.raises(pg.BuildError, match=r"'weights\.0'") as caught:
        model(pg.data("x", (3, 2)))
    assert "ParameterList" in caught.value.hint
    other = nn.Sequential(nn.Linear(2, 2))
    other.parts = {nn.Tanh()}
    with pytest.raises(pg.BuildError, match="in a set"):
        other.eval()


def test_a_list_of_layers_is_changed_as_a_list():
    first, second, third = nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1)
    layers = nn.LayerList([first])
    assert layers.append(third).extend(iter([second])) is layers
    assert list(layers) == [first, third, second]
    layers.insert(1, layers.pop())
    assert list(layers) == [first, second, third]
    assert len(layers) == 3
    assert layers[-1] is third
    assert isinstance(layers[1:], nn.LayerList)
    assert list(layers[1:]) == [second, third]
    assert [n for n, _ in layers.named_sublayers()] == ["0", "1", "2"]
    layers[1] = first
    assert layers[1] is first
    del layers[0]
    assert list(layers) == [first, third]
    del layers[:1]
    assert list(layers) == [third]
    assert third in layers
    with pytest.raises(IndexError, match="a LayerList of 1 has no place 1"):
        layers[1]
    with pytest.raises(TypeError, match="layer is a Layer, not int 3"):
        layers.append(3)
    with pytest.raises(TypeError):
        nn.LayerList({"a": third})
    with pytest.raises(TypeError):
        nn.LayerList({third})
    with pytest.raises(pg.BuildError, match="within itself"):
        layers.append(layers)
    with (
        pg.Program(),
        pytest.raises(NotImplementedError, match="LayerList does not define forward"),
    ):
        layers(pg.data("x", (3, 2)))


def test_a_dict_of_layers_is_changed_as_a_dict():
    first, second = nn.Linear(2, 2), nn.Tanh()
    layers = nn.LayerDict({"first": first})
    layers["items"] = second
    assert list(layers) == list(layers.keys()) == ["first", "items"]
    assert list(layers.values()) == [first, second]
    assert dict(layers.items()) == {"first": first, "items": second}
    assert "items" in layers
    assert "other" not in layers
    assert len(layers) == 2
    assert layers.pop("first") is first
    layers.update([("first", second)])
    del layers["items"]
    assert dict(layers.items()) == {"first": second}
    with pytest.raises(KeyError, match="no layer 'frist'") as caught:
        layers["frist"]
    assert "'first'" in caught.value.hint
    for name in ("", "a.b", 3):
        with pytest.raises(pg.BuildError, match="cannot name a part"):
            layers[name] = first
    with pytest.raises(TypeError, match="a LayerDict has layers"):
        layers["x"] = 3.0
    layers.clear()
    assert not len(layers)


def test_a_list_of_parameters_reads_as_variables():
    class Polynomial(nn.Layer):
        def __init__(self, order):
            super().__init__()
            self.terms = nn.ParameterList(
                self.create_parameter((), initializer=pg.initializers.Constant(float(k)))
                for k in range(order)
            )

        def forward(self, x):
            return sum((c * x**k for k, c in enumerate(self.terms)), 0.0)

    model = Polynomial(3)
    model.terms.append(model.create_parameter((), initializer=pg.initializers.Constant(1.0)))
    assert len(model.terms) == 4
    with pg.Program() as program:
        y = model(pg.data("x", ()))
        assert [n for n, _ in model.named_parameters()] == [f"terms.{k}" for k in range(4)]
        assert model.terms[-1] is not None
        assert [v.name for v in model.terms[1:3]] == ["polynomial.terms.1", "polynomial.terms.2"]
        model.terms.extend([pg.create_parameter((), name="own")])
        model.terms[0] = pg.create_parameter((), name="other")
        assert [v.name for v in model.terms][::4] == ["other", "own"]
    (found,) = pg.Executor().run(program, {"x": 2.0}, [y])
    assert found == 2.0 + 2.0 * 4.0 + 8.0
    with pytest.raises(TypeError, match="made by create_parameter"):
        model.terms.append(3.0)
    with pytest.raises(IndexError, match="ParameterList of 5"):
        model.terms[5]


def test_a_layer_in_a_list_trains():
    class Deep(nn.Layer):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 8), nn.Linear(8, 1)]

        def forward(self, x):
            return self.layers[1](pg.tanh(self.layers[0](x)))

    with pg.Program() as program:
        x, y = pg.data("x", (16, 2)), pg.data("y", (16, 1))
        loss = pg.mean((Deep()(x) - y) ** 2)
        pg.optimizer.Adam(0.05).minimize(loss)
    points = np.random.default_rng(0).standard_normal((16, 2))
    history = pg.fit(program, loss, [{"x": points, "y": points[:, :1]}], 100)
    assert history[-1] < history[0] / 20
