"""Arrays that come to be part by part in native code: who fills them, and what writes the parts."""

import shutil

import numpy as np
import pytest
from native_checks import faults
from program_draft import F64

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Nest
from primgraph.codegen.lower.nests.nests import nests
from primgraph.ir.builder import Builder
from primgraph.ir.types import TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import constant, filled_constant
from primgraph.primitives.shapes import slice_, slice_assign

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]


def part(x, start, step, size):
    return slice_(x, starts=(start,), steps=(step,), sizes=(size,))


def laid(whole, x, start, step):
    return slice_assign(whole, x, starts=(start,), steps=(step,))


def drafted(seed):
    """A graph of parts that leave gaps, or none, or lie on each other, in an order of any kind."""
    rng = np.random.default_rng((seed, 5))
    n, period = int(rng.integers(5, 40)), int(rng.integers(1, 5))
    builder = Builder(f"f{seed}")
    with builder:
        x, y = (builder.input(TensorType((n,), F64)) for _ in range(2))
        z = e.mul(x, y)
        whole = [
            filled_constant(0.5, x.type), constant(value=rng.normal(size=n)), x, z, e.sin(y)
        ][rng.integers(5)]  # fmt: skip
        others = []
        for start in rng.permutation(period):
            size = len(range(start, n, period))
            if rng.random() < 0.2:
                size -= int(rng.integers(0, size))
            if size <= 0:
                continue
            source = [x, z, e.add(z, y), whole][rng.integers(4 if rng.random() < 0.3 else 3)]
            piece = part(source, int(rng.integers(0, n - size + 1)), 1, size)
            if rng.random() < 0.6:
                piece = e.sub(e.mul(piece, piece), piece)
                others += [piece] if rng.random() < 0.3 else []
            if rng.random() < 0.2:
                piece = filled_constant(2.0, piece.type)
            whole = laid(whole, piece, int(start), period)
            others += [whole] if rng.random() < 0.15 else []
            if rng.random() < 0.25:
                size = int(rng.integers(1, n + 1))
                at = int(rng.integers(0, n - size + 1))
                whole = laid(whole, part(e.neg(z), at, 1, size), at, 1)
        outputs = [*others, whole]
        if rng.random() < 0.4:
            outputs = [*others, e.exp(e.neg(whole)), e.add(z, whole)]
    return builder.graph(outputs)


def test_parts_in_any_order_are_where_they_belong():
    rng, graphs = np.random.default_rng(3), [drafted(seed) for seed in range(50)]
    feeds = [[rng.normal(size=v.type.shape) for v in g.inputs] for g in graphs]
    assert not list(faults(graphs, feeds))


def described(graph):
    items = [item for item in nests(schedule(graph)).items if isinstance(item, Nest) and item.nodes]
    return [[node.kind for node in item.nodes] for item in items]


def test_loops_leave_parts_where_they_are_to_be():
    builder = Builder("f")
    with builder:
        x = builder.input(TensorType((300,), F64))
        one, two = e.mul(x, x), e.sub(x, filled_constant(1.0, x.type))
        whole = laid(filled_constant(0.0, TensorType((600,), F64)), one, 0, 2)
        every = laid(whole, two, 1, 2)
    # No zero is written, and no part is copied.
    assert described(builder.graph([every])) == [["text", "text", "put", "put"]]
    # What is left of it is filled first of all.
    first, second = described(builder.graph([whole]))
    assert first == ["put"]
    assert second == ["text", "put"]


def test_what_is_computed_but_once_goes_along_with_a_call():
    def curved(x):
        return pg.sparse_hessian(lambda x: pg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2), x).data

    x = np.linspace(-1.0, 1.0, 1000)
    graph = pg.trace(curved, x)
    kernel, expected = pg.compile(graph, target="c"), pg.compile(graph)(x)
    assert kernel.once
    seen = []
    slow = type(kernel).__mro__[1].__call__

    def counted(self, *feeds, **named):
        seen.append(feeds)
        return slow(self, *feeds, **named)

    kind = type(kernel).__mro__[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "__call__", counted)
        results = [kernel(x) for _ in range(3)]
        into = np.empty_like(expected)
        assert kernel(x, out=into) is into
        kernel(list(x))
    # The first call computes it; then what fits is C's alone.
    assert len(seen) == 2
    for found in (*results, into):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
