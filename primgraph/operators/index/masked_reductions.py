"""Functions of all elements that a mask chooses: reductions, products and cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, BoundsError
from primgraph.ir.types import DType
from primgraph.operators.index.masked import MaskedElements, unknown_place
from primgraph.operators.lazy_loading import functions
from primgraph.operators.numpy_arguments import call_named


def _all_of(name: str, chosen: MaskedElements, axis: Any, keepdims: bool, other: Any) -> Any:
    """Apply a reduction of all elements, with a number that changes nothing for the others."""
    if axis not in (None, 0, -1, (0,), (-1,)):
        raise BoundsError(
            f"{name}: elements that a mask chooses lie along axis 0, not {axis!r:.60}"
        )
    found = call_named(name, call_named("where", chosen.mask, chosen.array, other))
    return call_named("reshape", found, (1,)) if keepdims else found


def _reduction(name: str, other: Callable[[DType], Any]) -> Callable[..., Any]:
    """Return the meaning of a reduction, whose result is that of `other` if nothing is chosen."""

    def call(x: MaskedElements, axis: Any = None, keepdims: bool = False) -> Any:
        return _all_of(name, x, axis, keepdims, np.asarray(other(x.dtype), x.dtype))

    return call


def _extreme(sign: int) -> Callable[[DType], Any]:
    """Return a function that gives the largest or the smallest number of a dtype."""

    def find(dtype: DType) -> Any:
        if dtype.kind == "b":
            return sign > 0
        if dtype.kind in "iu":
            return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
        return complex(sign * np.inf, sign * np.inf) if dtype.kind == "c" else sign * np.inf

    return find


def _mean(x: MaskedElements, axis: Any = None, keepdims: bool = False) -> Any:
    return call_named("divide", functions["sum"](x, axis, keepdims), x.size)


def _var(
    x: MaskedElements, axis: Any = None, keepdims: bool = False, *, ddof: float = 0,
    correction: float = 0,
) -> Any:  # fmt: skip
    apart = call_named("subtract", x, functions["mean"](x))
    squares = call_named("square", call_named("abs", apart))
    return functions["sum"](squares, axis, keepdims) / (x.size - (ddof or correction))


def _std(x: MaskedElements, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
    return call_named("sqrt", functions["var"](x, axis, keepdims, **options))


def _ptp(x: MaskedElements, axis: Any = None, keepdims: bool = False) -> Any:
    found = functions["max"](x, axis, keepdims), functions["min"](x, axis, keepdims)
    return call_named("subtract", *found)


def _average(
    x: MaskedElements, axis: Any = None, weights: Any = None, returned: bool = False,
    *, keepdims: bool = False,
) -> Any:  # fmt: skip
    if weights is None:
        found, total = functions["mean"](x, axis, keepdims), x.size
    else:
        total = functions["sum"](weights, axis, keepdims)
        found = functions["sum"](call_named("multiply", x, weights), axis, keepdims) / total
    return (found, total) if returned else found


def _dot(x: Any, y: Any) -> Any:
    """Return the product of two vectors of elements that one mask chose."""
    if not (isinstance(x, MaskedElements) and isinstance(y, MaskedElements)):
        raise unknown_place()
    return functions["sum"](call_named("multiply", x, y))


def _cumsum(x: MaskedElements, axis: int | None = None, *, dtype: Any = None) -> Any:
    """Return cumulative sums in the order in which NumPy chooses elements."""
    if axis not in (None, 0, -1):
        raise BoundsError(
            f"cumsum: elements that a mask chooses lie along axis 0, not {axis!r:.60}"
        )
    numbers = call_named("where", x.mask, x.array, np.zeros((), x.dtype))
    found = call_named("cumsum", call_named("ravel", numbers), 0, dtype=dtype)
    return MaskedElements(call_named("reshape", found, x.mask.shape), x.mask)


def _norm(x: MaskedElements, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm of a vector of chosen elements, which zeros in the place of others keep."""
    if ord is not None and not (isinstance(ord, int | float) and ord > 0):
        raise ArgumentError(
            f"norm of elements that a mask chooses takes a positive order, not {ord!r:.60}"
        )
    if axis not in (None, 0, -1):
        raise BoundsError(f"norm: elements that a mask chooses lie along axis 0, not {axis!r:.60}")
    numbers = call_named("where", x.mask, x.array, np.zeros((), x.dtype))
    return call_named("norm", call_named("ravel", numbers), ord, 0, keepdims)


def _logsumexp(
    x: MaskedElements, axis: Any = None, keepdims: bool = False, *, b: Any = None,
    return_sign: bool = False,
) -> Any:  # fmt: skip
    if b is None and not return_sign:
        return _all_of("logsumexp", x, axis, keepdims, -np.inf)
    raise ArgumentError("logsumexp of elements that a mask chooses takes no b and no return_sign")


def _count_nonzero(x: MaskedElements, axis: Any = None, keepdims: bool = False) -> Any:
    return functions["sum"](call_named("not_equal", x, 0), axis, keepdims)


BY_ALL: Mapping[str, Callable[..., Any]] = {
    "all": _reduction("all", lambda dtype: True),
    "any": _reduction("any", lambda dtype: False),
    "average": _average,
    "count_nonzero": _count_nonzero,
    "cumsum": _cumsum,
    "dot": _dot,
    "inner": _dot,
    "logsumexp": _logsumexp,
    "matmul": _dot,
    "max": _reduction("max", _extreme(-1)),
    "mean": _mean,
    "min": _reduction("min", _extreme(1)),
    "nanprod": _reduction("nanprod", lambda dtype: 1),
    "nansum": _reduction("nansum", lambda dtype: 0),
    "norm": _norm,
    "prod": _reduction("prod", lambda dtype: 1),
    "ptp": _ptp,
    "std": _std,
    "sum": _reduction("sum", lambda dtype: 0),
    "var": _var,
}

# Reductions of lists of such elements over the list.
OF_STACKS = frozenset((
    "all", "any", "logsumexp", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
))  # fmt: skip
