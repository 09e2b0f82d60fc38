"""Triangular systems of sparse matrices: solutions, and derivatives by both sides."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy.sparse.linalg import spsolve_triangular
from primgraph.transforms import lower, taylor
from primgraph.transforms.pipeline import optimize_graph

sparse = pytest.importorskip("scipy.sparse")

N = 12
FORMATS = ("csr", "csc", "coo", "dia", "lil")


def triangle(is_lower: bool = True, unit: bool = False) -> Any:
    """A sparse triangle, with a diagonal that is not read if `unit`."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((N, N)) < 0.3, rng.standard_normal((N, N)), 0.0)
    dense = np.tril(dense, -1) + np.diag(rng.uniform(1.0, 3.0, N) * (not unit or np.arange(N) % 2))
    return sparse.csr_array(dense if is_lower else dense.T)


def dense_of(matrix: Any, unit: bool) -> np.ndarray:
    found = matrix.toarray()
    return found - np.diag(np.diag(found)) + np.eye(N) if unit else found


KINDS = [(is_lower, unit) for is_lower in (True, False) for unit in (True, False)]


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize(("is_lower", "unit"), KINDS)
def test_solutions_are_those_of_the_dense_matrix(is_lower: bool, unit: bool, target: str) -> None:
    matrix = triangle(is_lower, unit)
    dense, rng = dense_of(matrix, unit), np.random.default_rng(1)
    for format in FORMATS:
        stored = matrix.asformat(format)

        def solve(b: Any, stored: Any = stored) -> Any:
            return spsolve_triangular(stored, b, lower=is_lower, unit_diagonal=unit)

        for shape in ((N,), (N, 3), (N, 1)):
            b = rng.standard_normal(shape)
            expected = np.linalg.solve(dense, b)
            for found in (pg.jit(solve, target=target)(b), solve(pg.tensor(b)).numpy()):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    single = pg.jit(solve, target=target)(b.astype(np.float32))
    np.testing.assert_allclose(single, expected, rtol=1e-11, atol=1e-6)


def test_arrays_are_solved_by_scipy() -> None:
    matrix, b = triangle(), np.arange(1.0, N + 1)
    expected = sparse.linalg.spsolve_triangular(matrix, b)
    np.testing.assert_array_equal(spsolve_triangular(matrix, b), expected)
    np.testing.assert_array_equal(spsolve_triangular(pg.sparse_matrix(matrix), b), expected)
    assert pg.scipy.sparse.csr_array is sparse.csr_array
    assert pg.scipy.sparse.linalg.spsolve is sparse.linalg.spsolve


@pytest.mark.parametrize(("is_lower", "unit"), KINDS)
def test_derivatives_by_values_and_right_hand_sides_are_those_of_dense_systems(
    is_lower: bool, unit: bool
) -> None:
    matrix = triangle(is_lower, unit).tocoo()
    rows, columns, data = matrix.row, matrix.col, matrix.data
    b, ends = np.linspace(0.5, 1.5, N), np.eye(N) * unit

    def loss(solution: Any) -> Any:
        return lambda data, b: pg.sum(pg.sin(solution(data, b)) * b)

    def stored(data: Any, b: Any) -> Any:
        values = pg.sparse_matrix(matrix, data)
        return spsolve_triangular(values, b, lower=is_lower, unit_diagonal=unit)

    def full(data: Any, b: Any) -> Any:
        kept = np.where(rows == columns, 0.0, 1.0) if unit else 1.0
        dense = pg.scatter_add(pg.zeros(N * N), rows * N + columns, data * kept).reshape(N, N)
        return pg.linalg.solve(dense + ends, b)

    for transform in (
        lambda f: pg.grad(f, argnums=(0, 1)),
        lambda f: pg.jacfwd(f, argnums=(0, 1)),
        lambda f: pg.hessian(f, argnums=(0, 1)),
        lambda f: pg.grad(lambda d, b: pg.sum(pg.grad(f)(d, b) ** 2), argnums=(0, 1)),
    ):
        found, expected = (transform(loss(f))(data, b) for f in (stored, full))
        for ours, theirs in zip(pg.tree.leaves(found), pg.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_series_along_a_line_are_those_of_dense_systems() -> None:
    matrix = triangle()
    places, b = matrix.tocoo(), np.linspace(0.5, 1.5, N)
    change = np.linspace(-0.3, 0.3, matrix.nnz)

    def along(t: Any) -> Any:
        moved = pg.sparse_matrix(matrix, places.data + t * change)
        return spsolve_triangular(moved, b * (1 + t))

    def full(t: Any) -> Any:
        slope = sparse.coo_array((change, (places.row, places.col)), shape=(N, N)).toarray()
        return pg.linalg.solve(matrix.toarray() + t * slope, b * (1 + t))

    for k in (1, 3, 6):
        found, expected = (pg.jet(f, 0.1, [1.0] + [0.0] * (k - 1))[1][-1] for f in (along, full))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    graph = lower(pg.trace(along, pg.spec(())))
    middle, last = (len(optimize_graph(taylor(graph, k, [0], seeds=[[1]]))) for k in (4, 7))
    assert last <= (7 / 4) ** 2.45 * middle


def test_batches_of_values_and_right_hand_sides_are_solved_one_by_one() -> None:
    matrix = triangle()
    data = np.stack([matrix.data, 2 * matrix.data, -matrix.data])
    b = np.random.default_rng(2).standard_normal((3, N))
    dense = matrix.toarray()

    def solve(data: Any, b: Any) -> Any:
        return spsolve_triangular(pg.sparse_matrix(matrix, data), b)

    for axes, factors in (((0, 0), (1, 2, -1)), ((0, None), (1, 2, -1)), ((None, 0), (1, 1, 1))):
        given = [x if axis == 0 else x[0] for x, axis in zip((data, b), axes, strict=True)]
        found = pg.vmap(solve, in_axes=axes)(*given)
        for k, factor in enumerate(factors):
            right = b[k] if axes[1] == 0 else b[0]
            np.testing.assert_allclose(found[k], np.linalg.solve(factor * dense, right), rtol=1e-10)


def test_a_kernel_without_scipy_has_the_same_solutions() -> None:
    matrix, b = triangle(is_lower=False), np.ones((N, 2))
    expected = np.linalg.solve(matrix.toarray(), b)
    for right, wanted in ((b, expected), (b[:, 0], expected[:, 0])):
        kernel = pg.jit(lambda b: spsolve_triangular(matrix, b, lower=False), target="numpy")
        with mock.patch.dict(sys.modules, {"scipy.sparse.linalg": None}):
            np.testing.assert_allclose(kernel(right), wanted, rtol=1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_zero_on_the_diagonal_is_an_error_of_the_run(target: str) -> None:
    matrix = triangle()
    solve = pg.jit(
        lambda d: spsolve_triangular(pg.sparse_matrix(matrix, d), np.ones(N)), target=target
    )
    with pytest.raises(np.linalg.LinAlgError):
        solve(np.zeros(matrix.nnz))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda b: spsolve_triangular(triangle(), b, lower=False), pg.ArgumentError, "not upper"),
        (lambda b: spsolve_triangular(triangle(unit=True), b), pg.ArgumentError, "diagonal"),
        (lambda b: spsolve_triangular(triangle()[:3], b), pg.ShapeError, "square"),
        (lambda b: spsolve_triangular(triangle(), b[:3]), pg.ShapeError, "right-hand side"),
        (lambda b: spsolve_triangular(np.eye(N), b), pg.ArgumentError, "sparse matrix"),
    ],
)
def test_systems_that_do_not_fit_are_refused(wrong: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        pg.trace(wrong, pg.spec(N))
