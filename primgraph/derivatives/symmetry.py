"""Gradients with symmetric derivatives: those of one function.

The derivative of a gradient by its own inputs is a Hessian, which equals its transpose, so reverse
mode can use forward mode. The transposed program would compute the same up to rounding, with many
more equations: their number doubles with each order, and grows polynomially in forward mode.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from primgraph.derivatives.request import Request
from primgraph.derivatives.subgraph import Path, reached_by
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.gradient_names import Joint
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Op
from primgraph.primitives.elementwise import (
    add,
    cast,
    cos,
    div,
    exp,
    log,
    mul,
    neg,
    power,
    sin,
    sqrt,
    sub,
    tanh,
)
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, permute, reshape
from primgraph.transforms.dataflow.activity import dependent_values

# Ops that use every element of their operands, for all values.
_WHOLE: frozenset[Op] = frozenset((
    add, sub, neg, mul, div, power, sqrt, exp, log, sin, cos, tanh,
    reduce_sum, broadcast, reshape, permute, matmul, cast,
))  # fmt: skip
# Gradients that a value depends on, each with its joint, in the order of recording.
Passed: TypeAlias = dict[Value, Joint]


def note_joint(
    request: Request, path: Path, seeds: Sequence[Value | None], results: Sequence[Value | None]
) -> None:
    """Note in the builder gradients whose derivative by the inputs of `request` is symmetric.

    This holds for derivatives of one function by independent inputs: no seed varies with these, no
    intermediate value is held constant, and every derivative is that of the computed value.
    """
    builder, inputs = request.builder, request.inputs
    if len(set(inputs)) < len(inputs) or (len(inputs) > 1 and not _all_given(builder, inputs)):
        return
    if _has_own_slopes(path.graph):
        return
    if _holds_something(request):
        return
    given = [s for s in seeds if s is not None]
    if given and any(reached_by(builder, inputs, given)):
        return
    joint = Joint(tuple(inputs), tuple(results))
    for value in results:
        if value is not None and value not in inputs and builder.definition(value) is not None:
            builder.joints.setdefault(value, joint)


def _holds_something(request: Request) -> bool:
    """Return whether an input, or an intermediate value computed from one, is held constant."""
    held, inputs = request.constants, request.inputs
    if not held:
        return False
    way = request.builder.between(inputs, request.outputs)
    return not held.isdisjoint(inputs) or any(v in held for e in way for v in e.outputs)


def gradients_passed(request: Request) -> Passed:
    """Return the gradients between inputs and outputs, by all of these inputs."""
    builder, wanted = request.builder, set(request.inputs)
    if not any(wanted.issubset(joint.inputs) for joint in builder.joints.values()):
        return {}
    found: Passed = {}
    ends = set(request.outputs)
    for eqn in builder.between(request.inputs, request.outputs, request.constants):
        for value in eqn.outputs:
            joint = builder.joints.get(value)
            if joint is None or not wanted.issubset(joint.inputs):
                continue
            if not ends.isdisjoint(joint.inputs) or _is_held(request, joint):
                continue
            found[value] = joint
    if not found:
        return {}
    after = replace(request, inputs=[*request.inputs, *found], apart=True).path
    if not _is_whole(after.graph, after.moved):
        return {}
    return {v: joint for v, joint in found.items() if v in after.wrt}


def _is_whole(graph: Graph, wrt: Sequence[Value]) -> bool:
    """Return whether no selection makes elements of nonzero cotangents zero.

    Such zeros would be multiplied by derivatives, which may be infinite.
    """
    active = dependent_values(graph, wrt)
    return all(
        eqn.op in _WHOLE or eqn.op.formal
        for eqn in graph.body
        if not active.isdisjoint(eqn.inputs) and not active.isdisjoint(eqn.outputs)
    )


def _is_held(request: Request, joint: Joint) -> bool:
    """Return whether a value that gradients are computed from is now held constant."""
    if not request.constants:
        return False
    known = [v for v in joint.gradients if v is not None]
    between = request.builder.between(joint.inputs, known)
    held = request.constants
    return any(v in held for eqn in between for v in eqn.outputs) or any(
        v in held for v in joint.inputs
    )


def _all_given(builder: Builder, values: Collection[Value]) -> bool:
    """Return whether all `values` are inputs."""
    return all(builder.definition(v) is None for v in values)


def _has_own_slopes(graph: Graph) -> bool:
    """Return whether some op has a derivative that differs from that of its computed value.

    Values held constant inside an op with its own derivative do not count: softmax holds its
    result.
    """
    waiting = [graph]
    while waiting:
        body = waiting.pop()
        held: set[Value] = set()
        needed = set(body.outputs)
        for eqn in reversed(body.body):
            if needed.isdisjoint(eqn.outputs):
                continue
            if eqn.op.stops:
                if not held.issuperset(eqn.outputs):
                    return True
                continue
            if eqn.op.own_slope == "given":
                return True
            if eqn.op.own_slope:
                first, *others = eqn.inputs
                if first not in needed:
                    held.add(first)
                needed.update(others)
            else:
                held.difference_update(eqn.inputs)
                needed.update(eqn.inputs)
            waiting += eqn.bodies
    return False
