"""Dynamic slices with integer variables as bounds, and static length: `x[k:k + 2]`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.rebuild import full_value
from primgraph.ir.types import INT64
from primgraph.operators.handle import Handle
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable

# Maximum number of equations traversed to find the difference of two bounds.
_MOST = 64

# A value and its builder.
_Place = tuple[Builder, Value]


def has_variable_bounds(entry: Any) -> TypeGuard[slice]:
    """Return whether an index entry is a slice with an array as a bound."""
    return isinstance(entry, slice) and any(
        isinstance(n, Handle) for n in (entry.start, entry.stop, entry.step)
    )


def dynamic_slices(x: Variable, entries: Sequence[Any]) -> tuple[Variable, list[Any]]:
    """Apply the slices in `entries` with variable bounds, and replace them by full slices.

    `entries` has one entry per axis, besides None, booleans and an ellipsis. Raises `ArgumentError`
    if a length is unknown.
    """
    found, axis, rest = x, 0, list(entries)
    for place, entry in enumerate(entries):
        if entry is None or entry is Ellipsis or isinstance(entry, bool):
            continue
        if has_variable_bounds(entry):
            entry = slice(*map(_in_program, (entry.start, entry.stop, entry.step)))
            rest[place] = entry
        if has_variable_bounds(entry):
            found = call_named("take", found, _positions(x, entry, axis), axis)
            rest[place] = slice(None)
        axis += 1
    return found, rest


def _in_program(bound: Any) -> Any:
    """Convert a bound that is a tensor to its variable, or to a number."""
    if not isinstance(bound, Handle) or isinstance(bound, Variable):
        return bound
    found = call_named("asarray", bound)
    return found if isinstance(found, Variable) else operator.index(found)


def _positions(x: Variable, entry: slice, axis: int) -> Variable:
    """Return the positions that a slice selects along an axis.

    If it is not within the axis, a position is out of range, which is an `IndexError` of the run.
    NumPy's shorter slice would have another shape.
    """
    step = 1 if entry.step is None else entry.step
    start, stop = entry.start, entry.stop
    length = _length(start, stop) if type(step) is int and step > 0 else None
    if length is None:
        raise ArgumentError(
            f"a slice of {x.type} has a variable as bound, and no length that is known when the "
            "program is built",
            hint="write x[k:k + 2], with one variable and numbers; else gather at computed "
            "positions with pg.take",
        )
    count = max(-(-length // step), 0)
    first, last = (call_named("astype", n, INT64) for n in (start, stop))
    places = first + step * call_named("arange", count)
    inside = call_named("logical_or", first >= 0, last < 0)
    return call_named("where", inside, places, x.shape[axis])  # type: ignore[no-any-return]


def _length(start: Any, stop: Any) -> int | None:
    """Return the difference of two bounds if all variable terms cancel, else None."""
    total = 0
    terms: list[tuple[_Place, int]] = []
    waiting: list[tuple[_Place | int | None, int]] = [(_bound_of(stop), 1), (_bound_of(start), -1)]
    for _ in range(_MOST):
        if not waiting:
            return total if all(factor == 0 for _, factor in terms) else None
        place, factor = waiting.pop()
        if place is None:
            return None
        if isinstance(place, int):
            total += factor * place
            continue
        builder, value = _origin(place)
        number = full_value(builder, value)
        if number is not None:
            waiting.append((int(number), factor))
            continue
        parts = _summands(builder, value)
        if parts:
            waiting += [((builder, v), factor * sign) for v, sign in parts]
        else:
            _add((builder, value), factor, terms)
    return None


def _bound_of(bound: Any) -> _Place | int | None:
    """Return a bound as a number or a value; None for other objects."""
    if isinstance(bound, int | np.integer):
        return int(bound)
    if not isinstance(bound, Variable) or not isinstance(bound.recorder, Builder):
        return None
    if bound.dtype.kind not in "iu" or bound.ndim:
        raise DTypeError(f"the bound of a slice is one integer, not {bound.type}")
    return bound.recorder, bound.value


def _summands(builder: Builder, value: Value) -> list[tuple[Value, int]]:
    """Return the summands of `value`, with factors; empty if it is no sum."""
    eqn = builder.definition(value)
    if eqn is None or any(v.dtype.kind not in "iu" for v in eqn.inputs):
        return []
    name, inputs = eqn.op.name, eqn.inputs
    if name in ("add", "sub"):
        return [(inputs[0], 1), (inputs[1], 1 if name == "add" else -1)]
    if name in ("neg", "cast", "reshape"):
        return [(inputs[0], -1 if name == "neg" else 1)]
    if name == "mul":
        for number, other in ((inputs[0], inputs[1]), (inputs[1], inputs[0])):
            found = full_value(builder, number)
            if found is not None:
                return [(other, int(found))]
    return []


def _add(place: _Place, factor: int, terms: list[tuple[_Place, int]]) -> None:
    """Add `factor` times a value to the linear combination `terms`."""
    for i, (other, before) in enumerate(terms):
        if _are_equal(place, other):
            terms[i] = other, before + factor
            return
    terms.append((place, factor))


def _origin(place: _Place) -> _Place:
    """Return the outer value that an input of a body stands for."""
    builder, value = place
    while builder.outer is not None:
        outside = next((v for v, w in builder.captured.items() if w is value), None)
        if outside is None:
            break
        builder, value = builder.outer, outside
    while builder.outer is not None and value not in builder:
        builder = builder.outer
    return builder, value


def _are_equal(first: _Place, last: _Place) -> bool:
    """Return whether two values are the same, or were computed by equal expressions."""
    waiting = [(first, last)]
    for _ in range(_MOST):
        if not waiting:
            return True
        (one, other) = (_origin(place) for place in waiting.pop())
        if one[1] is other[1]:
            continue
        mine, theirs = one[0].definition(one[1]), other[0].definition(other[1])
        if mine is None or theirs is None:
            return False
        if not mine.applies_as(theirs) or len(mine.inputs) != len(theirs.inputs):
            return False
        if mine.outputs.index(one[1]) != theirs.outputs.index(other[1]):
            return False
        pairs = zip(mine.inputs, theirs.inputs, strict=True)
        waiting += [((one[0], v), (other[0], w)) for v, w in pairs]
    return False
