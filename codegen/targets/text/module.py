"""Generated modules before layout: functions, lines, and the step of each line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.targets.text.layout import signature
from primgraph.errors import CompileError
from primgraph.ir.graph import Equation, Graph

# Maximum number of names in one display or unpacking; more make CPython's compiler slow.
MANY = 200


# A body, and an equation of it.
Within: TypeAlias = tuple[Graph, Equation]


class Line(NamedTuple):
    """A line of code and its step, -1 for none; `depth` is the number of enclosing blocks.

    A line that `shares` calls a loop, whose lines have steps of their own. A line `within` a branch
    or a loop belongs to an equation of that body.
    """

    text: str
    step: int = -1
    depth: int = 0
    shares: bool = False
    within: Within | None = None


@dataclass(slots=True)
class Function:
    """A function of generated code. `result` has the lines of its return expression.

    If the header `wraps`, many parameters are broken into lines.
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
        """Prepend lines."""
        self.body[:0] = [Line(text) for text in lines]

    def returns(self, lines: Iterable[str], step: int = -1) -> None:
        """Set the return expression."""
        self.result = [Line(text, step) for text in lines]

    @property
    def rows(self) -> list[Line]:
        """Return all lines after the docstring."""
        if not self.result:
            return self.body
        text, step, *_ = self.result[0]
        return [*self.body, Line(f"return {text}", step), *self.result[1:]]

    @property
    def indented_lines(self) -> list[str]:
        """Return docstring and lines with indentation."""
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


# Loops can be nested as deep as in the text of graphs. Python allows no more levels of indentation.
_INDENTS = ["    " * (depth + 1) for depth in range(98)]


def too_nested() -> CompileError:
    """Return the error for code that exceeds Python's nesting limits."""
    return CompileError(
        "readable code has more blocks in each other than Python allows: 20 loops, 98 in all",
        hint='the styles "planned" and the target "c" have no such limit',
    )


@dataclass(slots=True)
class Module:
    """A file of generated code, and the objects that it refers to by name.

    `users` are the names of primitives that are called through their own `impl`, which a standalone
    file cannot do. `objects` maps more names to steps: arrays to those of constants, functions to
    those that call them. With `products` BLAS runs in one thread.
    """

    opening: list[str]
    helpers: list[str]
    functions: list[Function]
    entry: str
    table: dict[str, Any]
    users: list[str] = field(default_factory=list)
    docstring: list[str] = field(default_factory=list)
    objects: dict[str, Step] = field(default_factory=dict)
    products: bool = False

    @property
    def starts(self) -> list[int]:
        """Return the row, from zero, of each function header in the rendered template."""
        helpers = sum(2 + helper.count("\n") for helper in self.helpers)
        row, starts = len(self.docstring) + len(self.opening) + helpers, []
        for function in self.functions:
            row += 2 + len(function.decorators)
            starts.append(row)
            row += len(function.header) + len(function.docstring) + len(function.rows)
        return starts


@final
class Parts:
    """A long body split into several functions, which pass values on in a list, `carried`.

    A name is bound in one part. Each other part that uses it reads it from the list at its start,
    and the binding part stores it at its end. No statement then grows with the number of live
    values. Parts are numbered from `first`.
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
        """Return whether `name` is an argument, or bound in some part."""
        return name in self._home

    def use(self, name: str) -> None:
        """Record that the current part reads `name`; unbound names are global."""
        here = len(self.parts) - 1
        if self._home.get(name, here) != here:
            self._taken[here][name] = None

    def finish(self, arguments: list[str], results: list[str]) -> int:
        """Insert loads and stores of `carried`; return the index of the first result."""
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
