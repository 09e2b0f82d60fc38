"""The type of symbolic sizes, and queries for sizes of both kinds."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, final

from primgraph.base.user_lines import is_own
from primgraph.errors import ArgumentError, UnknownSizeError
from primgraph.ir.dims.polynomial import (
    FLOOR,
    MAX,
    MIN,
    Atom,
    Polynomial,
    Terms,
    bounds,
    extremum,
    floor,
    is_extent,
    measure,
    product,
    sum_of,
)
from primgraph.ir.dims.spelling import NAME, for_a_number, text_of

# Words with another meaning where text has a size.
_TAKEN = frozenset(
    ["max", "min", "mod", "True", "False", "None", "inf", "nan", "bool"]
    + [f"{kind}{8 * n}" for kind in "iuf" for n in (1, 2, 4, 8)]
)

# Text and atom for the number of rows of growing stacks; no size has that name.
OPEN = "?"

_TYPICAL = 64

_OUT = (
    "a size that is known when the program is built, {0}.max(k) or {0}.min(k) in the place of "
    "Python's max and min, or pg.where on pg.asarray({0}) while it runs"
)


@final
class Dim(Polynomial):
    """A symbolic size: an integer expression in named sizes.

    `+`, `-`, `*`, `//` and `%`, with integers and with each other, give such expressions, and so do
    `n.max(k)` and `n.min(k)`. Sizes are at least 0. A comparison has a result if it is the same for
    all sizes; otherwise it is an `UnknownSizeError`.

    >>> n = pg.dim("N")
    >>> 2 * n + 1, (n + 1) // 2
    (2*N+1, (N+1)//2)
    """

    __slots__ = ()

    # Equal expressions are one object.
    __hash__ = object.__hash__

    if TYPE_CHECKING:

        def __new__(cls, terms: Terms) -> Dim: ...

    else:

        def __new__(cls, terms: Terms) -> Dim:
            """Return the expression of these terms, which are sorted and contain a size."""
            found = _dims.get(terms)
            if found is None:
                made, (depth, length) = object.__new__(cls), measure(terms)
                for name, value in (
                    *(("terms", terms), ("_text", ""), ("_bounds", None)),
                    *(("_depth", depth), ("_length", length)),
                ):
                    object.__setattr__(made, name, value)
                found = _dims.setdefault(terms, made)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Dim, (self.terms,)

    @property
    def names(self) -> frozenset[str]:
        """Sizes in this expression."""
        return _names_in(self)

    def at(self, sizes: Mapping[str, int]) -> int:
        """Evaluate at these sizes; other sizes stay symbolic.

        Raises `ShapeError` for a division by zero.
        """
        total = 0
        for monomial, coefficient in self.terms:
            product = coefficient
            for atom, power in monomial:
                product = product * _atom_at(atom, sizes) ** power
            total = total + product
        return total

    def max(self, other: int) -> int:
        """Return the maximum of this and another size."""
        return extremum(MAX, self, other)

    def min(self, other: int) -> int:
        """Return the minimum of this and another size."""
        return extremum(MIN, self, other)

    # Arithmetic.

    def __add__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return sum_of(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return sum_of(self, other, -1)

    def __rsub__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return sum_of(other, self, -1)

    def __mul__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return product(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> int:
        return product(self, -1)

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
        return floor(self, other)

    def __rfloordiv__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return floor(other, self)

    def __mod__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return self - other * floor(self, other)

    def __rmod__(self, other: int) -> int:
        if not is_extent(other):
            return NotImplemented
        return other - self * floor(other, self)

    def __divmod__(self, other: int) -> tuple[int, int]:
        if not is_extent(other):
            return NotImplemented
        quotient: int = floor(self, other)
        return quotient, self - other * quotient

    def __rdivmod__(self, other: int) -> tuple[int, int]:
        if not is_extent(other):
            return NotImplemented  # type: ignore[no-any-return]
        quotient: int = floor(other, self)
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
            # Types whose sizes are not known to be equal are different types.
            return False
        low, high = bounds(self - other)  # type: ignore[operator]
        if low > 0 or high < 0:
            return False
        raise self._undecided_error("==", other)

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
        raise self._undecided_error("!=", other)

    def __ge__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decide_relation(">=", other, self - other)

    def __gt__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decide_relation(">", other, self - other - 1)

    def __le__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decide_relation("<=", other, other - self)

    def __lt__(self, other: int) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._decide_relation("<", other, other - self - 1)

    def _decide_relation(self, relation: str, other: object, difference: int) -> bool:
        """Decide whether `difference`, which the relation requires to be at least 0, is."""
        low, high = bounds(difference)
        if low >= 0 or high < 0:
            return low >= 0
        raise self._undecided_error(relation, other)

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise self._undecided_error("!=", 0)

    # Operations that need a number.

    def __index__(self) -> NoReturn:
        raise self._unknown(f"a number for {self}", for_a_number())

    def __int__(self) -> NoReturn:
        raise self._unknown(f"int({self})")

    def __float__(self) -> NoReturn:
        raise self._unknown(f"float({self})")

    def _undecided_error(self, relation: str, other: object) -> UnknownSizeError:
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
            object.__setattr__(self, "_text", text_of(self))
        return self._text

    __repr__ = __str__


_dims: dict[Terms, Dim] = {}


def _brief(dim: Dim) -> str:
    """Return the text of the expression in an example."""
    return str(dim) if NAME.fullmatch(str(dim)) else "n"


def size(name: str) -> Dim:
    """Return the size of that name.

    Raises `ArgumentError` if it is not a plain ASCII identifier, or has another meaning in text.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in _TAKEN:
        raise ArgumentError(
            f"a size is named by letters, digits and underscores, not {name!r:.60}",
            hint="dtypes, True, False, None, inf, nan, max, min and mod are no names of sizes",
        )
    return Dim(((((name, 1),), 1),))


# Number of rows of a growing stack, to which each loop step adds one. No input determines it, and
# no size is part of it. Stacks pass from loop to loop, and no other operation uses them.
TRIPS: Dim = Dim(((((OPEN, 1),), 1),))


def is_open(shape: tuple[int, ...]) -> bool:
    """Return whether this is the shape of a growing stack."""
    return bool(shape) and shape[0] is TRIPS


def extent_at(extent: int, sizes: Mapping[str, int]) -> int:
    """Evaluate a size at these sizes; an integer is returned as it is."""
    return extent.at(sizes) if type(extent) is Dim else extent


def typical(extent: int) -> int:
    """Estimate a size with 64 for all sizes, for choices that do not affect results."""
    return extent_at(extent, dict.fromkeys([OPEN, *names_in(extent)], _TYPICAL))


def single_row_size(extent: int) -> int:
    """Evaluate a size with one row for growing stacks, as cost estimates do."""
    return extent.at({OPEN: 1}) if type(extent) is Dim else extent


def names_in(extents: Any) -> frozenset[str]:
    """Return the sizes that occur in a size, or in nested tuples of parameters."""
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
                if atom != OPEN:
                    found.add(atom)
            else:
                found.update(names_in(atom[1:]))
    return frozenset(found)


def _atom_at(atom: Atom, sizes: Mapping[str, int]) -> int:
    if atom == OPEN:
        return sizes.get(OPEN, TRIPS)
    if isinstance(atom, str):
        return sizes[atom] if atom in sizes else size(atom)
    kind, *operands = atom
    left, right = (extent_at(x, sizes) for x in operands)
    return floor(left, right) if kind == FLOOR else extremum(kind, left, right)
