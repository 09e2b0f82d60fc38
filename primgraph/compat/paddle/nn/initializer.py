"""Rules for first values by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from primgraph import initializers as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.framework import paddles
from primgraph.errors import OptionError
from primgraph.initializers import Initializer

__all__ = [
    "Assign",
    "Constant",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
]

# How much a function changes the size of what it is given, by its name in Paddle.
_GAINS: dict[str, Callable[[float], float]] = {
    "linear": lambda slope: 1.0,
    "sigmoid": lambda slope: 1.0,
    "conv1d": lambda slope: 1.0,
    "conv2d": lambda slope: 1.0,
    "conv3d": lambda slope: 1.0,
    "tanh": lambda slope: 5.0 / 3.0,
    "relu": lambda slope: math.sqrt(2.0),
    "leaky_relu": lambda slope: math.sqrt(2.0 / (1.0 + slope**2)),
    "selu": lambda slope: 0.75,
}


def _random(variance: Callable[[int, int], float], *, uniform: bool) -> Initializer:
    """Numbers of a variance that depends on the inputs and outputs of each element."""

    def initializer(shape: Any, dtype: Any, rng: Any) -> Any:
        spread = math.sqrt(variance(*pg.fans(shape)))
        if uniform:
            limit = math.sqrt(3.0) * spread
            return rng.uniform(-limit, limit, shape).astype(dtype)
        return rng.normal(0.0, spread, shape).astype(dtype)

    return initializer


def _xavier(
    fan_in: float | None, fan_out: float | None, gain: float, *, uniform: bool
) -> Initializer:
    def variance(inputs: int, outputs: int) -> float:
        total = (inputs if fan_in is None else fan_in) + (outputs if fan_out is None else fan_out)
        return 2.0 * gain**2 / max(total, 1.0)

    return _random(variance, uniform=uniform)


def _kaiming(
    fan_in: float | None, negative_slope: float, nonlinearity: str, *, uniform: bool
) -> Initializer:
    if nonlinearity not in _GAINS:
        raise OptionError(
            f"there is no gain for {nonlinearity!r:.60}", hint=f"there is for {', '.join(_GAINS)}"
        )
    gain = _GAINS[nonlinearity](negative_slope)
    return _random(
        lambda inputs, _: gain**2 / max(inputs if fan_in is None else fan_in, 1.0), uniform=uniform
    )


@paddles
def Constant(value: float = 0.0) -> Initializer:
    """Return an initializer that sets all elements to `value`.

    >>> half = paddle.nn.initializer.Constant(0.5)
    >>> half((2,), np.dtype("float32"), np.random.default_rng(0))
    array([0.5, 0.5], dtype=float32)
    """
    return pg.Constant(value)


@paddles
def Assign(value: Any, name: str | None = None) -> Initializer:
    """Return an initializer that copies an array of the parameter's shape.

    >>> given = paddle.nn.initializer.Assign([1.0, 2.0])
    >>> given((2,), np.dtype("float32"), np.random.default_rng(0))
    array([1., 2.], dtype=float32)
    """
    return pg.Assign(value)


@paddles
def Normal(mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Initializer:
    """Return an initializer of normal numbers.

    >>> normal = paddle.nn.initializer.Normal(std=0.01)
    >>> normal((2, 3), np.dtype("float32"), np.random.default_rng(0)).shape
    (2, 3)
    """
    return pg.Normal(mean, std)


@paddles
def Uniform(low: float = -1.0, high: float = 1.0, name: str | None = None) -> Initializer:
    """Return an initializer of uniform numbers from `low` to `high`.

    >>> uniform = paddle.nn.initializer.Uniform(0.0, 0.1)
    >>> uniform((2, 3), np.dtype("float32"), np.random.default_rng(0)).shape
    (2, 3)
    """
    return pg.Uniform(low, high)


@paddles
def XavierUniform(
    fan_in: float | None = None,
    fan_out: float | None = None,
    gain: float = 1.0,
    name: str | None = None,
) -> Initializer:
    """Return an initializer of uniform numbers of variance `2 * gain**2 / (fan_in + fan_out)`.

    >>> xavier = paddle.nn.initializer.XavierUniform()
    >>> weight = xavier((3, 3), np.dtype("float32"), np.random.default_rng(0))
    >>> bool(np.all(np.abs(weight) <= 1.0))
    True
    """
    return _xavier(fan_in, fan_out, gain, uniform=True)


@paddles
def XavierNormal(
    fan_in: float | None = None,
    fan_out: float | None = None,
    gain: float = 1.0,
    name: str | None = None,
) -> Initializer:
    """Return an initializer of normal numbers of variance `2 * gain**2 / (fan_in + fan_out)`.

    >>> xavier = paddle.nn.initializer.XavierNormal()
    >>> xavier((2, 3), np.dtype("float32"), np.random.default_rng(0)).shape
    (2, 3)
    """
    return _xavier(fan_in, fan_out, gain, uniform=False)


@paddles
def KaimingUniform(
    fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
) -> Initializer:
    """Return an initializer of uniform numbers of variance `gain**2 / fan_in`.

    Raises `OptionError` for a nonlinearity without a known gain.

    >>> kaiming = paddle.nn.initializer.KaimingUniform(nonlinearity="tanh")
    >>> kaiming((2, 3), np.dtype("float32"), np.random.default_rng(0)).shape
    (2, 3)
    """
    return _kaiming(fan_in, negative_slope, nonlinearity, uniform=True)


@paddles
def KaimingNormal(
    fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
) -> Initializer:
    """Return an initializer of normal numbers of variance `gain**2 / fan_in`.

    Raises `OptionError` for a nonlinearity without a known gain.

    >>> kaiming = paddle.nn.initializer.KaimingNormal()
    >>> kaiming((2, 3), np.dtype("float32"), np.random.default_rng(0)).shape
    (2, 3)
    """
    return _kaiming(fan_in, negative_slope, nonlinearity, uniform=False)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
