"""Roots by quasi-Newton steps, which need the Jacobian only once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primgraph.api.public import jacobian
from primgraph.control.loops import while_loop
from primgraph.control.solutions import Solved, solve_in_world
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.elementwise.arithmetic import maximum
from primgraph.operators.elementwise.logic import greater, isfinite, logical_and, logical_not
from primgraph.operators.lazy_loading import functions
from primgraph.operators.shape.creation import stop_gradient
from primgraph.solvers.vectors import largest, options_of, vectors_of


@check_arguments
def broyden(
    f: Callable[..., Any],
    x0: Any,
    *,
    tol: float | None = None,
    max_trips: int = 200,
    full_output: bool = False,
    linear_solver: str = "dense",
) -> Any:
    """Find the `x` with `f(x) = 0` near `x0` by Broyden's method.

    The Jacobian at `x0`, n by n, is inverted once; each step then evaluates `f` once, and corrects
    the inverse by a matrix of rank one. For functions of which a Jacobian costs much; `pg.root`
    needs fewer steps. Arguments, results and derivatives are those of `pg.root`. A singular
    Jacobian at `x0` is an error of the run.

    Raises `ArgumentError`, `DTypeError` or `ShapeError` where `f` returns something else than it
    takes, and for options out of range. See C. Broyden, A class of methods for solving nonlinear
    simultaneous equations, 1965.

    >>> f = lambda x: pg.stack([x[0] + 2.0 * x[1] - 2.0, x[0] ** 2 + 4.0 * x[1] ** 2 - 4.0])
    >>> pg.solvers.broyden(f, pg.tensor([1.0, 2.0])).round(6).tolist()
    [0.0, 1.0]
    """
    options = options_of("broyden", tol, max_trips, full_output, linear_solver)
    build = partial(_broyden, f, options)
    return solve_in_world("broyden", build, [f], x0)


def _broyden(f: Callable[..., Any], options: dict[str, Any], x0: Any) -> Any:
    vectors = vectors_of("broyden", x0)

    def equation(x: Any) -> Any:
        return vectors.joined("broyden", "x0", f(vectors.split(x)))

    tol = vectors.tolerance(options)

    def goes_on(state: Any) -> Any:
        x, _, _, change, _ = state
        return greater(change, tol * maximum(1.0, largest(x)))

    def take_step(state: Any) -> Any:
        x, value, inverse, _, trips = state
        step = -(inverse @ value)
        new = equation(x + step)
        found = inverse @ (new - value)
        row = step @ inverse
        length = functions["sum"](step * found)
        # A step of nothing changes nothing.
        still = functions["where"](length == 0.0, 1.0, length)
        inverse = inverse + functions["outer"](step - found, row) / still
        return x + step, new, inverse, largest(step), trips + 1

    x = stop_gradient(vectors.start)
    value = equation(x)
    inverse = functions["linear_algebra.systems.inv"](jacobian(equation)(x))
    state = (x, value, inverse, functions["asarray"](np.inf, dtype=vectors.dtype), 0)
    state = while_loop(goes_on, take_step, state, max_trips=options["limit"])
    # At the last point, `f` is defined.
    is_finite = isfinite(largest(state[0]) + largest(state[1]))
    converged = logical_and(logical_not(goes_on(state)), is_finite)
    return vectors.solution(equation, state[0], Solved(converged, state[-1]), options)
