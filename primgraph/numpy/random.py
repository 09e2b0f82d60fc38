"""Random numbers by NumPy's names: they are NumPy's, drawn when a function is called or traced.

A function that is traced once draws once. Numbers that a program draws in each run are those of
`pg.normal` and its kind, which take a key.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy

from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.variable import handles


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(numpy.random, name):
        raise unknown_name("primgraph.numpy.random", name, dir(numpy.random))
    found = getattr(numpy.random, name)
    is_draw = callable(found) and not isinstance(found, type)
    return globals().setdefault(name, _drawing(name, found) if is_draw else found)


def _drawing(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, which says what to do instead where it is to draw by a variable."""

    @wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())):
            raise ArgumentError(
                f"np.random.{name} cannot draw by what is not computed yet",
                hint="draw standard numbers, and move and scale them: mean + scale * "
                "np.random.normal(size=shape); pg.normal(key, shape) draws in each run",
            )
        return original(*args, **kwargs)

    return draw


def __dir__() -> list[str]:
    return dir(numpy.random)
