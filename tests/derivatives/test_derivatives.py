"""grad and forward_grad: known values, conventions, and the traps that others fell into."""

import numpy as np
import pytest

import primgraph as pg

rng = np.random.default_rng(5)


def run(program, fetches, **feed):
    return pg.Executor().run(program, feed, fetches)


def derivatives(function, order, at, dtype=np.float64, mode=pg.grad):
    """Values of the derivatives 1 to `order` of a function of one array, ones as seeds."""
    with pg.Program() as program:
        x = pg.data("x", np.shape(at), dtype)
        y, found = function(x), []
        for _ in range(order):
            y = mode(y, x)
            found.append(y)
    return run(program, found, x=np.asarray(at, dtype))


# Known values (sources: the tests of Paddle, MegEngine, OneFlow and torch, and closed forms).


@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_three_derivatives_of_tanh(mode):
    found = derivatives(pg.tanh, 3, [1.0], mode=mode)
    expected = 0.41997434161402607, -0.6397000084492245, 0.6216266807712963
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-12)
    found = derivatives(pg.tanh, 3, [1.0], np.float32, mode)
    assert all(f.dtype == np.float32 for f in found)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-6)


def test_forward_grad_of_three_outputs_in_one_call():
    at = rng.random((3, 2))
    with pg.Program() as program:
        x = pg.data("x", (3, 2))
        found = pg.forward_grad([x + x, x * x, pg.tanh(x)], x)
    double, square, tanh = run(program, found, x=at)
    np.testing.assert_allclose(double, np.full((3, 2), 2.0), rtol=1e-6)
    np.testing.assert_allclose(square, 2 * at, rtol=1e-6)
    np.testing.assert_allclose(tanh, 1 - np.tanh(at) ** 2, rtol=1e-6)


@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_square_in_float32(mode):
    np.testing.assert_array_equal(
        derivatives(lambda x: x * x, 1, [2.0], np.float32, mode)[0], np.float32([4.0])
    )


def test_third_derivative_of_a_product_of_four():
    found = derivatives(lambda x: x * x * x * x, 3, [2.0])
    np.testing.assert_allclose(found[2], [48.0], rtol=1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_five_derivatives_of_a_root(dtype, rtol):
    def function(x):
        return pg.sqrt(x * x * x * x * x + x * x * x * x)

    found = derivatives(function, 5, [2.0], dtype)
    expected = (
        8.08290376865476,
        5.58105260216638,
        1.25092558324419,
        -0.272637627117323,
        0.173739664339471,
    )
    np.testing.assert_allclose(np.ravel(found), expected, rtol=rtol, atol=rtol)


def test_high_derivatives_of_the_fifth_power():
    at = rng.random((3, 5)).astype(np.float32)

    def function(x):
        square = x * x
        return square * square * x

    found = derivatives(function, 5, at, np.float32)
    for value, expected in zip(
        found[2:], (60 * at**2, 120 * at, np.full_like(at, 120)), strict=True
    ):
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-10), (np.float32, 1e-3)])
@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_high_derivatives_of_sin_cos_exp(dtype, tol, mode):
    at = rng.standard_normal(7).astype(dtype)
    table = {
        pg.sin: (-np.cos(at), np.sin(at), np.cos(at)),
        pg.cos: (np.sin(at), np.cos(at), -np.sin(at)),
        pg.exp: (np.exp(at),) * 3,
    }
    for function, expected in table.items():
        found = derivatives(function, 5, at, dtype, mode)[2:]
        for value, known in zip(found, expected, strict=True):
            np.testing.assert_allclose(value, known, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    ("function", "value", "expected", "tol"),
    [
        (
            pg.erf,
            0.5204998778130465,
            (0.878782578935445, -0.878782578935445, -0.878782578935445, 4.39391289467722,
             0.878782578935445),
            1e-9,
        ),
        (
            pg.gelu,
            0.345731230637007,
            (0.867495124656163, 0.616114321837524, -0.660122487683062, -0.814151068142443,
             2.69550015804),
            1e-8,
        ),
        (
            pg.sigmoid,
            0.622459331201855,
            (0.235003712201594, -0.0575567948523207, -0.0963567562895846, 0.104755930580331,
             0.13562017319143),
            1e-9,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_five_derivatives_at_one_half(function, value, expected, tol, mode):
    with pg.Program() as program:
        y = function(pg.data("x", ()))
    np.testing.assert_allclose(run(program, [y], x=0.5)[0], value, rtol=tol)
    np.testing.assert_allclose(derivatives(function, 5, 0.5, mode=mode), expected, rtol=tol)


def two_gradients(function, x, y):
    with pg.Program() as program:
        a, b = pg.data("x", np.shape(x), np.asarray(x).dtype), pg.data("y", np.shape(y))
        found = pg.grad(function(a, b), [a, b])
    return run(program, found, x=x, y=y)


def test_power_at_zero_exponent():
    dx, dy = two_gradients(pg.power, [1.0, 2, 3], [0.0, 2, 7])
    np.testing.assert_allclose(dx, [0, 4, 5103], rtol=1e-6)
    np.testing.assert_allclose(dy, [0, 2.772588722239781, 2402.665075317156], rtol=1e-6)


def test_maximum_splits_a_tie_evenly():
    """Paddle gives a tie to its second operand; here both get half, as the conventions say."""
    dx, dy = two_gradients(pg.maximum, [1.0, 2, 3], [2.0, 2, 2])
    np.testing.assert_array_equal(dx, [0, 0.5, 1])
    np.testing.assert_array_equal(dy, [1, 0.5, 0])


def test_where_gives_each_operand_its_part():
    mask = np.eye(3, 4)
    dx, dy = two_gradients(
        lambda x, y: pg.where(mask == 1, x, y), rng.random((3, 4)), rng.random((3, 4))
    )
    np.testing.assert_array_equal(dx, mask)
    np.testing.assert_array_equal(dy, 1 - mask)


def test_matmul_with_ones_as_seed():
    x, y = rng.random((2, 3)), rng.random((3, 2))
    dx, dy = two_gradients(pg.matmul, x, y)
    np.testing.assert_allclose(dx, np.ones((2, 2)) @ y.T, rtol=1e-6)
    np.testing.assert_allclose(dy, x.T @ np.ones((2, 2)), rtol=1e-6)


def test_matmul_of_an_array_with_itself():
    at = rng.random((5, 5))
    first, second = derivatives(lambda x: x @ x, 2, at)
    ones = np.ones((5, 5))
    np.testing.assert_allclose(first, ones @ at.T + at.T @ ones, rtol=1e-7)
    np.testing.assert_allclose(second, 10 * ones, rtol=1e-7)


def test_matmul_seeds_in_both_modes():
    seed = np.array([[1.0, 0], [0, 0]])
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        y = pg.matmul(x, x)
        found = [f(y, x, s) for f in (pg.grad, pg.forward_grad) for s in (None, seed)]
    for value, expected in zip(run(program, found, x=np.ones((2, 2))), [4, 0, 4, 0], strict=True):
        expected = np.full((2, 2), 4.0) if expected else np.array([[2.0, 1], [1, 0]])
        np.testing.assert_array_equal(value, expected)


def test_derivatives_of_a_quotient():
    with pg.Program() as program:
        x, y = pg.data("x", ()), pg.data("y", ())
        dx, dy = pg.grad(x / y, [x, y])
        dyy, dxy = pg.grad(dy, y), pg.grad(dy, x)
        dyyy = pg.grad(dyy, y)
    found = run(program, [dx, dy, dyy, dxy, dyyy], x=3.0, y=2.0)
    np.testing.assert_allclose(found, [0.5, -0.75, 0.75, -0.25, -1.125], rtol=1e-9)


def test_norm_has_gradient_hessian_and_a_subgradient_at_zero():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        g = pg.grad(pg.norm(x), x)
        rows = [pg.grad(g[i], x) for i in range(2)]
    gradient, *hessian = run(program, [g, *rows], x=[3.0, 4.0])
    np.testing.assert_allclose(gradient, [0.6, 0.8], rtol=1e-9)
    np.testing.assert_allclose(hessian, [[0.128, -0.096], [-0.096, 0.072]], rtol=1e-9)
    np.testing.assert_array_equal(run(program, [g], x=[0.0, 0.0])[0], [0, 0])


def test_fan_out_through_norm_concat_and_index_select():
    shapes = {"x0": (7, 8, 9), "x1": (8, 1), "x2": (7, 8, 9)}
    feed = {n: rng.standard_normal(s) for n, s in shapes.items()}
    index = np.array([2, 0, 2], np.int32)
    with pg.Program() as program:
        x0, x1, x2 = (pg.data(n, s) for n, s in shapes.items())
        idx = pg.data("idx", (3,), "int32")
        a = x0 + x1
        c = x2 - pg.norm(a)
        y = pg.take(pg.concatenate([a, c], axis=1), idx, axis=0)
        found = pg.grad(y, [x0, x1, x2])
        total = pg.sum(y)
        with pytest.raises(pg.NotDifferentiable, match="'idx' is i32"):
            pg.grad(y, [x0, idx])
    assert y.shape == (3, 16, 9)
    values = run(program, [total, *found], idx=index, **feed)
    for name, value in zip(shapes, values[1:], strict=True):
        assert value.shape == shapes[name]
        along = rng.standard_normal(shapes[name])
        sides = [
            run(program, [total], idx=index, **{**feed, name: feed[name] + h * along})[0]
            for h in (1e-5, -1e-5)
        ]
        slope = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(np.sum(value * along), slope, rtol=1e-6)


def test_a_loss_made_of_second_derivatives():
    with pg.Program() as program:
        x, w, b = pg.data("x", (2, 2)), pg.data("w", (2, 2)), pg.data("b", (2,))
        y = pg.tanh(x @ w + b)
        g1 = pg.grad(y, x)
        g2 = pg.grad(g1, x)
        loss = pg.norm(g2)
        dw, db = pg.grad(loss, [w, b])
    found = run(
        program,
        [g1, g2, loss, dw, db],
        x=[[0.1, 0.2], [0.3, 0.4]],
        w=[[0.5, -0.25], [0.75, 1.0]],
        b=[0.1, -0.2],
    )
    expected = [
        [[0.207724665832198, 1.68572798169444], [0.128605676357443, 1.546645969592955]],
        [[-0.342605865524498, -0.462389244219506], [-0.423000790368992, -0.887013159773917]],
        1.13881719627277,
        [[1.55413005675832, 0.54773305739798], [2.1197722021959, 0.764729923469569]],
        [1.13423035335628, 1.46111521286979],
    ]
    for value, known in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-10)


def test_gradient_for_an_input_and_for_what_is_computed_from_it():
    at = rng.standard_normal(10)
    with pg.Program() as program:
        x = pg.data("x", (10,))
        y = x * x
        z = y * y
        found = pg.grad(z, [x, y])
        tangent = pg.forward_grad(z, [x, y])
    dx, dy, dz = run(program, [*found, tangent], x=at)
    np.testing.assert_allclose(dx, 4 * at**3, rtol=1e-6)
    np.testing.assert_allclose(dy, 2 * at**2, rtol=1e-6)
    np.testing.assert_allclose(dz, 4 * at**3 + 2 * at**2, rtol=1e-6)


def test_slices_and_repeated_indices():
    with pg.Program() as program:
        x = pg.data("x", (3, 3))
        part = pg.grad(pg.sum(x[1:-1, :2]), x)
        picked = pg.grad(pg.sum(x[[0, 0, 2, 1], [2, 2, 1, 0]]), x)
    sliced, gathered = run(program, [part, picked], x=rng.random((3, 3)))
    np.testing.assert_array_equal(sliced, [[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(gathered, [[0, 0, 2], [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("left", [1, 2, 3, 4])
@pytest.mark.parametrize("right", [1, 2, 3, 4])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_gradients_of_all_ranks(left, right, flags):
    lead = {3: (2,), 4: (3, 1)}
    shape_x = (4,) if left == 1 else (*lead.get(left, ()), 3, 4)
    shape_y = (4,) if right == 1 else (*lead.get(right, ()), 4, 5)
    turned = [
        (*s[:-2], s[-1], s[-2]) if flag and len(s) > 1 else s
        for s, flag in zip((shape_x, shape_y), flags, strict=True)
    ]
    x, y = rng.standard_normal(turned[0]), rng.standard_normal(turned[1])

    def product(a, b, np_=pg):
        a = np_.swapaxes(a, -1, -2) if flags[0] and a.ndim > 1 else a
        b = np_.swapaxes(b, -1, -2) if flags[1] and b.ndim > 1 else b
        return np_.matmul(a, b)

    seed = rng.standard_normal(product(x, y, np).shape)
    with pg.Program() as program:
        a, b = pg.data("x", x.shape), pg.data("y", y.shape)
        found = pg.grad(product(a, b), [a, b], seed)
    dx, dy = run(program, found, x=x, y=y)
    # A product is linear in each factor: <dx, u> is <seed, product(u, y)> for every u.
    u, v = rng.standard_normal(x.shape), rng.standard_normal(y.shape)
    np.testing.assert_allclose(np.sum(dx * u), np.sum(seed * product(u, y, np)), rtol=1e-10)
    np.testing.assert_allclose(np.sum(dy * v), np.sum(seed * product(x, v, np)), rtol=1e-10)


def test_relu_of_a_scaled_input():
    np.testing.assert_array_equal(derivatives(lambda x: pg.relu(2 * x), 1, [1.0, -1.0])[0], [2, 0])


# Traps.


def test_outputs_and_inputs_listed_twice_count_twice():
    at = rng.standard_normal(4)
    with pg.Program() as program:
        x, u, v = pg.data("x", (4,)), pg.data("u", (4,)), pg.data("v", (4,))
        y = pg.sin(x)
        twice = pg.grad([y, y], x)
        alias = pg.grad([x + u, x + v], x)
        both = pg.grad(y, [x, x])
        same = pg.grad(x, x)
        summed = pg.forward_grad(y, [x, x])
        with_seeds = pg.grad([y, y], x, [None, 3 * np.ones(4)])
    found = run(program, [twice, alias, *both, same, summed, with_seeds], x=at)
    expected = [2 * np.cos(at), np.full(4, 2.0), np.cos(at), np.cos(at), np.ones(4)]
    expected += [2 * np.cos(at), 4 * np.cos(at)]
    for value, known in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-12)


def test_one_used_output_of_a_split_and_a_constant_part_of_a_concat():
    at = rng.standard_normal(6)
    with pg.Program() as program:
        x = pg.data("x", (6,))
        first, _, third = pg.split(x, 3)
        used = pg.grad(pg.sum(third * third), x)
        joined = pg.concatenate([np.ones(2), x, pg.zeros((3,))])
        mixed = pg.grad(pg.sum(joined**3), x)
        forward = pg.forward_grad(pg.sum(joined**3), x)
        assert pg.forward_grad([first], [x])[0].shape == (2,)
    found = run(program, [used, mixed, forward], x=at)
    np.testing.assert_allclose(found[0], np.r_[np.zeros(4), 2 * at[4:]], rtol=1e-9)
    np.testing.assert_allclose(found[1], 3 * at**2, rtol=1e-9)
    np.testing.assert_allclose(found[2], np.sum(3 * at**2), rtol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_second_derivative_through_index_select(axis):
    at = rng.standard_normal((3, 3))
    index = np.array([0, 2, 2])
    times = np.zeros(3)
    np.add.at(times, index, 1)
    times = times[:, None] if axis == 0 else times
    first, second = derivatives(lambda x: pg.sum(pg.take(x, index, axis=axis) ** 3), 2, at)
    np.testing.assert_allclose(first, 3 * at**2 * times, rtol=1e-9)
    np.testing.assert_allclose(second, 6 * at * times, rtol=1e-9)


def test_modes_mix_in_any_order():
    at, w, v = rng.standard_normal(4), rng.standard_normal((4, 4)), rng.standard_normal(4)
    with pg.Program() as program:
        x = pg.data("x", (4,))
        y = pg.sum(pg.tanh(x @ w) ** 2)
        g = pg.grad(y, x)
        reverse_over_forward = pg.grad(pg.forward_grad(y, x, v), x)
        forward_over_reverse = pg.forward_grad(g, x, v)
        reverse_over_reverse = pg.grad(pg.sum(g * v), x)
    found = run(program, [reverse_over_forward, forward_over_reverse, reverse_over_reverse], x=at)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-10)
    t = np.tanh(at @ w)
    s = 1 - t**2
    hessian = w @ np.diag(2 * s * s - 4 * t * t * s) @ w.T
    np.testing.assert_allclose(found[0], hessian @ v, rtol=1e-10)


def test_a_program_that_was_run_can_be_differentiated_again():
    at, other = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    with pg.Program() as program:
        x, y = pg.data("x", (3, 3)), pg.data("y", (3, 3))
        z = pg.matmul(pg.tanh(x), y)
        g = pg.grad(z, x)
    first = run(program, [z, g], x=at, y=other)
    kept = [f.copy() for f in first]
    with program:
        gg = pg.grad(g, x)
    again = run(program, [z, g, gg], x=at, y=other)
    t = np.tanh(at)
    row = np.sum(other, axis=1)
    np.testing.assert_allclose(again[2], -2 * t * (1 - t * t) * row, rtol=1e-10)
    for value, before, after in zip(first, kept, again[:2], strict=True):
        np.testing.assert_array_equal(value, before)
        np.testing.assert_array_equal(value, after)


@pytest.mark.long
def test_an_elementwise_program_is_differentiated_by_forward_mode():
    for mode in (pg.grad, pg.forward_grad):
        with pg.Program() as program:
            x = pg.data("x", (3,))
            y = pg.tanh(x)
            for _ in range(10):
                y = mode(y, x)
        kernel = pg.Executor().kernel(program, [y])
        assert len(kernel.graph) <= 200


@pytest.mark.long
def test_growth_of_a_mixed_elementwise_program():
    for mode in (pg.grad, pg.forward_grad):
        with pg.Program() as program:
            x = pg.data("x", (3,))
            y = pg.sin(x) * pg.tanh(x + x * pg.tanh(x))
            sizes = []
            for _ in range(8):
                y = mode(y, x)
                sizes.append(len(pg.Executor().kernel(program, [y]).graph))
        assert (sizes[-1] / sizes[0]) ** (1 / 7) <= 1.6, sizes


def test_several_diagonal_outputs_with_seeds():
    at, v = rng.standard_normal(4), rng.standard_normal(4)
    with pg.Program() as program:
        x = pg.data("x", (4,))
        g = pg.grad([pg.sin(x), pg.exp(x)], x, [v, None])
    np.testing.assert_allclose(run(program, [g], x=at)[0], v * np.cos(at) + np.exp(at), rtol=1e-12)


# What has no derivative, and what has one that is zero.


def test_none_zero_and_error_are_told_apart():
    with pg.Program() as program:
        x, w, n = pg.data("x", (3,)), pg.data("w", (3,)), pg.data("n", (3,), "int64")
        y = pg.sum(x * x)
        assert pg.grad(y, [x, w])[1] is None
        assert pg.forward_grad([y, pg.sum(w)], x)[1] is None
        assert pg.forward_grad(y, w) is None
        zero = pg.grad(pg.sum(pg.floor(x)), x)
        flat = pg.grad(pg.sum(x * 0.0), x)
        for dead in (pg.sum(w), pg.sum(pg.stop_gradient(x)), pg.sum(pg.astype(x > 0, float))):
            with pytest.raises(pg.NotDifferentiable, match="does not depend on the inputs"):
                pg.grad(dead, x)
        with pytest.raises(pg.NotDifferentiable, match=r"input 'n' is i64\[3\]"):
            pg.grad(y, n)
        with pytest.raises(pg.NotDifferentiable, match="output"):
            pg.grad(pg.argmax(x), x)
    found = run(program, [zero, flat], x=[1.5, -1, 2])
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_stop_gradient_holds_constant_at_every_order():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        g = pg.grad(pg.sum(x * pg.stop_gradient(x * x)), x)
        gg = pg.grad(pg.sum(g * x), x)
    first, second = run(program, [g, gg], x=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(first, [1, 4, 9])
    np.testing.assert_allclose(second, [1, 4, 9], err_msg="the factor stays a constant")


def test_casts_carry_gradients_between_floats_only():
    with pg.Program() as program:
        x = pg.data("x", (3,), "float32")
        g = pg.grad(pg.sum(pg.astype(x, "float64") ** 2), x)
        with pytest.raises(pg.NotDifferentiable):
            pg.grad(pg.sum(pg.astype(pg.astype(x, "int64"), "float32")), x)
    (value,) = run(program, [g], x=np.float32([1, 2, 3]))
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, [2, 4, 6])


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_where_guards_a_partial_function(order, mode):
    at = np.array([0.0, 1.0, 2.0])
    known = {
        1: (1 / at[1:], 0.5 * at[1:] ** -0.5),
        2: (-1 / at[1:] ** 2, -0.25 * at[1:] ** -1.5),
        3: (2 / at[1:] ** 3, 0.375 * at[1:] ** -2.5),
    }
    log = derivatives(lambda x: pg.where(x > 0, pg.log(x), 0.0), order, at, mode=mode)[-1]
    root = derivatives(lambda x: pg.where(x > 0, pg.sqrt(x), 0.0), order, at, mode=mode)[-1]
    for value, expected in zip((log, root), known[order], strict=True):
        np.testing.assert_allclose(value, np.r_[0, expected], rtol=1e-12)
    whole = derivatives(
        lambda x: pg.sum(pg.where(pg.sum(x) > 0, pg.sqrt(pg.sum(x * x)), 0.0)), 1, np.zeros(3)
    )[0]
    np.testing.assert_array_equal(whole, np.zeros(3))


# Arguments.


MOVED = {
    "slice": (lambda x: pg.where(x[1:] > 0, pg.log(x)[1:], 0.0), [0, 0.5]),
    "steps": (lambda x: pg.where(x[::-2] > 0, pg.log(x)[::-2], 0.0), [0, 0.5]),
    "stack": (lambda x: pg.where(x > 0, pg.stack([pg.log(x), -pg.sqrt(x)]), 0.0), [0, 0.1464466]),
    "concatenate": (
        lambda x: pg.where(x > 0, pg.concatenate([pg.log(x[:1]), pg.log(x[1:])]), 0.0),
        [0, 0.5],
    ),
    "roll": (lambda x: pg.where(pg.roll(x, 1) > 0, pg.roll(pg.log(x), 1), 0.0), [0, 0.5]),
    "repeated index": (
        lambda x: pg.where(x[[0, 1, 1]] > 0, pg.log(x)[[0, 1, 1]], 0.0),
        [0, 1.0],
    ),
    "pad": (lambda x: pg.where(pg.pad(x, 1) > 0, pg.pad(pg.log(x), 1), 0.0), [0, 0.5]),
    "split": (lambda x: pg.where(x[:1] > 0, pg.split(pg.log(x), [1])[0], 0.0), [0, 0]),
    "scatter_add": (
        lambda x: pg.where(x > 0, pg.scatter_add(pg.log(x), [1], pg.log(x[1:])), 0.0),
        [0, 1.0],
    ),
    "set_slice": (
        lambda x: pg.where(x > 0, pg.set_slice(pg.zeros(2), slice(0, 2), pg.log(x)), 0.0),
        [0, 0.5],
    ),
    "mask of more axes": (
        lambda x: pg.where(np.array([[False, True], [False, True]]), pg.log(x), 0.0),
        [0, 1.0],
    ),
    "sum": (lambda x: pg.where(pg.min(x) > 0, pg.sum(pg.log(x)), 0.0), [0, 0]),
    "two uses": (
        lambda x: pg.where(x > 0, pg.log(x), 0.0) + pg.where(x > 1, pg.log(x), 0.0),
        [0, 1],
    ),
    "outer product": (
        lambda x: pg.where(pg.outer(x, x) > 0, pg.log(x)[:, None] + pg.log(x), 0.0),
        [0, 1.0],
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_where_guards_what_is_moved(name):
    """Before a slice, a broadcast and the like, an element matters where it ends up to matter."""
    function, expected = MOVED[name]
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = pg.sum(function(x))
        g = pg.grad(y, x)
        gg = pg.grad(pg.sum(g), x)
        modes = [pg.forward_grad(g, x), pg.grad(pg.forward_grad(y, x), x), gg]
        third = [pg.grad(pg.sum(gg), x), pg.forward_grad(gg, x)]
        values = pg.Executor().run(program, {"x": [0.0, 2.0]}, [g, modes, third])
    np.testing.assert_allclose(values[0], expected, rtol=1e-6)
    for group in (values[1:4], values[4:]):
        for value in group:
            assert np.isfinite(value).all()
            assert value[0] == 0
            np.testing.assert_allclose(value, group[0], rtol=1e-12)


def test_where_guards_the_distances_of_points_to_themselves():
    points = np.array([[0.0, 0], [3, 4], [0, 1]])
    with pg.Program() as program:
        x = pg.data("x", points.shape)
        squares = pg.sum((x[:, None] - x[None]) ** 2, axis=-1)
        y = pg.sum(pg.where(np.eye(3) == 1, 0.0, pg.sqrt(squares)))
        g = pg.grad(y, x)
        found, second = pg.Executor().run(program, {"x": points}, [g, pg.grad(g[1, 0], x)])
    unit = (points[:, None] - points) / np.maximum(
        np.linalg.norm(points[:, None] - points, axis=-1, keepdims=True), 1e-9
    )
    np.testing.assert_allclose(found, 2 * unit.sum(1), rtol=1e-12)
    assert np.isfinite(second).all()


def test_wrong_arguments_are_refused():
    with pg.Program():
        x = pg.data("x", (2, 3))
        y = pg.sum(x, axis=0)
        for function in (pg.grad, pg.forward_grad):
            for outputs, inputs in ((1, x), (y, 1), ("y", x), ([y, None], x), (y, [x, 2.0])):
                with pytest.raises(TypeError, match="takes a variable or a sequence"):
                    function(outputs, inputs)
            with pytest.raises(pg.ArgumentError, match="got no inputs"):
                function(y, [])
            with pytest.raises(pg.ArgumentError, match="2 entries for 1"):
                function(y, x, [None, None])
            with pytest.raises(pg.ShapeError, match="the seed has shape"):
                function(y, x, np.ones(7))
    with pg.Program():
        other = pg.data("x", (3,))
        with pytest.raises(pg.BuildError, match="two different programs"):
            pg.grad(y, other)


def test_seeds_may_be_variables_of_the_program():
    with pg.Program() as program:
        x, v = pg.data("x", (3,)), pg.data("v", (3,))
        g = pg.grad(pg.exp(x), x, v)
        back = pg.grad(pg.sum(g * g), v)
    found = run(program, [g, back], x=[0.0, 1, 2], v=[1.0, 2, 3])
    e = np.exp([0.0, 1, 2])
    np.testing.assert_allclose(found[0], e * [1, 2, 3], rtol=1e-12)
    np.testing.assert_allclose(found[1], 2 * e * e * [1, 2, 3], rtol=1e-12)


def test_derived_equations_keep_the_line_of_what_they_derive_from():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.tanh(x)  # the line in question
        g = pg.grad(pg.sum(y), x)
    last = program.builder.definition(g.value)
    assert last.source.text == "y = pg.tanh(x)  # the line in question"
    assert str(last.source).startswith("in the gradient of test_derivatives.py:")


# More traps of the ancestor: each failed there, or gave a wrong number.


def test_a_split_by_a_number_has_all_its_tangents():
    at = rng.standard_normal((4, 6))
    with pg.Program() as program:
        x = pg.data("x", (4, 6))
        parts = pg.split(x * x, 3, axis=-1)
        tangents = pg.forward_grad(parts, x)
        g = pg.grad(parts, x)
    *found, back = run(program, [*tangents, g], x=at)
    np.testing.assert_allclose(np.concatenate(found, axis=1), 2 * at, rtol=1e-12)
    np.testing.assert_allclose(back, 2 * at, rtol=1e-12)


@pytest.mark.parametrize("axis", [-1, -2, (-1, 0), None, [0, -2]])
def test_reductions_along_negative_axes_and_none(axis):
    at = rng.standard_normal((2, 3, 4))
    axis_of_numpy = tuple(axis) if isinstance(axis, list) else axis
    with pg.Program() as program:
        x = pg.data("x", (2, 3, 4))
        total, mean = pg.sum(x * x, axis), pg.mean(x, axis, keepdims=True)
        found = [total, mean, pg.grad(total, x), pg.grad(mean, x)]
    total, mean, dtotal, dmean = run(program, found, x=at)
    np.testing.assert_allclose(total, np.sum(at * at, axis_of_numpy), rtol=1e-12)
    np.testing.assert_allclose(mean, np.mean(at, axis_of_numpy, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(dtotal, 2 * at, rtol=1e-12)
    np.testing.assert_allclose(dmean, np.full(at.shape, mean.size / at.size), rtol=1e-12)


@pytest.mark.parametrize("index", [slice(0, 7, 3), slice(None, None, 2), slice(6, 0, -4)])
def test_strides_that_do_not_divide_the_extent(index):
    at = rng.standard_normal(7)
    first, second = derivatives(lambda x: pg.sum(x[index] ** 3), 2, at)
    mask = np.zeros(7)
    mask[index] = 1
    np.testing.assert_allclose(first, 3 * at**2 * mask, rtol=1e-12)
    np.testing.assert_allclose(second, 6 * at * mask, rtol=1e-12)


def test_products_of_an_even_number_join_nothing():
    jvp = pg.transforms.linearize(pg.transforms.lower(pg.trace(pg.prod, pg.spec(4))), [0])
    assert all(eqn.op.name != "concat" for eqn in jvp.body)


# Functions of what lies between, by their Jacobians. As an expression each is a simpler one.
BETWEEN = {
    "reshaped": (lambda x: (x + 0.5).reshape(3, 1).reshape(3), np.eye(3)),
    "of two signs": (lambda x: 0.0 - (-x), np.eye(3)),
    "scaled twice": (lambda x: 2.0 * (3.0 * x), 6.0 * np.eye(3)),
    "times one": (lambda x: (x - 0.1) * 1.0, np.eye(3)),
    "turned twice": (lambda x: pg.flip(pg.flip(x)), np.eye(3)),
    "parted and joined": (lambda x: pg.concatenate(pg.split(x * 3.0, [1])), 3.0 * np.eye(3)),
    "from its mean": (lambda x: x - pg.mean(x), np.eye(3) - np.full((3, 3), 1 / 3)),
    "logarithm of a power": (lambda x: pg.log(pg.exp(x)), np.eye(3)),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_derivative_is_a_function_of_the_values_between(name):
    """Whatever else the same numbers could be computed from: here of w on the way to w**3."""
    function, slopes = BETWEEN[name]
    at, direction = np.array([0.1, 0.4, 0.3]), np.array([1.0, -2.0, 0.5])
    with pg.Program() as program:
        x = pg.data("x", (3,))
        w = function(x)
        y = pg.sum(w**3)
        firsts = {
            "by x": (pg.sum(pg.grad(y, x)), slopes @ np.ones(3)),
            "by both": (pg.sum(pg.grad(y, [x, w])[0]), slopes @ np.ones(3)),
            "forward": (pg.forward_grad(y, x, direction), slopes @ direction),
            "jacobian": (pg.sum(pg.jacobian(w**3, x)), slopes @ np.ones(3)),
        }
        found = [pg.grad(first, w) for first, _ in firsts.values()]
        trace = pg.grad(pg.laplacian(y, x), w)
    between, trace, *found = run(program, [w, trace, *found], x=at)
    for (kind, (_, along)), slope in zip(firsts.items(), found, strict=True):
        expected = 6 * between * along
        np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-14, err_msg=kind)
    np.testing.assert_allclose(trace, 6 * np.sum(slopes**2, axis=1), rtol=1e-12)


@pytest.mark.parametrize("function", [pg.softplus, pg.gelu, pg.sin, lambda x: pg.tanh(x[::-1])])
def test_a_derivative_is_a_function_of_what_operators_give(function):
    """Their own slopes are functions of x, but for tanh, whose slope is 1 - w**2."""
    at, along = np.array([0.1, 0.4, 0.3]), np.array([1.0, -2.0, 0.5])
    with pg.Program() as program:
        x = pg.data("x", (3,))
        w = function(x)
        tangent, slope = pg.forward_grad(w, x, along), pg.forward_grad(pg.sum(w**3), x, along)
        found = run(program, [w, tangent, pg.grad(slope, w)], x=at)
    between, tangent, slope = found
    expected = 6 * between * tangent
    if program.graph([w]).body[-1].op.name == "tanh":
        expected -= 6 * between**3 * along[::-1]
    np.testing.assert_allclose(slope, expected, rtol=1e-12)
