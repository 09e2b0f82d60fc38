"""Reader of the complete text of plans: the plan whose text it is, without the user's lines."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.codegen.ir import places, statements
from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.axis_semantics import Role, restrict_rows
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.program import Options, Plan
from primgraph.codegen.ir.schedule import Schedule, Step, numbered_schedule
from primgraph.codegen.ir.statements import Blocks, Control, Loop, Nest, Nests, Operand, Region
from primgraph.codegen.ir.text import pieces_of
from primgraph.codegen.ir.views import Cut, Repeat
from primgraph.errors import LoadError
from primgraph.ir.dims import parse_size
from primgraph.ir.text import parse, read_type
from primgraph.ir.types import DTYPE_OF_NAME, TensorType
from primgraph.ir.views import Expand, Permute, Reshape, Rows, Slice

# Classes of plain data.
_DATA: dict[str, Callable[..., Any]] = {
    c.__name__: c
    for c in (Options, Region, Role, Cut, Repeat, Expand, Permute, Reshape, Rows, Slice)
}
_NAMES = {"nan": float("nan"), "inf": float("inf")}

Constants: TypeAlias = Mapping[str, Any]


@final
class _Block:
    """A line, and the blocks indented below it."""

    def __init__(self, line: str, number: int) -> None:
        self.line, self.number = line, number
        self.inside: list[_Block] = []

    def part(self, name: str) -> _Block:
        """Return the block inside that begins with this word."""
        found = next((b for b in self.inside if b.line.split(" ", 1)[0] == name), None)
        if found is None:
            raise self.error(f"there is no {name}")
        return found

    @property
    def rest(self) -> str:
        """The line behind its first word."""
        return self.line.partition(" ")[2]

    def lines(self) -> Iterator[str]:
        for block in self.inside:
            yield block.line
            yield from block.lines()

    def error(self, fault: str) -> LoadError:
        return LoadError(f"plan text, line {self.number}: {fault}", origin=(self.line[:200],))


def read_plan(text: str, cards: Cards, constants: Constants | None = None) -> Plan:
    """Return the plan that `to_text` has printed, for a back end with these cards.

    `constants` are the long ones, by their hash. Raises `LoadError` for malformed text.
    """
    return _Reader(constants or {}, cards).plan(_block_of(text, "plan"))


def read_nests(text: str, constants: Constants | None = None) -> Nests:
    """Return the nests that `to_text` has printed. Raises `LoadError` for malformed text."""
    return _Reader(constants or {}, {}).nests(_block_of(text, "nests"))


def _block_of(text: str, name: str) -> _Block:
    """Return the only block of a text, by its indentation."""
    top = _Block("", 0)
    open_blocks = [(-1, top)]
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        while open_blocks[-1][0] >= depth:
            open_blocks.pop()
        block = _Block(line.strip(), number)
        open_blocks[-1][1].inside.append(block)
        open_blocks.append((depth, block))
    if len(top.inside) != 1 or not top.inside[0].line.startswith(f"{name} "):
        raise LoadError(f"the text is not that of one {name}")
    return top.inside[0]


@final
class _Reader:
    """Reader of blocks. `region` is the region whose loop is being read."""

    def __init__(self, constants: Constants, cards: Cards) -> None:
        self.long, self.cards = constants, cards
        self.region: Region | None = None
        self.known: dict[str, Any] = {}
        self.schedule: Schedule

    def plan(self, block: _Block) -> Plan:
        self.schedule, _ = self.read_schedule(block, json.loads(block.rest))
        for line in block.part("places").inside:
            self.known[line.line.split(":")[0].split(" ")[0]] = self.statement(line, places.SYNTAX)
        options = read_data(block.part("options").rest)
        arena, least, space = map(int, block.part("memory").rest.split())
        named = [
            tuple([self.known[n] for n in block.part(name).rest.split()])
            for name in ("arguments", "constants", "arrays", "buffers")
        ]
        body = self.statements(block.part("body"))
        loops = tuple([x for x in body if isinstance(x, Loop)])
        bodies = tuple(
            [_Reader(self.long, self.cards).plan(b) for b in block.inside if _is_plan(b)]
        )
        arguments, constants, arrays, buffers = named
        return Plan(
            self.schedule, options, arguments, constants, arrays, buffers, body, loops, arena,
            least, space, self.cards, bodies,
        )  # fmt: skip

    def nests(self, block: _Block) -> Nests:
        name, _, added = block.rest.rpartition(" block")
        self.schedule, types = self.read_schedule(block, json.loads(name or added))
        constants = {}
        for entry in filter(None, block.part("constants").rest.split("; ")):
            value, _, how = entry.partition(": ")
            v = int(value[1:])
            constants[v] = self.constant(how, types[v])
        return Nests(
            self.schedule,
            self.statements(block.part("items")),
            constants,
            _values(block.part("outputs").rest),
            dict(enumerate(types)),
            {int(v[1:]): int(at) for v, at in map(_pair, block.part("last").rest.split())},
            bool(name),
            frozenset(_values(added) if name else ()),
        )

    def constant(self, how: str, type: TensorType) -> Any:
        if how.startswith("of "):
            return np.full(type.shape, read_data(how[3:]), type.dtype)
        step = self.schedule.steps[int(how)]
        return np.ascontiguousarray(step.op.impl(**step.params))

    def read_schedule(self, block: _Block, name: str) -> tuple[Schedule, list[TensorType]]:
        """Read types, hints and steps; the types are those of further values, too."""
        texts = block.part("types").rest
        types = [read_type(text) for text in texts.split("; ")] if texts else []
        found = _HEAD.fullmatch(block.part("values").rest)
        if found is None:
            raise block.error("the numbers of values and inputs are malformed")
        count, inputs, hints = int(found[1]), int(found[2]), json.loads(found[3])
        lines = list(block.part("steps").lines())
        given = ", ".join([f"%{v}: {types[v]}" for v in range(inputs)])
        results = ", ".join(block.part("results").rest.split())
        head = f"graph {json.dumps(name)}({given}) {{"
        graph = parse("\n".join([head, *lines, f"return {results}", "}"]), self.long)
        numbers = [*range(inputs), *_numbers(block.part("steps"))]
        number = dict(zip(graph.numbering(), numbers, strict=True))
        hinted = tuple([hints.get(str(v), "") for v in range(count)])
        made = numbered_schedule(graph, graph.body, number, tuple(types[:count]), hinted)
        return made, types

    # Statements.

    def statements(self, block: _Block) -> tuple[Any, ...]:
        return tuple(
            [self.statement(b, statements.SYNTAX) for b in block.inside if b.line != "in turn:"]
        )

    def statement(self, block: _Block, classes: Mapping[Any, str]) -> Any:
        for kind, syntax in classes.items():
            pattern, words = _pattern(syntax)
            found = pattern.fullmatch(block.line) or pattern.fullmatch(f"{block.line} ")
            if found is None:
                continue
            fields: dict[str, Any] = {}
            for k, (name, word) in enumerate(words, 1):
                fields[name] = self.word(word, found[k], fields)
            return kind(**{**fields, **self.inside(kind, block, fields)})
        raise block.error("this is no statement")

    def inside(self, kind: Any, block: _Block, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a statement that are read from the blocks inside."""
        if kind is Loop:
            self.region = fields["region"]
            turn = [b for b in block.inside if b.line == "in turn:"]
            both = {"body": self.statements(block), "totals": ()}
            if turn:
                both["totals"] = self.statements(turn[0])
            self.region = None
            return both
        if kind in (Control, Blocks):
            readers = [(_Reader(self.long, self.cards), b) for b in block.inside]
            return {"bodies": tuple([reader.nests(b) for reader, b in readers])}
        if kind is Nest:
            nodes = list(self.statements(block))
            return {"nodes": nodes, "stored": dict.fromkeys(fields["stored"])}
        return {}

    def word(self, word: str, text: str, fields: dict[str, Any]) -> Any:
        """Return the value of a field from its text."""
        match word:
            case "place":
                return self.known[text]
            case "places" | "with":
                return tuple([self.known[n] for n in text.removeprefix(" with ").split(", ") if n])
            case "step":
                return self.step(text)
            case "over":
                return None if text == "=" else int(text[2:])
            case "flag":
                return bool(text)
        return _READ[word](text)

    def step(self, text: str) -> Step | None:
        if text == "-":
            return None
        k = int(text.rpartition("[")[2][:-1])
        step = self.schedule.steps[k]
        if self.region is None:
            return step
        role = self.region.roles[k - self.region.start]
        return restrict_rows(step, self.cards[step.op].blocking, role, self.region.rows)


_HEAD = re.compile(r"(\d+), inputs (\d+), hints (.*)")


def _is_plan(block: _Block) -> bool:
    return block.line.startswith("plan ")


def _pair(text: str) -> tuple[str, str]:
    left, _, right = text.partition(":")
    return left, right


def _numbers(steps: _Block) -> Iterator[int]:
    """Yield the numbers of the results of steps; the graphs in them are indented."""
    for block in steps.inside:
        if block.line.startswith("%"):
            yield from (int(v) for v in _RESULT.findall(block.line.split(" = ")[0]))


_RESULT = re.compile(r"%(\d+): ")


# Words.

_NAME, _DIMS, _TYPE = r"[a-z]+\d+", r"\[[^\]]*\]", r"\w+\[[^\]]*\]"
_VALUES = r"(?:%\d+ ?)*"

# Words that are in listings only.
_BRIEF = ("params", "origin")

# The patterns of words that are read; other words repeat what the rest implies.
_PATTERNS = {
    "int": r"-?\d+",
    "word": r"\w+",
    "dim": r".+?",
    "data": r".+",
    "dtype": r"\w+",
    "quoted": r'(?:"(?:[^"\\]|\\.)*": )?',
    "value": r"%-?\d+",
    "values": _VALUES,
    "dims": _DIMS,
    "shape": r".+?",
    "pairs": r"(?: in pairs by \d+)?",
    "offset": r"(?: at .+?)?",
    "by": rf"(?: by {_DIMS})?",
    "reach": rf"(?: reach {_DIMS})?",
    "within": rf"(?: within {_DIMS})?",
    "type": _TYPE,
    "access": rf"m\d+{_DIMS}",
    "operands": r".*?",
    "maps": r".*",
    "words": r"\{.*?\}",
    "rows_map": r"\{.*?\}",
    "all_rows": rf"(?:m\d+{_DIMS} ?)*",
    "because": r"(?:, as .*)?",
    "life": r"[A-Z]+",
    "place": _NAME,
    "places": rf"(?:{_NAME}(?:, {_NAME})*)?",
    "with": rf"(?: with {_NAME}(?:, {_NAME})*)?",
    "over": r"=|<-\d+",
    "step": r"-|[^ \[\]]+\[\d+\]",
}


@cache
def _pattern(syntax: str) -> tuple[re.Pattern[str], list[tuple[str, str]]]:
    """Return the pattern of a class's lines, and the field and word of each group."""
    pattern, words = "", []
    for text, name, spec in pieces_of(syntax):
        pattern += re.escape(text)
        word, _, argument = spec.partition(" ")
        if word == "flag":
            pattern += f"({re.escape(argument)})?"
            words.append((name, word))
        elif word in _PATTERNS:
            pattern += f"({_PATTERNS[word]})"
            words.append((name, word))
        elif name and word not in _BRIEF:
            pattern += r"\S+" if word == "name" else ".*?"
    return re.compile(pattern), words


def _values(text: str) -> tuple[int, ...]:
    return tuple([int(v[1:]) for v in text.split()])


def _dims(text: str) -> tuple[int, ...]:
    return tuple([parse_size(n) for n in text[1:-1].split("; ")]) if len(text) > 2 else ()


def _shape(text: str) -> tuple[int, ...]:
    return () if text == "one element" else tuple(map(parse_size, text.split(" x ")))


def _pairs(text: str) -> tuple[tuple[int, int], ...]:
    flat = _dims(text)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _access(text: str) -> Access:
    root, _, dims = text.partition("[")
    offset, *strides = _dims(f"[{dims}")
    return Access(int(root[1:]), offset, tuple(strides))


def _rows(text: str) -> statements.Rows:
    access = _access(text)
    return statements.Rows(access.root, access.offset, access.strides[0])


def _operands(text: str) -> tuple[Operand, ...]:
    return tuple([_operand(*found) for found in _OPERAND.findall(text)])


_OPERAND = re.compile(rf'("(?:[^"\\]|\\.)*"|%\d+|m\d+)({_DIMS})?')


def _operand(head: str, dims: str) -> Operand:
    offset, *strides = _dims(dims) if dims else (0,)
    if head.startswith("%"):
        return Operand(value=int(head[1:]))
    if head.startswith("m"):
        return Operand(root=int(head[1:]), offset=offset, strides=tuple(strides))
    return Operand(text=json.loads(head), offset=offset, strides=tuple(strides))


def _map(text: str, read: Callable[[str], Any]) -> dict[int, Any]:
    pairs = [entry.split(": ") for entry in _ENTRY.split(text[1:-1]) if entry]
    return {int(v[1:]): read(x) for v, x in pairs}


# Entries of a map; dims within have other separators before them.
_ENTRY = re.compile(r"; (?=%)")


def _maps(text: str) -> tuple[dict[int, int], ...]:
    return tuple([_map(m, lambda x: int(x[1:])) for m in re.findall(r"\{[^}]*\}", text)])


_READ: dict[str, Callable[[str], Any]] = {
    "int": int,
    "word": str,
    "dim": parse_size,
    "data": lambda text: read_data(text),
    "dtype": DTYPE_OF_NAME.__getitem__,
    "quoted": lambda text: json.loads(text[:-2]) if text else "",
    "value": lambda text: int(text[1:]),
    "values": _values,
    "dims": _dims,
    "shape": _shape,
    "pairs": lambda text: int(text[13:] or 0),
    "offset": lambda text: parse_size(text[4:]) if text else 0,
    "by": lambda text: _dims(text[4:]),
    "reach": lambda text: _pairs(text[7:]),
    "within": lambda text: _pairs(text[8:]),
    "type": read_type,
    "access": _access,
    "operands": _operands,
    "maps": _maps,
    "words": lambda text: _map(text, str),
    "rows_map": lambda text: _map(text, _rows),
    "all_rows": lambda text: tuple(map(_rows, re.findall(rf"m\d+{_DIMS}", text))),
    "because": lambda text: text.removeprefix(", as "),
    "life": places.Life.__getitem__,
}


def read_data(text: str) -> Any:
    """Return plain data from the text of `data_text`. Raises `LoadError` for other text."""
    if text.endswith("j)"):
        return complex(text)
    try:
        return _data(ast.parse(text, mode="eval").body)
    except (SyntaxError, KeyError, TypeError, ValueError):
        raise LoadError(f"{text!r:.80} is no data of plans") from None


def _data(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=elements):
            return tuple(map(_data, elements))
        case ast.Dict(keys=keys, values=values):
            return {_data(k): _data(v) for k, v in zip(keys, values, strict=True) if k is not None}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_data(operand)
        case ast.Name(id=name):
            return _NAMES[name]
        case ast.Call(func=ast.Name(id="Dim"), args=[ast.Constant(value=str(text))]):
            return parse_size(text)
        case ast.Call(func=ast.Name(id=name), args=args):
            return _DATA[name](*map(_data, args))
    raise ValueError(ast.dump(node))
