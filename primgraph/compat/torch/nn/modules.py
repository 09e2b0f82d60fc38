"""Layers by the names that they and their arguments have in `torch.nn`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from primgraph import nn as pg
from primgraph.compat.torch.creation import create, draw
from primgraph.compat.torch.functions import flatten
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.tensor import Parameter
from primgraph.ir.types import as_shape


class Module(pg.Layer):
    """`pg.nn.Layer` with torch's names for its parts."""

    def modules(self) -> list[pg.Layer]:
        """This module and all within, outer ones first."""
        return self.sublayers(include_self=True)

    def named_modules(self) -> Iterator[tuple[str, pg.Layer]]:
        """The same with their dotted names."""
        return self.named_sublayers(include_self=True)

    def add_module(self, name: str, module: pg.Layer) -> None:
        """Register a module by that name."""
        self.add_sublayer(name, module)

    def register_parameter(self, name: str, param: Any) -> None:
        """Register a parameter by that name."""
        self.add_parameter(name, param)

    def to(self, device: Any) -> Self:
        """Itself, as there is no other place than the processor."""
        create.zeros((), device=device)
        return self

    def cpu(self) -> Self:
        """Itself."""
        return self


class Linear(Module):
    """`x @ weight.T + bias`; the weight is of shape (out_features, in_features).

    Both are uniform between plus and minus the reciprocal root of `in_features`, as in torch.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        limit = max(in_features, 1) ** -0.5
        self.weight = _uniform(limit, out_features, in_features)
        self.bias = _uniform(limit, out_features) if bias else None

    def forward(self, input: Any) -> Any:
        """`input` of shape (..., in_features) becomes (..., out_features)."""
        return functional.linear(input, self.weight, self.bias)


def _uniform(limit: float, *size: int) -> Parameter:
    return Parameter(draw.rand(*size) * (2 * limit) - limit)


class LayerNorm(Module):
    """`functional.layer_norm` with a weight of ones and a bias of zeros to begin with."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5) -> None:
        super().__init__()
        self.normalized_shape, self.eps = as_shape(normalized_shape), eps
        self.weight = Parameter(create.ones(self.normalized_shape))
        self.bias = Parameter(create.zeros(self.normalized_shape))

    def forward(self, input: Any) -> Any:
        """`input` normalised, in its shape."""
        shape = self.normalized_shape
        return functional.layer_norm(input, shape, self.weight, self.bias, self.eps)


class Dropout(Module):
    """`functional.dropout`, in training."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, input: Any) -> Any:
        """`input` with some elements zero in training, as it is in evaluation."""
        return functional.dropout(input, self.p, self.training)


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """`input` in another shape."""
        return flatten(input, self.start_dim, self.end_dim)


class GELU(Module):
    """`functional.gelu`."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """The function of each element."""
        return functional.gelu(input, self.approximate)


class Softplus(Module):
    """`functional.softplus`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        """The function of each element."""
        return functional.softplus(input, self.beta, self.threshold)


class Softmax(Module):
    """`functional.softmax` along `dim`."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """Numbers that add up to one along the axis."""
        return functional.softmax(input, self.dim)


class HuberLoss(Module):
    """`functional.huber_loss`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__()
        self.reduction, self.delta = reduction, delta

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of `input` against `target`."""
        return functional.huber_loss(input, target, self.reduction, self.delta)


class CrossEntropyLoss(Module):
    """`functional.cross_entropy`: classes lie along axis 1, or the only one."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of the logits `input` against `target`."""
        return functional.cross_entropy(input, target, reduction=self.reduction)


class NLLLoss(Module):
    """`functional.nll_loss`."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of the logarithms of probabilities `input` against `target`."""
        return functional.nll_loss(input, target, reduction=self.reduction)
