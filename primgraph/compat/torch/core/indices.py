"""Indices as torch reads them: integers are taken before arrays, and bytes are masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle

_PLAIN = frozenset((int, type(None), type(Ellipsis)))


def as_masks(index: Any) -> Any:
    """Return `index` with booleans for arrays of bytes, and as a tuple if it is a list of indices.

    A list counts as a tuple if it has lists, slices, tensors, None or an ellipsis.
    """
    if isinstance(index, list) and any(map(_is_an_index, index)):
        index = tuple(index)
    if isinstance(index, tuple):
        return tuple(map(as_masks, index))
    if isinstance(index, Handle | np.ndarray) and index.dtype == np.uint8 and index.ndim:
        return index.astype("bool")
    return index


def is_plain(index: Any) -> bool:
    """Return whether an index is of integers, None, an ellipsis, and slices without steps."""
    for entry in index if type(index) is tuple else (index,):
        kind = type(entry)
        if kind is slice:
            if entry.step is not None:
                return False
        elif kind not in _PLAIN:
            return False
    return True


def checked_index(index: Any) -> Any:
    """Return an index. Raises `ArgumentError` for a slice of negative step, as torch does."""
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, slice) and isinstance(entry.step, int) and entry.step < 1:
            raise ArgumentError(
                f"step must be greater than zero, not {entry.step}",
                hint="torch.flip(x, (0,)) reverses an axis",
            )
    return index


def in_two_steps(index: Any) -> tuple[Any, Any] | None:
    """Return an index without arrays, and that of the arrays in what it gives.

    None if they are the same as one index. NumPy broadcasts an integer with the arrays, so that
    the axes of arrays come first where it stands apart from them.
    """
    entries = index if isinstance(index, tuple) else (index,)
    if not (any(map(_is_integer, entries)) and any(map(_is_array, entries))):
        return None
    first: list[Any] = []
    second: list[Any] = []
    for entry in entries:
        if _is_array(entry):
            first += [slice(None)] * _consumed_axes(entry)
            second.append(entry)
        else:
            first.append(entry)
            if not _is_integer(entry):
                second.append(Ellipsis if entry is Ellipsis else slice(None))
    return tuple(first), tuple(second)


def _is_an_index(entry: Any) -> bool:
    """Return whether a list that has `entry` holds one index for each axis."""
    return entry is None or entry is ... or isinstance(entry, list | tuple | slice | Handle)


def _is_integer(entry: Any) -> bool:
    if isinstance(entry, int):
        return not isinstance(entry, bool)
    dtype = getattr(entry, "dtype", None)
    return dtype is not None and dtype.kind in "iu" and not len(entry.shape)


def _is_array(entry: Any) -> bool:
    return isinstance(entry, list) or (isinstance(entry, Handle | np.ndarray) and entry.ndim > 0)


def _consumed_axes(entry: Any) -> int:
    """Return the number of axes that an array stands for: a mask for as many as it has."""
    array = np.asarray(entry) if isinstance(entry, list) else entry
    return int(array.ndim) if array.dtype.kind == "b" else 1
