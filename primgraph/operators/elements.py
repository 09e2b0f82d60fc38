"""Elements that are known while a program is built: those of numbers, arrays and tensors.

How many elements some functions give depends on numbers, and shapes are fixed. They work on what is
known, and on variables where the number of elements is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.operators.call import on_handles
from primgraph.operators.late import functions
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, handles

P = ParamSpec("P")
R = TypeVar("R")


def public_by_elements(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that may look at elements into a public one, which is a method as well."""
    functions[function.__name__] = function
    return function


def elements(name: str, x: Any, size: str = "size=") -> Any:
    """The elements of `x`, as NumPy has them.

    Raises `ArgumentError` for variables, which have none before the program runs; `size` is the
    argument that helps then.
    """
    if any(isinstance(v, Variable) for v in handles((x,))):
        return _refused(name, x, size)
    if handles((x,)) and isinstance(x, list | tuple):
        return np.array([elements(name, item) for item in x])
    found: Any = x.detach() if handles((x,)) else x
    return np.asarray(found) if handles((x,)) else array_of(found)


@on_handles
def _refused(name: str, x: Any, size: str) -> Any:
    raise ArgumentError(
        f"how many elements {name} gives depends on what is not computed yet, and shapes are fixed",
        hint=f"pg.{name}(x, {size}n) gives n of them, those that are lacking filled; pg.where "
        "chooses between arrays of one shape"
        if size
        else "numbers, arrays and tensors have elements that are known",
    )


def constant(found: Any) -> Any:
    """An array that was computed from elements: a tensor, or a constant of the program here."""
    return functions["array"](found)
