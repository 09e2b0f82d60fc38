"""The models on the page about JAX as C for microcontrollers: warnings, sizes, calls, results."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from pages import blocks_of

jax = pytest.importorskip("jax", reason="JAX is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "jax.md"
ROW = re.compile(r"\| `(\w+)\.c` \| (\d+) \| (\d+) \| (\d+) \| (.+) \|")
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wdouble-promotion", "-Werror"]
# Names that some compilers call for copies, and what position-independent code needs.
COMPILER = {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
SHAPES = {"network": [4], "keyword": [(20, 10)], "kalman": [4, (4, 4), 2]}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The variables of the page's code, run in a folder of its own."""
    if not (shutil.which("gcc") and shutil.which("size") and shutil.which("nm")):
        pytest.skip("there is no GCC")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("models"))
        code = "".join(code for kind, code in blocks_of(PAGE) if kind == "python")
        variables = {"__name__": "__main__"}
        exec(compile(code, "page", "exec"), variables)
        yield variables


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("row", ROW.findall(PAGE.read_text()), ids=lambda row: row[0])
def test_models_are_small_and_compute_what_jax_does(row, page):
    name, bytes_of_code, workspace, stack, calls = row

    tool("gcc", "-std=c99", "-Os", *STRICT, "-c", f"{name}.c", "-o", f"{name}.o")
    text, data, bss, *_ = map(int, tool("size", f"{name}.o")[1].split()[:3])
    assert text <= 1.25 * int(bytes_of_code)
    assert data == bss == 0
    undefined = {line.split()[-1] for line in tool("nm", "-u", f"{name}.o")}
    assert undefined - COMPILER <= set(re.findall(r"`(\w+)`", calls))
    header = Path(f"{name}.h").read_text()
    for what, count in (r"of workspace", workspace), ("on the stack", stack):
        found = re.findall(rf"(\d+) bytes {what}", header)
        assert found == ([count] if count != "0" else [])
    tool("gcc", "-std=c99", "-Os", "-shared", "-fPIC", f"{name}.c", "-o", f"{name}.so", "-lm")
    rng = np.random.default_rng(1)
    given = [rng.normal(size=shape).astype("float32") for shape in SHAPES[name]]
    expected = jax.tree.leaves(page[name](*given))
    found = [np.full(x.shape, np.nan, "float32") for x in expected]
    arrays = [x.ctypes.data_as(ctypes.c_void_p) for x in [*given, *found]]
    getattr(ctypes.CDLL(f"./{name}.so"), name)(*arrays, ctypes.create_string_buffer(1024))
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
