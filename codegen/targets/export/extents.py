"""Sizes, strides and offsets as C expressions of size parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from primgraph.codegen.ir.c_extents import FUNCTIONS, HELPERS, is_zero
from primgraph.codegen.ir.extents import ADD, MUL, UNARY, SizeWriter
from primgraph.ir.dims import FLOOR, Atom, bounds, size, typical
from primgraph.ir.dims.polynomial import terms_of

# Helper functions of size expressions. Sums and products saturate at LONG_MAX.
_HELPERS = {
    **HELPERS,
    "pg_plus": """static inline long pg_plus(long x, long y) {
    const long most = (long)(~0ul >> 1);
    return x > most - y ? most : x + y;
}""",
    "pg_times": """static inline long pg_times(long x, long y) {
    const long most = (long)(~0ul >> 1);
    return y && x > most / y ? most : x * y;
}""",
}
_WRITER = SizeWriter(FUNCTIONS, divide="/")
names_of = _WRITER.names


def helpers(used: Collection[str]) -> list[str]:
    """Return the helper functions among the names that are used."""
    return [lines for name, lines in _HELPERS.items() if name in used]


def code(n: int, rank: int = ADD) -> str:
    """Return the text of a size, in parentheses if its precedence is below `rank`."""
    return _WRITER.text(n).operand_code(rank)


def index(offset: int, variables: Sequence[str], strides: Sequence[int]) -> str:
    """Return the index expression of an element, from loop variables and their strides."""
    text = ""
    pairs = [(v, s) for v, s in zip(variables, strides, strict=True) if not is_zero(s)]
    pairs.sort(key=lambda pair: -abs(typical(pair[1])))
    for name, stride in pairs:
        if not _is_negative(stride):
            text += f"{' + ' if text else ''}{times(name, stride)}"
    if not _is_negative(offset) and not (is_zero(offset) and text):
        text += f" + {code(offset)}" if text else code(offset)
    elif _is_negative(offset):
        text += f" - {code(-offset, MUL)}" if text else code(offset)
    for name, stride in pairs:
        if _is_negative(stride):
            text += f" - {times(name, -stride)}"
    return text


def _is_negative(n: int) -> bool:
    """Return whether a size is never positive, and not known to be zero."""
    return not is_zero(n) and bounds(n)[1] <= 0


def times(name: str, stride: int) -> str:
    """Return a multiple of a variable."""
    return name if type(stride) is int and stride == 1 else f"{name} * {code(stride, UNARY)}"


def offset_address(pointer: str, place: str | int) -> str:
    """Return the address of the element at `place` after `pointer`."""
    return pointer if place in ("0", 0) else f"{pointer} + {place}"


def most(extents: Iterable[int], use: Callable[[str], str] = str) -> str:
    """Return an expression that is an upper bound of the sizes and their terms.

    Sizes are nonnegative. The expression saturates at LONG_MAX. It `use`s functions.
    """
    largest: dict[tuple[str, ...], int] = {}
    for n in extents:
        for monomial, number in terms_of(_upper_bound(n)).items():
            factors = tuple([str(atom) for atom, power in monomial for _ in range(power)])
            largest[factors] = max(number, largest.get(factors, 0))
    total = ""
    for factors, number in sorted(largest.items(), key=lambda item: (-len(item[0]), item[0])):
        term = str(number)
        for k, name in enumerate(factors):
            term = name if not k and number == 1 else f"{use('pg_times')}({term}, {name})"
        total = f"{use('pg_plus')}({total}, {term})" if total else term
    return total or "0"


def _upper_bound(n: int) -> int:
    """Return a polynomial in sizes, with nonnegative coefficients, that bounds the magnitude."""
    total = 0
    for monomial, coefficient in terms_of(n).items():
        product = abs(coefficient)
        for atom, power in monomial:
            product = product * _atom_upper_bound(atom) ** power
        total = total + product
    return total


def _atom_upper_bound(atom: Atom) -> int:
    if isinstance(atom, str):
        return size(atom)
    kind, x, y = atom
    # An integer quotient is at most its dividend.
    return _upper_bound(x) + (0 if kind == FLOOR else _upper_bound(y))
