"""Pictures and texts of a page as little JSON: each text once, and numbers in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from primgraph.view.picture import Picture
from primgraph.view.plain import plain

# Digits of a share of the time.
_DIGITS = 6


@final
class Texts(dict[str, int]):
    """The number of each text, in order; a text that is asked for gets the next one."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    def shown(self) -> list[str]:
        """The texts in the order of their numbers, as they may be shown."""
        return list(map(plain, self))


def packed_picture(picture: Picture, number: Texts) -> dict[str, Any]:
    """Boxes as numbers of label, note, part, and names and texts of details; arrows by columns.

    A group is its label and its runs: where each begins among the boxes, and how long it is.
    """
    boxes = [
        [number[b.label], number[b.note], number[b.part]]
        + [number[text] for pair in b.details for text in pair]
        for b in picture.boxes
    ]
    measured = any(b.heat is not None for b in picture.boxes)
    return {
        "title": number[picture.title],
        "boxes": boxes,
        "heats": [b.heat and round(b.heat, _DIGITS) for b in picture.boxes] if measured else [],
        "tails": [a.tail for a in picture.arrows],
        "heads": [a.head for a in picture.arrows],
        "labels": [number[a.label] for a in picture.arrows],
        "groupings": {
            kind: [[number[g.label], *_runs(g.members)] for g in groups]
            for kind, groups in picture.groupings.items()
        },
    }


def packed_lines(lines: Sequence[str], number: Texts) -> list[int]:
    """For each line its indentation, and the number of the rest of it."""
    found: list[int] = []
    for line in lines:
        text = line.lstrip(" ")
        found += (len(line) - len(text), number[text])
    return found


def _runs(members: Sequence[int]) -> list[int]:
    """First number and length of each run of successive numbers."""
    found: list[int] = []
    following = -1
    for i in members:
        if i == following:
            found[-1] += 1
        else:
            found += (i, 1)
        following = i + 1
    return found
