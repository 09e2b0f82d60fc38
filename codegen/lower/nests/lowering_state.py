"""State of lowering to native code: which item computes a value, and its access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import Any, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.codegen.ir.access import Access, loop_strides, whole
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ir.statements import Item, Nest, Nests, Node, Operand
from primgraph.codegen.ops.c.spellings import zero as zero_text
from primgraph.ir.dims import typical
from primgraph.ir.types import Shape, TensorType

# Maximum number of nodes in a nest: compile time is superlinear in the size of a function. In a
# program of many steps nests are shorter, and more of them are equal.
_LONGEST, _SHORTER, _MANY = 400, 50, 1000


@final
@dataclass(slots=True)
class AssembledArray:
    """An array assembled by assigning parts.

    It has: the nest that fills it, or else the first item; the earliest item for parts; the last
    nest that assigns one; and, if known, which elements are assigned.
    """

    root: int
    begun: int
    least: int
    last: int
    laid: np.ndarray[Any, Any] | None


@final
class LoweringState:
    """Items under construction, and the facts known of each value, by its number.

    A value is either a scalar equal for all elements, or has an access. The access is to memory
    only if the value is `store_value`: within a nest values are variables of the loop, and few of
    them are needed elsewhere.
    """

    def __init__(
        self,
        schedule: Schedule,
        complete: bool = False,
        limits: Limits | None = None,
        alone: bool = False,
    ) -> None:
        self.schedule, self.complete, self.limits, self.alone = schedule, complete, limits, alone
        self.longest = _LONGEST if len(schedule.steps) < _MANY else _SHORTER
        self.items: list[Item] = []
        self.types = dict(enumerate(schedule.types))
        self.constants: dict[int, Any] = {}
        # Values that are uniform: as operands, and their number in Python if it is known.
        self.numbers: dict[int, Operand] = {}
        self.exact: dict[int, Any] = {}
        self.access: dict[int, Access] = {}
        # The item that computes a value with an access.
        self.made_by: dict[int, int] = {}
        self.reduced: set[int] = set()
        # Nodes by value, and the values that nests compute again: by index of the nest and value.
        self.nodes: dict[int, Node] = {}
        self.repeated: dict[tuple[int, int], int] = {}
        self.open: dict[Shape, int] = {}
        # Index behind the last step that NumPy runs.
        self.after_numpy = 0
        self.last: dict[int, int] = {}
        # Values that other than elementwise steps read.
        others = [step.inputs for step in schedule.steps if not step.op.elementwise]
        self.whole = {*schedule.outputs, *chain.from_iterable(others)}
        self.overlaid: dict[int, AssembledArray] = {}
        # Arrays that are assembled part by part, by their first step: those that need no fill, and
        # nests at the front that fill the others.
        self.unfilled: set[int] = set()
        self.front: dict[int, int] = {}
        # What these fill: the whole, or what is around the only part.
        self.fills: dict[int, list[Any]] = {}
        # Matrix products and their sums: root value and index of the last product.
        self.sums: dict[int, tuple[int, int]] = {}
        for v in range(schedule.inputs):
            self.access[v] = whole(v, schedule.types[v].shape)

    def own_memory(self, value: int) -> int | None:
        """Return the computed root that equals `value` in row-major order, or None."""
        root = self.whole_root(value)
        is_own = root is not None and root >= self.schedule.inputs and root not in self.constants
        return root if is_own else None

    def whole_root(self, value: int) -> int | None:
        """Return the root that equals `value` in row-major order, or None."""
        access, type = self.access.get(value), self.types[value]
        if access is None or not access.is_whole(type.shape):
            return None
        return access.root if type.size == self.types[access.root].size else None

    def nest_for(self, shape: Shape, values: Sequence[int], least: int = 0) -> int:
        """Return the index of a nest over `shape` after the definitions of `values`."""
        domain = tuple([n for n in shape if n != 1])
        for v in values:
            if v in self.numbers:
                continue
            access = self.access[v]
            at = self.made_by.get(access.root, -1)
            within = self.is_within(access, shape)
            least = max(least, at if within else at + 1)
        at = self.open.get(domain, -1)
        if at < least or len(self.items[at].nodes) >= self.longest:  # type: ignore[union-attr]
            at = self.open[domain] = len(self.items)
            self.items.append(Nest(domain))
        return at

    def is_within(self, access: Access, shape: Shape) -> bool:
        """Return whether a nest over `shape` may read its own value at the same index."""
        root = access.root
        at = self.made_by.get(root, -1)
        if at < 0 or root in self.reduced or not isinstance(self.items[at], Nest):
            return False
        own = [n for n in self.types[root].shape if n != 1]
        return own == [n for n in shape if n != 1] and access.is_whole(shape)

    def operand(self, value: int, shape: Shape, at: int) -> Operand:
        """Return the operand by which the nest at `at` reads `value`, of `shape`."""
        if value in self.numbers:
            return self.numbers[value]
        access = self.access[value]
        if self.made_by.get(access.root, -1) == at and self.is_within(access, shape):
            return Operand(value=access.root)
        again = self._repeat(access, shape, at)
        if again is not None:
            return Operand(value=again)
        self.read(access.root, at)
        strides = loop_strides(access.strides, shape)
        return Operand(root=access.root, offset=access.offset, strides=strides)

    def nest(self, at: int) -> Nest:
        """Return the nest at that index."""
        nest = self.items[at]
        assert isinstance(nest, Nest)
        return nest

    def node(self, at: int, node: Node) -> None:
        self.nest(at).nodes.append(node)
        self.nodes[node.value] = node

    def compute(self, at: int, node: Node) -> None:
        """Add a node to the nest at `at`, which computes its value."""
        self.node(at, node)
        self.last_item(node.value, at)

    def new_value(self, type: TensorType, access: Access | None = None) -> int:
        """Return a value of that type, and with that access, which the schedule does not have."""
        value = len(self.types)
        self.types[value] = type
        if access is not None:
            self.access[value] = access
        return value

    def read(self, root: int, at: int) -> None:
        """Let the item at `at` read a value from memory."""
        self.store_value(root)
        self.keep(root, at)

    def keep(self, root: int, at: int) -> None:
        """Keep a value in memory until the item at `at`."""
        self.last[root] = max(at, self.last.get(root, -1))

    def _repeat(self, access: Access, shape: Shape, at: int) -> int | None:
        """Compute a value of an earlier nest again in the nest at `at`, if that is cheap."""
        root = access.root
        first = self.made_by.get(root, -1)
        if root in self.whole or not self.is_within(access, shape):
            return None
        if root in self.nest(first).stored:
            return None
        nodes = nodes_to_repeat(self.nodes, root, self.types[root])
        for node in nodes:
            if (at, node.value) in self.repeated:
                continue
            value = self.repeated[at, node.value] = self.new_value(self.types[node.value])
            operands = []
            for o in node.operands:
                if o.root >= 0:
                    self.keep(o.root, at)
                own = self.repeated.get((at, o.value))
                operands.append(o if own is None else replace(o, value=own))
            self.compute(at, replace(node, value=value, operands=tuple(operands)))
        return self.repeated[at, root] if nodes else None

    def store_value(self, root: int) -> None:
        """Store a value that is computed in a nest to memory."""
        at = self.made_by.get(root, -1)
        if at >= 0 and root not in self.reduced and isinstance(nest := self.items[at], Nest):
            nest.stored[root] = None

    def same(self, value: int, other: int) -> None:
        """Make `value` an alias of `other`."""
        if other in self.numbers:
            self.numbers[value] = self.numbers[other]
            if other in self.exact:
                self.exact[value] = self.exact[other]
        else:
            self.access[value] = self.access[other]

    def zero(self, value: int) -> int:
        """Return a value that is zero, with the dtype of `value`."""
        zero = -1 - value
        self.numbers[zero] = Operand(zero_text(self.types[value].dtype))
        return zero

    def last_item(self, value: int, at: int) -> None:
        self.access[value] = whole(value, self.types[value].shape)
        self.made_by[value] = at

    def next_item(self, step: Step, operands: Sequence[int]) -> int:
        """Return the index of a new last item, which reads `operands` and computes `step`."""
        at = len(self.items)
        for root in operands:
            self.keep(root, at)
        for value in step.outputs:
            self.last_item(value, at)
        return at

    def finish_nests(self, outputs: Sequence[int], added: Set[int] | None = None) -> Nests:
        """Return all items, with `outputs` in memory; for a block, `added` are accumulated."""
        for root in outputs:
            self.last[root] = len(self.items)
        return Nests(
            self.schedule, tuple(self.items), self.constants, tuple(outputs), self.types,
            self.last, added is not None, frozenset(added or ()),
        )  # fmt: skip


def constants_of(draft: LoweringState, body: Nests, at: int) -> dict[int, int]:
    """Add the constants of a body of the item at `at` to the constants here."""
    found: dict[int, int] = {}
    for v, array in body.constants.items():
        own = found[v] = draft.new_value(body.types[v])
        draft.constants[own] = array
        draft.last[own] = at
    return found


def copy_value(draft: LoweringState, value: int) -> int:
    """Copy a value to memory, in row-major order."""
    type = draft.schedule.types[value]
    copy = draft.new_value(type)
    at = draft.nest_for(type.shape, (value,))
    draft.compute(at, Node(None, copy, "copy", "", (draft.operand(value, type.shape, at),)))
    draft.store_value(copy)
    return copy


def copy_or_constant(draft: LoweringState, value: int) -> int:
    """Copy a value as `copy_value`, or make a constant of it if it is a known number."""
    type = draft.schedule.types[value]
    if value not in draft.exact or type.names:
        return copy_value(draft, value)
    copy = draft.new_value(type)
    draft.constants[copy] = np.full(type.shape, draft.exact[value], type.dtype)
    draft.access[copy] = whole(copy, type.shape)
    return copy


def memory_access(draft: LoweringState, value: int, at: int) -> Access:
    """Return the access by which the item at `at` reads a value in memory; copy uniform values."""
    if value in draft.numbers:
        return whole(copy_or_constant(draft, value), draft.types[value].shape)
    access = draft.access[value]
    draft.read(access.root, at)
    return access


def whole_operands(draft: LoweringState, step: Step) -> tuple[int, ...]:
    """Return roots that hold the operands in row-major order; copy those that have none."""
    operands = []
    for v in step.inputs:
        root = draft.whole_root(v)
        operands.append(copy_or_constant(draft, v) if root is None else root)
        draft.store_value(operands[-1])
    return tuple(operands)


# Arrays of fewer elements stay in the cache.
_LEAST = 1 << 14
# Maximum number of operations on an element, and of arrays that are read for it.
_OPERATIONS, _READS = 8, 2
# Maximum number of nodes of these operations, copies included.
_NODES = 16
_KINDS = ("text", "copy", "inner", "parts")


def nodes_to_repeat(nodes: Mapping[int, Node], value: int, type: TensorType) -> list[Node]:
    """Return the nodes that compute `value` from memory, in order; none if that costs too much."""
    if typical(type.size) < _LEAST:
        return []
    found = _needed_nodes(nodes, value)
    reads = {o.root for node in found for o in node.operands if o.root >= 0}
    work = sum(map(_operations, found))
    return found if work <= _OPERATIONS and len(reads) <= _READS else []


def _needed_nodes(nodes: Mapping[int, Node], value: int) -> list[Node]:
    """Return the nodes that a value needs, operands first; none if they are unknown or many."""
    found: dict[int, Node] = {}

    def collect(value: int) -> bool:
        node = nodes.get(value)
        if node is None or node.kind not in _KINDS or len(found) == _NODES:
            return False
        if not all(o.value < 0 or o.value in found or collect(o.value) for o in node.operands):
            return False
        found[value] = node
        return True

    return list(found.values()) if collect(value) else []


def _operations(node: Node) -> int:
    """Return the number of operations on an element."""
    if node.step is None or node.kind != "text":
        return 0
    size = max(typical(node.step.results[0].size), 1)
    return typical(node.step.op.flops(node.step.operands, node.step.params)) // size
