"""What derivatives are allowed beyond exact rewrites, and that nothing else is.

At level "signs" a result has the bits that it had, up to the sign of zeros, for every feed, NaN and
infinities included; but products with powers of two may over- or underflow elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from program_checks import numbers_in
from program_tolerance import same_bits

import primgraph as pg
from primgraph.base.user_lines import Source
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.types import TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives import reductions, shapes
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.transforms import simplify
from primgraph.transforms.pipeline import optimize_graph

Function = Callable[[Value, Value], Value]

DTYPES = [np.dtype(c) for c in "dfe"]
LINE = Source("model.py", 3)
DERIVED = LINE.mark_derivative("cotangent")


def built(function: Function, dtype: np.dtype, count: int, source: Source) -> Graph:
    """The graph of `function` on two operands, all of it from one line."""
    with Builder(source=source) as builder:
        x, y = (builder.input(TensorType((count, 4), dtype), n) for n in "xy")
        return builder.graph([function(x, y)])


def ops(graph: Graph) -> Counter[str]:
    return Counter(eqn.op.name for eqn in graph.body if eqn.op.name != "full")


def total(x: Value) -> Value:
    result: Value = reductions.reduce_sum(x, axes=(1,))
    return result


def turned(x: Value) -> Value:
    result: Value = shapes.permute(x, axes=(1, 0))
    return result


def c(number: float, like: Value) -> Value:
    return filled_constant(number, like.type)


# What only moves signs: function, what is left.
SIGNS: dict[str, tuple[Function, dict[str, int]]] = {
    "x + 0": (lambda x, y: x + c(0.0, x), {}),
    "x - -0": (lambda x, y: x - c(-0.0, x), {}),
    "0 - x": (lambda x, y: c(0.0, x) - x, {"neg": 1}),
    "-(x - y)": (lambda x, y: -(x - y), {"sub": 1}),
    "-x - y": (lambda x, y: -x - y, {"add": 1, "neg": 1}),
    "sum of -x": (lambda x, y: total(-x), {"reduce_sum": 1, "neg": 1}),
    "sum of a product of negated": (
        lambda x, y: total(turned(turned(-x) / turned(y)) * y),
        {"permute": 3, "div": 1, "mul": 1, "reduce_sum": 1, "neg": 1},
    ),
    "x - a sum of -x": (lambda x, y: total(y) - total(-x), {"reduce_sum": 2, "add": 1}),
    "x + a product of matrices": (
        lambda x, y: x + matmul(matmul(y, turned(-x)), y),
        {"permute": 1, "matmul": 2, "sub": 1},
    ),
    "-(x * (3 * y))": (lambda x, y: -(x * (y * 3.0)), {"mul": 2}),
    "-cumsum(pad(-x))": (
        lambda x, y: -reductions.cumsum(
            shapes.pad(-x, low=(0, 1), high=(0, 0)), axis=1, reverse=False
        ),
        {"pad": 1, "cumsum": 1},
    ),
    "sum of one": (
        lambda x, y: total(shapes.reshape(x, shape=(x.shape[0] * 4, 1))), {"reshape": 1}
    ),
    "sum of three equals": (
        lambda x, y: total(shapes.broadcast(total(x), shape=(x.shape[0], 3), new_axes=(1,))),
        {"reduce_sum": 1, "mul": 1},
    ),
}  # fmt: skip

# What multiplies powers of two at once, or later: function, what is left.
POWERS: dict[str, tuple[Function, dict[str, int]]] = {
    "0.125 * (x * 2)": (lambda x, y: c(0.125, x) * (x * 2.0), {"mul": 1}),
    "2 * (x * 0.125)": (lambda x, y: c(2.0, x) * (x * 0.125), {"mul": 1}),
    "0.25 * (x * 0.5)": (lambda x, y: c(0.25, x) * (x * 0.5), {"mul": 1}),
    "4 * (x * 0.3)": (lambda x, y: c(4.0, x) * (x * 0.3), {"mul": 1}),
    "0.3 * (x * 4)": (lambda x, y: c(0.3, x) * (x * 4.0), {"mul": 1}),
    "2 * (x * 0.5)": (lambda x, y: c(2.0, x) * (x * 0.5), {}),
    "(2 * x) * (4 * y)": (lambda x, y: (x * 2.0) * (y * 4.0), {"mul": 2}),
    "sum of 2 * x": (lambda x, y: total(x * 2.0), {"reduce_sum": 1, "mul": 1}),
    "sum of x * (-4 * y)": (lambda x, y: total(x * (y * -4.0)), {"reduce_sum": 1, "mul": 2}),
}

# What moves powers of two from one factor to another: function, what is left.
FACTORS: dict[str, tuple[Function, dict[str, int]]] = {
    "(0.5 * x) * (2 * y)": (lambda x, y: (x * 0.5) * (y * 2.0), {"mul": 1}),
    "(0.5 * x) * (0.3 * y)": (lambda x, y: (x * 0.5) * (y * 0.3), {"mul": 2}),
    "0.5 * (x * (0.3 * y))": (lambda x, y: c(0.5, x) * (x * (y * 0.3)), {"mul": 2}),
}


def specials(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of numbers at which a rewrite shows that is not exact, four in a row."""
    info = np.finfo(dtype)
    odd = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.1, -0.7, 1 / 3, 3.0, 1e-3]
    edge = [info.smallest_subnormal, info.smallest_subnormal * -3, info.max, -info.max]
    near = [info.tiny, info.tiny * 3, info.max / 3, float(info.max) ** 0.5, float(info.tiny) ** 0.5]
    numbers = np.array([*odd, *edge, *near], dtype)
    x, y = (v.reshape(-1) for v in np.meshgrid(numbers, numbers))
    rows = -(-x.size // 4)
    return np.resize(x, (rows, 4)), np.resize(y, (rows, 4))


def same_but_for_zeros(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(same_bits(x, y) | ((x == 0) & (y == 0)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SIGNS)
def test_signs_change_nothing_but_signs_of_zeros(name, dtype):
    function, left = SIGNS[name]
    x, y = specials(dtype)
    if "matrices" in name:
        x, y = x[:30], y[:30]
    graph = built(function, dtype, len(x), DERIVED)
    simple = simplify(graph)
    assert ops(simple) == left
    assert simplify(simple) == simple
    before, after = (interpret(g, x, y)[0] for g in (graph, simple))
    assert np.all(same_but_for_zeros(before, after))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", POWERS)
def test_powers_of_two_differ_only_where_products_with_them_over_or_underflow(name, dtype):
    function, left = POWERS[name]
    x, y = specials(dtype)
    graph = built(function, dtype, len(x), DERIVED)
    simple = simplify(graph)
    assert ops(simple) == left
    assert simplify(simple) == simple
    before, after = (interpret(g, x, y)[0] for g in (graph, simple))
    same = same_but_for_zeros(before, after)
    # What overflowed on the way is finite; nothing is infinite or NaN that was not.
    rescued = np.isnan(before) | (np.isinf(before) & np.isfinite(after))
    info = np.finfo(dtype)
    size = np.maximum(np.abs(before), np.abs(after))
    with np.errstate(all="ignore"):
        # A denormal is right to half of the smallest one, which is then multiplied.
        denormal = np.abs(before - after) <= 16 * float(info.smallest_subnormal)
        denormal &= size <= 16 * float(info.tiny)
    assert np.all(same | rescued | denormal)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FACTORS)
def test_powers_of_two_move_between_factors_where_none_over_or_underflows(name, dtype):
    function, left = FACTORS[name]
    x, y = specials(dtype)
    graph = built(function, dtype, len(x), DERIVED)
    simple = simplify(graph)
    assert ops(simple) == left
    assert simplify(simple) == simple
    before, after = (interpret(g, x, y)[0] for g in (graph, simple))
    numbers = [a for g in (graph, simple) for a in numbers_in(g, [x, y]) if a.shape == x.shape]
    moved = [np.abs(a) < np.finfo(dtype).tiny for a in numbers]
    moved += [np.isinf(a) & np.isfinite(x) & np.isfinite(y) for a in numbers]
    zero = (x == 0) | (y == 0)
    same = same_but_for_zeros(before, after)
    usual = zero & np.isfinite(before) | ~np.any(moved, axis=0)
    assert np.count_nonzero(usual) > 100
    assert np.all(same | ~usual)
    # Nothing is infinite or NaN that was not.
    assert np.all(np.isfinite(after) | ~np.isfinite(before))


@pytest.mark.parametrize("name", [*SIGNS, *POWERS, *FACTORS])
def test_what_is_no_derivative_stays_exact(name):
    function, _ = {**SIGNS, **POWERS, **FACTORS}[name]
    own = built(function, np.dtype(np.float64), 3, LINE)
    derived = built(function, np.dtype(np.float64), 3, DERIVED)
    assert own == derived
    assert simplify(own) != simplify(derived)
    assert simplify(own, "signs") == simplify(derived) == simplify(derived, "signs")
    x, y = specials(np.dtype(np.float64))
    graph = built(function, np.dtype(np.float64), len(x), LINE)
    before, after = (interpret(g, x, y)[0] for g in (graph, simplify(graph)))
    assert np.all(same_bits(before, after))


def test_what_lines_hand_on_is_what_it_is_called():
    """A sign is not taken out of a cotangent by the line that reads it."""
    other = Source("model.py", 2).mark_derivative("cotangent")
    with Builder(source=DERIVED) as builder:
        x, y = (builder.input(TensorType((3, 4), np.dtype(np.float64))) for _ in "xy")
        handed = -(x / y)
        builder.source = other
        graph = builder.graph([total(handed * (y * 2.0))])
    assert ops(simplify(graph)) == {"div": 1, "neg": 1, "mul": 2, "reduce_sum": 1}
    assert ops(simplify(graph, "finite")) == {"div": 1, "mul": 2, "reduce_sum": 1, "neg": 1}


def test_a_program_keeps_its_own_zeros_beside_its_derivatives():
    with pg.Program() as program:
        x, y = pg.data("x", (2,)), pg.data("y", (2,))
        difference = -(x - y)
        loss = pg.sum(difference * difference * 0.5)
        slope = pg.grad(loss, x)
    for style in ("planned", "readable"):
        graph = program.graph([difference, slope])
        kernel = pg.compile(graph, style=style)
        own, found = kernel(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
        assert np.signbit(own[0]), "as it is written: minus zero"
        np.testing.assert_array_equal(found, [0.0, -3.0])
    names = [eqn.op.name for eqn in optimize_graph(program.graph([slope])).body]
    assert names.count("neg") <= 1


def test_levels_are_nested():
    graph = built(lambda x, y: e.sin(x) + c(0.0, x) * (y - y), np.dtype(np.float64), 2, LINE)
    sizes = [len(simplify(graph, level)) for level in ("exact", "signs", "finite", "fast")]
    assert sizes == sorted(sizes, reverse=True)


def test_factors_that_cancel_go_also_where_another_reads_one():
    def function(x: Value, y: Value) -> Value:
        half = x * 0.5
        return half * y + c(2.0, x) * half

    assert ops(simplify(built(function, np.dtype("f8"), 4, DERIVED))) == {"mul": 2, "add": 1}


def test_a_factor_of_what_another_reads_too_stays_where_it_is():
    def f(x, y):
        moved = turned(-x)
        return total(moved) * total(e.exp(moved))

    found = simplify(built(f, DTYPES[0], 4, DERIVED))
    assert ops(found) == {"neg": 1, "permute": 1, "reduce_sum": 2, "exp": 1, "mul": 1}


def test_a_complex_product_with_one_is_dropped_in_derivatives_only():
    """NumPy adds zeros times the parts of z, which are NaN where these are infinite."""
    dtype = np.dtype("complex128")
    for source, kept in ((DERIVED, {}), (LINE, {"mul": 1})):
        graph = built(lambda x, y: x * 1.0, dtype, 2, source)
        assert ops(simplify(graph)) | {"full": 0} == kept | {"full": 0}


def test_a_factor_is_found_through_four_operations_and_no_more():
    for depth, count in ((4, 0), (5, 1)):

        def function(x: Value, y: Value, depth: int = depth) -> Value:
            value = -x
            for _ in range(depth):
                value = reductions.cumsum(value, axis=0, reverse=False)
            return e.sin(x) + value

        assert ops(simplify(built(function, DTYPES[0], 4, DERIVED), "signs"))["neg"] == count
