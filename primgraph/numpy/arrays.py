"""Arrays made of lists that may have variables in them, and what counts as an array."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, final

import numpy as np

from primgraph.numpy.changing import as_changing
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import handles


class _Arrays(type):
    """The type of a class whose instances are NumPy's arrays, variables and tensors."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray | Handle)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, np.ndarray | Handle)


@final
class ndarray(metaclass=_Arrays):
    """Class that `isinstance` takes for an array; called, it makes a NumPy array."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return np.ndarray(*args, **kwargs)


def array(object: Any, dtype: Any = None, *, ndmin: int = 0, **options: Any) -> Any:
    """Return an array as `np.array` does; a variable or tensor if nested lists contain one.

    >>> import primgraph.numpy as pnp
    >>> pnp.array([pg.tensor(1.0), 2.0])
    tensor([1., 2.])
    """
    if not handles((object,)):
        return np.array(object, dtype, ndmin=ndmin, **options)
    if not options.get("copy", True) and _is_array(object, dtype):
        return object if object.ndim >= ndmin else object[(None,) * (ndmin - object.ndim)]
    found = as_changing(functions["array"](object, dtype))
    if hasattr(found, "clone"):
        # It may be a view of a tensor, which NumPy's would not be.
        found = found.clone()
    if found.ndim >= ndmin:
        return found
    return functions["reshape"](found, (1,) * (ndmin - found.ndim) + found.shape)


def _is_array(given: Any, dtype: Any) -> bool:
    """Whether NumPy would return an array of that dtype as it is."""
    return isinstance(given, Handle) and (dtype is None or np.dtype(dtype) == given.dtype)


def _as_array(original: Callable[..., Any]) -> Callable[..., Any]:
    """One of NumPy's functions that make arrays of what may have variables in it."""

    @wraps(original)
    def make_array(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        if not handles((a,)):
            return original(a, dtype, *args, **options)
        order = args[0] if args else options.get("order")
        if original.__name__ in _ORDERS and getattr(a, "ndim", 1) == 0:
            # NumPy gives these at least one axis.
            a = a[None]
        if _is_array(a, dtype) and not options.get("copy"):
            order = order or _ORDERS.get(original.__name__)
            laid_out = getattr(type(a), "_laid_out", None)
            return a if order is None or laid_out is None else laid_out(a, order)
        return functions["array"](a, dtype)

    return make_array


# The memory layouts that functions promise, beside those of their arguments.
_ORDERS = {"ascontiguousarray": "C", "asfortranarray": "F"}

asanyarray = _as_array(np.asanyarray)
asarray = _as_array(np.asarray)
# Whether variables have NaN in them is not known before a program runs: it is not looked at.
asarray_chkfinite = _as_array(np.asarray_chkfinite)
ascontiguousarray = _as_array(np.ascontiguousarray)
asfortranarray = _as_array(np.asfortranarray)
