"""Gradients by complex numbers as torch has them: `df/dx + i df/dy`, the conjugates of primgraph's.

Seeds and gradients are conjugated where they pass from one convention to the other; derivatives
themselves are primgraph's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.eager.derivatives.reverse import unshared_node
from primgraph.eager.node import Node
from primgraph.eager.tensor import Tensor
from primgraph.operators import conj
from primgraph.operators.handle import Handle


def conjugate_values(given: Any) -> Any:
    """Conjugate complex values, also in lists, tuples and dicts; return others as they are."""
    if isinstance(given, Handle):
        return conj(given) if given.type.is_complex else given
    if isinstance(given, dict):
        return {k: conjugate_values(v) for k, v in given.items()}
    if isinstance(given, tuple) and hasattr(given, "_fields"):
        return type(given)(*map(conjugate_values, given))
    if isinstance(given, list | tuple):
        return type(given)(map(conjugate_values, given))
    if isinstance(given, complex | np.ndarray | np.generic):
        return np.conj(given)
    return given


def turned_node(node: Node, family: type[Tensor]) -> Node:
    """The node of a gradient, conjugated if it is complex."""
    if not node.type.is_complex:
        return node
    found: Tensor = conjugate_values(family(unshared_node(node)))
    return found.node
