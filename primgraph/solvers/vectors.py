"""Functions of containers of arrays as functions of one vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph import tree
from primgraph.control.bodies import require_equal
from primgraph.control.solutions import (
    Solved,
    default_tolerance,
    implicit,
    require_floats,
    solution_options,
    with_solver,
)
from primgraph.control.world import own
from primgraph.errors import ArgumentError
from primgraph.operators.elementwise.arithmetic import abs
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.elementwise.logic import where
from primgraph.operators.lazy_loading import functions
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable


class Vectors(NamedTuple):
    """The containers, types and common dtype of what is solved for."""

    structure: tree.Structure
    leaves: Sequence[Variable]
    dtype: np.dtype[Any]

    @property
    def start(self) -> Any:
        """The initial values, as a vector."""
        return self.join(self.leaves)

    def join(self, leaves: Sequence[Any]) -> Any:
        """Return all elements in a vector."""
        rows = [functions["astype"](reshape(v, (-1,)), self.dtype) for v in leaves]
        return functions["concatenate"](rows) if len(rows) > 1 else rows[0]

    def split(self, vector: Any, lead: int = 0) -> Any:
        """Return the containers whose elements are in `vector`, behind so many leading axes."""
        found, begin = [], 0
        before = vector.shape[:lead]
        for leaf in self.leaves:
            end = begin + math.prod(leaf.shape)
            part = reshape(vector[..., begin:end], (*before, *leaf.shape))
            found.append(functions["astype"](part, leaf.dtype))
            begin = end
        return tree.unflatten(self.structure, found)

    def joined(self, operator: str, given: str, result: Any) -> Any:
        """Return what a function returned as a vector; it has the containers and types of `given`.

        Raises `ArgumentError`, `DTypeError` or `ShapeError` otherwise.
        """
        leaves, structure = tree.flatten(result)
        found = [own(leaf) for leaf in leaves]
        types = self.structure, [v.type for v in self.leaves]
        require_equal(operator, "f", f"{given} is", types, (structure, [v.type for v in found]))
        return self.join(found)

    def tolerance(self, options: dict[str, Any]) -> float:
        """Return the tolerance of `options`, or that of the narrowest dtype."""
        given = options["tolerance"]
        return default_tolerance([v.type for v in self.leaves]) if given is None else float(given)

    def flat(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return `f` as a function of a vector."""

        def of_vector(vector: Any) -> Any:
            return f(self.split(vector))

        return of_vector

    def solution(
        self, equation: Callable[[Any], Any], x: Any, solved: Solved, options: dict[str, Any]
    ) -> Any:
        """Return the vector `x` in containers, with the derivatives of the solution of an equation.

        It is NaN without convergence if `options` are "strict"; else `solved` comes with it.
        """
        x, solved = stop_gradient(x), Solved(*map(stop_gradient, solved))
        if options["strict"]:
            x = where(solved.converged, x, np.nan)
        found = self.split(implicit(equation, x, linear_solver=options["linear_solver"]))
        return found if options["strict"] else (found, solved)


def vectors_of(operator: str, x0: Any, name: str = "x0") -> Vectors:
    """Return how the argument `name` is a vector; it is a float array, or a container of such."""
    leaves, structure = tree.flatten(x0)
    values = [own(leaf) for leaf in leaves]
    # An open size may be any.
    if all(any(type(n) is int and n == 0 for n in v.shape) for v in values):
        raise ArgumentError(f"{operator}: there is nothing in {name} to solve for")
    require_floats(operator, name, values, structure)
    return Vectors(structure, values, np.result_type(*[v.dtype for v in values]))


def options_of(
    operator: str, tol: float | None, max_trips: int, full_output: bool, linear_solver: str
) -> dict[str, Any]:
    """Return the options of a solver; raise `ArgumentError` for those out of range."""
    with_solver(operator, linear_solver)
    options = solution_options(operator, tol, max_trips, full_output, False)
    return {**options, "linear_solver": linear_solver}


def dot(a: Any, b: Any) -> Any:
    """Return the sum of the products of two vectors."""
    return functions["sum"](a * b)


def norm(a: Any) -> Any:
    """Return the Euclidean length of a vector."""
    return sqrt(dot(a, a))


def largest(a: Any) -> Any:
    """Return the largest absolute value of an element."""
    return functions["max"](abs(a))
