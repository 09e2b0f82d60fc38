"""Which elements of results belong to which elements of operands, by what derivatives do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import forward_slice


def is_elementwise(eqn: Equation) -> bool:
    """Whether the derivative goes from each element of operands to the same one of results.

    So it does for elementwise primitives, and for functions of the user's whose rules consist of
    such.
    """
    op = eqn.op
    if not isinstance(op, Primitive):
        return False
    if op.elementwise or op.slopes_rule is None:
        return op.elementwise
    if len({v.shape for v in (*eqn.inputs, *eqn.outputs)}) != 1:
        return False
    with looking_into(eqn) as is_new:
        return not is_new or all(_keeps_places(g) for g, _, _ in slopes_of(eqn))


# The functions whose rules are looked into.
_looked_into: ContextVar[frozenset[Any]] = ContextVar("looked_into", default=frozenset())


@contextmanager
def looking_into(eqn: Equation) -> Iterator[bool]:
    """A context for looking into the derivative of `eqn`, and whether that does not go on already.

    A rule may call the function that it is of; then all depends on the rest of it.
    """
    rule, known = eqn.kwargs.get("rule"), _looked_into.get()
    before = _looked_into.get()
    try:
        _looked_into.set(known | {rule})
        yield rule not in known
    finally:
        _looked_into.set(before)


def slopes_of(
    eqn: Equation, positions: Sequence[int] | None = None
) -> list[tuple[Graph, Sequence[Value], Sequence[Value]]]:
    """Graphs of the derivative of `eqn` along these operands, or all, where parameters have it.

    Beside each are its inputs that stand for the operands, and for results and seeds.
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
