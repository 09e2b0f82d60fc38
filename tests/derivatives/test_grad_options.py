"""The options of grad and forward_grad: what is refused, made zero, held constant or batched."""

import itertools
import time
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg

rng = np.random.default_rng(11)


def run(program, fetches, **feed):
    return pg.Executor().run(program, feed, fetches)


# Forms of arguments and results.


def test_one_input_gives_one_result_and_a_sequence_a_list():
    with pg.Program():
        x, w = pg.data("x", (3,)), pg.data("w", (3,))
        y = pg.sin(x) * w
        assert isinstance(pg.grad(y, x), pg.Variable)
        assert [type(g) for g in pg.grad(y, [x])] == [pg.Variable]
        assert len(pg.grad(y, (x, w))) == 2
        assert isinstance(pg.forward_grad(y, [x, w]), pg.Variable)
        assert len(pg.forward_grad([y], x)) == 1


def test_a_seed_may_be_none_for_some_outputs():
    at, v = rng.standard_normal(3), rng.standard_normal(3)
    with pg.Program() as program:
        x = pg.data("x", (3,))
        w = pg.data("w", (3, 3))
        g = pg.grad([pg.sin(x), x @ w], x, [None, v])
    weights = rng.standard_normal((3, 3))
    (found,) = run(program, [g], x=at, w=weights)
    np.testing.assert_allclose(found, np.cos(at) + weights @ v, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_seeds_of_another_dtype_are_cast(dtype):
    seed = np.array([1, 0, 1], dtype)
    with pg.Program() as program:
        x = pg.data("x", (3,), "float32")
        v = pg.data("v", (3,), dtype)
        found = [
            f(pg.exp(x) * pg.sum(x), x, s) for f in (pg.grad, pg.forward_grad) for s in (seed, v)
        ]
    arrays = run(program, found, x=np.float32([0, 1, 2]), v=seed)
    for value in arrays:
        assert value.dtype == np.float32
    np.testing.assert_array_equal(arrays[0], arrays[1])
    np.testing.assert_array_equal(arrays[2], arrays[3])


def test_wrong_seeds_are_refused():
    with pg.Program():
        x = pg.data("x", (2, 3))
        y = pg.sin(x)
        with pytest.raises(pg.ShapeError, match=r"shape \(3,\), but the variable is f64\[2,3\]"):
            pg.grad(y, x, np.ones(3))
        with pytest.raises(TypeError, match="2 entries for 1"):
            pg.grad(y, x, [np.ones((2, 3)), None])
        with pytest.raises(pg.DTypeError, match="complex"):
            pg.grad(y, x, np.ones((2, 3), complex))
    with pg.Program():
        other = pg.data("v", (2, 3))
    with pytest.raises(pg.BuildError, match="another program"):
        pg.grad(y, x, other)


def test_wrong_types_empty_inputs_and_other_programs_are_refused():
    with pg.Program():
        x = pg.data("x", (2,))
        y = pg.sin(x)
        for function in (pg.grad, pg.forward_grad):
            for arguments in ((1, x), (y, 1), (y, "x"), (y, [None]), (y, {x})):
                with pytest.raises(TypeError):
                    function(*arguments)
            with pytest.raises(pg.ArgumentError, match="got no inputs"):
                function(y, [])
        for constant in (1, [1], [None], "x"):
            with pytest.raises(TypeError, match="no_grad_vars"):
                pg.grad(y, x, no_grad_vars=constant)
    with pg.Program():
        z = pg.data("x", (2,))
    with pytest.raises(pg.BuildError, match="two different programs"):
        pg.grad(y, z)
    with pytest.raises(pg.BuildError, match="two different programs"):
        pg.grad(y, x, no_grad_vars=[z])


def test_strict_scalar_asks_for_seeds():
    """3x + 1 of shape (1, 2): an error without a seed, as in OneFlow and torch."""
    with pg.Program() as program:
        x = pg.data("x", (1, 2))
        y = 3 * x + 1
        with pytest.raises(pg.ShapeError, match=r"f64\[1,2\], and only one of one element"):
            pg.grad(y, x, strict_scalar=True)
        with pytest.raises(pg.ShapeError, match="needs no seed"):
            pg.grad([pg.sum(y), y], x, [None, None], strict_scalar=True)
        total = pg.grad(pg.sum(y), x, strict_scalar=True)
        seeded = pg.grad([y, pg.sum(y, keepdims=True)], x, [np.ones((1, 2)), None],
                         strict_scalar=True)  # fmt: skip
        default = pg.grad(y, x)
    found = run(program, [total, seeded, default])
    np.testing.assert_array_equal(found[0], [[3, 3]])
    np.testing.assert_array_equal(found[1], [[6, 6]])
    np.testing.assert_array_equal(found[2], [[3, 3]])


# Inputs and outputs that do not matter.


def test_an_unused_input_is_none_zero_or_an_error():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        w = pg.data("w", (2,), "float32")  # the line of w
        y = pg.sum(x * x)
        assert pg.grad(y, [x, w])[1] is None
        zeros = pg.grad(y, [x, w], materialize_grads=True)
        with pytest.raises(pg.NotDifferentiable, match=r"input 'w', f32\[2\], is used by no") as e:
            pg.grad(y, [x, w], allow_unused=False)
        assert "# the line of w" in str(e.value)
        assert str(e.value).count("comes from") + str(e.value).count("is input") == 1
        assert pg.grad(y, x, allow_unused=False).shape == (3,)
    found = run(program, zeros, x=[1.0, 2, 3])
    np.testing.assert_array_equal(found[0], [2, 4, 6])
    np.testing.assert_array_equal(found[1], np.zeros(2))
    assert found[1].dtype == np.float32


def test_an_independent_output_is_an_error_or_zero():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", ())
        with pytest.raises(pg.NotDifferentiable, match="does not depend on the inputs"):
            pg.grad(pg.sin(w), x)
        zero = pg.grad(pg.sin(w), x, materialize_grads=True)
        mixed = pg.grad([pg.sin(w), pg.sum(x)], [x, w], materialize_grads=True)
        stopped = pg.grad(pg.stop_gradient(x), x, materialize_grads=True)
        constant = pg.grad(pg.array([1.0, 2.0]), x, materialize_grads=True)
    found = run(program, [zero, *mixed, stopped, constant], x=np.ones(3), w=0.0)
    np.testing.assert_array_equal(found[0], np.zeros(3))
    np.testing.assert_array_equal(found[1], np.ones(3))
    np.testing.assert_array_equal(found[2], 1.0)
    np.testing.assert_array_equal(found[3], np.zeros(3))
    np.testing.assert_array_equal(found[4], np.zeros(3))


def test_zeros_and_errors_for_unused_inputs_exclude_each_other():
    with pg.Program():
        x = pg.data("x", (3,))
        with pytest.raises(ValueError, match="cannot both refuse"):
            pg.grad(pg.sum(x), x, allow_unused=False, materialize_grads=True)
        with pytest.raises(pg.OptionError):
            pg.grad(pg.sum(x), x, allow_unused=False, materialize_grads=True)


# Zero everywhere, though a path exists.


def nested(y, x, order, derivative):
    for _ in range(order):
        y = derivative(y, x)
    return y


FORMS = {
    "grad": pg.grad,
    "strict grad": lambda y, x: pg.grad([y], [x], allow_unused=False)[0],
    "forward_grad": pg.forward_grad,
    "mixed": lambda y, x: pg.grad(pg.forward_grad(y * 1.0, x), x),
    "jacobian": lambda y, x: pg.sum(pg.jacobian(y, x)),
    "Jacobian": lambda y, x: pg.Jacobian(y, x)[0, 0],
    "hessian": lambda y, x: pg.sum(pg.hessian(y, x)),
    "laplacian": pg.laplacian,
    "hessian_diagonal": lambda y, x: pg.sum(pg.hessian_diagonal(y, x)),
}
POLYNOMIALS = {
    "constant slope": lambda x: 3.0 * x + 1.0,
    "square": lambda x: x**2,
    "product": lambda x: x * x * x,
    "relu": lambda x: pg.relu(x),
    "of an array": lambda x: pg.sum((x * np.array([1.0, 2.0])) ** 2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_derivatives_past_the_degree_of_a_polynomial_are_zeros(form, name):
    with pg.Program() as program:
        x = pg.data("x", ())
        found = nested(POLYNOMIALS[name](x), x, 5, FORMS[form])
    assert found.shape == ()
    kernel = pg.Executor().kernel(program, [found])
    assert all(e.op.name == "full" for e in kernel.graph.body), "zeros cost nothing"
    assert run(program, [found]) == [0.0], "and need no feed"


def test_a_function_of_a_constant_derivative_remembers_what_it_was_derived_by():
    """Through operators, traced functions, products of functions, and files."""
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3,))
        second = pg.grad(pg.grad(x**2, x), x)
        joined = pg.concatenate([second * 3.0 + w, second], axis=0)
        by_x, by_w = pg.grad(pg.sum(joined**2), [x, w], allow_unused=False)
        mixed = pg.grad(pg.grad(x**2 + w**2, x), w)
        own = pg.grad(pg.grad(x * w, x), x)
        with pytest.raises(pg.NotDifferentiable, match="does not depend on the inputs"):
            pg.grad(pg.full((3,), 2.0), x)
        assert pg.grad(pg.sum(joined) + pg.sum(w), [x, pg.full((3,), 7.0)])[1] is None
        _, slope = pg.jvp(lambda a: pg.jvp(lambda b: 3.0 * b, a)[1], x, strict=True)
        again = pg.vjp(lambda a: pg.hvp(lambda b: pg.sum(b * b), a, None)[1], x, strict=True)[1]
        twice = pg.Jacobian(lambda a: pg.Jacobian(lambda b: b * w, a)[0], x)[:]
        batched = pg.grad(pg.laplacian(pg.sum(x[:, None] ** 2, axis=1), x, True), x)
    zeros = [by_x, mixed, own, slope, again, batched]
    for value in run(program, zeros, x=np.ones(3), w=np.ones(3)):
        np.testing.assert_array_equal(value, np.zeros(3))
    found = run(program, [by_w, twice], x=np.ones(3), w=np.ones(3))
    np.testing.assert_array_equal(found[0], 2 * (6 + np.ones(3)))
    np.testing.assert_array_equal(found[1], np.zeros((3, 3)))
    third = pg.trace(lambda a: nested(a**2, a, 3, pg.grad), pg.spec(3))
    np.testing.assert_array_equal(pg.interpret(third, np.ones(3))[0], np.zeros(3))
    assert "as_function_of" not in str(third), "what only derivatives see is not in a traced graph"


def test_a_derivative_that_does_not_change_survives_a_file(tmp_path):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        second = pg.grad(pg.grad(x**2, x), x)
        second.name = "second"
    pg.save(program, tmp_path / "program.pgz")
    loaded = pg.load(tmp_path / "program.pgz")
    with loaded:
        third = pg.grad(loaded.variable("second"), loaded.variable("x"))
    np.testing.assert_array_equal(run(loaded, [third]), np.zeros((1, 3)))


def test_results_that_show_what_they_depend_on_are_recorded_as_they_are():
    with pg.Program() as program:
        x, w = pg.data("x", (4, 3)), pg.data("w", (3, 2))
        loss = pg.mean(pg.tanh(x @ w) ** 2)
        pg.grad(loss, [x, w])
    assert "as_function_of" not in {e.op.name for e in program.operators()}


def test_outputs_that_no_input_reaches_among_others_are_no_error():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3,))
        (found,) = pg.grad([x * 2, w * 2], [x])
        first, second = pg.grad([w * 2, x * x, pg.sum(w)], [x, pg.ones(2)])
        assert second is None
        with pytest.raises(pg.NotDifferentiable, match="none of 1 others does"):
            pg.grad([w * 2, pg.sum(w)], [x])
    found = run(program, [found, first], x=np.ones(3), w=np.ones(3))
    np.testing.assert_array_equal(found, np.full((2, 3), 2.0))


def test_why_a_derivative_is_zero_everywhere_is_told():
    with pg.Program():
        x = pg.data("x", ())
        second = pg.grad(pg.grad(x * x, x), x)
        found = pg.explain(second, x)
    assert found.kind == "cut"
    assert "is a derivative that does not change any more" in str(found)


def test_derivatives_of_constants_with_and_without_a_path():
    with pg.Program() as program:
        x = pg.data("x", ())
        second = pg.grad(pg.grad(x * x, x), x)
        assert pg.grad([second, x], [x, second], allow_unused=True)[0] is not None
        zero = pg.grad(second, x, materialize_grads=True)
    np.testing.assert_array_equal(run(program, [second, zero], x=3.0), [2, 0])


def test_derivatives_of_a_product_with_a_constant():
    with pg.Program() as program:
        x, a = pg.data("x", ()), pg.data("a", ())
        y = x * a
        first = pg.grad(y, x)
        second = pg.grad(first, [x, a])
        third = pg.grad(second[1], x, allow_unused=False)
    found = run(program, [first, *second, third], x=0.5, a=1.0)
    np.testing.assert_array_equal(found, [1, 0, 1, 0])


def test_a_path_with_a_zero_factor_gives_zeros_and_not_none():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        g = pg.grad(pg.sum(pg.where(pg.zeros((2,)) > 1, x, 0.0)), x, allow_unused=False)
    np.testing.assert_array_equal(run(program, [g], x=np.ones(2))[0], np.zeros(2))


# Known values.


def test_float32_chain_with_an_intermediate():
    """n2 = sin n1, n3 = n2^2 at pi/2 in float32 (OneFlow)."""
    with pg.Program() as program:
        n1 = pg.data("n1", (), "float32")
        n2 = pg.sin(n1)
        found = pg.grad(n2 * n2, [n1, n2])
    d1, d2 = run(program, found, n1=np.float32(np.pi / 2))
    np.testing.assert_allclose(d1, -8.742278e-08, rtol=1e-6)
    np.testing.assert_allclose(d2, 2, rtol=1e-6)


def test_repeated_derivatives_add_where_the_user_adds_them():
    with pg.Program() as program:
        x = pg.data("x", ())
        first, again = pg.grad(x * x, x), pg.grad(x * x, x)
    np.testing.assert_array_equal(run(program, [first, first + again], x=10.0), [20, 40])


def test_gradient_of_a_combination_of_gradients():
    with pg.Program() as program:
        x, y = pg.data("x", (2, 2)), pg.data("y", (2, 2))
        zx, zy = pg.grad(x * x + x * y + y * y, [x, y])
        second = pg.grad(pg.sum(2 * zx + zy), [x, y])
    a, b = rng.random((2, 2, 2))
    found = run(program, [zx, zy, *second], x=a, y=b)
    for value, known in zip(found, (2 * a + b, a + 2 * b, 5, 4), strict=True):
        np.testing.assert_allclose(value, np.broadcast_to(known, (2, 2)), rtol=1e-6)


def test_gradients_in_two_stages():
    """Gradients to an intermediate value, and from there with those as seeds."""
    at, w = rng.standard_normal(4), rng.standard_normal((4, 4))
    with pg.Program() as program:
        x, m = pg.data("x", (4,)), pg.data("m", (4, 4))
        h = pg.tanh(x @ m)
        y = pg.sum(h * h * pg.exp(h))
        late = pg.grad(y, h)
        early = pg.grad(h, [x, m], late)
        whole = pg.grad(y, [x, m])
    found = run(program, [*early, *whole], x=at, m=w)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-12)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-12)


@pytest.mark.parametrize("function", [pg.cos, pg.sin, lambda x: 2 * x + 1])
def test_forward_mode_from_two_reverse_passes(function):
    at, v = rng.standard_normal(10), rng.standard_normal(10)
    with pg.Program() as program:
        x = pg.data("x", (10,))
        y = function(x)
        seed = pg.data("seed", (10,))
        back = pg.grad(y, x, seed)
        twice = pg.grad(back, seed, v)
        forward = pg.forward_grad(y, x, v)
    for start in (np.zeros(10), np.ones(10)):
        found = run(program, [twice, forward], x=at, seed=start)
        np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


# Batched seeds.


def test_batched_seeds_of_identity_and_sum():
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        seeds = np.arange(3.0)[:, None, None] * np.ones((2, 2))
        same = pg.grad(x, x, seeds, is_grads_batched=True)
        total = pg.grad(pg.sum(x), x, np.arange(3.0), is_grads_batched=True)
        for wrong in (np.ones((2, 2)), np.ones((2, 1))):
            with pytest.raises(pg.ShapeError, match="batched seeds"):
                pg.grad(pg.sum(x), x, wrong, is_grads_batched=True)
        with pytest.raises(pg.ShapeError, match="one leading extent"):
            pg.grad([pg.sum(x), x], x, [np.ones(3), np.ones((2, 2, 2))], is_grads_batched=True)
        for none in (None, np.array(1.0)):
            with pytest.raises(pg.ShapeError, match="leading extent"):
                pg.grad(pg.sum(x), x, none, is_grads_batched=True)
    for value in run(program, [same, total], x=rng.random((2, 2))):
        np.testing.assert_array_equal(value, seeds)


def test_batched_seeds_agree_with_one_pass_each():
    at, seeds = rng.standard_normal((3, 4)), rng.standard_normal((5, 3, 2))
    others = rng.standard_normal((5, 3))
    weights = rng.standard_normal((4, 2))
    with pg.Program() as program:
        x, w, unused = pg.data("x", (3, 4)), pg.data("w", (4, 2)), pg.data("u", (7,))
        y, z = pg.tanh(x @ w), pg.sum(x * x, axis=1)
        found = pg.grad([y, z], [x, w, unused], [seeds, others], is_grads_batched=True)
        assert found[2] is None
        size = len(pg.Executor().kernel(program, found[:2]).graph)
        ones = pg.grad([y, z], x, [seeds, None], is_grads_batched=True)
        zeros = pg.grad(y, unused, seeds, is_grads_batched=True, materialize_grads=True)
        single = [pg.grad([y, z], [x, w], [s, t]) for s, t in zip(seeds, others, strict=True)]
        same = [pg.grad([y, z], x, [s, None]) for s in seeds]
        again = pg.grad(pg.sum(found[0] * found[0]), w)
    one = len(pg.Executor().kernel(program, single[0]).graph)
    assert size <= 2 * one, "the vectors are evaluated together"
    dx, dw, zero, more, *rest = run(
        program, [*found[:2], zeros, ones, *itertools.chain(*single), *same, again], x=at, w=weights
    )
    np.testing.assert_array_equal(zero, np.zeros((5, 7)))
    for i in range(5):
        np.testing.assert_allclose(dx[i], rest[2 * i], rtol=1e-12)
        np.testing.assert_allclose(dw[i], rest[2 * i + 1], rtol=1e-12)
        np.testing.assert_allclose(more[i], rest[10 + i], rtol=1e-12)


def test_batched_seeds_of_elementwise_programs():
    at, seeds = rng.standard_normal(4), rng.standard_normal((3, 4))
    with pg.Program() as program:
        x = pg.data("x", (4,))
        one = pg.grad(pg.sin(x), x, seeds, is_grads_batched=True)
        two = pg.grad([pg.sin(x), pg.exp(x)], x, [seeds, seeds], is_grads_batched=True)
        none = pg.grad(pg.sin(x), x, np.ones((0, 4)), is_grads_batched=True)
    found = run(program, [one, two, none], x=at)
    np.testing.assert_allclose(found[0], seeds * np.cos(at), rtol=1e-12)
    np.testing.assert_allclose(found[1], seeds * (np.cos(at) + np.exp(at)), rtol=1e-12)
    assert found[2].shape == (0, 4)


# Constants by flag.


def test_the_flag_belongs_to_the_handle_and_of_an_input_to_all_handles():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        h, same = pg.sin(x), pg.sin(x)
        h.name = "h"
        assert h.stop_gradient is False
        h.stop_gradient = True
        assert h.stop_gradient is True
        assert same.stop_gradient is False
        assert program.variable("h").stop_gradient is True
        h.stop_gradient = False
        assert h.stop_gradient is False
        assert h.name == "h"
        x.stop_gradient = True
        assert program.variable("x").stop_gradient is True
        with pytest.raises(TypeError, match="True or False"):
            h.stop_gradient = 1


@pytest.mark.parametrize("how", ["flag", "detach", "no_grad_vars", "function"])
def test_paths_through_a_constant_are_cut(how):
    at = rng.standard_normal(3)
    with pg.Program() as program:
        x = pg.data("x", (3,))
        h = pg.exp(x)
        constants = None
        if how == "flag":
            h.stop_gradient = True
        elif how == "no_grad_vars":
            constants = {h}
        elif how == "detach":
            h = h.detach()
        else:
            h = pg.stop_gradient(h)
        y = pg.sum(x * h * x)
        g = pg.grad(y, x, no_grad_vars=constants)
        gg = pg.grad(pg.sum(g * g), x, no_grad_vars=constants)
    found = run(program, [y, g, gg], x=at)
    np.testing.assert_allclose(found[0], np.sum(at * np.exp(at) * at), rtol=1e-12)
    np.testing.assert_allclose(found[1], 2 * at * np.exp(at), rtol=1e-12)
    np.testing.assert_allclose(found[2], 8 * at * np.exp(at) ** 2, rtol=1e-12)


def test_the_flag_counts_from_when_it_is_set():
    with pg.Program() as program:
        x = pg.data("x", ())
        h = x * x
        before = pg.grad(h * x, x)
        h.stop_gradient = True
        during = pg.grad(h * x, x), pg.forward_grad(h * x, x)
        h.stop_gradient = False
        after = pg.grad(h * x, x)
    np.testing.assert_array_equal(run(program, [before, *during, after], x=3.0), [27, 9, 9, 27])


def test_a_flagged_input_counts_as_unused():
    with pg.Program() as program:
        x, w = pg.data("x", (2,)), pg.data("w", (2,))
        y = pg.sum(x * w)
        x.stop_gradient = True
        assert pg.grad(y, x) is None
        assert pg.grad(y, [x, w])[0] is None
        assert pg.grad([pg.sum(x), y], [x, w])[0] is None
        assert pg.grad(y, [w, x], no_grad_vars=w) == [None, None]
        assert pg.forward_grad(y, x) is None
        with pytest.raises(pg.NotDifferentiable, match="'x'"):
            pg.grad(y, [x, w], allow_unused=False)
        zero, dw = pg.grad(y, [x, w], materialize_grads=True)
        along = pg.forward_grad(y, [x, w], [np.ones(2), np.ones(2)])
        y.stop_gradient = True
        with pytest.raises(pg.NotDifferentiable, match="does not depend"):
            pg.grad(y, w)
        with pytest.raises(pg.NotDifferentiable, match="does not depend"):
            pg.grad(pg.stop_gradient(x), x)
    found = run(program, [zero, dw, along], x=[1.0, 2], w=[3.0, 4])
    np.testing.assert_array_equal(found[0], [0, 0])
    np.testing.assert_array_equal(found[1], [1, 2])
    np.testing.assert_array_equal(found[2], 3)


def test_one_part_of_a_split_is_held_constant():
    at = rng.standard_normal(4)
    with pg.Program() as program:
        x = pg.data("x", (4,))
        a, b = pg.split(x * x, 2)
        a.stop_gradient = True
        g = pg.grad(pg.sum(a * b), x)
    (found,) = run(program, [g], x=at)
    np.testing.assert_allclose(found, np.r_[0, 0, 2 * at[2:] * at[:2] ** 2], rtol=1e-12)


def test_every_derivative_honours_the_flag():
    at = rng.random(3) + 1
    with pg.Program() as program:
        x = pg.data("x", (3,))
        h = pg.log(x)
        h.stop_gradient = True
        y = pg.sum(h * x * x)
        row = pg.jacobian(y, x)
        full = pg.hessian(y, x)
        diagonal = pg.hessian_diagonal(y, x)
        trace = pg.laplacian(y, x)
        flow = pg.divergence(h * x, x)

        def inside(a):
            b = pg.log(a)
            b.stop_gradient = True
            return pg.sum(b * a * a)

        value, back = pg.vjp(inside, x)
        _, forward = pg.jvp(inside, x)
        _, product = pg.hvp(inside, x, np.ones(3))
        columns = pg.Hessian(inside, x)[:]
    found = run(
        program,
        [row, full, diagonal, trace, flow, back, forward, product, columns],
        x=at,
    )
    log = np.log(at)
    expected = [2 * log * at, np.diag(2 * log), 2 * log, np.sum(2 * log), np.sum(log)]
    expected += [2 * log * at, np.sum(2 * log * at), 2 * log, np.diag(2 * log)]
    for value, known in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-12, atol=1e-15)


def test_derivatives_of_a_flagged_program_leave_nothing_behind_that_fails():
    """What is cut off needs no rules, as it is not differentiated."""
    with pg.Program() as program:
        x = pg.data("x", (3,))
        index = pg.argmax(x)
        h = pg.sin(x) * pg.astype(index, "float64")
        h.stop_gradient = True
        g = pg.grad(pg.sum(h * x), x)
    at = np.array([0.5, 2.0, 1.0])
    np.testing.assert_allclose(run(program, [g], x=at)[0], np.sin(at), rtol=1e-12)


@pytest.mark.long
def test_deep_chains_need_no_recursion():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = x
        for _ in range(1500):
            y = pg.sin(y)
        total = pg.sum(y * x[::-1])
        g = pg.grad(total, x, no_grad_vars=[pg.sin(x)])
        value, h = pg.vjp(lambda a: pg.sum(_chain(a, 1500)), x)
    found = run(program, [g, value, h], x=[0.5, 0.25])
    assert all(np.all(np.isfinite(f)) for f in found)


def _chain(x, length):
    for _ in range(length):
        x = pg.sin(x)
    return x


def test_the_line_of_the_call_is_in_the_error():
    with pg.Program():
        x = pg.data("x", (3,))
        with pytest.raises(pg.PrimgraphError) as error:
            pg.grad(pg.sum(x), x, np.ones(2))  # here
    assert Path(__file__).name in str(error.value)
    assert "# here" in str(error.value)


def test_a_flag_holds_this_variable_and_not_another_one_that_is_equal():
    with pg.Program() as program:
        x = pg.data("x", (1,))
        before = x * x
        h = x * x
        h.stop_gradient = True
        g = pg.grad(x * x * x + h, x)
        both = pg.grad(before * h, x)
        h.stop_gradient = False
        assert not h.stop_gradient
        free = pg.grad(h, x)
    found = pg.Executor().run(program, {"x": [2.0]}, [g, both, free])
    np.testing.assert_array_equal(np.ravel(found), [12, 16, 4])


# Flags that are set after use.


def test_a_flag_that_is_set_after_use_counts_when_derivatives_are_taken():
    with pg.Program() as program:
        x = pg.data("x", ())
        a = x * x
        y = a * x
        free = pg.grad(y, x)
        a.stop_gradient = True
        held = [pg.grad(y, x), pg.forward_grad(y, x), pg.jacobian(y, x), pg.grad(a * x, x)]
        held += [pg.grad(pg.grad(y, x, materialize_grads=True) * x, x)]
        b = x * x
        equal = pg.grad(b * x, x), pg.grad(pg.grad(b * x, x), x)
        assert a.stop_gradient
        assert not b.stop_gradient
        assert pg.grad(y, [x, a])[1] is None
        a.stop_gradient = False
        again = pg.grad(y, x), pg.grad(a * x, x)
    found = run(program, [y, free, *held, *equal, *again], x=3.0)
    np.testing.assert_array_equal(found, [27, 27, 9, 9, 9, 9, 9, 27, 18, 27, 27])


def test_equal_expressions_that_nobody_flagged_are_not_silenced():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        slopes, wanted = [], []
        for k in range(1, 4):
            h = pg.exp(x)
            y = pg.sum(h * x * k)
            h.stop_gradient = True
            other = pg.exp(x)
            assert other.value is not h.value
            slopes += [pg.grad(y, x), pg.grad(pg.sum(other * x * k), x)]
            wanted += [lambda a, k=k: k * np.exp(a), lambda a, k=k: k * np.exp(a) * (1 + a)]
    at = np.array([0.5, 1.0])
    for array, known in zip(run(program, slopes, x=at), wanted, strict=True):
        np.testing.assert_allclose(array, known(at), rtol=1e-12)


def test_a_flag_holds_one_of_two_equal_variables_that_were_used_before():
    with pg.Program() as program:
        x = pg.data("x", ())
        a, b = x * x, x * x
        with_a, with_b = a * x, b * x
        a.stop_gradient = True
        slopes = pg.grad(with_b, x), pg.grad(with_a, x)
        assert not b.stop_gradient
    np.testing.assert_array_equal(run(program, slopes, x=3.0), [27, 9])


def test_a_variable_is_flagged_by_its_name_after_use(tmp_path):
    with pg.Program() as program:
        x = pg.data("x", ())
        h = x * x
        h.name = "h"
        y = h * x
        y.name = "y"
        program.variable("h").stop_gradient = True
        assert program.variable("h").stop_gradient
    pg.save(program, tmp_path / "p.pgz")
    for other in (program, program.clone(), pg.load(tmp_path / "p.pgz")):
        with other:
            slope = pg.grad(other.variable("y"), other.variable("x"))
        np.testing.assert_array_equal(run(other, [slope], x=3.0), [9])


def test_transforms_see_the_flags_of_a_traced_function():
    def function(a, b):
        h = pg.sin(a)
        y = h * a * b
        h.stop_gradient = True
        b.stop_gradient = True
        return y, h

    graph = pg.trace(function, 1.0, 1.0)
    jvp = pg.transforms.linearize(graph)
    found = pg.interpret(jvp, 2.0, 3.0, 1.0, 1.0)
    np.testing.assert_allclose(np.ravel(found), [6 * np.sin(2), np.sin(2), 3 * np.sin(2), 0])


def test_a_function_that_flags_after_use_holds_only_what_is_its_own():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        outside = pg.exp(x)

        def inside(a):
            h = pg.exp(a)
            y = pg.sum(h * a)
            h.stop_gradient = True
            return y

        value, slope = pg.vjp(inside, x)
        free = pg.grad(pg.sum(outside * x), x)
        of_value = pg.grad(value, x)
    at = np.array([0.5, 1.0])
    found = run(program, [slope, free, of_value], x=at)
    for array, known in zip(found, (1, 1 + at, 1), strict=True):
        np.testing.assert_allclose(array, np.exp(at) * known, rtol=1e-12)


def test_many_flags_take_linear_time():
    def flagged(count):
        begin = time.perf_counter()
        with pg.Program():
            x = pg.data("x", ())
            for _ in range(count):
                h = pg.exp(x)
                h * x
                h.stop_gradient = True
        return time.perf_counter() - begin

    flagged(100)
    assert min(flagged(4000) for _ in range(3)) < 25 * min(flagged(500) for _ in range(3))


def test_options_of_tensors_are_taken_and_change_nothing():
    given = {"retain_graph": False, "create_graph": False, "only_inputs": True}
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sum(x**3)
        slope = pg.grad(y, x, **given)
        second = pg.grad(pg.sum(slope), x, retain_graph=True, create_graph=True)
        again = pg.grad(y, x)
    found = pg.Executor().run(program, {"x": [1.0, 2.0, 3.0]}, [slope, second, again])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], [6.0, 12.0, 18.0])
    t = pg.tensor([1.0, 2.0], requires_grad=True)
    np.testing.assert_array_equal(pg.grad(pg.sum(t * t), t, **given)[0].numpy(), [2.0, 4.0])
    with pytest.raises(pg.OptionError, match="its inputs only"):
        pg.grad(pg.sum(t * t), t, only_inputs=False)
