"""Native code for all sizes: one library, whatever arrays come, and what kernels promise."""

import pickle
import shutil
import threading

import numpy as np
import pytest
from program_checks import demand_equal
from random_programs import random_draft

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.runtime.toolchain import compile_c
from primgraph.errors import ShapeError
from primgraph.ir.interpret import interpret
from primgraph.ir.sizes import specialize_graph
from primgraph.transforms import clean_up, lower

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)

rng = np.random.default_rng(8)
SIZES = (1, 2, 7, 255, 256, 257, 1000)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


def both(function, *specs, **options):
    graph = pg.trace(function, *specs)
    return pg.compile(graph, target="c", **options), pg.compile(graph, target="numpy", **options)


def same(native, numpy, *arrays, rtol=1e-12):
    """Native code gives what NumPy's does, and is what runs."""
    found, expected = native(*arrays), numpy(*arrays)
    found, expected = (x if isinstance(x, list | tuple) else [x] for x in (found, expected))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-11)
    assert native.generic.running_style(arrays) == "native"


def test_one_library_is_for_all_sizes(monkeypatch):
    made = []
    library = compile_c.library
    monkeypatch.setattr(
        "primgraph.codegen.native.library",
        lambda text, **options: made.append(text) or library(text, **options),
    )

    def f(x, y):
        z = pg.tanh(x) * y + x.shape[0]
        steps = z[1:] - z[:-1]
        loss = pg.sum(steps**2) + pg.sum(pg.logsumexp(z @ pg.transpose(y), axis=1))
        return [
            steps, pg.sum(z, 0), pg.max(pg.exp(z), 1), pg.concatenate([steps, z]),
            pg.pad(z, ((1, 2), (0, 0))), pg.arange(x.shape[0]) * 2.5, pg.prod(pg.cos(x), axis=0),
            pg.reshape(z, (z.size,))[::-1], pg.set_slice(z, (slice(1, None), 0), x[1:, 0]),
            pg.full((2, x.shape[0]), x.shape[0]) @ z, *pg.grad(loss, [x, y]),
        ]  # fmt: skip

    native, numpy = both(f, pg.spec(("N", 3)), pg.spec(("N", 3)))
    for n in SIZES:
        same(native, numpy, rng.normal(size=(n, 3)), rng.normal(size=(n, 3)))
    assert len(made) == 1
    assert len(native._kernels) == 0


def test_arrays_without_elements_and_other_dtypes():
    def f(x, y):
        return [pg.sum(x * y), x + 1, pg.concatenate([x, y]), x[:, None] * y, pg.sum(x @ y)]

    for dtype in ("float64", "float32"):
        native, numpy = both(f, pg.spec(("N",), dtype), pg.spec(("N",), dtype))
        for n in (0, 1, 300):
            x, y = (rng.normal(size=n).astype(dtype) for _ in range(2))
            same(native, numpy, x, y, rtol=1e-12 if dtype == "float64" else 1e-4)
    # What is converted runs natively, too.
    np.testing.assert_array_equal(native([1, 2], [3, 4])[1], [2, 3])
    long = rng.normal(size=8).astype("float32")
    np.testing.assert_allclose(native(long[::2], long[1::2])[1], long[::2] + 1)


def test_loops_branches_and_steps_of_numpys():
    def f(x, steps):
        def body(state, row):
            return state * 0.5 + pg.sin(row), pg.sum(state)

        last, sums = pg.scan(body, pg.zeros(3), x)
        more = pg.while_loop(
            lambda s: s[1] < steps, lambda s: (s[0] + x, s[1] + 1), (x, 0), max_trips=9
        )
        chosen = pg.cond(pg.sum(x) > 0, lambda: x * 2, lambda: pg.zeros_like(x))
        return [
            last, sums, more[0], chosen, pg.grad(pg.sum(last * last), x), pg.sort(x, axis=0),
            pg.cumsum(pg.exp(pg.sort(x, axis=0)), axis=0),
        ]  # fmt: skip

    native, numpy = both(f, pg.spec(("N", 3)), pg.spec((), "int64"))
    for n in (1, 5, 300):
        same(native, numpy, rng.normal(size=(n, 3)), np.array(4))
    same(native, numpy, np.ones((0, 3)), np.array(2))


def test_several_sizes_that_are_told_by_expressions():
    def f(x, y, z):
        return [x @ y, pg.sum(z) * x[0, 0], pg.reshape(z, (2, -1))]

    native, numpy = both(f, pg.spec(("N", "K")), pg.spec(("K", "M")), pg.spec(("2*N+2",)))
    for n, k, m in ((1, 1, 1), (3, 70, 2), (40, 33, 50)):
        same(native, numpy, rng.normal(size=(n, k)), rng.normal(size=(k, m)), np.ones(2 * n + 2))


def test_sizes_that_do_not_fit_are_refused_as_by_numpy():
    def f(x, y):
        return pg.sum(pg.reshape(x, (-1, 2)), 0) + y[2:3, 0]

    native, numpy = both(f, pg.spec(("N",)), pg.spec(("N", "2*M+1")))
    good = np.ones(4), np.ones((4, 3))
    np.testing.assert_array_equal(native(*good), numpy(*good))
    bad = [
        (np.ones(4), np.ones((6, 3))), (np.ones(3), np.ones((3, 3))), (np.ones(2), np.ones((2, 3))),
        (np.ones(4), np.ones((4, 2))), (np.ones((4, 1)), np.ones((4, 3))), (np.ones(4), np.ones(4)),
        (np.ones(4), np.ones((4, 0))), (np.ones(4, complex), np.ones((4, 3))),
    ]  # fmt: skip
    for arrays in bad:
        said = []
        for kernel in (native, numpy):
            with pytest.raises(pg.FeedError) as caught:
                kernel(*arrays)
            said.append(caught.value.message)
        assert said[0] == said[1]


def test_what_kernels_promise_holds_for_all_sizes():
    def f(x, w):
        return pg.tanh(x) @ w, x + 1

    specs = pg.spec(("N", 3)), pg.spec((3, 3))
    native, numpy = both(f, *specs)
    w = rng.normal(size=(3, 3))
    for n in (2, 500):
        x = rng.normal(size=(n, 3))
        before = x.copy()
        expected = numpy(x, w)
        out = np.empty((n, 3)), np.empty((n, 3))
        given = native(x, w, out=out)
        assert given[0] is out[0]
        lent = native(x, w, borrow=True)
        again = pickle.loads(pickle.dumps(native))(x, w)
        for found in (given, lent, again, native.at(N=n)(x, w)):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
        np.testing.assert_array_equal(x, before)
        assert native(x, w=w)[1].base is None
    gives, takes = both(f, *specs, donated={1: 0})
    x = rng.normal(size=(9, 3))
    mine, other = x.copy(), x.copy()
    np.testing.assert_allclose(gives(mine, w)[0], takes(other, w)[0], rtol=1e-13)
    np.testing.assert_array_equal(mine, x + 1)
    assert "tanh" in native.source


def test_what_no_memory_holds_is_told_as_by_numpy():
    def f(x):
        y = pg.reshape(pg.exp(x[:, None, None] * x[None, :, None] + x), (-1,))
        return pg.sum(pg.cumsum(y)) + y[::-1] @ y

    def square(x):
        return x[:, None] * x

    x = np.broadcast_to(np.ones(1), 3_000_000).copy()
    for function in (f, square):
        native, numpy = both(function, pg.spec(("N",)))
        same(native, numpy, np.ones(3))
        said = []
        for kernel in (native, numpy):
            with pytest.raises(pg.RunError, match="MemoryError") as caught:
                kernel(x)
            said.append(caught.value.message)
        assert said[0] == said[1]


def test_threads_run_one_kernel_for_different_sizes():
    native, numpy = both(lambda x: pg.cumsum(pg.exp(pg.sin(x) - pg.max(x))) * 2, pg.spec(("N",)))
    arrays = [rng.normal(size=n) for n in (3, 70, 1000, 20000)]
    expected = [numpy(x) for x in arrays]
    wrong = []

    def work(k):
        for _ in range(30):
            if not np.allclose(native(arrays[k]), expected[k], rtol=1e-12, atol=0):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_programs_with_states_train_natively():
    found = {}
    for target in ("c", "numpy"):
        with pg.Program() as program:
            x = pg.data("x", ("N", 2))
            w = pg.create_parameter((2,), initializer=pg.initializers.Constant(0.5))
            loss = pg.mean((pg.tanh(x) @ w - 1) ** 2)
            pg.optimizer.SGD(0.1).minimize(loss)
        executor = pg.Executor(target=target)
        draw = np.random.default_rng(1)
        for n in (4, 9, 4, 1):
            feed = {"x": draw.normal(size=(n, 2))}
            value = executor.run(program, feed, [loss])
        found[target] = value[0], executor.run(program, feed, [w])[0]
    np.testing.assert_allclose(found["c"][1], found["numpy"][1], rtol=1e-13)
    np.testing.assert_allclose(found["c"][0], found["numpy"][0], rtol=1e-13)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(i, marks=pytest.mark.long) for i in range(4, 40))]
)
def test_random_programs_of_sizes(seed):
    draw = np.random.default_rng(seed)
    program, draft = random_draft(seed, {n: int(draw.integers(1, 6)) for n in "NM"})
    graph = clean_up(lower(program.graph))
    kernel = compile_graph(graph, style="native")
    feeds = [program.feeds, program.others]
    for n, m in ((0, 2), (1, 1), (3, 0), (7, 20), (33, 2)):
        draft.sizes = {"N": n, "M": m}
        try:
            specialize_graph(graph, draft.sizes)
        except ShapeError:
            continue
        feeds.append([draft.array(v.type, draft.smooth) for v in graph.inputs])
    for arrays in feeds:
        try:
            expected = interpret(graph, *arrays)
        except pg.FeedError:
            # What is assumed is not looked at by kernels that are for all sizes.
            continue
        demand_equal("native kernel of sizes", graph, arrays, expected, kernel(*arrays))
        if graph.sizes:
            assert kernel.running_style(arrays) == "native"
