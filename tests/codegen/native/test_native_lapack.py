"""Linear algebra of native code through LAPACK: what it gives, refuses, and does without it."""

import shutil
import sys
import threading

import numpy as np
import pytest
from native_checks import outside

import primgraph as pg
from primgraph.codegen.lower.nests import routines, systems
from primgraph.codegen.runtime import lapack

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)
needs_lapack = pytest.mark.skipif(lapack.lapack() is None, reason="there is no LAPACK")
pytestmark = [needs_compiler, needs_lapack, pytest.mark.usefixtures("native_cache")]

rng = np.random.default_rng(17)
la = pg.linalg


@pytest.fixture
def early(monkeypatch):
    """LAPACK is called from four rows on."""
    for op in systems.FROM:
        monkeypatch.setitem(systems.FROM, op, 4)


def systems_of(a, b):
    symmetric = a @ a.mT + pg.eye(a.shape[-1], dtype=a.dtype)
    factor = la.cholesky(symmetric)
    return [
        la.solve(a, b), la.solve(a, b[..., :1]), la.inv(a), la.det(a), *la.slogdet(a), factor,
        pg.grad(pg.sum(factor * a), a), pg.forward_grad(factor, a, pg.sin(a)),
        *[la.solve_triangular(a * 0.02, b[..., :k], lower=low, trans=turned, unit_diagonal=low)
          for k, low, turned in ((1, 0, 0), (1, 1, 1), (3, 0, 0), (3, 0, 1), (3, 1, 0), (3, 1, 1))],
    ]  # fmt: skip


def factors_of(a, wide):
    symmetric = a + a.mT
    w, v = la.eigh(symmetric)
    return [
        w, v, la.eigvalsh(symmetric), *la.svd(wide), *la.svd(wide.mT, full_matrices=False),
        la.svdvals(wide), *la.qr(wide), *la.qr(wide.mT), *la.qr(wide.mT, "complete"),
        *la.lu(wide.mT), *la.lu(a),
    ]  # fmt: skip


def compared(function, arrays, rtol):
    graph = pg.trace(function, *arrays)
    native, numpy = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    assert not outside(native.graph)
    assert native.running_style(arrays) == "native"
    for k, (x, y) in enumerate(zip(native.flat(*arrays), numpy.flat(*arrays), strict=True)):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol, rtol * max(1, np.max(np.abs(y), initial=0)), str(k))
    return native


def few_of(a, b):
    return [la.solve(a, b), la.slogdet(a)[1], la.cholesky(a @ a.mT), *la.eigh(a + a.mT), *la.svd(a)]


def test_what_lapack_does_is_what_numpy_does(early):
    a, b = rng.normal(size=(2, 9, 9)) + 6 * np.eye(9), rng.normal(size=(2, 9, 3))
    compared(systems_of, [a, b], 1e-11)
    compared(factors_of, [a, rng.normal(size=(2, 5, 7))], 1e-11)
    compared(few_of, [a.astype("f4"), b.astype("f4")], 1e-3)


def test_large_matrices_are_lapacks_and_cross_its_blocks():
    a = rng.normal(size=(130, 130)) + 30 * np.eye(130)
    compared(systems_of, [a, rng.normal(size=(130, 3))], 1e-10)


def test_sizes_choose_at_run_time(early):
    spec = [pg.spec(("N", "N")), pg.spec(("N", 3))]
    graph = pg.trace(systems_of, *spec)
    native, numpy = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    factors = pg.trace(factors_of, spec[0], pg.spec(("M", "N")))
    both = pg.compile(factors, target="c"), pg.compile(factors, target="numpy")
    assert not outside(native.generic.graph) + outside(both[0].generic.graph)
    for n in (1, 3, 4, 40):
        arrays = rng.normal(size=(n, n)) + 2 * n**0.5 * np.eye(n), rng.normal(size=(n, 3))
        for x, y in zip(native(*arrays), numpy(*arrays), strict=True):
            np.testing.assert_allclose(x, y, 1e-9, 1e-9)
        arrays = arrays[0], rng.normal(size=(2 * n // 3 + 1, n))
        for x, y in zip(both[0](*arrays), both[1](*arrays), strict=True):
            np.testing.assert_allclose(x, y, 1e-9, 1e-9)
    for kernels, shape in (((native, numpy), (0, 3)), (both, (4, 0))):
        found, expected = (k(np.ones((0, 0)), np.ones(shape)) for k in kernels)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_loop_with_factors_is_c_as_a_whole(early):
    def f(stack):
        def trip(c, m):
            w, v = la.eigh(m @ m.mT + c)
            return la.qr(v * w)[1] + la.cholesky(m @ m.mT + pg.eye(6)), la.svdvals(m)

        return pg.scan(trip, pg.eye(6), stack)

    compared(f, [rng.normal(size=(4, 6, 6))], 1e-9)


def outcome(kernel, a):
    """Where results are NaN, or the error that there is in their place."""
    try:
        with np.errstate(all="ignore"):
            return [np.isnan(x).tolist() for x in kernel.flat(a)]
    except pg.RunError as error:
        return str(error).partition(" in kernel")[0]


def test_what_has_no_result_is_numpys_error_or_nan(early):
    def f(a):
        return la.cholesky(a) + la.inv(a), la.slogdet(a)[1], la.solve_triangular(a, a, lower=True)

    graph = pg.trace(f, np.eye(6))
    native, numpy = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    for wrong, told in ((-np.eye(6), "positive definite"), (np.zeros((6, 6)), "positive definite")):
        with pytest.raises(pg.RunError, match=told) as caught:
            native(wrong)
        assert "la.cholesky(a) + la.inv(a)" in str(caught.value)
    singular = np.ones((6, 6))
    for op in (la.inv, lambda a: la.solve(a, a), lambda a: la.solve_triangular(a - pg.eye(6), a)):
        with pytest.raises(pg.RunError, match="ingular"):
            pg.compile(pg.trace(op, singular), target="c")(singular)
    sign, size = pg.compile(pg.trace(la.slogdet, singular), target="c")(singular)
    assert (sign, size) == (0, -np.inf)
    for bad in (np.nan, np.inf):
        for place in ((0, 0), (5, 5), (4, 1)):
            a = np.eye(6) * 7 + 1
            a[place] = bad
            assert outcome(native, a) == outcome(numpy, a)
    nothing = np.full((6, 6), np.nan)
    for op in (la.svdvals, lambda a: la.qr(a)[1], la.eigvalsh):
        graph = pg.trace(op, nothing)
        found, expected = (outcome(pg.compile(graph, target=t), nothing) for t in ("c", "numpy"))
        assert found == expected


def test_functions_that_scipy_has_give_the_same(early, monkeypatch):
    pytest.importorskip("scipy.linalg")
    theirs = lapack._load_scipy_lapack()
    assert theirs is not None
    for module in (lapack, routines, systems):
        monkeypatch.setattr(module, "lapack", lambda: theirs)
    a = rng.normal(size=(6, 6)) + 6 * np.eye(6)
    compared(few_of, [a, rng.normal(size=(6, 3))], 1e-11)


def test_without_lapack_numpy_does_it(monkeypatch):
    for module in (lapack, routines, systems):
        monkeypatch.setattr(module, "lapack", lambda: None)
    a = rng.normal(size=(65, 65)) + 20 * np.eye(65)
    graph = pg.trace(lambda a: [la.inv(a), la.solve(a[:5, :5], a[:5]), *la.eigh(a + a.T)], a)
    assert outside(pg.compile(graph).graph) == {"inv": 1, "eigh": 1}
    kernel = pg.compile(graph, target="c")
    assert "by NumPy: eigh" in str(kernel.plan)
    for x, y in zip(kernel(a), pg.compile(graph, target="numpy")(a), strict=True):
        np.testing.assert_allclose(x, y, 1e-9, 1e-9)


def test_other_threads_run_meanwhile_and_the_same_bits_come_out():
    a = rng.normal(size=(4, 150, 150))
    graph = pg.trace(lambda a: [la.cholesky(a @ a.mT + pg.eye(150)), la.inv(a)], a)
    kernel = pg.compile(graph, target="c")
    expected, found = kernel(a), []
    before = sys.getswitchinterval()
    # Nobody asks for the lock in that time: it is given back, or kept.
    sys.setswitchinterval(100.0)
    try:
        turns, done = [0], threading.Event()

        def count():
            while not done.is_set():
                turns[0] += 1
                done.wait(1e-4)

        counting = threading.Thread(target=count)
        counting.start()
        start = turns[0]
        threads = [threading.Thread(target=lambda: found.append(kernel(a))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert turns[0] > start
        done.set()
        counting.join()
    finally:
        sys.setswitchinterval(before)
    for results in found:
        for x, y in zip(results, expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_pivots_that_lapack_cannot_divide_by_and_factors_with_nan_are_numpys():
    a = rng.normal(size=(120, 120)) + 30 * np.eye(120)
    x = rng.normal(size=(120, 2))
    tiny = (a * 1e-39).astype("f4")
    b = (a @ x * 1e-39).astype("f4")
    lower = (np.tril(a) @ x * 1e-39).astype("f4")

    def f(a, b, c):
        return la.solve(a, b), la.solve(a, b[:, :1]), la.solve_triangular(a, c, lower=True)

    graph = pg.trace(f, tiny, b, lower)
    for found, k in zip(pg.compile(graph, target="c")(tiny, b, lower), (2, 1, 2), strict=True):
        np.testing.assert_allclose(found, x[:, :k], 1e-3, 1e-4)
    bad = a.copy()
    bad[7, 3] = np.nan
    graph = pg.trace(lambda a: list(la.lu(a)), a)
    native, numpy = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    for array in (bad, a * 1e-310):
        for p, q in zip(native(array), numpy(array), strict=True):
            np.testing.assert_array_equal(p, q)


def test_an_error_within_a_function_of_the_module_has_the_users_line():
    graph = pg.trace(lambda a: la.solve_triangular(a, a, lower=True), pg.spec(("N", "N")))
    for target in ("c", "numpy"):
        with pytest.raises(pg.RunError, match="Singular matrix") as caught:
            pg.compile(graph, target=target)(np.zeros((3, 3)))
        assert "triangular_solve failed" in str(caught.value)
        assert "la.solve_triangular(a, a, lower=True)" in str(caught.value)


def solving_loop(a, b):
    """Systems with a matrix and its transpose that a loop does not change, and their gradient."""

    def step(x, _):
        return la.solve(a.mT, la.solve(a, x + b)), None

    x, _ = pg.scan(step, b, None, length=5)
    value = pg.sum(x * x)
    return value, *pg.grad(value, [a, b])


def test_a_matrix_that_loops_do_not_change_is_factored_once():
    for shape, columns in (((7, 7), (7,)), ((6, 6), (6, 3)), ((2, 5, 5), (2, 5, 1))):
        a = rng.normal(size=shape) + 3 * np.eye(shape[-1])
        b = rng.normal(size=columns)
        for dtype, rtol in ((np.float64, 1e-10), (np.float32, 1e-3)):
            arrays = [a.astype(dtype), b.astype(dtype)]
            compared(solving_loop, arrays, rtol)
            kernel = pg.compile(pg.trace(solving_loop, *arrays), target="c")
            names = [eqn.op.name for eqn in kernel.graph.body]
            assert names.count("lu") == 1
            assert all("solve" not in [e.op.name for e in g.body] for g in bodies(kernel.graph))


def bodies(graph):
    return [body for eqn in graph.body for body in eqn.bodies]


def test_factors_of_a_constant_matrix_are_computed_once_for_all_calls():
    a = rng.normal(size=(6, 6)) + 3 * np.eye(6)
    graph = pg.trace(lambda b: solving_loop(pg.array(a), b)[0], np.ones(6))
    kernel = pg.compile(graph, target="c")
    assert "lu" in [kernel.graph.body[k].op.name for k in kernel.once]


def test_a_singular_matrix_that_a_loop_does_not_change_is_refused():
    for trips in (0, 5):

        def loop(a, b, trips=trips):
            return pg.while_loop(
                lambda s: s[1] < trips, lambda s: (la.solve(a, s[0]), s[1] + 1), (b, 0)
            )  # fmt: skip

        kernel = pg.compile(pg.trace(loop, np.ones((6, 6)), np.ones(6)), target="c")
        assert "lu" in [e.op.name for e in kernel.graph.body]
        if trips:
            with pytest.raises(pg.RunError, match="ingular"):
                kernel(np.ones((6, 6)), np.ones(6))
        else:
            found, count = kernel(np.ones((6, 6)), np.ones(6))
            assert count == 0
            np.testing.assert_array_equal(found, np.ones(6))
