"""Random arrays, and states of their generator, as in Paddle; the numbers are not Paddle's.

In static mode they are new at each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.dynamic import Tensor, as_paddles
from primgraph.compat.paddle.framework import new_key, paddles
from primgraph.compat.random_methods import RandomMethods
from primgraph.compat.randomness import gumbel_categories
from primgraph.eager.seeds import seeded
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle

Name: TypeAlias = str | None

__all__ = [
    "bernoulli",
    "bernoulli_",
    "binomial",
    "cauchy_",
    "exponential_",
    "geometric_",
    "get_rng_state",
    "log_normal",
    "log_normal_",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "rand_like",
    "randint",
    "randint_like",
    "randn_like",
    "randperm",
    "set_rng_state",
    "standard_gamma",
    "standard_normal",
    "uniform_",
]


def _shape(shape: Any) -> tuple[int, ...]:
    """Return a shape that is given as numbers or as tensors."""
    sizes = [shape] if isinstance(shape, int) else shape
    return tuple(int(n) for n in sizes)


@paddles
def standard_normal(shape: Any, dtype: Any = None, name: Name = None) -> Any:
    """Return normal numbers of mean 0 and variance 1.

    >>> paddle.standard_normal([2, 3]).shape
    paddle.Size([2, 3])
    """
    return as_paddles(pg.normal(new_key(), _shape(shape), dtype_or_default(dtype)))


@paddles
def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, name: Name = None) -> Any:
    """Return normal numbers; `mean` and `std` are numbers, or tensors that give the shape.

    >>> paddle.normal(2.0, 0.5, [3]).shape
    paddle.Size([3])
    """
    known = [x for x in (mean, std) if isinstance(x, Handle)]
    if known:
        extents = np.broadcast_shapes(*(x.type.shape for x in known))
        dtype = as_dtype(known[0].dtype)
    else:
        extents, dtype = () if shape is None else _shape(shape), dtype_or_default(None)
    drawn = pg.normal(new_key(), extents, dtype)
    return as_paddles(pg.stop_gradient(drawn * std + mean))


@paddles
def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Any = None, name: Name = None) -> Any:
    """Return exponentials of normal numbers of that mean and standard deviation.

    >>> paddle.log_normal(shape=[3]).shape
    paddle.Size([3])
    """
    return pg.exp(normal(mean, std, shape))


@paddles
def randint(
    low: int = 0, high: int | None = None, shape: Any = (1,), dtype: Any = None, name: Name = None
) -> Any:
    """Return integers from `low` up to but without `high`; one bound is `high`.

    Raises `ArgumentError` for an empty range.

    >>> paddle.randint(2, 5, [3]).dtype
    paddle.int64
    """
    first, last = (0, low) if high is None else (low, high)
    if first >= last:
        raise ArgumentError(f"randint's low must be less than high, but received {first}, {last}")
    drawn = random.randint(new_key(), _shape(shape), first, last)
    return as_paddles(pg.astype(drawn, as_dtype(dtype or "int64")))


@paddles
def randint_like(
    x: Any, low: int = 0, high: int | None = None, dtype: Any = None, name: Name = None
) -> Any:
    """Return integers of the shape of `x`, and of its dtype unless one is given.

    >>> paddle.randint_like(paddle.ones([3]), 5).dtype
    paddle.float32
    """
    return randint(low, high, x.type.shape, dtype or x.dtype)


@paddles
def randperm(n: int, dtype: Any = "int64", name: Name = None) -> Any:
    """Return the integers below `n` in random order.

    >>> sorted(paddle.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return as_paddles(pg.astype(random.permutation(new_key(), n), as_dtype(dtype)))


@paddles
def rand_like(input: Any, name: Name = None, *, dtype: Any = None) -> Any:
    """Return uniform numbers between 0 and 1 of the shape of `input`.

    >>> paddle.rand_like(paddle.ones([3])).shape
    paddle.Size([3])
    """
    wanted = as_dtype(dtype or input.dtype)
    return as_paddles(pg.uniform(new_key(), input.type.shape, 0.0, 1.0, wanted))


@paddles
def randn_like(x: Any, dtype: Any = None, name: Name = None) -> Any:
    """Return normal numbers of the shape of `x`.

    >>> paddle.randn_like(paddle.ones([3])).shape
    paddle.Size([3])
    """
    return as_paddles(pg.normal(new_key(), x.type.shape, as_dtype(dtype or x.dtype)))


@paddles
def bernoulli(x: Any, p: float | None = None, name: Name = None) -> Any:
    """Return 1 with the probabilities in `x`, or `p`, and 0 elsewhere.

    >>> paddle.bernoulli(paddle.to_tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    drawn = pg.uniform(new_key(), x.type.shape, 0.0, 1.0, "float64")
    return as_paddles(pg.astype(drawn < (x if p is None else p), x.type.dtype))


@paddles
def multinomial(x: Any, num_samples: int = 1, replacement: bool = False, name: Name = None) -> Any:
    """Return indices along the last axis, with probabilities in proportion to `x`.

    Raises `ArgumentError` for more samples than weights, without replacement.

    >>> paddle.multinomial(paddle.to_tensor([0.0, 1.0]), 2, replacement=True).tolist()
    [1, 1]
    """
    weights = np.asarray(x) if isinstance(x, _Tensor) else None
    most = x.shape[-1] if weights is None else int(np.count_nonzero(weights, -1).min())
    if not replacement and num_samples > most:
        raise ArgumentError(
            f"multinomial without replacement takes at most {most} samples, not {num_samples}"
        )
    return as_paddles(gumbel_categories(new_key(), x, num_samples, replacement))


@paddles
def poisson(x: Any, name: Name = None) -> Any:
    """Return numbers of Poisson distributions with the means in `x`.

    >>> paddle.poisson(paddle.zeros([2])).tolist()
    [0.0, 0.0]
    """
    return as_paddles(pg.astype(random.poisson(new_key(), pg.stop_gradient(x)), x.type.dtype))


@paddles
def standard_gamma(x: Any, name: Name = None) -> Any:
    """Return numbers of gamma distributions with the shapes in `x`, and scale 1.

    >>> paddle.standard_gamma(paddle.ones([3])).shape
    paddle.Size([3])
    """
    return as_paddles(random.gamma(new_key(), pg.stop_gradient(x)))


@paddles
def binomial(count: Any, prob: Any, name: Name = None) -> Any:
    """Return numbers of successes in `count` trials of probability `prob`, as int64.

    >>> paddle.binomial(paddle.to_tensor([3]), paddle.to_tensor([1.0])).tolist()
    [3]
    """
    return as_paddles(random.binomial(new_key(), pg.astype(count, "int64"), prob))


def get_rng_state(device: Any = None) -> list[Any]:
    """Return the state of the generator of dynamic mode, in a list.

    >>> state = paddle.get_rng_state()
    >>> a = paddle.rand([2])
    >>> paddle.set_rng_state(state)
    >>> bool((a == paddle.rand([2])).all())
    True
    """
    return [seeded.state()]


def set_rng_state(state_list: Any, device: Any = None) -> None:
    """Go back to a state of the generator.

    >>> paddle.set_rng_state(paddle.get_rng_state())
    """
    (state,) = state_list
    seeded.set_state(np.asarray(state))


_METHODS: Any = RandomMethods


def uniform_(x: Any, min: float = 0.0, max: float = 1.0, seed: int = 0, name: Name = None) -> Any:
    """Fill `x` with uniform numbers between two bounds.

    >>> paddle.uniform_(paddle.zeros([3]), 2.0, 3.0).shape
    paddle.Size([3])
    """
    return _METHODS.uniform_(x, min, max)


def normal_(x: Any, mean: float = 0.0, std: float = 1.0, name: Name = None) -> Any:
    """Fill `x` with normal numbers.

    >>> paddle.normal_(paddle.zeros([3])).shape
    paddle.Size([3])
    """
    return _METHODS.normal_(x, mean, std)


def log_normal_(x: Any, mean: float = 1.0, std: float = 2.0, name: Name = None) -> Any:
    """Fill `x` with exponentials of normal numbers.

    >>> paddle.log_normal_(paddle.zeros([3])).shape
    paddle.Size([3])
    """
    return _METHODS.log_normal_(x, mean, std)


def exponential_(x: Any, lam: float = 1.0, name: Name = None) -> Any:
    """Fill `x` with numbers of the exponential distribution of that rate.

    >>> paddle.exponential_(paddle.zeros([3])).shape
    paddle.Size([3])
    """
    return _METHODS.exponential_(x, lam)


def bernoulli_(x: Any, p: Any = 0.5, name: Name = None) -> Any:
    """Fill `x` with 1, of probability `p`, and 0.

    >>> paddle.bernoulli_(paddle.zeros([2]), 1.0).tolist()
    [1.0, 1.0]
    """
    return _METHODS.bernoulli_(x, p)


def cauchy_(x: Any, loc: float = 0.0, scale: float = 1.0, name: Name = None) -> Any:
    """Fill `x` with numbers of the Cauchy distribution.

    >>> paddle.cauchy_(paddle.zeros([3])).shape
    paddle.Size([3])
    """
    return _METHODS.cauchy_(x, loc, scale)


def geometric_(x: Any, probs: float, name: Name = None) -> Any:
    """Fill `x` with numbers of trials up to the first success.

    >>> paddle.geometric_(paddle.zeros([3]), 0.5).shape
    paddle.Size([3])
    """
    return _METHODS.geometric_(x, probs)


_IN_PLACE: tuple[Callable[..., Any], ...] = (
    bernoulli_,
    cauchy_,
    exponential_,
    geometric_,
    log_normal_,
    normal_,
    uniform_,
)
for _function in (*_IN_PLACE, multinomial):
    setattr(Tensor, _function.__name__, _function)
for _name in ("_fill", "_uniform"):
    setattr(Tensor, _name, getattr(RandomMethods, _name))
