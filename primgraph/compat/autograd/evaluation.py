"""A function that was called on arrays of its own, and products with its derivative."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from primgraph import tree
from primgraph.api.derivatives.of_functions import Outputs
from primgraph.api.world import world_of
from primgraph.compat.autograd.boxes import Box, is_element, new_box, take_cotangent
from primgraph.errors import MissingRuleError, NotDifferentiable
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import array_of


@final
class Evaluated:
    """`function(x)`, where `x` is an array or a container of them, and so is what it gives.

    Objects of the user's vector spaces in `x` are boxed. With `has_aux` what is given second may be
    anything, and has no derivative.
    """

    def __init__(self, function: Callable[[Any], Any], x: Any, has_aux: bool = False) -> None:
        leaves, self._structure = tree.flatten(x, is_element if Box.types else None)
        self._function = function
        self._has_aux = has_aux
        self._name = str(getattr(function, "__name__", "a function"))
        self._outputs = Outputs(self._name)
        self._world = world_of([leaf for leaf in leaves if not is_element(leaf)])
        self._elements = {i: leaf for i, leaf in enumerate(leaves) if is_element(leaf)}
        self._boxes: dict[int, Box] = {}
        self.leaves = [np.zeros(()) if is_element(leaf) else as_float(leaf) for leaf in leaves]
        self.applied = self._world.apply(self._name, self._call_function, self.leaves)

    def _call_function(self, leaves: Sequence[Any]) -> list[Any]:
        self._boxes = {i: new_box(value, leaves[i]) for i, value in self._elements.items()}
        given = [self._boxes.get(i, leaf) for i, leaf in enumerate(leaves)]
        found = self._function(tree.unflatten(self._structure, given))
        value, aux = found if self._has_aux else (found, None)
        return self._outputs.flatten_result(value, aux)

    @property
    def count(self) -> int:
        """How many arrays there are in the value."""
        return self._outputs.count

    @property
    def results(self) -> Sequence[Handle]:
        """The arrays in the value."""
        return self.applied.results[: self.count]

    def value(self) -> Any:
        """Return the function's value; a pair with `has_aux`."""
        value, aux = self._outputs.unflatten_results(self.applied.results)
        return self.given_back((value, aux) if self._has_aux else value)

    def given_back(self, value: Any) -> Any:
        """A container as the caller gets it: numbers for arrays without axes."""
        return tree.map(_as_number, self._world.convert_results(value))

    def tell_of_independence(self) -> bool:
        """Whether the value does not depend on `x`, of which a warning tells."""
        if any(self.applied.depends(self.count)[0]):
            return False
        warnings.warn("Output seems independent of input.", stacklevel=4)
        return True

    def vjp(self, seeds: Any) -> Any:
        """The product of `seeds`, which are like the value, with the Jacobian: like `x`."""
        given = self._cast_seeds(seeds, self._outputs.structure, self.results)
        found = self.applied.vjp(self.count, given)
        parts = [
            take_cotangent(self._boxes[i]) if i in self._boxes else part
            for i, part in enumerate(found)
        ]
        return self.given_back(tree.unflatten(self._structure, parts))

    def jvp(self, tangents: Any) -> Any:
        """The product of the Jacobian with `tangents`, which are like `x`: like the value."""
        self._require_arrays()
        given = self._cast_seeds(tangents, self._structure, self.leaves)
        found = self.applied.jvp(self.count, given)
        return self.given_back(tree.unflatten(self._outputs.structure, found))

    def jacobian(self) -> Any:
        """The matrix of an array by an array, with the axes of both."""
        self._require_arrays()
        if self.count != 1 or len(self.leaves) != 1:
            raise NotDifferentiable(f"the jacobian of {self._name} is of one array by one array")
        (row,) = self.applied.matrix(1, "reverse")
        return self.given_back(row[0])

    def _require_arrays(self) -> None:
        for value in self._elements.values():
            raise MissingRuleError(
                f"{self._name} is of a {type(value).__name__}, by which reverse mode alone is there"
            )

    def _cast_seeds(
        self, given: Any, structure: tree.Structure, arrays: Sequence[Any]
    ) -> list[Any]:
        """Seeds in a row, in the dtypes of `arrays`: what is not there is zero."""
        found = tree.broadcast_prefix(given, structure, "v")
        return [_cast(s, a) for s, a in zip(found, arrays, strict=True)]


def _cast(seed: Any, array: Any) -> Any:
    if seed is None or isinstance(seed, Handle):
        return seed
    found = np.asarray(seed)
    if found.dtype.kind == "c" and array.dtype.kind != "c":
        return found
    return np.broadcast_to(found.astype(array.dtype), array.shape)


def _as_number(leaf: Any) -> Any:
    return leaf[()] if isinstance(leaf, np.ndarray) and leaf.ndim == 0 else leaf


def as_float(leaf: Any) -> Any:
    """An array that derivatives are taken by.

    Raises `NotDifferentiable` for integers and all else.
    """
    if isinstance(leaf, Handle) and leaf.dtype.kind in "fc":
        return leaf
    numbers = isinstance(leaf, float | complex | np.ndarray | np.generic)
    if not numbers or np.asarray(leaf).dtype.kind not in "fc":
        raise NotDifferentiable(
            f"no derivative is taken by {type(leaf).__name__} {leaf!r:.60}",
            hint="give floats: 2.0 for 2",
        )
    return array_of(leaf)
