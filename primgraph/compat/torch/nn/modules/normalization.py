"""Normalization as layers, with running statistics or without."""

from __future__ import annotations

from typing import Any, ClassVar

from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.init import ones_, zeros_
from primgraph.compat.torch.nn.layer_tables import FunctionLayer, define_layers, show
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, OptionError

_ROWS = """
LocalResponseNorm(size, alpha=1e-4, beta=0.75, k=1.0): local_response_norm(input) \
| =size alpha beta k
Divide by a power of the mean square of `size` neighbouring channels.
>>> torch.nn.LocalResponseNorm(1, alpha=3.0, beta=1.0)(torch.ones(1, 1, 1))
tensor([[[0.2500]]])
"""

__all__ = [
    *define_layers(globals(), FunctionLayer, vars(functional), _ROWS),
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "RMSNorm", "SyncBatchNorm",
]  # fmt: skip


def _register(
    module: Module, name: str, value: float, sizes: Any, wanted: bool, **kind: Any
) -> None:
    """Register a parameter of equal elements, or None unless it is wanted."""
    made = Parameter(create.full(sizes, value, **kind)) if wanted else None
    module.register_parameter(name, made)


class _WithStatistics(Module):
    """Normalization of channels with running means and variances."""

    _axes: ClassVar[tuple[int, ...]]
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        kind = {"device": device, "dtype": dtype}
        _register(self, "weight", 1.0, (num_features,), affine, **kind)
        _register(self, "bias", 0.0, (num_features,), affine and bias, **kind)
        track = track_running_stats
        buffers = {
            "running_mean": create.zeros(num_features, **kind) if track else None,
            "running_var": create.ones(num_features, **kind) if track else None,
            "num_batches_tracked": create.tensor(0) if track else None,
        }
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def reset_running_stats(self) -> None:
        """Begin with the running statistics anew."""
        if self.track_running_stats:
            zeros_(self.running_mean)
            ones_(self.running_var)
            zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Begin with statistics, weight and bias anew."""
        self.reset_running_stats()
        if self.affine:
            ones_(self.weight)
        if self.bias is not None:
            zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim not in self._axes:
            allowed = " or ".join(f"{n}D" for n in self._axes)
            raise ArgumentError(f"expected {allowed} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """Return the number of channels and options."""
        shown = show(self, "eps momentum affine")
        bias = f"bias={self.bias is not None}"
        return f"{self.num_features}, {shown}, {bias}, {show(self, 'track_running_stats')}"


NormBase = _NormBase = _WithStatistics


class _BatchNorm(_WithStatistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype, bias)
        super().__init__(num_features, *options)

    def forward(self, input: Any) -> Any:
        """Return `input` normalized: by its own statistics in training, else by running ones."""
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                share = 1.0 / self.num_batches_tracked
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracks = not self.training or self.track_running_stats
        return functional.batch_norm(
            input,
            self.running_mean if tracks else None,
            self.running_var if tracks else None,
            self.weight,
            self.bias,
            by_batch,
            share,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalization of the channels of (samples, channels) or (samples, channels, length).

    >>> torch.nn.BatchNorm1d(1)(torch.tensor([[1.0], [3.0]])).flatten().detach()
    tensor([-1.0000,  1.0000])
    """

    _axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalization of the channels of images.

    >>> torch.nn.BatchNorm2d(2)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2])
    """

    _axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalization of the channels of volumes.

    >>> torch.nn.BatchNorm3d(2)(torch.ones(1, 2, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    _axes = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over several processes: an error, as there is one.

    >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(net) is net
    True
    """

    _axes = (2, 3, 4, 5)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OptionError("SyncBatchNorm: there is one process: use BatchNorm1d, 2d or 3d")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Return the module: in one process, both normalizations are the same."""
        return module


class _InstanceNorm(_WithStatistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype, bias)
        super().__init__(num_features, *options)

    def forward(self, input: Any) -> Any:
        """Return each channel of each sample normalized."""
        self._check_input_dim(input)
        if input.ndim == min(self._axes):
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _normalize(self, input: Any) -> Any:
        return functional.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalization of each channel of each sequence.

    >>> torch.nn.InstanceNorm1d(1)(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _axes = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalization of each channel of each image.

    >>> torch.nn.InstanceNorm2d(2)(torch.ones(1, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2])
    """

    _axes = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalization of each channel of each volume.

    >>> torch.nn.InstanceNorm3d(2)(torch.ones(1, 2, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    _axes = (4, 5)


class LayerNorm(Module):
    """Normalization over the last axes, as many as `normalized_shape` has sizes.

    >>> torch.nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = normalized_shape
        self.normalized_shape = (given,) if isinstance(given, int) else tuple(given)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        kind = {"device": device, "dtype": dtype}
        _register(self, "weight", 1.0, self.normalized_shape, elementwise_affine, **kind)
        _register(self, "bias", 0.0, self.normalized_shape, elementwise_affine and bias, **kind)

    def reset_parameters(self) -> None:
        """Set weights to one, and biases to zero."""
        if self.weight is not None:
            ones_(self.weight)
        if self.bias is not None:
            zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """Return `input` normalized, in its shape."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the sizes and options."""
        shown = show(self, "=normalized_shape eps elementwise_affine")
        return f"{shown}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Normalization to mean square 1 over the last axes.

    >>> torch.nn.RMSNorm(2)(torch.tensor([[2.0, 2.0]])).detach()
    tensor([[1., 1.]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = normalized_shape
        self.normalized_shape = (given,) if isinstance(given, int) else tuple(given)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        kind = {"device": device, "dtype": dtype}
        _register(self, "weight", 1.0, self.normalized_shape, elementwise_affine, **kind)

    def reset_parameters(self) -> None:
        """Set weights to one."""
        if self.weight is not None:
            ones_(self.weight)

    def forward(self, input: Any) -> Any:
        """Return `input` normalized, in its shape."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the sizes and options."""
        return show(self, "=normalized_shape eps elementwise_affine")


class GroupNorm(Module):
    """Normalization of groups of channels.

    >>> torch.nn.GroupNorm(2, 4)(torch.ones(1, 4, 3)).shape
    torch.Size([1, 4, 3])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.affine = affine
        kind = {"device": device, "dtype": dtype}
        _register(self, "weight", 1.0, (num_channels,), affine, **kind)
        _register(self, "bias", 0.0, (num_channels,), affine and bias, **kind)

    def reset_parameters(self) -> None:
        """Set weights to one, and biases to zero."""
        if self.affine:
            ones_(self.weight)
        if self.bias is not None:
            zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """Return `input` normalized, in its shape."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the counts and options."""
        shown = show(self, "=num_groups =num_channels eps affine")
        return f"{shown}, bias={self.bias is not None}"
