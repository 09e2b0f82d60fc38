"""Native code for loops that keep a row of each trip, however many trips these take."""

import pickle
import re
import resource
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import primgraph as pg
from primgraph.base.debug_mode import debugging
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.program import stays_inside
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.targets.c.source import source
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(41)


def settled(x, top):
    """What is added to until it is `top`, with its gradient and that of the gradient's square."""

    def trip(c):
        return c * 1.01 + pg.sin(c) * 0.01 + 0.001

    last = pg.while_loop(lambda c: pg.max(c) < top, trip, x)
    loss = pg.sum(last * last)
    slope = pg.grad(loss, x)
    return loss, slope, *pg.grad(pg.sum(slope * slope), [x, top], materialize_grads=True)


SPECS = {
    "fixed": [pg.spec(3), pg.spec(())],
    "sized": [pg.spec(("N",)), pg.spec(())],
    "single": [pg.spec(("N",), "float32"), pg.spec((), "float32")],
}


@pytest.fixture(scope="module")
def kernels(native_cache):
    token = debugging.set(True)
    found = {}
    for name, specs in SPECS.items():
        graph = clean_up(lower(pg.trace(settled, *specs)))
        found[name] = compile_graph(graph, style="native"), graph
    debugging.reset(token)
    return found


def feeds(n, top, dtype="f8"):
    return np.linspace(0.1, 0.5, n).astype(dtype), np.asarray(top, dtype)


def test_loops_of_any_number_of_trips(kernels):
    for name, (kernel, graph) in kernels.items():
        dtype, rtol = ("f4", 1e-3) if name == "single" else ("f8", 1e-9)
        for n in (3,) if name == "fixed" else (1, 3, 50):
            # None, one, as many as there is room for at first, one more, and many.
            for top in (0.1, 0.505, 0.66, 0.67, 3.0):
                arrays = feeds(n, top, dtype)
                for a, b in zip(kernel(*arrays), interpret(graph, *arrays), strict=True):
                    np.testing.assert_allclose(a, b, rtol, rtol, err_msg=f"{name} {n} {top}")
                assert kernel.running_style(arrays) == "native"


def test_memory_is_given_back(kernels):
    _, graph = kernels["fixed"]
    text = source(nests(schedule(graph)), "kernel").text
    stacks = set(re.findall(r"realloc\((\(\*\(char \*\*\)\(w \+ \d+\)\))", text))
    assert len(stacks) == 4
    assert all(text.count(f"free({stack});") == 1 for stack in stacks)
    assert "static int kernel_0_within(" in text
    # What has no such stacks asks for no memory.
    assert (
        "alloc"
        not in source(nests(schedule(clean_up(lower(pg.trace(pg.sin, pg.spec(3)))))), "k").text
    )


def test_calls_that_fail_leave_nothing_behind():
    def f(x, places):
        def trip(c):
            state, k = c
            return pg.sin(state) * 2.0 + x[places[k]], k + 1

        last, _ = pg.while_loop(lambda c: c[1] < 3000, trip, (x, 0))
        return pg.grad(pg.sum(last), x)

    places = np.zeros(3000, "i8")
    kernel = pg.compile(pg.trace(f, pg.spec(1000), pg.spec(3000, "int64")), target="c")
    x = np.ones(1000)
    good = kernel(x, places)
    assert kernel.running_style([x, places]) == "native"
    bad = places.copy()
    bad[2900] = 1000
    with pytest.raises(pg.RunError):
        kernel(x, bad)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(6):
        # Each would leave 24 MiB.
        assert kernel._code.scalar(x, bad) is None
        np.testing.assert_array_equal(kernel(x, places), good)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_what_kernels_promise_holds():
    graph = pg.trace(settled, *SPECS["sized"])
    kernel, plain = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    x, top = feeds(40, 2.0)
    expected = plain(x, top)
    out = [np.empty_like(a) for a in expected]
    wrong = []

    def work():
        for _ in range(20):
            found = kernel(x, top)
            wrong.extend(k for k, a in enumerate(found) if a.tobytes() != known[k].tobytes())

    known = kernel(x, top)
    for found in (
        known, kernel(x, top, out=out), kernel(x, top, borrow=True), kernel.at(N=40)(x, top),
        pickle.loads(pickle.dumps(kernel))(x, top),
    ):  # fmt: skip
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-9)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert "scan of ? trips" in str(kernel.at(N=40).plan)


def inner(x, top=3.0):
    return pg.while_loop(lambda c: pg.sum(c) < top, lambda c: pg.exp(c * 0.1), x)


def in_scan(x):
    return pg.grad(pg.sum(pg.scan(lambda c, r: (inner(c + r), None), x[0], x)[0]), x)


def in_branch(x):
    end = pg.cond(pg.sum(x) < 9.0, lambda: inner(x[0]), lambda: x[1])
    return pg.grad(pg.sum(end * end), x)


def in_while(x):
    """Stacks in a loop whose own stacks grow, of numbers of trips that change from step to step."""

    def step(state):
        c, k = state
        return pg.sin(inner(c + x[0], 2.0 + 0.3 * pg.astype(k, "float64"))), k + 1

    end, _ = pg.while_loop(lambda s: s[1] < 5, step, (x[1], 0))
    return pg.grad(pg.sum(end), x)


def deep(x):
    end, _ = pg.scan(lambda c, r: (in_while_value(c, r), None), x[0], x)
    return pg.grad(pg.sum(end), x)


def in_while_value(c, r):
    return pg.while_loop(lambda s: pg.sum(s) < 12.0, lambda s: inner(s * 0.1 + r * 0.1) + s, c)


@pytest.mark.parametrize("function", [in_scan, in_branch, in_while, deep])
def test_stacks_grow_within_bodies(function):
    graph = pg.trace(function, pg.spec((4, 3)))
    kernel, plain = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    for x in (rng.random((4, 3)), rng.random((4, 3)) + 3.0, -rng.random((4, 3))):
        np.testing.assert_allclose(kernel(x), plain(x), 1e-10, 1e-12)
        assert kernel.running_style([x]) == "native"
    assert "by NumPy" not in "\n".join(kernel.plan.native)
    text = source(nests(schedule(clean_up(lower(graph)))), "kernel").text
    places = re.findall(r"realloc\((\(\*\(char \*\*\)\(w \+ \d+\)\))", text)
    assert places
    assert text.count("free(") >= len(set(places))


def test_stacks_within_bodies_are_freed_in_each_step_and_after_an_error():
    def f(x, places):
        def step(c, place):
            def trip(s):
                state, k = s
                return pg.sin(state) * 2.0 + x[place], k + 1

            return pg.while_loop(lambda s: s[1] < 400, trip, (c, 0))[0], None

        return pg.grad(pg.sum(pg.scan(step, x, places)[0]), x)

    kernel = pg.compile(pg.trace(f, pg.spec(1000), pg.spec(8, "int64")), target="c")
    x, places = np.ones(1000), np.zeros(8, "i8")
    bad = places.copy()
    bad[7] = 1000
    good = kernel(x, places)
    assert kernel.running_style([x, places]) == "native"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(6):
        # Each would leave 3 MiB for each of eight steps.
        assert kernel._code.scalar(x, bad) is None
        np.testing.assert_array_equal(kernel(x, places), good)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_stacks_that_numpys_steps_would_read_are_numpys():
    def beside(x):
        return pg.grad(pg.sum(pg.abs(pg.fft.fft(inner(x)))), x)

    graph = pg.trace(beside, pg.spec(3))
    kernel, plain = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    x = rng.random(3)
    np.testing.assert_allclose(kernel(x), plain(x), 1e-10)
    assert "NumPy does all: there are stacks that grow, and" in "\n".join(kernel.plan.native)
    assert not stays_inside(nests(schedule(clean_up(lower(graph)))))


_LITTLE = """
import resource, sys
import numpy as np
import primgraph as pg

def f(x, trips):
    last, _ = pg.while_loop(lambda c: c[1] < trips, lambda c: (pg.sin(c[0]) * 2, c[1] + 1), (x, 0))
    return pg.grad(pg.sum(last), x)

kernel = pg.compile(pg.trace(f, pg.spec(200_000), pg.spec((), "int64")), target="c")
x = np.ones(200_000)
known = kernel(x, np.array(3))
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**28, now + 2**28))
try:
    kernel(x, np.array(1000))
except pg.RunError as error:
    print("told", "MemoryError" in str(error))
assert np.array_equal(kernel(x, np.array(3)), known)
print(kernel.running_style([x, np.array(3)]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's /proc")
def test_memory_that_ends_is_told_as_by_numpy(native_cache):
    done = subprocess.run([sys.executable, "-c", _LITTLE], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["told True", "native"], done.stderr
