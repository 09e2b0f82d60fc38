"""Layers by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from primgraph.compat.paddle.nn.layer import tables
from primgraph.compat.paddle.nn.layer.cells import (
    GRUCell,
    LSTMCell,
    RNNCellBase,
    SimpleRNNCell,
)
from primgraph.compat.paddle.nn.layer.container import (
    LayerDict,
    LayerList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from primgraph.compat.paddle.nn.layer.conv import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.compat.paddle.nn.layer.linear import (
    Bilinear,
    Embedding,
    Identity,
    Linear,
    PReLU,
    Softmax2D,
    UpsamplingBilinear2D,
    UpsamplingNearest2D,
)
from primgraph.compat.paddle.nn.layer.norm import (
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    BatchNorm3D,
    GroupNorm,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    LayerNorm,
    SpectralNorm,
    SyncBatchNorm,
)
from primgraph.compat.paddle.nn.layer.rnn import GRU, LSTM, RNN, BiRNN, SimpleRNN
from primgraph.compat.paddle.nn.layer.tables import *  # noqa: F403
from primgraph.compat.paddle.nn.layer.transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "BatchNorm3D",
    "BiRNN",
    "Bilinear",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Embedding",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm1D",
    "InstanceNorm2D",
    "InstanceNorm3D",
    "LSTMCell",
    "Layer",
    "LayerDict",
    "LayerList",
    "LayerNorm",
    "Linear",
    "MultiHeadAttention",
    "PReLU",
    "ParameterDict",
    "ParameterList",
    "RNNCellBase",
    "Sequential",
    "SimpleRNN",
    "SimpleRNNCell",
    "Softmax2D",
    "SpectralNorm",
    "SyncBatchNorm",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "UpsamplingBilinear2D",
    "UpsamplingNearest2D",
    *tables.__all__,
]
