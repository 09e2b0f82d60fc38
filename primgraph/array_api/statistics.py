"""Sums and other functions of all elements over axes, by the names of the standard."""

from __future__ import annotations

from typing import Any

from primgraph import operators as ops
from primgraph.operators.reduce import differences

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return whether all elements differ from zero.

    >>> xp.all(xp.asarray([True, False]))
    tensor(False, dtype=bool)
    """
    return ops.all(x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return whether one of the elements differs from zero.

    >>> xp.any(xp.asarray([True, False]))
    tensor(True, dtype=bool)
    """
    return ops.any(x, axis, keepdims)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Any:
    """Compute cumulative products along an axis, which may be left out for a vector.

    >>> xp.cumulative_prod(xp.asarray([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    """
    return ops.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Any:
    """Compute cumulative sums along an axis, which may be left out for a vector.

    >>> xp.cumulative_sum(xp.asarray([1.0, 2.0, 3.0]), include_initial=True)
    tensor([0., 1., 3., 6.])
    """
    return ops.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Compute the differences of neighbours along an axis, `n` times.

    >>> xp.diff(xp.asarray([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    given = {"prepend": prepend, "append": append}
    return differences.diff(x, n, axis, **{k: v for k, v in given.items() if v is not None})


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the largest element, of all or along axes.

    >>> xp.max(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    tensor([5., 4.])
    """
    return ops.max(x, axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Compute the mean, of all elements or along axes.

    >>> xp.mean(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=0)
    tensor([2. , 4.5])
    """
    return ops.mean(x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the smallest element, of all or along axes.

    >>> xp.min(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    tensor([1., 3.])
    """
    return ops.min(x, axis, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Compute the product; for integers in the widest dtype of their kind, unless `dtype` is given.

    >>> xp.prod(xp.asarray([2.0, 3.0]))
    tensor(6.)
    """
    return ops.prod(x, axis, keepdims, dtype=dtype)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    """Compute the standard deviation, with divisor `n - correction`.

    >>> xp.std(xp.asarray([1.0, 3.0]))
    tensor(1.)
    """
    return ops.std(x, axis, keepdims, ddof=correction)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Compute the sum; for integers in the widest dtype of their kind, unless `dtype` is given.

    >>> xp.sum(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1, keepdims=True)
    tensor([[3.],
            [7.]])
    """
    return ops.sum(x, axis, keepdims, dtype=dtype)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    """Compute the variance, with divisor `n - correction`.

    >>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
    tensor(2.)
    """
    return ops.var(x, axis, keepdims, ddof=correction)
