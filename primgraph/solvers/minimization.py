"""Minima of functions by limited-memory quasi-Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primgraph.api.derivatives.of_functions import value_and_grad
from primgraph.api.public import hessian
from primgraph.control.loops import while_loop
from primgraph.control.solutions import Solved, solve_in_world
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.elementwise.arithmetic import abs, maximum
from primgraph.operators.elementwise.logic import (
    greater,
    isfinite,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from primgraph.operators.lazy_loading import functions
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import reshape
from primgraph.solvers.vectors import dot, largest, norm, options_of, vectors_of

# Pairs of steps and gradient changes that L-BFGS keeps, as SciPy does; and what both conditions of
# Wolfe ask of a step: so much of the decrease, and of the slope, that the first order foresees.
_PAIRS = 10
_DECREASE, _SLOPE = 1e-4, 0.9
_TRIALS = 40
# Changes of the value below so many units of rounding say nothing: `f` may be a long sum.
_NOISE = 100.0


class _Point(NamedTuple):
    """A point of a line: its parameter, the value and the gradient there."""

    length: Any
    value: Any
    gradient: Any


@check_arguments
def minimize(
    f: Callable[..., Any],
    x0: Any,
    *,
    method: str = "lbfgs",
    tol: float | None = None,
    max_trips: int = 1000,
    full_output: bool = False,
    linear_solver: str = "dense",
) -> Any:
    """Find a local minimum of `f`, which returns one number, near `x0`.

    `x0` is a float array, or a container of such, and `f` may use variables from around it. Its
    gradient is found by differentiation. With `method` "lbfgs" directions are those of
    limited-memory BFGS, with ten pairs. With "newton" they are those of the Hessian, n by n, with
    its absolute eigenvalues: fewer steps, each of which costs more, for up to hundreds of unknowns.
    A step satisfies the weak conditions of Wolfe, found by bisection. The steps end where no
    element of the gradient exceeds `tol` times the largest one at `x0`, or `tol` if that is below
    one. `tol` is `eps ** 0.75` of the dtype unless given: 1.8e-12 for float64.

    A minimum that is not found within `max_trips` steps is NaN. With `full_output` the result is a
    pair: the last point, and a named tuple `(converged, trips)`.

    Derivatives are by the variables that `f` uses, in all modes and orders, by the implicit
    function theorem for `grad f(x) = 0`; by `x0` they are zero. They solve equations with the
    Hessian of `f`, a dense matrix unless `linear_solver` is "cg" or another one of `pg.root`.

    Raises `ArgumentError`, `DTypeError` or `ShapeError` where `f` returns something else than a
    number, and for options out of range. See D. Liu and J. Nocedal, On the limited memory BFGS
    method, 1989, and A. Lewis and M. Overton, Nonsmooth optimization via quasi-Newton methods,
    2013.

    >>> f = lambda x: (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2
    >>> pg.solvers.minimize(f, pg.tensor([-1.2, 1.0])).round(6).tolist()
    [1.0, 1.0]
    """
    options = options_of("minimize", tol, max_trips, full_output, linear_solver)
    if method not in ("lbfgs", "newton"):
        raise ArgumentError(f"minimize: method is lbfgs or newton, not {method!r:.60}")
    build = partial(_minimize, f, method, options)
    return solve_in_world("minimize", build, [f], x0)


def _minimize(f: Callable[..., Any], method: str, options: dict[str, Any], x0: Any) -> Any:
    vectors = vectors_of("minimize", x0)
    of_vector = vectors.flat(f)
    value_and_slope = value_and_grad(of_vector)
    x = stop_gradient(vectors.start)
    value, gradient = value_and_slope(x)
    small = vectors.tolerance(options) * maximum(1.0, largest(gradient))
    steps = _Newton(hessian(of_vector)) if method == "newton" else _LBFGS(vectors.start)

    def goes_on(state: Any) -> Any:
        _, _, gradient, _, improves, _ = state
        return logical_and(improves, greater(largest(gradient), small))

    def take_step(state: Any) -> Any:
        x, value, gradient, memory, _, trips = state
        direction, first = steps.direction(x, gradient, memory)
        slope = dot(gradient, direction)
        # Rounding may leave no descent: then the gradient itself is followed.
        falls = less(slope, 0.0)
        direction = where(falls, direction, -gradient)
        slope = where(falls, slope, -dot(gradient, gradient))
        start = _Point(first * 0.0, value, gradient)
        new, improves = _search(
            lambda length: value_and_slope(x + length * direction), start, direction, slope, first
        )
        step, change = new.length * direction, new.gradient - gradient
        memory = steps.updated(memory, step, change)
        return x + step, new.value, new.gradient, memory, improves, trips + 1

    state = (x, value, gradient, steps.memory, less(value * 0.0, 1.0), 0)
    x, value, gradient, _, _, trips = while_loop(
        goes_on, take_step, state, max_trips=options["limit"]
    )
    converged = logical_and(less_equal(largest(gradient), small), isfinite(value))
    solved = Solved(converged, trips)
    return vectors.solution(lambda x: value_and_slope(x)[1], x, solved, options)


class _LBFGS:
    """Directions by the latest pairs of steps and gradient changes; those not there are zeros."""

    def __init__(self, x: Any) -> None:
        rows = functions["zeros"]((_PAIRS, x.shape[0]), x.dtype)
        self.memory = (rows, rows)

    def direction(self, x: Any, gradient: Any, memory: Any) -> tuple[Any, Any]:
        """Return a direction, and the length to try first.

        Without pairs the direction has the length of the gradient, which says nothing.
        """
        steps, changes = memory
        first = where(greater(dot(steps[-1], steps[-1]), 0.0), 1.0, 1.0 / norm(gradient))
        return -_two_loops(gradient, steps, changes), first

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Return the pairs with a new one, if the slope has grown along it."""
        curved = greater(dot(step, change), 0.0)
        kept = []
        for rows, new in zip(memory, (step, change), strict=True):
            row = reshape(new, (1, -1))
            kept.append(where(curved, functions["concatenate"]([rows[1:], row]), rows))
        return tuple(kept)


class _Newton:
    """Directions by the Hessian, of which the absolute eigenvalues are taken.

    So it descends where the Hessian is indefinite, too.
    """

    memory = ()

    def __init__(self, hessian: Callable[[Any], Any]) -> None:
        self.hessian = hessian

    def direction(self, x: Any, gradient: Any, memory: Any) -> tuple[Any, Any]:
        """Return a direction, and the length to try first."""
        values, vectors = functions["linear_algebra.spectra.eigh"](self.hessian(x))
        sizes = abs(values)
        smallest = float(np.finfo(gradient.dtype).eps) * functions["max"](sizes)
        sizes = maximum(sizes, where(greater(smallest, 0.0), smallest, 1.0))
        return -(vectors @ ((gradient @ vectors) / sizes)), 1.0 + 0.0 * gradient[0]

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """There is nothing to keep."""
        return memory


def _search(
    evaluate: Callable[[Any], Any], start: _Point, direction: Any, slope: Any, first: Any
) -> tuple[_Point, Any]:
    """Return a point of the line that satisfies the weak conditions of Wolfe, and if one was found.

    Lengths are doubled until the value is too large or the slope no longer steep, then halved.
    Where rounding hides whether a value is smaller, the slope tells (W. Hager, H. Zhang, 2005).
    """
    noise = _NOISE * float(np.finfo(direction.dtype).eps) * maximum(1.0, abs(start.value))

    def is_too_long(point: _Point) -> Any:
        bound = start.value + _DECREASE * point.length * slope
        flat = less_equal(dot(point.gradient, direction), (2.0 * _DECREASE - 1.0) * slope)
        near = logical_and(less_equal(point.value, start.value + noise), flat)
        return logical_not(logical_or(less_equal(point.value, bound), near))

    def is_too_short(point: _Point) -> Any:
        return less(dot(point.gradient, direction), _SLOPE * slope)

    def goes_on(state: Any) -> Any:
        _, _, length, value, gradient, _ = state
        point = _Point(length, value, gradient)
        return logical_or(is_too_long(point), is_too_short(point))

    def try_next(state: Any) -> Any:
        low, high, length, value, gradient, trips = state
        too_long = is_too_long(_Point(length, value, gradient))
        low, high = where(too_long, low, length), where(too_long, length, high)
        length = where(isfinite(high), 0.5 * (low + high), 2.0 * low)
        return (low, high, length, *evaluate(length), trips + 1)

    value, gradient = evaluate(first)
    state = (start.length, start.length + np.inf, first, value, gradient, 0)
    _, _, length, value, gradient, _ = while_loop(goes_on, try_next, state, max_trips=_TRIALS)
    found = _Point(length, value, gradient)
    good = logical_not(is_too_long(found))
    kept = [where(good, new, old) for new, old in zip(found, start, strict=True)]
    return _Point(*kept), good


def _two_loops(gradient: Any, steps: Any, changes: Any) -> Any:
    """Return the product of the inverse Hessian that the pairs describe with the gradient.

    Pairs that are not there yet are zeros, and change nothing.
    """
    q, kept = gradient, []
    for k in range(_PAIRS - 1, -1, -1):
        curvature = dot(steps[k], changes[k])
        curved = greater(curvature, 0.0)
        weight = where(curved, 1.0 / where(curved, curvature, 1.0), 0.0)
        part = weight * dot(steps[k], q)
        q = q - part * changes[k]
        kept.append((k, weight, part))
    last = dot(changes[-1], changes[-1])
    known = greater(last, 0.0)
    q = where(known, dot(steps[-1], changes[-1]) / where(known, last, 1.0), 1.0) * q
    for k, weight, part in reversed(kept):
        q = q + (part - weight * dot(changes[k], q)) * steps[k]
    return q
