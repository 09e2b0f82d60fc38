"""User C for primitives, restricted to the functions that a file calls."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[A-Za-z_]\w*")


def called_functions(codes: Iterable[str], calls: Iterable[str]) -> str:
    """Return the lines of `codes`, without functions that none of the user's `calls` needs."""
    whole = "\n".join(dict.fromkeys(code.strip("\n") for code in codes))
    functions = _functions(whole)
    rest = whole
    for _, body in functions:
        rest = rest.replace(body, "", 1)
    used = set(_WORD.findall(rest)) | set(_WORD.findall("\n".join(calls)))
    waiting, kept = list(functions), []
    found = True
    while found:
        found = False
        for pair in list(waiting):
            if pair[0] in used:
                waiting.remove(pair)
                kept.append(pair)
                used.update(_WORD.findall(pair[1]))
                found = True
    for _, body in waiting:
        whole = whole.replace(body, "", 1)
    return re.sub(r"\n{3,}", "\n\n", whole).strip("\n")


def _functions(text: str) -> list[tuple[str, str]]:
    """Return the names and texts of static functions, which begin in the first column."""
    found: list[tuple[str, str]] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        begin, head = at, lines[at]
        if not head.startswith(("static ", "inline ")):
            at += 1
            continue
        depth, opened = 0, False
        while at < len(lines):
            depth += lines[at].count("{") - lines[at].count("}")
            opened = opened or "{" in lines[at]
            at += 1
            if (opened and depth == 0) or (not opened and lines[at - 1].rstrip().endswith(";")):
                break
        body = "\n".join(lines[begin:at])
        name = re.search(r"\b(\w+)\(", body.partition("{")[0])
        if name is not None and "=" not in body.partition("{")[0]:
            found.append((name[1], body))
    return found
