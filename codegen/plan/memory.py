"""What planned code takes of memory: what it keeps between calls, and what a call allocates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.codegen.plan.places import Held, Place, Result
from primgraph.codegen.plan.program import Call, Compute, Copy, Create, Instruction, Make, Plan

# An array without its elements: the object, shape and strides of two axes, a place in a list.
_OBJECT: int = np.ndarray.__basicsize__ + 48


def kept_bytes(plan: Plan, threads: int = 1) -> int:
    """What the first call makes and keeps, in bytes, where it may use so many threads."""
    spaces = min(threads, max((r.threads for r in plan.regions), default=0))
    return plan.arena + plan.space * spaces + _OBJECT * len(plan.arrays)


def call_bytes(plan: Plan) -> int:
    """What a call allocates beside that: results, copies that it holds, and what is made apart."""
    held, most, made = 0, 0, set[Place]()
    for x in plan.flat():
        new = [place for place in _new(x) if place not in made]
        made.update(new)
        held += sum(place.type.nbytes for place in new)
        most = max(most, held + _apart(plan, x))
    return most


def _apart(plan: Plan, x: Instruction) -> int:
    """What an instruction makes apart: a function of the user's does, and what may fail."""
    if isinstance(x, Compute):
        card = plan.cards[x.step.op]
        return x.step.results[0].nbytes if card.fallible and not card.in_place else 0
    return sum(t.nbytes for t in x.step.results) if isinstance(x, Call) else 0


def _new(x: Instruction) -> list[Result | Held]:
    """The arrays that an instruction may make anew."""
    places: Sequence[Place] = x.outs if isinstance(x, Call) else ()
    if isinstance(x, Compute | Copy | Create | Make):
        places = (x.out,)
    return [p for p in places if isinstance(p, Held) or (isinstance(p, Result) and not p.given)]
