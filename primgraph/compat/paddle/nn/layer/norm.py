"""Normalization by the names that the layers and their arguments have in Paddle."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from primgraph import operators as pg
from primgraph.compat.paddle.core.parameter_attributes import ParamAttr, as_attribute
from primgraph.compat.paddle.initializers import Constant, Normal
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, OptionError, ShapeError

_ONE = Constant(1.0)


def _frozen(attr: Any) -> Any:
    """Return an attribute, with one that is not trainable for False."""
    return ParamAttr(trainable=False) if attr is False else attr


class _BatchNormBase(Layer):
    """Base class of batch normalization."""

    _ranks: ClassVar[tuple[int, ...]] = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats, self.name = data_format, use_global_stats, name
        self._create(weight_attr, bias_attr, None, None)

    def _create(self, weight: Any, bias: Any, mean_name: Any, variance_name: Any) -> None:
        shape = [self._num_features]
        self.weight = self.create_parameter(shape, weight, default_initializer=_ONE)
        self.bias = self.create_parameter(shape, bias, is_bias=True)
        names = {"_mean": (mean_name, 0.0), "_variance": (variance_name, 1.0)}
        for attribute, (name, value) in names.items():
            attr = ParamAttr(name, Constant(value), trainable=False)
            setattr(self, attribute, self.create_parameter(shape, attr))

    def _check(self, input: Any) -> None:
        if input.ndim not in self._ranks:
            kinds = " or ".join(f"{n}D" for n in self._ranks)
            raise ShapeError(f"expected {kinds} input (got {input.ndim}D input)")

    def forward(self, input: Any) -> Any:
        """Return `input` with mean 0 and variance 1 for each channel."""
        self._check(input)
        return functional.batch_norm(
            input,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            self.training,
            self._momentum,
            self._epsilon,
            self._data_format,
            self._use_global_stats,
        )

    def extra_repr(self) -> str:
        """Return the options."""
        text = (
            f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        )
        layout = "" if self._data_format == "NCHW" else f", data_format={self._data_format}"
        return text + layout + (f", name={self.name}" if self.name else "")


class BatchNorm1D(_BatchNormBase):
    """Batch normalization of (samples, channels) or (samples, channels, length).

    >>> paddle.nn.BatchNorm1D(3)(paddle.ones([5, 3])).shape
    paddle.Size([5, 3])
    """

    _ranks = (2, 3)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format,
            use_global_stats, name,
        )  # fmt: skip


class BatchNorm2D(_BatchNormBase):
    """Batch normalization of images.

    >>> paddle.nn.BatchNorm2D(3)(paddle.ones([5, 3, 2, 2])).shape
    paddle.Size([5, 3, 2, 2])
    """

    _ranks = (4,)


class BatchNorm3D(_BatchNormBase):
    """Batch normalization of volumes.

    >>> paddle.nn.BatchNorm3D(3)(paddle.ones([5, 3, 2, 2, 2])).shape
    paddle.Size([5, 3, 2, 2, 2])
    """

    _ranks = (5,)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format,
            use_global_stats, name,
        )  # fmt: skip


class SyncBatchNorm(_BatchNormBase):
    """Batch normalization: there is one process, whose batch is the whole batch.

    >>> paddle.nn.SyncBatchNorm(3)(paddle.ones([5, 3, 2, 2])).shape
    paddle.Size([5, 3, 2, 2])
    """

    @classmethod
    def convert_sync_batchnorm(cls, layer: Any) -> Any:
        """Return the layer, whose batch normalization does the same in one process."""
        return layer


class BatchNorm(_BatchNormBase):
    """Batch normalization of any number of axes, with an activation, as old programs use it.

    >>> paddle.nn.BatchNorm(3, act="relu")(paddle.ones([5, 3])).shape
    paddle.Size([5, 3])
    """

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        Layer.__init__(self, dtype=dtype)
        self._num_features, self._momentum, self._epsilon = num_channels, momentum, epsilon
        self._data_format, self._use_global_stats, self.name = data_layout, use_global_stats, None
        self._act, self._trainable_statistics = act, trainable_statistics
        self._create(
            _frozen(param_attr), _frozen(bias_attr), moving_mean_name, moving_variance_name
        )
        if is_test:
            self.eval()

    def forward(self, input: Any) -> Any:
        """Return `input` normalized, and then the activation of it."""
        found = super().forward(input)
        return activate(found, self._act)


def activate(x: Any, act: str | None) -> Any:
    """Return an activation of `x` by name, or `x` itself."""
    if act is None:
        return x
    if act not in functional.__all__:
        raise ArgumentError(f"there is no activation {act!r:.60}")
    return getattr(functional, act)(x)


class LayerNorm(Layer):
    """Normalization of the last axes, of that shape, with a weight and a bias.

    >>> paddle.nn.LayerNorm(3)(paddle.ones([5, 3])).shape
    paddle.Size([5, 3])
    """

    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        *,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape
        self._normalized_shape, self._epsilon = list(given), epsilon
        if not elementwise_affine:
            weight_attr = bias_attr = False
        shape = [math.prod(self._normalized_shape)]
        self.weight = self.create_parameter(shape, weight_attr, dtype, default_initializer=_ONE)
        self.bias = self.create_parameter(shape, bias_attr if bias else False, dtype, is_bias=True)

    def forward(self, input: Any) -> Any:
        """Return `input` with mean 0 and variance 1 over the last axes."""
        return functional.layer_norm(
            input, self._normalized_shape, self.weight, self.bias, self._epsilon
        )

    def extra_repr(self) -> str:
        """Return the options."""
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class GroupNorm(Layer):
    """Normalization of groups of channels of each sample.

    >>> paddle.nn.GroupNorm(2, 4)(paddle.ones([5, 4, 3, 3])).shape
    paddle.Size([5, 4, 3, 3])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format, shape = data_format, [num_channels]
        attr = _frozen(weight_attr)
        self.weight = self.create_parameter(shape, attr, default_initializer=_ONE)
        self.bias = self.create_parameter(shape, _frozen(bias_attr), is_bias=True)

    def forward(self, input: Any) -> Any:
        """Return `input` with mean 0 and variance 1 for each group."""
        return functional.group_norm(
            input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format
        )

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"num_groups={self._num_groups}, num_channels={self._num_channels}, "
            f"epsilon={self._epsilon}"
        )


class InstanceNorm2D(Layer):
    """Normalization of each channel of each image.

    >>> paddle.nn.InstanceNorm2D(3)(paddle.ones([5, 3, 2, 2])).shape
    paddle.Size([5, 3, 2, 2])
    """

    _formats: ClassVar[tuple[str, ...]] = ("NCHW", "NHWC")

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if (weight_attr is False) is not (bias_attr is False):
            raise OptionError("weight_attr and bias_attr are both False, or none of them is")
        self._num_features, self._epsilon = num_features, epsilon
        self._data_format = data_format or self._formats[0]
        shape = [num_features]
        self.scale = self.create_parameter(shape, weight_attr, default_initializer=_ONE)
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True)

    def forward(self, input: Any) -> Any:
        """Return `input` with mean 0 and variance 1 for each channel of each sample."""
        return functional.instance_norm(
            input,
            weight=self.scale,
            bias=self.bias,
            eps=self._epsilon,
            data_format=self._data_format,
        )

    def extra_repr(self) -> str:
        """Return the options."""
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(InstanceNorm2D):
    """Normalization of each channel of each sequence.

    >>> paddle.nn.InstanceNorm1D(3)(paddle.ones([5, 3, 2])).shape
    paddle.Size([5, 3, 2])
    """

    _formats = ("NCL", "NLC")


class InstanceNorm3D(InstanceNorm2D):
    """Normalization of each channel of each volume.

    >>> paddle.nn.InstanceNorm3D(3)(paddle.ones([5, 3, 2, 2, 2])).shape
    paddle.Size([5, 3, 2, 2, 2])
    """

    _formats = ("NCDHW", "NDHWC")


class SpectralNorm(Layer):
    """Division of a weight by an estimate of its largest singular value, by power iterations.

    >>> paddle.nn.SpectralNorm([2, 3])(paddle.ones([2, 3])).shape
    paddle.Size([2, 3])
    """

    initial: ClassVar[Any] = Normal(0.0, 1.0)

    def __init__(
        self,
        weight_shape: Any,
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._dim, self._power_iters, self._eps = dim, power_iters, eps
        sizes = list(weight_shape)
        height = sizes[dim]
        width = 1
        for size in sizes:
            width *= size
        for name, size in (("weight_u", height), ("weight_v", width // height)):
            attr = as_attribute(self.initial)
            made = self.create_parameter([size], attr)
            made.stop_gradient = True
            setattr(self, name, made)

    def forward(self, x: Any) -> Any:
        """Return the weight divided by the estimate, and keep better vectors."""
        found, u, v = divide_by_spectrum(
            x, self.weight_u, self.weight_v, self._dim, self._power_iters, self._eps
        )
        with no_grad():
            self.weight_u.copy_(u)
            self.weight_v.copy_(v)
        return found


def divide_by_spectrum(
    weight: Any, u: Any, v: Any, dim: int, steps: int, eps: float
) -> tuple[Any, Any, Any]:
    """Return a weight divided by its estimated largest singular value, and both vectors."""
    matrix = pg.reshape(pg.moveaxis(weight, dim, 0), (weight.type.shape[dim], -1))
    constant = pg.stop_gradient(matrix)
    u, v = pg.stop_gradient(u), pg.stop_gradient(v)
    for _ in range(steps):
        v = _unit(pg.matmul(pg.transpose(constant), u), eps)
        u = _unit(pg.matmul(constant, v), eps)
    sigma = pg.sum(u * pg.matmul(matrix, v))
    return pg.divide(weight, sigma), u, v


def _unit(x: Any, eps: float) -> Any:
    return pg.divide(x, pg.add(pg.norm(x), eps))
