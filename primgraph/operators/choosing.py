"""Elements chosen by conditions and by numbers, and whether they are among others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.types import INT64
from primgraph.operators.arithmetic import clip, remainder
from primgraph.operators.call import public
from primgraph.operators.fixed import public_with_fixed
from primgraph.operators.handle import ArrayLike
from primgraph.operators.indexing import take
from primgraph.operators.logic import equal, logical_not, where
from primgraph.operators.promotion import (
    array_of,
    axis_of,
    broadcasted,
    common_shape,
    converted,
    lift,
    require_flag,
    result_dtype,
)
from primgraph.operators.reductions import any
from primgraph.operators.shaping import reshaped
from primgraph.operators.variable import Variable, handles

__all__ = [
    "choose",
    "compress",
    "extract",
    "isin",
    "select",
]


@public
def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Variable:
    """From the first condition that is true, the element of the choice beside it, else `default`.

    All are broadcast. Raises `ArgumentError` for lists of different lengths or of none.
    """
    conditions, choices = _listed("select", condlist), _listed("select", choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(
            f"select takes as many conditions as choices, not {len(conditions)} and {len(choices)}"
        )
    dtype = result_dtype(*choices, default)
    found = lift(default, dtype)
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        found = where(_require_bool("select", condition), lift(choice, dtype), found)
    return found


def _listed(name: str, arrays: Any) -> list[Any]:
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
    """For each integer of `x`, the element in the place of `choices` that it names.

    All are broadcast. Integers that name no choice count as the nearest that does or, with mode
    "wrap", are counted in a circle. Raises `DTypeError` for other than integers.
    """
    index, listed = lift(x), _listed("choose", choices)
    if index.dtype.kind not in "iub":
        raise DTypeError(f"choose takes integers, not {index.type}")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose: mode is 'raise', 'wrap' or 'clip', not {mode!r:.60}")
    if not listed:
        raise ArgumentError("choose takes at least one choice")
    shape = common_shape("choose", index, *listed)
    index = broadcasted(converted(index, INT64), shape)
    count = len(listed)
    index = remainder(index, count) if mode == "wrap" else clip(index, 0, count - 1)
    dtype = result_dtype(*listed)
    found = broadcasted(lift(listed[0], dtype), shape)
    for number in range(1, count):
        found = where(equal(index, number), lift(listed[number], dtype), found)
    return found


@public_with_fixed("condition")
def compress(condition: Any, x: ArrayLike, axis: int | None = None) -> Variable:
    """The parts of `x` along `axis`, or elements of the flattened array, at the true conditions.

    Raises `ArgumentError` for a condition that is no constant, as it would decide the shape.
    """
    value = lift(x)
    flat = reshaped(value, (value.size,)) if axis is None else value
    number = axis_of("compress", flat, 0 if axis is None else axis)
    mask = _constant("compress", condition)
    if mask.ndim != 1 or mask.size > flat.shape[number]:
        raise ShapeError(f"compress of {flat.type}: a condition of shape {mask.shape} does not fit")
    return take(flat, np.flatnonzero(mask), number)


@public_with_fixed("condition")
def extract(condition: Any, x: ArrayLike) -> Variable:
    """The elements of `x` at the true conditions, in row-major order.

    Raises `ArgumentError` for a condition that is no constant, as it would decide the shape.
    """
    value, mask = lift(x), _constant("extract", condition)
    if mask.size > value.size:
        raise ShapeError(f"extract of {value.type}: a condition of shape {mask.shape} is too large")
    return take(reshaped(value, (value.size,)), np.flatnonzero(mask), 0)


def _constant(name: str, condition: Any) -> np.ndarray[Any, Any]:
    if handles((condition,)):
        raise ArgumentError(
            f"{name} takes a condition that is constant: how many elements there are is the shape",
            hint="choose between arrays of one shape with pg.where(condition, x, y)",
        )
    return array_of(condition).astype(bool)


@public
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Variable:
    """Whether each element is among others, each of which it is compared with; or whether not.

    `assume_unique` and `kind` mean nothing here.
    """
    value, others = lift(element), lift(test_elements)
    others = reshaped(others, (others.size,))
    found = any(equal(reshaped(value, (*value.shape, 1)), others), -1)
    return logical_not(found) if require_flag("invert", invert) else found
