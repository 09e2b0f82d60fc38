"""Takes branches and loops apart, into what is linear in some values and what is not."""

from __future__ import annotations

from collections.abc import Collection

from primgraph.errors import MissingRuleError
from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import NOWHERE, copy, rebuild, require_primitive, written


def separated(graph: Graph, linear: Collection[Value]) -> Graph:
    """The same graph, of which each equation gives only what depends on `linear`, or nothing.

    Other equations than those with bodies are so already: where one operand is linear, all
    results are.
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
                    raise error.located(written(eqn)) from None
                moved.update(zip(eqn.outputs, results, strict=True))
            for made in builder.body[seen:]:
                if not depending.isdisjoint(made.inputs):
                    depending.update(made.outputs)
            seen = len(builder.body)
    return builder.graph([moved[v] for v in graph.outputs])
