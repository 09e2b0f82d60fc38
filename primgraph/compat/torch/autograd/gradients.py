"""`backward` and `grad`: gradients of tensors and of variables of programs."""

from __future__ import annotations

import warnings
from typing import Any

from primgraph.api.public import grad as of_handles
from primgraph.compat.torch.core.anomaly import leaves_of, require_no_nan
from primgraph.compat.torch.core.conjugates import conjugate_values
from primgraph.eager.derivatives import backward as core
from primgraph.eager.derivatives.recording import is_on
from primgraph.eager.tensor import Tensor, Tensors
from primgraph.operators.variable import Variable


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradients of `sum_i <grad_tensors[i], tensors[i]>` to `.grad` of what it depends on.

    See `pg.autograd.backward`. `grad_variables` is the former name of `grad_tensors`.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward(torch.sum(x * x))
    >>> x.grad
    tensor([2., 4.])
    """
    seeds = grad_variables if grad_tensors is None else grad_tensors
    ends = tensors if isinstance(tensors, list | tuple) else [tensors]
    leaves = leaves_of(ends)
    core.backward(tensors, conjugate_values(seeds), retain_graph, create_graph, inputs)
    require_no_nan(leaf.grad for leaf in leaves)


def is_grad_enabled() -> bool:
    """Return whether derivatives go through operations from now on.

    >>> with torch.no_grad():
    ...     torch.is_grad_enabled()
    False
    """
    return is_on.get()


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `sum_i <grad_outputs[i], outputs[i]>` by `inputs`, as a tuple.

    `.grad` is untouched. Those by complex inputs are `df/dx + i df/dy`. `only_inputs` has no
    effect, as in torch. In a function that is compiled nothing is dropped, and all can be
    differentiated again. See `pg.grad`.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.grad(torch.sum(x * x), x)
    (tensor([2., 4.]),)
    """
    if not only_inputs:
        warnings.warn("only_inputs has no effect: use backward for all leaves", stacklevel=2)
    ends, starts = (v if isinstance(v, list | tuple) else [v] for v in (outputs, inputs))
    grad_outputs = conjugate_values(grad_outputs)
    if any(isinstance(v, Variable) for v in ends):
        found: Any = of_handles(
            [*ends],
            [*starts],
            grad_outputs,
            allow_unused=bool(allow_unused),
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
            strict_scalar=True,
        )
        return conjugate_values(tuple(found))  # type: ignore[no-any-return]
    given = core.grad(
        outputs,
        inputs,
        grad_outputs,
        retain_graph,
        create_graph,
        allow_unused,
        is_grads_batched,
        materialize_grads,
    )
    require_no_nan(given)
    return conjugate_values(given)  # type: ignore[no-any-return]
