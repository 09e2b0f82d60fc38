"""Convolutions by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from primgraph.compat.paddle.framework import checked_place
from primgraph.compat.paddle.initializers import Normal
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.functional.windows import sizes_of
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.errors import ArgumentError

_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


class _Convolution(Layer):
    """Base class of convolutions along some axes."""

    _count: ClassVar[int]
    _transposed: ClassVar[bool] = False

    def _prepare(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        padding_mode: str,
        output_padding: Any,
        attributes: tuple[Any, Any],
        data_format: str,
        dtype: Any = None,
    ) -> None:
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ArgumentError(
                "padding_mode must be one of zeros, reflect, replicate and circular, but got "
                f"padding_mode={padding_mode!r:.60}"
            )
        if in_channels % groups or (self._transposed and out_channels % groups):
            raise ArgumentError("in_channels must be divisible by groups.")
        count = self._count
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = sizes_of(kernel_size, count)
        self._stride, self._dilation = sizes_of(stride, count), sizes_of(dilation, count)
        self._padding, self._padding_mode = padding, padding_mode
        self.output_padding, self._data_format = output_padding, data_format
        channels = [out_channels, in_channels // groups]
        default = None
        if self._transposed:
            channels = [in_channels, out_channels // groups]
        else:
            fan = math.prod(self._kernel_size) * in_channels
            default = Normal(0.0, math.sqrt(2.0 / fan))
        weight_attr, bias_attr = attributes
        self.weight = self.create_parameter(
            [*channels, *self._kernel_size], weight_attr, dtype, default_initializer=default
        )
        self.bias = self.create_parameter([out_channels], bias_attr, dtype, is_bias=True)

    def extra_repr(self) -> str:
        """Return the sizes and the options that are set."""
        count = self._count
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        options = {
            "stride": (self._stride, [1] * count),
            "padding": (self._padding, 0),
            "padding_mode": (self._padding_mode, "zeros"),
            "output_padding": (self.output_padding, 0),
            "dilation": (self._dilation, [1] * count),
            "groups": (self._groups, 1),
        }
        for name, (value, default) in options.items():
            text += "" if value == default else f", {name}={value}"
        return f"{text}, data_format={self._data_format}"


class _Direct(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        *,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        checked_place(type(self).__name__, device)
        attributes = weight_attr, bias_attr if bias else False
        self._prepare(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            padding_mode, 0, attributes, data_format or _FORMATS[self._count], dtype,
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """Return the products of windows with the weight."""
        padding = self._padding
        if self._padding_mode != "zeros":
            sizes = sizes_of(padding, self._count)
            around = [n for size in reversed(sizes) for n in (size, size)]
            x = functional.pad(x, around, self._padding_mode, data_format=self._data_format)
            padding = 0
        function = getattr(functional, f"conv{self._count}d")
        return function(
            x, self.weight, self.bias, self._stride, padding, self._dilation, self._groups,
            self._data_format,
        )  # fmt: skip


class _Transposed(_Convolution):
    _transposed = True

    def forward(self, x: Any, output_size: Any = None) -> Any:
        """Return the transpose of a convolution, of that size if one is given."""
        function = getattr(functional, f"conv{self._count}d_transpose")
        return function(
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            self.output_padding if output_size is None else 0,
            groups=self._groups,
            dilation=self._dilation,
            output_size=output_size,
            data_format=self._data_format,
        )


class Conv1D(_Direct):
    """Convolution along one axis.

    >>> paddle.nn.Conv1D(2, 3, 3)(paddle.ones([1, 2, 6])).shape
    paddle.Size([1, 3, 4])
    """

    _count = 1


class Conv2D(_Direct):
    """Convolution along two axes.

    >>> paddle.nn.Conv2D(1, 2, 3, padding=1)(paddle.ones([1, 1, 4, 4])).shape
    paddle.Size([1, 2, 4, 4])
    """

    _count = 2


class Conv3D(_Direct):
    """Convolution along three axes.

    >>> paddle.nn.Conv3D(1, 2, 2)(paddle.ones([1, 1, 3, 3, 3])).shape
    paddle.Size([1, 2, 2, 2, 2])
    """

    _count = 3


class Conv1DTranspose(_Transposed):
    """Transpose of a convolution along one axis.

    >>> paddle.nn.Conv1DTranspose(2, 1, 3)(paddle.ones([1, 2, 3])).shape
    paddle.Size([1, 1, 5])
    """

    _count = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__()
        self._prepare(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            "zeros", output_padding, (weight_attr, bias_attr), data_format,
        )  # fmt: skip


class Conv2DTranspose(_Transposed):
    """Transpose of a convolution along two axes.

    >>> paddle.nn.Conv2DTranspose(2, 1, 3)(paddle.ones([1, 2, 2, 2])).shape
    paddle.Size([1, 1, 4, 4])
    """

    _count = 2

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
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__()
        self._prepare(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros",
            output_padding, (weight_attr, bias_attr), data_format or _FORMATS[self._count],
        )  # fmt: skip


class Conv3DTranspose(Conv2DTranspose):
    """Transpose of a convolution along three axes.

    >>> paddle.nn.Conv3DTranspose(2, 1, 2)(paddle.ones([1, 2, 2, 2, 2])).shape
    paddle.Size([1, 1, 3, 3, 3])
    """

    _count = 3
