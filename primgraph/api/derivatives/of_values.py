"""Derivatives of computed tensors, by tensors that they depend on.

They are recorded like other operations, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from primgraph.derivatives.request import require_direction, require_scalar
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.backward import seeds_of
from primgraph.eager.derivatives.other_modes import answers, dependent_nodes, jets, matrix, tangents
from primgraph.eager.derivatives.reverse import collect_tape
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import origin_of
from primgraph.eager.tensor import Tensor, tensors_in
from primgraph.errors import ArgumentError, NotDifferentiable, ShapeError
from primgraph.ir.types import TensorType


def forward_grad(outputs: Any, inputs: Any, grad_inputs: Any, order: int) -> Any:
    """Compute `pg.forward_grad` of tensors."""
    ends, starts = nodes_of("forward_grad", outputs, inputs)
    seeds = seeds_of(starts, grad_inputs, ones=True)
    tracked = recording.is_on.get()
    if order == 1:
        found = tangents(ends, starts, seeds, tracked=tracked)
    else:
        curves = [{1: seed} for seed in seeds]
        rows = jets(ends, starts, curves, order, tracked=tracked, last=True)
        found = [None if row is None else row[0] for row in rows]
    tensors = tuple([None if n is None else Tensor(n) for n in found])
    return tensors[0] if isinstance(outputs, Tensor) else tensors


def taylor(outputs: Any, inputs: Any, order: int, direction: Any) -> Any:
    """Compute `pg.taylor` of tensors."""
    ends, starts = nodes_of("taylor", outputs, inputs)
    curves = [{1: seed} for seed in seeds_of(starts, direction, ones=True)]
    rows = jets(ends, starts, curves, order, tracked=recording.is_on.get())
    tensors = [
        [Tensor(end), *map(Tensor, row or [zeros(end.type)] * order)]
        for end, row in zip(ends, rows, strict=True)
    ]
    return tensors[0] if isinstance(outputs, Tensor) else tensors


def jacobian(y: Any, x: Any, mode: str | None, holomorphic: bool) -> Any:
    """Compute `pg.jacobian` of tensors."""
    _require_direction("jacobian", y, x, holomorphic)
    return _matrix("jacobian", y, x, False, mode=mode)


def batched_jacobian(y: Any, x: Any, check: bool, holomorphic: bool) -> Any:
    """Compute `pg.batched_jacobian` of tensors."""
    _require_direction("batched_jacobian", y, x, holomorphic)
    return _matrix("batched_jacobian", y, x, True, check=check)


def _require_direction(name: str, y: Any, x: Any, holomorphic: bool) -> None:
    inputs, outputs = [t.type for t in tensors_in(x)], [t.type for t in tensors_in(y)]
    require_direction(name, inputs, outputs, holomorphic)


def hessian(y: Any, x: Any) -> Any:
    """Compute `pg.hessian` of tensors."""
    ends, starts = nodes_of("hessian", y, x)
    if len(ends) != 1:
        raise ShapeError(f"hessian takes one output, not {len(ends)}")
    require_scalar("hessian", tensors_in(y)[0], 0)
    pairs = [
        TensorType((*a.type.shape, *b.type.shape), a.type.dtype) for a in starts for b in starts
    ]
    if ends[0] in dependent_nodes(ends, starts):
        dtype = np.result_type(*(n.type.dtype for n in starts))
        types = [TensorType(t.shape, dtype) for t in pairs]
        found = answers("hessian", ends, starts, types, tracked=recording.is_on.get())
    else:
        found = [zeros(t) for t in pairs]
    width = len(starts)
    rows = [found[i : i + width] for i in range(0, len(found), width)]
    return _nest_blocks(rows, isinstance(x, Tensor), isinstance(x, Tensor))


def _matrix(name: str, y: Any, x: Any, is_batched: bool, **options: Hashable) -> Any:
    ends, starts = nodes_of(name, y, x)
    tracked = recording.is_on.get()
    rows = matrix(name, ends, starts, tracked=tracked, options=options, is_batched=is_batched)
    return _nest_blocks(rows, isinstance(y, Tensor), isinstance(x, Tensor))


def _nest_blocks(rows: Sequence[Sequence[Node]], single_row: bool, single_column: bool) -> Any:
    """Return tensors of all blocks, nested in tuples for sequences."""
    found = [tuple([Tensor(n) for n in row]) for row in rows]
    blocks = tuple([row[0] if single_column else row for row in found])
    return blocks[0] if single_row else blocks


def zeros(type: TensorType) -> Node:
    return array_node(np.zeros(type.shape, type.dtype))


def nodes_of(name: str, outputs: Any, inputs: Any) -> tuple[list[Node], list[Node]]:
    """Return the nodes of the output and input tensors of a derivative.

    Raises `NotDifferentiable` for inputs that do not require gradients and for dtypes other than
    floats, `BuildError` if the tape of the outputs was released.
    """
    ends, starts = (
        [t.node for t in tensors_in(outputs)],
        [t.node for t in tensors_in(inputs)],
    )
    for role, nodes in (("outputs", ends), ("inputs", starts)):
        if not nodes:
            raise ArgumentError(f"{name} got no {role}")
        for i, node in enumerate(nodes):
            if not node.type.is_inexact:
                raise NotDifferentiable(
                    f"{name}: element {i} of {role} is {node.type}, and only floats have "
                    "derivatives",
                    origin=origin_of(node),
                )
            if role == "inputs" and not node.tracked:
                raise NotDifferentiable(
                    f"{name}: element {i} of {role}, {node.type}, does not require grad",
                    origin=origin_of(node),
                    hint="set requires_grad=True before computing with it, or give a function",
                )
    collect_tape(ends)
    return ends, starts
