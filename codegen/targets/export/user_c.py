"""User C for primitives, restricted to the functions that a file calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_WORD = re.compile(r"[A-Za-z_]\w*")
# The head of a static function, which begins in the first column; and what may end a function.
_HEAD = re.compile(r"^(?:static|inline)\b[^{;=]*?\b(\w+)\([^{;=]*\)", re.MULTILINE)
_END = re.compile(r"[;}]")


def called_functions(codes: Iterable[str], calls: Iterable[str]) -> str:
    """Return the lines of `codes`, without functions that none of the user's `calls` needs."""
    whole = "\n".join(dict.fromkeys(code.strip("\n") for code in codes))
    waiting, rest = list(_functions(whole)), whole
    for _, body in waiting:
        rest = rest.replace(body, "", 1)
    used = set(_WORD.findall(rest)) | set(_WORD.findall("\n".join(calls)))
    while called := [pair for pair in waiting if pair[0] in used]:
        waiting = [pair for pair in waiting if pair not in called]
        used.update(word for _, body in called for word in _WORD.findall(body))
    for _, body in waiting:
        whole = whole.replace(body, "", 1)
    return re.sub(r"\n{3,}", "\n\n", whole).strip("\n")


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of static functions."""
    for head in _HEAD.finditer(text):
        texts = (text[head.start() : end.end()] for end in _END.finditer(text, head.end()))
        body = next((part for part in texts if part.count("{") == part.count("}")), "")
        if body:
            yield head[1], body
