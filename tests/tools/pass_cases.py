"""Cases of passes as text, in `tests/passes`: a graph, what is done with it, and what comes out.

    python tests/tools/pass_cases.py

writes what comes out now; read the difference line by line before it goes into a commit. A case is
a title that begins with `#`, a line with a pass of `PASSES` and its arguments, a graph, the word
`becomes`, and the text of a graph, the listing of a plan, or the items of nests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from rewrite_cases import Case, read

from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.text import to_text as plan_text
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.planned import plan_with_bodies
from primgraph.ir.graph import Graph
from primgraph.ir.text import to_text
from primgraph.transforms import batch, clean_up, linearize, transpose

FOLDER = Path(__file__).parents[1] / "passes"

# Nothing in blocks; everything in blocks of two or three rows; and in threads, too.
LIMITS = {
    "whole": Limits(cache=1 << 60),
    "blocks": (_small := Limits(cache=1, least_bytes=1, least_block=1, rows=2)),
    "threads": replace(_small, processors=3, least_share=0),
}


def _plan(graph: Graph, limits: str, *donated: str) -> str:
    """The listing of a plan; `0:1` donates input 1 to output 0."""
    pairs = [tuple(map(int, pair.split(":"))) for pair in donated]
    options = Options(donated=tuple((k, j) for k, j in pairs))
    return str(verify(plan_with_bodies(graph, options, LIMITS[limits])))


def _nests(graph: Graph, limits: str) -> str:
    """The items of nests, in full."""
    text = plan_text(nests(schedule(graph), LIMITS[limits]))
    _, _, items = text.partition("\n  items\n")
    return "\n".join([line.removeprefix("    ").rstrip() for line in items.splitlines()])


PASSES: dict[str, Callable[..., str]] = {
    "plan": _plan,
    "nests": _nests,
    "linearize": lambda graph, *wrt: to_text(linearize(graph, list(map(int, wrt)))),
    "transpose": lambda graph, *wrt: to_text(transpose(graph, list(map(int, wrt)))),
    "batch": lambda graph, size, *axes: to_text(
        batch(graph, int(size), [None if a == "-" else int(a) for a in axes])
    ),
    "clean_up": lambda graph: to_text(clean_up(graph)),
}


def result(case: Case) -> str:
    """What the graph of a case becomes now."""
    name, *arguments = case.call.split()
    return PASSES[name](case.graph(), *arguments)


def cases() -> Iterator[tuple[Path, list[Case]]]:
    """The files, with their cases in order."""
    for path in sorted(FOLDER.glob("*.txt")):
        yield path, list(read(path))


if __name__ == "__main__":
    for path, found in cases():
        now = [Case(c.title, c.call, to_text(c.graph()), result(c)) for c in found]
        path.write_text("\n".join(map(str, now)), encoding="ascii")
