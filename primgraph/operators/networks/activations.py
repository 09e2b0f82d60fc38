"""Activation functions, composed of other operators."""

from __future__ import annotations

import math

from primgraph.operators.call import operator
from primgraph.operators.elementwise.arithmetic import logaddexp
from primgraph.operators.elementwise.elementary import erfc, exp, log, sigmoid
from primgraph.operators.elementwise.logic import greater, less, less_equal, propagate_nan, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.promotion import axes_of, inexact_dtype, lift, require_flag
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.reduce.statistics import narrow, softmax_slope, subtract_maximum, wide
from primgraph.operators.variable import Variable

# Beyond this, the sigmoid in the approximate gelu is 0 or 1 in every dtype, with derivative 0.
_GELU_FLAT = 22.0


@operator("x")
def relu(x: ArrayLike) -> Variable:
    """Return `x` where it is positive, 0 elsewhere, element by element; NaN stays NaN.

    The derivative is 0 at 0, and NaN at NaN. Integers stay integers, booleans become int64.

    >>> pg.relu([-1.0, 2.0])
    tensor([0., 2.])
    """
    return propagate_nan(where(less_equal(x, 0), 0, x), x)


@operator("x")
def silu(x: ArrayLike) -> Variable:
    """Compute `x * sigmoid(x)`, element by element, also called swish.

    Integers and booleans become floats as NumPy makes them. After S. Elfwing, E. Uchibe and K.
    Doya, Sigmoid-weighted linear units, 2018.

    >>> pg.silu(0.0)
    tensor(0.)
    """
    value = lift(x, inexact_dtype(x))
    return value * sigmoid(value)


@operator("x")
def gelu(x: ArrayLike, approximate: bool = False) -> Variable:
    """Return `x` times the normal distribution function of `x`.

    The exact form is `x / 2 * erfc(-x / sqrt(2))`; the approximate one is
    `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))` (Hendrycks and Gimpel, Gaussian
    Error Linear Units, 2016), written as `x * sigmoid(...)`. Both are right in the left tail too.

    >>> pg.gelu([0.0, 100.0])
    tensor([  0., 100.])
    """
    value = lift(x, inexact_dtype(x))
    if not require_flag("approximate", approximate):
        return 0.5 * value * erfc(value * -math.sqrt(0.5))
    near = where(greater(value, _GELU_FLAT), _GELU_FLAT, value)
    near = where(less(near, -_GELU_FLAT), -_GELU_FLAT, near)
    return value * sigmoid(math.sqrt(8 / math.pi) * (near + 0.044715 * near**3))


@operator("x")
def softplus(x: ArrayLike) -> Variable:
    """Compute `log(1 + exp(x))`, element by element, without overflow; the derivative is `sigmoid`.

    Exact where `exp(x)` is small beside 1. Integers and booleans become floats as NumPy makes
    them. After C. Dugas et al., Incorporating second-order functional knowledge, 2001.

    >>> print(f"{pg.softplus(0.0):.4f}")
    0.6931
    """
    value = lift(x, inexact_dtype(x))
    return logaddexp(value, 0.0)


@operator("x")
def softmax(x: ArrayLike, axis: Axes = -1) -> Variable:
    """Compute `exp(x) / sum(exp(x))` over `axis`, without overflow.

    Raises `ShapeError` for axes that `x` lacks or that are named twice.

    >>> pg.softmax([0.0, 0.0])
    tensor([0.5, 0.5])
    """
    value = lift(x, inexact_dtype(x))
    axes = axes_of("softmax", value, axis)
    elements = wide(value)
    powers = exp(subtract_maximum(elements, axes)[0])
    return narrow(softmax_slope(powers / sum(powers, axes, True), elements, axes), value)


@operator("x")
def log_softmax(x: ArrayLike, axis: Axes = -1) -> Variable:
    """Compute the logarithm of `softmax`, exact where that is close to zero or one.

    Raises `ShapeError` for axes that `x` lacks or that are named twice.

    >>> pg.exp(pg.log_softmax([0.0, 0.0])).numpy().round(4)
    array([0.5, 0.5])
    """
    value = lift(x, inexact_dtype(x))
    axes = axes_of("log_softmax", value, axis)
    shifted, _ = subtract_maximum(wide(value), axes)
    return narrow(shifted - log(sum(exp(shifted), axes, True)), value)
