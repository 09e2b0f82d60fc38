"""What planned code takes of memory: what it keeps between calls, and what a call allocates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from primgraph.codegen.plan.program import Call, Compute, Copy, Create, Instruction, Make, Plan
from primgraph.codegen.plan.schedule import Schedule, Step, schedule
from primgraph.codegen.plan.storage.places import Held, Place, Result
from primgraph.ir.dims import of_one_trip
from primgraph.ir.types import larger

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
    if not isinstance(x, Call):
        return 0
    if x.step.op.has_bodies:
        # Results are left where they are to be.
        return of_one_trip(inside_bytes(x.step))
    return sum(t.nbytes for t in x.step.results)


def _new(x: Instruction) -> list[Result | Held]:
    """The arrays that an instruction may make anew."""
    places: Sequence[Place] = x.outs if isinstance(x, Call) else ()
    if isinstance(x, Compute | Copy | Create | Make):
        places = (x.out,)
    return [p for p in places if isinstance(p, Held) or (isinstance(p, Result) and not p.given)]


def live_bytes(plan: Schedule) -> int:
    """The most bytes that computed values which are still needed take up at once.

    They are computed in the order of the steps; what branches and trips of loops compute within
    themselves counts while these run.
    """
    size: dict[int, int] = {}
    now = most = 0
    for i, step in enumerate(plan.steps):
        for value in _made(plan, step):
            size[value] = plan.types[value].nbytes
            now += size[value]
        most = larger(most, now + inside_bytes(step) if step.op.has_bodies else now)
        for value in {plan.root[v] for v in (*step.inputs, *step.outputs)}:
            if plan.last[value] <= i:
                now -= size.pop(value, 0)
    return most


def inside_bytes(step: Step) -> int:
    """What a branch or a trip of a loop takes beside the results of `step`."""
    if step.params.get("length") == 0:
        return 0
    most = 0
    for body in step.eqn.bodies:
        most = larger(most, live_bytes(schedule(body)))
    return most


def _made(plan: Schedule, step: Step) -> Iterable[int]:
    """The results of a step that need memory of their own."""
    if step.op.literal:
        return ()
    return (v for v in step.outputs if not plan.is_view(v))
