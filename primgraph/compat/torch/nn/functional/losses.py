"""Losses of numbers and of classes."""

from __future__ import annotations

import math
import warnings
from typing import Any

from primgraph import operators as pg
from primgraph.errors import ArgumentError, BoundsError, DTypeError, ShapeError

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss",
    "l1_loss", "mse_loss", "nll_loss", "smooth_l1_loss",
]  # fmt: skip


def legacy_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """Return the reduction that old arguments mean, or `reduction` without them."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduce_losses(losses: Any, reduction: str, weights: Any = None) -> Any:
    """Return the mean, the sum or the losses themselves; a mean by `weights` if given."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return pg.sum(losses)
    if reduction == "mean":
        return pg.mean(losses) if weights is None else pg.sum(losses) / pg.sum(weights)
    raise ArgumentError(f"{reduction} is not a valid value for reduction")


def require_reduction(reduction: str, *others: str) -> None:
    if reduction not in ("none", "mean", "sum", *others):
        raise ArgumentError(f"{reduction} is not a valid value for reduction")


def _warn_of_sizes(input: Any, target: Any) -> None:
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=4,
        )


def mse_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Compute the squared difference: its mean over all elements, its sum, or neither.

    >>> torch.nn.functional.mse_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(9.)
    """
    _warn_of_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    losses = pg.square(pg.subtract(input, target))
    if weight is None:
        return reduce_losses(losses, reduction)
    return reduce_losses(losses * weight, reduction, pg.broadcast_to(weight, losses.shape))


def l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Compute the absolute difference: its mean over all elements, its sum, or neither.

    >>> torch.nn.functional.l1_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(3.)
    """
    _warn_of_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    losses = pg.abs(pg.subtract(input, target))
    if weight is None:
        return reduce_losses(losses, reduction)
    return reduce_losses(losses * weight, reduction, pg.broadcast_to(weight, losses.shape))


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Compute half the squared difference up to the distance `delta`, linear from there on.

    >>> torch.nn.functional.huber_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(2.5000)
    """
    _warn_of_sizes(input, target)
    losses = pg.huber_loss(input, target, delta, "none")
    return reduce_losses(losses if weight is None else losses * weight, reduction)


def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """Compute `huber_loss` with `delta=beta`, divided by `beta`; with beta 0 it is `l1_loss`.

    >>> torch.nn.functional.smooth_l1_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(2.5000)
    """
    _warn_of_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise ArgumentError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduce_losses(pg.abs(pg.subtract(input, target)), reduction)
    return reduce_losses(pg.divide(pg.huber_loss(input, target, beta, "none"), beta), reduction)


# Classes.


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Compute the cross entropy of logits and class indices or probabilities.

    Classes are along axis 1, or the only axis.

    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    require_reduction(reduction)
    axis = min(1, input.ndim - 1)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing!r:.40}"
        )
    _require_weight(weight, input.shape[axis])
    if weight is None and not label_smoothing and target.dtype.kind in "iu":
        are_within = _check_classes(input, target, axis, ignore_index)
        if are_within and not 0 <= ignore_index < input.shape[axis]:
            return pg.cross_entropy(input, target, axis, reduction)
    logs = pg.log_softmax(input, axis)
    if target.dtype.kind == "f":
        return _entropy_of_shares(logs, target, weight, axis, reduction, label_smoothing)
    if not label_smoothing:
        return _pick(logs, target, weight, ignore_index, reduction)
    smooth = pg.negative(
        pg.sum(logs if weight is None else logs * _along(weight, logs, axis), axis)
    )
    is_taken = pg.not_equal(target, ignore_index)
    smooth = pg.where(is_taken, smooth, 0)
    hard = _pick(logs, target, weight, ignore_index, "none")
    losses = hard * (1 - label_smoothing) + smooth * (label_smoothing / input.shape[axis])
    if reduction != "mean":
        return reduce_losses(losses, reduction)
    return pg.sum(losses) / pg.sum(_weights(logs, target, weight, is_taken))


def _require_weight(weight: Any, classes: Any) -> None:
    """Raise `ShapeError` for weights of another number of classes."""
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight.shape)}"
        )


def _entropy_of_shares(
    logs: Any, target: Any, weight: Any, axis: int, reduction: str, label_smoothing: float
) -> Any:
    """Return the cross entropy of probabilities."""
    if tuple(target.shape) != tuple(logs.shape):
        raise ShapeError(
            f"input and target of cross_entropy with probabilities have one shape, not "
            f"{tuple(logs.shape)} and {tuple(target.shape)}"
        )
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / logs.shape[axis]
    terms = logs * target if weight is None else logs * target * _along(weight, logs, axis)
    losses = pg.negative(pg.sum(terms, axis))
    if reduction != "mean":
        return reduce_losses(losses, reduction)
    count = 1 if axis == 0 else math.prod(losses.shape)
    return pg.divide(pg.sum(losses), count)


def _along(weight: Any, logs: Any, axis: int) -> Any:
    """Reshape a weight of classes to broadcast with the logarithms."""
    return pg.reshape(weight, (-1, *(1,) * (logs.ndim - axis - 1)))


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute the negative of the elements at positions `target` along axis 1, or the only axis.

    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    _require_weight(weight, input.shape[min(1, input.ndim - 1)])
    reduction = legacy_reduction(size_average, reduce, reduction)
    require_reduction(reduction)
    return _pick(input, target, weight, ignore_index, reduction)


def _pick(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Return minus the elements at `target`, 0 at the index to ignore."""
    axis = min(1, input.ndim - 1)
    are_within = _check_classes(input, target, axis, ignore_index)
    if weight is None and are_within and not 0 <= ignore_index < input.shape[axis]:
        chosen = pg.take_along_axis(input, pg.expand_dims(target, axis), axis)
        return reduce_losses(pg.negative(pg.squeeze(chosen, axis)), reduction)
    is_taken = pg.not_equal(target, ignore_index)
    places = pg.where(is_taken, target, 0)
    chosen = pg.squeeze(pg.take_along_axis(input, pg.expand_dims(places, axis), axis), axis)
    weights = _weights(input, places, weight, is_taken)
    losses = pg.negative(pg.where(is_taken, chosen * weights, 0))
    return reduce_losses(losses, reduction, weights)


def _weights(input: Any, places: Any, weight: Any, is_taken: Any) -> Any:
    """Return the weight of each sample: that of its class, 0 if it is ignored."""
    if weight is None:
        return pg.astype(is_taken, input.dtype)
    return pg.where(is_taken, pg.take(weight, pg.where(is_taken, places, 0), 0), 0)


def _check_classes(input: Any, target: Any, axis: int, ignore_index: int) -> bool:
    """Check classes for logits, and return whether all of them are known to be positions."""
    if target.dtype.kind not in "iu":
        raise DTypeError(f"expected scalar type Long but found {target.dtype}")
    extents = tuple(input.shape)
    shape = extents[:axis] + extents[axis + 1 :]
    if tuple(target.shape) != shape:
        text = f"Expected target size {list(shape)}, got {list(target.shape)}"
        if target.ndim == 1 and input.ndim == 2:
            text = (
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                f"({target.shape[0]})."
            )
        raise ShapeError(text)
    count = extents[axis]
    if are_positions(target, count):
        return True
    array = known_elements(target)
    if array is None:
        return False
    wrong = (array != ignore_index) & ((array < 0) | (array >= count))
    if wrong.any():
        raise BoundsError(f"Target {array[wrong].flat[0]} is out of bounds.")
    return False


def are_positions(target: Any, count: int) -> bool:
    """Return whether all elements are known to be positions along an axis of `count`."""
    array = known_elements(target)
    if array is None:
        return False
    return not array.size or bool(array.min() >= 0 and array.max() < count)


def known_elements(target: Any) -> Any:
    """Return the elements of a tensor that is no result yet to be computed; None for others."""
    node = getattr(target, "node", None)
    return getattr(node, "array", None)


# Two classes.


def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute the cross entropy of probabilities and targets, with logarithms from -100 on.

    >>> torch.nn.functional.binary_cross_entropy(torch.full((2,), 0.5), torch.ones(2))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if tuple(target.shape) != tuple(input.shape):
        raise ShapeError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    first, second = _clamped_log(input), _clamped_log(pg.subtract(1, input))
    losses = pg.subtract((target - 1) * second, target * first)
    return reduce_losses(losses if weight is None else losses * weight, reduction)


def _clamped_log(x: Any) -> Any:
    return pg.maximum(pg.log(x), -100.0)


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Compute the cross entropy of logits and targets between 0 and 1.

    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if tuple(target.shape) != tuple(input.shape):
        raise ShapeError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    if pos_weight is None:
        losses = pg.binary_cross_entropy_with_logits(input, target, "none")
    else:
        below = pg.softplus(pg.negative(input))
        losses = (1 - target) * input + (1 + (pos_weight - 1) * target) * below
    return reduce_losses(losses if weight is None else losses * weight, reduction)
