"""Reverse mode: transpose a linear graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from primgraph.base.providers import late
from primgraph.base.user_lines import Source
from primgraph.errors import MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Linear, Primitive, recording
from primgraph.ir.rebuild import (
    NOWHERE,
    RuleCache,
    full_value,
    input_positions,
    origin_lines,
    require_primitive,
    transposed_source,
)
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import zeros_like
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.loops.stacks import add_stacks

if TYPE_CHECKING:
    from primgraph.transforms import partial_eval
    from primgraph.transforms.optimize import prune_bodies
else:
    prune_bodies = late("primgraph.transforms.optimize.prune_bodies")
    partial_eval = late("primgraph.transforms.partial_eval")


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def transpose(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Turn `F(x, dx) -> dy`, linear in `dx`, into `F_t(x, ct_dy) -> ct_dx`.

    `wrt` holds the positions of the inputs `dx`. Equations that do not depend on them are copied
    in order; the others are visited in reverse, and cotangents of one value are added.
    For all u and v: `<u, F(x, v)> == <F_t(x, u), v>`.

    Raises `MissingRuleError`, with the op and the user's line, where the graph is not linear.

    >>> graph = pg.trace(lambda a, dx: pg.sum(a * dx), pg.spec(3), pg.spec(3))
    >>> print(pg.transforms.transpose(graph, [1]))
    graph f_t(%a: f64[3], %0: f64[]) {
      %1: f64[3] = broadcast(%0, new_axes=(0,), shape=(3,))
      %2: f64[3] = mul(%1, %a)
      return %2
    }
    """
    dx = [graph.inputs[i] for i in input_positions(graph, wrt)]
    if graph.has_bodies:
        # An unused operand would get a cotangent of zeros instead of none.
        graph = prune_bodies.prune_bodies(partial_eval.separate_linear(graph, dx), deep=True)
    return transpose_separated(graph, wrt)


def transpose_separated(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Transpose a graph that `separate_linear` has split, or a body in such a graph.

    Its bodies are separated at every depth; separating again at each level would take quadratic
    time.
    """
    dx = [graph.inputs[i] for i in wrt]
    if graph.has_bodies:
        # A carry that no output needs has a tangent, and would get a cotangent of zeros.
        graph = prune_bodies.prune_bodies(graph)
    linear = set(dx)
    builder = Builder(f"{graph.name}_t", source=NOWHERE)
    for value in graph.inputs:
        if value not in linear:
            builder.share_input(value)
    moved: dict[Value, Value] = {}
    cache = RuleCache(builder)
    with recording(builder):
        equations = _linear_equations(builder, graph, linear, moved)
        cts: dict[Value, Value] = {}
        for place, value in enumerate(graph.outputs):
            ct = builder.input(value.type)
            _check_output(builder, place, value, linear, moved)
            _accumulate(cts, value, ct)
        line: Source | None = None
        for eqn in reversed(equations):
            if line is None or eqn.source is not line:
                line, builder.source = eqn.source, transposed_source(eqn)
            _pull_back(cache, eqn, linear, moved, cts)
        found = [cts[v] if v in cts else zeros_like(v) for v in dx]
    return builder.graph(found)


def _linear_equations(
    builder: Builder, graph: Graph, linear: set[Value], moved: dict[Value, Value]
) -> list[Equation]:
    """Copy equations that do not depend on `linear`; return the others, and extend `linear`."""
    others, equations = [], []
    for eqn in graph.body:
        if linear.isdisjoint(eqn.inputs):
            others.append(eqn)
        else:
            equations.append(eqn)
            linear.update(eqn.outputs)
    builder.add_all(others, moved, shared=True)
    return equations


def _check_output(
    builder: Builder, place: int, value: Value, linear: set[Value], moved: dict[Value, Value]
) -> None:
    if value not in linear and full_value(builder, moved.get(value, value)) != 0:
        raise MissingRuleError(
            f"output {place}, {value.type}, does not depend on what the graph is transposed by",
            hint="keep only the linear outputs, such as the tangents, which come after the values: "
            "graph.with_outputs(graph.outputs[n:])",
        )


def _accumulate(cts: dict[Value, Value], value: Value, ct: Value) -> None:
    cts[value] = add_stacks(cts[value], ct) if value in cts else ct


def _pull_back(
    cache: RuleCache,
    eqn: Equation,
    linear: set[Value],
    moved: dict[Value, Value],
    cts: dict[Value, Value],
) -> None:
    """Add the contributions of the output cotangents of `eqn` to its input cotangents."""
    present = [cts.pop(v, None) for v in eqn.outputs]
    if present.count(None) == len(present):
        return
    op = require_primitive(eqn)
    operands: list[Any] = [
        _placeholder(v.type) if v in linear else moved.get(v, v) for v in eqn.inputs
    ]
    key, kinds = None, [v.__class__ for v in operands]
    if not op.has_bodies:
        given = [v is not None for v in present]
        key = (op.name, id(eqn.params), *given, *kinds, *[v.type for v in eqn.inputs])
    values = [v for v in (*present, *operands) if v.__class__ is Value]
    results = cache.apply(
        key, values, lambda builder: _contributions(builder, eqn, op, present, operands)
    )
    for value, ct in zip(eqn.inputs, results, strict=True):
        if ct is not None and value in linear:
            _accumulate(cts, value, ct)


def _contributions(
    builder: Builder,
    eqn: Equation,
    op: Primitive[Any],
    present: Sequence[Value | None],
    operands: Sequence[Any],
) -> Sequence[Value | None]:
    """Return what the transposed `eqn` adds to the cotangents of its operands, None for nothing."""
    _check_linear(builder, eqn, op, operands)
    if None in present:
        # The row count of a growing stack is unknown, so zeros cannot be made: rules skip None.
        present = [
            zeros_like(v) if ct is None and not is_open(v.shape) else ct
            for v, ct in zip(eqn.outputs, present, strict=True)
        ]
    try:
        rule = op.transpose_rule
    except MissingRuleError as error:
        raise error.located(origin_lines(eqn)) from None
    found: Sequence[Value | None] = rule(
        present if op.multiple else present[0], *operands, **eqn.kwargs
    )
    return found


@cache
def _placeholder(type: TensorType) -> Linear:
    return Linear(type)


def _check_linear(
    builder: Builder, eqn: Equation, op: Primitive[Any], operands: Sequence[Any]
) -> None:
    """Raise unless an equation is jointly linear in its linear operands."""
    kinds = [x.__class__ for x in operands]
    marked = kinds.count(Linear)
    if marked == (1 if op.linear == "each" else len(kinds) if op.linear is True else 0):
        return
    if op.separate_rule is not None:
        # Checked when the body is transposed.
        return
    places = [i for i, kind in enumerate(kinds) if kind is Linear]
    allowed = op.linear_operands(len(operands), eqn.kwargs)
    others = [i for i in allowed if i not in places]
    if not set(places) <= set(allowed):
        fault = f"{op.name} is not linear in operand {next(i for i in places if i not in allowed)}"
    elif op.linear == "each":
        fault = f"{op.name} is a product of two linear operands"
    elif any(full_value(builder, operands[i]) != 0 for i in others):
        fault = f"{op.name} adds a constant, which makes it affine"
    else:
        return
    raise MissingRuleError(f"the graph is not linear: {fault}", origin=origin_lines(eqn))
