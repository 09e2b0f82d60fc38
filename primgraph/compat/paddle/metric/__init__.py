"""Metrics that are accumulated over batches, by the names of `paddle.metric`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.methods import is_array
from primgraph.compat.paddle.framework import paddles
from primgraph.compat.paddle.functions.reductions import topmost
from primgraph.errors import OptionError

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


class Metric(ABC):
    """A metric: `compute` on tensors, `update` with what that returns, `accumulate` at the end.

    >>> metric = paddle.metric.Precision()
    >>> metric.update(np.array([0.9, 0.2]), np.array([1, 0]))
    >>> metric.accumulate()
    1.0
    """

    @abstractmethod
    def reset(self) -> None:
        """Forget all batches."""

    @abstractmethod
    def update(self, *args: Any) -> Any:
        """Take in a batch."""

    @abstractmethod
    def accumulate(self) -> Any:
        """Return the metric of all batches."""

    @abstractmethod
    def name(self) -> Any:
        """Return the name, or names of several numbers."""

    def compute(self, *args: Any) -> Any:
        """Return what `update` takes: the arguments themselves by default."""
        return args


class Accuracy(Metric):
    """The share of samples whose label is among the `k` classes of largest scores.

    >>> metric = paddle.metric.Accuracy()
    >>> scores = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> float(metric.update(metric.compute(scores, paddle.to_tensor([[1], [1]]))))
    0.5
    """

    def __init__(
        self, topk: Sequence[int] = (1,), name: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        self.topk = topk
        self.maxk = max(topk)
        base = name or "acc"
        self._names = [base] if self.maxk == 1 else [f"{base}_top{k}" for k in topk]
        self.reset()

    def compute(self, pred: Any, label: Any, *args: Any) -> Any:
        """Return which of the classes of largest scores are the labels."""
        _, classes = topmost(pred, min(self.maxk, pred.shape[-1]), -1, True)
        if len(label.shape) == 1 or (len(label.shape) == 2 and label.shape[-1] == 1):
            label = pg.reshape(label, (-1, 1))
        elif label.shape[-1] != 1:
            label = pg.argmax(label, -1, True)
        return pg.astype(pg.equal(classes, pg.astype(label, "int64")), "float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Take in what `compute` returned; return the accuracy of this batch."""
        known = _elements(correct)
        count = int(np.prod(known.shape[:-1]))
        found = []
        for i, k in enumerate(self.topk):
            right = known[..., :k].sum()
            found.append(float(right) / count)
            self.total[i] += right
            self.count[i] += count
        return found[0] if len(self.topk) == 1 else found

    def reset(self) -> None:
        """Forget all batches."""
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        """Return the accuracy of all batches."""
        pairs = zip(self.total, self.count, strict=True)
        found = [float(t) / c if c > 0 else 0.0 for t, c in pairs]
        return found[0] if len(self.topk) == 1 else found

    def name(self) -> list[str]:
        """Return the names of the accuracies."""
        return self._names


class _OfPositives(Metric):
    """A share of samples that are positive, by a score above one half."""

    _default = ""

    def __init__(self, name: str | None = None, *args: Any, **kwargs: Any) -> None:
        self._name = name or self._default
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Take in scores and labels, 0 or 1."""
        chosen = np.floor(_elements(preds) + 0.5).astype(np.int32).reshape(-1)
        known = _elements(labels).reshape(-1)
        self.tp += int(((chosen == 1) & (known == 1)).sum())
        self.fp += int(((chosen == 1) & (known != 1)).sum())
        self.fn += int(((chosen != 1) & (known == 1)).sum())

    def reset(self) -> None:
        """Forget all batches."""
        self.tp = self.fp = self.fn = 0

    def name(self) -> str:
        """Return the name."""
        return self._name


class Precision(_OfPositives):
    """The share of positive labels among the samples of positive scores.

    >>> metric = paddle.metric.Precision()
    >>> metric.update(np.array([0.9, 0.8]), np.array([1, 0]))
    >>> metric.accumulate()
    0.5
    """

    _default = "precision"

    def accumulate(self) -> float:
        """Return the precision of all batches."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_OfPositives):
    """The share of positive scores among the samples of positive labels.

    >>> metric = paddle.metric.Recall()
    >>> metric.update(np.array([0.9, 0.2]), np.array([1, 1]))
    >>> metric.accumulate()
    0.5
    """

    _default = "recall"

    def accumulate(self) -> float:
        """Return the recall of all batches."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    """The area under the curve of true by false positives, over intervals of scores.

    >>> metric = paddle.metric.Auc()
    >>> metric.update(np.array([[0.2, 0.8], [0.9, 0.1]]), np.array([[1], [0]]))
    >>> metric.accumulate()
    1.0
    """

    def __init__(
        self,
        curve: str = "ROC",
        num_thresholds: int = 4095,
        name: str = "auc",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if curve != "ROC":
            raise OptionError(f"Auc: curve={curve!r:.40} is not supported, only 'ROC'")
        self._curve = curve
        self._count = num_thresholds
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Take in scores of both classes, and labels, 0 or 1."""
        places = (_elements(preds)[:, 1] * self._count).astype(np.int64)
        positive = _elements(labels).reshape(-1).astype(bool)
        size = self._count + 1
        self._positive += np.bincount(places[positive], minlength=size)
        self._negative += np.bincount(places[~positive], minlength=size)

    def reset(self) -> None:
        """Forget all batches."""
        self._positive = np.zeros(self._count + 1)
        self._negative = np.zeros(self._count + 1)

    def accumulate(self) -> float:
        """Return the area of all batches."""
        positive = np.cumsum(self._positive[::-1])
        negative = np.cumsum(self._negative[::-1])
        if not (positive[-1] and negative[-1]):
            return 0.0
        before = np.concatenate([[0.0], positive[:-1]])
        area = float((np.diff(negative, prepend=0.0) * (positive + before) / 2).sum())
        return area / float(positive[-1] * negative[-1])

    def name(self) -> str:
        """Return the name."""
        return self._name


@paddles
def accuracy(
    input: Any,
    label: Any,
    k: int = 1,
    correct: Any = None,
    total: Any = None,
    name: str | None = None,
) -> Any:
    """Return the share of samples whose label is among the `k` classes of largest scores.

    >>> scores = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> paddle.metric.accuracy(scores, paddle.to_tensor([[1], [1]])).item()
    0.5
    """
    _, classes = topmost(input, k, -1, True)
    hits = pg.any(pg.equal(classes, pg.reshape(pg.astype(label, "int64"), (-1, 1))), -1)
    return pg.mean(pg.astype(hits, "float32"))


def _elements(given: Any) -> Any:
    return given.numpy() if is_array(given) else np.asarray(given)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
