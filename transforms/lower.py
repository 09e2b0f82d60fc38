"""Lowering: decompose operators into primitives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

from primgraph.errors import ArgumentError, InternalError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, map_bodies
from primgraph.ir.params import bits
from primgraph.ir.primitive import Op, lookup
from primgraph.ir.rebuild import NOWHERE, keep, rebuild
from primgraph.operators.call import Operator
from primgraph.operators.variable import Variable
from primgraph.transforms.dataflow.contract import transform


@transform()
def lower(
    graph: Graph, allow: Collection[str] | None = None, deny: Collection[str] | None = None
) -> Graph:
    """Rewrite operators into primitives; outputs keep their types.

    With `allow`, only operators of these names are rewritten; those named in `deny` never are.
    The same holds for operators inside a decomposition, a branch or a loop. Without both the result
    has primitives only, and lowering it again changes nothing.

    >>> len(pg.transforms.lower(pg.trace(lambda x: pg.softmax(x), pg.spec(3)))) > 1
    True
    """
    allowed, denied = operator_names(allow), operator_names(deny)

    def expands(op: Op) -> bool:
        if not isinstance(op, Operator) or (denied is not None and op.name in denied):
            return False
        return allowed is None or op.name in allowed

    if not any(expands(eqn.op) or eqn.op.has_bodies for eqn in graph.body):
        return graph

    def lower_body(body: Graph) -> Graph:
        return lower(body, allow, deny)

    builder, moved = rebuild(graph, expands)
    decomposed: dict[Hashable, Graph] = {}
    for eqn in graph.body:
        if not expands(eqn.op):
            keep(builder, map_bodies(eqn, lower_body), moved)
            continue
        key = (eqn.op, tuple([v.type for v in eqn.inputs]), bits(eqn.params))
        if key not in decomposed:
            decomposed[key] = _decomposition(eqn, expands)
        part = decomposed[key]
        inner = {v: moved[w] for v, w in zip(part.inputs, eqn.inputs, strict=True)}
        source = (eqn.source or NOWHERE).mark_operator(eqn.op.name)
        builder.begin_call()
        builder.add_all(part.body, inner, source)
        result = inner.get(part.outputs[0], part.outputs[0])
        moved[eqn.output] = builder.hand_out([result])[0] if result.type.is_inexact else result
    return builder.graph([moved[v] for v in graph.outputs])


def _decomposition(eqn: Equation, expands: Callable[[Op], bool]) -> Graph:
    """Return the decomposition of the operator of `eqn`, for operands of the same types."""
    assert isinstance(eqn.op, Operator)
    builder = Builder(eqn.op.name, source=eqn.source or NOWHERE, expands=expands)
    operands = [Variable(builder, builder.input(v.type)) for v in eqn.inputs]
    with builder:
        result = eqn.op.expand(operands, eqn.kwargs).value
    if result.type != eqn.output.type:
        raise InternalError(f"{eqn.op.name} lowers {eqn.output.type} to {result.type}")
    return builder.graph([result])


def operator_names(names: Collection[str] | None) -> frozenset[str] | None:
    """Return `names` as a set.

    Raises `ArgumentError` unless it is a collection of strings, `MissingRuleError` for a name that
    no op has.
    """
    if names is None:
        return None
    listed = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise ArgumentError(f"allow or deny has names of operators, not {name!r:.60}")
    return frozenset(lookup(n).name for n in listed)
