"""How many files a reader who steps into a call passes: what users do often goes a short way.

Counted are the files of primgraph in which a function runs, when the same thing was done before,
so that what is looked up once is not told.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest

import primgraph as pg
from primgraph import codegen, transforms
from primgraph.base.debug_mode import debug

FOLDERS = tuple(str(Path(package.__file__).parent) for package in (pg, codegen, transforms))


def walked(action: Callable[[], object]) -> set[str]:
    """The files of primgraph in which functions run while `action` does."""
    files = set()

    def enter(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(FOLDERS):
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    with debug(False):
        sys.setprofile(enter)
        try:
            action()
        finally:
            sys.setprofile(before)
    return files


@contextmanager
def two_inputs():
    with pg.Program():
        yield pg.data("x", shape=(3,)), pg.data("y", shape=(3,))


RECORDED = {
    "x + 1.0": (lambda x: x + 1.0, 10),
    "x * y": (lambda x: x * x, 10),
    "pg.tanh(x)": (pg.tanh, 5),
    # A file more than the function: methods are those of all arrays, tensors too.
    "x.exp()": (lambda x: x.exp(), 6),
}


@pytest.mark.parametrize("text", RECORDED)
def test_recording_an_operation_is_a_short_walk(text):
    operation, most = RECORDED[text]
    with two_inputs() as (x, y):
        operation(x)
        for other in (x, y):
            files = walked(lambda other=other: operation(other))
            assert 0 < len(files) <= most, sorted(files)


def test_a_gradient_of_two_operators_walks_the_files_of_its_passes():
    with two_inputs() as (x, y):
        pg.grad(pg.sum(pg.tanh(x)), x)
        total = pg.sum(pg.tanh(y))
        files = walked(lambda: pg.grad(total, y))
    # One of them tells functions, tensors and variables apart, one what has a symmetric derivative,
    # one what carries derivatives, one what is told of complex products, one runs all analyses.
    assert 0 < len(files) <= 40, sorted(files)


def test_compiling_three_equations_walks_the_files_of_plan_and_text():
    pg.compile(pg.trace(lambda x: pg.tanh(x) * 2.0 + 1.0, pg.spec(3)))
    graph = pg.trace(lambda x: pg.sin(x) * 3.0 + 4.0, pg.spec(5))
    files = walked(lambda: pg.compile(graph))
    # Two of them look for sizes that have no numbers yet, one has the table of passes.
    assert 0 < len(files) <= 53, sorted(files)
