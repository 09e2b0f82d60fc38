"""Hoisting: split off equations that depend on some inputs only, to compute them once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from primgraph.ir.dims import single_row_size
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import require_primitive
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.loops.stacks import fills
from primgraph.transforms.optimize.edits import dead_code

# Minimum fraction of all elements read and written that the hoisted part must account for.
_LEAST_PART = 1 / 50


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def hoist(graph: Graph, still: Sequence[int]) -> tuple[Graph, Graph]:
    """Split `f(s, x) -> y` into `early(s) -> r` and `late(s, x, r) -> y`.

    `still` holds the positions of the inputs `s`. The results `r` are what the late part needs of
    what can be computed from `s` alone; views and constants, which cost nothing, stay in it, and
    so does what depends on no input at all, see `input_free`. The inputs of the late part are
    those of `graph`, in their order, and then `r`. Where what can be split off is a small part of
    the whole, `r` is empty and the late part is `graph` itself.

    >>> graph = pg.trace(lambda a, x: pg.exp(a) * x, pg.spec(3), pg.spec(3))
    >>> early, late = pg.transforms.hoist(graph, [0])
    >>> print(early)
    graph f_early(%a: f64[3]) {
      %0: f64[3] = exp(%a)
      return %0
    }
    >>> print(late)
    graph f(%a: f64[3], %x: f64[3], %0: f64[3]) {
      %1: f64[3] = mul(%0, %x)
      return %1
    }
    """
    return _split_early(graph, [graph.inputs[i] for i in still], _free_of_inputs(graph))


def input_free(graph: Graph) -> tuple[int, ...]:
    """Return the positions of equations that depend on no input, to be computed only once.

    Views and constants are left out. The result is empty if these equations are a small fraction of
    the work.
    """
    _, late = _split_early(graph, [], frozenset())
    rest = set(late.body)
    return tuple([i for i, eqn in enumerate(graph.body) if eqn not in rest])


def _free_of_inputs(graph: Graph) -> set[Value]:
    """Return the values that depend on no input."""
    free: set[Value] = set()
    for eqn in graph.body:
        if free.issuperset(eqn.inputs):
            free.update(eqn.outputs)
    return free


def _split_early(graph: Graph, s: list[Value], left: Collection[Value]) -> tuple[Graph, Graph]:
    """Split off equations that depend on `s` only; those in `left` only if others need them."""
    name = f"{graph.name}_early"
    known, early = set(s), []
    for eqn in graph.body:
        if known.issuperset(eqn.inputs) and not (eqn.op.has_bodies and fills(eqn)):
            known.update(eqn.outputs)
            if not _is_free(eqn) and eqn.outputs[0] not in left:
                early.append(eqn)
    if not early:
        return Graph(s, (), (), name), graph
    computed = {v for eqn in early for v in eqn.outputs}
    others = (e for e in graph.body if computed.isdisjoint(e.outputs))
    rest = dead_code(Graph([*graph.inputs, *computed], others, graph.outputs)).body
    needed = computed.intersection(_used_values(rest, graph.outputs))
    r = [v for eqn in early for v in eqn.outputs if v in needed]
    first = dead_code(Graph(s, (e for e in graph.body if known.issuperset(e.outputs)), r, name))
    paid = set(early)
    part = _elements(e for e in first.body if e in paid)
    if not r or part < _LEAST_PART * _elements(graph.body):
        return Graph(s, (), (), name), graph
    return first, Graph([*graph.inputs, *r], rest, graph.outputs, graph.name)


def _is_free(eqn: Equation) -> bool:
    """Return whether recomputing the results costs nothing."""
    return eqn.op.is_view or require_primitive(eqn).literal


def _used_values(body: Iterable[Equation], outputs: Iterable[Value]) -> set[Value]:
    return {v for eqn in body for v in eqn.inputs}.union(outputs)


def _elements(body: Iterable[Equation]) -> int:
    """Return the number of elements read and written, without views and constants."""
    paid = (e for e in body if not _is_free(e))
    return sum(single_row_size(v.type.size) for e in paid for v in (*e.inputs, *e.outputs))
