"""Losses, composed of other operators."""

from __future__ import annotations

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.types import drop_axes
from primgraph.operators.call import operator
from primgraph.operators.elementwise.arithmetic import abs, negative, square, subtract
from primgraph.operators.elementwise.elementary import log, log1p
from primgraph.operators.elementwise.logic import equal, less_equal, logical_and, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take_along_axis
from primgraph.operators.networks.activations import log_softmax, softplus
from primgraph.operators.promotion import (
    SCALARS,
    axis_of,
    broadcast_to_shape,
    broadcasts_to,
    convert_dtype,
    inexact_dtype,
    lift,
    require_number,
)
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.reduce.statistics import mean
from primgraph.operators.shape.shaping import expand_dims, squeeze
from primgraph.operators.variable import Variable


def _reduce_losses(name: str, losses: Variable, reduction: str) -> Variable:
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(f"{name}: reduction is 'mean', 'sum' or 'none', not {reduction!r:.60}")


@operator("logits", "labels")
def cross_entropy(
    logits: ArrayLike, labels: ArrayLike, axis: int = -1, reduction: str = "mean"
) -> Variable:
    """Compute the mean of `-log_softmax(logits)` at the label, or weighted by the labels.

    Integer labels have the shape of `logits` without `axis` and are positions along it; float
    labels have the shape of `logits` and are probabilities. `reduction` is mean, sum or none.
    Raises `ShapeError` for labels of another shape and `DTypeError` for booleans.

    >>> print(f"{pg.cross_entropy([[0.0, 0.0]], [1]):.4f}")
    0.6931
    """
    scores, target = lift(logits, inexact_dtype(logits)), lift(labels)
    number = axis_of("cross_entropy", scores, axis)
    if target.dtype.kind == "b":
        raise DTypeError(f"cross_entropy takes integer or float labels, not {target.type}")
    dense = target.type.is_float
    wanted = scores.shape if dense else drop_axes(scores.shape, (number,))
    if target.shape != wanted:
        raise ShapeError(
            f"cross_entropy of {scores.type} along axis {number} needs labels of shape {wanted}, "
            f"not {target.type}",
            hint="float labels are probabilities; classes are integers: pg.astype(labels, 'int64')"
            if dense and target.shape == drop_axes(scores.shape, (number,))
            else "",
        )
    logs = log_softmax(scores, number)
    if dense:
        losses = negative(sum(logs * target, number))
    else:
        chosen = take_along_axis(logs, expand_dims(target, number), number)
        losses = negative(squeeze(chosen, number))
    return _reduce_losses("cross_entropy", losses, reduction)


@operator("x", "target")
def mse_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Variable:
    """Compute the squared difference of two arrays, which are broadcast; by default its mean.

    `reduction` is mean, sum or none.

    >>> pg.mse_loss([1.0, 2.0], [1.0, 4.0])
    tensor(2.)
    """
    return _reduce_losses("mse_loss", square(subtract(x, target)), reduction)


@operator("x", "target")
def l1_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Variable:
    """Compute the absolute difference of two arrays, which are broadcast; by default its mean.

    `reduction` is mean, sum or none. The derivative is 0 where the arrays are equal.

    >>> pg.l1_loss([1.0, 2.0], [1.0, 4.0])
    tensor(1.)
    """
    return _reduce_losses("l1_loss", abs(subtract(x, target)), reduction)


@operator("x", "target")
def huber_loss(
    x: ArrayLike, target: ArrayLike, delta: float = 1.0, reduction: str = "mean"
) -> Variable:
    """Compute `d**2 / 2` if `d = abs(x - target) <= delta`, else `delta * (d - delta / 2)`.

    The arrays are broadcast; `reduction` is mean, sum or none. After P. J. Huber, Robust
    estimation of a location parameter, 1964. Raises `ArgumentError` unless `delta` is positive.

    >>> pg.huber_loss([1.0, 2.0], [1.0, 4.0])
    tensor(0.75)
    """
    limit = require_number("delta", delta)
    if not limit > 0.0:
        raise ArgumentError(f"huber_loss needs a positive delta, not {delta}")
    apart = subtract(x, target)
    distance = abs(apart)
    # The square of the distance would have no second derivative at 0, where `abs` has derivative 0.
    squared = square(distance if apart.type.is_complex else apart)
    losses = where(less_equal(distance, limit), 0.5 * squared, limit * (distance - 0.5 * limit))
    return _reduce_losses("huber_loss", losses, reduction)


@operator("x", "target")
def binary_cross_entropy(x: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Variable:
    """Compute the mean of `-target * log(x) - (1 - target) * log(1 - x)` of probabilities.

    `target` is broadcast to the shape of `x`, and may be of booleans or integers. A certain correct
    prediction has loss 0, a certain wrong one infinity; `binary_cross_entropy_with_logits` avoids
    both. `reduction` is mean, sum or none. Raises `ShapeError` for a target that does not broadcast
    to the shape of `x`.

    >>> print(f"{pg.binary_cross_entropy([0.5], [1.0]):.4f}")
    0.6931
    """
    chance = lift(x, inexact_dtype(x))
    wanted = _target("binary_cross_entropy", chance, target)
    hit = _weight_logs(wanted, log(chance), equal(chance, 0))
    miss = _weight_logs(1.0 - wanted, log1p(-chance), equal(chance, 1))
    # A difference from 0.0, as a negated zero would print as -0.0.
    return _reduce_losses("binary_cross_entropy", 0.0 - (hit + miss), reduction)


@operator("x", "target")
def binary_cross_entropy_with_logits(
    x: ArrayLike, target: ArrayLike, reduction: str = "mean"
) -> Variable:
    """Return `binary_cross_entropy` of `sigmoid(x)`, exact to rounding however large `x` is.

    It is `target * softplus(-x) + (1 - target) * softplus(x)`, without cancellation. `target`,
    `reduction` and errors are those of `binary_cross_entropy`.

    >>> print(f"{pg.binary_cross_entropy_with_logits([0.0], [1.0]):.4f}")
    0.6931
    """
    logit = lift(x, inexact_dtype(x))
    wanted = _target("binary_cross_entropy_with_logits", logit, target)
    losses = wanted * softplus(-logit) + (1.0 - wanted) * softplus(logit)
    return _reduce_losses("binary_cross_entropy_with_logits", losses, reduction)


def _target(name: str, x: Variable, target: ArrayLike) -> Variable:
    """Broadcast `target` to the shape of `x`; labels and single numbers also take its dtype."""
    value = lift(target, x.dtype if type(target) in SCALARS else None)
    if not broadcasts_to(value.shape, x.shape):
        raise ShapeError(f"{name} of {x.type} cannot use a target of {value.type}")
    if not value.type.is_float:
        value = convert_dtype(value, x.dtype)
    return broadcast_to_shape(value, x.shape)


def _weight_logs(weight: Variable, logs: Variable, infinite: Variable) -> Variable:
    """Return `weight * logs`, and 0 where the weight of an infinite logarithm is 0."""
    return where(logical_and(infinite, equal(weight, 0)), 0, weight * logs)
