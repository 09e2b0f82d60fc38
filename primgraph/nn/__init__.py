"""Networks: layers that own parameters, the usual ones, and losses."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.base.array_functions import replacement_hint
from primgraph.errors import unknown_name
from primgraph.nn.activations import GELU, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from primgraph.nn.attention import Embedding, MultiheadAttention
from primgraph.nn.basic import BatchNorm, Dropout, LayerNorm, Linear, Sequential
from primgraph.nn.containers import LayerDict, LayerList, ParameterList
from primgraph.nn.convolutions import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from primgraph.nn.layer import Layer
from primgraph.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
)
from primgraph.nn.normalization import GroupNorm, InstanceNorm, RMSNorm
from primgraph.nn.pools import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    Flatten,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from primgraph.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.nn", name, __all__, replacement_hint(name))

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
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
    "BatchNorm",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "HuberLoss",
    "InstanceNorm",
    "L1Loss",
    "LSTMCell",
    "Layer",
    "LayerDict",
    "LayerList",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MultiheadAttention",
    "ParameterList",
    "RMSNorm",
    "RNNCell",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]
