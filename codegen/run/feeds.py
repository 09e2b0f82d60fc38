"""Feeds: whatever the user passes becomes a plain array of the declared type, or an error."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, FeedError
from primgraph.ir.dims import Dim
from primgraph.ir.frontend.dlpack import exchanged
from primgraph.ir.types import FLOAT64, INT64, NAME_OF_DTYPE, Shape, TensorType

# NumPy's numbers of the flags C_CONTIGUOUS and ALIGNED, and these together with WRITEABLE.
_READY = 0x101
_WRITABLE = 0x501

# All integers up to here are numbers of float64.
_EXACT = 2**53


def as_feed(array: Any, type: TensorType, name: str) -> np.ndarray[Any, Any]:
    """`array` as a contiguous, aligned, native array of the base class, of exactly that type.

    An array that is so already is returned itself; others are converted once, if no value can
    change: arrays by NumPy's "safe" casting, Python's numbers and lists by "same_kind". Raises
    `FeedError`, with what is declared and what is given, for everything else: for integers that
    a float dtype does not hold, and for what pandas says is missing too. A wrong shape is never
    broadcast.
    """
    if (
        array.__class__ is np.ndarray
        and array.dtype is type.dtype
        and array.shape == type.shape
        and array.flags.num & _READY == _READY
        and (1 not in type.shape or has_own_strides(array))
    ):
        return array
    array = exchanged(array)
    if type.names:
        return as_feed(array, _given(array, type), name)
    if type.shape == () and _is_number_of(array, type):
        return np.array(array, type.dtype)
    found = _found(array, type, name)
    if found.shape != type.shape:
        raise _error(name, type, found, "the shapes differ")
    given = isinstance(array, np.ndarray | np.generic) or hasattr(array, "__array__")
    casting = "safe" if given else "same_kind"
    if found.dtype != type.dtype and not _may_cast(found, type, casting):
        raise _error(name, type, found, _why_not(found, type, casting))
    with np.errstate(all="ignore"):
        ready = np.require(found.astype(type.dtype, copy=False), None, ["C", "A"])
        if found.dtype.kind in "iu" and type.is_float and not _is_exact(found, ready):
            raise _error(name, type, found, "some of its integers would be rounded")
    return ready if has_own_strides(ready) else ready.copy()


def _given(array: Any, type: TensorType) -> TensorType:
    """`type` with the extents of `array` in the place of those that are not known.

    Whether they fit what else is fed is not looked at here.
    """
    given = getattr(array, "shape", None)
    shape: Shape = given if given.__class__ is tuple else np.shape(array)
    if len(shape) != type.ndim:
        shape = (0,) * type.ndim
    pairs = zip(type.shape, shape, strict=True)
    return type.with_shape(tuple([int(m) if n.__class__ is Dim else n for n, m in pairs]))


def has_own_strides(array: np.ndarray[Any, Any]) -> bool:
    """Whether a contiguous array has the strides of a fresh one, or no elements.

    NumPy counts an array as contiguous whatever the strides along axes of one element, and chooses
    loops that round differently by them.
    """
    return array.size == 0 or array.strides == strides_of(array.shape, array.itemsize)


def strides_of(shape: Shape, itemsize: int) -> tuple[int, ...]:
    """How many bytes neighbours along each axis of a fresh array lie apart."""
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def checked_out(
    given: Sequence[Any],
    types: Sequence[TensorType],
    feeds: Sequence[np.ndarray[Any, Any]],
    donated: Container[int],
) -> None:
    """Raise `ArgumentError` unless results can be written into the arrays `given`.

    There is one, or None, for each output; None for those that are left in a donated input.
    """
    if len(given) != len(types):
        raise ArgumentError(f"out has {len(given)} arrays for {len(types)} results")
    others = list(feeds)
    for k, (array, type) in enumerate(zip(given, types, strict=True)):
        if array is None:
            continue
        if k in donated:
            raise ArgumentError(f"result {k} is left in a donated array: out must have None for it")
        fits = array.__class__ is np.ndarray and (array.dtype, array.shape) == (
            type.dtype,
            type.shape,
        )
        if not fits or array.flags.num & _WRITABLE != _WRITABLE:
            raise ArgumentError(f"result {k} needs a writable array of {type}, in row-major order")
        if any(np.may_share_memory(array, other) for other in others):
            raise ArgumentError(f"the array for result {k} shares memory with another array")
        others.append(array)


def _is_number_of(number: Any, type: TensorType) -> bool:
    """Whether `number` is one of exactly that dtype, or one of Python's that fits it for certain.

    They are what small problems are fed, and quick; what is not known here is looked at closely.
    """
    kind, dtype = number.__class__, type.dtype
    if kind is int:
        return dtype in (FLOAT64, INT64) and -_EXACT <= number <= _EXACT
    return kind is dtype.type or (kind is float and dtype is FLOAT64)


def _found(array: Any, type: TensorType, name: str) -> np.ndarray[Any, Any]:
    """What is given as an array of the base class, of a dtype that can be a tensor's."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise FeedError(
            f"input {name!r} is {type}: a masked array with masked entries is given",
            hint="fill the masked entries first",
        )
    if _has_missing(array):
        raise FeedError(
            f"input {name!r} is {type}: {array.__class__.__name__} with missing values is given",
            hint="fill them first, with fillna",
        )
    try:
        found = np.asarray(np.ma.getdata(array) if np.ma.isMaskedArray(array) else array)
    except (TypeError, ValueError, OverflowError) as error:
        raise FeedError(
            f"input {name!r} is {type}: {array.__class__.__name__} is not an array: {error}"
        ) from error
    if found.dtype.kind not in "biufc" or found.dtype.newbyteorder("=") not in NAME_OF_DTYPE:
        raise _error(
            name, type, found, "only booleans, integers, floats and complex numbers can be fed"
        )
    return found


def _may_cast(found: np.ndarray[Any, Any], type: TensorType, casting: Any) -> bool:
    """Whether the cast is allowed; Python integers may go to any integer dtype that holds them."""
    if casting == "same_kind" and found.dtype.kind in "iu" and type.dtype.kind in "iu":
        return found.size == 0 or _holds(found, type)
    return np.can_cast(found.dtype, type.dtype, casting)


def _why_not(found: np.ndarray[Any, Any], type: TensorType, casting: str) -> str:
    if found.dtype.kind in "iu" and type.dtype.kind in "iu" and casting == "same_kind":
        return "some of its integers are out of range"
    if found.dtype.kind == "c" and type.dtype.kind != "c":
        return "and a complex number is no real one: feed array.real"
    return f"a {casting} cast does not exist"


def _holds(found: np.ndarray[Any, Any], type: TensorType) -> bool:
    limits = np.iinfo(type.dtype)
    return limits.min <= int(found.min()) and int(found.max()) <= limits.max


def _has_missing(array: Any) -> bool:
    """Whether a column of pandas, of a dtype that tells missing values from NaN, has any."""
    masked = hasattr(getattr(array, "dtype", None), "na_value") and hasattr(array, "isna")
    return masked and bool(np.any(array.isna()))


def _is_exact(found: np.ndarray[Any, Any], ready: np.ndarray[Any, Any]) -> bool:
    """Whether integers are the same as floats; asked only where not all of them can be."""
    held = 2 ** (np.finfo(ready.dtype).nmant + 1)
    if found.size == 0 or np.iinfo(found.dtype).max <= held:
        return True
    if -held <= int(found.min()) and int(found.max()) <= held:
        return True
    # Back from a float beyond the largest integer, anything may come.
    inside = ready < np.ldexp(1.0, np.iinfo(found.dtype).bits - (found.dtype.kind == "i"))
    return bool(np.all(np.isfinite(ready) & inside & (ready.astype(found.dtype) == found)))


def _error(name: str, type: TensorType, found: np.ndarray[Any, Any], why: str) -> FeedError:
    native = found.dtype.newbyteorder("=")
    dtype = NAME_OF_DTYPE.get(native, str(found.dtype))
    given = f"{dtype}[{','.join(map(str, found.shape))}]"
    hint = ""
    if found.dtype.kind in "fiu" and type.dtype.kind in "fiu" and found.dtype != type.dtype:
        hint = f"write array.astype({type.dtype.name!r}) to convert it, or declare {dtype}"
    return FeedError(f"input {name!r} is {type}: {given} is given, {why}", hint=hint)
