"""Creation of arrays from shapes and of random numbers, with Paddle's names and arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.core.assignments import assign_to
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.methods import is_array
from primgraph.compat.paddle.dynamic import as_paddles, to_tensor
from primgraph.compat.paddle.framework import checked_place, new_key, paddles
from primgraph.eager.derivatives.recording import no_grad
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import ArrayLike, Handle
from primgraph.operators.variable import Variable

Name: TypeAlias = str | None
P = ParamSpec("P")
R = TypeVar("R")


def sizes_one_by_one(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` take the integers of a shape one by one, as well as in a list."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > 1 and all(isinstance(a, int) for a in args):
            return function(args, **kwargs)
        return function(*args, **kwargs)

    return call


@paddles
def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: Any = None,
    name: Name = None,
) -> Variable:
    """Return numbers from `start` (0 without an `end`) up to but excluding `end`, `step` apart.

    >>> paddle.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    first, last = (0, _item(start)) if end is None else (_item(start), _item(end))
    step = _item(step)
    floats = any(isinstance(n, float) for n in (first, last, step))
    wanted = dtype_or_default(None) if dtype is None and floats else dtype
    return as_paddles(pg.arange(first, last, step, wanted))


@paddles
def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = None, name: Name = None
) -> Variable:
    """Return a matrix with ones on the diagonal, and zeros elsewhere.

    >>> paddle.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return as_paddles(pg.eye(num_rows, num_columns, dtype=dtype_or_default(dtype)))


@paddles
def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of that shape with all elements equal to `fill_value`.

    >>> paddle.full([2], 0.5).tolist()
    [0.5, 0.5]
    """
    is_default = dtype is not None or not isinstance(fill_value, bool | complex)
    wanted = dtype_or_default(dtype) if is_default else None
    return as_paddles(pg.full(whole_shape(shape), _item(fill_value), wanted))


@paddles
def assign(x: Any, output: Any = None) -> Any:
    """Return a copy of a tensor or array; `output` is a tensor that takes the elements.

    An `output` in a program stands for the new value from then on, and a state of the program is
    stored after each run.

    >>> paddle.assign(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    if isinstance(x, Handle):
        found: Any = pg.assign(x)
    else:
        found = pg.asarray(np.asarray(x) if np.ndim(x) else np.asarray([x]))
    if output is None:
        return as_paddles(found)
    if isinstance(output, Variable):
        return assign_to(output, pg.astype(found, output.type.dtype))
    with no_grad():
        return output.copy_(found)


@sizes_one_by_one
@paddles
def empty(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of that shape, of zeros.

    >>> paddle.empty([2]).shape
    paddle.Size([2])
    """
    return as_paddles(pg.zeros(whole_shape(shape), dtype_or_default(dtype)))


@paddles
def empty_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of the shape of `x`, of zeros.

    >>> paddle.empty_like(paddle.ones([2])).shape
    paddle.Size([2])
    """
    return pg.zeros_like(x, dtype)


@paddles
def logspace(
    start: Any, stop: Any, num: int, base: float = 10.0, dtype: Any = None, name: Name = None
) -> Variable:
    """Return powers of `base`, with `num` evenly spaced exponents from `start` to `stop`.

    >>> paddle.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    wanted = dtype_or_default(dtype)
    found = pg.power(base, pg.linspace(_item(start), _item(stop), int(num), dtype="float64"))
    return as_paddles(pg.astype(found, wanted))


@paddles
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Return a tensor of the elements of `data`; a tensor of that dtype itself.

    >>> paddle.as_tensor([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    checked_place("as_tensor", device)
    if isinstance(data, Handle) and (dtype is None or data.type.dtype == as_dtype(dtype)):
        return data
    return to_tensor(data, dtype)


@paddles
def from_numpy(ndarray: Any) -> Any:
    """Return a tensor with copies of the elements of an array.

    >>> paddle.from_numpy(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return to_tensor(ndarray)


@paddles
def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = "int64") -> Any:
    """Return the indices of the lower triangle of a matrix, in two rows.

    >>> paddle.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return as_paddles(pg.asarray(np.stack(np.tril_indices(row, offset, col)), as_dtype(dtype)))


@paddles
def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = "int64") -> Any:
    """Return the indices of the upper triangle of a matrix, in two rows.

    >>> paddle.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return as_paddles(pg.asarray(np.stack(np.triu_indices(row, offset, col)), as_dtype(dtype)))


def _item(value: Any) -> Any:
    """Return a number that may be a tensor."""
    return value.item() if is_array(value) and not isinstance(value, Variable) else value


def whole_shape(shape: Any) -> Any:
    """Return a shape that may be a number, a tensor, or a list with tensors."""
    if is_array(shape):
        shape = shape.tolist() if shape.ndim else [int(shape)]
    if isinstance(shape, int):
        return (shape,)
    return tuple(_item(n) for n in shape)


@paddles
def full_like(x: Any, fill_value: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of the shape of `x` with all elements equal to `fill_value`.

    >>> paddle.full_like(paddle.ones([2]), 0.5).tolist()
    [0.5, 0.5]
    """
    wanted = as_dtype(x.dtype if dtype is None else dtype)
    return pg.full_like(x, np.asarray(_item(fill_value)).astype(wanted), wanted)


@paddles
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int, dtype: Any = None, name: Name = None
) -> Variable:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    >>> paddle.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return as_paddles(
        pg.linspace(_item(start), _item(stop), int(_item(num)), dtype=dtype_or_default(dtype))
    )


@sizes_one_by_one
@paddles
def ones(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of ones, of the default dtype unless `dtype` is given.

    >>> paddle.ones([2]).tolist()
    [1.0, 1.0]
    """
    return as_paddles(pg.ones(whole_shape(shape), dtype_or_default(dtype)))


@paddles
def ones_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of ones of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> paddle.ones_like(paddle.arange(3)).tolist()
    [1, 1, 1]
    """
    return pg.ones_like(x, dtype)


@sizes_one_by_one
@paddles
def rand(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return uniform numbers between 0 and 1, new ones at each call and at each run.

    >>> paddle.rand([2, 3]).shape
    paddle.Size([2, 3])
    """
    return as_paddles(pg.uniform(new_key(), whole_shape(shape), 0.0, 1.0, dtype_or_default(dtype)))


@sizes_one_by_one
@paddles
def randn(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return normal numbers of mean 0 and variance 1, new ones at each call and at each run.

    >>> paddle.randn([2, 3]).shape
    paddle.Size([2, 3])
    """
    return as_paddles(pg.normal(new_key(), whole_shape(shape), dtype_or_default(dtype)))


@paddles
def uniform(
    shape: Any,
    dtype: Any = None,
    min: float = 0.0,
    max: float = 1.0,
    seed: int = 0,
    name: Name = None,
) -> Variable:
    """Return uniform numbers between `min` and `max`, new ones at each call and at each run.

    With a `seed` other than 0 they depend on the seed only, and are the same at each run.

    >>> paddle.uniform([2, 3], min=0.0).shape
    paddle.Size([2, 3])
    """
    key = new_key() if seed == 0 else seed
    return as_paddles(pg.uniform(key, whole_shape(shape), min, max, dtype_or_default(dtype)))


@sizes_one_by_one
@paddles
def zeros(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of zeros, of the default dtype unless `dtype` is given.

    >>> paddle.zeros([2]).tolist()
    [0.0, 0.0]
    """
    return as_paddles(pg.zeros(whole_shape(shape), dtype_or_default(dtype)))


@paddles
def zeros_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of zeros of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> paddle.zeros_like(paddle.arange(3)).tolist()
    [0, 0, 0]
    """
    return pg.zeros_like(x, dtype)
