"""Sizes, strides and offsets as C expressions of size parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.targets.export.identifiers import ATOM, PRODUCT, SIGN, SUM, Text
from primgraph.ir.dims import FLOOR, MAX, Atom, Dim, Monomial, bounds, names_in, remainder, typical

# Helper functions of size expressions. Sums and products saturate at LONG_MAX.
_HELPERS = {
    "pg_floor": """static inline long pg_floor(long x, long y) {
    const long q = x / y;
    return q - (x % y && (x < 0) != (y < 0));
}""",
    "pg_most": "static inline long pg_most(long x, long y) { return x > y ? x : y; }",
    "pg_least": "static inline long pg_least(long x, long y) { return x < y ? x : y; }",
    "pg_plus": """static inline long pg_plus(long x, long y) {
    const long most = (long)(~0ul >> 1);
    return x > most - y ? most : x + y;
}""",
    "pg_times": """static inline long pg_times(long x, long y) {
    const long most = (long)(~0ul >> 1);
    return y && x > most / y ? most : x * y;
}""",
}


def helpers(used: Collection[str]) -> list[str]:
    """Return the helper functions among the names that are used."""
    return [lines for name, lines in _HELPERS.items() if name in used]


def names_of(n: int) -> set[str]:
    """Return the names in the expression of a size: sizes, and helper functions."""
    if type(n) is not Dim:
        return set()
    found = set(names_in(n))
    rest = _plain_remainder(n)
    if rest is not None:
        return found | names_of(rest[0]) | names_of(rest[1])
    for monomial, _ in n.terms:
        for atom, _ in monomial:
            if not isinstance(atom, str):
                found |= {_function_of(atom)} - {""}
                found |= names_of(atom[1]) | names_of(atom[2])
    return found


def size_text(n: int) -> Text:
    """Return a size as an expression."""
    if type(n) is Dim:
        return _dim_text(n)
    return Text(str(n), ATOM if n >= 0 else SIGN)


def code(n: int, rank: int = SUM) -> str:
    """Return the text of a size, in parentheses if its precedence is below `rank`."""
    return size_text(n).operand_code(rank)


@cache
def _dim_text(dim: Dim) -> Text:
    rest = _plain_remainder(dim)
    if rest is not None:
        x, y, factor = rest
        text = Text(f"{code(x, SIGN)} % {code(y, SIGN)}", PRODUCT)
        return text if factor == 1 else Text(f"{factor} * ({text.code})", PRODUCT)
    # Positive terms come first.
    terms = sorted(dim.terms, key=lambda term: term[1] < 0)
    if len(terms) == 1 and terms[0][1] > 0:
        return _product(*terms[0])
    line = ""
    for monomial, coefficient in terms:
        sign = " - " if coefficient < 0 else " + "
        product = _product(monomial, abs(coefficient)).operand_code(PRODUCT)
        line = f"{line}{sign}{product}" if line else f"{'-' if coefficient < 0 else ''}{product}"
    return Text(line, SUM)


def _plain_remainder(dim: Dim) -> tuple[int, int, int] | None:
    """Return what `x % y` in C computes of a size times a factor: `x`, `y` and the factor."""
    rest = remainder(dim)
    return rest if rest is not None and _is_plain(*rest[:2]) else None


def _is_plain(x: int, y: int) -> bool:
    """Return whether C divides as Python does."""
    return bounds(x)[0] >= 0 and bounds(y)[0] > 0


def _function_of(atom: tuple[str, int, int]) -> str:
    """Return the helper function of an atom; empty for a division that needs none."""
    kind, x, y = atom
    if kind == FLOOR:
        return "" if _is_plain(x, y) else "pg_floor"
    return "pg_most" if kind == MAX else "pg_least"


def _product(monomial: Monomial, number: int) -> Text:
    factors = [_factor(atom) for atom, power in monomial for _ in range(power)]
    if number != 1 or not factors:
        factors.insert(0, Text(str(number)))
    if len(factors) == 1:
        return factors[0]
    return Text(" * ".join([f.operand_code(SIGN) for f in factors]), PRODUCT)


def _factor(atom: Atom) -> Text:
    if isinstance(atom, str):
        return Text(atom)
    _, x, y = atom
    name = _function_of(atom)
    if not name:
        return Text(f"{code(x, PRODUCT)} / {code(y, SIGN)}", PRODUCT)
    return Text(f"{name}({code(x)}, {code(y)})")


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
        text += f" - {code(-offset, PRODUCT)}" if text else code(offset)
    for name, stride in pairs:
        if _is_negative(stride):
            text += f" - {times(name, -stride)}"
    return text


def _is_negative(n: int) -> bool:
    """Return whether a size is never positive, and not known to be zero."""
    return not is_zero(n) and bounds(n)[1] <= 0


def times(name: str, stride: int) -> str:
    """Return a multiple of a variable."""
    return name if type(stride) is int and stride == 1 else f"{name} * {code(stride, SIGN)}"


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
