"""The paths of layers, by which the lines of a call are marked as those of the layer called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary

from primgraph.base.user_lines import marked
from primgraph.ir.primitive import active_recorder


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
def calling(path: str, names: Mapping[int, str] | None = None) -> Iterator[None]:
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
        with marked(numbered):
            yield
    finally:
        _outermost.set(before)
