"""The limit of loops and branches in each other, and room on Python's stack below it."""

from __future__ import annotations

import sys

from primgraph.errors import BuildError

# Loops and branches stand in each other to this depth: in what is built, in text and in files.
DEEPEST = 100

# Below this depth Python's default recursion limit is enough. Passes recurse over nesting, never
# over equations: above it they take up to 40 frames for a level.
_SHALLOW, _FRAMES = 8, 6000


def is_too_deep(depth: int) -> bool:
    """Whether graphs may not stand in each other to this depth.

    Where they may and are many, Python's recursion limit is raised for the process, if it is lower
    than what a pass over `DEEPEST` graphs takes.
    """
    if depth > _SHALLOW and sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
    return depth > DEEPEST


def too_deep() -> str:
    """The fault of what is nested beyond the limit."""
    return f"loops and branches are nested more than {DEEPEST} deep"


def require_nesting(depth: int) -> None:
    """Raise `BuildError` for graphs that stand in each other beyond the limit."""
    if is_too_deep(depth):
        raise BuildError(
            too_deep(),
            hint="a loop with a counter does the same at any depth: pg.fori_loop, pg.scan",
        )
