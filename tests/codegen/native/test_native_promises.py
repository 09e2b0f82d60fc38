"""What kernels promise, of native code with and without sizes, pair by pair."""

import copy
import os
import pickle
import shutil
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import primgraph as pg
from primgraph.base.debug_mode import debug

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)

rng = np.random.default_rng(11)
X, W = rng.normal(size=(40, 3)), rng.normal(size=(3, 3))


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


def f(x, w):
    return pg.tanh(x @ w), pg.linalg.solve(w, pg.transpose(x)), x + 1


def graph_of(sized):
    return pg.trace(f, pg.spec(("N", 3)) if sized else X, W)


@pytest.fixture(params=[False, True], ids=["fixed", "sized"])
def kernel(request):
    return pg.compile(graph_of(request.param), target="c")


EXPECTED = pg.compile(graph_of(False), target="numpy")(X, W)


def same(found, expected=EXPECTED):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_copies_run_and_results_are_left_where_they_should_be(kernel):
    for other in (kernel, copy.copy(kernel), copy.deepcopy(kernel)):
        same(other(X, W))
    same(pickle.loads(pickle.dumps(kernel))(X, W))
    mine = np.empty_like(EXPECTED[1])
    found = kernel(X, W, out=(None, mine, None))
    assert found[1] is mine
    same(found)
    first = kernel(X, W, borrow=True)
    second = kernel(X + 1, W, borrow=True)
    assert second[0] is first[0]
    same(second, kernel(X + 1, W))
    with pytest.raises(pg.ArgumentError, match="shares memory"):
        kernel(X, W, out=(X, None, None))
    same(kernel(x=X.tolist(), w=np.asfortranarray(W)))


def test_it_is_saved_and_looked_at_as_numpys(kernel, tmp_path):
    kernel.save(tmp_path / "saved.py")
    namespace = {}
    exec((tmp_path / "saved.py").read_text(), namespace)
    same(namespace["f"](X, W))
    kernel.save(tmp_path / "saved.svg")
    assert "np.tanh" in kernel.source
    known = kernel.at(N=40) if hasattr(kernel, "at") else kernel
    assert "tanh" in str(known.plan)
    assert "native code" in str(pg.profile(known, [X, W]))
    assert known.running_style((X, W)) == "native"
    with debug():
        same(pg.compile(graph_of(False), target="c")(X, W))


def test_what_does_not_fit_is_numpys_to_say(kernel):
    singular = np.zeros((3, 3))
    for _ in range(2):
        with pytest.raises(pg.LinAlgError, match="solve"):
            kernel(X, singular)
    with pytest.raises(pg.FeedError):
        kernel(X[:, :2], W)
    same(kernel(X, W))


def test_only_what_is_given_away_is_overwritten():
    for sized in (False, True):
        kernel = pg.compile(graph_of(sized), target="c", donated={2: 0})
        mine = X.copy()
        found = kernel(mine, W)
        assert found[2] is mine
        same(found)
        mine.setflags(write=False)
        for array in (mine, X.tolist()):
            with pytest.raises(pg.FeedError, match="'x' is overwritten by the kernel"):
                kernel(array, W)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_processes_that_split_off_while_others_run(kernel):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            kernel(X, W)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    ends = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for _ in range(4):
            process = os.fork()
            if process == 0:
                signal.alarm(20)
                same(kernel(X, W))
                os._exit(7)
            ends.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    stop.set()
    for t in threads:
        t.join()
    assert ends == [7] * 4


def test_other_threads_run_meanwhile():
    """The lock of the interpreter is let go: a thread counts while another one is in C."""
    x = rng.normal(size=(200_000, 3))
    known = pg.compile(pg.trace(lambda x: pg.sum(pg.exp(pg.sin(x))), x), target="c")
    count, stop = [0], threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    before = threading.Thread(target=work)
    before.start()
    seen = []
    for _ in range(20):
        start = count[0]
        known(x)
        seen.append(count[0] > start)
    stop.set()
    before.join()
    assert any(seen)


def test_an_interrupt_ends_a_loop(interrupts):
    def forever(x):
        return pg.while_loop(lambda v: pg.sum(v) < 1e300, lambda v: v * 1.0, x)

    for spec in (np.ones(3), pg.spec(("N",))):
        kernel = pg.compile(pg.trace(forever, spec), target="c")
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            kernel(np.ones(3))
        timer.join()
        np.testing.assert_array_equal(kernel(np.full(3, 1e300)), 1e300)


def test_states_and_what_depends_on_them_alone():
    found = {}
    for target in ("c", "numpy"):
        for shape in (("N", 3), (5, 3)):
            with pg.Program() as program:
                x = pg.data("x", shape)
                w = pg.create_parameter((3,), initializer=pg.initializers.Constant(0.5))
                fixed = pg.create_parameter((3,), initializer=pg.initializers.Constant(0.1))
                y = pg.log(x @ (w * pg.exp(pg.sin(fixed) * 2)))
                loss = pg.mean(y**2)
                pg.optimizer.Adam(0.1).minimize(loss, parameters=[w])
            executor = pg.Executor(target=target)
            feed = {"x": np.ones((5, 3))}
            for _ in range(3):
                values = executor.run(program, feed, [loss, w])
            out = np.empty(5)
            assert executor.run(program, feed, [y], out=[out], update=False)[0] is out
            found[target, shape] = [*values, out]
            with pytest.raises(pg.FeedError):
                executor.run(program, {"x": np.ones((5, 4))}, [loss])
            with pytest.raises(pg.PrimgraphError, match="log"):
                executor.run(program, {"x": -np.ones((5, 3))}, [loss], debug="nan")
    for shape in (("N", 3), (5, 3)):
        same(found["c", shape], found["numpy", shape])
