"""Dispatch of NumPy functions on handles to primgraph's functions.

The rows are those of `names`. A function of `numpy_meanings` or `index.assignments` takes NumPy's
arguments; all others are called through `Counterpart`. These modules are imported on NumPy's first
dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np

from primgraph.base.array_functions import replacement_hint
from primgraph.errors import ArgumentError, near_matches
from primgraph.ir.types import variable_extent
from primgraph.operators import numpy_meanings
from primgraph.operators.index import assignments
from primgraph.operators.name_table import NOT_BECAUSE, OF_ELEMENTS
from primgraph.operators.names import Row, library, rows
from primgraph.operators.numpy_arguments import Counterpart, as_elements, call_named, has_elements
from primgraph.operators.numpy_overrides import implemented
from primgraph.operators.variable import handles

# Functions to which a list is a list of arrays.
_OF_LISTS = ("einsum", "einsum_path", "piecewise")
# Modules whose functions take NumPy's arguments.
_MEANINGS = (assignments.__name__, numpy_meanings.__name__)


def _original(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = attrgetter(name)(np)
    except AttributeError:
        return None
    return found


@cache
def known_functions() -> dict[Callable[..., Any], tuple[str, Row]]:
    """Return NumPy's functions, with their dotted names after `numpy.` and their rows."""
    found: dict[Callable[..., Any], tuple[str, Row]] = {}
    for name, row in library("numpy").items():
        original = _original(name)
        if original is not None:
            found.setdefault(original, (name, row))
    return found


@cache
def counterpart(original: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function that implements a NumPy function here, or None."""
    if original not in known_functions():
        return None
    name, row = known_functions()[original]
    if row.module not in _MEANINGS:
        return Counterpart(name, original, row)
    mine: Callable[..., Any] = row.load()
    return mine if name in _OF_LISTS else partial(_call_on_arrays, mine)


def _call_on_arrays(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with lists that contain handles converted to arrays."""
    given = {name: _as_array(value) for name, value in kwargs.items()}
    return function(*map(_as_array, args), **given)


def _as_array(given: Any) -> Any:
    is_list = isinstance(given, list | tuple) and handles(given)
    return call_named("array", given) if is_list else given


def missing_error(name: str, instead: str = "") -> ArgumentError:
    """Return the error for a NumPy function without counterpart; `name` is its dotted name."""
    short = name.removeprefix("numpy.")
    reason = NOT_BECAUSE.get(short, "") or replacement_hint(short.rpartition(".")[2])
    near = "" if instead or reason else near_matches(short, sorted(library("numpy")))
    if not all(part.isidentifier() for part in short.split(".")):
        # What np.frompyfunc returns has the name of a function of the user's.
        return ArgumentError(
            f"{short!r:.60} is a Python function for arrays of objects, and cannot be traced",
            hint="write np.vectorize(f)(x), or pg.vmap(f)(x), which maps f over the first axis",
        )
    add = f"pg.extend.implements(np.{short})(function) adds one"
    parts = [part for part in (instead or reason, near, add) if part]
    return ArgumentError(f"{name} has no counterpart here", hint="; ".join(parts))


def _of_unknown_shape(name: str, given: Sequence[Any]) -> ArgumentError:
    """Return the error for a function whose result has a shape that is not known yet."""
    reason, _, advice = variable_extent(given).rstrip(";").partition(": ")
    return ArgumentError(f"{name}: {reason}", hint=advice)


def call_function(
    original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], instead: Any
) -> Any:
    """Call the counterpart of a NumPy function, with handles among its arguments."""
    found = implemented.get(original) or counterpart(original)
    if found is None:
        # NumPy says that functions of `np.emath` are of `numpy.lib.scimath`.
        module = original.__module__.replace("lib.scimath", "emath")
        name = f"{module}.{original.__name__}"
        short = name.removeprefix("numpy.")
        if short in OF_ELEMENTS and has_elements([*args, *kwargs.values()]):
            named = {n: as_elements(a) for n, a in kwargs.items()}
            return original(*map(as_elements, args), **named)
        told = instead(original.__name__, name)
        if original.__name__ in rows("sizes"):
            raise _of_unknown_shape(name, handles((*args, *kwargs.values())))
        raise missing_error(name, told)
    return found(*args, **kwargs)
