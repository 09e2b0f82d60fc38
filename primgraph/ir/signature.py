"""Calls that do not fit a function's parameters: refused with what it takes, and near matches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from primgraph.errors import ArgumentError, PrimgraphError, near_matches

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound="type[Any]")


def misfit(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ArgumentError | None:
    """What is wrong with a call of `function`; None where the arguments fit its parameters."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        listed = [p for p in signature.parameters.values() if p.name != "self"]
        open_ended = any(p.kind is p.VAR_KEYWORD for p in listed)
        unknown = [] if open_ended else [k for k in kwargs if k not in signature.parameters]
        fault = f"there is no argument {unknown[0]!r}" if unknown else str(error)
        near = near_matches(unknown[0], (p.name for p in listed)) if unknown else ""
        bare = [p.replace(annotation=p.empty) for p in listed]
        takes = f"it takes {signature.replace(parameters=bare, return_annotation=signature.empty)}"
        return ArgumentError(f"{_name(function)}: {fault}", hint=f"{near} {takes}".strip())
    return None


def _name(function: Callable[..., Any]) -> str:
    """What a user calls `function`: a constructor goes by the name of its class."""
    return function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Let calls that do not fit the parameters of `function` raise an `ArgumentError`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            found = None if isinstance(error, PrimgraphError) else misfit(function, args, kwargs)
            if found is None:
                raise
            raise found from None

    return call


def checked_methods(*left_out: str) -> Callable[[C], C]:
    """Check calls of the constructor and of all public methods but those that are `left_out`."""

    def declare(cls: C) -> C:
        for name, item in list(vars(cls).items()):
            public = name == "__init__" or not name.startswith("_")
            if public and name not in left_out and inspect.isfunction(item):
                setattr(cls, name, checked(item))
        return cls

    return declare
