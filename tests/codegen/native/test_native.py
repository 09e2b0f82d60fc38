"""Native code: the same numbers as NumPy's, from C that this machine's compiler makes."""

import os
import pickle
import platform
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from program_checks import check_kernel, demand_equal
from random_programs import random_program

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.runtime.toolchain import cache, compile_c, run_compiler
from primgraph.codegen.targets.c.source import source
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)

rng = np.random.default_rng(5)


# Other workers fill the cache meanwhile.
UNFINISHED = shutil.ignore_patterns("making-*", "lock-*")


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


def kernels(function, *arrays):
    graph = pg.trace(function, *arrays)
    return pg.compile(graph, target="c"), pg.compile(graph, target="numpy")


def same(function, *arrays, rtol=1e-14):
    """The native kernel, which gives what NumPy's does and ran in C."""
    native, numpy = kernels(function, *arrays)
    found, expected = native.flat(*arrays), numpy.flat(*arrays)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    assert native.running_style(arrays) == "native"
    return native


# Every elementwise function, with what NumPy gives at edges.

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 700.0, -745.0, 710.0, 1e-310, -5e-324, 1e300, -1e300]
EDGES += [np.inf, -np.inf, np.nan, 3e5, 1e7, 2.0**60]
FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arcsinh": np.arcsinh,
    "arccosh": np.arccosh, "arctanh": np.arctanh, "sqrt": np.sqrt, "abs": np.abs,
    "floor": np.floor, "ceil": np.ceil, "sign": np.sign, "round": np.rint,
}  # fmt: skip


def test_functions_are_numpys_at_edges_and_between():
    between = np.concatenate([rng.normal(size=300) * s for s in (0.1, 1.0, 10.0, 300.0)])
    for dtype, ulps in ((np.float64, 4), (np.float32, 4)):
        with np.errstate(all="ignore"):
            x = np.concatenate([EDGES, between]).astype(dtype)
            found = pg.compile(
                pg.trace(lambda v: [getattr(pg, name)(v) for name in FUNCTIONS], x), target="c"
            )(x)
            expected = [f(x) for f in FUNCTIONS.values()]
        for name, a, b in zip(FUNCTIONS, found, expected, strict=True):
            np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=name)
            np.testing.assert_array_equal(np.isinf(a), np.isinf(b), err_msg=name)
            signs = ~np.isnan(b)
            np.testing.assert_array_equal(np.signbit(a[signs]), np.signbit(b[signs]), name)
            fine = np.isfinite(b)
            apart = np.abs(a[fine].astype("f8") - b[fine]) / np.spacing(np.abs(b[fine]))
            assert np.max(apart) <= ulps, (name, dtype, np.max(apart), x[fine][np.argmax(apart)])


def test_what_an_element_is_does_not_depend_on_where_it_stands():
    x = rng.normal(size=1000) * 3
    names = ["exp", "expm1", "log1p", "tanh", "sin", "cos", "sigmoid"]

    def f(v):
        return [getattr(pg, name)(v * v) for name in names]

    whole = pg.compile(pg.trace(f, x), target="c")(x)
    for start, stop in ((0, 1), (3, 10), (500, 763), (256, 512)):
        part = x[start:stop].copy()
        for a, b in zip(pg.compile(pg.trace(f, part), target="c")(part), whole, strict=True):
            assert a.tobytes() == b[start:stop].tobytes()


# Nests.


def test_views_joins_and_reductions_are_loops():
    def f(x, y):
        z = pg.concatenate([x[::-1, 1:], pg.transpose(y)[:, ::2]], axis=1)
        padded = pg.pad(z, ((1, 0), (0, 2))) * 2
        again = pg.reshape(padded, (padded.size,))[3:-4:3]
        spread = pg.exp(x - pg.max(x, axis=1, keepdims=True))
        return [
            z, again, spread / pg.sum(spread, axis=1, keepdims=True), pg.sum(x, axis=0),
            pg.min(x), pg.prod(pg.cos(y), axis=(0, 1)), pg.where(x > 0, x, -x * 3),
        ]  # fmt: skip

    same(f, rng.normal(size=(7, 5)), rng.normal(size=(8, 7)))
    same(f, rng.normal(size=(300, 5)), rng.normal(size=(8, 300)))


def test_complex_numbers_are_moved_from_where_one_of_their_parts_may_lie():
    rows = rng.normal(size=49).astype("f4")
    x = rows[1:].view("c8").reshape(4, 6)
    assert x.ctypes.data % 8 == 4
    kernel = same(lambda x: [x.T, x[::-1, ::2], pg.pad(x, 1), pg.concatenate([x, x])], x)
    # What is read as a type is taken to lie where that type may.
    assert "uint64_t" not in source(nests(schedule(kernel.graph)), "kernel").text


def test_products_along_an_axis_are_made_in_order():
    # Parts of this one overflow, and others vanish.
    x = np.tile([1e100, 1e-100], 700)
    same(lambda x: [pg.prod(x), pg.prod(x * 1.0), pg.prod(pg.reshape(x, (2, 700)), axis=1)], x)
    y = np.concatenate([np.full(250, 1e-1), np.full(270, 1e2), np.full(250, 1e-1)])
    same(lambda y: [pg.prod(y), pg.prod(pg.reshape(pg.tile(y, 2), (2, 770)), axis=0)], y)


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "u4", "f4", "b1"])
def test_all_dtypes_wrap_and_compare_as_numpys(dtype):
    x = np.array([0, 1, 2, 127, 100, 3]).astype(dtype)
    y = np.array([1, 1, 127, 127, 3, 0]).astype(dtype)

    def f(a, b):
        if dtype == "b1":
            return [a & b, a | b, a ^ b, ~a, a == b]
        return [a * b, a + b, a - b, pg.maximum(a, b), a < b, a != b, pg.sum(a), pg.max(b), -a]

    same(f, x, y)


def test_products_of_all_shapes_and_layouts():
    for m, k, n in ((1, 5, 1), (3, 1, 2), (4, 7, 17), (33, 20, 5), (5, 600, 9), (64, 64, 64)):
        a, b = rng.normal(size=(m, k)), rng.normal(size=(n, k))
        same(lambda a, b: [a @ b.T, b @ a.T, a @ a.T, a[0] @ b[0], a @ b[0]], a, b, rtol=1e-12)
    same(lambda a, b: a @ b, rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5, 2)))


def test_derivatives_of_a_network():
    def f(x, w, v):
        loss = pg.mean(pg.logsumexp(pg.tanh(x @ w) @ v, axis=1))
        return [loss, *pg.grad(loss, [w, v])]

    same(f, rng.normal(size=(40, 3)), rng.normal(size=(3, 20)), rng.normal(size=(20, 4)))


# Loops and branches.


def test_loops_and_branches_are_c():
    def f(x, p):
        def trip(c, row):
            c = pg.cond(pg.sum(c) > p[0], lambda c: c * 0.5, lambda c: c + row, c)
            return c, pg.sin(c)

        last, ys = pg.scan(trip, pg.zeros(3), x)
        back = pg.scan(lambda c, r: (c * p[1] + r, c), last, x, reverse=True)[1]
        inner = pg.while_loop(lambda c: pg.sum(c) < 50.0, lambda c: c * 1.5 + 1, last, max_trips=9)
        kept = pg.checkpoint(lambda v: pg.tanh(v) * p[0])(last)
        return [last, ys, back, inner, kept]

    x, p = rng.normal(size=(11, 3)), np.array([1.0, 0.3])
    same(f, x, p)
    same(lambda x, p: pg.grad(sum(pg.sum(pg.cos(r)) for r in f(x, p)), [x, p]), x, p)
    same(lambda x, p: pg.scan(lambda c, r: (c + r, c), p, x)[0], rng.normal(size=(0, 2)), p)


def test_a_loop_without_a_bound_whose_slope_keeps_no_stacks_is_numpys():
    def f(a, b):
        last = pg.while_loop(lambda c: pg.sum(c) < 50.0, lambda c: c + b, a)
        return pg.grad(pg.sum(last * last), [a, b])

    native, numpy = kernels(f, np.ones(3), np.full(3, 2.0))
    for a, b in zip(native(np.ones(3), np.ones(3)), numpy(np.ones(3), np.ones(3)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_loop_in_a_loop():
    def f(w, x):
        def outer(h, row):
            inner = pg.scan(lambda c, e: (pg.tanh(c * w + e), None), h, row)[0]
            return inner, pg.sum(inner)

        return pg.grad(pg.sum(pg.scan(outer, pg.zeros(2), x)[1]), w)

    same(f, np.array([0.3, -0.7]), rng.normal(size=(4, 5, 2)))


# What this back end has no words for is done by NumPy, a step each.


def test_other_steps_are_numpys():
    a = rng.normal(size=(6, 6)) + 6 * np.eye(6)

    def f(a, i):
        solved = pg.linalg.solve(a, pg.exp(a[:, 0]))
        order = pg.sort(solved * 2)
        return [solved, order + 1, a[i] * 2, pg.cumsum(pg.sin(a), axis=1), pg.fft.fft(order)]

    same(f, a, np.array([3, 0, 3]), rtol=1e-12)


def test_errors_of_steps_of_numpys_have_the_users_line():
    kernel, _ = kernels(lambda a: pg.linalg.inv(a * 2) + 1, np.eye(3))
    with pytest.raises(pg.RunError, match="Singular") as caught:
        kernel(np.zeros((3, 3)))
    assert "pg.linalg.inv(a * 2)" in str(caught.value)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    program = random_program(seed)
    draw = np.random.default_rng(seed)
    graph = clean_up(lower(program.graph))
    check_kernel(graph, "native", program.feeds, program.others, draw)


# What kernels promise.


def test_feeds_of_other_layouts_and_dtypes_are_converted():
    kernel, plain = kernels(lambda x: pg.sum(x * 2, axis=0), np.zeros((4, 3)))
    x = rng.normal(size=(3, 4)).T
    np.testing.assert_allclose(kernel(x), plain(x), rtol=1e-14)
    with pytest.raises(pg.FeedError, match="the shapes differ"):
        kernel(np.zeros(3))


def test_results_are_the_callers_and_given_ones_are_written():
    x = rng.normal(size=50)
    kernel, _ = kernels(lambda x: [pg.sin(x), x, x], x)
    first = kernel(x)
    second = kernel(x + 1)
    np.testing.assert_allclose(first[0], np.sin(x))
    arrays = [x, *first, *second]
    shared = [np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i]]
    assert not any(shared)
    given = [np.empty(50), None, np.empty(50)]
    found = kernel(x, out=given)
    assert found[0] is given[0]
    assert found[2] is given[2]
    np.testing.assert_array_equal(found[0], first[0])


def test_a_donated_input_is_overwritten_at_last():
    graph = pg.trace(lambda x, y: [x[::-1] + y, pg.sum(x)], np.zeros(4), np.zeros(4))
    kernel = pg.compile(graph, target="c", donated={0: 0})
    x = np.arange(4.0)
    found = kernel(x, np.ones(4))
    assert found[0] is x
    np.testing.assert_array_equal(x, [4.0, 3.0, 2.0, 1.0])
    assert found[1] == 6.0


def test_states_are_trained_as_by_numpy():
    def trained(target):
        with pg.Program() as program:
            x, y = pg.data("x", (16, 3)), pg.data("y", (16,))
            w = pg.create_parameter((3,), name="w")
            loss = pg.mean((pg.tanh(x @ w) - y) ** 2)
            pg.optimizer.Adam(0.1).minimize(loss)
        executor = pg.Executor(target=target)
        draw = np.random.default_rng(0)
        feed = {"x": draw.normal(size=(16, 3)), "y": draw.normal(size=16)}
        losses = [float(executor.run(program, feed, [loss])[0]) for _ in range(20)]
        return losses, executor.run(program, feed, [w], update=False)[0]

    (a, u), (b, v) = trained("c"), trained("numpy")
    np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(u, v, rtol=1e-12)


def test_kernels_are_pickled_and_run_in_threads():
    x = rng.normal(size=(200, 50))
    kernel, plain = kernels(lambda x: pg.sum(pg.tanh(x) @ pg.transpose(x), axis=0), x)
    again = pickle.loads(pickle.dumps(kernel))
    assert again.style == "native"
    expected = kernel(x)
    np.testing.assert_allclose(expected, plain(x), rtol=1e-12)
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.extend(again(x).tobytes() for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {expected.tobytes()}
    assert len(found) == 80


def test_jit_takes_a_target():
    f = pg.jit(lambda x: pg.sum(pg.sin(x)), target="c")
    x = rng.normal(size=10)
    np.testing.assert_allclose(f(x), np.sum(np.sin(x)), rtol=1e-14)


def test_a_graph_with_sizes_compiles_for_those_that_come_again():
    graph = pg.trace(lambda x: pg.sum(pg.exp(x), axis=0), pg.spec(("N", 3)))
    kernel = pg.compile(graph, target="c", new_sizes="compile")
    for n in (4, 7, 4):
        x = rng.normal(size=(n, 3))
        np.testing.assert_allclose(kernel(x), np.exp(x).sum(axis=0), rtol=1e-14)


# Compilers and the cache.


def test_there_is_no_such_target():
    graph = pg.trace(pg.sin, np.zeros(2))
    with pytest.raises(pg.CompileError, match="there is no target 'rust'"):
        pg.compile(graph, target="rust")
    with pytest.raises(pg.CompileError, match="readable code is NumPy's"):
        pg.compile(graph, target="c", style="readable")


_RUN = """
import warnings
import numpy as np
import primgraph as pg
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        found = pg.compile(pg.trace(lambda x: pg.sin(x) * 2, np.ones(3)), target="c")(np.ones(3))
assert np.allclose(found, 2 * np.sin(1))
print([str(w.message) for w in told])
"""


def run_with(**changes: str):
    env = {**os.environ, **changes}
    return subprocess.run(
        [sys.executable, "-c", _RUN], capture_output=True, text=True, env=env, timeout=120
    )


def test_without_a_compiler_numpy_runs_and_says_so_once():
    done = run_with(CC="no-such-compiler")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("no C compiler (no-such-compiler)") == 1


def test_a_compiler_that_tells_no_version_does_not_work():
    done = run_with(CC="/bin/false")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the C compiler /bin/false does not work") == 1


def test_the_warning_of_a_missing_compiler_has_the_users_line(tmp_path):
    script = tmp_path / "model.py"
    script.write_text(
        "import numpy as np\nimport primgraph as pg\n"
        "f = pg.jit(lambda x: x * 2, target='c')\nf(np.ones(2))\n"
    )
    env = {**os.environ, "CC": "no-such-compiler"}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=env, timeout=120
    )
    assert f"{script}:4: RuntimeWarning: no C compiler" in done.stderr


def test_a_compiler_that_fails_says_why(tmp_path):
    broken = tmp_path / "cc"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo broken 1; exit 0; }\necho no luck >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    done = run_with(CC=str(broken), PRIMGRAPH_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "CompileError" in done.stderr
    assert "no luck" in done.stderr


def test_a_compiler_may_have_options_and_has_to_leave_a_file(tmp_path, own_cache):
    folder = tmp_path / "cache"
    shutil.copytree(own_cache, folder, ignore=UNFINISHED)
    names = [n for n in ("cc", "gcc", "clang") if shutil.which(n)]
    done = run_with(CC=f"{names[0]} -DNOTHING", PRIMGRAPH_CACHE=str(folder))
    assert done.returncode == 0, done.stderr
    assert "no C compiler" not in done.stdout
    idle = tmp_path / "cc"
    idle.write_text("#!/bin/sh\nexit 0\n")
    idle.chmod(0o755)
    done = run_with(CC=str(idle), PRIMGRAPH_CACHE=str(folder))
    assert "CompileError" in done.stderr


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="these are options for such processors"
)
@pytest.mark.parametrize(
    ("options", "macro"), [("-march=x86-64", "__AVX__"), ("-mno-avx512f", "__AVX512F__")]
)
def test_options_of_the_compiler_choose_the_processor(options, macro, monkeypatch):
    path, *_ = compile_c.compiler().command
    given = compile_c.Compiler((path, options), compile_c.compiler().version)
    monkeypatch.setattr(compile_c, "compiler", lambda: given)
    graph = pg.trace(lambda x: pg.sin(x) * 2, np.ones(3))
    text = source(nests(schedule(clean_up(lower(graph)))), "kernel").text
    refused = f"#ifdef {macro}\n#error it has that\n#endif\n"
    assert compile_c.library(refused + text).content
    with pytest.raises(pg.CompileError, match="it has that"):
        compile_c.library(refused.replace("ifdef", "ifndef") + text)


def test_a_damaged_file_is_made_again(tmp_path, own_cache):
    folder = tmp_path / "cache"
    shutil.copytree(own_cache, folder, ignore=UNFINISHED)
    before = {*folder.iterdir()}
    assert run_with(PRIMGRAPH_CACHE=str(folder)).returncode == 0
    files = [f for f in folder.iterdir() if f.suffix == ".so" and f not in before]
    assert files
    for file in files:
        file.write_bytes(b"not what it was")
    assert run_with(PRIMGRAPH_CACHE=str(folder)).returncode == 0
    assert all(f.read_bytes() != b"not what it was" for f in files)


def test_zero_switches_the_cache_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_with(PRIMGRAPH_CACHE="0")
    assert done.returncode == 0, done.stderr
    assert not [*tmp_path.iterdir()]
    monkeypatch.setenv("PRIMGRAPH_CACHE", "0")
    found = cache.contents()
    assert (found.files, found.size) == (0, 0)
    assert "switches the cache off" in found.fault


def test_what_is_kept_may_be_removed_meanwhile(tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(folder))
    for function in (pg.sin, pg.tanh):
        kernel, _ = kernels(lambda x, function=function: pg.sum(function(x) * 2.0), np.ones(2))
        assert kernel(np.zeros(2)) == 0.0
        shutil.rmtree(folder)


def test_a_used_file_is_marked_as_recently_used(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(tmp_path))
    text = "int number(void) { return 7; }"
    made = compile_c.library(text)
    file = tmp_path / made.name
    os.utime(file, (1.0, 1.0))
    assert compile_c.library(text) == made
    assert file.stat().st_mtime > 1.0


def test_a_cache_that_cannot_be_used_is_left_alone(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert run_with(PRIMGRAPH_CACHE=str(open_to_all)).returncode == 0
    assert not list(open_to_all.iterdir())


def test_a_file_in_the_way_of_the_cache_does_no_harm(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(in_the_way / "cache"))
    with cache.usable_folder() as folder:
        assert Path(folder.path).is_dir()
        assert in_the_way not in Path(folder.path).parents


def test_what_was_compiled_once_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIMGRAPH_CACHE", str(tmp_path))
    graph = pg.trace(lambda x: pg.cos(x) * 3, np.ones(3))
    first = compile_graph(clean_up(lower(graph)), style="native")(np.ones(3))
    before = {f: f.stat().st_ino for f in Path(tmp_path).iterdir()}
    monkeypatch.setattr(
        run_compiler.subprocess, "Popen", lambda *a, **k: pytest.fail("compiles again")
    )
    second = compile_graph(clean_up(lower(graph)), style="native")(np.ones(3))
    assert first[0].tobytes() == second[0].tobytes()
    assert {f: f.stat().st_ino for f in Path(tmp_path).iterdir()} == before


def test_many_equations_compile():
    def f(x):
        y = x
        for k in range(1200):
            y = y * 1.0001 + (k % 7) * 0.01
        return y

    graph = clean_up(lower(pg.trace(f, np.ones(4))))
    found = compile_graph(graph, style="native")(np.ones(4))
    demand_equal("1,200 equations", graph, [np.ones(4)], interpret(graph, np.ones(4)), found)


def test_parts_of_one_array_may_be_computed_at_several_places_of_a_loop():
    def f(x, y):
        return pg.concatenate([x * 2, pg.tanh(pg.exp(y) * x), pg.sin(y)], axis=1) * 3

    same(f, rng.normal(size=(4, 5)), rng.normal(size=(4, 5)))


def test_parts_laid_on_one_array_share_its_memory():
    def f(x, y):
        z = pg.zeros(11)
        z = pg.set_slice(z, slice(0, 10, 2), x)
        z = pg.set_slice(z, slice(1, 11, 2), y)
        whole = pg.set_slice(z, slice(10, 11), pg.sum(x, keepdims=True))
        # Parts that overlap are laid in their order, and what is read again is kept.
        twice = pg.set_slice(pg.set_slice(whole * 2, slice(2, 7), y), slice(4, 9), x)
        kept = pg.set_slice(twice, slice(0, 1), x[:1])
        return [whole, twice, kept, pg.set_slice(x, slice(1, 3), y[:2]), x + twice[:5]]

    x, y = rng.normal(size=5), rng.normal(size=5)
    kernel = same(f, x, y)
    text = source(nests(schedule(kernel.graph)), "kernel").text
    # Nothing of what is laid over as a whole is filled before.
    assert " = 0.0;" not in text
