"""Values at the extremes of dtypes: NumPy's, in both targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import primgraph as pg


def same_bits(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted)
    assert np.asarray(found).dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    for part in (np.real, np.imag) if wanted.dtype.kind == "c" else (np.asarray,):
        if wanted.dtype.kind in "fc":
            numbers = ~np.isnan(part(wanted))
            signs = [np.signbit(part(np.asarray(v)))[numbers] for v in (found, wanted)]
            np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_fmod_of_the_least_integer(dtype: Any, target: str) -> None:
    least = np.iinfo(dtype).min
    x = np.array([least, least, least, -7, 7, least + 1, 5, -5, least, 0], dtype)
    y = np.array([3, -3, least, least, least, least, -3, 3, 7, least], dtype)
    found = pg.compile(pg.trace(pg.fmod, x, y), target=target)(x, y)
    same_bits(found, np.fmod(x, y))


LDEXP = [
    (1.7976931348623157e308, -2000), (5e-324, 2000), (1.5, -1074), (-0.0, 5), (math.inf, -5000),
    (math.nan, 7), (3.0, 5000), (0.7, -1073), (5e-324, 2097), (1.0, 1023), (1.0, 1024),
    (1.0, -1075), (1.9999999999999998, -1074), (1.9999999999999998, -1023), (8.7e-19, -1000),
]  # fmt: skip


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_ldexp_rounds_once_and_overflows_only_in_the_result(dtype: Any, target: str) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        x = np.array([*[pair[0] for pair in LDEXP], *rng.uniform(1, 2, 300)], np.float64).astype(
            dtype
        )
        n = np.array([*[pair[1] for pair in LDEXP], *rng.integers(-1080, 1080, 300)], np.int32)
        n[len(LDEXP) + 150 :] //= 1080 // np.finfo(dtype).maxexp
        wanted = np.ldexp(x, n)
    found = pg.compile(pg.trace(pg.ldexp, x, n), target=target)(x, n)
    same_bits(found, wanted)
    for places in (-2000, -1074, -1000, 3, 1023):
        assert pg.grad(lambda x, n=places: pg.ldexp(x, n))(1e-30) == math.ldexp(1.0, places)


COMPLEX = [
    1e-320, 1e308 + 1e308j, 1e-200 + 1e-200j, 1e300 + 1e-300j, -math.inf + 1j, math.inf + 1j,
    complex(0, math.inf), complex(1, -math.inf), complex(math.inf, math.nan), 0.0, math.nan,
    complex(math.inf, math.inf), complex(0, -5e-324), 3 - 4j, 1.0, -2j, complex(2.0, -0.0),
]  # fmt: skip


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_sign_and_reciprocal_of_extreme_complex_numbers(dtype: Any, target: str) -> None:
    with np.errstate(all="ignore"):
        z = np.array(COMPLEX).astype(dtype)
        wanted = np.sign(z), np.reciprocal(z)
    graph = pg.trace(lambda z: (pg.sign(z), pg.reciprocal(z)), z)
    sign, reciprocal = pg.compile(graph, target=target)(z)
    np.testing.assert_allclose(sign, wanted[0], rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(reciprocal, wanted[1], rtol=4 * np.finfo(dtype).eps)
    for found, known in ((sign, wanted[0]), (reciprocal, wanted[1])):
        assert found.dtype == dtype
        numbers = ~np.isnan(known)
        for part in (np.real, np.imag):
            signs = [np.signbit(part(v))[numbers] for v in (found, known)]
            np.testing.assert_array_equal(*signs)
    # Where NumPy's absolute value overflows, and where it has but few digits.
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    for extreme in (complex(-most, -most), complex(-least, -least)):
        unit = pg.sign(pg.tensor(np.array(extreme, dtype))).numpy()
        np.testing.assert_allclose(unit, complex(-(0.5**0.5), -(0.5**0.5)), rtol=1e-6)


def test_derivatives_of_sign_and_reciprocal_of_complex_numbers() -> None:
    z = np.array([3 - 4j, 0.5 + 2j, 1e200 + 1e200j, 1e-200 - 2e-200j])
    slope = pg.grad(lambda z: pg.sum(pg.reciprocal(z)), holomorphic=True)(z[:2])
    np.testing.assert_allclose(slope, -1.0 / z[:2] ** 2, rtol=1e-13)
    graph = pg.trace(lambda z: (pg.sign(z), pg.reciprocal(z)), z[:2])
    pg.check_grads(graph, [z[:2]], order=2)
    turned = pg.jvp(pg.sign, z, 1j * z)[1]
    np.testing.assert_allclose(turned, 1j * z / np.hypot(z.real, z.imag), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_rounding_to_more_places_than_there_are(dtype: Any) -> None:
    info = np.finfo(dtype)
    x = np.array([1.5, -2.5, info.max, info.tiny, -0.0, math.inf, -math.inf, math.nan], dtype)
    with np.errstate(all="ignore"):
        for places in (400, 1000, 10**6):
            same_bits(pg.round(pg.tensor(x), places).numpy(), x)
        zeros = np.array([0.0, -0.0, 0.0, 0.0, -0.0, math.inf, -math.inf, math.nan], dtype)
        for places in (-400, -1000, -(10**6)):
            same_bits(pg.round(pg.tensor(x), places).numpy(), zeros)
    assert pg.round(pg.tensor(1.26e-310), 311).numpy() == 1.3e-310
    assert not np.any(pg.grad(lambda x: pg.sum(pg.round(x, 400)))(x[:2]))
    np.testing.assert_array_equal(pg.round(pg.tensor([3, -7]), 400).numpy(), [3, -7])


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "i8", "f2", "f4", "c8"])
def test_angles_have_the_dtype_of_numpys(dtype: str) -> None:
    x = np.array([1, 0, -1 if dtype[0] not in "?u" else 1]).astype(dtype)
    for deg in (False, True):
        found, wanted = pg.angle(pg.tensor(x), deg=deg).numpy(), np.angle(x, deg=deg)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=2e-3 if wanted.dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extrema_of_zeros_of_both_signs_are_the_same_in_c(dtype: Any) -> None:
    """NumPy takes the last one, on processors where it takes the second of two."""
    pairs = np.array([0.0, -0.0], dtype), np.array([-0.0, 0.0], dtype)
    if not np.array_equal(np.signbit(np.maximum(*pairs)), [True, False]):
        pytest.skip("NumPy chooses zeros otherwise on this processor")
    rng = np.random.default_rng(0)
    for shape, axis in (((2,), 0), ((7,), 0), ((100,), 0), ((64, 3), 0), ((3, 1000), 1),
                        ((4, 5, 3), (0, 2)), ((4, 40, 3), None)):  # fmt: skip
        x = np.where(rng.random(shape) < 0.5, 0.0, -0.0).astype(dtype)
        graph = pg.trace(lambda x, a=axis: (pg.max(x, a), pg.min(x, a), pg.max(x * 2.0, a)), x)
        wanted = np.max(x, axis), np.min(x, axis), np.max(x, axis)
        for target in ("numpy", "c"):
            for found, known in zip(pg.compile(graph, target=target)(x), wanted, strict=True):
                np.testing.assert_array_equal(np.signbit(found), np.signbit(known))
