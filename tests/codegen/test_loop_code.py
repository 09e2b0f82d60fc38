"""The code of loops: trips on numbers and on arrays, and what is computed for all trips at once."""

import re

import numpy as np
import pytest

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower
from primgraph.transforms.loops.split_loops import split_loops


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


def agrees(function, *arrays):
    """A kernel of `function` that gives, twice, what the interpreter says."""
    graph = pg.trace(function, *arrays)
    expected = interpret(graph, *arrays)
    with pg.transforms.debug():
        kernel = pg.compile(graph).flat
        for _ in range(2):
            for mine, theirs in zip(kernel(*arrays), expected, strict=True):
                assert mine.dtype == theirs.dtype
                assert mine.shape == theirs.shape
                assert np.allclose(mine, theirs, rtol=1e-12, atol=1e-13, equal_nan=True)
    return kernel


def with_gradients(function):
    return lambda *arrays: (value := function(*arrays), *pg.grad(value, list(arrays)))


def loops(kernel):
    return [e for e in kernel.graph.body if e.op.has_bodies]


def pendulum(state, k, xs):
    def step(carry, x):
        angle, speed = carry
        speed = speed - 0.1 * (k * pg.sin(angle) + x)
        return (angle + 0.1 * speed, speed), angle * speed

    ends, ys = pg.scan(step, (state[0], state[1]), xs)
    return pg.sum(ys) + ends[0] * ends[1]


@pytest.mark.parametrize("trips", [1, 2, 9, 1024, 2500])
def test_trips_on_numbers_are_made_in_parts(trips):
    agrees(with_gradients(pendulum), numbers(2), np.array(0.3), numbers(trips))


def test_trips_on_numbers_go_on_with_arrays_where_values_are_special():
    def sums(x, ys):
        total, found = pg.scan(lambda c, y: (c + 1.0 / y, pg.log(y) * c), x, ys)
        return total, found

    ys = numbers(3000) + 2.0
    ys[2100] = 0.0
    agrees(sums, np.array(0.5), ys)
    agrees(sums, np.array(0.5), ys[::-1].copy())


def test_rows_may_come_last_first():
    def f(x, ys):
        return pg.scan(lambda c, y: (0.9 * c + y, c * y), x, ys, reverse=True)

    agrees(f, numbers(3), numbers(1500, 3))
    agrees(f, numbers(200), numbers(15, 200))


def test_a_loop_of_numbers_ends_by_its_test():
    def root(a):
        step = lambda s: (s[0] - (s[0] * s[0] - a) / (2.0 * s[0]), s[1] + 1.0)  # noqa: E731
        return pg.while_loop(lambda s: abs(s[0] * s[0] - a) > 1e-12, step, (a, 0.0))

    agrees(root, np.array(7.0))
    slow = lambda x: pg.while_loop(lambda v: v < 3000.0, lambda v: v + 1.0, x)  # noqa: E731
    agrees(slow, np.array(0.0))
    bounded = lambda x: pg.while_loop(lambda v: v < 1e9, lambda v: v + 1.0, x, max_trips=1500)  # noqa: E731
    assert agrees(bounded, np.array(0.0))(np.array(0.0))[0] == 1500


ONE = np.int64(1)
# Functions of an integer, and whether its iterations stay in the range of int64.
COUNTERS = {
    "index": (lambda n: pg.fori_loop(0, 1500, lambda i, x: 0.9 * x + 1e-3 * i, 1.0 * n), True),
    "test": (
        lambda n: pg.while_loop(
            lambda c: c[0] < 2000, lambda c: (c[0] + 1, 0.9 * c[1] + 0.1 * c[0]), (n, 1.0)
        ),
        True,
    ),
    "rows": (
        lambda n: pg.scan(
            lambda c, x: (pg.where(c > x, c - x, -c), (c == x, c * 0.5, pg.astype(c, bool), x - c)),
            n,
            np.arange(40) % 7 - 3,
        ),
        True,
    ),
    "truths": (lambda n: pg.scan(lambda c, x: (c + (x > 0.3), x * c), n, numbers(30)), True),
    "doubled": (lambda n: pg.fori_loop(0, 70, lambda i, k: k + k, n + 2), False),
    "smallest": (lambda n: pg.fori_loop(0, 3, lambda i, k: k * -(2**63) - i, n), False),
    "compared": (
        lambda n: pg.scan(
            lambda c, x: (c + x, (c * c * 4 < x, -c == c, 1.0 * (c * 3))),
            n,
            np.array([5, 2**62, 2**62, 2**62, -(2**62)]),
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_integers_of_loops_are_numbers_and_wrap_as_numpys(name, monkeypatch):
    function, stays = COUNTERS[name]
    if stays:
        # There is no code on arrays.
        for kind in ("_Scan", "_While"):
            monkeypatch.setattr(f"primgraph.codegen.loops.{kind}._compile_bodies", None)
    agrees(function, ONE)


def recurrent(xs, w, u, b):
    def step(h, x):
        h = pg.tanh(x @ w + h @ u + b)
        return h, pg.sum(h * h)

    end, ys = pg.scan(step, pg.zeros((3, 4)), xs)
    return pg.sum(ys) + pg.sum(end)


WEIGHTS = (numbers(20, 3, 5), numbers(5, 4, seed=1), numbers(4, 4, seed=2), numbers(4, seed=3))


def test_gradients_of_weights_are_one_product_after_the_loop():
    kernel = agrees(with_gradients(recurrent), *WEIGHTS)
    _, back = loops(kernel)
    inner = [e.outputs[0].shape for e in back.bodies[0].body if e.op.name == "matmul"]
    assert (4, 4) not in inner
    assert (5, 4) not in inner
    assert {v.shape for v in back.outputs}.isdisjoint({(4, 4), (5, 4)})
    products = [e for e in kernel.graph.body if e.op.name == "matmul"]
    assert {e.outputs[0].shape for e in products} >= {(4, 4), (5, 4)}


def test_gradients_of_weights_used_either_way_round():
    def f(xs, w):
        step = lambda h, x: (pg.sin(w @ h + x + w.T @ pg.cos(h)), None)  # noqa: E731
        return pg.sum(pg.scan(step, xs[0], xs)[0])

    kernel = agrees(with_gradients(f), numbers(9, 4), numbers(4, 4))
    back = loops(kernel)[-1]
    assert all(v.shape != (4, 4) for v in back.outputs)


def test_large_sums_that_are_no_products_stay_in_the_loop():
    def f(xs, w):
        step = lambda h, x: (h + pg.sum(pg.sin(w * x)), None)  # noqa: E731
        return pg.scan(step, 0.0, xs)[0]

    kernel = agrees(with_gradients(f), numbers(9), numbers(40, 40))
    assert any(v.shape == (40, 40) for e in loops(kernel) for v in e.outputs)


def test_what_no_trip_waits_for_is_computed_for_all_at_once():
    def f(xs, a):
        def step(carry, x):
            h, total = carry
            h = a * h + pg.exp(x)
            guess = h - pg.log(2.0 + pg.sum(pg.exp(h)))
            return (h, total + pg.sum(guess * x)), pg.sqrt(guess * guess)

        (h, total), ys = pg.scan(step, (pg.zeros(6), 0.0), xs)
        return h, total, ys

    kernel = agrees(f, numbers(50, 6), numbers(6))
    first, second = loops(kernel)
    assert {e.op.name for e in first.bodies[0].body} == {"mul", "add"}
    assert {e.op.name for e in second.bodies[0].body} == {"add"}
    agrees(with_gradients(lambda xs, a: f(xs, a)[1]), numbers(50, 6), numbers(6))


def test_what_is_large_may_fail_or_has_sizes_stays_in_the_loop():
    def large(xs):
        return pg.scan(lambda h, x: (0.5 * h + pg.exp(x), None), pg.zeros(1000), xs)[0]

    def failing(xs, table):
        step = lambda h, i: (h * 0.5 + pg.take(table, i), None)  # noqa: E731
        return pg.scan(step, pg.zeros(()), xs)[0]

    for function, arrays in ((large, [numbers(500, 1000)]), (failing, [np.arange(9), numbers(9)])):
        graph = clean_up(lower(pg.trace(function, *arrays)))
        assert split_loops(graph) == graph
    sized = pg.trace(lambda x: pg.scan(lambda h, v: (h + pg.exp(v), None), 0.0, x)[0], pg.spec("N"))
    graph = clean_up(lower(sized))
    assert split_loops(graph) is graph


def test_a_plan_has_the_plans_of_bodies():
    text = str(pg.compile(pg.trace(with_gradients(recurrent), *WEIGHTS)).plan)
    assert text.count("\n\nplan ") == 2
    assert "matmul" in text.split("\n\nplan ")[1]


def test_views_of_what_no_trip_changes_are_made_before_all_trips():
    kernel = pg.compile(pg.trace(with_gradients(recurrent), *WEIGHTS)).flat
    sources = [body.loaded.source for body in kernel._code.bodies]
    (text,) = [t for t in sources if ".T" in t]
    assert text.index(".T") < text.index("zip(*rows)")


def test_a_function_of_parts_side_by_side_is_computed_once():
    def f(xs, w):
        def step(h, x):
            gates = pg.concatenate([h, h, x]) * w
            first, second, third = (pg.sigmoid(gates[i * 5 : i * 5 + 5]) for i in range(3))
            return h * first + second * third, third

        end, ys = pg.scan(step, pg.zeros(5), xs)
        return pg.sum(end * end) + pg.sum(ys)

    kernel = agrees(with_gradients(f), numbers(12, 5), numbers(15))
    bodies = [e.bodies[0] for e in loops(kernel)]
    assert [e.op.name for e in bodies[0].body].count("sigmoid") == 1
    # Parts of what is stacked are taken from the stack.
    assert len(bodies[0].outputs) <= 5


@pytest.mark.parametrize("trips", [0, 1, 12])
def test_equal_carries_are_carried_once(trips):
    def f(w, xs):
        return pg.scan(lambda c, x: (pg.tanh(w * c + x), None), 0.1, xs)[0]

    def third(w, xs):
        y = f(w, xs)
        for _ in range(3):
            y = pg.forward_grad(y, w)
        return y

    kernel = agrees(third, np.array(0.4), numbers(trips))
    if trips:
        (eqn,) = loops(kernel)
        assert eqn.kwargs["carries"] == 4


def test_equal_carries_of_a_loop_with_a_test_are_carried_once():
    def f(x):
        step = lambda s: (s[0] * 0.5, s[1] * 0.5, s[2] * 0.25)  # noqa: E731
        return pg.while_loop(lambda s: s[1] + s[2] > 0.1, step, (x, x, x))

    kernel = agrees(f, np.array(3.0))
    (eqn,) = loops(kernel)
    assert len(eqn.inputs) - eqn.kwargs["consts"] == 2


def test_powers_are_taken_of_numbers():
    def f(x, xs):
        return pg.scan(lambda c, y: (c**-1.5 + y, c * y), x, xs)

    agrees(f, np.array(2.0), numbers(20) + 2.0)
    agrees(f, np.array(2.0), numbers(20))


def gated(xs, w, u):
    """The cell of a network whose gates are joined, for rows of any number of axes."""
    n = w.shape[-1] // 4

    def step(carry, x):
        h, c = carry
        gates = x @ w + h @ u
        a, b, d, e = (pg.tanh(gates[..., i * n : i * n + n]) for i in range(4))
        c = a * c + b * d
        return (e * c, c), None

    zeros = pg.zeros((*xs.shape[1:-1], n))
    (h, c), _ = pg.scan(step, (zeros, zeros), xs)
    return pg.sum(h * c)


@pytest.mark.parametrize("rows", [(), (1,), (3,), (4,)])
def test_functions_whose_results_are_joined_are_computed_once(rows):
    arrays = numbers(9, *rows, 3), numbers(3, 8, seed=1), numbers(2, 8, seed=2)
    kernel = agrees(with_gradients(gated), *arrays)
    _, back = loops(kernel)
    assert sum(e.op.name == "mul" for e in back.bodies[0].body) <= 6
    assert sum(e.op.name == "concat" for e in back.bodies[0].body) == 1


def products(body):
    return sum(e.op.name == "matmul" for e in body)


@pytest.mark.parametrize("math", ["exact", "fast"])
@pytest.mark.parametrize("rows", [3, 4, 8])
def test_products_of_rows_are_one_product_where_bits_stay(rows, math):
    def f(xs, w, u):
        step = lambda h, x: (pg.tanh(x @ w + h @ u), h @ u[:, :2])  # noqa: E731
        return pg.scan(step, pg.zeros((rows, 5)), xs)

    arrays = numbers(11, rows, 6), numbers(6, 5, seed=1), numbers(5, 5, seed=2)
    kernel = pg.compile(pg.trace(f, *arrays), math=math).flat
    loop = loops(kernel)[0]
    gone = 2 * (rows % 4 == 0 or math == "fast")
    assert products(loop.bodies[0].body) == 3 - gone
    assert products(kernel.graph.body) == gone
    expected = interpret(pg.trace(f, *arrays), *arrays)
    for mine, theirs in zip(kernel(*arrays), expected, strict=True):
        assert np.allclose(mine, theirs, rtol=1e-13, atol=1e-14)
        assert math == "fast" or np.array_equal(mine, theirs)


def test_products_of_float32_and_with_what_is_carried_stay_in_their_trips():
    def f(xs, w):
        step = lambda h, x: (pg.tanh(x @ w + x @ h), None)  # noqa: E731
        return pg.scan(step, w, xs)[0]

    single = numbers(9, 4, 4).astype(np.float32), numbers(4, 4).astype(np.float32)
    for arrays, left in ((single, 2), ((numbers(9, 4, 4), numbers(4, 4)), 1)):
        (loop,) = loops(pg.compile(pg.trace(f, *arrays)).flat)
        assert products(loop.bodies[0].body) == left


def test_a_row_that_is_not_a_number_stays_in_its_trip():
    def f(xs, w):
        step = lambda h, x: (x @ w + pg.where(pg.isnan(h), 0.0, 0.1 * h), pg.sum(h))  # noqa: E731
        return pg.scan(step, pg.zeros((4, 3)), xs)

    xs = numbers(9, 4, 3)
    xs[4, 1] = np.nan
    agrees(f, xs, numbers(3, 3))


def test_a_state_of_a_carry_that_no_other_needs_may_be_stacked():
    def f(xs):
        def step(carry, x):
            h, total = carry
            h = pg.tanh(h * x + 0.5)
            return (h, total * pg.sqrt(pg.exp(h) + pg.cos(h) * pg.sin(h))), (total, h)

        return pg.scan(step, (pg.zeros(5), pg.ones(5)), xs)

    kernel = agrees(f, numbers(9, 5))
    assert len(loops(kernel)) == 2


def test_a_look_at_a_row_is_stacked_and_read_in_its_trip():
    def f(xs):
        def step(h, x):
            row, power = x.T, pg.exp(x)
            return h * 0.5 + h * row + power.T, row

        return pg.scan(step, pg.zeros((3, 5)), xs)

    agrees(f, numbers(9, 5, 3))


def test_loops_that_share_an_equation_are_split_apart():
    def f(a, xs, ys):
        def step(h, x):
            inner = pg.while_loop(lambda v: pg.sum(v) < 9.0, lambda v: v + 2.0, x * 3.0 + 1.0)
            return pg.tanh(h * a) + inner, pg.exp(x - 0.5)

        return pg.scan(step, xs[0], xs), pg.scan(step, ys[0], ys)

    def both(*arrays):
        found = flat(f(*arrays))
        return (*found, *[pg.forward_grad(v, arrays[0]) for v in found])

    agrees(both, np.array(0.7), numbers(9, 5), numbers(12, 5, seed=1))


def flat(nested):
    return [v for x in nested for v in flat(x)] if isinstance(nested, tuple | list) else [nested]


def trips_of(kernel):
    return [b.loaded.source for b in kernel._code.bodies if "def trips" in b.loaded.source]


@pytest.mark.parametrize("reverse", [False, True])
def test_views_of_rows_are_those_of_stacks(reverse):
    def f(xs, a):
        def step(h, x):
            seen = x.T[2:] * pg.expand_dims(x[:, 0], 0) + x.reshape(30, 4)[:, ::-1][2:]
            ends = pg.tanh(h[0, ::2]) * x[::2, 1:].reshape(-1)[:2]
            return h * a + seen, (pg.sum(ends), seen * h, pg.concatenate([x[1:], x[:1]], 0))

        return pg.scan(step, pg.zeros((28, 4)), xs, reverse=reverse)

    kernel = agrees(f, numbers(5, 4, 30), numbers(28, 4))
    (text,) = trips_of(kernel)
    lines = text[text.index("in zip(*rows, ") :]
    assert lines.splitlines()[0].count("rows[") >= 3
    assert not [line for line in lines.splitlines() if re.match(r" +v\d+ = (x2|r\d)\b", line)]
    agrees(f, numbers(1, 4, 30), numbers(28, 4))


@pytest.mark.parametrize("reverse", [False, True])
def test_numbers_of_stacked_rows_are_read_after_they_are_written(reverse):
    """Rows of one element, which the iteration that writes them reads as numbers."""

    def loop(c, x):
        def step(c, row):
            found = pg.exp(row * c[:1])
            return pg.cos(c) + c * found.reshape(()), (found, row)

        end, (rows, _) = pg.scan(step, c, x, reverse=reverse)
        return end, rows

    rng = np.random.default_rng(0)
    c, x = rng.normal(size=300), rng.normal(size=(5, 1))
    graph = pg.trace(loop, c, x)
    kernel = pg.compile(graph, target="numpy")
    for _ in range(2):
        for found, expected in zip(kernel(c, x), interpret(graph, c, x), strict=True):
            np.testing.assert_allclose(found, expected, 1e-12)


@pytest.mark.parametrize("places", ["hx", "hxhx", "hhxh", "xhhx", "hxyhxy", "xyhxyhhy", "xyhzwv"])
@pytest.mark.parametrize("axis", [0, 1])
def test_short_arrays_are_joined_by_copies(places, axis):
    def f(xs, w):
        def step(carry, x):
            h, y = carry
            known = {"h": h, "y": y, "x": x, "z": h + x, "w": y * x, "v": h * y}
            joined = pg.concatenate([known[p] for p in places], axis)
            return (pg.sin(h * x), pg.cos(y)), (joined, pg.concatenate([pg.exp(joined), x], axis))

        return pg.scan(step, (xs[0], w), xs)

    kernel = agrees(f, numbers(9, 2, 18), numbers(2, 18))
    assert any("[...]" in text for text in trips_of(kernel))
    agrees(f, numbers(9, 2, 0), numbers(2, 0))
