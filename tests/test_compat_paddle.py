"""Paddle's names: the samples of its guide as printed, and the calls that they make one by one."""

import contextlib
import io
import os
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.paddle as paddle

autograd = paddle.incubate.autograd


@pytest.fixture(autouse=True)
def fresh_defaults():
    """New default programs for each test, and the switch of primitives as it is at first."""
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield
    autograd.disable_prim()
    paddle.set_default_dtype("float32")


def run(fetches, **feed):
    return paddle.static.Executor().run(feed=feed, fetch_list=fetches)


# The guide, where a folder of documents lies beside the checkout.

DOCUMENTS = Path(
    os.environ.get("PRIMGRAPH_DOCUMENTS") or Path(__file__).parents[2] / "shared" / "seeds"
)
LABEL = ".. _cn_overview_paddle_incubate_autograd:"
BLOCK = re.compile(r"^\.\.  code-block:: python\n\n((?:[ ]{8}.*\n|\s*\n)+)", re.MULTILINE)
# How many blocks of the guide, in order, make up each of its programs.
PROGRAMS = {"network": 5, "reverse": 1, "forward": 1, "jacobian": 1, "shapes": 1}


def samples():
    """The programs of the guide, by name, with the import of this package as only change."""
    found = [p for p in sorted(DOCUMENTS.glob("*.txt")) if LABEL in p.read_text(encoding="utf-8")]
    assert len(found) == 1, f"{len(found)} documents in {DOCUMENTS} have the label {LABEL}"
    blocks = BLOCK.findall(found[0].read_text(encoding="utf-8") + "\n")
    assert len(blocks) == sum(PROGRAMS.values())
    texts, rest = {}, iter(blocks)
    for name, count in PROGRAMS.items():
        text = "\n".join(textwrap.dedent(next(rest)) for _ in range(count))
        lines = text.split("\n")
        assert lines.count("import paddle") == 1
        lines[lines.index("import paddle")] = "import primgraph.compat.paddle as paddle"
        texts[name] = "\n".join(lines)
    return texts


def run_sample(name):
    """What the sample of that name leaves behind, and the lines that it prints."""
    if not DOCUMENTS.is_dir():
        pytest.skip("there is no folder of documents beside the checkout")
    namespace, printed = {"__name__": "__main__"}, io.StringIO()
    text = samples()[name]
    with contextlib.redirect_stdout(printed):
        exec(compile(text, f"<{name}>", "exec"), namespace)
    return text, namespace, printed.getvalue().splitlines()


def losses_in(lines, word):
    """The numbers that a training loop prints, one for each of ten rounds."""
    matches = [re.fullmatch(rf"{word}:  (\d+)  loss:  (\S+)", line) for line in lines]
    assert [int(m[1]) for m in matches] == list(range(1, 11))
    return [float(m[2]) for m in matches]


def test_the_network_of_the_guide_trains_as_printed():
    _, namespace, lines = run_sample("network")
    assert np.all(np.isfinite(losses_in(lines, "iter")))
    assert namespace["loss_val"].dtype == np.float32
    values = paddle.static.default_main_program().state_dict()
    assert np.any(values["mynet.bias"] != 0)


def test_reverse_mode_of_the_guide_prints_the_numbers_in_its_comment():
    text, _, lines = run_sample("reverse")
    comment = text.rstrip().splitlines()[-1]
    assert comment == "# [0.41997433] [-0.6397] [0.6216267]"
    assert_allclose(numbers_in(lines[0]), numbers_in(comment), rtol=1e-6)


def numbers_in(line):
    """The numbers that stand in square brackets."""
    return [float(number) for number in re.findall(r"\[(\S+)\]", line)]


def test_forward_mode_of_the_guide_gives_all_derivatives():
    _, namespace, lines = run_sample("forward")
    first, second, third = namespace["out"]
    assert_array_equal(first, [2])
    assert_allclose(third, 1 - np.tanh(second / 2) ** 2, rtol=1e-6)
    assert len(lines) == 1


def test_the_jacobian_of_the_guide_is_right():
    _, namespace, _ = run_sample("jacobian")
    x, y, eye = namespace["feed"]["x"], namespace["feed"]["y"], np.eye(8)
    expected = np.concatenate([y[:, :, None] * eye, x[:, :, None] * eye], axis=2)
    for name, part in (("row", np.s_[:, 0, :]), ("col", np.s_[:, 0:3, :]), ("all", np.s_[:])):
        assert_array_equal(namespace[name], expected[part])


def test_the_networks_for_three_shapes_of_the_guide_train():
    _, _, lines = run_sample("shapes")
    losses = losses_in(lines, "epoch")
    assert losses[-1] < losses[0]


# The same calls without it.


class Network(paddle.nn.Layer):
    def __init__(self, dtype="float32"):
        super().__init__()
        self.weight = self.create_parameter(shape=(2, 2), dtype=dtype, is_bias=False)
        self.bias = self.create_parameter(shape=(2,), dtype=dtype, is_bias=True)
        self.add_parameter("weight", self.weight)
        self.add_parameter("bias", self.bias)

    def forward(self, x):
        return paddle.tanh(paddle.matmul(x, self.weight) + self.bias)


def curvature_loss(network, x):
    grad1 = autograd.grad(network(x), x)
    grad2 = autograd.grad(grad1, x)
    return grad1, grad2, paddle.norm(grad2, p=2)


def test_a_loss_with_second_derivatives_and_one_step_of_each_optimizer():
    for kind in (paddle.optimizer.SGD, paddle.optimizer.Adam):
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", shape=(2, 2), dtype="float64")
            grad1, grad2, loss = curvature_loss(Network("float64"), x)
            _, pairs = kind(0.01).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(startup)
        start = {"network.weight": [[0.5, -0.25], [0.75, 1]], "network.bias": [0.1, -0.2]}
        main.set_state_dict(start)
        found = executor.run(main, {"x": [[0.1, 0.2], [0.3, 0.4]]}, [grad1, grad2, loss, *pairs])
        exact = 1e-10
        assert_allclose(found[0][0], [0.207724665832198, 1.68572798169444], exact)
        assert_allclose(found[1][1], [-0.423000790368992, -0.887013159773917], exact)
        assert_allclose(found[2], 1.13881719627277, exact)
        weight, slope = found[3:5]
        expected = [[1.55413005675832, 0.54773305739798], [2.1197722021959, 0.764729923469569]]
        assert_allclose(slope, expected, exact)
        assert_allclose(found[6], [1.13423035335628, 1.46111521286979], exact)
        change = slope if kind is paddle.optimizer.SGD else np.sign(slope)
        assert_allclose(weight, start["network.weight"] - 0.01 * change, atol=1e-6)


@pytest.mark.long
def test_three_networks_with_an_optimizer_each_train_in_one_program():
    shapes = [(3, 2), (4, 2), (5, 2)]
    rng = np.random.default_rng(0)
    feed = {f"x{i}": rng.random(s).astype(np.float32) for i, s in enumerate(shapes)}
    losses = []
    for name, array in feed.items():
        x = paddle.static.data(name, shape=array.shape, dtype="float32")
        losses.append(curvature_loss(Network(), x)[2])
        paddle.optimizer.Adam(0.01).minimize(losses[-1])
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    history = np.array([executor.run(feed=feed, fetch_list=losses) for _ in range(10)])
    assert np.all(history[-1] < history[0])
    assert len(paddle.static.default_main_program().parameters()) == 6
    executor.close()


def minimized(optimizer):
    """The norm of a layer, minimised: what `minimize` gives, and feeds."""
    rng = np.random.default_rng(1)
    arrays = {n: rng.random(s) for n, s in (("x", (2, 20)), ("w", (20, 2)), ("b", (2,)))}
    assign = paddle.nn.initializer.Assign
    x = paddle.static.data("x", (2, 20), "float64")
    w = paddle.static.create_parameter((20, 2), "float64", default_initializer=assign(arrays["w"]))
    attr = paddle.ParamAttr(name="b", initializer=assign(arrays["b"]))
    b = paddle.create_parameter((2,), "float64", attr=attr, is_bias=True)
    loss = paddle.norm(paddle.tanh(paddle.matmul(x, w) + b), p=2)
    return optimizer.minimize(loss), loss, arrays


@pytest.mark.parametrize("kind", [paddle.optimizer.SGD, paddle.optimizer.Adam])
def test_gradients_of_minimize_are_the_same_with_and_without_primitives(kind):
    found = []
    for switch in (autograd.enable_prim, autograd.disable_prim):
        switch()
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            (_, pairs), _, feed = minimized(kind(0.01))
            autograd.prim2orig(main)
        executor = paddle.static.Executor()
        executor.run(startup)
        with pytest.warns(UserWarning, match="no inputs 'w', 'b'"):
            found.append(executor.run(main, feed=feed, fetch_list=pairs))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)
    value = np.tanh(feed["x"] @ feed["w"] + feed["b"])
    inner = value / np.linalg.norm(value) * (1 - value**2)
    assert_allclose(found[0][1], feed["x"].T @ inner, rtol=1e-7)
    assert_allclose(found[0][3], inner.sum(0), rtol=1e-7)


def test_what_may_be_fetched():
    result, loss, feed = minimized(paddle.optimizer.SGD(0.1))
    x = {"x": feed["x"]}
    executor = paddle.static.Executor()
    options = {"return_numpy": False, "use_program_cache": True, "use_prune": True}
    (first,) = executor.run(feed=x, fetch_list=[loss, result], **options)
    (second,) = executor.run(feed=x, fetch_list=loss)
    assert second < first
    value, again = executor.run(feed=x, fetch_list=["b", [loss]])
    assert value.shape == (2,)
    assert again < second
    for wrong in ({"loss": loss}, {loss}):
        with pytest.raises(TypeError, match="fetch_list is a list"):
            executor.run(feed=x, fetch_list=wrong)
    for wrong in (("b",), (), 3, None):
        with pytest.raises(TypeError):
            executor.run(feed=x, fetch_list=[wrong])
    with pytest.raises(TypeError, match="CPUPlace"):
        paddle.static.Executor("gpu:0")


def test_bad_feeds_are_value_errors():
    y = paddle.static.data("x", (2, 3)) + 1
    assert y.dtype == paddle.float32
    executor = paddle.static.Executor()
    good = np.zeros((2, 3), np.float32)
    for wrong in (good[0], good[:, :2], good.astype(np.float64), None):
        with pytest.raises(ValueError, match="'x'"):
            executor.run(feed={"x": wrong}, fetch_list=[y])
    with pytest.raises(ValueError, match="missing 'x'"):
        executor.run(fetch_list=[y])
    with pytest.raises(TypeError):
        executor.run(feed=[good], fetch_list=[y])


def test_scopes_and_clones():
    _, loss, feed = minimized(paddle.optimizer.SGD(0.1))
    main = paddle.static.default_main_program()
    test_program = main.clone(for_test=True)
    loss.name = "loss"
    executor, scope = paddle.static.Executor(), paddle.static.Scope()
    x = {"x": feed["x"]}
    executor.run(paddle.static.default_startup_program(), scope=scope)
    assert_array_equal(scope.get("b"), feed["b"])
    executor.run(main, x, scope=scope)
    assert np.all(scope.get("b") != feed["b"])
    assert_array_equal(main.state_dict()["b"], feed["b"])
    before = executor.run(main.clone(for_test=True), x, ["loss"])
    assert_array_equal(before, executor.run(main, x, ["loss"]))
    assert len(test_program.updates) == 0


def test_a_clone_is_fetched_from_by_the_variables_of_its_program():
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [2, 3], "float32")
        y = paddle.nn.Linear(3, 2)(x)
        loss = paddle.mean(y * y)
        test_program = main.clone(for_test=True)
        paddle.optimizer.SGD(0.1).minimize(loss)
    executor, feed = paddle.static.Executor(), {"x": np.ones((2, 3), "float32")}
    executor.run(startup)
    first = executor.run(test_program, feed, [loss, y])
    assert_array_equal(executor.run(main, feed, [loss, y])[1], first[1])
    assert executor.run(test_program, feed, [loss])[0] < first[0]
    with pytest.raises(pg.FeedError, match="another program"):
        executor.run(paddle.static.Program(), {}, [loss])


def test_a_startup_program_resets_only_what_was_made_under_it():
    main, first, second = (paddle.static.Program() for _ in range(3))
    with paddle.static.program_guard(main, first):
        w = paddle.create_parameter((3,), "float32", attr=paddle.nn.initializer.Constant(2.0))
        loss = paddle.sum(w * w)
    paddle.optimizer.Adam(0.5).minimize(loss, startup_program=second)
    executor = paddle.static.Executor()
    (begun,) = executor.run(main, fetch_list=[loss])
    (stepped,) = executor.run(main, fetch_list=[loss])
    executor.run(second)
    assert main.state_dict()["adam.step"] == 0
    assert np.all(main.state_dict()["weight"] != 2)
    executor.run(first)
    assert_array_equal(main.state_dict()["weight"], [2, 2, 2])
    assert stepped < begun
    assert executor.run(main, fetch_list=[loss]) == [begun]


def test_minimize_and_append_backward_leave_out_what_they_are_told_to():
    x = paddle.static.data("x", (3,))
    a, b = (paddle.create_parameter((3,), None, n) for n in "ab")
    loss = paddle.sum(paddle.tanh(a * x) * paddle.exp(b))
    adam = paddle.optimizer.Adam(0.1, parameters=[a], weight_decay=0.1)
    adam.minimize(loss, parameters=["b"])
    with pytest.raises(pg.BuildError, match="'b' is updated in every run already"):
        paddle.optimizer.SGD(0.1).minimize(loss, no_grad_set={"a"})
    for pairs, kept in (
        (adam.minimize(loss)[1], [a]),
        (adam.minimize(loss, parameters=["b"])[1], [b]),
        (adam.minimize(loss, parameters=["a", "b"], no_grad_set={"b"})[1], [a]),
        (paddle.static.append_backward(loss), [a, b]),
        (paddle.static.append_backward(loss, no_grad_set={b}), [a]),
        (paddle.static.append_backward(loss, parameter_list=["b"]), [b]),
    ):
        assert [p.name for p, _ in pairs] == [p.name for p in kept]
        assert all(g.type == p.type for p, g in pairs)
    with pytest.raises(TypeError, match="no variable named 'c'"):
        paddle.static.append_backward(loss, parameter_list=["c"])
    with pytest.raises(ValueError, match="one element"):
        paddle.optimizer.SGD(0.1).minimize(a)


# Defaults, layers, parameters.


def test_the_default_dtype_is_float32_here_and_stays_what_it_is_elsewhere():
    before = pg.get_default_dtype()
    assert paddle.get_default_dtype() == "float32"
    assert paddle.static.data("a", (2,)).dtype == np.float32
    paddle.set_default_dtype("float64")
    assert paddle.static.data("b", (2,)).dtype == np.float64
    assert paddle.create_parameter((2,), None).dtype == np.float64
    assert paddle.ones((2,)).dtype == np.float64
    assert pg.get_default_dtype() is before
    with pytest.raises(TypeError, match="float dtype"):
        paddle.set_default_dtype("int32")


def test_modes_change_nothing():
    paddle.disable_static()
    assert not paddle.in_dynamic_mode()
    paddle.enable_static()
    assert isinstance(paddle.tanh(paddle.static.data("x", ())), paddle.static.Variable)


def test_layers_nest_and_take_attributes():
    initializer = paddle.nn.initializer
    net = paddle.nn.Sequential(
        paddle.nn.Linear(2, 3, weight_attr=initializer.Constant(0.5)),
        paddle.nn.Tanh(),
        paddle.nn.Linear(3, 1, weight_attr=initializer.XavierNormal(), bias_attr=False),
    )
    y = net(paddle.static.data("x", (5, 2)))
    assert [p.shape for p in net.parameters()] == [(2, 3), (3,), (3, 1)]
    assert all(p.dtype == np.float32 for p in net.parameters())
    (found,) = run([y], x=np.ones((5, 2), np.float32))
    values = list(net.state_dict().values())
    assert_array_equal(values[0], np.full((2, 3), 0.5))
    assert_allclose(found, np.tanh(np.ones((5, 3))) @ values[2], rtol=1e-6)
    with pytest.raises(TypeError, match="named by its attribute"):
        paddle.nn.Layer().create_parameter((2,), attr="w")
    with pytest.raises(TypeError, match="an attribute is"):
        paddle.create_parameter((2,), None, attr=3)
    assert paddle.create_parameter((2,), None, attr="mine").name == "mine"


def test_seeds_decide_first_values_and_random_numbers():
    found = []
    for number in (1, 1, 2):
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            paddle.seed(number)
            normal = paddle.nn.initializer.Normal()
            w = paddle.create_parameter((2, 2), "float32", default_initializer=normal)
            noise = paddle.uniform((2, 2), min=2.0, max=3.0)
            found.append(np.stack(run([w, noise])))
    assert_array_equal(found[0], found[1])
    assert np.all(found[0] != found[2])
    assert np.all((found[0][1] >= 2) & (found[0][1] < 3))
