"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.tensor import Tensor
from primgraph.errors import ArgumentError

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Return all elements of parameters, one behind the other.

    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 1).parameters()).shape
    torch.Size([3])
    """
    return pg.concatenate([pg.reshape(p, (-1,)) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let parameters show the elements of a vector, in order.

    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.nn.utils.vector_to_parameters(torch.ones(3), layer.parameters())
    >>> layer.bias.item()
    1.0
    """
    if not isinstance(vec, Tensor):
        raise ArgumentError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        parameter.data = pg.reshape(vec[begin:end], tuple(parameter.shape)).detach()
        begin = end
