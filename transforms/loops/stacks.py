"""Growing stacks: stacks whose number of rows is counted while a loop runs.

Only loops take or return such a stack, and no graph has one among its inputs or outputs. A graph
that needs the stack elsewhere runs the loop that fills it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from primgraph.ir.builder import Builder
from primgraph.ir.dims import TRIPS, is_open
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import active_recorder
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import TensorType
from primgraph.primitives.control import Regions, scan
from primgraph.primitives.elementwise import add


def fills(eqn: Equation) -> bool:
    """Return whether `eqn` returns stacks with one row per iteration of a dynamic loop."""
    return any(is_open(v.shape) for v in eqn.outputs)


def with_loops(values: Iterable[Value], body: Iterable[Equation]) -> list[Equation]:
    """Return the loops of `body` that fill stacks among `values`, in order.

    Loops that fill the stacks which these loops read are included.
    """
    made = {v: eqn for eqn in body if fills(eqn) for v in eqn.outputs}
    found: dict[Equation, None] = {}
    waiting = [v for v in values if is_open(v.shape)]
    while waiting:
        eqn = made[waiting.pop()]
        if eqn not in found:
            found[eqn] = None
            waiting += [v for v in eqn.inputs if is_open(v.shape)]
    return [eqn for eqn in dict.fromkeys(made.values()) if eqn in found]


def add_stacks(x: Value, y: Value) -> Value:
    """Add two values of one type; growing stacks are added row by row, in a loop."""
    if not is_open(x.shape):
        return add(x, y)
    builder = active_recorder()
    assert isinstance(builder, Builder)
    eqn = builder.definition(y)
    # Cotangents of a stack come from loops along it.
    assert eqn is not None
    assert Regions.from_equation(eqn).lead
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
