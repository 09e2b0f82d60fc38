"""Items while they are drafted: which of them computes a value, and where its elements are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from primgraph.codegen.native.c.spellings import zero as zero_text
from primgraph.codegen.native.items import Item, Nest, Nests, Node, Operand
from primgraph.codegen.native.lower.access import Access, whole
from primgraph.codegen.plan.schedule import Schedule, Step
from primgraph.codegen.plan.storage.limits import Limits
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import Shape

# Nests grow no longer than this: compilers take more than linear time for one function.
_LONGEST = 400


@final
@dataclass(slots=True)
class Overlaid:
    """An array on which parts are laid: where it begins, the nest and the node that fill it, if any
    do; the place from which on there may be parts; the last nest that lays one on it, and for
    each element whether one has been, if that is known."""

    root: int
    begun: int
    fill: Node | None
    least: int
    last: int
    laid: np.ndarray[Any, Any] | None


@final
class Draft:
    """The items so far, and what is known of each value, by its number.

    A value is a number, the same for all elements, or is somewhere in memory, or would be if it
    were `stored`: in a nest values are numbers of the loop, and few of them are needed elsewhere.
    """

    def __init__(
        self,
        schedule: Schedule,
        complete: bool = False,
        limits: Limits | None = None,
        alone: bool = False,
    ) -> None:
        self.schedule, self.complete, self.limits, self.alone = schedule, complete, limits, alone
        self.items: list[Item] = []
        self.types = dict(enumerate(schedule.types))
        self.constants: dict[int, Any] = {}
        # Numbers, as C writes them and as they are, that all elements of a value are.
        self.numbers: dict[int, str] = {}
        self.exact: dict[int, Any] = {}
        self.access: dict[int, Access] = {}
        # The item that computes a value that is somewhere in memory, or would be.
        self.made_by: dict[int, int] = {}
        self.reduced: set[int] = set()
        self.open: dict[Shape, int] = {}
        # Behind the last step of NumPy's.
        self.after_numpy = 0
        self.last: dict[int, int] = {}
        self.uses = Counter(schedule.outputs)
        # What more than elementwise steps read.
        self.whole = set(schedule.outputs)
        for step in schedule.steps:
            self.uses.update(step.inputs)
            if not (isinstance(step.op, Primitive) and step.op.elementwise):
                self.whole.update(step.inputs)
        self.overlaid: dict[int, Overlaid] = {}
        # Arrays that come to be part by part, by their first step: those that need not be filled,
        # and nests at the front that fill others.
        self.unfilled: set[int] = set()
        self.front: dict[int, int] = {}
        # Products of matrices and their sums: where they are, and the last product of them.
        self.sums: dict[int, tuple[int, int]] = {}
        for v in range(schedule.inputs):
            self.access[v] = whole(v, schedule.types[v].shape)

    def own_memory(self, value: int) -> int | None:
        """What is computed here and is `value`, as a whole and in its order, if there is that."""
        access = self.access.get(value)
        if access is None or access.root < self.schedule.inputs or access.root in self.constants:
            return None
        type = self.types[value]
        whole = access.is_whole(type.shape) and type.size == self.types[access.root].size
        return access.root if whole else None

    def nest_for(self, shape: Shape, values: Sequence[int], least: int = 0) -> tuple[int, Shape]:
        """The place of a nest over `shape` behind all that computes `values`, and its domain."""
        domain = tuple([n for n in shape if n != 1])
        for v in values:
            if v in self.numbers:
                continue
            access = self.access[v]
            at = self.made_by.get(access.root, -1)
            within = self.is_within(access, shape)
            least = max(least, at if within else at + 1)
        at = self.open.get(domain, -1)
        if at < least or len(self.items[at].nodes) >= _LONGEST:  # type: ignore[union-attr]
            at = self.open[domain] = len(self.items)
            self.items.append(Nest(domain))
        return at, domain

    def is_within(self, access: Access, shape: Shape) -> bool:
        """Whether a nest over `shape` may read what it has computed itself at the same place."""
        root = access.root
        at = self.made_by.get(root, -1)
        if at < 0 or root in self.reduced or not isinstance(self.items[at], Nest):
            return False
        own = [n for n in self.types[root].shape if n != 1]
        return own == [n for n in shape if n != 1] and access.is_whole(shape)

    def operand(self, value: int, shape: Shape, at: int) -> Operand:
        """What a nest at that place reads of `value`, of `shape`."""
        if value in self.numbers:
            return Operand(text=self.numbers[value])
        access = self.access[value]
        if self.made_by.get(access.root, -1) == at and self.is_within(access, shape):
            return Operand(value=access.root)
        self.stored(access.root)
        self.last[access.root] = max(at, self.last.get(access.root, -1))
        strides = tuple([s for s, n in zip(access.strides, shape, strict=True) if n != 1])
        return Operand(root=access.root, offset=access.offset, strides=strides)

    def nest(self, at: int) -> Nest:
        """The nest that is at that place."""
        nest = self.items[at]
        assert isinstance(nest, Nest)
        return nest

    def node(self, at: int, node: Node) -> None:
        self.nest(at).nodes.append(node)

    def stored(self, root: int) -> None:
        """Let what is computed in a nest be left in memory."""
        at = self.made_by.get(root, -1)
        if at >= 0 and root not in self.reduced and isinstance(nest := self.items[at], Nest):
            nest.stored[root] = None

    def copied(self, value: int) -> int:
        """A copy of a value in memory, in row-major order."""
        type, copy = self.schedule.types[value], len(self.types)
        self.types[copy] = type
        at, _ = self.nest_for(type.shape, (value,))
        self.node(at, Node(None, copy, "copy", "", (self.operand(value, type.shape, at),)))
        self.access[copy] = whole(copy, type.shape)
        self.made_by[copy] = at
        self.stored(copy)
        return copy

    def same(self, value: int, other: int) -> None:
        """Let `value` be what `other` is."""
        if other in self.numbers:
            self.numbers[value] = self.numbers[other]
            if other in self.exact:
                self.exact[value] = self.exact[other]
        else:
            self.access[value] = self.access[other]

    def zero(self, value: int) -> int:
        """A value that is a zero like those of `value`."""
        zero = -1 - value
        self.numbers[zero] = zero_text(self.types[value].dtype)
        return zero

    def in_memory(self, value: int, at: int) -> Access:
        if value in self.numbers:
            return whole(self.copied_before(value), self.types[value].shape)
        access = self.access[value]
        self.stored(access.root)
        self.last[access.root] = max(at, self.last.get(access.root, -1))
        return access

    def copied_before(self, value: int) -> int:
        """As `copied`; a constant of its own for a number, if that is known."""
        type, copy = self.schedule.types[value], len(self.types)
        if value not in self.exact or type.names:
            return self.copied(value)
        self.types[copy] = type
        self.constants[copy] = np.full(type.shape, self.exact[value], type.dtype)
        self.access[copy] = whole(copy, type.shape)
        return copy

    def last_item(self, value: int, at: int) -> None:
        self.access[value] = whole(value, self.types[value].shape)
        self.made_by[value] = at

    def whole_operands(self, step: Step) -> tuple[int, ...]:
        """What holds the operands in row-major order, copied to there where nothing does."""
        operands = []
        for v in step.inputs:
            if v in self.numbers:
                operands.append(self.copied_before(v))
                continue
            access, type = self.access[v], self.types[v]
            if access.is_whole(type.shape) and self.types[access.root].size == type.size:
                self.stored(access.root)
                operands.append(access.root)
            else:
                operands.append(self.copied(v))
        return tuple(operands)

    def next_item(self, step: Step, operands: Sequence[int]) -> int:
        """The place of an item at the end, which reads `operands` and makes what `step` does."""
        at = len(self.items)
        for root in operands:
            self.last[root] = max(at, self.last.get(root, -1))
        for value in step.outputs:
            self.last_item(value, at)
        return at

    def constants_of(self, body: Nests, at: int) -> dict[int, int]:
        """Constants of a body of the item at that place, as constants here."""
        found: dict[int, int] = {}
        for v, array in body.constants.items():
            own = found[v] = len(self.types)
            self.types[own] = body.types[v]
            self.constants[own] = array
            self.last[own] = at
        return found

    def closed(self, outputs: Sequence[int], added: Set[int] | None = None) -> Nests:
        """All items, which leave `outputs` in memory; those of a block tell what is `added`."""
        for root in outputs:
            self.last[root] = len(self.items)
        return Nests(
            self.schedule, tuple(self.items), self.constants, tuple(outputs), self.types,
            self.last, added is not None, frozenset(added or ()),
        )  # fmt: skip
