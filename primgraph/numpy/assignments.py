"""Assignments in place to NumPy arrays of a function that is traced or differentiated.

An array that nothing but a name of the function refers to becomes an array of the program, or a
tensor, when a traced value is first written to it. Arrays that others hold as well cannot: they
would keep the former elements. `assignment_syntax` puts these functions into copies of code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from sys import getrefcount, implementation
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, PrimgraphError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.primitive import innermost
from primgraph.numpy.assignment_syntax import PREFIX
from primgraph.numpy.changing import axes_in_memory, writable
from primgraph.operators import advice
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable, handles

# Kinds of dtypes that traced values have; arrays of objects can hold variables themselves.
_KINDS = "biufc"


# The container of a part, its indices and the part itself; the container is None for an array of
# NumPy's, which is counted, and the part is None for a view of that.
_Part = tuple[Any, Sequence[Any], Any]


def set_item(value: Any, array: Any, path: Sequence[Any], now: Any) -> Any:
    """Assign `array[i][j] = value` for a path `(i, j)`; return what its name then means.

    That is another array if the index has given the name to another one: `now`.
    """
    if now is array and _is_written(array, value, path) and _references(array) == _ALONE + 1:
        array = now = _writable(array)
    set_held_item(value, array, path)
    return now


def held_part(array: Any, path: Sequence[Any]) -> _Part:
    """Return the part that `array[i][j] += value` reads, before the value is known."""
    *outer, last = path
    container = reduce(operator.getitem, outer, array)
    return container, (last,), container[last]


def part_of(array: Any, path: Sequence[Any]) -> _Part:
    """Return what `held_part` does, without a reference to an array of NumPy's."""
    if type(array) is not np.ndarray or array.dtype.kind not in _KINDS:
        return held_part(array, path)
    part = reduce(operator.getitem, path, array)
    # A view would hold the array; it shows what the value may change.
    is_view = isinstance(part, np.ndarray) and np.may_share_memory(part, array)
    return None, path, None if is_view else part


def update_item(name: str, array: Any, place: _Part, value: Any, now: Any) -> Any:
    """Run `array[i][j] += value` and its like; return what the name of the array then means."""
    is_counted = place[0] is None and now is array and _is_written(array, value, place[1])
    if is_counted and _references(array) == _ALONE + 1:
        array = now = _writable(array)
    _update_part(name, array, place, value)
    return now


def update(name: str, array: Any, value: Any) -> Any:
    """Run `array += value` and its like; return what the name of the array then means."""
    if type(array) is np.ndarray and array.dtype.kind in _KINDS and handles((value,)):
        if _references(array) == _ALONE:
            array = _writable(array)
        if type(array) is np.ndarray:
            raise _error_of_held(array)
    return getattr(operator, name)(array, value)


def set_held_item(value: Any, array: Any, path: Sequence[Any]) -> None:
    """Assign `array[i][j] = value`, where others than one name of the function hold the array."""
    for index in path[:-1]:
        array = array[index]
    try:
        array[path[-1]] = value
    except (PrimgraphError, TypeError, ValueError) as error:
        is_ours = isinstance(error, PrimgraphError) or isinstance(error.__cause__, PrimgraphError)
        if is_ours and _is_written(array, value, path):
            raise _error_of_held(array) from None
        raise


def update_held_item(name: str, place: _Part, value: Any) -> None:
    """Run `array[i][j] += value`, where others than one name of the function hold the array."""
    _update_part(name, None, place, value)


def _update_part(name: str, array: Any, place: _Part, value: Any) -> None:
    """Assign the sum, or its like, of a part and a value to where the part was read."""
    container, path, part = place
    if container is None:
        container, part = array, reduce(operator.getitem, path, array) if part is None else part
    if type(part) is not np.ndarray or part.dtype.kind not in _KINDS or not handles((value,)):
        set_held_item(getattr(operator, name)(part, value), container, path)
        return
    # NumPy's arrays cannot take the result in place, but may be assigned it.
    if not (isinstance(container, Handle) or type(container) is np.ndarray):
        raise ArgumentError(
            f"{advice.array_written()} holds an array that was computed by NumPy before tracing, "
            "and what is traced cannot be written to it",
            hint="write np.copy(a) where that array is made, or a[k] = a[k] + x for a new array",
        )
    found = getattr(operator, f"__{name.removeprefix('i')}__")(part, value)
    if found.shape != part.shape:
        raise ShapeError(f"{found.shape} cannot be assigned in place to {part.shape}")
    if not np.can_cast(found.dtype, part.dtype, "same_kind"):
        raise DTypeError(
            f"an array of {part.dtype} cannot take {found.dtype} in place",
            hint=f"write a = a.astype({found.dtype.name!r}) before",
        )
    set_held_item(found, container, path)


def may_choose(test: Any) -> Any:
    """Return the test of a branch that assigns elements by a mask, whether there are any.

    It is True where that is known in the run only: the branch then assigns nothing if there is
    none.
    """
    return True if isinstance(test, Variable) else test


_HELPERS = (
    held_part, may_choose, part_of, set_held_item, set_item, slice, update, update_held_item,
    update_item,
)  # fmt: skip
HELPERS: Mapping[str, Callable[..., Any]] = {PREFIX + f.__name__: f for f in _HELPERS}


def _is_written(array: Any, value: Any, path: Sequence[Any]) -> bool:
    """Return whether a NumPy array is assigned what it cannot hold: a value that is traced.

    Outside of programs, NumPy reads tensors as indices, and as integers.
    """
    if type(array) is not np.ndarray or array.dtype.kind not in _KINDS:
        return False
    if innermost.get() is None:
        return array.dtype.kind in "fc" and bool(handles((value,)))
    return bool(handles((value, *path))) or type(value) is Dim


def _writable(array: Any) -> Any:
    """Return an array to assign to, if no other array shares elements with this one."""
    is_own = array.base is None or (type(array.base) is np.ndarray and _is_private(array))
    # Of elements with others between them, NumPy would make copies where it makes views of these.
    is_packed = array.transpose(axes_in_memory(array)).flags.c_contiguous
    return writable(array) if is_own and is_packed and array.flags.writeable else array


def _is_private(view: Any) -> bool:
    """Return whether a view is the only reference to its array, and has elements of its own."""
    base = view.base
    is_whole = base.base is None and base.size >= view.size and 0 not in view.strides
    return is_whole and getrefcount(base) == _BASE


def _error_of_held(array: Any) -> ArgumentError:
    """Return the error for a traced value that is written to an array that others hold."""
    name = advice.array_written()
    if array.base is not None:
        return ArgumentError(
            f"{name} is a view of an array that was computed by NumPy before tracing, and what is "
            "traced cannot be written to it",
            hint="write a = np.copy(a) where that array is made, before its views: they then "
            "change together",
        )
    return ArgumentError(
        f"{name} was computed by NumPy before tracing, and is held by more than one name of the "
        "traced function: what is traced cannot be written to it",
        hint=f"write r = np.copy({name}) in the function, and assign to r",
    )


def _references(array: Any) -> int:
    return getrefcount(array)


def _base_references(view: Any) -> int:
    base = view.base
    return getrefcount(base)


def _update_references(name: str, array: Any, value: Any) -> Any:
    return _references(array)


def _of_one_name(array: Any) -> int:
    """Return the count of references to an array as `update` finds it, for one name and others."""
    array = _update_references("", array, 0)
    return int(array)


def _of_two_names() -> int:
    array = np.empty(0)
    return _of_one_name(array)


# Counts differ between Python versions. Elsewhere than in CPython they are not known, and a Python
# in which the name of a caller does not count has none for a single name.
_ALONE = _of_one_name(np.empty(0)) if implementation.name == "cpython" else 0
_BASE = _base_references(np.empty(4).reshape(2, 2)) if _ALONE else 0
if _ALONE and _of_two_names() != _ALONE + 1:
    _ALONE = _BASE = 0
