"""Branches and loops: meaning, derivatives, batches, code, text, and what is refused."""

import _thread
import pickle
import re
import runpy
import threading

import numpy as np
import pytest

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.verify import verify
from primgraph.transforms import batch, clean_up, linearize, lower, transpose, unzip


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


def traced(function, *arrays):
    graph = verify(pg.trace(function, *arrays))
    assert parse(str(graph), graph.constants) == graph
    assert parse(str(lower(graph)), graph.constants) == lower(graph)
    return graph


def close(found, expected, tolerance=1e-9):
    for mine, theirs in zip(found, expected, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert np.allclose(mine, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)


def listed(found):
    return list(found) if isinstance(found, list | tuple) else [found]


def in_all_ways(graph, arrays, path=None):
    """What the interpreter says, which both kernels, and a file, have to say, too."""
    expected = interpret(graph, *arrays)
    with pg.transforms.debug():
        close(interpret(verify(clean_up(lower(graph))), *arrays), expected)
        for style in ("planned", "readable"):
            kernel = pg.compile(graph, style=style).flat
            for _ in range(2):
                close(kernel(*arrays), expected)
    if path is not None:
        kernel.save(path / "k.py", force=True)
        close(listed(runpy.run_path(str(path / "k.py"))[graph.name](*arrays)), expected)
    return expected


def operators(graph):
    return [eqn.op.name for eqn in graph.body if eqn.op.has_bodies]


# The same computation with loops and branches, and without any.


def rnn(w, u, h, xs):
    def step(h, x):
        h = pg.tanh(h @ w + x @ u)
        return h, {"square": h * h}

    h, ys = pg.scan(step, h, xs)
    return pg.sum(h) + pg.sum(ys["square"] * pg.sin(ys["square"]))


def rnn_unrolled(w, u, h, xs):
    total = 0.0
    for k in range(xs.shape[0]):
        h = pg.tanh(h @ w + xs[k] @ u)
        total = total + pg.sum(h * h * pg.sin(h * h))
    return pg.sum(h) + total


def backwards(w, u, h, xs):
    def step(carry, x):
        h, n = carry
        return (h * 0.5 + x @ u, n + 1), h[0, 0] * pg.astype(n, "float64")

    (h, _), ys = pg.scan(step, (h, 0), xs, reverse=True)
    return pg.sum(h @ w) + pg.sum(ys**3)


def backwards_unrolled(w, u, h, xs):
    total, n = 0.0, 0
    for k in reversed(range(xs.shape[0])):
        total = total + (h[0, 0] * float(n)) ** 3
        h, n = h * 0.5 + xs[k] @ u, n + 1
    return pg.sum(h @ w) + total


def powers(w, u, h, xs):
    def body(i, v):
        return v @ w + pg.sin(xs[i] @ u)

    return pg.sum(pg.fori_loop(1, 3, body, h) ** 3)


def powers_unrolled(w, u, h, xs):
    for i in range(1, 3):
        h = h @ w + pg.sin(xs[i] @ u)
    return pg.sum(h**3)


def chosen(w, u, h, xs):
    def step(h, x):
        return pg.cond(pg.sum(x) > 0, lambda h: pg.tanh(h @ w), lambda h: h + x @ u, h), None

    return pg.sum(pg.scan(step, h, xs)[0] ** 2)


def chosen_unrolled(w, u, h, xs):
    for k in range(xs.shape[0]):
        h = pg.where(pg.sum(xs[k]) > 0, pg.tanh(h @ w), h + xs[k] @ u)
    return pg.sum(h**2)


def nested(w, u, h, xs):
    def inner(h, x):
        return pg.tanh(h @ w) * x[0, 0], pg.sum(h)

    def outer(i, h):
        h, ys = pg.scan(inner, h, xs)
        return h + pg.mean(ys) * pg.sum(u)

    return pg.sum(pg.fori_loop(0, 2, outer, h))


def nested_unrolled(w, u, h, xs):
    for _ in range(2):
        sums = []
        for k in range(xs.shape[0]):
            sums.append(pg.sum(h))
            h = pg.tanh(h @ w) * xs[k][0, 0]
        h = h + pg.mean(pg.stack(sums)) * pg.sum(u)
    return pg.sum(h)


def searched(w, u, h, xs):
    """Two loops that end on a value; the inner one goes on from what the outer one has."""

    def body(carry):
        h, n = carry
        h, _ = pg.while_loop(
            lambda c: c[1] < 2, lambda c: (pg.sin(c[0]) @ w + h, c[1] + 1), (h, 0), max_trips=3
        )
        return h, n + 1

    h, _ = pg.while_loop(lambda c: c[1] < 2, body, (h, 0), max_trips=4)
    return pg.sum(h * h) + pg.sum(u) * pg.sum(xs)


def searched_unrolled(w, u, h, xs):
    for _ in range(2):
        start = h
        for _ in range(2):
            h = pg.sin(h) @ w + start
    return pg.sum(h * h) + pg.sum(u) * pg.sum(xs)


def mapped(w, u, h, xs):
    return pg.sum(pg.map(lambda x: pg.sin(x @ u) @ w + h, xs) ** 2)


def mapped_unrolled(w, u, h, xs):
    return pg.sum(pg.stack([pg.sin(x @ u) @ w + h for x in xs]) ** 2)


def switched(w, u, h, xs):
    branches = [lambda h: h @ w, pg.sin, lambda h: h * pg.sum(u)]
    for k in (0, 1, 2, 5):
        h = h + pg.switch(pg.sum(xs * 0.0).astype("int64") + k, branches, h)
    return pg.sum(h) + pg.sum(xs) * 0.0


def switched_unrolled(w, u, h, xs):
    branches = [lambda h: h @ w, pg.sin, lambda h: h * pg.sum(u)]
    for k in (0, 1, 2, 2):
        h = h + branches[k](h)
    return pg.sum(h) + pg.sum(xs) * 0.0


PAIRS = {
    "rnn": (rnn, rnn_unrolled),
    "backwards": (backwards, backwards_unrolled),
    "powers": (powers, powers_unrolled),
    "chosen": (chosen, chosen_unrolled),
    "nested": (nested, nested_unrolled),
    "searched": (searched, searched_unrolled),
    "mapped": (mapped, mapped_unrolled),
    "switched": (switched, switched_unrolled),
}
ARRAYS = [numbers(2, 2), numbers(3, 2, seed=1), numbers(1, 2, seed=2), numbers(3, 1, 3, seed=3)]
every_pair = pytest.mark.parametrize("name", PAIRS)


@every_pair
def test_a_loop_is_what_its_trips_are(name, tmp_path):
    looped, unrolled = PAIRS[name]
    graph = traced(looped, *ARRAYS)
    assert graph.has_bodies
    close(in_all_ways(graph, ARRAYS, tmp_path), interpret(traced(unrolled, *ARRAYS), *ARRAYS))
    close([looped(*map(pg.tensor, ARRAYS)).numpy()], interpret(graph, *ARRAYS))


def reverse(function):
    def gradient(*arrays):
        y = function(*arrays)
        return pg.grad(y, list(arrays))

    return gradient


def forward(function):
    def slopes(*arrays):
        y = function(*arrays)
        return pg.forward_grad(y, list(arrays), [pg.sin(a + 1.0) for a in arrays])

    return slopes


def summed(function):
    """A number of all that a function gives."""

    def total(*arrays):
        found = function(*arrays)
        parts = found if isinstance(found, list | tuple) else [found]
        return sum((pg.sum(pg.sin(p)) for p in parts), start=pg.sum(arrays[0]) * 0.0)

    return total


@every_pair
@pytest.mark.parametrize("modes", ["r", "f", "rr", "fr", "rf", "ff"])
def test_derivatives_of_orders_one_and_two_are_those_of_unrolled_code(name, modes):
    """The modes are taken from the left to the right: `fr` is reverse mode over forward mode."""
    compare_derivatives(name, modes)


@pytest.mark.parametrize("modes", ["rrr", "frf"])
@pytest.mark.parametrize("name", ["rnn", "chosen", "searched"])
def test_derivatives_of_order_three_are_those_of_unrolled_code(name, modes):
    compare_derivatives(name, modes)


def compare_derivatives(name, modes):
    looped, unrolled = PAIRS[name]
    for mode in modes:
        take = reverse if mode == "r" else forward
        looped, unrolled = take(summed(looped)), take(summed(unrolled))
    graph = traced(looped, *ARRAYS)
    expected = interpret(lower(traced(unrolled, *ARRAYS)), *ARRAYS)
    close(interpret(lower(graph), *ARRAYS), expected, 1e-7)
    if len(modes) == 1 or modes == "rr":
        for style in ("planned", "readable"):
            close(pg.compile(graph, style=style).flat(*ARRAYS), expected, 1e-7)


@every_pair
def test_a_batch_is_a_loop_over_samples(name):
    looped, _ = PAIRS[name]
    graph = lower(traced(reverse(looped), *ARRAYS))
    samples = [[a * (1 - k / 8) for a in ARRAYS] for k in range(3)]
    for flags in ((0, 0, 0, 0), (None, None, 0, None), (0, None, None, None), (None, 0, None, 0)):
        many = verify(batch(graph, 3, flags))
        feeds = [
            a if flag is None else np.stack([s[i] for s in samples])
            for i, (a, flag) in enumerate(zip(ARRAYS, flags, strict=True))
        ]
        each = [
            interpret(
                graph,
                *[
                    a if f is None else s[i]
                    for i, (a, f) in enumerate(zip(ARRAYS, flags, strict=True))
                ],
            )
            for s in samples
        ]
        close(interpret(many, *feeds), [np.stack(c) for c in zip(*each, strict=True)])
        close(pg.compile(many)(*feeds), [np.stack(c) for c in zip(*each, strict=True)])


# Trips that depend on numbers.


def root(a):
    """Where x = a cos(x), by Newton's method."""

    def step(state):
        x, _ = state
        d = (x - a * pg.cos(x)) / (1.0 + a * pg.sin(x))
        return x - d, pg.abs(d)

    return pg.while_loop(lambda s: s[1] > 1e-13, step, (1.0, 1.0), max_trips=50)[0]


def test_the_derivative_of_a_solver_is_that_of_the_solution():
    a = np.array(0.7)
    x = interpret(traced(root, a), a)[0]
    slope = np.cos(x) / (1 + a * np.sin(x))
    for take in (pg.grad, pg.forward_grad):
        graph = traced(lambda a, take=take: take(root(a), a), a)
        close(in_all_ways(graph, [a]), [slope])


def test_samples_of_a_batch_make_their_own_numbers_of_trips():
    def doubled(x):
        return pg.while_loop(lambda v: v < 20.0, lambda v: v * x, x, max_trips=60)

    xs = np.array([1.5, 3.0, 30.0, 19.0])
    close([pg.vmap(doubled)(xs)], [np.array([1.5**8, 27.0, 30.0, 361.0])])
    graph = traced(lambda xs: pg.grad(pg.sum(pg.vmap(doubled)(xs)), xs), xs)
    expected = np.array([8 * 1.5**7, 27.0, 1.0, 38.0])
    close(in_all_ways(graph, [xs]), [expected])
    each = lower(traced(lambda x: pg.grad(doubled(x), x), 2.0))
    close(interpret(batch(each, 4), xs), [expected])


def test_samples_that_are_done_spoil_no_derivative():
    """What goes on without them would be the root of a negative number."""

    def shrunk(x):
        return pg.while_loop(lambda v: v > 0.3, lambda v: pg.sqrt(v - 0.3), x, max_trips=9)

    xs = np.array([0.35, 0.2, 1.5])
    each = traced(lambda x: pg.grad(shrunk(x), x), 0.4)
    expected = np.array([interpret(each, x)[0] for x in xs])
    assert np.isfinite(expected).all()
    graph = traced(lambda xs: pg.grad(pg.sum(pg.vmap(shrunk)(xs)), xs), xs)
    close(in_all_ways(graph, [xs]), [expected])


def test_a_branch_that_is_not_taken_spoils_nothing():
    def safe(x):
        return pg.cond(x > 0, pg.log, lambda x: 3.0 * x, x)

    graph = traced(lambda x: [safe(x), pg.grad(safe(x), x)], 1.0)
    close(in_all_ways(graph, [np.array(-2.0)]), [np.array(-6.0), np.array(3.0)])
    close(in_all_ways(graph, [np.array(2.0)]), [np.log(2.0), np.array(0.5)])
    xs = np.array([-1.0, 0.0, 2.0])
    many = traced(lambda xs: pg.grad(pg.sum(pg.vmap(safe)(xs)), xs), xs)
    close(in_all_ways(many, [xs]), [np.array([3.0, 3.0, 0.5])])


def safe_root(v):
    return pg.where(v > 1.01, pg.arccosh(v) * v, v)


@pytest.mark.parametrize("modes", ["r", "rr", "fr", "frr", "rfr"])
@pytest.mark.parametrize(
    "looped",
    [
        lambda x: pg.fori_loop(0, 2, lambda i, v: safe_root(v), x),
        lambda x: pg.while_loop(lambda s: s[1] < 2, lambda s: (safe_root(s[0]), s[1] + 1), (x, 0))[
            0
        ],
        lambda x: pg.cond(pg.sum(x) < 9.0, lambda: safe_root(safe_root(x)), lambda: x),
    ],
    ids=["fori", "while", "cond"],
)  # fmt: skip
def test_what_is_masked_in_a_body_spoils_no_derivative_of_any_order(looped, modes):
    """Slopes that a mask throws away are kept for the way back, and may be NaN."""
    x, plain = np.array([0.3, 1.5]), lambda x: safe_root(safe_root(x))
    for mode in modes:
        take = reverse if mode == "r" else forward
        looped, plain = take(summed(looped)), take(summed(plain))
    expected = interpret(lower(traced(plain, x)), x)
    assert np.isfinite(expected).all()
    graph = lower(traced(looped, x))
    close(interpret(graph, x), expected)
    close(pg.compile(graph)(x), expected)


def test_bounds_may_be_variables():
    def total(a, n):
        return pg.fori_loop(1, n, lambda i, v: v * a + pg.astype(i, "float64"), 0.5, max_trips=9)

    graph = traced(lambda a, n: [total(a, n), pg.grad(total(a, n), a)], 1.0, 3)
    for n, value, slope in ((1, 0.5, 0.0), (-4, 0.5, 0.0), (3, 0.5 * 4 + 4.0, 2.0 + 1.0)):
        close(in_all_ways(graph, [np.array(2.0), np.array(n)]), [np.array(value), np.array(slope)])


def test_no_trips_leave_what_was_there():
    def loop(x, xs):
        carry, ys = pg.scan(lambda c, y: (c * y, pg.sin(c)), x, xs)
        done = pg.while_loop(lambda v: v < 0.0, lambda v: v * v, x, max_trips=5)
        return carry, ys, pg.fori_loop(3, 1, lambda i, v: v * v, x), done

    def slope(x, xs):
        carry, ys, *others = loop(x, xs)
        return pg.grad(carry * 2.0 + pg.sum(ys) + sum(others), [x, xs])

    arrays = [np.array(3.0), np.zeros((0,))]
    found = in_all_ways(traced(lambda *a: list(loop(*a)), *arrays), arrays)
    close(found, [np.array(3.0), np.zeros(0), np.array(3.0), np.array(3.0)])
    close(in_all_ways(traced(slope, *arrays), arrays), [np.array(4.0), np.zeros(0)])


def test_a_carry_that_a_trip_forgets_has_a_derivative_without_trips():
    def forgotten(x, n):
        return pg.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 0.0 + 2.0, s[1] + 1), (x, 0))[0]

    def replaced(x, n):
        two = pg.asarray(2.0)
        return pg.while_loop(lambda s: s[1] < n, lambda s: (two, s[1] + 1), (x, 0), max_trips=3)[0]

    for function, takes in (
        (forgotten, [pg.forward_grad]),
        (replaced, [pg.forward_grad, pg.grad]),
    ):
        for take in takes:
            graph = traced(lambda x, n, f=function, take=take: take(f(x, n), x), 1.5, 0)
            for n, slope in ((0, 1.0), (1, 0.0), (3, 0.0)):
                close(in_all_ways(graph, [np.array(1.5), np.array(n)]), [np.array(slope)])


def floored(x):
    """Without a slope, in either branch."""
    return pg.cond(x > 0, lambda: pg.floor(x), lambda: pg.stop_gradient(x))


def kinked(x):
    """With a slope that has none."""
    return pg.fori_loop(0, 2, lambda i, v: pg.abs(v) * x, x)


def kinked_within(x):
    return pg.cond(x > 0, lambda: kinked(x), lambda: pg.fori_loop(0, 2, lambda i, v: v * x, x))


@pytest.mark.parametrize(
    ("function", "derivatives"),
    [
        (floored, (0.0, 0.0)),
        (kinked, (3 * 1.5**2, 6 * 1.5)),
        (kinked_within, (3 * 1.5**2, 6 * 1.5)),
    ],
)
def test_what_has_no_slope_is_no_constant_to_reverse_mode(function, derivatives):
    x = np.array(1.5)
    y = {floored: 1.0}.get(function, 1.5**3)
    first, second = derivatives
    sine, cosine = np.sin(x), np.cos(x)

    def product(x):
        return pg.sin(x) * function(x)

    slope = traced(lambda x: pg.grad(product(x), x), x)
    close(interpret(lower(slope), x), [np.asarray(cosine * y + sine * first)])

    def bend(x):
        return pg.grad(pg.grad(product(x), x), x)

    expected = -sine * y + 2 * cosine * first + sine * second
    close(interpret(lower(traced(bend, x)), x), [np.asarray(expected)])


def test_a_branch_may_need_what_depends_on_constants_only():
    def chosen(x):
        return pg.cond(pg.sum(x) > 0, lambda: x * pg.cumsum(pg.arange(3.0) + 1.0), lambda: x)

    slope = traced(lambda x: pg.grad(chosen(x), x), numbers(3))
    for sign, expected in ((1.0, [1.0, 3.0, 6.0]), (-1.0, [1.0, 1.0, 1.0])):
        close(in_all_ways(slope, [np.full(3, sign)]), [np.array(expected)])


# What is recorded.


# How a weight and a state of matrices may be multiplied, and what the states begin with.
PRODUCTS = {
    "h @ w": (lambda h, w: h @ w, (2, 3)),
    "h @ w.T": (lambda h, w: h @ w.T, (2, 4)),
    "w @ h": (lambda h, w: w @ h, (4, 2)),
    "w.T @ h": (lambda h, w: w.T @ h, (3, 2)),
    "(w.T @ h.T).T": (lambda h, w: (w.T @ h.T).T, (2, 3)),
    "h.T @ w": (lambda h, w: h.T @ w, (3, 2)),
    "w @ h.T": (lambda h, w: w @ h.T, (2, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_weight_of_all_trips_may_stand_on_either_side_and_be_transposed(name):
    product, shape = PRODUCTS[name]
    w, h = numbers(3, 4), numbers(*shape, seed=1)
    places = product(h, w).size
    back = numbers(places, h.size, seed=2)
    xs = numbers(5, *shape, seed=3)

    def step(h, x, w):
        found = pg.reshape(pg.reshape(product(h, w), (1, places)) @ back, shape)
        return pg.tanh(found + x)

    def looped(w):
        h_end, hs = pg.scan(lambda h, x: (step(h, x, w),) * 2, h, xs)
        return pg.sum(h_end) + pg.sum(hs * hs)

    def unrolled(w):
        now, total = h, 0.0
        for x in xs:
            now = step(now, x, w)
            total = total + pg.sum(now * now)
        return pg.sum(now) + total

    slopes = [lower(pg.trace(reverse(f), w)) for f in (looped, unrolled)]
    assert slopes[0].has_bodies
    close(interpret(slopes[0], w), interpret(slopes[1], w))
    if "h.T" not in name:
        # One product after the loop adds up those of all trips, of stacks that are there anyway.
        back_loop = [e for e in clean_up(slopes[0]).body if e.op.has_bodies][-1]
        names = [e.op.name for e in back_loop.kwargs["body"].body]
        assert names.count("matmul") == 2  # those of the trip itself


def test_equations_of_derivatives_do_not_grow_with_trips():
    def bodies(length, function):
        graph = clean_up(lower(traced(function, *ARRAYS[:3], numbers(length, 1, 3))))
        return [len(b.body) for e in graph.body for b in e.bodies], len(graph.body)

    for function in (rnn, reverse(rnn), reverse(summed(reverse(rnn)))):
        assert bodies(2, function) == bodies(500, function)


def test_the_loop_is_there_once_for_value_and_gradient():
    def both(*arrays):
        y = rnn(*arrays)
        return [y, *pg.grad(y, list(arrays))]

    graph = clean_up(lower(traced(both, *ARRAYS)))
    assert operators(graph) == ["scan", "scan"]
    tangents = clean_up(lower(traced(forward(rnn), *ARRAYS)))
    assert operators(tangents) == ["scan"]


def test_loops_that_take_results_of_joined_loops_are_joined():
    def pair(x, y, trips):
        one = pg.fori_loop(0, trips, lambda i, v: pg.sin(v) * y, x)
        body = lambda i, s: (pg.sin(s[0]) * y, s[1] + s[0])  # noqa: E731
        return one, pg.fori_loop(0, trips, body, (x, x))[1]

    def chain(x):
        a, b = pair(x, x, 3)
        return a, b, *pair(x, a, 4)

    graph = traced(chain, 0.7)
    joined = verify(clean_up(lower(graph)))
    assert operators(joined) == ["scan", "scan"]
    close(interpret(joined, 0.7), interpret(graph, 0.7))


def test_a_loop_joins_one_that_takes_views_of_its_constants():
    def gradient(p, u, v):
        def step(carry, _):
            u, v = carry
            return (u - u * v + p[0] * (1 - u), v + u * v - (p[0] + p[1]) * v), None

        value = pg.sum(pg.scan(step, (u, v), None, length=3)[0][0] ** 2)
        return value, pg.grad(value, p)

    arrays = [numbers(2), numbers(4), numbers(4)]
    graph = traced(gradient, *arrays)
    assert operators(verify(clean_up(lower(graph), last=True))) == ["scan", "scan"]
    in_all_ways(graph, arrays)


def test_a_while_loop_keeps_views_of_constants_that_its_test_reads():
    def both(p):
        ahead = p[:1] + p[1:]
        sums = pg.while_loop(lambda c: c < ahead[0], lambda c: c + ahead[0] * 0.3, p[0] * 0.0)
        again = pg.while_loop(lambda c: c < pg.sum(ahead), lambda c: c + ahead[0] * 0.3, p[0] * 0.0)
        return sums, again

    in_all_ways(traced(both, np.array([0.5, 0.7])), [np.array([0.5, 0.7])])


def test_equal_loops_are_joined_before_looser_rules_change_them():
    def gradient(w, xs):
        def step(c, x):
            gates = pg.split(x @ w[:2] + c @ w[2:], 2, axis=1)
            c = c * (1 / (1 + pg.exp(-gates[0]))) + pg.tanh(gates[1])
            return c, c

        value = pg.mean(pg.scan(step, pg.zeros((3, 2)), xs)[1] ** 2)
        return value, pg.grad(value, w)

    arrays = [numbers(4, 4), numbers(5, 3, 2)]
    graph = pg.trace(gradient, *arrays)
    for math in ("exact", "signs", "finite", "fast"):
        kernel = pg.compile(graph, math=math)
        assert operators(kernel.graph) == ["scan", "scan"]
        close(kernel.flat(*arrays), interpret(graph, *arrays))


def test_what_is_scanned_and_what_no_trip_changes_is_not_kept():
    def gradient(w, xs):
        step = lambda c, x: (c + x * pg.exp(w) * x, None)  # noqa: E731
        return pg.grad(pg.scan(step, w * 0.0, xs)[0], w)

    w, xs = np.array(0.5), numbers(7)
    graph = clean_up(lower(traced(gradient, w, xs)))
    (eqn,) = [e for e in graph.body if e.op.has_bodies]
    assert not any(v.shape == (7,) for v in eqn.outputs)
    assert "exp" not in {e.op.name for e in eqn.bodies[0].body}
    close(interpret(graph, w, xs), [np.sum(xs * xs) * np.exp(0.5)])


def test_what_is_not_used_falls_away():
    def loop(x, y, z):
        def step(carry, row):
            a, b, c = carry
            return (a + row, b * z, c), (a, b)

        (a, _, c), (ys, _) = pg.scan(step, (x, y, z), pg.stack([x, y]))
        return a + c, ys

    graph = clean_up(lower(traced(loop, *np.arange(1.0, 4.0))))
    (eqn,) = [e for e in graph.body if e.op.has_bodies]
    assert len(eqn.outputs) == 2
    assert eqn.kwargs["carries"] == 1
    assert eqn.kwargs["consts"] == 0
    close(interpret(graph, 1.0, 2.0, 3.0), [np.array(7.0), np.array([1.0, 2.0])])


def test_a_branch_of_a_known_number_takes_the_place_of_its_equation():
    graph = traced(lambda x: pg.cond(pg.any(pg.ones(2) > 0), pg.sin, pg.cos, x), 1.0)
    assert operators(graph) == ["cond"]
    assert [e.op.name for e in clean_up(lower(graph)).body] == ["sin"]


def test_equal_loops_are_one():
    def twice(x):
        a = pg.fori_loop(0, 3, lambda i, v: pg.sin(v), x)
        b = pg.fori_loop(0, 3, lambda j, u: pg.sin(u), x)
        return a + b

    assert operators(pg.compile(traced(twice, 1.0)).graph) == ["scan"]


def test_a_graph_with_loops_is_pickled_and_saved(tmp_path):
    graph = lower(traced(reverse(nested), *ARRAYS))
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert hash(pickle.loads(pickle.dumps(graph))) == hash(graph)
    kernel = pickle.loads(pickle.dumps(pg.compile(graph)))
    close(kernel(*ARRAYS), interpret(graph, *ARRAYS))
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.scan(lambda c, v: (c * 0.5 + v, pg.exp(c)), 0.0, x)[1]
        y.name = "y"
    pg.save(program, tmp_path / "program.npz")
    again = pg.load(tmp_path / "program.npz")
    feed = {"x": np.arange(3.0)}
    close(pg.Executor().run(again, feed, ["y"]), pg.Executor().run(program, feed, [y]))


def test_text_with_faults_in_a_body_is_refused_with_its_line():
    text = str(traced(rnn, *ARRAYS))
    with pytest.raises(pg.LoadError, match=r"line 4, column .*used before it is bound"):
        parse(text.replace("matmul(%xs, %u)", "matmul(%zs, %u)"))
    with pytest.raises(pg.LoadError, match="the body takes"):
        parse(text.replace("carries=1", "carries=2"))
    with pytest.raises(pg.LoadError, match="scan: f64"):
        parse(text.replace("length=3", "length=4"))


def test_transposition_takes_loops_apart():
    graph = linearize(lower(traced(rnn, *ARRAYS)))
    tangents = graph.with_outputs(graph.outputs[1:])
    turned = verify(transpose(tangents, range(4, 8)))
    directions = [numbers(*a.shape, seed=9) for a in ARRAYS]
    (along,) = interpret(tangents, *ARRAYS, *directions)
    back = interpret(turned, *ARRAYS, np.array(1.0))
    dot = sum(np.sum(a * b) for a, b in zip(back, directions, strict=True))
    close([np.array(dot)], [along])
    primal, linear = unzip(graph, range(4, 8))
    y, *kept = interpret(verify(primal), *ARRAYS)
    close(
        [y, *interpret(verify(linear), *kept, *directions)], interpret(graph, *ARRAYS, *directions)
    )


def test_readable_code_is_a_loop_as_one_writes_it():
    def smooth(w, xs):
        def step(h, x):
            return pg.tanh(h * w + x), h

        return pg.scan(step, pg.zeros(()), xs)

    source = pg.compile(traced(smooth, 0.5, numbers(4))).source
    lines = [line.strip() for line in source.splitlines() if not line.strip().startswith("#")]
    assert "for k in range(4):" in lines
    assert "v0 = np.tanh(v0 * w + xs[k])" in lines
    assert "stack0[k] = v0" in lines


# In programs, layers, with tensors, under jit.


@pytest.mark.parametrize("choose", [lambda f: pg.cond(True, f, f), lambda f: pg.switch(0, [f])])
def test_equal_results_of_a_branch_that_is_known_are_told_apart_in_bodies(choose):
    with pg.Program() as program:
        x, y = pg.data("x", (3,)), pg.data("y", (3,))

        def trip(i, c):
            around, one, other = choose(lambda: (x, c, c))
            return c + pg.grad(pg.sum(around * 7.0 + one * 3.0 + other * 5.0), one)

        found = pg.fori_loop(0, 2, trip, y)
    feeds = {"x": numbers(3), "y": np.zeros(3)}
    assert pg.Executor().run(program, feeds, [found])[0].tolist() == [6.0] * 3


def test_bodies_use_what_is_around_them():
    weight = pg.nn.Linear(2, 2)
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = pg.fori_loop(0, 3, lambda i, v: pg.tanh(weight(v)) + x, x)
        loss = pg.sum(y * y)
        gradient = pg.grad(loss, x)
    assert "scan" in str(program)
    feed = {"x": np.array([0.3, -0.2])}

    def unrolled(v):
        x = v
        for _ in range(3):
            v = pg.tanh(weight(v)) + x
        return pg.sum(v * v)

    t = pg.tensor(feed["x"], requires_grad=True)
    unrolled(t).backward()
    found = pg.Executor().run(program, feed, [loss, gradient])
    close(found, [unrolled(t).numpy(), t.grad.numpy()])


def test_weights_of_layers_in_loops_are_trained():
    layer = pg.nn.Linear(2, 2)

    def loss(x):
        return pg.sum(pg.scan(lambda h, _: (pg.tanh(layer(h)), None), x, length=4)[0] ** 2)

    x = np.array([0.5, -1.0])
    jitted = pg.jit(loss)
    for function in (loss, jitted):
        layer.zero_grad()
        function(pg.tensor(x)).backward()
        found = [p.grad.numpy() for p in layer.parameters()]
        if function is loss:
            expected = found
    assert any(np.any(e) for e in expected)
    close(found, expected)


def test_tensors_go_through_loops_by_python():
    x = pg.tensor([1.0, 2.0], requires_grad=True)
    y, ys = pg.scan(lambda c, v: (c * v, {"s": c + v}), x, pg.tensor([[2.0, 3.0], [4.0, 5.0]]))
    (pg.sum(y) + pg.sum(ys["s"])).backward()
    close([y.numpy(), x.grad.numpy()], [np.array([8.0, 30.0]), np.array([11.0, 19.0])])
    seen = []
    pg.cond(True, lambda: seen.append(1) or 1.0, lambda: seen.append(2) or 2.0)
    assert seen == [1]
    assert pg.while_loop(lambda v: v < 9, lambda v: v * 2, np.array(1)) == 16
    assert pg.switch(7, [lambda v: v, lambda v: -v], np.array(2.0)) == -2.0
    assert pg.fori_loop(0, np.array(3), lambda i, v: v + i, np.array(0)) == 3


def test_derivatives_are_taken_within_loops():
    def descend(x):
        def loss(v):
            return pg.sum((v - 1.0) ** 4)

        return pg.fori_loop(0, 3, lambda i, v: v - 0.1 * pg.grad(loss(v), v), x)

    x, expected = np.array([2.0, 0.0]), np.array([2.0, 0.0])
    for _ in range(3):
        expected = expected - 0.4 * (expected - 1.0) ** 3
    close(in_all_ways(traced(descend, x), [x]), [expected])


def test_errors_in_a_trip_name_the_line_in_the_body():
    def loop(xs, i):
        def look(carry, k):
            return carry + xs[k], None

        return pg.scan(look, 0.0, i)[0]

    for style in ("planned", "readable"):
        kernel = pg.compile(traced(loop, numbers(3), np.array([0, 1])), style=style)
        with pytest.raises(pg.RunError, match=r"return carry \+ xs\[k\], None"):
            kernel(numbers(3), np.array([0, 7]))
        close([kernel(np.ones(3), np.array([0, 2]))], [np.array(2.0)])


def test_readable_code_names_the_equation_of_a_body_that_failed():
    """In checkpoints, which have no block of their own, in stacks, and in bodies of bodies."""

    def look(xs, k):
        return pg.take(xs, pg.astype(k, "int64")) * 2.0

    def kept(x):
        return pg.checkpoint(lambda v: look(v, pg.sum(v)))(x)

    def stacked(x):
        return pg.scan(lambda c, row: (c + 1.0, look(x, c + 2.0)), 0.0, x)[1]

    def nested(x):
        return pg.fori_loop(
            0, 2, lambda i, c: pg.cond(x[0] > 0, lambda: look(x, c), lambda: c), pg.sum(x)
        )

    for function in (kept, stacked, nested):
        kernel = pg.compile(traced(function, numbers(3)), style="readable")
        with pytest.raises(pg.RunError, match=r"gather.* failed") as caught:
            kernel(np.ones(3))
        assert "pg.take(xs" in str(caught.value)


def test_numbers_of_python_take_the_dtype_of_what_is_beside_them():
    def results(x):
        return [
            pg.cond(x > 0, lambda: x, lambda: 0),
            pg.cond(x > 0, lambda: 0.5, lambda: 2),
            pg.fori_loop(0, 2, lambda i, v: v + x, 0),
        ]

    expected = [np.array(0.0), np.array(2.0), np.array(-3.0)]
    close(interpret(traced(results, 1.0), np.array(-1.5)), expected)


# What is refused.


def refusal(function, *arrays):
    with pytest.raises(pg.PrimgraphError) as caught:
        pg.trace(function, *arrays)
    assert "test_loops.py" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: pg.scan(
                lambda c, _: ({"h": pg.astype(c["h"], "f4")}, None), {"h": x}, length=2
            ),
            r"scan: body returned f32\[3\] at \['h'\], but init is f64\[3\] there"
            r"[\s\S]*write pg.astype\(x, 'float64'\) for it",
        ),
        (
            lambda x: pg.scan(lambda c, _: (c[:2], None), x, length=2),
            r"returned f64\[2\], but init is f64\[3\]",
        ),
        (
            lambda x: pg.scan(lambda c, _: ((c, c), None), x, length=2),
            r"returned \(f64\[3\], f64\[3\]\), but init is f64\[3\]",
        ),
        (lambda x: pg.scan(lambda c, _: c, x, length=2), "not a pair carry, y"),
        (lambda x: pg.scan(lambda c, _: ("a", None), x, length=2), "not an array"),
        (lambda x: pg.scan(lambda c, _: (c, None), x, length=-2), "length of -2 is negative"),
        (lambda x: pg.scan(lambda c, _: (c, None), x, length=2.5), "a length is an integer"),
        (lambda x: pg.scan(lambda c, _: (c, None), x, length=pg.sum(x)), "known when the program"),
        (lambda x: pg.scan(lambda c, _: (c, None), x), "give xs or length"),
        (
            lambda x: pg.scan(lambda c, v: (c, None), x, (x, x[:2])),
            r"xs\[1\] has 2 rows for 3 iterations",
        ),
        (lambda x: pg.scan(lambda c, v: (c, None), x, x[0]), "xs has no leading axis"),
        (lambda x: pg.cond(x > 0, pg.sin, pg.cos, x), r"pred is a boolean, not bool\[3\]"),
        (lambda x: pg.cond(x[0], pg.sin, pg.cos, x), r"pred is a boolean, not f64\[\][\s\S]*p > 0"),
        (
            lambda x: pg.cond(x[0] > 0, lambda: x, lambda: x[:2]),
            r"true_fun returned f64\[3\], but false_fun returned f64\[2\]",
        ),
        (lambda x: pg.cond(x[0] > 0, lambda: (x, x), lambda: x), r"true_fun returned \(f64"),
        (lambda x: pg.cond(x[0] > 0, 3, lambda: x), "cond takes a function, not 3"),
        (lambda x: pg.switch(x[0], [pg.sin], x), r"index is an integer, not f64\[\]"),
        (lambda x: pg.switch(0, [], x), "no branches"),
        (lambda x: pg.while_loop(lambda v: v > 0, lambda v: v, x), "not a single boolean"),
        (lambda x: pg.while_loop(lambda v: v[0], lambda v: v, x), "not a single boolean"),
        (lambda x: pg.while_loop(lambda v: True, lambda v: v, x, max_trips=-1), "max_trips is"),
        (lambda x: pg.fori_loop(0, x[0], lambda i, v: v, x), "a bound is a single integer"),
        (
            lambda x: pg.fori_loop(0, 2, lambda i, v: pg.astype(v * 2.0, "int64"), 0.7),
            r"returned i64\[\], but init_val is f64\[\]",
        ),
        (
            lambda x: pg.fori_loop(0, 2, lambda i, v: pg.astype(v, "int8"), 300),
            r"returned i8\[\], but init_val is i64\[\]",
        ),
        (
            lambda x: pg.cond(x[0] > 0, lambda: pg.asarray(3), lambda: 0.5),
            r"false_fun returned f64\[\]",
        ),
        (
            lambda x: pg.switch(pg.argmax(x), [pg.sin, pg.cos, lambda v: v[:1]], x),
            r"switch: branch 2 returned f64\[1\], but branch 0 returned f64\[3\]",
        ),
        (
            lambda x: pg.cond(x[0] > 0, pg.sin, lambda v: v[:1], x),
            r"cond: true_fun returned f64\[3\], but false_fun returned f64\[1\]",
        ),
        (lambda x: pg.map(3, x), "map: f is a function"),
        (
            lambda x: pg.fori_loop(0, pg.argmax(x), lambda i, v: v[:2], x),
            r"fori_loop: body returned f64\[2\], but init_val is f64\[3\]",
        ),
        (lambda x: pg.fori_loop(0, 2.5, lambda i, v: v, x), "a bound is a single integer, not 2.5"),
        (lambda x: pg.fori_loop(0, x[0] > 0, lambda i, v: v, x), r"single integer, not bool\[\]"),
        (lambda x: pg.while_loop(lambda v: v[0], lambda v: v, x), "condition returned f64"),
        (
            lambda x: pg.fori_loop(0, 2, lambda i, v: None, x),
            r"body returned None, but init_val is f64\[3\]",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_line(function, message):
    assert re.search(message, refusal(function, numbers(3))), refusal(function, numbers(3))


def test_tensors_are_refused_what_programs_are_refused():
    x = pg.tensor([1.0, 2.0])
    narrow = lambda v: v.astype("float32")  # noqa: E731
    said = r"(narrow|body) returned f32\[2\], but init(_val)? is f64\[2\]"
    for call in (
        lambda: pg.scan(lambda c, _: (narrow(c), None), x, length=2),
        lambda: pg.fori_loop(0, 2, lambda i, v: narrow(v), x),
        lambda: pg.while_loop(lambda v: True, narrow, x),
    ):
        with pytest.raises(pg.DTypeError, match=said):
            call()
    with pytest.raises(pg.ShapeError, match=r"returned f64\[1\], but init_val is f64\[2\]"):
        pg.fori_loop(0, 2, lambda i, v: v[:1], x)
    with pytest.raises(
        pg.ArgumentError, match=r"returned \(f64\[2\], f64\[2\]\), but init_val is f64\[2\]"
    ):
        pg.fori_loop(0, 2, lambda i, v: (v, v), x)
    for bound in (pg.tensor(2.7), np.array(2.0), pg.tensor([2]), pg.tensor(True)):
        with pytest.raises(pg.ArgumentError, match="a bound is a single integer, not"):
            pg.fori_loop(0, bound, lambda i, v: v, x)


def test_numbers_among_carries_take_the_dtype_of_the_trips_with_tensors_too():
    def sums(x):
        return pg.scan(lambda c, v: ((c[0] + v, c[1] + 1), None), (0, 0), x)[0]

    x = np.float32([1.5, 2.0])
    found = [t.numpy() for t in sums(pg.tensor(x))]
    close(found, interpret(traced(lambda x: list(sums(x)), x), x))
    assert found[0] == 3.5
    assert found[1] == 2


def test_numbers_that_change_places_are_carried_in_one_dtype():
    def turned(x):
        return pg.fori_loop(0, 4, lambda i, s: (s[1], s[2], s[0]), (0, 0.5, x))

    def longer(x):
        return pg.fori_loop(0, 5, lambda i, s: (s[1], s[2], s[3], s[0]), (0, 1, 2, x))

    close(interpret(traced(turned, 2.0), 2.0), [np.array(v) for v in (0.5, 2.0, 0.0)])
    close(interpret(traced(longer, 7.0), 7.0), [np.array(v) for v in (1.0, 2.0, 7.0, 0.0)])


@pytest.mark.parametrize("index", [0, 1, 7, 2**63, 2**64 - 1])
def test_the_largest_indices_take_the_last_branch(index):
    branches = [pg.sin, pg.cos, lambda x: 2.0 * x]
    number, x = np.array(index, np.uint64), np.array(0.7)
    graph = traced(lambda i, x: pg.switch(i, branches, x), number, x)
    expected = [np.sin(x), np.cos(x), 2.0 * x][min(index, 2)]
    close(in_all_ways(graph, [number, x]), [expected])
    close([pg.switch(number, branches, x)], [expected])


def test_values_of_other_programs_are_refused():
    with pg.Program():
        named = pg.data("theirs", (3,))
    text = refusal(lambda x: pg.fori_loop(0, 2, lambda i, v: v + named, x), numbers(3))
    assert r"uses 'theirs' f64[3], which belongs to another program, program 'program'" in text
    with pg.Program():
        other = pg.data("other", (3,))
    text = refusal(lambda x: pg.scan(lambda c, _: (c + other, None), x, length=2), numbers(3))
    assert "another program" in text
    kept = []

    def leak(x):
        pg.scan(lambda c, _: (c, kept.append(c)), x, length=2)
        return kept[0] + x

    assert "is a variable of the loop or branch 'body', and is used outside of it" in refusal(
        leak, numbers(3)
    )


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: 1.0 if x[0] > 0 else 2.0, "pg.cond"),
        (lambda x: [None for _ in range(x[0])], "pg.fori_loop"),
    ],
)
def test_python_that_asks_a_variable_is_told_of_loops_and_branches(function, name):
    assert name in refusal(function, numbers(3))


def test_a_python_loop_that_asks_a_variable_is_told_of_while_loop():
    def loop(x):
        while x[0] > 0:
            x = x - 1.0
        return x

    assert "pg.while_loop" in refusal(loop, numbers(3))


# Sizes that are not known yet.


def test_trips_and_extents_may_be_sizes_that_are_not_known_yet():
    def loop(w, xs):
        def step(c, x):
            c = pg.tanh(c * w + x)
            return c, pg.sum(c)

        c, ys = pg.scan(step, xs[0] * 0.0, xs)
        return pg.sum(c) + pg.sum(ys * ys)

    def gradient(w, xs):
        return pg.grad(loop(w, xs), [w, xs])

    graph = traced(gradient, pg.spec(()), pg.spec(("T", "N")))
    for shape in ((3, 2), (5, 1), (4, 0)):
        arrays = [np.array(0.5), numbers(*shape)]
        known = traced(gradient, *arrays)
        expected = interpret(known, *arrays)
        close(interpret(graph, *arrays), expected)
        for style in ("planned", "readable"):
            close(pg.compile(graph, style=style)(*arrays), expected)
    with pg.Program() as program:
        xs = pg.data("xs", ("T", "N"))
        slope = pg.grad(loop(0.5, xs), xs)
    for shape in ((3, 2), (3, 2), (2, 4)):
        feed = {"xs": numbers(*shape)}
        expected = interpret(traced(gradient, 0.5, feed["xs"]), 0.5, feed["xs"])
        close(pg.Executor().run(program, feed, [slope]), expected[1:])


def test_a_loop_goes_over_a_part_of_rows_that_are_not_known_yet():
    def loop(xs):
        return pg.sum(pg.scan(lambda c, x: (c * 0.5 + x, c), xs[0], xs[1:])[1] ** 2)

    graph = traced(lambda xs: pg.grad(loop(xs), xs), pg.spec(("T", 2)))
    for rows in (1, 2, 5):
        xs = numbers(rows, 2)
        expected = interpret(traced(lambda xs: pg.grad(loop(xs), xs), xs), xs)
        close(interpret(graph, xs), expected)
        close([pg.compile(graph)(xs)], expected)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_stacks_of_tensors_have_a_row_for_each_trip(rows):
    xs = pg.tensor(numbers(rows, 2))
    last, (half, count) = pg.scan(lambda c, x: (c + pg.sum(x), (x / 2, 1)), pg.tensor(0.0), xs)
    assert (half.shape, half.dtype) == ((rows, 2), np.float64)
    assert (count.shape, count.dtype) == ((rows,), np.int64)
    np.testing.assert_allclose(last.numpy(), np.sum(xs.numpy()), rtol=1e-12)
    assert pg.map(pg.sin, xs).shape == (rows, 2)


def test_what_is_kept_and_what_it_costs_is_known_for_sizes_that_are_not():
    def loop(x, xs):
        def step(c, v):
            a = c * v
            return pg.cond(pg.sum(a) > 0, lambda: pg.sin(a) * pg.exp(a), lambda: a), None

        return pg.grad(pg.sum(pg.scan(step, x, xs)[0]), [x, xs])

    graph = traced(loop, pg.spec(("N",)), pg.spec(("T", "N")))
    arrays = [numbers(3), numbers(2, 3)]
    expected = interpret(traced(loop, *arrays), *arrays)
    for style in ("planned", "readable"):
        close(pg.compile(graph, style=style)(*arrays), expected)
    sizes = {"N": 3, "T": 2}
    assert pg.cost(graph).flops.at(sizes) == pg.cost(pg.transforms.instantiate(graph, sizes)).flops


def test_numbers_of_trips_are_expressions_of_sizes():
    def loops(x):
        n = x.shape[0]
        fixed = pg.scan(lambda c, _: (c * 2.0, c), pg.sum(x), length=n - 2)
        return fixed[0], fixed[1], pg.fori_loop(1, n, lambda i, v: v + x[i], 0.0)

    graph = traced(loops, pg.spec(("N",)))
    for style in ("planned", "readable"):
        kernel = pg.compile(graph, style=style)
        for n in (2, 5, 3, 5):
            x = numbers(n)
            expected = interpret(traced(loops, x), x)
            close(interpret(graph, x), expected)
            close(kernel(x), expected)
        with pytest.raises(
            pg.FeedError, match=r'"N >= 2", assumed by test_loops.py:\d+   fixed = '
        ):
            kernel(numbers(1))


def test_what_bodies_assume_of_sizes_is_asked_before_the_run():
    def loop(x, y):
        return pg.scan(lambda c, r: (c + pg.sum(x[:4]) * r[1], None), 0.0, (x, y))[0]

    kernel = pg.compile(traced(loop, pg.spec(("T",)), pg.spec(("T",))))
    with pytest.raises(pg.FeedError, match=r'"T >= 4", assumed by .*pg\.sum\(x\[:4\]\)'):
        kernel(numbers(3), numbers(3))
    with pytest.raises(pg.FeedError, match=r"size T is not the same .* input 'y' .* input 'x'"):
        kernel(numbers(4), numbers(5))
    assert kernel(numbers(4), numbers(4)) is not None


def test_a_linear_operand_that_no_trip_uses_makes_no_loop():
    graph = lower(traced(lambda x, dx: pg.map(lambda r: r[0] * 2.0, (x, dx)), *[numbers(3)] * 2))
    primal, linear = pg.transforms.unzip(graph, [1])
    close(interpret(primal, numbers(3)), [2.0 * numbers(3)])
    assert linear.outputs == ()


@pytest.mark.usefixtures("interrupts")
def test_a_loop_that_never_ends_is_left_as_it_was_by_a_key():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        total = pg.create_parameter((3,), name="total", initializer=pg.initializers.Constant(1.0))
        found = pg.while_loop(lambda v: pg.sum(v) < 1e6, lambda v: v * x, total + x)
        program.update(total, found)
    executor = pg.Executor()
    expected = None
    for _ in range(2):
        result = executor.run(program, {"x": np.full(3, 2.0)}, [found], update=False)[0]
        expected = result if expected is None else expected
        close([result], [expected])
        timer = threading.Timer(0.4, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            executor.run(program, {"x": np.ones(3)}, [found])
        timer.join()
        close([program.state_dict()["total"]], [np.ones(3)])
    close([executor.run(program, {"x": np.full(3, 2.0)}, [found])[0]], [expected])
    close([program.state_dict()["total"]], [expected])


@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_a_loop_whose_first_carry_is_an_integer_counts_as_a_use(loop):
    """What a `where` takes elsewhere matters in the loop as well, which gives a counter first."""

    def product(s, v):
        if loop == "scan":
            return pg.scan(lambda c, _: ((c[0] + 1, c[1] * s), None), (0, v), length=2)[0][1]
        return pg.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * s), (0, v))[1]

    def loss(u, v, a):
        s = u * u
        return pg.sum(pg.where(pg.floor(2 * a) <= 0, s, v)) + pg.sum(product(s, v))

    u, v, a = np.array([0.5, -0.3]), np.array([0.4, 0.9]), np.array([0.9, -0.2])
    expected = 2 * u * (a < 0.5) + 4 * u**3 * v
    graph = traced(pg.grad(loss), u, v, a)
    close(in_all_ways(graph, (u, v, a)), [expected])
    twice = np.stack([u, u]), np.stack([v, v]), np.stack([a, a])
    (found,) = interpret(traced(pg.vmap(pg.grad(loss)), *twice), *twice)
    close(found, [expected, expected])
    (found,) = interpret(
        traced(pg.grad(lambda *arrays: pg.sum(pg.vmap(loss)(*arrays))), *twice), *twice
    )
    close(found, [expected, expected])


def _loops(s, n):
    """Loops that begin with Python's numbers beside `s`, and which dtype each has for a float32."""
    scan = pg.scan
    return {
        "sum": (scan(lambda c, a: (c + a, None), 0.0, s)[0], "f4"),
        "int": (scan(lambda c, a: (c + a, c), 0, s), "f4"),
        "small ints": (scan(lambda c, a: (c + a, None), 0, n)[0], "i4"),
        "float of ints": (scan(lambda c, a: (c + a, None), 0.0, n)[0], "f8"),
        "function": (scan(lambda c, a: (pg.sin(c) + a, None), 0.0, s)[0], "f4"),
        "method": (scan(lambda c, a: (c.reshape(()) + a, None), 0.0, s)[0], "f4"),
        "pair": (scan(lambda c, a: ((c[0] + a, c[0] + c[1]), None), (0.0, 0.0), s)[0], "f4"),
        "swap": (scan(lambda c, a: ((c[1], c[0] + a), None), (0.0, 0.0), s)[0], "f4"),
        "max": (scan(lambda c, a: (pg.maximum(a, c), None), -np.inf, s)[0], "f4"),
        "branch": (
            scan(lambda c, a: (pg.cond(a > 0, lambda: c, lambda: a), None), 0.0, s)[0],
            "f4",
        ),
        "returned": (scan(lambda c, a: (0.0, c), s[0], s), "f4"),
        "segments": (scan(lambda c, a: (c + a, None), 0.0, s, checkpoint="sqrt")[0], "f4"),
        "wide": (scan(lambda c, a: (c + a * np.float64(2), None), 0.0, s)[0], "f8"),
        "unmet": (scan(lambda c, a: (c * 2.0, a), 1.0, s)[0], "f8"),
        "complex": (scan(lambda c, a: (c + a, None), 0j, s)[0], "c8"),
        "fori": (pg.fori_loop(0, 3, lambda i, v: v + s[i], 0.0), "f4"),
        "counted": (pg.fori_loop(0, np.int64(3), lambda i, v: v + s[0], 0.0), "f4"),
        "while": (pg.while_loop(lambda v: v < 10, lambda v: v + s[0], 0.0), "f4"),
        "fixed point": (pg.fixed_point(lambda x: 0.5 * x + s[0], 0.0), "f4"),
        "stack": (pg.stack([s[0], 0.0]), "f4"),
    }


@pytest.mark.parametrize("world", ["eager", "jit", "trace"])
def test_numbers_that_loops_begin_with_take_the_dtype_of_what_they_meet(world):
    s, n = np.array([1.0, 2.0, -0.5], "float32"), np.arange(3, dtype="int32")

    def found(s, n):
        return {name: value for name, (value, _) in _loops(s, n).items()}

    s_, n_ = pg.tensor(s), pg.tensor(n)
    wanted = {name: dtype for name, (_, dtype) in _loops(s_, n_).items()}
    if world == "eager":
        given = found(s_, n_)
    else:
        call = pg.jit(found) if world == "jit" else pg.compile(pg.trace(found, s, n))
        given = call(s, n)
    for name, dtype in wanted.items():
        assert {leaf.dtype for leaf in pg.tree.leaves(given[name])} == {np.dtype(dtype)}, name
    np.testing.assert_array_equal(pg.tree.leaves(given["sum"])[0], s.sum())
    wide = found(pg.tensor(s.astype(float)), n_)
    for name in ("sum", "function", "swap", "fori"):
        for one, other in zip(pg.tree.leaves(given[name]), pg.tree.leaves(wide[name]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_an_array_that_a_loop_finds_elsewhere_counts_for_its_numbers():
    row = np.ones(3, "float32")
    loop = pg.jit(lambda v: pg.fori_loop(0, 3, lambda i, c: pg.sin(c) + row[0] + v * 0, 0.0))
    assert loop(np.float32(1)).dtype == np.float32
    assert pg.fori_loop(0, 3, lambda i, c: c + row[0], 0.0).dtype == np.float32


def test_numpy_stacks_numbers_in_its_own_dtype():
    s = np.ones(3, "float32")
    stacked = pg.jit(lambda s: np.stack([s[0], 0.0]))(s)
    assert stacked.dtype == np.stack([s[0], 0.0]).dtype == np.float64
