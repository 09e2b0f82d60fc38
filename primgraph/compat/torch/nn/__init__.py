"""The part of `torch.nn` that is about dense networks, and functions of others."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.nn import functional, utils
from primgraph.compat.torch.nn.modules import (
    GELU,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    HuberLoss,
    LayerNorm,
    Linear,
    Module,
    NLLLoss,
    Softmax,
    Softplus,
)
from primgraph.compat.torch.tensor import Parameter
from primgraph.nn import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    BCELoss,
    BCEWithLogitsLoss,
    L1Loss,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MSELoss,
    ParameterList,
    ReLU,
    Sequential,
    Sigmoid,
    SiLU,
    Tanh,
)
from primgraph.nn import LayerDict as ModuleDict
from primgraph.nn import LayerList as ModuleList

__all__ = [
    "GELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "HuberLoss",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterList",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "functional",
    "utils",
]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
