"""The library that readable code computes with: NumPy, or one with the same functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple, final

from primgraph.base.records import dataclass
from primgraph.codegen.ops.card import Card, changed_expression
from primgraph.codegen.ops.spelling.library import NUMPY as LIBRARY
from primgraph.codegen.ops.spelling.library import Library
from primgraph.codegen.ops.spelling.notation import Amend, Read
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.readable.phrases import Phrases
from primgraph.errors import CompileError
from primgraph.ir.graph import Graph
from primgraph.ir.primitive import Op
from primgraph.ir.types import TensorType


@final
class Word(NamedTuple):
    """An expression of a library other than NumPy, and the support function that it calls.

    With `amend`, the expression is a copy that this statement changes.
    """

    read: Read
    helper: str = ""
    amend: Amend | None = None


@final
class Placing(NamedTuple):
    """A support function that decorates callers of `makers`, by NumPy's names, and its import."""

    helper: str
    makers: frozenset[str]
    requires: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A library of arrays, whose module has the name `np` in readable code.

    `words` are expressions in place of NumPy's, and `lacking` has the primitives without one. Where
    arrays do not change, every primitive is an expression, and `control` writes branches and loops
    as functions. `decorators` precede the function of a file, and `head` are the first lines of one
    that has numbers of 64 bits. `compiler` compiles a function when it is called. `library` has its
    names, and `phrases` are expressions of the printer. `lacking_dtypes` are names of dtypes.
    `placing` decorates functions that make arrays.
    """

    title: str
    imports: tuple[str, ...]
    words: Mapping[Op, Word]
    lacking: frozenset[Op] = frozenset()
    decorators: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    control: Callable[..., None] | None = None
    compiler: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    phrases: Phrases = Phrases()
    library: Library = LIBRARY
    lacking_dtypes: frozenset[str] = frozenset()
    placing: Placing | None = None
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
            self._cards[op] = changed_expression(CARDS[op], word.read, word.helper, word.amend)
        return self._cards[op]


def require_words(graph: Graph, dialect: Dialect) -> None:
    """Raise `CompileError` that lists all primitives of a graph that the library lacks."""
    missing = sorted(op.name for op in graph.ops & dialect.lacking)
    if missing:
        raise CompileError(f"{dialect.title} lacks functions of this graph: {', '.join(missing)}")
    if dialect.lacking_dtypes:
        kinds = sorted({t.dtype.name for t in _types(graph)} & dialect.lacking_dtypes)
        if kinds:
            raise CompileError(f"{dialect.title} lacks dtypes of this graph: {', '.join(kinds)}")


def _types(graph: Graph) -> Iterator[TensorType]:
    """Yield the types of the values of a graph, and of the bodies in it."""
    yield from graph.input_types
    for eqn in graph.body:
        yield from (v.type for v in eqn.outputs)
        for inner in eqn.bodies:
            yield from _types(inner)


NUMPY = Dialect("NumPy", ("import numpy as np",), {}, decorators=('@np.errstate(all="ignore")',))
