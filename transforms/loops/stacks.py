"""Stacks whose rows are counted while a loop runs: they pass from loop to loop, and only so.

No equation but a loop takes such a stack or gives one, and no graph has one among its inputs or
results. What would need it elsewhere has the loop that fills it once more.
"""

from __future__ import annotations

from collections.abc import Iterable

from primgraph.ir.builder import Builder
from primgraph.ir.dims import TRIPS, is_open
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import active_recorder
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import TensorType
from primgraph.primitives.control import scan
from primgraph.primitives.elementwise import add


def fills(eqn: Equation) -> bool:
    """Whether `eqn` gives stacks of so many rows as a loop makes trips."""
    return any(is_open(v.shape) for v in eqn.outputs)


def with_loops(values: Iterable[Value], body: Iterable[Equation]) -> list[Equation]:
    """The loops of `body` that fill stacks among `values`, those whose stacks they go along too,
    in order."""
    made = {v: eqn for eqn in body if fills(eqn) for v in eqn.outputs}
    found: dict[Equation, None] = {}
    waiting = [v for v in values if is_open(v.shape)]
    while waiting:
        eqn = made[waiting.pop()]
        if eqn not in found:
            found[eqn] = None
            waiting += [v for v in eqn.inputs if is_open(v.shape)]
    return [eqn for eqn in dict.fromkeys(made.values()) if eqn in found]


def added(x: Value, y: Value) -> Value:
    """The sum of two values of one type; of stacks that grow, row by row."""
    if not is_open(x.shape):
        return add(x, y)
    builder = active_recorder()
    assert isinstance(builder, Builder)
    eqn = builder.definition(y)
    # Cotangents of a stack come from loops along it.
    assert eqn is not None
    assert eqn.op is scan
    row = TensorType(x.shape[1:], x.dtype)
    one = Builder("sum", source=NOWHERE)
    with one:
        body = one.graph([add(one.input(row), one.input(row))])
    (total,) = scan(
        eqn.inputs[0],
        x,
        y,
        body=body,
        consts=0,
        carries=0,
        length=TRIPS,
        reverse=False,
        counted=True,
    )
    return total
