"""Expansion of a graph of small arrays into arithmetic of their elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, final

import numpy as np

from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.ir.types import BOOL, FLOAT64, TensorType
from primgraph.ir.views import Slice
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import REDUCES

# Expressions of the elements of a value, in an array of its shape.
Elements: TypeAlias = "np.ndarray[Any, Any]"

# Largest size of a value.
MOST_ELEMENTS = 100
# The time of a reduction, a matrix product, a function of LAPACK, and a function of several calls,
# in calls of elementwise functions.
_REDUCTION, _PRODUCT, _LAPACK, _HELPER = 3, 2, 14, 6


class Form(Protocol):
    """How a card computes elements: see `Scalar` of `codegen/ops/spelling/scalar.py`."""

    @property
    def elements(self) -> Any: ...


def is_small(types: Iterable[TensorType]) -> bool:
    """Return whether all types are of few floats or booleans, at least one."""
    return all(
        t.dtype in (FLOAT64, BOOL) and not t.is_larger(MOST_ELEMENTS) and bool(t.size)
        for t in set(types)
    )


@final
class Expansion:
    """The elements of the values of a schedule, as expressions that `numbers` creates.

    `calls` counts the array operations that they replace.
    """

    __slots__ = ("_reversed", "calls", "cards", "elements", "numbers", "schedule")

    def __init__(self, schedule: Schedule, cards: Mapping[Any, Any], numbers: Numbers) -> None:
        self.schedule, self.cards, self.numbers = schedule, cards, numbers
        self.elements: dict[int, Elements] = {}
        self.calls = 0
        # Values whose elements may be in reverse memory order.
        self._reversed: set[int] = set()

    def set_variables(self, value: int, names: Sequence[str]) -> None:
        """Let variables of these names be the elements of a value."""
        self.numbers.step, self.numbers.unsigned = -1, False
        variables = [self.numbers.variable(name) for name in names]
        self.elements[value] = as_elements(variables, self.schedule.types[value])

    def add_steps(self) -> bool:
        """Compute the elements of all steps; return whether that is possible."""
        return all(self._add(i, step) for i, step in enumerate(self.schedule.steps))

    def results(self) -> list[list[Number]]:
        """Return the elements of each output, in order."""
        return [self.elements[v].ravel().tolist() for v in self.schedule.outputs]

    def _add(self, i: int, step: Step) -> bool:
        card = self.cards.get(step.op)
        form = None if card is None else card.scalar
        if form is None:
            return False
        operands = [self.elements[v] for v in step.inputs]
        self.calls += _calls(step, card)
        if form.elements is None:
            self.elements.update(zip(step.outputs, _move_elements(step, operands), strict=True))
            if _turns(step) or not self._reversed.isdisjoint(step.inputs):
                self._reversed.update(step.outputs)
            return True
        in_order = not step.inputs or step.inputs[0] not in self._reversed
        self.numbers.step, self.numbers.unsigned = i, step.is_derived
        found = form.elements(step, operands, in_order, self.numbers)
        if found is None:
            return False
        self.elements[step.outputs[0]] = as_elements(found, step.results[0])
        return True


def _calls(step: Step, card: Any) -> int:
    """Return the number of calls of elementwise functions that take as long as the step."""
    if step.op.literal or step.op.is_view:
        return 0
    if step.op.fact(REDUCES):
        return _REDUCTION
    if step.op.fact(CONTRACTS):
        return _PRODUCT
    return _LAPACK if card.fallible else _HELPER if card.helper else 1


def _move_elements(step: Step, operands: Sequence[Elements]) -> list[Elements]:
    """Return the elements of a step that moves elements, by evaluating it on indices."""
    numbers = np.concatenate([x.ravel() for x in operands])
    ends = np.cumsum([x.size for x in operands])
    places = [
        np.arange(end - x.size, end).reshape(x.shape) for x, end in zip(operands, ends, strict=True)
    ]
    taken = step.op.impl(*places, **step.params)
    taken = taken if step.op.multiple else [taken]
    pairs = zip(taken, step.results, strict=True)
    return [as_elements(numbers[np.ravel(found)].tolist(), type) for found, type in pairs]


def as_elements(numbers: Sequence[Number], type: TensorType) -> Elements:
    """Return expressions in an array of the shape of `type`."""
    made = np.empty(type.size, object)
    made[:] = numbers
    return made.reshape(type.shape)


def _turns(step: Step) -> bool:
    """Return whether a result has its elements in the reverse order of the operand's."""
    ranges = [r for how in step.form.seen if isinstance(how, Slice) for r in how.ranges]
    return any(r[2] < 0 for r in ranges) or any(n < 0 for n in step.params.get("steps", ()))
