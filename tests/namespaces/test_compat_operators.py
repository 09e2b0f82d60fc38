"""Paddle's names of operators, derivatives and their arguments, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.paddle as paddle

autograd = paddle.incubate.autograd

X = np.random.default_rng(3).uniform(0.5, 2.0, (2, 3, 4)).astype(np.float32)
Y = np.random.default_rng(4).uniform(0.5, 2.0, (2, 3, 4)).astype(np.float32)
INDEX = np.array([2, 0, 2])


OPERATORS = {
    "reshape": (lambda p, x, y: p.reshape(x, shape=[0, -1]), lambda x, y: x.reshape(2, 12)),
    "broadcast_to": (
        lambda p, x, y: p.broadcast_to(x, shape=[5, 2, 3, 4]),
        lambda x, y: np.broadcast_to(x, (5, 2, 3, 4)),
    ),
    "transpose": (
        lambda p, x, y: p.transpose(x, perm=[2, 0, 1]),
        lambda x, y: x.transpose(2, 0, 1),
    ),
    "split": (lambda p, x, y: p.split(x, 3, axis=1)[1], lambda x, y: x[:, 1:2]),
    "split by sections": (
        lambda p, x, y: p.split(x, num_or_sections=[1, -1, 1], axis=-1)[1],
        lambda x, y: x[..., 1:3],
    ),
    "concat": (
        lambda p, x, y: p.concat(x=[x, y], axis=1),
        lambda x, y: np.concatenate([x, y], 1),
    ),
    "slice": (
        lambda p, x, y: p.slice(x, axes=[0, 2], starts=[1, -3], ends=[2, 9]),
        lambda x, y: x[1:2, :, -3:],
    ),
    "strided_slice": (
        lambda p, x, y: p.strided_slice(x, axes=[2], starts=[3], ends=[0], strides=[-2]),
        lambda x, y: x[:, :, 3:0:-2],
    ),
    "assign": (lambda p, x, y: p.assign(x), lambda x, y: x),
    "gather": (lambda p, x, y: p.gather(x, INDEX % 2), lambda x, y: x[INDEX % 2]),
    "gather along an axis": (
        lambda p, x, y: p.gather(x, index=INDEX, axis=1),
        lambda x, y: x[:, INDEX],
    ),
    "add": (lambda p, x, y: p.add(x, y), np.add),
    "subtract": (lambda p, x, y: p.subtract(x, y), np.subtract),
    "multiply": (lambda p, x, y: p.multiply(x, y), np.multiply),
    "divide": (lambda p, x, y: p.divide(x, y, name="ratio"), np.divide),
    "sqrt": (lambda p, x, y: p.sqrt(x), lambda x, y: np.sqrt(x)),
    "tanh": (lambda p, x, y: p.tanh(x=x), lambda x, y: np.tanh(x)),
    "matmul": (
        lambda p, x, y: p.matmul(x, y, transpose_y=True),
        lambda x, y: x @ y.swapaxes(1, 2),
    ),
    "matmul transposed": (
        lambda p, x, y: p.matmul(x, y, transpose_x=True),
        lambda x, y: x.swapaxes(1, 2) @ y,
    ),
    "sin": (lambda p, x, y: p.sin(x), lambda x, y: np.sin(x)),
    "cos": (lambda p, x, y: p.cos(x), lambda x, y: np.cos(x)),
    "exp": (lambda p, x, y: p.exp(x), lambda x, y: np.exp(x)),
    "scale": (lambda p, x, y: p.scale(x, scale=2.0, bias=1.0), lambda x, y: 2 * x + 1),
    "scale the bias too": (
        lambda p, x, y: p.scale(x, 2.0, 1.0, bias_after_scale=False),
        lambda x, y: 2 * (x + 1),
    ),
    "zeros_like": (lambda p, x, y: p.zeros_like(x), lambda x, y: np.zeros_like(x)),
    "index_select": (
        lambda p, x, y: p.index_select(x, index=INDEX, axis=2),
        lambda x, y: x[:, :, INDEX],
    ),
    "norm": (lambda p, x, y: p.norm(x, p=2), lambda x, y: np.sqrt((x * x).sum())),
    "norm of rows": (
        lambda p, x, y: p.norm(x, p=1, axis=-1, keepdim=True),
        lambda x, y: x.sum(-1, keepdims=True),
    ),
    "frobenius": (lambda p, x, y: p.norm(x), lambda x, y: np.sqrt((x * x).sum())),
    "pow": (lambda p, x, y: p.pow(x, y), np.power),
    "maximum": (lambda p, x, y: p.maximum(x, y), np.maximum),
    "minimum": (lambda p, x, y: p.minimum(x, y), np.minimum),
    "sum": (
        lambda p, x, y: p.sum(x, axis=[0, 2], keepdim=True),
        lambda x, y: x.sum((0, 2), keepdims=True),
    ),
    "sum in float64": (lambda p, x, y: p.sum(x, 1, "float64"), lambda x, y: x.sum(1, "float64")),
    "mean": (lambda p, x, y: p.mean(x, axis=1, keepdim=True), lambda x, y: x.mean(1)[:, None]),
    "max": (lambda p, x, y: p.max(x, axis=1), lambda x, y: x.max(1)),
    "min": (lambda p, x, y: p.min(x), lambda x, y: x.min()),
    "add_n": (lambda p, x, y: p.add_n([x, y, x]), lambda x, y: x + y + x),
    "add_n of one": (lambda p, x, y: p.add_n(x), lambda x, y: x),
    "stack": (lambda p, x, y: p.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1)),
    "where": (
        lambda p, x, y: p.where(p.greater_than(x, y), x, y),
        np.maximum,
    ),
    "cast": (lambda p, x, y: p.cast(x, "float64"), lambda x, y: x.astype("float64")),
    "full": (lambda p, x, y: p.full([2, 2], 1.5), lambda x, y: np.full((2, 2), 1.5, "f")),
    "full_like": (lambda p, x, y: p.full_like(x, 2), lambda x, y: np.full_like(x, 2)),
    "ones": (lambda p, x, y: p.ones([2, 3]), lambda x, y: np.ones((2, 3), "f")),
    "ones_like": (lambda p, x, y: p.ones_like(x, "int32"), lambda x, y: np.ones_like(x, "int32")),
    "zeros": (lambda p, x, y: p.zeros([2], "float64"), lambda x, y: np.zeros(2)),
    "relu": (
        lambda p, x, y: p.nn.functional.relu(x - y),
        lambda x, y: np.maximum(x - y, 0),
    ),
    "mse_loss": (
        lambda p, x, y: p.nn.functional.mse_loss(input=x, label=y),
        lambda x, y: ((x - y) ** 2).mean(),
    ),
}


@pytest.fixture(autouse=True)
def fresh_defaults():
    """New default programs for each test."""
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield
    autograd.disable_prim()


def run(fetches, **feed):
    return paddle.static.Executor().run(feed=feed, fetch_list=fetches)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_the_arguments_of_paddle(name):
    built, expected = OPERATORS[name]
    x, y = (paddle.static.data(n, X.shape, "float32") for n in "xy")
    result = built(paddle, x, y)
    wanted = np.asarray(expected(X, Y))
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    (found,) = run([result], x=X, y=Y)
    assert_allclose(found, wanted, rtol=2e-6)


def test_sections_have_to_add_up():
    x = paddle.static.data("x", (2, 6))
    for wrong in ([2, 3], [7, -1], [-1, -1, 2], [4, 4]):
        with pytest.raises(pg.ShapeError, match="no parts"):
            paddle.split(x, wrong, axis=1)


def test_elementwise_functions_are_named():
    assert paddle.tanh.__name__ == "tanh"
    assert all(getattr(paddle, n).__doc__ for n in paddle.functions.__all__)


# Derivatives.


def test_three_derivatives_of_tanh_in_float32():
    x = paddle.static.data("x", shape=(1,), dtype=paddle.float32)
    derivatives = [paddle.tanh(x)]
    for _ in range(3):
        derivatives.append(autograd.grad(derivatives[-1], x))
    found = run(derivatives[1:], x=np.ones(1, np.float32))
    assert [a.dtype for a in found] == [np.float32] * 3
    assert_allclose(np.ravel(found), [0.41997433, -0.6397, 0.6216267], rtol=1e-6)


def test_forward_mode_gives_all_outputs_in_order():
    autograd.enable_prim()
    x = paddle.static.data("x", shape=(1,), dtype=paddle.float32)
    out = autograd.forward_grad((x + x, x * x, paddle.tanh(x)), x)
    value = np.array([0.5], np.float32)
    found = run([out], x=value)
    assert_allclose(np.concatenate(found), [2, 1, 1 - np.tanh(0.5) ** 2], rtol=1e-6)


def test_the_switch_of_primitives():
    x = paddle.static.data("x", (3,))
    y = x * x
    assert not autograd.prim_enabled()
    with pytest.raises(RuntimeError, match="enable_prim") as caught:
        autograd.forward_grad(y, x)
    assert isinstance(caught.value, pg.PrimgraphError)
    by_grad, (by_gradients,) = autograd.grad(y, x), paddle.static.gradients(y, x)
    autograd.enable_prim()
    assert autograd.prim_enabled()
    by_forward = autograd.forward_grad(y, x)
    found = run([by_grad, by_gradients, by_forward], x=np.arange(3, dtype=np.float32))
    for array in found:
        assert_array_equal(array, [0, 2, 4])


def test_wrong_arguments_of_derivatives_are_type_errors():
    autograd.enable_prim()
    x = paddle.static.data("x", (3,))
    y = paddle.tanh(x)
    for function in (autograd.grad, autograd.forward_grad):
        for outputs, inputs in ((1, x), (y, 1), ([y, 1], x), (y, "x")):
            with pytest.raises(TypeError):
                function(outputs, inputs)


def test_an_output_that_does_not_depend_on_the_inputs():
    autograd.enable_prim()
    x, z = (paddle.static.data(n, (3,)) for n in "xz")
    y = paddle.tanh(x)
    for function in (autograd.grad, paddle.grad, paddle.static.gradients):
        with pytest.raises(RuntimeError, match="does not depend on the inputs") as caught:
            function(y, z)
        assert isinstance(caught.value, pg.NotDifferentiable)
    assert autograd.forward_grad([y, z], z)[0] is None
    assert paddle.static.gradients(y, [x, z])[1] is None
    assert paddle.static.gradients(y * z, [x, z], no_grad_set={"z"})[1] is None


def test_jacobian_hessian_and_products():
    x, y = (paddle.static.data(n, shape=(2, 8), dtype=paddle.float32) for n in "xy")
    jacobian = autograd.Jacobian(paddle.multiply, (x, y), is_batched=True)
    assert tuple(jacobian.shape) == (2, 8, 16)
    rng = np.random.default_rng(2)
    feed = {n: rng.standard_normal((2, 8)).astype(np.float32) for n in "xy"}
    row, rows, whole = run([jacobian[:, 0, :], jacobian[:, 0:3, :], jacobian[:]], **feed)
    eye = np.eye(8)
    parts = [feed[n][:, :, None] * eye for n in "yx"]
    expected = np.concatenate(parts, axis=2)
    assert_array_equal(row, expected[:, 0])
    assert_array_equal(rows, expected[:, :3])
    assert_array_equal(whole, expected)

    a = paddle.static.data("a", (2, 2))
    hessian = autograd.Hessian(lambda v: paddle.sum(paddle.matmul(v, v)), a)
    square, change = autograd.jvp(lambda v: paddle.matmul(v, v), a)
    _, back = autograd.vjp(lambda v: paddle.matmul(v, v), a, np.array([[1, 0], [0, 0]]))
    one = np.ones((2, 2), np.float32)
    found = run([hessian[:], square, change, back], a=one)
    expected = [[2, 1, 1, 0], [1, 0, 2, 1], [1, 2, 0, 1], [0, 1, 1, 2]]
    for array, wanted in zip(found, (expected, 2 * one, 4 * one, [[2, 1], [1, 0]]), strict=True):
        assert_array_equal(array, wanted)


def test_conversions_give_graphs_and_leave_the_program_alone():
    main = paddle.static.default_main_program()
    x = paddle.static.data("x", (2, 3))
    paddle.mean(paddle.nn.functional.softmax(x))
    text = str(main)
    assert " softmax(" not in str(autograd.orig2prim())
    names = {eqn.op.name for eqn in autograd.prim2orig().body}
    assert names == {"softmax", "mean"}
    assert " softmax(" not in str(autograd.prim2orig(main, blacklist={"softmax"}))
    assert "softmax" in str(autograd.to_prim(main, blacklist={"softmax"}, whitelist={"softmax"}))
    only = {eqn.op.name for eqn in autograd.to_prim(main, whitelist={"mean"}).body}
    assert {"softmax", "reduce_sum"} < only
    assert "mean" not in only
    for wrong in (["mean"], "mean"):
        with pytest.raises(TypeError, match="set"):
            autograd.to_prim(main, blacklist=wrong)
    with pytest.raises(TypeError, match="only programs"):
        autograd.to_prim("main")
    assert str(main) == text
