"""Carry of eager loops: it keeps its containers and types, as in programs."""

from __future__ import annotations

from typing import Any, final

from primgraph import tree
from primgraph.api.world import as_tensor, is_array
from primgraph.control.bodies import require_equal, takes
from primgraph.errors import ArgumentError
from primgraph.ir.types import TensorType
from primgraph.operators.promotion import SCALARS


def weak_leaves(init: Any) -> list[bool]:
    """Return which leaves are Python numbers, whose dtype the first step decides."""
    return [type(leaf) in SCALARS and type(leaf) is not bool for leaf in tree.leaves(init)]


@final
class Carried:
    """Containers and types of a loop's carry.

    `weak` leaves may change their dtype in the first step.
    """

    def __init__(self, operator: str, name: str, init: Any, weak: list[bool]) -> None:
        self.operator, self.name = operator, name
        leaves, self.structure = tree.flatten(init)
        self.types = [self._type(leaf) for leaf in leaves]
        self.weak = weak

    def check_step(self, carry: Any) -> Any:
        """Check and return the carry after a step. Raises the same errors as in programs."""
        leaves, structure = tree.flatten(carry)
        if structure == self.structure and not {type(x) for x in leaves}.isdisjoint(SCALARS):
            leaves = [self._number(x, t) for x, t in zip(leaves, self.types, strict=True)]
            carry = tree.unflatten(structure, leaves)
        types = [self._type(leaf) for leaf in leaves]
        if structure == self.structure:
            for k, (old, new) in enumerate(zip(self.types, types, strict=True)):
                if self.weak[k] and old.shape == new.shape and takes(new.dtype, old.dtype, None):
                    self.types[k] = new
        require_equal(
            self.operator,
            self.name,
            "init is" if self.operator == "scan" else "init_val is",
            (self.structure, self.types),
            (structure, types),
        )
        return carry

    @staticmethod
    def _number(leaf: Any, type_: TensorType) -> Any:
        """A leaf, which is a float of the carry's dtype if it is one of Python's numbers."""
        is_number = type(leaf) in SCALARS and type_.dtype.kind in "fc"
        return as_tensor(leaf).astype(type_.dtype) if is_number and not type_.shape else leaf

    def _type(self, leaf: Any) -> TensorType:
        if not is_array(leaf):
            raise ArgumentError(
                f"{self.operator}: the carry holds {type(leaf).__name__} {leaf!r:.60}, which is "
                "not an array"
            )
        found = as_tensor(leaf)
        return found.type
