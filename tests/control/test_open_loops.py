"""Reverse mode through `while_loop` without a bound on trips: stacks that grow, of all orders."""

import itertools
import pickle
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from test_loops import close, forward, in_all_ways, numbers, operators, reverse, summed, traced

import primgraph as pg
from primgraph.ir.dims import TRIPS, is_open, size
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.verify import verify
from primgraph.transforms import batch, clean_up, linearize, lower, transpose, unzip

# Loops whose trips depend on numbers, and the same trips one by one; which these are is found by
# the second one, as Python runs it on arrays.


def grown(w, h, xs):
    """Until a sum of squares is large; it takes several trips."""
    return pg.while_loop(
        lambda v: pg.sum(v * v) < 30.0, lambda v: pg.sin(v) @ w + 1.4 * v + xs[0], h
    )


def grown_by_hand(w, h, xs, say):
    while say(pg.sum(h * h) < 30.0):
        h = pg.sin(h) @ w + 1.4 * h + xs[0]
    return h


def counted(w, h, xs):
    """What is carried is a container; one carry is an integer, one is forgotten in each trip."""

    def body(state):
        return {
            "h": pg.tanh(state["h"] @ w) * state["last"] + h,
            "n": state["n"] + 1,
            "last": pg.sum(state["h"]) * 0.5,
        }

    state = {"h": h, "n": 0, "last": pg.sum(xs)}
    end = pg.while_loop(lambda s: s["n"] < 3, body, state)
    return end["h"] * end["last"], end["h"]


def counted_by_hand(w, h, xs, say):
    first, last = h, pg.sum(xs)
    for _ in range(3):
        h, last = pg.tanh(h @ w) * last + first, pg.sum(h) * 0.5
    return h * last, h


def in_scan(w, h, xs):
    """Rows make different numbers of trips, so that what is kept would be ragged."""

    def step(h, x):
        h = pg.while_loop(lambda v: pg.sum(v * v) < 3.0, lambda v: 1.5 * pg.sin(v) @ w + v + x, h)
        return 0.3 * h, pg.cos(h)

    return pg.scan(step, h, xs)


def in_scan_by_hand(w, h, xs, say):
    found = []
    for k in range(xs.shape[0]):
        while say(pg.sum(h * h) < 3.0):
            h = 1.5 * pg.sin(h) @ w + h + xs[k]
        found.append(pg.cos(h))
        h = 0.3 * h
    return h, pg.stack(found)


def in_branch(w, h, xs):
    def step(h, x):
        return pg.cond(
            x[0] > 0.0,
            lambda h: pg.while_loop(
                lambda v: pg.sum(v * v) < 5.0, lambda v: v @ w + 1.5 * v + x, h
            ),
            lambda h: pg.tanh(h) * x,
            h,
        ), None

    return pg.scan(step, h, xs)[0]


def in_branch_by_hand(w, h, xs, say):
    for k in range(xs.shape[0]):
        x = xs[k]
        if say(x[0] > 0.0):
            while say(pg.sum(h * h) < 5.0):
                h = h @ w + 1.5 * h + x
        else:
            h = pg.tanh(h) * x
    return h


def in_loop(w, h, xs):
    """A while in a while in a while."""

    def inner(v):
        return pg.while_loop(lambda v: pg.sum(v * v) < 2.0, lambda v: 1.3 * v + pg.sin(v) @ w, v)

    def middle(state):
        v, n = state
        return 0.5 * inner(v) + xs[0], n + 1

    def outer(state):
        v, n = state
        v, _ = pg.while_loop(lambda s: s[1] < 2, middle, (v, 0))
        return pg.sin(v), n + 1

    return pg.while_loop(lambda s: s[1] < 2, outer, (h, 0))[0]


def in_loop_by_hand(w, h, xs, say):
    for _ in range(2):
        for _ in range(2):
            while say(pg.sum(h * h) < 2.0):
                h = 1.3 * h + pg.sin(h) @ w
            h = 0.5 * h + xs[0]
        h = pg.sin(h)
    return h


def with_scan(w, h, xs):
    """A scan and a branch in a while."""

    def body(v):
        v, ys = pg.scan(lambda c, x: (c @ w + x, pg.sin(c)), v, xs)
        v = pg.cond(v[0] > 0.0, lambda: v + pg.sum(ys, axis=0), lambda: v * 2.0)
        return v + 0.7

    return pg.while_loop(lambda v: pg.sum(v) < 9.0, body, h)


def with_scan_by_hand(w, h, xs, say):
    while say(pg.sum(h) < 9.0):
        ys = []
        for k in range(xs.shape[0]):
            ys.append(pg.sin(h))
            h = h @ w + xs[k]
        h = (h + sum(ys[1:], ys[0]) if say(h[0] > 0.0) else h * 2.0) + 0.7
    return h


def bounded_by_a_variable(w, h, xs):
    n = pg.astype(2.5 + 0.0 * pg.sum(xs), "int64")
    return pg.fori_loop(0, n, lambda i, v: pg.sin(v) @ w + xs[i] * pg.astype(i, "float64"), h)


def bounded_by_a_variable_by_hand(w, h, xs, say):
    for i in range(2):
        h = pg.sin(h) @ w + xs[i] * float(i)
    return h


PAIRS = {
    "grown": (grown, grown_by_hand),
    "counted": (counted, counted_by_hand),
    "in_scan": (in_scan, in_scan_by_hand),
    "in_branch": (in_branch, in_branch_by_hand),
    "in_loop": (in_loop, in_loop_by_hand),
    "with_scan": (with_scan, with_scan_by_hand),
    "bounded_by_a_variable": (bounded_by_a_variable, bounded_by_a_variable_by_hand),
}
ARRAYS = [numbers(2, 2), numbers(2, seed=1), numbers(3, 2, seed=2)]
every_pair = pytest.mark.parametrize("name", PAIRS)


def unrolled(name, arrays):
    """The function of the trips that there are for these arrays, one by one."""
    by_hand, said = PAIRS[name][1], []

    def say(condition):
        said.append(bool(condition))
        return said[-1]

    by_hand(*map(pg.tensor, arrays), say)

    def trips(*given):
        answers = iter(said)
        return by_hand(*given, lambda condition: next(answers))

    return trips


def one_by_one(name, modes, arrays=ARRAYS):
    return interpret(lower(traced(derived(unrolled(name, arrays), modes), *arrays)), *arrays)


def derived(function, modes):
    for mode in modes:
        function = (reverse if mode == "r" else forward)(summed(function))
    return function


@every_pair
def test_gradients_are_those_of_the_trips_one_by_one(name, tmp_path):
    found = in_all_ways(traced(derived(PAIRS[name][0], "r"), *ARRAYS), ARRAYS, tmp_path)
    close(found, one_by_one(name, "r"), 1e-7)


@pytest.mark.parametrize(
    ("name", "modes"),
    [
        ("grown", "fr"),
        ("grown", "rf"),
        ("grown", "rrr"),
        ("counted", "frf"),
        ("in_scan", "rr"),
        ("in_branch", "rr"),
        ("in_loop", "rf"),
        ("with_scan", "rr"),
    ],
)
def test_derivatives_of_higher_order_are_those_of_the_trips_one_by_one(name, modes):
    """The modes are taken from the left to the right: `fr` is reverse mode over forward mode."""
    expected = one_by_one(name, modes)
    graph = clean_up(lower(traced(derived(PAIRS[name][0], modes), *ARRAYS)))
    close(interpret(verify(graph), *ARRAYS), expected, 1e-7)
    for style in ("planned", "readable"):
        close(pg.compile(graph, style=style)(*ARRAYS), expected, 1e-7)


@pytest.mark.parametrize("name", ["grown", "in_scan", "in_branch"])
def test_a_kernel_serves_arrays_that_make_other_numbers_of_trips(name):
    """Whatever was in a stack before, and however long it was."""
    graph = traced(derived(PAIRS[name][0], "r"), *ARRAYS)
    kernels = [pg.compile(graph, style=style).flat for style in ("planned", "readable")]
    for scale in (1.0, 1e-9, 2.0, 1.0):
        arrays = [a * (1.0 if k == 0 else scale) for k, a in enumerate(ARRAYS)]
        expected = one_by_one(name, "r", arrays)
        for kernel in kernels:
            close(kernel(*arrays), expected, 1e-7)


@pytest.mark.parametrize("name", ["grown", "counted", "in_scan", "in_branch"])
def test_a_batch_is_a_loop_over_samples(name):
    graph = lower(traced(derived(PAIRS[name][0], "r"), *ARRAYS))
    samples = [[a * s for a in ARRAYS] for s in (1.0, 0.25, 0.6)]
    for flags in ((0, 0, 0), (None, 0, None), (0, None, None)):
        many = verify(batch(graph, 3, flags))
        arrays = [
            [a if f is None else s[i] for i, (a, f) in enumerate(zip(ARRAYS, flags, strict=True))]
            for s in samples
        ]
        feeds = [
            a if f is None else np.stack([s[i] for s in samples])
            for i, (a, f) in enumerate(zip(ARRAYS, flags, strict=True))
        ]
        expected = [np.stack(c) for c in zip(*[interpret(graph, *a) for a in arrays], strict=True)]
        close(interpret(many, *feeds), expected)
        if flags == (0, 0, 0):
            for style in ("planned", "readable"):
                close(pg.compile(many, style=style)(*feeds), expected)


@pytest.mark.parametrize("name", ["grown", "in_branch"])
def test_the_derivative_of_a_batch_is_that_of_its_samples(name):
    def many(w, hs, xs):
        return pg.vmap(lambda h: PAIRS[name][0](w, h, xs))(hs)

    hs = np.stack([ARRAYS[1] * s for s in (1.0, 0.25, 3.0)])
    arrays = [ARRAYS[0], hs, ARRAYS[2]]
    each = [one_by_one(name, "r", [ARRAYS[0], h, ARRAYS[2]]) for h in hs]
    found = in_all_ways(traced(derived(many, "r"), *arrays), arrays)
    close([found[1], found[2]], [np.stack([e[1] for e in each]), sum(e[2] for e in each)], 1e-7)


# Numbers of trips, masks, solvers.


def newton(a):
    """Where x = a cos(x), element by element, by Newton's method."""

    def step(state):
        x, _ = state
        change = (x - a * pg.cos(x)) / (1.0 + a * pg.sin(x))
        return x - change, pg.max(pg.abs(change))

    return pg.while_loop(lambda s: s[1] > 1e-13, step, (pg.ones_like(a), 1.0))[0]


def test_the_gradient_of_a_solver_is_the_implicit_one():
    a = np.linspace(0.1, 0.9, 1000)
    kernel = pg.compile(pg.trace(lambda a: [newton(a), pg.grad(pg.sum(newton(a)), a)], a))
    for _ in range(2):
        x, slope = kernel(a)
        np.testing.assert_allclose(slope, np.cos(x) / (1.0 + a * np.sin(x)), rtol=0, atol=1e-12)
    assert operators(kernel.graph) == ["while_loop", "scan"]


def test_orders_of_a_solver_are_those_of_the_solution():
    def slopes(order, a):
        function = lambda a: pg.sum(newton(a))  # noqa: E731
        for _ in range(order):
            function = lambda a, f=function: pg.sum(pg.grad(f(a), a))  # noqa: E731
        return function(a)

    a, small = np.array([0.3, 0.7]), 1e-5

    def first(a):
        x = np.ones_like(a)
        for _ in range(60):
            x = x - (x - a * np.cos(x)) / (1.0 + a * np.sin(x))
        return np.cos(x) / (1.0 + a * np.sin(x))

    close([pg.compile(pg.trace(lambda a: slopes(1, a), a))(a)], [np.sum(first(a))])
    second = (first(a + small) - first(a - small)) / (2 * small)
    close([pg.compile(pg.trace(lambda a: slopes(2, a), a))(a)], [np.sum(second)], 1e-7)
    bend = (first(a + 1e-4) - 2 * first(a) + first(a - 1e-4)) / 1e-8
    close([pg.compile(pg.trace(lambda a: slopes(3, a), a))(a)], [np.sum(bend)], 1e-5)


def test_no_trips_give_the_slopes_of_what_was_there():
    def gradient(x, y):
        end = pg.while_loop(lambda v: pg.sum(v) < 1.0, lambda v: v * y + pg.sin(v), x)
        return pg.grad(pg.sum(end * end), [x, y])

    x, y = np.array([1.0, 2.0]), np.array(0.7)
    graph = traced(gradient, x, y)
    close(in_all_ways(graph, [x, y]), [2 * x, np.array(0.0)])
    hessian = traced(lambda x, y: pg.grad(pg.sum(gradient(x, y)[0]), [x, y]), x, y)
    close(in_all_ways(hessian, [x, y]), [np.full(2, 2.0), np.array(0.0)])


def test_samples_that_are_done_spoil_no_derivative():
    """What goes on without them would be the root of a negative number."""

    def shrunk(x):
        return pg.while_loop(lambda v: v > 0.3, lambda v: pg.sqrt(v - 0.3), x)

    xs = np.array([0.35, 0.2, 1.5])
    each = traced(lambda x: pg.grad(shrunk(x), x), 0.4)
    expected = np.array([interpret(each, x)[0] for x in xs])
    assert np.isfinite(expected).all()
    close(in_all_ways(batch(lower(each), 3), [xs]), [expected])
    graph = traced(lambda xs: pg.grad(pg.sum(pg.vmap(shrunk)(xs)), xs), xs)
    close(in_all_ways(graph, [xs]), [expected])
    bends = traced(lambda x: pg.grad(pg.grad(shrunk(x), x), x), 0.4)
    expected = np.array([interpret(bends, x)[0] for x in xs])
    assert np.isfinite(expected).all()
    close(in_all_ways(batch(lower(bends), 3), [xs]), [expected], 1e-7)


def test_a_forgotten_carry_and_one_that_stays():
    def loop(x, n):
        def body(s):
            _, b, k = s
            return pg.asarray(2.0) + 0.0 * b, b * 1.5, k + 1

        a, b, _ = pg.while_loop(lambda s: s[2] < n, body, (x, x, 0))
        return a * b

    graph = traced(lambda x, n: pg.grad(loop(x, n), x), 1.5, 0)
    for n, slope in ((0, 3.0), (1, 3.0), (3, 2 * 1.5**3)):
        close(in_all_ways(graph, [np.array(1.5), np.array(n)]), [np.array(slope)])


# What is linear, and what only stands beside it: the same in forward mode and where it is turned.


def recomputed(step, state):
    return pg.checkpoint(step)(*state)


def chosen(step, state):
    return pg.cond(pg.sum(state[0]) < 9.0, lambda: step(*state), lambda: state)


def scanned(step, state):
    return pg.scan(lambda s, _: (step(*s), None), state, None, length=2)[0]


def repeated(step, state, limit=None):
    def trip(s):
        return (*step(*s[:-1]), s[-1] + 1)

    return pg.while_loop(lambda s: s[-1] < 2, trip, (*state, 0), max_trips=limit)[:-1]


def bounded(step, state):
    return repeated(step, state, 3)


def beside(a, b, c):
    """Each by itself: of what two of them begin with nothing reaches the third."""
    return pg.sin(a), pg.cos(b), 0.5 * c


def handed_on(a, b, c):
    """The first reaches the last by the second, a trip later."""
    return pg.sin(a), pg.cos(b) + a, 0.5 * c * b


@pytest.mark.parametrize("outer", [recomputed, chosen, scanned, bounded, repeated])
def test_tangents_of_bodies_within_bodies_are_linear_in_what_reaches_them(outer):
    """A zero in each trip is no tangent: beside what is linear it would be a constant."""
    x = [np.array([0.3, 0.7]), np.array([1.1, -0.4]), np.array([0.8, 0.9])]
    pairs = itertools.product([recomputed, chosen, scanned, bounded, repeated], [beside, handed_on])
    for inner, step in pairs:

        def function(*state, inner=inner, step=step):
            a, b, c = outer(lambda *s: inner(step, s), state)
            return a * b * c + pg.sin(b)

        graph = lower(pg.trace(function, *x))
        for wrt in ([0], [1], [0, 2]):
            jvp = linearize(graph, wrt)
            turned = transpose(jvp.with_outputs(jvp.outputs[1:]), range(3, 3 + len(wrt)))
            found = interpret(turned, *x, np.ones(2))
            for place, slope in zip(wrt, found, strict=True):
                moves = [np.where(place == k, 1e-5, 0.0) for k in range(3)]
                (above,) = interpret(graph, *[v + h for v, h in zip(x, moves, strict=True)])
                (below,) = interpret(graph, *[v - h for v, h in zip(x, moves, strict=True)])
                close([slope], [(above - below) / 2e-5], 1e-8)


def test_a_guard_that_is_the_same_in_all_trips_is_no_stack():
    """Where `y` matters after the loop, so does what each trip multiplies it by."""

    def loss(h, xs):
        def row(s, x):
            def trip(state):
                y, t, n = state
                return y * t + pg.sin(y), pg.sqrt(t), n + 1

            y, _, _ = pg.while_loop(lambda v: v[2] < 3, trip, (s, pg.sum(s), 0))
            return pg.where(x > 1.0, pg.sqrt(y), s), None

        return pg.sum(pg.scan(row, h, xs)[0] ** 2)

    h, xs = np.array([0.3, 0.7]), np.array([[1.1, 0.9], [1.2, 0.8]])
    (found,) = interpret(lower(traced(lambda h, xs: pg.grad(loss(h, xs), h), h, xs)), h, xs)
    graph = lower(traced(loss, h, xs))
    for slope, step in zip(found, 1e-5 * np.eye(2), strict=True):
        (above,), (below,) = interpret(graph, h + step, xs), interpret(graph, h - step, xs)
        close([slope], [(above - below) / 2e-5], 1e-8)


# In programs, with tensors, under jit, at sizes that are not known yet.


def test_programs_and_jit_go_back_through_loops_without_a_bound():
    a = np.array([0.2, 0.6])
    x = pg.compile(pg.trace(newton, a))(a)
    expected = np.cos(x) / (1.0 + a * np.sin(x))
    with pg.Program() as program:
        given = pg.data("a", ("N",))
        slope = pg.grad(pg.sum(newton(given)), given)
    for n in (2, 2, 1):
        (found,) = pg.Executor().run(program, {"a": a[:n]}, [slope])
        close([found], [expected[:n]])
    for function in (newton, pg.jit(newton)):
        t = pg.tensor(a, requires_grad=True)
        pg.sum(function(t)).backward()
        close([t.grad.numpy()], [expected])
    close([pg.grad(lambda a: pg.sum(newton(a)))(a)], [expected])
    many = np.stack([a, a / 2])
    found = pg.vmap(pg.grad(lambda a: pg.sum(newton(a))))
    for _ in range(3):
        close([found(many)[0]], [expected])
    jacobian = pg.jacobian(newton)(a)
    close([np.asarray(jacobian)], [np.diag(expected)])


def test_sizes_of_inputs_and_stacks_that_grow_are_told_apart(tmp_path):
    graph = traced(lambda a: pg.grad(pg.sum(newton(a)), a), pg.spec(("N",)))
    assert graph.sizes == ("N",)
    kernel, readable = (pg.compile(graph, style=style) for style in ("planned", "readable"))
    for n in (3, 1, 0):
        a = np.linspace(0.2, 0.8, n)
        if n:
            expected = interpret(graph, a)
            close([kernel(a)], expected)
            close([readable(a)], expected)
    known = pg.transforms.instantiate(graph, {"N": 2})
    assert not known.sizes
    assert any(is_open(v.shape) for e in known.body for v in e.outputs)


# What is recorded.


def test_stacks_that_grow_have_text_and_names_of_their_own():
    graph = clean_up(lower(traced(lambda a: pg.grad(pg.sum(newton(a)), a), np.ones(2))))
    text = str(graph)
    assert "f64[?,2]" in text
    assert "length=?" in text
    assert parse(text) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert pickle.loads(pickle.dumps(TRIPS)) is TRIPS
    for words in ("?", "?+1"):
        with pytest.raises(pg.PrimgraphError):
            pg.dim(words)
        with pytest.raises(pg.PrimgraphError):
            pg.spec((words,))
    assert size("N") * TRIPS == TRIPS * size("N")
    assert (2 * TRIPS).names == frozenset()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("%1: f64[?] = sin(%0)\n  return %1", "is no loop, and takes or gives a stack"),
        ("%1: f64[?] = add(%0, %0)\n  return %1", "is no loop, and takes or gives a stack"),
    ],
)
def test_only_loops_take_and_give_stacks_that_grow(text, fault):
    with pytest.raises(pg.PrimgraphError, match=fault):
        verify(parse(f"graph f(%0: f64[?]) {{\n  {text}\n}}"))


def test_a_stack_that_grows_is_neither_fed_nor_returned_nor_taken_by_a_body():
    graph = clean_up(lower(traced(lambda a: pg.grad(newton(a), a), np.ones(2))))
    (stack, *_) = [v for e in graph.body for v in e.outputs if is_open(v.shape)]
    for target in ("numpy", "c", "auto"):
        with pytest.raises(pg.BuildError, match="stacks that grow are for loops"):
            pg.compile(graph.with_outputs([stack]), target=target)
    text = """graph f(%0: f64[?], %1: f64[]) {
  %2: f64[] = scan(%0, %1, body=graph g(%0: f64[?], %1: f64[]) {
    return %1
  }, carries=1, consts=1, counted=False, length=3, reverse=False)
  return %2
}"""
    with pytest.raises(pg.LoadError, match="a body takes or gives"):
        parse(text)


def test_the_loop_is_there_once_and_keeps_each_value_once():
    def both(a):
        y = pg.sum(newton(a))
        return [y, pg.grad(y, a)]

    graph = clean_up(lower(traced(both, np.ones(2))))
    loop, back = [e for e in graph.body if e.op.has_bodies]
    assert (loop.op.name, back.op.name) == ("while_loop", "scan")
    body = loop.kwargs["body"]
    assert len(set(body.outputs)) == len(body.outputs)
    second = traced(lambda a: pg.grad(pg.sum(pg.grad(pg.sum(newton(a)), a)), a), np.ones(2))
    assert operators(clean_up(lower(second))).count("while_loop") == 1


def test_a_loop_in_another_is_run_again_for_what_it_would_keep():
    """Rows of stacks have one type: what rows of different lengths would be is computed again."""
    graph = clean_up(lower(traced(derived(in_scan, "r"), *ARRAYS)))
    first, second = [e for e in graph.body if e.op.has_bodies]
    assert [e.op.name for e in first.kwargs["body"].body if e.op.has_bodies] == ["while_loop"]
    inner = [e for e in second.kwargs["body"].body if e.op.has_bodies]
    assert [e.op.name for e in inner] == ["while_loop", "scan"]


def test_unzip_runs_the_loop_in_both_parts():
    graph = linearize(lower(traced(lambda a: pg.sum(newton(a)), np.ones(2))))
    primal, linear = map(verify, unzip(graph, [1]))
    a, da = np.array([0.3, 0.5]), np.array([1.0, -2.0])
    y, *kept = interpret(primal, a)
    close([y, *interpret(linear, *kept, da)], interpret(graph, a, da))
    turned = verify(transpose(graph.with_outputs(graph.outputs[1:]), [1]))
    (back,) = interpret(turned, a, np.array(1.0))
    close([np.sum(back * da)], interpret(graph, a, da)[1:])


def test_readable_code_puts_rows_into_lists_and_goes_back_along_them():
    kernel = pg.compile(pg.trace(lambda a: pg.grad(newton(a), a), np.ones(2)), style="readable")
    lines = [line.strip() for line in kernel.source.splitlines()]
    assert "stack0 = []" in lines
    assert any(line.startswith("stack0.append(") for line in lines)
    assert any("reversed(stack0)" in line for line in lines)
    assert "trips" not in kernel.source
    assert pg.cost(kernel.graph).flops > 0
    assert pg.cost(kernel).peak_bytes > 0


@pytest.mark.usefixtures("interrupts")
def test_a_loop_that_never_ends_can_be_interrupted(tmp_path):
    """Nothing is lost: the kernel, the program and what is fed are as they were."""

    def loop(x):
        return pg.while_loop(lambda v: pg.sum(v) > 0.0, lambda v: v * 1.0 + 0.0 * pg.sin(v), x)

    graph = pg.trace(lambda x: pg.grad(pg.sum(loop(x)), x), np.ones(2))
    for style in ("planned", "readable"):
        kernel = pg.compile(graph, style=style)
        x = np.ones(2)
        with interrupted():
            kernel(x)
        assert np.array_equal(x, np.ones(2))
        for _ in range(2):
            close([kernel(-x)], [np.ones(2)])
    with pg.Program() as program:
        given = pg.data("x", (2,))
        slope = pg.grad(pg.sum(loop(given)), given)
    executor = pg.Executor()
    with interrupted():
        executor.run(program, {"x": np.ones(2)}, [slope])
    close(executor.run(program, {"x": -np.ones(2)}, [slope]), [np.ones(2)])
    with interrupted():
        loop(pg.tensor(np.ones(2)))


@contextmanager
def interrupted():
    """What runs in it gets Ctrl-C after a moment."""
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()
