"""Functions of runs called from C: elementary ones and reductions, cut out of the C files.

Definitions in the files of elementary functions are separated by empty lines, and each follows what
it uses. Each function is compiled separately, and cached for all kernels that call it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parents[2] / "targets" / "c"
# Each file may use definitions of the files before it.
_FILES = ("elementary.c", "single.c")
# For loose accuracy, definitions here override those of the same name.
_LOOSE = (*_FILES, "loose.c")

ELEMENTARY = (
    "exp", "expm1", "tanh", "sigmoid", "sinh", "cosh", "log", "log1p", "asinh", "acosh", "atanh",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "erf", "erfc", "pow", "logaddexp",
)  # fmt: skip
NAMES = frozenset([f"pg_{name}{ending}" for name in ELEMENTARY for ending in ("", "f")])
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_DEFINED = re.compile(
    r"^(?:#define|INLINE \w+|\} \w+;|typedef .*\})\s*(\w+)|^\} (\w+);$", re.MULTILINE
)
# A name that a macro builds by token pasting.
_PASTED = re.compile(r"##(_\w+)")
# A line that defines a reduction: a macro call with its kind, C type and type.
_REDUCTION = re.compile(r"^[A-Z]+\((sum|prod|max|min), \w+, (\w+)\b.*", re.MULTILINE)
# A line with a macro call that defines a function of runs.
_RUN = re.compile(r"^([A-Z_]+)\((\w+)(?:, \w+)*\)$")


def elementary_functions(text: str) -> list[str]:
    """Return the elementary functions of runs that C calls, such as `pg_exp`."""
    return sorted(NAMES.intersection(_WORD.findall(text)))


def elementary_function(name: str, *, loose: bool = False) -> str:
    """Return the self-contained C of an elementary function.

    If it is a function of float that calls the one of double, that has another name here.
    """
    double = name.removesuffix("f")
    renamed = f"#define {double} {name}_double\n" if double != name and double in NAMES else ""
    return renamed + definitions([name], loose=loose)


def reductions(text: str) -> list[str]:
    """Return the reductions of runs that C calls, such as `pg_sum_f64`."""
    return sorted(_reductions().keys() & set(_WORD.findall(text)))


def reduction(name: str) -> str:
    """Return the self-contained C of a reduction."""
    return _reductions()[name]


@cache
def _reductions() -> dict[str, str]:
    """Return the C of each reduction: the macros of the file, and its own line."""
    text = (_HERE / "reductions.c").read_text()
    lines = [(match[0], f"pg_{match[1]}_{match[2]}") for match in _REDUCTION.finditer(text)]
    macros = text[: text.index(lines[0][0])]
    return {name: f"{macros}{line}\n" for line, name in lines}


@cache
def _blocks(loose: bool) -> tuple[list[tuple[str, set[str]]], dict[str, int]]:
    """Return the definitions with the words that they use, and where each name is defined."""
    names = _LOOSE if loose else _FILES
    text = "\n\n".join([(_HERE / name).read_text().strip("\n") for name in names])
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
