"""Structured linear algebra: choose methods by known structure of matrices and by factors at hand.

Results are equal in exact arithmetic, with errors of the size of LAPACK's methods. The last bits
differ, as they may between versions of LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

from primgraph.base.debug_mode import debugging
from primgraph.ir.facts.matrices import DEFINITE, DIAGONAL, NOTHING, Structure
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.primitive import Op
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.primitives.constants import filled
from primgraph.primitives.elementwise import abs_, add, log, neg, sign
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.linear_algebra.products import matmul, swap_last
from primgraph.primitives.linear_algebra.structure import (
    lower_part_of,
    transposed,
    upper_part_of,
)
from primgraph.primitives.linear_algebra.systems import (
    cholesky,
    cholesky_slope,
    det,
    inv,
    slogdet,
    solve,
    triangular_solve,
)
from primgraph.primitives.reductions import reduce_prod, reduce_sum
from primgraph.primitives.shapes import permute, reshape, slice_, slice_assign
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.matrix_facts import facts_of, facts_of_results

# Minimum number of rows at which solves with triangular and Cholesky factors are faster than
# elimination (NumPy has no solvers for them).
_MANY = 64
# Maximum nesting of values that are inspected.
_NESTED = 4

_CHANGED: frozenset[Op] = frozenset(
    {assumed, cholesky_slope, det, inv, matmul, slogdet, solve, triangular_solve}
)
_MEANT: frozenset[Op] = _CHANGED - {matmul} | {cholesky}


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def structure(graph: Graph) -> Graph:
    """Choose methods of linear algebra by the known structure of matrices.

    Triangular and positive definite systems are solved as such. Determinants are products of the
    diagonal of an available factor. `inv(a) @ b` is solved without an inverse.
    """
    if not any(e.op in _MEANT or e.op.has_bodies for e in graph.body):
        return graph
    return _Structured(graph).result()


_Rule: TypeAlias = "Callable[[_Structured, Equation, list[Value]], Sequence[Value] | None]"


@final
class _Structured:
    """Builder of the new graph, with the known facts about its values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder, self.moved = rebuild(graph)
        self.facts: dict[Value, Structure] = {}
        self.told = facts_of(graph)
        self.product_only = _read_in_products_only(graph)
        self.factored = {e.inputs[0] for e in graph.body if e.op is cholesky}

    def result(self) -> Graph:
        changed = False
        with self.builder:
            for eqn in self.graph.body:
                changed |= self._add(eqn)
        if not changed:
            return self.graph
        return self.builder.graph([self.moved[v] for v in self.graph.outputs])

    def _add(self, eqn: Equation) -> bool:
        """Record an equation or its replacement; return whether it was replaced."""
        self.builder.source = eqn.source or NOWHERE
        inputs = [self.moved[v] for v in eqn.inputs]
        rule = _RULES.get(eqn.op)
        found = None if rule is None else rule(self, eqn, inputs)
        if found is not None:
            self.moved.update(zip(eqn.outputs, found, strict=True))
        elif eqn.op.has_bodies:
            other = map_bodies(eqn, structure)
            copy(self.builder, other, self.moved)
            return other is not eqn
        else:
            copy(self.builder, eqn, self.moved)
        for value in eqn.outputs:
            fact = self.told.get(value, NOTHING)
            if fact:
                new = self.moved[value]
                self.facts[new] = self.facts.get(new, NOTHING) | fact
        return found is not None

    def definition(self, value: Value) -> Equation | None:
        return self.builder.definition(value)

    def fact(self, value: Value) -> Structure:
        """Return the facts about a value, including values that a rule has just recorded."""
        if value in self.facts:
            return self.facts[value]
        eqn = self.definition(value)
        found = {} if eqn is None else facts_of_results(eqn, self.facts, self.definition)
        return found.get(value, NOTHING)

    def upright(self, value: Value) -> Value:
        """Return a symmetric matrix for its transpose."""
        inner = transposed(value, self.definition)
        return inner if inner is not None and Structure.SYMMETRIC in self.fact(inner) else value

    def factor(self, a: Value) -> Value | None:
        """Return the Cholesky factor of a positive definite matrix if it pays, else None."""
        if DEFINITE not in self.fact(a):
            return None
        rows = a.shape[-1]
        large = type(rows) is not int or rows > _MANY
        known = any(self.moved.get(v) is a for v in self.factored)
        return cholesky(a) if large or known else None

    def triangle(self, value: Value) -> Value | None:
        """Return a simpler matrix with the same lower triangle; None if there is none."""
        return _lower_of(value, self.definition, _NESTED)


def _read_in_products_only(graph: Graph) -> set[Value]:
    """Return the inverses that only matrix products read, transposed or not."""
    inverses = {e.output for e in graph.body if e.op is inv}
    if not inverses:
        return inverses
    turned = {
        e.output: e.inputs[0]
        for e in graph.body
        if e.op is permute and e.inputs[0] in inverses and transposed(e.output, {e.output: e}.get)
    }
    for eqn in graph.body:
        if eqn.op is not matmul and eqn.output not in turned:
            inverses.difference_update(turned.get(v, v) for v in eqn.inputs)
    return inverses.difference(turned.get(v, v) for v in graph.outputs)


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


def _on_diagonal(x: Value) -> Value:
    """Return matrices with the vectors on their diagonals, and zeros elsewhere."""
    *lead, n = x.shape
    flat = filled(0, x.type.with_shape((*lead, n * n)))
    steps = (*(1,) * len(lead), n + 1)
    placed = slice_assign(flat, x, starts=(0,) * (len(lead) + 1), steps=steps)
    return reshape(placed, shape=(*lead, n, n))


def _logs(x: Value) -> Value:
    return reduce_sum(log(x), axes=(len(x.shape) - 1,))


# Rules.


def _assumed(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Drop the declaration, which `facts_of` has read; in debug mode it is checked at run time."""
    return None if debugging.get() else inputs


def _solution(to: _Structured, a: Value, b: Value) -> Value | None:
    """Solve a system by a cheaper method than elimination; None if there is none."""
    a = to.upright(a)
    fact = to.fact(a)
    if DIAGONAL in fact and type(a.shape[-1]) is int:
        last, diagonal = len(a.shape) - 1, _diagonal(a)
        return _by_rows(b, diagonal, last)
    large = type(a.shape[-1]) is not int or a.shape[-1] > _MANY
    for triangle, lower in ((Structure.LOWER, True), (Structure.UPPER, False)):
        if triangle in fact and large:
            return _triangular(a, b, lower=lower)
    factor = to.factor(a)
    if factor is None:
        return None
    first = _triangular(factor, b, lower=True)
    return triangular_solve(factor, first, lower=True, transposed=True, unit=False)


def _by_rows(b: Value, diagonal: Value, last: int) -> Value:
    from_each = reshape(diagonal, shape=(*diagonal.shape, 1))
    columns = b.shape[-1]
    ones = filled(1, b.type.with_shape((*b.shape[:-2], 1, columns)))
    return b / matmul(from_each, ones)


def _triangular(a: Value, b: Value, *, lower: bool) -> Value:
    return triangular_solve(a, b, lower=lower, transposed=False, unit=False)


def _solve(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    found = _solution(to, *inputs)
    return None if found is None else [found]


def _triangular_solve(
    to: _Structured, eqn: Equation, inputs: list[Value]
) -> Sequence[Value] | None:
    """Replace the matrix by a simpler one with the same triangle, as only that is read."""
    a, b = inputs
    part_of = lower_part_of if eqn.kwargs["lower"] else upper_part_of
    part = part_of(a, to.definition)
    return None if part is None else [triangular_solve(part, b, **eqn.kwargs)]


def _slope(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    part = to.triangle(inputs[1])
    return None if part is None else [cholesky_slope(inputs[0], part)]


def _inverse(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Invert from a Cholesky factor: the gradient of log det is the inverse."""
    a = to.upright(inputs[0])
    factor = None if eqn.output in to.product_only else to.factor(a)
    if factor is None or type(a.shape[-1]) is not int:
        return None
    diagonal = _diagonal(factor)
    return [cholesky_slope(factor, _on_diagonal(filled(2, diagonal.type) / diagonal))]


def _slogdet(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    a = to.upright(inputs[0])
    if a.type.is_complex:
        return None
    if to.fact(a) & DIAGONAL:
        diagonal = _diagonal(a)
        signs = reduce_prod(sign(diagonal), axes=(len(diagonal.shape) - 1,))
        return [signs, _logs(abs_(diagonal))]
    factor = to.factor(a)
    if factor is None:
        return None
    return [filled(1, eqn.outputs[0].type), _logs(_diagonal(factor)) * 2.0]


def _det(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    a = to.upright(inputs[0])
    factor = a if to.fact(a) & DIAGONAL else to.factor(a)
    if factor is None:
        return None
    diagonal = _diagonal(factor)
    found = reduce_prod(diagonal, axes=(len(diagonal.shape) - 1,))
    return [found if factor is a else found * found]


def _matmul(to: _Structured, eqn: Equation, inputs: list[Value]) -> Sequence[Value] | None:
    """Solve instead of `inv(a) @ b` and `b @ inv(a)`; solve the thin part of a low-rank factor."""
    if not to.product_only:
        return None
    left, right = eqn.inputs
    if _inverted(to, left) is not None:
        a = _inverted(to, left)
        assert a is not None
        thin = _thin(to, inputs[1])
        if thin is not None:
            return [matmul(_solved(to, a, thin[0]), thin[1])]
        return [_solved(to, a, inputs[1])]
    a = _inverted(to, right)
    if a is None:
        return None
    thin, turned = _thin(to, inputs[0]), swap_last(a)
    if thin is not None:
        return [matmul(thin[0], swap_last(_solved(to, turned, swap_last(thin[1]))))]
    return [swap_last(_solved(to, turned, swap_last(inputs[0])))]


def _solved(to: _Structured, a: Value, b: Value) -> Value:
    found = _solution(to, a, b)
    return solve(to.upright(a), b) if found is None else found


def _inverted(to: _Structured, old: Value) -> Value | None:
    """Return the matrix whose inverse an operand of the old graph is, or None."""
    made = to.definition(to.moved[old])
    if made is None:
        return None
    if made.op is inv:
        return made.inputs[0] if _is_free(to, made.output) else None
    if made.op is not permute:
        return None
    inner = transposed(made.output, to.definition)
    below = None if inner is None else to.definition(inner)
    if below is None or below.op is not inv or not _is_free(to, below.output):
        return None
    return swap_last(below.inputs[0])


def _is_free(to: _Structured, inverse: Value) -> bool:
    return any(to.moved.get(v) is inverse for v in to.product_only)


def _thin(to: _Structured, value: Value) -> tuple[Value, Value] | None:
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


_RULES: dict[Op, _Rule] = {
    assumed: _assumed,
    cholesky_slope: _slope,
    det: _det,
    inv: _inverse,
    matmul: _matmul,
    slogdet: _slogdet,
    solve: _solve,
    triangular_solve: _triangular_solve,
}
