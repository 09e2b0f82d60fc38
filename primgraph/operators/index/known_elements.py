"""Known elements while a program is built: those of numbers, arrays and tensors.

The result's size of some functions depends on numbers, and shapes are static. These functions work
on known elements, and on variables if the number of elements is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.operators.call import handle_operator
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, handles

P = ParamSpec("P")
R = TypeVar("R")


def public_by_elements(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that may read elements a public one, which is also a method."""
    functions[function.__name__] = function
    return function


def elements(name: str, x: Any, size: str = "size=") -> Any:
    """Return the elements of `x`, with NumPy's dtypes.

    Raises `ArgumentError` for variables, which have none before the program runs, except for
    integers and booleans that depend on no input; `size` is the argument to suggest then.
    """
    if any(isinstance(v, Variable) for v in handles((x,))):
        found = known_elements(x) if isinstance(x, Variable) else None
        return _raise_unknown_shape(name, x, size) if found is None else found
    if handles((x,)) and isinstance(x, list | tuple):
        return np.array([elements(name, item) for item in x])
    plain: Any = x.detach() if handles((x,)) else x
    return np.asarray(plain) if handles((x,)) else array_of(plain)


def known_elements(x: Variable) -> Any:
    """Return the elements of a variable that depends on no input of its program, or None.

    `np.eye(3) > 0` is such a variable in a traced function. Floats are excluded, as they may be
    differentiated by.
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
    return provider("evaluation").evaluate_graph(Graph((), body, ends), ())[0]


@handle_operator
def _raise_unknown_shape(name: str, x: Any, size: str) -> Any:
    arguments = "mask, x" if name in ("compress", "extract") else "x"
    raise ArgumentError(
        f"the shape of what {name} returns depends on values that are not known yet",
        hint=f"write pg.{name}({arguments}, {size}n), which returns n elements and fills up "
        "missing ones, or pg.where"
        if size
        else "call it on arrays or tensors, whose values are known",
    )


def constant(found: Any) -> Any:
    """Return an array computed from elements as a tensor, or as a constant of the active
    program."""
    return functions["array"](found)
