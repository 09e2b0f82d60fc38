"""C for primitives from outside, and what plans of native kernels tell."""

import shutil
from collections.abc import Iterator

import numpy as np
import pytest
from native_checks import outside
from test_native import same

import primgraph as pg
from primgraph.codegen.lower.nests.routines import FITS, ROUTINES
from primgraph.codegen.ops.c.spellings import CODES, SPELLINGS
from primgraph.extend import TensorType, elementwise, emit, lift, primitive, spell_c
from primgraph.ir.facts import ops as registry

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(11)
TABLES = (registry._registry, SPELLINGS, ROUTINES, FITS, CODES)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Forgets what a test has declared."""
    before = [dict(table) for table in TABLES]
    yield
    for table, kept in zip(TABLES, before, strict=True):
        table.clear()
        table.update(kept)


def test_an_elementwise_primitive_has_an_expression():
    leg = elementwise(
        "leg", lambda x, y: np.sqrt(x * x + y * y), operands=2,
        jvp=(lambda z, x, y, d: d * (x / z), lambda z, x, y, d: d * (y / z)),
    )  # fmt: skip

    def f(x, y):
        z = pg.sin(emit(leg, lift(x), lift(y)) * 2)
        return [z, pg.grad(pg.sum(z), x)]

    x, y = rng.normal(size=(4, 30)) + 3, rng.normal(size=(4, 30))
    assert outside(same(f, x, y).graph) == {"leg": 1}
    spell_c(leg, "leg_of_{T}(({T}){0}, {1})", code="""
static double leg_of_double(double x, double y) { return sqrt(x * x + y * y); }
static float leg_of_float(float x, float y) { return sqrtf(x * x + y * y); }
""")  # fmt: skip
    for dtype, rtol in (("f8", 1e-14), ("f4", 1e-5)):
        kernel = same(f, x.astype(dtype), y.astype(dtype), rtol=rtol)
        assert not outside(kernel.graph)
    in_a_loop = pg.compile(
        pg.trace(lambda x, y: pg.scan(lambda c, r: (emit(leg, c, r), None), x, y)[0], x[0], y),
        target="c",
    )
    assert "by NumPy" not in str(in_a_loop.plan)
    with pytest.raises(pg.BuildError, match="leg is written in C already"):
        spell_c(leg, "{0} + {1}")


SMOOTH = """
static int smooth(const double *x, double *z, long rows, long n, double share) {
    if (share < 0) return 1;
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < n; i++) {
            const double before = i ? x[r * n + i - 1] : 0.0;
            z[r * n + i] = (1 - share) * x[r * n + i] + share * before;
        }
    return 0;
}
"""


def smoothing():
    def impl(x, *, share):
        if share < 0:
            raise ValueError("a share is not negative")
        shifted = np.concatenate([np.zeros_like(x[..., :1]), x[..., :-1]], -1)
        return (1 - share) * x + share * shifted

    @primitive(impl=impl, linear=True)
    def smooth(x: TensorType, *, share: float) -> TensorType:
        return x

    return smooth


CALL = "smooth({0:double}, {out:double}, {0.shape[0]}, {0.shape[1]}, {share})"


def test_a_parameter_of_the_type_rule_may_be_positional():
    @primitive(impl=lambda x, factor: factor * np.flip(x))
    def flipped(x: TensorType, factor: float) -> TensorType:
        return x

    with pytest.raises(pg.BuildError, match=r"{x}, which flipped has not"):
        spell_c(flipped, "flipped({x:double}, {out:double}, {factor})")
    spell_c(
        flipped,
        "flipped({0:double}, {out:double}, {0.size}, {factor})",
        code="""
static int flipped(const double *x, double *out, long size, double factor) {
    for (long i = 0; i < size; i++) out[i] = factor * x[size - 1 - i];
    return 0;
}
""",
    )
    kernel = same(lambda x: pg.exp(emit(flipped, lift(x), factor=2.5)), rng.normal(size=7))
    assert not outside(kernel.graph)


def test_a_primitive_of_arrays_has_a_function():
    smooth = smoothing()

    def f(x):
        return pg.exp(emit(smooth, lift(x * 2), share=0.25)) + 1

    x = rng.normal(size=(5, 7))
    kernel = same(f, x)
    assert f"by NumPy: smooth at {__file__.rpartition('/')[2]}" in str(kernel.plan)
    spell_c(smooth, CALL, code=SMOOTH)
    assert not outside(same(f, x).graph)
    # It is for doubles.
    assert outside(same(f, x.astype("f4"), rtol=1e-6).graph) == {"smooth": 1}
    wrong = pg.trace(lambda x: emit(smooth, lift(x * 2), share=-1.0), x)
    with pytest.raises(pg.RunError, match="a share is not negative"):
        pg.compile(wrong, target="c")(x)


def test_a_wrong_name_is_told_with_all_that_there_are():
    @primitive(impl=lambda x, *, share: [share * x, x], multiple=True)
    def shared(x: TensorType, *, share: float) -> tuple[TensorType, ...]:
        return x, x

    with pytest.raises(pg.BuildError) as told:
        spell_c(shared, "shared({0:double}, {out0:double}, {zzz})")
    assert told.value.hint == "beside operands it has {share}, {out}, {out0}"


def test_what_is_no_c_is_refused():
    smooth = smoothing()
    twice = elementwise("twice_of_test", lambda x: 2 * x)
    for op, text, code, told in (
        (twice, "2 * {0} +", "", "is no C"),
        (twice, "double_it({0})", "", "double_it"),
        (twice, "2 * {0", "", "is no text"),
        (twice, " ", "", "nothing in it"),
        (twice, "twice({0:double})", "", "no types of their own"),
        (twice, "2 * {0!r}", "", "no conversions"),
        (twice, "{0.size}", "", "nothing that there is"),
        (twice, "{-1}", "", "nothing that there is"),
        (twice, "{0}; int q", "", "is no C"),
        (twice, "{0}, 3", "", "is no C"),
        (twice, "0) + (1", "", "is no C"),
        (twice, "{0} += 1", "", "is no C"),
        (smooth, CALL.replace(".shape[0]", ".__class__"), SMOOTH, "nothing that there is"),
        (smooth, CALL, "", "smooth"),
        (smooth, "smooth({0}, {out})", SMOOTH, "is not told"),
        (smooth, "smooth({0:double})", SMOOTH, "leaves no result"),
        (twice, "{0} * {factor}", "", r"{factor}, which twice_of_test has not(?s:.*){T}, {f}"),
        (twice, "{0} * {1}", "", r"twice_of_test takes 1 operand, {0}"),
        (
            smooth,
            CALL.replace("share", "shere"),
            SMOOTH,
            r"{shere}, which smooth has not(?s:.*)'share'",
        ),
        (smooth, CALL.replace("share", "x"), SMOOTH, r"{x}, which smooth has not"),
        (smooth, CALL.replace("{0:double}", "{1:double}"), SMOOTH, "smooth takes 1 operand"),
        (smooth, CALL.replace("out", "out1"), SMOOTH, r"{out1}, which smooth has not"),
    ):
        with pytest.raises(pg.BuildError, match=told):
            spell_c(op, text, code=code)
    spell_c(smooth, CALL.replace("share", "share[2]"), code=SMOOTH)
    graph = pg.trace(lambda x: emit(smooth, lift(x), share=0.5), np.ones((2, 3)))
    with pytest.raises(pg.CompileError, match=r"names what it has not: .* is one number"):
        pg.compile(graph, target="c")
    with pytest.raises(pg.BuildError, match="sin is written in C already"):
        spell_c(registry.lookup("sin"), "sin({0})")


def test_a_plan_tells_what_c_does():
    def f(x, a):
        y = pg.sin(x) @ a
        own = pg.scan(lambda c, r: (c + pg.tanh(r), None), pg.zeros(3), y)[0]
        other = pg.scan(lambda c, r: (pg.linalg.pinv(c) + pg.sum(r), None), a.T @ a, y)[0]
        return [own, other, pg.sort(y, axis=0)]

    kernel = same(f, np.ones((5, 4)), rng.normal(size=(4, 3)), rtol=1e-9)
    text = str(kernel.plan)
    for part in (
        "native code for all but 1 step\n", "product of f64[5,4] and f64[4,3]\n",
        "  scan of 5 trips:\n    loops over 3: tanh, add\n", "  sort of f64[5,3]\n",
        "  by NumPy: scan at test_native_spelled.py",
        ", as C has no pinv at test_native_spelled.py",
        "\n\nwhere that does not run:\n\nplan f(",
    ):  # fmt: skip
        assert part in text, text
    assert "native code" not in str(pg.compile(kernel.graph).plan)
