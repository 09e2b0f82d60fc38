"""Functions for methods of SciPy: traced, of one vector, with exact derivatives."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import pairwise
from typing import Any, final

import numpy as np

from primgraph import tree
from primgraph.api.arguments import call_differentiated
from primgraph.api.jit import jit
from primgraph.api.public import hessian, jacobian
from primgraph.errors import ArgumentError, ShapeError
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import Variable

_LEAF = tree.structure(0.0)
# Solvers of `pg.solvers` that are like functions of SciPy with other names.
_SIMILAR = {"curve_fit": "least_squares", "solve_bvp": "root"}


def of_scipy(module: str, name: str) -> Any:
    """Return an attribute of a module of SciPy; None if there is no such module or attribute."""
    try:
        return getattr(importlib.import_module(f"scipy.{module}"), name, None)
    except ImportError:
        return None


def as_vector(found: Any) -> Any:
    """Return numbers or arrays in a container as one vector; an array as it is."""
    if isinstance(found, list | tuple) and all(np.ndim(v) == 0 for v in tree.leaves(found)):
        return functions["array"](found)
    leaves, structure = tree.flatten(found)
    if structure == _LEAF:
        return found
    return functions["concatenate"]([functions["reshape"](v, (-1,)) for v in leaves])


def refuse_variables(name: str, leaves: Iterable[Any]) -> None:
    """Raise `ArgumentError` if there are variables of a program among the arguments."""
    if any(isinstance(v, Variable) for v in leaves):
        similar = _SIMILAR.get(name, name)
        raise ArgumentError(
            f"{name} of SciPy cannot be a part of a program",
            hint=f"pg.solvers has solvers as programs, such as pg.solvers.{similar}",
        )


@final
class Unknowns:
    """Containers of arrays that are solved for, and their elements as one float64 vector."""

    def __init__(self, name: str, x0: Any) -> None:
        if isinstance(x0, list | tuple) and all(np.ndim(v) == 0 for v in tree.leaves(x0)):
            x0 = np.array(x0, np.float64)
        leaves, self._structure = tree.flatten(x0)
        refuse_variables(name, leaves)
        arrays = [np.asarray(v, np.float64) for v in leaves]
        self._shapes = [v.shape for v in arrays]
        if not sum(v.size for v in arrays):
            raise ArgumentError(f"{name}: there is nothing in x0 to solve for")
        ends = [0, *np.cumsum([v.size for v in arrays]).tolist()]
        self._places = [slice(i, j) for i, j in pairwise(ends)]
        self.start = np.concatenate([v.reshape(-1) for v in arrays])

    def split(self, vector: Any) -> Any:
        """Return the containers with the elements of `vector`, which may be a variable."""
        given = zip(self._places, self._shapes, strict=True)
        parts = [vector[place].reshape(shape) for place, shape in given]
        return tree.unflatten(self._structure, parts)

    def vector_like(self, name: str, found: Any) -> Any:
        """Return what `fun` gave as a vector of as many elements.

        Raises `ArgumentError` for other containers, `ShapeError` for another number of elements.
        """
        structure = tree.structure(found)
        if self._structure not in (structure, _LEAF):
            raise ArgumentError(f"{name}: fun returned {structure}, but y0 is {self._structure}")
        vector = functions["reshape"](as_vector(found), (-1,))
        if vector.shape != self.start.shape:
            count, expected = vector.shape[0], self.start.size
            raise ShapeError(f"{name}: fun returned {count} numbers, but y0 has {expected}")
        return vector

    def of_vector(
        self, fun: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any] | None = None
    ) -> Callable[[Any], Any]:
        """Return `fun(x, *args, **named)` as a function of the vector; a list is an array."""

        @wraps(fun)
        def call(vector: Any) -> Any:
            return as_vector(call_differentiated(fun, self.split(vector), *args, **(named or {})))

        return call

    def constraint(self, given: Any) -> Any:
        """Return a constraint of SciPy's with exact derivatives, unless it has some."""
        if isinstance(given, Mapping):
            if given.get("jac") is not None:
                return given
            call = self.of_vector(given["fun"], tuple(given.get("args", ())))
            return {**given, "args": (), "fun": jit(call), "jac": jit(jacobian(call))}
        if not hasattr(given, "fun") or callable(given.jac):
            return given
        call = self.of_vector(given.fun, ())
        curvature = jit(hessian(lambda x, v: functions["sum"](call(x) * v)))
        return type(given)(
            jit(call), given.lb, given.ub, jit(jacobian(call)), curvature, given.keep_feasible
        )

    def restored(self, found: Any) -> Any:
        """Return a result of SciPy's with `x` as containers."""
        found.x = self.split(found.x)
        return found
