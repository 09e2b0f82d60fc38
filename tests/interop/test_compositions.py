"""Primitives as compositions of others: values against the primitives themselves."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.interop.compositions.compose import compose
from primgraph.interop.compositions.spectra import _pairs
from primgraph.interop.compositions.table import has_composition, is_complex
from primgraph.ir.interpret import interpret
from primgraph.ir.slices import drop_formal
from primgraph.transforms import clean_up, lower

TOLERANCE = {"float32": 1e-3, "float64": 1e-10, "complex64": 1e-3, "complex128": 1e-10}
RNG = np.random.default_rng(0)


def equations(graph):
    for eqn in graph.body:
        yield eqn
        for body in eqn.bodies:
            yield from equations(body)


def check(function, *arrays, kept=(), same=lambda results: results):
    """Compare the results of all compositions with those of the primitives."""

    def has_word(eqn):
        return eqn.op.name in kept or (not has_composition(eqn) and not is_complex(eqn))

    specs = [pg.spec(x.shape, x.dtype) for x in arrays]
    plain = drop_formal(clean_up(lower(pg.trace(function, *specs))))
    composed = compose(plain, has_word)
    assert composed != plain
    assert all(has_word(eqn) or eqn.op.has_bodies for eqn in equations(composed))
    expected, found = interpret(plain, *arrays), interpret(composed, *arrays)
    for x, y in zip(same(found), same(expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, *[TOLERANCE.get(y.dtype.name, 0)] * 2)


def random(shape, dtype="float64"):
    parts = RNG.normal(size=(2, *shape))
    return (parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]).astype(dtype)


PARTS = {"complex", "real", "imag", "full", "constant"}


CASES = [
    ((4, 4), "float64"),
    ((2, 3, 3), "float32"),
    ((2, 3, 3), "complex128"),
    ((1, 1), "float64"),
]


@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_factors_and_systems(shape, dtype):
    a, b = random(shape, dtype), random((*shape[:-1], 2), dtype)
    positive = (a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)
    for function in (pg.linalg.cholesky, pg.linalg.inv):
        check(function, positive, kept=PARTS)
    check(pg.linalg.solve, a, b, kept=PARTS)
    check(lambda a: (pg.linalg.slogdet(a), pg.linalg.det(a)), a, kept=PARTS)
    check(lambda a: pg.linalg.qr(a), a, kept=PARTS)


def test_factors_of_matrices_that_are_not_square():
    for shape in ((4, 2), (2, 5)):
        for mode in ("reduced", "complete"):
            check(lambda a, mode=mode: pg.linalg.qr(a, mode=mode), random(shape))
        check(pg.linalg.pinv, random(shape))


def test_triangles_are_read_alone():
    a, b = random((4, 4)), random((4, 3))
    for lower_ in (True, False):
        part = np.where(np.tri(4).T == 0 if lower_ else np.tri(4) == 0, a + 3, np.nan)
        part[np.arange(4), np.arange(4)] = 2.0
        for trans in (0, 1):
            check(lambda a, b, k=lower_, t=trans: pg.linalg.solve_triangular(a, b, t, k), part, b)


def test_derivatives_of_factors():
    def functions(a):
        positive = a @ a.T + 5 * np.eye(4)
        total = pg.sum(pg.linalg.cholesky(positive) ** 2) + pg.linalg.det(a)
        return total + pg.sum(pg.linalg.expm(a) ** 2)

    check(lambda a: pg.grad(functions(a), a), random((4, 4)))
    check(lambda a: pg.jvp(functions, [a], [a * a]), random((4, 4)))


def test_spectra():
    for shape, dtype in ((5, 5), "float64"), ((2, 4, 4), "float32"), ((1, 1), "float64"):
        a = random(shape, dtype)
        even = (a + a.swapaxes(-1, -2)).astype(dtype)
        check(pg.linalg.eigh, even, same=lambda found: (found[0], np.abs(found[1])))
        check(pg.linalg.eigvalsh, even)
        check(pg.linalg.svd, a, same=lambda found: map(np.abs, found))
        check(lambda a: pg.linalg.svd(a, compute_uv=False), a)
        check(pg.linalg.expm, 3 * a)


def test_singular_vectors_beside_the_others_are_orthonormal():
    rank_one = np.outer(np.arange(4.0), np.ones(3))
    for a in (rank_one, rank_one.T, random((5, 2))):

        def parts(found):
            u, s, vt = found
            k = len(s)
            return u[:, :k] * s @ vt[:k], u.T @ u, vt @ vt.T, s

        check(lambda a: pg.linalg.svd(a, full_matrices=True), a, same=parts)


def test_equal_eigenvalues():
    for a in (np.eye(4), np.zeros((3, 3)), np.diag([2.0, 1.0, 2.0])):
        check(pg.linalg.eigvalsh, a)


def test_errors_become_nan():
    graph = drop_formal(clean_up(lower(pg.trace(pg.linalg.cholesky, pg.spec((3, 3))))))
    (found,) = interpret(compose(graph, lambda eqn: False), np.diag([1.0, -1.0, 1.0]))
    assert np.isnan(found).all()


def test_each_pair_of_columns_turns_once():
    for n in (2, 5, 6):
        pairs = {(i, j) for row in _pairs(n) for i, j in enumerate(row) if i < j}
        assert len(pairs) == n * (n - 1) // 2
        assert all((row[row] == np.arange(n)).all() for row in _pairs(n))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_by_parts(dtype):
    z, w = random((3, 4), dtype), random((3, 4), dtype)
    z[0] = 0
    w[0, 1:] = -1, 0, 1j
    functions = (
        lambda z, w: (z * w, w[1:] / z[1:], z @ w.T, pg.exp(z), pg.log(z[1:]), 1 / pg.sqrt(z[1:])),
        lambda z, w: (pg.sin(z), pg.cos(z), pg.tan(z), pg.sinh(z), pg.cosh(z), pg.sqrt(z)),
        lambda z, w: (z**3, z[1:] ** -2, z**w, z**0.5, pg.sign(z), pg.expm1(z), pg.log1p(z)),
        lambda z, w: (pg.abs(z), pg.conj(z), z.real, z.imag, pg.angle(w), z.astype("complex128")),
        lambda z, w: (pg.concatenate([z, w]), z[::2], z[[0, 2]], z.T, pg.pad(z, 1), pg.tanh(z)),
        lambda z, w: (pg.sum(z, 0), pg.cumsum(z, 1), pg.where(z.real > 0, z, w), pg.split(z, 2, 1)),
        lambda z, w: (pg.prod(z, 0), pg.prod(w), pg.mean(z), z + np.array([1j, 2, 3, 4]), z == w),
        lambda z, w: pg.scan(lambda c, row: (c * row, c + row), z[0], w + (z != w)),
        lambda z, w: (pg.fft.rfft(z.real), pg.fft.ifft2(z, norm="ortho"), pg.fft.fft(z)),
        lambda z, w: (pg.fft.irfft(z), pg.fft.irfft(z, 7), pg.fft.irfft(z, 6, axis=0)),
        lambda z, w: pg.grad(pg.sum(pg.abs(pg.exp(z * w) + 1 / (3 + w * w))), [z, w]),
    )  # fmt: skip
    for function in functions:
        check(function, z, w, kept=PARTS)


def test_random_numbers_are_the_same():
    for key in (3, -5, [1, 2]):
        keys = np.array(key)
        check(lambda k: (pg.random.uniform(k, (2, 5), -1, 2), pg.random.bernoulli(k, (7,))), keys)
    wide = np.array(2**63 + 5, np.uint64)
    check(lambda k: pg.random.uniform(k, (5,), dtype="float32"), wide)


def test_divisors():
    check(pg.gcd, np.array([12, -8, 0, 7]), np.array([18, 12, 5, 0]))
