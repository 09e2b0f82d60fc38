"""Limit of nested loops and branches, and the recursion limit that it needs."""

from __future__ import annotations

import sys

from primgraph.errors import BuildError

# Maximum nesting depth of loops and branches: in built graphs, in text and in files.
DEEPEST = 100

# Below this depth Python's default recursion limit suffices. Passes recurse over nesting, never
# over equations: deeper graphs take up to 40 frames per level.
_SHALLOW, _FRAMES = 8, 6000


def is_too_deep(depth: int) -> bool:
    """Return whether a nesting depth exceeds the limit.

    For a large depth within the limit, raise Python's recursion limit for the process to what a
    pass over `DEEPEST` nested graphs takes.
    """
    if depth > _SHALLOW and sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
    return depth > DEEPEST


def too_deep() -> str:
    """Return the error message for graphs nested beyond the limit."""
    return f"loops and branches are nested more than {DEEPEST} deep"


def require_nesting(depth: int) -> None:
    """Raise `BuildError` if graphs are nested beyond the limit."""
    if is_too_deep(depth):
        raise BuildError(
            too_deep(),
            hint="a loop with a counter does the same at any depth: pg.fori_loop, pg.scan",
        )
