"""Native code for steps that are no arithmetic: indices, loops without a bound, errors."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from density import starts
from native_checks import faults, outside, together
from program_native import TOGETHER, native_faults
from test_native import same
from test_primitives import CASES

import primgraph as pg
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(7)


def all_in_c(function, *arrays, rtol=1e-14):
    """As `same`, with no step that NumPy does."""
    kernel = same(function, *arrays, rtol=rtol)
    assert not outside(kernel.graph)
    return kernel


# Primitives. Of samples in float64 and int64, what NumPy does: functions that need tables or
# iterations, or what LAPACK has no single function for.
BY_NUMPY = {
    "bessel_by_order", "beta", "betainc", "betaln", "by_scipy", "cofactors",
    "eig", "erfcx", "expm",
    "expm_slope", "gammainc", "gauss_by_parameters", "kummer_by_parameters", "logm", "logm_slope",
    "pinv", "polygamma", "random_variate", "sqrtm", "sqrtm_slope", "unless_any", "zeta_by_exponent",
}  # fmt: skip


def is_plain(graph):
    """Whether sizes are known, and nothing is of complex numbers or of halves."""
    types = [v.type for e in graph.body for v in (*e.inputs, *e.outputs)]
    halves = any(t.is_complex or t.dtype == np.float16 for t in types)
    return not halves and not any(t.names for t in types)


def sampled(case, dtype):
    """The graph of a sample, if it is one that C is to do in that dtype."""
    # Iterations become loops before code is made of them.
    if dtype not in case.row.dtypes or case.op.formal or case.op.name == "solution":
        return None
    graph = case.graph(dtype)
    return graph if is_plain(graph) else None


def test_the_primitives_that_numpy_does():
    cases = [case.values[0] for case in CASES]
    found = [graph for c in cases for d in ("f64", "i64") if (graph := sampled(c, d))]
    whole = [g for g in found if all(v.type.size for e in g.body for v in (*e.inputs, *e.outputs))]
    found_outside = set(outside(together(whole)))
    assert found_outside == BY_NUMPY, (
        f"add a row of SPELLINGS or a routine for {sorted(found_outside - BY_NUMPY)}, or, if it is "
        f"NumPy's, the name to BY_NUMPY; remove {sorted(BY_NUMPY - found_outside)} from it"
    )


def test_every_primitive_is_what_it_is():
    graphs, feeds, names = [], [], []
    dtypes = ("f64", "f32", "i64", "i32", "u8", "bool")
    for k, param in enumerate(CASES):
        case = param.values[0]
        # Each sample in one of its dtypes.
        own = [d for d in dtypes if d in case.row.dtypes]
        dtype = own[k % len(own)] if own else "none"
        graph = sampled(case, dtype)
        if case.op.name not in BY_NUMPY and graph is not None:
            graphs.append(graph)
            feeds.append(case.arrays(dtype))
            names.append(f"{case.op.name} {case.call} {dtype}")
    assert not [f"{names[k]}: {fault}" for k, fault in faults(graphs, feeds)]


EDGES = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, -2.5, 3.0, 1e300, -1e300, 7.5, 1e-310]
WHOLE = [0, 1, 2, 3, -1, -2, -3, 7, 63, 31, 8, 64, 5, 100]


def at_edges(dtype):
    """All pairs of numbers at which functions are something else."""
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            numbers = np.array(EDGES).astype(dtype)
    else:
        info = np.iinfo(dtype)
        edge = [info.max, info.min, info.max - 1, info.min + 1]
        numbers = np.array([n for n in [*WHOLE, *edge] if info.min <= n <= info.max], dtype)
    return [np.array(a, order="C") for a in np.broadcast_arrays(numbers[:, None], numbers)]


def test_elements_are_numpys_at_edges():
    functions = [
        lambda x, y: [x % y, x // y, pg.maximum(x, y), pg.abs(x), pg.sign(x), x < y, x == y],
        lambda x, y: [pg.logaddexp(x, y), pg.nextafter(x, y), pg.cummax(x, axis=1), pg.round(x),
                      pg.sort(x + 0.0, axis=0), pg.argsort(y, axis=1), pg.argmax(x, axis=0)],
        lambda x, y: [x & y, x | y, x ^ y, ~x, x << y, x >> y, pg.gcd(x, y), x * y, x - y, x**3,
                      pg.argmin(y, axis=1), pg.searchsorted(pg.sort(x[:, 0]), y)],
    ]  # fmt: skip
    graphs, feeds = [], []
    for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"):
        x, y = at_edges(np.dtype(name))
        for k, f in enumerate(functions):
            if k and (k == 1) != (name[0] == "f"):
                continue
            graphs.append(clean_up(lower(pg.trace(f, x, y))))
            feeds.append([x, y])
    assert not outside(together(graphs))
    assert not list(faults(graphs, feeds))


def test_floats_become_integers():
    x = np.array([0.0, -0.0, -0.9, 1.5, -7.99, 127.0, -128.5, 3e4, -3e4])
    names = ("i8", "i4", "i2", "u8", "bool", "f4")
    all_in_c(lambda x: [pg.cast(x, n) for n in names] + [pg.cast(pg.abs(x), "u4")], x)
    turned = all_in_c(lambda x: [pg.cast(pg.cast(x, n), "f8") for n in ("i8", "i4", "i1")], x - 0.0)
    assert not any(np.signbit(a[x > -1]).any() for a in turned(x))
    two = np.array([0.1, 1.7])
    all_in_c(lambda x: [pg.cast(pg.cast(x, "f4"), "f8"), pg.cast(x, "f4") * 2], two, rtol=0)
    wide = np.array([1e300, np.nan, -np.inf, 2.0**62, -(2.0**63), 2.0**63])
    all_in_c(lambda x: [pg.cast(x, "i8"), pg.cast(x, "u8")], wide)


def test_rows_in_order():
    def f(x, y):
        order = pg.argsort(x, axis=1)
        back = pg.take_along_axis(x, order, axis=1)
        total = pg.cumsum(back * y, axis=0) + pg.cumprod(back, axis=1)
        top = pg.argmax(x, axis=0) + pg.argmin(y, axis=0)
        return [
            order, back, total, top, pg.sort(y, axis=0), pg.any(x > 2), pg.all(x < y, axis=1),
            pg.count_nonzero(x > 0, axis=0), pg.one_hot(top % 5, 5), pg.tril(x), pg.max(x > 1),
            pg.grad(pg.sum(pg.sort(x, axis=1) * y) + pg.sum(pg.cummax(x, axis=0) * y), x),
            pg.linalg.norm(x, axis=1), pg.grad(pg.linalg.norm(x * 0), x),
        ]  # fmt: skip

    for shape in ((5, 4), (70, 130)):
        x = np.round(rng.normal(size=shape), 1)
        all_in_c(f, x, rng.normal(size=shape), rtol=1e-11)


def test_reading_and_adding_at_places():
    x, i = rng.normal(size=(5, 4)), np.array([3, 0, -1, 3])
    j = np.array([[0, -2], [1, 3]])

    def f(x, i, j):
        rows = pg.take(x * 2, i, axis=0) + 1
        spread = x[:, j] - x[:, 1:3, None]
        edge = x[i, i - 1] * pg.sin(x[0, 0])
        put = pg.scatter_add(x, i, rows) * 2
        return [
            rows,
            spread,
            edge,
            put,
            pg.grad(pg.sum(spread**2) + pg.sum(rows) * pg.sum(put**2), x),
        ]

    all_in_c(f, x, i, j)
    all_in_c(f, rng.normal(size=(300, 4)), np.arange(600) % 4, j, rtol=1e-12)


def test_a_place_out_of_range_is_an_error_with_the_users_line():
    x, i = np.arange(4.0), np.array([0, 2])
    kernel = all_in_c(lambda x, i: pg.exp(x[i] * 2), x, i)
    for wrong in ([0, 4], [-5, 1]):
        with pytest.raises(pg.RunError, match="out of bounds") as caught:
            kernel(x, np.array(wrong))
        assert "pg.exp(x[i] * 2)" in str(caught.value)
    assert kernel(x, np.array([-4, 3])).tolist() == np.exp([0.0, 6.0]).tolist()

    def loop(x, i):
        return pg.scan(lambda c, k: (c + x[k], c), 0.0, i)

    inside = all_in_c(loop, x, i)
    with pytest.raises(pg.RunError, match="out of bounds"):
        inside(x, np.array([1, 9]))


def test_a_loop_without_a_bound():
    def f(x):
        root = pg.while_loop(
            lambda c: pg.any(pg.abs(c * c - x) > 1e-12), lambda c: (c + x / c) * 0.5, x
        )
        collatz = pg.while_loop(
            lambda s: s[0] != 1,
            lambda s: (pg.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
            (pg.array(27), pg.array(0)),
        )
        return [root, *collatz]

    x = np.array([2.0, 10.0, 0.3])
    kernel = all_in_c(f, x)
    assert kernel(x)[2] == 111


_ENDLESS = """
import numpy as np, os, signal, threading
import primgraph as pg
signal.signal(signal.SIGINT, signal.default_int_handler)
def forever(x):
    return pg.while_loop(lambda c: pg.sum(c) > 0, lambda c: c * 1.0, x)
for size in (2, 10000):
    kernel = pg.compile(pg.trace(forever, np.ones(size)), target="c")
    assert kernel(np.zeros(size)).sum() == 0
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        kernel(np.ones(size))
    except KeyboardInterrupt:
        print("interrupted", kernel(np.zeros(size)).sum())
"""


def test_a_loop_without_an_end_can_be_interrupted():
    command = [sys.executable, "-c", _ENDLESS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ})
    assert done.stdout == "interrupted 0.0\n" * 2, done.stderr


def test_systems_and_factors():
    def f(a, b, stack):
        square = a @ a.T + pg.eye(6)
        factor = pg.linalg.cholesky(square)
        sign, size = pg.linalg.slogdet(a)
        return [
            pg.linalg.solve(a, b), pg.linalg.solve(a, b[:, 0]), pg.linalg.inv(stack), factor,
            sign, size, pg.linalg.det(stack), pg.linalg.solve(stack, stack @ stack),
            pg.grad(pg.sum(pg.log(pg.diagonal(factor))) + pg.sum(pg.sin(factor)) + size, a),
            *pg.scan(lambda c, m: (pg.linalg.solve(m, c), pg.sum(c)), b[:3, 0], stack),
        ]  # fmt: skip

    a, stack = rng.normal(size=(6, 6)), rng.normal(size=(4, 3, 3)) + 2 * np.eye(3)
    all_in_c(f, a, rng.normal(size=(6, 2)), stack, rtol=1e-9)


def test_a_matrix_without_a_factor_is_numpys_error():
    kernel = all_in_c(lambda a: pg.linalg.cholesky(a) * 2 + pg.linalg.inv(a), np.eye(3))
    for wrong in (-np.eye(3), np.zeros((3, 3))):
        with pytest.raises(pg.RunError, match="positive definite") as caught:
            kernel(wrong)
        assert "pg.linalg.cholesky(a) * 2" in str(caught.value)
    assert np.isnan(
        pg.compile(pg.trace(pg.linalg.det, np.eye(2)), target="c")(np.full((2, 2), np.nan))
    )


def test_a_singular_matrix_has_a_determinant():
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    all_in_c(lambda a: [pg.linalg.det(a), *pg.linalg.slogdet(a), *pg.linalg.slogdet(-a)], a)


@pytest.mark.parametrize("start", starts(70_000, 200, TOGETHER, dense=TOGETHER))
def test_random_programs_in_one_file(start):
    assert not list(native_faults(range(start, start + TOGETHER)))


def test_random_numbers_have_the_same_bits():
    graph = pg.trace(lambda k: pg.random.uniform(k, (3, 7)), np.array([5, 2**62]))
    k = np.array([-1, 12345678901])
    native, numpy = pg.compile(graph, target="c"), pg.compile(graph)
    assert not outside(graph)
    np.testing.assert_array_equal(native(k), numpy(k))


def test_arithmetic_of_complex_numbers():
    def f(z, w, x):
        put = pg.where(x > 0, z, w)
        total = z * w - z / w + pg.conj(z) * 2j
        same_ones = [z == w, z != w, z.astype(bool), put, total]
        return [*same_ones, pg.real(total), pg.imag(-w), pg.complex(x, x + 1) * z, total[::-1].T]

    graphs, feeds = [], []
    numbers = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -2.5, 1e300, 1e-310]
    with np.errstate(all="ignore"):
        for name in ("c16", "c8"):
            part = np.dtype(name[0].replace("c", "f") + str(int(name[1:]) // 2))
            drawn = rng.choice(numbers, (4, 6, 6)).astype(part)
            drawn[:, 3:] = rng.normal(size=(4, 3, 6))
            arrays = [np.empty((6, 6), name), np.empty((6, 6), name), drawn[0]]
            for k in range(2):
                arrays[k].real, arrays[k].imag = drawn[2 * k], drawn[2 * k + 1]
            graphs.append(clean_up(lower(pg.trace(f, *arrays))))
            feeds.append(arrays)
        assert not outside(together(graphs))
        assert not list(faults(graphs, feeds))


def test_what_fails_leaves_inputs_as_they_were():
    graph = pg.trace(lambda x, i: [x * 2, x[i]], np.zeros(4), np.zeros(2, int))
    kernel = pg.compile(graph, target="c", donated={0: 0})
    x = np.arange(4.0)
    with pytest.raises(pg.RunError, match="out of bounds"):
        kernel(x, np.array([0, 9]))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    doubled, taken = kernel(x, np.array([0, 3]))
    assert doubled is x
    assert taken.tolist() == [0.0, 3.0]


def test_a_place_out_of_range_in_blocks_of_rows():
    def f(x, i, w):
        h = pg.tanh(x[i] @ w)
        return [pg.sum(h * h), pg.grad(pg.sum(h * h), x)]

    x, w, i = rng.normal(size=(50, 8)), rng.normal(size=(8, 4)), np.arange(20_000) % 50
    kernel = all_in_c(f, x, i, w, rtol=1e-11)
    wrong = i.copy()
    wrong[17_777] = 50
    with pytest.raises(pg.RunError, match="index 50 is out of bounds"):
        kernel(x, wrong, w)


def test_a_loop_without_a_bound_in_a_loop_that_sorts():
    def trip(c, row):
        y = pg.while_loop(lambda s: pg.sum(s) < 10.0, lambda s: s * 1.1 + 0.1, c)
        return pg.sort(y - row), pg.argmax(y)

    all_in_c(lambda x: pg.scan(trip, pg.zeros(3), x), rng.normal(size=(5, 3)))


def test_strips_lie_where_vectors_may():
    # Halves that are read across, fifteen in a row, in a function that calls no other.
    def f(x, y):
        return [pg.reshape(pg.transpose(v, (0, 2, 1)), (5, 15)) for v in (x, y)]

    x, y = (rng.normal(size=(5, 5, 3)).astype(np.float16) for _ in range(2))
    all_in_c(f, x, y)


def test_a_program_that_reads_halves_across():
    assert not list(native_faults(range(20_450, 20_460)))
