"""Batching: vectorise a graph over a new leading axis."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.errors import BuildError, MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import NOWHERE, copy, origin_lines, require_primitive
from primgraph.ir.types import add_leading_axis
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def batch(graph: Graph, size: int, axes: Sequence[int | None] | None = None) -> Graph:
    """Turn `f(x) -> y` into the graph that maps `size` samples at once.

    `axes` has 0 for each input that gets a leading axis of that size and None for one that all
    samples share; by default all get it. Every output has the axis. Sample `i` of the outputs is
    `f` of sample `i` of the inputs.

    Raises `MissingRuleError` where a primitive has no batching rule.

    >>> graph = pg.trace(pg.sin, pg.spec(3))
    >>> print(pg.transforms.batch(graph, 4))
    graph sin_batch(%x: f64[4,3]) {
      %0: f64[4,3] = sin(%x)
      return %0
    }
    """
    chosen = (0,) * len(graph.inputs) if axes is None else tuple(axes)
    if len(chosen) != len(graph.inputs) or not set(chosen) <= {0, None}:
        raise BuildError(f"axes are 0 or None, one for each of {len(graph.inputs)} inputs")
    return batch_graph(graph, size, chosen, [True] * len(graph.outputs))


def batch_graph(
    graph: Graph, size: int, axes: Sequence[int | None], everywhere: Sequence[bool]
) -> Graph:
    """Batch `graph`; outputs equal for all samples are broadcast only if `everywhere` says so.

    An output that depends on a batched input always has the batch axis.
    """
    builder = Builder(f"{graph.name}_batch", source=NOWHERE)
    moved: dict[Value, Value] = {}
    having: set[Value] = set()
    for value, axis in zip(graph.inputs, axes, strict=True):
        type = value.type if axis is None else add_leading_axis(size, value.type)
        moved[value] = builder.input(type, value.hint)
        if axis is not None:
            having.add(value)
    with builder:
        for eqn in graph.body:
            if having.isdisjoint(eqn.inputs):
                copy(builder, eqn, moved)
                continue
            having.update(eqn.outputs)
            builder.source = eqn.source or NOWHERE
            op = require_primitive(eqn)
            try:
                rule = op.batch_rule
            except MissingRuleError as error:
                raise error.located(origin_lines(eqn)) from None
            flags = tuple(v in having for v in eqn.inputs)
            result = rule(flags, *(moved[v] for v in eqn.inputs), **eqn.kwargs)
            moved.update(zip(eqn.outputs, result if op.multiple else (result,), strict=True))
        outputs = [
            moved[v]
            if v in having or not wanted
            else broadcast(moved[v], shape=(size, *v.shape), new_axes=(0,))
            for v, wanted in zip(graph.outputs, everywhere, strict=True)
        ]
    return builder.graph(outputs)
