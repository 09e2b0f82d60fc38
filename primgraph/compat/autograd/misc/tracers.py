"""Functions whose graph is fixed at the first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from primgraph.api.jit import jit


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """`fun` with some arguments, traced at the first call and compiled."""
    compiled: Callable[..., Any] = jit(partial(fun, *args, **kwargs))
    return compiled
