"""Sizes as Python expressions, formatted as code formatters do; symbolic sizes are names."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from primgraph.ir.dims import FLOOR, Atom, Dim, Monomial, remainder
from primgraph.ir.types import Shape

# Precedence of the outermost operator of an expression.
SUM, PRODUCT, POWER, WORD = range(4)


class Written(NamedTuple):
    """An expression, and the precedence of its outermost operator."""

    code: str
    rank: int

    def within(self, rank: int) -> str:
        """Return the expression, in parentheses if its precedence is below `rank`."""
        return self.code if self.rank >= rank else f"({self.code})"


def extent_text(extent: int) -> str:
    """Return the expression of a size."""
    return written(extent).code


def extents_text(shape: Shape) -> str:
    """Return the tuple display of a shape."""
    return f"({', '.join(map(extent_text, shape))}{',' if len(shape) == 1 else ''})"


@cache
def _dim_text(dim: Dim) -> Written:
    found = remainder(dim)
    if found is not None:
        x, y, factor = found
        rest = Written(f"{written(x).within(PRODUCT)} % {written(y).within(POWER)}", PRODUCT)
        return rest if factor == 1 else Written(f"{factor} * ({rest.code})", PRODUCT)
    # Positive terms come first.
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
    """Return the expression of a size with its precedence."""
    if type(extent) is Dim:
        return _dim_text(extent)
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
        # Floor division does not distribute over products: the order of evaluation is kept.
        return Written(f"{written(x).within(PRODUCT)} // {written(y).within(POWER)}", PRODUCT)
    return Written(f"{kind}({extent_text(x)}, {extent_text(y)})", WORD)
