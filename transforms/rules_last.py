"""Rules of `clean_up` for the last time: what moves elements comes after what computes them.

They are exact, but they take functions out of the choices that guard them, so that derivatives
taken afterwards could be NaN: `where(x > 0, log(x), 0)` is guarded as long as all its parts have
the shape of the condition.
"""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive, registered
from primgraph.primitives.constants import filled, full
from primgraph.primitives.elementwise import add
from primgraph.primitives.shapes import broadcast, pad, reshape, slice_assign
from primgraph.transforms.rules import Family, Seen
from primgraph.transforms.rules_places import sum_of_overlapping
from primgraph.transforms.rules_views import repeated, reshaped

LAST = Family()
_rule = LAST.rule

# Elements from which on moving them takes longer than calling a function.
_LARGE = 2048


def _before_moving(op: Primitive) -> None:
    @_rule(op, of=(broadcast, reshape))
    def before_moving(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """What depends on each element alone is computed before elements are repeated or reshaped.

        So reshapes meet, and one undoes the other.
        """
        made = [seen.builder.definition(v) for v in inputs]
        moves = [eqn for eqn in made if eqn is not None and eqn.op in (broadcast, reshape)]
        if not moves or any(eqn is None or not (eqn in moves or eqn.op is full) for eqn in made):
            return None
        first, lead = moves[0], moves[0].inputs[0].shape
        if any(e.op is not first.op or e.kwargs != first.kwargs for e in moves):
            return None
        if any(e.inputs[0].shape != lead for e in moves):
            return None
        small = [_small(eqn, lead) for eqn in made if eqn is not None]
        shape = seen.type.shape
        result: Value = op(*small, **params)
        if first.op is reshape:
            return reshaped(result, shape)
        return repeated(result, shape, first.kwargs["new_axes"])


def _small(eqn: Equation, shape: tuple[int, ...]) -> Value:
    if eqn.op is full:
        return filled(eqn.kwargs["value"], eqn.output.type.with_shape(shape))
    return eqn.inputs[0]


@_rule(add, of=(pad, slice_assign))
def _sum_of_overlapping(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Where parts among zeros overlap they are added, and elsewhere they are put side by side.

    For small arrays that takes as long as to put each among zeros.
    """
    return sum_of_overlapping(seen, inputs) if seen.type.size >= _LARGE else None


for _op in registered().values():
    if isinstance(_op, Primitive) and _op.elementwise:
        _before_moving(_op)
