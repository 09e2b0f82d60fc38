"""Removal of unused declarations, of which compilers warn."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[A-Za-z_]\w*")
_DECLARED = re.compile(r"(?:const )?\w+ (?:\*const )?(\w+)(?:\[[\d* ]+\])?(?: =(?: .*)?)?(?:;|$)")
_COMMENT = re.compile(r"/\*.*?\*/")


def drop_unused_names(lines: Sequence[str]) -> list[str]:
    """Return the lines without declarations of names that are not used later in their block."""
    kept: list[list[str]] = []
    seen: list[set[str]] = [set()]
    for group in reversed(_statements(lines)):
        text = _COMMENT.sub("", " ".join(group)).strip()
        if text.endswith("{"):
            # The smaller set is merged into the larger one.
            small, large = sorted((seen.pop(), seen.pop()), key=len)
            large |= small
            seen.append(large)
        if text.startswith("}"):
            seen[-1].update(_WORD.findall(text))
            seen.append(set())
            kept.append(group)
            continue
        declared = _DECLARED.fullmatch(text)
        if declared is not None and declared[1] not in seen[-1] and "&bad" not in text:
            continue
        seen[-1].update(_WORD.findall(text))
        kept.append(group)
    return [line for group in reversed(kept) for line in group]


def _statements(lines: Sequence[str]) -> list[list[str]]:
    """Group the lines of each statement."""
    found: list[list[str]] = []
    is_open = False
    for line in lines:
        if is_open:
            found[-1].append(line)
        else:
            found.append([line])
        if line.endswith(" ="):
            is_open = True
        elif is_open:
            is_open = not line.endswith((";", "*/"))
    return found
