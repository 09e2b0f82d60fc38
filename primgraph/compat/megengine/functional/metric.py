"""Metrics by the names that they have in `megengine.functional.metric`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.functional.math import topk as best
from primgraph.ir.types import FLOAT32

__all__ = ["topk_accuracy"]


def topk_accuracy(logits: Any, target: Any, topk: int | Iterable[int] = 1) -> Any:
    """Return the share of rows whose target is among the `topk` largest logits.

    For several `topk` it is a list.

    >>> logits = megengine.Tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
    >>> megengine.functional.metric.topk_accuracy(logits, megengine.Tensor([1, 2]), topk=(1, 2))
    [Tensor(0.5, device=xpux:0), Tensor(1.0, device=xpux:0)]
    """
    counts = [topk] if isinstance(topk, int) else list(topk)
    places = best(logits, max(counts))[1]
    hits = pg.astype(places == pg.expand_dims(target, 1), FLOAT32)
    found = [pg.sum(hits[:, :count]) / target.shape[0] for count in counts]
    return found[0] if len(found) == 1 else found


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
