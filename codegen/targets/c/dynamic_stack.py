"""Dynamic stacks that grow by one row per iteration, allocated and freed within a call.

The number of rows is unknown at compile time. The workspace has a pointer for each stack. A loop
doubles the memory if there is no space for another row, and the memory is freed at the end of the
call. If allocation fails, NumPy runs instead, and raises the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from primgraph.codegen.targets.c.lines import Function

# Padding in bytes behind the last row.
_BEHIND = 64
# Initial capacity in rows.
_FIRST = 16
# Return code for failed allocation.
_NO_MEMORY = 2

FUNCTIONS = "#include <stdlib.h>"


def wrapper_function(name: str, within: str, arguments: str, places: Sequence[str]) -> Function:
    """Return a function that calls another one, with stack pointers at these places."""
    lines = [
        *(f"    {place} = 0;" for place in places),
        f"    const int failed = {within}(a, w);",
        *(f"    free({place});" for place in places),
        "    return failed;",
    ]
    return Function(f"int {name}({arguments})", lines, is_public=True)


def one_more(stacks: Mapping[str, str]) -> Iterator[str]:
    """Yield statements that ensure space for row `t` of stacks of rows of these sizes.

    `room` is their capacity.
    """
    if stacks:
        yield f"if (t == room) {{ room = room ? 2 * room : {_FIRST};"
        for place, row in stacks.items():
            yield f"    {reallocation(place, 'room', row)}"
        yield "}"


def reallocation(place: str, count: str, row: str) -> str:
    """Return a statement that reallocates a stack for so many rows."""
    size = f"(size_t){count} * {row} + {_BEHIND}"
    return (
        f"{{ char *const more = realloc({place}, {size}); if (!more) return {_NO_MEMORY}; "
        f"{place} = more; }}"
    )
