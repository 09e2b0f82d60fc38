"""Native code in blocks of rows: what blocks add up, products in tiles, and threads that share
groups of blocks, which change no bit."""

import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from plan_checks import SHARED, SMALL
from program_checks import demand_equal
from random_programs import random_program
from thread_checks import threads_at_work

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Blocks, Nest, values_written
from primgraph.codegen.ir.verify import verify_memory
from primgraph.codegen.lower.nests.loop_collapse import collapse_nest
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.targets.c.source import source
from primgraph.errors import InternalError
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(15)


def traced(function, *arrays):
    return clean_up(lower(pg.trace(function, *arrays)))


def blocks_of(graph, limits):
    return [item for item in nests(schedule(graph), limits).items if isinstance(item, Blocks)]


def step(x, y, w, b, v):
    """The loss of a small network and its gradients, and what every row has."""
    h = pg.tanh(x @ w + b)
    out = pg.tanh(h @ v + h @ pg.transpose(w))
    loss = pg.sum((out - y) ** 2)
    return [loss, *pg.grad(loss, [w, b, v]), out, pg.transpose(h) * 2.0]


def network(rows, dtype=np.float64):
    shapes = (rows, 5), (rows, 5), (5, 6), (6,), (6, 5)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def test_a_training_step_in_blocks_is_that_of_all_rows():
    for dtype, rtol, counts in ((np.float64, 1e-12, (1, 8)), (np.float32, 2e-5, (4,))):
        arrays = network(23, dtype)
        graph = traced(step, *arrays)
        expected = interpret(graph, *arrays)
        for rows in counts:
            limits = replace(SMALL, rows=rows)
            item, *_ = blocks_of(graph, limits)
            assert len(item.bodies) == (2 if 23 % rows else 1)
            assert item.totals
            assert item.kept
            found = compile_graph(graph, style="native", limits=limits)(*arrays)
            for a, b in zip(found, expected, strict=True):
                assert a.dtype == dtype
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def test_what_contracts_rows_is_combined_as_it_should_be():
    def f(x):
        y = pg.exp(x) * 2.0
        return [
            pg.sum(y, axis=0), pg.max(y, axis=0), pg.min(y), pg.sum(y), pg.sum(y, axis=1),
            pg.max(pg.transpose(x) * 3.0, axis=1),
        ]  # fmt: skip

    x = rng.normal(size=(11, 3))
    with_nan = x.copy()
    with_nan[7, 1] = np.nan
    graph = traced(f, x)
    assert blocks_of(graph, SHARED)
    kernel = compile_graph(graph, style="native", limits=SHARED)
    for given in (x, with_nan, -np.abs(x)):
        for a, b in zip(kernel(given), interpret(graph, given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_integers_are_combined_from_the_first_on():
    def f(x):
        y = x * 3 - 7
        return [pg.sum(y, axis=0), pg.max(y, axis=0), pg.min(y, axis=0)]

    x = rng.integers(-50, 50, size=(9, 4)).astype(np.int32)
    graph = traced(f, x)
    assert blocks_of(graph, SMALL)
    found = compile_graph(graph, style="native", limits=SMALL)(x)
    for a, b in zip(found, interpret(graph, x), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("start", [0, 40])
def test_random_programs_in_blocks_of_two_rows(start):
    seen = 0
    for seed in range(start, start + 40):
        program = random_program(seed)
        graph = clean_up(lower(program.graph))
        if any(t.names for t in schedule(graph).types) or not blocks_of(graph, SHARED):
            continue
        seen += 1
        kernel = compile_graph(graph, style="native", limits=SHARED)
        with np.errstate(all="ignore"):
            for feeds in (program.feeds, program.others):
                expected = interpret(graph, *feeds)
                demand_equal(f"program {seed}", graph, feeds, expected, kernel.flat(*feeds))
        if seen == 4:
            return
    assert seen


def test_products_of_all_shapes_and_strides():
    shapes = [(2, 2, 2), (3, 50, 7), (8, 24, 3), (9, 25, 193), (17, 48, 400), (64, 50, 50)]
    shapes += [(1, 9, 30), (30, 1, 9), (5, 5, 1), (70, 3, 2), (300, 7, 5)]
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 1e-4)):
        arrays = [rng.normal(size=s).astype(dtype) for m, n, k in shapes for s in ((m, k), (k, n))]

        def f(*given):
            pairs = list(zip(given[::2], given[1::2], strict=True))
            transposed = [pg.transpose(y) @ pg.transpose(x) for x, y in pairs]
            return [x @ y for x, y in pairs] + transposed + [(x @ y)[::2] @ y.T for x, y in pairs]

        graph = traced(f, *arrays)
        found = compile_graph(graph, style="native")(*arrays)
        for a, b in zip(found, interpret(graph, *arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b)))


# Threads.


@pytest.fixture(scope="module")
def shared(native_cache):
    """A kernel whose blocks are in groups, and what it is called with."""
    arrays = network(6000)
    graph = traced(step, *arrays)
    limits = replace(SHARED, rows=500)
    assert blocks_of(graph, limits)[0].groups == 12
    return compile_graph(graph, style="native", limits=limits), arrays


def bits(results):
    return [r.tobytes() for r in results]


def test_results_have_the_same_bits_in_any_number_of_threads(shared):
    kernel, arrays = shared
    with threads_at_work(1):
        known = bits(kernel(*arrays))
    for count in (2, 4, 3, 40):
        with threads_at_work(count):
            for _ in range(5):
                assert bits(kernel(*arrays)) == known


def test_one_nest_alone_is_not_in_blocks_unless_threads_share_it():
    x = np.zeros(100_000)
    assert not blocks_of(traced(lambda x: x[1:] * 2.0 + x[:-1], x), LIMITS)
    assert blocks_of(traced(lambda x: pg.sin(x) * x, np.zeros(1_000_000)), LIMITS)


def test_large_products_are_shared_by_rows():
    x, y = rng.normal(size=(500, 300)), rng.normal(size=(300, 200))
    kernel = compile_graph(traced(lambda x, y: x @ y, x, y), style="native")
    found = set()
    for count in (1, 2, 5):
        with threads_at_work(count):
            found.update(bits(kernel(x, y)))
    assert len(found) == 1
    np.testing.assert_allclose(kernel(x, y)[0], x @ y, rtol=1e-11, atol=1e-11)


def test_large_work_is_shared_by_itself():
    x = np.zeros(3_000_000)
    (alone,) = blocks_of(traced(pg.tanh, x), LIMITS)
    assert alone.groups > 1
    x = rng.normal(size=(20_000, 8))
    graph = traced(lambda x: pg.sum(pg.sin(x @ pg.transpose(x[:8])) * x, axis=0), x)
    (item,) = blocks_of(graph, LIMITS)
    assert item.groups > 1
    found = compile_graph(graph, style="native")(x)
    np.testing.assert_allclose(found[0], interpret(graph, x)[0], rtol=1e-10)


def test_several_threads_may_call_one_kernel(shared):
    kernel, arrays = shared
    known, found = bits(kernel(*arrays)), []
    with threads_at_work(3):
        callers = [
            threading.Thread(target=lambda: found.extend(bits(kernel(*arrays)) for _ in range(10)))
            for _ in range(4)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(found) == 40
    assert all(one == known for one in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_has_threads_of_its_own(shared):
    kernel, arrays = shared
    with threads_at_work(2):
        known = bits(kernel(*arrays))
        child = os.fork()
        if child == 0:
            same = all(bits(kernel(*arrays)) == known for _ in range(3))
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert bits(kernel(*arrays)) == known


# Short axes.


@pytest.mark.parametrize("width", [2, 10])
def test_nests_with_a_short_last_axis_go_through_rows_at_once(width):
    def f(x, column, row, z):
        shifted = x - pg.max(x, axis=1, keepdims=True)
        spread = pg.exp(shifted * row + column)
        whole = spread / pg.sum(spread, axis=1, keepdims=True)
        pairs = pg.sum(z * pg.tanh(z + row), axis=2)
        return [
            whole, pg.prod(pg.cos(x), axis=1), pg.min(x + row, axis=1), pairs,
            pg.sum(z * row, axis=(0, 2)), pg.concatenate([spread * 2.0, x * column], axis=0),
            pg.sum(pg.broadcast_to(column, x.shape) * 1.0, axis=1),
        ]  # fmt: skip

    for dtype, rtol in ((np.float64, 1e-13), (np.float32, 2e-5)):
        shapes = (301, width), (301, 1), (width,), (7, 43, width)
        arrays = [rng.normal(size=shape).astype(dtype) for shape in shapes]
        arrays[0][5, 1] = arrays[3][2, 40, 0] = np.nan
        graph = traced(f, *arrays)
        nests_of = [i for i in nests(schedule(graph)).items if isinstance(i, Nest)]
        assert any(collapse_nest(nest) is not None for nest in nests_of)
        found = compile_graph(graph, style="native")(*arrays)
        for a, b in zip(found, interpret(graph, *arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


# Memory.


def test_what_is_there_at_the_same_time_lies_apart():
    def f(x):
        y = pg.transpose(x) @ x
        return pg.sum(pg.tanh(y) @ (y @ pg.sin(y)), axis=0) + pg.sum(y, axis=0)

    plan = nests(schedule(traced(f, np.ones((20, 30)))))
    written = [values_written(item) for item in plan.items]
    stays = [v for values in written for v in values if v not in plan.outputs]
    apart = {v: 100_000 * k for k, v in enumerate(stays)}
    rooms = [(1, 100_000 * len(stays), 64)]
    verify_memory(plan, written, apart, rooms)
    for k, v in enumerate(stays[:2]):
        with pytest.raises(InternalError, match=f"overwrites value|value {v} overwrites"):
            verify_memory(plan, written, apart | {stays[1 - k]: apart[v] + 640}, rooms)
    with pytest.raises(InternalError, match="overwrites"):
        verify_memory(plan, written, apart, [(1, apart[stays[0]], 64)])
    with pytest.raises(InternalError, match="before it is there"):
        verify_memory(plan, [[], *written[1:]], apart, rooms)


def test_strips_take_little_of_the_stack():
    def f(x):
        parts = [pg.sin(x * (k + 1.0)) for k in range(80)]
        return sum(a * b for a, b in zip(parts, parts[::-1], strict=True))

    x = rng.normal(size=3000)
    graph = traced(f, x)
    text = source(nests(schedule(graph)), "f").text
    counts = [int(n) for n in re.findall(r"double b\d+\[(\d+)\];", text)]
    assert sum(counts) < 5000
    assert "double *restrict b" in text
    found = compile_graph(graph, style="native")(x)
    np.testing.assert_allclose(found[0], interpret(graph, x)[0], rtol=1e-12, atol=1e-12)


_COUNTING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
static long calls;
long allocations(void) { return calls; }
void *malloc(size_t n) {
    static void *(*next)(size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "malloc");
    calls++;
    return next(n);
}
void *aligned_alloc(size_t to, size_t n) {
    static void *(*next)(size_t, size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
    calls++;
    return next(to, n);
}
"""
_RUN = """
import ctypes, sys
import numpy as np
import primgraph as pg
allocations = ctypes.CDLL(sys.argv[1]).allocations
pg.set_num_threads(2)
def f(x, w):
    h = pg.tanh(x @ w)
    return [pg.sum(h * x, axis=0), h @ w.T]
x, w = np.ones((4000, 40)), np.ones((40, 40))
kernel = pg.compile(pg.trace(f, x, w), target="c")
out = [np.empty(40), np.empty((4000, 40))]
for _ in range(5):
    kernel(x, w, out=out)
before = allocations()
for _ in range(50):
    kernel(x, w, out=out)
print(kernel.running_style([x, w]), allocations() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD")
def test_a_call_with_out_allocates_nothing(tmp_path):
    text, made = tmp_path / "counting.c", tmp_path / "counting.so"
    text.write_text(_COUNTING)
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, text, "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(made)],
        capture_output=True, text=True, timeout=120, env={**os.environ, "LD_PRELOAD": str(made)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    style, count = done.stdout.split()
    assert style == "native"
    # Not one a call; the interpreter may have taken some of its own.
    assert int(count) < 25


def test_a_matrix_and_its_transpose_are_read_once():
    """Both products of a regression run on rows that are in the cache; many rows, few columns."""

    def loss(w, x, y):
        z = x @ w
        return pg.mean(pg.logaddexp(0.0, z) - y * z)

    graph = traced(pg.grad(loss), pg.spec(100), pg.spec((100_000, 100)), pg.spec(100_000))
    (block,) = blocks_of(graph, LIMITS)
    assert block.extent == 100_000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k"), [(100, 60_003), (1_100, 5_001)])
def test_products_of_transposed_matrices_and_columns(dtype, m, k):
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(k, m)).astype(dtype), rng.normal(size=k).astype(dtype)
    found = pg.jit(lambda x, v: x.T @ v, target="c")(x, v)
    exact = x.T.astype(np.longdouble) @ v
    bound = 8 * np.finfo(dtype).eps * (np.abs(x).T @ np.abs(v))
    assert np.all(np.abs(found - exact) <= bound)
