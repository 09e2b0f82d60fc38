"""What C was written of a graph is found again by what the graph is, and by nothing less."""

import ast
import math
import os
import re
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
from random_programs import random_program

import primgraph as pg
from primgraph.base.debug_mode import debug
from primgraph.cli.main import main
from primgraph.codegen.ir.limits import Limits, Options, default_limits
from primgraph.codegen.runtime.toolchain import cache, code_cache, compile_c, graph_keys
from primgraph.codegen.runtime.toolchain.folder import open_private
from primgraph.codegen.targets.c import driver
from primgraph.extend import registered
from primgraph.ir.facts import ops as registry
from primgraph.primitives import elementwise
from primgraph.transforms import lower

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
COMPILER = compile_c.Compiler(("/usr/bin/cc",), "cc 1")


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """Whoever works on files while tests run changes nothing in them."""
    monkeypatch.setattr(graph_keys, "LOADED", math.inf)


@pytest.fixture
def folder(tmp_path, monkeypatch, native_cache):
    """A cache with what all kernels share, in a process like a user's: debug mode keeps nothing."""
    found = tmp_path / "cache"
    found.mkdir(mode=0o700)
    # What a process asks for but once may have been made elsewhere, by tests before.
    for file in native_cache.iterdir():
        if ".o" in file.suffixes or file.name.startswith("compiler-"):
            shutil.copy2(file, found / file.name)
    with open_private(found) as shared:
        cache.keep(shared, *compile_c.caller())
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(found))
    monkeypatch.setenv("PRIMGRAPH_DEBUG", "0")
    with debug(False):
        yield found


def graph_of(function, *arrays):
    return lower(pg.trace(function, *arrays))


def key(graph, options=None, limits=None, compiler=COMPILER):
    return code_cache.key_of(graph, options or Options(), limits or default_limits(), compiler)


# What a graph is.


def test_equal_graphs_have_one_key_and_others_have_others():
    a, b, c = np.arange(4.0), np.arange(3.0), np.ones((2, 4), "f4")
    table, other = np.arange(40.0), np.arange(40.0)
    other[7] = -0.0
    functions = [
        (lambda x: x + 1.0, [a]),
        (lambda x: x + 1.0, [b]),
        (lambda x: x + 1.0, [c]),
        (lambda x: x + 0.0, [a]),
        (lambda x: x + -0.0, [a]),
        (lambda x: x + np.nan, [a]),
        (lambda x: x - 1.0, [a]),
        (lambda x, y: x - y, [a, a]),
        (lambda x, y: y - x, [a, a]),
        (lambda x, y: (x, y - x), [a, a]),
        (lambda x, y: (y - x, x), [a, a]),
        (lambda x: pg.sum(x), [c]),
        (lambda x: pg.sum(x, 0), [c]),
        (lambda x: pg.sum(x, 1), [c]),
        (lambda x: x + table[:4], [a]),
        (lambda x: x + table, [table]),
        (lambda x: x + other, [table]),
        (lambda x: x * 2, [pg.spec(("N",))]),
        (lambda x: x * 2, [pg.spec(("M",))]),
        (lambda x: pg.scan(lambda v, r: (v * r, None), 1.0, x)[0], [a]),
        (lambda x: pg.scan(lambda v, r: (v + r, None), 1.0, x)[0], [a]),
        (lambda x: x.astype("f4"), [a]),
        (lambda x: x.astype("f2"), [a]),
    ]
    keys = [key(graph_of(f, *given)) for f, given in functions]
    assert None not in keys
    assert len(set(keys)) == len(keys)

    def again(y):
        """Another name, another line, another parameter."""
        return y + 1.0

    assert key(graph_of(again, a)) == keys[0]
    graph = graph_of(functions[0][0], a)
    assert key(pg.parse(str(graph))) == keys[0]
    others = [
        key(graph, Options(alone=True)),
        key(graph, Options(given=(0,))),
        key(graph, Options(donated=((0, 0),))),
        key(graph, limits=Limits(1 << 12)),
        key(graph, compiler=compile_c.Compiler(("/usr/bin/cc", "-g"), "cc 1")),
        key(graph, compiler=compile_c.Compiler(("/usr/bin/cc",), "cc 2")),
    ]
    assert len({*others, keys[0]}) == len(others) + 1


def has_derivatives(graph):
    """Return whether a line of a graph, or of a body in it, is a derivative's."""
    return any(
        (e.source is not None and e.source.is_derived) or any(map(has_derivatives, e.bodies))
        for e in graph.body
    )


def test_keys_of_random_programs_differ_as_graphs_do():
    by_key = {}
    for seed in range(60):
        graph = lower(random_program(seed).graph)
        found = key(graph)
        if found is not None:
            assert by_key.setdefault(found, graph) == graph
            # Text says nothing of where a line came from, and C of derivatives has keys of its own.
            again = key(pg.parse(str(graph), graph.constants))
            assert (again == found) is not has_derivatives(graph)
    assert len(by_key) > 30
    assert len(by_key) == len(set(by_key.values()))


def test_what_is_kept_comes_back_as_it_was(folder):
    entries = 0
    for seed in range(100, 160):
        graph = lower(random_program(seed).graph)
        name, options = key(graph), Options(given=(0,))
        found = None if name is None else driver.generate_native(graph, options, default_limits())
        if found is None:
            continue
        entry = found.entry._replace(library="some.so")
        code_cache.remember(name, graph, entry, found.constants)
        recalled = code_cache.recall(name, graph)
        if recalled is None:
            assert any(a.nbytes > 1 << 16 for a in found.constants)
            continue
        entries += 1
        assert recalled[0] == entry
        for mine, theirs in zip(recalled[1], found.constants, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            assert mine.tobytes() == theirs.tobytes()
    assert entries > 30


def test_what_only_this_process_knows_has_no_key(monkeypatch):
    monkeypatch.setattr(registry, "_registry", registered())
    factors = [2.0, object()]

    def twice(x):
        return factors[0] * x

    own = elementwise.elementwise("known_twice", twice, jvp=lambda y, x, dx: dx + dx)
    graph = graph_of(lambda x: pg.extend.emit(own, x) + 1, X)
    assert key(graph) is None
    scan = graph_of(
        lambda x: pg.scan(lambda v, r: (v + pg.extend.emit(own, r), None), x, X)[0], X[0]
    )
    assert key(scan) is None
    del factors[1:]
    keys = {key(graph), key(scan)}
    factors[0] = 3.0
    keys |= {key(graph), key(scan)}
    assert None not in keys
    assert len(keys) == 4
    pg.extend.spell_c(own, "({0} * 3.0)")
    assert key(graph) not in keys
    monkeypatch.setitem(graph_keys.spelled, own, ("f({0})", '#include "own.h"', "float64"))
    assert key(graph) is None


def test_the_c_that_a_user_writes_is_a_part_of_the_key(monkeypatch):
    fft = graph_of(lambda x: pg.fft.fft(x), X)
    (eqn,) = (e for e in fft.body if "fft" in e.op.name)
    keys = {key(fft)}
    for text in ("f({0})", "g({0})"):
        monkeypatch.setitem(graph_keys.spelled, eqn.op, (text, "", "float64"))
        keys.add(key(fft))
    assert None not in keys
    assert len(keys) == 3


FUNCTIONS = [pg.linalg.inv, pg.linalg.expm, lambda x: pg.linalg.solve(x, x)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_key_of_linear_algebra_tells_whether_there_is_lapack(function, monkeypatch):
    graph = graph_of(function, X[:, :3])
    monkeypatch.setattr(graph_keys.lapack, "lapack", lambda: None)
    without = key(graph)
    monkeypatch.setattr(graph_keys.lapack, "lapack", lambda: "some")
    assert None not in (without, key(graph))
    assert key(graph) != without


def test_another_generator_is_another_key(tmp_path, monkeypatch):
    graph, before = graph_of(lambda x: x + 1, X), key(graph_of(lambda x: x + 1, X))
    rooms = {}
    for room in ("codegen", "ir", "primitives"):
        home = tmp_path / room
        (home / "inner").mkdir(parents=True)
        (home / "inner" / "one.py").write_text("a = 1\n")
        (home / "two.c").write_text("int a = 1;\n")
        rooms[room] = types.SimpleNamespace(__path__=[str(home)])
    monkeypatch.setattr(
        graph_keys, "__file__", str(tmp_path / "codegen" / "runtime" / "toolchain" / "one.py")
    )
    monkeypatch.setattr(graph_keys, "ir", rooms["ir"])
    monkeypatch.setattr(graph_keys, "primitives", rooms["primitives"])

    def writers():
        graph_keys.generator_files.cache_clear()
        return graph_keys.generator_files()

    try:
        seen = [writers()]
        assert writers() == seen[0]
        assert key(graph) != before
        for room in ("codegen", "ir", "primitives"):
            for name in ("inner/one.py", "two.c"):
                file = tmp_path / room / name
                status = file.stat()
                file.write_text(file.read_text().replace("1", "2"))
                # As large as before, and as old as it says.
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
                seen.append(writers())
        (tmp_path / "ir" / "three.py").write_text("")
        seen.append(writers())
        assert len(set(seen)) == len(seen)
        (tmp_path / "ir" / "__pycache__").mkdir()
        (tmp_path / "ir" / "__pycache__" / "three.py").write_text("")
        assert writers() == seen[-1]
        # What has changed since this process was started is not what it runs.
        monkeypatch.setattr(
            graph_keys, "LOADED", (tmp_path / "ir" / "three.py").stat().st_ctime - 1
        )
        graph_keys.generator_files.cache_clear()
        assert key(graph) is None
    finally:
        monkeypatch.undo()
        graph_keys.generator_files.cache_clear()
    assert key(graph) == before


# What is kept.

_PROGRAMS = """
import ast
import hashlib, sys
import numpy as np, primgraph as pg
x, w, t = np.linspace(-1.0, 1.0, 12).reshape(3, 4), np.ones((4, 4)), np.arange(4000.0) / 4000

def mixed(x):
    return pg.fft.fft(x).real + 1, pg.sin(pg.fft.fft(x * 2).real)

programs = [
    (lambda x, w: (pg.tanh(x @ w), x + np.arange(12.0).reshape(3, 4) ** 2), [x, w], {}, [x, w]),
    (lambda x: pg.sum(x * t), [t], {}, [t]),
    (lambda x: pg.scan(lambda v, r: (v * r + w[0], v), x, np.array([1.0, 3.0, 2.0])), [x[0]], {},
     [x[0]]),
    (mixed, [x], {}, [x]),
    (mixed, [pg.spec(("N", 4))], {}, [x]),
    (lambda x: (x[1:] * 2, pg.sum(x)), [pg.spec(("N", 4))], {}, [x]),
    (lambda x: (x + 1, x * 2), [x], {"donated": {0: 0}}, [x.copy()]),
]
results = []
for f, specs, options, given in programs:
    kernel = pg.compile(pg.trace(f, *specs), target="c", **options)
    found = kernel(*given)
    found = found if type(found) is tuple else (found,)
    running = kernel.generic if hasattr(kernel, "generic") else kernel
    bits = b"".join(a.tobytes() for a in found)
    results.append(f"{running.running_style(given)} {hashlib.sha256(bits).hexdigest()}")
"""
_TOLD = """
print(results)
late = ("targets.c.driver", "runtime.toolchain.run_compiler")
print([f"primgraph.codegen.{name}" in sys.modules for name in late])
"""


def test_another_process_writes_no_c(folder, capsys):
    def told():
        command = [sys.executable, "-W", "error", "-c", _PROGRAMS + _TOLD]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.stderr
        return list(map(ast.literal_eval, done.stdout.splitlines()))

    results, imported = told()
    assert imported == [True, True]
    assert len(results) == 7
    assert all(line.startswith("native ") for line in results)
    assert len([*folder.glob(f"*{cache.GRAPH}")]) >= 7
    assert main(["cache"]) == 0
    compiled = [f for f in folder.iterdir() if f.suffix in (".so", ".o")]
    assert f"files:   {len(compiled)}\n" in capsys.readouterr().out
    assert told() == [results, [False, False]]


def compiled():
    """A new kernel, its result, and whether C was written for it."""
    written = []
    plain = driver.generate_native
    driver.generate_native = lambda *args: (written.append(1), plain(*args))[1]
    try:
        kernel = pg.compile(pg.trace(lambda x: pg.cos(x) * 3.5 + X, X), target="c")
        found = kernel(X)
    finally:
        driver.generate_native = plain
    np.testing.assert_allclose(found, np.cos(X) * 3.5 + X, rtol=1e-15)
    return bool(written)


def test_what_is_damaged_or_may_be_anothers_is_written_again(folder):
    assert compiled()
    (entry,) = (f for f in folder.iterdir() if f.suffix == cache.GRAPH)
    whole = entry.read_bytes()
    assert not compiled()
    name, text = entry.name, whole[: -cache._TAIL]
    for content in (b"", whole[:-1], whole[: len(whole) // 2], whole.replace(b"cos", b"sin"),
                    b"[]\n" + cache._sum_of(name, b"[]\n"),
                    b"\xff\n" + cache._sum_of(name, b"\xff\n"),
                    # What is kept under one key is nothing under another one.
                    text + cache._sum_of("0" * 40 + cache.GRAPH, text)):  # fmt: skip
        entry.write_bytes(content)
        assert compiled()
        assert entry.read_bytes() == whole
        assert not compiled()
    for how in (0o666, 0o620):
        entry.chmod(how)
        assert compiled()
        assert entry.stat().st_mode & 0o777 != how
        assert not compiled()
    # It is none that another user's folder may stand for.
    folder.parent.chmod(0o777)
    try:
        assert compiled()
    finally:
        folder.parent.chmod(0o700)
    assert not compiled()
    with debug():
        assert compiled()
    (library,) = (f for f in folder.glob("*.so") if f.name in whole.decode())
    damaged = folder.parent / "damaged"
    damaged.write_bytes(library.read_bytes()[:-100])
    os.replace(damaged, library)
    assert not compiled()
    assert compile_c.load_cached(library.name) is not None
    # It is made of the text that is kept.
    cache.forget(library.name)
    assert compile_c.load_cached(library.name) is None
    assert not compiled()
    assert compile_c.load_cached(library.name) is not None


def test_entries_are_bounded_and_removed_with_libraries(folder, monkeypatch, capsys):
    assert compiled()
    (entry,) = (f for f in folder.iterdir() if f.suffix == cache.GRAPH)
    os.utime(entry, (1.0, 1.0))
    assert not compiled()
    assert entry.stat().st_mtime > 1.0
    os.utime(entry, (1.0, 1.0))
    sizes = sum(f.stat().st_size for f in folder.iterdir() if re.match(cache._KEPT, f.name))
    monkeypatch.setattr(cache, "LIMIT", sizes - 1)
    with open_private(folder) as opened:
        cache.evict_files(opened)
    assert not entry.exists()
    assert compiled()
    assert entry.exists()
    assert main(["cache", "clear"]) == 0
    assert "removed" in capsys.readouterr().out
    assert not list(folder.iterdir())
    assert compiled()


def test_large_constants_are_kept_once(folder):
    large = np.linspace(0.0, 1.0, 50_000)
    graph = pg.trace(lambda x: pg.sum(pg.sin(x) * large[::-1].copy()), large)
    first = pg.compile(graph, target="c")(large)
    (entry,) = (f for f in folder.iterdir() if f.suffix == cache.GRAPH)
    assert entry.stat().st_size < 50_000
    assert pg.compile(graph, target="c")(large) == first
