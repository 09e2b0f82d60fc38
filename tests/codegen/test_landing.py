"""Arrays that come to be part by part, in the array of a result at once, whatever is read."""

from dataclasses import replace

import numpy as np
import pytest
from plan_checks import NEVER, SMALL, poisoned_results

import primgraph as pg
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.statements import Compute, Copy, Make, Put
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.kernel import compile_graph
from primgraph.codegen.planned import plan_for
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse

N = 6000
X = np.random.default_rng(0).standard_normal(N)

INTERLEAVED = """graph f(%x: f64[6000]) {
  %0: f64[18000] = full(dtype=f64, shape=(18000,), value=0.0)
  %1: f64[6000] = sin(%x)
  %2: f64[6000] = mul(%x, %1)
  %3: f64[18000] = slice_assign(%0, %1, starts=(0,), steps=(3,))
  %4: f64[18000] = slice_assign(%3, %x, starts=(1,), steps=(3,))
  %5: f64[18000] = slice_assign(%4, %2, starts=(17999,), steps=(-3,))
  return %5
}"""

WITH_GAPS = INTERLEAVED.replace("starts=(17999,), steps=(-3,)", "starts=(1,), steps=(1,)")

READ_BETWEEN = """graph f(%x: f64[6000]) {
  %0: f64[12000] = full(dtype=f64, shape=(12000,), value=1.0)
  %1: f64[12000] = slice_assign(%0, %x, starts=(0,), steps=(2,))
  %2: f64[6000] = slice(%1, sizes=(6000,), starts=(3000,), steps=(1,))
  %3: f64[6000] = exp(%2)
  %4: f64[12000] = slice_assign(%1, %3, starts=(1,), steps=(2,))
  return %4
}"""

OF_ITSELF = """graph f(%x: f64[6000]) {
  %0: f64[12000] = full(dtype=f64, shape=(12000,), value=1.0)
  %1: f64[12000] = slice_assign(%0, %x, starts=(0,), steps=(2,))
  %2: f64[6000] = slice(%1, sizes=(6000,), starts=(0,), steps=(2,))
  %3: f64[12000] = slice_assign(%1, %2, starts=(1,), steps=(2,))
  return %3
}"""

FED = """graph f(%x: f64[6000], %y: f64[80,150]) {
  %0: f64[80,75] = reshape(%x, shape=(80, 75))
  %1: f64[80,75] = neg(%0)
  %2: f64[80,150] = slice_assign(%y, %1, starts=(0, 75), steps=(1, 1))
  %3: f64[40,75] = slice(%0, sizes=(40, 75), starts=(0, 0), steps=(2, 1))
  %4: f64[40,75] = add(%3, %3)
  %5: f64[80,150] = slice_assign(%2, %4, starts=(1, 0), steps=(2, 1))
  return %5, %5, %1
}"""

SEVERAL = """graph f(%x: f64[6000]) {
  %0: f64[12000] = full(dtype=f64, shape=(12000,), value=0.0)
  %1: f64[6000] = exp(%x)
  %2: f64[12000] = slice_assign(%0, %1, starts=(0,), steps=(1,))
  %3: f64[12000] = slice_assign(%2, %x, starts=(6000,), steps=(1,))
  %4: f64[12000] = slice_assign(%2, %1, starts=(6000,), steps=(1,))
  %5: f64[12000] = mul(%4, %3)
  return %3, %5, %2
}"""

GRAPHS = {
    name: parse(text)
    for name, text in {
        "interleaved": INTERLEAVED,
        "with gaps": WITH_GAPS,
        "read between": READ_BETWEEN,
        "of itself": OF_ITSELF,
        "fed": FED,
        "several": SEVERAL,
    }.items()
}


def feeds(graph):
    return [np.resize(X, v.shape).copy() + i for i, v in enumerate(graph.inputs)]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_they_are_what_the_interpreter_makes(graph):
    given = feeds(graph)
    expected = interpret(graph, *given)
    for limits in (NEVER, SMALL):
        for found in (
            compile_graph(graph, limits=limits)(*given),
            poisoned_results(graph, given, limits),
        ):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    kernel = compile_graph(graph)
    first = [a.copy() for a in kernel(*given)]
    kernel(*[a + 1.0 for a in given])
    for one, other in zip(first, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(given, feeds(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def planned(name, **options):
    return verify(plan_for(GRAPHS[name], Options(**options), NEVER))


def test_a_result_is_made_once_and_nothing_is_written_that_is_replaced():
    plan = planned("interleaved")
    body = list(plan.flat())
    assert sum(isinstance(x, Make) or (isinstance(x, Compute) and x.new) for x in body) == 1
    assert not any(isinstance(x, Copy) for x in body)
    # The sine is read twice; the product is computed where it is to be.
    assert [x.step.op.name for x in body if isinstance(x, Put)] == ["mul"]
    assert "[...] = c" not in compile_graph(GRAPHS["interleaved"]).planned_source
    assert plan.arena < 2 * 8 * N


NEGATED = """graph f(%x: f64[48000]) {
  %0: f64[12000] = full(dtype=f64, shape=(12000,), value=0.0)
  %1: f64[6000] = slice(%x, sizes=(6000,), starts=(0,), steps=(8,))
  %2: f64[6000] = neg(%1)
  %3: f64[12000] = slice_assign(%0, %2, starts=(0,), steps=(2,))
  %4: f64[6000] = mul(%1, %1)
  %5: f64[12000] = slice_assign(%3, %4, starts=(1,), steps=(2,))
  return %5
}"""


@pytest.mark.parametrize(("dtype", "step"), [("f64", 8), ("i64", 8), ("f32", 4), ("i32", 4)])
def test_what_numpy_negates_wrongly_between_other_elements_is_not_made_there(dtype, step):
    text = NEGATED.replace("48000", str(6000 * step)).replace("(8,)", f"({step},)")
    text = text.replace("f64", dtype).replace("0.0", "0" if dtype[0] == "i" else "0.0")
    graph = parse(text)
    (given,) = (np.resize(np.arange(-7, 30), v.shape).astype(v.dtype) for v in graph.inputs)
    expected = np.empty(12000, given.dtype)
    expected[::2], expected[1::2] = -given[::step], given[::step] ** 2
    for style in ("planned", "readable"):
        np.testing.assert_array_equal(compile_graph(graph, style=style)(given)[0], expected)
    np.testing.assert_array_equal(poisoned_results(graph, [given], SMALL)[0], expected)
    if dtype in ("f64", "f32"):
        halves = text.replace("(0,), steps=(2,)", "(0,), steps=(1,)")
        halves = parse(halves.replace("(1,), steps=(2,)", "(6000,), steps=(1,)"))
        puts = [x for x in plan_for(halves, Options(), NEVER).flat() if isinstance(x, Put)]
        assert [x.step.op.name for x in puts] == ["neg", "mul"]
        found = np.concatenate([-given[::step], given[::step] ** 2])
        np.testing.assert_array_equal(compile_graph(halves)(given)[0], found)


COLUMNS = """graph f(%x: f64[51,24]) {
  %0: f64[51,3] = slice(%x, sizes=(51, 3), starts=(0, 0), steps=(1, 8))
  %1: f64[3,51] = permute(%0, axes=(1, 0))
  %2: f64[3,51] = neg(%1)
  %3: f64[3,51] = mul(%2, %1)
  return %2, %3
}"""


def test_columns_are_negated_before_they_are_put():
    graph = parse(COLUMNS)
    (given,) = feeds(graph)
    limits = replace(SMALL, rows=1)
    plan = verify(plan_for(graph, Options(), limits))
    assert plan.regions
    expected = interpret(graph, given)
    for one, other in zip(compile_graph(graph, limits=limits)(given), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_left_is_written_before():
    body = list(planned("with gaps").flat())
    first = next(x for x in body if isinstance(x, Compute) and x.step.op.name == "slice_assign")
    assert first.new
    assert not first.replaced
    assert not any(isinstance(x, Copy) for x in body)


def test_results_left_in_inputs_and_small_ones_are_made_as_ever():
    graph = GRAPHS["fed"]
    given = feeds(graph)
    plan = verify(plan_for(graph, Options(donated=((0, 1),)), NEVER))
    assert not any(isinstance(x, Put) for x in plan.flat())
    small = parse(INTERLEAVED.replace("6000", "6").replace("18000", "18").replace("17999", "17"))
    assert not any(isinstance(x, Put | Make) for x in plan_for(small, Options(), NEVER).flat())
    x = X[:6]
    np.testing.assert_array_equal(compile_graph(small)(x)[0], interpret(small, x)[0])
    assert np.array_equal(compile_graph(graph)(*given)[0], interpret(graph, *given)[0])


def test_a_sparse_hessian_is_written_where_it_is_handed_out():
    def chained(x):
        return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    graph = pg.trace(lambda x: pg.sparse_hessian(chained, x).data, pg.spec(N))
    kernel = pg.compile(graph)
    source = kernel(X) is not None and kernel.planned_source
    assert "concatenate" not in source
    assert source.count("r0 = empty(") == 1
    assert "r0[...]" not in source
    matrix = pg.sparse_hessian(chained, X)
    np.testing.assert_allclose(kernel(X), matrix.data, rtol=1e-12)
