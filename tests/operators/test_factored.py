"""Factors and functions of matrices against SciPy: values, dtypes, slopes, names, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from density import drawn
from helpers import evaluate, same

import primgraph as pg
from primgraph.scipy import linalg as drop_in

RNG = np.random.default_rng(8)
L = pg.linalg


def general(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


def regular(n: int) -> np.ndarray:
    return general(n, n) * 0.4 + 2 * np.eye(n)


POSITIVE = (lambda a: a @ a.T + np.eye(4))(general(4, 4))
BANDS = general(4, 5) + np.array([0, 0, 4, 0])[:, None]
REAL = (lambda v: v @ np.diag([1.0, 2.0, 4.0, 7.0]) @ np.linalg.inv(v))(regular(4))

# A function of arrays, SciPy's of the same, and the arrays.
SAMPLES: dict[str, tuple[Any, Any, tuple[np.ndarray, ...]]] = {
    "expm": (L.expm, scipy.linalg.expm, (regular(4),)),
    "expm of a stack": (L.expm, scipy.linalg.expm, (np.stack([regular(3), 9 * regular(3)]),)),
    "expm of none": (L.expm, lambda a: a, (np.zeros((0, 0)),)),
    "sqrtm": (L.sqrtm, scipy.linalg.sqrtm, (regular(4),)),
    "sqrtm of a large one": (L.sqrtm, scipy.linalg.sqrtm, (1e6 * regular(3),)),
    "logm": (L.logm, scipy.linalg.logm, (regular(4),)),
    "logm of a large one": (L.logm, scipy.linalg.logm, (1e3 * regular(3),)),
    "eigvals": (
        lambda a: pg.sort(L.eigvals(a)),
        lambda a: np.sort(np.linalg.eigvals(a)),
        (REAL,),
    ),
    "eig": (
        lambda a: (lambda r: r[1] * r[0] @ L.inv(r[1]))(L.eig(a)),
        lambda a: a,
        (REAL,),
    ),
    "lu": (L.lu, scipy.linalg.lu, (general(4, 4),)),
    "lu of tall ones": (L.lu, scipy.linalg.lu, (general(2, 4, 3),)),
    "lu of a wide one": (L.lu, scipy.linalg.lu, (general(2, 4),)),
    "lu, permuted": (
        lambda a: L.lu(a, permute_l=True),
        lambda a: scipy.linalg.lu(a, permute_l=True),
        (general(3, 3),),
    ),
    "lu, indices": (
        lambda a: L.lu(a, p_indices=True),
        lambda a: scipy.linalg.lu(a, p_indices=True),
        (general(4, 3),),
    ),
    "lu_solve": (
        lambda a, b: L.lu_solve(L.lu_factor(a), b),
        lambda a, b: np.linalg.solve(a, b),
        (regular(4), general(4)),
    ),
    "lu_solve with the transpose": (
        lambda a, b: L.lu_solve(L.lu_factor(a), b, trans=1),
        lambda a, b: np.linalg.solve(a.T, b),
        (general(4, 4), general(4, 2)),
    ),
    "cho_solve": (
        lambda a, b: L.cho_solve(L.cho_factor(a + a.T), b),
        lambda a, b: np.linalg.solve(a + a.T, b),
        (POSITIVE, general(4)),
    ),
    "cho_solve, lower": (
        lambda a, b: L.cho_solve(L.cho_factor(a + a.T, lower=True), b),
        lambda a, b: np.linalg.solve(a + a.T, b),
        (POSITIVE, general(4, 2)),
    ),
    "toeplitz": (L.toeplitz, scipy.linalg.toeplitz, (general(3),)),
    "toeplitz of two": (L.toeplitz, scipy.linalg.toeplitz, (general(3), general(4))),
    "solve_toeplitz": (
        L.solve_toeplitz,
        scipy.linalg.solve_toeplitz,
        (general(4) + np.array([4, 0, 0, 0]), general(4)),
    ),
    "solve_toeplitz of two": (
        lambda c, r, b: L.solve_toeplitz((c, r), b),
        lambda c, r, b: scipy.linalg.solve_toeplitz((c, r), b),
        (general(3) + np.array([4, 0, 0]), general(3), general(3, 2)),
    ),
    "solve_banded": (
        lambda ab, b: L.solve_banded((1, 2), ab, b),
        lambda ab, b: scipy.linalg.solve_banded((1, 2), ab, b),
        (BANDS, general(5)),
    ),
    "block_diag": (
        L.block_diag,
        scipy.linalg.block_diag,
        (general(2, 2), general(3), general(1, 2)),
    ),
    "solve_sylvester": (
        L.solve_sylvester,
        scipy.linalg.solve_sylvester,
        (regular(3), regular(2), general(3, 2)),
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_values_and_slopes_are_scipys(name: str) -> None:
    function, reference, arrays = SAMPLES[name]
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 1e-4)):
        given = [a.astype(dtype) for a in arrays]
        with warnings.catch_warnings():
            # SciPy tells that its logarithms are not exact.
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = reference(*given)
        found = evaluate(function, *given)
        for mine, theirs in zip(
            found, expected if isinstance(expected, tuple) else [expected], strict=True
        ):
            theirs = np.real(np.asarray(theirs))
            same(mine, theirs.astype(mine.dtype), tolerance)
    if all(a.size for a in arrays):
        # To the second order by lot: primitives, of which these are made, all are.
        order = 1 + drawn(name, 3)
        pg.check_grads(lambda *xs: _floats(function(*xs)), arrays, order=order)


def _floats(found: Any) -> Any:
    several = isinstance(found, tuple)
    return [x for x in found if x.dtype.kind == "f"] if several else found


NAMES = {
    "solve": (lambda s, x: s.solve(x, np.ones(4), assume_a="pos"), POSITIVE),
    "cholesky": (lambda s, x: s.cholesky(x), POSITIVE),
    "cholesky, lower": (lambda s, x: s.cholesky(x, lower=True, check_finite=False), POSITIVE),
    "cho_solve": (lambda s, x: s.cho_solve(s.cho_factor(x), np.ones(4)), POSITIVE),
    "solve_triangular": (
        lambda s, x: s.solve_triangular(x, np.ones(4), lower=True, overwrite_b=True),
        POSITIVE,
    ),
    "expm": (lambda s, x: s.expm(x), regular(3)),
    "inv": (lambda s, x: s.inv(x), regular(3)),
    "toeplitz": (lambda s, x: s.toeplitz(x), general(3)),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_scipy_take_variables_and_arrays(name: str) -> None:
    function, array = NAMES[name]
    expected = function(scipy.linalg, array)
    np.testing.assert_array_equal(function(drop_in, array), expected)
    (found,) = evaluate(lambda x: function(drop_in, x), array)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_functions_that_were_written_for_scipy_are_traced_as_they_are() -> None:
    def likelihood(k: Any, y: Any) -> Any:
        factor = scipy.linalg.cho_factor(k, lower=True)
        weights = scipy.linalg.cho_solve(factor, y)
        return 0.5 * np.dot(y, weights) + np.sum(np.log(np.diag(factor[0])))

    y = general(4)
    value, slope = pg.value_and_grad(likelihood)(POSITIVE, y)
    np.testing.assert_allclose(value, likelihood(POSITIVE, y), rtol=1e-12)
    inverse = np.linalg.inv(POSITIVE)
    expected = 0.5 * inverse - 0.5 * np.outer(inverse @ y, inverse @ y)
    np.testing.assert_allclose(slope, expected, rtol=1e-9)


def test_a_file_with_functions_of_matrices_needs_numpy_alone(tmp_path: Any) -> None:
    kernel = pg.compile(pg.trace(lambda x: pg.grad(pg.sum(L.expm(x) + L.logm(x)), x), regular(3)))
    kernel.save(tmp_path / "saved.py")
    space: dict[str, Any] = {}
    text = (tmp_path / "saved.py").read_text()
    exec(compile(text, "saved.py", "exec"), space)
    name = text.rpartition("def ")[2].partition("(")[0]
    a = regular(3)
    np.testing.assert_allclose(space[name](a), kernel(a), rtol=1e-12)


def test_functions_of_matrices_in_batches_and_of_tensors() -> None:
    stack = np.stack([regular(3), regular(3)])
    np.testing.assert_allclose(pg.vmap(L.expm)(stack), scipy.linalg.expm(stack), rtol=1e-12)
    x = pg.tensor(stack[0], requires_grad=True)
    pg.trace(L.logm(x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.linalg.inv(stack[0]).T, rtol=1e-10)


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (L.sqrtm, -np.eye(2)),
        (L.logm, -np.eye(2)),
        (L.eig, np.array([[0.0, 1.0], [-1.0, 0.0]])),
        (L.eigvals, np.array([[0.0, 1.0], [-1.0, 0.0]])),
    ],
)
def test_what_has_no_real_result_is_an_error_of_the_run(function: Any, array: Any) -> None:
    kernel = pg.compile(pg.trace(lambda x: function(x), pg.spec((2, 2))))
    with pytest.raises(np.linalg.LinAlgError, match=r"real|ingular") as caught:
        kernel(array)
    assert "test_factored.py" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: L.expm(x), pg.ShapeError, "expm takes square matrices"),
        (lambda x: L.lu(x[0]), pg.ShapeError, "lu takes matrices"),
        (lambda x: L.toeplitz(x), pg.ShapeError, "toeplitz takes vectors"),
        (lambda x: L.solve_banded((1, 1), x, x[0]), pg.ShapeError, "takes 3 rows of diagonals"),
        (lambda x: L.block_diag(pg.stack([x])), pg.ShapeError, "block_diag takes matrices"),
        (lambda x: L.solve_sylvester(x, x, x), pg.ShapeError, "takes square matrices"),
        (lambda x: L.expm(pg.astype(x @ x.T, "f2")), pg.DTypeError, "takes no float16"),
    ],
)
def test_what_does_not_fit_is_told_with_the_line(call: Any, error: Any, message: str) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("x", (2, 3)))
    assert "test_factored.py" in str(caught.value)


def test_functions_of_matrices_have_all_derivatives_at_repeated_eigenvalues() -> None:
    """The trace of the exponential is the sum of those of the eigenvalues, however these part."""
    along = general(3, 3)
    along = along + along.T
    for matrix in (2 * np.eye(3), np.diag([1.0, 3.0, 3.0])):
        for function, values in ((L.expm, np.exp), (L.logm, np.log), (L.sqrtm, np.sqrt)):

            def whole(x: Any, function: Any = function) -> Any:
                return pg.sum(pg.diagonal(function(x)))

            def by_values(h: float, matrix: Any = matrix, values: Any = values) -> Any:
                return np.sum(values(np.linalg.eigvalsh(matrix + h * along)))

            second = np.asarray(pg.jvp(pg.grad(whole), matrix, along)[1])
            h = 1e-3
            expected = (by_values(h) + by_values(-h) - 2 * by_values(0)) / h**2
            np.testing.assert_allclose(np.sum(second * along), expected, rtol=1e-4)
