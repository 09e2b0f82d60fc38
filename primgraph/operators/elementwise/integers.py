"""Divisors, bits and flat indices of integers, without derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.assumptions import assume_at_least
from primgraph.ir.types import INT64, as_dtype
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import abs, clip, floor_divide, multiply, remainder
from primgraph.operators.elementwise.logic import (
    bitwise_and,
    equal,
    left_shift,
    not_equal,
    right_shift,
    where,
)
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    axis_of,
    convert_dtype,
    entries_of,
    lift,
    promote_operands,
    require_integer,
    ufunc_dtypes,
)
from primgraph.operators.reduce.reductions import sum as sum_over
from primgraph.operators.shape.creation import astype
from primgraph.operators.shape.padding import pad
from primgraph.operators.shape.shaping import moveaxis, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import bits


def _integers(name: str, x1: ArrayLike, x2: ArrayLike) -> list[Variable]:
    found = [lift(x) for x in (x1, x2)]
    if any(v.dtype.kind not in "iu" for v in found):
        raise DTypeError(f"{name} takes integers, not {found[0].type} and {found[1].type}")
    return promote_operands(x1, x2, dtype=ufunc_dtypes(np.gcd, x1, x2)[-1], name=name)


@public
def gcd(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the greatest common divisor of integers; with 0 it is the size of the other one.

    Raises `DTypeError` for other than integers.

    >>> pg.gcd(12, 18)
    tensor(6, dtype=int64)
    """
    return emit(bits.gcd, *_integers("gcd", x1, x2))


@public
def lcm(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the least common multiple of integers, 0 if one of them is; see `gcd`.

    >>> pg.lcm(4, 6)
    tensor(12, dtype=int64)
    """
    x, y = _integers("lcm", x1, x2)
    common = emit(bits.gcd, x, y)
    parts = floor_divide(abs(x), where(equal(common, 0), 1, common))
    return multiply(parts, abs(y))


@public
def bitwise_count(x: ArrayLike) -> Variable:
    """Count the set bits of the magnitude of each integer, as uint8.

    Added up in pairs of 1, 2, 4, ... bits. Raises `DTypeError` for dtypes other than integers.

    >>> pg.bitwise_count([7, 8])
    tensor([3, 1], dtype=uint8)
    """
    value = lift(x)
    if value.dtype.kind not in "iu":
        raise DTypeError(f"bitwise_count takes integers, not {value.type}")
    width = 8 * value.dtype.itemsize
    kind = np.dtype(f"u{value.dtype.itemsize}")
    found, step = convert_dtype(abs(value), kind), 1
    while step < width:
        mask = np.array(sum_of_bits(width, step), kind)
        low = bitwise_and(found, mask)
        found = low + bitwise_and(right_shift(found, np.array(step, kind)), mask)
        step *= 2
    return astype(found, np.uint8)


def sum_of_bits(width: int, step: int) -> int:
    """Return the number in which every second group of `step` bits is set."""
    block = (1 << step) - 1
    return sum(block << place for place in range(0, width, 2 * step))


@public
def unravel_index(x: ArrayLike, shape: Any, order: str = "C") -> tuple[Variable, ...]:
    """Return the index along each axis of an array of `shape` for flat indices.

    `order` is "C", with the last axis fastest, or "F". Raises `DTypeError` for dtypes other than
    integers, `ArgumentError` for known indices out of range.

    >>> pg.unravel_index(6, (3, 4))
    (tensor(1, dtype=int64), tensor(2, dtype=int64))
    """
    value = lift(x)
    if value.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index takes integers, not {value.type}")
    extents = [require_integer("unravel_index", n) for n in entries_of(shape)]
    _require_order("unravel_index", order)
    if not isinstance(x, Variable):
        np.unravel_index(np.asarray(x), extents)
    left, found = convert_dtype(value, INT64), []
    for extent in extents[::-1] if order == "C" else extents:
        found.append(remainder(left, extent))
        left = floor_divide(left, extent)
    return tuple(found[::-1] if order == "C" else found)


def _require_order(name: str, order: str) -> None:
    if order not in ("C", "F"):
        raise ArgumentError(f"{name}: order is 'C' or 'F', not {order!r:.40}")


@public
def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Any, mode: Any = "raise", order: str = "C"
) -> Variable:
    """Return the flat indices of elements of an array with extents `dims`, from indices by axis.

    With `mode` "clip", indices out of range are clipped, with "wrap" taken modulo the size;
    otherwise they are assumed to be valid. Raises `ArgumentError` for another mode or order, and
    unless there are as many indices as axes.

    >>> pg.ravel_multi_index((1, 2), (3, 4))
    tensor(6, dtype=int64)
    """
    extents = [require_integer("ravel_multi_index", n) for n in entries_of(dims)]
    if not isinstance(multi_index, list | tuple | np.ndarray | Variable):
        raise ArgumentError(f"ravel_multi_index takes a list of places, not {multi_index!r:.60}")
    places = [convert_dtype(lift(p), INT64) for p in multi_index]
    modes = [mode] * len(extents) if isinstance(mode, str) else list(mode)
    _require_order("ravel_multi_index", order)
    if len(places) != len(extents) or len(modes) != len(extents):
        raise ArgumentError(f"ravel_multi_index: {len(places)} places for {len(extents)} extents")
    found: Any = 0
    axes = range(len(extents)) if order == "C" else reversed(range(len(extents)))
    for a in axes:
        if modes[a] not in ("raise", "wrap", "clip"):
            raise ArgumentError(f"mode is 'raise', 'wrap' or 'clip', not {modes[a]!r:.40}")
        place = places[a]
        if modes[a] == "wrap":
            place = remainder(place, extents[a])
        elif modes[a] == "clip":
            place = clip(place, 0, extents[a] - 1)
        found = found * extents[a] + place
    result: Variable = lift(found)
    return result


_BYTE = as_dtype("uint8")
_ORDERS = {"big": np.arange(7, -1, -1), "little": np.arange(8)}


def _shifts(name: str, bitorder: Any) -> Variable:
    """Return the place in a byte of each of 8 bits in a row."""
    if bitorder not in _ORDERS:
        raise ArgumentError(f"{name}: bitorder is 'big' or 'little', not {bitorder!r:.60}")
    return lift(_ORDERS[bitorder].astype(np.uint8))


def _last_axis(name: str, x: Variable, axis: int | None) -> tuple[Variable, int]:
    """Return `x` with an axis in the last place, and where it was; one axis for None and 0-d."""
    if axis is None or x.ndim == 0:
        return reshape_to(x, (x.size,)), 0
    number = axis_of(name, x, axis)
    return moveaxis(x, number, -1), number


@public
def packbits(x: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Variable:
    """Pack elements, as bits that are 1 unless the element is 0, into bytes along `axis`.

    Without an axis in row-major order. The last byte is filled up with zeros. With `bitorder`
    "little" the first bit is the lowest one. Raises `DTypeError` for other than booleans and
    integers.

    >>> pg.packbits([True, False, False, True])
    tensor([144], dtype=uint8)
    """
    value = lift(x)
    if value.dtype.kind not in "biu":
        raise DTypeError(f"packbits takes booleans or integers, not {value.type}")
    rows, number = _last_axis("packbits", value, axis)
    count = (rows.shape[-1] + 7) // 8
    missing = count * 8 - rows.shape[-1]
    padded = pad(not_equal(rows, 0), [(0, 0)] * (rows.ndim - 1) + [(0, missing)])
    padded = reshape_to(padded, (*rows.shape[:-1], count, 8))
    weighed = left_shift(convert_dtype(padded, _BYTE), _shifts("packbits", bitorder))
    found: Variable = sum_over(weighed, -1, dtype=_BYTE)
    return moveaxis(found, -1, number)


@public
def unpackbits(
    x: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Variable:
    """Return the bits of bytes along `axis`, or without one in row-major order, as uint8.

    `count` is the number of bits to return, filled up with zeros; a negative one says how many to
    leave out. Raises `DTypeError` for other than uint8.

    >>> pg.unpackbits(np.uint8([144]), count=4)
    tensor([1, 0, 0, 1], dtype=uint8)
    """
    value = lift(x)
    if value.dtype != _BYTE:
        raise DTypeError(f"unpackbits takes uint8, not {value.type}")
    rows, number = _last_axis("unpackbits", value, axis)
    parts = right_shift(reshape_to(rows, (*rows.shape, 1)), _shifts("unpackbits", bitorder))
    found = reshape_to(bitwise_and(parts, 1), (*rows.shape[:-1], rows.shape[-1] * 8))
    if count is not None:
        found = _resized(found, require_integer("unpackbits", count))
    return moveaxis(found, -1, number)


def _resized(x: Variable, count: int) -> Variable:
    """Return `count` elements along the last axis, with zeros behind, or all but `-count`."""
    extent = x.shape[-1]
    if count < 0 and not assume_at_least(extent, -count):
        raise ArgumentError(f"unpackbits of {extent} bits cannot leave out {-count}")
    count = count if count >= 0 else extent + count
    kept = x[..., :count]
    missing = [(0, 0)] * (x.ndim - 1) + [(0, count - kept.shape[-1])]
    return pad(kept, missing)
