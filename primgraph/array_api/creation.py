"""Arrays that are made of numbers, by the names of the standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as ops
from primgraph.array_api.types import require_cpu
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle
from primgraph.operators.variable import handles

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _number(given: Any) -> Any:
    """The number in a tensor without axes; any other number as it is."""
    return given.item() if isinstance(given, Tensor) else given


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """Return numbers from `start`, or from 0 to it without a `stop`, `step` apart.

    >>> xp.arange(1, 7, 2)
    tensor([1, 3, 5], dtype=int64)
    """
    require_cpu(device)
    first, last = (0, start) if stop is None else (start, stop)
    given: Any = (_number(first), _number(last), _number(step))
    return ops.array(np.arange(*given, dtype=dtype))


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """Return `obj`, a number, nested lists of numbers or an array, as an array.

    With `copy=False` it is an array that exists. Raises `ValueError` where it cannot be.

    >>> xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float32)
    tensor([[1., 2.],
            [3., 4.]], dtype=float32)
    """
    require_cpu(device)
    if isinstance(obj, Handle):
        if dtype is None or obj.dtype == dtype:
            return _copy_array(obj) if copy else obj
        _require_copy(copy)
        return ops.astype(obj, dtype)
    _require_copy(copy)
    return ops.array(obj, dtype) if handles((obj,)) else ops.array(np.array(obj, dtype))


def _copy_array(x: Handle) -> Any:
    """An array of its own, which may be assigned to."""
    return x.clone() if isinstance(x, Tensor) else ops.assign(x)


def _require_copy(copy: Any) -> None:
    if copy is False:
        raise ArgumentError("asarray makes another array here, which copy=False refuses")


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array whose elements may be any; they are zeros.

    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of the shape of `x` whose elements may be any; they are zeros.

    >>> xp.empty_like(xp.ones((2, 3))).shape
    (2, 3)
    """
    return zeros_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Return a matrix with ones on its diagonal `k`, and zeros elsewhere.

    >>> xp.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    require_cpu(device)
    return ops.array(np.eye(n_rows, n_cols, k, _or_default(dtype)))


def _or_default(dtype: Any) -> Any:
    return ops.zeros(()).dtype if dtype is None else dtype


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """Return an array with copies of the elements of another library's array.

    >>> xp.from_dlpack(np.array([1.0, 2.0]))
    tensor([1., 2.])
    """
    require_cpu(device)
    if isinstance(x, Handle):
        return _copy_array(x)
    return ops.array(np.from_dlpack(x))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array with all elements equal to `fill_value`.

    >>> xp.full((2,), 0.5)
    tensor([0.5, 0.5])
    """
    require_cpu(device)
    if isinstance(fill_value, Handle):
        found = fill_value if dtype is None else ops.astype(fill_value, dtype)
        return ops.broadcast_to(found, shape)
    if dtype is None:
        is_float = isinstance(fill_value, float)
        dtype = _or_default(None) if is_float else np.array(fill_value).dtype
    return ops.full(shape, fill_value, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of the shape of `x` with all elements equal to `fill_value`.

    >>> xp.full_like(xp.ones(2), 0.5)
    tensor([0.5, 0.5])
    """
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: Any = True,
) -> Any:  # fmt: skip
    """Return `num` evenly spaced numbers from `start` to `stop`, exclusive unless `endpoint`.

    >>> xp.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    require_cpu(device)
    ends = _number(start), _number(stop)
    return ops.array(np.linspace(*ends, num, dtype=_or_default(dtype), endpoint=endpoint))


def meshgrid(*arrays: Any, indexing: Any = "xy") -> Any:
    """Return the coordinates of a grid, an array for each of the vectors along its axes.

    >>> x, y = xp.meshgrid(xp.arange(2), xp.arange(3))
    >>> y
    tensor([[0, 0],
            [1, 1],
            [2, 2]], dtype=int64)
    """
    return list(ops.meshgrid(*arrays, indexing=indexing))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of ones.

    >>> xp.ones((2, 3))
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    require_cpu(device)
    return ops.ones(shape, _or_default(dtype))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of ones, of the shape of `x`.

    >>> xp.ones_like(xp.arange(3))
    tensor([1, 1, 1], dtype=int64)
    """
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """Return matrices with zeros above the diagonal `k`.

    >>> xp.tril(xp.ones((3, 3)), k=-1)
    tensor([[0., 0., 0.],
            [1., 0., 0.],
            [1., 1., 0.]])
    """
    return ops.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """Return matrices with zeros below the diagonal `k`.

    >>> xp.triu(xp.ones((3, 3)), k=1)
    tensor([[0., 1., 1.],
            [0., 0., 1.],
            [0., 0., 0.]])
    """
    return ops.triu(x, k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of zeros.

    >>> xp.zeros((2, 3), dtype=xp.int32)
    tensor([[0, 0, 0],
            [0, 0, 0]], dtype=int32)
    """
    require_cpu(device)
    return ops.zeros(shape, _or_default(dtype))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of zeros, of the shape of `x`.

    >>> xp.zeros_like(xp.arange(3))
    tensor([0, 0, 0], dtype=int64)
    """
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)
