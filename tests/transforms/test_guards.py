"""What is not chosen does not matter: no infinity or NaN of it comes into a derivative.

Every program here has elements that nothing chooses. Its derivatives are those at ordinary values
of these elements, and zero by them, in every mode.
"""

import sys
import time
from functools import cache

import numpy as np
import pytest
from derive import build, cotangents_of, tangents_of, type_of

import primgraph as pg
from primgraph.ir.graph import Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, registered
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import constant, zeros_like
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import greater, logical_not, select
from primgraph.primitives.reductions import (
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)
from primgraph.transforms import linearize, lower
from primgraph.transforms.dataflow.masks.masks import Masks, masks_of

# Elements 0 and 3 of five are not chosen; the last entry of `v` is what all elements share.
CHOSEN = np.array([False, True, True, False, True])
LOST = [0, 3]
ORDINARY = np.array([0.6, 0.7, 0.4, 0.8, 0.3, 0.9])
SINGULAR = ([0.0, -1.0], [1.0, 2.0], [-1e30, 1e30])
NOT_FINITE = ([np.inf, -np.inf], [np.nan, 0.0])


def part(x: Value, start: int, size: int, step: int = 1) -> Value:
    result: Value = slice_(x, starts=(start,), sizes=(size,), steps=(step,))
    return result


def condition() -> Value:
    result: Value = constant(value=CHOSEN)
    return result


def total(x: Value) -> Value:
    result: Value = reduce_sum(x, axes=tuple(range(len(x.shape)))) if x.shape else x
    return result


def by_parts(y: Value) -> Value:
    parts = split(y, sizes=(1, 2, 1, 1), axis=0)
    return concat(parts[1], parts[3], axis=0)


CHOICES = {
    "select": lambda y: select(condition(), y, zeros_like(y)),
    "select the other side": lambda y: select(logical_not(condition()), zeros_like(y), y),
    "slices": lambda y: concat(part(y, 1, 2), part(y, 4, 1), axis=0),
    "slices that overlap": lambda y: part(y, 1, 2) * part(y, 2, 2, 2) + part(y, 1, 2),
    "elements": lambda y: part(y, 1, 1) * part(y, 2, 1) + part(y, 4, 1),
    "backwards": lambda y: concat(part(y, 4, 1, -1), part(y, 2, 2, -1), axis=0),
    "split": by_parts,
    "gather": lambda y: gather(y, constant(value=np.array([1, 4, 2, -1])), axis=0),
    "slice_assign": lambda y: slice_assign(
        y, part(y, 1, 2), starts=(0,), steps=(3,)
    ),
    "slice of a reversed one": lambda y: part(
        reverse(pad(y, low=(2,), high=(0,)), axes=(0,)), 2, 2
    ),
    "slice and select": lambda y: select(
        part(condition(), 1, 3), part(y, 1, 3), zeros_like(part(y, 1, 3))
    ),
    "slice of a stack": lambda y: slice_(
        concat(reshape(y, shape=(1, 5)), zeros_like(reshape(y, shape=(1, 5))), axis=0),
        starts=(0, 1), sizes=(2, 2), steps=(1, 1),
    ),
}  # fmt: skip


def takes_one_float(op: object) -> bool:
    try:
        op.infer((type_of("f64[1]"),), {})
    except (pg.PrimgraphError, TypeError):
        return False
    return True


UNARY = [
    op
    for op in registered().values()
    if isinstance(op, Primitive) and op.elementwise and not op.constant and takes_one_float(op)
]
"""All elementwise functions of one operand."""

BINARY = (e.mul, e.div, e.power, e.logaddexp, e.arctan2, e.maximum, e.minimum, e.remainder)


def shifted(x: Value, b: Value) -> Value:
    """`x + b`, with one `b` for all."""
    return x + broadcast(reshape(b, shape=()), shape=x.shape, new_axes=(0,))


FUNCTIONS = {op.name: op for op in UNARY} | {
    "arccosh": lambda x: e.arccosh(x + 1.0),
    "integer_pow -2": lambda x: e.integer_pow(x, n=-2),
    "integer_pow 3": lambda x: e.integer_pow(x, n=3),
    "root of a square": lambda x: e.sqrt(x * x),
    "root of a size": lambda x: e.sqrt(e.abs_(x)),
    "angle of a square": lambda x: e.arctan2(x, x * x),
    "power of a number": lambda x: e.sin(e.power(zeros_like(x) + 2.0, x)),
} | {
    f"{op.name} by {name}": (lambda x, op=op, k=k: op(*((x, 0.5 * x + 0.1) if k else (2.3 - x, x))))
    for op in BINARY
    for k, name in enumerate(("second", "both"))
}  # fmt: skip
"""One operand; of functions of two, both depend on it, and singular points come to each."""


def program(function, choose, then=lambda y, b: y):
    def f(v: Value) -> Value:
        x, b = part(v, 0, 5), part(v, 5, 1)
        y = then(function(shifted(x, b) - shifted(zeros_like(x), b)), b)
        return total(choose(shifted(y, b) * shifted(y, b)))

    return build(f, "f64[6]")


def slopes(graph, v, order):
    """The gradient in both modes, or what the Hessian makes of a direction in all four."""
    one, basis = np.ones(()), np.eye(v.size)
    if order == 1:
        forward, reverse = derived(graph, "f"), derived(graph, "r")
        yield "f", np.array([interpret(forward, v, d)[0] for d in basis])
        yield "r", interpret(reverse, v, one)[0]
        return
    d = np.linspace(0.5, 1.5, v.size)
    yield "rf", interpret(derived(graph, "rf"), v, one, d)[0]
    yield "rr", interpret(derived(graph, "rr"), v, one, d)[0]
    yield "fr", interpret(derived(graph, "fr"), v, d, one)[0]
    yield "ff", np.array([interpret(derived(graph, "ff"), v, d, u)[0] for u in basis])


@cache
def derived(graph, modes):
    for mode in modes:
        graph = tangents_of(graph, [0]) if mode == "f" else cotangents_of(graph, [0])
    return graph


def assert_nothing_comes_back(graph, points, orders=(1, 2), lost=LOST):
    """Derivatives at `points` of what is not chosen are those at ordinary ones."""
    for order in orders:
        wanted = dict(slopes(graph, ORDINARY, order))
        for point in points:
            v = ORDINARY.copy()
            v[lost] = point
            for modes, found in slopes(graph, v, order):
                what = (point, modes, found, wanted[modes])
                assert np.all(np.isfinite(found)), what
                assert np.allclose(found, wanted[modes], rtol=1e-9, atol=1e-12), what
                assert not np.any(found[lost]), what


def test_functions_are_all_there():
    names = {op.name for op in UNARY}
    assert {"log", "sqrt", "tanh", "erf", "abs", "exp", "arccosh", "rsqrt"} <= names
    assert len(names) > 20


PAIRS = [
    (name, choice)
    for i, name in enumerate(FUNCTIONS)
    for k, choice in enumerate(CHOICES)
    if choice in ("select", "slices") or (i + k) % len(CHOICES) == 0 or name == "log"
]


@pytest.mark.parametrize(("name", "choice"), PAIRS)
def test_every_function_of_what_is_not_chosen(name, choice):
    graph = program(FUNCTIONS[name], CHOICES[choice])
    assert_nothing_comes_back(graph, SINGULAR)
    if choice == "select":
        assert_nothing_comes_back(graph, NOT_FINITE)


# What stands between a function and the choice.


def weighted(y: Value, b: Value) -> Value:
    """A product with weights that depend on `b`, of two columns and back to one."""
    weights = broadcast(reshape(b, shape=()), shape=(2, 3), new_axes=(0, 1))
    rows = concat(reshape(y, shape=(5, 1)), reshape(y * y, shape=(5, 1)), axis=1)
    return reduce_sum(matmul(rows, weights), axes=(1,))


def on_the_right(y: Value, b: Value) -> Value:
    columns = permute(
        concat(reshape(y, shape=(5, 1)), reshape(y * y, shape=(5, 1)), axis=1), axes=(1, 0)
    )
    weights = broadcast(reshape(b, shape=()), shape=(3, 2), new_axes=(0, 1))
    return reduce_sum(matmul(weights, columns), axes=(0,))


def pairs(y: Value) -> Value:
    return concat(reshape(y, shape=(5, 1)), reshape(2.0 * y, shape=(5, 1)), axis=1)


STEPS = {
    **{
        op.name: (lambda y, b, op=op: op(shifted(y, b)))
        for op in (e.tanh, e.sin, e.cos, e.sigmoid, e.erf, e.arctan, e.abs_, e.exp)
    },
    "factor": lambda y, b: y * shifted(zeros_like(y), b),
    "product of matrices": weighted,
    "product of matrices, on the right": on_the_right,
    "maxima": lambda y, b: reduce_max(pairs(shifted(y, b)), axes=(1,)),
    "minima": lambda y, b: reduce_min(pairs(shifted(y, b)), axes=(1,)),
    "products": lambda y, b: reduce_prod(pairs(shifted(y, b)), axes=(1,)),
    "running sums along another axis": lambda y, b: reduce_sum(
        cumsum(pairs(shifted(y, b)), axis=1, reverse=False), axes=(1,)
    ),
    "maximum": lambda y, b: e.maximum(y, shifted(zeros_like(y), b)),
    "added to positions": lambda y, b: scatter_add(
        shifted(y, b), y, constant(value=np.arange(5)), axis=0
    ),
}


def between():
    """Each step with three functions and three choices; every second pair of these is dense."""
    return [
        pytest.param(step, name, choice, marks=[pytest.mark.dense] * ((i + j + k) % 2))
        for i, step in enumerate(STEPS)
        for j, name in enumerate(("log", "sqrt", "root of a square"))
        for k, choice in enumerate(("select", "slices", "gather"))
    ]


@pytest.mark.parametrize(("step", "name", "choice"), between())
def test_a_step_between_a_function_and_the_choice(step, name, choice):
    graph = program(FUNCTIONS[name], CHOICES[choice], STEPS[step])
    assert_nothing_comes_back(graph, SINGULAR)
    if choice == "select" and "matrices" not in step:
        assert_nothing_comes_back(graph, NOT_FINITE)


def test_a_running_sum_before_what_is_lost():
    def f(v: Value) -> Value:
        y = cumsum(shifted(e.log(part(v, 0, 4)), part(v, 5, 1)), axis=0, reverse=False)
        turned = shifted(reverse(part(v, 0, 4), axes=(0,)), part(v, 4, 1) * 0.0)
        back = cumsum(e.sqrt(turned), axis=0, reverse=True)
        kept = constant(value=CHOSEN[[1, 2, 1, 0]])
        both = select(kept, y, zeros_like(y)), part(back, 1, 3)
        return total(both[0]) + total(both[1] * both[1])

    assert_nothing_comes_back(build(f, "f64[6]"), [[0.0], [-1.0]], lost=[3])


@pytest.mark.parametrize(
    "choose",
    [lambda y: pg.take(y, [1, 4, 2]), lambda y: y[1:3], lambda y: pg.split(y, [1, 3])[1]],
)
@pytest.mark.parametrize("function", [pg.arccos, lambda x: pg.log(x) + 0.5])
def test_what_looks_for_a_nan_before_the_choice(choose, function):
    """What is shared stands behind a `clip`, whose own conditions are of what is left out too."""

    def f(v):
        y = choose(pg.clip(function(v[:5]), -1.5, 1.5) + v[5])
        return pg.sum(y * y)

    assert_nothing_comes_back(lower(pg.trace(f, pg.spec(6))), SINGULAR)


def test_a_factor_of_a_product_that_is_not_differentiated():
    x = np.array([[1.0, 2.0], [0.0, -1.0]])
    for choose in (
        lambda y, x: pg.where(x[:, 0] > 0, y, 0.0),
        lambda y, x: y[:1],
    ):
        with pg.Program() as p:
            a, w = pg.data("a", (2, 2)), pg.data("w", (2,))
            slope = pg.grad(pg.sum(choose(pg.log(a) @ w, a)), w)
        (found,) = pg.Executor().run(p, {"a": x, "w": [1.0, 2.0]}, [slope])
        np.testing.assert_allclose(found, [0.0, np.log(2.0)])


# What is beaten in an extremum is not chosen either.


@pytest.mark.parametrize(
    "choose",
    [
        lambda y: reduce_max(y, axes=(0,)),
        lambda y: reduce_min(-y, axes=(0,)),
        lambda y: total(e.maximum(y, constant(value=np.array([-5.0, -5, -5, -5, -5])))),
        lambda y: total(e.minimum(constant(value=np.full(5, 5.0)), -y)),
    ],
)
def test_what_an_extremum_leaves_out(choose):
    def f(v: Value) -> Value:
        y = e.log(part(v, 0, 5) * broadcast(reshape(part(v, 5, 1), shape=()), shape=(5,),
                                           new_axes=(0,)))  # fmt: skip
        largest = choose(y)
        return largest * largest

    graph = build(f, "f64[6]")
    v = np.array([0.0, 0.5, 0.2, 0.0, 2.0, 1.0])
    with np.errstate(all="ignore"):
        for order in (1, 2):
            found = dict(slopes(graph, v, order))
            for modes, slope in found.items():
                assert np.all(np.isfinite(slope)), (modes, slope)
                assert np.allclose(slope, next(iter(found.values())))
                assert not np.any(slope[LOST])


# Tangents that are zero by their structure stay zero, whatever slopes they meet.


def behind(x: Value, place: str) -> Value:
    """Something that holds `x` and, in other places, numbers that do not depend on it."""
    zeros = zeros_like(x)
    kept = constant(value=np.array([True, False, True]))
    match place:
        case "select":
            return select(kept, x, zeros)
        case "select the other side":
            return select(logical_not(kept), zeros, x)
        case "maximum":
            return e.maximum(x - constant(value=np.array([0.0, 2.0, 0.0])), zeros)
        case "minimum":
            return -e.minimum(zeros, constant(value=np.array([0.0, 2.0, 0.0])) - x)
        case "pad":
            return pad(x, low=(1,), high=(2,))
        case "concat":
            return concat(zeros, x, axis=0)
        case "slice_assign":
            return slice_assign(x, part(zeros, 0, 2), starts=(1,), steps=(1,))
        case "slice_assign into a constant":
            return slice_assign(concat(zeros, zeros, axis=0), x, starts=(0,), steps=(2,))
        case "moved":
            return reverse(permute(reshape(concat(x, zeros, axis=0), shape=(2, 3)), axes=(1, 0)),
                           axes=(0,))  # fmt: skip
        case "taken":
            return gather(concat(x, zeros, axis=0), constant(value=np.array([5, 0, 1])), axis=0)
        case "summed":
            rows = reshape(concat(x, zeros, axis=0), shape=(2, 3))
            return reduce_sum(rows, axes=(1,))
        case "split":
            return split(concat(zeros, x, axis=0), sizes=(4, 2), axis=0)[0]
    raise ValueError(place)


PLACES = (
    "select", "select the other side", "maximum", "minimum", "pad", "concat", "slice_assign",
    "slice_assign into a constant", "moved", "taken", "summed", "split",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "steep",
    [
        e.sqrt,
        lambda x: e.power(x, 0.5 * zeros_like(x) + 0.5),
        lambda x: e.sqrt(x) * (x + 1.0),
        lambda x: e.logaddexp(e.log(x), zeros_like(x) - np.inf),
    ],
)
@pytest.mark.long
def test_a_slope_where_there_is_no_tangent(steep, place):
    graph = build(lambda x: total(steep(behind(x, place)) * 2.0), "f64[3]")
    x = np.array([0.3, 0.5, 0.7])
    for order in (1, 2):
        found = dict(slopes(graph, x, order))
        for modes, slope in found.items():
            assert np.all(np.isfinite(slope)), (modes, slope)
            assert np.allclose(slope, next(iter(found.values())), rtol=1e-12), (modes, found)


# What is asked for by users.

ORDERS = {
    "log": (lambda x: pg.where(x > 0, pg.tanh(pg.log(x)), 0.0), [-1.0, 0.0, 2.0]),
    "root": (lambda x: pg.where(x > 0, pg.sin(pg.sqrt(x) * 2.0), 0.0), [-1.0, 0.0, 2.0]),
    "slice": (lambda x: pg.log(x)[1:] * pg.tanh(pg.sqrt(x))[1:], [0.0, 1.0, 2.0]),
    "deviations": (lambda x: pg.where(x > 0, pg.std(x) * pg.log(x), 0.0), [0.0, 1.0, 2.0]),
    "angle": (lambda x: pg.where(x > 0, pg.arctan2(x, x * x), 0.0), [0.0, 1.0, 2.0]),
    "softplus": (lambda x: pg.where(x > 0, pg.sin(pg.logaddexp(pg.log(x), 0.0) + x), 0.0),
                 [-1.0, 0.0, 2.0]),
    "set_slice": (lambda x: pg.set_slice(pg.log(x), slice(0, 1), x[2:] ** 2), [0.0, 1.0, 2.0]),
    "take": (lambda x: pg.take(pg.sqrt(x) ** 3 * pg.log(x), [1, 2, 2]), [0.0, 1.0, 2.0]),
    "of -inf": (
        lambda x: pg.where(x > 0, pg.logaddexp(pg.where(x > 0, pg.log(x), -np.inf), -np.inf), 0.0),
        [-1.0, 1.0, 2.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.long
def test_modes_agree_to_third_order(name):
    function, at = ORDERS[name]
    with pg.Program() as p:
        x = pg.data("x", (3,))
        first = [mode(pg.sum(function(x)), x) for mode in (pg.grad, pg.forward_grad)]
        second = [mode(pg.sum(first[0]), x) for mode in (pg.grad, pg.forward_grad)]
        second += [mode(first[1], x) for mode in (pg.grad, pg.forward_grad)]
        third = [mode(pg.sum(d), x) for d in second for mode in (pg.grad, pg.forward_grad)]
        values = [
            pg.Executor().run(p, {"x": at}, [d]) for d in (*first, *second, *third)
        ]  # fmt: skip
    sums = [float(np.sum(value)) for (value,) in values]
    assert np.all(np.isfinite(sums)), sums
    for group in (sums[:2], sums[2:6], sums[6:]):
        np.testing.assert_allclose(group, group[0], rtol=1e-9)


def test_a_sample_that_is_not_selected_does_not_poison_what_is_shared():
    at = np.array([-1.0, 0.5, 2.0])
    with pg.Program() as p:
        x, b = pg.data("x", (3,)), pg.data("b", ())
        slopes = [
            mode(pg.sum(pg.where(x > 0, pg.tanh(pg.log(x) + b), 0.0)), b)
            for mode in (pg.grad, pg.forward_grad)
        ]
    found = pg.Executor().run(p, {"x": at, "b": 0.1}, slopes)
    expected = np.sum(1 - np.tanh(np.log(at[1:]) + 0.1) ** 2)
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-12)


# Masks cost something: none where slopes are finite wherever inputs are.


def layer(act):
    def f(x, w, v):
        return pg.mean((act(x @ w) @ v) ** 2)

    return f


def attention(mask):
    def f(x, w, v):
        q, k, u = pg.split(pg.layer_norm(x @ w, pg.ones(6), pg.zeros(6)), 3, axis=-1)
        scores = q @ k.T / np.sqrt(2.0)
        if mask is not None:
            scores = pg.where(mask, scores, -np.inf)
        return pg.cross_entropy((pg.softmax(scores) @ u)[-1:], np.array([1]))

    return f


def recurrent(x, w, v):
    h = pg.zeros((4,))
    for t in range(4):
        h = pg.tanh(x[t] @ w[:, :4] + h)
    return pg.sum(h * h)


ORDINARY_PROGRAMS = {
    "relu": layer(pg.relu),
    "tanh": layer(pg.tanh),
    "gelu": layer(pg.gelu),
    "maximum": layer(lambda x: pg.maximum(x, 0.0)),
    "leaky": layer(lambda x: pg.where(x > 0, x, 0.1 * x)),
    "cross entropy": lambda x, w, v: pg.cross_entropy(x @ w, np.array([0, 1, 2, 3])),
    "attention": attention(None),
    "causal attention": attention(np.tril(np.ones((4, 4))) == 1),
    "recurrence": recurrent,
    "logsumexp of parts": lambda x, w, v: pg.sum(pg.logsumexp(x @ w, axis=1)[1:]),
}


@pytest.mark.parametrize("name", ORDINARY_PROGRAMS)
def test_ordinary_programs_have_no_masks(name, monkeypatch):
    found = []
    module = sys.modules["primgraph.transforms.linearize"]

    def spied(*arguments):
        found.append(masks_of(*arguments))
        return found[-1]

    monkeypatch.setattr(module, "masks_of", spied)
    with pg.Program():
        x, w, v = pg.data("x", (4, 3)), pg.data("w", (3, 6)), pg.data("v", (6, 2))
        y = ORDINARY_PROGRAMS[name](x, w, v)
        first = pg.grad(y, [w])[0]
        pg.forward_grad(y, [x, w])
        if name != "causal attention":
            # There a product of what is differentiated stands behind a condition.
            pg.grad(pg.sum(first * first), [w])
    assert len(found) >= 2
    for masks in found:
        assert not masks.tangents
        assert not masks.factors
        assert not masks.results


def test_where_nothing_is_chosen_or_joined_no_ranges_are_asked_for():
    graph = build(lambda x: total(e.log(x)), "f64[3]")
    assert masks_of(graph, graph.inputs, lambda: pytest.fail("asked for")) == Masks()


def test_a_part_that_is_split_off_may_be_differentiated_by():
    """What it is split off from has no tangent, and slopes at its other parts do not matter."""

    def f(x: Value) -> Value:
        part, rest = split(x, sizes=(1, 2), axis=0)
        return total(e.sqrt(concat(part, rest, axis=0)))

    graph = build(f, "f64[3]")
    jvp = linearize(graph, [graph.body[0].outputs[0]])
    assert interpret(jvp, np.array([0.25, 0.0, -1.0]), np.ones(1))[1] == 1.0


def test_parts_that_have_everything_need_no_masks():
    def f(x: Value) -> Value:
        y = e.exp(x)
        parts = [part(y, i, 1) for i in range(6)]
        return total(concat(*parts[::-1], axis=0) * y)

    def spread(x: Value) -> Value:
        parts = split(e.exp(x), sizes=(1, 2, 3), axis=0)
        return total(concat(*(p * p for p in parts), axis=0))

    for function in (f, spread):
        graph = build(function, "f64[6]")
        names = [eqn.op.name for eqn in cotangents_of(graph, [0]).body]
        assert "select" not in names


def test_a_part_of_a_large_array_needs_no_mask(monkeypatch):
    module = sys.modules["primgraph.transforms.dataflow.masks.conditions"]
    monkeypatch.setattr(module, "LARGEST", 4)
    graph = build(lambda x: total(concat(e.sqrt(part(x, 1, 6)), x, axis=0)), "f64[8]")
    for derived in (tangents_of(graph, [0]), cotangents_of(graph, [0])):
        assert "select" not in [eqn.op.name for eqn in derived.body]


@pytest.mark.long
def test_elements_taken_one_by_one_take_linear_time():
    def seconds(n: int) -> float:
        def f(x: Value) -> Value:
            y = e.log(x)
            return total(concat(*(part(y, i, 1) for i in range(1, n)), axis=0))

        graph = build(f, f"f64[{n}]")
        start = time.perf_counter()
        tangents_of(graph, [0])
        return time.perf_counter() - start

    small, large = (min(seconds(n) for _ in range(3)) for n in (200, 1600))
    assert large < 8 * 3 * small


def guarded_one_by_one(v: Value, n: int) -> Value:
    """A sum over the first `n` elements, each of which is chosen by a condition of its own."""
    y, found = shifted(e.log(part(v, 0, n)), part(v, n, 1)), []
    for i in range(n):
        one = part(y, i, 1)
        kept = greater(part(v, i, 1), zeros_like(one))
        found.append(select(kept, one * one, zeros_like(one)))
    return total(concat(*found, axis=0))


@pytest.mark.parametrize("count", [7, 8, 9, 40])
def test_any_number_of_uses_with_guards_of_their_own(count):
    v, lost = np.linspace(0.3, 0.9, count + 1), [0, count // 2]
    v[lost] = 0.0, -1.0
    kept = np.delete(np.arange(count), lost)
    graph = build(lambda v: guarded_one_by_one(v, count), f"f64[{count + 1}]")
    slope = np.zeros(count + 1)
    sums = np.log(v[kept]) + v[count]
    slope[kept], slope[count] = 2 * sums / v[kept], 2 * np.sum(sums)
    d = np.linspace(0.5, 1.5, count + 1)
    moved = d[kept] / v[kept] + d[count]
    second = np.zeros(count + 1)
    second[kept] = 2 * moved / v[kept] - 2 * sums * d[kept] / v[kept] ** 2
    second[count] = 2 * np.sum(moved)
    (found,) = interpret(derived(graph, "r"), v, np.ones(()))
    np.testing.assert_allclose(found, slope)
    for modes, given in (("rf", (np.ones(()), d)), ("fr", (d, np.ones(())))):
        np.testing.assert_allclose(interpret(derived(graph, modes), v, *given)[0], second)


def test_parts_of_large_arrays_are_guarded_too(monkeypatch):
    monkeypatch.setattr(sys.modules["primgraph.transforms.dataflow.masks.uses"], "LARGEST", 4)
    for choice in ("slices", "slices that overlap", "elements", "split", "slice_assign"):
        assert_nothing_comes_back(program(e.log, CHOICES[choice]), SINGULAR)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_chain_before_a_choice_has_one_mask(depth):
    """The guard is left to the first of its functions, as the choice is to the last."""

    def f(x: Value) -> Value:
        y = x
        for op in (e.log, e.sqrt, e.log, e.sqrt)[:depth]:
            y = op(y)
        return select(condition(), y, zeros_like(x))

    names = [eqn.op.name for eqn in tangents_of(build(f, "f64[5]"), [0]).body]
    assert names.count("select") == 2


def test_two_choices_that_leave_no_copy_between_them():
    """Each leaves one copy of the elements that are lost, and not the same one."""
    both = np.array([[True] * 5, CHOSEN])

    def choose(y: Value) -> Value:
        copies = broadcast(y, shape=(2, 5), new_axes=(0,))
        for kept in (both, both[::-1]):
            copies = select(constant(value=kept), copies, zeros_like(copies))
        return copies

    assert_nothing_comes_back(program(e.log, choose), SINGULAR)


def test_both_sides_of_a_condition_within_another_choice():
    """What both branches of an inner `where` use matters where the outer one chooses it."""

    def f(v: Value) -> Value:
        y = e.log(part(v, 0, 5))
        both = select(condition(), y * shifted(zeros_like(y), part(v, 5, 1)), e.tanh(y))
        chosen = select(condition(), both, zeros_like(y))
        return total(chosen * chosen) + total(part(y, 1, 2)) * total(part(y, 4, 1))

    assert_nothing_comes_back(build(f, "f64[6]"), SINGULAR)


def test_a_nan_that_is_not_selected_beside_a_part_that_is_read_whole():
    """Of one derivative, whose `select` has become a product with its mask, another one."""
    kept = np.array([True, False, True, True, True])

    def slopes(u, c):
        joined = pg.concatenate([u / (u * u), c])
        first = pg.grad(pg.sum(pg.where(kept, pg.exp(joined), 0.0)), [u, c])
        return pg.grad(pg.sum(first[0]) + pg.sum(first[1]), u)

    kernel = pg.compile(pg.trace(slopes, pg.spec(3), pg.spec(2)))
    found, whole = (kernel(np.array([0.4, x, 0.7]), np.ones(2)) for x in (np.nan, 0.5))
    np.testing.assert_array_equal(found, np.where(kept[:3], whole, 0.0))


def test_what_repeats_elements_keeps_a_guard_strict_beside_one_that_is_not():
    """A NaN that a `where` leaves out of all copies, before a maximum."""
    kept = np.array([[True, False, True], [True, False, False]])

    def slope(x):
        copies = pg.broadcast_to(pg.exp(x), (2, 3))
        return pg.grad(pg.sum(pg.maximum(pg.where(kept, copies, 0.0), -5.0)), x)

    found = pg.compile(pg.trace(slope, pg.spec(3)))(np.array([0.5, np.nan, 0.7]))
    np.testing.assert_allclose(found, [2 * np.exp(0.5), 0.0, np.exp(0.7)])


def test_a_choice_within_a_choice_has_a_tangent_where_both_choose():
    inner, outer = np.array([True, False, True, False]), np.array([True, True, False, False])

    def f(x: Value) -> Value:
        chosen = select(constant(value=inner), x, zeros_like(x))
        return e.sqrt(select(constant(value=outer), chosen, zeros_like(x)))

    graph = tangents_of(build(f, "f64[4]"), [0])
    (found,) = interpret(graph, np.full(4, 4.0), np.ones(4))
    np.testing.assert_array_equal(found, [0.25, 0.0, 0.0, 0.0])
