"""Explicit evaluation of tensors: `sync` and `debug`."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from typing import final

from primgraph.base.atomic import Setting
from primgraph.eager.derivatives.backward import listed
from primgraph.eager.run import compute, debugging
from primgraph.eager.tensor import Tensor


def sync(*tensors: Tensor) -> None:
    """Compute `tensors` now, all together; without arguments, all pending tensors.

    The latter searches all objects of Python, which is slow. Raises `ArgumentError` for an object
    that is not a tensor.
    """
    found = (
        listed(tensors) if tensors else [o for o in gc.get_objects() if issubclass(type(o), Tensor)]
    )
    compute([t.node for t in found])


@final
class debug(Setting, ContextDecorator):
    """Context manager and decorator in which each equation is computed at once.

    The first equation that produces a NaN or an infinity raises `NumericalError` with its source
    line. Applies to the current thread or asyncio task.
    """

    def __init__(self) -> None:
        super().__init__(debugging, True)

    def _recreate_cm(self) -> debug:
        return debug()
