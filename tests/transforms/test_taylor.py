"""Taylor mode: derivatives along curves are those of forward mode over forward mode."""

import itertools
import math
import runpy

import mpmath
import numpy as np
import pytest
from nested import nested_values
from samples import ROWS
from test_primitives import FLOAT_CASES, Case

import primgraph as pg
from primgraph import transforms
from primgraph.derivatives import modes
from primgraph.ir.interpret import interpret
from primgraph.ir.verify import verify
from primgraph.transforms.dataflow.magnitudes import has_reciprocals, least
from primgraph.transforms.taylor_mode import taylor

RNG = np.random.default_rng(5)
FIRST, SECOND, SLOPES, MIX = (RNG.normal(size=shape) for shape in ((6,), (6,), (6,), (6, 6)))
STEPS = np.array([1.0, 2.0, 3.0])


def network(x):
    return pg.sum(pg.tanh(pg.tanh(x * FIRST + SECOND) @ MIX) * SLOPES)


def network_by_mpmath(x):
    inner = [
        mpmath.tanh(x * mpmath.mpf(a) + mpmath.mpf(b)) for a, b in zip(FIRST, SECOND, strict=True)
    ]
    sums = (
        mpmath.fsum(h * mpmath.mpf(w) for h, w in zip(inner, column, strict=True))
        for column in MIX.T
    )
    return mpmath.fsum(mpmath.tanh(s) * mpmath.mpf(c) for s, c in zip(sums, SLOPES, strict=True))


def squares_by_mpmath(x):
    powers = [mpmath.exp(x * c) for c in (1, 2, 3)]
    return sum((p / sum(powers)) ** 2 for p in powers)


FUNCTIONS = {
    "softplus": (
        lambda x: pg.log1p(pg.exp(x * pg.tanh(x))) / (1 + x * x),
        lambda x: mpmath.log(1 + mpmath.exp(x * mpmath.tanh(x))) / (1 + x * x),
    ),
    "root": (lambda x: 1 / pg.sqrt(1 + x * x), lambda x: 1 / mpmath.sqrt(1 + x * x)),
    "power": (lambda x: x**x, lambda x: x**x),
    "gelu": (pg.gelu, lambda x: x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2),
    "squares": (lambda x: pg.sum(pg.softmax(x * STEPS) ** 2), squares_by_mpmath),
    "sine": (lambda x: pg.sin(pg.exp(x)), lambda x: mpmath.sin(mpmath.exp(x))),
    "network": (network, network_by_mpmath),
    "erf": (pg.special.erf, mpmath.erf),
    "arctan": (pg.arctan, mpmath.atan),
    "logsumexp": (
        lambda x: pg.logsumexp(x * STEPS),
        lambda x: mpmath.log(sum(mpmath.exp(x * c) for c in (1, 2, 3))),
    ),
}
# Where no derivative of order 10 or 20 of these is next to zero.
POINTS = (0.05, 0.3, 0.7, 1.3, 1.7)


def along_line(f, order, kind=()):
    """The graph of `f` and its derivatives, along ones."""
    graph = transforms.lower(pg.trace(f, pg.spec(kind)))
    jet = taylor(graph, order, [0], seeds=[[1]])
    return transforms.clean_up(transforms.bind(jet, {1: 1.0}))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equations_grow_as_the_square_of_the_order(name):
    f, _ = FUNCTIONS[name]
    counts = {order: len(along_line(f, order).body) for order in (4, 10, 32)}
    assert counts[10] <= 400
    assert math.log(counts[32] / counts[4]) / math.log(8) <= 2.1


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_order_10_and_20_are_those_of_mpmath(name):
    f, exact = FUNCTIONS[name]
    jet = along_line(f, 20)
    with mpmath.workdps(50):
        for point in POINTS:
            terms = mpmath.taylor(exact, mpmath.mpf(point), 20)
            found = interpret(jet, np.array(point))
            for order, most in ((10, 1e-9), (20, 1e-6)):
                expected = float(terms[order] * mpmath.factorial(order))
                assert abs(float(found[order]) - expected) <= most * abs(expected), (order, point)


def seeds_for(graph, wrt, order, seed=0):
    rng = np.random.default_rng(seed)

    def drawn(type):
        numbers = rng.normal(size=type.shape)
        if type.is_complex:
            numbers = numbers + 1j * rng.normal(size=type.shape)
        return np.asarray(numbers, type.dtype)

    return [[drawn(graph.inputs[i].type) for _ in range(order)] for i in wrt]


def case_per_primitive():
    """Of each primitive the largest small call, in each choice of parameters."""
    found = {}
    for param in FLOAT_CASES:
        case: Case = param.values[0]
        graph = case.graph(case.row.dtypes[0])
        if all(v.type.size for v in graph.inputs):
            found[case.op.name, str(case.call.params)[:60]] = case
    return found


PER_PRIMITIVE = case_per_primitive()


@pytest.mark.parametrize("part", range(4))
def test_jets_of_every_primitive_are_those_of_nested_forward_mode(part):
    for case in list(PER_PRIMITIVE.values())[part::4]:
        dtype = case.row.dtypes[0]
        graph, feeds = case.graph(dtype), case.arrays(dtype)
        wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_inexact]
        seeds = seeds_for(graph, wrt, 3)
        jet = verify(taylor(graph, 3, wrt))
        found = interpret(jet, *feeds, *[s for series in seeds for s in series])
        expected, largest = nested_values(graph, wrt, feeds, seeds)
        rounding = 1e4 * max(float(np.finfo(v.dtype).eps) for v in jet.outputs if v.type.is_inexact)
        for ours, theirs in zip(found[len(graph.outputs) :], expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=rounding * max(largest, 1.0),
                                       err_msg=f"{case.op.name} {case.call}")  # fmt: skip


def test_every_differentiable_primitive_is_among_them():
    named = {name for name, _ in PER_PRIMITIVE}
    assert {param.values[0].op.name for param in FLOAT_CASES} == named <= set(ROWS)


# Where a function or its slope is infinite, NaN, or has a kink; others stand between.
EDGES = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0, -3.0, 45.0, 800.0)
# Along a curve infinities of opposite signs meet in nested forward mode, which gives NaN.
ONE_OPERAND = {
    (case.op.name, str(case.call.params)): case
    for case in (param.values[0] for param in FLOAT_CASES)
    if case.op.elementwise and case.call.operands in (("x[3]",), ("f64[3]",))
    and case.row.dtypes[0] == "f64"
}  # fmt: skip


def test_at_the_edges_of_domains_jets_are_as_nested_forward_mode():
    assert len(ONE_OPERAND) > 30
    for name, case in ONE_OPERAND.items():
        many = transforms.batch(case.graph("f64"), len(EDGES))
        feeds = [np.repeat(np.reshape(EDGES, (-1, 1)), 3, axis=1)]
        seeds = [[np.full(feeds[0].shape, 0.75)]]
        jet = taylor(many, 3, [0], seeds=[[1]])
        with np.errstate(all="ignore"):
            found = interpret(jet, *feeds, *seeds[0])[1:]
            expected, _ = nested_values(many, [0], feeds, seeds, 3)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-18, err_msg=str(name))


GUARDED = {
    "log": lambda x: pg.where(x > 0, pg.log(x), 0.0),
    "root": lambda x: pg.where(x > 0, pg.sqrt(x), 0.0),
    "inner": lambda x: pg.log(pg.where(x > 0, x, 1.0)),
    "norm": lambda x: pg.where(x > 1, pg.linalg.norm(pg.stack([x, x])), x),
}


@pytest.mark.parametrize("name", GUARDED)
def test_what_is_not_chosen_puts_no_nan_into_a_jet(name):
    graph = transforms.lower(pg.trace(GUARDED[name], pg.spec(())))
    for at in (0.0, -1.0, 0.5):
        with np.errstate(all="ignore"):
            feeds = [np.array(at)]
            found = interpret(taylor(graph, 3, [0], seeds=[[1]]), *feeds, np.array(1.0))[1:]
            expected, _ = nested_values(graph, [0], feeds, [[np.array(1.0)]], 3)
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# Programs.


def loop(x):
    """A scan, a while loop, a branch and a checkpoint in each other's bodies."""

    def trip(carry, row):
        carry = pg.checkpoint(lambda c: pg.sin(c) * row + c)(carry)
        return carry, carry * x

    last, rows = pg.scan(trip, x, STEPS)
    many = pg.while_loop(lambda z: z < 8.0, lambda z: z * z + x, last + 2.0)
    chosen = pg.cond(x > 0.4, lambda z: pg.exp(-z * x), lambda z: z, many * 0.1)
    return chosen + pg.sum(rows)


def unrolled(x):
    carry, rows = x, []
    for row in STEPS:
        carry = pg.sin(carry) * row + carry
        rows.append(carry * x)
    z = carry + 2.0
    return (lambda z: pg.exp(-z * x))((z * z + x) * 0.1) + sum(rows)


def test_jets_go_through_loops_and_branches():
    at, order = np.array(0.5), 6
    series = [np.array(1.0), *[None] * (order - 1)]
    value, found = pg.jet(loop, at, series)
    expected, terms = pg.jet(unrolled, at, series)
    np.testing.assert_allclose([value, *found], [expected, *terms], rtol=1e-12)
    graph = transforms.lower(pg.trace(loop, pg.spec(())))
    jet = taylor(graph, order, [0], seeds=[[1]])
    count = {name: sum(e.op.name == name for e in jet.body) for name in ("scan", "while_loop")}
    # One loop for the values and one for all orders.
    assert count == {"scan": 2, "while_loop": 2}


def test_jets_of_a_carry_that_a_trip_forgets_are_zeros():
    def forgetful(x):
        _, rows = pg.scan(lambda c, _: ((c[1] * c[1], pg.ones(())), c[0]), (x, pg.sin(x)), STEPS)
        return pg.sum(rows)

    def jet(x):
        value, terms = pg.jet(forgetful, x, [1.0, None, None])
        return [value, *terms]

    at = np.array(0.5)
    found = interpret(transforms.lower(pg.trace(jet, at)), at)
    value, terms = pg.jet(lambda x: x + pg.sin(x) ** 2 + 1.0, at, [np.array(1.0), None, None])
    np.testing.assert_allclose(found, [value, *terms], rtol=1e-12)


STYLES = ("readable", "planned")


def bent(x):
    return pg.tanh(2.0 * x + 1.0) * x


def walked(x):
    """Of the carries one moves along a line, one is a function of it, and one does not move."""

    def step(state, _):
        line, bend, still = state
        return (line + x, bend + pg.tanh(line), still * 0.5), None

    ends, _ = pg.scan(step, (x, pg.zeros((3,)), pg.ones((3,))), None, length=3)
    return ends[0] * ends[2] + ends[1]


def walked_at_once(x):
    return 0.5 * x + pg.tanh(x) + pg.tanh(2.0 * x) + pg.tanh(3.0 * x)


@pytest.mark.parametrize(
    ("inside", "outside", "most"),
    [
        (pg.checkpoint(bent), bent, 1.3),
        (lambda x: pg.cond(pg.sum(x) > 0.0, lambda: bent(x), lambda: 3.0 * x), bent, 1.3),
        (walked, walked_at_once, 1.6),
    ],
)
def test_zeros_in_bodies_are_no_work(inside, outside, most):
    at = np.array([0.1, 0.2, 0.3])
    kernels = [
        pg.compile(pg.trace(lambda x, f=f: pg.forward_grad(f(x), x, order=6), pg.spec(3)))
        for f in (inside, outside)
    ]
    found, expected = (k(at) for k in kernels)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
    costs = [pg.cost(k).flops for k in kernels]
    assert costs[0] <= most * costs[1]


@pytest.mark.parametrize("style", STYLES)
def test_kernels_of_jets_compute_what_the_interpreter_does(style, tmp_path):
    def f(x, w):
        return pg.jet(lambda v: pg.softmax(pg.tanh(v @ w), axis=-1) ** 1.5, x, [x * x, None, x])

    graph = pg.trace(f, pg.spec((4, 3)), pg.spec((3, 2)))
    feeds = [RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))]
    expected = interpret(transforms.lower(graph), *feeds)
    kernel = pg.compile(graph, style=style)
    kernel.save(tmp_path / "saved.py")
    saved = runpy.run_path(str(tmp_path / "saved.py"))["f"]
    for found in (kernel(*feeds), saved(*feeds)):
        flat, _ = pg.tree.flatten(found)
        for ours, theirs in zip(flat, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def test_jets_of_batches_are_batches_of_jets():
    samples = RNG.normal(size=(5, 3))

    def f(v):
        return pg.sum(pg.sin(v) * pg.exp(v * v[0]))

    series = [np.ones(3), None, None]
    inside = pg.vmap(lambda v: pg.jet(f, v, series))(samples)
    outside = pg.jet(pg.vmap(f), samples, [np.ones((5, 3)), None, None])
    for row, (value, terms) in enumerate(zip(outside[0], np.transpose(outside[1]), strict=True)):
        alone = pg.jet(f, samples[row], series)
        np.testing.assert_allclose([value, *terms], [alone[0], *alone[1]], rtol=1e-12)
    np.testing.assert_allclose([inside[0], *inside[1]], [outside[0], *outside[1]], rtol=1e-12)


def test_sizes_need_not_be_known():
    def f(v):
        return pg.sum(pg.logsumexp(v, axis=0) * pg.cumprod(v[0]))

    kernel = pg.compile(pg.trace(lambda v: pg.jet(f, v, [v, None]), pg.spec(("N", 3))))
    for rows in (1, 4):
        x = RNG.uniform(0.5, 1.5, size=(rows, 3))
        value, terms = kernel(x)
        expected = pg.jet(f, x, [x, None])
        np.testing.assert_allclose([value, *terms], [expected[0], *expected[1]], rtol=1e-12)


def test_results_can_be_differentiated_again():
    x = np.array([0.3, 0.8])

    def third(v):
        return pg.sum(pg.jet(lambda u: pg.sin(u * 2.0), v, [np.ones(2), None, None])[1][2])

    np.testing.assert_allclose(pg.grad(third)(x), 16 * np.sin(2 * x), rtol=1e-12)
    with pg.Program() as program:
        v = pg.data("v", (2,))
        derivatives = pg.taylor(pg.exp(v * 2.0), v, 5)
        slope = pg.grad(pg.sum(derivatives[5]), v)
        along = pg.forward_grad(pg.exp(v * 2.0), v, np.array([1.0, 0.5]), order=4)
        none = pg.forward_grad([v * 1.0, pg.ones(2) * 2.0], v, order=2)
    found = pg.Executor().run(program, {"v": x}, [*derivatives, slope, along, none[0]])
    powers = [2.0**k * np.exp(2 * x) for k in range(7)]
    expected = [*powers, powers[4] * np.array([1.0, 0.5]) ** 4, np.zeros(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert none[1] is None


def test_tensors_have_jets():
    x = pg.tensor(np.array([0.3, 0.8], np.float32), requires_grad=True)
    y = pg.exp(x * 2.0)
    derivatives = pg.taylor(y, x, 3)
    last = pg.forward_grad(y, x, order=3)
    assert all(d.dtype == np.float32 for d in derivatives)
    expected = np.exp(2 * x.numpy())
    for k, found in enumerate([*derivatives[:3], last, last][:4]):
        np.testing.assert_allclose(found.numpy(), 2.0**k * expected, rtol=1e-6)
    apart = pg.taylor([y, x * 0 + y], [x], 2)
    assert [len(row) for row in apart] == [3, 3]
    pg.sum(derivatives[3]).backward()
    np.testing.assert_allclose(x.grad.numpy(), 16 * expected, rtol=1e-6)
    _, terms = pg.jet(lambda v: (v * v, pg.ones(2)), x.detach(), [pg.ones(2, dtype="float32")])
    np.testing.assert_allclose(terms[0][0].numpy(), 2 * x.numpy())
    np.testing.assert_allclose(terms[1][0].numpy(), 0)


def test_a_missing_coefficient_makes_no_equation():
    graph = transforms.lower(pg.trace(lambda x: x * x * x, pg.spec(())))
    line, curve = (taylor(graph, 8, [0], seeds=[s]) for s in ([1], range(1, 9)))
    assert len(transforms.dead_code(line).body) < 25 < len(transforms.dead_code(curve).body)
    zeros = interpret(line.with_outputs(line.outputs[4:]), 2.0, 1.0)
    assert np.all(np.array(zeros) == 0.0)
    constant = transforms.lower(pg.trace(lambda x, y: pg.exp(y), pg.spec(()), pg.spec(())))
    assert not any(e.op.name == "mul" for e in transforms.dead_code(taylor(constant, 9, [0])).body)


def test_coefficients_of_the_sigmoid_are_few_and_have_all_digits_far_from_zero():
    graph = transforms.lower(pg.trace(pg.sigmoid, pg.spec(())))
    jet = taylor(graph, 7, [0], seeds=[[1]])
    assert len(transforms.clean_up(jet)) < 70
    kernel = pg.compile(jet)
    with mpmath.workdps(40):
        terms = mpmath.taylor(lambda t: 1 / (1 + mpmath.exp(-t)), -40, 7)
        wanted = [float(c * math.factorial(k)) for k, c in enumerate(terms)]
    found = [float(v) for v in kernel(-40.0, 1.0)]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    # The sigmoid less one half is odd.
    mirrored = [(-1) ** (k + 1) * float(v) for k, v in enumerate(kernel(40.0, 1.0))]
    np.testing.assert_allclose(mirrored[1:], wanted[1:], rtol=1e-14)
    assert all(np.isnan(kernel(math.nan, 1.0)))
    np.testing.assert_array_equal(kernel(math.inf, 1.0), [1.0] + [0.0] * 7)


def test_powers_at_zero_and_elsewhere():
    x, y = np.array(0.7), np.array(1.2)
    value, terms = pg.jet(lambda x, y: x**y, (x, y), ([np.array(1.0)] + [None] * 5, [None] * 6))
    falling = list(itertools.accumulate((1.2 - k for k in range(6)), lambda a, b: a * b))
    expected = [c * 0.7 ** (1.2 - k) for k, c in enumerate(falling, 1)]
    np.testing.assert_allclose([value, *terms], [0.7**1.2, *expected], rtol=1e-12)
    exact = pg.jet(lambda x: x**2.5, np.array(0.0), [np.array(1.0), None, None])[1]
    assert [float(d) for d in exact[:2]] == [0.0, 0.0]
    assert exact[2] == math.inf
    both = pg.jet(lambda x: x**x, np.array(0.0), [np.array(1.0)] + [None] * 3)[1]
    assert math.isfinite(both[0])
    assert math.isnan(both[3])


def test_powers_at_zero_are_those_one_by_one(monkeypatch):
    def along(by):
        with pg.Program() as program:
            x, n = pg.data("x", ()), pg.data("n", (4,))
            y, ends = pg.sin(x) ** n, []
            for _ in range(6):
                y = pg.forward_grad(y, x if by == "x" else n)
                ends.append(y)
        feed = {"x": 0.0, "n": np.array([2.0, 3.0, 4.0, 5.0])}
        return pg.Executor().run(program, feed, ends)

    found = {by: along(by) for by in "xn"}
    np.testing.assert_array_equal(found["x"][3], [-8.0, 0.0, 24.0, 0.0])
    np.testing.assert_array_equal(found["x"][5], [32.0, 0.0, -480.0, 0.0])
    np.testing.assert_array_equal(found["n"], np.zeros((6, 4)))
    monkeypatch.setattr(modes, "_ORDER_AT_ONCE", 99)
    for by in "xn":
        np.testing.assert_allclose(found[by], along(by), rtol=1e-12)


# Functions of t, by quotients of numbers that are tiny.
BY_TINY = {
    "quotient": (
        lambda np_, t, a, b: a * np_.exp(t) / (b * (2.0 + np_.sin(t))),
        lambda t: mpmath.exp(t) / (2 + mpmath.sin(t)),
    ),
    "tangent": (lambda np_, t, a, b: a * np_.sin(t) / (b * np_.cos(t)), mpmath.tan),
    "reciprocal": (
        lambda np_, t, a, b: a * np_.tanh(t) * (1.0 / (3.0 + t)) / (b * (3.0 + t) ** -1),
        mpmath.tanh,
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", BY_TINY)
def test_divisors_without_a_finite_reciprocal_divide(name, dtype):
    """Of order 4 and above, by 1e-310 and 1e-40, whose reciprocals are infinite."""
    f, exact = BY_TINY[name]
    tiny, small, most = (1e-310, 1e-3, 1e-7) if dtype == "float64" else (1e-39, 2e-2, 0.05)
    t, b = np.array(0.4, dtype), np.array(tiny, dtype)
    a = np.asarray(tiny * small, dtype)
    specs = [pg.spec((), dtype) for _ in range(3)]
    order = 6
    graph = pg.trace(lambda t, a, b: pg.taylor(f(pg, t, a, b), t, order)[1:], *specs)
    with mpmath.workdps(40), np.errstate(over="ignore"):
        assert not np.isfinite(np.asarray(1.0, dtype) / b)
        terms = mpmath.taylor(exact, mpmath.mpf(float(t)), order)[1:]
        factors = [float(c * math.factorial(k)) for k, c in enumerate(terms, 1)]
        expected = np.array(factors) * (float(a) / float(b))
        for found in (interpret(graph, t, a, b), pg.compile(graph)(t, a, b)):
            found = np.array(found, float)
            np.testing.assert_allclose(found, expected, rtol=most, atol=most * np.max(expected))


def near_zeros(dtype):
    """Numbers at which sums with constants, sines and roots are next to zero."""
    kind = np.finfo(dtype)
    ones = np.array([1.0, -1.0, 1.0 - kind.epsneg, 1.0 + kind.eps, -1.0 + kind.epsneg], dtype)
    turns = (np.arange(1, 4000, 2) * (math.pi / 2)).astype(dtype)
    small = np.array([kind.smallest_subnormal, kind.tiny, 2e-3, 0.0], dtype)
    closest = np.array([6381956970095103 * 2.0**797, 16367173 * 2.0**72], np.float64)
    with np.errstate(over="ignore"):
        closest = closest.astype(dtype)
    return np.concatenate([ones, turns, small, -small, closest[np.isfinite(closest)]])


LEAST = {
    "sum": lambda x: x + 1.0,
    "difference": lambda x: 1.0 - x * x,
    "product": lambda x: (1.0 - x) * (1.0 + x),
    "root": lambda x: pg.sqrt(pg.abs(x)) * 2.0,
    "cosine": lambda x: -pg.cos(x),
    "either": lambda x: pg.maximum(pg.where(x > 0.5, 1.0 - x, 2.0), pg.cosh(x * 1e-3) - 1.0),
    "view": lambda x: pg.reshape(x + 1.0, (1, -1)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_may_be_multiplied_by_its_reciprocal_is_not_next_to_zero(dtype):
    x = near_zeros(dtype)
    for name, f in LEAST.items():
        graph = transforms.lower(pg.trace(f, x))
        made = {v: e for e in graph.body for v in e.outputs}
        (value,) = graph.outputs
        bound = least(value, made.get)
        (found,) = interpret(graph, x)
        there = np.abs(found[(found != 0) & np.isfinite(found)]).astype(float)
        assert there.min() >= 0.99 * bound > 0, name
        assert has_reciprocals(value, made.get), name
        with np.errstate(divide="ignore"):
            assert np.all(np.isfinite(1 / found[found != 0])), name


def test_what_may_be_next_to_zero_is_not_multiplied_by_its_reciprocal():
    for f in (lambda x: x, lambda x: x * x, pg.exp, lambda x: x + 1e-300, lambda x: pg.sin(x + x)):
        graph = transforms.lower(pg.trace(f, pg.spec(())))
        made = {v: e for e in graph.body for v in e.outputs}
        assert not has_reciprocals(graph.outputs[0], made.get)
    with_one, without = (
        along_line(lambda t, c=c: pg.exp(t) / (t * t + c), 6) for c in (1.0, 1e-300)
    )
    counts = [[e.op.name for e in g.body].count("div") for g in (with_one, without)]
    assert counts[0] < counts[1]


MATRIX = RNG.normal(size=(3, 3))
POSITIVE = MATRIX @ MATRIX.T + 3 * np.eye(3)


def _along(f, x, direction):
    return pg.forward_grad(f(x), x, direction)


def _by(f, x, weights):
    return pg.grad(f(x), x, weights)


OF_MATRICES = {
    "solve": lambda t: pg.linalg.solve(POSITIVE * pg.exp(t) + t * MATRIX, np.ones(3)),
    "cholesky": lambda t: pg.linalg.cholesky(POSITIVE + t * np.eye(3)),
    "triangular": lambda t: pg.linalg.solve_triangular(MATRIX + pg.exp(t) * np.eye(3), np.ones(3)),
    "inv": lambda t: pg.linalg.inv(POSITIVE + t * MATRIX),
    "eigvalsh": lambda t: pg.linalg.eigvalsh(POSITIVE + t * (MATRIX + MATRIX.T)),
    "slogdet": lambda t: pg.linalg.slogdet(POSITIVE + t * MATRIX)[1],
    "tangent": lambda t: _along(pg.linalg.cholesky, POSITIVE + t * np.eye(3), MATRIX * pg.exp(t)),
    "slope": lambda t: _by(pg.linalg.cholesky, POSITIVE + t * np.eye(3), MATRIX * pg.exp(t)),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_jets_of_linear_algebra_do_not_double_with_the_order(name):
    graph = transforms.lower(pg.trace(OF_MATRICES[name], pg.spec(())))
    counts = [len(taylor(graph, order, [0], seeds=[[1]]).body) for order in (4, 16)]
    assert counts[1] < 16 * counts[0]
    feeds, seeds = [np.array(0.1)], [[np.array(1.0)]]
    found = interpret(taylor(graph, 4, [0], seeds=[[1]]), *feeds, *seeds[0])[1:]
    expected, _ = nested_values(graph, [0], feeds, seeds, 4)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_jets_of_jets_of_solutions_and_of_functions_with_rules_of_their_own():
    @pg.custom_jvp
    def wave(x):
        return pg.sin(x)

    wave.defjvp(lambda primals, tangents: (wave(primals[0]), pg.cos(primals[0]) * tangents[0]))
    one, at = np.array(1.0), np.array(0.5)
    ours, plain = (
        pg.jet(lambda x, f=f: f(x * x), at, [one, None, None])[1] for f in (wave, pg.sin)
    )
    np.testing.assert_allclose(ours, plain, rtol=1e-12)

    def second(x):
        return pg.jet(lambda z: pg.exp(z * z), x, [one, None])[1][1]

    fourth = pg.jet(lambda z: pg.exp(z * z), at, [one, None, None, None])[1][3]
    np.testing.assert_allclose(pg.jet(second, at, [one, None])[1][1], fourth, rtol=1e-12)

    def fixed(a):
        return pg.fixed_point(lambda z: pg.cos(z) * a, pg.zeros(()))

    slopes = [pg.grad(fixed)(at), pg.grad(pg.grad(fixed))(at)]
    np.testing.assert_allclose(pg.jet(fixed, at, [one, None])[1], slopes, rtol=1e-8)


def test_directions_may_be_values_of_the_program_around_a_loop():
    def bend(z):
        return pg.sin(z) * z

    ways = (
        lambda c, v: pg.jet(bend, c, [v, None])[1][1],
        lambda c, v: pg.taylor(bend(c), c, 2, v)[2],
        lambda c, v: pg.forward_grad(bend(c), c, v, order=2),
        lambda c, v: pg.forward_grad(pg.forward_grad(bend(c), c, v), c, v),
        lambda c, v: v * v * (2.0 * pg.cos(c) - pg.sin(c) * c),
        lambda c, v: v * pg.grad(pg.grad(bend(c), c, v), c),
    )
    with pg.Program() as program:
        x, v = pg.data("x", (3,)), pg.data("v", (3,))
        ends = [
            pg.scan(lambda c, _, way=way: (way(c, v), None), x, None, length=2)[0] for way in ways
        ]
    feed = {"x": np.array([0.3, 0.5, 0.7]), "v": np.array([1.0, 2.0, -1.0])}
    found = pg.Executor().run(program, feed, ends)
    for one in found:
        np.testing.assert_allclose(one, found[4], rtol=1e-9)


MISTAKES = (
    (lambda x: pg.jet(pg.sin, x, []), pg.ArgumentError, "no derivatives"),
    (lambda x: pg.jet(pg.sin, (x,), ([x], [x])), pg.ArgumentError, "for each of 1 arguments"),
    (lambda x: pg.jet(pg.sin, (x,), [x]), pg.ArgumentError, "for each of 1 arguments"),
    (lambda x: pg.jet(pg.sin, x, [np.ones(5)]), pg.ShapeError, r"shape \(5,\)"),
    (lambda x: pg.jet(x, x, [x]), pg.ArgumentError, "jet"),
    (lambda x: pg.jet(pg.sin, 2 > 1, [1.0]), pg.PrimgraphError, "jet"),
    (lambda x: pg.taylor(pg.sin, x, 2), pg.ArgumentError, "not the function"),
)


def test_mistakes_are_told():
    for mistake, kind, words in MISTAKES:
        with pytest.raises(kind, match=words):
            mistake(np.ones(2))
    with pg.Program():
        x = pg.data("x", (2,))
        y, number = pg.sin(x), pg.data("n", (2,), "int64")
        for order, kind in ((0, pg.OptionError), (1.5, pg.ArgumentError), (True, pg.ArgumentError)):
            for ask in (pg.taylor, lambda y, x, k: pg.forward_grad(y, x, order=k)):
                with pytest.raises(kind, match="order"):
                    ask(y, x, order)
        with pytest.raises(pg.NotDifferentiable, match="'n' is"):
            pg.taylor(y, number, 2)
        assert len(pg.taylor(y, x, np.int64(2))) == 3


def test_a_graph_of_many_equations_is_walked_once():
    def f(x):
        for _ in range(400):
            x = pg.sin(x) + x
        return x

    graph = transforms.lower(pg.trace(f, pg.spec(())))
    assert len(taylor(graph, 2, [0], seeds=[[1]]).body) < 12 * len(graph.body)
