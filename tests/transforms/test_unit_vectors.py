"""Products with parts that a derivative embeds in zeros, and with unit vectors of Jacobians."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.primitives.linear_algebra.products import matmul

rng = np.random.default_rng(7)


def by_differences(function, x):
    """Slopes along each coordinate, by central differences."""
    sides = [(function(x + e), function(x - e)) for e in 1e-6 * np.eye(x.size)]
    return np.stack([(above - below) / 2e-6 for above, below in sides], axis=-1)


def turned(q):
    """A product of four matrices, of which a part of a column is taken."""
    links = []
    for k in range(4):
        c, s = pg.cos(q[k]), pg.sin(q[k])
        links.append(pg.stack([pg.stack([c, -s, 0.3 * c]), pg.stack([s, c, q[k]]), np.eye(3)[2]]))
    return (links[0] @ links[1] @ links[2] @ links[3])[:2, 2]


@pytest.mark.parametrize("options", [{}, {"mode": "reverse"}, {"mode": "forward"}])
def test_jacobians_of_parts_of_products(options):
    q = rng.uniform(-1, 1, 4)
    found = pg.jit(lambda q: pg.jacobian(turned(q), q, **options))(q)
    wanted = by_differences(pg.jit(turned), q)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
    second = pg.jit(lambda q: pg.hessian(pg.sum(turned(q)), q))(q)
    gradient = pg.jit(lambda q: pg.grad(pg.sum(turned(q)), q))
    np.testing.assert_allclose(second, by_differences(gradient, q), rtol=1e-7, atol=1e-8)


def test_jacobians_of_parts_of_products_multiply_no_unit_vectors():
    kernel = pg.compile(pg.trace(lambda q: pg.jacobian(turned(q), q, mode="reverse"), pg.spec(4)))
    made = {v: e for e in kernel.graph.body for v in e.outputs}
    products = [e for e in kernel.graph.body if e.op is matmul]
    assert len(products) < 8
    assert not any(made[v].array is not None for e in products for v in e.inputs if v in made)


def test_tangents_of_joined_columns_multiply_their_own_rows():
    """The row of zeros meets no weight, whether it is infinite or not."""

    def f(t, x, w):
        return pg.forward_grad(pg.concatenate([t, x], axis=1) @ w, t)

    t, x, w = rng.normal(size=(5, 1)), rng.normal(size=(5, 2)), rng.normal(size=(3, 4))
    w[2, 1] = np.inf
    kernel = pg.compile(pg.trace(f, t, x, w))
    np.testing.assert_array_equal(kernel(t, x, w), np.tile(w[0], (5, 1)))
    assert "@" not in kernel.source
