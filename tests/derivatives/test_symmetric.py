"""Gradients of gradients: their derivatives are symmetric, and small at every order."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.transforms import clean_up, lower

rng = np.random.default_rng(11)
AT = rng.uniform(0.3, 1.2, 3)


def equations(graph: Graph) -> int:
    """How many there are, those of bodies included."""
    return sum(1 + sum(map(equations, e.bodies if e.op.has_bodies else ())) for e in graph.body)


def counts(mode, function, shape, orders):
    """The equations of derivatives 1 to `orders`, the first one by `grad`, and whether all that
    was recorded for them is little."""
    found = []
    with pg.Program() as program:
        x = pg.data("x", shape)
        y = function(x)
        for k in range(orders):
            y = mode(y, x) if k else pg.grad(y, x)
            found.append(equations(clean_up(lower(program.graph([y])))))
    return found, len(program.builder.body) < 2 * sum(found)


def network(x):
    for n, m in ((2, 5), (5, 4), (4, 1)):
        x = pg.tanh(x @ np.random.default_rng(n).normal(size=(n, m)))
    return x


def scanned(x):
    xs = np.linspace(-1.0, 1.0, 6)
    return pg.scan(lambda c, t: (pg.tanh(x * c + t), None), pg.zeros(x.shape), xs)[0]


@pytest.mark.parametrize(("function", "shape"), [(network, (3, 2)), (scanned, (4,)), (scanned, ())])
def test_gradients_of_gradients_are_as_small_as_tangents_of_gradients(function, shape):
    found = counts(pg.grad, function, shape, 4)
    assert found == counts(pg.forward_grad, function, shape, 4)
    assert found[1]


def test_a_number_through_a_loop_is_differentiated_forward():
    with pg.Program() as program:
        x = pg.data("x", ())
        slope = pg.grad(scanned(x), x)
    assert [e.op.name for e in clean_up(lower(program.graph([slope]))).body].count("scan") == 1


# By reverse mode of several seeds at once, everything is transposed.


def by_transposing(outputs, inputs):
    seeds = [np.ones((1, *v.shape)) for v in outputs]
    found = pg.grad(outputs, inputs, seeds, is_grads_batched=True, materialize_grads=True)
    return [g[0] for g in found]


def two(x, y):
    return pg.sum(pg.sin(x) * y) + pg.sum(x @ pg.exp(y)) ** 2 + pg.sum(x**3)


def passing(x, y):
    a, b = pg.grad(two(x, y), [x, y])
    return [pg.sum(a * b) + pg.sum(pg.tanh(a)), b * x]


def one_of_two(x, y):
    a, b = pg.grad(two(x, y), [x, y])
    return [b, pg.sum(a) * y]


def twice(x, y):
    a = pg.grad(two(x, y), x)
    b = pg.grad(pg.sum(a * np.arange(3.0)) + pg.sum(a * a), x)
    return [b, a * b]


def seeded_by_itself(x, y):
    """No gradient of one function: the seed varies."""
    return [pg.grad(pg.sin(x) * pg.sum(x), x, pg.exp(y) * x)]


def seeded_by_an_input(x, y):
    """The seed is what it is the gradient by."""
    return [pg.grad(pg.cumsum(pg.tanh(x) * pg.sum(y)), x, x)]


def held(x, y):
    """Something on the way counts as a constant."""
    return [pg.grad(pg.sum(pg.stop_gradient(pg.prod(x)) * x), x)]


def held_in_a_loop(x, y):
    def step(c, k):
        return c * x + pg.stop_gradient(pg.flip(c, 0) * x), None

    return [pg.grad(pg.sum(pg.scan(step, y, np.arange(3.0))[0]), x)]


def selected(x, y):
    a = pg.grad(two(x, y), x)
    return [a[1:], pg.where(a > 0.0, a, y)]


@pg.custom_jvp
def skewed(x):
    return x * pg.sum(x)


@skewed.defjvp
def _slope_of_skewed(primals, tangents):
    (x,), (d,) = primals, tangents
    return skewed(x), d * np.arange(1.0, 4.0) * pg.flip(x, 0)


def declared(x, y):
    return [pg.grad(pg.sum(skewed(x) ** 2), x)]


ALL = (
    passing, one_of_two, twice, seeded_by_itself, seeded_by_an_input,
    held, held_in_a_loop, selected, declared,
)  # fmt: skip


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrt", ["x", "y", "xy"])
def test_reverse_mode_through_gradients_gives_what_is_transposed(function, wrt):
    with pg.Program() as program:
        known = {n: pg.data(n, (3,)) for n in "xy"}
        outputs, inputs = function(*known.values()), [known[n] for n in wrt]
        found = pg.grad(outputs, inputs, materialize_grads=True)
        expected = by_transposing(outputs, inputs)
    values = pg.Executor().run(program, {"x": AT, "y": AT[::-1] * 0.5}, [*found, *expected])
    for a, b in zip(values[: len(found)], values[len(found) :], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_what_is_the_gradient_by_several_inputs_is_turned_once():
    """Gradients of a sum by its terms are one value."""

    def second(x, y, z):
        whole = pg.sin(x + y) * (x + y) * z
        first = pg.grad(whole, [x, y, z])
        return [d for g in first for d in pg.grad(g, [x, y, z])]

    u, z = 0.3 + 0.4, 1.7
    by_u, by_z = (2 * np.cos(u) - u * np.sin(u)) * z, np.sin(u) + u * np.cos(u)
    expected = [by_u, by_u, by_z, by_u, by_u, by_z, by_z, by_z, 0.0]
    np.testing.assert_allclose(pg.compile(pg.trace(second, 0.0, 0.0, 0.0))(0.3, 0.4, z), expected)


@pytest.mark.parametrize("hold", ["listed", "stopped", "an input"])
def test_gradients_with_something_held_constant_are_not_symmetric(hold):
    """The derivative of what is held counts when the gradient is differentiated, not before."""

    def second(x, y):
        c = pg.sin(x)
        if hold == "an input":
            first = pg.grad(c * y, [x, y], no_grad_vars=[x], materialize_grads=True)
        elif hold == "listed":
            first = pg.grad(c * c * c * y, [x, y], no_grad_vars=[c], materialize_grads=True)
        else:
            first = pg.grad(pg.stop_gradient(c * c * c) * y, [x, y], materialize_grads=True)
        return pg.grad(first[1] * first[1], [x, y], materialize_grads=True)

    found = pg.compile(pg.trace(second, 0.0, 0.0))(0.3, 0.4)
    power = {"an input": 2.0, "listed": 6.0, "stopped": 0.0}[hold]
    expected = power * np.sin(0.3) ** max(power - 1.0, 0.0) * np.cos(0.3)
    np.testing.assert_allclose(found, [expected, 0.0], rtol=1e-12)


# Derivatives of derivatives along a line are taken at once, by Taylor mode.


def softmax_squares(x):
    return pg.sum(pg.softmax(x) ** 2)


def bumps(x):
    return pg.log1p(pg.exp(x * pg.tanh(x))) / (1 + x * x)


def two_layers(x):
    draw = np.random.default_rng(3)
    return pg.sum(pg.tanh(pg.tanh(x @ draw.normal(size=(3, 5))) @ draw.normal(size=(5, 1))))


def rosenbrock(x):
    return pg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logarithm(x):
    return pg.logsumexp(x * np.array([0.5, 1.0, 2.0]))


def covariance(x):
    places = np.array([0.0, 0.4, 1.1, 1.9])
    near = pg.exp(pg.exp(-2.0 * x[0]) * (-0.5 * (places[:, None] - places) ** 2))
    return pg.exp(2.0 * x[1]) * near + pg.exp(2.0 * x[2]) * np.eye(4)


OBSERVED = np.array([0.3, -0.2, 0.5, 0.1])


def likelihood(x):
    """That of a Gaussian process, by a factor of its covariance."""
    factor = pg.linalg.cholesky(covariance(x))
    white = pg.linalg.solve_triangular(factor, OBSERVED, lower=True)
    return -0.5 * pg.sum(white * white) - pg.sum(pg.log(pg.diagonal(factor)))


def likelihood_by_elimination(x):
    matrix = covariance(x)
    solution = pg.linalg.solve(matrix, OBSERVED)
    return -0.5 * (OBSERVED @ solution) - 0.5 * pg.linalg.slogdet(matrix)[1]


def length(x):
    return pg.norm(x)


def deviation(x):
    return pg.std(x * np.array([0.5, 1.0, 2.0]), ddof=1)


def lengths_of_rows(x):
    return pg.norm(pg.stack([x, x * x, x[::-1]]), axis=1)


LINES = [
    softmax_squares,
    logarithm,
    length,
    deviation,
    lengths_of_rows,
    two_layers,
    rosenbrock,
    bumps,
    likelihood_by_elimination,
]


def nested(function, orders, summed):
    """The graphs of gradients of orders 1 to `orders`, one of the other, or of its sum."""
    found = []
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = function(x)
        for k in range(orders):
            y = pg.grad(pg.sum(y) if summed and k else y, x)
            found.append(clean_up(lower(program.graph([y]))))
    return found


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("function", [*LINES, pytest.param(likelihood, marks=pytest.mark.long)])
def test_gradients_of_gradients_do_not_double(function, summed):
    sizes = [equations(g) for g in nested(function, 8, summed)]
    assert sizes[-1] <= sizes[0] * 1.5**7
    # What is left of growth is that of a polynomial: it becomes less with each order.
    assert sizes[-1] <= 1.3 * sizes[-2]


@pytest.mark.parametrize("function", LINES)
def test_derivatives_at_once_are_those_one_by_one(function, monkeypatch):
    order = 3 if function is likelihood_by_elimination else 5
    at_once = nested(function, order, False)
    monkeypatch.setattr("primgraph.derivatives.modes._ORDER_AT_ONCE", 99)
    one_by_one = nested(function, order, False)
    assert equations(at_once[-1]) < equations(one_by_one[-1]) or function is rosenbrock
    for a, b in zip(at_once, one_by_one, strict=True):
        (found,), (expected,) = (pg.compile(g)(AT) for g in (a, b))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("function", [pg.norm, pg.std])
def test_gradients_of_roots_of_sums_of_squares_are_as_small_as_those_of_a_square_root(function):
    def lines(f):
        with pg.Program() as program:
            x = pg.data("x", (3,))
            y = [f(x)]
            for _ in range(7):
                y.append(pg.grad(y[-1], x))
        kernels = [pg.compile(program.graph([y[k]]), style="readable") for k in (4, 6, 7)]
        return [len(k.source.split("def program")[1].splitlines()) for k in kernels]

    found = lines(function)
    for one, other in zip(found, lines(lambda x: pg.sqrt(pg.sum(x * x))), strict=True):
        assert one <= 2 * other
    assert found[2] - found[1] <= 19


@pytest.mark.parametrize("function", [pg.norm, pg.std])
def test_gradients_of_roots_of_sums_of_squares_keep_zeros_and_scales(function):
    with pg.Program() as program:
        x = pg.data("x", (4,))
        y = [function(x)]
        for _ in range(6):
            y.append(pg.grad(y[-1] * np.array([1.0, 2.0, -1.0, 0.5]) if y[1:] else y[-1], x))
    kernel = pg.compile(program.graph(y))
    for at in (0.0, -0.0) if function is pg.norm else (0.0, 3.0):
        for order, slope in enumerate(kernel(np.full(4, at))):
            assert np.all(slope == 0) or (order == 0 and at), f"order {order} at {at}"
    at = np.array([1.0, 3.0, -2.0, 0.75])
    plain = kernel(at)
    # A derivative of order k scales as the power 1 - k; there is no rounding in powers of two.
    for power in (520, -520, 1000):
        moved = kernel(np.ldexp(at, power))
        for order in range(3):
            expected = np.ldexp(plain[order], (1 - order) * power)
            if np.all(np.isfinite(expected)):
                np.testing.assert_allclose(moved[order], expected, rtol=1e-13)
        assert np.all(np.isfinite(moved[2])) or power < 0


def third(build):
    """The value at `AT` of what `build` gives of x, and how many equations it takes."""
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = build(x)
        graph = clean_up(lower(program.graph([y])))
    (found,) = pg.compile(program.graph([y]))(AT)
    return found, equations(graph)


def test_only_the_same_line_is_gone_further_along():
    def along(*seeds):
        def build(x):
            y = bumps(x)
            for seed in seeds:
                y = pg.forward_grad(y, x, None if seed is None else seed(x))
            return y

        return third(build)[0]

    def by_hand(*lengths):
        """The third derivative of each element, along directions of these lengths."""
        return along(None, None, None) * np.prod(lengths)

    two, three = (lambda x: np.full(3, 2.0)), (lambda x: np.full(3, 3.0))
    np.testing.assert_allclose(along(two, two, two), by_hand(2, 2, 2), rtol=1e-10)
    np.testing.assert_allclose(along(two, two, three), by_hand(2, 2, 3), rtol=1e-10)
    np.testing.assert_allclose(along(None, two, None), by_hand(2), rtol=1e-10)
    # A direction that moves with x has derivatives of its own.
    moving = along(lambda x: x, lambda x: x, lambda x: x)
    first, second = along(None), along(None, None)
    expected = AT * first + 3 * AT**2 * second + AT**3 * along(None, None, None)
    np.testing.assert_allclose(moving, expected, rtol=1e-10)


def test_what_is_held_or_given_is_not_taken_for_true():
    def held(x):
        return pg.sum(pg.exp(x) * pg.stop_gradient(pg.sin(x)))

    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = held(x)
        for _ in range(4):
            y = pg.grad(pg.sum(y), x)
    (found,) = pg.compile(program.graph([y]))(AT)
    np.testing.assert_allclose(found, np.exp(AT) * np.sin(AT), rtol=1e-12)

    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = first = pg.grad(pg.sum(pg.exp(x) * pg.sin(x)), x)
        for _ in range(3):
            y = pg.grad(y, x, no_grad_vars=[first] if y is not first else None)
            break
        again = pg.grad(pg.sum(pg.exp(y) * x), x, no_grad_vars=[y])
    (found,) = pg.compile(program.graph([again]))(AT)
    np.testing.assert_allclose(found, np.exp(2 * np.exp(AT) * np.cos(AT)), rtol=1e-12)
