"""Normalizations, which `megengine.functional.nn` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph import operators as pg
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, OptionError, ShapeError


def batch_norm(
    inp: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    *,
    training: bool = False,
    momentum: float = 0.9,
    eps: float = 1e-5,
    inplace: bool = True,
) -> Any:
    """Normalize each channel, axis 1, to mean 0 and variance 1; then apply weight and bias.

    In training the statistics are those of the batch, and running ones, if given, keep the share
    `momentum` of what they were; else the running ones are used. Variances of the running one have
    the divisor n - 1. Without `inplace` the result is a tuple with new running ones. Weights and
    statistics have one element for each channel, in any shape.

    >>> F = megengine.functional
    >>> F.nn.batch_norm(megengine.Tensor([[1.0], [3.0]]), training=True)
    Tensor([[-1.]
     [ 1.]], device=xpux:0)
    """
    states = (running_mean, running_var)
    mean, var = (None if x is None else pg.reshape(x, -1) for x in states)
    scale, shift = (None if x is None else pg.reshape(x, -1) for x in (weight, bias))
    if not training:
        if mean is None or var is None:
            raise ArgumentError("batch_norm: running_mean and running_var are for inference")
        return pg.batch_norm(inp, mean, var, scale, shift, eps=eps)
    found = pg.batch_norm(inp, None, None, scale, shift, eps=eps, training=True)
    if running_mean is None and running_var is None:
        return found
    axes = tuple(i for i in range(inp.ndim) if i != 1)
    with no_grad():
        known = inp.detach()
        count = known.size // known.shape[1]
        fresh = pg.mean(known, axes), pg.var(known, axes, ddof=min(1, count - 1))
        updated = [
            None if old is None else old * momentum + pg.reshape(new, old.shape) * (1 - momentum)
            for old, new in zip(states, fresh, strict=True)
        ]
        if not inplace:
            return found, *updated
        for old, new in zip(states, updated, strict=True):
            if old is not None:
                old[...] = new
    return found


def sync_batch_norm(
    inp: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.9,
    eps: float = 1e-5,
    eps_mode: str = "additive",
    group: Any = None,
) -> Any:
    """Compute `batch_norm`: there is one process.

    >>> F = megengine.functional
    >>> x = megengine.Tensor([[1.0], [3.0]])
    >>> F.nn.sync_batch_norm(x, F.zeros(1), F.ones(1), training=True)
    Tensor([[-1.]
     [ 1.]], device=xpux:0)
    """
    if eps_mode.lower() != "additive":
        raise OptionError(f"sync_batch_norm: eps_mode is 'additive', not {eps_mode!r:.60}")
    options: dict[str, Any] = {"training": training, "momentum": momentum, "eps": eps}
    return batch_norm(inp, running_mean, running_var, weight, bias, **options)


def layer_norm(
    inp: Any,
    normalized_shape: int | Sequence[int],
    affine: bool,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize over the last axes, as many as `normalized_shape` has; `affine`: apply weights.

    >>> F = megengine.functional
    >>> F.nn.layer_norm(megengine.Tensor([[1.0, 3.0]]), (2,), False)
    Tensor([[-1.  1.]], device=xpux:0)
    """
    wanted = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(inp.shape[-len(wanted) :]) != wanted:
        raise ShapeError(f"layer_norm: {wanted} is not the end of {inp.shape}")
    scale, shift = _affine("layer_norm", affine, weight, bias)
    return pg.layer_norm(inp, scale, shift, tuple(range(-len(wanted), 0)), eps)


def general_norm(
    inp: Any,
    normalized_axis: int | Sequence[int],
    affine: bool = True,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize over any axes, in ascending order; weights have the extents of these.

    >>> F = megengine.functional
    >>> F.nn.general_norm(megengine.Tensor([[1.0], [3.0]]), 0, False)
    Tensor([[-1.]
     [ 1.]], device=xpux:0)
    """
    given = [normalized_axis] if isinstance(normalized_axis, int) else list(normalized_axis)
    axes = [axis % inp.ndim for axis in given]
    if not axes or axes != sorted(set(axes)):
        raise ArgumentError(f"general_norm: axes {given} are in ascending order, each once")
    scale, shift = _affine("general_norm", affine, weight, bias)
    found = pg.layer_norm(inp, None, None, tuple(axes), eps)
    shape = [n if axis in axes else 1 for axis, n in enumerate(inp.shape)]
    if scale is not None:
        found = found * pg.reshape(scale, shape) + pg.reshape(shift, shape)
    return found


def group_norm(
    inp: Any,
    num_groups: int,
    affine: bool,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize each group of channels of each sample; `affine`: apply weight and bias.

    >>> F = megengine.functional
    >>> F.nn.group_norm(megengine.Tensor([[1.0, 3.0]]), 1, False)
    Tensor([[-1.  1.]], device=xpux:0)
    """
    scale, shift = _affine("group_norm", affine, weight, bias)
    return pg.group_norm(inp, num_groups, scale, shift, eps)


def instance_norm(
    inp: Any, affine: bool, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalize each channel of each sample; `affine`: apply weight and bias.

    >>> F = megengine.functional
    >>> F.nn.instance_norm(megengine.Tensor([[[1.0, 3.0]]]), False)
    Tensor([[[-1.  1.]]], device=xpux:0)
    """
    scale, shift = _affine("instance_norm", affine, weight, bias)
    return pg.instance_norm(inp, scale, shift, eps)


def local_response_norm(
    inp: Any, kernel_size: int = 5, k: float = 2.0, alpha: float = 1e-4, beta: float = 0.75
) -> Any:
    """Divide by `(k + alpha * s) ** beta`, with the sum s of squares of neighbouring channels.

    >>> F = megengine.functional
    >>> F.nn.local_response_norm(F.ones((1, 2, 1, 1)), 3, 1.0, 1.0, 1.0).flatten()
    Tensor([0.3333 0.3333], device=xpux:0)
    """
    if kernel_size % 2 == 0:
        raise ArgumentError(f"local_response_norm: kernel_size is odd, not {kernel_size}")
    pairs = [(0, 0)] * inp.ndim
    pairs[1] = (kernel_size // 2, kernel_size // 2)
    squares = pg.pad(inp * inp, pairs)
    sums = pg.add_n([squares[:, i : i + inp.shape[1]] for i in range(kernel_size)])
    return inp / (sums * alpha + k) ** beta


def _affine(name: str, affine: bool, weight: Any, bias: Any) -> tuple[Any, Any]:
    """The weights if `affine`, which are then required, as in MegEngine."""
    if not affine:
        return None, None
    if weight is None or bias is None:
        raise ArgumentError(f"{name}: weight and bias must be provided if affine is True")
    return weight, bias
