"""Random programs: typed, of every primitive and most operators, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from program_draft import DTYPES, F64, Draft, Unfit
from program_productions import PRODUCTIONS, SHARES, operator, view

from primgraph.errors import InternalError, PrimgraphError
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType

_SMOOTH = 0.75


@dataclass(frozen=True, slots=True)
class Program:
    """A graph, two sets of feeds, and whether it is differentiable at the first of them."""

    seed: int
    graph: Graph
    feeds: list[np.ndarray]
    others: list[np.ndarray]
    smooth: bool

    def __str__(self) -> str:
        kind = "smooth" if self.smooth else "special"
        feeds = "\n".join(f"  {x!r}" for x in self.feeds)
        return f"seed {self.seed}, {kind}\n{self.graph}\nfeeds:\n{feeds}"


def random_program(seed: int) -> Program:
    return random_draft(seed)[0]


def random_draft(seed: int) -> tuple[Program, Draft]:
    """The program of that seed, and the draft that it was made from."""
    rng = np.random.default_rng(seed)
    draft = Draft(rng, smooth=bool(rng.random() < _SMOOTH))
    for i in range(draft.below(5, 1)):
        dtype = F64 if i == 0 and draft.chance(0.7) else draft.dtype()
        draft.input(TensorType(draft.shape(), dtype))
    for _ in range(draft.below(15, 4)):
        grow(draft)
    with draft.builder:
        # Every program has a cast and a view.
        value = draft.pick()
        dtype = draft.choose([d for d in DTYPES if d != value.dtype])
        draft.take([draft.converted(value, dtype), *view(draft)])
    graph = draft.builder.graph(draft.outputs())
    others = [draft.array(v.type, draft.smooth) for v in graph.inputs]
    return Program(seed, graph, draft.feeds, others, draft.smooth), draft


def grow(draft: Draft) -> None:
    """Apply one production; user-level operators may refuse what they are given."""
    production = draft.choose(PRODUCTIONS, SHARES)
    draft.last = None
    try:
        with draft.builder:
            results = production(draft)
    except Unfit:
        results = []
    except InternalError:
        raise
    except PrimgraphError:
        if production is not operator:
            raise
        draft.refused += 1
        results = []
    draft.take(results)
