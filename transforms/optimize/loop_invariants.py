"""Loop-invariant equations, and a guard for those that may raise: no iteration, no error."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from primgraph.ir.assumptions import is_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.dims import typical
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import INT64
from primgraph.primitives.constants import extent, filled_constant, full
from primgraph.primitives.control import cond
from primgraph.primitives.logic import greater
from primgraph.transforms.optimize.loop_parts import Loop


def hoistable_equations(loop: Loop) -> tuple[list[Equation], list[Equation]]:
    """Return the loop-invariant equations worth hoisting: plain ones, and those to be guarded.

    An equation needs a guard if the loop may have no iteration and the equation, or one that it
    depends on, may raise. Guards repay only costly equations; otherwise these stay in the loop.
    """
    body = loop.body.body
    _, states, xs = loop.inputs
    varying = forward_slice(body, [*states, *xs])
    out = [e for e in body if _may_leave(e, varying)]
    if not out or surely_runs(loop):
        return out, []
    after = after_raising(e for e in body if varying.isdisjoint(e.inputs))
    plain = [e for e in out if after.isdisjoint(e.outputs)]
    guarded = [e for e in out if not after.isdisjoint(e.outputs)]
    return plain, guarded if any(map(_is_costly, guarded)) else []


def after_raising(body: Iterable[Equation]) -> set[Value]:
    """Return the results of equations that may raise, and all values that depend on them."""
    found: set[Value] = set()
    for eqn in body:
        if eqn.op.fact(RAISES) or not found.isdisjoint(eqn.inputs):
            found.update(eqn.outputs)
    return found


def _may_leave(eqn: Equation, varying: Collection[Value]) -> bool:
    """Return whether an equation is loop-invariant and worth hoisting."""
    if not eqn.inputs or any(v in varying for v in eqn.inputs):
        return False
    op = eqn.op
    return isinstance(op, Primitive) and not (op.is_view or op.formal or op.has_bodies)


def surely_runs(loop: Loop) -> bool:
    """Return whether a loop has at least one iteration for all values of its operands."""
    return loop.test is None and surely_steps(loop.trips, dict(loop.rest)["length"])


def surely_steps(trips: Sequence[Value], length: int) -> bool:
    """Return whether a scan with this count, if any, and length has a step for all operands."""
    return not trips and is_at_least(length, 1)


def _is_costly(eqn: Equation) -> bool:
    """Return whether an equation has an operation or more for each element that it reads."""
    assert isinstance(eqn.op, Primitive)
    types = tuple([v.type for v in eqn.inputs])
    return typical(eqn.op.flops(types, eqn.kwargs)) >= typical(sum([t.size for t in types]))


def equations_if_loop_runs(loop: Loop, part: Graph, outputs: Sequence[Value]) -> list[Equation]:
    """Return equations that compute `part` of the loop's constants if the loop has an iteration.

    Otherwise `outputs` are zeros.
    """
    test, given = _first_test(loop)
    inner = dict(zip(test.inputs, given, strict=True))
    made = []
    for eqn in test.body:
        found = tuple([Value(v.type) for v in eqn.outputs])
        inputs = tuple([inner[v] for v in eqn.inputs])
        inner.update(zip(eqn.outputs, found, strict=True))
        made.append(Equation(eqn.op, inputs, eqn.params, found, eqn.source))
    runs = inner[test.outputs[0]]
    params = freeze_all([("branches", guarded(part))])
    source = part.body[-1].source
    made.append(Equation(cond, (runs, *loop.consts), params, tuple(outputs), source))
    return made


def _first_test(loop: Loop) -> tuple[Graph, tuple[Value, ...]]:
    """Return a graph that computes whether the loop has an iteration, and its operands."""
    if loop.test is not None:
        return loop.test, (*loop.consts, *loop.init)
    builder = Builder("runs", source=NOWHERE)
    with builder:
        runs = has_steps([builder.input(v.type) for v in loop.trips], dict(loop.rest)["length"])
    return builder.graph([runs]), loop.trips


def has_steps(trips: Sequence[Value], length: int) -> Value:
    """Record and return whether a scan with this count, if any, and length has a step."""
    count = trips[0] if trips else extent(size=length, shape=(), dtype=INT64)
    return greater(count, full(value=0, shape=(), dtype=INT64))


def guarded(part: Graph) -> tuple[Graph, Graph]:
    """Return branches that compute zeros if the condition is false, and otherwise `part`."""
    builder = Builder(part.name, source=NOWHERE)
    for value in part.inputs:
        builder.input(value.type)
    with builder:
        return builder.graph([filled_constant(0, v.type) for v in part.outputs]), part
