"""Files of C for all sizes, which are the first arguments of their functions."""

import ctypes
import re
import subprocess
from collections import Counter

import numpy as np
import pytest
from exported import (
    STRICT,
    calling,
    check,
    compiled,
    compiler,
    drawn_of_sizes,
    loaded,
    named,
    sanitized,
    written,
)
from sized_functions import arrays_for, built

import primgraph as pg
from primgraph.codegen.targets.export import function
from primgraph.codegen.targets.export.file import c_source, function_of
from primgraph.codegen.targets.export.places import Workspace
from primgraph.codegen.targets.export.sizes import code, macro, most
from primgraph.ir.interpret import interpret
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.types import TensorType
from primgraph.transforms import clean_up, lower

needs_compiler = pytest.mark.skipif(not compiler(), reason="there is no C compiler")

rng = np.random.default_rng(12)
N, M = pg.dim("N"), pg.dim("M")


def graph_of(function, *specs):
    """What is saved of a function, under its name."""
    return pg.compile(pg.trace(function, *specs)).generic.graph


# Programs.

NAMES = (
    "matmul of both", "var and std", "max", "half", "roll", "concatenate", "repeat by the size",
    "diagonal", "arange from to", "take", "scatter_add", "argmax",
)  # fmt: skip


@needs_compiler
def test_functions_and_their_derivatives_at_several_sizes(tmp_path):
    programs = []
    for k, name in enumerate(NAMES):
        graph, inputs = built(name, N)
        graph = named(clean_up(lower(graph)), f"sized_{k}")
        for n in (0, 1, 2, 5, 17):
            arrays = arrays_for(inputs, n)
            try:
                specialize_graph(graph, {"N": n})
                interpret(graph, *arrays)
            except (pg.ShapeError, pg.FeedError, IndexError):
                continue
            programs.append((graph, arrays))
    assert len(programs) > 4 * len(NAMES) - 8
    check(programs, tmp_path, ["-O0", *sanitized()])


@needs_compiler
def test_random_programs_of_sizes_are_sound(tmp_path):
    left = Counter()
    with np.errstate(all="ignore"):
        programs = [each for seed in range(7) for each in drawn_of_sizes(seed, left)]
        assert len(programs) > 25
        check(programs, tmp_path, ["-O0", *sanitized()])


def loops(rows, p, steps):
    def trip(c, row):
        c = pg.cond(pg.sum(c) > p, lambda c: c * 0.5, lambda c: c + row, c)
        return c, pg.sin(c)

    last, ys = pg.scan(trip, pg.zeros(rows.shape[1]), rows)
    back = pg.scan(lambda c, r: (c * p + r, c), last, rows, reverse=True)[1]
    inner = pg.while_loop(
        lambda s: s[1] < steps, lambda s: (s[0] * 1.5 + rows, s[1] + 1), (rows, 0), max_trips=4
    )
    ends = pg.sum(pg.cos(last)) + pg.sum(ys * back) + pg.sum(inner[0])
    return last, ys, back, inner[0], *pg.grad(ends, [rows, p])


def large(x, w, i, flags):
    """Memory of several types that stack does not hold."""
    table = pg.tanh(w @ pg.transpose(x)) * 2
    counts = pg.cumsum(pg.astype(flags, "int32"))
    order = pg.argsort(pg.sum(table, axis=0))
    best = pg.sort(x, axis=0)[:, 0] * pg.astype(counts, "float64")
    return (
        pg.sum(table[i], 0) + best,
        counts,
        order,
        pg.astype(best, "float32") * 3,
        flags & (x[:, 0] > 0),
    )


SPECS = {
    loops: [pg.spec(("N", "M")), pg.spec(()), pg.spec((), "int64")],
    large: [
        pg.spec(("N", 3)), pg.spec((300, 3)), pg.spec(("K",), "int64"), pg.spec(("N",), "bool"),
    ],
}  # fmt: skip


def feeds_of(function, n, m):
    if function is loops:
        return [rng.normal(size=(n, m)), np.float64(0.3), np.int64(m % 4)]
    x, w = rng.normal(size=(n, 3)), rng.normal(size=(300, 3))
    return [x, w, rng.integers(-300, 300, m), rng.normal(size=n) > 0]


@pytest.fixture(scope="module")
def graphs():
    return {f: graph_of(f, *specs) for f, specs in SPECS.items()}


@pytest.fixture(scope="module")
def library(graphs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sized")
    written(folder, list(graphs.values()), "functions")
    return loaded(folder, "functions", ["-O1", "-g"])


@needs_compiler
def test_one_function_is_for_all_sizes(graphs, library):
    for f, graph in graphs.items():
        run = calling(library, graph)
        for n, m in ((1, 1), (4, 3), (600, 2), (3, 700), (0, 3), (5, 0)):
            feeds = feeds_of(f, n, m)
            expected = interpret(graph, *feeds)
            found = run(*feeds)
            assert run.status == 0
            for a, b in zip(found, expected, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_allclose(a, b, 1e-9, 1e-9, err_msg=f"{graph.name} {n} {m}")


@needs_compiler
def test_what_does_not_fit_is_refused(graphs, library):
    run = calling(library, graphs[loops])
    feeds = feeds_of(loops, 2, 2)
    long = 2 ** (8 * ctypes.sizeof(ctypes.c_long) - 1)
    for sizes in (
        (-1, 2),
        (2, -1),
        (-3, -3),
        (long - 1, 2),
        (2, long // 4),
        (long // 64, long // 64),
    ):
        given = [ctypes.c_long(n) for n in sizes]
        assert library.loops_workspace(*given) == -1
        kept = np.ones(4)
        pointers = [kept.ctypes.data_as(ctypes.c_void_p)] * 12
        # Nothing is read or written.
        assert (
            library.loops(*given, pointers[0], ctypes.c_double(1), ctypes.c_int64(1), *pointers)
            == -1
        )
    assert run(*feeds) is not None
    run = calling(library, graphs[large])
    x, w, i, flags = feeds_of(large, 3, 4)
    run(x, w, i, flags)
    assert run.status == 0
    run(x, w, i + 600, flags)
    assert run.status == 1


@needs_compiler
def test_what_is_assumed_is_looked_at(tmp_path):
    def paired(x, y):
        return pg.sum(pg.reshape(x, (-1, 2)), 0) * y[2:3, 0], pg.max(y, axis=0)

    graph = graph_of(paired, pg.spec(("N",)), pg.spec(("N-1", "2*M+1")))
    source = written(tmp_path, [graph], "paired")
    header = (tmp_path / "paired.h").read_text()
    assert "shape (N,)" in header
    assert "shape (N - 1, 2 * M + 1)" in header
    assert "They are refused unless N % 2 == 0." in header
    assert "/* N % 2 == 0, assumed by test_export_sizes.py:" in source
    library = loaded(tmp_path, "paired")
    run, fits = calling(library, graph), library.paired
    x, y = rng.normal(size=4), rng.normal(size=(3, 5))
    for a, b in zip(run(x, y), interpret(graph, x, y), strict=True):
        np.testing.assert_allclose(a, b, 1e-13)
    array = np.zeros(99).ctypes.data_as(ctypes.c_void_p)
    for n, m, status in ((4, 2, 0), (5, 2, -1), (2, 2, -1), (0, 0, -1), (4, 0, 0)):
        # Sizes come in the order in which inputs have them.
        given = ctypes.c_long(n), ctypes.c_long(m)
        found = fits(*given, *[array] * (len(function_of(graph).parameters) - 2), array)
        assert found == status, (n, m)


# Memory.


def test_workspace_is_told_by_a_constant(tmp_path):
    graph = graph_of(lambda x: pg.cumsum(pg.exp(x)[::-1]) @ pg.sort(x), pg.spec(("N",)))
    graph = named(graph, "lengths")
    header, source = c_source([graph], "lengths")
    assert "#define LENGTHS_WORKSPACE_BYTES(N) (" in header
    assert "long lengths_workspace(long N);" in header
    assert "alloc" not in source
    if not compiler():
        return
    written(tmp_path, [graph], "lengths")
    use = """#include "lengths.h"
#include <stddef.h>
static double work[LENGTHS_WORKSPACE_BYTES(10) / sizeof(double) + 1];
static const double x[10] = {3, 1, 2};
int main(void) {
    double result;
    if (lengths_workspace(10) != LENGTHS_WORKSPACE_BYTES(10)) return 1;
    if (lengths_workspace(-1) != -1) return 1;
    return lengths(10, x, &result, work) || lengths(-1, NULL, NULL, NULL) != -1;
}
"""
    (tmp_path / "use.c").write_text(use)
    files = [tmp_path / "use.c", tmp_path / "lengths.c"]
    compiled([*STRICT, *sanitized(), "-o", tmp_path / "use", *files, "-lm"])
    subprocess.run([tmp_path / "use"], check=True)


def test_memory_is_used_again_where_it_is_never_too_small():
    def array(n):
        return TensorType((n,), np.dtype("f8"))

    work = Workspace(True)
    first, second = work.take(array(N + 1)), work.take(array(3 * N))
    assert (first.first, second.first) == (0, N + 1)
    work.give(first)
    # N elements go where N + 1 were, and 2 * N do not.
    assert work.take(array(2 * N)).first == 4 * N + 1
    assert work.take(array(N)).first == 0
    work.take(array(500))
    assert work.members == [("double", "f64", 6 * N + 1), ("double", "known_f64", 504)]
    assert work.offsets() == {"f64": 0, "known_f64": 48 * N + 8}
    assert work.nbytes == 48 * N + 8 + 504 * 8


# What is written.


@needs_compiler
def test_extents_are_expressions(tmp_path):
    cases = {
        "N": N, "3 * N": 3 * N, "N - 1": N - 1, "N * N + 2 * M": N * N + 2 * M, "N / 2": N // 2,
        "N % 3": N % 3, "pg_floor(N - 1, M + 1)": (N - 1) // (M + 1), "pg_most(M, N)": N.max(M),
        "2 - N": 2 - N, "3 * (N / 2) + 1": N // 2 * 3 + 1, "pg_least(3, N)": N.min(3),
    }  # fmt: skip
    values = []
    for text, extent in cases.items():
        assert code(extent) == text
        for n, m in ((0, 0), (1, 2), (5, 3), (64, 7)):
            value = extent.at({"N": n, "M": m})
            words = {"pg_times": int.__mul__, "pg_plus": int.__add__, "N": n, "M": m}
            assert eval(most([extent]), words) >= abs(value)
            told = macro(extent).replace("(N)", str(n)).replace("(M)", str(m))
            values.append(f'_Static_assert({told} == {value}, "{text} at {n}, {m}");')
    (tmp_path / "values.c").write_text("\n".join([*values, "int values;", ""]))
    compiled([*STRICT, "-fsyntax-only", tmp_path / "values.c"])


def test_a_file_reads_as_a_person_would_write_it():
    def damped(position, velocity, dt):
        force = -4.0 * position - 0.5 * velocity
        faster = velocity + dt * force
        return position + dt * faster, faster

    graph = graph_of(damped, pg.spec(("bodies", 3)), pg.spec(("bodies", 3)), pg.spec(()))
    header, source = c_source([graph], "damped")
    found = re.sub(r"test_export_sizes.py:\d+", "FILE", source)
    assert found[found.index("int damped") :] == GOLDEN
    begin, end = header.index("/* Compute"), header.index("\n#ifdef __cplusplus\n}")
    assert header[begin:end] == GOLDEN_HEADER


GOLDEN = """int damped(
    long bodies, const double *restrict position, const double *restrict velocity, double dt,
    double *restrict result0, double *restrict faster) {
    if (!pg_fits_damped(bodies)) {
        return -1;
    }
    /* FILE  force = -4.0 * position - 0.5 * velocity */
    for (long i = 0; i < 3 * bodies; i++) {
        const double force = -4.0 * position[i] - 0.5 * velocity[i];
        /* FILE  faster = velocity + dt * force */
        const double faster_i = velocity[i] + dt * force;
        faster[i] = faster_i;
        /* FILE  return position + dt * faster, faster */
        result0[i] = position[i] + dt * faster_i;
    }
    return 0;
}
"""
GOLDEN_HEADER = """/* Compute result0 and faster.
 *
 * position, velocity: float64, shape (bodies, 3)
 * dt: float64, shape ()
 * Writes result0, faster: float64, shape (bodies, 3)
 *
 * Returns 0; -1 for sizes that are refused.
 * Sizes are refused if one is below 0, or no memory is large enough for them. */
int damped(
    long bodies, const double *position, const double *velocity, double dt, double *result0,
    double *faster);
"""


def test_sizes_make_way_for_other_names(tmp_path):
    def turned(q, k, i, x0):
        # Loops, functions on whole arrays and inputs have such names.
        return pg.cumsum(q, axis=0) * k + i, pg.sum(x0 * q[0])

    specs = pg.spec(("k", "i")), pg.spec(()), pg.spec(()), pg.spec(("i",))
    first = graph_of(turned, *specs)
    second = named(graph_of(lambda x0: pg.sort(x0) + 1, pg.spec(("turned",))), "q")
    header, _ = c_source([first, second], "turned")
    assert "long k, long i, const double *q_2, double k_2, double i_2, const double *x0," in header
    # A size is not called as a function of the file.
    assert "int q(long turned_2, const double *x0," in header
    if compiler():
        written(tmp_path, [first, second], "turned")
        library = loaded(tmp_path, "turned")
        feeds = rng.normal(size=(4, 3)), np.float64(2), np.float64(3), rng.normal(size=3)
        for graph, arrays in ((first, feeds), (second, feeds[3:])):
            for a, b in zip(
                calling(library, graph)(*arrays), interpret(graph, *arrays), strict=True
            ):
                np.testing.assert_allclose(a, b, 1e-13)


def test_single_precision_and_several_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(function, "CHUNK", 8)

    def chained(x, y):
        z = x
        for k in range(12):
            z = pg.tanh(pg.cumsum(z * 1.0625)) + (y if k % 5 else x)
        return z, pg.sum(z), pg.outer(z, z)

    graph = graph_of(chained, *[pg.spec(("N",), "float32")] * 2)
    header, source = c_source([graph], "chained")
    assert source.count("static void chained_part") > 2
    assert not re.search(r"\bdouble\b|f64", header + source)
    assert max(map(len, source.splitlines())) <= 120
    if compiler():
        written(tmp_path, [graph], "chained")
        run = calling(loaded(tmp_path, "chained", ["-O0"]), graph)
        for n in (1, 3, 300):
            feeds = [rng.normal(size=n).astype("f4") for _ in range(2)]
            for a, b in zip(run(*feeds), interpret(graph, *feeds), strict=True):
                np.testing.assert_allclose(a, b, 1e-4, 1e-4)


def test_kernels_save_themselves_for_all_sizes(tmp_path):
    def doubled(x):
        return x * 2

    graph = pg.trace(doubled, pg.spec(("N", 3)))
    texts = []
    for kernel in (
        pg.compile(graph),
        pg.compile(graph, target="c"),
        pg.compile(graph, style="readable"),
    ):
        kernel.save(tmp_path / "model.c")
        texts.append((tmp_path / "model.c").read_text() + (tmp_path / "model.h").read_text())
    assert texts[0] == texts[1] == texts[2]
    assert "int doubled(long N, const double *x, double *result)" in texts[0]
    # Sizes that are given are numbers.
    pg.compile(graph).at(N=4).save(tmp_path / "model.c")
    assert "void doubled(const double x[4 * 3]" in (tmp_path / "model.h").read_text()
