"""What kernels say of themselves: what runs in C, in NumPy and in Python, and why."""

import shutil

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.limits import Limits

in_c = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)
SMALL = Limits(cache=1, least_bytes=1, least_block=1, rows=2)


def told(function, *arrays, **options):
    return pg.compile(pg.trace(function, *arrays), explain=True, **options)


def test_numpy_kernels_tell_buffers_floats_blocks_and_trips(capsys):
    kernel = told(lambda x: pg.sin(x) * 2.0, np.ones(3), target="numpy")
    text = capsys.readouterr().out
    assert text.startswith("f runs in NumPy: the target is NumPy\n  NumPy code for 3 steps")
    assert "Python floats, as arrays are small" in text
    assert kernel.running_style([np.ones(3)]) == "scalar"

    def loop(x):
        return pg.scan(lambda c, r: (pg.tanh(c + r), None), pg.zeros(3), x)[0]

    told(loop, np.ones((40, 3)), target="numpy")
    assert "trips in Python: scan at test_explained_kernels.py" in capsys.readouterr().out
    graph = pg.trace(lambda x: pg.exp(pg.sin(x)), np.ones((9, 2)))
    text = compile_graph(graph, limits=SMALL).explanation
    assert "for each block of 3 of 9 rows: 2 steps, as a block fits the cache" in text
    assert "readable NumPy code" not in text


@in_c
@pytest.mark.usefixtures("native_cache")
def test_native_kernels_tell_steps_of_numpy_with_reasons(capsys):
    def mixed(x, z):
        return pg.linalg.expm(pg.outer(x, x)), pg.fft.fft(z), pg.sort(pg.tile(x, 90))

    kernel = told(mixed, np.ones(4), np.ones(4, complex), target="c")
    text = capsys.readouterr().out
    assert text.startswith("mixed runs in C: the target is C\n  native code for all but 3 steps\n")
    for reason in (
        "expm at test_explained_kernels.py:", ", as C has no expm\n",
        ", as C has no fft of complex128\n", ", as NumPy is faster at this size\n",
        "for arguments of other dtypes or layouts:\n    NumPy code for ",
    ):  # fmt: skip
        assert reason in text, text
    assert kernel.explanation.splitlines()[0] == "native code for all but 3 steps"


@in_c
@pytest.mark.usefixtures("native_cache")
def test_the_estimate_is_the_reason_of_a_target_that_is_chosen(capsys):
    kernel = told(lambda x: pg.sin(x), np.ones(3), target="auto")
    text = capsys.readouterr().out
    assert kernel.style == "planned"
    assert "runs in NumPy: C would save about 0.0" in text
    assert "in 10,000 calls, and takes 0.08 s to compile" in text
    sized = told(lambda x: pg.sin(x), pg.spec("N"), target="c")
    text = capsys.readouterr().out
    assert "runs in C for all sizes; sizes that come again get code of their own" in text
    assert "readable NumPy code" in text
    np.testing.assert_allclose(sized(np.ones(4)), np.sin(np.ones(4)))


def test_without_a_compiler_that_is_the_reason(capsys, monkeypatch):
    found = "primgraph.codegen.runtime.toolchain.compile_c.find_compiler"
    monkeypatch.setattr(found, lambda: None)
    told(lambda x: pg.sin(x), np.ones(3), target="auto")
    assert "there is no C compiler" in capsys.readouterr().out
