"""Minima, least squares and roots: beside SciPy's, with their derivatives and errors."""

import numpy as np
import pytest

import primgraph as pg

optimize = pytest.importorskip("scipy.optimize")


def rosenbrock(x):
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


PROBLEMS = {
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0, 0.5])),
    "beale": (
        lambda x: (
            (1.5 - x[0] + x[0] * x[1]) ** 2
            + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2
            + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2
        ),
        np.array([1.0, 1.0]),
    ),
    "barrier": (lambda x: pg.sum(x) - pg.sum(pg.log(x)), np.full(4, 1e-3)),
    "flat": (lambda x: pg.sum(pg.log(pg.cosh(x - 3.0))), np.zeros(3)),
    "scaled": (lambda x: 1e6 + pg.sum(np.array([1.0, 1e4]) * (x - 1.0) ** 2), np.zeros(2)),
}
every_method = pytest.mark.parametrize("method", ["lbfgs", "newton"])


@every_method
@pytest.mark.parametrize("name", PROBLEMS)
def test_minima_are_scipys(name, method):
    f, x0 = PROBLEMS[name]
    found, (converged, trips) = pg.jit(
        lambda x: pg.solvers.minimize(f, x, method=method, full_output=True)
    )(x0)
    value = pg.jit(pg.value_and_grad(f))
    best = optimize.minimize(value, x0, jac=True, method="BFGS", options={"gtol": 1e-10})
    assert converged
    assert trips > 0
    np.testing.assert_allclose(found, best.x, rtol=1e-6, atol=1e-7)
    assert value(found)[0] <= value(best.x)[0] + 1e-12 * max(abs(best.fun), 1.0)


@every_method
def test_what_has_no_minimum_is_not_found(method):
    def ends(f, **options):
        return pg.solvers.minimize(f, np.array([-1.2, 1.0]), method=method, **options)

    assert np.isnan(ends(lambda x: pg.sum(x), max_trips=30)).all()
    assert np.isnan(ends(lambda x: pg.sum(x * x) * np.nan)).all()
    point, (converged, trips) = ends(rosenbrock, max_trips=2, full_output=True)
    assert not converged
    assert trips == 2
    assert np.isfinite(point).all()


@every_method
def test_derivatives_of_a_minimum_are_those_of_differences(method):
    def lowest(a):
        f = lambda x: pg.sum((x - a) ** 2) + 0.1 * pg.sum(x**4) + 0.3 * x[0] * x[1]  # noqa: E731
        return pg.solvers.minimize(f, a * 0.0, method=method)

    a = np.array([0.5, 1.0, 2.0])
    found = pg.jit(pg.jacobian(lowest))(a)
    jitted = pg.jit(lowest)
    expected = [(jitted(a + 1e-5 * e) - jitted(a - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-8)
    by_products = pg.jacobian(
        lambda a: pg.solvers.minimize(
            lambda x: pg.sum((x - a) ** 2) + 0.1 * pg.sum(x**4) + 0.3 * x[0] * x[1],
            a * 0.0,
            linear_solver="cg",
        )
    )
    np.testing.assert_allclose(by_products(a), found, atol=1e-9)
    second = pg.jit(pg.hessian(lambda a: pg.sum(lowest(a) ** 2)))(a)
    slope = pg.jit(pg.grad(lambda a: pg.sum(lowest(a) ** 2)))
    expected = [(slope(a + 1e-5 * e) - slope(a - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    np.testing.assert_allclose(second, expected, atol=1e-7)


def test_minima_in_c_batches_and_containers(native_cache):
    starts = np.array([[-1.2, 1.0], [0.0, 0.0], [2.0, 2.0]])
    solve = pg.vmap(lambda x: pg.solvers.minimize(rosenbrock, x, full_output=True))
    for target in ("numpy", "c"):
        found, (converged, trips) = pg.jit(solve, target=target)(starts)
        assert converged.all()
        assert len(set(np.asarray(trips))) == 3
        np.testing.assert_allclose(found, np.ones((3, 2)), atol=1e-9)
    found = pg.solvers.minimize(
        lambda x: (x["a"] - 1.0) ** 2 + pg.sum((x["b"] - x["a"]) ** 2),
        {"a": 0.0, "b": pg.tensor(np.zeros(2))},
    )
    np.testing.assert_allclose(found["b"].numpy(), [1.0, 1.0])


RESIDUALS = {
    "helical": (
        lambda x: pg.stack([
            10.0 * (x[2] - 10.0 * pg.arctan2(x[1], x[0]) / (2.0 * np.pi)),
            10.0 * (pg.sqrt(x[0] ** 2 + x[1] ** 2) - 1.0),
            x[2],
        ]),
        np.array([-1.0, 0.1, 0.0]),
    ),
    # R. Meyer's problem, whose normal equations are badly conditioned.
    "meyer": (
        lambda x: x[0] * pg.exp(x[1] / (45.0 + 5.0 * np.arange(1, 17) + x[2]))
        - np.array([34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147,
                    4427, 3820, 3307, 2872.0]),
        np.array([0.02, 4000.0, 250.0]),
    ),
    "rosenbrock": (lambda x: pg.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]),
                   np.array([-1.2, 1.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", RESIDUALS)
def test_least_squares_are_scipys(name):
    f, x0 = RESIDUALS[name]
    found, (converged, _) = pg.jit(
        lambda x: pg.solvers.least_squares(f, x, max_trips=500, full_output=True)
    )(x0)
    value, slope = pg.jit(f), pg.jit(pg.jacobian(f))
    best = optimize.least_squares(value, x0, slope, method="lm", xtol=1e-14, ftol=1e-14)
    assert converged
    np.testing.assert_allclose(found, best.x, rtol=1e-6, atol=1e-9)


def test_a_fit_follows_its_data(native_cache):
    t = np.linspace(0.0, 1.0, 12)
    y = 2.0 * np.exp(-3.0 * t) + 0.01 * np.cos(40.0 * t)

    def fit(y):
        return pg.solvers.least_squares(lambda x: x[0] * pg.exp(-x[1] * t) - y, np.ones(2))

    jitted = pg.jit(fit)
    expected = [(jitted(y + 1e-5 * e) - jitted(y - 1e-5 * e)) / 2e-5 for e in np.eye(12)]
    for target in ("numpy", "c"):
        found = pg.jit(pg.jacobian(fit), target=target)(y)
        np.testing.assert_allclose(found, np.transpose(expected), atol=1e-6)


def test_an_unknown_that_nothing_depends_on_stays():
    found = pg.solvers.least_squares(lambda x: 2.0 * x[:1] - 3.0, np.array([0.0, 7.0]))
    np.testing.assert_allclose(found, [1.5, 7.0])


def test_broyden_finds_what_newton_finds():
    def f(x):
        return pg.stack([x[0] + 2.0 * x[1] - 2.0, x[0] ** 2 + 4.0 * x[1] ** 2 - 4.0])

    x, (converged, trips) = pg.solvers.broyden(f, np.array([1.0, 2.0]), full_output=True)
    assert converged
    assert trips < 15
    np.testing.assert_allclose(x, [0.0, 1.0], atol=1e-12)
    _, (converged, _) = pg.solvers.broyden(
        lambda x: x * x + 1.0, np.ones(1), max_trips=40, full_output=True
    )
    assert not converged
    assert np.isnan(pg.solvers.broyden(lambda x: x * x + 1.0, np.ones(1), max_trips=40)).all()


def test_broyden_does_not_find_what_is_not_defined():
    for f, x0 in ((lambda x: x * np.nan, 1.0), (pg.log, -1.0), (lambda x: 1.0 / x, 0.0)):
        _, (converged, _) = pg.solvers.broyden(f, np.float64(x0), full_output=True)
        assert not converged
        assert np.isnan(pg.solvers.broyden(f, np.float64(x0)))


def test_lbfgs_finds_a_minimum_whose_value_is_large():
    """The function of Brown and Dennis (More, Garbow, Hillstrom, 1981)."""
    t = 0.2 * np.arange(1, 21)

    def f(x):
        r = (x[0] + t * x[1] - np.exp(t)) ** 2 + (x[2] + x[3] * np.sin(t) - np.cos(t)) ** 2
        return pg.sum(r**2)

    x = pg.jit(lambda x: pg.solvers.minimize(f, x))(np.array([25.0, 5.0, -5.0, -1.0]))
    np.testing.assert_allclose(pg.jit(f)(x), 85822.2, atol=0.05)


def test_open_sizes():
    """Roots and minima of any number of unknowns, and their gradients."""
    solve = pg.solvers
    found = {
        "broyden": lambda y: solve.broyden(lambda x: x**2 - y, y),
        "least_squares": lambda y: solve.least_squares(lambda x: x**2 - y, y),
        "lbfgs": lambda y: solve.minimize(lambda x: pg.sum(x**3 / 3.0 - x * y), y),
    }
    for f in found.values():
        program = pg.trace(pg.value_and_grad(lambda y, f=f: pg.sum(f(y))), pg.spec(pg.dim("n")))
        kernel = pg.compile(program, target="numpy")
        for y in (np.array([4.0]), np.array([2.0, 3.0, 4.0])):
            value, slope = kernel(y)
            np.testing.assert_allclose(value, np.sum(np.sqrt(y)), rtol=1e-10)
            np.testing.assert_allclose(slope, 0.5 / np.sqrt(y), rtol=1e-8)


def test_a_known_solution_has_the_derivatives_of_its_equation():
    def cube_root(a):
        x = pg.fori_loop(0, 60, lambda _, x: x - (x**3 - a) / (3.0 * x**2), 1.0)
        return pg.solvers.implicit(lambda x: x**3 - a, x)

    a = pg.tensor(8.0, requires_grad=True)
    cube_root(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), 1 / 12)
    np.testing.assert_allclose(pg.grad(pg.grad(cube_root))(8.0), -2 / 9 * 8 ** (-5 / 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.minimize(lambda x: x, np.ones(2)), pg.NotScalarError, "one element"),
        (lambda s: s.minimize(3, np.ones(2)), pg.ArgumentError, "f is a function"),
        (lambda s: s.minimize(pg.sum, np.arange(2)), pg.DTypeError, "not a float array"),
        (lambda s: s.minimize(pg.sum, np.ones(2), method="bfgs"), pg.ArgumentError, "method is"),
        (lambda s: s.minimize(pg.sum, np.ones(2), linear_solver="lu"), pg.ArgumentError,
         "minimize: linear_solver is"),
        (lambda s: s.minimize(pg.sum, np.ones(2), tol=-1.0), pg.ArgumentError, "tol is between"),
        (lambda s: s.minimize(pg.sum, {}), pg.ArgumentError, "nothing in x0"),
        (lambda s: s.minimize(pg.sum, np.ones(0)), pg.ArgumentError, "nothing in x0"),
        (lambda s: s.least_squares(lambda x: 3, np.ones(2)), pg.ShapeError, "returns float arrays"),
        (lambda s: s.broyden(lambda x: x[:1], np.ones(2)), pg.ShapeError, "x0 is"),
        (lambda s: s.implicit(lambda x: x[:1], np.ones(2)), pg.ShapeError, "x0 is"),
        (lambda s: s.root(lambda x: x[:1], np.ones(2)), pg.ShapeError, "f returned"),
        (lambda s: s.root(lambda x: x * 1.0, np.arange(2)), pg.DTypeError, "not a float array"),
        (lambda s: s.root(lambda x: x * x, None), pg.ArgumentError, "nothing in x0"),
        (lambda s: s.root(lambda x: x, "1"), pg.ArgumentError, "arrays and numbers, not str"),
        (lambda s: s.root(lambda x: x, 1.0, linear_solver="lu"), pg.ArgumentError,
         "root: linear_solver is"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_told(call, error, message):
    with pytest.raises(error, match=message):
        call(pg.solvers)
