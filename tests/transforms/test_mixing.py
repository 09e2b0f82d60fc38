"""What keeps samples apart, primitive by primitive, compared with what depends on what."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from derive import build

import primgraph as pg
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, active_recorder, registered
from primgraph.ir.types import FLOAT64, INT64, TensorType
from primgraph.primitives.constants import constant_op, full, iota
from primgraph.primitives.elementwise import cast, floor
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import cumsum, reduce_max, reduce_sum
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
from primgraph.transforms.dataflow.batch_independence import find_mixing

rng = np.random.default_rng(3)
N, K = 4, 3
# Positions of elements of each sample, where all elements of all samples are in one axis.
JOINT = [[2, 0, 0], [5, 5, 3], [6, 8, 7], [9, 11, 9]]
Function = Callable[[Value], Value]


def numbers(*shape: int) -> Value:
    result: Value = full(value=0.5, shape=shape, dtype=FLOAT64)
    return result


def known(values: object) -> Value:
    op, params = constant_op(np.array(values))
    result: Value = op(**params)
    return result


def rows(x: Value, start: int, size: int, step: int = 1) -> Value:
    result: Value = slice_(x, starts=(start, 0), sizes=(size, K), steps=(step, 1))
    return result


def padded(x: Value, low: int, high: int) -> Value:
    result: Value = pad(x, low=(low, 0), high=(high, 0))
    return result


def assigned(whole: Value, part: Value, *starts: int, steps: tuple[int, ...] = (1, 1)) -> Value:
    result: Value = slice_assign(whole, part, starts=starts, steps=steps)
    return result


def counter(extent: int = N) -> Value:
    result: Value = iota(shape=(extent,), axis=0, dtype=INT64)
    return result


def flat(x: Value) -> Value:
    """Samples and elements in one axis, sample after sample."""
    result: Value = reshape(x, shape=(N * K,))
    return result


def variable(x: Value) -> pg.Variable:
    """`x` as users have it."""
    return pg.Variable(active_recorder(), x)


def shaped(x: Value, *shape: int) -> Value:
    result: Value = reshape(x, shape=shape)
    return result


def turned(x: Value) -> Value:
    result: Value = permute(x, axes=(1, 0))
    return result


def back(x: Value, size: int = N) -> Value:
    """The parts of a split one after the other again, in their order."""
    result: Value = concat(*split(x, sizes=(1, 1, size - 2), axis=0), axis=0)
    return result


def swapped(x: Value) -> Value:
    first, second = split(x, sizes=(2, 2), axis=0)
    result: Value = concat(second, first, axis=0)
    return result


APART: dict[str, Function] = {
    "what is computed element by element": lambda x: x * x + floor(x),
    "turned twice": lambda x: turned(turned(x) * 2.0),
    "a product on the right": lambda x: matmul(x, numbers(K, 2)),
    "a product on the left of what is turned": lambda x: turned(matmul(numbers(2, K), turned(x))),
    "products of stacks": lambda x: matmul(shaped(x, N, 1, K), shaped(x, N, K, 1)),
    "sums of samples": lambda x: reduce_sum(x, axes=(1,)),
    "sums before the samples": lambda x: reduce_sum(shaped(turned(x), K, N), axes=(0,)),
    "sums that run in samples": lambda x: cumsum(x, axis=1, reverse=True),
    "turned within": lambda x: reverse(x, axes=(1,)),
    "repeated": lambda x: broadcast(x, shape=(N, 2, K), new_axes=(1,)),
    "repeated before and summed": lambda x: reduce_sum(
        broadcast(x, shape=(2, N, K), new_axes=(0,)), axes=(0,)
    ),
    "split and joined": back,
    "split within": lambda x: split(x, sizes=(1, 2), axis=1)[1],
    "a part of a split that is put back": lambda x: padded(split(x, sizes=(1, 3), axis=0)[1], 1, 0),
    "padded and cut": lambda x: rows(padded(x, 2, 1), 2, N),
    "cut and padded": lambda x: padded(rows(x, 1, 2), 1, 1),
    "joined with others and cut": lambda x: rows(concat(numbers(2, K), x, axis=0), 2, N),
    "joined within": lambda x: concat(x, numbers(N, 2), x, axis=1),
    "joined parts": lambda x: concat(rows(x, 0, 1), rows(x, 1, 3) * 2.0, axis=0),
    "assigned to constants": lambda x: assigned(numbers(N, K), rows(x, 1, 2), 1, 0),
    "assigned within": lambda x: assigned(x, slice_(x, starts=(0, 1), sizes=(N, 1), steps=(1, 1)),
                                          0, 2),
    "constants that are assigned": lambda x: assigned(x, numbers(2, K), 0, 0, steps=(2, 1)),
    "joined axes": lambda x: shaped(flat(x) * 2.0, N, K),
    "joined axes of what is repeated": lambda x: reduce_sum(
        shaped(shaped(broadcast(x, shape=(2, N, K), new_axes=(0,)), 2 * N * K) * 2.0, 2, N, K),
        axes=(0,),
    ),
    "a whole slice of joined axes": lambda x: shaped(
        slice_(flat(x), starts=(0,), sizes=(N * K,), steps=(1,)), N, K
    ),
    "elements of samples": lambda x: gather(x, known([2, 0, 0]), axis=1),
    "elements behind": lambda x: permute(
        gather(turned(x), known([[2, 0]]), axis=0), axes=(2, 0, 1)
    ),
    "counted": lambda x: gather(x, counter(), axis=0),
    "counted by an array": lambda x: gather(x, known([0, 1, 2, 3]), axis=0),
    "counted from one": lambda x: padded(gather(x, known([1, 2, 3]), axis=0), 1, 0),
    "counted along a later axis": lambda x: turned(gather(turned(x), counter(), axis=1)),
    "counted pairs": lambda x: gather(x, counter(), known([2, 0, 1, 0]), axis=0),
    "counted where samples and elements share an axis": lambda x: gather(
        flat(x), known([[2, 0], [5, 5], [6, 8], [9, 11]]), axis=0
    ),
    "counted from one where they share an axis": lambda x: padded(
        gather(flat(x), known([[3, 5, 3], [6, 7, 8], [9, 11, 10]]), axis=0), 1, 0
    ),
    "counted through a cast and a repetition": lambda x: gather(
        x, broadcast(cast(cast(counter(), dtype=np.dtype(np.int32)), dtype=INT64),
                     shape=(N, 2), new_axes=(1,)),
        known([[2, 0]] * N), axis=0,
    ),
    "added at counted positions": lambda x: scatter_add(x, x * x, counter(), axis=0),
    "added to constants": lambda x: scatter_add(numbers(N, K), x * x, known([0, 1, 2, 3]), axis=0),
    "added at counted positions from one": lambda x: scatter_add(
        numbers(N, K), rows(x, 1, 3), known([1, 2, 3]), axis=0
    ),
    "added where samples and elements share an axis": lambda x: shaped(
        scatter_add(numbers(N * K), x, known(JOINT), axis=0), N, K
    ),
    "added within": lambda x: scatter_add(x, x, known([1, 0, 1]), axis=1),
    "added behind": lambda x: turned(scatter_add(turned(x), turned(x), known([1, 0, 1]), axis=0)),
    "added at pairs": lambda x: scatter_add(
        x, reduce_sum(x, axes=(1,)), counter(), known([2, 0, 1, 0]), axis=0
    ),
    "constants added": lambda x: scatter_add(x, numbers(2, K), known([3, 3]), axis=0),
    "a loop along the other axis": lambda x: turned(pg.map(pg.sin, variable(turned(x))).value),
    "carried from trip to trip": lambda x: pg.fori_loop(
        0, 3, lambda i, v: pg.sin(v) * variable(x), variable(numbers(N, K))).value,
    "carried as long as all are small": lambda x: pg.while_loop(
        lambda v: pg.sum(v) < 1e9, lambda v: v * 2.0, variable(x), max_trips=3).value,
    "in a branch": lambda x: pg.cond(
        pg.sum(variable(x)) > 0.0, pg.sin, lambda v: v * 2.0, variable(x)).value,
    "in a stack": lambda x: reduce_sum(pg.scan(
        lambda c, _: (c, c * 2.0), variable(x), length=2)[1].value, axes=(0,)),
}  # fmt: skip

# The last tells whether samples are mixed in fact; the answer may be on the safe side.
MIXED: dict[str, tuple[Function, bool]] = {
    "sums over samples": (lambda x: x - broadcast(
        reduce_sum(x, axes=(0,)), shape=(N, K), new_axes=(0,)), True),
    "sums that run over samples": (lambda x: cumsum(x, axis=0, reverse=False), True),
    "largest": (lambda x: x * broadcast(
        reduce_max(x, axes=(0, 1)), shape=(N, K), new_axes=(0, 1)), True),
    "turned round": (lambda x: reverse(x, axes=(0,)), True),
    "a product on the left": (lambda x: matmul(numbers(N, N), x), True),
    "all pairs": (lambda x: matmul(x, turned(x)), True),
    "turned": (lambda x: shaped(turned(x), N, K), True),
    "swapped halves": (swapped, True),
    "padded and cut elsewhere": (lambda x: rows(padded(x, 2, 1), 1, N), True),
    "cut and padded elsewhere": (lambda x: padded(rows(x, 1, 2), 2, 0), True),
    "joined with others and cut elsewhere": (
        lambda x: rows(concat(numbers(2, K), x, axis=0), 1, N), True),
    "joined parts in another order": (
        lambda x: concat(rows(x, 1, 3), rows(x, 0, 1), axis=0), True),
    "padded on one side where samples and elements share an axis": (
        lambda x: shaped(pad(flat(x), low=(0,), high=(K,)), N + 1, K), False),
    "one sample that is taken out and put back": (
        lambda x: padded(gather(x, known([2]), axis=0), 2, 1), False),
    "every other": (lambda x: padded(rows(x, 0, 2, 2), 0, 2), True),
    "backwards": (lambda x: rows(x, 3, N, -1), True),
    "assigned elsewhere": (lambda x: assigned(x, rows(x, 1, 2), 0, 0), True),
    "assigned by steps": (lambda x: assigned(x, rows(x, 0, 2), 0, 0, steps=(2, 1)), True),
    "counted from elsewhere": (lambda x: padded(gather(x, known([1, 2, 3]), axis=0), 0, 1), True),
    "counted in pieces of another size": (
        lambda x: gather(flat(x), known([[0, 2], [3, 4], [4, 7], [9, 11]]), axis=0), True),
    "picked where samples and elements share an axis": (
        lambda x: gather(flat(x), known([[2, 0], [6, 8], [5, 5], [9, 11]]), axis=0), True),
    "added elsewhere where they share an axis": (
        lambda x: shaped(scatter_add(numbers(N * K), x, known(
            [[2, 0, 0], [5, 5, 6], [6, 8, 7], [9, 11, 9]]), axis=0), N, K), True),
    "picked": (lambda x: gather(x, known([0, 2, 1, 3]), axis=0), True),
    "summed up by a loop": (
        lambda x: x + broadcast(pg.scan(lambda c, v: (c + v, None), variable(numbers(K)),
                                        variable(x))[0].value, shape=(N, K), new_axes=(0,)), True),
    "turned round in a trip": (lambda x: pg.fori_loop(
        0, 1, lambda i, v: pg.flip(v, 0), variable(x)).value, True),
    "moved to other places in one branch": (lambda x: pg.cond(
        pg.sum(variable(x)) > 0.0, lambda v: pg.roll(v, 1, 0), pg.sin, variable(x)).value, True),
    "a loop along the samples": (lambda x: pg.map(pg.sin, variable(x)).value, False),
    "picked by what is computed": (
        lambda x: gather(x, cast(reduce_sum(x * 0.0, axes=(1,)), dtype=INT64), axis=0), True),
    "added elsewhere": (lambda x: scatter_add(x, x * x, known([0, 2, 1, 3]), axis=0), True),
    "added from elsewhere": (
        lambda x: scatter_add(numbers(N, K), rows(x, 0, 3), known([1, 2, 3]), axis=0), True),
    "a part of joined axes": (
        lambda x: shaped(slice_(pad(flat(x), low=(1,), high=(0,)), starts=(0,), sizes=(N * K,),
                                steps=(1,)), N, K), True),
    "parts of joined axes": (
        lambda x: shaped(concat(*split(flat(x), sizes=(K, N * K - K), axis=0), axis=0), N, K),
        False),
    "joined axes with others": (
        lambda x: shaped(concat(flat(x), numbers(N * K), axis=0), 2 * N, K), False),
    "joined axes in places": (
        lambda x: shaped(gather(flat(x), counter(N * K), axis=0), N, K), False),
}  # fmt: skip


def depends(graph: Graph) -> np.ndarray:
    """Which samples of the result (rows) change with which samples of the input (columns)."""
    at = rng.uniform(1.0, 2.0, (N, K))
    (before,) = interpret(graph, at)
    columns = []
    for j in range(N):
        moved = at.copy()
        moved[j] += rng.uniform(5.0, 6.0, K)
        (after,) = interpret(graph, moved)
        columns.append([np.any(a != b) for a, b in zip(after, before, strict=True)])
    return np.array(columns).T


@pytest.mark.parametrize("name", APART)
def test_samples_that_stay_apart(name: str) -> None:
    graph = build(APART[name], f"f64[{N},{K}]")
    assert not np.any(depends(graph) & ~np.eye(N, dtype=bool)), "the test is wrong"
    assert find_mixing(graph, graph.inputs) is None


@pytest.mark.parametrize("name", MIXED)
def test_samples_that_meet_or_may(name: str) -> None:
    function, in_fact = MIXED[name]
    graph = build(function, f"f64[{N},{K}]")
    related = depends(graph)
    if graph.outputs[0].shape[0] == N:
        assert in_fact == bool(np.any(related & ~np.eye(N, dtype=bool))), "the test is wrong"
    assert find_mixing(graph, graph.inputs) is not None


def test_what_has_no_rule_may_mix_unless_it_is_elementwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("primgraph.ir.facts.ops._registry", dict(registered()))
    for elementwise in (False, True):
        op = Primitive(
            f"test_alike_{elementwise}", lambda x: x, lambda x: x + 1.0, elementwise=elementwise
        )
        graph = build(op, f"f64[{N},{K}]")
        assert (find_mixing(graph, graph.inputs) is None) == elementwise


def test_what_has_no_derivative_may_look_at_all_samples() -> None:
    graph = build(
        lambda x: x * broadcast(floor(reduce_sum(x, axes=(0,))), shape=(N, K), new_axes=(0,)),
        f"f64[{N},{K}]",
    )
    assert find_mixing(graph, graph.inputs) is None


def test_one_sample_or_none_is_never_mixed() -> None:
    for count, mixes in ((0, False), (1, False), (2, True)):
        graph = build(lambda x: cumsum(x, axis=0, reverse=False), TensorType((count, K), FLOAT64))
        assert (find_mixing(graph, graph.inputs) is not None) == mixes
    assert find_mixing(graph, []) is None


def test_samples_of_several_inputs() -> None:
    apart = build(lambda x, y: x * y, "f64[4]", "f64[4]")
    assert find_mixing(apart, apart.inputs) is None
    moved = build(lambda x, y: x * reverse(y, axes=(0,)), "f64[4]", "f64[4]")
    assert find_mixing(moved, moved.inputs) is not None
    assert find_mixing(moved, moved.inputs[:1]) is None


def solved(x: pg.Variable) -> pg.Variable:
    return pg.root(lambda y: y**3 + y - x[:, 0] * x[:, 1], pg.zeros((N,)))


def repeated(x: pg.Variable) -> pg.Variable:
    return pg.fixed_point(lambda y: pg.cos(y) * x / 3.0, pg.zeros((N, K)))


def coupled(x: pg.Variable) -> pg.Variable:
    return pg.root(lambda y: y**3 + 2.0 * y + pg.mean(y) - x[:, 0], pg.zeros((N,)))


def solved_each(x: pg.Variable) -> pg.Variable:
    return pg.vmap(lambda a: pg.root(lambda y: y**3 + y - pg.sum(a**2), 0.0))(x)


@pytest.mark.parametrize("function", [solved, repeated, solved_each, coupled])
def test_samples_of_solutions_are_those_of_their_equations(function: Function) -> None:
    x = rng.uniform(0.5, 1.0, (N, K))
    graph = pg.trace(function, x)
    slopes = np.asarray(pg.jacobian(function, x)).reshape(N, -1, N, K)
    meets = [slopes[i, :, j].any() for i in range(N) for j in range(N) if i != j]
    assert (find_mixing(graph, graph.inputs) is not None) == (function is coupled)
    assert any(meets) == (function is coupled)
