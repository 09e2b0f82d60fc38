"""Global tensors of OneFlow on one rank: `placement`, `to_global` and `to_local`.

A global tensor is the tensor itself, as its only part is that of rank 0. Other ranks and devices
are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, final
from weakref import finalize

import numpy as np

from primgraph.compat.oneflow.sbp import broadcast, sbp
from primgraph.errors import ArgumentError, OptionError

__all__ = ["placement"]

# The placement and distributions of global tensors, by identity, as long as they exist.
_global: dict[int, tuple[placement, tuple[sbp, ...]]] = {}


@final
class placement:
    """Ranks that hold a tensor: rank 0 of the CPU.

    Raises `OptionError` for other devices and ranks.

    >>> flow.placement("cpu", ranks=[0])
    oneflow.placement(type="cpu", ranks=[0])
    """

    def __init__(self, type: str, ranks: Any) -> None:
        if type != "cpu":
            raise OptionError(f"there is no device {type!r:.60}: tensors are on the 'cpu'")
        self.type, self.ranks = type, np.asarray(ranks, dtype=int)
        if not self.ranks.size or self.ranks.any() or self.ranks.size != 1:
            raise OptionError(
                f"there is one process, of rank 0, and no others of ranks {self.ranks.tolist()}",
                hint="pg.distributed trains on the workers of a dask client",
            )

    @staticmethod
    def all(type: str) -> placement:
        """Return the placement on all ranks.

        >>> flow.placement.all("cpu") == flow.placement("cpu", [0])
        True
        """
        return placement(type, [0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, placement) and self.ranks.shape == other.ranks.shape

    def __hash__(self) -> int:
        return hash((self.type, self.ranks.shape))

    def __repr__(self) -> str:
        return f'oneflow.placement(type="{self.type}", ranks={self.ranks.tolist()})'


def to_global(
    self: Any, placement: Any = None, sbp: Any = None, grad_sbp: Any = None, **options: Any
) -> Any:
    """Return the tensor or module itself, as it is on the only rank."""
    check_distribution(placement, sbp)
    check_distribution(None, grad_sbp)
    if not hasattr(self, "node"):
        for tensor in (*self.parameters(), *self.buffers()):
            to_global(tensor, placement, sbp)
        return self
    if id(self) not in _global:
        finalize(self, _global.pop, id(self), None)
    before = _global.get(id(self), (None, (broadcast,)))
    _global[id(self)] = (placement or before[0] or default, _distributions(sbp) or before[1])
    return self


def to_local(self: Any) -> Any:
    """Return the tensor itself: its part on the only rank."""
    return self


def placement_of(self: Any) -> placement:
    """Return the placement of a tensor: that of `to_global`, or rank 0."""
    return _global.get(id(self), (default, ()))[0]


def sbp_of(self: Any) -> tuple[sbp, ...]:
    """Return the distributions of a tensor: those of `to_global`, or `sbp.broadcast`."""
    return _global.get(id(self), (default, (broadcast,)))[1]


def is_global(self: Any) -> bool:
    """Return whether `to_global` made the tensor a global one."""
    return id(self) in _global


def check_distribution(given: Any, distributions: Any) -> None:
    """Raise `ArgumentError` for anything but a placement and distributions."""
    if given is not None and not isinstance(given, placement):
        raise ArgumentError(f"a placement is flow.placement('cpu', [0]), not {given!r:.60}")
    _distributions(distributions)


def _distributions(given: Any) -> tuple[sbp, ...]:
    found = () if given is None else tuple(given) if isinstance(given, Sequence) else (given,)
    for one in found:
        if not isinstance(one, sbp):
            raise ArgumentError(f"sbp is flow.sbp.broadcast or flow.sbp.split(0), not {one!r:.60}")
    return found


def with_placement(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes tensors, with arguments `placement` and `sbp`."""

    @wraps(function)
    def create(*args: Any, placement: Any = None, sbp: Any = None, **options: Any) -> Any:
        check_distribution(placement, sbp)
        made = function(*args, **options)
        return made if placement is None else to_global(made, placement, sbp)

    return create


default = placement("cpu", [0])
