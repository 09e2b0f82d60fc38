"""SciPy's names for linear algebra beyond NumPy's: values as SciPy's, derivatives, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from density import drawn

import primgraph as pg
from primgraph.scipy import linalg

sl = pytest.importorskip("scipy.linalg")

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def numbers_anew() -> None:
    """Each test draws the same numbers, whichever tests its process has run before."""
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state


def real(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


def both(*shape: int) -> np.ndarray:
    return real(*shape) + 1j * real(*shape)


def hermitian(a: Any) -> Any:
    return 0.5 * (a + np.conj(np.swapaxes(a, -1, -2)))


def near(g: Any) -> np.ndarray:
    return 0.5 * g(3, 3) + np.diag([2.0, 5, 9])


def definite(g: Any) -> np.ndarray:
    x = g(3, 3)
    return x @ x.conj().T + np.eye(3)


BANDS = np.array([4.0, 5, 6, 5, 4])

# A call by either library, and its arrays, made of real or of complex numbers.
CALLS: dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = {
    "forms": (
        lambda m, a, b: (m.circulant(a), m.hankel(a), m.hankel(a, b), m.companion(a + 2),
                         m.leslie(b, a), m.matmul_toeplitz((a, b), b)),
        lambda g: (g(3), g(4)),
    ),
    "stacks of vectors": (lambda m, a: m.circulant(a[0]), lambda g: (g(2, 3),)),
    "distances": (
        lambda m, a: (m.fiedler(a), m.diagsvd(a, 3, 5), m.diagsvd(a, 4, 3)),
        lambda g: (real(3),),
    ),
    "convolutions": (
        lambda m, a: tuple(m.convolution_matrix(a, n, mode) for n in (1, 2, 3, 6)
                           for mode in ("full", "same", "valid")),
        lambda g: (g(3),),
    ),
    "khatri_rao": (lambda m, a, b: m.khatri_rao(a, b), lambda g: (g(2, 3), g(3, 3))),
    "functions": (
        lambda m, a: (m.cosm(a), m.sinm(a), m.tanm(a), m.coshm(a), m.sinhm(a), m.tanhm(a)),
        lambda g: (0.2 * near(g),),
    ),
    "signm": (lambda m, a: m.signm(a), lambda g: (near(g) @ np.diag([1.0, -1, 1]),)),
    "powers": (
        lambda m, a: (m.fractional_matrix_power(a, 0.3), m.fractional_matrix_power(a, -2)),
        lambda g: (near(g),),
    ),
    "expm_frechet": (
        lambda m, a, e: (*m.expm_frechet(a, e), m.expm_frechet(a, e, compute_expm=False)),
        lambda g: (0.3 * near(g), g(3, 3)),
    ),
    "lyapunov": (
        lambda m, a, q: (m.solve_continuous_lyapunov(a, q), m.solve_lyapunov(a, q),
                         m.solve_discrete_lyapunov(0.1 * a, q)),
        lambda g: (near(g), g(3, 3)),
    ),
    "riccati": (
        lambda m, a, b, q, r: (m.solve_continuous_are(a, b, hermitian(q), hermitian(r)),
                               m.solve_discrete_are(0.6 * a, b, hermitian(q), hermitian(r))),
        lambda g: (g(2, 2), np.ones((2, 1)) + 0.3 * g(2, 1), definite(g)[:2, :2],
                   np.eye(1) + 0 * g(1, 1)),
    ),
    "circulant systems": (
        lambda m, a, b: m.solve_circulant(a, b),
        lambda g: (g(3) + np.array([4, 0, 0]), g(3)),
    ),
    "bands": (
        lambda m, ab, b: (m.solveh_banded(ab * np.eye(2)[::-1].sum(0)[:, None], b),
                          m.solveh_banded(ab[::-1], b[:, 0], lower=True)),
        lambda g: (np.stack([0.5 * g(5), BANDS]), g(5, 2)),
    ),
    "eigenvalues of pairs": (
        lambda m, a, b: tuple(
            w for t, lower in ((1, True), (2, False), (3, True))
            for w in (m.eigvalsh(hermitian(a), hermitian(b), lower=lower, type=t),
                      abs(m.eigh(hermitian(a), hermitian(b), lower=lower, type=t)[1]))
        ),
        lambda g: (near(g), definite(g)),
    ),
    "some eigenvalues": (
        lambda m, a: (m.eigh(hermitian(a), subset_by_index=(1, 2))[0],
                      m.eigh(hermitian(a), eigvals_only=True),
                      abs(m.eigh(hermitian(a), lower=False)[1])),
        lambda g: (near(g),),
    ),
    "general eigenvalues": (
        lambda m, a, b: (m.eigvals(a), m.eigvals(a, b), m.eig(a, right=False),
                         *map(abs, m.eig(a, left=True)), abs(m.eig(a, b)[1])),
        lambda g: (near(g), definite(g)),
    ),
    "tridiagonal": (
        lambda m, d, e: (m.eigvalsh_tridiagonal(d, e), abs(m.eigh_tridiagonal(d, e)[1]),
                         m.eigvalsh_tridiagonal(d, e, select="i", select_range=(0, 1))),
        lambda g: (real(4), real(3)),
    ),
    "qr": (
        lambda m, a: (*m.qr(a, mode="economic"), m.qr(a)[0][:, :3], m.qr(a)[1],
                      m.qr(a, mode="r")[0]),
        lambda g: (g(4, 3),),
    ),
    "polar": (
        lambda m, a: (*m.polar(a), *m.polar(a, side="left")),
        lambda g: (g(3, 4),),
    ),
    "spaces": (
        lambda m, a, b: (*m.orthogonal_procrustes(a, a @ b), m.subspace_angles(a[:, :2], a[:2].T)),
        lambda g: (g(4, 4), 3 * np.eye(4) + 0.5 * g(4, 4)),
    ),
    "pseudo-inverses": (
        lambda m, a, h: (m.pinv(a), m.pinvh(hermitian(h)), m.pinv(a, return_rank=True)[0]),
        lambda g: (g(4, 3), near(g)),
    ),
    "least squares": (
        lambda m, a, b: (*m.lstsq(a, b)[:2], m.lstsq(a, b)[3], *m.lstsq(a, b[:, 0])[:2]),
        lambda g: (g(4, 3), g(4, 2)),
    ),
}  # fmt: skip


# Those with derivatives of their own are looked at to the second order.
DEEP = ("riccati", "polar", "some eigenvalues", "signm")


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", CALLS)
def test_values_are_scipys_with_derivatives_of_real_and_complex_numbers(name: str) -> None:
    function, make = CALLS[name]
    for g in (real, both):
        arrays = make(g)
        expected = listed(function(sl, *arrays))
        graph = pg.trace(lambda *xs: function(linalg, *xs), *arrays)
        found = listed(pg.compile(graph)(*arrays))
        for mine, theirs in zip(found, expected, strict=True):
            theirs = np.asarray(theirs)
            assert mine.shape == theirs.shape
            # SciPy's power of a real matrix is complex where its logarithm might be.
            assert mine.dtype == theirs.dtype or name == "powers"
            np.testing.assert_allclose(mine, theirs, 1e-9, 1e-10)
        if g is real or drawn(name, 3):
            order = 2 if name in DEEP and g is real else 1
            pg.check_grads(lambda *xs: function(linalg, *xs), arrays, order=order)
    for mine, theirs in zip(listed(function(linalg, *arrays)), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def by_triangle(t: Any, z: Any) -> tuple[Any, ...]:
    """What does not depend on phases of columns."""
    return pg.diagonal(t), abs(t), z @ (t @ t) @ np.conj(z).T


def test_schur_factors_are_triangles_between_orthogonal_columns() -> None:
    turned = np.array([[1.0, 2.0, 0.5], [-1.5, 0.3, 0.2], [0.1, 0.4, -1.0]])
    cases = ((near(real), "real"), (turned, "complex"), (near(both), "real"))
    for a, output in cases:
        graph = pg.trace(lambda x, o=output: linalg.schur(x, output=o), a)
        t, z = pg.compile(graph)(a)
        theirs, _ = sl.schur(a, output=output)
        assert t.dtype == theirs.dtype
        np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
        np.testing.assert_allclose(z.conj().T @ z, np.eye(3), atol=1e-12)
        np.testing.assert_array_equal(np.tril(t, -1), 0)
        np.testing.assert_allclose(np.diag(t), np.diag(theirs), rtol=1e-10)
        np.testing.assert_allclose(abs(t), abs(theirs), rtol=1e-8, atol=1e-10)
        pg.check_grads(lambda x, o=output: by_triangle(*linalg.schur(x, output=o)), [a], order=2)
    kernel = pg.compile(pg.trace(lambda x: linalg.schur(x), turned))
    with pytest.raises(np.linalg.LinAlgError, match="complex eigenvalues"):
        kernel(turned)


def test_spaces_whose_number_of_dimensions_is_told() -> None:
    for g in (real, both):
        a = g(4, 2) @ g(2, 3)
        found = pg.compile(
            pg.trace(lambda x: (linalg.null_space(x, size=1), linalg.orth(x, size=2)), a)
        )(a)
        for mine, theirs in zip(found, (sl.null_space(a), sl.orth(a)), strict=True):
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine @ mine.conj().T, theirs @ theirs.conj().T, atol=1e-12)
        wide = g(2, 4)
        pg.check_grads(
            lambda x: (lambda v: v @ pg.conj(v).T)(linalg.null_space(x, size=2)), [wide], order=1
        )
    with pytest.raises(pg.ShapeError, match="depends on numbers") as caught:
        pg.trace(lambda x: linalg.orth(x), a)
    assert "size=2" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: linalg.hankel(x), pg.ShapeError, "hankel takes a vector"),
        (lambda x: linalg.leslie(x[0], x[0]), pg.ShapeError, "one element less"),
        (lambda x: linalg.diagsvd(x[0], 2, 2), pg.ShapeError, "as long as neither"),
        (lambda x: linalg.convolution_matrix(x[0], 2, "all"), pg.ArgumentError, "'full'"),
        (lambda x: linalg.khatri_rao(x, x[:, :2]), pg.ShapeError, "as many columns"),
        (lambda x: linalg.expm_frechet(x @ x.T, x), pg.ShapeError, "shapes differ"),
        (lambda x: linalg.solve_continuous_are(x, x, x, x), pg.ShapeError, "do not fit"),
        (lambda x: linalg.eigh(x @ x.T, type=4), pg.ArgumentError, "type 1, 2 or 3"),
        (lambda x: linalg.eigh(x @ x.T, subset_by_value=(0, 1)), pg.ArgumentError, "depends"),
        (lambda x: linalg.qr(x, pivoting=True), pg.ArgumentError, "depends on numbers"),
        (lambda x: linalg.qr(x, mode="raw"), pg.ArgumentError, "'economic'"),
        (lambda x: linalg.polar(x, side="up"), pg.ArgumentError, "'left' or 'right'"),
        (lambda x: linalg.schur(x @ x.T, sort="lhp"), pg.ArgumentError, "no sort"),
        (lambda x: linalg.pinv(x, atol=1e-3), pg.ArgumentError, "no atol"),
        (lambda x: linalg.funm(x, np.exp), pg.ArgumentError, "no counterpart"),
    ],
)
def test_what_does_not_fit_is_told_with_the_line(call: Any, error: Any, message: str) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("x", (2, 3)))
    assert "test_scipy_linalg.py" in str(caught.value)


def test_tensors_and_functions_that_were_written_for_scipy() -> None:
    a, b, q = real(2, 2), real(2, 1), np.eye(2)

    def gain(a: Any) -> Any:
        x = sl.solve_continuous_are(a, b, q, np.eye(1))
        return np.sum((b.T @ x) ** 2)

    np.testing.assert_allclose(pg.value_and_grad(gain)(a)[0], gain(a), rtol=1e-10)
    tensor = pg.tensor(a, requires_grad=True)
    u, p = linalg.polar(tensor)
    pg.sum(u * 2 + p).backward()
    expected = pg.grad(lambda x: (lambda u, p: pg.sum(u * 2 + p))(*linalg.polar(x)))(a)
    np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-10)
