"""Random arrays of further distributions, each a function of a key and of parameters.

They are computed from uniform and normal numbers, and are differentiable by the parameters.
"""

from __future__ import annotations

import math
from typing import Any

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import FLOAT64, INT64, as_shape, broadcast_shapes
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import floor
from primgraph.operators.elementwise.elementary import log
from primgraph.operators.elementwise.logic import where
from primgraph.operators.elementwise.special_functions import ndtr, ndtri
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.index.sorting import argsort
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.systems import cholesky
from primgraph.operators.promotion import convert_dtype, fractional, lift, promote_operands
from primgraph.operators.reduce.reductions import argmax
from primgraph.operators.sampling.random_arrays import normal, uniform
from primgraph.operators.sampling.rejection import open_uniform
from primgraph.operators.shape.creation import arange, zeros
from primgraph.operators.shape.shaping import expand_dims, reshape, squeeze
from primgraph.operators.variable import Variable


@namespace_operator
def truncated_normal(
    key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Any = ()
) -> Variable:
    """Return normal numbers of mean 0 and variance 1 that lie between `lower` and `upper`.

    They use the inverse of the distribution function. Bounds are broadcast to `shape`, and have
    derivatives. Equal keys give equal numbers.

    >>> pg.all(pg.random.truncated_normal(7, -1.0, 1.0, (100,)) <= 1.0)
    tensor(True, dtype=bool)
    """
    low, high = promote_operands(
        lower, upper, dtype=fractional(lower, upper), name="truncated_normal"
    )
    # Bounds in the right tail, where the distribution function has lost its digits, are mirrored.
    is_right = low > 0.0
    first = ndtr(where(is_right, -high, low))
    last = ndtr(where(is_right, -low, high))
    extents = broadcast_shapes(as_shape(shape), low.shape, high.shape)
    part = convert_dtype(open_uniform(key, extents), low.dtype)
    drawn = ndtri(first + (last - first) * part)
    return where(is_right, -drawn, drawn)


@namespace_operator
def categorical(key: ArrayLike, logits: ArrayLike, shape: Any = ()) -> Variable:
    """Return integers from 0 on, with probabilities `softmax(logits)` along the last axis.

    The result has the axes of `shape`, followed by those of `logits` without the last. They use the
    Gumbel-max trick; equal keys give equal integers.

    >>> pg.random.categorical(7, [0.0, -np.inf], (3,))
    tensor([0, 0, 0], dtype=int64)
    """
    weights = lift(logits, fractional(logits))
    if weights.ndim == 0:
        raise ShapeError("categorical: logits have an axis of weights")
    noise = -log(-log(open_uniform(key, (*as_shape(shape), *weights.shape))))
    return argmax(weights + noise, -1)


@namespace_operator
def permutation(key: ArrayLike, x: Any) -> Variable:
    """Return the integers below `x` in a random order, or the rows of an array in one.

    Equal keys give equal orders.

    >>> pg.sort(pg.random.permutation(7, 4))
    tensor([0, 1, 2, 3], dtype=int64)
    """
    if isinstance(x, int):
        return argsort(uniform(key, (x,), dtype=FLOAT64))
    rows = lift(x)
    if rows.ndim == 0:
        raise ShapeError(f"permutation takes an integer or an array with axes, not {rows.type}")
    return take(rows, argsort(uniform(key, (rows.shape[0],), dtype=FLOAT64)), 0)


@namespace_operator
def choice(
    key: ArrayLike, a: Any, shape: Any = (), replace: bool = True, p: ArrayLike | None = None
) -> Variable:
    """Return rows of `a`, or integers below it, chosen with probabilities `p`, by default equal.

    Without `replace` none is drawn twice. The rows have derivatives; equal keys give equal choices.
    Raises `ArgumentError` if there are fewer rows than draws.

    >>> pg.random.choice(7, 5, (3,)).shape
    (3,)
    """
    extents = as_shape(shape)
    rows = arange(a) if isinstance(a, int) else lift(a)
    if rows.ndim == 0:
        raise ShapeError(f"choice takes an integer or an array with axes, not {rows.type}")
    count, wanted = rows.shape[0], math.prod(extents)
    if replace and p is None:
        places = floor(open_uniform(key, extents) * count)
        return take(rows, convert_dtype(places, INT64), 0)
    weights = zeros((count,)) if p is None else log(lift(p, fractional(p)))
    if weights.shape != (count,):
        raise ShapeError(f"choice: p has one probability for each of {count}, not {weights.type}")
    if replace:
        return take(rows, categorical(key, weights, extents), 0)
    if wanted > count:
        raise ArgumentError(f"choice: {wanted} of {count} cannot be chosen without repeating any")
    noise = -log(-log(open_uniform(key, (count,))))
    order = argsort(-(weights + noise))
    return take(rows, reshape(order[:wanted], extents), 0)


@namespace_operator
def multivariate_normal(
    key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Any = ()
) -> Variable:
    """Return normal vectors of that mean and covariance; derivatives go to both.

    The result has the axes of `shape`, followed by that of `mean`. They use the Cholesky factor: a
    matrix that is not positive definite is a `LinAlgError` of the run. Equal keys give equal
    vectors.

    >>> pg.random.multivariate_normal(7, np.zeros(2), np.eye(2), (100,)).shape
    (100, 2)
    """
    dtype = fractional(mean, cov)
    middle, matrix = lift(mean, dtype), lift(cov, dtype)
    if middle.ndim != 1 or matrix.shape != (*middle.shape, *middle.shape):
        raise ShapeError(
            f"multivariate_normal takes a vector and a square matrix that fit, not {middle.type} "
            f"and {matrix.type}"
        )
    drawn = normal(key, (*as_shape(shape), *middle.shape), dtype)
    turned = matmul(cholesky(matrix), expand_dims(drawn, -1))
    return middle + squeeze(turned, -1)
