"""Derivatives of tensors that are known: from closed forms and from the tests of other systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg

RNG = np.random.default_rng(5)
grad = pg.autograd.grad


def leaf(data: Any, dtype: str = "float64") -> pg.Tensor:
    return pg.tensor(data, dtype=dtype, requires_grad=True)


def seeded(y: pg.Tensor, x: Any, seed: Any = None) -> tuple[pg.Tensor, ...]:
    """Gradients with ones as seed, to be differentiated again."""
    return grad(y, x, np.ones(y.shape) if seed is None else seed, create_graph=True)


def derivatives(function: Callable[..., Any], at: Any, count: int, dtype: str = "float64") -> Any:
    """The value and so many derivatives of an elementwise function."""
    x = leaf(at, dtype)
    found = [function(x)]
    for _ in range(count):
        found.append(seeded(found[-1], x)[0])
    return [f.numpy() for f in found]


def test_three_derivatives_of_tanh() -> None:
    known = [0.41997434161402607, -0.6397000084492245, 0.6216266807712963]
    assert_allclose(np.ravel(derivatives(pg.tanh, [1.0], 3)[1:]), known, rtol=1e-12)
    assert_allclose(np.ravel(derivatives(pg.tanh, [1.0], 3, "float32")[1:]), known, rtol=1e-6)


def test_slope_of_a_square() -> None:
    assert_array_equal(derivatives(lambda x: x * x, [2.0], 1, "float32")[1], [4.0])


def test_third_derivative_of_a_product_of_four() -> None:
    assert_allclose(derivatives(lambda x: x * x * x * x, [2.0], 3)[3], [48], rtol=1e-6)


def test_five_derivatives_of_a_root() -> None:
    known = [
        8.08290376865476,
        5.58105260216638,
        1.25092558324419,
        -0.272637627117323,
        0.173739664339471,
    ]
    found = derivatives(lambda x: pg.sqrt(x**5 + x**4), [2.0], 5)
    assert_allclose(np.ravel(found[1:]), known, rtol=1e-9)
    found = derivatives(lambda x: pg.sqrt(x**5 + x**4), [2.0], 5, "float32")
    assert_allclose(np.ravel(found[1:]), known, rtol=1e-4, atol=1e-4)


def test_three_high_derivatives_of_a_fifth_power() -> None:
    at = RNG.random((3, 5)).astype("float32")

    def fifth(x: pg.Tensor) -> pg.Tensor:
        square = x * x
        return (square * square) * x

    found = derivatives(fifth, at, 5, "float32")
    for value, known in zip(found[3:], (60 * at**2, 120 * at, 0 * at + 120), strict=True):
        assert_allclose(value, known, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("float64", 1e-10)])
def test_high_derivatives_of_sin_cos_exp(dtype: str, tolerance: float) -> None:
    at = RNG.random(7).astype(dtype)
    cases: list[tuple[Any, Sequence[Any]]] = [
        (pg.sin, [-np.cos(at), np.sin(at), np.cos(at)]),
        (pg.cos, [np.sin(at), np.cos(at), -np.sin(at)]),
        (pg.exp, [np.exp(at)] * 3),
    ]
    for function, known in cases:
        found = derivatives(function, at, 5, dtype)[3:]
        assert_allclose(found, known, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (
            pg.erf,
            [
                0.878782578935445,
                -0.878782578935445,
                -0.878782578935445,
                4.39391289467722,
                0.878782578935445,
            ],
        ),
        (
            pg.gelu,
            [
                0.867495124656163,
                0.616114321837524,
                -0.660122487683062,
                -0.814151068142443,
                2.69550015804,
            ],
        ),
        (
            pg.sigmoid,
            [
                0.235003712201594,
                -0.0575567948523207,
                -0.0963567562895846,
                0.104755930580331,
                0.13562017319143,
            ],
        ),
    ],
    ids=["erf", "gelu", "sigmoid"],
)
def test_five_derivatives_at_a_half(function: Callable[..., Any], known: Sequence[float]) -> None:
    assert_allclose(derivatives(function, 0.5, 5)[1:], known, rtol=1e-8)


def test_slopes_of_a_power_by_base_and_exponent() -> None:
    x, y = leaf([1.0, 2.0, 3.0]), leaf([0.0, 2.0, 7.0])
    by_x, by_y = seeded(x**y, (x, y))
    assert_allclose(by_x.numpy(), [0, 4, 5103], rtol=1e-6)
    assert_allclose(by_y.numpy(), [0, 2.772588722239781, 2402.665075317156], rtol=1e-6)


def test_slopes_of_a_maximum_are_split_where_both_are_largest() -> None:
    x, y = leaf([1.0, 2.0, 3.0]), leaf([2.0, 2.0, 2.0])
    by_x, by_y = seeded(pg.maximum(x, y), (x, y))
    assert_array_equal(by_x.numpy(), [0, 0.5, 1])
    assert_array_equal(by_y.numpy(), [1, 0.5, 0])


def test_slopes_of_a_choice() -> None:
    mask = np.eye(3, 4) == 1
    x, y = leaf(RNG.random((3, 4))), leaf(RNG.random((3, 4)))
    by_x, by_y = seeded(pg.where(mask, x, y), (x, y))
    assert_array_equal(by_x.numpy(), mask)
    assert_array_equal(by_y.numpy(), ~mask)


def test_slopes_of_a_matrix_product() -> None:
    x, y = leaf(RNG.random((2, 3))), leaf(RNG.random((3, 2)))
    by_x, by_y = seeded(x @ y, (x, y))
    ones = np.ones((2, 2))
    assert_allclose(by_x.numpy(), ones @ y.numpy().T, rtol=1e-6)
    assert_allclose(by_y.numpy(), x.numpy().T @ ones, rtol=1e-6)


def test_two_derivatives_of_a_matrix_squared() -> None:
    x = leaf(RNG.random((5, 5)))
    (first,) = seeded(x @ x, x)
    ones = np.ones((5, 5))
    assert_allclose(first.numpy(), ones @ x.numpy().T + x.numpy().T @ ones, rtol=1e-7)
    (second,) = seeded(first, x)
    assert_allclose(second.numpy(), np.full((5, 5), 10.0), rtol=1e-7)


def test_derivatives_of_a_quotient() -> None:
    x, y = leaf(3.0), leaf(2.0)
    by_x, by_y = grad(x / y, (x, y), create_graph=True)
    by_yx, by_yy = grad(by_y, (x, y), create_graph=True)
    (by_yyy,) = grad(by_yy, y)
    found = [v.item() for v in (by_x, by_y, by_yy, by_yx, by_yyy)]
    assert_allclose(found, [0.5, -0.75, 0.75, -0.25, -1.125], rtol=1e-9)


def test_gradient_and_hessian_of_a_norm() -> None:
    x = leaf([3.0, 4.0])
    (first,) = grad(pg.norm(x), x, create_graph=True)
    (second,) = grad(first, x, np.eye(2), is_grads_batched=True)
    assert_allclose(first.numpy(), [0.6, 0.8], rtol=1e-9)
    assert_allclose(second.numpy(), [[0.128, -0.096], [-0.096, 0.072]], rtol=1e-9)


@pytest.mark.parametrize("axis", [1, -1], ids=["channels first", "channels last"])
def test_batch_normalization_has_the_slopes_of_its_formula(axis: int) -> None:
    x, w, b = leaf(RNG.random((10, 10))), leaf(RNG.random(10)), leaf(RNG.random(10))
    by_x, by_b = seeded(pg.batch_norm(x, None, None, w, b, axis, training=True), (x, b))
    assert_allclose(by_x.numpy(), np.zeros((10, 10)), atol=1e-9)
    assert_allclose(by_b.numpy(), np.full(10, 10.0))
    mean, var = RNG.random(10), RNG.random(10) + 1
    y = pg.batch_norm(x, mean, var, w, b, axis)
    known = (x.numpy() - mean) / np.sqrt(var + 1e-5) * w.numpy() + b.numpy()
    assert_allclose(y.numpy(), known, rtol=1e-6)
    (by_x,) = seeded(y, x)
    assert_allclose(by_x.numpy(), np.tile(w.numpy() / np.sqrt(var + 1e-5), (10, 1)), rtol=1e-6)


def test_a_program_of_many_kinds_has_the_slopes_of_differences() -> None:
    shapes = [(7, 8, 9), (8, 1), (7, 8, 9)]
    arrays = [RNG.random(s) for s in shapes]
    index = np.array([5, 0, 5], dtype="int32")

    def function(x0: Any, x1: Any, x2: Any) -> Any:
        a = x0 + x1
        c = x2 - pg.norm(a)
        return pg.gather(pg.concatenate([a, c], 1), index)

    x = [leaf(a) for a in arrays]
    y = function(*x)
    assert y.shape == (3, 16, 9)
    found = seeded(y, x)
    for place, (gradient, shape) in enumerate(zip(found, shapes, strict=True)):
        assert gradient.shape == shape
        at, step = (0,) * len(shape), 1e-6
        ends = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[place][at] += sign * step
            ends.append(pg.sum(function(*map(pg.tensor, moved))).item())
        assert_allclose(gradient.numpy()[at], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_the_gradient_of_a_layer_squared_and_differentiated_twice() -> None:
    x = leaf([[0.1, 0.2], [0.3, 0.4]])
    w, b = leaf([[0.5, -0.25], [0.75, 1.0]]), leaf([0.1, -0.2])
    y = pg.tanh(x @ w + b)
    (g1,) = seeded(y, x)
    (g2,) = seeded(g1, x)
    loss = pg.norm(g2)
    dw, db = grad(loss, (w, b))
    exact = 1e-10
    assert_allclose(
        g1.numpy(),
        [[0.207724665832198, 1.68572798169444], [0.128605676357443, 1.54664596959296]],
        exact,
    )
    assert_allclose(
        g2.numpy(),
        [[-0.342605865524498, -0.462389244219506], [-0.423000790368992, -0.887013159773917]],
        exact,
    )
    assert_allclose(loss.item(), 1.13881719627277, exact)
    assert_allclose(
        dw.numpy(),
        [[1.55413005675832, 0.54773305739798], [2.1197722021959, 0.764729923469569]],
        exact,
    )
    assert_allclose(db.numpy(), [1.13423035335628, 1.46111521286979], exact)


def test_a_manager_gives_the_gradients_of_an_affine_function() -> None:
    x, w, b = pg.tensor([1.0, 3.0, 5.0]), pg.tensor([[2.0], [4.0], [6.0]]), pg.tensor(-1.0)
    manager = pg.GradManager().attach([w, b])
    for factor in (1.0, 2.5):
        with manager:
            p = x @ w + b
            assert_array_equal(p.numpy(), [43])
            manager.backward(p, None if factor == 1.0 else [factor * np.ones(1)])
        assert_array_equal(w.grad.numpy(), factor * np.array([[1], [3], [5]]))
        assert b.grad.item() == factor
        w.grad = b.grad = None


def test_a_slice_and_repeated_positions_have_slopes_where_they_were_read() -> None:
    x = leaf(RNG.random((3, 3)))
    (found,) = seeded(x[1:-1, :2], x)
    assert_array_equal(found.numpy(), [[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    (found,) = seeded(x[np.array([0, 0, 2, 1]), np.array([2, 2, 1, 0])], x)
    assert_array_equal(found.numpy(), [[0, 0, 2], [1, 0, 0], [0, 1, 0]])


SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((3,), (4, 3, 2)),
    ((3,), (5, 4, 3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((2, 3), (6, 5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (6, 1, 3, 4)),
    ((6, 5, 2, 3), (3,)),
    ((6, 5, 2, 3), (3, 4)),
    ((6, 5, 2, 3), (1, 3, 4)),
    ((6, 1, 2, 3), (1, 5, 3, 4)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products_of_all_ranks_have_slopes_summed_over_what_was_broadcast(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    x, y = leaf(RNG.random(left)), leaf(RNG.random(right))
    z = x @ y
    seed = RNG.random(z.shape)
    by_x, by_y = grad(z, (x, y), seed)
    dx, dy = RNG.random(left), RNG.random(right)
    assert by_x.shape == left
    assert by_y.shape == right
    assert_allclose(np.sum(by_x.numpy() * dx), np.sum(seed * (dx @ y.numpy())), rtol=1e-9)
    assert_allclose(np.sum(by_y.numpy() * dy), np.sum(seed * (x.numpy() @ dy)), rtol=1e-9)


def test_slopes_of_a_rectifier() -> None:
    x = leaf([1.0, -1.0])
    (found,) = seeded(pg.relu(2 * x), x)
    assert_array_equal(found.numpy(), [2, 0])


def test_the_slope_of_a_sine_squared_at_its_top_in_single_precision() -> None:
    n1 = leaf(np.pi / 2, "float32")
    n2 = pg.sin(n1)
    n2.retain_grad()
    (n2**2).backward()
    assert_allclose(n1.grad.numpy(), -8.742278e-08, rtol=1e-6)
    assert n2.grad.item() == 2


def test_backward_twice_adds_unless_it_was_cleared() -> None:
    x = leaf(10.0)
    y = x**2
    y.backward(retain_graph=True)
    assert x.grad.item() == 20
    y.backward(retain_graph=True)
    assert x.grad.item() == 40
    x.grad.zero_()
    y.backward()
    assert x.grad.item() == 20


def test_an_affine_row_wants_a_seed_or_a_sum() -> None:
    x = leaf([[0.3, 0.4]])
    with pytest.raises(pg.ShapeError, match="only for scalar outputs"):
        grad(3 * x + 1, x)
    for y, seed in ((pg.sum(3 * x + 1), None), (3 * x + 1, np.ones((1, 2)))):
        assert_array_equal(grad(y, x, seed)[0].numpy(), [[3, 3]])


def test_the_third_derivative_of_a_square_is_zero() -> None:
    """A path is there, and its derivative is zero everywhere: no error, and not None."""
    x = leaf([1.0, 2.0])
    (first,) = seeded(x * x, x)
    (second,) = seeded(first, x)
    assert_array_equal(second.numpy(), [2, 2])
    for options in ({"allow_unused": True}, {"materialize_grads": True}, {}):
        (third,) = grad(second, x, np.ones(2), retain_graph=True, **options)
        assert_array_equal(third.numpy(), [0, 0])


def test_gradients_of_gradients_of_a_quadratic_form() -> None:
    x, y = leaf(RNG.random((2, 2))), leaf(RNG.random((2, 2)))
    z = x**2 + x * y + y**2
    z_x, z_y = seeded(z, (x, y))
    assert_allclose(z_x.numpy(), 2 * x.numpy() + y.numpy(), rtol=1e-6)
    assert_allclose(z_y.numpy(), x.numpy() + 2 * y.numpy(), rtol=1e-6)
    by_x, by_y = grad(pg.sum(2 * z_x + z_y), (x, y))
    assert_array_equal(by_x.numpy(), np.full((2, 2), 5.0))
    assert_array_equal(by_y.numpy(), np.full((2, 2), 4.0))


def test_batched_seeds_of_the_identity_and_of_a_sum() -> None:
    x = leaf(RNG.random((2, 2)))
    filled = np.arange(3.0)[:, None, None] * np.ones((2, 2))
    (found,) = grad(+x, x, filled, is_grads_batched=True)
    assert_array_equal(found.numpy(), filled)
    (found,) = grad(pg.sum(x), x, np.arange(3.0), is_grads_batched=True)
    assert_array_equal(found.numpy(), filled)
    for shape in ((2, 2), (2, 1)):
        with pytest.raises(pg.ShapeError, match="Mismatch in shape"):
            grad(pg.sum(x), x, np.ones(shape), is_grads_batched=True)


def test_derivatives_of_a_linear_function_end_in_zero() -> None:
    x, a = leaf(0.5), pg.tensor(1.0)
    (first,) = grad(x * a, x, create_graph=True)
    (second,) = grad(first, x, create_graph=True, allow_unused=True)
    (third,) = grad(second, x, create_graph=True, allow_unused=True)
    assert [v.item() for v in (first, second, third)] == [1, 0, 0]
    with pytest.raises(ValueError, match="zeros"):
        grad(x * a, x, allow_unused=False, materialize_grads=True)


def test_a_run_between_does_not_matter_to_higher_derivatives() -> None:
    x, y = leaf(RNG.random((3, 2))), leaf(RNG.random((2, 3)))
    z = pg.tanh(x) @ y
    before = z.numpy()
    (first,) = seeded(z, x)
    (second,) = seeded(first, x)
    t = np.tanh(x.numpy())
    rows = np.ones((3, 3)) @ y.numpy().T
    assert_allclose(first.numpy(), rows * (1 - t**2), rtol=1e-10)
    assert_allclose(second.numpy(), rows * (-2 * t * (1 - t**2)), rtol=1e-10)
    assert_array_equal(z.numpy(), before)


def test_a_minimum_is_found_by_hand_written_steps() -> None:
    w = leaf(1.0)
    for _ in range(3):
        (w * w).backward()
        with pg.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    assert_allclose(w.item(), 0.512, rtol=1e-12)


def test_integers_of_numpy_are_extents_and_axes_of_tensors_as_of_variables() -> None:
    two, one = np.int64(2), np.int32(1)
    t = pg.tensor(np.arange(6.0))
    m = pg.reshape(t, (two, 3))
    cases = [
        (m, (2, 3)), (t.reshape((np.prod((1, 2)), 3)), (2, 3)), (pg.sum(m, axis=one), (2,)),
        (np.reshape(t, np.array([3, 2])), (3, 2)), (pg.tile(t, (two, 1)), (2, 6)),
        (pg.expand_dims(t, np.int64(0)), (1, 6)), (pg.broadcast_to(t, (two, 6)), (2, 6)),
        (pg.swapaxes(m, np.int64(0), one), (3, 2)), (pg.repeat(t, two), (12,)),
        (pg.roll(t, one), (6,)), (pg.diff(t, two), (4,)), (pg.pad(t, one), (8,)),
    ]  # fmt: skip
    assert [found.shape for found, _ in cases] == [shape for _, shape in cases]
    # Another number is another shape; where they are numbers, their dtype counts.
    assert pg.reshape(t, (np.int64(3), 2)).shape == (3, 2)
    assert (pg.tensor(np.ones(2, "int32")) * two).dtype == np.int64
    with pytest.raises(pg.ShapeError):
        pg.reshape(t, (np.int64(4), 2))
    assert pg.reshape(t, (np.int64(6),)).shape == (6,)
