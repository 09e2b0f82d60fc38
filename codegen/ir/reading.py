"""Reader of the complete text of plans: the plan whose text it is, without the user's lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.codegen.ir import places, statements, views
from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.axis_semantics import Role, restrict_rows
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import Schedule, Step, numbered_schedule
from primgraph.codegen.ir.statements import Loop, Nests, Operand, Region
from primgraph.codegen.ir.text import INSIDE
from primgraph.errors import LoadError
from primgraph.ir.dims import parse_size
from primgraph.ir.text import parse, read_type
from primgraph.ir.types import DTYPE_OF_NAME, TensorType

# Classes and functions that data calls.
_CALLED: dict[str, Callable[..., Any]] = {
    **{name: c for module in (views, places, statements) for name, c in vars(module).items()
       if isinstance(c, type)},
    **{c.__name__: c for c in (Options, Role, Access, complex)},
    "Dim": parse_size,
    "TensorType": read_type,
}  # fmt: skip
_NAMES = {
    "nan": float("nan"),
    "inf": float("inf"),
    **DTYPE_OF_NAME,
    **places.Life.__members__,
}
# Names in expressions, of values of the same loop and of memory.
_VALUE, _MEMORY = re.compile(r"t(\d+)"), re.compile(r"m(\d+)")

Constants: TypeAlias = Mapping[str, Any]


@final
class _Block:
    """A line, and the blocks indented below it."""

    def __init__(self, line: str, number: int) -> None:
        self.line, self.number = line, number
        self.inside: list[_Block] = []

    def part(self, name: str) -> _Block:
        """Return the block inside that begins with this word."""
        found = next(self.parts(name), None)
        if found is None:
            raise self.error(f"there is no {name}")
        return found

    def parts(self, name: str) -> Iterator[_Block]:
        return (b for b in self.inside if b.line.split(" ", 1)[0] == name)

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


def read_data(text: str) -> Any:
    """Return plain data from the text of `data_text`. Raises `LoadError` for other text."""
    return _Reader({}, {}).data(text)


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
        self.known: dict[str, Any] = dict(_NAMES)
        self.schedule: Schedule

    def plan(self, block: _Block) -> Plan:
        self.schedule, _ = self.read_schedule(block)
        for line in block.part("places").inside:
            name, _, place = line.line.partition(" = ")
            self.known[name] = self.data(place)
        names = ("options", "arguments", "constants", "arrays", "buffers")
        fields = {name: self.data(block.part(name).rest) for name in names}
        arena, least, space = self.data(block.part("memory").rest)
        body = self.statements(block.part("body"))
        return Plan(
            self.schedule,
            body=body,
            loops=tuple([x for x in body if isinstance(x, Loop)]),
            arena=arena,
            least=least,
            space=space,
            cards=self.cards,
            bodies=tuple([_Reader(self.long, self.cards).plan(b) for b in block.parts("plan")]),
            **fields,
        )

    def nests(self, block: _Block) -> Nests:
        self.schedule, types = self.read_schedule(block)
        sources = self.data(block.part("constants").rest)
        added = next(block.parts("added"), None)
        return Nests(
            self.schedule,
            self.statements(block.part("items")),
            {v: self.constant(source, types[v]) for v, source in sources.items()},
            self.data(block.part("outputs").rest),
            dict(enumerate(types)),
            self.data(block.part("last").rest),
            added is not None,
            frozenset(() if added is None else self.data(added.rest)),
        )

    def constant(self, source: Any, type: TensorType) -> Any:
        if isinstance(source, tuple):
            (number,) = source
            return np.full(type.shape, number, type.dtype)
        step = self.schedule.steps[source]
        return np.ascontiguousarray(step.op.impl(**step.params))

    def read_schedule(self, block: _Block) -> tuple[Schedule, list[TensorType]]:
        """Read types, hints and steps; the types are those of further values, too."""
        texts = block.part("types").rest
        types = [read_type(text) for text in texts.split("; ")] if texts else []
        try:
            count, inputs, hints = self.data(block.part("values").rest)
        except (LoadError, TypeError, ValueError):
            raise block.error("the numbers of values and inputs are malformed") from None
        lines = list(block.part("steps").lines())
        given = ", ".join([f"%{v}: {types[v]}" for v in range(inputs)])
        results = ", ".join([f"%{v}" for v in self.data(block.part("results").rest)])
        head = f"graph {block.rest}({given}) {{"
        graph = parse("\n".join([head, *lines, f"return {results}", "}"]), self.long)
        numbers = [*range(inputs), *_numbers(block.part("steps"))]
        number = dict(zip(graph.numbering(), numbers, strict=True))
        hinted = tuple([hints.get(v, "") for v in range(count)])
        made = numbered_schedule(graph, graph.body, number, tuple(types[:count]), hinted)
        return made, types

    # Statements.

    def statements(self, block: _Block) -> tuple[Any, ...]:
        return tuple([self.statement(b) for b in block.inside])

    def statement(self, block: _Block) -> Any:
        try:
            call = ast.parse(block.line, mode="eval").body
            assert isinstance(call, ast.Call)
            kind, args, fields = self.call(call)
        except (SyntaxError, *_FAULTS):
            raise block.error("this is no statement") from None
        if kind is Loop:
            (self.region,) = (x for x in args if isinstance(x, Region))
        for name in INSIDE.get(kind, ()):
            if name == "bodies":
                readers = [(_Reader(self.long, self.cards), b) for b in block.inside]
                fields[name] = tuple([reader.nests(b) for reader, b in readers])
            elif name == "nodes":
                fields[name] = list(self.statements(block))
            else:
                found = [x for part in block.parts(name) for x in self.statements(part)]
                fields[name] = tuple(found)
        if kind is Loop:
            self.region = None
        return kind(*args, **fields)

    # Data.

    def data(self, text: str) -> Any:
        try:
            return self.value(ast.parse(text, mode="eval").body)
        except (SyntaxError, *_FAULTS):
            raise LoadError(f"{text!r:.80} is no data of plans") from None

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=elements):
                return tuple(map(self.value, elements))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self.value(k): self.value(v) for k, v in pairs if k is not None}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=dims)):
                found = _MEMORY.fullmatch(name)
                offset, *strides = map(self.value, dims)
                assert found is not None
                return Operand(root=int(found[1]), offset=offset, strides=tuple(strides))
            case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=int(k))):
                return self.step(k)
            case ast.Name(id=name):
                found = None if name in self.known else _VALUE.fullmatch(name)
                return self.known[name] if found is None else Operand(value=int(found[1]))
            case ast.Call():
                kind, args, fields = self.call(node)
                return kind(*args, **fields)
        raise ValueError(ast.dump(node))

    def call(self, node: ast.Call) -> tuple[Any, list[Any], dict[str, Any]]:
        """Return the class that is called, and its arguments."""
        assert isinstance(node.func, ast.Name)
        fields = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        return _CALLED[node.func.id], list(map(self.value, node.args)), fields

    def step(self, k: int) -> Step:
        step = self.schedule.steps[k]
        if self.region is None:
            return step
        role = self.region.roles[k - self.region.start]
        return restrict_rows(step, self.cards[step.op].blocking, role, self.region.rows)


# Errors of data that is malformed.
_FAULTS = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)


def _numbers(steps: _Block) -> Iterator[int]:
    """Yield the numbers of the results of steps; the graphs in them are indented."""
    for block in steps.inside:
        if block.line.startswith("%"):
            yield from (int(v) for v in _RESULT.findall(block.line.split(" = ")[0]))


_RESULT = re.compile(r"%(\d+): ")
