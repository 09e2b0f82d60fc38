"""From a graph to a kernel: the passes, then the code generator."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.codegen import Kernel, compile_graph
from primgraph.errors import ArgumentError
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Graph
from primgraph.transforms.clean_up import clean_up
from primgraph.transforms.lower import lower


@uncollected
def compile(
    graph: Graph, *, style: str = "planned", donated: Mapping[int, int] | None = None
) -> Kernel:
    """Compile `graph` into NumPy code.

    The graph is lowered and cleaned up, exactly. `style` chooses the code that runs: "planned",
    with preallocated buffers, or "readable", the code that `Kernel.source` shows. `donated` maps
    positions of outputs to those of inputs of the same type, whose arrays they overwrite.

    Raises `ArgumentError` for anything but a graph, `CompileError` for an unknown style.
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(
            f"compile takes a graph, not {type(graph).__name__}",
            hint="make one with pg.trace(function, *specs), or program.graph([outputs])",
        )
    return compile_graph(clean_up(lower(graph)), style=style, donated=donated)
