"""Loop nests: elementwise steps, sums and extrema over one set of indices, that run together.

Steps become items in an order of their own. A nest runs over the indices of a shape, without axes
of one element; within it values are single numbers, and only what others read is left in memory.
A product of matrices is an item too, and what this back end cannot spell stays outside, a step
each. Nothing is decided after this but how it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.codegen.native.access import Access, row_major, viewed, whole
from primgraph.codegen.native.spellings import FUNCTIONS, SPELLINGS, c_type, literal
from primgraph.codegen.native.spellings import zero as zero_text
from primgraph.codegen.plan.schedule import Schedule, Step, schedule
from primgraph.ir.dims import TRIPS
from primgraph.ir.types import Shape, TensorType
from primgraph.primitives.constants import full
from primgraph.primitives.control import scan, while_loop
from primgraph.primitives.linalg import matmul
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from primgraph.primitives.shapes import concat, pad, slice_assign

REDUCTIONS = {reduce_sum: "sum", reduce_prod: "prod", reduce_max: "max", reduce_min: "min"}

# Nests grow no longer than this: compilers take more than linear time for one function.
_LONGEST = 400


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """What an element of a nest is computed from: a number, a value of the nest, or memory.

    `text` is a number in C, `value` one that the nest has computed at the same place; `strides`
    go with the axes of the nest.
    """

    text: str = ""
    value: int = -1
    root: int = -1
    offset: int = 0
    strides: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Node:
    """The elements of one value.

    `kind` is "text", an expression in `operands`; "call", a function of the runtime; "copy", what
    an operand is; "put", an operand left in memory, at `offset` and `strides` of a larger value; or
    a reduction, whose result, of other axes, is in memory at `strides`.
    """

    step: Step | None
    value: int
    kind: str
    name: str
    operands: tuple[Operand, ...]
    strides: tuple[int, ...] = ()
    offset: int = 0


@final
@dataclass(slots=True)
class Nest:
    """`nodes` for all indices in `domain`. `stored` are values that are left in memory."""

    domain: Shape
    nodes: list[Node] = field(default_factory=list)
    stored: dict[int, None] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Product:
    """The product of two stacks of matrices."""

    step: Step
    value: int
    left: Access
    right: Access


@final
@dataclass(frozen=True, slots=True)
class Control:
    """A branch or loop, with the items of its bodies.

    `operands` are in memory as a whole, and so is what each body takes and gives. `constants` has
    for each body the values here that are its constants.
    """

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]
    bodies: tuple[Nests, ...]
    constants: tuple[Mapping[int, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Outside:
    """A step that NumPy does."""

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]


Item: TypeAlias = Nest | Product | Control | Outside


@final
@dataclass(frozen=True, slots=True)
class Nests:
    """The items that compute the outputs of a schedule, in order.

    `constants` are arrays by the value that they are; `outputs` what is in memory as a whole.
    `last` tells, of what is in memory, the last item that reads it.
    """

    schedule: Schedule
    items: tuple[Item, ...]
    constants: Mapping[int, Any]
    outputs: tuple[int, ...]
    types: Mapping[int, TensorType]
    last: Mapping[int, int]


def nests(steps: Schedule) -> Nests:
    """What computes the outputs of `steps`, a schedule of known extents."""
    return _Fusion(steps).made()


@final
class _Fusion:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.items: list[Item] = []
        self.types = dict(enumerate(schedule.types))
        self.constants: dict[int, Any] = {}
        # Numbers, as C writes them, that all elements of a value are.
        self.numbers: dict[int, str] = {}
        self.access: dict[int, Access] = {}
        # The item that computes a value that is somewhere in memory, or would be.
        self.made_by: dict[int, int] = {}
        self.reduced: set[int] = set()
        self.open: dict[Shape, int] = {}
        # Behind the last step of NumPy's.
        self.after_numpy = 0
        self.last: dict[int, int] = {}
        for v in range(schedule.inputs):
            self.access[v] = whole(v, schedule.types[v].shape)

    def made(self) -> Nests:
        for step in self.schedule.steps:
            self.add(step)
        outputs: list[int] = []
        for v in self.schedule.outputs:
            root = self.own_memory(v)
            outputs.append(self.copied(v) if root is None or root in outputs else root)
            self.stored(outputs[-1])
        for root in outputs:
            self.last[root] = len(self.items)
        items = tuple(self.items)
        return Nests(self.schedule, items, self.constants, tuple(outputs), self.types, self.last)

    def own_memory(self, value: int) -> int | None:
        """What is computed here and is `value`, as a whole and in its order, if there is that."""
        access = self.access.get(value)
        if access is None or access.root < self.schedule.inputs or access.root in self.constants:
            return None
        type = self.types[value]
        whole = access.is_whole(type.shape) and type.size == self.types[access.root].size
        return access.root if whole else None

    def add(self, step: Step) -> None:
        op, form = step.op, step.form
        if op is full and c_type(form.results[0].dtype):
            type = form.results[0]
            self.numbers[step.outputs[0]] = literal(step.params["value"], type.dtype)
        elif op.literal:
            value = step.outputs[0]
            data = op.impl(**step.params)
            self.constants[value] = np.ascontiguousarray(data)
            self.access[value] = whole(value, form.results[0].shape)
        elif form.seen:
            self.see(step)
        elif op in (pad, slice_assign, concat):
            self.join(step)
        elif not all(c_type(t.dtype) for t in (*form.operands, *form.results)):
            self.outside(step)
        elif op in SPELLINGS or op in FUNCTIONS:
            self.compute(step)
        elif op in REDUCTIONS and form.operands[0].dtype == form.results[0].dtype:
            self.reduce(step)
        elif op.has_bodies and (bodies := _bodies(step)) is not None:
            self.control(step, bodies)
        elif op is matmul and form.operands[0].dtype.kind == "f":
            self.multiply(step)
        else:
            self.outside(step)

    # Views.

    def see(self, step: Step) -> None:
        source = step.inputs[0]
        for k, value in enumerate(step.outputs):
            if source in self.numbers:
                self.numbers[value] = self.numbers[source]
                continue
            found = viewed(self.access[source], step, k)
            if found is None:
                copy = self.copied(source)
                found = viewed(whole(copy, step.operands[0].shape), step, k)
                assert found is not None
            self.access[value] = found

    # Nests.

    def compute(self, step: Step) -> None:
        shape, value = step.results[0].shape, step.outputs[0]
        name = FUNCTIONS.get(step.op, "")
        double = step.results[0].dtype.kind == "f"
        if name and not double:
            self.outside(step)
            return
        if not name and SPELLINGS[step.op](["x"] * len(step.inputs), step) is None:
            self.outside(step)
            return
        at, _ = self.nest_for(shape, step.inputs)
        operands = tuple([self.operand(v, shape, at) for v in step.inputs])
        self.node(at, Node(step, value, "call" if name else "text", name, operands))
        self.access[value] = whole(value, shape)
        self.made_by[value] = at

    def reduce(self, step: Step) -> None:
        (x,), (value,), axes = step.inputs, step.outputs, step.params["axes"]
        shape, result = step.operands[0].shape, step.results[0].shape
        if step.operands[0].dtype.kind == "b":
            self.outside(step)
            return
        at, _ = self.nest_for(shape, (x,))
        kept = iter(row_major(result))
        strides = [0 if i in axes else next(kept) for i in range(len(shape))]
        along = tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])
        operand = self.operand(x, shape, at)
        self.node(at, Node(step, value, REDUCTIONS[step.op], "", (operand,), along))
        self.access[value] = whole(value, result)
        self.made_by[value] = at
        self.reduced.add(value)

    def join(self, step: Step) -> None:
        """Leave operands in parts of the result."""
        (value,), shape, p = step.outputs, step.results[0].shape, step.params
        strides, at = row_major(shape), -1
        if step.op is concat:
            start = 0
            for v, type in zip(step.inputs, step.operands, strict=True):
                at = max(at, self.put(value, v, type.shape, start * strides[p["axis"]], strides))
                start += type.shape[p["axis"]]
        elif step.op is pad:
            (x,), (type,) = step.inputs, step.operands
            zero = -1 - value
            self.numbers[zero] = zero_text(type.dtype)
            first = self.put(value, zero, shape, 0, strides)
            offset = sum(n * s for n, s in zip(p["low"], strides, strict=True))
            at = self.put(value, x, type.shape, offset, strides, first + 1)
        else:
            (x, y), (_, type) = step.inputs, step.operands
            first = self.put(value, x, shape, 0, strides)
            offset = sum(n * s for n, s in zip(p["starts"], strides, strict=True))
            by = tuple([n * s for n, s in zip(p["steps"], strides, strict=True)])
            at = self.put(value, y, type.shape, offset, by, first + 1)
        self.access[value] = whole(value, shape)
        self.made_by[value] = at
        self.reduced.add(value)
        self.last[value] = max(at, self.last.get(value, -1))

    def put(
        self,
        value: int,
        part: int,
        shape: Shape,
        offset: int,
        strides: Sequence[int],
        least: int = 0,
    ) -> int:
        """Leave `part`, of `shape`, in memory that is a part of `value`; in which nest."""
        # All parts are put by one function of C.
        at, _ = self.nest_for(shape, (part,), max(least, self.after_numpy))
        operand = self.operand(part, shape, at)
        along = tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])
        self.node(at, Node(None, value, "put", "", (operand,), along, offset))
        return at

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

    def node(self, at: int, node: Node) -> None:
        nest = self.items[at]
        assert isinstance(nest, Nest)
        nest.nodes.append(node)

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

    # What is no nest.

    def multiply(self, step: Step) -> None:
        at = len(self.items)
        left, right = (self.in_memory(v, at) for v in step.inputs)
        self.last_item(step.outputs[0], at)
        self.items.append(Product(step, step.outputs[0], left, right))

    def in_memory(self, value: int, at: int) -> Access:
        if value in self.numbers:
            return whole(self.copied_before(value), self.types[value].shape)
        access = self.access[value]
        self.stored(access.root)
        self.last[access.root] = max(at, self.last.get(access.root, -1))
        return access

    def copied_before(self, value: int) -> int:
        """As `copied`; a constant of its own for a number."""
        type, copy = self.schedule.types[value], len(self.types)
        self.types[copy] = type
        number = self.schedule_number(value)
        self.constants[copy] = np.full(type.shape, number, type.dtype)
        self.access[copy] = whole(copy, type.shape)
        return copy

    def schedule_number(self, value: int) -> Any:
        made = {v: s for s in self.schedule.steps for v in s.outputs}
        step = made[value]
        while step.op is not full:
            step = made[step.inputs[0]]
        return step.params["value"]

    def last_item(self, value: int, at: int) -> None:
        self.access[value] = whole(value, self.types[value].shape)
        self.made_by[value] = at

    def outside(self, step: Step) -> None:
        operands = self.whole_operands(step)
        self.after_numpy = self.next_item(step, operands) + 1
        self.items.append(Outside(step, step.outputs, operands))

    def control(self, step: Step, bodies: Sequence[Nests]) -> None:
        constants = []
        for body in bodies:
            found: dict[int, int] = {}
            for v, array in body.constants.items():
                own = found[v] = len(self.types)
                self.types[own] = body.types[v]
                self.constants[own] = array
            constants.append(found)
        operands = self.whole_operands(step)
        at = self.next_item(step, operands)
        for found in constants:
            self.last.update(dict.fromkeys(found.values(), at))
        self.items.append(Control(step, step.outputs, operands, tuple(bodies), tuple(constants)))

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


def _bodies(step: Step) -> list[Nests] | None:
    """The items of the bodies of a branch or loop; None where one is not for this back end."""
    p = step.params
    # A loop along stacks that grow may be left with none of them.
    if (step.op is while_loop and p["limit"] is None) or (step.op is scan and p["length"] is TRIPS):
        return None
    graphs = [p["test"], p["body"]] if step.op is while_loop else step.eqn.bodies
    found = [nests(schedule(body)) for body in graphs]
    items = [item for body in found for item in body.items]
    return None if any(isinstance(item, Outside) for item in items) else found
