"""What torch checks of its own derivatives of tensors, with numbers from formulas."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
from primgraph.eager.derivatives.differentiable import TensorWarning
from primgraph.errors import PrimgraphError

grad = pg.autograd.grad


def leaf(*numbers: float, dtype: str = "float64") -> pg.Tensor:
    return pg.tensor(list(numbers), dtype, requires_grad=True)


def single(number: float) -> pg.Tensor:
    return pg.tensor(number, requires_grad=True)


# Accumulation.


def test_gradients_of_several_calls_add_up() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * x * x).sum().backward()
    assert_allclose(x.grad, [2 + 3, 4 + 12])


def test_a_gradient_that_was_taken_out_is_added_to_in_place() -> None:
    x = leaf(1.0, 2.0)
    (x * 2.0).sum().backward()
    taken, before = x.grad, x.grad * 1.0
    (x * 3.0).sum().backward()
    assert taken is x.grad
    assert_array_equal(taken, [5.0, 5.0])
    assert_array_equal(before, [2.0, 2.0])


def test_accumulating_with_a_created_graph_leaves_what_was_taken_out() -> None:
    x = single(3.0)
    (x**2).backward(create_graph=True)
    taken = x.grad
    (x**3).backward(create_graph=True)
    assert taken.item() == 6.0
    assert x.grad.item() == 6.0 + 27.0
    (again,) = grad(x.grad, x)
    assert again.item() == 2.0 + 18.0


def test_one_leaf_in_many_places_gets_the_sum() -> None:
    x = leaf(0.5, 1.5)
    y = x * 1.0
    for _ in range(4):
        y = y * x
    pg.sum(y + x).backward()
    assert_allclose(x.grad, 5 * np.array([0.5, 1.5]) ** 4 + 1)


def test_a_leaf_that_is_changed_after_it_was_used_gets_the_gradient_of_its_use() -> None:
    w = leaf(1.0, 2.0)
    before = (w * w).sum()
    with pg.no_grad():
        w -= 1.0
    (before + (w * w * w).sum()).backward()
    # By w * w at [1, 2], and by w**3 at [0, 1].
    assert_array_equal(w.grad, [2.0 + 0.0, 4.0 + 3.0])


def test_a_leaf_that_an_optimizer_changed_gets_the_gradient_of_its_former_value() -> None:
    w = leaf(1.0, 2.0)
    optimizer = pg.optimizer.SGD(0.5, parameters=[w])
    early = (w * w * w).sum()
    (w * w).sum().backward()
    optimizer.step()
    optimizer.clear_grad()
    early.backward()
    assert_array_equal(w, [0.0, 0.0])
    assert_array_equal(w.grad, [3.0, 12.0])


def test_a_leaf_that_asks_for_no_gradient_any_more_gets_none() -> None:
    x, y = leaf(1.0), leaf(2.0)
    z = (x * y).sum()
    x.requires_grad_(False)
    z.backward()
    assert x.grad is None
    assert_array_equal(y.grad, [1.0])


def test_leaves_that_are_gone_do_not_matter() -> None:
    x = leaf(1.0, 2.0)
    y = (x * leaf(3.0, 4.0)).sum()
    y.backward()
    assert_array_equal(x.grad, [3.0, 4.0])


def test_a_gradient_that_is_set_has_to_fit() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(pg.ShapeError):
        x.grad = pg.zeros((3,))
    with pytest.raises(pg.ShapeError):
        x.grad = pg.tensor([1.0, 2.0], "float32")
    with pytest.raises(pg.ArgumentError):
        x.grad = x
    with pytest.raises(pg.ArgumentError):
        x.grad = np.zeros(2)
    assert x.grad is None


# Hooks.


def test_a_hook_lets_no_gradient_be_retained() -> None:
    x = leaf(1.0, 2.0)
    y, seen = x * 3.0, []
    y.register_hook(lambda g: seen.append(g.tolist()))
    assert not y.retains_grad
    y.sum().backward()
    assert seen == [[1.0, 1.0]]
    with pytest.warns(TensorWarning):
        assert y.grad is None


def test_hooks_are_called_for_a_tensor_that_is_no_more() -> None:
    x = pg.tensor([1.0, 2.0], requires_grad=True)
    seen: list[float] = []

    def hidden(x: Any) -> Any:
        z = x * 2.0
        z.register_hook(lambda g: seen.append(float(g.sum())) or g * 10.0)
        z.register_hook(lambda g: g * 100.0).remove()
        return z * 3.0

    for step in range(1, 4):
        pg.sum(hidden(x)).backward()
        assert x.grad.tolist() == [60.0 * step] * 2
    assert seen == [6.0] * 3


def test_each_hook_gets_what_the_one_before_made_of_the_gradient() -> None:
    x, seen = leaf(1.0), []

    def noted(factor: float) -> Callable[[pg.Tensor], pg.Tensor]:
        def hook(g: pg.Tensor) -> pg.Tensor:
            seen.append(g.item())
            return g * factor

        return hook

    x.register_hook(noted(2.0))
    second = x.register_hook(noted(5.0))
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 3.0).sum().backward()
    assert seen == [3.0, 6.0, 30.0]
    second.remove()
    second.remove()
    (x * 3.0).sum().backward()
    assert seen[3:] == [3.0, 6.0]
    assert_array_equal(x.grad, [36.0])


def test_hooks_are_called_from_the_last_result_to_the_first() -> None:
    x, order = leaf(1.0), []
    y = x * 2.0
    z = y * 3.0
    for name, t in (("x", x), ("z", z), ("y", y)):
        t.register_hook(lambda _, name=name: order.append(name))
    z.sum().backward()
    assert order == ["z", "y", "x"]


def test_a_hook_sees_the_sum_over_all_uses_once() -> None:
    x, seen = leaf(2.0), []
    y = x * x
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3.0 + y * y + pg.sin(y)).sum().backward()
    assert_allclose(seen, [3.0 + 8.0 + np.cos(4.0)])


def test_a_hook_before_a_change_in_place_sees_the_gradient_of_the_value_before() -> None:
    x, seen = leaf(1.0, 2.0), []
    y = x * 2.0
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y *= 3.0
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1.0, 1.0]), ("before", [3.0, 3.0])]
    assert_array_equal(x.grad, [6.0, 6.0])


def test_the_retained_gradient_is_that_of_the_value_after_a_change_in_place() -> None:
    x = leaf(1.0)
    y = x * 2.0
    y.retain_grad()
    y *= 3.0
    (y * 5.0).sum().backward()
    assert_array_equal(y.grad, [5.0])


def test_the_retained_gradient_is_what_hooks_have_made_of_it() -> None:
    x = leaf(1.0)
    y = x * 2.0
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    y.retain_grad()
    y.sum().backward()
    assert_array_equal(y.grad, [10.0])
    assert_array_equal(x.grad, [20.0])


def test_hooks_after_accumulation_come_after_those_on_the_gradient() -> None:
    x, order = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda p: order.append(("after", p.grad.item())))
    x.register_hook(lambda g: order.append(("hook", g.item())))
    (x * 3.0).sum().backward()
    (x * 3.0).sum().backward()
    assert order == [("hook", 3.0), ("after", 3.0), ("hook", 3.0), ("after", 6.0)]


def test_a_hook_after_accumulation_may_take_an_optimizers_step() -> None:
    x = leaf(1.0, 2.0)

    def step(p: pg.Tensor) -> None:
        with pg.no_grad():
            p -= 0.5 * p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (x * x).sum().backward()
        assert x.grad is None
    assert_array_equal(x, [0.0, 0.0])


def test_hooks_after_accumulation_are_for_leaves_and_not_for_grad() -> None:
    x, called = leaf(1.0), []
    with pytest.raises(pg.NotDifferentiable):
        (x * 2.0).register_post_accumulate_grad_hook(called.append)
    with pytest.raises(pg.NotDifferentiable):
        pg.tensor([1.0]).register_post_accumulate_grad_hook(called.append)
    x.register_post_accumulate_grad_hook(called.append)
    grad((x * x).sum(), x)
    assert called == []


def test_a_hook_that_fails_leaves_gradients_and_the_record_alone() -> None:
    x, y = leaf(1.0), leaf(2.0)
    z = (x * y).sum()

    def fail(_: pg.Tensor) -> None:
        raise RuntimeError("not now")

    handle = x.register_hook(fail)
    with pytest.raises(RuntimeError, match="not now"):
        z.backward()
    assert x.grad is None
    assert y.grad is None
    handle.remove()
    z.backward()
    assert_array_equal(x.grad, [2.0])


def test_a_hook_may_return_a_tensor_that_somebody_holds() -> None:
    x, p = leaf(1.0, 2.0), leaf(3.0, 4.0)
    x.register_hook(lambda _: p)
    (x * 2.0).sum().backward()
    (p * p).sum().backward()
    assert_array_equal(x.grad, [3.0, 4.0])
    assert_array_equal(p.grad, [6.0, 8.0])


def test_hooks_are_called_by_second_derivatives_too() -> None:
    x = single(2.0)
    y = x * x
    y.register_hook(lambda g: g * 10.0)
    (first,) = grad(y * x, x, create_graph=True)
    # 10 * x * 2x + x**2, and 40 x + 2 x where the first derivative went through y itself.
    assert first.item() == 21.0 * 4.0
    (second,) = grad(first, x)
    # By y directly, which is hooked again: 10 * 2x for the x**2 in it; 40 x for the other.
    assert second.item() == 40.0 * 2.0 + 10.0 * 2.0 * 2.0


# Records that are used up.


def test_what_was_used_up_is_told_however_it_is_asked_for() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    z = y.sum()
    z.backward()
    for again in (
        lambda: z.backward(),
        lambda: grad(z, x),
        lambda: grad(y, x, [np.ones(2)]),
        lambda: (y * 2.0).sum().backward(),
    ):
        with pytest.raises(pg.BuildError, match="second time"):
            again()
    assert_array_equal(x.grad, [2.0, 4.0])


def test_what_was_retained_is_there_until_it_is_used_up() -> None:
    x = leaf(1.0, 2.0)
    z = (x * x).sum()
    for _ in range(3):
        z.backward(retain_graph=True)
    assert_array_equal(x.grad, [6.0, 12.0])
    z.backward()
    with pytest.raises(pg.BuildError, match="retain_graph=True"):
        z.backward()


def test_what_is_shared_by_two_results_is_used_up_by_the_first() -> None:
    x = leaf(1.0)
    y = pg.exp(x)
    a, b = (y * 2.0).sum(), (y * 3.0).sum()
    a.backward()
    with pytest.raises(pg.BuildError):
        b.backward()
    c = (pg.exp(x) * 3.0).sum()
    c.backward()
    assert_allclose(x.grad, [5 * np.e])


def test_what_lies_behind_the_inputs_is_not_used_up() -> None:
    x = leaf(1.0, 2.0)
    for by in (lambda z, h: grad(z, h)[0], lambda z, h: z.backward(inputs=h)):
        h = x * x
        z = (h * h).sum()
        by(z, h)
        (found,) = grad(h, x, [np.ones(2)])
        assert_array_equal(found, [2.0, 4.0])
        with pytest.raises(pg.BuildError, match="second time"):
            grad(z, h)


def test_what_was_used_up_may_be_the_end_of_another_way() -> None:
    x = leaf(1.0, 2.0)
    h = x * x
    h.sum().backward()
    (found,) = grad((h * h).sum(), h)
    assert_array_equal(found, [2.0, 8.0])
    (h**3).sum().backward(inputs=[h])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TensorWarning)
        assert_array_equal(h.grad, [3.0, 48.0])
    for inputs in (x, [h, x]):
        with pytest.raises(pg.BuildError, match="second time"):
            grad((h * h).sum(), inputs)


def test_what_nobody_held_is_computed_again_for_derivatives() -> None:
    x, w = pg.tensor([1.0, 2.0]), leaf(3.0, 4.0)
    y = w * (x * 2.0).exp()
    assert_allclose(y.numpy(), [3.0, 4.0] * np.exp([2.0, 4.0]))
    (found,) = grad((y * y).sum(), w)
    assert_allclose(found.numpy(), 2.0 * np.array([3.0, 4.0]) * np.exp([4.0, 8.0]))


def test_using_a_record_up_drops_what_it_held() -> None:
    x = leaf(*range(3))
    y = x
    for _ in range(5):
        y = pg.tanh(y)
    nodes = {id(y.node)}
    z = y.sum()
    z.item()
    z.backward()
    assert x.grad is not None
    gc.collect()
    assert z.node.step is None
    assert id(z.node) not in nodes


def test_create_graph_retains_unless_it_is_told_not_to() -> None:
    x = single(2.0)
    y = x**3
    (g,) = grad(y, x, create_graph=True)
    (again,) = grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(pg.BuildError):
        grad(y, x)
    assert g.item() == again.item() == 12.0


# Modes.


def test_modes_stand_in_each_other() -> None:
    x = leaf(1.0)
    found = []
    with pg.no_grad():
        found.append((x * 2.0).requires_grad)
        with pg.enable_grad():
            found.append((x * 2.0).requires_grad)
            with pg.set_grad_enabled(False):
                found.append((x * 2.0).requires_grad)
            found.append((x * 2.0).requires_grad)
        found.append((x * 2.0).requires_grad)
    found.append((x * 2.0).requires_grad)
    assert found == [False, True, False, True, False, True]


def test_setting_the_mode_counts_from_where_it_is_set() -> None:
    x = leaf(1.0)
    pg.set_grad_enabled(False)
    try:
        assert not (x * 2.0).requires_grad
        with pg.set_grad_enabled(True):
            assert (x * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    finally:
        pg.set_grad_enabled(True)
    assert (x * 2.0).requires_grad


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_a_decorated_function_leaves_the_mode_as_it_finds_it(outer: bool, inner: bool) -> None:
    @pg.set_grad_enabled(inner)
    def inside(depth: int = 2) -> list[bool]:
        return [pg.is_grad_enabled(), *(inside(depth - 1) if depth else [])]

    with pg.set_grad_enabled(outer):
        assert inside() == [inner] * 3
        assert pg.is_grad_enabled() is outer
    assert pg.is_grad_enabled()


def test_a_decorated_generator_has_its_mode_while_it_runs() -> None:
    @pg.no_grad()
    def numbers() -> Iterator[Any]:
        try:
            sent = yield pg.is_grad_enabled()
            try:
                yield sent
            except KeyError:
                yield pg.is_grad_enabled()
            return "end"
        finally:
            closed.append(pg.is_grad_enabled())

    closed: list[bool] = []
    generator = numbers()
    assert next(generator) is False
    assert pg.is_grad_enabled()
    assert generator.send(5) == 5
    assert generator.throw(KeyError()) is False
    assert pg.is_grad_enabled()
    with pytest.raises(StopIteration, match="end"):
        next(generator)
    stopped = numbers()
    next(stopped)
    stopped.close()
    assert closed == [False, False]
    assert pg.is_grad_enabled()


def test_a_decorated_coroutine_has_its_mode_while_it_runs() -> None:
    @pg.no_grad()
    async def inside() -> bool:
        return pg.is_grad_enabled()

    with pytest.raises(StopIteration, match="False"):
        inside().send(None)
    assert pg.is_grad_enabled()
    with pytest.raises(pg.ArgumentError, match="asynchronous generators"):

        @pg.no_grad()
        async def never() -> Any:
            yield 1


def test_backward_goes_by_what_was_recorded_and_not_by_the_mode_of_now() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    with pg.no_grad():
        (g,) = grad(y, x, create_graph=True)
    assert g.requires_grad
    assert_array_equal(grad(g.sum(), x)[0], [2.0, 2.0])


def test_what_is_made_within_no_grad_counts_as_constant_outside() -> None:
    x = leaf(1.0, 2.0)
    with pg.no_grad():
        scale = x * 10.0
        own = pg.tensor([1.0], requires_grad=True)
    assert own.requires_grad
    assert scale.is_leaf
    (x * scale).sum().backward()
    assert_array_equal(x.grad, [10.0, 20.0])


# Constants on the way.


def test_detaching_cuts_one_way_and_not_the_others() -> None:
    x = leaf(2.0)
    y = x * x
    (y.detach() * y).sum().backward()
    assert_array_equal(x.grad, [4.0 * 4.0])


def test_a_detached_tensor_keeps_its_value_when_the_other_changes() -> None:
    x = leaf(1.0, 2.0)
    constant = x.detach()
    with pg.no_grad():
        x += 5.0
    assert_array_equal(constant, [1.0, 2.0])
    assert_array_equal(x, [6.0, 7.0])


def test_detaching_in_place_ends_what_was_recorded() -> None:
    x = leaf(3.0)
    y = x * x
    before = y * 1.0
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad
    (y * x).sum().backward()
    assert_array_equal(x.grad, [9.0])
    before.sum().backward()
    assert_array_equal(x.grad, [15.0])


@pytest.mark.parametrize(
    ("make", "is_leaf", "requires"),
    [
        (lambda x: x, True, True),
        (lambda x: x.detach(), True, False),
        (lambda x: x * 1.0, False, True),
        (lambda x: x.detach() * 1.0, True, False),
        (lambda x: x.detach().requires_grad_(), True, True),
        (lambda x: x[0], False, True),
        (lambda x: x > 0.0, True, False),
        (lambda x: x.astype("int64"), True, False),
        (lambda x: x.clone(), False, True),
        (lambda x: pg.stop_gradient(x), True, False),
    ],
)
def test_what_counts_as_a_leaf(make: Any, is_leaf: bool, requires: bool) -> None:
    found = make(leaf(1.0, 2.0))
    assert (found.is_leaf, found.requires_grad) == (is_leaf, requires)


def test_integers_and_booleans_require_no_gradient() -> None:
    for dtype in ("int32", "int64", "bool"):
        with pytest.raises(pg.DTypeError):
            pg.tensor([1, 0], dtype, requires_grad=True)
        with pytest.raises(pg.DTypeError):
            pg.tensor([1, 0], dtype).requires_grad_()
    x = leaf(1.0, 2.0)
    with pytest.raises(pg.NotDifferentiable):
        (x > 1.0).sum().backward()


# Changes in place.


def test_what_a_product_has_kept_is_not_changed_under_it() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3.0
    z = y * y
    y += 1.0
    (z.sum() + y.sum()).backward()
    assert_array_equal(x.grad, [2 * 9 * 1.0 + 3, 2 * 9 * 2.0 + 3])


@pytest.mark.parametrize("index", [0, slice(1, 3), [0, 2], np.array([True, False, True])])
def test_elements_that_are_overwritten_have_no_slope(index: Any) -> None:
    x, v = leaf(1.0, 2.0, 3.0), single(7.0)
    y = x * x
    y[index] = v * 2.0
    (y * np.array([1.0, 10.0, 100.0])).sum().backward()
    weights, kept = np.array([1.0, 10.0, 100.0]), np.ones(3)
    kept[index] = 0.0
    assert_allclose(x.grad, weights * kept * 2 * np.array([1.0, 2.0, 3.0]))
    assert_allclose(v.grad, 2 * (weights * (1 - kept)).sum())


def test_a_change_of_some_elements_by_themselves_goes_through() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1.0
    y[1:] *= y[:2]
    y[np.array([True, False, False])] += 1.0
    y.sum().backward()
    # x0 + 1, x1 x0, x2 x1
    assert_array_equal(y, [2.0, 2.0, 6.0])
    assert_array_equal(x.grad, [1.0 + 2.0, 1.0 + 3.0, 2.0])


def test_leaves_are_changed_within_no_grad_alone() -> None:
    x = leaf(1.0, 2.0)
    for change in (
        lambda: x.add_(1.0),
        lambda: x.zero_(),
        lambda: x.__setitem__(0, 5.0),
        lambda: x.copy_(pg.zeros((2,))),
    ):
        with pytest.raises(pg.NotDifferentiable, match="leaf"):
            change()
    assert_array_equal(x, [1.0, 2.0])


def test_a_constant_that_takes_what_is_tracked_is_tracked_from_then_on() -> None:
    x = leaf(1.0, 2.0)
    total = pg.zeros((2,))
    for k in range(3):
        total += x * float(k)
    assert total.requires_grad
    assert not total.is_leaf
    total.sum().backward()
    assert_array_equal(x.grad, [3.0, 3.0])


# Seeds, and what is asked for.


def test_seeds_weigh_the_outputs() -> None:
    x = leaf(1.0, 2.0)
    (g,) = grad([x * x, x * 3.0], x, [pg.tensor([1.0, 2.0]), np.array([10.0, 100.0])])
    assert_array_equal(g, [2.0 + 30.0, 8.0 + 300.0])


def test_seeds_that_are_tracked_have_gradients_themselves() -> None:
    # The product with the Jacobian, by two products with its transpose.
    x, v = leaf(1.0, 2.0), leaf(1.0, 1.0)
    y = pg.stack([x[0] * x[1], x[0] ** 2])
    (back,) = grad(y, x, v, create_graph=True)
    (forward,) = grad(back, v, [np.array([3.0, 5.0])])
    assert_array_equal(forward, [2.0 * 3 + 1.0 * 5, 2.0 * 3])


def test_a_seed_that_is_a_leaf_keeps_its_own_gradient_beside_hooks() -> None:
    x, v = leaf(1.0, 2.0), leaf(1.0, 1.0)
    y = x * x
    y.register_hook(lambda _: None)
    y.retain_grad()
    y.backward(v, create_graph=True)
    (x.grad * x.grad).sum().backward()
    # The gradient by x was v * 2x.
    assert_array_equal(v.grad, 2 * 4 * np.array([1.0, 4.0]))


def test_a_seed_changed_later_does_not_matter() -> None:
    x, seed = leaf(1.0, 2.0), pg.tensor([1.0, 1.0])
    (x * 3.0).backward(seed)
    seed.zero_()
    assert_array_equal(x.grad, [3.0, 3.0])


def test_what_is_asked_for_alone_is_filled() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    h = x * w
    (h * h).sum().backward(inputs=iter([w, h]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TensorWarning)
        assert_array_equal(h.grad, 2 * np.array([3.0, 8.0]))
    assert x.grad is None
    assert_array_equal(w.grad, 2 * np.array([1.0, 4.0]) * np.array([3.0, 4.0]))
    with pytest.raises(PrimgraphError, match="empty"):
        (x * w).sum().backward(inputs=[])


def test_what_is_asked_for_is_filled_once_whatever_a_manager_did_to_it() -> None:
    x = leaf(1.0, 2.0)
    manager = pg.GradManager().attach(x)
    with manager:
        manager.backward((x * x).sum())
    x.grad = None
    (x * x).sum().backward(inputs=[x])
    assert_array_equal(x.grad, [2.0, 4.0])


def test_what_is_asked_for_twice_is_filled_once() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward(inputs=[x, x])
    assert_array_equal(x.grad, [2.0, 4.0])


def test_zeros_for_unused_inputs_require_a_gradient_as_the_others_do() -> None:
    x, unused = leaf(1.0, 2.0), leaf(3.0)
    for created in (True, False):
        found = grad((x**3).sum(), [x, unused], create_graph=created, materialize_grads=True)
        assert [t.requires_grad for t in found] == [created, created]


@pytest.mark.parametrize("materialize", [True, False])
def test_unused_inputs_are_none_or_zeros(materialize: bool) -> None:
    x, unused = leaf(1.0, 2.0), leaf(1.0, 2.0, 3.0, dtype="float32")
    y = (x * x).sum()
    with pytest.raises(pg.NotDifferentiable, match="allow_unused=True"):
        grad(y, [x, unused], retain_graph=True)
    used, found = grad(y, [x, unused], allow_unused=True, materialize_grads=materialize)
    assert_array_equal(used, [2.0, 4.0])
    if materialize:
        assert (found.dtype, found.shape, found.requires_grad) == (np.float32, (3,), False)
        assert_array_equal(found, np.zeros(3))
    else:
        assert found is None


def test_a_batch_of_seeds_gives_a_batch_of_gradients_of_second_order() -> None:
    x = leaf(1.0, 2.0, 3.0)
    (g,) = grad((x**3).sum() + x[0] * x[2], x, create_graph=True)
    (hessian,) = grad(g, x, [np.eye(3)], is_grads_batched=True, create_graph=True)
    expected = np.diag([6.0, 12.0, 18.0])
    expected[0, 2] = expected[2, 0] = 1.0
    assert_array_equal(hessian, expected)
    (third,) = grad(hessian.sum(), x)
    assert_array_equal(third, [6.0, 6.0, 6.0])


def test_a_batch_of_seeds_goes_through_hooks_as_it_is() -> None:
    x, shapes = leaf(1.0, 2.0), []
    y = x * x
    y.register_hook(lambda g: shapes.append(g.shape))
    y.register_hook(lambda g: g * 2.0)
    (found,) = grad(y, x, [np.eye(2)], is_grads_batched=True)
    assert shapes == [(2, 2)]
    assert_array_equal(found, np.diag([4.0, 8.0]))


def test_batches_of_seeds_have_one_extent() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(pg.ShapeError, match="one extent"):
        grad([x * 2.0, x * 3.0], x, [np.ones((2, 2)), np.ones((3, 2))], is_grads_batched=True)
    with pytest.raises(pg.ShapeError):
        grad(x * 2.0, x, [np.ones(2)], is_grads_batched=True)


# Higher orders.


@pytest.mark.parametrize("order", range(1, 6))
def test_derivatives_of_any_order(order: int) -> None:
    x = single(0.7)
    y = pg.sin(x) * pg.exp(x)
    for _ in range(order):
        (y,) = grad(y, x, create_graph=True)
    # exp(x) sin(x) has the derivatives 2**(n/2) exp(x) sin(x + n pi / 4).
    expected = 2 ** (order / 2) * np.exp(0.7) * np.sin(0.7 + order * np.pi / 4)
    assert_allclose(y.item(), expected, rtol=1e-12)


def test_the_gradient_of_the_squared_norm_of_a_gradient() -> None:
    x = leaf(0.3, -0.4)
    (g,) = grad(pg.sum(pg.exp(x) * x[0]), x, create_graph=True)
    loss = (g * g).sum()
    loss.backward()
    a, b = 0.3, -0.4
    first, second = np.exp(a) * (1 + a) + np.exp(b), a * np.exp(b)
    by_a = 2 * first * (np.exp(a) * (2 + a)) + 2 * second * np.exp(b)
    by_b = 2 * first * np.exp(b) + 2 * second * a * np.exp(b)
    assert_allclose(x.grad, [by_a, by_b])


def test_a_created_graph_in_grad_leads_to_leaves_and_intermediates() -> None:
    x = single(2.0)
    h = x * x
    (by_h,) = grad(h**3, h, create_graph=True)
    assert by_h.item() == 3 * 16.0
    (by_x,) = grad(by_h, x)
    # 3 h**2 with h = x**2.
    assert by_x.item() == 12 * 8.0


def test_a_gradient_that_does_not_depend_on_what_it_is_by_has_no_graph_to_it() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (g,) = grad((x * w).sum(), x, create_graph=True)
    by_w, by_x = grad(g.sum(), [w, x], allow_unused=True)
    assert_array_equal(by_w, [1.0, 1.0])
    assert by_x is None or not by_x.numpy().any()


def test_second_derivatives_by_intermediates_beside_what_they_come_from() -> None:
    x = single(2.0)
    h = x * x
    by_h, by_x = grad(h**3 + x**3, [h, x], create_graph=True)
    again_h, again_x = grad(by_h + by_x, [h, x])
    # by_h is 3 h**2, and by_x is 3 h**2 * 2 x + 3 x**2.
    assert (by_h.item(), by_x.item()) == (48.0, 204.0)
    assert (again_h.item(), again_x.item()) == (24.0 + 96.0, 588.0)


@pytest.mark.parametrize("uses", ["0", "1", "2", "01", "02", "12", "012"])
@pytest.mark.parametrize("asked", [True, False])
def test_second_derivatives_of_a_leaf_that_was_changed_in_between(uses: str, asked: bool) -> None:
    w, values, total = leaf(1.0, 2.0), [], 0.0
    for k in range(3):
        values.append(w.tolist())
        if str(k) in uses:
            total = total + (w * w * w).sum() * (k + 1.0)
        with pg.no_grad():
            w += 0.5
    total.backward(create_graph=True, inputs=[w] if asked else None)
    first, w.grad = w.grad, None
    first.sum().backward()
    weights = [(int(k) + 1.0, np.array(values[int(k)])) for k in uses]
    assert_allclose(first, sum(c * 3 * v**2 for c, v in weights))
    assert_allclose(w.grad, sum(c * 6 * v for c, v in weights))


# Shared expressions, views, broadcasting.


def test_equal_expressions_are_asked_for_apart() -> None:
    x = leaf(2.0)
    a, b = x * 3.0, x * 3.0
    by_a, by_b = grad((a * a * b).sum(), [a, b])
    assert (by_a.item(), by_b.item()) == (2 * 36.0, 36.0)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda x: x[1], [[0, 0, 0], [1, 1, 1]]),
        (lambda x: x[:, ::2], [[1, 0, 1], [1, 0, 1]]),
        (lambda x: x.T[1:], [[0, 1, 1], [0, 1, 1]]),
        (lambda x: x.reshape(3, 2)[0], [[1, 1, 0], [0, 0, 0]]),
        (lambda x: x[None, ..., 0], [[1, 0, 0], [1, 0, 0]]),
        (lambda x: x[[0, 0, 1]], [[2, 2, 2], [1, 1, 1]]),
        (lambda x: x[::-1, 1], [[0, 1, 0], [0, 1, 0]]),
        (lambda x: pg.broadcast_to(x, (4, 2, 3)), [[4, 4, 4], [4, 4, 4]]),
    ],
)
def test_views_have_slopes_where_they_look(view: Any, expected: Any) -> None:
    x = pg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    part = view(x)
    (part * part).sum().backward()
    assert_array_equal(x.grad, 2 * np.array(expected) * np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("one", "other"), [((3, 1), (1, 4)), ((), (2, 3)), ((1,), (5, 1)), ((2, 1, 3), (4, 1))]
)
def test_what_was_broadcast_gets_the_sum(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b, seed = rng.random(one), rng.random(other), rng.random(np.broadcast_shapes(one, other))
    x, y = pg.tensor(a, requires_grad=True), pg.tensor(b, requires_grad=True)
    by_x, by_y = grad(x * y, [x, y], [seed])

    def summed(array: Any, shape: tuple[int, ...]) -> Any:
        lead = array.ndim - len(shape)
        array = array.sum(axis=tuple(range(lead)))
        axes = tuple(i for i, n in enumerate(shape) if n == 1)
        return array.sum(axis=axes, keepdims=True) if axes else array

    assert_allclose(by_x, summed(seed * b, one))
    assert_allclose(by_y, summed(seed * a, other))


# Dtypes, and tensors with few elements.


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("other", ["float16", "float32", "float64", "int32", "bool"])
def test_gradients_have_the_dtype_of_what_they_are_by(dtype: str, other: str) -> None:
    x, y = leaf(1.0, 2.0, dtype=dtype), pg.tensor([1, 0], other)
    if y.dtype.kind == "f":
        y.requires_grad_()
    z = (x * y + x).sum()
    assert z.dtype == np.result_type(dtype, other)
    z.backward()
    assert x.grad.dtype == dtype
    assert_array_equal(x.grad, [2.0, 1.0])
    if y.requires_grad:
        assert y.grad.dtype == other
        assert_array_equal(y.grad, [1.0, 2.0])


def test_a_seed_of_another_dtype_is_converted() -> None:
    x = leaf(1.0, 2.0, dtype="float32")
    (g,) = grad(x * x, x, pg.tensor([1, 2]))
    assert g.dtype == np.float32
    assert_array_equal(g, [2.0, 8.0])


def test_tensors_without_axes_or_elements_have_gradients() -> None:
    x, empty = single(3.0), pg.tensor(np.zeros((0, 2)), requires_grad=True)
    ((x * x) + (empty * x).sum() + empty.sum(axis=1).sum()).backward()
    assert x.grad.shape == ()
    assert x.grad.item() == 6.0
    assert empty.grad.shape == (0, 2)
    (g,) = grad(empty * 2.0, empty, np.ones((0, 2)))
    assert g.shape == (0, 2)
    with pytest.raises(pg.ShapeError):
        (empty * 2.0).backward()


def test_a_tensor_of_one_element_needs_no_seed_whatever_its_axes() -> None:
    x = pg.tensor([[3.0]], requires_grad=True)
    (x * x).backward()
    assert_array_equal(x.grad, [[6.0]])


def test_infinite_and_undefined_values_do_not_spread_where_they_are_not_used() -> None:
    x = leaf(0.0, 1.0, -1.0)
    y = pg.where(x > 0.0, pg.log(x), x * 2.0)
    y.sum().backward()
    assert_array_equal(x.grad, [2.0, 1.0, 2.0])


# Custom functions.


class Cube(pg.Function):
    @staticmethod
    def forward(ctx: Any, x: pg.Tensor) -> pg.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: pg.Tensor) -> pg.Tensor:
        (x,) = ctx.saved_tensors
        return g * 3.0 * x * x


class Reversed(pg.Function):
    """The identity, whose gradient changes its sign, also at second order."""

    @staticmethod
    def forward(ctx: Any, x: pg.Tensor) -> pg.Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: pg.Tensor) -> pg.Tensor:
        return -g


@pytest.mark.parametrize("order", [1, 2, 3])
def test_custom_functions_are_differentiated_by_what_their_rules_do(order: int) -> None:
    x = single(2.0)
    y = Cube.apply(pg.sin(x)) * x
    for _ in range(order):
        (y,) = grad(y, x, create_graph=True)
    x2 = single(2.0)
    plain = pg.sin(x2) ** 3 * x2
    for _ in range(order):
        (plain,) = grad(plain, x2, create_graph=True)
    assert_allclose(y.item(), plain.item(), rtol=1e-12)


def test_the_rule_of_a_custom_function_counts_and_not_its_formula() -> None:
    x = single(2.0)
    (first,) = grad(Reversed.apply(x * x), x, create_graph=True)
    assert first.item() == -4.0
    (second,) = grad(first, x)
    assert second.item() == -2.0


def test_custom_functions_keep_what_they_saved_when_it_is_changed() -> None:
    x = leaf(2.0)
    h = x * 1.0
    y = Cube.apply(h)
    h *= 100.0
    y.sum().backward()
    assert_array_equal(x.grad, [12.0])


def test_hooks_between_custom_functions_see_each_gradient() -> None:
    x, seen = single(2.0), []
    h = Cube.apply(x)
    h.register_hook(lambda g: seen.append(g.item()))
    (Reversed.apply(h) * 5.0).backward()
    assert seen == [-5.0]
    assert x.grad.item() == -5.0 * 12.0


# Threads.


def test_threads_that_go_through_one_record_all_add_to_the_gradient() -> None:
    x = leaf(1.0, 2.0)
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def work() -> None:
        try:
            start.wait()
            for _ in range(10):
                grad((x * x).sum(), x)[0].numpy()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert x.grad is None


# Copies.


@pytest.mark.parametrize("duplicate", [copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_what_a_program_shares_is_a_tensor_of_its_own(duplicate: Any) -> None:
    w = leaf(1.0, 2.0)
    with pg.Program() as program:
        loss = pg.sum(pg.data("x", (2,)) * w)
    other = duplicate(w)
    assert type(other) is pg.Tensor
    assert other.requires_grad
    with pg.no_grad():
        w += 1.0
    assert_array_equal(other, [1.0, 2.0])
    assert pg.Executor().run(program, {"x": [1.0, 1.0]}, [loss])[0] == 5.0


def test_a_deep_copy_has_a_gradient_of_its_own() -> None:
    w = leaf(1.0, 2.0)
    with pg.Program():
        pg.sum(pg.data("x", (2,)) * w)
    (w * w).sum().backward()
    first, second = copy.deepcopy([w, w])
    assert first is second
    assert_array_equal(first.grad, [2.0, 4.0])
    (first * 1.0).sum().backward()
    assert_array_equal(w.grad, [2.0, 4.0])
    assert_array_equal(first.grad, [3.0, 5.0])


# Numbers and masks are data.


@pytest.mark.parametrize(
    "step",
    [
        lambda x, c, _: x * c + (c * 2.0 - x) / (c + 3.0),
        lambda x, c, _: pg.where(x > c, x, c),
        lambda x, c, _: pg.maximum(x, c) % (c + 1.0) + x // (c + 1.0),
        lambda x, c, _: x * (c * 1e300),
        lambda x, _, mask: pg.where(mask, x, 0.0) * mask,
        lambda x, c, _: x * (pg.tensor([1, 2, 3]) + int(c)),
        lambda x, c, _: x[[int(c) % 3, 0]],
    ],
)
def test_other_numbers_masks_and_positions_are_no_other_structure(step: Any) -> None:
    rng = np.random.default_rng(0)
    x = leaf(1.0, 2.0, 3.0)
    for k in range(12):
        if k == 3:
            before = pg.eager.log.total
        x.grad = None
        y = step(x, k + 0.5, rng.random(3) > 0.5)
        y.sum().backward()
        x.grad.numpy()
    assert pg.eager.log.total == before


def test_a_number_that_is_no_number_of_the_dtype_is_infinite() -> None:
    x = leaf(1.0, -1.0, dtype="float16")
    assert_array_equal(x * 1e6, [np.inf, -np.inf])
    assert_array_equal(x < float("inf"), [True, True])
    assert np.isnan((x * float("nan")).numpy()).all()


def test_a_hooked_tensor_is_freed_when_nobody_holds_it() -> None:
    x = leaf(1.0)
    y = x * 2.0
    y.register_hook(lambda g: g)
    y *= 3.0
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


# What is not looked at for long.


def _mean(seen: dict[str, Any], loss: pg.Tensor, _: pg.Tensor) -> None:
    seen["mean"] = seen.get("mean", 0.0) + loss.detach()


def _averages(seen: dict[str, Any], _: pg.Tensor, w: pg.Tensor) -> None:
    with pg.no_grad():
        seen["average"] = seen.get("average", 0.0) * 0.9 + w * 0.1


def _list(seen: dict[str, Any], loss: pg.Tensor, _: pg.Tensor) -> None:
    seen.setdefault("list", []).append((loss > 1.0) * 1.0)


@pytest.mark.parametrize("note", [_mean, _averages, _list])
@pytest.mark.parametrize("early", [True, False])
def test_what_is_noted_in_a_loop_and_never_looked_at_does_not_keep_the_steps(
    note: Any, early: bool
) -> None:
    w = leaf(*np.linspace(0.0, 3.0, 40))
    optimizer = pg.optimizer.SGD(1e-3, parameters=[w])
    seen: dict[str, Any] = {}
    former = []
    for _ in range(30):
        optimizer.clear_grad()
        loss = pg.sum(pg.sin(w) * w)
        if early:
            note(seen, loss, w)
        loss.backward()
        former.append(weakref.ref(w.node.array))
        optimizer.step()
        if not early:
            note(seen, loss, w)
    # Elements of the parameters of long ago are gone.
    assert sum(r() is not None for r in former[:-4]) == 0


@pytest.mark.parametrize("first", ["x", "h", "both"])
def test_a_gradient_is_a_function_of_what_lies_between_whatever_it_was_asked_by(first):
    for _ in range(3):
        x = pg.tensor(2.0, requires_grad=True)
        h = (x * x).reshape(1).reshape(())
        y = h**3 + x**3
        wanted = {"x": [x], "h": [h], "both": [h, x]}[first]
        total = sum(pg.autograd.grad(y, wanted, create_graph=True))
        (by_h,) = pg.autograd.grad(total, [h])
        # y by h is 3 h**2; by x, through h, 6 h**2 x + 3 x**2 with what x gives beside.
        expected = {"x": 6 * 4 * 2 * 2.0, "h": 6 * 4.0, "both": 6 * 4 * 2 * 2.0 + 6 * 4.0}[first]
        assert by_h.item() == expected


def test_gradients_do_not_depend_on_operands_of_linear_steps() -> None:
    # The gradient of tanh(x w + b) v + c by x depends on w, b and v, and not on c.
    x, w, b, v, c = (
        pg.tensor(np.full(2, n), requires_grad=True) for n in (0.1, 0.2, 0.3, 0.4, 0.5)
    )
    y = pg.tanh(x * w + b) * v + c
    (slope,) = pg.autograd.grad(pg.sum(y), x, create_graph=True)
    (curve,) = pg.autograd.grad(pg.sum(slope), x, create_graph=True)
    loss = pg.sum(curve**2)
    assert pg.autograd.grad(loss, (b, c), retain_graph=True, allow_unused=True)[1] is None
    loss.backward(retain_graph=True)
    assert c.grad is None
    assert all(p.grad is not None for p in (x, w, b, v))
    pg.sum(curve * c).backward()
    np.testing.assert_array_equal(c.grad.numpy(), curve.numpy())


def test_grad_passes_released_nodes_that_are_older_than_its_inputs() -> None:
    w = pg.tensor(2.0, requires_grad=True)
    scale = pg.exp(w)
    x = w * 3.0
    loss = scale * x
    loss.backward()
    (found,) = pg.autograd.grad(pg.sin(scale.detach() * x) * scale, x)
    expected = np.cos(np.exp(2.0) * 6.0) * np.exp(4.0)
    np.testing.assert_allclose(found.numpy(), expected)
