"""Sums, extremes and norms over axes, and cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from primgraph import operators as pg
from primgraph.compat.torch.functions.results import (
    define_functions,
    over_axes,
    require_floats,
    takes_out,
)
from primgraph.compat.torch.return_types import named_result
from primgraph.errors import AxisError
from primgraph.operators.handle import Handle
from primgraph.operators.reduce.norms import vector_norm

_ROWS = """
amax(input, dim=None, keepdim=False): max(input, over_axes(dim), keepdim)
Return the largest element over `dim`.
>>> torch.amax(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
tensor([5., 4.])

amin(input, dim=None, keepdim=False): min(input, over_axes(dim), keepdim)
Return the smallest element over `dim`.
>>> torch.amin(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
tensor([1., 3.])

all(input, dim=None, keepdim=False): all(input, dim, keepdim)
Return whether all elements over `dim` differ from zero.
>>> torch.all(torch.tensor([True, False]))
tensor(False)

any(input, dim=None, keepdim=False): any(input, dim, keepdim)
Return whether an element over `dim` differs from zero.
>>> torch.any(torch.tensor([True, False]))
tensor(True)

argmax(input, dim=None, keepdim=False): argmax(some_elements("argmax", input, dim), dim, keepdim)
Return the index of the first largest element.
>>> torch.argmax(torch.tensor([1.0, 3.0, 3.0]))
tensor(1)

argmin(input, dim=None, keepdim=False): argmin(some_elements("argmin", input, dim), dim, keepdim)
Return the index of the first smallest element.
>>> torch.argmin(torch.tensor([2.0, 1.0, 1.0]))
tensor(1)

count_nonzero(input, dim=None): count_nonzero(input, over_axes(dim))
Count the elements that differ from zero.
>>> torch.count_nonzero(torch.tensor([0, 1, 2]))
tensor(2)

logsumexp(input, dim, keepdim=False): logsumexp(input, dim, keepdim)
Compute `log(sum(exp(input)))` over `dim`.
>>> torch.logsumexp(torch.zeros(2), dim=0)
tensor(0.6931)

nansum(input, dim=None, keepdim=False, *, dtype=None): nansum(axis=over_axes(dim), keepdims=keepdim)
Compute sums over `dim` without NaNs.
>>> torch.nansum(torch.tensor([1.0, float("nan")]))
tensor(1.)

sum(input, dim=None, keepdim=False, *, dtype=None): sum(input, over_axes(dim), keepdim, dtype=dtype)
Compute sums over `dim`, or of all elements.
>>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
tensor([4., 6.])
"""

__all__ = [
    *define_functions(globals(), _ROWS),
    "aminmax",
    "corrcoef",
    "cov",
    "dist",
    "log_softmax",
    "max",
    "mean",
    "min",
    "nanmean",
    "norm",
    "prod",
    "softmax",
    "std",
    "std_mean",
    "var",
    "var_mean",
]

Dims: TypeAlias = int | Sequence[int] | None


def some_elements(name: str, input: Any, dim: int | None) -> Any:
    """Return a tensor. Raises `AxisError` for one without elements, unless `dim` is given."""
    if dim is None and input.type.size == 0:
        raise AxisError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    return input


@takes_out
def mean(
    input: Any,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> Any:
    """Compute the mean over `dim`, or of all elements. Raises `DTypeError` for integers.

    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([2., 3.])
    """
    over = over_axes(dim if axis is None else axis)
    return pg.mean(require_floats("mean", input, dtype), over, keepdim or keepdims)


def nanmean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the mean over `dim` without NaNs.

    >>> torch.nanmean(torch.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    return pg.nanmean(require_floats("nanmean", input, dtype), over_axes(dim), keepdim)


@takes_out
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute the product over `dim`, or of all elements.

    >>> torch.prod(torch.tensor([2.0, 3.0]))
    tensor(6.)
    """
    return pg.prod(input, dim, keepdim, dtype=dtype)


def _spread_options(
    dim: Any, unbiased: Any, correction: float | None
) -> tuple[Dims, dict[str, float]]:
    """Return the axes and options of `var` and `std`, which take `unbiased` first, too."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return over_axes(dim), {"ddof": int(unbiased) if correction is None else correction}


@takes_out
def var(
    input: Any,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Compute the variance over `dim`, with divisor `n - correction`, which is 1 by default.

    >>> torch.var(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    over, options = _spread_options(dim, unbiased, correction)
    return pg.var(require_floats("var", input, None), over, keepdim, **options)


@takes_out
def std(
    input: Any,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Compute the standard deviation over `dim`, the square root of `var`.

    >>> torch.std(torch.tensor([1.0, 3.0]), correction=0)
    tensor(1.)
    """
    over, options = _spread_options(dim, unbiased, correction)
    return pg.std(require_floats("std", input, None), over, keepdim, **options)


def var_mean(input: Any, dim: Any = None, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Compute variance and mean over `dim`; see `var`.

    >>> torch.var_mean(torch.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    return var(input, dim, *args, **options), _mean_beside(input, dim, args, options)


def std_mean(input: Any, dim: Any = None, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Compute standard deviation and mean over `dim`; see `std`.

    >>> torch.std_mean(torch.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    return std(input, dim, *args, **options), _mean_beside(input, dim, args, options)


def _mean_beside(input: Any, dim: Any, args: Sequence[Any], options: Any) -> Any:
    keepdim = args[1] if len(args) > 1 else options.get("keepdim", False)
    return pg.mean(input, None if isinstance(dim, bool) else over_axes(dim), keepdim)


def _extremes(name: str, input: Any, dim: Any, keepdim: bool, axis: Any, keepdims: bool) -> Any:
    """Return extremes of all, of two tensors, or along an axis with positions."""
    extreme, of_two, position = {
        "max": (pg.max, pg.maximum, pg.argmax),
        "min": (pg.min, pg.minimum, pg.argmin),
    }[name]
    over, kept = dim if axis is None else axis, keepdim or keepdims
    if over is None:
        return extreme(input)
    if isinstance(over, Handle):
        return of_two(input, over)
    return named_result(name, extreme(input, over, kept), position(input, over, kept))


@takes_out
def max(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """Return the largest element; along `dim`, with its index; or of two tensors.

    >>> values, indices = torch.max(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> indices
    tensor([1, 1])
    """
    return _extremes("max", input, dim if other is None else other, keepdim, axis, keepdims)


@takes_out
def min(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """Return the smallest element; along `dim`, with its index; or of two tensors.

    >>> values, indices = torch.min(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> values
    tensor([1., 3.])
    """
    return _extremes("min", input, dim if other is None else other, keepdim, axis, keepdims)


def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the smallest and the largest element over `dim`.

    >>> torch.aminmax(torch.tensor([1.0, 5.0, 3.0])).max
    tensor(5.)
    """
    return named_result("aminmax", pg.min(input, dim, keepdim), pg.max(input, dim, keepdim))


def norm(
    input: Any, p: Any = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """Compute the norm over `dim`, or of all elements; "fro" and None mean the Euclidean one.

    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    input = require_floats("norm", input, dtype)
    dim = over_axes(dim)
    order = None if p in ("fro", None, 2) else p
    several = isinstance(dim, list | tuple) and len(dim) > 1
    if several and order is not None and not isinstance(order, str):
        # A number is the order of the norm of all elements as one vector, unlike NumPy's.
        return vector_norm(input, axis=dim, keepdims=keepdim, ord=order)
    if dim is not None or order is None or isinstance(order, str):
        return pg.norm(input, order, dim, keepdim)
    found = pg.norm(pg.flatten(input), order)
    return pg.reshape(found, (1,) * input.ndim) if keepdim else found


def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Compute the norm of the difference, of all elements as a vector.

    >>> torch.dist(torch.tensor([3.0, 4.0]), torch.zeros(2))
    tensor(5.)
    """
    return vector_norm(pg.subtract(input, other), ord=p)


@takes_out
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute `exp(input) / sum(exp(input))` along `dim`, of `input` in `dtype` if one is given.

    >>> torch.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return pg.softmax(require_floats("softmax", input, dtype), dim)


@takes_out
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute the logarithm of `softmax`.

    >>> torch.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return pg.log_softmax(require_floats("log_softmax", input, dtype), dim)


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Compute covariances of variables in rows.

    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    found = pg.cov(input, ddof=correction, fweights=fweights, aweights=aweights)
    return pg.astype(found, input.type.dtype) if input.type.is_inexact else found


def corrcoef(input: Any) -> Any:
    """Compute correlation coefficients of variables in rows.

    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    found = pg.corrcoef(input)
    return pg.astype(found, input.type.dtype) if input.type.is_inexact else found
