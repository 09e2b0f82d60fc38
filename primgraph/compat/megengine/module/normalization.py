"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from primgraph.compat.megengine.functional import nn as functional
from primgraph.compat.megengine.module import init
from primgraph.compat.megengine.module.module import Module
from primgraph.compat.megengine.tensor import Parameter, Tensor
from primgraph.compat.modules.layer_tables import show
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import FLOAT32

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "GeneralNorm",
    "GroupNorm",
    "InstanceNorm",
    "LayerNorm",
    "SyncBatchNorm",
]


class _Affine(Module):
    """Layer with a weight of ones and a bias of zeros, or neither."""

    _has_flat_state: ClassVar[bool] = True
    _shown = ""
    affine: bool

    def _add_weights(self, shape: Sequence[int]) -> None:
        self.weight = Parameter(np.ones(shape, FLOAT32)) if self.affine else None
        self.bias = Parameter(np.zeros(shape, FLOAT32)) if self.affine else None

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _module_info_string(self) -> str:
        return show(self, self._shown)


class BatchNorm2d(_Affine):
    """Normalization of each channel over a batch of images; the share `momentum` of the old
    running statistics is kept.

    Weights and statistics are of shape (1, num_features, 1, 1), and vectors in state dicts. A
    layer that is frozen always uses the running statistics, and is not trained.

    >>> megengine.module.BatchNorm2d(2)(megengine.functional.ones((3, 2, 4, 4))).max().item()
    0.0
    """

    _shown = "=num_features eps momentum affine track_running_stats"
    _ranks: ClassVar[tuple[int, ...]] = (4,)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        track_running_stats: bool = True,
        freeze: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.freeze = freeze
        if freeze and not track_running_stats:
            raise ArgumentError("a frozen layer has running statistics")
        shape = (1, num_features, 1, 1)
        self._add_weights(shape)
        self.running_mean: Any = Tensor(np.zeros(shape, FLOAT32)) if track_running_stats else None
        self.running_var: Any = Tensor(np.ones(shape, FLOAT32)) if track_running_stats else None

    def reset_running_stats(self) -> None:
        """Set the running mean to zero and the running variance to one."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)

    def reset_parameters(self) -> None:
        """Set the statistics and the weights to their initial values."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, inp: Any) -> Any:
        """Return `inp`, normalized."""
        if inp.ndim not in self._ranks:
            wanted = " or ".join(f"{n}D" for n in self._ranks)
            raise ShapeError(f"expected {wanted} input (got {inp.ndim}D input)")
        given: list[Any] = [self.running_mean, self.running_var]
        if not self.track_running_stats:
            given = [None, None]
        training = not self.freeze and (self.training or given[0] is None)
        weights: list[Any] = [self.weight, self.bias]
        if self.freeze:
            weights = [None if x is None else x.detach() for x in weights]
        options: dict[str, Any] = {"training": training, "momentum": self.momentum}
        return functional.batch_norm(inp, *given, *weights, eps=self.eps, **options)


class BatchNorm1d(BatchNorm2d):
    """Normalization of each channel over a batch of vectors or of sequences.

    >>> megengine.module.BatchNorm1d(1)(megengine.Tensor([[1.0], [3.0]])).numpy().round(2).ravel()
    array([-1.,  1.], dtype=float32)
    """

    _ranks: ClassVar[tuple[int, ...]] = (2, 3)


class SyncBatchNorm(BatchNorm2d):
    """`BatchNorm1d` or `BatchNorm2d`: there is one process.

    >>> megengine.module.SyncBatchNorm(2)(megengine.functional.ones((3, 2, 4, 4))).shape
    (3, 2, 4, 4)
    """

    _ranks: ClassVar[tuple[int, ...]] = (2, 3, 4)

    def __init__(self, *args: Any, group: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.group = group


class GroupNorm(_Affine):
    """Normalization of each group of channels of each sample.

    >>> megengine.module.GroupNorm(2, 4)(megengine.functional.ones((3, 4, 2, 2))).max().item()
    0.0
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if num_channels % num_groups:
            raise GroupError(f"{num_channels} channels are no multiple of {num_groups} groups")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._add_weights((num_channels,))

    def forward(self, x: Any) -> Any:
        """Return `x`, normalized."""
        options = (self.num_groups, self.affine, self.weight, self.bias, self.eps)
        return functional.group_norm(x, *options)

    def _module_info_string(self) -> str:
        return (
            f"groups={self.num_groups}, channels={self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}"
        )


class GroupError(ArgumentError, AssertionError):
    """Error for channels that make no equal groups: an `AssertionError` in MegEngine."""


class InstanceNorm(_Affine):
    """Normalization of each channel of each sample.

    >>> megengine.module.InstanceNorm(4)(megengine.functional.ones((3, 4, 2, 2))).max().item()
    0.0
    """

    def __init__(
        self, num_channels: int, eps: float = 1e-5, affine: bool = True, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.num_channels, self.eps, self.affine = num_channels, eps, affine
        self._add_weights((num_channels,))

    def forward(self, x: Any) -> Any:
        """Return `x`, normalized."""
        return functional.instance_norm(x, self.affine, self.weight, self.bias, self.eps)

    def _module_info_string(self) -> str:
        return f"channels={self.num_channels}, eps={self.eps}, affine={self.affine}"


class LayerNorm(_Affine):
    """Normalization of each sample over the last axes.

    >>> megengine.module.LayerNorm(2)(megengine.Tensor([[1.0, 3.0]])).numpy().round(2)
    array([[-1.,  1.]], dtype=float32)
    """

    _shown = "normalized_shape eps affine"

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        affine: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        given = normalized_shape
        self.normalized_shape = (given,) if isinstance(given, int) else tuple(given)
        self.eps, self.affine = eps, affine
        self._add_weights(self.normalized_shape)

    def forward(self, x: Any) -> Any:
        """Return `x`, normalized."""
        options = (self.normalized_shape, self.affine, self.weight, self.bias, self.eps)
        return functional.layer_norm(x, *options)


class GeneralNorm(_Affine):
    """Normalization over any axes, in ascending order.

    >>> layer = megengine.module.GeneralNorm((2,), (0,))
    >>> layer(megengine.Tensor([[1.0], [3.0]])).numpy().round(2).ravel()
    array([-1.,  1.], dtype=float32)
    """

    _has_flat_state: ClassVar[bool] = False
    _shown = "normalized_shape normalized_axis eps affine"

    def __init__(
        self,
        normalized_shape: Any = None,
        normalized_axis: Any = 0,
        eps: float = 1e-5,
        affine: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if affine and normalized_shape is None:
            raise ArgumentError("normalized_shape must be specified when affine is true")
        shape, axes = (
            [] if x is None else ([x] if isinstance(x, int) else list(x))
            for x in (normalized_shape, normalized_axis)
        )
        self.normalized_shape, self.normalized_axis = shape, axes
        self.eps, self.affine = eps, affine
        self._add_weights(shape)

    def forward(self, x: Any) -> Any:
        """Return `x`, normalized."""
        options = (self.affine, self.weight, self.bias, self.eps)
        return functional.general_norm(x, self.normalized_axis, *options)
