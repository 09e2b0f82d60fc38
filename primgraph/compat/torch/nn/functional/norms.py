"""Normalization by mean and variance, and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.nn.functional.activations import in_place_result
from primgraph.compat.torch.nn.functional.distances import normalize
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.seeds import next_key
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "alpha_dropout", "batch_norm", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "group_norm", "instance_norm", "layer_norm", "local_response_norm",
    "normalize", "rms_norm",
]  # fmt: skip


def _last_axes(input: Any, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the last axes, which have these sizes."""
    wanted = tuple(normalized_shape)
    if tuple(input.shape[-len(wanted) :]) != wanted:
        raise ShapeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape "
            f"[*, {', '.join(map(str, wanted))}], but got input of size{list(input.shape)}"
        )
    return tuple(range(-len(wanted), 0))


def layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize to mean 0 and variance 1 over the last axes; then apply weight and bias.

    The axes are as many as `normalized_shape` has sizes. Raises `ShapeError` for other sizes.

    >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return pg.layer_norm(input, weight, bias, _last_axes(input, normalized_shape), eps)


def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """Normalize to mean square 1 over the last axes; then multiply by the weight.

    The axes are as many as `normalized_shape` has sizes.

    >>> torch.nn.functional.rms_norm(torch.tensor([[2.0, 2.0]]), (2,))
    tensor([[1., 1.]])
    """
    return pg.rms_norm(input, weight, _last_axes(input, normalized_shape), eps)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalize to mean 0 and variance 1 over groups of channels; then apply weight and bias.

    >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
    return pg.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize each channel by its mean and variance: those of `input` in training.

    Then the running ones, if given, move towards these by `momentum`, with the divisor n - 1.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> torch.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                "Expected running_mean and running_var to be defined when training=False"
            )
        return pg.batch_norm(input, running_mean, running_var, weight, bias, 1, eps)
    count = int(np.prod(input.shape)) // max(input.shape[1], 1)
    if count <= 1:
        raise ShapeError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    if running_mean is not None:
        axes = tuple(i for i in range(input.ndim) if i != 1)
        with no_grad():
            _move(running_mean, pg.mean(input, axes), momentum)
            _move(running_var, pg.var(input, axes, ddof=1), momentum)
    return pg.batch_norm(input, None, None, weight, bias, 1, eps, training=True)


def _move(running: Any, now: Any, momentum: float) -> None:
    """Move running statistics towards those of a batch."""
    if isinstance(now, Tensor):
        now = now.detach()
    running.mul_(1 - momentum).add_(now * momentum)


def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize each channel of each sample by its mean and variance, or by running ones.

    >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        return pg.batch_norm(input, running_mean, running_var, weight, bias, 1, eps)
    if int(np.prod(input.shape[2:])) <= 1:
        raise ShapeError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    if running_mean is not None:
        axes = tuple(range(2, input.ndim))
        with no_grad():
            _move(running_mean, pg.mean(pg.mean(input, axes), 0), momentum)
            _move(running_var, pg.mean(pg.var(input, axes, ddof=1), 0), momentum)
    return pg.instance_norm(input, weight, bias, eps)


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divide by a power of the mean square of `size` neighbouring channels.

    >>> torch.nn.functional.local_response_norm(torch.ones(1, 1, 1), 1, alpha=3.0, beta=1.0)
    tensor([[[0.2500]]])
    """
    if input.ndim < 3:
        raise ShapeError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    count = input.shape[1]
    pairs = [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (input.ndim - 2)]
    squares = pg.pad(pg.square(input), pairs)
    total = squares[:, :count]
    for start in range(1, size):
        total = total + squares[:, start : start + count]
    return pg.divide(input, pg.power(total * (alpha / size) + k, beta))


# Dropout.


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set elements to zero with probability `p`, and divide the others by `1 - p`, in training.

    >>> torch.nn.functional.dropout(torch.ones(2), training=False)
    tensor([1., 1.])
    """
    _check_probability(p)
    if not training or p == 0.0:
        return input
    return in_place_result(input, pg.dropout(input, next_key(), p), inplace)


def _drop_channels(
    name: str, count: int, input: Any, p: float, training: bool, inplace: bool
) -> Any:
    """Drop whole channels of samples with `count` axes behind the channels."""
    _check_probability(p)
    if not training or p == 0.0:
        return input
    if input.ndim < 2:
        raise ShapeError(f"{name} takes samples and channels, not {input.ndim} axes")
    channels = input.shape[:1] if input.ndim == count + 1 else input.shape[:2]
    ones = pg.ones((*channels, *(1,) * (input.ndim - len(channels))), input.dtype)
    return in_place_result(input, input * pg.dropout(ones, next_key(), p), inplace)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set whole channels of sequences to zero with probability `p`, in training.

    >>> torch.nn.functional.dropout1d(torch.ones(1, 1, 2), training=False)
    tensor([[[1., 1.]]])
    """
    return _drop_channels("dropout1d", 1, input, p, training, inplace)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set whole channels of images to zero with probability `p`, in training.

    >>> torch.nn.functional.dropout2d(torch.ones(1, 1, 1, 2), training=False)
    tensor([[[[1., 1.]]]])
    """
    return _drop_channels("dropout2d", -1, input, p, training, inplace)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Set whole channels of volumes to zero with probability `p`, in training.

    >>> torch.nn.functional.dropout3d(torch.ones(1, 1, 1, 1, 2), training=False).shape
    torch.Size([1, 1, 1, 1, 2])
    """
    return _drop_channels("dropout3d", 3, input, p, training, inplace)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Drop elements to the limit of `selu`, and keep mean and variance, in training.

    >>> torch.nn.functional.alpha_dropout(torch.ones(2), training=False)
    tensor([1., 1.])
    """
    return _alpha_dropout(input, p, training, inplace, input.shape)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Apply `alpha_dropout` to whole channels.

    >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2, 3)).shape
    torch.Size([1, 2, 3])
    """
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return _alpha_dropout(input, p, training, inplace, shape)


def _alpha_dropout(input: Any, p: float, training: bool, inplace: bool, shape: Any) -> Any:
    _check_probability(p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return in_place_result(input, input * 0, inplace)
    low = -1.7580993408473766
    scale = 1 / np.sqrt((1 - p) * (1 + p * low**2)).item()
    kept = pg.greater(pg.dropout(pg.ones(tuple(shape), input.dtype), next_key(), p), 0)
    found = pg.where(kept, input, low) * scale - scale * p * low
    return in_place_result(input, found, inplace)
