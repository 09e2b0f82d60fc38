"""Derivatives where they are a matter of convention: ties, kinks, edges of the domain, guards.

Every case is taken in forward, reverse and mixed mode, with and without clean-up in between.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from derive import all_modes, build, complex_step, cotangents_of, derivatives, tangents_of

from primgraph.errors import MissingRuleError, NotDifferentiable
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.types import BOOL, FLOAT32, FLOAT64, INT64
from primgraph.primitives.constants import constant, filled_constant, zeros_like
from primgraph.primitives.elementwise import (
    abs_,
    arccos,
    arccosh,
    arctan2,
    arctanh,
    cast,
    ceil,
    erfc,
    exp,
    floor,
    floor_divide,
    integer_pow,
    log,
    log1p,
    logaddexp,
    maximum,
    minimum,
    power,
    remainder,
    round_,
    rsqrt,
    sigmoid,
    sign,
    sqrt,
    stop_gradient,
)
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    not_equal,
    select,
)
from primgraph.primitives.reductions import (
    argmax,
    argmin,
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from primgraph.primitives.shapes import broadcast, concat, permute, reshape, reverse, slice_
from primgraph.transforms import batch, linearize, transpose

Function = Callable[..., Value]
SMALL = (-1.0, 0.0, 1.0)


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    """Equal to a few roundings, infinities and NaN included."""
    return np.allclose(found, expected, rtol=1e-12, atol=1e-13, equal_nan=True)


def assert_derivatives(
    function: Function, x: float | Sequence[float], *expected: object, others: Sequence = ()
) -> None:
    """Derivatives by the first operand, of orders one, two, ..., in every mode."""
    point = np.array(x, float)
    rest = [np.asarray(a) for a in others]
    graph = build(function, *(of(a) for a in (point, *rest)))
    for order, value in enumerate(expected, 1):
        for modes in all_modes(order):
            for clean in (False, True):
                found = derivatives(graph, point, modes, *rest, clean=clean)
                wanted = np.broadcast_to(np.asarray(value, float), found.shape)
                assert close(found, wanted), (x, modes, clean, found, value)


def of(array: np.ndarray) -> str:
    shape = ",".join(map(str, array.shape))
    return f"{ {'f': 'f64', 'i': 'i64', 'b': 'bool'}[array.dtype.kind] }[{shape}]"


def like(value: float, x: Value) -> Value:
    return filled_constant(value, x.type)


def total(x: Value) -> Value:
    result: Value = reduce_sum(x, axes=tuple(range(len(x.shape))))
    return result


# Ties and kinks.


@pytest.mark.parametrize("x", SMALL)
@pytest.mark.parametrize("y", SMALL)
def test_maximum_and_minimum_split_a_tie_evenly(x: float, y: float) -> None:
    share = 0.5 if x == y else float(x > y)
    assert_derivatives(maximum, x, share, 0, 0, others=[y])
    assert_derivatives(minimum, x, 1 - share, 0, 0, others=[y])
    assert_derivatives(lambda x, y: maximum(y, x), x, share, 0, 0, others=[y])
    assert_derivatives(lambda x, y: minimum(y, x), x, 1 - share, 0, 0, others=[y])


@pytest.mark.parametrize("x", [*SMALL, -0.0])
def test_maximum_and_minimum_with_zero_add_up_to_the_identity(x: float) -> None:
    def both(x: Value) -> Value:
        return maximum(x, zeros_like(x)) + minimum(x, zeros_like(x))

    assert_derivatives(both, x, 1, 0, 0)
    assert_derivatives(lambda x: maximum(x, x) * minimum(x, x), x, 2 * x, 2, 0)


@pytest.mark.parametrize(
    "x", [[0.0], [1.0, 1.0], [0.0, 1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, 0.0, -1.0]]
)
def test_extrema_split_a_tie_evenly(x: list[float]) -> None:
    array = np.array(x)
    for op, best in ((reduce_max, array.max()), (reduce_min, array.min())):
        share = (array == best) / np.count_nonzero(array == best)
        assert_derivatives(lambda x, op=op: op(x, axes=(0,)), x, share, 0)
        expected = 2 * best * share, 2 * np.outer(share, share), 0
        assert_derivatives(lambda x, op=op: integer_pow(op(x, axes=(0,)), n=2), x, *expected)


def test_extrema_along_an_axis_split_each_row() -> None:
    x = np.array([[0.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
    found = derivatives(build(lambda x: reduce_max(x, axes=(1,)), "f64[2,3]"), x, "r")
    assert np.array_equal(found[0], [[0, 0.5, 0.5], [0, 0, 0]])
    assert close(found[1], np.array([[0, 0, 0], [1 / 3] * 3]))
    forward = derivatives(build(lambda x: reduce_max(x, axes=(1,)), "f64[2,3]"), x, "f")
    assert np.array_equal(found, forward)


def test_infinite_extrema_are_ties_too() -> None:
    x = [math.inf, 0.0, math.inf]
    assert_derivatives(lambda x: reduce_max(x, axes=(0,)), x, [0.5, 0, 0.5], 0)


def test_many_ties_in_float16() -> None:
    """The number of the tied is counted in float32: in float16 it would stop at 2048."""
    graph = cotangents_of(build(lambda x: reduce_max(x, axes=(0,)), "f16[4096]"), [0])
    (found,) = interpret(graph, np.ones(4096, np.float16), np.float16(1))
    assert np.array_equal(found, np.full(4096, 1 / 4096, np.float16))


@pytest.mark.parametrize("x", [*SMALL, -0.0])
def test_abs(x: float) -> None:
    assert_derivatives(abs_, x, np.sign(x), 0, 0)
    assert_derivatives(lambda x: x * abs_(x), x, 2 * abs(x), 2 * np.sign(x), 0)


@pytest.mark.parametrize("x", [-1.5, -1.0, 0.0, 0.5, 1.0])
def test_steps_are_flat(x: float) -> None:
    for op in (sign, floor, ceil, round_, stop_gradient):
        assert_derivatives(op, x, 0, 0)
        assert_derivatives(lambda x, op=op: op(x) * x, x, interpret_scalar(op, x), 0)
    assert_derivatives(lambda x: floor_divide(x, like(2.0, x)), x, 0, 0)
    assert_derivatives(lambda x: remainder(x, like(0.75, x)), x, 1, 0)
    assert_derivatives(lambda x: remainder(like(2.5, x), x + 2.0), x, -np.floor(2.5 / (x + 2)), 0)


def interpret_scalar(op: Function, x: float) -> float:
    return float(interpret(build(op, "f64[]"), x)[0])


@pytest.mark.parametrize("op", [sign, floor, ceil, round_, stop_gradient])
def test_a_step_has_a_symbolic_zero(op: Function) -> None:
    graph = tangents_of(build(op, "f64[3]"), [0])
    assert [eqn.op.name for eqn in graph.body] == ["full"]


@pytest.mark.parametrize(
    "op", [equal, not_equal, greater, greater_equal, less, less_equal, argmax, argmin]
)
def test_results_that_are_no_floats_have_no_tangent(op: Function) -> None:
    def call(x: Value) -> Value:
        return op(x, axis=0) if op in (argmax, argmin) else op(x, zeros_like(x))

    before = build(call, "f64[3]")
    after = linearize(before)
    assert after.output_types == before.output_types
    assert after.body[-1].outputs == after.outputs[:1]
    with pytest.raises(NotDifferentiable):
        linearize(build(lambda i: i, "i64[3]"), [0])


def test_a_position_is_a_step_for_what_it_selects() -> None:
    """The gradient of `x[argmax(x)]` is that of the element found, by both modes."""

    def at_best(x: Value) -> Value:
        return gather(x, argmax(x, axis=0), axis=0)

    assert_derivatives(at_best, [0.0, 1.0, 1.0, -1.0], [0, 1, 0, 0], 0)


# Casts.


def test_casts_to_integers_and_back_are_flat() -> None:
    def there_and_back(x: Value) -> Value:
        return cast(cast(x, dtype=INT64), dtype=FLOAT64)

    for x in (-1.5, 0.0, 1.0):
        assert_derivatives(there_and_back, x, 0, 0)
        assert_derivatives(lambda x: there_and_back(x) * x, x, math.trunc(x), 0)
        assert_derivatives(
            lambda x: cast(cast(x, dtype=BOOL), dtype=FLOAT64) * x, x, float(x != 0), 0
        )
    body = tangents_of(build(there_and_back, "f64[]"), [0]).body
    assert [eqn.op.name for eqn in body] == ["full"]


def test_a_cast_between_floats_keeps_the_dtype_of_each_side() -> None:
    graph = build(lambda x: integer_pow(cast(x, dtype=FLOAT32), n=3), "f64[]")
    for modes, expected in (("f", 12), ("r", 12), ("rf", 12), ("rr", 12), ("frf", 6)):
        assert derivatives(graph, np.array(2.0), modes) == expected
    assert str(cotangents_of(graph, [0]).outputs[0].type) == "f64[]"
    assert str(tangents_of(graph, [0]).outputs[0].type) == "f32[]"


# Powers.


@pytest.mark.parametrize("x", SMALL)
def test_small_integer_powers(x: float) -> None:
    for n, expected in {
        0: (0, 0, 0, 0),
        1: (1, 0, 0, 0),
        2: (2 * x, 2, 0, 0),
        3: (3 * x**2, 6 * x, 6, 0),
        4: (4 * x**3, 12 * x**2, 24 * x, 24),
    }.items():
        assert_derivatives(lambda x, n=n: integer_pow(x, n=n), x, *expected)
    assert interpret_scalar(lambda x: integer_pow(x, n=0), x) == 1


def test_negative_integer_powers_at_zero() -> None:
    assert_derivatives(lambda x: integer_pow(x, n=-1), 0.0, -math.inf, math.inf)
    assert_derivatives(lambda x: integer_pow(x, n=-2), 2.0, -2 / 8, 6 / 16, -24 / 32)


@pytest.mark.parametrize("x", [*SMALL, 2.0, math.inf])
def test_a_power_by_its_base_where_the_exponent_is_zero(x: float) -> None:
    assert interpret(build(power, "f64[]", "f64[]"), x, 0.0)[0] == 1
    assert_derivatives(power, x, 0, 0, 0, others=[0.0])


@pytest.mark.parametrize("x", [-2.0, -1.0, 1.0, 2.0])
def test_a_power_by_its_base_where_the_exponent_is_an_integer(x: float) -> None:
    for n in (-2.0, -1.0, 1.0, 2.0, 3.0):
        first, second, third = n, n * (n - 1), n * (n - 1) * (n - 2)
        expected = first * x ** (n - 1), second * x ** (n - 2), third * x ** (n - 3)
        assert_derivatives(power, x, *expected, others=[n])


def test_a_power_by_its_base_at_zero() -> None:
    for n, expected in {1.0: (1, 0, 0), 2.0: (0, 2, 0), 3.0: (0, 0, 6), 4.0: (0, 0, 0)}.items():
        assert_derivatives(power, 0.0, *expected, others=[n])
    assert_derivatives(power, 0.0, math.inf, -math.inf, others=[0.5])
    assert_derivatives(power, 0.0, 0, math.inf, others=[1.5])
    assert_derivatives(power, 1e-310, 0, 0, others=[0.0])


def test_a_power_by_its_exponent() -> None:
    def by_exponent(y: Value, x: Value) -> Value:
        return power(x, y)

    for y in (0.0, 0.5, 1.0, 2.0):
        assert_derivatives(by_exponent, y, 0, 0, 0, others=[0.0])
        slope = math.log(2)
        assert_derivatives(by_exponent, y, *(2**y * slope**k for k in (1, 2, 3)), others=[2.0])
    assert_derivatives(by_exponent, 2.0, math.nan, math.nan, others=[-1.0])
    assert interpret(build(power, "f64[]", "f64[]"), -1.0, 0.5)[0] != 0


@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, -1.0])
@pytest.mark.parametrize("x", [0.5, 1.0, 2.0])
def test_mixed_derivatives_of_a_power(x: float, y: float) -> None:
    """Also where the exponent is zero: the derivative by y of `y x**(y-1)` is 1/x there."""

    def of_both(v: Value) -> Value:
        return power(*(gather(v, constant(value=np.array(i)), axis=0) for i in (0, 1)))

    mixed = x ** (y - 1) * (1 + y * math.log(x))
    hessian = [[y * (y - 1) * x ** (y - 2), mixed], [mixed, x**y * math.log(x) ** 2]]
    gradient = [y * x ** (y - 1), x**y * math.log(x)]
    assert_derivatives(of_both, [x, y], gradient, hessian)


# Edges of the domain.


def test_the_edge_of_the_domain_is_not_hidden() -> None:
    inf, nan = math.inf, math.nan
    assert_derivatives(sqrt, 0.0, inf, -inf)
    assert_derivatives(sqrt, -1.0, nan, nan)
    assert_derivatives(log, 0.0, inf, -inf, inf)
    assert_derivatives(log1p, -1.0, inf, -inf, inf)
    assert_derivatives(rsqrt, 0.0, -inf, inf)
    assert_derivatives(arccos, 1.0, -inf)
    assert_derivatives(arccos, -1.0, -inf)
    assert_derivatives(arccosh, 1.0, inf)
    assert_derivatives(arctanh, 1.0, inf)
    assert_derivatives(lambda x: x / zeros_like(x), 1.0, inf)


def test_a_symbolic_zero_times_an_infinite_slope_stays_zero() -> None:
    assert_derivatives(lambda x, y: sqrt(y) * x, 2.0, 0, 0, others=[0.0])
    assert_derivatives(lambda x: x + sqrt(stop_gradient(x)), 0.0, 1, 0)
    assert_derivatives(lambda x: x + sqrt(abs_(sign(x))), 0.0, 1, 0)
    assert_derivatives(lambda x: x + log(floor(x)), 0.5, 1, 0)


@pytest.mark.parametrize(
    ("kind", "x", "y"),
    [("f64", 1e-200, 1e-200), ("f64", 0.0, 1e-200), ("f64", 1e200, -1e200), ("f32", 0.0, 1e-30),
     ("f32", 3e-23, 4e-23), ("f32", 3e20, 4e20)],
)  # fmt: skip
def test_an_angle_has_slopes_at_any_distance(kind: str, x: float, y: float) -> None:
    """The squares of the coordinates may be too large or too small for their dtype."""
    graph = build(arctan2, f"{kind}[]", f"{kind}[]")
    found = interpret(cotangents_of(graph, [0, 1]), *np.array([x, y, 1], graph.inputs[0].dtype))
    r = math.hypot(x, y)
    np.testing.assert_allclose(found, [y / r / r, -x / r / r], rtol=1e-6)


def test_derivatives_far_out_are_finite() -> None:
    for x in (-1e3, 1e3):
        assert_derivatives(sigmoid, x, 0, 0, 0)
        assert_derivatives(erfc, x, 0, 0, 0)
        assert_derivatives(lambda x: logaddexp(x, zeros_like(x)), x, float(x > 0), 0, 0)
    # To first order in the small number exp(-x), in which 1 - sigmoid(x) would be lost.
    assert_derivatives(sigmoid, 40.0, math.exp(-40), -math.exp(-40), math.exp(-40))
    graph = tangents_of(build(sigmoid, "f64[]"), [0])
    assert math.isclose(interpret(graph, 40.0, 1.0)[0], math.exp(-40), rel_tol=1e-14)


# Guards: a branch that is not selected must not put a NaN into the derivative.

GUARDED: dict[str, tuple[Function, Callable[[float], bool], Callable[[float], list[float]]]] = {
    # The function, where it is not constant, and its derivatives there.
    "log": (
        lambda x: select(greater(x, zeros_like(x)), log(x), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [1 / x, -1 / x**2, 2 / x**3],
    ),
    "log by the other side": (
        lambda x: select(less_equal(x, zeros_like(x)), zeros_like(x), log(x)),
        lambda x: x > 0,
        lambda x: [1 / x, -1 / x**2, 2 / x**3],
    ),
    "sqrt": (
        lambda x: select(greater(x, zeros_like(x)), sqrt(x), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [0.5 * x**-0.5, -0.25 * x**-1.5, 0.375 * x**-2.5],
    ),
    "rsqrt": (
        lambda x: select(greater(x, zeros_like(x)), rsqrt(x), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [-0.5 * x**-1.5, 0.75 * x**-2.5, -1.875 * x**-3.5],
    ),
    "division": (
        lambda x: select(equal(x, zeros_like(x)), zeros_like(x), 1.0 / x),
        lambda x: x != 0,
        lambda x: [-1 / x**2, 2 / x**3, -6 / x**4],
    ),
    "division of x": (
        lambda x: select(not_equal(x, zeros_like(x)), (x * x * x) / x, zeros_like(x)),
        lambda x: x != 0,
        lambda x: [2 * x, 2, 0],
    ),
    "exp overflow": (
        lambda x: select(less(x, like(50.0, x)), exp(x * 10.0), zeros_like(x)),
        lambda x: x < 50,
        lambda x: [10**k * math.exp(10 * x) for k in (1, 2, 3)],
    ),
    "power": (
        lambda x: select(greater(x, zeros_like(x)), power(x, like(0.5, x)), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [0.5 * x**-0.5, -0.25 * x**-1.5, 0.375 * x**-2.5],
    ),
    "power of itself": (
        lambda x: select(greater(x, zeros_like(x)), power(x, x), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [
            x**x * (1 + math.log(x)),
            x**x * ((1 + math.log(x)) ** 2 + 1 / x),
            x**x * ((1 + math.log(x)) ** 3 + 3 * (1 + math.log(x)) / x - 1 / x**2),
        ],
    ),
    "product": (
        lambda x: select(greater(x, zeros_like(x)), x * log(x), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [math.log(x) + 1, 1 / x, -1 / x**2],
    ),
    "deep inside": (
        lambda x: select(greater(x, zeros_like(x)), exp(-(1.0 / (x * x))), zeros_like(x)),
        lambda x: x > 0,
        lambda x: [
            math.exp(-1 / x**2) * 2 / x**3,
            math.exp(-1 / x**2) * (4 / x**6 - 6 / x**4),
            math.exp(-1 / x**2) * (8 / x**9 - 36 / x**7 + 24 / x**5),
        ],
    ),
    "twice nested": (
        lambda x: select(
            greater(x, like(-0.5, x)),
            select(greater(x, zeros_like(x)), log(x), zeros_like(x)),
            zeros_like(x),
        ),
        lambda x: x > 0,
        lambda x: [1 / x, -1 / x**2, 2 / x**3],
    ),
    "select inside a guarded function": (
        lambda x: select(
            greater(x, zeros_like(x)),
            log(select(greater(x, like(50.0, x)), x * x, x)),
            zeros_like(x),
        ),
        lambda x: x > 0,
        lambda x: [c * (1 + (x > 50)) for c in (1 / x, -1 / x**2, 2 / x**3)],
    ),
    "two conditions": (
        lambda x: select(
            logical_and(greater(x, zeros_like(x)), less(x, like(50.0, x))),
            sqrt(x) * sqrt(50.0 - x),
            zeros_like(x),
        ),
        lambda x: 0 < x < 50,
        lambda x: _root_of_both(x),
    ),
    "chain of cases": (
        lambda x: select(
            less(x, zeros_like(x)),
            zeros_like(x),
            select(
                equal(x, zeros_like(x)),
                zeros_like(x),
                select(less(x, like(60.0, x)), log(x), zeros_like(x)),
            ),
        ),
        lambda x: 0 < x < 60,
        lambda x: [1 / x, -1 / x**2, 2 / x**3],
    ),
}


def _root_of_both(x: float) -> list[float]:
    """Derivatives of `q**(1/2)` where `q = x (50 - x)`."""
    q, q1 = x * (50 - x), 50 - 2 * x
    first = q1 / (2 * q**0.5)
    second = -1 / q**0.5 - q1**2 / (4 * q**1.5)
    third = 3 * q1 / (2 * q**1.5) + 3 * q1**3 / (8 * q**2.5)
    return [first, second, third]


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("x", [*SMALL, 2.0, 80.0, -80.0])
def test_guarded_branches(name: str, x: float) -> None:
    function, inside, slopes = GUARDED[name]
    assert_derivatives(function, x, *(slopes(x) if inside(x) else (0, 0, 0)))


@pytest.mark.parametrize("name", GUARDED)
def test_guarded_branches_side_by_side(name: str) -> None:
    """All points in one array: no NaN of one element leaks to another."""
    function, inside, slopes = GUARDED[name]
    points = [*SMALL, 2.0]
    each = np.array([slopes(x) if inside(x) else [0, 0, 0] for x in points])
    first, second = np.diag(each[:, 0]), np.zeros((4, 4, 4))
    second[[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]] = each[:, 1]
    assert_derivatives(function, points, first, second)


@pytest.mark.parametrize("name", GUARDED)
def test_guarded_branches_in_a_batch(name: str) -> None:
    function, inside, slopes = GUARDED[name]
    points = np.array([*SMALL, 2.0])
    expected = [slopes(x)[1] if inside(x) else 0 for x in points]
    slope = cotangents_of(build(function, "f64[]"), [0])
    for curvature in (tangents_of(slope, [0]), cotangents_of(slope, [0])):
        (found,) = interpret(batch(curvature, 4, (0, None, None)), points, 1.0, 1.0)
        assert close(found, np.array(expected))


def test_a_guard_with_a_product_of_another_variable() -> None:
    """`w log(x)` guarded by x: derivatives by w, by x and mixed are 0 where x is 0."""

    def function(v: Value, x: Value) -> Value:
        return select(greater(x, zeros_like(x)), v * log(x), zeros_like(x))

    def swapped(x: Value, v: Value) -> Value:
        return function(v, x)

    for x in (-1.0, 0.0):
        for w in SMALL:
            assert_derivatives(function, w, 0, 0, 0, others=[x])
            assert_derivatives(swapped, x, 0, 0, 0, others=[w])
    assert_derivatives(function, 3.0, math.log(2), 0, 0, others=[2.0])
    assert_derivatives(swapped, 2.0, 3 / 2, -3 / 4, 6 / 8, others=[3.0])

    def of_both(both: Value) -> Value:
        w, x = (gather(both, constant(value=np.array(i)), axis=0) for i in (0, 1))
        return function(w, x)

    assert_derivatives(of_both, [3.0, 0.0], 0, 0, 0)
    third = np.zeros((2, 2, 2))
    third[0, 1, 1] = third[1, 0, 1] = third[1, 1, 0] = -1 / 4
    third[1, 1, 1] = 2 * 3 / 8
    hessian = [[0, 1 / 2], [1 / 2, -3 / 4]]
    assert_derivatives(of_both, [3.0, 2.0], [math.log(2), 3 / 2], hessian, third)


def test_a_guarded_norm_at_zero() -> None:
    """`where(n > 0, sqrt(n), 0)` of a sum of squares."""

    def norm(x: Value) -> Value:
        n = total(x * x)
        return select(greater(n, zeros_like(n)), sqrt(n), zeros_like(n))

    assert_derivatives(norm, [0.0, 0.0], 0, 0, 0)
    unit = np.array([0.6, 0.8])
    assert_derivatives(norm, [3.0, 4.0], unit, (np.eye(2) - np.outer(unit, unit)) / 5)


def positive(x: Value) -> Value:
    result: Value = greater(x, zeros_like(x))
    return result


def test_a_guard_on_what_a_norm_divides() -> None:
    """The norm and the condition are broadcast alike, and the guard reaches the root."""

    def direction(x: Value) -> Value:
        n = total(x * x)
        both = positive(n), sqrt(n)
        inside, length = (broadcast(v, shape=x.shape, new_axes=(0,)) for v in both)
        return select(inside, x / length, zeros_like(x))

    assert_derivatives(direction, [0.0, 0.0], 0, 0, 0)
    unit = np.array([0.6, 0.8])
    assert_derivatives(direction, [3.0, 4.0], (np.eye(2) - np.outer(unit, unit)) / 5)


@pytest.mark.parametrize(
    ("move", "copies"),
    [
        (lambda x: reshape(x, shape=(2, 1)), 1),
        (lambda x: permute(reshape(x, shape=(2, 1)), axes=(1, 0)), 1),
        (lambda x: reverse(x, axes=(0,)), 1),
        (lambda x: broadcast(x, shape=(2, 3), new_axes=(1,)), 3),
    ],
)
def test_a_guard_on_what_is_moved(move: Function, copies: int) -> None:
    def function(x: Value) -> Value:
        guarded = select(move(positive(x)), move(log(x)), move(zeros_like(x)))
        return total(guarded * guarded) * 0.5

    slope, curvature = copies * math.log(2) / 2, copies * (1 - math.log(2)) / 4
    assert_derivatives(function, [0.0, 2.0], [0, slope], [[0, 0], [0, curvature]])


def test_a_guard_on_what_a_batch_shares() -> None:
    def function(w: Value, x: Value) -> Value:
        return select(positive(w), log(w) * x, zeros_like(w))

    batched = batch(build(function, "f64[]", "f64[]"), 3, (None, 0))
    for w, expected in ((0.0, 0.0), (2.0, 6 / 2)):
        (found,) = interpret(cotangents_of(batched, [0]), w, np.array([1, 2, 3]), np.ones(3))
        assert found == expected


def test_a_condition_on_the_guarded_value_itself() -> None:
    def of_root(x: Value) -> Value:
        y = sqrt(x)
        return select(positive(y), 1.0 / y, zeros_like(y))

    assert_derivatives(of_root, 0.0, 0, 0, 0)
    assert_derivatives(of_root, 4.0, -1 / 16, 3 / 128, -15 / 1024)


def test_a_guard_below_many_others() -> None:
    def function(x: Value) -> Value:
        y = select(positive(x), log(x), zeros_like(x))
        for k in range(7):
            y = select(greater(x, like(-0.1 * k, x)), y, zeros_like(x))
        return y

    assert_derivatives(function, 0.0, 0, 0, 0)
    assert_derivatives(function, 2.0, 1 / 2, -1 / 4, 1 / 4)


def test_a_value_used_inside_and_outside_of_a_guard() -> None:
    def function(x: Value) -> Value:
        y = log(x)
        return select(greater(x, zeros_like(x)), y, zeros_like(x)) + exp(y)

    assert_derivatives(function, 2.0, 1 / 2 + 1, -1 / 4, 1 / 4)
    # Here the logarithm is used where it has no value, and that shows.
    assert_derivatives(function, -1.0, math.nan)

    def shared(x: Value) -> Value:
        return select(greater(x, zeros_like(x)), sqrt(x), x * x)

    assert_derivatives(shared, 0.0, 0, 2, 0)
    assert_derivatives(shared, -1.0, -2, 2, 0)
    assert_derivatives(shared, 4.0, 1 / 4, -1 / 32, 3 / 256)


def test_a_guarded_branch_followed_by_a_function() -> None:
    def function(x: Value) -> Value:
        return exp(2.0 * select(greater(x, zeros_like(x)), log(x), zeros_like(x)))

    assert_derivatives(function, 0.0, 0, 0, 0)
    assert_derivatives(function, 3.0, 6, 2, 0)


# Products with zeros, running sums, repeated positions.


@pytest.mark.parametrize(
    "x", [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [1.0, -1.0, 2.0], [0.0], [2.0, 0.0]]
)
def test_products_with_zeros(x: list[float]) -> None:
    n = len(x)
    expected = []
    for order in (1, 2, 3):
        slopes = np.zeros((n,) * order)
        for places in np.ndindex(slopes.shape):
            if len(set(places)) == order:
                slopes[places] = np.prod([v for i, v in enumerate(x) if i not in places])
        expected.append(slopes)
    assert_derivatives(lambda x: reduce_prod(x, axes=(0,)), x, *expected)


def test_the_product_of_nothing_is_flat() -> None:
    graph = cotangents_of(build(lambda x: reduce_prod(x, axes=(1,)), "f64[2,0]"), [0])
    assert interpret(graph, np.ones((2, 0)), np.ones(2))[0].shape == (2, 0)


def test_gather_with_repeated_indices() -> None:
    index = constant, np.array([0, 2, 2, -1, 0])

    def function(x: Value) -> Value:
        picked = gather(x, index[0](value=index[1]), axis=0)
        return total(picked * picked * picked)

    x = np.array([1.0, -1.0, 2.0])
    counts = np.array([2, 0, 3])
    third = np.zeros((3, 3, 3))
    third[range(3), range(3), range(3)] = 6 * counts
    assert_derivatives(function, x, 3 * x**2 * counts, np.diag(6 * x * counts), third)


def test_scatter_add_with_repeated_indices() -> None:
    index = np.array([0, 2, 2, -1, 0])
    incidence = np.zeros((3, 5))
    for column, row in enumerate(index):
        incidence[row, column] = 1
    base = np.array([0.5, 0.0, -1.0])

    def function(y: Value, x: Value) -> Value:
        z = scatter_add(x, y, constant(value=index), axis=0)
        return total(z * z * z)

    y = np.array([1.0, 2.0, 0.0, -1.0, 1.0])
    z = base + incidence @ y
    hessian = incidence.T @ np.diag(6 * z) @ incidence
    assert_derivatives(function, y, incidence.T @ (3 * z**2), hessian, others=[base])
    swapped = lambda x, y: function(y, x)  # noqa: E731
    assert_derivatives(swapped, base, 3 * z**2, np.diag(6 * z), others=[y])


def test_running_sums_to_third_order() -> None:
    lower = np.tril(np.ones((3, 3)))
    x = np.array([1.0, 0.0, -1.0])
    for backward, matrix in ((False, lower), (True, lower.T)):

        def function(x: Value, backward: bool = backward) -> Value:
            z = cumsum(x, axis=0, reverse=backward)
            return total(z * z * z)

        z = matrix @ x
        third = np.einsum("ia,ib,ic->abc", *[matrix] * 3) * 6
        hessian = matrix.T @ np.diag(6 * z) @ matrix
        assert_derivatives(function, x, matrix.T @ (3 * z**2), hessian, third)


def test_a_value_used_many_times_gets_every_contribution() -> None:
    assert_derivatives(lambda x: x * x * x, 2.0, 12, 12, 6)
    assert_derivatives(lambda x: x + x - x, 2.0, 1, 0)
    assert_derivatives(lambda x: x / x, 2.0, 0, 0, 0)
    assert_derivatives(lambda x: total(concat(x, x, x, axis=0)), [1.0, 2.0], [3, 3], 0)
    three = np.zeros((3,))
    assert_derivatives(lambda x: total(broadcast(x, shape=(3,), new_axes=(0,))), 1.0, 3, 0)
    assert_derivatives(
        lambda x: total(slice_(x, starts=(1,), sizes=(2,), steps=(1,)) * 2.0), three, [0, 2, 2]
    )


# What cannot be transposed or differentiated says so.


def test_a_product_of_two_linear_operands_is_refused() -> None:
    graph = build(lambda x, y: x * y, "f64[3]", "f64[3]")
    with pytest.raises(MissingRuleError, match="product of two linear operands"):
        transpose(graph, [0, 1])
    with pytest.raises(MissingRuleError, match="adds a constant"):
        transpose(build(lambda x: x + 1.0, "f64[3]"), [0])
    with pytest.raises(MissingRuleError, match="not linear"):
        transpose(build(lambda x: 1.0 / x, "f64[3]"), [0])


def test_a_path_whose_factor_is_zero_gives_zeros() -> None:
    assert_derivatives(lambda x: x * 0.0, 3.0, 0, 0)
    assert_derivatives(lambda x: x - x, 3.0, 0, 0)


# Random points from {-1, 0, 1} meet ties and kinks often.


def test_modes_agree_at_random_ties() -> None:
    """Any composition gives the same derivative in all modes, ties or not."""

    def function(x: Value) -> Value:
        y = maximum(x, gather(x, constant(value=np.array([1, 2, 0])), axis=0))
        z = minimum(abs_(x), y * x) + select(greater(x, zeros_like(x)), log(x), x)
        best = reduce_max(z, axes=(0,))
        return best * best + reduce_prod(y + z, axes=(0,)) + power(best, like(2.0, best))

    graph = build(function, "f64[3]")
    rng = np.random.default_rng(7)
    for x in rng.choice(SMALL, (8, 3)):
        for order in (1, 2):
            found = [derivatives(graph, x, m, clean=c) for m in all_modes(order) for c in (0, 1)]
            assert all(np.isfinite(d).all() for d in found)
            assert all(close(d, found[0]) for d in found)
            if order == 2:
                assert close(found[0], found[0].T)


def test_the_helper_agrees_with_complex_step() -> None:
    """The whole array of third derivatives, against a complex step of the second."""

    def function(x: Value) -> Value:
        return total(exp(x) * reduce_prod_of_neighbours(x))

    def reduce_prod_of_neighbours(x: Value) -> Value:
        return x * gather(x, constant(value=np.array([1, 2, 0])), axis=0)

    x = np.array([0.3, -0.2, 0.7])
    graph: Graph = build(function, "f64[3]")
    third = derivatives(graph, x, "frf")
    twice = tangents_of(tangents_of(graph, [0]), [0])
    u, v, w = np.eye(3)
    (expected,) = complex_step(twice, [x, u, v], {0: w}, {})
    assert math.isclose(third[0, 1, 2], expected, abs_tol=1e-13)
    assert close(third, third.transpose(2, 0, 1))
