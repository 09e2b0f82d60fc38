"""NumPy's names, as `primgraph.numpy` has them, and those that autograd has besides."""

from __future__ import annotations

import sys
from typing import Any

import numpy

import primgraph.numpy as drop_in
from primgraph.compat.autograd.numpy import linalg as linalg
from primgraph.errors import ArgumentError
from primgraph.numpy import fft, random

# The same modules, by the names by which programs import them.
for _module in (fft, random):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

numpy_version = __version__ = numpy.__version__

__all__ = [*drop_in.__all__, "make_diagonal"]


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return matrices with diagonals along the last axis of `D`: `axis1` is -1, `axis2` is -2.

    Raises `ArgumentError` for other diagonals.

    >>> from primgraph.compat.autograd.numpy import make_diagonal
    >>> make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise ArgumentError("make_diagonal makes the diagonals of the last two axes")
    return drop_in.expand_dims(D, -1) * drop_in.eye(drop_in.shape(D)[-1])


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """Call NumPy's `where`, whose branches may be given by name.

    One boolean chooses between numbers and lists as they are.

    >>> from primgraph.compat.autograd.numpy import where
    >>> where(np.array([True, False]), x=1.0, y=2.0)
    array([1., 2.])
    """
    given = dict(zip(("x", "y"), args, strict=False)) | kwargs
    if not given:
        return drop_in.where(condition)
    if isinstance(condition, bool) and not any(hasattr(v, "dtype") for v in given.values()):
        return given["x"] if condition else given["y"]
    return drop_in.where(condition, given["x"], given["y"])


def __getattr__(name: str) -> Any:
    return getattr(drop_in, name)


def __dir__() -> list[str]:
    return [*dir(drop_in), "make_diagonal"]
