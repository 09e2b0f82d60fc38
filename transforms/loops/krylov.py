"""Linear equations solved by products with their matrix alone, as loops until convergence.

The methods are conjugate gradients (M. Hestenes, E. Stiefel, 1952) for symmetric positive definite
matrices, BiCGStab (H. van der Vorst, 1992), and GMRES with restarts (Y. Saad, M. Schultz, 1986).
All samples of a batch are solved at once, each until its own residual is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import BOOL, INT64, Shape, TensorType
from primgraph.primitives.constants import filled_constant, iota
from primgraph.primitives.control import while_loop
from primgraph.primitives.elementwise import abs_, add, cast, mul, sqrt
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import (
    equal,
    greater,
    less,
    less_equal,
    logical_and,
    logical_not,
    select,
)
from primgraph.primitives.reductions import reduce_max, reduce_sum
from primgraph.primitives.shapes import broadcast, reshape

# Directions that GMRES keeps between two restarts, as SciPy does; up to so many, it keeps all.
_DIRECTIONS, _ALL = 20, 64


class System(NamedTuple):
    """A linear equation: `product` takes `operands` and a row of unknowns, and returns a row.

    A row has the shape `(*samples, n)`, with `lead` axes of samples. `precondition` multiplies by
    about the inverse matrix, in the same way.
    """

    source: Source
    product: Graph
    precondition: Graph | None
    operands: Sequence[Value]
    lead: int
    tolerance: float
    limit: int


# A product with the matrix, or with about its inverse.
_Product = Callable[[Value], Value]
# State of a method after a step, from that before it; the first entries are the unknowns, and the
# squared norm of the residual comes last.
_Step = Callable[[_Product, _Product | None, Sequence[Value]], list[Value]]


def solve_by_products(
    builder: Builder, solver: str, system: System, rhs: Value
) -> tuple[Value, Value, Value]:
    """Return the unknowns, and for each sample whether they were found, and the number of steps.

    Steps are taken until the norm of the residual, which is updated with them, is at most the
    tolerance times that of `rhs`. Preconditioning is from the right, so that this residual is that
    of the equation itself.
    """
    start, step = _METHODS[solver]
    samples = rhs.shape[: system.lead]
    if type(rhs.shape[-1]) is int and rhs.shape[-1] == 0:
        flags, counts = (TensorType(samples, dtype) for dtype in (BOOL, INT64))
        return rhs, filled_constant(1, flags), filled_constant(0, counts)
    largest = reduce_max(abs_(rhs), axes=(system.lead,))
    scale = select(equal(largest, _like(0.0, largest)), _like(1.0, largest), largest)
    # Its squares neither overflow nor vanish, and NaN stays.
    scaled = rhs / broadcast_samples(scale, rhs)
    square = _dot(scaled, scaled)
    allowed = square * (system.tolerance * system.tolerance)
    precondition = _applied(builder, system.precondition, system.operands)
    state = [scaled * 0.0, *start(scaled, precondition), square]
    first = [greater(square, allowed), filled_constant(0, TensorType(samples, INT64))]
    operands = [*system.operands, allowed]
    consts = len(operands)
    types = [v.type for v in (*operands, *first, *state)]
    goes_on, trips, x, *_ = while_loop(
        *operands,
        *first,
        *state,
        test=_test(system, types, consts),
        body=_body(system, step, types, consts),
        consts=consts,
        limit=system.limit,
    )[: 2 + len(state)]
    largest = reduce_max(abs_(x), axes=(system.lead,))
    found = logical_and(logical_not(goes_on), less(largest, _like(math.inf, largest)))
    return x * broadcast_samples(scale, x), found, trips


def _test(system: System, types: Sequence[TensorType], consts: int) -> Graph:
    builder = Builder("goes_on", system.source)
    with builder:
        goes_on = [builder.input(t) for t in types][consts]
        return builder.graph([any_sample(goes_on, system.lead)])


def any_sample(goes_on: Value, lead: int) -> Value:
    """Return whether a condition holds for any of the samples."""
    if not lead:
        return goes_on
    count = reduce_sum(cast(goes_on, dtype=INT64), axes=tuple(range(lead)))
    return less(filled_constant(0, count.type), count)


def _body(system: System, step: _Step, types: Sequence[TensorType], consts: int) -> Graph:
    builder = Builder(system.product.name, system.source)
    with builder:
        inputs = [builder.input(t) for t in types]
        *operands, allowed = inputs[:consts]
        goes_on, trips, *state = inputs[consts:]

        product, precondition = (
            _applied(builder, graph, operands) for graph in (system.product, system.precondition)
        )
        assert product is not None
        new = step(product, precondition, state)
        if system.lead:
            new = [
                select(broadcast_samples(goes_on, v), v, old)
                for v, old in zip(new, state, strict=True)
            ]
        far = logical_and(goes_on, greater(new[-1], allowed))
        return builder.graph([far, add(trips, cast(goes_on, dtype=INT64)), *new])


def _applied(builder: Builder, graph: Graph | None, operands: Sequence[Value]) -> _Product | None:
    """Return the function of a row that inlines `graph`."""
    if graph is None:
        return None
    return lambda row: builder.inline(graph, [*operands, row])[0]


# Conjugate gradients: the state is x, the residual r, the direction, the product of r and z with
# preconditioning to z, and the square of r.


def _start_cg(rhs: Value, precondition: _Product | None) -> list[Value]:
    if precondition is None:
        return [rhs, rhs]
    z = precondition(rhs)
    return [rhs, z, _dot(rhs, z)]


def _step_cg(
    product: _Product, precondition: _Product | None, state: Sequence[Value]
) -> list[Value]:
    x, r, p, rho = state[:4]
    q = product(p)
    length = rho / _dot(p, q)
    x, r = x + broadcast_samples(length, p) * p, r - broadcast_samples(length, q) * q
    z = r if precondition is None else precondition(r)
    new = _dot(r, z)
    p = z + broadcast_samples(new / rho, p) * p
    return [x, r, p, new] if precondition is None else [x, r, p, new, _dot(r, r)]


# BiCGStab: the state is x, the residual, the first one, the direction, the product of both
# residuals, and the residual's square.


def _start_bicgstab(rhs: Value, precondition: _Product | None) -> list[Value]:
    return [rhs, rhs, rhs, _dot(rhs, rhs)]


def _step_bicgstab(
    product: _Product, precondition: _Product | None, state: Sequence[Value]
) -> list[Value]:
    x, r, first, p, rho, _ = state
    near = p if precondition is None else precondition(p)
    v = product(near)
    alpha = _ratio(rho, _dot(first, v))
    s = r - broadcast_samples(alpha, v) * v
    rest = s if precondition is None else precondition(s)
    t = product(rest)
    omega = _ratio(_dot(t, s), _dot(t, t))
    x = x + broadcast_samples(alpha, p) * near + broadcast_samples(omega, s) * rest
    r = s - broadcast_samples(omega, t) * t
    new, square = _dot(first, r), _dot(r, r)
    # Where only rounding is left of the product of both residuals, the method begins again.
    eps = float(np.finfo(new.dtype).eps)
    lost = less_equal(new * new, square * _dot(first, first) * (eps * eps))
    beta = select(lost, _like(0.0, rho), _ratio(new, rho) * _ratio(alpha, omega))
    p = r + broadcast_samples(beta, p) * (p - broadcast_samples(omega, v) * v)
    first = select(broadcast_samples(lost, r), r, first)
    return [x, r, first, p, select(lost, square, new), square]


def _ratio(x: Value, y: Value) -> Value:
    """Return `x / y`, and 0 where `y` is 0."""
    none = equal(y, _like(0.0, y))
    return select(none, _like(0.0, x), x / select(none, _like(1.0, y), y))


# GMRES. The basis V of the space has orthonormal rows, and the products A V' = V' H. The columns
# of H are made orthonormal as they come (rows of Q), and the same steps on V give the directions P,
# for which A P' = V' Q'. A step so minimizes the residual V' g along one more direction. With
# preconditioning, P and the products are of preconditioned rows of V.


def _start_gmres(rhs: Value, precondition: _Product | None) -> list[Value]:
    *samples, n = rhs.shape
    m = n if type(n) is int and n <= _ALL else _DIRECTIONS
    first = _unit(filled_constant(0, TensorType(tuple(samples), INT64)), m + 1, rhs.type)
    directions = filled_constant(0, rhs.type.with_shape((*samples, m, n)))
    columns = filled_constant(0, rhs.type.with_shape((*samples, m, m + 1)))
    done = filled_constant(m, TensorType(tuple(samples), INT64))
    return [done, _outer(first, rhs), directions, columns, first]


def _step_gmres(
    product: _Product, precondition: _Product | None, state: Sequence[Value]
) -> list[Value]:
    x, j, basis, directions, columns, g, _ = state
    m = directions.shape[-2]
    restarts = equal(j, _like(m, j))
    j = select(restarts, _like(0, j), j)
    basis, g = _restarted(restarts, basis, g)
    directions, columns = (
        select(broadcast_samples(restarts, v), _like(0, v), v) for v in (directions, columns)
    )
    now, following = _unit(j, m + 1, x.type), _unit(j + 1, m + 1, x.type)
    v = _combined(now, basis)
    v = v if precondition is None else precondition(v)
    w = product(v)
    first = _norm(w)
    w, h = _orthogonal(w, basis)
    size = _norm(w)
    # What rounding leaves of a vector in the space is no direction.
    is_new = greater(size, first * float(np.finfo(x.dtype).eps))
    size = select(is_new, size, _like(0.0, size))
    w = select(broadcast_samples(is_new, w), w / broadcast_samples(_norm(w), w), _like(0.0, w))
    column = h + broadcast_samples(size, h) * following
    u, s = _orthogonal(column, columns)
    length = _norm(u)
    # A column of which only rounding is new belongs to a singular matrix: its step is infinite.
    is_new = greater(length, _norm(column) * float(np.finfo(x.dtype).eps))
    length = select(is_new, length, _like(0.0, length))
    q = u / broadcast_samples(length, u)
    p = (v - _combined(s, directions)) / broadcast_samples(length, v)
    place = _unit(j, m, x.type)
    c = _dot(q, g)
    x, g = x + broadcast_samples(c, p) * p, g - broadcast_samples(c, q) * q
    return [
        x,
        j + 1,
        basis + _outer(following, w),
        directions + _outer(place, p),
        columns + _outer(place, q),
        g,
        _dot(g, g),
    ]


def _restarted(restarts: Value, basis: Value, g: Value) -> tuple[Value, Value]:
    """Return the basis and the small residual, where samples restart those of the residual."""
    residual = _combined(g, basis)
    size = _norm(residual)
    first = _unit(_like(0, cast(restarts, dtype=INT64)), g.shape[-1], g.type)
    begun = _outer(first, residual / broadcast_samples(size, residual))
    return (
        select(broadcast_samples(restarts, basis), begun, basis),
        select(broadcast_samples(restarts, g), broadcast_samples(size, g) * first, g),
    )


def _orthogonal(row: Value, rows: Value) -> tuple[Value, Value]:
    """Return the part of `row` that is orthogonal to `rows`, and the coefficients of the rest.

    Projecting twice keeps the orthogonality that rounding takes away.
    """
    h = _products(rows, row)
    row = row - _combined(h, rows)
    rest = _products(rows, row)
    return row - _combined(rest, rows), h + rest


def _products(rows: Value, row: Value) -> Value:
    column = reshape(row, shape=(*row.shape, 1))
    return reshape(matmul(rows, column), shape=rows.shape[:-1])


def _combined(weights: Value, rows: Value) -> Value:
    row = reshape(weights, shape=(*weights.shape[:-1], 1, weights.shape[-1]))
    return reshape(matmul(row, rows), shape=(*weights.shape[:-1], rows.shape[-1]))


def _outer(column: Value, row: Value) -> Value:
    *samples, m = column.shape
    shape, last = (*samples, m, row.shape[-1]), len(samples)
    return mul(
        broadcast(column, shape=shape, new_axes=(last + 1,)),
        broadcast(row, shape=shape, new_axes=(last,)),
    )


def _unit(place: Value, size: int, like: TensorType) -> Value:
    """Return for each sample the unit vector that is one at `place`."""
    shape = (*place.shape, size)
    numbers = iota(shape=shape, axis=len(shape) - 1, dtype=INT64)
    return cast(equal(numbers, _spread(place, shape)), dtype=like.dtype)


def _spread(value: Value, shape: Shape) -> Value:
    axes = tuple(range(value.type.ndim, len(shape)))
    return broadcast(value, shape=shape, new_axes=axes) if axes else value


def broadcast_samples(value: Value, like: Value) -> Value:
    """Broadcast a value of each sample to the shape of `like`."""
    return _spread(value, like.shape)


def _like(number: float, value: Value) -> Value:
    return filled_constant(number, value.type)


def _dot(a: Value, b: Value) -> Value:
    return reduce_sum(mul(a, b), axes=(a.type.ndim - 1,))


def _norm(row: Value) -> Value:
    return sqrt(_dot(row, row))


_METHODS: dict[str, tuple[Callable[[Value, _Product | None], list[Value]], _Step]] = {
    "cg": (_start_cg, _step_cg),
    "bicgstab": (_start_bicgstab, _step_bicgstab),
    "gmres": (_start_gmres, _step_gmres),
}
SOLVERS = ("dense", *_METHODS)
