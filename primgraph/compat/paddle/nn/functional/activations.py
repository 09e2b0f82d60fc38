"""Activation functions by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.creation import rand
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.compat.torch.nn.functional import activations as torch
from primgraph.errors import ArgumentError
from primgraph.nn.basic import key_for as key_for

# Functions that torch has, under names of their own: `torch_elu`.
globals().update({f"torch_{name}": getattr(torch, name) for name in torch.__all__})


def cast_first(x: Any, dtype: Any) -> Any:
    """Return `x` in a dtype, if one is given."""
    return x if dtype is None else pg.astype(x, dtype)


def in_place(x: Any, found: Any, inplace: bool = True) -> Any:
    """Return `found`, or with `inplace` the tensor `x`, which shows it from now on."""
    return torch.in_place_result(x, found, inplace)


def hard_sigmoid(x: Any, slope: float, offset: float) -> Any:
    """Return a line limited to the interval from 0 to 1."""
    line = pg.add(pg.multiply(x, _single(slope)), _single(offset))
    return torch.hardtanh(line, 0.0, 1.0)


def scaled_elu(x: Any, scale: float, alpha: float) -> Any:
    """Return `scale * x` where `x` is positive, `scale * alpha * (exp(x) - 1)` elsewhere."""
    if scale <= 1.0:
        raise ArgumentError(f"The scale must be greater than 1.0. Received: {scale}.")
    if alpha < 0.0:
        raise ArgumentError(f"The alpha must be no less than zero. Received: {alpha}.")
    scale = _single(scale)
    lower = pg.multiply(pg.expm1(x), scale * _single(alpha))
    return pg.where(pg.greater(x, 0), pg.multiply(x, scale), lower)


def _single(number: float) -> float:
    """Return a number in single precision, as Paddle passes it to kernels."""
    return float(np.float32(number))


def slopes_of_channels(x: Any, weight: Any, data_format: str) -> Any:
    """Return `x` where it is positive, else times the slope of its channel."""
    if weight.type.size > 1:
        after = 0 if data_format.endswith("C") else x.ndim - 2
        weight = pg.reshape(weight, (-1, *(1,) * after))
    elif weight.ndim:
        weight = pg.reshape(weight, ())
    return pg.where(pg.greater(x, 0), x, pg.multiply(x, weight))


def random_slopes(x: Any, lower: float, upper: float, training: bool) -> Any:
    """Return `leaky_relu` with random slopes in training, else with their mean."""
    if not training:
        return torch.leaky_relu(x, (lower + upper) / 2)
    slopes = pg.add(pg.multiply(rand(x.type.shape, x.dtype), upper - lower), lower)
    # It is 1 or 0 in training, and 0.5 in a clone of the program for tests.
    drawn = pg.dropout(pg.ones((), x.dtype), key_for(x), 0.5, "downscale_in_infer")
    slopes = pg.where(pg.equal(drawn, 0.5), (lower + upper) / 2, slopes)
    return pg.where(pg.greater(x, 0), x, pg.multiply(x, slopes))


def gumbel(x: Any, temperature: float, hard: bool, axis: int) -> Any:
    """Return softmax of `x` plus Gumbel noise; with `hard` one-hot, with the soft derivative."""
    uniform = pg.add(pg.multiply(rand(x.type.shape, x.dtype), 1 - 1e-6), 5e-7)
    noise = pg.negative(pg.log(pg.negative(pg.log(uniform))))
    soft = pg.softmax(pg.divide(pg.add(x, noise), temperature), axis)
    if not hard:
        return soft
    largest = pg.argmax(soft, axis, keepdims=True)
    places = pg.iota(soft.type.shape, axis % soft.ndim, "int64")
    chosen = pg.astype(pg.equal(places, largest), soft.dtype)
    return pg.add(pg.subtract(chosen, pg.stop_gradient(soft)), soft)


def max_of_groups(x: Any, groups: int, axis: int) -> Any:
    """Return the largest of each `groups` channels that follow one another."""
    place, shape = axis % x.ndim, x.type.shape
    parts = (*shape[:place], shape[place] // groups, groups, *shape[place + 1 :])
    return pg.max(pg.reshape(x, parts), place + 1)


_ROWS = """
celu(x, alpha=1.0): torch_celu
Return `x` where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere. | [-1.0, 2.0] ~ [-0.632  2.   ]
elu(x, alpha=1.0): torch_elu
Return `x` where it is positive, `alpha * (exp(x) - 1)` elsewhere. | [-1.0, 2.0] ~ [-0.632  2.   ]
elu_(x, alpha=1.0) = in_place(x, elu(x, alpha))
Compute `elu` in place. | [-1.0, 2.0] ~ [-0.632  2.   ]
gelu(x, approximate=False): gelu
Compute `x` times its normal distribution function, or an approximation. | [-1.0, 1.0] ~ [-0.159  0.841]
glu(x, axis=-1): torch_glu(dim=axis)
Multiply the first half along an axis by `sigmoid` of the second. | [2.0, 0.0] ~ [1.]
gumbel_softmax(x, temperature=1.0, hard=False, axis=-1) = gumbel(x, temperature, hard, axis)
Draw from the Gumbel-softmax distribution. | [[0.0, 0.0]], hard=True -> [[0.0, 1.0]]
hardshrink(x, threshold=0.5): torch_hardshrink(lambd=threshold)
Return `x` where its absolute value is above a threshold, else 0. | [0.25, 1.0] ~ [0. 1.]
hardsigmoid(x, slope=0.1666667, offset=0.5) = hard_sigmoid(x, slope, offset)
Compute `slope * x + offset`, limited to the interval from 0 to 1. | [-4.0, 0.0] ~ [0.  0.5]
hardswish(x): torch_hardswish
Compute `x * relu6(x + 3) / 6`. | [-4.0, 3.0] ~ [-0.  3.]
hardtanh(x, min=-1.0, max=1.0): torch_hardtanh(min_val=min, max_val=max)
Limit `x` to an interval. | [-3.0, 0.5] ~ [-1.   0.5]
hardtanh_(x, min=-1.0, max=1.0) = in_place(x, hardtanh(x, min, max))
Compute `hardtanh` in place. | [-3.0, 0.5] ~ [-1.   0.5]
leaky_relu(x, negative_slope=0.01): torch_leaky_relu
Return `x` where it is positive, `negative_slope * x` elsewhere. | [-1.0, 2.0] ~ [-0.01  2.  ]
leaky_relu_(x, negative_slope=0.01) = in_place(x, leaky_relu(x, negative_slope))
Compute `leaky_relu` in place. | [-1.0, 2.0] ~ [-0.01  2.  ]
log_sigmoid|logsigmoid(x): torch_logsigmoid
Compute the logarithm of `sigmoid`. | [0.0] ~ [-0.693]
log_softmax(x, axis=-1, dtype=None) = pg.log_softmax(cast_first(x, dtype), axis)
Compute the logarithm of `softmax`. | [0.0, 0.0] ~ [-0.693 -0.693]
maxout(x, groups, axis=1) = max_of_groups(x, groups, axis)
Return the largest of each `groups` channels that follow one another. | [[1.0, 2.0, 4.0, 3.0]], 2 -> [[2.0, 4.0]]
mish(x): torch_mish
Compute `x * tanh(softplus(x))`. | [-1.0, 1.0] ~ [-0.303  0.865]
prelu(x, weight, data_format='NCHW') = slopes_of_channels(x, weight, data_format)
Return `x` where it is positive, else times a slope for all channels or each. | [-1.0, 2.0], [0.5] ~ [-0.5  2. ]
relu(x): relu
Return `x` where it is positive, 0 elsewhere. | [-1.0, 2.0] ~ [0. 2.]
relu_(x) = in_place(x, relu(x))
Compute `relu` in place. | [-1.0, 2.0] ~ [0. 2.]
relu6(x): torch_relu6
Limit `x` to the interval from 0 to 6. | [-1.0, 7.0] ~ [0. 6.]
rrelu(x, lower=0.125, upper=0.3333333333333333, training=True) = random_slopes(x, lower, upper, training)
Return `leaky_relu` with random slopes in training, else with their mean. | [-1.0, 2.0], training=False ~ [-0.229  2.   ]
selu(x, scale=1.0507009873554805, alpha=1.6732632423543772) = scaled_elu(x, scale, alpha)
Compute `elu` times a scale that keeps mean 0 and variance 1. | [-1.0, 2.0] ~ [-1.111  2.101]
sigmoid(x): sigmoid
Compute `1 / (1 + exp(-x))`. | [0.0] ~ [0.5]
silu(x, inplace=False) = in_place(x, pg.silu(x), inplace)
Compute `x * sigmoid(x)`. | [-1.0, 1.0] ~ [-0.269  0.731]
softmax(x, axis=-1, dtype=None) = pg.softmax(cast_first(x, dtype), axis)
Compute `exp(x) / sum(exp(x))` along an axis. | [0.0, 0.0] ~ [0.5 0.5]
softmax_(x, axis=-1, dtype=None) = in_place(x, softmax(x, axis, dtype))
Compute `softmax` in place. | [0.0, 0.0] ~ [0.5 0.5]
softplus(x, beta=1, threshold=20): torch_softplus
Compute `log(1 + exp(beta * x)) / beta`, or `x` above the threshold. | [0.0, 30.0] ~ [ 0.693 30.   ]
softshrink(x, threshold=0.5): torch_softshrink(lambd=threshold)
Move `x` towards 0 by a threshold; it is 0 within that distance. | [0.25, 1.0] ~ [0.  0.5]
softsign(x): torch_softsign
Compute `x / (1 + abs(x))`. | [-1.0, 3.0] ~ [-0.5   0.75]
swish(x) = pg.silu(x)
Compute `x * sigmoid(x)`. | [-1.0, 1.0] ~ [-0.269  0.731]
tanh(x): tanh
Compute the hyperbolic tangent. | [0.0, 1.0] ~ [0.    0.762]
tanh_(x) = in_place(x, tanh(x))
Compute `tanh` in place. | [0.0, 1.0] ~ [0.    0.762]
tanhshrink(x): torch_tanhshrink
Compute `x - tanh(x)`. | [-1.0, 1.0] ~ [-0.238  0.238]
thresholded_relu(x, threshold=1.0, value=0.0) = torch_threshold(x, threshold, value)
Return `x` where it is above a threshold, `value` elsewhere. | [0.5, 2.0] ~ [0. 2.]
thresholded_relu_(x, threshold=1.0, value=0.0) = in_place(x, thresholded_relu(x, threshold, value))
Compute `thresholded_relu` in place. | [0.5, 2.0] ~ [0. 2.]
"""  # noqa: E501

__all__ = define_functions(globals(), _ROWS, "paddle.nn.functional")
