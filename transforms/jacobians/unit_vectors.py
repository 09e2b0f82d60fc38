"""Products with the unit vectors of a seed: those with all of them, and outer products with one."""

from __future__ import annotations

from typing import NamedTuple, final

from primgraph.ir.facts.choices import JOINS
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.primitives.linear_algebra.products import CONTRACTS, matmul, transpose_source
from primgraph.primitives.shapes import pad
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.rewrite.views import repeat_axes, reshape_to


def drop_identity_products(graph: Graph, seed: int) -> Graph:
    """Remove products with the input at `seed`, which holds all unit vectors in order.

    The zeros of the identity are structural, as in `strong_zeros`: infinite or NaN factors that
    they would multiply do not reach the result. If the unit vectors are no matrix (arrays of more
    axes), return the graph unchanged.
    """
    shape = graph.inputs[seed].type.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return graph
    unit: set[Value | None] = {graph.inputs[seed]}
    made = {e.outputs[0]: e for e in graph.body}
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if transpose_source(eqn.outputs[0], made.get) in unit:
                unit.add(eqn.output)
            other = _other(eqn.inputs, unit) if eqn.op.fact(CONTRACTS) else None
            if other is not None and other.type == eqn.output.type:
                moved[eqn.output] = moved[other]
            else:
                copy(builder, eqn, moved)
    return dead_code(builder.graph([moved[v] for v in graph.outputs]))


def _other(factors: tuple[Value, ...], unit: set[Value | None]) -> Value | None:
    """Return the factor beside an identity, or None."""
    x, y = factors
    if x in unit:
        return y
    return x if y in unit else None


class _Outer(NamedTuple):
    """A column and a row whose product a value is; the column has parts of a unit vector."""

    column: Value
    row: Value


@final
class _Outers:
    """Copies a graph, and follows outer products with parts of a unit vector."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.builder, self.moved = rebuild(graph)
        self.units = {self.moved[graph.inputs[seed]]}
        self.outers: dict[Value, _Outer] = {}

    def record(self, eqn: Equation) -> None:
        """Record an equation, or an equal one that applies to a factor of an outer product."""
        self.builder.source = eqn.source or NOWHERE
        operands = [self.moved[v] for v in eqn.inputs]
        found = self._product(*operands) if eqn.op.fact(CONTRACTS) else self._padded(eqn, operands)
        if found is None:
            copy(self.builder, eqn, self.moved)
            if eqn.op.is_view and operands[0] in self.units:
                self.units.add(self.moved[eqn.output])
        else:
            self.moved[eqn.output] = found

    def _product(self, x: Value, y: Value) -> Value | None:
        """Return the product of a matrix with an outer product as one with its column or row."""
        if x.type.ndim != 2:
            return None
        if x in self.units and x.shape[1] == 1:
            return self._outer(_Outer(x, y))
        if y in self.outers:
            column, row = self.outers[y]
            return _outer_product(matmul(x, column), row)
        if x in self.outers:
            column, row = self.outers[x]
            return self._outer(_Outer(column, matmul(row, y)))
        return None

    def _padded(self, eqn: Equation, operands: list[Value]) -> Value | None:
        """Return an outer product with rows of structural zeros as one with a longer column."""
        is_padding = eqn.op.fact(JOINS) and eqn.kwargs.keys() == {"low", "high"}
        outer = self.outers.get(operands[0]) if is_padding and eqn.is_derived else None
        if outer is None or eqn.kwargs["low"][1] or eqn.kwargs["high"][1]:
            return None
        column = pad(outer.column, **eqn.kwargs)
        self.units.add(column)
        return self._outer(_Outer(column, outer.row))

    def _outer(self, outer: _Outer) -> Value:
        result = _outer_product(*outer)
        self.outers[result] = outer
        return result


def _outer_product(column: Value, row: Value) -> Value:
    shape = (column.shape[0], row.shape[1])
    columns, rows = reshape_to(column, shape[:1]), reshape_to(row, shape[1:])
    return repeat_axes(columns, shape, [1]) * repeat_axes(rows, shape, [0])


def reads_structural_zeros(graph: Graph) -> bool:
    """Return whether a product of the derivative `graph` reads zeros that others are joined to."""
    joined: set[Value] = set()
    for eqn in graph.body:
        if isinstance(eqn.op, Primitive) and eqn.op.moves and eqn.op.fact(JOINS) and eqn.is_derived:
            joined.update(eqn.outputs)
        elif not joined.isdisjoint(eqn.inputs):
            if eqn.op.fact(CONTRACTS):
                return True
            if eqn.op.is_view:
                joined.update(eqn.outputs)
    return False


def multiply_around_units(graph: Graph, seed: int) -> Graph:
    """Multiply the other factor of outer products with parts of the unit vector at `seed`.

    With `u` of zeros and a one, `x @ (u @ r)` is `(x @ u) @ r`, and `(u @ r) @ y` is `u @ (r @ y)`,
    to the last digit. With all unit vectors as seeds `x @ u` are the columns of `x`, without a
    product.
    """
    if not any(eqn.op.fact(CONTRACTS) for eqn in graph.body):
        return graph
    outers = _Outers(graph, seed)
    with outers.builder:
        for eqn in graph.body:
            outers.record(eqn)
    if not outers.outers:
        return graph
    return dead_code(outers.builder.graph([outers.moved[v] for v in graph.outputs]))
