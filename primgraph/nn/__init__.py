"""Networks: layers that own parameters, the usual ones, and losses."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import unknown_name
from primgraph.nn.activations import GELU, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from primgraph.nn.basic import BatchNorm, Dropout, LayerNorm, Linear, Sequential
from primgraph.nn.containers import LayerDict, LayerList, ParameterList
from primgraph.nn.layer import Layer
from primgraph.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.nn", name, __all__)


__all__ = [
    "GELU",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm",
    "CrossEntropyLoss",
    "Dropout",
    "HuberLoss",
    "L1Loss",
    "Layer",
    "LayerDict",
    "LayerList",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "ParameterList",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]
