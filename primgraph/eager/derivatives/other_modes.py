"""Forward-mode, Jacobian, Hessian and jet nodes of tensors, derived once per structure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from primgraph.base.user_lines import instruction
from primgraph.derivatives.differential_operators import divergence, hessian_diagonal, laplacian
from primgraph.derivatives.grad import forward_grad
from primgraph.derivatives.matrices.jacobian import (
    Hessian,
    Jacobian,
    batched_jacobian,
    hessian,
    jacobian,
)
from primgraph.eager.derivatives.gradient_nodes import (
    RULES,
    DerivativeRequest,
    Found,
    derived_step,
    path,
)
from primgraph.eager.derivatives.recording import is_within
from primgraph.eager.node import Node, array_node, nodes_to_compute
from primgraph.eager.run import compute, graph_of
from primgraph.eager.steps import as_argument
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType, as_dtype
from primgraph.operators.variable import Variable


def _forward(outputs: list[Variable], inputs: list[Variable], seeds: list[Any]) -> Found:
    found: Found = forward_grad(outputs, inputs, seeds)
    return found


def _flat(blocks: Sequence[Sequence[Variable]]) -> Found:
    return [block for row in blocks for block in row]


def _jacobian(
    outputs: list[Variable], inputs: list[Variable], seeds: list[Any], mode: str | None
) -> Found:
    return _flat(jacobian(outputs, inputs, mode=mode, holomorphic=_are_complex(outputs, inputs)))


def _batched_jacobian(
    outputs: list[Variable], inputs: list[Variable], seeds: list[Any], check: bool
) -> Found:
    holomorphic = _are_complex(outputs, inputs)
    return _flat(batched_jacobian(outputs, inputs, check=check, holomorphic=holomorphic))


def _are_complex(outputs: Sequence[Variable], inputs: Sequence[Variable]) -> bool:
    """Return whether outputs and inputs are complex: mixtures were rejected before."""
    return all(v.type.is_complex for v in (*outputs, *inputs))


def _strips(
    outputs: list[Variable],
    inputs: list[Variable],
    seeds: list[Any],
    of: str,
    axis: int,
    numbers: tuple[int, ...],
    is_batched: bool,
    check: bool,
) -> Found:
    """Compute rows (axis 0) or columns (axis 1) of a derivative matrix."""
    function = outputs if of == "Jacobian" else outputs[0]
    more = {"holomorphic": _are_complex(outputs, inputs)} if of == "Jacobian" else {}
    found = _MATRICES[of](function, inputs, is_batched, check=check, **more)
    found._matrix.choose(("reverse", "forward")[axis])
    lead = (slice(None),) * (is_batched + axis)
    return [found[(*lead, list(numbers))]]


_MATRICES: dict[str, Any] = {"Jacobian": Jacobian, "Hessian": Hessian}


def _hessian(outputs: list[Variable], inputs: list[Variable], seeds: list[Any]) -> Found:
    return _flat(hessian(outputs[0], inputs))


def _jet(
    outputs: list[Variable], inputs: list[Variable], seeds: list[Any], **options: Any
) -> Found:
    found: Found = import_module("primgraph.derivatives.jets").tensor_derivatives(
        outputs, inputs, seeds, **options
    )
    return found


def _operator(of: Callable[..., Any]) -> Callable[..., Found]:
    """Return the rule of a differential operator, with one result or a list of them."""

    def rule(
        outputs: list[Variable], inputs: list[Variable], seeds: list[Any], **options: Any
    ) -> Found:
        found: Variable | list[Variable] = of(outputs[0], inputs[0], **options)
        return found if isinstance(found, list) else [found]

    return rule


def _late(name: str) -> Callable[..., Any]:
    """Return a function of `partials`, which is imported when it is called."""
    return lambda *args, **options: getattr(import_module(_PARTIALS), name)(*args, **options)


_PARTIALS = "primgraph.derivatives.partials"


RULES |= {
    "forward_grad": _forward,
    "jacobian": _jacobian,
    "batched_jacobian": _batched_jacobian,
    "hessian": _hessian,
    "strips": _strips,
    "hessian_diagonal": _operator(hessian_diagonal),
    "laplacian": _operator(laplacian),
    "divergence": _operator(divergence),
    "jet": _jet,
    "partials": _operator(_late("partials")),
    "biharmonic": _operator(_late("biharmonic")),
}


def answers(
    name: str,
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    types: Sequence[TensorType],
    *,
    seeds: Sequence[Node | None] = (),
    tracked: bool,
    options: Mapping[str, Hashable] = MappingProxyType({}),
) -> list[Node]:
    """Return nodes of the given types for all results of the named derivative.

    At least one output must depend on an input.
    """
    present = [s for s in seeds if s is not None]
    seeded = tuple([s is not None for s in seeds])
    question = DerivativeRequest(name, len(outputs), len(inputs), seeded, tuple(options.items()))
    operands, line = (*outputs, *inputs, *present), instruction()
    return [
        Node(t, derived_step(question, place, t), operands, tracked, line)
        for place, t in enumerate(types)
    ]


def jets(
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    curves: Sequence[Mapping[int, Node | None]],
    order: int,
    *,
    tracked: bool,
    last: bool = False,
) -> list[Sequence[Node] | None]:
    """Compute the derivatives of `outputs` up to `order` (only the `last` if set) along `curves`.

    The entry is None for an output that depends on no input.
    """
    known = dependent_nodes(outputs, inputs)
    moved = [n for n in outputs if n in known]
    if not moved:
        return [None] * len(outputs)
    count = 1 if last else order
    seeds = [s for curve in curves for s in curve.values()]
    options = {"orders": tuple([tuple(c) for c in curves]), "order": order, "last": last}
    types = [n.type for n in moved for _ in range(count)]
    found = answers("jet", moved, inputs, types, seeds=seeds, tracked=tracked, options=options)
    by_output = {n: found[i * count :][:count] for i, n in enumerate(moved)}
    return [by_output.get(n) for n in outputs]


def tangents(
    outputs: Sequence[Node], inputs: Sequence[Node], seeds: Sequence[Node | None], *, tracked: bool
) -> list[Node | None]:
    """Compute the tangents of `outputs` along `seeds`; None for one that depends on no input."""
    known = dependent_nodes(outputs, inputs)
    moved = [n for n in outputs if n in known]
    if not moved:
        return [None] * len(outputs)
    found = answers(
        "forward_grad", moved, inputs, [n.type for n in moved], seeds=seeds, tracked=tracked
    )
    by_output = dict(zip(moved, found, strict=True))
    return [by_output.get(n) for n in outputs]


def matrix(
    name: str,
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    *,
    tracked: bool,
    options: Mapping[str, Hashable],
    is_batched: bool = False,
) -> list[list[Node]]:
    """Return one block per output and input, with the axes of both; zeros if no output depends on
    an input.

    All blocks are of the dtype that outputs and inputs have in common. With `is_batched`, they
    share the first axis.
    """
    pairs = [(y.type, x.type) for y in outputs for x in inputs]
    shapes = [(*y.shape, *x.shape[int(is_batched) :]) for y, x in pairs]
    if dependent_nodes(outputs, inputs).isdisjoint(outputs):
        found = [
            array_node(np.zeros(shape, x.dtype))
            for shape, (_, x) in zip(shapes, pairs, strict=True)
        ]
    else:
        dtype = as_dtype(np.result_type(*(n.type.dtype for n in (*outputs, *inputs))))
        types = [TensorType(shape, dtype) for shape in shapes]
        found = answers(name, outputs, inputs, types, tracked=tracked, options=options)
    width = len(inputs)
    return [found[i : i + width] for i in range(0, len(found), width)]


def dependent_nodes(
    outputs: Sequence[Node], inputs: Sequence[Node], *, ready: bool = True
) -> set[Node]:
    """Return the nodes on the tape of `outputs` that depend on `inputs`.

    With `ready`, calls of custom rules are prepared for differentiation, as by `path`.
    """
    found = set(inputs)
    for node in sorted(path(outputs, ready=ready), key=lambda n: n.number):
        step = node.step
        if step is not None and any(node.inputs[i] in found for i in step.reaching):
            found.add(node)
    return found


def argument(node: Node) -> Node:
    """Return a copy of a node to differentiate by; no other node is equal to it."""
    return Node(node.type, as_argument(node.type), (node,), True, instruction())


def depends_beyond(outputs: Sequence[Node], arguments: Sequence[Node]) -> bool:
    """Return whether derivatives of `outputs` reach nodes other than `arguments` or their
    sources."""
    own = set(arguments)
    if any(n.inputs and n.inputs[0].tracked for n in arguments):
        return True
    first = min((n.number for n in arguments), default=0)
    way = path(outputs, arguments, ready=False)
    return any(n not in own and _is_source(n, first) for n in way)


def _is_source(node: Node, first: int) -> bool:
    """Return whether a tracked node is tracked as a leaf and not because of its inputs.

    Arguments of functions called after node `first`, and of functions that have returned, do not
    count: no derivative by these can be requested.
    """
    step = node.step
    if step is None:
        return True
    if step is as_argument(node.type) and not is_within.get():
        return False
    return node.number < first and not any(node.inputs[i].tracked for i in step.reaching)


def graph_between(inputs: Sequence[Node], outputs: Sequence[Node]) -> tuple[Graph, list[Node]]:
    """Return the graph that computes `outputs` from `inputs`, and the nodes of its inputs.

    After `inputs` follow the other nodes that the tape needs, already computed.
    """
    starts = set(inputs)
    nodes = sorted({*path(outputs), *nodes_to_compute(outputs)} - starts, key=lambda n: n.number)
    made = [n for n in nodes if n.step is not None]
    inside = {*made, *starts}
    used = dict.fromkeys(n for node in made for n in node.inputs)
    others = [n for n in dict.fromkeys((*used, *outputs)) if n not in inside]
    compute(others)
    leaves = [*inputs, *others]
    return graph_of(made, leaves, [*outputs]), leaves
