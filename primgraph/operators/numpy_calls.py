"""Dispatch of NumPy functions on handles to primgraph's functions.

The table of names is `numpy_names`. A function with the same arguments in another order or by other
names is called through `Counterpart`. One with different arguments has a function in
`numpy_meanings`. All of it is imported on NumPy's first dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np

from primgraph.base.array_functions import written_instead
from primgraph.errors import ArgumentError, near_matches
from primgraph.ir.types import variable_extent
from primgraph.operators.numpy_arguments import Counterpart, called
from primgraph.operators.numpy_meanings import CALLED
from primgraph.operators.numpy_names import NOT_BECAUSE, table
from primgraph.operators.numpy_overrides import implemented
from primgraph.operators.variable import handles

# Those whose arguments are extents.
_OF_SHAPES = ("ones", "zeros", "empty", "eye", "identity", "arange", "tri", "indices")
# Those to which a list is a list of arrays.
_OF_LISTS = ("einsum", "linalg.multi_dot", "piecewise")


def _original(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = attrgetter(name)(np)
    except AttributeError:
        return None
    return found


@cache
def known() -> dict[Callable[..., Any], tuple[str, str | Callable[..., Any]]]:
    """Return NumPy's functions, with their dotted names after `numpy.` and their counterparts."""
    found: dict[Callable[..., Any], tuple[str, str | Callable[..., Any]]] = {}
    named: list[tuple[str, str | Callable[..., Any]]] = [*table().items(), *CALLED.items()]
    for name, mine in named:
        original = _original(name)
        if original is not None:
            found.setdefault(original, (name, mine))
    return found


def names() -> frozenset[str]:
    """Return the names after `numpy.` of all functions with a counterpart."""
    return frozenset((*table(), *CALLED))


@cache
def counterpart(original: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function that implements a NumPy function here, or None."""
    if original not in known():
        return None
    name, mine = known()[original]
    if isinstance(mine, str):
        return Counterpart(name, original, mine)
    return mine if name in _OF_LISTS else partial(_call_on_arrays, mine)


def _call_on_arrays(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with lists that contain handles converted to arrays."""
    given = {name: _as_array(value) for name, value in kwargs.items()}
    return function(*map(_as_array, args), **given)


def _as_array(given: Any) -> Any:
    is_list = isinstance(given, list | tuple) and handles(given)
    return called("array", given) if is_list else given


def missing(name: str, instead: str = "") -> ArgumentError:
    """Return the error for a NumPy function without counterpart; `name` is its dotted name."""
    short = name.removeprefix("numpy.")
    reason = NOT_BECAUSE.get(short, "") or written_instead(short.rpartition(".")[2])
    near = "" if instead or reason else near_matches(short, sorted(names()))
    add = f"pg.extend.implements(np.{short})(function) adds one"
    parts = [part for part in (instead or reason, near, add) if part]
    return ArgumentError(f"{name} has no counterpart here", hint="; ".join(parts))


def call_function(
    original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], instead: Any
) -> Any:
    """Call the counterpart of a NumPy function, with handles among its arguments."""
    found = implemented.get(original) or counterpart(original)
    if found is None:
        # NumPy says that functions of `np.emath` are of `numpy.lib.scimath`.
        module = original.__module__.replace("lib.scimath", "emath")
        name = f"{module}.{original.__name__}"
        told = instead(original.__name__, name)
        if original.__name__ in _OF_SHAPES:
            told = variable_extent(handles((*args, *kwargs.values()))).rstrip(";") or told
        raise missing(name, told)
    return found(*args, **kwargs)
