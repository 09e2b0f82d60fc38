"""Operators with static arguments, fixed when a program is built, which may be given as arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.operators.call import public
from primgraph.operators.late import functions
from primgraph.operators.variable import Variable, handles

P = ParamSpec("P")
R = TypeVar("R")


def require_fixed(name: str, value: Any) -> None:
    """Raise `ArgumentError` for a variable as a static argument."""
    found = handles((value,))
    if found:
        static = next((h for v in found if isinstance(v, Variable) and (h := v._static_hint())), "")
        raise ArgumentError(
            f"{name} is fixed when the program is built; it cannot be a variable",
            hint=static or "give Python integers",
        )


def public_with_fixed(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function on handles a public operator with static arguments `names`.

    Arrays among these are converted to lists: beside tensors an array counts as data, which may
    change between calls.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        call: Callable[..., R] = public(function)
        signature = inspect.signature(function)

        @wraps(function)
        def with_lists(*args: Any, **kwargs: Any) -> R:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                return call(*args, **kwargs)
            for name in names:
                if isinstance(given.arguments.get(name), np.ndarray):
                    given.arguments[name] = given.arguments[name].tolist()
            return call(*given.args, **given.kwargs)

        functions[function.__name__] = with_lists
        return cast("Callable[P, R]", with_lists)

    return declare
