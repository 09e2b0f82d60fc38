"""Textual form of a graph: printing, and parsing back to an equal graph.

graph f(%x: f64[3]) {
  %0: f64[3] = sin(%x)
  %1: f64[] = reduce_sum(%0, axes=(0,))
  return %1
}

A symbolic size is an expression in names of sizes, as in `f64[N,2*N+1]`.

Bodies of loops and branches are printed in the parameters of their equations, over several lines.

The text contains only the hashes of long constants: `graph.constants` maps these to the arrays, and
`parse(text, graph.constants)` restores them.
"""

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
from primgraph.ir.dims import written_extent
from primgraph.ir.frontend.signature import checked
from primgraph.ir.graph import Equation, Graph, Value, beside, printer
from primgraph.ir.params import Array, Named, Params, bits, freeze_all, named
from primgraph.ir.primitive import lookup
from primgraph.ir.types import DTYPE_OF_NAME, NAME_OF_DTYPE, Shape, TensorType

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CONTEXT = 3

# File name for the lines of a text.
TEXT_FILE = "graph text"

# Arrays up to this many elements are printed as numbers, larger ones as hexadecimal bytes, and
# those above this many bytes as a hash.
_SPELLED = 8
_INLINE = 1024

# Prefix of the hash of an array in text, and the maximum nesting of tuples.
_HASHED = "sha256:"
_DEEPEST = 20


def names(graph: Graph) -> dict[Value, str]:
    """Return a distinct name for each value: its hint if it has one, else a number."""
    taken: set[str] = set()
    result: dict[Value, str] = {}
    count = 0
    for value in graph.numbering():
        if value.hint and value.hint not in taken:
            taken.add(value.hint)
            plain = _PLAIN.fullmatch(value.hint)
            result[value] = "%" + (value.hint if plain else json.dumps(value.hint))
        else:
            result[value] = f"%{count}"
            count += 1
    return result


def to_text(graph: Graph, *, sources: bool = False) -> str:
    """Return the text of `graph`; with `sources`, each line ends in its source line."""
    return "\n".join(_lines(graph, sources))


def _lines(graph: Graph, sources: bool) -> list[str]:
    name = names(graph)
    inputs = ", ".join(f"{name[v]}: {v.type}" for v in graph.inputs)
    title = graph.name if _PLAIN.fullmatch(graph.name) else json.dumps(graph.name)
    lines = [f"graph {title}({inputs}) {{"]
    for eqn in graph.body:
        note = f"  # {_comment(eqn.source)}" if sources and eqn.source else ""
        rows = equation_text(eqn, name, sources=sources).split("\n")
        lines += [f"  {row}" for row in (*rows[:-1], rows[-1] + note)]
    lines.append(f"  return {', '.join(name[v] for v in graph.outputs)}".rstrip())
    lines.append("}")
    return lines


printer[0] = to_text


def lines_around(graph: Graph, eqn: Equation | None) -> list[str]:
    """Return the equations around `eqn`, which has an arrow; the first ones for None."""
    place = next((i for i, e in enumerate(graph.body) if e is eqn), 0)
    start = max(0, place - _CONTEXT)
    shown = graph.body[start : place + _CONTEXT + 1]
    name: dict[Value, str] = {}
    for value in graph.numbering():
        name[value] = f"%{value.hint or len(name)}"
    for e in shown:
        for value in (*e.inputs, *e.outputs):
            name.setdefault(value, f"%unbound{len(name)}")
    lines = []
    for e in shown:
        where = f"  # {_comment(e.source)}" if e.source else ""
        first, *rest = equation_text(e, name).split("\n")
        rows = [f"{'->' if e is eqn else '  '} {first}", *(f"   {row}" for row in rest)]
        lines += [*rows[:-1], rows[-1] + where]
    return lines


def _comment(source: Source) -> str:
    return str(source).encode("ascii", "backslashreplace").decode().replace("\n", "\\n")


def equation_text(eqn: Equation, name: dict[Value, str], *, sources: bool = False) -> str:
    """Return the line of an equation with these value names; several lines if it has bodies."""
    outputs = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    arguments = [name[v] for v in eqn.inputs]
    arguments += [f"{key}={value_text(value, sources=sources)}" for key, value in eqn.params]
    return f"{outputs} = {eqn.op.name}({', '.join(arguments)})"


def typed_equation(eqn: Equation, graph: Graph) -> str:
    """Return `eqn` with the types of its operands, shortened, for a message."""
    name = names(graph)
    outputs = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    shown = [f"{name[v]}: {v.type}" for v in eqn.inputs]
    shown += [f"{key}={brief_text(value)}" for key, value in eqn.params]
    text = f"{outputs} = {eqn.op.name}({', '.join(shown)})"
    return text if len(text) <= 400 else text[:397] + "..."


def brief_text(value: Any) -> str:
    """Return a parameter in one line, with graphs as their names."""
    if isinstance(value, Graph):
        return f"<graph {value.name}>"
    if isinstance(value, tuple):
        return f"({', '.join(map(brief_text, value))}{',' * (len(value) == 1)})"
    return value_text(value)


def value_text(value: Any, *, sources: bool = False) -> str:
    """Return a parameter as text that parses to the same bits."""
    if isinstance(value, tuple):
        inner = ", ".join([value_text(v, sources=sources) for v in value])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Graph):
        return "\n".join(_lines(value, sources))
    if isinstance(value, np.dtype):
        return NAME_OF_DTYPE[value]
    if isinstance(value, Array):
        return _array_text(value)
    if isinstance(value, Named):
        return f"@{json.dumps(value.name)}"
    if isinstance(value, complex):
        return complex_text(value)
    return json.dumps(value) if isinstance(value, str) else repr(value)


def complex_text(number: complex) -> str:
    """Return both parts of a complex number, as they parse: `(1.0-0.0j)`."""
    imaginary = repr(number.imag)
    sign = "" if imaginary.startswith("-") else "+"
    return f"({number.real!r}{sign}{imaginary}j)"


# Tokens that continue an expression in sizes.
_OPERATORS = frozenset("+-*/")
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")


def _array_text(array: Array) -> str:
    flat = array.data.ravel()
    spelled = flat.size <= _SPELLED and not (array.type.is_inexact and np.isnan(flat).any())
    if spelled:
        return f"{array.type}{{{', '.join(value_text(v) for v in flat.tolist())}}}"
    if array.data.nbytes > _INLINE:
        return f"{array.type}{{{_HASHED}{array.digest}}}"
    return f"{array.type}{{0x{array.little_endian().tobytes().hex()}}}"


def constants_beside(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays that the text of `graph` has only hashes of, by these hashes."""
    return {a.digest: a.data for a in _arrays_in(graph) if a.data.nbytes > _INLINE}


def _arrays_in(value: Any) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _arrays_in(inner)
    elif isinstance(value, Graph):
        for eqn in value.body:
            for _, inner in eqn.params:
                yield from _arrays_in(inner)


beside[0] = constants_beside


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

    def go_on(self) -> None:
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
    def done(self) -> bool:
        return self.tokens[self.at][0] == "end"

    @property
    def found(self) -> str:
        return "the end" if self.done else _short(self.tokens[self.at][1])

    def peek(self, text: str) -> bool:
        return self.tokens[self.at][1] == text

    def accept(self, text: str) -> bool:
        found = self.tokens[self.at][1] == text
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.found}")

    def end(self) -> None:
        if not self.done:
            raise self.error(f"expected the end of the line, found {self.found}")

    def take(self, *kinds: str) -> tuple[str, str, int]:
        token = self.tokens[self.at]
        if token[0] not in kinds:
            raise self.error(f"expected a {' or '.join(kinds)}, found {self.found}")
        self.at += 1
        return token

    def listed(self, end: str, item: Callable[[], Any]) -> list[Any]:
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
        return self.converted(json.loads, text, column) if kind == "string" else text

    def converted(self, convert: Callable[[str], Any], text: str, column: int) -> Any:
        try:
            return convert(text)
        except (ValueError, OverflowError) as error:
            raise self.error(f"{_short(text)}: {error}", column=column) from None

    def type(self) -> TensorType:
        _, name, column = self.take("word")
        if name not in DTYPE_OF_NAME:
            raise self.error(f"{name!r} is not a dtype", column=column)
        self.expect("[")
        shape = tuple(self.listed("]", self.extent))
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
            return self.converted(int, text, column)  # type: ignore[no-any-return]
        return self.expression()

    def expression(self) -> int:
        """Parse an expression in sizes, up to the next comma or end."""
        start, depth = self.column, 0
        while not self.done:
            text = self.tokens[self.at][1]
            if depth == 0 and (text == "," or text in _CLOSING):
                break
            depth += (text in _OPENING) - (text in _CLOSING)
            self.at += 1
        text = self.text[start - self.first : self.column - self.first].strip()
        try:
            return written_extent(text)
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
            return tuple(self.listed(")", lambda: self.param(constants, depth + 1)))
        kind, text, column = self.take("array", "object", "string", "number", "complex", "word")
        if kind == "complex":
            return self.converted(complex, text, column)
        if kind == "array":
            return self._array(text, column, constants)
        if kind == "object":
            return named(self.converted(json.loads, text[1:], column))
        if kind == "string":
            return self.converted(json.loads, text, column)
        if kind == "number":
            whole = re.fullmatch(r"-?\d+", text, re.ASCII)
            return self.converted(int if whole else float, text, column)
        if text in DTYPE_OF_NAME:
            return DTYPE_OF_NAME[text]
        if text in _WORDS:
            return _WORDS[text]
        raise self.error(f"{text!r} is not a parameter", column=column)

    def _array(self, text: str, column: int, constants: Mapping[str, Any]) -> Array:
        header, _, content = text[:-1].partition("{")
        type = _Line(header, self.number, column).type()
        inside = column + len(header) + 1
        if content.startswith(_HASHED):
            return self._lookup_constant(type, content[len(_HASHED) :], inside, constants)
        convert = _from_bytes if content.startswith("0x") else _from_numbers
        data = self.converted(lambda t: convert(t, type), content, inside)
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


_WORDS = {"True": True, "False": False, "None": None}
_NUMBERS = frozenset(["inf", "nan"])
# Tokens that end a size.
_ENDS = frozenset([",", "]", ""])
_TRUTH = {"True": True, "False": False}


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


def read_type(text: str) -> TensorType:
    """Parse a type. Raises `LoadError` for other text."""
    line = _Line(text, 1)
    found = line.type()
    line.end()
    return found


@checked
def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """Return the graph that `text` describes.

    Long constants are not in the text, which has their hash: `constants` provides them, as
    `graph.constants` of the printed graph does.

    Raises `LoadError` with line and column for malformed text, a value used before it is bound, an
    unknown op, a missing or wrong constant, or a type that differs from the op's type rule.

    >>> graph = pg.trace(pg.sin, pg.spec(3))
    >>> str(pg.parse(str(graph))) == str(graph)
    True
    """
    rows = _Rows(text)
    if len(rows.rows) < 3:
        rows.at = len(rows.rows)
    line = rows.line()
    graph = _parse_graph(line, {} if constants is None else constants)
    line.end()
    if rows.at < len(rows.rows):
        line = rows.line()
        raise line.error(f"expected the end of the text, found {line.found}")
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
    inputs = line.listed(")", lambda: _bind(line, known))
    line.expect("{")
    line.end()
    shared: dict[Any, Params] = {}
    body = []
    while not rows.are_last:
        body.append(_parse_equation(rows.line(), known, shared, constants))
    line.go_on()
    line.expect("return")
    outputs = []
    while not line.done:
        outputs.append(_lookup_value(line, known))
        if not line.done:
            line.expect(",")
    line.go_on()
    line.expect("}")
    rows.depth -= 1
    return Graph(inputs, body, outputs, title)


def _bind(line: _Line, known: dict[str, Value]) -> Value:
    _, name, column = line.take("value")
    if name in known:
        raise line.error(f"{name[:60]} is bound twice", column=column)
    hint = "" if name[1:].isdigit() else line.converted(_hint, name, column)
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
    outputs = line.listed("=", lambda: _bind(line, scope))
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
    line.listed(")", argument)
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
