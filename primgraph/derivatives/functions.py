"""Jacobian-vector and vector-Jacobian products of functions of variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph.derivatives.grad import grad
from primgraph.derivatives.request import Seeds, Variables, located, seeds_for, variables_of
from primgraph.derivatives.subgraph import Path
from primgraph.derivatives.traced_call import Call, in_form
from primgraph.errors import ArgumentError, NotDifferentiable, NotScalarError
from primgraph.ir.frontend.signature import applied, checked_late
from primgraph.ir.graph import Value
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

Function = Callable[..., Variables]
Result = tuple[Variable | list[Variable], Variable | list[Variable]]


@checked_late
def vjp(function: Function, inputs: Variables, v: Seeds = None, *, strict: bool = False) -> Result:
    """Return `function(*inputs)`, and the product of `v` with its Jacobian, by reverse mode.

    `function` takes and returns variables. `v` has the shapes of its results, ones by default. The
    second result has one entry for each input, of its type, zeros for an unused one: alone for a
    single input, in a list for a sequence. The first is alone or in a list, as the function
    returned it.

    Arguments are distinct: a variable passed twice counts as two. Variables that the function
    closes over are constant for this derivative, but not for derivatives of its results. All
    results belong to the program and can be differentiated again.

    With `strict`, an unused input, and an output that depends on no input, raise
    `NotDifferentiable`. Raises `ArgumentError`, a TypeError, for an object that is not a function
    or variable and for a wrong number of entries in `v`; `ShapeError` for a wrong shape.
    """
    call, single = _called("vjp", function, inputs)
    with located(call.origin):
        seeds = seeds_for(call.builder, "v", v, call.outputs)
        path = call.path()
        if strict:
            _require_dependence("vjp", call, path, call.outputs)
        results = call.cotangents(path, seeds)
    return in_form(call.builder, call.outputs, call.single), in_form(call.builder, results, single)


@checked_late
def jvp(function: Function, inputs: Variables, v: Seeds = None, *, strict: bool = False) -> Result:
    """Return `function(*inputs)`, and the product of its Jacobian with `v`, by forward mode.

    `v` has the shapes of `inputs`, ones by default. Both results have one entry for each output,
    alone or in a list as the function returned them; the product is zero for an output that depends
    on no input. See `vjp` for the rest.
    """
    call, _ = _called("jvp", function, inputs)
    with located(call.origin):
        seeds = seeds_for(call.builder, "v", v, call.inputs)
        path = call.path()
        if strict:
            _require_dependence("jvp", call, path, call.outputs)
        found = call.tangents(path, seeds)
    return (
        in_form(call.builder, call.outputs, call.single),
        in_form(call.builder, found, call.single),
    )


def gradient_of(name: str, function: Function, *, rank: int = 0) -> Callable[..., list[Variable]]:
    """Return a function that computes the value of `function`, of one element, and its gradients.

    With `rank` 1 it may have one element per sample, of shape `(B,)` or `(B, 1)`, for independent
    samples.

    Raises `ArgumentError` if it is not a function.
    """
    if not callable(function):
        raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")

    def gradient(*arguments: Variable) -> list[Variable]:
        result = applied(function, *arguments)
        if isinstance(result, list | tuple) and len(result) == 1:
            result = result[0]
        if not isinstance(result, Variable):
            raise NotScalarError(f"{name}: the function returned {result!r:.80}, not a variable")
        require_scalar(name, result, rank)
        slopes = grad(result, list(arguments), materialize_grads=True)
        return [result, *(s for s in slopes if s is not None)]

    return gradient


# Operators with an option `is_batched`.
_BATCHED = ("Hessian", "biharmonic", "hessian_diagonal", "laplacian")


def require_scalar(name: str, value: Handle, rank: int) -> None:
    """Raise `NotScalarError` unless there is one element, or one per sample if `rank` is 1."""
    lead = value.shape[:rank]
    sizes = value.type.with_shape(value.shape[rank:]).size
    if len(lead) != rank or sizes != 1:
        wanted = "shape (B,) or (B, 1)" if rank else "one element"
        batched = ", or use is_batched=True for one of independent samples"
        raise NotScalarError(
            f"{name} needs a function of {wanted}, not {value.type}",
            hint="" if rank else f"sum it{batched if name in _BATCHED else ''}",
        )


def _called(name: str, function: Any, inputs: Any) -> tuple[Call, bool]:
    call = Call.of(name, function, variables_of(name, "inputs", inputs))
    call.require_floats(name)
    return call, isinstance(inputs, Variable)


def _require_dependence(name: str, call: Call, path: Path, outputs: Sequence[Value]) -> None:
    """Raise for an input that no output depends on, and for an output that depends on no input."""
    for number, argument in enumerate(call.arguments):
        if argument not in path.wrt:
            raise NotDifferentiable(
                f"{name}: no output depends on input {number}, {argument.type}",
                origin=call.builder.origin(None, [call.inputs[number]]),
                hint="leave out strict=True to get zeros",
            )
    for number, (value, reached) in enumerate(zip(outputs, path.reached, strict=True)):
        if not reached:
            raise NotDifferentiable(
                f"{name}: output {number}, {value.type}, depends on no input",
                origin=call.origin(),
                hint="leave out strict=True to get zeros",
            )
