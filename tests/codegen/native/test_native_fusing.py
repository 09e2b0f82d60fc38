"""At `math="exact"` C rounds products and sums apart, whatever instructions a processor has.

GCC from 12 on vectorises products that are added and subtracted side by side into `vfmaddsub`,
although `-ffp-contract=off` is given. Kernels are assembled for AVX2 and AVX-512, which need not be
there.
"""

import platform
import re
import shutil
import subprocess

import numpy as np
import pytest
from native_checks import faults, together
from program_pairs import pair_program
from test_native_steps import BY_NUMPY, sampled
from test_primitives import CASES

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.ops.c.functions import ELEMENTARY, definitions
from primgraph.codegen.runtime.toolchain import compile_c
from primgraph.codegen.targets.c.source import source
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

on_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="these are instructions of x86-64"
)
PROCESSORS = ("x86-64-v3", "x86-64-v4")
# Of products and sums side by side, which are never written so, and of any.
ALTERNATING = re.compile(r"\bvfm(?:addsub|subadd)\w+")
FUSED = re.compile(r"\bvfn?m(?:add|sub)\w+")
# Functions in which they are written.
WRITTEN = re.compile(r"#ifdef FP_FAST_FMA\n.*?#else", re.DOTALL)

rng = np.random.default_rng(11)


def run(function, *arrays):
    """Return the results of a kernel in C, and of one in NumPy."""
    graph = pg.trace(function, *arrays)
    native = pg.compile(graph, target="c")
    found = native(*arrays)
    assert native.running_style(arrays) == "native"
    return found, pg.compile(graph, target="numpy")(*arrays)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_pair_that_a_loop_rotates_has_the_bits_of_numpy(dtype):
    def rotated(p, a):
        def turn(c, _):
            c = pg.stack([c[0] * a[0] - c[1] * a[1], c[0] * a[1] + c[1] * a[0]])
            return c, c

        return pg.scan(turn, p, length=200)

    def turned(p, a):
        def turn(_, c):
            return pg.stack([c[0] * a[0] - c[1] * a[1], c[0] * a[1] + c[1] * a[0]])

        return pg.fori_loop(0, 200, turn, p)

    angle = np.array([np.cos(0.3), np.sin(0.3)], dtype)
    p = rng.normal(size=2).astype(dtype)
    found, expected = run(rotated, p, angle)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(*run(turned, p, angle))
    np.testing.assert_array_equal(run(turned, p, angle)[0], found[0])


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_complex_quotients_have_the_bits_of_numpy(dtype):
    z, w = (rng.normal(size=(2, 200)) + 1j * rng.normal(size=(2, 200))).astype(dtype)
    for a, b in ((z, w), (z, z), (z, z.real.astype(dtype)), (z, 1j * z)):
        found, _ = run(lambda a, b: a / b, a, b)
        np.testing.assert_array_equal(found, a / b)


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("n", [1, 50])
def test_negative_complex_products_have_zeros_of_the_right_sign(n, dtype):
    # GCC computes -(x y + z) as (-x) y - z, which is 0 instead of -0 where the sum is 0.
    def f(z, w):
        x = z * w
        return [-x, -pg.conj(x), -pg.real(x), -pg.imag(x), pg.conj(x) * -1.0, -pg.real(-x)]

    z, w = np.full(n, 1 - 2j, dtype), np.full(n, 2 - 1j, dtype)
    for other in (w, np.conj(w) * 1j, z * 0):
        found, expected = run(f, z, other)
        for a, b in zip(found, expected, strict=True):
            for x, y in ((np.real(a), np.real(b)), (np.imag(a), np.imag(b))):
                np.testing.assert_array_equal(x, y)
                np.testing.assert_array_equal(np.signbit(x), np.signbit(y))


def test_random_pairs_have_the_bits_of_the_interpreter():
    drawn = [pair_program(seed) for seed in range(60)]
    assert not list(faults([graph for graph, _ in drawn], [feeds for _, feeds in drawn]))


def assembled(text, flags, processor, folder):
    """Return the assembly that a compiler makes of C."""
    path = folder / "kernel.c"
    path.write_text(text)
    chosen = compile_c.compiler()
    words = [*chosen.command, *flags, f"-march={processor}", "-S", "-o", "-", str(path)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def kernel(graphs):
    return source(nests(schedule(together(graphs))), "kernel").text


def of_primitives():
    """Return samples of all primitives that C has, most of them in float64."""
    cases = [case.values[0] for case in CASES]
    found = [
        graph
        for k, case in enumerate(cases)
        if case.op.name not in BY_NUMPY
        and (graph := sampled(case, "f32" if k % 5 == 0 else "f64")) is not None
    ]
    assert len(found) > 200
    return found


def of_complex_numbers():
    def f(z, w, x):
        return [z / w, z * w - z / x, pg.conj(z) * w + z, z * x - w / z]

    z, x = pg.spec(50, "c16"), pg.spec(50, "f8")
    return [clean_up(lower(pg.trace(f, z, z, x)))]


@on_x86
@pytest.mark.parametrize(
    "processor", [pytest.param(PROCESSORS[0], marks=pytest.mark.dense), *PROCESSORS[1:]]
)
def test_kernels_have_fused_instructions_where_they_are_written_only(processor, tmp_path):
    for graphs in (of_primitives(), [pair_program(seed)[0] for seed in range(40)]):
        text = kernel(graphs)
        assert not re.search(r"\bfmaf?\(", WRITTEN.sub("#else", text))
        # Without the functions where they are written.
        plain = (*compile_c.KERNEL_FLAGS, "-U__FP_FAST_FMA", "-U__FP_FAST_FMAF")
        assert not FUSED.findall(assembled(text, plain, processor, tmp_path))
        found = assembled(text, compile_c.KERNEL_FLAGS, processor, tmp_path)
        assert not ALTERNATING.findall(found)
    found = assembled(kernel(of_complex_numbers()), compile_c.KERNEL_FLAGS, processor, tmp_path)
    assert not ALTERNATING.findall(found)


@on_x86
@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_have_no_products_fused_side_by_side(name, tmp_path):
    for loose in (False, True):
        text = definitions([f"pg_{name}", f"pg_{name}f"], loose=loose)
        found = assembled(text, compile_c.FUNCTION_FLAGS, "x86-64-v4", tmp_path)
        assert not ALTERNATING.findall(found)


@on_x86
def test_loose_kernels_are_free_to_fuse(tmp_path):
    graph = clean_up(lower(pg.trace(lambda x, y: x * y + x, pg.spec(50), pg.spec(50))))
    text = kernel([graph])
    assert FUSED.findall(assembled(text, compile_c.LOOSE_FLAGS, "x86-64-v3", tmp_path))
    assert not FUSED.findall(assembled(text, compile_c.KERNEL_FLAGS, "x86-64-v3", tmp_path))
