"""Functions of networks by the names that they and their arguments have in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.torch.functions import log_softmax, relu, sigmoid, softmax, tanh
from primgraph.compat.torch.nn.windows import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    embedding,
    group_norm,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    rms_norm,
    scaled_dot_product_attention,
)
from primgraph.eager.seeds import next_key
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "group_norm",
    "huber_loss",
    "l1_loss",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "pad",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Compute `input @ weight.T + bias`: the weight has shape (out_features, in_features).

    >>> F = torch.nn.functional
    >>> F.linear(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3))
    tensor([[3., 3., 3.]])
    """
    return pg.linear(input, pg.transpose(weight), bias)


def gelu(input: Any, approximate: str = "none") -> Any:
    """Compute `input` times its normal distribution function, or with "tanh" an approximation.

    >>> F = torch.nn.functional
    >>> F.gelu(torch.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate is 'none' or 'tanh', not {approximate!r:.60}")
    return pg.gelu(input, approximate == "tanh")


def silu(input: Any) -> Any:
    """Compute `input * sigmoid(input)`.

    >>> F = torch.nn.functional
    >>> F.silu(torch.tensor([-1.0, 1.0]))
    tensor([-0.2689,  0.7311])
    """
    return pg.silu(input)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Compute `log(1 + exp(beta * input)) / beta`, or `input` for `beta * input` above threshold.

    >>> F = torch.nn.functional
    >>> F.softplus(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.    ])
    """
    scaled = pg.multiply(input, beta)
    return pg.where(pg.greater(scaled, threshold), input, pg.divide(pg.softplus(scaled), beta))


def dropout(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """Set elements to zero with probability `p`, and divide the others by `1 - p`, in training.

    >>> F = torch.nn.functional
    >>> F.dropout(torch.ones(2), training=False)
    tensor([1., 1.])
    """
    return pg.dropout(input, next_key(), p, training=training)


def layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize to mean 0 and variance 1 over the last axes; then apply weight and bias.

    The axes are as many as `normalized_shape` has sizes. Raises `ShapeError` for other sizes.

    >>> F = torch.nn.functional
    >>> F.layer_norm(torch.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.,  1.]])
    """
    count, wanted = len(normalized_shape), tuple(normalized_shape)
    if tuple(input.shape[-count:]) != wanted:
        raise ShapeError(
            f"normalized_shape {wanted} is not that of the last axes of {tuple(input.shape)}"
        )
    axes = tuple(range(-count, 0))
    return pg.layer_norm(input, weight, bias, axes, eps)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Encode integers as rows with a one at their position, of `num_classes` or maximum + 1.

    >>> F = torch.nn.functional
    >>> F.one_hot(torch.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if num_classes == -1:
        num_classes = int(np.max(np.asarray(tensor))) + 1
    return pg.one_hot(tensor, num_classes, "int64")


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Any:
    """Add elements before and after: pairs of counts, the first pair for the last axis.

    >>> F = torch.nn.functional
    >>> F.pad(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    if len(pad) % 2:
        raise ArgumentError(f"pad takes pairs of numbers, not {len(pad)} numbers")
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [*zip(pad[::2], pad[1::2], strict=True)][::-1]
    return pg.pad(input, pairs, mode, constant_values=value)


# Losses.


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Compute the squared difference: its mean over all elements, its sum, or neither.

    >>> F = torch.nn.functional
    >>> F.mse_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(9.)
    """
    return pg.mse_loss(input, target, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Compute the absolute difference: its mean over all elements, its sum, or neither.

    >>> F = torch.nn.functional
    >>> F.l1_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(3.)
    """
    return pg.l1_loss(input, target, reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """Compute half the squared difference up to the distance `delta`, linear from there on.

    >>> F = torch.nn.functional
    >>> F.huber_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(2.5)
    """
    return pg.huber_loss(input, target, delta, reduction)


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Compute `huber_loss` with `delta=beta`, divided by `beta`; with beta 0 it is `l1_loss`.

    >>> F = torch.nn.functional
    >>> F.smooth_l1_loss(torch.zeros(2), torch.full((2,), 3.0))
    tensor(2.5)
    """
    if beta == 0:
        return pg.l1_loss(input, target, reduction)
    return pg.divide(pg.huber_loss(input, target, beta, reduction), beta)


def binary_cross_entropy(
    input: Any, target: Any, weight: None = None, reduction: str = "mean"
) -> Any:
    """Compute the cross entropy of probabilities and targets between 0 and 1.

    >>> F = torch.nn.functional
    >>> F.binary_cross_entropy(torch.full((2,), 0.5), torch.ones(2))
    tensor(0.6931)
    """
    _reject_weight("binary_cross_entropy", weight)
    return pg.binary_cross_entropy(input, target, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: None = None, reduction: str = "mean"
) -> Any:
    """Compute the cross entropy of logits and targets between 0 and 1.

    >>> F = torch.nn.functional
    >>> F.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2))
    tensor(0.6931)
    """
    _reject_weight("binary_cross_entropy_with_logits", weight)
    return pg.binary_cross_entropy_with_logits(input, target, reduction)


def cross_entropy(input: Any, target: Any, weight: None = None, reduction: str = "mean") -> Any:
    """Compute the cross entropy of logits and class indices or probabilities.

    Classes are along axis 1, or the only axis.

    >>> F = torch.nn.functional
    >>> F.cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """
    _reject_weight("cross_entropy", weight)
    return pg.cross_entropy(input, target, min(1, input.ndim - 1), reduction)


def nll_loss(input: Any, target: Any, weight: None = None, reduction: str = "mean") -> Any:
    """Compute the negative of the elements at positions `target` along axis 1, or the only axis.

    >>> F = torch.nn.functional
    >>> F.nll_loss(torch.tensor([[-0.5, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    _reject_weight("nll_loss", weight)
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f"nll_loss with reduction {reduction!r:.60}", hint="use 'mean', 'sum' or 'none'"
        )
    axis = min(1, input.ndim - 1)
    chosen = pg.take_along_axis(input, pg.expand_dims(target, axis), axis)
    losses = pg.negative(pg.squeeze(chosen, axis))
    if reduction == "none":
        return losses
    return pg.sum(losses) if reduction == "sum" else pg.mean(losses)


def _reject_weight(function: str, weight: Any) -> None:
    if weight is not None:
        raise ArgumentError(
            f"{function} has no weight", hint="take reduction='none', and weigh what it gives"
        )


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
