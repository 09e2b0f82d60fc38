"""Rules of linear algebra: methods by the known structure of matrices and by factors at hand.

Results are equal in exact arithmetic, with errors of the size of LAPACK's methods. The last bits
differ, as they may between versions of LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from primgraph.base.debug_mode import debugging
from primgraph.ir.facts.matrices import DEFINITE, DIAGONAL, Structure
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import abs_, add, log, neg, sign
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.linear_algebra.cholesky import cholesky, cholesky_slope
from primgraph.primitives.linear_algebra.products import matmul, swap_last, transpose_source
from primgraph.primitives.linear_algebra.systems import det, inv, slogdet, solve, triangular_solve
from primgraph.primitives.logic import lower_part_of, upper_part_of
from primgraph.primitives.reductions import reduce_prod, reduce_sum
from primgraph.primitives.shapes import permute, reshape, slice_, slice_assign

# Minimum number of rows at which solves with triangular and Cholesky factors are faster than
# elimination (NumPy has no solvers for them).
_MANY = 64
# Maximum nesting of values that are inspected.
_NESTED = 4


class Matrices(Protocol):
    """Questions that rules ask about values of the new graph.

    `moved` has the new values of old ones. `inverses` are old inverses that only matrix products
    read; `factored` are old matrices of which there is a Cholesky factor.
    """

    moved: dict[Value, Value]
    inverses: set[Value]
    factored: set[Value]

    def definition(self, value: Value) -> Equation | None:
        """Return the equation of a new value."""

    def fact(self, value: Value) -> Structure:
        """Return the facts about a new value."""


MatrixRule: TypeAlias = Callable[[Matrices, Equation, list[Value]], "Sequence[Value] | None"]


# Matrices of a graph.


def factored_matrices(graph: Graph) -> set[Value]:
    """Return the matrices of which the graph computes a Cholesky factor."""
    return {e.inputs[0] for e in graph.body if e.op is cholesky}


def inverses_in_products(graph: Graph) -> set[Value]:
    """Return the inverses that only matrix products read, transposed or not."""
    inverses = {e.output for e in graph.body if e.op is inv}
    if not inverses:
        return inverses
    turned = {
        e.output: e.inputs[0]
        for e in graph.body
        if e.op is permute
        and e.inputs[0] in inverses
        and transpose_source(e.output, {e.output: e}.get)
    }
    for eqn in graph.body:
        if eqn.op is not matmul and eqn.output not in turned:
            inverses.difference_update(turned.get(v, v) for v in eqn.inputs)
    return inverses.difference(turned.get(v, v) for v in graph.outputs)


def _upright(to: Matrices, value: Value) -> Value:
    """Return a symmetric matrix for its transpose."""
    inner = transpose_source(value, to.definition)
    return inner if inner is not None and Structure.SYMMETRIC in to.fact(inner) else value


def _factor(to: Matrices, a: Value) -> Value | None:
    """Return the Cholesky factor of a positive definite matrix if it pays, else None."""
    if DEFINITE not in to.fact(a):
        return None
    rows = a.shape[-1]
    large = type(rows) is not int or rows > _MANY
    known = any(to.moved.get(v) is a for v in to.factored)
    return cholesky(a) if large or known else None


def _lower_of(
    value: Value, definition: Callable[[Value], Equation | None], nested: int
) -> Value | None:
    part = lower_part_of(value, definition)
    if part is not None:
        return part
    eqn = definition(value)
    if eqn is None or nested == 0 or eqn.op not in (add, neg):
        return None
    parts = [_lower_of(v, definition, nested - 1) for v in eqn.inputs]
    if all(p is None for p in parts):
        return None
    op: Callable[..., Value] = neg if eqn.op is neg else add
    return op(*(v if p is None else p for v, p in zip(eqn.inputs, parts, strict=True)))


# Diagonals.


def _diagonal(a: Value) -> Value:
    """Return the diagonal of each matrix."""
    *lead, n, _ = a.shape
    flat = reshape(a, shape=(*lead, n * n))
    zeros = (0,) * len(lead)
    return slice_(flat, starts=(*zeros, 0), sizes=(*lead, n), steps=(*(1,) * len(lead), n + 1))


def _embed_diagonal(x: Value) -> Value:
    """Return matrices with the vectors on their diagonals, and zeros elsewhere."""
    *lead, n = x.shape
    flat = filled_constant(0, x.type.with_shape((*lead, n * n)))
    steps = (*(1,) * len(lead), n + 1)
    placed = slice_assign(flat, x, starts=(0,) * (len(lead) + 1), steps=steps)
    return reshape(placed, shape=(*lead, n, n))


def _logs(x: Value) -> Value:
    return reduce_sum(log(x), axes=(len(x.shape) - 1,))


# Rules.


def _drop_assumption(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Drop the declaration, which `facts_of` has read; in debug mode it is checked at run time."""
    return None if debugging.get() else inputs


def _solution(to: Matrices, a: Value, b: Value) -> Value | None:
    """Solve a system by a cheaper method than elimination; None if there is none."""
    a = _upright(to, a)
    fact = to.fact(a)
    if DIAGONAL in fact and type(a.shape[-1]) is int:
        last, diagonal = len(a.shape) - 1, _diagonal(a)
        return _divide_rows(b, diagonal, last)
    large = type(a.shape[-1]) is not int or a.shape[-1] > _MANY
    for triangle, lower in ((Structure.LOWER, True), (Structure.UPPER, False)):
        if triangle in fact and large:
            return _triangular(a, b, lower=lower)
    factor = _factor(to, a)
    if factor is None:
        return None
    first = _triangular(factor, b, lower=True)
    return triangular_solve(factor, first, lower=True, transposed=True, unit=False)


def _divide_rows(b: Value, diagonal: Value, last: int) -> Value:
    from_each = reshape(diagonal, shape=(*diagonal.shape, 1))
    columns = b.shape[-1]
    ones = filled_constant(1, b.type.with_shape((*b.shape[:-2], 1, columns)))
    return b / matmul(from_each, ones)


def _triangular(a: Value, b: Value, *, lower: bool) -> Value:
    return triangular_solve(a, b, lower=lower, transposed=False, unit=False)


def _solve(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    found = _solution(to, *inputs)
    return None if found is None else [found]


def _triangular_solve(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Replace the matrix by a simpler one with the same triangle, as only that is read."""
    a, b = inputs
    part_of = lower_part_of if eqn.kwargs["lower"] else upper_part_of
    part = part_of(a, to.definition)
    return None if part is None else [triangular_solve(part, b, **eqn.kwargs)]


def _slope(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    part = _lower_of(inputs[1], to.definition, _NESTED)
    return None if part is None else [cholesky_slope(inputs[0], part)]


def _inverse(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Invert from a Cholesky factor: the gradient of log det is the inverse."""
    a = _upright(to, inputs[0])
    factor = None if eqn.output in to.inverses else _factor(to, a)
    if factor is None or type(a.shape[-1]) is not int:
        return None
    diagonal = _diagonal(factor)
    return [cholesky_slope(factor, _embed_diagonal(filled_constant(2, diagonal.type) / diagonal))]


def _slogdet(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    a = _upright(to, inputs[0])
    if a.type.is_complex:
        return None
    if to.fact(a) & DIAGONAL:
        diagonal = _diagonal(a)
        signs = reduce_prod(sign(diagonal), axes=(len(diagonal.shape) - 1,))
        return [signs, _logs(abs_(diagonal))]
    factor = _factor(to, a)
    if factor is None:
        return None
    return [filled_constant(1, eqn.outputs[0].type), _logs(_diagonal(factor)) * 2.0]


def _det(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    a = _upright(to, inputs[0])
    factor = a if to.fact(a) & DIAGONAL else _factor(to, a)
    if factor is None:
        return None
    diagonal = _diagonal(factor)
    found = reduce_prod(diagonal, axes=(len(diagonal.shape) - 1,))
    return [found if factor is a else found * found]


def _matmul(to: Matrices, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Solve instead of `inv(a) @ b` and `b @ inv(a)`; solve the thin part of a low-rank factor."""
    if not to.inverses:
        return None
    left, right = eqn.inputs
    if _matrix_of_inverse(to, left) is not None:
        a = _matrix_of_inverse(to, left)
        assert a is not None
        thin = _thin(to, inputs[1])
        if thin is not None:
            return [matmul(_solve_system(to, a, thin[0]), thin[1])]
        return [_solve_system(to, a, inputs[1])]
    a = _matrix_of_inverse(to, right)
    if a is None:
        return None
    thin, turned = _thin(to, inputs[0]), swap_last(a)
    if thin is not None:
        return [matmul(thin[0], swap_last(_solve_system(to, turned, swap_last(thin[1]))))]
    return [swap_last(_solve_system(to, turned, swap_last(inputs[0])))]


def _solve_system(to: Matrices, a: Value, b: Value) -> Value:
    found = _solution(to, a, b)
    return solve(_upright(to, a), b) if found is None else found


def _matrix_of_inverse(to: Matrices, old: Value) -> Value | None:
    """Return the matrix whose inverse an operand of the old graph is, or None."""
    made = to.definition(to.moved[old])
    if made is None:
        return None
    if made.op is inv:
        return made.inputs[0] if _is_free(to, made.output) else None
    if made.op is not permute:
        return None
    inner = transpose_source(made.output, to.definition)
    below = None if inner is None else to.definition(inner)
    if below is None or below.op is not inv or not _is_free(to, below.output):
        return None
    return swap_last(below.inputs[0])


def _is_free(to: Matrices, inverse: Value) -> bool:
    return any(to.moved.get(v) is inverse for v in to.inverses)


def _thin(to: Matrices, value: Value) -> tuple[Value, Value] | None:
    """Return the factors of a low-rank product (inner size below rows and columns), or None."""
    made = to.definition(value)
    if made is None or made.op is not matmul:
        return None
    x, y = made.inputs
    extents = (*x.shape[-2:], y.shape[-1])
    if any(type(n) is not int for n in extents):
        return None
    rows, inner, columns = extents
    return (x, y) if inner < rows and inner < columns else None


MATRIX_RULES: dict[Op, MatrixRule] = {
    assumed: _drop_assumption,
    cholesky_slope: _slope,
    det: _det,
    inv: _inverse,
    matmul: _matmul,
    slogdet: _slogdet,
    solve: _solve,
    triangular_solve: _triangular_solve,
}
