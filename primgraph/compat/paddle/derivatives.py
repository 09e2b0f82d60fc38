"""`paddle.grad`, with all of its arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from primgraph.autodiff import grad as derivatives
from primgraph.autodiff.request import Seeds
from primgraph.compat.paddle.framework import as_paddle_raises, paddles, refused
from primgraph.operators.variable import Variable


@as_paddle_raises
@paddles
def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    grad_outputs: Seeds = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
) -> list[Variable | None]:
    """`pg.grad`, always as a list; an unused input is an error unless `allow_unused`.

    Nothing that derivatives are made from is ever freed, and all can be differentiated again:
    `retain_graph` and `create_graph` make no difference. Raises `OptionError`, a ValueError, for
    `only_inputs` False, as Paddle does.
    """
    refused("grad", only_inputs=None if only_inputs else "False")
    listed = [inputs] if isinstance(inputs, Variable) else inputs
    if allow_unused:
        return derivatives.grad(
            outputs, listed, grad_outputs, allow_unused=True, no_grad_vars=no_grad_vars
        )
    found = derivatives.grad(
        outputs, listed, grad_outputs, allow_unused=False, no_grad_vars=no_grad_vars
    )
    return list[Variable | None](found)
