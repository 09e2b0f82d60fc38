"""IR verifier: checks all invariants; its errors print the graph around the fault."""

from __future__ import annotations

from primgraph.errors import InternalError, PrimgraphError
from primgraph.ir.dims import is_open
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.text import lines_around
from primgraph.ir.types import TensorType


@check_arguments
def verify(graph: Graph) -> Graph:
    """Check that each value is bound once and before use, and that types are as inferred.

    The graphs of loops and branches are checked in the same way. Only loops take and return growing
    stacks.

    Returns the graph itself. Raises `InternalError` that names the violated invariant and prints
    the equations around the fault.

    >>> pg.verify(pg.trace(pg.sin, pg.spec(3)))
    <graph sin: (f64[3]) -> (f64[3]), 1 equations>
    """
    bound: set[Value] = set()
    for value in graph.inputs:
        if value in bound:
            raise _fault(graph, None, f"input {value!r} is listed twice")
        bound.add(value)
    inferred: dict[object, tuple[TensorType, ...]] = {}
    for eqn in graph.body:
        for value in eqn.inputs:
            if value not in bound:
                raise _fault(graph, eqn, f"{eqn.op.name} uses {value!r} before it is bound")
        types = tuple([v.type for v in eqn.outputs])
        expected = _infer(graph, eqn, inferred)
        if types != expected:
            found, wanted = (", ".join(map(str, t)) for t in (types, expected))
            raise _fault(graph, eqn, f"{eqn.op.name} has type {found}, its rule says {wanted}")
        for body in eqn.bodies:
            verify_once(body)
        computes = not (eqn.op.has_bodies or eqn.op.formal)
        if computes and any(is_open(v.type.shape) for v in (*eqn.inputs, *eqn.outputs)):
            fault = f"{eqn.op.name} is no loop, and takes or gives a stack that grows"
            raise _fault(graph, eqn, fault)
        for value in eqn.outputs:
            if value in bound:
                raise _fault(graph, eqn, f"{value!r} is bound twice")
            bound.add(value)
    for value in graph.outputs:
        if value not in bound:
            raise _fault(graph, None, f"output {value!r} is not bound")
    return graph


def verify_once(graph: Graph) -> None:
    """Call `verify`, unless the graph was verified before: graphs are immutable."""
    if not graph._verified:
        verify(graph)
        object.__setattr__(graph, "_verified", True)


def _infer(
    graph: Graph, eqn: Equation, known: dict[object, tuple[TensorType, ...]]
) -> tuple[TensorType, ...]:
    types = tuple([v.type for v in eqn.inputs])
    # Equal parameters are usually one object, which the graph keeps alive.
    key = (eqn.op, types, id(eqn.params) if eqn.params else 0)
    if key in known:
        return known[key]
    try:
        result = eqn.op.infer(types, eqn.kwargs)
    except PrimgraphError as error:
        raise _fault(graph, eqn, f"{eqn.op.name} is ill-typed: {error.message}") from error
    known[key] = result
    return result


def _fault(graph: Graph, eqn: Equation | None, fault: str) -> InternalError:
    return InternalError(f"graph {graph.name}: {fault}", origin=lines_around(graph, eqn))
