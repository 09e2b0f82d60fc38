"""Expressions for row rules: both sides of a rewrite are built from these terms.

`x + -y` is an expression of the unknowns `x` and `y`, which stand for any values. `a`, `b` and `c`
stand for arrays of one number. So does a literal: 0 for either zero, 0.0 and -0.0 for that zero
only, True and False for booleans only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.ir.params import Params, freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.primitives.elementwise import add, div, integer_pow, mul, neg, sub
from primgraph.primitives.logic import logical_and, logical_not, logical_or, logical_xor

Number: TypeAlias = bool | int | float
Word: TypeAlias = Callable[..., "Applied"]

# Precedence and format of operators.
_SIGNS = {
    logical_or: (1, "{} | {}"), logical_xor: (2, "{} ^ {}"), logical_and: (3, "{} & {}"),
    add: (4, "{} + {}"), sub: (4, "{} - {}"), mul: (5, "{} * {}"), div: (5, "{} / {}"),
    neg: (6, "-{}"), logical_not: (6, "~{}"), integer_pow: (7, "{}**{n}"),
}  # fmt: skip
_TIGHTEST = 9


class Term:
    """An expression of a row, built by operators and by words of primitives."""

    __slots__ = ()

    def __add__(self, other: Term | Number) -> Term:
        return _apply_op(add, self, other)

    def __radd__(self, other: Number) -> Term:
        return _apply_op(add, other, self)

    def __sub__(self, other: Term | Number) -> Term:
        return _apply_op(sub, self, other)

    def __rsub__(self, other: Number) -> Term:
        return _apply_op(sub, other, self)

    def __mul__(self, other: Term | Number) -> Term:
        return _apply_op(mul, self, other)

    def __rmul__(self, other: Number) -> Term:
        return _apply_op(mul, other, self)

    def __truediv__(self, other: Term | Number) -> Term:
        return _apply_op(div, self, other)

    def __rtruediv__(self, other: Number) -> Term:
        return _apply_op(div, other, self)

    def __neg__(self) -> Term:
        return _apply_op(neg, self)

    def __pow__(self, n: int) -> Term:
        return _apply_op(integer_pow, self, n=n)

    def __and__(self, other: Term | Number) -> Term:
        return _apply_op(logical_and, self, other)

    def __or__(self, other: Term | Number) -> Term:
        return _apply_op(logical_or, self, other)

    def __xor__(self, other: Term | Number) -> Term:
        return _apply_op(logical_xor, self, other)

    def __invert__(self) -> Term:
        return _apply_op(logical_not, self)


@final
@dataclass(frozen=True, slots=True)
class Unknown(Term):
    """An unknown for any value, or with `number` for an array of one number."""

    name: str
    number: bool = False

    def __str__(self) -> str:
        return self.name


@final
@dataclass(frozen=True, slots=True)
class Literal(Term):
    """A literal number: 0, 0.0, -0.0 and False are four different ones."""

    text: str
    value: Number = field(compare=False)

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True)
class Applied(Term):
    """A primitive applied to terms; for numbers alone it is evaluated."""

    op: Primitive[Any]
    operands: tuple[Term, ...]
    params: Params = ()

    def __str__(self) -> str:
        if self.op not in _SIGNS:
            given = [str(t) for t in self.operands] + [f"{k}={v}" for k, v in self.params]
            return f"{self.op.name}({', '.join(given)})"
        binding, sign = _SIGNS[self.op]
        # The right operand of a non-associative operator gets parentheses.
        parts = [_parenthesize(t, binding + (i > 0)) for i, t in enumerate(self.operands)]
        return sign.format(*parts, **dict(self.params))


def _parenthesize(term: Term, binding: int) -> str:
    """Return `term`, in parentheses if its precedence is lower."""
    own = _SIGNS.get(term.op, (_TIGHTEST,))[0] if isinstance(term, Applied) else _TIGHTEST
    return str(term) if own >= binding else f"({term})"


def term(given: Term | Number) -> Term:
    """Return a number as a term, or the term itself."""
    return given if isinstance(given, Term) else Literal(repr(given), given)


def _apply_op(op: Primitive[Any], *operands: Term | Number, **params: Any) -> Applied:
    return Applied(op, tuple([term(t) for t in operands]), freeze_all(params.items()))


def words(*ops: Primitive[Any]) -> tuple[Word, ...]:
    """Return functions that apply these primitives to terms."""
    return tuple([partial(_apply_op, op) for op in ops])


def is_number(given: Term) -> bool:
    """Return whether the term is one number, known when the row is applied."""
    if isinstance(given, Applied):
        return all(is_number(t) for t in given.operands)
    return isinstance(given, Literal) or (isinstance(given, Unknown) and given.number)


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on terms for a row to apply.

    `holds` takes the query interface, and for each term the value or the Python number.
    """

    name: str
    holds: Callable[..., bool] = field(compare=False)
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.terms))})"


def condition(holds: Callable[..., bool]) -> Callable[..., Condition]:
    """Decorate `holds(seen, *things)` so that rows can use it as a condition on terms."""

    def make_condition(*terms: Term) -> Condition:
        return Condition(holds.__name__, holds, terms)

    return make_condition


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A rule `left` to `right` under all `conditions`; `why` documents it."""

    level: str
    left: Applied
    right: Term
    conditions: tuple[Condition, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        asked = ", ".join(map(str, self.conditions))
        return f"{self.left} -> {self.right}" + (f"   if {asked}" if asked else "")


w, x, y, z = (Unknown(name) for name in "wxyz")
a, b, c = (Unknown(name, number=True) for name in "abc")
