"""Loop rerolling: one computation of vectors for a stack of numbers that were computed alike.

A Python loop such as `np.array([x[i] ** 2 + x[i + 1] for i in range(n)])` records some equations
for each number. Where many numbers of a stack have the same form, they become one vector: operands
that all share are broadcast, elements of one array are gathered, constants are one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Value
from primgraph.ir.params import bits
from primgraph.ir.primitive import Primitive
from primgraph.primitives.constants import constant_op
from primgraph.primitives.indexing import gather
from primgraph.primitives.shapes import broadcast, concat, reshape, slice_

# Minimum count of numbers in a stack, and of those with one form, for which vectors pay off.
LEAST = 32
_LEAST_ALIKE = 8
# Maximum depth of a form.
_DEEPEST = 64


@final
class _Stack:
    """Numbers of a builder that are stacked, with the form of each value that they are made of.

    A form is a number: equal forms have the same operations on elements of the same arrays.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._forms: dict[Value, tuple[int, int]] = {}
        self._known: dict[Any, int] = {}
        self._vectors: dict[tuple[Value, ...], Value] = {}

    def form(self, value: Value) -> int:
        """Return the form of a number."""
        waiting = [value]
        while waiting:
            last = waiting[-1]
            operands = self._operands(last)
            missing = [v for v in operands if v not in self._forms]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            self._forms[last] = self._form(last, operands)
        return self._forms[value][0]

    def _operands(self, value: Value) -> tuple[Value, ...]:
        """Return the numbers that a number is computed from by an elementwise function."""
        eqn = self._builder.definition(value)
        if eqn is None or len(eqn.outputs) > 1 or not isinstance(eqn.op, Primitive):
            return ()
        is_number = all(_is_number(v) for v in eqn.inputs)
        return eqn.inputs if is_number and (eqn.op.elementwise or eqn.op.is_view) else ()

    def _form(self, value: Value, operands: tuple[Value, ...]) -> tuple[int, int]:
        """Return the form of a number, whose operands have theirs, and its depth."""
        eqn = self._builder.definition(value)
        if operands and eqn is not None:
            if eqn.op.is_view:
                return self._forms[operands[0]]
            found = [self._forms[v] for v in operands]
            depth = 1 + max(d for _, d in found)
            if depth <= _DEEPEST:
                return self._number(eqn.op, bits(eqn.params), *[f for f, _ in found]), depth
        elif eqn is not None and _is_element(eqn):
            return self._number("element", eqn.inputs[0]), 0
        elif eqn is not None and eqn.is_known:
            return self._number("constant", value.dtype), 0
        return self._number("other", value), 0

    def _number(self, *key: Any) -> int:
        return self._known.setdefault(key, len(self._known))

    def vector(self, column: tuple[Value, ...]) -> Value:
        """Return the vector of numbers of one form."""
        column = tuple(map(self._plain, column))
        found = self._vectors.get(column)
        if found is None:
            found = self._vectors[column] = self._compute(column)
        return found

    def _plain(self, value: Value) -> Value:
        """Return the number that this one is a view of."""
        eqn = self._builder.definition(value)
        while eqn is not None and eqn.op.is_view and self._operands(value):
            value = eqn.inputs[0]
            eqn = self._builder.definition(value)
        return value

    def _compute(self, column: tuple[Value, ...]) -> Value:
        count = len(column)
        if column.count(column[0]) == count:
            number = self.reshaped(column[0])
            return self.emit(broadcast, [number], shape=(count,), new_axes=(0,))
        equations = [self._builder.definition(v) for v in column]
        first = equations[0]
        assert first is not None
        if self._operands(column[0]):
            operands = zip(*[e.inputs for e in equations if e is not None], strict=True)
            return self.emit(first.op, [*map(self.vector, operands)], **first.kwargs)
        if first.is_known:
            numbers = [e.number if e.array is None else e.array for e in equations if e is not None]
            op, params = constant_op(np.array(numbers, column[0].dtype).reshape(count))
            return self.emit(op, [], **params)
        return self._elements(first.inputs[0], [_index(e) for e in equations if e is not None])

    def _elements(self, array: Value, places: list[int]) -> Value:
        """Return elements of an array by their numbers in row-major order."""
        flat = self.reshaped(array, array.type.size)
        step = places[1] - places[0]
        if step > 0 and places == [*range(places[0], places[-1] + 1, step)]:
            params = {"starts": (places[0],), "sizes": (len(places),), "steps": (step,)}
            return self.emit(slice_, [flat], **params)
        op, params = constant_op(np.array(places))
        return self.emit(gather, [flat, self.emit(op, [], **params)], axis=0)

    def reshaped(self, value: Value, *shape: int) -> Value:
        """Return the elements of a value in another shape."""
        return value if value.shape == shape else self.emit(reshape, [value], shape=shape)

    def emit(self, op: Any, operands: Sequence[Value], **params: Any) -> Value:
        """Record an equation with one result."""
        return self._builder.emit(op, operands, params)[0]


def reroll(builder: Any, numbers: Sequence[Value]) -> Value | None:
    """Return the vector of numbers, of which most are computed alike; None if they are not.

    The numbers are values of a builder, of one dtype and of shape ().
    """
    if len(numbers) < LEAST or not isinstance(builder, Builder) or not _is_number(numbers[0]):
        return None
    stack, groups = _Stack(builder), dict[int, list[int]]()
    for place, value in enumerate(numbers):
        groups.setdefault(stack.form(value), []).append(place)
    alike = [places for places in groups.values() if len(places) >= _LEAST_ALIKE]
    rest = [i for places in groups.values() if len(places) < _LEAST_ALIKE for i in places]
    if 2 * len(rest) > len(numbers) or len(alike) * _LEAST_ALIKE > len(numbers):
        return None
    parts = [stack.vector(tuple([numbers[i] for i in places])) for places in alike]
    parts += [stack.reshaped(numbers[i], 1) for i in rest]
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.array([i for places in (*alike, rest) for i in places]))
    op, params = constant_op(order)
    places = stack.emit(op, [], **params)
    return stack.emit(gather, [stack.emit(concat, parts, axis=0), places], axis=0)


def _is_number(value: Value) -> bool:
    return all(isinstance(n, int) and n == 1 for n in value.shape)


def _is_element(eqn: Equation) -> bool:
    """Return whether an equation reads an element of an array of known shape."""
    is_slice = eqn.op.is_view and "starts" in eqn.kwargs
    return is_slice and all(isinstance(n, int) for n in eqn.inputs[0].shape)


def _index(eqn: Equation) -> int:
    """Return the number of the element that an equation reads, in row-major order."""
    return int(np.ravel_multi_index(eqn.kwargs["starts"], eqn.inputs[0].shape))
