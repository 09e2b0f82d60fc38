"""Extents as Python expressions, laid out as formatters do; sizes are variables of their names."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from primgraph.ir.dims import FLOOR, Atom, Dim, Monomial, remainder
from primgraph.ir.types import Shape

# How tightly the outermost operator of such an expression binds.
SUM, PRODUCT, POWER, WORD = range(4)


class Written(NamedTuple):
    """An expression, and how tightly its outermost operator binds."""

    code: str
    rank: int

    def within(self, rank: int) -> str:
        """The expression, in parentheses if it binds less tightly than `rank`."""
        return self.code if self.rank >= rank else f"({self.code})"


def extent_text(extent: int) -> str:
    """The expression of an extent."""
    return written(extent).code


def extents_text(shape: Shape) -> str:
    """The display of a tuple of extents."""
    return f"({', '.join(map(extent_text, shape))}{',' if len(shape) == 1 else ''})"


@cache
def _written(dim: Dim) -> Written:
    found = remainder(dim)
    if found is not None:
        x, y, factor = found
        rest = Written(f"{written(x).within(PRODUCT)} % {written(y).within(POWER)}", PRODUCT)
        return rest if factor == 1 else Written(f"{factor} * ({rest.code})", PRODUCT)
    # What is added comes before what is taken away.
    terms = sorted(dim.terms, key=lambda term: term[1] < 0)
    text = ""
    for monomial, coefficient in terms:
        first = not text
        product = _product(monomial, abs(coefficient), alone=coefficient > 0 or not first)
        if len(terms) == 1 and coefficient > 0:
            return product
        sign = "-" if first else " - "
        text += (sign if coefficient < 0 else "" if first else " + ") + product.code
    return Written(text, SUM)


def written(extent: int) -> Written:
    """The expression of an extent, and how tightly it binds."""
    if type(extent) is Dim:
        return _written(extent)
    return Written(str(extent), WORD if extent >= 0 else SUM)


def _product(monomial: Monomial, number: int, alone: bool) -> Written:
    factors = [_power(atom, power) for atom, power in monomial]
    if number != 1 or not factors:
        factors.insert(0, Written(str(number), WORD))
    if len(factors) == 1:
        return factors[0] if alone else Written(factors[0].within(POWER), WORD)
    return Written(" * ".join(f.within(POWER) for f in factors), PRODUCT)


def _power(atom: Atom, power: int) -> Written:
    base = _atom(atom)
    if power == 1:
        return base
    # Formatters put spaces around it unless both sides are names or numbers.
    simple = base.code.isidentifier()
    return Written(f"{base.within(WORD)}{'**' if simple else ' ** '}{power}", POWER)


def _atom(atom: Atom) -> Written:
    if isinstance(atom, str):
        return Written(atom, WORD)
    kind, x, y = atom
    if kind == FLOOR:
        # Floors of products are no products of floors: they are read from the left.
        return Written(f"{written(x).within(PRODUCT)} // {written(y).within(POWER)}", PRODUCT)
    return Written(f"{kind}({extent_text(x)}, {extent_text(y)})", WORD)
