"""Expressions of emitted code, and the precedence of their outermost operators."""

from __future__ import annotations

from typing import NamedTuple

# Precedence as in Python's grammar. `@` binds like `*`, but parentheses keep them apart.
COMPARE, OR, XOR, AND, ADD, MATMUL, MUL, UNARY, POWER, ATOM = range(10)

# Precedence in C below that of sums: `?:`, operators of bits, and comparisons.
CHOICE, EITHER, RELATION = range(3)


class Text(NamedTuple):
    """An expression, and the precedence of its outermost operator."""

    code: str
    rank: int = ATOM

    def operand_code(self, rank: int) -> str:
        """Return the expression, in parentheses if its precedence is below `rank`.

        >>> Text("x + 1", ADD).operand_code(MUL)
        '(x + 1)'
        """
        return self.code if self.rank >= rank else f"({self.code})"
