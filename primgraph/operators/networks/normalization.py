"""Normalisation by mean and variance, composed of other operators."""

from __future__ import annotations

import numpy as np

from primgraph.errors import ShapeError
from primgraph.operators.call import operator
from primgraph.operators.elementwise.arithmetic import add, multiply, square
from primgraph.operators.elementwise.elementary import rsqrt
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.promotion import (
    axes_of,
    axis_of,
    convert_dtype,
    inexact_dtype,
    lift,
    require_flag,
    require_integer,
    require_number,
)
from primgraph.operators.reduce.statistics import mean, wide
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable


def _align(name: str, role: str, x: Variable, y: ArrayLike, axes: tuple[int, ...]) -> Variable:
    """Reshape `y`, which has the sizes of `x` at `axes`, to broadcast with `x`."""
    value = lift(y)
    wanted = tuple(x.shape[a] for a in axes)
    if value.shape != wanted:
        raise ShapeError(
            f"{name} of {x.type} over axes {axes} needs {role} of shape {wanted}, not {value.type}"
        )
    return reshape_to(value, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def _affine(
    name: str,
    x: Variable,
    normal: Variable,
    weight: ArrayLike | None,
    bias: ArrayLike | None,
    axes: tuple[int, ...],
) -> Variable:
    """Return `normal * weight + bias` in the dtype of `x` and these."""
    result = convert_dtype(normal, x.dtype)
    if weight is not None:
        result = multiply(result, _align(name, "a weight", x, weight, axes))
    if bias is not None:
        result = add(result, _align(name, "a bias", x, bias, axes))
    return result


@operator("x", "weight", "bias")
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: Axes = -1,
    eps: float = 1e-5,
) -> Variable:
    """Compute `(x - mean) / sqrt(var + eps) * weight + bias` over `axis` (Ba et al., 2016).

    `weight` and `bias` have the sizes of `x` at these axes. float16 is normalised in float32.
    Raises `ShapeError` for other sizes and for axes that `x` lacks.

    >>> pg.layer_norm([[1.0, 3.0]], np.ones(2), np.zeros(2), eps=0.0)
    tensor([[-1.,  1.]])
    """
    value = lift(x, inexact_dtype(x))
    axes = axes_of("layer_norm", value, axis)
    elements = wide(value)
    centered = elements - mean(elements, axes, True)
    spread = mean(square(centered), axes, True)
    normal = centered * rsqrt(spread + require_number("eps", eps))
    return _affine("layer_norm", value, normal, weight, bias, axes)


@operator("x", "mean", "var", "weight", "bias")
def batch_norm(
    x: ArrayLike,
    mean: ArrayLike | None = None,
    var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: int = 1,
    eps: float = 1e-5,
    training: bool = False,
) -> Variable:
    """Compute `(x - mean) / sqrt(var + eps) * weight + bias` per channel (Ioffe and Szegedy, 2015).

    Channels lie along `axis`; statistics, weight and bias are vectors with an element per channel.
    With `training`, and if none are given, statistics are those of `x` over all other axes, with
    divisor n. float16 is normalised in float32. Raises `ShapeError` for vectors of another size.

    >>> zeros, ones = np.zeros(1), np.ones(1)
    >>> pg.batch_norm([[1.0], [3.0]], zeros, ones, ones, zeros).numpy().round(2)
    array([[1.],
           [3.]])
    """
    value = lift(x, inexact_dtype(x))
    channel = (axis_of("batch_norm", value, axis),)
    others = tuple(a for a in range(value.ndim) if a not in channel)
    # Given statistics are checked in training, too, so that the form for evaluation can be built.
    center = None if mean is None else _align("batch_norm", "a mean", value, mean, channel)
    spread = None if var is None else _align("batch_norm", "a variance", value, var, channel)
    if require_flag("training", training):
        center = spread = None
    elements = wide(value)
    if spread is None:
        spread = _average(square(elements - _average(elements, others)), others)
    centered = elements - (_average(elements, others) if center is None else center)
    normal = centered * rsqrt(spread + require_number("eps", eps))
    return _affine("batch_norm", value, normal, weight, bias, channel)


def _average(x: Variable, axes: tuple[int, ...]) -> Variable:
    return mean(x, axes, True)


@operator("x", "weight", "bias")
def group_norm(
    x: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Variable:
    """Apply `layer_norm` to each of `num_groups` groups of channels, axis 1, and all axes behind.

    Then apply `weight` and `bias` of each channel (Wu and He, Group normalization, 2018).

    float16 is normalised in float32. Raises `ShapeError` for groups that do not divide the
    channels, and for weights of another size.

    >>> pg.group_norm(np.arange(8.0).reshape(1, 4, 2), 2, np.ones(4), np.zeros(4)).shape
    (1, 4, 2)
    """
    value, groups = lift(x, inexact_dtype(x)), require_integer("group_norm: num_groups", num_groups)
    if value.ndim < 2:
        raise ShapeError(f"group_norm takes samples and channels, not {value.type}")
    samples, channels, *rest = value.shape
    if groups < 1 or channels % groups:
        raise ShapeError(f"group_norm of {value.type}: {groups} groups do not divide its channels")
    parts = reshape_to(wide(value), (samples, groups, channels // groups, *rest))
    axes = tuple(range(2, parts.ndim))
    centered = parts - _average(parts, axes)
    spread = _average(square(centered), axes)
    normal = reshape_to(centered * rsqrt(spread + require_number("eps", eps)), value.shape)
    return _affine("group_norm", value, normal, weight, bias, (1,))


@operator("x", "weight", "bias")
def instance_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Variable:
    """Apply `batch_norm` to each sample: over all axes behind samples and channels.

    Ulyanov, Vedaldi and Lempitsky, Instance normalization, 2016.

    float16 is normalised in float32. Raises `ShapeError` if there are no such axes.

    >>> pg.instance_norm(np.arange(8.0).reshape(1, 4, 2), np.ones(4), np.zeros(4)).shape
    (1, 4, 2)
    """
    value = lift(x, inexact_dtype(x))
    if value.ndim < 3:
        raise ShapeError(f"instance_norm takes samples, channels and more axes, not {value.type}")
    elements, axes = wide(value), tuple(range(2, value.ndim))
    centered = elements - _average(elements, axes)
    spread = _average(square(centered), axes)
    normal = centered * rsqrt(spread + require_number("eps", eps))
    return _affine("instance_norm", value, normal, weight, bias, (1,))


@operator("x", "weight")
def rms_norm(
    x: ArrayLike, weight: ArrayLike | None = None, axis: Axes = -1, eps: float | None = None
) -> Variable:
    """Compute `x / sqrt(mean(x**2) + eps) * weight` over `axis`.

    Zhang and Sennrich, Root mean square layer normalization, 2019.

    `weight` has the sizes of `x` at these axes; `eps` is by default the machine epsilon of the
    dtype. float16 is normalised in float32. Raises `ShapeError` for other sizes and for axes that
    `x` lacks.

    >>> pg.rms_norm([[3.0, 3.0]], np.ones(2), eps=0.0)
    tensor([[1., 1.]])
    """
    value = lift(x, inexact_dtype(x))
    axes = axes_of("rms_norm", value, axis)
    elements = wide(value)
    small = float(np.finfo(value.dtype).eps) if eps is None else require_number("eps", eps)
    normal = elements * rsqrt(_average(square(elements), axes) + small)
    return _affine("rms_norm", value, normal, weight, None, axes)
