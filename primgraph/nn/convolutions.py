"""Layers of convolutions and of their transposes."""

from __future__ import annotations

from typing import Any, ClassVar, final

from primgraph import operators
from primgraph.errors import ArgumentError
from primgraph.initializers import Initializer, Uniform
from primgraph.ir.frontend.signature import checked_methods
from primgraph.nn.layer import Layer
from primgraph.operators.handle import ArrayLike
from primgraph.operators.signal.convolutions import Padding
from primgraph.operators.signal.window_geometry import Sizes, both_ends, numbers
from primgraph.primitives.windows import span

# What torch calls the elements that stand around an array, and NumPy; zeros are those of the
# convolution itself.
_MODES = {"zeros": "", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class _Windows(Layer):
    """A weight of channels and windows, a bias, and how windows lie."""

    # Along how many axes windows slide.
    _count: ClassVar[int]
    weight: Any
    bias: Any

    def _build(
        self,
        channels: tuple[int, int],
        kernel_size: Sizes,
        stride: Sizes,
        dilation: Sizes,
        groups: int,
        bias: int,
        initializer: Initializer | None,
        dtype: Any,
    ) -> None:
        """A weight between the reciprocal roots of the inputs of an element, and a bias of zeros.

        With `bias` 0 there is none.
        """
        name, count = type(self).__name__, self._count
        self.kernel_size = numbers(name, "kernel_size", kernel_size, count, 1)
        self.stride = numbers(name, "stride", stride, count, 1)
        self.dilation = numbers(name, "dilation", dilation, count, 1)
        if any(n % groups for n in (*channels, bias)):
            raise ArgumentError(f"{name}: {groups} groups do not divide the channels")
        self.groups = groups
        shape = (channels[0], channels[1] // groups, *self.kernel_size)
        inputs = shape[1]
        for extent in self.kernel_size:
            inputs *= extent
        limit = max(inputs, 1) ** -0.5
        rule = Uniform(-limit, limit) if initializer is None else initializer
        self.weight = self.create_parameter(shape, dtype, rule)
        self.bias = None
        if bias:
            self.bias = self.create_parameter((bias,), dtype, is_bias=True)


@checked_methods()
class _Convolution(_Windows):
    """Base class of convolution layers."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        initializer: Initializer | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_mode not in _MODES:
            raise ArgumentError(
                f"padding_mode {padding_mode!r:.60}", hint=f"use one of {', '.join(_MODES)}"
            )
        self.padding_mode = padding_mode
        self.padding = padding
        if not isinstance(padding, str):
            self.padding = numbers(type(self).__name__, "padding", padding, self._count, 0)
        added = out_channels if bias else 0
        self._build(
            (out_channels, in_channels), kernel_size, stride, dilation, groups, added, initializer,
            dtype,
        )  # fmt: skip

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, in_channels, ...) becomes (samples, out_channels, ...)."""
        function = getattr(operators, f"conv{self._count}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            spans = [span(n, d) for n, d in zip(self.kernel_size, self.dilation, strict=True)]
            ends = both_ends(type(self).__name__, padding, spans, self.stride)
            value = operators.asarray(x)
            widths = [(0, 0)] * (value.ndim - self._count) + ends
            x, padding = operators.pad(value, widths, _MODES[self.padding_mode]), 0
        return function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


@final
@checked_methods()
class Conv1d(_Convolution):
    """`pg.conv1d` with a weight of shape (out_channels, in_channels / groups, kernel_size).

    The weight is drawn evenly between plus and minus the reciprocal root of the inputs of each
    output, as in torch, unless `initializer` says otherwise; `bias`, which can be left out, starts
    at zero. What stands around the array is zeros, or with `padding_mode` "reflect", "replicate"
    or "circular" elements of it.

    >>> layer = pg.nn.Conv1d(3, 8, 3)
    >>> layer(np.ones((1, 3, 6))).shape
    (1, 8, 4)
    """

    _count = 1


@final
@checked_methods()
class Conv2d(_Convolution):
    """`pg.conv2d` with a weight of shape (out_channels, in_channels / groups, rows, columns).

    Arguments are those of `Conv1d`, with a number for both axes or one for each.

    >>> layer = pg.nn.Conv2d(3, 8, 3, padding=1)
    >>> layer(np.ones((1, 3, 6, 6))).shape
    (1, 8, 6, 6)
    """

    _count = 2


@final
@checked_methods()
class Conv3d(_Convolution):
    """`pg.conv3d`; arguments are those of `Conv1d`, with a number for all axes or one for each.

    >>> pg.nn.Conv3d(2, 4, 3)(np.ones((1, 2, 5, 5, 5))).shape
    (1, 4, 3, 3, 3)
    """

    _count = 3


class _Transposed(_Windows):
    """Base class of transposed convolution layers."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        *,
        initializer: Initializer | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name, count = type(self).__name__, self._count
        self.padding = numbers(name, "padding", padding, count, 0)
        self.output_padding = numbers(name, "output_padding", output_padding, count, 0)
        added = out_channels if bias else 0
        self._build(
            (in_channels, out_channels), kernel_size, stride, dilation, groups, added, initializer,
            dtype,
        )  # fmt: skip

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, in_channels, ...) becomes (samples, out_channels, ...)."""
        function = getattr(operators, f"conv_transpose{self._count}d")
        return function(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups,
            self.dilation,
        )  # fmt: skip


@final
@checked_methods()
class ConvTranspose1d(_Transposed):
    """`pg.conv_transpose1d` with a weight of shape (in_channels, out_channels / groups, size).

    The weight is drawn as that of `Conv1d` of as many outputs, and `bias` starts at zero.

    >>> pg.nn.ConvTranspose1d(4, 2, 3)(np.ones((1, 4, 3))).shape
    (1, 2, 5)
    """

    _count = 1


@final
@checked_methods()
class ConvTranspose2d(_Transposed):
    """`pg.conv_transpose2d`; arguments are those of `ConvTranspose1d`, for both axes or each.

    >>> pg.nn.ConvTranspose2d(4, 2, 3)(np.ones((1, 4, 3, 3))).shape
    (1, 2, 5, 5)
    """

    _count = 2


@final
@checked_methods()
class ConvTranspose3d(_Transposed):
    """`pg.conv_transpose3d`; arguments are those of `ConvTranspose1d`, for all axes or each.

    >>> pg.nn.ConvTranspose3d(4, 2, 3)(np.ones((1, 4, 3, 3, 3))).shape
    (1, 2, 5, 5, 5)
    """

    _count = 3
