"""Convolutions and linear layers joined with the normalization behind them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.tensor import Parameter
from primgraph.errors import ArgumentError

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """Return the weight and the bias of a convolution that also normalizes.

    >>> one = torch.ones(1)
    >>> weights = torch.nn.utils.fuse_conv_bn_weights(
    ...     torch.ones(1, 1, 1), None, one * 0, one, 0.0, one * 2, one)
    >>> weights[0].item(), weights[1].item()
    (2.0, 1.0)
    """
    bias = conv_b if conv_b is not None else bn_rm * 0
    scale = pg.power(bn_rv + bn_eps, -0.5)
    scale = scale if bn_w is None else scale * bn_w
    shift = (bias - bn_rm) * scale + (0 if bn_b is None else bn_b)
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = conv_w * pg.reshape(scale, tuple(shape))
    return Parameter(weight.detach()), Parameter(shift.detach())


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Return the weight and the bias of a linear layer that also normalizes.

    >>> one = torch.ones(1)
    >>> weights = torch.nn.utils.fuse_linear_bn_weights(
    ...     torch.ones(1, 1), one, one * 0, one, 0.0, one * 2, one)
    >>> weights[0].item(), weights[1].item()
    (2.0, 3.0)
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fuse(layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise ArgumentError("Fusion only for eval!")
    found = deepcopy(layer)
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    found.weight, found.bias = fuse_conv_bn_weights(
        found.weight, found.bias, *statistics, transpose=transpose
    )
    return found


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution that computes `bn(conv(x))`, both in evaluation mode.

    >>> conv, norm = torch.nn.Conv1d(1, 2, 3).eval(), torch.nn.BatchNorm1d(2).eval()
    >>> torch.nn.utils.fuse_conv_bn_eval(conv, norm)
    Conv1d(1, 2, kernel_size=(3,), stride=(1,))
    """
    return _fuse(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer that computes `bn(linear(x))`, both in evaluation mode.

    >>> linear, norm = torch.nn.Linear(1, 2).eval(), torch.nn.BatchNorm1d(2).eval()
    >>> torch.nn.utils.fuse_linear_bn_eval(linear, norm).out_features
    2
    """
    return _fuse(linear, bn, False)
