"""State of lowering to a plan: places of values, live buffers, and the current loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import zip_longest
from typing import Any, NamedTuple, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.arena import AnyArena
from primgraph.codegen.ir.card import Cards, Facts
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.places import (
    Argument,
    Buffer,
    Life,
    Number,
    Place,
    Result,
    View,
)
from primgraph.codegen.ir.schedule import Schedule, Step, seen_shape
from primgraph.codegen.ir.statements import Combine, Instruction, Make, Region, Release, See
from primgraph.codegen.ir.views import Repeat
from primgraph.codegen.lower.arrays.store import Store
from primgraph.ir.types import TensorType
from primgraph.ir.views import Reshape, Rows


@final
@dataclass(slots=True)
class LoopDraft:
    """The loop of a region under construction.

    `whole` has the arrays that it fills row by row, by value, and `sums` those that it accumulates
    into. `touched` are outer values whose last use is in the loop. `totals` run at the end of a
    thread's turn.
    """

    region: Region
    number: int
    whole: dict[int, Place] = field(default_factory=dict)
    sums: dict[int, Place] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)
    totals: list[Combine] = field(default_factory=list)


@final
class CopyElision(NamedTuple):
    """Copy elision for arrays that are assembled part by part.

    `results` maps intermediate values of such an array to the result that it becomes. `replaced`
    are steps whose first operand is overwritten entirely. `puts` are steps that compute the part
    which the next step assigns.
    """

    results: Mapping[int, Result]
    replaced: Collection[int]
    puts: Collection[int]


NOWHERE = CopyElision({}, (), ())

# Operands that back ends broadcast, of most functions.
_ALL = (0, 1, 2)


@final
class LoweringState:
    """Places of the values of a schedule, step by step.

    `widened` are values with more axes than the array that represents them. `buffers` maps roots to
    their buffers. `left_in` maps values to the donated input whose array they are written to. Such
    an array is not written before step `settled`, from which on no step can fail. `landing`
    describes arrays assembled part by part; the steps `inside` belong to loops.
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
        """Return whether a step may raise: it has indices, or is a user function."""
        card = self.cards.get(step.op)
        return card is None or card.fallible

    # Operands.

    def is_plain(self, value: int, place: Place) -> bool:
        """Return whether a value is a whole array of its own."""
        return not isinstance(place, View) and value not in self.widened

    def full(self, place: Place, type: TensorType, axis: int | None = None) -> Place:
        """Return a place in the full shape, broadcast by a view if it is smaller.

        The last block is shorter: the size along `axis` is taken from the array at run time.
        """
        if place.shape == type.shape:
            return place
        extents: list[int | Rows] = list(type.shape)
        if axis is not None:
            extents[axis] = Rows(axis - (type.ndim - len(place.shape)))
        return self.store.view(place, Repeat(tuple(extents)), type.shape)

    def operands(
        self, step: Step, places: Sequence[Place], axes: Iterable[int | None] = ()
    ) -> tuple[Place, ...]:
        """Return operands in their full shapes, except where the back end broadcasts them."""
        small, count = self.cards[step.form.op].broadcasts, len(places)
        if small[:count] == _ALL[:count]:
            return tuple(places)
        triples = zip_longest(places, step.form.operands, axes)
        return tuple([p if k in small else self.full(p, type, axis)
                      for k, (p, type, axis) in enumerate(triples)])  # fmt: skip

    def view(
        self, i: int, step: Step, place: Place, axis: int | None = None, target: int | None = None
    ) -> None:
        """Add a step that is a view of `place`; in a block, rows move from `axis` to `target`."""
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
                # The last block is shorter, so its number of rows is read from the operand.
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
        """Return whether the current step may overwrite or free a buffer."""
        return self.loop is None or buffer.life is Life.BLOCK

    def reusable_operand(
        self, i: int, step: Step, card: Facts, places: Sequence[Place]
    ) -> int | None:
        """Return the operand whose buffer the result may take over, as it is dead afterwards.

        A single element is not computed in place, as that takes NumPy twice as long.
        """
        form, inputs = step.form, step.inputs
        type, root_of, last = form.results[0], self.schedule.root, self.schedule.last
        if type.size == 1 and card.itself:
            return None
        for k in card.in_place[: len(places)]:
            value = inputs[k]
            root = root_of[value]
            if last[root] != i or self.buffers.get(root) is not places[k]:
                continue
            if form.operands[k] is not type or value in self.widened or not self.owns(places[k]):
                continue
            roots = [root_of[v] for v in inputs]
            if roots.count(root) == 1 or (card.itself and self._alike(k, step, places, roots)):
                return k
        return None

    def _alike(self, k: int, step: Step, places: Sequence[Place], roots: Sequence[int]) -> bool:
        """Return whether the operands that share the buffer of operand `k` are the same array."""
        return all(
            root != roots[k] or (place is places[k] and value not in self.widened)
            for value, place, root in zip(step.inputs, places, roots, strict=True)
        )

    def take_over(self, step: Step, position: int) -> Buffer:
        """Give the buffer of an operand to the result."""
        buffer = self.buffers.pop(self.schedule.root[step.inputs[position]])
        self.buffers[step.outputs[0]] = buffer
        return buffer

    def whole(self, i: int, value: int) -> Result | Buffer:
        """Allocate a whole array for a value that is written in parts: a result or a buffer."""
        place: Result | Buffer | None = self.results.get(value)
        if place is None:
            place = self.buffers[value] = self.store.buffer(self.schedule.types[value])
        self.body.append(Make(i, place))
        return place

    def release(self, i: int, values: Iterable[int]) -> None:
        """Free the buffers of values that are dead after this step.

        A loop frees outer values at its end.
        """
        root_of, last, buffers = self.schedule.root, self.schedule.last, self.buffers
        for value in values:
            root = root_of[value]
            if root not in buffers or last[root] > i:
                continue
            if self.owns(buffers[root]):
                self.free(i, buffers.pop(root), self.body)
            else:
                assert self.loop is not None
                self.loop.touched[root] = None

    def free(self, i: int, buffer: Buffer, body: list[Any]) -> None:
        body.append(Release(i, buffer))
        self.store.release(buffer)
