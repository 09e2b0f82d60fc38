"""Initial values of parameters, set in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from primgraph.compat.absent import absent
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.inplace.in_place import change
from primgraph.eager.node import array_node
from primgraph.eager.seeds import reserve_generator
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.nn.scopes import computes_eagerly

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip


def _set(tensor: Any, array: Any) -> Any:
    """Let `tensor` have the elements of an array."""
    known = tensor.type
    found = np.asarray(array).astype(known.dtype)
    with no_grad():
        if found.shape == known.shape and computes_eagerly() and adopting.get() is None:
            return change(tensor, Tensor(array_node(found)))
        return tensor.copy_(found)


def _draws(generator: Any) -> np.random.Generator:
    """Return the generator to draw from."""
    if generator is None:
        return reserve_generator()()
    return cast("np.random.Generator", generator._streams.generator)


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor of standard deviations that a function behind a layer asks for.

    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ArgumentError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    linear = ("linear", "conv1d", "conv2d", "conv3d", "sigmoid")
    transposed = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
    gains = {**dict.fromkeys((*linear, *transposed), 1.0), "tanh": 5.0 / 3}
    gains |= {"relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Draw from the uniform distribution between `a` and `b`.

    >>> w = torch.nn.init.uniform_(torch.empty(100), 1.0, 2.0)
    >>> bool((w >= 1).all() and (w <= 2).all())
    True
    """
    return _set(tensor, _draws(generator).uniform(a, b, tuple(tensor.shape)))


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Draw from the normal distribution.

    >>> torch.nn.init.normal_(torch.empty(2), 3.0, 0.0)
    tensor([3., 3.])
    """
    return _set(tensor, _draws(generator).normal(mean, std, tuple(tensor.shape)))


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Draw from the normal distribution between `a` and `b`.

    >>> bool((torch.nn.init.trunc_normal_(torch.empty(100)).abs() <= 2).all())
    True
    """
    draws, shape = _draws(generator), tuple(tensor.shape)
    found = draws.normal(mean, std, shape)
    for _ in range(1000):
        outside = (found < a) | (found > b)
        if not outside.any():
            break
        found = np.where(outside, draws.normal(mean, std, shape), found)
    return _set(tensor, np.clip(found, a, b))


def constant_(tensor: Any, val: float) -> Any:
    """Set all elements to `val`.

    >>> torch.nn.init.constant_(torch.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return _set(tensor, np.full(tuple(tensor.shape), val))


def ones_(tensor: Any) -> Any:
    """Set all elements to one.

    >>> torch.nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Set all elements to zero.

    >>> torch.nn.init.zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Set a matrix to ones on its diagonal, and zeros elsewhere.

    >>> torch.nn.init.eye_(torch.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ArgumentError("Only tensors with 2 dimensions are supported")
    return _set(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Set the weight of a convolution to that of the identity.

    >>> torch.nn.init.dirac_(torch.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ArgumentError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs, *sizes = tensor.shape
    if outputs % groups:
        raise ArgumentError("dim 0 must be divisible by groups")
    found = np.zeros(tuple(tensor.shape))
    middle = tuple(n // 2 for n in sizes)
    for group in range(groups):
        for channel in range(min(outputs // groups, inputs)):
            found[(group * outputs // groups + channel, channel, *middle)] = 1
    return _set(tensor, found)


def _fans(tensor: Any) -> tuple[int, int]:
    """Return how many numbers an output is computed from, and how many an input goes into."""
    if tensor.ndim < 2:
        raise ArgumentError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draw uniform numbers of the variance `2 gain**2 / (fan_in + fan_out)`.

    >>> bool(torch.nn.init.xavier_uniform_(torch.empty(3, 3)).abs().max() <= 1)
    True
    """
    limit = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_fans(tensor)))
    return uniform_(tensor, -limit, limit, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draw normal numbers of the variance `2 gain**2 / (fan_in + fan_out)`.

    >>> torch.nn.init.xavier_normal_(torch.empty(3, 3)).shape
    torch.Size([3, 3])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _fan(tensor: Any, mode: str) -> int:
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ArgumentError(f"Mode {mode} not supported, please use one of {list(modes)}")
    return _fans(tensor)[modes.index(mode.lower())]


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    return _fan(tensor, mode)


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Draw uniform numbers of the variance `gain**2 / fan`.

    >>> bool(torch.nn.init.kaiming_uniform_(torch.empty(6, 6)).abs().max() <= 1)
    True
    """
    if 0 in tensor.shape:
        return tensor
    limit = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -limit, limit, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Draw normal numbers of the variance `gain**2 / fan`.

    >>> torch.nn.init.kaiming_normal_(torch.empty(3, 3)).shape
    torch.Size([3, 3])
    """
    if 0 in tensor.shape:
        return tensor
    spread = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return normal_(tensor, 0.0, spread, generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Set to an orthogonal matrix, of the first axis and all others, times `gain`.

    >>> w = torch.nn.init.orthogonal_(torch.empty(2, 2))
    >>> torch.allclose(w @ w.T, torch.eye(2), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ArgumentError("Only tensors with 2 or more dimensions are supported")
    shape = tuple(tensor.shape)
    if 0 in shape:
        return tensor
    rows, columns = shape[0], math.prod(shape[1:])
    flat = _draws(generator).normal(size=(rows, columns))
    q, r = np.linalg.qr(flat.T if rows < columns else flat)
    q = q * np.sign(np.diag(r))
    return _set(tensor, gain * (q.T if rows < columns else q).reshape(shape))


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Draw normal numbers, and set a share of each column to zero.

    >>> (torch.nn.init.sparse_(torch.empty(4, 2), 0.5) == 0).sum(0)
    tensor([2, 2])
    """
    if tensor.ndim != 2:
        raise ArgumentError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    draws = _draws(generator)
    found = draws.normal(0.0, std, (rows, columns))
    for column in range(columns):
        found[draws.permutation(rows)[: math.ceil(sparsity * rows)], column] = 0
    return _set(tensor, found)


def _old(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function by its old name, without the underscore."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__[:-1]
    call.__doc__ = f"Call `{function.__name__}`, the name since torch 0.4."
    return call


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    uniform_,
    normal_,
    constant_,
    xavier_uniform_,
    xavier_normal_,
    orthogonal_,
)
uniform, normal, constant, xavier_uniform, xavier_normal, orthogonal = [
    _old(function) for function in _FUNCTIONS
]
_OTHERS: tuple[Callable[..., Any], ...] = (kaiming_uniform_, kaiming_normal_, dirac_, eye_, sparse_)
kaiming_uniform, kaiming_normal, dirac, eye, sparse = [_old(function) for function in _OTHERS]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
