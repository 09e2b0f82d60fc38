"""Integrals of functions of one variable, by rules on intervals that are halved where it pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primgraph.api.vmap import vmap
from primgraph.control.bodies import require_function
from primgraph.control.loops import while_loop
from primgraph.control.solutions import Solved, implicit, solve_in_world
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.elementwise.arithmetic import abs, maximum, minimum
from primgraph.operators.elementwise.logic import greater, isfinite, less, logical_and, logical_not
from primgraph.operators.elementwise.logic import where as choose
from primgraph.operators.lazy_loading import functions
from primgraph.operators.reduce.reductions import argmax
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import reshape

# Gauss's rule with ten nodes within Kronrod's with 21, as in QUADPACK (R. Piessens and others,
# 1983): nodes from the outermost to the middle, weights of Kronrod, and those of Gauss, of every
# other node.
_NODES = np.array([
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452,
    0.930157491355708226001207180059508, 0.865063366688984510732096688423493,
    0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784,
    0.294392862701460198131126603103866, 0.148874338981631210884826001129720, 0.0,
])  # fmt: skip
_KRONROD = np.array([
    0.011694638867371874278064396062192, 0.032558162307964727478818972459390,
    0.054755896574351996031381300244580, 0.075039674810919952767043140916190,
    0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109831074, 0.134709217311473325928054001771707,
    0.142775938577060080797094273138717, 0.147739104901338491374841515972068,
    0.149445554002916905664936468389821,
])  # fmt: skip
_GAUSS = np.array([
    0.066671344308688137593568809893332, 0.149451349150580593145776339657697,
    0.219086362515982043995534934228163, 0.269266719309996355091226921569469,
    0.295524224714752870173892994651338,
])  # fmt: skip


def _mirrored(half: Any, sign: float) -> Any:
    return np.concatenate([sign * half, half[-2::-1]])


_AT, _WEIGHTS = _mirrored(_NODES, -1.0), _mirrored(_KRONROD, 1.0)
_WEIGHTS_OF_GAUSS = np.zeros(21)
_WEIGHTS_OF_GAUSS[1::2] = np.concatenate([_GAUSS, _GAUSS[::-1]])


@check_arguments
def quad(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    limit: int = 100,
    full_output: bool = False,
) -> Any:
    """Integrate `f`, a function of a number that returns a number, from `a` to `b`.

    The interval is halved where the estimate of the error is largest, until the sum of these is at
    most `atol`, or `rtol` times the integral, or until there are `limit` intervals; then the result
    is NaN. Both tolerances are the square root of `eps` of the dtype unless given: 1.49e-8 for
    float64, 3.45e-4 for float32. `a` and `b` are numbers; `-np.inf` and `np.inf` are allowed as
    numbers of Python or NumPy, but a variable that is infinite gives NaN. `f` is called with all
    nodes at once by `pg.vmap`, and may use variables from around it. With `full_output` the result
    is a pair: the latest estimate, and a named tuple `(converged, trips)`.

    Derivatives are those of the sums over the intervals that were found: by `a`, `b` and what `f`
    uses, in all modes and orders. Raises `ArgumentError` for options out of range, `ShapeError` or
    `DTypeError` where `f` returns no single float. The rules are those of `scipy.integrate.quad`,
    without its extrapolation: a steep singularity elsewhere than at zero may give NaN. See R.
    Piessens and others, QUADPACK, 1983.

    >>> print(f"{pg.solvers.quad(lambda x: pg.exp(-x * x), -np.inf, np.inf) ** 2:.6f}")
    3.141593
    """
    require_function("quad", f, "(x)")
    known = [1.0 if tol is None else tol for tol in (rtol, atol)]
    if not (min(known) >= 0.0 and sum(known) > 0.0):
        raise ArgumentError(f"quad: tolerances are positive, not {rtol!r:.20}, {atol!r:.20}")
    if limit < 1:
        raise ArgumentError(f"quad: limit is a positive integer, not {limit!r:.60}")
    ends = [None if _is_infinite(x) else x for x in (a, b)]
    signs = [math.copysign(1.0, x) if e is None else 0.0 for x, e in zip((a, b), ends, strict=True)]
    given = [e for e in ends if e is not None]
    build = partial(_quad, f, signs, (rtol, atol, int(limit)), full_output)
    return solve_in_world("quad", build, [], given)


def _is_infinite(x: Any) -> bool:
    """Return whether a number of Python or NumPy is infinite."""
    known = isinstance(x, float | np.floating | np.ndarray) and np.ndim(x) == 0
    return known and np.asarray(x).dtype.kind == "f" and math.isinf(x)


def _quad(
    f: Callable[..., Any],
    signs: list[float],
    options: tuple[float | None, float | None, int],
    full_output: bool,
    ends: list[Any],
) -> Any:
    finite = [functions["asarray"](x) for x in ends]
    finite = [x if x.dtype.kind == "f" else functions["astype"](x, "float64") for x in finite]
    if any(x.ndim for x in finite):
        raise ShapeError("quad: a and b are numbers")
    integrand = _on_unit_interval(f, signs, finite)

    def values(x: Any) -> Any:
        found = vmap(integrand)(x)
        if found.shape != x.shape:
            one = found.type.with_shape(found.shape[1:])
            raise ShapeError(f"quad: f returns a number, not {one}")
        if found.dtype.kind != "f":
            raise DTypeError(f"quad: f returns a float, not {found.dtype}")
        return found

    dtype = np.result_type(*[x.dtype for x in finite]) if finite else np.dtype(np.float64)
    begins, ends, total, solved = _partition(values, dtype, options)
    if not full_output:
        total = choose(solved.converged, total, np.nan)
    integral = implicit(lambda v: v - functions["sum"](_by_rule(values, begins, ends)[0]), total)
    return (integral, solved) if full_output else integral


def _on_unit_interval(
    f: Callable[..., Any], signs: list[float], finite: list[Any]
) -> Callable[[Any], Any]:
    """Return the function whose integral from 0 to 1 is the one that is looked for.

    A half-line is the image of `(1 - t) / t`.
    """
    if not any(signs):
        low, width = finite[0], finite[1] - finite[0]
        return lambda t: f(low + width * t) * width
    if signs[0] == signs[1]:
        return lambda t: 0.0 * f(t)
    flips = -1.0 if signs[0] > 0.0 or signs[1] < 0.0 else 1.0

    def integrand(t: Any) -> Any:
        x = (1.0 - t) / t
        found = f(finite[0] + (signs[0] or signs[1]) * x) if finite else f(x) + f(-x)
        return flips * found / (t * t)

    return integrand


def _by_rule(f: Callable[[Any], Any], begins: Any, ends: Any) -> tuple[Any, Any]:
    """Return the integrals over several intervals, and estimates of their errors."""
    center, half = 0.5 * (begins + ends), 0.5 * (ends - begins)
    column, width = reshape(center, (-1, 1)), reshape(half, (-1, 1))
    nodes = column + width * _AT.astype(center.dtype)
    values = reshape(f(reshape(nodes, (-1,))), nodes.shape)
    weights = _WEIGHTS.astype(values.dtype)
    total = values @ weights
    error = abs(half * (total - values @ _WEIGHTS_OF_GAUSS.astype(values.dtype)))
    # How far the function is from its mean tells how smooth it is: see the book on QUADPACK.
    spread = abs(half) * (abs(values - 0.5 * reshape(total, (-1, 1))) @ weights)
    is_rough = logical_and(greater(spread, 0.0), greater(error, 0.0))
    ratio = (200.0 * error / choose(is_rough, spread, 1.0)) ** 1.5
    return half * total, choose(is_rough, spread * minimum(1.0, ratio), error)


def _default_tolerance(*dtypes: Any) -> float:
    return math.sqrt(max(float(np.finfo(dtype).eps) for dtype in dtypes))


def _partition(
    f: Callable[[Any], Any], dtype: Any, options: tuple[float | None, float | None, int]
) -> tuple[Any, Any, Any, Solved]:
    """Return the begins and ends of intervals, the integral, and whether its error is small.

    Those of `limit` intervals that are not needed are empty.
    """
    *tolerances, limit = options
    numbers = np.arange(limit)
    first, error = _by_rule(f, np.zeros(1, dtype), np.ones(1, dtype))
    rtol, atol = (_default_tolerance(dtype, first.dtype) if t is None else t for t in tolerances)
    is_first = numbers == 0
    state = (
        functions["asarray"](np.where(is_first, 0.0, 1.0).astype(dtype)),
        functions["asarray"](np.ones(limit, dtype)),
        choose(is_first, first[0], 0.0),
        choose(is_first, error[0], 0.0),
        1,
    )

    def is_far(totals: Any, errors: Any) -> Any:
        allowed = maximum(atol, rtol * abs(functions["sum"](totals)))
        return greater(functions["sum"](errors), allowed)

    def goes_on(state: Any) -> Any:
        _, _, totals, errors, count = state
        return logical_and(is_far(totals, errors), less(count, limit))

    def halve(state: Any) -> Any:
        begins, ends, totals, errors, count = state
        worst = argmax(errors)
        middle = 0.5 * (begins[worst] + ends[worst])
        halves = [begins[worst], middle], [middle, ends[worst]]
        parts, wrong = _by_rule(f, *map(functions["stack"], halves))
        is_worst, is_new = numbers == worst, numbers == count
        return (
            choose(is_new, middle, begins),
            choose(is_new, ends[worst], choose(is_worst, middle, ends)),
            choose(is_new, parts[1], choose(is_worst, parts[0], totals)),
            choose(is_new, wrong[1], choose(is_worst, wrong[0], errors)),
            count + 1,
        )

    begins, ends, totals, errors, count = while_loop(goes_on, halve, state, max_trips=limit)
    total = functions["sum"](totals)
    found = logical_and(logical_not(is_far(totals, errors)), isfinite(total))
    solved = Solved(stop_gradient(found), stop_gradient(count))
    return stop_gradient(begins), stop_gradient(ends), stop_gradient(total), solved
