"""The words in which rows of rules are written: both sides of a rewrite are expressions of these.

`x + -y` is an expression of the unknowns `x` and `y`, which stand for any values; `a`, `b` and `c`
stand for arrays of one number everywhere, and so does a number that is written out: 0 for either
zero, 0.0 and -0.0 for that one alone, True and False for truth values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, final

from primgraph.ir.params import Params, freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.primitives.elementwise import add, div, integer_pow, mul, neg, sub
from primgraph.primitives.logic import logical_and, logical_not, logical_or, logical_xor

Number: TypeAlias = bool | int | float
Word: TypeAlias = Callable[..., "Applied"]

# How tightly operators bind, and how they are written.
_SIGNS = {
    logical_or: (1, "{} | {}"), logical_xor: (2, "{} ^ {}"), logical_and: (3, "{} & {}"),
    add: (4, "{} + {}"), sub: (4, "{} - {}"), mul: (5, "{} * {}"), div: (5, "{} / {}"),
    neg: (6, "-{}"), logical_not: (6, "~{}"), integer_pow: (7, "{}**{n}"),
}  # fmt: skip
_TIGHTEST = 9


class Term:
    """One side of a row, or a part of it: what operators and words of primitives make."""

    __slots__ = ()

    def __add__(self, other: Term | Number) -> Term:
        return _applied(add, self, other)

    def __radd__(self, other: Number) -> Term:
        return _applied(add, other, self)

    def __sub__(self, other: Term | Number) -> Term:
        return _applied(sub, self, other)

    def __rsub__(self, other: Number) -> Term:
        return _applied(sub, other, self)

    def __mul__(self, other: Term | Number) -> Term:
        return _applied(mul, self, other)

    def __rmul__(self, other: Number) -> Term:
        return _applied(mul, other, self)

    def __truediv__(self, other: Term | Number) -> Term:
        return _applied(div, self, other)

    def __rtruediv__(self, other: Number) -> Term:
        return _applied(div, other, self)

    def __neg__(self) -> Term:
        return _applied(neg, self)

    def __pow__(self, n: int) -> Term:
        return _applied(integer_pow, self, n=n)

    def __and__(self, other: Term | Number) -> Term:
        return _applied(logical_and, self, other)

    def __or__(self, other: Term | Number) -> Term:
        return _applied(logical_or, self, other)

    def __xor__(self, other: Term | Number) -> Term:
        return _applied(logical_xor, self, other)

    def __invert__(self) -> Term:
        return _applied(logical_not, self)


@final
@dataclass(frozen=True, slots=True)
class Unknown(Term):
    """Any value, or with `number` any array of one number; wherever it stands it is the same."""

    name: str
    number: bool = False

    def __str__(self) -> str:
        return self.name


@final
@dataclass(frozen=True, slots=True)
class Literal(Term):
    """A number that is written out: 0, 0.0, -0.0 and False are four of them."""

    text: str
    value: Number = field(compare=False)

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True)
class Applied(Term):
    """A primitive of terms; of numbers alone, the number that it gives of them."""

    op: Primitive[Any]
    operands: tuple[Term, ...]
    params: Params = ()

    def __str__(self) -> str:
        if self.op not in _SIGNS:
            given = [str(t) for t in self.operands] + [f"{k}={v}" for k, v in self.params]
            return f"{self.op.name}({', '.join(given)})"
        binding, sign = _SIGNS[self.op]
        # What stands behind an operator that does not associate is put in parentheses.
        parts = [_within(t, binding + (i > 0)) for i, t in enumerate(self.operands)]
        return sign.format(*parts, **dict(self.params))


def _within(term: Term, binding: int) -> str:
    """`term`, in parentheses if it binds less tightly."""
    own = _SIGNS.get(term.op, (_TIGHTEST,))[0] if isinstance(term, Applied) else _TIGHTEST
    return str(term) if own >= binding else f"({term})"


def term(given: Term | Number) -> Term:
    """A number as a term; a term as it is."""
    return given if isinstance(given, Term) else Literal(repr(given), given)


def _applied(op: Primitive[Any], *operands: Term | Number, **params: Any) -> Applied:
    return Applied(op, tuple([term(t) for t in operands]), freeze_all(params.items()))


def words(*ops: Primitive[Any]) -> tuple[Word, ...]:
    """These primitives as words of rows: called with terms they give a term."""
    return tuple([partial(_applied, op) for op in ops])


def is_number(given: Term) -> bool:
    """Whether this is one number everywhere, known when the row is applied."""
    if isinstance(given, Applied):
        return all(is_number(t) for t in given.operands)
    return isinstance(given, Literal) or (isinstance(given, Unknown) and given.number)


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """What has to be true of terms for a row to apply.

    `holds` gets what rules may ask, and for each term the value, or the Python number.
    """

    name: str
    holds: Callable[..., bool] = field(compare=False)
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.terms))})"


def condition(holds: Callable[..., bool]) -> Callable[..., Condition]:
    """Let `holds(seen, *things)` be written in rows as a condition on terms."""

    def of(*terms: Term) -> Condition:
        return Condition(holds.__name__, holds, terms)

    return of


@final
@dataclass(frozen=True, slots=True)
class Row:
    """`left` becomes `right` where all `conditions` hold; `why` is for the reader."""

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
