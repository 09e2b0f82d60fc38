"""What tensors can do, feature by feature: reverse mode, forward mode, Jacobians, managers.

In reverse mode: seeds by output, dtype and batch; inputs that are unused, repeated, intermediate or
constant; what is retained and dropped; `.grad` of leaves and of others, accumulated, preset and
cleared; hooks before and after; modes; what is refused, each with its message. In forward mode and
for functions: tangents, mixtures of modes, products, strictness, aliases. Of Jacobians and
Hessians: whole, in parts, batched, in blocks, of several, differentiated again, refused. Of
managers: recording, nesting, groups, intermediates, weak references, callbacks, errors.
"""

from __future__ import annotations

import gc
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
from primgraph.errors import PrimgraphError

RNG = np.random.default_rng(17)


def leaf(*shape: int, dtype: str = "float64") -> pg.Tensor:
    return pg.tensor(RNG.random(shape) + 0.5, dtype=dtype, requires_grad=True)


# Reverse mode.


def test_grad_takes_outputs_inputs_and_seeds() -> None:
    x = leaf(3)
    v = RNG.random(3)
    (found,) = pg.autograd.grad([x**3], [x], [pg.tensor(v)])
    assert_allclose(found.numpy(), 3 * v * x.numpy() ** 2)


def test_gradients_are_a_tuple_for_one_input_too() -> None:
    x = leaf(3)
    for inputs in (x, [x], (x,)):
        found = pg.grad(pg.sum(x * x), inputs)
        assert isinstance(found, tuple)
        assert_allclose(found[0].numpy(), 2 * x.numpy())
    assert x.grad is None


def test_variables_of_a_program_are_no_inputs_of_tensors_nor_outputs() -> None:
    x = leaf(3)
    with pg.Program():
        variable = pg.data("x", (3,))
    for outputs, inputs in ((pg.sum(x), variable), ([pg.sum(x)], [x, variable])):
        with pytest.raises(TypeError, match="a tensor"):
            pg.grad(outputs, inputs)


def test_several_outputs_are_summed() -> None:
    x = leaf(3)
    (found,) = pg.autograd.grad([pg.sum(x), pg.sum(x * x)], [x])
    assert_allclose(found.numpy(), 1 + 2 * x.numpy())


def test_the_same_output_twice_counts_twice() -> None:
    x = leaf(3)
    y = pg.sum(x * x)
    (found,) = pg.autograd.grad([y, y], [x])
    assert_allclose(found.numpy(), 4 * x.numpy())


def test_outputs_that_share_a_tangent_are_both_counted() -> None:
    x = leaf(3)
    (found,) = pg.autograd.grad([x + 1.0, x + 2.0], [x], [np.ones(3), np.ones(3)])
    assert_array_equal(found.numpy(), [2, 2, 2])


def test_the_same_input_twice_gets_the_full_gradient_twice() -> None:
    x = leaf(3)
    first, second = pg.autograd.grad(pg.sum(x * x), [x, x])
    assert_allclose(first.numpy(), 2 * x.numpy())
    assert_allclose(second.numpy(), 2 * x.numpy())


def test_more_than_one_element_wants_a_seed() -> None:
    x = leaf(3)
    for call in (lambda: pg.autograd.grad(x * x, x), lambda: (x * x).backward()):
        with pytest.raises(pg.ShapeError, match="only for scalar outputs") as caught:
            call()
        assert "pass a seed of its shape, or take the gradient of a sum" in str(caught.value)
    for shape in ((), (1,), (1, 1)):
        y = pg.reshape(pg.sum(x), shape)
        assert_array_equal(pg.autograd.grad(y, x)[0].numpy(), [1, 1, 1])


def test_a_seed_may_be_none_for_some_of_the_outputs() -> None:
    x = leaf(3)
    (found,) = pg.autograd.grad([pg.sum(x), 2 * x], x, [None, np.ones(3)])
    assert_array_equal(found.numpy(), [3, 3, 3])


def test_seeds_are_checked_in_shape_and_number() -> None:
    x = leaf(3)
    with pytest.raises(pg.ShapeError, match="Mismatch in shape"):
        pg.autograd.grad(x * x, x, np.ones(2))
    with pytest.raises(pg.ArgumentError, match="got 1 tensors and 2 gradients"):
        pg.autograd.grad(x * x, x, [np.ones(3), np.ones(3)])


def test_a_seed_of_another_dtype_is_cast() -> None:
    x = leaf(3)
    (found,) = pg.autograd.grad(2 * x, x, pg.tensor([1, 2, 3], dtype="int32"))
    assert found.dtype == np.float64
    assert_array_equal(found.numpy(), [2, 4, 6])


def test_an_unused_input_is_none_or_zeros_or_an_error() -> None:
    x, other = leaf(3), leaf(2)
    with pytest.raises(pg.NotDifferentiable, match="not have been used") as caught:
        pg.autograd.grad(pg.sum(x), [x, other])
    assert "allow_unused=True" in str(caught.value)
    assert pg.autograd.grad(pg.sum(x), [x, other], allow_unused=True)[1] is None
    zeros = pg.autograd.grad(pg.sum(x), [x, other], materialize_grads=True)[1]
    assert_array_equal(zeros.numpy(), [0, 0])
    with pytest.raises(pg.OptionError):
        pg.autograd.grad(pg.sum(x), [x, other], allow_unused=False, materialize_grads=True)


def test_an_output_that_depends_on_nothing_is_an_error() -> None:
    x = leaf(3)
    with pytest.raises(pg.NotDifferentiable, match="does not require grad"):
        pg.autograd.grad(pg.sum(pg.tensor([1.0])), x)


@pytest.mark.parametrize("hooked", [False, True], ids=["plain", "hooked"])
def test_tensors_can_be_held_constant_for_one_derivative(hooked: bool) -> None:
    x = leaf(3)
    y = x * x
    z = pg.sum(x * y + y)
    if hooked:
        x.register_hook(lambda g: 2 * g)
    factor = 2 if hooked else 1
    (held,) = pg.grad(z, x, retain_graph=True, no_grad_vars=y)
    assert_allclose(held.numpy(), factor * y.detach().numpy())
    (second,) = pg.grad(z, y, retain_graph=True, no_grad_vars=[x])
    assert_allclose(second.numpy(), x.numpy() + 1)
    assert pg.grad(z, [x, y], retain_graph=True, allow_unused=True, no_grad_vars=[x])[0] is None
    (whole,) = pg.grad(z, x)
    assert_allclose(whole.numpy(), factor * (3 * x.numpy() ** 2 + 2 * x.numpy()))


def test_an_intermediate_and_what_it_comes_from_get_full_gradients() -> None:
    x = leaf(3)
    y = x * x
    z = y * y
    by_x, by_y = pg.autograd.grad(z, [x, y], np.ones(3))
    assert_allclose(by_x.numpy(), 4 * x.numpy() ** 3)
    assert_allclose(by_y.numpy(), 2 * y.numpy())


def test_batched_seeds_give_batched_gradients() -> None:
    x = leaf(2, 2)
    seeds = np.arange(3.0)[:, None, None] * np.ones((2, 2))
    (found,) = pg.autograd.grad(+x, x, seeds, is_grads_batched=True)
    assert_array_equal(found.numpy(), seeds)
    (found,) = pg.autograd.grad(pg.sum(x), x, np.arange(3.0), is_grads_batched=True)
    assert_array_equal(found.numpy(), seeds)


def test_gradients_can_be_differentiated_if_the_graph_is_created() -> None:
    x = leaf(3)
    (first,) = pg.autograd.grad(pg.sum(x**3), x, create_graph=True)
    (second,) = pg.autograd.grad(pg.sum(first), x)
    assert_allclose(second.numpy(), 6 * x.numpy())
    (first,) = pg.autograd.grad(pg.sum(x**3), x)
    assert not first.requires_grad


def test_what_was_recorded_is_dropped_unless_it_is_retained() -> None:
    x = leaf(3)
    y = pg.sum(x**3)
    pg.autograd.grad(y, x, retain_graph=True)
    pg.autograd.grad(y, x)
    with pytest.raises(pg.BuildError, match="a second time") as caught:
        pg.autograd.grad(y, x)
    assert "retain_graph=True" in str(caught.value)


def test_empty_inputs_and_what_is_no_tensor_are_refused() -> None:
    x = leaf(3)
    with pytest.raises(ValueError, match="non-empty"):
        pg.autograd.grad(pg.sum(x), [])
    for wrong in (1, "x", [x, 1]):
        with pytest.raises(TypeError):
            pg.autograd.grad(pg.sum(x), wrong)
        with pytest.raises(TypeError):
            pg.autograd.grad(wrong, x)


def test_backward_puts_gradients_into_leaves_alone() -> None:
    x = leaf(3)
    y = x * x
    pg.sum(y).backward()
    assert_allclose(x.grad.numpy(), 2 * x.numpy())
    with pytest.warns(pg.TensorWarning, match="retain_grad"):
        assert y.grad is None


def test_backward_adds_to_the_gradient_in_place() -> None:
    x = leaf(3)
    y = pg.sum(x * x)
    y.backward(retain_graph=True)
    gradient = x.grad
    y.backward()
    assert x.grad is gradient
    assert_allclose(gradient.numpy(), 4 * x.numpy())


def test_gradients_are_cleared_by_none_or_zeros() -> None:
    x = leaf(3)
    for clear in (lambda: setattr(x, "grad", None), lambda: x.grad.zero_()):
        pg.sum(x).backward()
        clear()
        pg.sum(2 * x).backward()
        assert_array_equal(x.grad.numpy(), [2, 2, 2])
        x.grad = None


def test_a_gradient_that_was_set_is_where_adding_starts() -> None:
    x = leaf(3)
    x.grad = pg.tensor([10.0, 20.0, 30.0])
    pg.sum(x).backward()
    assert_array_equal(x.grad.numpy(), [11, 21, 31])
    with pytest.raises(pg.ShapeError):
        x.grad = pg.tensor([1.0])


def test_the_first_gradient_is_nobody_elses() -> None:
    x, y = leaf(3), leaf(3)
    pg.sum(x + y).backward()
    x.grad.fill_(7)
    assert_array_equal(y.grad.numpy(), [1, 1, 1])


def test_intermediates_retain_their_gradient_if_asked() -> None:
    x = leaf(3)
    y = x * x
    y.retain_grad()
    pg.sum(3 * y).backward()
    assert_array_equal(y.grad.numpy(), [3, 3, 3])
    with pytest.raises(pg.NotDifferentiable):
        pg.tensor([1.0]).retain_grad()


def test_leaves_are_told_from_what_is_computed() -> None:
    x, constant = leaf(3), pg.tensor([1.0, 2.0, 3.0])
    assert x.is_leaf
    assert constant.is_leaf
    assert (constant * 2).is_leaf
    assert not (x * 2).is_leaf
    with pytest.raises(pg.NotDifferentiable, match="leaf"):
        (x * 2).requires_grad_(False)


def test_requires_grad_may_be_set_on_leaves() -> None:
    x = pg.tensor([1.0, 2.0])
    assert not (x * x).requires_grad
    y = x.requires_grad_() * 3
    assert y.requires_grad
    x.requires_grad_(False)
    assert not (x * x).requires_grad
    with pytest.raises(pg.DTypeError, match="only floats"):
        pg.tensor([1, 2], requires_grad=True)


def test_what_is_detached_is_constant() -> None:
    x = leaf(3)
    y = pg.sum(x * x.detach())
    assert_allclose(pg.autograd.grad(y, x)[0].numpy(), x.numpy())
    z = x * x
    z.detach_()
    assert not z.requires_grad


def test_nothing_is_recorded_within_no_grad() -> None:
    x = leaf(3)
    with pg.no_grad():
        assert not (x * x).requires_grad
        with pg.enable_grad():
            assert (x * x).requires_grad
        assert not (x * x).requires_grad
    assert (x * x).requires_grad
    with pg.set_grad_enabled(False):
        assert not (x * x).requires_grad
    with pg.inference_mode():
        assert not (x * x).requires_grad
    assert pg.is_grad_enabled()


def test_no_grad_decorates() -> None:
    x = leaf(3)

    @pg.no_grad()
    def constant() -> pg.Tensor:
        return x * x

    @pg.enable_grad()
    def recorded() -> pg.Tensor:
        return x * x

    assert not constant().requires_grad
    with pg.no_grad():
        assert recorded().requires_grad


def test_no_grad_of_one_thread_is_not_that_of_another() -> None:
    x = leaf(3)
    found = []
    with pg.no_grad():
        thread = threading.Thread(target=lambda: found.append((x * x).requires_grad))
        thread.start()
        thread.join()
    assert found == [True]


def test_backward_may_be_called_within_no_grad() -> None:
    x = leaf(3)
    y = pg.sum(x * x)
    with pg.no_grad():
        y.backward()
    assert_allclose(x.grad.numpy(), 2 * x.numpy())


def test_hooks_change_gradients_in_the_order_in_which_they_were_registered() -> None:
    x = leaf(3)
    y = x * x
    y.register_hook(lambda g: 2 * g)
    last = y.register_hook(lambda g: g + 1)
    z = pg.sum(3 * y)
    z.backward(retain_graph=True)
    assert_allclose(x.grad.numpy(), 7 * 2 * x.numpy())
    last.remove()
    x.grad = None
    z.backward()
    assert_allclose(x.grad.numpy(), 6 * 2 * x.numpy())


def test_hooks_run_for_grad_too_and_may_only_look() -> None:
    x = leaf(3)
    seen = []
    x.register_hook(lambda g: seen.append(g.numpy()))
    (found,) = pg.autograd.grad(pg.sum(3 * x), x)
    assert_array_equal(found.numpy(), [3, 3, 3])
    assert_array_equal(seen, [[3, 3, 3]])


def test_a_hook_sees_the_whole_gradient_once() -> None:
    x = leaf(3)
    y = x * x
    seen: list[Any] = []
    for tensor in (x, y):
        tensor.register_hook(lambda g: seen.append(g.numpy()))
    z = pg.sin(y)
    pg.sum(z * z + 3.0 * y - pg.exp(z)).backward()
    by_y = 2 * np.sin(y.numpy()) * np.cos(y.numpy()) + 3
    by_y -= np.exp(np.sin(y.numpy())) * np.cos(y.numpy())
    assert len(seen) == 2
    assert_allclose(seen[0], by_y)
    assert_allclose(seen[1], by_y * 2 * x.numpy())


def test_hooks_after_accumulation_see_the_leaf() -> None:
    x = leaf(3)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.numpy()))
    pg.sum(x).backward()
    pg.sum(x).backward()
    assert_array_equal(seen, [[1, 1, 1], [2, 2, 2]])


def test_a_hook_that_gives_another_shape_is_refused_with_its_line() -> None:
    x = leaf(3)
    x.register_hook(lambda g: pg.sum(g))
    with pytest.raises(pg.ShapeError, match="a hook got") as caught:
        pg.sum(x).backward()
    assert "test_tensor_features.py" in str(caught.value)


def test_gradients_to_intermediates_carry_on_from_there() -> None:
    x = leaf(3)
    y = pg.tanh(x)
    z = pg.sum(y**3)
    (seed,) = pg.autograd.grad(z, y, retain_graph=True)
    (parts,) = pg.autograd.grad(y, x, seed, retain_graph=True)
    (whole,) = pg.autograd.grad(z, x)
    assert_allclose(parts.numpy(), whole.numpy())


def test_backward_restricted_to_inputs_leaves_others_alone() -> None:
    x, y = leaf(3), leaf(3)
    pg.sum(x * y).backward(inputs=[x])
    assert_allclose(x.grad.numpy(), y.numpy())
    assert y.grad is None


def test_backward_of_several_tensors() -> None:
    x = leaf(3)
    pg.autograd.backward([pg.sum(x), 2 * x], [None, np.ones(3)])
    assert_array_equal(x.grad.numpy(), [3, 3, 3])


def test_a_long_chain_has_its_gradient() -> None:
    x = pg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(3_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1


def test_a_leaf_may_be_what_backward_is_called_on() -> None:
    x = pg.tensor(3.0, requires_grad=True)
    x.backward()
    assert x.grad.item() == 1


def test_a_path_of_factor_zero_gives_zeros() -> None:
    x = leaf(3)
    (found,) = pg.autograd.grad(pg.sum(x * 0.0), x)
    assert_array_equal(found.numpy(), [0, 0, 0])
    (found,) = pg.autograd.grad(pg.sum(pg.where(x > 0, x, -x) * 0.0), x)
    assert_array_equal(found.numpy(), [0, 0, 0])


def test_one_of_the_parts_of_a_split_is_enough() -> None:
    x = leaf(4)
    (found,) = pg.autograd.grad(pg.sum(pg.split(x, 2)[1] ** 2), x)
    assert_allclose(found.numpy(), [0, 0, *(2 * x.numpy()[2:])])


def test_a_constant_part_of_a_concatenation_has_no_gradient() -> None:
    x = leaf(2)
    (found,) = pg.autograd.grad(pg.sum(pg.concatenate([x, np.ones(2)]) ** 2), x)
    assert_allclose(found.numpy(), 2 * x.numpy())


@pytest.mark.parametrize("axis", [0, 1])
def test_repeated_positions_add_up_at_second_order(axis: int) -> None:
    x = leaf(3, 3)
    index = np.array([0, 2, 2])
    y = pg.sum(pg.gather(x, index, axis) ** 3)
    (first,) = pg.autograd.grad(y, x, create_graph=True)
    (second,) = pg.autograd.grad(pg.sum(first), x)
    times = np.array([1, 0, 2])[:, None] if axis == 0 else np.array([1, 0, 2])
    assert_allclose(first.detach().numpy(), 3 * x.numpy() ** 2 * times, rtol=1e-9)
    assert_allclose(second.numpy(), 6 * x.numpy() * times, rtol=1e-9)


def test_what_was_computed_before_a_change_in_place_gives_its_gradient_still() -> None:
    x = leaf(3)
    before = x.numpy()
    y = pg.sum(x * x)
    with pg.no_grad():
        x *= 10.0
    (y + pg.sum(x)).backward()
    assert_allclose(x.grad.numpy(), 2 * before + 1)
    z = x * 2
    w = pg.sum(z * z)
    z += 1.0
    x.grad = None
    w.backward()
    assert_allclose(x.grad.numpy(), 8 * 10 * before)


def test_a_function_with_rules_of_its_own_has_second_derivatives() -> None:
    class Cube(pg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ct * 3.0 * x * x

    x = leaf(3)
    (first,) = pg.autograd.grad(pg.sum(Cube.apply(x)), x, create_graph=True)
    (second,) = pg.autograd.grad(pg.sum(first), x)
    assert_allclose(first.detach().numpy(), 3 * x.numpy() ** 2)
    assert_allclose(second.numpy(), 6 * x.numpy())


# Forward mode and functions of tensors.


def test_forward_mode_takes_tangents_and_gives_one_derivative_for_each_output() -> None:
    x = leaf(3)
    v = RNG.random(3)
    along = pg.forward_grad(x**3, x, pg.tensor(v))
    assert_allclose(along.detach().numpy(), 3 * v * x.numpy() ** 2)
    twice, square, tanh, unreached = pg.forward_grad(
        [x + x, x * x, pg.tanh(x), pg.tensor([1.0])], x
    )
    assert_allclose(twice.detach().numpy(), [2, 2, 2])
    assert_allclose(square.detach().numpy(), 2 * x.numpy())
    assert_allclose(tanh.detach().numpy(), 1 - np.tanh(x.numpy()) ** 2)
    assert unreached is None


def test_forward_mode_sums_over_inputs() -> None:
    x, y = leaf(3), leaf(3)
    along = pg.forward_grad(x * y, [x, y])
    assert_allclose(along.detach().numpy(), x.numpy() + y.numpy())


def test_all_mixtures_of_modes_agree() -> None:
    x, w, v = leaf(3), RNG.random((3, 3)), RNG.random(3)

    def energy(x: Any) -> Any:
        return pg.sum(pg.tanh(x @ w) ** 2)

    (gradient,) = pg.autograd.grad(energy(x), x, create_graph=True)
    forward_over_reverse = pg.forward_grad(gradient, x, v)
    slope = pg.forward_grad(energy(x), x, v)
    (reverse_over_forward,) = pg.autograd.grad(slope, x)
    _, product = pg.hvp(energy, x, v)
    found = [t.detach().numpy() for t in (forward_over_reverse, reverse_over_forward, product)]
    assert_allclose(found[1], found[0], rtol=1e-10)
    assert_allclose(found[2], found[0], rtol=1e-10)
    second = pg.forward_grad(pg.forward_grad(energy(x), x, v), x, v)
    assert_allclose(second.item(), found[0] @ v, rtol=1e-10)


def test_forward_mode_by_two_reverse_passes_is_forward_mode() -> None:
    x, v = leaf(3), RNG.random(3)
    seed = pg.zeros((3,)).requires_grad_()
    (back,) = pg.autograd.grad(pg.sin(x), x, seed, create_graph=True)
    (along,) = pg.autograd.grad(back, seed, v)
    assert_allclose(along.numpy(), pg.forward_grad(pg.sin(x), x, v).detach().numpy())


def test_products_with_jacobians_and_hessians() -> None:
    x, w = leaf(3), leaf(3, 2)
    u = RNG.random(2)
    value, (by_x, by_w) = pg.vjp(lambda a, b: a @ b, (x, w), u)
    assert_allclose(value.detach().numpy(), x.numpy() @ w.numpy())
    assert_allclose(by_x.detach().numpy(), w.numpy() @ u)
    assert_allclose(by_w.detach().numpy(), np.outer(x.numpy(), u))
    value, along = pg.jvp(lambda a: (a * a, pg.sum(a)), x)
    assert_allclose(along[0].detach().numpy(), 2 * x.numpy())
    assert along[1].item() == 3
    v = RNG.random(3)
    for product in (pg.hvp, pg.vhp):
        _, found = product(lambda a: pg.sum(a**3), x, v)
        assert_allclose(found.detach().numpy(), 6 * x.numpy() * v)


def test_strict_products_refuse_what_does_not_matter() -> None:
    x = leaf(3)
    for call in (
        lambda: pg.vjp(lambda a, b: a * a, (x, x), strict=True),
        lambda: pg.jvp(lambda a: pg.ones((2,)), x, strict=True),
        lambda: pg.hvp(lambda a, b: pg.sum(a * a), (x, x), (None, None), strict=True),
    ):
        with pytest.raises(pg.NotDifferentiable):
            call()


def test_a_tensor_passed_twice_counts_as_two_arguments() -> None:
    x = leaf(3)
    _, (left, right) = pg.vjp(lambda a, b: a * b * b, (x, x))
    assert_allclose(left.detach().numpy(), x.numpy() ** 2)
    assert_allclose(right.detach().numpy(), 2 * x.numpy() ** 2)


def test_what_a_function_finds_elsewhere_is_constant_here_and_not_outside() -> None:
    x, c = leaf(3), leaf(3)
    _, back = pg.vjp(lambda a: a * c * c, x)
    assert_allclose(back.detach().numpy(), c.numpy() ** 2)
    (outer,) = pg.autograd.grad(pg.sum(back), c)
    assert_allclose(outer.numpy(), 2 * c.numpy())


# Jacobians and Hessians.


def test_a_jacobian_has_the_axes_of_result_and_input() -> None:
    x, w = leaf(2, 3), RNG.random((3, 4))
    found = pg.jacobian(x @ w, x).detach().numpy()
    assert found.shape == (2, 4, 2, 3)
    assert_allclose(found, np.einsum("ik,lj->ijkl", np.eye(2), w))
    for mode in ("forward", "reverse"):
        assert_allclose(pg.jacobian(x @ w, x, mode=mode).detach().numpy(), found)


def test_a_jacobian_of_several_is_tuples_of_blocks() -> None:
    x, y, unused = leaf(2), leaf(3), leaf(1)
    rows = pg.jacobian([pg.sum(x * x), pg.outer(x, y)], [x, y, unused])
    assert [[b.shape for b in row] for row in rows] == [
        [(2,), (3,), (1,)],
        [(2, 3, 2), (2, 3, 3), (2, 3, 1)],
    ]
    assert_allclose(rows[0][0].detach().numpy(), 2 * x.numpy())
    assert_array_equal(rows[0][1].detach().numpy(), np.zeros(3))
    assert_array_equal(rows[1][2].detach().numpy(), np.zeros((2, 3, 1)))


def test_jacobians_of_independent_samples_keep_their_axes_in_order() -> None:
    x, c = leaf(4, 2), np.array([1.0, 2.0, 3.0])
    found = pg.batched_jacobian(x[:, :, None] * c, x).detach().numpy()
    expected = np.einsum("pr,q->pqr", np.eye(2), c)
    assert_array_equal(found, np.broadcast_to(expected, (4, 2, 3, 2)))


def test_jacobians_of_independent_samples_take_functions() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 3)), pg.tensor(rng.standard_normal((3, 2)), requires_grad=True)
    expected = (1 - np.tanh(x @ w.numpy()) ** 2)[:, :, None] * w.numpy().T
    constant = w.detach()
    found = pg.batched_jacobian(lambda x: pg.tanh(x @ constant), x)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    slopes = pg.batched_jacobian(lambda x: pg.tanh(x @ w), pg.tensor(x))
    np.testing.assert_allclose(slopes, expected, rtol=1e-12)
    slopes.sum().backward()
    assert w.grad is not None
    pair = pg.batched_jacobian(lambda x, y: (x * y, x + y), [x, x])
    assert [[block.shape for block in row] for row in pair] == [[(4, 3, 3)] * 2] * 2
    compiled = pg.jit(lambda x: pg.batched_jacobian(lambda x: pg.tanh(x @ constant), x))
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-12)
    with pytest.raises(pg.MixedSamplesError):
        pg.batched_jacobian(lambda x: x - pg.mean(x, 0), x)


def test_samples_that_mix_are_refused() -> None:
    x = leaf(3, 3)
    with pytest.raises(pg.MixedSamplesError, match="samples may mix"):
        pg.batched_jacobian(x @ x, x).numpy()


def test_hessians_of_one_and_of_several_inputs() -> None:
    x, y = leaf(2), leaf(2)
    ((xx, xy), (yx, yy)) = pg.hessian(pg.sum(x * x * y), [x, y])
    assert_allclose(xx.detach().numpy(), np.diag(2 * y.numpy()))
    assert_allclose(xy.detach().numpy(), np.diag(2 * x.numpy()))
    assert_allclose(yx.detach().numpy(), np.diag(2 * x.numpy()))
    assert_array_equal(yy.detach().numpy(), np.zeros((2, 2)))
    with pytest.raises(pg.NotScalarError):
        pg.hessian(x * x, x)


def test_known_hessians() -> None:
    x = pg.tensor([[1.0, 2.0], [2.0, 1.0]], requires_grad=True)
    eye = np.eye(2)
    found = pg.hessian(pg.sum(x @ x.T), x).detach().numpy().reshape(4, 4)
    assert_allclose(found, 2 * np.block([[eye, eye], [eye, eye]]))
    found = pg.hessian(pg.sum(x @ x), x).detach().numpy().reshape(4, 4)
    assert_allclose(found, [[2, 1, 1, 0], [1, 0, 2, 1], [1, 2, 0, 1], [0, 1, 1, 2]])
    found = pg.hessian(pg.sum(x * x), x).detach().numpy().reshape(4, 4)
    assert_allclose(found, 2 * np.eye(4))


def test_jacobians_and_hessians_can_be_differentiated_again() -> None:
    x = leaf(3)
    rows = pg.jacobian(x**4, x)
    (found,) = pg.autograd.grad(pg.sum(rows), x)
    assert_allclose(found.numpy(), 12 * x.numpy() ** 2)
    second = pg.hessian(pg.sum(x**4), x)
    (found,) = pg.autograd.grad(pg.sum(second), x)
    assert_allclose(found.numpy(), 24 * x.numpy())


def test_operators_of_second_derivatives_need_no_hessian() -> None:
    x, points = leaf(3), leaf(5, 2)
    assert_allclose(pg.laplacian(pg.sum(x**3), x).item(), np.sum(6 * x.numpy()))
    assert_allclose(pg.hessian_diagonal(pg.sum(x**3), x).detach().numpy(), 6 * x.numpy())
    assert_allclose(pg.divergence(x * x, x).item(), np.sum(2 * x.numpy()))
    found = pg.laplacian(pg.sum(points**3, axis=1), points, is_batched=True)
    assert_allclose(found.detach().numpy(), np.sum(6 * points.numpy(), axis=1))


def known_rows(x: pg.Tensor, w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The Jacobian of `tanh(x @ w)`."""
    return (1 - np.tanh(x.numpy() @ w) ** 2)[:, None] * w.T


def test_parts_of_a_jacobian_are_evaluated_where_they_are_indexed() -> None:
    x, w = leaf(4), RNG.random((4, 3))
    matrix = pg.Jacobian(lambda x: pg.tanh(x @ w), x)
    assert matrix.shape == (3, 4)
    assert (matrix.passes.reverse, matrix.passes.forward) == (0, 0)
    known = known_rows(x, w)
    for index in (
        np.s_[0],
        np.s_[-1],
        np.s_[1, 2],
        np.s_[:, 1],
        np.s_[0:2],
        np.s_[::2, 1:],
        np.s_[::-1],
        np.s_[..., 0],
        np.s_[[0, 2]],
        np.s_[:, None],
        np.s_[1:1],
        np.s_[:],
    ):
        found = matrix[index]
        assert isinstance(found, pg.Tensor)
        assert_allclose(found.detach().numpy(), known[index], rtol=1e-12)
    for wrong, kind in ((3, IndexError), ("x", TypeError)):
        with pytest.raises(kind):
            matrix[wrong]


def test_rows_of_a_jacobian_are_evaluated_once() -> None:
    x, y = leaf(2, 8), leaf(2, 8)
    matrix = pg.Jacobian(pg.multiply, (x, y), is_batched=True)
    assert matrix.shape == (2, 8, 16)
    parts = matrix[:, 0, :], matrix[:, 0:3, :], matrix[:]
    assert matrix.passes.reverse == 8
    assert matrix.passes.forward == 0
    eye = np.eye(8)
    known = np.concatenate([y.numpy()[:, :, None] * eye, x.numpy()[:, :, None] * eye], axis=2)
    for found, index in zip(parts, (np.s_[:, 0, :], np.s_[:, 0:3, :], np.s_[:]), strict=True):
        assert_array_equal(found.detach().numpy(), known[index])


def test_the_cheaper_side_of_a_jacobian_is_chosen() -> None:
    x, w = leaf(2), RNG.random((2, 9))
    matrix = pg.Jacobian(pg.tanh(x @ w), x)
    assert_allclose(matrix[:].detach().numpy(), known_rows(x, w))
    assert (matrix.passes.reverse, matrix.passes.forward) == (0, 2)


def test_known_jacobians_of_products() -> None:
    x = pg.tensor([[1.0, 2.0], [3.0, 4.0]])
    matrix = pg.Jacobian(pg.matmul, [x, x])
    known = [
        [1, 3, 0, 0, 1, 0, 2, 0],
        [2, 4, 0, 0, 0, 1, 0, 2],
        [0, 0, 1, 3, 3, 0, 4, 0],
        [0, 0, 2, 4, 0, 3, 0, 4],
    ]
    assert_array_equal(matrix[0, :].numpy(), known[0])
    assert_array_equal(matrix[:, 0].numpy(), [1, 2, 0, 0])
    assert_array_equal(matrix[:].numpy(), known)


def test_jacobians_have_blocks_and_the_axes_of_both_if_asked() -> None:
    x, y, unused = leaf(2, 3), leaf(2), leaf(1)
    matrix = pg.Jacobian([y @ x, pg.sum(x)], [x, y, unused], blocks=True, flat=False)
    assert matrix.shape == (((3, 2, 3), (3, 2), (3, 1)), ((2, 3), (2,), (1,)))
    assert_array_equal(matrix[1][0][...].detach().numpy(), np.ones((2, 3)))
    assert_array_equal(matrix[0][2][...].detach().numpy(), np.zeros((3, 1)))
    assert_allclose(matrix[0][1][:, 0].detach().numpy(), x.numpy()[0])


def test_parts_of_jacobians_can_be_differentiated_again() -> None:
    x = leaf(3)
    (found,) = pg.autograd.grad(pg.sum(pg.Jacobian(x**3, x)[1]), x)
    assert_allclose(found.numpy(), [0, 6 * x.numpy()[1], 0])


def test_parts_of_hessians_are_evaluated_where_they_are_indexed() -> None:
    x, unused = leaf(3), leaf(2)
    matrix = pg.Hessian(lambda x, y: pg.sum(x**3), [x, unused])
    known = np.zeros((5, 5))
    known[:3, :3] = np.diag(6 * x.numpy())
    assert matrix.shape == (5, 5)
    for index in (np.s_[0], np.s_[:, 1], np.s_[0:2, 1:], np.s_[:]):
        assert_allclose(matrix[index].detach().numpy(), known[index])
    assert matrix.passes.forward == 5
    points = leaf(4, 2)
    batched = pg.Hessian(lambda p: pg.sum(p**3, axis=1), points, is_batched=True)
    assert batched.shape == (4, 2, 2)
    assert_allclose(batched[:].detach().numpy(), 6 * points.numpy()[:, :, None] * np.eye(2))
    assert_allclose(batched[1, 0].detach().numpy(), [6 * points.numpy()[1, 0], 0])
    for wrong in (lambda x: x * x, lambda x: pg.sum(x * x, axis=1)):
        with pytest.raises(pg.NotScalarError):
            pg.Hessian(wrong, leaf(3, 3))
    with pytest.raises(pg.NotScalarError):
        pg.Hessian(lambda x: x * x, leaf(3, 3), is_batched=True)


def test_jacobians_refuse_what_has_no_derivatives_or_mixes() -> None:
    x = leaf(3, 3)
    with pytest.raises(pg.MixedSamplesError):
        pg.Jacobian(x @ x, x, is_batched=True)[:].numpy()
    assert pg.Jacobian(x @ x, x, is_batched=True, check=False)[:].shape == (3, 3, 3)
    with pytest.raises(pg.OptionError, match="variables of a program"):
        pg.Jacobian(x @ x, x, is_batched=True, check=False).check_independent()
    with pytest.raises(pg.NotDifferentiable, match="only floats"):
        pg.Jacobian(lambda x: x, pg.tensor([1, 2]))
    with pytest.raises(pg.NotDifferentiable, match="does not require grad"):
        pg.Jacobian(x * x, pg.tensor([1.0]))
    with pytest.raises(pg.ShapeError, match="axis 0"):
        pg.Jacobian(lambda x: pg.sum(x), x, is_batched=True)


def test_derivatives_are_checked_by_differences() -> None:
    x = leaf(3)
    pg.check_grads(lambda x: pg.sum(pg.tanh(x) ** 2), [x], order=2)

    @pg.custom_vjp
    def wrong(x: Any) -> Any:
        return x * x

    wrong.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * x,))
    with pytest.raises(pg.CheckError):
        pg.check_grads(wrong, [x])


# Managers.


def test_a_manager_attaches_records_goes_back_and_releases() -> None:
    x = pg.tensor([1.0, 3.0, 5.0])
    w = pg.tensor([[2.0], [4.0], [6.0]])
    b = pg.tensor(-1.0)
    manager = pg.GradManager()
    manager.attach([w, b])
    for seed, factor in ((None, 1.0), (2.5, 2.5)):
        manager.record()
        y = x @ w + b
        assert_array_equal(y.numpy(), [43])
        manager.backward(y, None if seed is None else [np.array([seed])])
        assert_array_equal(w.grad.numpy(), factor * np.array([[1.0], [3.0], [5.0]]))
        assert b.grad.item() == factor
        w.grad = b.grad = None
    manager.record()
    manager.release()
    with pytest.raises(pg.BuildError, match="no computation history"):
        manager.backward(y)


def test_a_manager_is_a_context() -> None:
    x = pg.tensor([1.0, 2.0])
    with pg.GradManager().attach(x) as manager:
        manager.backward(pg.sum(x * x))
    assert_array_equal(x.grad.numpy(), [2, 4])
    with manager, pytest.raises(pg.BuildError, match="already recording"):
        manager.record()


def test_nesting_decides_who_sees_whom() -> None:
    x = pg.tensor([0.3, 0.7])
    outer, inner = pg.GradManager().attach(x), pg.GradManager().attach(x)
    with outer:
        with inner:
            inner.backward(pg.cos(x))
        first, x.grad = x.grad, None
        outer.backward(first)
    assert_allclose(x.grad.numpy(), -np.cos(x.numpy()))
    x.grad = None
    with inner, outer:
        inner.backward(pg.cos(x))
        first, x.grad = x.grad, None
        outer.backward(first)
    assert x.grad is None


def test_managers_of_a_group_are_equals() -> None:
    x = pg.tensor([0.3, 0.7])
    one, two, three = (pg.GradManager().attach(x) for _ in range(3))
    with one | two | three:
        y = pg.cos(x)
        one.backward(y)
        two.backward(y)
        three.backward(y)
    assert_allclose(x.grad.numpy(), -3 * np.sin(x.numpy()))
    x.grad = None
    with one | two:
        y = pg.cos(x)
        one.backward(y)
        first, x.grad = x.grad, None
        two.backward(first)
    assert x.grad is None


def test_attaching_within_the_scope_begins_there() -> None:
    x = pg.tensor([2.0, 3.0])
    with pg.GradManager() as manager:
        before = x * x
        manager.attach(x)
        manager.backward(pg.sum(before + 5 * x))
    assert_array_equal(x.grad.numpy(), [5, 5])


def test_an_intermediate_is_attached_beside_what_it_comes_from() -> None:
    x = pg.tensor([2.0, 3.0])
    with pg.GradManager().attach(x) as manager:
        y = x * x
        manager.attach(y)
        manager.backward(pg.sum(y * y))
    assert_array_equal(y.grad.numpy(), 2 * x.numpy() ** 2)
    assert_array_equal(x.grad.numpy(), 4 * x.numpy() ** 3)


def test_managers_hold_their_tensors_weakly_and_again_and_again() -> None:
    manager, kept = pg.GradManager(), pg.tensor([1.0])
    manager.attach([kept, pg.tensor([2.0])])
    manager.attach(kept)
    gc.collect()
    assert manager.attached_tensors() == [kept] or len(manager.attached_tensors()) == 1
    for times in (1, 2, 3):
        with manager:
            manager.backward(kept * 2)
        assert_array_equal(kept.grad.numpy(), [2 * times])


def test_integers_are_not_attached() -> None:
    with pytest.raises(pg.DTypeError, match="only floats"):
        pg.GradManager().attach(pg.tensor([1, 2]))


def test_what_a_result_does_not_depend_on_keeps_its_gradient() -> None:
    x, w = pg.tensor([1.0]), pg.tensor([1.0])
    w.grad = pg.tensor([9.0])
    with pg.GradManager().attach([x, w]) as manager:
        manager.backward(x * 2)
    assert_array_equal(w.grad.numpy(), [9])
    with pg.GradManager().attach([x, w]) as manager:
        manager.backward(x * 2 + w * 0.0)
    assert_array_equal(w.grad.numpy(), [9])


def test_callbacks_of_a_manager_change_gradients_in_order() -> None:
    x = pg.tensor([1.0, 2.0])
    manager = pg.GradManager()
    manager.attach(x, callbacks=[lambda t, g: g + 1.0, lambda t, g: 10.0 * g])
    manager.attach(x, callbacks=lambda t, g: g - t)
    with manager:
        manager.backward(pg.sum(3.0 * x))
    assert_array_equal(x.grad.numpy(), [39, 38])


def test_a_manager_releases_after_an_error_too() -> None:
    x = pg.tensor([1.0, 2.0])
    manager = pg.GradManager().attach(x)
    manager.record()
    with pytest.raises(PrimgraphError):
        manager.backward(x * x, np.ones(7))
    with pytest.raises(pg.BuildError, match="no computation history"):
        manager.backward(x * x)


def test_forward_mode_by_managers_agrees_for_any_seed() -> None:
    for seed in (0.0, 1.0, 7.5):
        x = pg.tensor(RNG.random(10))
        with pg.GradManager() as outer:
            with pg.GradManager().attach(x) as inner:
                y = pg.sin(x)
                v = pg.full((10,), seed)
                outer.attach(v)
                inner.backward(y, v)
            outer.backward(x.grad)
        assert_allclose(v.grad.numpy(), np.cos(x.numpy()), rtol=1e-6)


def test_a_warning_is_an_error_nowhere_here() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x: Any = pg.tensor([1.0, 2.0])
        with pg.GradManager().attach(x) as manager:
            assert x.grad is None
            manager.backward(x * x)
        assert x.grad is not None
