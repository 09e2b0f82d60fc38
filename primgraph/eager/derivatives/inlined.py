"""Steps of a compiled function: its graph is inlined into larger graphs and differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Never, final

from primgraph.base.user_lines import instruction
from primgraph.eager.derivatives.recording import is_tracked
from primgraph.eager.node import Node
from primgraph.eager.steps import Arrays, Step, differentiable_inputs
from primgraph.errors import InternalError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value


@final
class Inlined(Step):
    """One result of a graph. All results are recorded together."""

    __slots__ = ("graph",)

    whole = True

    def __init__(self, graph: Graph, family: object, place: int, reached: Sequence[int]) -> None:
        super().__init__(graph.outputs[place].type, reached, family, place)
        self.graph = graph

    def __str__(self) -> str:
        return f"a result of {self.graph.name}"

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        moved = dict(zip(self.graph.inputs, operands, strict=True))
        builder.add_all(self.graph.body, moved, builder.source)
        return [moved[v] for v in self.graph.outputs]

    def evaluate(self, arrays: Arrays) -> Never:
        raise InternalError("a compiled function is evaluated as a part of a graph")


def inlined_steps(graph: Graph) -> list[Inlined]:
    """Create one step for each result of `graph`."""
    # A unique object as key: comparing graphs is slow.
    family = object()
    return [
        Inlined(graph, family, place, r) for place, r in enumerate(differentiable_inputs(graph))
    ]


def results(steps: Sequence[Inlined], inputs: tuple[Node, ...]) -> list[Node]:
    """Return lazy nodes of the results for `inputs`."""
    line = instruction()
    return [Node(s.type, s, inputs, is_tracked(s, inputs), line) for s in steps]
