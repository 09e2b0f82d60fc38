"""Native code for all sizes in blocks of rows, as many as come, which threads share."""

import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest
from plan_checks import SHARED, SMALL
from program_checks import demand_equal
from random_programs import random_draft
from thread_checks import threads_at_work

import primgraph as pg
from primgraph.base.debug_mode import debugging
from primgraph.codegen import compile_graph
from primgraph.codegen.explanation import native_listing
from primgraph.codegen.ir.limits import default_limits
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Blocks
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.runtime.toolchain import compile_c
from primgraph.errors import FeedError, ShapeError
from primgraph.ir.interpret import interpret
from primgraph.ir.sizes import specialize_graph
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(31)


def traced(function, *specs):
    return clean_up(lower(pg.trace(function, *specs)))


def blocks_of(graph, limits=LIMITS):
    return [item for item in nests(schedule(graph), limits).items if isinstance(item, Blocks)]


def step(x, y, w, b, v):
    """The loss of a small network and its gradients, what rows have, and sums of parts of them."""
    h = pg.tanh(x @ w + b)
    out = pg.tanh(h @ v + h @ pg.transpose(w)) / x.shape[0]
    loss = pg.sum((out - y) ** 2)
    more = pg.max(h[1:], axis=0), pg.sum(pg.exp(h[::-1]) * x.shape[0], axis=1)
    return [loss, *pg.grad(loss, [w, b, v]), out, pg.transpose(h) * 2.0, *more]


SPECS = ("N", 5), ("N", 5), (5, 5), (5,), (5, 5)


def network(rows):
    shapes = [[rows if n == "N" else n for n in shape] for shape in SPECS]
    return [rng.normal(size=shape) for shape in shapes]


def bits(results):
    return [r.tobytes() for r in results]


@pytest.fixture(scope="module")
def shared(native_cache):
    """A kernel whose blocks are in groups by their number, and its graph."""
    graph = traced(step, *map(pg.spec, SPECS))
    limits = replace(SHARED, rows=50)
    (item, *_) = blocks_of(graph, limits)
    assert item.totals
    assert item.kept
    return compile_graph(graph, style="native", limits=limits), graph


def test_as_many_blocks_as_rows_come(shared):
    kernel, graph = shared
    for rows in (2, 49, 50, 51, 100, 777, 6000):
        arrays = network(rows)
        for a, b in zip(kernel(*arrays), interpret(graph, *arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=f"{rows} rows")
        assert kernel.running_style(arrays) == "native"


def test_results_have_the_same_bits_in_any_number_of_threads(shared):
    kernel, _ = shared
    for rows in (40, 130, 6000):
        arrays = network(rows)
        with threads_at_work(1):
            known = bits(kernel(*arrays))
        for count in (2, 5, 40):
            with threads_at_work(count):
                for _ in range(3):
                    assert bits(kernel(*arrays)) == known


def test_large_work_is_in_groups_by_itself():
    graph = traced(lambda x: pg.sin(x) * x, pg.spec(("N",)))
    (alone,) = blocks_of(graph)
    for n, groups in ((1, 1), (1000, 1), (10**6, 16), (10**9, 16)):
        assert (alone.groups.at({"N": n}) == groups) or (1 < alone.groups.at({"N": n}) <= groups)
    told = "\n".join(native_listing(graph, default_limits()))
    assert f"N rows in blocks of {alone.rows}, in groups by their number" in told
    kernel = compile_graph(graph, style="native")
    x = rng.normal(size=200_001)
    found = set()
    for count in (1, 2, 3):
        with threads_at_work(count):
            found.update(bits(kernel(x)))
    assert len(found) == 1
    np.testing.assert_allclose(kernel(x)[0], np.sin(x) * x, rtol=1e-14)


def test_rows_of_a_size_are_not_those_of_another():
    def f(x, y):
        return [pg.tanh(x) * 2.0, pg.exp(y) + pg.sum(x), pg.sum(pg.sin(x) @ pg.transpose(x[:3]))]

    graph = traced(f, pg.spec(("N", 4)), pg.spec(("M", 4)))
    found = blocks_of(graph, replace(LIMITS, rows=50))
    assert {str(item.extent) for item in found} == {"N", "M"}
    kernel = compile_graph(graph, style="native", limits=replace(SMALL, rows=7))
    for n, m in ((3, 5), (30, 2), (14, 14)):
        x, y = rng.normal(size=(n, 4)), rng.normal(size=(m, 4))
        for a, b in zip(kernel(x, y), interpret(graph, x, y), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    # Where bytes of a row are not known, nothing is in blocks.
    assert not blocks_of(traced(lambda x: pg.exp(x) * pg.sin(x), pg.spec(("N", "M"))))


def test_what_kernels_promise_holds_in_blocks(monkeypatch):
    made = []
    library = compile_c.library
    monkeypatch.setattr(
        "primgraph.codegen.native.library",
        lambda text, **more: made.append(text) or library(text, **more),
    )

    def f(x, w):
        y = pg.tanh(x @ w)
        return y + 1, pg.sum(y * y, axis=0)

    for dtype, rtol in (("float64", 1e-11), ("float32", 2e-5)):
        graph = pg.trace(f, pg.spec(("N", 16), dtype), pg.spec((16, 16), dtype))
        assert blocks_of(clean_up(lower(graph)))
        kernel, plain = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
        gives = pg.compile(graph, target="c", donated={0: 0})
        w = rng.normal(size=(16, 16)).astype(dtype)
        made.clear()
        for n in (3, 20_000, 7001):
            x = rng.normal(size=(n, 16)).astype(dtype)
            expected = plain(x, w)
            out = np.empty((n, 16), dtype), np.empty(16, dtype)
            results = [
                kernel(x, w), kernel(x, w, borrow=True), kernel.at(N=n)(x, w),
                pickle.loads(pickle.dumps(kernel))(x, w), kernel(x, w, out=out),
            ]  # fmt: skip
            assert results[-1][0] is out[0]
            mine = x.copy()
            results.append(gives(mine, w))
            assert results[-1][0] is mine
            for found in results:
                for a, b in zip(found, expected, strict=True):
                    assert a.dtype == dtype
                    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * n)
        # One for all sizes, one that overwrites, and one for each size that was asked for.
        assert len(set(made)) <= 5


def test_batches_and_loops_have_blocks():
    def f(x, w):
        def trip(c, row):
            return c + pg.sum(pg.tanh(x * row @ w), axis=0), None

        return pg.scan(trip, pg.zeros(3), x[:2] * 2)[0], pg.vmap(lambda r: pg.exp(r @ w) * r)(x)

    graph = traced(f, pg.spec(("N", 3)), pg.spec((3, 3)))
    kernel = compile_graph(graph, style="native", limits=replace(SHARED, rows=20))
    assert "in blocks of 20" in "\n".join(native_listing(graph, replace(SHARED, rows=20)))
    for n in (2, 20, 333):
        arrays = rng.normal(size=(n, 3)), rng.normal(size=(3, 3))
        for a, b in zip(kernel(*arrays), interpret(graph, *arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
        assert kernel.running_style(arrays) == "native"


def test_random_programs_of_sizes_in_blocks():
    seen = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        program, draft = random_draft(seed, {n: int(draw.integers(1, 6)) for n in "NM"})
        graph = clean_up(lower(program.graph))
        if all(type(item.extent) is int for item in blocks_of(graph, SHARED)):
            continue
        seen += 1
        token = debugging.set(True)
        kernel = compile_graph(graph, style="native", limits=SHARED)
        debugging.reset(token)
        feeds = [program.feeds]
        for draft.sizes in ({"N": 1, "M": 1}, {"N": 7, "M": 20}, {"N": 33, "M": 2}):
            try:
                specialize_graph(graph, draft.sizes)
            except ShapeError:
                continue
            feeds.append([draft.array(v.type, draft.smooth) for v in graph.inputs])
        with np.errstate(all="ignore"):
            for arrays in feeds:
                try:
                    expected = interpret(graph, *arrays)
                except (FeedError, IndexError):
                    continue
                demand_equal(f"program {seed} in blocks", graph, arrays, expected, kernel(*arrays))
        if seen == 3:
            return
    assert seen
