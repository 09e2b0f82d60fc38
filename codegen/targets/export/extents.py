"""Sizes, strides and offsets as C expressions of size parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from primgraph.codegen.ir.c_extents import FUNCTIONS, HELPERS, is_zero
from primgraph.codegen.ir.extents import ADD, MUL, UNARY, SizeWriter
from primgraph.ir.dims import FLOOR, Atom, Dim, bounds, typical

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
        for factors, number in _upper_bound(n).items():
            largest[factors] = max(number, largest.get(factors, 0))
    terms = []
    for factors, number in sorted(largest.items(), key=lambda item: (-len(item[0]), item[0])):
        term = str(number)
        for k, name in enumerate(factors):
            term = name if not k and number == 1 else f"{use('pg_times')}({term}, {name})"
        terms.append(term)
    total = terms[0] if terms else "0"
    for term in terms[1:]:
        total = f"{use('pg_plus')}({total}, {term})"
    return total


def _upper_bound(n: int) -> dict[tuple[str, ...], int]:
    """Return a polynomial with nonnegative coefficients that bounds the magnitude of a size.

    It maps products of sizes to coefficients.
    """
    found: dict[tuple[str, ...], int] = {}
    for monomial, coefficient in n.terms if type(n) is Dim else (((), n),):
        product: dict[tuple[str, ...], int] = {(): abs(coefficient)}
        for atom, power in monomial:
            for _ in range(power):
                product = _multiply_polynomials(product, _atom_upper_bound(atom))
        for factors, number in product.items():
            found[factors] = found.get(factors, 0) + number
    return found


def _atom_upper_bound(atom: Atom) -> dict[tuple[str, ...], int]:
    if isinstance(atom, str):
        return {(atom,): 1}
    kind, x, y = atom
    found = dict(_upper_bound(x))
    # An integer quotient is at most its dividend.
    for factors, number in _upper_bound(y).items() if kind != FLOOR else ():
        found[factors] = found.get(factors, 0) + number
    return found


def _multiply_polynomials(
    left: dict[tuple[str, ...], int], right: dict[tuple[str, ...], int]
) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for x, a in left.items():
        for y, b in right.items():
            factors = tuple(sorted((*x, *y)))
            found[factors] = found.get(factors, 0) + a * b
    return found
