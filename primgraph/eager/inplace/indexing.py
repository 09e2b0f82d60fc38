"""Index tensors: numbers and arrays in an index are data, and errors are raised at once."""

from __future__ import annotations

import operator
from collections.abc import Hashable
from types import EllipsisType, NoneType
from typing import Any, TypeVar, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.base.user_lines import instruction
from primgraph.eager.derivatives.differentiable import Differentiable
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.run import evaluation_count
from primgraph.errors import (
    ArgumentError,
    BoundsError,
    DTypeError,
    IndexKindError,
    PrimgraphError,
)
from primgraph.ir.types import Shape
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import handles

T = TypeVar("T", bound=Differentiable[Any])

# Types of the entries of a basic index, for which NumPy returns a view.
_BASIC = frozenset((int, slice, NoneType, EllipsisType))

# Types of the bounds of most slices.
_BOUNDS = frozenset((int, NoneType))

# Prefixes of NumPy's messages for objects that are not indices.
_OF_KINDS = ("only integers", "arrays used as indices")


def elements_at(tensor: T, index: Any) -> T:
    """Return `tensor[index]`, as NumPy defines it.

    Elements of masks and index arrays are data. So are integers and slice bounds that change at the
    same line between evaluations, with a fixed slice length. Raises NumPy's `IndexError` with its
    message if the index is known not to fit.
    """
    entries = index if isinstance(index, tuple) else (index,)
    index = with_numbers(index)
    entries = index if isinstance(index, tuple) else (index,)
    try:
        if _BASIC.issuperset(map(type, entries)):
            moving = _data_entries(tensor, entries)
            if moving and (found := _index_by_data(tensor, entries, moving)) is not None:
                return found
            given = index
        else:
            given = _positions(tensor.shape, entries)
        part: T = functions["getitem"](tensor, given)
    except (ArgumentError, BoundsError, DTypeError) as error:
        raise numpy_index_error(error, tensor.shape, entries) from None
    return part


def with_numbers(index: Any) -> Any:
    """Return the index with numbers in place of slice bounds that are tensors.

    While tracing, the bounds stay tensors, as they may differ in the next call.
    """
    kind = type(index)
    if (kind is not tuple and kind is not slice) or adopting.get() is not None:
        return index
    if kind is slice:
        return _with_plain_bounds(index)
    return tuple([_with_plain_bounds(e) if type(e) is slice else e for e in index])


def _with_plain_bounds(entry: slice) -> slice:
    """Return a slice with numbers in place of bounds that are tensors."""
    bounds: Any = (entry.start, entry.stop, entry.step)
    if _BOUNDS.issuperset(map(type, bounds)):
        return entry
    if not any(isinstance(n, Differentiable) for n in bounds):
        return entry
    return slice(*[operator.index(n) if handles((n,)) else n for n in bounds])


def numpy_index_error(
    error: PrimgraphError, shape: Shape, entries: tuple[Any, ...]
) -> PrimgraphError:
    """Return the error that NumPy raises for such an index, if any, with the lines of `error`."""
    said = _refusal(shape, _replace_tensors(entries))
    if said is None:
        return error
    return _error_class(said)(said, origin=error.origin, hint=error.hint)


def require_fit(shape: Shape, entries: tuple[Any, ...]) -> None:
    """Raise NumPy's `IndexError` if arrays that are already known do not fit an array."""
    known = _replace_tensors(entries)
    try:
        # Index an array without elements, so that nothing is copied.
        np.empty((0, *shape), bool)[(slice(None), *known)]
    except IndexError:
        said = _refusal(shape, known)
        if said is not None:
            raise _error_class(said)(said) from None


def _error_class(said: str) -> type[BoundsError | IndexKindError]:
    """Return the error class for a message of NumPy."""
    return IndexKindError if said.startswith(_OF_KINDS) else BoundsError


def _refusal(shape: Shape, known: tuple[Any, ...]) -> str | None:
    """Return NumPy's error message for an index that does not fit the shape; None if it fits."""
    try:
        np.broadcast_to(np.empty((), bool), shape)[known]
    except IndexError as error:
        return str(error)
    except (TypeError, ValueError):
        return None
    return None


def _replace_tensors(entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace tensors in `entries` by their arrays, or by zeros if not yet computed."""
    return tuple([_array_or_zeros(e) if isinstance(e, Differentiable) else e for e in entries])


def _array_or_zeros(tensor: Differentiable[Any]) -> Any:
    array = tensor.node.array
    return np.zeros(tensor.shape, tensor.dtype) if array is None else array


def constant(index: Any) -> Any:
    """Return `index` with arrays in place of tensors."""
    if isinstance(index, tuple):
        return tuple([constant(item) for item in index])
    return np.asarray(index) if isinstance(index, Differentiable) else index


def has_arrays(index: Any) -> bool:
    """Return whether `index`, without tensors, contains arrays or lists."""
    if isinstance(index, tuple):
        return any(has_arrays(item) for item in index)
    return isinstance(index, np.ndarray | list)


# Masks and lists.


def _positions(shape: Shape, entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace the masks in `entries` by the positions of true elements, whose number is in the
    shape.

    Lists of numbers become arrays: other positions do not change the structure.
    """
    arrays = tuple([_convert_list(item) for item in entries])
    masked = [_is_mask(item) for item in arrays]
    computed = tuple([np.asarray(i) if m else i for i, m in zip(arrays, masked, strict=True)])
    require_fit(shape, computed)
    found: list[Any] = []
    for item, is_mask in zip(computed, masked, strict=True):
        found += item.nonzero() if is_mask else [item]
    return tuple(found)


def _convert_list(item: Any) -> Any:
    """Convert a list of integers or booleans to an array, and a boolean scalar tensor to a bool."""
    if isinstance(item, Differentiable) and item.dtype.kind == "b" and item.ndim == 0:
        return bool(item)
    if type(item) is not list or not item or type(item[0]) not in (int, bool):
        return item
    kind = type(item[0])
    return np.array(item) if all(type(i) is kind for i in item) else item


def _is_mask(item: Any) -> bool:
    return (
        isinstance(item, Differentiable | np.ndarray) and item.dtype.kind == "b" and item.ndim > 0
    )


# Numbers and slices.


@final
@dataclass(slots=True)
class _IndexHistory:
    """Index numbers that one instruction used: the first ones, the evaluation count then, the
    others before the next evaluation, and the entries (`moving`) that changed later."""

    first: tuple[int, ...]
    looks: int
    others: set[tuple[int, ...]]
    moving: frozenset[int] = frozenset()


_KEPT = 4096
_MANY = 64
_met: dict[Hashable, _IndexHistory] = {}


def _data_entries(tensor: Differentiable[Any], entries: tuple[Any, ...]) -> frozenset[int]:
    """Return which `entries` are data here: those that change between evaluations."""
    node = tensor.node
    if not (node.tracked or node.array is None) or adopting.get() is not None:
        return frozenset()
    pattern: list[Hashable] = []
    numbers: list[int] = []
    for entry in entries:
        start, kind = _start(entry)
        numbers.append(start)
        pattern.append(kind)
    if not any(kind in (int, slice) or type(kind) is int for kind in pattern):
        return frozenset()
    return _moving_here((node.type, *pattern), tuple(numbers))


def moves(tensor: Differentiable[Any], entries: tuple[Any, ...]) -> bool:
    """Return whether numbers in `entries` change at this line between evaluations."""
    return _BASIC.issuperset(map(type, entries)) and bool(_data_entries(tensor, entries))


def _moving_here(pattern: Hashable, numbers: tuple[int, ...]) -> frozenset[int]:
    """Return which `numbers` differ, at the running line, from those of earlier evaluations.

    A Python loop over parts of one array uses the same numbers each time, and constant parts are
    cheaper.
    """
    key = (instruction(), pattern)
    met, now = _met.get(key), evaluation_count()
    if met is None:
        if len(_met) >= _KEPT:
            del _met[next(iter(_met))]
        met = _met[key] = _IndexHistory(numbers, now, {numbers})
    elif numbers not in met.others:
        if now == met.looks and len(met.others) < _MANY:
            met.others.add(numbers)
        else:
            pairs = enumerate(zip(numbers, met.first, strict=True))
            met.moving |= {i for i, (new, old) in pairs if new != old}
    return met.moving


# The start and the fixed part of a slice without bounds.
_WHOLE = 0, (slice, None)


def _start(entry: Any) -> tuple[int, Any]:
    """Return the variable number of an entry, and its fixed part: the length of a slice."""
    if type(entry) is int:
        return entry, int
    if type(entry) is slice:
        start, stop, step = entry.start, entry.stop, entry.step
        if type(start) is int and type(stop) is int and step in (None, 1):
            if 0 <= start <= stop or start <= stop < 0:
                return start, stop - start
        elif start is stop is step is None:
            return _WHOLE
        return 0, (str(entry), slice)
    return 0, type(entry)


def _index_by_data(tensor: T, entries: tuple[Any, ...], moving: frozenset[int]) -> T | None:
    """Index with the `moving` entries as data; None if an index does not fit."""
    found = tensor
    axis, rest = 0, list(entries)
    consumed = sum(type(e) in (int, slice) for e in entries)
    for i, entry in enumerate(entries):
        if entry is Ellipsis:
            axis += tensor.ndim - consumed
        elif entry is not None:
            if axis >= tensor.ndim:
                return None
            if i in moving:
                start, length = _start(entry)
                count = 1 if length is int else length
                extent = tensor.shape[axis]
                if not (type(count) is int and -extent <= start and start + count <= extent):
                    return None
                found = functions["take"](found, np.arange(start, start + count), axis)
                rest[i] = 0 if type(entry) is int else slice(None)
            axis += 1
    part: T = functions["getitem"](found, tuple(rest))
    return part
