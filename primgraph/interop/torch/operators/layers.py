"""Functions of operators of networks: convolutions, pools, normalization, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.interop.torch.table import F, Site, means, means_each, names
from primgraph.operators import reshape
from primgraph.operators.variable import Variable


@means("aten.convolution")
def _convolution(
    site: Site,
    x: Variable,
    weight: Variable,
    bias: Variable | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    n = weight.ndim - 2
    steps, pads, apart = tuple(stride), tuple(padding), tuple(dilation)
    if not transposed:
        return getattr(F, f"conv{n}d")(x, weight, bias, steps, pads, apart, groups)
    more = tuple(output_padding)
    function = getattr(F, f"conv_transpose{n}d")
    return function(x, weight, bias, steps, pads, more, groups, apart)


@means("aten.max_pool1d_with_indices", "aten.max_pool2d_with_indices",
       "aten.max_pool3d_with_indices")  # fmt: skip
def _max_pool(site: Site, x: Variable, kernel: Any, stride: Any = None, *options: Any) -> Any:
    n = site.name[len("aten.max_pool")]
    function = getattr(F, f"max_pool{n}d")
    return function(x, _whole(kernel), _whole(stride), *map(_whole, options)), None


def _whole(sizes: Any) -> Any:
    """Return sizes of windows as a tuple; an empty list stands for the default."""
    return (tuple(sizes) or None) if isinstance(sizes, list) else sizes


@means("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def _avg_pool(site: Site, x: Variable, kernel: Any, stride: Any = None, *options: Any) -> Any:
    function = getattr(F, site.name.split(".")[1])
    return function(x, _whole(kernel), _whole(stride), *map(_whole, options))


@means("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d", "aten.adaptive_avg_pool1d",
       "aten.adaptive_avg_pool2d")  # fmt: skip
def _adaptive_avg_pool(site: Site, x: Variable, size: Any) -> Any:
    return getattr(F, site.name.split(".")[1].removeprefix("_"))(x, tuple(size))


@means("aten.adaptive_max_pool2d")
def _adaptive_max_pool(site: Site, x: Variable, size: Any) -> Any:
    return F.adaptive_max_pool2d(x, tuple(size)), None


@means("aten.native_layer_norm")
def _layer_norm(
    site: Site, x: Variable, shape: Sequence[Any], weight: Any, bias: Any, eps: float
) -> Any:
    axes = tuple(range(-len(shape), 0))
    mean = names.mean(x, axes, True)
    scale = names.rsqrt(names.var(x, axes, keepdim=True, correction=0) + eps)
    return _scaled((x - mean) * scale, weight, bias), mean, scale


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    found = x if weight is None else x * weight
    return found if bias is None else found + bias


@means("aten.native_group_norm")
def _group_norm(site: Site, x: Variable, weight: Any, bias: Any, *sizes: Any) -> Any:
    *_, groups, eps = sizes
    return F.group_norm(x, groups, weight, bias, eps), None, None


@means("aten._native_batch_norm_legit_no_training")
def _batch_norm(
    site: Site,
    x: Variable,
    weight: Any,
    bias: Any,
    mean: Variable,
    var: Variable,
    momentum: float,
    eps: float,
) -> Any:
    return F.batch_norm(x, mean, var, weight, bias, False, momentum, eps), None, None


@means("aten._native_batch_norm_legit.no_stats")
def _batch_norm_of_batch(
    site: Site, x: Variable, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return F.batch_norm(x, None, None, weight, bias, True, momentum, eps), None, None


@means("aten.native_dropout")
def _dropout(site: Site, x: Variable, p: float, train: bool | None) -> Any:
    if train is None or train:
        site.refuse("train=True")
    return x, None


@means("aten.dropout")
def _dropout_of_evaluation(site: Site, x: Variable, p: float, train: bool) -> Any:
    if train and p:
        site.refuse("train=True")
    return x


@means(
    "aten.scaled_dot_product_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_attention_math",
)
def _attention(site: Site, q: Variable, k: Variable, v: Variable, *args: Any, **kwargs: Any) -> Any:
    mask, drop, causal = kwargs.get("attn_mask"), 0.0, False
    if site.name.startswith("aten._scaled_dot_product_flash_attention_for_cpu"):
        given = [*args, *(0.0, False)[len(args) :]]
        drop, causal = given[0], given[1]
    else:
        given = [*args, *(None, 0.0, False)[len(args) :]]
        mask, drop, causal = given[:3]
        causal, mask = kwargs.get("is_causal", causal), kwargs.get("attn_mask", mask)
    if kwargs.get("dropout_p", drop):
        site.refuse("dropout")
    scale, gqa = kwargs.get("scale"), kwargs.get("enable_gqa", False)
    found = F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, scale, gqa)
    return found if len(site.dtypes) == 1 else (found, *[None] * (len(site.dtypes) - 1))


# Sizes of images.


@means("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d")
def _nearest(site: Site, x: Variable, size: Any, *scales: Any) -> Any:
    return _resized(site, x, size, "nearest", None, scales)


@means("aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d",
       "aten.upsample_bicubic2d")  # fmt: skip
def _linear(site: Site, x: Variable, size: Any, corners: bool, *scales: Any) -> Any:
    mode = site.name.split(".")[1].removeprefix("upsample_")[:-2]
    return _resized(site, x, size, mode, corners, scales)


def _resized(
    site: Site, x: Variable, size: Any, mode: str, corners: bool | None, scales: Sequence[Any]
) -> Any:
    """Return an image of another size: torch samples by the factors, if they are given."""
    factors = [s for s in scales if s is not None]
    if factors and isinstance(factors[0], list):
        (factors,) = factors
    if factors:
        return F.interpolate(x, None, tuple(factors), mode, corners)
    return F.interpolate(x, tuple(size), None, mode, corners)


@means("aten.grid_sampler_2d")
def _grid_sampler(
    site: Site, x: Variable, grid: Variable, mode: int, padding: int, corners: bool
) -> Any:
    kind = ("bilinear", "nearest", "bicubic")[mode]
    beyond = ("zeros", "border", "reflection")[padding]
    return F.grid_sample(x, grid, kind, beyond, corners)


means_each({
    "aten.channel_shuffle": F.channel_shuffle,
    "aten.linear": F.linear,
    "aten.flatten": lambda x, first=0, last=-1: names.flatten(x, first, last),
    "aten.one_hot": F.one_hot,
    "aten.unflatten": lambda x, dim, sizes: reshape(
        x, (*x.shape[:dim], *sizes, *x.shape[dim % x.ndim + 1 :])
    ),
})  # fmt: skip
