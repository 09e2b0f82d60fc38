"""A back end for nests: Fortran, which computes what the interpreter does."""

import ast
import ctypes
import math
import re
import shutil
import subprocess
from pathlib import Path

import fortran_backend
import numpy as np
import pytest
from fortran_backend import fortran

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower


def by_python(text, arrays):
    """Run a subroutine of such text: assignments, loops, numbers and functions of elements."""
    lines = []
    depth = 0
    for row in text.splitlines()[2:-1]:
        line = re.sub(r"(\d(?:\.\d+)?)d([-+]?\d+)", r"\1e\2", row.strip())
        line = line.replace("huge(1e0)", "inf")
        line = re.sub(r"\b(m\d+)\(([^()]*)\)", r"\1[\2]", line)
        line = re.sub(r"^(m\d+) = ", r"\1[:] = ", line)
        if line.startswith("end do"):
            depth -= 1
        elif loop := re.fullmatch(r"do (\w+) = 0, (-?\d+)", line):
            lines.append(f"{'  ' * depth}for {loop[1]} in range({int(loop[2]) + 1}):")
            depth += 1
        elif local := re.fullmatch(r"real\(8\) :: (m\d+)\[0:(-?\d+)\](?: = (.*))?", line):
            lines.append(f"{local[1]} = array({local[3] or [0.0] * (int(local[2]) + 1)})")
        elif " :: " not in line:
            lines.append("  " * depth + line)
    names = re.search(r"f\((.*)\)", text)[1].split(", ")
    exec(
        "\n".join(lines), {**vars(math), "array": np.array, **dict(zip(names, arrays, strict=True))}
    )


def compiled(text, folder):
    """The subroutine in machine code."""
    (folder / "f.f90").write_text(text)
    subprocess.run(["gfortran", "-shared", "-fPIC", "f.f90", "-o", "f.so"], cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "f.so")).f_

    def run(arrays):
        function(*[ctypes.c_void_p(a.ctypes.data) for a in arrays])

    return run


def elements(x, y, w):
    a = abs(pg.tanh(x) * y - 0.25 / (1.5 + pg.exp(-x)))
    b = pg.maximum(pg.sqrt(a), pg.minimum(pg.cos(x), pg.log(a + 1.0)))
    return b, pg.sum(b, axis=1), pg.max(x - y), pg.concatenate([pg.sin(x)[::-1], y.T[:2] @ w])


def network(x, w, b):
    loss = pg.sum(pg.exp(pg.tanh(x @ w) @ b * np.arange(1.0, 3.0)))
    return loss, *pg.grad(loss, [w, b])


CASES = {network: ((6, 4), (4, 5), (5, 2)), elements: ((3, 4), (3, 4), (3, 4))}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_fortran_computes_what_the_interpreter_does(function, tmp_path):
    rng = np.random.default_rng(3)
    feeds = [rng.normal(size=s) for s in CASES[function]]
    graph = clean_up(lower(pg.trace(function, *feeds)))
    expected = interpret(graph, *feeds)
    results = [np.empty(x.size) for x in expected]
    given = [*(x.reshape(-1).copy() for x in feeds), *results]
    text = fortran(graph)
    if shutil.which("gfortran"):
        compiled(text, tmp_path)(given)
    else:
        # Without a compiler, the text is read by a few lines of Python.
        by_python(text, given)
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-12, atol=1e-12)


def test_the_text_is_that_of_a_person():
    graph = pg.trace(lambda x: pg.sum(pg.sin(x) * 2.0, axis=1), pg.spec((2, 3)))
    assert (
        fortran(clean_up(lower(graph)))
        == """\
subroutine f(m0, m4)
  implicit none
  real(8), intent(in) :: m0(0:5)
  real(8), intent(out) :: m4(0:1)
  real(8) :: v1
  real(8) :: v3
  integer :: i0, i1, i2
  m4 = 0d0
  do i0 = 0, 1
    do i1 = 0, 2
      v1 = sin(m0(0 + i0 * 3 + i1 * 1))
      v3 = v1 * 2.0d0
      m4(0 + i0 * 1) = m4(0 + i0 * 1) + v3
    end do
  end do
end subroutine f
"""
    )


def test_what_the_table_lacks_is_refused():
    for function, name in ((pg.sort, "Routine"), (pg.floor, "floor"), (pg.linalg.expm, "HostCall")):
        with pytest.raises(pg.CompileError, match=f"this back end has no {name}"):
            fortran(clean_up(lower(pg.trace(function, pg.spec((3, 3))))))
    with pytest.raises(pg.CompileError, match="float64 only"):
        fortran(clean_up(lower(pg.trace(pg.sin, pg.spec(3, "f4")))))


def test_the_back_end_is_short_and_knows_nests_only():
    text = Path(fortran_backend.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    imported = {n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
    assert not [m for m in imported if m is not None and ".targets" in m]
