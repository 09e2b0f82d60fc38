"""Minima of sums of squares by the method of Levenberg and Marquardt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.api.public import jacobian
from primgraph.control.loops import while_loop
from primgraph.control.solutions import Solved, solve_in_world
from primgraph.control.world import own
from primgraph.errors import ShapeError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.elementwise.arithmetic import abs, maximum
from primgraph.operators.elementwise.logic import (
    greater,
    isfinite,
    less,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from primgraph.operators.lazy_loading import functions
from primgraph.operators.shape.creation import stop_gradient
from primgraph.solvers.vectors import Vectors, dot, largest, options_of, vectors_of

# The damping at first, relative to the largest element of the diagonal (K. Madsen, H. Nielsen, O.
# Tingleff, 2004).
_DAMPING = 1e-3
# Relative changes of the sum of squares below so many units of rounding say nothing.
_NOISE = 100.0


@check_arguments
def least_squares(
    f: Callable[..., Any],
    x0: Any,
    *,
    tol: float | None = None,
    max_trips: int = 200,
    full_output: bool = False,
    linear_solver: str = "dense",
) -> Any:
    """Find a local minimum of `sum(f(x) ** 2)` near `x0` by the method of Levenberg and Marquardt.

    `x0` is a float array, or a container of such; `f` returns residuals, likewise, of any number,
    and may use variables from around it. Its Jacobian is that of primgraph, a dense matrix. The
    steps end where no element of the gradient `J.T @ f(x)` exceeds `tol` times the larger of one
    and `sum(f(x) ** 2)`, or where a step changes no element by more than `tol` times the largest
    one. `tol` is `eps ** 0.75` of the dtype unless given: 1.8e-12 for float64.

    A minimum that is not found within `max_trips` steps is NaN. With `full_output` the result is a
    pair: the last point, and a named tuple `(converged, trips)`.

    Derivatives are by the variables that `f` uses, in all modes and orders, by the implicit
    function theorem for `J.T @ f(x) = 0`, with second derivatives of `f`; by `x0` they are zero.
    `linear_solver` is that of `pg.root`, for them.

    Raises `ArgumentError`, `DTypeError` or `ShapeError` where `f` returns no float arrays, and for
    options out of range. See D. Marquardt, An algorithm for least-squares estimation of nonlinear
    parameters, 1963, and K. Madsen, H. Nielsen, O. Tingleff, Methods for non-linear least squares
    problems, 2004, for the damping.

    >>> t = np.linspace(0.0, 1.0, 5)
    >>> y = 2.0 * np.exp(-3.0 * t)
    >>> f = lambda x: x[0] * pg.exp(-x[1] * t) - y
    >>> pg.solvers.least_squares(f, pg.tensor([1.0, 1.0])).round(6).tolist()
    [2.0, 3.0]
    """
    options = options_of("least_squares", tol, max_trips, full_output, linear_solver)
    build = partial(_minimize, f, options)
    return solve_in_world("least_squares", build, [f], x0)


def _minimize(f: Callable[..., Any], options: dict[str, Any], x0: Any) -> Any:
    vectors = vectors_of("least_squares", x0)
    residuals = _residuals(vectors, f)
    slopes = jacobian(residuals)
    tol = vectors.tolerance(options)
    noise = _NOISE * float(np.finfo(vectors.dtype).eps)

    def is_far(r: Any, J: Any) -> Any:
        return greater(largest(r @ J), tol * maximum(1.0, dot(r, r)))

    def goes_on(state: Any) -> Any:
        _, r, J, *_, moves, _ = state
        return logical_and(moves, is_far(r, J))

    def take_step(state: Any) -> Any:
        x, r, J, scale, damping, growth, _, trips = state
        gradient, matrix = r @ J, J.T @ J
        scale = maximum(scale, _scale_of(matrix))
        damped = matrix + functions["diag"](damping * scale)
        step = functions["linear_algebra.systems.solve"](damped, -gradient)
        new = residuals(x + step)
        slope = slopes(x + step)
        gain = (dot(r, r) - dot(new, new)) / dot(step, damping * scale * step - gradient)
        # Where rounding hides whether the sum is smaller, the gradient tells.
        hidden = less(abs(dot(r, r) - dot(new, new)), noise * dot(r, r))
        flatter = less(largest(new @ slope), largest(gradient))
        better = logical_or(greater(gain, 0.0), logical_and(hidden, flatter))
        less_damping = where(hidden, 1.0 / 3.0, maximum(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3))
        return (
            where(better, x + step, x),
            where(better, new, r),
            where(better, slope, J),
            scale,
            maximum(damping * where(better, less_damping, growth), 1e-10),
            where(better, 2.0, 2.0 * growth),
            greater(largest(step), tol * largest(x)),
            trips + 1,
        )

    x = stop_gradient(vectors.start)
    r, J = residuals(x), slopes(x)
    # Numbers of the dtype of `x`, as all of the state.
    damping = 0.0 * r[0] + _DAMPING
    state = (x, r, J, _scale_of(J.T @ J), damping, 2.0 + 0.0 * damping, isfinite(dot(r, r)), 0)
    x, r, J, *_, moves, trips = while_loop(goes_on, take_step, state, max_trips=options["limit"])
    still = logical_not(logical_and(moves, is_far(r, J)))
    solved = Solved(logical_and(still, isfinite(dot(r, r))), trips)
    return vectors.solution(lambda x: residuals(x) @ slopes(x), x, solved, options)


def _scale_of(matrix: Any) -> Any:
    """Return the diagonal, but of unknowns that no residual depends on, which stay."""
    diagonal = functions["diagonal"](matrix)
    return maximum(diagonal, 1e-6 * functions["max"](diagonal))


def _residuals(vectors: Vectors, f: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the residuals as a vector, as a function of a vector."""

    def residuals(x: Any) -> Any:
        leaves = [own(leaf) for leaf in tree.leaves(f(vectors.split(x)))]
        if not leaves or not all(v.type.is_float for v in leaves):
            raise ShapeError("least_squares: f returns float arrays, the residuals")
        return vectors.join(leaves)

    return residuals
