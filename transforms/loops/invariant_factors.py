"""Factor matrices of linear systems before the loops that solve with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.types import FLOAT32, FLOAT64
from primgraph.ir.views import Permute
from primgraph.primitives.control import Flow, flow_of
from primgraph.primitives.linear_algebra.matrix_functions import lu
from primgraph.primitives.linear_algebra.systems import SOLVES, triangular_solve
from primgraph.primitives.shapes import broadcast
from primgraph.primitives.sorting import reorder, reorder_back
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.locality import view_of
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.optimize.loop_parts import Loop
from primgraph.transforms.optimize.simplify_loops import tidy_bodies

# Fewer rows take no longer to eliminate than a call, and fewer trips repay no factors.
_LEAST_ROWS, _LEAST_TRIPS = 4, 4


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def factor_invariant_matrices(graph: Graph) -> Graph:
    """Solve by triangular factors in loops that do not change the matrix.

    The factors of a matrix, with pivots, are computed once before the loops, also for systems with
    its transpose, as in a transposed loop. Results may round differently. Matrices of complex
    numbers and graphs with symbolic sizes are left alone.
    """
    if not graph.has_bodies or graph.sizes:
        return graph
    builder, moved = rebuild(graph)
    factors = _Factors(builder)
    with builder:
        for eqn in graph.body:
            plain = map_bodies(eqn, factor_invariant_matrices)
            if flow_of(eqn) in (Flow.ROWS, Flow.TEST):
                inputs = tuple([moved[v] for v in plain.inputs])
                plain = Equation(plain.op, inputs, plain.params, plain.outputs, plain.source)
                plain = _factored_before(Loop.from_equation(plain), factors)
                moved.update(zip(plain.inputs, plain.inputs, strict=True))
            copy(builder, plain, moved)
    if not factors.found:
        return graph
    return tidy_bodies(builder.graph([moved[v] for v in graph.outputs]), dead_code)


@final
class _Factors:
    """The factors of matrices in a graph, each computed once."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._made: dict[Value, Equation] = {}
        self._seen = 0
        self._known: dict[Value, tuple[Value, ...]] = {}

    @property
    def found(self) -> bool:
        return bool(self._known)

    def of_root(self, matrix: Value) -> tuple[tuple[Value, ...], bool]:
        """Return order and triangles for a matrix or its transpose, and whether it is that."""
        body = self._builder.body
        for eqn in body[self._seen :]:
            self._made.update((v, eqn) for v in eqn.outputs)
        self._seen = len(body)
        root, turned = _untransposed(matrix, self._made)
        if root not in self._known:
            self._builder.source = NOWHERE
            self._known[root] = self._builder.emit(lu, [root], {})
        return self._known[root], turned


def _untransposed(matrix: Value, made: Mapping[Value, Equation]) -> tuple[Value, bool]:
    """Return the matrix of which this is a transpose of transposes, and whether it is turned."""
    turned = False
    rank = len(matrix.shape)
    swapped = Permute((*range(rank - 2), rank - 1, rank - 2))
    while (eqn := made.get(matrix)) is not None and view_of(eqn) == swapped:
        matrix, turned = eqn.inputs[0], not turned
    return matrix, turned


def _factored_before(loop: Loop, factors: _Factors) -> Equation:
    """Return the loop with factors as constants, if its body solves with constant matrices."""
    length = dict(loop.rest).get("length")
    if type(length) is int and length < _LEAST_TRIPS:
        return loop.eqn
    outer = dict(zip(loop.inputs[0], loop.consts, strict=True))
    made = {v: e for e in loop.body.body for v in e.outputs}
    roots = {e: _untransposed(e.inputs[0], made) for e in loop.body.body if _is_worth(e)}
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
            values, also = factors.of_root(outer[root])
            for value in values:
                if value not in inner:
                    inner[value] = builder.input(value.type)
            builder.source = eqn.source or NOWHERE
            parts = [inner[v] for v in values]
            moved[eqn.output] = _solution(parts, moved[eqn.inputs[1]], turned != also)
    outputs = [moved[v] for v in loop.body.outputs]
    body = Graph(loop.body.inputs, builder.body, outputs, loop.body.name)
    return replace(loop, body=body).with_operands([*consts, *inner.items()]).equation()


def _is_worth(eqn: Equation) -> bool:
    if not eqn.op.fact(SOLVES) or len(eqn.inputs) != 2:
        return False
    matrix = eqn.inputs[0]
    return matrix.dtype in (FLOAT32, FLOAT64) and matrix.shape[-1] >= _LEAST_ROWS


def _solution(factors: Sequence[Value], b: Value, transposed: bool) -> Value:
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
