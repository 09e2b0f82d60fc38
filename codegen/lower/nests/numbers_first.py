"""Order of equations for loops: numbers that only depend on inputs are computed first.

A nest over an array is closed by a nest over one element in the middle of it, if later steps read
both: values that the first nest computes are stored, and read again.
"""

from __future__ import annotations

from primgraph.ir.graph import Equation, Graph, Value


def compute_numbers_first(graph: Graph) -> Graph:
    """Return `graph` with equations of single elements before all others, as far as possible."""
    known: set[Value] = set(graph.inputs)
    early, late = list[Equation](), list[Equation]()
    for eqn in graph.body:
        if _is_number(eqn) and known.issuperset(eqn.inputs):
            early.append(eqn)
            known.update(eqn.outputs)
        else:
            late.append(eqn)
    if not early or graph.body[: len(early)] == tuple(early):
        return graph
    return Graph(graph.inputs, (*early, *late), graph.outputs, graph.name)


def _is_number(eqn: Equation) -> bool:
    """Return whether an equation computes, or sees, single elements of arrays or numbers."""
    op = eqn.op
    if not (op.elementwise or op.is_view or op.literal):
        return False
    return all(type(n) is int and n == 1 for v in eqn.outputs for n in v.shape)
