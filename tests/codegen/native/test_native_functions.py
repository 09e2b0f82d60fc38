"""Elementary functions of native code: within one unit in the last place of the true value."""

import pickle
import re
import shutil
import subprocess

import mpmath as mp
import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import HostCall
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.ops.c.functions import (
    ELEMENTARY,
    definitions,
    elementary_function,
    elementary_functions,
    reduction,
    reductions,
)
from primgraph.codegen.runtime.toolchain import compile_c

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


rng = np.random.default_rng(3)


def between(low, high, count=60):
    return rng.uniform(low, high, count)


def by_size(low, high, count=60):
    """Numbers whose logarithms are evenly distributed."""
    sign = np.sign(low)
    return sign * np.exp2(rng.uniform(*np.log2(np.abs([low, high])), count))


SMALL = (by_size(1e-300, 1), by_size(-1e-30, -1))
ONE = {
    "exp": (mp.exp, [between(-745, 709), between(-1, 1)]),
    "expm1": (mp.expm1, [between(-40, 709), between(-1, 1), *SMALL]),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), [between(-740, 50), between(-4, 4)]),
    "sinh": (mp.sinh, [between(-710, 710), between(-2, 2), *SMALL]),
    "cosh": (mp.cosh, [between(-710, 710), between(-2, 2)]),
    "tanh": (mp.tanh, [between(-22, 22), between(-1, 1), *SMALL]),
    "log": (mp.log, [by_size(1e-320, 1e308), between(0.5, 2)]),
    "log1p": (mp.log1p, [by_size(1e-300, 1e300), between(-0.999, 1), *SMALL]),
    "arcsinh": (mp.asinh, [by_size(1e-300, 1e308), between(-10, 10)]),
    "arccosh": (mp.acosh, [by_size(1, 1e308), between(1, 10)]),
    "arctanh": (mp.atanh, [between(-1, 1), *SMALL]),
    "sin": (mp.sin, [between(-1e6, 1e6), between(-7, 7), by_size(1e6, 1e300), *SMALL]),
    "cos": (mp.cos, [between(-1e6, 1e6), between(-7, 7), by_size(1e6, 1e300)]),
    "tan": (mp.tan, [between(-1e6, 1e6), between(-7, 7), by_size(1e6, 1e300), *SMALL]),
    "arcsin": (mp.asin, [between(-1, 1), *SMALL]),
    "arccos": (mp.acos, [between(-1, 1), *SMALL]),
    "arctan": (mp.atan, [by_size(1e-300, 1e300), between(-10, 10)]),
    "erf": (mp.erf, [between(-7, 7), between(-1, 1), by_size(1e-290, 1)]),
    "erfc": (mp.erfc, [between(-7, 26), between(-2, 2)]),
}
TWO = {
    "power": (
        lambda x, y: x**y,
        [by_size(1e-300, 1e300), between(0.5, 2), by_size(1e-3, 1e3)],
        [between(-1, 1), between(-900, 900), between(-90, 90)],
    ),
    "arctan2": (
        mp.atan2,
        [between(-9, 9), by_size(1e-300, 1e300), by_size(-1e-5, -1e5)],
        [between(-9, 9), by_size(1e-300, 1e300), by_size(-1e-5, -1e5)],
    ),
    # Where it is next to zero there is less of it.
    "logaddexp": (
        lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
        [between(-700, 700), between(0, 1), between(-37, -34), by_size(1e-3, 10)],
        [between(-700, 700), by_size(1e-30, 1), [1e-300] * 60, by_size(1e-3, 10)],
    ),
}


def units_apart(found, true, digits, least):
    """How far a number is from the true one, in units in the last place."""
    if not np.isfinite(found):
        # What is too large for the type may be infinite.
        return 0.0 if abs(true) >= mp.mpf(2) ** (1024 if digits == 53 else 128) * 0.999 else np.inf
    if true == 0:
        return 0.0 if found == 0 else np.inf
    _, exponent = mp.frexp(true)
    unit = mp.mpf(2) ** max(int(exponent) - digits, least)
    return float(abs(mp.mpf(float(found)) - true) / unit)


@pytest.mark.parametrize(
    ("dtype", "digits", "least", "math", "bound"),
    [
        ("f8", 53, -1074, "exact", 1.0),
        ("f4", 24, -149, "exact", 1.0),
        ("f8", 53, -1074, "fast", 4.0),
        ("f4", 24, -149, "fast", 4.0),
    ],
)
def test_functions_are_within_units_in_the_last_place(dtype, digits, least, math, bound):
    with np.errstate(all="ignore"):
        arrays = [np.concatenate(ranges).astype(dtype) for _, ranges in ONE.values()]
        pairs = [[np.concatenate(r).astype(dtype) for r in rows] for _, *rows in TWO.values()]
    flat = [*arrays, *(a for pair in pairs for a in pair)]

    def all_of_them(*given):
        rest = iter(given)
        found = [getattr(pg, name)(next(rest)) for name in ONE]
        return found + [getattr(pg, name)(next(rest), next(rest)) for name in TWO]

    kernel = pg.compile(pg.trace(all_of_them, *flat), target="c", math=math)
    results = kernel(*flat)
    with mp.workdps(60):
        for name, (true, _), x, y in zip(ONE, ONE.values(), arrays, results, strict=False):
            for a, b in zip(x, y, strict=True):
                if not np.isfinite(a):
                    continue
                apart = units_apart(b, true(mp.mpf(float(a))), digits, least)
                assert apart <= bound, (name, a, b, apart)
        for name, (true, *_), (x, z), y in zip(
            TWO, TWO.values(), pairs, results[len(ONE) :], strict=True
        ):
            for a, c, b in zip(x, z, y, strict=True):
                if np.isinf(a) or np.isinf(c) or not (a and c):
                    continue
                apart = units_apart(b, true(mp.mpf(float(a)), mp.mpf(float(c))), digits, least)
                assert apart <= bound, (name, a, c, b, apart)
    assert kernel.running_style(flat) == "native"


EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -3.0,
    0.5,
    -1.5,
    3e300,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -1e-310,
]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_functions_of_two_are_numpys_at_edges(dtype):
    with np.errstate(all="ignore"):
        x, y = (a.ravel().astype(dtype) for a in np.meshgrid(EDGES, EDGES))
        names = ["power", "arctan2", "maximum", "minimum", "logaddexp"]
        kernel = pg.compile(
            pg.trace(lambda x, y: [getattr(pg, n)(x, y) for n in names], x, y), target="c"
        )
        expected = [getattr(np, n)(x, y) for n in names]
        for name, a, b in zip(names, kernel(x, y), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=name)
            numbers = ~np.isnan(b)
            np.testing.assert_array_equal(np.signbit(a[numbers]), np.signbit(b[numbers]), name)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_fast_functions_are_as_exact_ones_at_edges(dtype):
    """NaNs, infinities, what overflows, and zeros of both signs."""
    with np.errstate(all="ignore"):
        x = np.array([*EDGES, 800.0, -800.0, 100.0, -100.0, -87.5, -708.5, 1e-300], dtype)
    names = list(ONE)
    graph = pg.trace(lambda x: [getattr(pg, n)(x) for n in names], x)
    exact, fast = (pg.compile(graph, target="c", math=m) for m in ("exact", "fast"))
    for name, a, b in zip(names, exact(x), fast(x), strict=True):
        np.testing.assert_allclose(b, a, rtol=4 * np.finfo(dtype).eps, err_msg=name)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b), name)


def test_what_an_element_becomes_does_not_depend_on_others():
    """A run with a number far out is computed otherwise, to the same bits."""
    names = ["exp", "sigmoid", "tanh", "log"]
    for dtype in ("f8", "f4"):
        x = between(-80, 80, 500).astype(dtype)
        y = x.copy()
        y[[3, 300]] = np.nan, -1e30
        graph = pg.trace(lambda x: [getattr(pg, n)(x) for n in names], x)
        for math in ("exact", "fast"):
            kernel = pg.compile(graph, target="c", math=math)
            with np.errstate(all="ignore"):
                near, far, short = kernel(x), kernel(y), pg.compile(pg.trace(
                    lambda x: [getattr(pg, n)(x) for n in names], x[:7]
                ), target="c", math=math)(x[7:14])  # fmt: skip
            same = x == y
            for name, a, b, c in zip(names, near, far, short, strict=True):
                np.testing.assert_array_equal(a[same], b[same], name)
                np.testing.assert_array_equal(a[7:14], c, name)


def test_levels_are_libraries_of_their_own():
    x = rng.normal(size=3000)
    graph = pg.trace(lambda x: [pg.tanh(x), pg.sum(x), pg.prod(1 + x * 1e-3), pg.max(x)], x)
    exact, fast = (pg.compile(graph, target="c", math=m) for m in ("exact", "fast"))
    ((a, *first), (b, *second)), numpy = (exact(x), fast(x)), pg.compile(graph)(x)
    assert np.any(a != b)
    np.testing.assert_allclose(a, b, rtol=1e-15)
    for found in (first, second):
        np.testing.assert_allclose(found, numpy[1:], rtol=1e-12)
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again(x)[0], b)
    sized = pg.trace(lambda x: pg.tanh(x), pg.spec(("N",)))
    np.testing.assert_array_equal(pg.compile(sized, target="c", math="fast")(x), b)
    run = pg.Executor(target="c", math="fast")
    with pg.Program() as program:
        given = pg.data("x", shape=(3000,))
        made = pg.tanh(given)
    np.testing.assert_array_equal(run.run(program, feed={"x": x}, fetch_list=[made])[0], b)


def test_powers_by_numbers_and_of_numbers_and_along_other_axes():
    x = rng.uniform(0.1, 3, (40, 50))

    def f(x):
        return [
            x**7, x**-3, x**2.5, 2.0**x, x[:, ::2] ** x[:, 1::2], x**x[:, :1],
            pg.arctan2(x, 0.3), pg.arctan2(pg.transpose(x), x[0, :40]), pg.logaddexp(x, 0.0),
            pg.sum(pg.exp(x) ** 3.3, axis=1),
        ]  # fmt: skip

    graph = pg.trace(f, x)
    native, numpy = (pg.compile(graph, target=t) for t in ("c", "numpy"))
    for a, b in zip(native(x), numpy(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


POWERS = (4.0, -2.0, -3.0, -4.0, 1.5, -0.5, -1.5, -2.5)


@pytest.mark.parametrize(("dtype", "digits", "least"), [("f8", 53, -1074), ("f4", 24, -149)])
def test_powers_by_numbers_are_within_a_unit_in_the_last_place(dtype, digits, least):
    """Also where they are subnormal or overflow, and NumPy's at the edges."""
    low, high = (-1074, 1024) if dtype == "f8" else (-149, 128)
    edges = [e for p in POWERS for e in (low / p, high / p, (low + digits) / p) if low < e < high]
    logarithms = np.concatenate([rng.uniform(low, high, 90), rng.uniform(-1, 2, 90)])
    near = rng.uniform(-2, 2, (len(edges), 8)) + np.array(edges)[:, None]
    x = np.exp2(np.concatenate([logarithms, near.ravel().clip(low, high - 0.01)])).astype(dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, -x, np.array(EDGES).astype(dtype)])
        expected = [np.power(x, np.array(p, dtype)) for p in POWERS]
    kernel = pg.compile(pg.trace(lambda x: [x**p for p in POWERS], x), target="c")
    for p, found, numpys in zip(POWERS, kernel(x), expected, strict=True):
        for a, b, c in zip(x, found, numpys, strict=True):
            if not np.isfinite(a) or a == 0 or (a < 0 and p != int(p)):
                assert np.isnan(b) if np.isnan(c) else b == c, (p, a, b)
                assert np.isnan(b) or np.signbit(b) == np.signbit(c), (p, a, b)
                continue
            apart = units_apart(b, mp.mpf(float(a)) ** mp.mpf(p), digits, least)
            assert apart <= 1.0, (p, a, b, apart)


def test_what_a_function_needs_stands_alone():
    """Its text has each definition behind what it uses, and nothing else."""
    text = definitions(["pg_tanh"])
    assert "tanh_reduced" in text
    assert "log_of" not in text
    assert "asin" not in text
    assert text.count("#include <math.h>") == 1
    assert elementary_functions("pg_expf(x, y, n); pg_pow(a, b);") == ["pg_expf", "pg_pow"]
    assert reductions("pg_sum_f64(x, 1, n) + pg_max_u8(y, 1, n) + pg_sum(z)") == [
        "pg_max_u8",
        "pg_sum_f64",
    ]
    assert reduction("pg_max_u8").count("WHOLE(") == 2
    for name in ELEMENTARY:
        assert f"({name}" in definitions([f"pg_{name}"])


def test_a_function_defines_no_other_one(tmp_path):
    """Objects of several functions are linked to one kernel."""
    chosen = compile_c.compiler()
    whole = {f"pg_{kind}_f64" for kind in ("sum", "prod", "max", "min")}
    texts = {f"pg_{n}f": elementary_function(f"pg_{n}f") for n in ELEMENTARY} | {
        n: reduction(n) for n in whole
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.c").write_text(text)
    command = [*chosen.command, "-std=c11", "-march=native", "-w", "-O0", "-c"]
    subprocess.run([*command, *sorted(tmp_path.glob("*.c"))], cwd=tmp_path, check=True)
    for name in texts:
        told = subprocess.check_output(["nm", "-g", f"{name}.o"], cwd=tmp_path, text=True)
        assert {*re.findall(r" T _?(\w+)", told)} - {f"{name}_double"} == {name}


SPECIAL = {
    "gammaln": [between(-9, 30), by_size(1e-300, 1e300), np.array([0.0, -2.0, 8.5, 1.0, 2.0])],
    "gamma": [between(-9, 30), between(100, 172), np.array([0.0, -0.0, -3.0, 200.0, -200.5])],
    "digamma": [between(-9, 30), by_size(1e-300, 1e300), np.array([0.0, -0.0, -2.0, 1.4616])],
    "erfcx": [between(-27, 40), by_size(1e-300, 1e300), np.array([-30.0])],
    "erfinv": [between(-1, 1), SMALL[0], np.array([1.0, -1.0, 1.5, 0.5])],
    "erfcinv": [between(0, 2), SMALL[0], np.array([0.0, 2.0, -1.0, 1.0])],
    "log_ndtr": [between(-40, 40), SMALL[1], np.array([0.0])],
    "logit": [between(0, 1), SMALL[0], np.array([0.0, 1.0, 0.5, -1.0])],
}


@pytest.mark.parametrize(("dtype", "rtol"), [("f8", 3e-13), ("f4", 1e-6)])
def test_special_functions_are_numpys(dtype, rtol):
    edges = np.array([np.inf, -np.inf, np.nan])
    arrays = [np.concatenate([*parts, edges]) for parts in SPECIAL.values()]
    with np.errstate(all="ignore"):
        arrays = [a.astype(dtype) for a in arrays]

    def f(*given):
        found = [getattr(pg.special, n)(x) for n, x in zip(SPECIAL, given, strict=True)]
        x = given[0]
        return [*found, pg.special.xlogy(x, pg.abs(x)), pg.special.xlog1py(x, x * 0.0)]

    graph = pg.trace(f, *arrays)
    native, plain = (pg.compile(graph, target=t) for t in ("c", "numpy"))
    with np.errstate(all="ignore"):
        pairs = zip([*SPECIAL, "xlogy", "xlog1py"], native(*arrays), plain(*arrays), strict=True)
        for name, a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * 0.01, err_msg=name)
    assert native.running_style(arrays) == "native"
    assert not any(isinstance(i, HostCall) for i in nests(schedule(native.graph)).items)
