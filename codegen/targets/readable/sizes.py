"""Symbolic sizes in readable code: variables computed from array shapes, and checks.

A standalone file rejects the arrays that primgraph would reject, with the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.extents import PRODUCT, extent_text, size_text
from primgraph.codegen.targets.text.layout import statement
from primgraph.codegen.targets.text.names import is_safe, printable
from primgraph.ir.assumptions import Condition
from primgraph.ir.dims import Dim, extent_at, remainder
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import Fitting, assumptions
from primgraph.ir.types import TensorType

# Lines of code, indented relative to each other.
Lines = list[str]


@final
class Sizes:
    """The symbolic sizes of a graph in readable code.

    `variables` maps sizes to their variables. Raises `BuildError` for a size that no input
    determines.
    """

    def __init__(self, graph: Graph, taken: Collection[str] = ()) -> None:
        names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
        inputs = list(zip(names, graph.input_types, strict=True))
        self.graph = graph
        self.fitting = Fitting(inputs, graph.sizes)
        self.variables = _variables(graph, taken)
        listed = "|".join(str(v) for v in self.variables.values())
        self._pattern = re.compile(rf"(?<![\w.])(?:{listed})\b") if listed else None

    @property
    def names(self) -> list[str]:
        """Return the variables, in the order of the sizes."""
        return [str(v) for v in self.variables.values()]

    def read_by(self, lines: Iterable[str]) -> set[str]:
        """Return the variables that lines of code read; comments are ignored."""
        if self._pattern is None:
            return set()
        code = (line for line in lines if not line.lstrip().startswith("#"))
        return {name for line in code for name in self._pattern.findall(line)}

    def size_definitions(self, arrays: Sequence[str], used: Collection[str]) -> Lines:
        """Return statements that compute the `used` variables from arrays."""
        return [line for name, lines in self._definitions(arrays) if name in used for line in lines]

    def required_sizes(self, used: Collection[str]) -> set[str]:
        """Return the `used` variables, and those from which they are computed."""
        needed = set(used)
        for _, _, extent, solved in reversed(self.fitting.solved):
            if solved and str(self.variables[solved]) in needed:
                needed |= {str(self.variables[n]) for n in extent.names}
        return needed

    def tellers(self, used: Collection[str]) -> set[int]:
        """Return the inputs from which the `used` variables are computed."""
        needed = self.required_sizes(used)
        told = {i for name, (i, _) in self.fitting.bare.items() if self._is_in(name, needed)}
        return told | {i for i, _, _, name in self.fitting.solved if self._is_in(name, needed)}

    def _is_in(self, name: str, variables: Collection[str]) -> bool:
        return name in self.variables and str(self.variables[name]) in variables

    def _definitions(self, arrays: Sequence[str]) -> Iterator[tuple[str, Lines]]:
        """Yield each variable with the statements that compute it, in a valid order."""
        for name, (i, axis) in self.fitting.bare.items():
            variable = str(self.variables[name])
            yield variable, [f"{variable} = {arrays[i]}.shape[{axis}]"]
        for i, axis, extent, name in self.fitting.solved:
            if name:
                variable = str(self.variables[name])
                rest, factor = self._solution(f"{arrays[i]}.shape[{axis}]", extent, name)
                text = extent_text(rest)
                if factor != 1:
                    text = f"{size_text(rest).operand_code(PRODUCT)} // {factor}"
                yield variable, [f"{variable} = {text}"]

    def _solution(self, given: str, extent: Dim, name: str) -> tuple[int, int]:
        """Return the numerator and factor of a size that occurs linearly in an axis."""
        left: Any = extent.at({k: v for k, v in self.variables.items() if k != name})
        number = extent_at(left, {name: 0})
        factor: int = extent_at(left, {name: 1}) - number
        whole: int = Dim(((((given, 1),), 1),))
        return whole - number, factor

    # Checks.

    def is_known(self, i: int) -> bool:
        """Return whether an input has no symbolic sizes."""
        return not self.fitting.inputs[i][1].names

    def shape_mismatch(self, name: str, type: TensorType) -> str:
        """Return the condition that an array has other axes than its type, or other known sizes."""
        wrong = [f"{name}.ndim != {type.ndim}"]
        known = ((axis, n) for axis, n in enumerate(type.shape) if type_is_known(n))
        return " or ".join([*wrong, *(f"{name}.shape[{axis}] != {n}" for axis, n in known)])

    def checked_definitions(self, arrays: Sequence[str], used: Collection[str], rest: str) -> Lines:
        """Return statements that compute variables, and reject sizes that do not fit.

        `rest` is a free name. Variables are computed if they are `used` or checked.
        """
        checks = [*self._contradictions(arrays), *self._assumption_checks()]
        read = frozenset().union(*(names for names, _ in checks))
        needed = self.required_sizes({*used, *(str(self.variables[name]) for name in read)})
        begun: Lines = []
        for name, found in self._definitions(arrays):
            solved = next((s for s in self.fitting.solved if self._is_in(s[3], (name,))), None)
            if solved is not None:
                begun += self._solve_size(arrays, *solved, rest)
            elif name in needed:
                begun += found
        return [*begun, *(line for _, lines in checks for line in lines)]

    def _solve_size(
        self, arrays: Sequence[str], i: int, axis: int, extent: Dim, name: str, rest: str
    ) -> Lines:
        """Return statements that solve for a size that occurs in an axis."""
        variable, given = str(self.variables[name]), f"{arrays[i]}.shape[{axis}]"
        left, factor = self._solution(given, extent, name)
        wrong = f"{variable} < 0"
        if factor == 1:
            lines = [f"{variable} = {extent_text(left)}"]
        else:
            lines = [f"{variable}, {rest} = divmod({extent_text(left)}, {factor})"]
            wrong = f"{rest} or {wrong}"
        title, type = self.fitting.inputs[i]
        message = _Message().text(f"input {title!r} is {type}: no size {name} gives an extent of ")
        message.value(given).text(f" on axis {axis}")
        return [*lines, f"if {wrong}:", *message.raise_lines()]

    def _contradictions(self, arrays: Sequence[str]) -> Iterator[tuple[frozenset[str], Lines]]:
        """Yield checks that other axes agree with the sizes, with the sizes that they read."""
        telling = {
            *self.fitting.bare.values(),
            *((i, a) for i, a, _, n in self.fitting.solved if n),
        }
        for i, axis in self.fitting.axes:
            if (i, axis) in telling:
                continue
            title, type = self.fitting.inputs[i]
            extent: Any = type.shape[axis]
            wanted, given = extent.at(self.variables), f"{arrays[i]}.shape[{axis}]"
            message = _Message()
            said = f"axis {axis} of input {title!r} {type} has extent "
            if str(extent) in extent.names:
                other, place = self.fitting.bare[str(extent)]
                message.text(f"size {extent} is not the same in all inputs: {said}").value(given)
                teller = self.fitting.inputs[other][0]
                message.text(f", axis {place} of input {teller!r} has ").value(extent_text(wanted))
            else:
                message.text(said).value(given).text(f", and {extent} is ")
                message.value(extent_text(wanted)).text(": ")
                self._tell(message, sorted(extent.names))
            yield extent.names, [f"if {given} != {extent_text(wanted)}:", *message.raise_lines()]

    def _assumption_checks(self) -> Iterator[tuple[frozenset[str], Lines]]:
        """Yield checks of assumptions, with the sizes that they read."""
        for condition, source in assumptions(self.graph):
            message = _Message().text("size ")
            self._tell(message, sorted(condition.names))
            message.text(f' does not satisfy "{condition}"{_assumed_by(source)}')
            failing = _fails(condition, self.variables)
            yield condition.names, [f"if {failing}:", *message.raise_lines()]

    def _tell(self, message: _Message, names: Sequence[str]) -> None:
        for k, name in enumerate(names):
            message.text(f"{' and ' if k else ''}{name} = ").value(str(self.variables[name]))
            message.text(f" of input {self.fitting.determining_input(name)!r}")


def type_is_known(extent: int) -> bool:
    """Return whether a size is a number."""
    return type(extent) is int


def _fails(condition: Condition, variables: Mapping[str, int]) -> str:
    """Return the Python expression that an assumption is violated."""
    found = None if condition.lower else remainder(condition.difference)
    if found is not None:
        x, y = (size_text(extent_at(v, variables)).operand_code(PRODUCT + 1) for v in found[:2])
        return f"{x} % {y} != 0"
    (left, right), flipped = condition.sides(), False
    if type(left) is not Dim:
        left, right, flipped = right, left, True
    relation = ("<", ">")[flipped] if condition.lower else "!="
    return f"{extent_text(extent_at(left, variables))} {relation} {_side(right, variables)}"


def _side(extent: int, variables: Mapping[str, int]) -> str:
    return extent_text(extent_at(extent, variables))


def _assumed_by(source: Source | None) -> str:
    return f", assumed by {source}   {source.text}".rstrip() if source else ""


@final
class _Message:
    """The message of an error, as an f-string with values."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, bool]] = []

    def text(self, text: str) -> _Message:
        """Add text, which is escaped."""
        self._parts.append((text, False))
        return self

    def value(self, code: str) -> _Message:
        """Add the value of an expression."""
        self._parts.append((code, True))
        return self

    def raise_lines(self) -> Lines:
        """Return the statement after an `if` that raises the error."""
        plain = "".join(text for text, is_code in self._parts if not is_code)
        quote = "'" if plain.count('"') > plain.count("'") else '"'
        text = "".join(f"{{{p}}}" if code else _escape_text(p, quote) for p, code in self._parts)
        raising = statement("raise ", f"ValueError(f{quote}{text}{quote})", depth=2)
        return [f"    {line}" for line in raising]


def _escape_text(text: str, quote: str) -> str:
    """Return any text as part of an f-string."""
    plain = printable(text)
    for mark in ("\\", quote):
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("{", "{{").replace("}", "}}")


def _variables(graph: Graph, taken: Collection[str]) -> dict[str, Dim]:
    """Return a variable for each size: its lower-case name, unless that is taken."""
    used = {v.hint.replace(".", "_") for v in graph.inputs}
    used.update(taken)
    found: dict[str, Dim] = {}
    for size in graph.sizes:
        stem = size.strip("_")
        names = (stem.lower(), stem, f"{stem.lower()}_size", f"size_{stem}")
        name = next((n for n in names if is_safe(n) and n not in used), "")
        count = len(used)
        while not name or name in used:
            name, count = f"size_{count}", count + 1
        used.add(name)
        found[size] = Dim(((((name, 1),), 1),))
    return found
