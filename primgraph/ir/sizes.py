"""Symbolic sizes of a graph: solve for them, check assumptions, and specialise the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.errors import ArgumentError, BuildError, FeedError, PrimgraphError
from primgraph.ir.assumptions import Condition, record_assumptions
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim, extent_at, is_open, names_in
from primgraph.ir.graph import SIZE, Equation, Graph, Value
from primgraph.ir.params import Params
from primgraph.ir.primitive import lookup
from primgraph.ir.rebuild import NOWHERE, origin_lines
from primgraph.ir.types import Shape, TensorType, scalar_of


def specialize_graph(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Specialise `graph` at these sizes; other sizes stay symbolic.

    Equations keep their source lines. Raises `ShapeError`, with the user's line, if the sizes
    violate an assumption.
    """
    builder = Builder(graph.name, source=NOWHERE)
    types: dict[TensorType, TensorType] = {}

    def specialize_type(type: TensorType) -> TensorType:
        if type not in types:
            types[type] = type.with_shape(tuple([extent_at(n, sizes) for n in type.shape]))
        return types[type]

    moved: dict[Value, Value] = {}
    for value in graph.inputs:
        moved[value] = Value(specialize_type(value.type), value.hint)
        builder.share_input(moved[value])
    params: dict[int, dict[str, Any]] = {}
    for eqn in graph.body:
        inputs = tuple([moved[v] for v in eqn.inputs])
        if not _depends(eqn):
            results = builder.copy_distinct(eqn, inputs)
        else:
            if id(eqn.params) not in params:
                params[id(eqn.params)] = params_at(eqn.kwargs, sizes)
            builder.source = eqn.source or NOWHERE
            results = _record_equation(builder, eqn, inputs, params[id(eqn.params)])
        moved.update(zip(eqn.outputs, results, strict=True))
        for old, new in zip(eqn.outputs, results, strict=True):
            if new.type is not specialize_type(old.type):
                raise BuildError(
                    f"{eqn.op.name} gives {new.type} where {old.type} is "
                    f"{specialize_type(old.type)}",
                    origin=origin_lines(eqn),
                )
    builder.source = None
    return builder.graph([moved[v] for v in graph.outputs]).in_form(graph.form).titled(graph.titles)


def _depends(eqn: Equation) -> bool:
    if any(v.type.names for v in (*eqn.inputs, *eqn.outputs)) or eqn.op.has_bodies:
        return True
    # For equations with operands, the types contain all sizes.
    return not eqn.inputs and bool(names_in_params(eqn.params))


def _record_equation(
    builder: Builder, eqn: Equation, inputs: tuple[Value, ...], params: dict[str, Any]
) -> tuple[Value, ...]:
    """Record the equation with these parameters; a size used as a value becomes a number."""
    name = eqn.op.fact(SIZE)
    if not name or type(params[name]) is Dim:
        return builder.emit(eqn.op, inputs, params)
    rest = {k: v for k, v in params.items() if k != name}
    number = scalar_of(params[name], params["dtype"])
    return builder.emit(lookup("full"), (), {**rest, "value": number})


def type_at(type: TensorType, sizes: Mapping[str, int]) -> TensorType:
    """Substitute sizes in a type."""
    if not type.names or not sizes:
        return type
    return type.with_shape(tuple([extent_at(n, sizes) for n in type.shape]))


def params_at(params: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Substitute sizes in parameters."""
    return {name: _substitute_sizes(value, sizes) for name, value in params.items()}


def _substitute_sizes(value: Any, sizes: Mapping[str, int]) -> Any:
    """Substitute sizes in one parameter."""
    if type(value) is Dim:
        return value.at(sizes)
    if type(value) is Graph:
        return specialize_graph(value, sizes)
    return tuple([_substitute_sizes(v, sizes) for v in value]) if type(value) is tuple else value


def checked_sizes(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Return `sizes` if these are integers >= 0 by name. Raises `ArgumentError` otherwise."""
    for name, number in sizes.items():
        if not isinstance(name, str) or type(number) is not int or number < 0:
            raise ArgumentError(
                f"sizes are integers of at least 0 by name, not {name!r:.40}: {number!r:.40}"
            )
    return dict(sizes)


def assumptions(graph: Graph) -> list[tuple[Condition, Source | None]]:
    """Return the assumptions about sizes, with the first line that needs each.

    These are the conditions that type rules could not decide.
    """
    found: dict[Condition, Source | None] = {}
    asked: set[tuple[Any, ...]] = set()
    for eqn in graph.body:
        for body in eqn.bodies:
            for condition, source in assumptions(body):
                found.setdefault(condition, source)
        types = tuple([v.type for v in eqn.inputs])
        key = (eqn.op, types, id(eqn.params))
        if key in asked or not (names_in_params(eqn.params) or any(t.names for t in types)):
            continue
        asked.add(key)
        with record_assumptions() as noted:
            eqn.op.infer(types, dict(eqn.params))
        for condition in noted:
            found.setdefault(condition, eqn.source)
    return list(found.items())


def names_in_params(params: Params) -> frozenset[str]:
    """Return the sizes in parameters."""
    return names_in(tuple([value for _, value in params]))


def fit_to_arrays(graph: Graph, arrays: Sequence[Any]) -> Graph:
    """Specialise `graph` at the sizes of the arrays for its inputs, and check its assumptions.

    Raises `FeedError` if no sizes fit.
    """
    if not graph.sizes:
        return graph
    names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
    fitting = Fitting(list(zip(names, graph.input_types, strict=True)), graph.sizes)
    shapes = [np.shape(a) for a in arrays]
    fitting.key(shapes)
    sizes = fitting.sizes(shapes)
    fitting.require(assumptions(graph), sizes)
    return specialize_graph(graph, sizes)


def output_types_for(graph: Graph, arrays: Sequence[Any]) -> Sequence[TensorType]:
    """Return the result types of `graph` for arrays whose sizes fit it."""
    if not any(type.names for type in graph.output_types):
        return graph.output_types
    names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
    fitting = Fitting(list(zip(names, graph.input_types, strict=True)))
    sizes = fitting.sizes([np.shape(a) for a in arrays])
    return [type_at(type, sizes) for type in graph.output_types]


def require_closed(name: str, graph: Graph) -> None:
    """Raise `BuildError` in the words of `name` for a graph that takes or gives a growing stack."""
    for type in (*graph.input_types, *graph.output_types):
        if is_open(type.shape):
            raise BuildError(f"{name} takes or gives no {type}: stacks that grow are for loops")


def require_known(name: str, graph: Graph) -> None:
    """Raise `BuildError` in the words of `name` for a graph with sizes, or with a stack that grows
    among its inputs or results."""
    require_closed(name, graph)
    if graph.sizes:
        raise BuildError(
            f"{name} needs numbers for the sizes {', '.join(graph.sizes)} of {graph.name}",
            hint=f'pg.transforms.instantiate(graph, {{"{graph.sizes[0]}": 32}}) gives them some',
        )


@final
class Fitting:
    """Solver for the sizes of arrays for inputs of given names and types.

    An axis whose extent is a single name gives that size; an expression such as `2*N+1` is solved.
    Raises `BuildError` for `wanted` sizes that no input determines.
    """

    __slots__ = ("axes", "bare", "inputs", "solved")

    def __init__(
        self, inputs: Sequence[tuple[str, TensorType]], wanted: Sequence[str] = ()
    ) -> None:
        self.inputs = list(inputs)
        # The axes of symbolic size.
        self.axes = [
            (i, axis)
            for i, (_, type) in enumerate(inputs)
            for axis, n in enumerate(type.shape)
            if isinstance(n, Dim)
        ]
        # The input and axis that give a size directly, and expressions with the size they are
        # solved for.
        self.bare: dict[str, tuple[int, int]] = {}
        others: list[tuple[int, int, Dim]] = []
        for i, axis in self.axes:
            extent = inputs[i][1].shape[axis]
            assert isinstance(extent, Dim)
            if str(extent) in extent.names:
                self.bare.setdefault(str(extent), (i, axis))
            else:
                others.append((i, axis, extent))
        self.solved = _order(others, set(self.bare))
        told = set(self.bare).union(*(s.names for _, _, s, _ in self.solved))
        unknown = [name for name in wanted if name not in told]
        if unknown:
            raise BuildError(
                f"no input tells size {unknown[0]}",
                hint='declare an input that has it as an extent, as pg.data("x", '
                f'("{unknown[0]}",)), or give it a number by pg.transforms.instantiate',
            )

    def key(self, shapes: Sequence[Shape]) -> tuple[int, ...]:
        """Return the extents of symbolic axes, which determine the sizes.

        Raises `FeedError` for a shape with another number of axes.
        """
        for (name, type), shape in zip(self.inputs, shapes, strict=True):
            if len(shape) != type.ndim:
                raise FeedError(
                    f"input {name!r} is {type}: an array of shape {tuple(shape)} is given"
                )
        return tuple([shapes[i][axis] for i, axis in self.axes])

    def sizes(self, shapes: Sequence[Shape]) -> dict[str, int]:
        """Return the sizes of arrays of these shapes.

        Raises `FeedError`, naming the inputs, if no sizes fit or if they contradict each other.
        """
        found = {name: shapes[i][axis] for name, (i, axis) in self.bare.items()}
        for i, axis, extent, name in self.solved:
            if name and name not in found:
                found[name] = self._solution(i, axis, extent, name, found, shapes)
        for i, axis in self.axes:
            wanted = self.inputs[i][1].shape[axis].at(found)  # type: ignore[attr-defined]
            # A subset of the inputs of a program may not determine all sizes.
            if type(wanted) is not Dim and shapes[i][axis] != wanted:
                raise self._contradiction(i, axis, found, shapes)
        return found

    def determining_input(self, name: str) -> str:
        """Return the input that determines a size."""
        if name in self.bare:
            return self.inputs[self.bare[name][0]][0]
        return next(self.inputs[i][0] for i, _, _, solved in self.solved if solved == name)

    def format_sizes(self, names: Sequence[str], sizes: Mapping[str, int]) -> str:
        """Format sizes for a message: `N = 7 of input 'x'`."""
        return " and ".join(
            f"{n} = {sizes[n]} of input {self.determining_input(n)!r}" for n in names
        )

    def require(
        self, conditions: Sequence[tuple[Condition, Source | None]], sizes: Mapping[str, int]
    ) -> None:
        """Raise `FeedError`, with the line that needs it, if the sizes violate an assumption."""
        for condition, source in conditions:
            try:
                holds = condition.holds(sizes)
            except PrimgraphError:
                holds = False
            if not holds:
                where = f", assumed by {source}   {source.text}".rstrip() if source else ""
                raise FeedError(
                    f"size {self.format_sizes(sorted(condition.names), sizes)} does not satisfy "
                    f'"{condition}"{where}'
                )

    def _solution(
        self,
        i: int,
        axis: int,
        extent: Dim,
        name: str,
        found: Mapping[str, int],
        shapes: Sequence[Shape],
    ) -> int:
        """Solve `extent`, linear in that size, for the extent of the axis."""
        left: Any = extent.at({k: v for k, v in found.items() if k != name})
        number, factor = left.at({name: 0}), left.at({name: 1}) - left.at({name: 0})
        size, rest = divmod(shapes[i][axis] - number, factor)
        if rest or size < 0:
            raise FeedError(
                f"input {self.inputs[i][0]!r} is {self.inputs[i][1]}: no size {name} gives an "
                f"extent of {shapes[i][axis]} on axis {axis}"
            )
        return int(size)

    def _contradiction(
        self, i: int, axis: int, sizes: Mapping[str, int], shapes: Sequence[Shape]
    ) -> FeedError:
        name, type = self.inputs[i]
        extent: Any = type.shape[axis]
        names = sorted(extent.names)
        given = f"axis {axis} of input {name!r} {type} has extent {shapes[i][axis]}"
        if str(extent) in names:
            where = self.bare[str(extent)]
            other = f"axis {where[1]} of input {self.inputs[where[0]][0]!r} has {sizes[names[0]]}"
            return FeedError(f"size {extent} is not the same in all inputs: {given}, {other}")
        return FeedError(
            f"{given}, and {extent} is {extent.at(sizes)}: {self.format_sizes(names, sizes)}"
        )


def _order(others: list[tuple[int, int, Dim]], known: set[str]) -> list[tuple[int, int, Dim, str]]:
    """Order expressions so that each determines one more size; append the others without a name."""
    ordered: list[tuple[int, int, Dim, str]] = []
    told = set(known)
    waiting = others
    while waiting:
        rest = []
        for i, axis, extent in waiting:
            new = extent.names - told
            name = next(iter(new), "")
            if len(new) == 1 and _is_linear(extent, name):
                ordered.append((i, axis, extent, name))
                told |= new
            else:
                rest.append((i, axis, extent))
        if len(rest) == len(waiting):
            break
        waiting = rest
    return ordered + [(i, axis, extent, "") for i, axis, extent in waiting if extent.names <= told]


def _is_linear(extent: Dim, name: str) -> bool:
    """Return whether an expression is linear in that size."""
    found = [(m, c) for m, c in extent.terms if name in names_in(Dim(((m, c),)) if m else c)]
    return len(found) == 1 and found[0][0] == ((name, 1),)
