"""Which values carry derivatives, and whether each element depends on the same one only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.primitives.parts import conj
from primgraph.transforms.dataflow.body_transfer import (
    Analysis,
    Known,
    through_checkpoint,
    through_cond,
    through_scan,
    through_while,
)


def depending(graph: Graph, sources: Sequence[Value], *, by_tangents: bool = False) -> set[Value]:
    """The float values that depend on `sources` in a differentiable way, and those themselves.

    With `by_tangents`, those that tangents may reach.
    """
    active = set(sources)
    for eqn in graph.body:
        inputs: Sequence[Value] = eqn.inputs
        if by_tangents and isinstance(eqn.op, Primitive):
            inputs = eqn.op.moving(inputs)
        if active.isdisjoint(inputs) or eqn.op.stops:
            continue
        active.update(v for v in eqn.outputs if v.type.is_inexact)
    return active


def reached(body: Iterable[Equation], sources: Iterable[Value]) -> set[Value]:
    """`sources`, and all that depends on them, result by result where an equation has bodies.

    `forward_slice` has all results of a loop, a branch or a checkpoint. This has those that are
    linear where `separated` takes it apart.
    """
    found = set(sources)
    for eqn in body:
        if found.isdisjoint(eqn.inputs):
            continue
        through = _THROUGH.get(eqn.op)
        if through is None:
            found.update(eqn.outputs)
            continue
        results = through(eqn, [v in found or None for v in eqn.inputs], _REACH)
        found.update(v for v, is_one in zip(eqn.outputs, results, strict=True) if is_one)
    return found


def _follow(graph: Graph, known: Known[bool]) -> Known[bool]:
    key = ("reached", *known)
    results: Known[bool] | None = graph.noted(key)
    if results is None:
        sources = [v for v, is_one in zip(graph.inputs, known, strict=True) if is_one]
        found = reached(graph.body, sources)
        results = [v in found or None for v in graph.outputs]
        graph.note(key, results)
    return results


def reached_inputs(body: Graph, present: Iterable[int], consts: int, carries: int) -> set[int]:
    """The positions of inputs of the body of a loop that depend in some trip on `present` ones."""
    found = set(present)
    while True:
        results = _follow(body, [i in found or None for i in range(len(body.inputs))])
        more = {consts + k for k in range(carries) if results[k]}
        if more <= found:
            return found
        found |= more


def _same(is_one: bool) -> bool:
    return is_one


_REACH: Analysis[bool] = Analysis(_follow, _same, _same, "some are reached, and others are not")
_THROUGH: dict[Op, Callable[[Equation, Known[bool], Analysis[bool]], Known[bool]]] = {
    cond: through_cond,
    checkpoint: through_checkpoint,
    scan: through_scan,
    while_loop: through_while,
}


def is_diagonal(graph: Graph, wrt: Sequence[Value]) -> bool:
    """Whether each element of each output depends on the same element of `wrt` only.

    That is so if all that lies between is elementwise and of one type. The Jacobian is then its
    own transpose, and reverse mode can be had by forward mode.
    """
    kind = wrt[0].type
    if any(v.type != kind for v in (*wrt, *graph.outputs)):
        return False
    active = depending(graph, wrt)
    for eqn in graph.body:
        if active.isdisjoint(eqn.inputs) or active.isdisjoint(eqn.outputs):
            continue
        each = isinstance(eqn.op, Primitive) and eqn.op.elementwise
        # Conjugation is no product with any number.
        if eqn.op is conj:
            return False
        if not each and (eqn.op.own_slope or not eqn.op.formal):
            return False
        if eqn.outputs[0].type != kind:
            return False
    return True
