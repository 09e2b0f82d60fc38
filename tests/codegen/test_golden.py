"""The readable source of some programs, as kept text, and as formatters would have it."""

from __future__ import annotations

import ctypes
import importlib.util
import runpy
import shutil
import subprocess
import sys

import numpy as np
import pytest
from golden_programs import FOLDER, PROGRAMS, SAVED, kernel_of, path_of, save
from random_programs import random_program

import primgraph as pg
from primgraph.ir.sizes import type_at

COMPILER = shutil.which("cc") or shutil.which("gcc")

RUFF = pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="needs ruff")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_source_is_the_text_that_was_read(name):
    assert PROGRAMS[name]().source == path_of(name).read_text(encoding="ascii")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_readable_source_gives_what_the_planned_code_does(name):
    kernel = PROGRAMS[name]()
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, t.shape) for t in kernel.graph.input_types]
    readable = pg.compile(kernel.graph, style="readable")
    for got, wanted in zip(readable(*arrays), kernel(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


def checked(*arguments: str) -> None:
    """Run ruff as one who has configured nothing."""
    found = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


@RUFF
def test_saved_random_programs_are_as_a_formatter_would_have_them(tmp_path):
    for seed in range(120):
        pg.compile(random_program(seed).graph).save(tmp_path / f"saved_{seed}.py")
    checked("format", "--isolated", "--check", "--diff", str(tmp_path))
    checked("check", "--isolated", "--select", "E4,E7,E9,F", str(tmp_path))


@RUFF
@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_files_are_as_a_formatter_would_have_them(name, tmp_path):
    file = tmp_path / "saved.py"
    PROGRAMS[name]().save(file)
    checked("format", "--isolated", "--check", "--diff", str(file))
    checked("check", "--isolated", str(file))


# Files that are saved from programs as users write them.

IN_PYTHON = [file for file in SAVED if file.endswith(".py")]
IN_C = [file for file in SAVED if file.endswith(".c")]


@pytest.mark.parametrize("file", SAVED)
def test_saved_files_are_the_text_that_was_read(file, tmp_path):
    save(file, tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_text(encoding="ascii") == (FOLDER / made.name).read_text(encoding="ascii")


def positive_definite(rng, shape):
    """A matrix with eigenvalues near one, as covariances have."""
    x = rng.uniform(0.0, 0.2, shape)
    return np.eye(shape[0]) + x @ x.T


def arrays_for(graph, size):
    """Arrays for the inputs of a graph, with that value for its sizes."""
    rng = np.random.default_rng(0)
    found = []
    for v in graph.inputs:
        type = type_at(v.type, dict.fromkeys(graph.sizes, size))
        square = len(type.shape) == 2 and type.shape[0] == type.shape[1] and v.hint == "P"
        if type.dtype.kind == "i":
            found.append(rng.integers(0, 10, type.shape))
        elif square:
            found.append(positive_definite(rng, type.shape))
        else:
            found.append(rng.uniform(0.2, 0.9, type.shape))
    return found


def interpreted(graph, arrays, size):
    sizes = dict.fromkeys(graph.sizes, size)
    plain = pg.transforms.instantiate(graph, sizes) if sizes else graph
    return pg.interpret(plain, *arrays)


def leaves(results):
    """The arrays in the containers of a result, in order."""
    if isinstance(results, dict):
        return [leaf for part in results.values() for leaf in leaves(part)]
    if isinstance(results, (tuple, list)):
        return [leaf for part in results for leaf in leaves(part)]
    return [results]


def graph_of(kernel):
    """The graph of a kernel, for all sizes if it has several."""
    return kernel.generic.graph if hasattr(kernel, "generic") else kernel.graph


@pytest.mark.parametrize("file", IN_PYTHON)
@pytest.mark.parametrize("size", [1, 7])
def test_saved_python_gives_what_the_interpreter_does(file, size):
    graph = graph_of(kernel_of(SAVED[file]))
    if size == 1 and not graph.sizes:
        pytest.skip("has one size only")
    arrays = arrays_for(graph, size)
    before = [np.array(x) for x in arrays]
    function = runpy.run_path(str(FOLDER / file))[graph.name]
    given = arrays
    if graph.form is not None and not graph.form.is_plain:
        leaves_left = iter(arrays)
        given = [packed(tree, leaves_left) for _, tree in graph.form.arguments]
    found = leaves(function(*given))
    for got, wanted in zip(found, interpreted(graph, arrays, size), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    for x, y in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, y)


def packed(tree, arrays):
    """The arrays in dicts as in `tree`."""
    if not hasattr(tree, "keys"):
        return next(arrays)
    return {key: packed(part, arrays) for key, part in zip(tree.keys, tree.parts, strict=True)}


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("file", IN_C)
def test_saved_c_gives_what_the_interpreter_does(file, tmp_path):
    library = tmp_path / "library.so"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-shared"]
    subprocess.run([COMPILER, *flags, str(FOLDER / file), "-lm", "-o", str(library)], check=True)
    graph = kernel_of(SAVED[file]).graph
    arrays = arrays_for(graph, 0)
    results = [np.empty(t.shape, t.dtype) for t in graph.output_types]
    work = np.empty(1 << 16)
    function = getattr(ctypes.CDLL(str(library)), graph.name)
    function(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, *results, work)))
    for got, wanted in zip(results, interpreted(graph, arrays, 0), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("file", SAVED)
def test_saved_files_are_short_and_narrow(file):
    lines = (FOLDER / file).read_text(encoding="ascii").splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= {"greeks.py": 80, "arm.py": 120}.get(file, 400)


@pytest.mark.parametrize("file", IN_PYTHON)
def test_saved_python_shows_no_tricks_of_the_compiler(file):
    text = (FOLDER / file).read_text(encoding="ascii")
    for trick in ("np.ones(", "::", "placed(", "carried", "np.array(np", "broadcast_to"):
        assert trick not in text


@RUFF
def test_saved_programs_are_as_a_formatter_would_have_them(tmp_path):
    for file in IN_PYTHON:
        save(file, tmp_path)
    checked("format", "--isolated", "--check", "--diff", str(tmp_path))
    checked("check", "--isolated", str(tmp_path))
