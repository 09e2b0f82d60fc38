"""Compilers that fail, and the files kept of what they made: nothing half-written is ever used."""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph.cli.main import main
from primgraph.codegen import native
from primgraph.codegen.ops.c.spellings import SPELLINGS
from primgraph.codegen.runtime.toolchain import cache, compile_c, graph_keys, run_compiler
from primgraph.codegen.runtime.toolchain.folder import Folder, open_private
from primgraph.codegen.runtime.toolchain.loading import load
from primgraph.ir.graph import Equation, Graph
from primgraph.primitives import elementwise

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)

_TEXT = "int number(void) { return %d; }"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with nothing in it."""
    found = tmp_path / "cache"
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(found))
    return found


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes a script the compiler; `$out` is what it is to write."""

    def make(lines):
        script = tmp_path / "fake-cc"
        find = 'for a in "$@"; do [ "$last" = -o ] && out="$a"; last="$a"; done'
        script.write_text(f"#!/bin/sh\n{find}\n{lines}\n")
        script.chmod(0o755)
        found = compile_c.Compiler((str(script),), f"fake {lines}")
        monkeypatch.setattr(compile_c, "compiler", lambda: found)
        monkeypatch.setattr(compile_c, "_stuck", [])
        return script

    return make


def run():
    """A kernel that NumPy runs, as nothing can be compiled, and what is said of that."""
    x = np.linspace(0, 1, 500)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = pg.compile(pg.trace(lambda x: pg.sin(x) * time.time(), x), target="c")
        found = kernel(x)
    assert found[0] == 0
    assert found[-1] > 1
    assert kernel.running_style((x,)) == "planned"
    assert {w.category for w in told} == {RuntimeWarning, pg.TracingWarning}
    return " ".join(str(w.message) for w in told if w.category is RuntimeWarning)


def number(stored):
    """The number that a library returns."""
    return load(stored, ctypes.CDLL).number()


def files(folder):
    """What is kept, but for locks and versions."""
    return [f.name for f in folder.iterdir() if not f.name.startswith(("lock-", "compiler-"))]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("echo half > $out; kill -9 $$", "was killed by signal 9"),
        ("echo half > $out; echo 'cc1: Killed' >&2; exit 1", "has no room"),
        ("echo half > $out; echo 'out.s: No space left on device' >&2; exit 1", "has no room"),
        ("echo half > $out", "cannot be loaded"),
        ("rm -r $(dirname $out); exit 1", "was removed"),
    ],
)
def test_where_nothing_can_be_compiled_numpy_runs(folder, fake, lines, words):
    fake(lines)
    native._caller.cache_clear()
    compile_c.caller.cache_clear()
    try:
        assert words in run()
        assert files(folder) == []
    finally:
        native._caller.cache_clear()
        compile_c.caller.cache_clear()


def test_missing_parts_are_compiled_beside_the_first_kernel(folder, monkeypatch):
    jobs = []
    run_all = run_compiler.run_all

    def watched(commands, *rest):
        jobs.append(len(commands))
        return run_all(commands, *rest)

    monkeypatch.setattr(run_compiler, "run_all", watched)
    compile_c.caller.cache_clear()
    assert number(compile_c.library(_TEXT % 1)) == 1
    # The extension module, runtime and kernel; then all but the kernel are in the cache.
    assert jobs == [3]
    assert sorted(name.rpartition(".")[2] for name in files(folder)) == ["o", "so", "so"]
    assert number(compile_c.library(_TEXT % 2)) == 2
    assert compile_c.caller().name in files(folder)
    with_sines = "void pg_sin(double *, const double *, long);\n" + _TEXT
    assert number(compile_c.library(with_sines % 3)) == 3
    assert jobs == [3, 2]


def test_a_kernel_that_is_rejected_beside_its_parts_is_told(folder):
    with pytest.raises(compile_c.FailedError, match=r"kernel.c:1:.*error"):
        compile_c.library("int number(void) { return }")


def test_a_full_disk_and_a_folder_that_may_not_be_written(folder, fake, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache, "keep", full)
        # What is compiled needs not be kept.
        assert number(compile_c.library(_TEXT % 1, runtime=False)) == 1
        patch.setattr(Folder, "write", full)
        with pytest.raises(compile_c.UnavailableError, match="No space left on device"):
            compile_c.library(_TEXT % 1, runtime=False)
    assert files(folder) == []
    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "access", lambda path, how: False)
        assert number(compile_c.library(_TEXT % 1, runtime=False)) == 1
        with cache.usable_folder() as used:
            assert folder not in Path(used.path).parents
    assert files(folder) == []


def test_a_compiler_that_hangs_is_ended_and_not_waited_for_again(
    folder, fake, monkeypatch, tmp_path
):
    pid = tmp_path / "pid"
    fake(f"sleep 50 & echo $! > {pid}; wait")
    monkeypatch.setattr(compile_c, "TIME_LIMIT", 0.5)
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises(compile_c.UnavailableError, match="did not end within"):
            compile_c.library(_TEXT % 2, runtime=False)
        monkeypatch.setattr(compile_c, "TIME_LIMIT", 1000)
        assert time.monotonic() - begin < 40
    # What it has started is ended, too.
    for _ in range(200):
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid.read_text().strip()],
                               capture_output=True, text=True).stdout.strip()  # fmt: skip
        if not state or state.startswith("Z"):
            break
        time.sleep(0.02)
    else:
        pytest.fail("what the compiler has started goes on")
    assert files(folder) == []


def test_a_source_that_is_refused_is_kept_and_the_users_line_named(native_cache, monkeypatch):
    monkeypatch.setitem(SPELLINGS, elementwise.floor, lambda args, step: f"{args[0]} @")
    x = np.ones(3)
    with pytest.raises(pg.CompileError) as caught:
        pg.compile(pg.trace(lambda x: pg.floor(x + 1.5) * 2, x), target="c")
    message = caught.value.message
    kept = message.split(" failed on ")[1].split(":")[0]
    assert "@" in Path(kept).read_text()
    assert "kernel.c:" in message
    assert "test_native_cache.py" in caught.value.origin[0]
    assert "pg.floor(x + 1.5)" in caught.value.origin[0]
    os.unlink(kept)


def test_without_headers_of_python_numpy_runs(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    compile_c.caller.cache_clear()
    with pytest.raises(compile_c.UnavailableError, match="Python's headers are not in"):
        compile_c.caller()


# What is kept.


def test_of_many_processes_one_compiles(folder, tmp_path):
    log, real = tmp_path / "log", compile_c.compiler().command[0]
    script, asked = tmp_path / "cc", 'case "$*" in *-shared*)'
    script.write_text(f'#!/bin/sh\n{asked} echo x >> {log}; sleep 0.5;; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    code = (
        "import ctypes; from primgraph.codegen.runtime.toolchain import loading;"
        "from primgraph.codegen.runtime.toolchain import compile_c;"
        f"made = compile_c.library({_TEXT % 3!r}, runtime=False);"
        "print(loading.load(made, ctypes.CDLL).number())"
    )
    env = {**os.environ, "CC": str(script)}
    command = [sys.executable, "-c", code]
    many = [subprocess.Popen(command, stdout=subprocess.PIPE, env=env) for _ in range(2)]
    assert [p.communicate(timeout=60)[0] for p in many] == [b"3\n"] * 2
    assert log.read_text().splitlines() == ["x"]


def test_threads_wait_for_each_other(folder, monkeypatch):
    made, compiled = [], compile_c._compile
    monkeypatch.setattr(
        compile_c, "_compile", lambda *a: (made.append(1), time.sleep(0.1), compiled(*a))[2]
    )
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(compile_c.library(_TEXT % 4, runtime=False)))
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(paths) == 4
    assert len(set(paths)) == 1
    assert made == [1]


def test_a_file_that_another_user_could_have_written_is_made_again(folder):
    made = compile_c.library(_TEXT % 5, runtime=False)
    path = folder / made.name
    for how in (0o777, 0o666, 0o620):
        path.chmod(how)
        before = path.stat().st_ino
        assert compile_c.library(_TEXT % 5, runtime=False) == made
        assert path.stat().st_ino != before
        assert path.stat().st_mode & 0o777 == 0o600
    assert compile_c.load_cached(made.name) == made


def test_only_what_is_ours_is_counted_and_removed(folder, monkeypatch, capsys):
    folder.mkdir()
    mine = folder / "thesis.so"
    mine.write_bytes(b"0" * 100)
    os.utime(mine, (1.0, 1.0))
    for number in range(6, 9):
        made = compile_c.library(_TEXT % number, runtime=False)
    left = folder / "making-x"
    left.mkdir()
    os.utime(left, (1.0, 1.0))
    size = (folder / made.name).stat().st_size
    monkeypatch.setattr(cache, "LIMIT", size + 200)
    with open_private(folder) as opened:
        cache.evict_files(opened)
    assert {f.name for f in folder.iterdir() if f.suffix == ".so"} == {made.name, mine.name}
    assert not left.exists()
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert f"folder:  {folder}\nfiles:   1\n" in out
    # Somebody is at work there.
    left.mkdir()
    assert main(["cache", "clear"]) == 0
    assert "removed 1 files" in capsys.readouterr().out
    assert sorted(f.name for f in folder.iterdir()) == [left.name, "thesis.so"]
    assert main(["cache", "show"]) == 0
    assert "files:   0\n" in capsys.readouterr().out


def test_single_numbers_take_pythons_where_there_is_no_compiler(monkeypatch):
    monkeypatch.setattr(native, "compiler", lambda: None)
    x = np.array([0.5, 2.0])
    kernel = pg.compile(pg.trace(lambda x: pg.sin(x[0]) * 2.5 + x[1], x), target="c")
    assert kernel.running_style((x,)) == "scalar"
    expected = np.sin(0.5) * 2.5 + 2.0
    for found in (kernel(x), kernel(x, out=np.empty(())), kernel(x, borrow=True)):
        assert found == expected
    kernel = pg.compile(pg.trace(lambda x: pg.sin(x) * 2.5, pg.spec(("N",))), target="c")
    for n in (2, 3, 3, 3):
        np.testing.assert_array_equal(kernel(np.zeros(n)), np.zeros(n))
    assert kernel.generic.running_style((x,)) == "readable"


def test_the_folder_is_the_users_wherever_that_is(monkeypatch, tmp_path):
    def lost():
        raise RuntimeError("no home")

    monkeypatch.setenv("PRIMGRAPH_CACHE", "~/there")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "there"
    monkeypatch.delenv("PRIMGRAPH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "primgraph"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == tmp_path / ".cache" / "primgraph"
    monkeypatch.setattr(cache.Path, "home", lost)
    assert str(os.getuid()) in str(cache.cache_folder())


def test_graphs_of_derivatives_have_keys_of_their_own():
    def f(x):
        return pg.concatenate([x[:2] + 0.0, x[2:]])

    graph = pg.compile(pg.trace(f, np.ones(4))).graph
    source = next(eqn.source for eqn in graph.body if eqn.source is not None)
    body = [
        eqn
        if eqn.source is None
        else Equation(eqn.op, eqn.inputs, eqn.params, eqn.outputs, source.mark_cotangent())
        for eqn in graph.body
    ]
    derived = Graph(graph.inputs, body, graph.outputs, graph.name)
    assert any(eqn.source.is_derived for eqn in derived.body if eqn.source is not None)
    assert graph_keys.digest_of_graph(graph) != graph_keys.digest_of_graph(derived)
