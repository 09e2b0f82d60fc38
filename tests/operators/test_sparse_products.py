"""Products of sparse constants with variables and tensors, and derivatives by their values."""

from __future__ import annotations

import numpy as np
import pytest

import primgraph as pg

sparse = pytest.importorskip("scipy.sparse")

FORMATS = ("csr", "csc", "coo", "dia", "lil")


def _matrix(format="csr", shape=(5, 4), seed=0):
    """A matrix with an empty row, and in the format "coo" with an element that is there twice."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < 0.5, rng.standard_normal(shape), 0.0)
    dense[2] = 0.0
    found = sparse.coo_array(dense)
    if format != "coo":
        return found.asformat(format)
    rows, columns = np.append(found.row, found.row[0]), np.append(found.col, found.col[0])
    return sparse.coo_array((np.append(found.data, 0.5), (rows, columns)), shape=shape)


def _both(function, *arrays):
    """What a compiled function and what tensors compute."""
    return pg.jit(function)(*arrays), function(*map(pg.tensor, arrays)).numpy()


@pytest.mark.parametrize("format", FORMATS)
def test_products_with_sparse_constants_are_those_of_dense_ones(format):
    matrix = _matrix(format)
    dense, rng = matrix.toarray(), np.random.default_rng(1)
    for function, expected, shape in [
        (lambda x: matrix @ x, lambda x: dense @ x, (4,)),
        (lambda x: matrix @ x, lambda x: dense @ x, (4, 3)),
        (lambda x: matrix @ x, lambda x: dense @ x, (4, 1)),
        (lambda x: x @ matrix, lambda x: x @ dense, (5,)),
        (lambda x: x @ matrix, lambda x: x @ dense, (3, 5)),
        (lambda x: x @ matrix, lambda x: x @ dense, (2, 3, 5)),
        (lambda x: matrix.tocsr().dot(x), lambda x: dense @ x, (4,)),
        (lambda x: matrix.T @ (matrix @ x), lambda x: dense.T @ (dense @ x), (4,)),
    ]:
        x = rng.standard_normal(shape)
        for found in _both(function, x):
            np.testing.assert_allclose(found, expected(x), rtol=1e-13, atol=1e-13)


def test_derivatives_go_through_products_with_sparse_constants():
    matrix = _matrix()
    dense, x = matrix.toarray(), np.linspace(0.5, 2.0, 4)

    def loss(matrix):
        return lambda x: pg.sum(pg.sin(matrix @ (x * x)) ** 2)

    for transform in (pg.grad, pg.hessian, lambda f: pg.jacfwd(pg.grad(f))):
        found, expected = transform(loss(matrix))(x), transform(loss(dense))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    many = np.stack([x, 2 * x])
    found = pg.vmap(lambda x: matrix @ x)(many)
    np.testing.assert_allclose(found, many @ dense.T, rtol=1e-13, atol=1e-13)
    y = pg.tensor(x, requires_grad=True)
    pg.sum((matrix @ y) ** 2).backward()
    np.testing.assert_allclose(y.grad.numpy(), 2 * dense.T @ dense @ x, rtol=1e-12, atol=1e-12)


def test_jacobians_have_the_pattern_of_the_constant():
    matrix = _matrix()
    dense, x = matrix.toarray(), np.linspace(0.5, 2.0, 4)
    pattern = pg.jacobian_sparsity(lambda x: matrix @ pg.sin(x), pg.spec(4))
    np.testing.assert_array_equal(pattern.to_dense(), dense != 0)
    found = pg.sparse_jacobian(lambda x: matrix @ pg.sin(x))(x)
    np.testing.assert_allclose(found.toarray(), dense * np.cos(x), rtol=1e-13)
    second = pg.sparse_hessian(lambda x: x @ (matrix.T @ (matrix @ x)))(x)
    np.testing.assert_allclose(second.toarray(), 2 * dense.T @ dense, rtol=1e-12, atol=1e-12)


def test_products_of_a_tridiagonal_constant_have_three_colours():
    n = 200
    laplacian = sparse.diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)],
                                   offsets=[-1, 0, 1]).tocsr()  # fmt: skip
    found = pg.sparse_jacobian(lambda x: laplacian @ x**3)(np.ones(n))
    assert (found.nnz, found.coloring.count) == (3 * n - 2, 3)


def test_tensors_are_multiplied_by_the_values_of_the_moment():
    matrix, x = _matrix("csr"), np.linspace(0.5, 2.0, 4)
    for scale in (1.0, 2.0, 3.0):
        matrix.data[:] = scale
        for found in (matrix @ pg.tensor(x), (2 * matrix).tocsr() @ pg.tensor(x) / 2):
            np.testing.assert_allclose(found.numpy(), matrix.toarray() @ x, rtol=1e-13)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_compiled_products_agree_with_those_of_scipy(target):
    matrix = sparse.random_array((60, 50), density=0.1, rng=np.random.default_rng(3), format="csr")
    x = np.random.default_rng(4).standard_normal(50)
    compiled = pg.jit(lambda x: matrix @ x, target=target)
    np.testing.assert_allclose(compiled(x), matrix @ x, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("format", FORMATS)
def test_values_of_a_sparse_matrix_may_be_variables(format):
    structure = _matrix(format)
    places = structure.tocoo()
    data, x = np.linspace(1.0, 2.0, places.data.size), np.linspace(-1.0, 1.0, 4)

    def product(data):
        return pg.sparse_matrix(structure, data) @ x

    expected = sparse.coo_array((data, (places.row, places.col)), shape=places.shape).toarray()
    np.testing.assert_allclose(pg.sparse_matrix(structure, data).toarray(), expected)
    for found in _both(product, data):
        np.testing.assert_allclose(found, expected @ x, rtol=1e-13)
    jacobian = np.zeros((5, data.size))
    jacobian[places.row, np.arange(data.size)] = x[places.col]
    np.testing.assert_allclose(pg.jacobian(product)(data), jacobian, rtol=1e-13)
    np.testing.assert_allclose(pg.sparse_matrix(structure).toarray(), structure.toarray())


def test_the_structure_of_a_sparse_matrix_may_be_a_pattern():
    pattern = pg.Pattern.from_coo([1, 0, 1], [2, 1, 0], (2, 3))
    assert pg.sparse_matrix(pattern).toarray().tolist() == [[0, 1, 0], [1, 0, 1]]
    found = pg.grad(lambda d: pg.sum(pg.sparse_matrix(pattern, d) @ np.arange(3.0)))(np.ones(3))
    assert found.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda x: _matrix() @ x[:3], pg.ShapeError),
        (lambda x: x[:3] @ _matrix(), pg.ShapeError),
        (lambda x: pg.sin(_matrix()), pg.ArgumentError),
        (lambda x: pg.sparse_matrix(np.eye(2), x), pg.ArgumentError),
        (lambda x: pg.sparse_matrix(_matrix(), x), pg.ArgumentError),
        (lambda x: pg.sparse_matrix(_matrix("coo"), x), pg.ArgumentError),
        (lambda x: pg.sparse_matrix(pg.Pattern.from_dense(np.eye(2)), x), pg.ArgumentError),
    ],
)
def test_sparse_constants_that_do_not_fit_are_refused(wrong, error):
    with pytest.raises(error):
        pg.trace(wrong, pg.spec(4))


def test_an_elementwise_function_of_a_sparse_constant_names_the_product():
    with pytest.raises(pg.ArgumentError, match="A @ x is a product"):
        pg.trace(lambda x: _matrix() + x, pg.spec(4))


def test_vectors_of_scipy_are_refused() -> None:
    vector = pytest.importorskip("scipy.sparse").coo_array(np.array([1.0, 0.0, 2.0]))
    with pytest.raises(pg.ShapeError, match="2 axes"):
        vector @ pg.tensor([1.0, 2.0, 3.0])
