"""What planned code takes of memory: what it keeps between calls, and what a call allocates."""

from __future__ import annotations

from primgraph.codegen.plan.arena import ALIGN
from primgraph.codegen.plan.places import (
    Buffer,
    Constant,
    Held,
    Life,
    Number,
    Ones,
    Place,
    Result,
    View,
    layout_of,
    loop_of,
)
from primgraph.codegen.plan.program import Call, Compute, Copy, Create, Make, Plan, See
from primgraph.codegen.plan.scratch import Operation, buffers, object_bytes
from primgraph.codegen.plan.views import Cut

# The places of a thing in the lists of a workspace, and what a block of a loop is noted with.
_SLOT = 16
_BLOCK = 184


def kept_bytes(plan: Plan, threads: int = 1) -> int:
    """What the first call makes and keeps, in bytes, where it may use so many threads."""
    kept = plan.arena + ALIGN
    if not plan.loops:
        return kept + _things(plan, Life.KEPT)
    space = plan.space + ALIGN + _things(plan, Life.BLOCK)
    turns = sum(-(-r.extent // r.rows) for r in plan.regions)
    most = max(r.threads for r in plan.regions)
    kept += _things(plan, Life.KEPT) + space + _BLOCK * turns
    return kept + (min(threads, most) - 1) * plan.space


def _things(plan: Plan, life: Life) -> int:
    """What arrays take up beside the arena that they lie in."""
    total, rest = 0, [r.extent % r.rows or r.rows for r in plan.regions]
    for place in plan.arrays:
        if place.life is life:
            total += object_bytes(2) + _SLOT
            if life is Life.BLOCK:
                shorter = rest[loop_of(place)] != plan.regions[loop_of(place)].rows
                whole = isinstance(place, Buffer) and (place.axis is None or not shorter)
                total += 0 if whole else object_bytes(2) + _SLOT
            if isinstance(place, Ones):
                total += (place.count + rest[place.loop]) * place.dtype.itemsize
    return total


def call_bytes(plan: Plan) -> int:
    """The most that a call allocates at once beside what is kept: results, and what NumPy needs."""
    ledger = _Ledger()
    for x in plan.flat():
        if isinstance(x, Compute | Create):
            for place in (*x.operands, x.out):
                ledger.see(place)
            if isinstance(x, Create) or x.new:
                ledger.hold(x.out)
            ledger.need(_scratch(plan, x))
            for place in x.parts if isinstance(x, Compute) else ():
                ledger.see(place)
        elif isinstance(x, Call):
            # A function of the user's makes its results, and they are copied.
            ledger.need(2 * sum(t.nbytes for t in x.step.results))
            for place in x.outs:
                ledger.hold(place)
        elif isinstance(x, See):
            ledger.see(x.view)
        elif isinstance(x, Make) or (isinstance(x, Copy) and x.new):
            ledger.hold(x.out)
        elif isinstance(x, Copy):
            ledger.see(x.out)
    return ledger.most


class _Ledger:
    """Bytes that one call allocates, in the order of the code.

    `held` are kept until the call ends; `most` is the most that there was at once.
    """

    def __init__(self) -> None:
        self.held = self.most = 0
        self._seen: set[int] = set()

    def need(self, size: int) -> None:
        """Note that `size` bytes are allocated for the time of one statement."""
        self.most = max(self.most, self.held + size)

    def keep(self, size: int) -> None:
        """Note that `size` bytes are allocated and kept."""
        self.held += size
        self.most = max(self.most, self.held)

    def hold(self, place: Place) -> None:
        """Note that an array is made that a call begins with nothing of."""
        if isinstance(place, Held) or (isinstance(place, Result) and not place.given):
            self.keep(place.type.nbytes)

    def see(self, place: Place) -> None:
        """Note that there is a view, if there is one that is not kept."""
        while isinstance(place, View) and place.life not in (Life.KEPT, Life.BLOCK):
            if place.number in self._seen:
                return
            self._seen.add(place.number)
            axes = place.how.axis + 1 if isinstance(place.how, Cut) else 1
            self.keep(object_bytes(axes))
            place = place.of


def _scratch(plan: Plan, x: Compute | Create) -> int:
    """What NumPy allocates for itself while it does one instruction."""
    rule = plan.cards[x.step.op].scratch
    if rule is None:
        return 0
    out, shapes = x.out, ((), x.out.shape)
    plain = out.strides is None and all(p.strides is None and p.shape in shapes for p in x.operands)
    if plain and rule is buffers:
        return 0
    fixed = frozenset(k for k, p in enumerate(x.operands) if isinstance(p, Number | Constant))
    layouts = [layout_of(p) for p in x.operands]
    return rule(Operation(x.step, layouts, layout_of(out), fixed))
