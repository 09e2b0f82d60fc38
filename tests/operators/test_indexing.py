"""Indexing, shapes and joining against NumPy, on tables and on random indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import evaluate, evaluate_one, same, sample, traced

import primgraph as pg
import primgraph.operators as ops
from primgraph.errors import ArgumentError, BoundsError, DTypeError, UnknownSizeError
from primgraph.operators.linear_algebra.products import trace

X = sample((4, 3, 5))
BOTH = np.array([True, False, True])


@pytest.mark.parametrize(
    "index",
    [
        0, -1, np.int64(2), np.array(1), (1, -2), (0, 1, 2), slice(None), slice(1, 3),
        slice(None, None, -1), slice(-1, -9, -2), slice(3, 1), slice(10, 20), ..., (), None,
        (..., 0), (0, ...), (..., None), (None, 0, None, slice(1), ..., None),
        (slice(None, None, 2), 1, slice(None, None, -2)), [0, 2], [], [[0], [-1]],
        np.array([1, 1], np.uint8), ([0, 1], [1, 2]), ([[0], [1]], [1, 2]),
        (slice(None), [0, 1], [1, 2]), ([0, 1], slice(None), [1, 2]), (0, slice(None), [1, 2]),
        ([0, 1], 0), (0, [0, 1]), (slice(1, 3), [2, 0], slice(None, None, 2)),
        ([0, 1], None, [1, 2]), (None, [0, 1], [1, 2]), ([0, 1], ..., [1, 2]), (..., [0, 1], 1),
        True, False, (True, 1), (None, True), (..., np.True_), ([0, 1], True), (True, False),
        (slice(None), np.array(True), [0, 1]), (0, True), (slice(None), True, 0),
        (slice(None), BOTH), (slice(None), BOTH, [0, 1]), X > 0, (X > 0)[:, :, 0],
        ((X > 0)[:, :, 0], slice(1, 3)), (..., BOTH, 0), [True, False, False, True],
        (slice(None), [False] * 3), (np.zeros((0, 2), int), 0), (..., np.zeros(0, int)),
    ],
)  # fmt: skip
def test_getitem_is_numpys(index: Any) -> None:
    same(evaluate_one(lambda v: v[index], X), X[index])


def random_index(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Some index of an array of that shape: integers, slices, arrays, masks, `...`, None."""
    common = [(2,), (2, 1), (1,), (3, 2), ()][rng.integers(5)]
    entries: list[Any] = []
    axis = 0
    while axis < len(shape) and rng.random() < 0.85:
        n = shape[axis]
        kind = rng.integers(7)
        if kind == 0:
            entries.append(int(rng.integers(-n, n)))
        elif kind in (1, 2):
            bounds = [None if rng.random() < 0.3 else int(rng.integers(-6, 7)) for _ in "ab"]
            entries.append(slice(*bounds, [None, 1, 2, -1, -2][rng.integers(5)]))
        elif kind in (3, 4):
            extents = tuple(1 if rng.random() < 0.2 else m for m in common)
            entries.append(rng.integers(-n, n, extents[rng.integers(len(common) + 1) :]))
        elif kind == 5:
            entries.append(None)
            continue
        else:
            mask = np.zeros(n, bool)
            mask[rng.integers(n)] = True
            entries.append(mask)
        axis += 1
    if rng.random() < 0.3:
        entries.insert(rng.integers(len(entries) + 1), ...)
    return tuple(entries)


@pytest.mark.parametrize("seed", range(8))
def test_random_indices_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        x = sample(tuple(rng.integers(1, 5, rng.integers(1, 5))))
        index = random_index(rng, x.shape)
        try:
            expected = x[index]
        except IndexError:
            with pytest.raises(IndexError):
                traced(lambda v, i=index: v[i], x)
            continue
        same(evaluate_one(lambda v, i=index: v[i], x), expected)


def test_integer_variables_index_where_numpy_puts_the_result() -> None:
    i, j, k = np.array([0, -1]), np.array([[1], [2]], np.uint8), np.array(1, np.int32)
    same(evaluate_one(lambda x, i: x[i], X, i), X[i])
    same(evaluate_one(lambda x, k: x[:, k], X, k), X[:, k])
    same(evaluate_one(lambda x, i, j: x[i, :, j], X, i, j), X[i, :, j])
    same(evaluate_one(lambda x, i, j: x[:, i, j], X, i, j), X[:, i, j])
    same(evaluate_one(lambda x, i: x[0, ::2, i], X, i), X[0, ::2, i])
    same(evaluate_one(lambda x, i: x[[0, 1], 1:, i], X, i), X[[0, 1], 1:, i])
    same(evaluate_one(lambda x, k: x[k, ..., k], X, k), X[k, ..., k])


def test_rows_can_be_iterated_over() -> None:
    for found, expected in zip(evaluate(lambda v: list(v), X), X, strict=True):
        same(found, expected)


def test_take_and_gather() -> None:
    index = np.array([[0, -1], [2, 2]])
    for axis in (0, 1, -1):
        same(evaluate_one(lambda v, i, a=axis: ops.take(v, i, a), X, index), X.take(index, axis))
        same(evaluate_one(lambda v, a=axis: ops.gather(v, [0, -1], a), X), X.take([0, -1], axis))
        same(evaluate_one(lambda v, a=axis: ops.take(v, 1, axis=a), X), X.take(1, axis))
    same(evaluate_one(lambda v: ops.take(v, [59, 0]), X), X.take([59, 0]))
    order = np.argsort(X, axis=1)
    along = np.take_along_axis(X, order, 1)
    same(evaluate_one(lambda v, i: ops.take_along_axis(v, i, 1), X, order), along)
    same(evaluate_one(lambda v: ops.take_along_axis(v, order, axis=1), X), along)
    first = np.take_along_axis(X, order[:1, :2], 1)
    same(evaluate_one(lambda v: ops.take_along_axis(v, order[:1, :2], 1), X), first)
    flat = np.take_along_axis(X, np.array([3, -1]), None)
    same(evaluate_one(lambda v: ops.take_along_axis(v, [3, -1], None), X), flat)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_add_adds_up_repeated_positions(axis: int) -> None:
    index = np.array([0, 2, 0])
    updates = sample(X.take(index, axis).shape, seed=1)
    expected = X.copy()
    np.add.at(expected, (*(slice(None),) * (axis % 3), index), updates)
    same(evaluate_one(lambda v, u: ops.scatter_add(v, index, u, axis), X, updates), expected)
    expected = X.copy()
    np.add.at(expected, (*(slice(None),) * (axis % 3), index), 1)
    same(evaluate_one(lambda v, i: ops.scatter_add(v, i, 1, axis=axis), X, index), expected)


def test_set_slice_and_strided_slice() -> None:
    for index in [0, (slice(None), -1), (..., slice(None, None, -2)), (None, slice(1, 3)), ()]:
        for y in (7.0, 2, np.array(3.0), X[index] * 2, X[index].astype(np.float32)):
            expected = X.copy()
            expected[index] = y
            same(evaluate_one(lambda v, i=index, y=y: ops.set_slice(v, i, y), X), expected)
    found = evaluate_one(lambda v: ops.strided_slice(v, [0, -1], [-3, 4], [9, 0], [1, -2]), X)
    same(found, X[-3:9, :, 4:0:-2])
    same(evaluate_one(lambda v: ops.strided_slice(v, [1], [1], [3]), X), X[:, 1:3])


@pytest.mark.parametrize(
    "index",
    [
        [0, 2], [1, 1, 0], (slice(None), [2, 0, 2]), ([0, 1], [1, 2]), (0, slice(None), [1, 2]),
        ([0, 1], slice(None), [1, 2]), X > 0, (slice(None), BOTH), (..., [0, 0], 1), True, False,
        ([[0], [1]], [1, 2]), (None, [3]), [], np.zeros(4, bool),
        ([-1, 3], ..., slice(None, None, 2)),
    ],
)  # fmt: skip
def test_set_slice_at_index_arrays_and_masks(index: Any) -> None:
    for y in (7.0, 2, X[index] * 2, np.arange(float(X[index].size)).reshape(X[index].shape)):
        expected = X.copy()
        expected[index] = y
        same(evaluate_one(lambda v, y=y: ops.set_slice(v, index, y), X), expected)
        expected[index] = y
        if isinstance(y, np.ndarray):
            same(evaluate_one(lambda v, u: ops.set_slice(v, index, u), X, y), expected)
    with pg.Program() as program:
        x, y = pg.data("x", X.shape), pg.data("y", X[index].shape)
        slopes = pg.grad(pg.sum(pg.set_slice(x, index, y)), [x, y])
    dx, dy = pg.Executor().run(program, {"x": X, "y": X[index]}, slopes)
    kept = np.ones_like(X)
    kept[index] = 0
    same(dx, kept)
    assert dy.sum() == X.size - kept.sum()


def test_set_slice_where_a_variable_says() -> None:
    for mask, y in ((X > 0, 5.0), (X[..., 0] > 0, np.arange(5.0)), (X[:, 0, 0] > 0, -1)):
        expected = X.copy()
        expected[mask] = y
        same(evaluate_one(lambda v, m, y=y: ops.set_slice(v, m, y), X, mask), expected)


def test_diagonal_and_trace() -> None:
    for offset in (-5, -2, 0, 1, 4, 9):
        for axes in ((0, 1), (-1, 0), (1, 2)):
            found = evaluate_one(lambda v, o=offset, a=axes: ops.diagonal(v, o, *a), X)
            same(found, np.diagonal(X, offset, *axes))
            found = evaluate_one(lambda v, o=offset, a=axes: trace(v, o, *a), X)
            same(found, np.trace(X, offset, *axes), 1e-14)
    same(evaluate_one(np.trace, X[0]), np.trace(X[0]), 1e-14)


SHAPING = [
    (lambda m, x: m.reshape(x, (5, -1)), [X]),
    (lambda m, x: m.reshape(x, 60), [X]),
    (lambda m, x: x.reshape(2, -1, 3), [X]),
    (lambda m, x: x.reshape((60,)), [X]),
    (lambda m, x: m.reshape(x, ()), [X[:1, :1, :1]]),
    (lambda m, x: m.reshape(x, (0, 7)), [X[:0]]),
    (lambda m, x: m.ravel(x), [X]),
    (lambda m, x: x.flatten(), [X]),
    (lambda m, x: m.broadcast_to(x, (2, 4, 3, 5)), [X]),
    (lambda m, x: m.broadcast_to(x, (0, 3, 5)), [X[:1]]),
    (lambda m, x: m.broadcast_to(x, (2,)), [X[0, 0, 0]]),
    (lambda m, x: m.transpose(x), [X]),
    (lambda m, x: x.T, [X]),
    (lambda m, x: m.transpose(x, (1, -1, 0)), [X]),
    (lambda m, x: x.transpose(2, 0, 1), [X]),
    (lambda m, x: x.transpose([2, 0, 1]), [X]),
    (lambda m, x: m.swapaxes(x, 0, -1), [X]),
    (lambda m, x: m.moveaxis(x, 0, -1), [X]),
    (lambda m, x: m.moveaxis(x, (0, 1), (-1, 0)), [X]),
    (lambda m, x: m.squeeze(x), [X[:1, :, :1]]),
    (lambda m, x: m.squeeze(x, 0), [X[:1, :, :1]]),
    (lambda m, x: x.squeeze((0, -1)), [X[:1, :, :1]]),
    (lambda m, x: m.expand_dims(x, 0), [X]),
    (lambda m, x: m.expand_dims(x, (-1, 1)), [X]),
    (lambda m, x: m.tril(x), [X]),
    (lambda m, x: m.tril(x, -1), [X[0]]),
    (lambda m, x: m.tril(x), [X[0, 0]]),
    (lambda m, x: m.triu(x, 1), [X]),
    (lambda m, x: m.triu(x, -9), [X > 0]),
    (lambda m, x: m.concatenate([x, x], 1), [X]),
    (lambda m, x: m.concatenate((x, [[1, 2]]), axis=-1), [X[0, :1]]),
    (lambda m, x: m.concatenate([x, x[:0], x[:1]]), [X]),
    (lambda m, x: m.concatenate([x, [1.0]], None), [X]),
    (lambda m, x: m.concatenate([x]), [X]),
    (lambda m, x: m.concatenate(x), [X]),
    (lambda m, x: m.stack([x, x[::-1]], -1), [X]),
    (lambda m, x: m.stack([x[0, 0, 0], 1.0]), [X]),
    (lambda m, x: m.stack([x], axis=1), [X]),
    (lambda m, x: m.flip(x), [X]),
    (lambda m, x: m.flip(x, (0, -1)), [X]),
    (lambda m, x: m.roll(x, 2), [X]),
    (lambda m, x: m.roll(x, -1, 1), [X]),
    (lambda m, x: m.roll(x, (1, 2), (0, -1)), [X]),
    (lambda m, x: m.roll(x, 7, axis=(0, 1)), [X]),
    (lambda m, x: m.roll(x, 1, 0), [X[:0]]),
    (lambda m, x: m.tile(x, 2), [X]),
    (lambda m, x: m.tile(x, (2, 1, 1, 3)), [X]),
    (lambda m, x: m.tile(x, (0, 2)), [X]),
    (lambda m, x: m.repeat(x, 2), [X]),
    (lambda m, x: m.repeat(x, 3, axis=1), [X]),
    (lambda m, x: m.repeat(x, [1, 0, 2], 1), [X]),
    (lambda m, x: m.pad(x, 1), [X]),
    (lambda m, x: m.pad(x, (0, 2), constant_values=3), [X]),
    (lambda m, x: m.pad(x, [(1, 0), (0, 2), (0, 0)], constant_values=np.nan), [X]),
    (lambda m, x: m.pad(x, 2, "edge"), [X]),
    (lambda m, x: m.pad(x, ((1, 2), (2, 0), (0, 4)), mode="reflect"), [X]),
    (lambda m, x: m.pad(x, 3, mode="wrap"), [X]),
    (lambda m, x: m.pad(x, 1), [X[0, 0, 0]]),
    (lambda m, x: m.full((2, 3), 7), [X]),
    (lambda m, x: m.full((2, 3), 7.5, np.float32), [X]),
    (lambda m, x: m.zeros((2, 0)) + m.ones(()), [X]),
    (lambda m, x: m.zeros_like(x > 0), [X]),
    (lambda m, x: m.ones_like(x, dtype=np.int8), [X]),
    (lambda m, x: m.full_like(x, 2), [X]),
    (lambda m, x: m.arange(5), [X]),
    (lambda m, x: m.arange(1, 2, 0.25), [X]),
    (lambda m, x: m.arange(5, -1, -2, dtype=np.float32), [X]),
    (lambda m, x: m.arange(0), [X]),
    (lambda m, x: m.linspace(0, 1, 5), [X]),
    (lambda m, x: m.eye(3), [X]),
    (lambda m, x: m.eye(2, 4, k=1, dtype=int), [X]),
    (lambda m, x: m.astype(x, np.int32), [X]),
    (lambda m, x: x.astype(bool), [X]),
    (lambda m, x: m.array([[1, 2], [3, 4]], dtype=np.uint8), [X]),
]


@pytest.mark.parametrize(("function", "arrays"), SHAPING)
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_shaping_is_numpys(function: Any, arrays: Any, dtype: Any) -> None:
    typed = [np.asarray(a).astype(dtype) for a in arrays]
    with np.errstate(invalid="ignore"):
        if dtype is np.int32 and "nan" in function.__code__.co_names:
            return
        expected = function(np, *typed)
    same(evaluate_one(lambda *a: function(ops, *a), *typed), expected)


def test_split_is_numpys() -> None:
    for sections, axis in [(2, 0), (3, 1), ([1, 3], 0), ([1, -1], 2), ([4, 2], -1), ([9], 0)]:
        found = evaluate(lambda v, s=sections, a=axis: ops.split(v, s, a), X)
        for part, expected in zip(found, np.split(X, sections, axis), strict=True):
            same(part, expected)
    assert "split" in str(traced(lambda v: ops.split(v, 2), X))


def test_size_is_a_constant() -> None:
    x = sample((3, 4))
    for axis in (None, 0, -1):
        found = evaluate_one(lambda v, a=axis: ops.size(v, a), x)
        assert found.dtype == np.int64
        assert found == np.size(x, axis)
    with pytest.raises(ValueError, match="size of f64"):
        traced(lambda v: ops.size(v, 2), x)


def test_one_hot_iota_and_constants() -> None:
    labels = np.array([[0, 2], [5, -1]])
    expected = (labels[..., None] == np.arange(3)).astype(float)
    same(evaluate_one(lambda i: ops.one_hot(i, 3), labels), expected)
    same(evaluate_one(lambda i: ops.one_hot(i, 3, bool), labels), expected.astype(bool))
    same(evaluate_one(lambda v: ops.iota((2, 3), 1, "f4"), X), np.float32([[0, 1, 2]] * 2))
    same(evaluate_one(lambda v: ops.array(3), X), np.array(3))
    same(evaluate_one(lambda v: ops.assign(v), X), X)
    same(evaluate_one(lambda v: ops.stop_gradient(v > 0), X), X > 0)
    filled = evaluate_one(lambda v: ops.full((2, 5), v[0, 0]), X)
    same(filled, np.full((2, 5), X[0, 0]))


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (4, BoundsError, r"index 4 is out of bounds for axis 0 of f64\[4,3,5\]"),
        ((0, -4), BoundsError, r"index -4 is out of bounds for axis 1"),
        ((slice(None), [0, 3]), BoundsError, r"index 3 is out of bounds for axis 1"),
        ((0, 0, 0, 0), BoundsError, r"4 indices are too many for f64\[4,3,5\]"),
        ((..., 0, ...), BoundsError, "only one ellipsis"),
        (([0, 1], [0, 1, 2]), BoundsError, "cannot be broadcast"),
        (np.ones(3, bool), BoundsError, r"mask of shape \(3,\) does not fit axes 0 to 0"),
        ((0, np.ones((3, 4), bool)), BoundsError, r"mask of shape \(3, 4\)"),
        (np.array(1.0), DTypeError, "array of dtype float64"),
        (1.0, ArgumentError, "float 1.0"),
        ("a", ArgumentError, "str 'a'"),
        ([0.5], DTypeError, "array of dtype float64"),
        (slice(0.5, None), ArgumentError, "not integers"),
        (slice(None, None, 0), ArgumentError, "step zero"),
    ],
)
def test_wrong_indices_are_refused_when_the_program_is_built(
    index: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        traced(lambda v: v[index], X)
    assert "test_indexing.py" in str(caught.value)


def test_variables_that_cannot_be_indices() -> None:
    with pytest.raises(UnknownSizeError, match=r"how many elements a mask(.|\n)*pg\.where"):
        pg.trace(lambda v: v[v > 0], X)
    with pytest.raises(BoundsError, match=r"a mask bool\[4,3\] does not fit f64\[4,3,5\]"):
        traced(lambda v: v[v[:, :, 0] > 0], X)
    with pytest.raises(DTypeError, match=r"the variable f64\[\]"):
        traced(lambda v: v[v[0, 0, 0]], X)
    with pytest.raises(ArgumentError, match="a variable as bound"):
        traced(lambda v, i: v[i:], X, np.array(1))
    with pytest.raises(BoundsError, match=r"a mask bool\[3\] does not fit"):
        traced(lambda v, m: ops.set_slice(v, m, 0.0), X, BOTH)
    with pytest.raises(DTypeError, match=r"cannot put f64\[\] into i32\[2\]"):
        traced(lambda v: ops.set_slice(v, 0, 2.5), np.zeros(2, np.int32))


def test_an_index_out_of_range_at_run_time_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        evaluate(lambda v, i: v[i], X, np.array([9]))
