"""Random programs through native code, several in one file of C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from native_checks import faults
from random_programs import random_program

from primgraph.ir.graph import Graph
from primgraph.transforms import clean_up, lower

# Programs in one file: the compiler takes longer to begin than for one of them.
TOGETHER = 10


def native_faults(seeds: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Which programs of these seeds native code computes otherwise than the interpreter.

    Each is there with both of its sets of feeds. Programs are compiled together; where that fails,
    each is alone.
    """
    graphs: list[Graph] = []
    feeds, owners = [], []
    for seed in seeds:
        program = random_program(seed)
        for given in (program.feeds, program.others):
            # Values of two graphs in one are not the same.
            graphs.append(clean_up(lower(random_program(seed).graph)))
            feeds.append([np.array(x, order="C") for x in given])
            owners.append(seed)
    with np.errstate(all="ignore"):
        try:
            found = list(faults(graphs, feeds))
        except Exception:
            found = list(_alone(graphs, feeds))
    yield from ((owners[k], fault) for k, fault in found)


def _alone(graphs: list[Graph], feeds: list[list[np.ndarray]]) -> Iterator[tuple[int, str]]:
    for k, (graph, given) in enumerate(zip(graphs, feeds, strict=True)):
        try:
            found = [fault for _, fault in faults([graph], [given])]
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        yield from ((k, fault) for fault in found)
