"""Arguments of a call selected by `argnums`: their arrays and containers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph import tree
from primgraph.api.world import World, handles_in, is_array, world_of
from primgraph.base.locks import cached_property
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError, NotDifferentiable
from primgraph.ir.frontend.signature import call_user_function
from primgraph.ir.types import complex_dtype
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, in_manner, manner, use_variable_class

if TYPE_CHECKING:
    from primgraph.eager import tensor as tensors
    from primgraph.numpy import changing
else:
    changing = late("primgraph.numpy.changing")
    tensors = late("primgraph.eager.tensor")


def positions_of(name: str, argnums: Any, what: str = "argnums") -> tuple[int, ...]:
    """Return the positions in `argnums`, an integer or a tuple or list; `what` names it in
    messages."""
    listed = argnums if isinstance(argnums, list | tuple) else (argnums,)
    if not listed or not all(type(n) is int or isinstance(n, np.integer) for n in listed):
        given = any(isinstance(item, Handle | np.ndarray) for item in listed)
        raise ArgumentError(
            f"{name}: {what} is an integer or a tuple of them, not {argnums!r:.60}",
            hint=f"write pg.{name}(f)(x)" if given else "",
        )
    return tuple(int(n) for n in listed)


@final
@dataclass(frozen=True)
class SelectedArguments:
    """Arguments of a call of `function`, and those selected for a transform `name`.

    `leaves` are the arrays in the arguments at `places`, `structures` the containers around them.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    places: tuple[int, ...]
    structures: tuple[tree.Structure, ...]
    leaves: tuple[Any, ...]

    @staticmethod
    def from_call(
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        argnums: Sequence[int],
    ) -> SelectedArguments:
        """Return the selection. Raises `ArgumentError` for a position out of range and for objects
        other than arrays, `NotDifferentiable` for dtypes other than floats."""
        places = tuple([n + len(args) if n < 0 else n for n in argnums])
        for number, place in zip(argnums, places, strict=True):
            if not 0 <= place < len(args):
                raise ArgumentError(
                    f"{name}: there is no argument {number}: {len(args)} are given by position",
                    hint="give by position what derivatives are taken by" if kwargs else "",
                )
        found = [tree.flatten(args[place]) for place in places]
        structures = tuple([structure for _, structure in found])
        leaves = [leaf for listed, _ in found for leaf in listed]
        chosen = SelectedArguments(name, function, args, kwargs, places, structures, tuple(leaves))
        floats = tuple([chosen._as_float(i, leaf) for i, leaf in enumerate(leaves)])
        return SelectedArguments(name, function, args, kwargs, places, structures, floats)

    def _as_float(self, number: int, leaf: Any) -> Any:
        """Convert a leaf to a float array, as Python numbers are."""
        if isinstance(leaf, int | float) and not isinstance(leaf, bool | np.generic):
            return np.asarray(leaf, get_default_dtype())
        if type(leaf) is complex:
            return np.asarray(leaf, complex_dtype(get_default_dtype()))
        if not is_array(leaf):
            raise ArgumentError(
                f"{self.name}: {self.paths[number]} is {type(leaf).__name__} {leaf!r:.60}, "
                "not an array",
                hint="argnums says which arguments derivatives are taken by",
            )
        array = leaf if isinstance(leaf, Handle) else array_of(leaf)
        if array.dtype.kind not in "fc":
            path = self.paths[number]
            raise NotDifferentiable(
                f"{self.name}: {path} is of {array.dtype}, and only floats have derivatives",
                hint=f"pass floats: {path.replace('argument ', 'x')}.astype(float); argnums says "
                "which arguments derivatives are taken by",
            )
        return array

    @cached_property
    def paths(self) -> list[str]:
        """Return the Python path of each leaf from its parameter, for messages."""
        names = parameter_names(self.function, len(self.args))
        pairs = zip(self.places, self.structures, strict=True)
        return [path for place, s in pairs for path in tree.paths_of(s, names[place])]

    @cached_property
    def world(self) -> World:
        """World in which the function is called."""
        return world_of(self.args, dict(self.kwargs))

    def call(self, leaves: Sequence[Any]) -> Any:
        """Call the function with these leaves in place of its own."""
        args = list(self.args)
        for place, value in zip(self.places, self.unflatten_leaves(leaves), strict=True):
            args[place] = value
        return call_differentiated(self.function, *args, **self.kwargs)

    def unflatten_leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """Unflatten other leaves into the containers of the selected arguments."""
        found, start = [], 0
        for structure in self.structures:
            end = start + tree.count(structure)
            found.append(tree.unflatten(structure, leaves[start:end]))
            start = end
        return found


def call_differentiated(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a user's function that is differentiated by its arguments.

    A function written for NumPy is called as a copy in which NumPy's names refer to
    `primgraph.numpy`, as in `pg.trace`: it may create arrays from tensors, and assign to their
    elements. In a program its arguments are the variables that `pg.trace` would pass.
    """
    rooms = import_module("primgraph.numpy.rebound")
    written, kind = rooms.traceable(function)
    own = manner()
    changes = kind is not Variable if own is Variable else own is changing.ChangingArray
    if changes and any(isinstance(v, Variable) for v in handles_in((args, kwargs))):
        kind = changing.ChangingArray
        args, kwargs = tree.map(partial(in_manner, kind), (args, kwargs))
        with use_variable_class(kind):
            return call_user_function(written, *args, **kwargs)
    if written is function:
        return call_user_function(function, *args, **kwargs)
    with changing.use_array_kind(tensors.tensor):
        return call_user_function(written, *args, **kwargs)


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of `count` positional arguments for messages."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*named[:count], *(f"argument {i}" for i in range(len(named), count))]
