"""The picture of a graph as data: boxes, arrows, and the groups that boxes can be folded into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, final

from primgraph.codegen import Kernel
from primgraph.errors import ArgumentError
from primgraph.ir.collection import uncollected
from primgraph.ir.drawn import Drawn
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array
from primgraph.ir.text import names, value_text
from primgraph.program import Program
from primgraph.view.grouping import Group, groupings_of, is_told
from primgraph.view.plain import shortened

# How much of a long text a box tells.
_MOST_DETAIL = 300
_MOST_LABEL = 28
_SPELLED = 8
_SHORT = 8

# The least and the greatest element of an array, and how many are NaN if that is known.
Limits: TypeAlias = tuple[float, float] | tuple[float, float, int]


@final
@dataclass(frozen=True, slots=True)
class Box:
    """What makes values: an input, a constant, an equation; or an output of the graph.

    `part` is "input", "constant", "forward", "tangent", "cotangent" or "output". `details` are
    pairs of a name and a text. `heat` is the share of the time that it takes, from 0 to 1.
    """

    id: int
    label: str
    note: str
    part: str
    details: tuple[tuple[str, str], ...] = ()
    heat: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Arrow:
    """The use of a value: one for each operand of each equation; the label is its type."""

    tail: int
    head: int
    label: str


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows, and for each kind of grouping its groups.

    The ids of boxes are their positions, in an order in which arrows of a graph point forward.
    """

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    groupings: dict[str, tuple[Group, ...]]

    def data(self) -> dict[str, Any]:
        """The same as dictionaries, lists, strings and numbers, which JSON can hold."""
        return asdict(self)


def picture_of(
    drawable: Drawn,
    *,
    times: Sequence[float] | None = None,
    ranges: Sequence[Limits] | None = None,
) -> Picture:
    """The picture of a graph, of all that a program computes, or of the graph of a kernel.

    `times` has the seconds that each equation takes, `ranges` the least and the greatest element
    of its first result, and how many NaNs it has. Uniform constants are written into the boxes
    that use them. Raises `ArgumentError` for anything else, and where there is not one entry for
    each equation.
    """
    return numbered(drawable, times=times, ranges=ranges)[0]


@uncollected
def numbered(
    drawable: Drawn,
    *,
    times: Sequence[float] | None = None,
    ranges: Sequence[Limits] | None = None,
) -> tuple[Picture, list[int]]:
    """The picture as `picture_of` gives it, and the box of each equation; -1 where it has none."""
    graph = graph_of(drawable)
    for name, given in (("times", times), ("ranges", ranges)):
        if given is not None and len(given) != len(graph.body):
            raise ArgumentError(f"{name} has {len(given)} entries for {len(graph.body)} equations")
    drawing = _Drawing(graph, times, ranges)
    return drawing.picture(), drawing.box_of


def graph_of(drawable: Drawn) -> Graph:
    """The graph of what can be drawn. Raises `ArgumentError` for anything else."""
    if isinstance(drawable, Graph):
        return drawable
    if isinstance(drawable, Program):
        return drawable.graph()
    if isinstance(drawable, Kernel):
        return drawable.graph
    raise ArgumentError(
        f"a graph, a program or a kernel can be drawn, not {type(drawable).__name__}",
        hint="make a graph with pg.trace(function, *specs)",
    )


@final
class _Drawing:
    """Collects the boxes and arrows of one graph."""

    def __init__(
        self,
        graph: Graph,
        times: Sequence[float] | None,
        ranges: Sequence[Limits] | None,
    ) -> None:
        self.graph = graph
        self.times = times
        self.ranges = ranges
        self.total = sum(times) if times is not None else 0.0
        self.name = names(graph)
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.place: dict[Value, int] = {}
        self.inlined: dict[Value, str] = {}
        self.equations: list[Equation | None] = []
        self.box_of = [-1] * len(graph.body)

    def picture(self) -> Picture:
        graph = self.graph
        for value in graph.inputs:
            label = shortened(value.hint or self.name[value], _MOST_DETAIL)
            self.place[value] = self._box(None, label, str(value.type), "input", ())
        shown = set(graph.outputs)
        for i, eqn in enumerate(graph.body):
            if eqn.op.name == "full" and eqn.output not in shown:
                text = value_text(eqn.kwargs["value"])
                self.inlined[eqn.output] = self.name[eqn.output] = text
            else:
                self._equation(i, eqn)
        for k, value in enumerate(graph.outputs):
            label = f"output {k}" if len(graph.outputs) > 1 else "output"
            box = self._box(None, label, str(value.type), "output", ())
            self.arrows.append(Arrow(self.place[value], box, str(value.type)))
        boxes, arrows = tuple(self.boxes), tuple(self.arrows)
        pairs = [(a.tail, a.head) for a in arrows]
        parts = [b.part for b in boxes]
        return Picture(graph.name, boxes, arrows, groupings_of(self.equations, parts, pairs))

    def _box(
        self,
        eqn: Equation | None,
        label: str,
        note: str,
        part: str,
        details: tuple[tuple[str, str], ...],
        heat: float | None = None,
    ) -> int:
        self.boxes.append(Box(len(self.boxes), label, note, part, details, heat))
        self.equations.append(eqn)
        return len(self.boxes) - 1

    def _equation(self, i: int, eqn: Equation) -> None:
        part = "forward" if eqn.inputs else "constant"
        if eqn.source is not None and eqn.source.role and eqn.inputs:
            part = eqn.source.role if eqn.source.role == "tangent" else "cotangent"
        note = ", ".join(str(v.type) for v in eqn.outputs)
        heat = None
        if self.times is not None:
            heat = self.times[i] / self.total if self.total > 0 else 0.0
        box = self._box(eqn, self._label(eqn), note, part, self._details(i, eqn), heat)
        self.box_of[i] = box
        self.place.update((v, box) for v in eqn.outputs)
        for value in eqn.inputs:
            if value not in self.inlined:
                self.arrows.append(Arrow(self.place[value], box, str(value.type)))

    def _label(self, eqn: Equation) -> str:
        """The op, with constants among its operands; a dot stands for what an arrow brings."""
        label = eqn.op.name
        if label in ("full", "constant"):
            label = f"const {_short(brief(eqn.kwargs['value']))}"
        operands = [_short(self.inlined[v]) if v in self.inlined else "·" for v in eqn.inputs]
        constants = [text for text in operands if text != "·"]
        if constants and eqn.op.commutative and len(constants) == 1:
            label = f"{label} {constants[0]}"
        elif constants:
            label = f"{label}({', '.join(operands)})"
        if len(eqn.outputs) == 1 and eqn.output.hint:
            label = f"{eqn.output.hint} = {label}"
        return shortened(label, _MOST_LABEL)

    def _details(self, i: int, eqn: Equation) -> tuple[tuple[str, str], ...]:
        params = [f"{key}={brief(value)}" for key, value in eqn.params]
        details = [("equation", equation_text(eqn, self.name))]
        details.append(("type", ", ".join(str(v.type) for v in eqn.outputs)))
        details += [("params", ", ".join(params))] if params else []
        if eqn.source is not None and is_told(eqn.source):
            details.append(("source", str(eqn.source)))
            details += [("line", eqn.source.text)] if eqn.source.text else []
            details += [("operator", eqn.source.operator)] if eqn.source.operator else []
        if self.ranges is not None:
            details.append(("range", _range_text(*self.ranges[i])))
        if self.times is not None:
            details.append(("time", f"{self.times[i] * 1e6:.3g} µs"))
        return tuple((name, shortened(text, _MOST_DETAIL)) for name, text in details)


def equation_text(eqn: Equation, name: Mapping[Value, str]) -> str:
    """The equation as graphs print it, without the elements of large arrays."""
    results = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    arguments = [name[v] for v in eqn.inputs]
    arguments += [f"{key}={brief(value)}" for key, value in eqn.params]
    return f"{results} = {eqn.op.name}({', '.join(arguments)})"


def _short(number: str) -> str:
    """A number to four digits where it is spelled with many; details have all of them."""
    try:
        return number if len(number) <= _SHORT else f"{float(number):.4g}"
    except ValueError:
        return number


def _range_text(least: float, greatest: float, nans: int = 0) -> str:
    """In words, what the elements of an array are; NaN for both ends stands for no number."""
    told = f"from {least:.6g} to {greatest:.6g}" if least == least else "no number"
    return f"{told}, {nans} NaN" if nans else told


def brief(value: Any) -> str:
    """A parameter as text, without the elements of a large array."""
    if isinstance(value, Array) and value.data.size > _SPELLED:
        return f"{value.type}{{…}}"
    if isinstance(value, tuple):
        inner = ", ".join(map(brief, value[:_MOST_DETAIL]))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return value_text(value)


def total_heat(heats: Sequence[float | None]) -> float | None:
    """The share of the time of boxes taken together; None where none was measured."""
    measured = [h for h in heats if h is not None]
    return min(sum(measured), 1.0) if measured else None
