"""How densely the tests sample what there is too much of.

The suite takes every path, and random programs by the dozen. `PRIMGRAPH_DENSE_TESTS=1` goes the
same paths again and again: what is marked `dense` runs as well, and all is taken of what is
otherwise drawn by lot.
"""

import os
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest

VARIABLE = "PRIMGRAPH_DENSE_TESTS"
DENSE = os.environ.get(VARIABLE, "0") not in ("", "0")


def drawn(text: str, one_in: int) -> bool:
    """Whether the lot falls on `text`: always on the same, on one text in that many."""
    return DENSE or crc32(text.encode()) % one_in == 0


def starts(first: int, count: int, size: int, *, dense: int, long: int | None = None) -> list[Any]:
    """Where chunks of that many of the `count` seeds from `first` on start.

    After `long` seeds they are marked as long, after `dense` as dense.
    """
    return [
        pytest.param(
            first + i,
            marks=[pytest.mark.long] * (long is not None and i >= long)
            + [pytest.mark.dense] * (i >= dense),
        )
        for i in range(0, count, size)
    ]


def thinned(cases: Sequence[Any], one_in: int) -> list[Any]:
    """`cases`, which are `pytest.param` with an id: all but one in so many are dense.

    The first word of an id is a kind; the first case of each kind is not dense either.
    """
    found, kinds = [], set()
    for case in cases:
        kind = str(case.id).partition(" ")[0]
        dense = kind in kinds and not drawn(str(case.id), one_in)
        kinds.add(kind)
        marks = [*case.marks, *[pytest.mark.dense] * dense]
        found.append(pytest.param(*case.values, id=case.id, marks=marks))
    return found
