"""Functions of tensors that return other objects, or take other arguments first."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.framework import paddles
from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle

Name = str | None

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "abs": pg.abs,
    "cos": pg.cos,
    "exp": pg.exp,
    "gelu": pg.gelu,
    "log": pg.log,
    "reciprocal": pg.reciprocal,
    "relu": pg.relu,
    "rsqrt": pg.rsqrt,
    "sigmoid": pg.sigmoid,
    "silu": pg.silu,
    "sin": pg.sin,
    "softmax": pg.softmax,
    "softplus": pg.softplus,
    "sqrt": pg.sqrt,
    "square": pg.square,
    "swish": pg.silu,
    "tanh": pg.tanh,
}

__all__ = [
    "broadcast_shape",
    "broadcast_shapes",
    "einsum",
    "finfo",
    "histogramdd",
    "iinfo",
    "is_complex",
    "is_empty",
    "is_floating_point",
    "is_integer",
    "is_tensor",
    "scale",
    "softmax",
    "tolist",
]


@paddles
def scale(
    x: Any,
    scale: Any = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: Name = None,
) -> Any:
    """Compute `scale * x + bias`, or `scale * (x + bias)` if `bias_after_scale` is False.

    `act` is the name of a function to apply: relu, sigmoid, tanh and others. Raises
    `ArgumentError` for an unknown name.

    >>> paddle.scale(paddle.to_tensor([1.0, 2.0]), 2.0, bias=-3.0, act="relu").tolist()
    [0.0, 1.0]
    """
    result = pg.scale(x, scale, bias, bias_after_scale)
    if act is None:
        return pg.astype(result, x.dtype) if isinstance(x, Handle) else result
    if act not in _ACTIVATIONS:
        listed = ", ".join(_ACTIVATIONS)
        raise ArgumentError(f"scale has no act {act!r:.60}", hint=f"there are {listed}")
    return _ACTIVATIONS[act](result)


@paddles
def einsum(equation: str, *operands: Any) -> Any:
    """Compute sums of products by an equation of subscripts.

    >>> x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> paddle.einsum("ij->j", x).tolist()
    [4.0, 6.0]
    """
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list) else operands
    return pg.einsum(equation, *given)


@paddles
def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """Compute `exp(x) / sum(exp(x))` along an axis.

    >>> paddle.softmax(paddle.zeros([2]), 0).tolist()
    [0.5, 0.5]
    """
    return pg.softmax(input if dtype is None else pg.cast(input, dtype), -1 if dim is None else dim)


@paddles
def histogramdd(
    x: Any,
    bins: Any = 10,
    ranges: Any = None,
    density: bool = False,
    weights: Any = None,
    name: Name = None,
) -> Any:
    """Count points in boxes; return the counts and the ends of the intervals of each axis.

    >>> counts, edges = paddle.histogramdd(paddle.to_tensor([[0.0, 0.0], [1.0, 1.0]]), bins=[2, 2])
    >>> counts.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    pairs = None if ranges is None else list(zip(ranges[::2], ranges[1::2], strict=True))
    counts, edges = pg.histogramdd(pg.stop_gradient(x), bins, pairs, density, weights)
    return pg.astype(counts, x.dtype), [pg.astype(e, x.dtype) for e in edges]


def broadcast_shape(x_shape: Any, y_shape: Any) -> list[int]:
    """Return the shape of arrays of these shapes that are broadcast.

    >>> paddle.broadcast_shape([2, 1], [3])
    [2, 3]
    """
    return list(np.broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def broadcast_shapes(*shapes: Any) -> list[int]:
    """Return the shape of arrays of these shapes that are broadcast.

    >>> paddle.broadcast_shapes([2, 1], [3])
    [2, 3]
    """
    return list(np.broadcast_shapes(*map(tuple, shapes)))


def is_tensor(x: Any) -> bool:
    """Return whether `x` is a tensor, or a variable of a program.

    >>> paddle.is_tensor(paddle.ones([2]))
    True
    """
    return isinstance(x, Handle)


def is_complex(x: Any) -> bool:
    """Return whether the elements are complex.

    >>> paddle.is_complex(paddle.ones([2]))
    False
    """
    return bool(_tensor(x).dtype.kind == "c")


def is_floating_point(x: Any) -> bool:
    """Return whether the elements are floats.

    >>> paddle.is_floating_point(paddle.ones([2]))
    True
    """
    return bool(_tensor(x).dtype.kind == "f")


def is_integer(x: Any) -> bool:
    """Return whether the elements are integers.

    >>> paddle.is_integer(paddle.ones([2]))
    False
    """
    return bool(_tensor(x).dtype.kind in "iu")


def _tensor(x: Any) -> Any:
    if not isinstance(x, Handle):
        raise ArgumentError(f"expected a tensor, not {type(x).__name__}")
    return x


@paddles
def is_empty(x: Any, name: Name = None) -> Any:
    """Return whether there are no elements.

    >>> paddle.is_empty(paddle.ones([0])).item()
    True
    """
    return pg.asarray(x.type.size == 0)


def tolist(x: Any) -> Any:
    """Return the elements as nested lists of Python numbers.

    >>> paddle.tolist(paddle.ones([2]))
    [1.0, 1.0]
    """
    return x.tolist()


def iinfo(dtype: Any) -> Any:
    """Return the limits of an integer dtype: `min`, `max` and `bits`.

    >>> paddle.iinfo("int32").max
    2147483647
    """
    found = np.iinfo(as_dtype(dtype))
    return SimpleNamespace(min=found.min, max=found.max, bits=found.bits, dtype=str(found.dtype))


def finfo(dtype: Any) -> Any:
    """Return the limits of a float dtype: `min`, `max`, `eps` and others.

    >>> paddle.finfo("float32").bits
    32
    """
    found = np.finfo(as_dtype(dtype))
    names = ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
    floats = {name: float(getattr(found, name)) for name in names}
    return SimpleNamespace(**floats, bits=found.bits, dtype=str(found.dtype))
