"""Losses by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.compat.torch.nn.functional import alignments
from primgraph.compat.torch.nn.functional import losses as torch_losses
from primgraph.compat.torch.nn.functional import margins as torch_margins
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.types import INT64

# Functions that torch has, under names of their own: `torch_mse_loss`.
for _module in (torch_losses, torch_margins):
    globals().update({f"torch_{name}": getattr(_module, name) for name in _module.__all__})


def reduced(losses: Any, reduction: str) -> Any:
    """Return the mean, the sum or the losses themselves."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return pg.sum(losses)
    if reduction == "mean":
        return pg.mean(losses)
    raise OptionError(
        f"The value of 'reduction' should be 'sum', 'mean' or 'none', "
        f"but received {reduction!r:.60}, which is not allowed."
    )


def log_probabilities(input: Any, axis: int, use_softmax: bool) -> Any:
    """Return logarithms of the shares of classes, which `input` has itself without softmax."""
    return pg.log_softmax(input, axis) if use_softmax else pg.log(input)


def class_losses(
    input: Any, label: Any, soft_label: bool, ignore_index: int, axis: int, use_softmax: bool
) -> Any:
    """Return the cross entropy of each sample; the axis of classes is of size 1 then."""
    if soft_label:
        logs = log_probabilities(input, axis, use_softmax)
        return pg.negative(pg.sum(pg.multiply(label, logs), axis, True))
    logs = log_probabilities(input, axis, use_softmax)
    count = input.type.shape[axis]
    if not 0 <= ignore_index < count and torch_losses.are_positions(label, count):
        return pg.negative(pg.take_along_axis(logs, label, axis))
    is_taken = pg.not_equal(label, ignore_index)
    chosen = pg.take_along_axis(logs, pg.where(is_taken, label, 0), axis)
    return pg.where(is_taken, pg.negative(chosen), 0)


def _require_label(input: Any, label: Any) -> None:
    if input.ndim == 0 or label.ndim not in (input.ndim - 1, input.ndim):
        raise ArgumentError(
            f"Expected input_dims - 1 = label_dims or input_dims == label_dims "
            f"(got input_dims{input.ndim}, label_dims{label.ndim})"
        )


def entropy(
    input: Any, label: Any, weight: Any, ignore_index: int, reduction: str, soft_label: bool,
    axis: int, use_softmax: bool, label_smoothing: float,
) -> Any:  # fmt: skip
    """Return the cross entropy of logits and labels."""
    if reduction not in ("sum", "mean", "none"):
        reduced(input, reduction)
    if ignore_index > 0 and soft_label:
        raise OptionError(f"soft labels take no ignore_index, and {ignore_index} is given")
    _require_label(input, label)
    has_no_axis = label.ndim == input.ndim - 1
    target = pg.expand_dims(label, axis) if has_no_axis else label
    if label_smoothing > 0.0:
        count = input.type.shape[-1]
        if has_no_axis:
            target = pg.one_hot(label, count, input.dtype)
            has_no_axis = False
        target = target * (1.0 - label_smoothing) + label_smoothing / target.type.shape[-1]
        soft_label = True
    if not soft_label and target.type.dtype != INT64:
        target = pg.astype(target, INT64)
    losses = class_losses(input, target, soft_label, ignore_index, axis, use_softmax)
    weights = None
    if weight is not None:
        weights = _weights(target, weight, soft_label, ignore_index, losses)
        losses = losses * weights
    if reduction == "none":
        return pg.squeeze(losses, axis) if has_no_axis else losses
    if reduction == "sum":
        return pg.sum(losses)
    if ignore_index >= 0 and not soft_label:
        kept = pg.astype(pg.not_equal(target, ignore_index), losses.dtype)
        return _ratio(pg.sum(losses), pg.sum(kept if weights is None else kept * weights))
    return pg.mean(losses) if weights is None else _ratio(pg.sum(losses), pg.sum(weights))


def _weights(target: Any, weight: Any, soft_label: bool, ignore_index: int, losses: Any) -> Any:
    """Return the weight of each sample, of its class or of the shares of classes."""
    if soft_label:
        return pg.reshape(pg.matmul(pg.astype(target, weight.dtype), weight), losses.type.shape)
    is_taken = pg.not_equal(target, ignore_index)
    return pg.where(is_taken, pg.take(weight, pg.where(is_taken, target, 0), 0), 0)


def _ratio(total: Any, count: Any) -> Any:
    """Return `total / count`, and `total` for a count of zero."""
    return pg.divide(total, pg.add(count, pg.astype(pg.equal(count, 0), count.dtype)))


def entropy_with_softmax(
    logits: Any, label: Any, soft_label: bool, ignore_index: int, return_softmax: bool, axis: int
) -> Any:
    """Return the cross entropy of each sample, and with `return_softmax` the shares as well."""
    _require_label(logits, label)
    target = pg.expand_dims(label, axis) if label.ndim == logits.ndim - 1 else label
    target = target if soft_label else pg.astype(target, "int64")
    losses = class_losses(logits, target, soft_label, ignore_index, axis, True)
    return (losses, pg.softmax(logits, axis)) if return_softmax else losses


def negative_logs(input: Any, label: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Return minus the elements of `input` at labels along axis 1, weighted by class."""
    target = pg.astype(pg.expand_dims(label, 1), "int64")
    is_taken = pg.not_equal(target, ignore_index)
    places = pg.where(is_taken, target, 0)
    weights = pg.where(is_taken, 1 if weight is None else pg.take(weight, places, 0), 0)
    weights = pg.astype(weights, input.dtype)
    chosen = pg.squeeze(pg.take_along_axis(input, places, 1) * weights, 1)
    losses = pg.negative(chosen)
    if reduction == "mean":
        return pg.divide(pg.sum(losses), pg.sum(weights))
    return reduced(losses, reduction)


def binary_entropy(input: Any, label: Any, weight: Any, reduction: str) -> Any:
    """Return the cross entropy of probabilities, with logarithms of `1e-12` at least."""
    wanted = pg.astype(label, input.dtype)
    hit = pg.multiply(wanted, pg.log(pg.maximum(input, 1e-12)))
    miss = pg.multiply(1.0 - wanted, pg.log(pg.maximum(pg.subtract(1.0, input), 1e-12)))
    losses = pg.negative(pg.add(hit, miss))
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_entropy_of_logits(
    logit: Any, label: Any, weight: Any, reduction: str, pos_weight: Any
) -> Any:
    """Return the cross entropy of logits; `pos_weight` multiplies that of positive labels."""
    losses = pg.binary_cross_entropy_with_logits(logit, label, "none")
    if pos_weight is not None:
        losses = _positive(logit, label, pos_weight)
    return reduced(losses if weight is None else losses * weight, reduction)


def _positive(logit: Any, label: Any, pos_weight: Any) -> Any:
    factor = pg.add(pg.multiply(pg.subtract(pos_weight, 1.0), label), 1.0)
    below = pg.softplus(pg.negative(logit))
    return pg.add(pg.multiply(pg.subtract(1.0, label), logit), pg.multiply(factor, below))


def smooth_distance(input: Any, label: Any, reduction: str, delta: float, is_huber: bool) -> Any:
    """Return half the squared difference up to `delta`, and linear from there on."""
    losses = pg.huber_loss(input, label, delta, "none")
    return reduced(losses if is_huber else losses / delta, reduction)


def hinge(input: Any, label: Any, margin: float, reduction: str) -> Any:
    """Return the input where labels are 1, and its distance below a margin where they are -1."""
    near = pg.where(pg.equal(label, 1.0), input, 0)
    far = pg.where(pg.equal(label, -1.0), pg.relu(pg.subtract(margin, input)), 0)
    return reduced(pg.add(near, far), reduction)


def focal(
    logit: Any, label: Any, normalizer: Any, alpha: float, gamma: float, reduction: str
) -> Any:
    """Return the binary cross entropy, less that of examples that are easy.

    After T.-Y. Lin et al., Focal loss for dense object detection, 2017.
    """
    losses = pg.binary_cross_entropy_with_logits(logit, label, "none")
    share = pg.sigmoid(logit)
    right = share * label + (1.0 - share) * (1.0 - label)
    weight = label * alpha + (1.0 - label) * (1.0 - alpha)
    losses = losses * weight * (1.0 - right) ** gamma
    return reduced(losses if normalizer is None else losses / normalizer, reduction)


def overlap(input: Any, label: Any, epsilon: float) -> Any:
    """Return the mean of one less Dice's coefficient of shares of classes."""
    wanted = pg.one_hot(pg.squeeze(label, -1), input.type.shape[-1], input.dtype)
    axes = tuple(range(1, input.ndim))
    total = pg.add(pg.sum(input, axes), pg.sum(wanted, axes))
    return pg.mean(1.0 - pg.sum(input * wanted, axes) * 2.0 / (total + epsilon))


def pairs_of_classes(anchor: Any, positive: Any, labels: Any, l2_reg: float) -> Any:
    """Return the N-pair loss (Sohn, 2016) with a penalty of the squares."""
    column = pg.reshape(labels, (-1, 1))
    same = pg.astype(pg.equal(column, pg.transpose(column)), anchor.dtype)
    wanted = same / pg.sum(same, 1, True)
    squares = pg.mean(pg.sum(anchor**2, 1)) + pg.mean(pg.sum(positive**2, 1))
    logs = pg.log_softmax(pg.matmul(anchor, pg.transpose(positive)), -1)
    losses = pg.negative(pg.sum(wanted * logs, -1, True))
    return squares * (0.25 * l2_reg) + pg.mean(pg.sum(wanted * losses, 0))


def divergence(input: Any, label: Any, reduction: str, log_target: bool) -> Any:
    """Return the Kullback-Leibler divergence of logarithms of shares from shares."""
    if log_target:
        losses = pg.exp(label) * (label - input)
    else:
        inside = pg.greater(label, 0)
        logs = pg.log(pg.where(inside, label, 1))
        losses = pg.where(inside, label * (logs - input), 0)
    if reduction == "batchmean":
        return pg.divide(pg.sum(losses), input.type.shape[0] if input.ndim else 1)
    return reduced(losses, reduction)


def poisson(
    input: Any, label: Any, log_input: bool, full: bool, epsilon: float, reduction: str
) -> Any:
    """Return the negative log likelihood of counts."""
    if not epsilon > 0:
        raise OptionError(f"epsilon is positive, not {epsilon}")
    return torch_margins.poisson_nll_loss(
        input, label, log_input, full, eps=epsilon, reduction=reduction
    )


def alignment(
    logits: Any, labels: Any, input_lengths: Any, label_lengths: Any, blank: int, reduction: str,
    norm_by_times: bool, zero_infinity: bool,
) -> Any:  # fmt: skip
    """Return the negative log likelihood of all alignments of labels with times."""
    reject_options("ctc_loss", norm_by_times=norm_by_times)
    logs = pg.log_softmax(logits, -1)
    losses = alignments.ctc_loss(
        logs, labels, input_lengths, label_lengths, blank, "none", zero_infinity
    )
    if reduction == "mean":
        return pg.mean(pg.divide(losses, pg.astype(label_lengths, losses.dtype)))
    return reduced(losses, reduction)


_ROWS = """
binary_cross_entropy(input, label, weight=None, reduction='mean') = binary_entropy(input, label, weight, reduction)
Compute the cross entropy of probabilities and labels. | [0.5, 0.25], [1.0, 0.0] ~ 0.49
binary_cross_entropy_with_logits(logit, label, weight=None, reduction='mean', pos_weight=None) = binary_entropy_of_logits(logit, label, weight, reduction, pos_weight)
Compute the cross entropy of logits and labels. | [0.0, 1.0], [1.0, 0.0] ~ 1.003
cosine_embedding_loss(input1, input2, label, margin=0, reduction='mean') = torch_cosine_embedding_loss(input1, input2, label, margin=margin, reduction=reduction)
Compute one less the cosine of vectors for label 1, its excess over a margin for -1. | [[1.0, 0.0]], [[0.0, 1.0]], [1] ~ 1.0
cross_entropy(input, label, weight=None, ignore_index=-100, reduction='mean', soft_label=False, axis=-1, use_softmax=True, label_smoothing=0.0) = entropy(input, label, weight, ignore_index, reduction, soft_label, axis, use_softmax, label_smoothing)
Compute the cross entropy of logits and classes, or with `soft_label` of shares of classes. | [[0.0, 0.0]], [1] ~ 0.693
dice_loss(input, label, epsilon=1e-05) = overlap(input, label, epsilon)
Compute one less Dice's coefficient of shares of classes. | [[0.5, 0.5]], [[1]] ~ 0.5
gaussian_nll_loss(input, label, variance, full=False, epsilon=1e-06, reduction='mean') = torch_gaussian_nll_loss(input, label, variance, full, epsilon, reduction)
Compute the negative log likelihood of normal distributions. | [1.0], [3.0], [2.0] ~ 1.347
hinge_embedding_loss(input, label, margin=1.0, reduction='mean') = hinge(input, label, margin, reduction)
Compute the input where labels are 1, and its distance below a margin where they are -1. | [0.5, 0.25], [1.0, -1.0] ~ 0.625
kl_div(input, label, reduction='mean', log_target=False) = divergence(input, label, reduction, log_target)
Compute the Kullback-Leibler divergence of logarithms of shares from shares. | [[-0.5, -1.0]], [[0.5, 0.5]] ~ 0.028
l1_loss(input, label, reduction='mean') = reduced(pg.abs(pg.subtract(input, label)), reduction)
Compute the absolute difference. | [1.0, 2.0], [1.0, 4.0] ~ 1.0
log_loss(input, label, epsilon=0.0001) = negative_log_likelihood(input, label, epsilon)
Compute the cross entropy of probabilities and labels, of each element. | [[0.5]], [[1.0]] -> [[0.6929471492767334]]
margin_ranking_loss(input, other, label, margin=0.0, reduction='mean') = reduced(pg.relu(pg.multiply(pg.subtract(other, input), label) + margin), reduction)
Compute by how much an order is wrong, or right by less than a margin. | [1.0], [2.0], [1.0] ~ 1.0
mse_loss(input, label, reduction='mean') = reduced(pg.square(pg.subtract(input, label)), reduction)
Compute the squared difference. | [1.0, 2.0], [1.0, 4.0] ~ 2.0
multi_label_margin_loss(input, label, reduction='mean') = torch_multilabel_margin_loss(input, label, reduction=reduction)
Compute the margin loss of several classes for each sample. | [[0.1, 0.2]], [[1, -1]] ~ 0.45
multi_label_soft_margin_loss(input, label, weight=None, reduction='mean') = torch_multilabel_soft_margin_loss(input, label, weight, reduction=reduction)
Compute the mean binary cross entropy of several classes for each sample. | [[0.0, 1.0]], [[1.0, 0.0]] ~ 1.003
multi_margin_loss(input, label, p=1, margin=1.0, weight=None, reduction='mean') = torch_multi_margin_loss(input, label, p, margin, weight, reduction=reduction)
Compute by how much the right class is not ahead by a margin. | [[0.1, 0.4]], [1] ~ 0.35
nll_loss(input, label, weight=None, ignore_index=-100, reduction='mean') = negative_logs(input, label, weight, ignore_index, reduction)
Compute minus the elements at labels along axis 1. | [[-0.5, -2.0]], [1] ~ 2.0
npair_loss(anchor, positive, labels, l2_reg=0.002) = pairs_of_classes(anchor, positive, labels, l2_reg)
Compute the N-pair loss (Sohn, 2016). | [[1.0, 0.0]], [[0.5, 0.5]], [1.0] ~ 0.001
poisson_nll_loss(input, label, log_input=True, full=False, epsilon=1e-08, reduction='mean') = poisson(input, label, log_input, full, epsilon, reduction)
Compute the negative log likelihood of counts. | [1.0, 2.0], [1.0, 4.0] ~ 0.554
sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction='sum') = focal(logit, label, normalizer, alpha, gamma, reduction)
Compute the focal loss (Lin et al., 2017). | [[0.0, 1.0]], [[1.0, 0.0]] ~ 0.57
smooth_l1_loss(input, label, reduction='mean', delta=1.0, is_huber=True) = smooth_distance(input, label, reduction, delta, is_huber)
Compute half the squared difference up to `delta`, linear from there on. | [0.0], [3.0] ~ 2.5
soft_margin_loss(input, label, reduction='mean') = torch_soft_margin_loss(input, label, reduction=reduction)
Compute `log(1 + exp(-label * input))`. | [0.0], [1.0] ~ 0.693
triplet_margin_loss(input, positive, negative, margin=1.0, p=2, epsilon=1e-06, swap=False, reduction='mean') = torch_triplet_margin_loss(input, positive, negative, margin, p, epsilon, swap, reduction=reduction)
Compute by how much the positive is not nearer than the negative. | [[0.0]], [[1.0]], [[1.5]] ~ 0.5
triplet_margin_with_distance_loss(input, positive, negative, distance_function=None, margin=1.0, swap=False, reduction='mean') = torch_triplet_margin_with_distance_loss(input, positive, negative, distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)
Compute `triplet_margin_loss` with a distance of the caller's. | [[0.0]], [[1.0]], [[1.5]] ~ 0.5
"""  # noqa: E501
# Functions that have no argument `name`.
_NAMELESS = """
ctc_loss(log_probs, labels, input_lengths, label_lengths, blank=0, reduction='mean', norm_by_times=False, zero_infinity=False) = alignment(log_probs, labels, input_lengths, label_lengths, blank, reduction, norm_by_times, zero_infinity)
Compute the loss of connectionist temporal classification (Graves et al., 2006), of logits. | [[[0.0, 0.0]]], [[1]], [1], [1] ~ 0.693
softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True, return_softmax=False, axis=-1) = entropy_with_softmax(logits, label, soft_label, ignore_index, return_softmax, axis)
Compute the cross entropy of each sample, with an axis of size 1 for classes. | [[0.0, 0.0]], [[1]] -> [[0.6931471824645996]]
square_error_cost(input, label) = pg.square(pg.subtract(input, label))
Compute the squared difference of each element. | [1.0, 2.0], [1.0, 4.0] ~ [0. 4.]
"""  # noqa: E501


def negative_log_likelihood(input: Any, label: Any, epsilon: float) -> Any:
    """Return the cross entropy of each element, with `epsilon` added to probabilities."""
    hit = pg.multiply(label, pg.log(pg.add(input, epsilon)))
    miss = pg.multiply(pg.subtract(1.0, label), pg.log(pg.subtract(1.0 + epsilon, input)))
    return pg.negative(pg.add(hit, miss))


__all__ = define_functions(globals(), _ROWS + _NAMELESS, "paddle.nn.functional")
