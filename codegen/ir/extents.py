"""Expressions with their precedence, and sizes as expressions.

Symbolic sizes are names, and a table of words is the language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, final

from primgraph.ir.dims import FLOOR, MAX, MIN, Atom, Dim, Monomial, bounds, remainder
from primgraph.ir.types import Shape

# Precedence as in Python's grammar. `@` binds like `*`, but parentheses keep them apart.
COMPARE, OR, XOR, AND, ADD, MATMUL, MUL, UNARY, POWER, ATOM = range(10)

# Precedence in C below that of sums: `?:`, operators of bits, and comparisons.
CHOICE, EITHER, RELATION = range(3)


class Text(NamedTuple):
    """An expression, and the precedence of its outermost operator; the number of a literal."""

    code: str
    rank: int = ATOM
    scalar: Any = None

    def operand_code(self, rank: int) -> str:
        """Return the expression, in parentheses if its precedence is below `rank`.

        >>> Text("x + 1", ADD).operand_code(MUL)
        '(x + 1)'
        """
        return self.code if self.rank >= rank else f"({self.code})"


@final
class SizeWriter:
    """Writer of sizes in one language.

    `functions` are templates for what has no operator, by the kind of the atom; their operands have
    at least the precedence `within`. Without one for a floor, `divide` rounds down, else it is used
    only if both sides are known to be positive. `name` is the template of the name of a size.

    >>> from primgraph.ir.dims import size
    >>> PYTHON.text((2 * size("N") - 1) // 3)
    Text(code='(2 * N - 1) // 3', rank=6, scalar=None)
    """

    def __init__(
        self,
        functions: Mapping[str, str],
        *,
        divide: str = "//",
        name: str = "{}",
        has_powers: bool = False,
        within: int = 0,
    ) -> None:
        self.functions, self.divide, self.name = functions, divide, name
        self.has_powers, self.within = has_powers, within
        self._known: dict[Dim, tuple[Text, frozenset[str]]] = {}

    def text(self, n: int) -> Text:
        """Return the expression of a size with its precedence."""
        if type(n) is not Dim:
            return Text(str(n), ATOM if n >= 0 else UNARY)
        return self._written(n)[0]

    def names(self, n: int) -> frozenset[str]:
        """Return the names in the expression of a size: of sizes, and of functions."""
        return self._written(n)[1] if type(n) is Dim else frozenset()

    def _written(self, dim: Dim) -> tuple[Text, frozenset[str]]:
        if dim not in self._known:
            names: set[str] = set()
            self._known[dim] = self._sum(dim, names), frozenset(names)
        return self._known[dim]

    def _operand(self, n: int, rank: int, names: set[str]) -> str:
        names |= self.names(n)
        return self.text(n).operand_code(rank)

    def _sum(self, dim: Dim, names: set[str]) -> Text:
        rest = remainder(dim)
        if rest is not None and self._divides(*rest[:2]):
            x, y, factor = rest
            code = f"{self._operand(x, MUL, names)} % {self._operand(y, UNARY, names)}"
            return Text(code, MUL) if factor == 1 else Text(f"{factor} * ({code})", MUL)
        # Positive terms come first.
        terms, line = sorted(dim.terms, key=lambda term: term[1] < 0), ""
        for monomial, coefficient in terms:
            product = self._product(monomial, abs(coefficient), names)
            if len(terms) == 1 and coefficient > 0:
                return product
            if line:
                line += f" {'-' if coefficient < 0 else '+'} {product.code}"
            elif coefficient < 0:
                # A quotient is not that of the negative number.
                alone = coefficient == -1 and len(monomial) == 1
                line = f"-{product.operand_code(POWER) if alone else product.code}"
            else:
                line = product.code
        return Text(line, ADD)

    def _product(self, monomial: Monomial, number: int, names: set[str]) -> Text:
        factors = [x for atom, power in monomial for x in self._powers(atom, power, names)]
        if number != 1 or not factors:
            factors.insert(0, Text(str(number)))
        if len(factors) == 1:
            return factors[0]
        return Text(" * ".join([x.operand_code(UNARY) for x in factors]), MUL)

    def _powers(self, atom: Atom, power: int, names: set[str]) -> list[Text]:
        base = self._atom(atom, names)
        if power == 1 or not self.has_powers:
            return [base] * power
        # Formatters put spaces around it unless both sides are names or numbers.
        sign = "**" if isinstance(atom, str) else " ** "
        return [Text(f"{base.operand_code(ATOM)}{sign}{power}", POWER)]

    def _atom(self, atom: Atom, names: set[str]) -> Text:
        if isinstance(atom, str):
            names.add(atom)
            return Text(self.name.format(atom))
        kind, x, y = atom
        if kind == FLOOR and self._divides(x, y):
            # Floor division does not distribute over products: the order of evaluation is kept.
            left, right = self._operand(x, MUL, names), self._operand(y, UNARY, names)
            return Text(f"{left} {self.divide} {right}", MUL)
        function = self.functions[kind]
        names.add(function.partition("(")[0])
        left, right = (self._operand(n, self.within, names) for n in (x, y))
        return Text(function.format(left, right))

    def _divides(self, x: int, y: int) -> bool:
        """Return whether the operator of divisions rounds down."""
        return FLOOR not in self.functions or (bounds(x)[0] >= 0 and bounds(y)[0] > 0)


PYTHON = SizeWriter({MAX: "max({}, {})", MIN: "min({}, {})"}, has_powers=True)

# The names of sizes that are written within a block of `sizes_written`.
_written: ContextVar[set[str] | None] = ContextVar("written", default=None)


@contextmanager
def sizes_written() -> Iterator[set[str]]:
    """Collect the names of symbolic sizes that the block writes in Python.

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
    """Return the Python expression of a size."""
    return size_text(extent).code


def extents_text(shape: Shape) -> str:
    """Return the tuple display of a shape."""
    return f"({', '.join(map(extent_text, shape))}{',' if len(shape) == 1 else ''})"


def size_text(extent: int) -> Text:
    """Return the Python expression of a size with its precedence."""
    names = _written.get()
    if names is not None and type(extent) is Dim:
        names |= extent.names
    return PYTHON.text(extent)
