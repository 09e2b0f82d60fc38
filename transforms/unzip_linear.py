"""Partial evaluation: split a linearized graph into its primal and its linear part."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import NOWHERE, input_positions
from primgraph.ir.slices import forward_slice
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.loops.stacks import with_loops
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.partial_eval import separate_linear


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def unzip(graph: Graph, wrt: Sequence[int]) -> tuple[Graph, Graph]:
    """Split `f_jvp(x, dx) -> (y, dy)` into `f(x) -> (y, r)` and `f_lin(r, dx) -> dy`.

    `wrt` holds the positions of the inputs `dx`. The outputs that do not depend on them are `y`;
    the residuals `r` are what the linear part needs of the primal part, in order of definition.
    A loop that fills stacks for the linear part, as many rows as it makes trips, is in both.

    >>> jvp = pg.transforms.linearize(pg.trace(pg.sin, pg.spec(3)))
    >>> primal, linear = pg.transforms.unzip(jvp, [1])
    >>> print(primal)
    graph sin_jvp_primal(%x: f64[3]) {
      %0: f64[3] = sin(%x)
      %1: f64[3] = cos(%x)
      return %0, %1
    }
    >>> print(linear)
    graph sin_jvp_linear(%0: f64[3], %1: f64[3]) {
      %2: f64[3] = mul(%1, %0)
      return %2
    }
    """
    dx = [graph.inputs[i] for i in input_positions(graph, wrt)]
    if graph.has_bodies:
        graph = separate_linear(graph, dx)
    linear = forward_slice(graph.body, dx)
    tangent_body = [e for e in graph.body if e.outputs[0] in linear]
    used = {v for e in tangent_body for v in e.inputs} - linear
    again = set(with_loops(used, (e for e in graph.body if e.outputs[0] not in linear)))
    tangent_body = [e for e in graph.body if e.outputs[0] in linear or e in again]
    used = {v for e in tangent_body for v in e.inputs} - linear
    used -= {v for e in again for v in e.outputs}
    residuals = [v for v in graph.numbering() if v in used]
    x = [v for v in graph.inputs if v not in linear]
    y = [v for v in graph.outputs if v not in linear]
    primal_body = [e for e in graph.body if e.outputs[0] not in linear]
    primal = Graph(x, primal_body, [*y, *residuals], f"{graph.name}_primal")

    builder = Builder(f"{graph.name}_linear", source=NOWHERE)
    moved: dict[Value, Value] = {v: builder.input(v.type, v.hint) for v in [*residuals, *dx]}
    builder.add_all(tangent_body, moved, shared=True)
    dy = [moved.get(v, v) for v in graph.outputs if v in linear]
    return dead_code(primal), dead_code(builder.graph(dy))
