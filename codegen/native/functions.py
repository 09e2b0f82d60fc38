"""The elementary functions that a text calls: what of `elementary.c` they are, by families.

Definitions in that file are separated by empty lines, and each stands behind what it uses. A family
is compiled once, by itself, and kept for all kernels that call one of its functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

FAMILIES = {
    "exponential": ("exp", "expm1", "sigmoid", "sinh", "cosh", "tanh"),
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
# What stands in a row of its own makes a function of runs.
_RUN = re.compile(r"^([A-Z_]+)\((\w+)(?:, (\w+))?\)$")


def families(text: str) -> list[str]:
    """The families of the functions of runs that C calls."""
    return sorted({_FAMILY[name] for name in _WORD.findall(text) if name in _FAMILY})


@cache
def family(name: str) -> str:
    """The C of a family, which stands alone."""
    return definitions([f"pg_{n}{ending}" for n in FAMILIES[name] for ending in ("", "f")])


@cache
def _blocks() -> tuple[list[tuple[str, set[str]]], dict[str, int]]:
    """The definitions of the file with the words that they use, and where each name is defined."""
    text = (Path(__file__).parent / "elementary.c").read_text()
    blocks: list[tuple[str, set[str]]] = []
    where: dict[str, int] = {}
    for block in re.split(r"\n\n+", text.strip("\n")):
        lines = block.split("\n")
        runs = [_RUN.match(line) for line in lines]
        if any(runs):
            for line, run in zip(lines, runs, strict=True):
                assert run is not None
                macro, stem, function = run.groups()
                where[f"pg_{stem}{'f' if 'FLOAT' in macro else ''}"] = len(blocks)
                own = f"pg_{function}" if "WIDE" in macro else function or f"{stem}_of"
                blocks.append((line, {macro, own}))
            continue
        for found in _DEFINED.finditer(block):
            where.setdefault(found[1] or found[2], len(blocks))
        blocks.append((block, set(_WORD.findall(re.sub(r"/\*.*?\*/", "", block, flags=re.DOTALL)))))
    return blocks, where


def definitions(names: Collection[str]) -> str:
    """The definitions of these names, such as `exp_of` or `pg_exp`, and of what they use."""
    blocks, where = _blocks()
    taken: set[int] = set()
    open_ = [where[name] for name in names]
    while open_:
        at = open_.pop()
        if at not in taken:
            taken.add(at)
            open_ += [where[word] for word in blocks[at][1] if where.get(word, at) != at]
    first = [k for k, (block, _) in enumerate(blocks) if block.startswith("#include")]
    return "\n\n".join([blocks[k][0] for k in [*first, *sorted(taken)]]) + "\n"
