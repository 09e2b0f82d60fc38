"""`paddle.grad`, with all of its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.compat.paddle.framework import as_paddle_raises, paddles, reject_options
from primgraph.derivatives import grad as derivatives
from primgraph.derivatives.request import Seeds
from primgraph.eager.derivatives.backward import grad as grad_of_tensors
from primgraph.eager.tensor import Tensor
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

    Seeds are ones by default, for any shape. What tensors were computed from is dropped unless
    `retain_graph`, which is `create_graph` by default, and `create_graph` lets their gradients be
    differentiated; for variables of programs the two make no difference. Raises `OptionError`, a
    ValueError, for `only_inputs` False, as Paddle does.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.grad(paddle.sum(x * x), x)
    [tensor([2., 4.], dtype=float32)]
    """
    reject_options("grad", only_inputs=None if only_inputs else "False")
    if _are_tensors(outputs):
        seeds = _seeds(outputs, grad_outputs)
        return [
            *grad_of_tensors(
                outputs,
                inputs,
                seeds,
                retain_graph,
                create_graph,
                allow_unused,
                no_grad_vars=no_grad_vars,
            )
        ]
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


def _are_tensors(outputs: Any) -> bool:
    listed = outputs if isinstance(outputs, list | tuple) else [outputs]
    return any(isinstance(item, Tensor) for item in listed)


def _seeds(outputs: Any, seeds: Any) -> list[Any]:
    """The seeds of tensors, with ones for those that are left out."""
    ends = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    given = [seeds] if isinstance(seeds, Tensor) else list(seeds or [None] * len(ends))
    if len(given) != len(ends):
        return given
    ones = [np.ones(y.shape, y.dtype) for y in ends]
    return [one if seed is None else seed for seed, one in zip(given, ones, strict=True)]
