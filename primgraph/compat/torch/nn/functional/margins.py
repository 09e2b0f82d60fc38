"""Losses of distributions, of margins and of distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.nn.functional.distances import pairwise_distance
from primgraph.compat.torch.nn.functional.losses import (
    known_elements,
    legacy_reduction,
    reduce_losses,
    require_reduction,
)
from primgraph.errors import ArgumentError

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "kl_div",
    "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

# Distributions.


def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """Compute `target * (log(target) - input)` of probabilities and logarithms of others.

    >>> torch.nn.functional.kl_div(torch.zeros(2), torch.ones(2), reduction="sum")
    tensor(0.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    require_reduction(reduction, "batchmean")
    if log_target:
        losses = pg.exp(target) * (target - input)
    else:
        logs = pg.log(pg.where(pg.greater(target, 0), target, 1))
        losses = target * logs - target * input
    if reduction != "batchmean":
        return reduce_losses(losses, reduction)
    return pg.divide(pg.sum(losses), input.shape[0] if input.ndim else 1)


def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute minus the log-likelihood of counts by a Poisson distribution.

    >>> torch.nn.functional.poisson_nll_loss(torch.zeros(2), torch.ones(2))
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    means, logs = (pg.exp(input), input) if log_input else (input, pg.log(input + eps))
    losses = means - target * logs
    if full:
        safe = pg.where(pg.greater(target, 1), target, 1)
        rest = target * pg.log(safe) - target + 0.5 * pg.log(2 * math.pi * safe)
        losses = losses + pg.where(pg.greater(target, 1), rest, 0)
    return reduce_losses(losses, reduction)


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Compute minus the log-likelihood by normal distributions of given variance.

    >>> torch.nn.functional.gaussian_nll_loss(torch.zeros(2), torch.ones(2), torch.ones(2))
    tensor(0.5000)
    """
    if isinstance(var, float):
        var = pg.full_like(input, var)
    if tuple(var.shape) != tuple(input.shape) and tuple(input.shape[:-1]) == tuple(var.shape):
        var = pg.expand_dims(var, -1)
    array = known_elements(var)
    if array is not None and np.any(array < 0):
        raise ArgumentError("var has negative entry/entries")
    clamped = var + pg.stop_gradient(pg.maximum(var, eps) - var)
    losses = 0.5 * (pg.log(clamped) + pg.square(input - target) / clamped)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduce_losses(losses, reduction)


# Margins.


def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute `max(0, margin - target * (input1 - input2))`.

    >>> one = torch.ones(2)
    >>> torch.nn.functional.margin_ranking_loss(one, one, one, margin=0.5)
    tensor(0.5000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    return reduce_losses(pg.maximum(margin - target * (input1 - input2), 0), reduction)


def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute the distance `input` of pairs with target 1, `max(0, margin - input)` of others.

    >>> torch.nn.functional.hinge_embedding_loss(torch.ones(2), torch.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    near = pg.where(pg.not_equal(target, -1), input, 0)
    far = pg.where(pg.not_equal(target, 1), pg.maximum(margin - input, 0), 0)
    return reduce_losses(near + far, reduction)


def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute `1 - cos` of pairs with target 1, `max(0, cos - margin)` of those with -1.

    >>> x = torch.ones(1, 2)
    >>> torch.nn.functional.cosine_embedding_loss(x, x, torch.tensor([-1]))
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    cosine = _cosine(input1, input2)
    near = pg.where(pg.equal(target, 1), 1 - cosine, 0)
    far = pg.where(pg.equal(target, -1), pg.maximum(cosine - margin, 0), 0)
    return reduce_losses(near + far, reduction)


def _cosine(x: Any, y: Any) -> Any:
    tiny = 1e-12
    squares = (pg.sum(x * x, -1) + tiny) * (pg.sum(y * y, -1) + tiny)
    return pg.sum(x * y, -1) / pg.sqrt(squares)


def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute `max(0, margin + |anchor - positive| - |anchor - negative|)`.

    >>> x = torch.ones(1, 2)
    >>> torch.nn.functional.triplet_margin_loss(x, x, x)
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[..., Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """Compute `triplet_margin_loss` with another distance.

    >>> x = torch.ones(1, 2)
    >>> torch.nn.functional.triplet_margin_with_distance_loss(x, x, x)
    tensor(1.)
    """
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = pg.minimum(far, distance(positive, negative))
    return reduce_losses(pg.maximum(near - far + margin, 0), reduction)


def soft_margin_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute `log(1 + exp(-target * input))`.

    >>> torch.nn.functional.soft_margin_loss(torch.zeros(2), torch.ones(2))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    return reduce_losses(pg.softplus(pg.negative(target * input)), reduction)


def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute the mean of `binary_cross_entropy_with_logits` over classes.

    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    losses = pg.binary_cross_entropy_with_logits(input, target, "none")
    return reduce_losses(pg.mean(losses if weight is None else losses * weight, -1), reduction)


def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute the mean over other classes of `max(0, margin - x[target] + x[i]) ** p`.

    >>> torch.nn.functional.multi_margin_loss(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.5000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    count = input.shape[-1]
    own = pg.take_along_axis(input, pg.expand_dims(target, -1), -1)
    terms = pg.power(pg.maximum(margin - own + input, 0), p)
    if weight is not None:
        terms = terms * pg.expand_dims(pg.take(weight, target, 0), -1)
    others = pg.where(pg.equal(pg.one_hot(target, count, "int64"), 1), 0, terms)
    return reduce_losses(pg.divide(pg.sum(others, -1), count), reduction)


def multilabel_margin_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Compute the sum of `max(0, 1 - x[t] + x[i])` over targets and other classes, by their count.

    Targets of a row end before the first -1.

    >>> torch.nn.functional.multilabel_margin_loss(torch.zeros(1, 2), torch.tensor([[1, -1]]))
    tensor(0.5000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    count = input.shape[-1]
    ends = pg.cumsum(pg.astype(pg.less(target, 0), "int64"), -1)
    is_taken = pg.equal(ends, 0)
    places = pg.where(is_taken, target, 0)
    own = pg.take_along_axis(input, places, -1)
    labels = pg.one_hot(places, count, "int64") * pg.expand_dims(pg.astype(is_taken, "int64"), -1)
    is_other = pg.equal(pg.sum(labels, -2), 0)
    terms = pg.maximum(1 - pg.expand_dims(own, -1) + pg.expand_dims(input, -2), 0)
    both = pg.logical_and(pg.expand_dims(is_taken, -1), pg.expand_dims(is_other, -2))
    return reduce_losses(pg.divide(pg.sum(pg.where(both, terms, 0), (-2, -1)), count), reduction)
