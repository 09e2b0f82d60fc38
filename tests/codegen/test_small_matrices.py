"""Scalar mode with matrices: products, structural zeros, solutions, and what NumPy does instead."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from program_scalars import ScalarProgram, check_scalars
from program_tolerance import same_bits

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.lower.scalars.simplify import in_order, simplify
from primgraph.codegen.ops.spelling.numbers import WORDS, Numbers
from primgraph.errors import RunError
from primgraph.ir.interpret import interpret

SPECIALS = [0.0, -0.0, 1.0, -2.5, 1e200, -1e308, 5e-324, np.inf, -np.inf, np.nan]


def kernel_of(function, *specs):
    kernel = pg.compile(pg.trace(function, *specs))
    assert kernel._code.scalar is not None
    return kernel


def by_numpy(kernel, feeds):
    """Return what the code with buffers computes, and the interpreter."""
    flat = kernel.flat
    context, workspace = flat._code.new_workspace()
    return context.run(flat._code.run, workspace, list(feeds))


def by_numbers(kernel, feeds):
    """Return what the scalar code computes, None where it leaves that to NumPy."""
    with np.errstate(all="raise"):
        return kernel.flat._code.scalar(*feeds)


def rotation(angle):
    c, s = pg.cos(angle), pg.sin(angle)
    rows = [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]
    return pg.stack([pg.stack(row) for row in rows])


def frames(angles, point):
    """A point in three frames, all rotated about one axis."""
    for k in range(3):
        point = rotation(angles[k]) @ point + np.array([0.0, 0.5, 0.0])
    return point


def test_structural_zeros_are_no_terms():
    kernel = kernel_of(frames, pg.spec(3), pg.spec(3))
    source = kernel.planned_source
    text = source[source.index("def scalar") :]
    # Each frame has four products, three sums, and the position along the axis is copied.
    assert text.count(" * ") <= 12 + 1
    rng = np.random.default_rng(0)
    for _ in range(50):
        angles, point = rng.normal(size=(2, 3))
        np.testing.assert_allclose(
            kernel(angles, point), pg.interpret(kernel.graph, angles, point)[0], rtol=1e-13
        )


@pytest.mark.parametrize("place", range(3))
def test_special_values_in_dropped_terms_are_found(place):
    kernel = kernel_of(frames, pg.spec(3), pg.spec(3))
    for value in SPECIALS:
        point = np.array([0.5, -1.5, 2.0])
        point[place] = value
        feeds = [np.array([0.1, 0.0, -0.3]), point]
        (known,) = pg.interpret(kernel.graph, *feeds)
        found = kernel(*feeds)
        assert np.array_equal(np.isnan(found), np.isnan(known)), value
        np.testing.assert_allclose(found, known, rtol=1e-13)
        assert np.array_equal(
            np.signbit(found),
            np.signbit(known) & ~np.isnan(known) | (np.signbit(found) & np.isnan(known)),
        )


ZEROS = [
    lambda x, y: 0.0 * x + y,
    lambda x, y: y + 0.0 * x,
    lambda x, y: y - 0.0 * x,
    lambda x, y: 0.0 * x - y,
    lambda x, y: (0.0 * x - y) * x,
    lambda x, y: pg.cos(0.0 * x - y) + 0.0 * y,
    lambda x, y: pg.exp(0.0 * x + y) * 0.0,
    lambda x, y: pg.sqrt(0.0 * x + y * y) - 0.0 * y,
    lambda x, y: -(x - y) + 0.0,
    lambda x, y: pg.where(0.0 * x + y > 0, -x, 0.0 * y),
    lambda x, y: 1.0 / (1.0 + 0.0 * x + y * y) - 0.0 * x,
    lambda x, y: (-x) * y - (-y) * 0.0 + (-0.0) * x,
    lambda x, y: (x * 1.0 - y / 1.0) * -1.0 - (-x),
    lambda x, y: pg.arctan2(0.0 * x, y) + pg.maximum(0.0 * y, -x),
    lambda x, y: pg.logaddexp(x, y),
    lambda x, y: pg.logaddexp(x, y) * 0.0 + pg.sigmoid(x),
]


@pytest.mark.parametrize("function", ZEROS)
def test_zeros_keep_their_signs_and_special_values(function):
    kernel = kernel_of(function, pg.spec(()), pg.spec(()))
    told = 0
    for x, y in itertools.product(SPECIALS, SPECIALS):
        feeds = [np.array(x), np.array(y)]
        found = by_numbers(kernel, feeds)
        known = by_numpy(kernel, feeds)
        if found is not None:
            told += 1
            np.testing.assert_allclose(found[0], known[0], rtol=1e-15)
            zero = np.signbit(found[0]) == np.signbit(known[0])
            assert zero or np.isnan(known[0]), (x, y)
        np.testing.assert_array_max_ulp(kernel(*feeds), known[0], 2) if np.isfinite(
            known[0]
        ) else np.testing.assert_equal(kernel(*feeds), known[0])
    assert told >= 20


@pytest.mark.parametrize("shapes", [((2, 2), (2, 2)), ((1, 4), (4, 1)), ((1, 3), (3, 2))])
def test_products_are_sums_in_the_order_of_their_terms(shapes):
    kernel = kernel_of(lambda x, y: x @ y, *map(pg.spec, shapes))
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, y = (rng.normal(size=s) * 10.0 ** rng.integers(-3, 3, s) for s in shapes)
        expected = np.zeros((shapes[0][0], shapes[1][1]))
        for k in range(shapes[0][1]):
            expected = expected + x[:, k : k + 1] * y[k : k + 1, :]
        assert np.all(same_bits(kernel(x, y), expected))
        error = np.abs(kernel(x, y) - x @ y)
        assert np.all(error <= 1e-15 * (np.abs(x) @ np.abs(y)))
    zeros = kernel(np.full(shapes[0], -0.0), np.ones(shapes[1]))
    assert not np.signbit(zeros).any()


SYSTEMS = {
    "solve": lambda a, b: pg.linalg.solve(a, b),
    "inv": lambda a, b: pg.linalg.inv(a) @ b,
    "cholesky": lambda a, b: pg.linalg.cholesky(a) @ b,
    "lower": lambda a, b: pg.linalg.solve_triangular(a, b, lower=True),
    "upper": lambda a, b: pg.linalg.solve_triangular(a, b, lower=False),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_small_systems_are_as_accurate_as_lapacks(name, n):
    kernel = kernel_of(SYSTEMS[name], pg.spec((n, n)), pg.spec((n, 2)))
    rng = np.random.default_rng(n)
    for k in range(100):
        a, b = rng.normal(size=(n, n)), rng.normal(size=(n, 2))
        if k % 3 == 1:
            a[0, 0] = 0.0 if n > 1 and name in ("solve", "inv") else a[0, 0]
        if name == "cholesky":
            a = a @ a.T + 0.1 * np.eye(n)
        (known,), feeds = by_numpy(kernel, [a, b]), [a, b]
        (found,) = by_numbers(kernel, feeds)
        condition = np.linalg.cond({"lower": np.tril(a), "upper": np.triu(a)}.get(name, a))
        assert np.abs(found - known).max() <= 1e-15 * n * condition * np.abs(known).max()


@pytest.mark.parametrize("name", SYSTEMS)
def test_singular_and_indefinite_matrices_raise_as_with_numpy(name):
    kernel = kernel_of(SYSTEMS[name], pg.spec((2, 2)), pg.spec((2, 2)))
    singular = [np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 4.0]]), np.diag([1.0, 0.0])]
    raised = 0
    for a in [*singular, np.diag([-1.0, 1.0]), np.diag([1.0, -1.0]), np.full((2, 2), np.nan)]:
        feeds, errors = [a, np.ones((2, 2))], []
        try:
            by_numpy(kernel, feeds)
        except np.linalg.LinAlgError:
            raised += 1
            with pytest.raises(RunError) as error:
                kernel(*feeds)
            errors.append(error)
            assert isinstance(error.value, np.linalg.LinAlgError)
        else:
            np.testing.assert_allclose(kernel(*feeds), by_numpy(kernel, feeds)[0], rtol=1e-14)
    assert raised >= 2


def test_a_matrix_is_factored_even_if_its_solution_is_not_chosen():
    def function(a, c):
        return pg.where(c > 0, pg.linalg.solve(a, np.ones((2, 1))), np.zeros((2, 1)))

    kernel = kernel_of(function, pg.spec((2, 2)), pg.spec(()))
    with pytest.raises(RunError):
        kernel(np.zeros((2, 2)), -1.0)
    assert kernel(np.eye(2), -1.0).tolist() == [[0.0], [0.0]]


def test_a_pivot_of_a_part_that_no_result_needs_is_computed():
    def function(a, b):
        matrix = pg.stack([pg.stack([a, 0.0]), pg.stack([0.0, b])])
        return pg.linalg.inv(matrix)[0, 0]

    kernel = kernel_of(function, pg.spec(()), pg.spec(()))
    assert kernel(4.0, 2.0) == 0.25
    with pytest.raises(RunError):
        kernel(4.0, 0.0)


@pytest.mark.parametrize("x", [[np.inf, 50.0], [np.nan, 50.0], [1e308, 5.0], [1.0, 50.0]])
def test_special_values_in_dropped_terms_of_a_test_do_not_end_a_loop(x):
    """`0.0 * inf` is NaN, which is greater than no limit."""
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])

    def loop(x):
        return pg.while_loop(
            lambda s: pg.logical_not((pg.array(swap) @ s[0])[0] > s[1]),
            lambda s: (s[0] * 1.5, s[1] - 1.0),
            (x, np.array(20.0)),
            max_trips=20,
        )

    graph = pg.trace(loop, np.array(x))
    with np.errstate(all="ignore"):
        for found, expected in zip(
            pg.compile(graph)(np.array(x)), interpret(graph, np.array(x)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_random_programs_of_small_matrices_agree_with_the_interpreter():
    seen = Counter()
    for seed in range(20):
        check_scalars(ScalarProgram(seed), seen)
    assert seen["scalars"] == 20
    assert seen["scalars: computed"] >= 60
    assert seen["scalars: left to NumPy"] >= 20


ACCURATE = [(pg.erf, 3), (pg.erfc, 3), (pg.sigmoid, 3), (pg.logaddexp, 1), (pg.arctan2, 1)]


@pytest.mark.parametrize(("function", "units"), ACCURATE)
def test_functions_of_several_steps_are_within_few_units_in_the_last_place(function, units):
    count = 1 + (function in (pg.logaddexp, pg.arctan2))
    kernel = kernel_of(function, *[pg.spec(())] * count)
    rng = np.random.default_rng(0)
    for x in rng.normal(size=(2000, count)) * 10.0 ** rng.uniform(-6, 1.3, (2000, 1)):
        feeds = [*map(np.array, x)]
        np.testing.assert_array_max_ulp(
            by_numbers(kernel, feeds)[0], by_numpy(kernel, feeds)[0], units
        )


# Rules on numbers.


def texts(build) -> list[str]:
    """Return the words of the operations that are left."""
    new = Numbers()
    x, y = new.variable("x"), new.variable("y")
    results, _ = simplify(build(new, x, y), new)
    return [n.word for n in in_order(results) if n.word in WORDS]


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda new, x, y: [new("*", x, new.constant(1.0))], []),
        (lambda new, x, y: [new("+", x, new.constant(-0.0))], []),
        (lambda new, x, y: [new("+", x, new.constant(0.0))], ["+"]),
        (lambda new, x, y: [new("cos", new("+", x, new.constant(0.0)))], ["cos"]),
        (lambda new, x, y: [new("sin", new("+", x, new.constant(0.0)))], ["+", "sin"]),
        (lambda new, x, y: [new("+", x, new("-x", y))], ["-"]),
        (lambda new, x, y: [new("-", x, new("*", new("-x", y), y))], ["*", "+"]),
        (lambda new, x, y: [new("-x", new("-", x, y))], ["-", "-x"]),
        (lambda new, x, y: [new("cos", new("-x", new("-", x, y)))], ["-", "cos"]),
        (lambda new, x, y: [new("*", x, y), new("*", y, x)], ["*"]),
        (lambda new, x, y: [new("*", new.constant(0.0), x)], ["*"]),
        (
            lambda new, x, y: [
                new("+", new("+", new("*", new.constant(0.0), x), y), new.constant(0.0))
            ],
            ["+"],
        ),
    ],
)
def test_rules_keep_the_signs_of_zeros_that_reach_a_result(build, left):
    assert texts(build) == left


def test_what_is_dropped_is_checked_by_a_result_that_depends_on_it():
    new = Numbers()
    x, y, zero = new.variable("x"), new.variable("y"), new.constant(0.0)
    hidden = new("exp", y)
    total = new("+", new("+", new("*", zero, x), new("*", zero, hidden)), new("*", x, x))
    (result,), finite = simplify([new("+", total, zero)], new)
    assert finite == [result, hidden]


@pytest.mark.parametrize("divisor", [2.0, 0.0, -0.0, np.inf, np.nan])
@pytest.mark.parametrize("used", [False, True])
def test_zero_over_a_number_is_dropped_unless_that_is_zero_or_no_number(divisor, used):
    def function(x, y):
        total = x * x + np.zeros(2) / y
        return [total, x / y] if used else total

    kernel = kernel_of(function, pg.spec((2,)), pg.spec(()))
    assert ("0.0 /" in kernel.planned_source) == (not used)
    feeds = [np.array([1.5, -0.25]), np.array(divisor)]
    with np.errstate(all="ignore"):
        for found, known in zip(kernel.flat(*feeds), by_numpy(kernel, feeds), strict=True):
            assert np.all(same_bits(found, known))


def test_bounded_terms_are_checked_by_what_they_are_functions_of():
    new = Numbers()
    x, y, zero = new.variable("x"), new.variable("y"), new.constant(0.0)
    bounded = new("+", new("*", new("sin", x), new("cos", y)), new.constant(3.0))
    total = new("+", new("*", zero, bounded), new("*", x, x))
    (result,), finite = simplify([new("+", total, zero)], new)
    assert finite == [result, y]
    unbounded = new("+", new("*", zero, new("*", y, new("cos", y))), new("*", x, x))
    (_,), finite = simplify([new("+", unbounded, zero)], new)
    assert [n.word for n in finite] == ["*"]


BOUNDED = {name: word.bound for name, word in WORDS.items() if word.bound < math.inf}


@pytest.mark.parametrize("name", BOUNDED)
def test_functions_keep_their_bounds(name):
    function = getattr(math, name)
    found = [abs(function(s * 2.0**k)) for k in range(-1074, 1024, 3) for s in (1.0, -1.0)]
    assert 0.5 * BOUNDED[name] < max(found) <= BOUNDED[name]


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_special_operands_of_bounded_terms_are_found(place, special):
    def function(q):
        rows = [pg.stack([pg.cos(q[k]) * 0.0, pg.erf(q[k])]) for k in range(2)]
        return pg.stack(rows) @ np.eye(2, k=1)

    kernel = kernel_of(function, pg.spec((2,)))
    feed = np.ones(2)
    feed[place] = special
    with np.errstate(all="ignore"):
        assert np.all(same_bits(kernel.flat(feed)[0], by_numpy(kernel, [feed])[0]))


def test_names_are_used_again():
    def function(x):
        states = [x]
        for _ in range(100):
            states.append(pg.sin(states[-1]) * states[-1])
        return states[-1]

    text = kernel_of(function, pg.spec(())).planned_source
    text = text[text.index("def scalar(") :]
    assert text.count("\n        v") >= 99
    assert "v2 " not in text


def test_kernels_with_given_results_return_the_same_bits():
    kernel = kernel_of(lambda a, b: pg.linalg.solve(a, a @ b), pg.spec((3, 3)), pg.spec((3, 3)))
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3))
    wanted, out = kernel(a, b), np.empty((3, 3))
    assert np.array_equal(kernel(a, b, out=out), wanted)
    assert np.array_equal(kernel(a.tolist(), np.asfortranarray(b)), wanted)
    assert np.array_equal(kernel(a, b, borrow=True), wanted)


def test_a_graph_with_large_arrays_is_not_scalar():
    graph = pg.trace(lambda x: x @ x, pg.spec((11, 11)))
    assert compile_graph(graph)._code.scalar is None
