"""Initial values of parameters: random and constant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, unknown_name
from primgraph.ir.frontend.signature import call_user_function, checked_methods
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
    """Function that returns the first value of a parameter from its shape, dtype and a generator.

    >>> def ones(shape, dtype, rng):
    ...     return np.ones(shape, dtype)
    >>> with pg.Program():
    ...     w = pg.create_parameter((2,), initializer=ones)
    """

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]: ...


@checked_methods()
@dataclass(frozen=True, slots=True)
class Constant:
    """All elements equal to `value`.

    >>> initializer = pg.initializers.Constant(0.5)
    >>> initializer((2,), np.dtype("float64"), np.random.default_rng(0))
    array([0.5, 0.5])
    """

    value: float = 0.0

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return np.full(shape, self.value, dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Assign:
    """A given array, which must have the parameter's shape.

    >>> initializer = pg.initializers.Assign([1.0, 2.0])
    >>> with pg.Program():
    ...     w = pg.create_parameter((2,), initializer=initializer)
    """

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
    """Uniform numbers in [low, high).

    >>> initializer = pg.initializers.Uniform(0.0, 0.1)
    >>> initializer((3, 2), np.dtype("float64"), np.random.default_rng(0)).shape
    (3, 2)
    """

    low: float = -1.0
    high: float = 1.0

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return rng.uniform(self.low, self.high, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Normal:
    """Normal numbers of that mean and standard deviation.

    >>> initializer = pg.initializers.Normal(0.0, 0.01)
    >>> initializer((3, 2), np.dtype("float64"), np.random.default_rng(0)).shape
    (3, 2)
    """

    mean: float = 0.0
    std: float = 1.0

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return rng.normal(self.mean, self.std, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Xavier:
    """Variance `2 / (fan_in + fan_out)` (Glorot and Bengio, 2010), uniform or normal.

    >>> initializer = pg.initializers.Xavier()
    >>> weight = initializer((3, 3), np.dtype("float64"), np.random.default_rng(0))
    >>> bool(np.all(np.abs(weight) <= 1.0))
    True
    """

    uniform: bool = True

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        fan_in, fan_out = fans(shape)
        return _with_variance(2.0 / max(fan_in + fan_out, 1), self.uniform, shape, dtype, rng)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Kaiming:
    """Variance `2 / fan_in`, for layers followed by relu (He et al., 2015), uniform or normal.

    >>> initializer = pg.initializers.Kaiming(uniform=False)
    >>> initializer((3, 2), np.dtype("float64"), np.random.default_rng(0)).shape
    (3, 2)
    """

    uniform: bool = True

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        return _with_variance(2.0 / max(fans(shape)[0], 1), self.uniform, shape, dtype, rng)


def first_array(
    initializer: Initializer, shape: Shape, dtype: DType, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return the array that `initializer` makes, in that dtype.

    Raises `ArgumentError` if it gives another shape or another kind of dtype.

    >>> one = pg.initializers.Constant(1.0)
    >>> rng = np.random.default_rng(0)
    >>> pg.initializers.first_array(one, (2,), np.dtype("float32"), rng)
    array([1., 1.], dtype=float32)
    """
    array = np.asarray(call_user_function(initializer, shape, dtype, rng))
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ArgumentError(f"it gives shape {array.shape} and dtype {array.dtype}")
    return array.astype(dtype, order="C")


def fans(shape: Shape) -> tuple[int, int]:
    """Return the fan-in and fan-out of a weight of that shape.

    The last two axes are inputs and outputs; axes before them count as repetitions of both.

    >>> pg.initializers.fans((784, 10))
    (784, 10)
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
