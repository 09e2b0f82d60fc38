"""Linear maps, norms, dropout, attention and labels by the names that they have in Paddle."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.compat.paddle.nn.functional.windows import in_layout
from primgraph.compat.torch.nn.functional import attention, distances, norms
from primgraph.compat.torch.nn.functional.activations import in_place_result
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_dtype
from primgraph.nn.basic import key_for
from primgraph.operators.variable import Variable
from primgraph.program.program import belongs_to_program, program_of

# Functions that torch has, under names of their own: `torch_normalize`.
for _module in (attention, distances, norms):
    globals().update({f"torch_{name}": getattr(_module, name) for name in _module.__all__})


def rows_of(x: Any, weight: Any, padding_idx: int | None, sparse: bool) -> Any:
    """Return rows of `weight`; that of `padding_idx` reads as zeros and has no gradient."""
    if padding_idx is None:
        return pg.embedding(x, weight)
    row = padding_idx % weight.type.shape[0]
    found = pg.embedding(x, weight, row)
    return pg.where(pg.expand_dims(pg.equal(x, row), -1), 0, found)


def drop(x: Any, p: Any, axis: Any, training: bool, mode: str, inplace: bool = False) -> Any:
    """Return `x` with elements, or slices along the axes that are not in `axis`, set to zero."""
    if not isinstance(p, int | float) or isinstance(p, bool):
        raise ArgumentError("p argument should be a number or Variable")
    if not 0 <= p <= 1:
        raise ArgumentError("p argument should between 0 and 1")
    if mode not in ("downscale_in_infer", "upscale_in_train"):
        raise ArgumentError("mode argument should be 'downscale_in_infer' or 'upscale_in_train'")
    key = key_for(x) if training and p else 0
    if axis is None:
        found = pg.dropout(x, key, p, mode, training=training)
    else:
        axes = {a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)}
        shape = [n if i in axes else 1 for i, n in enumerate(x.type.shape)]
        mask = pg.dropout(pg.ones(shape, x.dtype), key, p, mode, training=training)
        found = pg.multiply(x, mask)
    return found if not inplace else in_place_result(x, found, True)


def drop_channels(x: Any, p: float, training: bool, data_format: str) -> Any:
    """Return `x` with whole channels set to zero."""
    axes = [0, x.ndim - 1] if data_format.endswith("C") else [0, 1]
    return drop(x, p, axes, training, "upscale_in_train")


# The limit of `selu` at minus infinity.
_LIMIT = -1.7580993408473766


def drop_to_limit(x: Any, p: float, training: bool, shape: Any) -> Any:
    """Return `x` with elements set to the limit of `selu`, and scaled and shifted in training."""
    if not 0 <= p <= 1:
        raise ArgumentError("p argument should between 0 and 1")
    if not training or p == 0:
        return x
    if p == 1:
        return pg.dropout(x, key_for(x), 1.0)
    scale = float(((1 - p) * (1 + p * _LIMIT**2)) ** -0.5)
    shift = -scale * p * _LIMIT
    # It is 1 or 0 in training, and `1 - p` in a clone of the program for tests.
    kept = pg.dropout(pg.ones(tuple(shape), x.dtype), key_for(x), p, "downscale_in_infer")
    changed = pg.where(pg.equal(kept, 1.0), x * scale + shift, _LIMIT * scale + shift)
    is_training = pg.logical_or(pg.equal(kept, 1.0), pg.equal(kept, 0.0))
    return pg.where(is_training, changed, x)


def normalize_layers(x: Any, normalized_shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """Return `x` with mean 0 and variance 1 over its last axes, then scaled and shifted."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if list(x.type.shape[x.ndim - len(shape) :]) != shape:
        raise ShapeError(
            f"Given normalized_shape is {shape}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], but got input shape {list(x.type.shape)}"
        )
    axes = tuple(range(-len(shape), 0))
    return pg.layer_norm(x, flat(weight, shape), flat(bias, shape), axis=axes, eps=epsilon)


def flat(vector: Any, shape: Any) -> Any:
    """Return a weight in a shape, or None."""
    return None if vector is None else pg.reshape(vector, shape)


def normalize_batch(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool,
    momentum: float, epsilon: float, data_format: str, use_global_stats: Any,
) -> Any:  # fmt: skip
    """Return `x` with mean 0 and variance 1 for each channel, and let running ones follow."""
    if x.ndim < 2:
        raise ShapeError("input dim must be larger than 1")
    axis = x.ndim - 1 if data_format.endswith("C") and data_format != "NC" else 1
    uses_batch = training and not use_global_stats
    found = pg.batch_norm(x, running_mean, running_var, weight, bias, axis, epsilon, uses_batch)
    if uses_batch:
        others = tuple(a for a in range(x.ndim) if a != axis)
        follow(running_mean, pg.mean(x, others), momentum)
        follow(running_var, pg.var(x, others), momentum)
    return found


def follow(running: Any, batch: Any, momentum: float) -> None:
    """Let a running statistic be a weighted mean of itself and of a batch."""
    batch = pg.astype(batch, running.dtype)
    if isinstance(running, Tensor):
        with no_grad():
            running.copy_(running * momentum + batch * (1.0 - momentum))
    elif isinstance(running, Variable) and belongs_to_program(running):
        program = program_of(running)
        kept = program.next_value(running) * momentum
        program.update(running, kept + batch * (1.0 - momentum))


def normalize_instances(
    x: Any, weight: Any, bias: Any, use_input_stats: bool, eps: float, data_format: str
) -> Any:
    """Return `x` with mean 0 and variance 1 for each channel of each sample."""
    return in_layout(data_format, x, lambda x: pg.instance_norm(x, weight, bias, eps))


def normalize_groups(
    x: Any, num_groups: int, epsilon: float, weight: Any, bias: Any, data_format: str
) -> Any:
    """Return `x` with mean 0 and variance 1 for groups of channels of each sample."""
    channels = x.type.shape[-1 if data_format.endswith("C") else 1]
    if channels % num_groups:
        raise ArgumentError(f"{channels} channels are no multiple of {num_groups} groups")
    return in_layout(data_format, x, lambda x: pg.group_norm(x, num_groups, weight, bias, epsilon))


def normalize_neighbors(
    x: Any, size: int, alpha: float, beta: float, k: float, data_format: str
) -> Any:
    """Return `x` divided by a power of the mean square of channels around each."""
    if x.ndim < 3:
        raise ShapeError(f"Expected 3D or higher dimensionality input, but got {x.ndim} dimensions")
    return in_layout(data_format, x, lambda x: norms.local_response_norm(x, size, alpha, beta, k))


def attend(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool,
    training: bool, scale: Any,
) -> Any:  # fmt: skip
    """Return means of values weighted by similarity, of (samples, times, heads, elements)."""
    q, k, v = [pg.swapaxes(x, 1, 2) for x in (query, key, value)]
    rate = dropout_p if training else 0.0
    secret = key_for(query) if rate else None
    found = pg.scaled_dot_product_attention(
        q, k, v, attn_mask, rate, is_causal, scale, True, secret
    )
    return pg.swapaxes(found, 1, 2)


def smooth_labels(label: Any, prior_dist: Any, epsilon: float) -> Any:
    """Return a mean of labels and of a distribution, even by default."""
    if not 0.0 <= epsilon <= 1.0:
        raise ArgumentError(f"The value of epsilon must be between 0 and 1, not {epsilon}")
    prior = 1.0 / label.type.shape[-1] if prior_dist is None else prior_dist
    return pg.add(pg.multiply(label, 1.0 - epsilon), prior * epsilon)


def mask_of_lengths(x: Any, maxlen: Any, dtype: Any) -> Any:
    """Return for each length as many ones, followed by zeros."""
    if maxlen is None:
        maxlen = int(np.max(x.numpy())) if isinstance(x, Tensor) else None
    if maxlen is None:
        raise ArgumentError("sequence_mask of a variable takes maxlen")
    shape = (*x.type.shape, int(maxlen))
    found = pg.less(pg.iota(shape, len(shape) - 1, x.dtype), pg.expand_dims(x, -1))
    return pg.astype(found, as_dtype(dtype))


def ones_at(x: Any, num_classes: int) -> Any:
    """Return rows of zeros with a one at each class."""
    count = num_classes
    if count == -1:
        if not isinstance(x, Tensor):
            raise ArgumentError("one_hot of a variable takes num_classes")
        count = int(np.max(x.numpy(), initial=-1)) + 1
    elif isinstance(x, Tensor) and x.size and int(np.max(x.numpy())) >= count:
        raise ArgumentError(
            f"Illegal index value, Input(input) value should be less than {count}, but "
            f"{int(np.max(x.numpy()))} is given"
        )
    return pg.one_hot(x, count, dtype_or_default(None))


def cosine(x1: Any, x2: Any, axis: int, eps: float) -> Any:
    """Return the cosine of the angle between vectors along an axis."""
    dot = pg.sum(pg.multiply(x1, x2), axis)
    squares = pg.multiply(pg.sum(pg.multiply(x1, x1), axis), pg.sum(pg.multiply(x2, x2), axis))
    return pg.divide(dot, pg.sqrt(pg.maximum(squares, eps**2)))


def unit_vectors(x: Any, p: float, axis: int, epsilon: float) -> Any:
    """Return vectors along an axis divided by their norms."""
    return distances.normalize(x, p, axis, epsilon)


def product_with_bias(x1: Any, x2: Any, weight: Any, bias: Any) -> Any:
    """Return `x1 @ weight[k] @ x2` for each output, plus the bias."""
    found = pg.einsum("ni,kij,nj->nk", x1, weight, x2)
    return found if bias is None else pg.add(found, bias)


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """Return `x @ weight + bias`; raise for other dtypes than that of the weight."""
    if x.type.dtype != weight.type.dtype:
        raise ArgumentError(
            f"linear: the weight is {weight.type} and x is {x.type}, of another dtype",
            hint="x.astype(...) converts it",
        )
    return pg.linear(x, weight, bias)


def gate(x: Any, y: Any) -> Any:
    """Return `silu(x) * y`, of the halves of `x` without `y`."""
    first, second = pg.split(x, 2, -1) if y is None else (x, y)
    return pg.multiply(pg.silu(first), second)


def lengths(x: Any, y: Any, p: float, epsilon: float, keepdim: bool) -> Any:
    """Return norms of differences along the last axis."""
    apart = pg.add(pg.subtract(x, y), epsilon)
    return pg.norm(apart, p, -1, keepdim)


def checked_embedding(
    x: Any, weight: Any, padding_idx: Any, max_norm: Any, sparse: bool, scale_grad_by_freq: bool
) -> Any:
    """Return rows of `weight`; raise for options that are not supported."""
    reject_options("embedding", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq)
    count = weight.type.shape[0]
    if isinstance(x, Tensor) and x.type.size:
        array = x.numpy()
        if array.min() < 0 or array.max() >= count:
            raise ArgumentError(
                f"Variable value (input) of OP(embedding) expected >= 0 and < {count}, but got "
                f"{array.min()} to {array.max()}"
            )
    return rows_of(x, weight, padding_idx, sparse)


_ROWS = """
alpha_dropout(x, p=0.5, training=True) = drop_to_limit(x, p, training, x.type.shape)
Set elements to a constant that keeps mean and variance of `selu`. | [1.0, 2.0], training=False ~ [1. 2.]
batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.9, epsilon=1e-05, data_format='NCHW', use_global_stats=None) = normalize_batch(x, running_mean, running_var, weight, bias, training, momentum, epsilon, data_format, use_global_stats)
Normalize channels; running statistics keep the share `momentum` of themselves in training. | [[1.0], [3.0]], [0.0], [1.0], training=True -> [[-0.9999949932098389], [0.9999949932098389]]
bilinear(x1, x2, weight, bias=None) = product_with_bias(x1, x2, weight, bias)
Compute `x1 @ weight[k] @ x2` for each output, plus the bias. | [[1.0, 2.0]], [[3.0]], [[[1.0], [1.0]]] -> [[9.0]]
dropout(x, p=0.5, axis=None, training=True, inplace=False, mode='upscale_in_train') = drop(x, p, axis, training, mode, inplace)
Set elements to zero with probability `p`, or slices along all axes but those in `axis`. | [1.0, 2.0], training=False ~ [1. 2.]
dropout2d(x, p=0.5, training=True, data_format='NCHW') = drop_channels(x, p, training, data_format)
Set whole channels to zero with probability `p`. | [[[[1.0]]]], training=False -> [[[[1.0]]]]
dropout3d(x, p=0.5, training=True, data_format='NCDHW') = drop_channels(x, p, training, data_format)
Set whole channels to zero with probability `p`. | [[[[[1.0]]]]], training=False -> [[[[[1.0]]]]]
embedding(x, weight, padding_idx=None, max_norm=None, norm_type=2.0, sparse=False, scale_grad_by_freq=False) = checked_embedding(x, weight, padding_idx, max_norm, sparse, scale_grad_by_freq)
Return rows of `weight`; that of `padding_idx` reads as zeros. | [1, 0], [[1.0, 2.0], [3.0, 4.0]] -> [[3.0, 4.0], [1.0, 2.0]]
feature_alpha_dropout(x, p=0.5, training=True) = drop_to_limit(x, p, training, (*x.type.shape[:2], *[1] * (x.ndim - 2)))
Set channels to a constant that keeps mean and variance of `selu`. | [[[1.0]]], training=False -> [[[1.0]]]
group_norm(x, num_groups, epsilon=1e-05, weight=None, bias=None, data_format='NCHW') = normalize_groups(x, num_groups, epsilon, weight, bias, data_format)
Normalize groups of channels of each sample. | [[[1.0], [3.0]]], 1, data_format='NCL' -> [[[-0.9999949932098389], [0.9999949932098389]]]
instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.9, eps=1e-05, data_format='NCHW') = normalize_instances(x, weight, bias, use_input_stats, eps, data_format)
Normalize channels of each sample; running statistics have no effect. | [[[1.0, 3.0]]], data_format='NCL' -> [[[-0.9999949932098389, 0.9999949932098389]]]
label_smooth(label, prior_dist=None, epsilon=0.1) = smooth_labels(label, prior_dist, epsilon)
Return a mean of labels and of a distribution, even by default. | [[1.0, 0.0]], epsilon=0.5 -> [[0.75, 0.25]]
layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-05) = normalize_layers(x, normalized_shape, weight, bias, epsilon)
Normalize the last axes, of that shape. | [[1.0, 3.0]], 2 -> [[-0.9999949932098389, 0.9999949932098389]]
linear(x, weight, bias=None) = affine(x, weight, bias)
Compute `x @ weight + bias`. | [[1.0, 2.0]], [[1.0], [1.0]], [0.5] -> [[3.5]]
local_response_norm(x, size, alpha=0.0001, beta=0.75, k=1.0, data_format='NCHW') = normalize_neighbors(x, size, alpha, beta, k, data_format)
Divide by a power of the mean square of channels around each. | [[[2.0], [0.0]]], 2, 1.0, 1.0, 2.0, data_format='NCL' -> [[[0.5], [0.0]]]
normalize(x, p=2, axis=1, epsilon=1e-12, out=None) = unit_vectors(x, p, axis, epsilon)
Divide vectors along an axis by their norms. | [[3.0, 4.0]] -> [[0.6000000238418579, 0.800000011920929]]
one_hot(x, num_classes=-1) = ones_at(x, num_classes)
Return rows of zeros with a one at each class. | [0, 2], 3 -> [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
pairwise_distance(x, y, p=2.0, epsilon=1e-06, keepdim=False) = lengths(x, y, p, epsilon, keepdim)
Compute norms of differences along the last axis. | [[1.0, 2.0]], [[4.0, 6.0]] ~ [5.]
rms_norm(input, normalized_shape, weight=None, eps=1e-05) = torch_rms_norm(input, [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape, weight, eps)
Divide the last axes by their root mean square. | [[3.0, 4.0]], 2 -> [[0.8485277891159058, 1.1313704252243042]]
scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, training=True, backend=None, scale=None, enable_gqa=True) = attend(query, key, value, attn_mask, dropout_p, is_causal, training, scale)
Compute means of values, weighted by similarity: (samples, times, heads, elements). | [[[[1.0]]]], [[[[1.0]]]], [[[[2.0]]]] -> [[[[2.0]]]]
sequence_mask(x, maxlen=None, dtype='int64') = mask_of_lengths(x, maxlen, dtype)
Return for each length as many ones, followed by zeros. | [1, 3] -> [[1, 0, 0], [1, 1, 1]]
swiglu(x, y=None) = gate(x, y)
Compute `silu(x) * y`, of the halves of `x` without `y`. | [1.0, 2.0] ~ [1.462]
"""  # noqa: E501
# Functions that have no argument `name`.
_NAMELESS = """
cosine_similarity(x1, x2, axis=1, eps=1e-08) = cosine(x1, x2, axis, eps)
Compute the cosine of the angle between vectors along an axis. | [[3.0, 4.0]], [[4.0, 3.0]] ~ [0.96]
dropout1d(input, p=0.5, training=True, inplace=False) = drop(input, p, [0, 1] if input.ndim == 3 else [0], training, 'upscale_in_train', inplace)
Set whole channels to zero with probability `p`. | [[[1.0]]], training=False -> [[[1.0]]]
"""  # noqa: E501

__all__ = define_functions(globals(), _ROWS + _NAMELESS, "paddle.nn.functional")
