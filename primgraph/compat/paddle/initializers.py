"""Initializers of parameters by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from primgraph.approximations.error import erfinv
from primgraph.compat.paddle.dynamic import Tensor
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import ArgumentError, MissingMethodError, OptionError
from primgraph.initializers import first_array
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import DType, Shape

_GAINS = {
    **dict.fromkeys(("linear", "sigmoid", "conv1d", "conv2d", "conv3d"), 1.0),
    **dict.fromkeys(("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"), 1.0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0),
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


class Initializer:
    """Base class of initializers, which set the elements of a parameter.

    Called with a tensor, an initializer changes its elements.

    >>> weight = paddle.create_parameter([2], "float32")
    >>> paddle.nn.initializer.Constant(0.5)(weight)
    >>> weight.numpy()
    array([0.5, 0.5], dtype=float32)
    """

    __slots__ = ()

    def __call__(self, param: Any, block: Any = None, rng: Any = None) -> Any:
        """Set the elements of a tensor.

        With a generator `rng` return an array of shape `param` and dtype `block` instead, as
        primgraph's initializers do.
        """
        if rng is not None:
            return self.values(param, block, rng)
        if not isinstance(param, Tensor):
            raise ArgumentError(
                f"an initializer sets the elements of a tensor, not of {param!r:.60}",
                hint="of a parameter of a program it is an argument of create_parameter",
            )
        rule: Any = self
        found = first_array(rule, param.type.shape, param.type.dtype, reserve_generator()())
        with no_grad():
            param.copy_(found)
        return None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        """Return the elements of a parameter."""
        raise MissingMethodError(f"{type(self).__name__} does not define values")


@checked_methods()
@dataclass(frozen=True, slots=True)
class Constant(Initializer):
    """All elements equal to `value`.

    >>> paddle.create_parameter([2], "float32", attr=paddle.nn.initializer.Constant(0.5)).numpy()
    array([0.5, 0.5], dtype=float32)
    """

    value: float = 0.0

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        return np.full(shape, self.value, dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Assign(Initializer):
    """A given array, list or tensor of as many elements as the parameter.

    >>> given = paddle.nn.initializer.Assign([1.0, 2.0])
    >>> paddle.create_parameter([2], "float32", attr=given).numpy()
    array([1., 2.], dtype=float32)
    """

    value: Any
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, np.ndarray | list | tuple | Tensor):
            raise ArgumentError(f"Assign takes an array or a list, not {self.value!r:.60}")

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        array = np.array(self.value, dtype)
        if array.size != math.prod(shape):
            raise ArgumentError(f"an array of shape {array.shape} cannot initialize {shape}")
        return array.reshape(shape)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Normal(Initializer):
    """Normal numbers of that mean and standard deviation.

    >>> normal = paddle.nn.initializer.Normal(std=0.01)
    >>> paddle.create_parameter([2, 3], "float32", attr=normal).numpy().shape
    (2, 3)
    """

    mean: float = 0.0
    std: float = 1.0
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        return rng.normal(self.mean, self.std, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class TruncatedNormal(Initializer):
    """Normal numbers between `a` and `b`, by inversion of the distribution function.

    >>> normal = paddle.nn.initializer.TruncatedNormal(std=2.0)
    >>> bool(paddle.create_parameter([99], "float32", attr=normal).numpy().max() <= 2.0)
    True
    """

    mean: float = 0.0
    std: float = 1.0
    a: float = -2.0
    b: float = 2.0
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        normal = NormalDist(self.mean, self.std)
        levels = rng.uniform(normal.cdf(self.a), normal.cdf(self.b), shape)
        found = self.mean + self.std * math.sqrt(2.0) * erfinv(2.0 * levels - 1.0)
        return np.clip(found, self.a, self.b).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Uniform(Initializer):
    """Uniform numbers from `low` to `high`.

    >>> uniform = paddle.nn.initializer.Uniform(0.0, 0.1)
    >>> bool(paddle.create_parameter([2, 3], "float32", attr=uniform).numpy().max() <= 0.1)
    True
    """

    low: float = -1.0
    high: float = 1.0
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        return rng.uniform(self.low, self.high, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class XavierUniform(Initializer):
    """Uniform numbers of variance `2 * gain**2 / (fan_in + fan_out)`.

    After X. Glorot and Y. Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010.

    >>> xavier = paddle.nn.initializer.XavierUniform()
    >>> bool(np.all(np.abs(paddle.create_parameter([3, 3], "float32", attr=xavier)) <= 1.0))
    True
    """

    fan_in: float | None = None
    fan_out: float | None = None
    gain: float = 1.0
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        limit = math.sqrt(3.0) * _xavier_deviation(self, shape)
        return rng.uniform(-limit, limit, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class XavierNormal(Initializer):
    """Normal numbers of variance `2 * gain**2 / (fan_in + fan_out)`.

    >>> xavier = paddle.nn.initializer.XavierNormal()
    >>> paddle.create_parameter([2, 3], "float32", attr=xavier).numpy().shape
    (2, 3)
    """

    fan_in: float | None = None
    fan_out: float | None = None
    gain: float = 1.0
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        return rng.normal(0.0, _xavier_deviation(self, shape), shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class KaimingUniform(Initializer):
    """Uniform numbers of variance `gain**2 / fan_in`; `mode` may be "fan_out".

    After K. He et al., Delving deep into rectifiers, 2015. Raises `OptionError` for a nonlinearity
    without a known gain.

    >>> kaiming = paddle.nn.initializer.KaimingUniform(nonlinearity="tanh")
    >>> paddle.create_parameter([2, 3], "float32", attr=kaiming).numpy().shape
    (2, 3)
    """

    fan_in: float | None = None
    negative_slope: float = 0.0
    nonlinearity: str = "relu"
    mode: str = "fan_in"

    def __post_init__(self) -> None:
        _kaiming_deviation(self, (1, 1))

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        limit = math.sqrt(3.0) * _kaiming_deviation(self, shape)
        return rng.uniform(-limit, limit, shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class KaimingNormal(Initializer):
    """Normal numbers of variance `gain**2 / fan_in`; `mode` may be "fan_out".

    Raises `OptionError` for a nonlinearity without a known gain.

    >>> kaiming = paddle.nn.initializer.KaimingNormal()
    >>> paddle.create_parameter([2, 3], "float32", attr=kaiming).numpy().shape
    (2, 3)
    """

    fan_in: float | None = None
    negative_slope: float = 0.0
    nonlinearity: str = "relu"
    mode: str = "fan_in"

    def __post_init__(self) -> None:
        _kaiming_deviation(self, (1, 1))

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        return rng.normal(0.0, _kaiming_deviation(self, shape), shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Orthogonal(Initializer):
    """A matrix of orthonormal rows or columns, times `gain`; axes after the first count as one.

    >>> orthogonal = paddle.nn.initializer.Orthogonal()
    >>> w = paddle.create_parameter([3, 3], "float64", attr=orthogonal).numpy()
    >>> bool(np.allclose(w @ w.T, np.eye(3)))
    True
    """

    gain: float = 1.0
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        if len(shape) < 2:
            raise ArgumentError(f"Orthogonal initializes matrices, not {shape}")
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
        q = q * np.sign(np.diagonal(r))
        return (self.gain * (q.T if rows < columns else q)).reshape(shape).astype(dtype)


@checked_methods()
@dataclass(frozen=True, slots=True)
class Dirac(Initializer):
    """A weight of a convolution that keeps as many channels as it can, in each of the groups.

    >>> dirac = paddle.nn.initializer.Dirac()
    >>> paddle.create_parameter([1, 1, 3], "float32", attr=dirac).numpy()
    array([[[0., 1., 0.]]], dtype=float32)
    """

    groups: int = 1
    name: str | None = None

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        if len(shape) not in (3, 4, 5) or shape[0] % self.groups:
            raise ArgumentError(
                f"Dirac initializes weights of 3 to 5 axes, the first a multiple of the "
                f"{self.groups} groups, not {shape}"
            )
        found = np.zeros(shape, dtype)
        middle = tuple(n // 2 for n in shape[2:])
        size = shape[0] // self.groups
        for start in range(0, shape[0], size):
            for channel in range(min(size, shape[1])):
                found[(start + channel, channel, *middle)] = 1.0
        return found


@checked_methods()
@dataclass(frozen=True, slots=True)
class Bilinear(Initializer):
    """A weight of a transposed convolution that interpolates linearly along both axes.

    >>> bilinear = paddle.nn.initializer.Bilinear()
    >>> paddle.create_parameter([1, 1, 4, 4], "float32", attr=bilinear).numpy()[0, 0, 0]
    array([0.0625 , 0.28125, 0.375  , 0.15625], dtype=float32)
    """

    def values(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> Any:
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ArgumentError(f"Bilinear initializes squares of 4 axes, not {shape}")
        factor = math.ceil(shape[3] / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        line = 1.0 - np.abs(np.arange(shape[3]) / factor - center)
        # Paddle's rows are at fractions of a row: i / size, which is no integer.
        place = np.arange(math.prod(shape)) / shape[3] % shape[3]
        rows = 1.0 - np.abs(place / factor - center)
        return (rows * np.resize(line, math.prod(shape))).reshape(shape).astype(dtype)


def fans(shape: Shape) -> tuple[int, int]:
    """Return fan-in and fan-out: (in, out) of a matrix, (out, in, ...) of other weights."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def _xavier_deviation(rule: XavierUniform | XavierNormal, shape: Shape) -> float:
    fan_in, fan_out = fans(shape)
    inputs = fan_in if rule.fan_in is None else rule.fan_in
    outputs = fan_out if rule.fan_out is None else rule.fan_out
    return rule.gain * math.sqrt(2.0 / max(inputs + outputs, 1.0))


def _kaiming_deviation(rule: KaimingUniform | KaimingNormal, shape: Shape) -> float:
    if rule.mode not in ("fan_in", "fan_out"):
        raise OptionError(f"mode is 'fan_in' or 'fan_out', not {rule.mode!r:.60}")
    if rule.mode == "fan_out" and rule.fan_in is not None:
        raise OptionError("mode='fan_out' takes no fan_in")
    fan_in, fan_out = fans(shape)
    given = fan_in if rule.fan_in is None else rule.fan_in
    count = given if rule.mode == "fan_in" else fan_out
    return calculate_gain(rule.nonlinearity, rule.negative_slope) / math.sqrt(max(count, 1.0))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which initial weights before a function are larger.

    `param` is the slope of `leaky_relu`, 0.01 by default. Raises `OptionError`, a ValueError, for
    an unknown function.

    >>> paddle.nn.initializer.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1.0 + slope**2))
    if nonlinearity not in _GAINS:
        listed = ", ".join([*_GAINS, "leaky_relu"])
        raise OptionError(
            f"there is no gain for {nonlinearity!r:.60}", hint=f"there is for {listed}"
        )
    return _GAINS[nonlinearity]


_global: list[Initializer | None] = [None, None]


def set_global_initializer(
    weight_init: Initializer | None, bias_init: Initializer | None = None
) -> None:
    """Use these for weights and biases whose attributes say nothing; None for the defaults.

    >>> paddle.nn.initializer.set_global_initializer(paddle.nn.initializer.Constant(0.5))
    >>> paddle.nn.Linear(1, 2).weight.numpy()
    array([[0.5, 0.5]], dtype=float32)
    >>> paddle.nn.initializer.set_global_initializer(None)
    """
    for name, given in (("weight_init", weight_init), ("bias_init", bias_init)):
        if given is not None and not isinstance(given, Initializer):
            raise ArgumentError(f"{name} is an initializer or None, not {given!r:.60}")
    _global[:] = [weight_init, bias_init]


def chosen_initializer(given: Any, default: Any, is_bias: bool) -> Any:
    """Return the initializer that an attribute gives, or the global one, or a default."""
    return given or _global[is_bias] or default or (Constant(0.0) if is_bias else XavierUniform())
