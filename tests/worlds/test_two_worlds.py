"""One library for both worlds: layers and optimizers eagerly, and in programs."""

import copy
import gc
import pickle
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import primgraph as pg
from primgraph import nn, optimizer
from primgraph.eager.node import Node

RUN = pg.Executor().run
RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 4))
LABELS = np.arange(12) % 3


class Network(nn.Layer):
    """A bit of everything that has parameters or buffers."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6, bias=False), nn.BatchNorm(6), nn.Tanh())
        self.scores = nn.Linear(6, 3)
        self.scale = self.create_parameter((3,), initializer=pg.initializers.Constant(2.0))

    def forward(self, x):
        return self.scores(self.body(x)) * self.scale


LOSS = nn.CrossEntropyLoss()


def steps(net, opt, count, x=X, labels=LABELS):
    """The losses of so many steps eagerly."""
    found = []
    for _ in range(count):
        opt.clear_grad()
        loss = LOSS(net(pg.tensor(x)), pg.tensor(labels))
        loss.backward()
        opt.step()
        found.append(loss.item())
    return found


def program_of(net, opt, x=X, labels=LABELS, **options):
    """A program that trains the network, and its loss."""
    with pg.Program() as program:
        loss = LOSS(net(pg.data("x", x.shape)), pg.data("labels", labels.shape, "int64"))
        opt.minimize(loss, **options)
    return program, loss


def runs(program, loss, count, x=X, labels=LABELS):
    """The losses of so many runs."""
    return [RUN(program, {"x": x, "labels": labels}, [loss])[0].item() for _ in range(count)]


def same(found, expected, rtol=1e-9, atol=1e-12):
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol, atol, err_msg=name)


OPTIMIZERS = {
    "sgd": lambda **o: optimizer.SGD(0.1, **o),
    "momentum": lambda **o: optimizer.Momentum(0.1, 0.8, **o),
    "nesterov": lambda **o: optimizer.Momentum(0.1, nesterov=True, **o),
    "adam": lambda **o: optimizer.Adam(0.01, **o),
    "adamw": lambda **o: optimizer.AdamW(0.01, weight_decay=0.1, **o),
    "rmsprop": lambda **o: optimizer.RMSProp(0.01, **o),
    "rmsprop with momentum": lambda **o: optimizer.RMSProp(0.01, momentum=0.5, **o),
    "decay": lambda **o: optimizer.SGD(0.1, weight_decay=0.05, **o),
    "by value": lambda **o: optimizer.Adam(grad_clip=optimizer.clip_by_value(-0.01, 0.02), **o),
    "by norm": lambda **o: optimizer.SGD(0.1, grad_clip=optimizer.clip_by_norm(0.1), **o),
    "by global norm": lambda **o: optimizer.Momentum(
        0.1, grad_clip=optimizer.clip_by_global_norm(0.1), weight_decay=0.1, **o
    ),
    "exponential": lambda **o: optimizer.SGD(0.1, schedule=optimizer.exponential_decay(0.5), **o),
    "steps": lambda **o: optimizer.SGD(0.1, schedule=optimizer.step_decay(2), **o),
    "polynomial": lambda **o: optimizer.Adam(schedule=optimizer.polynomial_decay(4), **o),
    "cosine": lambda **o: optimizer.Adam(schedule=optimizer.cosine_decay(4, 0.1), **o),
    "warmup": lambda **o: optimizer.AdamW(
        schedule=optimizer.warmup(2, optimizer.cosine_decay(3)), **o
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_takes_the_steps_that_it_takes_in_a_program(name):
    make = OPTIMIZERS[name]
    eager, built = Network(), Network()
    built.load_state_dict(eager.state_dict())
    one = make(parameters=eager.parameters())
    losses = steps(eager, one, 5)
    other = make()
    program, loss = program_of(built, other)
    np.testing.assert_allclose(losses, runs(program, loss, 5), 1e-10)
    same(eager.state_dict(), built.state_dict())
    same(one.state_dict(), other.state_dict())


# One optimizer for both worlds.


@pytest.mark.parametrize("name", ["momentum", "adam", "warmup", "rmsprop with momentum"])
@pytest.mark.parametrize("first", ["steps", "runs"])
def test_training_goes_on_in_the_other_world_from_a_state_dict(name, first):
    make = OPTIMIZERS[name]
    whole, net, after = Network(), Network(), Network()
    for other in (net, after):
        other.load_state_dict(whole.state_dict())
    expected = steps(whole, make(parameters=whole.parameters()), 6)
    if first == "steps":
        before = make(parameters=net.parameters())
        losses = steps(net, before, 3)
        then = make()
        program, loss = program_of(after, then)
        after.load_state_dict(net.state_dict())
        then.load_state_dict(before.state_dict())
        losses += runs(program, loss, 3)
    else:
        before = make()
        program, loss = program_of(net, before)
        losses = runs(program, loss, 3)
        then = make(parameters=after.parameters())
        after.load_state_dict(net.state_dict())
        then.load_state_dict(before.state_dict())
        losses += steps(after, then, 3)
    np.testing.assert_allclose(losses, expected, 1e-9)
    same(after.state_dict(), whole.state_dict())


def test_an_optimizer_with_parameters_goes_on_in_programs_and_back():
    whole, net = Network(), Network()
    net.load_state_dict(whole.state_dict())
    expected = steps(whole, optimizer.Adam(0.02, parameters=whole.parameters()), 7)
    adam = optimizer.Adam(0.02, parameters=net.parameters())
    losses = steps(net, adam, 2)
    program, loss = program_of(net, adam)
    losses += runs(program, loss, 2)
    losses += steps(net, adam, 1)
    losses += runs(program, loss, 2)
    np.testing.assert_allclose(losses, expected, 1e-9)
    assert adam.state_dict()["step"] == program.state_dict()["adam.step"] == 7
    same(net.state_dict(), whole.state_dict())
    adam.set_learning_rate(0.0)
    assert program.state_dict()["adam.learning_rate"] == 0.0
    runs(program, loss, 1)
    weight = net.scores.weight.numpy()
    steps(net, adam, 1)
    np.testing.assert_array_equal(net.scores.weight.numpy(), weight)


def test_what_minimize_changes_in_a_program_may_be_named_by_tensors():
    net = Network()
    net.state_dict()
    weight = net.scores.weight
    with pg.Program() as program:
        loss = LOSS(net(pg.data("x", X.shape)), LABELS)
    _, pairs = optimizer.SGD(0.1).minimize(loss, [weight])
    assert [p.name for p, _ in pairs] == ["network.scores.weight"]
    _, pairs = optimizer.SGD(0.1, parameters=[net.scale]).minimize(loss)
    assert [p.name for p, _ in pairs] == ["network.scale"]
    with pytest.raises(pg.BuildError, match="is no part of the program"):
        optimizer.SGD(0.1, parameters=nn.Linear(2, 2).parameters()).minimize(loss)
    assert program.updates


def test_states_of_an_optimizer_are_set_whole_or_not_at_all():
    net = Network()
    adam = optimizer.Adam(parameters=net.parameters())
    before = adam.state_dict()
    assert before["step"] == 0
    assert before["learning_rate"] == 0.001
    assert before["network.scale.moment1"].tolist() == [0, 0, 0]
    for wrong, words in [
        ({"step": 1.0, "stp": 2.0}, "keeps nothing named 'stp'"),
        ({"step": 1.0, "network.scale.moment1": np.ones(4)}, r"f64\[3\]"),
    ]:
        with pytest.raises(pg.FeedError, match=words):
            adam.set_state_dict(wrong)
    same(adam.state_dict(), before, 0, 0)
    adam.set_state_dict({"learning_rate": 0.5})
    assert adam.learning_rate == 0.5
    with pytest.raises(pg.BuildError, match="no states yet"):
        optimizer.Adam().state_dict()


def test_parameters_that_have_no_name_are_counted():
    w, v = (pg.tensor(np.ones(2), requires_grad=True) for _ in "wv")
    momentum = optimizer.Momentum(0.1, parameters=[w, v, w])
    (w * w + v).sum().backward()
    momentum.step()
    assert [*momentum.state_dict()] == [
        "step",
        "learning_rate",
        "parameter_0.velocity",
        "parameter_1.velocity",
    ]
    np.testing.assert_allclose(w.numpy(), 0.8)
    two = [nn.Linear(2, 2, bias=False) for _ in range(2)]
    both = optimizer.Momentum(0.1, parameters=[*two[0].parameters(), *two[1].parameters()])
    assert [*both.state_dict()][2:] == ["linear.weight.velocity", "linear_1.weight.velocity"]


def test_parameters_without_a_gradient_stay():
    net = nn.LayerList([nn.Linear(2, 2), nn.Linear(2, 2)])
    adam = optimizer.Adam(0.1, weight_decay=0.1, parameters=net.parameters())
    before = net.state_dict()
    for used in (0, 0, 1):
        adam.clear_grad()
        net[used](pg.tensor(np.ones((1, 2)))).sum().backward()
        adam.step()
        changed = {n for n, a in net.state_dict().items() if (a != before[n]).any()}
        assert changed == {f"{i}.{n}" for i in range(used + 1) for n in ("weight", "bias")}
    net[0].weight.requires_grad_(False)
    frozen = net[0].weight.numpy()
    adam.clear_grad()
    net[0](pg.tensor(np.ones((1, 2)))).sum().backward()
    adam.step()
    np.testing.assert_array_equal(net[0].weight.numpy(), frozen)
    assert adam.state_dict()["step"] == 4


def test_a_rule_of_ones_own_steps_too():
    class Signed(optimizer.Optimizer):
        def change(self, parameter, gradient, rate, count):
            last = self.slot(parameter, "last")
            self.keep(last, gradient)
            return rate.astype(parameter.dtype) * pg.sign(gradient + last) * count

    w = pg.tensor([1.0, -2.0], requires_grad=True)
    rule = Signed(0.5, parameters=[w])
    for _ in range(2):
        rule.clear_grad()
        (w * w).sum().backward()
        rule.step()
    assert w.tolist() == [-0.5, -0.5]
    assert rule.state_dict()["parameter_0.last"].tolist() == [1.0, -3.0]
    with pytest.raises(pg.BuildError, match="while its rule is recorded"):
        Signed(0.5).slot(w, "last")


def test_what_an_optimizer_is_set_to_counts_from_the_next_step_on():
    w = pg.tensor([0.0], requires_grad=True)
    sgd = optimizer.SGD(1.0, parameters=[w])
    for rate, decay, expected in [(1.0, 0.0, -1.0), (0.5, 0.0, -1.5), (0.5, 2.0, -0.5)]:
        sgd.learning_rate, sgd.weight_decay = rate, decay
        sgd.clear_grad()
        w.sum().backward()
        sgd.step()
        assert w.item() == expected
    with pytest.raises(pg.ArgumentError, match="a learning rate is a number"):
        sgd.set_learning_rate("0.1")


def test_the_gradients_of_float32_are_stepped_along_in_float32():
    layer = nn.Linear(3, 2, dtype="float32")
    adam = optimizer.Adam(parameters=layer.parameters(), grad_clip=optimizer.clip_by_norm(0.1))
    layer(pg.tensor(np.ones((2, 3)), "float32")).sum().backward()
    adam.step()
    assert {a.dtype.name for a in layer.state_dict().values()} == {"float32"}
    assert adam.state_dict()["linear.weight.moment1"].dtype == np.float32
    assert adam.state_dict()["step"].dtype == np.float64


# The same arrays underneath.


def test_programs_and_tensors_see_what_the_other_has_changed():
    net = Network()
    tensor, fed = pg.tensor(X), {"x": X}
    eager = net(tensor)
    with pg.Program() as program:
        out = net(pg.data("x", X.shape))
    assert {*program.state_dict()} == {f"network.{n}" for n in net.state_dict()}
    np.testing.assert_allclose(RUN(program, fed, [out])[0], eager.numpy(), 1e-12)
    steps(net, optimizer.SGD(0.1, parameters=net.parameters()), 2)
    np.testing.assert_allclose(RUN(program, fed, [out])[0], net(tensor).numpy(), 1e-12)
    program.set_state_dict({"network.scale": [1.0, 2.0, 3.0]})
    assert net.scale.tolist() == [1.0, 2.0, 3.0]
    with pg.no_grad():
        net.scale.mul_(2.0)
    assert program.state_dict()["network.scale"].tolist() == [2.0, 4.0, 6.0]
    assert program.scope.get("network.scale").tolist() == [2.0, 4.0, 6.0]
    net.load_state_dict({"scale": [0.0, 0.0, 1.0]}, strict=False)
    assert program.clone(for_test=True).state_dict()["network.scale"].tolist() == [0, 0, 1]
    net.scale.requires_grad_(False)
    program.initialize()
    assert net.scale.tolist() == [2.0, 2.0, 2.0]
    assert not net.scale.requires_grad


def test_a_program_that_came_first_gives_its_values_to_tensors():
    net = Network()
    program, loss = program_of(net, optimizer.SGD(0.1))
    runs(program, loss, 2)
    assert isinstance(net.scale, pg.Variable)
    trained = program.state_dict()
    eager = net.eval()(pg.tensor(X))
    assert isinstance(net.scale, pg.Tensor)
    found = {f"network.{n}": a for n, a in net.state_dict().items()}
    same(found, {n: a for n, a in trained.items() if n in found}, 0, 0)
    before = eager.numpy()
    runs(program, loss, 3)
    assert (net(pg.tensor(X)).numpy() != before).all()
    np.testing.assert_array_equal(net.scale.numpy(), program.state_dict()["network.scale"])


def test_no_run_writes_to_what_tensors_were_computed_from():
    weight = pg.tensor(np.zeros(3), requires_grad=True)
    with pg.Program() as program:
        x = pg.data("x", 3)
        y = x * weight
        (state,) = program.parameters()
        program.update(state, state + 1.0)
    later, kept = [], []
    for _ in range(6):
        later.append(weight * 1.0)
        kept.append(np.asarray(weight))
        RUN(program, {"x": np.ones(3)}, [y])
    assert [t.tolist() for t in later] == [[float(i)] * 3 for i in range(6)]
    assert [a.tolist() for a in kept] == [[float(i)] * 3 for i in range(6)]
    assert weight.tolist() == [6.0] * 3
    assert weight.is_leaf
    assert weight.requires_grad


def test_arrays_are_handed_over_and_not_copied():
    weight = pg.tensor(np.arange(3.0), requires_grad=True)
    with pg.Program() as program:
        y = pg.data("x", 3) * weight
        (state,) = program.parameters()
        program.update(state, state * 2.0)
    program.scope.read()
    held = program.scope.newest.arrays[state.name]
    assert np.shares_memory(held, np.asarray(weight))
    RUN(program, {"x": np.ones(3)}, [y])
    assert np.shares_memory(program.scope.newest.arrays[state.name], np.asarray(weight))
    # Runs that nobody looks at in between write to the same two arrays in turn.
    seen = set()
    for _ in range(6):
        RUN(program, {"x": np.ones(3)}, [y])
        seen.add(id(program.scope.newest.arrays[state.name]))
    assert len(seen) <= 3


def test_what_a_program_stored_last_outlives_it():
    weight = pg.tensor(np.zeros(2), requires_grad=True)
    with pg.Program() as program:
        y = pg.data("x", 2) * weight
        (state,) = program.parameters()
        program.update(state, state + 1.0)
    RUN(program, {"x": np.ones(2)}, [y])
    del program, y, state
    gc.collect()
    assert weight.tolist() == [1.0, 1.0]


def counting(weight):
    """A program of which each run adds one to a tensor that is its parameter."""
    with pg.Program() as program:
        y = pg.data("x", weight.shape) * weight
        (state,) = program.parameters()
        program.update(state, state + 1.0)
    feed = {"x": np.ones(weight.shape)}
    return program, lambda: RUN(program, feed, [y])[0]


def test_what_was_stored_last_counts_wherever_it_was():
    weight = pg.tensor(np.zeros(2), requires_grad=True)
    (one, run_one), (other, run_other) = counting(weight), counting(weight)
    assert run_one().tolist() == [0, 0]
    assert run_other().tolist() == [1, 1]
    assert run_other().tolist() == [2, 2]
    assert run_one().tolist() == [3, 3]
    other.set_state_dict({"weight": [7.0, 8.0]})
    assert one.state_dict()["weight"].tolist() == [7, 8]
    with pg.no_grad():
        weight.zero_()
        one.set_state_dict({"weight": [1.0, 1.0]})
        assert weight.tolist() == [1, 1]
        weight.fill_(5.0)
    assert run_other().tolist() == [5, 5]
    assert weight.tolist() == [6, 6]
    assert run_one().tolist() == [6, 6]
    del one, run_one
    gc.collect()
    assert weight.tolist() == [7, 7]
    counting(weight)
    assert run_other().tolist() == [7, 7]


def test_tensors_are_asked_at_each_run_only_if_several_scopes_have_them():
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    tensors = [*layer.parameters(), *other.parameters()]
    programs = []
    for layers in ([layer, other], [layer]):
        with pg.Program() as program:
            x = pg.data("x", (1, 2))
            for one in layers:
                x = one(x)
        programs.append(program)
        if len(programs) == 1:
            assert len([p.numpy() for p in tensors]) == len(program.scope.desk().guests)
            assert not program.scope.desk().scattered
    both = {id(layer.weight), id(layer.bias)}
    for program in programs:
        asked = program.scope.desk().scattered.values()
        assert {id(guest.tensor) for guest in asked} == both


def test_a_program_is_forgotten_with_all_that_it_kept():
    layer = nn.Linear(2, 2)
    layer.state_dict()
    gone = []
    for _ in range(3):
        with pg.Program() as program:
            layer(pg.data("x", (1, 2)))
        program.state_dict()
        gone.append(weakref.ref(program.scope))
    del program
    gc.collect()
    assert [r() for r in gone] == [None] * 3


def test_others_may_look_while_a_program_trains():
    weight = pg.tensor(np.zeros(500), requires_grad=True)
    program, run = counting(weight)
    seen, done = [], threading.Event()

    def look():
        while not done.is_set():
            seen.append((weight * 1.0).numpy())

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        run()
    done.set()
    for thread in threads:
        thread.join()
    assert all((array == array[0]).all() for array in seen)
    assert weight.tolist() == [300.0] * 500
    assert program.state_dict()["weight"][0] == 300.0


def test_a_scope_of_ones_own_begins_with_what_the_program_began_with():
    net = Network()
    before = net.state_dict()
    with pg.Program() as program:
        net(pg.data("x", X.shape))
        scale = net.scale
    steps(net, optimizer.SGD(0.5, parameters=net.parameters()), 2)
    alone = pg.Executor(pg.Scope())
    found = alone.run(program, {"x": X}, [scale])[0]
    np.testing.assert_array_equal(found, before["scale"])
    np.testing.assert_array_equal(RUN(program, {"x": X}, [scale])[0], net.scale.numpy())
    np.testing.assert_array_equal(net.state_dict(alone.scope)["scale"], before["scale"])


def test_saved_by_one_world_and_loaded_by_the_other(tmp_path):
    net = Network()
    steps(net, optimizer.Adam(0.05, parameters=net.parameters()), 3)
    expected = net.eval()(pg.tensor(X)).numpy()
    with pg.Program() as program:
        out = net(pg.data("x", X.shape))
        out.name = "out"
    pg.save(program, tmp_path / "net.pg")
    loaded = pg.load(tmp_path / "net.pg")
    np.testing.assert_allclose(RUN(loaded, {"x": X}, ["out"])[0], expected, 1e-12)
    other = Network().eval()
    states = loaded.state_dict()
    other.load_state_dict({n.removeprefix("network."): a for n, a in states.items()})
    np.testing.assert_array_equal(other(pg.tensor(X)).numpy(), expected)
    np.savez(tmp_path / "net.npz", **net.state_dict())
    with pg.Program() as again:
        third = Network().eval()
        result = third(pg.data("x", X.shape))
    with np.load(tmp_path / "net.npz") as arrays:
        third.set_state_dict(arrays)
    np.testing.assert_allclose(RUN(again, {"x": X}, [result])[0], expected, 1e-12)


def test_a_program_that_trains_is_tested_by_its_clone_and_by_tensors():
    net = Network()
    program, loss = program_of(net, optimizer.Adam(0.05))
    test = program.clone(for_test=True)
    runs(program, loss, 3)
    fed = {"x": X, "labels": LABELS}
    found = RUN(test, fed, [loss.name])[0]
    np.testing.assert_allclose(LOSS(net.eval()(pg.tensor(X)), pg.tensor(LABELS)).item(), found)
    with test:
        assert net.scale.recorder is test.builder
        assert net.scale.name == "network.scale"
    assert len(test.state_dict()) == len(program.state_dict())


# Layers.


def ways(layer, *arrays, training=True):
    """Result, gradients and states of a layer in both worlds, eagerly first."""
    eager = copy.deepcopy(layer.train() if training else layer.eval())
    built = copy.deepcopy(eager)
    built.load_state_dict(eager.state_dict())
    inputs = [pg.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    out = eager(*inputs)
    (out * out).sum().backward()
    leaves = [t for t in (*inputs, *eager.parameters()) if t.requires_grad]
    one = [out.numpy(), *[t.grad.numpy() for t in leaves]]
    with pg.Program() as program:
        variables = [pg.data(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
        result = built(*variables)
        inputs = [v for v in variables if v.dtype.kind == "f"]
        slopes = pg.grad(pg.sum(result * result), [*inputs, *built.parameters()])
    fed = {f"x{i}": a for i, a in enumerate(arrays)}
    other = RUN(program, fed, [result, *slopes])
    return one, other, eager.state_dict(), built.state_dict()


POSITIVE = np.abs(X) / (1.0 + np.abs(X))
IMAGES = RNG.standard_normal((3, 2, 4, 4))
SERIES = RNG.standard_normal((5, 3, 4))
VOLUMES = RNG.standard_normal((2, 2, 4, 4, 4))
LINES = IMAGES[:, :, 0]


class First(nn.Layer):
    """The first of the results of a layer that has several."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *xs):
        return self.inner(*xs)[0]


LAYERS = {
    "linear": (nn.Linear(4, 3), X),
    "linear without bias": (nn.Linear(4, 3, bias=False), X),
    "layer norm": (nn.LayerNorm(4), X),
    "batch norm": (nn.BatchNorm(4), X),
    "batch norm of images": (nn.BatchNorm(2), IMAGES),
    "batch norm with channels last": (nn.BatchNorm(4, layout="NHWC"), IMAGES),
    "batch norm with running statistics": (nn.BatchNorm(4, use_global_stats=True), X),
    "no dropout": (nn.Dropout(0.0), X),
    "tanh": (nn.Tanh(), X),
    "relu": (nn.ReLU(), X),
    "gelu": (nn.GELU(), X),
    "approximate gelu": (nn.GELU(approximate=True), X),
    "silu": (nn.SiLU(), X),
    "sigmoid": (nn.Sigmoid(), X),
    "softplus": (nn.Softplus(), X),
    "softmax": (nn.Softmax(), X),
    "nothing": (nn.Sequential(), X),
    "sequence": (nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.BatchNorm(3)), X),
    "network": (Network(), X),
    "mse": (nn.MSELoss(), X, X[::-1].copy()),
    "l1": (nn.L1Loss("sum"), X, X[::-1].copy()),
    "huber": (nn.HuberLoss(0.3), X, X[::-1].copy()),
    "bce": (nn.BCELoss(), POSITIVE, POSITIVE[::-1].copy()),
    "bce of logits": (nn.BCEWithLogitsLoss("none"), X, POSITIVE),
    "cross entropy": (nn.CrossEntropyLoss(), X, LABELS),
    "group norm": (nn.GroupNorm(1, 2), IMAGES),
    "instance norm": (nn.InstanceNorm(2, affine=True), IMAGES),
    "rms norm": (nn.RMSNorm(4), X),
    "embedding": (nn.Embedding(3, 2), LABELS),
    "attention": (First(nn.MultiheadAttention(4, 2)), SERIES, SERIES[::-1].copy(), 2 * SERIES),
    "rnn": (First(nn.RNN(4, 2)), SERIES),
    "gru": (First(nn.GRU(4, 2)), SERIES),
    "lstm": (First(nn.LSTM(4, 2)), SERIES),
    "step of an rnn": (nn.RNNCell(4, 2), X),
    "step of a gru": (nn.GRUCell(4, 2), X),
    "step of an lstm": (First(nn.LSTMCell(4, 2)), X),
    "flatten": (nn.Flatten(), IMAGES),
    "conv of lines": (nn.Conv1d(2, 3, 2), LINES),
    "conv of images": (nn.Conv2d(2, 3, 2), IMAGES),
    "conv of volumes": (nn.Conv3d(2, 1, 3), VOLUMES),
    "transposed conv of lines": (nn.ConvTranspose1d(2, 3, 2), LINES),
    "transposed conv of images": (nn.ConvTranspose2d(2, 3, 2), IMAGES),
    "transposed conv of volumes": (nn.ConvTranspose3d(2, 1, 2), VOLUMES),
    **{
        f"{kind}{count}d": (getattr(nn, f"{kind}{count}d")(2), array)
        for kind in ("MaxPool", "AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool")
        for count, array in ((1, LINES), (2, IMAGES), (3, VOLUMES))
    },
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_a_layer_computes_what_it_computes_in_a_program(name, training):
    layer, *arrays = LAYERS[name]
    one, other, states, built = ways(layer, *arrays, training=training)
    assert len(one) == len(other)
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected, 1e-9, 1e-12)
    same(states, built)


def test_all_layers_are_among_them():
    tried = {type(inner) for layer, *_ in LAYERS.values() for inner in layer.sublayers(True)}
    holders = {nn.Layer, nn.LayerList, nn.LayerDict, nn.ParameterList}
    assert {getattr(nn, name) for name in nn.__all__} == (tried | holders) - {Network, First}


def test_batch_norm_takes_every_batch_into_account_whether_it_is_looked_at_or_not():
    x = RNG.standard_normal((700, 5, 2))
    norm, seen = nn.BatchNorm(2), nn.BatchNorm(2)
    for batch in x:
        norm(pg.tensor(batch))
        seen(pg.tensor(batch)).numpy()
    same(norm.state_dict(), seen.state_dict(), 1e-12)
    mean = np.zeros(2)
    for batch in x:
        mean = 0.9 * mean + 0.1 * batch.mean(0)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, 1e-12)
    assert not norm.running_mean.requires_grad


def test_buffers_are_changed_by_assignment_as_one_goes():
    class Counter(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", np.zeros(2))
            self.weight = self.create_parameter((2,))

        def forward(self, x):
            self.count = self.count + x
            return x * self.weight

    layer, x = Counter(), pg.tensor(np.ones(2), requires_grad=True)
    for _ in range(3):
        layer(x)
    assert layer.state_dict()["count"].tolist() == [3, 3]
    assert not layer.count.requires_grad
    with pytest.raises(pg.ShapeError, match="'count' is f64"):
        layer.count = pg.tensor(np.ones(3))
    with pytest.raises(pg.ArgumentError, match="'weight' is a parameter"):
        layer.weight = x * 2.0
    layer.weight = x
    assert layer.parameters() == [x]
    layer.other = pg.tensor(np.ones(2))
    assert len(layer.state_dict()) == 2


@pytest.mark.parametrize("mode", ["upscale_in_train", "downscale_in_infer"])
def test_dropout_drops_other_elements_at_each_call_and_compiles_once(mode):
    pg.seed(3)
    layer, x = nn.Dropout(0.25, mode), np.ones((50, 40))
    first = layer(pg.tensor(x)).numpy()
    with pg.Program() as program:
        program.random_seed = 3
        out = layer(pg.data("x", x.shape))
    np.testing.assert_array_equal(RUN(program, {"x": x}, [out])[0], first)
    total = pg.eager.log.total
    masks = [layer(pg.tensor(x)).numpy() for _ in range(5)]
    assert pg.eager.log.total - total <= 1
    assert len({m.tobytes() for m in [first, *masks]}) == 6
    assert all(abs((m == 0).mean() - 0.25) < 0.05 for m in masks)
    pg.seed(3)
    np.testing.assert_array_equal(layer(pg.tensor(x)).numpy(), first)
    kept = 0.75 if mode == "downscale_in_infer" else 1.0
    np.testing.assert_array_equal(layer.eval()(pg.tensor(x)).numpy(), kept * x)
    with pytest.raises(pg.ArgumentError, match="seed is an integer"):
        pg.seed(0.5)


def test_first_values_follow_from_the_seed_and_the_order_of_creation():
    def made(seed):
        pg.seed(seed)
        return nn.Linear(3, 2), nn.Linear(3, 2)

    first, second = made(5)
    # The order in which somebody looks does not count.
    late = second.state_dict()["weight"]
    early = first.state_dict()["weight"]
    again, other = made(5)
    np.testing.assert_array_equal(again.state_dict()["weight"], early)
    np.testing.assert_array_equal(other.state_dict()["weight"], late)
    assert (early != late).any()
    assert (made(6)[0].state_dict()["weight"] != early).any()
    assert not first.state_dict()["bias"].any()


def test_a_copied_and_a_pickled_layer_have_the_same_elements_of_their_own(tmp_path):
    net = Network()
    steps(net, optimizer.SGD(0.1, parameters=net.parameters()), 1)
    same(copy.deepcopy(net).state_dict(), net.state_dict(), 0, 0)
    other = pickle.loads(pickle.dumps(net))
    same(other.state_dict(), net.state_dict(), 0, 0)
    before = net.state_dict()
    steps(other, optimizer.SGD(0.1, parameters=other.parameters()), 1)
    same(net.state_dict(), before, 0, 0)
    trained = Network()
    program, loss = program_of(trained, optimizer.SGD(0.1))
    runs(program, loss, 1)
    same(pickle.loads(pickle.dumps(trained)).state_dict(), trained.state_dict(), 0, 0)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("first", ["layer", "optimizer"])
def test_a_layer_and_its_optimizer_are_copied_together(duplicate, first):
    net = Network()
    adam = optimizer.Adam(0.1, parameters=net.parameters())
    steps(net, adam, 2)
    if first == "layer":
        other, other_adam = duplicate((net, adam))
    else:
        other_adam, other = duplicate((adam, net))
    for one, rule in ((net, adam), (other, other_adam)):
        steps(one, rule, 2)
    same(other.state_dict(), net.state_dict(), 0, 0)


def test_a_compiled_function_goes_with_the_modes_of_its_layers():
    net = nn.Sequential(nn.Linear(3, 40), nn.Dropout(0.5))
    x = np.ones((64, 3))
    compiled = {
        "layer": pg.jit(lambda x: net(x)),
        "samples": pg.jit(lambda x: pg.vmap(net)(x)),
        "slopes": pg.jit(pg.grad(lambda x: pg.sum(net(x)))),
        "no parameters": pg.jit(lambda x: net[1](x)),
    }
    for name, function in compiled.items():
        for _ in range(2):
            net.train()
            assert np.any(function(x) != function(x)), name
            net.eval()
            np.testing.assert_allclose(function(x), function(x), rtol=1e-13)
        assert len(function.compilations) == 2
        assert "Dropout is in evaluation" in str(function.compilations[1])


def test_layers_and_parameters_in_containers_step():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2), {"last": nn.Linear(2, 2)}]
            self.held = nn.LayerDict({"a": nn.LayerList([nn.Linear(2, 2)])})
            self.scales = nn.ParameterList([self.create_parameter((2,)) for _ in range(2)])
            self.free = [pg.tensor(np.ones(2), requires_grad=True)]

        def forward(self, x):
            x = self.layers[1]["last"](pg.tanh(self.layers[0](x)))
            x = self.held["a"][0](x) * self.scales[0] + self.scales[1]
            return x * self.free[0]

    net, other = Net(), Net()
    other.load_state_dict(net.state_dict())
    assert len(net.parameters()) == 9
    x, labels = RNG.standard_normal((6, 2)), np.arange(6) % 2
    sgd = optimizer.Momentum(0.1, parameters=net.parameters())
    losses = steps(net, sgd, 3, x, labels)
    program, loss = program_of(other, optimizer.Momentum(0.1), x, labels)
    np.testing.assert_allclose(losses, runs(program, loss, 3, x, labels), 1e-10)
    same(net.state_dict(), other.state_dict())
    assert "layers.1.last.weight" in net.state_dict()


def test_tied_parameters_are_one_in_both_worlds():
    class Tied(nn.Layer):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(pg.tanh(self.first(x)))

    net = Tied()
    assert [n for n, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.bias"]
    assert net.second.weight is net.first.weight
    with pg.Program() as program:
        net(pg.data("x", (2, 3)))
        assert net.second.weight.value is net.first.weight.value
    assert len(program.parameters()) == 3


def test_tensors_in_a_program_are_the_parameters_that_a_layer_makes_of_them():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    with pg.Program() as program:
        x = pg.data("x", (1, 2))
        y = layer(x) + x @ weight
    assert [*program.state_dict()] == ["linear.weight", "linear.bias"]
    found = RUN(program, {"x": [[1.0, 2.0]]}, [y])[0]
    np.testing.assert_allclose(found, [[2.0, 4.0]] @ weight.numpy())


def test_a_layer_is_called_on_arrays_and_numbers_of_numpy_as_one_goes():
    net = Network().eval()
    assert isinstance(net(X), pg.Tensor)
    np.testing.assert_array_equal(net(X).numpy(), net(pg.tensor(X)).numpy())
    with pg.Program() as program:
        assert net(X).recorder is program.builder


# Compiled functions.


def test_a_compiled_layer_has_the_parameters_that_it_has_at_each_call():
    net = Network().eval()
    compiled = pg.jit(net)
    tensor = pg.tensor(X)
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), net(tensor).numpy(), 1e-12)
        sgd = optimizer.SGD(0.1, parameters=net.parameters())
        compiled(tensor).sum().backward()
        sgd.step()
    assert len(compiled.compilations) == 1
    with pg.Program() as program:
        x = pg.data("x", X.shape)
        one, other = compiled(x), net(x)
    found, expected = RUN(program, {"x": X}, [one, other])
    np.testing.assert_array_equal(found, expected)
    assert len(program.parameters()) == 6


def test_a_compiled_function_drops_other_elements_each_time():
    layer = nn.Dropout(0.5)
    compiled = pg.jit(layer)
    masks = {np.asarray(compiled(np.ones(64))).tobytes() for _ in range(4)}
    assert len(masks) == 4
    assert len(compiled.compilations) == 1


def test_a_compiled_function_changes_no_buffer():
    layer = nn.BatchNorm(4)
    with pytest.raises(pg.BuildError, match=r"changes 'running_mean' when it is called"):
        pg.jit(layer)(X)
    before = layer.state_dict()
    np.testing.assert_allclose(pg.jit(layer.eval())(X), layer(X).numpy(), 1e-12)
    same(layer.state_dict(), before, 0, 0)


@pytest.mark.parametrize("how", ["eagerly", "program"])
def test_parameters_are_constants_in_a_function_that_is_traced(how):
    net = Network().eval()
    if how == "program":
        with pg.Program():
            net(pg.data("x", X.shape))
    expected = net(X).numpy()
    kernel = pg.compile(pg.trace(net, pg.spec(X.shape)))
    np.testing.assert_allclose(kernel(X), expected, 1e-12)
    steps(net, optimizer.SGD(0.5, parameters=net.parameters()), 1)
    np.testing.assert_allclose(kernel(X), expected, 1e-12)
    pg.check_grads(lambda x: pg.sum(net.eval()(x) ** 2), [X])
    with pytest.raises(pg.BuildError, match="traced or compiled changes nothing"):
        pg.trace(net.train(), pg.spec(X.shape))
    with pytest.raises(pg.BuildError, match="belongs to a traced function"):
        pg.trace(nn.Linear(4, 2), pg.spec(X.shape))


# Training.


def test_a_training_loop_is_compiled_once_whatever_its_numbers():
    net = Network()
    adam = optimizer.Adam(
        schedule=optimizer.cosine_decay(9), grad_clip=optimizer.clip_by_norm(0.5),
        parameters=net.parameters(),
    )  # fmt: skip
    counts = []
    for i in range(8):
        adam.set_learning_rate(0.01 / (i + 1))
        steps(net, adam, 1, RNG.standard_normal(X.shape))
        counts.append(pg.eager.log.total)
    # The first step may find what other tests have compiled, or not.
    assert len(set(counts[1:])) == 1


def test_a_training_loop_keeps_its_memory():
    net = Network()
    adam = optimizer.Adam(parameters=net.parameters())

    def train(count):
        for _ in range(count):
            adam.clear_grad()
            LOSS(net(pg.tensor(X)), pg.tensor(LABELS)).backward()
            adam.step()

    train(20)
    gc.collect()
    nodes = live_nodes()
    tracemalloc.start()
    # Fills the free lists of the interpreter, which count as its memory.
    train(20)
    before = tracemalloc.get_traced_memory()[0]
    train(300)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert live_nodes() == nodes
    assert grown < 50_000


def live_nodes():
    # Nodes take part in no cycles, so that nothing has to be collected before.
    return sum(type(item) is Node for item in gc.get_objects())


def test_two_threads_train_two_networks_at_once():
    nets = [Network() for _ in range(4)]
    for i in (0, 2):
        nets[i + 1].load_state_dict(nets[i].state_dict())
    expected = [steps(n, optimizer.Adam(0.05, parameters=n.parameters()), 20) for n in nets[::2]]
    found, barrier = {}, threading.Barrier(3)

    def train(i):
        net = nets[2 * i + 1]
        barrier.wait()
        found[i] = steps(net, optimizer.Adam(0.05, parameters=net.parameters()), 20)

    def look():
        barrier.wait()
        with pg.no_grad():
            for _ in range(50):
                assert not Network()(pg.tensor(X)).requires_grad

    threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
    threads.append(threading.Thread(target=look))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2):
        np.testing.assert_allclose(found[i], expected[i], 1e-9)
        same(nets[2 * i + 1].state_dict(), nets[2 * i].state_dict())


def test_fit_takes_steps_as_it_takes_runs():
    eager, built = Network(), Network()
    built.load_state_dict(eager.state_dict())
    arrays = {"x": X, "labels": LABELS}
    feeds = [*pg.minibatches(arrays, 6)]
    seen = []
    history = pg.fit(
        lambda x, labels: LOSS(eager(x), labels),
        optimizer.Adam(0.02, parameters=eager.parameters()),
        feeds,
        3,
        callback=lambda epoch, loss: seen.append((epoch, loss)),
    )
    program, loss = program_of(built, optimizer.Adam(0.02), feeds[0]["x"], feeds[0]["labels"])
    np.testing.assert_allclose(history, pg.fit(program, loss, feeds, 3), 1e-9)
    assert seen == [*enumerate(history)]
    same(eager.state_dict(), built.state_dict())
    tensors = {"x": pg.tensor(X), "labels": LABELS}
    batch = next(pg.minibatches(tensors, 6))
    assert isinstance(batch["x"], pg.Tensor)
    assert isinstance(batch["labels"], np.ndarray)
    np.testing.assert_array_equal(batch["x"].numpy(), X[:6])


def test_fit_says_what_it_takes_as_one_goes():
    w = pg.tensor([1.0, 2.0], requires_grad=True)
    sgd = optimizer.SGD(0.1, parameters=[w])
    feeds = [{"x": np.ones(2)}]
    for function, given, error, words in [
        (lambda x: (w * x).sum(), "loss", pg.ArgumentError, "takes an optimizer, not str"),
        (lambda x: (w * x).sum(), optimizer.SGD(0.1), pg.BuildError, "has no parameters"),
        (lambda x: w * x, sgd, pg.ShapeError, "a loss has one element"),
        (lambda x: 1.0, sgd, pg.ArgumentError, "gives the loss as a tensor"),
        (lambda y: (w * y).sum(), sgd, pg.ArgumentError, "'x'"),
        (pg.Program(), sgd, pg.ArgumentError, "takes its loss"),
    ]:
        with pytest.raises(error, match=words):
            pg.fit(function, given, feeds, 1)
    with pytest.raises(pg.ArgumentError, match="an executor runs programs"):
        pg.fit(lambda x: (w * x).sum(), sgd, feeds, 1, executor=pg.Executor())


def test_a_manager_of_gradients_gives_what_an_optimizer_steps_along():
    one, other = Network(), Network()
    other.load_state_dict(one.state_dict())
    expected = steps(one, optimizer.Momentum(0.1, parameters=one.parameters()), 3)
    momentum, manager = optimizer.Momentum(0.1, parameters=other.parameters()), pg.GradManager()
    manager.attach(other.parameters())
    losses = []
    for _ in range(3):
        with manager:
            loss = LOSS(other(pg.tensor(X)), LABELS)
            manager.backward(loss)
        momentum.step()
        momentum.clear_grad()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, expected, 1e-10)
    same(one.state_dict(), other.state_dict())


def test_minimize_of_a_tensor_goes_back_and_steps():
    w, v = (pg.tensor([1.0], requires_grad=True) for _ in "wv")
    sgd = optimizer.SGD(0.5, parameters=[w, v])
    changed, pairs = sgd.minimize((w * w).sum())
    assert changed[0] is w
    assert [g.item() for _, g in pairs] == [2.0]
    assert w.item() == 0.0
    sgd.clear_grad()
    loss = (w + 3.0 * v).sum()
    loss.backward()
    # As Paddle's programs have it: what was gone back from is not gone back from again.
    sgd.minimize(loss)
    assert (w.item(), v.item()) == (-0.5, -0.5)


# Mistakes.


def test_mistakes_of_steps_are_told():
    w = pg.tensor([1.0], requires_grad=True)
    with pytest.raises(pg.BuildError, match=r"none of the parameters has a gradient(.|\n)*\.step"):
        optimizer.SGD(0.1, parameters=[w]).step()
    for call in ("step", "clear_grad", "zero_grad"):
        with pytest.raises(pg.BuildError, match="this SGD has no parameters"):
            getattr(optimizer.SGD(0.1), call)()
    with pytest.raises(pg.BuildError, match="this Adam has no parameters"):
        optimizer.Adam().minimize((w * w).sum())
    with pytest.raises(pg.ArgumentError, match="is said when the optimizer is made"):
        optimizer.SGD(0.1, parameters=[w]).minimize((w * w).sum(), [w])
    for parameters, words in [
        (w, "a list of tensors, not one"),
        ([], "at least one parameter"),
        ([w, 3.0], "element 1 is 3.0"),
        ([w * 2.0], "is computed"),
        (["w"], "element 0 is 'w'"),
        (Network(), "not Network"),
    ]:
        with pytest.raises(pg.ArgumentError, match=words):
            optimizer.SGD(0.1, parameters=parameters)
    with pytest.raises(pg.ArgumentError, match="a loss is a variable or a tensor, not float"):
        optimizer.SGD(0.1).minimize(1.0)


def test_a_layer_says_what_its_states_are_not():
    net = Network()
    with pytest.raises(pg.FeedError, match="no parameters or buffers named 'scal'"):
        net.load_state_dict({"scal": np.ones(3)})
    before = net.state_dict()
    with pytest.raises(pg.FeedError, match="nothing for 'body"):
        net.load_state_dict({"scale": np.ones(3)})
    with pytest.raises(pg.FeedError, match=r"f64\[3\]"):
        net.load_state_dict({"scores.bias": np.ones(3), "scale": np.ones(4)}, strict=False)
    same(net.state_dict(), before, 0, 0)
    wrong = nn.Layer()
    wrong.w = wrong.create_parameter((2,), initializer=lambda shape, dtype, rng: np.ones(3))
    with pytest.raises(pg.ArgumentError, match="does not fit"):
        wrong.state_dict()
    net.zero_grad()
    LOSS(net(pg.tensor(X)), pg.tensor(LABELS)).backward()
    assert all(p.grad is not None for p in net.parameters())
    optimizer.SGD(0.1, parameters=net.parameters()).zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
