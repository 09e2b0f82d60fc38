"""What has as many elements as numbers say: positions, elements once each, sets, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp

INTEGERS = np.array([[3, 1, 2], [1, 0, 3]])
NUMBERS = np.array([2.0, -1.0, np.nan, 0.5, 2.0, -1.0, np.nan, np.inf])
FEW = np.array([0.5, 7.0, -1.0, np.inf], np.float32)
ARRAYS = [INTEGERS, NUMBERS, INTEGERS.astype(np.uint8), FEW, INTEGERS > 1, np.zeros((0, 2))]


def ran(make: Any, *arrays: Any) -> list[Any]:
    """What a program gives that is built of inputs with these elements."""
    with pg.Program() as program:
        given = [pg.data(f"a{i}", a.shape, str(a.dtype)) for i, a in enumerate(arrays)]
        found = make(*given)
    fetched = list(found) if isinstance(found, tuple) else [found]
    return pg.Executor().run(program, {f"a{i}": a for i, a in enumerate(arrays)}, fetched)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    array = np.asarray(found)
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


KNOWN = [
    lambda np, x: np.nonzero(x),
    lambda np, x: np.flatnonzero(x),
    lambda np, x: np.argwhere(x),
    lambda np, x: np.unique(x, True, True, True),
    lambda np, x: np.unique(x, return_counts=True, axis=0),
    lambda np, x: tuple(np.unique_all(x)),
    lambda np, x: np.sort(np.unique_values(x)),
    lambda np, x: np.union1d(x, [1, 2]),
    lambda np, x: np.intersect1d(x, [2, 3, 1, 9], return_indices=True),
    lambda np, x: np.setdiff1d(x, [2, 3]),
    lambda np, x: np.setdiff1d([4, 2, 2], x, assume_unique=True),
    lambda np, x: np.setxor1d(x, [2, 4]),
    lambda np, x: np.where(x > 0) if x.dtype != bool else np.where(x),
]  # fmt: skip


@pytest.mark.parametrize("function", KNOWN)
def test_of_known_elements_there_are_as_many_as_numpy_gives(function: Any) -> None:
    for x in ARRAYS:
        expected = function(np, x)
        assert_same(function(np, pg.tensor(x)), expected)
        assert_same(
            ran(lambda _, x=x: function(pg_of_constants, x), np.zeros(())), _listed(expected)
        )


class _OfConstants:
    """The functions of primgraph, and the one that has another number of arguments there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pg, name)

    def where(self, condition: Any) -> Any:
        return pg.nonzero(condition)


pg_of_constants = _OfConstants()


def _listed(expected: Any) -> Any:
    return list(expected) if isinstance(expected, tuple) else [expected]


def padded(found: Any, size: int, fill: Any) -> Any:
    """The first `size` elements, and `fill` behind them."""
    return np.concatenate([found, np.full(size, fill, found.dtype)])[:size]


@pytest.mark.parametrize("size", [0, 2, 5, 9])
def test_of_variables_there_are_as_many_as_is_said(size: int) -> None:
    for x in ARRAYS[:5]:
        places = [padded(p, size, -1) for p in x.nonzero()]
        assert_same(ran(lambda v: pg.nonzero(v, size=size, fill_value=-1), x), places)
        flat = padded(np.flatnonzero(x), size, 7)
        assert_same(ran(lambda v: pg.flatnonzero(v, size=size, fill_value=7), x), [flat])
        rows = np.stack([padded(p, size, 0) for p in x.nonzero()], 1)
        assert_same(ran(lambda v: pg.argwhere(v, size=size), x), [rows])
        values, index, inverse, counts = np.unique(x, True, True, True)
        expected = [padded(values, size, values[0]), padded(index, size, index[0]), inverse,
                    padded(counts, size, 0)]  # fmt: skip
        assert_same(ran(lambda v: pg.unique(v, True, True, True, size=size), x), expected)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_variables_have_as_many_elements_as_is_said(name: str) -> None:
    other = np.array([0.5, 3.0, np.inf, 0.5])
    expected = padded(getattr(np, name)(NUMBERS, other), 7, -5.0)
    mine = getattr(pg, name)
    assert_same(ran(lambda v, w: mine(v, w, size=7, fill_value=-5.0), NUMBERS, other), [expected])
    assert_same(mine(pg.tensor(INTEGERS), [2, 3]), getattr(np, name)(INTEGERS, [2, 3]))


def test_nans_are_equal_unless_it_is_said_otherwise() -> None:
    for flag in (True, False):
        expected = np.unique(NUMBERS, equal_nan=flag)
        found = ran(lambda v, flag=flag: pg.unique(v, size=6, equal_nan=flag), NUMBERS)
        assert_same(found, [padded(expected, 6, -1.0)])


def test_elements_once_each_have_the_slopes_of_their_first_places() -> None:
    x = np.array([3.0, 1.0, 3.0, 2.0])
    expected = [27.0 * 2, 3.0 * 2, 0.0, 12.0 * 2]
    by_size = pg.grad(lambda v: pg.sum(pg.unique(v, size=3) ** 3 * 2.0))(x)
    np.testing.assert_allclose(by_size, expected)
    v = pg.tensor(x, requires_grad=True)
    (np.unique(v) ** 3 * 2.0).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), expected)
    chosen = pg.grad(lambda v: pg.sum(pg.extract(v > 1.5, v, size=4, fill_value=9.0) ** 2))(x)
    np.testing.assert_allclose(chosen, [6.0, 0.0, 6.0, 4.0])


def test_positions_may_be_found_in_batches_and_in_loops() -> None:
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    found = pg.vmap(lambda row: pg.flatnonzero(row, size=2, fill_value=-1))(rows)
    np.testing.assert_array_equal(found, [[0, 2], [2, -1]])
    np.testing.assert_array_equal(
        pg.vmap(lambda row: pg.unique(row, size=3, fill_value=9.0))(rows),
        [[0.0, 1.0, 2.0], [0.0, 3.0, 9.0]],
    )

    def added(total: Any, row: Any) -> Any:
        return total + pg.sum(pg.extract(row > 0, row, size=2)), total

    looped = pg.jit(lambda rows: pg.scan(added, 0.0, rows)[0])
    np.testing.assert_allclose(looped(rows), 6.0)


def test_parts_are_chosen_by_conditions() -> None:
    x = np.arange(6.0).reshape(2, 3)
    mask = np.array([True, False, True])
    for condition in (mask, pg.tensor(mask), mask.tolist()):
        assert_same(pg.compress(condition, pg.tensor(x), 1), np.compress(mask, x, 1))
    assert_same(np.extract(pg.tensor(x) > 2, pg.tensor(x)), x[x > 2])
    found = ran(lambda v: pg.compress(v[0] > 0.5, v, 1, size=3, fill_value=-1.0), x)
    np.testing.assert_array_equal(found[0], [[1.0, 2.0, -1.0], [4.0, 5.0, -1.0]])
    with pytest.raises(pg.ShapeError, match="does not fit"):
        pg.compress([True, False, True], pg.tensor(x), 0)


def test_a_grid_of_elements_is_taken_by_vectors() -> None:
    x = np.arange(12.0).reshape(3, 4)
    rows, columns = [0, 2], np.array([False, True, True, False])
    assert_same(pg.tensor(x)[np.ix_(pg.tensor(rows), columns)], x[np.ix_(rows, columns)])
    picked = ran(lambda v, r: v[pg.ix_(r, columns)], x, np.array(rows))
    assert_same(picked, [x[np.ix_(rows, columns)]])
    with pytest.raises(pg.ShapeError, match="ix_ takes vectors"):
        pg.ix_(pg.tensor(x))


def test_zeros_around_are_trimmed() -> None:
    for trim in ("f", "b", "fb"):
        for x in (np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]), np.zeros(3), np.ones(2)):
            assert_same(np.trim_zeros(pg.tensor(x), trim), np.trim_zeros(x, trim))
    corner = np.pad(np.ones((1, 2)), 1)
    assert_same(pg.trim_zeros(pg.tensor(corner)), np.ones((1, 2)))
    with pytest.raises(pg.ArgumentError, match="trim is"):
        pg.trim_zeros([1.0], "x")


COUNTED = np.array([0, 3, 1, 3, 3])
WEIGHTS = np.array([0.5, 1.0, 2.0, 0.25, 4.0])


def test_integers_are_counted() -> None:
    for least in (0, 7):
        for weights in (None, WEIGHTS):
            expected = np.bincount(COUNTED, weights, least)
            assert_same(np.bincount(pg.tensor(COUNTED), weights, least), expected)
            found = ran(lambda v, w=weights: pg.bincount(v, w, length=6), COUNTED)
            assert_same(found, [np.bincount(COUNTED, weights, 6)])
    assert_same(ran(lambda v: pg.bincount(v, length=2), COUNTED), [np.array([1, 1])])
    assert_same(pg.bincount(np.zeros(0, int)), np.zeros(0, int))
    slopes = pg.grad(lambda w: pg.bincount(COUNTED, w, length=4)[3])(WEIGHTS)
    np.testing.assert_array_equal(slopes, [0, 1, 0, 1, 1])
    with pytest.raises(pg.ArgumentError, match="integers from 0 on"):
        pg.bincount([1, -1])


SPREAD = np.array([0.0, 0.5, 1.0, 1.5, 3.0, np.nan, 2.999, -1.0, 0.1 + 0.2])


@pytest.mark.parametrize("bins", [1, 4, 10, [0.0, 0.5, 1.0, 3.0], [0.0, 1.0, 1.0, 2.0]])
def test_elements_in_bins_are_counted(bins: Any) -> None:
    for x in (SPREAD, SPREAD.astype(np.float32), np.array([3, 1, 2, 2])):
        for range_ in (None, (0.0, 3.0), (1.0, 1.0)):
            if range_ is None and np.isnan(x).any():
                continue
            for weights in (None, np.arange(x.size) * 0.5):
                for density in (None, True):
                    given = (bins, range_, density, weights)
                    with np.errstate(all="ignore"):
                        expected = np.histogram(x, *given)
                    assert_same(np.histogram(pg.tensor(x), *given), expected)
                    found = ran(lambda v, given=given: pg.histogram(v, *given), x)
                    assert_same(found, list(expected))


def test_bins_named_by_a_rule_and_of_several_axes() -> None:
    x = np.random.default_rng(1).normal(size=(60, 2))
    assert_same(np.histogram(pg.tensor(x), "auto"), np.histogram(x, "auto"))
    assert_same(np.histogram_bin_edges(pg.tensor(x), 5), np.histogram_bin_edges(x, 5))
    given = pg.tensor(x)
    assert_same(np.histogram2d(given[:, 0], given[:, 1], 3), np.histogram2d(x[:, 0], x[:, 1], 3))
    expected, edges = np.histogramdd(x, [3, 4], density=True)
    found, mine = np.histogramdd(given, [3, 4], density=True)
    np.testing.assert_allclose(found, expected, 1e-14)
    assert_same(mine, list(edges))
    counts, _ = pg.jit(lambda x: pg.histogramdd(x, 3, [(-1, 1), (0, 1)]))(x)
    np.testing.assert_array_equal(counts, np.histogramdd(x, 3, [(-1, 1), (0, 1)])[0])


REFUSED = {
    "pg.unique(v)": r"size=n",
    "np.unique(v)": r"pg.unique\(x, size=n\)",
    "np.nonzero(v)": r"size=n",
    "np.where(v > 0)": r"size=n",
    "v[v > 0].shape": r"pg.extract\(mask, x, size=n\)",
    "np.bincount(v)": r"length=n",
    "np.compress(v > 0, v).shape": r"size=n",
    "np.intersect1d(v, [1.0])": r"size=n",
    "np.trim_zeros(v)": "values are known",
    "np.histogram(v, 'auto')": "values are known",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_decide_a_shape_says_how_to_give_it(case: str) -> None:
    with pg.Program():
        v = pg.data("v", (3,), "int64" if "bincount" in case else "float64")
        with pytest.raises(TypeError, match=REFUSED[case]) as caught:
            eval(case, {"np": np, "pg": pg, "v": v})
        assert "written here" in str(caught.value)


def test_the_drop_in_takes_sizes_of_arrays_too() -> None:
    assert_same(pnp.nonzero(np.array([0, 2, 3]), size=1)[0], np.array([1]))
    found = ran(lambda v: pnp.unique(v, size=2), INTEGERS)
    assert_same(found, [np.array([0, 1])])
    with pytest.raises(pg.ArgumentError, match="no -1 elements"):
        pg.nonzero(np.ones(3), size=-1)
