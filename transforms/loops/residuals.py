"""What the linear part of a body needs of the other part: kept, known anyway, or computed again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from primgraph.ir.dims import typical
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.primitives.elementwise import cast
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.loops.stacks import fills


@dataclass(slots=True)
class Residuals:
    """A body in two parts, and what goes from one to the other.

    `linear` are the values that depend on what is linear. `taken` are inputs of the body that the
    linear part takes as they are, `outside` values that no trip changes, to be computed before
    the loop, `kept` those that each trip has to keep. `body` computes the linear part from these:
    what is cheap is computed again in it.
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
    """What computes `wanted`, which depend on the inputs `linear` or are known, from little.

    Inputs in `given` are there for the linear part, too; those that are `fixed` are the same in
    every trip, and so is what depends on them only.
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
    """The equations to be computed again for `needed`, which becomes all that they take, too."""
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
            # The stacks of a loop come last of its results, and are met first.
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
    """Whether to compute `eqn` again costs next to nothing, and takes no more room than to keep
    its result."""
    assert isinstance(eqn.op, Primitive)
    compares = eqn.op.elementwise and not any(v.type.is_inexact for v in eqn.outputs)
    if not (eqn.op.is_view or eqn.op in (broadcast, cast) or compares):
        return False
    new = sum(v.type.nbytes for v in set(eqn.inputs) if v not in needed and v not in given)
    return _at_most(new, sum(v.type.nbytes for v in eqn.outputs))


def _is_step(eqn: Equation, known: Collection[Value]) -> bool:
    """Whether `eqn` is one operation on each element of what is known."""
    if not isinstance(eqn.op, Primitive) or not eqn.op.elementwise:
        return False
    types = tuple([v.type for v in eqn.inputs])
    return all(v in known for v in eqn.inputs) and _at_most(
        eqn.op.flops(types, eqn.kwargs), eqn.output.type.size
    )


def _at_most(x: int, y: int) -> bool:
    """Whether one number of elements or bytes is no more than another, at common sizes."""
    return typical(x) <= typical(y)
