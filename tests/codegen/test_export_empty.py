"""Kernels with axes without elements, saved as C: files that compile each by itself."""

import contextlib

import numpy as np
import pytest
from derive import build
from exported import STRICT, compiled, compiler, named, written
from test_primitives import CASES

import primgraph as pg
from primgraph.errors import CompileError, ShapeError
from primgraph.primitives.shapes import concat

pytestmark = pytest.mark.skipif(not compiler(), reason="there is no C compiler")


def emptied(value, extent):
    """Return a shape or a parameter with axes of that extent empty."""
    if isinstance(value, tuple):
        return tuple([emptied(v, extent) for v in value])
    return 0 if type(value) is int and value == extent else value


def with_empty_axes(case, dtype):
    """Yield the graphs of a sample whose axes of one extent are empty, as far as there are any.

    Operands are computed in the graph: a parameter of a function has a name.
    """
    types, params = case.types(dtype), case.call.params
    for n in (-1, *sorted({n for t in types for n in t.shape if n})):
        shorter = [t.with_shape(emptied(t.shape, n)) for t in types]
        changed = {k: emptied(v, n) for k, v in params.items()}
        for given in (params, changed)[: 1 + (changed != params)]:

            def again(*xs, given=given):
                return case.op(*[concat(x, axis=0) if x.type.shape else x for x in xs], **given)

            # Of some parameters there is no such graph.
            with contextlib.suppress(ShapeError):
                graph = build(again, *shorter)
                if any(v.type.size == 0 for e in graph.body for v in (*e.inputs, *e.outputs)):
                    yield graph


def test_samples_with_empty_axes_compile(tmp_path):
    names, texts = set(), {}
    for param in CASES:
        case = param.values[0]
        own = {"f64", "i64"}.intersection(case.row.dtypes) or set(case.row.dtypes[:1])
        for graph in [g for dtype in sorted(own) for g in with_empty_axes(case, dtype)]:
            # Some primitives are no C, and no complex numbers are.
            with contextlib.suppress(CompileError):
                stem = f"sample_{len(texts)}"
                text = written(tmp_path, [named(graph, "sample")], stem)
                names.add(case.op.name)
                texts[text.replace(stem, "sample")] = tmp_path / f"{stem}.c"
    assert len(names) > 130
    assert sum("NULL" in text for text in texts) > 5
    # Each is compiled as a file of its own: what one includes, all of a file have.
    compiled([*STRICT, "-fsyntax-only", *texts.values()])


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_a_part_without_elements_begins_behind_the_last_one(target):
    graph = pg.parse("""
        graph f(%x: f64[2,3], %y: f64[2,0]) {
          %0: f64[2,3] = slice_assign(%x, %y, starts=(0, 3), steps=(1, 1))
          return %0
        }""")
    x = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    (found,) = pg.compile(graph, target=target)(np.array(x), np.empty((2, 0)))
    assert found.tolist() == x
