"""Shared items: equal nests, products and routines of a long program become one C function.

A loop of Python that is traced leaves as many copies of its body as it has trips. The items of the
copies differ in the places of their values only. Equal items are one function, whose parameters
are these places, and equal runs of items are one loop over a table of places, so that a compiler
sees the body once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from math import prod
from typing import NamedTuple, Protocol, TypeAlias, final

from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.statements import (
    PLAIN,
    Item,
    Nest,
    Nests,
    Node,
    Operand,
    Product,
    Routine,
)
from primgraph.codegen.lower.nests.loop_fission import split_nest
from primgraph.codegen.targets.c.control import Places
from primgraph.codegen.targets.c.lines import Function, indented
from primgraph.ir.dims import is_open
from primgraph.ir.types import TensorType

# Minimum number of items of a program whose equal items are shared, and of equal items.
_LONG, _OFTEN = 16, 3
# Minimum number of items that a loop saves, and lengths of the sequences by which runs are found.
_SAVED, _LOOKED = 8, (1, 4, 16, 64, 256)
# Base and modulus of the hashes of sequences.
_BASE, _MODULUS = 1_000_003, 2**61 - 1

# Common part of equal items: all but the numbers of their values, and the types of these.
_Key: TypeAlias = tuple[object, ...]
_Shared: TypeAlias = Nest | Product | Routine
# Number of an array, or -1 for the workspace, and the first byte in it.
Address: TypeAlias = tuple[int, int]
# An item and its index.
_At: TypeAlias = tuple[int, Item]
# Generator of the statements of an item, which adds to some values.
_Print: TypeAlias = Callable[[_Shared, Places, Set[int]], Iterator[str]]


class Memory(Places, Protocol):
    """Memory of the enclosing items."""

    def address(self, value: int) -> Address:
        """Return the memory of a value of known size."""

    def allocate(self, size: int) -> Address:
        """Allocate workspace for the current item only."""

    def sizes(self, address: Callable[[str], str]) -> str:
        """Return the declaration of the symbolic sizes, if any, read from their place's address."""

    def sizes_place(self) -> Iterator[str]:
        """Yield the memory of the symbolic sizes, if any."""


@final
class _Renamed(NamedTuple):
    """An item, its values in order of appearance, and the key that equal items have.

    Each value has the first byte of it that is used.
    """

    item: _Shared
    values: Sequence[tuple[int, int]]
    key: int


@final
class _Function(NamedTuple):
    """A C function of an item: the values whose places it takes, and the sizes of its workspace."""

    name: str
    places: Sequence[int]
    rooms: Sequence[int]

    def call(self, arguments: Iterable[str]) -> str:
        """Return the statement that calls the function."""
        return f"if ({self.name}({', '.join(arguments)})) return 1;"


@final
class _Parameters:
    """Places of the values of a renumbered item: the parameters of its function."""

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
    """Functions of the items that occur repeatedly in `plan`, whose statements `printed` yields.

    `functions` are those not yet taken. Nothing is shared if not `active`.
    """

    def __init__(self, name: str, plan: Nests, printed: _Print, *, active: bool) -> None:
        self.name, self.plan, self.printed = name, plan, printed
        self.functions: list[Function] = []
        self.known: dict[int, _Function] = {}
        self.keys: dict[_Key, int] = {}
        # The independent parts of each item, by its identity.
        self.parts: dict[int, list[_Renamed]] = {}
        self.counts: Counter[int] = Counter()
        if active and len(plan.items) >= _LONG:
            for item in plan.items:
                self._add(item)

    def _add(self, item: Item) -> None:
        if isinstance(item, Nest):
            is_empty = not item.nodes or is_zero(prod(item.domain))
            parts: list[_Shared] = [] if is_empty else [*split_nest(item)]
        else:
            parts = [item] if isinstance(item, Product | Routine) else []
        if parts:
            self.parts[id(item)] = renamed = [self._rename(part) for part in parts]
            self.counts.update([part.key for part in renamed])

    def lines(self, item: _Shared, memory: Memory) -> Iterator[str]:
        """Yield the statements of an item, or the calls of the functions that have them."""
        parts = self.parts.get(id(item))
        if parts is None:
            yield from self.printed(item, memory, self.plan.added)
            return
        for part in parts:
            if self.counts[part.key] >= _OFTEN:
                function = self._function(part, memory)
                yield function.call(self._places(part, function, memory))
            else:
                lines = self.printed(part.item, memory, self.plan.added)
                yield from lines if len(parts) == 1 else ["{", *lines, "}"]

    def take_functions(self) -> list[Function]:
        """Return the functions that were defined since the last call."""
        found, self.functions = self.functions, []
        return found

    # Runs of items.

    def runs(self, items: Sequence[_At], arrays: Set[int]) -> Iterator[tuple[Sequence[_At], int]]:
        """Yield `items` in runs, each with its period: the items of the first trip of a loop.

        The period is 0 for a run that is no loop. Values in `arrays` are in arrays of their own.
        """
        forms: dict[object, int] = {}
        keys = []
        for at, item in items if self.parts else ():
            key = self._run_key(item, arrays)
            keys.append(forms.setdefault(at if key is None else key, len(forms)))
        begin = 0
        for start, period, count in find_runs(keys):
            yield items[begin:start], 0
            begin = start + period * count
            yield items[start:begin], period
        yield items[begin:], 0

    def _run_key(self, item: Item, arrays: Set[int]) -> _Key | None:
        """Return what is common to items that a loop may contain; None if it may not."""
        parts = self.parts.get(id(item), ())
        values = [v for part in parts for v, _ in part.values]
        if not parts or any(is_open(self.plan.types[v].shape) for v in values):
            return None
        return *[part.key for part in parts], *[v in arrays for v in values]

    def addresses(self, item: Item, memory: Memory) -> Iterator[Address]:
        """Yield the addresses that the functions of an item take."""
        for part in self.parts[id(item)]:
            function = self._function(part, memory)
            for k in function.places:
                value, first = part.values[k]
                array, at = memory.address(value)
                yield array, at + first
            yield from map(memory.allocate, function.rooms)

    def loop(self, items: Sequence[Item], rows: Sequence[Sequence[Address]]) -> Iterator[str]:
        """Yield the loop that calls the functions of `items`, with a row of addresses per trip."""
        table: list[Sequence[int]] = []
        words = iter([_word(column, table) for column in zip(*rows, strict=True)])
        calls = []
        for part in chain.from_iterable([self.parts[id(item)] for item in items]):
            function = self.known[part.key]
            calls.append(function.call(islice(words, len(function.places) + len(function.rooms))))
        if table:
            kind = "int" if max(map(max, table)) < 2**31 else "long"
            yield f"static const {kind} places[{len(rows)}][{len(table)}] = {{"
            yield from (f"    {{{', '.join(map(str, row))}}}," for row in zip(*table, strict=True))
            yield "};"
        yield f"for (long t = 0; t < {len(rows)}; t++) {{"
        yield from indented("    ", calls)
        yield "}"

    # Functions.

    def _places(self, part: _Renamed, function: _Function, memory: Memory) -> Iterator[str]:
        """Yield the arguments of the function of a part."""
        for k in function.places:
            value, first = part.values[k]
            place = memory.place(value)
            yield f"(char *){place} + {first}" if first else place
        yield from map(memory.room, function.rooms)
        yield from memory.sizes_place()

    def _function(self, part: _Renamed, memory: Memory) -> _Function:
        """Return the function of a part, which is defined if it is new."""
        found = self.known.get(part.key)
        if found is None:
            found = self.known[part.key] = self._define(part, memory)
        return found

    def _define(self, part: _Renamed, memory: Memory) -> _Function:
        parameters = _Parameters([self.plan.types[v] for v, _ in part.values], memory.use)
        added = {k for k, (v, _) in enumerate(part.values) if v in self.plan.added}
        item, _ = _renumbered(part.item, {})
        sizes = memory.sizes(lambda _: "z")
        lines = [*([sizes] if sizes else []), *self.printed(item, parameters, added)]
        name = f"{self.name}_n{len(self.known)}"
        words = [*(f"p{k}" for k in parameters.places)]
        words += [*(f"s{k}" for k in range(len(parameters.rooms))), *(["z"] if sizes else [])]
        taken = ", ".join(f"char *{word}" for word in words)
        body = [*indented("    ", lines), "    return 0;"]
        self.functions.append(Function(f"__attribute__((noinline)) int {name}({taken})", body))
        return _Function(name, list(parameters.places), parameters.rooms)

    def _rename(self, item: _Shared) -> _Renamed:
        types, number = self.plan.types, dict[int, int]()
        _, form = _renumbered(item, number)
        firsts = _first_elements(item)
        values = [(v, firsts.get(v, 0) * types[v].dtype.itemsize) for v in number]
        kinds = tuple([(types[v], v in self.plan.added) for v in number])
        return _Renamed(item, values, self.keys.setdefault((form, kinds), len(self.keys)))


def _renumbered(item: _Shared, number: dict[int, int]) -> tuple[_Shared, _Key]:
    """Number the values of an item in order of appearance, and count elements from the first used.

    Return the item with these numbers, and what equal items have in common.
    """
    firsts = _first_elements(item)

    def renumber(value: int) -> int:
        return number.setdefault(value, len(number)) if value >= 0 else value

    def access(a: Access) -> Access:
        return Access(renumber(a.root), a.offset - firsts.get(a.root, 0), a.strides)

    if isinstance(item, Product):
        left, right, value = access(item.left), access(item.right), renumber(item.value)
        product = Product(item.step, value, left, right, item.is_added)
        return product, (id(item.step.form), value, left, right, item.is_added)
    if isinstance(item, Routine):
        operands, values = (tuple(map(renumber, vs)) for vs in (item.operands, item.values))
        return Routine(item.step, values, operands), (id(item.step.form), operands, values)
    nodes = [_renumbered_node(node, renumber, firsts) for node in item.nodes]
    stored = sorted(map(renumber, item.stored))
    form = (item.domain, item.added, item.pairs, tuple(stored))
    words = [(None if n.step is None else id(n.step.form), *_form_of(n)) for n in nodes]
    nest = Nest(item.domain, nodes, dict.fromkeys(stored), item.added, item.pairs)
    return nest, (*form, *words)


def _form_of(n: Node) -> _Key:
    return n.value, n.kind, n.name, n.operands, n.strides, n.offset, n.reach, n.within


def _renumbered_node(n: Node, renumber: Callable[[int], int], firsts: Mapping[int, int]) -> Node:
    operands = tuple([
        Operand(
            o.text, o.cast, renumber(o.value), renumber(o.root),
            o.offset - firsts.get(o.root, 0), o.strides,
        )
        for o in n.operands
    ])  # fmt: skip
    offset = n.offset if n.kind in PLAIN else n.offset - firsts.get(n.value, 0)
    return Node(
        n.step, renumber(n.value), n.kind, n.name, operands, n.strides, offset, n.reach, n.within
    )


def _first_elements(item: _Shared) -> dict[int, int]:
    """Return the least offset at which an item accesses each value, without zeros."""
    found: dict[int, int] = {}
    offsets: list[tuple[int, int]] = []
    if isinstance(item, Product):
        offsets = [(item.value, 0), *((a.root, a.offset) for a in (item.left, item.right))]
    elif isinstance(item, Nest):
        offsets = [(v, 0) for v in item.stored]
        for n in item.nodes:
            offsets += [(o.root, o.offset) for o in n.operands]
            if n.kind not in PLAIN:
                offsets.append((n.value, n.offset))
    for value, offset in offsets:
        least = offset if type(offset) is int and offset > 0 else 0
        found[value] = min(found.get(value, least), least)
    return {v: first for v, first in found.items() if first and v >= 0}


# Runs.


def find_runs(keys: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield start, period and number of trips of sequences that are repeated at least three times.

    >>> list(find_runs([7, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 5]))
    [(1, 3, 4)]
    """
    count, at = len(keys), 0
    hashes, powers = [0], [1]
    for key in keys:
        hashes.append((hashes[-1] * _BASE + key + 1) % _MODULUS)
        powers.append(powers[-1] * _BASE % _MODULUS)

    def hashed(i: int, length: int) -> int:
        return (hashes[i + length] - hashes[i] * powers[length]) % _MODULUS

    # For each position, distances to the next occurrences of the sequences that begin there.
    distances: list[list[int]] = [[] for _ in keys]
    for length in _LOOKED:
        following: dict[int, int] = {}
        for i in range(count - length, -1, -1):
            found = hashed(i, length)
            if found in following:
                distances[i].append(following[found] - i)
            following[found] = i
    while at < count:
        best = (0, 0, 0)
        for d in distances[at]:
            if at + _OFTEN * d > count or hashed(at, 2 * d) != hashed(at + d, 2 * d):
                continue
            stop = at + d
            while stop < count and keys[stop] == keys[stop - d]:
                stop += 1
            trips = (stop - at) // d
            best = max(best, (trips * d, -d, trips))
        covered, period, trips = best
        if covered + period >= _SAVED:
            yield at, -period, trips
            at += covered
        else:
            at += 1


def _word(column: Sequence[Address], table: list[Sequence[int]]) -> str:
    """Return the expression of an address in trip `t` of a loop; add columns to its table."""

    def number(numbers: Sequence[int]) -> str:
        first, step = numbers[0], numbers[1] - numbers[0]
        if all(n == first + t * step for t, n in enumerate(numbers)):
            return f"{first} + t * {step}" if step else str(first)
        if numbers not in table:
            table.append(numbers)
        return f"places[t][{table.index(numbers)}]"

    arrays, offsets = zip(*column, strict=True)
    if arrays[0] < 0:
        return f"w + {number(offsets)}"
    return f"(char *)a[{number(arrays)}] + {number(offsets)}"
