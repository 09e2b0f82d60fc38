"""Kernels saved as C: files that compile without a warning and give what NumPy's kernels do."""

import ctypes
import re
import shutil
import subprocess
from collections import Counter

import numpy as np
import pytest
from exported import (
    STRICT,
    calling,
    check,
    compiler,
    doubled,
    drawn,
    loaded,
    sanitized,
    spelled,
    written,
)
from test_primitives import CASES

import primgraph as pg
from primgraph.codegen.lower.nests.routines import FITS, ROUTINES
from primgraph.codegen.ops.c.spellings import CODES, FUNCTIONS, SPELLINGS
from primgraph.codegen.targets.c import parts
from primgraph.codegen.targets.export import function
from primgraph.codegen.targets.export.file import c_source
from primgraph.codegen.targets.export.identifiers import LIBRARY, remark, wrap_statement
from primgraph.ir.facts import ops as registry
from primgraph.scipy.sparse.linalg import spsolve_triangular

needs_compiler = pytest.mark.skipif(not compiler(), reason="there is no C compiler")

rng = np.random.default_rng(11)


def attention(q, k, v):
    s = pg.softmax((q @ k.T) / 4.0, axis=-1)
    out = pg.sum((s @ v) * v)
    return out, pg.grad(out, [q, k, v])


def loops(rows, p):
    def trip(c, row):
        c = pg.cond(pg.sum(c) > p[0], lambda c: c * 0.5, lambda c: c + row, c)
        return c, pg.sin(c)

    last, ys = pg.scan(trip, 0 * rows[0], rows)
    back = pg.scan(lambda c, r: (c * p[1] + r, c), last, rows, reverse=True)[1]
    inner = pg.while_loop(lambda c: pg.sum(c) < 50.0, lambda c: c * 1.5 + 1, last, max_trips=9)
    kept = pg.checkpoint(lambda v: pg.tanh(v) * p[0])(last)
    chosen = pg.switch(pg.sum(last > 0), [lambda c: c, lambda c: c * 2, lambda c: -c], last)
    return last, ys, back, inner, kept, chosen


def slopes_of_loops(rows, p):
    return pg.grad(sum(pg.sum(pg.cos(r)) for r in loops(rows, p)), [rows, p])


def views(x, y):
    z = pg.concatenate([x[::-1, 1:], pg.transpose(y)[:, ::2]], axis=1)
    padded = pg.pad(z, ((1, 0), (0, 2))) * 2
    again = pg.reshape(padded, (padded.size,))[3:-4:3]
    spread = pg.exp(x - pg.max(x, axis=1, keepdims=True))
    shares = spread / pg.sum(spread, axis=1, keepdims=True)
    return z, again, shares, pg.sum(x, axis=0), pg.min(x), pg.prod(pg.cos(y), axis=(0, 1))


def whole_numbers(a, b, small, flag):
    wrapped = [a * b, a + b, a - b, -a, pg.sum(a), pg.prod(b), pg.max(a), pg.min(a), pg.abs(a)]
    small = [small * small, small + small, pg.maximum(small, 0), pg.sum(small), pg.sign(small)]
    truth = [flag & (a > b), ~flag, pg.where(flag, a, b), pg.astype(flag, "f4"), pg.any(flag)]
    return wrapped, small, truth, a // b, a % b


def places(x, i):
    wide = pg.sum(x[i] ** 2)
    return x[i], pg.grad(wide, x), pg.sort(x, axis=0), pg.argmax(x, axis=1), pg.cumsum(x, axis=1)


TABLE = rng.normal(size=(3, 4))
TABLE[0, :3] = -0.0, np.inf, 5e-324


def constants(x):
    return x + TABLE, TABLE, np.arange(5), np.array([True, False]), pg.full(3, np.nan)


def several(x, n, empty):
    rest = pg.sum(empty, axis=0), empty * 2, pg.sum(empty), empty @ empty.T
    return x, x, x * n, {"half": n / 2, "both": (n, n + 1)}, rest


def long_sums(x):
    return pg.sum(x), pg.sum(x * x), pg.mean(x), pg.max(x), pg.sum(pg.reshape(x, (3, 1000)), axis=1)


def products(a, b, stack):
    return a @ b.T, b @ a.T, a[0] @ b[0], a @ b[0], stack @ pg.transpose(stack, (0, 2, 1)), a.T @ a


def sums_of_products(a, b, stack):
    deep = pg.concatenate([a, a], axis=1)
    turned = pg.transpose(stack, (0, 2, 1))
    return (
        a @ b.T + a[:, ::-1] @ b.T,
        a.T @ a + (2 * a).T @ a[::-1] + pg.tanh(a).T @ a,
        a[0] @ b[0] + a[1] @ b[1] + a[2] @ b[2],
        deep[0] @ deep[1] + deep[2] @ deep[3],
        deep @ deep.T + (deep[::-1] @ deep.T + deep @ deep[::-1].T),
        stack @ turned + stack[::-1] @ turned,
    )


def special_functions(x):
    s = pg.special
    one = [s.gammaln, s.gamma, s.digamma, s.erfcx, s.erfinv, s.erfcinv, s.log_ndtr, s.logit]
    two = [s.poch, s.xlogy, s.xlog1py]
    return [*(f(x) for f in one), *(f(x, 2.0 * x) for f in two)]


def compositions(a, x):
    """Primitives that C has by way of others: loops, and pairs of real numbers."""
    linalg = pg.linalg
    turned = pg.fft.irfft(pg.fft.rfft(x) * (1 + 2j), 6)
    tangent = pg.grad(pg.sum(pg.exp(linalg.eigvalsh(a + a.T))), a)
    values = linalg.svd(a, compute_uv=False), linalg.pinv(a), linalg.expm(a)
    return *linalg.qr(a), *values, pg.abs(pg.fft.fft2(x[:, None] * x)), turned, tangent


TRIANGLE = pg.Pattern.from_coo([0, 1, 1, 2, 3, 3], [0, 0, 1, 2, 1, 3], (4, 4))


def sparse_systems(values, x):
    solved = spsolve_triangular(pg.sparse_matrix(TRIANGLE, values), x)
    return solved, pg.grad(pg.sum(solved[:, 0] ** 2), [values, x])


def quotients(a, b):
    z = pg.complex(a[0], a[1]) / pg.complex(b[0], b[1])
    return pg.real(z), pg.imag(z)


PARTS = np.array([0.0, -0.0, 1.0, -2.5, np.inf, np.nan, 1e300, 1e-300])
ALL_PARTS = np.stack([v.ravel() for v in np.meshgrid(*[PARTS] * 4)])
ROWS, P = rng.normal(size=(5, 3)), np.array([1.0, 0.3])
FUNCTIONS_OF = {
    attention: [rng.normal(size=(6, 4)) for _ in range(3)],
    loops: [ROWS, P],
    slopes_of_loops: [ROWS, P],
    views: [rng.normal(size=(7, 5)), rng.normal(size=(8, 7))],
    whole_numbers: [
        np.array([5, -7, 2**62, -(2**63)]), np.array([3, -2, 5, -1]),
        np.array([200, 7, 0], "u1"), np.array([True, False, True, True]),
    ],
    places: [rng.normal(size=(4, 3)), np.array([2, -1, 2])],
    constants: [rng.normal(size=(3, 4))],
    several: [rng.normal(size=3), np.float64(0.7), np.zeros((0, 2))],
    long_sums: [rng.normal(size=3000)],
    products: [rng.normal(size=(5, 9)), rng.normal(size=(12, 9)), rng.normal(size=(2, 3, 4))],
    compositions: [rng.normal(size=(4, 4)), rng.normal(size=6)],
    sparse_systems: [rng.uniform(1.0, 2.0, 6), rng.normal(size=(4, 2))],
    quotients: [ALL_PARTS[:2], ALL_PARTS[2:]],
    special_functions: [np.array([-9.75, -0.3, 0.2, 0.75, 9.0])],
    sums_of_products: [rng.normal(size=s) for s in ((5, 9), (12, 9), (2, 3, 4))],
}  # fmt: skip
IN_SINGLE = (attention, loops, views, long_sums)


def single(arrays):
    return [a.astype("f4") if a.dtype == "f8" else a for a in arrays]


def kernel_of(function, feeds, ending=""):
    graph = pg.trace(function, *feeds)
    graph = pg.Graph(
        graph.inputs, graph.body, graph.outputs, graph.name + ending, graph.form, graph.titles
    )
    return pg.compile(graph)


@pytest.fixture(scope="module")
def kernels():
    found = [(kernel_of(f, feeds), feeds) for f, feeds in FUNCTIONS_OF.items()]
    singles = [(f, single(FUNCTIONS_OF[f])) for f in IN_SINGLE]
    found += [(kernel_of(f, feeds, "_in_single"), feeds) for f, feeds in singles]
    return found


@pytest.fixture(scope="module")
def folder(kernels, tmp_path_factory):
    made = tmp_path_factory.mktemp("exported")
    first, *others = (kernel for kernel, _ in kernels)
    first.save(made / "functions.c", *others)
    return made


@pytest.fixture(scope="module")
def library(folder):
    return loaded(folder, "functions")


@needs_compiler
def test_functions_give_what_kernels_do(kernels, library):
    for kernel, feeds in kernels:
        found = calling(library, kernel.graph)(*feeds)
        tolerance = 2e-5 if kernel.graph.name.endswith("_in_single") else 1e-12
        for a, b in zip(found, kernel.flat(*feeds), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, tolerance, tolerance, err_msg=kernel.graph.name)
            if a.dtype.kind in "biu":
                np.testing.assert_array_equal(a, b, err_msg=kernel.graph.name)


@needs_compiler
def test_constants_are_exact(kernels, library):
    kernel, feeds = next(k for k in kernels if k[0].graph.name == "constants")
    _, table, numbers, flags, nans = calling(library, kernel.graph)(*feeds)
    assert table.tobytes() == TABLE.tobytes()
    assert [*numbers, *flags] == [0, 1, 2, 3, 4, True, False]
    assert np.isnan(nans).all()


@needs_compiler
def test_an_index_out_of_range_is_told(folder, library, kernels):
    kernel, (x, i) = next(k for k in kernels if k[0].graph.name == "places")
    run = calling(library, kernel.graph)
    assert run(x, i) is not None
    assert run.status == 0
    run(x, i + 2)
    assert run.status == 1
    assert "int places(" in (folder / "functions.h").read_text()
    assert "void views(" in (folder / "functions.h").read_text()


@needs_compiler
def test_other_compilers_have_nothing_to_say(folder):
    for path in filter(None, map(shutil.which, ("gcc", "clang"))):
        command = [path, *STRICT, "-fsyntax-only", folder / "functions.c"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr[:3000]


def test_headers_are_those_of_c_and_cpp(folder):
    (folder / "use.cpp").write_text(
        '#include "functions.h"\n#include "functions.h"\n'
        "int main() {\n    static places_workspace work;\n"
        "    return sizeof work != PLACES_WORKSPACE_BYTES;\n}\n"
    )
    compiler_of_cpp = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler_of_cpp is None:
        pytest.skip("there is no C++ compiler")
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        [compiler_of_cpp, *flags, folder / "use.cpp"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# What is written.


def test_files_allocate_nothing_and_share_nothing(folder):
    source = (folder / "functions.c").read_text()
    assert "alloc" not in source
    assert source.isascii()
    assert max(map(len, source.splitlines())) <= 120
    assert re.findall(r"#include .*", source) == [
        '#include "functions.h"', "#include <math.h>", "#include <string.h>"
    ]  # fmt: skip
    # What is static is a function, a constant, or a check while compiling.
    for line in source.splitlines():
        if re.match(r"(static|extern|[a-z]\w* \w+( =|;|\[))", line):
            assert re.match(r"static (inline )?(const |.*\()|(int|void) \w+\(", line), line


def test_single_precision_has_no_doubles(kernels):
    graphs = [kernel.graph for kernel, _ in kernels if kernel.graph.name.endswith("_in_single")]
    assert len(graphs) == len(IN_SINGLE)
    for text in c_source(graphs, "single"):
        assert "float" in text
        assert not re.search(r"\bdouble\b|f64", text)


def test_names_and_lines_are_the_users(folder):
    source = (folder / "functions.c").read_text()
    header = (folder / "functions.h").read_text()
    assert "double q_bar[6 * 4]" in header
    assert "/* test_export_c.py:" in source
    assert "s = pg.softmax((q @ k.T) / 4.0, axis=-1) */" in source
    assert "in the gradient of test_export_c.py:" in source
    assert "ATTENTION_WORKSPACE_BYTES" in header
    assert "q, k, v: float64, shape (6, 4)" in header
    assert "bytes on the stack" in header


def test_a_file_reads_as_a_person_would_write_it():
    def damped(position, velocity, dt):
        force = -4.0 * position - 0.5 * velocity
        faster = velocity + dt * force
        return position + dt * faster, faster

    kernel = pg.compile(pg.trace(damped, pg.spec(3), pg.spec(3), pg.spec(())))
    header, source = c_source([kernel.graph], "damped")
    found = re.sub(r"test_export_c.py:\d+", "FILE", source)
    assert found[found.index("void damped") :] == GOLDEN
    begin, end = header.index("/* Compute"), header.index("\n#ifdef __cplusplus\n}")
    assert header[begin:end] == GOLDEN_HEADER


GOLDEN = """void damped(
    const double position[restrict 3], const double velocity[restrict 3], double dt,
    double result0[restrict 3], double faster[restrict 3]) {
    /* FILE  force = -4.0 * position - 0.5 * velocity */
    for (long i = 0; i < 3; i++) {
        const double force = -4.0 * position[i] - 0.5 * velocity[i];
        /* FILE  faster = velocity + dt * force */
        const double faster_i = velocity[i] + dt * force;
        faster[i] = faster_i;
        /* FILE  return position + dt * faster, faster */
        result0[i] = position[i] + dt * faster_i;
    }
}
"""
GOLDEN_HEADER = """/* Compute result0 and faster.
 *
 * position, velocity: float64, shape (3,)
 * dt: float64, shape ()
 * Writes result0, faster: float64, shape (3,) */
void damped(
    const double position[3], const double velocity[3], double dt, double result0[3],
    double faster[3]);
"""


def test_large_graphs_are_several_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(function, "CHUNK", 40)

    def chained(x, y):
        z = x
        for k in range(90):
            z = pg.tanh(pg.cumsum(z * 1.0625)) + (y if k % 7 else x)
        return z, pg.sum(z)

    feeds = [rng.normal(size=5), rng.normal(size=5)]
    kernel = kernel_of(chained, feeds)
    source = written(tmp_path, [kernel.graph], "chained")
    assert source.count("static void chained_part") > 3
    if compiler():
        found = calling(loaded(tmp_path, "chained", ["-O0"]), kernel.graph)(*feeds)
        for a, b in zip(found, kernel.flat(*feeds), strict=True):
            np.testing.assert_allclose(a, b, 1e-9)


def test_every_spelling_is_one_for_files():
    for name in FUNCTIONS.values():
        assert name in LIBRARY or parts.required_parts([f"pg_{name}_f64"]), name
        assert f"{name}f" in LIBRARY or parts.required_parts([f"pg_{name}_f32"]), name


# Primitives that are written by other rules than elementwise ones are.
SAMPLED = {
    "while_loop", "scan", "cond", "sort", "argsort", "slogdet", "left_shift", "right_shift",
    "gather", "scatter_add", "overlap_add", "placed", "cumsum", "searchsorted", "solve",
}  # fmt: skip


@needs_compiler
def test_samples_of_primitives_are_what_they_are(tmp_path):
    programs = []
    for k, param in enumerate(CASES):
        case = param.values[0]
        own = [d for d in ("f64", "bool", "u8", "i64") if d in case.row.dtypes]
        if case.op.name in SAMPLED and own:
            dtype = own[k % len(own)]
            graph = spelled(case.graph(dtype), Counter())
            if graph is not None:
                renamed = pg.Graph(graph.inputs, graph.body, graph.outputs, f"sample_{k}")
                programs.append((renamed, case.arrays(dtype)))
    assert len(programs) > 40
    check(programs, tmp_path, ["-O0"])


@needs_compiler
def test_a_matrix_with_a_nan_has_factors_and_solutions_with_nans(tmp_path):
    def factored(a, b):
        factor = pg.linalg.cholesky(a)
        return factor, pg.linalg.cholesky(a @ a), pg.grad(pg.sum(pg.cos(factor)), a)

    def solved(a, b):
        lower = pg.linalg.solve_triangular(a, b, lower=True)
        return lower, pg.linalg.solve(a, b), pg.linalg.inv(a), *pg.linalg.slogdet(a)

    good = np.eye(3) * 4 + 1
    kernels = [pg.compile(pg.trace(f, good, good[0])) for f in (factored, solved)]
    written(tmp_path, [k.graph for k in kernels], "nans")
    library = loaded(tmp_path, "nans", ["-O1", *sanitized()][:1])
    for kernel in kernels:
        run = calling(library, kernel.graph)
        for i, j in ((0, 0), (2, 2), (1, 0)):
            a = good.copy()
            a[i, j] = np.nan
            with np.errstate(invalid="ignore"):
                meant = kernel.flat(a, good[0])
            found = run(a, good[0])
            assert run.status == 0
            for x, y in zip(found, meant, strict=True):
                # Which elements of an inverse a NaN spoils depends on the order of operations.
                assert np.isnan(x).any() == np.isnan(y).any()
            if kernel is kernels[0]:
                np.testing.assert_allclose(found[0], meant[0], 1e-14)
        run(np.zeros((3, 3)), good[0])
        assert run.status != 0


@needs_compiler
def test_random_programs_are_sound(tmp_path):
    left: Counter[str] = Counter()
    programs = [each for seed in range(9) for each in drawn(seed, left)]
    assert len(programs) > 8
    check(programs, tmp_path, ["-O0", *sanitized()])


@needs_compiler
def test_c_that_users_have_given_goes_along(tmp_path):
    tables = (registry._registry, SPELLINGS, ROUTINES, FITS, CODES)
    before = [dict(table) for table in tables]
    try:
        limb = pg.extend.elementwise("limb", lambda x, y: np.sqrt(x * x + y * y), operands=2)
        code = """
static double squared(double x) { return x * x; }
static double limb_of_double(double x, double y) {
    return sqrt(squared(x) + squared(y));
}
static float limb_of_float(float x, float y) { return sqrtf(x * x + y * y); }
"""
        pg.extend.spell_c(limb, "limb_of_{T}({0}, {1})", code=code)
        feeds = [rng.normal(size=5), rng.normal(size=5)]

        def limbs(x, y):
            return pg.extend.emit(limb, pg.extend.lift(x), pg.extend.lift(y)) * 2

        kernel = kernel_of(limbs, feeds)
        source = written(tmp_path, [kernel.graph], "limbs")
        # What is not called would be warned of.
        assert "static double squared" in source
        assert "limb_of_float" not in source
        (found,) = calling(loaded(tmp_path, "limbs"), kernel.graph)(*feeds)
        np.testing.assert_allclose(found, 2 * np.hypot(*feeds), 1e-14)
    finally:
        for table, kept in zip(tables, before, strict=True):
            table.clear()
            table.update(kept)


# What CBLAS has, for machines that have it; one that counts its calls for those that do not.
CBLAS = """
enum { CblasRowMajor = 101, CblasNoTrans = 111, CblasTrans = 112 };
extern int calls;
static inline void cblas_dgemm(int order, int a_is, int b_is, int m, int n, int k, double one,
                               const double *a, int lda, const double *b, int ldb, double zero,
                               double *c, int ldc) {
    calls += order == CblasRowMajor;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = zero != 0 ? zero * c[i * ldc + j] : 0;
            for (int l = 0; l < k; l++)
                sum += one * a[a_is == CblasTrans ? l * lda + i : i * lda + l] *
                       b[b_is == CblasTrans ? j * ldb + l : l * ldb + j];
            c[i * ldc + j] = sum;
        }
}
"""


@needs_compiler
def test_large_products_are_those_of_blas_only_if_asked(tmp_path):
    def multiplied(a, b, stack):
        added = a @ (2 * b) + (3 * a) @ b
        return a @ b, b.T @ a.T, a @ a.T, stack @ stack.mT, a[:3, ::2] @ b[::2], added

    feeds = [rng.normal(size=(40, 50)), rng.normal(size=(50, 36)), rng.normal(size=(2, 40, 40))]
    kernel = kernel_of(multiplied, feeds)
    kernel.save(tmp_path / "plain.c")
    assert "blas" not in (tmp_path / "plain.c").read_text()
    kernel.save(tmp_path / "multiplied.c", blas=True)
    text = (tmp_path / "multiplied.c").read_text()
    assert "#include <cblas.h>" in text
    assert text.count("cblas_dgemm(") == 6
    (tmp_path / "multiplied.c").write_text(f"{text}\nint calls = 0;\n")
    (tmp_path / "cblas.h").write_text(CBLAS)
    library = loaded(tmp_path, "multiplied", [f"-I{tmp_path}"])
    found = calling(library, kernel.graph)(*feeds)
    for a, b in zip(found, kernel.flat(*feeds), strict=True):
        np.testing.assert_allclose(a, b, 1e-11, 1e-11)
    assert ctypes.c_int.in_dll(library, "calls").value == 7
    with pytest.raises(pg.ArgumentError, match="blas is for files of C"):
        kernel.save(tmp_path / "multiplied.py", blas=True)


# Names.


def test_guards_are_names():
    graph = pg.compile(doubled("doubled")).graph
    for stem, guard in (("2d-model", "FILE_2D_MODEL_H"), ("a b.c", "A_B_C_H")):
        assert f"#ifndef {guard}\n#define {guard}\n" in c_source([graph], stem)[0]


@needs_compiler
def test_lines_of_the_users_do_nothing(tmp_path):
    def odd(x):
        y = x * 2  # */ return 1; /* ??/ "&bad" \\ grün {
        return pg.exp(y) + 1  # } #define exp(x) 7 // \\

    feeds = [np.ones(3)]
    kernel = kernel_of(odd, feeds)
    text = written(tmp_path, [kernel.graph], "odd")
    assert "gr\\u00fcn {" in text
    assert "void odd(" in text
    run = calling(loaded(tmp_path, "odd", ["-Wcomment", "-Wtrigraphs"]), kernel.graph)
    np.testing.assert_allclose(run(*feeds)[0], np.exp(2.0) + 1)


def test_comments_cannot_end_early():
    assert remark("a */ b /* c ??/ d\n") == "/* a * / b / * c ? ?/ d\\u000a */"


def test_long_sums_break_before_their_terms():
    terms = [f"coefficient[{i}] * argument[{i} * 4 + 1]" for i in range(4)]
    lines = wrap_statement(f"const double total = {' - '.join(terms)};", 1)
    assert [line.strip() for line in lines] == [
        "const double total =",
        f"{terms[0]} - {terms[1]}",
        f"- {terms[2]} - {terms[3]};",
    ]
    inner = " + ".join(terms)
    first, *others = wrap_statement(f"x[0] = exp({inner}) - 1.0;", 1)
    assert first == "    x[0] ="
    assert "".join(x.strip() + " " for x in others) == f"exp({inner}) - 1.0; "
    assert all(len(line) <= 100 for line in others)
