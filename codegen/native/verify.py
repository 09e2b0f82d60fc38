"""What holds for the memory of native code: nothing is read before it is there, nor overwritten."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from primgraph.codegen.native.c.extents import Place
from primgraph.codegen.native.items import Blocks, Item, Nest, Nests, Product
from primgraph.codegen.native.lower.dynamic_stack import POINTER
from primgraph.errors import InternalError
from primgraph.ir.dims import is_open

# Memory for one item alone: which item, where it is, and its size.
Room: TypeAlias = tuple[int, Place, int]


def read_by(item: Item) -> Iterator[int]:
    """What an item reads from memory."""
    if isinstance(item, Nest):
        for node in item.nodes:
            for o in node.operands:
                if o.root >= 0:
                    yield o.root
    elif isinstance(item, Product):
        yield from (item.left.root, item.right.root)
        if item.is_added:
            yield item.value
    elif isinstance(item, Blocks):
        yield from (rows.root for rows in item.given.values())
    else:
        yield from item.operands


def verify_memory(
    plan: Nests,
    written: Sequence[Sequence[int]],
    offsets: Mapping[int, Place],
    rooms: Sequence[Room],
) -> None:
    """Raise `InternalError` where two values that are both needed share memory.

    `written` has for each item what it leaves in memory; `offsets` tell where that is in the arena.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, item in enumerate(plan.items):
        read = list(read_by(item))
        # A product that is added needs what it is added to.
        made = () if isinstance(item, Product) else written[at]
        for v in read:
            if v in offsets and v not in first and v not in made:
                raise InternalError(f"native code: item {at} reads value {v} before it is there")
        for v in (*read, *written[at]):
            if v in offsets:
                first.setdefault(v, at)
                last[v] = at
    sizes = {v: POINTER if is_open(t.shape) else t.nbytes for v, t in plan.types.items()}
    stays = [(first[v], last[v], offsets[v], sizes[v], f"value {v}") for v in first]
    stays += [(at, at, place, size, "room") for at, place, size in rooms]
    _apart(stays)


def _apart(stays: Sequence[tuple[int, int, Place, int, str]]) -> None:
    """Whether what is there at the same time lies in different places."""
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for k, (begin, end, _, _, _) in enumerate(stays):
        begins.setdefault(begin, []).append(k)
        ends.setdefault(end, []).append(k)
    # What is there now, by where it begins, with its end; and places whose size calls tell.
    now: list[tuple[int, int, str]] = []
    counted: dict[Place, str] = {}
    for at in sorted({*begins, *ends}):
        for k in begins.get(at, ()):
            _, _, place, size, name = stays[k]
            if isinstance(place, tuple):
                if place in counted:
                    raise InternalError(f"native code: {name} overwrites {counted[place]}")
                counted[place] = name
                continue
            if not size:
                continue
            spot = bisect_left(now, (place, 0, ""))
            before, after = now[max(spot - 1, 0) : spot], now[spot : spot + 1]
            for begin, end, other in (*before, *after):
                if begin < place + size and place < end:
                    raise InternalError(f"native code: {name} overwrites {other} at item {at}")
            insort(now, (place, place + size, name))
        for k in ends.get(at, ()):
            _, _, place, size, name = stays[k]
            if isinstance(place, tuple):
                del counted[place]
            elif size:
                now.remove((place, place + size, name))
