"""Layers that OneFlow has beside those of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.oneflow.extras import quick_gelu, square_relu
from primgraph.errors import OptionError

if TYPE_CHECKING:
    from primgraph.compat.torch.nn.modules import BatchNorm1d, BatchNorm2d, BatchNorm3d, Module
    from primgraph.compat.torch.nn.parameter import Parameter
else:
    from primgraph.compat.oneflow.nn.modules import BatchNorm1d, BatchNorm2d, BatchNorm3d, Module
    from primgraph.compat.oneflow.nn.parameter import Parameter

__all__ = [
    "CombinedMarginLoss",
    "FusedBatchNorm1d",
    "FusedBatchNorm2d",
    "FusedBatchNorm3d",
    "QuickGELU",
    "RMSLayerNorm",
    "SquareReLU",
]


# Functions of `oneflow.nn.functional`.
FUNCTIONS = ["quick_gelu", "sparse_softmax_cross_entropy", "square_relu"]


def sparse_softmax_cross_entropy(labels: Any, logits: Any) -> Any:
    """Return the cross entropy of each row of scores and its label.

    >>> scores = flow.tensor([[0.0, 0.0]])
    >>> flow.nn.functional.sparse_softmax_cross_entropy(flow.tensor([1]), scores)
    tensor([0.6931], dtype=oneflow.float32)
    """
    places = pg.astype(pg.expand_dims(labels, -1), "int64")
    return -pg.squeeze(pg.take_along_axis(pg.log_softmax(logits, -1), places, -1), -1)


class QuickGELU(Module):
    """The layer of `oneflow.quick_gelu`.

    >>> flow.nn.QuickGELU()(flow.tensor([0.0]))
    tensor([0.], dtype=oneflow.float32)
    """

    def forward(self, x: Any) -> Any:
        """Return `x * sigmoid(1.702 * x)`."""
        return quick_gelu(x)


class SquareReLU(Module):
    """The layer of `oneflow.square_relu`.

    >>> flow.nn.SquareReLU()(flow.tensor([2.0]))
    tensor([4.], dtype=oneflow.float32)
    """

    def forward(self, x: Any) -> Any:
        """Return the squares of positive elements, and 0 of others."""
        return square_relu(x)


class RMSLayerNorm(Module):
    """Division by the root of the mean square along the last axis, times a weight.

    >>> flow.nn.RMSLayerNorm(2, eps=0.0)(flow.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]], dtype=oneflow.float32, grad_fn=<MulBackward0>)
    """

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = Parameter(pg.ones((hidden_size,), "float32"))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Any) -> Any:
        """Return the normalized array."""
        square = pg.mean(pg.square(hidden_states), -1, keepdims=True)
        return self.weight * (hidden_states * pg.rsqrt(square + self.variance_epsilon))


class _Fused(Module):
    """Batch normalization, with an array that is added to it, and a ReLU."""

    def forward(self, x: Any, addend: Any = None) -> Any:
        """Return `relu(norm(x) + addend)`."""
        found = super().forward(x)
        return pg.relu(found if addend is None else found + addend)


class FusedBatchNorm1d(_Fused, BatchNorm1d):
    """Batch normalization of rows or sequences, with an addend, and a ReLU.

    >>> flow.nn.FusedBatchNorm1d(1)(flow.tensor([[1.0], [3.0]])).detach().round()
    tensor([[0.],
            [1.]], dtype=oneflow.float32)
    """


class FusedBatchNorm2d(_Fused, BatchNorm2d):
    """Batch normalization of images, with an addend, and a ReLU.

    >>> flow.nn.FusedBatchNorm2d(2)(flow.ones(2, 2, 3, 3)).shape
    oneflow.Size([2, 2, 3, 3])
    """


class FusedBatchNorm3d(_Fused, BatchNorm3d):
    """Batch normalization of volumes, with an addend, and a ReLU.

    >>> flow.nn.FusedBatchNorm3d(2)(flow.ones(2, 2, 1, 3, 3)).shape
    oneflow.Size([2, 2, 1, 3, 3])
    """


class CombinedMarginLoss(Module):
    """Cosines with a margin for the class of each row (Deng et al., ArcFace, 2019).

    The cosine of the class, of the angle t, becomes `cos(m1 * t + m2) - m3`.

    >>> loss = flow.nn.CombinedMarginLoss(m1=1.0, m2=0.0, m3=0.5)
    >>> loss(flow.tensor([[0.25, 0.75]]), flow.tensor([1]))
    tensor([[0.2500, 0.2500]], dtype=oneflow.float32)
    """

    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> None:
        super().__init__()
        if m1 <= 0.0:
            raise OptionError(f"CombinedMarginLoss: m1 is positive, not {m1!r:.40}")
        self.m1, self.m2, self.m3 = m1, m2, m3

    def forward(self, x: Any, label: Any) -> Any:
        """Return the cosines, with the margin."""
        is_class = pg.one_hot(pg.astype(label, "int64"), x.type.shape[-1], dtype="bool")
        if self.m1 == 1.0 and self.m2 == 0.0:
            return pg.where(is_class, x - self.m3, x)
        bound = 1.0 - float(np.finfo(x.type.dtype).eps)
        angle = pg.arccos(pg.clip(pg.where(is_class, x, 0.0), -bound, bound))
        return pg.where(is_class, pg.cos(self.m1 * angle + self.m2) - self.m3, x)
