"""Products of derivatives and vectors, for functions of arrays, of tensors and of variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph import tree
from primgraph.api.arguments import Chosen
from primgraph.api.call_in_world import Applied
from primgraph.api.derivatives.of_functions import Outputs, require_one
from primgraph.api.world import world_of
from primgraph.errors import ArgumentError, NotDifferentiable
from primgraph.operators.handle import Handle

Function = Callable[..., Any]


def vjp(function: Function, inputs: Any, v: Any, strict: bool) -> tuple[Any, Any]:
    """Compute `pg.vjp` for arrays or tensors as `inputs`."""
    chosen, single = _chosen("vjp", function, inputs)
    applied, outputs = _applied(chosen)
    seeds = tree.spread(v, outputs.structure, "v")
    if strict:
        _require_dependence(chosen, applied, outputs)
    found = chosen.filled(applied.vjp(outputs.count, seeds))
    value, _ = outputs.closed(applied.results)
    return _pair(chosen, value, found[0] if single else tuple(found))


def jvp(function: Function, inputs: Any, v: Any, strict: bool) -> tuple[Any, Any]:
    """Compute `pg.jvp` for arrays or tensors as `inputs`."""
    chosen, single = _chosen("jvp", function, inputs)
    seeds = _seeds(chosen, single, v)
    applied, outputs = _applied(chosen)
    if strict:
        _require_dependence(chosen, applied, outputs)
    found = tree.unflatten(outputs.structure, applied.jvp(outputs.count, seeds))
    value, _ = outputs.closed(applied.results)
    return _pair(chosen, value, found)


def hessian_product(
    name: str, function: Function, inputs: Any, v: Any, strict: bool
) -> tuple[Any, Any]:
    """Compute `pg.hvp` and `pg.vhp` for arrays or tensors as `inputs`: forward over reverse
    mode."""
    chosen, single = _chosen(name, function, inputs)
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
    found = chosen.filled(applied.jvp(count, seeds))
    return _pair(chosen, applied.results[count], found[0] if single else tuple(found))


def _chosen(name: str, function: Function, inputs: Any) -> tuple[Chosen, bool]:
    """Return the call of a function on `inputs`, and whether these are a single argument."""
    if not callable(function) or isinstance(function, Handle):
        raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")
    if isinstance(inputs, list | tuple) and not inputs:
        raise ArgumentError(f"{name} got no inputs")
    single = not isinstance(inputs, list | tuple)
    args = (inputs,) if single else tuple(inputs)
    return Chosen.of(name, function, args, {}, range(len(args))), single


def _applied(chosen: Chosen) -> tuple[Applied, Outputs]:
    outputs = Outputs(chosen.name)
    applied = chosen.world.apply(
        chosen.name, lambda leaves: outputs.opened(chosen.call(leaves), None), chosen.leaves
    )
    outputs.require_floats()
    return applied, outputs


def _seeds(chosen: Chosen, single: bool, v: Any) -> list[Any]:
    """Return a seed for each leaf of the arguments, given in their containers."""
    form = tree.Structure(tuple, tuple(range(len(chosen.structures))), chosen.structures)
    return tree.spread(v, form.parts[0] if single else form, "v")


def _pair(chosen: Chosen, value: Any, derivative: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = chosen.world.given_back((value, derivative))
    return found


def _require_dependence(chosen: Chosen, applied: Applied, outputs: Outputs) -> None:
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


def _require_matter(chosen: Chosen, applied: Applied, used: Sequence[bool]) -> None:
    for path, matters in zip(chosen.paths, used, strict=True):
        if not matters:
            raise NotDifferentiable(
                f"{chosen.name}: no output depends on {path}",
                origin=applied.origin(),
                hint="leave out strict=True to get zeros",
            )
