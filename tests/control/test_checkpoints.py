"""Checkpoints: what reverse mode computes again has the same values, and takes less memory."""

import gc
import itertools
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from test_loops import close, forward, in_all_ways, numbers, operators, reverse, summed, traced

import primgraph as pg
from primgraph.control.segments import segments
from primgraph.errors import MissingRuleError
from primgraph.ir.dims import TRIPS
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.verify import verify
from primgraph.transforms import batch, clean_up, linearize, lower, transpose, unzip


def same(function):
    """In the place of `pg.checkpoint`."""
    return function


# Functions of four arrays, built with `pg.checkpoint` or without.


def layers(ck):
    def function(w, u, h, xs):
        @ck
        def layer(h, x):
            return pg.tanh(h @ w) * pg.sin(x @ u)

        for k in range(3):
            h = layer(h, xs[k])
        return h

    return function


def containers(ck):
    def function(w, u, h, xs):
        @ck
        def step(state, *, scale, times=2, name="unused"):
            a, n = state["a"], state["n"]
            for _ in range(times):
                a = pg.tanh(a @ w) * scale
            return {"a": a, "n": n + 1}, (pg.exp(-a), None)

        state, (y, _) = step({"a": h, "n": 0}, scale=2.0)
        state, (z, _) = step(state, scale=y, times=1)
        return state["a"] * y + z * pg.astype(state["n"], "float64") + pg.sum(u) * pg.sum(xs)

    return function


def nested(ck):
    def function(w, u, h, xs):
        inner = ck(lambda h: pg.sin(h @ w))

        @ck
        def outer(h, x):
            return inner(inner(h) + x @ u) * h

        return outer(outer(h, xs[0]), xs[1] * pg.sum(xs))

    return function


def in_a_body(ck):
    def function(w, u, h, xs):
        @ck
        def step(h, x):
            z = pg.tanh(h @ w + x @ u)
            return z * pg.exp(-h), pg.sum(z * z)

        h, ys = pg.scan(step, h, xs)
        return pg.sum(h) * ys

    return function


def around_loops(ck):
    def function(w, u, h, xs):
        @ck
        def solved(h):
            def body(c):
                return pg.cond(pg.sum(c[0]) > 0, pg.sin, pg.cos, c[0]) @ w, c[1] + 1

            return pg.while_loop(lambda c: c[1] < 2, body, (h, 0), max_trips=3)[0]

        @ck
        def run(h, xs):
            return pg.scan(lambda c, x: (solved(c) + x @ u, c), h, xs, reverse=True)

        h, ys = run(h, xs)
        return pg.sum(h) * ys

    return function


MADE = {f.__name__: f for f in (layers, containers, nested, in_a_body, around_loops)}
ARRAYS = [numbers(2, 2), numbers(3, 2, seed=1), numbers(1, 2, seed=2), numbers(3, 1, 3, seed=3)]
every = pytest.mark.parametrize("name", MADE)


def derivative(function, modes):
    for mode in modes:
        function = (reverse if mode == "r" else forward)(summed(function))
    return function


@every
def test_values_are_those_of_the_function(name, tmp_path):
    function, plain = MADE[name](pg.checkpoint), MADE[name](same)
    graph = traced(function, *ARRAYS)
    assert "checkpoint" in str(graph)
    expected = interpret(traced(plain, *ARRAYS), *ARRAYS)
    close(in_all_ways(graph, ARRAYS, tmp_path), expected)
    close([function(*map(pg.tensor, ARRAYS)).numpy()], expected)
    close([function(*ARRAYS)], expected)


@every
@pytest.mark.parametrize("modes", ["r", "f", "rr", "fr", "rf"])
def test_derivatives_of_orders_one_and_two_are_those_of_the_function(name, modes):
    compare(MADE[name], modes)


@pytest.mark.parametrize(("name", "modes"), [("nested", "rrr"), ("in_a_body", "frf")])
def test_derivatives_of_order_three_are_those_of_the_function(name, modes):
    compare(MADE[name], modes)


def compare(made, modes, arrays=ARRAYS, styles=("planned", "readable")):
    graph = traced(derivative(made(pg.checkpoint), modes), *arrays)
    expected = interpret(lower(traced(derivative(made(same), modes), *arrays)), *arrays)
    close(interpret(lower(graph), *arrays), expected, 1e-7)
    cleaned = verify(clean_up(lower(graph)))
    close(interpret(cleaned, *arrays), expected, 1e-7)
    if len(modes) == 1 or modes == "rr":
        for style in styles[: 3 - len(modes)]:
            close(pg.compile(graph, style=style).flat(*arrays), expected, 1e-7)
    return cleaned


def test_single_precision_stays_what_it_is():
    arrays = [a.astype("float32") for a in ARRAYS]
    for name, modes in itertools.product(MADE, ("", "r")):
        with_them, without = (
            interpret(lower(traced(derivative(MADE[name](ck), modes), *arrays)), *arrays)
            for ck in (pg.checkpoint, same)
        )
        close(with_them, without, 1e-4)


@every
def test_a_batch_is_of_samples(name):
    plain = lower(traced(reverse(summed(MADE[name](same))), *ARRAYS))
    graph = lower(traced(reverse(summed(MADE[name](pg.checkpoint))), *ARRAYS))
    for flags in ((0, 0, 0, 0), (None, None, 0, None), (None, 0, None, 0)):
        feeds = [
            a if f is None else np.stack([a, a / 2]) for a, f in zip(ARRAYS, flags, strict=True)
        ]
        found = interpret(verify(batch(graph, 2, flags)), *feeds)
        close(found, interpret(batch(plain, 2, flags), *feeds))
        close(pg.compile(batch(graph, 2, flags))(*feeds), found)


def test_transposition_takes_checkpoints_apart():
    graph = linearize(lower(traced(summed(layers(pg.checkpoint)), *ARRAYS)))
    directions = [numbers(*a.shape, seed=9) for a in ARRAYS]
    tangents = graph.with_outputs(graph.outputs[1:])
    turned = verify(transpose(tangents, range(4, 8)))
    (along,) = interpret(tangents, *ARRAYS, *directions)
    back = interpret(turned, *ARRAYS, np.array(1.0))
    dot = sum(np.sum(a * b) for a, b in zip(back, directions, strict=True))
    close([np.array(dot)], [along])
    primal, linear = unzip(graph, range(4, 8))
    y, *kept = interpret(verify(primal), *ARRAYS)
    found = [y, *interpret(verify(linear), *kept, *directions)]
    close(found, interpret(graph, *ARRAYS, *directions))


# What is computed again, and what is not.


def counted(graph):
    """How often each primitive is in a graph, with its bodies."""
    found = Counter(eqn.op.name for eqn in graph.body)
    for eqn in graph.body:
        for body in eqn.bodies:
            found += counted(body)
    return found


def test_what_reverse_mode_computes_again_is_not_merged_with_what_was_there():
    def chain(ck):
        def function(x):
            f = ck(lambda x: pg.sin(pg.tanh(x)))
            return pg.sum(f(f(f(x))) ** 2)

        return function

    x = numbers(5)
    for order, tanhs in (("r", 6), ("f", 3), ("ff", 3)):
        graph = compare(chain, order, [x])
        assert counted(graph)["tanh"] == tanhs
        assert counted(clean_up(lower(traced(derivative(chain(same), order), x))))["tanh"] == 3
    # Text says nothing of lines, and so nothing of what is a tangent.
    again = parse(str(graph), graph.constants)
    assert counted(clean_up(again))["tanh"] == 3


def test_tangents_are_computed_with_the_values():
    graph = clean_up(lower(traced(forward(summed(layers(pg.checkpoint))), *ARRAYS)))
    assert operators(graph) == ["checkpoint"] * 3


def test_a_trip_keeps_what_its_checkpoint_is_called_with():
    def loss(ck):
        return lambda w, u, h, xs: pg.sum(in_a_body(ck)(w, u, h, xs))

    def stacks(ck):
        graph = clean_up(lower(traced(reverse(loss(ck)), *ARRAYS)))
        first = next(eqn for eqn in graph.body if eqn.op.name == "scan")
        return [v.shape for v in first.outputs[1:] if v.shape != (3,)]

    assert stacks(pg.checkpoint) == [(3, 1, 2)]
    assert len(stacks(same)) > 1


def test_what_nothing_needs_falls_away_in_checkpoints():
    def function(x, y, z):
        a, _, c = pg.checkpoint(lambda x, y, z, two: (pg.sin(x) * two, pg.exp(y), z))(
            x, y, z, pg.full((2,), 2.0)
        )
        return a + c

    graph = clean_up(lower(traced(function, *[numbers(2, seed=k) for k in range(3)])))
    (eqn,) = [e for e in graph.body if e.op.has_bodies]
    assert len(eqn.inputs) == 2
    assert "exp" not in counted(graph)
    plain = traced(lambda x: pg.checkpoint(lambda x: pg.reshape(x, (2, 1)))(x), numbers(2))
    assert operators(clean_up(lower(plain))) == []


def test_numbers_of_python_stay_numbers():
    seen = []

    @pg.checkpoint
    def function(x, flag, axis, factor):
        seen.append((flag, axis, factor))
        return pg.sum(x, axis=axis) * factor if flag else x

    x = numbers(2, 3).astype("float32")
    graph = traced(lambda x: function(x, True, 1, 0.5), x)
    assert seen == [(True, 1, 0.5)]
    assert graph.output_types[0].dtype == np.float32
    assert function(pg.tensor(x), False, 0, 1.0).shape == (2, 3)
    assert function(pg.tensor(x), True, axis=0, factor=1.0).shape == (3,)


def test_a_checkpoint_is_a_decorator_with_the_name_of_its_function():
    @pg.checkpoint
    def halved(x):
        """Half of it."""
        return x / 2

    assert halved.__name__ == "halved"
    assert halved.__doc__ == "Half of it."
    assert "halved" in repr(halved)
    (eqn,) = traced(halved, 1.0).body
    assert eqn.bodies[0].name == "halved"

    class Model:
        @pg.checkpoint
        def twice(self, x):
            return 2 * x

    assert Model().twice(np.array(3.0)) == 6.0


def test_tensors_have_their_gradients_through_checkpoints():
    layer = pg.nn.Linear(3, 3)
    x = pg.tensor(numbers(4, 3), requires_grad=True)
    around = pg.tensor(numbers(3, seed=5), requires_grad=True)
    found = []
    for ck in (pg.checkpoint, same):
        parameters = [x, around, *layer.parameters()]
        for p in parameters:
            p.grad = None
        function = ck(lambda x: pg.tanh(layer(x)) * around)
        pg.sum(function(function(x)) ** 2).backward()
        found.append([p.grad.numpy() for p in parameters])
        (second,) = pg.autograd.grad(pg.sum(function(x)), [x], create_graph=True)
        found[-1].append(pg.autograd.grad(pg.sum(second * second), [x])[0].numpy())
    close(*found)
    with pg.no_grad():
        assert not pg.checkpoint(layer)(x).requires_grad


def test_checkpoints_are_compiled_by_jit_and_go_through_functions_of_derivatives():
    f = pg.checkpoint(lambda x: pg.sin(x) * pg.exp(x))
    x = numbers(3)
    plain = same(lambda x: pg.sin(x) * pg.exp(x))
    close([pg.jit(f)(x)], [pg.jit(plain)(x)])
    for take in (pg.jacrev, pg.jacfwd):
        close([np.asarray(take(f)(x))], [np.asarray(take(plain)(x))])
    second = pg.hessian(lambda x: pg.sum(f(x)))(x)
    close([np.asarray(second)], [np.asarray(pg.hessian(lambda x: pg.sum(plain(x)))(x))])
    assert np.allclose(
        pg.vmap(pg.grad(lambda x: pg.sum(f(x))))(np.stack([x, x]))[0], plain_slope(x)
    )


def plain_slope(x):
    return np.exp(x) * (np.sin(x) + np.cos(x))


def test_a_program_with_checkpoints_is_saved_and_pickled(tmp_path):
    graph = lower(traced(reverse(summed(nested(pg.checkpoint))), *ARRAYS))
    assert pickle.loads(pickle.dumps(graph)) == graph
    close(pickle.loads(pickle.dumps(pg.compile(graph)))(*ARRAYS), interpret(graph, *ARRAYS))
    with pg.Program() as program:
        x = pg.data("x", (3,))
        w = pg.create_parameter((3,), name="w", initializer=pg.initializers.Constant(0.5))
        y = pg.sum(pg.checkpoint(lambda x: pg.tanh(x * w))(x))
        (slope,) = pg.grad(y, [w])
        y.name, slope.name = "y", "slope"
    pg.save(program, tmp_path / "program.npz")
    feed = {"x": np.arange(3.0)}
    found = pg.Executor().run(pg.load(tmp_path / "program.npz"), feed, ["y", "slope"])
    close(found, pg.Executor().run(program, feed, [y, slope]))
    close(found[1:], [np.arange(3.0) / np.cosh(np.arange(3.0) / 2) ** 2])


def test_extents_may_be_unknown():
    def function(w, x):
        step = pg.checkpoint(lambda x: pg.tanh(x @ w))
        return pg.grad(pg.sum(step(step(x)) ** 2), w)

    w, x = numbers(2, 2), numbers(5, 2)
    kernel = pg.compile(pg.trace(function, w, pg.spec(("N", 2))))
    for _ in range(3):
        close([kernel(w, x)], [pg.compile(pg.trace(function, w, x))(w, x)])


def test_what_is_no_array_is_refused_with_the_line():
    with pytest.raises(pg.ArgumentError, match=r"checkpoint: <lambda> returned str.*"):
        pg.trace(lambda x: pg.checkpoint(lambda x: "text")(x), 1.0)
    with pytest.raises(pg.ArgumentError, match="is a function, not int 3"):
        pg.checkpoint(3)
    with pytest.raises(pg.ArgumentError, match="set cannot be hashed"):
        pg.checkpoint(lambda x, y: x)(pg.tensor(1.0), {1, 2})


# Loops of segments.


def rnn(trips, reverse=False):
    def made(checkpoint):
        def function(w, u, h, xs):
            def step(carry, x):
                h, n = carry
                h = pg.tanh(h @ w + x @ u) * 1.5
                return (h, n + 1), {"square": h * h, "n": n}

            (h, n), ys = pg.scan(step, (h, 0), xs, reverse=reverse, checkpoint=checkpoint)
            weights = pg.astype(ys["n"] + n, "float64").reshape(trips, 1, 1)
            return pg.sum(h) + pg.sum(pg.sin(ys["square"]) * weights)

        return function

    return made


def counting(trips):
    def made(checkpoint):
        def function(w, u, h, xs):
            def body(i, h):
                return pg.tanh(h @ w + xs[i] @ u)

            first = pg.fori_loop(0, trips, body, h, checkpoint=checkpoint)
            last = pg.astype(pg.sum(xs) * 0.0, "int64") + trips
            more = pg.fori_loop(2, last, body, h, max_trips=trips, checkpoint=checkpoint)
            return pg.sum(first) * pg.sum(more)

        return function

    return made


def ending(trips):
    def made(checkpoint):
        def function(w, u, h, xs):
            def body(c):
                return pg.tanh(c[0] @ w + xs[c[1]] @ u), c[1] + 1

            def goes_on(c):
                return pg.logical_and(c[1] < trips, pg.sum(c[0]) > -1.0)

            loop = pg.while_loop(goes_on, body, (h, 0), max_trips=trips + 2, checkpoint=checkpoint)
            return pg.sum(loop[0] ** 2) + pg.astype(loop[1], "float64")

        return function

    return made


@pytest.mark.parametrize(
    ("trips", "modes", "checkpoint"),
    [(1, "r", "sqrt"), (4, "r", "sqrt"), (11, "", 8), (11, "r", 8)],
)
def test_loops_of_segments_are_the_loops(trips, modes, checkpoint):
    compare_segments(trips, modes, checkpoint)


@pytest.mark.parametrize("modes", ["rr", "fr", "rf"])
def test_loops_of_segments_have_derivatives_of_order_two(modes):
    compare_segments(5, modes, "sqrt", 2)


def test_loops_of_segments_have_derivatives_of_order_three():
    compare_segments(5, "rrr", "sqrt", 1)


def compare_segments(trips, modes, checkpoint, count=4):
    arrays = [*ARRAYS[:3], numbers(trips, 1, 3, seed=3)]
    loops = [rnn(trips, reverse=True), ending(trips), counting(trips), rnn(trips)]
    for made in loops[:count]:
        graph = traced(derivative(made(checkpoint), modes), *arrays)
        expected = interpret(lower(traced(derivative(made(None), modes), *arrays)), *arrays)
        close(interpret(lower(graph), *arrays), expected, 1e-7)
        close(pg.compile(graph).flat(*arrays), expected, 1e-7)


def test_tensors_have_gradients_through_loops_of_segments():
    arrays = [*ARRAYS[:3], numbers(7, 1, 3, seed=3)]
    found = []
    for checkpoint in ("sqrt", 6, None):
        tensors = [pg.tensor(a, requires_grad=True) for a in arrays]
        loss = rnn(7)(checkpoint)(*tensors)
        loss.backward()
        found.append([loss.numpy(), *[t.grad.numpy() for t in tensors]])
    close(found[0], found[2])
    close(found[1], found[2])


def test_numbers_of_python_begin_loops_of_segments_in_the_dtype_of_the_carry():
    x = numbers(5).astype("float32")
    for checkpoint in (None, "sqrt"):
        graph = traced(
            lambda x, c=checkpoint: pg.scan(lambda c, x: (x * 2, c), 0.0, x, checkpoint=c), x
        )
        assert [t.dtype for t in graph.output_types] == [np.float32] * 2
        found = pg.scan(lambda c, x: (x * 2, c), 0.0, pg.tensor(x), checkpoint=checkpoint)
        assert found[0].dtype == np.float32


def test_segments_take_the_memory_that_is_given():
    assert segments("scan", 10_000, None) == ()
    assert segments("scan", 10_000, "sqrt") == (100,)
    assert segments("scan", 10_000, 10_000) == ()
    assert segments("scan", 10_000, 200) == (100,)
    assert segments("scan", 10_000, 66) == (21 * 22, 21)
    assert [segments("scan", n, "sqrt") for n in range(4)] == [(), (), (), (2,)]
    for trips, most in itertools.product((1, 2, 9, 10, 97, 1000), (12, 20, 31, 70)):
        try:
            lengths = segments("scan", trips, most)
        except pg.ArgumentError:
            assert most < 3 * np.log2(trips)
            continue
        counts, rest = [], trips
        for length in (*lengths, 1):
            counts.append(-(-rest // length))
            rest = length
        assert sum(counts) <= most
        assert trips <= np.prod(counts)


def test_segments_that_cannot_be_made_are_refused():
    def loop(n, checkpoint):
        return pg.trace(
            lambda x: pg.scan(lambda c, x: (c + x, None), 0.0, x, checkpoint=checkpoint), pg.spec(n)
        )

    with pytest.raises(pg.ArgumentError, match=r"1000 trips cannot be computed again from 5: \d+"):
        loop(1000, 5)
    for wrong in ("root", 0, -3, 2.5, True):
        with pytest.raises(pg.ArgumentError, match="checkpoint is"):
            loop(1000, wrong)
    with pytest.raises(pg.ArgumentError, match="which N does not say"):
        loop("N", "sqrt")
    with pytest.raises(pg.ArgumentError, match=r"that is not known(.|\n)*give max_trips"):
        pg.while_loop(lambda v: v < 3, lambda v: v + 1, pg.tensor(0.0), checkpoint="sqrt")


# Memory.


def peak(kernel, *arrays):
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kernel(*arrays)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def recurrent(trips, checkpoint):
    """The cost of a loss, its gradient, and arrays for it; shapes are those of no other test.

    Weights are constants: for a gradient by them cotangents are stacked, too.
    """
    w = numbers(16, 16) / 8

    def loss(h, xs):
        h, _ = pg.scan(lambda h, x: (pg.tanh(h @ w + x), None), h, xs, checkpoint=checkpoint)
        return pg.sum(h * h)

    arrays = [numbers(45, 16), numbers(trips, 1, 16)]
    gradient = pg.compile(pg.trace(lambda *a: pg.grad(loss(*a), a[0]), *arrays))
    return pg.cost(pg.trace(loss, *arrays)), gradient, arrays


def test_residuals_of_a_loop_are_what_is_predicted():
    """The shorter one takes all that does not depend on trips."""
    found = []
    for trips in (500, 3000):
        cost, gradient, arrays = recurrent(trips, None)
        found.append((cost.residual_bytes, peak(gradient, *arrays)))
    # Stacks that a loop leaves in the workspace are there once.
    assert abs(pg.cost(gradient).peak_bytes - found[1][1]) <= 0.02 * found[1][1]
    predicted, measured = np.subtract(found[1], found[0])
    assert abs(measured - predicted) <= 0.01 * predicted


def test_checkpoints_keep_the_square_root_of_what_a_loop_keeps():
    trips = 3600
    plain, gradient, arrays = recurrent(trips, None)
    whole = peak(gradient, *arrays)
    for checkpoint, share in (("sqrt", 0.04), (70, 0.015)):
        cost, gradient, arrays = recurrent(trips, checkpoint)
        assert cost.residual_bytes <= share * plain.residual_bytes
        assert peak(gradient, *arrays) <= (share + 0.01) * whole


def test_functions_with_checkpoints_keep_their_operands():
    def chain(ck):
        def loss(x, w):
            # Each layer is another one, with a workspace of its own.
            for k in range(8):

                def layer(x, k=k):
                    for _ in range(4):
                        x = pg.tanh(pg.sin(x @ w) * (1 + k / 8))
                    return x

                x = ck(layer)(x)
            return pg.sum(x * x)

        return loss

    arrays = [numbers(203, 50), numbers(50, 50) / 5]
    found = {}
    for ck in (same, pg.checkpoint):
        loss = chain(ck)
        gradient = pg.compile(pg.trace(lambda *a, f=loss: pg.grad(f(*a), a[0]), *arrays))
        predicted = pg.cost(pg.trace(loss, *arrays)).residual_bytes
        found[ck] = predicted, peak(gradient, *arrays)
    assert found[pg.checkpoint][0] <= 0.4 * found[same][0]
    assert found[pg.checkpoint][1] <= 0.5 * found[same][1]


# Residuals before the run.


def residuals(function, *shapes):
    return pg.cost(pg.trace(function, *(pg.spec(s) for s in shapes))).residual_bytes


def test_residuals_are_what_the_way_back_needs():
    assert residuals(lambda x: pg.sum(2 * x), 5) == 0
    assert residuals(lambda x: pg.sum(x * x), 5) == 0
    assert residuals(lambda x: pg.sum(pg.exp(x)), 5) == 40
    assert residuals(lambda x, y: pg.sum(pg.exp(x) @ y), (3, 4), (4, 5)) == 8 * 12
    assert residuals(lambda x: pg.argmax(x), 5) == 0

    def loop(x, h, checkpoint=None):
        step = lambda h, x: (pg.exp(h) * x, None)  # noqa: E731
        return pg.sum(pg.scan(step, h, x, checkpoint=checkpoint)[0])

    assert residuals(loop, 100, 3) == 100 * 3 * 8
    assert residuals(lambda x, h: loop(x, h, "sqrt"), 100, 3) == (10 + 10) * 3 * 8
    assert str(residuals(loop, ("N",), ("M",))) == "8*M*N"

    def open_loop(x):
        return pg.while_loop(lambda x: x < 3.0, lambda x: pg.exp(x), x)

    assert str(residuals(open_loop, ())) == f"8*{TRIPS}"


# Prefixes.


def products(xs, **options):
    return pg.associative_scan(
        lambda a, b: {"m": a["m"] @ b["m"], "s": a["s"] + b["s"]}, xs, **options
    )


def products_one_by_one(m, s, reverse):
    order = list(range(m.shape[1]))[:: -1 if reverse else 1]
    m, s = [m[:, k] for k in order], [s[:, k] for k in order]
    for k in range(1, len(order)):
        m[k], s[k] = m[k - 1] @ m[k], s[k - 1] + s[k]
    turn = slice(None, None, -1 if reverse else 1)
    return pg.stack(m[turn], axis=1), pg.stack(s[turn], axis=1)


@pytest.mark.parametrize("reverse_it", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 6, 9])
def test_prefixes_are_those_of_a_loop(count, reverse_it):
    arrays = [numbers(2, count, 3, 3), numbers(2, count, seed=1)]

    def mine(m, s):
        found = products({"m": m, "s": s}, reverse=reverse_it, axis=1)
        return found["m"], found["s"]

    def theirs(m, s):
        return products_one_by_one(m, s, reverse_it)

    for modes in ("", "r", "f", "fr"):
        expected = interpret(lower(traced(derivative(theirs, modes), *arrays)), *arrays)
        in_all_ways(graph := traced(derivative(mine, modes), *arrays), arrays)
        close(interpret(graph, *arrays), expected)
    found = mine(*map(pg.tensor, arrays))
    close([t.numpy() for t in found], interpret(traced(theirs, *arrays), *arrays))
    many = batch(lower(traced(mine, *arrays)), 2, (0, None))
    stacked = [np.stack([arrays[0], arrays[0] * 2]), arrays[1]]
    each = [interpret(traced(mine, *arrays), m, arrays[1]) for m in stacked[0]]
    close(interpret(many, *stacked), [np.stack(pair) for pair in zip(*each, strict=True)])


def test_prefixes_take_few_equations_and_any_containers():
    def size(n):
        return len(lower(pg.trace(lambda x: pg.associative_scan(pg.add, x), pg.spec(n))).body)

    assert size(2**16) - size(2**15) == size(2**9) - size(2**8)
    assert pg.associative_scan(pg.maximum, np.array([1, 3, 2, 5])).tolist() == [1, 3, 3, 5]
    assert pg.associative_scan(pg.add, np.zeros((0, 2))).shape == (0, 2)
    a, (b,) = pg.associative_scan(lambda x, y: (x[0] + y[0], [x[1][0] * y[1][0]]), (X4, [X4]))
    close([a, b], [np.cumsum(X4), np.cumprod(X4)])
    # A linear recurrence y' = a y + b, as in state space models.
    a, b = numbers(20), numbers(20, seed=1)
    _, y = pg.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b))
    expected = [0.0]
    for k in range(20):
        expected.append(a[k] * expected[-1] + b[k])
    close([y], [np.array(expected[1:])])


X4 = np.array([1.0, 2.0, 3.0, 4.0])


def test_prefixes_that_cannot_be_are_refused():
    with pytest.raises(pg.ShapeError, match="halve N elements is not known"):
        pg.trace(lambda x: pg.associative_scan(pg.add, x), pg.spec(("N",)))
    with pytest.raises(pg.ShapeError, match="differ: 2 and 3"):
        pg.associative_scan(lambda a, b: a, (np.zeros(2), np.zeros(3)))
    with pytest.raises(pg.ShapeError, match=r"f returned f64\[\], but its arguments are f64\[2\]"):
        pg.associative_scan(lambda a, b: pg.sum(a), X4)
    with pytest.raises(pg.DTypeError, match="astype"):
        pg.associative_scan(lambda a, b: pg.astype(a, "float32"), X4)
    with pytest.raises(pg.ArgumentError, match="f returned 1, not an array"):
        pg.associative_scan(lambda a, b: 1, X4)
    with pytest.raises(pg.ArgumentError, match="f is a function"):
        pg.associative_scan(X4, X4)
    with pytest.raises(pg.ShapeError, match="axis"):
        pg.associative_scan(pg.add, X4, axis=1)


def test_a_part_of_a_checkpoint_that_is_not_linear_stands_alone():
    """What depends on other operands only has none of the equations that are linear."""
    graph = pg.trace(pg.checkpoint(lambda a, b: (pg.sin(a), a * b)), pg.spec(()), pg.spec(()))
    with pytest.raises(MissingRuleError, match="output 0"):
        transpose(graph, [1])
    (found,) = interpret(transpose(graph.with_outputs(graph.outputs[1:]), [1]), 3.0, 2.0)
    assert found == 6.0


def test_zeros_of_a_checkpoint_have_a_transpose():
    graph = parse("""graph f(%d: f64[]) {
  %0: f64[], %1: f64[] = checkpoint(%d, body=graph body(%d: f64[]) {
    %0: f64[] = full(dtype=f64, shape=(), value=0.0)
    return %0, %d
  })
  return %0, %1
}
""")
    assert interpret(transpose(graph, [0]), 5.0, 3.0) == [3.0]


def test_trips_whose_results_are_used_are_made_once_before_those_back():
    """The loop that keeps where segments begin is the one that gives the results of all trips."""

    def value_and_slope(w, xs):
        _, ys = pg.scan(
            lambda c, x: (pg.tanh(w * c + x), pg.sin(c)), pg.zeros(3), xs, checkpoint="sqrt"
        )
        value = pg.sum(ys * ys)
        return value, pg.grad(value, w)

    graph = clean_up(lower(traced(value_and_slope, numbers(3), numbers(16, 3, seed=1))))
    assert [e.kwargs["reverse"] for e in graph.body if e.op.name == "scan"] == [False, True]


@pytest.mark.parametrize("loops", [0, 1, 2])
def test_an_operand_that_no_branch_uses_has_no_slope_through_checkpoints(loops):
    """What a `where` leaves out puts no NaN into the gradient."""

    def chosen(y, v):
        taken = pg.sum(y) > 1e9
        first, _ = pg.cond(taken, lambda a, b: (a, b[::-1]), lambda a, b: (pg.tanh(a), b), y, v)
        return pg.tanh(v), first

    def looped(depth, x, y):
        masked = pg.where(x > 0.01, pg.sqrt(x) * x, x)
        if depth == 0:
            return pg.checkpoint(chosen)(y, masked)[1]
        return pg.while_loop(
            lambda c: c[0] < 2,
            lambda c: (c[0] + 1, pg.checkpoint(lambda x, y: looped(depth - 1, x, y))(x, c[1])),
            (0, y),
            max_trips=3,
        )[1]

    def unmasked(depth, x, y):
        for _ in range(2**depth):
            y = pg.tanh(y)
        return y

    x = np.array([-0.5, 0.3])
    found = pg.jit(pg.grad(lambda x: pg.sum(looped(loops, x, 0.1 + 0.5 * x))))(x)
    expected = pg.jit(pg.grad(lambda x: pg.sum(unmasked(loops, x, 0.1 + 0.5 * x))))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    tensor = pg.tensor(x, requires_grad=True)
    pg.sum(looped(loops, tensor, 0.1 + 0.5 * tensor)).backward()
    np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-12)
