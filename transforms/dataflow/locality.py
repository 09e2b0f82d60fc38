"""Locality, by index maps: which equations map elements to elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from primgraph.errors import PrimgraphError
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import IndexMap
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.slices import forward_slice
from primgraph.ir.views import View


def view_of(eqn: Equation) -> View | None:
    """Return how the first result is a view of the operand; None if it is none, or the operand."""
    if not isinstance(eqn.op, Primitive) or not eqn.op.is_view:
        return None
    return eqn.op.seen(0, eqn.inputs[0].type, eqn.kwargs)


def repeated_axes(eqn: Equation | None) -> tuple[int, ...]:
    """Return the axes of the result along which an equation repeats its operand, and only that."""
    return () if eqn is None else eqn.repeated_axes


def assignment_of(eqn: Equation | None) -> IndexMap | None:
    """Return the index map of the second operand, if an equation writes it into the first one."""
    if eqn is None or not isinstance(eqn.op, Primitive) or len(eqn.inputs) != 2:
        return None
    if not eqn.op.moves or eqn.op.is_view:
        return None
    whole, part = eqn.dependence(0, 0), eqn.dependence(0, 1)
    written = isinstance(whole, IndexMap) and whole.hole is not None
    return part if written and isinstance(part, IndexMap) else None


def multiplies_sums(op: Op) -> bool:
    """Return whether results are sums of products of elements of the operands."""
    return isinstance(op, Primitive) and op.linear == "each" and not op.elementwise


def is_elementwise(eqn: Equation) -> bool:
    """Return whether each result element has a derivative by the same operand element only.

    This holds for elementwise primitives, and for user functions whose derivative rules consist of
    elementwise equations.
    """
    op = eqn.op
    if not isinstance(op, Primitive):
        return False
    if op.elementwise or op.slopes_rule is None:
        return op.elementwise
    if len({v.shape for v in (*eqn.inputs, *eqn.outputs)}) != 1:
        return False
    with inspect_derivative(eqn) as is_new:
        try:
            return not is_new or all(_keeps_places(g) for g, _, _ in slopes_of(eqn))
        except PrimgraphError:
            # The derivative that needs the rule raises this again.
            return False


# Functions whose derivative rules are being inspected.
_looked_into: ContextVar[frozenset[Any]] = ContextVar("looked_into", default=frozenset())


@contextmanager
def inspect_derivative(eqn: Equation) -> Iterator[bool]:
    """Guard against recursion while inspecting the derivative of `eqn`; yield whether it is new.

    A rule may call its own function; then the rest of the rule decides.
    """
    rule, known = eqn.kwargs.get("rule"), _looked_into.get()
    before = _looked_into.get()
    try:
        _looked_into.set(known | {rule})
        yield rule not in known
    finally:
        _looked_into.set(before)


def is_inspecting() -> bool:
    """Return whether a derivative is being inspected."""
    return bool(_looked_into.get())


def slopes_of(
    eqn: Equation, positions: Sequence[int] | None = None
) -> list[tuple[Graph, Sequence[Value], Sequence[Value]]]:
    """Return derivative graphs of `eqn` along `positions` (default: all), if it has any.

    Each comes with its inputs for the operands, and its inputs for results and seeds.
    """
    assert isinstance(eqn.op, Primitive)
    rule = eqn.op.slopes_rule
    if rule is None:
        return []
    floats = [i for i, v in enumerate(eqn.inputs) if v.type.is_inexact]
    found: list[tuple[Graph, Sequence[Value], Sequence[Value]]] = rule(
        eqn.inputs, floats if positions is None else positions, **eqn.kwargs
    )
    return found


def _keeps_places(graph: Graph) -> bool:
    dependent = forward_slice(graph.body, graph.inputs)
    return all(is_elementwise(e) for e in graph.body if not dependent.isdisjoint(e.inputs))
