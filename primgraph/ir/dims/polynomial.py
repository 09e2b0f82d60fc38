"""Integer polynomials in sizes and atoms: normal form, quotients, extrema and bounds.

Polynomials that are equal for all sizes have one normal form, and equal normal forms are one
object. Atoms are sizes, floor divisions, maxima and minima. Results are Python integers, or
polynomials that contain a size.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from primgraph.base.records import Fixed
from primgraph.errors import ArgumentError, ShapeError

# A size is its name; any other atom is an operation with its operands.
Atom: TypeAlias = "str | tuple[str, int, int]"
# Sorted atoms with their powers, and the coefficients of their products.
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]
FLOOR, MAX, MIN = "//", "max", "min"

_UNBOUNDED = math.inf

# Limits of a polynomial: terms, characters of its text with all atoms expanded, nesting of atoms,
# and absolute value of numbers. They hold for computed and parsed polynomials.
MOST_TERMS, LONGEST, DEEPEST, LARGEST = 256, 2000, 20, 2**256

# Maximum number of terms of relaxed forms tried for one bound.
_RELAXED = 4000

if TYPE_CHECKING:
    # Shape rules treat known and symbolic sizes alike, so that both are integers to the type
    # checker.
    _Integer = int
else:
    _Integer = object


class Polynomial(Fixed, _Integer):
    """Terms of a symbolic size; its only subclass defines the operations.

    Equal polynomials are one object.
    """

    __slots__ = ("_bounds", "_depth", "_length", "_text", "terms")

    terms: Terms
    # Nesting depth of atoms, and an upper bound on the length of its text.
    _depth: int
    _length: int
    _text: str
    _bounds: tuple[float, float] | None

    # The class of results.
    _kind: ClassVar[type[Polynomial]]

    if TYPE_CHECKING:

        def __new__(cls, terms: Terms) -> Self: ...

    def __init_subclass__(cls) -> None:
        Polynomial._kind = cls

    __hash__ = object.__hash__


def is_extent(number: object) -> bool:
    """Return whether `number` is a Python integer (not a boolean) or a polynomial."""
    return type(number) is int or isinstance(number, Polynomial)


# The normal form.


def terms_of(extent: int) -> dict[Monomial, int]:
    if isinstance(extent, Polynomial):
        return dict(extent.terms)
    return {(): extent} if extent else {}


def make_size(terms: Mapping[Monomial, int]) -> int:
    """Return the size with these terms: an integer if no atoms are left."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Polynomial._kind(tuple(sorted(kept.items(), key=_place)))


def _place(term: tuple[Monomial, int]) -> Any:
    """Sort key of a term in a sum: by decreasing degree, then by name."""
    return -sum(power for _, power in term[0]), [(_key(a), p) for a, p in term[0]]


def _key(atom: Atom) -> str:
    return atom if isinstance(atom, str) else "{}({},{})".format(*atom)


def measure(terms: Terms) -> tuple[int, int]:
    """Return the depth of atoms in `terms` and an upper bound on the characters of their text.

    Raises `ShapeError` above a limit.
    """
    depth, length = 0, 0
    if len(terms) > MOST_TERMS:
        raise _too_large(f"more than {MOST_TERMS} terms")
    for monomial, coefficient in terms:
        length += 1 + _digits(coefficient)
        for atom, power in monomial:
            if isinstance(atom, str):
                length += power * (len(atom) + 1)
                continue
            inner = 0
            for operand in atom[1:]:
                if isinstance(operand, Polynomial):
                    depth = max(depth, operand._depth + 1)
                    inner += operand._length
                else:
                    inner += _digits(operand)
            length += power * (inner + 8)
    if length > LONGEST:
        raise _too_large(f"more than {LONGEST} characters")
    if depth > DEEPEST:
        raise _too_large(f"more than {DEEPEST} quotients and extrema in each other")
    return depth, length


def _digits(number: Any) -> int:
    """Return the number of characters of a number. Raises `ShapeError` if it is too large."""
    if not -LARGEST <= number <= LARGEST:
        raise _too_large(f"a number of {number.bit_length()} bits")
    return 2 + int(number.bit_length()) // 3


def _too_large(found: str) -> ShapeError:
    return ShapeError(
        f"an expression in sizes has {found}",
        hint=f"limits: {MOST_TERMS} terms, {LONGEST} characters, {DEEPEST} quotients and extrema "
        f"in each other, numbers of {LARGEST.bit_length() - 1} bits; give a part of it a name of "
        "its own, as a size of an input",
    )


def sum_of(x: int, y: int, sign: int) -> int:
    if type(x) is int and type(y) is int:
        return x + sign * y
    terms = terms_of(x)
    for monomial, coefficient in terms_of(y).items():
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return make_size(terms)


def product(x: int, y: int) -> int:
    if type(x) is int and type(y) is int:
        return x * y
    if type(x) is int:
        x, y = y, x
    if type(y) is int:
        # Scaling keeps the order of terms.
        assert isinstance(x, Polynomial)
        return Polynomial._kind(tuple([(m, c * y) for m, c in x.terms])) if y else 0
    terms: dict[Monomial, int] = {}
    right = terms_of(y).items()
    for first, a in terms_of(x).items():
        for second, b in right:
            monomial = _multiply_monomials(first, second) if first and second else first or second
            terms[monomial] = terms.get(monomial, 0) + a * b
        # Few terms cancel, so stop early far above the limit.
        if len(terms) > 2 * MOST_TERMS:
            raise _too_large(f"more than {MOST_TERMS} terms")
    return make_size(terms)


def _multiply_monomials(first: Monomial, second: Monomial) -> Monomial:
    powers = dict(first)
    for atom, power in second:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _key(item[0])))


def floor(x: int, y: int) -> int:
    """Return the floor of a quotient, after dividing out all multiples."""
    if type(y) is int:
        if y == 0:
            raise ShapeError(f"size {x} is divided by zero")
        if type(x) is int or y == 1:
            return x // y if type(x) is int else x
        return _floor_by_number(x, y) if y > 0 else _floor_by_number(-x, -y)
    whole, rest = divide_polynomials(x, y)
    if type(rest) is int and rest == 0:
        return whole
    # The rest has no multiples of the divisor.
    atom: Atom = (FLOOR, rest, y)
    if bounds(rest)[0] >= 0 and bounds(y - rest)[0] > 0:
        return whole
    return sum_of(whole, make_size({((atom, 1),): 1}), 1)


def _floor_by_number(x: int, y: int) -> int:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in terms_of(x).items():
        whole[monomial], rest[monomial] = divmod(coefficient, y)
    # If all other terms are multiples of a number, a smaller constant does not change the floor.
    common = math.gcd(y, *(c for m, c in rest.items() if m))
    number = rest.pop((), 0) // common
    left = make_size({**{m: c // common for m, c in rest.items()}, (): number})
    return sum_of(make_size(whole), _quotient(left, y // common), 1)


def _quotient(x: int, y: int) -> int:
    """Return the floor of `x / y`, where no coefficient of `x` is negative or a multiple of `y`."""
    if type(x) is int or y == 1:
        return x // y if type(x) is int else x
    low, high = bounds(x)
    if low >= 0 and high < y:
        return 0
    inner = _only_floor(x)
    if inner is not None:
        (_, dividend, divisor), number = inner
        return floor(dividend + number * divisor, y * divisor)
    return make_size({(((FLOOR, x, y), 1),): 1})


def _only_floor(x: int) -> tuple[tuple[str, int, int], int] | None:
    """Split `x` into a floor division by a number and a constant; None if it is anything else."""
    terms = terms_of(x)
    number = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, coefficient),) = terms.items()
    atom, power = monomial[0]
    if len(monomial) > 1 or power != 1 or coefficient != 1 or isinstance(atom, str):
        return None
    return (atom, number) if atom[0] == FLOOR and type(atom[2]) is int else None


def divide_polynomials(x: int, y: int) -> tuple[int, int]:
    """Divide `x` by the polynomial `y`: return the quotient and the remaining terms."""
    whole, rest = 0, x
    (lead, coefficient), *_ = _terms_of(y)
    for _ in range(len(_terms_of(x))):
        found = next(
            (t for m, c in _terms_of(rest) if (t := _ratio(m, c, lead, coefficient)) is not None),
            None,
        )
        if found is None:
            break
        smaller = rest - product(found, y)
        if len(_terms_of(smaller)) >= len(_terms_of(rest)):
            break
        whole, rest = whole + found, smaller
    return whole, rest


def _terms_of(x: int) -> Terms:
    if isinstance(x, Polynomial):
        return x.terms
    return (((), x),) if x else ()


def _ratio(monomial: Monomial, number: int, lead: Monomial, coefficient: int) -> int | None:
    """Divide one term by another; None if it is not a multiple."""
    powers = dict(monomial)
    for atom, power in lead:
        powers[atom] = powers.get(atom, 0) - power
    if number % coefficient or min(powers.values(), default=0) < 0:
        return None
    left = tuple(sorted(((a, p) for a, p in powers.items() if p), key=lambda i: _key(i[0])))
    return make_size({left: number // coefficient})


def extremum(kind: str, x: int, y: int) -> int:
    """Return the maximum or minimum of two sizes."""
    if not is_extent(x) or not is_extent(y):
        raise ArgumentError(f"{kind} of sizes takes sizes and integers, not {x!r:.40}, {y!r:.40}")
    low, high = bounds(x - y)
    if low >= 0 or high <= 0:
        return x if (low >= 0) == (kind == MAX) else y
    first, second = sorted((x, y), key=str)
    return make_size({(((kind, first, second), 1),): 1})


# Bounds.


def bounds(extent: int) -> tuple[float, float]:
    """Return proven bounds of a size over all values of symbolic sizes."""
    if not isinstance(extent, Polynomial):
        return extent, extent
    if extent._bounds is None:
        high = _lowest(product(extent, -1), {})
        object.__setattr__(extent, "_bounds", (_lowest(extent, {}), -high))
    found = extent._bounds
    assert found is not None
    return found


def _lowest(extent: int, found: dict[int, float]) -> float:
    """Return a proven lower bound of a size: the best one of its terms and relaxed forms.

    `found` caches the bounds of the forms tried. There is one for each order and subset of atoms,
    so that only forms of `_RELAXED` terms in all are tried.
    """
    if not isinstance(extent, Polynomial):
        return extent
    if extent in found:
        return found[extent]
    best = 0.0
    for monomial, coefficient in extent.terms:
        low, high = _span(monomial)
        end = min(low, sys.float_info.max) if coefficient > 0 else max(high, -sys.float_info.max)
        best += coefficient * end
    found[extent] = best
    for monomial, coefficient in extent.terms:
        if len(monomial) == 1 and monomial[0][1] == 1 and not isinstance(monomial[0][0], str):
            if len(found) * len(extent.terms) >= _RELAXED:
                break
            rest = sum_of(extent, make_size({monomial: coefficient}), -1)
            with suppress(ShapeError):
                # A form above the limits gives no bound.
                for scaled, factor in _lower_bounds(monomial[0][0], coefficient, rest):
                    low = _lowest(scaled, found)
                    best = max(best, low if low == -_UNBOUNDED else float(-(-low // factor)))
    found[extent] = best
    return best


def _lower_bounds(
    atom: tuple[str, int, int], coefficient: int, rest: int
) -> Iterator[tuple[int, int]]:
    """Yield lower bounds of `coefficient * atom + rest` without that atom, with their factors.

    A floor is at most the quotient, and at least the quotient minus `(divisor - 1) / divisor`. An
    extremum is bounded by either operand from one side.
    """
    kind, x, y = atom
    if kind == FLOOR:
        if type(y) is int and y > 0:
            quotient = x if coefficient < 0 else x - (y - 1)
            yield sum_of(product(rest, y), product(quotient, coefficient), 1), y
    elif (kind == MAX) == (coefficient > 0):
        for operand in (x, y):
            yield sum_of(rest, product(operand, coefficient), 1), 1


def _span(monomial: Monomial) -> tuple[float, float]:
    """Return the bounds of a product of powers of atoms."""
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
            # Division by zero raises, whatever the other operand is.
            return (0.0, high) if low >= 0 and first >= 0 else (-_UNBOUNDED, _UNBOUNDED)
        ends = [_part(a, b) for a in (low, high) for b in (first, last)]
        return min(ends), max(ends)
    choose: Callable[[float, float], float] = max if kind == MAX else min
    return choose(low, first), choose(high, last)


def _part(a: float, b: float) -> float:
    if abs(a) == _UNBOUNDED:
        return a
    return float(-1 if a < 0 else 0) if b == _UNBOUNDED else float(a // b)
