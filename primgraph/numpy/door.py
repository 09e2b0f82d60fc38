"""Wrappers of NumPy functions that also accept variables and tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from types import BuiltinFunctionType, FunctionType
from typing import Any, final

import numpy as np

from primgraph.ir.dims import Dim
from primgraph.operators.lazy_loading import functions
from primgraph.operators.names import rows
from primgraph.operators.numpy_calls import call_function
from primgraph.operators.numpy_ufuncs import call_ufunc
from primgraph.operators.variable import handles

# Functions of NumPy's that are written in C and take arrays.
_COMPILED = type(np.concatenate)
# The arguments of rows of the world `sized`.
_OF_SIZES = frozenset(("fill_value", "length", "size"))
_FUNCTIONS = (FunctionType, BuiltinFunctionType, _COMPILED)


@final
class Ufunc:
    """A ufunc of NumPy's that takes variables and tensors too, with its methods."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        self.__name__ = ufunc.__name__
        self.__doc__ = ufunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._apply_ufunc("__call__", args, kwargs)

    def reduce(self, array: Any, axis: Any = 0, **kwargs: Any) -> Any:
        """The function of all elements over an axis, one after the other."""
        return self._apply_ufunc("reduce", (array,), {"axis": axis, **kwargs})

    def accumulate(self, array: Any, axis: int = 0, **kwargs: Any) -> Any:
        """Apply `reduce` to every prefix along an axis."""
        return self._apply_ufunc("accumulate", (array,), {"axis": axis, **kwargs})

    def outer(self, *args: Any, **kwargs: Any) -> Any:
        """The function of each element of one array with each of another."""
        return self._apply_ufunc("outer", args, kwargs)

    def at(self, *args: Any, **kwargs: Any) -> Any:
        """The function at indices, in place."""
        return self._apply_ufunc("at", args, kwargs)

    def _apply_ufunc(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(type(a) is Dim for a in args):
            args = tuple([functions["asarray"](a) if type(a) is Dim else a for a in args])
        if handles((*args, *kwargs.values())):
            return call_ufunc(self._ufunc, method, [_join_list(a) for a in args], kwargs)
        return getattr(self._ufunc, method)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __repr__(self) -> str:
        return f"<primgraph.numpy ufunc {self.__name__!r}>"


def _join_list(given: Any) -> Any:
    """A list with variables in it as one array; anything else as it is."""
    if isinstance(given, list | tuple) and handles(given):
        return functions["array"](given)
    return given


def recording_wrapper(found: Any) -> Any:
    """A function of NumPy's that records where it meets variables or tensors.

    What is no function is given back as it is.
    """
    if isinstance(found, np.ufunc):
        return Ufunc(found)
    if not isinstance(found, _FUNCTIONS):
        return found
    return _wrap_sized(found) if found.__name__ in rows("sized") else _wrap_function(found)


def _wrap_sized(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())) or not _OF_SIZES.isdisjoint(kwargs):
            return call_function(original, args, kwargs, lambda *_: "")
        return original(*args, **kwargs)

    return call


def _wrap_function(original: Callable[..., Any]) -> Callable[..., Any]:
    of_extents = rows("sizes").get(original.__name__)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())):
            return call_function(original, args, kwargs, lambda *_: "")
        if of_extents is not None and _holds_a_size((*args, *kwargs.values())):
            return of_extents.load()(*args, **kwargs)
        return original(*args, **kwargs)

    return call


def _holds_a_size(arguments: Iterable[Any]) -> bool:
    return any(
        type(a) is Dim or (isinstance(a, list | tuple) and _holds_a_size(a)) for a in arguments
    )
