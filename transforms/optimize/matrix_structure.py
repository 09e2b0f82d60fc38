"""Linear algebra by known structure of matrices: the driver of the rules in `matrices`."""

from __future__ import annotations

from typing import final

from primgraph.ir.facts.matrices import NOTHING, Structure
from primgraph.ir.facts.passes import STRUCTURED
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.matrix_facts import facts_of, facts_of_results
from primgraph.transforms.rewrite.matrices import (
    MATRIX_RULES,
    factored_matrices,
    inverses_in_products,
)


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def structure(graph: Graph) -> Graph:
    """Choose methods of linear algebra by the known structure of matrices.

    Triangular and positive definite systems are solved as such. Determinants are products of the
    diagonal of an available factor. `inv(a) @ b` is solved without an inverse.
    """
    if not any(op.fact(STRUCTURED) for op in graph.ops):
        return graph
    return _Structured(graph).result()


@final
class _Structured:
    """Builder of the new graph, with the known facts about its values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder, self.moved = rebuild(graph)
        self.facts: dict[Value, Structure] = {}
        self.told = facts_of(graph)
        self.inverses = inverses_in_products(graph)
        self.factored = factored_matrices(graph)

    def result(self) -> Graph:
        changed = False
        with self.builder:
            for eqn in self.graph.body:
                changed |= self._add(eqn)
        if not changed:
            return self.graph
        return self.builder.graph([self.moved[v] for v in self.graph.outputs])

    def _add(self, eqn: Equation) -> bool:
        """Record an equation or its replacement; return whether it was replaced."""
        self.builder.source = eqn.source or NOWHERE
        inputs = [self.moved[v] for v in eqn.inputs]
        rule = MATRIX_RULES.get(eqn.op)
        found = None if rule is None else rule(self, eqn, inputs)
        if found is not None:
            self.moved.update(zip(eqn.outputs, found, strict=True))
        elif eqn.op.has_bodies:
            other = map_bodies(eqn, structure)
            copy(self.builder, other, self.moved)
            return other is not eqn
        else:
            copy(self.builder, eqn, self.moved)
        for value in eqn.outputs:
            fact = self.told.get(value, NOTHING)
            if fact:
                new = self.moved[value]
                self.facts[new] = self.facts.get(new, NOTHING) | fact
        return found is not None

    def definition(self, value: Value) -> Equation | None:
        return self.builder.definition(value)

    def fact(self, value: Value) -> Structure:
        """Return the facts about a value, including values that a rule has just recorded."""
        if value in self.facts:
            return self.facts[value]
        eqn = self.definition(value)
        found = {} if eqn is None else facts_of_results(eqn, self.facts, self.definition)
        return found.get(value, NOTHING)
