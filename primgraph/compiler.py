"""From a graph to a kernel: the passes, then the code generator."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.codegen import Kernel, compile_graph
from primgraph.errors import ArgumentError
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Graph
from primgraph.ir.signature import checked_late
from primgraph.transforms.clean_up import clean_up
from primgraph.transforms.join_products import join_products
from primgraph.transforms.lower import lower
from primgraph.transforms.matrix_chain import matrix_chain


@checked_late
@uncollected
def compile(
    graph: Graph,
    *,
    style: str = "planned",
    math: str = "exact",
    donated: Mapping[int, int] | None = None,
) -> Kernel:
    """Compile `graph` into NumPy code.

    `style` chooses the code that runs: "planned", with preallocated buffers, or "readable", the
    code that `Kernel.source` shows. `math` says which rewrites are allowed: "exact" ones give the
    same bits whatever the feeds; "finite" ones may differ where a NaN, an infinity, an overflow
    or an underflow occurs, and in signs of zeros; "fast" ones are true of real numbers and may
    round differently. `donated` maps positions of outputs to those of inputs of the same type,
    whose arrays they overwrite.

    The kernel of a traced function takes what the function took, by position or by the name of
    the parameter, and returns what it returned: an array for a variable, a dict for a dict. That
    of a graph made otherwise, by hand, by `parse` or by a transform, returns a list. Positions in
    `donated` count arrays, as they stand in `graph.inputs` and `graph.outputs`.

    Raises `ArgumentError` for anything but a graph and for an unknown level, `CompileError` for
    an unknown style.
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(
            f"compile takes a graph, not {type(graph).__name__}",
            hint="make one with pg.trace(function, *specs), or program.graph([outputs])",
        )
    return compile_graph(optimized(graph, math), style=style, donated=donated)


def optimized(graph: Graph, math: str = "exact") -> Graph:
    """The graph that is compiled: lowered and cleaned up at level `math`."""
    plain = clean_up(lower(graph), math, last=True)
    if math == "fast":
        joined = join_products(plain)
        plain = matrix_chain(plain if joined is plain else clean_up(joined, math, last=True))
    return plain.in_form(graph.form)
