"""Normalization, and regularization."""

from __future__ import annotations

from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.interop.onnx.node import Node, Optional, Value
from primgraph.interop.onnx.operators.shapes import size_array
from primgraph.interop.onnx.table import means


def _along_channels(x: Value, vector: Value) -> Any:
    """Return a vector as an array along axis 1."""
    return pnp.reshape(vector, (1, -1, *[1] * (x.ndim - 2)))


@means("BatchNormalization")
def _batch_normalization(
    node: Node, x: Value, scale: Value, bias: Value, mean: Value, variance: Value
) -> Any:
    """Normalize by running statistics, or by those of the batch in training mode."""
    eps = x.dtype.type(node.get("epsilon", 1e-5))
    if not node.get("training_mode", 0):
        return _normalized(x, scale, bias, mean, variance, eps)
    axes = (0, *range(2, x.ndim))
    own_mean, own_variance = pnp.mean(x, axes), pnp.var(x, axes)
    share = mean.dtype.type(node.get("momentum", 0.9))
    rest = mean.dtype.type(1) - share
    new_mean = mean * share + own_mean.astype(mean.dtype) * rest
    new_variance = variance * share + own_variance.astype(mean.dtype) * rest
    found = _normalized(x, scale, bias, own_mean, own_variance, eps)
    return found, new_mean, new_variance


def _normalized(x: Value, scale: Value, bias: Value, mean: Value, variance: Value, eps: Any) -> Any:
    factor = scale / pnp.sqrt(variance + eps)
    centred = x - _along_channels(x, mean)
    return (centred * _along_channels(x, factor) + _along_channels(x, bias)).astype(x.dtype)


@means("InstanceNormalization")
def _instance_normalization(node: Node, x: Value, scale: Value, bias: Value) -> Any:
    axes = tuple(range(2, x.ndim))
    centred = x - pnp.mean(x, axes, keepdims=True)
    variance = pnp.mean(centred * centred, axes, keepdims=True)
    found = centred / pnp.sqrt(variance + x.dtype.type(node.get("epsilon", 1e-5)))
    return found * _along_channels(x, scale) + _along_channels(x, bias)


@means("LayerNormalization")
def _layer_normalization(node: Node, x: Value, scale: Value, bias: Optional = None) -> Any:
    """Normalize over the axes from `axis` on; also return mean and inverse deviation."""
    axes = tuple(range(node.get("axis", -1) % x.ndim, x.ndim))
    inner = x.astype(np.float32) if x.dtype == np.float16 else x
    mean = pnp.mean(inner, axes, keepdims=True)
    centred = inner - mean
    variance = pnp.mean(centred * centred, axes, keepdims=True)
    inverse = 1 / pnp.sqrt(variance + inner.dtype.type(node.get("epsilon", 1e-5)))
    found = (centred * inverse).astype(x.dtype) * scale
    return (found if bias is None else found + bias), mean, inverse


@means("RMSNormalization")
def _rms_normalization(node: Node, x: Value, scale: Value) -> Any:
    axes = tuple(range(node.get("axis", -1) % x.ndim, x.ndim))
    inner = x.astype(np.float32) if x.dtype == np.float16 else x
    squares = pnp.mean(inner * inner, axes, keepdims=True)
    found = inner / pnp.sqrt(squares + inner.dtype.type(node.get("epsilon", 1e-5)))
    return found.astype(x.dtype) * scale


@means("LpNormalization")
def _lp_normalization(node: Node, x: Value) -> Any:
    """Divide by the norm along an axis; zeros stay."""
    axis = node.get("axis", -1)
    if node.get("p", 2) == 1:
        norm = pnp.sum(pnp.abs(x), axis, keepdims=True)
    else:
        norm = pnp.sqrt(pnp.sum(x * x, axis, keepdims=True))
    return x / pnp.where(norm == 0, x.dtype.type(1), norm)


@means("LRN")
def _lrn(node: Node, x: Value) -> Any:
    """Normalize by the squares of neighbouring channels."""
    size, number = node.get("size"), x.dtype.type
    before, behind = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = pnp.pad(x * x, [(0, 0), (before, behind), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, k : k + x.shape[1]] for k in range(size))
    alpha, beta = node.get("alpha", 0.0001), node.get("beta", 0.75)
    return x / (number(node.get("bias", 1.0)) + number(alpha / size) * total) ** number(beta)


@means("Dropout")
def _dropout(node: Node, x: Value, *inputs: Optional) -> Any:
    """Return the array itself: a model is imported for inference."""
    given = (x, *inputs)
    training = len(given) > 2 and given[2] is not None and bool(node.known(given, 2, "mode"))
    ratio = node.get("ratio", 0.5)
    if training and len(given) > 1 and given[1] is not None:
        ratio = float(node.known(given, 1, "ratio"))
    if training and ratio:
        raise node.unsupported("training mode")
    return x, pnp.broadcast_to(np.asarray(True), tuple(size_array(x.shape)))
