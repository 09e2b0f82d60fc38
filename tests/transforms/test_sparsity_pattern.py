"""Patterns: what stands in them, in which order, and what is refused."""

import copy
import pickle
import sys

import numpy as np
import pytest

import primgraph as pg
from primgraph.sparsity.pattern import Pattern

pytestmark = pytest.mark.quick


def masks():
    rng = np.random.default_rng(0)
    for shape in [(0, 0), (0, 3), (3, 0), (1, 1), (4, 7), (9, 2)]:
        for share in (0.0, 0.3, 1.0):
            yield rng.random(shape) < share


def test_a_pattern_holds_the_elements_of_a_mask():
    for mask in masks():
        pattern = Pattern.from_dense(mask)
        assert pattern.shape == mask.shape
        assert pattern.nnz == mask.sum()
        assert pattern.density == (mask.mean() if mask.size else 0.0)
        np.testing.assert_array_equal(pattern.to_dense(), mask)
        np.testing.assert_array_equal(pattern.T.to_dense(), mask.T)
        assert pattern == pattern.T.T
        rows, columns = np.nonzero(mask)
        np.testing.assert_array_equal(pattern.rows, rows)
        np.testing.assert_array_equal(pattern.cols, columns)
        assert {a.dtype for a in (pattern.rows, pattern.indices, pattern.indptr)} == {
            np.dtype(np.int64)
        }
        assert Pattern(mask.shape, pattern.indptr, pattern.indices) == pattern
        order = np.random.default_rng(1).permutation(np.repeat(np.arange(rows.size), 2))
        assert Pattern.from_coo(rows[order], columns[order], mask.shape) == pattern
        for other in (pickle.loads(pickle.dumps(pattern)), copy.deepcopy(pattern)):
            assert other == pattern
            assert hash(other) == hash(pattern)


def test_a_union_has_the_elements_of_both():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 6, 5)) < 0.4
    one, two = Pattern.from_dense(a), Pattern.from_dense(b)
    np.testing.assert_array_equal(one.union(two).to_dense(), a | b)
    np.testing.assert_array_equal(one.missing(two).to_dense(), b & ~a)
    assert one != two
    assert one != "a pattern"
    with pytest.raises(pg.ShapeError, match="joined"):
        one.union(two.T)


def test_a_pattern_stays_as_it_is():
    pattern = Pattern.from_dense(np.eye(3))
    assert repr(pattern) == "<Pattern 3 x 3, 3 nonzeros (33.3 %)>"
    with pytest.raises(AttributeError, match="stays"):
        pattern.shape = (1, 1)
    with pytest.raises(AttributeError, match="stays"):
        del pattern.indices
    for array in (pattern.indices, pattern.indptr, pattern.rows, pattern.T.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    given = np.array([0, 1, 2])
    held = Pattern((2, 3), [0, 1, 3], given)
    given[0] = 2
    assert held.indices[0] == 0


def test_what_is_no_pattern_is_refused():
    for error, arguments in [
        (pg.ShapeError, ((2,), [0, 0, 0], [])),
        (pg.ShapeError, ((-1, 2), [0], [])),
        (pg.ShapeError, ((2, 2), [0, 1], [0])),
        (pg.ShapeError, ((2, 2), [0, 2, 1], [0])),
        (pg.ShapeError, ((1, 3), [0, 2], [1, 1])),
        (pg.ShapeError, ((1, 3), [0, 2], [2, 1])),
        (pg.ShapeError, ((1, 3), [0, 1], [0.5])),
        (pg.BoundsError, ((1, 3), [0, 1], [3])),
    ]:
        with pytest.raises(error):
            Pattern(*arguments)
    with pytest.raises(pg.BoundsError, match="row -1 lies outside"):
        Pattern.from_coo([-1], [0], (2, 2))
    with pytest.raises(pg.ShapeError, match="2 rows and 1 columns"):
        Pattern.from_coo([0, 1], [0], (2, 2))
    with pytest.raises(pg.ShapeError, match="matrix"):
        Pattern.from_dense(np.ones(3))


def test_matrices_of_scipy_are_there_where_scipy_is(monkeypatch):
    sparse = pytest.importorskip("scipy.sparse")
    pattern = Pattern.from_dense(np.tri(4))
    matrix = pattern.to_scipy()
    assert isinstance(matrix, sparse.csr_array)
    np.testing.assert_array_equal(matrix.toarray(), np.tri(4))
    assert Pattern.from_scipy(matrix.tocsc()) == pattern
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(pg.OptionError, match="SciPy"):
        pattern.to_scipy()
