"""Containers of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import primgraph.numpy as np
from primgraph.compat.autograd.core import make_vjp


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All elements in one vector, and the function that puts another one into such containers."""
    unflatten, flat = make_vjp(_row, value)
    return flat, unflatten


def _row(value: Any) -> Any:
    if isinstance(value, dict):
        return _concatenate_rows([_row(value[key]) for key in sorted(value)])
    if isinstance(value, list | tuple):
        return _concatenate_rows([_row(item) for item in value])
    return np.ravel(value)


def _concatenate_rows(rows: list[Any]) -> Any:
    return np.concatenate(rows) if rows else np.zeros(0)


def flatten_func(
    func: Callable[..., Any], example: Any
) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """`func` from vectors to vectors, what makes its argument of one, and the example's vector."""
    flat, unflatten = flatten(example)

    def call_flat(vector: Any, *args: Any) -> Any:
        return flatten(func(unflatten(vector), *args))[0]

    return call_flat, unflatten, flat
