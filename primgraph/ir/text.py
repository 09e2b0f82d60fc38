"""The text of a graph: it prints, and what it prints parses back to an equal graph.

graph f(%x: f64[3]) {
  %0: f64[3] = sin(%x)
  %1: f64[] = reduce_sum(%0, axes=(0,))
  return %1
}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from primgraph.errors import LoadError, MissingRuleError, PrimgraphError
from primgraph.ir.graph import Equation, Graph, Value, printer
from primgraph.ir.params import Array, Params, bits, freeze_all
from primgraph.ir.primitive import lookup
from primgraph.ir.signature import checked
from primgraph.ir.source import Source
from primgraph.ir.types import DTYPE_OF_NAME, NAME_OF_DTYPE, Shape, TensorType

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CONTEXT = 3

# What the lines of a text are said to be lines of.
TEXT_FILE = "graph text"

# Arrays up to this many elements are printed number by number, larger ones as hexadecimal bytes.
_SPELLED = 8


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
    little = flat.astype(flat.dtype.newbyteorder("<"), copy=False)
    return f"{array.type}{{0x{little.tobytes().hex()}}}"


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
    """The tokens of one line, read from left to right."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.tokens = list(self._split())
        self.at = 0

    def _split(self) -> Iterator[tuple[str, str]]:
        place, end = 0, len(self.text.rstrip())
        while place < end:
            match = _TOKEN.match(self.text, place)
            if match is None:
                if self.text[place:].lstrip().startswith("#"):
                    return
                raise self.error(f"cannot read {self.text[place:].strip()!r}")
            kind = match.lastgroup
            assert kind is not None
            yield kind, match.group(kind)
            place = match.end()

    def error(self, fault: str, hint: str = "") -> LoadError:
        return LoadError(
            f"graph text, line {self.number}: {fault}",
            origin=(self.text.strip()[:200],),
            hint=hint,
        )

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def peek(self, text: str) -> bool:
        return not self.done and self.tokens[self.at][1] == text

    def accept(self, text: str) -> bool:
        found = self.peek(text)
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            found = "the end" if self.done else repr(self.tokens[self.at][1])
            raise self.error(f"expected {text!r}, found {found}")

    def take(self, *kinds: str) -> tuple[str, str]:
        if self.done or self.tokens[self.at][0] not in kinds:
            found = "the end" if self.done else repr(self.tokens[self.at][1])
            raise self.error(f"expected a {' or '.join(kinds)}, found {found}")
        self.at += 1
        return self.tokens[self.at - 1]

    def value(self) -> str:
        """The name of a value as it is spelled, percent sign and quotes included."""
        return self.take("value")[1]

    def type(self) -> TensorType:
        name = self.take("word")[1]
        if name not in DTYPE_OF_NAME:
            raise self.error(f"{name!r} is not a dtype")
        self.expect("[")
        shape = []
        while not self.accept("]"):
            shape.append(int(self.take("number")[1]))
            self.accept(",")
        return _type(name, tuple(shape))

    def param(self) -> Any:
        if self.accept("("):
            items = []
            while not self.accept(")"):
                items.append(self.param())
                if not self.peek(")"):
                    self.expect(",")
            return tuple(items)
        kind, text = self.take("array", "string", "number", "word")
        if kind == "array":
            return self._array(text)
        if kind == "string":
            return json.loads(text)
        if kind == "number":
            return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
        if text in DTYPE_OF_NAME:
            return DTYPE_OF_NAME[text]
        words = {"True": True, "False": False, "None": None}
        if text in words:
            return words[text]
        raise self.error(f"{text!r} is not a parameter")

    def _array(self, text: str) -> Array:
        header, _, content = text[:-1].partition("{")
        type = _Line(header, self.number).type()
        if content.startswith("0x"):
            little = np.frombuffer(bytes.fromhex(content[2:]), type.dtype.newbyteorder("<"))
            data = little.astype(type.dtype)
        else:
            words = {"True": True, "False": False}
            items = [w.strip() for w in content.split(",")] if content.strip() else []
            convert = int if type.dtype.kind in "iu" else float
            data = np.array([words[w] if w in words else convert(w) for w in items], type.dtype)
        if data.size != type.size:
            raise self.error(f"{data.size} elements are given for {type}")
        return Array(data.reshape(type.shape))


@lru_cache(maxsize=4096)
def _type(dtype: str, shape: Shape) -> TensorType:
    """That type, one object however often it is read, which keeps parsed graphs small."""
    return TensorType(shape, DTYPE_OF_NAME[dtype])


@checked
def parse(text: str) -> Graph:
    """The graph that `text` describes.

    Raises `LoadError` with the line number where the text is malformed, where a value is used
    before it is bound, where an op is unknown, or where a type is not what the op's rule gives.
    """
    rows = [(number, row) for number, row in enumerate(text.splitlines(), 1) if row.strip()]
    rows = [(number, row) for number, row in rows if not row.lstrip().startswith("#")]
    if len(rows) < 3:
        raise LoadError("graph text has no header, body and closing brace")
    head = _Line(rows[0][1], rows[0][0])
    head.expect("graph")
    kind, title = head.take("word", "string")
    title = json.loads(title) if kind == "string" else title
    known: dict[str, Value] = {}
    inputs = []
    head.expect("(")
    while not head.accept(")"):
        inputs.append(_bind(head, known))
        head.accept(",")
    head.expect("{")
    shared: dict[Any, Params] = {}
    body = [
        _parse_equation(_Line(row, number), known, rows[0][0], shared) for number, row in rows[1:-2]
    ]
    last = _Line(rows[-2][1], rows[-2][0])
    last.expect("return")
    outputs = []
    while not last.done:
        outputs.append(_bound(last, known))
        last.accept(",")
    _Line(rows[-1][1], rows[-1][0]).expect("}")
    return Graph(inputs, body, outputs, title)


def _bind(line: _Line, known: dict[str, Value]) -> Value:
    name = line.value()
    if name in known:
        raise line.error(f"{name} is bound twice")
    line.expect(":")
    known[name] = Value(line.type(), _hint(name))
    return known[name]


def _hint(name: str) -> str:
    """The hint that prints as `name`; bare numbers are made up by the printer and are none."""
    word = name[1:]
    if word.isdigit():
        return ""
    return str(json.loads(word)) if word.startswith('"') else word


def _bound(line: _Line, known: dict[str, Value]) -> Value:
    name = line.value()
    if name not in known:
        raise line.error(f"{name} is used before it is bound")
    return known[name]


def _parse_equation(
    line: _Line, known: dict[str, Value], first: int, shared: dict[Any, Params]
) -> Equation:
    outputs: list[Value] = []
    scope: dict[str, Value] = {}
    while not line.accept("="):
        outputs.append(_bind(line, scope))
        line.accept(",")
    try:
        op = lookup(line.take("word")[1])
    except MissingRuleError as error:
        raise line.error(error.message, error.hint) from None
    line.expect("(")
    inputs: list[Value] = []
    params: list[tuple[str, Any]] = []
    while not line.accept(")"):
        if line.tokens[line.at : line.at + 1] and line.tokens[line.at][0] == "value":
            inputs.append(_bound(line, known))
        else:
            name = line.take("word")[1]
            line.expect("=")
            params.append((name, line.param()))
        if not line.peek(")"):
            line.expect(",")
    frozen = freeze_all(params)
    try:
        types = op.infer(tuple(v.type for v in inputs), dict(frozen))
    except (PrimgraphError, TypeError, ValueError) as error:
        fault = error.message if isinstance(error, PrimgraphError) else str(error)
        raise line.error(fault) from None
    if types != tuple(v.type for v in outputs):
        raise line.error(f"{op.name} has type {', '.join(map(str, types))}")
    for name in scope:
        if name in known:
            raise line.error(f"{name} is bound twice")
    known.update(scope)
    source = Source(TEXT_FILE, line.number - first)
    return Equation(
        op, tuple(inputs), shared.setdefault(bits(frozen), frozen), tuple(outputs), source
    )
