"""Operators on symbolic sizes, from which models compute shapes: arrays of objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from primgraph.interop.onnx.node import Known, Node


def _squeeze(node: Node, x: Known, *axes: Known) -> Known:
    given = node.numbers("axes", (x, *axes), 1)
    return np.squeeze(x, None if given is None else tuple(given))


def _unsqueeze(node: Node, x: Known, *axes: Known) -> Known:
    return np.expand_dims(x, tuple(node.numbers("axes", (x, *axes), 1) or ()))


def _reduce_prod(node: Node, x: Known, *axes: Known) -> Known:
    return np.asarray(np.prod(x, keepdims=bool(node.get("keepdims", 1))), object)


# Functions of arrays of which some have sizes as elements, all of them known.
SIZE_FUNCTIONS: dict[str, Callable[..., Known]] = {
    "Add": lambda node, x, y: np.asarray(x + y, object),
    "Sub": lambda node, x, y: np.asarray(x - y, object),
    "Mul": lambda node, x, y: np.asarray(x * y, object),
    "Div": lambda node, x, y: np.asarray(x // y, object),
    "Mod": lambda node, x, y: np.asarray(x % y, object),
    "Neg": lambda node, x: np.asarray(-x, object),
    "Cast": lambda node, x: x,
    "Concat": lambda node, *xs: np.concatenate([x.astype(object) for x in xs]),
    "Equal": lambda node, x, y: np.asarray(x == y, bool),
    "Gather": lambda node, x, indices: np.asarray(np.take(x, indices), object),
    "ReduceProd": _reduce_prod,
    "Reshape": lambda node, x, shape: x.reshape(shape.astype(int)),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Where": lambda node, condition, x, y: np.asarray(np.where(condition, x, y)),
    "Sum": lambda node, *xs: np.asarray(reduce(np.add, xs), object),
}

# Those whose first input has the elements, and the others say what becomes of them.
FIRST_ONLY = {"Gather", "ReduceProd", "Reshape", "Squeeze", "Unsqueeze"}
