"""Products of derivatives and vectors, for functions of arrays, of tensors and of variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph import tree
from primgraph.api.arguments import SelectedArguments
from primgraph.api.call_in_world import Applied
from primgraph.api.derivatives.of_functions import Outputs, require_one
from primgraph.api.world import world_of
from primgraph.errors import ArgumentError, NotDifferentiable
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.call import constant_in_no_grad
from primgraph.operators.handle import Handle

Function = Callable[..., Any]


@checked_late
@constant_in_no_grad
def vjp(function: Function, inputs: Any, v: Any = None, *, strict: bool = False) -> Any:
    """Return `function(*inputs)` and the product of `v` with its Jacobian, by reverse mode.

    `inputs` are the arguments, of which one may stand alone: variables, tensors or arrays, or
    containers of them as in `pg.grad`; `v` has the shapes of what the function returns, in the
    same containers, ones by default and where it has None. The first result is what the function
    returned. The second has one entry for each input, like that, zeros for one that the function
    does not use: alone for a single input, in a tuple for a sequence. Arrays give arrays.

    An array passed twice counts as two arguments. Values that the function finds elsewhere are
    constants of this derivative. Results can be differentiated again.

    With `strict`, an unused input, or an output that depends on no input, is a `NotDifferentiable`.
    Raises `ArgumentError`, a TypeError, for other arguments and for a wrong number of entries in
    `v`; `ShapeError` for a wrong shape of one.

    >>> pg.vjp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    (array([1., 4.]), array([2., 4.]))
    """
    chosen, single = _build_call("vjp", function, inputs)
    applied, outputs = _apply_function(chosen)
    seeds = tree.broadcast_prefix(v, outputs.structure, "v")
    if strict:
        _require_dependence(chosen, applied, outputs)
    found = chosen.unflatten_leaves(applied.vjp(outputs.count, seeds))
    value, _ = outputs.unflatten_results(applied.results)
    return _pair(chosen, value, found[0] if single else tuple(found))


@checked_late
@constant_in_no_grad
def jvp(function: Function, inputs: Any, v: Any = None, *, strict: bool = False) -> Any:
    """Return `function(*inputs)` and the product of its Jacobian with `v`, by forward mode.

    `v` has the shapes and containers of `inputs`; ones by default. Both results have the containers
    of the function's result. The product is zero for an output that depends on no input. Other
    rules are those of `vjp`.

    >>> pg.jvp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (array([1., 4.]), array([2., 0.]))
    """
    chosen, single = _build_call("jvp", function, inputs)
    seeds = _seeds(chosen, single, v)
    applied, outputs = _apply_function(chosen)
    if strict:
        _require_dependence(chosen, applied, outputs)
    found = tree.unflatten(outputs.structure, applied.jvp(outputs.count, seeds))
    value, _ = outputs.unflatten_results(applied.results)
    return _pair(chosen, value, found)


@checked_late
@constant_in_no_grad
def hvp(function: Function, inputs: Any, v: Any, *, strict: bool = False) -> Any:
    """Return `function(*inputs)`, one element, and the product of its Hessian with `v`.

    It is computed forward over reverse: the derivative of the gradient along `v`. `v` has the
    shapes and containers of `inputs`. The product has an entry for each input, as in `vjp`.

    Raises `NotScalarError` for a function of more than one element; with `strict`,
    `NotDifferentiable` for an unused input. Other rules are those of `vjp`.

    >>> pg.hvp(lambda x: pg.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (array(9.), array([6., 0.]))
    """
    return _hessian_product("hvp", function, inputs, v, strict)


@checked_late
@constant_in_no_grad
def vhp(function: Function, inputs: Any, v: Any, *, strict: bool = False) -> Any:
    """Return `function(*inputs)`, one element, and the product of `v` with its Hessian.

    A Hessian is symmetric: this is `hvp`.

    >>> pg.vhp(lambda x: pg.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (array(9.), array([6., 0.]))
    """
    return _hessian_product("vhp", function, inputs, v, strict)


def _hessian_product(
    name: str, function: Function, inputs: Any, v: Any, strict: bool
) -> tuple[Any, Any]:
    """Compute `pg.hvp` and `pg.vhp`: forward over reverse mode."""
    chosen, single = _build_call(name, function, inputs)
    seeds = _seeds(chosen, single, v)
    inner: list[Applied] = []

    def gradient(leaves: Sequence[Any]) -> list[Any]:
        within = world_of(list(leaves)).apply(name, value, leaves)
        inner.append(within)
        return [*within.vjp(1, [None]), *within.results]

    def value(leaves: Sequence[Any]) -> list[Any]:
        result = chosen.call(leaves)
        if isinstance(result, list | tuple) and len(result) == 1:
            (result,) = result
        require_one(name, result)
        return [result]

    count = len(chosen.leaves)
    applied = chosen.world.apply(name, gradient, chosen.leaves)
    if strict:
        _require_matter(chosen, inner[0], inner[0].depends(1)[1])
        _require_matter(chosen, applied, applied.depends(count)[1])
    found = chosen.unflatten_leaves(applied.jvp(count, seeds))
    return _pair(chosen, applied.results[count], found[0] if single else tuple(found))


def _build_call(name: str, function: Function, inputs: Any) -> tuple[SelectedArguments, bool]:
    """Return the call of a function on `inputs`, and whether these are a single argument."""
    if not callable(function) or isinstance(function, Handle):
        raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")
    if isinstance(inputs, list | tuple) and not inputs:
        raise ArgumentError(f"{name} got no inputs")
    single = not isinstance(inputs, list | tuple)
    args = (inputs,) if single else tuple(inputs)
    return SelectedArguments.from_call(name, function, args, {}, range(len(args))), single


def _apply_function(chosen: SelectedArguments) -> tuple[Applied, Outputs]:
    outputs = Outputs(chosen.name)
    applied = chosen.world.apply(
        chosen.name, lambda leaves: outputs.flatten_result(chosen.call(leaves), None), chosen.leaves
    )
    outputs.require_floats()
    return applied, outputs


def _seeds(chosen: SelectedArguments, single: bool, v: Any) -> list[Any]:
    """Return a seed for each leaf of the arguments, given in their containers."""
    form = tree.Structure(tuple, tuple(range(len(chosen.structures))), chosen.structures)
    return tree.broadcast_prefix(v, form.parts[0] if single else form, "v")


def _pair(chosen: SelectedArguments, value: Any, derivative: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = chosen.world.convert_results((value, derivative))
    return found


def _require_dependence(chosen: SelectedArguments, applied: Applied, outputs: Outputs) -> None:
    """Raise for an input that no output depends on, and for an output that depends on no input."""
    reached, used = applied.depends(outputs.count)
    _require_matter(chosen, applied, used)
    for path, depends in zip(outputs.paths, reached, strict=True):
        if not depends:
            raise NotDifferentiable(
                f"{chosen.name}: {path} depends on no input",
                origin=applied.origin(),
                hint="leave out strict=True to get zeros",
            )


def _require_matter(chosen: SelectedArguments, applied: Applied, used: Sequence[bool]) -> None:
    for path, matters in zip(chosen.paths, used, strict=True):
        if not matters:
            raise NotDifferentiable(
                f"{chosen.name}: no output depends on {path}",
                origin=applied.origin(),
                hint="leave out strict=True to get zeros",
            )
