"""Adaptive softmax: rare classes have smaller features. (E. Grave et al., 2017.)"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.functions.reductions import log_softmax
from primgraph.compat.torch.nn.modules.container import ModuleList, Sequential
from primgraph.compat.torch.nn.modules.linear import Linear
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.errors import ArgumentError, BoundsError, ShapeError

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Logarithms of probabilities of many classes, in clusters that begin at `cutoffs`.

    Frequent classes come first. The call takes features and classes, and returns the logarithms at
    the classes and the loss.

    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs=[2, 5])
    >>> layer.log_prob(torch.ones(3, 8)).exp().sum(1)
    tensor([1., 1., 1.], grad_fn=<SumBackward1>)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        is_valid = ends and ends == sorted(set(ends)) and ends[0] > 0 and ends[-1] <= n_classes - 1
        if not is_valid or any(int(c) != c for c in ends):
            raise ArgumentError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        kind = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            parts = Linear(in_features, width, False, **kind), Linear(width, size, False, **kind)
            self.tail.append(Sequential(*parts))

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Any, target: Any) -> Any:
        """Return the logarithms of the probabilities of classes `target`, and their mean loss."""
        is_single = target.ndim == 0
        if target.ndim > 1:
            raise ShapeError("0D or 1D target tensor expected, multi-target not supported")
        if input.ndim != (1 if is_single else 2) or (
            not is_single and input.shape[0] != target.shape[0]
        ):
            raise ShapeError(
                f"input of shape {tuple(input.shape)} and target of {tuple(target.shape)} should "
                "have the same size in the batch dimension."
            )
        if is_single:
            input, target = pg.expand_dims(input, 0), pg.expand_dims(target, 0)
        self._require_classes(target)
        heads = log_softmax(self.head(input), 1)
        found = _at(heads, pg.minimum(target, self.shortlist_size - 1))
        for i, tail in enumerate(self.tail):
            first, last = self.cutoffs[i : i + 2]
            is_here = pg.logical_and(pg.greater_equal(target, first), pg.less(target, last))
            inner = log_softmax(tail(input), 1)
            place = pg.clip(target - first, 0, last - first - 1)
            found = pg.where(is_here, heads[:, self.shortlist_size + i] + _at(inner, place), found)
        loss = pg.mean(-found)
        return _ASMoutput(found[0] if is_single else found, loss)

    def _require_classes(self, target: Any) -> None:
        elements = getattr(target, "_array", None)
        known = None if elements is None else elements()
        if known is not None and known.size and (known.min() < 0 or known.max() >= self.n_classes):
            raise BoundsError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{known.min()}, {known.max()}] were found. "
            )

    def log_prob(self, input: Any) -> Any:
        """Return the logarithms of the probabilities of all classes."""
        heads = log_softmax(self.head(input), 1)
        parts = [heads[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(log_softmax(tail(input), 1) + heads[:, place : place + 1])
        return pg.concatenate(parts, 1)

    def predict(self, input: Any) -> Any:
        """Return the most likely classes."""
        return pg.argmax(self.log_prob(input), 1)


def _at(x: Any, places: Any) -> Any:
    """Return one element of each row."""
    return pg.squeeze(pg.take_along_axis(x, pg.expand_dims(places, 1), 1), 1)
