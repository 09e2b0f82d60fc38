"""Tools for parameters and modules, by the names of `torch.nn.utils`."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.nn import stateless
from primgraph.compat.torch.nn.utils import parametrizations, parametrize, rnn
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

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
