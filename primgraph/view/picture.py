"""Picture of a graph as data: boxes, arrows, and groups that boxes can be folded into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, final

from primgraph.base.interpreter_limits import uncollected
from primgraph.base.plain_text import shorten_text
from primgraph.base.user_lines import UPDATE
from primgraph.codegen import Kernel
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.frontend.result_names import UNTITLED, target_name
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array
from primgraph.ir.text import brief_text, names, value_text
from primgraph.program.program import Program
from primgraph.program.sized import SizedKernel
from primgraph.view.grouping import Group, groupings_of
from primgraph.view.layers import is_user_line
from primgraph.view.loop_bodies import BodyView, Span, shown_bodies, title_of
from primgraph.view.orders import Result, gradient_results, known_results, orders_of
from primgraph.view.primitive_twins import drop_twins

# Maximum lengths of a detail and of a label.
_MOST_DETAIL = 300
_MOST_LABEL = 28
_SPELLED = 8
_SHORT = 8

# Minimum and maximum of an array, and the number of NaNs if known.
Limits: TypeAlias = tuple[float, float] | tuple[float, float, int]


@final
@dataclass(frozen=True, slots=True)
class Box:
    """Box for an input, a constant, an equation, or an output of the graph.

    `part` is "input", "constant", "forward", "tangent", "cotangent", "update" or "output"; `order`
    is the order of a derivative. `details` are pairs of a name and a text. `heat` is the fraction
    of the time that it takes, from 0 to 1.
    """

    id: int
    label: str
    note: str
    part: str
    details: tuple[tuple[str, str], ...] = ()
    heat: float | None = None
    order: int = 0


@final
@dataclass(frozen=True, slots=True)
class Arrow:
    """Use of a value: one for each operand of each equation; the label is its type."""

    tail: int
    head: int
    label: str


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows, and the groups of each kind of grouping.

    Ids of boxes are their positions, in an order in which arrows of a graph point forward.
    """

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    groupings: dict[str, tuple[Group, ...]]

    def data(self) -> dict[str, Any]:
        """Return the picture as dictionaries, lists, strings and numbers, for JSON."""
        return asdict(self)


def picture_of(
    drawable: Drawn,
    *,
    times: Sequence[float] | None = None,
    ranges: Sequence[Limits] | None = None,
) -> Picture:
    """Return the picture of a graph, of a whole program, or of the graph of a kernel.

    `times` has the seconds of each equation, `ranges` minimum, maximum and number of NaNs of its
    first result. Uniform constants are written into the boxes that use them. Raises `ArgumentError`
    for anything else, and unless there is one entry for each equation.
    """
    return picture_with_boxes(drawable, times=times, ranges=ranges)[0]


@uncollected
def picture_with_boxes(
    drawable: Drawn,
    *,
    times: Sequence[float] | None = None,
    ranges: Sequence[Limits] | None = None,
) -> tuple[Picture, list[int]]:
    """Return the picture as by `picture_of`, and the box of each equation; -1 if it has none."""
    graph = graph_of(drawable)
    for name, given in (("times", times), ("ranges", ranges)):
        if given is not None and len(given) != len(graph.body):
            raise ArgumentError(f"{name} has {len(given)} entries for {len(graph.body)} equations")
    told = _ValueRoles.from_drawable(drawable, graph)
    if times is not None or ranges is not None:
        drawing = _Drawing(graph, told, times, ranges)
        return drawing.picture(), [drawing.place_of(e.outputs[0]) for e in graph.body]
    extra = told.missing_updates(graph.outputs)
    whole = graph.with_outputs([*graph.outputs, *extra]) if extra else graph
    drawn, moved = drop_twins(whole)
    drawing = _Drawing(drawn, told.map_values(moved), None, None)
    picture = drawing.picture()
    firsts = [e.outputs[0] for e in graph.body]
    return picture, [drawing.place_of(moved.get(v, v)) for v in firsts]


def graph_of(drawable: Drawn) -> Graph:
    """Return the graph of a drawable object. Raises `ArgumentError` for anything else."""
    if isinstance(drawable, Graph):
        return drawable
    if isinstance(drawable, Program):
        return drawable.graph()
    if isinstance(drawable, Kernel | SizedKernel):
        return drawable.graph
    raise ArgumentError(
        f"a graph, a program or a kernel can be drawn, not {type(drawable).__name__}",
        hint="make a graph with pg.trace(function, *specs)",
    )


@final
@dataclass(frozen=True, slots=True)
class _ValueRoles:
    """Known roles of values outside of their graph: states, updates, names, gradients.

    `states` are inputs, `updates` has the values that become theirs, and `gradients` those inputs
    that results are the gradients by. `titled` are results of a graph whose title says that they
    are gradients. `derivatives` has the orders of all that are known to be derivatives.
    """

    states: frozenset[Value]
    updates: Mapping[Value, Value]
    hints: Mapping[Value, str]
    gradients: Mapping[Value, Value]
    titled: frozenset[Value]
    derivatives: Mapping[Value, Result]

    @staticmethod
    def from_drawable(drawable: Drawn, graph: Graph) -> _ValueRoles:
        hints = {v: v.hint for e in graph.body for v in e.outputs if v.hint}
        if not isinstance(drawable, Program):
            named = frozenset(v for v in graph.inputs if "." in v.hint)
            titles = zip(graph.outputs, graph.titles, strict=False)
            titled = frozenset(v for v, t in titles if t != UNTITLED and not t.state)
            return _ValueRoles(named, {}, hints, {}, titled, gradient_results(graph))
        updates = {new: state for state, new in drawable.updates.items()}
        built = drawable.builder
        known = known_results(built.gradients, built.targets, built.lines)
        states = frozenset(drawable.states)
        return _ValueRoles(states, updates, hints, built.gradients, frozenset(), known)

    def missing_updates(self, outputs: Sequence[Value]) -> list[Value]:
        """Return the new values of states that are not outputs yet."""
        known = set(outputs)
        return [v for v in self.updates if v not in known]

    def map_values(self, moved: Mapping[Value, Value]) -> _ValueRoles:
        """Return the same for values mapped by `moved`."""
        if not moved:
            return self
        return _ValueRoles(
            self.states,
            {moved.get(v, v): s for v, s in self.updates.items()},
            {moved.get(v, v): h for v, h in self.hints.items()},
            {moved.get(v, v): x for v, x in self.gradients.items()},
            frozenset(moved.get(v, v) for v in self.titled),
            {moved.get(v, v): r for v, r in self.derivatives.items()},
        )

    def result(self, value: Value) -> str:
        """Describe a value by its role, if known."""
        if value in self.updates:
            return f"new {self.updates[value].hint}"
        if value in self.hints:
            return self.hints[value]
        return f"gradient by {self.gradients[value].hint}" if value in self.gradients else ""


@final
class _Drawing:
    """Builder of the boxes and arrows of one graph."""

    def __init__(
        self,
        graph: Graph,
        told: _ValueRoles,
        times: Sequence[float] | None,
        ranges: Sequence[Limits] | None,
    ) -> None:
        self.graph = graph
        self.told = told
        self.times = times
        self.ranges = ranges
        self.total = sum(times) if times is not None else 0.0
        self.name = names(graph)
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.place: dict[Value, int] = {}
        self.inlined: dict[Value, str] = {}
        self.equations: list[Equation | None] = []
        self.spans: list[Span] = []
        self.updating = _update_only_equations(graph, told.updates)
        self.orders = orders_of(graph, told.derivatives)
        # The last equation of each line, derivatives by themselves.
        self.last = {e.source.place: e for e in graph.body if e.source is not None}

    def place_of(self, value: Value) -> int:
        """Return the box that computes a value; -1 if it has none."""
        return self.place.get(value, -1)

    def picture(self) -> Picture:
        graph = self.graph
        states: dict[int, str] = {}
        for value in graph.inputs:
            label = shorten_text(value.hint or self.name[value], _MOST_DETAIL)
            box = self.place[value] = self._box(None, label, str(value.type), "input", ())
            if value in self.told.states:
                states[box] = value.hint
        shown = set(graph.outputs)
        for i, eqn in enumerate(graph.body):
            if (number := eqn.number) is not None and eqn.output not in shown:
                text = value_text(number)
                self.inlined[eqn.output] = self.name[eqn.output] = text
            else:
                self._equation(i, eqn)
        made = {v: e for e in graph.body for v in e.outputs}
        labels = _number_labels([self._result(v, made.get(v)) for v in graph.outputs])
        for value, label in zip(graph.outputs, labels, strict=True):
            box = self._box(None, shorten_text(label, _MOST_DETAIL), str(value.type), "output", ())
            self.arrows.append(Arrow(self.place[value], box, str(value.type)))
        boxes, arrows = tuple(self.boxes), tuple(self.arrows)
        pairs = [(a.tail, a.head) for a in arrows]
        parts = [(b.part, b.order) for b in boxes]
        groupings = groupings_of(self.equations, parts, pairs, states, self.spans)
        return Picture(graph.name, boxes, arrows, groupings)

    def _result(self, value: Value, eqn: Equation | None) -> str:
        """Return the label of an output: its name, or its role as new state or gradient."""
        told = self.told.result(value)
        known = self.told.derivatives.get(value)
        if value in self.told.gradients and value not in self.told.hints and known is not None:
            return f"{told}, order {known.order}" if known.order > 1 else told
        if told or eqn is None or eqn.source is None or not is_user_line(eqn.source):
            return told
        if eqn.source.is_derived:
            # The derivative of a gradient is one, also if forward mode computed it.
            is_gradient = value in self.told.titled or eqn.source.role == "cotangent"
            return "gradient" if is_gradient else "tangent"
        is_last = self.last[eqn.source.place] is eqn
        return target_name(eqn.source.text) if is_last else ""

    def _box(
        self,
        eqn: Equation | None,
        label: str,
        note: str,
        part: str,
        details: tuple[tuple[str, str], ...],
        heat: float | None = None,
        order: int = 0,
    ) -> int:
        self.boxes.append(Box(len(self.boxes), label, note, part, details, heat, order))
        self.equations.append(eqn)
        return len(self.boxes) - 1

    def _equation(self, i: int, eqn: Equation) -> None:
        heat = None
        if self.times is not None:
            heat = self.times[i] / self.total if self.total > 0 else 0.0
        measured = []
        if self.ranges is not None:
            measured.append(("range", _range_text(*self.ranges[i])))
        if self.times is not None:
            measured.append(("time", f"{self.times[i] * 1e6:.3g} µs"))
        self._add_equation(eqn, self._part(eqn), measured, heat)

    def _add_equation(
        self,
        eqn: Equation,
        part: tuple[str, int],
        measured: Sequence[tuple[str, str]],
        heat: float | None,
    ) -> None:
        """Add the box of an equation, after the boxes of its bodies, and its arrows."""
        first = len(self.boxes)
        ends = [end for shown in shown_bodies(eqn) for end in self._body(shown, part)]
        note = ", ".join(str(v.type) for v in eqn.outputs)
        details = (*self._details(eqn), *measured)
        box = self._box(eqn, self._label(eqn), note, part[0], details, heat, part[1])
        self.place.update((v, box) for v in eqn.outputs)
        if eqn.op.has_bodies:
            self.spans.append(Span(title_of(eqn), first, len(self.boxes), True))
        used = {a.tail for a in self.arrows if a.head >= first} if eqn.op.has_bodies else set()
        for value in eqn.inputs:
            if value not in self.inlined and self.place[value] not in used:
                self.arrows.append(Arrow(self.place[value], box, str(value.type)))
        self.arrows += [Arrow(end, box, text) for end, text in ends]

    def _body(self, shown: BodyView, part: tuple[str, int]) -> list[tuple[int, str]]:
        """Add the boxes of a body: loop-carried values and equations.

        Returns the box and the type of each result: bodies of one loop may share their inputs.
        """
        first, body = len(self.boxes), shown.body
        named = names(body)
        for inner, outer in shown.operands:
            self.name[inner] = named[inner]
            if inner not in shown.carried:
                self._stands_for(inner, outer)
                continue
            begun = self.inlined.get(outer, self.name[outer])
            told = (("carried", f"begins as {begun}"), ("type", str(inner.type)))
            label = shorten_text(inner.hint or "carried", _MOST_LABEL)
            self.place[inner] = self._box(
                None, label, str(inner.type), part[0], told, None, part[1]
            )
            self.inlined.pop(inner, None)
            if outer not in self.inlined:
                self.arrows.append(Arrow(self.place[outer], self.place[inner], str(outer.type)))
        kept = set(body.outputs)
        for eqn in body.body:
            self.name.update((v, named[v]) for v in eqn.outputs)
            if (number := eqn.number) is not None and eqn.output not in kept:
                text = value_text(number)
                self.inlined[eqn.output] = self.name[eqn.output] = text
            else:
                self._add_equation(eqn, part if eqn.inputs else ("constant", 0), (), None)
        if shown.title:
            self.spans.append(Span(shown.title, first, len(self.boxes), False))
        ends = [v for v in body.outputs if v not in self.inlined]
        return [(self.place[v], str(v.type)) for v in ends]

    def _stands_for(self, inner: Value, outer: Value) -> None:
        """Map an input of a body to its operand, which is constant or sliced by step."""
        if outer in self.inlined:
            self.inlined[inner] = self.inlined[outer]
        else:
            self.inlined.pop(inner, None)
            self.place[inner] = self.place[outer]

    def _part(self, eqn: Equation) -> tuple[str, int]:
        """Return the part of an equation, and the order of the derivative."""
        source = eqn.source
        if not eqn.inputs:
            return "constant", 0
        if source is not None and source.is_derived:
            return source.role, self.orders[eqn]
        updates = eqn in self.updating or (source is not None and source.role == UPDATE)
        return (UPDATE if updates else "forward"), 0

    def _label(self, eqn: Equation) -> str:
        """Return the op, with constants among its operands; a dot stands for an arrow."""
        label = eqn.op.name
        if label in ("full", "constant"):
            # The type of an array is in the second line.
            numbers = brief(eqn.kwargs["value"])
            label = f"const {_short(numbers[numbers.find('{') if numbers.endswith('}') else 0 :])}"
        operands = [_short(self.inlined[v]) if v in self.inlined else "·" for v in eqn.inputs]
        constants = [text for text in operands if text != "·"]
        if constants and eqn.op.commutative and len(constants) == 1:
            label = f"{label} {constants[0]}"
        elif constants:
            label = f"{label}({', '.join(operands)})"
        hint = self.told.hints.get(eqn.outputs[0], "")
        if len(eqn.outputs) == 1 and hint:
            label = f"{hint} = {label}"
        return shorten_text(label, _MOST_LABEL)

    def _details(self, eqn: Equation) -> tuple[tuple[str, str], ...]:
        params = [f"{key}={brief(value)}" for key, value in eqn.params]
        details = [("equation", equation_text(eqn, self.name))]
        details.append(("type", ", ".join(str(v.type) for v in eqn.outputs)))
        results = [r for r in map(self.told.result, eqn.outputs) if r]
        details += [("result", ", ".join(results))] if results else []
        details += [("params", ", ".join(params))] if params else []
        if eqn.source is not None and is_user_line(eqn.source):
            details.append(("source", str(eqn.source)))
            details += [("line", eqn.source.text)] if eqn.source.text else []
            details += [("operator", eqn.source.operator)] if eqn.source.operator else []
            details += [("layer", eqn.source.scope)] if eqn.source.scope else []
        return tuple((name, shorten_text(text, _MOST_DETAIL)) for name, text in details)


def _update_only_equations(graph: Graph, updates: Mapping[Value, Value]) -> set[Equation]:
    """Return the equations that only updates of states use, derivatives excluded."""
    if not updates:
        return set()
    others = {v for v in graph.outputs if v not in updates}
    found = set()
    for eqn in reversed(graph.body):
        derived = eqn.is_derived
        if derived or not others.isdisjoint(eqn.outputs):
            others.update(eqn.inputs)
        else:
            found.add(eqn)
    return found


def _number_labels(labels: Sequence[str]) -> list[str]:
    """Return labels for outputs; empty or repeated ones get numbers."""
    if len(labels) == 1:
        return [labels[0] or "output"]
    count = Counter(labels)
    named = [label or "output" for label in labels]
    pairs = enumerate(zip(named, labels, strict=True))
    return [f"{name} {k}" if not label or count[label] > 1 else name for k, (name, label) in pairs]


def equation_text(eqn: Equation, name: Mapping[Value, str]) -> str:
    """Return the equation as graphs print it, without the elements of large arrays."""
    results = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    arguments = [name[v] for v in eqn.inputs]
    arguments += [f"{key}={brief(value)}" for key, value in eqn.params]
    return f"{results} = {eqn.op.name}({', '.join(arguments)})"


def _short(number: str) -> str:
    """Shorten a long number to four digits; details have all of them."""
    try:
        return number if len(number) <= _SHORT else f"{float(number):.4g}"
    except ValueError:
        return number


def _range_text(least: float, greatest: float, nans: int = 0) -> str:
    """Describe the range of an array; NaN for both ends stands for no number."""
    told = f"from {least:.6g} to {greatest:.6g}" if least == least else "no number"
    return f"{told}, {nans} NaN" if nans else told


def brief(value: Any) -> str:
    """Return a parameter as text, without the elements of a large array."""
    if isinstance(value, Array) and value.data.size > _SPELLED:
        return f"{value.type}{{…}}"
    if isinstance(value, tuple):
        inner = ", ".join(map(brief, value[:_MOST_DETAIL]))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return brief_text(value)


def total_heat(heats: Sequence[float | None]) -> float | None:
    """Return the sum of fractions of the time; None if none was measured."""
    measured = [h for h in heats if h is not None]
    return min(sum(measured), 1.0) if measured else None
