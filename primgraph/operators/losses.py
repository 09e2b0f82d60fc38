"""Losses, each defined by what it is made of."""

from __future__ import annotations

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.types import drop_axes
from primgraph.operators.activations import log_softmax
from primgraph.operators.arithmetic import negative, square, subtract
from primgraph.operators.call import operator
from primgraph.operators.indexing import take_along_axis
from primgraph.operators.promotion import axis_of, floating, lift
from primgraph.operators.reductions import sum
from primgraph.operators.shaping import expand_dims, squeeze
from primgraph.operators.statistics import mean
from primgraph.operators.variable import ArrayLike, Variable


def _combined(name: str, losses: Variable, reduction: str) -> Variable:
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(
        f"{name} with reduction {reduction!r:.60}", hint="use 'mean', 'sum' or 'none'"
    )


@operator("logits", "labels")
def cross_entropy(
    logits: ArrayLike, labels: ArrayLike, axis: int = -1, reduction: str = "mean"
) -> Variable:
    """`-log_softmax(logits)` at the label, or weighted by the labels; the mean over samples.

    Integer labels have the shape of `logits` without `axis` and are positions along it; float
    labels have the shape of `logits` and are probabilities. `reduction` is mean, sum or none.
    Raises `ShapeError` for labels of another shape and `DTypeError` for booleans.
    """
    scores, target = lift(logits, floating(logits)), lift(labels)
    number = axis_of("cross_entropy", scores, axis)
    if target.dtype.kind == "b":
        raise DTypeError(f"cross_entropy takes integer or float labels, not {target.type}")
    dense = target.type.is_float
    wanted = scores.shape if dense else drop_axes(scores.shape, (number,))
    if target.shape != wanted:
        raise ShapeError(
            f"cross_entropy of {scores.type} along axis {number} needs labels of shape {wanted}, "
            f"not {target.type}"
        )
    logs = log_softmax(scores, number)
    if dense:
        losses = negative(sum(logs * target, number))
    else:
        chosen = take_along_axis(logs, expand_dims(target, number), number)
        losses = negative(squeeze(chosen, number))
    return _combined("cross_entropy", losses, reduction)


@operator("x", "target")
def mse_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Variable:
    """Squared difference of two arrays, which are broadcast; the mean over all elements.

    `reduction` is mean, sum or none.
    """
    return _combined("mse_loss", square(subtract(x, target)), reduction)
