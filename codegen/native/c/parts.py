"""The functions of C that a text calls, out of the files of parts, made for the types that it has.

A file of parts is C with two marks in it: `T` stands for a type of elements, and `_T` at the end of
a name for the name of that type. A part begins with a line `/* = kinds */`, of NumPy's letters of
the kinds of types it is for, and goes on to the next such line; one for no type has no letters. It
is known by the functions, named `pg_...`, that it defines, and needs whatever else it calls.
Parts are standard C, ask for no memory, and know of nothing but these files and `math.h`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parents[1]
_FILES = ("elements.c", "special.c", "arrays.c", "linear.c", "lapack.c")

# The types of C, by the name that they have at the end of those of functions, and their kinds.
TYPES = {
    "f64": ("double", "f"),
    "f32": ("float", "f"),
    "i64": ("int64_t", "i"),
    "i32": ("int32_t", "i"),
    "i16": ("int16_t", "i"),
    "i8": ("int8_t", "i"),
    "u64": ("uint64_t", "u"),
    "u32": ("uint32_t", "u"),
    "u16": ("uint16_t", "u"),
    "u8": ("uint8_t", "u"),
    "c128": ("pg_pair", "c"),
    "c64": ("pg_floats", "c"),
}
_NAME = re.compile(r"\bpg_\w+\b")
_DEFINED = re.compile(r"^static .*?\b(pg_\w+)\(", re.MULTILINE)
_TYPED = re.compile(rf"_({'|'.join(TYPES)})$")


class _Part(NamedTuple):
    place: int
    kinds: str
    text: str


@cache
def _parts() -> dict[str, list[_Part]]:
    """The parts that define a function, by its name."""
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


def _made(part: _Part, name: str) -> str:
    """The text of a part for the type of that name."""
    if not part.kinds:
        return part.text
    type, kind = TYPES[name]
    bits = int(name[1:])
    real = "float" if type in ("float", "pg_floats") else "double"
    text = re.sub(r"(?<=_)T\b", name, part.text)
    text = re.sub(r"\bT\b", type, text)
    # The type of parts of complex numbers, its name and the ending of functions of the library.
    text = re.sub(r"\bR\b", real, text)
    text = re.sub(r"(?<=_)R\b", "f32" if real == "float" else "f64", text)
    text = re.sub(r"_F\b", "f" if real == "float" else "", text)
    # Whole numbers of the same size without a sign, in which sums may wrap round.
    text = re.sub(r"\bU\b", f"uint{max(bits, 32)}_t", text)
    return re.sub(r"\bBITS\b", str(bits), text) if kind in "iu" else text


def needed(text: str) -> str:
    """The parts that `text` calls, and those that these call, in an order that C takes."""
    known = _parts()
    found: dict[tuple[int, str], str] = {}
    looked: set[str] = set()
    texts = [text]
    while texts:
        for name in set(_NAME.findall(texts.pop())) - looked:
            looked.add(name)
            typed = _TYPED.search(name)
            stem = f"{name[: typed.start()]}_T" if typed else name
            if stem not in known and name not in known:
                continue
            kind = TYPES[typed[1]][1] if typed and stem in known else ""
            for part in known.get(stem, known.get(name, [])):
                key = (part.place, typed[1] if typed and part.kinds else "")
                if (kind in part.kinds or not part.kinds) and key not in found:
                    found[key] = _made(part, key[1])
                    texts.append(found[key])
    return "\n\n".join(found[key] for key in sorted(found))
