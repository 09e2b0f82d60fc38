"""Residuals of partial evaluation: stored, available anyway, or recomputed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from primgraph.base.records import dataclass
from primgraph.ir.dims import typical
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.transforms.loops.stacks import fills


@dataclass(slots=True)
class Residuals:
    """The linear part of a body, and the values that it takes from the other part.

    `linear` are the values that depend on linear inputs. `taken` are inputs of the body that the
    linear part reads. `outside` are loop-invariant values, computed before the loop. `kept` are
    stored by each iteration. `body` computes the linear part from these; it recomputes cheap
    equations.
    """

    linear: set[Value]
    taken: list[Value] = field(default_factory=list)
    outside: list[Value] = field(default_factory=list)
    kept: list[Value] = field(default_factory=list)
    body: list[Equation] = field(default_factory=list)


def residuals_of(
    graph: Graph,
    linear: Collection[Value],
    wanted: Sequence[Value],
    given: Collection[Value],
    fixed: Collection[Value] = (),
) -> Residuals:
    """Return the residuals from which `wanted` is computed; `wanted` may depend on `linear`.

    Inputs in `given` are available to the linear part too. Inputs in `fixed` are loop-invariant.
    """
    found = Residuals(forward_slice(graph.body, linear))
    part = [e for e in backward_slice(graph.body, wanted) if e.outputs[0] in found.linear]
    needed = {v for e in part for v in e.inputs}.union(wanted) - found.linear
    defined = {v: e for e in graph.body for v in e.outputs}
    varying = forward_slice(graph.body, set(graph.inputs).difference(fixed))
    again = _again(graph, needed, defined, given, varying, found)
    found.taken = [v for v in graph.inputs if v in needed and v in given]
    known = {*found.taken, *found.outside, *found.kept}
    for value in list(found.kept):
        eqn = defined.get(value)
        if eqn is not None and _is_step(eqn, known - {value}):
            found.kept.remove(value)
            known.remove(value)
            again.add(eqn)
    again.update(part)
    found.body = [e for e in graph.body if e in again]
    return found


def _again(
    graph: Graph,
    needed: set[Value],
    defined: dict[Value, Equation],
    given: Collection[Value],
    varying: Collection[Value],
    found: Residuals,
) -> set[Equation]:
    """Return the equations to recompute for `needed`; add their operands to `needed`."""
    again: set[Equation] = set()
    order = graph.numbering()
    filling = {eqn for eqn in graph.body if eqn.op.has_bodies and fills(eqn)}
    waiting = sorted(needed, key=order.__getitem__)
    while waiting:
        value = waiting.pop()
        eqn = defined.get(value)
        if eqn in again:
            continue
        if eqn is None:
            if value not in given:
                found.kept.append(value)
        elif not eqn.inputs or eqn in filling or _is_cheap(eqn, needed, given):
            # The stacks are the last results of a loop, and are visited first.
            again.add(eqn)
            new = [v for v in eqn.inputs if v not in needed]
            needed.update(new)
            waiting = sorted({*waiting, *new}, key=order.__getitem__)
        elif value not in varying:
            found.outside.append(value)
        else:
            found.kept.append(value)
    found.outside.reverse()
    found.kept.reverse()
    return again


def _is_cheap(eqn: Equation, needed: Collection[Value], given: Collection[Value]) -> bool:
    """Return whether recomputing `eqn` is almost free, and needs no more memory than its result."""
    assert isinstance(eqn.op, Primitive)
    compares = eqn.op.elementwise and not any(v.type.is_inexact for v in eqn.outputs)
    converts = eqn.op.elementwise and eqn.op.linear is True and eqn.op.costs_nothing
    if not (eqn.op.is_view or converts or compares):
        return False
    new = sum(v.type.nbytes for v in set(eqn.inputs) if v not in needed and v not in given)
    return _is_at_most(new, sum(v.type.nbytes for v in eqn.outputs))


def _is_step(eqn: Equation, known: Collection[Value]) -> bool:
    """Return whether `eqn` is a single elementwise operation on `known` values."""
    if not isinstance(eqn.op, Primitive) or not eqn.op.elementwise:
        return False
    return all(v in known for v in eqn.inputs) and _is_at_most(_cost(eqn), eqn.output.type.size)


def _cost(eqn: Equation) -> int:
    assert isinstance(eqn.op, Primitive)
    return eqn.op.flops(tuple([v.type for v in eqn.inputs]), eqn.kwargs)


def _is_at_most(x: int, y: int) -> bool:
    """Return whether `x <= y` at typical values of symbolic sizes."""
    return typical(x) <= typical(y)
