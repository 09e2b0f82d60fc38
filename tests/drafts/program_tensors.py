"""Random programs computed with tensors: looked at whenever, and differentiated eagerly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from program_derivatives import demand
from program_tolerance import differs, roughly_differs
from random_programs import Program

import primgraph as pg
from primgraph.derivatives.grad import grad
from primgraph.eager.node import Node, array_node
from primgraph.eager.steps import Step, Traced
from primgraph.eager.tensor import Tensor
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.params import bits
from primgraph.operators.variable import Variable
from primgraph.transforms import dead_code, lower

Arrays = Sequence[np.ndarray]
Look = Callable[[Tensor], object]

# How often derivatives of second order are taken.
_SECOND_ORDER = 0.4
# By how many units in the last place each equation of a gradient may be off.
_ULPS = 4.0

_steps: dict[object, Step] = {}


def step_of(eqn: Equation, place: int) -> Step:
    """The step of one equation, for one of its results; the same for equal equations."""
    key = (eqn.op, bits(eqn.params), tuple(v.type for v in eqn.inputs), place)
    if key not in _steps:
        builder = Builder("step")
        inputs = [builder.input(v.type) for v in eqn.inputs]
        results = builder.emit(eqn.op, inputs, eqn.kwargs)
        _steps[key] = Traced(builder.graph([results[place]]))
    return _steps[key]


def as_tensors(graph: Graph, inputs: Sequence[Tensor], look: Look) -> list[Tensor]:
    """The results of `graph`, computed with tensors, each of which is shown to `look`."""
    known: dict[Value, Tensor] = dict(zip(graph.inputs, inputs, strict=True))
    for eqn in graph.body:
        nodes = tuple(known[v].node for v in eqn.inputs)
        for place, value in enumerate(eqn.outputs):
            step = step_of(eqn, place)
            tracked = any(nodes[i].tracked for i in step.reaching)
            known[value] = Tensor(Node(value.type, step, nodes, tracked, None))
            look(known[value])
    return [known[v] for v in graph.outputs]


def ways(rng: np.random.Generator) -> list[Look]:
    """When one may look: always, at the end (known from the second time on), now and then."""
    return [
        lambda t: t.numpy(),
        lambda t: None,
        lambda t: None,
        lambda t: t.numpy() if rng.random() < 0.3 else None,
    ]


def check_tensors(program: Program, seen: Counter[str]) -> None:
    """Tensors have the values that the interpreter finds, and the gradients of the compiled way."""
    rng = np.random.default_rng((program.seed, 7))
    graph = lower(program.graph)
    expected = interpret(graph, *program.feeds)
    for look in ways(rng):
        inputs = [_leaf(v, x, False) for v, x in zip(graph.inputs, program.feeds, strict=True)]
        found = [t.numpy() for t in as_tensors(graph, inputs, look)]
        fault = differs(graph, program.feeds, expected, found)
        demand(not fault, f"tensors: {fault}")
    seen["tensors"] += 1
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    outputs = [v for v in graph.outputs if v.type.is_float]
    if program.smooth and wrt and outputs:
        orders = 2 if rng.random() < _SECOND_ORDER else 1
        _check_gradients(dead_code(graph.with_outputs(outputs)), program.feeds, wrt, orders, rng)
        seen[f"gradients of tensors, order {orders}"] += 1


def _leaf(value: Value, array: np.ndarray, tracked: bool) -> Tensor:
    return Tensor(array_node(np.array(array, value.dtype), tracked and value.type.is_float))


def _check_gradients(
    graph: Graph, feeds: Arrays, wrt: Sequence[int], orders: int, rng: np.random.Generator
) -> None:
    """Gradients for random seeds, and of these again, where tensors are looked at whenever."""
    seeds = [rng.normal(size=v.shape).astype(v.dtype) for v in graph.outputs]
    weights = [rng.normal(size=graph.inputs[i].shape) for i in wrt]
    static = _gradients(graph, wrt, seeds, weights, orders)
    if static is None:
        return
    expected = [np.asarray(x + 0.0, x.dtype) for x in interpret(static, *feeds)]
    for look in ways(rng):
        inputs = [_leaf(v, x, True) for v, x in zip(graph.inputs, feeds, strict=True)]
        found = as_tensors(graph, inputs, look)
        leaves = [inputs[i] for i in wrt]
        results = _backwards(found, leaves, seeds, orders > 1)
        if orders > 1:
            results = _backwards(results, leaves, [w.astype(t.dtype) for w, t in zip(
                weights, results, strict=True)], False)  # fmt: skip
        arrays = [np.asarray(t.numpy() + 0.0, t.dtype) for t in results]
        # Contributions are added in another order, where several ways lead to an input.
        fault = roughly_differs(static, feeds, expected, arrays, _ULPS)
        demand(not fault, f"gradients of tensors, order {orders}: {fault}")


def _backwards(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Arrays, again: bool
) -> list[Tensor]:
    """Gradients by `inputs`, zeros for those that do not matter."""
    reached = [i for i, t in enumerate(outputs) if t.requires_grad]
    if not reached:
        return [pg.zeros_like(t) for t in inputs]
    found = pg.autograd.grad(
        [outputs[i] for i in reached],
        inputs,
        [pg.tensor(seeds[i]) for i in reached],
        create_graph=again,
        materialize_grads=True,
    )
    return [t for t in found if t is not None]


def _gradients(
    graph: Graph, wrt: Sequence[int], seeds: Arrays, weights: Arrays, orders: int
) -> Graph | None:
    """The same as a graph; None where no output depends on any input."""
    builder = Builder("gradients")
    inputs = [builder.input(v.type) for v in graph.inputs]
    with builder:
        results = [Variable(builder, v) for v in builder.inline(graph, inputs)]
        leaves = [Variable(builder, inputs[i]) for i in wrt]
        try:
            found = grad(results, leaves, list(seeds), materialize_grads=True)
        except pg.NotDifferentiable:
            return None
        if orders > 1:
            found = grad(found, leaves, list(weights), materialize_grads=True)
    return lower(builder.graph([v.value for v in found]))
