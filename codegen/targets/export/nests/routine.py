"""C code for calls of functions on whole arrays, in blocks of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np

from primgraph.codegen.ir.statements import Routine
from primgraph.codegen.lower.nests import routines
from primgraph.codegen.ops.c.call_lines import Call
from primgraph.codegen.ops.c.spellings import C_TYPES
from primgraph.codegen.targets.export.extents import rename_sizes
from primgraph.codegen.targets.export.nests.formulas import kind_of
from primgraph.codegen.targets.export.page import Page, declare
from primgraph.ir.types import TensorType

_WORD = re.compile(r"[A-Za-z_]\w*")
_PLAIN = re.compile(r"&?[A-Za-z_]\w*")
_CAST = re.compile(r"\((?:const )?(\w+) \*\)(pg_given\d+)(?![\w\[(.-])")
_DECLARES = re.compile(
    r"(?:\*|\b(?:double|float|int|long|bool|size_t|u?int\d+_t) )([A-Za-z_]\w*) *[=;,\[]"
    r"|, ([A-Za-z_]\w*) = "
)
# A typed workspace request of a function on whole arrays.
_ROOM = re.compile(r"\((?:const )?(\w+) \*\)@(\d+)@")


def routine(page: Page, item: Routine) -> None:
    """Write the statements of a call."""
    for v in item.values:
        declare(page, page.place(v), page.type(v))
    values = (*item.operands, *item.values)
    kinds = [kind_of(page.type(v).dtype) for v in values]
    pointers = {f"pg_given{k}": _address(page, v) for k, v in enumerate(values)}
    made, rooms = _call_lines(item, pointers, kinds, page.fail)
    own = len(made) > 1
    if own:
        page.open("")
    # What such lines declare may have the name of something of the user's.
    names = [n for n in _declared_names(made) if n in page.names.taken and n not in page.loops]
    others = {name: page.names.fresh(name) for name in names}
    for line in made:
        told = _WORD.sub(lambda word: others.get(word[0], word[0]), line)
        told = _WORD.sub(lambda word: pointers.get(word[0], word[0]), rename_sizes(told))
        page.line(_ROOM.sub(lambda found: _scratch(page, found[1], rooms[int(found[2])]), told))
    if own:
        page.close()


def _call_lines(
    item: Routine, pointers: Mapping[str, str], kinds: Sequence[str], fail: Callable[[], None]
) -> tuple[list[str], list[int]]:
    """Return the lines of a call with these pointers, and the sizes of its workspace requests."""
    lines, count = routines.routine(item.step), len(item.operands)
    assert lines is not None
    rooms: list[int] = []

    def room(size: int) -> str:
        rooms.append(size)
        return f"@{len(rooms) - 1}@"

    words = list(pointers)
    call = Call(item.step, words[:count], words[count:], room, fail=fail)
    told = {
        (word, kind)
        for (word, text), kind in zip(pointers.items(), kinds, strict=True)
        if _PLAIN.fullmatch(text)
    }
    return [_uncast(line, told) for line in lines(call)], rooms


def _address(page: Page, value: int) -> str:
    """Return a pointer to the elements of a value; a scalar constant gets a variable."""
    place = page.place(value)
    if value in page.scope.plan.constants and place.is_number:
        name = page.names.fresh("", "given")
        page.line(f"const {kind_of(page.type(value).dtype)} {name} = {place.text};")
        return f"&{name}"
    return place.pointer


def _scratch(page: Page, kind: str, size: int) -> str:
    """Allocate workspace of `size` bytes for the current item, of a C element type."""
    dtype = next(np.dtype(name) for name, told in C_TYPES.items() if told == kind and name != "b1")
    return page.allocate_workspace(TensorType((-(-size // dtype.itemsize),), dtype))


def _uncast(line: str, kinds: Set[tuple[str, str]]) -> str:
    """Remove casts of pointers that have the type already; `kinds` has (pointer, type) pairs."""
    return _CAST.sub(lambda m: m[2] if (m[2], m[1]) in kinds else m[0], line)


def _declared_names(lines: Sequence[str]) -> list[str]:
    """Return the names that lines may declare."""
    found = [name for line in lines for pair in _DECLARES.findall(line) for name in pair if name]
    return list(dict.fromkeys(found))
