"""Fixed-point iteration and Newton's method, as loops that run until convergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.ir.builder import Builder
from primgraph.ir.dims.dim import Dim
from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import BOOL, FLOAT32, INT64, DType, Shape, TensorType
from primgraph.primitives.constants import filled_constant, iota
from primgraph.primitives.control import while_loop
from primgraph.primitives.elementwise import abs_, add, cast, maximum, mul, sub
from primgraph.primitives.linear_algebra.systems import solve
from primgraph.primitives.linear_algebra.ties import unless_any
from primgraph.primitives.logic import (
    equal,
    greater,
    less,
    logical_and,
    logical_not,
    select,
)
from primgraph.primitives.reductions import reduce_max
from primgraph.primitives.shapes import broadcast, concat, permute, reshape, slice_
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.linearize import linearize
from primgraph.transforms.loops.krylov import (
    System,
    any_sample,
    broadcast_samples,
    solve_by_products,
)
from primgraph.transforms.optimize.edits import dead_code

# A linear equation in each step of a nonlinear one may take so many steps an unknown, as in SciPy;
# or so many, of unknowns of which the number is open.
_STEPS_EACH, _STEPS = 10, 10_000


class _Problem(NamedTuple):
    """Source line and parameters of a solution."""

    source: Source
    body: Graph
    step: Graph | None
    consts: int
    linear: int
    lead: int
    method: str
    tolerance: float
    damping: float
    limit: int
    strict: bool
    checked: bool = False
    solver: str = "dense"


def iteration(types: Sequence[TensorType], source: Source = NOWHERE, **params: Any) -> Graph:
    """Return the graph that iterates from operands of these types to a solution.

    Iteration stops when no element changes by more than the tolerance times the largest element, or
    times 1 if that is larger. For a linear equation it is always the largest element, as the
    equation has no scale of its own. Converged samples keep their state. A NaN or infinite state
    ends the iteration without a solution; if `checked`, the run then fails. Newton's method solves
    a linear equation in one step.
    """
    problem = _Problem(source, **params)
    builder = Builder(problem.body.name, source)
    with builder:
        inputs = [builder.input(t) for t in types]
        samples = inputs[problem.consts].shape[: problem.lead]
        if problem.linear and problem.method == "newton":
            z, found, trips = _newton_step(builder, problem, inputs)
            found = logical_and(found, _is_finite(z, problem.lead))
        elif problem.method == "known":
            z = inputs[problem.consts :]
            found = _is_finite(z, problem.lead)
            trips = filled_constant(0, TensorType(samples, INT64))
        else:
            z, found, trips = _emit_loop(builder, problem, inputs, samples)
        if problem.checked:
            z = [
                unless_any(v, logical_not(broadcast_samples(found, v)), message=_late(problem))
                for v in z
            ]
        elif problem.strict:
            z = [
                select(broadcast_samples(found, v), v, filled_constant(math.nan, v.type)) for v in z
            ]
    return dead_code(builder.graph([*z, found, trips]))


def _late(problem: _Problem) -> str:
    """Return the error message of a solution that did not converge."""
    name = "fixed_point" if problem.method == "repeat" else "root"
    part = "the linear equation of a derivative of " if problem.linear else ""
    if problem.linear and problem.solver != "dense":
        part, name = "", problem.solver
    return (
        f"{part}{name} did not converge within {problem.limit} steps: increase max_trips or tol, "
        "or begin nearer to the solution"
    )


def _emit_loop(
    builder: Builder, problem: _Problem, inputs: Sequence[Value], samples: Shape
) -> tuple[list[Value], Value, Value]:
    """Return the last state, whether it converged, and the number of steps.

    The loop carries the active samples, their step counts, and the state.
    """
    fixed, init = inputs[: problem.consts], inputs[problem.consts :]
    first = [
        filled_constant(1, TensorType(samples, BOOL)),
        filled_constant(0, TensorType(samples, INT64)),
    ]
    results = while_loop(
        *fixed,
        *first,
        *init,
        test=_test(problem, [v.type for v in (*fixed, *first, *init)]),
        body=_turn(problem, [v.type for v in (*fixed, *first, *init)]),
        consts=problem.consts,
        limit=problem.limit,
    )
    goes_on, trips, *z = results[:-1]
    done = logical_and(logical_not(goes_on), _is_finite(z, problem.lead))
    return z, done, trips


def _test(problem: _Problem, types: Sequence[TensorType]) -> Graph:
    builder = Builder("goes_on", problem.source)
    with builder:
        goes_on = [builder.input(t) for t in types][problem.consts]
        return builder.graph([any_sample(goes_on, problem.lead)])


def _turn(problem: _Problem, types: Sequence[TensorType]) -> Graph:
    builder = Builder(problem.body.name, problem.source)
    consts, lead = problem.consts, problem.lead
    with builder:
        inputs = [builder.input(t) for t in types]
        goes_on, trips, *z = inputs[consts:]
        new, change = _step(builder, problem, inputs[:consts], z)
        allowed = mul(filled_constant(problem.tolerance, change.type), _scale(problem, new, change))
        far = greater(change, allowed)
        if lead:
            new = [
                select(broadcast_samples(goes_on, v), v, old) for v, old in zip(new, z, strict=True)
            ]
            far = logical_and(goes_on, far)
        return builder.graph([far, add(trips, cast(goes_on, dtype=INT64)), *new])


def _step(
    builder: Builder, problem: _Problem, fixed: Sequence[Value], z: Sequence[Value]
) -> tuple[list[Value], Value]:
    """Return the next state, and the largest change of an element in each sample."""
    inputs, solved = [*fixed, *z], None
    if problem.method == "newton":
        new, solved, _ = _newton_step(builder, problem, inputs)
    else:
        new = builder.inline(problem.step or problem.body, inputs)
    changes = [sub(a, b) for a, b in zip(new, z, strict=True)]
    if problem.damping != 1.0:
        new = [
            add(old, mul(filled_constant(problem.damping, d.type), d))
            for old, d in zip(z, changes, strict=True)
        ]
    change = _largest(changes, problem.lead)
    if solved is not None and problem.solver != "dense":
        # However small a step is that was not found, it is not the last one.
        change = select(solved, change, filled_constant(math.inf, change.type))
    return new, change


def _scale(problem: _Problem, z: Sequence[Value], like: Value) -> Value:
    size = _largest(z, problem.lead)
    return size if problem.linear else maximum(size, filled_constant(1.0, like.type))


def _largest(values: Sequence[Value], lead: int) -> Value:
    """Return the largest absolute value of an element in each sample; NaN if one is NaN."""
    samples, wide = values[0].shape[:lead], _widest(values)
    found = []
    for value in values:
        axes = tuple(range(lead, value.type.ndim))
        if any(type(extent) is int and extent == 0 for extent in value.shape[lead:]):
            continue
        size = abs_(value)
        found.append(_cast(reduce_max(size, axes=axes) if axes else size, wide))
    return reduce(maximum, found) if found else filled_constant(0.0, TensorType(samples, wide))


def _is_finite(z: Sequence[Value], lead: int) -> Value:
    size = _largest(z, lead)
    return less(size, filled_constant(math.inf, size.type))


# Newton's method.


def _newton_step(
    builder: Builder, problem: _Problem, inputs: Sequence[Value]
) -> tuple[list[Value], Value, Value]:
    """Return `z - d` in each sample, where `J d = f(z)` with the Jacobian `J` of `f` by `z`.

    And whether `d` was found, and in how many steps.
    """
    z, lead = inputs[problem.consts :], problem.lead
    wide = _widest(z) if _widest(z).itemsize >= FLOAT32.itemsize else FLOAT32
    samples = z[0].shape[:lead]
    values = _as_rows(builder.inline(problem.body, inputs), samples, wide)
    joint = linearize(problem.body, range(problem.consts, len(inputs)), closed=False)
    slopes = dead_code(Graph(joint.inputs, joint.body, joint.outputs[len(z) :], problem.body.name))
    if problem.solver == "dense":
        rows = _solve_dense(builder, slopes, inputs, problem, values)
        found = filled_constant(1, TensorType(samples, BOOL))
        trips = filled_constant(1, TensorType(samples, INT64))
    else:
        system = System(
            problem.source,
            _row_product(slopes, inputs, problem, values.type),
            None
            if problem.step is None
            else _row_product(problem.step, inputs, problem, values.type),
            inputs,
            lead,
            problem.tolerance,
            problem.limit if problem.linear else most_steps(values.shape[-1], problem.limit),
        )
        rows, found, trips = solve_by_products(builder, problem.solver, system, values)
    moves = _as_leaves(rows, z, lead)
    return [sub(old, d) for old, d in zip(z, moves, strict=True)], found, trips


def most_steps(size: int | Dim, limit: int) -> int:
    """Return how many steps a linear equation of `size` unknowns may take in a nonlinear one."""
    return max(limit, _STEPS_EACH * size if type(size) is int else _STEPS)


def _row_product(
    linear: Graph, inputs: Sequence[Value], problem: _Problem, row: TensorType
) -> Graph:
    """Return a function linear in arrays as `z`, its last inputs, as a graph of `inputs` and a row.

    It is the product with the Jacobian, which reads all `inputs`, or with a preconditioner, which
    reads the constants.
    """
    builder = Builder(problem.body.name, problem.source)
    lead = problem.lead
    with builder:
        own = [builder.input(v.type) for v in inputs]
        direction = _as_leaves(builder.input(row), own[problem.consts :], lead)
        found = builder.inline(linear, [*own[: len(linear.inputs) - len(direction)], *direction])
        return builder.graph([_as_rows(found, row.shape[:lead], row.dtype)])


def _solve_dense(
    builder: Builder, slopes: Graph, inputs: Sequence[Value], problem: _Problem, rhs: Value
) -> Value:
    """Solve with the Jacobian by the unknowns, for each sample.

    Samples are independent, so that one direction in all samples yields one column of each.
    """
    z, lead = inputs[problem.consts :], problem.lead
    *samples, n = rhs.shape
    many = batch(slopes, n, [*[None] * len(inputs), *[0] * len(z)])
    columns = builder.inline(many, [*inputs, *_directions(z, lead, n)])
    rows = _as_rows(columns, (n, *samples), rhs.dtype)
    last = len(samples) + 1
    jacobian = permute(rows, axes=(*range(1, last), last, 0))
    column = reshape(rhs, shape=(*samples, n, 1))
    found = column / jacobian if type(n) is int and n == 1 else solve(jacobian, column)
    return reshape(found, shape=rhs.shape)


def _directions(z: Sequence[Value], lead: int, n: int) -> list[Value]:
    """Return the unit vectors, split into the arrays of `z` and equal for all samples."""
    found, begin = [], 0
    for value in z:
        own = value.shape[lead:]
        size = own_size([value.type], lead)
        row, column = (iota(shape=(n, size), axis=i, dtype=INT64) for i in (0, 1))
        ones = equal(row, add(column, filled_constant(begin, column.type)))
        unit = reshape(cast(ones, dtype=value.dtype), shape=(n, *own))
        axes = tuple(range(1, 1 + lead))
        found.append(broadcast(unit, shape=(n, *value.shape), new_axes=axes) if axes else unit)
        begin = begin + size
    return found


def own_size(types: Sequence[TensorType], lead: int) -> int:
    """Return the number of elements of each sample."""
    return sum(math.prod(t.shape[lead:]) for t in types)


def _as_rows(values: Sequence[Value], samples: Shape, dtype: DType) -> Value:
    """Concatenate all elements of each sample in a row."""
    lead = len(samples)
    rows = [_cast(reshape(v, shape=(*samples, math.prod(v.shape[lead:]))), dtype) for v in values]
    return concat(*rows, axis=lead) if len(rows) > 1 else rows[0]


def _as_leaves(rows: Value, like: Sequence[Value], lead: int) -> list[Value]:
    """Split rows into arrays shaped as `like`."""
    found, begin = [], 0
    samples = rows.shape[:lead]
    for value in like:
        size = own_size([value.type], lead)
        part = rows
        if len(like) > 1:
            starts = (*[0] * lead, begin)
            part = slice_(rows, starts=starts, sizes=(*samples, size), steps=(1,) * (lead + 1))
        found.append(_cast(reshape(part, shape=value.shape), value.dtype))
        begin = begin + size
    return found


def _widest(values: Sequence[Value]) -> DType:
    return np.result_type(*[v.dtype for v in values])


def _cast(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else cast(value, dtype=dtype)
