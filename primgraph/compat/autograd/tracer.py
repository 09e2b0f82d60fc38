"""Distinguish traced arrays from NumPy's, and functions with rules from others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from primgraph import tree
from primgraph.compat.autograd.core import primitive
from primgraph.eager.tensor import Tensor
from primgraph.operators.handle import Handle

__all__ = ["getval", "isbox", "notrace_primitive", "primitive"]


def isbox(value: Any) -> bool:
    """Whether this stands for an array in a function that derivatives are taken of."""
    return isinstance(value, Handle)


def getval(value: Any) -> Any:
    """The elements of a tensor, through which no derivative goes; all else as it is."""
    return value.numpy()[()] if isinstance(value, Tensor) else value


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the elements alone: no derivative goes through it."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*[tree.map(getval, a) for a in args], **kwargs)

    return call
