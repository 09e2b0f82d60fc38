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
    """Whether all elements differ from zero."""
    return ops.all(x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Whether one of the elements differs from zero."""
    return ops.any(x, axis, keepdims)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Any:
    """The products of the elements so far."""
    return ops.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Any:
    """The sums of the elements so far."""
    return ops.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along an axis, taken `n` times."""
    given = {"prepend": prepend, "append": append}
    return differences.diff(x, n, axis, **{k: v for k, v in given.items() if v is not None})


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The largest element."""
    return ops.max(x, axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The mean."""
    return ops.mean(x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The smallest element."""
    return ops.min(x, axis, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The product, in the widest dtype of its kind for integers unless `dtype` says otherwise."""
    return ops.prod(x, axis, keepdims, dtype=dtype)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    """The standard deviation, with divisor `n - correction`."""
    return ops.std(x, axis, keepdims, ddof=correction)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The sum, in the widest dtype of its kind for integers unless `dtype` says otherwise."""
    return ops.sum(x, axis, keepdims, dtype=dtype)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    """The variance, with divisor `n - correction`."""
    return ops.var(x, axis, keepdims, ddof=correction)
