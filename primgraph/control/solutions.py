"""Equations solved by iteration, with derivatives by the implicit function theorem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primgraph import tree
from primgraph.api import tracing
from primgraph.api.world import is_array
from primgraph.control.bodies import (
    Body,
    captured_values,
    inputs_of,
    record,
    require_equal,
    require_function,
    trace_body,
)
from primgraph.control.carried import weak_leaves
from primgraph.control.recorded_loops import trace_stable_carry
from primgraph.control.world import call_in_world, own
from primgraph.eager.derivatives.inlined import inlined_steps, results
from primgraph.eager.inplace.adoption import stand_in_class
from primgraph.eager.tensor import family_of
from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.types import TensorType, integer
from primgraph.operators.variable import Variable
from primgraph.transforms.loops.implicit_solution import solution
from primgraph.transforms.loops.krylov import SOLVERS


class Solved(NamedTuple):
    """Result of an iteration: whether it converged, and the number of steps.

    Both are scalars, or have one element per sample under `pg.vmap`.
    """

    converged: Any
    trips: Any


@check_arguments
def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    *,
    tol: float | None = None,
    max_trips: int = 1000,
    damping: float = 1.0,
    full_output: bool = False,
    check: bool = False,
) -> Any:
    """Find the `x` with `x = f(x)` by the iteration `x = x + damping * (f(x) - x)` from `x0`.

    `x0` is a float array, or a container of such, and `f` returns the same; it may use variables
    from around it. The iteration ends when no element of `f(x) - x` exceeds `tol` times the largest
    element of `x`, or `tol` if that is below one. `tol` is `eps ** 0.75` of the dtype unless given:
    1.8e-12 for float64, 6.4e-6 for float32. It converges where `f` contracts.

    A solution that is not found within `max_trips` steps is NaN; with `check` it is an error of the
    run, a `pg.LinAlgError`, which is a RuntimeError (`disp=True` of `scipy.optimize.newton`). With
    `full_output` the result is a pair: the last iterate, and a named tuple `(converged, trips)`.

        x, (converged, trips) = pg.fixed_point(np.cos, 1.0, full_output=True)

    Derivatives are by the variables that `f` uses, in all modes and orders, by the implicit
    function theorem: for `x = f(x, a)` the tangent solves `dx = df/dx dx + df/da da`, and reverse
    mode solves `y = transpose(df/dx) y + ct`, by the same iteration with the same options (S. Bai,
    J. Z. Kolter, V. Koltun, Deep equilibrium models, 2019). By `x0` they are zero.

    Raises `ArgumentError`, `DTypeError` or `ShapeError`, with the place, where `f` returns
    something else than it takes, and for options out of range.

    >>> print(f"{pg.fixed_point(pg.cos, 1.0):.6f}")
    0.739085
    """
    options = solution_options("fixed_point", tol, max_trips, full_output, check)
    if not 0.0 < damping < math.inf:
        raise ArgumentError(f"fixed_point: damping is positive, not {damping!r:.60}")
    build = partial(_fixed_point, f, {**options, "damping": float(damping)})
    return solve_in_world("fixed_point", build, [f], x0)


@check_arguments
def root(
    f: Callable[..., Any],
    x0: Any,
    *,
    step: Callable[..., Any] | None = None,
    tol: float | None = None,
    max_trips: int = 100,
    full_output: bool = False,
    check: bool = False,
    linear_solver: str = "dense",
) -> Any:
    """Find the `x` with `f(x) = 0` by Newton's method from `x0`: `x = x - inv(df/dx) f(x)`.

    `x0` is a float array, or a container of such, and `f` returns the same containers, shapes and
    dtypes. It may use variables from around it. All elements of `x` together have a dense Jacobian,
    n by n; for many equations of few unknowns, apply `pg.vmap` to this function. With
    `linear_solver` "gmres", "bicgstab" or "cg" (for a symmetric positive definite Jacobian) the
    steps and the derivatives take products with the Jacobian instead. `step(x)`, if
    given, returns the next `x` instead. The iteration ends when a step changes no element by more
    than `tol` times the largest element of `x`, or by `tol` if that is below one. `tol` is `eps **
    0.75` of the dtype unless given: 1.8e-12 for float64, 6.4e-6 for float32.

    A solution that is not found within `max_trips` steps is NaN; with `check` it is an error of the
    run, a `pg.LinAlgError`, which is a RuntimeError (`disp=True` of `scipy.optimize.newton`). With
    `full_output` the result is a pair: the last iterate, and a named tuple `(converged, trips)`. A
    singular Jacobian of several unknowns is an error of the run, as in `pg.linalg.solve`.

        x, (converged, trips) = pg.root(lambda x: x * x - 2.0, 1.0, full_output=True)

    Derivatives are by the variables that `f` uses, in all modes and orders, by the implicit
    function theorem: for `f(x, a) = 0` the tangent solves `df/dx dx + df/da da = 0`, and reverse
    mode solves `transpose(df/dx) y + ct = 0`. By `x0` they are zero.

    Raises `ArgumentError`, `DTypeError` or `ShapeError`, with the place, where `f` or `step`
    returns something else than it takes, and for options out of range.

    >>> print(f"{pg.root(lambda x: x * x - 2.0, 1.0):.6f}")
    1.414214
    """
    options = solution_options("root", tol, max_trips, full_output, check)
    options.update(with_solver("root", linear_solver))
    functions = [f] if step is None else [f, step]
    build = partial(_root, f, step, {**options, "damping": 1.0})
    return solve_in_world("root", build, functions, x0)


@check_arguments
def implicit(f: Callable[..., Any], x: Any, *, linear_solver: str = "dense") -> Any:
    """Return `x`, which solves `f(x) = 0`, with the derivatives of the solution.

    For solutions that were found in some other way, such as by a loop of one's own: its derivatives
    are by the variables that `f` uses, by the implicit function theorem, as those of `pg.root`. By
    `x` itself they are zero. Containers, errors and `linear_solver` are as in `pg.root`. That `x`
    solves the equation is not checked.

    >>> def cube_root(a):
    ...     x = pg.fori_loop(0, 60, lambda i, x: x - (x**3 - a) / (3.0 * x**2), 1.0)
    ...     return pg.solvers.implicit(lambda x: x**3 - a, x)
    >>> print(f"{pg.grad(cube_root)(8.0):.6f}")
    0.083333
    """
    options = {**solution_options("implicit", None, 1, False, False), "damping": 1.0}
    options.update(with_solver("implicit", linear_solver))
    return solve_in_world("implicit", partial(_implicit, f, options), [f], x)


def with_solver(operator: str, linear_solver: str) -> dict[str, Any]:
    """Return the parameter for how linear equations are solved; raise for an unknown one."""
    if linear_solver not in SOLVERS:
        raise ArgumentError(
            f"{operator}: linear_solver is {', '.join(SOLVERS)}, not {linear_solver!r:.60}"
        )
    return {} if linear_solver == "dense" else {"solver": linear_solver}


def solution_options(
    operator: str, tol: Any, max_trips: Any, full_output: bool, check: bool
) -> dict[str, Any]:
    try:
        limit = integer(max_trips)
    except (TypeError, ArgumentError):
        limit = 0
    if limit < 1:
        raise ArgumentError(f"{operator}: max_trips is a positive integer, not {max_trips!r:.60}")
    if tol is not None and not (isinstance(tol, int | float) and 0.0 < tol < 1.0):
        raise ArgumentError(f"{operator}: tol is between 0 and 1, not {tol!r:.60}")
    tolerance = None if tol is None else float(tol)
    found = {"tolerance": tolerance, "limit": limit, "strict": not full_output}
    return {**found, "checked": True} if check else found


def solve_in_world(
    operator: str, build: Callable[..., Any], functions: Sequence[Any], x0: Any
) -> Any:
    for function in functions:
        require_function(operator, function, "(x)")
    leaves, structure = tree.flatten(x0)
    for leaf in leaves:
        if not is_array(leaf):
            kind = type(leaf).__name__
            raise ArgumentError(f"{operator} takes arrays and numbers, not {kind} {leaf!r:.60}")
    begin = tree.unflatten(structure, [float(x) if type(x) is int else x for x in leaves])
    return call_in_world(build, partial(_trace_on_tensors, operator, build, begin), (begin,))


def _fixed_point(f: Callable[..., Any], options: dict[str, Any], x0: Any) -> Any:
    state, structure, body = _equation("fixed_point", f, x0)
    return record_solution(state, structure, body, None, {**options, "method": "repeat"})


def _implicit(f: Callable[..., Any], options: dict[str, Any], x: Any) -> Any:
    state, structure, body = _equation("implicit", f, x)
    return record_solution(state, structure, body, None, {**options, "method": "known"})


def _root(
    f: Callable[..., Any], step: Callable[..., Any] | None, options: dict[str, Any], x0: Any
) -> Any:
    state, structure, body = _equation("root", f, x0)
    if step is None:
        return record_solution(state, structure, body, None, {**options, "method": "newton"})
    types, hints = [v.type for v in state], [v.value.hint for v in state]

    def arguments(builder: Builder) -> list[Any]:
        made = [Variable(builder, v) for v in inputs_of(builder, types, hints)]
        return [tree.unflatten(structure, made)]

    steps = trace_body("root", step, arguments)
    given = steps.structure, steps.types
    require_equal("root", "step", "x0 is", (structure, types), given)
    return record_solution(state, structure, body, steps, {**options, "method": "given"})


def _equation(
    operator: str, f: Callable[..., Any], x0: Any
) -> tuple[list[Variable], tree.Structure, Body]:
    """Return the initial values, their containers, and the traced function."""

    def pair(x: Any) -> Any:
        return f(x), None

    name = getattr(f, "__name__", "f")
    pair.__name__ = name if name.isidentifier() else "f"
    leaves, structure = tree.flatten(x0)
    if not leaves:
        raise ArgumentError(f"{operator}: there is nothing in x0 to solve for")
    require_floats(operator, "x0", [own(leaf) for leaf in leaves], structure)
    state, structure, body = trace_stable_carry(
        operator, pair, x0, lambda builder: [], given="x0 is"
    )
    require_floats(operator, "x0", state, structure)
    return state, structure, body


def require_floats(
    operator: str, name: str, state: Sequence[Variable], structure: tree.Structure
) -> None:
    """Raise `DTypeError` where a leaf of the argument `name` is not a float array."""
    for path, v in zip(tree.paths_of(structure, name), state, strict=True):
        if not v.type.is_float:
            hint = f"write pg.astype(x, 'float64') for it, or {operator} of another array"
            raise DTypeError(f"{operator}: {path} is {v.type}, not a float array", hint=hint)


def record_solution(
    state: Sequence[Variable],
    structure: tree.Structure,
    body: Body,
    step: Body | None,
    options: dict[str, Any],
) -> Any:
    """Record the equation in the program, and return its solution in containers."""
    bodies = [body] if step is None else [body, step]
    outside = captured_values(bodies)
    if options["tolerance"] is None:
        options["tolerance"] = default_tolerance([v.type for v in state])
    found = record(
        [*outside, *[v.value for v in state]],
        partial(
            solution,
            body=body.graph(outside),
            step=None if step is None else step.graph(outside),
            consts=len(outside),
            linear=0,
            lead=0,
            **options,
        ),
    )
    return results_of(found, structure, options["strict"])


def results_of(found: Sequence[Variable], structure: tree.Structure, strict: bool) -> Any:
    """Return the results of a recorded solution in containers; all of them unless `strict`."""
    x = tree.unflatten(structure, found[:-2])
    return x if strict else (x, Solved(*found[-2:]))


def default_tolerance(types: Sequence[TensorType]) -> float:
    """Return the default tolerance: that of the narrowest dtype."""
    return max([math.pow(np.finfo(t.dtype).eps, 0.75) for t in types])


def _trace_on_tensors(operator: str, build: Callable[..., Any], given: Any, x0: Any) -> Any:
    """A traced function of the tensors in `x0`, and of those that are found elsewhere.

    Numbers of Python in what was `given` stay so.
    """
    leaves, structure = tree.flatten(x0)
    numbers, weak = tree.leaves(given), weak_leaves(given)

    def call(variables: Sequence[Any]) -> Any:
        begun = [x if w else v for x, v, w in zip(numbers, variables, weak, strict=True)]
        return build(tree.unflatten(structure, begun))

    found = tracing.trace_function(
        operator,
        call,
        [leaf.type for leaf in leaves],
        title=operator,
        kind=stand_in_class(family_of(leaves)),
    )
    nodes = [leaf.node for leaf in leaves] + [t.node for t in found.tensors]
    made = results(inlined_steps(found.graph), tuple(nodes))
    return tree.unflatten(found.structure, map(family_of([*leaves, *found.tensors]), made))
