"""Tensors: the same whenever they are looked at, and derivatives through what was recorded."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import tracemalloc
import warnings
from collections import Counter
from threading import Barrier, Thread

import numpy as np
import pytest
from density import starts
from program_steps import check_steps
from program_tensors import check_tensors
from random_programs import random_program

import primgraph as pg
import primgraph.compat.megengine as megengine
from primgraph.eager import run, steps
from primgraph.eager.inplace.in_place import change_together
from primgraph.eager.node import Node


def leaf(*numbers: float, dtype: str | None = None) -> pg.Tensor:
    return pg.tensor(list(numbers), dtype, requires_grad=True)


@pytest.mark.parametrize("start", starts(1000, 60, 10, dense=10))
def test_whenever_tensors_are_looked_at_they_and_their_gradients_are_the_same(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 10):
        check_tensors(random_program(seed), seen)
    assert seen["tensors"] == 10


@pytest.mark.parametrize("start", starts(0, 60, 4, dense=4))
def test_networks_do_the_same_in_both_worlds_compiled_and_for_each_sample(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 4):
        check_steps(seed, seen)
    assert seen["steps"] == 4


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "name",
    [
        "sigmoid",
        "silu",
        "softmax",
        "log_softmax",
        "softplus",
        "gelu",
        "erf",
        "tanh",
        "exp",
        "logsumexp",
        "mean",
        "sum",
        "norm",
    ],
)
def test_the_first_look_finds_the_bits_that_kernels_find(name, dtype):
    array = np.random.default_rng(0).standard_normal((16, 4)).astype(dtype)

    def looks():
        x = pg.tensor(array, requires_grad=True)
        y = getattr(pg, name)(x * 1.5)
        (y * y).sum().backward()
        return y.numpy().tobytes(), x.grad.numpy().tobytes()

    assert len({looks() for _ in range(3)}) == 1


# What a tensor is.


@pytest.mark.parametrize(
    "data", [3, 2.5, True, [1, 2], [[1.0], [2.0]], np.float32(2.0), np.arange(3), np.zeros((0, 2))]
)
def test_tensors_hold_what_numpy_would(data):
    made, expected = pg.tensor(data), np.asarray(data)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(made.numpy(), expected)


def test_tensors_are_of_the_default_dtype_where_python_has_floats():
    assert pg.zeros(2).dtype == np.float64
    pg.set_default_dtype("float32")
    try:
        assert pg.tensor([1.0, 2]).dtype == np.float32
        assert pg.zeros(2).dtype == np.float32
        assert pg.tensor(np.ones(2)).dtype == np.float64
        assert pg.tensor([1, 2]).dtype == np.int64
    finally:
        pg.set_default_dtype("float64")


def test_a_tensor_has_elements_of_its_own():
    array = np.ones(3)
    x = pg.tensor(array)
    array[0] = 5.0
    x.numpy()[1] = 5.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5.0


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({}, "float64"),
        ({"copy": True}, "float64"),
        ({"dtype": "float64"}, "float64"),
        ({"dtype": "float64", "copy": True}, "float64"),
        ({"dtype": "float32"}, "float32"),
        ({"dtype": "int64"}, "int64"),
    ],
)
def test_np_array_of_a_tensor_is_a_writable_copy(options, dtype):
    x = pg.tensor([1.0, 2.0])
    array = np.array(x, **options)
    assert (array.dtype, array.flags.writeable) == (np.dtype(dtype), True)
    array[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_np_asarray_of_a_tensor_shares_its_memory_if_the_dtype_is_the_same():
    for x in (pg.tensor([1.0, 2.0]), pg.tensor([1.0, 2.0], dtype="float32")):
        for array in (np.asarray(x), np.asarray(x, dtype=x.dtype)):
            assert not array.flags.writeable
            assert np.shares_memory(array, np.asarray(x))
    x = pg.tensor([1.0, 2.0])
    other = np.asarray(x, dtype="float32")
    assert (other.dtype, other.tolist()) == (np.dtype("float32"), [1.0, 2.0])
    other[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_numbers_and_truth_are_there_for_python():
    x = pg.tensor(2.5) * 2.0
    assert (float(x), int(x), x.item(), f"{x:.1f}", bool(x > 4.0)) == (5.0, 5, 5.0, "5.0", True)
    assert [10, 20, 30][pg.tensor(1) + 1] == 30
    assert 5.0 in x.reshape(1)
    with pytest.raises(pg.ArgumentError, match=r"the truth of bool\[2\] is ambiguous"):
        bool(pg.tensor([1.0, 2.0]) > 1.0)
    with pytest.raises(pg.ArgumentError, match="of one element"):
        pg.tensor([1.0, 2.0]).item()
    with pytest.raises(pg.DTypeError, match="an index is an integer"):
        [1, 2][pg.tensor(1.0)]


def test_numpy_functions_give_tensors():
    x = pg.tensor([1.0, 4.0])
    for found in (
        np.sqrt(x),
        np.array([0.0, 0.0]) + x.sqrt(),
        np.sum(x, keepdims=True) / 5.0 * x**0.5,
    ):
        assert isinstance(found, pg.Tensor)
        np.testing.assert_allclose(found, [1.0, 2.0])


def test_numpy_compares_and_prints_tensors_and_is_refused_what_would_end_derivatives():
    x = leaf(1.0, 4.0)
    assert np.allclose(x, [1.0, 4.0])
    assert np.allclose(a=[1.0, 4.0], b=x * 1.0)
    assert np.array_equal(x, x.detach())
    assert np.isclose(x, 1.0).tolist() == [True, False]
    assert (np.shape(x), np.ndim(x), np.array2string(x)) == ((2,), 1, "[1. 4.]")
    values, vectors = np.linalg.eig(np.diag(x))
    assert values.requires_grad
    assert (values.tolist(), vectors.tolist()) == ([1.0, 4.0], [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(pg.ArgumentError, match=r"numpy\.emath\.sqrt has no counterpart") as error:
        np.emath.sqrt(x)
    assert "numpy.emath.sqrt(x.numpy()) gives an array" in str(error.value)


def test_a_misspelt_name_is_compared_with_public_ones():
    with pytest.raises(AttributeError) as error:
        leaf(1.0).backwad()
    assert str(error.value).endswith("did you mean 'backward'?")


def test_functions_of_plain_arrays_compute_where_no_program_is_entered():
    assert pg.exp(np.zeros(2)).tolist() == [1.0, 1.0]
    assert (pg.zeros((2,)) + pg.arange(2) * pg.eye(2)[1]).tolist() == [0.0, 1.0]
    with pg.Program():
        assert isinstance(pg.zeros((2,)), pg.Variable)


def test_several_results_come_in_their_container():
    first, second = pg.split(pg.tensor(np.arange(4.0)), 2)
    assert (first.tolist(), second.tolist()) == ([0.0, 1.0], [2.0, 3.0])


def test_tensors_are_copied_and_pickled_with_what_they_require():
    x = leaf(1.0, 2.0)
    for found in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert found is not x
        assert found.requires_grad
        assert found.tolist() == [1.0, 2.0]
    with pytest.raises(pg.BuildError, match="graph leaves"):
        copy.deepcopy(x * 2.0)


def test_a_tensor_shows_elements_dtype_and_what_it_requires():
    assert repr(leaf(1.0)) == "tensor([1.], requires_grad=True)"
    assert repr(pg.tensor([1, 2])) == "tensor([1, 2], dtype=int64)"
    assert "float64[2]" in leaf(1.0, 2.0)._repr_html_() or "f64[2]" in leaf(1.0, 2.0)._repr_html_()


# Masks, places, and what is changed in place.


def test_masks_choose_elements_and_let_gradients_through():
    x = leaf(1.0, -2.0, 3.0)
    chosen = x[x > 0]
    assert chosen.tolist() == [1.0, 3.0]
    (chosen * chosen).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 6.0]
    y = pg.tensor(np.arange(6.0).reshape(2, 3))
    assert y[:, np.array([True, False, True])].tolist() == [[0.0, 2.0], [3.0, 5.0]]
    y[y > 3] *= 10.0
    assert y.tolist() == [[0.0, 1.0, 2.0], [3.0, 40.0, 50.0]]


@pytest.mark.parametrize("truth", [np.array(True), np.array(False), np.True_, True, False])
def test_a_single_truth_is_an_index_of_an_axis_of_its_own(truth):
    array = np.arange(6.0).reshape(2, 3)
    for index in (truth, (truth, 1)):
        np.testing.assert_array_equal(pg.tensor(array)[index], array[index])
        np.testing.assert_array_equal(pg.tensor(array)[pg.tensor(truth)], array[truth])
    x = pg.tensor(array)
    for part in (x[truth], x[pg.tensor(truth)]):
        part += 1.0
    np.testing.assert_array_equal(x, array)


def test_a_mask_of_another_count_is_another_structure_and_of_the_same_is_not():
    pg.eager.log.clear()
    x = pg.tensor(np.arange(6.0))
    for mask in np.eye(6, dtype=bool):
        assert (x[mask] * 3.0 + 1.0).item() == 3.0 * np.arange(6.0)[mask] + 1.0
    assert pg.eager.log.total <= 1


def test_what_was_computed_before_a_change_in_place_keeps_what_it_had():
    w = leaf(3.0)
    x = w * 1.0
    y = x * x
    x += 10.0
    z = x * x
    y.sum().backward(retain_graph=True)
    assert w.grad.tolist() == [6.0]
    w.grad = None
    z.sum().backward()
    assert w.grad.tolist() == [26.0]
    assert (x.tolist(), y.tolist()) == ([13.0], [9.0])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.add_(1.0), [2.0, 3.0]),
        (lambda x: x.sub_(1.0), [0.0, 1.0]),
        (lambda x: x.mul_(3.0), [3.0, 6.0]),
        (lambda x: x.div_(2.0), [0.5, 1.0]),
        (lambda x: x.copy_(7), [7.0, 7.0]),
        (lambda x: x.fill_(4), [4.0, 4.0]),
        (lambda x: x.zero_(), [0.0, 0.0]),
        (lambda x: x.__setitem__(0, 9), [9.0, 2.0]),
        (lambda x: x.__setitem__(pg.tensor([False, True]), -1.0), [1.0, -1.0]),
        (lambda x: x.__setitem__(pg.tensor([1, 0]), [5.0, 6.0]), [6.0, 5.0]),
    ],
)
def test_operations_in_place_change_the_handle(change, expected):
    x = pg.tensor([1.0, 2.0])
    before = x * 1.0
    change(x)
    assert (x.tolist(), before.tolist()) == (expected, [1.0, 2.0])


def test_what_does_not_fit_is_not_put_in_place():
    x = pg.tensor([1, 2])
    with pytest.raises(pg.DTypeError, match=r"i64\[2\] cannot hold f64\[2\]"):
        x += 0.5
    with pytest.raises(pg.ShapeError):
        x += pg.tensor([[1], [2]])
    with pytest.raises(pg.NotDifferentiable, match="a leaf Variable that requires grad"):
        leaf(1.0).add_(1.0)
    assert x.tolist() == [1, 2]


def test_what_goes_to_no_place_has_to_fit_as_well():
    for nowhere in (np.zeros(3, bool), pg.tensor([False] * 3), []):
        x = pg.tensor([1.0, 2.0, 3.0])
        with pytest.raises(pg.ShapeError, match=r"cannot put f64\[2\] where \(0,\) is needed"):
            x[nowhere] = [1.0, 2.0]
        x[nowhere] = [1.0]
        x[nowhere] = 5.0
        assert x.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(pg.NotDifferentiable, match="a leaf Variable that requires grad"):
        leaf(1.0, 2.0)[np.zeros(2, bool)] = 1.0
    with pytest.raises(pg.DTypeError):
        pg.tensor([1, 2])[[True, False]] = 0.5


@pytest.mark.parametrize(
    "index",
    [
        7,
        (0, -5),
        (0, 0, 0),
        1.5,
        "a",
        (..., ...),
        [0, 5],
        [0.5],
        np.array([1.5]),
        np.ones(2, bool),
        (slice(None), np.ones(3, bool)),
        np.ones((4, 3), bool),
        (slice(None), [-5]),
        ([0, 1], [0, 1, 2]),
        np.array(3),
    ],
)
@pytest.mark.parametrize("tracked", [False, True])
def test_wrong_indices_are_told_at_once_in_the_words_of_numpy(index, tracked):
    array = np.arange(12.0).reshape(3, 4)
    with pytest.raises(IndexError) as known:
        array[index]
    x = pg.tensor(array, requires_grad=tracked)
    for tensor in (x, x * 2.0):
        with pytest.raises(IndexError) as caught:
            tensor[index]
        assert caught.value.message == str(known.value)
        assert "test_tensors.py" in str(caught.value)
    if not tracked:
        with pytest.raises(IndexError) as caught:
            x[index] = 1.0
        assert "test_tensors.py" in str(caught.value)
    if isinstance(index, np.ndarray):
        with pytest.raises(IndexError, match=r"test_tensors\.py"):
            x[pg.tensor(index)]


def test_comparing_with_none_says_how_to_ask_for_it():
    for compare in (lambda x: x == None, lambda x: x != None):  # noqa: E711
        with pytest.raises(pg.ArgumentError, match=r"write x is (not )?None"):
            compare(pg.tensor(1.0))


def test_a_change_of_a_view_changes_its_base():
    x = pg.tensor(np.zeros((2, 2)))
    row, column = x[0], x[:, 1]
    row += 1.0
    assert x.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    x.T.T[1].fill_(2.0)
    assert column.tolist() == [1.0, 2.0]
    number = x[0, 0]
    number += 7.0
    np.squeeze(x[None])[0] = 3.0
    assert x.tolist() == [[3.0, 3.0], [2.0, 2.0]]
    with pytest.warns(pg.TensorWarning, match="share no elements"):
        x.detach()[0] = 9.0
    x.flatten()[0] = 9.0
    assert row.tolist() == [3.0, 3.0]
    with pytest.raises(pg.ArgumentError, match="read-only"):
        np.broadcast_to(x, (2, 2))[0] = 1.0
    w = pg.tensor([1.0, 2.0], requires_grad=True)
    y = w * 1.0
    y[:1].mul_(3.0)
    (y * y).sum().backward()
    assert w.grad.tolist() == [18.0, 4.0]
    with pytest.raises(pg.NotDifferentiable, match="leaf"):
        w[:1].mul_(3.0)
    turned = w[::-1]
    pg.optimizer.SGD(0.5, parameters=[w]).step()
    assert turned.tolist() == [0.0, -8.0]


def test_a_change_of_a_view_of_megengine_warns_with_both_lines():
    x = megengine.tensor(np.zeros((2, 2)))
    row = x[0]
    with pytest.warns(pg.TensorWarning, match=r"taken at test_tensors.py:\d+   row = x\[0\]"):
        row += 1.0
    assert x.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[0] += 1.0
        alone = megengine.tensor([1.0, 2.0])[:1]
        alone += 1.0
    assert x.tolist() == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("tensor", [pg.tensor, megengine.tensor])
def test_augmented_assignments_to_items_do_not_warn(tensor):
    """Python stores the changed view in the tensor."""

    def assign(x, y):
        x[0] += y
        x[0] *= y
        x[0] -= 3.0
        x[0] /= 2.0
        x[0] **= 2.0
        x[0] %= 7.0
        x[0] //= 0.5
        x[0] @= y

    def assign_bits(x):
        x[0] &= 6
        x[0] |= 9
        x[0] ^= 3

    x, n = tensor(np.arange(1.0, 9.0).reshape(2, 2, 2)), tensor(np.arange(6).reshape(2, 3))
    expected, bits, y = x.numpy(), n.numpy(), np.array([[1.0, 2.0], [3.0, 5.0]])
    assign(expected, y)
    assign_bits(bits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assign(x, tensor(y))
        assign_bits(n)
    np.testing.assert_allclose(x.numpy(), expected)
    np.testing.assert_array_equal(n.numpy(), bits)


# Programs and tensors.


def test_a_tensor_in_a_program_is_a_constant_and_a_leaf_a_parameter():
    w, c = leaf(2.0, 3.0), pg.tensor([1.0, 1.0])
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = x * w + c
        again = x + w
        pg.optimizer.SGD(0.5).minimize(y.sum())
    assert sum(state.trainable for state in program.states.values()) == 1
    executor = pg.Executor()
    assert executor.run(program, {"x": np.ones(2)}, [y])[0].tolist() == [3.0, 4.0]
    assert executor.run(program, {"x": np.zeros(2)}, [again])[0].tolist() == [1.5, 2.5]
    c.fill_(100.0)
    assert executor.run(program, {"x": np.zeros(2)}, [y])[0].tolist() == [1.0, 1.0]


def test_what_was_computed_from_a_leaf_is_computed_in_the_program_too():
    w = leaf(2.0, 3.0)
    penalty = (w * w * pg.tensor([1.0, 10.0])).sum()
    with pg.Program() as program:
        x = pg.data("x", (2,))
        loss = (x * w).sum() + penalty
        (slope,) = pg.grad(loss, [next(v for v in program.parameters())])
    assert pg.Executor().run(program, {"x": np.ones(2)}, [slope])[0].tolist() == [5.0, 61.0]


def test_a_tensor_in_a_trace_is_a_constant():
    c = pg.tensor([1.0, 2.0])
    kernel = pg.compile(pg.trace(lambda x: pg.sum(x * c), pg.spec(2)))
    assert kernel(np.array([3.0, 4.0])) == 11.0


def test_a_variable_does_not_get_into_tensors():
    x = pg.tensor([1.0, 2.0])
    with pg.Program():
        v = pg.data("v", (2,))
        for put in (lambda: x.copy_(v), lambda: x.add_(v), lambda: x.__iadd__(v)):
            with pytest.raises(pg.BuildError, match="a variable of a program has no elements") as e:
                put()
            assert str(e.value).count("test_tensors.py:") == 2
        with pytest.raises(pg.BuildError, match="before the program runs"):
            pg.tensor(v)


def test_errors_say_where_operands_come_from():
    x = pg.tensor([1.0, 2.0]) * 2.0
    with pytest.raises(pg.ShapeError) as error:
        x @ pg.tensor([1.0, 2.0, 3.0])
    text = str(error.value)
    assert "matmul cannot multiply f64[2] by f64[3]" in text
    assert "f64[2] comes from multiply of" in text
    assert "x = pg.tensor([1.0, 2.0]) * 2.0" in text
    x.numpy()
    with pytest.raises(pg.ShapeError, match=r"f64\[2\] comes from test_tensors.py:\d+   x = pg"):
        x @ pg.tensor([1.0, 2.0, 3.0])
    with pytest.raises(pg.ShapeError, match=r"comes from ones at test_tensors.py:\d+   x @ pg"):
        x @ pg.ones(3)


def test_a_position_that_is_not_there_is_told_when_it_is_looked_at():
    x, i = pg.tensor([1.0, 2.0]), pg.tensor(5)
    for _ in range(3):
        found = pg.take(x, i) * 2.0
        with pytest.raises(IndexError, match=r"test_tensors.py:\d+   found = pg.take"):
            found.item()


# How it is computed.


def test_a_step_is_compiled_once_with_what_it_changes():
    pg.eager.log.clear()
    w = leaf(1.0, 2.0, 3.0)
    for i in range(20):
        loss = (w * w * (i + 1.0)).sum()
        loss.backward()
        with pg.no_grad():
            w -= 0.1 / (i + 1.0) * w.grad
            w.grad = None
        loss.item()
    assert pg.eager.log.total == 1
    (entry,) = pg.eager.log
    assert (
        entry.reason == "the first structure" or "new" in entry.reason or "of other" in entry.reason
    )
    assert "test_tensors.py:" in entry.line
    np.testing.assert_allclose(w.numpy(), np.array([1.0, 2.0, 3.0]) * 0.8**20)


def test_a_structure_is_compiled_when_it_comes_a_second_time():
    pg.eager.log.clear()
    x = leaf(1.0, 2.0, 3.0)
    found = []
    for compiled in (0, 1, 1):
        loss = pg.sum(pg.arctan(x) * pg.sqrt(x) - 0.25)
        found.append((pg.grad(loss, x)[0].tolist(), loss.item()))
        assert pg.eager.log.total == compiled
    assert found[1] == found[2]
    np.testing.assert_allclose(found[0][0], found[1][0], 1e-14)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x * n,
        lambda x, n: n - x,
        lambda x, n: pg.maximum(x, n),
        lambda x, n: x > n,
        lambda x, n: pg.clip(x, 0.0, n),
        lambda x, n: pg.where(x > n, x, n),
        lambda x, n: x * np.full(6, n),
        lambda x, n: pg.take(x, pg.tensor(int(n))),
        lambda x, n: (x * 1.0)[np.array([0, int(n)])],
    ],
)
def test_numbers_and_positions_are_data(function):
    pg.eager.log.clear()
    x = pg.tensor(np.arange(6.0))
    for n in range(6):
        pg.sum(pg.tanh(function(x, float(n)) * 1.0)).item()
    assert pg.eager.log.total == 1


def test_what_is_changed_in_place_and_gradients_come_along_with_the_next_look():
    x, w = pg.tensor([1.0]), leaf(2.0)
    x += 1.0
    assert x.node.array is None
    (w * 3.0).sum().backward()
    assert x.node.array.tolist() == [2.0]
    assert w.grad.node.array is None
    pg.tensor(3.0).exp().item()
    assert w.grad.node.array.tolist() == [3.0]


def test_what_backward_has_used_up_needs_no_memory():
    x = pg.tensor(np.ones(100_000), requires_grad=True)

    def held() -> float:
        x.grad = None
        y, before = x, tracemalloc.get_traced_memory()[0]
        between = []
        for _ in range(10):
            y = pg.tanh(y)
            y.numpy()
            between.append(y)
        loss = y.sum()
        del y, between
        recorded = tracemalloc.get_traced_memory()[0] - before
        loss.backward()
        loss.item()
        return (tracemalloc.get_traced_memory()[0] - before) / recorded

    # Kernels make their buffers once, and other threads theirs when they first get to work.
    threads = pg.get_num_threads()
    pg.set_num_threads(1)
    tracemalloc.start()
    ratios = [held() for _ in range(6)]
    tracemalloc.stop()
    pg.set_num_threads(threads)
    assert max(ratios[2:]) < 0.2


@pytest.mark.parametrize(
    "part",
    [
        lambda w, i: w[i],
        lambda w, i: w[i : i + 3],
        lambda w, i: w[-8 + i : -6 + i, 1:],
        lambda w, i: w[..., i % 4, None],
        lambda w, i: w[2, i % 4],
        lambda w, i: (w * 2.0)[i, ::2],
    ],
)
def test_numbers_that_move_are_data_in_what_is_tracked(part):
    array = np.arange(48.0).reshape(12, 4)
    w = pg.tensor(array, requires_grad=True)
    pg.eager.log.clear()
    for i in range(6):
        w.grad = None
        loss = (part(w, i) ** 2).sum()
        loss.backward()
        expected = np.zeros((12, 4))
        factor = (part(np.ones((12, 4)), i) ** 2).max()
        places = part(np.arange(48.0).reshape(12, 4), i) / np.sqrt(factor)
        expected.reshape(-1)[places.astype(int).ravel()] = 2 * factor * places.ravel()
        assert loss.item() == (part(array, i) ** 2).sum()
        np.testing.assert_array_equal(w.grad, expected)
    assert pg.eager.log.total <= 1
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        w[12]


def test_numbers_that_move_are_data_where_elements_are_set():
    pg.eager.log.clear()
    x, w, expected = pg.tensor(np.zeros((6, 4))), leaf(1.0, 2.0), np.zeros((6, 4))
    for i in range(6):
        x[i] = 0.5 * i
        x[i, 1:3] = w * i
        x.numpy()
        expected[i] = 0.5 * i
        expected[i, 1:3] = np.array([1.0, 2.0]) * i
    np.testing.assert_array_equal(x, expected)
    assert pg.eager.log.total == 1
    assert pg.grad(x.sum(), w)[0].tolist() == [15.0, 15.0]


def test_a_loop_that_is_written_out_takes_parts_as_they_are():
    pg.eager.log.clear()
    w = leaf(1.0, 2.0, 3.0)
    for _ in range(4):
        total = 0.0
        for i in range(3):
            total = total + w[i] * w[i - 1]
        assert total.item() == 11.0
    assert pg.eager.log.total == 1


def test_slices_of_known_data_are_no_new_structures():
    pg.eager.log.clear()
    data = pg.tensor(np.arange(40.0))
    for i in range(10):
        batch = data[4 * i : 4 * i + 4]
        assert (batch * batch + 1.0).sum().item() == (
            (np.arange(40.0)[4 * i : 4 * i + 4]) ** 2 + 1
        ).sum()
    assert pg.eager.log.total == 1


@pytest.mark.parametrize("inner", [lambda x: pg.cos(x * 3.0), lambda x: pg.cos(x) * pg.sin(x)])
def test_the_log_says_what_was_new(inner):
    pg.eager.log.clear()
    x = pg.tensor(np.ones(5))
    for function in (pg.tanh, pg.exp):
        for _ in range(2):
            function(inner(x)).sum().item()
    first, second = pg.eager.log
    assert second.reason == "exp of f64[5] is new there"
    assert second.line.startswith("test_tensors.py:")
    assert str(second) in repr(pg.eager.log)
    assert pg.eager.log[-1] is second
    assert (first.equations, pg.eager.log.total) == (second.equations, 2)


def test_the_log_says_what_was_held_or_looked_at():
    pg.eager.log.clear()
    x = pg.tensor(np.ones(17))
    for _ in range(2):
        pg.exp(pg.cos(x * 3.0)).sum().item()
    for _ in range(2):
        held = pg.cos(x * 3.0)
        pg.exp(held).sum().item()
    for _ in range(2):
        pg.exp(pg.cos(x * 3.0) + x).sum().item()
    for tracked in (leaf(*[1.0] * 17),) * 2:
        pg.exp(pg.cos(tracked * 3.0)).sum().item()
    reasons = [entry.reason for entry in pg.eager.log]
    assert reasons[1] == "held or looked at this time and not before: cos of f64[17]"
    assert reasons[2] == "add of f64[17] and f64[17] is new there"
    assert "a derivative goes through multiply" in reasons[3]


def test_what_fails_in_a_kernel_is_told_with_its_own_line():
    x, good, bad = pg.tensor([1.0, 2.0]), pg.tensor(1), pg.tensor(5)
    for position in (good, good, good):
        y = pg.take(x, position) * 2.0
        assert y.item() == 4.0
    total = pg.tensor(0.0)
    total += pg.take(x, bad) * 2.0
    with pytest.raises(IndexError, match=r"test_tensors.py:\d+   total \+= pg.take\(x, bad\)"):
        pg.exp(x).tolist()
    pg.exp(x).tolist()
    with pytest.raises(IndexError, match=r"test_tensors.py:\d+   total \+= pg.take\(x, bad\)"):
        total.item()
    for _ in range(3):
        table = leaf(1.0, 2.0)
        loss = (pg.take(table, bad) * 3.0) ** 2
        loss.backward()
        with pytest.raises(IndexError, match=r"loss = \(pg.take\(table, bad\)"):
            loss.item()


def test_long_chains_are_built_run_and_freed():
    x = pg.tensor(1.0)
    for _ in range(40_000):
        x = x + 1.0
    assert x.item() == 40_001.0
    y = leaf(1.0)
    for _ in range(3_000):
        y = y * 1.001
    del x, y
    gc.collect()


@pytest.mark.dense
def test_a_million_equations_are_built_run_and_freed():
    x = pg.tensor(1.0)
    for _ in range(1_000_000):
        x = x + 1.0
    assert x.item() == 1_000_001.0


def _nodes() -> int:
    gc.collect()
    return sum(type(o) is Node for o in gc.get_objects())


@pytest.mark.parametrize("looked", [1, 7])
def test_a_loop_of_steps_keeps_its_memory(looked):
    w = leaf(*np.linspace(0.5, 1.5, 50))

    def steps(count):
        for i in range(count):
            loss = (pg.tanh(w) * w).sum()
            loss.backward()
            with pg.no_grad():
                w.sub_(0.01 * w.grad)
            w.grad = None
            if i % looked == 0:
                loss.item()

    steps(30)
    before = _nodes()
    tracemalloc.start()
    steps(20)
    base = tracemalloc.get_traced_memory()[0]
    steps(200)
    grown = tracemalloc.get_traced_memory()[0] - base
    tracemalloc.stop()
    assert abs(_nodes() - before) < 60
    assert grown < 200_000


def test_what_nobody_holds_is_not_kept_while_the_rest_is_computed():
    x = pg.tensor(np.ones(100_000))
    y = x
    for i in range(40):
        y = y * (1.0 + i)
    y = y.sum()
    tracemalloc.start()
    y.item()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * x.numpy().nbytes


def test_sync_computes_what_is_pending():
    x = pg.tensor([1.0, 2.0])
    y, z = x * 2.0, x * 3.0
    pg.eager.sync(y)
    assert y.node.array is not None
    assert z.node.array is None
    pg.eager.sync()
    assert z.node.array is not None
    with pytest.raises(pg.ArgumentError, match="a tensor or a list of tensors"):
        pg.eager.sync(3)


def test_debug_computes_at_once_and_names_the_first_nan():
    with pg.eager.debug(), pytest.raises(pg.NumericalError) as error:
        pg.log(pg.tensor([-1.0, 2.0])) * 3.0
    assert "log makes NaN at [0] of -1.0" in str(error.value)
    assert "pg.log(pg.tensor([-1.0, 2.0])) * 3.0" in str(error.value)
    x = leaf(0.0)
    with pg.eager.debug(), pytest.raises(pg.NumericalError, match="in the gradient of"):
        pg.sqrt(x).sum().backward()
    assert np.isnan((pg.log(pg.tensor(-1.0)) * 3.0).item())


def test_debug_of_one_thread_is_not_that_of_another():
    found = []
    with pg.eager.debug():
        thread = Thread(target=lambda: found.append(pg.log(pg.tensor(-1.0)).item()))
        thread.start()
        thread.join()
    assert np.isnan(found).all()
    assert len(found) == 1


# Gradients.


def test_equal_expressions_are_different_tensors_to_derive_by():
    x = leaf(1.0, 2.0)
    a, b = x * 2.0, x * 2.0
    for _ in range(3):
        (found,) = pg.autograd.grad((a * b).sum(), [a], retain_graph=True)
        assert found.tolist() == [2.0, 4.0]
    total, mean = x.sum(), x.mean()
    with pytest.raises(pg.NotDifferentiable, match="appears to not have been used"):
        pg.autograd.grad(mean, [total])


def test_what_is_constant_in_one_step_and_not_in_another_is_told_apart():
    x = leaf(2.0)

    def slope(constant: bool) -> float:
        with pg.set_grad_enabled(not constant):
            y = x * x
        loss = (y * x).sum()
        return pg.autograd.grad(loss, [x])[0].item()

    assert [slope(c) for c in (False, True, False, True, True, False)] == [12.0, 4.0] * 1 + [
        12.0,
        4.0,
        4.0,
        12.0,
    ]


def test_a_leaf_changed_within_no_grad_stays_a_leaf():
    x = leaf(1.0)
    with pg.no_grad():
        x += 1.0
    assert x.is_leaf
    assert x.requires_grad
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0]


def test_no_grad_is_a_context_a_decorator_and_of_its_own_thread():
    x = leaf(1.0)

    @pg.no_grad()
    def inside():
        return x * 2.0

    assert not inside().requires_grad
    assert (x * 2.0).requires_grad
    with pg.no_grad():
        with pg.enable_grad():
            assert (x * 2.0).requires_grad
            assert pg.is_grad_enabled()
        assert not (x * 2.0).requires_grad
        found = []
        thread = Thread(target=lambda: found.append((x * 2.0).requires_grad))
        thread.start()
        thread.join()
    assert found == [True]
    without_call = pg.no_grad(lambda: x * 2.0)
    assert not without_call().requires_grad
    with pytest.raises(RuntimeError), pg.no_grad():
        raise RuntimeError
    assert pg.is_grad_enabled()


def test_no_grad_of_one_task_is_not_that_of_another():
    x = leaf(1.0)

    async def first():
        with pg.no_grad():
            await asyncio.sleep(0.01)
            return (x * 2.0).requires_grad

    async def second():
        await asyncio.sleep(0.005)
        return (x * 2.0).requires_grad

    async def both():
        return await asyncio.gather(first(), second())

    assert asyncio.run(both()) == [False, True]


def test_threads_share_tensors_and_structures():
    start = pg.tensor(np.linspace(0.0, 1.0, 64))
    shared = pg.tanh(start * 2.0)
    barrier = Barrier(4)
    found: list[object] = []

    def work(number: int) -> None:
        try:
            barrier.wait()
            for i in range(30):
                w = pg.tensor(np.full(64, 0.5), requires_grad=True)
                ((shared * w * (number + 1.0)) ** 2).sum().backward()
                found.append((number, i, w.grad.numpy().sum()))
        except BaseException as error:
            found.append(error)

    threads = [Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = (np.tanh(np.linspace(0.0, 1.0, 64) * 2.0) ** 2).sum()
    assert len(found) == 120
    for number, _, total in found:
        np.testing.assert_allclose(total, expected * (number + 1.0) ** 2)


def test_numbers_are_inputs_with_their_bits():
    x = pg.tensor([2.0], "float32")
    for number in (1.5, -0.0, 0.0, 3, float("nan"), 1e300):
        with np.errstate(all="ignore"):
            expected = np.array([2.0], np.float32) * number
        found = (x * number).numpy()
        assert found.dtype == np.float32
        assert found.tobytes() == expected.tobytes()
    assert (pg.tensor([2]) * 1.5).dtype == np.float64
    assert (pg.tensor([2**62]) + 1).tolist() == [2**62 + 1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, c: x + c,
        lambda x, c: c - x,
        lambda x, c: x * c / (c + 1.0),
        lambda x, c: pg.maximum(x, c),
        lambda x, c: x ** (c + 0.3),
        lambda x, c: (c + 1.3) ** x,
        lambda x, c: pg.where(x > 1.0, x, c),
        lambda x, c: pg.where(x > 1.0, c, x),
        lambda x, c: pg.clip(x, c - 1.0, c),
        lambda x, c: pg.clip(c, x - 1.0, 3.0),
        lambda x, c: pg.clip(c, 0.1, x),
    ],
)
def test_numbers_that_change_from_step_to_step_are_no_new_structures(function):
    x = pg.tensor([0.5, 1.5, 2.5])
    pg.eager.log.clear()
    for i in range(6):
        c = 0.37 * i + 0.01
        found = (function(x, c) * 2.0).numpy()
        with pg.Program():
            graph = pg.trace(lambda v, c=c: function(v, c) * 2.0, x.numpy())
        np.testing.assert_allclose(found, pg.compile(graph)(x.numpy()), rtol=1e-14)
    # What came a second time was compiled, and nothing else.
    assert pg.eager.log.total == 1


def test_tables_of_structures_are_bounded(monkeypatch):
    monkeypatch.setattr(run, "_MOST_COMPILED", 3)
    x = pg.tensor([1.0])
    for i in range(2, 10):
        for _ in range(3):
            assert pg.concatenate([x] * i).sum().item() == i
    assert len(run._kernels) <= 3


def test_what_was_seen_is_remembered_within_bounds(monkeypatch):
    monkeypatch.setattr(run, "_MOST_SEEN", 4)
    x = pg.tensor([1.0])
    for i in range(2, 10):
        assert pg.concatenate([x] * i).prod().item() == 1.0
    assert len(run._seen) <= 4


def test_what_evaluates_equations_is_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(steps, "_KEPT", 3)
    monkeypatch.setattr(steps, "_meanings", {})
    for extent in range(1, 6):
        x = pg.tensor(np.ones(extent))
        assert pg.sum(x).item() == extent
    assert len(steps._meanings) == 3


def test_what_kernels_call_of_numpy_evaluates_an_equation_by_itself():
    for function in (pg.tanh, pg.negative, lambda x: x < 1.0, lambda x: x[::-1]):
        eqn = pg.trace(function, pg.spec(3)).body[-1]
        found = steps._step_function(eqn)
        assert (found.func if eqn.params else found) is eqn.op.impl
    # These are kernels of one equation: what NumPy does otherwise, and what it does not have.
    for function in (pg.sum, pg.special.erf):
        (eqn,) = pg.trace(function, pg.spec(3)).body
        found = steps._step_function(eqn)
        assert eqn.op.impl not in (found, getattr(found, "func", None))


def test_tensors_change_together_or_not_at_all() -> None:
    one, other = pg.tensor(np.zeros(2)), pg.tensor(np.zeros(3))
    part = one[:1]
    with pytest.raises(pg.ShapeError):
        change_together([(one, pg.tensor(np.ones(2))), (other, pg.tensor(np.ones(2)))])
    np.testing.assert_array_equal(one.numpy(), [0.0, 0.0])
    change_together([(one, pg.tensor(np.ones(2))), (other, pg.tensor(np.ones(3)))])
    np.testing.assert_array_equal(one.numpy(), [1.0, 1.0])
    np.testing.assert_array_equal(other.numpy(), np.ones(3))
    np.testing.assert_array_equal(part.numpy(), [1.0])


def test_calls_with_objects_that_look_alike_are_not_taken_for_one_another() -> None:
    class Named:
        """An object whose text does not tell what it holds."""

        def __init__(self, number: float) -> None:
            self.number = number

        def __repr__(self) -> str:
            return "Named"

    keys = [steps.key_of(Named(1.0)), steps.key_of(Named(2.0)), steps.key_of([Named(1.0)])]
    assert len(set(keys)) == 3
    assert steps.key_of(np.sin) == steps.key_of(np.sin)
