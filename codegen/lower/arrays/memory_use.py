"""Memory of planned code: bytes kept between calls, and bytes allocated by a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from primgraph.codegen.ir.places import Held, Place, Result
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import Schedule, Step, schedule
from primgraph.codegen.ir.statements import Call, Compute, Copy, Instruction, Make
from primgraph.ir.dims import single_row_size
from primgraph.ir.types import larger

# Size of an array object without its elements: the object, shape and strides of two axes, a list
# entry.
_OBJECT: int = np.ndarray.__basicsize__ + 48


def kept_bytes(plan: Plan, threads: int = 1) -> int:
    """Return the bytes that the first call allocates and keeps, with up to `threads` threads."""
    spaces = min(threads, max((r.threads for r in plan.regions), default=0))
    return plan.arena + plan.space * spaces + _OBJECT * len(plan.arrays)


def call_bytes(plan: Plan) -> int:
    """Return the peak of bytes that a call allocates in addition: results, copies, temporaries."""
    held, most, made = 0, 0, set[Place]()
    for x in plan.flat():
        new = [place for place in _new(x) if place not in made]
        made.update(new)
        held += sum(place.type.nbytes for place in new)
        most = max(most, held + _temporary_bytes(plan, x))
    return most


def _temporary_bytes(plan: Plan, x: Instruction) -> int:
    """Return the bytes of temporaries in a call, a loop body or a fallible op."""
    if isinstance(x, Compute):
        card = plan.cards[x.step.op]
        return x.step.results[0].nbytes if card.fallible and not card.in_place else 0
    if not isinstance(x, Call):
        return 0
    if x.step.op.has_bodies:
        # Results are written in place.
        return single_row_size(inside_bytes(x.step))
    return sum(t.nbytes for t in x.step.results)


def _new(x: Instruction) -> list[Result | Held]:
    """Return the arrays that an instruction may allocate."""
    places: Sequence[Place] = x.outs if isinstance(x, Call) else ()
    if isinstance(x, Compute | Copy | Make):
        places = (x.out,)
    return [p for p in places if isinstance(p, Held) or (isinstance(p, Result) and not p.given)]


def live_bytes(plan: Schedule) -> int:
    """Return the peak of bytes of live values, computed in the order of the steps.

    Values within branches and loop iterations count while these run.
    """
    size: dict[int, int] = {}
    now = most = 0
    for i, step in enumerate(plan.steps):
        for value in _allocated_results(plan, step):
            size[value] = plan.types[value].nbytes
            now += size[value]
        most = larger(most, now + inside_bytes(step) if step.op.has_bodies else now)
        for value in {plan.root[v] for v in (*step.inputs, *step.outputs)}:
            if plan.last[value] <= i:
                now -= size.pop(value, 0)
    return most


def inside_bytes(step: Step) -> int:
    """Return the bytes that a branch or a loop iteration takes besides the results of `step`."""
    if step.params.get("length") == 0:
        return 0
    most = 0
    for body in step.eqn.bodies:
        most = larger(most, live_bytes(schedule(body)))
    return most


def _allocated_results(plan: Schedule, step: Step) -> Iterable[int]:
    """Return the results of a step that need memory of their own."""
    if step.op.literal:
        return ()
    return (v for v in step.outputs if not plan.is_view(v))
