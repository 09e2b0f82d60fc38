"""Functions of NumPy's lists: parts of floats, divisors, places, what lacks, fits; with edges."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp

REAL = np.array([0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, np.nan, 5e-324, 2.0**60, 1.7e308, 0.1])
WHOLE = np.array([[0, 3, -12], [7, -128, 127]], np.int8)
HOLES = np.array([[1.0, np.nan, 3.0, 2.0], [np.nan, np.nan, np.nan, np.nan], [4.0, 1.0, 2.0, 5.0]])
X = np.linspace(-1.0, 2.0, 7)
Y = np.cos(3.0 * X) + X

ALIKE = """
np.frexp(REAL)|np.frexp(REAL.astype(np.float32))|np.spacing(REAL)|np.nextafter(REAL, 1.0)
np.nextafter(REAL.astype(np.float32), -np.inf)|np.gcd(WHOLE, [4, 6, 8])|np.lcm(WHOLE, [4, 6, 8])
np.gcd(WHOLE, WHOLE[::-1])|np.bitwise_count(WHOLE)|np.bitwise_count(WHOLE.astype(np.uint64) * 77)
np.unravel_index(PLACES, (3, 4, 2))|np.unravel_index(PLACES, (3, 4, 2), "F")
np.ravel_multi_index((PLACES // 8, PLACES % 8), (3, 8))
np.ravel_multi_index((PLACES, -PLACES), (4, 5), mode=("wrap", "clip"), order="F")
np.nancumprod(HOLES, axis=1)|np.nanmedian(HOLES, axis=1)|np.nanmedian(HOLES)
np.nanquantile(HOLES, [0.1, 0.5, 0.8], axis=1, keepdims=True)|np.nanpercentile(HOLES, 30, axis=0)
np.nanmean(HOLES, axis=1, where=HOLES > 1)|np.nanmax(HOLES, axis=0, initial=3.5)
np.nanmin(HOLES, axis=1, initial=3.5, where=HOLES != 1)
np.nansum(HOLES, initial=2.0, where=HOLES > 1)
np.nanprod(HOLES, axis=1, where=HOLES > 1)|np.nanstd(HOLES, axis=1, where=HOLES != 2)
np.var(X, correction=1)|np.nanvar(HOLES, axis=1, correction=1)|np.std(X, correction=1.5)
np.max(WHOLE, initial=1.5)|np.min(WHOLE, axis=0, initial=2.7, where=WHOLE > 1)|np.max(X, initial=9)
np.add.reduceat(X, [0, 4, 1, 6], axis=0)|np.maximum.reduceat(HOLES, [1, 0, 2], axis=1)
np.multiply.reduceat(HOLES[2:], [0, 2, 2], axis=-1)|np.logical_or.reduceat(X > 1, [0, 5])
np.polyfit(X, Y, 3)|np.polyfit(X, np.stack([Y, X], 1), 2, w=X + 2)|np.polyfit(X, Y, 2, cov=True)
np.polyfit(X, Y, 1, cov="unscaled", w=X + 2)[1]|np.polydiv(Y, X[4:])[0]|np.polydiv(X[4:], Y)
np.interp(X.astype(np.float32), [0, 1], [1, 3])|np.geomspace(2.0 + 0 * X, 1000.0, 5)
np.right_shift(WHOLE, 2)|np.left_shift(WHOLE, WHOLE % 4)
"""
PLACES = np.array([[0, 5, 23], [11, 7, 2]])
NAMES = {
    "REAL": REAL, "WHOLE": WHOLE, "HOLES": HOLES, "X": X, "Y": Y, "PLACES": PLACES,
}  # fmt: skip


def numbers(found: Any) -> list[Any]:
    if isinstance(found, list | tuple):
        return [number for part in found for number in numbers(part)]
    return [np.asarray(found)]


def assert_close(found: Any, expected: Any) -> None:
    for one, other in zip(numbers(found), numbers(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, 1e-12 if other.dtype != "f4" else 1e-6, 1e-14)
        is_zero = other == 0
        np.testing.assert_array_equal(
            np.signbit(one[is_zero] * 1.0), np.signbit(other[is_zero] * 1.0)
        )


@pytest.mark.parametrize("case", ALIKE.replace("|", "\n").split("\n")[1:-1])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_numpy_gives_tensors_and_programs_give(case: str) -> None:
    expected = eval(case, {"np": np, **NAMES})
    given = {name: pg.tensor(a) for name, a in NAMES.items()}
    assert_close(eval(case, {"np": pnp, **given}), expected)
    used = [name for name in NAMES if name in case]
    with pg.Program() as program:
        inputs = {n: pg.data(n, NAMES[n].shape, str(NAMES[n].dtype)) for n in used}
        found = eval(case, {"np": pnp, **inputs})
    fetched = [v for v in flat(found) if isinstance(v, pg.Variable)]
    results = pg.Executor().run(program, {n: NAMES[n] for n in used}, fetched)
    assert_close(results, [e for e, v in zip(numbers(expected), flat(found), strict=True)
                           if isinstance(v, pg.Variable)])  # fmt: skip


def flat(found: Any) -> list[Any]:
    return [v for part in found for v in flat(part)] if isinstance(found, list | tuple) else [found]


@pytest.mark.parametrize("method", [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
])  # fmt: skip
def test_quantiles_of_what_is_there_by_every_method(method: str) -> None:
    q = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.625, 0.75, 0.9, 1.0]
    for x in (HOLES, HOLES.astype(np.float32), np.array([3, 1, 2, 4, 9])):
        for axis in (None, -1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = np.nanquantile(x, q, axis=axis, method=method)
            found = pg.nanquantile(pg.tensor(x), q, axis, method)
            np.testing.assert_allclose(found, expected, 1e-6 if x.dtype == "f4" else 1e-14)
            found = pg.nanquantile(pg.tensor(x), pg.tensor(q), axis, method)
            np.testing.assert_allclose(found, expected, 1e-6 if x.dtype == "f4" else 1e-13)


def test_slopes() -> None:
    lines = HOLES[[0, 2]]
    row = np.array([[1.0, 5.0, 2.5]])
    pg.check_grads(lambda x: pg.nanquantile(x, [0.3, 0.8], 1), [row], order=2)
    pg.check_grads(lambda x, q: pg.nanquantile(x, q, 1), [row, np.array([0.3, 0.8])])
    pg.check_grads(lambda x, q: pg.nanpercentile(x, q), [row, np.array(30.0)])
    found = pg.grad(lambda x: pg.sum(pg.nanmedian(x, 1)))(lines)
    np.testing.assert_allclose(found, [[0, 0, 0, 1], [0.5, 0, 0.5, 0]])
    pg.check_grads(lambda x, y: pg.polyfit(x, y, 2), [X, Y], order=2)
    pg.check_grads(lambda u, v: pg.polydiv(u, v)[0], [Y, X[4:]], order=2)
    np.testing.assert_allclose(
        pg.grad(lambda x: pg.sum(pg.frexp(x)[0]))(X[2:]), np.ldexp(1.0, -np.frexp(X[2:])[1])
    )
    np.testing.assert_array_equal(pg.grad(lambda x: pg.sum(pg.nextafter(x, 9.0)))(X), np.ones(7))
    with pytest.raises(pg.ArgumentError, match="has no derivative"):
        pg.roots(pg.tensor([1.0, -1.0], requires_grad=True))


def test_floats_come_apart_exactly() -> None:
    for x in (REAL, np.array([1.0, 0.0, -3e38, 1e-45, np.nan, np.inf, 0.7, 6.0], np.float32)):
        given = pg.tensor(x)
        with np.errstate(all="ignore"):
            for way in (np.inf, -np.inf, 0.0):
                expected = np.nextafter(x, x.dtype.type(way))
                np.testing.assert_array_equal(np.nextafter(given, way), expected)
            np.testing.assert_array_equal(np.spacing(given)[:-2], np.spacing(x)[:-2])
        for found, expected in zip(np.frexp(given), np.frexp(x), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_ends_of_geometric_sequences_are_exact() -> None:
    for start, stop in ((1.0, 1000.0), (-3.0, -7e5), (0.1, 0.3)):
        found = pnp.geomspace(pg.tensor(start), stop, 6)
        np.testing.assert_allclose(found, np.geomspace(start, stop, 6), 1e-14)
        assert (found[0].item(), found[-1].item()) == (start, stop)


def test_zeros_of_a_polynomial_that_is_known() -> None:
    np.testing.assert_allclose(np.sort(np.asarray(pg.roots([1.0, 0.0, -4.0]))), [-2.0, 2.0])


REFUSED = {
    "pg.exp(np.matrix([[1.0]]))": "np.matrix",
    "x + np.ma.array([1.0, 2.0])": "masked array",
    "pg.exp(np.array([1.0, None]))": "cannot make an array",
    "pg.exp(np.array(['a']))": "is not supported",
    "pg.exp(np.array(['2020-01-01'], 'M8[D]'))": "is not supported",
    "pg.exp(np.array([1], 'm8[s]'))": "is not supported",
    "np.gcd(x, 2)": "takes integers",
    "pg.bitwise_count(x)": "takes integers",
    "pg.unravel_index(x, (2, 2))": "takes integers",
    "pg.ravel_multi_index(([0],), (2, 2))": "1 places for 2 extents",
    "pg.nanquantile(x, 2.0)": "between 0 and 1",
    "pg.nanquantile(x, pg.tensor([0.5j]))": "real numbers as q",
    "pg.nanquantile(x, 0.5, method='best')": "no method 'best'",
    "pg.polyfit(x, x, -1)": "degree from 0 on",
    "pg.polyfit(x, x[:1], 1)": "a value for each",
    "pg.frexp(x.astype('float16'))": "float32 and float64",
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_what_cannot_be_is_refused_clearly(case: str) -> None:
    with pytest.raises((TypeError, ValueError), match=REFUSED[case]):
        eval(case, {"pg": pg, "np": np, "x": pg.tensor([1.0, 2.0])})
