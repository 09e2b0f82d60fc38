"""Conversion of arguments to plain arrays of the declared types, or errors."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, FeedError
from primgraph.ir.dims import Dim
from primgraph.ir.frontend.dlpack import convert_foreign_array
from primgraph.ir.types import FLOAT64, INT64, NAME_OF_DTYPE, Shape, TensorType

# NumPy's flags C_CONTIGUOUS and ALIGNED, and these together with WRITEABLE.
_READY = 0x101
_WRITABLE = 0x501

# All integers up to this number are exact in float64.
_EXACT = 2**53


def as_feed(array: Any, type: TensorType, name: str) -> np.ndarray[Any, Any]:
    """Return `array` as a contiguous, aligned, native base-class array of exactly that type.

    Such an array is returned itself. Others are converted, if no value can change: arrays by
    NumPy's "safe" casting, Python numbers and lists by "same_kind". Everything else raises
    `FeedError`, with the declared and the given type. This includes integers that a float dtype
    cannot represent, and missing values of pandas. Shapes are never broadcast.
    """
    if (
        array.__class__ is np.ndarray
        and array.dtype is type.dtype
        and array.shape == type.shape
        and array.flags.num & _READY == _READY
        and (1 not in type.shape or has_own_strides(array))
    ):
        return array
    array = convert_foreign_array(array)
    if type.names:
        return as_feed(array, _resolve_sizes(array, type), name)
    if type.shape == () and _is_number_of(array, type):
        return np.array(array, type.dtype)
    found = _as_base_array(array, type, name)
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


def _resolve_sizes(array: Any, type: TensorType) -> TensorType:
    """Return `type` with symbolic sizes replaced by the sizes of `array`.

    Consistency with other arguments is not checked here.
    """
    given = getattr(array, "shape", None)
    shape: Shape = given if given.__class__ is tuple else np.shape(array)
    if len(shape) != type.ndim:
        shape = (0,) * type.ndim
    pairs = zip(type.shape, shape, strict=True)
    return type.with_shape(tuple([int(m) if n.__class__ is Dim else n for n, m in pairs]))


def has_own_strides(array: np.ndarray[Any, Any]) -> bool:
    """Return whether a contiguous array has the strides of a new one, or no elements.

    NumPy ignores strides along axes of size 1 when it checks contiguity, but chooses loops by them,
    which round differently.
    """
    return array.size == 0 or array.strides == strides_of(array.shape, array.itemsize)


def strides_of(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides, in bytes, of a new array."""
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

    There is one, or None, per output; results in donated inputs have None.
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
        for other in others:
            if np.may_share_memory(array, other):
                raise ArgumentError(f"the array for result {k} shares memory with another array")
        others.append(array)


def _is_number_of(number: Any, type: TensorType) -> bool:
    """Return whether `number` is a scalar of exactly that dtype, or a Python number that fits it.

    These are the common arguments of small problems; this check is fast, and others are checked in
    full.
    """
    kind, dtype = number.__class__, type.dtype
    if kind is int:
        return dtype in (FLOAT64, INT64) and -_EXACT <= number <= _EXACT
    return kind is dtype.type or (kind is float and dtype is FLOAT64)


def _as_base_array(array: Any, type: TensorType, name: str) -> np.ndarray[Any, Any]:
    """Return the argument as a base-class array of a supported dtype."""
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
    """Return whether the cast is allowed; Python integers may go to any dtype that holds them."""
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
    """Return whether a pandas column, of a dtype with missing values, has any."""
    masked = hasattr(getattr(array, "dtype", None), "na_value") and hasattr(array, "isna")
    return masked and bool(np.any(array.isna()))


def _is_exact(found: np.ndarray[Any, Any], ready: np.ndarray[Any, Any]) -> bool:
    """Return whether all integers are exact as floats; computed only if they may not be."""
    held = 2 ** (np.finfo(ready.dtype).nmant + 1)
    if found.size == 0 or np.iinfo(found.dtype).max <= held:
        return True
    if -held <= int(found.min()) and int(found.max()) <= held:
        return True
    # Casting a float beyond the largest integer back is undefined.
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
