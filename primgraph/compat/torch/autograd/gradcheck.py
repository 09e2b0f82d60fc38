"""Comparison of derivatives with differences of values, as `torch.autograd.gradcheck` has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.compat.torch.autograd.gradients import grad
from primgraph.compat.torch.creation import create
from primgraph.eager.seeds import reserve_generator
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, CheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Function = Callable[..., Any]
Array = np.ndarray[Any, Any]


class GradcheckError(CheckError):
    """Error for derivatives that differ from differences of values."""


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _outputs_of(func: Function, inputs: Sequence[Any]) -> list[Tensor]:
    """Return the results that have derivatives."""
    found = _as_tuple(func(*inputs))
    return [y for y in found if isinstance(y, Tensor) and y.type.is_inexact]


def _parts(x: Array) -> list[complex]:
    """Return the directions of one element: real, and imaginary for complex numbers."""
    return [1.0, 1j] if x.dtype.kind == "c" else [1.0]


def _differences(func: Function, inputs: Sequence[Any], place: int, eps: float) -> list[Array]:
    """Return differences of each result by the elements of one input, as rows."""
    whole = np.array(inputs[place].detach().numpy())
    rows: list[list[Array]] = []
    for index in np.ndindex(whole.shape):
        for direction in _parts(whole):
            ends = []
            for sign in (1, -1):
                moved = whole.copy()
                moved[index] += sign * eps * direction
                given = [*inputs]
                given[place] = create.tensor(moved, requires_grad=True)
                ends.append([y.detach().numpy().copy() for y in _outputs_of(func, given)])
            rows.append([(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)])
    return (
        [np.array([row[k].reshape(-1) for row in rows]) for k in range(len(rows[0]))]
        if rows
        else []
    )


def _real_columns(found: Array) -> Array:
    """Return columns of real numbers: two for each of a complex one."""
    if found.dtype.kind != "c":
        return found
    return np.stack([found.real, found.imag], axis=-1).reshape(len(found), -1)


def _gradients(output: Tensor, x: Tensor) -> Array:
    """Return derivatives of the elements of a result by those of one input, as columns."""
    columns = []
    seeds = np.zeros(output.shape, output.type.dtype)
    for index in np.ndindex(seeds.shape):
        for direction in _parts(seeds):
            seeds[...] = 0
            seeds[index] = direction
            (found,) = grad(
                output, x, create.tensor(seeds.copy()), retain_graph=True, allow_unused=True
            )
            array = np.zeros(x.shape, x.type.dtype) if found is None else found.detach().numpy()
            columns.append(_real_columns(array.reshape(1, -1)).reshape(-1))
    return np.stack(columns, axis=-1) if columns else np.zeros((x.type.size, 0))


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of a function with differences of its values.

    Return whether they agree to `atol + rtol * abs(difference)`; raise `GradcheckError` if they do
    not, unless `raise_exception` is False. All elements are compared, also with `fast_mode`.

    >>> x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, (x,))
    True
    """
    given = _as_tuple(inputs)
    chosen = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    if not chosen:
        raise ArgumentError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    outputs = _outputs_of(func, given)
    for place in chosen:
        numbers = _differences(func, given, place, eps)
        for k, output in enumerate(outputs):
            analytic = _gradients(output, given[place])
            numeric = _real_columns(numbers[k]) if numbers else analytic
            if np.allclose(analytic, numeric, rtol, atol, equal_nan=True):
                continue
            if not raise_exception:
                return False
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input {place},\n"
                f"numerical:{numeric}\nanalytical:{analytic}\n"
            )
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    **options: Any,
) -> bool:
    """Compare second derivatives of a function with differences of its gradients.

    `grad_outputs` are random by default. Options are those of `gradcheck`.

    >>> x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: (x**3).sum(), (x,))
    True
    """
    given = _as_tuple(inputs)
    if grad_outputs is None:
        draw = reserve_generator()()
        seeds = [
            create.tensor(draw.standard_normal(y.shape).astype(y.type.dtype), requires_grad=True)
            for y in _outputs_of(func, given)
        ]
    else:
        seeds = [*_as_tuple(grad_outputs)]
    count = len(given)
    chosen = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]

    def gradients(*args: Any) -> tuple[Any, ...]:
        sources = [args[i] for i in chosen]
        found = grad(
            _outputs_of(func, args[:count]),
            sources,
            list(args[count:]),
            create_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        return tuple(found)

    return gradcheck(gradients, (*given, *seeds), **options)
