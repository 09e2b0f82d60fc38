"""What an emitter makes and a template lays out: lines, and which step each belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.codegen.emit.layout import signature
from primgraph.codegen.plan.schedule import Step
from primgraph.errors import CompileError
from primgraph.ir.graph import Equation, Graph

# Names in one display or unpacking; more make CPython's compiler slow.
MANY = 200


# A body, and an equation of it.
Within: TypeAlias = tuple[Graph, Equation]


class Line(NamedTuple):
    """A line of code and the step that it belongs to, -1 for none; `depth` counts blocks around it.

    A line that `shares` calls a loop, whose lines have steps of their own. One `within` a branch or
    a loop belongs to an equation of that body.
    """

    text: str
    step: int = -1
    depth: int = 0
    shares: bool = False
    within: Within | None = None


@dataclass(slots=True)
class Function:
    """A function of generated code. `result` are the lines of the expression that it returns.

    Where the header `wraps`, many parameters stand on lines of their own.
    """

    name: str
    parameters: str
    body: list[Line] = field(default_factory=list)
    docstring: list[str] = field(default_factory=list)
    decorators: list[str] = field(default_factory=list)
    result: list[Line] = field(default_factory=list)
    wraps: bool = False

    def line(self, text: str, step: int = -1, depth: int = 0) -> None:
        self.body.append(Line(text, step, depth))

    def first(self, lines: list[str]) -> None:
        """Put lines before all others."""
        self.body[:0] = [Line(text) for text in lines]

    def returns(self, lines: Iterable[str], step: int = -1) -> None:
        """End with an expression as the result."""
        self.result = [Line(text, step) for text in lines]

    @property
    def rows(self) -> list[Line]:
        """All lines behind the docstring."""
        if not self.result:
            return self.body
        text, step, *_ = self.result[0]
        return [*self.body, Line(f"return {text}", step), *self.result[1:]]

    @property
    def indented(self) -> list[str]:
        """Docstring and lines as they stand in the file."""
        docstring = [f"    {line}" if line else "" for line in self.docstring]
        if max([row.depth for row in self.rows], default=0) >= len(_INDENTS):
            raise too_nested()
        lines = [f"{_INDENTS[row.depth]}{row.text}" if row.text else "" for row in self.rows]
        return docstring + lines

    @property
    def header(self) -> list[str]:
        if self.wraps:
            return signature(self.name, self.parameters.split(", ") if self.parameters else [])
        return [f"def {self.name}({self.parameters}):"]


# Loops stand in each other at most as deep as graphs do in text.
# Python takes no more levels of indentation.
_INDENTS = ["    " * (depth + 1) for depth in range(98)]


def too_nested() -> CompileError:
    """The error for code that Python cannot nest as deep as its graph."""
    return CompileError(
        "readable code has more blocks in each other than Python allows: 20 loops, 98 in all",
        hint='the styles "planned" and the target "c" have no such limit',
    )


@dataclass(slots=True)
class Module:
    """A file of generated code, and the objects beside it that it refers to by name.

    `users` are the names of primitives that are called through their own `impl`, which a file
    that stands alone cannot do. `loops` are the steps with bodies, by the names of the functions in
    the table that run them.
    """

    opening: list[str]
    helpers: list[str]
    functions: list[Function]
    entry: str
    table: dict[str, Any]
    users: list[str] = field(default_factory=list)
    docstring: list[str] = field(default_factory=list)
    loops: dict[str, Step] = field(default_factory=dict)

    @property
    def starts(self) -> list[int]:
        """The row, counted from zero, of the header of each function, as the template has them."""
        helpers = sum(2 + helper.count("\n") for helper in self.helpers)
        row, starts = len(self.docstring) + len(self.opening) + helpers, []
        for function in self.functions:
            row += 2 + len(function.decorators)
            starts.append(row)
            row += len(function.header) + len(function.docstring) + len(function.rows)
        return starts


@final
class Parts:
    """A long body as several functions, which hand values on in a list, `carried`.

    A name is bound once, in one part. Each other part that uses it reads it from the list when
    it starts, and its own part stores it there when it ends, so that no statement grows with
    the number of values that are alive. Numbers of the parts begin with `first`.
    """

    def __init__(self, parameters: str, first: int = 0) -> None:
        self.parameters = parameters
        self.number = first
        self.parts: list[Function] = []
        self.current: Function
        self._home: dict[str, int] = {}
        self._bound: list[list[str]] = []
        self._taken: list[dict[str, None]] = []

    def begin(self) -> Function:
        """Start the next function."""
        number = self.number + len(self.parts)
        self.current = Function(f"part_{number}", self.parameters)
        self.parts.append(self.current)
        self._bound.append([])
        self._taken.append({})
        return self.current

    def argument(self, name: str) -> None:
        self._home[name] = -1

    def bind(self, name: str) -> None:
        self._home[name] = len(self.parts) - 1
        self._bound[-1].append(name)

    def has(self, name: str) -> bool:
        """Whether `name` is an argument, or bound in some function."""
        return name in self._home

    def use(self, name: str) -> None:
        """Note that the current function reads `name`; names that nobody bound are global."""
        here = len(self.parts) - 1
        if self._home.get(name, here) != here:
            self._taken[here][name] = None

    def finish(self, arguments: list[str], results: list[str]) -> int:
        """Insert what hands values on; returns the place in the list of the first result."""
        slot = {name: i for i, name in enumerate(arguments)}
        for taken in self._taken:
            for name in taken:
                slot.setdefault(name, len(slot))
        for k, result in enumerate(results):
            self.current.line(f"carried[{len(slot) + k}] = {result}")
        for part, taken, bound in zip(self.parts, self._taken, self._bound, strict=True):
            part.first([f"{name} = carried[{slot[name]}]" for name in taken])
            for name in bound:
                if name in slot:
                    part.line(f"carried[{slot[name]}] = {name}")
        return len(slot)
