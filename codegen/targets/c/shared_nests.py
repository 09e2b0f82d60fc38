"""Shared nests: equal nests of a long program become calls of one C function.

A loop of Python that is traced leaves as many copies of its body as it has trips. The nests of the
copies differ in the numbers of their values only. Such nests are one function, whose parameters
are the places of the values, so that a compiler sees the body once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias, final

from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.statements import Item, Nest, Node, Operand
from primgraph.codegen.lower.nests.loop_fission import split_nest
from primgraph.codegen.targets.c.body import Body, statements
from primgraph.codegen.targets.c.control import Writer
from primgraph.codegen.targets.c.lines import Function, indented
from primgraph.ir.types import TensorType

# Minimum number of items of a program whose equal nests are shared, and of equal nests.
_LONG, _OFTEN = 16, 3

# What equal nests have in common: the domain, the nodes with renumbered values, the forms of their
# steps, the stored and the accumulated values, and the types.
_Key: TypeAlias = tuple[object, ...]


@final
class _Renamed(NamedTuple):
    """A nest whose values are numbered in order of appearance, and its values in that order."""

    original: Nest
    nest: Nest
    values: Sequence[int]
    key: _Key


@final
class _Function(NamedTuple):
    """A C function of a nest: the values whose places it takes, and the sizes of its workspace."""

    name: str
    places: Sequence[int]
    rooms: Sequence[int]


@final
class _Parameters:
    """Places of the values of a renumbered nest: the parameters of its function."""

    is_traced = False

    def __init__(self, types: Sequence[TensorType], use: Callable[[str], str]) -> None:
        self.types, self.use = types, use
        self.places: dict[int, None] = {}
        self.rooms: list[int] = []

    def place(self, value: int) -> str:
        self.places[value] = None
        return f"p{value}"

    def room(self, size: int) -> str:
        self.rooms.append(size)
        return f"s{len(self.rooms) - 1}"

    def type(self, value: int) -> TensorType:
        return self.types[value]


@final
class SharedNests:
    """Functions of the nests that occur repeatedly among `items`.

    `functions` are those not yet taken.
    """

    def __init__(
        self,
        name: str,
        items: Sequence[Item],
        types: Mapping[int, TensorType],
        added: Set[int],
    ) -> None:
        self.name, self.types, self.added = name, types, added
        self.functions: list[Function] = []
        self.known: dict[_Key, _Function] = {}
        # The independent parts of each nest, by its identity.
        self.parts: dict[int, list[_Renamed]] = {}
        self.counts: Counter[_Key] = Counter()
        if len(items) < _LONG:
            return
        for item in items:
            if isinstance(item, Nest) and not is_zero(prod(item.domain)):
                parts = [self._rename(part) for part in split_nest(item)]
                self.parts[id(item)] = parts
                self.counts.update([part.key for part in parts])

    def lines(self, nest: Nest, writer: Writer) -> Iterator[str]:
        """Yield the statements of a nest, or the call of the function that has them."""
        parts = self.parts.get(id(nest))
        if parts is None:
            yield from statements(nest, writer, self.added)
            return
        for part in parts:
            if self.counts[part.key] >= _OFTEN:
                yield self._call(part, writer)
            else:
                lines = Body(part.original, writer, self.added).text()
                yield from lines if len(parts) == 1 else ["{", *lines, "}"]

    def _call(self, renamed: _Renamed, writer: Writer) -> str:
        """Return the call of the function of a part."""
        function = self.known.get(renamed.key)
        if function is None:
            function = self.known[renamed.key] = self._define(renamed, writer.use)
        places = [writer.place(renamed.values[k]) for k in function.places]
        rooms = [writer.room(size) for size in function.rooms]
        return f"if ({function.name}({', '.join([*places, *rooms])})) return 1;"

    def take_functions(self) -> list[Function]:
        """Return the functions that were defined since the last call."""
        found, self.functions = self.functions, []
        return found

    def _define(self, renamed: _Renamed, use: Callable[[str], str]) -> _Function:
        parameters = _Parameters([self.types[v] for v in renamed.values], use)
        added = {k for k, v in enumerate(renamed.values) if v in self.added}
        lines = Body(renamed.nest, parameters, added).text()
        name = f"{self.name}_n{len(self.known)}"
        words = [f"p{k}" for k in parameters.places] + [
            f"s{k}" for k in range(len(parameters.rooms))
        ]
        taken = ", ".join(f"char *{word}" for word in words)
        body = [*indented("    ", lines), "    return 0;"]
        self.functions.append(Function(f"__attribute__((noinline)) int {name}({taken})", body))
        return _Function(name, list(parameters.places), parameters.rooms)

    def _rename(self, nest: Nest) -> _Renamed:
        """Number the values of a nest in order of appearance."""
        number: dict[int, int] = {-1: -1}

        def renumber(value: int) -> int:
            return number.setdefault(value, len(number) - 1)

        def operand(o: Operand) -> Operand:
            return replace(o, value=renumber(o.value), root=renumber(o.root))

        def node(n: Node) -> Node:
            operands = tuple([operand(o) for o in n.operands])
            return replace(n, value=renumber(n.value), operands=operands)

        nodes = [node(n) for n in nest.nodes]
        stored = [renumber(v) for v in nest.stored]
        values = list(number)[1:]
        key = (
            *(nest.domain, nest.added, nest.pairs, tuple(stored)),
            tuple([self.types[v] for v in values]),
            tuple([v in self.added for v in values]),
            tuple(
                [
                    (None if n.step is None else id(n.step.form), replace(n, step=None))
                    for n in nodes
                ]
            ),
        )
        return _Renamed(nest, replace(nest, nodes=nodes, stored=dict.fromkeys(stored)), values, key)
