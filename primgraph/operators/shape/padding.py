"""Padding of arrays in all modes of `np.pad`, one axis after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.assumptions import assume_at_least, is_at_least
from primgraph.ir.dims import is_extent, names_in
from primgraph.ir.types import Shape, smaller
from primgraph.operators.call import public
from primgraph.operators.handle import ArrayLike
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import (
    broadcast_to_shape,
    broadcasts_to,
    convert_dtype,
    lift,
    wrap,
)
from primgraph.operators.shape.joining import slice_axis
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit, handles
from primgraph.primitives import indexing, shapes
from primgraph.primitives.constants import filled_constant

# Modes whose padding is a statistic of the elements next to it.
_STATISTICS = {"maximum": "max", "mean": "mean", "median": "median", "minimum": "min"}
# The options of each mode that takes some.
_OPTIONS: Mapping[str, str] = {
    "constant": "constant_values",
    "linear_ramp": "end_values",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    **dict.fromkeys(_STATISTICS, "stat_length"),
}
_DEFAULTS: Mapping[str, Any] = {
    "constant_values": 0, "end_values": 0, "reflect_type": "even", "stat_length": None,
}  # fmt: skip
_MODES = sorted({*_OPTIONS, "edge", "empty", "wrap"})


@public
def pad(
    x: ArrayLike,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    stat_length: Any = None,
    end_values: Any = 0,
    reflect_type: str = "even",
) -> Variable:
    """Pad `x` on all sides: `pad_width` is a number, a pair, or a pair (before, behind) per axis.

    The modes are those of `np.pad`. The padding has `constant_values`; with mode `edge`, `reflect`,
    `symmetric` or `wrap` it has elements of `x`; with `maximum`, `mean`, `median` or `minimum` the
    statistic of the `stat_length` elements next to it, or of all; with `linear_ramp` numbers from
    the edge to `end_values`; with `empty` zeros. If `reflect_type` is "odd", reflected elements are
    subtracted from twice the edge. Options of modes are one number, a pair or a pair per axis; the
    values may be variables. Raises `ShapeError` for widths that are negative or too large and
    `ArgumentError` for other modes and options of other modes. Along an axis of symbolic size,
    widths are assumed to be at most one period.

    >>> pg.pad([1.0, 2.0], 1)
    tensor([0., 1., 2., 0.])
    >>> pg.pad([1.0, 2.0], (0, 2), "linear_ramp", end_values=0.0)
    tensor([1., 2., 1., 0.])
    """
    value = lift(x)
    options = {
        "constant_values": constant_values, "stat_length": stat_length, "end_values": end_values,
        "reflect_type": reflect_type,
    }  # fmt: skip
    option = _check_mode(mode, options)
    widths = _integer_pairs(value, "pad_width", pad_width)
    low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
    if all(n == 0 for n in (*low, *high)):
        return value
    if mode == "empty" or (mode == "constant" and _is_number(constant_values)):
        if constant_values == 0:
            return emit(shapes.pad, value, low=low, high=high)
        extents = (n + a + b for n, (a, b) in zip(value.shape, widths, strict=True))
        frame = wrap(filled_constant(constant_values, value.type.with_shape(tuple(extents))))
        return emit(shapes.slice_assign, frame, value, starts=low, steps=(1,) * value.ndim)
    given = _option_pairs(value, option, options.get(option))
    for axis, width in enumerate(widths):
        if any(width):
            value = _pad_axis(value, axis, width, mode, given[axis])
    return value


def _is_number(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic)


def _check_mode(mode: Any, options: Mapping[str, Any]) -> str:
    """Return the name of the option that a mode takes; the others must not be given."""
    if not isinstance(mode, str) or mode not in _MODES:
        raise ArgumentError(
            f"pad: mode {mode!r:.60} is not supported",
            hint=f"modes: {', '.join(map(repr, _MODES))}",
        )
    mine = _OPTIONS.get(mode, "")
    for name, value in options.items():
        is_plain = value is None or isinstance(value, str) or _is_number(value)
        if name != mine and not (is_plain and value == _DEFAULTS[name]):
            raise ArgumentError(f"pad: unsupported keyword arguments for mode {mode!r}: {name}")
    if options["reflect_type"] not in ("even", "odd"):
        kind = options["reflect_type"]
        raise ArgumentError(f"reflect_type of pad is 'even' or 'odd', not {kind!r:.60}")
    return mine


def _integer_pairs(x: Variable, name: str, given: Any) -> list[tuple[int, int]]:
    """Return a pair (before, behind) of counts for each axis."""
    whole = f"pad of {x.type}: `{name}` must be of integral type, not {given!r:.60}"
    if any(v.dtype.kind not in "iu" for v in handles((given,))):
        raise ArgumentError(whole)
    try:
        array = np.asarray(given)
        pairs = np.broadcast_to(array, (x.ndim, 2)).tolist()
    except ValueError as error:
        raise ShapeError(f"pad of {x.type}: {name} {given!r:.60}: {error}") from None
    if array.dtype.kind not in "iu" and not all(is_extent(n) for pair in pairs for n in pair):
        raise ArgumentError(whole)
    if not all(assume_at_least(n, 0) for pair in pairs for n in pair):
        raise ShapeError(
            f"pad of {x.type}: index can't contain negative values: {name} {given!r:.60}"
        )
    return [(a, b) for a, b in pairs]


def _option_pairs(x: Variable, option: str, given: Any) -> Sequence[Any]:
    """Return the option of a mode for each axis."""
    if option == "reflect_type":
        return [given] * x.ndim
    if not option or given is None:
        return [(None, None)] * x.ndim
    if option == "stat_length":
        return _integer_pairs(x, option, given)
    values = functions["array"](given) if handles((given,)) else lift(given)
    if not broadcasts_to(values.shape, (x.ndim, 2)):
        raise ShapeError(f"pad of {x.type}: {option} {given!r:.60} do not fit")
    values = broadcast_to_shape(values, (x.ndim, 2))
    return [(values[i, 0], values[i, 1]) for i in range(x.ndim)]


def _pad_axis(x: Variable, axis: int, width: tuple[int, int], mode: str, given: Any) -> Variable:
    """Pad one axis, by elements along it or by what an option gives."""
    if x.shape[axis] == 0 and mode != "constant":
        raise ShapeError(
            f"pad of {x.type}: can't extend empty axis {axis} using modes other than "
            f"'constant' or 'empty', such as {mode!r}"
        )
    if mode == "constant":
        sides = [broadcast_to_shape(v, _side_shape(x, axis, 1)) for v in given]
    elif mode == "linear_ramp":
        ramps = [_ramp(x, axis, width[i], given[i], i) for i in (0, 1)]
        return _join(x, ramps, axis)
    elif mode in _STATISTICS:
        sides = [_statistic(x, axis, mode, n, i) for i, n in enumerate(given)]
    elif given == "odd" and x.shape[axis] != 1:
        return _reflect_oddly(x, axis, width, mode)
    elif names_in((x.shape[axis], *width)):
        return _join(x, _reflected_sides(x, axis, *width, mode), axis)
    else:
        index = np.pad(np.arange(x.shape[axis]), width, mode=mode)  # type: ignore[call-overload]
        return emit(indexing.gather, x, lift(index), axis=axis)
    wide = [
        broadcast_to_shape(convert_dtype(v, x.dtype), _side_shape(x, axis, n))
        for v, n in zip(sides, width, strict=True)
    ]
    return _join(x, wide, axis)


def _side_shape(x: Variable, axis: int, extent: int) -> Shape:
    return (*x.shape[:axis], extent, *x.shape[axis + 1 :])


def _join(x: Variable, sides: Sequence[Variable], axis: int) -> Variable:
    return emit(shapes.concat, sides[0], x, sides[1], axis=axis)


def _statistic(x: Variable, axis: int, mode: str, length: int | None, side: int) -> Variable:
    """Return the statistic of `length` elements at one side of an axis, which stays."""
    extent = x.shape[axis]
    if length is not None and not is_at_least(length, extent):
        length = smaller(length, extent)
        x = slice_axis(x, axis, (extent - length) * side, length)
    found: Variable = functions[_STATISTICS[mode]](x, axis, True)
    if x.dtype.kind in "iu":
        found = functions["round"](found)
    return found


def _ramp(x: Variable, axis: int, width: int, end: Variable, side: int) -> Variable:
    """Return numbers from `end` to the edge of one side, without the edge."""
    edge = slice_axis(x, axis, (x.shape[axis] - 1) * side, 1)
    edge = reshape_to(edge, (*x.shape[:axis], *x.shape[axis + 1 :]))
    steps = functions["linspace"](end, edge, width, False, dtype=x.dtype)
    ramp: Variable = functions["moveaxis"](steps, 0, axis)
    return slice_axis(ramp, axis, width - 1, width, -1) if side else ramp


def _reflect_oddly(x: Variable, axis: int, width: tuple[int, int], mode: str) -> Variable:
    """Pad an axis by twice its edges minus the reflected elements, as often as that is needed.

    Each reflection is at most as long as what it reflects, in whole periods of the given elements.
    """
    if names_in((x.shape[axis], *width)):
        # One reflection is assumed to be enough.
        return _join(x, _odd_sides(x, axis, *width, mode), axis)
    skipped = int(mode == "reflect")
    period = x.shape[axis] - skipped
    left, right = width
    while left or right:
        length = (x.shape[axis] - skipped) // period * period
        low, high = min(length, left), min(length, right)
        x = _join(x, _odd_sides(x, axis, low, high, mode), axis)
        left, right = left - low, right - high
    return x


def _odd_sides(x: Variable, axis: int, low: int, high: int, mode: str) -> list[Variable]:
    """Return both sides by one odd reflection."""
    ends = (0, x.shape[axis] - 1)
    reflected = _reflected_sides(x, axis, low, high, mode)
    return [
        convert_dtype(functions["subtract"](2 * slice_axis(x, axis, end, 1), part), x.dtype)
        for end, part in zip(ends, reflected, strict=True)
    ]


def _reflected_sides(x: Variable, axis: int, low: int, high: int, mode: str) -> list[Variable]:
    """Return the padding of both sides by elements that are assumed to exist."""
    extent = x.shape[axis]
    parts = {
        "edge": ((0, 1, 1), (extent - 1, 1, 1)),
        "reflect": ((low, low, -1), (extent - 2, high, -1)),
        "symmetric": ((low - 1, low, -1), (extent - 1, high, -1)),
        "wrap": ((extent - low, low, 1), (0, high, 1)),
    }
    sides = [slice_axis(x, axis, *part) for part in parts[mode]]
    if mode == "edge":
        widths = zip(sides, (low, high), strict=True)
        sides = [broadcast_to_shape(part, _side_shape(x, axis, n)) for part, n in widths]
    return sides
