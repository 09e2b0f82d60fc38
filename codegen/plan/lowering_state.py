"""A plan while it is made: where each value is, which buffers live, and what is in the loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from primgraph.codegen.plan.card import Cards, Facts
from primgraph.codegen.plan.fusion_groups import Region
from primgraph.codegen.plan.program import Combine, Instruction, Make, Options, Release, See
from primgraph.codegen.plan.schedule import Schedule, Step, seen_shape
from primgraph.codegen.plan.storage.arena import AnyArena
from primgraph.codegen.plan.storage.places import (
    Argument,
    Buffer,
    Life,
    Number,
    Place,
    Result,
    View,
)
from primgraph.codegen.plan.storage.store import Store
from primgraph.codegen.plan.storage.views import Repeat
from primgraph.ir.types import TensorType
from primgraph.ir.views import Reshape, Rows


@final
@dataclass(slots=True)
class LoopDraft:
    """The loop of a region while it is made.

    `whole` are the arrays that it fills row by row, by value, `sums` those that it adds to, and
    `touched` are values from outside that it reads last. `totals` are done at the end of a turn.
    """

    region: Region
    number: int
    whole: dict[int, Place] = field(default_factory=dict)
    sums: dict[int, Place] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)
    totals: list[Combine] = field(default_factory=list)


@final
class Landing(NamedTuple):
    """Where arrays come to be part by part.

    `results` has, for what is in the array of a result before it is that result, this one;
    `replaced` are the steps of which the first operand need not be there, and `puts` those that
    compute what the next step puts there.
    """

    results: Mapping[int, Result]
    replaced: Collection[int]
    puts: Collection[int]


NOWHERE = Landing({}, (), ())


@final
class Draft:
    """Where the values of a schedule are, step by step.

    `widened` are values of more axes than the array has that stands for them. `buffers` has the
    buffer of each root that is in one. `left_in` tells, of a value, the input whose array it is
    to be left in; such an array is not touched before step `settled`, from which on none can fail.
    `landing` tells of what comes to be part by part.
    """

    def __init__(
        self,
        schedule: Schedule,
        cards: Cards,
        options: Options,
        arena: AnyArena,
    ) -> None:
        self.schedule, self.cards, self.options = schedule, cards, options
        self.store = Store(arena)
        self.body: list[Instruction] = []
        self.loop: LoopDraft | None = None
        types, outputs, donated = schedule.types, schedule.outputs, dict(options.donated)
        self.arguments = tuple([Argument(i, types[i]) for i in range(schedule.inputs)])
        self.places: dict[int, Place] = dict(enumerate(self.arguments))
        self.widened: set[int] = set()
        self.buffers: dict[int, Buffer] = {}
        self.left_in = {outputs[k]: j for k, j in reversed(list(donated.items()))}
        failing = [i for i, s in enumerate(schedule.steps) if donated and self._may_fail(s)]
        self.settled = failing[-1] + 1 if failing else 0
        given = frozenset(options.given)
        self.made = {
            k: Result(k, types[v], k in given) for k, v in enumerate(outputs) if k not in donated
        }
        self.results = {outputs[k]: result for k, result in reversed(self.made.items())}
        self.landing = NOWHERE

    def _may_fail(self, step: Step) -> bool:
        """Whether a step can raise an error: one that looks indices up, or is a user's own."""
        card = self.cards.get(step.op)
        return card is None or card.fallible

    # Operands.

    def is_plain(self, value: int, place: Place) -> bool:
        """Whether a value is an array of its own, as a whole."""
        return not isinstance(place, View) and value not in self.widened

    def full(self, place: Place, type: TensorType, axis: int | None = None) -> Place:
        """A value in full shape: repeated by a view where it is smaller.

        In a block, whose last one is shorter, the extent of `axis` is that of the array itself.
        """
        if place.shape == type.shape:
            return place
        extents: list[int | Rows] = list(type.shape)
        if axis is not None:
            extents[axis] = Rows(axis - (type.ndim - len(place.shape)))
        return self.store.view(place, Repeat(tuple(extents)), type.shape)

    def view(
        self, i: int, step: Step, place: Place, axis: int | None = None, target: int | None = None
    ) -> None:
        """A step that is a view of `place`; in a block rows are along `axis`, then `target`."""
        result = step.results
        for k, (value, how) in enumerate(zip(step.outputs, step.form.seen, strict=True)):
            if not self.schedule.uses[value] and self.loop is None:
                continue
            if isinstance(place, Number):
                self.places[value] = place
                continue
            if how is None:
                self.places[value] = place
                if result[k].shape != step.operands[0].shape or step.inputs[0] in self.widened:
                    self.widened.add(value)
                continue
            if target is not None and isinstance(how, Reshape):
                # The last block is shorter, so its number of rows is that of the operand.
                assert axis is not None
                extents = list(how.shape)
                extents[target] = Rows(axis)
                how = Reshape(tuple(extents))
            full = self.full(place, step.operands[0], axis)
            seen = self.store.view(full, how, seen_shape(step, k))
            self.places[value] = seen
            self.body.append(See(i, step, seen))

    # Buffers.

    def owns(self, buffer: Place) -> bool:
        """Whether the step that is being planned may overwrite or give back a buffer."""
        return self.loop is None or buffer.life is Life.BLOCK

    def dying(self, i: int, step: Step, card: Facts, places: Sequence[Place]) -> int | None:
        """The operand whose buffer the result may take over: nothing else reads it any more.

        A single element is not computed in place, because NumPy takes twice as long for that.
        """
        form, inputs, schedule = step.form, step.inputs, self.schedule
        type = form.results[0]
        if type.size == 1 and card.itself:
            return None
        for k in card.in_place[: len(places)]:
            place, value = places[k], inputs[k]
            root = schedule.root[value]
            if schedule.last[root] != i or self.buffers.get(root) is not place:
                continue
            if form.operands[k] is not type or value in self.widened or not self.owns(place):
                continue
            roots = [schedule.root[v] for v in inputs]
            if roots.count(root) == 1 or (card.itself and self._alike(k, step, places, roots)):
                return k
        return None

    def _alike(self, k: int, step: Step, places: Sequence[Place], roots: Sequence[int]) -> bool:
        """Whether the other operands that share the buffer of operand `k` are the same array."""
        return all(
            root != roots[k] or (place is places[k] and value not in self.widened)
            for value, place, root in zip(step.inputs, places, roots, strict=True)
        )

    def take_over(self, step: Step, position: int) -> Buffer:
        """Let the result have the buffer of an operand."""
        buffer = self.buffers.pop(self.schedule.root[step.inputs[position]])
        self.buffers[step.outputs[0]] = buffer
        return buffer

    def whole(self, i: int, value: int) -> Result | Buffer:
        """A whole array for a value that is written bit by bit: a result or a buffer."""
        place: Result | Buffer | None = self.results.get(value)
        if place is None:
            place = self.buffers[value] = self.store.buffer(self.schedule.types[value])
        self.body.append(Make(i, place))
        return place

    def release(self, i: int, values: Iterable[int]) -> None:
        """Give back the buffers of values that this step reads last, or that nothing reads.

        What a loop reads from outside is given back when it ends, not before.
        """
        root_of, last, buffers = self.schedule.root, self.schedule.last, self.buffers
        for value in values:
            root = root_of[value]
            if last[root] > i or root not in buffers:
                continue
            if self.owns(buffers[root]):
                self.free(i, buffers.pop(root), self.body)
            else:
                assert self.loop is not None
                self.loop.touched[root] = None

    def free(self, i: int, buffer: Buffer, body: list[Any]) -> None:
        body.append(Release(i, buffer))
        self.store.release(buffer)
