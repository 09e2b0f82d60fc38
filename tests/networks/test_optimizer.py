"""Optimizers against plain NumPy, and what minimize adds to a program."""

import inspect
import math
import re

import numpy as np
import pytest

import primgraph as pg
from primgraph import initializers, optimizer
from primgraph.base.array_functions import REMARKS

STEPS = 5
RATE = 0.05


def quadratic(dtype="float64"):
    """A program with `loss = sum((a * w - 1)**2) + sum(v**4)`; its parameters and `a`."""
    with pg.Program() as program:
        a = pg.data("a", (3,), dtype)
        start = initializers.Assign([0.5, -1.0, 2.0])
        w = pg.create_parameter((3,), dtype, "w", start)
        v = pg.create_parameter((), dtype, "v", initializers.Constant(1.5))
        loss = pg.sum((a * w - 1.0) ** 2) + v**4
    return program, a, w, v, loss


A = np.array([1.0, 2.0, -0.5])


def gradients(w, v, dtype):
    a = A.astype(dtype)
    return [(2 * a * (a * w - 1)).astype(dtype), np.asarray(4 * v**3, dtype)]


class Reference:
    """What the optimizers do, written for arrays."""

    def __init__(self, rule, dtype):
        self.rule, self.dtype = rule, dtype
        self.values = [np.array([0.5, -1.0, 2.0], dtype), np.array(1.5, dtype)]
        self.slots = [{}, {}]

    def step(self, count, rate=RATE, clip=None, decay=0.0):
        found = gradients(*self.values, self.dtype)
        if clip:
            found = clip(found)
        for i, g in enumerate(found):
            g = g + decay * self.values[i]
            change = self.rule(self.values[i], g, self.slots[i], count, rate)
            self.values[i] = (self.values[i] - change).astype(self.dtype)


def sgd(w, g, s, t, rate):
    return rate * g


def momentum(w, g, s, t, rate):
    s["v"] = 0.8 * s.get("v", 0.0) + g
    return rate * s["v"]


def nesterov(w, g, s, t, rate):
    s["v"] = 0.8 * s.get("v", 0.0) + g
    return rate * (g + 0.8 * s["v"])


def adam(w, g, s, t, rate):
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["v"] = 0.99 * s.get("v", 0.0) + 0.01 * g * g
    return rate * math.sqrt(1 - 0.99**t) / (1 - 0.9**t) * s["m"] / (np.sqrt(s["v"]) + 1e-8)


def adamw(w, g, s, t, rate):
    return adam(w, g, s, t, rate) + rate * 0.1 * w


def rmsprop(w, g, s, t, rate):
    s["v"] = 0.9 * s.get("v", 0.0) + 0.1 * g * g
    return rate * g / np.sqrt(s["v"] + 1e-6)


def rmsprop_with_momentum(w, g, s, t, rate):
    s["u"] = 0.7 * s.get("u", 0.0) + rmsprop(w, g, s, t, rate)
    return s["u"]


# All optimizers.
KINDS = [
    kind
    for name in optimizer.__all__
    if inspect.isclass(kind := getattr(optimizer, name))
    and issubclass(kind, optimizer.Optimizer)
    and kind is not optimizer.Optimizer
]

RULES = [
    (sgd, lambda **o: optimizer.SGD(RATE, **o)),
    (momentum, lambda **o: optimizer.Momentum(RATE, 0.8, **o)),
    (nesterov, lambda **o: optimizer.Momentum(RATE, 0.8, nesterov=True, **o)),
    (adam, lambda **o: optimizer.Adam(RATE, beta2=0.99, **o)),
    (adamw, lambda **o: optimizer.AdamW(RATE, weight_decay=0.1, beta2=0.99, **o)),
    (rmsprop, lambda **o: optimizer.RMSProp(RATE, rho=0.9, **o)),
    (rmsprop_with_momentum, lambda **o: optimizer.RMSProp(RATE, rho=0.9, momentum=0.7, **o)),
]


def follow(made, reference, dtype="float64", **options):
    """Steps of the program and of the reference, compared after each."""
    program, _, w, v, loss = quadratic(dtype)
    made.minimize(loss)
    run = pg.Executor().run
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for count in range(1, STEPS + 1):
        found = run(program, {"a": A.astype(dtype)}, [w, v])
        settings = {k: o(count) if k == "rate" else o for k, o in options.items()}
        reference.step(count, **settings)
        for array, expected in zip(found, reference.values, strict=True):
            assert array.dtype == np.dtype(dtype)
            np.testing.assert_allclose(array, expected, rtol=tolerance)
    assert len(program.kernels) == 1
    return program


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("rule", "make"), RULES, ids=[rule.__name__ for rule, _ in RULES])
def test_steps_are_those_of_the_formula(rule, make, dtype):
    program = follow(make(), Reference(rule, dtype), dtype)
    kinds = {n: a.dtype for n, a in program.state_dict().items()}
    scalars = {n for n in kinds if n.endswith((".step", ".learning_rate"))}
    assert all(kinds[n] == (np.float64 if n in scalars else np.dtype(dtype)) for n in kinds)


def test_the_bias_correction_is_exact_in_float32_too():
    found = {}
    for dtype in ("float32", "float64"):
        with pg.Program() as program:
            w = pg.create_parameter((), dtype, "w", is_bias=True)
            optimizer.Adam(1.0, beta2=0.999999).minimize(w * 3.0)
        found[dtype] = pg.Executor().run(program, {}, [w])[0]
    assert math.isclose(found["float32"], found["float64"], rel_tol=1e-6)


def by_value(found):
    return [np.clip(g, -0.5, 1.0) for g in found]


def by_norm(found):
    return [g * min(1.0, 2.0 / np.linalg.norm(g)) for g in found]


def by_global_norm(found):
    size = math.sqrt(sum(float(np.sum(g * g)) for g in found))
    return [g * min(1.0, 2.0 / size) for g in found]


CLIPS = [
    (optimizer.clip_by_value(-0.5, 1.0), by_value),
    (optimizer.clip_by_norm(2.0), by_norm),
    (optimizer.clip_by_global_norm(2.0), by_global_norm),
]


@pytest.mark.parametrize(("clip", "reference"), CLIPS, ids=[r.__name__ for _, r in CLIPS])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_are_clipped_before_the_decay(clip, reference, dtype):
    made = optimizer.Momentum(RATE, 0.8, grad_clip=clip, weight_decay=0.3)
    follow(made, Reference(momentum, dtype), dtype, clip=reference, decay=0.3)


def test_clipping_leaves_small_and_zero_gradients_alone():
    for clip in (optimizer.clip_by_norm(1.0), optimizer.clip_by_global_norm(1.0)):
        with pg.Program() as program:
            w = pg.create_parameter((2,), name="w", is_bias=True)
            g = pg.data("g", (2,))
            optimizer.SGD(1.0, grad_clip=clip).minimize(pg.sum(w * g))
        run = pg.Executor().run
        assert run(program, {"g": [0.0, 0.0]}, [w])[0].tolist() == [0, 0]
        assert run(program, {"g": [0.5, 0.0]}, [w])[0].tolist() == [-0.5, 0]
        np.testing.assert_allclose(run(program, {"g": [3.0, 4.0]}, [w])[0], [-1.1, -0.8])


def cosine(t):
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(t / 3, 1)))


SCHEDULES = [
    (optimizer.exponential_decay(0.5), lambda t: 0.5**t),
    (optimizer.step_decay(2, 0.3), lambda t: 0.3 ** (t // 2)),
    (optimizer.polynomial_decay(3, 0.1, 2.0), lambda t: 0.1 + 0.9 * (1 - min(t / 3, 1)) ** 2),
    (optimizer.cosine_decay(3, 0.1), cosine),
    (optimizer.warmup(3), lambda t: min((t + 1) / 3, 1)),
    (
        optimizer.warmup(2, optimizer.exponential_decay(0.5)),
        lambda t: (t + 1) / 2 if t < 2 else 0.5 ** (t - 2),
    ),
]


@pytest.mark.parametrize(("schedule", "factor"), SCHEDULES)
def test_schedules_scale_the_rate_from_step_zero_on(schedule, factor):
    made = optimizer.SGD(RATE, schedule=schedule)
    follow(made, Reference(sgd, "float64"), rate=lambda count: RATE * factor(count - 1))


def test_the_learning_rate_can_be_set_between_runs():
    made = optimizer.SGD(0.1)
    with pytest.raises(pg.BuildError, match="call minimize first"):
        made.set_learning_rate(0.5)
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", is_bias=True)
        made.minimize(3.0 * w)
    run, scope = pg.Executor().run, pg.Scope()
    run_elsewhere = pg.Executor(scope).run
    assert math.isclose(run(program, {}, [w])[0], -0.3)
    made.set_learning_rate(1)
    assert math.isclose(run(program, {}, [w])[0], -3.3)
    made.set_learning_rate(np.float32(2.0), scope)
    assert run_elsewhere(program, {}, [w])[0] == -6.0
    assert math.isclose(run(program, {}, [w])[0], -6.3)
    assert len(program.kernels) == 1
    for wrong in (True, "0.1", None, [0.1]):
        with pytest.raises(pg.ArgumentError, match="learning rate is a number"):
            made.set_learning_rate(wrong)
        with pytest.raises(pg.ArgumentError, match="learning rate is a number"):
            optimizer.SGD(wrong)


def test_one_optimizer_can_lower_several_losses():
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", is_bias=True)
        v = pg.create_parameter((), name="v", is_bias=True)
        made = optimizer.SGD(0.1)
        made.minimize(2.0 * w)
        made.minimize(3.0 * v)
    run = pg.Executor().run
    np.testing.assert_allclose(run(program, {}, [w, v]), [-0.2, -0.3])
    made.set_learning_rate(1.0)
    np.testing.assert_allclose(run(program, {}, [w, v]), [-2.2, -3.3])
    assert {n.partition(".")[0] for n in program.state_dict()} == {"w", "v", "sgd", "sgd_1"}


@pytest.mark.parametrize("how", ["optimizer", "update", "clone", "loaded"])
def test_a_second_optimizer_of_the_same_parameters_is_refused(how, tmp_path):
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", initializer=initializers.Constant(1.0))
        v = pg.create_parameter((), name="v", initializer=initializers.Constant(1.0))
        loss = w * w + v
        loss.name = "loss"
        if how == "update":
            program.update(w, w * 0.5)
        else:
            optimizer.SGD(0.1).minimize(loss)  # the first
    if how == "clone":
        program = program.clone()
    if how == "loaded":
        pg.save(program, tmp_path / "program.pgz")
        program = pg.load(tmp_path / "program.pgz")
    before = dict(program.updates), set(program.state_dict())
    with pytest.raises(pg.BuildError, match="'w' is updated in every run already") as caught:
        optimizer.Adam(0.01).minimize(program.variable("loss"))  # the second
    assert "# the second" in str(caught.value)
    assert ("# the first" in str(caught.value)) == (how in ("optimizer", "clone"))
    assert ("program.update(w" in str(caught.value)) == (how == "update")
    assert (program.updates, set(program.state_dict())) == before
    # Parameters of its own may have another one.
    if how == "update":
        optimizer.SGD(0.1).minimize(loss, parameters=[v])
        assert pg.Executor().run(program, {}, [w, v]) == [0.5, 0.9]


def test_minimize_again_takes_the_place_of_the_former_call():
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", initializer=initializers.Constant(1.0))
        v = pg.create_parameter((), name="v", initializer=initializers.Constant(2.0))
        made = optimizer.Adam(0.1)
        for _ in range(3):
            made.minimize(w * w)
    with pg.Program() as once:
        other = pg.create_parameter((), name="w", initializer=initializers.Constant(1.0))
        optimizer.Adam(0.1).minimize(other * other)
    run = pg.Executor().run
    for _ in range(3):
        assert run(program, {}, [w]) == run(once, {}, [other])
    assert [n for n in program.state_dict() if n != "v"] == list(once.state_dict())
    # Another loss, which has one more parameter: the moments of the first go on.
    step = program.state_dict()
    made.minimize(w**3 + v)
    run(program, {}, [])
    after = program.state_dict()
    assert after["adam.step"] == 4
    np.testing.assert_allclose(
        after["adam.w.moment1"], 0.9 * step["adam.w.moment1"] + 0.1 * 3 * step["w"] ** 2
    )
    assert after["v"] < 2.0
    # A loss of fewer: what is not asked for any more is not changed any more.
    made.minimize(v * 1.0)
    run(program, {}, [])
    assert program.state_dict()["w"] == after["w"]
    assert program.state_dict()["v"] < after["v"]
    made.set_learning_rate(0.0)
    before = run(program, {}, [v])
    assert run(program, {}, [v]) == before


def test_a_call_of_minimize_that_fails_changes_nothing():
    def broken(step):
        if broken.on:
            raise RuntimeError("no schedule")
        return 1.0 + 0.0 * step

    broken.on = False
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", initializer=initializers.Constant(1.0))
        made = optimizer.SGD(0.5, schedule=broken)
        made.minimize(w * w)
    broken.on = True
    with pytest.raises(Exception, match="no schedule"):
        made.minimize(w**3)
    assert pg.Executor().run(program, {}, [w]) == [0.0]
    made.set_learning_rate(0.0)
    assert pg.Executor().run(program, {}, [w]) == [0.0]


def test_what_is_changed_can_be_chosen():
    def build(**options):
        program, _, w, v, loss = quadratic()
        with program:
            unused = pg.create_parameter((2,), name="unused")
        chosen = {
            k: [{"w": w, "v": v, "unused": unused}[n] for n in names]
            for k, names in options.items()
        }
        changed, pairs = optimizer.SGD(RATE).minimize(loss, **chosen)
        before = program.state_dict()
        fetched = pg.Executor().run(program, {"a": A}, [*changed, *(g for _, g in pairs)])
        after = program.state_dict()
        names = {n for n in ("w", "v", "unused") if not (before[n] == after[n]).all()}
        assert [p.name for p, _ in pairs] == [n for n in ("w", "v") if n in names]
        for (p, _), new, g in zip(pairs, fetched[: len(pairs)], fetched[len(pairs) :], strict=True):
            np.testing.assert_array_equal(new, after[p.name])
            np.testing.assert_allclose(before[p.name] - RATE * g, new, rtol=1e-15)
        return names

    assert build() == {"w", "v"}
    assert build(parameters=["w"]) == {"w"}
    assert build(parameters=["w", "unused", "w"]) == {"w"}
    assert build(no_grad_set=["v"]) == {"w"}
    assert build(parameters=["w", "v"], no_grad_set=["w"]) == {"v"}


def test_an_untrainable_state_is_changed_only_when_it_is_named():
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", is_bias=True)
        s = program.state("s", pg.spec(()), initializers.Constant(1.0))
        loss = w * 2.0 + s * 3.0
    first, second = program.clone(), program.clone()
    optimizer.SGD(1.0).minimize(_ends(first))
    optimizer.SGD(1.0).minimize(_ends(second), parameters=[second.variable("s")])
    assert [p.name for p in first.parameters()] == ["w"]
    run = pg.Executor(pg.Scope()).run
    assert [float(x) for x in run(first, {}, ["w", "s"])] == [-2, 1]
    run = pg.Executor(pg.Scope()).run
    assert [float(x) for x in run(second, {}, ["w", "s"])] == [0, -2]
    assert loss.shape == ()


def _ends(program):
    return program.variables()[-1]


def test_other_variables_in_no_grad_set_are_constants():
    with pg.Program() as program:
        w = pg.create_parameter((), name="w", initializer=initializers.Constant(3.0))
        square = w * w
        optimizer.SGD(0.1).minimize(square * w, no_grad_set=[square])
    pg.Executor().run(program)
    np.testing.assert_allclose(program.scope.get("w"), 3.0 - 0.1 * 9.0)


def test_parameters_that_are_all_held_constant_are_refused():
    with pg.Program() as program:
        w = pg.create_parameter((3,), name="w")
        w.stop_gradient = True
        with pytest.raises(pg.BuildError, match="held constant") as caught:
            optimizer.SGD(0.1).minimize(pg.sum(w * w))
    assert "test_optimizer.py" in str(caught.value)
    assert not program.updates


def test_errors_name_the_line_of_minimize():
    with pg.Program():
        w = pg.create_parameter((3,), name="w")
        with pytest.raises(pg.ShapeError, match=r"test_optimizer\.py:\d+ .*\.minimize\(w \* w\)"):
            optimizer.SGD(0.1).minimize(w * w)


def test_wrong_losses_and_parameters_are_refused():
    program, a, w, v, loss = quadratic()
    _, _, foreign, _, _ = quadratic()
    made = optimizer.SGD(0.1)
    with program:
        unused = pg.create_parameter((2,), name="unused")
    with pytest.raises(pg.ShapeError, match=r"one element, not f64\[3\]"):
        made.minimize(a * w)
    with pytest.raises(pg.ArgumentError, match="a loss is a variable"):
        made.minimize("loss")
    for wrong in (a, foreign, loss):
        with pytest.raises(pg.BuildError, match="not a parameter of the program"):
            made.minimize(loss, [wrong])
    with pytest.raises(pg.ArgumentError, match="parameters are variables, not 'w'"):
        made.minimize(loss, ["w"])
    with pytest.raises(pg.BuildError, match="two different programs"):
        made.minimize(loss, no_grad_set=[foreign])
    with pytest.raises(pg.ArgumentError, match="no_grad_set has variables"):
        made.minimize(loss, no_grad_set=["w"])
    for nothing in ({"parameters": []}, {"no_grad_set": [w, v, unused]}):
        with pytest.raises(pg.BuildError, match="no parameter to change"):
            made.minimize(loss, **nothing)
    with pytest.raises(pg.BuildError, match="cannot be lowered by these parameters"):
        made.minimize(loss, [unused])
    with pytest.raises(pg.BuildError, match="traced function"):
        pg.trace(lambda x: made.minimize(pg.sum(x))[0], pg.spec((2,)))
    assert not program.updates
    assert set(program.state_dict()) == {"w", "v", "unused"}


def test_lengths_and_limits_are_positive():
    for make in (
        optimizer.clip_by_norm,
        optimizer.clip_by_global_norm,
        optimizer.step_decay,
        optimizer.polynomial_decay,
        optimizer.cosine_decay,
        optimizer.warmup,
    ):
        for wrong in (0, -1):
            with pytest.raises(pg.ArgumentError, match="is positive"):
                make(wrong)


def test_a_loss_of_one_element_may_have_axes():
    with pg.Program() as program:
        w = pg.create_parameter((1,), name="w", initializer=initializers.Constant(1.0))
        optimizer.SGD(0.25).minimize(w * w)
    assert pg.Executor().run(program, {}, [w])[0].tolist() == [0.5]


# Cases with known numbers.


def test_steps_on_a_square():
    for made, expected in [
        (optimizer.SGD(0.1), [0.8, 0.64, 0.512]),
        (optimizer.Adam(0.1), [0.9000000158, 0.8004122551, 0.7015863086]),
    ]:
        with pg.Program() as program:
            w = pg.create_parameter((), name="w", initializer=initializers.Constant(1.0))
            made.minimize(w * w)
        run = pg.Executor().run
        np.testing.assert_allclose(
            [run(program, {}, [w])[0] for _ in range(3)], expected, rtol=0, atol=1e-8
        )


W = np.array([[0.5, -0.25], [0.75, 1.0]])
B = np.array([0.1, -0.2])
DW = np.array([[1.55413005675832, 0.54773305739798], [2.1197722021959, 0.764729923469569]])
DB = np.array([1.13423035335628, 1.46111521286979])


@pytest.mark.parametrize("made", [optimizer.SGD(0.01), optimizer.Adam(0.01)])
def test_a_step_on_a_loss_of_second_derivatives(made):
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        w = pg.create_parameter((2, 2), name="w", initializer=initializers.Assign(W))
        b = pg.create_parameter((2,), name="b", initializer=initializers.Assign(B))
        y = pg.tanh(x @ w + b)
        g1 = pg.grad(y, x)
        g2 = pg.grad(g1, x)
        loss = pg.norm(g2)
        _, pairs = made.minimize(loss)
    feed = {"x": np.array([[0.1, 0.2], [0.3, 0.4]])}
    fetches = [loss, w, b, *(g for _, g in pairs)]
    value, new_w, new_b, dw, db = pg.Executor().run(program, feed, fetches)
    np.testing.assert_allclose(value, 1.13881719627277, rtol=1e-10)
    np.testing.assert_allclose(dw, DW, rtol=1e-10)
    np.testing.assert_allclose(db, DB, rtol=1e-10)
    if isinstance(made, optimizer.SGD):
        np.testing.assert_allclose(new_w, W - 0.01 * DW, rtol=1e-12)
        np.testing.assert_allclose(new_b, B - 0.01 * DB, rtol=1e-12)
    else:
        np.testing.assert_allclose(new_w, W - 0.01 * np.sign(DW), rtol=0, atol=1e-6)
        np.testing.assert_allclose(new_b, B - 0.01 * np.sign(DB), rtol=0, atol=1e-6)
    # The step is one kernel: loss, gradients and updates are its outputs.
    assert len(program.kernels) == 1


@pytest.mark.parametrize("order", [1, 3, 4])
def test_losses_may_contain_derivatives_of_any_order(order):
    def loss_of(w):
        with pg.Program() as program:
            x = pg.data("x", (4,))
            p = pg.create_parameter((), name="p", initializer=initializers.Constant(w))
            y = pg.sin(p * x)
            for _ in range(order):
                y = pg.grad(y, x)
            loss = pg.mean(y * y)
            _, ((_, gradient),) = optimizer.SGD(0.1).minimize(loss)
        feed = {"x": np.linspace(0.1, 1.0, 4)}
        return pg.Executor().run(program, feed, [loss, gradient])

    (above, _), (below, _), (_, gradient) = loss_of(1.3 + 1e-6), loss_of(1.3 - 1e-6), loss_of(1.3)
    np.testing.assert_allclose(gradient, (above - below) / 2e-6, rtol=1e-7)


@pytest.mark.long
def test_three_networks_of_different_shapes_train_in_one_program():
    rng = np.random.default_rng(0)
    shapes = [(3, 2), (4, 2), (5, 2)]
    losses, feed = [], {}
    with pg.Program() as program:
        for i, shape in enumerate(shapes):
            x = pg.data(f"x{i}", shape)
            w = pg.create_parameter((2, 20))
            b = pg.create_parameter((20,), is_bias=True)
            y = pg.tanh(x @ w + b)
            losses.append(pg.norm(pg.grad(pg.grad(y, x), x)))
            optimizer.Adam(0.001).minimize(losses[-1])
            feed[f"x{i}"] = rng.random(shape)
    run = pg.Executor().run
    history = np.array([run(program, feed, losses) for _ in range(10)])
    assert (np.diff(history, axis=0) < 0).all()
    assert len(program.kernels) == 1
    names = [p.name for p in program.parameters()]
    assert len(names) == 6
    # Each optimizer changes its own network only, and keeps two moments for each parameter.
    assert sum(n.startswith("adam_2.") for n in program.state_dict()) == 2 + 4


ZERO, BELOW_ONE = "finite number from 0 on", "from 0 on and below 1"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        *[
            (lambda v, kind=kind, name=name: kind(**{"learning_rate": 0.1, name: v}), words)
            for kind in KINDS
            for name, words in (
                ("learning_rate", ZERO), ("weight_decay", ZERO), ("epsilon", ZERO),
                ("momentum", BELOW_ONE), ("beta1", BELOW_ONE), ("beta2", BELOW_ONE),
                ("rho", BELOW_ONE),
            )
            if name in {*inspect.signature(kind).parameters, "weight_decay"}
        ],
        (optimizer.clip_by_norm, "positive"),
        (optimizer.clip_by_global_norm, "positive"),
        (lambda v: optimizer.clip_by_value(1.0, v), "low <= high"),
        (optimizer.exponential_decay, ZERO),
        (lambda v: optimizer.step_decay(3, v), ZERO),
        (lambda v: optimizer.polynomial_decay(3, v), ZERO),
        (lambda v: optimizer.polynomial_decay(3, 0.0, v), "positive"),
        (lambda v: optimizer.cosine_decay(3, v), ZERO),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_numbers_that_no_optimizer_can_work_with_are_refused(make, words, value):
    with pytest.raises(pg.ArgumentError, match=words):
        make(value)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_learning_rate_is_not_changed_to_one_that_is_refused(value):
    *_, loss = quadratic()
    chosen = optimizer.SGD(0.0)
    chosen.minimize(loss)
    with pytest.raises(pg.ArgumentError, match=ZERO):
        chosen.set_learning_rate(value)


def test_every_optimizer_has_a_rule_and_stands_in_the_remarks():
    ruled = {type(make(parameters=[pg.tensor(1.0, requires_grad=True)])) for _, make in RULES}
    missing = sorted(kind.__name__ for kind in {*KINDS} - ruled)
    assert not missing, f"add rows for {missing} to RULES"
    named = re.findall(r"[A-Z]\w+", REMARKS["optim"])
    assert {*named} == {kind.__name__ for kind in KINDS}, (
        "list all optimizers in _OPTIMIZERS of primgraph/base/array_functions.py"
    )
