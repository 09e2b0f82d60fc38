"""Functions for methods of SciPy: traced, of one vector, with exact derivatives."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import pairwise
from typing import Any, final

import numpy as np

from primgraph import tree
from primgraph.api.arguments import call_differentiated
from primgraph.api.derivatives.sparse import sparse_hessian
from primgraph.api.jit import jit
from primgraph.api.public import jacobian
from primgraph.eager.derivatives import recording
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.primitive import innermost
from primgraph.operators.handle import Handle
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
    """Return numbers or arrays in a container as one vector; an array as it is.

    Raises `ArgumentError` for None and empty containers.
    """
    leaves, structure = tree.flatten(found)
    if not leaves:
        raise ArgumentError(f"a function returned {found!r:.60}: return a number or an array")
    if isinstance(found, list | tuple) and all(np.ndim(v) == 0 for v in leaves):
        return functions["array"](found)
    if structure == _LEAF:
        return found
    return functions["concatenate"]([functions["reshape"](v, (-1,)) for v in leaves])


def arguments_of(args: Any, several: tuple[type[Any], ...] = (tuple,)) -> tuple[Any, ...]:
    """Return further arguments as a tuple: what is none of the classes `several` is one of them."""
    if args is None:
        return ()
    is_one = not isinstance(args, several) or getattr(args, "ndim", 1) == 0
    return (args,) if is_one else tuple(args)


def is_plain(given: Any) -> bool:
    """Return whether a call with these arguments is neither recorded nor differentiated."""
    if recording.is_followed.get() or innermost.get() is not None:
        return False
    return not any(isinstance(v, Handle) for v in tree.leaves(given))


def refuse_variables(name: str, leaves: Iterable[Any]) -> None:
    """Raise `ArgumentError` if there are variables of a program among the arguments, or tensors
    that derivatives are taken by."""
    is_followed = recording.is_followed.get()
    for leaf in leaves:
        is_variable = isinstance(leaf, Variable)
        if is_variable or (is_followed and getattr(leaf, "requires_grad", False)):
            similar = _SIMILAR.get(name, name)
            what = "cannot be a part of a program" if is_variable else "has no derivative"
            raise ArgumentError(
                f"{name} of SciPy {what}",
                hint=f"pg.solvers has solvers as programs, such as pg.solvers.{similar}",
            )


def require_vector(name: str, label: str, given: Any, reason: str) -> None:
    """Raise `ArgumentError` for a dict or a DataFrame where SciPy needs a vector."""
    if not isinstance(given, list | tuple) and tree.structure(given) != _LEAF:
        raise ArgumentError(f"{name} takes a vector as {label} {reason}")


def _real(name: str, label: str, leaf: Any) -> Any:
    """Return an array or a number as float64; `DTypeError` unless it is real."""
    kind = leaf.dtype.kind if isinstance(leaf, Handle) else np.asarray(leaf).dtype.kind
    if kind not in "biufO":
        hint = "give real and imaginary parts: x.real, x.imag" if kind == "c" else ""
        raise DTypeError(f"{name}: {leaf!r:.60} in {label} is no array of real numbers", hint=hint)
    return np.asarray(leaf, np.float64)


@final
class Unknowns:
    """Containers of arrays that are solved for, and their elements as one float64 vector.

    `label` is the name of the argument that they are. Raises `ArgumentError` for variables and for
    nothing, `DTypeError` for what is not real.
    """

    def __init__(self, name: str, x0: Any, label: str = "x0") -> None:
        self._name, self._label = name, label
        leaves, self._structure = tree.flatten(x0)
        refuse_variables(name, leaves)
        arrays = [_real(name, label, v) for v in leaves]
        if isinstance(x0, list | tuple) and all(v.ndim == 0 for v in arrays):
            arrays, self._structure = [np.array(x0, np.float64)], _LEAF
        self._shapes = [v.shape for v in arrays]
        if not sum(v.size for v in arrays):
            raise ArgumentError(f"{name}: there is nothing in {label} to solve for")
        ends = [0, *np.cumsum([v.size for v in arrays]).tolist()]
        self._places = [slice(i, j) for i, j in pairwise(ends)]
        self.start = np.concatenate([v.reshape(-1) for v in arrays])

    def split(self, vector: Any) -> Any:
        """Return the containers with the elements of `vector`, which may be a variable."""
        given = zip(self._places, self._shapes, strict=True)
        parts = [vector[place].reshape(shape) for place, shape in given]
        return tree.unflatten(self._structure, parts)

    def spread(self, value: Any, what: str) -> Any:
        """Return numbers for all leaves, or in containers like these, as a vector."""
        parts = zip(tree.broadcast_prefix(value, self._structure, what), self._shapes, strict=True)
        arrays = [np.broadcast_to(_real(self._name, what, v), s).reshape(-1) for v, s in parts]
        return np.concatenate(arrays)

    def pairs(self, bounds: Mapping[str, Any]) -> list[tuple[float, float]]:
        """Return bounds of `minimize` that are in containers as those of the vector: each is a
        pair of ends, or None for neither."""
        leaves, structure = tree.flatten(bounds, lambda v: v is None or isinstance(v, list | tuple))
        ends = []
        for i, infinite in enumerate((-np.inf, np.inf)):
            chosen = [infinite if v is None or v[i] is None else v[i] for v in leaves]
            ends.append(self.spread(tree.unflatten(structure, chosen), f"{self._name}: bounds"))
        return [*zip(*ends, strict=True)]

    def vector_like(self, found: Any) -> Any:
        """Return what `fun` gave as a vector of as many elements.

        Raises `ArgumentError` for other containers, `ShapeError` for another number of elements,
        `DTypeError` for complex ones.
        """
        name, label, structure = self._name, self._label, tree.structure(found)
        if found is not None and self._structure not in (structure, _LEAF):
            raise ArgumentError(
                f"{name}: fun returned {structure}, but {label} is {self._structure}"
            )
        return self.require_count(functions["reshape"](self._real_vector(found), (-1,)))

    def require_count(self, vector: Any) -> Any:
        """Return `vector`; `ShapeError` unless it has as many elements as there are unknowns."""
        count, expected = math.prod(np.shape(vector)), self.start.size
        if count != expected:
            raise ShapeError(
                f"{self._name}: fun returned {count} numbers, but {self._label} has {expected}"
            )
        return vector

    def _real_vector(self, found: Any) -> Any:
        vector = as_vector(found)
        dtype = vector.dtype if isinstance(vector, Handle) else np.asarray(vector).dtype
        if dtype.kind == "c":
            raise DTypeError(
                f"{self._name}: fun returned complex numbers, but {self._label} is real",
                hint="return pg.real(z) and pg.imag(z); a complex y0 of solve_ivp is 1.0 + 0.0j",
            )
        return vector

    def of_vector(
        self, fun: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any] | None = None
    ) -> Callable[[Any], Any]:
        """Return `fun(x, *args, **named)` as a function of the vector; a list is an array."""

        @wraps(fun)
        def call(vector: Any) -> Any:
            found = call_differentiated(fun, self.split(vector), *args, **(named or {}))
            return self._real_vector(found)

        return call

    def constraint(self, given: Any) -> Any:
        """Return a constraint of SciPy's with exact derivatives, unless it has some."""
        if isinstance(given, Mapping):
            if given.get("jac") is not None or "fun" not in given:
                return given
            call = self._constraint(given["fun"], arguments_of(given.get("args")))
            return {**given, "args": (), "fun": jit(call), "jac": jit(jacobian(call))}
        if not hasattr(given, "fun") or callable(given.jac):
            return given
        call = self._constraint(given.fun, ())
        curvature = jit(sparse_hessian(lambda x, v: functions["sum"](call(x) * v)))
        ends = [np.ravel(end) if np.ndim(end) > 1 else end for end in (given.lb, given.ub)]
        return type(given)(
            jit(call),
            *ends,
            jit(jacobian(call)),
            lambda x, v: curvature(x, v).to_scipy(),
            given.keep_feasible,
        )

    def _constraint(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Return a constraint as a function of the vector that returns a number or a vector."""
        call = self.of_vector(fun, args)

        def flat(vector: Any) -> Any:
            found = call(vector)
            return functions["reshape"](found, (-1,)) if np.ndim(found) > 1 else found

        return wraps(fun)(flat)

    def restored(self, found: Any, field: str = "x") -> Any:
        """Return a result of SciPy's with the vector in a field as containers."""
        if self._structure != _LEAF or len(self._shapes[0]) != 1:
            setattr(found, field, self.split(getattr(found, field)))
        return found
