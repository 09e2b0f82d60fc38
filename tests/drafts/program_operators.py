"""User-level operators of random programs: one row an operator, on operands at hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from program_draft import BOOL, I64, Draft, Unfit

import primgraph.operators as op
from primgraph import linalg
from primgraph.api.derivatives.jets import jet
from primgraph.derivatives import jets
from primgraph.derivatives.grad import forward_grad
from primgraph.derivatives.partials import partials
from primgraph.ir.types import TensorType
from primgraph.operators.linear_algebra import matrices
from primgraph.operators.variable import Variable

Row = Callable[[Draft], Variable | list[Variable]]

OPERATORS: list[Row] = []


def _any(draft: Draft, kinds: str = "biuf", rank: int = 0) -> Variable:
    return draft.variable(draft.pick(kinds, rank=rank))


def _shaped(draft: Draft, like: Variable, shape: tuple[int, ...]) -> Variable:
    return draft.variable(draft.typed(TensorType(shape, like.dtype)))


def _axis(draft: Draft, x: Variable) -> Any:
    """None, one axis or several, counted from either end; none of them empty."""
    if draft.chance(0.3) or x.ndim == 0:
        return None
    axes = tuple(a - x.ndim * draft.chance(0.3) for a in draft.subset(x.ndim, least=1))
    return axes if draft.chance(0.5) else axes[0]


def _one(draft: Draft, x: Variable) -> int:
    if x.ndim == 0:
        raise Unfit
    return draft.below(x.ndim, -x.ndim)


def _partner(draft: Draft, x: Variable) -> Any:
    """A second operand: of the same type, of one that broadcasts, of another dtype, a scalar."""
    kind = draft.below(4)
    if kind == 0:
        return x
    if kind == 1:
        return draft.choose((0, 1, -1, 2, 0.5, -0.0, 3.0))
    shape = tuple(1 if draft.chance(0.3) else n for n in x.shape)[draft.below(x.ndim + 1) :]
    y = _shaped(draft, x, shape)
    return y if kind == 2 else draft.variable(draft.converted(y.value, draft.dtype()))


def _unary(*functions: Callable[..., Variable], kinds: str = "f") -> None:
    OPERATORS.append(lambda draft: draft.choose(functions)(_any(draft, kinds)))


def _binary(*functions: Callable[..., Variable], kinds: str = "iuf") -> None:
    def row(draft: Draft) -> Variable:
        x = _any(draft, kinds)
        pair = (x, _partner(draft, x))
        return draft.choose(functions)(*(pair[::-1] if draft.chance(0.3) else pair))

    OPERATORS.append(row)


def _over_axes(*functions: Callable[..., Variable], kinds: str = "f") -> None:
    def row(draft: Draft) -> Variable:
        x = _any(draft, kinds)
        keep = draft.chance(0.3)
        return draft.choose(functions)(x, axis=_axis(draft, x), keepdims=keep)

    OPERATORS.append(row)


def _along(*functions: Callable[..., Variable], kinds: str = "f") -> None:
    def row(draft: Draft) -> Variable:
        x = _any(draft, kinds, rank=1)
        return draft.choose(functions)(x, _one(draft, x))

    OPERATORS.append(row)


_unary(op.relu, op.silu, op.gelu, op.softplus, op.relu)
_unary(op.square, op.exp2, op.tanh, op.sigmoid, op.isnan, op.isinf, op.isfinite)
_unary(op.log2, op.log10, op.reciprocal)
_unary(op.flatten, op.transpose, op.negative, op.stop_gradient, op.assign, kinds="iuf")
_unary(op.abs, op.floor, op.ceil, op.round, op.sin, op.logical_not, kinds="biuf")
_binary(op.add, op.subtract, op.multiply, op.maximum, op.minimum)
_binary(op.add, op.multiply, op.divide, op.logaddexp, op.arctan2, op.remainder)
_binary(op.equal, op.less, op.greater_equal, op.logical_and, op.logical_or, kinds="biuf")
_over_axes(op.sum, op.mean, op.var, op.std, op.norm, op.logsumexp)
_over_axes(op.sum, op.prod, op.max, op.min, op.any, op.all, op.count_nonzero, kinds="biuf")
_over_axes(op.mean, op.norm, op.logsumexp)
_along(op.softmax, op.log_softmax)
_along(op.cumsum, op.argmax, op.flip, op.expand_dims, kinds="biuf")


def row(function: Row) -> Row:
    OPERATORS.append(function)
    return function


@row
def clip(draft: Draft) -> Variable:
    x = _any(draft, "iuf")
    low, high = sorted(draft.choose((-2, -1, 0, 1, 2, 3)) for _ in range(2))
    bounds = (max(low, 0), max(high, 0)) if x.dtype.kind == "u" else (low, high)
    if draft.chance(0.3):
        return op.clip(x, min=_partner(draft, x))
    return op.clip(x, *bounds) if draft.chance(0.6) else op.clip(x, max=bounds[1])


@row
def normalized(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=1)
    axis = _one(draft, x)
    weight, bias = (_shaped(draft, x, (x.shape[axis],)) for _ in range(2))
    if draft.chance(0.5):
        return op.layer_norm(x, weight, bias, axis=axis)
    return op.batch_norm(x, weight=weight, bias=bias, axis=axis)


@row
def scale(draft: Draft) -> Variable:
    x = _any(draft, "f")
    return op.scale(x, scale=_partner(draft, x), bias=0.5, bias_after_scale=draft.chance(0.5))


@row
def power(draft: Draft) -> Variable:
    x = _any(draft, "f")
    return op.power(x, draft.choose((0, 1, 2, 3, -1, 2.0, 0.5, 1.7)))


@row
def where(draft: Draft) -> Variable:
    x = _any(draft)
    condition = draft.variable(draft.typed(TensorType(x.shape, BOOL)))
    return op.where(condition, x, _partner(draft, x))


@row
def where_of_logarithm(draft: Draft) -> Variable:
    x = _any(draft, "f")
    function = draft.choose((op.log, op.sqrt, op.rsqrt))
    return op.where(x > 0.01, function(x), _partner(draft, x) if draft.chance(0.5) else 0.0)


@row
def matmul(draft: Draft) -> Variable:
    x = _any(draft, "iuf", rank=1)
    if draft.chance(0.4):
        return op.matmul(x, _shaped(draft, x, (x.shape[-1],)))
    lead = x.shape[:-2] if draft.chance(0.3) else ()
    return op.matmul(x, _shaped(draft, x, (*lead, x.shape[-1], draft.below(4, 1))))


@row
def products(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=1)
    y = _shaped(draft, x, x.shape)
    kind = draft.below(4)
    if kind == 0 and x.size <= 15:
        return op.outer(x, y)
    if kind == 1:
        return op.inner(x, y)
    if kind == 2:
        axis = _one(draft, x)
        if (x.size // max(x.shape[axis], 1)) ** 2 > 200:
            raise Unfit
        return op.tensordot(x, y, axes=([axis], [axis]))
    return op.linear(x, _shaped(draft, x, (x.shape[-1], 2)), _shaped(draft, x, (2,)))


@row
def sums_of_products(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=2)
    if x.ndim != 2:
        raise Unfit
    n = draft.below(4, 1)
    parts = [op.matmul(x, _shaped(draft, x, (x.shape[1], n)))]
    for _ in range(draft.below(3, 1)):
        k = draft.below(4, 1)
        parts.append(op.matmul(_shaped(draft, x, (x.shape[0], k)), _shaped(draft, x, (k, n))))
    return sum(parts[1:], parts[0])


@row
def einsum(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=2)
    if x.ndim != 2:
        raise Unfit
    if draft.chance(0.4):
        other = tuple(draft.below(4) for _ in range(2))
        text = draft.choose(("ij,kl->", "ij,kl->ji", "ij,kl->l", "ij,kl->jk"))
        return op.einsum(text, x, _shaped(draft, x, other))
    text = draft.choose(("ij,ij->", "ij,ij->i", "ij,ij->ji", "ij,kj->ik", "ij,ij->j"))
    return op.einsum(text, x, _shaped(draft, x, x.shape))


@row
def join(draft: Draft) -> Variable:
    x = _any(draft)
    y = _shaped(draft, x, x.shape)
    if draft.chance(0.5) or x.ndim == 0:
        return op.stack([x, y, x][: draft.below(4, 1)], axis=draft.below(x.ndim + 1))
    return op.concatenate([y, x, x][: draft.below(4, 1)], axis=_one(draft, x))


@row
def frames(draft: Draft) -> Variable:
    x = _any(draft, rank=1)
    mode = draft.choose(("constant", "edge", "reflect", "symmetric", "wrap"))
    widths = [(draft.below(2), draft.below(3)) for _ in x.shape]
    if mode != "constant" and any(n == 0 and any(w) for n, w in zip(x.shape, widths, strict=True)):
        # NumPy refuses to repeat elements of an axis that has none.
        raise Unfit
    return op.pad(x, widths, mode=mode)


@row
def repeats(draft: Draft) -> Variable:
    x = _any(draft, rank=1)
    kind = draft.below(3)
    if kind == 0:
        return op.tile(x, draft.choose((1, 2, (2, 1))))
    if kind == 1:
        return op.repeat(x, draft.below(3), axis=_one(draft, x))
    return op.roll(x, draft.below(6, -5), axis=_one(draft, x) if draft.chance(0.7) else None)


@row
def subscripts(draft: Draft) -> Variable:
    x = _any(draft, rank=1)
    n = x.shape[0]
    if n == 0:
        return x[..., ::-1]
    places = draft.rng.integers(-n, n, draft.shape(highest=2))
    entry = draft.choose((places, slice(None, None, -1), slice(1, None), draft.below(n, -n), None))
    return x[entry] if draft.chance(0.6) else x[entry, ...]


@row
def taken(draft: Draft) -> Variable:
    x = _any(draft, rank=1)
    axis = _one(draft, x)
    n = x.shape[axis]
    if n == 0:
        raise Unfit
    indices = op.remainder(draft.variable(draft.typed(TensorType((3,), I64))), n)
    return op.take(x, indices, axis=axis)


@row
def replaced(draft: Draft) -> Variable:
    x = _any(draft, rank=1)
    stop = draft.below(x.shape[0] + 1)
    return op.set_slice(x, slice(0, stop), _shaped(draft, x, (stop, *x.shape[1:])))


@row
def dynamic_slice(draft: Draft) -> Variable:
    """A slice that begins at a number of the program, read or set."""
    x = _any(draft, "iuf", rank=1)
    extent = x.shape[0]
    if not isinstance(extent, int) or extent == 0:
        raise Unfit
    count = draft.below(extent + 1, 1)
    given = draft.typed(TensorType((), draft.choose((I64, np.dtype(np.int32)))))
    start = draft.variable(draft.bounded(given, 0, extent - count))
    begin = start + 1
    # Elements are set at such places only in arrays whose size is known.
    if draft.chance(0.6) or not all(isinstance(n, int) for n in x.shape):
        return x[begin - 1 : begin + (count - 1)]
    part = _shaped(draft, x, (count, *x.shape[1:]))
    return op.set_slice(x, slice(start, start + count), part)


@row
def other_norm(draft: Draft) -> Variable:
    """A norm of vectors of another order than 2, or one of matrices without singular values."""
    x = _any(draft, "f", rank=1)
    if x.ndim > 1 and draft.chance(0.5):
        axes = tuple(draft.order(x.ndim)[:2])
        order = draft.choose((1, -1, math.inf, -math.inf, "fro"))
    else:
        axes, order = draft.below(x.ndim), draft.choose((1, 3, math.inf))
    if 0 in draft.at(x.shape):
        raise Unfit
    return op.norm(x, order, axes, draft.chance(0.3))


@row
def parts(draft: Draft) -> list[Variable]:
    x = _any(draft, rank=1)
    axis = _one(draft, x)
    return list(op.split(x, [draft.below(x.shape[axis] + 1)], axis=axis))


@row
def triangles(draft: Draft) -> Variable:
    x = _any(draft, rank=2)
    kind = draft.below(4)
    if kind == 3:
        return op.diagonal(x, offset=draft.below(3, -2))
    if kind == 2:
        return op.swapaxes(x, 0, -1)
    return (op.tril, op.triu)[kind](x, draft.below(2, -1))


@row
def losses(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=1)
    reduction = draft.choose(("mean", "sum", "none"))
    if draft.chance(0.5) or not x.shape[-1]:
        return op.mse_loss(x, _shaped(draft, x, x.shape), reduction=reduction)
    places = np.asarray(draft.rng.integers(0, x.shape[-1], x.shape[:-1]))
    return op.cross_entropy(x, op.array(places), reduction=reduction)


@row
def coded(draft: Draft) -> Variable:
    depth = draft.below(4, 1)
    places = draft.rng.integers(0, depth, draft.shape(highest=2))
    return op.one_hot(op.array(np.asarray(places)), depth)


@row
def dropped_out(draft: Draft) -> Variable:
    x = _any(draft, "f")
    return op.dropout(x, draft.below(1000), rate=0.3)


def _as_images(draft: Draft, x: Variable, count: int) -> Variable:
    """The last axes as those that windows slide over, the others as samples of some channels."""
    shape, lead = x.shape[-count:], 1
    for extent in x.shape[:-count]:
        lead = lead * extent
    channels = 2 if type(lead) is int and lead % 2 == 0 and lead and draft.chance(0.5) else 1
    return op.reshape(x, (lead // channels, channels, *shape))


def _window(draft: Draft, x: Variable, count: int) -> tuple[tuple[int, ...], int]:
    """Sizes that fit, and a padding: one by which they fit where extents are not known."""
    sizes = tuple(draft.below(4, 1) for _ in range(count))
    known = all(type(n) is int for n in x.shape[-count:])
    least = 3 if not known or min(x.shape[-count:]) < max(sizes) else 0
    return sizes, least + draft.below(2)


@row
def convolved(draft: Draft) -> Variable:
    x = _any(draft, "iuf", rank=1)
    count = draft.below(min(x.ndim, 2) + 1, 1)
    x = _as_images(draft, x, count)
    channels = x.shape[1]
    sizes, padding = _window(draft, x, count)
    options: dict[str, Any] = {"stride": draft.below(3, 1), "dilation": 1}
    groups = channels if draft.chance(0.4) else 1
    if draft.chance(0.4):
        weight = _shaped(draft, x, (channels, 2, *sizes))
        function = op.conv_transpose1d if count == 1 else op.conv_transpose2d
        return function(x, weight, groups=groups, **options)
    if padding >= 3:
        options["dilation"] = draft.below(3, 1)
    weight = _shaped(draft, x, (2 * channels, channels // groups, *sizes))
    bias = _shaped(draft, x, (2 * channels,)) if draft.chance(0.5) else None
    function = op.conv1d if count == 1 else op.conv2d
    return function(x, weight, bias, padding=padding, groups=groups, **options)


@row
def pooled(draft: Draft) -> Variable:
    x = _any(draft, "iuf", rank=1)
    count = draft.below(min(x.ndim, 2) + 1, 1)
    x = _as_images(draft, x, count)
    if not all(type(n) is int and n > 1 for n in x.shape[2:]):
        raise Unfit
    sizes = tuple(draft.below(min(n, 3) + 1, 1) for n in x.shape[2:])
    options: dict[str, Any] = {"stride": draft.choose((None, 1, 2)), "ceil_mode": draft.chance(0.3)}
    if draft.chance(0.3) and min(sizes) > 1:
        options["padding"] = 1
    if draft.chance(0.5):
        return (op.max_pool1d if count == 1 else op.max_pool2d)(x, sizes, **options)
    if draft.chance(0.3):
        return (op.adaptive_avg_pool1d if count == 1 else op.adaptive_avg_pool2d)(x, 2)
    options["count_include_pad"] = draft.chance(0.5)
    return (op.avg_pool1d if count == 1 else op.avg_pool2d)(x, sizes, **options)


@row
def attended(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=2)
    query = _shaped(draft, x, (3, x.shape[-1])) if draft.chance(0.5) else x
    options: dict[str, Any] = {"is_causal": draft.chance(0.4)}
    value = _shaped(draft, x, (*x.shape[:-1], 2))
    return op.scaled_dot_product_attention(query, x, value, **options)


@row
def normalized_otherwise(draft: Draft) -> Variable:
    x = _any(draft, "f", rank=1)
    if draft.chance(0.5):
        return op.rms_norm(x, axis=_one(draft, x), eps=1e-3)
    images = _as_images(draft, x, 1)
    if draft.chance(0.5):
        return op.instance_norm(images, eps=1e-3)
    return op.group_norm(images, images.shape[1], eps=1e-3)


@row
def of_matrices(draft: Draft) -> Variable:
    """Linear algebra of matrices near the identity, whatever the numbers are that they are of."""
    x = _any(draft, "f")
    if x.dtype == np.float16:
        raise Unfit
    n = 1 + draft.below(3)
    given = _shaped(draft, x, (n, n))
    part = op.where(op.isfinite(given), op.tanh(given), 0.25) / (2.0 * n)
    matrix = part + op.eye(n, dtype=x.dtype)
    kind = draft.below(6)
    if kind < 3:
        side = _shaped(draft, x, (n, 1 + draft.below(3)))
        side = op.where(op.isfinite(side), op.tanh(side), 0.5)
        if kind == 0:
            return linalg.solve(matrix, side)
        if kind == 1:
            return linalg.inv(matrix) @ side
        return linalg.solve(linalg.cholesky(matrix @ matrix.T), side)
    if kind == 3:
        return linalg.cholesky(matrices.assume(matrix @ matrix.T, "positive_definite"))
    return linalg.det(matrix) if kind == 4 else linalg.expm(part)


def _smooth(draft: Draft, x: Variable) -> Variable:
    """What has derivatives of all orders, whatever the numbers in `x` are."""
    kind = draft.below(5)
    if kind == 0:
        return op.tanh(x) * x
    if kind == 1:
        return op.sin(x) / (1.5 + op.tanh(x))
    if kind == 2:
        return op.sqrt(1.0 + op.square(op.tanh(x))) * op.exp(op.tanh(x))
    if kind == 3 and x.ndim:
        return op.softmax(op.tanh(x), axis=_one(draft, x)) * x
    return op.sigmoid(x) * op.sum(op.cos(x))


# A program of its own now and then: what random_programs adds to what rows and productions made.
def of_high_order(draft: Draft) -> Variable:
    """A derivative of order two or three, taken at once."""
    x = _any(draft, "f")
    if x.dtype == np.float16 or x.recorder is not draft.builder:
        raise Unfit
    order = 2 + draft.below(2)
    kind = draft.below(4)
    if kind == 0:
        return jets.taylor(_smooth(draft, x), x, order, _shaped(draft, x, x.shape))[
            draft.below(order + 1)
        ]
    if kind == 1:
        return forward_grad(_smooth(draft, x), x, order=order)
    if kind == 2:
        given = [_shaped(draft, x, x.shape) if draft.chance(0.6) else None for _ in range(order)]
        return jet(lambda z: _smooth(draft, z), x, given)[1][order - 1]
    if type(x.size) is not int or not 0 < x.size <= 3:
        raise Unfit
    few = op.reshape(x, (x.size,))
    steps = draft.rng.integers(x.size, size=order)
    index = tuple(np.bincount(steps, minlength=x.size).tolist())
    return partials(_smooth(draft, few), few, [index])[0]
