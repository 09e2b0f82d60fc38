"""Long programs in C: equal nests are one function, and files are compiled in units."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from density import starts
from program_long import check_long, long_program

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.native import library
from primgraph.codegen.runtime.toolchain import compile_c, run_compiler
from primgraph.codegen.targets.c.lines import Function, in_units, one_unit
from primgraph.codegen.targets.c.shared_nests import find_runs
from primgraph.codegen.targets.c.size_arguments import SizeArguments
from primgraph.codegen.targets.c.source import source
from primgraph.errors import CompileError
from primgraph.ir.interpret import interpret

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


def burgers(u, steps=60):
    for _ in range(steps):
        left, right = np.roll(u, 1), np.roll(u, -1)
        u = u + 0.1 * (left - 2 * u + right) - 0.05 * u * (right - left)
    return np.sum(u * u)


def cell(w, x, steps=40):
    h = np.zeros(3)
    for t in range(steps):
        z = w @ h + x[t % len(x)]
        h = np.where(z > 0, np.tanh(z), 0.1 * z) + np.max(z) * 0.01
    return np.sum(h * h)


def written(graph):
    return source(nests(schedule(graph)), "kernel")


def traced(function, *arrays):
    return pg.compile(pg.trace(pg.grad(function), *arrays)).graph


U = np.sin(np.linspace(0, 6, 40))
W = np.random.default_rng(4).normal(size=(3, 3))
X = np.random.default_rng(5).normal(size=(4, 3))

LOOPS = [(burgers, (U,)), pytest.param(cell, (W, X), marks=pytest.mark.dense)]


@pytest.mark.parametrize(("function", "arrays"), LOOPS)
def test_equal_steps_of_a_loop_are_one_function_and_have_its_bits(function, arrays, monkeypatch):
    graph = traced(function, *arrays)
    shared = written(graph).text
    monkeypatch.setattr("primgraph.codegen.targets.c.shared_nests._LONG", 10**9)
    apart = written(graph).text
    assert "_n0(" not in apart
    assert len(shared) < len(apart) / 2
    # Another graph, so that no kernel is taken from the cache.
    plain = pg.compile(traced(lambda *a: function(*a) * 2.0, *arrays), target="c")(*arrays)
    monkeypatch.undo()
    found = pg.compile(graph, target="c")(*arrays)
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(plain), strict=True):
        np.testing.assert_array_equal(one * 2, other)
    np.testing.assert_allclose(found, pg.compile(graph)(*arrays), rtol=1e-12)


@pytest.mark.parametrize("seed", starts(0, 12, 1, dense=2))
def test_random_steps_one_after_another(seed):
    check_long(seed)


def test_random_long_programs_have_numbers_and_equal_nests():
    shared = 0
    for seed in range(6):
        graph, feeds = long_program(seed)
        assert len(graph) > 1000
        shared += "int kernel_n0(" in written(graph).text
        with np.errstate(all="ignore"):
            assert not all(np.all(np.isnan(x)) for x in interpret(graph, *feeds))
    assert shared >= 3


@pytest.mark.parametrize(("function", "arrays"), LOOPS)
def test_equal_steps_become_a_loop_with_a_row_of_places_each(function, arrays):
    def text(steps):
        return written(traced(lambda *a: function(*a, steps=steps), *arrays)).text

    short, long = text(100), text(200)
    assert "    for (long t = 0; t < " in short
    # Per step there are at most numbers: offsets of its values in memory.
    assert long.count("return 1;") <= short.count("return 1;") + 10
    assert len(long) - len(short) < 100 * 200


def test_equal_layers_with_weights_of_their_own_become_a_loop():
    def layers(x, *weights):
        for w in weights:
            x = np.tanh(x @ w)
        return x

    arrays = [np.ones((2, 3)), *np.random.default_rng(7).normal(size=(40, 3, 3))]
    graph = pg.compile(pg.trace(layers, *arrays)).graph
    assert "(char *)a[" in written(graph).text
    np.testing.assert_allclose(pg.compile(graph, target="c")(*arrays), layers(*arrays))


def test_runs_are_found_wherever_they_begin_and_however_long_they_are():
    rng = np.random.default_rng(11)
    for period in (1, 2, 5, 17, 80):
        step = [int(k) for k in rng.integers(0, 9, size=period)]
        keys = [*range(100, 107), *step * 12, *step[: period // 2], *range(200, 205)]
        ((start, found, count),) = find_runs(keys)
        assert (found * count, count) >= (12 * period, 12)
        assert start <= 7
        assert keys[start : start + found * count] == keys[start : start + found] * count


def test_the_longest_run_is_found_around_shorter_ones():
    assert list(find_runs([1, 1, 1, 1, 1, 1, 1, 1, 1, 2] * 50)) == [(0, 10, 50)]
    assert list(find_runs([1, 2, 1, 2, 3, 4])) == []


def test_equal_steps_over_any_size_are_one_function():
    kernel = pg.compile(pg.trace(pg.grad(burgers), pg.spec(("n",))), target="c")
    graph = kernel.graph
    text = source(nests(schedule(graph)), "kernel", SizeArguments(graph)).text
    assert text.count("pg_rounded_f64(") < 100
    assert "char *z) {\n    const long n_n = " in text
    for n in (1, 2, 3, 40):
        u = np.sin(np.linspace(0, 6, n))
        expected = pg.compile(pg.trace(pg.grad(burgers), u))(u)
        np.testing.assert_allclose(kernel(u), expected, rtol=1e-9)


def test_nests_that_differ_in_a_number_or_in_a_type_are_not_shared():
    def f(x, y):
        parts = []
        for k in range(80):
            parts += [np.cumsum(x * (k + 2.0))[-1], np.cumsum(y * (k + 2.0))[-1]]
        return sum(parts[::2]), sum(parts[1::2])

    x = np.linspace(0, 1, 7)
    graph = pg.trace(f, x, x.astype(np.float32))
    for one, other in zip(
        pg.compile(graph, target="c")(x, x.astype(np.float32)),
        pg.compile(graph)(x, x.astype(np.float32)),
        strict=True,
    ):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_error_in_a_shared_nest_is_raised():
    def f(x, index):
        total = 0.0
        for k in range(70):
            x = np.tanh(x)
            total = total + np.sum(np.take(x, index + k - k))
        return total

    x, index = np.linspace(0, 1, 9), np.array([1, 2])
    kernel = pg.compile(pg.trace(f, x, index), target="c")
    assert np.isfinite(kernel(x, index))
    with pytest.raises(pg.RunError):
        kernel(x, np.array([1, 9]))


def mixed(x):
    for k in range(700):
        x = 0.9 * x + 0.1 * np.sin(x + k) if k % 3 else np.roll(x, k) - np.cumsum(x) * 0.01
    return x


def test_a_long_file_is_compiled_in_units(monkeypatch):
    x = np.linspace(0, 1, 5)
    graph = pg.trace(mixed, x)
    monkeypatch.setattr("primgraph.codegen.targets.c.lines._WHOLE", 800)
    monkeypatch.setattr("primgraph.codegen.targets.c.lines._LINES", 400)
    assert written(graph).units > 2
    commands = []
    run = run_compiler.run_all

    def watched(each, *rest):
        commands.extend(each)
        return run(each, *rest)

    monkeypatch.setattr(run_compiler, "run_all", watched)
    np.testing.assert_allclose(pg.compile(graph, target="c")(x), mixed(x), rtol=1e-9)
    assert sum(any(word.startswith("-DUNIT=") for word in command) for command in commands) > 2


@pytest.mark.parametrize(
    ("version", "is_gcc"),
    [
        ("cc (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("x86_64-conda-linux-gnu-cc (conda-forge gcc 13.2.0-5) 13.2.0", True),
        ("Debian clang version 14.0.6", False),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", False),
    ],
)
def test_gcc_alone_takes_its_flags_of_units(version, is_gcc, monkeypatch):
    monkeypatch.setattr(compile_c, "compiler", lambda: compile_c.Compiler(("cc",), version))
    assert ("-fno-tree-ccp" in compile_c._long_file_flags()) == is_gcc


def test_functions_of_units_are_declared_for_the_others():
    functions = [Function(f"int f{k}(int x)", ["    return x;"] * 4000) for k in range(3)]
    lines, count = in_units(functions)
    assert count == 3
    assert lines.count("LOCAL int f1(int x);") == 1
    assert [line for line in lines if line.startswith("#if !defined UNIT")] == [
        f"#if !defined UNIT || UNIT == {k}" for k in range(3)
    ]
    assert in_units(functions[:1]) == (one_unit(functions[:1]), 1)


def test_a_fault_in_a_unit_is_told():
    text = "#if !defined UNIT || UNIT == 1\nint f(void) { return 1 }\n#endif\n"
    with pytest.raises(CompileError, match="expected"):
        library(text, units=2)


def test_commands_run_side_by_side_and_end_with_the_first_failure():
    say = [sys.executable, "-c", "import sys; print(sys.argv[1]); sys.exit(int(sys.argv[1]) == 2)"]
    done = run_compiler.run_all([[*say, str(k)] for k in range(5)], 60, "")
    assert [d.stdout.strip() for _, d in done] == [str(place) for place, _ in done]
    assert [d.returncode for _, d in done] == [0] * (len(done) - 1) + [1]
    assert done[-1][0] == 2


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system waits for one process only")
def test_the_next_command_does_not_wait_for_the_first_one(monkeypatch):
    monkeypatch.setattr(run_compiler, "processors", lambda: 2)
    program = "import time; open({!r}, 'w').close()"
    wait = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "made")
        commands = [["-c", wait, place], ["-c", ""], ["-c", program.format(place)]]
        done = run_compiler.run_all([[sys.executable, *words] for words in commands], 60, folder)
    assert sorted(place for place, _ in done) == [0, 1, 2]
    assert all(d.returncode == 0 for _, d in done)


def test_commands_that_take_too_long_are_ended():
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    began = time.monotonic()
    assert run_compiler.run_all([sleep] * 3, 0.2, "") == [(0, None)]
    assert time.monotonic() - began < 300


def test_commands_that_start_meanwhile_are_ended_as_well(monkeypatch):
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    start, started = subprocess.Popen, []
    ender = threading.Thread(target=run_compiler.end_all, args=("enough",))

    def start_slowly(*args, **named):
        if not started:
            ender.start()
            time.sleep(0.1)
        started.append(start(*args, **named))
        return started[-1]

    monkeypatch.setattr(run_compiler, "_refusals", [])
    monkeypatch.setattr(run_compiler.subprocess, "Popen", start_slowly)
    with contextlib.suppress(InterruptedError):
        done = run_compiler.run_all([sleep] * 3, 600, "")
        assert [d.returncode for _, d in done] == [-signal.SIGKILL]
    ender.join()
    assert started
    assert all(process.returncode == -signal.SIGKILL for process in started)
    with pytest.raises(InterruptedError, match="enough"):
        run_compiler.run(sleep, 600)
    assert not run_compiler._started


def test_a_long_chain_over_a_large_array_is_lowered_without_recursion():
    def f(x):
        for _ in range(1500):
            x = x * 1.0001
        return np.sum(np.tanh(x)), x

    x = np.linspace(0, 1, 1 << 15)
    text = written(pg.compile(pg.trace(f, x)).graph).text
    assert "pg_tanh" in text
