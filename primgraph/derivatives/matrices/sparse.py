"""Sparse Jacobians and Hessians by compressed products: each determines many elements.

The columns, or rows, of one colour are added in one product, from which the elements are gathered
(Curtis, Powell and Reid, J. Inst. Math. Appl. 13, 1974; Gebremedhin, Manne and Pothen, SIAM Review
47, 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from primgraph.base.user_lines import caller
from primgraph.derivatives.matrices.jacobian import request_for, require_matrix, with_gradient
from primgraph.derivatives.matrices.layout import Layout, Matrix, Passes, Selection
from primgraph.derivatives.matrices.lazy_jacobian import LazyJacobian, take_entries
from primgraph.derivatives.matrices.operator import JacobianOperator
from primgraph.derivatives.matrices.sparse_matrix import FORMATS, TRIANGLES, SparseMatrix
from primgraph.derivatives.matrices.sparsity_patterns import pattern_of, too_large
from primgraph.errors import ArgumentError, CheckError, OptionError, ShapeError
from primgraph.ir.dims import names_in
from primgraph.ir.graph import Equation
from primgraph.ir.primitive import recording
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import TensorType
from primgraph.operators.index.indexing import take
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import constant_op, filled_constant
from primgraph.primitives.indexing import scatter_add
from primgraph.primitives.shapes import reshape as reshape_
from primgraph.sparsity.coloring import Coloring, coloring, symmetric_coloring
from primgraph.sparsity.pattern import Indices, Pattern
from primgraph.transforms.dataflow.activity import dependent_values
from primgraph.transforms.jacobians.element_rules import elements_of
from primgraph.transforms.jacobians.jacobian_entries import explicit_matrix, may_be_written_out
from primgraph.transforms.optimize.clean_up import clean_up

_SIDES = {None: "auto", "forward": "columns", "reverse": "rows", "both": "both"}


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Evaluation plan of a sparse derivative matrix: its colouring determines the products."""

    operator: JacobianOperator
    coloring: Coloring
    is_found: bool
    # Whether the user requested products, so that no other method is allowed.
    is_by_products: bool

    @property
    def note(self) -> str:
        """Return a note if the pattern is large because indices are fed."""
        reading = fed_indices(self.operator) if self.is_found else []
        if not reading:
            return ""
        return (
            f"indices are fed at {reading[0].source}, so that all elements they may reach count: "
            f"{self.pattern.nnz}, {100 * self.pattern.density:.3g} % of all"
        )

    @property
    def pattern(self) -> Pattern:
        """Elements that may be nonzero."""
        return self.coloring.pattern

    def values(self, numbers: Indices | None = None) -> Variable:
        """Return the elements of these numbers, by default all, in the order of the pattern."""
        operator, found = self.operator, self.coloring
        if operator.is_zero or found.pattern.nnz == 0:
            count = found.pattern.nnz if numbers is None else numbers.size
            return operator.zeros(TensorType((count,), operator.dtype))
        if not self.is_by_products:
            direct = self._direct(numbers)
            if direct is not None:
                return direct
        parts = [
            reshape(
                operator.products(_seeds(colors, count, operator), by_columns=by_columns), (-1,)
            )
            for colors, count, by_columns in (
                (found.columns, found.column_count, True),
                (found.rows, found.row_count, False),
            )
            if colors is not None and count
        ]
        with recording(operator.builder):
            flat = concatenate(parts) if len(parts) > 1 else parts[0]
        if found.steps:
            flat, places = self._solve_by_substitution(flat)
        else:
            places = found.places
        return take_entries(flat, 0, places if numbers is None else places[numbers])

    def _direct(self, numbers: Indices | None) -> Variable | None:
        """Return the elements without products, if that is cheaper; else None."""
        (graph, is_risky), pattern = self.operator.plain_forward(), self.pattern
        keys = pattern.rows * pattern.shape[1] + pattern.indices
        wanted = np.arange(pattern.nnz) if numbers is None else numbers
        kinds = np.zeros(wanted.size, np.int64)
        if self.operator.symmetric:
            # Both mirrored elements are read from the lower triangle.
            upper = pattern.rows < pattern.indices
            mirror = pattern._column_order
            kinds = upper[wanted].astype(np.int64)
            wanted = np.where(upper, mirror, np.arange(pattern.nnz))[wanted]
        seed = forward_slice(graph.body, graph.inputs[-1:])
        types = [v.type for e in graph.body for v in e.outputs if v in seed]
        if names_in(tuple([t.shape for t in types])):
            return None
        most = self.coloring.count * sum(t.size for t in types)
        values = elements_of(graph, keys, wanted, kinds, most, chooses=not is_risky)
        return None if values is None else self.operator.record_derivative(values)

    def _solve_by_substitution(self, flat: Variable) -> tuple[Variable, Indices]:
        """Solve for the lower triangle by substitution; return its values and their positions."""
        pattern = self.pattern
        place = np.full(pattern.nnz, -1, np.int64)
        known: list[Variable] = []
        count = 0
        with recording(self.operator.builder):
            for step in self.coloring.steps:
                found = take(flat, step.places)
                if step.others.size:
                    before = concatenate(known) if len(known) > 1 else known[0]
                    found = found - _segment_sum(before, place[step.others], step.into, found.size)
                place[step.elements] = count + np.arange(step.elements.size)
                count += step.elements.size
                known.append(found)
            whole = concatenate(known) if len(known) > 1 else known[0]
        mirror = pattern._column_order
        return whole, np.where(place >= 0, place, place[mirror])


def _seeds(colors: Indices, count: int, operator: JacobianOperator) -> np.ndarray[Any, Any]:
    """Return a row for each colour, with ones at its columns."""
    rows: np.ndarray[Any, Any] = np.arange(count)[:, None] == colors[None, :]
    return rows.astype(operator.dtype)


def _segment_sum(values: Variable, places: Indices, into: Indices, count: int) -> Variable:
    """Return, for each of `count` results, the sum of the values assigned to it."""
    times = np.bincount(into, minlength=count)
    starts = np.cumsum(times) - times
    padded = concatenate([values, np.zeros(1, values.dtype)])
    total: Variable | None = None
    for turn in range(int(times.max())):
        at = np.full(count, values.size, np.int64)
        at[times > turn] = places[starts[times > turn] + turn]
        term = take(padded, at)
        total = term if total is None else total + term
    assert total is not None
    return total


def jacobian_plan(
    name: str,
    y: Any,
    x: Any,
    pattern: Any,
    mode: str | None = None,
    order: str = "auto",
    check: bool = False,
) -> Plan:
    """Plan the products for the Jacobian of `y` by `x`."""
    if mode not in _SIDES:
        raise OptionError(f"a mode is 'forward', 'reverse' or 'both', not {mode!r:.60}")
    request = request_for(name, y, x)
    require_matrix(request, False)
    operator = JacobianOperator(request)
    found = _pattern_of(name, operator, pattern, check)
    side = _SIDES[mode]
    if operator.only is not None or not operator.goes_forward:
        only = operator.only or "reverse"
        if mode not in (None, only):
            raise OptionError(f"{name}: only {only} mode gives these derivatives")
        side = _SIDES[only]
    return Plan(operator, coloring(found, side, order), pattern is None, mode is not None)


def hessian_plan(
    name: str,
    y: Any,
    x: Any,
    pattern: Any,
    method: str = "auto",
    order: str = "auto",
    check: bool = False,
) -> Plan:
    """Plan the products for the Hessian of `y` by `x`."""
    request = request_for(name, with_gradient(name, y, x, 0), x)
    operator = JacobianOperator(request.select_outputs(slice(1, None)), symmetric=True)
    found = _pattern_of(name, operator, pattern, check)
    if found != found.T:
        found = found.union(found.T)
    made = symmetric_coloring(found, method, order)
    if not operator.goes_forward:
        # In a symmetric matrix, products that determine columns determine rows.
        made = Coloring(found, None, made.columns, made.places, made.steps)
    return Plan(operator, made, pattern is None, method != "auto")


def matrix_of(plan: Plan, format: str, triangle: str | None) -> SparseMatrix:
    """Return the matrix in that format, or one triangle of a symmetric one."""
    if format not in FORMATS:
        raise OptionError(f"a format is one of {', '.join(FORMATS)}, not {format!r:.60}")
    if triangle not in (None, *TRIANGLES):
        raise OptionError(f"a triangle is 'lower' or 'upper', not {triangle!r:.60}")
    pattern = plan.pattern
    numbers = np.arange(pattern.nnz)
    if triangle is not None:
        lower = triangle == "lower"
        rows, columns = pattern.rows, pattern.indices
        numbers = np.flatnonzero(rows >= columns if lower else rows <= columns)
        pattern = Pattern.from_coo(rows[numbers], columns[numbers], pattern.shape)
    if format == "csc":
        numbers = numbers[pattern._column_order]
    values = plan.values(numbers)
    return SparseMatrix(values, format, pattern, plan.coloring, triangle, plan.note)


def _pattern_of(name: str, operator: JacobianOperator, given: Any, check: bool) -> Pattern:
    """Convert a pattern, a mask or a sparse matrix of SciPy to a pattern."""
    if operator.outputs.names or operator.inputs.names:
        raise OptionError(
            f"{name}: where a sparse matrix has elements is not known for sizes that have names",
            hint="trace it for arrays of each size, or take a dense matrix",
        )
    shape = operator.shape
    if given is None:
        return _require_pattern(name, operator)
    if isinstance(given, Pattern):
        found = given
    elif hasattr(given, "tocoo"):
        found = Pattern.from_scipy(given)
    elif isinstance(given, np.ndarray | list | tuple):
        found = Pattern.from_dense(given)
    else:
        raise ArgumentError(f"{name} takes a pattern or a mask, not {given!r:.60}")
    if found.shape != shape:
        raise ShapeError(
            f"{name}: a pattern of {found.shape[0]} x {found.shape[1]} is given for "
            f"{shape[0]} outputs and {shape[1]} inputs"
        )
    if check:
        _require_all(name, operator, found)
    return found


def _require_pattern(name: str, operator: JacobianOperator) -> Pattern:
    """Return the pattern found from the program."""
    found = pattern_of(operator)
    if found is None:
        raise too_large(name, operator.shape)
    return found


def _require_all(name: str, operator: JacobianOperator, given: Pattern) -> None:
    """Raise `CheckError` for an element outside of the `given` pattern that may be nonzero."""
    lacking = given.missing(_require_pattern(name, operator))
    if not lacking.nnz:
        return
    row, column = int(lacking.rows[0]), int(lacking.indices[0])
    output, input = _place(operator.outputs, row), _place(operator.inputs, column)
    of = "the derivative by " if operator.symmetric else ""
    told = f"{of}element {output[1]} of {'input' if of else 'output'} {output[0]}"
    others = f", and {lacking.nnz - 1} others" if lacking.nnz > 1 else ""
    values = [operator.request.outputs[output[0]]]
    raise CheckError(
        f"{name}: the pattern lacks element ({row}, {column}){others}: {told} may depend on "
        f"element {input[1]} of input {input[0]}",
        origin=operator.builder.origin(caller(), values),
        hint="leave out pattern, or check=True if you know that it is zero",
    )


def _place(layout: Layout, number: int) -> tuple[int, tuple[int, ...]]:
    """Return the array that an element of all belongs to, and its index there."""
    array = int(np.searchsorted(layout.offsets(), number, side="right")) - 1
    place = np.unravel_index(number - layout.offsets()[array], layout.shapes[array])
    return array, tuple(map(int, place))


def fed_indices(operator: JacobianOperator) -> list[Equation]:
    """Return the equations that read elements at indices which are not known before a run."""
    graph = operator.path.graph
    moving = dependent_values(graph, operator.path.moved)
    fed = {v for v in graph.inputs if not v.type.is_inexact}
    found = []
    for eqn in graph.body:
        if fed.isdisjoint(eqn.inputs) and moving.isdisjoint(eqn.inputs):
            continue
        whole = [v for v in eqn.inputs if v in fed and v.dtype.kind in "iu"]
        if whole and not moving.isdisjoint(eqn.inputs) and eqn.outputs[0].type.is_inexact:
            found.append(eqn)
        fed.update(v for v in eqn.outputs if not v.type.is_inexact)
    return found


@final
class SparseJacobian(Matrix):
    """Derivative matrix whose possibly nonzero elements are all evaluated at once.

    Requested parts are gathered from them.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        operator = plan.operator
        self.outputs, self.inputs, self.dtype = operator.outputs, operator.inputs, operator.dtype
        self.only = self.mode = operator.only
        self.passes = Passes()
        self._kept: Variable | None = None

    @property
    def name(self) -> str:
        return self.plan.operator.builder.name

    def zeros(self, type: TensorType) -> Variable:
        return self.plan.operator.zeros(type)

    def arrange_block(self, block: Variable, selection: Selection) -> Variable:
        return LazyJacobian(self.plan.operator).arrange_block(block, selection)

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Variable:
        builder = self.plan.operator.builder
        if self._kept is None or self._kept.value not in builder:
            with recording(builder):
                zero = np.zeros(1, self.dtype)
                self._kept = concatenate([self.plan.values(), zero])
            found = self.plan.coloring
            self.passes = Passes(found.row_count, found.column_count)
        numbers = _numbers(self.plan.pattern, np.asarray(rows), np.asarray(columns))
        with recording(builder):
            return reshape(take(self._kept, numbers.ravel()), numbers.shape)


def _numbers(pattern: Pattern, rows: Indices, columns: Indices) -> Indices:
    """Return the number of each element of a block; the number of elements if it is zero."""
    keys = pattern.rows * pattern.shape[1] + pattern.indices
    wanted = rows[:, None] * pattern.shape[1] + columns[None, :]
    at = np.searchsorted(keys, wanted)
    is_there = keys[np.minimum(at, keys.size - 1)] == wanted if keys.size else np.False_
    return np.where(is_there, at, pattern.nnz)


def lazy_matrix(name: str, y: Any, x: Any, pattern: Any) -> SparseJacobian:
    """Return the "Jacobian" or "Hessian" of `y` by `x` for indexing."""
    plan = jacobian_plan if name == "Jacobian" else hessian_plan
    return SparseJacobian(plan(name, y, x, pattern))


def sparse_hessian(name: str, y: Any, x: Any) -> SparseMatrix:
    """Return the Hessian of `y` by `x` in CSR format."""
    return matrix_of(hessian_plan(name, y, x, None), "csr", None)


# Smaller matrices are not worth finding a pattern. Larger ones are if this many times fewer
# products determine all elements, and if at most this fraction of the matrix is nonzero.
_SMALL = 24
_FEWER = 3
_SHARE = 6
# Limit of listed elements in the pattern search, and the number allowed for any matrix.
_LISTED = 2**14


def whole_of(
    operator: JacobianOperator, mode: str | None, wanted: int
) -> tuple[Variable, Passes] | None:
    """Return the whole matrix, if that takes far less than the rows or columns `wanted`.

    Elements with explicit formulas, diagonal by diagonal, are computed directly. Otherwise the
    columns, or rows, of one colour are added in one product. Elements outside of the pattern are
    zero. None if there is no gain.
    """
    if operator.outputs.lead() or operator.outputs.names or operator.inputs.names:
        return None
    if operator.is_zero:
        return None
    graph, moved = operator.path.graph, operator.path.moved
    if may_be_written_out(graph, moved) and operator.goes_forward:
        found = explicit_matrix(clean_up(operator.tangents), len(operator.path.free))
        if found is not None:
            return operator.record_derivative(found[0]), Passes(0, found[1])
    return _evaluate_compressed(operator, mode, wanted) if wanted >= _SMALL else None


def _evaluate_compressed(
    operator: JacobianOperator, mode: str | None, wanted: int
) -> tuple[Variable, Passes] | None:
    shape = operator.shape
    pattern = pattern_of(operator, max(shape[0] * shape[1] // _SHARE, _LISTED))
    if pattern is None or pattern.nnz * _SHARE > shape[0] * shape[1]:
        return None
    width = int(np.diff(pattern.indptr).max(initial=0))
    if operator.symmetric and width * _FEWER > 2 * wanted:
        return None
    if not operator.symmetric and min(width, _tallest(pattern.indices)) * _FEWER > wanted:
        return None
    if not operator.goes_forward:
        found = coloring(pattern, "rows")
    elif operator.symmetric:
        found = symmetric_coloring(pattern, "star")
    else:
        found = coloring(pattern, "columns" if mode == "forward" else "auto")
    if found.count * _FEWER > wanted:
        return None
    values = Plan(operator, found, True, True).values()
    with recording(operator.builder):
        places, params = constant_op(pattern.rows * shape[1] + pattern.cols)
        flat = filled_constant(0, TensorType((shape[0] * shape[1],), operator.dtype))
        flat = scatter_add(flat, values.value, places(**params), axis=0)
        whole = reshape_(flat, shape=shape)
    return Variable(operator.builder, whole), Passes(found.row_count, found.column_count)


def _tallest(columns: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> int:
    """Return the largest number of elements in a column."""
    return int(np.bincount(columns).max(initial=0))
