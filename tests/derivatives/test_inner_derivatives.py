"""Derivatives and transforms within bodies of loops, branches and checkpoints."""

import numpy as np
import pytest

import primgraph as pg

X, W = np.array([0.5, -0.2, 0.3]), np.array([[2.0, 3.0, 1.0], [0.5, 1.5, 2.0]])


def inner(carry, row, x):
    """`carry + d/dx sum(x * x * row * carry)`, by every transform that gives that."""
    return carry + 2.0 * x * row * carry


def by_grad(carry, row, x):
    return carry + pg.grad(lambda v: pg.sum(v * v * row * carry))(x)


def by_vjp(carry, row, x):
    return carry + pg.vjp(lambda v: v * v * row * carry, x)[1]


def by_jvp(carry, row, x):
    return carry + pg.jvp(lambda v: v * v * row * carry, x)[1]


def by_jacobian(carry, row, x):
    return carry + pg.sum(pg.jacobian(lambda v: v * v * row * carry)(x), 0)


def by_vmap(carry, row, x):
    many = pg.vmap(lambda v, r: 2.0 * v * r * pg.sum(carry) / pg.sum(carry), in_axes=(0, 0))
    return carry + many(x, row) * carry


def by_variables(carry, row, x):
    return carry + pg.grad(pg.sum(x * x * row * carry), x)


def by_jit(carry, row, x):
    return pg.jit(lambda v: carry + 2.0 * v * row * carry)(x)


WAYS = [by_grad, by_vjp, by_jvp, by_jacobian, by_vmap, by_variables, by_jit]


def unrolled(x, w):
    carry = np.ones(3)
    for row in w:
        carry = inner(carry, row, x)
    return carry


def scanned(step, x, w):
    return pg.scan(lambda c, row: (step(c, row, x), None), pg.ones((3,)), w)[0]


def counted(step, x, w):
    return pg.fori_loop(0, 2, lambda i, c: step(c, w[i], x), pg.ones((3,)))


def until(step, x, w):
    state = pg.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, step(s[1], w[s[0]], x)), (0, pg.ones((3,)))
    )
    return state[1]


def checkpointed(step, x, w):
    first = pg.checkpoint(lambda c, row: step(c, row, x))(pg.ones((3,)), w[0])
    return pg.checkpoint(lambda c, row: step(c, row, x))(first, w[1])


def branched(step, x, w):
    first = pg.cond(pg.sum(w) > 0, lambda c: step(c, w[0], x), lambda c: c, pg.ones((3,)))
    return pg.cond(pg.sum(w) > 0, lambda c: step(c, w[1], x), lambda c: c, first)


BODIES = [scanned, counted, until, checkpointed, branched]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", WAYS)
def test_derivatives_in_a_body_by_what_is_around_it(body, way):
    np.testing.assert_allclose(pg.jit(lambda x, w: body(way, x, w))(X, W), unrolled(X, W))


@pytest.mark.parametrize("body", [scanned, until, checkpointed])
def test_they_are_differentiated_in_turn(body):
    def loss(x, w):
        return pg.sum(body(by_grad, x, w))

    found = pg.jit(pg.grad(loss, (0, 1)))(X, W)
    step = 1e-6
    for which, (mine, at) in enumerate(zip(found, (X, W), strict=True)):
        expected = np.zeros_like(at)
        for place in np.ndindex(at.shape):
            up, down = at.copy(), at.copy()
            up[place] += step
            down[place] -= step
            both = [(up, W), (down, W)] if which == 0 else [(X, up), (X, down)]
            expected[place] = np.subtract(*[unrolled(*b).sum() for b in both]) / (2 * step)
        np.testing.assert_allclose(mine, expected, rtol=1e-7)


def test_in_a_program_and_in_bodies_of_bodies():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (2, 3))

        def outer(carry, row):
            def again(inside, _):
                return by_grad(inside, row, x) / inside, pg.grad(lambda v: pg.sum(v * carry))(x)

            ratio, slopes = pg.scan(again, carry, length=1)
            return carry * ratio, slopes[0]

        last, slopes = pg.scan(outer, pg.ones((3,)), w)
    found = pg.Executor().run(program, {"x": X, "w": W}, [last, slopes])
    np.testing.assert_allclose(found[0], unrolled(X, W))
    np.testing.assert_allclose(found[1], [np.ones(3), inner(np.ones(3), W[0], X)])


def test_a_way_around_the_body_is_refused():
    def loss(x):
        y = pg.sin(x)

        def deeper(carry, _):
            found = pg.cond(pg.sum(x) > 0, lambda: pg.grad(pg.sum(x * y), x), lambda: x)
            return carry + found, None

        return pg.scan(deeper, x, length=2)[0]

    with pytest.raises(pg.BuildError, match="computed from it outside the body") as error:
        pg.jit(loss)(X)
    assert "pg.grad(f)(x)" in error.value.hint


def test_a_constant_around_the_body_stays_one():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        x.stop_gradient = True
        found, _ = pg.scan(
            lambda c, _: (c + pg.grad(lambda v: pg.sum(v * v))(x), None), pg.zeros((3,)), length=2
        )
    (found,) = pg.Executor().run(program, {"x": X}, [found])
    with pg.Program() as program:
        x = pg.data("x", (3,))
        x.stop_gradient = True
        outside = 2.0 * pg.grad(lambda v: pg.sum(v * v))(x)
    np.testing.assert_allclose(found, *pg.Executor().run(program, {"x": X}, [outside]))
