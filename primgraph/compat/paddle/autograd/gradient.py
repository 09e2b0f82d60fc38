"""`paddle.grad`, with all of its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.compat.paddle.framework import (
    GradientError,
    RequirementError,
    SpentGraphError,
    as_paddle_raises,
    paddles,
)
from primgraph.derivatives import grad as derivatives
from primgraph.derivatives.request import Seeds
from primgraph.eager.derivatives.backward import grad as grad_of_tensors
from primgraph.eager.tensor import Tensor
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable


@as_paddle_raises
@paddles
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Seeds = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
) -> list[Any]:
    """Return the gradients of `pg.grad` as a list; an unused input needs `allow_unused`.

    Seeds are ones by default, for any shape. `create_graph` lets the gradients of tensors be
    differentiated; `retain_graph` makes no difference, as nothing is dropped. Raises
    `RequirementError`, an AssertionError, for `only_inputs` False, as Paddle does.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.grad(paddle.sum(x * x), x)
    [Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
           [2., 4.])]
    """
    _require_arguments(outputs, inputs, only_inputs)
    if _are_tensors(outputs):
        with SpentGraphError.instead():
            return _of_tensors(
                outputs,
                inputs,
                grad_outputs,
                create_graph,
                allow_unused,
                no_grad_vars,
            )
    listed = [inputs] if isinstance(inputs, Variable) else inputs
    if allow_unused:
        known: list[Any] = derivatives.grad(
            outputs, listed, grad_outputs, allow_unused=True, no_grad_vars=no_grad_vars
        )
        return known
    found = derivatives.grad(
        outputs, listed, grad_outputs, allow_unused=False, no_grad_vars=no_grad_vars
    )
    return list[Variable | None](found)


def _require_arguments(outputs: Any, inputs: Any, only_inputs: bool) -> None:
    """Raise `RequirementError`, an AssertionError, for arguments of other kinds."""
    for name, given in (("outputs", outputs), ("inputs", inputs)):
        listed = given if isinstance(given, list | tuple) else [given]
        if not listed:
            raise RequirementError(f"{name} cannot be empty")
        if not all(isinstance(x, Handle) for x in listed):
            raise RequirementError(f"{name} must be a tensor, or a list or tuple of tensors")
    if not only_inputs:
        raise RequirementError("only_inputs=False is not supported")


def _of_tensors(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any,
    create_graph: bool,
    allow_unused: bool,
    no_grad_vars: Any,
) -> list[Any]:
    """Return the gradients of tensors; outputs and inputs that stop gradients are unused."""
    ends = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    starts = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    seeds = _seeds(ends, grad_outputs)
    pairs = [p for p in zip(ends, seeds, strict=True) if p[0].requires_grad]
    used = [x for x in starts if x.requires_grad]
    if not allow_unused and (not pairs or len(used) < len(starts)):
        raise GradientError(
            "an input stops gradients, or no output depends on one",
            hint="allow_unused=True gives None for it",
        )
    if not (pairs and used):
        return [None] * len(starts)
    found = iter(
        grad_of_tensors(
            [y for y, _ in pairs],
            used,
            [s for _, s in pairs],
            True,
            create_graph,
            allow_unused,
            no_grad_vars=no_grad_vars,
        )
    )
    return [next(found) if x.requires_grad else None for x in starts]


def _are_tensors(outputs: Any) -> bool:
    listed = outputs if isinstance(outputs, list | tuple) else [outputs]
    return any(isinstance(item, Tensor) for item in listed)


def _seeds(outputs: Any, seeds: Any) -> list[Any]:
    """The seeds of tensors, with ones for those that are left out."""
    ends = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    given = [seeds] if isinstance(seeds, Tensor) else list(seeds or [None] * len(ends))
    if len(given) != len(ends):
        raise RequirementError(f"got {len(ends)} outputs and {len(given)} grad_outputs")
    ones = [np.ones(y.type.shape, y.type.dtype) for y in ends]
    return [one if seed is None else seed for seed, one in zip(given, ones, strict=True)]
