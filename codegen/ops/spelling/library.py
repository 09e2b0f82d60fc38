"""The library of arrays that text is written for: NumPy, or one whose names and views differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import cache
from typing import Any, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.views import How, view_text

# A function of a view and of the expression that is viewed.
View: TypeAlias = Callable[["How | None", Text], str]

# NumPy's names in the templates of cards and in support functions; strings and comments stay.
_NAMES = re.compile(
    r"""(?P<kept>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)"""
    r"|(?<!\.)\bnp\.(?P<function>\w+)|\b(?P<word>astype(?=\()|(?:axis|axes|keepdims)(?==(?!=)))"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """A library of arrays, by what it does not share with NumPy.

    `functions` and `words`, of arguments and methods, map NumPy's names to those of `module`. A
    dtype is an argument of the name `dtype`, if any, and may be missing if it is the `default`.
    `copy` and `view` are expressions. If it `names_axes`, reductions that keep all axes name them.
    """

    module: str = "np"
    functions: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    dtype: str = ""
    default: str = "float64"
    copy: Callable[[Text], str] = lambda text: f"np.array({text.code})"
    view: View = lambda how, text: view_text(how, text.operand_code(ATOM))
    names_axes: bool = False

    def function(self, name: str) -> str:
        """Return a function, a dtype or a number, by NumPy's name."""
        return f"{self.module}.{self.functions.get(name, name)}"

    def word(self, name: str) -> str:
        """Return the name of an argument or a method."""
        return self.words.get(name, name)

    def respell(self, text: str) -> str:
        """Return a template, or a function of this package, in which names are NumPy's."""
        return text if self is NUMPY else _respelled(self, text)


NUMPY = Library()


@cache
def _respelled(library: Library, text: str) -> str:
    def name(found: re.Match[str]) -> str:
        kept, function, word = found.group("kept", "function", "word")
        return kept or (library.function(function) if function else library.word(word))

    return _NAMES.sub(name, text)


# The library of a block of `writing_for`, and NumPy's names of the functions called in it.
_current: ContextVar[tuple[Library, set[str]]] = ContextVar("library", default=(NUMPY, set()))


@contextmanager
def writing_for(library: Library) -> Iterator[set[str]]:
    """Write the text of the block for a library; collect NumPy's names of functions it calls.

    >>> TORCH = Library("torch", {"concatenate": "cat"}, {"axis": "dim"})
    >>> with writing_for(TORCH) as names:
    ...     text = call("concatenate", "[x, y]", axis=1)
    >>> text, names
    ('torch.cat([x, y], dim=1)', {'concatenate'})
    """
    called: set[str] = set()
    token = _current.set((library, called))
    try:
        yield called
    finally:
        _current.reset(token)


def library() -> Library:
    """Return the library that text is written for."""
    return _current.get()[0]


def call(function: str, *args: str, **keywords: Any) -> str:
    """Return the call of a function of the library, by NumPy's names.

    >>> call("sum", "x", axis=0, keepdims=True)
    'np.sum(x, axis=0, keepdims=True)'
    """
    target, called = _current.get()
    if target is not NUMPY:
        called.add(function)
    named = [f"{target.word(name)}={value}" for name, value in keywords.items()]
    return f"{target.function(function)}({', '.join([*args, *named])})"
