"""Interface of the bodies of branches and loops: operands, results, and conditions passed in.

A condition tells which elements of a result matter, or where the tangent of an operand is nonzero.
In the body it becomes a mark: the same value, with a tangent that is masked by the condition.
Masking within a body then works as in any graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from itertools import chain
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import EXTENDED, Regions
from primgraph.primitives.elementwise import UNSURE, as_another, stop_gradient
from primgraph.primitives.logic import select
from primgraph.primitives.shapes import broadcast

# The number of marks, which user values never have. `UNSURE` marks values that may be infinite or
# NaN.
_MARK = -1


@final
@dataclass(slots=True)
class ConditionInputs:
    """Body inputs that stand for conditions passed into the bodies of an equation.

    Conditions in `fixed` are loop-invariant; those in `rows` are stacks, with one row per
    iteration. `present` maps operands that a single body already has as inputs.
    """

    fixed: dict[Value, Value] = field(default_factory=dict)
    rows: dict[Value, Value] = field(default_factory=dict)
    present: dict[tuple[Value, bool], Value] = field(default_factory=dict)

    def body_input(self, condition: Value, row: bool) -> Value:
        """Return the body input that stands for `condition`."""
        if (condition, row) in self.present:
            return self.present[condition, row]
        known = self.rows if row else self.fixed
        if condition not in known:
            type = condition.type
            known[condition] = Value(TensorType(type.shape[1:], type.dtype) if row else type)
        return known[condition]

    def source(self, inner: Value) -> tuple[Value, bool] | None:
        """Return the condition that `inner` stands for, and whether `inner` is a row of it."""
        for known, row in ((self.fixed, False), (self.rows, True)):
            for outer, value in known.items():
                if value is inner:
                    return outer, row
        return None


@final
@dataclass(frozen=True, slots=True)
class Repeated:
    """A condition to be broadcast along `new_axes` of its value, or a stack of such conditions."""

    condition: Value
    new_axes: tuple[int, ...] = ()

    def is_stack(self, value: Value) -> bool:
        """Return whether this is a stack with one condition for each row `value`."""
        return len(self.condition.shape) + len(self.new_axes) > len(value.shape)


@final
@dataclass(frozen=True, slots=True)
class BodyConditions:
    """Conditions to be passed into the bodies of an equation.

    `matters` has conditions on body results, `differs` conditions on body inputs. For stacks these
    are stacks too, or one condition for all rows; conditions on carries may vary by iteration in
    the same way. Body results at `unused` have no use, and inputs at `unsure` may be infinite or
    NaN.
    """

    matters: Mapping[int, Sequence[Repeated]] = field(default_factory=dict)
    differs: Mapping[int, Value] = field(default_factory=dict)
    unused: frozenset[int] = frozenset()
    unsure: frozenset[int] = frozenset()

    @property
    def conditions(self) -> list[Value]:
        matters = chain.from_iterable(self.matters.values())
        return [*[c.condition for c in matters], *self.differs.values()]

    def merge_openings(self, other: BodyConditions) -> BodyConditions:
        return BodyConditions(
            {**self.matters, **other.matters},
            {**self.differs, **other.differs},
            self.unused | other.unused,
            self.unsure | other.unsure,
        )


NONE = BodyConditions()


@final
@dataclass(frozen=True, slots=True)
class MarkedBodies:
    """Bodies with marks, and the inputs that were added for them."""

    regions: Regions
    entry: ConditionInputs
    bodies: tuple[Graph, ...]

    def insert_conditions(
        self, values: Sequence[Any], fixed: Sequence[Any], rows: Sequence[Any]
    ) -> list[Any]:
        """Insert conditions after the constants (`fixed`) and after the rows (`rows`)."""
        consts, begin = self.regions.consts, self.regions.consts + self.regions.carries
        return [*values[:consts], *fixed, *values[consts:begin], *values[begin:], *rows]


def mark_bodies(
    eqn: Equation,
    opening: BodyConditions,
    outputs: Collection[int] | None = None,
    bodies: Sequence[Graph] | None = None,
) -> MarkedBodies:
    """Mark `bodies` of `eqn` (default: all); keep only the body results at `outputs`, if given.

    The bodies keep their own input values.
    """
    regions, entry = Regions.from_equation(eqn), ConditionInputs()
    if regions.is_loop:
        operands = eqn.inputs[regions.lead :]
        entry.present.update(
            ((operands[i], regions.is_row(i)), v)
            for i, v in enumerate(regions.bodies[0].inputs)
            if not regions.consts <= i < regions.consts + regions.carries
        )
    own = regions.bodies[0]
    behind = {
        k: [
            Repeated(entry.body_input(c.condition, c.is_stack(own.outputs[k])), c.new_axes)
            for c in conditions
        ]
        for k, conditions in opening.matters.items()
    }
    before = {
        i: entry.body_input(c, c.shape != own.inputs[i].shape) for i, c in opening.differs.items()
    }
    found = MarkedBodies(regions, entry, ())
    given = regions.bodies if bodies is None else bodies
    done = [_mark_body(found, body, behind, before, outputs, eqn, opening) for body in given]
    return replace(found, bodies=tuple(done))


def _mark_body(
    marked: MarkedBodies,
    body: Graph,
    behind: Mapping[int, Sequence[Repeated]],
    before: Mapping[int, Value],
    outputs: Collection[int] | None,
    eqn: Equation,
    opening: BodyConditions,
) -> Graph:
    builder = Builder(body.name, eqn.source or NOWHERE)
    entry = marked.entry
    for value in marked.insert_conditions(
        body.inputs, [*entry.fixed.values()], [*entry.rows.values()]
    ):
        builder.share_input(value)
    with builder:
        moved = {body.inputs[i]: _mark(body.inputs[i], c) for i, c in before.items()}
        for i in sorted(opening.unsure):
            value = body.inputs[i]
            moved[value] = _attach_tangent(value, moved.get(value, value), UNSURE)
        builder.add_all(body.body, moved, shared=True)
        ends = [
            _stop_tangent(moved.get(v, v))
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
    """Return `value` with its tangent masked by `condition`."""
    return _attach_tangent(value, select(condition, value, zeros_like(value)))


def _stop_tangent(value: Value) -> Value:
    """Return `value` without a tangent."""
    return _attach_tangent(value, stop_gradient(value)) if value.type.is_inexact else value


def _attach_tangent(value: Value, other: Value, number: int = _MARK) -> Value:
    """Return `value` with the tangent of `other`."""
    found: Value = as_another(stop_gradient(value), other, number=number)
    return found


def is_mark(eqn: Equation) -> bool:
    """Return whether `eqn` is a mark of the derivative that is being computed."""
    return bool(eqn.op.own_slope) and eqn.kwargs.get("number") in (_MARK, UNSURE)


def add_condition_operands(eqn: Equation, opening: BodyConditions) -> tuple[Equation, list[int]]:
    """Return `eqn` with marked bodies and conditions as operands, and the new operand positions."""
    found = mark_bodies(eqn, opening)
    lead, entry = found.regions.lead, found.entry
    fixed, rows = [*entry.fixed], [*entry.rows]
    values = eqn.inputs[lead:]
    inputs = [*eqn.inputs[:lead], *found.insert_conditions(values, fixed, rows)]
    order = found.insert_conditions(range(len(values)), [None] * len(fixed), [None] * len(rows))
    places = [*range(lead)] + [lead + order.index(i) for i in range(len(values))]
    extended = eqn.op.fact(EXTENDED)
    assert extended is not None
    params = freeze_all(extended(found.bodies, [c.type for c in fixed], **eqn.kwargs).items())
    return Equation(eqn.op, tuple(inputs), params, eqn.outputs, eqn.source), places
