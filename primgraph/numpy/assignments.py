"""Assignments in place to NumPy arrays of a function that is traced or differentiated.

An array that nothing but a name of the function refers to becomes an array of the program, or a
tensor, when a traced value is first written to it. Arrays that others hold as well cannot: they
would keep the former elements. `assignment_syntax` puts these functions into copies of code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from sys import getrefcount, implementation
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, PrimgraphError
from primgraph.ir.dims import Dim
from primgraph.ir.primitive import innermost
from primgraph.numpy.assignment_syntax import PREFIX
from primgraph.numpy.changing import writable
from primgraph.operators import advice
from primgraph.operators.variable import handles

# Kinds of dtypes that traced values have; arrays of objects can hold variables themselves.
_KINDS = "biufc"


def set_item(value: Any, array: Any, path: Sequence[Any]) -> Any:
    """Assign `array[i][j] = value` for a path `(i, j)`; return the array, or what replaces it."""
    if _is_written(array, value, path) and _references(array) == _ALONE:
        array = _writable(array)
    set_held_item(value, array, path)
    return array


def update_item(name: str, array: Any, path: Sequence[Any], value: Any) -> Any:
    """Run `array[i][j] += value` and its like; return the array, or what replaces it."""
    if _is_written(array, value, path) and _references(array) == _ALONE:
        array = _writable(array)
    update_held_item(name, array, path, value)
    return array


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


def update_held_item(name: str, array: Any, path: Sequence[Any], value: Any) -> None:
    """Run `array[i][j] += value`, where others than one name of the function hold the array."""
    part = array
    for index in path:
        part = part[index]
    # NumPy's arrays cannot take the result in place, but may be assigned it.
    is_new = isinstance(part, np.ndarray) and handles((value,))
    function = getattr(operator, f"__{name.removeprefix('i')}__" if is_new else name)
    set_held_item(function(part, value), array, path)


HELPERS: Mapping[str, Callable[..., Any]] = {
    PREFIX + f.__name__: f
    for f in (set_held_item, set_item, slice, update, update_held_item, update_item)
}


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
    return writable(array) if is_own and array.flags.writeable else array


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


def _of_one_name() -> int:
    """Return the count of references to an array as `set_item` finds it, if a name has it alone."""

    def find(value: Any, array: Any, path: Sequence[Any]) -> Any:
        return _references(array)

    array: Any = np.empty(0)
    array = find(None, array, (0,))
    return int(array)


# Counts differ between Python versions; elsewhere than in CPython they are not known.
_IS_COUNTED = implementation.name == "cpython"
_ALONE = _of_one_name() if _IS_COUNTED else 0
_BASE = _base_references(np.empty(4).reshape(2, 2)) if _IS_COUNTED else 0
