"""Derivatives of built variables, composed of transforms without rules of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from primgraph.base.providers import provider
from primgraph.derivatives.modes import forward, reverse
from primgraph.derivatives.request import (
    Request,
    Seeds,
    Variables,
    located,
    refuse_functions,
    variables_of,
)
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Value
from primgraph.operators.call import handed_out, hands_out
from primgraph.operators.variable import Variable, handle_of

Gradients = Variable | list[Variable] | list[Variable | None] | None


class GradOptions(TypedDict, total=False):
    """Keyword arguments of `grad` other than `allow_unused`, which affects the type of its
    result."""

    materialize_grads: bool
    strict_scalar: bool
    is_grads_batched: bool
    no_grad_vars: Collection[Variable] | None
    holomorphic: bool
    retain_graph: bool | None
    create_graph: bool
    only_inputs: bool


@hands_out
@refuse_functions
@checked_late
def grad(
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    materialize_grads: bool = False,
    strict_scalar: bool = False,
    is_grads_batched: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
    holomorphic: bool = False,
    retain_graph: bool | None = None,
    create_graph: bool = True,
    only_inputs: bool = True,
) -> Any:
    """Return the gradients of variables by variables, with the rules of `pg.grad`.

    The result is one variable for a single input, a list for a sequence; None for an unused input.
    Derivatives count as functions of everything that the outputs depend on.
    """
    request = Request.from_variables("grad", outputs, inputs, no_grad_vars)
    with located(request.origin):
        if materialize_grads and not allow_unused:
            raise OptionError(
                "grad cannot both refuse unused inputs and give zeros for them",
                hint="leave out allow_unused=False or materialize_grads=True",
            )
        if strict_scalar:
            request.require_seeds(grad_outputs)
        request.require_direction(grad_outputs, holomorphic)
        results = _gradients(request, grad_outputs, is_grads_batched, has_zeros=materialize_grads)
        if not allow_unused:
            request.refuse_unused(results)
    return request.answer(results, inputs)


def gradients_of(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    seeds: Sequence[Variable | None],
    *,
    is_grads_batched: bool,
    no_grad_vars: Collection[Variable] = (),
    apart: bool,
) -> list[Variable]:
    """Like `grad`, with zeros for unused inputs.

    With `apart`, inputs are independent: no gradient passes through one to another.
    """
    request = replace(Request.from_variables("grad", outputs, inputs, no_grad_vars), apart=apart)
    with located(request.origin):
        found = _gradients(request, seeds, is_grads_batched, has_zeros=True)
    return [handle_of(request.builder, v) for v in found if v is not None]


def _gradients(
    request: Request, given: Any, is_batched: bool, *, has_zeros: bool
) -> list[Value | None]:
    """Return the gradients by all inputs, and note them in the builder."""
    count = request.batch_extent(given) if is_batched else None
    seeds = request.seeds("grad_outputs", given, request.outputs, count)
    results = reverse(request, seeds, count, lenient=has_zeros)
    if has_zeros:
        results = request.with_zeros(results, request.inputs, count)
    request.note_gradients(results)
    return results


@hands_out
@refuse_functions
@checked_late
def forward_grad(
    outputs: Variables, inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> Any:
    """Return the directional derivatives of variables, with the rules of `pg.forward_grad`."""
    request = Request.from_variables("forward_grad", outputs, inputs)
    with located(request.origin):
        order = checked_order("forward_grad", order)
        seeds = request.seeds("grad_inputs", grad_inputs, request.inputs)
        if order == 1:
            results = forward(request, seeds)
        else:
            results = provider("Taylor mode").line_derivatives(request, seeds, order)
    return request.answer(results, outputs)


@checked_late
def vjp(function: Callable[..., Variables], inputs: Variables, v: Seeds = None) -> tuple[Any, Any]:
    """Return the results of a function of variables, and the gradients along `v`, as `pg.vjp` does.

    Results are alone, or in a list for a sequence.
    """
    request = _request_of_call("vjp", function, inputs)
    with located(request.origin):
        seeds = request.seeds("v", v, request.outputs)
        found = request.with_zeros(reverse(request, seeds, None, lenient=True), request.inputs)
    return handed_out((request.value, request.answer(found, inputs)))


@checked_late
def jvp(function: Callable[..., Variables], inputs: Variables, v: Seeds = None) -> tuple[Any, Any]:
    """Return the results of a function of variables, and their tangents along `v`, like `vjp`."""
    request = _request_of_call("jvp", function, inputs)
    with located(request.origin):
        seeds = request.seeds("v", v, request.inputs)
        found = request.with_zeros(forward(request, seeds), request.outputs)
    return handed_out((request.value, request.answer(found, request.value)))


def _request_of_call(name: str, function: Any, inputs: Any) -> Request:
    request = Request.from_call(name, function, variables_of(name, "inputs", inputs))
    request.require_floats()
    return request


def checked_order(name: str, order: object) -> int:
    """Check that `order` is an integer >= 1. Raises `ArgumentError` and `OptionError`."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer):
        raise ArgumentError(f"{name} takes an order that is an integer, not {order!r:.60}")
    if order < 1:
        raise OptionError(f"{name}: derivatives have orders from 1 on, not {order}")
    return int(order)
