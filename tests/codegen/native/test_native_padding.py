"""Shared padding in native code: parts embedded in zeros are views of one padded array."""

import shutil

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Nest, Product
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.shared_padding import share_padding
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.verify import verify
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(23)


def traced(function, *arrays, level="exact"):
    return clean_up(lower(pg.trace(function, *arrays)), level)


def ops(graph):
    return [eqn.op.name for eqn in graph.body]


def kinds(graph):
    items = nests(schedule(share_padding(graph))).items
    return {node.kind for item in items if isinstance(item, Nest) for node in item.nodes}


def check(graph, *arrays):
    """Compare the rewritten graph and its native code with the interpreter."""
    expected = interpret(graph, *arrays)
    for found in (
        interpret(verify(share_padding(graph)), *arrays),
        compile_graph(graph, style="native")(*arrays),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-13, 1e-13)


def wave(u, before):
    middle = u[1:-1, 1:-1]
    near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * middle
    new = pg.pad(2.0 * middle - before[1:-1, 1:-1] + 0.1 * near, ((1, 1), (1, 1)))
    value = pg.sum(new * new)
    return value, *pg.grad(value, [u, before])


@pytest.mark.parametrize("shape", [(6, 9), (40, 71)])
@pytest.mark.parametrize("level", ["exact", "fast"])
def test_gradients_of_stencils_read_one_padded_array(shape, level):
    u, before = rng.normal(size=(2, *shape))
    graph = traced(wave, u, before, level=level)
    check(graph, u, before)
    # No loop has conditions, and the sum of squares is no product of matrices.
    assert kinds(graph) <= {"text", "copy", "put", "sum"}
    items = nests(schedule(share_padding(graph))).items
    assert not any(isinstance(item, Product) for item in items)
    large = [n for n in items if isinstance(n, Nest) and len(n.domain) == 2 and min(n.domain) > 2]
    assert len(large) == 2


def test_elements_of_shared_padding_are_those_of_the_whole_to_the_bit():
    def program(x):
        y = pg.exp(x)
        parts = [pg.pad(y, ((a, 3 - a), (b, 2 - b))) for a, b in ((0, 0), (3, 1), (1, 2), (2, 0))]
        return parts[0] + parts[1] - 2.0 * parts[2] + parts[3]

    x = rng.normal(size=(12, 20))
    x[3, 4], x[5, 6], x[7, 8] = np.nan, np.inf, -np.inf
    graph = traced(program, x)
    assert ops(share_padding(graph)).count("pad") == 0
    (expected,) = interpret(traced(lambda x: program(pg.log(x)), np.exp(x)), np.exp(x))
    (found,) = compile_graph(traced(lambda x: program(pg.log(x)), np.exp(x)), style="native")(
        np.exp(x)
    )
    np.testing.assert_allclose(found, expected, 1e-13)


def test_values_that_are_not_zero_outside_are_padded_themselves():
    def program(x):
        one, other = 2.0 * x, x + 1.0
        return sum(pg.pad(v, (k, 3 - k)) for v in (one, other) for k in range(4))

    x = rng.normal(size=50)
    graph = traced(program, x)
    check(graph, x)
    # Twice x is zero where x is, x + 1 is not.
    changed = share_padding(graph)
    assert ops(changed).count("slice_assign") == 2


def test_padding_of_one_place_and_of_symbolic_sizes_stays():
    x = rng.normal(size=(8, 9))
    graph = traced(lambda x: pg.pad(pg.exp(x), ((1, 1), (2, 0))) * 2.0, x)
    assert share_padding(graph) == graph
    sized = clean_up(lower(pg.trace(
        lambda x: pg.pad(x, (0, 2)) + pg.pad(x, (1, 1)) + pg.pad(x, (2, 0)), pg.spec("N")
    )))  # fmt: skip
    assert share_padding(sized) == sized


def pad_in_many_places(x, scales):
    room = len(scales) - 1
    return sum(pg.pad(x * scale, (k, room - k)) for k, scale in enumerate(scales))


def join_overlapping(x, zero):
    """The sum of `x` with itself two places on, between zeros; `zero` is added to the ends."""
    return pg.pad(pg.concatenate([x[:2] + zero, x[2:] + x[:-2], x[-2:] + zero]), (1, 1))


SPECIAL = np.array([-0.0, -0.0, np.nan, -0.0, np.inf, 0.0, -0.0, -0.0])
EXACT = {
    "infinite factor": (lambda x: pad_in_many_places(x, (1.0, np.inf, 2.0)), SPECIAL),
    "complex factor": (lambda x: pad_in_many_places(x, (1.0, 2j, 2.0)), np.arange(5) - 1j),
    "negative integers": (lambda x: pad_in_many_places(x, (1, -1, 3)), np.arange(-2, 3)),
    "rounded float32": (
        lambda x: pad_in_many_places(x, (np.float32(3e38), np.float32(2), np.float32(-1))),
        np.arange(-2, 3).astype(np.float32),
    ),
    "padding times infinity": (lambda x: pg.sum(pg.pad(x, (2, 1)) * np.inf), np.ones(5)),
    "padding times NaN": (lambda x: pg.sum(pg.pad(x, (2, 1)) * np.nan), np.ones(5)),
    "padding times -2": (lambda x: pg.sum(pg.pad(x, (2, 1)) * -2.0), np.zeros(5)),
    "ends with their zeros": (lambda x: join_overlapping(x, -0.0) * 3.0, SPECIAL),
    "ends of integers": (lambda x: join_overlapping(x, 0) * 3, np.arange(6)),
    "ends without -0.0": (
        lambda x: join_overlapping(x, 0.0) + 3.0 * join_overlapping(x, 0.0), SPECIAL,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", EXACT)
def test_zeros_of_padding_have_the_sign_and_the_products_that_numpy_has(name):
    function, x = EXACT[name]
    graph = traced(function, x)
    changed, kernel = verify(share_padding(graph)), compile_graph(graph, style="native")
    with np.errstate(all="ignore"):
        (expected,), *others = interpret(graph, x), interpret(changed, x), kernel(x)
    for (found,) in others:
        np.testing.assert_array_equal(found, expected, strict=True)
        if found.dtype.kind == "f":
            differ = np.signbit(found) != np.signbit(expected)
            assert np.isnan(expected[differ]).all()


@pytest.mark.parametrize("seed", range(12))
def test_random_sums_of_embedded_parts(seed):
    draw = np.random.default_rng(seed)
    rank = int(draw.integers(1, 4))
    shape = tuple(draw.integers(2, 9, rank).tolist())
    room = draw.integers(0, 4, rank)
    scales = draw.choice([-1.0, 0.5, 2.0, 3.0], 6)
    places = [[int(draw.integers(n + 1)) for n in room] for _ in scales]

    def program(x):
        base, total = pg.sin(x), 0.0
        for scale, starts in zip(scales, places, strict=True):
            widths = [(a, int(n) - a) for a, n in zip(starts, room, strict=True)]
            total = total + pg.pad(base * scale, widths)
        return total, pg.grad(pg.sum(total * total), x), pg.sum(pg.pad(base, widths) ** 2)

    x = draw.normal(size=shape)
    for level in ("exact", "fast"):
        check(traced(program, x, level=level), x)


@pytest.mark.parametrize("shape", [(), (1,), (5,)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_of_one_element_are_computed_for_all_shapes_and_dtypes(shape, dtype):
    def f(z, w):
        x, y = pg.exp(z) * w, pg.sin(z) + w
        return pg.reshape(x, (1, -1)) @ pg.reshape(y, (-1, 1)), pg.linalg.det(pg.eye(3) * 2.0)

    z, w = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    graph = pg.trace(f, z, w)
    found, expected = (pg.compile(graph, target=target)(z, w) for target in ("c", "numpy"))
    rtol = 1e-5 if dtype in ("float32", "complex64") else 1e-13
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol)


def test_numpy_steps_are_equations_of_the_graph_itself(monkeypatch):
    def f(z):
        return pg.reshape(pg.exp(z), (1, 1)) @ pg.reshape(pg.sin(z), (1, 1))

    # As if every equation had been rewritten for loops.
    def renewed(graph):
        body = [Equation(e.op, e.inputs, e.params, e.outputs, e.source) for e in graph.body]
        return Graph(graph.inputs, body, graph.outputs, graph.name, graph.form, graph.titles)

    monkeypatch.setattr("primgraph.codegen.targets.c.driver.prepare_graph", renewed)
    z = np.array(0.3 + 0.25j)
    graph = pg.trace(lambda z: (f(z), pg.linalg.eigvals(pg.eye(2) * z)), z)
    found, expected = (pg.compile(graph, target=target)(z) for target in ("c", "numpy"))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)
