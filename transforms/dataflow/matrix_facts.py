"""Structure of matrices (triangular, symmetric, positive definite), and signs of numbers.

Facts are declared by `assume`, or follow from the equation of a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TypeAlias, final

from primgraph.ir.facts.matrices import (
    ALWAYS,
    DIAGONAL,
    NOT_NEGATIVE,
    NOTHING,
    POSITIVE,
    SHAPES,
    STRUCTURE,
    Definition,
    Structure,
)
from primgraph.ir.facts.ranges import SAME
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import Index, IndexMap, RowMajor, variables_of
from primgraph.ir.primitive import Primitive
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow

Known: TypeAlias = Mapping[Value, Structure]


@final
class _Structures(Analysis[Structure]):
    """Structure of all values of a graph; None for values of which nothing is known."""

    __slots__ = ()

    dense = True

    def visit(
        self, eqn: Equation, given: Facts[Structure], flow: Flow[Structure]
    ) -> list[Structure | None]:
        return self.transfer(eqn, given, flow)

    def transfer(
        self, eqn: Equation, given: Facts[Structure], flow: Flow[Structure]
    ) -> list[Structure | None]:
        found = facts_of_results(eqn, flow.facts, flow.definition)
        same: bool = eqn.op.fact(SAME)
        if found and same and eqn.inputs[0].type == eqn.output.type:
            flow.facts[eqn.inputs[0]] = found[eqn.output]
        return [found.get(v) for v in eqn.outputs]


def facts_of(graph: Graph) -> dict[Value, Structure]:
    """Return the known facts of each value of a graph; values without facts are left out."""
    return _Structures().run(graph, {}).facts


def facts_of_results(eqn: Equation, known: Known, definition: Definition) -> dict[Value, Structure]:
    """Return the facts about the results of an equation."""
    always = eqn.op.fact(ALWAYS)
    found: dict[Value, Structure] = {}
    if always:
        found = {v: always[k] for k, v in enumerate(eqn.outputs) if k in always}
    # Complex numbers have no sign, and there are no rules for complex matrices.
    if any(v.type.is_complex for v in (*eqn.inputs, *eqn.outputs)):
        return {v: x & DIAGONAL for v, x in found.items() if x & DIAGONAL}
    if len(eqn.outputs) == 1 and eqn.output.type.is_float:
        facts = [known.get(v, NOTHING) for v in eqn.inputs]
        rule = eqn.op.fact(STRUCTURE)
        own = _derive_facts(eqn, facts) if rule is None else rule(eqn, definition, *facts)
        own |= found.get(eqn.output, NOTHING)
        return {eqn.output: own} if own else {}
    return found


def _derive_facts(eqn: Equation, facts: Sequence[Structure]) -> Structure:
    """Return the facts that hold of the result by the general facts of its primitive."""
    op = eqn.op
    if not isinstance(op, Primitive) or not facts:
        return NOTHING
    if op.formal or op.fact(SAME):
        return facts[0]
    common = reduce(and_, facts)
    if op.elementwise:
        return common & (SHAPES if op.linear is True else Structure.SYMMETRIC)
    if op.is_view:
        return _view_facts(eqn, facts[0])
    return common & NOT_NEGATIVE if op.moves else NOTHING


def _view_facts(eqn: Equation, fact: Structure) -> Structure:
    """Return the facts of a view, by the places that its last two axes have in the operand."""
    (x,), y = eqn.inputs, eqn.output
    found = eqn.dependence(0, 0)
    signs = fact & POSITIVE
    if isinstance(found, RowMajor):
        return fact if y.shape[-2:] == x.shape[-2:] and len(y.shape) > 1 else signs
    if not isinstance(found, IndexMap) or len(y.shape) < 2:
        return signs
    rows = found.result[-2:]
    if variables_of(rows).isdisjoint(variables_of(found.operand)):
        # A matrix of one repeated number.
        return signs | Structure.SYMMETRIC
    if len(x.shape) < 2 or not all(isinstance(p, Index) and p.variable is not None for p in rows):
        return signs
    if x.shape[-2:] == y.shape[-2:] and found.operand[-2:] == rows:
        return fact
    if x.shape[-2:] == y.shape[-2:][::-1] and found.operand[-2:] == rows[::-1]:
        return fact.transpose_facts()
    return signs
