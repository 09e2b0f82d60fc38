"""Elements that are known while a program is built: those of numbers, arrays and tensors.

How many elements some functions give depends on numbers, and shapes are fixed. They work on what is
known, and on variables where the number of elements is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.operators.call import on_handles
from primgraph.operators.lazy_loading import functions
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

    Raises `ArgumentError` for variables, which have none before the program runs, other than
    integers and truths that no input matters to; `size` is the argument that helps then.
    """
    if any(isinstance(v, Variable) for v in handles((x,))):
        found = _of_constants(x) if isinstance(x, Variable) else None
        return _refused(name, x, size) if found is None else found
    if handles((x,)) and isinstance(x, list | tuple):
        return np.array([elements(name, item) for item in x])
    plain: Any = x.detach() if handles((x,)) else x
    return np.asarray(plain) if handles((x,)) else array_of(plain)


def _of_constants(x: Variable) -> Any:
    """The elements of a variable that is computed from no input of its program, or None.

    `np.eye(3) > 0` is one in a function that is traced, where NumPy would have an array. Floats
    are not looked at: a derivative may be taken by them.
    """
    builder = x.recorder
    if not isinstance(builder, Builder) or x.dtype.kind not in "biu":
        return None
    body, ends = builder.computing([x.value])
    made = {v for eqn in body for v in eqn.outputs}
    if not made.issuperset(ends) or any(not made.issuperset(eqn.inputs) for eqn in body):
        return None
    if any(not isinstance(n, int) for v in made for n in v.type.shape):
        return None
    return provider("evaluation").evaluated(Graph((), body, ends), ())[0]


@on_handles
def _refused(name: str, x: Any, size: str) -> Any:
    arguments = "mask, x" if name in ("compress", "extract") else "x"
    raise ArgumentError(
        f"the shape of what {name} returns depends on values that are not known yet",
        hint=f"write pg.{name}({arguments}, {size}n), which returns n elements and fills up "
        "missing ones, or pg.where"
        if size
        else "call it on arrays or tensors, whose values are known",
    )


def constant(found: Any) -> Any:
    """An array that was computed from elements: a tensor, or a constant of the program here."""
    return functions["array"](found)
