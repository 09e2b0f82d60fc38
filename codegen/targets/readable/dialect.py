"""The library that readable code computes with: NumPy, or one with the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, final

from primgraph.base.records import dataclass
from primgraph.codegen.ops.card import Card, changed_expression
from primgraph.codegen.ops.spelling.notation import Read
from primgraph.codegen.ops.table import CARDS
from primgraph.errors import CompileError
from primgraph.ir.graph import Graph
from primgraph.ir.primitive import Op


@final
class Word(NamedTuple):
    """An expression of a library other than NumPy, and the support function that it calls."""

    read: Read
    helper: str = ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A library of arrays, whose module has the name `np` in readable code.

    `words` are expressions in place of NumPy's, and `lacking` has the primitives without one. Where
    arrays do not change, every primitive is an expression, and `control` writes branches and loops
    as functions. `decorators` precede the function of a file, and `head` are the first lines of one
    that has numbers of 64 bits. `compiler` compiles a function when it is called.
    """

    title: str
    imports: tuple[str, ...]
    words: Mapping[Op, Word]
    lacking: frozenset[Op] = frozenset()
    decorators: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    control: Callable[..., None] | None = None
    compiler: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    _cards: dict[Op, Card] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the names that the imports bind."""
        return [line.split()[-1] for line in self.imports]

    @property
    def is_functional(self) -> bool:
        """Return whether arrays cannot be assigned to."""
        return self.control is not None

    def card(self, op: Any) -> Card | None:
        """Return the card of a primitive, None if it has no expression here."""
        word = self.words.get(op)
        if word is None:
            return None if op in self.lacking else CARDS.get(op)
        if op not in self._cards:
            self._cards[op] = changed_expression(CARDS[op], word.read, word.helper)
        return self._cards[op]


def require_words(graph: Graph, dialect: Dialect) -> None:
    """Raise `CompileError` that lists all primitives of a graph that the library lacks."""
    missing = sorted(op.name for op in graph.ops & dialect.lacking)
    if missing:
        raise CompileError(f"{dialect.title} lacks functions of this graph: {', '.join(missing)}")


NUMPY = Dialect("NumPy", ("import numpy as np",), {}, decorators=('@np.errstate(all="ignore")',))
