"""Partial evaluation of branches and loops: separate results that depend on linear values."""

from __future__ import annotations

from collections.abc import Collection

from primgraph.errors import MissingRuleError
from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import NOWHERE, copy, origin_lines, rebuild, require_primitive


def separate_linear(graph: Graph, linear: Collection[Value]) -> Graph:
    """Rewrite `graph` so that all or no results of each equation depend on `linear`.

    Only equations with bodies need this: in others, one linear operand makes all results linear.
    """
    builder, moved = rebuild(graph)
    depending, seen = set(linear), 0
    with builder:
        for eqn in graph.body:
            inputs = [moved[v] for v in eqn.inputs]
            rule = require_primitive(eqn).separate_rule
            if rule is None or depending.isdisjoint(inputs):
                copy(builder, eqn, moved)
            else:
                builder.source = eqn.source or NOWHERE
                flags = tuple([v in depending for v in inputs])
                try:
                    results = rule(flags, *inputs, **eqn.kwargs)
                except MissingRuleError as error:
                    raise error.located(origin_lines(eqn)) from None
                moved.update(zip(eqn.outputs, results, strict=True))
            for made in builder.body[seen:]:
                if not depending.isdisjoint(made.inputs):
                    depending.update(made.outputs)
            seen = len(builder.body)
    return builder.graph([moved[v] for v in graph.outputs])
