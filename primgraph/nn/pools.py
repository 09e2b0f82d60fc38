"""Pools as layers, and the axes behind the samples as one."""

from __future__ import annotations

from typing import Any, ClassVar, final

from primgraph import operators
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import as_axis
from primgraph.nn.layer import Layer
from primgraph.operators.handle import ArrayLike
from primgraph.operators.signal.window_geometry import Sizes, numbers


class _Pool(Layer):
    """How windows lie."""

    # Along how many axes they slide.
    _count: ClassVar[int]

    def _place(self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes) -> None:
        name, count = type(self).__name__, self._count
        self.kernel_size = numbers(name, "kernel_size", kernel_size, count, 1)
        self.stride = None if stride is None else numbers(name, "stride", stride, count, 1)
        self.padding = numbers(name, "padding", padding, count, 0)


class _MaxPool(_Pool):
    """Base class of max pooling layers."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self._place(kernel_size, stride, padding)
        self.ceil_mode = ceil_mode
        self.dilation = numbers(type(self).__name__, "dilation", dilation, self._count, 1)

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, channels, ...) with an element for each window."""
        function = getattr(operators, f"max_pool{self._count}d")
        return function(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class _AvgPool(_Pool):
    """Base class of average pooling layers."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: float | None = None,
    ) -> None:
        super().__init__()
        self._place(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, channels, ...) with an element for each window."""
        function = getattr(operators, f"avg_pool{self._count}d")
        return function(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class _AdaptivePool(Layer):
    """Base class of adaptive pooling layers."""

    _name: ClassVar[str]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: ArrayLike) -> Any:
        """`x` of shape (samples, channels, ...) with an element for each bin."""
        return getattr(operators, self._name)(x, self.output_size)


@final
@checked_methods()
class MaxPool1d(_MaxPool):
    """Layer that applies `pg.max_pool1d`.

    >>> pg.nn.MaxPool1d(2)(np.ones((1, 3, 4))).shape
    (1, 3, 2)
    """

    _count = 1


@final
@checked_methods()
class MaxPool2d(_MaxPool):
    """`pg.max_pool2d`.

    >>> pg.nn.MaxPool2d(2)(np.ones((1, 1, 4, 4))).shape
    (1, 1, 2, 2)
    """

    _count = 2


@final
@checked_methods()
class MaxPool3d(_MaxPool):
    """Layer that applies `pg.max_pool3d`.

    >>> pg.nn.MaxPool3d(2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _count = 3


@final
@checked_methods()
class AvgPool1d(_AvgPool):
    """Layer that applies `pg.avg_pool1d`.

    >>> pg.nn.AvgPool1d(2)(np.ones((1, 3, 4))).shape
    (1, 3, 2)
    """

    _count = 1


@final
@checked_methods()
class AvgPool2d(_AvgPool):
    """`pg.avg_pool2d`.

    >>> pg.nn.AvgPool2d(2)(np.ones((1, 1, 4, 4))).shape
    (1, 1, 2, 2)
    """

    _count = 2


@final
@checked_methods()
class AvgPool3d(_AvgPool):
    """Layer that applies `pg.avg_pool3d`.

    >>> pg.nn.AvgPool3d(2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _count = 3


@final
@checked_methods()
class AdaptiveMaxPool1d(_AdaptivePool):
    """Layer that applies `pg.adaptive_max_pool1d`.

    >>> pg.nn.AdaptiveMaxPool1d(2)(np.ones((1, 3, 4))).shape
    (1, 3, 2)
    """

    _name = "adaptive_max_pool1d"


@final
@checked_methods()
class AdaptiveMaxPool2d(_AdaptivePool):
    """Layer that applies `pg.adaptive_max_pool2d`.

    >>> pg.nn.AdaptiveMaxPool2d(2)(np.ones((1, 3, 4, 4))).shape
    (1, 3, 2, 2)
    """

    _name = "adaptive_max_pool2d"


@final
@checked_methods()
class AdaptiveMaxPool3d(_AdaptivePool):
    """Layer that applies `pg.adaptive_max_pool3d`.

    >>> pg.nn.AdaptiveMaxPool3d(2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _name = "adaptive_max_pool3d"


@final
@checked_methods()
class AdaptiveAvgPool1d(_AdaptivePool):
    """Layer that applies `pg.adaptive_avg_pool1d`.

    >>> pg.nn.AdaptiveAvgPool1d(2)(np.ones((1, 3, 4))).shape
    (1, 3, 2)
    """

    _name = "adaptive_avg_pool1d"


@final
@checked_methods()
class AdaptiveAvgPool2d(_AdaptivePool):
    """Layer that applies `pg.adaptive_avg_pool2d`.

    >>> pg.nn.AdaptiveAvgPool2d(2)(np.ones((1, 3, 4, 4))).shape
    (1, 3, 2, 2)
    """

    _name = "adaptive_avg_pool2d"


@final
@checked_methods()
class AdaptiveAvgPool3d(_AdaptivePool):
    """Layer that applies `pg.adaptive_avg_pool3d`.

    >>> pg.nn.AdaptiveAvgPool3d(2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _name = "adaptive_avg_pool3d"


@final
@checked_methods()
class Flatten(Layer):
    """The axes from `start_dim` to `end_dim` as one: by default all behind the samples.

    >>> pg.nn.Flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: ArrayLike) -> Any:
        """`x` in another shape. Raises `ShapeError` for axes that it lacks."""
        value = operators.asarray(x)
        first, last = as_axis(self.start_dim, value.ndim), as_axis(self.end_dim, value.ndim)
        joined = 1
        for extent in value.shape[first : last + 1]:
            joined = joined * extent
        shape = (*value.shape[:first], joined, *value.shape[last + 1 :])
        return operators.reshape(value, shape)
