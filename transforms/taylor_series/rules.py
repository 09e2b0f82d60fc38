"""Rules of derivatives as graphs, traced once for each primitive and types of operands."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, final

from primgraph.errors import MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.params import Params, bits
from primgraph.ir.primitive import Primitive, Types
from primgraph.ir.rebuild import NOWHERE
from primgraph.primitives.constants import filled_constant


@final
class TracedRules:
    """Graphs of JVP rules and of functions of values, which carry the source line of `around`."""

    def __init__(self, around: Builder) -> None:
        self._around = around
        self._tangents: dict[Hashable, tuple[Graph, list[bool]]] = {}
        self._functions: dict[Hashable, Graph] = {}

    def _builder(self, name: str) -> Builder:
        return Builder(name, source=self._around.source or NOWHERE)

    def function(
        self, function: Callable[..., Value], types: Types, options: Mapping[str, Hashable]
    ) -> Graph:
        """Return the graph of `function` of values of these types, with one output."""
        key = (function, types, *options.items())
        if key not in self._functions:
            builder = self._builder(function.__name__)
            with builder:
                found = function(*[builder.input(t) for t in types], **options)
            self._functions[key] = builder.graph([found])
        return self._functions[key]

    def tangents(
        self,
        op: Primitive[Any],
        types: Types,
        results: Types,
        params: Params,
        places: tuple[int, ...],
        linear: bool,
    ) -> tuple[Graph, list[bool]]:
        """Return a graph of the tangents of the results, and which results have one.

        Its inputs are results, operands, and tangents of the operands at `places`.
        """
        key = (op.name, types, bits(params) if params else (), places)
        if key in self._tangents:
            return self._tangents[key]
        builder, given = self._builder(op.name), dict(params)
        with builder:
            z = tuple([builder.input(t) for t in results])
            x = [builder.input(t) for t in types]
            dx = {i: builder.input(types[i]) for i in places}
            found: Sequence[Value | None]
            if op.pushforward_rule is not None:
                found = op.pushforward_rule(x, dx, False, **given)
            elif linear:
                lines = op.linear_operands(len(x), given)
                operands = [
                    dx.get(i, filled_constant(0, v.type) if i in lines and v.type.is_inexact else v)
                    for i, v in enumerate(x)
                ]
                found = builder.emit(op, operands, given)
            else:
                found = _apply_rule(op, places[0], (z if op.multiple else z[0], *x), dx, given)
            outputs = [v for v in found if v is not None]
        result = builder.graph(outputs), [v is not None for v in found]
        self._tangents[key] = result
        return result


def _apply_rule(
    op: Primitive[Any],
    place: int,
    given: Sequence[Any],
    dx: Mapping[int, Value],
    params: Mapping[str, Any],
) -> Sequence[Value | None]:
    rule = op.jvp_rule(place)
    if rule is None:
        raise MissingRuleError(
            f"primitive {op.name} has no jvp rule for operand {place}",
            hint=f"declare one with @{op.name}.jvp({place})",
        )
    found = rule(*given, dx[place], **params)
    return found if op.multiple else (found,)
