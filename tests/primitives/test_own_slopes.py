"""Operators that have a better derivative than what they are computed from: softmax.

The value is that of the decomposition, bit by bit; the derivative is compared with that of the
decomposition, to order three, and at the edges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from program_tolerance import same_bits

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.slices import drop_formal
from primgraph.program.compile import optimize_graph
from primgraph.transforms import linearize, lower, raise_, transpose

Function = Callable[[pg.Variable], pg.Variable]

rng = np.random.default_rng(7)
INF, NAN = np.inf, np.nan


def decomposed(x: pg.Variable, axis: int = -1) -> pg.Variable:
    """What softmax is made of, with the derivative of that."""
    largest = pg.max(x, axis=axis, keepdims=True)
    powers = pg.exp(x - pg.stop_gradient(pg.where(pg.isfinite(largest), largest, 0)))
    return powers / pg.sum(powers, axis=axis, keepdims=True)


def derivatives(function: Function, order: int, *specs: pg.TensorType) -> Graph:
    """Of `function`, by its operand, along weights that are given for each order."""

    def along(x: pg.Variable, *weights: pg.Variable) -> list[pg.Variable]:
        y, found = function(x), []
        for weight in weights:
            y = pg.grad(pg.sum(y * weight), x)
            found.append(y)
        return found

    return pg.trace(along, specs[0], *[specs[-1]] * order)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_the_derivatives_of_softmax_are_those_of_what_it_is_made_of(axis, dtype):
    spec = pg.spec((3, 4), dtype)
    mine, theirs = (
        derivatives(lambda x, f=f: f(x, axis), 3, spec) for f in (pg.softmax, decomposed)
    )
    feeds = [rng.normal(size=(3, 4)).astype(dtype) for _ in range(4)]
    for found, expected in zip(interpret(mine, *feeds), interpret(theirs, *feeds), strict=True):
        limit = 40 * np.finfo(dtype).eps * max(1.0, float(np.max(np.abs(expected))))
        np.testing.assert_allclose(found, expected, rtol=0, atol=limit)
    for style in ("planned", "readable"):
        pairs = zip(pg.compile(mine, style=style)(*feeds), interpret(mine, *feeds), strict=True)
        for found, expected in pairs:
            limit = 40 * np.finfo(dtype).eps * max(1.0, float(np.max(np.abs(expected))))
            np.testing.assert_allclose(found, expected, rtol=0, atol=limit)


EDGES = {
    "-inf": [[0.5, -INF, 1.0], [-INF, -INF, 2.0]],
    "all -inf": [[-INF, -INF, -INF], [0.0, 1.0, 2.0]],
    "inf": [[INF, 0.0, 1.0], [0.0, 1.0, 2.0]],
    "inf and -inf": [[INF, -INF, 1.0], [INF, INF, 0.0]],
    "NaN": [[NAN, 0.0, 1.0], [0.0, 1.0, 2.0]],
    "far": [[1e300, -1e300, 0.0], [800.0, -800.0, 0.0]],
    "equal": [[7.0, 7.0, 7.0], [0.0, -0.0, 0.0]],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_those_of_what_it_is_made_of(name):
    x = np.array(EDGES[name])
    weights = rng.normal(size=(2, *x.shape))
    for mode in ("reverse", "forward"):
        found = []
        for function in (pg.softmax, decomposed):
            plain = lower(pg.trace(function, pg.spec(x.shape)))
            derivative = linearize(plain, [0])
            if mode == "reverse":
                derivative = transpose(derivative.with_outputs(derivative.outputs[1:]), [1])
            second = linearize(derivative, [0])
            found.append(interpret(second, x, *weights))
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)


def test_the_value_is_that_of_what_it_is_made_of_in_every_bit():
    x = np.array([*EDGES["far"], *EDGES["inf"], *EDGES["-inf"], *rng.normal(size=(4, 3))])
    for style in ("planned", "readable"):
        mine, theirs = (
            pg.compile(pg.trace(f, pg.spec(x.shape)), style=style)(x)
            for f in (pg.softmax, decomposed)
        )
        assert np.all(same_bits(mine, theirs))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_it_takes_fewer_equations(order):
    """13, 21 and 40 in the place of 16, 32 and 79, literals and moves left out."""

    counts = [
        len(optimize_graph(graph.with_outputs(graph.outputs[-1:])).body)
        for graph in (derivatives(f, order, pg.spec((8, 16))) for f in (pg.softmax, decomposed))
    ]
    assert counts[0] < counts[1]


CHOICES = {
    "rows": lambda x: pg.where(x[:, :1] > 0.0, pg.softmax(pg.log(x)), 0.0),
    "elements": lambda x: pg.softmax(pg.where(x > 0.0, pg.log(x), -INF)),
    "a slice": lambda x: pg.concatenate([pg.softmax(pg.sqrt(x))[1:], pg.zeros((1, 3))]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_is_not_chosen_puts_no_nan_into_derivatives(name):
    function = CHOICES[name]
    at = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [0.5, 0.2, 0.3]])
    if name == "elements":
        at[1, 2] = at[2, 0] = at[0, 1] = 0.0
        at[0, 0] = 1.0
    graph = derivatives(function, 2, pg.spec((3, 3)))
    feeds = [rng.normal(size=t.shape) for t in graph.input_types[1:]]
    for found in interpret(graph, at, *feeds):
        assert np.all(np.isfinite(found))
        if name != "elements":
            np.testing.assert_array_equal(found[0], np.zeros(3))


def test_samples_stay_apart_where_it_is_taken_within_each():
    with pg.Program() as program:
        x = pg.data("x", (5, 3))
        rows = pg.batched_jacobian(pg.softmax(x, axis=1), x)
        with pytest.raises(pg.MixedSamplesError):
            pg.batched_jacobian(pg.softmax(x, axis=0), x)
        whole = pg.jacobian(pg.softmax(x, axis=1), x)
    at = rng.normal(size=(5, 3))
    found, everything = pg.Executor().run(program, {"x": at}, [rows, whole])
    s = np.exp(at) / np.exp(at).sum(axis=1, keepdims=True)
    expected = s[:, :, None] * (np.eye(3) - s[:, None, :])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    for i in range(5):
        np.testing.assert_allclose(everything[i, :, i], expected[i], rtol=1e-13, atol=1e-15)


def test_a_derivative_that_was_traced_or_printed_has_derivatives():
    """Nothing is lost of what a value is the softmax of."""
    spec = pg.spec((2, 3))
    first = derivatives(pg.softmax, 1, spec)
    again = pg.parse(str(first), first.constants)
    feeds = [rng.normal(size=(2, 3)) for _ in range(3)]
    (_, expected) = interpret(derivatives(decomposed, 2, spec), *feeds)
    for graph in (first, again, lower(first), raise_(first)):
        plain = lower(graph)
        second = linearize(plain, [0])
        slope = second.with_outputs(second.outputs[1:])
        (found,) = interpret(slope, *feeds[:2], feeds[2])
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_without_its_slope_it_is_what_it_was_computed_from():
    plain = lower(pg.trace(pg.softmax, pg.spec((2, 3))))
    assert "as_softmax_of" in str(plain)
    bare = drop_formal(plain)
    assert "as_softmax_of" not in str(bare)
    x, d = rng.normal(size=(2, 2, 3))
    for mine, theirs in zip(
        interpret(linearize(plain), x, d), interpret(linearize(bare), x, d), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-16)
