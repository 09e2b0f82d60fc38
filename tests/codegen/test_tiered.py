"""Kernels with `target="auto"`, with a real compiler in the background."""

import contextlib
import copy
import logging
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from density import starts
from program_tiered import check_tiered
from random_programs import random_program

import primgraph as pg
from primgraph.base.debug_mode import debug
from primgraph.codegen.runtime.toolchain import cache, compile_c, graph_keys
from primgraph.codegen.runtime.toolchain.folder import open_private
from primgraph.codegen.tiered import background, choice, worker
from primgraph.codegen.tiered.choice import Stage
from primgraph.codegen.tiered.kernel import TieredKernel
from primgraph.codegen.tiered.times import Times, recall_times
from primgraph.extend import registered
from primgraph.ir.facts import ops as registry
from primgraph.primitives import elementwise

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))) or os.name != "posix",
    reason="there is no C compiler, or no POSIX system",
)

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, native_cache):
    """A cache of this file, with what all kernels share."""
    found = tmp_path_factory.mktemp("tiered") / "cache"
    found.mkdir(mode=0o700)
    for file in native_cache.iterdir():
        if ".o" in file.suffixes or file.name.startswith("compiler-"):
            shutil.copy2(file, found / file.name)
    with open_private(found) as shared:
        cache.keep(shared, *compile_c.caller())
    yield found
    background._stop()


@pytest.fixture(autouse=True)
def like_a_user(folder, monkeypatch):
    """A process like a user's, which tries C after the first calls."""
    monkeypatch.setattr(graph_keys, "LOADED", math.inf)
    monkeypatch.setattr(choice, "START", 0)
    monkeypatch.setattr(choice, "START_EQUATION", 0)
    monkeypatch.setattr(choice, "processors", lambda: 2)
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(folder))
    with debug(False):
        yield


def many(x):
    for k in range(3):
        x = pg.tanh(x * (k + 1.5)) + pg.sin(x)
    return x


def auto(function, *arrays, **options):
    return pg.compile(pg.trace(function, *arrays), target="auto", **options)


def on_c(kernel):
    """Compile the C of a kernel whatever is expected of it, and return the kernel."""
    if kernel._choice.stage is Stage.SAMPLING:
        kernel._choice.start()
    kernel.wait()
    assert kernel.style == "native"
    return kernel


def call_until_settled(kernel, *arrays):
    end = time.monotonic() + 60
    while kernel._choice.stage is not Stage.SETTLED:
        kernel(*arrays)
        assert time.monotonic() < end
    return kernel


def test_the_first_calls_run_numpy_and_later_ones_c(caplog):
    caplog.set_level(logging.INFO, "primgraph")
    kernel, expected = auto(many, X), pg.compile(pg.trace(many, X), target="numpy")(X)
    assert kernel.style == "planned"
    assert str(kernel.plan).startswith("NumPy runs, and is timed\n\n")
    np.testing.assert_array_equal(kernel(X), expected)
    assert kernel.style == "planned"
    assert kernel.wait() is kernel
    assert kernel.style == "native"
    assert str(kernel.plan).startswith("C runs, and is timed")
    by_c = pg.compile(pg.trace(many, X), target="c")(X)
    np.testing.assert_array_equal(kernel(X), by_c)
    call_until_settled(kernel, X)
    assert kernel.style == "native"
    assert "as measured: NumPy takes" in str(kernel.plan)
    told = [record.getMessage() for record in caplog.records]
    assert any("C is compiled in the background" in text for text in told)
    assert kernel.source == pg.compile(pg.trace(many, X), target="numpy").source
    # What was learned is there for the next kernel and the next process.
    again = auto(many, X)
    assert again.style == "native"
    assert str(again.plan).startswith("C runs, as measured before: ")
    known = recall_times(again._choice.source.key)
    assert known.is_c_faster
    slow = Times(known.numpy, known.numpy + 1)
    again._choice.source.keep(slow)
    third = auto(many, X)
    assert (third.style, third._choice.stage) == ("planned", Stage.SETTLED)
    again._choice.source.keep(known)
    copied = [copy.copy(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))]
    for other in copied:
        assert isinstance(other, TieredKernel)
        np.testing.assert_array_equal(other(X), by_c)


@pytest.mark.parametrize("start", starts(0, 40, 2, dense=2))
def test_calls_of_random_programs_give_what_numpy_or_c_does(start):
    seen = Counter()
    for seed in range(start, start + 2):
        program = random_program(seed)
        try:
            check_tiered(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert {"tiers: trying", "tiers: settled"} <= seen.keys()


def test_jit_takes_it_up_without_a_longer_way():
    function = pg.jit(lambda x, n: many(x) * n, static_argnames="n", target="auto")
    kernel = function.kernel(X, n=2)
    expected = many(pg.tensor(X)).numpy() * 2
    for _ in range(5):
        np.testing.assert_allclose(function(X, n=2), expected, rtol=1e-12)
    kernel.wait()
    while kernel._choice.stage is not Stage.SETTLED:
        np.testing.assert_allclose(function(X, n=2), expected, rtol=1e-12)
    function(X, n=2)
    run = function._shortcut.__globals__["run"]
    assert run is pg.codegen.kernel.direct(kernel._choice.kernel)


def test_out_and_borrowed_results_wait_for_c_of_their_own():
    def shifted(x):
        return many(x) + 1.0, x * 3.0

    kernel = on_c(auto(shifted, X))
    numpy = pg.compile(pg.trace(shifted, X), target="numpy")
    by_c, by_numpy = kernel(X), numpy(X, out=[np.empty_like(X), None])
    out = [np.empty_like(X), None]
    assert kernel(X, out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], by_c[0])
    # C that writes into kept arrays is another function: NumPy computes until it is there.
    into = kernel(X, borrow=True)
    # The C may be there as soon as NumPy's code is.
    assert any(np.array_equal(into, expected) for expected in (by_numpy, by_c))
    assert kernel._into.wait(60) == ""
    assert kernel(X, borrow=True)[0] is into[0]
    np.testing.assert_array_equal(into, by_c)


def test_donated_inputs_and_single_results_in_lists():
    def step(x, y):
        return x * 0.5 + many(y)

    graph = pg.trace(step, X, X)
    kernel = pg.compile(graph, target="auto", donated={0: 0})
    expected = pg.compile(graph, target="numpy")(X, X)
    for _ in range(2):
        state = X.copy()
        assert kernel(state, X) is state
        np.testing.assert_allclose(state, expected, rtol=1e-12)
        with pytest.raises(pg.FeedError, match="overwritten"):
            kernel(X[::1][:, ::-1], X)
        on_c(kernel)
    flat = kernel.flat
    assert flat.style == "native"
    np.testing.assert_allclose(flat(X.copy(), X)[0], expected, rtol=1e-12)


def test_programs_with_states_and_constants():
    found = []
    for target in ("numpy", "auto"):
        with pg.Program() as program:
            x = pg.data("x", (3, 4))
            w = pg.create_parameter((4,), initializer=pg.initializers.Constant(0.5))
            table = pg.sin(pg.ones((4, 4)) * 0.3)
            loss = pg.mean((many(x * w) @ table - 0.25) ** 2)
            pg.optimizer.SGD(0.1).minimize(loss)
        executor, kernels = pg.Executor(target=target), []
        for k in range(30):
            found.append(executor.run(program, feed={"x": X}, fetch_list=[loss])[0])
            if target == "auto" and not kernels:
                kernels = [x for x in choice._alive if x.stage is not Stage.SETTLED]
            if k == 5:
                for one in kernels:
                    one.start()
                    choice.wait_for_c(one)
    np.testing.assert_allclose(found[:30], found[30:], rtol=1e-12)
    assert any(one.is_native for one in kernels)


def test_sizes_that_change():
    graph = pg.trace(lambda x: many(x), pg.spec(("n",)))
    kernel = pg.compile(graph, target="auto")
    by_numpy = pg.compile(graph, target="numpy")
    for size in (3, 5, 3, 3, 1000, 4):
        x = np.linspace(0, 1, size)
        np.testing.assert_allclose(kernel(x), by_numpy(x), rtol=1e-12)
    assert (kernel.generic.style, kernel.at(n=3).style) == ("readable", "planned")
    for one in (kernel.at(n=3), kernel.generic):
        on_c(one)
    assert kernel.wait() is kernel
    for size in (3, 6, 6, 1000, 4):
        x = np.linspace(0, 1, size)
        np.testing.assert_allclose(kernel(x), by_numpy(x), rtol=1e-12)
    assert kernel._kernels.only is kernel.generic


def test_graphs_without_a_place_in_the_cache_are_left_to_the_cost_model(monkeypatch):
    monkeypatch.setattr(registry, "_registry", registered())
    rule = {"jvp": lambda y, x, dx: dx + dx}
    own = elementwise.elementwise("twice_for_tiers", lambda x: x + x, **rule)
    kernel = auto(lambda x: pg.extend.emit(own, x), X)
    assert not isinstance(kernel, TieredKernel)
    assert kernel.wait() is kernel
    np.testing.assert_array_equal(kernel(X), X + X)
    with debug(True):
        assert not isinstance(auto(many, X), TieredKernel)


def test_without_a_compiler_it_is_numpy(monkeypatch):
    monkeypatch.setattr(compile_c, "find_compiler", lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = auto(many, X)
    assert (type(kernel), kernel.style) == (pg.Kernel, "planned")


def test_forked_processes_go_on_with_processes_of_their_own():
    kernel = auto(lambda x: many(x) * 7.0, X)
    expected = kernel(X)
    kernel._choice.start()
    assert kernel._choice.stage is Stage.COMPILING
    child = os.fork()
    if not child:
        status = 1
        try:
            call_until_settled(kernel, X)
            status = 0 if np.allclose(kernel(X), expected, rtol=1e-12) else 2
        finally:
            background._stop()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    kernel.wait()
    assert kernel.style == "native"
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)


def test_a_job_that_fails_is_answered_by_its_reason(monkeypatch):
    fault, before, seconds = eval(worker.answer_line(b"no pickle"))
    assert "UnpicklingError" in fault
    assert before >= 0
    assert seconds >= 0
    native = sys.modules["primgraph.codegen.native"]

    def reject(*job):
        raise compile_c.FailedError("cc failed", "no luck")

    monkeypatch.setattr(native, "prepare", reject)
    assert eval(worker.answer_line(pickle.dumps((1, 2, 3))))[0] == "cc failed"
    monkeypatch.setattr(native, "prepare", lambda *job: None)
    assert "no C" in eval(worker.answer_line(pickle.dumps((1, 2, 3))))[0]


SLOW = """
import os, sys, time
import numpy as np, primgraph as pg
from primgraph.codegen.tiered import background, choice

kernel = pg.compile(pg.trace(lambda x: pg.sin(x) * 2.0, np.ones(3)), target="auto")
kernel._choice.start()
print(background._workers[0].process.pid, flush=True)
while not os.path.exists(os.environ["STARTED"]):
    time.sleep(0.01)
if sys.argv[1] != "exit":
    time.sleep(600)
"""
# Seconds after which a test gives up, less than the compiler takes.
PATIENCE = 300


def processes_of(folder):
    """The processes with this folder in their environment."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if os.fsencode(folder) in file.read():
                found.add(int(name))
    return found


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
@pytest.mark.parametrize("how", ["exit", "kill", "terminate"])
def test_the_background_process_and_its_compilers_end_with_the_program(how, tmp_path):
    started, compiler = tmp_path / "started", tmp_path / "cc"
    compiler.write_text(
        f"#!/bin/sh\n[ $1 = --version ] && echo cc 1 && exit\ntouch {started}; exec sleep 600\n"
    )
    compiler.chmod(0o700)
    settings = {"CC": str(compiler), "STARTED": str(started), "PRIMGRAPH_DEBUG": "0"}
    program = subprocess.Popen(
        [sys.executable, "-c", SLOW, how],
        env={**os.environ, **settings, "PRIMGRAPH_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        worker_process = int(program.stdout.readline())
        if how != "exit":
            # Some compilers are still to start.
            wait_until(started.exists)
        if how == "kill":
            program.kill()
        if how == "terminate":
            os.kill(worker_process, signal.SIGTERM)
            wait_until(lambda: processes_of(tmp_path) == {program.pid})
            program.kill()
        program.wait(PATIENCE)
    wait_until(lambda: not processes_of(tmp_path))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
def test_without_a_usable_cache_both_processes_use_one_folder(monkeypatch, tmp_path):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(tmp_path))
    background._stop()
    environment = Path(f"/proc/{background.ready_worker().process.pid}/environ")
    # It is empty at the very start of a process.
    wait_until(environment.read_text)
    with cache.usable_folder() as own:
        assert own.path != str(tmp_path)
        assert f"PRIMGRAPH_CACHE={own.path}" in environment.read_text().split("\0")
    background._stop()


def test_the_default_target_is_set_for_a_process_or_a_block(monkeypatch):
    assert pg.Executor().target == "numpy"
    monkeypatch.setenv("PRIMGRAPH_TARGET", "c")
    with pg.config(target="auto"):
        assert pg.Executor().target == "auto"
        assert isinstance(pg.compile(pg.trace(many, X)), TieredKernel)
        with pg.config(target=None):
            assert pg.Executor().target == "c"
        assert pg.Executor().target == "auto"
    assert pg.Executor().target == "c"
    with pytest.raises(pg.CompileError, match="there is no target 'rust'"):
        pg.config(target="rust")
    monkeypatch.setenv("PRIMGRAPH_TARGET", "auto")
    assert isinstance(pg.jit(many).kernel(X), TieredKernel)


def test_programs_that_need_no_background_process_do_not_start_one():
    needs = background._Needs()
    name = f"{cache.key_of('another program')}{cache.TIMES}"
    type(needs).name, kept = name, type(needs).name
    try:
        assert needs.are_likely()
        needs.note(is_needed=False)
        assert not background._Needs().are_likely()
        again = background._Needs()
        again.note(is_needed=True)
        assert background._Needs().are_likely()
    finally:
        type(needs).name = kept
