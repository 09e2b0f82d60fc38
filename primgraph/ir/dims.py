"""Extents that are not known yet: integer expressions in named sizes, each size at least zero.

An expression is a polynomial with integer coefficients over sizes and atoms, which are floors of
quotients, maxima and minima. It is kept in a normal form, and equal normal forms are one object:
two polynomials that are equal for all sizes are equal, and so are quotients and remainders as far
as they can be divided. An expression without sizes is Python's integer, never a `Dim`.

The normal form, and the bounds of linear forms by which comparisons are decided, are those of
symbolic dimensions in `jax.export`, in small.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

from primgraph.errors import ArgumentError, LoadError, ShapeError, UnknownSizeError
from primgraph.ir.fixed import Fixed
from primgraph.ir.written import expressions, text_of
from primgraph.source import is_own

if TYPE_CHECKING:
    # Rules on shapes treat known and unknown extents alike, so that both are integers to the
    # type checker.
    _Integer = int
else:
    _Integer = object

# A size is its name; any other atom is an operation and its operands.
Atom: TypeAlias = "str | tuple[str, int, int]"
# Atoms with their powers, in order, and the coefficients of products of them.
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]

FLOOR, MAX, MIN = "//", "max", "min"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Words that mean something else where text has a size.
_TAKEN = frozenset(
    ["max", "min", "mod", "True", "False", "None", "inf", "nan", "bool"]
    + [f"{kind}{8 * n}" for kind in "iuf" for n in (1, 2, 4, 8)]
)

# What stands for the rows of stacks that grow, in text and as an atom: no size has that name.
_OPEN = "?"

_UNBOUNDED = math.inf
_TYPICAL = 64
# How deep expressions stand in each other, and how long one may be, in what is read.
_DEEPEST, _LONGEST = 20, 10_000

_OUT = (
    "a size that is known when the program is built, {0}.max(k) or {0}.min(k) in the place of "
    "Python's max and min, or pg.where on pg.asarray({0}) while it runs"
)


@final
class Dim(Fixed, _Integer):
    """An extent that is not known yet: an integer expression in named sizes.

    `+`, `-`, `*`, `//` and `%`, with integers and with each other, give such expressions, and so
    do `n.max(k)` and `n.min(k)`. Sizes are at least 0. A comparison is decided where it holds for
    all sizes, or for none, and is an `UnknownSizeError` elsewhere.
    """

    __slots__ = ("_bounds", "_text", "terms")

    terms: Terms
    _text: str
    _bounds: tuple[float, float] | None

    # Equal expressions are one object.
    __hash__ = object.__hash__

    if TYPE_CHECKING:

        def __new__(cls, terms: Terms) -> Dim: ...

    else:

        def __new__(cls, terms: Terms) -> Dim:
            """The expression of these terms, which are in order and hold a size."""
            found = _dims.get(terms)
            if found is None:
                made = object.__new__(cls)
                for name, value in (("terms", terms), ("_text", ""), ("_bounds", None)):
                    object.__setattr__(made, name, value)
                found = _dims.setdefault(terms, made)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        return written_extent, (str(self),)

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it is an expression of."""
        return _names_in(self)

    def at(self, sizes: Mapping[str, int]) -> int:
        """Its value for these sizes; those that are not named stay as they are.

        Raises `ShapeError` where it divides by zero.
        """
        total = 0
        for monomial, coefficient in self.terms:
            product = coefficient
            for atom, power in monomial:
                product = product * _atom_at(atom, sizes) ** power
            total = total + product
        return total

    def max(self, other: int) -> int:
        """The larger of this and another extent."""
        return _extremum(MAX, self, other)

    def min(self, other: int) -> int:
        """The smaller of this and another extent."""
        return _extremum(MIN, self, other)

    # Arithmetic.

    def __add__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return _sum_of(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return _sum_of(self, other, -1)

    def __rsub__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return _sum_of(other, self, -1)

    def __mul__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return _product(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> int:
        return _product(self, -1)

    def __pos__(self) -> int:
        return self

    def __pow__(self, power: int, modulo: None = None) -> int:  # type: ignore[override]
        if type(power) is not int or modulo is not None:
            return NotImplemented
        if power < 0:
            raise ArgumentError(f"size {self} to the power {power} is no size")
        return math.prod([self] * power)

    def __floordiv__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return _floor(self, other)

    def __rfloordiv__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return _floor(other, self)

    def __mod__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return self - other * _floor(self, other)

    def __rmod__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return other - self * _floor(other, self)

    def __divmod__(self, other: int) -> tuple[int, int]:
        if not is_extent(other):
            return NotImplemented
        quotient: int = _floor(self, other)
        return quotient, self - other * quotient

    def __rdivmod__(self, other: int) -> tuple[int, int]:
        if not is_extent(other):
            return NotImplemented  # type: ignore[no-any-return]
        quotient: int = _floor(other, self)
        return quotient, other - self * quotient

    def __truediv__(self, other: Any) -> float:
        if not is_extent(other) and not isinstance(other, float):
            return NotImplemented
        raise self._unknown(f"{self} / {other}", "n // k is a size, and pg.asarray(n) / k a number")

    def __rtruediv__(self, other: Any) -> float:
        if not is_extent(other) and not isinstance(other, float):
            return NotImplemented
        raise self._unknown(f"{other} / {self}", "k // n is a size, and k / pg.asarray(n) a number")

    # Comparisons.

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not is_extent(other):
            return NotImplemented
        if is_own(sys._getframe(1)):
            # Types with extents that are not known to be equal are different types.
            return False
        low, high = bounds(self - other)  # type: ignore[operator]
        if low > 0 or high < 0:
            return False
        raise self._undecided("==", other)

    def __ne__(self, other: object) -> bool:
        if self is other:
            return False
        if not is_extent(other):
            return NotImplemented
        if is_own(sys._getframe(1)):
            return True
        low, high = bounds(self - other)  # type: ignore[operator]
        if low > 0 or high < 0:
            return True
        raise self._undecided("!=", other)

    def __ge__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decided(">=", other, self - other)

    def __gt__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decided(">", other, self - other - 1)

    def __le__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decided("<=", other, other - self)

    def __lt__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decided("<", other, other - self - 1)

    def _decided(self, relation: str, other: object, difference: int) -> bool:
        """Whether `difference` is at least 0, which is what the relation says."""
        low, high = bounds(difference)
        if low >= 0 or high < 0:
            return low >= 0
        raise self._undecided(relation, other)

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise self._undecided("!=", 0)

    # What needs a number.

    def __index__(self) -> NoReturn:
        raise self._unknown(f"a number for {self}", _for_a_number())

    def __int__(self) -> NoReturn:
        raise self._unknown(f"int({self})")

    def __float__(self) -> NoReturn:
        raise self._unknown(f"float({self})")

    def _undecided(self, relation: str, other: object) -> UnknownSizeError:
        return self._unknown(f"{self} {relation} {other}")

    def _unknown(self, what: str, instead: str = "") -> UnknownSizeError:
        return UnknownSizeError(
            f"{what} is not known before the program runs: it depends on "
            f"{', '.join(sorted(self.names))}",
            hint=f"write {instead}" if instead else f"ways out: {_OUT.format(_brief(self))}",
        )

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __str__(self) -> str:
        if not self._text:
            object.__setattr__(self, "_text", _text_of(self))
        return self._text

    __repr__ = __str__


_dims: dict[Terms, Dim] = {}


def _brief(dim: Dim) -> str:
    """What stands for the expression in an example."""
    return str(dim) if _NAME.fullmatch(str(dim)) else "n"


def is_extent(number: object) -> bool:
    """Whether `number` is Python's integer, no boolean, or a `Dim`."""
    return type(number) is int or type(number) is Dim


def size(name: str) -> Dim:
    """The size of that name.

    Raises `ArgumentError` for what is no plain ASCII identifier, and for a name that has another
    meaning in text.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        raise ArgumentError(
            f"a size is named by letters, digits and underscores, not {name!r:.60}",
            hint="dtypes, True, False, None, inf, nan, max, min and mod are no names of sizes",
        )
    return Dim(((((name, 1),), 1),))


# The rows of a stack that a loop adds one to in each trip. No input tells how many there are, and
# no size is part of it: stacks pass from loop to loop, and nothing else computes with them.
TRIPS: Dim = Dim(((((_OPEN, 1),), 1),))


def is_open(shape: tuple[int, ...]) -> bool:
    """Whether it is the shape of a stack whose rows are counted while a loop runs."""
    return bool(shape) and shape[0] is TRIPS


def extent_at(extent: int, sizes: Mapping[str, int]) -> int:
    """`extent` for these sizes: itself where it is known."""
    return extent.at(sizes) if type(extent) is Dim else extent


def typical(extent: int) -> int:
    """What `extent` is where all sizes are 64, for choices that change no result."""
    return extent_at(extent, dict.fromkeys([_OPEN, *names_in(extent)], _TYPICAL))


def of_one_trip(extent: int) -> int:
    """`extent` where stacks have one row, which is what estimates count of them."""
    return extent.at({_OPEN: 1}) if type(extent) is Dim else extent


def names_in(extents: Any) -> frozenset[str]:
    """The sizes in extents, or in whatever tuples of parameters hold some."""
    if type(extents) is Dim:
        return extents.names
    if type(extents) is tuple:
        return frozenset().union(*map(names_in, extents))
    return frozenset()


@cache
def _names_in(dim: Dim) -> frozenset[str]:
    found: set[str] = set()
    for monomial, _ in dim.terms:
        for atom, _ in monomial:
            if isinstance(atom, str):
                if atom != _OPEN:
                    found.add(atom)
            else:
                found.update(names_in(atom[1:]))
    return frozenset(found)


def _atom_at(atom: Atom, sizes: Mapping[str, int]) -> int:
    if atom == _OPEN:
        return sizes.get(_OPEN, TRIPS)
    if isinstance(atom, str):
        return sizes[atom] if atom in sizes else size(atom)
    kind, *operands = atom
    left, right = (extent_at(x, sizes) for x in operands)
    return _floor(left, right) if kind == FLOOR else _extremum(kind, left, right)


# The normal form.


def _terms_of(extent: int) -> dict[Monomial, int]:
    if type(extent) is Dim:
        return dict(extent.terms)
    return {(): extent} if extent else {}


def _made(terms: Mapping[Monomial, int]) -> int:
    """The extent of these terms: a number where only that of no atoms is left."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Dim(tuple(sorted(kept.items(), key=_place)))


def _place(term: tuple[Monomial, int]) -> Any:
    """Where a term stands in a sum: those of higher degree first, then by name."""
    return -sum(power for _, power in term[0]), [(_key(a), p) for a, p in term[0]]


def _key(atom: Atom) -> str:
    return atom if isinstance(atom, str) else "{}({},{})".format(*atom)


def _sum_of(x: int, y: int, sign: int) -> int:
    if type(x) is int and type(y) is int:
        return x + sign * y
    terms = _terms_of(x)
    for monomial, coefficient in _terms_of(y).items():
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _made(terms)


def _product(x: int, y: int) -> int:
    if type(x) is int and type(y) is int:
        return x * y
    terms: dict[Monomial, int] = {}
    right = _terms_of(y).items()
    for first, a in _terms_of(x).items():
        for second, b in right:
            monomial = _joined(first, second) if first and second else first or second
            terms[monomial] = terms.get(monomial, 0) + a * b
    return _made(terms)


def _joined(first: Monomial, second: Monomial) -> Monomial:
    powers = dict(first)
    for atom, power in second:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _key(item[0])))


def _floor(x: int, y: int) -> int:
    """The floor of a quotient, with all divided out that can be."""
    if type(y) is int:
        if y == 0:
            raise ShapeError(f"size {x} is divided by zero")
        if type(x) is int:
            return x // y
        return _floor_by_number(x, y) if y > 0 else _floor_by_number(-x, -y)
    whole, rest = _divided(x, y)
    if type(rest) is int and rest == 0:
        return whole
    # Of what is left nothing is a multiple.
    atom: Atom = (FLOOR, rest, y)
    if bounds(rest)[0] >= 0 and bounds(y - rest)[0] > 0:
        return whole
    return _sum_of(whole, _made({((atom, 1),): 1}), 1)


def _floor_by_number(x: int, y: int) -> int:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in _terms_of(x).items():
        whole[monomial], rest[monomial] = divmod(coefficient, y)
    # A number that is no multiple of what all else is one of changes no floor.
    common = math.gcd(y, *(c for m, c in rest.items() if m))
    number = rest.pop((), 0) // common
    left = _made({**{m: c // common for m, c in rest.items()}, (): number})
    return _sum_of(_made(whole), _quotient(left, y // common), 1)


def _quotient(x: int, y: int) -> int:
    """The floor of `x / y`, where no coefficient of `x` is negative or a multiple of the number."""
    if type(x) is int or y == 1:
        return x // y if type(x) is int else x
    low, high = bounds(x)
    if low >= 0 and high < y:
        return 0
    inner = _only_floor(x)
    if inner is not None:
        (_, dividend, divisor), number = inner
        return _floor(dividend + number * divisor, y * divisor)
    return _made({(((FLOOR, x, y), 1),): 1})


def _only_floor(x: int) -> tuple[tuple[str, int, int], int] | None:
    """The quotient by a number that `x` is, and what is added to it; None for all else."""
    terms = _terms_of(x)
    number = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, coefficient),) = terms.items()
    atom, power = monomial[0]
    if len(monomial) > 1 or power != 1 or coefficient != 1 or isinstance(atom, str):
        return None
    return (atom, number) if atom[0] == FLOOR and type(atom[2]) is int else None


def _divided(x: int, y: int) -> tuple[int, int]:
    """The terms of `x` that the polynomial `y` divides, divided by it, and the others."""
    whole, rest = 0, x
    (lead, coefficient), *_ = _ordered(y)
    for _ in range(len(_ordered(x))):
        found = next(
            (t for m, c in _ordered(rest) if (t := _ratio(m, c, lead, coefficient)) is not None),
            None,
        )
        if found is None:
            break
        smaller = rest - _product(found, y)
        if len(_ordered(smaller)) >= len(_ordered(rest)):
            break
        whole, rest = whole + found, smaller
    return whole, rest


def _ordered(x: int) -> list[tuple[Monomial, int]]:
    return sorted(_terms_of(x).items(), key=_place)


def _ratio(monomial: Monomial, number: int, lead: Monomial, coefficient: int) -> int | None:
    """One term divided by another; None where it is no multiple."""
    powers = dict(monomial)
    for atom, power in lead:
        powers[atom] = powers.get(atom, 0) - power
    if number % coefficient or min(powers.values(), default=0) < 0:
        return None
    left = tuple(sorted(((a, p) for a, p in powers.items() if p), key=lambda i: _key(i[0])))
    return _made({left: number // coefficient})


def _extremum(kind: str, x: int, y: int) -> int:
    """The larger or the smaller of two extents."""
    if not is_extent(x) or not is_extent(y):
        raise ArgumentError(f"{kind} of sizes takes sizes and integers, not {x!r:.40}, {y!r:.40}")
    low, high = bounds(x - y)
    if low >= 0 or high <= 0:
        return x if (low >= 0) == (kind == MAX) else y
    first, second = sorted((x, y), key=str)
    return _made({(((kind, first, second), 1),): 1})


# Bounds.


def bounds(extent: int) -> tuple[float, float]:
    """Between what `extent` lies for all sizes, as far as that is known; the ends are integers."""
    if type(extent) is not Dim:
        return extent, extent
    if extent._bounds is None:
        high = _lowest(_product(extent, -1))
        object.__setattr__(extent, "_bounds", (_lowest(extent), -high))
    found = extent._bounds
    assert found is not None
    return found


def _lowest(extent: int) -> float:
    """A number that `extent` is never less than: the best of its terms and of relaxed forms."""
    if type(extent) is not Dim:
        return extent
    best = 0.0
    for monomial, coefficient in extent.terms:
        low, high = _span(monomial)
        end = low if coefficient > 0 else high
        best += coefficient * end
    for monomial, coefficient in extent.terms:
        if len(monomial) == 1 and monomial[0][1] == 1 and not isinstance(monomial[0][0], str):
            rest = _sum_of(extent, _made({monomial: coefficient}), -1)
            for scaled, factor in _relaxed(monomial[0][0], coefficient, rest):
                low = _lowest(scaled)
                best = max(best, low if low == -_UNBOUNDED else float(-(-low // factor)))
    return best


def _relaxed(atom: tuple[str, int, int], coefficient: int, rest: int) -> Iterator[tuple[int, int]]:
    """Forms no larger than `coefficient * atom + rest` without that atom, and what they are times.

    A floor is no more than the quotient, and less than one below it by no more than the divisor
    allows; an extremum is bounded by either operand from one side.
    """
    kind, x, y = atom
    if kind == FLOOR:
        if type(y) is int and y > 0:
            quotient = x if coefficient < 0 else x - (y - 1)
            yield _sum_of(_product(rest, y), _product(quotient, coefficient), 1), y
    elif (kind == MAX) == (coefficient > 0):
        for operand in (x, y):
            yield _sum_of(rest, _product(operand, coefficient), 1), 1


def _span(monomial: Monomial) -> tuple[float, float]:
    """Between what a product of powers of atoms lies."""
    low, high = 1.0, 1.0
    for atom, power in monomial:
        first, last = _atom_bounds(atom)
        for _ in range(power):
            ends = [_times(a, b) for a in (low, high) for b in (first, last)]
            low, high = min(ends), max(ends)
    return low, high


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _atom_bounds(atom: Atom) -> tuple[float, float]:
    if isinstance(atom, str):
        return 0.0, _UNBOUNDED
    kind, x, y = atom
    (low, high), (first, last) = bounds(x), bounds(y)
    if kind == FLOOR:
        if first < 1:
            # A divisor of zero is refused, whatever the rest says.
            return (0.0, high) if low >= 0 and first >= 0 else (-_UNBOUNDED, _UNBOUNDED)
        ends = [_part(a, b) for a in (low, high) for b in (first, last)]
        return min(ends), max(ends)
    choose: Callable[[float, float], float] = max if kind == MAX else min
    return choose(low, first), choose(high, last)


def _part(a: float, b: float) -> float:
    if abs(a) == _UNBOUNDED:
        return a
    return float(-1 if a < 0 else 0) if b == _UNBOUNDED else float(a // b)


# Text.


def _text_of(dim: Dim) -> str:
    found = remainder(dim)
    if found is not None and found[2] == 1:
        return f"mod({found[0]},{found[1]})"
    text = ""
    for monomial, coefficient in dim.terms:
        alone = coefficient == 1 and len(monomial) == monomial[0][1] == 1 if monomial else False
        factors = [_spelled(a, alone) for a, p in monomial for _ in range(p)]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += sign + "*".join(factors)
    return text


def _spelled(atom: Atom, alone: bool) -> str:
    if isinstance(atom, str):
        return atom
    kind, x, y = atom
    if kind != FLOOR:
        return f"{kind}({x},{y})"
    left, right = (str(v) if _is_word(v) else f"({v})" for v in (x, y))
    return f"{left}//{right}" if alone else f"({left}//{right})"


def _is_word(extent: int) -> bool:
    """Whether an extent is written as one word, a number without sign or the name of a size."""
    return (type(extent) is int and extent >= 0) or _NAME.fullmatch(str(extent)) is not None


def remainder(dim: int) -> tuple[int, int, int] | None:
    """`x`, `y` and `k` where `dim` is `k * (x % y)`; None for all else."""
    for monomial, coefficient in _terms_of(dim).items():
        for place, (atom, power) in enumerate(monomial):
            if isinstance(atom, str) or atom[0] != FLOOR or power != 1:
                continue
            _, x, y = atom
            others = _made({monomial[:place] + monomial[place + 1 :]: coefficient})
            # Of `-k * y * (x // y)`, all but the floor.
            factor = _divided(others, y)[0] if type(y) is Dim else _exact(others, y)
            if type(factor) is int and factor and _product(factor, y) == others:
                whole = dim - others * _made({((atom, 1),): 1})
                if whole == -factor * x:
                    return x, y, -factor
    return None


def _exact(x: int, y: int) -> int:
    return x // y if type(x) is int and x % y == 0 else 0


_WORD = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<mark>//|[-+*(),%]))", re.ASCII
)


def parse_extent(text: str) -> int:
    """The extent that `text` describes: an integer, or an expression in sizes.

    `2*N+1`, `(N+1)//2`, `N%3`, `mod(N,3)`, `max(N,M)` and `min(N,M)` are such texts. Raises
    `LoadError` for all else.
    """
    return _Reader(text).extent()


def written_extent(text: str) -> int:
    """The extent that `text` of a graph describes, where `?` is `TRIPS`; see `parse_extent`."""
    return TRIPS if text.strip() == _OPEN else parse_extent(text)


class _Reader:
    """Reads one expression, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[tuple[str, str]] = []
        self.at = 0
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _WORD.match(text, place)
            if match is None or len(text) > _LONGEST:
                raise self.error()
            kind = match.lastgroup or ""
            self.words.append((kind, match[kind]))
            place = match.end()

    def error(self) -> LoadError:
        return LoadError(
            f"{self.text!r:.80} is not an extent",
            hint="one is an integer, or an expression in sizes such as 2*N+1, N//2 or max(N,3)",
        )

    def extent(self) -> int:
        try:
            found = self.sum(0)
        except (ArgumentError, ShapeError, ValueError):
            raise self.error() from None
        if self.at < len(self.words):
            raise self.error()
        return found

    def accept(self, mark: str) -> bool:
        found = self.at < len(self.words) and self.words[self.at] == ("mark", mark)
        self.at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.error()

    def sum(self, depth: int) -> int:
        if depth > _DEEPEST:
            raise self.error()
        total = -self.product(depth) if self.accept("-") else self.product(depth)
        while True:
            if self.accept("+"):
                total = total + self.product(depth)
            elif self.accept("-"):
                total = total - self.product(depth)
            else:
                return total

    def product(self, depth: int) -> int:
        total = self.factor(depth)
        while True:
            if self.accept("*"):
                total = total * self.factor(depth)
            elif self.accept("//"):
                total = _floor(total, self.factor(depth))
            elif self.accept("%"):
                divisor = self.factor(depth)
                total = total - divisor * _floor(total, divisor)
            else:
                return total

    def factor(self, depth: int) -> int:
        if self.accept("("):
            found = self.sum(depth + 1)
            self.expect(")")
            return found
        if self.at == len(self.words) or self.words[self.at][0] == "mark":
            raise self.error()
        kind, word = self.words[self.at]
        self.at += 1
        if kind == "number":
            return int(word)
        return self.function(word, depth) if word in ("max", "min", "mod") else size(word)

    def function(self, name: str, depth: int) -> int:
        self.expect("(")
        first = self.sum(depth + 1)
        self.expect(",")
        second = self.sum(depth + 1)
        self.expect(")")
        if name == "mod":
            return first - second * _floor(first, second)
        return _extremum(name, first, second)


def as_extent(number: Any) -> int:
    """`number` as an extent: an integer, a `Dim`, or the text of one, such as "N" or "2*N+1".

    Raises TypeError for anything else, booleans included.
    """
    if type(number) is int or type(number) is Dim:
        return number
    if isinstance(number, str):
        return parse_extent(number)
    if isinstance(number, bool) or type(number).__name__ == "bool_":
        raise TypeError("a boolean is no integer")
    return operator.index(number)


def _for_a_number() -> str:
    """What to write where Python asks for a number: in loops, and for a length."""
    nodes = expressions()
    match nodes[:1]:
        case [ast.Call(func=ast.Name(id="len"), args=[operand])]:
            return f"{text_of(operand)}.shape[0], which is a size"
    # What iterates is at the whole loop, what is called there at the expression.
    if not any(map(_loops, nodes[:1])) and all(
        g.iter not in nodes for n in nodes for g in _loops(n)
    ):
        return ""
    return (
        "pg.scan(f, state, x), which goes through the rows of x, pg.fori_loop(0, n, f, state), "
        "which counts, or pg.map(f, x), which keeps what f gives"
    )


def _loops(node: ast.AST) -> Sequence[ast.For | ast.comprehension]:
    if isinstance(node, ast.For):
        return [node]
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return node.generators if isinstance(node, comprehensions) else []
