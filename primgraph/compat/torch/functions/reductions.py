"""Sums, extremes and norms over axes, and cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from primgraph import operators as pg
from primgraph.operators.handle import Handle
from primgraph.operators.reduce.norms import vector_norm

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "cumsum",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "softmax",
    "std",
    "sum",
    "var",
]

Dims: TypeAlias = int | Sequence[int] | None


class Extremes(NamedTuple):
    """Maxima or minima along an axis, and their indices."""

    values: Any
    indices: Any


def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the sum over `dim`, or of all elements.

    >>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    return pg.sum(input, dim, keepdim, dtype=dtype)


def mean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the mean over `dim`, or of all elements.

    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([2., 3.])
    """
    return pg.mean(input if dtype is None else pg.astype(input, dtype), dim, keepdim)


def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the product over `dim`, or of all elements.

    >>> torch.prod(torch.tensor([2.0, 3.0]))
    tensor(6.)
    """
    return pg.prod(input, dim, keepdim, dtype=dtype)


def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Compute the variance over `dim`, with divisor `n - correction`, which is 1 by default.

    >>> torch.var(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    return pg.var(input, dim, keepdim, ddof=int(unbiased) if correction is None else correction)


def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Compute the standard deviation over `dim`, the square root of `var`.

    >>> torch.std(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    return pg.std(input, dim, keepdim, ddof=int(unbiased) if correction is None else correction)


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the largest element; along `dim`, with its index; or of two arrays.

    >>> values, indices = torch.max(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> indices
    tensor([1, 1])
    """
    if dim is None:
        return pg.max(input)
    if isinstance(dim, Handle):
        return pg.maximum(input, dim)
    return Extremes(pg.max(input, dim, keepdim), pg.argmax(input, dim, keepdim))


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the smallest element; along `dim`, with its index; or of two arrays.

    >>> values, indices = torch.min(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> values
    tensor([1., 3.])
    """
    if dim is None:
        return pg.min(input)
    if isinstance(dim, Handle):
        return pg.minimum(input, dim)
    return Extremes(pg.min(input, dim, keepdim), pg.argmin(input, dim, keepdim))


def amax(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return the largest element over `dim`.

    >>> torch.amax(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([5., 4.])
    """
    return pg.max(input, dim, keepdim)


def amin(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return the smallest element over `dim`.

    >>> torch.amin(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([1., 3.])
    """
    return pg.min(input, dim, keepdim)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the first largest element.

    >>> torch.argmax(torch.tensor([1.0, 3.0, 3.0]))
    tensor(1)
    """
    return pg.argmax(input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the first smallest element.

    >>> torch.argmin(torch.tensor([2.0, 1.0, 1.0]))
    tensor(1)
    """
    return pg.argmin(input, dim, keepdim)


def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return whether all elements over `dim` differ from zero.

    >>> torch.all(torch.tensor([True, False]))
    tensor(False)
    """
    return pg.all(input, dim, keepdim)


def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return whether an element over `dim` differs from zero.

    >>> torch.any(torch.tensor([True, False]))
    tensor(True)
    """
    return pg.any(input, dim, keepdim)


def norm(input: Any, p: Any = "fro", dim: Dims = None, keepdim: bool = False) -> Any:
    """Compute the norm over `dim`, or of all elements; "fro" and None mean the Euclidean one.

    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    order = None if p in ("fro", None, 2) else p
    several = isinstance(dim, list | tuple) and len(dim) > 1
    if several and order is not None and not isinstance(order, str):
        # A number is the order of the norm of all elements as one vector, unlike NumPy's.
        return vector_norm(input, axis=dim, keepdims=keepdim, ord=order)
    if dim is not None or order is None:
        return pg.norm(input, order, dim, keepdim)
    found = pg.norm(pg.flatten(input), order)
    return pg.reshape(found, (1,) * input.ndim) if keepdim else found


def cumsum(input: Any, dim: int) -> Any:
    """Compute the cumulative sum along `dim`.

    >>> torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    return pg.cumsum(input, dim)


def logsumexp(input: Any, dim: Dims, keepdim: bool = False) -> Any:
    """Compute `log(sum(exp(input)))` over `dim`.

    >>> torch.logsumexp(torch.zeros(2), dim=0)
    tensor(0.6931)
    """
    return pg.logsumexp(input, dim, keepdim)


def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute `exp(input) / sum(exp(input))` along `dim`, of `input` in `dtype` if one is given.

    >>> torch.softmax(torch.zeros(2), dim=0)
    tensor([0.5, 0.5])
    """
    return pg.softmax(input if dtype is None else pg.astype(input, dtype), dim)


def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute the logarithm of `softmax`.

    >>> torch.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return pg.log_softmax(input if dtype is None else pg.astype(input, dtype), dim)
