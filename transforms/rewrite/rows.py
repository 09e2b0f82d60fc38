"""Row rules: rewrite rules whose two sides are expressions.

    exact(x + -y, x - y, why="that is how subtraction is defined")
    fast(x / c, x * (1 / c), ordinary(1 / c), why="rounded once more")

The left side is the pattern; commutative operands match in either order. The right side is the
replacement. A name that occurs twice on the left must match the same value. A row is compiled when
it is declared, into one rule per order of operands: a list of steps on a growing list of values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.graph import Value
from primgraph.ir.params import Params
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import DType
from primgraph.primitives.constants import filled_constant, full
from primgraph.primitives.elementwise import add, mul, neg, sub
from primgraph.transforms.rewrite.rule import Family, Rule, Seen, SimplifyRule, is_zero
from primgraph.transforms.rewrite.terms import (
    Applied,
    Condition,
    Literal,
    Number,
    Row,
    Term,
    Unknown,
    is_number,
    term,
)

# A matching step: reads and extends the list of known values, and returns whether to continue.
_Step: TypeAlias = Callable[[Seen, list[Any]], bool]
# Function that returns a number from the known values, for elements of a dtype.
_Known: TypeAlias = Callable[[list[Any], DType], Number]


class Declare(Protocol):
    """Function that declares a row of one family at one level."""

    def __call__(
        self, left: Term, right: Term | Number, *conditions: Condition, why: str = ""
    ) -> None: ...


def rows(family: Family, level: str, *, any_dtype: bool = False) -> Declare:
    """Return the function that declares rows of `family` at `level`, tried in order per primitive.

    With `any_dtype`, or in a family of any dtype, they apply to complex numbers too.
    """
    anywhere = any_dtype or family.any_dtype

    def declare(left: Term, right: Term | Number, *conditions: Condition, why: str = "") -> None:
        if not isinstance(left, Applied) or is_number(left):
            raise ArgumentError(f"a row rewrites what a primitive computes, not {left}")
        row = Row(level, left, term(right), conditions, why)
        make = partial(_rules, row, anywhere)
        family.add_late(left.op, make if family.late else [*make()].copy)

    return declare


def _rules(row: Row, any_dtype: bool) -> Iterator[Rule]:
    """Yield the rules of a row, one for each distinct order of commutative operands."""
    name, known, readings = str(row), set(), [*_readings(row.left)]
    for reading in readings:
        # Conditions tell readings apart that differ in the names of unknowns only.
        if len(readings) > 1:
            names: dict[Term, int] = {}
            found = _shape(reading, names)
            asked = [
                (c.name, *(_shape(_as_written(t), names) for t in c.terms)) for c in row.conditions
            ]
            key = found, frozenset(asked)
            if key in known:
                continue
            known.add(key)
        wanted = tuple([_made_by(part.term) for part in reading.parts])
        apply = _Matching(row, reading).function(name)
        alike = _alike([part.term for part in reading.parts])
        kind = _is_inexact(row)
        yield Rule(
            row.level, apply, at=wanted, alike=alike, inexact=kind, row=row, any_dtype=any_dtype
        )


def _alike(terms: list[Term]) -> tuple[tuple[int, int], ...]:
    """Return the positions of equal terms, which match the same value."""
    return tuple([
        (terms.index(t), i)
        for i, t in enumerate(terms)
        if not isinstance(t, Literal) and terms.index(t) < i
    ])  # fmt: skip


def _is_inexact(row: Row) -> bool | None:
    """Return what the conditions of a row of arithmetic say about its dtype, None for nothing."""
    names = {asked.name for asked in row.conditions} if _is_arithmetic(row.left) else set()
    return True if "floats" in names else False if "integers" in names else None


def _is_arithmetic(given: Term) -> bool:
    """Return whether all parts of a term are of its dtype."""
    if not isinstance(given, Applied):
        return True
    return given.op in (add, sub, mul, neg) and all(map(_is_arithmetic, given.operands))


class _Reading(NamedTuple):
    """A term, with its operands in one of their possible orders."""

    term: Term
    parts: tuple[_Reading, ...] = ()


def _readings(given: Term) -> Iterator[_Reading]:
    if not isinstance(given, Applied):
        yield _Reading(given)
        return
    orders = [given.operands]
    if given.op.commutative:
        orders.append(given.operands[::-1])
    for order in orders:
        for parts in product(*(list(_readings(t)) for t in order)):
            yield _Reading(given, parts)


def _as_written(given: Term) -> _Reading:
    """Return the reading that keeps the order of all operands."""
    return next(_readings(given))


def _shape(reading: _Reading, names: dict[Term, int]) -> Hashable:
    """Return a key that is equal for readings that differ in the names of unknowns only.

    `names` numbers the unknowns in the order of occurrence.
    """
    given = reading.term
    if isinstance(given, Unknown):
        return names.setdefault(given, len(names)), given.number
    if isinstance(given, Applied):
        return (given.op, given.params, *[_shape(part, names) for part in reading.parts])
    return given


def _made_by(given: Term) -> Op | None:
    """Return the op that must compute a value to match this term; None for any op."""
    if isinstance(given, Applied):
        return given.op
    return full if is_number(given) else None


@final
class _Matching:
    """Compiler of a row, with its left side in one order of operands, into matching steps.

    The list that steps work on begins with the operands of the equation. `values` maps terms to
    their index in it, `numbers` maps unknowns to the index of their number.
    """

    def __init__(self, row: Row, reading: _Reading) -> None:
        self.row = row
        self.steps: list[_Step] = []
        self.values: dict[Term, int] = {}
        self.numbers: dict[Term, int] = {}
        self.length = len(reading.parts)
        for i, part in enumerate(reading.parts):
            self._look_for(part, i)
        for asked in row.conditions:
            self.steps.append(
                _build_condition_step(asked, [self._argument_getter(t) for t in asked.terms])
            )
        self.result = self._place(row.right, None)

    def function(self, name: str) -> SimplifyRule:
        """Return the rule: run all steps, and return the value recorded last."""
        steps, result, wanted = tuple(self.steps), self.result, dict(self.row.left.params)

        def rule(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
            if params != wanted:
                return None
            known: list[Any] = [*inputs]
            for step in steps:
                if not step(seen, known):
                    return None
            value: Value = known[result]
            return value

        rule.__name__ = rule.__qualname__ = name
        return rule

    def _new(self, count: int = 1) -> int:
        """Return the index of the value that the next step will add."""
        self.length += count
        return self.length - count

    # The left side.

    def _look_for(self, reading: _Reading, place: int) -> None:
        """Add the steps that match the value at `place` with the term."""
        given = reading.term
        if isinstance(given, Literal):
            self.steps.append(_is_literal(place, given.value))
            return
        if given in self.values:
            self.steps.append(_same(place, self.values[given]))
            return
        self.values[given] = place
        if isinstance(given, Applied):
            self.steps.append(_build_match_step(place, given.op, given.params))
            first = self._new(len(reading.parts))
            for i, part in enumerate(reading.parts):
                self._look_for(part, first + i)
        elif is_number(given):
            self.steps.append(_number(place))
            self.numbers[given] = self._new()

    # Conditions and the right side.

    def _argument_getter(self, given: Term) -> Callable[[Seen, list[Any]], Any]:
        """Return a function for the argument of a condition: a number or a value."""
        if is_number(given):
            number = self._number_getter(given)
            return lambda seen, known: number(known, seen.type.dtype)
        place = self._value_index(given)
        return lambda seen, known: known[place]

    def _value_index(self, given: Term) -> int:
        if given not in self.values:
            raise ArgumentError(f"{given} does not occur on the left of {self.row}")
        return self.values[given]

    def _number_getter(self, given: Term) -> _Known:
        """Return a function that computes a number from the known values."""
        if isinstance(given, Literal):
            value = given.value
            return lambda known, dtype: value
        if isinstance(given, Applied):
            return _build_evaluator(given.op, [self._number_getter(t) for t in given.operands])
        self._value_index(given)
        place = self.numbers[given]
        return lambda known, dtype: known[place]

    def _place(self, given: Term, like: int | None) -> int:
        """Return the index of a right-side term, after adding the steps that record it.

        A number becomes an array of the type of the value at `like`, or of the result.
        """
        if is_number(given):
            self.steps.append(_array(self._number_getter(given), like))
            return self._new()
        if not isinstance(given, Applied) or given in self.values:
            return self._value_index(given)
        places = {t: self._place(t, None) for t in given.operands if not is_number(t)}
        beside = list(places.values())[-1]
        operands = [places[t] if t in places else self._place(t, beside) for t in given.operands]
        self.steps.append(_build_emit_step(given.op, operands, dict(given.params)))
        self.values[given] = self._new()
        return self.values[given]


# The steps.


def _is_literal(place: int, value: Number) -> _Step:
    if isinstance(value, bool):
        return lambda seen, known: seen.scalar(known[place]) is value
    if value == 0 and isinstance(value, float):
        sign = float(np.copysign(1.0, value))
        return lambda seen, known: is_zero(seen.scalar(known[place]), sign)
    return lambda seen, known: seen.scalar(known[place]) == value


def _same(place: int, other: int) -> _Step:
    return lambda seen, known: known[place] is known[other]


def _build_match_step(place: int, op: Primitive[Any], params: Params) -> _Step:
    def step(seen: Seen, known: list[Any]) -> bool:
        eqn = seen.made_by(op, known[place])
        if eqn is None or eqn.params != params:
            return False
        known += eqn.inputs
        return True

    return step


def _number(place: int) -> _Step:
    def step(seen: Seen, known: list[Any]) -> bool:
        number = seen.scalar(known[place])
        known.append(number)
        return number is not None

    return step


def _build_condition_step(
    asked: Condition, things: list[Callable[[Seen, list[Any]], Any]]
) -> _Step:
    holds = asked.holds
    return lambda seen, known: holds(seen, *[thing(seen, known) for thing in things])


def _build_evaluator(op: Primitive[Any], operands: list[_Known]) -> _Known:
    def number(known: list[Any], dtype: DType) -> Number:
        arrays = [np.asarray(f(known, dtype), dtype) for f in operands]
        result: Number = np.asarray(op.evaluate(arrays, {})[0]).item()
        return result

    return number


def _array(number: _Known, like: int | None) -> _Step:
    def step(seen: Seen, known: list[Any]) -> bool:
        type = seen.type if like is None else known[like].type
        known.append(filled_constant(number(known, type.dtype), type))
        return True

    return step


def _build_emit_step(op: Primitive[Any], operands: list[int], params: dict[str, Any]) -> _Step:
    def step(seen: Seen, known: list[Any]) -> bool:
        known.append(seen.emit(op, [known[i] for i in operands], params)[0])
        return True

    return step
