"""Rules of `simplify` for logic, comparisons and choices."""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives import logic
from primgraph.primitives.constants import filled
from primgraph.primitives.logic import logical_and, logical_not, logical_or, logical_xor, select
from primgraph.transforms.rules.rule import Family, Seen

LOGIC = Family()
_rule = LOGIC.rule


@_rule(logical_not)
def _logical_not(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Not not `x` is `x`."""
    return seen.inside(logical_not, inputs[0])


# The comparison that holds exactly where the other does not; NaN decides for the first two only.
_OPPOSITES: tuple[tuple[Primitive[Value], Primitive[Value], bool], ...] = (
    (logic.equal, logic.not_equal, True),
    (logic.not_equal, logic.equal, True),
    (logic.less, logic.greater_equal, False),
    (logic.greater_equal, logic.less, False),
    (logic.greater, logic.less_equal, False),
    (logic.less_equal, logic.greater, False),
)


def _opposite(seen: Seen, value: Value, floats: bool) -> Value | None:
    eqn = seen.builder.definition(value)
    for op, other, with_nan in _OPPOSITES:
        if eqn is not None and eqn.op is op and (floats or with_nan or _no_nan(eqn.inputs[0])):
            result: Value = other(*eqn.inputs)
            return result
    return None


def _no_nan(value: Value) -> bool:
    return not value.type.is_float


@_rule(logical_not)
def _not_compared(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Not `x == y` is `x != y`; not `x < y` is `x >= y`, where there is no NaN."""
    return _opposite(seen, inputs[0], False) if seen.single(inputs[0]) else None


@_rule(logical_not, level="finite")
def _not_less(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Not `x < y` is `x >= y`, except for NaN."""
    return _opposite(seen, inputs[0], True) if seen.single(inputs[0]) else None


@_rule(logical_and, logical_or)
def _with_itself(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x & x` and `x | x` are `x`."""
    x, y = inputs
    return x if x is y else None


@_rule(logical_and)
def _and(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x & True` is `x`; `x & False` is False."""
    x, y = inputs
    for c, other in ((x, y), (y, x)):
        known = seen.scalar(c)
        if known is not None:
            return other if known else c
    return None


@_rule(logical_or)
def _or(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x | False` is `x`; `x | True` is True."""
    x, y = inputs
    for c, other in ((x, y), (y, x)):
        known = seen.scalar(c)
        if known is not None:
            return c if known else other
    return None


@_rule(logical_xor)
def _xor(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x ^ False` is `x`, `x ^ True` is not `x`, `x ^ x` is False."""
    x, y = inputs
    if x is y:
        return filled(False, x.type)
    for c, other in ((x, y), (y, x)):
        known = seen.scalar(c)
        if known is not None:
            flipped: Value = logical_not(other)
            return flipped if known else other
    return None


@_rule(logic.less, logic.greater)
def _less_than_itself(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Nothing is less or greater than itself, NaN neither."""
    x, y = inputs
    return filled(False, seen.type) if x is y else None


def _itself(seen: Seen, inputs: list[Value], result: bool, floats: bool) -> Value | None:
    x, y = inputs
    return filled(result, seen.type) if x is y and (floats or _no_nan(x)) else None


@_rule(logic.equal, logic.less_equal, logic.greater_equal)
def _equal_to_itself(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """All but NaN are equal to themselves, so that integers always are."""
    return _itself(seen, inputs, True, False)


@_rule(logic.not_equal)
def _unlike_itself(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Only NaN differs from itself, so that integers never do."""
    return _itself(seen, inputs, False, False)


@_rule(logic.equal, logic.less_equal, logic.greater_equal, level="finite")
def _equal_if_no_nan(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Where there is no NaN, all are equal to themselves."""
    return _itself(seen, inputs, True, True)


@_rule(logic.not_equal, level="finite")
def _alike_if_no_nan(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Where there is no NaN, nothing differs from itself."""
    return _itself(seen, inputs, False, True)


@_rule(select)
def _select(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A choice between equals, by a constant, or once more by the same condition."""
    condition, x, y = inputs
    known = seen.scalar(condition)
    if known is not None:
        return x if known else y
    if x is y:
        return x
    inner = seen.made_by(select, x)
    if inner is not None and inner.inputs[0] is condition:
        return _chosen(condition, inner.inputs[1], y)
    inner = seen.made_by(select, y)
    if inner is not None and inner.inputs[0] is condition:
        return _chosen(condition, x, inner.inputs[2])
    return None


@_rule(select)
def _select_by_negation(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """By a negated condition the branches change places."""
    condition, x, y = inputs
    plain = seen.inside(logical_not, condition)
    return None if plain is None else _chosen(plain, y, x)


@_rule(select)
def _select_of_booleans(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """True where the condition holds and False elsewhere is the condition itself."""
    condition, x, y = inputs
    branches = seen.scalar(x), seen.scalar(y)
    if branches == (True, False) and x.type == condition.type:
        return condition
    if branches == (False, True) and x.type == condition.type:
        result: Value = logical_not(condition)
        return result
    return None


def _chosen(condition: Value, x: Value, y: Value) -> Value:
    if x is y:
        return x
    result: Value = select(condition, x, y)
    return result
