"""Nodes that values depend on, where gradients depend on operands of nonlinear steps alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from primgraph.eager.derivatives.gradient_nodes import Derived, path
from primgraph.eager.derivatives.reverse import tracked_inputs, used_tape
from primgraph.eager.node import Node
from primgraph.eager.steps import Step, Traced
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.transforms.lower import lower


def keep_reached(nodes: Sequence[Node], outputs: Iterable[Node], way: Iterable[Node]) -> list[Node]:
    """Return those of `nodes` that `outputs` depend on, whose tape is `way`."""
    if not any(type(n.step) is Derived for n in way):
        return [*nodes]
    reached = nodes_reached(outputs)
    return [n for n in nodes if n in reached]


def nodes_reached(outputs: Iterable[Node]) -> set[Node]:
    """Return the tracked nodes that the values of `outputs` depend on differentiably.

    The gradient of `x @ w + b` by `x` depends on `w`, but not on `b`: it depends on the seeds, and
    on operands of steps that are not linear in them. Others have no gradient, rather than zeros.
    """
    waiting = [n for n in outputs if n.tracked]
    found = set(waiting)
    # Gradients of the same outputs by several inputs share the tuple of operands.
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if type(node.step) is not Derived or node.step.question.name != "grad":
            others = tracked_inputs(node)
        elif id(node.inputs) in seen:
            continue
        else:
            seen.add(id(node.inputs))
            others = _operands_of_gradient(node, node.step)
        for other in others:
            if other.tracked and other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _operands_of_gradient(node: Node, step: Derived) -> list[Node]:
    """Return the nodes whose values a gradient uses: seeds, and operands of nonlinear steps."""
    question = step.question
    ends = question.outputs + question.inputs
    outputs, inputs = node.inputs[: question.outputs], node.inputs[question.outputs : ends]
    cut = node.inputs[ends : ends + question.cut]
    used = [*node.inputs[ends + question.cut :]]
    for other in used_tape(path(outputs, cut, ready=False), inputs):
        if other.passed is None and type(other.step) is Derived:
            # A derivative of a gradient depends on nothing else than the gradient does.
            used.append(other)
        elif other.passed is not None or not isinstance(other.step, Traced):
            used += tracked_inputs(other)
        else:
            used += [other.inputs[i] for i in _nonlinear_operands(other.step)]
    return used


@lru_cache(maxsize=4096)
def _nonlinear_operands(step: Step) -> tuple[int, ...]:
    """Return the positions of the operands whose values the derivative of a step uses."""
    assert isinstance(step, Traced)
    graph: Graph = lower(step.graph)
    known: dict[Value, int] = {v: 1 << i for i, v in enumerate(graph.inputs) if v.type.is_inexact}
    used = 0
    for eqn in graph.body:
        assert isinstance(eqn.op, Primitive)
        masks = [known.get(v, 0) for v in eqn.inputs]
        if eqn.op.linear == "each":
            is_linear = sum(map(bool, masks)) < 2
        else:
            linear = eqn.op.linear_operands(len(masks), dict(eqn.params))
            is_linear = all(not mask or i in linear for i, mask in enumerate(masks))
        both = 0
        for mask in masks:
            both |= mask
        if not is_linear:
            used |= both
        known.update((v, both) for v in eqn.outputs if v.type.is_inexact)
    return tuple([i for i in range(len(graph.inputs)) if used >> i & 1])
