"""Linear algebra of complex numbers: values, slopes by the convention, both styles, files."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from density import drawn
from helpers import evaluate, same
from program_tolerance import differs

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.scipy import linalg as drop_in
from primgraph.transforms import batch, lower

RNG = np.random.default_rng(31)
L = pg.linalg


def general(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape) + 1j * RNG.uniform(-1, 1, shape)


def spread(*shape: int) -> np.ndarray:
    """Matrices with eigenvalues, and singular values, apart from each other and from zero."""
    return general(*shape) + np.eye(*shape[-2:]) * (4 * np.arange(1, shape[-1] + 1))


def definite(*shape: int) -> np.ndarray:
    x = general(*shape)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])


def hermitian(a: Any) -> Any:
    return 0.5 * (a + np.conj(np.swapaxes(a, -1, -2)))


def applied(w: Any, v: Any) -> Any:
    """A function of a Hermitian matrix by its eigenvalues, whatever the phases of vectors are."""
    return (v * np.exp(0.1 * w)[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2))


MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
VECTOR_ORDERS = (None, 1, -1, 2, -2, 3, 2.5, np.inf, -np.inf)
SQUARE, STACK, TALL, WIDE = spread(3, 3), spread(2, 3, 3), spread(4, 3), spread(2, 3)
DEFINITE, SIDES = definite(3, 3), general(3, 2)


def lstsq(a: Any, b: Any) -> Any:
    found = np.linalg.lstsq(a, b, rcond=None)
    return found[0], found[1], found[3]


# A function of arrays in NumPy's and SciPy's words, traced as it is, and arrays. What depends on
# phases of vectors is in VALUES.
SMOOTH: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "products": (
        lambda a, b: (a @ b, np.inner(a, b.T), np.vdot(a, a), np.tensordot(a, b, 1),
                      np.einsum("ij,jk->ki", a, b), np.outer(a, b), np.kron(a, b), np.vecdot(a, a),
                      np.trace(a), np.dot(a, b)),
        (SQUARE, SIDES),
    ),
    "solve": (np.linalg.solve, (STACK, SIDES)),
    "inv": (np.linalg.inv, (STACK,)),
    "det": (np.linalg.det, (STACK,)),
    "slogdet": (lambda a: tuple(np.linalg.slogdet(a)), (STACK,)),
    "cholesky": (lambda a: np.linalg.cholesky(hermitian(a)), (definite(2, 3, 3),)),
    "cholesky, upper": (lambda a: scipy.linalg.cholesky(hermitian(a)), (DEFINITE,)),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(hermitian(a)), (STACK,)),
    "eigh": (
        lambda a: (lambda w, v: (w, np.abs(v), applied(w, v)))(*np.linalg.eigh(hermitian(a))),
        (SQUARE,),
    ),
    "eigh, upper": (
        lambda a: (lambda w, v: (w, applied(w, v)))(*np.linalg.eigh(hermitian(a), "U")),
        (SQUARE,),
    ),
    "eig": (
        lambda a: (lambda w, v: (w, np.abs(v), (v * w**2) @ np.linalg.inv(v)))(*np.linalg.eig(a)),
        (SQUARE,),
    ),
    "eigvals": (np.linalg.eigvals, (STACK,)),
    "svd": (
        lambda a: (lambda u, s, vh: (np.abs(u), s, np.abs(vh), u @ vh))(
            *np.linalg.svd(a, full_matrices=False)
        ),
        (TALL,),
    ),
    "svd of wide ones": (
        lambda a: (lambda u, s, vh: (np.abs(u), (u * s**2) @ vh[:2]))(*np.linalg.svd(a)),
        (WIDE,),
    ),
    "svdvals": (np.linalg.svdvals, (STACK,)),
    "qr": (lambda a: tuple(np.linalg.qr(a)), (TALL,)),
    "qr of wide ones": (lambda a: tuple(np.linalg.qr(a)), (WIDE,)),
    "pinv": (np.linalg.pinv, (TALL,)),
    "lstsq": (lstsq, (TALL, general(4))),
    "lstsq of wide ones": (lambda a, b: lstsq(a, b)[0], (WIDE, general(2, 2))),
    "norms": (lambda a: tuple(np.linalg.norm(a, o) for o in MATRIX_ORDERS), (TALL,)),
    "norms of vectors": (
        lambda a: tuple(np.linalg.norm(a, o, axis=0) for o in VECTOR_ORDERS),
        (SIDES,),
    ),
    "cond": (lambda a: tuple(np.linalg.cond(a, o) for o in MATRIX_ORDERS), (SQUARE,)),
    "powers": (
        lambda a: (np.linalg.matrix_power(a, -2), np.linalg.multi_dot([a, a, a])),
        (SQUARE,),
    ),
    "triangles": (
        lambda a, b: tuple(
            scipy.linalg.solve_triangular(a, b, trans=t, lower=lower)
            for t, lower in ((0, True), ("T", False), (2, True), ("C", False))
        ),
        (SQUARE, SIDES),
    ),
    "expm": (lambda a: scipy.linalg.expm(a), (0.3 * SQUARE,)),
    "logm": (lambda a: scipy.linalg.logm(a), (SQUARE,)),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a), (SQUARE,)),
    "lu": (lambda a: scipy.linalg.lu(a)[1:], (general(3, 3),)),
    "lu_solve": (
        lambda a, b: tuple(scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans=t)
                           for t in (0, 1, 2)),
        (SQUARE, SIDES),
    ),
    "cho_solve": (
        lambda a, b: tuple(
            scipy.linalg.cho_solve(scipy.linalg.cho_factor(hermitian(a), lower), b)
            for lower in (True, False)
        ),
        (DEFINITE, SIDES),
    ),
    "solve of definite ones": (
        lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"),
        (DEFINITE, SIDES),
    ),
    "toeplitz": (
        lambda c, b: (scipy.linalg.toeplitz(c), scipy.linalg.solve(scipy.linalg.toeplitz(c), b)),
        (np.array([5, 1j, 1 - 1j]), SIDES),
    ),
    "solve_sylvester": (
        lambda a, b, q: scipy.linalg.solve_sylvester(a, b, q),
        (SQUARE, spread(2, 2), SIDES),
    ),
    "solve_banded": (
        lambda ab, b: scipy.linalg.solve_banded((1, 1), ab, b),
        (general(3, 3) + np.array([0, 4, 0])[:, None], SIDES),
    ),
    "tensors": (
        lambda a, b: (np.linalg.tensorsolve(a, b), np.linalg.tensorinv(a)),
        (spread(4, 4).reshape(2, 2, 4), general(2, 2)),
    ),
}  # fmt: skip


# Those whose vectors have phases, which other tests leave out.
SECOND = ("eigh", "eigvalsh", "eig", "svd", "lstsq", "norms")


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("name", SMOOTH)
def test_functions_are_numpys_with_slopes_in_both_modes_to_order_two(name: str) -> None:
    function, arrays = SMOOTH[name]
    for dtype, tolerance in ((np.complex128, 1e-11), (np.complex64, 2e-4)):
        given = [a.astype(dtype) for a in arrays]
        graph = pg.trace(function, *(pg.spec(a.shape, a.dtype) for a in given))
        with warnings.catch_warnings():
            # SciPy tells that its logarithms are not exact.
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = listed(function(*given))
        assert pg.parse(str(graph), graph.constants) == graph
        made = [pg.compile(graph, style=s)(*given) for s in ("planned", "readable")]
        for found in (interpret(lower(graph), *given), *made):
            for mine, theirs in zip(listed(found), expected, strict=True):
                if name in ("logm", "sqrtm"):
                    # Results have the dtype of the matrix, where SciPy's may be wider.
                    theirs = theirs.astype(dtype)
                same(mine, theirs, tolerance)

    def whole(*xs: Any) -> Any:
        """One real number, in which every part of every result has a weight of its own."""
        total = 0.0
        for found in listed(function(*xs)):
            weights = np.cos(np.arange(found.size)).reshape(found.shape)
            total = total + pg.sum(pg.real(found * (weights * (0.3 - 1.1j))))
        return total

    # The registry test has other primitives, all of them to the second order.
    pg.check_grads(whole, arrays, order=1 + (name in SECOND or drawn(name, 6)))


# What has another phase, or is a count: values alone.
VALUES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "eigh": (np.linalg.eigh, (hermitian(STACK),)),
    "eig": (np.linalg.eig, (STACK,)),
    "svd": (np.linalg.svd, (TALL,)),
    "qr, complete": (lambda a: np.linalg.qr(a, "complete"), (TALL,)),
    "matrix_rank": (np.linalg.matrix_rank, (np.ones((3, 3)) * (1 + 1j),)),
    "norm of order 0": (lambda a: np.linalg.norm(a, 0), (np.array([0, 1j, 2]),)),
    "permutations": (lambda a: drop_in.lu(a), (general(4, 3),)),
    **{
        f"{name} of none": (getattr(np.linalg, name), (np.zeros(shape, complex),))
        for name, shape in (
            ("inv", (0, 0)), ("det", (0, 2, 2)), ("slogdet", (0, 0)), ("cholesky", (0, 2, 2)),
            ("eigh", (0, 0)), ("svd", (0, 2, 2)), ("eigvals", (0, 0)), ("pinv", (3, 0)),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_and_dtypes_are_numpys(name: str) -> None:
    function, arrays = VALUES[name]
    for dtype, tolerance in ((np.complex128, 1e-11), (np.complex64, 1e-4)):
        given = [a.astype(dtype) for a in arrays]
        expected = listed(function(*given))
        for mine, theirs in zip(evaluate(function, *given), expected, strict=True):
            same(mine, theirs, tolerance)


def test_large_matrices_are_factored_in_blocks() -> None:
    for size in (130,):
        a, b = definite(size, size), general(size, 40)
        weights = np.tril(general(size, size))
        factor = pg.compile(pg.trace(lambda a: L.cholesky(a), pg.spec(a.shape, a.dtype)))(a)
        np.testing.assert_allclose(factor, np.linalg.cholesky(a), rtol=1e-11, atol=1e-12)
        kernel = pg.compile(
            pg.trace(
                lambda a, w=weights: pg.grad(pg.sum(pg.real(L.cholesky(a) * w)), a),
                pg.spec(a.shape, a.dtype),
            )
        )
        # By the formula, of conjugates as the convention has it.
        upper = np.conj(np.swapaxes(factor, -1, -2))
        within = np.tril(upper @ np.conj(weights))
        within -= 0.5 * within * np.eye(size)
        left = np.linalg.solve(upper, within)
        both = np.linalg.solve(upper, np.conj(np.swapaxes(left, -1, -2)))
        np.testing.assert_allclose(kernel(a), np.conj(hermitian(both)), rtol=1e-8, atol=1e-11)
        solved = pg.compile(
            pg.trace(
                lambda a, b: L.solve_triangular(a, b, trans=2, lower=True),
                *(pg.spec(x.shape, x.dtype) for x in (a, b)),
            )
        )(factor, b)
        np.testing.assert_allclose(upper @ solved, b, rtol=1e-9, atol=1e-11)


def test_stacks_are_batches_and_one_matrix_is_factored_once() -> None:
    def function(a: Any, b: Any) -> Any:
        x = L.solve(a, b)
        return x, L.inv(a), L.eigvalsh(a + pg.conj(a).T), L.svdvals(a), L.expm(0.1 * a)

    a, b = spread(3, 3, 3), general(3, 3, 2)
    graph = lower(pg.trace(function, *(pg.spec(x.shape[1:], x.dtype) for x in (a, b))))
    for axes in ((0, 0), (0, None), (None, 0)):
        feeds = [x if axis == 0 else x[1] for x, axis in zip((a, b), axes, strict=True)]
        found = interpret(batch(graph, 3, axes), *feeds)
        for i in range(3):
            sample = [x[i] if axis == 0 else x for x, axis in zip(feeds, axes, strict=True)]
            for mine, theirs in zip(found, interpret(graph, *sample), strict=True):
                np.testing.assert_allclose(mine[i], theirs, rtol=1e-11, atol=1e-12)
    both = pg.compile(pg.trace(lambda a, b: (L.solve(a, b), L.inv(a) @ b.T.T), a[0], b[0]))
    assert both.source.count("np.linalg") == 1
    np.testing.assert_allclose(both(a[0], b[0]), np.stack([np.linalg.solve(a[0], b[0])] * 2))


def test_gradients_of_real_losses_are_less_i_times_the_slope_by_imaginary_parts() -> None:
    """The convention of JAX and autograd, as a table in the documentation has it."""

    def loss(a: Any) -> Any:
        w, v = np.linalg.eigh(hermitian(a))
        _, logdet = np.linalg.slogdet(a)
        return np.sum(np.abs(v[0]) ** 2 * w) + logdet + np.linalg.norm(np.linalg.inv(a), "nuc")

    def slope(step: complex, place: tuple[int, int]) -> float:
        unit = np.zeros((3, 3), complex)
        unit[place] = step
        return float(loss(SQUARE + unit) - loss(SQUARE - unit)) / (2 * abs(step))

    h = 1e-5
    wanted = np.array([[slope(h, (i, j)) - 1j * slope(1j * h, (i, j)) for j in range(3)]
                       for i in range(3)])  # fmt: skip
    np.testing.assert_allclose(pg.grad(loss)(SQUARE), wanted, rtol=1e-7, atol=1e-8)
    tensor = pg.tensor(SQUARE, requires_grad=True)
    loss(tensor).backward()
    np.testing.assert_allclose(tensor.grad.numpy(), wanted, rtol=1e-7, atol=1e-8)
    # Holomorphic functions have derivatives that are complex numbers.
    along = general(3, 3)
    for function in (L.det, lambda a: L.inv(a)[0, 1], lambda a: pg.trace(L.expm(0.1 * a))):
        found = pg.grad(function, holomorphic=True)(SQUARE)
        value, moved = pg.jvp(function, SQUARE, along)
        assert np.asarray(value).dtype == np.complex128
        np.testing.assert_allclose(np.sum(found * along), moved, rtol=1e-10)


def test_real_matrices_have_their_complex_eigenvalues_as_complex_ones() -> None:
    turning = np.array([[0.1, 2.0, 0.0], [-1.0, 0.3, 0.5], [0.2, 0.0, 1.5]])

    def values(a: Any) -> Any:
        return np.linalg.eigvals(a.astype(complex))

    graph = pg.trace(values, pg.spec((3, 3)))
    np.testing.assert_allclose(pg.compile(graph)(turning), np.linalg.eigvals(turning + 0j))
    slopes = pg.check_grads(lambda a: pg.max(pg.abs(values(a))), [turning], order=2)
    assert slopes is None
    kernel = pg.compile(pg.trace(lambda a: L.eigvals(a), pg.spec((3, 3))))
    with pytest.raises(np.linalg.LinAlgError, match=r"a\.astype\(complex\)"):
        kernel(turning)


def test_equal_eigenvalues_and_singular_values_put_no_nan_into_slopes() -> None:
    along = hermitian(general(3, 3))
    for matrix in (np.eye(3) * (2 + 0j), np.diag([1.0, 3, 3]) + 0j):
        for function, direct in (
            (lambda a: pg.sum(L.eigvalsh(a) ** 2), lambda a: pg.real(pg.trace(a @ a))),
            (lambda a: L.norm(a, "nuc"), None),
            (lambda a: pg.real(pg.sum(L.eigh(a)[0])), lambda a: pg.real(pg.trace(a))),
        ):
            slope = pg.grad(function)(matrix)
            assert np.all(np.isfinite(slope))
            if direct is not None:
                np.testing.assert_allclose(slope, pg.grad(direct)(matrix), atol=1e-12)
            second = pg.jvp(pg.grad(function), matrix, along)[1]
            assert np.all(np.isfinite(second))


def test_loops_and_unknown_sizes() -> None:
    def powers(a: Any, x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            carry = L.solve(a, carry)
            carry = carry / L.norm(carry)
            return carry, pg.real(pg.vecdot(carry, a @ carry))

        return pg.sum(pg.scan(step, x, None, length=3)[1])

    x = general(3)
    pg.check_grads(powers, (SQUARE, x), order=1)
    kernel = pg.compile(
        pg.trace(
            lambda a, x: pg.grad(powers(a, x), [a, x]),
            pg.spec(("N", "N"), "complex128"), pg.spec(("N",), "complex128"),
        )
    )  # fmt: skip
    for a, v in ((SQUARE, x), (SQUARE[:2, :2], x[:2])):
        wanted = pg.grad(powers, (0, 1))(a, v)
        for mine, theirs in zip(kernel(a, v), wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_saved_files_need_numpy_alone(tmp_path: Path) -> None:
    def function(a: Any, b: Any) -> Any:
        factor = L.cholesky(a @ pg.conj(a).T)
        total = pg.sum(pg.abs(factor)) + pg.sum(L.svdvals(a)) + pg.real(L.det(a))
        total = total + pg.sum(pg.abs(L.sqrtm(a))) + pg.sum(pg.abs(L.lu(a)[1]))
        total = total + pg.sum(pg.abs(L.eigvals(a))) + pg.sum(pg.abs(L.solve(a, b)))
        return pg.grad(total, [a, b])

    kernel = pg.compile(pg.trace(function, SQUARE, SIDES))
    kernel.save(tmp_path / "saved.py")
    np.savez(tmp_path / "feeds.npz", a=SQUARE, b=SIDES)
    code = (
        "import sys, numpy as np; sys.modules['primgraph'] = None; sys.modules['scipy'] = None;"
        "import saved; f = np.load('feeds.npz');"
        "np.savez('out.npz', *saved.function(f['a'], f['b']))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with np.load(tmp_path / "out.npz") as out:
        for mine, theirs in zip(out.values(), kernel(SQUARE, SIDES), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_rewrites_by_structure_leave_complex_matrices_what_they_are() -> None:
    """At every level, where facts of real matrices would make something else."""

    def function(a: Any, b: Any) -> Any:
        r = L.qr(a)[1]
        symmetric = a + a.T
        outer = a @ a.T + 2 * pg.eye(3, dtype="complex128")
        lower_part = pg.tril(a)
        return (
            *L.slogdet(r), L.det(r), L.solve(r, b), L.inv(symmetric) @ b, L.solve(outer, b),
            L.det(outer), *L.slogdet(lower_part), L.solve(lower_part, b), L.inv(pg.conj(a).T @ a),
        )  # fmt: skip

    graph = pg.trace(function, SQUARE, SIDES)
    wanted = interpret(lower(graph), SQUARE, SIDES)
    for math in ("exact", "signs", "finite", "fast"):
        found = pg.compile(graph, math=math)(SQUARE, SIDES)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
    assert not differs(lower(graph), [SQUARE, SIDES], wanted, wanted)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda z: L.inv(z), pg.ShapeError, "inv takes square matrices"),
        (lambda z: L.eigh(z[0]), pg.ShapeError, "eigh takes matrices"),
        (lambda z: pg.assume(z @ z.T, "symmetric"), pg.DTypeError, "matrices of floats"),
        (lambda z: L.solve_triangular(z.T @ z, z, trans=3), pg.ArgumentError, "'C'"),
        (lambda z: L.lu_solve(L.lu_factor(z @ z.T), z, trans=3), pg.ArgumentError, "0, 1 or 2"),
        (lambda z: pg.cummax(L.eigvals(z @ z.T)), pg.DTypeError, "no order"),
    ],
)
def test_what_does_not_fit_is_told_with_the_line(call: Any, error: Any, message: str) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("z", (2, 3), "complex128"))
    assert "test_complex_linalg.py" in str(caught.value)


def test_what_has_no_result_is_an_error_of_the_run() -> None:
    for function, array in (
        (L.cholesky, -np.eye(2) + 0j),
        (L.inv, np.ones((2, 2), complex)),
        (L.sqrtm, np.zeros((2, 2), complex)),
        (lambda a: pg.grad(L.slogdet(a)[1], a), np.zeros((2, 2), complex)),
    ):
        kernel = pg.compile(pg.trace(lambda a, f=function: f(a), pg.spec((2, 2), "complex128")))
        with pytest.raises(np.linalg.LinAlgError, match=r"test_complex_linalg\.py"):
            kernel(array)


def test_roots_and_logarithms_of_matrices_with_negative_eigenvalues() -> None:
    turn = np.array([[1.0, 2.0, 0.5], [0.3, 1.0, -1.0], [0.2, 0.1, 1.5]])
    for eigenvalues in ([-1.0, -4.0, 2.0], [-2.0, 1.0 - 3.0j, -1.0 - 1.0j], [-1.0, -3.0, -0.5]):
        a = turn @ np.diag(eigenvalues) @ np.linalg.inv(turn) + 0j
        for function, theirs in ((L.sqrtm, scipy.linalg.sqrtm), (L.logm, scipy.linalg.logm)):
            for kernel in (function, pg.jit(function)):
                np.testing.assert_allclose(np.asarray(kernel(a)), theirs(a), 1e-9, 1e-9)
        # Of each derivative: the root R of A solves R dR + dR R = dA.
        change = np.random.default_rng(1).normal(size=(3, 3)) + 0j
        root, slope = pg.jvp(L.sqrtm, a, change)
        np.testing.assert_allclose(root @ slope + slope @ root, change, 1e-8, 1e-8)
        first = pg.jvp(lambda a, d=change: pg.jvp(L.sqrtm, a, d)[1], a, change)[1]
        np.testing.assert_allclose(root @ first + first @ root, -2.0 * slope @ slope, 1e-7, 1e-7)


def test_the_drop_in_names_take_complex_arrays_and_variables() -> None:
    for name, arrays in (("expm", (SQUARE,)), ("solve", (SQUARE, SIDES)), ("svdvals", (TALL,))):
        function = getattr(drop_in, name)
        expected = getattr(scipy.linalg, name)(*arrays)
        np.testing.assert_array_equal(function(*arrays), expected)
        (found,) = evaluate(function, *arrays)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
