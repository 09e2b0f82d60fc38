"""Parts among zeros that native code reads in the loops of what reads the whole."""

import shutil

import numpy as np
import pytest
from native_checks import faults

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Nest
from primgraph.codegen.lower.nests.nests import nests

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(23)


def loops(graph):
    """How many nests there are, and how often one reads a part."""
    items = [item for item in nests(schedule(graph)).items if isinstance(item, Nest) and item.nodes]
    return len(items), sum(node.kind == "inner" for item in items for node in item.nodes)


def stencil(x):
    y = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] * x[1:-1, :-2]
    return pg.grad(pg.sum(pg.sin(y)), x)


def both(x, y):
    return pg.pad(x, ((0, 0), (2, 1))) + pg.pad(y, ((1, 3), (0, 0)))


def mixed(x):
    wide = pg.pad(x, (1, 2))
    # Read by a function of runs, by a sum, from another one, and on its own.
    return pg.sin(wide) * wide, pg.sum(pg.cos(pg.pad(x[::-1], (3, 0)) - wide)), wide


def carried(c, rows):
    return pg.scan(lambda c, r: (pg.pad(c[1:], (1, 0)) + pg.pad(r, (0, 2)), None), c, rows)[0]


def test_parts_among_zeros_are_read_in_one_loop():
    x, y = rng.normal(size=(6, 4)), rng.normal(size=(2, 7))
    x[0, 0], x[1, 1], y[0, 0], y[1, 2] = -0.0, np.nan, np.inf, -0.0
    cases = [
        (stencil, (rng.normal(size=(5, 8)),)), (both, (x, y)), (mixed, (rng.normal(size=600),)),
        (both, ((9 * x[:, ::-1]).astype("f4"), y.astype("f4"))),
        (both, (np.arange(24).reshape(6, 4), np.arange(14).reshape(2, 7))),
        (both, (np.zeros((4, 0)), rng.normal(size=(0, 3)))),
        (carried, (rng.normal(size=7), rng.normal(size=(3, 5)))),
    ]  # fmt: skip
    graphs = [pg.compile(pg.trace(f, *arrays)).graph for f, arrays in cases]
    assert not list(faults(graphs, [arrays for _, arrays in cases]))
    assert loops(graphs[0]) == (2, 4)
    assert loops(graphs[1]) == (1, 2)


def test_sizes_that_calls_tell_bound_parts():
    graph = pg.trace(lambda x: pg.grad(pg.sum((x[1:] - x[:-1]) ** 3), x), pg.spec(("N",)))
    native, numpy = pg.compile(graph, target="c"), pg.compile(graph, target="numpy")
    for n in (1, 2, 3, 50, 700):
        x = rng.normal(size=n)
        np.testing.assert_allclose(native(x), numpy(x), 1e-13, 1e-13)


def test_an_empty_array_is_nowhere_in_what_pads_it():
    x = np.zeros((0, 3))
    kernel = pg.compile(
        pg.trace(lambda x: pg.pad(x, ((0, 1), (0, 1))) + pg.pad(x, ((1, 0), (1, 0))), x),
        target="c",
    )
    np.testing.assert_array_equal(kernel(x), np.zeros((1, 4)))
    text = """
graph f(%x: f64[0,3]) {
  %0: f64[0,3] = integer_pow(%x, n=4)
  %1: f64[1,7] = pad(%0, high=(1, 2), low=(0, 2))
  %2: f64[1,7] = mul(%1, %1)
  return %2, %2
}"""
    for _ in range(3):
        for found in pg.compile(pg.parse(text), style="native")(x):
            np.testing.assert_array_equal(found, np.zeros((1, 7)))
