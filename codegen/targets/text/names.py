"""Identifiers and comments of generated code: all user text passes through this file."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import final

from primgraph.codegen.runtime.support import NAMES

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_PART = re.compile(r"part_[0-9]+", re.ASCII)
_LONGEST = 40
_WIDTH = 96

RESERVED = frozenset(
    {
        "np",
        "math",
        "special",
        *keyword.kwlist,
        *keyword.softkwlist,
        *dir(builtins),
        *NAMES,
        "carried",
        "arguments",
    }
)


@lru_cache(maxsize=4096)
def is_safe(text: str) -> bool:
    """Return whether `text` may be a name in code: short, ASCII, and not reserved."""
    return (
        len(text) <= _LONGEST
        and _SAFE.fullmatch(text) is not None
        and text not in RESERVED
        and _PART.fullmatch(text) is None
    )


def comment(text: str, width: int = _WIDTH) -> str:
    """Return `text` for a one-line comment: printable ASCII only, and at most `width` characters.

    Every other character, newlines and escapes of terminals included, is written as `\\uXXXX`.
    """
    safe = printable(text[: 2 * _WIDTH])
    width = max(width, _LONGEST)
    return safe if len(safe) <= width else safe[: width - 3] + "..."


def printable(text: str) -> str:
    """Return `text` in printable ASCII: every other character is written as `\\uXXXX`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if " " <= c <= "~" else f"\\u{ord(c):04x}" for c in text)


@final
class Names:
    """Factory of unique identifiers."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def name_from_hint(self, hint: str, letter: str) -> str:
        """Return `hint` if it is safe, numbered if it is taken; else a counted name.

        Dots in names, as of parameters of layers, become underscores.
        """
        hint = hint.replace(".", "_")
        if not is_safe(hint):
            return self.next_name(letter)
        name, count = hint, self._next.get(f"{hint}_", 2)
        while name in self._taken:
            name = f"{hint}_{count}"
            count += 1
        self._next[f"{hint}_"] = count
        self._taken.add(name)
        return name

    def next_name(self, letter: str) -> str:
        """Return the next free name of `letter0`, `letter1` and so on."""
        count = self._next.get(letter, 0)
        while (name := f"{letter}{count}") in self._taken:
            count += 1
        self._next[letter] = count + 1
        self._taken.add(name)
        return name
