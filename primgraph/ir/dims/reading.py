"""Parse sizes from text and from user arguments."""

from __future__ import annotations

import operator
import re
from typing import Any

from primgraph.errors import ArgumentError, LoadError, ShapeError
from primgraph.ir.dims.dim import OPEN, TRIPS, Dim, size
from primgraph.ir.dims.polynomial import DEEPEST, LONGEST, extremum, floor

# Maximum nesting of parentheses in text: two for each quotient that is a factor.
_DEEPEST = 2 * DEEPEST + 2

_WORD = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<mark>//|[-+*(),%]))", re.ASCII
)


def parse_extent(text: str) -> int:
    """Parse a size from text: an integer, or an expression in sizes.

    Examples are `2*N+1`, `(N+1)//2`, `N%3`, `mod(N,3)`, `max(N,M)` and `min(N,M)`. Raises
    `LoadError` for other text.
    """
    return _Reader(text).extent()


def parse_size(text: str) -> int:
    """Parse a size from the text of a graph, where `?` is `TRIPS`; see `parse_extent`."""
    return TRIPS if text.strip() == OPEN else parse_extent(text)


class _Reader:
    """Parser of one expression, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[tuple[str, str]] = []
        self.at = 0
        place, end = 0, len(text.rstrip())
        if end > LONGEST:
            raise self.error(f"it has {end} characters, of at most {LONGEST}")
        while place < end:
            match = _WORD.match(text, place)
            if match is None:
                raise self.error()
            kind = match.lastgroup or ""
            self.words.append((kind, match[kind]))
            place = match.end()

    def error(self, fault: str = "") -> LoadError:
        return LoadError(
            f"{self.text!r:.80} is not an extent{fault and ': '}{fault}",
            hint="one is an integer, or an expression in sizes such as 2*N+1, N//2 or max(N,3)",
        )

    def extent(self) -> int:
        try:
            found = self.sum(0)
        except (ArgumentError, ShapeError) as error:
            raise self.error(error.message) from None
        except ValueError:
            raise self.error() from None
        if self.at < len(self.words):
            raise self.error()
        return found

    def accept(self, mark: str) -> bool:
        found = self.at < len(self.words) and self.words[self.at] == ("mark", mark)
        self.at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.error()

    def sum(self, depth: int) -> int:
        if depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} parentheses stand in each other")
        total = -self.product(depth) if self.accept("-") else self.product(depth)
        while True:
            if self.accept("+"):
                total = total + self.product(depth)
            elif self.accept("-"):
                total = total - self.product(depth)
            else:
                return total

    def product(self, depth: int) -> int:
        total = self.factor(depth)
        while True:
            if self.accept("*"):
                total = total * self.factor(depth)
            elif self.accept("//"):
                total = floor(total, self.factor(depth))
            elif self.accept("%"):
                divisor = self.factor(depth)
                total = total - divisor * floor(total, divisor)
            else:
                return total

    def factor(self, depth: int) -> int:
        if self.accept("("):
            found = self.sum(depth + 1)
            self.expect(")")
            return found
        if self.at == len(self.words) or self.words[self.at][0] == "mark":
            raise self.error()
        kind, word = self.words[self.at]
        self.at += 1
        if kind == "number":
            return int(word)
        return self.function(word, depth) if word in ("max", "min", "mod") else size(word)

    def function(self, name: str, depth: int) -> int:
        self.expect("(")
        first = self.sum(depth + 1)
        self.expect(",")
        second = self.sum(depth + 1)
        self.expect(")")
        if name == "mod":
            return first - second * floor(first, second)
        return extremum(name, first, second)


def as_extent(number: Any) -> int:
    """Convert `number` to a size: an integer, a `Dim`, or text such as "N" or "2*N+1".

    Raises TypeError for anything else, including booleans.
    """
    if type(number) is int or type(number) is Dim:
        return number
    if isinstance(number, str):
        return parse_extent(number)
    if isinstance(number, bool) or type(number).__name__ == "bool_":
        raise TypeError("a boolean is no integer")
    return operator.index(number)
