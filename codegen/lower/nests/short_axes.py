"""Short axes: an array with an axis of two to four elements becomes one array for each index.

The differences of all pairs of points in space have the shape (N, N, 3). Loops over three elements
are slow, and so many values do not stay in registers. Instead there is a value of shape (N, N) for
each index along the short axis: a variable of the loops over pairs. Only arrays that enter or leave
are read and written along the axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.base.user_lines import Source
from primgraph.codegen.ops.c.split_axes import axes_of_operand, combination, params_without_axis
from primgraph.ir.dims import typical
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.primitive import Op
from primgraph.ir.types import drop_axes
from primgraph.primitives.shapes import broadcast, concat, reshape, slice_

# Maximum number of elements of a short axis.
_SHORT = 4
# An array that enters or leaves costs a pass over memory. The largest value in between has to have
# so many times the elements of all of these.
_GAIN = 2


def unroll_short_axes(graph: Graph) -> Graph:
    """Return `graph` with the values of short axes split, where that pays.

    Equations that are not split stay the same objects.
    """
    if not any(_has_short_axis(v) for eqn in graph.body for v in eqn.outputs):
        return graph
    chosen: dict[Value, int] = {}
    for group in sorted(_groups(graph), key=lambda g: -g.inside):
        if group.pays() and chosen.keys().isdisjoint(group.axes):
            chosen.update(group.axes)
    return _Splitter(chosen).graph(graph) if chosen else graph


def _has_short_axis(value: Value) -> bool:
    shape = value.shape
    return len(shape) > 1 and any(_is_short(n) for n in shape)


def _is_short(n: int) -> bool:
    return type(n) is int and 1 < n <= _SHORT


@final
@dataclass(slots=True)
class _Group:
    """Values that are split together, each with its short axis; those that are split `inside`.

    `inside` has the elements of the largest one of these, `passed` those of all arrays that enter
    or leave. `meets` tells whether some values have no such axis: it is reduced or repeated.
    """

    axes: dict[Value, int] = field(default_factory=dict)
    inside: int = 0
    passed: int = 0
    meets: bool = False
    is_unique: bool = True

    def pays(self) -> bool:
        return self.is_unique and self.meets and self.inside >= _GAIN * self.passed


def _groups(graph: Graph) -> Iterator[_Group]:
    """Yield the groups of values whose short axes are the same axis."""
    above: dict[tuple[Value, int], tuple[Value, int]] = {}

    def top(place: tuple[Value, int]) -> tuple[Value, int]:
        while (over := above.setdefault(place, place)) != place:
            above[place] = above[over]
            place = over
        return place

    for eqn in graph.body:
        (result, *_), axes = eqn.outputs, axes_of_operand(eqn)
        for axis, old in axes.items():
            if _is_short(result.shape[axis]):
                top((result, axis))
                for v in eqn.inputs if old is not None else ():
                    above[top((v, old))] = top((result, axis))  # type: ignore[arg-type]
    found: dict[tuple[Value, int], _Group] = {}
    for value, axis in list(above):
        group = found.setdefault(top((value, axis)), _Group())
        group.is_unique = group.is_unique and value not in group.axes
        group.axes[value] = axis
    of = {}
    for group in found.values():
        for place in group.axes.items():
            of[place] = group
    _weigh(graph, of)
    yield from found.values()


def _weigh(graph: Graph, of: dict[tuple[Value, int], _Group]) -> None:
    """Count the elements inside of groups, and those of arrays that enter and leave."""
    made: set[tuple[Value, int]] = set()
    leaving: set[tuple[Value, int]] = set()
    leaving.update((v, axis) for v in graph.outputs for axis in range(len(v.shape)))
    for eqn in graph.body:
        axes = axes_of_operand(eqn)
        reduced = eqn.kwargs["axes"] if combination(eqn) else ()
        for axis, old in axes.items():
            group = of.get((eqn.outputs[0], axis))
            if group is not None:
                made.add((eqn.outputs[0], axis))
                group.inside = max(group.inside, typical(eqn.outputs[0].type.size))
                group.meets = group.meets or (old is None and bool(eqn.inputs))
        for v in eqn.inputs:
            for axis in range(len(v.shape)):
                group = of.get((v, axis))
                if group is not None and axis in reduced:
                    group.meets = True
                elif axis not in axes.values():
                    leaving.add((v, axis))
    for place, group in of.items():
        group.passed += typical(place[0].type.size) * ((place not in made) + (place in leaving))


@final
class _Splitter:
    """Rewriter of the equations of a graph; `axes` has the axis along which each value is split."""

    def __init__(self, axes: dict[Value, int]) -> None:
        self.axes = axes
        self.body: list[Equation] = []
        self.parts: dict[Value, list[Value]] = {}
        self.whole: set[Value] = set()
        self.source: Source | None = None

    def graph(self, graph: Graph) -> Graph:
        self.whole.update(graph.inputs)
        for eqn in graph.body:
            self.source = eqn.source
            axes, result = axes_of_operand(eqn), eqn.outputs[0]
            axis = self.axes.get(result, -1)
            if axis in axes:
                self.parts[result] = self.split(eqn, axis, axes[axis])
            elif combination(eqn) and self.axes.get(eqn.inputs[0]) in eqn.kwargs["axes"]:
                self.combine(eqn)
            else:
                for v in eqn.inputs:
                    self.join(v)
                self.body.append(eqn)
                self.whole.update(eqn.outputs)
        self.source = None
        for v in graph.outputs:
            self.join(v)
        return Graph(graph.inputs, self.body, graph.outputs, graph.name, graph.form, graph.titles)

    def emit(self, op: Any, *inputs: Value, **params: Any) -> Value:
        """Append an equation; return its result."""
        value = Value(*op.infer(tuple([v.type for v in inputs]), params))
        self.body.append(Equation(op, inputs, freeze_all(params.items()), (value,), self.source))
        return value

    def parts_of(self, value: Value) -> list[Value]:
        """Return the values at each index along the short axis."""
        if value not in self.parts:
            axis, shape = self.axes[value], value.shape
            starts, sizes = [0] * len(shape), list(shape)
            sizes[axis], self.parts[value] = 1, []
            for k in range(shape[axis]):
                starts[axis] = k
                one = self.emit(
                    slice_, value, starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * len(shape)
                )
                self.parts[value].append(self.emit(reshape, one, shape=drop_axes(shape, (axis,))))
        return self.parts[value]

    def join(self, value: Value) -> None:
        """Make the array of a value that is split."""
        if value in self.whole or value not in self.parts:
            return
        axis, shape = self.axes[value], list(value.shape)
        shape[axis] = 1
        parts = [self.emit(broadcast, v, shape=tuple(shape), new_axes=(axis,)) for v in
                 self.parts[value]]  # fmt: skip
        params = freeze_all({"axis": axis}.items())
        self.body.append(Equation(concat, tuple(parts), params, (value,), self.source))
        self.whole.add(value)

    def split(self, eqn: Equation, axis: int, old: int | None) -> list[Value]:
        """Split an equation whose result has the short axis `axis`; that of operands is `old`."""
        op, count = eqn.op, eqn.outputs[0].shape[axis]
        params = params_without_axis(eqn, axis, old)
        if old is None:
            return [self._whole_part(op, eqn.inputs, params)] * count
        rows = [self.parts_of(v) for v in eqn.inputs]
        return [self.emit(op, *row, **params) for row in zip(*rows, strict=True)]

    def _whole_part(self, op: Op, inputs: Sequence[Value], params: dict[str, Any]) -> Value:
        """Return the value that is the same for all indices."""
        for v in inputs:
            self.join(v)
        unchanged = len(inputs) == 1 and params["shape"] == inputs[0].shape
        return inputs[0] if unchanged else self.emit(op, *inputs, **params)

    def combine(self, eqn: Equation) -> None:
        """Reduce over the short axis, and then over others."""
        (x,), (result,), axis = eqn.inputs, eqn.outputs, self.axes[eqn.inputs[0]]
        op = combination(eqn)
        assert op is not None
        total, *others = self.parts_of(x)
        rest = tuple([a - (a > axis) for a in eqn.kwargs["axes"] if a != axis])
        for k, part in enumerate(others, 2):
            if k > len(others) and not rest:
                self.body.append(Equation(op, (total, part), (), (result,), eqn.source))
            else:
                total = self.emit(op, total, part)
        if rest:
            params = freeze_all({"axes": rest}.items())
            self.body.append(Equation(eqn.op, (total,), params, (result,), eqn.source))
        self.whole.add(result)
