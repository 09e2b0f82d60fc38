"""Random programs through native code, several in one file of C."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator

import numpy as np
from native_checks import faults
from plan_checks import SHARED
from program_complex import complex_program
from program_pairs import pair_program
from program_symmetric import symmetric_program
from random_programs import Program, random_draft, random_program

from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.errors import FeedError
from primgraph.ir.dims import size
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.sizes import specialize_graph
from primgraph.transforms import clean_up, lower
from primgraph.transforms.loops.implicit_solution import expand_solutions

# Programs in one file: the compiler takes longer to begin than for one of them.
TOGETHER = 10
# Of so many seeds one makes a program of complex numbers, too, and one a program of all pairs.
_COMPLEX, _SYMMETRIC = 5, 5


def native_faults(seeds: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Which programs of these seeds native code computes otherwise than the interpreter.

    Each seed has a program of stacked pairs as well, and one in five a program of complex numbers,
    and another one a program of all pairs of some points.
    Each is there with both of its sets of feeds, one in four with sizes, but for those whose sizes
    are against what the program assumes. Programs are compiled
    together; where that fails, each is alone. Every other time they are in blocks of two rows.
    A seed whose programs cannot be drafted has that fault.
    """
    graphs: list[Graph] = []
    feeds: list[list[np.ndarray]] = []
    owners: list[int] = []
    limits = LIMITS
    for seed in seeds:
        limits = limits if seed // TOGETHER % 2 else SHARED
        try:
            drawn = _drawn(seed, len(graphs))
        except Exception:
            yield seed, f"it cannot be drafted\n{traceback.format_exc(limit=-4)}"
            continue
        for graph, given in drawn:
            graphs.append(graph)
            feeds.append([np.array(x, order="C") for x in given])
            owners.append(seed)
    with np.errstate(all="ignore"):
        try:
            found = list(faults(graphs, feeds, limits))
        except Exception:
            found = list(_alone(graphs, feeds, limits))
    yield from ((owners[k], fault) for k, fault in found)


def _drawn(seed: int, first: int) -> list[tuple[Graph, list[np.ndarray]]]:
    """The graphs of a seed, of which the first has that number, and their feeds."""
    drawn: list[tuple[Graph, list[np.ndarray]]] = []
    for k in range(2):
        # Values of two graphs in one are not the same, nor are sizes.
        program, sizes = _program(seed)
        given = (program.feeds, program.others)[k]
        if sizes and _are_refused(program.graph, given):
            continue
        graph = clean_up(expand_solutions(lower(program.graph)))
        others = {n: size(f"{n}{first + len(drawn)}") for n in sizes}
        drawn.append((specialize_graph(graph, others) if sizes else graph, given))
    drawn.append(pair_program(seed))
    if seed % _COMPLEX == 0:
        whole, given = complex_program(seed)
        drawn.append((clean_up(expand_solutions(lower(whole))), given))
    if seed % _SYMMETRIC == 1:
        drawn.append(symmetric_program(seed))
    return drawn


def _program(seed: int) -> tuple[Program, str]:
    """A program, and the names of its sizes."""
    if seed % 4:
        return random_program(seed), ""
    numbers = np.random.default_rng((seed, 17)).integers(1, 6, 2)
    sizes = {n: int(k) for n, k in zip("NM", numbers, strict=True)}
    return random_draft(seed, sizes)[0], "NM"


def _are_refused(graph: Graph, feeds: list[np.ndarray]) -> bool:
    """Whether a program of sizes assumes that there are none such."""
    try:
        interpret(graph, *feeds)
    except FeedError as refusal:
        return "assumed by" in str(refusal)
    return False


def _alone(
    graphs: list[Graph], feeds: list[list[np.ndarray]], limits: Limits
) -> Iterator[tuple[int, str]]:
    for k, (graph, given) in enumerate(zip(graphs, feeds, strict=True)):
        try:
            found = [fault for _, fault in faults([graph], [given], limits)]
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        yield from ((k, fault) for fault in found)
