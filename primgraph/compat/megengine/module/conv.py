"""Convolution layers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.megengine.functional import nn as functional
from primgraph.compat.megengine.module import init
from primgraph.compat.megengine.module.module import Module
from primgraph.compat.megengine.module.normalization import BatchNorm2d
from primgraph.compat.megengine.tensor import Parameter
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.types import FLOAT32

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvBn2d",
    "ConvBnRelu2d",
    "ConvRelu2d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "ConvTransposeBn2d",
    "ConvTransposeBnRelu2d",
    "ConvTransposeRelu2d",
]


class _Conv(Module):
    """Weights of a convolution along some axes, normal with the reciprocal variance of inputs."""

    _axes: ClassVar[int] = 2
    _is_transposed: ClassVar[bool] = False
    padding_mode = "zeros"

    def _setup(
        self,
        channels: tuple[int, int],
        sizes: dict[str, Any],
        groups: int,
        bias: bool,
        name: str | None,
    ) -> None:
        Module.__init__(self, name)
        self.in_channels, self.out_channels, self.groups = *channels, groups
        for which, count in zip(("in_channels", "out_channels"), channels, strict=True):
            if count % groups:
                raise ArgumentError(f"{which} must be divisible by groups")
        for key, value in sizes.items():
            setattr(self, key, self._tuple(value))
        window = self.kernel_size if self._axes > 1 else (self.kernel_size,)
        first, second = channels if self._is_transposed else channels[::-1]
        shape: tuple[int, ...] = (first // groups, second // groups, *window)
        if groups > 1:
            shape = (groups, *shape)
        self.weight = Parameter(np.zeros(shape, FLOAT32))
        extents = (1, channels[1], *[1] * self._axes)
        self.bias = Parameter(np.zeros(extents, FLOAT32)) if bias else None
        self.reset_parameters()

    def _tuple(self, value: Any) -> Any:
        if self._axes == 1:
            return value
        return (value,) * self._axes if isinstance(value, int) else tuple(value)

    def reset_parameters(self) -> None:
        """Draw the weight anew, and set the bias to zero."""
        window = self.kernel_size if self._axes > 1 else (self.kernel_size,)
        channels = self.out_channels if self._is_transposed else self.in_channels
        init.normal_(self.weight, 0.0, (math.prod(window) * channels) ** -0.5)
        if self.bias is not None:
            init.zeros_(self.bias)

    def calc_conv(self, inp: Any, weight: Any, bias: Any) -> Any:
        """Return the convolution with these weights."""
        padding = self.padding
        if self.padding_mode != "zeros":
            pairs = [(p, p) for p in (padding if self._axes > 1 else (padding,))]
            inp = functional.pad(inp, [(0, 0), (0, 0), *pairs], self.padding_mode)
            padding = 0
        function = getattr(functional, f"conv{self._axes}d")
        return function(inp, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, inp: Any) -> Any:
        """Return (samples, out_channels, ...)."""
        return self.calc_conv(inp, self.weight, self.bias)

    def _module_info_string(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1)):
            value = getattr(self, name)
            if value != self._tuple(default):
                text += f", {name}={value}"
        text += "" if self.groups == 1 else f", groups={self.groups}"
        return text + ("" if self.bias is not None else ", bias=False")


class Conv2d(_Conv):
    """Convolution along two axes; the bias is of shape (1, out_channels, 1, 1).

    >>> megengine.module.Conv2d(2, 3, 3, padding=1)(megengine.functional.ones((1, 2, 5, 5))).shape
    (1, 3, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        conv_mode: str = "cross_correlation",
        compute_mode: str = "default",
        padding_mode: str = "zeros",
        name: str | None = None,
    ) -> None:
        if padding_mode not in ("zeros", "reflect", "replicate"):
            raise OptionError(f"padding_mode is zeros, reflect or replicate, not {padding_mode!r}")
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
        channels = in_channels, out_channels
        self._setup(channels, {**sizes, "dilation": dilation}, groups, bias, name)
        self.conv_mode, self.compute_mode = conv_mode, compute_mode
        self.padding_mode = padding_mode


class Conv1d(Conv2d):
    """Convolution along one axis; the bias is of shape (1, out_channels, 1).

    >>> megengine.module.Conv1d(2, 3, 3)(megengine.functional.ones((1, 2, 5))).shape
    (1, 3, 3)
    """

    _axes: ClassVar[int] = 1


class Conv3d(Conv2d):
    """Convolution along three axes.

    >>> megengine.module.Conv3d(1, 2, 2)(megengine.functional.ones((1, 1, 3, 3, 3))).shape
    (1, 2, 2, 2, 2)
    """

    _axes: ClassVar[int] = 3


class ConvRelu2d(Conv2d):
    """`Conv2d`, then ReLU.

    >>> megengine.module.ConvRelu2d(1, 2, 3)(megengine.functional.ones((1, 1, 3, 3))).shape
    (1, 2, 1, 1)
    """

    def forward(self, inp: Any) -> Any:
        """Return (samples, out_channels, height, width)."""
        return pg.relu(super().forward(inp))


class ConvTranspose2d(_Conv):
    """Transpose of a convolution along two axes.

    >>> megengine.module.ConvTranspose2d(2, 3, 3)(megengine.functional.ones((1, 2, 3, 3))).shape
    (1, 3, 5, 5)
    """

    _is_transposed: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        conv_mode: str = "cross_correlation",
        compute_mode: str = "default",
        name: str | None = None,
    ) -> None:
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
        sizes |= {"output_padding": output_padding, "dilation": dilation}
        self._setup((in_channels, out_channels), sizes, groups, bias, name)
        self.conv_mode, self.compute_mode = conv_mode, compute_mode

    def calc_conv(self, inp: Any, weight: Any, bias: Any) -> Any:
        """Return the transposed convolution with these weights."""
        function = getattr(functional, f"conv_transpose{self._axes}d")
        options = (self.stride, self.padding, self.output_padding, self.dilation, self.groups)
        return function(inp, weight, bias, *options)


class ConvTranspose3d(ConvTranspose2d):
    """Transpose of a convolution along three axes.

    >>> layer = megengine.module.ConvTranspose3d(2, 3, 2)
    >>> layer(megengine.functional.ones((1, 2, 3, 3, 3))).shape
    (1, 3, 4, 4, 4)
    """

    _axes: ClassVar[int] = 3


class ConvTransposeRelu2d(ConvTranspose2d):
    """`ConvTranspose2d`, then ReLU.

    >>> layer = megengine.module.ConvTransposeRelu2d(2, 3, 3)
    >>> layer(megengine.functional.ones((1, 2, 3, 3))).shape
    (1, 3, 5, 5)
    """

    def forward(self, inp: Any) -> Any:
        """Return (samples, out_channels, height, width)."""
        return pg.relu(super().forward(inp))


class ConvBn2d(Module):
    """`Conv2d` and `BatchNorm2d`, as attributes `conv` and `bn`.

    >>> megengine.module.ConvBn2d(1, 2, 3)(megengine.functional.ones((1, 1, 4, 4))).shape
    (1, 2, 2, 2)
    """

    _convolution: ClassVar[type[Any]] = Conv2d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        *args: Any,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        track_running_stats: bool = True,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name)
        self.conv = self._convolution(in_channels, out_channels, kernel_size, *args, **options)
        self.bn = BatchNorm2d(out_channels, eps, momentum, affine, track_running_stats)

    def forward(self, inp: Any) -> Any:
        """Return the normalized convolution."""
        return self.bn(self.conv(inp))


class ConvBnRelu2d(ConvBn2d):
    """`ConvBn2d`, then ReLU.

    >>> megengine.module.ConvBnRelu2d(1, 2, 3)(megengine.functional.ones((1, 1, 4, 4))).shape
    (1, 2, 2, 2)
    """

    def forward(self, inp: Any) -> Any:
        """Return the normalized convolution, or zero where it is negative."""
        return pg.relu(super().forward(inp))


class ConvTransposeBn2d(ConvBn2d):
    """`ConvTranspose2d` and `BatchNorm2d`, as attributes `conv` and `bn`.

    >>> layer = megengine.module.ConvTransposeBn2d(1, 2, 3)
    >>> layer(megengine.functional.ones((1, 1, 2, 2))).shape
    (1, 2, 4, 4)
    """

    _convolution: ClassVar[type[Any]] = ConvTranspose2d


class ConvTransposeBnRelu2d(ConvTransposeBn2d):
    """`ConvTransposeBn2d`, then ReLU.

    >>> layer = megengine.module.ConvTransposeBnRelu2d(1, 2, 3)
    >>> layer(megengine.functional.ones((1, 1, 2, 2))).shape
    (1, 2, 4, 4)
    """

    def forward(self, inp: Any) -> Any:
        """Return the normalized result, or zero where it is negative."""
        return pg.relu(super().forward(inp))
