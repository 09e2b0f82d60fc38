"""Names of `megengine.functional.utils`, which are older ones of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine.functional.metric import topk_accuracy
from primgraph.compat.megengine.functional.tensor import copy

__all__ = ["copy", "topk_accuracy"]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
