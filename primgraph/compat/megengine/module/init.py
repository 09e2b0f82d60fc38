"""Initial values of parameters, set in place, by the names of `megengine.module.init`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.compat.absent import absent
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import ArgumentError

__all__ = [
    "calculate_correct_fan",
    "calculate_fan_in_and_fan_out",
    "calculate_gain",
    "fill_",
    "msra_normal_",
    "msra_uniform_",
    "normal_",
    "ones_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
_GAINS = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "linear": 1.0} | {
    f"conv{kind}{n}d": 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)
}


def fill_(tensor: Any, val: float) -> None:
    """Set all elements to `val`.

    >>> w = megengine.Parameter([1.0, 2.0])
    >>> megengine.module.init.fill_(w, 3.0)
    >>> w
    Parameter([3. 3.], device=xpux:0)
    """
    tensor._reset(np.full(tensor.shape, val))


def zeros_(tensor: Any) -> None:
    """Set all elements to zero.

    >>> megengine.module.init.zeros_(megengine.Parameter([1.0, 2.0]))
    """
    fill_(tensor, 0)


def ones_(tensor: Any) -> None:
    """Set all elements to one.

    >>> megengine.module.init.ones_(megengine.Parameter([1.0, 2.0]))
    """
    fill_(tensor, 1)


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> None:
    """Draw from the uniform distribution between `a` and `b`.

    >>> w = megengine.Parameter([0.0, 0.0])
    >>> megengine.module.init.uniform_(w, 1.0, 2.0)
    >>> w.min().item() >= 1
    True
    """
    tensor._reset(reserve_generator()().uniform(a, b, tensor.shape))


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> None:
    """Draw from the normal distribution.

    >>> w = megengine.Parameter([0.0, 0.0])
    >>> megengine.module.init.normal_(w, 3.0, 0.0)
    >>> w
    Parameter([3. 3.], device=xpux:0)
    """
    tensor._reset(reserve_generator()().normal(mean, std, tensor.shape))


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor of standard deviations that a function behind a layer asks for.

    >>> megengine.module.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ArgumentError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def calculate_fan_in_and_fan_out(tensor: Any) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of a weight (out, in, ...).

    A weight with five or more axes begins with an axis of groups.

    >>> w = megengine.functional.ones((3, 2, 5, 5))
    >>> megengine.module.init.calculate_fan_in_and_fan_out(w)
    (50, 75)
    """
    shape = tensor.shape
    if len(shape) < 2:
        raise ArgumentError(
            "fan_in and fan_out can not be computed for tensor with fewer than 2 dimensions"
        )
    if len(shape) >= 5:
        shape = shape[1:]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def calculate_correct_fan(tensor: Any, mode: str) -> float:
    """Return the number that `mode` names: "fan_in" or "fan_out".

    >>> w = megengine.functional.ones((3, 2))
    >>> megengine.module.init.calculate_correct_fan(w, "fan_out")
    3
    """
    fans = dict(zip(("fan_in", "fan_out"), calculate_fan_in_and_fan_out(tensor), strict=True))
    if mode.lower() not in fans:
        raise ArgumentError(f"Mode {mode} not supported, please use one of {list(fans)}")
    return fans[mode.lower()]


def xavier_uniform_(tensor: Any, gain: float = 1.0) -> None:
    """Draw uniform numbers of variance `gain**2 * 2 / (fan_in + fan_out)` (Glorot, 2010).

    >>> w = megengine.Parameter(np.zeros((100, 50), "float32"))
    >>> megengine.module.init.xavier_uniform_(w)
    >>> abs(w).max().item() < (6 / 150) ** 0.5
    True
    """
    limit = math.sqrt(3.0) * _xavier_deviation(tensor, gain)
    uniform_(tensor, -limit, limit)


def xavier_normal_(tensor: Any, gain: float = 1.0) -> None:
    """Draw normal numbers of variance `gain**2 * 2 / (fan_in + fan_out)` (Glorot, 2010).

    >>> megengine.module.init.xavier_normal_(megengine.Parameter([[1.0, 2.0]]))
    """
    normal_(tensor, 0.0, _xavier_deviation(tensor, gain))


def msra_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> None:
    """Draw uniform numbers of variance `gain**2 / fan` (He et al., 2015); `a` is a slope.

    >>> megengine.module.init.msra_uniform_(megengine.Parameter([[1.0, 2.0]]))
    """
    limit = math.sqrt(3.0) * _msra_deviation(tensor, a, mode, nonlinearity)
    uniform_(tensor, -limit, limit)


def msra_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> None:
    """Draw normal numbers of variance `gain**2 / fan` (He et al., 2015); `a` is a slope.

    >>> megengine.module.init.msra_normal_(megengine.Parameter([[1.0, 2.0]]))
    """
    normal_(tensor, 0.0, _msra_deviation(tensor, a, mode, nonlinearity))


def _xavier_deviation(tensor: Any, gain: float) -> float:
    return gain * math.sqrt(2.0 / sum(calculate_fan_in_and_fan_out(tensor)))


def _msra_deviation(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(calculate_correct_fan(tensor, mode))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
