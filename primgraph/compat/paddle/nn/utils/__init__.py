"""Tools for parameters and weights by the names that they have in `paddle.nn.utils`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.parameter_attributes import ParamAttr
from primgraph.compat.paddle.initializers import Assign, Normal
from primgraph.compat.paddle.nn.layer.conv import Conv2DTranspose
from primgraph.compat.paddle.nn.layer.linear import Linear
from primgraph.compat.paddle.nn.layer.norm import divide_by_spectrum
from primgraph.compat.torch.nn.utils import clip_grad
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """Scale the gradients of parameters by one factor if their norm is above `max_norm`.

    Return the norm before.

    >>> layer = paddle.nn.Linear(1, 1, bias_attr=False)
    >>> layer(paddle.full([1, 1], 4.0)).backward()
    >>> paddle.nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item()
    4.0
    """
    return clip_grad.clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limit the elements of the gradients of parameters to [-clip_value, clip_value].

    >>> layer = paddle.nn.Linear(1, 1, bias_attr=False)
    >>> layer(paddle.full([1, 1], 4.0)).backward()
    >>> paddle.nn.utils.clip_grad_value_(layer.parameters(), 0.5)
    >>> layer.weight.grad.tolist()
    [[0.5]]
    """
    clip_grad.clip_grad_value_(parameters, clip_value)


def parameters_to_vector(parameters: Iterable[Any], name: str | None = None) -> Any:
    """Return the elements of all parameters as one vector.

    >>> layer = paddle.nn.Linear(2, 3)
    >>> paddle.nn.utils.parameters_to_vector(layer.parameters()).shape
    paddle.Size([9])
    """
    return pg.concatenate([pg.reshape(p, (-1,)) for p in parameters], 0)


def vector_to_parameters(vec: Any, parameters: Iterable[Any], name: str | None = None) -> None:
    """Store the elements of a vector in parameters, one after the other.

    >>> layer = paddle.nn.Linear(1, 2)
    >>> paddle.nn.utils.vector_to_parameters(paddle.ones([4]), layer.parameters())
    >>> layer.weight.tolist()
    [[1.0, 1.0]]
    """
    listed, place = list(parameters), 0
    count = sum(p.type.size for p in listed)
    if vec.type.size != count:
        raise ShapeError(f"a vector of {vec.type.size} elements does not fill {count}")
    with no_grad():
        for parameter in listed:
            size = parameter.type.size
            parameter.copy_(pg.reshape(vec[place : place + size], parameter.type.shape))
            place += size


def _norms(weight: Any, dim: int) -> Any:
    """Return the norm over all axes but one, or over all for -1."""
    if dim == -1:
        return pg.norm(pg.reshape(weight, (-1,)))
    return pg.norm(pg.reshape(pg.moveaxis(weight, dim, 0), (weight.type.shape[dim], -1)), 2, 1)


def _weight_of(direction: Any, norms: Any, dim: int) -> Any:
    """Return `direction` with other norms."""
    ratio = pg.divide(norms, _norms(direction, dim))
    if dim != -1:
        shape = [1] * direction.ndim
        shape[dim] = -1
        ratio = pg.reshape(ratio, tuple(shape))
    return pg.multiply(direction, ratio)


def weight_norm(layer: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Let a weight be computed from its norms `weight_g` and a direction `weight_v`.

    After T. Salimans and D. Kingma, Weight normalization, 2016.

    >>> layer = paddle.nn.utils.weight_norm(paddle.nn.Linear(2, 3))
    >>> sorted(n for n, _ in layer.named_parameters())
    ['bias', 'weight_g', 'weight_v']
    """
    weight = getattr(layer, name)
    axis = -1 if dim is None else dim
    if not -weight.ndim <= axis < weight.ndim:
        raise ArgumentError(f"dim must set between [-R, R), R means the dimension of weight: {dim}")
    axis = axis if axis == -1 else axis % weight.ndim
    del layer._parameters[name]
    norms = np.asarray(_norms(weight, axis))
    for ending, array in (("_g", norms), ("_v", weight.numpy())):
        made = layer.create_parameter(list(array.shape), Assign(array), weight.dtype)
        layer.add_parameter(name + ending, made)

    def compute(layer: Any, inputs: Any) -> None:
        found = _weight_of(getattr(layer, f"{name}_v"), getattr(layer, f"{name}_g"), axis)
        layer.__dict__[name] = found

    compute(layer, None)
    handle = layer.register_forward_pre_hook(compute)
    layer.__dict__.setdefault("_weight_norms", {})[name] = (handle, axis)
    return layer


def remove_weight_norm(layer: Any, name: str = "weight") -> Any:
    """Let a weight be a parameter again, after `weight_norm`.

    >>> layer = paddle.nn.utils.weight_norm(paddle.nn.Linear(2, 3))
    >>> sorted(n for n, _ in paddle.nn.utils.remove_weight_norm(layer).named_parameters())
    ['bias', 'weight']
    """
    known = layer.__dict__.get("_weight_norms", {})
    if name not in known:
        raise ArgumentError(f"weight_norm of '{name}' not found in {layer!r:.60}")
    handle, axis = known.pop(name)
    handle.remove()
    found = _weight_of(getattr(layer, f"{name}_v"), getattr(layer, f"{name}_g"), axis)
    layer.__dict__.pop(name, None)
    for ending in ("_g", "_v"):
        del layer._parameters[name + ending]
    array = found.numpy()
    made = layer.create_parameter(list(array.shape), Assign(array), found.dtype)
    layer.add_parameter(name, made)
    return layer


def spectral_norm(
    layer: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Let a weight be divided by an estimate of its largest singular value at each call.

    After T. Miyato et al., Spectral normalization for generative adversarial networks, 2018.

    >>> layer = paddle.nn.utils.spectral_norm(paddle.nn.Linear(2, 3))
    >>> layer(paddle.ones([1, 2])).shape
    paddle.Size([1, 3])
    """
    weight = getattr(layer, name)
    axis = dim
    if axis is None:
        axis = 1 if isinstance(layer, Linear | Conv2DTranspose) else 0
    height = weight.type.shape[axis]
    del layer._parameters[name]
    original = layer.create_parameter(
        list(weight.type.shape), ParamAttr(initializer=Assign(weight.numpy())), weight.dtype
    )
    layer.add_parameter(f"{name}_orig", original)
    for ending, size in (("_u", height), ("_v", weight.type.size // height)):
        vector = layer.create_parameter([size], Normal(0.0, 1.0), weight.dtype)
        layer.register_buffer(name + ending, pg.divide(vector, pg.norm(vector)).detach())

    def compute(layer: Any, inputs: Any) -> None:
        u, v = (getattr(layer, f"{name}{ending}") for ending in ("_u", "_v"))
        steps = n_power_iterations if layer.training else 0
        found, new_u, new_v = divide_by_spectrum(
            getattr(layer, f"{name}_orig"), u, v, axis, steps, eps
        )
        if steps:
            with no_grad():
                u.copy_(new_u)
                v.copy_(new_v)
        layer.__dict__[name] = found

    compute(layer, None)
    layer.register_forward_pre_hook(compute)
    return layer


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
