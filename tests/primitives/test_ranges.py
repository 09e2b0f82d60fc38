"""Bounds of values and slopes: they hold what is computed, and are as narrow as they have to be."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from derive import build

from primgraph.errors import PrimgraphError
from primgraph.ir.builder import Builder
from primgraph.ir.facts.ranges import (
    ANYTHING,
    DOMAIN,
    FINITE_SLOPE,
    INF,
    RANGE,
    RANGE_AT,
    REAL,
    Range,
)
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, registered
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives import reductions as r
from primgraph.primitives.constants import full, zeros_like
from primgraph.primitives.logic import equal, greater, greater_equal, less, less_equal, select
from primgraph.primitives.reductions import reduce_max, reduce_sum, root_of_squares
from primgraph.primitives.shapes import broadcast, pad
from primgraph.transforms.dataflow.value_bounds import ranges_of, slope_stays_finite
from primgraph.transforms.linearize import linearize

# As sums and products of bounds, results may be off by rounding.
_ROUNDING = 1e-12

BOUNDED = [
    Range(-2.0, -0.5), Range(-1.0, 2.0), Range(-0.75, 0.75), Range(0.0, 1.0), Range(0.5, 3.0),
    Range(1.5, 2.5), Range(0.0, 0.0), Range(0.25), Range(0.0), Range(high=-0.25), REAL,
]  # fmt: skip
FLAGGED = [
    Range(-1.0, 1.0, below=True), Range(0.5, 2.0, above=True), Range(0.0, 1.0, nan=True), ANYTHING,
    Range(1.0, 1.0, below=True, above=True),
]  # fmt: skip


def _elements(x: Range) -> list[float]:
    """Numbers of a range: its ends, some between, and what its flags allow."""
    low, high = max(x.low, -700.0), min(x.high, 700.0)
    found = {low, high, (low + high) / 2, low + (high - low) / 300, high - (high - low) / 300}
    found |= {v for v in (-20.0, -1.0, 0.0, 1.0, 20.0) if low <= v <= high}
    flags = ((x.below, -INF), (x.above, INF), (x.nan, math.nan))
    return [*sorted(found), *(v for allowed, v in flags if allowed)]


def _applied(op: Any, count: int, size: int, **params: Any) -> tuple[Graph, Equation]:
    """The graph of one equation on vectors."""
    builder = Builder()
    inputs = [builder.input(TensorType((size,), FLOAT64)) for _ in range(count)]
    with builder:
        graph = builder.graph([op(*inputs, **params)])
    return graph, graph.body[-1]


def _count(op: Primitive) -> int:
    """How many operands an elementwise function has; 0 if it takes other than one or two floats."""
    for count in (1, 2):
        try:
            op.infer((TensorType((1,), FLOAT64),) * count, {})
        except PrimgraphError:
            continue
        return count
    return 0


ELEMENTWISE = [
    op
    for op in registered().values()
    if isinstance(op, Primitive) and op.elementwise and _count(op)
    if any(op.fact(kind) for kind in (RANGE, RANGE_AT, DOMAIN, FINITE_SLOPE))
]
GIVEN = [(x,) for x in (*BOUNDED, *FLAGGED)]
PAIRS = [*product(BOUNDED, BOUNDED), *product(FLAGGED, (BOUNDED[1], BOUNDED[4], *FLAGGED))]
PAIRS += [(y, x) for x, y in PAIRS]


def _holds(known: Range, results: Any) -> bool:
    room = _ROUNDING * (1 + np.abs(np.where(np.isfinite(results), results, 0.0)))
    inside = (known.low - room <= results) & (results <= known.high + room)
    allowed = (
        (np.isfinite(results) & inside)
        | (np.isneginf(results) & known.below)
        | (np.isposinf(results) & known.above)
        | (np.isnan(results) & known.nan)
    )
    return bool(np.all(allowed))


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_results_lie_in_their_range(op: Primitive) -> None:
    """But for what overflows: polynomials are taken not to."""
    for given in GIVEN if _count(op) == 1 else PAIRS:
        elements = [np.array(c) for c in zip(*product(*map(_elements, given)), strict=True)]
        graph, eqn = _applied(op, len(given), len(elements[0]))
        known = ranges_of(graph, dict(zip(graph.inputs, given, strict=True)))[eqn.output]
        (results,) = interpret(graph, *elements)
        assert _holds(known, results), (given, known, elements, results)


def test_squares_lie_in_their_range() -> None:
    for x in (*BOUNDED, *FLAGGED):
        elements = np.array(_elements(x))
        graph, eqn = _applied(lambda v: e.mul(v, v), 1, len(elements))
        known = ranges_of(graph, {graph.inputs[0]: x})[eqn.output]
        assert _holds(known, elements * elements), (x, known)
        assert known.low >= 0, (x, known)
        assert not known.below, (x, known)


def test_roots_of_squares_are_not_negative() -> None:
    def root(x: Value) -> Value:
        return root_of_squares(x, reduce_sum(x * x, axes=(0,)), axes=(0,), divisor=1.0)

    graph = build(root, "f64[3]")
    for given in (Range(-1.0, 1.0), ANYTHING):
        known = ranges_of(graph, {graph.inputs[0]: given})[graph.outputs[0]]
        assert (known.low, known.below) == (0.0, False)
        assert known.finite is given.finite


@pytest.mark.parametrize("n", [-3, -2, -1, 0, 2, 3, 4])
def test_powers_lie_in_their_range(n: int) -> None:
    for x in (*BOUNDED, *FLAGGED):
        elements = np.array(_elements(x))
        graph, eqn = _applied(e.integer_pow, 1, len(elements), n=n)
        known = ranges_of(graph, {graph.inputs[0]: x})[eqn.output]
        (results,) = interpret(graph, elements)
        assert _holds(known, results), (x, known, results)
        positive = x.finite and (x.low > 0 or (n >= 0 and (x.low >= 0 or n % 2 == 0)))
        assert known.finite and known.low >= 0 if positive else True, (x, known)


NARROW = {
    "add": (e.add, [Range(1, 2), Range(-3, 5)], Range(-2, 7)),
    "sub": (e.sub, [Range(1, 2), Range(-3, 5)], Range(-4, 5)),
    "add to what overflows": (e.add, [Range(INF, INF), REAL], REAL),
    "add to anything real": (e.add, [REAL, Range(1, 2)], REAL),
    "neg": (e.neg, [Range(-1, 2)], Range(-2, 1)),
    "mul": (e.mul, [Range(-1, 2), Range(-3, 5)], Range(-6, 10)),
    "mul by zero": (e.mul, [Range(0, 0), REAL], Range(0, 0)),
    "div": (e.div, [Range(-1, 2), Range(0.5, 4)], Range(-2, 4)),
    "div by a negative": (e.div, [Range(-1, 2), Range(-4, -0.5)], Range(-4, 2)),
    "abs": (e.abs_, [Range(-3, 2)], Range(0, 3)),
    "abs of a negative": (e.abs_, [Range(-3, -2)], Range(2, 3)),
    "abs of infinities": (e.abs_, [Range(-3, 2, below=True)], Range(0, 3, above=True)),
    "power": (e.power, [Range(0.25, 0.5), Range(-1, 1)], Range(0.0)),
    "power of zero": (e.power, [Range(0, 1), Range(0, 1)], Range(0.0)),
    "power of a large number": (e.power, [Range(0.5), Range(-2, 2)], Range(0.0)),
    "large power of a small number": (e.power, [Range(0, 1), Range(0)], Range(0.0)),
    "large power": (e.power, [Range(0, 1.5), Range(0)], ANYTHING),
    "small power": (e.power, [Range(1, 1.5), Range(high=0)], Range(0.0)),
    "small power of a small number": (e.power, [Range(0.9, 1.5), Range(high=0)], ANYTHING),
    "sqrt": (e.sqrt, [Range(0, 4)], Range(0, 2)),
    "sqrt of a positive": (e.sqrt, [Range(0.25)], Range(0.5)),
    "rsqrt": (e.rsqrt, [Range(0.25, 9)], Range(0, 2)),
    "log": (e.log, [Range(0.5, math.e)], Range(math.log(0.5), 1)),
    "log1p": (e.log1p, [Range(-0.5, math.e - 1)], Range(math.log(0.5), 1)),
    "exp": (e.exp, [Range(0, 1)], Range(1, math.e)),
    "exp of -inf": (e.exp, [Range(0, 1, below=True)], Range(0, math.e)),
    "exp of a large number": (e.exp, [Range(0, 1000)], Range(0, above=True)),
    "tanh": (e.tanh, [ANYTHING], Range(-1, 1, nan=True)),
    "erf": (e.erf, [REAL], Range(-1, 1)),
    "erfc": (e.erfc, [REAL], Range(0, 2)),
    "sigmoid": (e.sigmoid, [REAL], Range(0, 1)),
    "sign": (e.sign, [REAL], Range(-1, 1)),
    "arctan": (e.arctan, [REAL], Range(-2, 2)),
    "arctan2": (e.arctan2, [REAL, REAL], Range(-math.pi, math.pi)),
    "sin": (e.sin, [REAL], Range(-1, 1)),
    "cos": (e.cos, [REAL], Range(-1, 1)),
    "maximum": (e.maximum, [Range(-1, 4), Range(1, 2)], Range(1, 4)),
    "maximum of infinities": (e.maximum, [Range(2, 3, below=True), Range(0, 1)], Range(0, 3)),
    "maximum of two infinities": (
        e.maximum, [Range(2, 3, below=True), Range(0, 1, below=True)], Range(0, 3, below=True),
    ),
    "minimum": (e.minimum, [Range(-1, 4), Range(1, 2)], Range(-1, 2)),
    "minimum of infinities": (e.minimum, [Range(0, 1, above=True), Range(2, 3)], Range(0, 3)),
    "remainder": (e.remainder, [REAL, Range(1, 2)], REAL),
    "logaddexp": (e.logaddexp, [Range(-1, 4), Range(1, 2)], Range(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_ranges_are_narrow(name: str) -> None:
    op, given, expected = NARROW[name]
    graph, eqn = _applied(op, len(given), 3)
    found = ranges_of(graph, dict(zip(graph.inputs, given, strict=True)))[eqn.output]
    np.testing.assert_allclose([found.low, found.high], [expected.low, expected.high], rtol=1e-14)
    flags = [(x.below, x.above, x.nan) for x in (found, expected)]
    assert flags[0] == flags[1]


def _ranges(function: Any, *given: Range, shape: tuple[int, ...] = (2, 3)) -> Range:
    """The range of what `function` makes of inputs of that shape."""
    builder = Builder()
    inputs = [builder.input(TensorType(shape, FLOAT64)) for _ in given]
    with builder:
        result = function(*inputs)
    graph = builder.graph([result])
    return ranges_of(graph, dict(zip(graph.inputs, given, strict=True)))[graph.outputs[0]]


def test_sums_products_and_what_is_padded() -> None:
    x = Range(-1.0, 2.0)
    assert _ranges(lambda v: r.reduce_sum(v, axes=(0, 1)), x) == Range(-6.0, 12.0)
    assert _ranges(lambda v: r.reduce_sum(v, axes=(0,)), ANYTHING).nan
    assert _ranges(lambda v: r.reduce_sum(v, axes=(0,)), Range(below=True, above=True)).nan
    assert not _ranges(lambda v: r.reduce_sum(v, axes=(0,)), Range(0.0, above=True)).nan
    assert _ranges(lambda v: r.cumsum(v, axis=0, reverse=False), x) == REAL
    assert _ranges(lambda v: r.cumsum(v, axis=0, reverse=False), Range(1.0, 2.0)) == Range(1.0)
    assert _ranges(lambda v: r.cumsum(v, axis=0, reverse=False), Range(below=True, above=True)).nan
    assert not _ranges(lambda v: r.cumsum(v, axis=0, reverse=False), Range(0.0, above=True)).nan
    assert _ranges(lambda v: r.reduce_prod(v, axes=(0,)), Range(0.0, 2.0)) == Range(0.0)
    assert _ranges(lambda v: r.reduce_prod(v, axes=(0,)), x) == REAL
    assert _ranges(lambda v: r.reduce_prod(v, axes=(0,)), ANYTHING) == ANYTHING
    assert _ranges(lambda v: pad(v, low=(1, 0), high=(0, 0)), Range(1.0, 2.0)) == Range(0.0, 2.0)
    assert _ranges(lambda v: pad(v, low=(1, 0), high=(0, 0)), Range(-2.0, -1.0)) == Range(-2.0, 0.0)
    assert _ranges(lambda v: r.reduce_max(v, axes=(0,)), x) == x


# The comparisons, and whether what is chosen is then at least one.
COMPARED = [(greater, True), (greater_equal, True), (less, False), (less_equal, False)]


@pytest.mark.parametrize(("op", "at_least"), COMPARED, ids=lambda p: getattr(p, "name", str(p)))
def test_what_is_compared_with_a_number_is_bounded_where_it_is_chosen(
    op: Primitive, at_least: bool
) -> None:
    bounds = Range(1.0, 5.0), Range(-5.0, 1.0)
    above, below = bounds if at_least else bounds[::-1]
    x = Range(-5.0, 5.0)

    assert _ranges(lambda v: select(op(v, _ones(v)), v, _ones(v)), x) == above
    assert _ranges(lambda v: select(op(v, _ones(v)), _ones(v), v), x) == below
    assert _ranges(lambda v: select(op(_ones(v), v), v, _ones(v)), x) == below
    assert _ranges(lambda v: select(op(_ones(v), v), _ones(v), v), x) == above
    twice = Range(-10.0, 10.0)
    assert _ranges(lambda v: select(op(v, _ones(v)), _ones(v), v * 2.0), x) == twice


def _ones(like: Value) -> Value:
    result: Value = full(value=1.0, shape=like.shape, dtype=like.dtype)
    return result


def test_what_is_selected_is_of_either_operand_or_of_the_one_that_is_always_taken() -> None:
    x, y = Range(1.0, 2.0), Range(-3.0, -2.0)
    assert _ranges(lambda v, w: select(greater(v, w), v, w), x, y) == Range(-3.0, 2.0)
    assert _ranges(lambda v, w: select(equal(v, v), v, w), x, y) == x
    assert _ranges(lambda v, w: select(equal(v, w), v, w), x, y) == Range(-3.0, 2.0)
    assert _ranges(lambda v, w: select(equal(v, v), v, w), ANYTHING, y) == ANYTHING


def _shift(x: Value, largest: Value | None = None, bound: float = INF) -> Value:
    """The largest element of each row, and 0 where that is not finite, as in softmax."""
    best = reduce_max(x if largest is None else largest, axes=(1,))
    size = full(value=bound, shape=best.shape, dtype=best.dtype)
    safe = select(less(e.abs_(best), size), best, zeros_like(best))
    result: Value = broadcast(safe, shape=x.shape, new_axes=(1,))
    return result


def _weights(x: Value) -> Value:
    result: Value = reduce_sum(e.exp(x - _shift(x)), axes=(1,))
    return result


def test_what_is_less_its_own_largest_is_not_positive_and_its_exponentials_make_a_sum() -> None:
    below = Range(-5.0, 5.0, below=True)
    assert _ranges(lambda v: v - _shift(v), Range(-5.0, 5.0)) == Range(high=0.0, peak=(1,))
    assert _ranges(lambda v: v - _shift(v), below) == Range(high=0.0, below=True)
    assert _ranges(lambda v: v - _shift(v), ANYTHING).nan
    assert _ranges(_weights, Range(-5.0, 5.0)) == Range(1.0, 3.0)
    # Where all are -inf the shift is 0, and so is the sum.
    assert _ranges(_weights, below) == Range(0.0, 3.0)
    assert _ranges(_shift, ANYTHING, shape=(3, 3)).finite
    wrong = {
        "of another": lambda v: v - _shift(v, v * 2.0),
        "where it is small": lambda v: v - _shift(v, bound=1.0),
        "the other way round": lambda v: _shift(v) - v,
        "of other axes": lambda v: v - broadcast(reduce_max(v, axes=(0,)), shape=(3, 3),
                                                 new_axes=(1,)),
    }  # fmt: skip
    for name, function in wrong.items():
        assert _ranges(function, Range(-5.0, 5.0), shape=(3, 3)).peak is None, name
        assert _ranges(function, Range(-5.0, 5.0), shape=(3, 3)).high > 0, name


# Slopes.


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_slopes_that_stay_finite_are_finite(op: Primitive) -> None:
    count = _count(op)
    for given in [(x,) for x in BOUNDED] if count == 1 else product(BOUNDED, BOUNDED):
        elements = [np.array(c) for c in zip(*product(*map(_elements, given)), strict=True)]
        graph, eqn = _applied(op, count, len(elements[0]))
        known = ranges_of(graph, dict(zip(graph.inputs, given, strict=True)))
        ones = np.ones_like(elements[0])
        for i in range(count):
            if slope_stays_finite(eqn, i, known):
                slope = interpret(linearize(graph, [i]), *elements, ones)[-1]
                assert np.all(np.isfinite(slope)), (i, given, slope)


# What is finite everywhere in such ranges, which may touch none of the numbers behind these.
TAME = [
    (e.log, 0, [Range(1e-9, 1.0)], [Range(0.0, 1.0)]),
    (e.log1p, 0, [Range(-0.999, 1.0)], [Range(-1.0, 1.0)]),
    (e.sqrt, 0, [Range(1e-9)], [Range(0.0)]),
    (e.rsqrt, 0, [Range(1e-9)], [Range(0.0)]),
    (e.div, 1, [REAL, Range(1e-9)], [REAL, Range(0.0)]),
    (e.div, 0, [REAL, Range(high=-1e-9)], [REAL, Range(-1.0, 1.0)]),
    (e.remainder, 0, [REAL, REAL], None),
    (e.remainder, 1, [REAL, Range(1e-9)], [REAL, Range(0.0)]),
    (e.power, 1, [Range(1e-9), Range(-2, 2)], [Range(0.0), Range(-2, 2)]),
    (e.power, 0, [Range(0.5, 1), Range(0)], [Range(0.5, 1.5), Range(0)]),
    (e.power, 0, [Range(1), Range(high=0)], [Range(0.5), Range(high=0)]),
    (e.sinh, 0, [Range(-79.0, 79.0)], [Range(-79.0, 80.0)]),
    (e.cosh, 0, [Range(-79.0, 79.0)], [Range(-80.0, 79.0)]),
    (e.tan, 0, [REAL], [ANYTHING]),
    (e.logaddexp, 0, [REAL, REAL], [REAL, ANYTHING]),
    (e.arcsin, 0, [Range(-0.999, 0.999)], [Range(-1.0, 0.0)]),
    (e.arccos, 0, [Range(-0.999, 0.999)], [Range(0.0, 1.0)]),
    (e.arctanh, 0, [Range(-0.999, 0.999)], [Range(-1.0, 0.0)]),
    (e.arccosh, 0, [Range(1.001)], [Range(1.0)]),
    (e.arctan2, 0, [Range(1e-9), REAL], [Range(0.0), REAL]),
    (e.arctan2, 1, [REAL, Range(high=-1e-9)], [REAL, Range(high=0.0)]),
    (e.exp, 0, [Range(high=708.0)], [Range(high=709.0)]),
    (e.expm1, 0, [Range(high=708.0)], [Range(high=709.0)]),
    (e.exp, 0, [Range(high=1.0, below=True)], [Range(high=1.0, above=True)]),
    (e.exp, 0, [Range(0.0, 1.0)], [Range(0.0, 1.0, nan=True)]),
    (e.tanh, 0, [Range(below=True, above=True)], [Range(nan=True)]),
    (e.maximum, 0, [Range(above=True), REAL], [Range(nan=True), REAL]),
    (e.sin, 0, [REAL], [Range(above=True)]),
    (e.mul, 0, [ANYTHING, REAL], [REAL, ANYTHING]),
    (e.add, 0, [ANYTHING, ANYTHING], None),
    (e.floor, 0, [ANYTHING], None),
]


@pytest.mark.parametrize("row", TAME, ids=lambda row: f"{row[0].name}-{row[1]}-{row[2][-1].high}")
def test_slopes_stay_finite_up_to_where_they_do_not(row: Any) -> None:
    op, position, tame, wild = row
    _, eqn = _applied(op, len(tame), 3)
    assert slope_stays_finite(eqn, position, dict(zip(eqn.inputs, tame, strict=True)))
    if wild is not None:
        assert not slope_stays_finite(eqn, position, dict(zip(eqn.inputs, wild, strict=True)))


def test_functions_of_no_known_range_are_finite_unless_they_are_singular() -> None:
    for op in (e.floor, e.arcsinh):
        assert _ranges(op, REAL) == REAL
        assert _ranges(op, Range(above=True)) == ANYTHING
    for op in (e.tan, e.sinh):
        assert _ranges(op, REAL) == ANYTHING
    assert _ranges(lambda v: e.cast(greater(v, v), dtype=FLOAT64), REAL).finite


def test_slopes_of_products_of_elements_are_finite() -> None:
    _, eqn = _applied(r.reduce_prod, 1, 3, axes=(0,))
    for x, tame in ((REAL, True), (Range(0.0, 1.0), True), (ANYTHING, False)):
        assert slope_stays_finite(eqn, 0, {eqn.inputs[0]: x}) == tame, x


def test_slopes_of_integer_powers() -> None:
    for n, x, tame in [
        (0, REAL, True), (1, REAL, True), (3, REAL, True), (-1, REAL, False),
        (-2, Range(0.5), True), (-1, Range(0.0, 1.0), False), (2, ANYTHING, False),
    ]:  # fmt: skip
        _, eqn = _applied(e.integer_pow, 1, 3, n=n)
        assert slope_stays_finite(eqn, 0, {eqn.inputs[0]: x}) == tame, (n, x)
