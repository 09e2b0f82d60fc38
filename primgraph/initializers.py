"""Initial values of parameters: random and constant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from primgraph.errors import ArgumentError, unknown_name
from primgraph.ir.frontend.signature import applied, checked_methods
from primgraph.ir.types import DType, Shape

__all__ = [
    "Assign",
    "Constant",
    "Initializer",
    "Kaiming",
    "Normal",
    "Uniform",
    "Xavier",
    "fans",
    "first_array",
]


class Initializer(Protocol):
    """Function that returns the initial value of a parameter from shape, dtype and a generator."""

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]: ...


@checked_methods()
@dataclass(frozen=True, slots=True)
class Constant:
    """Initializer with all elements equal to `value`."""

    value: float = 0.0

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return np.full(shape, self.value, dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Assign:
    """Initializer with a given array, which must have the parameter's shape."""

    value: Any

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        array = np.array(self.value, dtype)
        if array.shape != shape:
            raise ArgumentError(f"an array of shape {array.shape} cannot initialise {shape}")
        return array


@checked_methods()
@dataclass(frozen=True, slots=True)
class Uniform:
    """Initializer with uniform numbers in [low, high)."""

    low: float = -1.0
    high: float = 1.0

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return rng.uniform(self.low, self.high, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Normal:
    """Initializer with normal numbers of that mean and standard deviation."""

    mean: float = 0.0
    std: float = 1.0

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return rng.normal(self.mean, self.std, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Xavier:
    """Initializer with variance `2 / (fan_in + fan_out)` (Glorot and Bengio, 2010), uniform or
    normal."""

    uniform: bool = True

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        fan_in, fan_out = fans(shape)
        return _with_variance(2.0 / max(fan_in + fan_out, 1), self.uniform, shape, dtype, rng)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Kaiming:
    """Initializer with variance `2 / fan_in`, for relu layers (He et al., 2015), uniform or
    normal."""

    uniform: bool = True

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return _with_variance(2.0 / max(fans(shape)[0], 1), self.uniform, shape, dtype, rng)


def first_array(
    initializer: Initializer, shape: Shape, dtype: DType, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return the array of `initializer` in that dtype.

    Raises `ArgumentError` if it returns another shape or kind of dtype.
    """
    array = np.asarray(applied(initializer, shape, dtype, rng))
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ArgumentError(f"it gives shape {array.shape} and dtype {array.dtype}")
    return array.astype(dtype, order="C")


def fans(shape: Shape) -> tuple[int, int]:
    """Return the numbers of inputs and outputs that each element of a weight connects.

    The last two axes are inputs and outputs; axes before them count as repetitions of both.
    """
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    repeated = math.prod(shape[:-2])
    return repeated * shape[-2], repeated * shape[-1]


def _with_variance(
    variance: float, uniform: bool, shape: Shape, dtype: DType, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    if uniform:
        limit = math.sqrt(3.0 * variance)
        return rng.uniform(-limit, limit, shape).astype(dtype)
    return rng.normal(0.0, math.sqrt(variance), shape).astype(dtype)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.initializers", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
