"""Random programs: typed, of every primitive and most operators, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from program_bodies import grow
from program_draft import DTYPES, F64, Draft, Unfit
from program_operators import of_high_order
from program_productions import sparse_product, view

from primgraph import dim
from primgraph.errors import ShapeError, UnknownSizeError
from primgraph.ir.graph import Graph, Value
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.types import TensorType
from primgraph.primitives.shapes import permute

_SMOOTH = 0.75

# How many programs may have branches and loops, and how deep they are in each other at most.
_LOOPED = 0.25
_LOOPED_OF_SIZES = 0.5
_DEPTHS = (1, 2, 3)

# How many programs have a derivative of high order in them.
_OF_HIGH_ORDER = 0.08
# The share of programs that have a product with a sparse matrix.
_OF_SPARSE = 0.1


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


def random_draft(seed: int, sizes: Mapping[str, int] | None = None) -> tuple[Program, Draft]:
    """The program of that seed, and the draft that it was made from.

    With `sizes` some extents are made of these names, and feeds have these numbers.
    """
    rng = np.random.default_rng(seed)
    draft = Draft(rng, bool(rng.random() < _SMOOTH), sizes)
    loops = np.random.default_rng((seed, 21))
    if loops.random() < (_LOOPED_OF_SIZES if sizes else _LOOPED):
        draft.depth = int(loops.choice(_DEPTHS))
    for name in draft.sizes:
        # Some input tells each size.
        draft.input(TensorType((dim(name), *[2] * draft.below(2)), F64))
    for i in range(draft.below(5, 1)):
        dtype = F64 if i == 0 and draft.chance(0.7) else draft.dtype()
        draft.input(TensorType(draft.shape(), dtype))
    for _ in range(draft.below(15, 4)):
        grow(draft)
    late = np.random.default_rng((seed, 31))
    if late.random() < _OF_HIGH_ORDER:
        _add(draft, late, lambda: [of_high_order(draft).value])
    sparse = np.random.default_rng((seed, 32))
    if sparse.random() < _OF_SPARSE:
        _add(draft, sparse, lambda: sparse_product(draft))
    with draft.builder:
        # Every program has a cast and a view.
        value = draft.pick()
        dtype = draft.choose([d for d in DTYPES if d != value.dtype])
        values = [draft.converted(value, dtype)]
        try:
            values += view(draft)
        except UnknownSizeError:
            values.append(permute(value, axes=draft.order(len(value.shape))))
        draft.take(values)
    graph = draft.builder.graph(draft.outputs())
    if draft.unfit:
        fit = [eqn for eqn in graph.body if draft.unfit.isdisjoint(eqn.outputs)]
        graph = Graph(graph.inputs, fit, graph.outputs, graph.name)
    if sizes:
        draft.sizes = _other_sizes(graph, sizes, loops)
    others = [draft.array(v.type, draft.smooth) for v in graph.inputs]
    return Program(seed, graph, draft.feeds, others, draft.smooth), draft


def _add(draft: Draft, rng: np.random.Generator, make: Callable[[], list[Value]]) -> None:
    """Something of what is there, by draws that no other draw depends on."""
    usual, draft.rng = draft.rng, rng
    try:
        with draft.builder:
            draft.take(make())
    except (Unfit, UnknownSizeError):
        draft.refused += 1
    draft.rng = usual


def _other_sizes(
    graph: Graph, sizes: Mapping[str, int], rng: np.random.Generator
) -> dict[str, int]:
    """Other sizes that are as `graph` assumes, if some are found."""
    for _ in range(5):
        found = {name: int(rng.integers(0, 6)) for name in sizes}
        try:
            specialize_graph(graph, found)
        except ShapeError:
            continue
        return found
    return dict(sizes)
