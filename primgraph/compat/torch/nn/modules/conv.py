"""Convolutions and their transposes as layers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.init import kaiming_uniform_, uniform_
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter
from primgraph.errors import ArgumentError, DTypeError

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip


def _sizes(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Conv(Module):
    """Convolution along `_count` axes."""

    _count: ClassVar[int]
    _transposed: ClassVar[bool] = False

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
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._check(in_channels, out_channels, groups, padding, stride, padding_mode)
        n = self._count
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = _sizes(kernel_size, n), _sizes(stride, n)
        self.padding: Any = padding if isinstance(padding, str) else _sizes(padding, n)
        self.dilation, self.padding_mode = _sizes(dilation, n), padding_mode
        self.transposed, self.output_padding = self._transposed, (0,) * n
        pair = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        sizes = (pair[0], pair[1] // groups, *self.kernel_size)
        self.weight = Parameter(create.empty(sizes, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(create.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(
        self, inputs: int, outputs: int, groups: int, padding: Any, stride: Any, mode: str
    ) -> None:
        """Raise for arguments that do not fit."""
        if groups <= 0:
            raise ArgumentError("groups must be a positive integer")
        for name, channels in (("in_channels", inputs), ("out_channels", outputs)):
            if channels % groups:
                raise ArgumentError(f"{name} must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ArgumentError(
                    f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(s != 1 for s in _sizes(stride, self._count)):
                raise ArgumentError("padding='same' is not supported for strided convolutions")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if mode not in modes:
            raise ArgumentError(f"padding_mode must be one of {modes}, but got {mode!r}")

    def reset_parameters(self) -> None:
        """Draw the weight and the bias anew."""
        kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan:
            uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def forward(self, input: Any) -> Any:
        """Return the convolution of images (samples, channels, ...), or of one without samples."""
        self._check_dtype(input)
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._pads(), self.padding_mode), 0
        convolve = getattr(functional, f"conv{self._count}d")
        return convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _check_dtype(self, input: Any) -> None:
        if input.dtype != self.weight.dtype:
            raise DTypeError(
                f"Input type ({input.dtype}) and weight type ({self.weight.dtype}) should be the "
                "same"
            )

    def _pads(self) -> list[int]:
        """Return the counts of elements at both ends of the axes, the last axis first."""
        if self.padding == "valid":
            return [0] * (2 * self._count)
        found: list[int] = []
        for i in reversed(range(self._count)):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                found += [total // 2, total - total // 2]
            else:
                found += [self.padding[i]] * 2
        return found

    def extra_repr(self) -> str:
        """Return the arguments that are not the default."""
        zeros, ones = (0,) * self._count, (1,) * self._count
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        parts.append(f"stride={self.stride}")
        for name, default in (("padding", zeros), ("dilation", ones), ("output_padding", zeros)):
            value = getattr(self, name)
            if value != default:
                parts.append(
                    f"{name}={value!r}" if not isinstance(value, str) else f"{name}={value}"
                )
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _ConvTranspose(_Conv):
    """Transpose of a convolution along `_count` axes."""

    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip
        self.output_padding = _sizes(output_padding, self._count)

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """Return the transposed convolution, of `output_size` if given."""
        self._check_dtype(input)
        more = self.output_padding if output_size is None else self._more(input, output_size)
        convolve = getattr(functional, f"conv_transpose{self._count}d")
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            more,
            self.groups,
            self.dilation,
        )

    def _more(self, input: Any, output_size: Any) -> tuple[int, ...]:
        """Return the output padding that gives a size."""
        found = []
        for i, wanted in enumerate(list(output_size)[-self._count :]):
            n = input.shape[i - self._count]
            least = (n - 1) * self.stride[i] - 2 * self.padding[i]
            least += self.dilation[i] * (self.kernel_size[i] - 1) + 1
            if not least <= wanted < least + self.stride[i]:
                raise ArgumentError(
                    f"requested an output size of {list(output_size)}, but valid sizes range from "
                    f"{least} to {least + self.stride[i] - 1} (for an input of {list(input.shape)})"
                )
            found.append(wanted - least)
        return tuple(found)


class Conv1d(_Conv):
    """Convolution of sequences (samples, channels, length).

    >>> torch.nn.Conv1d(2, 4, 3)(torch.ones(1, 2, 8)).shape
    torch.Size([1, 4, 6])
    """

    _count = 1


class Conv2d(_Conv):
    """Convolution of images (samples, channels, height, width).

    >>> torch.nn.Conv2d(2, 4, 3, padding=1)(torch.ones(1, 2, 8, 8)).shape
    torch.Size([1, 4, 8, 8])
    """

    _count = 2


class Conv3d(_Conv):
    """Convolution of volumes (samples, channels, depth, height, width).

    >>> torch.nn.Conv3d(1, 2, 2)(torch.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    _count = 3


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of sequences.

    >>> torch.nn.ConvTranspose1d(2, 4, 3)(torch.ones(1, 2, 8)).shape
    torch.Size([1, 4, 10])
    """

    _count = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of images.

    >>> torch.nn.ConvTranspose2d(2, 4, 2, stride=2)(torch.ones(1, 2, 8, 8)).shape
    torch.Size([1, 4, 16, 16])
    """

    _count = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of volumes.

    >>> torch.nn.ConvTranspose3d(1, 2, 2)(torch.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 2, 4, 4, 4])
    """

    _count = 3
