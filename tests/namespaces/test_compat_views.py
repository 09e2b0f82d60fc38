"""Views and `.data` of torch's and Paddle's tensors write through, as NumPy's views do."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch


def held(x: Any) -> Any:
    return x.detach().numpy()


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_writes_through_data_are_kept(room: Any) -> None:
    w = room.ones(3, requires_grad=True)
    w.data.add_(2.0)
    w.data[0] = 5.0
    assert w.is_leaf
    assert w.requires_grad
    assert_array_equal(held(w), [5, 3, 3])
    (w * w).sum().backward()
    assert_array_equal(w.grad.numpy(), [10, 6, 6])
    kept = w.grad.data
    (w * w).sum().backward()
    assert_array_equal(kept.numpy(), [20, 12, 12])
    w.grad.data.zero_()
    assert_array_equal(w.grad.numpy(), [0, 0, 0])
    w.detach()[1:].mul_(2)
    assert_array_equal(held(w), [5, 6, 6])
    square = room.ones(2, 2)
    square.diagonal().zero_()
    assert_array_equal(square.numpy(), [[0, 1], [1, 0]])


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_einsum_of_one_tensor_is_a_view_where_it_moves_axes_only(room: Any) -> None:
    a = room.arange(6.0).reshape(2, 3)
    room.einsum("ij->ji", a)[0, 1] = 10.0
    room.einsum("ba", a).add_(1.0)
    room.einsum(a, [0, 1], [1, 0])[2] = 0.0
    assert_array_equal(held(a), [[1, 2, 0], [11, 5, 0]])
    room.einsum("ij->i", a).zero_()
    assert_array_equal(held(a), [[1, 2, 0], [11, 5, 0]])
    square = room.zeros(2, 2)
    room.einsum("ii->i", square).fill_(1.0)
    assert_array_equal(held(square), np.eye(2))
    x = room.ones(2, 3, requires_grad=True)
    (room.einsum("ij->ji", x) ** 3).sum().backward()
    assert_array_equal(held(x.grad), np.full((2, 3), 3.0))
    with pytest.raises(RuntimeError):
        room.einsum("ii->i", room.ones(2, 3))


def test_setting_data_shares_the_elements() -> None:
    w, values = torch.zeros(2, requires_grad=True), torch.ones(2)
    w.data = values
    values.add_(1)
    assert_array_equal(held(w), [2, 2])
    with torch.no_grad():
        w.mul_(3)
    assert_array_equal(values.numpy(), [6, 6])
    optimizer = torch.optim.SGD([w], lr=1.0)
    w.grad = torch.ones(2)
    optimizer.step()
    assert_array_equal(values.numpy(), held(w))
    assert_array_equal(values.numpy(), [5, 5])
    assert w.requires_grad
    assert w.is_leaf


def test_views_outlive_what_they_are_views_of() -> None:
    x = torch.zeros(2, 3)
    row, column = x[0], x[:, 1]
    del x
    gc.collect()
    row.add_(1)
    assert_array_equal(column.numpy(), [1, 0])
    column[1:].sub_(4)
    assert_array_equal(column.numpy(), [1, -4])
    assert_array_equal(row.numpy(), [1, 1, 1])


def test_shapes_that_change_in_place_leave_elements_where_they_are() -> None:
    x = torch.zeros(2, 3)
    row = x[0]
    x.t_()
    row.add_(1)
    x[2] = 7
    assert_array_equal(x.numpy(), [[1, 0], [1, 0], [7, 7]])
    assert_array_equal(row.numpy(), [1, 1, 7])


def test_copies_have_elements_of_their_own() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    before = x.tolist()
    for copy in (
        x.clone(),
        x.t().reshape(-1),
        x.t().contiguous(),
        x.double(),
        x[[0, 1]],
        x[x > 2],
        x.flip(0),
        x.repeat(1, 1),
        x.floor(),
        torch.tensor(x),
    ):
        copy.zero_()
        assert x.tolist() == before
    copy = x.t().reshape(-1)
    part = copy[:2]
    part.fill_(9)
    assert copy.tolist() == [9, 9, 1, 4, 2, 5]
    assert x.contiguous() is x
    assert x.float() is x
    x.float().zero_()
    assert not x.any()


def test_gradients_go_through_changes_of_views() -> None:
    p = torch.tensor([1.0, 2.0, 3.0], requires_grad=True, dtype=torch.double)
    y = p * 2
    y[0].mul_(5)
    y[1:] = p[1:] ** 2
    z = y.view(3, 1)
    z[2].mul_(p[0])
    assert_array_equal(held(y), [10, 4, 9])
    assert_array_equal(held(z)[:, 0], held(y))
    (y * y).sum().backward()
    # y = [10 p0, p1^2, p2^2 p0]
    assert_array_equal(p.grad.numpy(), [200 + 2 * 9 * 9, 4 * 8, 2 * 9 * 6])


def test_changes_without_a_record_leave_derivatives_as_they_are() -> None:
    p = torch.tensor([1.0, 2.0], requires_grad=True)
    for change in (lambda y: y.data.mul_(10), lambda y: y.data[0:].mul_(10)):
        p.grad = None
        y = p**2
        change(y)
        assert_array_equal(held(y), [10, 40])
        (y * p).sum().backward()
        assert_array_equal(p.grad.numpy(), [10 + 2, 40 + 8])
    p.grad = None
    y = p**2
    with torch.no_grad():
        y.mul_(10)
    assert y.requires_grad
    y.sum().backward()
    assert_array_equal(p.grad.numpy(), [2, 4])


def test_a_detached_leaf_has_a_gradient_of_its_own() -> None:
    p = torch.tensor([1.0, 2.0], requires_grad=True)
    leaf = p.detach().requires_grad_()
    (leaf * leaf).sum().backward()
    assert p.grad is None
    with torch.no_grad():
        leaf.add_(1)
    assert_array_equal(held(p), [2, 3])
    leaf.grad = None
    (leaf * leaf).sum().backward()
    assert_array_equal(leaf.grad.numpy(), [4, 6])


def test_writes_that_cannot_be_done_are_errors() -> None:
    p, z = torch.ones(2, 2, requires_grad=True), torch.ones(2, dtype=torch.cfloat)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: p[0].mul_(2), "view of a leaf"),
        (lambda: p.view(-1)[1:].zero_(), "view of a leaf"),
        (lambda: torch.zeros(3).expand(2, 3).add_(1), "more than one element"),
        (lambda: z.real.mul_(2), "cannot be changed in place"),
        (lambda: z.imag[0:1].zero_(), "cannot be changed in place"),
        (lambda: z.conj().mul_(2), "cannot be changed in place"),
        (lambda: torch.view_as_real(z).zero_(), "cannot be changed in place"),
    ]
    for call, message in refused:
        with pytest.raises(pg.PrimgraphError, match=message):
            call()
    assert_array_equal(z.numpy(), [1, 1])
    real = z.real
    z.mul_(3)
    assert_array_equal(real.numpy(), [3, 3])


@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_a_repeated_element_cannot_be_written(shape: tuple[int, int]) -> None:
    x = torch.zeros(3)
    with pytest.raises(pg.ArgumentError, match="more than one element"):
        x.expand(*shape).add_(1)
    # One place for each element, although the stride of the first axis is zero.
    x.expand(1, 3).add_(1)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("index", [1, np.int64(1), np.array(1), torch.tensor(1)])
def test_integers_of_numpy_and_tensors_give_views(index: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    x[index].zero_()
    assert x.tolist() == [[0, 1, 2], [0, 0, 0]]
    x[index, index].fill_(4)
    assert x.tolist() == [[0, 1, 2], [0, 4, 0]]


def test_paddles_views_write_through() -> None:
    x = paddle.arange(6.0).reshape([2, 3])
    x[0].add_(paddle.ones([3]))
    x.detach()[1:].zero_()
    assert_array_equal(x.numpy(), [[1, 2, 3], [0, 0, 0]])
    whole = x.numpy()
    whole[0] = 9
    assert x.numpy().max() == 3


def test_a_tensor_of_a_program_is_changed_through_its_views() -> None:
    w = torch.ones(2, requires_grad=True)
    with pg.Program() as program:
        y = pg.data("x", (2,), "float32") * w
    executor = pg.Executor()
    feed = {"x": np.ones(2, "float32")}
    assert_array_equal(executor.run(program, feed, [y])[0], [1, 1])
    part = w.data[1:]
    part.add_(4)
    assert_array_equal(executor.run(program, feed, [y])[0], [1, 5])


# Random programs, beside NumPy's views.


def viewed(draw: np.random.Generator, x: Any) -> Callable[[Any], Any]:
    """A random view of an array of the shape of `x`."""
    n = x.ndim
    ways: list[Callable[[Any], Any]] = [
        lambda a: a.reshape(-1),
        lambda a: a[None],
        lambda a: a.T,
        lambda a: a[...],
        lambda a: a.squeeze(),
        repeated_once,
    ]
    if n:
        axis, i = int(draw.integers(n)), int(draw.integers(4))
        lead = (slice(None),) * axis
        ways += [
            lambda a: a[(*lead, slice(i % 2, None, 1 + i // 2))],
            lambda a: a.swapaxes(0, axis),
            lambda a: a.reshape((*a.shape[::-1],)),
        ]
        if x.shape[axis] > 0:
            # With an ellipsis NumPy gives a view of a single element, too.
            ways.append(lambda a: a[(*lead, i % x.shape[axis], ...)])
    if n < 4:
        return ways[int(draw.integers(len(ways)))]
    return ways[0]


def repeated_once(a: Any) -> Any:
    """`a` broadcast along a new first axis of extent one: a view that can be written."""
    if not isinstance(a, np.ndarray):
        return a.expand(1, *a.shape)
    found = np.broadcast_to(a, (1, *a.shape))
    found.flags.writeable = True
    return found


def changed(draw: np.random.Generator, found: Any, expected: Any, values: Any) -> None:
    """One change in place of both."""
    kind = int(draw.integers(4))
    if kind == 0:
        found.mul_(2.0)
        expected *= 2.0
    elif kind == 1:
        found.add_(torch.tensor(values))
        expected += values
    elif kind == 2 and expected.ndim:
        found[0:1] = torch.tensor(values[0:1])
        expected[0:1] = values[0:1]
    else:
        found.copy_(torch.tensor(values))
        expected[...] = values


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_of_views(seed: int) -> None:
    draw = np.random.default_rng(seed)
    begin = draw.normal(size=(2, 3, 2))
    pool: list[tuple[Any, Any]] = [(torch.tensor(begin), begin.copy())]
    for _ in range(14):
        found, expected = pool[int(draw.integers(len(pool)))]
        if draw.random() < 0.6:
            way = viewed(draw, expected)
            pool.append((way(found), way(expected)))
        else:
            changed(draw, found, expected, draw.normal(size=expected.shape))
        if draw.random() < 0.2 and len(pool) > 2:
            pool.pop(int(draw.integers(len(pool))))
    for found, expected in pool:
        assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_of_random_changes_of_views(seed: int) -> None:
    begin = np.random.default_rng(seed).normal(size=(2, 3))

    def computed(start: Any, is_tensor: bool) -> Any:
        draw = np.random.default_rng(seed)
        pool = [(start * 3.0, begin * 3.0)]
        for _ in range(10):
            found, shape = pool[int(draw.integers(len(pool)))]
            if draw.random() < 0.6:
                way = viewed(draw, shape)
                pool.append((way(found), way(shape)))
            else:
                values = draw.normal(size=shape.shape)
                factor = (start * start).sum()
                other = torch.tensor(values) * factor if is_tensor else values * factor
                if shape.ndim and draw.random() < 0.5:
                    found[0:1] = other[0:1]
                else:
                    found *= other
        return sum((found**2).sum() * (k + 1) for k, (found, _) in enumerate(pool))

    p = torch.tensor(begin, requires_grad=True)
    result = computed(p, True)
    assert_allclose(result.item(), computed(begin.copy(), False), rtol=1e-9)
    result.backward()
    direction = np.random.default_rng(99).normal(size=begin.shape)
    ends = [computed(begin + h * direction, False) for h in (1e-6, -1e-6)]
    expected = (ends[0] - ends[1]) / 2e-6
    assert_allclose(np.sum(p.grad.numpy() * direction), expected, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("space", [torch, pg])
def test_a_view_is_tracked_as_when_it_was_taken_whatever_its_base_becomes(space):
    w = space.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y, plain = w * 1.0, space.tensor([[1.0, 2.0], [3.0, 4.0]])
    with space.no_grad():
        untracked = y.T
    tracked, of_plain = y.T, plain.T
    y += 1.0
    plain += 1.0
    assert [v.requires_grad for v in (untracked, tracked, of_plain)] == [False, True, False]
    for view in (untracked, tracked, of_plain):
        assert view.tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert untracked._alias is not None
