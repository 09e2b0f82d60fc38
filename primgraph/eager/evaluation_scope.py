"""When tensors are computed, where a user wants to say so."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from typing import final

from primgraph.base.atomic import Setting
from primgraph.eager.run import compute, debugging
from primgraph.eager.tensor import Tensor, tensors_in


def sync(*tensors: Tensor) -> None:
    """Compute `tensors` now, all together; without any, whatever has not been computed yet.

    To find the latter, all objects that Python knows of are gone through: that takes a while.
    Raises `ArgumentError` for what is no tensor.
    """
    found = (
        tensors_in(tensors)
        if tensors
        else [o for o in gc.get_objects() if issubclass(type(o), Tensor)]
    )
    compute([t.node for t in found])


@final
class debug(Setting, ContextDecorator):
    """A context, and a decorator, in which everything is computed at once, equation by equation.

    The first equation that makes a NaN or an infinity is a `NumericalError` with its line. Counts
    for the thread, or the asynchronous task, that has entered it.
    """

    def __init__(self) -> None:
        super().__init__(debugging, True)

    def _recreate_cm(self) -> debug:
        return debug()
