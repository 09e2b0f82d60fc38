"""Linear algebra against NumPy: values, dtypes, shapes, stacks, errors and slopes."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
from density import drawn
from helpers import evaluate, same

import primgraph as pg
from primgraph.ir.interpret import interpret

RNG = np.random.default_rng(20)
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}


def general(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


def regular(*shape: int) -> np.ndarray:
    """Matrices that are far from singular."""
    return general(*shape) + 2 * np.eye(shape[-1])


def positive(*shape: int) -> np.ndarray:
    """Symmetric matrices with eigenvalues from 1 on."""
    x = general(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


def spread(*shape: int) -> np.ndarray:
    """Matrices with singular values, and eigenvalues, apart from each other and from zero."""
    if len(shape) < 2:
        return general(*shape)
    return general(*shape) + np.eye(*shape[-2:]) * (6 * np.arange(1, shape[-1] + 1))


MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
VECTOR_ORDERS = (None, 0, 1, -1, 2, -2, 3, 2.5, np.inf, -np.inf)


class Sample(NamedTuple):
    """A call of a function of a namespace, and what it is to give."""

    name: str
    arrays: tuple[Any, ...]
    reference: Any
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        arrays = [x for a in self.arrays for x in (a if isinstance(a, list) else [a])]
        shapes = " ".join(str(x.shape) for x in arrays)
        return f"{self.name} {shapes} {self.kwargs or ''}".strip()

    def call(self, *arrays: Any) -> Any:
        return getattr(pg.linalg, self.name)(*arrays, **self.kwargs)


def of(name: str, *arrays: Any, reference: Any = None, **kwargs: Any) -> Sample:
    return Sample(name, arrays, reference or getattr(np.linalg, name), kwargs)


def triangular(a: Any, b: Any, trans: Any = 0, **kwargs: Any) -> Any:
    """SciPy's, for each matrix of a stack."""
    a = a.astype(np.float64) if a.dtype.kind == "i" else a
    if a.ndim == 2:
        return scipy.linalg.solve_triangular(a, b, trans, **kwargs).astype(a.dtype)
    return np.stack([triangular(x, b, trans, **kwargs) for x in a])


SAMPLES = [
    *(of("inv", regular(*s)) for s in ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2))),
    *(of("det", regular(*s)) for s in ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2))),
    *(of("slogdet", regular(*s)) for s in ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2))),
    *(of("cholesky", positive(*s)) for s in ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2))),
    of("cholesky", positive(3, 3), upper=True),
    *(
        of("solve", regular(*a), general(*b))
        for a, b in (
            ((3, 3), (3,)),
            ((3, 3), (3, 2)),
            ((3, 3), (5, 3, 2)),
            ((3, 3), (5, 4, 3, 1)),
            ((2, 3, 3), (3,)),
            ((2, 3, 3), (3, 4)),
            ((2, 1, 3, 3), (4, 3, 2)),
            ((0, 0), (0, 2)),
            ((0, 2, 2), (2, 2)),
            ((3, 3), (3, 0)),
        )
    ),
    *(
        of("solve_triangular", regular(*a), general(*b), reference=triangular, **kwargs)
        for a, b, kwargs in (
            ((3, 3), (3,), {}),
            ((3, 3), (3, 2), {"lower": True}),
            ((3, 3), (3, 2), {"trans": "T"}),
            ((3, 3), (3, 2), {"trans": 1, "lower": True, "unit_diagonal": True}),
            ((2, 4, 4), (4, 2), {"lower": True}),
        )
    ),
    of("tensorsolve", regular(6, 6).reshape(2, 3, 6), general(2, 3)),
    of("tensorsolve", regular(6, 6).reshape(2, 3, 3, 2), general(2, 3)),
    of("tensorsolve", regular(6, 6).reshape(2, 6, 3), general(2, 3), axes=(1,)),
    of("tensorinv", regular(6, 6).reshape(2, 3, 6)),
    of("tensorinv", regular(6, 6).reshape(6, 3, 2), ind=1),
    *(of("eigvalsh", spread(*s)) for s in ((3, 3), (2, 4, 4), (0, 0), (0, 2, 2))),
    *(of("eigh", spread(*s)) for s in ((3, 3), (2, 4, 4), (0, 0))),
    of("eigvalsh", spread(3, 3), UPLO="U"),
    *(of("svdvals", spread(*s)) for s in ((3, 3), (3, 2), (2, 2, 4), (3, 0))),
    *(
        of("svd", spread(*s), full_matrices=full)
        for s in ((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 2, 2))
        for full in (True, False)
    ),
    of("svd", spread(3, 2), compute_uv=False),
    *(
        of("qr", spread(*s), mode=mode)
        for s in ((3, 3), (3, 2), (2, 3), (2, 2, 2))
        for mode in ("reduced", "complete", "r")
    ),
    *(of("pinv", spread(*s)) for s in ((3, 3), (3, 2), (2, 3), (2, 2, 2), (3, 0))),
    of("pinv", spread(3, 2), rcond=1e-3),
    *(of("matrix_rank", spread(*s)) for s in ((3, 3), (2, 4, 3), (3,), (0, 2, 2))),
    of("matrix_rank", np.ones((3, 3))),
    of("matrix_rank", np.zeros(3)),
    of("matrix_rank", spread(3, 3), tol=12.0),
    of("lstsq", spread(4, 2), general(4, 3)),
    of("lstsq", spread(4, 2), general(4)),
    of("lstsq", spread(2, 3), general(2)),
    of("lstsq", spread(3, 3), general(3, 1)),
    *(of("cond", spread(3, 3), p=p) for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc")),
    *(of("matrix_power", regular(2, 3, 3), n=n) for n in (-3, -1, 0, 1, 2, 5)),
    of("multi_dot", [general(2, 3), general(3, 4), general(4, 5), general(5, 2)]),
    of("multi_dot", [general(3), general(3, 4), general(4)]),
    of("multi_dot", [general(3, 4), general(4)]),
    *(of("norm", general(3, 4), ord=o) for o in MATRIX_ORDERS),
    *(of("norm", general(2, 3, 4), ord=o, axis=(2, 0), keepdims=True) for o in MATRIX_ORDERS),
    *(of("norm", general(5), ord=o) for o in VECTOR_ORDERS),
    *(of("norm", general(2, 3), ord=o, axis=0, keepdims=True) for o in VECTOR_ORDERS),
    of("norm", general(2, 3, 4)),
    of("matrix_norm", general(2, 3, 4), ord="nuc", keepdims=True),
    of("matrix_norm", general(2, 3, 4)),
    of("vector_norm", general(2, 3, 4), axis=(0, 2), ord=3, keepdims=True),
    of("vector_norm", general(2, 3, 4)),
    of("cross", general(3), general(2, 3)),
    of("cross", general(2, 3), general(2, 3)),
    of("vecdot", general(2, 3), general(4, 1, 3)),
    of("vecdot", general(3, 2), general(3, 2), axis=0),
    of("matrix_transpose", general(2, 3, 4)),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_functions_of_linear_algebra_are_numpys(sample: Sample, dtype: Any) -> None:
    kept = np.float64 if dtype == np.int64 else dtype
    arrays = [
        [converted(x, dtype) for x in a] if isinstance(a, list) else converted(a, dtype)
        for a in sample.arrays
    ]
    try:
        with np.errstate(all="ignore"):
            expected = sample.reference(*arrays, **sample.kwargs)
    except np.linalg.LinAlgError:
        pytest.skip("rounded to integers it has no result")
    several = isinstance(expected, tuple)
    if isinstance(arrays[0], list):
        found = evaluate(lambda *xs: sample.call(xs), *arrays[0])
    else:
        found = evaluate(sample.call, *arrays)
    assert len(found) == (len(expected) if several else 1)
    for mine, theirs in zip(found, expected if several else [expected], strict=True):
        theirs = np.asarray(theirs)
        if theirs.dtype.kind == "i":
            theirs = theirs.astype(mine.dtype)
        same(mine, theirs, TOLERANCE[np.dtype(kept)])


def converted(x: np.ndarray, dtype: Any) -> np.ndarray:
    return (np.round(3 * x) if dtype == np.int64 else x).astype(dtype)


# Of repeated singular values in `matrix_rank`, of numbers that are not 0, and of lists of arrays
# there is nothing to differentiate here; orthogonal vectors beyond the first are arbitrary.
SMOOTH = [
    s
    for s in SAMPLES
    if all(isinstance(a, np.ndarray) and 0 < a.size < 100 for a in s.arrays)
    and s.name != "matrix_rank"
    and s.kwargs.get("ord") != 0
]


@pytest.mark.parametrize("sample", SMOOTH, ids=str)
def test_slopes_of_linear_algebra_in_both_modes_to_order_two(sample: Sample) -> None:
    def whole(*arrays: Any) -> Any:
        if sample.name in ("cholesky", "eigh", "eigvalsh"):
            arrays = tuple(a + pg.swapaxes(a, -1, -2) for a in arrays)
        found = sample.call(*arrays)
        if sample.name == "lstsq":
            return found[0], found[1]
        return found[1] if sample.name == "slogdet" else found

    # One sample of each function to the second order, and others by lot.
    is_first = sample is next(s for s in SMOOTH if s.name == sample.name)
    pg.check_grads(whole, sample.arrays, order=1 + (is_first or drawn(str(sample), 4)))


@pytest.mark.parametrize("special", [np.inf, np.nan, 0.0])
@pytest.mark.parametrize("trans", [0, 1])
def test_a_unit_diagonal_is_not_read(special, trans):
    a = np.array([[special, 7.0, 9.0], [2.0, special, 8.0], [3.0, 4.0, special]])
    b = np.array([1.0, 2.0, 3.0])

    def solution(a, b):
        return pg.linalg.solve_triangular(a, b, trans, lower=True, unit_diagonal=True)

    np.fill_diagonal(usual := a.copy(), 5.0)
    graph = pg.trace(lambda a, b: (x := solution(a, b), *pg.grad(pg.sum(x), [a, b])), a, b)
    expected = interpret(graph, usual, b)
    for compute in (lambda a, b: interpret(graph, a, b), pg.compile(graph)):
        for found, wanted in zip(compute(a, b), expected, strict=True):
            np.testing.assert_allclose(found, wanted, 1e-13, 1e-14)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("size", [63, 64, 65, 150])
def test_large_triangles_are_solved_in_blocks(size: int, trans: int, lower: bool) -> None:
    columns = 3 if size % 2 else 40
    a, b = general(2, size, size) + size * np.eye(size), general(size, columns)
    function = pg.linalg.solve_triangular
    graph = pg.trace(lambda a, b: function(a, b, trans, lower), pg.spec(a.shape), pg.spec(b.shape))
    expected = triangular(a, b, trans, lower=lower)
    np.testing.assert_allclose(pg.compile(graph)(a, b), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("size", [127, 128, 200])
def test_factors_and_slopes_of_large_matrices_are_found_in_blocks(size: int) -> None:
    a, weights = positive(2, size, size), np.tril(general(size, size))
    graph = pg.trace(
        lambda a: pg.value_and_grad(lambda x: pg.sum(pg.linalg.cholesky(x) * weights))(a)[1],
        pg.spec(a.shape),
    )
    factor = np.linalg.cholesky(a)
    within = np.tril(np.swapaxes(factor, -1, -2) @ weights)
    within -= 0.5 * within * np.eye(size)
    left = np.linalg.solve(np.swapaxes(factor, -1, -2), within)
    both = np.linalg.solve(np.swapaxes(factor, -1, -2), np.swapaxes(left, -1, -2))
    expected = 0.5 * (both + np.swapaxes(both, -1, -2))
    np.testing.assert_allclose(pg.compile(graph)(a), expected, rtol=1e-9, atol=1e-12)
    found = pg.compile(pg.trace(lambda x: pg.linalg.cholesky(x), pg.spec(a.shape)))(a)
    np.testing.assert_allclose(found, factor, rtol=1e-12, atol=1e-13)
    assert np.all(np.triu(found, 1) == 0)


def test_factors_of_ill_conditioned_matrices_are_as_close_as_lapacks() -> None:
    x = np.linspace(0, 10, 300)
    matrix = np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-9 * np.eye(300)
    kernel = pg.compile(pg.trace(lambda x: pg.linalg.cholesky(x), pg.spec(matrix.shape)))
    found = kernel(matrix)
    assert np.abs(found @ found.T - matrix).max() < 300 * np.finfo(float).eps
    matrix[250, 250] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        kernel(matrix)


def test_equations_with_the_same_matrix_are_solved_at_once() -> None:
    def several(a: Any, b: Any, c: Any) -> Any:
        first = pg.linalg.solve(a, b)
        return pg.linalg.inv(a), first, pg.linalg.solve(a, c), pg.linalg.solve(a, first)

    a, b, c = regular(3, 3), general(3), general(3, 2)
    kernel = pg.compile(pg.trace(several, a, b, c))
    assert kernel.source.count("np.linalg") == 2
    first = np.linalg.solve(a, b)
    expected = np.linalg.inv(a), first, np.linalg.solve(a, c), np.linalg.solve(a, first)
    for mine, theirs in zip(kernel(a, b, c), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)

    def steps(a: Any, b: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            found = pg.linalg.solve(a + carry[:, None], carry)
            return found, pg.sum(found) + pg.linalg.slogdet(a + carry[:, None])[1]

        return pg.sum(pg.scan(step, b, None, length=3)[1])

    looped = pg.compile(pg.trace(lambda a, b: pg.grad(steps(a, b), [a, b]), a, b))
    assert looped.source.count("np.linalg") == 2
    with pg.transforms.debug():
        pg.check_grads(steps, (a, b), order=1)


@pytest.mark.parametrize("look", [False, True])
def test_linear_algebra_of_tensors(look: bool) -> None:
    a, b = positive(3, 3), general(3)
    x, y = pg.tensor(a, requires_grad=True), pg.tensor(b)
    sign, logabsdet = pg.linalg.slogdet(x)
    solved = pg.linalg.solve(x, y)
    if look:
        np.testing.assert_allclose(solved.numpy(), np.linalg.solve(a, b))
        assert sign.item() == 1.0
    (logabsdet + pg.sum(solved * y)).backward()
    inverse = np.linalg.inv(a)
    expected = inverse.T - np.outer(inverse.T @ b, inverse @ b)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-10)


def test_the_gradient_of_a_cholesky_factor_is_symmetric_though_a_triangle_is_read() -> None:
    for n in (4, 5):
        a = positive(n, n)
        garbage = np.tril(a) + np.triu(general(n, n), 1)
        factor = pg.compile(pg.trace(lambda x: pg.linalg.cholesky(x), pg.spec((n, n))))
        np.testing.assert_array_equal(factor(garbage), factor(a))
        # Python floats factor small matrices, and LAPACK larger ones.
        ulps = 8 if n == 4 else 0
        np.testing.assert_array_max_ulp(factor(a), np.linalg.cholesky(a), ulps)
    logdet = pg.grad(lambda x: 2 * pg.sum(pg.log(pg.diagonal(pg.linalg.cholesky(x)))))
    np.testing.assert_allclose(logdet(a), np.linalg.inv(a), rtol=1e-10)


def test_the_gradient_of_a_determinant_is_there_for_singular_matrices() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    found = pg.grad(lambda x: pg.linalg.det(x))(a)
    minors = [[1, -1], [-1, 1]]
    assert np.sign(minors)[0, 0] == 1
    expected = [[4, 4, -4], [-2, -2, 2], [0, 0, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(pg.grad(lambda x: pg.linalg.det(x))(np.zeros((3, 3))), 0)


# Values that are repeated, where others have NaN.

# Functions with derivatives there, and the order up to which theirs are right.
REPEATED = {
    "sum": (lambda x: pg.sum(pg.linalg.eigvalsh(x)), lambda x: np.trace(x), 2),
    "square of sum": (
        lambda x: pg.sum(pg.linalg.eigvalsh(x)) ** 2,
        lambda x: np.trace(x) ** 2,
        2,
    ),
    "exp": (
        lambda x: pg.sum(pg.exp(pg.linalg.eigvalsh(x))),
        lambda x: np.sum(np.exp(np.linalg.eigvalsh(x))),
        2,
    ),
    "log of eigh": (
        lambda x: pg.sum(pg.log(pg.linalg.eigh(x)[0])),
        lambda x: np.linalg.slogdet(x)[1],
        2,
    ),
    "nuclear norm": (
        lambda x: pg.linalg.norm(x, "nuc"),
        lambda x: np.linalg.norm(x, "nuc"),
        2,
    ),
    "polar factor": (
        lambda x: pg.sum(WEIGHTS * (pg.linalg.svd(x)[0] @ pg.linalg.svd(x)[2])),
        lambda x: np.sum(WEIGHTS * scipy.linalg.polar(x)[0]),
        1,
    ),
    "squares of singular values": (
        lambda x: pg.sum(pg.linalg.svdvals(x) ** 2),
        lambda x: np.sum(x * x),
        2,
    ),
    "pseudo-inverse": (
        lambda x: pg.sum(WEIGHTS * pg.linalg.pinv(x)),
        lambda x: np.sum(WEIGHTS * np.linalg.inv(x)),
        2,
    ),
    "determinant": (lambda x: pg.linalg.det(x), lambda x: np.linalg.det(x), 2),
}
WEIGHTS = general(3, 3)


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("matrix", [2 * np.eye(3), np.diag([1.0, 3.0, 3.0])], ids=["all", "two"])
def test_functions_of_repeated_values_have_slopes(name: str, matrix: np.ndarray) -> None:
    function, reference, order = REPEATED[name]
    along = general(3, 3)
    if "eig" in name or name in ("sum", "square of sum", "exp"):
        along = along + along.T
    gradient = np.asarray(pg.grad(function)(matrix))
    h = 1e-4
    ahead, behind = reference(matrix + h * along), reference(matrix - h * along)
    np.testing.assert_allclose(np.sum(gradient * along), (ahead - behind) / (2 * h), rtol=1e-6)
    second = np.asarray(pg.jvp(pg.grad(function), matrix, along)[1])
    assert np.all(np.isfinite(second))
    if order == 2:
        h = 1e-3
        ahead, behind = reference(matrix + h * along), reference(matrix - h * along)
        expected = (ahead + behind - 2 * reference(matrix)) / h**2
        np.testing.assert_allclose(np.sum(second * along), expected, rtol=1e-4, atol=1e-4)


def test_eigenvectors_of_the_upper_triangle() -> None:
    a = spread(3, 3)
    w, v = (r.numpy() for r in pg.linalg.eigh(pg.tensor(a), "U"))
    np.testing.assert_allclose(v * w @ v.T, np.triu(a) + np.triu(a, 1).T, rtol=1e-12, atol=1e-12)
    with pytest.raises(pg.ArgumentError, match="UPLO 'L' or 'U'"):
        pg.linalg.eigh(pg.tensor(a), "X")


def test_vectors_of_repeated_values_do_not_turn_towards_each_other() -> None:
    along = general(3, 3)
    for function in (lambda x: pg.linalg.eigh(x)[1], lambda x: pg.linalg.svd(x)[0]):
        value, slope = pg.jvp(function, np.eye(3), along + along.T)
        np.testing.assert_array_equal(slope, np.zeros((3, 3)))
        assert np.all(np.isfinite(value))


def test_singular_values_of_rank_deficient_matrices_have_slopes() -> None:
    matrix = np.outer([1.0, 2.0, 2.0], [3.0, 0.0, 4.0])
    for order in ("nuc", 2, "fro"):
        gradient = np.asarray(pg.grad(lambda x, order=order: pg.linalg.norm(x, order))(matrix))
        assert np.all(np.isfinite(gradient))
    largest = np.asarray(pg.grad(lambda x: pg.linalg.norm(x, 2))(matrix))
    np.testing.assert_allclose(largest, matrix / 15.0, atol=1e-12)
    assert np.all(np.isfinite(pg.grad(lambda x: pg.linalg.norm(x, 3))(np.zeros(3))))


@pytest.mark.parametrize("order", [0.5, 1.5, 2.5, 3])
def test_slopes_of_norms_of_any_order_at_zeros_are_finite(order: float) -> None:
    x = np.array([0.0, 2.0, -3.0])
    for given in (x, 0 * x):
        gradient = np.asarray(pg.grad(lambda v: pg.linalg.norm(v, order))(given))
        assert gradient[0] == 0
        assert np.all(np.isfinite(gradient))
    gradient = np.asarray(pg.grad(lambda v: pg.linalg.norm(v, order))(x))
    size = np.linalg.norm(x, order)
    expected = np.sign(x[1:]) * (np.abs(x[1:]) / size) ** (order - 1)
    np.testing.assert_allclose(gradient[1:], expected, rtol=1e-12)


SINGULAR = [
    lambda x: pg.linalg.solve(x, np.ones(2)),
    lambda x: pg.linalg.inv(x),
    lambda x: pg.linalg.cholesky(x - 1.0),
    lambda x: pg.linalg.solve_triangular(x - 1.0, np.ones(2)),
]


@pytest.mark.parametrize("function", SINGULAR)
def test_a_singular_matrix_is_numpys_error_with_the_line(function: Any) -> None:
    kernel = pg.compile(pg.trace(function, pg.spec((2, 2))))
    for run in (kernel, lambda x: function(pg.tensor(x)).numpy()):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            run(np.ones((2, 2)))
        assert isinstance(caught.value, pg.LinAlgError)
        assert "test_linalg.py" in str(caught.value)


def test_a_singular_matrix_has_a_determinant_and_its_logarithm() -> None:
    assert evaluate(lambda x: pg.linalg.det(x), np.ones((2, 2))) == [0.0]
    sign, logabsdet = evaluate(lambda x: pg.linalg.slogdet(x), np.ones((2, 2)))
    assert (sign, logabsdet) == (0.0, -np.inf)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pg.linalg.inv(x[0]), pg.ShapeError, "inv takes matrices"),
        (lambda x: pg.linalg.inv(x), pg.ShapeError, "inv takes square matrices, not f64"),
        (lambda x: pg.linalg.solve(x @ x.T, x.T), pg.ShapeError, "2 unknowns, 3 rows"),
        (lambda x: pg.linalg.solve(x @ x.T, 1.0), pg.ShapeError, "at least one axis"),
        (
            lambda x: pg.linalg.solve(pg.stack([x @ x.T] * 3), pg.stack([x] * 2)),
            pg.ShapeError,
            "the stacks differ",
        ),
        (lambda x: pg.linalg.det(pg.astype(x, "f2")), pg.DTypeError, "takes no float16"),
        (
            lambda x: pg.linalg.solve_triangular(x @ x.T, x, trans=3),
            pg.ArgumentError,
            "takes trans 0, 1, 2, 'N', 'T' or 'C'",
        ),
        (lambda x: pg.linalg.tensorinv(x, ind=0), pg.ArgumentError, "positive number"),
        (lambda x: pg.linalg.tensorinv(x, ind=1), pg.ShapeError, "it is not square"),
        (lambda x: pg.linalg.tensorsolve(x, x), pg.ShapeError, "not as many equations"),
    ],
)
def test_what_does_not_fit_is_told_with_the_line(call: Any, error: Any, message: str) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("x", (2, 3)))
    assert "test_linalg.py" in str(caught.value)


def test_stacks_of_unknown_size() -> None:
    n = pg.dim("n")
    graph = pg.trace(lambda a, b: pg.linalg.solve(a, b), pg.spec((n, 3, 3)), pg.spec((n, 3, 2)))
    kernel = pg.compile(graph)
    for size in (0, 1, 4):
        a, b = regular(size, 3, 3), general(size, 3, 2)
        np.testing.assert_allclose(kernel(a, b), np.linalg.solve(a, b), rtol=1e-12)


def test_matrices_of_unknown_size() -> None:
    n = pg.dim("n")

    def likelihood(k: Any, y: Any) -> Any:
        factor = pg.linalg.cholesky(k)
        white = pg.linalg.solve_triangular(factor, y, lower=True)
        return pg.sum(white * white) + 2 * pg.sum(pg.log(pg.diagonal(factor)))

    graph = pg.trace(lambda k, y: pg.grad(likelihood(k, y), k), pg.spec((n, n)), pg.spec((n,)))
    kernel = pg.compile(graph)
    for size in (1, 3, 70):
        k, y = positive(size, size), general(size)
        inverse = np.linalg.inv(k)
        expected = inverse - np.outer(inverse @ y, inverse @ y)
        np.testing.assert_allclose(kernel(k, y), expected, rtol=1e-8, atol=1e-10)


def test_batches_of_linear_algebra_are_loops() -> None:
    a, b = regular(3, 3), general(5, 3, 2)
    mapped = pg.vmap(lambda y: pg.linalg.solve(a, y))(b)
    np.testing.assert_allclose(mapped, np.linalg.solve(a, b), rtol=1e-12)


def test_one_matrix_for_many_right_hand_sides_is_factored_once() -> None:
    graph = pg.trace(lambda a, b: pg.linalg.solve(a, b), pg.spec((3, 3)), pg.spec((5, 4, 3, 2)))
    (solved,) = [e for e in graph.body if e.op.name == "solve"]
    assert [v.shape for v in solved.inputs] == [(3, 3), (3, 40)]


def test_one_factorisation_serves_value_and_derivative() -> None:
    functions = (
        ("eigh", "eigvalsh", lambda x: pg.sum(pg.exp(pg.linalg.eigvalsh(x)))),
        ("svd", "compute_uv=False", lambda x: pg.linalg.norm(x, "nuc")),
        ("svd", "compute_uv=False", lambda x: pg.sum(pg.linalg.svdvals(x) ** 3)),
    )
    for whole, alone, function in functions:
        value = pg.compile(pg.trace(function, pg.spec((3, 3)))).source
        assert value.count("np.linalg") == 1
        assert alone in value
        both = pg.compile(pg.trace(lambda x, f=function: (f(x), pg.grad(f(x), x)), pg.spec((3, 3))))
        assert both.source.count("np.linalg") == 1
        assert f"np.linalg.{whole}(" in both.source

    def likelihood(k: Any, y: Any) -> Any:
        factor = pg.linalg.cholesky(k)
        white = pg.linalg.solve_triangular(factor, y, lower=True)
        return pg.sum(white * white) + 2 * pg.sum(pg.log(pg.diagonal(factor)))

    kernel = pg.compile(
        pg.trace(
            lambda k, y: (likelihood(k, y), pg.grad(likelihood(k, y), k)),
            pg.spec((3, 3)),
            pg.spec((3,)),
        )
    )
    assert kernel.source.count("np.linalg.cholesky") == 1


def test_samples_of_a_stack_stay_apart() -> None:
    def solved(a: Any) -> Any:
        return pg.linalg.solve(a, np.ones((4, 2, 1))) * pg.linalg.det(a)[:, None, None]

    a = regular(4, 2, 2)
    found = pg.batched_jacobian(solved, a)
    assert np.shape(found)[0] == 4
    for k in range(4):
        expected = pg.jacobian(
            lambda x: pg.linalg.solve(x, np.ones((2, 1))) * pg.linalg.det(x), a[k]
        )
        np.testing.assert_allclose(np.ravel(found[k]), np.ravel(expected), rtol=1e-10, atol=1e-15)


def test_a_file_with_linear_algebra_needs_numpy_alone(tmp_path: Any) -> None:
    def likelihood(k: Any, y: Any) -> Any:
        factor = pg.linalg.cholesky(k)
        return pg.sum(pg.linalg.solve_triangular(factor, y, lower=True) ** 2)

    kernel = pg.compile(pg.trace(pg.grad(likelihood), pg.spec((3, 3)), pg.spec((3,))))
    kernel.save(tmp_path / "saved.py")
    text = (tmp_path / "saved.py").read_text()
    assert "primgraph" not in text.partition("\n")[2].partition("import")[2].partition("def")[0]
    space: dict[str, Any] = {}
    with warnings.catch_warnings():
        exec(compile(text, "saved.py", "exec"), space)
    k, y = positive(3, 3), general(3)
    name = text.rpartition("def ")[2].partition("(")[0]
    np.testing.assert_allclose(space[name](k, y), kernel(k, y), rtol=1e-12)


def test_diagonals_are_those_of_each_matrix_of_a_stack():
    a = np.arange(24.0).reshape(2, 3, 4)
    for found, expected in (
        (pg.linalg.diagonal(pg.tensor(a), offset=1), np.linalg.diagonal(a, offset=1)),
        (pg.linalg.trace(pg.tensor(a)), np.linalg.trace(a)),
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_condition_numbers_of_singular_matrices_are_infinite() -> None:
    matrices = np.stack([2 * np.eye(4), np.zeros((4, 4)), np.ones((4, 4)), 1e-110 * np.eye(4)])
    for order in (1, -1, np.inf, -np.inf, "fro"):
        found = pg.linalg.cond(pg.tensor(matrices), order).numpy()
        np.testing.assert_allclose(found, np.linalg.cond(matrices, order), rtol=1e-14)
        assert pg.linalg.cond(matrices[1], order).item() == np.inf
    for order in (None, 2, -2):
        found = pg.linalg.cond(matrices[:2], order).numpy()
        np.testing.assert_array_equal(found, [1.0, np.inf])
    pg.check_grads(lambda a: pg.linalg.cond(a, 1), [regular(2, 3, 3)], order=1)


def test_ranks_by_tolerances_of_each_matrix() -> None:
    stack, rtol = np.stack([np.diag([1.0, 1e-3]), np.diag([4.0, 1e-3])]), np.array([1e-2, 1e-5])
    for given in ({"rtol": rtol}, {"tol": rtol}, {"rtol": 1e-2}):
        expected = np.linalg.matrix_rank(stack, **given)
        np.testing.assert_array_equal(pg.linalg.matrix_rank(stack, **given), expected)
