"""Sizes as Python expressions, formatted as code formatters do; symbolic sizes are names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

from primgraph.ir.dims import FLOOR, Atom, Dim, Monomial, remainder
from primgraph.ir.types import Shape

# Precedence of the outermost operator of an expression.
SUM, PRODUCT, POWER, WORD = range(4)


class SizeText(NamedTuple):
    """An expression, and the precedence of its outermost operator."""

    code: str
    rank: int

    def operand_code(self, rank: int) -> str:
        """Return the expression, in parentheses if its precedence is below `rank`."""
        return self.code if self.rank >= rank else f"({self.code})"


# The names of sizes that are written within a block of `sizes_written`.
_written: ContextVar[set[str] | None] = ContextVar("written", default=None)


@contextmanager
def sizes_written() -> Iterator[set[str]]:
    """Collect the names of symbolic sizes that the block writes.

    >>> from primgraph.ir.dims import size
    >>> with sizes_written() as names:
    ...     text = extent_text(2 * size("N"))
    >>> text, names
    ('2 * N', {'N'})
    """
    names: set[str] = set()
    token = _written.set(names)
    try:
        yield names
    finally:
        _written.reset(token)


def extent_text(extent: int) -> str:
    """Return the expression of a size."""
    return size_text(extent).code


def extents_text(shape: Shape) -> str:
    """Return the tuple display of a shape."""
    return f"({', '.join(map(extent_text, shape))}{',' if len(shape) == 1 else ''})"


@cache
def _dim_text(dim: Dim) -> SizeText:
    found = remainder(dim)
    if found is not None:
        x, y, factor = found
        rest = SizeText(
            f"{size_text(x).operand_code(PRODUCT)} % {size_text(y).operand_code(POWER)}", PRODUCT
        )
        return rest if factor == 1 else SizeText(f"{factor} * ({rest.code})", PRODUCT)
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
    return SizeText(text, SUM)


def size_text(extent: int) -> SizeText:
    """Return the expression of a size with its precedence."""
    if type(extent) is Dim:
        names = _written.get()
        if names is not None:
            names |= extent.names
        return _dim_text(extent)
    return SizeText(str(extent), WORD if extent >= 0 else SUM)


def _product(monomial: Monomial, number: int, alone: bool) -> SizeText:
    factors = [_power(atom, power) for atom, power in monomial]
    if number != 1 or not factors:
        factors.insert(0, SizeText(str(number), WORD))
    if len(factors) == 1:
        return factors[0] if alone else SizeText(factors[0].operand_code(POWER), WORD)
    return SizeText(" * ".join(f.operand_code(POWER) for f in factors), PRODUCT)


def _power(atom: Atom, power: int) -> SizeText:
    base = _atom(atom)
    if power == 1:
        return base
    # Formatters put spaces around it unless both sides are names or numbers.
    simple = base.code.isidentifier()
    return SizeText(f"{base.operand_code(WORD)}{'**' if simple else ' ** '}{power}", POWER)


def _atom(atom: Atom) -> SizeText:
    if isinstance(atom, str):
        return SizeText(atom, WORD)
    kind, x, y = atom
    if kind == FLOOR:
        # Floor division does not distribute over products: the order of evaluation is kept.
        return SizeText(
            f"{size_text(x).operand_code(PRODUCT)} // {size_text(y).operand_code(POWER)}", PRODUCT
        )
    return SizeText(f"{kind}({extent_text(x)}, {extent_text(y)})", WORD)
