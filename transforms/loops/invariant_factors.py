"""Factor matrices of linear systems before the loops that solve with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import typical
from primgraph.ir.facts.passes import SOLVES
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.types import FLOAT32, FLOAT64
from primgraph.ir.views import Permute
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import Flow, flow_of
from primgraph.primitives.elementwise import add, mul
from primgraph.primitives.linear_algebra.matrix_functions import lu
from primgraph.primitives.linear_algebra.products import matmul, swap_last
from primgraph.primitives.linear_algebra.spectra import qr
from primgraph.primitives.linear_algebra.systems import inv, slogdet, triangular_solve
from primgraph.primitives.linear_algebra.ties import unless_any
from primgraph.primitives.linear_algebra.triangles import adjoint, conjugate
from primgraph.primitives.logic import equal
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast
from primgraph.primitives.sorting import reorder, reorder_back
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.locality import view_of
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.optimize.loop_invariants import surely_runs
from primgraph.transforms.optimize.loop_parts import Loop
from primgraph.transforms.optimize.simplify_loops import tidy_bodies

# Fewer rows take no longer to eliminate than a call, and fewer trips repay no factors.
_LEAST_ROWS, _LEAST_TRIPS = 4, 4
# Orthogonal factors repay if the matrix has this many times the columns of the right-hand side, or
# if that has at most `_FEW_NUMBERS`, as products of small arrays cost no more than a call.
_ROWS_A_COLUMN, _FEW_NUMBERS = 2, 256


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def factor_invariant_matrices(graph: Graph, by_lu: bool = True) -> Graph:
    """Solve with factors of matrices that loops do not change, computed once before the loops.

    The factors are triangular, with pivots. For complex numbers, and without `by_lu`, for targets
    whose triangular solve is no faster than an elimination, they are an orthogonal matrix and the
    inverse of a triangular one. A solution is a product with both, whose residual is hardly larger
    than that of an elimination, as an inverse of the whole matrix would make it. Systems with the
    transpose, as in a transposed loop, share the factors. Results may round differently, and are
    NaN where a right-hand side or an inverse is infinite.
    """
    if not graph.has_bodies:
        return graph
    builder, moved = rebuild(graph)
    factors = _Factors(builder, by_lu)
    with builder:
        for eqn in graph.body:
            plain = map_bodies(eqn, lambda body: factor_invariant_matrices(body, by_lu))
            if flow_of(eqn) in (Flow.ROWS, Flow.TEST):
                inputs = tuple([moved[v] for v in plain.inputs])
                plain = Equation(plain.op, inputs, plain.params, plain.outputs, plain.source)
                plain = _factored_before(Loop.from_equation(plain), factors)
                moved.update(zip(plain.inputs, plain.inputs, strict=True))
            factors.found |= plain is not eqn and plain.bodies != eqn.bodies
            copy(builder, plain, moved)
    if not factors.found:
        return graph
    return tidy_bodies(builder.graph([moved[v] for v in graph.outputs]), dead_code)


@final
class _Factors:
    """The factors of matrices in a graph, each computed once."""

    def __init__(self, builder: Builder, by_lu: bool) -> None:
        self._builder = builder
        self.by_lu = by_lu
        self.found = False
        self._made: dict[Value, Equation] = {}
        self._seen = 0
        self._known: dict[Value, tuple[Value, ...]] = {}

    def of_root(self, matrix: Value, eqn: Equation) -> tuple[tuple[Value, ...], bool]:
        """Return factors of a matrix or its transpose for `eqn`, and whether it is transposed."""
        body = self._builder.body
        for eqn in body[self._seen :]:
            self._made.update((v, eqn) for v in eqn.outputs)
        self._seen = len(body)
        root, turned = _untransposed(matrix, self._made)
        if root not in self._known:
            self._builder.source = eqn.source or NOWHERE
            self._known[root] = self.factors(self._builder, root)
        return self._known[root], turned

    def factors(self, builder: Builder, root: Value) -> tuple[Value, ...]:
        """Record the factors of a matrix: order and triangles, or `q` and the inverse of `r`."""
        with builder:
            if self.has_lu(root):
                return lu(root)
            q, r = qr(root, complete=False)
            sign, _ = slogdet(root)
            axes = (len(r.shape) - 2, len(r.shape) - 1)
            bad = broadcast(equal(sign, zeros_like(sign)), shape=r.shape, new_axes=axes)
            r = unless_any(r, bad, message="Singular matrix")
            return q, inv(_with_nan_everywhere(r) if r.dtype.kind == "c" else r)

    def solution(self, factors: Sequence[Value], b: Value, transposed: bool) -> Value:
        """Record the solution for a right-hand side."""
        if len(factors) == 3:
            return _solution_by_lu(factors, b, transposed)
        q, inverse = factors
        if transposed:
            return matmul(conjugate(q), matmul(swap_last(inverse), b))
        return matmul(inverse, matmul(adjoint(q), b))

    def has_lu(self, matrix: Value) -> bool:
        """Return whether the factors of a matrix are triangular; computing these never raises."""
        return self.by_lu and matrix.dtype in (FLOAT32, FLOAT64)

    def is_worth(self, eqn: Equation) -> bool:
        """Return whether factors repay for an equation in a loop."""
        if not eqn.op.fact(SOLVES) or len(eqn.inputs) != 2:
            return False
        rows, columns = map(typical, eqn.inputs[1].shape[-2:])
        if rows < _LEAST_ROWS or self.has_lu(eqn.inputs[0]):
            return rows >= _LEAST_ROWS
        return rows >= _ROWS_A_COLUMN * columns or rows * columns <= _FEW_NUMBERS


def _untransposed(matrix: Value, made: Mapping[Value, Equation]) -> tuple[Value, bool]:
    """Return the matrix of which this is a transpose of transposes, and whether it is turned."""
    turned = False
    rank = len(matrix.shape)
    swapped = Permute((*range(rank - 2), rank - 1, rank - 2))
    while (eqn := made.get(matrix)) is not None and view_of(eqn) == swapped:
        matrix, turned = eqn.inputs[0], not turned
    return matrix, turned


def _with_nan_everywhere(r: Value) -> Value:
    """Return triangles that are NaN as a whole if they have a NaN.

    LAPACK may call a complex triangle singular if it has NaNs and zeros.
    """
    axes = (len(r.shape) - 2, len(r.shape) - 1)
    nothing = reduce_sum(mul(r, zeros_like(r)), axes=axes)
    return add(r, broadcast(nothing, shape=r.shape, new_axes=axes))


def _factored_before(loop: Loop, factors: _Factors) -> Equation:
    """Return the loop with factors as constants, if its body solves with constant matrices."""
    length = dict(loop.rest).get("length")
    if type(length) is int and length < _LEAST_TRIPS:
        return loop.eqn
    outer = dict(zip(loop.inputs[0], loop.consts, strict=True))
    made = {v: e for e in loop.body.body for v in e.outputs}
    roots = {e: _untransposed(e.inputs[0], made) for e in loop.body.body if factors.is_worth(e)}
    roots = {e: root for e, root in roots.items() if root[0] in outer}
    if not roots:
        return loop.eqn
    builder, moved = rebuild(loop.body)
    consts = list(zip(loop.consts, loop.inputs[0], strict=True))
    inner: dict[Value, Value] = {}
    with builder:
        for eqn in loop.body.body:
            if eqn not in roots:
                copy(builder, eqn, moved)
                continue
            root, turned = roots[eqn]
            builder.source = eqn.source or NOWHERE
            if surely_runs(loop) or factors.has_lu(root):
                found, also = factors.of_root(outer[root], eqn)
                for value in found:
                    if value not in inner:
                        inner[value] = builder.input(value.type)
                parts = tuple([inner[v] for v in found])
            else:
                # Hoisting guards an inverse, which may raise.
                parts, also = factors.factors(builder, moved[root]), False
            moved[eqn.output] = factors.solution(parts, moved[eqn.inputs[1]], turned != also)
    factors.found = True
    outputs = [moved[v] for v in loop.body.outputs]
    body = Graph(loop.body.inputs, builder.body, outputs, loop.body.name)
    return replace(loop, body=body).with_operands([*consts, *inner.items()]).equation()


def _solution_by_lu(factors: Sequence[Value], b: Value, transposed: bool) -> Value:
    """Return the solution of `a @ x = b` by `a[order] = lower @ upper`, or with `a.T`."""
    order, lower, upper = factors
    last = len(b.shape) - 1
    rows = broadcast(order, shape=b.shape, new_axes=(last,))
    found: Value
    if transposed:
        y = triangular_solve(upper, b, lower=False, transposed=True, unit=False)
        z = triangular_solve(lower, y, lower=True, transposed=True, unit=True)
        found = reorder_back(z, rows, axis=last - 1)
    else:
        y = triangular_solve(lower, reorder(b, rows, axis=last - 1), lower=True, transposed=False,
                             unit=True)  # fmt: skip
        found = triangular_solve(upper, y, lower=False, transposed=False, unit=False)
    return found
