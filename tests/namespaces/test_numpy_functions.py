"""NumPy's functions on variables beside NumPy on arrays: values, dtypes, derivatives, errors.

Each case is an expression of arrays x (3 x 4), y like it, u and v (5 and 4 elements), m (3 x 3) and
n (integers); it is NumPy's own on arrays, and recorded with variables in their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from density import drawn

import primgraph as pg
import primgraph.numpy as pnp

RNG = np.random.default_rng(5)
ARRAYS: dict[str, Any] = {
    "x": RNG.uniform(-2, 2, (3, 4)),
    "y": RNG.uniform(0.5, 2, (3, 4)),
    "u": RNG.uniform(0.2, 2, 5),
    "v": RNG.uniform(-2, 2, 4),
    "m": RNG.uniform(-2, 2, (3, 3)),
}
NUMBERS = np.array([2, 0, 1, 3])

# Expressions that are smooth at the arrays above: their derivatives are looked at too.
SMOOTH = """
np.append(x, y)|np.append(x, y, axis=1)
np.array_split(u, 3)|np.array_split(x, [1, 3], 1)|np.hsplit(x, 2)|np.vsplit(x, 3)|np.hsplit(v, [1])
np.dsplit(np.reshape(x, (2, 3, 2)), 2)
np.atleast_1d(v[0])|np.atleast_2d(v)|np.atleast_3d(v)|np.atleast_3d(x)|np.atleast_2d(v, m)
np.block([[x, y], [y, x]])|np.block([v, 1.0])|np.block([[v], [v]])
np.broadcast_arrays(x, v)|np.column_stack([v, v])|np.column_stack([x, x[:, 0]])
np.hstack([v, v[:1]])|np.hstack([x, y])|np.vstack([v, x])|np.dstack([x, y])|np.dstack([v, v])
np.concatenate([x, y], axis=None)|np.concat([x, y], axis=1)|np.stack([x, y], axis=-1)
np.delete(v, 1)|np.delete(x, [0, 2], 1)|np.delete(x, slice(0, 2), 0)|np.delete(x, [1, 5])
np.insert(v, 1, 7.0)|np.insert(v, [1, 3], [7.0, 8.0])|np.insert(x, 1, v, 0)|np.insert(x, -1, 1.0)
np.insert(x, [1, 2], v, axis=0)|np.insert(x, 1, x[:, 0], axis=1)|np.insert(x, slice(0, 2), v, 0)
np.fliplr(x)|np.flipud(x)|np.rot90(x)|np.rot90(x, 2)|np.rot90(x, 3)|np.rot90(x, -1, (1, 0))
np.rollaxis(x, 1)|np.rollaxis(x[None], 0, 3)|np.matrix_transpose(x)|np.unstack(x, axis=1)
np.resize(v, (3, 3))|np.resize(x, 5)|np.permute_dims(x, (1, 0))|np.copy(x)|np.flip(x)
np.diag(v)|np.diag(v, 2)|np.diag(v, -1)|np.diag(x, 1)|np.diagflat(m, 1)|np.trace(x)|np.trace(m, 1)
np.kron(v, u)|np.kron(x, m)|np.kron(v, m)|np.vander(v)|np.vander(v, 3, increasing=True)
np.meshgrid(v, u)|np.meshgrid(v, u, indexing="ij")|np.meshgrid(v, u, v, sparse=True)
np.tril(m)|np.triu(m, 1)|m[np.tril_indices_from(m)]|m[np.triu_indices(3, 1)]
np.diff(v)|np.diff(x, 2)|np.diff(x, axis=0, prepend=0.0)|np.diff(v, append=v)|np.diff(x, n=9)
np.ediff1d(x)|np.ediff1d(v, to_end=[1.0, 2.0], to_begin=0.5)
np.gradient(u)|np.gradient(u, 0.5)|np.gradient(u, np.array([0.0, 1.0, 1.5, 3.0, 7.0]))
np.gradient(x)|np.gradient(x, 2.0, np.arange(4.0) ** 2)|np.gradient(u, edge_order=2)
np.gradient(u, np.array([0.0, 1.0, 1.5, 3.0, 7.0]), edge_order=2)|np.gradient(x, axis=1)
np.trapezoid(v)|np.trapezoid(x, dx=0.5)|np.trapezoid(x, v)|np.trapezoid(x, y, axis=0)
np.average(x)|np.average(x, axis=1, weights=v)|np.average(x, weights=y)
np.average(x, 0, np.ones(3), returned=True)|np.average(x, axis=1, keepdims=True)
np.cov(x)|np.cov(v)|np.cov(x, y, ddof=0)|np.cov(x, rowvar=False)|np.cov(v, x[0], bias=True)
np.cov(x, aweights=np.arange(1.0, 5))|np.cov(x, fweights=[1, 2, 3, 1])
np.corrcoef(x[:, :3])|np.corrcoef(x, y)
np.convolve(v, u)|np.convolve(u, v, "same")|np.convolve(v, u, "valid")|np.convolve(v, v[:3], "same")
np.correlate(v, u, "full")|np.correlate(u, v, "full")|np.correlate(u, v, "same")
np.correlate(v, u, "same")|np.correlate(u, v)|np.correlate(v, u)
np.cross(m, m[::-1])|np.cross(x, y, axis=0)
np.interp(v, np.array([-1.0, 0.0, 0.7, 1.5]), v)|np.interp(v, np.arange(5.0), u, 7.0, 8.0)
np.interp(5 * v, np.array([3.0, 1.0, -7.5, 2.0]), y[0], period=-5)
np.interp(u, m[0], v[:3], period=4)
np.unwrap(4 * u)|np.unwrap(3 * x, axis=0)|np.unwrap(u, period=0.7)
np.cumulative_sum(v, include_initial=True)|np.cumulative_sum(x, axis=1)|np.cumsum(x)
np.polyval(v, u)|np.polyval(v, x)|np.polyadd(v, u)|np.polysub(u, v)|np.polymul(u, v)
np.polyval(m, v[:3])|np.cov(m, rowvar=0)|np.var(m, ddof=0, correction=1)
np.polyder(u)|np.polyder(u, 2)|np.polyint(u)|np.polyint(u, 2, [1.0, 2.0])|np.poly(v)
np.hypot(x, y)|np.cbrt(x)|np.fmod(x, y)|np.fmax(x, y)|np.fmin(x, y)|np.copysign(x, y)|np.fabs(x)
np.deg2rad(x)|np.rad2deg(x)|np.degrees(x)|np.radians(x)|np.logaddexp2(x, y)|np.float_power(y, x)
np.divmod(x, y)|np.modf(x)|np.ldexp(x, np.array([1, 0, -2, 3]))|np.nan_to_num(x)|np.sinc(x)
np.sinc(0.01 * x)|np.trunc(x)|np.fix(x)|np.heaviside(x, 0.5)|np.pow(y, x)|np.positive(x)
np.nansum(x, axis=0)|np.nanprod(x)|np.nanmean(x, 1)|np.nanvar(x, ddof=1)|np.nanstd(x, axis=1)
np.nanmax(x, axis=0)|np.nanmin(x)|np.nancumsum(v)|np.ptp(x)|np.ptp(x, axis=1, keepdims=True)
np.select([x > 0, y > 1], [x, y * y], 3.0)|np.choose(np.array([0, 1, 1, 0]), [v, v * v])
np.compress([True, False, True], x, axis=0)|np.extract(np.eye(3) > 0, m)
np.piecewise(v, [v > 0, v < -1], [np.sin, 2.0, lambda t: t * t])
np.apply_along_axis(lambda r: r * r[0], 1, x)|np.apply_over_axes(np.sum, x[None], [0, 2])
np.sum(x, axis=0, where=np.array([True, False, True, True]))|np.prod(x, initial=2.0)
np.mean(x, where=np.array([True, False, True, True]))|np.max(x, axis=0, initial=1.0)
np.max(x, where=np.array([True, False, True, True]), initial=-9.0)|np.amin(x, 1)
np.std(x, 0, ddof=1)|np.var(x, axis=1, keepdims=True)|np.clip(x, -1, None)|np.clip(x, max=1.0)
np.reshape(x, (2, 6), order="F")|np.ravel(x, "F")|np.take(v, [1, -1, 7], mode="wrap")
np.take(v, [1, 9], mode="clip")|np.linspace(v, 2.0, 3)|np.linspace(v, v + 1, 4, axis=1)
np.logspace(v, 2.0, 3)|np.geomspace(u, 2.0, 3)|np.pad(v, 2, constant_values=3)|np.pad(x, (0, 1))
np.einsum("ij,j", x, v, optimize=True)|np.vdot(x, y)|np.dot(a=x, b=v)|np.outer(v, u)
np.linalg.vecdot(x, y)|np.linalg.multi_dot([x, v[:, None], u[None]])|np.linalg.norm(x, axis=1)
np.linalg.matrix_norm(x)|np.linalg.vector_norm(x, axis=0)|np.linalg.matrix_power(m, 3)
np.linalg.trace(m)|np.linalg.diagonal(m, offset=1)|np.linalg.inv(m)|np.linalg.solve(m, x)
np.linalg.det(m)|np.linalg.slogdet(m)|np.linalg.cholesky(m @ m.T + np.eye(3))
np.linalg.cross(m, m[::-1])
np.fft.fftshift(u)|np.fft.ifftshift(x, axes=1)|np.real(x)|np.imag(x)|np.conj(x)|np.angle(x)
np.add.reduce(x)|np.add.reduce(x, axis=None)|np.multiply.reduce(x, axis=1, keepdims=True)
np.maximum.reduce(x)|np.logaddexp.reduce(x)|np.hypot.reduce(x, axis=(0, 1))|np.subtract.reduce(x)
np.add.accumulate(x)|np.multiply.accumulate(x, axis=1)|np.maximum.accumulate(v)
np.multiply.outer(x, v)|np.subtract.outer(v, u)|np.sin(x, dtype="float64")
np.add(x, y, where=True)|np.array([v[0], 2.0, v[1]])|np.array([[v[0], v[1]], [1, 2]], ndmin=3)
np.mean([v[0], v[1]])|np.r_[v, 0.5, 1:3, v[0]]|np.c_[v, v]|np.c_[x, np.ones(3)]|np.sum([v, v], 0)
np.pad(x, (1, 2), "mean")|np.pad(x, ((0, 2), (1, 0)), "median")|np.pad(v, 6, "minimum")
np.pad(x, 3, "maximum", stat_length=2)|np.pad(x, 2, "mean", stat_length=((1, 2), (3, 9)))
np.pad(x, 2, "linear_ramp")|np.pad(x, 2, "linear_ramp", end_values=((1.0, 2.0), (v[0], 3.0)))
np.pad(x, ((5, 9), (7, 1)), "reflect", reflect_type="odd")|np.pad(x[:1], 2, "reflect")
np.pad(x, 7, "symmetric", reflect_type="odd")|np.pad(x, 4, "symmetric", reflect_type="even")
np.pad(x, 1, constant_values=((1.0, 2.0), (v[0], 4.0)))|np.pad(x, 2, constant_values=v[0])
np.pad(x, 2, "empty")[2:-2, 2:-2]|np.pad(x, {-1: (2, 1)}, "edge")|m[np.diag_indices_from(m)]
np.einsum("ij,j", x, v, optimize=np.einsum_path("ij,j", x, v)[0])
np.stack([[v[0], 1.0], [2.0, v[1]]])|np.dot([v[0], v[1]], [3.0, 4.0])|np.vectorize(np.sin)(x)
"""
# Expressions whose results have no derivative.
STEPS = """
np.isclose(x, y)|np.allclose(x, x)|np.array_equal(x, y)|np.array_equal(x, v)|np.array_equiv(x, v)
np.isposinf(x)|np.isneginf(1 / (x - x))|np.signbit(x)|np.signbit(np.copysign(0.0, x))
np.isin(n, [1, 2])|np.isin(n, n, invert=True)|np.nanargmax(x, axis=0)|np.nanargmin(x)
np.isreal(x)|np.iscomplex(x)|np.logical_and.reduce(x > 0)|np.logical_or.reduce(x, axis=1)
np.isnan(x)|np.bitwise_or.reduce(n)|np.greater.outer(v, u)|np.count_nonzero(x, axis=1)
np.insert(n, 1, 5)|np.diff(n)|np.diff(x > 0)|np.ediff1d(n)|np.trace(n[None] * n[:, None])
np.vander(n)|np.kron(n, n)|np.cross(n[1:], n[:-1])|np.convolve(n, n)|np.correlate(n, n, "same")
np.fmod(n - 2, 3)|np.fmax(n, 2)|np.trunc(n)|np.fix(n)|np.divmod(n, 2)|np.hypot(n, 1)|np.cbrt(n)
np.nansum(n)|np.nanmean(n)|np.nanmax(n)|np.ptp(n)|np.average(n)|np.average(n, weights=[1, 2, 3, 4])
np.cov(n, n)|np.polyval(n, n)|np.polyint(n)|np.polyder(n)|np.gradient(n)|np.trapezoid(n)
np.heaviside(n - 1, 2)|np.sinc(n)|np.deg2rad(n)|np.float_power(2, n)|np.logaddexp2(n, n)|np.fabs(n)
np.nan_to_num(n)|np.isclose(n, 2)|np.signbit(n - 1)|np.ldexp(n, n)|np.select([n > 1], [n], -1)
np.choose(n, [n, 1, 2, 3])|np.interp(n, [0, 2], [1, 5])|np.diag(n)|np.mean(n)|np.nanstd(n)
np.float_power(n + 1, -2)|np.round(x, 1)|np.rint(x)|np.argmax(x, 1)|np.shape(x)|np.ndim(x)
np.size(x)|np.size(x, 0)|np.result_type(x, n).name|np.iscomplexobj(x)|np.common_type(x).__name__
np.can_cast(n, "float64")|np.indices((2, 3), sparse=True)
np.indices((2, 3))|np.tri(3, 4, 1)|np.add.reduce(n)|np.multiply.accumulate(n)|np.zeros_like(n)
np.ones_like(x, dtype=int)|np.full_like(n, 3)|np.empty_like(x, shape=(2,)) * 0|np.array([n[0], 1])
np.rint(n)|np.sinc(np.astype(n, "uint8"))|np.gradient(np.astype(n, "uint8"))
np.trapezoid(np.astype(n, "uint8"))|np.linspace(np.astype(n, "uint8"), 1, 3)
np.average(np.astype(n, "uint8"), weights=np.ones(4, "float32"))|np.angle(0.0 * x)
np.mean(np.sqrt(x), where=y > 1)|np.var(np.sqrt(x), axis=0, where=y > 1)
np.median(1 / np.zeros_like(v))|np.vecdot(m, m, axis=0)|np.insert(v, [], 2.0)
np.einsum("ij,kj->ik", n[None], 0.1 * n[None], dtype="float64")
np.einsum(m, [0, 1], v[:3], [1], dtype="float64")|np.multiply.accumulate(x, dtype="float32")
np.subtract.reduce(x, dtype="float32")|np.maximum.accumulate(v, axis=None)
np.packbits(x > 0)|np.packbits(x > 0, axis=0)|np.packbits(n, -1, "little")|np.packbits(x[:, :0] > 0)
np.packbits(n[0])|np.packbits(np.tile(n, (3, 5)), axis=1)|np.unpackbits(np.astype(n, "uint8"))
np.unpackbits(np.astype(n, "uint8"), count=-3)|np.unpackbits(np.astype(n, "uint8"), count=99)
np.unpackbits(np.astype(n, "uint8")[:, None], 1, 5, bitorder="little")
np.pad(n, 3, "mean", stat_length=3)|np.pad(n, 5, "linear_ramp", end_values=-3)
np.pad(np.astype(n, "uint8"), 2, "reflect", reflect_type="odd")|np.pad(n > 1, 2, "linear_ramp")
np.einsum_path("ij,jk,kl", x, x.T, m)[0][1:]
np.interp(v, np.arange(5.0), u * 1j)|np.interp(n, [0, 1], [1j, 2], 3, 4j)
np.array([n[0], 1.5])|np.stack([n, x[0]])|np.unwrap(n)|np.block([n, x[0]])|np.append(n, 0.5)
"""


def cases(text: str) -> list[str]:
    return [case for line in text.strip().splitlines() for case in line.split("|")]


def names(x: dict[str, Any], namespace: Any) -> dict[str, Any]:
    return {"np": namespace, **x}


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def recorded(group: list[str], dtype: str) -> dict[str, list[Any]]:
    """What expressions give where their arrays are those of one program."""
    with pg.Program() as program:
        handles = {k: pg.data(k, a.shape, dtype) for k, a in ARRAYS.items()}
        handles["n"] = pg.data("n", NUMBERS.shape, "int64")
        found = {case: listed(eval(case, names(handles, pnp))) for case in group}
    fetches = [v for results in found.values() for v in results if isinstance(v, pg.Variable)]
    feed = {k: a.astype(dtype) for k, a in ARRAYS.items()} | {"n": NUMBERS}
    run = iter(pg.Executor().run(program, feed, fetches))
    return {
        case: [next(run) if isinstance(v, pg.Variable) else v for v in results]
        for case, results in found.items()
    }


def same(case: str, found: list[Any], dtype: str) -> None:
    arrays = {k: a.astype(dtype) for k, a in ARRAYS.items()} | {"n": NUMBERS}
    with np.errstate(all="ignore"):
        expected = listed(eval(case, names(arrays, np)))
    assert len(found) == len(expected), case
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, str):
            assert one == other, case
            continue
        assert np.shape(one) == np.shape(other), case
        assert np.asarray(one).dtype == np.asarray(other).dtype, case
        tolerance = {"float64": 1e-12, "float32": 2e-5, "float16": 3e-2}[dtype]
        np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=case)


# How many cases are one test: one would tell more, and take as long again to start.
GROUP = 12
SMOOTH_CASES, STEP_CASES = cases(SMOOTH), cases(STEPS)


def tried(group: list[str], check: Any) -> None:
    """Check each case, and tell of all that fail."""
    faults = []
    for case in group:
        try:
            check(case)
        except Exception as error:
            faults.append(f"{case}: {type(error).__name__} {str(error)[:300]}")
    assert not faults, "\n".join(faults)


def groups(listed: list[str]) -> list[list[str]]:
    return [listed[i : i + GROUP] for i in range(0, len(listed), GROUP)]


@pytest.mark.parametrize("group", groups(SMOOTH_CASES + STEP_CASES), ids=lambda g: g[0])
def test_values_and_dtypes_are_numpys(group: list[str]) -> None:
    found = recorded(group, "float64")
    tried(group, lambda case: same(case, found[case], "float64"))


@pytest.mark.parametrize("group", groups(SMOOTH_CASES), ids=lambda g: g[0])
def test_values_and_dtypes_are_numpys_in_float32(group: list[str]) -> None:
    found = recorded(group, "float32")
    tried(group, lambda case: same(case, found[case], "float32"))


@pytest.mark.long
@pytest.mark.parametrize("group", groups(SMOOTH_CASES), ids=lambda g: g[0])
def test_derivatives_are_right_in_both_modes(group: list[str]) -> None:
    tried(group, check_derivatives)


def check_derivatives(case: str) -> None:
    used = [k for k in ARRAYS if k in compile(case, case, "eval").co_names]

    def function(*given: Any) -> Any:
        variables = names(dict(zip(used, given, strict=True)) | {"n": NUMBERS}, pnp)
        found = [v for v in listed(eval(case, variables)) if isinstance(v, pg.Variable)]
        return sum(pg.sum(pg.sin(v + 0.3)) for v in found if v.dtype.kind == "f")

    # To the second order by lot: primitives, of which these are made, all are by their own tests.
    pg.check_grads(function, [ARRAYS[k] for k in used], order=1 + drawn(case, 4))


def test_elements_are_known_where_no_input_matters_to_them() -> None:
    def written(x: Any) -> Any:
        is_upper = np.tri(3, k=-1) == 0
        return np.extract(is_upper, x), np.compress(np.identity(3)[1] < 1, x, axis=0)

    m = ARRAYS["m"]
    found = pg.compile(pg.trace(written, pg.spec((3, 3))))(m)
    for one, other in zip(found, written(m), strict=True):
        np.testing.assert_array_equal(one, other)
    with pg.Program():
        x, ones = pg.data("x", (3,)), pg.ones(3)
        for unknown in (x > 0, x * 0.0 == ones):
            with pytest.raises(pg.errors.UnknownSizeError, match="how many elements a mask"):
                _ = np.extract(unknown, x).shape
        # By floats a derivative may be taken, which would be lost.
        with pytest.raises(pg.ArgumentError, match="the shape of what unique returns"):
            np.unique(ones)
