"""Modules of torch as graphs: `from_torch`."""

from primgraph.interop.torch.importing import TorchFunction, from_torch

__all__ = ["TorchFunction", "from_torch"]
