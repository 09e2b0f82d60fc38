"""Functions of arrays as functions of one flat vector, for SciPy's methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from primgraph.errors import ShapeError
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.promotion import array_of

Array = np.ndarray[Any, Any]


@checked_methods("__init__", late=True)
class FlatObjective(ABC):
    """Loss as a function of `theta`, the elements of arrays of given types in one float64 vector.

    Value and gradient of the latest vector are cached: `fun` and `jac` at the same point cost one
    evaluation.
    """

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._types = tuple(types)
        self._ends = list(accumulate(t.size for t in types))
        self._latest: tuple[bytes, float, Array] | None = None

    @abstractmethod
    def _evaluate(self, vector: Array) -> tuple[float, Array]:
        """Return the loss and its gradient at a validated vector."""

    @abstractmethod
    def _start(self) -> Sequence[Array]:
        """Return the initial arrays."""

    @property
    def size(self) -> int:
        """Number of elements of a vector."""
        return self._ends[-1]

    @property
    def x0(self) -> Array:
        """Initial parameters as one vector."""
        return flat(self._start())

    def fun(self, theta: Any) -> float:
        """Return the loss at `theta`."""
        return self._value_and_gradient(theta)[0]

    def jac(self, theta: Any) -> Array:
        """Return the gradient at `theta`, a vector."""
        return self._value_and_gradient(theta)[1].copy()

    def fun_and_jac(self, theta: Any) -> tuple[float, Array]:
        """Return the loss and its gradient at `theta`, for SciPy's `jac=True`."""
        value, gradient = self._value_and_gradient(theta)
        return value, gradient.copy()

    def _value_and_gradient(self, theta: Any) -> tuple[float, Array]:
        vector = self._vector(theta)
        key, latest = vector.tobytes(), self._latest
        if latest is None or latest[0] != key:
            self._latest = latest = (key, *self._evaluate(vector))
        return latest[1:]

    def _vector(self, theta: Any) -> Array:
        vector = array_of(theta, FLOAT64)
        if vector.shape != (self.size,):
            raise ShapeError(f"a vector of {self.size} elements is needed, not {vector.shape}")
        return vector

    def _split_vector(self, theta: Any) -> list[Array]:
        """Return the arrays whose elements are in `theta`."""
        parts = np.split(self._vector(theta), self._ends[:-1])
        return [p.reshape(t.shape).astype(t.dtype) for p, t in zip(parts, self._types, strict=True)]


def flat(arrays: Sequence[Array]) -> Array:
    """Return the elements of all arrays in one float64 vector."""
    return np.concatenate([a.ravel() for a in arrays]).astype(np.float64)
