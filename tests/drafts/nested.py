"""Derivatives along a curve by forward mode over forward mode: what jets are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.rebuild import NOWHERE
from primgraph.transforms import dead_code, linearize

Arrays = Sequence[np.ndarray]


def nested(
    graph: Graph, wrt: Sequence[int], order: int, *, line: bool = False
) -> tuple[Graph, list[tuple[int, int]]]:
    """The derivatives of the float outputs, of all orders in turn, as a graph.

    Its inputs behind those of `graph` are told by the place in `wrt` and the order of what they
    are the derivative of. Along a `line` there are no derivatives of the inputs but the first, the
    same each time.
    """
    if line:
        return _along_line(graph, wrt, order), [(n, 1) for n in range(len(wrt))]
    floats = [v for v in graph.outputs if v.type.is_inexact]
    current, added = graph.with_outputs(floats), [(n, 0) for n in range(len(wrt))]
    places = list(wrt)
    extra: list[tuple[int, int]] = []
    for _ in range(order):
        jvp = linearize(current, places)
        known = len(current.outputs)
        more = [(n, k + 1) for n, k in added]
        places += range(len(current.inputs), len(jvp.inputs))
        extra += more
        added += more
        last = jvp.outputs[known:][-len(floats) :]
        current = dead_code(jvp.with_outputs([*jvp.outputs[:known], *last]))
    return current.with_outputs(current.outputs[len(floats) :]), extra


def _along_line(graph: Graph, wrt: Sequence[int], order: int) -> Graph:
    floats = [v for v in graph.outputs if v.type.is_inexact]
    builder = Builder("nested", source=NOWHERE)
    inputs = [builder.input(v.type) for v in graph.inputs]
    seeds = [builder.input(graph.inputs[i].type) for i in wrt]
    current, found = graph.with_outputs(floats), []
    for k in range(order):
        jvp = linearize(current, wrt)
        current = dead_code(jvp.with_outputs(jvp.outputs[len(floats) :]))
        found.append(builder.inline(current, [*inputs, *seeds * (k + 1)]))
    return builder.graph([v for values in found for v in values])


def nested_values(
    graph: Graph,
    wrt: Sequence[int],
    feeds: Arrays,
    seeds: Sequence[Sequence[np.ndarray]],
    order: int = 0,
) -> tuple[list[np.ndarray], float]:
    """Derivatives of the float outputs, of each in all orders, and the largest number on the way.

    `seeds[n][k-1]` is that of order k of the input at place n of `wrt`. With an `order` it is
    along a line: there is one seed each.
    """
    line, order = order > 0, order or len(seeds[0])
    derivatives, extra = nested(graph, wrt, order, line=line)
    floats = [v for e in derivatives.body for v in e.outputs if v.type.is_float]
    given = [*feeds, *[seeds[n][k - 1] for n, k in extra]]
    count = len(derivatives.outputs)
    found = interpret(derivatives.with_outputs([*derivatives.outputs, *floats]), *given)
    finite = [np.abs(x[np.isfinite(x)]) for x in map(np.asarray, found)]
    largest = max((float(np.max(x, initial=0.0)) for x in finite), default=0.0)
    each = count // order
    return [found[k * each + i] for i in range(each) for k in range(order)], largest
