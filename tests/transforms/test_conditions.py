"""Conditions on elements go with them: where an operand matters, and what a result depends on.

Both are compared with what depends on what, as told by changing elements one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derive import build

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import registered
from primgraph.ir.types import BOOL, INT64, TensorType
from primgraph.primitives.constants import constant, full
from primgraph.primitives.elementwise import add, exp
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import greater, logical_and, logical_not
from primgraph.primitives.reductions import (
    as_softmax_of,
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    root_of_squares,
)
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)
from primgraph.transforms.dataflow.masks.conditions import (
    LARGEST,
    Conditions,
    moves_back,
    moves_forth,
)

rng = np.random.default_rng(5)
SOME = constant, np.array([2, 0, 2, -1])
OTHERS = constant, np.array([[1, 0], [1, 2]])


def indices(place: tuple[Any, np.ndarray]) -> Value:
    op, array = place
    result: Value = op(value=array)
    return result


def softmax(x: Value) -> Value:
    powers = exp(x * 0.01)
    total = broadcast(reduce_sum(powers, axes=(1,)), shape=x.shape, new_axes=(1,))
    result: Value = as_softmax_of(powers / total, x, axes=(1,))
    return result


CALLS: dict[str, tuple[Any, ...]] = {
    "as_softmax_of": (softmax, "f64[2,3]"),
    "broadcast": (lambda x: broadcast(x, shape=(3, 2, 4), new_axes=(1,)), "f64[3,4]"),
    "concat": (lambda x, y, z: concat(x, y, z, axis=1), "f64[2,3]", "f64[2,1]", "f64[2,2]"),
    "concat of rows": (lambda x, y: concat(x, y, axis=0), "f64[1,3]", "f64[2,3]"),
    "cumsum": (lambda x: cumsum(x, axis=0, reverse=False), "f64[4,2]"),
    "cumsum from the end": (lambda x: cumsum(x, axis=1, reverse=True), "f64[2,4]"),
    "gather": (lambda x: gather(x, indices(SOME), axis=1), "f64[2,3,2]"),
    "gather of pairs": (lambda x: gather(x, indices(OTHERS), indices(OTHERS), axis=0), "f64[3,4]"),
    "matmul": (matmul, "f64[2,3]", "f64[3,4]"),
    "matmul of stacks": (matmul, "f64[2,2,3]", "f64[2,3,2]"),
    "pad": (lambda x: pad(x, low=(1, 0), high=(0, 2)), "f64[2,3]"),
    "permute": (lambda x: permute(x, axes=(2, 0, 1)), "f64[2,3,4]"),
    "reduce_max": (lambda x: reduce_max(x, axes=(0, 2)), "f64[2,3,2]"),
    "reduce_min": (lambda x: reduce_min(x, axes=(1,)), "f64[2,3]"),
    "reduce_prod": (lambda x: reduce_prod(x, axes=(0,)), "f64[2,3]"),
    "reduce_sum": (lambda x: reduce_sum(x, axes=(1,)), "f64[2,3,2]"),
    "reshape": (lambda x: reshape(x, shape=(3, 4)), "f64[2,6]"),
    "reverse": (lambda x: reverse(x, axes=(1,)), "f64[2,3]"),
    "root_of_squares": (
        lambda x: root_of_squares(x, reduce_sum(x * x, axes=(0,)), axes=(0,), divisor=1),
        "f64[2,3]",
    ),
    "scatter_add": (
        lambda x, y: scatter_add(x, y, indices(OTHERS), axis=1), "f64[2,3]", "f64[2,2,2]",
    ),
    "slice": (lambda x: slice_(x, starts=(1, 4), sizes=(2, 2), steps=(1, -3)), "f64[4,5]"),
    "slice_assign": (
        lambda x, y: slice_assign(x, y, starts=(1, 0), steps=(1, 2)), "f64[4,4]", "f64[2,2]",
    ),
    "split": (lambda x: split(x, sizes=(1, 2, 2), axis=1), "f64[2,5]"),
    "split of rows": (lambda x: split(x, sizes=(2, 1), axis=0), "f64[3,2]"),
}  # fmt: skip

# All that is looked at: a primitive, one of its operands, and one of its results.
CASES = [
    (name, i, k)
    for name, (_, *types) in CALLS.items()
    for i in range(len(types))
    for k in range(3 if name == "split" else 2 if name == "split of rows" else 1)
]


def depends(graph: Graph, position: int, place: int) -> np.ndarray:
    """Which element of a result (rows) changes with which element of an operand (columns)."""
    at = [rng.uniform(1.0, 2.0, v.shape) for v in graph.inputs]
    before = interpret(graph, *at)[place].reshape(-1)
    columns = []
    for j in range(at[position].size):
        found = np.zeros(before.shape, bool)
        # An extremum changes one way only.
        for other in (-100.0, 100.0):
            moved = [x.copy() for x in at]
            moved[position].flat[j] = other
            found |= interpret(graph, *moved)[place].reshape(-1) != before
        columns.append(found)
    return np.stack(columns, axis=1)


def evaluated(conditions: Conditions, given: dict[Value, np.ndarray], wanted: Value) -> np.ndarray:
    """What equations beside the graph compute, in the order in which they were recorded."""
    known = dict(given)
    for eqn in (*conditions.definitions.values(), *conditions.made.values()):
        if known.keys() >= set(eqn.inputs) and eqn.outputs[0] not in known:
            results = eqn.op.evaluate([known[v] for v in eqn.inputs], eqn.kwargs)
            known.update(zip(eqn.outputs, results, strict=True))
    return known[wanted]


def called(name: str) -> Graph:
    function, *types = CALLS[name]
    return build(function, *types)


def test_every_move_is_called() -> None:
    ops = {called(name).body[-1].op for name in CALLS}
    plain = {op for op in registered().values() if not getattr(op, "elementwise", False)}
    assert {op for op in plain if moves_back(op) or moves_forth(op)} == ops


@pytest.mark.parametrize(("name", "position", "place"), CASES)
def test_an_operand_matters_where_a_result_that_depends_on_it_does(
    name: str, position: int, place: int
) -> None:
    graph = called(name)
    eqn, result = graph.body[-1], graph.outputs[place]
    related = depends(graph, position, place)
    conditions = Conditions(graph)
    matters = Value(TensorType(result.shape, BOOL))
    found = conditions.operand_condition(eqn, position, place, matters)
    assert found.type == TensorType(eqn.inputs[position].shape, BOOL)
    for share in (0.0, 0.3, 0.6, 1.0):
        where = rng.random(result.shape) < share
        expected = related[where.reshape(-1)].any(axis=0).reshape(found.shape)
        np.testing.assert_array_equal(
            evaluated(conditions, {matters: where}, found), expected, strict=True
        )


def test_what_is_not_there_matters_nowhere() -> None:
    graph = build(lambda x: broadcast(x, shape=(3, 0), new_axes=(1,)), "f64[3]")
    conditions, matters = Conditions(graph), Value(TensorType((3, 0), BOOL))
    found = conditions.operand_condition(graph.body[-1], 0, 0, matters)
    assert not evaluated(conditions, {matters: np.zeros((3, 0), bool)}, found).any()
    assert found.shape == (3,)


@pytest.mark.parametrize(
    ("name", "place"),
    sorted(
        {(n, k) for n, _, k in CASES if n != "as_softmax_of" and moves_forth(called(n).body[-1].op)}
    ),
)
def test_a_result_depends_on_an_operand_from_where_that_counts(name: str, place: int) -> None:
    graph = called(name)
    eqn, result = graph.body[-1], graph.outputs[place]
    related = [depends(graph, i, place) for i in range(len(graph.inputs))]
    for left_out in (None, *range(len(graph.inputs))) if len(graph.inputs) > 1 else (None,):
        conditions = Conditions(graph)
        counts: list[Value | None] = [
            None if i == left_out else Value(TensorType(v.shape, BOOL))
            for i, v in enumerate(eqn.inputs)
        ]
        found = conditions.result_condition(eqn, place, counts)
        assert found is not None
        assert found.type == TensorType(result.shape, BOOL)
        given = {v: rng.random(v.shape) < 0.4 for v in counts if v is not None}
        expected = np.zeros(result.type.size, bool)
        for v, pairs in zip(counts, related, strict=False):
            if v is not None:
                expected |= pairs[:, given[v].reshape(-1)].any(axis=1)
        np.testing.assert_array_equal(
            evaluated(conditions, given, found), expected.reshape(result.shape), strict=True
        )


def test_what_is_not_followed_has_no_condition() -> None:
    graph = called("matmul")
    conditions = Conditions(graph)
    everywhere = [conditions.everywhere(v) for v in graph.inputs]
    assert conditions.result_condition(graph.body[-1], 0, everywhere) is None


def test_equal_conditions_are_recorded_once_or_are_those_of_the_graph() -> None:
    graph = build(lambda x, y: greater(x, y), "f64[3]", "f64[3]")
    conditions, (x, y) = Conditions(graph), graph.inputs
    assert conditions.record(greater, x, y) is graph.outputs[0]
    assert not conditions.made
    other = conditions.record(greater, y, x)
    assert conditions.record(greater, y, x) is other
    assert list(conditions.made) == [other]
    assert conditions.negate_condition(conditions.negate_condition(other)) is other
    assert conditions.plain(other) == (other, False)
    assert conditions.plain(conditions.negate_condition(other)) == (other, True)
    assert conditions.both(x, x) is x
    assert conditions.either(x, x) is x
    assert conditions.definition(conditions.either(other, graph.outputs[0])) is not None


def test_what_always_or_never_holds_is_no_part_of_a_condition() -> None:
    conditions, x = Conditions(build(lambda x: x, "bool[3]")), Value(TensorType((3,), BOOL))
    true, false = conditions.everywhere(x), conditions.nowhere(x)
    for one, other in ((x, true), (true, x)):
        assert conditions.both(one, other) is x
        assert conditions.either(one, other) is true
    for one, other in ((x, false), (false, x)):
        assert conditions.both(one, other) is false
        assert conditions.either(one, other) is x
    assert conditions.never(false)
    assert not any(conditions.never(v) for v in (x, true))


def test_two_conditions_at_one_place_are_joined_there() -> None:
    conditions = Conditions(build(lambda x: x, "bool[5]"))
    nowhere = conditions.nowhere(Value(TensorType((5,), BOOL)))
    parts = [Value(TensorType((size,), BOOL)) for size in (2, 2, 3)]
    first, same, longer = (
        conditions.record(slice_assign, nowhere, part, starts=(1,), steps=(1,)) for part in parts
    )
    there = conditions.record(logical_and, parts[0], parts[1])
    joined = conditions.record(slice_assign, nowhere, there, starts=(1,), steps=(1,))
    assert conditions.both(first, same) is joined
    for one, other in ((first, longer), (longer, first)):
        eqn = conditions.definition(conditions.both(one, other))
        assert eqn is not None
        assert (eqn.op, eqn.inputs) == (logical_and, (one, other))


def test_negations_of_the_graph_are_looked_through() -> None:
    graph = build(lambda x, y: logical_not(logical_not(greater(x, y))), "f64[3]", "f64[3]")
    first, second, third = (e.outputs[0] for e in graph.body)
    conditions = Conditions(graph)
    assert conditions.plain(second) == (first, True)
    assert conditions.plain(third) == (first, False)
    assert conditions.negate_condition(second) is first


def test_a_part_of_what_is_repeated_is_repeated_less() -> None:
    graph = build(lambda x: x, "bool[3]")
    conditions, (x,) = Conditions(graph), graph.inputs
    rows = conditions.record(broadcast, x, shape=(4, 3), new_axes=(0,))
    starts, steps = (1, 0), (1, 1)
    part = conditions.record(slice_, rows, starts=starts, sizes=(2, 3), steps=steps)
    assert part is conditions.record(broadcast, x, shape=(2, 3), new_axes=(0,))
    for sizes, steps in (((2, 2), (1, 1)), ((2, 3), (2, 1))):
        kept = conditions.record(slice_, rows, starts=(0, 0), sizes=sizes, steps=steps)
        eqn = conditions.definition(kept)
        assert eqn is not None
        assert eqn.op is slice_
    one = conditions.record(broadcast, x, shape=(1, 3), new_axes=(0,))
    assert conditions.record(reshape, one, shape=(3,)) is x
    other = conditions.definition(conditions.record(reshape, one, shape=(3, 1)))
    assert other is not None
    assert other.op is reshape


def test_what_was_put_at_a_place_is_found_there() -> None:
    graph = build(lambda x, y: x, "bool[5]", "bool[2]")
    conditions, (x, y) = Conditions(graph), graph.inputs
    whole = conditions.record(slice_assign, x, y, starts=(1,), steps=(2,))

    def part(start: int, size: int, step: int) -> Value:
        return conditions.record(slice_, whole, starts=(start,), sizes=(size,), steps=(step,))

    assert part(1, 2, 2) is y
    assert y not in [part(0, 2, 2), part(1, 2, 1), part(1, 1, 2)]


def test_conditions_that_hold_everywhere_are_known_if_they_depend_on_no_input() -> None:
    def f(x: Value) -> list[Value]:
        true, small = (full(value=v, shape=(3,), dtype=BOOL) for v in (True, False))
        return [true, small, logical_not(small), greater(x, x), logical_not(greater(x, x))]

    graph = build(f, "f64[3]")
    conditions = Conditions(graph)
    assert [conditions.always(v) for v in graph.outputs] == [True, False, True, False, False]
    arrays = [conditions.array(v) for v in graph.outputs]
    assert [a is None for a in arrays] == [False, False, False, True, True]
    assert conditions.array(graph.inputs[0]) is None


@pytest.mark.parametrize("size", [LARGEST, LARGEST + 1])
def test_large_conditions_are_not_evaluated(size: int) -> None:
    conditions = Conditions(build(lambda x: x, "f64[1]"))
    true, false = (
        conditions.record(full, value=value, shape=(size,), dtype=BOOL) for value in (True, False)
    )
    assert conditions.always(true)
    assert conditions.never(false)
    assert conditions.always(conditions.record(logical_not, false)) == (size == LARGEST)
    assert conditions.never(conditions.record(logical_not, true)) == (size == LARGEST)


REPEATED: dict[str, Callable[..., Value]] = {
    "broadcast": lambda x, y: add(
        broadcast(x, shape=(2, 3), new_axes=(0,)), broadcast(y, shape=(2, 3), new_axes=(0,))
    ),
    "gather": lambda x, y: add(
        gather(x, indices(SOME), axis=0), gather(y, indices(SOME), axis=0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_a_condition_that_was_repeated_as_its_value_is_not_joined_again(name: str) -> None:
    graph = build(REPEATED[name], "f64[3]", "f64[3]")
    eqn = next(e for e in graph.body if e.op.name == name)
    conditions, condition = Conditions(graph), Value(TensorType((3,), BOOL))
    same = conditions.record(eqn.op, condition, *eqn.inputs[1:], **eqn.kwargs)
    assert conditions.repeats_alike(eqn, same) is condition
    assert conditions.keeps(eqn, same)
    assert conditions.operand_condition(eqn, 0, 0, same) is condition
    other = Value(TensorType(eqn.outputs[0].shape, BOOL))
    assert conditions.repeats_alike(eqn, other) is None
    assert not conditions.keeps(eqn, other)
    if name == "gather":
        others = conditions.record(full, value=1, shape=(4,), dtype=INT64)
        elsewhere = conditions.record(gather, condition, others, axis=0)
        assert not conditions.keeps(eqn, elsewhere)
    assert conditions.keeps(build(lambda x: reverse(x, axes=(0,)), "f64[3]").body[0], other)


def test_conditions_that_are_fed_hold_together_with_those_that_are_computed():
    with Builder() as builder:
        fed = builder.input(TensorType((3,), BOOL))
        computed = logical_not(builder.input(TensorType((3,), BOOL)))
        graph = builder.graph([computed])
    conditions = Conditions(graph)
    for pair in ((fed, computed), (computed, fed)):
        eqn = conditions.definition(conditions.both(*pair))
        assert eqn is not None
        assert (eqn.op, eqn.inputs) == (logical_and, pair)
