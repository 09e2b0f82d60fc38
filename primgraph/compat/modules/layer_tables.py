"""Layers that hold the arguments of a function: one row of a table for each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

# Arguments that `reduction` replaced.
OLD_REDUCTION = ("size_average", "reduce")


def show(module: Any, shown: str) -> str:
    """Return the text of attributes: `name`, `name?` only if true, `=name` without the name."""
    parts = []
    for token in shown.split():
        name = token.strip("=?")
        value = getattr(module, name)
        if not (token.endswith("?") and not value):
            parts.append(f"{value}" if token.startswith("=") else f"{name}={value!r}")
    return ", ".join(parts)


def define_layers(
    own: dict[str, Any], base: type[Any], functions: Mapping[str, Any], text: str
) -> list[str]:
    """Define subclasses of `base` in `own`; return their names.

    A row is `Name(parameters): function(arguments of forward) | attributes shown`, with the
    docstring in the lines that follow. Parameters become attributes. Those that the function has
    are passed to it, and so is `training` if it is among them. A `name` is not, as it has no
    effect. `base` has an attribute `_shown` and a method `_complete` that changes attributes after
    they are set.
    """
    names = []
    for block in text.strip().split("\n\n"):
        head, _, doc = block.partition("\n")
        head, _, shown = head.partition(" | ")
        start, _, target = head.partition("): ")
        name, _, parameters = start.partition("(")
        short, _, arguments = target.strip().removesuffix(")").partition("(")
        own[name] = _layer(name, base, functions[short], parameters, arguments, shown)
        own[name].__doc__, own[name].__module__ = (
            doc.replace("\n>>>", "\n\n>>>", 1),
            own["__name__"],
        )
        names.append(name)
    return names


def _layer(
    name: str,
    base: type[Any],
    function: Callable[..., Any],
    parameters: str,
    arguments: str,
    shown: str,
) -> type[Any]:
    """Return the class of a row."""
    attributes, given = _names(parameters), _names(arguments)
    taken = signature(function).parameters
    kept = {*given, *OLD_REDUCTION, "name"}
    passed = [n for n in (*attributes, "training") if n in taken and n not in kept]
    body = "".join(f"    self.{n} = {n}\n" for n in attributes)
    named = [*(f"{n}={n}" for n in given[1:]), *(f"{n}=self.{n}" for n in passed)]
    call = ", ".join([*given[:1], *named])
    text = (
        f"def __init__(self, {parameters}):\n"
        f"    base.__init__(self)\n{body}    self._complete()\n"
        f"def forward(self, {arguments}):\n"
        f"    return function({call})\n"
    )
    found: dict[str, Any] = {"base": base, "function": function, "__name__": __name__}
    exec(compile(text, f"<row {name}>", "exec"), found)
    methods = {n: found[n] for n in ("__init__", "forward")}
    methods["forward"].__doc__ = f"Return `{function.__name__}` of the arguments."
    return type(name, (base,), {**methods, "_shown": shown})


def _names(parameters: str) -> list[str]:
    """Return the names of parameters."""
    (definition,) = ast.parse(f"def f({parameters}): pass").body
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
