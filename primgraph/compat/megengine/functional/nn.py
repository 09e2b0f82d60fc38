"""Functions of networks by the names that they have in `megengine.functional.nn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.functional import loss
from primgraph.compat.megengine.functional.elemwise import take_numbers
from primgraph.compat.megengine.functional.loss import *  # noqa: F403
from primgraph.compat.megengine.functional.math import normalize
from primgraph.compat.megengine.functional.norms import (
    batch_norm,
    general_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    sync_batch_norm,
)
from primgraph.compat.megengine.functional.windows import (
    adaptive_avg_pool2d,
    adaptive_max_pool2d,
    avg_pool2d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose2d,
    conv_transpose3d,
    max_pool2d,
    pad,
    pixel_shuffle,
    sliding_window,
    sliding_window_transpose,
)
from primgraph.eager.seeds import next_key
from primgraph.errors import OptionError
from primgraph.operators.names import define

_ROWS = """
relu(x)
Return elements, or zero for negative ones.
>>> megengine.functional.relu(megengine.Tensor([-1.0, 2.0]))
Tensor([0. 2.], device=xpux:0)

relu6(x): clip(x, 0.0, 6.0)
Limit elements to the interval from 0 to 6.
>>> megengine.functional.relu6(megengine.Tensor([-1.0, 2.0, 8.0]))
Tensor([0. 2. 6.], device=xpux:0)

sigmoid(x)
Compute `1 / (1 + exp(-x))`.
>>> megengine.functional.sigmoid(megengine.Tensor([0.0, 1.0]))
Tensor([0.5    0.7311], device=xpux:0)

silu(x)
Compute `x * sigmoid(x)`.
>>> megengine.functional.silu(megengine.Tensor([0.0, 1.0]))
Tensor([0.     0.7311], device=xpux:0)

gelu(x)
Compute `x` times its normal distribution function.
>>> megengine.functional.gelu(megengine.Tensor([0.0, 1.0]))
Tensor([0.     0.8413], device=xpux:0)

hsigmoid(x): multiply((x + 3.0).clip(0.0, 6.0), 1 / 6)
Compute `relu6(x + 3) / 6`.
>>> megengine.functional.hsigmoid(megengine.Tensor([0.0, 3.0]))
Tensor([0.5 1. ], device=xpux:0)

hswish(x): multiply(x * (x + 3.0).clip(0.0, 6.0), 1 / 6)
Compute `x * relu6(x + 3) / 6`.
>>> megengine.functional.hswish(megengine.Tensor([0.0, 3.0]))
Tensor([0. 3.], device=xpux:0)

prelu(x, y): where(x > 0, x, x * y)
Return elements, or `y` times those that are not positive.
>>> megengine.functional.prelu(megengine.Tensor([-1.0, 2.0]), megengine.Tensor(0.25))
Tensor([-0.25  2.  ], device=xpux:0)

leaky_relu(inp, negative_slope=0.01): where(inp > 0, inp, inp * negative_slope)
Return elements, or `negative_slope` times those that are not positive.
>>> megengine.functional.leaky_relu(megengine.Tensor([-1.0, 2.0]), 0.25)
Tensor([-0.25  2.  ], device=xpux:0)

softplus(inp)
Compute `log(1 + exp(inp))`.
>>> megengine.functional.softplus(megengine.Tensor([0.0]))
Tensor([0.6931], device=xpux:0)

logsigmoid(inp): negative((-inp).softplus())
Compute the logarithm of `sigmoid(inp)`.
>>> megengine.functional.logsigmoid(megengine.Tensor([0.0]))
Tensor([-0.6931], device=xpux:0)

logsoftmax(inp, axis): log_softmax(inp, axis=axis)
Compute the logarithm of `softmax`.
>>> megengine.functional.logsoftmax(megengine.Tensor([0.0, 0.0]), axis=0)
Tensor([-0.6931 -0.6931], device=xpux:0)

logsumexp(inp, axis, keepdims=False): logsumexp(inp, axis=axis, keepdims=keepdims)
Compute `log(sum(exp(inp)))` over `axis`.
>>> megengine.functional.logsumexp(megengine.Tensor([0.0, 0.0]), axis=0)
Tensor(0.6931472, device=xpux:0)

one_hot(inp, num_classes): one_hot(inp, num_classes, inp.dtype)
Encode integers as rows with a one at their position.
>>> megengine.functional.one_hot(megengine.tensor([1, 0]), 3)
Tensor([[0 1 0]
 [1 0 0]], dtype=int32, device=xpux:0)
"""

__all__ = [
    *define("megengine.functional", globals(), _ROWS, take_numbers),
    *loss.__all__,
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "avg_pool2d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dropout",
    "embedding",
    "general_norm",
    "group_norm",
    "indexing_one_hot",
    "instance_norm",
    "layer_norm",
    "linear",
    "local_response_norm",
    "max_pool2d",
    "normalize",
    "pad",
    "pixel_shuffle",
    "sliding_window",
    "sliding_window_transpose",
    "softmax",
    "sync_batch_norm",
]


def linear(inp: Any, weight: Any, bias: Any = None, compute_mode: str = "default") -> Any:
    """Compute `inp @ weight.T + bias`: the weight has shape (out_features, in_features).

    >>> F = megengine.functional
    >>> F.linear(F.ones((1, 2)), F.ones((3, 2)), F.ones(3))
    Tensor([[3. 3. 3.]], device=xpux:0)
    """
    if weight.ndim == 2:
        return pg.linear(inp, weight, bias, transposed=True)
    return pg.linear(inp, pg.transpose(weight), bias)


def softmax(inp: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Compute `exp(inp) / sum(exp(inp))` along `axis`: by default 0 for 0, 1 or 3 axes, else 1.

    >>> F = megengine.functional
    >>> F.softmax(F.zeros(2))
    Tensor([0.5 0.5], device=xpux:0)
    """
    if axis is None:
        axis = 0 if inp.ndim in (0, 1, 3) else 1
    return pg.softmax(inp, axis)


def dropout(inp: Any, drop_prob: float, training: bool = True) -> Any:
    """Set elements to zero with that probability, and scale the others, in training.

    >>> F = megengine.functional
    >>> F.dropout(F.ones(3), 0.5, training=False)
    Tensor([1. 1. 1.], device=xpux:0)
    """
    return pg.dropout(inp, next_key(), drop_prob, training=training)


def embedding(
    inp: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float | None = None,
) -> Any:
    """Return the row of `weight` for each index. Other options are errors, as in MegEngine.

    >>> F = megengine.functional
    >>> F.embedding(megengine.Tensor([1, 0]), megengine.Tensor([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([[3. 4.]
     [1. 2.]], device=xpux:0)
    """
    options = {"padding_idx": padding_idx, "max_norm": max_norm, "norm_type": norm_type}
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise OptionError(f"embedding: {given[0]} is not supported, as in MegEngine")
    return pg.embedding(inp, weight)


def indexing_one_hot(src: Any, index: Any, axis: int = 1, keepdims: bool = False) -> Any:
    """Take one element of `src` along `axis` for each of `index`, which lacks that axis.

    >>> F = megengine.functional
    >>> F.indexing_one_hot(megengine.Tensor([[1.0, 2.0]]), megengine.Tensor([1]))
    Tensor([2.], device=xpux:0)
    """
    places = pg.expand_dims(pg.astype(index, "int32"), axis)
    found = pg.take_along_axis(src, places, axis)
    return found if keepdims else pg.squeeze(found, axis)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
