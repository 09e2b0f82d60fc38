"""Syntax trees of users' code."""

from __future__ import annotations

import ast

from primgraph.base.locks import make_lock

# Python 3.11 may raise SystemError if two threads build trees at once.
_parsing = make_lock()
_TRIES = 3


def parse(text: str) -> ast.Module:
    """Return the syntax tree of a text like `ast.parse`, also if other threads do so.

    Raises `SyntaxError` or `ValueError` for a text that is no Python.
    """
    for _ in range(_TRIES):
        try:
            with _parsing:
                return ast.parse(text)
        except SystemError:
            # Another thread parses something of its own.
            continue
    return ast.parse(text)
