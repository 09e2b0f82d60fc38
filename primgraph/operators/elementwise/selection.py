"""Selection of elements by conditions and by indices, and set membership."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.types import INT64, as_axis
from primgraph.operators.call import handle_operator, public
from primgraph.operators.elementwise.arithmetic import clip, remainder
from primgraph.operators.elementwise.logic import equal, greater_equal, logical_not, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.index.known_elements import (
    elements,
    known_elements,
    public_by_elements,
)
from primgraph.operators.index.positions import flatnonzero, lift_list
from primgraph.operators.promotion import (
    array_of,
    axis_of,
    broadcast_to_shape,
    common_shape,
    convert_dtype,
    lift,
    require_flag,
    result_dtype,
)
from primgraph.operators.reduce.reductions import any
from primgraph.operators.shape.shaping import reshape, reshape_to
from primgraph.operators.variable import Variable, handles


@public
def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Variable:
    """Choose the element beside the first true condition, or else `default`.

    All are broadcast. Raises `ArgumentError` for lists of different lengths or of none.

    >>> pg.select([[True, False], [False, True]], [[1.0, 1.0], [2.0, 2.0]])
    tensor([1., 2.])
    """
    conditions, choices = _list_arrays("select", condlist), _list_arrays("select", choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(
            f"select takes as many conditions as choices, not {len(conditions)} and {len(choices)}"
        )
    dtype = result_dtype(*choices, default)
    found = lift(default, dtype)
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        found = where(_require_bool("select", condition), lift(choice, dtype), found)
    return found


def _list_arrays(name: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, Variable | np.ndarray) and arrays.ndim:
        return list(arrays)
    if not isinstance(arrays, list | tuple):
        raise ArgumentError(f"{name} takes lists of arrays, not {arrays!r:.60}")
    return list(arrays)


def _require_bool(name: str, condition: ArrayLike) -> Variable:
    value = lift(condition)
    if value.dtype.kind != "b":
        raise DTypeError(f"{name} takes conditions of booleans, not {value.type}")
    return value


@public
def choose(x: ArrayLike, choices: Sequence[ArrayLike], mode: str = "raise") -> Variable:
    """Choose for each integer of `x` the element at its place of that entry of `choices`.

    All are broadcast. Integers out of range are clipped or, with mode "wrap", taken modulo the
    number of choices. Raises `DTypeError` unless `x` has integers.

    >>> pg.choose([1, 0], [[1.0, 2.0], [3.0, 4.0]])
    tensor([3., 2.])
    """
    index, listed = lift(x), _list_arrays("choose", choices)
    if index.dtype.kind not in "iub":
        raise DTypeError(f"choose takes integers, not {index.type}")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose: mode is 'raise', 'wrap' or 'clip', not {mode!r:.60}")
    if not listed:
        raise ArgumentError("choose takes at least one choice")
    shape = common_shape("choose", index, *listed)
    index = broadcast_to_shape(convert_dtype(index, INT64), shape)
    count = len(listed)
    index = remainder(index, count) if mode == "wrap" else clip(index, 0, count - 1)
    dtype = result_dtype(*listed)
    found = broadcast_to_shape(lift(listed[0], dtype), shape)
    for number in range(1, count):
        found = where(equal(index, number), lift(listed[number], dtype), found)
    return found


@public_by_elements
def compress(
    condition: Any, x: ArrayLike, axis: int | None = None, *, size: int | None = None,
    fill_value: Any = 0,
) -> Variable:  # fmt: skip
    """Return the parts of `x` along `axis`, or elements of the flattened array, where it is true.

    With `size`, the first ones, padded with `fill_value`. Without it, raises `ArgumentError` for a
    condition that is a variable, as it would decide the shape. Raises `ShapeError` for a condition
    with more elements than parts.

    >>> pg.compress([True, False, True], [1.0, 2.0, 3.0])
    tensor([1., 3.])
    """
    return _take_masked("compress", condition, x, axis, size, fill_value)


@public_by_elements
def extract(
    condition: Any, x: ArrayLike, *, size: int | None = None, fill_value: Any = 0
) -> Variable:
    """Return the elements of `x` at the true conditions, in row-major order; see `compress`.

    >>> pg.extract([True, False, True], [1.0, 2.0, 3.0])
    tensor([1., 3.])
    """
    given = lift_list(condition) if handles((condition,)) else array_of(condition)
    is_whole = size is None and isinstance(given, Variable)
    flat = given if is_whole and _is_chosen(given, x, None) else given.ravel()
    return _take_masked("extract", flat, x, None, size, fill_value)


def _is_chosen(condition: Variable, x: ArrayLike, axis: int | None) -> bool:
    """Return whether a condition is known in the run only, and chooses elements, not parts."""
    is_mask = condition.dtype.kind == "b" and np.shape(x) == condition.shape  # type: ignore[arg-type]
    return is_mask and (axis is None or condition.ndim == 1) and (known_elements(condition) is None)


def _take_masked(
    name: str, condition: Any, x: ArrayLike, axis: int | None, size: int | None, fill_value: Any
) -> Variable:
    places: Any
    if size is None and isinstance(condition, Variable) and _is_chosen(condition, x, axis):
        chosen: Any = provider("elements of masks").choose(lift(x), condition)
        return cast("Variable", chosen)
    if size is None:
        places = np.flatnonzero(_mask(name, elements(name, condition), x, axis))
    else:
        places = flatnonzero(condition, size=size, fill_value=-1)
    return _take_places(name, x, places, axis, size is not None, fill_value)


def _mask(name: str, mask: Any, x: ArrayLike, axis: int | None) -> Any:
    shape = x.shape if handles((x,)) else np.shape(x)  # type: ignore[union-attr]
    lines = shape if axis is None else shape[as_axis(axis, len(shape)) :][:1]
    if mask.ndim != 1 or np.any(mask[math.prod(lines) :]):
        raise ShapeError(f"{name} of {list(shape)}: a condition of {mask.shape} does not fit")
    return mask


@handle_operator
def _take_places(
    name: str, x: ArrayLike, places: Any, axis: int | None, is_filled: bool, fill_value: Any
) -> Variable:
    value = lift(x)
    flat = reshape_to(value, (value.size,)) if axis is None else value
    number = axis_of(name, flat, 0 if axis is None else axis)
    if not is_filled:
        return take(flat, places, number)
    found = take(flat, clip(places, 0, None), number)
    is_there = greater_equal(places, 0)
    shape = tuple(-1 if i == number else 1 for i in range(flat.ndim))
    return where(reshape(is_there, shape), found, lift(fill_value, flat.dtype))


@public
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Variable:
    """Return whether each element is among others, or with `invert` whether it is not.

    `assume_unique` and `kind` have no effect.

    >>> pg.isin([1, 2, 3], [2, 3])
    tensor([False,  True,  True], dtype=bool)
    """
    value, others = lift(element), lift(test_elements)
    others = reshape_to(others, (others.size,))
    found = any(equal(reshape_to(value, (*value.shape, 1)), others), -1)
    return logical_not(found) if require_flag("invert", invert) else found
