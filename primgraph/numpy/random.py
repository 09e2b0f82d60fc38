"""Random numbers by NumPy's names: they are NumPy's, drawn when a function is called or traced.

A function that is traced once draws once. Numbers that a program draws in each run are those of
`pg.normal` and its kind, which take a key. Draws whose numbers are standard ones, moved and scaled,
take variables and tensors too, and have derivatives by them: `np.random.normal(mean, scale)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy

from primgraph.errors import ArgumentError, unknown_name
from primgraph.numpy.impure import warn_of_fixed
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import handles

MOVED_AND_SCALED = {
    "exponential": (None, "scale"),
    "gumbel": ("loc", "scale"),
    "laplace": ("loc", "scale"),
    "logistic": ("loc", "scale"),
    "lognormal": ("mean", "sigma"),
    "normal": ("loc", "scale"),
    "rayleigh": (None, "scale"),
    "uniform": ("low", "high"),
}
"""Draws of standard numbers that are moved and scaled, by which parameters."""


# Functions that draw nothing. A generator with a seed gives fixed numbers in any case.
_FIXED = ("get_bit_generator", "get_state", "seed", "set_bit_generator", "set_state")


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(numpy.random, name):
        raise unknown_name("primgraph.numpy.random", name, dir(numpy.random))
    found = getattr(numpy.random, name)
    is_draw = callable(found) and not isinstance(found, type)
    return globals().setdefault(name, _wrap_draw(name, found) if is_draw else found)


def _wrap_draw(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, which says what to do instead where it cannot draw by a variable."""

    @wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if name not in _FIXED and not (name == "default_rng" and (args or kwargs)):
            warn_of_fixed(f"np.random.{name}")
        if not handles((*args, *kwargs.values())):
            return original(*args, **kwargs)
        if name in MOVED_AND_SCALED:
            return _moved_and_scaled(name, original, *args, **kwargs)
        if name == "permutation" and not kwargs and len(args) == 1:
            (x,) = args
            return functions["take"](x, original(x.shape[0]), 0)
        raise ArgumentError(
            f"np.random.{name} cannot draw by what is not computed yet",
            hint="draw standard numbers, and move and scale them: mean + scale * "
            "np.random.normal(size=shape); pg.normal(key, shape) draws in each run",
        )

    return draw


def _moved_and_scaled(name: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Standard numbers of the shape that is asked for, as the parameters move and scale them."""
    found = inspect.signature(original).bind(*args, **kwargs)
    found.apply_defaults()
    given = found.arguments
    low, high = MOVED_AND_SCALED[name]
    start, size = given[low] if low else 0.0, given["size"]
    scale = given[high] - start if name == "uniform" else given[high]
    if size is None:
        size = numpy.broadcast_shapes(*(functions["asarray"](v).shape for v in (start, scale)))
    drawn = original(size=size)
    if name == "lognormal":
        return functions["exp"](_move_and_scale(numpy.log(drawn), start, scale))
    return _move_and_scale(drawn, start, scale)


def _move_and_scale(drawn: Any, start: Any, scale: Any) -> Any:
    return functions["add"](start, functions["multiply"](scale, drawn))


def __dir__() -> list[str]:
    return dir(numpy.random)
