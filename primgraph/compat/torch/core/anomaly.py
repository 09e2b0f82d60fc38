"""Search for gradients that are NaN, as `torch.autograd.detect_anomaly` does it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from primgraph.eager.node import Node
from primgraph.eager.tensor import Tensor
from primgraph.errors import NumericalError

_is_on: list[bool] = [False]


class set_detect_anomaly:
    """Switch of the search for gradients that are NaN, from now on or as a context.

    >>> with torch.autograd.set_detect_anomaly(False):
    ...     pass
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _is_on[0]
        _is_on[0] = mode and check_nan

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        _is_on[0] = self._before


class detect_anomaly(set_detect_anomaly):
    """Context in which a gradient that is NaN is an error.

    >>> x = torch.tensor(0.0, requires_grad=True)
    >>> with torch.autograd.detect_anomaly():
    ...     (x * 2).backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)

    def __enter__(self) -> None:
        return None


def is_anomaly_enabled() -> bool:
    """Return whether gradients that are NaN are searched for.

    >>> torch.is_anomaly_enabled()
    False
    """
    return _is_on[0]


def require_no_nan(gradients: Iterable[Any]) -> None:
    """Raise `NumericalError` if a gradient is NaN, where that is searched for."""
    if not _is_on[0]:
        return
    for gradient in gradients:
        if isinstance(gradient, Tensor) and np.isnan(gradient.detach().numpy()).any():
            raise NumericalError(
                "Function returned nan values in its output: a gradient is NaN",
                hint="pg.check_finite names the operation of a program",
            )


def leaves_of(tensors: Iterable[Any]) -> list[Any]:
    """Return the leaves that gradients of these are added to, if they are searched for NaN."""
    waiting: list[Node] = [t.node for t in tensors if isinstance(t, Tensor)] if _is_on[0] else []
    seen = set(waiting)
    found = []
    while waiting:
        node = waiting.pop()
        if node.tracked and node.is_leaf and node.holder is not None:
            found.append(node.holder())
        for other in node.inputs:
            if other.tracked and other not in seen:
                seen.add(other)
                waiting.append(other)
    return [x for x in found if x is not None]
