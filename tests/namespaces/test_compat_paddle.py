"""Paddle's names, one by one, with programs that are built first and with tensors."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.paddle as paddle
from primgraph.ir.primitive import innermost

autograd = paddle.incubate.autograd


@pytest.fixture(autouse=True)
def fresh_defaults():
    """New default programs for each test, and the switch of primitives as it is at first."""
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield
    autograd.disable_prim()
    paddle.disable_static()
    paddle.set_default_dtype("float32")


def run(fetches, **feed):
    return paddle.static.Executor().run(feed=feed, fetch_list=fetches)


# The calls of Paddle's guide to derivatives of any order.


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
        guard = paddle.static.program_guard(main, startup)
        with guard, paddle.utils.unique_name.guard():
            x = paddle.static.data("x", shape=(2, 2), dtype="float64")
            grad1, grad2, loss = curvature_loss(Network("float64"), x)
            _, pairs = kind(0.01).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(startup)
        start = {"network_0.w_0": [[0.5, -0.25], [0.75, 1]], "network_0.b_0": [0.1, -0.2]}
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
        assert_allclose(weight, start["network_0.w_0"] - 0.01 * change, atol=1e-6)


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
    assert main.state_dict()[f"{w.name}_beta1_pow_acc_0"] == np.float32(0.9)
    assert np.all(main.state_dict()[w.name] != 2)
    executor.run(first)
    assert_array_equal(main.state_dict()[w.name], [2, 2, 2])
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


# Dynamic mode.


@pytest.fixture
def no_program():
    """Outside of programs; the fixture for all tests has entered one."""
    token = innermost.set(None)
    yield
    innermost.reset(token)


@pytest.mark.usefixtures("no_program")
def test_modes_decide_what_is_made_from_nothing():
    assert paddle.in_dynamic_mode()
    makers = [
        lambda: paddle.ones([2]),
        lambda: paddle.zeros([2]),
        lambda: paddle.full([2], 3.0),
        lambda: paddle.rand([2]),
        lambda: paddle.randn([2]),
        lambda: paddle.uniform([2]),
        lambda: paddle.arange(2),
        lambda: paddle.arange(0.0, 1.0, 0.5),
        lambda: paddle.linspace(0, 1, 2),
        lambda: paddle.eye(2),
    ]
    made = [make() for make in makers]
    assert {type(x) for x in made} == {paddle.Tensor}
    kinds = {str(x.dtype) for x in made}
    assert kinds == {"paddle.float32", "paddle.int64"}
    paddle.enable_static()
    assert not paddle.in_dynamic_mode()
    built = [make() for make in makers]
    assert all(isinstance(x, paddle.static.Variable) for x in built)
    assert [x.type for x in built] == [x.type for x in made]
    paddle.disable_static()
    assert isinstance(paddle.tanh(paddle.static.data("x", ())), paddle.static.Variable)
    with paddle.static.program_guard(paddle.static.Program()):
        assert isinstance(paddle.ones([2]), paddle.static.Variable)


@pytest.mark.usefixtures("no_program")
def test_tensors_are_made_of_arrays_and_numbers():
    assert paddle.to_tensor([1.0, 2.0]).dtype == np.float32
    assert paddle.to_tensor([1, 2]).dtype == np.int64
    assert paddle.to_tensor(np.ones(2)).dtype == np.float64
    assert paddle.to_tensor([1, 2], dtype="float64").dtype == np.float64
    x = paddle.to_tensor([1.0, 2.0])
    assert x.stop_gradient
    assert isinstance(paddle.tanh(x) * 2 + x, paddle.Tensor)
    assert x.place == paddle.CPUPlace()
    assert not paddle.to_tensor([1, 2], stop_gradient=False).stop_gradient


@pytest.mark.usefixtures("no_program")
def test_backward_fills_gradients_with_ones_as_seed():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = paddle.multiply(x, x)
    y.backward(retain_graph=True)
    assert_array_equal(x.grad.numpy(), [2, 4])
    assert isinstance(x.grad, paddle.Tensor)
    y.backward(paddle.to_tensor([1.0, 10.0]))
    assert_array_equal(x.gradient(), [4, 44])
    with pytest.raises(pg.BuildError, match="a second time"):
        y.backward()
    x.clear_grad()
    assert_array_equal(x.grad.numpy(), [0, 0])
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None
    assert x.gradient() is None
    paddle.autograd.backward([2 * x, x], [None, paddle.to_tensor([3.0, 5.0])])
    assert_array_equal(x.grad.numpy(), [5, 7])


@pytest.mark.usefixtures("no_program")
def test_stop_gradient_holds_tensors_constant():
    x = paddle.to_tensor([1.0, 2.0])
    assert (x * x).stop_gradient
    x.stop_gradient = False
    y = x * x
    assert not y.stop_gradient
    y.stop_gradient = True
    (y * x).sum().backward()
    assert_array_equal(x.grad.numpy(), [1, 4])
    with paddle.no_grad():
        assert (x * x).stop_gradient
        x.set_value(np.array([3.0, 4.0], np.float32))
    assert not x.stop_gradient
    assert_array_equal(x.numpy(), [3, 4])
    with pytest.raises(TypeError, match="True or False"):
        x.stop_gradient = 1


@pytest.mark.usefixtures("no_program")
def test_grad_of_tensors_has_the_arguments_of_paddles():
    x, z = (paddle.to_tensor([1.0, 2.0], stop_gradient=False) for _ in range(2))
    y = x * x * x
    (first,) = paddle.grad(y, x, create_graph=True)
    (second,) = paddle.grad([first], [x])
    assert_array_equal(first.numpy(), [3, 12])
    assert_array_equal(second.numpy(), [6, 12])
    assert paddle.grad(x * 2, [x, z], allow_unused=True)[1] is None
    (weighed,) = paddle.grad(x * 2, x, paddle.to_tensor([1.0, 10.0]))
    assert_array_equal(weighed.numpy(), [2, 20])
    with pytest.raises(paddle.GradientError, match="not have been used"):
        paddle.grad(x * 2, [x, z])
    y = x * x
    (held,) = paddle.grad(x * y, x, no_grad_vars=[y])
    assert_array_equal(held.numpy(), [1, 4])


@pytest.mark.usefixtures("no_program")
def test_functions_that_look_at_shapes_let_derivatives_through():
    x = paddle.to_tensor(np.ones((2, 3)), stop_gradient=False)
    calls = [
        lambda: paddle.matmul(x, x, transpose_y=True),
        lambda: paddle.norm(x, p=1),
        lambda: paddle.reshape(x, [0, -1]),
        lambda: paddle.split(x, [1, -1], axis=1)[1],
    ]
    for call in calls:
        (found,) = paddle.grad(call(), x)
        assert found.shape == (2, 3)
        assert np.any(found.numpy() != 0)


@pytest.mark.usefixtures("no_program")
@pytest.mark.parametrize("kind", [paddle.optimizer.SGD, paddle.optimizer.Adam])
def test_a_network_learns_step_by_step(kind):
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 1))
    optimizer = kind(0.1, parameters=net.parameters())
    x = paddle.rand([32, 2])
    y = paddle.sum(x * x, axis=1, keepdim=True)
    losses = []
    for i in range(40):
        loss = paddle.nn.functional.mse_loss(net(x), y)
        loss.backward()
        if i % 2:
            optimizer.step()
        else:
            _, pairs = optimizer.minimize(loss)
            assert [g.shape for _, g in pairs] == [(2, 8), (8,), (8, 1), (1,)]
        optimizer.clear_grad()
        losses.append(loss.item())
    assert isinstance(loss, paddle.Tensor)
    assert losses[-1] < losses[0] / 4


@pytest.mark.usefixtures("no_program")
def test_a_seed_repeats_the_random_numbers_of_tensors():
    found = []
    for _ in range(2):
        paddle.seed(7)
        found.append(np.concatenate([paddle.rand([3]).numpy(), paddle.randn([3]).numpy()]))
    assert_array_equal(found[0], found[1])
    assert np.any(paddle.rand([3]).numpy() != found[0][:3])


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
    stored = paddle.static.default_main_program().state_dict()
    values = [stored[p.name] for p in net.state_dict().values()]
    assert_array_equal(values[0], np.full((2, 3), 0.5))
    assert_allclose(found, np.tanh(np.ones((5, 3))) @ values[2], rtol=1e-6)
    assert paddle.nn.Layer().create_parameter((2,), attr="own").name == "own"
    with pytest.raises(TypeError, match="an attribute is"):
        paddle.create_parameter((2,), None, attr=3)
    assert paddle.create_parameter((2,), None, attr="mine").name == "mine"


def test_seeds_decide_first_values_and_random_numbers():
    found = []
    for number in (1, 1, 2):
        main = paddle.static.Program()
        guard = paddle.static.program_guard(main, paddle.static.Program())
        with guard, paddle.utils.unique_name.guard():
            paddle.seed(number)
            normal = paddle.nn.initializer.Normal()
            w = paddle.create_parameter((2, 2), "float32", default_initializer=normal)
            noise = paddle.uniform((2, 2), min=2.0, max=3.0)
            found.append(np.stack(run([w, noise])))
    assert_array_equal(found[0], found[1])
    assert np.all(found[0] != found[2])
    assert np.all((found[0][1] >= 2) & (found[0][1] < 3))


def test_derivatives_of_functions_take_tensors_in_a_new_process() -> None:
    code = """
import primgraph.compat.paddle as paddle
x = paddle.to_tensor([1.0, 2.0])
autograd = paddle.incubate.autograd
print(autograd.Jacobian(lambda x: x * x, x)[:].tolist())
print(autograd.Hessian(lambda x: paddle.sum(x**3), x)[:].tolist())
print([r.tolist() for r in autograd.vjp(lambda x: x * x, x)])
print([r.tolist() for r in autograd.jvp(lambda x: x * x, x)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[[2.0, 0.0], [0.0, 4.0]]",
        "[[6.0, 0.0], [0.0, 12.0]]",
        "[[1.0, 4.0], [2.0, 4.0]]",
        "[[1.0, 4.0], [2.0, 4.0]]",
    ]


@pytest.mark.usefixtures("no_program")
def test_set_value_copies_elements_and_no_history():
    x, z = paddle.ones([2]), paddle.to_tensor([3.0, 4.0], stop_gradient=False)
    x.set_value(z)
    z.detach().zero_()
    assert x.tolist() == [3.0, 4.0]
    assert x.stop_gradient
    array = np.ones(2, np.float32)
    x.set_value(array)
    array[0] = 9.0
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError, match="takes no value of shape"):
        x.set_value(np.ones(3, np.float32))


@pytest.mark.usefixtures("no_program")
def test_a_held_gradient_is_zero_after_clear_grad_and_stays_so():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    (x * x).backward()
    before = x.grad
    x.clear_grad()
    held = x.grad
    (x * 3).backward()
    assert (before.item(), held.item(), x.grad.item()) == (0.0, 0.0, 3.0)


def test_nested_structures_are_mapped_in_the_order_of_keys():
    nest = {"b": 1, "a": [2, (3,)]}
    assert paddle.utils.flatten(nest) == [2, 3, 1]
    assert paddle.utils.map_structure(lambda a, b: a * b, nest, nest) == {"b": 1, "a": [4, (9,)]}
    assert list(paddle.utils.pack_sequence_as(nest, [5, 6, 7])) == ["b", "a"]
    with pytest.raises(ValueError, match="3 items"):
        paddle.utils.pack_sequence_as(nest, [1])
    with pytest.raises(ImportError, match="pip install no_such_module"):
        paddle.utils.try_import("no_such_module")


def test_powers_of_a_vector_keep_its_dtype():
    assert paddle.vander(paddle.ones([3])).dtype == paddle.float32
