"""Fusion groups: regions of steps that run together in a loop over blocks of rows.

The values of a region are computed one block of rows at a time, so that blocks stay in cache.
Contractions over rows give partial results, which are combined in the order of blocks. A sum over
an axis is then the sum, from the first block to the last, of NumPy's sums within each.
"""

from __future__ import annotations

from dataclasses import field
from typing import final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.axis_semantics import Blocking, Role, role_of
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import CHUNK, Schedule, Step
from primgraph.codegen.ir.statements import Region
from primgraph.codegen.lower.arrays.sizes import Candidate, has_products, size_of
from primgraph.ir.dims import single_row_size

# Maximum number of whole arrays that a region keeps for later steps which would otherwise be among
# its own.
_MOST_AWAITED = 8


def arrange_regions(
    schedule: Schedule, limits: Limits, cards: Cards
) -> tuple[Schedule, tuple[Region, ...]]:
    """Return the steps, reordered so that regions are contiguous, and these regions.

    A region has only primitives for which the back end has `cards`.
    """
    forms = {s.form for s in schedule.steps}
    if not any(single_row_size(t.nbytes) >= limits.least_bytes for f in forms for t in f.results):
        return schedule, ()
    return _Arrangement(schedule, limits, cards).arrange_steps()


def _is_large(step: Step, limits: Limits) -> bool:
    return any(single_row_size(t.nbytes) >= limits.least_bytes for t in step.results)


@dataclass(slots=True)
class _Draft:
    """A region under construction.

    `early` are steps to run before it. `late` are steps to run after it, as they need a whole value
    of it or are independent; `idle` counts the views and constants among them. `awaited` are the
    values that they need of it. It is `blocked` if late steps do much work: independent steps then
    wait too, as their results would live longer than in the original order.
    """

    extent: int
    members: list[int] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    axis: dict[int, int] = field(default_factory=dict)
    totals: dict[int, str] = field(default_factory=dict)
    early: set[int] = field(default_factory=set)
    late: dict[int, None] = field(default_factory=dict)
    idle: int = 0
    awaited: set[int] = field(default_factory=set)
    blocked: bool = False


@final
class _Arrangement:
    def __init__(self, schedule: Schedule, limits: Limits, cards: Cards) -> None:
        self.schedule = schedule
        self.cards = cards
        self.limits = limits
        self.order: list[int] = []
        self.regions: list[Region] = []
        self.maker = {v: i for i, s in enumerate(schedule.steps) for v in s.outputs}
        # Values that are single numbers, maybe broadcast.
        self.constant: set[int] = set()
        for step in schedule.steps:
            if step.eqn.number is not None or (step.op.is_view and step.operands[0].size == 1):
                self.constant.update(step.outputs)
        # Late values, and whether computing them is too much work to be moved before a region.
        self.waiting: dict[int, bool] = {}

    def arrange_steps(self) -> tuple[Schedule, tuple[Region, ...]]:
        steps = self.schedule.steps
        pending = list(range(len(steps)))
        begin = 0
        while begin < len(pending):
            i = pending[begin]
            extent = self._seed(steps[i])
            if extent is None:
                self.order.append(i)
                begin += 1
                continue
            draft = _Draft(extent)
            self.waiting = {}
            end = begin
            while end < len(pending) and not self._is_full(draft):
                self._offer(draft, pending[end])
                end += 1
            self._close(draft)
            rest = [j for j in draft.late if j not in draft.early]
            # Late steps are considered again; there are never many more than members.
            begin = end - len(rest)
            pending[begin:end] = rest
        return self.schedule.reorder(self.order), tuple(self.regions)

    def _is_full(self, draft: _Draft) -> bool:
        """Return whether the region has its maximum length, or keeps much memory for late steps."""
        count = len(draft.members)
        waiting = 16 + count if draft.blocked else 64 + 2 * count
        crowded = len(draft.awaited) > _MOST_AWAITED
        late = len(draft.late)
        return count >= CHUNK // 2 or late - draft.idle > waiting or late > 4 * waiting or crowded

    def _seed(self, step: Step) -> int | None:
        """Return the number of rows of a region that begins with `step`, or None."""
        if not _is_large(step, self.limits) or self.schedule.sees(step):
            return None
        # Elementwise functions and products dominate the run time.
        if not (step.op.elementwise or step.op.linear == "each"):
            return None
        extent = self._rows_of(step)
        return extent if extent and self._leaf_role(step, extent) is not None else None

    def _rows_of(self, step: Step) -> int:
        """Return the size of the first axis whose rows are small in cache, else the longest.

        Without axes it is zero.
        """
        result = step.results[0]
        axes = result.shape if step.op.elementwise else result.shape[:-1]
        whole = result.nbytes
        return next((n for n in axes if 32 * whole <= n * self.limits.cache), max(axes, default=0))

    def _leaf_role(self, step: Step, extent: int) -> Role | None:
        """Return the role of a step whose operands are all whole, or None."""
        blocking = self._blocking(step)
        if blocking is None or not step.operands or self.schedule.sees(step):
            return None
        shape = step.operands[blocking.led_by].shape
        if extent not in shape:
            return None
        axes: list[int | None] = [None] * len(step.operands)
        axes[blocking.led_by] = shape.index(extent)
        role = role_of(step, blocking, axes)
        return role if role is not None and role.axis is not None else None

    def _blocking(self, step: Step) -> Blocking | None:
        """Return how a step runs in blocks; None if it does not, like a view that is copied."""
        card = self.cards.get(step.op)
        copied = step.form.seen and not self.schedule.sees(step)
        return None if card is None or copied else card.blocking

    # One step after the other.

    def _offer(self, draft: _Draft, i: int) -> None:
        """Add step `i` to the region if it has a role there; else make it late."""
        step = self.schedule.steps[i]
        role = self._role(draft, step)
        if role is None:
            free = self.schedule.sees(step) or step.op.literal
            large = _is_large(step, self.limits) and not free
            awaits = any(
                self.waiting.get(v, False) or v in draft.axis or v in draft.totals
                for v in step.inputs
            )
            self.waiting.update(dict.fromkeys(step.outputs, large or awaits))
            draft.late[i] = None
            draft.idle += free
            draft.blocked = draft.blocked or (large and awaits)
            draft.awaited.update(self.schedule.root[v] for v in step.inputs if v in draft.axis)
            return
        self._hoist_dependencies(draft, step)
        draft.members.append(i)
        draft.roles.append(role)
        for value in step.outputs:
            if role.axis is None:
                draft.totals[value] = role.combine
            else:
                draft.axis[value] = role.axis

    def _role(self, draft: _Draft, step: Step) -> Role | None:
        blocking = self._blocking(step)
        if blocking is None:
            return None
        axes = tuple(draft.axis.get(v) for v in step.inputs)
        if any(v in draft.totals or self.waiting.get(v, False) for v in step.inputs):
            return None
        if all(a is None for a in axes):
            return None if draft.blocked else self._leaf_role(step, draft.extent)
        role = role_of(step, blocking, axes)
        if role is None:
            return None
        # An operand with rows in the region cannot be read as a whole.
        pairs = zip(axes, role.operands, strict=True)
        return role if all(a is None or a == b for a, b in pairs) else None

    def _hoist_dependencies(self, draft: _Draft, step: Step) -> None:
        """Move late steps that `step` depends on before the region."""
        needed = list(step.inputs)
        while needed:
            value = needed.pop()
            if value in self.waiting:
                maker = self.maker[value]
                made = self.schedule.steps[maker]
                draft.early.add(maker)
                for other in made.outputs:
                    self.waiting.pop(other, None)
                needed.extend(made.inputs)

    # The end of a region.

    def _close(self, draft: _Draft) -> None:
        self.order.extend(sorted(draft.early))
        start = len(self.order)
        self.order.extend(draft.members)
        steps = [self.schedule.steps[i] for i in draft.members]
        of = Candidate(self.schedule, steps, draft.roles, draft.extent, self.constant, self.cards)
        size = size_of(of, self.limits)
        if size is None:
            return
        reads: dict[int, int] = {}
        for step in steps:
            for value in step.inputs:
                reads[value] = reads.get(value, 0) + 1
        uses, root = self.schedule.uses, self.schedule.root
        outside = {v for v in draft.axis if uses[v] > reads.get(v, 0)}
        needed, views = set(outside), []
        for k in reversed(range(len(steps))):
            if self.schedule.sees(steps[k]) and not needed.isdisjoint(steps[k].outputs):
                views.append(start + k)
                needed.update(steps[k].inputs)
        self.regions.append(
            Region(
                start,
                len(self.order),
                draft.extent,
                size.rows,
                size.threads,
                has_products(steps, self.cards, self.limits),
                tuple(draft.roles),
                draft.axis,
                draft.totals,
                tuple(sorted({root[v] for v in outside})),
                tuple(reversed(views)),
            )
        )
