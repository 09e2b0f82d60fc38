"""Stages of compilation: as built, lowered, derived, cleaned up, planned."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from primgraph.base.interpreter_limits import uncollected
from primgraph.base.plain_text import plain, shorten_text
from primgraph.codegen import Kernel, compile_graph
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.frontend.html_tables import Row, Sheet, Tabled
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import require_closed
from primgraph.ir.text import names
from primgraph.program.compile import generic
from primgraph.transforms.linearize import linearize
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.pullback import pullback
from primgraph.view.formats.page import Step, page
from primgraph.view.picture import Limits, Picture, equation_text, graph_of, picture_with_boxes

_LONGEST = 400


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """Program after one step: the graph, its text by line, and a description of the step.

    `equations[i]` is the equation that line i prints or computes, -1 if there is none.
    """

    name: str
    graph: Graph
    lines: tuple[str, ...]
    equations: tuple[int, ...]
    note: str

    def __repr__(self) -> str:
        return f"<Stage {self.name!r}: {self.graph!r}>"

    def _repr_html_(self) -> str:
        """Return the HTML of the graph."""
        return self.graph._repr_html_()

    def step(
        self,
        times: Sequence[float] | None = None,
        ranges: Sequence[Limits] | None = None,
    ) -> Step:
        """Return the step for a page, with boxes of a picture in place of equations.

        `times` and `ranges` are those of `picture_of`.
        """
        return self.draw_step(*picture_with_boxes(self.graph, times=times, ranges=ranges))

    def draw_step(self, picture: Picture, box_of: Sequence[int]) -> Step:
        """Return the step with a picture of its graph, and the box of each equation in it."""
        boxes = tuple(box_of[i] if i >= 0 else -1 for i in self.equations)
        return Step(self.name, picture, self.lines, boxes, self.note)


@final
@checked_methods("__init__")
@dataclass(frozen=True, slots=True, repr=False)
class Steps(Tabled):
    """Stages of one program, in order; it prints as a table of their numbers of equations."""

    stages: tuple[Stage, ...]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __getitem__(self, name: str) -> Stage:
        """Return the stage of that name. Raises `ArgumentError` if there is none."""
        found = [s for s in self.stages if s.name == name]
        if not found:
            known = ", ".join(s.name for s in self.stages)
            raise ArgumentError(f"there is no step {name!r:.80}", hint=f"steps: {known}")
        return found[0]

    @uncollected
    def to_html(self) -> str:
        """Return a page that shows the stages side by side, and the changes between them."""
        known: dict[int, tuple[Picture, list[int]]] = {}
        for stage in self.stages:
            if id(stage.graph) not in known:
                known[id(stage.graph)] = picture_with_boxes(stage.graph)
        return page([s.draw_step(*known[id(s.graph)]) for s in self.stages])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file with the extension .html. Raises `ArgumentError` for others."""
        if Path(path).suffix.lower() != ".html":
            raise ArgumentError(f"steps are saved as .html, not to {os.fspath(path)!r:.200}")
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _sheet(self) -> Sheet:
        rows = [Row((s.name, str(len(s.graph)), s.note)) for s in self.stages]
        note = "save('steps.html') writes a page with all of them side by side"
        title = f"{self.stages[0].graph.name} on its way through the compiler"
        return Sheet(title, "tnt", ("step", "equations", ""), rows, len(rows), (note,))

    def _title(self) -> str:
        return ", ".join(f"{s.name}: {len(s.graph)}" for s in self.stages)

    def __str__(self) -> str:
        width = max(len(s.name) for s in self.stages)
        rows = [f"{s.name:<{width}}  {len(s.graph):6}  {s.note}" for s in self.stages]
        return "\n".join([f"{'step':<{width}}  equations", *rows])


@checked_late
@uncollected
def steps(drawable: Drawn, *, derivative: bool | None = None) -> Steps:
    """Return the steps of the compiler for a graph, a program, or the graph of a kernel.

    The stages are "as built", "lowered" to primitives, "cleaned up" and "planned", with the text
    of the NumPy code that runs. With `derivative`, which is the default for a graph of floats
    that has no derivative in it, reverse mode is shown: "linearized", the values and tangents,
    comes before "transposed", from cotangents of the outputs to those of the inputs; what is
    cleaned up and planned is this. The code of a graph with sizes is the one for all sizes.

    Raises as the transforms do, such as `MissingRuleError`.

    >>> "planned" in str(pg.steps(pg.trace(pg.sin, pg.spec(3))))
    True
    """
    graph = graph_of(drawable)
    require_closed("steps", graph)
    stages = [_stage("as built", graph, "what was written, operators included")]
    plain_graph = lower(graph)
    stages.append(_stage("lowered", plain_graph, "operators became primitives"))
    if _is_to_derive(graph) if derivative is None else derivative:
        tangents = linearize(plain_graph)
        stages.append(_stage("linearized", tangents, "tangents beside the values: forward mode"))
        plain_graph = pullback(plain_graph)
        stages.append(_stage("transposed", plain_graph, "cotangents flow back: reverse mode"))
    clean = clean_up(plain_graph, last=True)
    stages.append(_stage("cleaned up", clean, "the same bits from fewer equations"))
    kernel = generic(clean) if clean.sizes else compile_graph(clean)
    stages.append(_planned_stage(kernel))
    return Steps(tuple(stages))


def single_step(
    drawable: Drawn,
    times: Sequence[float] | None = None,
    ranges: Sequence[Limits] | None = None,
) -> Step:
    """Return the only step of a page for one graph, with measurements if given."""
    graph = graph_of(drawable)
    drawn = picture_with_boxes(drawable, times=times, ranges=ranges)
    return _stage(graph.name, graph, "").draw_step(*drawn)


def _is_to_derive(graph: Graph) -> bool:
    derived = any(e.source is not None and e.source.is_derived for e in graph.body)
    ends = (graph.inputs, graph.outputs)
    return not derived and all(any(v.type.is_float for v in side) for side in ends)


def _stage(name: str, graph: Graph, note: str) -> Stage:
    """Return a stage with the text of the graph, without the elements of large arrays."""
    spelled = names(graph)
    inputs = ", ".join(f"{spelled[v]}: {v.type}" for v in graph.inputs)
    lines = [f"graph {graph.name}({inputs}) {{"]
    lines += [f"  {equation_text(eqn, spelled)}" for eqn in graph.body]
    lines += [f"  return {', '.join(spelled[v] for v in graph.outputs)}".rstrip(), "}"]
    places = (-1, *range(len(graph.body)), -1, -1)
    return Stage(name, graph, tuple(_line(text) for text in lines), places, note)


def _planned_stage(kernel: Kernel) -> Stage:
    """The stage whose text is the source that runs."""
    sizes = ", ".join(kernel.graph.sizes)
    lines, places = zip(*kernel.lines("readable" if sizes else "planned"), strict=True)
    note = f"NumPy code for all sizes {sizes}"
    if not sizes:
        note = f"NumPy code with buffers, {kernel.plan.arena} bytes in all"
    return Stage("planned", kernel.graph, tuple(map(_line, lines)), places, note)


def _line(text: str) -> str:
    return shorten_text(plain(text), _LONGEST)
