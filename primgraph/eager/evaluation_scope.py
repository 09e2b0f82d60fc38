"""Explicit evaluation of tensors: `sync` and `debug`."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from typing import final

from primgraph.base.atomic import Setting
from primgraph.eager.run import compute, debugging
from primgraph.eager.tensor import Tensor, tensors_in


def sync(*tensors: Tensor) -> None:
    """Compute `tensors` now, all together; without arguments, all pending tensors.

    To find these, all objects of the process are searched, which takes a while. Raises
    `ArgumentError` for what is no tensor.
    """
    found = (
        tensors_in(tensors)
        if tensors
        else [o for o in gc.get_objects() if issubclass(type(o), Tensor)]
    )
    compute([t.node for t in found])


@final
class debug(Setting, ContextDecorator):
    """Evaluate each operation at once, within a context or a decorated function.

    The first equation that makes a NaN or an infinity raises `NumericalError` with its line. It
    holds for the thread or asynchronous task that entered it.
    """

    def __init__(self) -> None:
        super().__init__(debugging, True)

    def _recreate_cm(self) -> debug:
        return debug()
