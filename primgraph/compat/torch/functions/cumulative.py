"""Running sums and extremes along an axis, differences and integrals."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.functions.results import define_functions
from primgraph.compat.torch.return_types import named_result

_ROWS = """
cumprod(input, dim, *, dtype=None): cumprod(input, dim, dtype=dtype)
Compute cumulative products along `dim`.
>>> torch.cumprod(torch.tensor([1.0, 2.0, 3.0]), dim=0)
tensor([1., 2., 6.])

cumsum(input, dim, *, dtype=None): cumsum(input, dim, dtype=dtype)
Compute cumulative sums along `dim`.
>>> torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), dim=0)
tensor([1., 3., 6.])

diff(input, n=1, dim=-1, prepend=None, append=None): handles.diff(input, n, dim, prepend, append)
Compute differences of neighbours along `dim`, `n` times.
>>> torch.diff(torch.tensor([1.0, 4.0, 9.0]))
tensor([3., 5.])

logcumsumexp(input, dim): logcumsumexp(input, dim)
Compute logarithms of cumulative sums of exponentials.
>>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), dim=0)
tensor([0.0000, 0.6931])
"""

__all__ = [
    *define_functions(globals(), _ROWS),
    "cummax",
    "cummin",
    "cumulative_trapezoid",
    "gradient",
    "trapezoid",
    "trapz",
]


def _running_extremes(name: str, input: Any, dim: int) -> Any:
    """Return running extremes, and the positions of the last elements that equal them."""
    values = (pg.cummax if name == "cummax" else pg.cummin)(input, dim)
    if not input.ndim:
        return named_result(name, values, pg.zeros_like(input, "int64"))
    shape = [1] * input.ndim
    shape[dim] = -1
    places = pg.reshape(pg.cumsum(pg.ones_like(input, "int64"), dim) - 1, input.shape)
    found = pg.where(pg.equal(input, values), places, pg.zeros_like(places))
    return named_result(name, values, pg.cummax(found, dim))


def cummax(input: Any, dim: int) -> Any:
    """Return running maxima along `dim`, and their positions.

    >>> torch.cummax(torch.tensor([1.0, 3.0, 2.0]), dim=0).indices
    tensor([0, 1, 1])
    """
    return _running_extremes("cummax", input, dim)


def cummin(input: Any, dim: int) -> Any:
    """Return running minima along `dim`, and their positions.

    >>> torch.cummin(torch.tensor([3.0, 1.0, 2.0]), dim=0).values
    tensor([3., 1., 1.])
    """
    return _running_extremes("cummin", input, dim)


def trapezoid(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Any:
    """Integrate by the trapezoidal rule along `dim`.

    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    return pg.trapezoid(y, x, dx, dim)


trapz = trapezoid


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Any:
    """Integrate by the trapezoidal rule up to each point along `dim`.

    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    lines = pg.moveaxis(y, dim, -1)
    if x is None:
        steps = dx
    else:
        points = x if x.ndim == 1 else pg.moveaxis(x, dim, -1)
        steps = points[..., 1:] - points[..., :-1]
    areas = (lines[..., 1:] + lines[..., :-1]) * steps / 2
    return pg.moveaxis(pg.cumsum(areas, -1), -1, dim)


def gradient(
    input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Any, ...]:
    """Estimate derivatives along each axis, or those in `dim`, by differences of second order.

    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    steps = spacing if isinstance(spacing, list | tuple) else [spacing]
    found = pg.gradient(input, *steps, axis=dim, edge_order=edge_order)
    return tuple(found) if isinstance(found, list | tuple) else (found,)
