"""Guarded residuals: replaced by ones where they do not matter.

Values that a `select` in a body discards may be infinite or NaN, and so may their derivatives. The
linear part is masked itself. But the loop stores the residuals, and second derivatives
differentiate through their computation: with zeros that are no longer known to be structural.
"""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.facts.choices import CHOICE
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.ir.types import BOOL
from primgraph.primitives.constants import full
from primgraph.primitives.logic import logical_not, select
from primgraph.transforms.dataflow.activity import dependent_values
from primgraph.transforms.dataflow.masks.masks import guards_at
from primgraph.transforms.loops.residuals import Residuals


def guard_residuals(
    graph: Graph, parts: Residuals, ends: Sequence[Value]
) -> tuple[list[Equation], dict[Value, Value]]:
    """Return equations to append to `graph`, and the replacements of residuals.

    A replacement equals the residual where this matters to the linear results `ends`.
    """
    body = backward_slice(graph.body, ends)
    kept = {e.output for e in body if len(e.outputs) == 1}.intersection(parts.kept)
    if not any(v.type.is_inexact for v in kept) or not any(e.op.fact(CHOICE) for e in body):
        return [], {}
    sources = [v for v in graph.inputs if v.type.is_inexact]
    part = Graph(graph.inputs, body, ends, graph.name)
    held, made = guards_at(part, dependent_values(part, sources), sources, kept)
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
    # Only the conditions used are computed; conditions on growing stacks cannot be.
    conditions = backward_slice(made, [v for e in found for v in e.inputs])
    return [*conditions, *found], moved
