"""Special functions: those of `primgraph.scipy.special`, and Bessel functions with rules.

The latter are SciPy's, called on the elements; they are no part of what is compiled. There are
derivatives by what they are taken at, in reverse mode; by the order there is none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import primgraph.numpy as np
import primgraph.scipy.special as drop_in
from primgraph.compat.autograd.core import Primitive, defvjp, primitive

Slope = Callable[..., Any]


def _order_recurrence(name: str, sign: float = -1.0) -> Slope:
    """Half the sum of the functions of the two orders beside, or of the next and minus the last."""

    def slope(ans: Any, n: Any, x: Any) -> Any:
        of_order = _function(name)
        return (of_order(n - 1, x) + sign * of_order(n + 1, x)) / 2.0

    return slope


def _scaled_slope(ans: Any, n: Any, x: Any) -> Any:
    return _order_recurrence("ive", 1.0)(ans, n, x) - np.sign(x) * ans


# The slope of each function by its last argument, from its value and its arguments.
_SLOPES: dict[str, Slope] = {
    "gammasgn": lambda ans, x: np.zeros_like(ans),
    "i0": lambda ans, x: _function("i1")(x),
    "i1": lambda ans, x: (_function("i0")(x) + _function("iv")(2, x)) / 2.0,
    "iv": _order_recurrence("iv", 1.0),
    "ive": _scaled_slope,
    "j0": lambda ans, x: -_function("j1")(x),
    "j1": lambda ans, x: (_function("j0")(x) - _function("jn")(2, x)) / 2.0,
    "jn": _order_recurrence("jn"),
    "jv": _order_recurrence("jv"),
    "kv": lambda ans, n, x: -_order_recurrence("kv", 1.0)(ans, n, x),
    "rgamma": lambda ans, x: -drop_in.digamma(x) * ans,
    "y0": lambda ans, x: -_function("y1")(x),
    "y1": lambda ans, x: (_function("y0")(x) - _function("yn")(2, x)) / 2.0,
    "yn": _order_recurrence("yn"),
    "yv": _order_recurrence("yv"),
}
_made: dict[str, Primitive] = {}


def _function(name: str) -> Primitive:
    """SciPy's function of that name with its rules."""
    found = _made.get(name)
    if found is None:
        original = getattr(importlib.import_module("scipy.special"), name)

        def call(*args: Any) -> Any:
            return original(*args)

        call.__name__ = name
        found = _made[name] = primitive(call)
        slope = _SLOPES[name]
        last = 0 if slope.__code__.co_argcount == 2 else 1

        def pull(ans: Any, *args: Any) -> Callable[[Any], Any]:
            return lambda g: _sum_to_shape(g * slope(ans, *args), args[last])

        defvjp(found, pull, argnums=(last,))
    return found


def _sum_to_shape(g: Any, x: Any) -> Any:
    """A cotangent, with sums over axes along which `x` was repeated."""
    lead = np.ndim(g) - np.ndim(x)
    found = np.sum(g, axis=tuple(range(lead))) if lead else g
    axes = [i for i, n in enumerate(np.shape(x)) if n == 1 and np.shape(found)[i] != 1]
    return np.sum(found, axis=tuple(axes), keepdims=True) if axes else found


def __getattr__(name: str) -> Any:
    return _function(name) if name in _SLOPES else getattr(drop_in, name)
