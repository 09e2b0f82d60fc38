"""Layers as functions that create parameters, and control flow, of `paddle.static.nn`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.parameter_attributes import as_attribute
from primgraph.compat.paddle.core.parameters import new_parameter
from primgraph.compat.paddle.framework import paddles, reject_options
from primgraph.compat.paddle.nn import layer as layers
from primgraph.compat.paddle.nn.layer.layers import named_layer
from primgraph.compat.paddle.nn.layer.norm import activate, divide_by_spectrum
from primgraph.compat.paddle.static.control import (
    case,
    cond,
    static_pylayer,
    switch_case,
    while_loop,
)
from primgraph.compat.paddle.static.values import py_func
from primgraph.compat.paddle.utils import unique_name
from primgraph.errors import ArgumentError

__all__ = [
    "batch_norm",
    "bilinear_tensor_product",
    "case",
    "cond",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "embedding",
    "fc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "prelu",
    "py_func",
    "spectral_norm",
    "static_pylayer",
    "switch_case",
    "while_loop",
]


@paddles
def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Any:
    """Compute `activation(x @ weight + bias)`, or of a list the sum of products.

    Axes from `num_flatten_dims` on count as one. Parameters are named `fc_0.w_0`, `fc_0.b_0`.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.fc(paddle.static.data("x", [2, 3]), 4, activation="relu")
    >>> y.shape
    paddle.Size([2, 4])
    """
    inputs = list(x) if isinstance(x, list | tuple) else [x]
    attributes = list(weight_attr) if isinstance(weight_attr, list) else [weight_attr] * len(inputs)
    owner = name or unique_name.generate("fc")
    products = []
    for value, attr in zip(inputs, attributes, strict=True):
        shape = value.type.shape
        lead = num_flatten_dims if num_flatten_dims >= 0 else value.ndim - 1
        if not 0 < lead < value.ndim:
            raise ArgumentError(f"num_flatten_dims={num_flatten_dims} does not fit {value.type}")
        width = math.prod(shape[lead:])
        given = as_attribute(attr)
        assert given is not None, "weight_attr is not False"
        weight = new_parameter([width, size], value.type.dtype, given, owner=owner)
        products.append(pg.matmul(pg.reshape(value, (*shape[:lead], width)), weight))
    found = products[0] if len(products) == 1 else pg.add_n(products)
    bias = as_attribute(bias_attr)
    if bias is not None:
        found = found + new_parameter([size], found.type.dtype, bias, True, owner=owner)
    return activate(found, activation)


@paddles
def embedding(
    input: Any,
    size: Any,
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Any:
    """Return rows of a new weight of shape `size` at positions `input`.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.embedding(paddle.static.data("k", [2], "int64"), [5, 3])
    >>> y.shape
    paddle.Size([2, 3])
    """
    reject_options("embedding", is_distributed=is_distributed)
    made = layers.Embedding(size[0], size[1], padding_idx, weight_attr=param_attr, dtype=dtype)
    return made(input)


def _channels(input: Any, data_format: str) -> int:
    return int(input.type.shape[-1 if data_format.endswith("C") else 1])


def _convolved(
    kind: Any, input: Any, num_filters: int, filter_size: Any, name: str | None, act: Any,
    data_format: str, param_attr: Any, bias_attr: Any, groups: int | None, **options: Any,
) -> Any:  # fmt: skip
    """Return a convolution of `input` with a new weight."""
    size = options.pop("output_size", None)
    with named_layer(name):
        made = kind(
            _channels(input, data_format),
            num_filters,
            filter_size,
            groups=groups or 1,
            weight_attr=param_attr,
            bias_attr=bias_attr,
            data_format=data_format,
            **options,
        )
    return activate(made(input) if size is None else made(input, size), act)


@paddles
def conv2d(
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Any:
    """Compute a convolution of images with a new weight.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.conv2d(paddle.static.data("x", [1, 1, 4, 4]), 2, 3)
    >>> y.shape
    paddle.Size([1, 2, 2, 2])
    """
    return _convolved(
        layers.Conv2D, input, num_filters, filter_size, name, act, data_format, param_attr,
        bias_attr, groups, stride=stride, padding=padding, dilation=dilation,
    )  # fmt: skip


@paddles
def conv3d(
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Any:
    """Compute a convolution of volumes with a new weight.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.conv3d(paddle.static.data("x", [1, 1, 3, 3, 3]), 2, 2)
    >>> y.shape
    paddle.Size([1, 2, 2, 2, 2])
    """
    return _convolved(
        layers.Conv3D, input, num_filters, filter_size, name, act, data_format, param_attr,
        bias_attr, groups, stride=stride, padding=padding, dilation=dilation,
    )  # fmt: skip


@paddles
def conv2d_transpose(
    input: Any,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Any:
    """Compute the transpose of a convolution of images with a new weight.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [1, 1, 2, 2])
    ...     y = paddle.static.nn.conv2d_transpose(x, 2, filter_size=3)
    >>> y.shape
    paddle.Size([1, 2, 4, 4])
    """
    if filter_size is None:
        raise ArgumentError("conv2d_transpose takes filter_size")
    return _convolved(
        layers.Conv2DTranspose, input, num_filters, filter_size, name, act, data_format,
        param_attr, bias_attr, groups, stride=stride, padding=padding, dilation=dilation,
        output_size=output_size,
    )  # fmt: skip


@paddles
def conv3d_transpose(
    input: Any,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Any:
    """Compute the transpose of a convolution of volumes with a new weight.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [1, 1, 2, 2, 2])
    ...     y = paddle.static.nn.conv3d_transpose(x, 2, filter_size=2)
    >>> y.shape
    paddle.Size([1, 2, 3, 3, 3])
    """
    if filter_size is None:
        raise ArgumentError("conv3d_transpose takes filter_size")
    return _convolved(
        layers.Conv3DTranspose, input, num_filters, filter_size, name, act, data_format,
        param_attr, bias_attr, groups, stride=stride, padding=padding, dilation=dilation,
        output_size=output_size,
    )  # fmt: skip


@paddles
def batch_norm(
    input: Any,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Any:
    """Normalize channels, with new running statistics that each run updates.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.batch_norm(paddle.static.data("x", [4, 2]))
    >>> y.shape
    paddle.Size([4, 2])
    """
    with named_layer(name):
        made = layers.BatchNorm(
            _channels(input, data_layout), act, is_test, momentum, epsilon, param_attr, bias_attr,
            "float32", data_layout, in_place, moving_mean_name, moving_variance_name,
            do_model_average_for_mean_and_var, use_global_stats,
        )  # fmt: skip
    return made(input)


@paddles
def layer_norm(
    input: Any,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Any:
    """Normalize the axes from `begin_norm_axis` on, with a new scale and shift.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.layer_norm(paddle.static.data("x", [4, 2]))
    >>> y.shape
    paddle.Size([4, 2])
    """
    shape = input.type.shape[begin_norm_axis:]
    attributes = (param_attr if scale else False, bias_attr if shift else False)
    with named_layer(name):
        made = layers.LayerNorm(list(shape), epsilon, *attributes)
    return activate(made(input), act)


@paddles
def group_norm(
    input: Any,
    groups: int,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Any:
    """Normalize groups of channels, with a new scale and shift.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.group_norm(paddle.static.data("x", [2, 4, 3, 3]), 2)
    >>> y.shape
    paddle.Size([2, 4, 3, 3])
    """
    with named_layer(name):
        made = layers.GroupNorm(
            groups, _channels(input, data_layout), epsilon, param_attr, bias_attr, data_layout
        )
    return activate(made(input), act)


@paddles
def instance_norm(
    input: Any,
    epsilon: float = 1e-5,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Any:
    """Normalize each channel of each sample, with a new scale and shift.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.instance_norm(paddle.static.data("x", [2, 4, 3, 3]))
    >>> y.shape
    paddle.Size([2, 4, 3, 3])
    """
    kinds: dict[int, Any] = {
        3: layers.InstanceNorm1D,
        4: layers.InstanceNorm2D,
        5: layers.InstanceNorm3D,
    }
    if input.ndim not in kinds:
        raise ArgumentError(f"instance_norm takes arrays of 3 to 5 axes, not {input.type}")
    with named_layer(name or unique_name.generate("instance_norm")):
        made = kinds[input.ndim](
            input.type.shape[1], epsilon, weight_attr=param_attr, bias_attr=bias_attr
        )
    return made(input)


@paddles
def prelu(
    x: Any, mode: str, param_attr: Any = None, data_format: str = "NCHW", name: str | None = None
) -> Any:
    """Multiply negative elements by a new slope: for all, for each channel or each element.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.prelu(paddle.static.data("x", [2, 4, 3, 3]), "channel")
    >>> y.shape
    paddle.Size([2, 4, 3, 3])
    """
    if mode not in ("all", "channel", "element"):
        raise ArgumentError("mode should be one of all, channel, element.")
    if mode != "element":
        count = 1 if mode == "all" else _channels(x, data_format)
        with named_layer(name or unique_name.generate("prelu")):
            made = layers.PReLU(count, weight_attr=param_attr, data_format=data_format)
        return made(x)
    given = as_attribute(param_attr)
    assert given is not None, "param_attr is not False"
    owner = name or unique_name.generate("prelu")
    weight = new_parameter([1, *x.type.shape[1:]], x.type.dtype, given, owner=owner)
    return pg.where(pg.greater(x, 0), x, pg.multiply(x, weight))


@paddles
def bilinear_tensor_product(
    x: Any,
    y: Any,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Any:
    """Compute `x @ weight[k] @ y` for each output, with a new weight and bias.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [4, 2])
    ...     y = paddle.static.nn.bilinear_tensor_product(x, x, 3)
    >>> y.shape
    paddle.Size([4, 3])
    """
    with named_layer(name or unique_name.generate("bilinear_tensor_product")):
        made = layers.Bilinear(x.type.shape[1], y.type.shape[1], size, param_attr, bias_attr)
    return activate(made(x, y), act)


@paddles
def spectral_norm(
    weight: Any, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Any:
    """Divide a weight by an estimate of its largest singular value.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     y = paddle.static.nn.spectral_norm(paddle.static.data("x", [2, 3]))
    >>> y.shape
    paddle.Size([2, 3])
    """
    height = weight.type.shape[dim]
    owner = name or unique_name.generate("spectral_norm")
    attr = as_attribute(layers.SpectralNorm.initial)
    assert attr is not None
    attr.trainable = False
    u, v = [
        new_parameter([n], dtype_or_default(weight.type.dtype), attr, owner=owner)
        for n in (height, weight.type.size // height)
    ]
    return divide_by_spectrum(weight, u, v, dim, power_iters, eps)[0]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
