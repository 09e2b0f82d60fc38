"""Conditions that hold within boxes are brought together: the same elements, in linear size."""

from __future__ import annotations

import numpy as np
import pytest
from derive import build

from primgraph.ir.graph import Value
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.shapes import slice_assign
from primgraph.transforms.dataflow.masks.box_conditions import any_of
from primgraph.transforms.dataflow.masks.conditions import Conditions


def evaluated(conditions: Conditions, given: dict[Value, np.ndarray], wanted: Value) -> np.ndarray:
    known = dict(given)
    for eqn in conditions.made.values():
        if known.keys() >= set(eqn.inputs):
            (known[eqn.outputs[0]],) = eqn.op.evaluate([known[v] for v in eqn.inputs], eqn.kwargs)
    return known[wanted]


def put(conditions: Conditions, held: Value, like: Value, starts, steps) -> Value:
    nowhere = conditions.nowhere(like)
    return conditions.record(slice_assign, nowhere, held, starts=starts, steps=steps)


def size_of(conditions: Conditions) -> int:
    """How many elements are computed, and from how many operands."""
    return sum(v.type.size + len(e.inputs) for v, e in conditions.made.items())


def new(shape: tuple[int, ...]) -> Value:
    return Value(TensorType(shape, BOOL))


@pytest.mark.parametrize("shape", [(9,), (4, 5), (3, 1, 4), (3, 0)])
@pytest.mark.parametrize("seed", range(8))
def test_a_condition_holds_where_one_of_those_in_boxes_does(
    shape: tuple[int, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    conditions, like = Conditions(build(lambda x: x, "f64[1]")), new(shape)
    given, found, expected = {}, [], np.zeros(shape, bool)
    for _ in range(int(rng.integers(1, 12))):
        starts = tuple(int(rng.integers(0, n + 1)) for n in shape)
        steps = tuple(int(rng.integers(1, 4)) for _ in shape)
        rest = zip(shape, starts, steps, strict=True)
        sizes = tuple(int(rng.integers(0, (n - i + k - 1) // k + 1)) for n, i, k in rest)
        held = new(sizes)
        given[held] = rng.random(sizes) < 0.7
        found.append(put(conditions, held, like, starts, steps))
        rows = zip(starts, sizes, steps, strict=True)
        expected[tuple(slice(i, i + n * k, k) for i, n, k in rows)] |= given[held]
    if seed % 2:
        other = new(shape)
        given[other] = rng.random(shape) < 0.2
        found.append(other)
        expected |= given[other]
    result = any_of(conditions, found)
    np.testing.assert_array_equal(evaluated(conditions, given, result), expected, strict=True)


def test_boxes_that_have_everything_hold_everywhere() -> None:
    conditions, like = Conditions(build(lambda x: x, "f64[1]")), new((2, 3))
    held = conditions.everywhere(new((1, 1)))
    places = [(i, j) for i in range(2) for j in range(3)]
    found = [put(conditions, held, like, at, (1, 1)) for at in places]
    assert conditions.always(any_of(conditions, found))
    assert not conditions.always(any_of(conditions, found[1:]))


@pytest.mark.parametrize("kind", ["elements", "rows", "pairs that overlap", "cells", "diagonal"])
def test_boxes_are_brought_together_in_linear_size(kind: str) -> None:
    def size(n: int) -> int:
        conditions = Conditions(build(lambda x: x, "f64[1]"))
        shape, part = {
            "elements": ((n * n,), (1,)),
            "rows": ((n * n, 3), (1, 3)),
            "pairs that overlap": ((n * n,), (2,)),
        }.get(kind, ((n, n), (1, 1)))
        places = list(np.ndindex(*(a - b + 1 for a, b in zip(shape, part, strict=True))))
        if kind == "diagonal":
            places = [(i, i) for i in range(n)]
        steps = (1,) * len(shape)
        found = [put(conditions, new(part), new(shape), at, steps) for at in places]
        before = size_of(conditions)
        any_of(conditions, found)
        return size_of(conditions) - before

    assert size(32) < 4.5 * size(16)


def test_two_conditions_at_the_same_place_hold_there_together() -> None:
    conditions, like = Conditions(build(lambda x: x, "f64[1]")), new((4,))
    x, y = new((2,)), new((2,))
    one, other, elsewhere = (
        put(conditions, v, like, (i,), (1,)) for v, i in ((x, 1), (y, 1), (y, 2))
    )
    found = conditions.definition(conditions.both(one, other))
    assert found is not None
    assert found.op is slice_assign
    given = {x: np.array([True, True]), y: np.array([False, True])}
    for pair, expected in (((one, other), [0, 0, 1, 0]), ((one, elsewhere), [0, 0, 0, 0])):
        result = evaluated(conditions, given, conditions.both(*pair))
        np.testing.assert_array_equal(result, np.array(expected, bool))
