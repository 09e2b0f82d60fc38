"""Sums in derivatives: merged, computed once for equal rows, and with common numbers outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import primgraph as pg
from primgraph.base.user_lines import Source
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.types import TensorType
from primgraph.primitives import reductions, shapes
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.transforms import simplify

LINE = Source("model.py", 3)
DERIVED = LINE.mark_derivative("cotangent")
TYPE = TensorType((6, 4), np.dtype(np.float64))


def c(number: float, *shape: int) -> Value:
    return filled_constant(number, TensorType(shape, TYPE.dtype))


def columns() -> Value:
    """Ones and twos beside each other: all rows are equal."""
    return shapes.concat(c(1.0, 5, 2), c(2.0, 5, 4), axis=1)


def rows_of(y: Value, count: int) -> Value:
    return shapes.slice_(y, starts=(0, 0), sizes=(count, 4), steps=(1, 1))


def embedded(y: Value, before: int, count: int, behind: int) -> Value:
    """Some rows of `y` between rows of zeros."""
    return shapes.pad(rows_of(y, count), low=(before, 0), high=(behind, 0))


def total(x: Value, *axes: int) -> Value:
    return reductions.reduce_sum(x, axes=axes)


Function = Callable[[Value, Value], Value]
CASES: dict[str, tuple[Function, dict[str, int]]] = {
    "ones times a matrix": (
        lambda x, y: matmul(c(1.0, 3, 6), x), {"reduce_sum": 1, "broadcast": 1},
    ),
    "a matrix times threes": (
        lambda x, y: matmul(x, c(3.0, 4, 5)), {"reduce_sum": 1, "mul": 1, "broadcast": 1},
    ),
    "a column of ones times a row": (
        lambda x, y: matmul(c(1.0, 3, 1), shapes.reshape(total(x, 0), shape=(1, 4))),
        {"reduce_sum": 1, "broadcast": 1},
    ),
    "equal rows times a matrix": (
        lambda x, y: matmul(columns(), x), {"concat": 1, "matmul": 1, "reshape": 1, "broadcast": 1},
    ),
    "equal columns times a matrix": (
        lambda x, y: matmul(shapes.concat(c(1.0, 2, 6), c(2.0, 4, 6), axis=0), x),
        {"concat": 1, "reduce_sum": 1, "reshape": 1, "matmul": 1},
    ),
    "columns times rows between zeros": (
        lambda x, y: matmul(x, embedded(y, 1, 2, 1)), {"slice": 2, "matmul": 1},
    ),
    "columns before zeros times rows": (
        lambda x, y: matmul(shapes.concat(x, c(0.0, 6, 2), axis=1), y), {"slice": 1, "matmul": 1},
    ),
    "rows between zeros times a square": (
        lambda x, y: matmul(embedded(y, 5, 3, 2), rows_of(x, 4)),
        {"slice": 2, "matmul": 1, "pad": 1},
    ),
    "transposed rows between zeros": (
        lambda x, y: matmul(shapes.permute(embedded(y, 3, 1, 2), axes=(1, 0)), x),
        {"slice": 2, "permute": 1, "matmul": 1},
    ),
    "a part placed in zeros": (
        lambda x, y: matmul(
            shapes.slice_assign(c(0.0, 8, 6), rows_of(y, 3), starts=(4, 1), steps=(1, 1)), x
        ),
        {"slice": 2, "matmul": 1, "pad": 1},
    ),
    "a sum of sums": (lambda x, y: total(total(x, 1), 0), {"reduce_sum": 1}),
    "a number in both terms": (lambda x, y: x * 0.3 + y * 0.3, {"add": 1, "mul": 1}),
    "a number with two signs": (lambda x, y: x * -0.3 + y * 0.3, {"sub": 1, "mul": 1}),
    "a difference": (lambda x, y: x * 0.3 - y * 0.3, {"sub": 1, "mul": 1}),
    "a difference with two signs": (lambda x, y: x * 0.3 - y * -0.3, {"add": 1, "mul": 1}),
}  # fmt: skip


def built(function: Function, source: Source) -> Graph:
    with Builder(source=source) as builder:
        x, y = (builder.input(TYPE, n) for n in "xy")
        return builder.graph([function(x, y)])


def ops(graph: Graph) -> Counter[str]:
    return Counter(e.op.name for e in graph.body if e.op.name not in ("full", "constant"))


@pytest.mark.parametrize("name", CASES)
def test_sums_of_derivatives_are_as_one_would_write_them(name: str) -> None:
    function, wanted = CASES[name]
    graph = built(function, DERIVED)
    found = simplify(graph)
    assert ops(found) == wanted
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=TYPE.shape) for _ in "xy"]
    (got,), (exact,) = interpret(found, *arrays), interpret(graph, *arrays)
    np.testing.assert_allclose(got, exact, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_what_the_user_writes_keeps_its_order(name: str) -> None:
    function, _ = CASES[name]
    graph = built(function, LINE)
    assert ops(simplify(graph)) == ops(graph)


def test_other_numbers_stay_with_their_terms() -> None:
    graph = built(lambda x, y: x * 0.3 + y * 0.7, DERIVED)
    assert ops(simplify(graph)) == {"add": 1, "mul": 2}


def test_gradients_of_logistic_regression_have_one_factor() -> None:
    def loss(X, y, w):  # type: ignore[no-untyped-def]
        z = X @ w
        return pg.grad(pg.mean(pg.softplus(z) - y * z), w)

    kernel = pg.compile(pg.trace(loss, pg.spec((100, 5)), pg.spec(100), pg.spec(5)))
    assert "(sigmoid(z) - y) * 0.01" in kernel.source


# A select by a constant is the part that it selects, padded with zeros.


def masked(mask: np.ndarray, function: Callable[[Value], Value]) -> Graph:
    def apply(x):  # type: ignore[no-untyped-def]
        return pg.where(mask, function(x), 0.0)

    return pg.transforms.lower(pg.trace(apply, pg.spec(mask.shape)))


def test_a_select_of_a_range_computes_that_range() -> None:
    mask = np.zeros((4, 3), bool)
    mask[1:3] = True
    graph = masked(mask, lambda x: pg.exp(x) * 2.0)
    assert ops(pg.transforms.clean_up(graph)) == {"exp": 1, "mul": 1, "select": 1}
    found = pg.transforms.clean_up(graph, last=True)
    assert ops(found) == {"slice": 1, "exp": 1, "mul": 1, "pad": 1}
    x = np.where(mask, 0.5, np.inf)
    np.testing.assert_array_equal(interpret(found, x)[0], interpret(graph, x)[0])


@pytest.mark.parametrize("places", [[0, 2], [], [0, 1, 2, 3]])
def test_other_selects_stay(places: list[int]) -> None:
    mask = np.zeros((4, 3), bool)
    mask[places, :2] = True
    found = pg.transforms.clean_up(masked(mask, pg.exp), last=True)
    assert "pad" not in ops(found) or places == [0, 1, 2, 3]


# A select in a branch of one by the same condition.


def test_selects_by_one_condition_are_merged_in_the_end_only() -> None:
    def guarded(x):  # type: ignore[no-untyped-def]
        near = pg.where(x > 0.0, x, 1.0)
        return pg.where(x > 0.0, pg.log(near) * near, 0.0)

    graph = pg.transforms.lower(pg.trace(guarded, pg.spec(3)))
    assert ops(pg.transforms.clean_up(graph))["select"] == 2
    found = pg.transforms.clean_up(graph, last=True)
    assert ops(found)["select"] == 1
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(interpret(found, x)[0], interpret(graph, x)[0])
    gradient = pg.jit(pg.grad(lambda x: pg.sum(guarded(x))))(x)
    np.testing.assert_array_equal(gradient, [0.0, 0.0, np.log(2.0) + 1.0])


def test_the_bell_of_an_error_function_is_not_clamped() -> None:
    kernel = pg.compile(pg.trace(pg.grad(lambda x: pg.sum(pg.special.erf(x))), pg.spec(5)))
    assert "where" not in kernel.source
    x = np.array([-np.inf, -40.5, 0.5, 1e200, np.nan])
    with np.errstate(all="ignore"):
        wanted = 2 / np.sqrt(np.pi) * np.exp(-x * x)
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-15)
    curvature = pg.jit(lambda x: pg.grad(pg.sum(pg.grad(pg.sum(pg.special.erf(x)), x)), x))
    assert np.all(curvature(np.array([np.inf, -1e300, 50.0])) == 0.0)
