"""Solutions of equations by `pg.fixed_point` and `pg.root`: values, derivatives, batches, errors.

The reference makes many trips of the same iteration by `pg.fori_loop`, and is differentiated
through all of them.
"""

import pickle
import re
import runpy

import numpy as np
import pytest

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.verify import verify
from primgraph.transforms import batch, clean_up, linearize, lower, transpose


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


def traced(function, *arrays):
    graph = verify(pg.trace(function, *arrays))
    assert parse(str(graph), graph.constants) == graph
    assert parse(str(lower(graph)), graph.constants) == lower(graph)
    return graph


def close(found, expected, tolerance=1e-9):
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def repeated(f, x0):
    return pg.fixed_point(f, x0)


def damped(f, x0):
    return pg.fixed_point(f, x0, damping=0.8)


def minus(x, y):
    if isinstance(x, dict):
        return {key: minus(x[key], y[key]) for key in x}
    return x - y


def newton(f, x0):
    return pg.root(lambda x: minus(x, f(x)), x0)


def stepped(f, x0):
    return pg.root(lambda x: minus(x, f(x)), x0, step=f)


def by_products(f, x0):
    return pg.root(lambda x: minus(x, f(x)), x0, linear_solver="gmres")


def known(f, x0):
    return pg.solvers.implicit(lambda x: minus(x, f(x)), unrolled(f, x0))


def corrected(f, x0):
    return pg.solvers.broyden(lambda x: minus(x, f(x)), x0)


def unrolled(f, x0):
    return pg.fori_loop(0, 45, lambda i, x: f(x), x0)


WAYS = {
    "repeated": repeated, "damped": damped, "newton": newton, "stepped": stepped,
    "by_products": by_products, "known": known, "corrected": corrected,
}  # fmt: skip


# Equations of one variable around, as functions of what solves them.


def equilibrium(solve, w, b, xs):
    return solve(lambda z: pg.tanh(0.5 * z @ w + b), b * 0.0)


def coupled(solve, w, b, xs):
    def f(state):
        u, v = state["u"], state["v"]
        return {"u": 0.4 * pg.sin(u @ w + v), "v": 0.3 * pg.cos(v * b) + 0.1 * pg.sum(u)}

    found = solve(f, {"u": pg.zeros((1, 2)), "v": 1.0 + 0.0 * b})
    return found["u"] * found["v"]


def scanned(solve, w, b, xs):
    def step(h, x):
        h = solve(lambda z: pg.tanh(0.4 * z @ w + x + 0.3 * h), h)
        return h, h * b

    h, ys = pg.scan(step, b, xs)
    return pg.sum(ys, axis=0) + h


def chosen(solve, w, b, xs):
    def smooth(b):
        return solve(lambda z: pg.tanh(0.5 * z @ w + b), b)

    return pg.cond(pg.sum(b) > 0.0, smooth, pg.sin, b) + pg.cond(pg.sum(b) < 0.0, smooth, pg.cos, b)


def within(solve, w, b, xs):
    """An equation in an equation."""

    def outer(y):
        return solve(lambda z: 0.3 * pg.sin(z + y) + b, y) * 0.4 + 0.1 * y @ w

    return solve(outer, b)


def looped(solve, w, b, xs):
    """A loop in an equation."""

    def f(z):
        return pg.scan(lambda c, x: (pg.tanh(0.5 * c @ w + x), None), z, xs)[0] * 0.5 + 0.1 * b

    return solve(f, b)


CASES = {f.__name__: f for f in (equilibrium, coupled, scanned, chosen, within, looped)}
ARRAYS = [numbers(2, 2), numbers(1, 2, seed=1), numbers(3, 1, 2, seed=2)]
every_case = pytest.mark.parametrize("name", CASES)


def of(name, way):
    case, solve = CASES[name], WAYS.get(way, unrolled)
    return lambda *arrays: case(solve, *arrays)


def reverse(function):
    def gradient(*arrays):
        return pg.grad(pg.sum(pg.sin(function(*arrays))), list(arrays))

    return gradient


def forward(function):
    def slopes(*arrays):
        return pg.forward_grad(function(*arrays), list(arrays), [pg.sin(a + 1.0) for a in arrays])

    return slopes


def first(function):
    """The first of the results, of which a derivative is taken again."""

    def one(*arrays):
        found = function(*arrays)
        return found[0] if isinstance(found, list | tuple) else found

    return one


def derived(function, modes):
    for mode in modes:
        function = (reverse if mode == "r" else forward)(first(function))
    return function


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, "newton") for name in CASES), *(("coupled", way) for way in WAYS),
     ("scanned", "by_products"), ("chosen", "known"),
     ("within", "repeated"), ("scanned", "stepped")],
)  # fmt: skip
def test_a_solution_is_where_the_iteration_goes(name, way, tmp_path):
    graph = traced(of(name, way), *ARRAYS)
    expected = interpret(traced(of(name, "unrolled"), *ARRAYS), *ARRAYS)
    close(interpret(graph, *ARRAYS), expected)
    with pg.transforms.debug():
        close(interpret(verify(clean_up(lower(graph))), *ARRAYS), expected)
        for style in ("planned", "readable"):
            kernel = pg.compile(graph, style=style).flat
            close(kernel(*ARRAYS), expected)
    kernel.save(tmp_path / "k.py", force=True)
    close([runpy.run_path(str(tmp_path / "k.py"))[graph.name](*ARRAYS)], expected)


@every_case
@pytest.mark.parametrize("way", ["repeated", "newton", "by_products"])
@pytest.mark.parametrize("modes", ["r", "f"])
def test_derivatives_are_those_of_many_trips(name, way, modes):
    graph = traced(derived(of(name, way), modes), *ARRAYS)
    expected = interpret(traced(derived(of(name, "unrolled"), modes), *ARRAYS), *ARRAYS)
    close(interpret(lower(graph), *ARRAYS), expected, 1e-8)
    close(pg.compile(graph).flat(*ARRAYS), expected, 1e-8)


@pytest.mark.parametrize(
    ("name", "way", "modes"),
    [
        ("equilibrium", "repeated", "rr"),
        ("equilibrium", "repeated", "ff"),
        ("equilibrium", "newton", "frf"),
        ("equilibrium", "damped", "rrr"),
        ("coupled", "newton", "rr"),
        ("coupled", "repeated", "fr"),
        ("scanned", "repeated", "rf"),
        ("within", "stepped", "rr"),
        ("within", "by_products", "fr"),
        ("coupled", "by_products", "rf"),
        ("scanned", "known", "rr"),
        ("coupled", "corrected", "fr"),
    ],
)
def test_derivatives_of_higher_orders_are_those_of_many_trips(name, way, modes):
    graph = traced(derived(of(name, way), modes), *ARRAYS)
    expected = traced(derived(of(name, "unrolled"), modes), *ARRAYS)
    close(pg.compile(graph).flat(*ARRAYS), pg.compile(expected).flat(*ARRAYS), 1e-7)


def slopes_of_cosine(a):
    """`x = a cos(x)`, and its first three derivatives by `a`: of the equation by hand, and of
    these by complex steps."""

    def slope(a):
        x = complex(0.5)
        for _ in range(60):
            x = x - (x - a * np.cos(x)) / (1.0 + a * np.sin(x))
        return x, np.cos(x) / (1.0 + a * np.sin(x))

    step = 1e-20
    x, first = slope(a)
    second = slope(a + 1j * step)[1].imag / step
    third = (slope(a + 1e-4 + 1j * step)[1] - slope(a - 1e-4 + 1j * step)[1]).imag / step / 2e-4
    return [x.real, first.real, second, third]


@pytest.mark.parametrize("solve", [repeated, newton])
@pytest.mark.parametrize("modes", ["rrr", "fff"])
def test_derivatives_are_those_of_the_equation(solve, modes):
    def cosine(a):
        return solve(lambda x: a * pg.cos(x), 0.5)

    def orders(a):
        found = [cosine(a)]
        for mode in modes:
            found.append((pg.grad if mode == "r" else pg.forward_grad)(found[-1], a))
        return found

    graph = traced(orders, 0.7)
    value, *slopes = pg.compile(graph)(0.7)
    expected, *wanted = slopes_of_cosine(0.7)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    np.testing.assert_allclose(slopes[:2], wanted[:2], rtol=1e-10)
    np.testing.assert_allclose(slopes[2], wanted[2], rtol=1e-6)


def test_the_iteration_is_not_differentiated():
    """What the first step is made from has no derivative, and trips leave no residuals."""

    def gradient(w, x0):
        return pg.grad(pg.sum(pg.fixed_point(lambda z: pg.tanh(0.5 * w @ z) + w[0], x0)), [w, x0])

    graph = traced(gradient, numbers(3, 3), numbers(3))
    by_w, by_x0 = pg.compile(graph)(numbers(3, 3), numbers(3))
    assert np.any(by_w)
    assert not np.any(by_x0)
    assert [eqn.op.name for eqn in graph.body].count("solution") == 2
    assert not any(v.shape[:1] == (1000,) for eqn in lower(graph).body for v in eqn.outputs)


def test_a_derivative_of_each_order_adds_solutions():
    def derivative(a, order):
        y = pg.fixed_point(lambda x: a * pg.cos(x), 0.5)
        for _ in range(order):
            y = pg.forward_grad(y, a)
        return y

    graphs = [pg.trace(lambda a, k=k: derivative(a, k), 0.7) for k in range(4)]
    assert [[e.op.name for e in g.body].count("solution") for g in graphs] == [1, 2, 3, 4]


# Batches.


@pytest.mark.parametrize(
    ("name", "way"),
    [("equilibrium", "newton"), ("coupled", "damped"), ("coupled", "stepped"),
     ("scanned", "repeated")],
)  # fmt: skip
def test_a_batch_solves_each_sample_for_itself(name, way):
    graph = lower(traced(derived(of(name, way), "r"), *ARRAYS))
    samples = [[a * (1 - k / 8) for a in ARRAYS] for k in range(3)]
    for flags in ((0, 0, 0), (None, 0, None)):
        many = verify(batch(graph, 3, flags))
        picked = [
            [a if f is None else s[i] for i, (a, f) in enumerate(zip(ARRAYS, flags, strict=True))]
            for s in samples
        ]
        feeds = [
            a if f is None else np.stack([p[i] for p in picked])
            for i, (a, f) in enumerate(zip(ARRAYS, flags, strict=True))
        ]
        expected = [np.stack(c) for c in zip(*[interpret(graph, *p) for p in picked], strict=True)]
        close(pg.compile(many).flat(*feeds), expected, 1e-8)


@pytest.mark.parametrize("solve", [repeated, newton])
def test_the_gradient_of_a_batch_is_that_of_its_samples(solve):
    """Also of samples in samples, and by what they share."""

    def one(w, b):
        return pg.sum(solve(lambda z: pg.tanh(0.5 * w @ z + b), pg.zeros(2)) ** 2)

    def many(w, bs):
        rows = pg.vmap(lambda row: pg.vmap(lambda b: one(w, b))(row))(bs)
        return pg.grad(pg.sum(rows), [w, bs])

    w, bs = numbers(2, 2), numbers(2, 3, 2, seed=1)
    by_w, by_bs = pg.compile(traced(many, w, bs))(w, bs)
    single = pg.compile(pg.trace(lambda w, b: pg.grad(one(w, b), [w, b]), w, bs[0, 0]))
    each = [single(w, b) for b in bs.reshape(6, 2)]
    np.testing.assert_allclose(by_w, sum(e[0] for e in each), rtol=1e-9)
    np.testing.assert_allclose(by_bs.reshape(6, 2), [e[1] for e in each], rtol=1e-8, atol=1e-11)


def test_samples_make_their_own_numbers_of_steps():
    def half(a):
        return pg.fixed_point(lambda x: a * x + 1.0, 0.0, full_output=True)

    a = np.array([0.0, 0.5, 0.9, 2.0])
    x, (converged, trips) = pg.vmap(half)(a)
    np.testing.assert_allclose(x[:3], 1 / (1 - a[:3]), rtol=1e-10)
    assert converged.tolist() == [True, True, True, False]
    assert trips[0] < trips[1] < trips[2] <= trips[3]
    strict = pg.vmap(lambda a: pg.fixed_point(lambda x: a * x + 1.0, 0.0))(a)
    assert np.isnan(strict).tolist() == [False, False, False, True]
    gradient = pg.vmap(pg.grad(lambda a: pg.fixed_point(lambda x: a * x + 1.0, 0.0)))(a)
    np.testing.assert_allclose(gradient[:3], 1 / (1 - a[:3]) ** 2, rtol=1e-9)
    assert np.isnan(gradient[3])


# What is not found.


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_what_is_not_found_is_nan_or_said(style):
    def doubled(a):
        return pg.fixed_point(lambda x: a * x + 1.0, 0.0, max_trips=7)

    kernel = pg.compile(pg.trace(lambda a: [doubled(a), pg.grad(doubled(a), a)], 2.0), style=style)
    assert np.isnan(kernel(2.0)).all()
    last = pg.trace(
        lambda a: pg.fixed_point(lambda x: a * x + 1.0, 0.0, max_trips=7, full_output=True), 2.0
    )
    x, (converged, trips) = pg.compile(last, style=style)(2.0)
    assert (x, converged, trips) == (127.0, False, 7)
    overflow = pg.trace(lambda a: pg.fixed_point(lambda x: x * x + a, a), 3.0)
    assert np.isnan(pg.compile(overflow, style=style)(3.0))
    none = pg.trace(lambda a: pg.root(lambda x: x * x + a, 0.5), 1.0)
    assert np.isnan(pg.compile(none, style=style)(1.0))


def test_tolerances_and_numbers_of_steps_are_as_they_are_said():
    def steps(**options):
        return pg.fixed_point(lambda x: 0.5 * x + 1.0, 0.0, full_output=True, **options)

    x, (converged, trips) = steps(tol=1e-3)
    assert converged
    assert abs(x - 2.0) < 4e-3
    assert trips == 10
    assert steps(max_trips=1)[1].trips == 1
    x, (converged, trips) = pg.root(lambda x: x * x - 2.0, 1.0, full_output=True)
    assert converged
    assert trips == 5
    np.testing.assert_allclose(x, np.sqrt(2.0), rtol=1e-15)


@pytest.mark.parametrize("solve", [repeated, newton])
def test_leaves_without_elements_do_not_decide_when_the_iteration_ends(solve):
    """A state may have leaves without elements, of one element, and of more."""

    def solution(b):
        state = {"x": 0.0 * b, "none": pg.zeros((2, 0)), "one": 0.0 * b[:1]}
        found = solve(
            lambda s: {
                "x": 0.5 * pg.cos(s["x"] + b),
                "none": 0.5 * s["none"],
                "one": 0.9 * s["one"] + b[:1],
            },
            state,
        )
        return found["x"], found["one"], found["none"]

    samples = np.stack([numbers(3) + 1.5, numbers(3, seed=1) + 1.5])
    single = [pg.jit(solution)(sample) for sample in samples]
    for sample, (x, one, none) in zip(samples, single, strict=True):
        np.testing.assert_allclose(x, 0.5 * np.cos(x + sample), rtol=1e-10)
        np.testing.assert_allclose(one, 10.0 * sample[:1], rtol=1e-9)
        assert none.shape == (2, 0)
    for found, *expected in zip(pg.vmap(solution)(samples), *single, strict=True):
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-12)


def test_a_state_without_elements_is_a_solution_after_one_step():
    def solution(x):
        return pg.fixed_point(lambda x: 0.5 * x, x, full_output=True)

    x, (converged, trips) = pg.jit(solution)(np.zeros((2, 0)))
    assert (x.shape, bool(converged), int(trips)) == ((2, 0), True, 1)


def test_a_linear_equation_has_no_scale_of_its_own():
    """A tiny seed, or a huge one, gives as many digits."""

    def push(a, seed):
        x = pg.fixed_point(lambda x: a * pg.cos(x), 0.5)
        return pg.forward_grad(x, a, seed), pg.grad(x, a, seed)

    kernel = pg.compile(pg.trace(push, 0.7, 1.0))
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(np.array(kernel(0.7, scale)) / scale, kernel(0.7, 1.0), 1e-11)
    assert np.array_equal(kernel(0.7, 0.0), [0.0, 0.0])


# Types, worlds, forms.


@pytest.mark.parametrize("solve", [repeated, newton])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions_have_the_dtype_of_the_function(solve, dtype):
    def equation(w, b):
        return solve(lambda z: pg.tanh(w @ z * 0.5 + b), pg.zeros(3, dtype))

    w, b = numbers(3, 3).astype(dtype), numbers(3).astype(dtype)
    graph = traced(lambda w, b: [equation(w, b), *pg.grad(pg.sum(equation(w, b)), [w, b])], w, b)
    wide = [a.astype("float64") for a in (w, b)]
    exact = pg.compile(
        pg.trace(lambda w, b: newton(lambda z: pg.tanh(w @ z * 0.5 + b), pg.zeros(3)), *wide)
    )(*wide)
    found = pg.compile(graph)(w, b)
    assert {a.dtype for a in found} == {np.dtype(dtype)}
    np.testing.assert_allclose(found[0], exact, rtol=1e-5 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("solve", [repeated, newton])
def test_sizes_may_be_unknown(solve):
    def gradient(w, b):
        z = solve(lambda z: pg.tanh(0.5 * w @ z / w.shape[0] + b), b * 0.0)
        return pg.grad(pg.sum(z * z), [w, b])

    graph = traced(gradient, pg.spec(("N", "N")), pg.spec("N"))
    kernel = pg.compile(graph)
    for n in (1, 2, 4):
        arrays = numbers(n, n), numbers(n, seed=1)
        expected = interpret(lower(pg.trace(gradient, *arrays)), *arrays)
        close(kernel(*arrays), expected, 1e-8)
        close(interpret(lower(graph), *arrays), expected, 1e-8)


@pytest.mark.parametrize("solve", [repeated, newton])
def test_tensors_have_the_derivative_of_the_solution(solve):
    w = pg.tensor(numbers(2, 2), requires_grad=True)
    b = pg.tensor(numbers(2, seed=1), requires_grad=True)
    z = solve(lambda z: pg.tanh(0.5 * w @ z + b), pg.zeros(2))
    pg.sum(z * z).backward()
    arrays = w.numpy(), b.numpy()
    expected = pg.compile(pg.trace(
        lambda w, b: pg.grad(pg.sum(solve(lambda z: pg.tanh(0.5 * w @ z + b), pg.zeros(2)) ** 2),
                             [w, b]), *arrays))(*arrays)  # fmt: skip
    np.testing.assert_allclose(w.grad.numpy(), expected[0], rtol=1e-9)
    np.testing.assert_allclose(b.grad.numpy(), expected[1], rtol=1e-9)
    jitted = pg.jit(pg.value_and_grad(lambda b: pg.sum(solve(lambda z: 0.5 * pg.sin(z) + b, b))))
    value, slope = jitted(arrays[1])
    again = pg.value_and_grad(lambda b: pg.sum(solve(lambda z: 0.5 * pg.sin(z) + b, b)))(arrays[1])
    np.testing.assert_allclose(slope, again[1], rtol=1e-10)
    np.testing.assert_allclose(value, again[0], rtol=1e-10)


def test_arrays_give_arrays():
    found = pg.fixed_point(lambda x: 0.5 * np.array([1.0, 2.0]) + 0.5 * x, np.zeros(2))
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, [1.0, 2.0], rtol=1e-11)
    for solve in (repeated, newton):
        np.testing.assert_allclose(solve(lambda x: 0.5 * x + 1, 0), 2.0, rtol=1e-11)


def test_weights_of_layers_in_equations_are_trained():
    with pg.Program() as program:
        x = pg.data("x", (4, 3))
        layer = pg.nn.Linear(3, 3)
        z = pg.fixed_point(lambda z: pg.tanh(0.3 * layer(z) + x), pg.zeros((4, 3)))
        loss = pg.mean((z - 0.5) ** 2)
        pg.optimizer.SGD(0.5).minimize(loss)
    executor = pg.Executor()
    losses = [executor.run(program, {"x": numbers(4, 3)}, [loss])[0] for _ in range(20)]
    assert losses[-1] < 0.9 * losses[0]


def test_graphs_with_equations_are_pickled_and_parsed():
    graph = traced(derived(of("coupled", "newton"), "r"), *ARRAYS)
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_the_tangent_of_a_solution_is_linear_and_is_transposed():
    """`<u, F(v)> == <transpose(F)(u), v>`."""
    graph = lower(pg.trace(of("coupled", "repeated"), *ARRAYS))
    joint = linearize(graph)
    pushes = joint.with_outputs(joint.outputs[1:])
    pulls = transpose(pushes, range(3, 6))
    v, u = [numbers(*a.shape, seed=9 + i) for i, a in enumerate(ARRAYS)], numbers(1, 2, seed=8)
    left = np.sum(u * interpret(pushes, *ARRAYS, *v)[0])
    back = interpret(pulls, *ARRAYS, u)
    np.testing.assert_allclose(left, sum(np.sum(a * b) for a, b in zip(back, v, strict=True)))


def test_readable_code_is_a_loop():
    source = pg.compile(
        pg.trace(lambda a: pg.fixed_point(lambda x: a * pg.cos(x), 0.5), 0.7)
    ).source
    assert "while trips < 1000 and" in source
    assert "solution(" not in source


# What is refused.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: pg.fixed_point(lambda v: v[0], x), r"returned f64\[\], but x0 is f64\[2\]"),
        (
            lambda x: pg.fixed_point(lambda v: (v, v), x),
            r"returned \(f64\[2\], f64\[2\]\), but x0 is f64\[2\]",
        ),
        (lambda x: pg.root(lambda v: v.astype("float32"), x), "returned f32"),
        (
            lambda x: pg.root(lambda v: v, x, step=lambda v: v[:1]),
            r"step returned f64\[1\], but x0 is f64\[2\]",
        ),
        (lambda x: pg.root(lambda v: v, x.astype("int64")), r"x0 is i64\[2\], not a float array"),
        (lambda x: pg.fixed_point(lambda v: v, ()), "nothing in x0"),
        (lambda x: pg.fixed_point(3, x), "takes a function"),
        (lambda x: pg.fixed_point(lambda v: v, x, max_trips=0), "max_trips is a positive integer"),
        (lambda x: pg.fixed_point(lambda v: v, x, tol=-1.0), "tol is between 0 and 1"),
        (lambda x: pg.root(lambda v: v, x, tol="small"), "tol"),
        (lambda x: pg.fixed_point(lambda v: v, x, damping=0.0), "damping is positive"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_line(call, message):
    with pytest.raises(pg.PrimgraphError, match=message):
        pg.trace(call, pg.spec(2))


@pytest.mark.parametrize(
    "wrong",
    ["consts=2", "consts=9", "linear=2", "linear=-1", "lead=-1", "limit=0"],
)
def test_texts_with_wrong_counts_are_refused(wrong):
    solved = pg.trace(lambda x, a: pg.root(lambda z: z * z - a, x), pg.spec(3), pg.spec(3))
    name = wrong.partition("=")[0]
    with pytest.raises(pg.LoadError, match="solution has 2 operands, not"):
        parse(re.sub(rf"\b{name}=\d+", wrong, str(lower(solved))))


# Equations made at random, beside complex steps through their iteration.


def random_equation(rng):
    """A function of `z` and `a` with slopes below one, for variables and for complex arrays."""
    n = int(rng.integers(1, 4))
    maps = [0.3 * rng.uniform(-1.0, 1.0, (n, n)) / n for _ in range(3)]
    kinds = [int(k) for k in rng.integers(0, 5, 3)]

    def f(lib, z, a):
        found = 0.2 * a
        for kind, m in zip(kinds, maps, strict=True):
            u = m @ z + a * 0.5
            found = (
                found
                + (
                    lib.sin(u) * 0.5,
                    lib.tanh(u * a),
                    u / (2.0 + u * u),
                    lib.exp(-u * u) * (m @ a),
                    lib.cos(u) * z * 0.3,
                )[kind]
            )
        return found

    return f, n


@pytest.mark.parametrize("seed", range(8))
def test_equations_made_at_random_have_the_slopes_of_complex_steps(seed):
    rng = np.random.default_rng(seed)
    f, n = random_equation(rng)
    solve = [*WAYS.values()][seed % len(WAYS)]
    a, direction = rng.uniform(-1.0, 1.0, n), rng.uniform(-1.0, 1.0, n)

    def value(a):
        return pg.sum(solve(lambda z: f(pg, z, a), pg.zeros(n)) ** 2)

    def by_iteration(a):
        z = np.zeros(n, complex)
        for _ in range(200):
            z = f(np, z, a)
        return np.sum(z**2)

    slopes = [by_iteration(a + 1e-20j * unit).imag * 1e20 for unit in np.eye(n)]
    graph = pg.trace(lambda a: pg.grad(value(a), a), a)
    gradient = pg.compile(graph)
    np.testing.assert_allclose(gradient(a), slopes, rtol=1e-9, atol=1e-12)
    samples = np.stack([a, 0.5 * a, -a])
    (rows,) = pg.compile(verify(batch(lower(graph), 3))).flat(samples)
    np.testing.assert_allclose(rows, [gradient(x) for x in samples], rtol=1e-9, atol=1e-12)

    def bend(a, d):
        slope = pg.grad(value(a), a)
        return pg.forward_grad(slope, a, d), pg.grad(pg.sum(slope * d), a)

    step = 1e-5 * direction
    expected = (gradient(a + step) - gradient(a - step)) / 2e-5
    for found in pg.compile(pg.trace(bend, a, direction))(a, direction):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


# A solution that is not found, as an error.


def half(b):
    return pg.root(lambda x: x * x + b, 1.0, check=True)


def grown(b):
    return pg.fixed_point(lambda x: b * x + 1.0, np.ones(3), check=True).sum()


@pytest.mark.parametrize(("function", "good", "bad"), [(half, -2.0, 1.0), (grown, 0.5, 2.0)])
def test_a_solution_that_is_not_found_is_an_error_with_check(function, good, bad):
    def in_a_program(b):
        with pg.Program() as program:
            y = function(pg.data("b", ()))
        return pg.Executor().run(program, {"b": b}, [y])[0]

    name = "root" if function is half else "fixed_point"
    words = rf"{name} did not converge within \d+ steps: increase max_trips[\s\S]*test_solutions.py"
    graph = pg.trace(function, pg.spec(()))
    assert pg.parse(str(graph)) == graph
    calls = {
        "jit": pg.jit(function),
        "C": pg.jit(function, target="c"),
        "program": in_a_program,
        "numbers": function,
        "tensors": lambda b: np.asarray(function(pg.tensor(b))),
        "gradient": pg.jit(pg.value_and_grad(function)),
        "vmap": lambda b: pg.vmap(function)(np.array([good, b])),
    }
    for title, call in calls.items():
        assert np.all(np.isfinite(call(good))), title
        with pytest.raises(pg.LinAlgError, match=words) as caught:
            call(bad)
        assert isinstance(caught.value, RuntimeError), title
    with pytest.raises(pg.ArgumentError, match="did you mean 'check'"):
        pg.root(lambda x: x, 1.0, disp=True)
