"""Residuals where they matter: elsewhere ones, which no derivative of higher order can spoil.

What a `select` of a body throws away may be infinite or NaN, and so may its slopes. The linear part
does not mind, as it is guarded itself. But the loop keeps them, and derivatives of what is kept go
back through what has computed it: by zeros, which nobody knows any more to be such.
"""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.ir.types import BOOL
from primgraph.primitives.constants import full
from primgraph.primitives.logic import logical_not, select
from primgraph.transforms.dataflow.activity import depending
from primgraph.transforms.dataflow.masks.guards import CHOOSING
from primgraph.transforms.dataflow.masks.masks import guards_at
from primgraph.transforms.loops.residuals import Residuals


def guarded(
    graph: Graph, parts: Residuals, ends: Sequence[Value]
) -> tuple[list[Equation], dict[Value, Value]]:
    """Equations behind those of `graph`, and what they give in the place of values to be kept.

    Only to where these matter to the linear results `ends` they are what they were.
    """
    body = backward_slice(graph.body, ends)
    kept = {e.output for e in body if len(e.outputs) == 1}.intersection(parts.kept)
    if not any(v.type.is_inexact for v in kept) or not any(e.op in CHOOSING for e in body):
        return [], {}
    sources = [v for v in graph.inputs if v.type.is_inexact]
    part = Graph(graph.inputs, body, ends, graph.name)
    held, made = guards_at(part, depending(part, sources), sources, kept)
    linear = forward_slice(made, parts.linear)
    found: list[Equation] = []
    moved: dict[Value, Value] = {}
    for value in parts.kept:
        for guard in held.get(value, ()):
            if guard.condition in linear or guard.condition.type.dtype != BOOL:
                continue
            condition = guard.condition
            if not guard.side:
                condition = Value(condition.type)
                found.append(Equation(logical_not, (guard.condition,), (), (condition,)))
            one, result = Value(value.type), Value(value.type)
            params = [("value", 1.0), ("shape", value.shape), ("dtype", value.dtype)]
            found.append(Equation(full, (), freeze_all(params), (one,)))
            inputs = (condition, moved.get(value, value), one)
            found.append(Equation(select, inputs, (), (result,)))
            moved[value] = result
    # What else is told of conditions is not computed: those of stacks that grow cannot be.
    conditions = backward_slice(made, [v for e in found for v in e.inputs])
    return [*conditions, *found], moved
