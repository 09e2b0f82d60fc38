"""Initial value problems of ordinary differential equations, with steps of adaptive length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primgraph.control.bodies import require_function
from primgraph.control.loops import fori_loop, scan, while_loop
from primgraph.control.solutions import Solved, implicit, solve_in_world
from primgraph.control.world import own
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.elementwise.arithmetic import abs, maximum, minimum
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.elementwise.logic import (
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from primgraph.operators.lazy_loading import functions
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import reshape
from primgraph.solvers.ode_steps import METHODS, Method, Slope
from primgraph.solvers.vectors import vectors_of

# How much a step may be shorter or longer than the last one, and how far it stays below what the
# error allows (E. Hairer, S. Norsett, G. Wanner, Solving ordinary differential equations I).
_SHORTER, _LONGER, _SAFETY = 0.2, 10.0, 0.9
# So often the part of a step in which an event lies is halved.
_HALVINGS = 60


class _State(NamedTuple):
    """State of an integration: time gone, solution, slope, length of the next step, steps made.

    Of the last step: the time at its begin, its length, the solution there, and the powers of its
    interpolant.
    """

    time: Any
    y: Any
    slope: Any
    length: Any
    steps: Any
    begin: Any
    last: Any
    before: Any
    powers: Any


class _Problem(NamedTuple):
    slope: Slope
    method: Method
    tolerances: tuple[float, float]
    end: Any
    max_steps: int


@check_arguments
def solve_ivp(
    f: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    t_eval: Any = None,
    *,
    method: str = "RK45",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    event: Callable[..., Any] | None = None,
    max_steps: int = 10000,
    full_output: bool = False,
) -> Any:
    """Solve `dy/dt = f(t, y)` from `y0` at the first time of `t_span` to the second one.

    `y0` is a float array, or a container of such; `f` returns the same, and may use variables from
    around it. The result is `y` at the end or, with times `t_eval` in the order in which they are
    reached, arrays with a row for each of them, by interpolation within the steps. A row is NaN if
    its time is outside `t_span`, or in a step before that of the previous row. `method` "RK45" is
    that of Dormand and Prince; "Rosenbrock" is for stiff equations: RODAS4P, of order four, with
    the Jacobian of `f`, a dense matrix. Steps keep the root mean square of the error, relative to
    `atol + rtol * abs(y)`, below one.

    With `event`, a function of `(t, y)` that returns a number, the integration ends where it first
    changes its sign, and the result is the pair of that time and `y` there. Events are looked for
    at the ends of steps, two within one step are not seen. Without an event before the end, both
    are NaN. `event` and `t_eval` exclude each other. The end of `t_span` may be infinite.

    A solution that takes more than `max_steps` steps is NaN. With `atol` 0, so is one with an
    element that begins at zero. With `full_output` the result is a pair: the result, and a named
    tuple `(converged, trips)`.

    Derivatives are those of the steps that were made, whose lengths count as given: by `y0`, the
    times, and all that `f` and `event` use, in all modes and orders. Raises `ArgumentError`,
    `DTypeError` or `ShapeError` where `f` returns something else than `y0`, or for options out of
    range.

    >>> y = pg.solvers.solve_ivp(lambda t, y: -y, (0.0, 1.0), pg.tensor([1.0]))
    >>> y.round(6).tolist()
    [0.367879]
    >>> fall = lambda t, y: pg.stack([y[1], -9.81])
    >>> hit = lambda t, y: y[0]
    >>> t, y = pg.solvers.solve_ivp(fall, (0.0, 9.0), pg.tensor([1.0, 0.0]), event=hit)
    >>> print(f"{t:.6f}")
    0.451524
    """
    _require_options(f, t_span, t_eval, method, (rtol, atol), event, max_steps)
    options = (METHODS[method], (rtol, atol), event, int(max_steps), full_output)
    given = (tuple(t_span), y0) if t_eval is None else (tuple(t_span), y0, t_eval)
    return solve_in_world("solve_ivp", partial(_solve, f, options), [], given)


def _require_options(
    f: Any, t_span: Any, t_eval: Any, method: str, tolerances: Any, event: Any, max_steps: int
) -> None:
    """Raise `ArgumentError` for options that are out of range, or exclude each other."""
    if method not in METHODS:
        raise ArgumentError(f"solve_ivp: method is {' or '.join(METHODS)}, not {method!r:.60}")
    rtol, atol = tolerances
    if not (rtol >= 0.0 and atol >= 0.0 and rtol + atol > 0.0):
        raise ArgumentError(f"solve_ivp: tolerances are positive, not {rtol!r:.20}, {atol!r:.20}")
    if max_steps < 1:
        raise ArgumentError(f"solve_ivp: max_steps is a positive integer, not {max_steps!r:.60}")
    if event is not None and t_eval is not None:
        raise ArgumentError("solve_ivp takes an event or t_eval, not both")
    if isinstance(t_eval, list | tuple | np.ndarray) and _turns_back(t_eval):
        raise ArgumentError("solve_ivp: t_eval is ascending, or descending: write np.sort(t_eval)")
    if len(t_span) != 2:
        raise ArgumentError("solve_ivp: t_span is a pair of times")
    for function in [f] if event is None else [f, event]:
        require_function("solve_ivp", function, "(t, y)")


def _turns_back(times: Any) -> bool:
    """Return whether numbers are neither in ascending nor in descending order."""
    if not all(isinstance(t, int | float) for t in times):
        return False
    changes = np.diff(np.asarray(times))
    return bool((changes > 0.0).any() and (changes < 0.0).any())


def _solve(f: Callable[..., Any], options: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
    method, tolerances, event, max_steps, full_output = options
    vectors = vectors_of("solve_ivp", given[1], "y0")
    dtype = vectors.dtype
    start, stop, *times = (functions["asarray"](t, dtype=dtype) for t in (*given[0], *given[2:]))
    if start.ndim or stop.ndim:
        raise ShapeError("solve_ivp: both times of t_span are numbers")
    turn = functions["astype"](stop_gradient(where(less(stop, start), -1.0, 1.0)), dtype)

    def at(time: Any) -> Any:
        return start + turn * time

    def slope(time: Any, y: Any) -> Any:
        return turn * vectors.joined("solve_ivp", "y0", f(at(time), vectors.split(y)))

    problem = _Problem(slope, method, tolerances, turn * (stop - start), max_steps)
    state = _first_state(problem, vectors.start)
    if event is not None:
        state, time, good = _run_to_event(
            problem, state, lambda time, y: event(at(time), vectors.split(y))
        )
        y = where(good, _interpolated(state, time), np.nan)
        found: Any = (where(good, at(time), np.nan), vectors.split(y))
    elif times:
        if times[0].ndim != 1:
            raise ShapeError(f"solve_ivp: t_eval is a vector of times, not {times[0].type}")
        state, rows, good = _run_through(problem, state, turn * (times[0] - start))
        found = vectors.split(rows, 1)
    else:
        state = _run_until(problem, state, problem.end)
        good = greater_equal(state.time, problem.end)
        # Without a step, both ends are equal: the derivative by their distance is the slope.
        rest = where(less(state.steps, 1), (problem.end - state.time) * state.slope, 0.0)
        found = vectors.split(where(good, state.y + rest, np.nan))
    if not full_output:
        return found
    return found, Solved(stop_gradient(good), functions["astype"](state.steps, "int64"))


def _first_state(problem: _Problem, y: Any) -> _State:
    """Return the state before the first step, whose length is estimated as in Hairer's book."""
    zero = functions["zeros"]((), y.dtype)
    k = problem.slope(zero, y)
    size = problem.tolerances[1] + problem.tolerances[0] * abs(y)
    value, speed = _rms(y / size), _rms(k / size)
    is_small = less(minimum(value, speed), 1e-5)
    short = where(is_small, 1e-6, 0.01 * value / where(is_small, 1.0, speed))
    short = minimum(short, problem.end)
    bend = _rms((problem.slope(zero + short, y + short * k) - k) / size) / maximum(short, 1e-30)
    fast = maximum(speed, bend)
    power = 1.0 / problem.method.order
    is_slow = less_equal(fast, 1e-15)
    long = where(is_slow, maximum(1e-6, short * 1e-3), (0.01 / where(is_slow, 1.0, fast)) ** power)
    length = functions["astype"](stop_gradient(minimum(100.0 * short, long)), y.dtype)
    rest = functions["zeros"]((problem.method.powers - 1, y.shape[0]), y.dtype)
    powers = functions["concatenate"]([reshape(k, (1, -1)), rest])
    # Numbers of steps are floats, for loops on numbers of Python; those of float16 end at 2048.
    steps = functions["zeros"]((), np.result_type(y.dtype, np.float32))
    return _State(zero, y, k, length, steps, zero, zero + 1.0, y, powers)


def _rms(row: Any) -> Any:
    row = stop_gradient(row)
    return sqrt(functions["mean"](row * row))


def _advance(problem: _Problem, state: _State) -> _State:
    """Try a step, and return the state after it, or with a shorter step to try next."""
    left = problem.end - state.time
    h = minimum(state.length, left)
    new = problem.method.step(problem.slope, state.time, state.y, state.slope, h)
    rtol, atol = problem.tolerances
    ratio = _rms(new.error / (atol + rtol * maximum(abs(state.y), abs(new.y))))
    good = less_equal(ratio, 1.0)
    # Of an error that is NaN, where `f` is not defined, nothing is known but that it is too large.
    ratio = where(isnan(ratio), np.inf, maximum(ratio, 1e-10))
    factor = _SAFETY * ratio ** (-1.0 / problem.method.order)
    factor = minimum(maximum(factor, _SHORTER), _LONGER)
    factor = where(good, factor, minimum(factor, 1.0))
    after = _State(
        where(greater_equal(h, left), problem.end, state.time + h),
        new.y,
        new.slope,
        stop_gradient(h * factor),
        state.steps + 1.0,
        state.time,
        h,
        state.y,
        new.powers,
    )
    kept = state._replace(length=after.length, steps=after.steps)
    return _State(*[where(good, a, b) for a, b in zip(after, kept, strict=True)])


def _run_until(problem: _Problem, state: _State, time: Any) -> _State:
    """Make steps until the first one that ends at a time or behind it, or until the end."""

    def goes_on(state: Any) -> Any:
        before = less(state[0], minimum(time, problem.end))
        return logical_and(before, less(state[4], problem.max_steps))

    return _State(
        *while_loop(goes_on, lambda s: tuple(_advance(problem, _State(*s))), tuple(state))
    )


def _run_through(problem: _Problem, state: _State, times: Any) -> tuple[_State, Any, Any]:
    """Return the last state, the solution at several times in rows, and whether all were found."""

    def next_row(carry: Any, time: Any) -> Any:
        state = _run_until(problem, _State(*carry), time)
        inside = logical_and(greater_equal(time, state.begin), less_equal(time, state.time))
        return tuple(state), (where(inside, _interpolated(state, time), np.nan), inside)

    carry, (rows, found) = scan(next_row, tuple(state), times)
    return _State(*carry), rows, functions["all"](found)


def _interpolated(state: _State, time: Any) -> Any:
    """Return the solution at a time within the last step."""
    part = (time - state.begin) / state.last
    found = 0.0 * state.powers[0]
    for row in range(state.powers.shape[0] - 1, -1, -1):
        found = part * (found + state.powers[row])
    return state.before + found


def _run_to_event(
    problem: _Problem, state: _State, event: Callable[[Any, Any], Any]
) -> tuple[_State, Any, Any]:
    """Make steps until one in which an event changes its sign.

    Return the state after it, the time of the event, and whether there was one.
    """

    def value_at(state: _State, time: Any) -> Any:
        found = own(event(time, _interpolated(state, time)))
        if found.ndim:
            raise ShapeError(f"solve_ivp: event returns a number, not {found.type}")
        if not found.type.is_float:
            raise DTypeError(f"solve_ivp: event returns a float, not {found.type}")
        return functions["astype"](found, state.y.dtype)

    def has_same_sign(a: Any, b: Any) -> Any:
        # The product of small numbers may be zero.
        return logical_or(
            logical_and(greater(a, 0.0), greater(b, 0.0)), logical_and(less(a, 0.0), less(b, 0.0))
        )

    def has_crossed(state: Any) -> Any:
        state = _State(*state)
        first, last = value_at(state, state.begin), value_at(state, state.time)
        # A solution that begins with an event has it behind it.
        unknown = logical_or(isnan(first), isnan(last))
        same = logical_or(unknown, has_same_sign(first, last))
        return logical_and(logical_not(same), not_equal(first, 0.0))

    def goes_on(state: Any) -> Any:
        running = logical_and(less(state[0], problem.end), less(state[4], problem.max_steps))
        return logical_and(running, logical_not(has_crossed(state)))

    state = _State(
        *while_loop(goes_on, lambda s: tuple(_advance(problem, _State(*s))), tuple(state))
    )
    crossed = has_crossed(tuple(state))
    last = value_at(state, state.time)

    def halve(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        above = has_same_sign(value_at(state, middle), last)
        return where(above, low, middle), where(above, middle, high)

    _, time = fori_loop(0, _HALVINGS, halve, (state.begin, state.time))
    return state, implicit(lambda t: value_at(state, t), stop_gradient(time)), crossed
