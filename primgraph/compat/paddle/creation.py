"""Creation of arrays from shapes and of random numbers, with Paddle's names and arguments."""

from __future__ import annotations

from typing import Any, TypeAlias

from primgraph import operators as pg
from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.dynamic import as_paddles
from primgraph.compat.paddle.framework import new_key, paddles
from primgraph.operators.handle import ArrayLike
from primgraph.operators.variable import Variable

Name: TypeAlias = str | None


@paddles
def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: Any = None,
    name: Name = None,
) -> Variable:
    """Return numbers from `start` (0 without an `end`) up to but excluding `end`, `step` apart.

    >>> paddle.arange(1, 7, 2)
    tensor([1, 3, 5], dtype=int64)
    """
    first, last = (0, start) if end is None else (start, end)
    floats = any(isinstance(n, float) for n in (first, last, step))
    wanted = dtype_or_default(None) if dtype is None and floats else dtype
    return as_paddles(pg.arange(first, last, step, wanted))


@paddles
def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = None, name: Name = None
) -> Variable:
    """Return a matrix with ones on the diagonal, and zeros elsewhere.

    >>> paddle.eye(2)
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    return as_paddles(pg.eye(num_rows, num_columns, dtype=dtype_or_default(dtype)))


@paddles
def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of that shape with all elements equal to `fill_value`.

    >>> paddle.full([2], 0.5)
    tensor([0.5, 0.5], dtype=float32)
    """
    return as_paddles(pg.full(shape, fill_value, dtype_or_default(dtype)))


@paddles
def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: Any = None, name: Name = None
) -> Variable:
    """Return an array of the shape of `x` with all elements equal to `fill_value`.

    >>> paddle.full_like(paddle.ones([2]), 0.5)
    tensor([0.5, 0.5], dtype=float32)
    """
    return pg.full_like(x, fill_value, dtype)


@paddles
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int, dtype: Any = None, name: Name = None
) -> Variable:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    >>> paddle.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return as_paddles(pg.linspace(start, stop, num, dtype=dtype_or_default(dtype)))


@paddles
def ones(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of ones, of the default dtype unless `dtype` is given.

    >>> paddle.ones([2])
    tensor([1., 1.], dtype=float32)
    """
    return as_paddles(pg.ones(shape, dtype_or_default(dtype)))


@paddles
def ones_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of ones of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> paddle.ones_like(paddle.arange(3))
    tensor([1, 1, 1], dtype=int64)
    """
    return pg.ones_like(x, dtype)


@paddles
def rand(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return uniform numbers between 0 and 1, new ones at each call and at each run.

    >>> paddle.rand([2, 3]).shape
    (2, 3)
    """
    return as_paddles(pg.uniform(new_key(), shape, 0.0, 1.0, dtype_or_default(dtype)))


@paddles
def randn(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return normal numbers of mean 0 and variance 1, new ones at each call and at each run.

    >>> paddle.randn([2, 3]).shape
    (2, 3)
    """
    return as_paddles(pg.normal(new_key(), shape, dtype_or_default(dtype)))


@paddles
def uniform(
    shape: Any,
    dtype: Any = None,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: Name = None,
) -> Variable:
    """Return uniform numbers between `min` and `max`, new ones at each call and at each run.

    With a `seed` other than 0 they depend on the seed only, and are the same at each run.

    >>> paddle.uniform([2, 3], min=0.0).shape
    (2, 3)
    """
    key = new_key() if seed == 0 else seed
    return as_paddles(pg.uniform(key, shape, min, max, dtype_or_default(dtype)))


@paddles
def zeros(shape: Any, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of zeros, of the default dtype unless `dtype` is given.

    >>> paddle.zeros([2])
    tensor([0., 0.], dtype=float32)
    """
    return as_paddles(pg.zeros(shape, dtype_or_default(dtype)))


@paddles
def zeros_like(x: ArrayLike, dtype: Any = None, name: Name = None) -> Variable:
    """Return an array of zeros of the shape of `x`, and of its dtype unless `dtype` is given.

    >>> paddle.zeros_like(paddle.arange(3))
    tensor([0, 0, 0], dtype=int64)
    """
    return pg.zeros_like(x, dtype)
