"""Layers that normalise over groups of channels, over each channel, and by the mean square."""

from __future__ import annotations

from typing import Any, final

from primgraph import operators
from primgraph.initializers import Constant
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import as_shape
from primgraph.nn.layer import Layer
from primgraph.operators.handle import ArrayLike


@final
@checked_methods()
class GroupNorm(Layer):
    """`pg.group_norm`; `weight` starts at one and `bias` at zero, unless `affine` is false."""

    weight: Any
    bias: Any

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        _affine(self, (num_channels,), affine, dtype)

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, num_channels, ...) normalised."""
        return operators.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


@final
@checked_methods()
class InstanceNorm(Layer):
    """`pg.instance_norm`; with `affine` a `weight` that starts at one and a `bias` at zero."""

    weight: Any
    bias: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, affine: bool = False, *, dtype: Any = None
    ) -> None:
        super().__init__()
        self.eps = eps
        _affine(self, (num_features,), affine, dtype)

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, num_features, ...) normalised."""
        return operators.instance_norm(x, self.weight, self.bias, self.eps)


@final
@checked_methods()
class RMSNorm(Layer):
    """`pg.rms_norm` over the last axes, which have the extents `shape`; `weight` starts at one."""

    weight: Any

    def __init__(self, shape: Any, eps: float | None = None, *, dtype: Any = None) -> None:
        super().__init__()
        self.shape, self.eps = as_shape(shape), eps
        self.weight = self.create_parameter(self.shape, dtype, Constant(1.0))

    def forward(self, x: ArrayLike) -> Any:
        """`x` normalised, in its shape."""
        axes = tuple(range(-len(self.shape), 0))
        return operators.rms_norm(x, self.weight, axes, self.eps)


def _affine(layer: Any, shape: tuple[int, ...], affine: bool, dtype: Any) -> None:
    layer.weight = layer.create_parameter(shape, dtype, Constant(1.0)) if affine else None
    layer.bias = layer.create_parameter(shape, dtype, is_bias=True) if affine else None
