"""Stacks that grow by a row a trip: memory of their own, which one call takes and gives back.

No plan knows how many rows there will be. The arena has a pointer for each stack; a loop asks for
twice the memory where there is no room for one more row, and behind all that a call does the memory
is given back. Where there is none, NumPy does the whole, and tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from primgraph.codegen.native.items import Control, Nests, Outside
from primgraph.ir.dims import is_open
from primgraph.primitives.control import scan, while_loop

# The bytes of a pointer, and of memory behind the last row.
POINTER, _BEHIND = 8, 64
# The rows for which there is room at first.
_FIRST = 16
# What a function returns where there is no memory.
_NO_MEMORY = 2

FUNCTIONS = "#include <stdlib.h>"


def stays_inside(plan: Nests) -> bool:
    """Whether all stacks that grow pass from loop to loop in C; so it is where there are none."""
    if not any(is_open(type.shape) for type in plan.schedule.types):
        return True
    for item in plan.items:
        loops = isinstance(item, Control) and item.step.op in (scan, while_loop)
        if isinstance(item, Outside):
            return False
        steps = [item.step] if isinstance(item, Control) else []
        types = [t for step in steps for t in (*step.operands, *step.results)]
        if not loops and any(is_open(t.shape) for t in types):
            return False
    return True


def calling(name: str, within: str, arguments: str, places: Sequence[str]) -> list[str]:
    """A function that calls another one, with pointers to stacks at these places."""
    return [
        f"int {name}({arguments}) {{",
        *(f"    {place} = 0;" for place in places),
        f"    const int failed = {within}(a, w);",
        *(f"    free({place});" for place in places),
        "    return failed;",
        "}",
        "",
    ]


def one_more(places: Sequence[str], rows: Sequence[str]) -> Iterator[str]:
    """Room for row `t` of stacks, with rows of so many bytes; there is room for `room`."""
    if places:
        yield f"if (t == room) {{ room = room ? 2 * room : {_FIRST};"
        for place, row in zip(places, rows, strict=True):
            yield f"    {asked(place, 'room', row)}"
        yield "}"


def asked(place: str, count: str, row: str) -> str:
    """A statement that asks for memory for so many rows, which hold what they held."""
    size = f"(size_t){count} * {row} + {_BEHIND}"
    return (
        f"{{ char *const more = realloc({place}, {size}); if (!more) return {_NO_MEMORY}; "
        f"{place} = more; }}"
    )
