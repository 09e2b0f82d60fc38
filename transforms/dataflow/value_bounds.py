"""Interval analysis at finite inputs: which derivatives stay finite, and which may not.

`x - max(x)` is at most 0 and attains 0, so that the sum of its exponentials is at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives import constants as c
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic, parts
from primgraph.primitives import reductions as r
from primgraph.primitives import shapes as s
from primgraph.primitives.control import REGIONS, Regions
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra import products
from primgraph.transforms.dataflow.ranges import (
    ANYTHING,
    BY_RANGE,
    INF,
    MOVES,
    REAL,
    SMOOTH,
    Range,
    absolute,
    added,
    hull,
    multiplied,
    negated,
    times,
)
from primgraph.transforms.dataflow.region_interface import UNSURE

# Maximum number of equations visited backwards from a value whose range is unknown.
_NEAR = 64

Arrays: TypeAlias = Callable[[Value], np.ndarray[Any, Any] | None]


@dataclass(frozen=True, slots=True)
class _Around:
    """State of the analysis that rules read: ranges so far, defining equations, constant arrays."""

    known: dict[Value, Range]
    made: dict[Value, Equation]
    array: Arrays

    def add(self, eqn: Equation) -> None:
        """Compute the ranges of the results of `eqn`."""
        self.made.update(dict.fromkeys(eqn.outputs, eqn))
        given = [self.known[v] for v in eqn.inputs]
        if eqn.op.fact(REGIONS) is not None:
            self.known.update(zip(eqn.outputs, _of_bodies(eqn, given), strict=True))
            return
        found = _range(eqn, given, self)
        self.known.update(dict.fromkeys(eqn.outputs, found))


def ranges_of(
    graph: Graph,
    given: Mapping[Value, Range] | None = None,
    array: Arrays = lambda value: None,
) -> dict[Value, Range]:
    """Return the range of each value of `graph`, for inputs that are finite, or within `given`.

    `array` returns the elements of constant values.
    """
    around = _Around({**dict.fromkeys(graph.inputs, REAL), **(given or {})}, {}, array)
    for eqn in graph.body:
        around.add(eqn)
    return around.known


def ranges_near(
    values: Iterable[Value], definition: Callable[[Value], Equation | None]
) -> dict[Value, Range]:
    """Return ranges of `values` from nearby equations; decompositions are assumed to be stable."""
    around = _Around({}, {}, lambda value: None)
    known = around.known
    for value in values:
        budget, waiting = _NEAR, [value]
        while waiting:
            last = waiting[-1]
            eqn = definition(last)
            missing = [v for v in eqn.inputs if v not in known] if eqn is not None else []
            if last in known:
                waiting.pop()
            elif eqn is None or (missing and budget <= 0):
                known[last] = REAL
            elif missing:
                waiting += missing
                budget -= 1
            else:
                around.add(eqn)
    return known


def ranges_within(eqn: Equation, given: Sequence[Range]) -> list[Range]:
    """Return ranges of body inputs that hold in every iteration, for operands `given`.

    For loop carries only finiteness is tracked, not bounds.
    """
    regions = Regions.of(eqn)
    known = [replace(x, peak=None) for x in given[regions.lead :]]
    if not regions.is_loop:
        return known
    places = range(regions.consts, regions.consts + regions.carries)
    for i in places:
        known[i] = REAL if known[i].finite else ANYTHING
    while True:
        found = _of_outputs(regions.bodies[0], known)
        lost = [i for i, x in zip(places, found, strict=False) if known[i].finite and not x.finite]
        if not lost:
            return known
        for i in lost:
            known[i] = ANYTHING


def _of_bodies(eqn: Equation, given: Sequence[Range]) -> list[Range]:
    """Return the ranges of results of branches and loops; rows of iterations not run are zero."""
    regions = Regions.of(eqn)
    known = ranges_within(eqn, given)
    results = [_of_outputs(body, known) for body in regions.bodies]
    found = [hull(ranges) for ranges in zip(*results, strict=True)]
    if not regions.is_loop:
        return found
    carried = known[regions.consts : regions.consts + regions.carries]
    stacked = [hull([x, _ZERO]) for x in found[regions.carries :]]
    return [*carried, *[REAL] * regions.counts, *stacked]


def _of_outputs(body: Graph, known: Sequence[Range]) -> list[Range]:
    # Loops query the same ranges at least twice, which doubles at each nesting level.
    key = ("ranges", *known)
    results: list[Range] | None = body.noted(key)
    if results is None:
        found = ranges_of(body, dict(zip(body.inputs, known, strict=True)))
        results = [found[v] for v in body.outputs]
        body.note(key, results)
    return results


_ZERO = Range(0.0, 0.0)


def _range(eqn: Equation, given: list[Range], around: _Around) -> Range:
    if not eqn.outputs[0].type.is_inexact:
        return REAL
    if _has_complex(eqn):
        return _range_of_complex(eqn, given, around)
    if eqn.op in _BY_EQUATION:
        return _BY_EQUATION[eqn.op](eqn, given, around)
    if eqn.op in BY_RANGE:
        return BY_RANGE[eqn.op](*given)
    if eqn.op in MOVES:
        return hull(given)
    harmless = not (isinstance(eqn.op, Primitive) and eqn.op.singular)
    return REAL if harmless and all(x.finite for x in given) else ANYTHING


def _has_complex(eqn: Equation) -> bool:
    return eqn.outputs[0].type.is_complex or any(v.type.is_complex for v in eqn.inputs)


# Operations that keep complex numbers finite. Functions that are bounded on the real line have
# poles in the complex plane, or grow exponentially.
_POLYNOMIAL: frozenset[Op] = MOVES | {
    e.add, e.sub, e.neg, e.mul, products.matmul, r.reduce_sum, r.cumsum, logic.select,
    parts.real, parts.imag, parts.conj, parts.complex_, parts.modulus, s.reshape, s.permute,
    s.broadcast, s.pad, gather, scatter_add,
}  # fmt: skip


def _range_of_complex(eqn: Equation, given: list[Range], around: _Around) -> Range:
    """Return finiteness only, as complex numbers have no bounds."""
    if eqn.op is parts.modulus:
        return replace(absolute(given[0]), low=0.0)
    if eqn.op in (c.full, c.constant):
        value = eqn.kwargs["value"]
        array = np.asarray(value if eqn.op is c.full else value.data)
        return REAL if bool(np.isfinite(array).all()) else ANYTHING
    finite = all(x.finite for x in given)
    return REAL if finite and eqn.op in _POLYNOMIAL else ANYTHING


# Conditions under which a partial derivative is finite.


def factors_of_slope(op: Primitive[Any], position: int, count: int) -> list[int]:
    """Return the operands, of `count`, whose values occur in the derivative at `position`."""
    if op.own_slope:
        return [0]
    if op.linear == "each":
        return [i for i in range(count) if i != position]
    together = op.linear_operands(count)
    return [i for i in range(count) if position not in together or i not in together]


def slope_stays_finite(eqn: Equation, position: int, ranges: dict[Value, Range]) -> bool:
    """Return whether the derivative of `eqn` at `position` is finite for finite inputs."""
    op = eqn.op
    if not isinstance(op, Primitive):
        return False
    if op.constant or op.linear is True or (op is e.remainder and position == 0):
        return True
    given = [ranges[v] for v in eqn.inputs]
    if _has_complex(eqn):
        factors = [given[i] for i in factors_of_slope(op, position, len(given))]
        return op in _POLYNOMIAL and all(x.finite for x in factors)
    if op in _FLAT_ENDS:
        return not any(x.nan for x in given)
    if op in (e.exp, e.expm1):
        return _exp_is_finite(given[0], eqn.outputs[0])
    factors = [given[i] for i in factors_of_slope(op, position, len(given))]
    if op is logic.unless_nan:
        return not any(x.nan for x in factors)
    if not all(x.finite for x in factors):
        return False
    if op is e.integer_pow:
        return eqn.kwargs["n"] >= 0 or given[0].excludes_zero
    return SMOOTH[op](*given) if op in SMOOTH else not op.singular


# Primitives whose derivatives are finite at infinities too.
_FLAT_ENDS: frozenset[Op] = frozenset(
    {e.tanh, e.sigmoid, e.erf, e.erfc, e.abs_, e.arctan, e.maximum, e.minimum, r.reduce_max,
     r.reduce_min}
)  # fmt: skip


def _largest_exponent(value: Value) -> float:
    return math.log(float(np.finfo(value.dtype).max)) - 1


def _exp_is_finite(x: Range, result: Value) -> bool:
    return not (x.nan or x.above) and x.high <= _largest_exponent(result)


# Ranges of results that depend on parameters or definitions, not only on ranges of operands.


def _of_full(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return _of_array(np.asarray(eqn.kwargs["value"], np.float64))


def _of_another(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return ANYTHING if eqn.kwargs["number"] == UNSURE else given[0]


def _of_extent(eqn: Equation, given: list[Range], around: _Around) -> Range:
    low, high = bounds(eqn.kwargs["size"])
    return Range(low, high)


def _of_constant(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return _of_array(np.asarray(eqn.kwargs["value"].data))


def _of_array(array: np.ndarray[Any, Any]) -> Range:
    real = array[np.isfinite(array)]
    if real.size == 0:
        low, high = 0.0, 0.0
    else:
        low, high = float(real.min()), float(real.max())
    below, above, nan = (bool(f(array).any()) for f in (np.isneginf, np.isposinf, np.isnan))
    return Range(low, high, below, above, nan)


def _square(x: Range) -> Range:
    size = absolute(x)
    return multiplied(size, size) if x.finite else replace(ANYTHING, low=0.0, below=False)


def _of_product(eqn: Equation, given: list[Range], around: _Around) -> Range:
    x, y = eqn.inputs
    return _square(given[0]) if x is y else multiplied(*given)


def _of_root(eqn: Equation, given: list[Range], around: _Around) -> Range:
    finite = all(x.finite for x in given) and bounds(eqn.kwargs["divisor"])[0] > 0
    return Range(0.0) if finite else replace(ANYTHING, low=0.0, below=False)


def _of_integer_pow(eqn: Equation, given: list[Range], around: _Around) -> Range:
    (x,), n = given, eqn.kwargs["n"]
    if not x.finite or (n < 0 and not x.excludes_zero):
        return ANYTHING
    return Range(0.0) if n % 2 == 0 or x.low >= 0 else REAL


def _of_exp(eqn: Equation, given: list[Range], around: _Around) -> Range:
    (x,) = given
    if not _exp_is_finite(x, eqn.outputs[0]):
        return Range(0.0, INF, False, True, x.nan)
    low = 0.0 if x.below else math.exp(x.low)
    return Range(low, math.exp(x.high), peak=x.peak)


def _of_uniform(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return Range(eqn.kwargs["low"], eqn.kwargs["high"])


def _of_permute(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return replace(given[0], peak=None)


def _of_reshape(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return replace(given[0], peak=None)


def _of_broadcast(eqn: Equation, given: list[Range], around: _Around) -> Range:
    return replace(given[0], peak=None)


def _of_sum(eqn: Equation, given: list[Range], around: _Around) -> Range:
    """Return the range of a sum; a sum of nonnegative numbers is at least their maximum."""
    (x,) = given
    nan = x.nan or (x.below and x.above)
    count = math.prod(eqn.inputs[0].shape[a] for a in eqn.kwargs["axes"])
    few, many = bounds(count)
    low = min(times(few, x.low), times(many, x.low))
    high = max(times(few, x.high), times(many, x.high))
    if x.peak == eqn.kwargs["axes"] and x.low >= 0:
        low = max(low, x.high)
    return Range(low, high, x.below, x.above, nan)


def _of_softmax(eqn: Equation, given: list[Range], around: _Around) -> Range:
    """Return [0, 1], the range of a softmax; NaN only if the operand may be infinite or NaN."""
    return Range(0.0, 1.0, nan=not given[0].finite)


def _of_running_sum(eqn: Equation, given: list[Range], around: _Around) -> Range:
    (x,) = given
    nan = x.nan or (x.below and x.above)
    return Range(min(x.low, 0.0) * INF if x.low < 0 else x.low, INF, x.below, x.above, nan)


def _of_products(eqn: Equation, given: list[Range], around: _Around) -> Range:
    """Return the range of a sum of products or a product: nonnegative if all factors are."""
    if not all(x.finite for x in given):
        return ANYTHING
    return Range(0.0) if all(x.low >= 0 for x in given) else REAL


def _of_difference(eqn: Equation, given: list[Range], around: _Around) -> Range:
    """Return the range of `x - y`; at most 0 if `y` is the maximum of `x` over some axes."""
    x, y = given
    plain = added(x, negated(y))
    axes = _largest_of(eqn.inputs[0], eqn.inputs[1], around)
    if axes is None or x.above or x.nan:
        return plain
    # Where all elements are -inf the shift is 0, and no element attains the bound.
    attained = not x.below or _some_chosen(eqn.inputs[0], axes, around)
    return Range(-INF, 0.0, x.below, False, False, axes if attained else None)


def _some_chosen(value: Value, axes: tuple[int, ...], around: _Around) -> bool:
    """Return whether a constant condition selects a finite element along `axes` everywhere."""
    eqn = around.made.get(value)
    if eqn is None or eqn.op is not logic.select:
        return False
    condition = around.array(eqn.inputs[0])
    if condition is None:
        return False
    sides = [around.known[v].finite for v in eqn.inputs[1:]]
    finite = np.where(condition, *sides)
    return bool(np.all(np.any(finite, axis=axes)))


def _largest_of(x: Value, y: Value, around: _Around) -> tuple[int, ...] | None:
    """Return the axes over which `y` is the maximum of `x`, broadcast back; None if it is not one.

    A `select` that replaces non-finite maxima by a finite number is skipped.
    """
    axes: tuple[int, ...] | None = None
    eqn = around.made.get(y)
    while eqn is not None and eqn.op is not r.reduce_max:
        if eqn.op is logic.select:
            if not _is_finite_test(eqn, around):
                return None
            eqn = around.made.get(eqn.inputs[1])
            continue
        if eqn.op is s.broadcast and axes is None:
            axes = eqn.kwargs["new_axes"]
        elif eqn.op not in (s.reshape, e.steady, e.stop_gradient):
            return None
        eqn = around.made.get(eqn.inputs[0])
    if eqn is None or eqn.inputs[0] is not x or eqn.kwargs["axes"] != axes:
        return None
    return axes


def _is_finite_test(eqn: Equation, around: _Around) -> bool:
    """Return whether a `select` replaces elements that are not finite by a finite constant."""
    test = around.made.get(eqn.inputs[0])
    if test is None or test.op is not logic.less:
        return False
    size, bound, other = (around.made.get(v) for v in (*test.inputs, eqn.inputs[2]))
    if size is None or bound is None or other is None:
        return False
    constant = bound.op is c.full and bound.kwargs["value"] == INF
    number = other.op is c.full and math.isfinite(other.kwargs["value"])
    return constant and number and size.op is e.abs_ and size.inputs[0] is eqn.inputs[1]


def _of_select(eqn: Equation, given: list[Range], around: _Around) -> Range:
    """Return the hull of both branches, tightened by a comparison with a constant."""
    condition, x, y = eqn.inputs
    if _is_finite_test(eqn, around):
        return hull([replace(given[1], below=False, above=False, nan=False), given[2]])
    test = around.made.get(condition)
    if test is not None and test.op is logic.equal:
        z, other = test.inputs
        if z is other and not around.known[z].nan:
            return given[1]
    chosen = [
        _where(test, v, side, known, around)
        for v, side, known in ((x, True, given[1]), (y, False, given[2]))
    ]
    return hull(chosen)


# Comparisons after which the first operand is bounded below (True) or above (False) by the second.
_AT_LEAST = {logic.greater: True, logic.greater_equal: True, logic.less: False,
             logic.less_equal: False}  # fmt: skip


def _where(test: Equation | None, value: Value, side: bool, known: Range, around: _Around) -> Range:
    """Return the range of `value` where the comparison `test` equals `side`."""
    if test is None or test.op not in _AT_LEAST or value not in test.inputs:
        return known
    place = test.inputs.index(value)
    other = around.made.get(test.inputs[1 - place])
    if other is None or other.op is not c.full:
        return known
    bound = float(other.kwargs["value"])
    above = (_AT_LEAST[test.op] == side) == (place == 0)
    return replace(known, low=max(known.low, bound)) if above else replace(
        known, high=min(known.high, bound)
    )  # fmt: skip


_BY_EQUATION: dict[Op, Callable[[Equation, list[Range], _Around], Range]] = {
    c.full: _of_full,
    c.extent: _of_extent,
    c.constant: _of_constant,
    c.random_uniform: _of_uniform,
    e.as_another: _of_another,
    e.mul: _of_product,
    e.sub: _of_difference,
    e.integer_pow: _of_integer_pow,
    e.exp: _of_exp,
    logic.select: _of_select,
    s.reshape: _of_reshape,
    s.permute: _of_permute,
    s.broadcast: _of_broadcast,
    r.reduce_sum: _of_sum,
    r.cumsum: _of_running_sum,
    r.as_softmax_of: _of_softmax,
    r.reduce_prod: _of_products,
    r.root_of_squares: _of_root,
    products.matmul: _of_products,
}
