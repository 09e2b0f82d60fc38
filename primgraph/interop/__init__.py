"""Programs of other libraries as graphs, and graphs as programs of other libraries."""

from primgraph.interop.embedding import to_jax, to_torch
from primgraph.interop.imported import Imported
from primgraph.interop.jax import from_jax
from primgraph.interop.lacking import VersionWarning
from primgraph.interop.onnx.importing import OnnxFunction, from_onnx
from primgraph.interop.sympy import from_sympy
from primgraph.interop.torch import TorchFunction, from_torch

__all__ = [
    "Imported",
    "OnnxFunction",
    "TorchFunction",
    "VersionWarning",
    "from_jax",
    "from_onnx",
    "from_sympy",
    "from_torch",
    "to_jax",
    "to_torch",
]
