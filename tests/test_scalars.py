"""Scalar mode: graphs of single numbers give what NumPy does, special values included."""

import itertools
import math

import numpy as np
import pytest

from primgraph.codegen import compile_graph
from primgraph.codegen.scalars import _RULES
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
    **{f"reduce_{n}": [{"axes": (0,)}, {"axes": ()}] for n in ("sum", "prod", "max", "min")},
}
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


@pytest.mark.parametrize("name", sorted(set(_RULES) - {"constant"}))
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
    if np.signbit(found) != np.signbit(known):
        return False
    return bool(np.abs(found - known) <= (0 if exact else np.spacing(np.abs(known))))


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
    ["f32[1] = cast(%x, dtype=f32)", "f64[2] = concat(%x, %x, axis=0)", "f64[1] = sinh(%x)"],
)
def test_what_python_does_not_do_as_numpy_stays_with_numpy(equation):
    type = equation.split(" ")[0]
    graph = parse(f"graph f(%x: f64[1]) {{\n%0: {equation}\n%1: {type} = neg(%0)\nreturn %1\n}}")
    kernel = compile_graph(graph)
    assert kernel._code.scalar is None
    assert kernel(np.ones(1))[0].dtype == graph.outputs[0].dtype
