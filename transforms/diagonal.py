"""Tells programs whose Jacobian is diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.parts import conj
from primgraph.transforms.analysis.activity import depending


def is_diagonal(graph: Graph, wrt: Sequence[Value]) -> bool:
    """Whether each element of each output depends on the same element of `wrt` only.

    That is so if all that lies between is elementwise and of one type. The Jacobian is then its
    own transpose, and reverse mode can be had by forward mode.
    """
    kind = wrt[0].type
    if any(v.type != kind for v in (*wrt, *graph.outputs)):
        return False
    active = depending(graph, wrt)
    for eqn in graph.body:
        if active.isdisjoint(eqn.inputs) or active.isdisjoint(eqn.outputs):
            continue
        each = isinstance(eqn.op, Primitive) and eqn.op.elementwise
        # Conjugation is no product with any number.
        if eqn.op is conj:
            return False
        if not each and (eqn.op.own_slope or not eqn.op.formal):
            return False
        if eqn.outputs[0].type != kind:
            return False
    return True
