"""Positions of elements: nonzero and its relatives, grids of positions, and zeros at the ends.

With known elements, of numbers, arrays and tensors, there are as many results as in NumPy. With
variables there are `size` results, as in JAX: further ones are dropped, missing ones are filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import INT64, as_axes
from primgraph.operators.call import handle_operator
from primgraph.operators.elementwise.logic import not_equal, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.known_elements import constant, elements, public_by_elements
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.promotion import array_of, convert_dtype, lift, require_integer
from primgraph.operators.reduce.reductions import cumsum, sum
from primgraph.operators.shape.creation import arange, astype
from primgraph.operators.shape.joining import stack
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit, handles
from primgraph.primitives import sorting


def require_size(name: str, size: Any) -> int:
    """Return the number of results that is asked for, which must not be negative."""
    count = require_integer(name, size)
    if count < 0:
        raise ArgumentError(f"{name}: there are no {count} elements")
    return count


@handle_operator
def first_places(name: str, mask: ArrayLike, size: int) -> tuple[Variable, Variable]:
    """Return the first `size` true positions of the flattened array, and their total number."""
    value = lift(mask)
    counted = cumsum(convert_dtype(reshape_to(not_equal(value, 0), (value.size,)), INT64))
    found = emit(
        sorting.searchsorted, counted, arange(1, require_size(name, size) + 1), right=False
    )
    total = sum(convert_dtype(not_equal(value, 0), INT64))
    return found, total


@public_by_elements
def flatnonzero(x: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> Variable:
    """Return the positions of nonzero elements in the flattened array, in order, as int64.

    With `size`, the first ones, padded with `fill_value`. Raises `ArgumentError` for a variable
    without it.

    >>> pg.flatnonzero([0.0, 5.0, 2.0])
    tensor([1, 2], dtype=int64)
    """
    if size is None:
        found: Variable = constant(np.flatnonzero(elements("flatnonzero", x)))
        return found
    return _flat_of_size(x, size, fill_value)


@handle_operator
def _flat_of_size(x: ArrayLike, size: int, fill_value: Any) -> Variable:
    places, total = first_places("flatnonzero", x, size)
    return where(arange(size) < total, places, lift(fill_value, INT64))


@public_by_elements
def nonzero(x: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> tuple[Variable, ...]:
    """Return the positions of nonzero elements along each axis, in order; see `flatnonzero`.

    `fill_value` is one number for all axes, or one each. Raises `ArgumentError` for a 0-d array.

    >>> pg.nonzero([0.0, 5.0, 2.0])
    (tensor([1, 2], dtype=int64),)
    """
    if size is None:
        return tuple([constant(i) for i in _nonzero(elements("nonzero", x))])
    return _nonzero_of_size(x, size, fill_value)


def _nonzero(found: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    if found.ndim == 0:
        raise ArgumentError("nonzero of an array without axes: pg.atleast_1d(x) has one")
    return found.nonzero()


@handle_operator
def _nonzero_of_size(x: ArrayLike, size: int, fill_value: Any) -> tuple[Variable, ...]:
    value = lift(x)
    if value.ndim == 0:
        raise ArgumentError("nonzero of an array without axes: pg.atleast_1d(x) has one")
    places, total = first_places("nonzero", value, size)
    fills = list(fill_value) if isinstance(fill_value, list | tuple) else [fill_value] * value.ndim
    if len(fills) != value.ndim:
        raise ArgumentError(f"nonzero of {value.type}: {len(fills)} fill values")
    found, step = [], 1
    for extent in value.shape[::-1]:
        found.append((places // step) % extent if type(extent) is not int or extent else places)
        step *= extent
    is_there = arange(size) < total
    return tuple(
        [where(is_there, p, lift(f, INT64)) for p, f in zip(reversed(found), fills, strict=True)]
    )


@public_by_elements
def argwhere(x: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> Variable:
    """Return the positions of what is not zero, a row each; see `nonzero`.

    >>> pg.argwhere([0.0, 5.0, 2.0])
    tensor([[1],
            [2]], dtype=int64)
    """
    if size is None:
        found: Variable = constant(np.argwhere(elements("argwhere", x)))
        return found
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


@public_by_elements
def ix_(*args: ArrayLike) -> tuple[Variable, ...]:
    """Return vectors along an axis each, by which `x[ix_(rows, columns)]` takes a grid of elements.

    Booleans, which must be known, stand for their true positions. Raises `ShapeError` unless all
    are vectors.

    >>> [a.shape for a in pg.ix_([0, 1], [2, 3, 4])]
    [(2, 1), (1, 3)]
    """
    found = []
    for i, arg in enumerate(args):
        given = arg if handles((arg,)) else array_of(arg)
        given = lift_list(given)
        if given.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, not an array of shape {given.shape}")
        if given.dtype.kind == "b":
            given = np.flatnonzero(elements("ix_", given, ""))
        elif given.size == 0:
            given = astype(given, INT64)
        shape = tuple(-1 if j == i else 1 for j in range(len(args)))
        found.append(named_function("reshape")(given, shape))
    return tuple(found)


def lift_list(given: Any) -> Any:
    """Convert a list with handles in it to an array; return other objects as they are."""
    return constant(given) if isinstance(given, list | tuple) else given


@public_by_elements
def trim_zeros(x: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Variable:
    """Return `x` without the zeros at the front and at the back along each axis, or along `axis`.

    `trim` says where: "f", "b" or "fb". The elements must be known. Raises `ArgumentError` for
    another `trim`.

    >>> pg.trim_zeros([0.0, 1.0, 0.0])
    tensor([1.])
    """
    sides = trim.lower() if isinstance(trim, str) else None
    if sides not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim is 'f', 'b' or 'fb', not {trim!r:.40}")
    found = elements("trim_zeros", x, "")
    places = np.argwhere(found)
    axes = as_axes(axis, found.ndim)
    key = []
    for a, extent in enumerate(found.shape):
        if a not in axes:
            key.append(slice(None))
        elif not len(places):
            key.append(slice(0, 0))
        else:
            low = int(places[:, a].min()) if "f" in sides else 0
            key.append(slice(low, int(places[:, a].max()) + 1 if "b" in sides else extent))
    result: Variable = named_function("getitem")(lift_list(x), tuple(key))
    return result
