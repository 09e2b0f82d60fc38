"""Linear equations that are solved by products with their matrix alone."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from primgraph import tree
from primgraph.control.bodies import Body, captured_values, record
from primgraph.control.recorded_loops import trace_stable_carry
from primgraph.control.solutions import (
    default_tolerance,
    require_floats,
    results_of,
    solution_options,
    solve_in_world,
)
from primgraph.control.world import own
from primgraph.errors import ArgumentError, MissingRuleError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Graph, Value
from primgraph.operators.handle import Handle
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.elementwise import sub
from primgraph.transforms import lower, transpose
from primgraph.transforms.loops.implicit_solution import solution
from primgraph.transforms.loops.solver_loops import most_steps, own_size


@check_arguments
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    M: Any = None,
    tol: float | None = None,
    max_trips: int | None = None,
    full_output: bool = False,
    check: bool = False,
) -> Any:
    """Solve `A x = b` with a symmetric positive definite `A` by conjugate gradients.

    `A` is a matrix of shape (n, n), which may be sparse, or a function that returns its product
    with `x`. Then `b` may be a container of float arrays, and `A(x)` returns the same. The steps
    begin at `x0`, zeros unless given, and end when the norm of the residual is at most `tol` times
    the first one. `tol` is `eps ** 0.75` of the dtype unless given: 1.8e-12 for float64. At most
    `max_trips` steps are made: ten for each unknown unless given, or 10000 where the number of
    unknowns is open.

    `M` is a preconditioner: a matrix or a function like `A`, linear and about the inverse of `A`,
    with which there are fewer steps; for this method it is symmetric positive definite.

    A solution that is not found is NaN; with `check` it is an error of the run, a `pg.LinAlgError`.
    With `full_output` the result is a pair: the last iterate, and `(converged, trips)`.

    Derivatives are by `b` and all that `A` uses, in all modes and orders: each solves one more
    equation by this method, with `M` or its transpose. By `x0` and `M` they are zero. Under
    `pg.vmap`, each sample ends by itself.

    Raises `ArgumentError`, `DTypeError` or `ShapeError` where `A`, `M` or `x0` does not fit `b`.
    See M. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, 1952.

    >>> a = pg.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> pg.solvers.cg(a, pg.tensor([1.0, 2.0])).round(6).tolist()
    [0.090909, 0.636364]
    >>> stiff = pg.tensor([1.0, 10.0, 100.0, 1000.0])
    >>> for M in (None, lambda r: r / stiff):
    ...     x, (_, trips) = pg.solvers.cg(lambda x: stiff * x, stiff, M=M, full_output=True)
    ...     print(x.round(6).tolist(), trips.item())
    [1.0, 1.0, 1.0, 1.0] 4
    [1.0, 1.0, 1.0, 1.0] 1
    """
    return _solve("cg", A, b, x0, M, tol, max_trips, full_output, check)


@check_arguments
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    M: Any = None,
    tol: float | None = None,
    max_trips: int | None = None,
    full_output: bool = False,
    check: bool = False,
) -> Any:
    """Solve `A x = b` with a matrix of any kind by BiCGStab: two products a step, and few vectors.

    For arguments, results, derivatives and errors see `pg.solvers.cg`. Derivatives take products
    with the transposed `A`, which is found by differentiation. See H. van der Vorst, Bi-CGSTAB,
    1992.

    >>> a = pg.tensor([[4.0, 1.0], [-1.0, 3.0]])
    >>> pg.solvers.bicgstab(lambda x: a @ x, pg.tensor([1.0, 2.0])).round(6).tolist()
    [0.076923, 0.692308]
    """
    return _solve("bicgstab", A, b, x0, M, tol, max_trips, full_output, check)


@check_arguments
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    M: Any = None,
    tol: float | None = None,
    max_trips: int | None = None,
    full_output: bool = False,
    check: bool = False,
) -> Any:
    """Solve `A x = b` with a matrix of any kind by GMRES: one product a step.

    The norm of the residual never grows. Up to 64 unknowns the method ends after as many steps at
    the latest; with more it keeps 20 directions and restarts, and may stay where it is. For
    arguments, results, derivatives and errors see `pg.solvers.cg`. See Y. Saad and M. Schultz,
    GMRES, 1986.

    >>> a = pg.tensor([[0.0, 1.0], [-1.0, 0.0]])
    >>> pg.solvers.gmres(a, pg.tensor([1.0, 2.0])).round(6).tolist()
    [-2.0, 1.0]
    """
    return _solve("gmres", A, b, x0, M, tol, max_trips, full_output, check)


def _solve(
    method: str,
    A: Any,
    b: Any,
    x0: Any,
    M: Any,
    tol: float | None,
    max_trips: int | None,
    full_output: bool,
    check: bool,
) -> Any:
    limit = 1 if max_trips is None else max_trips
    options = solution_options(method, tol, limit, full_output, check)
    if max_trips is None:
        options["limit"] = None
    products = [_product_of(method, "A", A), *([] if M is None else [_product_of(method, "M", M)])]
    given = (b,) if x0 is None else (b, x0)
    return solve_in_world(method, partial(_record, method, products, options), products, given)


def _product_of(method: str, name: str, matrix: Any) -> Callable[[Any], Any]:
    """Return a function that multiplies, which the matrix may be itself."""
    if callable(matrix) and not isinstance(matrix, Handle):
        return cast("Callable[[Any], Any]", matrix)
    shape = np.shape(matrix) if not isinstance(matrix, Handle) else matrix.shape
    if len(shape) != 2:
        raise ShapeError(f"{method}: {name} is a matrix or a function, not of shape {tuple(shape)}")
    # Sparse matrices have products of their own.
    is_sparse = hasattr(matrix, "tocoo")
    return partial(operator.matmul if is_sparse else matmul, matrix)


def _record(
    method: str,
    products: Sequence[Callable[[Any], Any]],
    options: dict[str, Any],
    given: tuple[Any, ...],
) -> Any:
    """Record the equation `A x - b = 0`, which is linear in `x` and `b`."""
    leaves, structure = tree.flatten(given[0])
    require_floats(method, "b", [own(leaf) for leaf in leaves], structure)
    traced = [
        _trace(method, name, product, given[0])
        for name, product in zip(("A", "M"), products, strict=False)
    ]
    rhs, structure, _ = traced[0]
    if not rhs:
        raise ArgumentError(f"{method}: there is nothing in b to solve for")
    types = [v.type for v in rhs]
    if options["tolerance"] is None:
        options["tolerance"] = default_tolerance(types)
    if options["limit"] is None:
        options["limit"] = most_steps(own_size(types, 0), 1)
    outside, count = captured_values([body for *_, body in traced]), len(rhs)
    values = [v.value for v in rhs]
    graphs = [body.graph(outside) for *_, body in traced]
    for name, graph in zip(("A", "M"), graphs, strict=False):
        _require_linear(method, name, graph, count)
    begin = _begin(method, given[1], rhs, structure) if len(given) > 1 else None
    found = record(
        [*outside, *values, *(values if begin is None else begin)],
        lambda *operands: solution(
            *operands[: len(outside) + count],
            *(map(zeros_like, operands[-count:]) if begin is None else operands[-count:]),
            body=_with_rhs(graphs[0], count, subtract=True),
            step=_with_rhs(graphs[1], count, subtract=False) if len(graphs) > 1 else None,
            consts=len(outside) + count,
            linear=count,
            lead=0,
            method="newton",
            damping=1.0,
            solver=method,
            **options,
        ),
    )
    return results_of(found, structure, options["strict"])


def _trace(
    method: str, name: str, product: Callable[[Any], Any], b: Any
) -> tuple[list[Variable], tree.Structure, Body]:
    """Trace a product with arrays as those of `b`."""

    def pair(x: Any) -> Any:
        return product(x), None

    pair.__name__ = name
    return trace_stable_carry(method, pair, b, lambda _: [], given="b is")


def _require_linear(method: str, name: str, product: Graph, count: int) -> None:
    """Raise `ArgumentError` unless the product is linear in its last `count` operands."""
    places = range(len(product.inputs) - count, len(product.inputs))
    try:
        transpose(lower(product), places)
    except MissingRuleError as error:
        raise ArgumentError(f"{method}: {name} is not linear in x: {error.args[0]}") from None


def _begin(method: str, x0: Any, rhs: Sequence[Variable], structure: tree.Structure) -> list[Value]:
    """Return the values to begin with."""
    leaves, found = tree.flatten(x0)
    begin = [own(leaf) for leaf in leaves]
    if found != structure or [v.type for v in begin] != [v.type for v in rhs]:
        raise ArgumentError(f"{method}: x0 has not the containers, shapes and dtypes of b")
    return [v.value for v in begin]


def _with_rhs(product: Graph, count: int, *, subtract: bool) -> Graph:
    """Return `A x`, less `b` if `subtract`, as a graph of the constants of `A`, `b` and `x`."""
    builder = Builder(product.name)
    with builder:
        inputs = [builder.input(t) for t in product.input_types[: len(product.inputs) - count]]
        b = [builder.input(t) for t in product.output_types[:count]]
        x = [builder.input(t) for t in product.output_types[:count]]
        found = builder.inline(product, [*inputs, *x])
        return builder.graph(
            [sub(v, w) for v, w in zip(found, b, strict=True)] if subtract else found
        )
