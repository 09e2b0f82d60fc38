"""Distributions of a tensor over ranks by the names of `oneflow.sbp`; there is one rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from primgraph.compat.absent import absent

__all__ = ["broadcast", "partial_sum", "sbp", "split"]


@final
@dataclass(frozen=True)
class sbp:
    """Distribution of a tensor: "broadcast", "partial_sum", or "split" along an axis.

    >>> flow.sbp.split(0)
    oneflow.sbp.split(dim=0)
    """

    kind: str
    dim: int | None = None

    def __call__(self, dim: int | None = None) -> sbp:
        return self

    def __repr__(self) -> str:
        return f"oneflow.sbp.{self.kind}" + ("" if self.dim is None else f"(dim={self.dim})")


broadcast = sbp("broadcast")
partial_sum = sbp("partial_sum")


def split(dim: int) -> sbp:
    """Return the distribution along an axis.

    >>> flow.sbp.split(1).dim
    1
    """
    return sbp("split", dim)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
