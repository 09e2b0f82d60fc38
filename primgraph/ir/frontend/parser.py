"""Parser of the text of graphs, which is loaded when a text is first read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

from primgraph.base.interpreter_limits import is_too_deep, too_deep
from primgraph.base.user_lines import Source
from primgraph.errors import LoadError, MissingRuleError, PrimgraphError
from primgraph.ir.dims import parse_size
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import HASHED, Array, Params, bits, find_named, freeze_all
from primgraph.ir.primitive import lookup
from primgraph.ir.types import DTYPE_OF_NAME, Shape, TensorType

# File name for the lines of a text.
TEXT_FILE = "graph text"

# Maximum nesting of tuples.
_DEEPEST = 20

# Tokens that continue an expression in sizes.
_OPERATORS = frozenset("+-*/")
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<array>(?:bool|[iufc]\d+)\[[\d,]*\]\{[^{}]*\})
      | (?P<value>%(?:[A-Za-z0-9_]+|"(?:[^"\\]|\\.)*"))
      | (?P<object>@"(?:[^"\\]|\\.)*")
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
      | (?P<complex>\(-?(?:inf|nan|\d[\d.]*(?:e[-+]?\d+)?)[-+](?:inf|nan|\d[\d.]*(?:e[-+]?\d+)?)j\))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>[(),=:\[\]{}+*/?-])
    )""",
    re.VERBOSE | re.ASCII,
)

_WORDS = {"True": True, "False": False, "None": None}
_NUMBERS = frozenset(["inf", "nan"])

# Tokens that end a size.
_ENDS = frozenset([",", "]", ""])

_TRUTH = {"True": True, "False": False}


class _Rows:
    """Numbered lines of a text, without blank ones, read in order."""

    def __init__(self, text: str) -> None:
        rows = [(number, row) for number, row in enumerate(text.splitlines(), 1) if row.strip()]
        self.rows = [(number, row) for number, row in rows if not row.lstrip().startswith("#")]
        self.at = self.depth = 0
        # The number of the first line.
        self.start = self.rows[0][0] if self.rows else 1

    def line(self) -> _Line:
        """Return the next line. Raises `LoadError` at the end of the text."""
        if self.at == len(self.rows):
            number, row = self.rows[-1] if self.rows else (1, "")
            fault = "graph text has no header, body and closing brace"
            raise _error(fault, number, len(row.rstrip()) + 1, row)
        number, row = self.rows[self.at]
        self.at += 1
        return _Line(row, number, rows=self)

    @property
    def are_last(self) -> bool:
        """Return whether the next line is the `return` line, followed by a closing brace."""
        if self.at + 1 >= len(self.rows):
            return True
        found, after = (self.rows[i][1].lstrip() for i in (self.at, self.at + 1))
        return found.startswith("return") or after.startswith("}")


class _Line:
    """Tokens of one line, read from left to right: kind, text and column of each.

    The last token is the end of the line, which is never taken. An equation with bodies continues
    in the next lines of `rows`.
    """

    def __init__(self, text: str, number: int, first: int = 1, rows: _Rows | None = None) -> None:
        self.rows = rows
        self._set_text(text, number, first)

    def _set_text(self, text: str, number: int, first: int) -> None:
        self.text = text
        self.number = number
        self.first = first
        self.tokens = [*self._tokenize(), ("end", "", first + len(text.rstrip()))]
        self.at = 0

    def _tokenize(self) -> Iterator[tuple[str, str, int]]:
        place, end = 0, len(self.text.rstrip())
        while place < end:
            match = _TOKEN.match(self.text, place)
            if match is None:
                rest = self.text[place:].lstrip()
                if rest.startswith("#"):
                    return
                column = len(self.text) - len(rest)
                raise self.error(f"cannot read {_short(rest.rstrip())}", column=self.first + column)
            kind = match.lastgroup
            assert kind is not None
            yield kind, match.group(kind), self.first + match.start(kind)
            place = match.end()

    def next_line(self) -> None:
        """Continue with the next line."""
        assert self.rows is not None
        line = self.rows.line()
        self._set_text(line.text, line.number, line.first)

    def error(self, fault: str, hint: str = "", column: int | None = None) -> LoadError:
        """Return the error for `fault` at `column`, by default at the next token."""
        at = self.column if column is None else column
        return _error(fault, self.number, at, self.text, hint)

    @property
    def column(self) -> int:
        """Column of the next token."""
        return self.tokens[self.at][2]

    @property
    def is_done(self) -> bool:
        return self.tokens[self.at][0] == "end"

    @property
    def found_text(self) -> str:
        return "the end" if self.is_done else _short(self.tokens[self.at][1])

    def peek(self, text: str) -> bool:
        return self.tokens[self.at][1] == text

    def accept(self, text: str) -> bool:
        found = self.tokens[self.at][1] == text
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.found_text}")

    def end(self) -> None:
        if not self.is_done:
            raise self.error(f"expected the end of the line, found {self.found_text}")

    def take(self, *kinds: str) -> tuple[str, str, int]:
        token = self.tokens[self.at]
        if token[0] not in kinds:
            raise self.error(f"expected a {' or '.join(kinds)}, found {self.found_text}")
        self.at += 1
        return token

    def parse_list(self, end: str, item: Callable[[], Any]) -> list[Any]:
        """Parse comma-separated items up to the mark `end`, with an optional trailing comma."""
        items = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def word(self, *kinds: str) -> str:
        """Parse a word, or the content of a quoted string."""
        kind, text, column = self.take(*kinds)
        return self.convert_text(json.loads, text, column) if kind == "string" else text

    def convert_text(self, convert: Callable[[str], Any], text: str, column: int) -> Any:
        try:
            return convert(text)
        except (ValueError, OverflowError) as error:
            raise self.error(f"{_short(text)}: {error}", column=column) from None

    def type(self) -> TensorType:
        _, name, column = self.take("word")
        if name not in DTYPE_OF_NAME:
            raise self.error(f"{name!r} is not a dtype", column=column)
        self.expect("[")
        shape = tuple(self.parse_list("]", self.extent))
        try:
            found = _type(name, shape)
        except PrimgraphError as error:
            raise self.error(error.message, error.hint, column) from None
        if type(found.size) is int and found.size > sys.maxsize // 8:
            raise self.error(f"{found} is larger than any array", column=column)
        return found

    def extent(self) -> int:
        kind, text, column = self.tokens[self.at]
        after, following, _ = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        alone = following in _ENDS or (after == "number" and following[0] != "-")
        if kind == "number" and alone:
            self.at += 1
            if not text.isdigit():
                raise self.error(f"{_short(text)} is not an extent", column=column)
            return self.convert_text(int, text, column)  # type: ignore[no-any-return]
        return self.expression()

    def expression(self) -> int:
        """Parse an expression in sizes, up to the next comma or end."""
        start, depth = self.column, 0
        while not self.is_done:
            text = self.tokens[self.at][1]
            if depth == 0 and (text == "," or text in _CLOSING):
                break
            depth += (text in _OPENING) - (text in _CLOSING)
            self.at += 1
        text = self.text[start - self.first : self.column - self.first].strip()
        try:
            return parse_size(text)
        except PrimgraphError as error:
            raise self.error(error.message, error.hint, start) from None

    def _is_expression(self) -> bool:
        """Return whether an expression in sizes follows, rather than a word, number or tuple."""
        kind, text, _ = self.tokens[self.at]
        after, depth = self.at + 1, int(text == "(")
        while depth and self.tokens[after][0] != "end":
            depth += (self.tokens[after][1] in _OPENING) - (self.tokens[after][1] in _CLOSING)
            after += 1
        follower, following, _ = self.tokens[min(after, len(self.tokens) - 1)]
        goes_on = following in _OPERATORS or (follower == "number" and following[0] == "-")
        if kind == "word":
            return text not in DTYPE_OF_NAME and text not in _WORDS and text not in _NUMBERS
        return text in ("-", "?") or (goes_on and (kind == "number" or text == "("))

    def param(self, constants: Mapping[str, Any], depth: int = 0) -> Any:
        if self.rows is not None and self.peek("graph"):
            return _parse_graph(self, constants)
        if self._is_expression():
            return self.expression()
        if self.accept("("):
            if depth == _DEEPEST:
                raise self.error("tuples stand too deep in each other")
            return tuple(self.parse_list(")", lambda: self.param(constants, depth + 1)))
        kind, text, column = self.take("array", "object", "string", "number", "complex", "word")
        if kind == "complex":
            return self.convert_text(complex, text, column)
        if kind == "array":
            return self._array(text, column, constants)
        if kind == "object":
            return find_named(self.convert_text(json.loads, text[1:], column))
        if kind == "string":
            return self.convert_text(json.loads, text, column)
        if kind == "number":
            whole = re.fullmatch(r"-?\d+", text, re.ASCII)
            return self.convert_text(int if whole else float, text, column)
        if text in DTYPE_OF_NAME:
            return DTYPE_OF_NAME[text]
        if text in _WORDS:
            return _WORDS[text]
        raise self.error(f"{text!r} is not a parameter", column=column)

    def _array(self, text: str, column: int, constants: Mapping[str, Any]) -> Array:
        header, _, content = text[:-1].partition("{")
        type = _Line(header, self.number, column).type()
        inside = column + len(header) + 1
        if content.startswith(HASHED):
            return self._lookup_constant(type, content[len(HASHED) :], inside, constants)
        convert = _from_bytes if content.startswith("0x") else _from_numbers
        data = self.convert_text(lambda t: convert(t, type), content, inside)
        if data.size != type.size:
            raise self.error(f"{data.size} elements are given for {type}", column=inside)
        return Array(data.reshape(type.shape))

    def _lookup_constant(
        self, type: TensorType, digest: str, column: int, constants: Mapping[str, Any]
    ) -> Array:
        """Return the array of this hash from the constants given beside the text."""
        if digest not in constants:
            raise self.error(
                f"no constant is given whose hash is {_short(digest)}",
                "give those beside the text: pg.parse(text, constants), with graph.constants of "
                "the graph that was printed",
                column=column,
            )
        try:
            found = Array(constants[digest])
        except (PrimgraphError, TypeError, ValueError) as error:
            fault = f"the constant {_short(digest)} is no array: {error}"
            raise self.error(fault.splitlines()[0], column=column) from None
        if found.type != type or found.digest != digest:
            raise self.error(
                f"the constant that is given for {_short(digest)}, {found.type}, is not the one "
                f"that the text was printed with, {type}",
                column=column,
            )
        return found


def _error(fault: str, number: int, column: int, text: str, hint: str = "") -> LoadError:
    return LoadError(
        f"graph text, line {number}, column {column}: {fault}",
        origin=tuple(filter(None, [text.strip()[:200]])),
        hint=hint,
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _from_bytes(content: str, type: TensorType) -> np.ndarray[Any, Any]:
    little = np.frombuffer(bytes.fromhex(content[2:]), type.dtype.newbyteorder("<"))
    if type.dtype.kind == "b" and little.size and little.view(np.uint8).max() > 1:
        raise ValueError("a boolean is 00 or 01")
    return little.astype(type.dtype)


_CONVERT: dict[str, Callable[[str], Any]] = {"f": float, "c": complex}


def _from_numbers(content: str, type: TensorType) -> np.ndarray[Any, Any]:
    """Parse the elements of a short array, each exact in the dtype."""
    words = [w.strip() for w in content.split(",")] if content.strip() else []
    if type.dtype.kind == "b":
        if not _TRUTH.keys() >= set(words):
            raise ValueError("a boolean is True or False")
        return np.array([_TRUTH[w] for w in words], type.dtype)
    convert = _CONVERT.get(type.dtype.kind, int)
    numbers = [convert(w) for w in words]
    limits = np.iinfo(type.dtype) if type.dtype.kind in "iu" else None
    if limits is not None and not all(limits.min <= n <= limits.max for n in numbers):
        raise ValueError(f"{type.dtype} has no such integer")
    with np.errstate(over="ignore"):
        data = np.array(numbers, type.dtype)
    if limits is None and not np.array_equal(np.isinf(data), np.isinf(numbers)):
        raise ValueError(f"{type.dtype} has no number as large as that")
    return data


@lru_cache(maxsize=4096)
def _type(dtype: str, shape: Shape) -> TensorType:
    """Return the type; cached, which keeps parsed graphs small."""
    return TensorType(shape, DTYPE_OF_NAME[dtype])


def parse_type(text: str) -> TensorType:
    """Parse a type. Raises `LoadError` for other text."""
    line = _Line(text, 1)
    found = line.type()
    line.end()
    return found


def parse(text: str, constants: Mapping[str, Any]) -> Graph:
    """Return the graph that `text` describes; see `primgraph.ir.text.parse`."""
    rows = _Rows(text)
    if len(rows.rows) < 3:
        rows.at = len(rows.rows)
    line = rows.line()
    graph = _parse_graph(line, constants)
    line.end()
    if rows.at < len(rows.rows):
        line = rows.line()
        raise line.error(f"expected the end of the text, found {line.found_text}")
    return graph


def _parse_graph(line: _Line, constants: Mapping[str, Any]) -> Graph:
    """Parse the graph at `line`, and move behind its closing brace."""
    rows = line.rows
    assert rows is not None
    if is_too_deep(rows.depth):
        raise line.error(too_deep())
    rows.depth += 1
    line.expect("graph")
    title = line.word("word", "string")
    known: dict[str, Value] = {}
    line.expect("(")
    inputs = line.parse_list(")", lambda: _bind(line, known))
    line.expect("{")
    line.end()
    shared: dict[Any, Params] = {}
    body = []
    while not rows.are_last:
        body.append(_parse_equation(rows.line(), known, shared, constants))
    line.next_line()
    line.expect("return")
    outputs = []
    while not line.is_done:
        outputs.append(_lookup_value(line, known))
        if not line.is_done:
            line.expect(",")
    line.next_line()
    line.expect("}")
    rows.depth -= 1
    return Graph(inputs, body, outputs, title)


def _bind(line: _Line, known: dict[str, Value]) -> Value:
    _, name, column = line.take("value")
    if name in known:
        raise line.error(f"{name[:60]} is bound twice", column=column)
    hint = "" if name[1:].isdigit() else line.convert_text(_hint, name, column)
    line.expect(":")
    known[name] = Value(line.type(), hint)
    return known[name]


def _hint(name: str) -> str:
    """Return the hint that prints as `name`; plain numbers are automatic names, and no hints."""
    word = name[1:]
    if word.isdigit():
        return ""
    return str(json.loads(word)) if word.startswith('"') else word


def _lookup_value(line: _Line, known: dict[str, Value]) -> Value:
    _, name, column = line.take("value")
    if name not in known:
        raise line.error(f"{name[:60]} is used before it is bound", column=column)
    return known[name]


def _parse_equation(
    line: _Line,
    known: dict[str, Value],
    shared: dict[Any, Params],
    constants: Mapping[str, Any],
) -> Equation:
    start, begun = line.column, copy(line)
    scope: dict[str, Value] = {}
    outputs = line.parse_list("=", lambda: _bind(line, scope))
    _, name, at = line.take("word")
    try:
        op = lookup(name)
    except MissingRuleError as error:
        raise begun.error(error.message, error.hint, at) from None
    inputs: list[Value] = []
    params: dict[str, Any] = {}

    def argument() -> None:
        if line.tokens[line.at][0] == "value":
            inputs.append(_lookup_value(line, known))
            return
        _, name, column = line.take("word")
        if name in params:
            raise line.error(f"parameter {_short(name)} is given twice", column=column)
        line.expect("=")
        params[name] = line.param(constants)

    line.expect("(")
    line.parse_list(")", argument)
    line.end()
    frozen = freeze_all(params.items())
    try:
        types = op.infer(tuple(v.type for v in inputs), dict(frozen))
    except Exception as error:
        # A rule may fail with any exception on parameters that cannot be built otherwise.
        fault = error.message if isinstance(error, PrimgraphError) else f"{op.name}: {error}"
        raise begun.error(fault.split("\n")[0], column=at) from error
    if types != tuple(v.type for v in outputs):
        raise begun.error(f"{op.name} has type {', '.join(map(str, types))}", column=start)
    for name in scope:
        if name in known:
            raise begun.error(f"{name[:60]} is bound twice", column=start)
    known.update(scope)
    assert line.rows is not None
    source = Source(TEXT_FILE, begun.number - line.rows.start)
    if not op.has_bodies:
        # Equal graphs may have other value names, and must print as they were.
        frozen = shared.setdefault(bits(frozen), frozen)
    return Equation(op, tuple(inputs), frozen, tuple(outputs), source)
