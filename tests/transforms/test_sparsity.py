"""Patterns of Jacobians and Hessians, found from graphs: exact where structure is known."""

from __future__ import annotations

import numpy as np
import pytest

import primgraph as pg
from primgraph.derivatives.matrices import sparsity_patterns
from primgraph.errors import ArgumentError, NotDifferentiable, NotScalarError, ShapeError
from primgraph.sparsity.pattern import Pattern
from primgraph.sparsity.rows import list_columns
from primgraph.transforms.dataflow.sparsity import dependencies, pattern_rows
from primgraph.transforms.lower import lower

rng = np.random.default_rng(7)
N = 7
_SPARSE = np.where(rng.random((30, 40)) < 0.05, rng.normal(size=(30, 40)), 0.0)
_LOWER = np.tril(rng.normal(size=(4, 4)))
_ORDER = rng.permutation(N)
_MASK = rng.random(N) < 0.5
_TAPS = np.array([2.0, 0.0, -1.0])
_IMAGE = (4, 5)


def _tip(x):
    """The first element with all, all with the first one."""
    return pg.concatenate([pg.sum(x**2, keepdims=True), x[1:] * x[0] + x[1:] ** 2])


def _arrow():
    wanted = np.eye(N, dtype=bool)
    wanted[0] = wanted[:, 0] = True
    return wanted


def _near(n, *offsets):
    return np.any([np.eye(n, k=k, dtype=bool) for k in offsets], axis=0)


def _five_points(u):
    around = pg.pad(u, 1)
    sides = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
    return pg.exp(u) - 4.0 * u + sides


def _grid():
    rows, columns = _IMAGE
    wanted = np.zeros((rows * columns,) * 2, bool)
    for i, j in np.ndindex(*_IMAGE):
        for k, m in ((i, j), (i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if 0 <= k < rows and 0 <= m < columns:
                wanted[i * columns + j, k * columns + m] = True
    return wanted


def _toeplitz(n, taps):
    wanted = np.zeros((n + len(taps) - 1, n), bool)
    for i, tap in enumerate(taps):
        wanted[np.arange(n) + i, np.arange(n)] = tap != 0
    return wanted


# A function, the shape of its argument, and the mask of its Jacobian, or None for that of samples.
ACCEPTED = {
    "arrow-head": (_tip, (N,), _arrow()),
    "elementwise": (lambda x: pg.tanh(x) * x, (N,), np.eye(N)),
    "banded": (lambda x: x[1:-1] ** 2 * x[2:] - x[:-2], (N,), None),
    "a band of a grid": (_five_points, _IMAGE, _grid()),
    "blocks": (
        lambda x: pg.ravel(pg.softmax(pg.reshape(x, (3, 4)), axis=1)), (12,),
        np.kron(np.eye(3), np.ones((4, 4))),
    ),
    "random, 5 %": (lambda x: _SPARSE @ pg.sin(x), (40,), _SPARSE != 0),
    "random from the right": (lambda x: x @ _SPARSE, (30,), _SPARSE.T != 0),
    "Kronecker": (
        lambda x: pg.ravel(_LOWER @ pg.reshape(x, (4, 3))), (12,),
        np.kron(_LOWER != 0, np.eye(3)),
    ),
    "Kronecker with all": (lambda x: pg.kron(np.array([1.0, 0.0, 2.0]), x), (3,), None),
    "convolution": (lambda x: pg.convolve(x, _TAPS), (N,), _toeplitz(N, _TAPS)),
    "windows of two axes": (lambda x: pg.avg_pool2d(x[None, None], 2), (4, 6), None),
    "sums over the last axis": (
        lambda x: pg.sum(x**2, axis=1), (3, 4), np.kron(np.eye(3), np.ones((1, 4)))),
    "sums over the first axis": (
        lambda x: pg.prod(x, axis=0), (3, 4), np.kron(np.ones((1, 3)), np.eye(4))),
    "extrema over the middle axis": (lambda x: pg.max(x, axis=1), (2, 3, 2), None),
    "gathers": (lambda x: x[np.array([2, 0, 2, 5])] ** 2, (N,), None),
    "gathers of rows": (lambda x: pg.take(x, np.array([2, 0, 0]), axis=1), (2, 3), None),
    "scattering": (
        lambda x: pg.bincount(np.array([1, 3, 1]), weights=x, minlength=5), (3,), None),
    "permutations": (lambda x: pg.flip(x[_ORDER]), (N,), np.eye(N)[_ORDER][::-1]),
    "transposes": (lambda x: pg.ravel(pg.transpose(x, (2, 0, 1))), (2, 3, 2), None),
    "concatenations": (
        lambda x: pg.concatenate([x[3:], pg.zeros(2), x[:2] * x[2:4]]), (N,), None),
    "stacks": (lambda x: pg.stack([x, 2.0 * x, x[::-1]], axis=1), (N,), None),
    "where with a mask": (
        lambda x: pg.where(_MASK, x**2, x[::-1]), (N,),
        np.where(_MASK[:, None], np.eye(N), np.eye(N)[::-1])),
    "where with a condition": (
        lambda x: pg.where(x > 0, x, x[::-1]), (N,), np.eye(N) + np.eye(N)[::-1] > 0),
    "factors that are zero": (lambda x: pg.sum(_MASK * x**2), (N,), _MASK[None]),
    "running sums": (lambda x: pg.cumsum(x**2), (N,), np.tri(N)),
    "running products of rows": (lambda x: pg.cumprod(x, axis=1), (2, 3), None),
    "sorting of rows": (
        lambda x: pg.sort(x, axis=1), (2, 3), np.kron(np.eye(2), np.ones((3, 3)))),
    "transforms along an axis": (
        lambda x: pg.real(pg.fft.fft(x, axis=0)), (3, 2), np.kron(np.ones((3, 3)), np.eye(2))),
    "matrices of a stack": (
        lambda x: pg.linalg.inv(x), (3, 2, 2), np.kron(np.eye(3), np.ones((4, 4)))),
    "columns of solutions": (
        lambda x: pg.linalg.solve(np.eye(2) + 1.0, x), (2, 3), np.kron(np.ones((2, 2)), np.eye(3))),
    "assigned by steps": (
        lambda x: pg.concatenate([x[::2], x[1::2]]), (N,), np.eye(N)[[0, 2, 4, 6, 1, 3, 5]]),
    "products of matrices": (
        lambda x: x @ x, (2, 2), [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]]),
    "held constant": (
        lambda x: x * pg.stop_gradient(pg.sum(x)) + pg.floor(x[::-1]), (N,), np.eye(N)),
    "loops over rows": (
        lambda x: pg.scan(lambda c, row: (c * row, None), pg.ones(2), x)[0], (3, 2),
        np.kron(np.ones((1, 3)), np.eye(2))),
    "loops that shift": (
        lambda x: pg.fori_loop(0, 3, lambda i, v: pg.concatenate([v[1:], v[:1]]) * 2.0, x), (4,),
        np.ones((4, 4))),
    "branches": (
        lambda x: pg.cond(pg.sum(x) > 0, lambda x: x[::-1] * 2.0, lambda x: x**2, x), (4,),
        np.eye(4) + np.eye(4)[::-1] > 0),
    "nothing": (lambda x: pg.zeros((2, 3)) + pg.round(pg.sum(x)), (3,), np.zeros((6, 3))),
    "no elements": (lambda x: x[:0] ** 2, (3,), np.zeros((0, 3))),
}  # fmt: skip


def _sampled(function, shape, symmetric=False):
    """The union of what is not zero at a few points."""
    derive = pg.hessian if symmetric else pg.jacobian
    kernel = pg.compile(pg.trace(lambda x: derive(function(x), x), pg.spec(shape)))
    seen = [kernel(np.asarray(rng.uniform(0.5, 1.5, shape) * s)) for s in (1.0, -2.0) * 12]
    size = int(np.prod(shape))
    return np.any([np.reshape(y, (-1, size)) != 0 for y in seen], axis=0)


@pytest.mark.parametrize("name", ACCEPTED)
def test_patterns_are_exact(name):
    function, shape, wanted = ACCEPTED[name]
    found = pg.jacobian_sparsity(function, pg.spec(shape))
    assert isinstance(found, Pattern)
    if wanted is None:
        wanted = _sampled(function, shape)
    np.testing.assert_array_equal(found.to_dense(), np.asarray(wanted, bool))


def _rosenbrock(x):
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


_last = np.eye(N, dtype=bool)
_last[-1, -1] = False
HESSIANS = {
    "chained": (lambda x: pg.sum(x[1:] ** 2 * x[:-1] ** 2), _near(N, -1, 0, 1)),
    "Rosenbrock": (_rosenbrock, _near(N, -1, 0, 1)),
    "linear in the last": (lambda x: pg.sum(x[:-1] ** 2) + x[-1], _last),
    "products only": (lambda x: x[0] * x[1] + x[2] * x[6], None),
    "quotients": (lambda x: x[0] / x[1] + pg.sum(x[2:]), None),
    "three that meet": (lambda x: x[0] * x[1] * x[2] + 3.0 * x[3], None),
    "separable": (lambda x: pg.sum(pg.exp(x) / (1.0 + x**2)), np.eye(N)),
    "linear": (lambda x: pg.sum(x * np.arange(N)) + pg.sum(x[::-1]), np.zeros((N, N))),
    "a square of a sum": (lambda x: pg.sum(x[1:3]) ** 2 + pg.sum(x[3:]), None),
    "a grid": (lambda x: pg.sum(pg.sin(x[1:] - 2.0 * x[:-1])), _near(N, -1, 0, 1)),
    "gathered": (lambda x: pg.sum(x[np.array([0, 2, 4])] * x[np.array([1, 1, 5])]), None),
    "constant matrix": (lambda x: pg.sum((np.eye(N, k=2) @ x) ** 2 * x), None),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_patterns_of_hessians_are_exact(name):
    function, wanted = HESSIANS[name]
    found = pg.hessian_sparsity(function, np.ones(N))
    if wanted is None:
        wanted = _sampled(function, (N,), symmetric=True)
    np.testing.assert_array_equal(found.to_dense(), wanted)
    with pg.Program():
        x = pg.data("x", (N,))
        assert pg.hessian_sparsity(function, x) == found
        assert pg.hessian_sparsity(function(x), x) == found


def test_arguments_come_one_after_the_other():
    def function(x, y):
        return {"product": x * y[0], "sum": pg.sum(y)}

    wanted = [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]
    found = pg.jacobian_sparsity(function, (np.ones(3), np.ones(2)))
    np.testing.assert_array_equal(found.to_dense(), np.asarray(wanted, bool))
    with pg.Program():
        x, y = pg.data("x", (3,)), pg.data("y", (2,))
        assert pg.jacobian_sparsity(lambda x, y: [x * y[0], pg.sum(y)], [x, y]) == found
        turned = pg.jacobian_sparsity([pg.sum(y), x * y[0]], [y, x, y]).to_dense()
    order = [3, 4, 0, 1, 2, 3, 4]
    np.testing.assert_array_equal(turned, found.to_dense()[[3, 0, 1, 2]][:, order])
    parts = {"a": np.ones(2), "b": np.float64(1.0)}
    found = pg.jacobian_sparsity(lambda parts: parts["a"] * parts["b"], parts)
    np.testing.assert_array_equal(found.to_dense(), [[True, False, True], [False, True, True]])


def test_indices_that_are_fed_may_be_any():
    with pg.Program():
        x, i = pg.data("x", (3, 4)), pg.data("i", (2,), "int64")
        found = pg.jacobian_sparsity(pg.take(x, i, axis=1) ** 2, x)
        np.testing.assert_array_equal(found.to_dense(), np.kron(np.eye(3), np.ones((2, 4))))
        mask = pg.data("mask", (4,), "bool")
        found = pg.jacobian_sparsity(pg.where(mask, x[0], x[1]), x)
        assert found.nnz == 8


def test_what_cannot_be_told_is_said():
    with pytest.raises(ShapeError, match=r"extents that are known, not \(N,\)"):
        pg.jacobian_sparsity(lambda x: x * 2.0, pg.spec(("N",)))
    with pytest.raises(ShapeError, match="1000000 x 1000000 more than"):
        pg.jacobian_sparsity(lambda x: x * pg.sum(x), pg.spec(10**6))
    with pytest.raises(NotDifferentiable, match=r"argument 0 of <lambda>|argument 0 of f"):
        pg.jacobian_sparsity(lambda x: x * 2, np.arange(3))
    with pytest.raises(NotScalarError, match=r"one element, not of f64\[3\]"):
        pg.hessian_sparsity(lambda x: x * 2, np.ones(3))
    x = pg.tensor(np.ones(3), requires_grad=True)
    assert pg.jacobian_sparsity(lambda x: x**2, x).nnz == 3
    with pytest.raises(ArgumentError, match="not tensors"):
        pg.jacobian_sparsity(x**2, x)


def test_what_is_dense_stays_small():
    """Dependencies of a million elements on as many take a few maps, and no list."""
    graph = lower(pg.trace(lambda x: pg.tanh(x * pg.sum(x)) + pg.cumsum(x), pg.spec(10**6)))
    (found,), width = dependencies(graph, graph.inputs)
    assert width == 10**6
    assert len(found) == 1
    assert pattern_rows(graph, graph.inputs, most=1000) is None


def test_terms_that_are_added_one_by_one_are_an_interval():
    """A sum of terms that are written one by one, and what they are made of."""

    def terms(x):
        total = x[0]
        for i in range(1, 100):
            total = total + x[i] * x[i - 1]
        return total

    found = pg.hessian_sparsity(terms, pg.spec(100))
    np.testing.assert_array_equal(found.to_dense(), _near(100, -1, 1))
    graph = lower(pg.trace(terms, pg.spec(100)))
    (found,), _ = dependencies(graph, graph.inputs)
    assert len(found) == 1, "an interval that grows"


def test_patterns_of_long_programs_take_no_recursion():
    def chained(x):
        v = x
        for i in range(2500):
            v = pg.sin(v) * x + v if i % 500 else v[::-1]
        return v

    found = pg.jacobian_sparsity(chained, pg.spec(6))
    mask = np.eye(6, dtype=bool)
    assert found == Pattern.from_dense(mask | mask[::-1])


def test_what_nothing_reaches_has_no_columns():
    none = list_columns([], (2, 3), 7)
    assert none.extent == 6
    assert not none.columns.size

    def padded(x):
        # Of what is put into the rows nothing depends on the elements that are.
        rows = pg.pad(pg.sum(x[:2], keepdims=True), ((1, 0),))
        return x[np.array([2, 2, 0])] + pg.concatenate([rows[:1] * 0.0, rows])

    mask = pg.jacobian_sparsity(padded, pg.spec(3)).to_dense()
    assert mask.tolist() == [[False, False, True], [False, False, True], [True, True, False]]


def test_dense_matrices_are_given_up_before_elements_are_listed(monkeypatch):
    counts = []
    original = sparsity_patterns.pattern_rows

    def noted(graph, wrt, most):
        found = original(graph, wrt, most)
        counts.append((most, found))
        return found

    monkeypatch.setattr(sparsity_patterns, "pattern_rows", noted)
    n = 400
    matrix = np.random.default_rng(0).standard_normal((n, n))

    def dense(x):
        return pg.sum(pg.tanh(matrix @ x) ** 2)

    pg.trace(lambda x: pg.hessian(dense(x), x), pg.spec(n))
    pg.trace(lambda x: pg.laplacian(dense(x), x), pg.spec(n))
    assert len(counts) >= 2
    assert all(most <= n * n // 6 and found is None for most, found in counts)
