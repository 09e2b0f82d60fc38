"""Products of matrices in native code that are added to each other, and their operands' layouts."""

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from exported import compiler
from thread_checks import threads_at_work

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Blocks, Product, values_written
from primgraph.codegen.ir.verify import verify_memory
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.targets.c import parts
from primgraph.codegen.targets.c.source import source
from primgraph.codegen.targets.export.file import SERIAL
from primgraph.errors import InternalError
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(29)


def traced(function, *arrays):
    return clean_up(lower(pg.trace(function, *arrays)))


def products_of(graph):
    return [item for item in nests(schedule(graph)).items if isinstance(item, Product)]


def blocks_in(graph, limits):
    items = nests(schedule(graph), limits).items
    return [body for item in items if isinstance(item, Blocks) for body in item.bodies]


def added(function, *arrays):
    """For each product that C does, whether it is added to what another one has left."""
    return [item.is_added for item in products_of(traced(function, *arrays))]


def drawn(*shapes, dtype=np.float64):
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def test_sums_of_products_are_left_by_the_last_of_them():
    x, y, w, v = drawn((3, 4), (3, 5), (4, 6), (5, 6))
    assert added(lambda x, y, w, v: x @ w + y @ v, x, y, w, v) == [False, True]
    assert added(lambda x, y, w, v: (y @ v + x @ w) + (x * 2) @ w, x, y, w, v) == [
        False, True, True
    ]  # fmt: skip
    # In which order they are named does not matter: the one that is done last is added.
    graph = traced(lambda x, y, w, v: (x * 2) @ w + (y @ v + x @ w), x, y, w, v)
    assert sum(item.is_added for item in products_of(graph)) >= 1

    def recurrent(x, w):
        state = pg.zeros((3, 4))
        for t in range(4):
            state = pg.tanh(x[t] @ w + state @ w)
        return pg.grad(pg.sum(state), w)

    given = drawn((4, 3, 4), (4, 4))
    # The first trip's state is zeros, which are multiplied, too: infinities come through.
    assert sum(added(recurrent, *given)) >= 4 + 5


def test_what_others_need_is_left_alone():
    x, y, w = drawn((3, 4), (3, 4), (4, 6))

    def both(x, y, w):
        first, second = x @ w, y @ w
        return first + second, second

    assert added(both, x, y, w) == [False, False]
    assert added(lambda x, y, w: (x @ w) + (x @ w), x, y, w) == [False]
    assert added(lambda x, y, w: x @ w + pg.sum(y) + y @ w, x, y, w) == [False, False]
    # A step of NumPy's is in between.
    middle = traced(lambda x, y, w: x @ w + pg.sort(y + pg.sum(x @ w), axis=0) @ w, x, y, w)
    assert not any(item.is_added for item in products_of(middle))


def test_memory_of_sums_is_checked():
    graph = traced(lambda x, y, w: pg.tanh(x @ w + y @ w), *drawn((3, 4), (3, 4), (4, 6)))
    plan = nests(schedule(graph))
    written = [values_written(item) for item in plan.items]
    last = next(k for k, item in enumerate(plan.items) if getattr(item, "is_added", False))
    offsets = {v: 1024 * k for k, v in enumerate({v for made in written for v in made})}
    verify_memory(plan, written, offsets, [])
    assert "pg_onto_f64" in source(plan, "f").text
    first = next(k for k, item in enumerate(plan.items) if isinstance(item, Product))
    unwritten = [[] if k == first else made for k, made in enumerate(written)]
    assert last > first
    with pytest.raises(InternalError, match="before it is there"):
        verify_memory(plan, unwritten, offsets, [])


def test_sums_are_those_of_all_products():
    def sums(x, y, w, v, s):
        # What is multiplied is nowhere the same, or products were, too.
        x1, x2, x3, x4, x5, x6 = (x * float(k) for k in range(2, 8))
        return (
            x @ w + y @ v,
            (x1 @ w + x[::-1] @ w) + (y * 2.0) @ v,
            w.T @ x.T + v.T @ y.T + w.T @ x2[::-1].T,
            x3[0] @ w + y[0] @ v + x[1] @ w,
            x4 @ w[:, 0] + y @ v[:, 0],
            x[0] @ x[1] + x[2] @ x[0],
            s @ pg.transpose(s, (0, 2, 1)) + s[::-1] @ pg.transpose(s, (0, 2, 1)),
            pg.grad(pg.sum(pg.tanh(0.01 * (x5 @ w + x6 @ w)) ** 2), [x, w, v])[1],
        )

    sizes = [(3, 4, 5, 6), (20, 3, 0, 5)], [(17, 250, 33, 40)]
    for dtype, rtol, shapes in zip((np.float64, np.float32), (1e-12, 2e-5), sizes, strict=True):
        for m, k, inner, n in shapes:
            arrays = drawn((m, k), (m, inner), (k, n), (inner, n), (2, 3, k), dtype=dtype)
            graph = traced(sums, *arrays)
            assert sum(item.is_added for item in products_of(graph)) >= 7
            found = compile_graph(graph, style="native")(*arrays)
            for a, b in zip(found, interpret(graph, *arrays), strict=True):
                assert a.dtype == dtype
                np.testing.assert_allclose(a, b, rtol, rtol * np.max(np.abs(b), initial=1))


def test_sums_of_large_products_have_one_result_in_any_number_of_threads():
    arrays = drawn((500, 300), (300, 200), (500, 30), (30, 200))
    graph = traced(lambda x, w, y, v: x @ w + y @ v + (2 * x) @ w, *arrays)
    (expected,) = interpret(graph, *arrays)
    for limits in (LIMITS, SERIAL):
        (plan, *_) = [*blocks_in(graph, limits), nests(schedule(graph), limits)]
        assert sum(isinstance(item, Product) and item.is_added for item in plan.items) == 2
        kernel, found = compile_graph(graph, style="native", limits=limits), set()
        for count in (1, 2, 5):
            with threads_at_work(count):
                found.add(kernel(*arrays)[0].tobytes())
        assert len(found) == 1
        np.testing.assert_allclose(kernel(*arrays)[0], expected, rtol=1e-11, atol=1e-11)


def test_transposed_operands_are_read_as_they_are():
    shapes = [(3, 16, 16), (5, 33, 47), (16, 64, 256), (2, 8, 193), (60, 31, 40), (1, 17, 20)]
    shapes.append((6, 64, 256))
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 2e-5)):
        arrays = drawn(*(s for m, n, k in shapes for s in ((m, k), (n, k))), dtype=dtype)

        def all_of_them(*given):
            pairs = list(zip(given[::2], given[1::2], strict=True))
            plain = [x @ y.T for x, y in pairs]
            return plain + [x[:, ::2] @ y[::-1, ::2].T for x, y in pairs]

        graph = traced(all_of_them, *arrays)
        found = compile_graph(graph, style="native")(*arrays)
        for a, b in zip(found, interpret(graph, *arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol, rtol * np.max(np.abs(b)))
        # Each element is the sum of the same products in the same order, however these lie. BLAS,
        # which does larger products on processors without AVX-512, has orders of its own, and so
        # have products with a single row.
        for (m, n, k), x, y in zip(shapes, arrays[::2], arrays[1::2], strict=True):
            if m == 1 or m * n * k >= 131_072:
                continue
            (across,) = compile_graph(traced(lambda x, y: x @ y.T, x, y), style="native")(x, y)
            z = np.ascontiguousarray(y.T)
            (along,) = compile_graph(traced(lambda x, z: x @ z, x, z), style="native")(x, z)
            assert across.tobytes() == along.tobytes(), (m, n, k)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_extrema_of_runs_of_any_length(dtype):
    """They are taken eight numbers, and four times eight, at a time; NaN wins wherever it is."""
    draw, lengths = np.random.default_rng(7), (1, 7, 8, 9, 31, 32, 33, 41, 100, 129)
    rows = [draw.normal(size=(7, n)).astype(dtype) for n in lengths]
    for x in rows:
        n = x.shape[1]
        x[1, draw.integers(n)] = x[2, n - 1] = np.nan
        x[3], x[4], x[5] = np.inf, -np.inf, np.nan
        x[6, draw.integers(n)] = np.inf

    def extrema(*rows):
        return [f(x, axis=1) for x in rows for f in (pg.max, pg.min)]

    kernel = pg.compile(pg.trace(extrema, *rows), target="c")
    wanted = [f(x, axis=1) for x in rows for f in (np.max, np.min)]
    for found, value in zip(kernel(*rows), wanted, strict=True):
        np.testing.assert_array_equal(found, value)


STUB = """
int pg_share(int (*each)(void *const *, char *, long), void *const *arrays, char *room, long count,
             long size) {
    for (long g = 0; g < count; g++) each(arrays, room + g * size, g);
    return 0;
}
"""


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="these are options for such processors"
)
@pytest.mark.parametrize("option", ["-march=x86-64", "-mno-avx512f"])
def test_products_are_right_on_processors_with_shorter_vectors(option, tmp_path):
    """Each has tiles of its own; what runs here else are those of this processor."""
    made = tmp_path / "products.so"
    text = Path(parts.__file__).with_name("products.c").read_text()
    (tmp_path / "products.c").write_text(text + STUB)
    given = *compiler(), "-O1", "-std=c11", "-fPIC", "-shared", "-march=native", option
    words = [*given, str(tmp_path / "products.c"), "-o", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    library = ctypes.CDLL(str(made))

    def product(name, x, y, before):
        out, places = before.copy(), []
        for a in (x, y):
            places += [ctypes.c_void_p(a.ctypes.data), *(s // a.itemsize for s in a.strides)]
        sizes = map(ctypes.c_long, (*before.shape, x.shape[1]))
        longs = [p if isinstance(p, ctypes.c_void_p) else ctypes.c_long(p) for p in places]
        function = getattr(library, f"{name}_f{8 * x.itemsize}")
        function.restype = None
        function(ctypes.c_void_p(out.ctypes.data), *longs, *sizes)
        return out

    shapes = [(2, 3, 1), (5, 7, 9), (16, 33, 200), (1, 20, 9), (20, 1, 9), (300, 5, 4), (9, 48, 17)]
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 2e-5)):
        for m, n, k in shapes:
            x, y, before = drawn((m, k), (k, n), (m, n), dtype=dtype)
            for left in (x, np.asfortranarray(x)):
                for right in (y, np.asfortranarray(y)):
                    for name, first in (("pg_matmul", 0), ("pg_onto", 1), ("pg_added", 1)):
                        expected = first * before.astype("f8") + x.astype("f8") @ y
                        found = product(name, left, right, before)
                        bound = rtol * np.max(np.abs(expected))
                        np.testing.assert_allclose(found, expected, rtol, bound)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 250, 256, 257, 700])
def test_sums_in_one_loop_are_those_of_the_function(dtype, count):
    x = rng.normal(size=(3, count)).astype(dtype)

    def sums(*powers):
        return lambda x: [pg.sum(x**p, axis=1) for p in powers]

    together = pg.compile(pg.trace(sums(1, 2, 3), x), target="c")
    for p, found in zip((1, 2, 3), together(x), strict=True):
        (alone,) = pg.compile(pg.trace(sums(p), x), target="c")(x)
        np.testing.assert_array_equal(found, alone)
