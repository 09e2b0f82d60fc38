"""The text of a graph: it prints, and what it prints parses back to an equal graph.

graph f(%x: f64[3]) {
  %0: f64[3] = sin(%x)
  %1: f64[] = reduce_sum(%0, axes=(0,))
  return %1
}

Long constants stand beside the text, which has their hash: `graph.constants` has them by it, and
`parse(text, graph.constants)` puts them back.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from primgraph.errors import LoadError, MissingRuleError, PrimgraphError
from primgraph.ir.graph import Equation, Graph, Value, beside, printer
from primgraph.ir.params import Array, Params, bits, freeze_all
from primgraph.ir.primitive import lookup
from primgraph.ir.signature import checked
from primgraph.ir.types import DTYPE_OF_NAME, NAME_OF_DTYPE, Shape, TensorType
from primgraph.source import Source

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CONTEXT = 3

# What the lines of a text are said to be lines of.
TEXT_FILE = "graph text"

# Arrays up to this many elements are printed number by number, larger ones as hexadecimal bytes,
# and those with more bytes than this as a hash.
_SPELLED = 8
_INLINE = 1024

# How a hash of an array begins in text, and how deep tuples may stand in each other.
_HASHED = "sha256:"
_DEEPEST = 20


def names(graph: Graph) -> dict[Value, str]:
    """A distinct name for each value: its hint where it has one, else a number."""
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
    """The text of `graph`; with `sources`, each line ends in where the user wrote it."""
    name = names(graph)
    inputs = ", ".join(f"{name[v]}: {v.type}" for v in graph.inputs)
    title = graph.name if _PLAIN.fullmatch(graph.name) else json.dumps(graph.name)
    lines = [f"graph {title}({inputs}) {{"]
    for eqn in graph.body:
        note = f"  # {_comment(eqn.source)}" if sources and eqn.source else ""
        lines.append(f"  {equation_text(eqn, name)}{note}")
    lines.append(f"  return {', '.join(name[v] for v in graph.outputs)}".rstrip())
    lines.append("}")
    return "\n".join(lines)


printer[0] = to_text


def lines_around(graph: Graph, eqn: Equation | None) -> list[str]:
    """The equations next to `eqn`, an arrow before its own; the first ones for None."""
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
        lines.append(f"{'->' if e is eqn else '  '} {equation_text(e, name)}{where}")
    return lines


def _comment(source: Source) -> str:
    return str(source).encode("ascii", "backslashreplace").decode().replace("\n", "\\n")


def equation_text(eqn: Equation, name: dict[Value, str]) -> str:
    """The line of an equation whose values have these names."""
    outputs = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    arguments = [name[v] for v in eqn.inputs]
    arguments += [f"{key}={value_text(value)}" for key, value in eqn.params]
    return f"{outputs} = {eqn.op.name}({', '.join(arguments)})"


def typed_equation(eqn: Equation, graph: Graph) -> str:
    """`eqn` with the types of its operands, for a message, cut where it is very long."""
    name = names(graph)
    outputs = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    shown = [f"{name[v]}: {v.type}" for v in eqn.inputs]
    shown += [f"{key}={value_text(value)}" for key, value in eqn.params]
    text = f"{outputs} = {eqn.op.name}({', '.join(shown)})"
    return text if len(text) <= 400 else text[:397] + "..."


def value_text(value: Any) -> str:
    """A parameter as text that reads back to the same bits."""
    if isinstance(value, tuple):
        inner = ", ".join(map(value_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype):
        return NAME_OF_DTYPE[value]
    if isinstance(value, Array):
        return _array_text(value)
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _array_text(array: Array) -> str:
    flat = array.data.ravel()
    spelled = flat.size <= _SPELLED and not (array.type.is_float and np.isnan(flat).any())
    if spelled:
        return f"{array.type}{{{', '.join(repr(v) for v in flat.tolist())}}}"
    if array.data.nbytes > _INLINE:
        return f"{array.type}{{{_HASHED}{array.digest}}}"
    return f"{array.type}{{0x{array.little_endian().tobytes().hex()}}}"


def constants_beside(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that the text of `graph` has only hashes of, by these hashes."""
    given = (value for eqn in graph.body for _, value in eqn.params)
    arrays = (a for value in given for a in _arrays_in(value))
    return {a.digest: a.data for a in arrays if a.data.nbytes > _INLINE}


def _arrays_in(value: Any) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _arrays_in(inner)


beside[0] = constants_beside


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<array>(?:bool|[iuf]\d+)\[[\d,]*\]\{[^{}]*\})
      | (?P<value>%(?:[A-Za-z0-9_]+|"(?:[^"\\]|\\.)*"))
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>[(),=:\[\]{}])
    )""",
    re.VERBOSE | re.ASCII,
)


class _Line:
    """The tokens of one line, read from left to right: kind, text and column of each.

    The last one is the end of the line, which is never taken.
    """

    def __init__(self, text: str, number: int, first: int = 1) -> None:
        self.text = text
        self.number = number
        self.first = first
        self.tokens = [*self._split(), ("end", "", first + len(text.rstrip()))]
        self.at = 0

    def _split(self) -> Iterator[tuple[str, str, int]]:
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

    def error(self, fault: str, hint: str = "", column: int | None = None) -> LoadError:
        """The error for `fault` at `column`, by default at the token that is read next."""
        at = self.column if column is None else column
        return _error(fault, self.number, at, self.text, hint)

    @property
    def column(self) -> int:
        """Where the token stands that is read next."""
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
        """Items up to the mark `end`, with commas between them; the last one may have one, too."""
        items = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return items

    def word(self, *kinds: str) -> str:
        """A word as it stands, or what a string in quotes means."""
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
        found = _type(name, tuple(self.listed("]", self.extent)))
        if found.size > sys.maxsize // 8:
            raise self.error(f"{found} is larger than any array", column=column)
        return found

    def extent(self) -> int:
        _, text, column = self.take("number")
        if not text.isdigit():
            raise self.error(f"{_short(text)} is not an extent", column=column)
        return self.converted(int, text, column)  # type: ignore[no-any-return]

    def param(self, constants: Mapping[str, Any], depth: int = 0) -> Any:
        if self.accept("("):
            if depth == _DEEPEST:
                raise self.error("tuples stand too deep in each other")
            return tuple(self.listed(")", lambda: self.param(constants, depth + 1)))
        kind, text, column = self.take("array", "string", "number", "word")
        if kind == "array":
            return self._array(text, column, constants)
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
            return self._beside(type, content[len(_HASHED) :], inside, constants)
        convert = _from_bytes if content.startswith("0x") else _from_numbers
        data = self.converted(lambda t: convert(t, type), content, inside)
        if data.size != type.size:
            raise self.error(f"{data.size} elements are given for {type}", column=inside)
        return Array(data.reshape(type.shape))

    def _beside(
        self, type: TensorType, digest: str, column: int, constants: Mapping[str, Any]
    ) -> Array:
        """The array of this hash, which stands beside the text."""
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


def _from_numbers(content: str, type: TensorType) -> np.ndarray[Any, Any]:
    """The elements of a short array; each is what the dtype holds, as it is."""
    words = [w.strip() for w in content.split(",")] if content.strip() else []
    if type.dtype.kind == "b":
        if not _TRUTH.keys() >= set(words):
            raise ValueError("a boolean is True or False")
        return np.array([_TRUTH[w] for w in words], type.dtype)
    convert = int if type.dtype.kind in "iu" else float
    numbers = [convert(w) for w in words]
    limits = np.iinfo(type.dtype) if type.dtype.kind in "iu" else None
    if limits is not None and not all(limits.min <= n <= limits.max for n in numbers):
        raise ValueError(f"{type.dtype} has no such integer")
    with np.errstate(over="ignore"):
        data = np.array(numbers, type.dtype)
    if limits is None and not np.array_equal(np.isinf(data), np.isinf(np.array(numbers, float))):
        raise ValueError(f"{type.dtype} has no number as large as that")
    return data


@lru_cache(maxsize=4096)
def _type(dtype: str, shape: Shape) -> TensorType:
    """That type, one object however often it is read, which keeps parsed graphs small."""
    return TensorType(shape, DTYPE_OF_NAME[dtype])


@checked
def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """The graph that `text` describes.

    Long constants stand beside the text, which has their hash: `constants` gives them, as
    `graph.constants` of the graph that was printed has them.

    Raises `LoadError` with line and column where the text is malformed, where a value is used
    before it is bound, where an op is unknown, where a constant is missing or another one than
    was printed, or where a type is not what the op's rule gives.
    """
    rows = [(number, row) for number, row in enumerate(text.splitlines(), 1) if row.strip()]
    rows = [(number, row) for number, row in rows if not row.lstrip().startswith("#")]
    if len(rows) < 3:
        number, row = rows[-1] if rows else (1, "")
        fault = "graph text has no header, body and closing brace"
        raise _error(fault, number, len(row.rstrip()) + 1, row)
    given = {} if constants is None else constants
    head = _Line(rows[0][1], rows[0][0])
    head.expect("graph")
    title = head.word("word", "string")
    known: dict[str, Value] = {}
    head.expect("(")
    inputs = head.listed(")", lambda: _bind(head, known))
    head.expect("{")
    head.end()
    shared: dict[Any, Params] = {}
    body = [
        _parse_equation(_Line(row, number), known, rows[0][0], shared, given)
        for number, row in rows[1:-2]
    ]
    last = _Line(rows[-2][1], rows[-2][0])
    last.expect("return")
    outputs = []
    while not last.done:
        outputs.append(_bound(last, known))
        if not last.done:
            last.expect(",")
    brace = _Line(rows[-1][1], rows[-1][0])
    brace.expect("}")
    brace.end()
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
    """The hint that prints as `name`; bare numbers are made up by the printer and are none."""
    word = name[1:]
    if word.isdigit():
        return ""
    return str(json.loads(word)) if word.startswith('"') else word


def _bound(line: _Line, known: dict[str, Value]) -> Value:
    _, name, column = line.take("value")
    if name not in known:
        raise line.error(f"{name[:60]} is used before it is bound", column=column)
    return known[name]


def _parse_equation(
    line: _Line,
    known: dict[str, Value],
    first: int,
    shared: dict[Any, Params],
    constants: Mapping[str, Any],
) -> Equation:
    start = line.column
    scope: dict[str, Value] = {}
    outputs = line.listed("=", lambda: _bind(line, scope))
    _, name, at = line.take("word")
    try:
        op = lookup(name)
    except MissingRuleError as error:
        raise line.error(error.message, error.hint, at) from None
    inputs: list[Value] = []
    params: dict[str, Any] = {}

    def argument() -> None:
        if line.tokens[line.at][0] == "value":
            inputs.append(_bound(line, known))
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
        # A rule may fail in any way on parameters that nobody could have built.
        fault = error.message if isinstance(error, PrimgraphError) else f"{op.name}: {error}"
        raise line.error(fault.split("\n")[0], column=at) from error
    if types != tuple(v.type for v in outputs):
        raise line.error(f"{op.name} has type {', '.join(map(str, types))}", column=start)
    for name in scope:
        if name in known:
            raise line.error(f"{name[:60]} is bound twice", column=start)
    known.update(scope)
    source = Source(TEXT_FILE, line.number - first)
    return Equation(
        op, tuple(inputs), shared.setdefault(bits(frozen), frozen), tuple(outputs), source
    )
