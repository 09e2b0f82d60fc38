"""Mixed partial derivatives, and the biharmonic operator, as sums of derivatives on lines."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose

import primgraph as pg
from primgraph import transforms
from primgraph.derivatives import partials
from primgraph.derivatives.directions import directions_for
from primgraph.derivatives.partials import directions_of_biharmonic

RNG = np.random.default_rng(11)


def indices(size, order):
    """All multi-indices of that size and order."""
    places = combinations_with_replacement(range(size), order)
    return [tuple(chosen.count(i) for i in range(size)) for chosen in places]


def along(vectors, weights, order, monomial):
    """What the weighted derivatives of a monomial along directions are, at zero."""
    ways = math.factorial(order)
    return sum(
        w * ways * Fraction(math.prod(n**m for n, m in zip(vectors[i], monomial, strict=True)))
        for i, w in weights.items()
    )


def test_weights_are_exact_and_directions_few():
    most = {(1, 1): 2, (1, 2): 3, (2, 2): 4, (3, 3): 7, (1, 1, 1): 4, (2, 2, 2): 13, (6, 0): 1}
    asked = [[a] for a in most]
    asked += [[(2, 0), (1, 1), (0, 2)], indices(2, 6), [*indices(2, 3), *indices(2, 1)]]
    asked += [indices(3, 3), [(1,) * 6], [(0, 0), (1, 0)], [(4, 0), (2, 2), (0, 4)]]
    for wanted in asked:
        plan = directions_for(wanted)
        limit = most.get(wanted[0]) if len(wanted) == 1 else None
        assert len(plan.vectors) <= (limit or max(len(indices(len(wanted[0]), 6)), 1))
        for a, weights in zip(wanted, plan.weights, strict=True):
            for monomial in indices(len(a), sum(a)) if sum(a) and len(a) < 6 else ():
                exact = math.prod(map(math.factorial, a)) if monomial == a else 0
                assert along(plan.vectors, weights, sum(a), monomial) == exact
    assert len(directions_for(indices(2, 6)).vectors) == 7
    assert len(directions_for([(2, 0), (1, 1), (0, 2)]).vectors) == 3


@pytest.mark.parametrize("size", range(1, 7))
def test_fourth_powers_of_directions_add_up_to_that_of_the_length(size):
    points = RNG.normal(size=(20, size))
    total = sum(
        sign * ((points @ vectors.T) ** 4).sum(1)
        for vectors, sign in directions_of_biharmonic(size)
    )
    assert_allclose(total, (points**2).sum(1) ** 2, rtol=1e-12)


INNER, OUTER = RNG.normal(size=(3, 5)), RNG.normal(size=5)


def field(v):
    """A small network, with a root and a power."""
    hidden = pg.tanh(v @ INNER[: v.shape[-1]]) + pg.sqrt(
        2.0 + pg.sum(v * v, axis=-1, keepdims=True)
    )
    return (hidden**1.5) @ OUTER if v.shape[-1] < 3 else pg.sin(hidden) @ OUTER


def nested(u, x, a):
    """The same derivative by forward mode over forward mode."""
    for i, times in enumerate(a):
        unit = np.zeros(x.shape)
        unit[..., i] = 1.0
        for _ in range(times):
            u = pg.forward_grad(u, x, unit)
    return u


@pytest.mark.parametrize("is_batched", [False, True])
@pytest.mark.parametrize(
    "asked", [[(2, 0), (1, 2), (0, 0), (0, 1)], [(3, 3)], [(1, 1, 1), (2, 0, 1), (0, 2, 2)]]
)
def test_partials_are_those_of_nested_forward_mode(asked, is_batched):
    size = len(asked[0])
    shape = (4, size) if is_batched else (size,)
    with pg.Program() as program:
        x = pg.data("x", shape)
        u = field(x)
        found = pg.partials(u, x, asked, is_batched)
        expected = [nested(u, x, a) for a in asked]
    assert [f.type for f in found] == [u.type] * len(asked)
    feed = {"x": RNG.normal(size=shape)}
    results = pg.Executor().run(program, feed, [*found, *expected])
    for ours, theirs in zip(results, results[len(asked) :], strict=False):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_biharmonic_is_the_laplacian_of_the_laplacian(size):
    weights = RNG.normal(size=(size, 3))

    def wave(v):
        return pg.sum(pg.sin(v @ weights), axis=-1) * pg.exp(-0.1 * pg.sum(v * v, axis=-1))

    with pg.Program() as program:
        x = pg.data("x", (3, size))
        found = pg.biharmonic(wave(x), x, True)
        twice = pg.laplacian(pg.laplacian(wave(x), x, True), x, True)
    ours, theirs = pg.Executor().run(program, {"x": RNG.normal(size=(3, size))}, [found, twice])
    assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_operators_take_functions_and_tensors_and_give_what_can_be_differentiated():
    def f(v):
        return pg.sin(v[0]) * pg.exp(2 * v[1])

    at = np.array([0.3, 0.7])
    exact = 4 * math.cos(0.3) * math.exp(1.4)
    (found,) = pg.partials(f, at, [(1, 2)])
    assert_allclose(found, exact, rtol=1e-13)
    assert_allclose(pg.biharmonic(f)(at), 9 * f(at), rtol=1e-12)
    x = pg.tensor(at, requires_grad=True)
    first, same = pg.partials(f(x), x, [(1, 2), (0, 0)])
    assert_allclose([first.item(), same.item()], [exact, f(at)], rtol=1e-13)
    first.backward()
    assert_allclose(x.grad.numpy(), [-exact * math.tan(0.3), 2 * exact], rtol=1e-12)
    single = pg.tensor(at.astype(np.float32), requires_grad=True)
    (found,) = pg.partials(f(single), single, [(1, 2)])
    assert found.dtype == np.float32
    assert_allclose(found.item(), exact, rtol=1e-4)
    samples = RNG.normal(size=(3, 2))
    rows = pg.vmap(lambda v: pg.partials(f, v, [(1, 1)])[0])(samples)
    assert_allclose(rows, 2 * np.cos(samples[:, 0]) * np.exp(2 * samples[:, 1]), rtol=1e-12)


def test_sizes_of_batches_need_not_be_known(tmp_path):
    def f(v):
        u = field(v)
        return pg.partials(u, v, [(1, 2)], True)[0] + pg.biharmonic(u, v, True)

    kernel = pg.compile(pg.trace(f, pg.spec(("B", 2))))
    for count in (1, 3):
        x = RNG.normal(size=(count, 2))
        alone = [pg.partials(field, row, [(1, 2)])[0] + pg.biharmonic(field, row) for row in x]
        assert_allclose(kernel(x), alone, rtol=1e-11)


def test_elements_that_nothing_leads_to_stay_zero_beside_infinite_slopes():
    def f(v):
        return pg.sqrt(v[0]) + v[1] ** 3

    with np.errstate(all="ignore"):
        found = pg.partials(f, np.array([0.0, 2.0]), [(0, 2), (0, 3), (1, 0)])
    assert [float(d) for d in found] == [12.0, 6.0, math.inf]


def some(v):
    return pg.sin(v[..., 0]) * pg.exp(2.0 * v[..., 3])


MIXED = np.array([[0.5, 1.0], [1.0, 0.5], [2.0, 1.0]])
INDEPENDENT = (
    (some, (4,), False),
    (some, (60, 4), True),
    (lambda v: pg.sum(pg.tanh(v[1:] @ MIXED)), (4,), False),
)


@pytest.mark.parametrize(("u", "shape", "is_batched"), INDEPENDENT)
def test_what_does_not_depend_on_an_element_has_zeros_without_work(u, shape, is_batched):
    def asked(x):
        return pg.partials(u(x), x, [(1, 1, 0, 1), (2, 0, 1, 0)], is_batched)

    graph = transforms.clean_up(transforms.lower(pg.trace(asked, pg.spec(shape))))
    assert {e.op.name for e in graph.body} == {"full"}
    for found in pg.compile(graph)(np.ones(shape)):
        np.testing.assert_array_equal(found, np.zeros(found.shape))


def test_the_biharmonic_goes_along_what_matters():
    def directions(u):
        graph = pg.trace(lambda x: pg.biharmonic(u(x), x), pg.spec(5))
        at = np.array([0.5, 0.0, 0.0, 0.0, 0.0])
        return pg.cost(pg.compile(graph)).flops, pg.compile(graph)(at)

    few, found = directions(some)
    assert_allclose(found, 9 * np.sin(0.5), rtol=1e-12)
    many, _ = directions(lambda v: some(v) + pg.sum(v) ** 4)
    assert few < many / 4
    assert pg.biharmonic(lambda v: pg.sum(v[1:1]), np.ones(3)) == 0.0
    # Of samples of which it is not known how many there are, the same.
    program = pg.trace(lambda x: pg.biharmonic(some(x), x, True), pg.spec(("N", 5)))
    at = np.array([[0.5, 9.0, 9.0, 0.0, 9.0]])
    assert_allclose(pg.compile(program)(at), 9 * np.sin([0.5]), rtol=1e-12)


MIXED_ORDERS = [[(1, 1)], [(2, 1), (1, 1), (0, 4)], [(2, 2)], [(3, 1), (0, 0)]]


@pytest.mark.parametrize("is_batched", [False, True])
@pytest.mark.parametrize("orders", MIXED_ORDERS)
def test_along_axes_and_along_directions_partials_are_the_same(orders, is_batched, monkeypatch):
    at = np.array([[0.3, 0.7], [1.1, -0.4]]) if is_batched else np.array([0.3, 0.7])

    def found():
        function = pg.jit(lambda v: pg.partials(field(v), v, orders, is_batched))
        return function(at)

    along_axes = found()
    monkeypatch.setattr(partials, "_MOST_PRODUCTS", 0)
    for one, other in zip(along_axes, found(), strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_counts_of_equations_beside_nested_modes():
    def nested_partials(v):
        return [nested(field(v), v, a) for a in indices(2, 4)]

    def ours(v):
        return pg.partials(field(v), v, indices(2, 4))

    def twice(v):
        return pg.laplacian(pg.laplacian(field(v), v), v)

    sizes = [
        len(transforms.clean_up(transforms.lower(pg.trace(f, pg.spec((2,))))).body)
        for f in (ours, nested_partials, lambda v: pg.biharmonic(field(v), v), twice)
    ]
    assert sizes[0] < 0.5 * sizes[1]
    assert sizes[2] < 0.75 * sizes[3]


def test_mistakes_are_told():
    x = np.ones(2)
    for orders in (1, [], [1, 2], [(1.5, 0)], [(-1, 0)], [(True, 0)], [(1, 0, 0)], "ab"):
        with pytest.raises(pg.ArgumentError, match="partials"):
            pg.partials(field, x, orders)
    with pytest.raises(pg.ShapeError, match=r"shape \(d,\)"):
        pg.partials(lambda v: pg.sum(v), np.ones((2, 2)), [(1, 0)])
    with pytest.raises(pg.MixedSamplesError):
        pg.biharmonic(lambda v: pg.sum(v**2, axis=1) * pg.mean(v), np.ones((2, 2)), True)
    with pytest.raises(pg.NotScalarError):
        pg.biharmonic(lambda v: v, x)
    with pg.Program():
        n = pg.data("n", (2,), "int64")
        with pytest.raises(pg.NotDifferentiable, match="'n'"):
            pg.partials(pg.sum(n * 1.0), n, [(1, 0)])
