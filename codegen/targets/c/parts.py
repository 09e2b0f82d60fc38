"""C library functions that a file calls, instantiated for the types it uses.

A file of parts is C with two placeholders: `T` for an element type, and `_T` at the end of a name
for the name of that type. A part begins with a line `/* = kinds */`, the NumPy kind letters of its
types, and ends at the next such line; a part that is not typed has no letters. A part is identified
by the functions `pg_...` that it defines, and pulls in the functions it calls. Parts are standard
C, allocate no memory, and depend only on these files and `math.h`. Special functions are emitted
from their graphs instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from primgraph.codegen.ops.c.formulas import functions_of
from primgraph.codegen.ops.c.spellings import C_TYPES, ITEM_SIZES

_HERE = Path(__file__).parent
_FILES = ("declarations.c", "elements.c", "arrays.c", "linear.c", "lapack.c")

# C types by the suffix of function names, with their NumPy kinds.
TYPES = {
    **{
        f"{name[0]}{8 * ITEM_SIZES[kind]}": (kind, name[0])
        for name, kind in C_TYPES.items()
        if name[0] != "b"
    },
    "c128": ("pg_pair", "c"),
    "c64": ("pg_floats", "c"),
}
_NAME = re.compile(r"\bpg_\w+\b")
_DEFINED = re.compile(r"^(?:static|extern) .*?\b(pg_\w+)\)?\(", re.MULTILINE)
_TYPED = re.compile(rf"_({'|'.join(TYPES)})$")


class _Part(NamedTuple):
    place: int
    kinds: str
    text: str


@cache
def _parts() -> dict[str, list[_Part]]:
    """Return the parts that define a function, by function name."""
    found: dict[str, list[_Part]] = {}
    place = 0
    for file in _FILES:
        text = (_HERE / file).read_text()
        _, *pieces = re.split(r"^/\* = ?(\w*) \*/\n", text, flags=re.MULTILINE)
        for kinds, body in zip(pieces[::2], pieces[1::2], strict=True):
            place += 1
            for name in _DEFINED.findall(body):
                found.setdefault(name, []).append(_Part(place, kinds, body.strip("\n")))
    return found


def _instantiate_part(part: _Part, name: str) -> str:
    """Return the text of a part for the type of that name."""
    if not part.kinds:
        return part.text
    type, kind = TYPES[name]
    bits = int(name[1:])
    real = "float" if type in ("float", "pg_floats") else "double"
    text = re.sub(r"(?<=_)T\b", name, part.text)
    text = re.sub(r"\bT\b", type, text)
    # The real type of complex numbers, its name, and the suffix of C library functions.
    text = re.sub(r"\bR\b", real, text)
    text = re.sub(r"(?<=_)R\b", "f32" if real == "float" else "f64", text)
    text = re.sub(r"_F\b", "f" if real == "float" else "", text)
    # Unsigned integers of the same size, in which sums may wrap round.
    text = re.sub(r"\bU\b", f"uint{max(bits, 32)}_t", text)
    return re.sub(r"\bBITS\b", str(bits), text) if kind in "iu" else text


@lru_cache(maxsize=1024)
def functions_in(template: str) -> tuple[str, ...]:
    """Return the functions `pg_...` that a template of C calls."""
    return tuple(_NAME.findall(template))


def required_parts(functions: Iterable[str]) -> str:
    """Return the parts that define these functions, transitively, in an order valid in C."""
    known = _parts()
    found: dict[tuple[int, str], str] = {}
    emitted: dict[str, str] = {}
    looked: set[str] = set()
    waiting = [set(functions)]
    while waiting:
        for name in sorted(waiting.pop() - looked):
            looked.add(name)
            emitted.update(functions_of(name))
            typed = _TYPED.search(name)
            stem = f"{name[: typed.start()]}_T" if typed else name
            if stem not in known and name not in known:
                continue
            kind = TYPES[typed[1]][1] if typed and stem in known else ""
            for part in known.get(stem, known.get(name, [])):
                key = (part.place, typed[1] if typed and part.kinds else "")
                if (kind in part.kinds or not part.kinds) and key not in found:
                    found[key] = _instantiate_part(part, key[1])
                    waiting.append(set(_NAME.findall(found[key])))
    return "\n\n".join([*(found[key] for key in sorted(found)), *emitted.values()])
