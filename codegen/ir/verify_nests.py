"""Verifier of native memory: no value is read before it is written, or overwritten while live."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from primgraph.codegen.ir.c_extents import Place
from primgraph.codegen.ir.nests import POINTER, Blocks, Item, Nest, Nests, Product
from primgraph.errors import InternalError
from primgraph.ir.dims import is_open

# Workspace of one item: its index, location and size.
Room: TypeAlias = tuple[int, Place, int]


def read_by(item: Item) -> Iterator[int]:
    """Yield the values that an item reads from memory."""
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
    """Raise `InternalError` if two live values share memory.

    `written` has the values that each item writes; `offsets` has their locations in the workspace.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, item in enumerate(plan.items):
        read = list(read_by(item))
        # An accumulating product reads its own value.
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
    _check_disjoint(stays)


def _check_disjoint(stays: Sequence[tuple[int, int, Place, int, str]]) -> None:
    """Raise unless values that are live at the same time have disjoint memory."""
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for k, (begin, end, _, _, _) in enumerate(stays):
        begins.setdefault(begin, []).append(k)
        ends.setdefault(end, []).append(k)
    # Live ranges sorted by first byte, with their end; and live slots of symbolic size.
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
