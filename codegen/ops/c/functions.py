"""Elementary functions called from C: the C files split into families.

Definitions in these files are separated by empty lines, and each follows what it uses. A family is
compiled separately, and cached for all kernels that call one of its functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

# Each file may use definitions of the files before it.
_FILES = ("elementary.c", "single.c")
# For loose accuracy, definitions here override those of the same name.
_LOOSE = (*_FILES, "loose.c")

FAMILIES = {
    "exponential": ("exp", "expm1"),
    "saturating": ("tanh", "sigmoid"),
    "hyperbolic": ("sinh", "cosh"),
    "logarithm": ("log", "log1p", "asinh", "acosh", "atanh"),
    "circular": ("sin", "cos", "tan"),
    "inverse": ("asin", "acos", "atan", "atan2"),
    "error": ("erf", "erfc"),
    "power": ("pow", "logaddexp"),
}
_FAMILY = {
    f"pg_{name}{ending}": family
    for family, names in FAMILIES.items()
    for name in names
    for ending in ("", "f")
}
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_DEFINED = re.compile(
    r"^(?:#define|INLINE \w+|\} \w+;|typedef .*\})\s*(\w+)|^\} (\w+);$", re.MULTILINE
)
# A name that a macro builds by token pasting.
_PASTED = re.compile(r"##(_\w+)")
# A line with a macro call that defines a function of runs.
_RUN = re.compile(r"^([A-Z_]+)\((\w+)(?:, \w+)*\)$")


def families(text: str) -> list[str]:
    """Return the families of the functions of runs that C calls."""
    return sorted({_FAMILY[name] for name in _WORD.findall(text) if name in _FAMILY})


@cache
def family(name: str, *, loose: bool = False) -> str:
    """Return the self-contained C of a family; if `loose`, within four units in the last place."""
    names = [f"pg_{n}{ending}" for n in FAMILIES[name] for ending in ("", "f")]
    return definitions(names, loose=loose)


@cache
def _blocks(loose: bool) -> tuple[list[tuple[str, set[str]]], dict[str, int]]:
    """Return the definitions with the words that they use, and where each name is defined."""
    here = Path(__file__).parents[2] / "targets" / "c"
    names = _LOOSE if loose else _FILES
    text = "\n\n".join([(here / name).read_text().strip("\n") for name in names])
    blocks: list[tuple[str, set[str]]] = []
    where: dict[str, int] = {}
    for block in re.split(r"\n\n+", text):
        lines = block.split("\n")
        runs = [_RUN.match(line) for line in lines]
        if any(runs):
            for line, run in zip(lines, runs, strict=True):
                assert run is not None
                macro, stem = run.groups()
                where[f"pg_{stem}{'f' if 'FLOAT' in macro else ''}"] = len(blocks)
                made, used = blocks[where[macro]]
                made += "".join([blocks[where[w]][0] for w in used if w.isupper() and w in where])
                words = set(_WORD.findall(line))
                pasted = [w + ending for w in words for ending in _PASTED.findall(made)]
                own = [f"pg_{w}" for w in words] if "pg_##function" in made else []
                blocks.append((line, {*words, *pasted, *own}))
            continue
        for found in _DEFINED.finditer(block):
            where.setdefault(found[1] or found[2], len(blocks))
        blocks.append((block, set(_WORD.findall(re.sub(r"/\*.*?\*/", "", block, flags=re.DOTALL)))))
    return blocks, where


def definitions(names: Collection[str], *, loose: bool = False) -> str:
    """Return the definitions of names such as `exp_of` or `pg_exp`, and those they use."""
    blocks, where = _blocks(loose)
    taken: set[int] = set()
    open_ = [where[name] for name in names]
    while open_:
        at = open_.pop()
        if at not in taken:
            taken.add(at)
            open_ += [where[word] for word in blocks[at][1] if where.get(word, at) != at]
    first = [k for k, (block, _) in enumerate(blocks) if block.startswith("#include")]
    return "\n\n".join([blocks[k][0] for k in [*first, *sorted(taken)]]) + "\n"
