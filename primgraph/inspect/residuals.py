"""Residual memory of reverse mode."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import larger
from primgraph.primitives.control import Flow, flow_of
from primgraph.transforms.loops.stacks import fills
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.pullback import pushforward
from primgraph.transforms.unzip_linear import unzip


def residual_bytes(graph: Graph) -> int:
    """Return the bytes of residuals of `graph`, of primitives, for derivatives by all float inputs.

    Residuals are values that the linear part reads from the primal part; in loops those of each
    step. Inputs and their views do not count. Checkpoints recompute their residuals one after the
    other, so that only the largest one counts.
    """
    count = len(graph.inputs)
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_inexact]
    if not wrt or not any(v.type.is_inexact for v in graph.outputs):
        return 0
    linear = pushforward(graph, wrt, "cotangent")
    return _residual_bytes(linear, range(count, count + len(wrt)))


def _residual_bytes(graph: Graph, wrt: Sequence[int]) -> int:
    """Return the bytes that the part linear in the inputs `wrt` reads from the primal part."""
    primal, linear = unzip(graph, wrt)
    linear = clean_up(linear)
    count = len(linear.inputs) - len(wrt)
    if not linear.outputs:
        return 0
    primal = clean_up(primal)
    read = {v for e in linear.body for v in e.inputs}
    kept = primal.outputs[len(primal.outputs) - count :]
    defined = {v: e for e in primal.body for v in e.outputs}
    roots = {_root(v, defined) for v, own in zip(kept, linear.inputs, strict=False) if own in read}
    total = sum(v.type.nbytes for v in roots if v in defined and not _is_literal(defined[v]))
    seeds = linear.inputs[count:]
    return total + _stack_bytes(linear, seeds) + _again(linear, seeds)


def _stack_bytes(graph: Graph, seeds: Sequence[Value]) -> int:
    """Return the bytes of growing stacks that a linear graph fills itself."""
    linear = forward_slice(graph.body, seeds)
    made = (v for e in graph.body if fills(e) for v in e.outputs if is_open(v.shape))
    return sum(v.type.nbytes for v in made if v not in linear)


def _again(graph: Graph, seeds: Sequence[Value]) -> int:
    """Return the largest residual of a checkpoint in a linear graph."""
    linear, most = set(seeds), 0
    for eqn in graph.body:
        flags = [v in linear for v in eqn.inputs]
        if any(flags):
            linear.update(eqn.outputs)
            for body in eqn.bodies:
                # Operands before those of bodies are an index or a count.
                given = flags[len(flags) - len(body.inputs) :]
                places = [i for i, is_one in enumerate(given) if is_one]
                inside = (
                    _residual_bytes(body, places)
                    if flow_of(eqn) is Flow.ONCE
                    else _again(body, [body.inputs[i] for i in places])
                )
                most = larger(most, inside)
    return most


def _root(value: Value, defined: dict[Value, Equation]) -> Value:
    """Return the base of a view."""
    while value in defined and defined[value].op.is_view:
        value = defined[value].inputs[0]
    return value


def _is_literal(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.literal
