"""`pg.no_grad()` in programs, in traced and in compiled functions: as on tensors."""

import numpy as np
import pytest

import primgraph as pg

X = np.array([0.5, -0.2, 0.3])


def an_operator(x):
    with pg.no_grad():
        y = pg.sin(x)
    return pg.sum(x * y)


def a_chain_of_composed_operators(x):
    with pg.no_grad():
        y = pg.softmax(pg.tanh(x) * 2.0) + x[::-1]
    return pg.sum(x * y * x)


def equal_expressions_beside_it(x):
    before = pg.sin(x)
    with pg.no_grad():
        held = pg.sin(x)
    return pg.sum(x * (before + held + pg.sin(x)))


def enabled_again_within(x):
    with pg.no_grad():
        held = x * x
        with pg.enable_grad():
            follows = x * x
    return pg.sum(held * follows)


def a_decorated_function(x):
    return pg.sum(pg.no_grad()(pg.exp)(x) * x)


def until_it_is_set(x):
    pg.set_grad_enabled(False)
    y = x * x
    pg.set_grad_enabled(True)
    return pg.sum(y * x)


def a_gradient_within(x):
    with pg.no_grad():
        slope = pg.grad(lambda v: pg.sum(v**3))(x)
    return pg.sum(slope * x)


def products_and_matrices_within(x):
    with pg.no_grad():
        _, push = pg.jvp(lambda v: v**3, x)
        _, pull = pg.vjp(lambda v: v**3, x)
        whole = pg.jacobian(lambda v: v**3)(x)
        second = pg.laplacian(lambda v: pg.sum(v**3))(x)
    return pg.sum((push + pull + pg.sum(whole, 0) + second) * x)


def a_loop_within(x):
    with pg.no_grad():
        y, _ = pg.scan(lambda c, _: (c * x, None), x, length=2)
    return pg.sum(y * x)


def within_the_body_of_a_loop(x):
    def step(carry, _):
        with pg.no_grad():
            held = pg.sin(carry)
        return held * x + carry, None

    return pg.sum(pg.scan(step, x, length=3)[0])


def a_branch_and_samples_within(x):
    with pg.no_grad():
        y = pg.cond(pg.sum(x) > 0, lambda v: v * v, lambda v: v, x)
        z = pg.vmap(lambda v: v * v * v)(x)
        w = pg.checkpoint(lambda v: pg.exp(v))(x)
    return pg.sum((y + z + w) * x)


@pg.custom_vjp
def doubled(x):
    return 2.0 * x


doubled.defvjp(lambda x: (2.0 * x, None), lambda _, ct: (2.0 * ct,))


def a_custom_function_within(x):
    with pg.no_grad():
        y = doubled(x)
    return pg.sum(y * x)


LOSSES = [
    an_operator, a_chain_of_composed_operators, equal_expressions_beside_it, enabled_again_within,
    a_decorated_function, until_it_is_set, a_gradient_within, products_and_matrices_within,
    a_loop_within, within_the_body_of_a_loop, a_branch_and_samples_within,
    a_custom_function_within,
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_tensors(loss):
    x = pg.tensor(X, requires_grad=True)
    loss(x).backward()
    with pg.Program() as program:
        v = pg.data("x", (3,))
        of_variables = pg.grad(loss(v), v)
        of_function = pg.grad(loss)(v)
    found = [
        *pg.Executor().run(program, {"x": X}, [of_variables, of_function]),
        pg.jit(pg.grad(loss))(X),
        pg.compile(pg.trace(pg.grad(loss), X))(X),
        pg.grad(pg.jit(loss))(X),
    ]
    for slope in found:
        np.testing.assert_allclose(slope, x.grad.numpy())


def numpy_in_place(x):
    y = np.zeros(3)
    with pg.no_grad():
        y[:2] = x[:2] * 3.0
    return np.sum(y * x)


def test_arrays_that_are_assigned_to():
    np.testing.assert_allclose(pg.jit(pg.grad(numpy_in_place))(X), [1.5, -0.6, 0.0])


def test_a_gradient_of_variables_is_constant():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sum(x**3)
        with pg.no_grad():
            slope = pg.grad(y, x)
            along = pg.forward_grad(y, x)
        second = pg.grad(pg.sum(slope * x) + along * pg.sum(x), x)
        held = pg.sum(slope)
    with pytest.raises(pg.NotDifferentiable, match="does not depend"):
        pg.grad(held, x)
    (found,) = pg.Executor().run(program, {"x": X}, [second])
    np.testing.assert_allclose(found, 3 * X**2 + np.sum(3 * X**2))


def test_integers_and_parameters_are_left_alone():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        with pg.no_grad():
            order = pg.argsort(x)
            weight = pg.create_parameter((3,), "float64")
        slope = pg.grad(pg.sum(x[order] * weight), weight)
    assert "stop_gradient" not in str(program)
    found = pg.Executor().run(program, {"x": X}, [slope])
    np.testing.assert_allclose(*found, np.sort(X))


def test_whoever_compiles_within_leaves_derivatives_to_the_others():
    loss = pg.jit(lambda x: pg.sum(pg.softmax(x) * x))
    x = pg.tensor(X, requires_grad=True)
    with pg.no_grad():
        assert not loss(x).requires_grad
        traced = pg.trace(pg.grad(loss), X)
        inside = pg.grad(loss)(X)
    loss(x).backward()
    for slope in (x.grad.numpy(), inside, pg.compile(traced)(X)):
        s = np.exp(X) / np.sum(np.exp(X))
        np.testing.assert_allclose(slope, s * (1 + X - np.sum(s * X)))


def test_a_program_that_is_built_within():
    with pg.no_grad(), pg.Program():
        x = pg.data("x", (3,))
        y = pg.sum(x * x)
    with pytest.raises(pg.NotDifferentiable, match="does not depend"):
        pg.grad(y, x)
