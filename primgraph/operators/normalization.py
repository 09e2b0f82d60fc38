"""Normalisation by mean and variance, each defined by what it is made of."""

from __future__ import annotations

from primgraph.errors import ShapeError
from primgraph.operators.arithmetic import add, multiply, square
from primgraph.operators.call import operator
from primgraph.operators.elementary import rsqrt
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.promotion import (
    axes_of,
    axis_of,
    converted,
    floating,
    lift,
    require_flag,
    require_number,
)
from primgraph.operators.shaping import reshaped
from primgraph.operators.statistics import mean, wide
from primgraph.operators.variable import Variable

__all__ = [
    "batch_norm",
    "layer_norm",
]


def _aligned(name: str, role: str, x: Variable, y: ArrayLike, axes: tuple[int, ...]) -> Variable:
    """`y`, which has the extents of `x` at `axes`, in a shape that broadcasts with `x`."""
    value = lift(y)
    wanted = tuple(x.shape[a] for a in axes)
    if value.shape != wanted:
        raise ShapeError(
            f"{name} of {x.type} over axes {axes} needs {role} of shape {wanted}, not {value.type}"
        )
    return reshaped(value, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def _affine(
    name: str,
    x: Variable,
    normal: Variable,
    weight: ArrayLike | None,
    bias: ArrayLike | None,
    axes: tuple[int, ...],
) -> Variable:
    """`normal * weight + bias` in the dtype of `x` and these."""
    result = converted(normal, x.dtype)
    if weight is not None:
        result = multiply(result, _aligned(name, "a weight", x, weight, axes))
    if bias is not None:
        result = add(result, _aligned(name, "a bias", x, bias, axes))
    return result


@operator("x", "weight", "bias")
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: Axes = -1,
    eps: float = 1e-5,
) -> Variable:
    """`(x - mean) / sqrt(var + eps) * weight + bias` over `axis` (Ba et al., 2016).

    `weight` and `bias` have the extents of `x` at these axes. float16 is normalised in float32.
    Raises `ShapeError` for other extents and for axes that `x` lacks.
    """
    value = lift(x, floating(x))
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
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each channel (Ioffe and Szegedy, 2015).

    Channels lie along `axis`; statistics, weight and bias are vectors of as many elements.
    With `training`, and where none are given, statistics are those of `x` over all other axes,
    with divisor n. float16 is normalised in float32. Raises `ShapeError` for vectors of another
    size.
    """
    value = lift(x, floating(x))
    channel = (axis_of("batch_norm", value, axis),)
    others = tuple(a for a in range(value.ndim) if a not in channel)
    # Given ones are checked in training too, so that the form for evaluation can be built.
    center = None if mean is None else _aligned("batch_norm", "a mean", value, mean, channel)
    spread = None if var is None else _aligned("batch_norm", "a variance", value, var, channel)
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
