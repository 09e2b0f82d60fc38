"""Many graphs as one, compiled to C in one file, and what of them C does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from program_tolerance import differs, rounding_of

from primgraph.codegen import compile_graph
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import HostCall
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret

Feeds = Sequence[np.ndarray]


def together(graphs: Sequence[Graph]) -> Graph:
    """One graph that computes what all of them do, with their inputs and outputs in a row."""
    return Graph(
        [v for g in graphs for v in g.inputs],
        [e for g in graphs for e in g.body],
        [v for g in graphs for v in g.outputs],
    )


def outside(graph: Graph) -> Counter[str]:
    """How often NumPy does a primitive, in what else is C."""
    items = nests(schedule(graph)).items
    return Counter(item.step.op.name for item in items if isinstance(item, HostCall))


def faults(
    graphs: Sequence[Graph], feeds: Sequence[Feeds], limits: Limits = LIMITS
) -> Iterator[tuple[int, str]]:
    """Which of these graphs, compiled to C together, do not give what the interpreter does."""
    whole = together(graphs)
    arrays = [a for each in feeds for a in each]
    kernel = compile_graph(whole, style="native", limits=limits)
    assert kernel.running_style(arrays) == "native"
    found = kernel(*arrays)
    at = 0
    for k, (graph, given) in enumerate(zip(graphs, feeds, strict=True)):
        expected = interpret(graph, *given)
        part = found[at : at + len(expected)]
        at += len(expected)
        with rounding_of("native"):
            fault = differs(graph, given, expected, part)
        if fault:
            yield k, fault
