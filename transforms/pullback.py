"""Derivatives of whole graphs: tangents, or cotangents, without the values."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.graph import Graph, Value
from primgraph.transforms.linearize import differentiable_values, linearize
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.transpose import transpose


def pushforward(
    graph: Graph, wrt: Sequence[int | Value] | None = None, role: str = "tangent"
) -> Graph:
    """Turn `f(x) -> y` into `(x, dx) -> dy`, linear in `dx`: `linearize` without the values.

    >>> from primgraph.transforms.pullback import pushforward
    >>> print(pushforward(pg.trace(pg.sin, pg.spec(3))))
    graph sin_jvp(%x: f64[3], %0: f64[3]) {
      %1: f64[3] = cos(%x)
      %2: f64[3] = mul(%0, %1)
      return %2
    }
    """
    both = linearize(graph, wrt, role=role)
    return dead_code(both.with_outputs(both.outputs[len(graph.outputs) :]))


def pullback(graph: Graph, wrt: Sequence[int | Value] | None = None) -> Graph:
    """Turn `f(x) -> y` into `(x, ct_y) -> ct_x`, linear in the cotangents of the float outputs.

    >>> from primgraph.transforms.pullback import pullback
    >>> print(pullback(pg.trace(pg.sin, pg.spec(3))))
    graph sin_jvp_t(%x: f64[3], %0: f64[3]) {
      %1: f64[3] = cos(%x)
      %2: f64[3] = mul(%0, %1)
      return %2
    }
    """
    count, seeds = len(graph.inputs), len(differentiable_values(graph, wrt))
    return transpose(pushforward(graph, wrt, "cotangent"), range(count, count + seeds))
