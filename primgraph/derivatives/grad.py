"""Derivatives of built variables, composed of transforms without rules of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal, TypedDict, Unpack, overload

import numpy as np

from primgraph.base.providers import provider
from primgraph.derivatives.modes import forward, reverse
from primgraph.derivatives.request import Request, Seeds, Variables, located, refuse_functions
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.call import hands_out
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


# Without `allow_unused`, type checkers assume that no input is unused.
@overload
def grad(
    outputs: Variables,
    inputs: Variable,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    **options: Unpack[GradOptions],
) -> Variable: ...
@overload
def grad(
    outputs: Variables,
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
    *,
    allow_unused: Literal[False] = False,
    **options: Unpack[GradOptions],
) -> list[Variable]: ...
@overload
def grad(
    outputs: Variables,
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
    *,
    allow_unused: Literal[True],
    **options: Unpack[GradOptions],
) -> list[Variable | None]: ...
@overload
def grad(
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    **options: Unpack[GradOptions],
) -> Gradients: ...
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
) -> Gradients:
    """Return the gradient of `sum_i <grad_outputs[i], outputs[i]>` with respect to `inputs`.

    The result is one gradient of the input's type for each input, alone for a single input, in a
    list for a sequence; None for an input that no output depends on. If an output depends on an
    input with zero derivative, as the third derivative of `x**2`, the result is zeros, at no cost.
    A derivative counts as a function of everything that the outputs depend on. Outputs that depend
    on no input contribute nothing if others do. `grad_outputs` are arrays or variables of the
    outputs' shapes, cast to their dtypes. They are ones by default, also for an entry of None, so
    that outputs need not be scalars.

    Inputs may be intermediate values: each gets its full gradient, also beside another input that
    it is computed from. Outputs or inputs listed twice count twice. A derivative by one of two
    equal variables, such as `a = x * 2` and `b = x * 2`, ignores the other.

    Values with `stop_gradient` set, and those in `no_grad_vars`, are constants: no gradient passes
    them, and as inputs they count as unused.

    - `allow_unused=False` makes an unused input an error.
    - `materialize_grads=True` gives zeros for unused inputs, also where all outputs are
      independent of all inputs, which is an error otherwise.
    - `strict_scalar=True` requires a seed for each output that has not exactly one element.
    - `is_grads_batched=True` takes seeds with a leading batch axis of one size N for all, and
      returns results of shape `(N, *x.shape)`, all N in one vectorised pass. None stands for ones,
      for each of the N.
    - `holomorphic=True` says that complex outputs are holomorphic in complex inputs, and gives
      their complex derivative.
    - `retain_graph`, `create_graph` and `only_inputs` are accepted as for tensors, without effect:
      a program keeps its equations, its derivatives can be differentiated, and no other variable
      gets a gradient.

    The gradient of a real output by a complex `z = x + iy` is `df/dx - i df/dy`; complex outputs
    need a seed each, or `holomorphic`.

    Results are variables of the same program and can be differentiated again.

    Raises `NotDifferentiable` if an input or output is neither float nor complex, if no output
    depends on any input, or for an unused input with `allow_unused=False`; `ArgumentError` for
    arguments that are not variables; `ShapeError` for seeds that do not fit; `OptionError`, a
    ValueError, for `materialize_grads` with `allow_unused=False`.
    """
    request = Request.of("grad", outputs, inputs, no_grad_vars)
    with located(request.origin):
        if materialize_grads and not allow_unused:
            raise OptionError(
                "grad cannot both refuse unused inputs and give zeros for them",
                hint="leave out allow_unused=False or materialize_grads=True",
            )
        if strict_scalar:
            request.require_seeds(grad_outputs)
        request.require_direction(grad_outputs, holomorphic)
        count = request.batch_extent(grad_outputs) if is_grads_batched else None
        seeds = request.seeds("grad_outputs", grad_outputs, request.outputs, count)
        results = reverse(request, seeds, count, lenient=materialize_grads)
        if not allow_unused:
            request.refuse_unused(results)
    if materialize_grads:
        results = request.with_zeros(results, request.inputs, count)
    request.note_gradients(results)
    return request.answer(results, inputs)


def gradients_of(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    seeds: Sequence[Variable | None],
    *,
    is_grads_batched: bool,
    no_grad_vars: Collection[Variable],
    apart: bool,
) -> list[Variable]:
    """Like `grad`, with zeros for unused inputs.

    With `apart`, inputs are independent: no gradient passes through one to another.
    """
    request = replace(Request.of("grad", outputs, inputs, no_grad_vars), apart=apart)
    with located(request.origin):
        count = request.batch_extent(seeds) if is_grads_batched else None
        given = request.seeds("grad_outputs", seeds, request.outputs, count)
        results = reverse(request, given, count, lenient=True)
    found = request.with_zeros(results, request.inputs, count)
    request.note_gradients(found)
    return [handle_of(request.builder, v) for v in found if v is not None]


@overload
def forward_grad(
    outputs: Variable, inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> Variable: ...
@overload
def forward_grad(
    outputs: Sequence[Variable], inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> list[Variable]: ...
@overload
def forward_grad(
    outputs: Variables, inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> Gradients: ...
@hands_out
@refuse_functions
@checked_late
def forward_grad(
    outputs: Variables, inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> Gradients:
    """Return the directional derivatives of `outputs` along `grad_inputs`, by forward mode.

    The result is one tangent of the output's type for each output, summed over all inputs: alone
    for a single output, in a list for a sequence; None for an output that depends on no input.
    `grad_inputs` are arrays or variables of the inputs' shapes, cast to their dtypes, ones by
    default. Values with `stop_gradient` set are constants.

    An `order` above one gives the derivative of that order along the same direction, by Taylor mode
    in one pass.

    Results are variables of the same program and can be differentiated again. Raises like `grad`,
    except that outputs may be independent of all inputs; `OptionError` for an order below one.
    """
    request = Request.of("forward_grad", outputs, inputs)
    with located(request.origin):
        order = checked_order("forward_grad", order)
        seeds = request.seeds("grad_inputs", grad_inputs, request.inputs)
        if order == 1:
            results = forward(request, seeds)
        else:
            results = provider("Taylor mode").along_line(request, seeds, order)
    return request.answer(results, outputs)


def checked_order(name: str, order: object) -> int:
    """Check that `order` is an integer >= 1. Raises `ArgumentError` and `OptionError`."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer):
        raise ArgumentError(f"{name} takes an order that is an integer, not {order!r:.60}")
    if order < 1:
        raise OptionError(f"{name}: derivatives have orders from 1 on, not {order}")
    return int(order)
