"""Symbolic sizes in readable code: variables computed from array shapes, and checks.

A standalone file rejects the arrays that primgraph would reject, with the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.extents import MUL, UNARY, extent_text, size_text
from primgraph.codegen.targets.text.layout import WIDTH, statement
from primgraph.codegen.targets.text.names import is_safe, printable
from primgraph.ir.assumptions import Condition
from primgraph.ir.dims import Dim, extent_at, remainder
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import Fitting, assumptions
from primgraph.ir.types import TensorType

# Lines of code, indented relative to each other.
Lines = list[str]

# Text of a message, and expressions whose values stand in it, which are marked by True.
_Parts: TypeAlias = Sequence[tuple[str, bool]]

# As many arguments are checked by one loop or by a function.
SEVERAL = 3


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

    @property
    def names(self) -> list[str]:
        """Return the variables, in the order of the sizes."""
        return [str(v) for v in self.variables.values()]

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
                    text = f"{size_text(rest).operand_code(MUL)} // {factor}"
                yield variable, [f"{variable} = {text}"]

    def _solution(self, given: str, extent: Dim, name: str) -> tuple[int, int]:
        """Return the numerator and factor of a size that occurs linearly in an axis."""
        left: Any = extent.at({k: v for k, v in self.variables.items() if k != name})
        number = extent_at(left, {name: 0})
        factor: int = extent_at(left, {name: 1}) - number
        whole: int = Dim(((((given, 1),), 1),))
        return whole - number, factor

    # Checks.

    def shape_mismatch(self, name: str, type: TensorType) -> str:
        """Return the condition that an array has other axes than its type, or other known sizes."""
        wrong = [f"{name}.ndim != {type.ndim}"]
        known = ((axis, n) for axis, n in enumerate(type.shape) if type_is_known(n))
        return " or ".join([*wrong, *(f"{name}.shape[{axis}] != {n}" for axis, n in known)])

    def checked_definitions(
        self, arrays: Sequence[str], used: Collection[str], free: Callable[[str], str]
    ) -> Lines:
        """Return statements that compute variables, and reject sizes that do not fit.

        `free` returns an unused name for a hint. Variables are computed if they are `used` or
        checked.
        """
        checks = [*self._contradictions(arrays, free), *self._assumption_checks()]
        read = frozenset().union(*(names for names, _ in checks))
        needed = self.required_sizes({*used, *(str(self.variables[name]) for name in read)})
        begun: Lines = []
        for name, found in self._definitions(arrays):
            solved = next((s for s in self.fitting.solved if self._is_in(s[3], (name,))), None)
            if solved is not None:
                begun += self._solve_size(arrays, *solved, free)
            elif name in needed:
                begun += found
        return [*begun, *(line for _, lines in checks for line in lines)]

    def _solve_size(
        self,
        arrays: Sequence[str],
        i: int,
        axis: int,
        extent: Dim,
        name: str,
        free: Callable[[str], str],
    ) -> Lines:
        """Return statements that solve for a size that occurs in an axis."""
        variable, given = str(self.variables[name]), f"{arrays[i]}.shape[{axis}]"
        left, factor = self._solution(given, extent, name)
        wrong = f"{variable} < 0"
        if factor == 1:
            lines = [f"{variable} = {extent_text(left)}"]
        else:
            rest = free("rest")
            lines = [f"{variable}, {rest} = divmod({extent_text(left)}, {factor})"]
            wrong = f"{rest} or {wrong}"
        title, type = self.fitting.inputs[i]
        message = _Message().text(f"input {title!r} is {type}: no size {name} gives an extent of ")
        message.value(given).text(f" on axis {axis}")
        return [*lines, f"if {wrong}:", *message.raise_lines()]

    def _contradictions(
        self, arrays: Sequence[str], free: Callable[[str], str]
    ) -> Iterator[tuple[frozenset[str], Lines]]:
        """Yield checks that other axes agree with the sizes, with the sizes that they read."""
        telling = {
            *self.fitting.bare.values(),
            *((i, a) for i, a, _, n in self.fitting.solved if n),
        }
        rest = [(i, axis) for i, axis in self.fitting.axes if (i, axis) not in telling]
        for (axis, type), group in groupby(rest, lambda p: (p[1], self.fitting.inputs[p[0]][1])):
            extent: Any = type.shape[axis]
            members = [(arrays[i], self.fitting.inputs[i][0]) for i, _ in group]
            if len(members) >= SEVERAL and all(array == title for array, title in members):
                name, array = free("name"), free("array")
                check = self._contradiction(array, f"{name}!r", axis, type)
                lines = [
                    *loop_over_arrays(name, array, members),
                    f"    {check[0]}",
                    *(f"    {line}" for line in check[1].raise_lines(depth=3)),
                ]
                yield extent.names, lines
                continue
            for array, title in members:
                condition, message = self._contradiction(array, repr(title), axis, type)
                yield extent.names, [condition, *message.raise_lines()]

    def _contradiction(
        self, array: str, told: str, axis: int, type: TensorType
    ) -> tuple[str, _Message]:
        """Return the condition that an axis of `array` disagrees with its size, and the error.

        `told` is the name of the input in quotes, or ends in `!r` if it is an expression.
        """
        extent: Any = type.shape[axis]
        wanted, given = extent_text(extent.at(self.variables)), f"{array}.shape[{axis}]"
        message, bare = _Message(), str(extent) in extent.names
        if bare:
            message.text(f"size {extent} is not the same in all inputs: ")
        message.text(f"axis {axis} of input ")
        message = message.value(told) if told.endswith("!r") else message.text(told)
        message.text(f" {type} has extent ").value(given)
        if bare:
            other, place = self.fitting.bare[str(extent)]
            teller = self.fitting.inputs[other][0]
            message.text(f", axis {place} of input {teller!r} has ").value(wanted)
        else:
            message.text(f", and {extent} is ").value(wanted).text(": ")
            self._tell(message, sorted(extent.names))
        return f"if {given} != {wanted}:", message

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
        x, y = (size_text(extent_at(v, variables)).operand_code(UNARY) for v in found[:2])
        return f"{x} % {y} != 0"
    (left, right), flipped = condition.sides(), False
    if type(left) is not Dim:
        left, right, flipped = right, left, True
    relation = ("<", ">")[flipped] if condition.lower else "!="
    texts = [extent_text(extent_at(side, variables)) for side in (left, right)]
    return f" {relation} ".join(texts)


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

    def raise_lines(self, depth: int = 2) -> Lines:
        """Return the statement after an `if` that raises the error, which stands at that depth.

        A message that is too long for a line is broken between words.
        """
        literal, width = _literal(self._parts), WIDTH - 4 * (depth + 1)
        if len(literal) <= width:
            raising = statement("raise ", f"ValueError({literal})", depth)
            return [f"    {line}" for line in raising]
        literals = [f"        {_literal(row)}" for row in _wrap(self._parts, width)]
        return ["    raise ValueError(", *literals, "    )"]


def _literal(parts: _Parts) -> str:
    """Return an f-string in the quotes that need fewer escapes, like a formatter; else double."""
    plain = "".join(text for text, is_code in parts if not is_code)
    quote = "'" if plain.count('"') > plain.count("'") else '"'
    text = "".join(f"{{{p}}}" if code else _escape_text(p, quote) for p, code in parts)
    return f"f{quote}{text}{quote}"


def _wrap(parts: _Parts, width: int) -> Iterator[_Parts]:
    """Yield the words of `parts` in rows that end in spaces; values are not broken."""
    row: list[tuple[str, bool]] = []
    for text, is_code in parts:
        for word in [text] if is_code else _words(text):
            stripped = (word if is_code else word.rstrip(), is_code)
            if row and row[-1][0].endswith(" ") and len(_literal([*row, stripped])) > width:
                yield row
                row = []
            row.append((word, is_code))
    yield row


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text, with the spaces behind them."""
    start = 0
    for k, (mark, following) in enumerate(pairwise(text), 1):
        if mark == " " != following:
            yield text[start:k]
            start = k
    if text:
        yield text[start:]


def loop_over_arrays(name: str, array: str, pairs: Sequence[tuple[str, str]]) -> Lines:
    """Return the head of a loop over the variables and names of arrays."""
    told = ", ".join(f'("{title}", {variable})' for variable, title in pairs)
    head = f"for {name}, {array} in "
    lines = statement(head, f"[{told}]")
    return [*lines[:-1], f"{lines[-1]}:"]


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
