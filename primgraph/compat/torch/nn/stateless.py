"""Calls of modules with other parameters and buffers than their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.errors import ArgumentError

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with parameters and buffers, by dotted names, in place of its own.

    Those that are not named stay, and names that no module has are ignored. What the call changes
    in them is lost afterwards. With `tie_weights` all names of a shared parameter stand for the one
    that is given; with `strict` all have to be named.

    >>> layer = torch.nn.Linear(2, 1)
    >>> weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(layer, weights, (torch.ones(1, 2),))
    tensor([[2.]])
    """
    given = _merge(parameters_and_buffers)
    arguments = args if isinstance(args, tuple) else () if args is None else (args,)
    with _exchanged(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _merge(given: Any) -> dict[str, Any]:
    """Return one dict of several, whose names differ."""
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, Sequence) or not all(isinstance(d, Mapping) for d in given):
        raise ArgumentError(
            "Expected parameters_and_buffers to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    merged: dict[str, Any] = {}
    for part in given:
        twice = merged.keys() & part.keys()
        if twice:
            raise ArgumentError(
                f"{sorted(twice)} appeared in multiple dictionaries; behavior of functional call "
                "is ambiguous"
            )
        merged |= part
    return merged


def _places(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the table and the key of each parameter and buffer by dotted name."""
    return {
        f"{path}.{name}" if path else name: (entries, name)
        for path, part in module.named_modules(remove_duplicate=False)
        for entries in (part._parameters, part._buffers)
        for name in entries
    }


@contextmanager
def _exchanged(
    module: Any, given: dict[str, Any], tie_weights: bool, strict: bool
) -> Iterator[None]:
    """A context in which a module has other parameters and buffers."""
    places = _places(module)
    unknown = [name for name in given if name not in places]
    if strict:
        missing = [n for n, (t, key) in places.items() if n not in given and t[key] is not None]
        if unknown or missing:
            kind, names = ("Unexpected", unknown) if unknown else ("Missing", missing)
            raise ArgumentError(f"{kind} key(s): {', '.join(names)}.")
    for name in unknown:
        module.get_submodule(name.rpartition(".")[0])
    values = {name: value for name, value in given.items() if name in places}
    if tie_weights:
        owners = {id(t[key]): values[n] for n, (t, key) in places.items() if n in values}
        values |= {
            name: owners[id(table[key])]
            for name, (table, key) in places.items()
            if name not in values and table[key] is not None and id(table[key]) in owners
        }
    before = [(*places[name], places[name][0][places[name][1]]) for name in values]
    try:
        for name, value in values.items():
            table, key = places[name]
            table[key] = value
        yield
    finally:
        for table, key, value in before:
            table[key] = value


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of equal modules, stacked along a new first axis.

    >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = torch.func.stack_module_state(models)
    >>> parameters["weight"].shape
    torch.Size([3, 1, 2])
    """
    given = list(models)
    if not given:
        raise ArgumentError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in given}) > 1:
        raise ArgumentError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in given}) > 1:
        raise ArgumentError("stack_module_state: Expected all models to be of the same class.")
    found = []
    for listed in ("named_parameters", "named_buffers"):
        tables = [dict(getattr(model, listed)()) for model in given]
        stacked: dict[str, Any] = {n: pg.stack([t[n] for t in tables]).detach() for n in tables[0]}
        for name, value in stacked.items():
            value.requires_grad_(tables[0][name].requires_grad)
        found.append(stacked)
    return found[0], found[1]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
