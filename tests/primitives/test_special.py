"""Special functions: values of SciPy's and mpmath's, derivatives by mpmath, in every way to run."""

from __future__ import annotations

import math
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import primgraph as pg
import primgraph.scipy
import primgraph.scipy.special as dropped

sp = pg.special

NUMBERS = np.array([0.05, 0.4, 1.0, 1.5, 2.0, 3.3, 9.5, 40.0])
SIGNED = np.array([-7.3, -2.5, -0.4, -1e-5, 0.0, 0.3, 1.2, 5.0, 30.0])
PARTS = np.array([1e-9, 0.02, 0.3, 0.5, 0.51, 0.7, 0.97, 1 - 1e-9])
A, B = (v.reshape(-1) for v in np.meshgrid(NUMBERS, NUMBERS[::2]))

# The operands on which each function is compared with SciPy's of that name.
GRID: dict[str, tuple[Any, ...]] = {
    "beta": (A, B),
    "betainc": (A, B, np.resize(PARTS, A.shape)),
    "betaincc": (A, B, np.resize(PARTS, A.shape)),
    "betaln": (A, B),
    "binom": (A + 1.0, np.minimum(B, 5.0)),
    "boxcox": (np.append(A, [0.0, 0.0, 2.0]), np.append(B - 1.0, [1.0, 0.0, 1e-9])),
    "boxcox1p": (np.append(A, [-1.0, 1e-9]), np.append(B - 1.0, [1.0, 0.0])),
    "cosm1": (np.append(SIGNED, [1e-9, 0.0]),),
    "comb": (A, np.append(B[1:], -1.0)),
    "digamma": (np.append(NUMBERS, [-0.3, -7.7]),),
    "entr": (np.append(NUMBERS, [0.0, -1.0]),),
    "erfcinv": (2 * PARTS,),
    "erfcx": (np.append(NUMBERS, -NUMBERS[:5]),),
    "erfinv": (np.append(PARTS, -PARTS),),
    "expit": (SIGNED,),
    "exprel": (SIGNED,),
    "factorial": (np.append(NUMBERS, [0.0, -3.0]),),
    "gamma": (np.append(NUMBERS, [-0.3, -7.7]),),
    "gammainc": (A, B),
    "gammaincc": (A, B),
    "gammaln": (np.append(NUMBERS, [-0.3, -7.7]),),
    "gammasgn": (SIGNED,),
    "huber": (np.append(A, -1.0), np.append(1.0 - B, 1.0)),
    "kl_div": (np.append(A, [0.0, -1.0, 1.0]), np.append(B, [2.0, 1.0, 0.0])),
    "log_expit": (SIGNED,),
    "log_ndtr": (SIGNED,),
    "logit": (PARTS,),
    "ndtr": (SIGNED,),
    "ndtri": (PARTS,),
    "poch": (A, B),
    "pseudo_huber": (np.append(A, [-1.0, 0.0]), np.append(1.0 - B, [1.0, 2.0])),
    "rel_entr": (np.append(A, [0.0, -1.0, 1.0]), np.append(B, [0.0, 1.0, 0.0])),
    "xlog1py": (np.append(A, 0.0), np.append(B, -1.0)),
    "xlogy": (np.append(A, 0.0), np.append(B, 0.0)),
}
COMPOSED = (
    "binom", "boxcox", "boxcox1p", "comb", "cosm1", "exprel", "factorial", "huber", "kl_div",
    "ndtr", "ndtri", "poch", "pseudo_huber", "rel_entr",
)  # fmt: skip

# Those that SciPy computes, on points where they are smooth.
BORROWED: dict[str, tuple[Any, ...]] = {
    **{
        name: (np.array([0.3, 1.0, 2.5, 7.0]),)
        for name in (
            "dawsn",
            "exp1",
            "expi",
            "i0",
            "i0e",
            "i1",
            "i1e",
            "j0",
            "j1",
            "k0",
            "k0e",
            "k1",
            "k1e",
            "spence",
            "y0",
            "y1",
        )
    },
    **{name: (np.array([0.0, 0.04, 0.3, 0.9]),) for name in ("ellipe", "ellipk", "erfi")},
    **{
        name: (np.array([0.0, 0.5, 2.0, 3.0]), np.array([0.3, 1.0, 2.5, 7.0]))
        for name in ("iv", "ive", "jv", "kv", "kve", "yv")
    },
    "zeta": (np.array([1.5, 2.0, 3.0, 7.0]), np.array([0.3, 1.0, 2.5, 7.0])),
    "expn": (np.arange(4.0), np.array([0.3, 1.0, 2.5, 7.0])),
    "hyp1f1": (*np.random.default_rng(0).uniform(0.5, 1.5, (2, 4)), np.linspace(-2.0, 3.0, 4)),
    "hyp2f1": (*np.random.default_rng(0).uniform(0.5, 1.5, (3, 4)), np.linspace(0.0, 0.6, 4)),
}
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 2.0, 1e-310, 1e300])


def traced(function: Callable[..., Any], *operands: np.ndarray) -> pg.Kernel:
    return pg.compile(pg.trace(function, *(pg.spec(v.shape, v.dtype) for v in operands)))


def test_every_function_has_a_row() -> None:
    rest = {"multigammaln", "polygamma", "erf", "erfc", "log_softmax", "logsumexp", "softmax"}
    # Functions that SciPy does not have.
    rest |= {name for name in sp.__all__ if not hasattr(scipy.special, name)}
    known = {*GRID, *rest, *BORROWED, "SiciResult", "lambertw", "sici", "wofz"}
    missing = sorted(set(sp.__all__) - known)
    assert not missing, f"add rows for {missing} to GRID"
    assert known == set(sp.__all__)


@pytest.mark.parametrize("name", GRID)
def test_values_are_those_of_scipy(name: str, tmp_path: Path) -> None:
    """In both styles, from a file, of float32, and of nothing."""
    function, known = getattr(sp, name), getattr(scipy.special, name)
    operands = GRID[name]
    expected = known(*operands)

    def called(*xs: Any) -> Any:
        return function(*xs)

    kernel = traced(called, *operands)
    for style in ("planned", "readable"):
        found = pg.compile(kernel.graph, style=style)(*operands)
        np.testing.assert_allclose(found, expected, 2e-12, 1e-300)
    kernel.save(tmp_path / "saved.py")
    saved = runpy.run_path(str(tmp_path / "saved.py"))[kernel.graph.name]
    np.testing.assert_array_equal(saved(*operands), found)
    narrow = [v.astype(np.float32) for v in operands]
    with np.errstate(over="ignore"):
        wide = known(*[v.astype(float) for v in narrow]).astype(np.float32)
    found = traced(called, *narrow)(*narrow)
    assert found.dtype == np.float32
    # Compositions are rounded to float32 on the way.
    np.testing.assert_allclose(found, wide, 2e-4 if name in COMPOSED else 3e-7, 1e-38)
    nothing = [v[:0] for v in operands]
    assert traced(called, *nothing)(*nothing).shape == (0,)


# Where SciPy's differs on purpose of SciPy's: at infinite parameters, say, that mean nothing.
EDGE_FUNCTIONS = (
    "digamma", "entr", "erfcinv", "erfcx", "erfinv", "expit", "gamma", "gammaln", "log_expit",
    "log_ndtr", "logit", "ndtr", "ndtri",
)  # fmt: skip


def test_edges_are_those_of_scipy() -> None:
    for name in EDGE_FUNCTIONS:
        with np.errstate(all="ignore"):
            expected = getattr(scipy.special, name)(EDGES)
        function = getattr(sp, name)
        found = traced(lambda x, f=function: f(x), EDGES)(EDGES)
        plain = expected if name != "gammaln" else np.where(EDGES == 1e-310, found, expected)
        np.testing.assert_allclose(found, plain, 1e-13, 1e-310, err_msg=name)
    pairs = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, np.inf], [-1.0, 1.0], [np.nan, 1.0]]).T
    for name in ("gammainc", "gammaincc"):
        expected = getattr(scipy.special, name)(*pairs)
        found = traced(lambda a, x, n=name: getattr(sp, n)(a, x), *pairs)(*pairs)
        np.testing.assert_array_equal(found, expected, err_msg=name)
    ends = np.array([0.0, 1.0, -0.1, 1.1])
    for name in ("betainc", "betaincc"):
        found = traced(lambda x, n=name: getattr(sp, n)(2.0, 3.0, x), ends)(ends)
        np.testing.assert_array_equal(found, getattr(scipy.special, name)(2.0, 3.0, ends))


def by_mpmath(function: Callable[..., Any], orders: tuple[int, ...], *at: float) -> float:
    with mpmath.workdps(40):
        if sum(orders) == 0:
            return float(function(*map(mpmath.mpf, at)))
        return float(mpmath.diff(function, tuple(map(mpmath.mpf, at)), orders))


def lower_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def normal(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


DIFFERENTIATED: list[tuple[Callable[..., Any], Callable[..., Any], tuple[float, ...]]] = [
    (sp.gammaln, mpmath.loggamma, (2.7,)),
    (sp.gamma, mpmath.gamma, (-1.3,)),
    (sp.digamma, mpmath.digamma, (0.4,)),
    (lambda x: sp.polygamma(2, x), lambda x: mpmath.psi(2, x), (1.4,)),
    (sp.betaln, lambda a, b: mpmath.log(mpmath.beta(a, b)), (2.5, 11.0)),
    (sp.beta, mpmath.beta, (0.6, 1.7)),
    (sp.gammainc, lower_gamma, (3.2, 2.4)),
    (sp.gammainc, lower_gamma, (0.7, 1.9)),
    (sp.gammaincc, lambda a, x: 1 - lower_gamma(a, x), (1.3, 5.0)),
    (sp.betainc, lower_beta, (2.3, 0.8, 0.35)),
    (sp.betaincc, lambda a, b, x: 1 - lower_beta(a, b, x), (1.4, 3.1, 0.6)),
    (sp.erfinv, mpmath.erfinv, (0.63,)),
    (sp.erfcinv, lambda x: mpmath.erfinv(1 - x), (0.2,)),
    (sp.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (1.8,)),
    (sp.ndtr, normal, (-1.1,)),
    (sp.ndtri, lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), (0.2,)),
    (sp.log_ndtr, lambda x: mpmath.log(normal(x)), (-12.0,)),
    (sp.log_ndtr, lambda x: mpmath.log(normal(x)), (0.8,)),
    (sp.logit, lambda p: mpmath.log(p / (1 - p)), (0.4,)),
    (sp.log_expit, lambda x: -mpmath.log1p(mpmath.exp(-x)), (0.4,)),
    (sp.xlogy, lambda x, y: x * mpmath.log(y), (0.4, 1.7)),
    (sp.xlog1py, lambda x, y: x * mpmath.log1p(y), (0.4, 1.7)),
    (sp.entr, lambda x: -x * mpmath.log(x), (0.7,)),
    (sp.rel_entr, lambda x, y: x * mpmath.log(x / y), (0.7, 0.2)),
    (sp.kl_div, lambda x, y: x * mpmath.log(x / y) - x + y, (0.7, 0.2)),
    (lambda a: sp.multigammaln(a, 3), lambda a: sum(
        mpmath.loggamma(a - mpmath.mpf(j) / 2) for j in range(3)
    ), (4.2,)),
]  # fmt: skip


@pytest.mark.parametrize("a", [1e-3, 0.01, 0.5])
def test_incomplete_gamma_functions_at_tiny_arguments(a: float) -> None:
    """Below x, where exp(-t) is 1, the density is t**(a - 1) / gamma(a)."""

    def below(a: Any, x: Any) -> Any:
        return mpmath.mpf(x) ** a / mpmath.gamma(a + 1)

    at = np.array(a)
    for x in (1e-20, 1e-100, 1e-300):
        first, second = (by_mpmath(lambda a, x=x: below(a, x), (n,), a) for n in (1, 2))
        for function, sign in ((sp.gammainc, 1.0), (sp.gammaincc, -1.0)):

            def value(a: Any, f: Any = function, x: float = x) -> Any:
                return f(a, x)

            slope = pg.grad(value)
            np.testing.assert_allclose(traced(slope, at)(at), sign * first, 1e-12)
            np.testing.assert_allclose(traced(pg.grad(slope), at)(at), sign * second, 1e-10, 1e-15)


def test_derivatives_to_order_two_are_those_of_mpmath() -> None:
    """Gradients and Hessians by all operands, in reverse over reverse and forward over reverse."""
    for function, known, at in DIFFERENTIATED:
        point = np.array(at)
        count = len(at)

        def value(x: Any, f: Any = function, n: int = count) -> Any:
            return f(*(x[i] for i in range(n)))

        orders = np.eye(count, dtype=int)
        gradient = [by_mpmath(known, tuple(o), *at) for o in orders.tolist()]
        hessian = [[by_mpmath(known, tuple((p + q).tolist()), *at) for p in orders] for q in orders]
        kernel = traced(
            lambda x, v=value: (pg.grad(v(x), x), pg.hessian(v, x), pg.jacfwd(pg.grad(v))(x)), point
        )
        first, second, forward = kernel(point)
        message = f"{function.__name__} at {at}"
        np.testing.assert_allclose(first, gradient, 3e-12, err_msg=message)
        for found in (second, forward):
            np.testing.assert_allclose(found, hessian, 2e-11, 1e-13, err_msg=message)


def test_slopes_at_edges() -> None:
    def slope(function: Callable[..., Any], *at: float) -> list[float]:
        specs = [pg.spec(()) for _ in at]
        graph = pg.trace(lambda *xs: pg.grad(function(*xs), list(xs)), *specs)
        return [float(g) for g in pg.compile(graph)(*at)]

    assert slope(sp.xlogy, 0.0, 2.0) == [np.log(2.0), 0.0]
    assert slope(sp.xlogy, 0.0, 0.0) == [-np.inf, 0.0]
    assert slope(sp.entr, 0.0) == [np.inf]
    assert slope(sp.rel_entr, 0.0, 0.5)[1] == 0.0
    assert slope(lambda x: sp.gammainc(1.0, x), 0.0) == [1.0]
    for upper, sign in ((sp.gammainc, -1.0), (sp.gammaincc, 1.0)):
        by_shape = slope(upper, 0.0, 2.5)[0]
        assert by_shape == pytest.approx(sign * scipy.special.exp1(2.5), rel=1e-12)
    assert slope(lambda x: sp.betainc(1.0, 1.0, x), 0.0) == [1.0]
    assert slope(sp.log_ndtr, -1e5)[0] == pytest.approx(1e5)
    assert slope(sp.log_ndtr, 50.0) == [0.0]
    assert slope(lambda x: pg.grad(sp.log_ndtr(x), x), 50.0) == [0.0]
    assert slope(sp.erfinv, 1.0) == [np.inf]
    assert slope(lambda x: pg.where(x > 0, sp.gammaln(x), 0.0), 0.0) == [0.0]


def test_batches_loops_sizes_and_tensors() -> None:
    def statistic(x: Any) -> Any:
        return sp.gammainc(x, 2.0) * sp.digamma(x) + sp.betaln(x, 3.0) - sp.log_ndtr(x)

    expected = traced(statistic, NUMBERS)(NUMBERS)
    rows = NUMBERS.reshape(2, 4)
    found = traced(lambda x: pg.vmap(statistic)(x), rows)(rows)
    np.testing.assert_allclose(found.reshape(-1), expected, 1e-13)
    looped = traced(lambda x: pg.scan(lambda s, v: (s, statistic(v)), 0.0, x)[1], NUMBERS)
    np.testing.assert_allclose(looped(NUMBERS), expected, 1e-13)
    sized = pg.compile(pg.trace(statistic, pg.spec(("N",))))
    np.testing.assert_allclose(sized(NUMBERS[:5]), expected[:5], 1e-13)
    tensor = pg.tensor(NUMBERS, requires_grad=True)
    total = statistic(tensor)
    np.testing.assert_allclose(total.numpy(), expected, 1e-13)
    total.sum().backward()
    graph = traced(lambda x: pg.grad(pg.sum(statistic(x)), x), NUMBERS)
    np.testing.assert_allclose(tensor.grad, graph(NUMBERS), 1e-12)
    text = str(pg.trace(lambda x: pg.grad(pg.sum(statistic(x)), x), pg.spec(3)))
    assert str(pg.parse(text)) == text


def test_integers_and_scalars_are_promoted_as_operators_do_it() -> None:
    kernel = traced(lambda n, x: sp.beta(n, x), np.arange(1, 4), np.ones((2, 1)))
    found = kernel(np.arange(1, 4), np.full((2, 1), 2.0))
    np.testing.assert_allclose(found, scipy.special.beta(np.arange(1, 4), np.full((2, 1), 2.0)))
    single = np.float32([0.5, 2.0])
    assert traced(lambda x: sp.gammainc(2.0, x), single)(single).dtype == np.float32


# The doors of SciPy.


def test_ufuncs_of_scipy_take_variables_and_tensors() -> None:
    def mixed(x: Any) -> Any:
        return scipy.special.gammaln(x) + scipy.special.betainc(2.0, x, 0.3)

    expected = mixed(NUMBERS)
    np.testing.assert_allclose(traced(mixed, NUMBERS)(NUMBERS), expected, 1e-13)
    np.testing.assert_allclose(mixed(pg.tensor(NUMBERS)).numpy(), expected, 1e-13)


def test_the_drop_in_is_scipy_itself_on_arrays() -> None:
    assert dropped.gammaln(3.5) == scipy.special.gammaln(3.5)
    assert dropped.polygamma(1, 3.5) == scipy.special.polygamma(1, 3.5)
    assert dropped.jv(1, 2.0) == scipy.special.jv(1, 2.0)
    assert primgraph.scipy.special is dropped
    assert "gammaln" in dir(dropped)
    found = traced(lambda x: dropped.polygamma(1, x) + dropped.psi(x), NUMBERS)(NUMBERS)
    known = scipy.special.polygamma(1, NUMBERS) + scipy.special.psi(NUMBERS)
    np.testing.assert_allclose(found, known, 1e-13)
    with pytest.raises(pg.UnknownNameError, match="nothing named 'gamaln'"):
        _ = dropped.gamaln


def poisson(rate: Any, count: Any) -> Any:
    """As it would be written for NumPy and SciPy."""
    tail = scipy.special.polygamma(0, count + 1.0) + special_of_scipy.multigammaln(rate, 2)
    return np.sum(special_of_scipy.xlogy(count, rate) - rate) + np.sum(tail)


special_of_scipy = scipy.special


def test_functions_that_were_written_for_scipy_are_traced_as_they_are() -> None:
    counts = np.arange(8.0)
    kernel = pg.compile(pg.trace(poisson, pg.spec(()), pg.spec(8)))
    np.testing.assert_allclose(kernel(1.5, counts), poisson(1.5, counts), 1e-13)


def test_what_does_not_fit_is_told() -> None:
    with pg.Program():
        x = pg.data("x", (3,))
        with pytest.raises(pg.ArgumentError, match="orders from 0 on, not -1"):
            sp.polygamma(-1, x)
        with pytest.raises(pg.ArgumentError, match="fixed when the program is built"):
            sp.polygamma(x, x)
        with pytest.raises(pg.ArgumentError, match="dimensions from 1 on"):
            sp.multigammaln(x, 0)
        with pytest.raises(pg.ShapeError, match="betaln cannot broadcast"):
            sp.betaln(x, np.ones(4))
        with pytest.raises(pg.UnknownNameError, match="nothing named 'gamaln'"):
            _ = sp.gamaln
        with pytest.raises(pg.ArgumentError, match=r"scipy\.special\.jve has no counterpart"):
            dropped.jve(1, x)


# Those that SciPy computes.


def test_borrowed_functions_and_their_slopes() -> None:
    """Gradients and Hessians by the last operand, against differences."""
    for name, operands in BORROWED.items():
        *orders, x = operands
        kernel = traced(lambda *xs, n=name: getattr(sp, n)(*xs), *operands)
        expected = getattr(scipy.special, name)(*operands)
        np.testing.assert_allclose(kernel(*operands), expected, 1e-14, err_msg=name)
        inside = x + 0.01
        pg.check_grads(lambda v, n=name, o=orders: getattr(sp, n)(*o, v), [inside], order=2)
    x = np.array([0.3, 1.0, 2.5])
    functions: list[tuple[Callable[..., Any], Any]] = [
        (sp.lambertw, scipy.special.lambertw(x).real),
        (lambda v: sp.lambertw(-v / 10, -1), scipy.special.lambertw(-x / 10, -1).real),
        (lambda v: sp.sici(v).si, scipy.special.sici(x)[0]),
        (lambda v: sp.sici(v).ci, scipy.special.sici(x)[1]),
    ]
    for function, expected in functions:
        np.testing.assert_allclose(traced(function, x)(x), expected, 1e-14)
        pg.check_grads(function, [x], order=2)
    assert np.isnan(traced(sp.lambertw, x)(-x)).tolist() == [False, True, True]


def test_slopes_of_borrowed_functions_at_removable_points() -> None:
    def slopes(function: Callable[..., Any], at: float) -> list[float]:
        def both(x: Any) -> Any:
            first = pg.grad(function(x), x)
            return first, pg.grad(first, x)

        return [float(v) for v in pg.compile(pg.trace(both, pg.spec(())))(at)]

    np.testing.assert_allclose(slopes(sp.ellipk, 0.0), [np.pi / 8, 9 * np.pi / 64], 1e-14)
    np.testing.assert_allclose(slopes(sp.ellipe, 0.0), [-np.pi / 8, -3 * np.pi / 64], 1e-14)
    np.testing.assert_allclose(slopes(sp.spence, 1.0), [-1.0, 0.5], 1e-14)
    np.testing.assert_allclose(slopes(sp.i1, 0.0), [0.5, 0.0], 1e-14)
    np.testing.assert_allclose(slopes(lambda x: sp.sici(x).si, 0.0), [1.0, 0.0], 1e-14)
    np.testing.assert_allclose(slopes(sp.lambertw, 0.0), [1.0, -2.0], 1e-14)
    np.testing.assert_allclose(slopes(sp.exprel, 0.0), [0.5, 1 / 3], 1e-14)
    found = slopes(lambda x: sp.boxcox(2.0, x), 0.0)
    np.testing.assert_allclose(found, [np.log(2) ** 2 / 2, np.log(2) ** 3 / 3], 1e-13)


def test_derivatives_without_a_formula_are_refused() -> None:
    with pytest.raises(pg.NotDifferentiable, match="expn has no derivative by its order"):
        pg.trace(lambda v: pg.grad(sp.expn(v, 2.0), v), pg.spec(()))
    with pg.Program(), pytest.raises(pg.ArgumentError, match="has the branches 0 and -1, not 2"):
        sp.lambertw(pg.data("x", (3,)), 2)


def test_a_file_says_what_it_needs_of_scipy(tmp_path: Path, monkeypatch: Any) -> None:
    def wave(x: Any) -> Any:
        return pg.grad(pg.sum(sp.jv(1.5, x)), x)

    x = np.array([0.5, 2.0])
    kernel = traced(wave, x)
    kernel.save(tmp_path / "wave.py")
    found = runpy.run_path(str(tmp_path / "wave.py"))
    np.testing.assert_array_equal(found["wave"](x), kernel(x))
    np.testing.assert_allclose(kernel(x), scipy.special.jvp(1.5, x), 1e-14)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=r"jv is SciPy's, which is not installed.*scipy"):
        found["wave"](x)
    with pytest.raises(pg.RunError, match="jv is SciPy's"):
        kernel(x)


def stirling_error(x: Any) -> Any:
    return math.lgamma(x) + math.log(math.gamma(x))


def test_functions_of_math_are_traced() -> None:
    kernel = pg.compile(pg.trace(stirling_error, pg.spec(())))
    np.testing.assert_allclose(kernel(4.5), stirling_error(4.5), 1e-15)


COMBINED: list[tuple[Callable[..., Any], list[float]]] = [
    (sp.binom, [4.5, 1.7]),
    (sp.boxcox, [2.3, 0.4]),
    (sp.boxcox1p, [0.3, 1e-4]),
    (sp.cosm1, [0.7]),
    (sp.exprel, [0.7]),
    (sp.factorial, [3.3]),
    (sp.huber, [1.5, 0.7]),
    (sp.huber, [0.5, -0.7]),
    (sp.poch, [2.2, 1.3]),
    (sp.pseudo_huber, [1.5, -0.7]),
]


def test_slopes_of_compositions() -> None:
    for function, at in COMBINED:
        pg.check_grads(function, [np.array(v) for v in at], order=2)
    for function in (np.i0, scipy.special.i0):
        tensor = pg.tensor(NUMBERS[:5])
        np.testing.assert_allclose(function(tensor).numpy(), np.i0(NUMBERS[:5]), 1e-14)


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_bits_do_not_depend_on_how_feeds_lie_in_memory(style: str) -> None:
    """Functions in a loop, and their slopes: NumPy has other code for other strides."""

    def trip(total: Any, row: Any) -> Any:
        y = 1.1 + 0.7 * pg.tanh(row)
        found = sp.erfcx(row) + sp.log_ndtr(row) + sp.gammaln(y) + sp.xlogy(y, total)
        found += (
            sp.erfinv(0.5 * y) + sp.logit(0.5 * y) + sp.gammainc(y, y) + sp.betainc(y, 2.0, 0.3)
        )
        return total + found * found, pg.flip(pg.grad(pg.sum(found), row), 0)

    def loop(x: Any) -> Any:
        return pg.scan(trip, pg.ones(x.shape[1:]), pg.flip(x, 0))

    rng = np.random.default_rng(3)
    for shape in ((3, 5), (2, 1)):
        kernel = pg.compile(pg.trace(loop, pg.spec(shape)), style=style)
        x = rng.normal(size=shape)
        expected = [a.tobytes() for a in kernel.flat(x)]
        for rows, columns in ((-1, -1), (1, -2), (-3, 1), (2, 3)):
            wide = np.empty((shape[0] * abs(rows), shape[1] * abs(columns)))
            view = wide[::rows, ::columns]
            view[...] = x
            shifted = np.empty(x.size + abs(rows))[abs(rows) :].reshape(shape)
            shifted[...] = x
            for feed in (view, np.asfortranarray(x), shifted):
                assert [a.tobytes() for a in kernel.flat(feed)] == expected
