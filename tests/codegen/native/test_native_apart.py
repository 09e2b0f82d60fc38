"""Nests of native code that are taken apart: loops that go along few arrays at once."""

import shutil
from itertools import pairwise

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Nest
from primgraph.codegen.lower.nests.loop_fission import split_nest
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.targets.c.source import source
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

rng = np.random.default_rng(28)


def traced(function, *arrays):
    return clean_up(lower(pg.trace(function, *arrays)))


def nests_of(graph):
    return [item for item in nests(schedule(graph)).items if isinstance(item, Nest)]


def runs_of(nest):
    reads = {(o.root, o.offset, o.strides) for n in nest.nodes for o in n.operands if o.root >= 0}
    return len(reads) + len(nest.stored)


def many(*arrays):
    """What a recurrent network's gradient has: the same for each of many arrays."""
    half = len(arrays) // 2
    gates = [pg.sigmoid(x) * (1 - y * y) for x, y in zip(arrays[:half], arrays[half:], strict=True)]
    squares = [pg.sum(x * x, axis=0) for x in arrays]
    return [*gates, pg.stack(arrays), *squares, arrays[0] * arrays[1], sum(arrays)]


def chained(*arrays):
    """Each computes from the one before."""
    found = [arrays[0]]
    for x in arrays[1:]:
        found.append(pg.tanh(found[-1] + x) * 0.5)
    return found[1:]


def added(*arrays):
    """Rows of each that are added to another one, some of them twice."""
    places = np.array([0, 2, 2, 1])
    return [
        pg.scatter_add(x, places[: x.shape[0]] % max(x.shape[0], 1), y) for x, y in pairwise(arrays)
    ]


def test_loops_go_along_few_arrays():
    arrays = [rng.normal(size=(4, 6)) for _ in range(24)]
    (nest, *_) = nests_of(traced(many, *arrays))
    parts = split_nest(nest)
    assert len(parts) > 8
    # What is summed goes along all arrays; nothing else does.
    assert sorted(runs_of(part) > 12 for part in parts)[:-1] == [False] * (len(parts) - 1)
    placed = [node for part in parts for node in part.nodes]
    assert sorted(map(id, placed)) == sorted(map(id, nest.nodes))
    assert set().union(*[part.stored for part in parts]) == set(nest.stored)
    for part in parts:
        made = {node.value for node in part.nodes}
        assert {o.value for n in part.nodes for o in n.operands if o.value >= 0} <= made
        places = [nest.nodes.index(node) for node in part.nodes]
        assert places == sorted(places)


def test_what_is_small_or_hangs_together_stays_one_loop():
    few = [rng.normal(size=(4, 6)) for _ in range(4)]
    (nest, *_) = nests_of(traced(lambda a, b, c, d: [a + 1.0, b * 2.0, c - d], *few))
    assert split_nest(nest) == [nest]
    numbers = [np.float64(x) for x in rng.normal(size=30)]
    for nest in nests_of(traced(lambda *a: [x * x + 1.0 for x in a], *numbers)):
        assert split_nest(nest) == [nest]
    arrays = [rng.normal(size=(4, 6)) for _ in range(24)]
    (nest, *_) = nests_of(traced(chained, *arrays))
    (part,) = split_nest(nest)
    assert part.nodes == nest.nodes


def test_columns_of_a_matrix_are_written_in_one_loop():
    columns = [rng.normal(size=40) for _ in range(30)]
    graph = traced(lambda *columns: pg.stack(columns, axis=1), *columns)
    (nest,) = nests_of(graph)
    assert split_nest(nest) == [nest]
    found = pg.compile(graph, target="c")(*columns)
    assert np.array_equal(found[0], np.stack(columns, axis=1))
    # Rows are contiguous: each is a loop.
    (rows,) = nests_of(traced(lambda *rows: pg.stack(rows), *columns))
    assert len(split_nest(rows)) > 2


def test_loops_tell_what_compilers_do_not_see():
    """But for what is read or added where indices tell, an element is left where no other is."""
    x, y, i = rng.normal(size=(5, 70)), rng.normal(size=(3, 70)), np.array([4, 0, 4])

    def loops_of(function, *arrays):
        text = source(nests(schedule(traced(function, *arrays))), "f").text
        lines = [line.strip() for line in text.splitlines()]
        inner = [k for k, line in enumerate(lines) if line.startswith("for (long j = ")]
        return [lines[k - 1] == "#pragma GCC ivdep" for k in inner]

    plain = loops_of(lambda x, y: [pg.tanh(x) * 2.0, pg.concatenate([x, y]), pg.sum(x, 0)], x, y)
    assert plain
    assert all(plain)
    assert not all(loops_of(lambda x, i: x[i] + 1.0, x, i))
    assert not all(loops_of(lambda x, y, i: pg.scatter_add(x, i, y), x, y, i))
    # An exponent that is negative is told by all elements in one place.
    assert loops_of(lambda i: i**i, i) == [False]


@pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)
@pytest.mark.usefixtures("native_cache")
def test_results_are_those_of_one_loop():
    shapes = ((4, 6), (0, 5)), ((3, 300), (4, 1))
    for dtype, rtol, sizes in zip((np.float64, np.float32), (1e-14, 1e-6), shapes, strict=True):
        for shape in sizes:
            arrays = [rng.normal(size=shape).astype(dtype) for _ in range(16)]
            arrays[3][...] = np.nan
            graph = traced(lambda *a: [*many(*a), *chained(*a), *added(*a)], *arrays)
            found = compile_graph(graph, style="native")(*arrays)
            for a, b in zip(found, interpret(graph, *arrays), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
