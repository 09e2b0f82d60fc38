"""Sums and chains of parts that are put in places of their own, and constant positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from program_tolerance import same_bits

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.primitives.constants import constant_op, filled_constant
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.shapes import concat, pad, permute, reshape, slice_, slice_assign
from primgraph.transforms import clean_up, simplify
from primgraph.transforms.rewrite import sink_moves as rules_last

DTYPES = (np.float64, np.float32, np.float16, np.int32)
SHAPE = (2, 4)

Function = Callable[[Value, Value], Value]


def built(function: Function, dtype: type, shape: tuple[int, ...] = SHAPE) -> Graph:
    with Builder() as builder:
        x, y = (builder.input(TensorType(shape, np.dtype(dtype)), n) for n in "xy")
        return builder.graph([function(x, y)])


def ops(graph: Graph) -> Counter[str]:
    return Counter(e.op.name for e in graph.body if e.op.name not in ("full", "constant"))


def feeds(dtype: type) -> list[tuple[np.ndarray, np.ndarray]]:
    """Special numbers, each against others; of float ones both zeros and what is not finite."""
    if dtype is np.int32:
        numbers = np.array([0, 1, -1, 7, 2**31 - 1, -(2**31), 5, -3], dtype)
    else:
        small = np.finfo(dtype).smallest_subnormal
        numbers = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, small, -1.5, 3.0], dtype)
    turned = [np.roll(numbers, k) for k in range(8)]
    return [(numbers.reshape(SHAPE), y.reshape(SHAPE)) for y in turned]


def zeros(like: Value, *shape: int) -> Value:
    return filled_constant(0, TensorType(shape, like.dtype))


def constants(values: object) -> Value:
    op, params = constant_op(np.array(values))
    return op(**params)


def put(x: Value, y: Value, *starts: int, step: int = 1) -> Value:
    """`x` with the columns of `y` in place of some of its own."""
    return slice_assign(x, y, starts=starts, steps=(1, step))


def cut(x: Value, start: int, size: int, step: int = 1) -> Value:
    """Some columns of `x`."""
    return slice_(x, starts=(0, start), sizes=(x.shape[0], size), steps=(1, step))


def row(x: Value, k: int, shape: tuple[int, ...]) -> Value:
    return reshape(slice_(x, starts=(k, 0), sizes=(1, 4), steps=(1, 1)), shape=shape)


def scattered(y: Value, index: object, extent: int) -> Value:
    return scatter_add(zeros(y, 2, extent), y, constants(index), axis=1)


def joined_at_zero(x: Value, y: Value) -> Value:
    """`x` beside `y`, as a sum of both among zeros."""
    return pad(x, low=(0, 0), high=(0, 4)) + pad(y, low=(0, 4), high=(0, 0))


# What is left of integers, and whether of floats a sum with zero is left too, for -0.
PLACES: dict[str, tuple[Function, dict[str, int], bool]] = {
    "padding that complements": (
        lambda x, y: pad(x, low=(0, 0), high=(0, 4)) + pad(y, low=(0, 4), high=(0, 0)),
        {"concat": 1},
        True,
    ),
    "padding that complements, the second first": (
        lambda x, y: pad(x, low=(2, 0), high=(0, 0)) + pad(y, low=(0, 0), high=(2, 0)),
        {"concat": 1},
        True,
    ),
    "neighbours among zeros": (
        lambda x, y: pad(x, low=(1, 1), high=(0, 7)) + pad(y, low=(1, 5), high=(0, 3)),
        {"concat": 1, "pad": 1},
        True,
    ),
    "neighbours among zeros, one of which is a sum with zero": (
        lambda x, y: (
            pad(joined_at_zero(x, y), low=(0, 4), high=(0, 0)) + pad(y, low=(0, 0), high=(0, 8))
        ),
        {"concat": 1},
        True,
    ),
    "put among zeros": (
        lambda x, y: put(zeros(x, 2, 8), x, 0, 0) + put(zeros(x, 2, 8), y, 0, 4),
        {"concat": 1},
        True,
    ),
    "put among ones": (
        lambda x, y: put(concat(y, y, axis=1), x, 0, 0) + put(zeros(x, 2, 8), y, 0, 4),
        {"concat": 1, "slice_assign": 2, "add": 1},
        False,
    ),
    "padding that overlaps": (
        lambda x, y: pad(x, low=(0, 0), high=(0, 1)) + pad(y, low=(0, 1), high=(0, 0)),
        {"pad": 2, "add": 1},
        False,
    ),
    "parts in different rows": (
        lambda x, y: pad(x, low=(0, 0), high=(1, 4)) + pad(y, low=(1, 4), high=(0, 0)),
        {"pad": 2, "add": 1},
        False,
    ),
    "everything put, in two parts": (
        lambda x, y: put(put(concat(x, y, axis=1), x, 0, 4), y, 0, 0),
        {"concat": 1},
        False,
    ),
    "everything put, in three parts": (
        lambda x, y: put(put(put(x, cut(y, 1, 2), 0, 2), cut(y, 0, 1), 0, 0), cut(x, 3, 1), 0, 1),
        {"slice": 3, "concat": 1},
        False,
    ),
    "everything put but one column": (
        lambda x, y: put(put(x, cut(y, 1, 2), 0, 2), cut(y, 0, 1), 0, 0),
        {"slice": 2, "slice_assign": 2},
        False,
    ),
    "everything put, one part over another that begins there": (
        lambda x, y: put(put(put(x, cut(y, 0, 3), 0, 0), cut(x, 2, 2), 0, 0), cut(y, 1, 1), 0, 3),
        {"slice": 3, "slice_assign": 3},
        False,
    ),
    "put with gaps": (
        lambda x, y: put(put(x, cut(y, 0, 2), 0, 0, step=2), cut(y, 2, 2), 0, 1, step=2),
        {"slice": 2, "slice_assign": 2},
        False,
    ),
    "reshaped slices of one array, joined": (
        lambda x, y: concat(row(x, 0, (2, 2)), row(x, 1, (2, 2)), axis=0),
        {"reshape": 1},
        False,
    ),
    "reshaped slices of one array, in another order": (
        lambda x, y: concat(row(x, 1, (2, 2)), row(x, 0, (2, 2)), row(x, 1, (2, 2)), axis=0),
        {"slice": 2, "reshape": 2, "concat": 1},
        False,
    ),
    "positions along two axes": (
        lambda x, y: gather(x, constants([[0, 1], [-1, 1]]), constants([[3, -4], [0, 3]]), axis=0),
        {"reshape": 1, "gather": 1},
        False,
    ),
    "positions along two axes of what is transposed": (
        lambda x, y: gather(permute(x, axes=(1, 0)), constants([0, 3]), constants([1, 0]), axis=0),
        {"permute": 1, "gather": 1},
        False,
    ),
    "reshaped slices of one array, of different widths": (
        lambda x, y: concat(row(x, 0, (4, 1)), reshape(cut(x, 1, 2), shape=(4, 1)), axis=0),
        {"slice": 2, "reshape": 2, "concat": 1},
        False,
    ),
    "one column put by a step, beside others": (
        lambda x, y: put(zeros(y, 2, 8), cut(y, 0, 1), 0, 3, step=3) + put(zeros(x, 2, 8), x, 0, 4),
        {"slice": 1, "concat": 1, "pad": 1},
        True,
    ),
    "put among zeros with gaps that others would fill": (
        lambda x, y: put(zeros(x, 2, 8), x, 0, 0, step=2) + pad(y, low=(0, 4), high=(0, 0)),
        {"slice_assign": 1, "pad": 1, "add": 1},
        False,
    ),
    "rows of what is scattered": (
        lambda x, y: slice_(
            scatter_add(zeros(x, 5, 2), reshape(x, shape=(4, 2)), constants([2, 0, -2, 1]), axis=0),
            starts=(1, 0),
            sizes=(3, 2),
            steps=(1, 1),
        ),
        {"reshape": 1, "gather": 1},
        True,
    ),
    "a part of what is scattered, one not at all": (
        lambda x, y: cut(scattered(x, [5, 0, -3, 0], 6), 3, 3),
        {"scatter_add": 1, "slice": 1},
        False,
    ),
    "a part of what is scattered, in an order of its own": (
        lambda x, y: cut(scattered(x, [3, 5, 0, -5], 6), 5, 3, -2),
        {"gather": 1},
        True,
    ),
    "a part of what is scattered by pairs": (
        lambda x, y: cut(scattered(reshape(x, shape=(2, 2, 2)), [[1, 2], [1, 4]], 5), 2, 1),
        {"slice": 1},
        True,
    ),
    "a part of what is scattered, one twice": (
        lambda x, y: cut(scattered(x, [5, 0, 4, 0], 6), 0, 1),
        {"scatter_add": 1, "slice": 1},
        False,
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_rules_for_places_are_exact_for_both_zeros(name):
    function, left, zero_added = PLACES[name]
    for dtype in DTYPES:
        graph = built(function, dtype)
        simple = simplify(graph)
        assert ops(simple) == Counter(left) + Counter(add=zero_added and dtype is not np.int32)
        assert simplify(simple) == simple
        for x, y in feeds(dtype):
            before, after = (interpret(g, x, y)[0] for g in (graph, simple))
            assert np.all(same_bits(before, after))


@pytest.mark.parametrize("name", [n for n, (_, _, zero_added) in PLACES.items() if zero_added])
def test_rules_for_places_do_without_the_zero_where_zeros_have_no_sign(name):
    function, left, _ = PLACES[name]
    different = 0
    for dtype in (np.float64, np.float32, np.float16):
        graph = built(function, dtype)
        simple = simplify(graph, "finite")
        assert ops(simple) == left
        for x, y in feeds(dtype):
            before, after = (interpret(g, x, y)[0] for g in (graph, simple))
            np.testing.assert_array_equal(before, after)
            different += np.sum(~same_bits(before, after))
    assert different > 0


OVERLAPS: dict[str, tuple[Function, dict[str, int]]] = {
    "one after the other": (
        lambda x, y: pad(y, low=(0, 1), high=(0, 0)) + pad(x, low=(0, 0), high=(0, 1)),
        {"slice": 4, "add": 1, "concat": 1},
    ),
    "one within the other": (
        lambda x, y: pad(cut(x, 1, 2), low=(1, 2), high=(0, 4)) + pad(y, low=(1, 1), high=(0, 3)),
        {"slice": 4, "add": 1, "concat": 1, "pad": 1},
    ),
    "beginning together": (
        lambda x, y: pad(cut(x, 1, 2), low=(0, 0), high=(0, 2)) + pad(y, low=(0, 0), high=(0, 0)),
        {"slice": 1, "pad": 1, "add": 1},
    ),
    "ending together": (
        lambda x, y: pad(cut(x, 1, 2), low=(0, 3), high=(0, 0)) + pad(y, low=(0, 1), high=(0, 0)),
        {"slice": 3, "add": 1, "concat": 1, "pad": 1},
    ),
    "the same places": (
        lambda x, y: pad(x, low=(0, 1), high=(0, 0)) + pad(y, low=(0, 1), high=(0, 0)),
        {"pad": 2, "add": 1},
    ),
    "along both axes": (
        lambda x, y: pad(x, low=(0, 1), high=(1, 0)) + pad(y, low=(1, 0), high=(0, 1)),
        {"pad": 2, "add": 1},
    ),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_parts_that_overlap_are_added_where_they_do(name, monkeypatch):
    """But not before derivatives are taken, nor of few elements."""
    function, left = OVERLAPS[name]
    different = 0
    for dtype in DTYPES:
        graph = built(function, dtype)
        assert clean_up(graph, last=True) == clean_up(graph)
        with monkeypatch.context() as patched:
            patched.setattr(rules_last, "_LARGE", 1)
            exact, finite = (clean_up(graph, math, last=True) for math in ("exact", "finite"))
            assert clean_up(exact, last=True) == exact
            assert clean_up(finite, "finite", last=True) == finite
            assert ops(clean_up(graph))["concat"] == 0
        assert ops(finite) == left
        for x, y in feeds(dtype):
            results = [interpret(g, x, y)[0] for g in (graph, exact, finite)]
            assert np.all(same_bits(results[0], results[1]))
            np.testing.assert_array_equal(results[0], results[2])
            different += np.sum(~same_bits(results[0], results[2]))
    assert (different > 0) == ("concat" in left)


def gapped(x: Value, start: int, whole: Value | None = None) -> Value:
    """`x` in every other column of sixteen, which are zeros elsewhere."""
    return put(zeros(x, 2, 16) if whole is None else whole, x, 0, start, step=2)


def ones(like: Value) -> Value:
    return filled_constant(1, TensorType((2, 16), like.dtype))


# With what is left where zeros have no sign; the rest is left as it is.
GAPPED: dict[str, tuple[Function, dict[str, int] | None]] = {
    "apart": (lambda x, y: gapped(x, 0) + gapped(y, 8), {"slice_assign": 2}),
    "apart, the second first": (lambda x, y: gapped(x, 9) + gapped(y, 1), {"slice_assign": 2}),
    "one among the other": (lambda x, y: gapped(x, 0) + gapped(y, 3), None),
    "one among ones": (lambda x, y: gapped(x, 0, ones(x)) + gapped(y, 8), None),
    "the other among ones": (lambda x, y: gapped(x, 0) + gapped(y, 8, ones(y)), None),
    "to what is not put": (lambda x, y: gapped(x, 0) + concat(y, x, y, x, axis=1), None),
    "what is not put, to it": (lambda x, y: concat(y, x, y, x, axis=1) + gapped(x, 0), None),
}


@pytest.mark.parametrize("name", GAPPED)
def test_parts_with_gaps_are_put_into_the_same_zeros(name):
    function, left = GAPPED[name]
    for dtype in (np.float64, np.float16):
        graph = built(function, dtype)
        exact, finite = simplify(graph), simplify(graph, "finite")
        assert ops(exact) == ops(graph)
        assert ops(finite) == (ops(graph) if left is None else left)
        for x, y in feeds(dtype):
            results = [interpret(g, x, y)[0] for g in (graph, exact, finite)]
            assert np.all(same_bits(results[0], results[1]))
            np.testing.assert_array_equal(results[0], results[2])


def test_a_part_with_gaps_that_has_other_readers_is_put_once():
    with Builder() as builder:
        x, y = (builder.input(TensorType(SHAPE, np.dtype(np.float64)), n) for n in "xy")
        part = gapped(y, 8)
        graph = builder.graph([gapped(x, 0) + part, part])
    assert ops(simplify(graph, "finite")) == {"slice_assign": 2, "add": 1}


def test_slices_that_follow_one_another_are_one():
    """One element goes with any step."""
    for function in (
        lambda x, y: concat(cut(x, 0, 3, 2), cut(x, 6, 1), axis=1),
        lambda x, y: concat(cut(x, 0, 1), cut(x, 2, 3, 2), axis=1),
        lambda x, y: concat(cut(x, 0, 1), cut(x, 3, 1), cut(x, 6, 1), axis=1),
    ):
        graph = built(function, np.float64, (2, 8))
        simple = simplify(graph)
        assert ops(simple) == {"slice": 1}
        x = np.arange(16.0).reshape(2, 8)
        np.testing.assert_array_equal(interpret(simple, x, x)[0], interpret(graph, x, x)[0])


def test_reshaped_slices_of_a_vector_are_one():
    def half(x: Value, start: int) -> Value:
        return reshape(slice_(x, starts=(start,), sizes=(4,), steps=(1,)), shape=(2, 2))

    graph = built(lambda x, y: concat(half(x, 0), half(x, 4), axis=0), np.float64, (8,))
    assert ops(simplify(graph)) == {"reshape": 1}


@pytest.mark.parametrize("index", [[0, 1, 2, 3], [3, 1, 0, 2], [0, 0, 1, 1]])
def test_truth_values_are_put_in_places_as_well(index):
    def function(x, y):
        added = scatter_add(x, y, constants(index), axis=1)
        return concat(added, cut(scattered(y, index, 4), 1, 2), axis=1)

    graph = built(function, np.bool_)
    x = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], bool)
    for y in (x, ~x, x[::-1]):
        (known,), (found,) = interpret(graph, x, y), interpret(simplify(graph), x, y)
        np.testing.assert_array_equal(found, known)


def test_constant_positions_out_of_range_stay_an_error():
    for wrong in (2, -3):
        graph = built(
            lambda x, y, k=wrong: gather(x, constants([0, k]), constants([0, 0]), axis=0),
            np.float64,
        )
        assert simplify(graph) == graph
        with pytest.raises(IndexError):
            interpret(simplify(graph), *feeds(np.float64)[0])


def test_looking_at_positions_is_no_more_work_than_what_it_saves():
    """Each of many slices of one scattered array would look at all of its positions."""
    graph = built(
        lambda x, y: cut(scattered(x, np.arange(400) % 399, 400), 100, 1), float, (2, 400)
    )
    assert ops(simplify(graph)) == {"scatter_add": 1, "slice": 1}


@pytest.mark.parametrize(("extent", "stays"), [(32, False), (33, True)])
def test_up_to_64_positions_are_looked_at_for_an_element(extent, stays):
    """Those in the index and those of the result."""
    index = np.arange(32) * 5 % 32
    graph = built(lambda x, y: cut(scattered(x, index, extent), 7, 1), float, (2, 32))
    assert ("scatter_add" in ops(simplify(graph))) == stays


@pytest.mark.parametrize(("first", "second"), [(3, 0), (0, 3), (2, 0), (1, 1), (0, 2)])
def test_parts_that_overlap_are_not_put_into_the_same_zeros(first, second):
    graph = built(
        lambda x, y: put(zeros(x, 2, 7), x, 0, first) + put(zeros(y, 2, 7), y, 0, second),
        np.float64,
    )
    x, y = np.arange(1.0, 9.0).reshape(SHAPE), np.arange(11.0, 19.0).reshape(SHAPE)
    for level in ("exact", "finite", "fast"):
        simple = clean_up(graph, level)
        assert np.array_equal(interpret(graph, x, y)[0], interpret(simple, x, y)[0])


@pytest.mark.parametrize(("count", "joined"), [(64, True), (65, False)])
def test_concatenations_are_joined_up_to_a_width(count, joined):
    builder = Builder("f")
    parts = [builder.input(TensorType((1,), FLOAT64)) for _ in range(count)]
    with builder:
        graph = builder.graph([concat(concat(*parts[:-1], axis=0), parts[-1], axis=0)])
    assert len(simplify(graph).body) == (1 if joined else 2)


@pytest.mark.parametrize("wrong", [2, -3])
@pytest.mark.parametrize("axes", [1, 2])
def test_a_constant_index_that_is_out_of_range_is_an_error_when_it_runs(wrong, axes):
    builder = Builder("f")
    x = builder.input(TensorType((2, 3), FLOAT64))
    with builder:
        given = (constant_op(np.array(row)) for row in ([0, wrong], [1, 2])[:axes])
        found = gather(x, *(op(**params) for op, params in given), axis=0)
        graph = clean_up(builder.graph([found]), last=True)
    with pytest.raises(IndexError):
        interpret(graph, np.ones((2, 3)))
