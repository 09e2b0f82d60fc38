"""Linear equations by products with their matrix: values, derivatives, batches and errors."""

import numpy as np
import pytest

import primgraph as pg

RNG = np.random.default_rng(0)
N = 24
GENERAL = 6.0 * np.eye(N) + RNG.standard_normal((N, N))
POSITIVE = GENERAL @ GENERAL.T
B = RNG.standard_normal(N)
SOLVERS = {"cg": POSITIVE, "bicgstab": GENERAL, "gmres": GENERAL}
every_solver = pytest.mark.parametrize("name", SOLVERS)


def solved(name, **options):
    return lambda a, b: getattr(pg.solvers, name)(lambda x: a @ x, b, **options)


@every_solver
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_values_and_gradients_are_those_of_a_dense_solve(name, target, native_cache):
    def loss(solve):
        return lambda a, b: pg.sum(pg.sin(solve(a, b)))

    a = SOLVERS[name]
    found = pg.jit(pg.value_and_grad(loss(solved(name)), argnums=(0, 1)), target=target)(a, B)
    expected = pg.value_and_grad(loss(pg.linalg.solve), argnums=(0, 1))(a, B)
    for mine, theirs in zip(pg.tree.leaves(found), pg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)


@every_solver
def test_second_derivatives_are_those_of_a_dense_solve(name):
    a = SOLVERS[name][:6, :6]
    found = pg.jit(pg.hessian(lambda b: pg.sum(pg.sin(solved(name)(a, b)))))(B[:6])
    expected = pg.hessian(lambda b: pg.sum(pg.sin(pg.linalg.solve(a, b))))(B[:6])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@every_solver
def test_samples_of_a_batch_end_by_themselves(name):
    a = np.stack([SOLVERS[name] + 5.0 * i * np.eye(N) for i in range(3)])
    b = np.stack([B, 0.0 * B, 1e200 * B])
    solve = pg.jit(pg.vmap(solved(name, full_output=True)))
    x, (converged, trips) = solve(a, b)
    assert converged.all()
    assert trips[1] == 0
    assert trips[0] != trips[2]
    expected = np.linalg.solve(a, b[..., None])[..., 0]
    scale = np.abs(expected).max(1, keepdims=True) + (b == 0.0)
    np.testing.assert_allclose(x / scale, expected / scale, atol=1e-9)
    alone, (_, count) = pg.jit(solved(name, full_output=True))(a[2], b[2])
    np.testing.assert_allclose(alone, x[2], rtol=1e-9)
    assert count == trips[2]


def test_cg_takes_a_step_for_each_eigenvalue():
    a = np.diag(np.repeat([1.0, 2.0, 5.0], 8))
    _, (converged, trips) = pg.solvers.cg(a, B, full_output=True)
    assert converged
    assert trips == 3


def test_gmres_solves_where_the_others_break_down():
    turn = np.roll(np.eye(N), 1, 0)
    x, (converged, trips) = pg.solvers.gmres(turn, np.eye(N)[0], full_output=True)
    assert converged
    assert trips == N
    np.testing.assert_allclose(turn @ x, np.eye(N)[0], atol=1e-12)
    assert np.isnan(pg.solvers.bicgstab(turn, np.eye(N)[0])).all()


def test_gmres_restarts_with_many_unknowns():
    n = 150
    a = 5.0 * np.eye(n) + RNG.standard_normal((n, n)) * 0.2
    b = RNG.standard_normal(n)
    x, (converged, trips) = pg.jit(lambda a, b: pg.solvers.gmres(a, b, full_output=True))(a, b)
    assert converged
    assert trips > 20
    np.testing.assert_allclose(a @ x, b, atol=1e-9)


def test_a_singular_matrix_is_not_taken_for_solved():
    for name in SOLVERS:
        singular = np.diag([1.0, 2.0, 0.0])
        assert np.isnan(getattr(pg.solvers, name)(singular, np.ones(3))).all()
        with pytest.raises(pg.LinAlgError, match=f"{name} did not converge within 30 steps"):
            getattr(pg.solvers, name)(singular, np.ones(3), check=True)


def test_nan_is_not_taken_for_solved():
    for name, a in SOLVERS.items():
        assert np.isnan(getattr(pg.solvers, name)(a, np.nan * B)).all()
        assert np.isnan(getattr(pg.solvers, name)(np.nan * a, B)).all()


def test_containers_float32_and_a_beginning():
    def product(x):
        return {"a": 2.0 * x["a"] + pg.sum(x["b"]), "b": 3.0 * x["b"] - x["a"]}

    b = {"a": 1.0, "b": np.ones(3)}
    x = pg.solvers.gmres(product, b)
    assert x["b"].shape == (3,)
    for mine, theirs in zip(pg.tree.leaves(product(x)), pg.tree.leaves(b), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    single = pg.solvers.cg(POSITIVE.astype("f4"), B.astype("f4"))
    assert single.dtype == np.float32
    np.testing.assert_allclose(POSITIVE @ single, B, atol=1e-3)
    exact = np.linalg.solve(POSITIVE, B)
    near = pg.solvers.cg(POSITIVE, B, exact + 1e-3 * np.eye(N)[0])
    np.testing.assert_allclose(near, exact, rtol=1e-12)
    slope = pg.grad(lambda x0: pg.sum(pg.solvers.cg(POSITIVE, B, x0)))(exact)
    assert not slope.any()


def test_open_sizes(native_cache):
    n = pg.dim("n")

    def f(a, b):
        return pg.solvers.gmres(a, b)

    for target in ("numpy", "c"):
        kernel = pg.compile(pg.trace(f, pg.spec((n, n)), pg.spec(n)), target=target)
        for size in (3, 9):
            found = kernel(GENERAL[:size, :size], B[:size])
            np.testing.assert_allclose(GENERAL[:size, :size] @ found, B[:size], atol=1e-10)


@every_solver
def test_no_unknowns_are_solved(name):
    solve = getattr(pg.solvers, name)
    x, (converged, trips) = solve(np.zeros((0, 0)), np.zeros(0), full_output=True)
    assert x.shape == (0,)
    assert converged
    assert trips == 0
    assert pg.root(lambda x: x * x, np.zeros(0), linear_solver=name).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.cg(B, B), pg.ShapeError, "A is a matrix or a function"),
        (lambda s: s.cg(POSITIVE, B[:3]), pg.ShapeError, "inner sizes"),
        (lambda s: s.cg(lambda x: pg.sum(x), B), pg.ShapeError, "but b is"),
        (lambda s: s.gmres(POSITIVE, B, B[:2]), pg.ArgumentError, "x0 has not"),
        (lambda s: s.gmres(POSITIVE, B, tol=2.0), pg.ArgumentError, "tol is between"),
        (lambda s: s.bicgstab(POSITIVE, B, max_trips=0), pg.ArgumentError, "max_trips is"),
        (lambda s: s.bicgstab(POSITIVE, np.arange(N)), pg.DTypeError, "not a float array"),
        (lambda s: s.cg(lambda x: x * x, B), pg.ArgumentError, "A is not linear in x"),
        (lambda s: s.cg(lambda x: x + 1.0, B), pg.ArgumentError, "A is not linear in x"),
        (lambda s: s.cg(lambda x: x, {}), pg.ArgumentError, "nothing in b"),
        (lambda s: s.cg(POSITIVE, B, M=B), pg.ShapeError, "M is a matrix or a function"),
        (lambda s: s.cg(POSITIVE, B, M=lambda r: r * r), pg.ArgumentError, "M is not linear in x"),
        (lambda s: s.cg(POSITIVE, B, M=lambda r: pg.sum(r)), pg.ShapeError, "but b is"),
    ],
)
def test_wrong_arguments_are_told(call, error, message):
    with pytest.raises(error, match=message):
        call(pg.solvers)


def test_bicgstab_begins_again_where_both_residuals_are_orthogonal():
    """Rounding makes them orthogonal after 68 steps, in C by zero exactly."""
    n = 200
    matrix = 2.1 * np.eye(n) - 0.7 * np.eye(n, k=1) - 1.3 * np.eye(n, k=-1)
    b = np.sin(np.arange(n))
    graph = pg.trace(lambda a, b: pg.solvers.bicgstab(a, b, tol=1e-11), pg.spec((n, n)), pg.spec(n))
    for target in ("numpy", "c"):
        x = pg.compile(graph, target=target)(matrix, b)
        assert np.linalg.norm(matrix @ x - b) <= 2e-11 * np.linalg.norm(b)


STIFF = 10.0 ** RNG.uniform(0.0, 4.0, N)
# Matrices that a diagonal nearly inverts, symmetric ones for `cg`.
NEAR = {name: np.diag(STIFF) + 0.02 * SOLVERS[name] for name in SOLVERS}


@every_solver
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_preconditioners_take_fewer_steps_with_the_same_derivatives(name, target, native_cache):
    def solve(a, b, scale, **options):
        return getattr(pg.solvers, name)(a, b, M=lambda r: r / scale, **options)

    def loss(solve):
        return lambda a, b, scale: pg.sum(pg.sin(solve(a, b, scale)))

    a = NEAR[name]
    _, (converged, trips) = solve(a, B, STIFF, full_output=True)
    _, (_, plain) = getattr(pg.solvers, name)(a, B, full_output=True)
    assert converged
    assert 2 * trips < plain or name == "gmres"
    found = pg.jit(pg.grad(loss(solve), argnums=(0, 1, 2)), target=target)(a, B, STIFF)
    exact = pg.grad(loss(lambda a, b, scale: pg.linalg.solve(a, b)), argnums=(0, 1))(a, B, STIFF)
    for mine, theirs in zip(found, [*exact, 0.0 * B], strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-10 * max(1e-9, np.abs(theirs).max()))


@every_solver
def test_second_derivatives_and_batches_with_preconditioners(name):
    a, near = NEAR[name][:6, :6], np.diag(1.0 / STIFF[:6])
    solve = getattr(pg.solvers, name)
    found = pg.jit(pg.hessian(lambda b: pg.sum(pg.sin(solve(a, b, M=near)))))(B[:6])
    expected = pg.hessian(lambda b: pg.sum(pg.sin(pg.linalg.solve(a, b))))(B[:6])
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
    many = pg.jit(pg.vmap(lambda b, m: solve(a, b, M=lambda r: m * r, full_output=True)))
    x, (converged, _) = many(np.stack([B[:6], 3.0 * B[:6]]), np.stack([1.0 / STIFF[:6]] * 2))
    assert converged.all()
    np.testing.assert_allclose(x[1], 3.0 * np.linalg.solve(a, B[:6]), rtol=1e-8)


def test_an_exact_inverse_needs_one_step_and_an_unsymmetric_one_is_transposed():
    a = GENERAL[:5, :5]
    for name in ("gmres", "bicgstab"):
        near = np.linalg.inv(a)
        _, (converged, trips) = getattr(pg.solvers, name)(a, B[:5], M=near, full_output=True)
        assert converged
        assert trips == 1
        # One step of the transposed equation is enough as well.
        options = {"M": near, "max_trips": 1}
        slope = pg.grad(lambda b: pg.sum(getattr(pg.solvers, name)(a, b, **options)))(B[:5])  # noqa: B023
        np.testing.assert_allclose(slope, np.linalg.solve(a.T, np.ones(5)), rtol=1e-9)


def test_sparse_matrices_of_scipy_and_of_ones_own():
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(N, N)).tocsr()
    near = sparse.diags(1.0 / a.diagonal()).tocsr()
    for matrix in (a, sparse.csr_array(a), pg.sparse_matrix(a)):
        x = pg.jit(lambda b, m=matrix: pg.solvers.cg(m, b, M=near))(B)
        np.testing.assert_allclose(a @ x, B, atol=1e-10)
