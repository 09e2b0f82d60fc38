"""Convolutions, pools, norms and attention by the names that their arguments have in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph import operators as pg
from primgraph.eager.seeds import next_key
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "embedding",
    "group_norm",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "rms_norm",
    "scaled_dot_product_attention",
]


def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Compute sums of products of windows along one axis with a weight.

    >>> F = torch.nn.functional
    >>> F.conv1d(torch.ones(1, 2, 5), torch.ones(3, 2, 3)).shape
    torch.Size([1, 3, 3])
    """
    return pg.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Compute sums of products of windows along two axes with a weight.

    >>> F = torch.nn.functional
    >>> F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3), padding=1).shape
    torch.Size([1, 3, 5, 5])
    """
    return pg.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Compute sums of products of windows along three axes with a weight.

    >>> F = torch.nn.functional
    >>> F.conv3d(torch.ones(1, 1, 3, 3, 3), torch.ones(2, 1, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2, 2])
    """
    return pg.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Compute the transpose of `conv1d`.

    >>> F = torch.nn.functional
    >>> F.conv_transpose1d(torch.ones(1, 3, 3), torch.ones(3, 2, 3)).shape
    torch.Size([1, 2, 5])
    """
    return pg.conv_transpose1d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Compute the transpose of `conv2d`.

    >>> F = torch.nn.functional
    >>> F.conv_transpose2d(torch.ones(1, 3, 3, 3), torch.ones(3, 2, 3, 3)).shape
    torch.Size([1, 2, 5, 5])
    """
    return pg.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Compute the transpose of `conv3d`.

    >>> F = torch.nn.functional
    >>> F.conv_transpose3d(torch.ones(1, 2, 2, 2, 2), torch.ones(2, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 3, 3, 3])
    """
    return pg.conv_transpose3d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window; `return_indices` is not supported.

    >>> F = torch.nn.functional
    >>> F.max_pool1d(torch.tensor([[1.0, 5.0, 3.0, 4.0]]), 2)
    tensor([[5., 4.]])
    """
    _no_indices("max_pool1d", return_indices)
    return pg.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window; `return_indices` is not supported.

    >>> F = torch.nn.functional
    >>> F.max_pool2d(torch.ones(1, 4, 4), 2).shape
    torch.Size([1, 2, 2])
    """
    _no_indices("max_pool2d", return_indices)
    return pg.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window; `return_indices` is not supported.

    >>> F = torch.nn.functional
    >>> F.max_pool3d(torch.ones(1, 4, 4, 4), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    _no_indices("max_pool3d", return_indices)
    return pg.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Compute the mean of each window.

    >>> F = torch.nn.functional
    >>> F.avg_pool1d(torch.tensor([[1.0, 5.0, 3.0, 4.0]]), 2)
    tensor([[3. , 3.5]])
    """
    return pg.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Any:
    """Compute the mean of each window.

    >>> F = torch.nn.functional
    >>> F.avg_pool2d(torch.ones(1, 4, 4), 2).shape
    torch.Size([1, 2, 2])
    """
    return pg.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Any:
    """Compute the mean of each window.

    >>> F = torch.nn.functional
    >>> F.avg_pool3d(torch.ones(1, 4, 4, 4), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return pg.avg_pool3d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Compute the mean of each of `output_size` bins.

    >>> F = torch.nn.functional
    >>> F.adaptive_avg_pool1d(torch.tensor([[1.0, 5.0, 3.0, 4.0]]), 2)
    tensor([[3. , 3.5]])
    """
    return pg.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Compute the mean of each of `output_size` bins along each axis.

    >>> F = torch.nn.functional
    >>> F.adaptive_avg_pool2d(torch.ones(1, 5, 5), 2).shape
    torch.Size([1, 2, 2])
    """
    return pg.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Compute the mean of each of `output_size` bins along each axis.

    >>> F = torch.nn.functional
    >>> F.adaptive_avg_pool3d(torch.ones(1, 5, 5, 5), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return pg.adaptive_avg_pool3d(input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each of `output_size` bins.

    >>> F = torch.nn.functional
    >>> F.adaptive_max_pool1d(torch.tensor([[1.0, 5.0, 3.0, 4.0]]), 2)
    tensor([[5., 4.]])
    """
    _no_indices("adaptive_max_pool1d", return_indices)
    return pg.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each of `output_size` bins along each axis.

    >>> F = torch.nn.functional
    >>> F.adaptive_max_pool2d(torch.ones(1, 5, 5), 2).shape
    torch.Size([1, 2, 2])
    """
    _no_indices("adaptive_max_pool2d", return_indices)
    return pg.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each of `output_size` bins along each axis.

    >>> F = torch.nn.functional
    >>> F.adaptive_max_pool3d(torch.ones(1, 5, 5, 5), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    _no_indices("adaptive_max_pool3d", return_indices)
    return pg.adaptive_max_pool3d(input, output_size)


def _no_indices(function: str, wanted: bool) -> None:
    if wanted:
        raise ArgumentError(f"{function} tells no indices", hint="argmax of the windows has them")


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalize to mean 0 and variance 1 over groups of channels; then apply weight and bias.

    >>> F = torch.nn.functional
    >>> F.group_norm(torch.tensor([[1.0, 3.0]]), 1)
    tensor([[-1.,  1.]])
    """
    return pg.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """Normalize to mean square 1 over the last axes; then multiply by the weight.

    The axes are as many as `normalized_shape` has sizes.

    >>> F = torch.nn.functional
    >>> F.rms_norm(torch.tensor([[2.0, 2.0]]), (2,))
    tensor([[1., 1.]])
    """
    count, wanted = len(normalized_shape), tuple(normalized_shape)
    if tuple(input.shape[-count:]) != wanted:
        raise ShapeError(
            f"normalized_shape {wanted} is not that of the last axes of {tuple(input.shape)}"
        )
    return pg.rms_norm(input, weight, tuple(range(-count, 0)), eps)


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """Return the rows of `weight` at positions `input`.

    >>> F = torch.nn.functional
    >>> F.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    return pg.embedding(input, weight, padding_idx)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Compute means of the values, weighted by the similarity of their keys to the query.

    >>> F = torch.nn.functional
    >>> F.scaled_dot_product_attention(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3, 4)).shape
    torch.Size([1, 4])
    """
    return pg.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        scale,
        enable_gqa,
        next_key() if dropout_p else None,
    )
