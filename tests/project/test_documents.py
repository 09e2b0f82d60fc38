"""The programs of four guides, each of another system, run with another import: their numbers.

Paddle's guide to derivatives of any order, MegEngine's to its GradManager, OneFlow's to autograd,
and a study of `torch.autograd.grad`. Where a guide is mistaken, its program stands here as it has
to be, and a test of its own shows what comes of the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import pi
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_almost_equal, assert_array_equal

import primgraph as pg
import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.megengine.autodiff import GradManager
from primgraph.errors import PrimgraphError

RNG = np.random.default_rng(11)


def ten_numbers() -> np.ndarray[Any, Any]:
    return RNG.random(10).astype("float32")


# MegEngine: managers of derivatives.


def test_megengine_a_manager_within_another_gives_the_second_derivative() -> None:
    x_np = ten_numbers()
    x = mge.tensor(x_np)
    gm = GradManager().attach([x])
    gm2 = GradManager().attach([x])
    with gm:
        with gm2:
            y = F.cos(x)
            gm2.backward(y)
        x_grad = x.grad
        x.grad = None
        assert_almost_equal(x_grad.numpy(), -np.sin(x_np), decimal=5)
        gm.backward(x_grad)
    assert_almost_equal(x.grad.numpy(), -np.cos(x_np), decimal=5)


def test_megengine_without_clearing_both_derivatives_add_up() -> None:
    x_np = ten_numbers()
    x = mge.tensor(x_np)
    with GradManager().attach([x]) as gm:
        with GradManager().attach([x]) as gm2:
            gm2.backward(F.cos(x))
        gm.backward(x.grad)
    assert_almost_equal(x.grad.numpy(), -np.sin(x_np) - np.cos(x_np), decimal=5)


def test_megengine_in_the_wrong_order_the_first_derivative_is_a_constant() -> None:
    x_np = ten_numbers()
    x = mge.tensor(x_np)
    gm = GradManager().attach([x])
    gm2 = GradManager().attach([x])
    with gm2, gm:
        y = F.cos(x)
        gm2.backward(y)
        x_grad = x.grad
        x.grad = None
        assert_almost_equal(x_grad.numpy(), -np.sin(x_np), decimal=5)
        gm.backward(x_grad)
    assert x.grad is None


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (F.cos, lambda x: -np.sin(x)),
        (F.sin, np.cos),
        (lambda x: 2 * x + 1, lambda x: np.full_like(x, 2)),
    ],
    ids=["cos", "sin", "affine"],
)
def test_megengine_reverse_mode_twice_is_forward_mode(
    function: Callable[..., Any], slope: Callable[..., Any]
) -> None:
    def jvp(inp: Any, expr: Callable[..., Any]) -> tuple[Any, Any]:
        with GradManager() as gm:
            with GradManager().attach([inp]) as gm2:
                oup = expr(inp)
                oup_grad = F.ones_like(oup)
                gm.attach(oup_grad)
                gm2.backward(oup, oup_grad)
            gm.backward(inp.grad)
        return oup, oup_grad.grad

    def numerical_jvp(inp: Any, expr: Callable[..., Any]) -> tuple[Any, Any]:
        delta = 0.001
        return expr(inp), (expr(inp + delta) - expr(inp - delta)) / (2 * delta)

    x_np = ten_numbers()
    x = mge.tensor(x_np)
    y, dy = jvp(x, function)
    y1, dy1 = numerical_jvp(x, function)
    assert_almost_equal(y.numpy(), y1.numpy(), decimal=5)
    assert_almost_equal(dy.numpy(), dy1.numpy(), decimal=3)
    assert_allclose(dy.numpy(), slope(x_np), rtol=1e-6)


def test_megengine_equal_managers_add_both_first_derivatives() -> None:
    x_np = ten_numbers()
    x = mge.tensor(x_np)
    gm = GradManager().attach([x])
    gm2 = GradManager().attach([x])
    with gm | gm2:
        y = F.cos(x)
        gm.backward(y)
        gm2.backward(y)
    assert_almost_equal(x.grad.numpy(), -2 * np.sin(x_np), decimal=5)


def test_megengine_equal_managers_do_not_see_each_other() -> None:
    x_np = ten_numbers()
    x = mge.tensor(x_np)
    gm = GradManager().attach([x])
    gm2 = GradManager().attach([x])
    with gm | gm2:
        y = F.cos(x)
        gm2.backward(y)
        x_grad = x.grad
        x.grad = None
        assert_almost_equal(x_grad.numpy(), -np.sin(x_np), decimal=5)
        gm.backward(x_grad)
        assert x.grad is None


# What the guide to managers gets wrong, told where it is done.


def test_megengine_what_backward_gives_says_where_the_gradient_is() -> None:
    x = mge.tensor(ten_numbers())
    gm = GradManager().attach([x])
    with gm:
        x_grad = gm.backward(F.cos(x))
    assert not x_grad
    for use in (lambda: x_grad.numpy(), lambda: gm.backward(x_grad)):
        with gm, pytest.raises(PrimgraphError) as caught:
            use()
        assert "backward gives nothing: gradients are in .grad" in str(caught.value)


def test_megengine_a_second_backward_says_that_the_first_has_released() -> None:
    x = mge.tensor(ten_numbers())
    gm = GradManager().attach([x])
    with gm:
        y = F.cos(x)
        gm.backward(y)
        with pytest.raises(pg.BuildError, match="no computation history") as caught:
            gm.backward(y)
    assert "released by its first backward" in str(caught.value)


def test_megengine_backward_of_a_gradient_that_was_cleared_says_so() -> None:
    x = mge.tensor(ten_numbers())
    with GradManager().attach([x]) as gm:
        gm2 = GradManager().attach([x])
        with gm2:
            gm2.backward(F.cos(x))
        x.grad = None
        with pytest.raises(pg.ArgumentError, match="backward of None"):
            gm.backward(x.grad)


def test_megengine_seeds_are_ones_for_any_shape() -> None:
    x = mge.tensor(np.ones((2, 3), "float32"))
    with GradManager().attach(x) as gm:
        gm.backward(3 * x)
    assert_array_equal(x.grad.numpy(), np.full((2, 3), 3, "float32"))


# OneFlow: tensors, leaves and what is computed from them.


def a_loss(y_pred: Any, y: Any) -> Any:
    return flow.sum(1 / 2 * (y_pred - y) ** 2)


@pytest.fixture
def layer() -> dict[str, Any]:
    """The guide's layer of three outputs, its prediction and its loss."""
    x = flow.ones(1, 5)
    w = flow.randn(5, 3, requires_grad=True)
    b = flow.randn(1, 3, requires_grad=True)
    z = flow.matmul(x, w) + b
    return {"x": x, "w": w, "b": b, "z": z, "loss": a_loss(z, flow.zeros(1, 3))}


def test_oneflow_backward_puts_gradients_into_the_leaves(layer: dict[str, Any]) -> None:
    w, b, z = layer["w"], layer["b"], layer["z"]
    assert layer["x"].is_leaf
    assert w.is_leaf
    assert not z.is_leaf
    layer["loss"].backward()
    assert w.grad.dtype == flow.float32
    assert_array_equal(w.grad.detach().numpy(), np.repeat(z.detach().numpy(), 5, axis=0))
    assert_array_equal(b.grad.detach().numpy(), z.detach().numpy())
    assert repr(b.grad).startswith("tensor([[")
    assert repr(b.grad).endswith("]], dtype=oneflow.float32)")


def test_oneflow_a_misspelt_backward_is_recognised(layer: dict[str, Any]) -> None:
    with pytest.raises(AttributeError, match="backward"):
        layer["loss"].backwad()


def test_oneflow_the_gradient_of_an_intermediate_is_kept_if_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    n1 = flow.tensor(pi / 2, requires_grad=True)
    n2 = flow.sin(n1)
    n2.retain_grad()
    n3 = flow.pow(n2, 2)
    n3.backward()
    print(n1.grad)
    print(n2.grad)
    assert capsys.readouterr().out == (
        "tensor(-8.7423e-08, dtype=oneflow.float32)\ntensor(2., dtype=oneflow.float32)\n"
    )
    assert_allclose(n1.grad.numpy(), -8.742278e-08, rtol=1e-6)


def test_oneflow_a_second_backward_says_what_to_do() -> None:
    n1 = flow.tensor(10.0, requires_grad=True)
    n2 = flow.pow(n1, 2)
    n2.backward()
    with pytest.raises(pg.BuildError, match="a second time") as caught:
        n2.backward()
    assert "Specify retain_graph=True" in str(caught.value)


def test_oneflow_gradients_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    n1 = flow.tensor(10.0, requires_grad=True)
    n2 = flow.pow(n1, 2)
    n2.backward(retain_graph=True)
    print(n1.grad)
    n2.backward()
    print(n1.grad)
    assert capsys.readouterr().out == (
        "tensor(20., dtype=oneflow.float32)\ntensor(40., dtype=oneflow.float32)\n"
    )


def test_oneflow_gradients_are_cleared_in_place(capsys: pytest.CaptureFixture[str]) -> None:
    n1 = flow.tensor(10.0, requires_grad=True)
    n2 = flow.pow(n1, 2)
    n2.backward(retain_graph=True)
    print(n1.grad)
    n1.grad.zeros_()
    n2.backward()
    print(n1.grad)
    assert capsys.readouterr().out == "tensor(20., dtype=oneflow.float32)\n" * 2


def test_oneflow_nothing_is_recorded_within_no_grad(layer: dict[str, Any]) -> None:
    x, w, b = layer["x"], layer["w"], layer["b"]
    z = flow.matmul(x, w) + b
    assert z.requires_grad is True
    with flow.no_grad():
        z = flow.matmul(x, w) + b
    assert z.requires_grad is False


def test_oneflow_what_is_detached_has_no_history(layer: dict[str, Any]) -> None:
    z_det = layer["z"].detach()
    assert z_det.requires_grad is False
    assert_array_equal(z_det.detach().numpy(), layer["z"].detach().numpy())


def test_oneflow_backward_of_more_than_one_element_wants_a_seed() -> None:
    x = flow.randn(1, 2, requires_grad=True)
    y = 3 * x + 1
    with pytest.raises(pg.ShapeError, match="implicitly created only for scalar outputs"):
        y.backward()


def test_oneflow_backward_of_a_sum(capsys: pytest.CaptureFixture[str]) -> None:
    x = flow.randn(1, 2, requires_grad=True)
    y = 3 * x + 1
    y = y.sum()
    y.backward()
    print(x.grad)
    assert capsys.readouterr().out == "tensor([[3., 3.]], dtype=oneflow.float32)\n"


def test_oneflow_backward_with_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    x = flow.randn(1, 2, requires_grad=True)
    y = 3 * x + 1
    y.backward(flow.ones_like(y))
    print(x.grad)
    assert capsys.readouterr().out == "tensor([[3., 3.]], dtype=oneflow.float32)\n"


# torch: what autograd.grad does, and the Jacobian that the study makes of it.


def jacobian(y: torch.Tensor, x: torch.Tensor, need_higher_grad: bool = True) -> torch.Tensor:
    """The study's Jacobian, of shape `y.shape + x.shape`: one pass with all seeds."""
    (jac,) = torch.autograd.grad(
        outputs=(y.flatten(),),
        inputs=(x,),
        grad_outputs=(torch.eye(torch.numel(y)),),
        create_graph=need_higher_grad,
        allow_unused=True,
        is_grads_batched=True,
    )
    if jac is None:
        jac = torch.zeros(size=(y.shape + x.shape))
    else:
        jac.resize_(size=(y.shape + x.shape))
    return jac


def batched_jacobian(
    batched_y: torch.Tensor, batched_x: torch.Tensor, need_higher_grad: bool = True
) -> torch.Tensor:
    """The study's Jacobians of independent samples, right where those of y are vectors."""
    sumed_y = batched_y.sum(dim=0)
    jac = jacobian(sumed_y, batched_x, need_higher_grad)
    dims = list(range(jac.dim()))
    dims[0], dims[sumed_y.dim()] = dims[sumed_y.dim()], dims[0]
    return jac.permute(dims=dims)


def affine(x: torch.Tensor) -> torch.Tensor:
    weight = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.float)
    bias = torch.tensor([7, 8, 9], dtype=torch.float)
    return x @ weight + bias


ROWS = np.array([[1, 4], [2, 5], [3, 6]])


def test_torch_grad_is_that_of_the_sum_of_products_with_seeds() -> None:
    m1, m2, m3, n1, n2, n3 = 2, 3, 4, 3, 2, 1
    weights = [torch.rand(m, n) for m, n in ((m1, n1), (m2, n2), (m3, n3))]
    x1, x2, x3 = (torch.rand(size=(1, m)) for m in (m1, m2, m3))
    for x in (x1, x2, x3):
        x.requires_grad_()
    y1, y2, y3 = (torch.tanh(x @ w) for x, w in zip((x1, x2, x3), weights, strict=True))
    v1, v2, v3 = (torch.rand(size=(1, n)) for n in (n1, n2, n3))
    (g1, g2) = torch.autograd.grad(
        outputs=(y1, y2, y3),
        inputs=(x1, x2),
        grad_outputs=(v1, v2, v3),
        retain_graph=None,
        create_graph=False,
        only_inputs=True,
        allow_unused=False,
        is_grads_batched=False,
    )
    for g, x, y, v, w in zip((g1, g2), (x1, x2), (y1, y2), (v1, v2), weights[:2], strict=True):
        slope = v.detach().numpy() * (1 - y.detach().numpy() ** 2)
        assert g.shape == x.shape
        assert_allclose(g.detach().numpy(), slope @ w.detach().numpy().T, rtol=1e-5)
        assert x.grad is None


def test_torch_what_the_study_says_of_the_arguments() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    other = torch.tensor([3.0], requires_grad=True)
    with pytest.raises(PrimgraphError, match="does not require grad"):
        torch.autograd.grad(x.sum(), torch.rand(2))
    with pytest.raises(PrimgraphError) as caught:
        torch.autograd.grad(x.sum(), (x, other))
    assert "allow_unused=True" in str(caught.value)
    found = torch.autograd.grad(x.sum(), (x, other), allow_unused=True)
    assert_array_equal(found[0].numpy(), [1, 1])
    assert found[1] is None
    with pytest.raises(PrimgraphError, match="only for scalar outputs"):
        torch.autograd.grad(x * x, x)
    with pytest.raises(PrimgraphError, match="Mismatch in shape"):
        torch.autograd.grad(x * x, x, torch.ones(3))
    (first,) = torch.autograd.grad((x[0] * x[1], x[1]), x, (None, None))
    assert_array_equal(first.numpy(), [2, 2])


def test_torch_a_graph_is_dropped_unless_it_is_retained() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    torch.autograd.grad(y, x, retain_graph=True)
    (first,) = torch.autograd.grad(y, x)
    with pytest.raises(pg.BuildError, match="a second time"):
        torch.autograd.grad(y, x)
    with pytest.raises(PrimgraphError, match="does not require grad"):
        torch.autograd.grad(first.sum(), x)
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert_array_equal(second.numpy(), [6, 12])


def test_torch_a_wrong_number_of_seeds_is_told() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for seeds in ((torch.ones(2),), (torch.ones(2),) * 3):
        with pytest.raises(PrimgraphError, match=f"2 tensors and {len(seeds)} gradients"):
            torch.autograd.grad((2 * x, 3 * x), x, seeds)


def test_torch_the_jacobian_of_an_affine_function(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.tensor([0.1, 0.2])
    x.requires_grad_()
    y = affine(x)
    assert_allclose(y.detach().numpy(), [7.9, 9.2, 10.5], rtol=1e-6)
    print(jacobian(y, x, need_higher_grad=False))
    expected = "tensor([[1., 4.],\n        [2., 5.],\n        [3., 6.]])\n"
    assert capsys.readouterr().out == expected


def test_torch_the_jacobian_of_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.tensor(0.1)
    x.requires_grad_()
    y = 2 * x + 3
    print(jacobian(y, x, need_higher_grad=False))
    assert capsys.readouterr().out == "tensor(2.)\n"


def test_torch_the_jacobian_of_a_row_has_the_axes_of_both() -> None:
    x = torch.tensor([[0.1, 0.2]])
    x.requires_grad_()
    y = affine(x)
    jac = jacobian(y, x)
    assert jac.shape == (1, 3, 1, 2)
    assert_array_equal(jac.detach().numpy(), ROWS[None, :, None])
    jac.squeeze_()
    assert_array_equal(jac.detach().numpy(), ROWS)


def test_torch_the_jacobian_by_what_is_unused_is_zero() -> None:
    x = torch.rand(2, requires_grad=True)
    y = torch.rand(3, requires_grad=True) * 2
    assert_array_equal(jacobian(y, x).numpy(), np.zeros((3, 2)))


def test_torch_the_jacobians_of_ten_samples() -> None:
    batched_x = torch.rand((10, 2))
    batched_x.requires_grad_()
    batched_y = affine(batched_x)
    batched_jac = batched_jacobian(batched_y, batched_x)
    assert_array_equal(batched_jac.detach().numpy(), np.broadcast_to(ROWS, (10, 3, 2)))


def test_torch_the_jacobian_of_what_is_not_linear_can_be_differentiated() -> None:
    """In torch the resizing in place raises here, as the result requires a gradient."""
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    jac = jacobian(torch.sin(x), x)
    assert_allclose(jac.detach().numpy(), np.diag(np.cos([0.1, 0.2])), rtol=1e-6)
    second = jacobian(jac, x)
    assert second.shape == (2, 2, 2)
    expected = np.zeros((2, 2, 2))
    for i, value in enumerate((0.1, 0.2)):
        expected[i, i, i] = -np.sin(value)
    assert_allclose(second.detach().numpy(), expected, rtol=1e-6, atol=1e-8)


def test_torch_samples_of_matrices_need_their_axis_moved_to_the_front() -> None:
    """The study exchanges two axes, which is right for vectors only."""
    x = torch.rand((4, 2), requires_grad=True)
    c = torch.tensor([1.0, 2.0, 3.0])
    y = x.unsqueeze(2) * c
    jac = jacobian(y.sum(dim=0), x)
    moved = jac.movedim(2, 0)
    expected = np.einsum("pr,q->pqr", np.eye(2), [1.0, 2.0, 3.0])
    assert_array_equal(moved.detach().numpy(), np.broadcast_to(expected, (4, 2, 3, 2)))
    assert batched_jacobian(x.unsqueeze(2) * c, x).shape == (4, 3, 2, 2)


# Paddle: programs built first and run later.


@pytest.fixture
def static() -> Iterator[None]:
    """New default programs, with primitives on."""
    paddle.enable_static()
    paddle.incubate.autograd.enable_prim()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield
    paddle.incubate.autograd.disable_prim()
    paddle.disable_static()


class MyNet(paddle.nn.Layer):
    def __init__(self, bias: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = self.create_parameter(shape=(2, 2), dtype="float32", is_bias=False)
        self.bias = self.create_parameter(shape=bias, dtype="float32", is_bias=True)
        self.add_parameter("weight", self.weight)
        self.add_parameter("bias", self.bias)

    def forward(self, x: Any) -> Any:
        y = paddle.matmul(x, self.weight) + self.bias
        return paddle.tanh(y)


@pytest.mark.usefixtures("static")
def test_paddle_a_network_learns_from_its_second_derivative() -> None:
    x = paddle.static.data("x", shape=(2, 2), dtype="float32")
    y = MyNet((2, 2))(x)
    grad1 = paddle.incubate.autograd.grad(y, x)
    grad2 = paddle.incubate.autograd.grad(grad1, x)
    loss = paddle.norm(grad2, p=2)
    opt = paddle.optimizer.Adam(0.01)
    opt.minimize(loss)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    data = [RNG.random((2, 2)).astype(np.float32) for i in range(10)]
    losses = []
    for array in data:
        (loss_val,) = exe.run(feed={"x": array}, fetch_list=[loss])
        losses.append(loss_val)
    assert np.all(np.isfinite(losses))
    assert losses[0].dtype == np.float32


@pytest.mark.usefixtures("static")
def test_paddle_three_derivatives_of_tanh() -> None:
    x = paddle.static.data("x", shape=((1,)), dtype=paddle.float32)
    y = paddle.tanh(x)
    grad1 = paddle.incubate.autograd.grad(y, x)
    grad2 = paddle.incubate.autograd.grad(grad1, x)
    grad3 = paddle.incubate.autograd.grad(grad2, x)
    feed = {"x": np.ones((1,)).astype(np.float32)}
    exe = paddle.static.Executor()
    found = exe.run(feed=feed, fetch_list=[grad1, grad2, grad3])
    assert_allclose(np.concatenate(found), [0.41997433, -0.6397, 0.6216267], rtol=1e-6)


@pytest.mark.usefixtures("static")
def test_paddle_one_forward_pass_for_all_outputs() -> None:
    def func(x: Any) -> Any:
        return x + x, x * x, paddle.tanh(x)

    x = paddle.static.data("x", shape=((1,)), dtype=paddle.float32)
    y = func(x)
    out = paddle.incubate.autograd.forward_grad(y, x)
    exe = paddle.static.Executor()
    at = RNG.random(1).astype(np.float32)
    out = exe.run(feed={"x": at}, fetch_list=[out])
    for found, known in zip(out, (2, 2 * at, 1 - np.tanh(at) ** 2), strict=True):
        assert_allclose(found, np.broadcast_to(known, (1,)), rtol=1e-6)


@pytest.mark.usefixtures("static")
def test_paddle_parts_of_a_batched_jacobian() -> None:
    x = paddle.static.data("x", shape=((2, 8)), dtype=paddle.float32)
    y = paddle.static.data("y", shape=((2, 8)), dtype=paddle.float32)
    jac = paddle.incubate.autograd.Jacobian(paddle.multiply, (x, y), is_batched=True)
    parts = [jac[:, 0, :], jac[:, 0:3, :], jac[:]]
    feed = {n: RNG.standard_normal((2, 8)).astype(np.float32) for n in ("x", "y")}
    exe = paddle.static.Executor()
    row, rows, whole = exe.run(feed=feed, fetch_list=parts)
    eye = np.eye(8, dtype=np.float32)
    expected = np.concatenate([feed[n][:, :, None] * eye for n in ("y", "x")], axis=2)
    # Rows are outputs and columns inputs: (B, N, M).
    assert_array_equal(whole, expected)
    assert_array_equal(row, expected[:, 0, :])
    assert_array_equal(rows, expected[:, 0:3, :])


@pytest.mark.usefixtures("static")
def test_paddle_one_network_for_each_shape() -> None:
    data = [RNG.random((rows, 2)).astype(np.float32) for rows in (3, 4, 5)]
    for i, array in enumerate(data):
        x = paddle.static.data(f"x{i}", shape=array.shape, dtype="float32")
        y = MyNet((2,))(x)
        grad1 = paddle.incubate.autograd.grad(y, x)
        grad2 = paddle.incubate.autograd.grad(grad1, x)
        loss = paddle.norm(grad2, p=2)
        paddle.optimizer.Adam(0.01).minimize(loss)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    losses = []
    for _ in range(10):
        feed = {f"x{i}": array for i, array in enumerate(data)}
        (loss_val,) = exe.run(feed=feed, fetch_list=[loss])
        losses.append(float(loss_val))
    assert losses[-1] < losses[0]


SUPPORTED = {
    "reshape": lambda x: paddle.reshape(x, [3, 2]),
    "broadcast_to": lambda x: paddle.broadcast_to(x, [4, 2, 3]),
    "transpose": lambda x: paddle.transpose(x, [1, 0]),
    "split": lambda x: paddle.split(x, 3, axis=1)[1],
    "concat": lambda x: paddle.concat([x, x * x], axis=0),
    "slice": lambda x: paddle.slice(x, [1], [0], [2]),
    "strided_slice": lambda x: paddle.strided_slice(x, [1], [0], [3], [2]),
    "assign": paddle.assign,
    "gather": lambda x: paddle.gather(x, np.array([1, 1, 0])),
    "add": lambda x: paddle.add(x, x * x),
    "subtract": lambda x: paddle.subtract(x, x * x),
    "multiply": lambda x: paddle.multiply(x, x),
    "divide": lambda x: paddle.divide(x, x + 1.0),
    "sqrt": paddle.sqrt,
    "tanh": paddle.tanh,
    "matmul": lambda x: paddle.matmul(x, x, transpose_y=True),
    "sin": paddle.sin,
    "cos": paddle.cos,
    "exp": paddle.exp,
    "scale": lambda x: paddle.scale(x, 3.0, 1.0),
    "zeros_like": lambda x: x * paddle.zeros_like(x),
    "index_select": lambda x: paddle.index_select(x, np.array([2, 0, 2]), axis=1),
    "norm": lambda x: paddle.norm(x, p=2),
}


@pytest.mark.usefixtures("static")
@pytest.mark.parametrize("name", SUPPORTED)
def test_paddle_each_function_of_the_list_has_second_derivatives(name: str) -> None:
    """Some of the list have no lowering in Paddle, and derivatives through them fail there."""
    x = paddle.static.data("x", shape=(2, 3), dtype="float64")
    y = SUPPORTED[name](x)
    first = paddle.incubate.autograd.grad(y * y, x)
    second = paddle.incubate.autograd.forward_grad(first, x)
    at, step = RNG.random((2, 3)) + 0.5, 1e-6
    exe = paddle.static.Executor()

    def slopes(array: Any) -> Any:
        return exe.run(feed={"x": array}, fetch_list=[first])[0]

    (found,) = exe.run(feed={"x": at}, fetch_list=[second])
    assert_allclose(found, (slopes(at + step) - slopes(at - step)) / (2 * step), 1e-6, 1e-6)
