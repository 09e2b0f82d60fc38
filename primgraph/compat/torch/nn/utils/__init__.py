"""Tools for parameters and modules, by the names of `torch.nn.utils`."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.nn import stateless
from primgraph.compat.torch.nn.utils import parametrizations, parametrize, prune, rnn
from primgraph.compat.torch.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from primgraph.compat.torch.nn.utils.convert_parameters import (
    parameters_to_vector,
    vector_to_parameters,
)
from primgraph.compat.torch.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from primgraph.compat.torch.nn.utils.weight_hooks import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `module_cls(*args, **kwargs)`, whose parameters may have any elements.

    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 1).weight.shape
    torch.Size([1, 2])
    """
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Return the module: the layout of weights in memory is not the caller's.

    >>> layer = torch.nn.Conv2d(1, 1, 1)
    >>> utils = torch.nn.utils
    >>> utils.convert_conv2d_weight_memory_format(layer, torch.channels_last) is layer
    True
    """
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
