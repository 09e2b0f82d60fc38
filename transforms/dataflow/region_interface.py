"""Branches and loops seen from within: which operands and results of theirs a body has, and bodies
into which conditions are brought from around them.

A condition tells which elements of a result matter, or where the tangent of an operand may differ
from zero. In the body it becomes a mark: the same value, with a tangent that is zero elsewhere. So
what is done about partial functions within the body is what is done about them anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import Any, final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import CONTROL, cond, scan, while_loop
from primgraph.primitives.elementwise import as_another, stop_gradient
from primgraph.primitives.logic import select
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.activity import depending

# The numbers of marks, which no value of the user's has; the second kind may be infinite or NaN.
_MARK, UNSURE = -1, -2


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """What an equation with bodies brings to them, and takes from them.

    Of the operands the first `lead` are for the equation itself. Of those of the bodies the first
    are `consts`, the next `carries` go from trip to trip, and others are rows of stacks; where
    there are no trips all are constants. Results of a loop are its `carries`, and stacks; there
    may be a number of trips between these.
    """

    bodies: tuple[Graph, ...]
    lead: int
    consts: int
    carries: int
    is_loop: bool
    counts: bool
    stacks: bool

    @classmethod
    def of(cls, eqn: Equation) -> Frame:
        assert eqn.op in CONTROL
        params = eqn.kwargs
        if eqn.op is scan:
            consts, carries = params["consts"], params["carries"]
            stacks = not is_open((params["length"],))
            return cls((params["body"],), params["counted"], consts, carries, True, False, stacks)
        if eqn.op is while_loop:
            consts = params["consts"]
            carries = len(eqn.inputs) - consts
            return cls((params["body"],), 0, consts, carries, True, True, False)
        lead = int(eqn.op is cond)
        return cls(eqn.bodies, lead, len(eqn.inputs) - lead, 0, False, False, True)

    def result(self, k: int) -> int:
        """The place among results of what stands at `k` among those of a body."""
        return k + 1 if self.counts and k >= self.carries else k

    def kept(self, place: int) -> int | None:
        """The place among results of a body of what stands at `place` among those of the equation;
        None for the number of trips."""
        if self.counts and place == self.carries:
            return None
        return place - 1 if self.counts and place > self.carries else place

    def is_carried(self, k: int) -> bool:
        """Whether the result of a body at `k` is carried on."""
        return k < self.carries

    def is_row(self, i: int) -> bool:
        """Whether the input of a body at `i` is a row of a stack."""
        return i >= self.consts + self.carries

    def active(self, present: Collection[int]) -> list[int]:
        """The positions of inputs that carry derivatives in some trip, of those in the first."""
        found = set(present)
        while True:
            more: set[int] = set()
            for body in self.bodies if self.is_loop else ():
                reached = depending(body, [body.inputs[i] for i in sorted(found)])
                more |= {self.consts + k for k in range(self.carries) if body.outputs[k] in reached}
            if more <= found:
                return sorted(found)
            found |= more


@final
@dataclass(slots=True)
class Entry:
    """Conditions on their way into the bodies of an equation: what stands there for each.

    Those in `fixed` are the same in every trip, `rows` are stacks, of which each trip has a row.
    `present` has what an only body takes anyway.
    """

    fixed: dict[Value, Value] = field(default_factory=dict)
    rows: dict[Value, Value] = field(default_factory=dict)
    present: dict[tuple[Value, bool], Value] = field(default_factory=dict)

    def of(self, condition: Value, row: bool) -> Value:
        """What stands for `condition` within."""
        if (condition, row) in self.present:
            return self.present[condition, row]
        known = self.rows if row else self.fixed
        if condition not in known:
            type = condition.type
            known[condition] = Value(TensorType(type.shape[1:], type.dtype) if row else type)
        return known[condition]

    def source(self, inner: Value) -> tuple[Value, bool] | None:
        """What `inner` stands for, and whether it is a row of that."""
        for known, row in ((self.fixed, False), (self.rows, True)):
            for outer, value in known.items():
                if value is inner:
                    return outer, row
        return None


@final
@dataclass(frozen=True, slots=True)
class Repeated:
    """A condition that is repeated along `new_axes` of what it is about; of a row, if it is a stack
    of conditions on rows."""

    condition: Value
    new_axes: tuple[int, ...] = ()

    def is_stack(self, value: Value) -> bool:
        """Whether there is one condition for each row, of which `value` is one."""
        return len(self.condition.shape) + len(self.new_axes) > len(value.shape)


@final
@dataclass(frozen=True, slots=True)
class Opening:
    """Conditions to be brought into the bodies of an equation.

    `matters` has those of results, by their places in the bodies, `differs` that of operands. Where
    these are stacks, the conditions are such, too, or the same for each row; those on what goes
    from trip to trip may differ from trip to trip in the same way. Results of bodies at `unused`
    are asked for by nobody, and inputs at `unsure` may be infinite or NaN.
    """

    matters: Mapping[int, Sequence[Repeated]] = field(default_factory=dict)
    differs: Mapping[int, Value] = field(default_factory=dict)
    unused: frozenset[int] = frozenset()
    unsure: frozenset[int] = frozenset()

    @property
    def conditions(self) -> list[Value]:
        matters = chain.from_iterable(self.matters.values())
        return [*[c.condition for c in matters], *self.differs.values()]

    def joined(self, other: Opening) -> Opening:
        return Opening(
            {**self.matters, **other.matters},
            {**self.differs, **other.differs},
            self.unused | other.unused,
            self.unsure | other.unsure,
        )


NONE = Opening()


@final
@dataclass(frozen=True, slots=True)
class Marked:
    """Bodies with marks, and what has come in for them."""

    frame: Frame
    entry: Entry
    bodies: tuple[Graph, ...]

    def inserted(
        self, values: Sequence[Any], fixed: Sequence[Any], rows: Sequence[Any]
    ) -> list[Any]:
        """Constants, carries and rows, each group with its conditions behind it."""
        consts, begin = self.frame.consts, self.frame.consts + self.frame.carries
        return [*values[:consts], *fixed, *values[consts:begin], *values[begin:], *rows]


def marked(eqn: Equation, opening: Opening, outputs: Collection[int] | None = None) -> Marked:
    """The bodies of `eqn` with marks; of their results only those at `outputs`, if these are given.

    The inputs of the bodies stay what they are.
    """
    frame, entry = Frame.of(eqn), Entry()
    if frame.is_loop:
        operands = eqn.inputs[frame.lead :]
        entry.present.update(
            ((operands[i], frame.is_row(i)), v)
            for i, v in enumerate(frame.bodies[0].inputs)
            if not frame.consts <= i < frame.consts + frame.carries
        )
    own = frame.bodies[0]
    behind = {
        k: [
            Repeated(entry.of(c.condition, c.is_stack(own.outputs[k])), c.new_axes)
            for c in conditions
        ]
        for k, conditions in opening.matters.items()
    }
    before = {i: entry.of(c, c.shape != own.inputs[i].shape) for i, c in opening.differs.items()}
    found = Marked(frame, entry, ())
    bodies = [_marked(found, body, behind, before, outputs, eqn, opening) for body in frame.bodies]
    return replace(found, bodies=tuple(bodies))


def _marked(
    marked: Marked,
    body: Graph,
    behind: Mapping[int, Sequence[Repeated]],
    before: Mapping[int, Value],
    outputs: Collection[int] | None,
    eqn: Equation,
    opening: Opening,
) -> Graph:
    builder = Builder(body.name, eqn.source or NOWHERE)
    entry = marked.entry
    for value in marked.inserted(body.inputs, [*entry.fixed.values()], [*entry.rows.values()]):
        builder.share_input(value)
    with builder:
        moved = {body.inputs[i]: _mark(body.inputs[i], c) for i, c in before.items()}
        for i in sorted(opening.unsure):
            value = body.inputs[i]
            moved[value] = _noted(value, moved.get(value, value), UNSURE)
        builder.add_all(body.body, moved, builder.share)
        ends = [
            _cut(moved.get(v, v))
            if k in opening.unused
            else reduce(_marked_within, behind.get(k, ()), moved.get(v, v))
            for k, v in enumerate(body.outputs)
            if outputs is None or k in outputs
        ]
    return builder.graph(ends)


def _marked_within(value: Value, where: Repeated) -> Value:
    condition = where.condition
    if where.new_axes:
        condition = broadcast(condition, shape=value.shape, new_axes=where.new_axes)
    return _mark(value, condition)


def _mark(value: Value, condition: Value) -> Value:
    """`value`, with a tangent only where `condition` holds."""
    return _noted(value, select(condition, value, zeros_like(value)))


def _cut(value: Value) -> Value:
    """`value`, without a tangent."""
    return _noted(value, stop_gradient(value)) if value.type.is_inexact else value


def _noted(value: Value, other: Value, number: int = _MARK) -> Value:
    """`value`, with the tangent of `other`."""
    found: Value = as_another(stop_gradient(value), other, number=number)
    return found


def is_mark(eqn: Equation) -> bool:
    """Whether `eqn` marks a value for the derivative that is being taken."""
    return eqn.op is as_another and eqn.kwargs["number"] in (_MARK, UNSURE)


def opened(eqn: Equation, opening: Opening) -> tuple[Equation, list[int]]:
    """`eqn` with marks in its bodies and the conditions of these among its operands, and where its
    own operands stand now."""
    found = marked(eqn, opening)
    frame, entry = found.frame, found.entry
    fixed, rows = [*entry.fixed], [*entry.rows]
    values = eqn.inputs[frame.lead :]
    inputs = [*eqn.inputs[: frame.lead], *found.inserted(values, fixed, rows)]
    order = found.inserted(range(len(values)), [None] * len(fixed), [None] * len(rows))
    places = [*range(frame.lead)] + [frame.lead + order.index(i) for i in range(len(values))]
    params = eqn.kwargs
    if eqn.op is cond:
        params["branches"] = found.bodies
    else:
        (params["body"],) = found.bodies
    if frame.is_loop:
        params["consts"] += len(fixed)
    if eqn.op is while_loop:
        test = params["test"]
        ignored = [Value(c.type) for c in fixed]
        asked = found.inserted(test.inputs, ignored, [])
        params["test"] = Graph(asked, test.body, test.outputs, test.name)
    return (
        Equation(eqn.op, tuple(inputs), freeze_all(params.items()), eqn.outputs, eqn.source),
        places,
    )
