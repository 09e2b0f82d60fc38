"""Scalar mode: graphs of single numbers give what NumPy does, special values included."""

import itertools
import math
import timeit

import numpy as np
import pytest
from program_tolerance import same_bits

import primgraph as pg
from primgraph.base.user_lines import Source
from primgraph.codegen import compile_graph
from primgraph.codegen.ops.spelling.numbers import WORDS
from primgraph.codegen.ops.table import CARDS
from primgraph.errors import FeedError
from primgraph.ir.builder import Builder
from primgraph.ir.primitive import Primitive, lookup
from primgraph.ir.text import parse
from primgraph.ir.types import BOOL, FLOAT64, TensorType

SPECIALS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.7, 1e-320, 5e-324, -5e-324, 2.3e-308, 1e-200, 1e200, -1e308,
    1.7e308, 709.7, 710.0, -745.0, -746.0, 1e22, math.inf, -math.inf, math.nan,
]  # fmt: skip
PARAMS = {
    "integer_pow": [{"n": n} for n in range(-3, 6)],
    "cast": [{"dtype": FLOAT64}, {"dtype": BOOL}],
    "reshape": [{"shape": (1, 1)}],
    "permute": [{"axes": (0,)}],
    "broadcast": [{"shape": (1, 1), "new_axes": (0,)}],
    "reverse": [{"axes": (0,)}],
    "concat": [{"axis": 0}],
    "placed": [
        {"shape": (3,), "starts": (1,), "strides": ((1,),)},
        {"shape": (2, 2), "starts": (3,), "strides": ((4,),)},
    ],
    **{f"reduce_{n}": [{"axes": (0,)}, {"axes": ()}] for n in ("sum", "prod", "max", "min")},
}
# What is written by cases of its own, further below.
OTHERS = {"constant", "pad", "root_of_squares", "slice", "slice_assign", "split"}
# Tested in test_small_matrices.py.
OTHERS |= {"cholesky", "inv", "solve", "triangular_solve"}
NAMES = sorted({op.name for op, card in CARDS.items() if card.scalar is not None} - OTHERS)
# Exact functions, whatever the C library's are like.
EXACT = {"add", "sub", "mul", "div", "neg", "abs", "sqrt", "rsqrt", "maximum", "minimum", "tanh"}


def one(dtype=FLOAT64) -> TensorType:
    return TensorType((1,), dtype)


def graphs_of(name):
    """Graphs of one equation with that op, for floats and booleans where it has both."""
    op = lookup(name)
    assert isinstance(op, Primitive)
    if name == "full":
        for value in SPECIALS:
            builder = Builder("f")
            with builder:
                made = op(value=value, shape=(1,), dtype=FLOAT64)
            yield builder.graph([made])
        return
    shape = (1, 1) if name == "matmul" else (1,)
    for dtype in (FLOAT64, BOOL):
        for count in (1, 2):
            types = [TensorType(shape, dtype)] * count
            if name == "select":
                types = [one(BOOL), one(dtype), one(dtype)]
            for params in PARAMS.get(name, [{}]):
                builder = Builder("f")
                inputs = [builder.input(t, f"x{i}") for i, t in enumerate(types)]
                try:
                    with builder:
                        made = op(*inputs, **params)
                except (TypeError, ValueError):
                    continue
                yield builder.graph([made])


def by_numpy(kernel, feeds):
    """What the code with buffers computes."""
    context, workspace = kernel._code.new_workspace()
    return context.run(kernel._code.run, workspace, list(feeds))


@pytest.mark.parametrize("name", NAMES)
def test_an_op_of_single_numbers_is_as_in_numpy(name):
    compared = 0
    for graph in graphs_of(name):
        kernel = compile_graph(graph)
        if kernel._code.scalar is None:
            continue
        choices = [SPECIALS if v.dtype == FLOAT64 else [False, True] for v in graph.inputs]
        for numbers in itertools.product(*choices):
            feeds = [
                np.full(v.shape, n, v.dtype) for v, n in zip(graph.inputs, numbers, strict=True)
            ]
            with np.errstate(all="raise"):
                (found,) = kernel(*feeds)
            (known,) = by_numpy(kernel, feeds)
            compared += 1
            assert (found.dtype, found.shape) == (known.dtype, known.shape)
            assert found.flags.writeable
            assert close(found, known, name in EXACT), (numbers, found, known)
    assert compared


def close(found, known, exact) -> bool:
    """Equal, the sign of zeros and NaNs included, or next to each other."""
    if known.dtype == BOOL or not np.isfinite(known).all():
        return bool(np.array_equal(found, known, equal_nan=known.dtype != BOOL))
    if not np.array_equal(np.signbit(found), np.signbit(known)):
        return False
    return bool(np.all(np.abs(found - known) <= (0 if exact else np.spacing(np.abs(known)))))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tan", "cosh", "arcsin",
                                  "arccos", "arctan", "sin", "cos", "tanh"])  # fmt: skip
def test_functions_are_within_one_unit_in_the_last_place(name):
    (graph,) = graphs_of(name)
    kernel = compile_graph(graph)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 1)) * 10.0 ** rng.uniform(-8, 2.5, (20_000, 1))
    x = x % 1 if name in ("arcsin", "arccos") else np.abs(x) if "log" in name else x
    found = np.array([kernel(v)[0] for v in x])
    with np.errstate(all="ignore"):
        known = np.array([by_numpy(kernel, [v])[0] for v in x])
    finite = np.isfinite(known)
    assert np.array_equal(found[~finite], known[~finite], equal_nan=True)
    gap = np.abs(found[finite] - known[finite])
    assert np.all(gap <= np.spacing(np.abs(known[finite])) * (name != "tanh"))


MIXED = """graph f(%x: f64[], %y: f64[1,1]) {
  %0: f64[1,1] = reshape(%x, shape=(1, 1))
  %1: f64[1,1] = div(%0, %y)
  %2: bool[1,1] = less(%1, %0)
  %3: f64[1,1] = exp(%y)
  %4: f64[1,1] = select(%2, %3, %1)
  %5: f64[] = reduce_sum(%4, axes=(0, 1))
  %6: f64[1,1] = full(value=-inf, shape=(1, 1), dtype=f64)
  %7: f64[1,1] = maximum(%6, %4)
  %8: f64[1,1] = constant(value=f64[1,1]{-2.5})
  %9: f64[1,1] = sub(%8, %7)
  return %2, %5, %9, %x, %9, %8
}"""


def test_a_program_of_single_numbers_of_any_rank():
    graph = parse(MIXED)
    kernel = compile_graph(graph)
    assert kernel._code.scalar is not None
    for x, y in itertools.product(SPECIALS, SPECIALS):
        feeds = [np.array(x), np.array([[y]])]
        results = kernel(*feeds)
        with np.errstate(all="ignore"):
            known = by_numpy(kernel, feeds)
        for found, expected, value in zip(results, known, graph.outputs, strict=True):
            assert found.shape == value.shape
            assert found.dtype == value.dtype
            np.testing.assert_allclose(found, expected, rtol=5e-16, atol=0)
        arrays = [*feeds, *results]
        for a, b in itertools.combinations(arrays, 2):
            assert not np.shares_memory(a, b)


def test_feeds_of_other_kinds_give_the_same_bits():
    kernel = compile_graph(parse(MIXED))
    wanted = [r.tobytes() for r in kernel(np.array(0.3), np.array([[0.7]]))]
    for x, y in (
        (0.3, [[0.7]]),
        (np.array(0.3, ">f8"), np.array([[0.7]])),
        (0.3, np.full((1, 1), 0.7)),
    ):
        assert [r.tobytes() for r in kernel(x, y)] == wanted
        assert [r.tobytes() for r in kernel(x, y, borrow=True)] == wanted
    with pytest.raises(FeedError):
        kernel(0.3)
    with pytest.raises(FeedError):
        kernel(0.3, 0.7)


@pytest.mark.parametrize(
    "equation",
    [
        "f32[1] = cast(%x, dtype=f32)",
        "f64[1] = sinh(%x)",
        "f64[101,1] = broadcast(%x, shape=(101, 1), new_axes=(0,))",
    ],
)
def test_what_python_does_not_do_as_numpy_stays_with_numpy(equation):
    type = equation.split(" ")[0]
    graph = parse(f"graph f(%x: f64[1]) {{\n%0: {equation}\n%1: {type} = neg(%0)\nreturn %1\n}}")
    kernel = compile_graph(graph)
    assert kernel._code.scalar is None
    assert kernel(np.ones(1))[0].dtype == graph.outputs[0].dtype


# Short vectors, element by element.

PARTS = """graph f(%x: f64[6], %y: f64[2,3]) {
  %0: f64[3] = slice(%x, starts=(5,), sizes=(3,), steps=(-2,))
  %1: f64[1,3] = slice(%y, starts=(1, 0), sizes=(1, 3), steps=(1, 1))
  %2: f64[3] = reshape(%1, shape=(3,))
  %3: f64[3] = mul(%0, %2)
  %4: f64[3] = reverse(%3, axes=(0,))
  %5: f64[3] = add(%4, %2)
  %6: f64[] = reduce_sum(%5, axes=(0,))
  %7: f64[2,3] = broadcast(%5, shape=(2, 3), new_axes=(0,))
  %8: f64[2,3] = div(%7, %y)
  %9: f64[3,2] = permute(%8, axes=(1, 0))
  %10: f64[3] = reduce_sum(%9, axes=(1,))
  %11: f64[2], %12: f64[4] = split(%x, sizes=(2, 4), axis=0)
  %13: f64[6] = pad(%12, low=(1,), high=(1,))
  %14: f64[6] = slice_assign(%13, %11, starts=(0,), steps=(5,))
  %15: f64[9] = concat(%14, %10, axis=0)
  %16: bool[9] = equal(%15, %15)
  %19: bool[11] = pad(%16, low=(2,), high=(0,))
  %17: f64[9] = full(value=-2.5, shape=(9,), dtype=f64)
  %18: f64[9] = select(%16, %15, %17)
  return %6, %8, %18, %16, %17, %9, %19, %13
}"""


def bits(arrays) -> list[tuple[object, ...]]:
    return [(a.shape, a.dtype, a.tobytes()) for a in arrays]


def test_short_vectors_are_taken_apart_and_put_together_to_the_bit():
    kernel = compile_graph(parse(PARTS))
    assert kernel._code.scalar is not None
    rng = np.random.default_rng(0)
    for k in range(200):
        x, y = (rng.normal(size=s) * 10.0 ** rng.integers(-3, 4, s) for s in ((6,), (2, 3)))
        if k % 2:
            x[rng.integers(6)], y[1, rng.integers(3)] = rng.choice(SPECIALS), rng.choice(SPECIALS)
        found, known = kernel(x, y), by_numpy(kernel, [x, y])
        for a, b in zip(found, known, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.all(same_bits(a, b))
        for a, b in itertools.combinations([x, y, *found], 2):
            assert not np.shares_memory(a, b)


@pytest.mark.parametrize(("dtype", "value"), [("bool", True), ("f64", -0.0)])
def test_elements_are_moved_within_and_between_arrays_without_axes(dtype, value):
    graph = parse(f"""
graph f(%0: {dtype}[], %1: {dtype}[]) {{
  %2: {dtype}[] = slice_assign(%0, %1, starts=(), steps=())
  %3: {dtype}[] = pad(%2, low=(), high=())
  %4: {dtype}[1] = reshape(%3, shape=(1,))
  return %3, %4
}}""")
    arrays = [np.array(type(value)(not value)), np.array(value)]
    kernel = compile_graph(graph)
    assert kernel._code.scalar is not None
    for found, expected in zip(kernel(*arrays), pg.interpret(graph, *arrays), strict=True):
        assert same_bits(found, expected)


def test_strided_and_transposed_feeds_are_read_in_the_order_of_their_elements():
    kernel = compile_graph(parse(PARTS))
    x, y = np.arange(1.0, 7.0), np.arange(2.0, 8.0).reshape(2, 3)
    wanted = bits(kernel(x, y))
    assert bits(kernel(np.repeat(x, 2)[::2], np.asfortranarray(y))) == wanted
    assert bits(kernel(x[::-1].copy()[::-1], y.T.copy().T)) == wanted


@pytest.mark.parametrize("count", [2, 3, 7, 8, 9, 12])
def test_sums_add_in_the_order_of_numpy(count):
    text = "graph f(%x: f64[{0}]) {{\n%0: f64[{1}] = reduce_sum(%x, axes={2})\nreturn %0\n}}"
    whole = compile_graph(parse(text.format(count, "", "(0,)")))
    rows = compile_graph(parse(text.format(f"2,{count}", "2", "(1,)")))
    assert whole._code.scalar is not None
    # Of several long rows the sums are dot products.
    assert (rows._code.scalar is not None) == (count < 8)
    zeros = np.full(count, -0.0)
    assert not np.signbit(np.sum(zeros))
    assert not np.signbit(whole(zeros)[0])
    rng = np.random.default_rng(count)
    for _ in range(200):
        x = rng.normal(size=(2, count)) * 10.0 ** rng.integers(-8, 8, (2, count))
        assert whole(x[0])[0] == np.sum(x[0])
        assert count >= 8 or np.array_equal(rows(x)[0], np.sum(x, axis=1))


def test_vectors_whose_functions_are_faster_as_arrays_stay_arrays():
    def scalar(text: str) -> bool:
        type = "f64[20]" if "20" in text else "f64[4]"
        body = f"%0: {type} = {text.split()[0]}(%x)\nreturn %0"
        return compile_graph(parse(f"graph f(%x: {type}) {{\n{body}\n}}"))._code.scalar is not None

    assert scalar("exp 4")
    assert not scalar("exp 20")
    assert not scalar("tanh 4")


def test_a_short_problem_written_by_elements_is_fast_and_its_gradient_one_array():
    def function(x):
        return (x[0] * x[1] + pg.sin(x[2]) * x[3] - x[4] / x[5]) ** 2 + (x[0] - x[2]) ** 2

    graph = pg.trace(lambda x: [function(x), pg.grad(function(x), x)], pg.spec(6))
    kernel = compile_graph(pg.compile(graph).graph)
    assert kernel._code.scalar is not None
    assert [e.op.name for e in kernel.graph.body].count("concat") == 1
    x = np.arange(1.0, 7.0)
    for found, known in zip(kernel(x), by_numpy(kernel, [x]), strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-15)

    def seconds(call) -> float:
        return min(timeit.repeat(call, number=200, repeat=15))

    assert 3 * seconds(lambda: kernel(x)) < seconds(lambda: by_numpy(kernel, [x]))


@pytest.mark.parametrize("kind", [float, np.float64, int])
def test_numbers_are_as_good_as_arrays_of_one(kind, monkeypatch):
    """What small problems are fed takes no detour by NumPy's conversions."""
    graph = pg.trace(lambda a, b: [pg.sin(a) * b + a, pg.maximum(a, b)], pg.spec(()), pg.spec(()))
    kernel = pg.compile(graph)
    assert kernel._code.scalar is not None
    expected = kernel(np.array(3.0), np.array(-0.0 if kind is not int else 0.0))
    monkeypatch.setattr("primgraph.codegen.runtime.feeds._as_base_array", None)
    monkeypatch.setattr(kernel._code, "run", None)
    found = kernel(kind(3), kind(-0.0))
    assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]
    assert all(x.__class__ is np.ndarray for x in found)
    assert np.isnan(kernel(float("nan"), 1.0)[0])


def statements_of(graph) -> str:
    """The statements of the scalar code of a graph."""
    return compile_graph(graph).planned_source.partition("def scalar")[2]


def test_zeros_of_derivatives_have_any_sign_and_those_of_programs_numpys():
    def arm(angles):
        x, y = angles
        tip = pg.stack([pg.cos(x), pg.sin(x)]) + 0.0 * pg.cos(y)
        return tip, pg.jacobian(tip, angles)

    graph = pg.compile(pg.trace(arm, pg.spec(2))).graph
    tip, slopes = statements_of(graph).split("r1 = ")
    assert "math_cos(x0_1)" in tip
    assert "math_sin(x0_1)" not in tip + slopes
    angles = np.array([-0.0, 2.0])
    kernel = pg.compile(graph)
    found, known = kernel(angles), by_numpy(kernel.flat, [angles])
    assert same_bits(found[0], known[0]).all()
    assert np.array_equal(found[1], known[1])
    angles[1] = np.inf
    assert np.isnan(pg.compile(graph)(angles)[1]).any()


def test_equal_graphs_of_a_program_and_of_a_derivative_do_not_share_code():
    text = """graph f(%x: f64[], %y: f64[]) {
      %0: f64[] = full(value=0.0, shape=(), dtype=f64)
      %1: f64[] = mul(%0, %x)
      %2: f64[] = add(%1, %y)
      return %2
    }"""
    program, derivative = parse(text), parse(text)
    line = Source("model.py", 1).mark_derivative("tangent")
    for eqn in derivative.body:
        object.__setattr__(eqn, "source", line)
    kernels = [compile_graph(g) for g in (program, derivative)]
    assert program == derivative
    assert kernels[0]._code is not kernels[1]._code
    (found,) = kernels[0](np.array(-1.0), np.array(-0.0))
    assert np.signbit(found)


@pytest.mark.parametrize(
    ("expression", "added"),
    [
        (lambda x, y: pg.cos(x) * 0.5 + (y + 0.0), 1),
        (lambda x, y: (pg.cos(x) + 2.0) * pg.cos(y) - (y + 0.0), 1),
        (lambda x, y: pg.sin(x) + (y + 0.0), 2),
        (lambda x, y: pg.sin(x) * pg.cos(y) - (y + 0.0), 1),
    ],
)
def test_zeros_are_not_added_beside_numbers_that_are_never_zero(expression, added):
    kernel = compile_graph(pg.trace(expression, pg.spec(()), pg.spec(())))
    assert statements_of(kernel.graph).count("+") == added
    for x, y in itertools.product([0.0, -0.0, 1.0, math.pi / 2, 1e22], repeat=2):
        feeds = [np.array(x), np.array(y)]
        assert same_bits(kernel(*feeds), by_numpy(kernel, feeds))


def test_the_cosine_is_nowhere_zero():
    # The float that is closest to a zero of the cosine.
    assert abs(math.cos(6381956970095103 * 2.0**797)) > WORDS["cos"].least > 0
