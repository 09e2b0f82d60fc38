"""Calls of layers that are under way: what they compute with, and paths that mark their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary

from primgraph.base.user_lines import mark_lines
from primgraph.ir.primitive import active_recorder, innermost
from primgraph.program.program import Program, current_program


@final
@dataclass(frozen=True, slots=True)
class Call:
    """The call of an outermost layer: its path, and the dotted name of each layer within."""

    path: str
    names: Mapping[int, str]


_outermost: ContextVar[Call | None] = ContextVar("outermost", default=None)
_counts: WeakKeyDictionary[Any, Counter[str]] = WeakKeyDictionary()


def outermost() -> Call | None:
    """The call of a layer that is under way, if there is one."""
    return _outermost.get()


@contextmanager
def layer_scope(path: str, names: Mapping[int, str] | None = None) -> Iterator[None]:
    """A context in which the user's lines are those of the layer at `path`.

    `names` are given for an outermost layer. Of a layer that is called again in one program, the
    path ends in the number of the call.
    """
    counts = _counts.setdefault(active_recorder(), Counter())
    counts[path] += 1
    numbered = path if counts[path] == 1 else f"{path} ({counts[path]})"
    call = _outermost.get() if names is None else Call(numbered, names)
    before = _outermost.get()
    try:
        _outermost.set(call)
        with mark_lines(numbered):
            yield
    finally:
        _outermost.set(before)


# What calls of layers that are under way compute with: variables of a program, or tensors.
EAGERLY = object()
world: ContextVar[object] = ContextVar("world", default=None)


def computes_eagerly() -> bool:
    """Return whether a layer that is called on no variables computes eagerly."""
    current = world.get()
    return current is EAGERLY or (current is None and innermost.get() is None)


def program_of_call() -> Program:
    """Return the program that calls under way are part of, or else the one being built."""
    current = world.get()
    return current if isinstance(current, Program) else current_program()
