"""The part of `torch.nn` that is about dense networks."""

from primgraph.compat.torch.nn import functional
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
    BCELoss,
    BCEWithLogitsLoss,
    L1Loss,
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
]
